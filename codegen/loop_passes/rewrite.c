/* What passes over the loop IR share. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

/* The parallel loop of the kernel, if only values stand beside it; or NULL. */
LStmt *loop_parallel(const LKernel *k) {
    LStmt *s = k->body;
    while (s && loop_is_value(s)) s = s->next;
    return s && s->kind == L_FOR && s->sched.parallel && !s->next ? s : NULL;
}

/* The loop that ends the list and is part of the parallel loop's index. */
LStmt *loop_collapsed(LStmt *s) {
    while (s && loop_is_value(s)) s = s->next;
    return s && s->kind == L_FOR && s->sched.collapse && !s->next ? s : NULL;
}

/* The list of statements inside the parallel loop and the loops collapsed with it; NULL = there is
 * no parallel loop. */
LStmt **loop_row_list(LKernel *k) {
    LStmt *loop = loop_parallel(k);
    if (!loop) return NULL;
    for (LStmt *in; (in = loop_collapsed(loop->body));) loop = in;
    return &loop->body;
}

/* Whether the extent is 1. */
bool loop_is_unit_extent(const Expr *e) {
    int64_t n;
    return expr_is_const(e, &n) && n == 1;
}

/* Whether the loop has a constant extent; *n: that extent. */
bool loop_extent(const LStmt *s, int64_t *n) {
    return s->kind == L_FOR && s->range == LR_EXTENT && expr_is_const(s->extent, n);
}

/* The loop's range for remarks: "8", "F", "entries of ptr". */
const char *loop_range_text(Arena *a, const LStmt *s) {
    StrBuf b = sb_new(a);
    if (s->range == LR_SEGMENT) return arena_printf(a, "entries of %s", s->ptr->name);
    expr_print(&b, s->extent);
    return s->range == LR_CHUNK ? arena_printf(a, "a part of %s", b.s) : b.s;
}

/* Replaces a register in s, the statements behind it and their bodies. */
void loop_replace_register(LStmt *s, const LReg *from, LReg *to) {
    for (; s; s = s->next) {
        if (s->src == from) s->src = to;
        if (s->cond == from) s->cond = to;
        if (s->at == from) s->at = to;
        for (int i = 0; i < s->n_arg; i++)
            if (s->arg[i] == from) s->arg[i] = to;
        for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
            if (s->idx[i] == from) s->idx[i] = to;
        if (loop_has_body(s)) loop_replace_register(s->body, from, to);
    }
}

/* A new register of the kernel. */
LReg *loop_new_register(Arena *a, LKernel *k, DType dt, const char *hint, const LStmt *def) {
    LReg *r = NEW(a, LReg);
    *r = (LReg){.id = k->n_regs++, .dt = dt, .hint = hint, .def = def};
    return r;
}

/* Replaces the loop by its body; returns the place behind it. */
LStmt **loop_replace_by_body(LStmt **at) {
    LStmt *next = (*at)->next;
    *at = (*at)->body;
    while (*at) at = &(*at)->next;
    *at = next;
    return at;
}

/* Removes the marked indices from the accesses to b. */
static void drop_indices(LStmt *s, const LBuf *b, const bool *out) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) drop_indices(s->body, b, out);
        if (!loop_is_access(s) || s->buf != b) continue;
        int n = 0;
        for (int i = 0; i < b->rank; i++)
            if (!out[i]) s->idx[n++] = s->idx[i];
    }
}

/* Removes the marked dimensions of a local array, and the indices of its accesses. */
void loop_drop_dims(LStmt *s, LBuf *b, const bool *out) {
    drop_indices(s, b, out);
    int n = 0;
    for (int i = 0; i < b->rank; i++)
        if (!out[i]) b->dim[n++] = b->dim[i];
    b->rank = n;
}

/* Whether the body of a loop accumulates into scalars (numbers), or else into columns, that outlive
 * it. */
bool loop_accumulates(const LStmt *s, const LStmt *body, bool numbers) {
    for (; s; s = s->next) {
        bool number = s->kind == L_ACC && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        bool own = s->kind == L_ACC && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (s->kind == L_ACC && !own && number == numbers) return true;
        if (loop_has_body(s) && loop_accumulates(s->body, body, numbers)) return true;
    }
    return false;
}

/* Whether the lanes can hold so many columns at once, with at most `most` columns each. */
bool loop_fits_lanes(const Target *on, int64_t columns, int most) {
    int64_t each = 1;
    while (each < most && columns % (each * 2) == 0) each *= 2;
    return columns <= on->lanes * each;
}

/* How many loops over entries every thread runs alone. */
static int count_serial(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        n += s->kind == L_FOR && s->range == LR_SEGMENT && s->sched.share == LS_EACH;
        if (loop_has_body(s)) n += count_serial(s->body);
    }
    return n;
}

int loop_count_serial_entry_loops(const LKernel *k) {
    const LStmt *s = loop_parallel(k);
    return s ? count_serial(s->body) : 0;
}

/* Numbers the registers of a list. */
static void renumber(LStmt *s, int *next) {
    for (; s; s = s->next) {
        LReg *defines = s->kind == L_FOR ? s->var : s->dst;
        if (defines) defines->id = (*next)++;
        renumber(s->body, next);
    }
}

void loop_renumber_registers(LKernel *k) {
    k->n_regs = 0;
    renumber(k->body, &k->n_regs);
}

/* Whether a loop over chunk number `row` is among the statements. */
static bool has_chunk_of(const LStmt *s, const LReg *row) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->at == row) return true;
        if (loop_has_body(s) && has_chunk_of(s->body, row)) return true;
    }
    return false;
}

/* Whether the parallel loop runs over the chunks of a long sum: so few that each may have a block.
 */
bool loop_sums_chunks(const LStmt *parallel) {
    return has_chunk_of(parallel->body, parallel->var);
}

/* Runs `change` on each kernel, and renumbers the registers of those that it changed. */
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
