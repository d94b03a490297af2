/* What a row of a stored value reads, found by walking its operands: elementwise operands, sums
 * along other spaces, and gathers along the map whose segments are being summed all stay in the
 * row. */
#include "codegen/plan_passes/plan_row_walk.h"

/* At the row, at other places, or at an entry of the segment of maps.v[at - AT_ENTRY]. */
enum { AT_ROW, ELSEWHERE, AT_ENTRY, PLACES = CG_PLACES, MAPS_MAX = PLACES - AT_ENTRY };

/* Whether the first dimension of op is the space of rows. */
static bool has_rows_first(const Op *op, const Space *rows) {
    return op->type.rank > 0 && op->type.dim[0] == rows;
}

/* The map at whose entries a value at this place is read; NULL = the place is the row, or
 * elsewhere. */
static const Map *map_of_place(const RowWalk *r, int at) {
    return at >= AT_ENTRY ? r->maps.v[at - AT_ENTRY] : NULL;
}

/* The number of the place "at an entry (edge) of map m", whose segments the row sums. */
static int place_of_entries(RowWalk *r, Map *m) {
    int i = 0;
    while (i < r->maps.n && r->maps.v[i] != m) i++;
    if (i == MAPS_MAX) r->too_many_maps = true;
    if (i == MAPS_MAX) return ELSEWHERE;
    if (i == r->maps.n) vec_push(r->lo->a, &r->maps, m);
    return AT_ENTRY + i;
}

/* The place at which the operands of op are read, if op itself is read at place `at`: the row, an
 * entry of the row, or elsewhere. */
static int place_of_operands(RowWalk *r, const Op *op, int at) {
    const Op *x = op->n_in ? op->in[0] : NULL;
    if (at == ELSEWHERE || !x) return ELSEWHERE;
    switch (op->kind) {
    case OP_GATHER:
        return op->map == map_of_place(r, at) ? AT_ROW : ELSEWHERE;
    case OP_SEGMENT:
        return at == AT_ROW && op->map->to == r->rows ? place_of_entries(r, op->map) : ELSEWHERE;
    case OP_REDUCE:
    case OP_CONTRACT:
    case OP_ARGMAX:
    case OP_VIEW:
        return at;
    default:
        return op_has(op, OPT_ELEM) ? at : ELSEWHERE;
    }
}

/* The place of operand x, if operands of its op are read at `at`. A value without a row dimension
 * is one for all rows, so it is elsewhere. */
static int place_of_operand(const RowWalk *r, const Op *x, int at) {
    if (at == AT_ROW && !has_rows_first(x, r->rows)) return ELSEWHERE;
    if (at >= AT_ENTRY && !has_rows_first(x, map_of_place(r, at)->from)) return ELSEWHERE;
    return at;
}

/* Records a sum over the entries of the row; notes one that is too wide for a local array. */
static void record_row_sum(RowWalk *r, const Op *op) {
    int64_t n;
    r->n_sums++;
    if (cg_row_size(&op->type, &n) && n <= pass_threshold(r->lo->c, PASS_T_ROW)) return;
    r->n_wide++;
    r->wide = op;
}

/* Why the operands of op are not read at the row: reason w, or a new one where op is what leads
 * away from the row. */
static UnfusedReason reason_for_operands(UnfusedReason w, const Op *op, int at, int below) {
    if (at == below) return w;
    if (below == AT_ROW) return (UnfusedReason){UNFUSED_NOT, op};
    if (below != ELSEWHERE) return (UnfusedReason){UNFUSED_ENTRY, op};
    return (UnfusedReason){op->kind == OP_GATHER ? UNFUSED_GATHER : UNFUSED_OTHER_ROW, op};
}

/* Records a read of a stored value elsewhere than at the row, with the reason. */
static void record_read_elsewhere(RowWalk *r, const Op *op, int at, UnfusedReason w) {
    if (at == AT_ROW) w = (UnfusedReason){UNFUSED_VIEW, op};
    vec_push(r->lo->a, &r->at_other, cg_info(r->lo, op)->base);
    vec_push(r->lo->a, &r->reasons, w);
}

/* Visits a value on the walk: records a stored one, and goes on to the operands of a fused one. at:
 * its place, w: why that is not the row. */
static void visit_row(RowWalk *r, const Op *op, int at, UnfusedReason w) {
    if (!ir_marks_first(r->lo->row_marks, op->id * PLACES + at)) return;
    r->n_ops++;
    const OpInfo *in = cg_info(r->lo, op);
    if (op != r->root && in->storage != HOW_INLINE) {
        if (at == AT_ROW && in->base == op && cg_skip_views(r->lo, op) == op)
            vec_push(r->lo->a, &r->at_row, op);
        else
            record_read_elsewhere(r, op, at, w);
        return;
    }
    if (op->kind == OP_SEGMENT && at == AT_ROW && op->map->to == r->rows) record_row_sum(r, op);
    int below = place_of_operands(r, op, at);
    UnfusedReason on = reason_for_operands(w, op, at, below);
    for (int i = op->n_in - 1; i >= 0; i--) {
        int to = place_of_operand(r, op->in[i], below);
        RowStep next = {op->in[i], to, to == below ? on : (UnfusedReason){UNFUSED_ALL_ROWS, op}};
        vec_push(r->lo->a, &r->ahead, next);
    }
}

RowWalk plan_walk_row(const Lower *lo, const Op *root, const Space *rows) {
    RowWalk r = {.lo = lo, .rows = rows};
    r.root = cg_skip_views(lo, root);
    ir_marks_start(lo->row_marks);
    vec_push(lo->a, &r.ahead, ((RowStep){.op = r.root, .place = AT_ROW}));
    while (r.ahead.n) {
        RowStep p = r.ahead.v[--r.ahead.n];
        visit_row(&r, p.op, p.place, p.reason);
    }
    return r;
}
