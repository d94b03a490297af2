/* The cpu target: loop IR built here, compiled to an object, linked, loaded and run
 * against plain C.  Vector code must give the bits of scalar code; the mathematical
 * functions are held against libm in double. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "codegen/target.h"
#include "runtime/rng.h"
#include "test.h"

typedef void Kernel(void *const *arg, const int64_t *n, int64_t lo, int64_t hi);

/* ---- a compile ------------------------------------------------------------------------ */

typedef struct {
    Ctx c;
    Plan p;
    LKernel *k;   /* being built */
    LStmt **tail; /* where the next statement goes */
    char dir[64];
    void *lib;
    const char *march;
} Rig;

static void rig_init(Rig *r) {
    *r = (Rig){.march = "native"};
    CHECK(ctx_init(&r->c, NULL));
    static jmp_buf oom;
    if (setjmp(oom)) abort();
    arena_on_oom(r->c.a, &oom);
    r->p.m = module_new(&r->c, "cpu_test");
    strcpy(r->dir, "/tmp/gnnc_cpu_test_XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
}

static bool rig_build(Rig *r) {
    char cmd[512], object[128], so[128];
    snprintf(object, sizeof object, "%s/k.o", r->dir);
    snprintf(so, sizeof so, "%s/k.so", r->dir);
    TargetOptions o = {.march = r->march, .opt_level = 2, .debug_info = true};
    if (!target_cpu.emit_kernels(&r->c, &r->p, &o, EMIT_OBJECT, object)) {
        diag_print_all(&r->c, stderr, false);
        return false;
    }
    if (getenv("CPU_TEST_KEEP")) {
        target_cpu.emit_kernels(&r->c, &r->p, &o, EMIT_ASM, getenv("CPU_TEST_KEEP"));
    }
    snprintf(cmd, sizeof cmd, "cc -shared -o %s %s -lm", so, object);
    if (system(cmd) != 0) return false;
    r->lib = dlopen(so, RTLD_NOW);
    return r->lib != NULL;
}

static Kernel *rig_kernel(Rig *r, const char *name) {
    union {
        void *p;
        Kernel *k;
    } u = {.p = dlsym(r->lib, name)};
    CHECK_MSG(u.p, "kernel %s is missing", name);
    return u.k;
}

static void rig_free(Rig *r) {
    char cmd[128];
    if (r->lib) dlclose(r->lib);
    snprintf(cmd, sizeof cmd, "rm -rf %s", r->dir);
    CHECK(system(cmd) == 0);
    ctx_free(&r->c);
}

/* ---- building loop IR ----------------------------------------------------------------- */

static void kernel(Rig *r, const char *name) {
    r->k = NEW(r->c.a, LKernel);
    r->k->name = arena_strndup(r->c.a, name, strlen(name));
    r->tail = &r->k->body;
    vec_push(r->c.a, &r->p.kernels, r->k);
}

static LReg *reg(Rig *r, DType dt) {
    LReg *x = NEW(r->c.a, LReg);
    x->id = r->k->n_regs++;
    x->dt = dt;
    return x;
}

static const Expr *size(Rig *r, const char *sym) {
    for (int i = 0; i < r->p.m->syms.n; i++)
        if (!strcmp(r->p.m->syms.v[i]->name, sym)) return expr_sym(r->c.a, r->p.m->syms.v[i]);
    return expr_sym(r->c.a, sym_new(r->p.m, sym));
}

static const Expr *num(Rig *r, int64_t n) {
    return expr_const(r->c.a, n);
}

static LBuf *buf(Rig *r, LBufKind kind, DType dt, bool written, int rank, ...) {
    LBuf *b = NEW(r->c.a, LBuf);
    b->kind = kind, b->dt = dt, b->rank = rank, b->written = written;
    va_list ap;
    va_start(ap, rank);
    for (int i = 0; i < rank; i++) b->dim[i] = va_arg(ap, const Expr *);
    va_end(ap);
    if (kind == LB_LOCAL) {
        b->id = r->k->locals.n;
        vec_push(r->c.a, &r->k->locals, b);
    } else {
        b->id = r->k->bufs.n;
        vec_push(r->c.a, &r->k->bufs, b);
    }
    b->name = arena_printf(r->c.a, "b%d", b->id);
    return b;
}

static LStmt *put(Rig *r, LStmtKind kind) {
    LStmt *s = NEW(r->c.a, LStmt);
    s->kind = kind;
    *r->tail = s;
    r->tail = &s->next;
    return s;
}

static LReg *let(Rig *r, DType dt, LFn fn, int n, ...) {
    LStmt *s = put(r, L_LET);
    s->fn = fn, s->dst = reg(r, dt), s->n_arg = n;
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++) s->arg[i] = va_arg(ap, LReg *);
    va_end(ap);
    return s->dst;
}

static LReg *op1(Rig *r, OpKind op, DType dt, LReg *x) {
    LReg *y = let(r, dt, L_FN_OP, 1, x);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->op = op;
    return y;
}

static LReg *op2(Rig *r, OpKind op, DType dt, LReg *x, LReg *y) {
    LReg *z = let(r, dt, L_FN_OP, 2, x, y);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->op = op;
    return z;
}

static LReg *constant(Rig *r, DType dt, double v) {
    LReg *x = let(r, dt, L_FN_CONST, 0);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->imm = v;
    return x;
}

static LStmt *touch(Rig *r, LStmtKind kind, LBuf *b, va_list ap) {
    LStmt *s = put(r, kind);
    s->buf = b;
    for (int i = 0; i < b->rank; i++) s->idx[i] = va_arg(ap, LReg *);
    return s;
}

static LReg *load(Rig *r, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    LStmt *s = touch(r, L_LOAD, b, ap);
    va_end(ap);
    bool index = b->kind == LB_MAP_IDX || b->kind == LB_MAP_PERM || b->kind == LB_MAP_PTR;
    return s->dst = reg(r, index ? DT_I64 : b->dt);
}

static void store(Rig *r, LReg *v, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    touch(r, L_STORE, b, ap)->src = v;
    va_end(ap);
}

static void acc(Rig *r, RedKind red, LReg *v, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    LStmt *s = touch(r, L_ACC, b, ap);
    va_end(ap);
    s->src = v, s->red = red;
}

static void local(Rig *r, LBuf *b) {
    put(r, L_LOCAL)->buf = b;
}

/* Statements go into the loop until end(). */
static LStmt *loop(Rig *r, const Expr *extent) {
    LStmt *s = put(r, L_FOR);
    s->var = reg(r, DT_I64), s->range = LR_EXTENT, s->extent = extent;
    r->tail = &s->body;
    return s;
}

static LStmt *segment(Rig *r, LBuf *ptr, LReg *at) {
    LStmt *s = put(r, L_FOR);
    s->var = reg(r, DT_I64), s->range = LR_SEGMENT, s->ptr = ptr, s->at = at;
    r->tail = &s->body;
    return s;
}

static LStmt *when(Rig *r, LReg *cond) {
    LStmt *s = put(r, L_IF);
    s->cond = cond;
    r->tail = &s->body;
    return s;
}

static void end(Rig *r, LStmt *s) {
    r->tail = &s->next;
}

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

/* ---- sparse product, reductions, remainders ------------------------------------------------- */

enum { ROWS = 37, EDGES = 211 };
static int64_t row_ptr[ROWS + 1];
static int32_t src[EDGES], perm[EDGES];
static float weight[EDGES];

static uint32_t seed_ = 1;
static float rnd(void) {
    seed_ = rt_mix32(seed_ + 0x9E3779B9u);
    return (float)(seed_ >> 8) * 0x1p-23f - 1;
}

/* Some rows are empty, one is a hub. */
static void make_graph(void) {
    for (int e = 0; e < EDGES; e++) {
        src[e] = (int32_t)((unsigned)e * 7 % ROWS), weight[e] = rnd(), perm[e] = (e * 5) % EDGES;
    }
    for (int i = 0; i <= ROWS; i++)
        row_ptr[i] = i < 3 ? 0 : i == ROWS ? EDGES : 60 + (i - 3) * 150 / (ROWS - 3);
}

/* out[v, f] = sum over e into v of w[e] * z[src(e), f], accumulators in a local array */
static void spmm_kernel(Rig *r, const char *name, int64_t width, bool permuted) {
    kernel(r, name);
    const Expr *n = size(r, "N"), *m = size(r, "E"), *f = num(r, width);
    LBuf *ptr = buf(r, LB_MAP_PTR, DT_I64, false, 1, n),
         *idx = buf(r, LB_MAP_IDX, DT_I32, false, 1, m);
    LBuf *p = buf(r, LB_MAP_PERM, DT_I32, false, 1, m);
    LBuf *w = buf(r, LB_VALUE, DT_F32, false, 1, m), *z = buf(r, LB_VALUE, DT_F32, false, 2, n, f);
    LBuf *out = buf(r, LB_VALUE, DT_F32, true, 2, n, f), *a = buf(r, LB_LOCAL, DT_F32, true, 1, f);
    LStmt *v = loop(r, n);
    v->sched.parallel = true;
    local(r, a);
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    store(r, constant(r, DT_F32, 0), a, l->var);
    end(r, l);
    LStmt *e = segment(r, ptr, v->var);
    LReg *at = permuted ? load(r, p, e->var) : e->var;
    LReg *s = load(r, idx, at), *we = load(r, w, at);
    l = loop(r, f);
    l->sched.vector = true;
    acc(r, RED_SUM, op2(r, OP_MUL, DT_F32, we, load(r, z, s, l->var)), a, l->var);
    end(r, l);
    end(r, e);
    l = loop(r, f);
    l->sched.vector = true;
    store(r, load(r, a, l->var), out, v->var, l->var);
    end(r, l);
    end(r, v);
}

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

/* The same with the width known at run time (or too wide for registers), into the output itself or
 * a local row, with weights that cost something: exp(w) times a random number of the entry. */
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
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(widths); i++) check_tiled(&r, "any", widths[i]);
    if (r.lib)
        check_tiled(&r, "wide", 300), check_tiled(&r, "even", 256), check_tiled(&r, "narrow", 20);
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

/* A layer and the softmax of its result: y[v, :] = softmax(sum over entries of w z[src, :] / top),
 * top = max(w, 1/2), then o[v] = sum over entries of w s, s = sum of exp(..).  Rows of up to 16 go
 * in lanes, with loops over entries in between. */
static void classes_kernel(Rig *r) {
    kernel(r, "classes");
    const Expr *n = size(r, "N"), *m = size(r, "E"), *f = size(r, "F");
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
    LStmt *l = loop(r, f);
    l->sched.vector = true;
    store(r, zero, y, v->var, l->var);
    end(r, l);
    e = segment(r, ptr, v->var);
    LReg *at = load(r, idx, e->var);
    LReg *a = op2(r, OP_DIV, DT_F32, load(r, w, e->var), load(r, top, first));
    l = loop(r, f);
    l->sched.vector = true;
    acc(r, RED_SUM, op2(r, OP_MUL, DT_F32, a, load(r, z, at, l->var)), y, v->var, l->var);
    end(r, l);
    end(r, e);
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

TEST(narrow_rows_in_lanes) {
    static const int widths[] = {1, 7, 16, 17, 40};
    Rig r;
    rig_init(&r);
    make_graph();
    classes_kernel(&r);
    CHECK(rig_build(&r));
    for (size_t i = 0; r.lib && i < COUNT(widths); i++) {
        int f = widths[i], bad = 0;
        static _Alignas(64) float z[ROWS * 40], y[2][ROWS * 40], o[2][ROWS];
        for (int j = 0; j < ROWS * f; j++) z[j] = rnd();
        int64_t n[3] = {ROWS, EDGES, f};
        Kernel *k = rig_kernel(&r, "classes");
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

TEST(random_numbers_are_those_of_the_runtime) {
    Rig r;
    rig_init(&r);
    for (int vector = 0; vector < 2; vector++) {
        kernel(&r, vector ? "rv" : "rs");
        LBuf *key = buf(&r, LB_KEY, DT_I32, false, 1, num(&r, 2)),
             *row = buf(&r, LB_LOGICAL, DT_I32, false, 1, size(&r, "N"));
        LBuf *y = buf(&r, LB_VALUE, DT_F32, true, 2, size(&r, "N"), num(&r, 19));
        LStmt *v = loop(&r, size(&r, "N"));
        v->sched.parallel = true;
        LReg *k0 = load(&r, key, constant(&r, DT_I64, 0)),
             *k1 = load(&r, key, constant(&r, DT_I64, 1));
        LReg *id = op1(&r, OP_CAST, DT_I64, load(&r, row, v->var));
        LStmt *l = loop(&r, num(&r, 19));
        l->sched.vector = vector;
        store(&r, let(&r, DT_F32, L_FN_RANDOM, 4, k0, k1, id, l->var), y, v->var, l->var);
        end(&r, l);
        end(&r, v);
    }
    CHECK(rig_build(&r));
    static _Alignas(64) int32_t key[2] = {(int32_t)0x89abcdef, 77},
                                id[6] = {0, 5, 100000, 2147483647, 1, 3};
    static _Alignas(64) float y[6 * 19];
    int64_t n = 6;
    for (int vector = 0; r.lib && vector < 2; vector++) {
        rig_kernel(&r, vector ? "rv" : "rs")((void *[]){key, id, y}, &n, 0, n);
        for (int j = 0; j < 6 * 19; j++)
            CHECK(y[j] ==
                  rt_uniform((RtKey){0x89abcdefu, 77}, (uint32_t)id[j / 19], (uint32_t)(j % 19)));
    }
    rig_free(&r);
}

/* ---- element types and casts -------------------------------------------------------------------
 */

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

typedef struct {
    int left; /* allocations until one fails */
} Budget;

static void *take(void *user, size_t n) {
    Budget *b = user;
    return b->left-- > 0 ? malloc(n) : NULL;
}
static void give(void *user, void *block) {
    (void)user;
    free(block);
}

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
        Budget b = {n};
        Allocator from = {.alloc = take, .release = give, .user = &b, .block_bytes = 256};
        if (!ctx_init(&r.c, &from)) continue;
        done = ctx_run(&r.c, emit_text, &r);
        ctx_free(&r.c);
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
