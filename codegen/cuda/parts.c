/* Rows with more entries than a block should have: several blocks take parts of them first.
 *
 *     NAME_parts        a block for each part of all entries, gn_part of them, and each head: where
 *                       most of a part belongs to such a row, its sums go to gn_room
 *     NAME              the block that has the row adds up what stands there, in the order of
 *                       parts, where it would have gone through the entries
 *     NAME_row          what both do for a row: a part's block leaves it behind the entries
 *
 * A row that goes through its entries several times (attention: for the maximum, the sum and the
 * weighted rows) has a launch of NAME_parts for each time.  In that of time `gn_loop` the blocks
 * find the sums of the times before where earlier launches left them, as the row's own block does.
 *
 * Parts lie at multiples of gn_part, whatever rows are, so where a sum goes is known without
 * looking at other rows, and sums are always made in the same order.  NAME_parts is launched only
 * where there are many entries (gn_part_of_entries()).  Which rows are so: the pass `split-rows`.
 */
#include "codegen/cuda/cuda.h"

bool cu_splits_rows(const CuFn *f) {
    return f->sched.n_split > 0;
}

int cu_split_number(const CuFn *f, const LStmt *loop) {
    for (int i = 0; i < f->sched.n_split; i++)
        if (f->sched.split[i] == loop) return i;
    return -1;
}

const Expr *cu_heads(const CuFn *f) {
    const Expr *n = expr_const(f->a, 1);
    for (int i = 0; i < f->sched.n_collapsed; i++)
        n = expr_mul(f->a, n, f->sched.collapsed[i]->extent);
    return n;
}

/* How many numbers come before sum number `target` of loop number `loop` among those that a part
 * leaves for one head. */
static const Expr *numbers_before(const CuFn *f, int loop, int target) {
    const Expr *n = expr_const(f->a, 0);
    for (int i = 0; i <= loop && i < f->sched.n_split; i++) {
        LoopSplitSum sum[LOOP_TARGETS_MAX];
        const int n_sums = loop_split_sums(&f->team, f->sched.split[i], sum);
        for (int k = 0; k < n_sums && (i < loop || k < target); k++)
            n = expr_add(f->a, n, sum[k].n_numbers);
    }
    return n;
}

const Expr *cu_partial_numbers(const CuFn *f) {
    return expr_mul(f->a, cu_heads(f), numbers_before(f, f->sched.n_split, 0));
}

const char *cu_partial_place_text(CuFn *f, int loop, int target, const char *slot,
                                  const char *column) {
    const Expr *before = numbers_before(f, loop, target),
               *all = numbers_before(f, f->sched.n_split, 0);
    const char *row = slot;
    if (!loop_is_unit_extent(cu_heads(f)))
        row = arena_printf(f->a, "(%s * (%s) + gn_head)", slot, cu_size_text(f, cu_heads(f)));
    const char *place = arena_printf(f->a, "%s * (%s)", row, cu_size_text(f, all));
    if (!expr_is_const(before, NULL) || before->c)
        place = arena_printf(f->a, "%s + %s", place, cu_size_text(f, before));
    return column ? arena_printf(f->a, "%s + %s", place, column) : place;
}

void cu_declare_head(CuFn *f) {
    if (cu_splits_rows(f) && !loop_is_unit_extent(cu_heads(f)))
        cu_line(f, "const int64_t gn_head = gn_i %% (%s);", cu_size_text(f, cu_heads(f)));
}

/* ---- the kernel that makes them --------------------------------------------------------- */
void cu_emit_parts_kernel(CuFn *f) {
    const char *lanes = cu_lanes_text(f), *heads = cu_size_text(f, cu_heads(f));
    f->in_parts_kernel = true;
    cu_emit_signature(f, "_parts");
    f->in_parts_kernel = false;
    f->depth = 1;
    cu_emit_prologue(f);
    cu_emit_statements_until(f, f->k->body, f->sched.parallel_loop);
    cu_open(f, "GN_%sPARTS(gn_at, gn_h, %s, %s, %sgn_extent / (%s), gn_part) {",
            f->has_own_rows ? "OWN_" : "", heads, f->buf[f->sched.split[0]->ptr->id],
            f->has_own_rows ? "gn_own, " : "", heads);
    cu_line(f, "const int64_t gn_i = gn_at.row * (%s) + gn_h;", heads);
    if (f->has_own_rows)
        cu_line(f, "if (gn_i < gn_own.first%s) continue;",
                f->has_passes ? " || gn_is_other(gn_own, gn_i)" : "");
    cu_emit_row_call(f, arena_printf(f->a, "gn_part_team(%s, gn_at, %s, gn_room)", lanes,
                                     f->sched.n_split > 1 ? "gn_loop" : "0"));
    cu_close(f);
    cu_close(f);
    f->in_parts_kernel = true;
    cu_emit_group_kernel(f, "_parts");
    f->in_parts_kernel = false;
}
