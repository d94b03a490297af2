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
 * (`jam`: unroll and jam, Allen and Cocke 1972): its rows lie side by side in registers, and the
 * entries are read once, not once per head.
 *
 * It is the same work in another order, lane by lane: allowed when every buffer that the statements
 * write is reached through the column (and the head) alone, so no lane reads what another one
 * wrote; the order of additions into an element does not change. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

enum { GROUP_MAX = 16 };

typedef struct {
    const LKernel *k;
    LStmt *stmt[GROUP_MAX]; /* vector loops over `width`, entry loops around such */
    int n;
    const Expr *width;
    const LStmt *row[LOOP_KEPT_MAX]; /* the first access to each row that registers keep */
    int n_rows;
    const LStmt *jam; /* the loop over heads around the statements, or NULL */
    int64_t heads;    /* its extent, else 1 */
    int lanes;
    bool may;        /* be tiled, but need not */
    const char *why; /* not */
} Group;

static bool no(Group *t, const char *why) {
    t->why = why;
    return false;
}

/* ---- what belongs together ----------------------------------------------------------- */
bool loop_is_row_of(const LStmt *s, const Expr *width) {
    return s->kind == L_FOR && s->sched.vector && !s->sched.parallel && s->range == LR_EXTENT &&
           expr_eq(s->extent, width);
}

static bool is_row_loop(const Group *t, const LStmt *s) {
    return loop_is_row_of(s, t->width);
}

/* A sum of scalars of the entries: the divisor of a softmax, beside the row that it divides. */
static bool is_scalar_sum(const LStmt *s) {
    if (s->kind != L_ACC || s->buf->kind != LB_LOCAL) return false;
    for (int i = 0; i < s->buf->rank; i++)
        if (!loop_is_one(s->buf->dim[i])) return false;
    return true;
}

/* Scalars and their sums, then row loops. */
static bool is_entry_loop(const Group *t, const LStmt *s) {
    int64_t n;
    if (s->kind != L_FOR || s->sched.vector || s->sched.parallel) return false;
    if (s->sched.unroll && !(loop_extent(s, &n) && n == 1)) return false;
    const LStmt *p = s->body;
    while (p && p->kind == L_PREFETCH) p = p->next;
    while (p && (p->kind == L_LET || p->kind == L_LOAD || is_scalar_sum(p))) p = p->next;
    if (!p) return false;
    for (; p; p = p->next)
        if (!is_row_loop(t, p)) return false;
    return true;
}

static bool group_writes(const Group *t, const LBuf *b) {
    for (int i = 0; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return true;
    return false;
}

static bool group_defines(const Group *t, const LReg *r) {
    for (int i = 0; i < t->n; i++)
        if (t->stmt[i]->var == r || loop_defines(t->stmt[i]->body, r)) return true;
    return false;
}

static int group_accesses(const Group *t, const LBuf *b) {
    int n = 0;
    for (int i = 0; i < t->n; i++) n += loop_count_accesses(t->stmt[i]->body, b);
    return n;
}

/* ---- may it be done tile by tile? ---------------------------------------------------------- */
/* A row kept in registers: always the same one, named by indices from outside. */
static bool same_row(const LStmt *x, const LStmt *y) {
    for (int i = 0; i + 1 < x->buf->rank; i++)
        if (x->idx[i] != y->idx[i]) return false;
    return true;
}

static bool row_is_outer(const Group *t, const LStmt *s) {
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (group_defines(t, s->idx[i])) return false;
    return true;
}

/* The first access to the row of s, which registers are to keep; NULL: there is no room. */
static const LStmt *row_for(Group *t, const LStmt *s) {
    for (int i = 0; i < t->n_rows; i++)
        if (t->row[i]->buf == s->buf) return t->row[i];
    return t->n_rows == LOOP_KEPT_MAX ? NULL : (t->row[t->n_rows++] = s);
}

/* Heads must not meet: each has a row of its own, or a local array of its own. */
static bool apart_by_head(const Group *t, const LStmt *s) {
    if (!t->jam || loop_is_own(t->jam, s->buf)) return true;
    for (int i = 0; i + 1 < s->buf->rank; i++)
        if (s->idx[i] == t->jam->var) return true;
    return false;
}

/* Of a local array that the group only reads: the same element for all columns. */
static bool is_scalar(const LStmt *s, const LReg *column) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == column) return false;
    return true;
}

/* Summed by one loop over entries, which does not read it, and read after that. */
static bool is_scalar_of_entries(const Group *t, const LBuf *b) {
    int at = 0;
    if (t->jam) return false;
    while (at < t->n && loop_count_accesses(t->stmt[at]->body, b) == 0) at++;
    if (loop_count_accesses(t->stmt[at]->body, b) != 1) return false;
    for (int i = at + 1; i < t->n; i++)
        if (loop_writes(t->stmt[i]->body, b)) return false;
    for (const LStmt *s = t->stmt[at]->body; s; s = s->next)
        if (is_scalar_sum(s) && s->buf == b) return true;
    return false;
}

/* An access to a written buffer must be lane by lane; where possible registers keep its row. */
static bool access_is_fine(Group *t, const LStmt *s, const LReg *column) {
    if (!group_writes(t, s->buf))
        return s->buf->kind != LB_LOCAL || is_scalar(s, column) ||
               no(t, "columns of a local array are read that are not written there");
    if (is_scalar_of_entries(t, s->buf)) return true;
    if (!column || s->buf->rank == 0 || s->idx[s->buf->rank - 1] != column)
        return no(t, "something is written that is no column of a row");
    if (!apart_by_head(t, s)) return no(t, "heads share a row");
    if (!row_is_outer(t, s))
        return (s->buf->kind != LB_LOCAL && s->kind == L_STORE) ||
               no(t, "a row of an entry is written and read");
    const LStmt *row = row_for(t, s);
    if (!row) return no(t, "there are too many rows to keep in registers");
    return same_row(row, s) || no(t, "several rows of one array are written");
}

static bool body_is_fine(Group *t, const LStmt *s, const LReg *column) {
    for (; s; s = s->next) {
        bool plain = loop_is_access(s) || s->kind == L_LET || s->kind == L_IF;
        bool loop = s->kind == L_FOR || s->kind == L_PREFETCH;
        if (!plain && !(loop && !column)) return no(t, "there is more than rows in it");
        if (loop_is_access(s) && !access_is_fine(t, s, column)) return false;
        if (s->kind == L_FOR && !body_is_fine(t, s->body, s->var)) return false;
        if (s->kind == L_IF && !body_is_fine(t, s->body, column)) return false;
    }
    return true;
}

/* A buffer written once per entry must not be touched in another way. */
static bool streams_are_fine(Group *t, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !streams_are_fine(t, s->body)) return false;
        if (s->kind != L_STORE || row_is_outer(t, s)) continue;
        if (group_accesses(t, s->buf) != 1) return no(t, "a row of an entry is written and read");
    }
    return true;
}

/* Local rows vanish: nobody else may want them. */
static bool rows_are_fine(Group *t) {
    for (int i = 0; i < t->n_rows; i++) {
        const LBuf *b = t->row[i]->buf;
        if (b->kind == LB_LOCAL && group_accesses(t, b) != loop_count_accesses(t->k->body, b))
            return no(t, "a local row is read elsewhere, too");
    }
    return true;
}

static bool group_is_fine(Group *t) {
    t->n_rows = 0;
    for (int i = 0; i < t->n; i++) {
        const LReg *column = is_row_loop(t, t->stmt[i]) ? t->stmt[i]->var : NULL;
        if (!body_is_fine(t, t->stmt[i]->body, column)) return false;
    }
    for (int i = 0; i < t->n; i++)
        if (!streams_are_fine(t, t->stmt[i]->body)) return false;
    return rows_are_fine(t);
}

static bool has_entries(const Group *t) {
    for (int i = 0; i < t->n; i++)
        if (!is_row_loop(t, t->stmt[i])) return true;
    return false;
}

/* ---- of a text ------------------------------------------------------------------------------ */
static bool shape_is_fine(const LStmt *s, const LStmt *jam) {
    int64_t n = 0, heads = 1;
    int vectors = s->columns / s->lanes;
    if (s->columns % s->lanes || vectors < 1) return false;
    if (!jam) return (vectors & (vectors - 1)) == 0 && vectors <= LOOP_TILE_MAX;
    if (!expr_is_const(s->extent, &n) || !loop_extent(jam, &heads)) return false;
    if (n < 1 || n > s->columns || n <= s->columns - s->lanes) return false;
    return heads > 1 && heads <= LOOP_TILE_MAX && heads * vectors <= LOOP_TILE_MAX;
}

/* Entries are read for all heads together, so that none of them can have scalars of its own. */
static bool entries_are_fine(const LStmt *s, const LStmt *jam) {
    for (; s; s = s->next)
        if (jam && s->sched.strips) return false;
    return true;
}

bool loop_may_tile(const LKernel *k, const LStmt *tile, const LStmt *jam) {
    Group t = {.k = k, .width = tile->extent, .jam = jam, .lanes = tile->lanes};
    for (LStmt *s = tile->body; s; s = s->next) {
        if (t.n == GROUP_MAX || !(is_row_loop(&t, s) || is_entry_loop(&t, s))) return false;
        t.stmt[t.n++] = s;
    }
    if (!shape_is_fine(tile, jam) || !entries_are_fine(tile->body, jam)) return false;
    if (!has_entries(&t) || !group_is_fine(&t) || t.n_rows != tile->n_kept) return false;
    for (int i = 0; i < t.n_rows; i++)
        if (t.row[i]->buf != tile->kept[i]) return false;
    return true;
}

const LStmt *loop_jammed_tile(const LStmt *jam) {
    const LStmt *s = jam->body;
    while (s && s->kind == L_LOCAL) s = s->next;
    return s && s->kind == L_TILE && !s->next ? s : NULL;
}

/* ---- which groups there are ----------------------------------------------------------------- */
/* The longest run of statements from s on, before `end`, that may be tiled. */
static bool find_group(Group *t, LStmt *s, const LStmt *end) {
    for (; s != end && t->n < GROUP_MAX; s = s->next) {
        if (!is_entry_loop(t, s) && !is_row_loop(t, s)) break;
        t->stmt[t->n++] = s;
    }
    for (; t->n > 0; t->n--) {
        if (!has_entries(t)) return false;
        if (group_is_fine(t)) return true;
    }
    return false;
}

static bool adds_to(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->buf == b) || adds_to(s->body, b)) return true;
    return false;
}

/* A local row of constant width stays in registers as vector loops are, up to a width; one in
 * memory would be loaded and stored for each entry. */
static bool wants_tiles(Group *t, int lanes) {
    int64_t n;
    if (!expr_is_const(t->width, &n) || n > (int64_t)lanes * LOOP_WHOLE_VECTORS_MAX) return true;
    for (int i = 0; i < t->n_rows; i++)
        for (int k = 0; k < t->n; k++)
            if (t->row[i]->buf->kind != LB_LOCAL && !is_row_loop(t, t->stmt[k]) &&
                adds_to(t->stmt[k]->body, t->row[i]->buf))
                return true;
    t->may = true;
    return no(t, "its row is short, and stays in registers as it is");
}

/* The width of the row loops among s and what follows. */
static const Expr *find_width(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_FOR && s->range == LR_EXTENT && !s->sched.parallel && s->sched.vector)
            return s->extent;
    return NULL;
}

/* ---- how many columns at a time ---------------------------------------------------------------
 */
/* Bytes of an element of the rows that entries read: the most. */
static int row_bytes(const LStmt *s, const LReg *column) {
    int most = 0;
    for (; s; s = s->next) {
        int n = 0;
        if (s->kind == L_FOR) n = row_bytes(s->body, s->sched.vector ? s->var : column);
        if (s->kind == L_IF) n = row_bytes(s->body, column);
        bool row = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank > 1;
        if (row && s->idx[s->buf->rank - 1] == column) n = dtype_bytes(s->buf->dt);
        if (n > most) most = n;
    }
    return most;
}

static int power_of_2(int n) {
    int p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

/* As many bytes of a row as are good to ask for at a time: twice the vectors of 16-bit elements,
 * where there are registers for their sums.  2.33 M entries x 256 on two threads, seconds: 4
 * vectors, asking for the tile's part of the row 16 entries ahead, 0.059 to 0.062; 8 vectors 0.071
 * alone, 0.064 with 8 entries ahead, 0.062 with 16; 16 vectors 0.071 at best: the machine's own
 * prefetcher runs past the end of a long row, and what it brings too early is only used if the
 * row's other half follows.  All rows' first tile, then their second: 0.070 at best. */
static int vectors_of(const Loops *l, const Group *t) {
    int most = l->machine.sums, usual = power_of_2(pass_threshold(l->c, PASS_T_TILE_VECTORS));
    int bytes = 0;
    for (int i = 0; i < t->n; i++) {
        int n = t->stmt[i]->sched.vector ? 0 : row_bytes(t->stmt[i]->body, NULL);
        if (n > bytes) bytes = n;
    }
    int wanted = bytes == 2 && t->n_rows * 2 * usual <= most ? 2 * usual : usual;
    return most < wanted ? most : wanted;
}

/* ---- the pass ---------------------------------------------------------------------------------
 */
/* The group becomes the body of a statement in its place. */
static LStmt *wrap(Loops *l, LStmt **at, const Group *t, int vectors) {
    LStmt *s = NEW(l->a, LStmt), *last = t->stmt[t->n - 1];
    *s = (LStmt){.kind = L_TILE, .span = t->stmt[0]->span, .next = last->next, .body = *at};
    s->extent = t->width;
    s->lanes = t->lanes;
    s->columns = vectors * t->lanes;
    for (int i = 0; i < t->n; i++) t->stmt[i]->sched.serial = false;
    for (int i = 0; i < t->n_rows; i++) s->kept[s->n_kept++] = t->row[i]->buf;
    last->next = NULL;
    return *at = s;
}

/* Heads: all of the loop's body is one group, and their rows fit in registers. */
static bool jam(Loops *l, Group *t, LStmt *s) {
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
    if (!find_group(t, *first, NULL) || t->stmt[t->n - 1]->next) return false;
    if (t->n_rows * vectors * t->heads > 2 * most) return false;
    LStmt *tile = wrap(l, first, t, (int)vectors);
    s->sched.jam = true;
    s->sched.expand = 0, s->sched.prefix = false;
    for (LStmt *e = tile->body; e; e = e->next) {
        e->sched.strips = 0;
        for (LStmt *p = e->body; p; p = p->next) p->remat = false;
    }
    return true;
}

static bool group(Loops *l, Group *t, LStmt **at, const LStmt *end) {
    int64_t n;
    LStmt *s = *at;
    t->heads = 1;
    t->lanes = l->machine.lanes;
    t->width = s->sched.vector ? find_width(s) : find_width(s->body);
    if (!t->width || !find_group(t, s, end) || !wants_tiles(t, t->lanes)) return false;
    if (expr_is_const(t->width, &n)) t->lanes = loop_lanes_for(l, n);
    if (t->lanes == 1) return false;
    wrap(l, at, t, vectors_of(l, t));
    return true;
}

typedef struct {
    PassCtx *p;
    Loops *l;
    LKernel *k;
    bool any;
    const LStmt *told; /* the last statement of a group of which it was said why it is none */
} Walk;

/* A loop over entries around which one would look for a tile. */
static bool is_sum(const LStmt *s) {
    return s->kind == L_FOR && s->range == LR_SEGMENT && find_width(s->body);
}

/* Of each sum once, for the longest group that it is in. */
static void refused(Walk *w, const Group *t, const LStmt *s) {
    bool told = w->told != NULL, sum = is_sum(s);
    if (w->told == s) w->told = NULL;
    if (!told && t->may) {
        for (int i = 0; i < t->n; i++) sum |= is_sum(t->stmt[i]);
        w->told = t->n > 1 ? t->stmt[t->n - 1] : NULL;
    }
    if (!told && sum)
        pass_refusal(w->p, s->span, "tile", "a sum of %s is not had in tiles: %s", w->k->name,
                     t->why ? t->why : "there is more than rows in it");
}

static bool try(Walk *w, LStmt **at, const LStmt *end) {
    Group heads = {.k = w->k}, rows = {.k = w->k};
    LStmt *s = *at;
    if (s->kind != L_FOR || s->sched.parallel) return false;
    if (!s->sched.vector && jam(w->l, &heads, s)) {
        pass_remark(w->p, s->span, "tile", "%d heads of a sum of %s are in registers together",
                    (int)heads.heads, w->k->name);
        return w->any = true;
    }
    if (group(w->l, &rows, at, end)) {
        pass_remark(w->p, s->span, "tile", "%d columns of a sum of %s are in registers at a time",
                    (*at)->columns, w->k->name);
        return w->any = true;
    }
    refused(w, &rows, s);
    return false;
}

static void list(Walk *w, LStmt **at, const LStmt *end);

/* Statements that are not in lanes of something around them. */
static void inside(Walk *w, LStmt *s) {
    const LSched *h = &s->sched;
    if (!loop_has_body(s) || h->lanes || h->flat || s->kind == L_TILE) return;
    if (s->kind == L_FOR && h->expand && !h->prefix) {
        for (LStmt *in = s->body; in; in = in->next)
            if (in->kind == L_FOR) inside(w, in);
        return;
    }
    LStmt **at = &s->body;
    if (h->expand) {
        const LStmt *rest = loop_end_of_prefix(s, true);
        while (*at != rest) at = &(*at)->next;
    }
    if (!h->rows) {
        list(w, at, NULL);
        return;
    }
    while (*at) { /* runs of what goes row by row */
        LStmt *run = *at, *to = run;
        bool serial = loop_is_serial(run);
        while (to && loop_is_serial(to) == serial) to = to->next;
        if (serial) list(w, at, to);
        while (*at != to) at = &(*at)->next;
    }
}

static void list(Walk *w, LStmt **at, const LStmt *end) {
    for (; *at != end; at = &(*at)->next)
        if (!try(w, at, end)) inside(w, *at);
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n && l->machine.lanes > 1; i++) {
        Walk w = {.p = p, .l = l, .k = l->k.v[i]};
        list(&w, &w.k->body, NULL);
        if (w.any) loop_number(w.k);
    }
    return true;
}

const Pass loop_pass_tile = {
    .name = "tile",
    .summary = "rows that entries are summed to stay in registers, a tile of columns at a time",
    .run_loops = run,
};
