/* Heads around what is done for a row, where they stand inside it.
 *
 *     for v in N parallel {                         for v in N parallel {
 *       local m: f32[8]                               for h in 8 collapse {
 *       for f in 8 { store m[f] -inf }                  local m: f32
 *       for e in segment ptr[v] {                       store m -inf
 *         scalars of e                                  for e in segment ptr[v] {
 *         for f in 8 { acc max m[f] .. }                  scalars of e
 *       }                                                 acc max m ..
 *       local y: f32[8, 16]                             }
 *       for e in segment ptr[v] {                       local y: f32[16]
 *         for f in 8 {                                  for e in segment ptr[v] {
 *           scalars of e, f, m[f]                         scalars of e, h, m
 *           for c in 16 vector { acc y[f, c] .. }         for c in 16 vector { acc y[c] .. }
 *         }                                             }
 *       }                                             }
 *     }                                             }
 *
 * Heads do not need each other, so each becomes a part of the parallel loop's index and has a team:
 * a sum over entries into one number is then dealt to all of its threads, and one into columns to
 * lanes and ways.  What is read once for all heads of a row is read by each, out of the cache that
 * neighbouring teams share.  (Loop interchange and fission by iterations: Allen and Kennedy 1984.)
 */
#include "codegen/loop_passes/loops.h"
#include "passes/rewrite.h"

typedef struct {
    Loops *l;
    int *head_dim; /* [locals] which dimension heads are; -1 = none */
    LReg *head;
    int64_t n;       /* heads */
    const char *why; /* they cannot be around the row; NULL: they can */
} Heads;

/* Records why heads cannot be moved outside the row, if nothing was recorded before. */
static void set_illegal(Heads *h, const char *why) {
    if (!h->why) h->why = why;
}

/* Predicate for loop_find(): is the statement a loop of constant extent? */
static bool has_known_extent(const LStmt *s, const void *none) {
    int64_t n;
    return loop_extent(s, &n) && !none;
}

/* Finds, for each local array, the dimension that is indexed by the head; records a reason where
 * heads are not independent. head_loop: the loop over heads around s, or NULL. */
static void find_head_dims(Heads *h, const LStmt *s, const LStmt *head_loop) {
    Arena *a = h->l->a;
    for (; s && !h->why; s = s->next) {
        int64_t n;
        bool is_head_loop = !head_loop && loop_extent(s, &n);
        if (is_head_loop && n != h->n)
            set_illegal(h, arena_printf(a, "the row has loops of %lld and of %lld", (long long)h->n,
                                        (long long)n));
        if (loop_has_body(s)) find_head_dims(h, s->body, is_head_loop ? s : head_loop);
        if (s->kind == L_FOR && s->range == LR_EXTENT && !is_head_loop && !head_loop)
            set_illegal(h, arena_printf(a, "a loop over %s columns stands outside heads",
                                        loop_range_text(a, s)));
        if (loop_is_write(s) && !head_loop)
            set_illegal(h, arena_printf(a, "%s is written outside heads", s->buf->name));
        if (!loop_is_access(s) || s->buf->kind != LB_LOCAL) continue;
        if (head_loop && loop_declares(head_loop->body, s->buf)) continue;
        int dim = -1, *known_dim = &h->head_dim[s->buf->id];
        for (int i = 0; head_loop && i < s->buf->rank; i++)
            if (s->idx[i] == head_loop->var && (*known_dim < 0 || *known_dim == i)) dim = i;
        if (dim < 0) set_illegal(h, arena_printf(a, "heads meet in %s", s->buf->name));
        *known_dim = dim;
    }
}

/* Replaces the outermost loops over heads by their bodies, with the variable of the new outer loop.
 */
static void remove_head_loops(Heads *h, LStmt **at) {
    int64_t n;
    while (*at) {
        LStmt *s = *at;
        if (loop_extent(s, &n)) {
            loop_replace_register(s->body, s->var, h->head);
            at = loop_replace_by_body(at);
        } else {
            if (loop_has_body(s)) remove_head_loops(h, &s->body);
            at = &s->next;
        }
    }
}

/* Removes the dimension of heads from a local array: each iteration of the new outer loop has one
 * head. */
static void drop_dimension_of_heads(const Heads *h, LStmt *row, LBuf *b) {
    bool drop[MAX_RANK] = {0};
    if (h->head_dim[b->id] < 0) return;
    drop[h->head_dim[b->id]] = true;
    loop_drop_dims(row, b, drop);
}

/* Moves the loops over heads (of attention) outside the row, as one loop that is part of the
 * parallel loop's index. True if the kernel changed. */
static bool interchange_heads(Loops *l, LKernel *k) {
    LStmt **row = loop_row_list(k);
    const LStmt *first_head_loop = row ? loop_find(*row, has_known_extent, NULL) : NULL;
    Heads h = {.l = l};
    if (!first_head_loop || !loop_extent(first_head_loop, &h.n)) return false;
    h.head_dim = NEWN(l->a, int, (size_t)k->locals.n + 1);
    for (int i = 0; i < k->locals.n; i++) h.head_dim[i] = -1;
    find_head_dims(&h, *row, NULL);
    if (h.why) {
        pass_refusal(l->pass, k->span, "interchange", "%s: not: %s", k->name, h.why);
        return false;
    }
    pass_remark(l->pass, k->span, "interchange", "%s: %lld heads are around a row", k->name,
                (long long)h.n);
    LStmt *loop = NEW(l->a, LStmt);
    *loop =
        (LStmt){.kind = L_FOR, .extent = first_head_loop->extent, .span = first_head_loop->span};
    loop->sched.collapse = true;
    h.head = loop->var = loop_new_register(l->a, k, DT_I64, "h", loop);
    remove_head_loops(&h, row);
    for (int i = 0; i < k->locals.n; i++) drop_dimension_of_heads(&h, *row, k->locals.v[i]);
    loop->body = *row;
    *row = loop;
    return true;
}

/* Runs the pass (loop interchange) on all kernels. */
static bool run_interchange(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, interchange_heads);
}

const Pass loop_pass_interchange = {
    .name = "interchange",
    .summary =
        "heads that need nothing of each other around the row, as part of the parallel index",
    .run_loops = run_interchange,
};
