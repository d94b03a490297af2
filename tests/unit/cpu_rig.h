/* What the tests of the CPU target share: a compile of kernels written as loop IR, and a small
 * graph with empty rows and a hub. */
#ifndef CPU_RIG_H
#define CPU_RIG_H

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "codegen/target.h"
#include "runtime/exec/rng.h"
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

static inline void rig_init(Rig *r) {
    *r = (Rig){.march = "native"};
    CHECK(ctx_init(&r->c, NULL));
    static jmp_buf oom;
    if (setjmp(oom)) abort();
    arena_on_oom(r->c.a, &oom);
    r->p.m = module_new(&r->c, "cpu_test");
    strcpy(r->dir, "/tmp/gnnc_cpu_test_XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
}

static inline bool rig_build(Rig *r) {
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

static inline Kernel *rig_kernel(Rig *r, const char *name) {
    union {
        void *p;
        Kernel *k;
    } u = {.p = dlsym(r->lib, name)};
    CHECK_MSG(u.p, "kernel %s is missing", name);
    return u.k;
}

static inline void rig_free(Rig *r) {
    char cmd[128];
    if (r->lib) dlclose(r->lib);
    snprintf(cmd, sizeof cmd, "rm -rf %s", r->dir);
    CHECK(system(cmd) == 0);
    ctx_free(&r->c);
}

/* ---- building loop IR ----------------------------------------------------------------- */

static inline void kernel(Rig *r, const char *name) {
    r->k = NEW(r->c.a, LKernel);
    r->k->name = arena_strndup(r->c.a, name, strlen(name));
    r->tail = &r->k->body;
    vec_push(r->c.a, &r->p.kernels, r->k);
}

static inline LReg *reg(Rig *r, DType dt) {
    LReg *x = NEW(r->c.a, LReg);
    x->id = r->k->n_regs++;
    x->dt = dt;
    return x;
}

static inline const Expr *size(Rig *r, const char *sym) {
    for (int i = 0; i < r->p.m->syms.n; i++)
        if (!strcmp(r->p.m->syms.v[i]->name, sym)) return expr_sym(r->c.a, r->p.m->syms.v[i]);
    return expr_sym(r->c.a, sym_new(r->p.m, sym));
}

static inline const Expr *num(Rig *r, int64_t n) {
    return expr_const(r->c.a, n);
}

static inline LBuf *buf(Rig *r, LBufKind kind, DType dt, bool written, int rank, ...) {
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

static inline LStmt *put(Rig *r, LStmtKind kind) {
    LStmt *s = NEW(r->c.a, LStmt);
    s->kind = kind;
    *r->tail = s;
    r->tail = &s->next;
    return s;
}

static inline LReg *let(Rig *r, DType dt, LFn fn, int n, ...) {
    LStmt *s = put(r, L_LET);
    s->fn = fn, s->dst = reg(r, dt), s->n_arg = n;
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++) s->arg[i] = va_arg(ap, LReg *);
    va_end(ap);
    return s->dst;
}

static inline LReg *op1(Rig *r, OpKind op, DType dt, LReg *x) {
    LReg *y = let(r, dt, L_FN_OP, 1, x);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->op = op;
    return y;
}

static inline LReg *op2(Rig *r, OpKind op, DType dt, LReg *x, LReg *y) {
    LReg *z = let(r, dt, L_FN_OP, 2, x, y);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->op = op;
    return z;
}

static inline LReg *constant(Rig *r, DType dt, double v) {
    LReg *x = let(r, dt, L_FN_CONST, 0);
    ((LStmt *)((char *)r->tail - offsetof(LStmt, next)))->imm = v;
    return x;
}

static inline LStmt *touch(Rig *r, LStmtKind kind, LBuf *b, va_list ap) {
    LStmt *s = put(r, kind);
    s->buf = b;
    for (int i = 0; i < b->rank; i++) s->idx[i] = va_arg(ap, LReg *);
    return s;
}

static inline LReg *load(Rig *r, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    LStmt *s = touch(r, L_LOAD, b, ap);
    va_end(ap);
    bool index = b->kind == LB_MAP_IDX || b->kind == LB_MAP_PERM || b->kind == LB_MAP_PTR;
    return s->dst = reg(r, index ? DT_I64 : b->dt);
}

static inline void store(Rig *r, LReg *v, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    touch(r, L_STORE, b, ap)->src = v;
    va_end(ap);
}

static inline void acc(Rig *r, RedKind red, LReg *v, LBuf *b, ...) {
    va_list ap;
    va_start(ap, b);
    LStmt *s = touch(r, L_ACC, b, ap);
    va_end(ap);
    s->src = v, s->red = red;
}

static inline void local(Rig *r, LBuf *b) {
    put(r, L_LOCAL)->buf = b;
}

/* Statements go into the loop until end(). */
static inline LStmt *loop(Rig *r, const Expr *extent) {
    LStmt *s = put(r, L_FOR);
    s->var = reg(r, DT_I64), s->range = LR_EXTENT, s->extent = extent;
    r->tail = &s->body;
    return s;
}

static inline LStmt *segment(Rig *r, LBuf *ptr, LReg *at) {
    LStmt *s = put(r, L_FOR);
    s->var = reg(r, DT_I64), s->range = LR_SEGMENT, s->ptr = ptr, s->at = at;
    r->tail = &s->body;
    return s;
}

static inline LStmt *when(Rig *r, LReg *cond) {
    LStmt *s = put(r, L_IF);
    s->cond = cond;
    r->tail = &s->body;
    return s;
}

static inline void end(Rig *r, LStmt *s) {
    r->tail = &s->next;
}

/* ---- a graph ----------------------------------------------------------------------------- */

enum { ROWS = 37, EDGES = 211 };
static int64_t row_ptr[ROWS + 1];
static int32_t src[EDGES], perm[EDGES];
static float weight[EDGES];

static uint32_t seed_ = 1;
static inline float rnd(void) {
    seed_ = rt_mix32(seed_ + 0x9E3779B9u);
    return (float)(seed_ >> 8) * 0x1p-23f - 1;
}

/* Some rows are empty, one is a hub. */
static inline void make_graph(void) {
    for (int e = 0; e < EDGES; e++) {
        src[e] = (int32_t)((unsigned)e * 7 % ROWS), weight[e] = rnd(), perm[e] = (e * 5) % EDGES;
    }
    for (int i = 0; i <= ROWS; i++)
        row_ptr[i] = i < 3 ? 0 : i == ROWS ? EDGES : 60 + (i - 3) * 150 / (ROWS - 3);
}

/* out[v, f] = sum over e into v of w[e] * z[src(e), f], accumulators in a local array */
static inline void spmm_kernel(Rig *r, const char *name, int64_t width, bool permuted) {
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

#endif
