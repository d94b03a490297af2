/* How the iterations of a kernel meet threads: a team of threads for each (team.c) where that
 * is seen to be safe and there is something to share, if need be after passes over its loops
 * (codegen/loops) or in several kernels (`fission`), else a thread for each.
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

static bool is_size(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t size;
    return d->kind == L_LET && d->fn == L_FN_SIZE && expr_is_const(d->size, &size) && size == n;
}

static bool is_below(const LReg *r, int64_t n) {
    const LStmt *d = r->def;
    int64_t extent;
    return d->kind == L_FOR && d->range == LR_EXTENT && expr_is_const(d->extent, &extent) &&
           extent <= n;
}

static bool is_product(const LReg *r, const LReg *by, int64_t n) {
    const LStmt *d = r->def;
    if (d->kind != L_LET || d->fn != L_FN_IMUL) return false;
    return (d->arg[0] == by && is_size(d->arg[1], n)) || (d->arg[1] == by && is_size(d->arg[0], n));
}

/* An index x of a dimension that has each of the loop's iterations n places: i * n + c, c < n. */
static bool is_block_of(const LReg *x, const LStmt *loop, const Expr *dim) {
    const LStmt *d = x->def;
    int64_t size, n;
    if (!expr_is_const(dim, &size) || !expr_is_const(loop->extent, &n) || n == 0 || size % n)
        return false;
    if (d->kind != L_LET || d->fn != L_FN_IADD) return false;
    n = size / n;
    return (is_product(d->arg[0], loop->var, n) && is_below(d->arg[1], n)) ||
           (is_product(d->arg[1], loop->var, n) && is_below(d->arg[0], n));
}

/* Every store and acc to an argument below s, and every load of what is written, is at a place of
 * the loop's iteration alone: its variable is an index, always the same one, or the block that it
 * has of a dimension. */
static bool all_at(const LStmt *s, const LStmt *loop, int *place) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && !all_at(s->body, loop, place)) return false;
        if (!loop_is_access(s) || s->buf->kind == LB_LOCAL || !s->buf->written) continue;
        int *p = &place[s->buf->id], at = -1;
        for (int i = 0; i < s->buf->rank; i++) {
            if (s->idx[i] == loop->var && (*p < 0 || *p == i)) at = i;
            if (*p >= 0 && *p != MAX_RANK + i) continue;
            if (is_block_of(s->idx[i], loop, s->buf->dim[i])) at = MAX_RANK + i;
        }
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
    if (f->decided && !l->sched.collapse) return NULL;
    int *place = NEWN(f->a, int, f->k->bufs.n + 1);
    for (int i = 0; i < f->k->bufs.n; i++) place[i] = -1;
    return all_at(l->body, l, place) ? l : NULL;
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

/* Teams for rows: false = they cannot be. */
static bool schedule_teams(CuFn *f, int columns) {
    CuSched *c = &f->sched;
    *c = (CuSched){.parallel = loop_parallel(f->k), .columns = columns};
    if (loop_is_joined(f->k)) return false;
    c->body = c->parallel ? c->parallel->body : f->k->body;
    if (c->parallel) collapse(f, false);
    if (!cu_team(f, c->body)) return false;
    bool long_row = !c->parallel || has_chunk_of(c->body, c->parallel->var);
    c->kind = long_row ? CU_BLOCK : CU_TEAM;
    return true;
}

/* .. with as many columns for a lane, and lanes, as suit its widths. */
static bool choose_teams(CuFn *f, int columns) {
    if (!schedule_teams(f, columns)) return false;
    f->sched.pack = cu_pack(f);
    if (!f->sched.pack) return false;
    choose_lanes(&f->sched);
    return true;
}

/* A thread for each row, or element. */
static void schedule_threads(CuFn *f) {
    CuSched *c = &f->sched;
    *c = (CuSched){.parallel = loop_parallel(f->k)};
    if (loop_is_joined(f->k)) return;
    c->body = c->parallel ? c->parallel->body : f->k->body;
    if (c->parallel) collapse(f, false);
    if (c->parallel) collapse(f, true);
}

static bool has_entries(const LStmt *s) {
    return loop_has_range(s, LR_SEGMENT) || loop_has_range(s, LR_CHUNK);
}

/* ---- which schedule ---------------------------------------------------------------- */
/* What makes a row's loops such that a team can have their entries, as they are and with heads
 * around them. */
#define ROW "promote-scalars,vectorise,cse-loops,forward-stores,distribute,reorder-loops,dce-loops"
#define ROWS "fold-unit-dims," ROW
#define HEADS "fold-unit-dims,interchange," ROW

/* Ways to have it, the most desirable first: lanes with several columns and with one each; rows as
 * they are, in another order, and by heads. */
enum { WAYS = 6 };

static bool has_heads(LKernel *k) {
    return loop_row(k) != &loop_parallel(k)->body;
}

/* ---- in the text ------------------------------------------------------------------------ */
static bool is_in_run(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->sched.runs.n; i++)
        for (const LStmt *at = f->sched.runs.v[i].first; at != f->sched.runs.v[i].end;
             at = at->next)
            if (at == s) return true;
    return false;
}

static LShare share_of(const CuFn *f, const LStmt *s) {
    const LBuf *target[CU_TARGETS_MAX];
    if (f->sched.kind == CU_THREAD || !is_in_run(f, s)) return LS_ALIKE;
    if (s->range == LR_SEGMENT && cu_is_columns(f, s)) return LS_TEAM;
    return cu_split_targets(f, s, target) ? LS_WAYS : LS_ALIKE;
}

static bool is_inner(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->sched.n_inner; i++)
        if (f->sched.inner[i] == s) return true;
    return false;
}

/* Writes down who takes the loops. */
static void mark(const CuFn *f, LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) s->sched.collapse = is_inner(f, s);
        if (s->kind == L_FOR) s->sched.share = share_of(f, s);
        if (loop_has_body(s)) mark(f, s->body);
    }
}

static void write_down(const CuFn *f, LKernel *k) {
    static const LTaker taker[] = {
        [CU_THREAD] = LT_THREAD, [CU_TEAM] = LT_TEAM, [CU_BLOCK] = LT_BLOCK};
    const CuSched *c = &f->sched;
    mark(f, k->body);
    k->threads = (LThreads){.by = taker[c->kind]};
    if (c->kind == CU_THREAD) return;
    k->threads.lanes = c->lanes;
    k->threads.pack = c->pack;
    k->threads.columns = c->columns;
}

/* What the text says and cannot be. */
static const LStmt *find_impossible(const CuFn *f, const LStmt *s) {
    for (const LStmt *in; s; s = s->next) {
        bool loop = s->kind == L_FOR;
        if (loop && (s->sched.collapse != is_inner(f, s) || s->sched.share != share_of(f, s)))
            return s;
        if (loop_has_body(s) && (in = find_impossible(f, s->body))) return in;
    }
    return NULL;
}

static bool refuse(const CuFn *f, Span at, const char *what) {
    diag_add(f->cu->c, DIAG_E0541, at, "kernel %s: %s", f->k->name, what);
    return false;
}

bool cu_schedule(CuFn *f) {
    const LThreads *t = &f->k->threads;
    CuSched *c = &f->sched;
    f->decided = true;
    if (t->by == LT_NOBODY || t->by == LT_THREAD) {
        schedule_threads(f);
    } else {
        bool team = schedule_teams(f, t->columns);
        c->lanes = t->lanes;
        c->pack = t->pack;
        if (!team || (c->kind == CU_TEAM) != (t->by == LT_TEAM))
            return refuse(f, f->k->span, "no team of threads can have its rows like this");
        if (!cu_can_pack(f, t->pack))
            return refuse(f, f->k->span, "lanes cannot have so many columns each");
    }
    const LStmt *s = find_impossible(f, f->k->body);
    return !s || refuse(f, s->span, "its threads cannot share a loop like this");
}

/* ---- which schedule ---------------------------------------------------------------------- */
/* The kernel after the passes of a way; NULL = that cannot be had. */
static LKernel *schedule_as(CuFn *f, Loops *l, const LKernel *k, int way) {
    static const struct {
        const char *passes;
        bool wide, heads;
    } how[WAYS] = {{"", true, false},   {"", false, false},   {ROWS, true, false},
                   {HEADS, true, true}, {ROWS, false, false}, {HEADS, false, true}};
    Loops try = loop_pass_begin(l->c, l->m, l->on, &l->machine, k);
    if (!how[way].wide) try.columns = 1;
    try.disable = l->disable;
    if (!loop_pass_run(&try, how[way].passes, NULL)) return NULL;
    LKernel *to = try.k.v[0];
    f->k = to;
    if (how[way].heads && !has_heads(to)) return NULL;
    if (!choose_teams(f, try.columns) || (how[way].heads && !f->sched.n_inner)) return NULL;
    write_down(f, to);
    return to;
}

/* The first way in which the fewest loops over entries are left to one thread after the other. */
LKernel *cu_arrange(Loops *l, LKernel *k) {
    const LStmt *parallel = loop_parallel(k);
    bool turns = parallel && !loop_is_joined(k) && has_entries(parallel->body);
    LKernel *best = NULL;
    int least = -1;
    for (int way = 0; way < (turns ? WAYS : 2) && least != 0; way++) {
        CuFn f = {.a = l->a};
        LKernel *to = schedule_as(&f, l, k, way);
        int serial = to ? loop_serial_entries(to) : 0;
        if (!to || (best && serial >= least)) continue;
        least = serial;
        best = to;
    }
    if (best) return best;
    CuFn f = {.a = l->a, .k = k};
    schedule_threads(&f);
    write_down(&f, k);
    return k;
}
