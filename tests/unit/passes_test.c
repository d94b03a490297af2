/* Passes change no value: every case of the op table and a whole training step are
 * interpreted before and after the pipelines.  The optimizer's operations are held
 * against its update rules written out in C. */
#include <math.h>

#include "ir/interp.h"
#include "op_cases.h"
#include "passes/pass.h"
#include "ctx_test.h"

static const char o2_rest[] = "canon,cse,dce,recompute-masks,reuse-dot-sums,lower-csr,hoist,canon,"
                              "cse,dce,transpose-weights,fuse";

/* ---- the op table -------------------------------------------------------------------- */
static Interp *interp_of(Ctx *c, const OpCases *cs) {
    Interp *in = op_cases_interp(c, cs);
    interp_set_exact(in, true);
    return in;
}

static bool close_to(double x, double y) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y || fabs(x - y) <= 1e-5 * (1 + fabs(x) + fabs(y));
}

static void compare(const char *name, const OpTensor *x, const OpTensor *y) {
    CHECK_MSG(x && y && x->count == y->count, "%s: sizes differ", name);
    for (int64_t i = 0; x && y && i < x->count && i < y->count; i++)
        if (!close_to(x->v[i], y->v[i])) {
            CHECK_MSG(false, "%s[%lld]: %g before, %g after", name, (long long)i, x->v[i], y->v[i]);
            return;
        }
}

static void check_case(Interp *before, Interp *after, Func *f, Func *g) {
    bool ok = interp_run(before, f) && interp_run(after, g);
    CHECK_MSG(ok, "%s: %s", f->name, interp_error(after));
    for (const Op *op = f->first; op && ok; op = op->next)
        if (op->kind == OP_OUTPUT && op->in[0]->type.layout == LAYOUT_DENSE)
            compare(f->name, interp_output(before, op->name), interp_output(after, op->name));
}

static void run_cases(Ctx *c, void *arg) {
    const char *passes = arg;
    OpCases *plain = op_cases_build(c), *changed = op_cases_build(c);
    PassOptions o = {.verify_each = true};
    CHECK_MSG(pass_run_all(c, changed->m, passes, &o), "%s", passes);
    if (c->n_errors) diag_print_all(c, stderr, false);
    if (c->n_errors) return;
    Interp *before = interp_of(c, plain), *after = interp_of(c, changed);
    Func *load = func_of(changed->m, PHASE_LOAD);
    if (load) CHECK_MSG(interp_run(after, load), "load: %s", interp_error(after));
    for (int i = 0; i < plain->cases.n; i++)
        check_case(before, after, plain->cases.v[i].f, changed->cases.v[i].f);
}

/* ---- a whole training step: tests/passes/pipeline_gcn.gir -------------------------------- */
enum { N = 5, E = 8, F = 4, C = 3, NNZ = 9 };

static void give_citations(Interp *in, Module *m) {
    static const int32_t src[E] = {1, 2, 0, 3, 3, 0, 2, 2}, dst[E] = {0, 0, 1, 1, 2, 3, 3, 2};
    static const int64_t ptr[N + 1] = {0, 2, 4, 4, 8, 9};
    static const int32_t col[NNZ] = {0, 2, 1, 3, 0, 1, 2, 3, 2};
    static const double x[NNZ] = {.5, .5, .25, .75, .1, .2, .3, .4, 1};
    static const double y[N] = {0, 2, 1, -1, 1}, split[N] = {1, 1, 2, 0, 1};
    interp_set_size(in, space_find(m, "paper"), N);
    interp_set_size(in, space_find(m, "F"), F);
    interp_set_size(in, space_find(m, "C"), C);
    interp_set_edges(in, space_find(m, "cites"), E, src, dst);
    interp_set_csr(in, column_find(m, "paper", "x"), ptr, col, x);
    interp_set_column(in, column_find(m, "paper", "y"), y);
    interp_set_column(in, column_find(m, "paper", "split"), split);
    interp_set_seed(in, 1, 1);
}

static void give_weights(Ctx *c, Interp *in, Module *m) {
    for (int i = 0; i < m->vars.n; i++) {
        double *w = NEWN(c->a, double, F * 16);
        for (int k = 0; k < F * 16 && m->vars.v[i]->kind == VAR_PARAM; k++)
            w[k] = ((k * 37 + i * 11) % 29 - 14) / 20.0;
        interp_set_var(in, m->vars.v[i], w);
    }
}

/* Two steps after the pipeline; returns the interpreter with the second's values. */
static Interp *train_twice(Ctx *c, Module *m, const char *passes, PassChoices *choices) {
    PassOptions o = {.verify_each = true, .choices = choices};
    CHECK(m && pass_run_all(c, m, passes, &o));
    diag_print_all(c, stderr, false);
    if (!m || c->n_errors) return NULL;
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    give_citations(in, m);
    give_weights(c, in, m);
    Func *load = func_of(m, PHASE_LOAD);
    if (load) CHECK_MSG(interp_run(in, load), "%s", interp_error(in));
    for (int step = 1; step <= 2; step++) {
        interp_set_input(in, "lr", 0.01);
        interp_set_input(in, "weight_decay", 5e-4);
        interp_set_input(in, "step", step);
        CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    }
    return in;
}

static void run_gcn(Ctx *c, void *arg) {
    PassChoices choices = {.picked = arg != NULL}; /* dense rows of the features */
    uint32_t file = ctx_add_file(c, "tests/passes/pipeline_gcn.gir", (Span){0});
    CHECK(file != UINT32_MAX);
    if (file == UINT32_MAX) return;
    Module *m0 = module_parse(c, file), *m2 = module_parse(c, file);
    Interp *i0 = train_twice(c, m0, pass_pipeline_named(0, false), NULL);
    Interp *i2 = train_twice(c, m2, pass_pipeline_named(2, false), &choices);
    if (!i0 || !i2) return;
    const Func *train = func_find(m2, "train");
    bool rows = false;
    for (const Op *op = train->first; op; op = op->next)
        rows |= op->kind == OP_DATA && op->col->kind == COL_CSR && op->type.rank == 2;
    CHECK(choices.n >= 1 && rows == (arg != NULL));
    compare("loss", interp_output(i0, "loss"), interp_output(i2, "loss"));
    for (int i = 0; i < m0->vars.n; i++) {
        const double *x = interp_var(i0, m0->vars.v[i]);
        const double *y = interp_var(i2, var_find(m2, m0->vars.v[i]->path));
        for (int k = 0; k < C * 16; k++) CHECK_MSG(close_to(x[k], y[k]), "%g, %g", x[k], y[k]);
    }
}

/* ---- rows that a batch has several times: tests/passes/distinct.gir ------------------------- */
enum { NODES = 6, SEEDS = 3, WIDE = 64, KINDS = 3 };

static double spread(int i) {
    return sin(0.7 * i + 1);
}

/* Nodes 0, 2 and 5 are one row of the data, 1 and 4 another one. */
static Interp *one_batch(Ctx *c, Module *m, const char *passes) {
    static const int32_t src[] = {0, 1, 2, 3, 4, 5, 0}, dst[] = {0, 0, 1, 1, 2, 2, 1};
    static const int32_t row[NODES] = {9, 4, 9, 7, 4, 9};
    double x[NODES * WIDE], kind[NODES], own[SEEDS * WIDE], w[WIDE * WIDE];
    for (int i = 0; i < NODES * WIDE; i++) x[i] = spread(100 * row[i / WIDE] + i % WIDE);
    for (int i = 0; i < NODES; i++) kind[i] = row[i] == 7 ? -1 : row[i] % KINDS;
    for (int i = 0; i < SEEDS * WIDE; i++) own[i] = spread(i + 7);
    PassOptions o = {.verify_each = true};
    bool ok = pass_run_all(c, m, passes, &o);
    CHECK_MSG(ok, "%s", passes);
    if (!ok) return NULL;
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    interp_set_size(in, space_find(m, "v"), NODES);
    interp_set_size(in, space_find(m, "seed"), SEEDS);
    interp_set_size(in, space_find(m, "K"), KINDS);
    interp_set_edges(in, space_find(m, "e"), COUNT(src), src, dst);
    interp_set_column(in, column_find(m, "v", "x"), x);
    interp_set_column(in, column_find(m, "v", "kind"), kind);
    interp_set_column(in, column_find(m, "seed", "x"), own);
    for (int i = 0; i < m->vars.n; i++) {
        for (int k = 0; k < WIDE * WIDE; k++) w[k] = spread(k + 31 * i);
        interp_set_var(in, m->vars.v[i], w);
    }
    Space *once = space_find(m, "v.rows");
    if (once) interp_set_rows_of(in, once, row);
    CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    if (once) CHECK(interp_size(in, once) == 3);
    return in;
}

static void run_distinct(Ctx *c, void *arg) {
    (void)arg;
    uint32_t file = ctx_add_file(c, "tests/passes/distinct.gir", (Span){0});
    Module *m = file == UINT32_MAX ? NULL : module_parse(c, file);
    Module *n = file == UINT32_MAX ? NULL : module_parse(c, file);
    CHECK(m && n);
    Interp *before = m ? one_batch(c, m, "autodiff,dce") : NULL;
    Interp *after =
        n ? one_batch(
                c, n,
                "distinct,autodiff,canon,cse,dce,aggregate,recompute-masks,reuse-dot-sums,fuse")
          : NULL;
    if (!before || !after) return;
    CHECK(!space_find(m, "v.rows") && space_find(n, "v.rows"));
    const char *out[] = {"loss", "grad.table", "grad.w", "grad.u"};
    for (size_t i = 0; i < COUNT(out); i++)
        compare(out[i], interp_output(before, out[i]), interp_output(after, out[i]));
}

TEST(rows_that_come_several_times_are_computed_once) {
    with_ctx(run_distinct, NULL);
}

/* ---- products that are taken apart: tests/passes/narrow.gir --------------------------------- */
static Interp *few_rows(Ctx *c, Module *m, const char *passes) {
    double x[NODES * 2], kind[NODES], w[32 * 96];
    PassOptions o = {.verify_each = true};
    bool ok = pass_run_all(c, m, passes, &o);
    CHECK_MSG(ok, "%s", passes);
    if (!ok) return NULL;
    for (int i = 0; i < NODES; i++) kind[i] = i % (KINDS + 1) - 1;
    for (int i = 0; i < NODES * 2; i++) x[i] = spread(i);
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    interp_set_size(in, space_find(m, "n"), NODES);
    interp_set_size(in, space_find(m, "K"), KINDS);
    interp_set_column(in, column_find(m, "n", "x"), x);
    interp_set_column(in, column_find(m, "n", "kind"), kind);
    for (int i = 0; i < m->vars.n; i++) {
        for (size_t k = 0; k < COUNT(w); k++) w[k] = spread((int)k + 31 * i);
        interp_set_var(in, m->vars.v[i], w);
    }
    CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    return in;
}

static void run_narrow(Ctx *c, void *arg) {
    (void)arg;
    uint32_t file = ctx_add_file(c, "tests/passes/narrow.gir", (Span){0});
    Module *m = file == UINT32_MAX ? NULL : module_parse(c, file);
    Module *n = file == UINT32_MAX ? NULL : module_parse(c, file);
    CHECK(m && n);
    Interp *before = m ? few_rows(c, m, "autodiff,dce") : NULL;
    Interp *after = n ? few_rows(c, n, "narrow,autodiff,canon,cse,dce") : NULL;
    if (!before || !after) return;
    const char *out[] = {"loss", "y", "grad.w", "grad.b", "grad.t", "grad.v", "grad.u"};
    for (size_t i = 0; i < COUNT(out); i++)
        compare(out[i], interp_output(before, out[i]), interp_output(after, out[i]));
}

TEST(products_that_are_taken_apart_are_the_same) {
    with_ctx(run_narrow, NULL);
}

/* ---- positions ------------------------------------------------------------------------------ */
/* Layers of two element types, each operation at a place of its own, or all at none. */
static void prepare(Module *m, bool somewhere) {
    uint32_t line = 1;
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next) {
            if (op->type.rank && op->n_in) op->want = line % 3 ? DT_BF16 : DT_F32;
            op->span = somewhere ? span_of(0, line, 1, line, 2) : (Span){0};
            line++;
        }
}

static const char *optimised(Ctx *c, uint32_t file, DType precision, bool somewhere) {
    Module *m = module_parse(c, file);
    PassOptions o = {.verify_each = true, .precision = precision};
    StrBuf b = sb_new(c->a);
    CHECK(m);
    if (!m) return "";
    prepare(m, somewhere);
    if (!somewhere) m->recipe.optimizer = (Span){0};
    for (int i = 0; i < m->vars.n && !somewhere; i++) m->vars.v[i]->span = (Span){0};
    CHECK(pass_run_all(c, m, pass_pipeline_named(2, false), &o));
    module_print_computation(&b, m);
    CHECK(strstr(b.s, " : bf16[paper, hidden]"));
    CHECK(precision == DT_VOID || strstr(b.s, "@f32 update"));
    return b.s;
}

static void compare_positions(Ctx *c, void *arg) {
    (void)arg;
    uint32_t file = ctx_add_file(c, "tests/passes/pipeline_gcn.gir", (Span){0});
    CHECK(file != UINT32_MAX);
    if (file == UINT32_MAX) return;
    static const DType precision[] = {DT_VOID, DT_BF16};
    for (size_t i = 0; i < COUNT(precision); i++)
        CHECK_STR(optimised(c, file, precision[i], false), optimised(c, file, precision[i], true));
}

TEST(canon_keeps_values) {
    with_ctx(run_cases, "canon");
}
TEST(cse_and_dce_keep_values) {
    with_ctx(run_cases, "cse,dce");
}
TEST(lower_csr_keeps_values) {
    with_ctx(run_cases, "lower-csr");
}
TEST(hoist_keeps_values) {
    with_ctx(run_cases, "lower-csr,hoist");
}
TEST(o2_keeps_values) {
    with_ctx(run_cases, o2_rest);
}

TEST(no_pass_decides_by_a_position) {
    with_ctx(compare_positions, NULL);
}

TEST(a_training_step_is_the_same_at_o0_and_o2) {
    with_ctx(run_gcn, NULL);
}

TEST(a_training_step_is_the_same_over_dense_rows) {
    with_ctx(run_gcn, "rows");
}

/* ---- the optimizer against its definition ------------------------------------------------ */
typedef struct {
    const char *recipe;
    void (*step)(double *p, double *m, double *v, double g, int t);
} Rule;

/* lr 0.1 everywhere; one parameter of 3 elements, gradient = p - 1 (loss = sum (p-1)^2/2) */
static const char text[] = "module \"opt\" {\n"
                           "  dim F = 3\n"
                           "  param \"w\": f32[F] = const(0)\n"
                           "  recipe {\n%s  }\n"
                           "  func @train {\n"
                           "    %%w = var \"w\" : f32[F]\n"
                           "    %%one = const 1 : f32\n"
                           "    %%g = sub %%w, %%one : f32[F]\n"
                           "    output \"grad.w\" %%g as grad \"w\"\n"
                           "  }\n}\n";

static void sgd_plain(double *p, double *m, double *v, double g, int t) {
    (void)m, (void)v, (void)t;
    *p -= 0.1 * (g + 0.01 * *p);
}
static void sgd_momentum(double *p, double *m, double *v, double g, int t) {
    (void)v;
    *m = t == 1 ? g : 0.9 * *m + g;
    *p -= 0.1 * *m;
}
static void sgd_nesterov(double *p, double *m, double *v, double g, int t) {
    (void)v;
    *m = t == 1 ? g : 0.9 * *m + g;
    *p -= 0.1 * (g + 0.9 * *m);
}
static void adam_step(double *p, double *m, double *v, double g, int t) {
    *m = 0.9 * *m + (1 - 0.9) * g;
    *v = 0.999 * *v + (1 - 0.999) * g * g;
    double bc1 = 1 - pow(0.9, t), bc2 = 1 - pow(0.999, t);
    *p -= 0.1 / bc1 * *m / (sqrt(*v) / sqrt(bc2) + 1e-8);
}
static void adam_l2(double *p, double *m, double *v, double g, int t) {
    adam_step(p, m, v, g + 0.01 * *p, t);
}
static void adamw(double *p, double *m, double *v, double g, int t) {
    *p *= 1 - 0.1 * 0.01;
    adam_step(p, m, v, g, t);
}

/* The parameter does not move in between, so the mean of two gradients is either. */
static void adam_of_two(double *p, double *m, double *v, double g, int t) {
    if (t % 2 == 0) adam_step(p, m, v, g, t / 2);
}
/* p is the average; v the parameter that is trained, whose gradient counts. */
static void sgd_averaged(double *p, double *m, double *v, double g, int t) {
    (void)m, (void)g;
    double d = (1.0 + t) / (10 + t) < 0.6 ? (1.0 + t) / (10 + t) : 0.6;
    if (t == 1) *v = *p;
    *v -= 0.1 * (*v - 1);
    *p = d * *p + (1 - d) * *v;
}
static void averaged_of_two(double *p, double *m, double *v, double g, int t) {
    if (t % 2 == 0) sgd_averaged(p, m, v, g, t / 2);
}

#define ADAM "beta1 = 0.9\n beta2 = 0.999\n eps = 1e-8\n"
static const Rule rules[] = {
    {"optimizer = sgd\n lr = 0.1\n weight_decay = 0.01\n", sgd_plain},
    {"optimizer = sgd\n lr = 0.1\n momentum = 0.9\n", sgd_momentum},
    {"optimizer = sgd\n lr = 0.1\n momentum = 0.9\n nesterov = 1\n", sgd_nesterov},
    {"optimizer = adam\n lr = 0.1\n " ADAM, adam_step},
    {"optimizer = adam\n lr = 0.1\n weight_decay = 0.01\n " ADAM, adam_l2},
    {"optimizer = adamw\n lr = 0.1\n weight_decay = 0.01\n " ADAM, adamw},
    {"optimizer = adam\n lr = 0.1\n accumulate = 2\n " ADAM, adam_of_two},
    {"optimizer = sgd\n lr = 0.1\n ema = 0.6\n", sgd_averaged},
    {"optimizer = sgd\n lr = 0.1\n ema = 0.6\n accumulate = 2\n", averaged_of_two},
};

static Module *module_of(Ctx *c, const char *source) {
    return module_parse(c, ctx_add_text(c, "test.gir", source, strlen(source)));
}

static Interp *start(Ctx *c, Module *m) {
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    double zero[3] = {0}, w[3] = {0.5, -2, 3};
    for (int i = 0; i < m->vars.n; i++)
        interp_set_var(in, m->vars.v[i], m->vars.v[i]->kind == VAR_PARAM ? w : zero);
    return in;
}

static void run_rule(Ctx *c, void *arg) {
    const Rule *r = arg;
    Module *m = module_of(c, arena_printf(c->a, text, r->recipe));
    CHECK_MSG(m != NULL, "%s", r->recipe);
    PassOptions o = {.verify_each = true};
    CHECK(m && pass_run_all(c, m, "optimizer,canon,cse,dce,fuse", &o));
    diag_print_all(c, stderr, false);
    if (!m || c->n_errors) return;
    Interp *in = start(c, m);
    double p[3] = {0.5, -2, 3}, mm[3] = {0}, v[3] = {0};
    for (int t = 1; t <= 20; t++) {
        interp_set_input(in, "lr", 0.1);
        interp_set_input(in, "weight_decay", 0.01);
        interp_set_input(in, "step", t);
        CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
        const double *got = interp_var(in, var_find(m, "w"));
        for (int i = 0; i < 3; i++) {
            r->step(&p[i], &mm[i], &v[i], p[i] - 1, t);
            CHECK_MSG(fabs(got[i] - p[i]) < 1e-9, "%s step %d: %.12g, want %.12g", r->recipe, t,
                      got[i], p[i]);
        }
    }
}

TEST(optimizer_follows_the_rules) {
    for (size_t i = 0; i < COUNT(rules); i++) with_ctx(run_rule, &rules[i]);
}

/* clip_grad_norm_(1): the gradient (-0.5, -3, 2) has norm sqrt(13.25) */
static void run_clip(Ctx *c, void *arg) {
    (void)arg;
    Module *m =
        module_of(c, arena_printf(c->a, text, "optimizer = sgd\n lr = 0.1\n clip_norm = 1\n"));
    CHECK(m && pass_run_all(c, m, "optimizer,canon,cse,dce", NULL));
    if (!m) return;
    Interp *in = start(c, m);
    interp_set_input(in, "lr", 0.1);
    CHECK_MSG(interp_run(in, func_of(m, PHASE_TRAIN)), "%s", interp_error(in));
    const double *got = interp_var(in, var_find(m, "w"));
    double g[3] = {-0.5, -3, 2}, w[3] = {0.5, -2, 3};
    for (int i = 0; i < 3; i++)
        CHECK(fabs(got[i] - (w[i] - 0.1 * g[i] / (sqrt(13.25) + 1e-6))) < 1e-9);
}

TEST(optimizer_clips_by_the_global_norm) {
    with_ctx(run_clip, NULL);
}

/* ---- memory runs out at the n-th block, for every n ------------------------------------------ */
static void run_pipeline(Ctx *c, void *arg) {
    bool *done = arg;
    uint32_t file = ctx_add_file(c, "tests/passes/pipeline_gcn.gir", (Span){0});
    Module *m = file == UINT32_MAX ? NULL : module_parse(c, file);
    StrBuf remarks = sb_new(c->a);
    PassOptions o = {.verify_each = true, .remarks = &remarks};
    *done = m && pass_run_all(c, m, pass_pipeline_named(2, false), &o);
}

TEST(out_of_memory_is_survived) {
    bool done = false;
    for (long n = 0; !done && n < 10000; n++) {
        FewBlocks some;
        Allocator from = few_blocks(&some, n, 0);
        Ctx c;
        if (!ctx_init(&c, &from)) continue;
        bool enough = ctx_run(&c, run_pipeline, &done);
        CHECK(enough == done);
        ctx_free(&c);
        CHECK(some.live == 0);
    }
    CHECK(done);
}

/* ---- driver ------------------------------------------------------------------------------- */
static void run_mistakes(Ctx *c, void *arg) {
    (void)arg;
    Module *m = module_of(c, arena_printf(c->a, text, "optimizer = sgd\n lr = 0.1\n"));
    CHECK(m && !pass_run_all(c, m, "canon,nonsense", NULL));
    CHECK(c->n_errors == 1 && c->diags.v[0].code == DIAG_E0511);
}

TEST(driver_names_an_unknown_pass) {
    with_ctx(run_mistakes, NULL);
}

TEST(driver_lists_every_pass) {
    for (int i = 0; i < pass_count(); i++) CHECK(pass_find(pass_at(i)->name) == pass_at(i));
    CHECK(pass_find("") == NULL);
}

TEST_MAIN()
