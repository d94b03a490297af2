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

/* ---- what a kernel reads and writes -------- */
typedef struct {
    const LStmt *s;
    const LStmt *loop; /* the vector loop around it; NULL = outside */
    int run;           /* -1 = in none */
    int place;         /* of the column among its indices; -1 = not there */
    CuDistance d;
    bool fold;  /* acc of a vector loop into one place */
    bool turns; /* lanes take the loop's columns by turns, whoever has them elsewhere */
    bool top;   /* the vector loop is in no other loop of the run; outside runs, s is in none */
} Access;

typedef struct {
    CuFn *f;
    VEC(Access) accesses;
    bool ok;
} Team;

static Access access_of(const LStmt *s, const LStmt *loop) {
    Access a = {.s = s, .loop = loop, .place = -1};
    for (int i = 0; loop && i < s->buf->rank && a.place < 0; i++) {
        a.d = cu_distance(loop, s->idx[i]);
        if (a.d.ok) a.place = i;
    }
    return a;
}

/* ---- the kernel -------------------------------------------------------------------- */
static Access *note_access(Team *t, const LStmt *s, const LStmt *loop) {
    vec_push(t->f->a, &t->accesses, access_of(s, loop));
    Access *a = &t->accesses.v[t->accesses.n - 1];
    a->run = -1;
    return a;
}

static bool is_top(const CuRun *r, const LStmt *loop) {
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s == loop) return true;
    }
    return false;
}

/* Accesses of a run: folds are accs whose place does not follow the column. */
static void note_run(Team *t, const CuRun *r, const LStmt *s, const LStmt *loop, const LStmt *end) {
    for (; s != end; s = s->next) {
        if (loop_is_access(s)) {
            Access *a = note_access(t, s, loop);
            a->run = t->f->sched.runs.n - 1;
            a->fold = loop && s->kind == L_ACC && !cu_is_column_array(r, s->buf) &&
                      !(s->buf->kind == LB_LOCAL && loop_declares(loop->body, s->buf)) &&
                      !cu_follows_column(s, loop) && !cu_is_inner(r, s->buf);
            a->top = loop && is_top(r, loop);
            a->turns = loop && cu_takes_turns(r, loop);
        }
        bool own = loop && loop->range == LR_SEGMENT;
        if (loop_has_body(s))
            note_run(t, r, s->body, !own && cu_is_columns(t->f, s) ? s : loop, NULL);
    }
}

/* top: s is the row's list. */
static void note_block(Team *t, const LStmt *s, bool top) {
    for (const LStmt *next; s && t->ok; s = next) {
        CuRun r;
        next = s->next;
        if (cu_find_run(t->f, s, &r)) {
            r.at_top = top;
            vec_push(t->f->a, &t->f->sched.runs, r);
            note_run(t, &r, r.first, NULL, r.end);
            next = r.end;
            continue;
        }
        if (loop_is_access(s)) note_access(t, s, NULL)->top = top;
        if (cu_is_columns(t->f, s) || (s->kind == L_LOCAL && s->buf->rank)) t->ok = false;
        if (loop_has_body(s)) note_block(t, s->body, false);
    }
}

static bool same_distance(const Access *x, const Access *y) {
    return x->place == y->place && x->d.fn == y->d.fn && x->d.by == y->d.by &&
           cu_same_range(x->loop, y->loop);
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

/* A number of the row, read by all threads before the first one writes it: they wait for each
 * other in between. */
static bool is_read_first(const Team *t, const LBuf *b) {
    bool written = false;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b) continue;
        if (a->run >= 0 || !a->top || (a->s->kind == L_LOAD && written)) return false;
        written = written || a->s->kind != L_LOAD;
    }
    return true;
}

/* Whether threads may reach buffer b as they do. */
static bool buffer_is_fine(const Team *t, const LBuf *b, bool *own_lane) {
    const Access *first = NULL;
    int n = 0, n_column = 0, n_first = 0, n_load = 0;
    bool same = true;
    for (int i = 0; i < t->accesses.n; i++) {
        const Access *a = &t->accesses.v[i];
        if (a->s->buf != b || is_settled(t, a)) continue;
        if (a->turns) return false;
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
    if (n_column == 0) return n_load == 0 || is_read_first(t, b); /* the first thread writes */
    if (n == 1 && first->s->kind != L_ACC) return n_load == 0;    /* each its own element, once */
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
    for (const LStmt *s = run->first; s != run->end; s = s->next) {
        if (s->kind == L_FOR && s->var == r) return true;
        if (loop_has_body(s) && loop_defines(s->body, r)) return true;
    }
    return false;
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
            if (k == a->place || loop_is_one(b->dim[k])) continue;
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
    c->waits = NEWN(t->f->a, bool, k->bufs.n + 1);
    c->over = NEWN(t->f->a, int, k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!b->written) continue;
        bool acc = has_acc(t, b);
        c->over[i] = writing_run(t, b) + 1;
        c->waits[i] = is_loaded(t, b) && is_read_first(t, b);
        if (c->waits[i]) continue;
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
    c->split = cu_find_split(f);
    return true;
}

bool cu_team(CuFn *f, const LStmt *body) {
    return try_team(f, body, true) || try_team(f, body, false);
}
