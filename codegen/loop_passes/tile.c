/* Rows of sums stay in registers: a sum over entries whose width is long, or known at run time
 * only.
 *
 *     for %f in F vector { store y[%v, %f] .. }     tile F by 64 vector 16 keeps y {
 *     for %e in segment ptr[%v] {                     for %f in F vector { store y[%v, %f] .. }
 *       scalars of %e                          =>     for %e in segment ptr[%v] { .. }
 *       for %f in F vector {                          for %f in F vector { .. y[%v, %f] .. }
 *         acc sum y[%v, %f] .. }                    }
 *     }
 *     for %f in F vector { .. y[%v, %f] .. }
 *
 * Without it every entry loads and stores its row of sums.  Here all statements are done for a tile
 * of the columns, then for the next one: the tile's part of the row stays in registers over all
 * entries, at the price of reading the entries once per tile (the "feature dimension tiling" of Hu
 * et al., FeatGraph, SC 2020, and Huang et al., GE-SpMM, SC 2020).
 *
 * A short loop of constant extent around all that (attention heads) is done in the same traversal
 * (`unroll_and_jam_heads`: unroll and jam, Allen and Cocke 1972): its rows lie side by side in
 * registers, and the entries are read once, not once per head.
 *
 * It is the same work in another order, lane by lane: allowed when every buffer that the statements
 * write is reached through the column (and the head) alone, so no lane reads what another one
 * wrote; the order of additions into an element does not change. */
#include "codegen/loop_passes/tile.h"
#include "passes/rewrite.h"

/* Whether tiles help. A short local row of constant width is in registers anyway; then t->reason
 * says so. */
static bool is_worth_tiling(LoopTile *t, int lanes) {
    int64_t n;
    if (!expr_is_const(t->width, &n) || n > (int64_t)lanes * LOOP_WHOLE_VECTORS_MAX) return true;
    for (int i = 0; i < t->n_rows; i++)
        for (int k = 0; k < t->n; k++)
            if (t->row[i]->buf->kind != LB_LOCAL && !loop_tile_is_vector_loop(t, t->stmt[k]) &&
                loop_accumulates_into(t->stmt[k]->body, t->row[i]->buf))
                return true;
    t->optional = true;
    return loop_tile_refuse(t, "its row is short, and stays in registers as it is");
}

/* The extent of the first vector loop among the statements, the width of a row; NULL = there is
 * none. */
static const Expr *find_width(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.parallel && s->sched.vector)
            return s->extent;
    return NULL;
}

/* ---- how many columns at a time ------------------------------------------------------------- */
/* The bytes of the widest element that the statements load from gathered rows. column: the variable
 * of the vector loop around them. */
static int gathered_element_bytes(const LStmt *s, const LReg *column) {
    int widest = 0;
    for (; s; s = s->next) {
        int bytes = 0;
        if (s->kind == L_FOR)
            bytes = gathered_element_bytes(s->body, s->sched.vector ? s->var : column);
        if (s->kind == L_IF) bytes = gathered_element_bytes(s->body, column);
        bool is_row = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank > 1;
        if (is_row && s->idx[s->buf->rank - 1] == column) bytes = dtype_bytes(s->buf->dt);
        if (bytes > widest) widest = bytes;
    }
    return widest;
}

/* The largest power of two that is not above n. */
static int power_of_2_below(int n) {
    int p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

/* The number of vectors per tile. As many bytes of a row as are good to prefetch at a time: twice
 * the vectors of 16-bit elements, if there are registers for their sums. 2.33 M entries x 256 on
 * two threads, seconds: 4 vectors, prefetching the tile's part of the row 16 entries ahead, 0.059
 * to 0.062; 8 vectors 0.071 alone, 0.064 with 8 entries ahead, 0.062 with 16; 16 vectors 0.071 at
 * best: the hardware prefetcher runs past the end of a long row, and what it loads too early is
 * only used if the row's other half follows. All rows' first tile, then their second: 0.070 at
 * best. */
static int choose_vectors_per_tile(const Loops *l, const LoopTile *t) {
    int max_vectors = l->machine.sums,
        usual_vectors = power_of_2_below(pass_threshold(l->c, PASS_T_TILE_VECTORS));
    int bytes = 0;
    for (int i = 0; i < t->n; i++) {
        int n = t->stmt[i]->sched.vector ? 0 : gathered_element_bytes(t->stmt[i]->body, NULL);
        if (n > bytes) bytes = n;
    }
    int wanted = bytes == 2 && t->n_rows * 2 * usual_vectors <= max_vectors ? 2 * usual_vectors
                                                                            : usual_vectors;
    return max_vectors < wanted ? max_vectors : wanted;
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Makes the statements of tile t, which begin at *at, the body of a new statement `tile` of so many
 * vectors. */
static LStmt *make_tile_statement(Loops *l, LStmt **at, const LoopTile *t, int vectors) {
    LStmt *tile = NEW(l->a, LStmt), *last = t->stmt[t->n - 1];
    *tile = (LStmt){.kind = L_TILE, .span = t->stmt[0]->span, .next = last->next, .body = *at};
    tile->extent = t->width;
    tile->lanes = t->lanes;
    tile->columns = vectors * t->lanes;
    for (int i = 0; i < t->n; i++) t->stmt[i]->sched.serial = false;
    for (int i = 0; i < t->n_rows; i++) vec_push(l->a, &tile->in_registers, t->row[i]->buf);
    last->next = NULL;
    return *at = tile;
}

/* Unrolls a loop over heads and jams it into one tile: the rows of all heads are in registers
 * together, and entries are visited once. False: it cannot be. */
static bool unroll_and_jam_heads(Loops *l, LoopTile *t, LStmt *s) {
    int64_t width;
    LStmt **first = &s->body;
    while (*first && (*first)->kind == L_LOCAL) first = &(*first)->next;
    if (!loop_extent(s, &t->heads) || t->heads < 2) return false;
    t->jam = s;
    t->width = find_width(*first);
    if (!t->width || !expr_is_const(t->width, &width) || width < 1) return false;
    t->lanes = loop_lanes_for(l, width);
    int64_t vectors_per_row = (width + t->lanes - 1) / t->lanes, max_vectors = l->machine.sums;
    if (t->lanes == 1 || t->heads > max_vectors || vectors_per_row * t->heads > max_vectors)
        return false;
    if (!loop_find_tile(t, *first, NULL) || t->stmt[t->n - 1]->next) return false;
    if (t->n_rows * vectors_per_row * t->heads > 2 * max_vectors) return false;
    LStmt *tile = make_tile_statement(l, first, t, (int)vectors_per_row);
    s->sched.jam = true;
    s->sched.expand = 0, s->sched.prefix = false;
    for (LStmt *e = tile->body; e; e = e->next) {
        e->sched.strips = 0;
        for (LStmt *p = e->body; p; p = p->next) p->remat = false;
    }
    return true;
}

/* Makes a tile of the statements from *at on, before `end`; false: there is no legal one, or none
 * that helps. */
static bool form_tile(Loops *l, LoopTile *t, LStmt **at, const LStmt *end) {
    int64_t extent;
    LStmt *s = *at;
    t->heads = 1;
    t->lanes = l->machine.lanes;
    t->width = s->sched.vector ? find_width(s) : find_width(s->body);
    if (!t->width || !loop_find_tile(t, s, end) || !is_worth_tiling(t, t->lanes)) return false;
    if (expr_is_const(t->width, &extent)) t->lanes = loop_lanes_for(l, extent);
    if (t->lanes == 1) return false;
    make_tile_statement(l, at, t, choose_vectors_per_tile(l, t));
    return true;
}

/* The search for tiles in a kernel. */
typedef struct {
    PassCtx *p;
    Loops *l;
    LKernel *k;
    bool any;
    const LStmt
        *last_refused; /* the last statement of a group of which it was said why it is none */
} TileSearch;

/* Whether the statement is a loop over entries that accumulates rows. */
static bool is_row_sum(const LStmt *s) {
    return s->kind == L_FOR && s->range == LR_SEGMENT && find_width(s->body);
}

/* Writes a remark on a sum that is not tiled, once, for the longest group of statements that it is
 * in. */
static void remark_refused(TileSearch *search, const LoopTile *t, const LStmt *s) {
    bool was_reported = search->last_refused != NULL, is_sum = is_row_sum(s);
    if (search->last_refused == s) search->last_refused = NULL;
    if (!was_reported && t->optional) {
        for (int i = 0; i < t->n; i++) is_sum |= is_row_sum(t->stmt[i]);
        search->last_refused = t->n > 1 ? t->stmt[t->n - 1] : NULL;
    }
    if (!was_reported && is_sum)
        pass_refusal(search->p, s->span, "tile", "a sum of %s is not had in tiles: %s",
                     search->k->name, t->reason ? t->reason : "there is more than rows in it");
}

/* Tries to make a tile of the statements that begin at *at; true if it did. */
static bool try_tile(TileSearch *search, LStmt **at, const LStmt *end) {
    LoopTile heads = {.k = search->k}, rows = {.k = search->k};
    LStmt *s = *at;
    if (s->kind != L_FOR || s->sched.parallel) return false;
    if (!s->sched.vector && unroll_and_jam_heads(search->l, &heads, s)) {
        pass_remark(search->p, s->span, "tile", "%d heads of a sum of %s are in registers together",
                    (int)heads.heads, search->k->name);
        return search->any = true;
    }
    if (form_tile(search->l, &rows, at, end)) {
        pass_remark(search->p, s->span, "tile",
                    "%d columns of a sum of %s are in registers at a time", (*at)->columns,
                    search->k->name);
        return search->any = true;
    }
    remark_refused(search, &rows, s);
    return false;
}

static void visit_list(TileSearch *w, LStmt **at, const LStmt *end);

/* Looks for tiles in the body of s, except where it runs in vector lanes. */
static void visit_body(TileSearch *search, LStmt *s) {
    const LSched *sched = &s->sched;
    if (!loop_has_body(s) || sched->lanes || sched->flat || s->kind == L_TILE) return;
    if (s->kind == L_FOR && sched->expand && !sched->prefix) {
        for (LStmt *inner = s->body; inner; inner = inner->next)
            if (inner->kind == L_FOR) visit_body(search, inner);
        return;
    }
    LStmt **at = &s->body;
    if (sched->expand) {
        const LStmt *rest = loop_end_of_prefix(s, true);
        while (*at != rest) at = &(*at)->next;
    }
    if (!sched->rows) {
        visit_list(search, at, NULL);
        return;
    }
    while (*at) { /* runs of what goes row by row */
        LStmt *first = *at, *end = first;
        bool serial = loop_is_serial(first);
        while (end && loop_is_serial(end) == serial) end = end->next;
        if (serial) visit_list(search, at, end);
        while (*at != end) at = &(*at)->next;
    }
}

/* Looks for tiles in the statements from *at to `end` and in their bodies. */
static void visit_list(TileSearch *search, LStmt **at, const LStmt *end) {
    for (; *at != end; at = &(*at)->next)
        if (!try_tile(search, at, end)) visit_body(search, *at);
}

/* Runs the pass: splits the columns of each row of sums into tiles whose accumulators stay in
 * registers. */
static bool run_tile(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->machine.lanes > 1; i++) {
        TileSearch search = {.p = p, .l = l, .k = l->k.v[i]};
        visit_list(&search, &search.k->body, NULL);
        if (search.any) loop_renumber_registers(search.k);
    }
    return true;
}

const Pass loop_pass_tile = {
    .name = "tile",
    .summary = "rows that entries are summed to stay in registers, a tile of columns at a time",
    .run_loops = run_tile,
};
