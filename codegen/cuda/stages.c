/* A row whose heads meet, and then may part again: several kernels, launched one after the other.
 *
 *     for v in N parallel {                 NAME_stage1    a team for each head of a row
 *       h[v, head, c] = sums over entries
 *       for c { y[v, c] = mean of h }       NAME_stage2    a thread for each y[v, c]
 *       .. sums over entries that need y    NAME_stage3    a team for each head of a row
 *     }
 *
 * Where no team can have a row as it stands (schedule.c), its list is cut between statements that
 * hand each other on nothing but what is in memory.  What is computed from sizes, and from what
 * the kernel does not write, is computed anew where it is needed.  Pieces are put together again as
 * long as teams can have them.  Rows of a stage see what the stages before have written of
 * theirs, as they did within the row. */
#include "codegen/cuda/cuda.h"

typedef struct {
    Arena *a;
    const LKernel *k;
    const LStmt *parallel;
    VEC(const LStmt *) in; /* the row's list */
    bool *anew;            /* [in] a value that each stage may compute for itself */
    bool *cut;             /* [in] a stage may end behind it */
} Row;

/* ---- where ----------------------------------------------------------------------------- */
/* Nothing that it needs is the row's but what may be computed anew. */
static bool is_anew(const Row *r, int i) {
    const LStmt *s = r->in.v[i];
    bool value = s->kind == L_LET || (s->kind == L_LOAD && s->buf->kind != LB_LOCAL);
    if (!value || (s->kind == L_LOAD && s->buf->written)) return false;
    for (int j = 0; j < i; j++)
        if (!r->anew[j] && r->in.v[j]->dst && loop_reads(s, r->in.v[j]->dst)) return false;
    return true;
}

/* The last statement that needs a register or a local array of statement i. */
static int last_use(const Row *r, int i) {
    const LStmt *s = r->in.v[i];
    int last = i;
    if (r->anew[i]) return i;
    for (int j = i + 1; j < r->in.n; j++) {
        bool array = s->kind == L_LOCAL && loop_depends(r->in.v[j], s);
        if (array || (s->dst && loop_reads(r->in.v[j], s->dst))) last = j;
    }
    return last;
}

static Row row_of(Arena *a, const LKernel *k, const LStmt *parallel) {
    Row r = {.a = a, .k = k, .parallel = parallel};
    for (const LStmt *s = parallel->body; s; s = s->next) vec_push(a, &r.in, s);
    r.anew = NEWN(a, bool, r.in.n + 1);
    r.cut = NEWN(a, bool, r.in.n + 1);
    int together = 0; /* up to here */
    for (int i = 0; i < r.in.n; i++) {
        r.anew[i] = is_anew(&r, i);
        int last = last_use(&r, i);
        if (last > together) together = last;
        r.cut[i] = together <= i && !r.anew[i];
    }
    return r;
}

/* ---- a stage --------------------------------------------------------------------------- */
static bool writes(const LStmt *s, const void *buf) {
    return (s->kind == L_STORE || s->kind == L_ACC) && s->buf == buf;
}

/* Leaves statements first .. end - 1 of the row, and what is computed anew. */
static void keep(const Row *r, LStmt **at, int first, int end) {
    for (int i = 0; *at; i++) {
        if (i >= end || (i < first && !r->anew[i]))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

static bool is_written_before(const Row *r, int end, const LBuf *b) {
    for (int i = 0; i < end; i++) {
        const LStmt *s = r->in.v[i];
        if (writes(s, b) || (loop_has_body(s) && loop_find(s->body, writes, b))) return true;
    }
    return false;
}

static LKernel *stage(const Row *r, int first, int end, int number) {
    LKernel *k = loop_copy(r->a, r->k);
    LStmt *s = k->body;
    k->name = arena_printf(r->a, "%s_stage%d", r->k->name, number);
    while (!s->sched.parallel) s = s->next;
    keep(r, &s->body, first, end);
    for (int i = 0; i < k->bufs.n; i++) {
        LBuf *b = k->bufs.v[i];
        b->written = loop_find(s->body, writes, b);
        b->begun = b->written && (b->begun || is_written_before(r, first, r->k->bufs.v[i]));
    }
    return k;
}

/* ---- which ----------------------------------------------------------------------------- */
/* Entries go to the threads of a team, and elements to a thread each. */
static bool is_shared_out(const CuFn *f, const LKernel *k) {
    CuFn try = *f;
    try.k = k;
    cu_schedule(&try);
    const CuSched *c = &try.sched;
    if (cu_serial_entries(&try)) return false;
    return c->kind != CU_THREAD || c->n_inner || !loop_has_range(c->body, LR_EXTENT);
}

static int next_cut(const Row *r, int from) {
    while (from < r->in.n - 1 && !r->cut[from]) from++;
    return from + 1;
}

/* The longest piece from there on whose work can be shared out; its end, 0 = none can. */
static int longest(const CuFn *f, const Row *r, int first) {
    int best = 0;
    for (int end = first; end < r->in.n;) {
        end = next_cut(r, end);
        const LKernel *k = stage(r, first, end, 0);
        bool entries = loop_has_range(k->body, LR_SEGMENT);
        if (is_shared_out(f, k) || (best == 0 && !entries))
            best = end;
        else if (best)
            break;
    }
    return best;
}

CuStages cu_stages(const CuFn *f) {
    CuStages stages = {0}, none = {0};
    const LStmt *parallel = f->sched.parallel;
    if (!parallel || cu_serial_entries(f) == 0) return none;
    const Row r = row_of(f->a, f->k, parallel);
    for (int first = 0, end; first < r.in.n; first = end) {
        end = longest(f, &r, first);
        if (!end) return none;
        LKernel *k = stage(&r, first, end, stages.n + 1);
        vec_push(f->a, &stages, k);
    }
    return stages;
}
