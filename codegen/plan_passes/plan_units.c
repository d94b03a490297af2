/* Cuts the stored values of a phase into units, each made by one kernel or library call.
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
 * value reads (row_reads): elementwise operands, sums along other spaces, and gathers along
 * the map whose segments are being summed all stay in the row. */
#include "codegen/lower/lower.h"

#include <string.h>

/* ---- what a root reads, by rows ------------------------------------------------------------ */
/* At the row, at other places, or at an entry of the segment of maps.v[at - AT_ENTRY]. */
enum { AT_ROW, ELSEWHERE, AT_ENTRY, PLACES = CG_PLACES, MAPS_MAX = PLACES - AT_ENTRY };

/* How a value's place ceases to be the row: for reports. */
typedef struct {
    ApartCause why;
    const Op *via;
} Way;

/* A value on the walk over a row: where it is read, and why no longer at the row. */
typedef struct {
    const Op *op;
    int at;
    Way way;
} Place;

/* The walk over what a root's row reads. */
typedef struct {
    const Lower *lo;
    const Space *rows;
    const Op *root;
    MapList maps; /* whose segments are summed */
    int n_sums;
    int n_ops;    /* that the walk came to, with those that are read */
    bool crowded; /* more than MAPS_MAX maps */
    int n_wide;   /* sums that no local array can hold: the last one */
    const Op *wide;
    OpList row, other; /* stored values read at this row, and at others */
    VEC(Way) way;      /* by `other` */
    VEC(Place) ahead;  /* of the walk: the next one last */
} RowReads;

/* Whether the first dimension of op is the row. */
static bool has_rows_first(const Op *op, const Space *rows) {
    return op->type.rank > 0 && op->type.dim[0] == rows;
}

/* The map at whose entries `at` is, or NULL. */
static const Map *map_at(const RowReads *r, int at) {
    return at >= AT_ENTRY ? r->maps.v[at - AT_ENTRY] : NULL;
}

/* The place "at an entry" of a map whose segments are summed. */
static int entries_of(RowReads *r, Map *m) {
    int i = 0;
    while (i < r->maps.n && r->maps.v[i] != m) i++;
    if (i == MAPS_MAX) r->crowded = true;
    if (i == MAPS_MAX) return ELSEWHERE;
    if (i == r->maps.n) vec_push(r->lo->a, &r->maps, m);
    return AT_ENTRY + i;
}

/* Where the operands of op are read, if op itself is read at `at`. */
static int operands_at(RowReads *r, const Op *op, int at) {
    const Op *x = op->n_in ? op->in[0] : NULL;
    if (at == ELSEWHERE || !x) return ELSEWHERE;
    switch (op->kind) {
    case OP_GATHER:
        return op->map == map_at(r, at) ? AT_ROW : ELSEWHERE;
    case OP_SEGMENT:
        return at == AT_ROW && op->map->to == r->rows ? entries_of(r, op->map) : ELSEWHERE;
    case OP_REDUCE:
    case OP_CONTRACT:
    case OP_ARGMAX:
    case OP_VIEW:
        return at;
    default:
        return op_has(op, OPT_ELEM) ? at : ELSEWHERE;
    }
}

/* The same for one operand: one without the rows is the same for all of them. */
static int operand_at(const RowReads *r, const Op *x, int at) {
    if (at == AT_ROW && !has_rows_first(x, r->rows)) return ELSEWHERE;
    if (at >= AT_ENTRY && !has_rows_first(x, map_at(r, at)->from)) return ELSEWHERE;
    return at;
}

/* Records a sum over the entries of the row. */
static void note_sum(RowReads *r, const Op *op) {
    int64_t n;
    r->n_sums++;
    if (cg_row_size(&op->type, &n) && n <= pass_threshold(r->lo->c, PASS_T_ROW)) return;
    r->n_wide++;
    r->wide = op;
}

/* The reason for the operands of op: w, or a new one where the walk leaves the row. */
static Way way_on(Way w, const Op *op, int at, int below) {
    if (at == below) return w;
    if (below == AT_ROW) return (Way){APART_NOT, op};
    if (below != ELSEWHERE) return (Way){APART_ENTRY, op};
    return (Way){op->kind == OP_GATHER ? APART_GATHER : APART_PLACE, op};
}

/* Records a read at another place than the row. */
static void note_other(RowReads *r, const Op *op, int at, Way w) {
    if (at == AT_ROW) w = (Way){APART_VIEW, op};
    vec_push(r->lo->a, &r->other, cg_info(r->lo, op)->base);
    vec_push(r->lo->a, &r->way, w);
}

/* Visits a value on the walk over the row. */
static void row_reads(RowReads *r, const Op *op, int at, Way w) {
    if (!ir_marks_first(r->lo->row_marks, op->id * PLACES + at)) return;
    r->n_ops++;
    const OpInfo *in = cg_info(r->lo, op);
    if (op != r->root && in->how != HOW_INLINE) {
        if (at == AT_ROW && in->base == op && cg_peel(r->lo, op) == op)
            vec_push(r->lo->a, &r->row, op);
        else
            note_other(r, op, at, w);
        return;
    }
    if (op->kind == OP_SEGMENT && at == AT_ROW && op->map->to == r->rows) note_sum(r, op);
    int below = operands_at(r, op, at);
    Way on = way_on(w, op, at, below);
    for (int i = op->n_in - 1; i >= 0; i--) {
        int to = operand_at(r, op->in[i], below);
        Place next = {op->in[i], to, to == below ? on : (Way){APART_WHOLE, op}};
        vec_push(r->lo->a, &r->ahead, next);
    }
}

/* Finds what a root reads, by place. */
static RowReads row_reads_of(const Lower *lo, const Op *root, const Space *rows) {
    RowReads r = {.lo = lo, .rows = rows};
    r.root = cg_peel(lo, root);
    ir_marks_start(lo->row_marks);
    vec_push(lo->a, &r.ahead, ((Place){.op = r.root, .at = AT_ROW}));
    while (r.ahead.n) {
        Place p = r.ahead.v[--r.ahead.n];
        row_reads(&r, p.op, p.at, p.way);
    }
    return r;
}

/* ---- joining --------------------------------------------------------------------------------- */
/* The kind of group that computes op. */
static UnitKind unit_kind(const Lower *lo, const Op *op) {
    if (op->ext) return UNIT_CALL;
    if (op->kind == OP_LOOP) return UNIT_LOOP;
    if (op_has(op, OPT_EFFECT)) return UNIT_EFFECT;
    if (op->kind == OP_RANK) return UNIT_RANK;
    if (op->kind == OP_CONCAT) return UNIT_CONCAT;
    if (cg_info(lo, op)->gemm) return UNIT_GEMM;
    return cg_reduction_long(op) ? UNIT_LONG : UNIT_ROWS;
}

/* The outermost condition under which op is needed that is worth a test; conditions that save only
 * arithmetic are not. The condition of an inner one is not computed where the outer one does not
 * hold. */
static const Guard *guard_of(const Lower *lo, const Op *op) {
    const Guard *g = lo->guard[op->id];
    return g && g->top->heavy ? g->top : NULL; /* what an inner one makes heavy, so are the outer */
}

/* Whether the group's kernel would be too long with n_ops more: for those that walk it, and more so
 * for a target's compiler, whose time grows faster than the kernel. */
static bool is_full(const Lower *lo, const Unit *u, int n_ops) {
    return u->roots.n && u->n_ops + n_ops > pass_threshold(lo->c, PASS_T_FORM_OPS);
}

/* Whether the group stores as many values as it may. */
static bool has_all(const Lower *lo, const Unit *u) {
    return u->roots.n >= pass_threshold(lo->c, PASS_T_FORM_ROOTS);
}

/* How op reads what the group computes. */
static CgRead read_of_unit(const Lower *lo, const Units *us, const Op *op, const Unit *u) {
    const CgReads *all = cg_reads(lo, op);
    CgRead is = {0};
    for (int i = 0; i < all->n; i++) {
        if (us->of[all->v[i].base->id] != u - us->v) continue;
        is.aligned |= all->v[i].aligned;
        is.elsewhere |= all->v[i].elsewhere;
    }
    return is;
}

/* Whether an elementwise root can share the kernel of the group before it: over the same spaces, or
 * with the sum that it is computed from, unless one reads another at a different index. */
static bool joins(const Lower *lo, const Units *us, const Unit *u, const Op *op, int n_ops) {
    if (u->kind != UNIT_ROWS || !op_has(op, OPT_ELEM) || u->alone == APART_SPARSE) return false;
    if (u->roots.v[0]->ask == ASK_APART) return false;
    if (u->guard != guard_of(lo, op) || is_full(lo, u, n_ops)) return false;
    if (!u->alike || !type_same_spaces(&u->roots.v[0]->type, &op->type)) return false;
    CgRead read = read_of_unit(lo, us, op, u);
    return !read.elsewhere && (read.aligned || !u->sums);
}

typedef VEC(int) UnitList;

/* The state of forming fusion groups. */
typedef struct {
    Lower *lo;
    Units us;
    int *unit;          /* Units.of */
    bool *assigned;     /* by Op.id: an `assign` or a `next` takes it */
    UnitList *at_row;   /* by Op.id: open units that make it, or read it at their row, in order */
    UnitList *at_other; /* .. that read it at other places */
} Cut;

/* The last group that computes one of the values. */
static int last_unit(const Cut *c, const OpList *v) {
    int last = -1;
    for (int i = 0; i < v->n; i++)
        if (c->unit[v->v[i]->id] > last) last = c->unit[v->v[i]->id];
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

/* Why op shares no kernel with others. A sum too long for a local array needs its root's own row in
 * memory as accumulator. */
static ApartCause why_alone(const Cut *c, const RowReads *r, const Op *op) {
    const Lower *lo = c->lo;
    if (cg_info(lo, op)->spmm) return APART_SPARSE;
    if (!r->rows) return APART_SCALAR;
    if (r->rows->kind == SP_DIM) return APART_DIM;
    if (c->assigned[op->id]) return APART_ASSIGNED;
    if (r->crowded) return APART_CROWDED;
    if (r->n_wide == 0) return APART_NOT;
    bool own = type_same_spaces(&r->wide->type, &r->root->type) && r->wide->type.dt == DT_F32;
    bool plain = r->wide == r->root || op_has(r->root, OPT_ELEM);
    bool in_memory = r->n_wide == 1 && own && plain && r->root->type.dt == DT_F32;
    return in_memory ? APART_NOT : APART_WIDE;
}

/* Whether no map of x and map of y are the two ends of the same edges. Segments of several
 * relations are walked one after the other; those of both ends of one relation are not, since what
 * one of them gathers is far from what the other does, and their rows differ in length. */
static bool are_apart(const MapList *x, const MapList *y) {
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < y->n; k++)
            if (x->v[i] != y->v[k] && x->v[i]->from == y->v[k]->from) return false;
    return true;
}

/* A value that is in both lists, or NULL. */
static const Op *met(const OpList *x, const OpList *y) {
    for (int i = 0; i < x->n; i++)
        if (cg_list_has(y, x->v[i])) return x->v[i];
    return NULL;
}

/* Why nothing joins a group of this kind, which is no kernel over rows. */
static ApartCause made_by(UnitKind k) {
    switch (k) {
    case UNIT_LONG:
        return APART_SUM;
    case UNIT_GEMM:
        return APART_PRODUCT;
    case UNIT_CONCAT:
        return APART_PARTS;
    default:
        return APART_CALL;
    }
}

/* Why a root does not join the group. */
static Way why_not(const Unit *u, const RowReads *r, const Guard *g) {
    if (u->kind != UNIT_ROWS) return (Way){made_by(u->kind), u->roots.v[0]};
    if (!u->open) return (Way){u->alone, u->alone_op};
    if (u->rows != r->rows) return (Way){APART_PLACE, r->root};
    if (u->guard != g) return (Way){APART_GUARD, NULL};
    if (has_all(r->lo, u) || is_full(r->lo, u, r->n_ops)) return (Way){APART_FULL, NULL};
    if (!are_apart(&u->maps, &r->maps)) return (Way){APART_ENDS, NULL};
    const Op *other = met(&u->roots, &r->other);
    return (Way){other ? APART_SIBLING : APART_NOT, other};
}

/* Whether the root can join the group, and shares reads with it. */
static bool may_share(const Unit *u, const RowReads *r, const Guard *g) {
    if (why_not(u, r, g).why) return false;
    return met(&u->roots, &r->row) || met(&u->row, &r->row) || met(&u->other, &r->other);
}

/* Adds the group to the sorted list of a value. */
static void note_unit(Cut *c, UnitList *list, const Op *value, const Unit *u) {
    UnitList *l = &list[value->id];
    int unit = (int)(u - c->us.v);
    if (!u->open) return;
    vec_push(c->lo->a, l, unit);
    for (int i = l->n - 1; i > 0 && l->v[i - 1] > unit; i--) {
        l->v[i] = l->v[i - 1];
        l->v[i - 1] = unit;
    }
}

/* Adds the reads of a new root to its group. */
static void note_reads(Cut *c, Unit *u, const RowReads *r) {
    u->n_ops += r->n_ops;
    for (int i = 0; i < r->maps.n; i++)
        if (!cg_has_map(&u->maps, r->maps.v[i])) vec_push(c->lo->a, &u->maps, r->maps.v[i]);
    u->n_sums += r->n_sums;
    for (int i = 0; i < r->row.n; i++) {
        vec_push(c->lo->a, &u->row, r->row.v[i]);
        note_unit(c, c->at_row, r->row.v[i], u);
    }
    for (int i = 0; i < r->other.n; i++) {
        vec_push(c->lo->a, &u->other, r->other.v[i]);
        note_unit(c, c->at_other, r->other.v[i], u);
    }
}

/* Whether no root can join the group any more. */
static bool is_closed(const Lower *lo, const Unit *u) {
    return !u->open || has_all(lo, u) || is_full(lo, u, 0);
}

/* The place in the list where groups from `from` on begin. */
static int first_from(const UnitList *list, int from) {
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

/* The first group of the list, from `from` on and before `best`, that can also compute r's root;
 * closed groups leave the list. */
static int first_of(const Cut *c, UnitList *list, const RowReads *r, const Guard *g, int from,
                    int best) {
    int n = first_from(list, from);
    for (int i = n; i < list->n; i++) {
        int u = list->v[i];
        if (is_closed(c->lo, &c->us.v[u])) continue;
        list->v[n++] = u;
        if (u < best && may_share(&c->us.v[u], r, g)) best = u;
    }
    list->n = n;
    return best;
}

/* The first group that can also compute the root: it computes or reads something that the root
 * reads. */
static Unit *find_rows(Cut *c, const RowReads *r) {
    const Guard *g = guard_of(c->lo, r->root);
    int from = last_unit(c, &r->other) + 1, row = last_unit(c, &r->row), best = c->us.n;
    if (row > from) from = row;
    for (int i = 0; i < r->row.n; i++)
        best = first_of(c, &c->at_row[r->row.v[i]->id], r, g, from, best);
    for (int i = 0; i < r->other.n; i++)
        best = first_of(c, &c->at_other[r->other.v[i]->id], r, g, from, best);
    return best < c->us.n ? &c->us.v[best] : NULL;
}

/* Adds a root to a group. */
static void add_root(Cut *c, Unit *u, const Op *op) {
    bool sum = !op_has(op, OPT_ELEM), first = !u->roots.n;
    if (first) u->guard = guard_of(c->lo, op);
    vec_push(c->lo->a, &u->roots, op);
    u->sums |= sum;
    u->alike = (first || u->alike) && (!sum || op->kind == OP_SEGMENT) &&
               type_same_spaces(&u->roots.v[0]->type, &op->type);
    c->unit[op->id] = (int)(u - c->us.v);
    note_unit(c, c->at_row, op, u);
}

/* A new group. */
static Unit *fresh_unit(Cut *c, UnitKind kind) {
    Unit fresh = {.kind = kind};
    vec_push(c->lo->a, &c->us, fresh);
    return &c->us.v[c->us.n - 1];
}

/* ---- why values are stored, for reports ------------------------------------------------------ */
/* Why `value`, which root reads at its own row, is not computed in root's group. */
static Way way_of_row(const Cut *c, const Op *root, const RowReads *r, const Op *value) {
    int own = c->unit[value->id];
    ApartCause alone = why_alone(c, r, root);
    if (alone) return (Way){alone, root};
    if (root->again) return (Way){APART_AGAIN, root};
    for (int i = 0; i < r->other.n; i++)
        if (c->unit[r->other.v[i]->id] >= own)
            return (Way){c->unit[r->other.v[i]->id] == own ? APART_SIBLING : APART_LATER,
                         r->other.v[i]};
    for (int i = 0; i < r->row.n; i++)
        if (c->unit[r->row.v[i]->id] > own) return (Way){APART_LATER, r->row.v[i]};
    return why_not(&c->us.v[own], r, guard_of(c->lo, r->root));
}

/* Whether value is computed by another group of this function. */
static bool is_elsewhere(const Cut *c, const Op *root, const Op *value) {
    return c->unit[value->id] >= 0 && c->unit[value->id] != c->unit[root->id];
}

/* Records why value and root are in different groups. */
static void note_apart(Cut *c, const Op *root, const Op *value, Way w) {
    UnitKind own = c->us.v[c->unit[value->id]].kind;
    if (own != UNIT_ROWS && w.why != APART_GATHER) w = (Way){made_by(own), root};
    PApart apart = {.value = value, .root = root, .via = w.via, .why = w.why};
    vec_push(c->lo->a, &c->lo->p->phases.v[c->lo->phase]->apart, apart);
}

/* Records this for everything that root reads. */
static void note_all_apart(Cut *c, const Op *root, const RowReads *r) {
    UnitKind kind = c->us.v[c->unit[root->id]].kind;
    Way of = {kind == UNIT_LONG     ? APART_LONG
              : kind == UNIT_CONCAT ? APART_COPY
                                    : APART_SCALAR,
              root};
    bool by_rows = kind == UNIT_ROWS && r->rows;
    for (int i = 0; i < r->row.n; i++)
        if (is_elsewhere(c, root, r->row.v[i]))
            note_apart(c, root, r->row.v[i], by_rows ? way_of_row(c, root, r, r->row.v[i]) : of);
    for (int i = 0; i < r->other.n; i++)
        if (is_elsewhere(c, root, r->other.v[i]))
            note_apart(c, root, r->other.v[i], by_rows ? r->way.v[i] : of);
}

/* Puts a root of rows in a group. */
static void cut_rows(Cut *c, const Op *op) {
    Lower *lo = c->lo;
    const Type *t = &cg_peel(lo, op)->type;
    Unit *last = c->us.n ? &c->us.v[c->us.n - 1] : NULL;
    RowReads r = row_reads_of(lo, op, t->rank ? t->dim[0] : NULL);
    ApartCause alone = why_alone(c, &r, op);
    bool apart = op->ask == ASK_APART;
    Unit *u = last && !apart && joins(lo, &c->us, last, op, r.n_ops) ? last : NULL;
    if (!u && !alone && !op->again) u = find_rows(c, &r);
    if (!u) {
        u = fresh_unit(c, UNIT_ROWS);
        u->open = !apart;
    }
    if (alone && u->open) {
        u->open = false;
        u->alone = alone;
        u->alone_op = op;
    }
    u->rows = r.rows;
    note_reads(c, u, &r);
    add_root(c, u, op);
    note_all_apart(c, op, &r);
}

/* Puts a root in a group of its own. */
static void cut_alone(Cut *c, const Op *op, UnitKind kind) {
    add_root(c, fresh_unit(c, kind), op);
    if (kind != UNIT_LONG && kind != UNIT_CONCAT) return; /* no kernels */
    RowReads r = row_reads_of(c->lo, op, NULL);
    note_all_apart(c, op, &r);
}

/* Whether the group needs the lowering for several shapes: its roots differ in type, it has several
 * sums, or one root reads another's row at another index. */
static bool is_group(const Lower *lo, const Units *us, const Unit *u) {
    if (u->kind != UNIT_ROWS || !u->open) return false;
    const Type *t = &cg_peel(lo, u->roots.v[0])->type;
    for (int i = 1; i < u->roots.n; i++) {
        if (!type_same_spaces(t, &cg_peel(lo, u->roots.v[i])->type)) return true;
        if (read_of_unit(lo, us, u->roots.v[i], u).elsewhere) return true;
    }
    return u->n_sums > 1;
}

/* Forms the fusion groups of the function. */
Units cg_cut_units(Lower *lo) {
    size_t n = (size_t)lo->f->n_ops + 1;
    Cut c = {.lo = lo, .assigned = find_assigned(lo)};
    c.unit = c.us.of = NEWN(lo->a, int, n);
    c.at_row = NEWN(lo->a, UnitList, n);
    c.at_other = NEWN(lo->a, UnitList, n);
    for (size_t i = 0; i < n; i++) c.unit[i] = -1;
    for (const Op *op = lo->f->first; op; op = op->next) {
        bool effect = op_has(op, OPT_EFFECT) && op->kind != OP_ASSIGN && op->kind != OP_NEXT;
        if (!effect && cg_info(lo, op)->how != HOW_STORED) continue;
        if (op->kind == OP_RESULT) {
            add_root(&c, &c.us.v[c.unit[op->in[0]->id]], op);
            continue;
        }
        UnitKind kind = unit_kind(lo, op);
        if (kind == UNIT_ROWS)
            cut_rows(&c, op);
        else
            cut_alone(&c, op, kind);
    }
    for (int i = 0; i < c.us.n; i++) c.us.v[i].group = is_group(lo, &c.us, &c.us.v[i]);
    return c.us;
}
