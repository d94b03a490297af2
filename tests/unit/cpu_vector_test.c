/* Vector loops of the CPU target: sparse products of any width, reductions across lanes, conditions
 * and locals that differ by lane. */
#include "cpu_rig.h"

TEST(sparse_product_of_any_width) {
    static const int widths[] = {1, 7, 8, 16, 33, 64, 130};
    Rig r;
    rig_init(&r);
    make_graph();
    for (size_t i = 0; i < COUNT(widths); i++) {
        spmm_kernel(&r, arena_printf(r.c.a, "p%d", widths[i]), widths[i], false);
        spmm_kernel(&r, arena_printf(r.c.a, "q%d", widths[i]), widths[i], true);
    }
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(widths) * 2; i++) {
        int f = widths[i / 2];
        static _Alignas(64) float z[ROWS * 130 + 16], out[ROWS * 130 + 16];
        for (int j = 0; j < ROWS * f; j++) z[j] = rnd(), out[j] = 99;
        out[ROWS * f] = 77; /* must survive */
        int64_t n[2] = {ROWS, EDGES};
        void *arg[] = {row_ptr, src, perm, weight, z, out};
        Kernel *k = rig_kernel(&r, arena_printf(r.c.a, "%c%d", i % 2 ? 'q' : 'p', f));
        k(arg, n, 0, 20);
        k(arg, n, 20, ROWS);
        int bad = 0;
        for (int v = 0; v < ROWS; v++)
            for (int j = 0; j < f; j++) {
                float want = 0;
                for (int64_t q = row_ptr[v]; q < row_ptr[v + 1]; q++) {
                    int64_t e = i % 2 ? perm[q] : q;
                    want = fmaf(weight[e], z[src[e] * f + j], want);
                }
                bad += fabsf(want - out[v * f + j]) > 1e-5f;
            }
        CHECK_MSG(bad == 0, "width %d: %d wrong", f, bad);
        CHECK(out[ROWS * f] == 77);
    }
    rig_free(&r);
}

/* Row softmax of any width: max, sum and scaling are three vector loops over scalars kept per lane.
 */
static void softmax_kernel(Rig *r, const char *name, const Expr *f) {
    kernel(r, name);
    LBuf *x = buf(r, LB_VALUE, DT_F32, false, 2, size(r, "N"), f),
         *y = buf(r, LB_VALUE, DT_F32, true, 2, size(r, "N"), f);
    LBuf *m = buf(r, LB_LOCAL, DT_F32, true, 0), *s = buf(r, LB_LOCAL, DT_F32, true, 0);
    LStmt *v = loop(r, size(r, "N"));
    v->sched.parallel = true;
    local(r, m);
    local(r, s);
    store(r, constant(r, DT_F32, -INFINITY), m);
    store(r, constant(r, DT_F32, 0), s);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    acc(r, RED_MAX, load(r, x, v->var, l->var), m);
    end(r, l);
    LReg *top = load(r, m);
    l = loop(r, f);
    l->sched.vector = true;
    LReg *e = op1(r, OP_EXP, DT_F32, op2(r, OP_SUB, DT_F32, load(r, x, v->var, l->var), top));
    store(r, e, y, v->var, l->var);
    acc(r, RED_SUM, e, s);
    end(r, l);
    LReg *total = load(r, s);
    l = loop(r, f);
    l->sched.vector = true;
    store(r, op2(r, OP_DIV, DT_F32, load(r, y, v->var, l->var), total), y, v->var, l->var);
    end(r, l);
    end(r, v);
}

TEST(reductions_across_lanes) {
    static const int widths[] = {0, 1, 2, 7, 16, 33, 500};
    Rig r;
    rig_init(&r);
    (void)size(&r, "N");
    for (size_t i = 0; i < COUNT(widths); i++) {
        softmax_kernel(&r, arena_printf(r.c.a, "c%d", widths[i]), num(&r, widths[i]));
    }
    softmax_kernel(&r, "any", size(&r, "F"));
    CHECK(rig_build(&r));
    enum { N = 5 };
    for (size_t i = 0; r.lib && i < COUNT(widths) * 2; i++) {
        int f = widths[i / 2];
        static _Alignas(64) float x[N * 500], y[N * 500];
        for (int j = 0; j < N * f; j++) x[j] = rnd() * 5;
        int64_t n[2] = {N, f};
        rig_kernel(&r, i % 2 ? "any" : arena_printf(r.c.a, "c%d", f))((void *[]){x, y}, n, 0, N);
        for (int v = 0; v < N && f > 0; v++) {
            double sum = 0;
            for (int j = 0; j < f; j++) sum += exp((double)x[v * f + j]);
            for (int j = 0; j < f; j++)
                CHECK(fabs(y[v * f + j] - exp((double)x[v * f + j]) / sum) < 1e-6);
        }
    }
    rig_free(&r);
}

/* Masks: where the condition differs by lane, other lanes neither load nor store. */
TEST(conditions_that_differ_by_lane) {
    Rig r;
    rig_init(&r);
    kernel(&r, "guard");
    const Expr *n = size(&r, "N"), *k = size(&r, "K");
    LBuf *cat = buf(&r, LB_MAP_IDX, DT_I32, false, 1, n),
         *w = buf(&r, LB_VALUE, DT_F32, false, 1, k);
    LBuf *y = buf(&r, LB_VALUE, DT_F32, true, 1, n), *c = buf(&r, LB_VALUE, DT_I1, true, 1, n);
    LStmt *l = loop(&r, n);
    l->sched.parallel = l->sched.vector = true;
    LReg *at = load(&r, cat, l->var);
    LReg *zero = let(&r, DT_I64, L_FN_CONST, 0), *ok = let(&r, DT_I1, L_FN_IGE, 2, at, zero);
    store(&r, ok, c, l->var);
    LStmt *i = when(&r, ok);
    store(&r, load(&r, w, at), y, l->var);
    end(&r, i);
    end(&r, l);
    CHECK(rig_build(&r));
    enum { N = 53, K = 4 };
    static _Alignas(64) int32_t idx[N];
    static _Alignas(64) float wv[K] = {1, 2, 3, 4}, yv[N];
    static _Alignas(64) uint8_t cv[N];
    for (int j = 0; j < N; j++) idx[j] = j % 3 ? j % K : -1000000, yv[j] = -5;
    int64_t sizes[2] = {N, K};
    if (r.lib) rig_kernel(&r, "guard")((void *[]){idx, wv, yv, cv}, sizes, 1, N - 1);
    for (int j = 0; j < N; j++) {
        bool in = j >= 1 && j < N - 1;
        CHECK(yv[j] == (in && idx[j] >= 0 ? wv[idx[j]] : -5));
        CHECK(cv[j] == (in && idx[j] >= 0));
    }
    rig_free(&r);
}

/* A loop inside a vector loop, with a local array per lane:  y[f] = sum_k x[k, f]^2 */
TEST(locals_of_a_vector_loop_are_private_to_lanes) {
    Rig r;
    rig_init(&r);
    kernel(&r, "columns");
    const Expr *k = size(&r, "K"), *f = size(&r, "F");
    LBuf *x = buf(&r, LB_VALUE, DT_F32, false, 2, k, f), *y = buf(&r, LB_VALUE, DT_F32, true, 1, f);
    LBuf *s = buf(&r, LB_LOCAL, DT_F32, true, 0);
    LStmt *l = loop(&r, f);
    l->sched.parallel = l->sched.vector = true;
    local(&r, s);
    store(&r, constant(&r, DT_F32, 0), s);
    LStmt *i = loop(&r, k);
    LReg *v = load(&r, x, i->var, l->var);
    acc(&r, RED_SUM, op2(&r, OP_MUL, DT_F32, v, v), s);
    end(&r, i);
    store(&r, load(&r, s), y, l->var);
    end(&r, l);
    CHECK(rig_build(&r));
    enum { K = 9, F = 35 };
    static _Alignas(64) float xv[K * F], yv[F];
    for (int j = 0; j < K * F; j++) xv[j] = rnd();
    int64_t n[2] = {K, F};
    if (r.lib) rig_kernel(&r, "columns")((void *[]){xv, yv}, n, 0, F);
    for (int j = 0; j < F; j++) {
        float want = 0;
        for (int q = 0; q < K; q++) want = fmaf(xv[q * F + j], xv[q * F + j], want);
        CHECK(fabsf(want - yv[j]) < 1e-5f);
    }
    rig_free(&r);
}

TEST_MAIN()
