/* One kernel: a comment, its signature, its statements. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* ---- what is needed ---------------------------------------------------------------- */
/* Records that the text needs the value of register r (NULL: nothing). */
static void mark_register(CuFn *f, const LReg *r) {
    if (r) f->used[r->id] = true;
}

/* The statement inside `loop` that computes index r; NULL = r is computed outside of the loop. */
static const LStmt *index_let_in(const LStmt *loop, const LReg *r) {
    return r->def->kind == L_LET && loop_has(loop->body, r->def) ? r->def : NULL;
}

/* Records the registers that the access needs for its address. Elements that are held in registers
 * have no address; a promoted row needs its address only where columns.c loads and stores it.
 * column_loop: the loop over feature columns around s, or NULL. */
static void mark_indices(CuFn *f, const LStmt *s, const LStmt *column_loop) {
    const LBuf *b = s->buf;
    bool is_team = f->sched.kind != CU_THREAD;
    bool is_local_of_team = is_team && b->kind == LB_LOCAL;
    bool is_promoted = cu_promoting_region(f, s);
    for (int i = 0; i < b->rank; i++) {
        bool at_column = is_local_of_team && column_loop &&
                         (s->idx[i] == column_loop->var || index_let_in(column_loop, s->idx[i]));
        if (loop_is_unit_extent(b->dim[i]) || at_column) continue;
        const LStmt *index_let =
            is_promoted && column_loop ? index_let_in(column_loop, s->idx[i]) : NULL;
        for (int k = 0; index_let && k < index_let->n_arg; k++) mark_register(f, index_let->arg[k]);
        if (!index_let) mark_register(f, s->idx[i]);
    }
}

static void mark_stmt(CuFn *f, const LStmt *s, const LStmt *column_loop);

/* Records the registers that s and the statements after it need. It goes from the last statement to
 * the first: a register is defined before it is used, so its readers have been seen when its
 * definition is reached. */
static void mark_block(CuFn *f, const LStmt *s, const LStmt *column_loop) {
    if (!s) return;
    mark_block(f, s->next, column_loop);
    mark_stmt(f, s, column_loop);
}

/* Records the registers that one statement needs. A statement that only defines a register which
 * nobody needs is not emitted, so it needs none. */
static void mark_stmt(CuFn *f, const LStmt *s, const LStmt *column_loop) {
    bool is_value = loop_is_value(s);
    if (is_value && !f->used[s->dst->id]) return;
    for (int i = 0; s->kind == L_LET && i < s->n_arg; i++) mark_register(f, s->arg[i]);
    bool is_access = loop_is_access(s);
    if (is_access) mark_indices(f, s, column_loop);
    if (is_access && s->buf->kind == LB_LOCAL) f->local_used[s->buf->id] = true;
    if (loop_is_write(s)) mark_register(f, s->src);
    if (s->kind == L_IF) mark_register(f, s->cond);
    if (s->kind == L_FOR && s->range != LR_EXTENT) mark_register(f, s->at);
    if (f->sched.kind != CU_THREAD && loop_is_columns(s)) column_loop = s;
    if (loop_has_body(s)) mark_block(f, s->body, column_loop);
}

/* Sets f->used for the registers that the statements of the list, and what they contain, need. */
void cu_mark_used(CuFn *f, const LStmt *list) {
    mark_block(f, list, NULL);
}

/* ---- the function -------- */
/* Emits the variables of the parallel loop and of the loops collapsed with it, computed from the
 * one index gn_i by division and remainder: the innermost varies fastest. */
static void emit_loop_variables(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *index = "gn_i";
    for (int i = c->n_collapsed; i >= 0; i--) {
        const LStmt *l = i ? c->collapsed[i - 1] : c->parallel_loop;
        const char *v = f->reg[l->var->id], *n = cu_size_text(f, l->extent);
        bool outermost = i == 0;
        if (f->used[l->var->id] && outermost) cu_line(f, "const int64_t %s = %s;", v, index);
        if (f->used[l->var->id] && !outermost)
            cu_line(f, "const int64_t %s = %s %% (%s);", v, index, n);
        if (!outermost && !loop_is_unit_extent(l->extent))
            index = arena_printf(f->a, "%s / (%s)", index, n);
    }
}

void cu_emit_statements_until(CuFn *f, const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next) cu_emit_statement(f, s);
}

/* Text of the number of lanes of a team: a constant, or the kernel's parameter gn_lanes. */
const char *cu_lanes_text(CuFn *f) {
    return f->sched.lanes ? arena_printf(f->a, "%d", f->sched.lanes) : "gn_lanes";
}

/* Emits the declaration of `gn`: the team of threads (part of a warp, or a block) that this thread
 * belongs to. */
static void emit_declare_team(CuFn *f) {
    const CuSched *c = &f->sched;
    if (c->kind == CU_BLOCK)
        cu_line(f, "const GnBlockTeam gn = gn_block_team(%s);", cu_lanes_text(f));
    if (c->kind == CU_TEAM)
        cu_line(f, "const GnTeam gn = gn_warp_team(%s, %s);", cu_lanes_text(f),
                c->shared_loop ? "gn_ways" : "1");
}

/* Emits the body of one iteration of the parallel loop. The loop variables are defined already;
 * bodies of collapsed loops stand in it without their loops. */
static void emit_iteration(CuFn *f) {
    const CuSched *c = &f->sched;
    const LStmt *s = c->parallel_loop->body;
    for (int i = 0; i < c->n_collapsed; i++) {
        cu_emit_statements_until(f, s, c->collapsed[i]);
        s = c->collapsed[i]->body;
    }
    cu_emit_statements(f, s);
}

/* ---- hubs: rows with so many entries that a block takes them --------------------------- */
/* Whether rows with very many entries (hubs) go to a whole block instead of a team of a warp. */
static bool has_hubs(const CuFn *f) {
    return f->sched.parallel_loop && f->sched.parallel_loop->sched.hub_entries;
}

/* Text of the test whether the row is a hub: whether its entries in all relations, divided by the
 * ways, exceed the schedule's limit. */
static const char *is_hub_text(CuFn *f) {
    const LStmt *loop[LOOP_TARGETS_MAX];
    const int n = loop_shared_entry_loops(&f->team, loop);
    const char *row = f->reg[f->sched.parallel_loop->var->id], *all = NULL;
    for (int i = 0; i < n; i++) {
        const char *ptr = f->buf[loop[i]->ptr->id];
        const char *entries = arena_printf(f->a, "%s[%s + 1] - %s[%s]", ptr, row, ptr, row);
        all = all ? arena_printf(f->a, "%s + %s", all, entries) : entries;
    }
    return arena_printf(f->a, "gn_is_hub(%s, gn.ways, %d)", all,
                        f->sched.parallel_loop->sched.hub_entries);
}

/* Text of the parallel loop's own index, found from gn_i by dividing by the extents of the
 * collapsed loops. */
static const char *row_index_text(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *row = "gn_i";
    for (int i = 0; i < c->n_collapsed; i++) {
        const Expr *n = c->collapsed[i]->extent;
        if (!loop_is_unit_extent(n)) row = arena_printf(f->a, "%s / (%s)", row, cu_size_text(f, n));
    }
    return row;
}

/* Predicate for loop_find(): does the statement access the buffer, or read the bounds of a row's
 * entries from it? */
static bool uses_buffer(const LStmt *s, const void *buf) {
    return s->ptr == buf || (loop_is_access(s) && s->buf == buf);
}

/* What is done for a row stands once, in a function for a team of either kind.  What it needs of
 * the kernel: arguments, sizes, and what is computed before the parallel loop. */
typedef struct {
    const char *type, *name;
    bool is_room; /* the memory for partial sums of long rows, which NAME_parts writes */
    bool is_loop; /* the loop whose parts are taken: of all kernels of a group */
} Parameter;
typedef VEC(Parameter) Parameters;

static void add_parameter(CuFn *f, Parameters *to, const char *type, const char *name) {
    vec_push(f->a, to, ((Parameter){.type = type, .name = name}));
}

static const char *pointer_type(CuFn *f, const char *type, bool written) {
    return arena_printf(f->a, "%s%s *__restrict__ ", written ? "" : "const ", type);
}

static void add_room(CuFn *f, Parameters *to, bool written) {
    const char *type = pointer_type(f, "float", written);
    vec_push(f->a, to, ((Parameter){.type = type, .name = "gn_room", .is_room = true}));
}

/* Parameters of the device function NAME_row, which does one row: buffers, all sizes of the kernel,
 * the memory for partial sums of long rows (gn_room) and the entries of a part (gn_part), and
 * values computed before the parallel loop. Buffers and values are those that the row needs. */
static Parameters row_parameters(CuFn *f) {
    const LKernel *k = f->k;
    const LStmt *parallel_loop = f->sched.parallel_loop;
    Parameters list = {0};
    bool *saved_used = f->used, *used_in_row = f->used = NEWN(f->a, bool, k->n_regs + 1);
    cu_mark_used(f, parallel_loop->body);
    f->used = saved_used;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!loop_find(parallel_loop->body, uses_buffer, b)) continue;
        add_parameter(f, &list, pointer_type(f, cu_mem_type(b->dt), b->written), f->buf[i]);
    }
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) add_parameter(f, &list, "int64_t ", f->sym[i]);
    if (cu_splits_rows(f)) add_room(f, &list, false);
    if (cu_splits_rows(f)) add_parameter(f, &list, "int64_t ", "gn_part");
    for (const LStmt *s = k->body; s != parallel_loop; s = s->next)
        if (used_in_row[s->dst->id])
            add_parameter(f, &list, arena_printf(f->a, "%s ", cu_type(s->dst->dt)),
                          f->reg[s->dst->id]);
    return list;
}

/* Writes a list between the texts `head` and `tail`, broken into lines of at most 100 columns. */
static void put_list(CuFn *f, const char *head, const char *const *item, int n, const char *tail) {
    enum { WIDTH = 100 };
    StrBuf *out = &f->cu->b;
    size_t line_start = out->n;
    sb_puts(out, head);
    for (int i = 0; i < n; i++) {
        bool fits = out->n - line_start + strlen(item[i]) + 4 <= WIDTH;
        if (out->s[out->n - 1] != '(') sb_puts(out, fits ? ", " : ",");
        if (!fits) sb_puts(out, "\n");
        if (!fits) line_start = out->n;
        for (int k = 0; k < f->depth + 1 && !fits; k++) sb_puts(out, "    ");
        sb_puts(out, item[i]);
    }
    sb_puts(out, tail);
}

/* Writes the parameters of a declaration. */
static void put_parameters(CuFn *f, const char *head, const Parameters *list, const char *tail) {
    const char **item = NEWN(f->a, const char *, (size_t)list->n + 1);
    for (int i = 0; i < list->n; i++)
        item[i] = arena_printf(f->a, "%s%s", list->v[i].type, list->v[i].name);
    put_list(f, head, item, list->n, tail);
}

/* Writes the arguments of a call: the parameters by their names. */
static void put_arguments(CuFn *f, const char *head, const Parameters *list, const char *tail) {
    const char **item = NEWN(f->a, const char *, (size_t)list->n + 1);
    for (int i = 0; i < list->n; i++) item[i] = list->v[i].name;
    put_list(f, head, item, list->n, tail);
}

/* Emits the device function NAME_row, which does one row. It is a template over the team, so that
 * teams of a warp and blocks (for hubs) share one source text. */
static void emit_row_function(CuFn *f) {
    const Parameters parameters = row_parameters(f);
    f->depth = 0;
    cu_line(f, "template <class Team>");
    put_parameters(
        f, arena_printf(f->a, "GN_ROW void %s_row(const Team &gn, const int64_t gn_i", f->k->name),
        &parameters, ") {\n");
    f->depth = 1;
    emit_loop_variables(f);
    cu_declare_head(f);
    emit_iteration(f);
    cu_close(f);
}

/* Emits the call of NAME_row for row gn_i by the threads of `team` (an expression). */
void cu_emit_row_call(CuFn *f, const char *team) {
    const Parameters parameters = row_parameters(f);
    const char *indent = arena_printf(f->a, "%*s", 4 * f->depth, "");
    put_arguments(f, arena_printf(f->a, "%s%s_row(%s, gn_i", indent, f->k->name, team), &parameters,
                  ");\n");
}

/* Emits the loop over hubs. Each thread tests one row of a tile of rows; then the whole block does
 * the hubs found, one after the other. Hubs come before other rows since what takes longest should
 * begin first. */
static void emit_hub_rows(CuFn *f) {
    CuSched *c = &f->sched;
    cu_open(f, "GN_SPREAD_ROWS(gn_round, gn_step, gn_extent%s) {",
            f->has_own_rows ? " - gn_own.first" : "");
    cu_line(f, "const int64_t gn_i = %sgn_spread_row(gn_round, gn_step, (int)threadIdx.x);",
            f->has_own_rows ? "gn_own.first + " : "");
    cu_line(f, "bool gn_hub = false;");
    cu_open(f, "if (gn_i < gn_extent%s) {", f->has_passes ? " && !gn_is_other(gn_own, gn_i)" : "");
    cu_line(f, "const int64_t %s = %s;", f->reg[c->parallel_loop->var->id], row_index_text(f));
    cu_line(f, "gn_hub = %s;", is_hub_text(f));
    cu_close(f);
    cu_open(f, "GN_HUBS(gn_i, gn_hubs(gn_hub, gn_i)) {");
    cu_emit_row_call(f, arena_printf(f->a, "gn_block_team(%s)", cu_lanes_text(f)));
    cu_close(f);
    cu_close(f);
}

/* Opens the loop over the parallel iterations of a thread, or of its team. Of rows that processes
 * share it goes over the own ones; where some of them wait for rows of others, over those that are
 * of this launch. */
static void open_grid_loop(CuFn *f) {
    const bool is_thread = f->sched.kind == CU_THREAD;
    if (f->has_own_rows)
        cu_open(f, is_thread ? "GN_OWN_ROWS(gn_i, gn_own, gn_extent) {"
                             : "GN_OWN_TEAM_ROWS(gn_i, gn_own, gn_extent, gn) {");
    else
        cu_open(f,
                is_thread ? "GN_ROWS(gn_i, gn_extent) {" : "GN_TEAM_ROWS(gn_i, gn_extent, gn) {");
    if (f->has_passes) cu_line(f, "if (gn_is_other(gn_own, gn_i)) continue;");
}

/* Emits the loop in which blocks do the hubs, then the loop in which teams of a warp do the other
 * rows. */
static void emit_rows_and_hubs(CuFn *f) {
    emit_hub_rows(f);
    open_grid_loop(f);
    cu_line(f, "const int64_t %s = %s;", f->reg[f->sched.parallel_loop->var->id],
            row_index_text(f));
    cu_line(f, "if (%s) continue;", is_hub_text(f));
    cu_emit_row_call(f, "gn");
    cu_close(f);
}

/* Emits one element of a pack: its index gn_i = gn_from + gn_k if needed, the loop variables and
 * the body. (For cu_emit_packed_elements().) */
static void emit_element_of_pack(CuFn *f, const LoopNest *nest) {
    bool used = false;
    for (int i = 0; i < nest->n; i++) used = used || f->used[nest->loop[i]->var->id];
    if (used) cu_line(f, "const int64_t gn_i = gn_from + gn_k;");
    emit_loop_variables(f);
    emit_iteration(f);
}

/* Opens the grid loop over packs of own rows' elements. Packs lie at multiples of their size, so
 * the first and the last may be of fewer elements. */
static void open_own_packs(CuFn *f, int pack) {
    cu_open(f, "GN_ROWS(gn_p, gn_ceildiv(gn_extent, %d) - gn_own.first / %d) {", pack, pack);
    cu_line(f, "const int64_t gn_to = (gn_own.first / %d + gn_p + 1) * %d;", pack, pack);
    cu_line(f, "const int64_t gn_from = gn_max64(gn_own.first, gn_to - %d);", pack);
    cu_line(f, "const int gn_on = (int)(gn_min64(gn_extent, gn_to) - gn_from);");
}

/* Emits the grid loop of a kernel whose threads have `pack` neighbouring elements each. False, and
 * nothing is emitted, where each thread has one element. */
static bool emit_packed_body(CuFn *f) {
    const LoopNest nest = loop_collapsed_nest(f->k);
    const int pack = f->sched.kind == CU_THREAD ? f->sched.pack : 1;
    if (pack == 1) return false;
    if (f->has_own_rows) {
        open_own_packs(f, pack);
    } else {
        cu_open(f, "GN_ROWS(gn_p, gn_ceildiv(gn_extent, %d)) {", pack);
        cu_line(f, "const int64_t gn_from = gn_p * %d;", pack);
        cu_line(f, "const int gn_on = (int)gn_min64(gn_extent - gn_from, %d);", pack);
    }
    cu_emit_packed_elements(f, &nest, emit_element_of_pack);
    cu_close(f);
    return true;
}

/* Emits the grid loop over the parallel iterations: packs of elements per thread, or one thread per
 * iteration, or one team per row, with blocks for hubs where the schedule says so. */
static void emit_parallel_body(CuFn *f) {
    if (emit_packed_body(f)) return;
    if (has_hubs(f)) {
        emit_rows_and_hubs(f);
        return;
    }
    open_grid_loop(f);
    emit_loop_variables(f);
    emit_iteration(f);
    cu_close(f);
}

/* Text of the number of iterations of the loop. Of padding rows (LR_BEHIND: those that a launch for
 * rounded sizes has after the batch's own) it is the rounded size less the batch's, which the
 * device reads from gn_n. */
static const char *loop_count_text(CuFn *f, const LStmt *loop) {
    if (loop->range != LR_BEHIND) return cu_size_text(f, loop->extent);
    return arena_printf(f->a, "gn_max64(%s - %s, 0)", cu_size_text(f, loop->extent),
                        cu_batch_size_text(f, loop->own));
}

/* Emits a kernel that joins several independent parallel loops in one launch: index gn_i runs
 * through the loops' ranges one after the other, and each thread finds the loop that its index
 * falls in. */
static void emit_joined_body(CuFn *f) {
    const LStmt *loop = f->k->body;
    while (loop->kind != L_FOR) cu_emit_statement(f, loop), loop = loop->next;
    cu_open(f, "GN_ROWS(gn_i, gn_extent) {");
    cu_line(f, "int64_t gn_at = gn_i;");
    for (; loop; loop = loop->next) {
        const char *count = loop_count_text(f, loop);
        const char *first =
            loop->own ? arena_printf(f->a, "%s + ", cu_batch_size_text(f, loop->own)) : "";
        cu_open(f, "if (gn_at >= 0 && gn_at < %s) {", count);
        if (f->used[loop->var->id])
            cu_line(f, "const int64_t %s = %sgn_at;", f->reg[loop->var->id], first);
        cu_emit_statements(f, loop->body);
        cu_close(f);
        if (loop->next) cu_line(f, "gn_at -= %s;", count);
    }
    cu_close(f);
}

/* Emits the statements of the kernel: several joined loops, one parallel loop, or serial code that
 * one thread or one block runs. */
static void emit_body(CuFn *f) {
    const CuSched *c = &f->sched;
    if (loop_is_joined(f->k) || loop_is_behind(f->k)) {
        emit_joined_body(f);
        return;
    }
    emit_declare_team(f);
    if (c->parallel_loop) {
        cu_emit_statements_until(f, f->k->body, c->parallel_loop);
        emit_parallel_body(f);
        return;
    }
    cu_open(f, c->kind == CU_THREAD ? "GN_SERIAL(gn_extent) {" : "if (gn_extent) {");
    cu_emit_statements(f, f->k->body);
    cu_close(f);
}

/* Writes n bytes of s as a line of the comment above the kernel. */
static void put_comment_line(CuFn *f, const char *s, size_t n) {
    sb_puts(&f->cu->b, " * ");
    target_comment(&f->cu->b, arena_strndup(f->a, s, n));
    sb_puts(&f->cu->b, "\n");
}

/* Writes the line of the model's source at `at` into the comment, as "file:line: text". */
static void put_source_line(CuFn *f, Span at) {
    const Ctx *c = f->cu->c;
    if (!at.line || (int)at.file >= c->sources.n) return;
    const Source *src = &c->sources.v[at.file];
    const char *p = src->text;
    for (uint32_t line = 1; line < at.line && p; line++)
        if ((p = strchr(p, '\n'))) p++;
    size_t n = p ? strcspn(p, "\n") : 0;
    const char *text =
        arena_printf(f->a, "%s:%u: %.*s", ctx_source_name(c, at.file), at.line, (int)n, n ? p : "");
    put_comment_line(f, text, strlen(text));
}

/* Emits the comment above the kernel: the lines of the model that it computes, and its loop IR as
 * scheduled. with_source: false for all but the first of a kernel's stages, which would repeat the
 * same lines. */
static void emit_comment(CuFn *f, bool with_source) {
    const LKernel *k = f->k;
    StrBuf text = sb_new(f->a);
    sb_puts(&f->cu->b, "/*\n");
    for (int i = 0; with_source && i < k->computes.n; i++) {
        Span at = k->computes.v[i]->span;
        bool repeated = false;
        for (int j = 0; j < i; j++) {
            Span other = k->computes.v[j]->span;
            repeated |= other.file == at.file && other.line == at.line;
        }
        if (!repeated) put_source_line(f, at);
    }
    loop_print(&text, f->cu->plan->m, k);
    for (const char *s = text.s; *s; s += strcspn(s, "\n"), s += *s == '\n')
        put_comment_line(f, s, strcspn(s, "\n"));
    sb_puts(&f->cu->b, " */\n");
}

/* The parameters of a kernel, or of the one that takes parts of long rows: buffers, a condition,
 * sizes (or the address where the device has them), team widths and, where several
 * blocks share a long row (parts.c), the memory for their partial sums, which NAME_parts writes and
 * NAME reads, and the number of entries of a part; which rows are own, where processes share them.
 * The number of iterations is the last: of the own rows, where the last one ends. */
static Parameters kernel_parameters(CuFn *f) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    const char *size_type = f->reads_device_sizes ? "int64_t " : "const int64_t ";
    Parameters list = {0};
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (f->is_argument && !f->is_argument[i]) continue;
        add_parameter(f, &list, pointer_type(f, cu_mem_type(b->dt), b->written), f->buf[i]);
    }
    if (f->has_condition)
        add_parameter(f, &list, pointer_type(f, "unsigned char", false), "gn_when");
    if (f->reads_device_sizes) add_parameter(f, &list, pointer_type(f, "int64_t", false), "gn_n");
    for (int i = 0; i < m->syms.n; i++)
        if (f->sym[i]) add_parameter(f, &list, size_type, f->sym[i]);
    if (f->sched.kind != CU_THREAD && !f->sched.lanes)
        add_parameter(f, &list, "const int ", "gn_lanes");
    if (f->sched.kind == CU_TEAM && f->sched.shared_loop && !f->in_parts_kernel)
        add_parameter(f, &list, "const int ", "gn_ways");
    if (cu_splits_rows(f)) add_room(f, &list, f->in_parts_kernel);
    if (cu_splits_rows(f)) add_parameter(f, &list, "const int64_t ", "gn_part");
    if (f->in_parts_kernel && f->sched.n_split > 1)
        vec_push(f->a, &list, ((Parameter){"const int ", "gn_loop", .is_loop = true}));
    if (f->has_own_rows) add_parameter(f, &list, "const GnOwn ", "gn_own");
    add_parameter(f, &list, size_type, "gn_extent");
    return list;
}

#define A_KERNEL "static __global__ void __launch_bounds__(GN_THREADS) %s%s("

/* Emits "static __global__ void NAME_suffix(..) {". Of a group it is a function that blocks call
 * with the arguments of their kernel, NAME_suffix_of. */
void cu_emit_signature(CuFn *f, const char *suffix) {
    const Parameters list = kernel_parameters(f);
    f->depth = 0;
    put_parameters(
        f, arena_printf(f->a, f->group ? "GN_ROW void %s%s_of(" : A_KERNEL, f->k->name, suffix),
        &list, ") {\n");
}

/* Emits the kernel of a group: each row of the grid has the arguments of one of its kernels, but
 * for the loop whose parts are taken. */
void cu_emit_group_kernel(CuFn *f, const char *suffix) {
    const Parameters list = kernel_parameters(f);
    const char **item = NEWN(f->a, const char *, (size_t)list.n + 1), *name = f->k->name;
    const char *loop = "";
    if (!f->group) return;
    f->depth = 0;
    for (int i = 0; i < list.n; i++) {
        const Parameter *x = &list.v[i];
        item[i] = arena_printf(f->a, "%s%s", x->is_loop ? "" : "gn_its.", x->name);
        if (x->is_loop) loop = arena_printf(f->a, ", %s%s", x->type, x->name);
    }
    cu_open(f, A_KERNEL "const __grid_constant__ %s_all gn_all%s) {", name, suffix, name, loop);
    cu_line(f, "const %s_arguments &gn_its = gn_all.at[blockIdx.y];", name);
    if (f->in_parts_kernel) cu_line(f, "if (!gn_its.gn_part) return;");
    put_list(f, arena_printf(f->a, "    %s%s_of(", name, suffix), item, list.n, ");\n");
    cu_close(f);
}

/* Emits the types of the arguments of a group's kernels: NAME_arguments, of one, and NAME_all. */
static void emit_group_types(CuFn *f) {
    const Parameters list = kernel_parameters(f);
    f->depth = 0;
    cu_open(f, "struct %s_arguments {", f->k->name);
    for (int i = 0; i < list.n; i++) {
        const char *type = list.v[i].is_room ? "float *" : list.v[i].type,
                   *restricted = strstr(type, "__restrict__ ");
        int n = restricted ? (int)(restricted - type) : (int)strlen(type);
        if (!restricted && !strncmp(type, "const ", 6)) type += 6, n -= 6;
        cu_line(f, "%.*s%s;", n, type, list.v[i].name);
    }
    f->depth--;
    cu_line(f, "};");
    cu_open(f, "struct %s_all {", f->k->name);
    cu_line(f, "%s_arguments at[%d];", f->k->name, f->group->steps.n);
    f->depth--;
    cu_line(f, "};");
}

/* Emits the load of the batch's own sizes from device memory (gn_n). A CUDA graph recorded for
 * rounded sizes passes those as parameters, which this code replaces. */
static void emit_load_sizes(CuFn *f) {
    cu_open(f, "if (gn_n) {");
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) cu_line(f, "%s = gn_n[%d];", f->sym[i], i);
    if (!f->group) cu_line(f, "gn_extent = %s;", cu_extent_text(f)); /* of a group: no batch's */
    cu_close(f);
}

/* Emits the number of padding rows as the kernel's extent: rows after the batch's own, up to the
 * rounded sizes. Without rounding (gn_n is NULL) there are none. */
static void emit_count_padding_rows(CuFn *f) {
    cu_line(f, "gn_extent = 0;");
    cu_open(f, "if (gn_n) {");
    for (const LStmt *s = f->k->body; s; s = s->next)
        if (s->kind == L_FOR) cu_line(f, "gn_extent += %s;", loop_count_text(f, s));
    cu_close(f);
}

/* Whether the kernel needs any size. One that does not gets no code that loads them: a range that
 * is constant in one branch alone made nvcc unroll the updates of all parameters, with 128
 * registers instead of 80. */
static bool uses_sizes(const CuFn *f) {
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) return true;
    return false;
}

/* Emits what precedes the kernel's statements: loads of sizes from the device, and the test of the
 * kernel's run-time condition (gn_when). */
void cu_emit_prologue(CuFn *f) {
    if (loop_is_behind(f->k))
        emit_count_padding_rows(f);
    else if (f->reads_device_sizes)
        emit_load_sizes(f);
    if (f->has_condition) cu_line(f, "if (%s*gn_when) return;", f->condition_negated ? "" : "!");
}

/* Emits the __global__ function of a scheduled kernel, and before it the device functions and
 * kernels that it needs (NAME_row, NAME_parts). */
static void emit_function(CuFn *f) {
    f->used = NEWN(f->a, bool, f->k->n_regs + 1);
    f->local_used = NEWN(f->a, bool, f->k->locals.n + 1);
    mark_block(f, f->k->body, NULL);
    cu_assign_names(f);
    f->reads_device_sizes = f->reads_device_sizes && uses_sizes(f);
    if (has_hubs(f)) emit_row_function(f);
    if (f->group) emit_group_types(f);
    if (cu_splits_rows(f)) cu_emit_parts_kernel(f);
    cu_emit_signature(f, "");
    f->depth = 1;
    cu_emit_prologue(f);
    emit_body(f);
    cu_close(f);
    cu_emit_group_kernel(f, "");
}

/* The kernels of a group, stage by stage, as its first one is scheduled: the loops of the stage
 * over the arguments of each. */
static CuFn **group_members(CuFn *stage) {
    const PGroup *g = stage->group;
    CuFn **member = NEWN(stage->a, CuFn *, g->steps.n + 1);
    member[0] = stage;
    for (int i = 1; i < g->steps.n; i++) {
        CuFn *f = member[i] = NEW(stage->a, CuFn);
        *f = *stage;
        f->k = loop_copy_for(f->a, stage->k, g->steps.v[i]->kernel);
        if (!cu_schedule(f)) return NULL;
    }
    return member;
}

/* A new emission state for kernel k, with the settings of `base`. is_stage: k is one of several
 * kernels that a pass made of one; it takes only the arguments that it uses. */
static CuFn *context_for_kernel(const CuFn *base, const LKernel *k, bool is_stage) {
    CuFn *f = NEW(base->a, CuFn);
    *f = *base;
    f->k = k;
    if (!is_stage) return f;
    bool *is_argument = NEWN(f->a, bool, k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++)
        is_argument[i] = loop_find(k->body, uses_buffer, k->bufs.v[i]);
    f->is_argument = is_argument;
    return f;
}

/* Emits one kernel of the plan: runs the loop passes, which may split it into stages, then emits
 * each stage and the host function that launches all of them. False after diagnostics. */
bool cu_emit_kernel(Cu *cu, const LKernel *k) {
    const PPhase *ph = NULL;
    const PStep *s = plan_launching_step(cu->plan, k, &ph);
    const TargetMachine no_machine = {0};
    Loops l;
    if (s && s->group && s->kernel == k && !plan_leads_group(s)) return true; /* in its launch */
    if (!loop_pass_all(cu->c, cu->plan, &target_cuda, &no_machine, k, &l)) return false;
    CuFn base = {.cu = cu,
                 .a = cu->a,
                 .group = s && s->kernel == k ? s->group : NULL,
                 .has_condition = s && s->pred >= 0 && s->kernel == k,
                 .condition_negated = s && s->pred_not,
                 .reads_device_sizes = s && (s->clear || plan_has_buckets(cu->a, cu->plan, ph)),
                 .has_own_rows = s && s->partition && s->kernel == k,
                 .has_passes = l.rows_come},
         **f = NEWN(cu->a, CuFn *, l.k.n + 1);
    for (int i = 0; i < l.k.n; i++) {
        f[i] = context_for_kernel(&base, l.k.v[i], l.k.n > 1);
        if (!cu_schedule(f[i])) return false;
    }
    for (int i = 0; i < l.k.n; i++) {
        emit_comment(f[i], i == 0);
        emit_function(f[i]);
    }
    CuFn ***member = NEWN(cu->a, CuFn **, l.k.n + 1);
    for (int i = 0; i < l.k.n && base.group; i++)
        if (!(member[i] = group_members(f[i]))) return false;
    if (base.group)
        cu_emit_group_launch(member, l.k.n, k->name);
    else
        cu_emit_launch(f, l.k.n, k->name);
    return true;
}
