#include "op_matrix.h"

#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "cpu_data.h"
#include "op_low.h"
#include "passes/autodiff.h"

enum { SEED = 42 };
static const double learning_rate = 0.125;

static void give_size(void *d, const Space *s, int64_t n) {
    cpu_data_size(d, s, n);
}
static void give_edges(void *d, const Space *e, int64_t n, const int32_t *src, const int32_t *dst) {
    cpu_data_edges(d, e, n, src, dst);
}
static void give_column(void *d, const Column *c, int64_t n, const double *v) {
    (void)n;
    cpu_data_column(d, c, v);
}
static void give_csr(void *d, const Column *c, const int64_t *ptr, const int32_t *col,
                     const double *v) {
    cpu_data_csr(d, c, ptr, col, v);
}
static void give_members(void *d, const Space *node, const int32_t *graph) {
    cpu_data_graphs(d, node, graph);
}
static void skip_var(void *d, const Var *v, int64_t n, const double *x) {
    (void)d, (void)v, (void)n, (void)x;
}
static void skip_input(void *d, const char *name, double x) {
    (void)d, (void)name, (void)x;
}

static bool write_data(Ctx *c, const OpCases *cs, const char *dir) {
    CpuData *d = cpu_data_new(c, cs->m);
    op_cases_give(cs, &(OpCaseSink){d, give_size, give_edges, give_column, give_csr, skip_var,
                                    skip_input, give_members});
    return dir && cpu_data_write(d, dir);
}

/* In 16 bits the interpreter sees what the passes made: it is they who say where to round. */
static CpuOracle oracle(Ctx *c, OpCases *cs, int level) {
    PassCtx p = {.ctx = c, .a = c->a};
    if (cpu_exec_is_low(level))
        cpu_exec_passes(c, cs->m, level);
    else
        for (int i = 0; i < cs->cases.n; i++)
            if (cs->cases.v[i].has_loss) pass_autodiff_func(&p, cs->m, cs->cases.v[i].f);
    CpuOracle o = {.rounded = op_cases_interp(c, cs), .exact = op_cases_interp(c, cs)};
    interp_set_seed(o.rounded, SEED, 0);
    interp_set_seed(o.exact, SEED, 0);
    interp_set_exact(o.exact, true);
    return o;
}

static bool set_vars(CpuExec *x, const OpCases *cs) {
    bool ok = true;
    for (int i = 0; i < cs->vars.n; i++) {
        int64_t n;
        double *v = op_case_values(cs, &cs->vars.v[i], &n);
        ok = ok && cpu_exec_set(x, cs->vars.v[i].var->path, n, v);
    }
    return ok;
}

/* ---- fewer of them -------- */
static bool has_new_kind(const Func *f, bool *seen) {
    bool is_new = false;
    for (const Op *op = f->first; op; op = op->next) {
        is_new = is_new || !seen[op->kind];
        seen[op->kind] = true;
    }
    return is_new;
}

static void remove_func(Module *m, const Func *f) {
    int n = 0;
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i] != f) m->funcs.v[n++] = m->funcs.v[i];
    m->funcs.n = n;
}

static bool is_read(const OpCases *cs, const Var *v) {
    for (int i = 0; i < cs->cases.n; i++)
        for (const Op *op = cs->cases.v[i].f->first; op; op = op->next)
            if (op->kind == OP_VAR && op->var == v) return true;
    return false;
}

/* Those whose name has `named`, where it is not NULL; of them all that have a kind of operation
 * which none before them has, and one of `each` of the others. */
static void thin(OpCases *cs, const char *named, int each) {
    bool seen[N_OPS] = {false};
    int n = 0;
    for (int i = 0; i < cs->cases.n; i++) {
        OpCase c = cs->cases.v[i];
        bool asked = !named || strstr(c.name, named);
        if (asked && (has_new_kind(c.f, seen) || i % each == 0))
            cs->cases.v[n++] = c;
        else
            remove_func(cs->m, c.f);
    }
    cs->cases.n = n;
    n = 0;
    for (int i = 0; i < cs->vars.n; i++)
        if (is_read(cs, cs->vars.v[i].var)) cs->vars.v[n++] = cs->vars.v[i];
    cs->vars.n = n;
}

/* There are more than a thousand.  A build with sanitizers looks at memory, not at values, and
 * takes five times as long: fewer are enough for it. */
#ifdef HAS_ASAN
enum { EACH = 6, EACH_LOW = 12 };
#else
enum { EACH = 1, EACH_LOW = 12 };
#endif

OpCases *op_matrix_cases(Ctx *c, int level) {
    OpCases *cs = op_cases_build(c);
    int each = cpu_exec_is_low(level) ? EACH_LOW : EACH;
    const char *named = getenv("OPS"); /* docs/extending.md */
    if (named || each > 1) thin(cs, named, each);
    return cs;
}

bool op_matrix_agrees(Ctx *c, CpuExec *x, int level, StrBuf *why) {
    return op_matrix_agrees_at(c, x, level, cpu_exec_dir(c), why);
}

bool op_matrix_agrees_at(Ctx *c, CpuExec *x, int level, const char *dir, StrBuf *why) {
    OpCases *cs = op_matrix_cases(c, level);
    CpuOracle o = oracle(c, cs, level);
    bool given = write_data(c, cs, dir);
    if (!given || !cpu_exec_load(x, dir, SEED, learning_rate) || !set_vars(x, cs)) {
        sb_printf(why, "load: %s\n", given ? cpu_exec_error(x) : "no data");
        return false;
    }
    bool ok = cs->cases.n > 0; /* OPS may name none */
    for (int i = 0; i < cs->cases.n; i++) {
        if (cpu_exec_agrees(x, &o, cs->cases.v[i].f, why)) continue;
        sb_puts(why, "\n");
        ok = false;
    }
    return ok;
}
