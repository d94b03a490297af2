/* Rows of sums in registers over all entries, heads in one traversal. */
#include "cpu_rig.h"

/* A sparse product with the width known at run time (or too wide for registers), into the output
 * itself or a local row, with weights that cost something: exp(w) times a random number of the
 * entry. */
static void tiled_kernel(Rig *r, const char *name, const Expr *f, bool in_local) {
    kernel(r, name);
    const Expr *n = size(r, "N"), *m = size(r, "E");
    LBuf *ptr = buf(r, LB_MAP_PTR, DT_I64, false, 1, n),
         *idx = buf(r, LB_MAP_IDX, DT_I32, false, 1, m);
    LBuf *p = buf(r, LB_MAP_PERM, DT_I32, false, 1, m), *w = buf(r, LB_VALUE, DT_F32, false, 1, m);
    LBuf *z = buf(r, LB_VALUE, DT_F32, false, 2, n, f),
         *out = buf(r, LB_VALUE, DT_F32, true, 2, n, f);
    LBuf *key = buf(r, LB_KEY, DT_I32, false, 1, num(r, 2));
    LReg *k0 = load(r, key, constant(r, DT_I64, 0)), *k1 = load(r, key, constant(r, DT_I64, 1));
    LBuf *a = in_local ? buf(r, LB_LOCAL, DT_F32, true, 1, f) : NULL;
    LStmt *v = loop(r, n);
    v->sched.parallel = true;
    if (in_local) local(r, a);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    if (in_local)
        store(r, constant(r, DT_F32, 0.5), a, l->var);
    else
        store(r, constant(r, DT_F32, 0.5), out, v->var, l->var);
    end(r, l);
    LStmt *e = segment(r, ptr, v->var);
    LReg *at = load(r, p, e->var), *s = load(r, idx, at);
    LReg *we = op1(r, OP_EXP, DT_F32, load(r, w, at));
    we = op2(r, OP_MUL, DT_F32, we, let(r, DT_F32, L_FN_RANDOM, 4, k0, k1, at, v->var));
    l = loop(r, f);
    l->sched.vector = true;
    LReg *term = op2(r, OP_MUL, DT_F32, we, load(r, z, s, l->var));
    if (in_local)
        acc(r, RED_SUM, term, a, l->var);
    else
        acc(r, RED_SUM, term, out, v->var, l->var);
    end(r, l);
    end(r, e);
    l = loop(r, f);
    l->sched.vector = true;
    LReg *sum = in_local ? load(r, a, l->var) : load(r, out, v->var, l->var);
    store(r, op2(r, OP_MAX, DT_F32, sum, constant(r, DT_F32, 0)), out, v->var, l->var);
    end(r, l);
    end(r, v);
}

static void check_tiled(Rig *r, const char *name, int f) {
    static _Alignas(64) float z[ROWS * 300 + 16], out[ROWS * 300 + 16];
    static _Alignas(64) uint32_t key[2] = {123, 456};
    for (int j = 0; j < ROWS * f; j++) z[j] = rnd(), out[j] = 99;
    out[ROWS * f] = 77;
    int64_t n[3] = {ROWS, EDGES, f};
    Kernel *k = rig_kernel(r, name);
    k((void *[]){row_ptr, src, perm, weight, z, out, key}, n, 0, 11);
    k((void *[]){row_ptr, src, perm, weight, z, out, key}, n, 11, ROWS);
    int bad = 0;
    for (int v = 0; v < ROWS; v++)
        for (int j = 0; j < f; j++) {
            double want = 0.5;
            for (int64_t q = row_ptr[v]; q < row_ptr[v + 1]; q++) {
                int e = perm[q];
                float u = rt_uniform((RtKey){key[0], key[1]}, (uint32_t)e, (uint32_t)v);
                want += exp((double)weight[e]) * (double)u * (double)z[src[e] * f + j];
            }
            bad += fabs(fmax(want, 0) - (double)out[v * f + j]) > 2e-5;
        }
    CHECK_MSG(bad == 0, "%s, width %d: %d wrong", name, f, bad);
    CHECK(out[ROWS * f] == 77);
}

TEST(rows_in_tiles_and_entries_in_strips) {
    static const int widths[] = {0, 1, 7, 16, 33, 64, 100, 200};
    Rig r;
    rig_init(&r);
    make_graph();
    (void)size(&r, "N"), (void)size(&r, "E");
    tiled_kernel(&r, "any", size(&r, "F"), false);
    tiled_kernel(&r, "wide", num(&r, 300), true);
    tiled_kernel(&r, "even", num(&r, 256), true);
    tiled_kernel(&r, "narrow", num(&r, 20), true);
    static const int short_rows[] = {1, 7, 16, 20, 40};
    for (size_t i = 0; i < COUNT(short_rows); i++)
        tiled_kernel(&r, arena_printf(r.c.a, "short%d", short_rows[i]), num(&r, short_rows[i]),
                     false);
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(widths); i++) check_tiled(&r, "any", widths[i]);
    if (r.lib)
        check_tiled(&r, "wide", 300), check_tiled(&r, "even", 256), check_tiled(&r, "narrow", 20);
    for (size_t i = 0; r.lib && i < COUNT(short_rows); i++)
        check_tiled(&r, arena_printf(r.c.a, "short%d", short_rows[i]), short_rows[i]);
    rig_free(&r);
}

/* Heads: out[v, h, f] = sum of a[e, h] z[src(e), h, f]; the sums of a head in a local row, or in
 * place. */
static void heads_kernel(Rig *r, const char *name, int64_t heads, int64_t width, bool in_local) {
    kernel(r, name);
    const Expr *n = size(r, "N"), *m = size(r, "E"), *nh = num(r, heads), *f = num(r, width);
    LBuf *ptr = buf(r, LB_MAP_PTR, DT_I64, false, 1, n),
         *idx = buf(r, LB_MAP_IDX, DT_I32, false, 1, m);
    LBuf *w = buf(r, LB_VALUE, DT_F32, false, 2, m, nh),
         *z = buf(r, LB_VALUE, DT_F32, false, 3, n, nh, f);
    LBuf *out = buf(r, LB_VALUE, DT_F32, true, 3, n, nh, f),
         *a = in_local ? buf(r, LB_LOCAL, DT_F32, true, 1, f) : NULL;
    LStmt *v = loop(r, n);
    v->sched.parallel = true;
    LStmt *h = loop(r, nh);
    if (in_local) local(r, a);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    if (in_local)
        store(r, constant(r, DT_F32, 0), a, l->var);
    else
        store(r, constant(r, DT_F32, 0), out, v->var, h->var, l->var);
    end(r, l);
    LStmt *e = segment(r, ptr, v->var);
    LReg *s = load(r, idx, e->var), *we = load(r, w, e->var, h->var);
    l = loop(r, f);
    l->sched.vector = true;
    LReg *term = op2(r, OP_MUL, DT_F32, we, load(r, z, s, h->var, l->var));
    if (in_local)
        acc(r, RED_SUM, term, a, l->var);
    else
        acc(r, RED_SUM, term, out, v->var, h->var, l->var);
    end(r, l);
    end(r, e);
    if (in_local) {
        l = loop(r, f);
        l->sched.vector = true;
        store(r, load(r, a, l->var), out, v->var, h->var, l->var);
        end(r, l);
    }
    end(r, h);
    end(r, v);
}

TEST(heads_in_one_traversal) {
    static const int shapes[][2] = {{8, 8}, {2, 7}, {3, 16}, {4, 33}, {8, 1}, {2, 200}, {20, 4}};
    Rig r;
    rig_init(&r);
    make_graph();
    for (size_t i = 0; i < COUNT(shapes) * 2; i++)
        heads_kernel(&r, arena_printf(r.c.a, "h%d", (int)i), shapes[i / 2][0], shapes[i / 2][1],
                     i % 2);
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(shapes) * 2; i++) {
        int nh = shapes[i / 2][0], f = shapes[i / 2][1], row = nh * f, bad = 0;
        static _Alignas(64) float w[EDGES * 20], z[ROWS * 400 + 16], out[ROWS * 400 + 16];
        for (int j = 0; j < EDGES * nh; j++) w[j] = rnd();
        for (int j = 0; j < ROWS * row; j++) z[j] = rnd(), out[j] = 99;
        out[ROWS * row] = 77;
        int64_t n[2] = {ROWS, EDGES};
        rig_kernel(&r, arena_printf(r.c.a, "h%d", (int)i))((void *[]){row_ptr, src, w, z, out}, n,
                                                           0, ROWS);
        for (int v = 0; v < ROWS; v++)
            for (int j = 0; j < row; j++) {
                double want = 0;
                for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++)
                    want += (double)w[e * nh + j / f] * (double)z[src[e] * row + j];
                bad += fabs(want - (double)out[v * row + j]) > 2e-5;
            }
        CHECK_MSG(bad == 0, "%d heads of %d: %d wrong", nh, f, bad);
        CHECK(out[ROWS * row] == 77);
    }
    rig_free(&r);
}

TEST_MAIN()
