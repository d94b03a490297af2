/* Steps of a phase that need nothing of each other, in several streams of a device.
 *
 *     2: gemm(dz, w, dx)                         2: gemm(dz, w, dx)
 *     3: gemm(x, dz, dw) long_k           =>     3: gemm(x, dz, dw) long_k stream 1 after 1
 *     4: kernel update(dw, w)                    4: kernel update(dw, w) stream 0 after 3
 *
 * A step is behind the steps before it in its stream, and behind those that it waits for (`after`).
 * The graph that a device records of the phase then has branches (CUDA graphs; Rammer, Ma et al.
 * 2020, and Opara, Chen et al. 2023, on why small operators want that): a kernel that fills a part
 * of the device runs beside others.  Run one after the other, in their order, the steps are right
 * as well, so everybody else takes no notice.
 *
 * Steps are placed in their order, as in list scheduling: each continues the stream of a step that
 * it needs, unless one with more steps behind it needs that one, too; else it gets a stream in
 * which nothing is that it would have to wait for.  A temporary's bytes are another's only when all
 * who use it are done before (lifetimes, plan_live.c), so steps beside each other need more memory:
 * where that would be too much, a step waits for all before it. */
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "passes/rewrite.h"
#include "passes/threshold.h"

/* ---- what is behind what ------------------------------------------------------------------- */
/* The step that does the work of step i on a device: its product, the first of its group, or it. */
static int done_by(const PPhase *ph, int i) {
    const PStep *s = ph->steps.v[i];
    if (s->covered_by) return plan_step_index(ph, s->covered_by);
    return s->group ? plan_step_index(ph, s->group->steps.v[0]) : i;
}

/* An order of a phase of which nothing is known yet: each step comes after all before it. */
static StreamOrder new_order(Arena *a, const PPhase *ph) {
    const int n = ph->steps.n;
    StreamOrder o = {.n = n};
    o.by = NEWN(a, int, (size_t)n + 1);
    o.stream = NEWN(a, int, (size_t)n + 1);
    o.seen = (int(*)[RT_STREAMS_MAX])NEWN(a, int, ((size_t)n + 1) * RT_STREAMS_MAX);
    for (int i = 0; i < n; i++) {
        o.by[i] = done_by(ph, i);
        for (int s = 0; s < RT_STREAMS_MAX; s++) o.seen[i][s] = n;
    }
    for (int s = 0; s < RT_STREAMS_MAX; s++) o.tail[s] = -1;
    return o;
}

/* Takes over what is done when step `earlier` is. */
static void see(int seen[RT_STREAMS_MAX], const StreamOrder *o, int earlier) {
    for (int s = 0; s < RT_STREAMS_MAX; s++)
        if (o->seen[earlier][s] > seen[s]) seen[s] = o->seen[earlier][s];
}

/* Places step i behind those that are in the stream, and behind the steps `after`. */
static void place(StreamOrder *o, int i, int stream, const int *after, int n_after) {
    int seen[RT_STREAMS_MAX];
    for (int s = 0; s < RT_STREAMS_MAX; s++) seen[s] = -1;
    if (o->tail[stream] >= 0) see(seen, o, o->tail[stream]);
    for (int k = 0; k < n_after; k++) see(seen, o, after[k]);
    seen[stream] = i;
    memcpy(o->seen[i], seen, sizeof seen);
    o->stream[i] = stream;
    o->tail[stream] = i;
}

/* Whether step `earlier` is done when `later` begins; both do work of their own. */
static bool is_behind(const StreamOrder *o, int later, int earlier) {
    return o->seen[later][o->stream[earlier]] >= earlier;
}

StreamOrder plan_stream_order(Arena *a, const PPhase *ph) {
    StreamOrder o = new_order(a, ph);
    for (int i = 0; i < ph->steps.n; i++) {
        const PBranch *b = ph->steps.v[i]->branch;
        int after[RT_STREAMS_MAX] = {0}, n_after = b ? b->n_after : 0;
        if (o.by[i] != i) {
            memcpy(o.seen[i], o.seen[o.by[i]], sizeof o.seen[i]);
            o.stream[i] = o.stream[o.by[i]];
            continue;
        }
        for (int k = 0; k < n_after; k++) after[k] = plan_step_index(ph, b->after[k]);
        place(&o, i, b ? b->stream : 0, after, n_after);
    }
    return o;
}

bool plan_has_streams(const PPhase *ph) {
    for (int i = 0; i < ph->steps.n; i++)
        if (ph->steps.v[i]->branch) return true;
    return false;
}

int plan_stream_life(const StreamOrder *o, const int used[RT_STREAMS_MAX], int last) {
    for (int i = o->n - 1; i > last; i--)
        for (int s = 0; o->by[i] == i && s < RT_STREAMS_MAX; s++)
            if (o->seen[i][s] < used[s]) return i;
    return last;
}

void plan_stream_use(const StreamOrder *o, int used[RT_STREAMS_MAX], int step) {
    const int by = o->by[step], stream = o->stream[by];
    if (by > used[stream]) used[stream] = by;
}

/* ---- what needs what ----------------------------------------------------------------------- */
/* The steps of a step's group, or it alone. */
static PStep *const *steps_of(PStep *const *s, int *n) {
    const PGroup *g = (*s)->group;
    *n = g ? g->steps.n : 1;
    return g ? g->steps.v : s;
}

/* Whether step i, with its group, must be behind step k, with its. */
static bool needs(const PPhase *ph, int i, int k) {
    int n_later, n_earlier;
    PStep *const *later = steps_of(&ph->steps.v[i], &n_later);
    PStep *const *earlier = steps_of(&ph->steps.v[k], &n_earlier);
    for (int x = 0; x < n_later; x++)
        for (int y = 0; y < n_earlier; y++)
            if (plan_must_stay_ordered(earlier[y], later[x])) return true;
    return false;
}

/* Whether a step may be in another stream than the first.  Ranks share working memory, and a
 * function of the user's is given the stream of the phase. */
static bool may_be_aside(const PStep *s) {
    return s->kind == PS_KERNEL || s->kind == PS_GEMM || s->kind == PS_COPY;
}

/* Why all steps of a phase are in one stream; NULL: they need not be. */
static const char *one_stream_reason(Arena *a, const Plan *p, const PPhase *ph) {
    if (p->partitioned) return "processes share its rows";
    if (ph->func && ph->func->phase == PHASE_LOAD) return "it runs once";
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (s->kind == PS_LOOP) return "it has a loop";
        if (plan_step_interrupts(s, true)) return "the host takes part";
    }
    if (plan_runs_on_batches(p, ph) && !plan_has_buckets(a, p, ph))
        return "batches have sizes of their own, so that it is not recorded";
    return NULL;
}

const char *plan_streams_misfit(Arena *a, const Plan *p, const PPhase *ph, int *at) {
    bool *done = NEWN(a, bool, (size_t)ph->steps.n + 1);
    for (int i = *at = 0; i < ph->steps.n; i = ++*at) {
        const PStep *s = ph->steps.v[i];
        const PBranch *b = s->branch;
        done[i] = done_by(ph, i) == i;
        if (!b) continue;
        if (!p->device) return "a stream, in a plan for no device";
        if (!done[i]) return "a stream of a step that another one does";
        if (b->stream && !may_be_aside(s)) return "it must be in stream 0";
        for (int k = 0; k < b->n_after; k++)
            if (!done[plan_step_index(ph, b->after[k])])
                return "it waits for a step that another one does";
    }
    const char *why = one_stream_reason(a, p, ph);
    *at = 0;
    if (why) return arena_printf(a, "streams, though %s", why);
    StreamOrder o = plan_stream_order(a, ph);
    for (int i = 0; i < ph->steps.n; i = ++*at)
        for (int k = 0; k < i && done[i]; k++)
            if (done[k] && !is_behind(&o, i, k) && needs(ph, i, k))
                return arena_printf(a, "it may run before step %d is done", k);
    return NULL;
}

/* ---- the pass ------------------------------------------------------------------------------ */
/* The search for streams of a phase. */
typedef struct {
    PassCtx *pc;
    PPhase *ph;
    int n;             /* steps */
    StreamOrder order; /* of the steps that were placed */
    bool *needed;      /* [n * n] step i must be behind step k */
    int *height;       /* by step: steps of the longest chain behind it */
    Lives lives;
    int64_t peak, most_bytes; /* that are live in one stream; that may be */
    int n_streams, n_waits, n_held;
} StreamSearch;

static bool needed(const StreamSearch *f, int i, int k) {
    return f->needed[(size_t)i * (size_t)f->n + (size_t)k];
}

/* Finds which steps need which, and how many steps are behind each. */
static void find_needs(StreamSearch *f) {
    const int *by = f->order.by;
    for (int i = f->n - 1; i >= 0; i--) {
        if (by[i] != i) continue;
        f->height[i] = 1;
        for (int j = i + 1; j < f->n; j++) {
            if (by[j] != j || !needs(f->ph, j, i)) continue;
            f->needed[(size_t)j * (size_t)f->n + (size_t)i] = true;
            if (f->height[j] + 1 > f->height[i]) f->height[i] = f->height[j] + 1;
        }
    }
}

/* Whether the last step of the stream is one that step i is behind anyway. */
static bool may_continue(const StreamSearch *f, int i, int stream) {
    const int tail = f->order.tail[stream];
    for (int k = 0; k < i; k++)
        if (needed(f, i, k) && f->order.seen[k][stream] >= tail) return true;
    return false;
}

/* Whether a later step, behind which more steps are, should continue the stream. */
static bool is_wanted_later(const StreamSearch *f, int i, int stream) {
    for (int j = i + 1; j < f->n; j++)
        if (needed(f, j, f->order.tail[stream]) && f->height[j] > f->height[i]) return true;
    return false;
}

/* The stream for step i. */
static int choose_stream(const StreamSearch *f, int i) {
    const int *tail = f->order.tail;
    int best = -1, unused = -1, oldest = 0;
    if (!may_be_aside(f->ph->steps.v[i])) return 0;
    for (int s = f->n_streams - 1; s >= 0; s--) {
        if (tail[s] < 0) unused = s;
        if (tail[s] < 0 || is_wanted_later(f, i, s)) continue;
        if (may_continue(f, i, s) && (best < 0 || tail[s] > tail[best])) best = s;
        if (tail[oldest] < 0 || is_wanted_later(f, i, oldest) || tail[s] < tail[oldest]) oldest = s;
    }
    return best >= 0 ? best : unused >= 0 ? unused : oldest;
}

/* after[] gets the steps of other streams that step i waits for in the stream: the last of each
 * that it needs (all: that there is), and of these none that another one was behind. Returns how
 * many. */
static int find_waits(const StreamSearch *f, int i, int stream, bool all, int *after) {
    const StreamOrder *o = &f->order;
    int seen[RT_STREAMS_MAX], n = 0;
    for (int s = 0; s < RT_STREAMS_MAX; s++) seen[s] = -1;
    if (o->tail[stream] >= 0) see(seen, o, o->tail[stream]);
    for (int k = i - 1; k >= 0; k--) {
        if (o->by[k] != k || o->stream[k] == stream || seen[o->stream[k]] >= k) continue;
        if (!all && !needed(f, i, k)) continue;
        after[n++] = k;
        see(seen, o, k);
    }
    return n;
}

/* Places step i in the stream; returns the bytes that are live at most then. */
static int64_t try_stream(StreamSearch *f, int i, int stream, bool all) {
    int after[RT_STREAMS_MAX], n = find_waits(f, i, stream, all, after);
    place(&f->order, i, stream, after, n);
    PBranch *b = f->ph->steps.v[i]->branch = NULL;
    if (stream || n) {
        b = f->ph->steps.v[i]->branch = NEW(f->pc->a, PBranch);
        b->stream = stream;
        b->n_after = n;
        for (int k = 0; k < n; k++) b->after[k] = f->ph->steps.v[after[k]];
    }
    return plan_lives_peak(&f->lives);
}

/* Places step i: where it can run beside others, or, if too much would be live then, behind all. */
static void place_step(StreamSearch *f, int i) {
    const StreamOrder before = f->order;
    const PStep *s = f->ph->steps.v[i];
    const int64_t bytes = try_stream(f, i, choose_stream(f, i), false);
    if (bytes <= f->most_bytes) return;
    f->order = before;
    try_stream(f, i, 0, true);
    f->n_held++;
    pass_refusal(
        f->pc, s->span, "assign-streams",
        "'%s' waits for all steps before it: beside them, %.3g times as much would be live",
        pass_named(s->op), (double)bytes / (double)(f->peak ? f->peak : 1));
}

/* Counts streams that are used, and what waits for other streams. */
static int count_streams(StreamSearch *f) {
    int n = 0;
    for (int s = 0; s < RT_STREAMS_MAX; s++) n += f->order.tail[s] >= 0;
    for (int i = 0; i < f->n; i++) {
        const PBranch *b = f->ph->steps.v[i]->branch;
        f->n_waits += b ? b->n_after : 0;
    }
    return n;
}

/* Gives the steps of a phase their streams. */
static void assign(PassCtx *pc, const Plan *p, PPhase *ph) {
    const size_t n = (size_t)ph->steps.n, n_pairs = n * n;
    const int percent = pass_threshold(pc->ctx, PASS_T_STREAMS_BYTES);
    StreamSearch f = {.pc = pc, .ph = ph, .n = ph->steps.n, .order = new_order(pc->a, ph)};
    f.n_streams = pass_threshold(pc->ctx, PASS_T_STREAMS);
    f.needed = NEWN(pc->a, bool, n_pairs + 1);
    f.height = NEWN(pc->a, int, n + 1);
    f.lives = plan_lives(pc->a, p, ph);
    f.peak = plan_lives_peak(&f.lives);
    f.most_bytes = f.peak + f.peak / 100 * percent;
    f.lives.order = &f.order;
    find_needs(&f);
    for (int i = 0; i < f.n; i++)
        if (f.order.by[i] == i)
            place_step(&f, i);
        else
            memcpy(f.order.seen[i], f.order.seen[f.order.by[i]], sizeof f.order.seen[i]);
    const int n_streams = count_streams(&f);
    if (n_streams > 1)
        pass_remark(pc, ph->func->span, "assign-streams",
                    "@%s: %d streams, of which steps wait for others %d times", ph->name, n_streams,
                    f.n_waits);
    else
        pass_declined(pc, ph->func->span, "assign-streams", "@%s: one stream: %s", ph->name,
                      f.n_held ? "more would be live with several"
                               : "each step needs the one before it");
}

static bool run(PassCtx *pc, Plan *p) {
    const int most = pass_threshold(pc->ctx, PASS_T_STREAMS_STEPS);
    for (int i = 0; p->device && i < p->phases.n; i++) {
        PPhase *ph = p->phases.v[i];
        const char *why = one_stream_reason(pc->a, p, ph);
        if (!why && ph->steps.n > most)
            why = arena_printf(pc->a, "it has more than %d steps", most);
        if (why)
            pass_declined(pc, ph->func->span, "assign-streams", "@%s: one stream: %s", ph->name,
                          why);
        else if (ph->steps.n > 1)
            assign(pc, p, ph);
    }
    return true;
}

const Pass plan_pass_assign_streams = {
    .name = "assign-streams",
    .summary = "let a device run steps beside each other that need nothing of each other",
    .needs = PLAN_STEPS,
    .gives = PLAN_STREAMS,
    .breaks = PLAN_LIVES,
    .bars = PLAN_STREAMS,
    .run_plan = run,
};
