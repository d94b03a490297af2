/* Rows with more entries than a block should have: several blocks take parts of them first.
 *
 *     NAME_parts        a block for each part of all entries, gn_part of them: where most of a part
 *                       belongs to such a row, its sums go to gn_room
 *     NAME              the block that has the row adds up what stands there, in the order of
 *                       parts, where it would have gone through the entries
 *     NAME_row          what both do for a row: a part's block leaves it behind the entries
 *
 * Parts lie at multiples of gn_part, whatever rows are, so where a sum goes is known without
 * looking at other rows, and sums are always made in the same order.  NAME_parts is launched only
 * where there are many entries (gn_part_of_entries()).  Which loops are so: the pass `split-rows`.
 */
#include "codegen/cuda/cuda.h"

bool cu_splits_rows(const CuFn *f) {
    return f->sched.shared_loop && f->sched.shared_loop->sched.split_entries;
}

/* The region of feature columns around the loop whose entries the ways share. */
static const LoopColumns *shared_region(const CuFn *f) {
    return loop_region_of(&f->team, f->sched.shared_loop);
}

const char *cu_partial_size_text(CuFn *f, bool in_host_code) {
    const LBuf *target[LOOP_TARGETS_MAX];
    int n = cu_shared_sums(f, f->sched.shared_loop, target);
    const Expr *n_values = expr_mul(f->a, shared_region(f)->range->extent, expr_const(f->a, n));
    return in_host_code ? cu_host_size_text(f, n_values) : cu_size_text(f, n_values);
}

const char *cu_partial_index_text(CuFn *f, int target, const char *column) {
    const Expr *offset = expr_mul(f->a, shared_region(f)->range->extent, expr_const(f->a, target));
    return target ? arena_printf(f->a, "%s + %s", cu_size_text(f, offset), column) : column;
}

const char *cu_partial_element_text(CuFn *f, int target, const char *slot, const char *column) {
    return arena_printf(f->a, "gn_room[%s * (%s) + %s]", slot, cu_partial_size_text(f, false),
                        cu_partial_index_text(f, target, column));
}

/* ---- the kernel that makes them --------------------------------------------------------- */
void cu_emit_parts_kernel(CuFn *f) {
    const char *lanes = cu_lanes_text(f);
    f->in_parts_kernel = true;
    cu_emit_signature(f, "_parts");
    f->in_parts_kernel = false;
    f->depth = 1;
    cu_emit_prologue(f);
    cu_emit_statements_until(f, f->k->body, f->sched.parallel_loop);
    cu_open(f, "GN_PARTS(gn_at, %s, gn_extent, gn_part) {", f->buf[f->sched.shared_loop->ptr->id]);
    cu_line(f, "const int64_t gn_i = gn_at.row;");
    cu_emit_row_call(f, arena_printf(f->a, "gn_part_team(%s, gn_at, gn_room)", lanes));
    cu_close(f);
    cu_close(f);
}
