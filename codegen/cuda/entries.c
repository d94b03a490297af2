/* Entries of a row by turns: which loops over them can be dealt out to the ways of a team, or to
 * all of its threads. */
#include "codegen/cuda/cuda.h"

/* A loop over entries that is looked at. */
typedef struct {
    const CuFn *f;
    const LStmt *body;
    int run; /* which it is in, from 1 */
    const LBuf **target;
    int n;
} Entries;

/* s adds to a register of the column, or to one of the row, and does nothing else to it. */
static bool adds_to_register(Entries *e, const LStmt *s) {
    const LBuf *b = s->buf;
    bool in_register = b->kind == LB_LOCAL || e->f->sched.cell[b->id];
    if (s->kind != L_ACC || !in_register) return false;
    for (int i = 0; i < e->n; i++)
        if (e->target[i] == b) return false;
    if (e->n == CU_TARGETS_MAX) return false;
    e->target[e->n++] = b;
    return true;
}

static bool only_reads(const Entries *e, const LStmt *s) {
    const LBuf *b = s->buf;
    if (s->kind != L_LOAD) return false;
    if (b->kind == LB_LOCAL) return b->rank == 0;
    const int over = e->f->sched.over[b->id];
    return !b->written || (over && e->run > over);
}

static bool has_effect_but(Entries *e, const LStmt *s) {
    for (; s; s = s->next) {
        if (loop_has_body(s) && has_effect_but(e, s->body)) return true;
        if (!loop_is_access(s)) continue;
        bool own = s->buf->kind == LB_LOCAL && loop_declares(e->body, s->buf);
        if (!own && !only_reads(e, s) && !adds_to_register(e, s)) return true;
    }
    return false;
}

/* From 1; 0 = in none. */
static int run_with(const CuFn *f, const LStmt *s) {
    for (int i = 0; i < f->sched.runs.n; i++)
        if (cu_run_has(&f->sched.runs.v[i], s)) return i + 1;
    return 0;
}

static bool is_long(const LStmt *s) {
    int64_t n;
    return s->range != LR_EXTENT || !expr_is_const(s->extent, &n) || n >= 32;
}

int cu_split_targets(const CuFn *f, const LStmt *s, const LBuf **target) {
    Entries e = {.f = f, .body = s->body, .target = target};
    bool asked = !f->k->threads.by || s->sched.share == LS_WAYS;
    bool plain = s->kind == L_FOR && asked && !cu_is_columns(f, s) && is_long(s);
    if (!plain || f->sched.one_way) return 0;
    e.run = run_with(f, s);
    if (has_effect_but(&e, s->body)) return 0;
    for (int i = 0; i < e.n; i++)
        if (loop_loads(s->body, target[i])) return 0;
    return e.n;
}

static int add_relation(const LStmt **loop, int n, const LStmt *s) {
    for (int i = 0; i < n; i++)
        if (loop[i]->ptr == s->ptr) return n;
    if (n < CU_TARGETS_MAX) loop[n++] = s;
    return n;
}

int cu_row_entries(const CuFn *f, const LStmt **loop) {
    const CuSched *c = &f->sched;
    const LBuf *target[CU_TARGETS_MAX];
    int n = 0;
    for (int i = 0; c->parallel && i < c->runs.n; i++)
        for (const LStmt *s = c->runs.v[i].first; s != c->runs.v[i].end; s = s->next) {
            bool entries = s->kind == L_FOR && s->range == LR_SEGMENT && s->at == c->parallel->var;
            if (entries && cu_split_targets(f, s, target)) n = add_relation(loop, n, s);
        }
    return n;
}

const LStmt *cu_find_split(const CuFn *f) {
    const LBuf *target[CU_TARGETS_MAX];
    for (int i = 0; i < f->sched.runs.n; i++) {
        const CuRun *r = &f->sched.runs.v[i];
        for (const LStmt *s = r->first; s != r->end; s = s->next) {
            if (cu_split_targets(f, s, target)) return s;
        }
    }
    return NULL;
}
