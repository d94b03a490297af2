/* Loads, stores and accumulation. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* Text of the row-major offset of the element at idx; dimension `without` is left out. */
static const char *offset_text(CuFn *f, const LBuf *b, LReg *const *idx, int dropped_dim) {
    const char *at = NULL;
    for (int i = 0; i < b->rank; i++) {
        if (i == dropped_dim || loop_is_unit_extent(b->dim[i])) continue;
        const char *x = f->reg[idx[i]->id];
        if (!at) {
            at = x;
            continue;
        }
        bool sum = strchr(at, ' ') != NULL;
        at = arena_printf(f->a, "%s%s%s * %s + %s", sum ? "(" : "", at, sum ? ")" : "",
                          cu_expr(f, b->dim[i]), x);
    }
    return at ? at : "0";
}

/* The innermost alias of the access, or NULL. */
static const CuAlias *find_alias(CuFn *f, const LStmt *s) {
    for (int i = f->alias.n - 1; i >= 0; i--) {
        const CuAlias *a = &f->alias.v[i];
        if (a->buf == s->buf && (!a->acc || a->acc == s)) return a;
    }
    return NULL;
}

/* The number of elements of a local array without dimension `dropped_dim`; -1: of all dimensions.
 */
int64_t cu_elements_without_dim(const LBuf *b, int dropped_dim) {
    int64_t n = 1, extent;
    for (int i = 0; i < b->rank; i++)
        if (i != dropped_dim && expr_is_const(b->dim[i], &extent)) n *= extent;
    return n;
}

/* Text of the accessed element: the name that an alias gives it, or an array element. */
const char *cu_element(CuFn *f, const LStmt *s) {
    const LBuf *b = s->buf;
    const CuAlias *a = find_alias(f, s);
    if (a && a->dropped_dim < 0) return a->name;
    if (a) return arena_printf(f->a, "%s[%s]", a->name, offset_text(f, b, s->idx, a->dropped_dim));
    const char *name = b->kind == LB_LOCAL ? f->local[b->id] : f->buf[b->id];
    if (b->kind == LB_LOCAL && b->rank == 0) return name;
    return arena_printf(f->a, "%s[%s]", name, offset_text(f, b, s->idx, -1));
}

static bool is_half(DType dt) {
    return dt == DT_F16 || dt == DT_BF16;
}

/* Whether the element holds its value in the type of registers: local arrays and most aliases do.
 */
static bool is_register_value(CuFn *f, const LStmt *s) {
    const CuAlias *a = find_alias(f, s);
    return a ? !a->in_memory_type : s->buf->kind == LB_LOCAL;
}

/* Text of the loaded value, converted to the type of registers. */
const char *cu_load(CuFn *f, const LStmt *s) {
    const char *at = cu_element(f, s);
    if (is_register_value(f, s)) return at;
    if (is_half(s->buf->dt)) return arena_printf(f->a, "gn_load(%s)", at);
    return s->buf->dt == DT_I1 ? arena_printf(f->a, "%s != 0", at) : at;
}

/* The condition under which a thread of a team writes to memory: outside a column region the first
 * thread, inside the threads of the first way, each its columns. */
const char *cu_writer_guard(CuFn *f) {
    const CuSched *c = &f->sched;
    if (c->kind == CU_THREAD) return "";
    if (!f->region) return "if (gn.thread == 0) ";
    bool several = (c->shared_loop || c->kind == CU_BLOCK) && !f->region->all_threads;
    return several ? "if (gn.way == 0) " : "";
}

/* Emits the store of v to the element `at` in memory, by the threads that write. */
void cu_store_element(CuFn *f, const LBuf *b, const char *at, const char *v) {
    if (is_half(b->dt))
        cu_line(f, "%sgn_store(%s, %s);", cu_writer_guard(f), at, v);
    else
        cu_line(f, "%s%s = %s;", cu_writer_guard(f), at, v);
}

/* Emits the assignment of v to the accessed element, in memory or in a register. */
static void emit_assign(CuFn *f, const LStmt *s, const char *v) {
    const char *at = cu_element(f, s);
    const CuAlias *a = find_alias(f, s);
    if (is_register_value(f, s) || (a && !is_half(s->buf->dt)))
        cu_line(f, "%s = %s;", at, v);
    else if (a)
        cu_line(f, "gn_store(%s, %s);", at, v);
    else
        cu_store_element(f, s->buf, at, v);
}

/* Emits a store. */
void cu_store(CuFn *f, const LStmt *s) {
    emit_assign(f, s, f->reg[s->src->id]);
}

/* Emits an accumulation: loads the element, combines it with the source, and stores it. */
void cu_acc(CuFn *f, const LStmt *s) {
    const char *old = cu_load(f, s);
    if (strchr(old, ' ')) old = arena_printf(f->a, "(%s)", old);
    emit_assign(f, s, cu_combine(f, s->red, s->buf->dt, old, f->reg[s->src->id]));
}

/* Declares a local array or scalar, if it is used. */
void cu_declare_local(CuFn *f, const LBuf *b) {
    if (!f->local_used[b->id]) return;
    int64_t n = cu_elements_without_dim(b, -1);
    if (b->rank == 0)
        cu_line(f, "%s %s;", cu_type(b->dt), f->local[b->id]);
    else
        cu_line(f, "%s %s[%lld];", cu_type(b->dt), f->local[b->id], (long long)(n ? n : 1));
}
