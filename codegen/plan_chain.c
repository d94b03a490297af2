/* Chains: steps that the host runs together, block by block of rows.
 *
 *     12: d.z  = segment sum of d.h's rows        for each block of rows:
 *     13: t    = gemm(d.z, W)                       d.z, then t, then d.h of these rows,
 *     15: d.h  = h > 0 ? t : 0                      then their part of d.b
 *     16: d.b  = sum of d.h's rows, in parts
 *
 * Each step reads of what the others write its own rows only, so a block's values are still in
 * the cache when the next step wants them: a matrix product gets its epilogue (bias, activation,
 * dropout, a second product added), its producer, a second product of the same rows, and the sum
 * for a bias's gradient, whatever they are.  It is the tiling of whole operators of Niu et al.
 * 2021, "DNNFusion", and TVM's compute_at, decided on the plan: nothing is generated anew,
 * kernels are functions of a range of rows already.
 *
 * Steps in between that are no part of it are moved before the chain where nothing they touch
 * is written there, else they stay behind it. */
#include "codegen/plan.h"

#include <string.h>

enum {
    CHAIN_MAX = 12, /* links */
    LOOK_AHEAD = 16 /* steps that may lie between two links */
};

bool step_writes(const PStep *s, int i) {
    switch (s->kind) {
    case PS_KERNEL:
        return s->kernel->bufs.v[i]->written;
    case PS_CALL:
        return i >= s->n_in;
    case PS_GEMM:
    case PS_RANK:
    case PS_COPY:
        return i == s->n_bufs - 1;
    default:
        return false;
    }
}

/* ---- what rows a step works on -------------------------------------------------------------- */
/* A step as a link: by itself nothing is said of it but its rows. */
typedef struct {
    const Expr *rows, *per_row, *parts; /* rows NULL: it cannot be one */
    const LReg *row;                    /* of a kernel: the loop variable that counts them */
} Link;

static const LStmt *chunk_loop(const LStmt *s, const LReg *chunk) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->at == chunk) return s;
        const LStmt *in = s->body ? chunk_loop(s->body, chunk) : NULL;
        if (in) return in;
    }
    return NULL;
}

static const LStmt *parallel_loop(const LKernel *k) {
    const LStmt *s = k->body;
    while (s && !(s->kind == L_FOR && s->sched.parallel)) s = s->next;
    return s;
}

static Link kernel_link(Arena *a, const PStep *s) {
    const LStmt *loop = parallel_loop(s->kernel);
    const Type *t = &s->op->type;
    if (!loop || !s->extent) return (Link){0};
    const LStmt *chunk = chunk_loop(loop->body, loop->var);
    if (chunk) return (Link){.rows = chunk->extent, .parts = s->extent, .row = chunk->var};
    if (t->rank == 0 || t->dim[0]->kind == SP_DIM) return (Link){0};
    Link l = {.rows = t->dim[0]->size, .per_row = expr_const(a, 1), .row = loop->var};
    if (expr_eq(s->extent, l.rows)) return l;
    for (int i = 1; i < t->rank; i++) l.per_row = expr_mul(a, l.per_row, t->dim[i]->size);
    return expr_eq(s->extent, expr_mul(a, l.rows, l.per_row)) ? l : (Link){0};
}

static Link link_of(Arena *a, const PStep *s) {
    const Type *t = s->op ? &s->op->type : NULL;
    if (s->pred >= 0) return (Link){0};
    if (s->kind == PS_KERNEL) return kernel_link(a, s);
    bool rows = s->kind == PS_GEMM && !s->gemm.long_k && t->dim[0]->kind != SP_DIM &&
                expr_eq(s->gemm.m, t->dim[0]->size);
    return (Link){.rows = rows ? s->gemm.m : NULL};
}

/* Is every element of b accessed at the present row? */
static bool at_row(const LStmt *s, const LBuf *b, const LReg *row) {
    for (; s; s = s->next) {
        bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
        if (access && s->buf == b && s->idx[0] != row) return false;
        if (s->body && !at_row(s->body, b, row)) return false;
    }
    return true;
}

/* Does the step touch of its i-th buffer the rows only that it works on? */
static bool is_aligned(Arena *a, const Plan *p, const PStep *s, const Link *l, int i) {
    const Expr *count = p->bufs.v[s->bufs[i]]->count;
    int64_t one;
    if (s->kind == PS_GEMM) {
        const Expr *stride = i == 0 ? s->gemm.a_row : s->gemm.c_row;
        bool by_rows = i == 2 || (expr_is_const(s->gemm.a_col, &one) && one == 1);
        return i != 1 && by_rows && expr_eq(expr_mul(a, stride, l->rows), count);
    }
    const LBuf *b = s->kernel->bufs.v[i];
    if (b->rank == 0 || !at_row(s->kernel->body, b, l->row)) return false;
    if (expr_eq(b->dim[0], l->rows)) return !l->per_row || expr_eq(s->extent, l->rows);
    return l->per_row && b->rank == 1 && expr_eq(b->dim[0], s->extent);
}

/* ---- may two steps change places? --------------------------------------------------------- */
static bool touches(const PStep *s, int buf, bool writing) {
    if (!writing && s->pred == buf) return true;
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == buf && (!writing || step_writes(s, i))) return true;
    return false;
}

static bool is_quiet(const PStep *s) {
    return s->kind == PS_KERNEL || s->kind == PS_GEMM || s->kind == PS_RANK || s->kind == PS_COPY;
}

static bool commute(const PStep *x, const PStep *y) {
    for (int i = 0; i < x->n_bufs; i++)
        if (touches(y, x->bufs[i], !step_writes(x, i))) return false;
    return x->pred < 0 || !touches(y, x->pred, true);
}

/* ---- a chain ------------------------------------------------------------------------------ */
typedef struct {
    Arena *a;
    const Plan *p;
    PStep *step[CHAIN_MAX];
    Link link[CHAIN_MAX];
    int n, n_gemm;
    const Expr *parts;
    PStep *before[LOOK_AHEAD], *behind[LOOK_AHEAD]; /* steps in between */
    int n_before, n_behind;
} Chain;

/* Do s and a link fit: is what one of them writes and the other touches aligned in both?  (Parts
 * come after the blocks that they consist of, so no row may wait for them.)  *near: they have a
 * value in common that the cache may keep. */
static bool fits(const Chain *c, int link, const PStep *s, const Link *l, bool *near) {
    const PStep *t = c->step[link];
    bool in_order = !c->link[link].parts || l->parts;
    for (int i = 0; i < t->n_bufs; i++)
        for (int k = 0; k < s->n_bufs; k++) {
            if (t->bufs[i] != s->bufs[k]) continue;
            bool aligned = in_order && is_aligned(c->a, c->p, t, &c->link[link], i) &&
                           is_aligned(c->a, c->p, s, l, k);
            if (!aligned && (step_writes(t, i) || step_writes(s, k))) return false;
            *near |= aligned;
        }
    return true;
}

static bool joins(const Chain *c, const PStep *s, const Link *l) {
    bool near = false;
    if (!l->rows || !expr_eq(l->rows, c->link[0].rows)) return false;
    if (l->parts && c->parts && !expr_eq(l->parts, c->parts)) return false;
    for (int i = 0; i < c->n_behind; i++)
        if (!commute(c->behind[i], s)) return false;
    for (int i = 0; i < c->n; i++)
        if (!fits(c, i, s, l, &near)) return false;
    return near;
}

static void add_link(Chain *c, PStep *s, Link l) {
    if (l.parts) c->parts = l.parts;
    c->n_gemm += s->kind == PS_GEMM;
    c->link[c->n] = l;
    c->step[c->n++] = s;
}

/* A step that is no link comes before the chain where it can. */
static void put_aside(Chain *c, PStep *s) {
    bool before = true;
    for (int i = 0; i < c->n; i++) before &= commute(c->step[i], s);
    for (int i = 0; i < c->n_behind; i++) before &= commute(c->behind[i], s);
    if (before)
        c->before[c->n_before++] = s;
    else
        c->behind[c->n_behind++] = s;
}

/* The chain of `most` links at most that begins with step `at`. */
static void collect(Chain *c, const PPhase *ph, int at, int most) {
    int n_before = 0, n_behind = 0, aside = 0;
    add_link(c, ph->steps.v[at], link_of(c->a, ph->steps.v[at]));
    for (int i = at + 1; i < ph->steps.n && aside < LOOK_AHEAD && c->n < most; i++) {
        PStep *s = ph->steps.v[i];
        Link l = link_of(c->a, s);
        if (!is_quiet(s)) break;
        if (joins(c, s, &l)) {
            add_link(c, s, l);
            n_before = c->n_before, n_behind = c->n_behind;
        } else {
            put_aside(c, s);
            aside++;
        }
    }
    c->n_before = n_before, c->n_behind = n_behind;
}

/* before, links, behind */
static void place(const Chain *c, PPhase *ph, int at, int number) {
    PStep **to = ph->steps.v + at;
    for (int i = 0; i < c->n_before; i++) *to++ = c->before[i];
    for (int i = 0; i < c->n; i++) {
        PStep *s = *to++ = c->step[i];
        s->chain = number;
        s->alone = NULL;
        s->rows = c->link[0].rows;
        s->per_row = c->link[i].per_row;
        s->parts = c->parts;
    }
    for (int i = 0; i < c->n_behind; i++) *to++ = c->behind[i];
}

/* ---- memory ----------------------------------------------------------------------------------
 * What one link of a chain reads for the last time and what a later one makes must both exist.
 * Chains are as long as that costs no memory, in a graph of usual proportions. */
typedef struct {
    int64_t *sizes; /* by Sym.id */
    int64_t *live;  /* by step */
    int64_t limit;  /* bytes */
} Room;

static int64_t usual_size(SpaceKind k) {
    switch (k) {
    case SP_EDGE:
    case SP_NZ:
        return 1 << 20;
    case SP_NODE:
        return 1 << 17;
    case SP_GRAPH:
        return 1 << 12;
    default:
        return 1 << 6;
    }
}

/* The most that temporaries of the phase need at any step. */
static int64_t peak_bytes(const Room *r, const Plan *p, const PPhase *ph) {
    int64_t most = 0, now = 0;
    plan_lifetimes(p, ph);
    memset(r->live, 0, sizeof *r->live * ((size_t)ph->steps.n + 1));
    for (int i = 0; i < p->bufs.n; i++) {
        const PBuf *b = p->bufs.v[i];
        if (b->kind != PB_TEMP || p->phases.v[b->phase] != ph || b->first < 0) continue;
        int64_t n_bytes = expr_eval(b->count, r->sizes) * dtype_bytes(b->dt);
        r->live[b->first] += n_bytes;
        r->live[b->last + 1] -= n_bytes;
    }
    for (int i = 0; i < ph->steps.n; i++) {
        now += r->live[i];
        if (now > most) most = now;
    }
    return most;
}

static Room room_of(Arena *a, const Plan *p, const PPhase *ph) {
    Room r = {.sizes = NEWN(a, int64_t, (size_t)p->m->syms.n + 1),
              .live = NEWN(a, int64_t, (size_t)ph->steps.n + 1)};
    for (int i = 0; i < p->m->syms.n; i++) r.sizes[i] = usual_size(SP_DIM);
    for (int i = 0; i < p->m->spaces.n; i++) {
        const Space *s = p->m->spaces.v[i];
        if (s->size && s->size->kind == EX_SYM) r.sizes[s->size->sym->id] = usual_size(s->kind);
    }
    int64_t peak = peak_bytes(&r, p, ph);
    r.limit = peak + peak / 64; /* partial sums may lie about */
    return r;
}

static void undo(const Chain *c, PPhase *ph, PStep *const *was, int at) {
    for (int i = 0; i < c->n; i++) c->step[i]->chain = 0;
    memcpy(ph->steps.v + at, was, sizeof *was * (size_t)(c->n_before + c->n + c->n_behind));
}

/* The longest chain that there is room for begins with step `at`; false: there is none. */
static bool try_chain(Chain *c, const Room *r, PPhase *ph, int at, int number) {
    PStep *was[CHAIN_MAX + 2 * LOOK_AHEAD];
    for (int most = CHAIN_MAX; most > 1; most = c->n - 1) {
        *c = (Chain){.a = c->a, .p = c->p};
        collect(c, ph, at, most);
        if (c->n < 2 || c->n_gemm == 0) return false;
        memcpy(was, ph->steps.v + at, sizeof *was * (size_t)(c->n_before + c->n + c->n_behind));
        place(c, ph, at, number);
        if (peak_bytes(r, c->p, ph) <= r->limit) return true;
        undo(c, ph, was, at);
        for (int i = 0; i < c->n; i++)
            c->step[i]->alone = "what stands beside it would need more memory at once";
    }
    return false;
}

static void tell_alone(Arena *a, const PPhase *ph) {
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        if (s->kind != PS_GEMM || s->chain || s->alone) continue;
        if (s->gemm.long_k)
            s->alone = "it sums over all rows";
        else if (!link_of(a, s).rows)
            s->alone = "its rows are no nodes or edges, or not what its result begins with";
        else
            s->alone = "no step beside it works on the same rows of its operand or result alone";
    }
}

bool plan_chain_cached(Arena *a, const Plan *p, const PPhase *ph, int step, int i) {
    const PStep *s = ph->steps.v[step];
    Link l = link_of(a, s);
    if (!s->chain || !is_aligned(a, p, s, &l, i)) return false;
    for (int k = step - 1; k >= 0 && ph->steps.v[k]->chain == s->chain; k--) {
        const PStep *t = ph->steps.v[k];
        Link of = link_of(a, t);
        for (int j = 0; j < t->n_bufs; j++)
            if (t->bufs[j] == s->bufs[i] && is_aligned(a, p, t, &of, j)) return true;
    }
    return false;
}

void plan_chain(Arena *a, const Plan *p, PPhase *ph) {
    int number = 1;
    Room r = room_of(a, p, ph);
    for (int i = 0; i < ph->steps.n; i++) {
        Chain c = {.a = a, .p = p};
        if (!link_of(a, ph->steps.v[i]).rows || !try_chain(&c, &r, ph, i, number)) continue;
        i += c.n_before + c.n - 1;
        number++;
    }
    tell_alone(a, ph);
}
