/* How the iterations of a kernel meet threads: a team of threads for each (team.c) where that
 * is seen to be safe and there is something to share, if need be in another order (heads.c), else
 * a thread for each.
 *
 * Loops that stand alone inside the parallel loop and write disjoint elements become part
 * of its index:
 *
 *     for v in N parallel {            for i in N*8: v = i / 8, h = i % 8 {
 *       scalars of v                     scalars of v
 *       for h in 8 { y[v, h] = .. }      y[v, h] = ..
 *     }                                } */
#include "codegen/cuda/cuda.h"

static bool is_pure(const LStmt *s) {
    return s->kind == L_LET || s->kind == L_LOAD;
}

/* Every store and acc to an argument below s, and every load of what is written, has index r
 * at one place. */
static bool all_at(const LStmt *s, const LReg *r, int *place) {
    for (; s; s = s->next) {
        if ((s->kind == L_FOR || s->kind == L_IF) && !all_at(s->body, r, place)) return false;
        bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
        if (!access || s->buf->kind == LB_LOCAL || !s->buf->written) continue;
        int *p = &place[s->buf->id], at = -1;
        for (int i = 0; i < s->buf->rank; i++)
            if (s->idx[i] == r && (*p < 0 || *p == i)) at = i;
        if (at < 0) return false;
        *p = at;
    }
    return true;
}

/* The loop that ends the block, when all before it is cheap and nothing but it has effects. */
static const LStmt *only_loop(const LStmt *s) {
    while (s && is_pure(s)) s = s->next;
    bool plain = s && s->kind == L_FOR && !s->next && s->range == LR_EXTENT;
    return plain ? s : NULL;
}

static bool loads_written(const LStmt *s) {
    for (; s; s = s->next)
        if (s->kind == L_LOAD && s->buf->written) return true;
    return false;
}

static const LStmt *collapsible(CuFn *f, const LStmt *body, bool vector_too) {
    const LStmt *l = only_loop(body);
    if (!l || loads_written(body) || (l->sched.vector && !vector_too)) return NULL;
    int *place = NEWN(f->a, int, f->k->bufs.n + 1);
    for (int i = 0; i < f->k->bufs.n; i++) place[i] = -1;
    return all_at(l->body, l->var, place) ? l : NULL;
}

/* The loop whose iterations go to threads; a kernel that does more after it is serial. */
static const LStmt *parallel_loop(const LKernel *k) {
    const LStmt *s = k->body;
    while (s && is_pure(s)) s = s->next;
    return s && s->kind == L_FOR && s->sched.parallel && !s->next ? s : NULL;
}

static void collapse(CuFn *f, bool vector_too) {
    CuSched *c = &f->sched;
    for (const LStmt *l;
         c->n_inner < CU_COLLAPSE_MAX && (l = collapsible(f, c->body, vector_too));) {
        c->inner[c->n_inner++] = l;
        c->body = l->body;
    }
}

/* Parts of a long row: so few that each may have a block. */
static bool has_chunk_of(const LStmt *s, const LReg *row) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->at == row) return true;
        if ((s->kind == L_FOR || s->kind == L_IF) && has_chunk_of(s->body, row)) return true;
    }
    return false;
}

/* ---- the width of a team ----------------------------------------------------------- */
static int power_of_2(int64_t n) {
    int p = 1;
    while (p < n && p < 32) p *= 2;
    return p;
}

/* Columns of a run, where the text tells. */
static bool const_width(const LStmt *range, int64_t *n) {
    return range->range == LR_EXTENT && expr_is_const(range->extent, n);
}

/* Its iterations go to all threads of a team, whatever the lanes of other runs are. */
bool cu_takes_all(const CuSched *c, const CuRun *r) {
    bool columns = false;
    for (int i = 0; i < c->runs.n; i++) columns = columns || !c->runs.v[i].flat;
    return r->flat && (c->kind == CU_BLOCK || (columns && r->range->range == LR_SEGMENT));
}

static void choose_lanes(CuSched *c) {
    int lanes = 1;
    bool known = true, any = false;
    for (int i = 0; i < c->runs.n; i++) {
        int64_t n = 0;
        if (cu_takes_all(c, &c->runs.v[i])) continue;
        any = true;
        if (!const_width(c->runs.v[i].range, &n))
            known = false;
        else if (power_of_2(n / c->pack) > lanes)
            lanes = power_of_2(n / c->pack);
    }
    c->lanes = !any ? 32 : known || lanes == 32 ? lanes : 0;
}

static void schedule(CuFn *f) {
    CuSched *c = &f->sched;
    *c = (CuSched){.parallel = parallel_loop(f->k)};
    if (loop_is_joined(f->k)) return; /* a thread for each element */
    c->body = c->parallel ? c->parallel->body : f->k->body;
    if (c->parallel) collapse(f, false);
    if (cu_team(f, c->body)) {
        bool long_row = !c->parallel || has_chunk_of(c->body, c->parallel->var);
        c->kind = long_row ? CU_BLOCK : CU_TEAM;
        c->pack = cu_pack(f);
        choose_lanes(c);
        return;
    }
    if (c->parallel) collapse(f, true);
}

bool cu_has_range(const LStmt *s, LRangeKind range) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == range) return true;
        if (loop_has_body(s) && cu_has_range(s->body, range)) return true;
    }
    return false;
}

static bool has_entries(const LStmt *s) {
    return cu_has_range(s, LR_SEGMENT) || cu_has_range(s, LR_CHUNK);
}

/* Entries of rows that no team can have as they are: in another order, or by heads (heads.c). */
void cu_schedule(CuFn *f) {
    const LKernel *k = f->k;
    schedule(f);
    const LStmt *parallel = f->sched.parallel;
    if (f->sched.kind != CU_THREAD || !parallel || !has_entries(parallel->body)) return;
    for (int heads = 0; heads < 2; heads++) {
        const LKernel *turned = cu_turn_rows(f->a, k, parallel, heads);
        if (!turned) continue;
        f->k = turned;
        schedule(f);
        if (f->sched.kind != CU_THREAD && (!heads || f->sched.n_inner)) return;
    }
    f->k = k;
    schedule(f);
}
