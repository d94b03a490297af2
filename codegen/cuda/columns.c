/* The statement `columns`: each lane has one, and the next where there are more columns than lanes.
 */
#include "codegen/cuda/cuda.h"

#include <string.h>

static const char *const fold_op[] = {
    [RED_SUM] = "GnSum", [RED_MAX] = "GnMax", [RED_MIN] = "GnMin"};

/* A name that no other variable of the kernel has: "gn_WHAT_3". */
static const char *fresh(CuFn *f, const char *what) {
    return arena_printf(f->a, "gn_%s_%d", what, f->n_names++);
}

/* Until the alias is removed, accesses to b (acc: that statement's alone) are written as `name`. */
static void stand_for(CuFn *f, const LBuf *b, const LStmt *acc, const char *name, int place) {
    CuAlias a = {b, acc, name, place, .memory = false};
    vec_push(f->a, &f->alias, a);
}

/* Text of the reduction of x over those threads of the team whose values lie between the offsets
 * `from` and `to`. */
static const char *fold(CuFn *f, RedKind r, const char *x, const char *from, const char *to) {
    return arena_printf(f->a, "gn_fold<%s>(gn, %s, %s, %s)", fold_op[r], x, from, to);
}

/* Text of the reduction of x over the ways of the team: the threads that have the same column and
 * different entries. */
static const char *fold_ways(CuFn *f, RedKind r, const char *x) {
    return fold(f, r, x, "gn.lanes", "gn.lanes * gn.ways");
}

/* An access and the innermost column loop around it. */
typedef struct {
    const LStmt *at, *loop;
} Spot;

/* The first access to b in s .. end, with the column loop around it. kind: an LStmtKind, or -1 for
 * any access. */
static Spot find_access(const CuFn *f, const LStmt *s, const LStmt *end, const LStmt *loop,
                        const LBuf *b, int kind) {
    for (; s != end; s = s->next) {
        bool access = s->kind == L_STORE || s->kind == L_ACC || s->kind == L_LOAD;
        if (access && s->buf == b && (kind < 0 || (int)s->kind == kind)) return (Spot){s, loop};
        if (loop_has_body(s)) {
            bool own = loop && loop->range == LR_SEGMENT;
            const LStmt *in = !own && loop_is_columns(s) ? s : loop;
            Spot found = find_access(f, s->body, NULL, in, b, kind);
            if (found.at) return found;
        }
    }
    return (Spot){NULL, NULL};
}

/* The dimension of the accessed buffer that is indexed by the column; -1 = none. */
static int place_of(Spot p) {
    for (int i = 0; p.at && p.loop && i < p.at->buf->rank; i++)
        if (p.at->idx[i] == p.loop->var || loop_computes(p.loop->body, p.at->idx[i])) return i;
    return -1;
}

/* ---- sums over columns ------------------------------------------------------------- */
/* Adds to f->pending the sums over columns that statements s .. end make; each thread sums by
 * itself until the statement `fold`. inner: only those whose accumulator is local to an entry of
 * the row; else only the others. by: the threads whose sums are combined. */
static void begin_sums(CuFn *f, const LoopColumns *r, const LStmt *s, const LStmt *end,
                       const LStmt *loop, bool inner, LShare by) {
    for (; s != end; s = s->next) {
        if (loop_is_fold(s, loop) && loop_is_inner(r, s->buf) == inner) {
            CuPart p = {.acc = s, .name = fresh(f, "sum"), .by = by};
            vec_push(f->a, &f->pending, p);
        }
        const LStmt *in = loop_is_columns(s) ? s : loop;
        if (loop_has_body(s)) begin_sums(f, r, s->body, NULL, in, inner, by);
    }
}

/* Declares a register for each pending sum from number `from` on, and lets the accumulator's
 * accesses use it. */
static void declare_sums(CuFn *f, int from) {
    for (int i = from; i < f->pending.n; i++) {
        const LStmt *s = f->pending.v[i].acc;
        cu_line(f, "%s %s = %s;", cu_type(s->buf->dt), f->pending.v[i].name,
                cu_identity(f->a, s->red, s->buf->dt));
        stand_for(f, s->buf, s, f->pending.v[i].name, -1);
    }
}

/* Emits the reduction of a sum over the threads that share it (the lanes of a way, or the whole
 * team), and adds the total to the accumulator. */
static void end_sum(CuFn *f, const CuPart *p) {
    LStmt s = *p->acc;
    LReg all = {.id = s.src->id, .dt = s.src->dt};
    const char *keep = f->reg[all.id];
    const char *to = p->by == LS_TEAM ? "gn.lanes * gn.ways" : "gn.lanes";
    if (f->among)
        cu_line(f, "%s = gn_fold_lanes<%s>(gn, %s);", p->name, fold_op[s.red], p->name);
    else
        cu_line(f, "%s = %s;", p->name, fold(f, s.red, p->name, "1", to));
    s.src = &all;
    f->reg[all.id] = p->name;
    cu_acc(f, &s);
    f->reg[all.id] = keep;
}

/* Emits a loop whose iterations go round robin to the lanes: its range differs from the region's,
 * or the lanes do not have all of it at once. */
static void by_turns(CuFn *f, const LStmt *s) {
    const char *first = f->first, *on = f->on;
    f->first = f->on = NULL;
    f->serial = true;
    cu_loop(f, s, "gn.lane", "gn.lanes");
    f->serial = false;
    f->on = on;
    f->first = first;
}

/* Emits a column loop of the region: the thread computes its own column. Sums over the columns that
 * the same entry reads are reduced at once. */
void cu_column(CuFn *f, const LStmt *s) {
    int outer = f->alias.n, before = f->pending.n;
    if (f->among->together || f->among->turns)
        begin_sums(f, f->among, s->body, NULL, s, true, LS_LANES);
    declare_sums(f, before);
    if (loop_takes_turns(f->among, s)) {
        by_turns(f, s);
        f->alias.n = outer;
        return;
    }
    if (f->on) cu_open(f, "if (%s) {", f->on);
    if (f->first) {
        cu_packed_body(f, s);
    } else {
        f->reg[s->var->id] = f->column;
        f->serial = s->range == LR_SEGMENT;
        cu_block(f, s->body);
        f->serial = false;
    }
    if (f->on) cu_close(f);
    f->alias.n = outer;
}

/* ---- entries by turns -------------------------------------------------------------- */
/* Declares the thread's partial sum for the accumulator b of a loop whose entries the ways share,
 * and sets it to the identity. */
static void begin_part(CuFn *f, const LStmt *loop, const LBuf *b, CuPart *p) {
    Spot spot = find_access(f, loop->body, NULL, NULL, b, L_ACC);
    *p = (CuPart){.by = LS_WAYS, .acc = spot.at, .place = place_of(spot), .name = fresh(f, "part")};
    p->array = b->kind == LB_LOCAL && b->rank > 1;
    p->count = p->array ? cu_count_without(b, p->place) : 1;
    p->each = f->first && spot.loop;
    const char *zero = cu_identity(f->a, p->acc->red, b->dt);
    if (!p->array && p->each) {
        cu_line(f, "%s %s;", cu_type(b->dt), cu_registers(f, p->name));
        cu_each(f);
        cu_line(f, "%s = %s;", cu_of_each(f, p->name), zero);
        cu_each_end(f);
        return;
    }
    if (!p->array) {
        cu_line(f, "%s %s = %s;", cu_type(b->dt), p->name, zero);
        return;
    }
    cu_line(f, "%s %s[%lld];", cu_type(b->dt), p->name, (long long)p->count);
    cu_line(f, "#pragma unroll");
    cu_line(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) %s[gn_k] = %s;", (long long)p->count,
            p->name, zero);
}

/* The partial sum as text: an element of it where the lane has several columns. */
static const char *part_name(CuFn *f, const CuPart *p) {
    return p->each ? cu_of_each(f, p->name) : p->name;
}

/* Emits the end of a partial sum: reduces it over the ways, unless that is done, and combines it
 * with the accumulator. */
static void end_part(CuFn *f, const CuPart *p) {
    DType dt = p->acc->buf->dt;
    const char *at = cu_element(f, p->acc), *part = part_name(f, p);
    if (p->each) cu_each(f);
    if (p->array) {
        cu_line(f, "#pragma unroll");
        cu_open(f, "for (int gn_k = 0; gn_k < %lld; gn_k++) {", (long long)p->count);
        at = arena_printf(f->a, "%s[gn_k]", f->local[p->acc->buf->id]);
        part = arena_printf(f->a, "%s[gn_k]", part);
    }
    if (!p->folded) cu_line(f, "%s = %s;", part, fold_ways(f, p->acc->red, part));
    cu_line(f, "%s = %s;", at, cu_combine(f, p->acc->red, dt, at, part));
    if (p->array) cu_close(f);
    if (p->each) cu_each_end(f);
}

/* The column index as text; inside a loop over the lane's columns that of column gn_k. */
static const char *column_of_each(CuFn *f) {
    return f->first ? arena_printf(f->a, "%s + gn_k", f->first) : f->column;
}

/* "if (..) " with the condition under which the lane has a column; "" where all lanes have one. */
static const char *if_on(const CuFn *f) {
    return f->on ? arena_printf(f->a, "if (%s) ", f->on) : "";
}

/* Emits what a block that has a part of a long row does at its end: it reduces its partial sums
 * over the ways and stores them in scratch memory, where the block that has the row finds them. */
static void leave_parts(CuFn *f, const CuPart *part, int n) {
    for (int i = 0; i < n; i++) {
        const char *name = cu_of_each(f, part[i].name);
        const char *at = cu_part_number(f, i, column_of_each(f));
        cu_each(f);
        cu_line(f, "%s = %s;", name, fold_ways(f, part[i].acc->red, name));
        cu_line(f, "%sgn_leave(gn, %s, %s, %s);", if_on(f), cu_part_numbers(f, false), at, name);
        cu_each_end(f);
    }
    cu_line(f, "if (gn_is_part(gn)) continue;");
}

/* Emits the sum of what other blocks have stored in scratch memory for parts of this row, in the
 * order of the parts. */
static void add_parts(CuFn *f, const LStmt *s, const CuPart *part, int n) {
    const char *ptr = f->buf[s->ptr->id], *row = f->reg[s->at->id];
    cu_open(f, "GN_PARTS_OF(gn_slot, %s[%s], %s[%s + 1], gn_part, gn) {", ptr, row, ptr, row);
    cu_each(f);
    for (int i = 0; i < n; i++) {
        const char *name = cu_of_each(f, part[i].name);
        const char *x = cu_part_at(f, i, "gn_slot", column_of_each(f));
        cu_line(f, "%s%s = %s;", if_on(f), name, cu_combine(f, part[i].acc->red, DT_F32, name, x));
    }
    cu_each_end(f);
    cu_close(f);
}

/* Whether the entries of loop s are split over several blocks in long rows. */
static bool has_parts(const CuFn *f, const LStmt *s) {
    return f->many && s == f->sched.split;
}

/* Emits the loop over a row's entries, which go round robin to the ways; for a long row the block
 * adds up the partial sums that other blocks have made, instead. */
static void entries(CuFn *f, const LStmt *s, const CuPart *part, int n) {
    if (!has_parts(f, s)) {
        cu_loop(f, s, "gn.way", "gn.ways");
        return;
    }
    const char *ptr = f->buf[s->ptr->id], *row = f->reg[s->at->id], *v = f->reg[s->var->id];
    cu_open(f, "if (gn_has_parts(gn, %s[%s + 1] - %s[%s], gn_part)) {", ptr, row, ptr, row);
    add_parts(f, s, part, n);
    f->depth--;
    cu_open(f, "} else {");
    cu_line(f, "const int64_t gn_end_%d = gn_end(gn, %s[%s + 1]);", s->var->id, ptr, row);
    cu_open(f, "for (int64_t %s = gn_first(gn, %s[%s]) + gn.way; %s < gn_end_%d; %s += gn.ways) {",
            v, ptr, row, v, s->var->id, v);
    cu_block(f, s->body);
    cu_close(f);
    cu_close(f);
    leave_parts(f, part, n);
}

/* Emits a loop whose entries the ways share, with a partial sum for each accumulator, and records
 * the sums as pending; false: s is no such loop, and nothing is emitted. */
static bool split_loop(CuFn *f, const LStmt *s) {
    const LBuf *target[LOOP_TARGETS_MAX];
    CuPart part[LOOP_TARGETS_MAX];
    int n = cu_split_targets(f, s, target), outer = f->alias.n;
    for (int i = 0; i < n; i++) begin_part(f, s, target[i], &part[i]);
    for (int i = 0; i < n; i++)
        stand_for(f, target[i], NULL, part_name(f, &part[i]), part[i].array ? part[i].place : -1);
    if (n) entries(f, s, part, n);
    f->alias.n = outer;
    for (int i = 0; i < n; i++) {
        part[i].folded = has_parts(f, s);
        vec_push(f->a, &f->pending, part[i]);
    }
    return n > 0;
}

/* Emits the statement `fold`: combines the threads' partial sums that are pending for its buffer.
 */
void cu_fold(CuFn *f, const LStmt *s) {
    int n = 0;
    for (int i = 0; i < f->pending.n; i++) {
        const CuPart *p = &f->pending.v[i];
        if (p->acc->buf != s->buf || p->by != s->sched.share)
            f->pending.v[n++] = *p;
        else if (p->by == LS_WAYS)
            end_part(f, p);
        else
            end_sum(f, p);
    }
    f->pending.n = n;
}

/* ---- rows in registers ------------------------------------------------------------- */
/* An element of a promoted buffer that a register holds during the region. */
typedef struct {
    Spot spot; /* the first access */
    const char *name;
} Cell;
typedef VEC(Cell) Cells;

/* Text of the element in memory that the site accesses, at this thread's column. */
static const char *cell_memory(CuFn *f, Spot spot) {
    const LStmt *at = spot.at, *loop = spot.loop;
    const char **keep = NEWN(f->a, const char *, at->buf->rank + 1);
    for (int i = 0; i < at->buf->rank; i++) {
        int id = at->idx[i]->id;
        keep[i] = f->reg[id];
        const LStmt *d = at->idx[i]->def;
        if (at->idx[i] == loop->var) f->reg[id] = f->column;
        if (d->kind != L_LET || !loop_has(loop->body, d)) continue;
        const char *column = f->reg[loop->var->id];
        f->reg[loop->var->id] = f->column;
        f->reg[id] = arena_printf(f->a, "(%s)", cu_let(f, d));
        f->reg[loop->var->id] = column;
    }
    const char *text = cu_element(f, at);
    for (int i = 0; i < at->buf->rank; i++) f->reg[at->idx[i]->id] = keep[i];
    return text;
}

/* Whether `at` is a store that stands directly in a column loop of the region's own list. */
static bool is_top_store(const LoopColumns *r, const LStmt *at) {
    if (at->kind != L_STORE) return false;
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        for (const LStmt *p = s->kind == L_FOR && s->sched.vector ? s->body : NULL; p; p = p->next)
            if (p == at) return true;
    }
    return false;
}

/* Declares a register for the thread's element of each promoted buffer, and loads it unless a store
 * comes first. */
static void begin_cells(CuFn *f, const LoopColumns *r, Cells *cells) {
    for (int i = 0; i < f->k->bufs.n; i++) {
        const LBuf *b = f->k->bufs.v[i];
        Spot spot = {NULL, NULL};
        if (loop_is_promoted(r->at, b)) spot = find_access(f, r->first, r->end, NULL, b, -1);
        if (!spot.at) continue;
        Cell c = {spot, fresh(f, "cell")};
        cu_line(f, "%s %s = 0;", cu_type(b->dt), c.name);
        if (!is_top_store(r, spot.at)) {
            const char *text = cell_memory(f, spot);
            bool half = b->dt == DT_F16 || b->dt == DT_BF16;
            cu_line(f, "%s%s = %s%s%s;", if_on(f), c.name, half ? "gn_load(" : "", text,
                    half             ? ")"
                    : b->dt == DT_I1 ? " != 0"
                                     : "");
        }
        vec_push(f->a, cells, c);
    }
    for (int i = 0; i < cells->n; i++)
        stand_for(f, cells->v[i].spot.at->buf, NULL, cells->v[i].name, -1);
}

/* Stores the registers of promoted buffers, and removes the aliases of the region. */
static void end_cells(CuFn *f, const Cells *cells, int outer) {
    f->alias.n = outer;
    if (cells->n == 0) return;
    if (f->on) cu_open(f, "if (%s) {", f->on);
    for (int i = 0; i < cells->n; i++)
        cu_put(f, cells->v[i].spot.at->buf, cell_memory(f, cells->v[i].spot), cells->v[i].name);
    if (f->on) cu_close(f);
}

/* ---- the statement ----------------------------------------------------------------------- */
/* Declares a local array of the region: each thread keeps the elements of its own columns, so the
 * dimension of the column is dropped. */
static void column_array(CuFn *f, const LoopColumns *r, const LBuf *b) {
    const char *name = f->local[b->id];
    Spot spot = find_access(f, r->first, r->end, NULL, b, -1);
    int place = place_of(spot);
    if (!f->local_used[b->id]) return;
    if (b->rank == 1)
        cu_line(f, "%s %s = %s;", cu_type(b->dt), cu_registers(f, name), f->first ? "{0}" : "0");
    else
        cu_line(f, "%s %s[%lld] = {0};", cu_type(b->dt), name,
                (long long)cu_count_without(b, place));
    stand_for(f, b, NULL, b->rank == 1 ? cu_of_each(f, name) : name, b->rank == 1 ? -1 : place);
}

/* Emits the statements of the region between the loads and the stores of promoted buffers. */
static void statements(CuFn *f, const LoopColumns *r) {
    Cells cells = {0};
    int outer = f->alias.n;
    begin_cells(f, r, &cells);
    for (const LStmt *s = r->first; s != r->end; s = s->next) {
        if (s->kind == L_LOCAL && s->buf->rank)
            column_array(f, r, s->buf);
        else if (!split_loop(f, s))
            cu_statement(f, s);
    }
    end_cells(f, &cells, outer);
}

/* Whether a statement needs the number of the column itself. It does not where there is one column,
 * nor for the thread's own registers. */
static bool asks(const CuFn *f, const LoopColumns *r, const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next) {
        bool columns = loop_is_columns(s);
        if (columns && f->used[s->var->id] && !loop_takes_turns(r, s)) return true;
        if (!columns && loop_has_body(s) && asks(f, r, s->body, NULL)) return true;
    }
    return false;
}

/* Emits the statement `columns`: a loop in which each lane has one column (or `pack` neighbouring
 * ones), and the next where there are more columns than lanes. */
void cu_columns(CuFn *f, const LoopColumns *r) {
    int outer = f->alias.n, before = f->pending.n;
    const char *lo, *hi, *c = f->reg[r->range->var->id];
    cu_bounds(f, r->range, &lo, &hi);
    begin_sums(f, r, r->first, r->end, NULL, false, r->flat ? LS_TEAM : LS_LANES);
    declare_sums(f, before);
    const bool masked = r->at->sched.masked;
    const int pack = cu_pack_of(f, r);
    const char *times = pack > 1 ? arena_printf(f->a, " * %d", pack) : "";
    const char *at = pack > 1 ? fresh(f, "first") : c;
    f->on = masked ? "gn_on" : NULL;
    if (r->together) {
        if (masked || pack > 1 || asks(f, r, r->first, r->end))
            cu_line(f, "const int64_t %s = gn.lane%s;", at, times);
        if (masked) f->on = fresh(f, "on");
        if (masked) cu_line(f, "const bool %s = %s < %s;", f->on, at, hi);
    } else if (masked) {
        const char *base = fresh(f, "from");
        cu_open(f, "for (int64_t %s = %s; %s < %s; %s += gn.lanes%s) {", base, lo, base, hi, base,
                times);
        cu_line(f, "const int64_t %s = %s + gn.lane%s;", at, base, times);
        cu_line(f, "const bool gn_on = %s < %s;", at, hi);
    } else {
        bool zero = strcmp(lo, "0") == 0;
        const char *first = r->flat ? "gn.thread" : "gn.lane";
        cu_open(f, "for (int64_t %s = %s%s%s%s; %s < %s; %s += %s%s) {", at, zero ? "" : lo,
                zero ? "" : " + ", first, times, at, hi, at,
                r->flat ? "gn.lanes * gn.ways" : "gn.lanes", times);
    }
    f->among = r;
    f->column = c;
    f->first = pack > 1 ? at : NULL;
    statements(f, r);
    f->on = NULL;
    f->first = NULL;
    f->among = NULL;
    if (!r->together) cu_close(f);
    if (f->many && loop_columns_with(&f->team, f->sched.split) == r && r->at->next)
        cu_line(f, "if (gn_is_part(gn)) return;");
    f->alias.n = outer;
}
