/* The cpu target: loop IR built here, compiled to an object, linked, loaded and run
 * against plain C.  Vector code must give the bits of scalar code; the mathematical
 * functions are held against libm in double. */
#include "cpu_rig.h"
#include "ctx_test.h"

/* ---- mathematical functions -------------------------------------------------------------- */

typedef struct {
    OpKind op;
    double (*ref)(double);
    double max_ulp;
} Unary;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double rsqrt(double x) {
    return 1 / sqrt(x);
}

static const Unary unary[] = {
    {OP_EXP, exp, 1.5},   {OP_EXPM1, expm1, 3},     {OP_LOG, log, 1.5},     {OP_LOG1P, log1p, 3},
    {OP_TANH, tanh, 2},   {OP_SIGMOID, sigmoid, 3}, {OP_ERF, erf, 2},       {OP_SIN, sin, 1.5},
    {OP_COS, cos, 1.5},   {OP_SQRT, sqrt, 0.51},    {OP_RSQRT, rsqrt, 1.6}, {OP_ABS, fabs, 0},
    {OP_FLOOR, floor, 0},
};

static double ulp_error(float got, double want) {
    float w = (float)want;
    if (isnan(w) || isnan(got)) return isnan(w) && isnan(got) ? 0 : INFINITY;
    if (isinf(w) || isinf(got))
        return w == got ? 0 : fabs(want) > 3.4028235e38 && isinf(got) ? 0 : INFINITY;
    double ulp = fmax(ldexp(1, ilogb(w == 0 ? 1e-45f : w) - 23), 0x1p-149);
    return fabs((double)got - want) / ulp;
}

/* Every exponent, both signs, mantissas that walk; then what must be exactly right. */
static int sweep(float *x, int n) {
    static const float special[] = {0.0f,          -0.0f,
                                    1.0f,          -1.0f,
                                    INFINITY,      -INFINITY,
                                    NAN,           1e-45f,
                                    -1e-45f,       1.17549435e-38f,
                                    3.4028235e38f, -3.4028235e38f,
                                    88.72284f,     88.73f,
                                    -87.4f,        -103.97f,
                                    -104.5f,       0.5f,
                                    2.0f,          3.14159274f,
                                    1.57079637f,   6.28318548f,
                                    0.70710678f,   1.41421354f,
                                    0x1p18f,       0x1.921fb6p+100f,
                                    16777216.f,    0.34657359f,
                                    0.346573621f,  1e10f,
                                    0.921875f,     0.625f,
                                    3.95f};
    int m = 0;
    for (uint32_t bits = 0; m < n - 64; bits += 0x1234567u + (uint32_t)m) {
        float f;
        uint32_t b = bits;
        memcpy(&f, &b, 4);
        x[m++] = f;
        if (m % 2) { /* where values are ordinary */
            x[m] = (float)(m % 4001 - 2000) * 0.0137f;
            m++;
        }
    }
    for (size_t i = 0; i < COUNT(special); i++) x[m++] = special[i];
    return m;
}

static void map_kernel(Rig *r, const char *name, OpKind op, bool vector, DType dt) {
    kernel(r, name);
    LBuf *x = buf(r, LB_VALUE, dt, false, 1, size(r, "N")),
         *y = buf(r, LB_VALUE, dt, true, 1, size(r, "N"));
    LStmt *l = loop(r, size(r, "N"));
    l->sched.parallel = true, l->sched.vector = vector;
    store(r, op1(r, op, dt, load(r, x, l->var)), y, l->var);
    end(r, l);
}

TEST(math_functions_are_accurate_and_agree_with_scalar_code) {
    Rig r;
    rig_init(&r);
    for (size_t i = 0; i < COUNT(unary); i++) {
        map_kernel(&r, arena_printf(r.c.a, "v%d", (int)unary[i].op), unary[i].op, true, DT_F32);
        map_kernel(&r, arena_printf(r.c.a, "s%d", (int)unary[i].op), unary[i].op, false, DT_F32);
    }
    CHECK(rig_build(&r));
    enum { N = 60000 };
    float *x = aligned_alloc(64, N * 4 + 64), *y = aligned_alloc(64, N * 4 + 64),
          *z = aligned_alloc(64, N * 4 + 64);
    int64_t n = sweep(x, N);
    for (size_t i = 0; r.lib && i < COUNT(unary); i++) {
        void *arg[2] = {x, y}, *scalar[2] = {x, z};
        rig_kernel(&r, arena_printf(r.c.a, "v%d", (int)unary[i].op))(arg, &n, 0, n);
        rig_kernel(&r, arena_printf(r.c.a, "s%d", (int)unary[i].op))(scalar, &n, 0, n);
        double worst = 0;
        float at = 0;
        int differ = 0;
        for (int64_t j = 0; j < n; j++) {
            double e = ulp_error(y[j], unary[i].ref((double)x[j]));
            if (e > worst) worst = e, at = x[j];
            differ += memcmp(&y[j], &z[j], 4) != 0 && !(isnan(y[j]) && isnan(z[j]));
        }
        printf("  %-8s %.3f ulp (at %a)\n", op_mnemonic(unary[i].op), worst, (double)at);
        CHECK_MSG(worst <= unary[i].max_ulp, "%s: %g ulp at %a", op_mnemonic(unary[i].op), worst,
                  (double)at);
        CHECK_MSG(differ == 0, "%s: scalar and vector differ in %d places",
                  op_mnemonic(unary[i].op), differ);
    }
    free(x), free(y), free(z);
    rig_free(&r);
}

TEST(pow_has_the_special_cases_of_c) {
    Rig r;
    rig_init(&r);
    kernel(&r, "pw");
    LBuf *x = buf(&r, LB_VALUE, DT_F32, false, 1, size(&r, "N")),
         *y = buf(&r, LB_VALUE, DT_F32, false, 1, size(&r, "N"));
    LBuf *z = buf(&r, LB_VALUE, DT_F32, true, 1, size(&r, "N"));
    LStmt *l = loop(&r, size(&r, "N"));
    l->sched.parallel = l->sched.vector = true;
    store(&r, op2(&r, OP_POW, DT_F32, load(&r, x, l->var), load(&r, y, l->var)), z, l->var);
    end(&r, l);
    CHECK(rig_build(&r));
    static const float v[] = {
        0.f,   -0.f,    1,           -1,         2,          -2,    3,         -3,    0.5f,
        -0.5f, 2.5f,    -2.5f,       INFINITY,   -INFINITY,  NAN,   1e-40f,    1e30f, 7,
        -7,    100.25f, 0.99999994f, 1.0000001f, 16777216.f, 1e-3f, 12345.678f};
    enum { K = COUNT(v) };
    static _Alignas(64) float a[K * K], b[K * K], c[K * K];
    for (int i = 0; i < K * K; i++) a[i] = v[i / K], b[i] = v[i % K];
    int64_t n = K * K;
    if (r.lib) rig_kernel(&r, "pw")((void *[]){a, b, c}, &n, 0, n);
    for (int i = 0; i < K * K; i++) {
        double want = pow((double)a[i], (double)b[i]), e = ulp_error(c[i], want);
        CHECK_MSG(e <= 0.6 && (want != 0 || !signbit(want) == !signbit(c[i])),
                  "pow(%a, %a) = %a, want %a", (double)a[i], (double)b[i], (double)c[i], want);
    }
    rig_free(&r);
}

TEST(random_numbers_are_those_of_the_runtime) {
    Rig r;
    rig_init(&r);
    for (int vector = 0; vector < 2; vector++) {
        kernel(&r, vector ? "rv" : "rs");
        LBuf *key = buf(&r, LB_KEY, DT_I32, false, 1, num(&r, 2)),
             *row = buf(&r, LB_GLOBAL_IDS, DT_I32, false, 1, size(&r, "N"));
        LBuf *y = buf(&r, LB_VALUE, DT_F32, true, 2, size(&r, "N"), num(&r, 19)),
             *kept = buf(&r, LB_VALUE, DT_I1, true, 2, size(&r, "N"), num(&r, 19));
        LStmt *v = loop(&r, size(&r, "N"));
        v->sched.parallel = true;
        LReg *k0 = load(&r, key, constant(&r, DT_I64, 0)),
             *k1 = load(&r, key, constant(&r, DT_I64, 1));
        LReg *id = op1(&r, OP_CAST, DT_I64, load(&r, row, v->var));
        LStmt *l = loop(&r, num(&r, 19));
        l->sched.vector = vector;
        LReg *u = let(&r, DT_F32, L_FN_RANDOM, 4, k0, k1, id, l->var);
        store(&r, op2(&r, OP_LE, DT_I1, constant(&r, DT_F32, 0.6), u), kept, v->var, l->var);
        store(&r, u, y, v->var, l->var);
        end(&r, l);
        end(&r, v);
    }
    CHECK(rig_build(&r));
    static _Alignas(64) int32_t key[2] = {(int32_t)0x89abcdef, 77},
                                id[6] = {0, 5, 100000, 2147483647, 1, 3};
    static _Alignas(64) float y[6 * 19];
    static _Alignas(64) unsigned char kept[6 * 19];
    int64_t n = 6;
    for (int vector = 0; r.lib && vector < 2; vector++) {
        rig_kernel(&r, vector ? "rv" : "rs")((void *[]){key, id, y, kept}, &n, 0, n);
        for (int j = 0; j < 6 * 19; j++) {
            CHECK(y[j] ==
                  rt_uniform((RtKey){0x89abcdefu, 77}, (uint32_t)id[j / 19], (uint32_t)(j % 19)));
            CHECK(kept[j] == (0.6f <= y[j]));
        }
    }
    rig_free(&r);
}

/* Thresholds at random numbers that are drawn, and next to them, and at the ends of what is
 * allowed. */
TEST(le_random_compares_as_floating_point_does) {
    enum { COLUMNS = 19, ROWS = 4, DRAWN = 8, N_THRESHOLDS = 3 * DRAWN + 4 };
    const RtKey k = {0x89abcdefu, 77};
    float threshold[N_THRESHOLDS] = {0, 1e-45f, 1e-10f, 0x1.fffffep-1f};
    for (int i = 0; i < DRAWN; i++) {
        float u = rt_uniform(k, (uint32_t)(i % ROWS), (uint32_t)(2 * i));
        threshold[4 + 3 * i] = u;
        threshold[5 + 3 * i] = nextafterf(u, 0);
        threshold[6 + 3 * i] = fminf(nextafterf(u, 1), 0x1.fffffep-1f);
    }
    Rig r;
    rig_init(&r);
    for (int i = 0; i < 2 * N_THRESHOLDS; i++) {
        kernel(&r, arena_printf(r.c.a, "le%d", i));
        LBuf *key = buf(&r, LB_KEY, DT_I32, false, 1, num(&r, 2)),
             *row = buf(&r, LB_GLOBAL_IDS, DT_I32, false, 1, size(&r, "N")),
             *kept = buf(&r, LB_VALUE, DT_I1, true, 2, size(&r, "N"), num(&r, COLUMNS));
        LStmt *v = loop(&r, size(&r, "N"));
        v->sched.parallel = true;
        LReg *k0 = load(&r, key, constant(&r, DT_I64, 0)),
             *k1 = load(&r, key, constant(&r, DT_I64, 1));
        LReg *id = op1(&r, OP_CAST, DT_I64, load(&r, row, v->var));
        LStmt *l = loop(&r, num(&r, COLUMNS));
        l->sched.vector = i % 2;
        LReg *le = let(&r, DT_I1, L_FN_LE_RANDOM, 4, k0, k1, id, l->var);
        ((LStmt *)((char *)r.tail - offsetof(LStmt, next)))->imm = (double)threshold[i / 2];
        store(&r, le, kept, v->var, l->var);
        end(&r, l);
        end(&r, v);
    }
    CHECK(rig_build(&r));
    static _Alignas(64) int32_t key[2] = {(int32_t)0x89abcdef, 77}, id[ROWS] = {0, 1, 2, 3};
    static _Alignas(64) unsigned char kept[ROWS * COLUMNS];
    int64_t n = ROWS;
    for (int i = 0; r.lib && i < 2 * N_THRESHOLDS; i++) {
        rig_kernel(&r, arena_printf(r.c.a, "le%d", i))((void *[]){key, id, kept}, &n, 0, n);
        for (int j = 0; j < ROWS * COLUMNS; j++) {
            float u = rt_uniform(k, (uint32_t)(j / COLUMNS), (uint32_t)(j % COLUMNS));
            CHECK_MSG(kept[j] == (threshold[i / 2] <= u), "%a <= %a", (double)threshold[i / 2],
                      (double)u);
        }
    }
    rig_free(&r);
}

/* ---- element types and casts -------- */

TEST(casts_between_element_types) {
    static const DType types[] = {DT_F32, DT_F64, DT_F16, DT_BF16, DT_I32, DT_I64, DT_I1};
    enum { T = COUNT(types), N = 21 };
    Rig r;
    rig_init(&r);
    for (int i = 0; i < T * 2; i++) { /* f32 -> t -> f64 */
        kernel(&r, arena_printf(r.c.a, "t%d_%d", (int)types[i / 2], i % 2));
        LBuf *x = buf(&r, LB_VALUE, DT_F32, false, 1, size(&r, "N"));
        LBuf *y = buf(&r, LB_VALUE, types[i / 2], true, 1, size(&r, "N")),
             *z = buf(&r, LB_VALUE, DT_F64, true, 1, size(&r, "N"));
        LStmt *l = loop(&r, size(&r, "N"));
        l->sched.parallel = true, l->sched.vector = i % 2;
        LReg *v = op1(&r, OP_CAST, types[i / 2], load(&r, x, l->var));
        store(&r, v, y, l->var);
        store(&r, op1(&r, OP_CAST, DT_F64, load(&r, y, l->var)), z, l->var);
        end(&r, l);
    }
    CHECK(rig_build(&r));
    static _Alignas(64) float x[N] = {
        0,   1,      -1,    2.5f,   -2.5f, 1e9f, -1e9f, 0.1f,   65504,       1e-8f,      3,
        255, 256.5f, 1e20f, -1e20f, 7,     8,    9.75f, -0.25f, 1.00390625f, 1.01171875f};
    static _Alignas(64) char y[N * 8];
    static _Alignas(64) double z[2][N];
    int64_t n = N;
    for (int i = 0; r.lib && i < T; i++) {
        for (int v = 0; v < 2; v++)
            rig_kernel(&r, arena_printf(r.c.a, "t%d_%d", (int)types[i], v))((void *[]){x, y, z[v]},
                                                                            &n, 0, n);
        for (int j = 0; j < N; j++) {
            double want = (double)x[j];
            if (types[i] == DT_I1) want = x[j] != 0;
            if (types[i] == DT_I32) want = fmin(fmax(trunc(want), INT32_MIN), INT32_MAX);
            if (types[i] == DT_I64) want = want >= 0x1p63 ? 0x1p63 : fmax(trunc(want), -0x1p63);
            double tol = types[i] == DT_F16    ? fabs(want) * 0x1p-11 + 1e-7
                         : types[i] == DT_BF16 ? fabs(want) * 0x1p-8
                                               : 0;
            if (types[i] == DT_F16 && fabs(want) > 65520) continue;
            CHECK_MSG(fabs(z[0][j] - want) <= tol, "%s: %g became %g", dtype_name(types[i]), want,
                      z[0][j]);
            CHECK(z[0][j] == z[1][j]);
        }
    }
    rig_free(&r);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void emit_text(Ctx *c, void *arg) {
    Rig *r = arg;
    r->p.m = module_new(c, "oom");
    spmm_kernel(r, "p", 33, true);
    map_kernel(r, "e", OP_EXP, true, DT_F32);
    TargetOptions o = {.march = "x86-64-v3", .opt_level = 0, .debug_info = true};
    CHECK(target_cpu.emit_kernels(c, &r->p, &o, EMIT_IR_TEXT, "/dev/null"));
    TargetOptions bad = {.march = "no-such-cpu"};
    CHECK(!target_cpu.emit_kernels(c, &r->p, &bad, EMIT_IR_TEXT, "/dev/null"));
    CHECK(!target_cpu.emit_kernels(c, &r->p, &o, EMIT_IR_TEXT, "/no/such/directory/x.ll"));
}

/* Under a sanitizer this shows that LLVM's objects are released wherever memory runs out. */
TEST(every_allocation_may_fail) {
    bool done = false;
    for (int n = 0; !done && n < 200; n++) {
        Rig r = {0};
        FewBlocks some;
        Allocator from = few_blocks(&some, n, 256);
        if (!ctx_init(&r.c, &from)) continue;
        done = ctx_run(&r.c, emit_text, &r);
        ctx_free(&r.c);
        CHECK(some.live == 0);
    }
    CHECK(done);
}

TEST(other_machines_and_unknown_ones) {
    static const char *const march[] = {"x86-64", "x86-64-v3", "x86-64-v4", "no-such-cpu"};
    for (size_t i = 0; i < COUNT(march); i++) {
        Rig r;
        rig_init(&r);
        r.march = march[i];
        spmm_kernel(&r, "p", 16, false);
        map_kernel(&r, "e", OP_EXP, true, DT_F32);
        map_kernel(&r, "d", OP_EXP, true, DT_F64);
        char path[128];
        snprintf(path, sizeof path, "%s/k.s", r.dir);
        TargetOptions o = {.march = march[i], .opt_level = i == 0 ? 0 : 2};
        bool ok = target_cpu.emit_kernels(&r.c, &r.p, &o, EMIT_ASM, path);
        CHECK(ok == (i < 3));
        if (!ok) CHECK(r.c.diags.n == 1 && r.c.diags.v[0].code == DIAG_E0531);
        rig_free(&r);
    }
}

TEST_MAIN()
