/* Lowering: every case of op_cases.h, forward and backward, through plan and kernels,
 * against the graph interpreter.  Both compute in double, so a difference beyond
 * rounding is a wrong kernel. */
#include "ctx_test.h"

#include <math.h>

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/lower/lower.h"
#include "ir/interp.h"
#include "codegen/loop/loop_interp.h"
#include "op_matrix.h"
#include "passes/autodiff.h"

static Interp *interp_of(Ctx *c, const OpCases *cs) {
    Interp *in = op_cases_interp(c, cs);
    interp_set_exact(in, true);
    return in;
}

static void show(Ctx *c, const Plan *p, int phase) {
    StrBuf b = sb_new(c->a);
    const PPhase *ph = p->phases.v[phase];
    func_print(&b, p->m, ph->func);
    for (int i = 0; i < ph->steps.n; i++)
        if (ph->steps.v[i]->kernel) loop_print(&b, p->m, ph->steps.v[i]->kernel);
    if (getenv("LOWER_TEST_SHOW")) fputs(b.s, stderr);
}

/* Norm-wise: what is summed may cancel. */
static bool close_to(const double *got, const OpTensor *want) {
    double scale = 1, worst = 0;
    for (int64_t i = 0; i < want->count; i++) {
        double w = want->v[i], d = fabs(got[i] - w);
        if (isfinite(w) && fabs(w) > scale) scale = fabs(w);
        if (isnan(w) != isnan(got[i])) return false;
        if (!isnan(w) && got[i] != w && !(d <= worst)) worst = d;
    }
    return worst <= 1e-9 * scale;
}

static bool compare_output(LoopRun *r, int phase, Interp *in, const Op *out, const char *name) {
    int64_t n = 0;
    const OpTensor *want = interp_output(in, out->name);
    const double *got = loop_run_output(r, phase, out->name, &n);
    CHECK_MSG(got && want && n == want->count, "%s: output %s", name, out->name);
    bool ok = got && want && n == want->count && close_to(got, want);
    CHECK_MSG(ok, "%s: output %s differs", name, out->name);
    return ok;
}

static void compare_phase(Ctx *c, const Plan *p, int phase, LoopRun *r, Interp *in) {
    const PPhase *ph = p->phases.v[phase];
    bool ok = loop_run_phase(r, phase);
    CHECK_MSG(ok, "%s: %s", ph->name, loop_run_error(r));
    CHECK_MSG(interp_run(in, ph->func), "%s: %s", ph->name, interp_error(in));
    for (const Op *op = ph->func->first; ok && op; op = op->next)
        if (op->kind == OP_OUTPUT) ok = compare_output(r, phase, in, op, ph->name);
    if (!ok) show(c, p, phase);
}

static void print_kernels(StrBuf *b, const Module *m, int n, LKernel *const *k) {
    for (int i = 0; i < n; i++) loop_print(b, m, k[i]);
}

static void round_trip(Ctx *c, const Plan *p) {
    StrBuf one = sb_new(c->a), two = sb_new(c->a);
    sb_puts(&one, "\n");
    sb_puts(&two, "\n");
    print_kernels(&one, p->m, p->kernels.n, p->kernels.v);
    int n = 0;
    LKernel *k = loop_parse(c, p->m, ctx_add_text(c, "kernels", one.s, one.n), &n);
    CHECK(k && n == p->kernels.n);
    for (int i = 0; k && i < n; i++) {
        CHECK(loop_verify(c, p->m, &k[i]));
        loop_print(&two, p->m, &k[i]);
    }
    CHECK(k && !strcmp(one.s, two.s));
}

static void cases(Ctx *c, void *passes) {
    OpCases *cs = op_matrix_cases(c, 0);
    PassCtx pc = {.ctx = c, .a = c->a};
    for (int i = 0; i < cs->cases.n; i++)
        if (cs->cases.v[i].has_loss) pass_autodiff_func(&pc, cs->m, cs->cases.v[i].f);
    cs->m->has |= IR_TYPED | IR_GRAD;
    PassOptions opt = {0};
    CHECK(pass_run_all(c, cs->m, passes, &opt));
    Plan *p = plan_of_module(c, cs->m, NULL, SPMM_OWN, NULL);
    CHECK(p && plan_verify(c, p));
    if (p) round_trip(c, p);
    diag_print_all(c, stderr, false);
    if (!p) return;
    Interp *in = interp_of(c, cs);
    LoopRun *r = loop_run_new(c, p, in);
    for (int i = 0; i < p->phases.n; i++) compare_phase(c, p, i, r, in);
}

/* ---- forms that only fusion by hand reaches ------------------------------------------- */
static double noise(int what, int64_t i) {
    RtKey key = rt_stream_key(5, 0, (uint64_t)what);
    return 2 * (double)rt_uniform(key, (uint32_t)i, 0) - 1;
}

static double *noises(Ctx *c, int what, int64_t n) {
    double *v = NEWN(c->a, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) v[i] = noise(what, i);
    return v;
}

static void give_some_edges(Ctx *c, Interp *in, const Space *s) {
    int64_t n = 60, from = interp_size(in, s->src), to = interp_size(in, s->dst);
    int32_t *src = NEWN(c->a, int32_t, (size_t)n), *dst = NEWN(c->a, int32_t, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        src[i] = (int32_t)((noise(100, i) + 1) / 2 * (double)from);
        dst[i] = (int32_t)((noise(101, i) + 1) / 2 * (double)(to - 1)); /* the last has none */
    }
    interp_set_edges(in, s, from && to ? n : 0, src, dst);
}

static int64_t count_of(Interp *in, const Type *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= interp_size(in, t->dim[i]);
    return n;
}

/* Every node type has `nodes` rows, every open dimension 70 entries. */
static Interp *some_data(Ctx *c, Module *m, int64_t nodes) {
    Interp *in = interp_new(c, m);
    interp_set_exact(in, true);
    interp_set_seed(in, 1, 2);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind == SP_NODE || (s->kind == SP_DIM && s->size->kind == EX_SYM))
            interp_set_size(in, s, s->kind == SP_NODE ? nodes : 70);
    }
    for (int i = 0; i < m->spaces.n; i++)
        if (m->spaces.v[i]->kind == SP_EDGE && m->spaces.v[i]->rel == REL_BASE)
            give_some_edges(c, in, m->spaces.v[i]);
    for (int i = 0; i < m->cols.n; i++)
        interp_set_column(in, m->cols.v[i], noises(c, i, count_of(in, &m->cols.v[i]->type)));
    for (int i = 0; i < m->vars.n; i++)
        interp_set_var(in, m->vars.v[i], noises(c, 50 + i, count_of(in, &m->vars.v[i]->type)));
    return in;
}

typedef struct {
    const char *body; /* of @train */
    const char *plan; /* must be in the printed plan */
    int n_kernels;
} Form;

static const char header[] = "module \"t\" {\n"
                             "  node v\n"
                             "  edge e: v -> v\n"
                             "  dim F\n"
                             "  dim H = 3\n"
                             "  dim O = 5\n"
                             "  dim HO = 15\n"
                             "  dim W = 256\n"
                             "  dim P = 131\n"
                             "  column v.x: f32[v, F]\n"
                             "  column v.h: f32[v, H]\n"
                             "  column v.z: f32[v, H, O]\n"
                             "  column v.w: f32[v, W]\n"
                             "  column v.p: f32[v, P]\n"
                             "  column e.a: f32[e]\n"
                             "  param \"p\": f32[H, O] = const(0)\n"
                             "  param \"q\": f32[H, O] = const(0)\n"
                             "  streams 4\n"
                             "  func @train {\n";

static void compare_vars(Ctx *c, const Plan *p, LoopRun *r, Interp *in, const Func *f) {
    (void)c;
    for (const Op *op = f->first; op; op = op->next) {
        if (op->kind != OP_ASSIGN) continue;
        const double *want = interp_var(in, op->var), *got = loop_run_var(r, op->var);
        int64_t n = count_of(in, &op->var->type);
        for (int64_t i = 0; i < n; i++)
            CHECK_MSG(fabs(got[i] - want[i]) <= 1e-12, "%s: variable %s[%d]", p->phases.v[0]->name,
                      op->var->path, (int)i);
    }
}

static void run_form(Ctx *c, const Form *f, int64_t nodes, bool look) {
    const char *text = arena_printf(c->a, "%s%s  }\n}\n", header, f->body);
    Module *m = module_parse(c, ctx_add_text(c, "form", text, strlen(text)));
    Plan *p = m ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
    bool ok = p && plan_verify(c, p);
    if (!ok) diag_print_all(c, stderr, false);
    CHECK_MSG(ok, "%s", f->body);
    if (!ok) return;
    round_trip(c, p);
    Interp *in = some_data(c, m, nodes);
    LoopRun *r = loop_run_new(c, p, in);
    bool run = loop_run_phase(r, 0);
    CHECK_MSG(run, "%s: %s", f->body, loop_run_error(r));
    CHECK_MSG(interp_run(in, p->phases.v[0]->func), "%s", interp_error(in));
    for (const Op *op = p->phases.v[0]->func->first; run && op; op = op->next)
        if (op->kind == OP_OUTPUT) run = compare_output(r, 0, in, op, f->body);
    compare_vars(c, p, r, in, p->phases.v[0]->func);
    if (!run || getenv("LOWER_TEST_SHOW")) show(c, p, 0);
    StrBuf b = sb_new(c->a);
    plan_print(&b, p);
    if (!look) return;
    CHECK_MSG(p->kernels.n == f->n_kernels, "%d kernels: %s", p->kernels.n, b.s);
    CHECK_MSG(!f->plan || strstr(b.s, f->plan), "no '%s' in %s", f->plan, b.s);
}

static void form(Ctx *c, void *arg) {
    run_form(c, arg, 7, true);
    run_form(c, arg, 2100, false);
    run_form(c, arg, 0, false);
}

static const Form forms[] = {
    /* widths of a segment's inner space: unknown, equal tiles, neither */
    {"    %x = data v.x : f32[v, F]\n"
     "    %g = fused gather src(e) %x : f32[e, F]\n"
     "    %y = segment max dst(e) %g : f32[v, F]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    {"    %x = data v.w : f32[v, W]\n"
     "    %g = fused gather dst(e) %x : f32[e, W]\n"
     "    %y = segment sum src(e) %g : f32[v, W]\n"
     "    output \"y\" %y\n",
     "balanced src(e)", 1},
    {"    %x = data v.p : f32[v, P]\n"
     "    %g = fused gather src(e) %x : f32[e, P]\n"
     "    %y = segment min dst(e) %g : f32[v, P]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    /* a reduction computed inside its user's kernel: tiles of each kind */
    {"    %x = data v.x : f32[v, F]\n"
     "    %g = fused gather src(e) %x : f32[e, F]\n"
     "    %s = fused segment sum dst(e) %g : f32[v, F]\n"
     "    %y = tanh %s : f32[v, F]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    {"    %x = data v.w : f32[v, W]\n"
     "    %g = fused gather src(e) %x : f32[e, W]\n"
     "    %s = fused segment max dst(e) %g : f32[v, W]\n"
     "    %y = add %s, %x : f32[v, W]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    /* edge softmax and its sum in one kernel, with heads flattened */
    {"    %h = data v.h : f32[v, H]\n"
     "    %z = data v.z : f32[v, H, O]\n"
     "    %a = data e.a : f32[e]\n"
     "    %hs = fused gather src(e) %h : f32[e, H]\n"
     "    %s = fused mul %hs, %a : f32[e, H]\n"
     "    %mx = fused segment max dst(e) %s : f32[v, H]\n"
     "    %me = fused gather dst(e) %mx : f32[e, H]\n"
     "    %d = fused sub %s, %me : f32[e, H]\n"
     "    %ex = fused exp %d : f32[e, H]\n"
     "    %su = fused segment sum dst(e) %ex : f32[v, H]\n"
     "    %se = fused gather dst(e) %su : f32[e, H]\n"
     "    %al = fused div %ex, %se : f32[e, H]\n"
     "    %zs = fused gather src(e) %z : f32[e, H, O]\n"
     "    %w = fused mul %zs, %al : f32[e, H, O]\n"
     "    %y = fused segment sum dst(e) %w : f32[v, H, O]\n"
     "    %f = view %y : f32[v, HO]\n"
     "    output \"y\" %f\n",
     NULL, 1},
    /* softmax per channel: reductions that are tiles of each other */
    {"    %x = data v.w : f32[v, W]\n"
     "    %s = fused gather src(e) %x : f32[e, W]\n"
     "    %mx = fused segment max dst(e) %s : f32[v, W]\n"
     "    %me = fused gather dst(e) %mx : f32[e, W]\n"
     "    %d = fused sub %s, %me : f32[e, W]\n"
     "    %ex = fused exp %d : f32[e, W]\n"
     "    %y = segment sum dst(e) %ex : f32[v, W]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    /* row softmax; a view of a stored value costs nothing; flattened and split again */
    {"    %x = data v.x : f32[v, F]\n"
     "    %mx = fused reduce max [F] %x : f32[v]\n"
     "    %d = fused sub %x, %mx : f32[v, F]\n"
     "    %ex = fused exp %d : f32[v, F]\n"
     "    %su = fused reduce sum [F] %ex : f32[v]\n"
     "    %y = div %ex, %su : f32[v, F]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %f = view %z : f32[v, HO]\n"
     "    %p = var \"p\" : f32[H, O]\n"
     "    %pf = view %p : f32[HO]\n"
     "    %s = fused mul %f, %pf : f32[v, HO]\n"
     "    %b = fused view %s : f32[v, H, O]\n"
     "    %t = tanh %b : f32[v, H, O]\n"
     "    %r = reduce sum [H] %t : f32[v, O]\n"
     "    output \"t\" %t\n"
     "    output \"y\" %r\n",
     NULL, 1},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %t = fused tanh %z : f32[v, H, O]\n"
     "    %f = fused view %t : f32[v, HO]\n"
     "    %u = fused random 1 : f32[v, HO]\n"
     "    %y = mul %f, %u : f32[v, HO]\n"
     "    output \"y\" %y\n",
     NULL, 1},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %g = fused gather src(e) %z : f32[e, H, O]\n"
     "    %t = copy %g : f32[O, e, H]\n"
     "    %l = copy %g : f32[H, O, e]\n"
     "    %y = segment sum dst(e) %t : f32[O, v, H]\n"
     "    %m = segment max src(e) %l : f32[H, O, v]\n"
     "    output \"y\" %y\n"
     "    output \"m\" %m\n",
     NULL, 4},
    /* long reductions: to a scalar, and to a small matrix; max of nothing is 0 */
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %e = fused exp %z : f32[v, H, O]\n"
     "    %r = reduce sum [v] %e : f32[H, O]\n"
     "    %m = reduce max [v, H, O] %z : f32\n"
     "    %n = reduce min [v, O] %z : f32[H]\n"
     "    output \"r\" %r\n"
     "    output \"m\" %m\n"
     "    output \"n\" %n\n",
     "_part_x3(", 2},
    /* matrix products: plain, batched, per head by loops, with a copy of an operand */
    {"    %x = data v.w : f32[v, W]\n"
     "    %p = data v.p : f32[v, P]\n"
     "    %y = contract %x, %p : f32[W, P]\n"
     "    output \"y\" %y\n",
     "long_k", 0},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %p = var \"p\" : f32[H, O]\n"
     "    %s = contract %z, %p : f32[v, H]\n"
     "    %g = contract %z, %s : f32[H, O]\n"
     "    output \"s\" %s\n"
     "    output \"g\" %g\n",
     NULL, 3},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %x = data v.x : f32[v, F]\n"
     "    %y = contract %z, %x : f32[H, O, F]\n"
     "    %b = contract %y, %z : f32[v, F]\n"
     "    %c = contract %y, %z : f32[H, v, F]\n"
     "    output \"y\" %y\n"
     "    output \"b\" %b\n"
     "    output \"c\" %c\n",
     "batch=3", 0},
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %x = data v.x : f32[v, F]\n"
     "    %zt = copy %z : f32[O, v, H]\n"
     "    %y = contract %zt, %x : f32[O, H, F]\n"
     "    output \"y\" %y\n",
     NULL, 2},
    /* variables: in place where nobody reads the old value; else a copy at the end */
    {"    %p = var \"p\" : f32[H, O]\n"
     "    %q = var \"q\" : f32[H, O]\n"
     "    %np = sub %p, %q : f32[H, O]\n"
     "    %nq = mul %q, %np : f32[H, O]\n"
     "    assign \"p\" %np\n"
     "    assign \"q\" %nq\n",
     "(var_p, var_q)", 1},
    {"    %p = var \"p\" : f32[H, O]\n"
     "    %q = var \"q\" : f32[H, O]\n"
     "    assign \"p\" %q\n"
     "    assign \"q\" %p\n"
     "    output \"old\" %p\n",
     "copy(train_p_0_old, var_q)", 0},
    {"    %p = var \"p\" : f32[H, O]\n"
     "    %s = reduce sum [O] %p : f32[H]\n"
     "    %d = sub %p, %s : f32[H, O]\n"
     "    assign \"p\" %d\n"
     "    output \"old\" %p\n"
     "    output \"new\" %d\n",
     "copy(train_new, var_p)", 2},
    {"    %p = var \"p\" : f32[H, O]\n"
     "    %s = fused reduce sum [O] %p : f32[H]\n"
     "    %t = tanh %p : f32[H, O]\n"
     "    %r = reduce max [O] %p : f32[H]\n"
     "    assign \"p\" %t\n"
     "    output \"r\" %r\n"
     "    output \"t\" %t\n",
     "copy(train_t, var_p)", 2},
    /* one kernel for roots over the same rows, also for one that reads all of another's row */
    {"    %x = data v.x : f32[v, F]\n"
     "    %a = exp %x : f32[v, F]\n"
     "    %b = neg %a : f32[v, F]\n"
     "    %g = fused reduce sum [F] %a : f32[v]\n"
     "    %d = sub %b, %g : f32[v, F]\n"
     "    output \"a\" %a\n"
     "    output \"b\" %b\n"
     "    output \"d\" %d\n"
     "    output \"again\" %d\n",
     "copy(train_d, train_again)", 1},
    /* joins, cuts, ranks, largest */
    {"    %z = data v.z : f32[v, H, O]\n"
     "    %x = data v.x : f32[v, F]\n"
     "    %m = argmax F %x : i32[v]\n"
     "    %i = iota F : i32[F]\n"
     "    %k = lt %i, %m : i1[F, v]\n"
     "    %u = random 2 : f32[e, F]\n"
     "    %s = segment sum dst(e) %u : f32[v, F]\n"
     "    output \"m\" %m\n"
     "    output \"k\" %k\n"
     "    output \"s\" %s\n",
     NULL, 3},
};

TEST(every_case_stored) {
    with_ctx(cases, "lower-csr");
}

TEST(every_case_fused) {
    with_ctx(cases, "lower-csr,fuse");
}

TEST(forms_made_by_hand) {
    for (size_t i = 0; i < COUNT(forms); i++) with_ctx(form, &forms[i]);
}

TEST_MAIN()
