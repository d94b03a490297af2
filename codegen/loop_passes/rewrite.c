/* What passes over the loop IR share. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

LStmt *loop_parallel(const LKernel *k) {
    LStmt *after_values = k->body;
    while (after_values && loop_is_value(after_values)) after_values = after_values->next;
    return after_values && after_values->kind == L_FOR && after_values->sched.parallel &&
                   !after_values->next
               ? after_values
               : NULL;
}

LStmt *loop_collapsed(LStmt *s) {
    while (s && loop_is_value(s)) s = s->next;
    return s && s->kind == L_FOR && s->sched.collapse && !s->next ? s : NULL;
}

LStmt **loop_row_list(LKernel *k) {
    LStmt *loop = loop_parallel(k);
    if (!loop) return NULL;
    for (LStmt *in; (in = loop_collapsed(loop->body));) loop = in;
    return &loop->body;
}

bool loop_is_unit_extent(const Expr *e) {
    int64_t n;
    return expr_is_const(e, &n) && n == 1;
}

/* Whether s is a loop of constant extent; *n gets it. */
bool loop_extent(const LStmt *s, int64_t *n) {
    return s->kind == L_FOR && s->range == LR_EXTENT && expr_is_const(s->extent, n);
}

const char *loop_range_text(Arena *a, const LStmt *s) {
    StrBuf text = sb_new(a);
    if (s->range == LR_SEGMENT) return arena_printf(a, "entries of %s", s->ptr->name);
    expr_print(&text, s->extent);
    return s->range == LR_CHUNK ? arena_printf(a, "a part of %s", text.s) : text.s;
}

void loop_replace_register(LStmt *s, const LReg *from, LReg *to) {
    for (; s; s = s->next) {
        LReg *const *r;
        for (int i = 0; (r = loop_operand(s, i)); i++)
            if (*r == from) *(LReg **)r = to;
        if (loop_has_body(s)) loop_replace_register(s->body, from, to);
    }
}

LReg *loop_new_register(Arena *a, LKernel *k, DType dt, const char *hint, const LStmt *def) {
    LReg *r = NEW(a, LReg);
    *r = (LReg){.id = k->n_regs++, .dt = dt, .hint = hint, .def = def};
    return r;
}

LStmt **loop_replace_by_body(LStmt **at) {
    LStmt *after = (*at)->next;
    *at = (*at)->body;
    while (*at) at = &(*at)->next;
    *at = after;
    return at;
}

/* Removes the indices i with drop[i] from all accesses to buffer b. */
static void drop_indices(LStmt *s, const LBuf *b, const bool *drop) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) drop_indices(s->body, b, drop);
        if (!loop_is_access(s) || s->buf != b) continue;
        int n = 0;
        for (int i = 0; i < b->rank; i++)
            if (!drop[i]) s->idx[n++] = s->idx[i];
    }
}

/* Removes the dimensions i with drop[i] from local array b, and from the indices of its accesses.
 */
void loop_drop_dims(LStmt *s, LBuf *b, const bool *drop) {
    drop_indices(s, b, drop);
    int n = 0;
    for (int i = 0; i < b->rank; i++)
        if (!drop[i]) b->dim[n++] = b->dim[i];
    b->rank = n;
}

bool loop_accumulates(const LStmt *s, const LStmt *body, bool into_scalars) {
    for (; s; s = s->next) {
        bool is_scalar = s->kind == L_ACC && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        bool is_own = s->kind == L_ACC && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (s->kind == L_ACC && !is_own && is_scalar == into_scalars) return true;
        if (loop_has_body(s) && loop_accumulates(s->body, body, into_scalars)) return true;
    }
    return false;
}

bool loop_fits_lanes(const Target *on, int64_t n_columns, int max_pack) {
    int64_t pack = 1;
    while (pack < max_pack && n_columns % (pack * 2) == 0) pack *= 2;
    return n_columns <= on->lanes * pack;
}

/* How many loops over entries, or over a part of a long sum, each thread of the team runs as a
 * whole, since they are not shared. */
static int count_serial_loops(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        const bool is_long = s->range == LR_SEGMENT || (s->range == LR_CHUNK && !s->sched.vector);
        n += s->kind == L_FOR && is_long && s->sched.share == LS_EACH;
        if (loop_has_body(s)) n += count_serial_loops(s->body);
    }
    return n;
}

int loop_count_serial_entry_loops(const LKernel *k) {
    const LStmt *s = loop_parallel(k);
    return s ? count_serial_loops(s->body) : 0;
}

void loop_renumber_registers(LKernel *k) {
    k->n_regs = 0;
    loop_number_registers(k->body, &k->n_regs);
}

bool loop_sums_chunks(const LStmt *parallel) {
    return loop_has_range(parallel->body, LR_CHUNK);
}

bool loop_pass_each(Loops *l, bool (*change)(Loops *l, LKernel *k)) {
    for (int i = 0; i < l->k.n; i++)
        if (change(l, l->k.v[i])) loop_renumber_registers(l->k.v[i]);
    return true;
}

void loop_remark(PassCtx *p, const LKernel *k, const char *pass, const char *done,
                 const char *why_not) {
    (done ? pass_remark : pass_declined)(p, k->span, pass, "%s: %s", k->name,
                                         done ? done : why_not);
}
