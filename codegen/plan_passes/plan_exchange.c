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
 * entries.  A step that writes its own rows alone (plan_touch.c) does the owned ones; what
 * it reads of a value at other rows is known from the index arrays that its kernel goes through,
 * and an exchange before it brings those.  Whatever else reads such a value wants all of it, and is
 * done by all.  That is the owner-computes rule (Rogers and Pingali 1989) with inspected index
 * arrays (Saltz et al. 1991, PARTI); gathers backward go along transposed maps, so they need
 * nothing more.
 *
 * Rows that several steps read are brought once, before the first of them.  What outlives the phase
 * is had by all at its end; of what @load computes from the data each process then has what the
 * steps of other phases read.  Rows keep their numbers, so one process has nothing to exchange, and
 * there the plan does what it did without. */
#include <string.h>

#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/plan_passes/plan_reads.h"
#include "ir/text.h"
#include "passes/rewrite.h"
#include "runtime/exec/rng.h"

bool plan_is_partitioned_space(const Space *s) {
    if (!s || s->prefix_of || s->distinct_of || space_of_batch(s)) return false;
    if (s->kind == SP_NZ) return plan_is_partitioned_space(s->nz_of->type.dim[0]);
    return s->kind == SP_NODE || s->kind == SP_EDGE || s->kind == SP_GRAPH;
}

/* Whether the buffer has factors of edges, which the runtime draws (sample_boundary.c). */
static bool is_boundary(const PBuf *b) {
    return b->kind == PB_INPUT && b->dt == DT_F32 && b->type.rank == 1 &&
           plan_is_partitioned_space(b->type.dim[0]) && rt_boundary_is_input(b->io_name);
}

bool plan_map_keeps_owner(const Map *m) {
    return map_is_sorted(m) && plan_is_partitioned_space(m->from) &&
           plan_is_partitioned_space(m->to);
}

/* ---- which rows an index is of -------------------------------------------------------------- */
/* A walk over a kernel that finds which rows it reads. */
typedef struct {
    Arena *a;
    const Plan *p;
    const PStep *s;
    const StepAccesses *touch;
    Space *rows;
    RowStep *reg, *local; /* by register; by local array */
    RowReads reads, index_reads;
    IntList used; /* index arrays whose numbers are used for more than finding rows */
    bool samples; /* the step reads factors of edges */
} AccessWalk;

/* The rows of a space that the process owns. */
static RowStep owned_row(Space *s) {
    return (RowStep){.is_known = true, .space = s, .halo.from = s};
}

/* Whether the rows are owned ones. */
static bool is_owned_row(const RowStep *p) {
    return p->is_known && p->space && !p->halo.n_via;
}

/* Whether two halos are found along the same index arrays. */
static bool same_halo(const PHalo *x, const PHalo *y) {
    bool same = x->from == y->from && x->n_via == y->n_via;
    for (int i = 0; i < x->n_via && same; i++) same = x->via[i] == y->via[i];
    return same;
}

bool plan_has_halo(const PHaloList *all, const PHalo *halo) {
    for (int i = 0; i < all->n; i++)
        if (same_halo(&all->v[i], halo) && (!all->v[i].sampled || halo->sampled)) return true;
    return false;
}

/* Whether two row sets are the same. */
static bool same_rows(const RowStep *x, const RowStep *y) {
    return x->is_known == y->is_known && x->space == y->space && x->segments_of == y->segments_of &&
           (!x->is_known || same_halo(&x->halo, &y->halo));
}

/* What these rows lead to is not known: the numbers by which they are found must be the data's. */
static RowStep lost(AccessWalk *w, RowStep at) {
    if (at.is_known && at.halo.n_via) vec_push(w->a, &w->used, at.halo.via[at.halo.n_via - 1]);
    return (RowStep){0};
}

/* The rows that are reached from rows p through one more index array b. space: the space they are
 * rows of; NULL = positions in the segments of map `pos`. */
static RowStep follow(AccessWalk *w, RowStep p, const LBuf *b, Space *space, const Map *pos) {
    if (p.halo.n_via == PLAN_HALO_DEPTH_MAX) return lost(w, p);
    p.halo.via[p.halo.n_via++] = w->s->bufs[b->id];
    p.space = space;
    p.segments_of = pos;
    return p;
}

/* The rows of the entries that a loop over a segment visits. */
static RowStep entry_rows(AccessWalk *w, const LStmt *loop) {
    const Map *m = loop->ptr->map;
    RowStep at = w->reg[loop->at->id];
    if (!at.is_known || at.space != m->to) return lost(w, at);
    if (is_owned_row(&at) && plan_map_keeps_owner(m)) return owned_row(m->from);
    bool sorted = map_is_sorted(m);
    return follow(w, at, loop->ptr, sorted ? m->from : NULL, sorted ? NULL : m);
}

/* The rows that an index array b leads to from the rows `at`. */
static RowStep target_rows(AccessWalk *w, const LBuf *b, RowStep at) {
    const Map *m = b->map;
    if (b->kind == LB_MAP_PERM)
        return at.segments_of == m ? follow(w, at, b, m->from, NULL) : lost(w, at);
    if (b->sorted_by)
        return at.segments_of == b->sorted_by ? follow(w, at, b, m->to, NULL) : lost(w, at);
    if (at.space != m->from) return lost(w, at);
    if (is_owned_row(&at) && plan_map_keeps_owner(m)) return owned_row(m->to);
    return follow(w, at, b, m->to, NULL);
}

/* Records a read, once. */
static void record_read(AccessWalk *w, RowReads *to, int buf, RowStep at) {
    for (int i = 0; i < to->n; i++)
        if (to->v[i].buf == buf && same_rows(&to->v[i].at, &at)) {
            to->v[i].at.halo.sampled &= at.halo.sampled;
            return;
        }
    vec_push(w->a, to, ((RowRead){buf, at}));
}

/* Whether the statement only finds rows by its i-th register, or tells whether there is one. (The
 * segments of rows have the numbers of the data.) */
static bool only_finds_rows(const LStmt *s, int i) {
    if (s->kind == L_LOAD) return i == 0;
    if (s->kind == L_STORE) return s->buf->kind == LB_LOCAL && !s->buf->rank && i == 0;
    if (s->kind != L_LET) return false;
    if (s->fn == L_FN_OP) return s->op == OP_CAST;
    const LStmt *than = s->n_arg == 2 ? s->arg[1]->def : NULL;
    if (!than || than->kind != L_LET || i != 0) return false;
    return (s->fn == L_FN_IGE && than->fn == L_FN_CONST && than->imm == 0) ||
           (s->fn == L_FN_ILT && than->fn == L_FN_SIZE);
}

/* Records the index arrays whose numbers the statement uses in another way. */
static void record_uses(AccessWalk *w, const LStmt *s) {
    for (int i = 0; loop_operand(s, i); i++) {
        const RowStep *p = &w->reg[(*loop_operand(s, i))->id];
        if (p->is_known && p->halo.n_via && !only_finds_rows(s, i))
            vec_push(w->a, &w->used, p->halo.via[p->halo.n_via - 1]);
    }
}

/* ---- which of them are sampled -------------------------------------------------------------- */
/* The register without its casts. */
static const LReg *uncast(const LReg *r) {
    while (r->def && r->def->kind == L_LET && r->def->fn == L_FN_OP && r->def->op == OP_CAST)
        r = r->def->arg[0];
    return r;
}

/* Whether two registers are the same index: one register, or equal elements of an index array. */
static bool same_index(const LReg *x, const LReg *y) {
    const LStmt *a = (x = uncast(x))->def, *b = (y = uncast(y))->def;
    if (x == y) return true;
    return a && b && a->kind == L_LOAD && b->kind == L_LOAD && a->buf == b->buf &&
           a->buf->kind == LB_MAP_PERM && uncast(a->idx[0]) == uncast(b->idx[0]);
}

/* Whether register `edge` is the edge at whose end `row` is: row = idx[edge]; or, with indices in
 * the order of segments, row = idx[k] and edge = perm[k]. */
static bool is_edge_of(const LReg *edge, const LReg *row) {
    const LStmt *end = uncast(row)->def, *at = uncast(edge)->def;
    if (!end || end->kind != L_LOAD || end->buf->kind != LB_MAP_IDX) return false;
    if (!end->buf->sorted_by) return same_index(edge, end->idx[0]);
    return at && at->kind == L_LOAD && at->buf->kind == LB_MAP_PERM &&
           at->buf->map == end->buf->sorted_by && same_index(at->idx[0], end->idx[0]);
}

/* Whether the register is true where the factor of the edge at whose end `row` is equals 0: the
 * row is not drawn (sample_boundary.c). */
static bool says_undrawn(const AccessWalk *w, const LReg *r, const LReg *row) {
    const LStmt *s = r->def;
    if (!s || s->kind != L_LET || s->fn != L_FN_OP || s->op != OP_EQ) return false;
    const LStmt *zero = uncast(s->arg[1])->def;
    if (!zero || zero->kind != L_LET || zero->fn != L_FN_CONST || zero->imm != 0) return false;
    const LStmt *factor = uncast(s->arg[0])->def;
    if (!factor || factor->kind != L_LOAD) return false;
    if (factor->buf->kind != LB_VALUE || factor->buf->rank != 1) return false;
    const PBuf *b = w->p->bufs.v[w->s->bufs[factor->buf->id]];
    return is_boundary(b) && is_edge_of(factor->idx[0], row);
}

/* What a value of a row of another process comes to, by register. */
typedef enum { USE_UNKNOWN, USE_SAMPLED, USE_OTHER } RowUse;

static RowUse use_of(const AccessWalk *w, const LReg *r, const LReg *row, RowUse *known);

/* Whether what statement u makes of its operand r, a value of the row, is left out where the row is
 * not drawn: a select takes another value there, at once or later. */
static bool comes_to_select(const AccessWalk *w, const LStmt *u, const LReg *r, const LReg *row,
                            RowUse *known) {
    if (u->kind != L_LET) return false;
    if (u->fn == L_FN_OP && u->op == OP_SELECT && u->arg[0] != r && u->arg[1] != r &&
        says_undrawn(w, u->arg[0], row))
        return true;
    return use_of(w, u->dst, row, known) == USE_SAMPLED;
}

/* Whether all statements of the list that read r are such. */
static bool all_come_to_select(const AccessWalk *w, const LStmt *u, const LReg *r, const LReg *row,
                               RowUse *known) {
    for (; u; u = u->next) {
        bool reads = false;
        for (int i = 0; loop_operand(u, i); i++) reads |= *loop_operand(u, i) == r;
        if (reads && !comes_to_select(w, u, r, row, known)) return false;
        if (!all_come_to_select(w, u->body, r, row, known)) return false;
    }
    return true;
}

static RowUse use_of(const AccessWalk *w, const LReg *r, const LReg *row, RowUse *known) {
    if (known[r->id] == USE_UNKNOWN)
        known[r->id] =
            all_come_to_select(w, w->s->kernel->body, r, row, known) ? USE_SAMPLED : USE_OTHER;
    return known[r->id];
}

/* Whether the buffer is this index array of map m, in storage order. */
static bool is_part_of(const PBuf *b, const Map *m, LBufKind part) {
    return b->kind == PB_MAP && b->map == m && b->map_part == part && !b->by;
}

bool plan_is_drawn(const Plan *p, const PHalo *halo) {
    const PBuf *first = p->bufs.v[halo->via[0]], *last = p->bufs.v[halo->via[halo->n_via - 1]];
    const Map *src = first->map, *dst = last->map;
    if (!src || src->kind != MAP_SRC) return false;
    if (halo->n_via == 1) return halo->from == src->from && is_part_of(first, src, LB_MAP_IDX);
    if (halo->from != src->to || !is_part_of(first, src, LB_MAP_PTR)) return false;
    if (last->kind != PB_MAP || last->map_part != LB_MAP_IDX || !dst || dst->kind != MAP_DST ||
        dst->from != src->from)
        return false;
    return halo->n_via == 2   ? last->by == src
           : halo->n_via == 3 ? is_part_of(p->bufs.v[halo->via[1]], src, LB_MAP_PERM) && !last->by
                              : false;
}

/* Whether only drawn rows of those that s loads are needed. at: which these are. */
static bool is_sampled(const AccessWalk *w, const LStmt *s, const RowStep *at) {
    if (!w->samples || !at->is_known || !at->halo.n_via || !plan_is_drawn(w->p, &at->halo))
        return false;
    RowUse *known = NEWN(w->a, RowUse, (size_t)w->s->kernel->n_regs + 1);
    return use_of(w, s->dst, s->idx[0], known) == USE_SAMPLED;
}

/* Which rows the loaded register is an index of; records what is read. A flat loop over all
 * elements reads the elements of its own rows. */
static RowStep load_rows(AccessWalk *w, const LStmt *s) {
    const LBuf *b = s->buf;
    RowStep at = b->rank ? w->reg[s->idx[0]->id] : (RowStep){0};
    if (b->kind == LB_LOCAL) return b->rank ? (RowStep){0} : w->local[b->id];
    bool index = b->kind == LB_MAP_IDX || b->kind == LB_MAP_PERM;
    if (index || b->kind == LB_GLOBAL_IDS) record_read(w, &w->index_reads, w->s->bufs[b->id], at);
    if (index) return at.is_known ? target_rows(w, b, at) : (RowStep){0};
    if (b->kind != LB_VALUE) return (RowStep){0};
    /* A flat loop goes over the elements of its rows. */
    if (!at.is_known && w->touch->at[b->id] == AT_ROW) at = owned_row(w->rows);
    RowStep of = at;
    of.halo.sampled = is_sampled(w, s, &at);
    record_read(w, &w->reads, w->s->bufs[b->id], of);
    return (RowStep){0};
}

/* Records which rows a local scalar is an index of. again[local id]: it was stored before, so that
 * two different indices make it unknown. */
static void store_local(AccessWalk *w, const LStmt *s, bool *again) {
    if (s->buf->kind != LB_LOCAL || s->buf->rank) return;
    RowStep *to = &w->local[s->buf->id], from = w->reg[s->src->id];
    bool first = !again[s->buf->id];
    again[s->buf->id] = true;
    if (first || same_rows(to, &from)) {
        *to = from;
        return;
    }
    lost(w, from);
    *to = lost(w, *to);
}

/* Finds, for each register of the statements, which rows it is an index of (owned by this process,
 * or reached through which index arrays), and records the rows that loads read. again[local id]:
 * the local has been stored before. */
static void walk_list(AccessWalk *w, const LStmt *s, bool *again) {
    for (; s; s = s->next) {
        record_uses(w, s);
        if (s->kind == L_FOR) {
            bool rows =
                (s->range == LR_CHUNK && s->ptr) ||
                (s->sched.parallel && !w->touch->by_chunk && expr_eq(s->extent, w->rows->size));
            w->reg[s->var->id] = rows                     ? owned_row(w->rows)
                                 : s->range == LR_SEGMENT ? entry_rows(w, s)
                                                          : (RowStep){0};
        }
        bool cast = s->kind == L_LET && s->fn == L_FN_OP && s->op == OP_CAST;
        if (s->kind == L_LET) w->reg[s->dst->id] = cast ? w->reg[s->arg[0]->id] : (RowStep){0};
        if (s->kind == L_LOAD) w->reg[s->dst->id] = load_rows(w, s);
        if (s->kind == L_STORE) store_local(w, s, again);
        walk_list(w, s->body, again);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */
Space *plan_buffer_rows(const PBuf *b) {
    const Type *t = &b->type;
    bool rows = t->rank > 0 && t->layout == LAYOUT_DENSE;
    return rows && plan_is_partitioned_space(t->dim[0]) ? t->dim[0] : NULL;
}

/* The first loop over chunks with given bounds, or NULL. */
static const LStmt *chunk_loop(const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR && s->range == LR_CHUNK && s->ptr) return s;
        const LStmt *in = chunk_loop(s->body);
        if (in) return in;
    }
    return NULL;
}

Space *plan_kernel_rows(const Plan *p, const PStep *s, const StepAccesses *t) {
    if (!t->rows) return NULL;
    if (t->by_chunk) {
        const LStmt *c = chunk_loop(s->kernel->body);
        return c ? c->ptr->space : NULL;
    }
    for (int i = 0; i < s->n_bufs; i++) {
        if (!t->written[i]) continue;
        Space *rows = plan_buffer_rows(p->bufs.v[s->bufs[i]]);
        return rows && expr_eq(rows->size, t->rows) ? rows : NULL;
    }
    return NULL;
}

/* The space whose rows a matrix product has, so that each process can do its own; NULL: every
 * process makes the whole product. */
static Space *product_rows(const Plan *p, const PStep *s, const StepAccesses *t) {
    return t->rows ? plan_buffer_rows(p->bufs.v[s->bufs[s->gemm.long_k ? 0 : 2]]) : NULL;
}

/* Which rows a step computes and reads. */
typedef struct {
    Space *rows;
    bool partials;    /* it sums rows of `rows`, and writes a row for each cut */
    bool adds;        /* .. to which all of it is added: no maximum */
    bool all_reduced; /* a product over rows of `rows`: what it writes is had by all */
    StepAccesses touch;
    RowReads reads;
    RowReads index_reads; /* of index arrays, and of the row keys of random numbers */
    IntList used;         /* as in AccessWalk */
} ReadStep;

/* Whether all accumulations among the statements are sums, whose partial results processes can add.
 */
static bool only_sums(const LStmt *s) {
    for (; s; s = s->next)
        if ((s->kind == L_ACC && s->red != RED_SUM) || !only_sums(s->body)) return false;
    return true;
}

/* Finds which rows a kernel computes, and which it reads. */
static void analyze_kernel(Arena *a, const Plan *p, const PStep *s, ReadStep *to) {
    to->rows = plan_kernel_rows(p, s, &to->touch);
    to->partials = to->rows && to->touch.by_chunk;
    to->adds = to->partials && only_sums(s->kernel->body);
    if (!to->rows) return;
    AccessWalk w = {.a = a, .p = p, .s = s, .touch = &to->touch, .rows = to->rows};
    w.reg = NEWN(a, RowStep, (size_t)s->kernel->n_regs + 1);
    w.local = NEWN(a, RowStep, (size_t)s->kernel->locals.n + 1);
    for (int i = 0; i < s->n_bufs; i++) w.samples |= is_boundary(p->bufs.v[s->bufs[i]]);
    walk_list(&w, s->kernel->body, NEWN(a, bool, (size_t)s->kernel->locals.n + 1));
    to->reads = w.reads;
    to->index_reads = w.index_reads;
    to->used = w.used;
}

/* Finds which rows a matrix product computes, and which it reads. */
static void analyze_product(Arena *a, const Plan *p, const PStep *s, ReadStep *to) {
    to->rows = product_rows(p, s, &to->touch);
    to->all_reduced = to->rows && s->gemm.long_k;
    for (int i = 0; i < 2 && to->rows; i++) {
        bool row = to->touch.at[i] == AT_ROW;
        vec_push(a, &to->reads, ((RowRead){s->bufs[i], row ? owned_row(to->rows) : (RowStep){0}}));
    }
}

/* Whether the step reads its i-th buffer. */
static bool is_read(const PStep *s, const ReadStep *to, int i) {
    if (!to->touch.written[i]) return true;
    if (s->kind != PS_KERNEL) return false;
    const LBuf *b = s->kernel->bufs.v[i];
    return loop_loads(s->kernel->body, b) || loop_accumulates_into(s->kernel->body, b);
}

/* Adds reads of all rows of the buffers of a step about which nothing better is known. */
static void add_full_reads(Arena *a, const PStep *s, ReadStep *to) {
    for (int i = 0; i < s->n_bufs && !to->rows; i++)
        if (is_read(s, to, i)) vec_push(a, &to->reads, ((RowRead){s->bufs[i], (RowStep){0}}));
    if (s->pred >= 0) vec_push(a, &to->reads, ((RowRead){s->pred, (RowStep){0}}));
}

/* Finds the rows that a step computes and reads. */
static ReadStep analyze_step(Arena *a, const Plan *p, const PStep *s) {
    ReadStep to = {.touch = plan_step_accesses_where_run(a, p, s)};
    if (s->kind == PS_KERNEL) analyze_kernel(a, p, s, &to);
    if (s->kind == PS_GEMM) analyze_product(a, p, s, &to);
    if (s->kind != PS_COPY) add_full_reads(a, s, &to);
    return to;
}

StepReads plan_step_reads(Arena *a, const Plan *p, const PStep *s) {
    ReadStep of = analyze_step(a, p, s);
    return (StepReads){of.rows, of.reads, of.index_reads, of.used};
}

/* ---- what is where -------------------------------------------------------------------------- */
/* Which rows of a buffer a process has. */
typedef struct {
    Space *partition; /* its own alone, beside those that were brought; NULL: all */
    bool partials;    /* rows are partial sums of chunks, of its own rows */
    bool adds;        /* .. and all of them are added up: none is a maximum */
    bool complete;    /* all rows of the others were brought */
    PHaloList halos;  /* rows of others that were brought */
} Placement;

/* What the steps of a phase read, before exchanges are placed in it. */
typedef struct {
    int n; /* steps; 0: processes do not share the phase's rows */
    const ReadStep *step;
} PhaseReads;

/* The state of placing exchanges in a phase. */
typedef struct {
    PassCtx *pc;
    Arena *a;
    Plan *p;
    PPhase *ph;
    const ReadStep *steps;
    Placement *placement;     /* by buffer */
    Placement **at_loop;      /* .. by an iteration of a loop, by its PS_LOOP */
    const PhaseReads *phases; /* of all phases of the plan */
    Placement *loaded;        /* by buffer: what @load has left of it */
    const bool *owner_only;   /* by buffer, from find_owner_only_state() */
    VEC(PStep *) out;
    int n_exchanges;
} Placer;

/* What a read needs beyond the rows that a process owns: nothing, some, or all. */
typedef enum { NEEDS_NOTHING, NEEDS_SOME, NEEDS_ALL } RowNeeds;

/* Which rows the read needs beyond those that the process owns: none, some, or all. */
static RowNeeds needed_rows(const Placement *h, const RowRead *r) {
    if (!h->partition) return NEEDS_NOTHING;
    if (h->partials || !r->at.is_known || r->at.space != h->partition) return NEEDS_ALL;
    return r->at.halo.n_via ? NEEDS_SOME : NEEDS_NOTHING;
}

/* Whether the process has these rows already, from earlier exchanges. */
static bool is_available(const Placement *h, const RowRead *r, RowNeeds n) {
    return n == NEEDS_NOTHING || h->complete ||
           (n == NEEDS_SOME && plan_has_halo(&h->halos, &r->at.halo));
}

/* Whether the step writes the buffer. */
static bool step_writes(const ReadStep *s, const PStep *step, int buf) {
    for (int i = 0; i < step->n_bufs; i++)
        if (step->bufs[i] == buf && s->touch.written[i]) return true;
    return false;
}

/* Adds to *h what the read needs beyond it. */
static void add_wanted(Arena *a, Placement *h, const RowRead *r) {
    RowNeeds n = needed_rows(h, r);
    if (n == NEEDS_ALL) h->complete = true;
    if (n == NEEDS_SOME && !plan_has_halo(&h->halos, &r->at.halo))
        vec_push(a, &h->halos, r->at.halo);
}

/* All rows of the buffer that steps from position `at` on read, before it is written again: one
 * exchange brings all of them. */
static Placement wanted_rows(const Placer *x, int at, int buf) {
    Placement h = x->placement[buf];
    for (int i = at; i < x->ph->steps.n; i++) {
        const PStep *s = x->ph->steps.v[i];
        if (i > at && (s->kind == PS_LOOP || s->kind == PS_END)) break;
        for (int k = 0; k < x->steps[i].reads.n; k++) {
            const RowRead *r = &x->steps[i].reads.v[k];
            if (r->buf == buf) add_wanted(x->a, &h, r);
        }
        if (step_writes(&x->steps[i], s, buf)) break;
    }
    return h;
}

/* The index arrays that lead to a halo's rows, in words. */
static const char *halo_text(Arena *a, const Plan *p, const PHalo *r) {
    const char *s = "";
    for (int i = 0; i < r->n_via; i++) {
        const PBuf *b = p->bufs.v[r->via[i]];
        if (b->map_part == LB_MAP_IDX)
            s = arena_printf(a, "%s%s%s(%s)", s, *s ? ", " : "", text_MapKind.word[b->map->kind],
                             b->map->from->name);
    }
    return *s ? s : p->bufs.v[r->via[r->n_via - 1]]->name;
}

/* Why an exchange sends all rows to all processes, in words. of: the step that reads them; NULL =
 * none of the phase does. */
static const char *why_all(const ReadStep *of) {
    return !of         ? "they outlive the phase"
           : !of->rows ? "the step that reads them is done by all"
                       : "their reader's index arrays do not say which it reads";
}

/* The note of an exchange step. */
static const char *exchange_text(const Placer *x, const PStep *s, const ReadStep *of) {
    const char *name = x->p->bufs.v[s->bufs[0]]->name, *halos = "";
    if (s->folds) return arena_printf(x->a, "sum of %s", name);
    if (s->partials) return arena_printf(x->a, "partial %s, to all", name);
    if (s->to_first) return arena_printf(x->a, "rows of %s, to the first, who saves them", name);
    if (!s->halos.n) return arena_printf(x->a, "rows of %s, to all: %s", name, why_all(of));
    for (int i = 0; i < s->halos.n; i++)
        halos = arena_printf(x->a, "%s%s%s", halos, i ? " and " : "",
                             halo_text(x->a, x->p, &s->halos.v[i]));
    const char *text = arena_printf(x->a, "rows of %s that %s of own %s reaches", name, halos,
                                    s->halos.v[0].from->name);
    if (!s->sampled) return text;
    StrBuf b = sb_new(x->a);
    sb_printf(&b, "%s, each drawn with ", text);
    text_real(&b, x->p->m->recipe.sampled_boundary);
    return b.s;
}

/* Remarks on an exchange. One of all rows costs the most: it says why the index arrays do not tell
 * which rows are needed. of: the step that reads them, or NULL at the end of the phase. */
static void remark_exchange(const Placer *x, const PStep *s) {
    bool all = !s->partials && !s->halos.n && !s->to_first;
    (all ? pass_refusal : pass_remark)(x->pc, s->span, "place-exchanges", "@%s: %s", x->ph->name,
                                       s->note);
}

/* Where all rows that an exchange brings are sampled, so is the exchange; else none are.  may: it
 * clears rows that are not drawn, so no earlier exchange may have brought rows of the buffer. */
static void sample_exchange(Arena *a, PStep *s, bool may) {
    PHaloList whole = {0};
    s->sampled = may && s->halos.n > 0;
    for (int i = 0; i < s->halos.n; i++) s->sampled &= s->halos.v[i].sampled;
    for (int i = 0; i < s->halos.n && !s->sampled; i++) {
        PHalo halo = s->halos.v[i];
        halo.sampled = false;
        if (!plan_has_halo(&whole, &halo)) vec_push(a, &whole, halo);
    }
    if (!s->sampled) s->halos = whole;
}

/* Appends an exchange that brings the wanted rows of a buffer, before step `like`. of: the step
 * that reads them; NULL = the end of the phase. */
static void add_exchange(Placer *x, int buf, Placement want, const PStep *like,
                         const ReadStep *of) {
    PStep *s = NEW(x->a, PStep);
    Placement *placement = &x->placement[buf];
    *s = (PStep){.kind = PS_EXCHANGE, .span = like->span, .op = like->op, .pred = -1, .n_bufs = 1};
    s->bufs = NEWN(x->a, int, 1);
    s->bufs[0] = buf;
    s->partition = placement->partition;
    s->partials = placement->partials;
    s->to_first = !of && x->owner_only[buf];
    s->folds = placement->partials && placement->adds && x->p->bufs.v[buf]->dt == DT_F32;
    for (int i = 0; i < want.halos.n && !want.complete; i++)
        if (!plan_has_halo(&placement->halos, &want.halos.v[i]))
            vec_push(x->a, &s->halos, want.halos.v[i]);
    sample_exchange(x->a, s, !placement->halos.n);
    s->note = exchange_text(x, s, of);
    remark_exchange(x, s);
    *placement = want;
    vec_push(x->a, &x->out, s);
    x->n_exchanges++;
}

/* The placement of a buffer without the rows that exchanges have brought. */
static Placement owned_only(const Placement *h) {
    return (Placement){.partition = h->partition, .partials = h->partials, .adds = h->adds};
}

/* Which rows of its results a process has after step i. A copy copies no halo. */
static Placement placement_after(const Placer *x, int i) {
    const ReadStep *st = &x->steps[i];
    const PStep *s = x->ph->steps.v[i];
    if (s->kind == PS_COPY) return owned_only(&x->placement[s->bufs[0]]);
    return (Placement){.partition = st->all_reduced ? NULL : st->rows,
                       .partials = st->rows && st->partials,
                       .adds = st->adds};
}

/* Sets the placement of buffers at the start of a loop's iterations: what the steps before the loop
 * left, or what the loop's own steps leave, whichever is less. Copies pass a placement on, so this
 * is repeated until nothing changes. */
static void enter_loop(Placer *x, int from, int to) {
    for (bool more = true; more;) {
        more = false;
        for (int i = from; i < to; i++) {
            const PStep *s = x->ph->steps.v[i];
            for (int k = 0; k < s->n_bufs; k++) {
                if (!x->steps[i].touch.written[k]) continue;
                Placement *h = &x->placement[s->bufs[k]], left = placement_after(x, i);
                bool less = left.partition && !h->partition;
                *h = less ? left : owned_only(h);
                more |= less;
            }
        }
    }
    x->at_loop[from] = NEWN(x->a, Placement, (size_t)x->p->bufs.n + 1);
    memcpy(x->at_loop[from], x->placement, (size_t)x->p->bufs.n * sizeof *x->placement);
}

/* Restores the placement of a loop's start after the loop, which may have had no iteration. */
static void leave_loop(Placer *x, int from, int to) {
    for (int i = from; i < to; i++) {
        const PStep *s = x->ph->steps.v[i];
        for (int k = 0; k < s->n_bufs; k++)
            if (x->steps[i].touch.written[k])
                x->placement[s->bufs[k]] = x->at_loop[from][s->bufs[k]];
    }
}

/* Whether a step in from .. to - 1 writes the buffer. */
static bool is_written(const Placer *x, int from, int to, int buf) {
    for (int i = from; i < to; i++)
        if (step_writes(&x->steps[i], x->ph->steps.v[i], buf)) return true;
    return false;
}

/* Adds exchanges in front of a loop for what no iteration changes. */
static void exchange_before_loop(Placer *x, int from, int to) {
    for (int i = from; i < to; i++)
        for (int k = 0; k < x->steps[i].reads.n; k++) {
            const RowRead *r = &x->steps[i].reads.v[k];
            const Placement *h = &x->placement[r->buf];
            if (!is_available(h, r, needed_rows(h, r)) && !is_written(x, from, to, r->buf))
                add_exchange(x, r->buf, wanted_rows(x, i, r->buf), x->ph->steps.v[from],
                             &x->steps[i]);
        }
}

/* Records which rows processes have of what step i wrote, and which rows step i computes. */
static void update_placement(Placer *x, int i, PStep *s) {
    const ReadStep *st = &x->steps[i];
    Placement after = placement_after(x, i);
    if (s->kind == PS_COPY && x->placement[s->bufs[0]].complete) after = (Placement){0};
    for (int k = 0; k < s->n_bufs; k++)
        if (st->touch.written[k]) x->placement[s->bufs[k]] = after;
    s->partition = s->kind == PS_COPY ? after.partition : st->rows;
    s->partials = s->partition && (s->kind == PS_COPY ? after.partials : st->partials);
}

/* Appends the exchanges that a step needs, then the step. */
static void place_step(Placer *x, int i) {
    PStep *s = x->ph->steps.v[i];
    if (s->kind == PS_LOOP) {
        exchange_before_loop(x, i, s->other);
        enter_loop(x, i, s->other);
    }
    if (s->kind == PS_END) leave_loop(x, s->other, i);
    for (int k = 0; k < x->steps[i].reads.n; k++) {
        const RowRead *r = &x->steps[i].reads.v[k];
        const Placement *h = &x->placement[r->buf];
        if (!is_available(h, r, needed_rows(h, r)))
            add_exchange(x, r->buf, wanted_rows(x, i, r->buf), s, &x->steps[i]);
    }
    update_placement(x, i, s);
    vec_push(x->a, &x->out, s);
}

/* Whether the buffer has what @load computes, for steps of other phases alone. */
static bool is_loaded(const Plan *p, int buf) {
    const PBuf *b = p->bufs.v[buf];
    return b->kind == PB_SAVED && b->phase >= 0 && b->use.role == OUT_VALUE &&
           p->phases.v[b->phase]->func->phase == PHASE_LOAD;
}

/* All rows of a buffer that steps of other phases read.  They come once, so all of them do, also
 * where a step reads those alone that it has drawn. */
static Placement wanted_later(const Placer *x, int buf) {
    Placement h = x->placement[buf];
    for (int i = 0; i < x->p->phases.n; i++) {
        if (x->p->phases.v[i] == x->ph) continue;
        for (int k = 0; k < x->phases[i].n; k++)
            for (int j = 0; j < x->phases[i].step[k].reads.n; j++) {
                RowRead r = x->phases[i].step[k].reads.v[j];
                r.at.halo.sampled = false;
                if (r.buf == buf) add_wanted(x->a, &h, &r);
            }
    }
    return h;
}

/* Appends exchanges at the end of the phase, so that every process has the rows of the buffers that
 * outlive it: all of them, or, of what @load computes, those that later phases read. */
static void exchange_at_end(Placer *x) {
    for (int b = 0; b < x->p->bufs.n && x->ph->steps.n; b++) {
        Placement *h = &x->placement[b];
        if (!h->partition || h->complete || x->p->bufs.v[b]->kind == PB_TEMP) continue;
        Placement want = *h;
        if (is_loaded(x->p, b) && !h->partials)
            want = wanted_later(x, b);
        else
            want.complete = true;
        if (want.complete || want.halos.n > h->halos.n)
            add_exchange(x, b, want, x->ph->steps.v[x->ph->steps.n - 1], NULL);
        if (is_loaded(x->p, b) && !want.complete) x->loaded[b] = *h;
    }
}

/* Lets the ends of loops refer to each other's positions. */
static void match_loops(const Placer *x) {
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

/* Finds, for each step of the phase, which rows it computes and reads. */
static ReadStep *analyze_steps(Arena *a, const Plan *p, const PPhase *ph) {
    ReadStep *step = NEWN(a, ReadStep, (size_t)ph->steps.n + 1);
    for (int i = 0; i < ph->steps.n; i++) step[i] = analyze_step(a, p, ph->steps.v[i]);
    return step;
}

/* By buffer: whether it is optimizer state of which each process reads only its own rows. All of it
 * is needed only by the process that saves it. */
static bool *find_owner_only_state(Arena *a, const Plan *p) {
    bool *owner_only = NEWN(a, bool, (size_t)p->bufs.n + 1);
    for (int b = 0; b < p->bufs.n; b++)
        owner_only[b] = p->bufs.v[b]->kind == PB_VAR && p->bufs.v[b]->var->kind == VAR_SLOT;
    for (int i = 0; i < p->phases.n; i++) {
        const ReadStep *step = analyze_steps(a, p, p->phases.v[i]);
        for (int k = 0; k < p->phases.v[i]->steps.n; k++)
            for (int r = 0; r < step[k].reads.n; r++) {
                const RowRead *x = &step[k].reads.v[r];
                if (!step[k].rows || !is_owned_row(&x->at) || x->at.space != step[k].rows)
                    owner_only[x->buf] = false;
            }
        for (int k = 0; k < p->phases.v[i]->steps.n; k++) { /* a copy is of all rows */
            const PStep *s = p->phases.v[i]->steps.v[k];
            if (s->kind == PS_COPY) owner_only[s->bufs[0]] = false;
        }
    }
    return owner_only;
}

/* Places the exchanges of phase i; returns how many. phases: what the steps of all read; loaded
 * [buffers]: what @load has left, which comes first; owner_only [buffers]: state of which a process
 * reads no rows but its own, so that it is sent only to the process that saves it. */
static int place_phase(PassCtx *pc, Plan *p, int i, const PhaseReads *phases, Placement *loaded,
                       const bool *owner_only) {
    Arena *a = pc->a;
    PPhase *ph = p->phases.v[i];
    Placer x = {.pc = pc,
                .a = a,
                .p = p,
                .ph = ph,
                .steps = phases[i].step,
                .phases = phases,
                .loaded = loaded,
                .owner_only = owner_only};
    x.placement = NEWN(a, Placement, (size_t)p->bufs.n + 1);
    memcpy(x.placement, loaded, (size_t)p->bufs.n * sizeof *loaded);
    x.at_loop = NEWN(a, Placement *, (size_t)ph->steps.n + 1);
    for (int k = 0; k < ph->steps.n; k++) place_step(&x, k);
    exchange_at_end(&x);
    match_loops(&x);
    ph->steps.n = 0;
    for (int k = 0; k < x.out.n; k++) vec_push(a, &ph->steps, x.out.v[k]);
    return x.n_exchanges;
}

/* A phase that explains one row runs in one process. */
bool plan_shares_rows(const Plan *p, const PPhase *ph) {
    return ph->func->phase != PHASE_EXPLAIN && !plan_runs_on_batches(p, ph);
}

/* Finds what the steps of each phase read whose rows processes share. */
static PhaseReads *analyze_phases(Arena *a, const Plan *p) {
    PhaseReads *of = NEWN(a, PhaseReads, (size_t)p->phases.n + 1);
    for (int i = 0; i < p->phases.n; i++)
        if (plan_shares_rows(p, p->phases.v[i]))
            of[i] = (PhaseReads){p->phases.v[i]->steps.n, analyze_steps(a, p, p->phases.v[i])};
    return of;
}

/* Whether the read is of own edges, or of edges out of own rows: the runtime writes no other edge's
 * factor. */
static bool reads_own_factors(const Plan *p, const ReadStep *s, const RowRead *r) {
    const Space *edges = p->bufs.v[r->buf]->type.dim[0];
    const PHalo *h = &r->at.halo;
    if (!s->rows || !r->at.is_known || r->at.space != edges) return false;
    if (!h->n_via) return true;
    const PBuf *first = p->bufs.v[h->via[0]], *last = p->bufs.v[h->via[h->n_via - 1]];
    const Map *src = first->map;
    return h->n_via == 2 && src && src->kind == MAP_SRC && src->from == edges &&
           is_part_of(first, src, LB_MAP_PTR) && is_part_of(last, src, LB_MAP_PERM);
}

/* Checks that steps read factors of edges that the process has.  False after a diagnostic. */
static bool check_factors(const PassCtx *pc, const Plan *p, const PhaseReads *phases) {
    for (int i = 0; i < p->phases.n; i++)
        for (int k = 0; k < phases[i].n; k++) {
            const ReadStep *s = &phases[i].step[k];
            for (int j = 0; j < s->reads.n; j++) {
                const RowRead *r = &s->reads.v[j];
                if (!is_boundary(p->bufs.v[r->buf]) || reads_own_factors(p, s, r)) continue;
                diag_add(pc->ctx, DIAG_E0305, p->phases.v[i]->steps.v[k]->span,
                         "a step reads rows of other parts in a way that is not sampled yet "
                         "(--sampled-boundary)");
                return false;
            }
        }
    return true;
}

/* Runs the pass: finds which rows of each step a process computes, and inserts exchanges of the
 * rows of other processes that it reads; in @load first, as other phases read what it leaves. */
static bool run_place_exchanges(PassCtx *pc, Plan *p) {
    if (!p->partitioned) return true;
    const bool *owner_only = find_owner_only_state(pc->a, p);
    const PhaseReads *phases = analyze_phases(pc->a, p);
    if (!check_factors(pc, p, phases)) return false;
    Placement *loaded = NEWN(pc->a, Placement, (size_t)p->bufs.n + 1);
    for (int i = 0; i < 2 * p->phases.n; i++) {
        const int at = i % p->phases.n;
        const PPhase *ph = p->phases.v[at];
        const bool is_first = ph->func->phase == PHASE_LOAD;
        if (is_first != (i < p->phases.n) || !plan_shares_rows(p, ph)) continue;
        int n = place_phase(pc, p, at, phases, loaded, owner_only);
        pass_remark(pc, ph->func->span, "place-exchanges", "@%s: %d exchanges between processes",
                    ph->name, n);
    }
    return true;
}

const Pass plan_pass_place_exchanges = {
    .name = "place-exchanges",
    .summary = "find whose rows steps do, and bring processes the rows that others have",
    .needs = PLAN_STEPS,
    .bars = PLAN_BLOCKS | PLAN_JOINED | PLAN_EPILOGUES | PLAN_GROUPS | PLAN_OVERLAPPED,
    .breaks = PLAN_LIVES,
    .moves_steps = true,
    .run_plan = run_place_exchanges,
};
