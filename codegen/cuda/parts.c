/* Rows with more entries than a block should have: several blocks take parts of them first.
 *
 *     NAME_parts        a block for each part of all entries, gn_part of them: where most of a part
 *                       belongs to such a row, its sums go to gn_room
 *     NAME              the block that has the row adds up what stands there, in the order of
 *                       parts, where it would have gone through the entries
 *
 * Parts lie at multiples of gn_part, whatever rows are, so where a sum goes is known without
 * looking at other rows, and sums are always made in the same order.  NAME_parts is launched only
 * where there are many entries (gn_part_of_entries()).  Which loops are so: the pass `split-rows`.
 */
#include "codegen/cuda/cuda.h"

bool cu_has_parts(const CuFn *f) {
    return f->sched.split && f->sched.split->sched.split;
}

static const LoopColumns *run_of(const CuFn *f) {
    return loop_columns_with(&f->team, f->sched.split);
}

/* Numbers that a part of a row leaves in gn_room. */
const char *cu_part_numbers(CuFn *f, bool host) {
    const LBuf *target[LOOP_TARGETS_MAX];
    int n = cu_split_targets(f, f->sched.split, target);
    const Expr *numbers = expr_mul(f->a, run_of(f)->range->extent, expr_const(f->a, n));
    return host ? cu_host_expr(f, numbers) : cu_expr(f, numbers);
}

const char *cu_part_at(CuFn *f, int target, const char *slot, const char *column) {
    const Expr *before = expr_mul(f->a, run_of(f)->range->extent, expr_const(f->a, target));
    const char *others = target ? arena_printf(f->a, "%s + ", cu_expr(f, before)) : "";
    return arena_printf(f->a, "gn_room[%s * (%s) + %s%s]", slot, cu_part_numbers(f, false), others,
                        column);
}

/* ---- the kernel that makes them --------------------------------------------------------- */
static void mark(CuFn *f, const LReg *r) {
    if (r) f->used[r->id] = true;
}

/* What the loop needs of the statements before it, in its list and in those around. */
static void mark_before(CuFn *f, const LStmt *s, const LStmt *end) {
    if (!s || s == end) return;
    mark_before(f, s->next, end);
    if ((s->kind != L_LET && s->kind != L_LOAD) || !f->used[s->dst->id]) return;
    for (int i = 0; s->kind == L_LET && i < s->n_arg; i++) mark(f, s->arg[i]);
    for (int i = 0; s->kind == L_LOAD && i < s->buf->rank; i++) mark(f, s->idx[i]);
}

static void pure(CuFn *f, const LStmt *s, const LStmt *end) {
    for (; s && s != end; s = s->next)
        if ((s->kind == L_LET || s->kind == L_LOAD) && f->used[s->dst->id]) cu_statement(f, s);
}

static void body(CuFn *f) {
    const CuSched *c = &f->sched;
    const LoopColumns *r = run_of(f);
    const char *lanes = c->lanes ? arena_printf(f->a, "%d", c->lanes) : "gn_lanes";
    cu_line(f, "const GnBlockTeam gn = gn_block_team(%s);", lanes);
    pure(f, f->k->body, c->parallel);
    cu_open(f, "GN_PARTS(gn_at, %s, gn_extent, gn_part) {", f->buf[c->split->ptr->id]);
    if (f->used[c->parallel->var->id])
        cu_line(f, "const int64_t %s = gn_at.row;", f->reg[c->parallel->var->id]);
    pure(f, c->parallel->body, r->at);
    cu_columns(f, r);
    cu_close(f);
}

void cu_parts(CuFn *f) {
    CuSched *c = &f->sched;
    bool *used = f->used, *locals = f->local_used;
    f->used = NEWN(f->a, bool, f->k->n_regs + 1);
    f->local_used = NEWN(f->a, bool, f->k->locals.n + 1);
    f->parts = true;
    cu_mark(f, c->split->body);
    mark_before(f, run_of(f)->first, c->split);
    mark_before(f, c->parallel->body, run_of(f)->at);
    mark_before(f, f->k->body, c->parallel);
    c->kind = CU_BLOCK;
    cu_signature(f, "_parts");
    f->depth = 1;
    cu_begin(f);
    body(f);
    cu_close(f);
    c->kind = CU_TEAM;
    f->parts = false;
    f->used = used;
    f->local_used = locals;
}
