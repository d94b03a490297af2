/* Values of entries in the order in which steps go through the entries.
 *
 *     @load                                        @load
 *       for e in E:  w[e] = ..                       for e in E:  w[e] = ..
 *                                                    for k in E:  w_by_src[k] = w[perm[k]]
 *     @train                               =>      @train
 *       for k in segment src_ptr[v]                  for k in segment src_ptr[v]
 *         .. w[perm[k]] ..                             .. w_by_src[k] ..
 *
 * Edges are stored in the order of their destinations.  A sum over those that leave a node, as
 * gradients are, goes through a permutation of them, and reads of a value with one number per edge
 * one number of each cache line that it fetches.  What no step changes is copied once, when data
 * are loaded, into the order of these segments, as frameworks store edge weights beside both forms
 * of a sparse matrix (CSR and CSC).  Steps then read it from front to back.  A copy needs as many
 * bytes as the value has, and the value itself stays for sums in its own order.
 *
 * What is copied: values that @load computed, columns of edges and of stored entries, and the row
 * keys of random numbers.  Only the order of reading changes, so all results have the same bits. */
#include "codegen/loop_passes/loops.h"
#include "codegen/plan_passes/plan_order.h"
#include "codegen/plan_passes/plan_pass.h"
#include "ir/text.h"
#include "passes/rewrite.h"

/* A value that a step of training reads in another order than that in which it is stored. */
typedef struct {
    int of;             /* id of its buffer */
    const Map *order;   /* in the order of whose segments it is read */
    const PBuf *copied; /* its copy in that order; NULL = it is not copied */
} EntryCopy;

typedef struct {
    PassCtx *pc;
    Arena *a;
    Plan *p;
    Lower names; /* of buffers */
    int load;    /* index of the phase @load; -1 = there is none */
    VEC(EntryCopy) copies;
} Permute;

/* A read of a value through a permutation, by a statement of a step's kernel. */
typedef struct {
    const PPhase *ph;
    PStep *step;
    LStmt *load;       /* of the value */
    const LStmt *perm; /* the load of the element's number, at the position in the map's order */
    const PBuf *of;    /* the value's buffer */
} EntryRead;

/* ---- what is read ----------------------------------------------------------------------- */
/* The load from a permutation that gives the first index of the load s; NULL: nothing of the kind
 * does. */
static const LStmt *permutation_of(const LStmt *s) {
    if (s->kind != L_LOAD || s->buf->rank == 0) return NULL;
    const LStmt *cast = s->idx[0]->def;
    if (!cast || cast->kind != L_LET || cast->fn != L_FN_OP || cast->op != OP_CAST) return NULL;
    const LStmt *perm = cast->arg[0]->def;
    return perm && perm->kind == L_LOAD && perm->buf->kind == LB_MAP_PERM ? perm : NULL;
}

/* Whether the statement reads a value with one number per entry through the permutation of a map;
 * *r gets what it reads. */
static bool find_read(const Permute *x, const PPhase *ph, PStep *step, LStmt *s, EntryRead *r) {
    const LStmt *perm = permutation_of(s), *loop = perm ? perm->idx[0]->def : NULL;
    if (!loop || loop->kind != L_FOR || loop->range != LR_SEGMENT) return false;
    if (loop->ptr->map != perm->buf->map || s->buf->kind == LB_LOCAL || s->buf->written ||
        s->buf->rank != 1)
        return false;
    const PBuf *of = x->p->bufs.v[step->bufs[s->buf->id]];
    *r = (EntryRead){ph, step, s, perm, of};
    const Expr *entries = perm->buf->map->from->size;
    return of->kind != PB_MAP && expr_eq(s->buf->dim[0], entries) && expr_eq(of->count, entries);
}

/* Why the value that a step of training reads is not copied; NULL: it can be. */
static const char *obstacle(const Permute *x, const EntryRead *r) {
    bool is_loaded = r->of->kind == PB_SAVED && r->of->phase == x->load;
    if (!is_loaded && r->of->kind != PB_DATA && r->of->kind != PB_LOGICAL) return "steps change it";
    if (plan_runs_on_batches(x->p, r->ph)) return "each batch has other entries";
    return x->load < 0 ? "nothing is computed when data are loaded" : NULL;
}

/* The map in words: "src(cites)". */
static const char *map_text(Arena *a, const Map *m) {
    StrBuf b = sb_new(a);
    ir_map_print(&b, m);
    return b.s;
}

/* What the value of a read is called. */
static const char *value_name(const EntryRead *r) {
    const Op *op = r->load->buf->value;
    return op ? pass_named(op) : r->of->name;
}

/* ---- the copy ---------------------------------------------------------------------------- */
/* The kernel that is being made. */
typedef struct {
    Arena *a;
    LKernel *k;
    Span at;     /* of all its statements */
    LStmt **end; /* where the next one goes */
} CopyKernel;

/* Appends a statement that defines a register of type dt, and no register where dt is void. */
static LStmt *append(CopyKernel *c, LStmtKind kind, DType dt, const char *hint) {
    LStmt *s = *c->end = NEW(c->a, LStmt);
    s->kind = kind;
    s->span = c->at;
    c->end = &s->next;
    if (dt == DT_VOID) return s;
    LReg *r = NEW(c->a, LReg);
    *r = (LReg){.id = c->k->n_regs++, .dt = dt, .hint = hint, .def = s};
    *(kind == L_FOR ? &s->var : &s->dst) = r;
    return s;
}

/* Appends a load; returns its register. */
static LReg *append_load(CopyKernel *c, LBuf *b, LReg *at, const char *hint) {
    LStmt *s = append(c, L_LOAD, b->dt, hint);
    s->buf = b;
    s->idx[0] = at;
    return s->dst;
}

/* Adds an argument like that one, of no operation's value, since it holds it in another order or in
 * another phase. */
static LBuf *add_argument(CopyKernel *c, LBuf like, const char *name) {
    LBuf *b = NEW(c->a, LBuf);
    *b = like;
    b->id = c->k->bufs.n;
    b->name = name;
    b->value = NULL;
    vec_push(c->a, &c->k->bufs, b);
    return b;
}

/* Appends the number of a map's entries that are in a segment, which may be fewer than it has: the
 * end of its last segment, at bounds[targets]. */
static LReg *append_end(CopyKernel *c, LBuf *bounds, const Map *m) {
    LStmt *n = append(c, L_LET, DT_I64, "n");
    n->fn = L_FN_SIZE;
    n->size = m->to->size;
    return append_load(c, bounds, n->dst, "end");
}

/* Appends the condition that k is before the end; what follows is in its body. */
static void open_before(CopyKernel *c, LReg *k, LReg *end) {
    LStmt *is = append(c, L_LET, DT_I1, "is");
    is->fn = L_FN_ILT;
    is->n_arg = 2;
    is->arg[0] = k;
    is->arg[1] = end;
    LStmt *branch = append(c, L_IF, DT_VOID, NULL);
    branch->cond = is->dst;
    c->end = &branch->body;
}

/* Appends the loop that copies: to[k] = from[perm[k]]. */
static void append_copy(CopyKernel *c, const Map *m, LBuf *to, LBuf *from, LBuf *perm,
                        LBuf *bounds) {
    LReg *end = bounds ? append_end(c, bounds, m) : NULL;
    LStmt *loop = append(c, L_FOR, DT_I64, "k");
    loop->extent = m->from->size;
    loop->sched.parallel = loop->sched.vector = true;
    c->end = &loop->body;
    if (end) open_before(c, loop->var, end);
    LReg *entry = append_load(c, perm, loop->var, "e");
    LStmt *cast = append(c, L_LET, DT_I64, "e");
    cast->fn = L_FN_OP;
    cast->op = OP_CAST;
    cast->n_arg = 1;
    cast->arg[0] = entry;
    LReg *value = append_load(c, from, cast->dst, from->name);
    LStmt *store = append(c, L_STORE, DT_VOID, NULL);
    store->buf = to;
    store->idx[0] = loop->var;
    store->src = value;
}

/* The name of the argument that holds the copy of what is read: "saved_0_by_src". */
static const char *argument_name(const Permute *x, const EntryRead *r) {
    const Map *m = r->perm->buf->map;
    return arena_printf(x->a, "%s_by_%s", r->load->buf->name, text_MapKind.word[m->kind]);
}

/* The kernel that makes the copy of what is read. bounds: of the map's segments, where some entries
 * may be in none; else NULL. */
static LKernel *make_kernel(const Permute *x, const EntryRead *r, const PBuf *copied,
                            const LBuf *bounds, Span at) {
    const Map *m = r->perm->buf->map;
    LKernel *k = NEW(x->a, LKernel);
    k->name = arena_printf(x->a, "%s_%s_%s", cg_ident(x->a, x->p->m->name),
                           cg_ident(x->a, x->p->phases.v[x->load]->name), copied->name);
    k->span = at;
    CopyKernel c = {.a = x->a, .k = k, .at = at, .end = &k->body};
    LBuf like = {.kind = LB_VALUE, .dt = copied->dt, .rank = 1, .written = true};
    like.dim[0] = m->from->size;
    LBuf *to = add_argument(&c, like, argument_name(x, r));
    LBuf *from = add_argument(&c, *r->load->buf, r->load->buf->name);
    LBuf *perm = add_argument(&c, *r->perm->buf, r->perm->buf->name);
    append_copy(&c, m, to, from, perm, bounds ? add_argument(&c, *bounds, bounds->name) : NULL);
    return k;
}

/* Appends to @load the step that makes the copy of what is read. */
static void append_step(const Permute *x, const EntryRead *r, const PBuf *copied) {
    const Map *m = r->perm->buf->map;
    const LBuf *bounds = map_is_partial(m) ? r->perm->idx[0]->def->ptr : NULL;
    const Op *op = r->load->buf->value ? r->load->buf->value : r->step->op;
    PStep *s = NEW(x->a, PStep);
    *s = (PStep){.kind = PS_KERNEL, .op = op, .span = op->span, .pred = -1};
    s->kernel = make_kernel(x, r, copied, bounds, op->span);
    s->extent = m->from->size;
    s->note = arena_printf(x->a, "%s in the order of %s", value_name(r), map_text(x->a, m));
    s->n_bufs = s->kernel->bufs.n;
    s->bufs = NEWN(x->a, int, (size_t)s->n_bufs);
    s->bufs[0] = copied->id;
    s->bufs[1] = r->of->id;
    s->bufs[2] = plan_argument_buf(r->step, r->perm->buf);
    if (bounds) s->bufs[3] = plan_argument_buf(r->step, bounds);
    vec_push(x->a, &x->p->kernels, s->kernel);
    vec_push(x->a, &x->p->phases.v[x->load]->steps, s);
}

/* Adds the buffer of the copy, which @load fills. */
static const PBuf *make_copy(Permute *x, const EntryRead *r) {
    const PBuf *of = r->of;
    Map *m = r->perm->buf->map;
    const char *name = arena_printf(x->a, "%s_by_%s_%s", of->name, text_MapKind.word[m->kind],
                                    cg_ident(x->a, m->from->name));
    PBuf *copied = cg_new_buf(&x->names, PB_SAVED, name, of->dt, m->from->size);
    copied->type = type_make(of->dt, 1, &m->from);
    copied->phase = x->load;
    copied->io_name =
        arena_printf(x->a, "%s by %s", of->io_name ? of->io_name : of->name, map_text(x->a, m));
    append_step(x, r, copied);
    pass_remark(x->pc, r->load->span, "permute-entries",
                "'%s' is copied at load, in the order of %s, in which '%s' (%s) reads it",
                value_name(r), map_text(x->a, m), r->step->note, r->step->kernel->name);
    return copied;
}

/* Decides what becomes of a value that a step of training reads. */
static const PBuf *decide(Permute *x, const EntryRead *r) {
    const char *why = obstacle(x, r);
    if (why)
        pass_refusal(x->pc, r->load->span, "permute-entries",
                     "'%s' is read through a permutation of %s in '%s' (%s): %s", value_name(r),
                     map_text(x->a, r->perm->buf->map), r->step->note, r->step->kernel->name, why);
    return why || !pass_may_rewrite(x->pc) ? NULL : make_copy(x, r);
}

/* The copy of what is read; NULL: there is none.  Training decides which there are. */
static const PBuf *copy_of(Permute *x, const EntryRead *r) {
    const Map *order = r->perm->buf->map;
    for (int i = 0; i < x->copies.n; i++)
        if (x->copies.v[i].of == r->of->id && x->copies.v[i].order == order)
            return x->copies.v[i].copied;
    if (r->ph->func->phase != PHASE_TRAIN) return NULL;
    EntryCopy c = {r->of->id, order, decide(x, r)};
    vec_push(x->a, &x->copies, c);
    return c.copied;
}

/* ---- its readers --------------------------------------------------------------------------- */
/* The argument of the reading kernel that holds the copy; added if it is new. */
static LBuf *copied_argument(const Permute *x, const EntryRead *r, const PBuf *copied) {
    PStep *s = r->step;
    LKernel *k = s->kernel;
    for (int i = 0; i < s->n_bufs; i++)
        if (s->bufs[i] == copied->id) return k->bufs.v[i];
    int *bufs = NEWN(x->a, int, (size_t)s->n_bufs + 1);
    for (int i = 0; i < s->n_bufs; i++) bufs[i] = s->bufs[i];
    bufs[s->n_bufs++] = copied->id;
    s->bufs = bufs;
    LBuf *b = NEW(x->a, LBuf);
    *b = (LBuf){.kind = LB_VALUE, .id = k->bufs.n, .dt = copied->dt, .rank = 1};
    b->name = loop_unique_name(x->a, k, argument_name(x, r));
    b->dim[0] = r->perm->buf->map->from->size;
    vec_push(x->a, &k->bufs, b);
    return b;
}

/* Lets the statements read copies, where there are some; true if one does now. */
static bool read_copies(Permute *x, const PPhase *ph, PStep *step, LStmt *s) {
    bool changed = false;
    for (; s; s = s->next) {
        EntryRead r;
        const PBuf *copied = find_read(x, ph, step, s, &r) ? copy_of(x, &r) : NULL;
        if (copied) {
            s->idx[0] = r.perm->idx[0];
            s->buf = copied_argument(x, &r, copied);
            changed = true;
        }
        changed |= read_copies(x, ph, step, s->body);
    }
    return changed;
}

/* Whether the kernel still uses an argument; of bounds and chunks nothing was removed. */
static bool is_used(const LKernel *k, const LBuf *b) {
    bool is_read = b->kind == LB_VALUE || b->kind == LB_GLOBAL_IDS || b->kind == LB_MAP_PERM;
    return !is_read || b->written || loop_count_accesses(k->body, b) > 0;
}

/* Removes what only the reads through permutations needed. */
static void drop_unused(Permute *x, PStep *s) {
    LKernel *k = s->kernel;
    int n = 0;
    loop_drop_unused(x->a, k);
    for (int i = 0; i < k->bufs.n; i++) {
        LBuf *b = k->bufs.v[i];
        if (!is_used(k, b)) continue;
        s->bufs[n] = s->bufs[i];
        b->id = n;
        k->bufs.v[n++] = b;
    }
    k->bufs.n = s->n_bufs = n;
    k->n_regs = 0;
    loop_number_registers(k->body, &k->n_regs);
}

/* Whether a library may make what the step's kernel does, with a copy of its own. */
static bool is_left_to_library(const Plan *p, const PStep *s) {
    return p->spmm == SPMM_LIBRARY && s->spmm && s->spmm->index >= 0;
}

/* Lets the steps of a phase read copies. */
static void permute_phase(Permute *x, const PPhase *ph) {
    for (int i = 0; i < ph->steps.n; i++) {
        PStep *s = ph->steps.v[i];
        if (s->kind != PS_KERNEL || is_left_to_library(x->p, s)) continue;
        if (s->group) continue; /* it would have another form than those it is launched with */
        if (read_copies(x, ph, s, s->kernel->body)) drop_unused(x, s);
    }
}

/* Whether the phase reads copies that training asked for: it runs again and again, on all rows. */
static bool is_repeated(const Plan *p, const PPhase *ph) {
    Phase phase = ph->func->phase;
    bool again = phase == PHASE_EVAL || phase == PHASE_PREDICT || phase == PHASE_EMBED;
    return again && !plan_runs_on_batches(p, ph);
}

/* Runs the pass: first over training, which decides what is copied, then over the phases that run
 * beside it. */
static bool run(PassCtx *pc, Plan *p) {
    Permute x = {.pc = pc, .a = p->m->a, .p = p, .names = cg_lower(pc, p), .load = -1};
    for (int i = 0; i < p->phases.n; i++)
        if (p->phases.v[i]->func->phase == PHASE_LOAD) x.load = i;
    for (int i = 0; i < p->phases.n; i++)
        if (p->phases.v[i]->func->phase == PHASE_TRAIN) permute_phase(&x, p->phases.v[i]);
    for (int i = 0; i < p->phases.n; i++)
        if (is_repeated(p, p->phases.v[i])) permute_phase(&x, p->phases.v[i]);
    return true;
}

const Pass plan_pass_permute_entries = {
    .name = "permute-entries",
    .summary = "copy what entries have, at load, into the order in which steps read it",
    .needs = PLAN_STEPS,
    .run_plan = run,
};
