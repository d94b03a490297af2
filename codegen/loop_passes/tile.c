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
 * (`jam_heads`: unroll and jam, Allen and Cocke 1972): its rows lie side by side in registers, and
 * the entries are read once, not once per head.
 *
 * It is the same work in another order, lane by lane: allowed when every buffer that the statements
 * write is reached through the column (and the head) alone, so no lane reads what another one
 * wrote; the order of additions into an element does not change. */
#include "codegen/loop_passes/tile.h"
#include "passes/rewrite.h"

/* Whether the statements accumulate into b. */
static bool accumulates_into(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->buf == b) || accumulates_into(s->body, b)) return true;
    return false;
}

/* Whether tiles help: a short local row of constant width is in registers anyway. */
static bool is_worth_tiling(LoopTile *t, int lanes) {
    int64_t n;
    if (!expr_is_const(t->width, &n) || n > (int64_t)lanes * LOOP_WHOLE_VECTORS_MAX) return true;
    for (int i = 0; i < t->n_rows; i++)
        for (int k = 0; k < t->n; k++)
            if (t->row[i]->buf->kind != LB_LOCAL && !loop_tile_is_vector_loop(t, t->stmt[k]) &&
                accumulates_into(t->stmt[k]->body, t->row[i]->buf))
                return true;
    t->optional = true;
    return loop_tile_refuse(t, "its row is short, and stays in registers as it is");
}

/* The width of the first vector loop among the statements; or NULL. */
static const Expr *find_width(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.parallel && s->sched.vector)
            return s->extent;
    return NULL;
}

/* ---- how many columns at a time ------------------------------------------------------------- */
/* The size of the widest element that the entries load from rows. */
static int gathered_element_bytes(const LStmt *s, const LReg *column) {
    int most = 0;
    for (; s; s = s->next) {
        int n = 0;
        if (s->kind == L_FOR)
            n = gathered_element_bytes(s->body, s->sched.vector ? s->var : column);
        if (s->kind == L_IF) n = gathered_element_bytes(s->body, column);
        bool row = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank > 1;
        if (row && s->idx[s->buf->rank - 1] == column) n = dtype_bytes(s->buf->dt);
        if (n > most) most = n;
    }
    return most;
}

/* The largest power of two that is not above n. */
static int power_of_2(int n) {
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
static int choose_vectors(const Loops *l, const LoopTile *t) {
    int most = l->machine.sums, usual = power_of_2(pass_threshold(l->c, PASS_T_TILE_VECTORS));
    int bytes = 0;
    for (int i = 0; i < t->n; i++) {
        int n = t->stmt[i]->sched.vector ? 0 : gathered_element_bytes(t->stmt[i]->body, NULL);
        if (n > bytes) bytes = n;
    }
    int wanted = bytes == 2 && t->n_rows * 2 * usual <= most ? 2 * usual : usual;
    return most < wanted ? most : wanted;
}

/* ---- the pass ------------------------------------------------------------------------------- */
/* Makes the tile's statements the body of a new statement `tile`. */
static LStmt *enclose(Loops *l, LStmt **at, const LoopTile *t, int vectors) {
    LStmt *s = NEW(l->a, LStmt), *last = t->stmt[t->n - 1];
    *s = (LStmt){.kind = L_TILE, .span = t->stmt[0]->span, .next = last->next, .body = *at};
    s->extent = t->width;
    s->lanes = t->lanes;
    s->columns = vectors * t->lanes;
    for (int i = 0; i < t->n; i++) t->stmt[i]->sched.serial = false;
    for (int i = 0; i < t->n_rows; i++) s->in_registers[s->n_in_registers++] = t->row[i]->buf;
    last->next = NULL;
    return *at = s;
}

/* Unrolls and jams a loop over heads: its body is one tile, and the rows of all heads are in
 * registers together. */
static bool jam_heads(Loops *l, LoopTile *t, LStmt *s) {
    int64_t width;
    LStmt **first = &s->body;
    while (*first && (*first)->kind == L_LOCAL) first = &(*first)->next;
    if (!loop_extent(s, &t->heads) || t->heads < 2) return false;
    t->jam = s;
    t->width = find_width(*first);
    if (!t->width || !expr_is_const(t->width, &width) || width < 1) return false;
    t->lanes = loop_lanes_for(l, width);
    int64_t vectors = (width + t->lanes - 1) / t->lanes, most = l->machine.sums;
    if (t->lanes == 1 || t->heads > most || vectors * t->heads > most) return false;
    if (!loop_find_tile(t, *first, NULL) || t->stmt[t->n - 1]->next) return false;
    if (t->n_rows * vectors * t->heads > 2 * most) return false;
    LStmt *tile = enclose(l, first, t, (int)vectors);
    s->sched.jam = true;
    s->sched.expand = 0, s->sched.prefix = false;
    for (LStmt *e = tile->body; e; e = e->next) {
        e->sched.strips = 0;
        for (LStmt *p = e->body; p; p = p->next) p->remat = false;
    }
    return true;
}

/* Makes a tile of the statements from *at on, before `end`; false: there is none, or none that
 * helps. */
static bool form_tile(Loops *l, LoopTile *t, LStmt **at, const LStmt *end) {
    int64_t n;
    LStmt *s = *at;
    t->heads = 1;
    t->lanes = l->machine.lanes;
    t->width = s->sched.vector ? find_width(s) : find_width(s->body);
    if (!t->width || !loop_find_tile(t, s, end) || !is_worth_tiling(t, t->lanes)) return false;
    if (expr_is_const(t->width, &n)) t->lanes = loop_lanes_for(l, n);
    if (t->lanes == 1) return false;
    enclose(l, at, t, choose_vectors(l, t));
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
} Search;

/* Whether the statement is a loop over entries that sums rows. */
static bool is_row_sum(const LStmt *s) {
    return s->kind == L_FOR && s->range == LR_SEGMENT && find_width(s->body);
}

/* Remarks on a sum that is not tiled, once, for the longest group that it is in. */
static void remark_refused(Search *w, const LoopTile *t, const LStmt *s) {
    bool told = w->last_refused != NULL, sum = is_row_sum(s);
    if (w->last_refused == s) w->last_refused = NULL;
    if (!told && t->optional) {
        for (int i = 0; i < t->n; i++) sum |= is_row_sum(t->stmt[i]);
        w->last_refused = t->n > 1 ? t->stmt[t->n - 1] : NULL;
    }
    if (!told && sum)
        pass_refusal(w->p, s->span, "tile", "a sum of %s is not had in tiles: %s", w->k->name,
                     t->reason ? t->reason : "there is more than rows in it");
}

/* Tries to make a tile at *at. */
static bool try_tile(Search *w, LStmt **at, const LStmt *end) {
    LoopTile heads = {.k = w->k}, rows = {.k = w->k};
    LStmt *s = *at;
    if (s->kind != L_FOR || s->sched.parallel) return false;
    if (!s->sched.vector && jam_heads(w->l, &heads, s)) {
        pass_remark(w->p, s->span, "tile", "%d heads of a sum of %s are in registers together",
                    (int)heads.heads, w->k->name);
        return w->any = true;
    }
    if (form_tile(w->l, &rows, at, end)) {
        pass_remark(w->p, s->span, "tile", "%d columns of a sum of %s are in registers at a time",
                    (*at)->columns, w->k->name);
        return w->any = true;
    }
    remark_refused(w, &rows, s);
    return false;
}

static void visit_list(Search *w, LStmt **at, const LStmt *end);

/* Looks for tiles in the statements of a body that are not in vector lanes. */
static void visit_body(Search *w, LStmt *s) {
    const LSched *h = &s->sched;
    if (!loop_has_body(s) || h->lanes || h->flat || s->kind == L_TILE) return;
    if (s->kind == L_FOR && h->expand && !h->prefix) {
        for (LStmt *in = s->body; in; in = in->next)
            if (in->kind == L_FOR) visit_body(w, in);
        return;
    }
    LStmt **at = &s->body;
    if (h->expand) {
        const LStmt *rest = loop_end_of_prefix(s, true);
        while (*at != rest) at = &(*at)->next;
    }
    if (!h->rows) {
        visit_list(w, at, NULL);
        return;
    }
    while (*at) { /* runs of what goes row by row */
        LStmt *run = *at, *to = run;
        bool serial = loop_is_serial(run);
        while (to && loop_is_serial(to) == serial) to = to->next;
        if (serial) visit_list(w, at, to);
        while (*at != to) at = &(*at)->next;
    }
}

/* Looks for tiles in a list. */
static void visit_list(Search *w, LStmt **at, const LStmt *end) {
    for (; *at != end; at = &(*at)->next)
        if (!try_tile(w, at, end)) visit_body(w, *at);
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->machine.lanes > 1; i++) {
        Search w = {.p = p, .l = l, .k = l->k.v[i]};
        visit_list(&w, &w.k->body, NULL);
        if (w.any) loop_renumber_registers(w.k);
    }
    return true;
}

const Pass loop_pass_tile = {
    .name = "tile",
    .summary = "rows that entries are summed to stay in registers, a tile of columns at a time",
    .run_loops = run,
};
