/* The statement `columns`: each lane has one, and the next where there are more columns than lanes.
 */
#include "codegen/cuda/cuda.h"

#include <string.h>

static const char *const reduce_functor[] = {
    [RED_SUM] = "GnSum", [RED_MAX] = "GnMax", [RED_MIN] = "GnMin"};

/* A name that no other variable of the kernel has: "gn_WHAT_3". */
static const char *new_name(CuFn *f, const char *what) {
    return arena_printf(f->a, "gn_%s_%d", what, f->n_fresh_names++);
}

/* Until the alias is removed, accesses to b (acc: that statement's alone) are written as `name`. */
static void push_alias(CuFn *f, const LBuf *b, const LStmt *acc, const char *name, int place) {
    CuAlias a = {b, acc, name, place, .in_memory_type = false};
    vec_push(f->a, &f->alias, a);
}

/* Text of the reduction of x over those threads of the team whose values lie between the offsets
 * `from` and `to`. */
static const char *reduce_threads(CuFn *f, RedKind r, const char *x, const char *from,
                                  const char *to) {
    return arena_printf(f->a, "gn_fold<%s>(gn, %s, %s, %s)", reduce_functor[r], x, from, to);
}

/* Text of the reduction of x over the ways of the team: the threads that have the same column and
 * different entries. */
static const char *reduce_over_ways(CuFn *f, RedKind r, const char *x) {
    return reduce_threads(f, r, x, "gn.lanes", "gn.lanes * gn.ways");
}

/* An access and the innermost column loop around it. */
typedef struct {
    const LStmt *at, *loop;
} AccessSite;

/* The first access to b in s .. end, with the column loop around it. kind: an LStmtKind, or -1 for
 * any access. */
static AccessSite find_access(const CuFn *f, const LStmt *s, const LStmt *end, const LStmt *loop,
                              const LBuf *b, int kind) {
    for (; s != end; s = s->next) {
        bool access = s->kind == L_STORE || s->kind == L_ACC || s->kind == L_LOAD;
        if (access && s->buf == b && (kind < 0 || (int)s->kind == kind))
            return (AccessSite){s, loop};
        if (loop_has_body(s)) {
            bool own = loop && loop->range == LR_SEGMENT;
            const LStmt *in = !own && loop_is_columns(s) ? s : loop;
            AccessSite found = find_access(f, s->body, NULL, in, b, kind);
            if (found.at) return found;
        }
    }
    return (AccessSite){NULL, NULL};
}

/* The dimension of the accessed buffer that is indexed by the column; -1 = none. */
static int column_dim_of(AccessSite p) {
    for (int i = 0; p.at && p.loop && i < p.at->buf->rank; i++)
        if (p.at->idx[i] == p.loop->var || loop_computes(p.loop->body, p.at->idx[i])) return i;
    return -1;
}

/* ---- sums over columns ------------------------------------------------------------- */
/* Adds to f->pending the sums over columns that statements s .. end make; each thread sums by
 * itself until the statement `reduce_threads`. inner: only those whose accumulator is local to an
 * entry of the row; else only the others. by: the threads whose sums are combined. */
static void add_pending_sums(CuFn *f, const LoopColumns *r, const LStmt *s, const LStmt *end,
                             const LStmt *loop, bool inner, LShare by) {
    for (; s != end; s = s->next) {
        if (loop_reduces_columns(s, loop) && loop_is_declared_inside(r, s->buf) == inner) {
            CuPartial p = {.acc = s, .name = new_name(f, "sum"), .share = by};
            vec_push(f->a, &f->pending, p);
        }
        const LStmt *in = loop_is_columns(s) ? s : loop;
        if (loop_has_body(s)) add_pending_sums(f, r, s->body, NULL, in, inner, by);
    }
}

/* Declares a register for each pending sum from number `from` on, and lets the accumulator's
 * accesses use it. */
static void declare_pending_sums(CuFn *f, int first) {
    for (int i = first; i < f->pending.n; i++) {
        const LStmt *s = f->pending.v[i].acc;
        cu_line(f, "%s %s = %s;", cu_type(s->buf->dt), f->pending.v[i].name,
                cu_identity(f->a, s->red, s->buf->dt));
        push_alias(f, s->buf, s, f->pending.v[i].name, -1);
    }
}

/* Emits the reduction of a sum over the threads that share it (the lanes of a way, or the whole
 * team), and adds the total to the accumulator. */
static void emit_finish_sum(CuFn *f, const CuPartial *p) {
    LStmt s = *p->acc;
    LReg total = {.id = s.src->id, .dt = s.src->dt};
    const char *saved_name = f->reg[total.id];
    const char *to = p->share == LS_TEAM ? "gn.lanes * gn.ways" : "gn.lanes";
    if (f->region)
        cu_line(f, "%s = gn_fold_lanes<%s>(gn, %s);", p->name, reduce_functor[s.red], p->name);
    else
        cu_line(f, "%s = %s;", p->name, reduce_threads(f, s.red, p->name, "1", to));
    s.src = &total;
    f->reg[total.id] = p->name;
    cu_acc(f, &s);
    f->reg[total.id] = saved_name;
}

/* Emits a loop whose iterations go round robin to the lanes: its range differs from the region's,
 * or the lanes do not have all of it at once. */
static void emit_round_robin_loop(CuFn *f, const LStmt *s) {
    const char *saved_first = f->first_column, *saved_on = f->active;
    f->first_column = f->active = NULL;
    f->serial_entries = true;
    cu_loop(f, s, "gn.lane", "gn.lanes");
    f->serial_entries = false;
    f->active = saved_on;
    f->first_column = saved_first;
}

/* Emits a column loop of the region: the thread computes its own column. Sums over the columns that
 * the same entry reads are reduced at once. */
void cu_column(CuFn *f, const LStmt *s) {
    int n_outer_aliases = f->alias.n, n_before = f->pending.n;
    if (f->region->one_pass || f->region->round_robin)
        add_pending_sums(f, f->region, s->body, NULL, s, true, LS_LANES);
    declare_pending_sums(f, n_before);
    if (loop_is_round_robin(f->region, s)) {
        emit_round_robin_loop(f, s);
        f->alias.n = n_outer_aliases;
        return;
    }
    if (f->active) cu_open(f, "if (%s) {", f->active);
    if (f->first_column) {
        cu_packed_body(f, s);
    } else {
        f->reg[s->var->id] = f->column;
        f->serial_entries = s->range == LR_SEGMENT;
        cu_block(f, s->body);
        f->serial_entries = false;
    }
    if (f->active) cu_close(f);
    f->alias.n = n_outer_aliases;
}

/* ---- entries by turns -------------------------------------------------------------- */
/* Declares the thread's partial sum for the accumulator b of a loop whose entries the ways share,
 * and sets it to the identity. */
static void declare_partial(CuFn *f, const LStmt *loop, const LBuf *b, CuPartial *p) {
    AccessSite site = find_access(f, loop->body, NULL, NULL, b, L_ACC);
    *p = (CuPartial){.share = LS_WAYS,
                     .acc = site.at,
                     .dropped_dim = column_dim_of(site),
                     .name = new_name(f, "part")};
    p->is_array = b->kind == LB_LOCAL && b->rank > 1;
    p->n_registers = p->is_array ? cu_elements_without_dim(b, p->dropped_dim) : 1;
    p->per_column = f->first_column && site.loop;
    const char *zero = cu_identity(f->a, p->acc->red, b->dt);
    if (!p->is_array && p->per_column) {
        cu_line(f, "%s %s;", cu_type(b->dt), cu_pack_declarator(f, p->name));
        cu_open_pack_loop(f);
        cu_line(f, "%s = %s;", cu_pack_register(f, p->name), zero);
        cu_close_pack_loop(f);
        return;
    }
    if (!p->is_array) {
        cu_line(f, "%s %s = %s;", cu_type(b->dt), p->name, zero);
        return;
    }
    cu_line(f, "%s %s[%lld];", cu_type(b->dt), p->name, (long long)p->n_registers);
    cu_line(f, "#pragma unroll");
    cu_line(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) %s[gn_k] = %s;", (long long)p->n_registers,
            p->name, zero);
}

/* The partial sum as text: an element of it where the lane has several columns. */
static const char *partial_name(CuFn *f, const CuPartial *p) {
    return p->per_column ? cu_pack_register(f, p->name) : p->name;
}

/* Emits the end of a partial sum: reduces it over the ways, unless that is done, and combines it
 * with the accumulator. */
static void emit_finish_partial(CuFn *f, const CuPartial *p) {
    DType dt = p->acc->buf->dt;
    const char *at = cu_element(f, p->acc), *partial = partial_name(f, p);
    if (p->per_column) cu_open_pack_loop(f);
    if (p->is_array) {
        cu_line(f, "#pragma unroll");
        cu_open(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) {", (long long)p->n_registers);
        at = arena_printf(f->a, "%s[gn_k]", f->local[p->acc->buf->id]);
        partial = arena_printf(f->a, "%s[gn_k]", partial);
    }
    if (!p->reduced) cu_line(f, "%s = %s;", partial, reduce_over_ways(f, p->acc->red, partial));
    cu_line(f, "%s = %s;", at, cu_combine(f, p->acc->red, dt, at, partial));
    if (p->is_array) cu_close(f);
    if (p->per_column) cu_close_pack_loop(f);
}

/* The column index as text; inside a loop over the lane's columns that of column gn_k. */
static const char *column_text(CuFn *f) {
    return f->first_column ? arena_printf(f->a, "%s + gn_k", f->first_column) : f->column;
}

/* "if (..) " with the condition under which the lane has a column; "" where all lanes have one. */
static const char *guard_text(const CuFn *f) {
    return f->active ? arena_printf(f->a, "if (%s) ", f->active) : "";
}

/* Emits what a block that has a part of a long row does at its end: it reduces its partial sums
 * over the ways and stores them in scratch memory, where the block that has the row finds them. */
static void emit_store_partials(CuFn *f, const CuPartial *partial, int n) {
    for (int i = 0; i < n; i++) {
        const char *name = cu_pack_register(f, partial[i].name);
        const char *at = cu_partial_index_text(f, i, column_text(f));
        cu_open_pack_loop(f);
        cu_line(f, "%s = %s;", name, reduce_over_ways(f, partial[i].acc->red, name));
        cu_line(f, "%sgn_leave(gn, %s, %s, %s);", guard_text(f), cu_partial_size_text(f, false), at,
                name);
        cu_close_pack_loop(f);
    }
    cu_line(f, "if (gn_is_part(gn)) continue;");
}

/* Emits the sum of what other blocks have stored in scratch memory for parts of this row, in the
 * order of the parts. */
static void emit_add_stored_partials(CuFn *f, const LStmt *s, const CuPartial *partial, int n) {
    const char *ptr = f->buf[s->ptr->id], *row = f->reg[s->at->id];
    cu_open(f, "GN_PARTS_OF(gn_slot, %s[%s], %s[%s + 1], gn_part, gn) {", ptr, row, ptr, row);
    cu_open_pack_loop(f);
    for (int i = 0; i < n; i++) {
        const char *name = cu_pack_register(f, partial[i].name);
        const char *x = cu_partial_element_text(f, i, "gn_slot", column_text(f));
        cu_line(f, "%s%s = %s;", guard_text(f), name,
                cu_combine(f, partial[i].acc->red, DT_F32, name, x));
    }
    cu_close_pack_loop(f);
    cu_close(f);
}

/* Whether the entries of loop s are split over several blocks in long rows. */
static bool is_split_over_blocks(const CuFn *f, const LStmt *s) {
    return f->splits_rows && s == f->sched.shared_loop;
}

/* Emits the loop over a row's entries, which go round robin to the ways; for a long row the block
 * adds up the partial sums that other blocks have made, instead. */
static void emit_entry_loop(CuFn *f, const LStmt *s, const CuPartial *partial, int n) {
    if (!is_split_over_blocks(f, s)) {
        cu_loop(f, s, "gn.way", "gn.ways");
        return;
    }
    const char *ptr = f->buf[s->ptr->id], *row = f->reg[s->at->id], *v = f->reg[s->var->id];
    cu_open(f, "if (gn_has_parts(gn, %s[%s + 1] - %s[%s], gn_part)) {", ptr, row, ptr, row);
    emit_add_stored_partials(f, s, partial, n);
    f->depth--;
    cu_open(f, "} else {");
    cu_line(f, "const int64_t gn_end_%d = gn_end(gn, %s[%s + 1]);", s->var->id, ptr, row);
    cu_open(f, "for (int64_t %s = gn_first(gn, %s[%s]) + gn.way; %s < gn_end_%d; %s += gn.ways) {",
            v, ptr, row, v, s->var->id, v);
    cu_block(f, s->body);
    cu_close(f);
    cu_close(f);
    emit_store_partials(f, partial, n);
}

/* Emits a loop whose entries the ways share, with a partial sum for each accumulator, and records
 * the sums as pending; false: s is no such loop, and nothing is emitted. */
static bool emit_shared_loop(CuFn *f, const LStmt *s) {
    const LBuf *target[LOOP_TARGETS_MAX];
    CuPartial partial[LOOP_TARGETS_MAX];
    int n = cu_shared_sums(f, s, target), n_outer_aliases = f->alias.n;
    for (int i = 0; i < n; i++) declare_partial(f, s, target[i], &partial[i]);
    for (int i = 0; i < n; i++)
        push_alias(f, target[i], NULL, partial_name(f, &partial[i]),
                   partial[i].is_array ? partial[i].dropped_dim : -1);
    if (n) emit_entry_loop(f, s, partial, n);
    f->alias.n = n_outer_aliases;
    for (int i = 0; i < n; i++) {
        partial[i].reduced = is_split_over_blocks(f, s);
        vec_push(f->a, &f->pending, partial[i]);
    }
    return n > 0;
}

/* Emits the statement `reduce_threads`: combines the threads' partial sums that are pending for its
 * buffer.
 */
void cu_combine_partials(CuFn *f, const LStmt *s) {
    int n = 0;
    for (int i = 0; i < f->pending.n; i++) {
        const CuPartial *p = &f->pending.v[i];
        if (p->acc->buf != s->buf || p->share != s->sched.share)
            f->pending.v[n++] = *p;
        else if (p->share == LS_WAYS)
            emit_finish_partial(f, p);
        else
            emit_finish_sum(f, p);
    }
    f->pending.n = n;
}

/* ---- rows in registers ------------------------------------------------------------- */
/* An element of a promoted buffer that a register holds during the region. */
typedef struct {
    AccessSite spot; /* the first access */
    const char *name;
} RegisterCell;
typedef VEC(RegisterCell) RegisterCells;

/* Text of the element in memory that the site accesses, at this thread's column. */
static const char *memory_element_text(CuFn *f, AccessSite site) {
    const LStmt *at = site.at, *loop = site.loop;
    const char **saved_names = NEWN(f->a, const char *, at->buf->rank + 1);
    for (int i = 0; i < at->buf->rank; i++) {
        int id = at->idx[i]->id;
        saved_names[i] = f->reg[id];
        const LStmt *d = at->idx[i]->def;
        if (at->idx[i] == loop->var) f->reg[id] = f->column;
        if (d->kind != L_LET || !loop_has(loop->body, d)) continue;
        const char *column = f->reg[loop->var->id];
        f->reg[loop->var->id] = f->column;
        f->reg[id] = arena_printf(f->a, "(%s)", cu_let(f, d));
        f->reg[loop->var->id] = column;
    }
    const char *text = cu_element(f, at);
    for (int i = 0; i < at->buf->rank; i++) f->reg[at->idx[i]->id] = saved_names[i];
    return text;
}

/* Whether `stmt` is a store that stands directly in a column loop of the region's own list. */
static bool is_direct_column_store(const LoopColumns *r, const LStmt *at) {
    if (at->kind != L_STORE) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        for (const LStmt *p = s->kind == L_FOR && s->sched.vector ? s->body : NULL; p; p = p->next)
            if (p == at) return true;
    }
    return false;
}

/* Declares a register for the thread's element of each promoted buffer, and loads it unless a store
 * comes first. */
static void load_cells(CuFn *f, const LoopColumns *r, RegisterCells *cells) {
    for (int i = 0; i < f->k->bufs.n; i++) {
        const LBuf *b = f->k->bufs.v[i];
        AccessSite site = {NULL, NULL};
        if (loop_is_promoted(r->stmt, b)) site = find_access(f, r->first, r->end, NULL, b, -1);
        if (!site.at) continue;
        RegisterCell c = {site, new_name(f, "cell")};
        cu_line(f, "%s %s = 0;", cu_type(b->dt), c.name);
        if (!is_direct_column_store(r, site.at)) {
            const char *text = memory_element_text(f, site);
            bool half = b->dt == DT_F16 || b->dt == DT_BF16;
            cu_line(f, "%s%s = %s%s%s;", guard_text(f), c.name, half ? "gn_load(" : "", text,
                    half             ? ")"
                    : b->dt == DT_I1 ? " != 0"
                                     : "");
        }
        vec_push(f->a, cells, c);
    }
    for (int i = 0; i < cells->n; i++)
        push_alias(f, cells->v[i].spot.at->buf, NULL, cells->v[i].name, -1);
}

/* Stores the registers of promoted buffers, and removes the aliases of the region. */
static void store_cells(CuFn *f, const RegisterCells *cells, int n_outer_aliases) {
    f->alias.n = n_outer_aliases;
    if (cells->n == 0) return;
    if (f->active) cu_open(f, "if (%s) {", f->active);
    for (int i = 0; i < cells->n; i++)
        cu_store_element(f, cells->v[i].spot.at->buf, memory_element_text(f, cells->v[i].spot),
                         cells->v[i].name);
    if (f->active) cu_close(f);
}

/* ---- the statement ----------------------------------------------------------------------- */
/* Declares a local array of the region: each thread keeps the elements of its own columns, so the
 * dimension of the column is dropped. */
static void declare_column_array(CuFn *f, const LoopColumns *r, const LBuf *b) {
    const char *name = f->local[b->id];
    AccessSite site = find_access(f, r->first, r->end, NULL, b, -1);
    int place = column_dim_of(site);
    if (!f->local_used[b->id]) return;
    if (b->rank == 1)
        cu_line(f, "%s %s = %s;", cu_type(b->dt), cu_pack_declarator(f, name),
                f->first_column ? "{0}" : "0");
    else
        cu_line(f, "%s %s[%lld] = {0};", cu_type(b->dt), name,
                (long long)cu_elements_without_dim(b, place));
    push_alias(f, b, NULL, b->rank == 1 ? cu_pack_register(f, name) : name,
               b->rank == 1 ? -1 : place);
}

/* Emits the statements of the region between the loads and the stores of promoted buffers. */
static void emit_region_body(CuFn *f, const LoopColumns *r) {
    RegisterCells cells = {0};
    int n_outer_aliases = f->alias.n;
    load_cells(f, r, &cells);
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf->rank)
            declare_column_array(f, r, s->buf);
        else if (!emit_shared_loop(f, s))
            cu_statement(f, s);
    }
    store_cells(f, &cells, n_outer_aliases);
}

/* Whether a statement needs the number of the column itself. It does not where there is one column,
 * nor for the thread's own registers. */
static bool reads_column_index(const CuFn *f, const LoopColumns *r, const LStmt *s,
                               const LStmt *end) {
    for (; s != end; s = s->next) {
        bool columns = loop_is_columns(s);
        if (columns && f->used[s->var->id] && !loop_is_round_robin(r, s)) return true;
        if (!columns && loop_has_body(s) && reads_column_index(f, r, s->body, NULL)) return true;
    }
    return false;
}

/* Emits the statement `columns`: a loop in which each lane has one column (or `pack` neighbouring
 * ones), and the next where there are more columns than lanes. */
void cu_columns(CuFn *f, const LoopColumns *r) {
    int n_outer_aliases = f->alias.n, n_before = f->pending.n;
    const char *lo, *hi, *column = f->reg[r->range->var->id];
    cu_bounds(f, r->range, &lo, &hi);
    add_pending_sums(f, r, r->first, r->end, NULL, false, r->all_threads ? LS_TEAM : LS_LANES);
    declare_pending_sums(f, n_before);
    const bool masked = r->stmt->sched.masked;
    const int pack = cu_region_pack(f, r);
    const char *stride = pack > 1 ? arena_printf(f->a, " * %d", pack) : "";
    const char *first_index = pack > 1 ? new_name(f, "first") : column;
    f->active = masked ? "gn_on" : NULL;
    if (r->one_pass) {
        if (masked || pack > 1 || reads_column_index(f, r, r->first, r->end))
            cu_line(f, "const int64_t %s = gn.lane%s;", first_index, stride);
        if (masked) f->active = new_name(f, "on");
        if (masked) cu_line(f, "const bool %s = %s < %s;", f->active, first_index, hi);
    } else if (masked) {
        const char *base = new_name(f, "from");
        cu_open(f, "for (int64_t %s = %s; %s < %s; %s += gn.lanes%s) {", base, lo, base, hi, base,
                stride);
        cu_line(f, "const int64_t %s = %s + gn.lane%s;", first_index, base, stride);
        cu_line(f, "const bool gn_on = %s < %s;", first_index, hi);
    } else {
        bool zero = strcmp(lo, "0") == 0;
        const char *first = r->all_threads ? "gn.thread" : "gn.lane";
        cu_open(f, "for (int64_t %s = %s%s%s%s; %s < %s; %s += %s%s) {", first_index,
                zero ? "" : lo, zero ? "" : " + ", first, stride, first_index, hi, first_index,
                r->all_threads ? "gn.lanes * gn.ways" : "gn.lanes", stride);
    }
    f->region = r;
    f->column = column;
    f->first_column = pack > 1 ? first_index : NULL;
    emit_region_body(f, r);
    f->active = NULL;
    f->first_column = NULL;
    f->region = NULL;
    if (!r->one_pass) cu_close(f);
    if (f->splits_rows && loop_region_of(&f->team, f->sched.shared_loop) == r && r->stmt->next)
        cu_line(f, "if (gn_is_part(gn)) return;");
    f->alias.n = n_outer_aliases;
}
