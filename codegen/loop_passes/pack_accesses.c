/* Neighbouring elements are loaded and stored at once.
 *
 *     kernel k by teams lanes 4 pack 4 .. {        kernel k by teams lanes 4 pack 4 .. {
 *       for %f in 16 vector {               =>       for %f in 16 vector {
 *         %z = load z[%v, %f]                          %z = load z[%v, %f] pack
 *
 * Vectorised memory accesses: of the columns that a lane has, or the elements that a thread has
 * (`coarsen-lanes`, `coarsen-threads`), those that lie side by side, 16 bytes at most.  A buffer
 * that is written is reached through its pack alone. */
#include "codegen/loop_passes/team.h"
#include "passes/rewrite.h"

/* ---- columns of a lane ---------------------------------------------------------------------- */
typedef struct {
    const LoopColumns *r;
    int pack;
    bool mark; /* else: looks for one that may not be */
    int n;
    const LStmt *bad;
} LanePacks;

/* Counts, and with `mark` marks, the accesses in s .. end that reach all neighbouring columns of a
 * lane at once. bad: an access that is marked and cannot be. column_loop: the loop over a lane's
 * own columns around s, or NULL. */
static void visit_lane_accesses(LanePacks *packs, LStmt *s, const LStmt *end,
                                const LStmt *column_loop) {
    for (; s != end; s = s->next) {
        const bool is_packable =
            loop_is_access(s) && column_loop && loop_is_packed(s, column_loop, packs->pack);
        if (is_packable && packs->mark) s->packed = true;
        if (loop_is_access(s) && s->packed && !is_packable) packs->bad = s;
        packs->n += is_packable;
        const bool is_own_column_loop = loop_is_columns(s) && !loop_is_round_robin(packs->r, s);
        if (loop_has_body(s))
            visit_lane_accesses(packs, s->body, NULL, is_own_column_loop ? s : NULL);
    }
}

/* The packed accesses of a kernel that teams run: those to neighbouring columns of a lane. mark:
 * mark them in the text, else check the marks that it has. */
static LanePacks find_lane_packs(const LoopTeam *t, bool mark) {
    LanePacks packs = {.pack = loop_pack(t->k), .mark = mark};
    for (int i = 0; i < t->regions.n && packs.pack > 1; i++) {
        packs.r = &t->regions.v[i];
        if (packs.r->range->range == LR_EXTENT)
            visit_lane_accesses(&packs, packs.r->stmt->body, NULL, NULL);
    }
    return packs;
}

/* ---- elements of a thread ------------------------------------------------------------------- */
typedef struct {
    const LoopElements *e;
    bool mark;
    int n;
    const LStmt *bad;
} ThreadPacks;

/* The buffer of access s, if each thread accesses it at its own neighbouring elements; NULL = it
 * does not. */
static const LoopStream *own_stream_of(const LoopElements *e, const LStmt *s) {
    for (int i = 0; i < e->streams.n; i++) {
        const LoopStream *candidate = &e->streams.v[i];
        if (candidate->buf == s->buf && loop_is_packed_buffer(candidate) &&
            loop_is_at_own_element(e->nest, s))
            return candidate;
    }
    return NULL;
}

/* Counts, and with `mark` marks, the accesses that reach all neighbouring elements of a thread at
 * once. bad: one that is marked and cannot be, or is not and must be. */
static void visit_thread_accesses(ThreadPacks *packs, LStmt *s) {
    for (; s; s = s->next) {
        const LoopStream *own = loop_is_access(s) ? own_stream_of(packs->e, s) : NULL;
        if (own && packs->mark) s->packed = true;
        /* one that is written is nowhere but there */
        bool is_missing = own && own->written && own->packed && !s->packed;
        if (loop_is_access(s) && (is_missing || (!own && s->packed))) packs->bad = s;
        packs->n += own && s->packed;
        if (loop_has_body(s)) visit_thread_accesses(packs, s->body);
    }
}

/* The packed accesses of a kernel that single threads run: those to neighbouring elements of a
 * thread. mark: mark them in the text, else check the marks that it has. */
static ThreadPacks find_thread_packs(Arena *a, const LKernel *k, bool mark) {
    const LoopNest nest = loop_collapsed_nest(k);
    const LoopElements packable = loop_find_packable(a, k, &nest);
    ThreadPacks packs = {.e = &packable, .mark = mark};
    if (nest.n && loop_pack(k) > 1) visit_thread_accesses(&packs, k->body);
    packs.e = NULL;
    return packs;
}

/* ---- both ----------------------------------------------------------------------------------- */
const LStmt *loop_unpackable(Arena *a, const LKernel *k, const LoopTeam *t) {
    if (t) return find_lane_packs(t, false).bad;
    return find_thread_packs(a, k, false).bad;
}

/* Runs the pass: marks the accesses that load or store several neighbouring elements or columns at
 * once. */
static bool run_pack_accesses(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        int n_accesses = 0;
        if (!k->threads.kind) continue;
        if (k->threads.kind == LT_THREAD) {
            n_accesses = find_thread_packs(l->a, k, true).n;
        } else {
            const LoopTeam t = loop_team(l->a, l->on, k, false);
            n_accesses = t.fault ? 0 : find_lane_packs(&t, true).n;
        }
        loop_remark(p, k, "pack-accesses",
                    n_accesses ? arena_printf(l->a, "%d accesses reach %d elements at once",
                                              n_accesses, loop_pack(k))
                               : NULL,
                    loop_pack(k) > 1 ? "none: nothing lies side by side"
                                     : "none: one element or column at a time");
    }
    return true;
}

const Pass loop_pass_pack_accesses = {
    .name = "pack-accesses",
    .summary = "neighbouring elements are loaded and stored at once",
    .run_loops = run_pack_accesses,
};
