/* The statement `columns`: each lane has one, and the next where there are more columns than lanes.
 */
#include "codegen/cuda/cuda.h"

#include <string.h>

static const char *const reduce_functor[] = {
    [RED_SUM] = "GnSum", [RED_MAX] = "GnMax", [RED_MIN] = "GnMin"};

/* A name that no other variable of the kernel has: "gn_WHAT_3". */
static const char *new_temporary_name(CuFn *f, const char *what) {
    return arena_printf(f->a, "gn_%s_%d", what, f->n_fresh_names++);
}

/* Makes the text of accesses to buffer b use the C variable `name` until the alias is removed. acc:
 * only this statement's access does; NULL = all. dropped_dim: the variable is an array without this
 * dimension of b; -1 = it is a scalar. */
static void push_alias(CuFn *f, const LBuf *b, const LStmt *acc, const char *name,
                       int dropped_dim) {
    CuAlias a = {b, acc, name, dropped_dim, .in_memory_type = false};
    vec_push(f->a, &f->alias, a);
}

/* Text of the reduction of x over the team's threads: over those whose indices differ by a multiple
 * of `from` and lie in a block of `to` (a butterfly of warp shuffles, runtime/cuda/kernel.h). */
static const char *reduce_threads(CuFn *f, RedKind r, const char *x, const char *from,
                                  const char *to) {
    return arena_printf(f->a, "gn_fold<%s>(gn, %s, %s, %s)", reduce_functor[r], x, from, to);
}

/* Text of the reduction of x over the ways of the team. Ways are groups of lanes that take the
 * entries (edges) of a row round robin; threads with the same lane number hold partial sums of the
 * same column. */
static const char *reduce_over_ways(CuFn *f, RedKind r, const char *x) {
    return reduce_threads(f, r, x, "gn.lanes", "gn.lanes * gn.ways");
}

/* An access to a buffer, and the innermost loop over feature columns around it (NULL = none). */
typedef struct {
    const LStmt *access, *column_loop;
} AccessSite;

/* The first access to buffer b in the statements s .. end, with the loop over feature columns that
 * it stands in. kind: an LStmtKind, or -1 for any access. column_loop: the column loop around s, if
 * any. */
static AccessSite find_access(const CuFn *f, const LStmt *s, const LStmt *end,
                              const LStmt *column_loop, const LBuf *b, int kind) {
    for (; s != end; s = s->next) {
        if (loop_is_access(s) && s->buf == b && (kind < 0 || (int)s->kind == kind))
            return (AccessSite){s, column_loop};
        if (loop_has_body(s)) {
            /* `columns segment .. by team`: its entries are the columns, not a loop inside */
            bool entries_are_columns = column_loop && column_loop->range == LR_SEGMENT;
            const LStmt *inner_loop = !entries_are_columns && loop_is_columns(s) ? s : column_loop;
            AccessSite found = find_access(f, s->body, NULL, inner_loop, b, kind);
            if (found.access) return found;
        }
    }
    return (AccessSite){NULL, NULL};
}

/* The dimension of the accessed buffer whose index is the column loop's variable or is computed
 * from it; -1 = none. */
static int column_dim_of(AccessSite site) {
    for (int i = 0; site.access && site.column_loop && i < site.access->buf->rank; i++)
        if (site.access->idx[i] == site.column_loop->var ||
            loop_computes(site.column_loop->body, site.access->idx[i]))
            return i;
    return -1;
}

/* ---- sums over columns ------------------------------------------------------------- */
/* Collects in f->pending_sums the statements in s .. end that add up values of different feature
 * columns (a dot product, a softmax's denominator). Each thread first sums its own columns in a
 * register; the statement `fold` then combines threads. per_entry: collect only sums whose
 * accumulator is declared inside a loop over entries, else only the others. share: which threads'
 * sums are combined. */
static void collect_pending_sums(CuFn *f, const LoopColumns *r, const LStmt *s, const LStmt *end,
                                 const LStmt *column_loop, bool per_entry, LShare share) {
    for (; s != end; s = s->next) {
        if (loop_reduces_columns(s, column_loop) &&
            loop_is_declared_inside(r, s->buf) == per_entry) {
            CuPartial p = {.acc = s, .name = new_temporary_name(f, "sum"), .share = share};
            vec_push(f->a, &f->pending_sums, p);
        }
        const LStmt *inner_loop = loop_is_columns(s) ? s : column_loop;
        if (loop_has_body(s))
            collect_pending_sums(f, r, s->body, NULL, inner_loop, per_entry, share);
    }
}

/* Declares a register for each pending sum from number `first` on, set to the identity, and lets
 * the accumulating statement use that register. */
static void declare_pending_sum_registers(CuFn *f, int first) {
    for (int i = first; i < f->pending_sums.n; i++) {
        const LStmt *s = f->pending_sums.v[i].acc;
        cu_line(f, "%s %s = %s;", cu_type(s->buf->dt), f->pending_sums.v[i].name,
                cu_identity_text(f->a, s->red, s->buf->dt));
        push_alias(f, s->buf, s, f->pending_sums.v[i].name, -1);
    }
}

/* Emits the reduction of one pending sum over the threads that have parts of it (the lanes of a
 * way, or the whole team), and adds the total to the accumulator of the loop IR. */
static void emit_reduce_pending_sum(CuFn *f, const CuPartial *p) {
    LStmt acc = *p->acc;
    LReg total = {.id = acc.src->id, .dt = acc.src->dt};
    const char *saved_name = f->reg[total.id];
    const char *n_threads = p->share == LS_TEAM ? "gn.lanes * gn.ways" : "gn.lanes";
    if (p->reduced)
        ; /* all of them have the total */
    else if (f->region)
        cu_line(f, "%s = gn_fold_lanes<%s>(gn, %s);", p->name, reduce_functor[acc.red], p->name);
    else
        cu_line(f, "%s = %s;", p->name, reduce_threads(f, acc.red, p->name, "1", n_threads));
    acc.src = &total;
    f->reg[total.id] = p->name;
    cu_emit_accumulate(f, &acc);
    f->reg[total.id] = saved_name;
}

/* Emits a column loop whose range is not the region's, or is wider than the lanes: lane i takes the
 * iterations i, i + lanes, i + 2 lanes, .. */
static void emit_round_robin_loop(CuFn *f, const LStmt *s) {
    const char *saved_first = f->first_column, *saved_guard = f->column_guard;
    f->first_column = f->column_guard = NULL;
    f->columns_run_serially = true;
    cu_emit_loop(f, s, "gn.lane", "gn.lanes");
    f->columns_run_serially = false;
    f->column_guard = saved_guard;
    f->first_column = saved_first;
}

void cu_emit_column_loop(CuFn *f, const LStmt *s) {
    int n_outer_aliases = f->alias.n, n_before = f->pending_sums.n;
    if (f->region->one_pass || f->region->round_robin)
        collect_pending_sums(f, f->region, s->body, NULL, s, true, LS_LANES);
    declare_pending_sum_registers(f, n_before);
    if (loop_is_round_robin(f->region, s)) {
        emit_round_robin_loop(f, s);
        f->alias.n = n_outer_aliases;
        return;
    }
    if (f->column_guard) cu_open(f, "if (%s) {", f->column_guard);
    if (f->first_column) {
        cu_emit_packed_body(f, s);
    } else {
        f->reg[s->var->id] = f->column;
        f->columns_run_serially = s->range == LR_SEGMENT;
        cu_emit_statements(f, s->body);
        f->columns_run_serially = false;
    }
    if (f->column_guard) cu_close(f);
    f->alias.n = n_outer_aliases;
}

/* ---- entries by turns -------------------------------------------------------------- */
/* Declares the register, or the array of registers, in which a thread sums its share of a row's
 * entries for accumulator b, and sets it to the identity. `loop` is the loop over entries that the
 * ways share. *out describes the register. */
static void declare_partial_sum(CuFn *f, const LStmt *loop, const LBuf *b, CuPartial *out) {
    AccessSite site = find_access(f, loop->body, NULL, NULL, b, L_ACC);
    *out = (CuPartial){.share = LS_WAYS,
                       .acc = site.access,
                       .dropped_dim = column_dim_of(site),
                       .name = new_temporary_name(f, "part")};
    out->is_array = b->kind == LB_LOCAL && b->rank > 1;
    out->n_registers = out->is_array ? cu_elements_without_dim(b, out->dropped_dim) : 1;
    out->in_columns = site.column_loop;
    out->per_column = f->first_column && site.column_loop;
    const char *zero = cu_identity_text(f->a, out->acc->red, b->dt);
    if (!out->is_array && out->per_column) {
        cu_line(f, "%s %s;", cu_type(b->dt), cu_pack_declarator(f, out->name));
        cu_open_pack_loop(f);
        cu_line(f, "%s = %s;", cu_pack_register(f, out->name), zero);
        cu_close_pack_loop(f);
        return;
    }
    if (!out->is_array) {
        cu_line(f, "%s %s = %s;", cu_type(b->dt), out->name, zero);
        return;
    }
    cu_line(f, "%s %s[%lld];", cu_type(b->dt), out->name, (long long)out->n_registers);
    cu_line(f, "#pragma unroll");
    cu_line(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) %s[gn_k] = %s;",
            (long long)out->n_registers, out->name, zero);
}

/* Text of the thread's partial sum: where a lane has several columns, the element for column gn_k.
 */
static const char *partial_name(CuFn *f, const CuPartial *p) {
    return p->per_column ? cu_pack_register(f, p->name) : p->name;
}

/* Emits the combination of one partial sum: reduces it over the ways, unless that is done already,
 * and adds the result to the accumulator of the loop IR. */
static void emit_combine_partial(CuFn *f, const CuPartial *p) {
    DType dt = p->acc->buf->dt;
    const char *at = cu_element_text(f, p->acc), *partial = partial_name(f, p);
    if (p->per_column) cu_open_pack_loop(f);
    if (p->is_array) {
        cu_line(f, "#pragma unroll");
        cu_open(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) {", (long long)p->n_registers);
        at = arena_printf(f->a, "%s[gn_k]", f->local[p->acc->buf->id]);
        partial = arena_printf(f->a, "%s[gn_k]", partial);
    }
    if (!p->reduced) cu_line(f, "%s = %s;", partial, reduce_over_ways(f, p->acc->red, partial));
    cu_line(f, "%s = %s;", at, cu_combine_text(f, p->acc->red, dt, at, partial));
    if (p->is_array) cu_close(f);
    if (p->per_column) cu_close_pack_loop(f);
}

/* Text of the thread's column index. Where a lane has several columns it is that of column gn_k of
 * the surrounding pack loop. */
static const char *column_text(CuFn *f) {
    return f->first_column ? arena_printf(f->a, "%s + gn_k", f->first_column) : f->column;
}

/* Text of "if (..) " with the condition that the lane has a column at all: the row may have fewer
 * columns than there are lanes. "" where all lanes have one. In a pack loop: that it has column
 * gn_k. */
static const char *guard_text(const CuFn *f) {
    if (f->ragged) return "if (gn_k < gn_has.n) ";
    return f->column_guard ? arena_printf(f->a, "if (%s) ", f->column_guard) : "";
}

/* Emits that a block with a part of a row leaves sum number `target` of a loop, the value of
 * `name`, which all threads with the column, or all of the team, have. */
static void emit_leave(CuFn *f, int loop, int target, const char *name, bool in_columns) {
    const char *at =
        cu_partial_place_text(f, loop, target, "gn_slot(gn)", in_columns ? column_text(f) : NULL);
    if (in_columns)
        cu_line(f, "%sgn_leave(gn, %d, %s, %s);", guard_text(f), loop, at, name);
    else
        cu_line(f, "if (gn.thread == 0) gn_leave(gn, %d, %s, %s);", loop, at, name);
}

/* Emits the end of a block that has summed one part of a long row: it reduces its partial sums over
 * the ways and stores them in scratch memory (gn_room), where the block that finishes the row reads
 * them. It is emitted for all rows: gn_leave stores nothing where the block has a whole row, and
 * only a block with a part leaves the rest of the row to another. */
static void emit_store_partials(CuFn *f, int loop, const CuPartial *partial, int n) {
    for (int i = 0; i < n; i++) {
        const char *name = partial_name(f, &partial[i]);
        if (partial[i].in_columns) cu_open_pack_loop(f);
        cu_line(f, "%s = %s;", name, reduce_over_ways(f, partial[i].acc->red, name));
        emit_leave(f, loop, i, name, partial[i].in_columns);
        if (partial[i].in_columns) cu_close_pack_loop(f);
    }
    cu_line(f, "if (gn_is_part(gn, %d)) %s;", loop, f->region->one_pass ? "return" : "continue");
}

/* Emits the test whether the sums of a loop over entries are in scratch memory, and the loop in
 * which a team's threads, or ways, take what the parts of the row left. The order is that of the
 * parts, so results have the same bits in every run. */
static void open_stored_partials(CuFn *f, int loop, const char *first, const char *end,
                                 const char *who, const char *of) {
    cu_open(f, "if (gn_has_parts(gn, %d, %s - %s, gn_part)) {", loop, end, first);
    cu_open(f, "GN_PARTS_OF(gn_slot_of, %s, %s, gn_part, %s, %s) {", first, end, who, of);
}

/* Closes both, and opens what is done for other rows. */
static void close_stored_partials(CuFn *f) {
    cu_close(f);
    f->depth--;
    cu_open(f, "} else {");
}

/* Emits the addition of what a part left to a sum. */
static void emit_add_stored(CuFn *f, int loop, int target, const CuPartial *p) {
    const char *name = partial_name(f, p);
    const char *at =
        cu_partial_place_text(f, loop, target, "gn_slot_of", p->in_columns ? column_text(f) : NULL);
    const char *x = arena_printf(f->a, "gn_room[%s]", at);
    if (p->in_columns) cu_open_pack_loop(f);
    cu_line(f, "%s%s = %s;", p->in_columns ? guard_text(f) : "", name,
            cu_combine_text(f, p->acc->red, DT_F32, name, x));
    if (p->in_columns) cu_close_pack_loop(f);
}

/* ---- loads of several entries ------------------------------------------------------- */
/* Whether value s is had for several entries before the first of them is used. */
static bool is_early(const CuFn *f, const LoopAhead *early, const LStmt *s) {
    return loop_is_value(s) && early->early[s->dst->id] && f->used[s->dst->id];
}

/* Declares an array with a place for each of n entries for what is loaded of them, and lets the
 * text of values use that of entry gn_u. */
static void declare_loaded(CuFn *f, const LoopAhead *early, const LStmt *s, int n) {
    for (; s; s = s->next) {
        if (loop_has_body(s)) declare_loaded(f, early, s->body, n);
        if (!is_early(f, early, s) || !early->is_kept[s->dst->id]) continue;
        const char *name = s->packed ? new_temporary_name(f, "pack") : f->reg[s->dst->id];
        cu_line(f, "%s %s[%d];", s->packed ? cu_pack_type(f, s->buf) : cu_type(s->dst->dt), name,
                n);
        f->reg[s->dst->id] = arena_printf(f->a, "%s[gn_u]", name);
    }
}

/* Emits the loads of one entry, and what their indices are made of. */
static void emit_early(CuFn *f, const LoopAhead *early, const LStmt *s) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) {
            if (f->column_guard) cu_open(f, "if (%s) {", f->column_guard);
            f->reg[s->var->id] = f->first_column ? f->first_column : f->column;
            emit_early(f, early, s->body);
            if (f->column_guard) cu_close(f);
        }
        if (!is_early(f, early, s)) continue;
        const char *to = f->reg[s->dst->id];
        if (!early->is_kept[s->dst->id])
            cu_emit_statement(f, s);
        else if (s->packed)
            cu_line(f, "%s = %s;", to, cu_load_pack_text(f, cu_element_text(f, s)));
        else
            cu_line(f, "%s = %s;", to, s->kind == L_LET ? cu_let_text(f, s) : cu_load_text(f, s));
    }
}

/* Lets accesses use the packs that were loaded, and gives the columns their own names. */
static void push_loaded_packs(CuFn *f, const LoopAhead *early, const LStmt *s,
                              const char *const *own_name) {
    for (; s; s = s->next) {
        if (s->kind == L_FOR) push_loaded_packs(f, early, s->body, own_name);
        if (s->kind == L_FOR) f->reg[s->var->id] = own_name[s->var->id];
        if (!is_early(f, early, s) || !s->packed) continue;
        cu_push_pack_alias(f, s, f->reg[s->dst->id]);
        f->reg[s->dst->id] = own_name[s->dst->id];
    }
}

/* Emits a loop over entries of which several are loaded before the first is used: way i takes i,
 * i + ways, .., and so many of these at a time. Where the row ends before, the first of them is
 * loaded again instead, and not used. */
static void emit_loop_ahead(CuFn *f, const LStmt *s, const char *first, const char *end) {
    const LoopAhead early = loop_early_of(&f->team, s);
    const int id = s->var->id, n = s->sched.ahead, n_outer_aliases = f->alias.n;
    const char *at = arena_printf(f->a, "gn_at_%d", id), *entry = f->reg[id];
    const char **own_name = NEWN(f->a, const char *, (size_t)f->k->n_regs + 1);
    memcpy(own_name, f->reg, (size_t)f->k->n_regs * sizeof *own_name);
    cu_open(f, "for (int64_t %s = %s + gn.way; %s < %s; %s += gn.ways * %d) {", at, first, at, end,
            at, n);
    declare_loaded(f, &early, s->body, n);
    cu_line(f, "#pragma unroll");
    cu_open(f, "for (int gn_u = 0; gn_u < %d; gn_u++) {", n);
    cu_line(f, "const int64_t %s = gn_entry(%s, gn_u * gn.ways, %s);", entry, at, end);
    emit_early(f, &early, s->body);
    cu_close(f);
    cu_line(f, "#pragma unroll");
    cu_open(f, "for (int gn_u = 0; gn_u < %d; gn_u++) {", n);
    cu_line(f, "if (%s + gn_u * gn.ways >= %s) break;", at, end);
    f->reg[id] = arena_printf(f->a, "(%s + gn_u * gn.ways)", at);
    push_loaded_packs(f, &early, s->body, own_name);
    f->loaded = &early;
    cu_emit_statements(f, s->body);
    f->loaded = NULL;
    cu_close(f);
    cu_close(f);
    f->alias.n = n_outer_aliases;
    memcpy(f->reg, own_name, (size_t)f->k->n_regs * sizeof *own_name);
}

/* Emits the loop over a row's entries (edges): way i takes the entries i, i + ways, .. In a long
 * row that was split over blocks, the block adds up the stored partial sums instead of visiting
 * entries. */
static void emit_round_robin_entry_loop(CuFn *f, const LStmt *s, const CuPartial *partial, int n) {
    const int loop = cu_split_number(f, s);
    if (loop < 0 && s->sched.ahead) {
        const char *lo, *hi;
        cu_loop_bounds_text(f, s, &lo, &hi);
        emit_loop_ahead(f, s, lo, hi);
        return;
    }
    if (loop < 0) {
        cu_emit_loop(f, s, "gn.way", "gn.ways");
        return;
    }
    const char *ptr = f->buf[s->ptr->id], *row = f->reg[s->at->id], *v = f->reg[s->var->id];
    const char *first = arena_printf(f->a, "%s[%s]", ptr, row);
    const char *end = arena_printf(f->a, "%s[%s + 1]", ptr, row);
    open_stored_partials(f, loop, first, end, "gn.way", "gn.ways");
    for (int i = 0; i < n; i++) emit_add_stored(f, loop, i, &partial[i]);
    close_stored_partials(f);
    cu_line(f, "const int64_t gn_end_%d = gn_end(gn, %s);", s->var->id, end);
    if (s->sched.ahead) {
        emit_loop_ahead(f, s, arena_printf(f->a, "gn_first(gn, %s)", first),
                        arena_printf(f->a, "gn_end_%d", s->var->id));
    } else {
        cu_open(f, "for (int64_t %s = gn_first(gn, %s) + gn.way; %s < gn_end_%d; %s += gn.ways) {",
                v, first, v, s->var->id, v);
        cu_emit_statements(f, s->body);
        cu_close(f);
    }
    cu_close(f);
    emit_store_partials(f, loop, partial, n);
}

/* Emits loop s if the ways of the team share its entries: with a partial sum for each accumulator,
 * which stays pending until the statement `fold` combines it. False: they do not share it, and
 * nothing is emitted. */
static bool emit_loop_shared_by_ways(CuFn *f, const LStmt *s) {
    const LBuf *target[LOOP_TARGETS_MAX];
    CuPartial partial[LOOP_TARGETS_MAX];
    int n = cu_shared_sums(f, s, target), n_outer_aliases = f->alias.n;
    for (int i = 0; i < n; i++) declare_partial_sum(f, s, target[i], &partial[i]);
    for (int i = 0; i < n; i++)
        push_alias(f, target[i], NULL, partial_name(f, &partial[i]),
                   partial[i].is_array ? partial[i].dropped_dim : -1);
    if (n) emit_round_robin_entry_loop(f, s, partial, n);
    f->alias.n = n_outer_aliases;
    for (int i = 0; i < n; i++) {
        partial[i].reduced = cu_split_number(f, s) >= 0;
        vec_push(f->a, &f->pending_sums, partial[i]);
    }
    return n > 0;
}

void cu_emit_combine_partials(CuFn *f, const LStmt *s) {
    int n = 0;
    for (int i = 0; i < f->pending_sums.n; i++) {
        const CuPartial *p = &f->pending_sums.v[i];
        if (p->acc->buf != s->buf || p->share != s->sched.share)
            f->pending_sums.v[n++] = *p;
        else if (p->share == LS_WAYS)
            emit_combine_partial(f, p);
        else
            emit_reduce_pending_sum(f, p);
    }
    f->pending_sums.n = n;
}

/* ---- rows in registers ------------------------------------------------------------- */
/* The thread's element of a promoted buffer: one whose row is held in registers during the region,
 * a column per lane. */
typedef struct {
    AccessSite site; /* the first access */
    const char *name;
} RegisterCell;
typedef VEC(RegisterCell) RegisterCells;

/* Text of the array element in memory that the access at `site` reaches, with `column` as the
 * column loop's variable. */
static const char *memory_element_text(CuFn *f, AccessSite site, const char *column) {
    const LStmt *access = site.access, *loop = site.column_loop;
    const char **saved_names = NEWN(f->a, const char *, access->buf->rank + 1);
    for (int i = 0; i < access->buf->rank; i++) {
        int id = access->idx[i]->id;
        saved_names[i] = f->reg[id];
        const LStmt *definition = access->idx[i]->def;
        if (access->idx[i] == loop->var) f->reg[id] = column;
        if (definition->kind != L_LET || !loop_has(loop->body, definition)) continue;
        const char *saved_variable = f->reg[loop->var->id];
        f->reg[loop->var->id] = column;
        f->reg[id] = arena_printf(f->a, "(%s)", cu_let_text(f, definition));
        f->reg[loop->var->id] = saved_variable;
    }
    const char *text = cu_element_text(f, access);
    for (int i = 0; i < access->buf->rank; i++) f->reg[access->idx[i]->id] = saved_names[i];
    return text;
}

/* Whether the statement is a store directly in a column loop that stands in the region's own list,
 * not nested in another loop. */
static bool is_direct_column_store(const LoopColumns *r, const LStmt *store) {
    if (store->kind != L_STORE) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        for (const LStmt *p = s->kind == L_FOR && s->sched.vector ? s->body : NULL; p; p = p->next)
            if (p == store) return true;
    }
    return false;
}

/* Text of the column of column_text() that may stand within other texts. */
static const char *inner_column_text(CuFn *f) {
    return f->first_column ? arena_printf(f->a, "(%s)", column_text(f)) : f->column;
}

/* Emits the load of the thread's elements of a promoted buffer. */
static void emit_load_cell(CuFn *f, const RegisterCell *cell) {
    const DType dt = cell->site.access->buf->dt;
    const char *text = memory_element_text(f, cell->site, inner_column_text(f));
    const bool half = dt == DT_F16 || dt == DT_BF16;
    cu_open_pack_loop(f);
    cu_line(f, "%s%s = %s%s%s;", guard_text(f), cu_pack_register(f, cell->name),
            half ? "gn_load(" : "", text,
            half          ? ")"
            : dt == DT_I1 ? " != 0"
                          : "");
    cu_close_pack_loop(f);
}

/* Declares a register for the thread's element of each promoted buffer, or for those of its
 * columns, loads it from memory unless the region stores it first, and makes accesses use the
 * register. */
static void load_promoted_rows(CuFn *f, const LoopColumns *r, RegisterCells *cells) {
    for (int i = 0; i < f->k->bufs.n; i++) {
        const LBuf *b = f->k->bufs.v[i];
        AccessSite site = {NULL, NULL};
        if (loop_is_promoted(r->stmt, b)) site = find_access(f, r->first, r->end, NULL, b, -1);
        if (!site.access) continue;
        RegisterCell cell = {site, new_temporary_name(f, "cell")};
        cu_line(f, "%s %s = %s;", cu_type(b->dt), cu_pack_declarator(f, cell.name),
                f->first_column ? "{0}" : "0");
        if (!is_direct_column_store(r, site.access)) emit_load_cell(f, &cell);
        vec_push(f->a, cells, cell);
    }
    for (int i = 0; i < cells->n; i++)
        push_alias(f, cells->v[i].site.access->buf, NULL, cu_pack_register(f, cells->v[i].name),
                   -1);
}

/* Emits the stores of a promoted row's elements, as a pack if the text says so. */
static void emit_store_cell(CuFn *f, const RegisterCell *cell) {
    const LBuf *b = cell->site.access->buf;
    const LStmt *store = find_access(f, f->region->first, f->region->end, NULL, b, L_STORE).access;
    const bool half = b->dt == DT_F16 || b->dt == DT_BF16;
    if (!f->first_column || !store || !store->packed) {
        cu_open_pack_loop(f);
        if (f->first_column) cu_skip_missing_columns(f);
        cu_emit_store_element(f, b, memory_element_text(f, cell->site, inner_column_text(f)),
                              cu_pack_register(f, cell->name));
        cu_close_pack_loop(f);
        return;
    }
    const char *pack = new_temporary_name(f, "pack");
    cu_line(f, "%s %s;", cu_pack_type(f, b), pack);
    cu_open_pack_loop(f);
    cu_line(f, half ? "gn_store(%s.at[gn_k], %s);" : "%s.at[gn_k] = %s;", pack,
            cu_pack_register(f, cell->name));
    cu_close_pack_loop(f);
    cu_line(f, "%s%s", cu_writer_guard_text(f),
            cu_store_pack_text(f, memory_element_text(f, cell->site, f->first_column), pack));
}

/* Emits the stores of the promoted rows from registers back to memory, and removes the region's
 * aliases. */
static void store_promoted_rows(CuFn *f, const RegisterCells *cells, int n_outer_aliases) {
    f->alias.n = n_outer_aliases;
    if (cells->n == 0) return;
    if (f->column_guard) cu_open(f, "if (%s) {", f->column_guard);
    for (int i = 0; i < cells->n; i++) emit_store_cell(f, &cells->v[i]);
    if (f->column_guard) cu_close(f);
}

/* ---- the statement ----------------------------------------------------------------------- */
/* Declares a local array that the region uses by column. Each thread keeps the elements of its own
 * columns alone, so the array loses the dimension of the columns. */
static void declare_column_array(CuFn *f, const LoopColumns *r, const LBuf *b) {
    const char *name = f->local[b->id];
    AccessSite site = find_access(f, r->first, r->end, NULL, b, -1);
    int column_dim = column_dim_of(site);
    if (!f->local_used[b->id]) return;
    if (b->rank == 1)
        cu_line(f, "%s %s = %s;", cu_type(b->dt), cu_pack_declarator(f, name),
                f->first_column ? "{0}" : "0");
    else
        cu_line(f, "%s %s[%lld] = {0};", cu_type(b->dt), name,
                (long long)cu_elements_without_dim(b, column_dim));
    push_alias(f, b, NULL, b->rank == 1 ? cu_pack_register(f, name) : name,
               b->rank == 1 ? -1 : column_dim);
}

/* Emits the statements of the region, between the loads of promoted rows into registers and their
 * stores. */
static void emit_region_body(CuFn *f, const LoopColumns *region) {
    RegisterCells cells = {0};
    int n_outer_aliases = f->alias.n;
    load_promoted_rows(f, region, &cells);
    for (const LStmt *s = region->first; s != region->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf->rank)
            declare_column_array(f, region, s->buf);
        else if (!emit_loop_shared_by_ways(f, s))
            cu_emit_statement(f, s);
    }
    store_promoted_rows(f, &cells, n_outer_aliases);
}

/* Whether the text of the statements needs the column's number: not where accesses use the thread's
 * own registers or there is a single column. */
static bool reads_column_index(const CuFn *f, const LoopColumns *r, const LStmt *s,
                               const LStmt *end) {
    for (; s != end; s = s->next) {
        bool is_column_loop = loop_is_columns(s);
        if (is_column_loop && f->used[s->var->id] && !loop_is_round_robin(r, s)) return true;
        if (!is_column_loop && loop_has_body(s) && reads_column_index(f, r, s->body, NULL))
            return true;
    }
    return false;
}

/* Whether blocks with parts of a row leave sums of the region's columns. */
static bool leaves_columns(const CuFn *f, const LoopColumns *r) {
    LoopSplitSum sum[LOOP_TARGETS_MAX];
    for (const LStmt *s = r->first; s != r->end; s = s->next)
        for (int i = cu_split_number(f, s) < 0 ? 0 : loop_split_sums(&f->team, s, sum); i > 0; i--)
            if (sum[i - 1].in_columns) return true;
    return false;
}

/* Opens the loop that brings a lane, or a thread, from column to column of the region; in one pass
 * there is none. first_index: the variable for the first column of a pack. */
static void open_region(CuFn *f, const LoopColumns *region, const char *first_index,
                        const char *stride, const char *lo, const char *hi) {
    const bool masked = region->stmt->sched.masked, packed = *stride;
    f->column_guard = masked ? "gn_on" : NULL;
    if (region->one_pass) {
        if (masked || packed || leaves_columns(f, region) ||
            reads_column_index(f, region, region->first, region->end))
            cu_line(f, "const int64_t %s = gn.lane%s;", first_index, stride);
        if (masked) f->column_guard = new_temporary_name(f, "on");
        if (masked) cu_line(f, "const bool %s = %s < %s;", f->column_guard, first_index, hi);
    } else if (masked) {
        const char *base = new_temporary_name(f, "from");
        cu_open(f, "for (int64_t %s = %s; %s < %s; %s += gn.lanes%s) {", base, lo, base, hi, base,
                stride);
        cu_line(f, "const int64_t %s = %s + gn.lane%s;", first_index, base, stride);
        cu_line(f, "const bool gn_on = %s < %s;", first_index, hi);
    } else {
        bool zero = strcmp(lo, "0") == 0;
        const char *first = region->all_threads ? "gn.thread" : "gn.lane";
        cu_open(f, "for (int64_t %s = %s%s%s%s; %s < %s; %s += %s%s) {", first_index,
                zero ? "" : lo, zero ? "" : " + ", first, stride, first_index, hi, first_index,
                region->all_threads ? "gn.lanes * gn.ways" : "gn.lanes", stride);
    }
    if (f->ragged) {
        cu_line(f, "const GnColumns gn_has = gn_columns(%s, %s, %d);", first_index, hi,
                f->sched.pack);
    }
}

/* Emits the end of a loop over entries that all threads of a team share, and other blocks in long
 * rows: the sums from number `first` on are folded, and those of a part are left to the row's own
 * block. */
static void emit_leave_numbers(CuFn *f, int loop, int first) {
    cu_close(f);
    for (int i = first; i < f->pending_sums.n; i++) {
        CuPartial *p = &f->pending_sums.v[i];
        cu_line(f, "%s = %s;", p->name,
                reduce_threads(f, p->acc->red, p->name, "1", "gn.lanes * gn.ways"));
        p->reduced = true;
        emit_leave(f, loop, i - first, p->name, false);
    }
    cu_line(f, "if (gn_is_part(gn, %d)) return;", loop);
}

/* Emits the end of what a block with a part of a row does, behind columns by turns, whose sums over
 * the part's entries it has left. */
static void emit_end_of_part(CuFn *f, const LoopColumns *region) {
    for (const LStmt *s = region->first; s != region->end; s = s->next) {
        const int loop = cu_split_number(f, s);
        if (loop >= 0 && !region->one_pass && region->stmt->next)
            cu_line(f, "if (gn_is_part(gn, %d)) return;", loop);
    }
}

void cu_emit_column_region(CuFn *f, const LoopColumns *region) {
    int n_outer_aliases = f->alias.n, n_before = f->pending_sums.n;
    const char *lo, *hi, *column = f->reg[region->range->var->id];
    cu_loop_bounds_text(f, region->range, &lo, &hi);
    const int split = region->all_threads ? cu_split_number(f, region->range) : -1;
    collect_pending_sums(f, region, region->first, region->end, NULL, false,
                         region->all_threads ? LS_TEAM : LS_LANES);
    declare_pending_sum_registers(f, n_before);
    const int pack = cu_region_pack(f, region);
    const char *stride = pack > 1 ? arena_printf(f->a, " * %d", pack) : "";
    const char *first_index = pack > 1 ? new_temporary_name(f, "first") : column;
    if (split >= 0) {
        open_stored_partials(f, split, lo, hi, "gn.thread", "gn.lanes * gn.ways");
        for (int i = n_before; i < f->pending_sums.n; i++)
            emit_add_stored(f, split, i - n_before, &f->pending_sums.v[i]);
        close_stored_partials(f);
        lo = arena_printf(f->a, "gn_first(gn, %s)", lo);
        hi = arena_printf(f->a, "gn_end(gn, %s)", hi);
    }
    f->ragged = pack > 1 && !loop_is_multiple(region->range->extent, pack);
    open_region(f, region, first_index, stride, lo, hi);
    f->region = region;
    f->column = column;
    f->first_column = pack > 1 ? first_index : NULL;
    emit_region_body(f, region);
    f->column_guard = NULL;
    f->first_column = NULL;
    f->ragged = false;
    f->region = NULL;
    if (!region->one_pass) cu_close(f);
    if (split >= 0)
        emit_leave_numbers(f, split, n_before);
    else
        emit_end_of_part(f, region);
    f->alias.n = n_outer_aliases;
}
