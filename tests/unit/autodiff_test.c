/* What pass_autodiff promises beyond right numbers (those: ops_test.c): which
 * outputs it makes, ties, activity, depth, and sparse operands. */
#include "ctx_test.h"

#include <math.h>

#include "ir/interp.h"
#include "passes/autodiff.h"

typedef struct {
    Ctx *c;
    Module *m;
    Builder b;
    Space *node, *edge;
    Interp *in;
} Fixture;

enum { N = 4, E = 5 };

static Fixture fixture(Ctx *c) {
    Fixture x = {.c = c, .m = module_new(c, "t")};
    x.node = space_node(x.m, "node", (Span){0});
    x.edge = space_edge(x.m, "edge", x.node, x.node, (Span){0});
    x.b = (Builder){.m = x.m, .f = func_new(x.m, "train")};
    return x;
}

static Var *param(Fixture *x, const char *path, int rank, Space *s) {
    return var_new(x->m, VAR_PARAM, path, type_make(DT_F32, rank, &s), (Init){0}, (Span){0});
}

static bool differentiate(Fixture *x) {
    PassCtx p = {.ctx = x->c, .a = x->c->a};
    return pass_autodiff.run(&p, x->m);
}

static bool run(Fixture *x, const Var *v, const double *values) {
    static const int32_t from[E] = {1, 2, 3, 0, 1}, to[E] = {0, 0, 0, 2, 2};
    x->in = interp_new(x->c, x->m);
    interp_set_size(x->in, x->node, N);
    interp_set_edges(x->in, x->edge, E, from, to);
    interp_set_var(x->in, v, values);
    bool ok = interp_run(x->in, func_of(x->m, PHASE_TRAIN));
    CHECK_MSG(ok, "%s", interp_error(x->in));
    return ok;
}

static void check_grad(Fixture *x, const char *path, int n, const double *want) {
    const OpTensor *g = interp_output(x->in, arena_printf(x->c->a, "grad.%s", path));
    CHECK_MSG(g && g->count == n, "grad.%s", path);
    for (int i = 0; g && i < n && i < g->count; i++)
        CHECK_MSG(fabs(g->v[i] - want[i]) < 1e-6, "grad.%s[%d] is %g, not %g", path, i, g->v[i],
                  want[i]);
}

static Op *total(Fixture *x, Op *y) {
    return b_reduce(&x->b, RED_SUM, y, y->type.rank, y->type.dim);
}

#define UNUSED_ARG (void)arg

CTX_TEST(tied_entries_of_a_segment_share_the_gradient) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    Op *e = b_gather(&x.b, map_src(x.m, x.edge), b_var(&x.b, v));
    b_loss(&x.b, total(&x, b_segment(&x.b, RED_MAX, map_dst(x.m, x.edge), e)));
    CHECK(differentiate(&x));
    /* node 0 takes the larger of v1 v2 v3 = 5 5 1, node 2 of v0 v1 = 5 5 */
    if (run(&x, v, (double[]){5, 5, 5, 1})) check_grad(&x, "v", N, (double[]){0.5, 1, 0.5, 0});
}

CTX_TEST(tied_entries_of_a_reduction_share_the_gradient) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    b_loss(&x.b, b_reduce(&x.b, RED_MIN, b_var(&x.b, v), 1, &x.node));
    CHECK(differentiate(&x));
    if (run(&x, v, (double[]){2, -1, 3, -1})) check_grad(&x, "v", N, (double[]){0, 0.5, 0, 0.5});
}

CTX_TEST(a_tie_of_max_goes_to_the_second_operand) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *first = param(&x, "first", 1, x.node), *second = param(&x, "second", 1, x.node);
    Op *p = b_var(&x.b, first), *q = b_var(&x.b, second);
    b_loss(&x.b, total(&x, b_binary(&x.b, OP_MAX, p, q)));
    CHECK(differentiate(&x));
    x.in = interp_new(c, x.m);
    interp_set_size(x.in, x.node, N);
    interp_set_var(x.in, first, (double[]){2, -1, 3, 7});
    interp_set_var(x.in, second, (double[]){2, -1, 4, 6});
    CHECK_MSG(interp_run(x.in, x.b.f), "%s", interp_error(x.in));
    check_grad(&x, "first", N, (double[]){0, 0, 0, 1});
    check_grad(&x, "second", N, (double[]){1, 1, 1, 0});
}

CTX_TEST(relu_has_no_gradient_at_zero) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    Op *zero = b_const(&x.b, DT_F32, 0);
    b_loss(&x.b, total(&x, b_binary(&x.b, OP_MAX, b_var(&x.b, v), zero)));
    CHECK(differentiate(&x));
    if (run(&x, v, (double[]){2, 0, 3, -1})) check_grad(&x, "v", N, (double[]){1, 0, 1, 0});
}

CTX_TEST(every_parameter_of_the_loss_gets_one_output) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node), *idle = param(&x, "idle", 1, x.node);
    Var *unread = param(&x, "unread", 1, x.node);
    (void)unread;
    Var *state = var_new(x.m, VAR_STATE, "state", type_scalar(DT_F32), (Init){0}, (Span){0});
    b_output(&x.b, "shown", total(&x, b_var(&x.b, idle)));
    Op *twice = b_binary(&x.b, OP_MUL, b_var(&x.b, v), b_var(&x.b, v));
    Op *y = b_binary(&x.b, OP_MUL, twice, b_var(&x.b, state));
    b_loss(&x.b, total(&x, y));
    CHECK(differentiate(&x));
    CHECK(differentiate(&x)); /* has its gradients already: nothing happens */
    Func *f = x.b.f;
    CHECK(func_output(f, "grad.v") && !func_output(f, "grad.idle"));
    CHECK(!func_output(f, "grad.unread") && !func_output(f, "grad.state"));
    CHECK(module_verify(c, x.m, "autodiff"));
    x.in = interp_new(c, x.m);
    interp_set_size(x.in, x.node, N);
    double ones[N] = {1, 2, 3, 4};
    interp_set_var(x.in, v, ones);
    interp_set_var(x.in, idle, ones);
    interp_set_var(x.in, state, (double[]){10});
    CHECK_MSG(interp_run(x.in, f), "%s", interp_error(x.in));
    check_grad(&x, "v", N, (double[]){20, 40, 60, 80});
}

static int count(const Func *f, OpKind k) {
    int n = 0;
    for (const Op *op = f->first; op; op = op->next) n += op->kind == k;
    return n;
}

CTX_TEST(data_gets_no_gradient) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Space *f = space_dim(x.m, "F", NULL, (Span){0}), *o = space_dim(x.m, "O", NULL, (Span){0});
    Column *data = column_new(x.m, COL_CSR, x.node, "x", 1, &f, NULL, (Span){0});
    Space *both[] = {o, f}, *out[] = {x.node, o};
    Type t = type_make(DT_F32, 2, both);
    Var *w = var_new(x.m, VAR_PARAM, "w", t, (Init){0}, (Span){0});
    Op *y = b_contract(&x.b, b_data(&x.b, data), b_var(&x.b, w), type_make(DT_F32, 2, out));
    b_loss(&x.b, total(&x, b_gather(&x.b, map_src(x.m, x.edge), y)));
    CHECK(differentiate(&x));
    CHECK(count(x.b.f, OP_CONTRACT) == 2); /* forward, and d w */
    CHECK(func_output(x.b.f, "grad.w")->in[0]->in[1]->type.layout == LAYOUT_CSR);
    CHECK(module_verify(c, x.m, "autodiff"));
}

CTX_TEST(a_deep_function_needs_no_deep_stack) {
    UNUSED_ARG;
    enum { DEPTH = 200000 };
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 0, NULL);
    Op *y = b_var(&x.b, v), *half = b_const(&x.b, DT_F32, 0.5);
    for (int i = 0; i < DEPTH; i++) y = b_binary(&x.b, i % 2 ? OP_ADD : OP_SUB, y, half);
    b_loss(&x.b, y);
    CHECK(differentiate(&x));
    if (run(&x, v, (double[]){3})) check_grad(&x, "v", 1, (double[]){1});
}

/* ---- loops and regions ------------------------------------------------------------------- */
/* h becomes v + tanh(sum of h over the edges) / 2 while that changes it by more than 0.02. */
static Op *settle(Fixture *x, Op *v, int limit) {
    Func *f = func_new_body(x->m, x->b.f);
    Builder b = {.m = x->m, .f = f};
    Type t = v->type;
    Op *h = b_arg(&b, 1, t), *old = h;
    Op *sum =
        b_segment(&b, RED_SUM, map_dst(x->m, x->edge), b_gather(&b, map_src(x->m, x->edge), h));
    Op *half = b_binary(&b, OP_MUL, b_const(&b, DT_F32, 0.5), b_unary(&b, OP_TANH, sum));
    h = b_binary(&b, OP_ADD, half, b_arg(&b, 2, t));
    Op *change = b_unary(&b, OP_ABS, b_binary(&b, OP_SUB, h, old));
    change = b_reduce(&b, RED_MAX, change, 1, t.dim);
    b_next(&b, 0, b_binary(&b, OP_LT, b_const(&b, DT_F32, 0.02), change));
    b_next(&b, 1, h);
    Op *go = b_const(&x->b, DT_I1, 1);
    return b_result(&x->b, b_loop(&x->b, f, limit, 3, (Op *[]){go, v, v}), 1);
}

static double loss_at(Fixture *x, const Var *v, const double *values) {
    Interp *in = interp_new(x->c, x->m);
    interp_set_exact(in, true);
    static const int32_t from[E] = {1, 2, 3, 0, 1}, to[E] = {0, 0, 0, 2, 2};
    interp_set_size(in, x->node, N);
    interp_set_edges(in, x->edge, E, from, to);
    interp_set_var(in, v, values);
    CHECK_MSG(interp_run(in, func_of(x->m, PHASE_TRAIN)), "%s", interp_error(in));
    return interp_output(in, "loss")->v[0];
}

/* The loop's own loss, by differences, against the gradient of its iterations: all that happen (5
 * of 9), and as many as the limit lets. */
static void check_loop(Ctx *c, int limit) {
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    Op *h = settle(&x, b_var(&x.b, v), limit);
    b_loss(&x.b, total(&x, b_binary(&x.b, OP_MUL, h, h)));
    double at[N] = {0.3, -0.2, 0.5, 0.1}, want[N];
    for (int i = 0; i < N; i++) {
        const double step = 1e-5, keep = at[i];
        at[i] = keep + step;
        want[i] = loss_at(&x, v, at);
        at[i] = keep - step;
        want[i] = (want[i] - loss_at(&x, v, at)) / (2 * step);
        at[i] = keep;
    }
    double whole = loss_at(&x, v, at);
    CHECK(differentiate(&x));
    CHECK(count(x.b.f, OP_LOOP) == 0);
    CHECK(fabs(loss_at(&x, v, at) - whole) < 1e-12);
    CHECK(module_verify(c, x.m, "autodiff"));
    if (run(&x, v, at)) check_grad(&x, "v", N, want);
}

CTX_TEST(a_loop_has_the_gradient_of_its_turns) {
    UNUSED_ARG;
    check_loop(c, 1);
    check_loop(c, 3);
    check_loop(c, 9);
}

CTX_TEST(a_loop_without_a_limit_has_none) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    Op *h = settle(&x, b_var(&x.b, v), 0);
    b_loss(&x.b, total(&x, b_binary(&x.b, OP_MUL, b_detach(&x.b, h), b_var(&x.b, v))));
    CHECK(differentiate(&x)); /* none is needed */
    CHECK(count(x.b.f, OP_LOOP) == 1);
    Fixture y = fixture(c);
    v = param(&y, "v", 1, y.node);
    b_loss(&y.b, total(&y, settle(&y, b_var(&y.b, v), 0)));
    CHECK(!differentiate(&y));
}

/* The root of a negative sum is not finite, and so is its derivative: of no concern where the
 * condition does not hold. */
CTX_TEST(an_untaken_branch_gives_no_gradient) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    Var *v = param(&x, "v", 1, x.node);
    Op *y = b_var(&x.b, v), *s = total(&x, y);
    Op *taken = b_binary(&x.b, OP_LT, b_const(&x.b, DT_F32, 0), s);
    Op *sum =
        b_segment(&x.b, RED_SUM, map_dst(x.m, x.edge), b_gather(&x.b, map_src(x.m, x.edge), y));
    Op *root = b_unary(&x.b, OP_SQRT, sum);
    b_loss(&x.b, total(&x, b_select(&x.b, taken, root, y)));
    CHECK(differentiate(&x));
    if (run(&x, v, (double[]){-1, -2, -3, -4})) check_grad(&x, "v", N, (double[]){1, 1, 1, 1});
    if (run(&x, v, (double[]){1, 4, 4, 8}))
        check_grad(&x, "v", N, (double[]){0.5 / sqrt(5), 0.5 / sqrt(5) + 0.125, 0.125, 0.125});
}

CTX_TEST(a_loss_must_be_there_and_be_a_scalar) {
    UNUSED_ARG;
    Fixture x = fixture(c);
    CHECK(!differentiate(&x));
    Var *v = param(&x, "v", 1, x.node);
    b_loss(&x.b, b_var(&x.b, v));
    CHECK(!differentiate(&x));
    CHECK(c->n_errors > 0 && strstr(c->diags.v[c->diags.n - 1].text, "loss") != NULL);
}

TEST_MAIN()
