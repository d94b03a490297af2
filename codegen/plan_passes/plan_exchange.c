/* Steps of several processes that share the rows of data in parts.
 *
 *     z = x W                               z = x W                  own rows of paper
 *     s = sum over edges of z[src]    =>    exchange z: rows that src(cites) of own edges reaches
 *     l = sum over rows of s^2              s = sum over edges ..    own rows of paper
 *                                           l_part = .. s^2          own cuts of paper
 *                                           exchange l_part: all
 *                                           l = sum of l_part        all do it
 *
 * Each process owns the rows of its parts: of nodes, of the edges into them, of graphs, of stored
 * entries.  A step that writes its own rows alone (plan_touch.c) does the owned ones; what it reads
 * of a value at other rows is known from the index arrays that its kernel goes through, and an
 * exchange before it brings those.  Whatever else reads such a value wants all of it, and is done
 * by all.  That is the owner-computes rule (Rogers and Pingali 1989) with inspected index arrays
 * (Saltz et al. 1991, PARTI); gathers backward go along transposed maps, so they need nothing more.
 *
 * Rows that several steps read are brought once, before the first of them.  What outlives the phase
 * is had by all at its end.  Rows keep their numbers, so one process has nothing to exchange, and
 * there the plan does what it did without. */
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "ir/text.h"
#include "passes/rewrite.h"

/* Whether the rows of the space are partitioned among processes. */
bool plan_is_owned(const Space *s) {
    if (!s || s->whole || s->once || space_of_batch(s)) return false;
    if (s->kind == SP_NZ) return plan_is_owned(s->nz_of->type.dim[0]);
    return s->kind == SP_NODE || s->kind == SP_EDGE || s->kind == SP_GRAPH;
}

/* Whether m(a) and a always belong to the same process. */
bool plan_map_keeps_owner(const Map *m) {
    return map_is_sorted(m) && plan_is_owned(m->from) && plan_is_owned(m->to);
}

/* ---- which rows an index is of -------------------------------------------------------------- */
/* Which rows an index refers to. */
typedef struct {
    bool known;
    Space *space; /* whose rows it is; NULL: it is a position among the segments of `pos` */
    const Map *pos;
    PReach reach; /* n = 0: a row that the process owns */
} Place;

/* A read of some rows of a buffer. */
typedef struct {
    int buf;
    Place at;
} Read;

/* A walk over a kernel that finds which rows it reads. */
typedef struct {
    Arena *a;
    const Plan *p;
    const PStep *s;
    const Touch *touch;
    Space *own;
    Place *reg, *local; /* by register; by local array */
    VEC(Read) reads;
} Walk;

/* The rows of a space that the process owns. */
static Place owned_row(Space *s) {
    return (Place){.known = true, .space = s, .reach.from = s};
}

/* Whether the rows are owned ones. */
static bool is_own(const Place *p) {
    return p->known && p->space && !p->reach.n;
}

/* Whether two halos are found along the same index arrays. */
static bool same_reach(const PReach *x, const PReach *y) {
    bool same = x->from == y->from && x->n == y->n;
    for (int i = 0; i < x->n && same; i++) same = x->hop[i] == y->hop[i];
    return same;
}

/* Whether two row sets are the same. */
static bool same_place(const Place *x, const Place *y) {
    return x->known == y->known && x->space == y->space && x->pos == y->pos &&
           (!x->known || same_reach(&x->reach, &y->reach));
}

/* The rows that are reached through one more index array b. space: the space they are rows of; NULL
 * = positions in the segments of map `pos`. */
static Place hop(const Walk *w, Place p, const LBuf *b, Space *space, const Map *pos) {
    if (p.reach.n == REACH_MAX) return (Place){0};
    p.reach.hop[p.reach.n++] = w->s->bufs[b->id];
    p.space = space;
    p.pos = pos;
    return p;
}

/* The rows of the entries that a loop over a segment visits. */
static Place entries(const Walk *w, const LStmt *loop) {
    const Map *m = loop->ptr->map;
    Place at = w->reg[loop->at->id];
    if (!at.known || at.space != m->to) return (Place){0};
    if (is_own(&at) && plan_map_keeps_owner(m)) return owned_row(m->from);
    bool sorted = map_is_sorted(m);
    return hop(w, at, loop->ptr, sorted ? m->from : NULL, sorted ? NULL : m);
}

/* The rows that an index array b leads to from the rows `at`. */
static Place target(const Walk *w, const LBuf *b, Place at) {
    const Map *m = b->map;
    if (b->kind == LB_MAP_PERM) return at.pos == m ? hop(w, at, b, m->from, NULL) : (Place){0};
    if (b->by) return at.pos == b->by ? hop(w, at, b, m->to, NULL) : (Place){0};
    if (at.space != m->from) return (Place){0};
    if (is_own(&at) && plan_map_keeps_owner(m)) return owned_row(m->to);
    return hop(w, at, b, m->to, NULL);
}

/* Records a read, once. */
static void note_read(Walk *w, int buf, Place at) {
    for (int i = 0; i < w->reads.n; i++)
        if (w->reads.v[i].buf == buf && same_place(&w->reads.v[i].at, &at)) return;
    vec_push(w->a, &w->reads, ((Read){buf, at}));
}

/* The row set of a loaded register; records the read. A flat loop over elements reads the elements
 * of its own rows. */
static Place loaded(Walk *w, const LStmt *s) {
    const LBuf *b = s->buf;
    Place at = b->rank ? w->reg[s->idx[0]->id] : (Place){0};
    if (b->kind == LB_LOCAL) return b->rank ? (Place){0} : w->local[b->id];
    bool index = b->kind == LB_MAP_IDX || b->kind == LB_MAP_PERM;
    if (index) return at.known ? target(w, b, at) : (Place){0};
    if (b->kind != LB_VALUE) return (Place){0};
    /* A flat loop goes over the elements of its rows. */
    if (!at.known && w->touch->at[b->id] == AT_ROW) at = owned_row(w->own);
    note_read(w, w->s->bufs[b->id], at);
    return (Place){0};
}

/* Records the row set that a local scalar holds. again: locals that were stored before. */
static void kept(Walk *w, const LStmt *s, bool *again) {
    if (s->buf->kind != LB_LOCAL || s->buf->rank) return;
    Place *to = &w->local[s->buf->id], from = w->reg[s->src->id];
    bool first = !again[s->buf->id];
    again[s->buf->id] = true;
    *to = first || same_place(to, &from) ? from : (Place){0};
}

/* Visits a list of statements. */
static void walk(Walk *w, const LStmt *s, bool *again) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) {
            bool rows =
                (s->range == LR_CHUNK && s->ptr) ||
                (s->sched.parallel && !w->touch->by_chunk && expr_eq(s->extent, w->own->size));
            w->reg[s->var->id] = rows                     ? owned_row(w->own)
                                 : s->range == LR_SEGMENT ? entries(w, s)
                                                          : (Place){0};
        }
        bool cast = s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_CAST;
        if (s->kind == L_LET) w->reg[s->dst->id] = cast ? w->reg[s->arg[0]->id] : (Place){0};
        if (s->kind == L_LOAD) w->reg[s->dst->id] = loaded(w, s);
        if (s->kind == L_STORE) kept(w, s, again);
        walk(w, s->body, again);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */
/* The partitioned space that the buffer has a row for, or NULL. */
static Space *rows_of(const PBuf *b) {
    const Type *t = &b->type;
    bool rows = t->rank > 0 && t->layout == LAYOUT_DENSE;
    return rows && plan_is_owned(t->dim[0]) ? t->dim[0] : NULL;
}

/* The first loop over chunks with given bounds, or NULL. */
static const LStmt *chunks_of(const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->ptr) return s;
        const LStmt *in = chunks_of(s->body);
        if (in) return in;
    }
    return NULL;
}

/* The space whose rows the kernel computes one by one or sums in chunks; NULL: every process runs
 * it on all rows. */
static Space *rows_of_kernel(const Plan *p, const PStep *s, const Touch *t) {
    if (!t->rows) return NULL;
    if (t->by_chunk) {
        const LStmt *c = chunks_of(s->kernel->body);
        return c ? c->ptr->space : NULL;
    }
    for (int i = 0; i < s->n_bufs; i++) {
        if (!t->written[i]) continue;
        Space *rows = rows_of(p->bufs.v[s->bufs[i]]);
        return rows && expr_eq(rows->size, t->rows) ? rows : NULL;
    }
    return NULL;
}

/* The same of a matrix product. */
static Space *rows_of_product(const Plan *p, const PStep *s, const Touch *t) {
    return t->rows ? rows_of(p->bufs.v[s->bufs[s->gemm.long_k ? 0 : 2]]) : NULL;
}

/* Which rows a step computes and reads. */
typedef struct {
    Space *own;
    bool cuts; /* it sums rows of `own`, and writes a row for each cut */
    bool adds; /* .. to which all of it is added: no maximum */
    bool sums; /* a product over rows of `own`: what it writes is had by all */
    Touch touch;
    VEC(Read) reads;
    bool *writes; /* by argument */
} Step;

static bool adds_alone(const LStmt *s) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->red != RED_SUM) || !adds_alone(s->body)) return false;
    return true;
}

/* Finds the rows that a kernel computes and reads. */
static void find_kernel(Arena *a, const Plan *p, const PStep *s, Step *to) {
    to->own = rows_of_kernel(p, s, &to->touch);
    to->cuts = to->own && to->touch.by_chunk;
    to->adds = to->cuts && adds_alone(s->kernel->body);
    for (int i = 0; i < s->n_bufs; i++) to->writes[i] = s->kernel->bufs.v[i]->written;
    if (!to->own) return;
    Walk w = {.a = a, .p = p, .s = s, .touch = &to->touch, .own = to->own};
    w.reg = NEWN(a, Place, (size_t)s->kernel->n_regs + 1);
    w.local = NEWN(a, Place, (size_t)s->kernel->locals.n + 1);
    walk(&w, s->kernel->body, NEWN(a, bool, (size_t)s->kernel->locals.n + 1));
    for (int i = 0; i < w.reads.n; i++) vec_push(a, &to->reads, w.reads.v[i]);
}

/* Finds the rows that a matrix product computes and reads. */
static void find_product(Arena *a, const Plan *p, const PStep *s, Step *to) {
    to->own = rows_of_product(p, s, &to->touch);
    to->sums = to->own && s->gemm.long_k;
    to->writes[2] = true;
    for (int i = 0; i < 2 && to->own; i++) {
        bool row = to->touch.at[i] == AT_ROW;
        vec_push(a, &to->reads, ((Read){s->bufs[i], row ? owned_row(to->own) : (Place){0}}));
    }
}

/* Whether the statements accumulate into b. */
static bool adds_to(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->buf == b) || adds_to(s->body, b)) return true;
    return false;
}

/* Whether the step reads its i-th buffer. */
static bool is_read(const PStep *s, const Step *to, int i) {
    if (!to->writes[i]) return true;
    if (s->kind != PS_KERNEL) return false;
    const LBuf *b = s->kernel->bufs.v[i];
    return loop_loads(s->kernel->body, b) || adds_to(s->kernel->body, b);
}

/* Adds reads of all rows for buffers of which nothing better is known. */
static void find_rest(Arena *a, const PStep *s, Step *to) {
    for (int i = 0; i < s->n_bufs && !to->own; i++)
        if (is_read(s, to, i)) vec_push(a, &to->reads, ((Read){s->bufs[i], (Place){0}}));
    if (s->pred >= 0) vec_push(a, &to->reads, ((Read){s->pred, (Place){0}}));
}

/* Finds the rows that a step computes and reads. */
static Step find_step(Arena *a, const Plan *p, const PStep *s) {
    Step to = {.touch = plan_touch(a, p, s), .writes = NEWN(a, bool, (size_t)s->n_bufs + 1)};
    if (s->pred >= 0) { /* its rows are as good as any others */
        PStep always = *s;
        always.pred = -1;
        to.touch = plan_touch(a, p, &always);
    }
    switch (s->kind) {
    case PS_KERNEL:
        find_kernel(a, p, s, &to);
        break;
    case PS_GEMM:
        find_product(a, p, s, &to);
        break;
    case PS_RANK:
        to.writes[2] = true;
        break;
    case PS_COPY:
        to.writes[1] = true;
        break;
    case PS_CALL:
        for (int i = s->n_in; i < s->n_bufs; i++) to.writes[i] = true;
        break;
    default:
        break;
    }
    if (s->kind != PS_COPY) find_rest(a, s, &to);
    return to;
}

/* ---- what is where -------------------------------------------------------------------------- */
typedef VEC(PReach) Reaches;

/* Which rows of a buffer a process has. */
typedef struct {
    Space *own; /* its own alone, beside those that were brought; NULL: all */
    bool cuts, adds, all;
    Reaches reach;
} Have;

/* The state of placing exchanges in a phase. */
typedef struct {
    PassCtx *pc;
    Arena *a;
    Plan *p;
    PPhase *ph;
    const Step *step;
    Have *have;        /* by buffer */
    Have **found;      /* .. by an iteration of a loop, by its PS_LOOP */
    const bool *apart; /* by buffer: of no use but to who owns the rows, and to who saves them */
    VEC(PStep *) out;
    int n_exchanges;
} Placing;

/* Whether the halo is in the list. */
static bool has_reach(const Reaches *all, const PReach *r) {
    for (int i = 0; i < all->n; i++)
        if (same_reach(&all->v[i], r)) return true;
    return false;
}

/* What a read needs beyond the rows that a process owns: nothing, some, or all. */
typedef enum { NEEDS_NOTHING, NEEDS_SOME, NEEDS_ALL } Needs;

/* What the read needs beyond the rows that the process owns. */
static Needs needs_of(const Have *h, const Read *r) {
    if (!h->own) return NEEDS_NOTHING;
    if (h->cuts || !r->at.known || r->at.space != h->own) return NEEDS_ALL;
    return r->at.reach.n ? NEEDS_SOME : NEEDS_NOTHING;
}

/* Whether the process has these rows. */
static bool is_there(const Have *h, const Read *r, Needs n) {
    return n == NEEDS_NOTHING || h->all || (n == NEEDS_SOME && has_reach(&h->reach, &r->at.reach));
}

/* Whether the step writes the buffer. */
static bool writes(const Step *s, const PStep *step, int buf) {
    for (int i = 0; i < step->n_bufs; i++)
        if (step->bufs[i] == buf && s->writes[i]) return true;
    return false;
}

/* All rows of the buffer that steps read from `at` on, before it is written again. */
static Have wanted(const Placing *x, int at, int buf) {
    Have h = x->have[buf];
    for (int i = at; i < x->ph->steps.n; i++) {
        const PStep *s = x->ph->steps.v[i];
        if (i > at && (s->kind == PS_LOOP || s->kind == PS_END)) break;
        for (int k = 0; k < x->step[i].reads.n; k++) {
            const Read *r = &x->step[i].reads.v[k];
            if (r->buf != buf) continue;
            Needs n = needs_of(&h, r);
            if (n == NEEDS_ALL) h.all = true;
            if (n == NEEDS_SOME && !has_reach(&h.reach, &r->at.reach))
                vec_push(x->a, &h.reach, r->at.reach);
        }
        if (writes(&x->step[i], s, buf)) break;
    }
    return h;
}

/* The index arrays of a halo, in words. */
static const char *names_of(Arena *a, const Plan *p, const PReach *r) {
    const char *s = "";
    for (int i = 0; i < r->n; i++) {
        const PBuf *b = p->bufs.v[r->hop[i]];
        if (b->map_part == LB_MAP_IDX)
            s = arena_printf(a, "%s%s%s(%s)", s, *s ? ", " : "", text_MapKind.word[b->map->kind],
                             b->map->from->name);
    }
    return *s ? s : p->bufs.v[r->hop[r->n - 1]]->name;
}

/* Rows that all get cost the most: why the reader's index arrays do not say which.  `of` reads
 * them; NULL: none of the phase does. */
static const char *why_all(const Step *of) {
    return !of        ? "they outlive the phase"
           : !of->own ? "the step that reads them is done by all"
                      : "their reader's index arrays do not say which it reads";
}

/* The note of an exchange step. */
static const char *note_of(const Placing *x, const PStep *s, const Step *of) {
    const char *name = x->p->bufs.v[s->bufs[0]]->name, *by = "";
    if (s->folds) return arena_printf(x->a, "sum of %s", name);
    if (s->cuts) return arena_printf(x->a, "partial %s, to all", name);
    if (s->to_first) return arena_printf(x->a, "rows of %s, to the first, who saves them", name);
    if (!s->reach.n) return arena_printf(x->a, "rows of %s, to all: %s", name, why_all(of));
    for (int i = 0; i < s->reach.n; i++)
        by = arena_printf(x->a, "%s%s%s", by, i ? " and " : "",
                          names_of(x->a, x->p, &s->reach.v[i]));
    return arena_printf(x->a, "rows of %s that %s of own %s reaches", name, by,
                        s->reach.v[0].from->name);
}

/* Remarks on an exchange. One of all rows costs the most: it says why the index arrays do not tell
 * which rows are needed. of: the step that reads them, or NULL at the end of the phase. */
static void tell(const Placing *x, const PStep *s) {
    bool all = !s->cuts && !s->reach.n && !s->to_first;
    (all ? pass_refusal : pass_remark)(x->pc, s->span, "place-exchanges", "@%s: %s", x->ph->name,
                                       s->note);
}

/* Appends an exchange of the buffer's wanted rows in front of step `like`. of: the step that reads
 * them, or NULL at the end of the phase. */
static void bring(Placing *x, int buf, Have want, const PStep *like, const Step *of) {
    PStep *s = NEW(x->a, PStep);
    Have *have = &x->have[buf];
    *s = (PStep){.kind = PS_EXCHANGE, .span = like->span, .op = like->op, .pred = -1, .n_bufs = 1};
    s->bufs = NEWN(x->a, int, 1);
    s->bufs[0] = buf;
    s->own = have->own;
    s->cuts = have->cuts;
    s->to_first = !of && x->apart[buf];
    s->folds = have->cuts && have->adds && x->p->bufs.v[buf]->dt == DT_F32;
    for (int i = 0; i < want.reach.n && !want.all; i++)
        if (!has_reach(&have->reach, &want.reach.v[i])) vec_push(x->a, &s->reach, want.reach.v[i]);
    s->note = note_of(x, s, of);
    tell(x, s);
    *have = want;
    vec_push(x->a, &x->out, s);
    x->n_exchanges++;
}

/* The placement without fetched rows. */
static Have rows_at_most(const Have *h) {
    return (Have){.own = h->own, .cuts = h->cuts, .adds = h->adds};
}

/* The placement of what step i writes. */
static Have left_by(const Placing *x, int i) {
    const Step *st = &x->step[i];
    const PStep *s = x->ph->steps.v[i];
    if (s->kind == PS_COPY) return rows_at_most(&x->have[s->bufs[0]]);
    return (Have){.own = st->sums ? NULL : st->own, .cuts = st->own && st->cuts, .adds = st->adds};
}

/* Sets the placement at the start of a loop's iterations: what the steps before the loop left, or
 * its own steps did, whichever is less. Copies hand a placement on, so it is repeated until nothing
 * changes. */
static void enter_loop(Placing *x, int from, int to) {
    for (bool more = true; more;) {
        more = false;
        for (int i = from; i < to; i++) {
            const PStep *s = x->ph->steps.v[i];
            for (int k = 0; k < s->n_bufs; k++) {
                if (!x->step[i].writes[k]) continue;
                Have *h = &x->have[s->bufs[k]], left = left_by(x, i);
                bool less = left.own && !h->own;
                *h = less ? left : rows_at_most(h);
                more |= less;
            }
        }
    }
    x->found[from] = NEWN(x->a, Have, (size_t)x->p->bufs.n + 1);
    memcpy(x->found[from], x->have, (size_t)x->p->bufs.n * sizeof *x->have);
}

/* Restores that placement behind the loop, which may have had no iteration. */
static void leave_loop(Placing *x, int from, int to) {
    for (int i = from; i < to; i++) {
        const PStep *s = x->ph->steps.v[i];
        for (int k = 0; k < s->n_bufs; k++)
            if (x->step[i].writes[k]) x->have[s->bufs[k]] = x->found[from][s->bufs[k]];
    }
}

/* Whether a step in from .. to - 1 writes the buffer. */
static bool is_written(const Placing *x, int from, int to, int buf) {
    for (int i = from; i < to; i++)
        if (writes(&x->step[i], x->ph->steps.v[i], buf)) return true;
    return false;
}

/* Adds exchanges in front of a loop for what no iteration changes. */
static void bring_before(Placing *x, int from, int to) {
    for (int i = from; i < to; i++)
        for (int k = 0; k < x->step[i].reads.n; k++) {
            const Read *r = &x->step[i].reads.v[k];
            const Have *h = &x->have[r->buf];
            if (!is_there(h, r, needs_of(h, r)) && !is_written(x, from, to, r->buf))
                bring(x, r->buf, wanted(x, i, r->buf), x->ph->steps.v[from], &x->step[i]);
        }
}

/* Records the placement of what step i has written, and which rows it computes. */
static void done(Placing *x, int i, PStep *s) {
    const Step *st = &x->step[i];
    Have left = left_by(x, i);
    if (s->kind == PS_COPY && x->have[s->bufs[0]].all) left = (Have){0};
    for (int k = 0; k < s->n_bufs; k++)
        if (st->writes[k]) x->have[s->bufs[k]] = left;
    s->own = s->kind == PS_COPY ? left.own : st->own;
    s->cuts = s->own && (s->kind == PS_COPY ? left.cuts : st->cuts);
}

/* Adds the exchanges that a step needs, and the step. */
static void place_step(Placing *x, int i) {
    PStep *s = x->ph->steps.v[i];
    if (s->kind == PS_LOOP) {
        bring_before(x, i, s->other);
        enter_loop(x, i, s->other);
    }
    if (s->kind == PS_END) leave_loop(x, s->other, i);
    for (int k = 0; k < x->step[i].reads.n; k++) {
        const Read *r = &x->step[i].reads.v[k];
        const Have *h = &x->have[r->buf];
        if (!is_there(h, r, needs_of(h, r))) bring(x, r->buf, wanted(x, i, r->buf), s, &x->step[i]);
    }
    done(x, i, s);
    vec_push(x->a, &x->out, s);
}

/* Adds exchanges at the end of the phase, after which every process has all rows of what outlives
 * it. */
static void complete(Placing *x) {
    for (int b = 0; b < x->p->bufs.n && x->ph->steps.n; b++) {
        Have *h = &x->have[b];
        if (!h->own || h->all || x->p->bufs.v[b]->kind == PB_TEMP) continue;
        Have want = *h;
        want.all = true;
        bring(x, b, want, x->ph->steps.v[x->ph->steps.n - 1], NULL);
    }
}

/* Lets the ends of loops refer to each other's positions. */
static void match_loops(const Placing *x) {
    for (int i = 0; i < x->out.n; i++) {
        PStep *s = x->out.v[i];
        if (s->kind != PS_LOOP) continue;
        int end = i + 1;
        for (int open = 1; open; end++) {
            open += x->out.v[end]->kind == PS_LOOP;
            open -= x->out.v[end]->kind == PS_END;
        }
        s->other = end - 1;
        x->out.v[end - 1]->other = i;
    }
}

/* Finds what each step of a phase does, and reads. */
static Step *find_steps(Arena *a, const Plan *p, const PPhase *ph) {
    Step *step = NEWN(a, Step, (size_t)ph->steps.n + 1);
    for (int i = 0; i < ph->steps.n; i++) step[i] = find_step(a, p, ph->steps.v[i]);
    return step;
}

/* Finds by buffer the state of optimizers of which each process reads its own rows alone. */
static bool *find_apart(Arena *a, const Plan *p) {
    bool *apart = NEWN(a, bool, (size_t)p->bufs.n + 1);
    for (int b = 0; b < p->bufs.n; b++)
        apart[b] = p->bufs.v[b]->kind == PB_VAR && p->bufs.v[b]->var->kind == VAR_SLOT;
    for (int i = 0; i < p->phases.n; i++) {
        const Step *step = find_steps(a, p, p->phases.v[i]);
        for (int k = 0; k < p->phases.v[i]->steps.n; k++)
            for (int r = 0; r < step[k].reads.n; r++) {
                const Read *x = &step[k].reads.v[r];
                if (!step[k].own || !is_own(&x->at) || x->at.space != step[k].own)
                    apart[x->buf] = false;
            }
    }
    return apart;
}

/* Places the exchanges of a phase; returns how many. */
static int place(PassCtx *pc, Plan *p, PPhase *ph, const bool *apart) {
    Arena *a = pc->a;
    Step *step = find_steps(a, p, ph);
    Placing x = {.pc = pc, .a = a, .p = p, .ph = ph, .step = step, .apart = apart};
    x.have = NEWN(a, Have, (size_t)p->bufs.n + 1);
    x.found = NEWN(a, Have *, (size_t)ph->steps.n + 1);
    for (int i = 0; i < ph->steps.n; i++) place_step(&x, i);
    complete(&x);
    match_loops(&x);
    ph->steps.n = 0;
    for (int i = 0; i < x.out.n; i++) vec_push(a, &ph->steps, x.out.v[i]);
    return x.n_exchanges;
}

/* Whether the processes share the rows of the phase; a row is explained by one of them. */
static bool is_shared(const Plan *p, const PPhase *ph) {
    return ph->func->phase != PHASE_EXPLAIN && !plan_is_of_batches(p, ph);
}

static bool run(PassCtx *pc, Plan *p) {
    const bool *apart = p->by_parts ? find_apart(pc->a, p) : NULL;
    for (int i = 0; i < p->phases.n && p->by_parts; i++) {
        PPhase *ph = p->phases.v[i];
        if (!is_shared(p, ph)) continue;
        int n = place(pc, p, ph, apart);
        pass_remark(pc, ph->func->span, "place-exchanges", "@%s: %d exchanges between processes",
                    ph->name, n);
    }
    return true;
}

const Pass plan_pass_place_exchanges = {
    .name = "place-exchanges",
    .summary = "find whose rows steps do, and bring processes the rows that others have",
    .needs = PLAN_STEPS,
    .bars = PLAN_BLOCKS | PLAN_JOINED | PLAN_EPILOGUES | PLAN_GROUPS,
    .breaks = PLAN_LIVES,
    .run_plan = run,
};
