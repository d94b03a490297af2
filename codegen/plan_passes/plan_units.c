/* The pass form-kernels: fusions of a phase that one kernel can make become one.
 *
 *     rows %z                                      rows %z, %s
 *     rows %s                              ->      rows %max, %total, %h
 *     rows %max
 *     rows %total
 *     rows %h
 *
 * Values over the same rows share a kernel where each needs of the others its own row only:
 *
 *     z[v, :]   = sum over entries of v          one kernel over v:
 *     s[v]      = z[v, :] . a                      z's row, then s from it, in cache
 *     max[v]    = max of score(e)                one kernel over v: three traversals of the
 *     total[v]  = sum of exp(score(e) - max[v])    entries of v, and no value per entry in memory
 *     h[v, :]   = sum of exp(..) / total[v] x[..]
 *
 * That is XLA's "multi-output fusion" and TVM's "compute_at" for rows, found by walking what a
 * value reads (plan_row_walk.c). */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/plan_passes/plan_row_walk.h"
#include "passes/rewrite.h"

/* The outermost condition under which op is needed, if it saves enough work to be worth a test;
 * NULL = none is. */
static const Guard *worthwhile_guard(const Lower *lo, const Op *op) {
    const Guard *g = lo->guard[op->id];
    return g && g->top->worth_test ? g->top : NULL; /* it is where an inner one is */
}

/* Whether the group's kernel would be too long with n_ops more: for those that walk it, and more so
 * for a target's compiler, whose time grows faster than the kernel. */
static bool would_be_too_long(const Lower *lo, const FusionGroup *u, int n_ops) {
    return u->roots.n && u->n_ops + n_ops > pass_threshold(lo->c, PASS_T_FORM_OPS);
}

/* Whether the group stores as many values as it may. */
static bool has_max_roots(const Lower *lo, const FusionGroup *u) {
    return u->roots.n >= pass_threshold(lo->c, PASS_T_FORM_ROOTS);
}

/* How op reads the values that group u computes: at its own index, at others, or not. */
static CgRead read_of_group(const Lower *lo, const FusionGroups *groups, const Op *op,
                            const FusionGroup *u) {
    const CgReads *all = cg_reads(lo, op);
    CgRead is = {0};
    for (int i = 0; i < all->n; i++) {
        if (groups->group_of[all->v[i].base->id] != u - groups->v) continue;
        is.at_own_index |= all->v[i].at_own_index;
        is.at_other_index |= all->v[i].at_other_index;
    }
    return is;
}

/* Whether an elementwise root can share the kernel of the group before it: the kernel does not
 * become too long, both are over the same spaces and needed under the same condition, and op reads
 * values of the group at its own index only. Of a group with a sum op must read one. n_ops: how
 * many operations op and what is computed in place for it add. */
static bool may_join_last(const Lower *lo, const FusionGroups *groups, const FusionGroup *u,
                          const Op *op) {
    if (u->kind != PF_ROWS || !op_has(op, OPT_ELEM) || u->unfused_cause == UNFUSED_SPARSE)
        return false;
    if (u->roots.v[0]->ask == ASK_APART) return false;
    if (u->guard != worthwhile_guard(lo, op)) return false;
    if (!u->same_spaces || !type_same_spaces(&u->roots.v[0]->type, &op->type)) return false;
    CgRead read = read_of_group(lo, groups, op, u);
    return !read.at_other_index && (read.at_own_index || !u->has_sum);
}

typedef VEC(int) GroupList;

/* The state of forming fusion groups. */
typedef struct {
    Lower *lo;
    FusionGroups groups;
    int *group_of;     /* FusionGroups.group_of */
    bool *assigned;    /* by Op.id: an `assign` or a `next` takes it */
    GroupList *at_row; /* by Op.id: open fusions that make it, or read it at their row, in order */
    GroupList *at_other; /* .. that read it at other places */
} Partitioner;

/* The number of the last group that computes one of the values; -1 = none does. */
static int last_group(const Partitioner *c, const OpList *v) {
    int last = -1;
    for (int i = 0; i < v->n; i++)
        if (c->group_of[v->v[i]->id] > last) last = c->group_of[v->v[i]->id];
    return last;
}

/* Finds the values that become a variable's next value. */
static bool *find_assigned(const Lower *lo) {
    bool *assigned = NEWN(lo->a, bool, (size_t)lo->f->n_ops + 1);
    for (const Op *u = lo->f->first; u; u = u->next)
        if (u->kind == OP_ASSIGN || u->kind == OP_NEXT)
            assigned[cg_info(lo, u->in[0])->base->id] = true;
    return assigned;
}

/* Why op shares no kernel with other values. A sum too long for a local array needs its root's own
 * row in memory as accumulator. */
static UnfusedCause unfused_cause(const Partitioner *c, const RowWalk *r, const Op *op) {
    const Lower *lo = c->lo;
    if (cg_info(lo, op)->spmm) return UNFUSED_SPARSE;
    if (!r->rows) return UNFUSED_SCALAR;
    if (r->rows->kind == SP_DIM) return UNFUSED_DIM;
    if (c->assigned[op->id]) return UNFUSED_ASSIGNED;
    if (r->too_many_maps) return UNFUSED_CROWDED;
    if (r->n_wide == 0) return UNFUSED_NOT;
    bool same_type = type_same_spaces(&r->wide->type, &r->root->type) && r->wide->type.dt == DT_F32;
    bool plain = r->wide == r->root || op_has(r->root, OPT_ELEM);
    bool in_memory = r->n_wide == 1 && same_type && plain && r->root->type.dt == DT_F32;
    return in_memory ? UNFUSED_NOT : UNFUSED_WIDE;
}

/* Whether no map of x and map of y are the two ends of the same edges. One kernel may walk the
 * edges of several relations, but not one relation's edges by source and by destination: their rows
 * differ in length. */
static bool are_disjoint_edges(const MapList *x, const MapList *y) {
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < y->n; k++)
            if (x->v[i] != y->v[k] && x->v[i]->from == y->v[k]->from) return false;
    return true;
}

/* A value that is in both lists, or NULL. */
static const Op *common_op(const OpList *x, const OpList *y) {
    for (int i = 0; i < x->n; i++)
        if (cg_has_op(y, x->v[i])) return x->v[i];
    return NULL;
}

/* Why nothing joins a group of this kind, which is no kernel over rows. */
static UnfusedCause cause_of_kind(PFusionKind k) {
    switch (k) {
    case PF_SUM:
        return UNFUSED_SUM;
    case PF_GEMM:
        return UNFUSED_PRODUCT;
    case PF_CONCAT:
        return UNFUSED_CONCAT;
    default:
        return UNFUSED_CALL;
    }
}

/* Why a root cannot join group u, with the value that is in the way; cause UNFUSED_NOT: it can.
 * at_most: a kernel may be only so long, and store so many values. */
static UnfusedReason join_obstacle(const FusionGroup *u, const RowWalk *r, const Guard *g,
                                   bool at_most) {
    if (u->kind != PF_ROWS) return (UnfusedReason){cause_of_kind(u->kind), u->roots.v[0]};
    if (!u->may_grow) return (UnfusedReason){u->unfused_cause, u->unfused_op};
    if (u->rows != r->rows) return (UnfusedReason){UNFUSED_OTHER_ROW, r->root};
    if (u->guard != g) return (UnfusedReason){UNFUSED_GUARD, NULL};
    if (at_most && (has_max_roots(r->lo, u) || would_be_too_long(r->lo, u, r->n_ops)))
        return (UnfusedReason){UNFUSED_FULL, NULL};
    if (!are_disjoint_edges(&u->maps, &r->maps)) return (UnfusedReason){UNFUSED_BOTH_ENDS, NULL};
    const Op *other = common_op(&u->roots, &r->at_other);
    return (UnfusedReason){other ? UNFUSED_SIBLING : UNFUSED_NOT, other};
}

/* Whether the root can join the group, and reads something that the group computes or reads. */
static bool may_join(const FusionGroup *u, const RowWalk *r, const Guard *g) {
    if (join_obstacle(u, r, g, true).cause) return false;
    return common_op(&u->roots, &r->at_row) || common_op(&u->row_reads, &r->at_row) ||
           common_op(&u->other_reads, &r->at_other);
}

/* Adds the group to the sorted list of groups that compute or read `value`. */
static void add_to_group_list(Partitioner *c, GroupList *list, const Op *value,
                              const FusionGroup *u) {
    GroupList *l = &list[value->id];
    int unit = (int)(u - c->groups.v);
    if (!u->may_grow) return;
    vec_push(c->lo->a, l, unit);
    for (int i = l->n - 1; i > 0 && l->v[i - 1] > unit; i--) {
        l->v[i] = l->v[i - 1];
        l->v[i - 1] = unit;
    }
}

/* Adds what a new root reads to what its group reads. */
static void record_reads(Partitioner *c, FusionGroup *u, const RowWalk *r) {
    u->n_ops += r->n_ops;
    for (int i = 0; i < r->maps.n; i++)
        if (!cg_has_map(&u->maps, r->maps.v[i])) vec_push(c->lo->a, &u->maps, r->maps.v[i]);
    u->n_sums += r->n_sums;
    for (int i = 0; i < r->at_row.n; i++) {
        vec_push(c->lo->a, &u->row_reads, r->at_row.v[i]);
        add_to_group_list(c, c->at_row, r->at_row.v[i], u);
    }
    for (int i = 0; i < r->at_other.n; i++) {
        vec_push(c->lo->a, &u->other_reads, r->at_other.v[i]);
        add_to_group_list(c, c->at_other, r->at_other.v[i], u);
    }
}

/* Whether no root can join the group any more. */
static bool is_closed(const Lower *lo, const FusionGroup *u) {
    return !u->may_grow || has_max_roots(lo, u) || would_be_too_long(lo, u, 0);
}

/* The position in the sorted list of the first group with number `from` or more. */
static int first_from(const GroupList *list, int from) {
    int low = 0, high = list->n;
    while (low < high) {
        int i = (low + high) / 2;
        if (list->v[i] < from)
            low = i + 1;
        else
            high = i;
    }
    return low;
}

/* The first group in the list, from `from` on and before `best`, that the root can join, else
 * `best`; groups that nothing can join leave the list. */
static int first_joinable(const Partitioner *c, GroupList *list, const RowWalk *r, const Guard *g,
                          int from, int best) {
    int n = first_from(list, from);
    for (int i = n; i < list->n; i++) {
        int u = list->v[i];
        if (is_closed(c->lo, &c->groups.v[u])) continue;
        list->v[n++] = u;
        if (u < best && may_join(&c->groups.v[u], r, g)) best = u;
    }
    list->n = n;
    return best;
}

/* The first group that the root can join, and that computes or reads something that the root reads;
 * NULL = there is none. */
static FusionGroup *find_group(Partitioner *c, const RowWalk *r) {
    const Guard *g = worthwhile_guard(c->lo, r->root);
    int from = last_group(c, &r->at_other) + 1, row = last_group(c, &r->at_row), best = c->groups.n;
    if (row > from) from = row;
    for (int i = 0; i < r->at_row.n; i++)
        best = first_joinable(c, &c->at_row[r->at_row.v[i]->id], r, g, from, best);
    for (int i = 0; i < r->at_other.n; i++)
        best = first_joinable(c, &c->at_other[r->at_other.v[i]->id], r, g, from, best);
    return best < c->groups.n ? &c->groups.v[best] : NULL;
}

/* Adds a root to a group. The group's guard is the condition under which alone its kernel has work;
 * same_spaces: one nest of loops over the rows' dimensions computes all roots (lower_rows.c). */
static void add_root(Partitioner *c, FusionGroup *u, const Op *op) {
    bool sum = !op_has(op, OPT_ELEM), first = !u->roots.n;
    if (first) u->guard = worthwhile_guard(c->lo, op);
    vec_push(c->lo->a, &u->roots, op);
    u->has_sum |= sum;
    u->same_spaces = (first || u->same_spaces) && (!sum || op->kind == OP_SEGMENT) &&
                     type_same_spaces(&u->roots.v[0]->type, &op->type);
    c->group_of[op->id] = (int)(u - c->groups.v);
    add_to_group_list(c, c->at_row, op, u);
}

/* A new group, of the kind of this fusion. */
static FusionGroup *new_group(Partitioner *c, PFusion *f) {
    FusionGroup fresh = {.fusion = f, .kind = f->kind};
    vec_push(c->lo->a, &c->groups, fresh);
    return &c->groups.v[c->groups.n - 1];
}

/* ---- why values are stored, for reports ------------------------------------------------------ */
/* Why `value`, which root reads at its own row, is not computed in root's group, for reports. */
static UnfusedReason row_obstacle(const Partitioner *c, const Op *root, const RowWalk *r,
                                  const Op *value) {
    int value_group = c->group_of[value->id];
    UnfusedCause alone = unfused_cause(c, r, root);
    if (alone) return (UnfusedReason){alone, root};
    if (root->again) return (UnfusedReason){UNFUSED_RECOMPUTED, root};
    for (int i = 0; i < r->at_other.n; i++)
        if (c->group_of[r->at_other.v[i]->id] >= value_group)
            return (UnfusedReason){
                c->group_of[r->at_other.v[i]->id] == value_group ? UNFUSED_SIBLING : UNFUSED_LATER,
                r->at_other.v[i]};
    for (int i = 0; i < r->at_row.n; i++)
        if (c->group_of[r->at_row.v[i]->id] > value_group)
            return (UnfusedReason){UNFUSED_LATER, r->at_row.v[i]};
    return join_obstacle(&c->groups.v[value_group], r, worthwhile_guard(c->lo, r->root), true);
}

/* Whether value is computed by another group of this function. */
static bool is_in_other_group(const Partitioner *c, const Op *root, const Op *value) {
    return c->group_of[value->id] >= 0 && c->group_of[value->id] != c->group_of[root->id];
}

/* Records why value, which root reads, is computed in another group, for reports. */
static void record_unfused(Partitioner *c, const Op *root, const Op *value, UnfusedReason w) {
    PFusionKind own = c->groups.v[c->group_of[value->id]].kind;
    if (own != PF_ROWS && w.cause != UNFUSED_GATHER) w = (UnfusedReason){cause_of_kind(own), root};
    PUnfused apart = {.value = value, .root = root, .via = w.via, .cause = w.cause};
    vec_push(c->lo->a, &c->lo->p->phases.v[c->lo->phase]->apart, apart);
}

/* Records, for each value of another group that root reads, why it is in another group. */
static void record_all_unfused(Partitioner *c, const Op *root, const RowWalk *r) {
    PFusionKind kind = c->groups.v[c->group_of[root->id]].kind;
    UnfusedReason of = {kind == PF_SUM      ? UNFUSED_LONG
                        : kind == PF_CONCAT ? UNFUSED_COPY
                                            : UNFUSED_SCALAR,
                        root};
    bool by_rows = kind == PF_ROWS && r->rows;
    for (int i = 0; i < r->at_row.n; i++)
        if (is_in_other_group(c, root, r->at_row.v[i]))
            record_unfused(c, root, r->at_row.v[i],
                           by_rows ? row_obstacle(c, root, r, r->at_row.v[i]) : of);
    for (int i = 0; i < r->at_other.n; i++)
        if (is_in_other_group(c, root, r->at_other.v[i]))
            record_unfused(c, root, r->at_other.v[i], by_rows ? r->reasons.v[i] : of);
}

/* ---- forming kernels ------------------------------------------------------------------------ */
/* Adds a value that is computed row by row to a group. r: what it reads; alone: why it shares no
 * kernel. */
static void add_row_root(Partitioner *c, FusionGroup *u, const Op *op, const RowWalk *r,
                         UnfusedCause alone) {
    if (!u->roots.n) u->may_grow = op->ask != ASK_APART;
    if (alone && u->may_grow) {
        u->may_grow = false;
        u->unfused_cause = alone;
        u->unfused_op = op;
    }
    u->rows = r->rows;
    record_reads(c, u, r);
    add_root(c, u, op);
}

/* What the row of op reads. */
static RowWalk walk_own_row(const Lower *lo, const Op *op) {
    const Type *t = &cg_skip_views(lo, op)->type;
    return plan_walk_row(lo, op, t->rank ? t->dim[0] : NULL);
}

/* Whether a value that is computed row by row can be made by the kernel of group u, however long
 * that is. Nothing but elements of the same shape goes with a group that may not grow: its kernel
 * is one nest of loops (lower_rows.c). */
static bool can_share(const Partitioner *c, const FusionGroup *u, const Op *op, const RowWalk *r,
                      UnfusedCause alone) {
    if (may_join_last(c->lo, &c->groups, u, op)) return true;
    return u->may_grow && !alone &&
           !join_obstacle(u, r, worthwhile_guard(c->lo, r->root), false).cause;
}

/* The group that a value joins which is computed row by row: the last one, where the two can be one
 * loop nest over the same elements (may_join_last), else the first one whose rows it can share.
 * alone: why it may not share rows with another; 0: it may. NULL: none, it begins a kernel. */
static FusionGroup *group_to_join(Partitioner *c, PassCtx *pc, const Op *op, const RowWalk *r,
                                  UnfusedCause alone) {
    FusionGroup *last = c->groups.n ? &c->groups.v[c->groups.n - 1] : NULL, *u = NULL;
    bool beside = last && op->ask != ASK_APART && may_join_last(c->lo, &c->groups, last, op) &&
                  !would_be_too_long(c->lo, last, r->n_ops);
    if (beside)
        u = last;
    else if (!alone && !op->again)
        u = find_group(c, r);
    return u && pass_may_rewrite(pc) ? u : NULL;
}

/* Puts a fusion of values that are computed row by row in a group: the first of them joins one
 * where it can, the others go where it goes. */
static void place_rows(Partitioner *c, PassCtx *pc, PFusion *f) {
    FusionGroup *u = NULL;
    for (int i = 0; i < f->roots.n; i++) {
        const Op *op = f->roots.v[i];
        RowWalk r = walk_own_row(c->lo, op);
        UnfusedCause alone = unfused_cause(c, &r, op);
        if (!u && f->roots.n == 1) u = group_to_join(c, pc, op, &r, alone);
        if (!u) u = new_group(c, f);
        add_row_root(c, u, op, &r, alone);
        record_all_unfused(c, op, &r);
    }
}

/* Puts a fusion that is no kernel over rows in a group of its own. */
static void place_alone(Partitioner *c, PFusion *f) {
    FusionGroup *u = new_group(c, f);
    for (int i = 0; i < f->roots.n; i++) add_root(c, u, f->roots.v[i]);
    if (f->kind != PF_SUM && f->kind != PF_CONCAT) return; /* no kernels */
    RowWalk r = plan_walk_row(c->lo, f->roots.v[0], NULL);
    record_all_unfused(c, f->roots.v[0], &r);
}

/* A partition of the function into no groups yet. */
static Partitioner begin_groups(Lower *lo) {
    size_t n = (size_t)lo->f->n_ops + 1;
    Partitioner c = {.lo = lo, .assigned = find_assigned(lo)};
    c.group_of = c.groups.group_of = NEWN(lo->a, int, n);
    c.at_row = NEWN(lo->a, GroupList, n);
    c.at_other = NEWN(lo->a, GroupList, n);
    for (size_t i = 0; i < n; i++) c.group_of[i] = -1;
    return c;
}

/* ---- reading fusions ------------------------------------------------------------------------ */
/* Whether the group needs the lowering for several shapes: its roots differ in type, it has several
 * sums, or one root reads another's row at another index. */
static bool has_several_shapes(const Lower *lo, const FusionGroups *groups, const FusionGroup *u) {
    if (u->kind != PF_ROWS || !u->may_grow) return false;
    const Type *t = &cg_skip_views(lo, u->roots.v[0])->type;
    for (int i = 1; i < u->roots.n; i++) {
        if (!type_same_spaces(t, &cg_skip_views(lo, u->roots.v[i])->type)) return true;
        if (read_of_group(lo, groups, u->roots.v[i], u).at_other_index) return true;
    }
    return u->n_sums > 1;
}

/* Adds an error about the fusion of op, which is at `at` in the plan's text, if it was read;
 * returns false. */
static bool fusion_error(const Lower *lo, Span at, const Op *op, const char *what) {
    diag_add(lo->c, DIAG_E0542, span_or(at, op->span), "@%s: the fusion of '%s' %s", lo->f->name,
             pass_named(op), what);
    return false;
}

/* Adds the values of a fusion over rows to its group. False after a diagnostic: they are no one
 * kernel. */
static bool read_rows(Partitioner *c, FusionGroup *u) {
    const OpList *roots = &u->fusion->roots;
    for (int i = 0; i < roots->n; i++) {
        const Op *op = roots->v[i];
        RowWalk r = walk_own_row(c->lo, op);
        UnfusedCause alone = unfused_cause(c, &r, op);
        if (i && !can_share(c, u, op, &r, alone))
            return fusion_error(c->lo, u->fusion->in_text, op,
                                "has values that no one kernel can make");
        add_row_root(c, u, op, &r, alone);
    }
    return true;
}

/* Whether op is what a fusion can have among its values: it is stored, or acts. */
static bool is_root(const Lower *lo, const Op *op) {
    return op_has(op, OPT_EFFECT) || op->kind == OP_RESULT ||
           cg_info(lo, op)->storage == HOW_STORED;
}

/* Checks that fusions of this kind make the fusion's values, with what is stored of the function.
 */
static bool check_kinds(const Lower *lo, const PFusion *f) {
    for (int i = 0; i < f->roots.n && f->kind != PF_COPY; i++) {
        const Op *op = f->roots.v[i];
        bool is_result = i && op->kind == OP_RESULT && op->in[0] == f->roots.v[0];
        if (!is_root(lo, op) || (!is_result && cg_fusion_kind(lo, op) != f->kind))
            return fusion_error(lo, f->in_text, op, "is of another kind than its value");
    }
    return true;
}

/* Checks that each value that is stored is made, and that each effect has its fusion. */
static bool check_all_made(const Lower *lo, const FusionGroups *groups) {
    for (const Op *op = lo->f->first; op; op = op->next) {
        if (!cg_has_fusion(lo, op) || groups->group_of[op->id] >= 0) continue;
        return fusion_error(lo, (Span){0}, op,
                            op_has(op, OPT_EFFECT) ? "is missing: it is an effect"
                                                   : "is missing: the value is stored");
    }
    return true;
}

bool cg_find_groups(Lower *lo, const PFusions *of, FusionGroups *to) {
    Partitioner c = begin_groups(lo);
    for (int i = 0; i < of->n; i++) {
        if (!check_kinds(lo, of->v[i])) return false;
        FusionGroup *u = new_group(&c, of->v[i]);
        if (u->kind == PF_ROWS && !read_rows(&c, u)) return false;
        for (int k = 0; k < u->fusion->roots.n && u->kind != PF_ROWS && u->kind != PF_COPY; k++)
            add_root(&c, u, u->fusion->roots.v[k]);
    }
    for (int i = 0; i < c.groups.n; i++)
        c.groups.v[i].several_shapes = has_several_shapes(lo, &c.groups, &c.groups.v[i]);
    *to = c.groups;
    return check_all_made(lo, to);
}

/* ---- the pass -------------------------------------------------------------------------------- */
static bool form_in(Lower *lo, PFusions *list);

/* Forms kernels in the body of a loop, and goes back to the function around. */
static bool form_in_body(Lower *lo, PFusion *loop) {
    Lower around = *lo;
    bool ok = cg_enter_body(lo, loop) && form_in(lo, &loop->body);
    cg_back_to(lo, &around);
    return ok;
}

/* Puts together the fusions of the current function that one kernel can make. */
static bool form_in(Lower *lo, PFusions *list) {
    Partitioner c = begin_groups(lo);
    for (int i = 0; i < list->n; i++) {
        if (!check_kinds(lo, list->v[i])) return false;
        if (list->v[i]->kind == PF_ROWS)
            place_rows(&c, lo->pc, list->v[i]);
        else
            place_alone(&c, list->v[i]);
    }
    list->n = 0;
    for (int i = 0; i < c.groups.n; i++) {
        PFusion *f = c.groups.v[i].fusion;
        f->roots = c.groups.v[i].roots;
        vec_push(lo->a, list, f);
    }
    for (int i = 0; i < list->n; i++)
        if (list->v[i]->kind == PF_LOOP && !form_in_body(lo, list->v[i])) return false;
    return check_all_made(lo, &c.groups);
}

/* Adds a remark that value and reader have separate kernels, and why. */
static void remark_unfused(PassCtx *pc, const PUnfused *x) {
    const bool needs = x->cause == UNFUSED_SIBLING || x->cause == UNFUSED_LATER;
    const Op *reader = x->via && !needs ? x->via : x->root;
    const char *text = plan_unfused_text(x->cause);
    if (needs)
        text = arena_printf(pc->a, "%s '%s', made %s it", text, pass_named(x->via),
                            x->cause == UNFUSED_LATER ? "after" : "with");
    pass_declined(pc, x->value->span, "form-kernels",
                  "'%s' and '%s' have kernels of their own: '%s' %s%s", pass_named(x->value),
                  pass_named(x->root), pass_named(reader),
                  x->cause == UNFUSED_GATHER ? "gathers it: " : "", text);
}

/* Counts the fusions that are kernels, the values that these store, and the other fusions. */
static void count_fusions(const PFusions *list, int *kernels, int *values, int *others) {
    for (int i = 0; i < list->n; i++) {
        const PFusion *f = list->v[i];
        bool kernel = f->kind == PF_ROWS || f->kind == PF_SUM || f->kind == PF_CONCAT;
        *kernels += kernel;
        *values += kernel ? f->roots.n : 0;
        *others += !kernel;
        count_fusions(&f->body, kernels, values, others);
    }
}

/* Adds the remarks on a phase: how many values how many kernels store, and which kernels were not
 * fused. */
static void remark_phase(PassCtx *pc, const PPhase *ph) {
    int kernels = 0, values = 0, others = 0;
    count_fusions(&ph->fusions, &kernels, &values, &others);
    pass_remark(pc, ph->func->span, "form-kernels", "@%s: %d values in %d kernels, %d other steps",
                ph->name, values, kernels, others);
    for (int i = 0; i < ph->apart.n; i++)
        if (ph->apart.v[i].cause != UNFUSED_NOT) remark_unfused(pc, &ph->apart.v[i]);
}

/* Forms the kernels of each phase. */
static bool run(PassCtx *pc, Plan *p) {
    Lower lo = cg_lower(pc, p);
    for (int i = 0; i < p->phases.n; i++) {
        PPhase *ph = p->phases.v[i];
        lo.phase = i;
        ph->apart.n = 0;
        if (!cg_enter_func(&lo, ph->func) || !form_in(&lo, &ph->fusions)) return false;
        if (pc->remarks) remark_phase(pc, ph);
    }
    return true;
}

const Pass plan_pass_form_kernels = {
    .name = "form-kernels",
    .summary = "put stored values that one kernel can make together",
    .needs = PLAN_FUSIONS,
    .bars = PLAN_BUFFERS,
    .gives = PLAN_FORMED,
    .run_plan = run,
};
