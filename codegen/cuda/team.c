/* A team of threads for each row: which kernels can have one, and how its threads share the
 * row's work.
 *
 *     for v in N parallel {                         a team of 16 x 2 threads takes row v
 *       local acc: f32[16]
 *       for f in 16 vector { store acc[f] 0 }       \
 *       for e in segment ptr[v] {                    |  a *run*: statements whose vector loops
 *         scalars of e                               |  all have the range 0 .. 16.  Lane f has
 *         for f in 16 vector { acc sum acc[f] .. }   |  column f, in registers; entries go to
 *       }                                            |  the team's 2 *ways* by turns, whose sums
 *       for f in 16 vector { .. acc[f] .. }         /   are added at the end of the entries
 *     }
 *
 * Outside runs all threads of a team do the same, but that the first one alone writes.  A sum
 * over a vector loop into one place is made by each lane for its columns and then added
 * across lanes.  All additions are in an order that team and sizes fix.
 *
 * What must hold so that no thread reads what another one wrote: in a run a written buffer is
 * reached through the column, always at the same distance from it; elsewhere it is only
 * written, by the first thread.  Where this cannot be seen from the text, one thread takes a
 * row (schedule.c). */
#include "codegen/cuda/cuda.h"

/* ---- ranges and registers ---------------------------------------------------------- */
/* All threads of a way reach a number of the row together: each has at most one column. */
static bool is_narrow(const LStmt *range) {
    int64_t n;
    return range->range == LR_EXTENT && expr_is_const(range->extent, &n) && n <= 32;
}

/* Entries of a segment, whose sums alone leave the loop: as good as columns.  A loop over columns
 * in it is the thread's own, unless lanes could have them all. */
static bool only_sums(const LStmt *s, const LStmt *body) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && (!s->sched.vector || is_narrow(s))) return false;
        if (loop_has_body(s) && !only_sums(s->body, body)) return false;
        bool own = loop_is_access(s) && s->buf->kind == LB_LOCAL && loop_declares(body, s->buf);
        if (s->kind == L_STORE && !own) return false;
        if (s->kind == L_ACC && !own && s->buf->rank) return false;
        bool row = s->kind == L_LOAD && s->buf->kind == LB_LOCAL && s->buf->rank == 0;
        if (s->kind == L_LOAD && s->buf->kind == LB_LOCAL && !own && !row) return false;
    }
    return true;
}

bool cu_is_columns(const CuFn *f, const LStmt *s) {
    if (s->kind != L_FOR || s->sched.parallel) return false;
    if (s->sched.vector) return true;
    return f->sched.segments && s->range == LR_SEGMENT && only_sums(s->body, s->body);
}

static bool same_range(const LStmt *x, const LStmt *y) {
    if (x->range != y->range) return false;
    if (x->range == LR_EXTENT) return expr_eq(x->extent, y->extent);
    if (x->range == LR_SEGMENT) return x == y;
    return x->at == y->at && expr_eq(x->extent, y->extent) && expr_eq(x->n_chunks, y->n_chunks);
}

/* The statement of a vector loop's body that defines r. */
static const LStmt *definition(const LStmt *s, const LReg *r) {
    for (const LStmt *in; s; s = s->next) {
        if (s->kind == L_LET && s->dst == r) return s;
        if (s->kind == L_IF && (in = definition(s->body, r))) return in;
    }
    return NULL;
}

/* How an index follows from the column: itself, or at a fixed distance. */
typedef struct {
    bool ok;
    LFn fn; /* L_FN_OP: itself; IADD, ISUB */
    const LReg *by;
} Distance;

static Distance distance(const LStmt *loop, const LReg *r) {
    if (r == loop->var) return (Distance){true, L_FN_OP, NULL};
    const LStmt *d = definition(loop->body, r);
    if (!d || (d->fn != L_FN_IADD && d->fn != L_FN_ISUB)) return (Distance){0};
    bool first = d->arg[0] == loop->var, second = d->arg[1] == loop->var && d->fn == L_FN_IADD;
    const LReg *by = first ? d->arg[1] : d->arg[0];
    if ((!first && !second) || loop_defines(loop->body, by) || by == loop->var)
        return (Distance){0};
    return (Distance){true, d->fn, by};
}

/* ---- what a kernel reads and writes -------------------------------------------------------------
 */
typedef struct {
    const LStmt *s;
    const LStmt *loop; /* the vector loop around it; NULL = outside */
    int run;           /* -1 = in none */
    int place;         /* of the column among its indices; -1 = not there */
    Distance d;
    bool fold; /* acc of a vector loop into one place */
    bool top;  /* the vector loop is in no other loop of the run */
} Access;

typedef struct {
    CuFn *f;
    VEC(Access) accesses;
    bool ok;
} Team;

static Access access_of(const LStmt *s, const LStmt *loop) {
    Access a = {.s = s, .loop = loop, .place = -1};
    for (int i = 0; loop && i < s->buf->rank && a.place < 0; i++) {
        a.d = distance(loop, s->idx[i]);
        if (a.d.ok) a.place = i;
    }
    return a;
}

static bool follows_column(const LStmt *s, const LStmt *loop) {
    for (int i = 0; i < s->buf->rank; i++)
        if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i])) return true;
    return false;
}

/* ---- runs -------------------------------------------------------------------------- */
typedef struct {
    Team *t;
    const LStmt *first, *last, *range;
    int n_columns; /* vector loops */
    bool together; /* a number of the row is made in the midst of it */
} Run;

static bool in_run(const Run *r, const LBuf *b) {
    for (const LStmt *s = r->first;; s = s->next) {
        if (s->kind == L_LOCAL && s->buf == b) return true;
        if (s == r->last) return false;
    }
}

/* A local array of the run has one column in each lane. */
static bool is_column_array(const Run *r, const LBuf *b) {
    return b->kind == LB_LOCAL && b->rank >= 1 && in_run(r, b);
}

/* One index follows the column, the others nothing in the vector loop. */
static bool is_in_column(const LStmt *s, const LStmt *loop) {
    int n = 0;
    for (int i = 0; i < s->buf->rank; i++) {
        if (distance(loop, s->idx[i]).ok)
            n++;
        else if (s->idx[i] == loop->var || loop_defines(loop->body, s->idx[i]))
            return false;
    }
    return n == 1;
}

static bool is_in(const LStmt *list, const LStmt *s) {
    for (; list; list = list->next)
        if (list == s || (loop_has_body(list) && is_in(list->body, s))) return true;
    return false;
}

bool cu_run_has(const CuRun *r, const LStmt *s) {
    for (const LStmt *at = r->first;; at = at->next) {
        if (at == s || (loop_has_body(at) && is_in(at->body, s))) return true;
        if (at == r->last) return false;
    }
}

bool cu_is_inner(const CuRun *r, const LBuf *b) {
    for (const LStmt *s = r->first;; s = s->next) {
        if (loop_has_body(s) && loop_declares(s->body, b)) return true;
        if (s == r->last) return false;
    }
}

static bool is_inner(const Run *r, const LBuf *b) {
    CuRun run = {.first = r->first, .last = r->last};
    return cu_is_inner(&run, b);
}

static bool column_access(Run *r, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && loop_declares(loop->body, b)) return true; /* the thread's own */
    if (is_column_array(r, b)) return is_in_column(s, loop);
    if (b->kind == LB_LOCAL && in_run(r, b)) return s->kind == L_LOAD;
    if (s->kind == L_LOAD) return b->kind != LB_LOCAL || b->rank == 0;
    if (b->kind == LB_LOCAL) {
        r->together |= is_inner(r, b);
        return s->kind == L_ACC && b->rank == 0;
    }
    return s->kind == L_ACC || follows_column(s, loop);
}

static bool column_body(Run *r, const LStmt *s, const LStmt *loop) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && loop->range != LR_SEGMENT) return false;
        if (loop_is_access(s) && !column_access(r, s, loop)) return false;
        if (s->kind == L_LOCAL && s->buf->rank) return false;
        if (loop_has_body(s) && !column_body(r, s->body, loop)) return false;
    }
    return true;
}

/* Statements of a run outside its vector loops.  At its top they are moved before it, so
 * they must need nothing of it; deeper they may have locals of their own, and add to the row's. */
static bool scalar_access(Run *r, const LStmt *s, const LStmt *body) {
    const LBuf *b = s->buf;
    if (b->kind == LB_LOCAL && b->rank == 0 && body) {
        bool own = loop_declares(body, b);
        if (s->kind == L_ACC && !own) r->together = true;
        return own || s->kind != L_STORE;
    }
    return s->kind == L_LOAD && b->kind != LB_LOCAL && !b->written;
}

static bool run_statement(Run *r, const LStmt *s, const LStmt *body);

static bool run_body(Run *r, const LStmt *s, const LStmt *body) {
    for (; s; s = s->next)
        if (!run_statement(r, s, body)) return false;
    return true;
}

/* body: of the outermost loop or `if` of the run around s; NULL = s is at the run's top */
static bool run_statement(Run *r, const LStmt *s, const LStmt *body) {
    if (s->kind == L_LOCAL) return body ? s->buf->rank == 0 : s->buf->rank >= 1;
    if (s->kind == L_LET) return true;
    if (loop_is_access(s)) return scalar_access(r, s, body);
    if (cu_is_columns(r->t->f, s)) {
        r->n_columns++;
        if (!r->range) r->range = s;
        return same_range(s, r->range) && column_body(r, s->body, s);
    }
    return run_body(r, s->body, body ? body : s->body);
}

static bool uses_columns(const CuFn *f, const LStmt *s) {
    for (; s; s = s->next)
        if (cu_is_columns(f, s) || (loop_has_body(s) && uses_columns(f, s->body))) return true;
    return false;
}

/* Values made at the top of the run come before it: none may hang on what is in it. */
static bool is_run(Run *r) {
    r->range = NULL;
    r->n_columns = 0;
    r->together = false;
    for (const LStmt *s = r->first;; s = s->next) {
        if (!run_statement(r, s, NULL)) return false;
        if (s == r->last) break;
    }
    bool alone = r->first == r->last && cu_is_columns(r->t->f, r->first);
    if (r->n_columns == 0 || (r->together && !is_narrow(r->range))) return false;
    return r->range->range != LR_SEGMENT || alone;
}

static bool used_after(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next) {
        if (loop_is_access(s) && s->buf == b) return true;
        if (loop_has_body(s) && used_after(s->body, b)) return true;
    }
    return false;
}

static bool arrays_end_here(const Run *r) {
    for (const LStmt *s = r->first; s != r->last; s = s->next)
        if (s->kind == L_LOCAL && used_after(r->last->next, s->buf)) return false;
    return true;
}

/* The longest run that begins at s. */
static bool find_run(Team *t, const LStmt *s, Run *out) {
    bool found = false;
    bool may_begin =
        s->kind == L_LOCAL ? s->buf->rank >= 1 : loop_has_body(s) && uses_columns(t->f, s);
    for (const LStmt *e = s; may_begin && e; e = e->next) {
        if (e->kind == L_STORE || e->kind == L_ACC) break;
        if (!loop_has_body(e)) continue;
        Run r = {.t = t, .first = s, .last = e};
        if (!is_run(&r) || !arrays_end_here(&r)) continue;
        *out = r;
        found = true;
    }
    return found;
}

/* ---- the kernel -------------------------------------------------------------------- */
static void note_access(Team *t, const LStmt *s, const LStmt *loop) {
    vec_push(t->f->a, &t->accesses, access_of(s, loop));
    t->accesses.v[t->accesses.n - 1].run = -1;
}

static bool is_top(const Run *r, const LStmt *loop) {
    for (const LStmt *s = r->first;; s = s->next) {
        if (s == loop) return true;
        if (s == r->last) return false;
    }
}

/* Accesses of a run: folds are accs whose place does not follow the column. */
static void note_run(Team *t, const Run *r, const LStmt *s, const LStmt *loop, const LStmt *end) {
    for (; s; s = s->next) {
        if (loop_is_access(s)) {
            note_access(t, s, loop);
            Access *a = &t->accesses.v[t->accesses.n - 1];
            a->run = t->f->sched.runs.n - 1;
            a->fold = loop && s->kind == L_ACC && !is_column_array(r, s->buf) &&
                      !(s->buf->kind == LB_LOCAL && loop_declares(loop->body, s->buf)) &&
                      !follows_column(s, loop) && !is_inner(r, s->buf);
            a->top = loop && is_top(r, loop);
        }
        bool own = loop && loop->range == LR_SEGMENT;
        if (loop_has_body(s))
            note_run(t, r, s->body, !own && cu_is_columns(t->f, s) ? s : loop, NULL);
        if (s == end) break;
    }
}

/* top: s is the row's list. */
static void note_block(Team *t, const LStmt *s, bool top) {
    for (; s && t->ok; s = s->next) {
        Run r;
        if (find_run(t, s, &r)) {
            CuRun run = {r.first, r.last, r.range, .together = r.together, .at_top = top};
            run.flat = r.first == r.last && cu_is_columns(t->f, r.first);
            vec_push(t->f->a, &t->f->sched.runs, run);
            note_run(t, &r, r.first, NULL, r.last);
            s = r.last;
            continue;
        }
        if (loop_is_access(s)) note_access(t, s, NULL);
        if (cu_is_columns(t->f, s) || (s->kind == L_LOCAL && s->buf->rank)) t->ok = false;
        if (loop_has_body(s)) note_block(t, s->body, false);
    }
}

static bool same_distance(const Access *x, const Access *y) {
    return x->place == y->place && x->d.fn == y->d.fn && x->d.by == y->d.by &&
           same_range(x->loop, y->loop);
}

/* The last run of the row that writes b, where no other place does; -1 = there is none. */
static int writing_run(const Team *t, const LBuf *b) {
    int run = -1;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b || a->s->kind == L_LOAD) continue;
        if (a->run < 0 || a->fold || !t->f->sched.runs.v[a->run].at_top) return -1;
        if (a->run > run) run = a->run;
    }
    return run;
}

/* A load behind the runs that write its buffer, which the team waits for: any thread may read. */
static bool is_settled(const Team *t, const Access *a) {
    if (a->s->kind != L_LOAD || a->s->buf->kind == LB_LOCAL) return false;
    int run = writing_run(t, a->s->buf);
    if (run < 0 || a->run >= 0) return run >= 0 && a->run > run;
    for (int i = 0; &t->accesses.v[i] < a; i++)
        if (t->accesses.v[i].run == run && t->accesses.v[i].s->buf == a->s->buf) return true;
    return false;
}

/* Whether threads may reach buffer b as they do. */
static bool buffer_is_fine(const Team *t, const LBuf *b, bool *own_lane) {
    const Access *first = NULL;
    int n = 0, n_column = 0, n_first = 0, n_load = 0;
    bool same = true;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b || is_settled(t, a)) continue;
        n++;
        n_load += a->s->kind == L_LOAD;
        if (!a->loop || a->fold) {
            n_first++;
            continue;
        }
        n_column++;
        if (!first) first = a;
        same = same && a->place >= 0 && same_distance(a, first);
    }
    if (n_column == 0) return n_load == 0;                       /* the first thread writes */
    if (n == 1) return n_load == 0 && first->s->kind == L_STORE; /* each its own element, once */
    *own_lane = true;
    return n_first == 0 && same;
}

/* A local scalar that vector loops add into must not be touched in the same run otherwise. */
static bool fold_is_fine(const Team *t, const Access *fold) {
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != fold->s->buf || a->run != fold->run) continue;
        if (!a->fold || a->s->red != fold->s->red) return false;
    }
    return true;
}

static bool arrays_are_fine(const Team *t, const LBuf *b) {
    const Access *first = NULL;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b || !a->loop) continue;
        if (!first) first = a;
        if (!same_distance(a, first)) return false;
    }
    return true;
}

static bool is_fine(Team *t, bool *own_lane) {
    const LKernel *k = t->f->k;
    for (int i = 0; i < k->bufs.n; i++)
        if (k->bufs.v[i]->written && !buffer_is_fine(t, k->bufs.v[i], own_lane)) return false;
    for (int i = 0; i < k->locals.n; i++)
        if (k->locals.v[i]->rank && !arrays_are_fine(t, k->locals.v[i])) return false;
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].fold && !fold_is_fine(t, &t->accesses.v[i])) return false;
    return true;
}

/* ---- registers for rows ------------------------------------------------------------ */
static bool defined_below(const CuRun *run, const LReg *r) {
    for (const LStmt *s = run->first;; s = s->next) {
        if (s->kind == L_FOR && s->var == r) return true;
        if (loop_has_body(s) && loop_defines(s->body, r)) return true;
        if (s == run->last) return false;
    }
}

/* All accesses are in one run, at one element per column. */
static bool is_one_element(const Team *t, const LBuf *b) {
    const Access *first = NULL;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b || is_settled(t, a)) continue;
        if (!first) first = a;
        if (a->run < 0 || a->run != first->run || a->fold || !a->loop) return false;
        for (int k = 0; k < b->rank; k++) {
            if (k == a->place || cu_is_one(b->dim[k])) continue;
            bool inner = defined_below(&t->f->sched.runs.v[a->run], a->s->idx[k]);
            if (inner || a->s->idx[k] != first->s->idx[k]) return false;
        }
    }
    return first != NULL;
}

static bool has_acc(const Team *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].s->buf == b && t->accesses.v[i].s->kind == L_ACC &&
            !t->accesses.v[i].fold)
            return true;
    return false;
}

static bool is_loaded(const Team *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].s->buf == b && t->accesses.v[i].s->kind == L_LOAD &&
            !is_settled(t, &t->accesses.v[i]))
            return true;
    return false;
}

static int run_of(const Team *t, const LBuf *b) {
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].s->buf == b && !is_settled(t, &t->accesses.v[i]))
            return t->accesses.v[i].run;
    return -1;
}

/* A row that is added to stays in registers for its run, like a local array.  Where threads
 * read rows from memory that they have written in the same run, there is but one thread to a
 * column; where they do in a later one, the team waits in between. */
static void choose_cells(Team *t) {
    CuSched *c = &t->f->sched;
    const LKernel *k = t->f->k;
    c->cell = NEWN(t->f->a, int, k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!b->written) continue;
        bool acc = has_acc(t, b);
        bool again = acc || is_loaded(t, b);
        if (again && is_one_element(t, b))
            c->cell[i] = run_of(t, b) + 1;
        else if (again)
            c->one_way = true;
    }
    for (int i = 0; i < t->accesses.n; i++)
        if (is_settled(t, &t->accesses.v[i]))
            c->runs.v[writing_run(t, t->accesses.v[i].s->buf)].settles = true;
    for (int i = 0; i < t->accesses.n; i++)
        if (t->accesses.v[i].fold && !t->accesses.v[i].top && !c->runs.v[t->accesses.v[i].run].flat)
            c->one_way = true;
}

/* ---- entries by turns -------------------------------------------------------------- */
static bool has_effect_but(const CuFn *f, const LStmt *s, const LStmt *body, const LBuf **target,
                           int *n);

/* s adds to a register of the column, or to one of the row, and does nothing else to it. */
static bool adds_to_register(const CuFn *f, const LStmt *s, const LBuf **target, int *n) {
    const LBuf *b = s->buf;
    bool in_register = b->kind == LB_LOCAL || f->sched.cell[b->id];
    if (s->kind != L_ACC || !in_register) return false;
    for (int i = 0; i < *n; i++)
        if (target[i] == b) return false;
    if (*n == CU_TARGETS_MAX) return false;
    target[(*n)++] = b;
    return true;
}

static bool has_effect_but(const CuFn *f, const LStmt *s, const LStmt *body, const LBuf **target,
                           int *n) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && has_effect_but(f, s->body, body, target, n)) return true;
        if (!loop_is_access(s)) continue;
        const LBuf *b = s->buf;
        bool own = b->kind == LB_LOCAL && loop_declares(body, b);
        bool read_only = s->kind == L_LOAD && (b->kind == LB_LOCAL ? b->rank == 0 : !b->written);
        if (!own && !read_only && !adds_to_register(f, s, target, n)) return true;
    }
    return false;
}

static bool is_long(const LStmt *s) {
    int64_t n;
    return s->range != LR_EXTENT || !expr_is_const(s->extent, &n) || n >= 32;
}

int cu_split_targets(const CuFn *f, const LStmt *s, const LBuf **target) {
    int n = 0;
    bool plain = s->kind == L_FOR && !cu_is_columns(f, s) && is_long(s);
    if (!plain || f->sched.one_way || has_effect_but(f, s->body, s->body, target, &n)) return 0;
    for (int i = 0; i < n; i++)
        if (loop_loads(s->body, target[i])) return 0;
    return n;
}

static const LStmt *find_split(CuFn *f) {
    const LBuf *target[CU_TARGETS_MAX];
    for (int i = 0; i < f->sched.runs.n; i++) {
        const CuRun *r = &f->sched.runs.v[i];
        for (const LStmt *s = r->first;; s = s->next) {
            if (cu_split_targets(f, s, target)) return s;
            if (s == r->last) break;
        }
    }
    return NULL;
}

static bool try_team(CuFn *f, const LStmt *body, bool segments) {
    Team t = {.f = f, .ok = true};
    CuSched *c = &f->sched;
    bool own_lane = false;
    c->runs.n = 0;
    c->segments = segments;
    c->one_way = false;
    note_block(&t, body, true);
    if (!t.ok || c->runs.n == 0 || !is_fine(&t, &own_lane)) return false;
    for (int i = 0; i < c->runs.n && own_lane; i++)
        if (c->runs.v[i].range->range != LR_SEGMENT) c->runs.v[i].flat = false;
    choose_cells(&t);
    c->split = find_split(f);
    return true;
}

bool cu_team(CuFn *f, const LStmt *body) {
    return try_team(f, body, true) || try_team(f, body, false);
}
