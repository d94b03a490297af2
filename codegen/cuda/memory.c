/* Loads, stores and accumulation. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* Text of the row-major offset of the element at the indices idx; dimension dropped_dim is left out
 * (-1 = none is). */
static const char *offset_text(CuFn *f, const LBuf *b, LReg *const *idx, int dropped_dim) {
    const char *offset = NULL;
    for (int i = 0; i < b->rank; i++) {
        if (i == dropped_dim || loop_is_unit_extent(b->dim[i])) continue;
        const char *index = f->reg[idx[i]->id];
        if (!offset) {
            offset = index;
            continue;
        }
        bool sum = strchr(offset, ' ') != NULL;
        offset = arena_printf(f->a, "%s%s%s * %s + %s", sum ? "(" : "", offset, sum ? ")" : "",
                              cu_size_text(f, b->dim[i]), index);
    }
    return offset ? offset : "0";
}

/* The C variable that stands for the accessed element at this place, the innermost if several do;
 * NULL = the element is in its array. */
static const CuAlias *find_alias(CuFn *f, const LStmt *s) {
    for (int i = f->alias.n - 1; i >= 0; i--) {
        const CuAlias *a = &f->alias.v[i];
        if (a->buf == s->buf && (!a->acc || a->acc == s)) return a;
    }
    return NULL;
}

/* The number of elements of a local array if dimension dropped_dim is left out; -1: none is. */
int64_t cu_elements_without_dim(const LBuf *b, int dropped_dim) {
    int64_t n = 1, extent;
    for (int i = 0; i < b->rank; i++)
        if (i != dropped_dim && expr_is_const(b->dim[i], &extent)) n *= extent;
    return n;
}

/* Text of the accessed element: the register or pack element that stands for it, or
 * "buffer[offset]". */
const char *cu_element_text(CuFn *f, const LStmt *s) {
    const LBuf *b = s->buf;
    const CuAlias *alias = find_alias(f, s);
    if (alias && alias->dropped_dim < 0) return alias->name;
    if (alias)
        return arena_printf(f->a, "%s[%s]", alias->name,
                            offset_text(f, b, s->idx, alias->dropped_dim));
    const char *name = b->kind == LB_LOCAL ? f->local[b->id] : f->buf[b->id];
    if (b->kind == LB_LOCAL && b->rank == 0) return name;
    return arena_printf(f->a, "%s[%s]", name, offset_text(f, b, s->idx, -1));
}

static bool is_half(DType dt) {
    return dt == DT_F16 || dt == DT_BF16;
}

/* Whether the accessed element has the type of registers (f32 for 16-bit floats). Local arrays and
 * most aliases have it; memory and packs do not. */
static bool is_register_value(CuFn *f, const LStmt *s) {
    const CuAlias *a = find_alias(f, s);
    return a ? !a->in_memory_type : s->buf->kind == LB_LOCAL;
}

/* Text of the loaded value, converted to the type of registers: 16-bit floats become f32, bytes
 * become bool. */
const char *cu_load_text(CuFn *f, const LStmt *s) {
    const char *element = cu_element_text(f, s);
    if (is_register_value(f, s)) return element;
    if (is_half(s->buf->dt)) return arena_printf(f->a, "gn_load(%s)", element);
    return s->buf->dt == DT_I1 ? arena_printf(f->a, "%s != 0", element) : element;
}

/* Text of the condition under which a thread of a team writes to memory, since all threads of the
 * team compute the same values: outside of column regions thread 0 writes; inside, each lane of way
 * 0 its own columns. */
const char *cu_writer_guard_text(CuFn *f) {
    const CuSched *c = &f->sched;
    if (c->kind == CU_THREAD) return "";
    /* blocks that have a part of a row leave what it stores to the row's own */
    const bool parts = c->stores_early;
    if (!f->region)
        return parts ? "if (gn.thread == 0 && !gn_is_part(gn)) " : "if (gn.thread == 0) ";
    bool several = (c->shared_loop || c->kind == CU_BLOCK) && !f->region->all_threads;
    if (several) return parts ? "if (gn.way == 0 && !gn_is_part(gn)) " : "if (gn.way == 0) ";
    return parts ? "if (!gn_is_part(gn)) " : "";
}

/* Emits the store of a value to an element in memory, under the condition that selects the writing
 * thread. */
void cu_emit_store_element(CuFn *f, const LBuf *b, const char *element, const char *value) {
    if (is_half(b->dt))
        cu_line(f, "%sgn_store(%s, %s);", cu_writer_guard_text(f), element, value);
    else
        cu_line(f, "%s%s = %s;", cu_writer_guard_text(f), element, value);
}

/* Emits the assignment of a value to the accessed element: a plain assignment to a register or
 * full-width pack element, a converting one to a 16-bit pack element, or a guarded store to memory.
 */
static void emit_assign_element(CuFn *f, const LStmt *s, const char *value) {
    const char *element = cu_element_text(f, s);
    const CuAlias *alias = find_alias(f, s);
    if (is_register_value(f, s) || (alias && !is_half(s->buf->dt)))
        cu_line(f, "%s = %s;", element, value);
    else if (alias)
        cu_line(f, "gn_store(%s, %s);", element, value);
    else
        cu_emit_store_element(f, s->buf, element, value);
}

void cu_emit_store(CuFn *f, const LStmt *s) {
    emit_assign_element(f, s, f->reg[s->src->id]);
}

void cu_emit_accumulate(CuFn *f, const LStmt *s) {
    const char *old = cu_load_text(f, s);
    if (strchr(old, ' ')) old = arena_printf(f->a, "(%s)", old);
    emit_assign_element(f, s, cu_combine_text(f, s->red, s->buf->dt, old, f->reg[s->src->id]));
}

void cu_declare_local(CuFn *f, const LBuf *b) {
    if (!f->local_used[b->id]) return;
    int64_t n = cu_elements_without_dim(b, -1);
    if (b->rank == 0)
        cu_line(f, "%s %s;", cu_type(b->dt), f->local[b->id]);
    else
        cu_line(f, "%s %s[%lld];", cu_type(b->dt), f->local[b->id], (long long)(n ? n : 1));
}
