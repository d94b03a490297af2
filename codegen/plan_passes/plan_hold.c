/* What a device has room for, where processes share rows: own rows, and those that it reads.
 *
 *     train_z_13: f32[16*N_paper]             train_z_13: f32[16*N_paper] own paper
 *     src_cites_idx: i32[E_cites]       =>    src_cites_idx: i32[E_cites] own cites local
 *
 * A buffer that is `own` has, in each process, the rows that the process owns and those of others
 * that its steps reach through index arrays (the halo), side by side: the runtime numbers the rows
 * of others anew, below and above the own ones, which keep their numbers, and an index array that
 * is `local` has these numbers (runtime/device/device_held.c).  So kernels are those of all rows.
 *
 * An index array leads into several buffers, and several lead into one: all of these have the
 * numbers of the data, or none of them.  They are found by union-find over the places of buffers
 * and the numbers in index arrays.  Those that some step needs all of keep the numbers of the data:
 * what is brought to all, parameters, index arrays that steps of all rows read.
 *
 * Numbering a process's rows and then its halo is what DistDGL and DistGNN do (Zheng et al. 2020,
 * Md et al. 2021); there own rows begin with 0. */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/plan_passes/plan_reads.h"
#include "passes/rewrite.h"

typedef struct {
    Arena *a;
    const Plan *p;
    int *leader; /* [2 * bufs] the rows of buffer b, and at bufs + b the numbers that it holds */
    bool *whole; /* by leader: all rows, in the numbers of the data */
} Held;

static int numbers_in(const Held *h, int b) {
    return h->p->bufs.n + b;
}

static int leader_of(const Held *h, int i) {
    while (h->leader[i] != i) i = h->leader[i] = h->leader[h->leader[i]];
    return i;
}

static void unite(Held *h, int i, int k) {
    i = leader_of(h, i);
    k = leader_of(h, k);
    h->leader[k] = i;
    h->whole[i] |= h->whole[k];
}

static void keep_whole(Held *h, int i) {
    h->whole[leader_of(h, i)] = true;
}

static bool is_whole(const Held *h, int i) {
    return h->whole[leader_of(h, i)];
}

/* All of the buffer is needed, in the numbers of the data. */
static void keep_all(Held *h, int b) {
    keep_whole(h, b);
    keep_whole(h, numbers_in(h, b));
}

/* ---- what may be held ----------------------------------------------------------------------- */
static bool is_index(const PBuf *b) {
    return b->kind == PB_MAP && b->map_part != LB_MAP_PTR;
}

/* Whether the numbers of an index array stand in the order of a map's segments: of which map. */
static Map *order_of(const PBuf *b) {
    return b->map_part == LB_MAP_PERM ? b->map : b->by;
}

/* The space whose rows the buffer has, or of whose rows it has the segments, one after the other;
 * NULL: all of it is needed. */
static Space *space_of(const PBuf *b) {
    Space *s = NULL;
    if (is_index(b)) s = order_of(b) ? order_of(b)->to : b->map->from;
    if (b->kind == PB_LOGICAL) s = b->space;
    if (b->kind == PB_TEMP || b->kind == PB_DATA || b->kind == PB_SAVED) s = plan_buffer_rows(b);
    return plan_is_partitioned_space(s) ? s : NULL;
}

/* The space of the rows whose numbers an index array holds; NULL: nobody owns these. */
static Space *space_of_numbers(const PBuf *b) {
    Space *s = !is_index(b) ? NULL : b->map_part == LB_MAP_PERM ? b->map->from : b->map->to;
    return plan_is_partitioned_space(s) ? s : NULL;
}

/* ---- what steps read ------------------------------------------------------------------------ */
/* A path through the segments of rows of others: these have the numbers of the data. */
static bool has_segments_of_others(const Held *h, const PHalo *path) {
    for (int i = 1; i < path->n_via; i++)
        if (!is_index(h->p->bufs.v[path->via[i]])) return true;
    return false;
}

static void keep_path(Held *h, const PHalo *path) {
    for (int i = 0; i < path->n_via; i++) keep_whole(h, numbers_in(h, path->via[i]));
}

/* Whether the read is of own rows, or of the segments of own rows. */
static bool is_of_own(const PBuf *b, const RowStep *at) {
    if (at->halo.n_via == 0) return !(is_index(b) && order_of(b)) && at->space == space_of(b);
    return at->halo.n_via == 1 && is_index(b) && order_of(b) && at->segments_of == order_of(b) &&
           at->halo.from == order_of(b)->to;
}

static void note_read(Held *h, const RowRead *r) {
    const PBuf *b = h->p->bufs.v[r->buf];
    const PHalo *path = &r->at.halo;
    if (r->at.is_known && is_of_own(b, &r->at)) return;
    const int last = path->n_via ? path->via[path->n_via - 1] : -1;
    bool known = r->at.is_known && last >= 0 && is_index(h->p->bufs.v[last]) &&
                 !(is_index(b) && order_of(b)) && r->at.space == space_of(b) &&
                 !has_segments_of_others(h, path);
    if (known) {
        unite(h, r->buf, numbers_in(h, last));
        return;
    }
    keep_path(h, path);
    keep_all(h, r->buf);
}

static void note_step(Held *h, const PPhase *ph, const PStep *s) {
    const bool shares = plan_shares_rows(h->p, ph) && s->partition;
    if (s->kind == PS_EXCHANGE && (s->halos.n || s->partials)) return;
    if (s->kind == PS_EXCHANGE || !shares) {
        for (int i = 0; i < s->n_bufs; i++) keep_all(h, s->bufs[i]);
    } else {
        StepReads r = plan_step_reads(h->a, h->p, s);
        for (int i = 0; i < r.reads.n; i++) note_read(h, &r.reads.v[i]);
        for (int i = 0; i < r.index_reads.n; i++) note_read(h, &r.index_reads.v[i]);
        for (int i = 0; i < r.used.n; i++) keep_whole(h, numbers_in(h, r.used.v[i]));
    }
    if (s->pred >= 0) keep_all(h, s->pred);
}

/* Numbers of rows are local only in an array of which a process knows what it holds. */
static void settle(Held *h) {
    for (bool more = true; more;) {
        more = false;
        for (int b = 0; b < h->p->bufs.n; b++) {
            if (!is_whole(h, b) || is_whole(h, numbers_in(h, b))) continue;
            keep_whole(h, numbers_in(h, b));
            more = true;
        }
    }
}

static Held find_held(Arena *a, const Plan *p) {
    Held h = {.a = a, .p = p};
    h.leader = NEWN(a, int, 2 * (size_t)p->bufs.n + 1);
    h.whole = NEWN(a, bool, 2 * (size_t)p->bufs.n + 1);
    for (int i = 0; i < 2 * p->bufs.n; i++) h.leader[i] = i;
    for (int b = 0; b < p->bufs.n; b++) {
        if (!space_of(p->bufs.v[b])) keep_whole(&h, b);
        if (!space_of_numbers(p->bufs.v[b])) keep_whole(&h, numbers_in(&h, b));
    }
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < p->phases.v[i]->steps.n; k++)
            note_step(&h, p->phases.v[i], p->phases.v[i]->steps.v[k]);
    settle(&h);
    return h;
}

/* ---- the pass -------------------------------------------------------------------------------- */
bool plan_is_held_rightly(Arena *a, const Plan *p, const PBuf **wrong) {
    bool any = false, right = true;
    for (int b = 0; b < p->bufs.n; b++) any |= p->bufs.v[b]->own || p->bufs.v[b]->local;
    if (!any) return true;
    Held h = find_held(a, p);
    for (int b = 0; b < p->bufs.n && right; b++) {
        const PBuf *of = *wrong = p->bufs.v[b];
        right = of->own == (is_whole(&h, b) ? NULL : space_of(of)) &&
                of->local == !is_whole(&h, numbers_in(&h, b));
    }
    return right;
}

static bool run(PassCtx *pc, Plan *p) {
    if (!p->partitioned) return true;
    Held h = find_held(p->m->a, p);
    const Span at = p->phases.n ? p->phases.v[0]->func->span : (Span){0};
    int n = 0, n_whole = 0;
    for (int b = 0; b < p->bufs.n; b++) {
        PBuf *of = p->bufs.v[b];
        of->own = is_whole(&h, b) ? NULL : space_of(of);
        of->local = !is_whole(&h, numbers_in(&h, b));
        n += of->own != NULL;
        if (of->own || !space_of(of)) continue;
        n_whole++;
        pass_refusal(pc, at, "hold-rows",
                     "all rows of %s are in each process: some step needs them, or their numbers",
                     of->name);
    }
    pass_remark(pc, at, "hold-rows",
                "of %d buffers a process holds own rows and those that it reads, of %d all rows", n,
                n_whole);
    return true;
}

const Pass plan_pass_hold_rows = {
    .name = "hold-rows",
    .summary = "hold, on a device, own rows and those that steps read of others",
    .needs = PLAN_STEPS,
    .run_plan = run,
};
