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
} Lanes;

static void lanes_in(Lanes *x, LStmt *s, const LStmt *end, const LStmt *loop) {
    for (; s != end; s = s->next) {
        const bool at = loop_is_access(s) && loop && loop_is_packed(s, loop, x->pack);
        if (at && x->mark) s->packed = true;
        if (loop_is_access(s) && s->packed && !at) x->bad = s;
        x->n += at;
        const bool columns = loop_is_columns(s) && !loop_is_round_robin(x->r, s);
        if (loop_has_body(s)) lanes_in(x, s->body, NULL, columns ? s : NULL);
    }
}

static Lanes lanes(const LoopTeam *t, bool mark) {
    Lanes x = {.pack = loop_pack(t->k), .mark = mark};
    for (int i = 0; i < t->regions.n && x.pack > 1; i++) {
        x.r = &t->regions.v[i];
        if (x.r->range->range == LR_EXTENT) lanes_in(&x, x.r->stmt->body, NULL, NULL);
    }
    return x;
}

/* ---- elements of a thread ------------------------------------------------------------------- */
typedef struct {
    const LoopElements *e;
    bool mark;
    int n;
    const LStmt *bad;
} Elements;

static const LoopStream *stream(const LoopElements *e, const LStmt *s) {
    for (int i = 0; i < e->streams.n; i++) {
        const LoopStream *x = &e->streams.v[i];
        if (x->buf == s->buf && loop_is_packed_buffer(x) && loop_is_at_own_element(e->nest, s))
            return x;
    }
    return NULL;
}

static void elements_in(Elements *x, LStmt *s) {
    for (; s; s = s->next) {
        const LoopStream *in = loop_is_access(s) ? stream(x->e, s) : NULL;
        if (in && x->mark) s->packed = true;
        /* one that is written is nowhere but there */
        bool lacks = in && in->written && in->packed && !s->packed;
        if (loop_is_access(s) && (lacks || (!in && s->packed))) x->bad = s;
        x->n += in && s->packed;
        if (loop_has_body(s)) elements_in(x, s->body);
    }
}

static Elements elements(Arena *a, const LKernel *k, bool mark) {
    const LoopNest nest = loop_collapsed_nest(k);
    const LoopElements e = loop_find_packable(a, k, &nest);
    Elements x = {.e = &e, .mark = mark};
    if (nest.n && loop_pack(k) > 1) elements_in(&x, k->body);
    x.e = NULL;
    return x;
}

/* ---- both ----------------------------------------------------------------------------------- */
const LStmt *loop_unpackable(Arena *a, const LKernel *k, const LoopTeam *t) {
    if (t) return lanes(t, false).bad;
    return elements(a, k, false).bad;
}

static bool run(PassCtx *p, Loops *l) {
    for (int i = 0; i < l->k.n; i++) {
        LKernel *k = l->k.v[i];
        int n = 0;
        if (!k->threads.kind) continue;
        if (k->threads.kind == LT_THREAD) {
            n = elements(l->a, k, true).n;
        } else {
            const LoopTeam t = loop_team(l->a, l->on, k, false);
            n = t.fault ? 0 : lanes(&t, true).n;
        }
        loop_remark(p, k, "pack-accesses",
                    n ? arena_printf(l->a, "%d accesses reach %d elements at once", n, loop_pack(k))
                      : NULL,
                    loop_pack(k) > 1 ? "none: nothing lies side by side"
                                     : "none: one element or column at a time");
    }
    return true;
}

const Pass loop_pass_pack_accesses = {
    .name = "pack-accesses",
    .summary = "neighbouring elements are loaded and stored at once",
    .run_loops = run,
};
