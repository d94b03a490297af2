/* Rows that entries gather are asked for before they come.
 *
 *     for %e in segment ptr[%v] {              for %e in segment ptr[%v] {
 *       %s = load src[%e]               =>       prefetch z[src[%e + 8]] lines 2
 *       for %f in F vector {                     %s = load src[%e]
 *         .. load z[%s, %f] .. }                 for %f in F vector { .. load z[%s, %f] .. }
 *     }                                        }
 *
 * A row at a computed place is in no cache and on nobody's list: without a hint each entry waits
 * for memory.  Segments lie one behind the other, so the entry some positions on is mostly the next
 * row's, and wanted soon too.  4, 8 and 16 entries ahead measured the same.  Up to sixteen lines of
 * a row are asked for: with four, leaving the others to the machine's own prefetcher, a training
 * step of GAT with 8 x 32 features took 1.91 s instead of 1.67.
 *
 * Where a row is taken in tiles each asks for its own part of it, and twice as far ahead, since an
 * entry's work is short: a layer of 256 features over 2.5 M entries took 75 ms instead of 88. */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

enum { UNKNOWN_LINES = 2 }; /* of a row whose width only data know */

/* A row that the entries of a loop gather. */
typedef struct {
    const LBuf *buf;
    const LStmt *index;
    bool tiled; /* its last index is the column: only the tile's part of the row is wanted */
} GatheredRow;

/* The search for gathered rows. */
typedef struct {
    PassCtx *p;
    Loops *l;
    LKernel *k;
    bool any;
    /* of a loop */
    const LStmt *loop;
    VEC(GatheredRow) row;
    int n_more; /* rows that there are beside these */
} PrefetchSearch;

/* Whether the statements look up rows through an index array and then run through them. */
static bool gathers_rows(const LStmt *s) {
    bool has_index = false, has_loop = false;
    for (; s; s = s->next) {
        has_index |=
            s->kind == L_LOAD && (s->buf->kind == LB_MAP_IDX || s->buf->kind == LB_MAP_PERM);
        has_loop |= s->kind == L_FOR || s->kind == L_TILE;
    }
    return has_index && has_loop;
}

/* The load that gives index r, if it reads an index array at the loop's own position (seen through
 * casts); NULL = it does not. */
static const LStmt *index_load(const LStmt *loop, const LReg *r) {
    for (const LStmt *s = loop->body; s; s = s->next) {
        if (s->dst != r) continue;
        bool cast = s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_CAST;
        if (cast) return index_load(loop, s->arg[0]);
        bool index = s->kind == L_LOAD && s->buf->kind != LB_LOCAL && s->buf->rank == 1;
        return index && s->idx[0] == loop->var && !dtype_is_float(s->buf->dt) ? s : NULL;
    }
    return NULL;
}

/* Records a row that the loop gathers, once for each buffer and index array. */
static void add_gathered_row(PrefetchSearch *search, const LBuf *buf, const LStmt *index,
                             bool tiled) {
    for (int i = 0; i < search->row.n; i++)
        if (search->row.v[i].buf == buf && search->row.v[i].index->buf == index->buf) return;
    if (search->row.n < pass_threshold(search->l->c, PASS_T_PREFETCH_ROWS))
        vec_push(search->l->a, &search->row, ((GatheredRow){buf, index, tiled}));
    else
        search->n_more++;
}

/* Finds the rows that the statements gather through index arrays. column: the variable of the
 * vector loop around them. */
static void find_gathered_rows(PrefetchSearch *search, const LStmt *s, const LReg *column) {
    for (; s; s = s->next) {
        if (loop_has_body(s))
            find_gathered_rows(search, s->body,
                               s->kind == L_FOR && s->sched.vector ? s->var : column);
        if (s->kind != L_LOAD || s->buf->kind == LB_LOCAL || s->buf->rank == 0) continue;
        const LStmt *index = index_load(search->loop, s->idx[0]);
        bool tiled = s->buf->rank == 2 && s->idx[1] == column;
        if (index) add_gathered_row(search, s->buf, index, tiled);
    }
}

/* How many cache lines of a row are prefetched: all of it, up to a limit. */
static int count_prefetched_lines(const Loops *l, const LBuf *b) {
    int64_t max_lines = pass_threshold(l->c, PASS_T_PREFETCH_LINES), extent;
    int64_t bytes = dtype_bytes(b->dt), line_bytes = l->machine.line;
    for (int i = 1; i < b->rank; i++) {
        if (!expr_is_const(b->dim[i], &extent))
            return (int)(max_lines < UNKNOWN_LINES ? max_lines : UNKNOWN_LINES);
        bytes = extent < max_lines * line_bytes ? bytes * extent : max_lines * line_bytes;
    }
    int64_t lines = (bytes + line_bytes - 1) / line_bytes;
    return (int)(lines < max_lines ? lines : max_lines);
}

/* Inserts a prefetch statement for each gathered row at the start of the loop, `distance` entries
 * ahead. tile: the tile of columns around the loop, or NULL. */
static void insert_prefetches(PrefetchSearch *search, LStmt *loop, const LStmt *tile,
                              int distance) {
    LStmt **at = &loop->body, *first = loop->body;
    for (int i = 0; i < search->row.n; i++) {
        const GatheredRow *r = &search->row.v[i];
        LStmt *s = NEW(search->l->a, LStmt);
        *s = (LStmt){.kind = L_PREFETCH, .span = loop->span, .next = first};
        s->buf = search->k->bufs.v[r->buf->id];
        s->ptr = search->k->bufs.v[r->index->buf->id];
        s->at = loop->var;
        s->ahead = distance;
        s->n_lines = tile && r->tiled ? 0 : count_prefetched_lines(search->l, r->buf);
        *at = s;
        at = &s->next;
    }
}

/* Adds prefetches of the gathered rows to one loop over entries. */
static void prefetch_loop(PrefetchSearch *search, LStmt *loop, const LStmt *tile) {
    int distance = pass_threshold(search->l->c, PASS_T_PREFETCH_AHEAD) * (tile ? 2 : 1);
    search->loop = loop;
    search->row.n = search->n_more = 0;
    find_gathered_rows(search, loop->body, NULL);
    insert_prefetches(search, loop, tile, distance);
    search->any |= search->row.n > 0;
    if (search->row.n)
        pass_remark(search->p, loop->span, "prefetch",
                    "rows that %s gathers are asked for %d ahead", search->k->name, distance);
    if (!search->row.n || search->n_more)
        pass_refusal(search->p, loop->span, "prefetch",
                     "rows that %s gathers are not asked for: %s", search->k->name,
                     search->n_more ? "there are too many"
                                    : "their places are no elements of an index array");
}

/* Adds prefetches to all loops over entries in a list. tile: the tile of columns around them, or
 * NULL. */
static void prefetch_loops(PrefetchSearch *search, LStmt *s, const LStmt *tile) {
    for (; s; s = s->next) {
        if (!loop_has_body(s) || s->sched.lanes || s->sched.flat) continue;
        const LStmt *first = s->body;
        bool is_entry_loop = s->kind == L_FOR && (s->range == LR_SEGMENT || s->sched.parallel);
        bool has_prefetch = first && first->kind == L_PREFETCH;
        if (s->kind == L_TILE)
            prefetch_loops(search, s->body, s);
        else if (s->sched.jam)
            prefetch_loops(search, loop_jammed_tile(s)->body, NULL);
        else
            prefetch_loops(search, s->body, tile);
        if (is_entry_loop && !has_prefetch && !s->sched.rows && gathers_rows(first))
            prefetch_loop(search, s, tile);
    }
}

/* Runs the pass on all kernels, where the processor has prefetch instructions. */
static bool run_prefetch(PassCtx *p, Loops *l) {
    if (!l->machine.prefetches || !pass_threshold(l->c, PASS_T_PREFETCH_AHEAD)) return true;
    for (int i = 0; i < l->k.n; i++) {
        PrefetchSearch search = {.p = p, .l = l, .k = l->k.v[i]};
        prefetch_loops(&search, search.k->body, NULL);
        if (search.any) loop_renumber_registers(search.k);
    }
    return true;
}

const Pass loop_pass_prefetch = {
    .name = "prefetch",
    .summary = "rows that entries gather are asked for before they come",
    .run_loops = run_prefetch,
};
