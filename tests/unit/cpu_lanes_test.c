/* Scalars of heads, and narrow rows, in lanes. */
#include "cpu_rig.h"

/* The gradient of attention scores: out[v, h] = sum of exp(w[e, h]) (z[src(e), h, :] . g[v, h, :])
 * / 3, the scalars of all heads side by side where the loop over heads is unrolled. */
static void scores_kernel(Rig *r, const char *name, int64_t heads, int64_t width, bool unroll) {
    kernel(r, name);
    const Expr *n = size(r, "N"), *m = size(r, "E"), *nh = num(r, heads), *f = num(r, width);
    LBuf *ptr = buf(r, LB_MAP_PTR, DT_I64, false, 1, n),
         *idx = buf(r, LB_MAP_IDX, DT_I32, false, 1, m);
    LBuf *w = buf(r, LB_VALUE, DT_F32, false, 2, m, nh),
         *z = buf(r, LB_VALUE, DT_F32, false, 3, n, nh, f),
         *g = buf(r, LB_VALUE, DT_F32, false, 3, n, nh, f);
    LBuf *out = buf(r, LB_VALUE, DT_F32, true, 2, n, nh), *dot = buf(r, LB_LOCAL, DT_F32, true, 0),
         *sum = buf(r, LB_LOCAL, DT_F32, true, 1, nh);
    LStmt *v = loop(r, n);
    v->sched.parallel = true;
    local(r, sum);
    LReg *zero = constant(r, DT_F32, 0), *three = constant(r, DT_F32, 3);
    LStmt *h = loop(r, nh);
    h->sched.vector = true;
    store(r, zero, sum, h->var);
    end(r, h);
    LStmt *e = segment(r, ptr, v->var);
    LReg *s = load(r, idx, e->var);
    h = loop(r, nh);
    h->sched.unroll = unroll;
    LReg *y = op1(r, OP_EXP, DT_F32, load(r, w, e->var, h->var));
    local(r, dot);
    store(r, zero, dot);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    acc(r, RED_SUM,
        op2(r, OP_MUL, DT_F32, load(r, z, s, h->var, l->var), load(r, g, v->var, h->var, l->var)),
        dot);
    end(r, l);
    LReg *d = op2(r, OP_DIV, DT_F32, load(r, dot), three);
    acc(r, RED_SUM, op2(r, OP_MUL, DT_F32, y, d), sum, h->var);
    end(r, h);
    end(r, e);
    h = loop(r, nh);
    h->sched.vector = true;
    store(r, load(r, sum, h->var), out, v->var, h->var);
    end(r, h);
    end(r, v);
}

TEST(scalars_of_heads_in_lanes) {
    static const int shapes[][2] = {{8, 8}, {2, 7}, {3, 16}, {4, 33}, {8, 1}, {16, 5}, {7, 2}};
    Rig r;
    rig_init(&r);
    make_graph();
    for (size_t i = 0; i < COUNT(shapes) * 2; i++)
        scores_kernel(&r, arena_printf(r.c.a, "s%d", (int)i), shapes[i / 2][0], shapes[i / 2][1],
                      i % 2);
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(shapes); i++) {
        int nh = shapes[i][0], f = shapes[i][1], row = nh * f, bad = 0;
        static _Alignas(64) float w[EDGES * 16], z[ROWS * 132], g[ROWS * 132];
        static _Alignas(64) float out[2][ROWS * 16 + 16];
        for (int j = 0; j < EDGES * nh; j++) w[j] = rnd();
        for (int j = 0; j < ROWS * row; j++) z[j] = rnd(), g[j] = rnd();
        int64_t n[2] = {ROWS, EDGES};
        for (int k = 0; k < 2; k++) {
            out[k][ROWS * nh] = 77;
            rig_kernel(&r, arena_printf(r.c.a, "s%d", (int)i * 2 + k))(
                (void *[]){row_ptr, src, w, z, g, out[k]}, n, 0, ROWS);
            CHECK(out[k][ROWS * nh] == 77);
        }
        for (int v = 0; v < ROWS; v++)
            for (int h = 0; h < nh; h++) {
                double want = 0;
                for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++)
                    for (int j = 0; j < f; j++)
                        want += exp((double)w[e * nh + h]) * (double)z[src[e] * row + h * f + j] *
                                (double)g[v * row + h * f + j] / 3;
                bad += fabs(want - (double)out[0][v * nh + h]) > 1e-4;
                bad += out[0][v * nh + h] != out[1][v * nh + h];
            }
        CHECK_MSG(bad == 0, "%d heads of %d: %d wrong", nh, f, bad);
    }
    rig_free(&r);
}

/* A layer and the softmax of its result: y[v, :] = softmax(sum over entries of w z[src, :] / top),
 * top = max(w, 1/2), then o[v] = sum over entries of w s, s = sum of exp(..).  Rows of up to 16 go
 * in lanes, with loops over entries in between.  Of constant width, the sums are a local row. */
static void classes_kernel(Rig *r, const char *name, const Expr *f, bool in_local) {
    kernel(r, name);
    const Expr *n = size(r, "N"), *m = size(r, "E");
    LBuf *ptr = buf(r, LB_MAP_PTR, DT_I64, false, 1, n),
         *idx = buf(r, LB_MAP_IDX, DT_I32, false, 1, m);
    LBuf *w = buf(r, LB_VALUE, DT_F32, false, 1, m), *z = buf(r, LB_VALUE, DT_F32, false, 2, n, f);
    LBuf *y = buf(r, LB_VALUE, DT_F32, true, 2, n, f), *o = buf(r, LB_VALUE, DT_F32, true, 1, n);
    LBuf *top = buf(r, LB_LOCAL, DT_F32, true, 1, num(r, 1)),
         *s = buf(r, LB_LOCAL, DT_F32, true, 0), *back = buf(r, LB_LOCAL, DT_F32, true, 0);
    LReg *zero = constant(r, DT_F32, 0), *first = let(r, DT_I64, L_FN_CONST, 0);
    LStmt *v = loop(r, n);
    v->sched.parallel = true;
    local(r, top);
    store(r, constant(r, DT_F32, 0.5), top, first);
    LStmt *e = segment(r, ptr, v->var);
    acc(r, RED_MAX, load(r, w, e->var), top, first);
    end(r, e);
    LBuf *row = in_local ? buf(r, LB_LOCAL, DT_F32, true, 1, f) : NULL;
    if (in_local) local(r, row);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    if (in_local)
        store(r, zero, row, l->var);
    else
        store(r, zero, y, v->var, l->var);
    end(r, l);
    e = segment(r, ptr, v->var);
    LReg *at = load(r, idx, e->var), *a = load(r, w, e->var);
    if (!in_local) a = op2(r, OP_DIV, DT_F32, a, load(r, top, first));
    l = loop(r, f);
    l->sched.vector = true;
    LReg *term = op2(r, OP_MUL, DT_F32, a, load(r, z, at, l->var));
    if (in_local)
        acc(r, RED_SUM, term, row, l->var);
    else
        acc(r, RED_SUM, term, y, v->var, l->var);
    end(r, l);
    end(r, e);
    if (in_local) {
        LReg *all = load(r, top, first);
        l = loop(r, f);
        l->sched.vector = true;
        store(r, op2(r, OP_DIV, DT_F32, load(r, row, l->var), all), y, v->var, l->var);
        end(r, l);
    }
    local(r, s);
    store(r, zero, s);
    l = loop(r, f);
    l->sched.vector = true;
    acc(r, RED_SUM, op1(r, OP_EXP, DT_F32, load(r, y, v->var, l->var)), s);
    end(r, l);
    LReg *sum = load(r, s);
    l = loop(r, f);
    l->sched.vector = true;
    store(r, op2(r, OP_DIV, DT_F32, op1(r, OP_EXP, DT_F32, load(r, y, v->var, l->var)), sum), y,
          v->var, l->var);
    end(r, l);
    local(r, back);
    store(r, zero, back);
    e = segment(r, ptr, v->var);
    acc(r, RED_SUM, op2(r, OP_MUL, DT_F32, load(r, w, e->var), sum), back);
    end(r, e);
    store(r, load(r, back), o, v->var);
    end(r, v);
}

static double class_score(const float *z, int f, int v, int c) {
    double top = 0.5, h = 0;
    for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) top = fmax(top, (double)weight[e]);
    for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++)
        h += (double)weight[e] * (double)z[src[e] * f + c] / top;
    return h;
}

static void check_classes(Kernel *k, int f) {
    int bad = 0;
    static _Alignas(64) float z[ROWS * 40], y[2][ROWS * 40], o[2][ROWS];
    for (int j = 0; j < ROWS * f; j++) z[j] = rnd();
    int64_t n[3] = {ROWS, EDGES, f};
    k((void *[]){row_ptr, src, weight, z, y[0], o[0]}, n, 0, ROWS);
    k((void *[]){row_ptr, src, weight, z, y[1], o[1]}, n, 0, 5);
    k((void *[]){row_ptr, src, weight, z, y[1], o[1]}, n, 5, ROWS);
    CHECK(!memcmp(y[0], y[1], sizeof(float) * (size_t)(ROWS * f)) &&
          !memcmp(o[0], o[1], sizeof o[0]));
    for (int v = 0; v < ROWS; v++) {
        double sum = 0, all = 0;
        for (int c = 0; c < f; c++) sum += exp(class_score(z, f, v, c));
        for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) all += (double)weight[e] * sum;
        bad += fabs(all - (double)o[0][v]) > 1e-4 * (1 + sum);
        for (int c = 0; c < f; c++)
            bad += fabs(exp(class_score(z, f, v, c)) / sum - (double)y[0][v * f + c]) > 1e-5;
    }
    CHECK_MSG(bad == 0, "%d classes: %d wrong", f, bad);
}

TEST(narrow_rows_in_lanes) {
    static const int widths[] = {1, 7, 16, 17, 40};
    Rig r;
    rig_init(&r);
    make_graph();
    (void)size(&r, "N"), (void)size(&r, "E");
    classes_kernel(&r, "any", size(&r, "F"), false);
    for (size_t i = 0; i < 2 * COUNT(widths); i++)
        classes_kernel(&r, arena_printf(r.c.a, "c%d", (int)i), num(&r, widths[i / 2]), i % 2);
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(widths); i++)
        check_classes(rig_kernel(&r, "any"), widths[i]);
    for (size_t i = 0; r.lib && i < 2 * COUNT(widths); i++)
        check_classes(rig_kernel(&r, arena_printf(r.c.a, "c%d", (int)i)), widths[i / 2]);
    rig_free(&r);
}

TEST_MAIN()
