/* Every operation: its meaning against small independent loops, its gradient
 * against finite differences (directional, in double: h = 1e-5, two directions per
 * case, each moving every parameter the case reads), and hundreds of shapes. */
#include "ctx_test.h"

#include <math.h>

#include "op_cases.h"
#include "passes/autodiff.h"

/* ---- gradients -------------------------------------------------------------------- */

static bool reads(const Func *f, const Var *v) {
    for (const Op *op = f->first; op; op = op->next)
        if (op->kind == OP_VAR && op->var == v) return true;
    return false;
}

static double direction(int which, int var, int64_t i) {
    RtKey key = rt_stream_key(2, (uint64_t)which, (uint64_t)var);
    return 2 * (double)rt_uniform(key, (uint32_t)i, 0) - 1;
}

/* Puts x + t * direction into every variable that f reads. */
static void move(Interp *in, const OpCases *cs, const Func *f, int which, double t) {
    for (int k = 0; k < cs->vars.n; k++) {
        const OpCaseVar *v = &cs->vars.v[k];
        if (!reads(f, v->var)) continue;
        int64_t n;
        double *x = op_case_values(cs, v, &n);
        for (int64_t i = 0; i < n; i++) x[i] += t * direction(which, k, i);
        interp_set_var(in, v->var, x);
    }
}

static double loss_at(Interp *in, const OpCases *cs, const OpCase *c, int which, double t) {
    move(in, cs, c->f, which, t);
    bool ok = interp_run(in, c->f);
    CHECK_MSG(ok, "%s: %s", c->name, interp_error(in));
    return ok ? interp_output(in, "loss")->v[0] : 0;
}

/* d loss / d direction by the gradients; *scale: how much was added up. */
static double slope(Ctx *ctx, Interp *in, const OpCases *cs, const OpCase *c, int which,
                    double *scale) {
    double sum = 0;
    loss_at(in, cs, c, which, 0);
    *scale = 1;
    for (int k = 0; k < cs->vars.n; k++) {
        const Var *v = cs->vars.v[k].var;
        if (!reads(c->f, v)) continue;
        const OpTensor *g = interp_output(in, arena_printf(ctx->a, "grad.%s", v->path));
        /* No gradient is a gradient of 0: the finite difference below must say the same. */
        CHECK_MSG(!g || type_eq(&g->type, &v->type), "%s: type of grad.%s", c->name, v->path);
        for (int64_t i = 0; g && i < g->count; i++) {
            double d = g->v[i] * direction(which, k, i);
            sum += d;
            *scale += fabs(d);
        }
    }
    return sum;
}

static void check_gradient(Ctx *ctx, Interp *in, const OpCases *cs, const OpCase *c) {
    const double h = 1e-5;
    for (int which = 0; which < 2; which++) {
        double up = loss_at(in, cs, c, which, h), down = loss_at(in, cs, c, which, -h);
        double scale, got = slope(ctx, in, cs, c, which, &scale), want = (up - down) / (2 * h);
        CHECK_MSG(fabs(got - want) <= 1e-6 * scale, "%s: gradient %.10g, finite difference %.10g",
                  c->name, got, want);
    }
}

static void gradients(Ctx *ctx, void *arg) {
    (void)arg;
    OpCases *cs = op_cases_build(ctx);
    PassCtx p = {.ctx = ctx, .a = ctx->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss)
            CHECK_MSG(pass_autodiff_func(&p, cs->m, cs->cases.v[i].f), "%s", cs->cases.v[i].name);
    Interp *in = op_cases_interp(ctx, cs);
    interp_set_exact(in, true);
    int n = 0;
    for (int i = 0; i < cs->cases.n; i++) {
        const OpCase *c = &cs->cases.v[i];
        CHECK_MSG(interp_run(in, c->f), "%s: %s", c->name, interp_error(in));
        if (c->has_fd) check_gradient(ctx, in, cs, c), n++;
    }
    CHECK(n > 500);
}

TEST(gradients_of_every_case_match_finite_differences) {
    with_ctx(gradients, NULL);
}

/* ---- text ------------------------------------------------------------------------- */

static void round_trip(Ctx *ctx, void *arg) {
    (void)arg;
    OpCases *cs = op_cases_build(ctx);
    PassCtx p = {.ctx = ctx, .a = ctx->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss) pass_autodiff_func(&p, cs->m, cs->cases.v[i].f);
    CHECK(module_verify(ctx, cs->m, "autodiff"));
    StrBuf once = sb_new(ctx->a), twice = sb_new(ctx->a);
    module_print(&once, cs->m);
    Module *m = module_parse(ctx, ctx_add_text(ctx, "op_cases.gir", once.s, once.n));
    CHECK(m != NULL);
    if (!m) return;
    CHECK(module_verify(ctx, m, "parse"));
    module_print(&twice, m);
    CHECK(strcmp(once.s, twice.s) == 0);
}

static void round_trip_and_report(Ctx *ctx, void *arg) {
    round_trip(ctx, arg);
    ctx->max_errors = 5;
    diag_print_all(ctx, stderr, false);
}

TEST(every_case_prints_and_parses_again) {
    with_ctx(round_trip_and_report, NULL);
}

/* ---- ill-typed operations ------------------------------------------------------------ */

typedef struct {
    Builder b;
    Space *paper, *author, *writes, *cites, *f, *h;
    Op *x, *y, *a, *e, *n, *p, *csr;
} Words;

static Type type2(DType dt, Space *s, Space *d) {
    return type_make(dt, d ? 2 : 1, (Space *[]){s, d});
}

static Op *named(Words *w, const char *name, Type t) {
    Op *op = b_saved(&w->b, name, t);
    op->hint = name;
    return op;
}

static Words words(Ctx *ctx) {
    Module *m = module_new(ctx, "t");
    Span at = {0};
    Words w = {.b = {.m = m, .f = func_new(m, "f")}};
    w.paper = space_node(m, "paper", at), w.author = space_node(m, "author", at);
    w.cites = space_edge(m, "cites", w.paper, w.paper, at);
    w.writes = space_edge(m, "writes", w.author, w.paper, at);
    w.f = space_dim(m, "F", NULL, at), w.h = space_dim(m, "H", NULL, at);
    w.x = named(&w, "x", type2(DT_F32, w.paper, w.f));
    w.y = named(&w, "y", type2(DT_F32, w.paper, w.h));
    w.a = named(&w, "a", type2(DT_F32, w.author, w.f));
    w.e = named(&w, "e", type2(DT_F32, w.cites, NULL));
    w.n = named(&w, "n", type2(DT_I32, w.paper, NULL));
    w.p = named(&w, "p", type2(DT_I1, w.paper, NULL));
    w.csr = b_data(&w.b, column_new(m, COL_CSR, w.paper, "words", 1, &w.f, NULL, at));
    return w;
}

static void rejects(Words *w, Op proto, const char *words_of_it) {
    const char *err = op_infer(w->b.m, &proto);
    CHECK_MSG(err && strstr(err, words_of_it), "'%s': \"%s\" is not in \"%s\"",
              op_mnemonic(proto.kind), words_of_it, err ? err : "(no error)");
}

#define OPS(...)                                                                                   \
    .in = (Op *[]){__VA_ARGS__}, .n_in = (int)(sizeof((Op *[]){__VA_ARGS__}) / sizeof(Op *))

static void mistakes(Ctx *ctx, void *arg) {
    (void)arg;
    Words w = words(ctx);
    Module *m = w.b.m;
    Type wrong = type2(DT_F32, w.paper, w.h), f32 = type_scalar(DT_F32);
    rejects(&w, (Op){.kind = OP_ADD, OPS(w.x, w.a)}, "'x' (f32[paper, F]) and 'a'");
    rejects(&w, (Op){.kind = OP_ADD, OPS(w.x, w.e)}, "live on different spaces");
    rejects(&w, (Op){.kind = OP_MUL, OPS(w.x, w.n)}, "different element types");
    rejects(&w, (Op){.kind = OP_ADD, OPS(w.p, w.p)}, "'p' (i1[paper]) is not a number");
    rejects(&w, (Op){.kind = OP_AND, OPS(w.n, w.n)}, "is not a truth value");
    rejects(&w, (Op){.kind = OP_EXP, OPS(w.n)}, "not a floating-point value");
    rejects(&w, (Op){.kind = OP_EXP, OPS(w.csr)}, "is csr");
    rejects(&w, (Op){.kind = OP_ADD, OPS(w.csr, w.x)}, "make a dense copy");
    rejects(&w, (Op){.kind = OP_MUL, OPS(w.csr, w.y)}, "has spaces that");
    rejects(&w, (Op){.kind = OP_SELECT, OPS(w.x, w.x, w.x)}, "not a truth value");
    rejects(&w, (Op){.kind = OP_COPY, OPS(w.x), .type = wrong}, "lacks");
    rejects(&w, (Op){.kind = OP_GATHER, OPS(w.a), .map = map_src(m, w.cites)}, "does not live on");
    rejects(&w, (Op){.kind = OP_SEGMENT, OPS(w.x), .map = map_dst(m, w.writes)}, "does not live");
    rejects(&w, (Op){.kind = OP_GATHER, OPS(w.csr), .map = map_src(m, w.cites)}, "is csr");
    rejects(&w, (Op){.kind = OP_REDUCE, OPS(w.x), .n_over = 1, .over = {w.h}}, "has no H");
    rejects(&w, (Op){.kind = OP_REDUCE, OPS(w.csr), .red = RED_MAX, .n_over = 1, .over = {w.f}},
            "is csr");
    rejects(&w, (Op){.kind = OP_CONTRACT, OPS(w.x, w.y), .type = f32}, "has F");
    rejects(&w, (Op){.kind = OP_CONTRACT, OPS(w.x, w.x), .type = wrong}, "the result has H");
    rejects(&w, (Op){.kind = OP_VIEW, OPS(w.x), .type = wrong}, "same number of elements");
    rejects(&w, (Op){.kind = OP_CONCAT, OPS(w.x, w.y), .n_over = 3, .over = {w.f, w.h, w.h}},
            "the size of H");
    rejects(&w,
            (Op){.kind = OP_SLICE,
                 OPS(w.x),
                 .n_over = 2,
                 .over = {w.h, w.f},
                 .off = expr_const(ctx->a, 0)},
            "does not live on H");
    rejects(&w, (Op){.kind = OP_RANK, OPS(w.x, w.n), .n_over = 1, .over = {w.paper}}, "mask");
    rejects(&w, (Op){.kind = OP_RANK, OPS(w.x, w.n), .n_over = 1, .over = {w.paper}, .imm = 0.7},
            "ties have the lowest (0)");
    rejects(&w, (Op){.kind = OP_ASSERT, OPS(w.x), .name = "x"}, "not a truth value");
    rejects(&w, (Op){.kind = OP_RANDOM, .type = f32, .stream = 9}, "no random stream 9");
    rejects(&w, (Op){.kind = OP_CONST, .type = wrong}, "a constant is a scalar");
}

TEST(ill_typed_operations_say_what_is_wrong) {
    with_ctx(mistakes, NULL);
}

TEST_MAIN()
