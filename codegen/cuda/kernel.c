/* One kernel: a comment, its signature, its statements. */
#include "codegen/cuda/cuda.h"

#include <string.h>

/* ---- what is needed ---------------------------------------------------------------- */
/* Records that the value of r is needed. */
static void mark_register(CuFn *f, const LReg *r) {
    if (r) f->used[r->id] = true;
}

/* The statement in the loop that computes index r; NULL = it is computed outside. */
static const LStmt *index_definition_in(const LStmt *loop, const LReg *r) {
    return r->def->kind == L_LET && loop_has(loop->body, r->def) ? r->def : NULL;
}

/* Records the registers that the address of the access needs. Elements that are held in registers
 * have no address; a promoted row's is needed only at the end of its columns (columns.c). */
static void mark_indices(CuFn *f, const LStmt *s, const LStmt *loop) {
    const LBuf *b = s->buf;
    bool team = f->sched.kind != CU_THREAD;
    bool column = team && b->kind == LB_LOCAL;
    bool cell = cu_promoted(f, s);
    for (int i = 0; i < b->rank; i++) {
        bool at_column =
            column && loop && (s->idx[i] == loop->var || index_definition_in(loop, s->idx[i]));
        if (loop_is_unit_extent(b->dim[i]) || at_column) continue;
        const LStmt *d = cell && loop ? index_definition_in(loop, s->idx[i]) : NULL;
        for (int k = 0; d && k < d->n_arg; k++) mark_register(f, d->arg[k]);
        if (!d) mark_register(f, s->idx[i]);
    }
}

static void mark_stmt(CuFn *f, const LStmt *s, const LStmt *loop);

/* Records what s and the statements behind it need, last statement first: registers are defined
 * before they are used, so all users have been seen. */
static void mark_block(CuFn *f, const LStmt *s, const LStmt *loop) {
    if (!s) return;
    mark_block(f, s->next, loop);
    mark_stmt(f, s, loop);
}

/* Records what one statement needs; a value that nobody needs makes none. */
static void mark_stmt(CuFn *f, const LStmt *s, const LStmt *loop) {
    bool value = loop_is_value(s);
    if (value && !f->used[s->dst->id]) return;
    for (int i = 0; s->kind == L_LET && i < s->n_arg; i++) mark_register(f, s->arg[i]);
    bool access = s->kind == L_LOAD || s->kind == L_STORE || s->kind == L_ACC;
    if (access) mark_indices(f, s, loop);
    if (access && s->buf->kind == LB_LOCAL) f->local_used[s->buf->id] = true;
    if (s->kind == L_STORE || s->kind == L_ACC) mark_register(f, s->src);
    if (s->kind == L_IF) mark_register(f, s->cond);
    if (s->kind == L_FOR && s->range != LR_EXTENT) mark_register(f, s->at);
    if (f->sched.kind != CU_THREAD && loop_is_columns(s)) loop = s;
    if (loop_has_body(s)) mark_block(f, s->body, loop);
}

void cu_mark_used(CuFn *f, const LStmt *list) {
    mark_block(f, list, NULL);
}

/* ---- the function -------- */
/* Emits the loop variables of the parallel loop and of the loops collapsed with it, from the one
 * index gn_i: the innermost varies fastest. */
static void emit_index_split(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *index = "gn_i";
    for (int i = c->n_collapsed; i >= 0; i--) {
        const LStmt *l = i ? c->collapsed[i - 1] : c->parallel_loop;
        const char *v = f->reg[l->var->id], *n = cu_expr(f, l->extent);
        bool outermost = i == 0;
        if (f->used[l->var->id] && outermost) cu_line(f, "const int64_t %s = %s;", v, index);
        if (f->used[l->var->id] && !outermost)
            cu_line(f, "const int64_t %s = %s %% (%s);", v, index, n);
        if (!outermost && !loop_is_unit_extent(l->extent))
            index = arena_printf(f->a, "%s / (%s)", index, n);
    }
}

/* Emits the statements from s on, up to `end`. */
void cu_statements_until(CuFn *f, const LStmt *s, const LStmt *end) {
    for (; s != end; s = s->next) cu_statement(f, s);
}

/* The number of lanes as text: a constant, or the kernel's parameter. */
const char *cu_lanes_text(CuFn *f) {
    return f->sched.lanes ? arena_printf(f->a, "%d", f->sched.lanes) : "gn_lanes";
}

/* Declares `gn`, the team of threads that this thread belongs to. */
static void emit_team(CuFn *f) {
    const CuSched *c = &f->sched;
    if (c->kind == CU_BLOCK)
        cu_line(f, "const GnBlockTeam gn = gn_block_team(%s);", cu_lanes_text(f));
    if (c->kind == CU_TEAM)
        cu_line(f, "const GnTeam gn = gn_warp_team(%s, %s);", cu_lanes_text(f),
                c->shared_loop ? "gn_ways" : "1");
}

/* Emits the body of one iteration, whose loop variables are defined. */
static void emit_iteration(CuFn *f) {
    const CuSched *c = &f->sched;
    const LStmt *s = c->parallel_loop->body;
    for (int i = 0; i < c->n_collapsed; i++) {
        cu_statements_until(f, s, c->collapsed[i]);
        s = c->collapsed[i]->body;
    }
    cu_block(f, s);
}

/* ---- hubs: rows with so many entries that a block takes them --------------------------- */
/* Whether rows with many entries (hubs) are done by a block instead of a team. */
static bool has_hubs(const CuFn *f) {
    return f->sched.parallel_loop && f->sched.parallel_loop->sched.hub_entries;
}

/* Text of the test for a hub, by the number of entries of the row in all relations. */
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

/* Text of the parallel loop's own index, from gn_i, which includes the collapsed loops. */
static const char *row_index_text(CuFn *f) {
    const CuSched *c = &f->sched;
    const char *row = "gn_i";
    for (int i = 0; i < c->n_collapsed; i++) {
        const Expr *n = c->collapsed[i]->extent;
        if (!loop_is_unit_extent(n)) row = arena_printf(f->a, "%s / (%s)", row, cu_expr(f, n));
    }
    return row;
}

/* For loop_find: does the statement access the buffer, or read segment bounds from it? */
static bool touches_buffer(const LStmt *s, const void *buf) {
    return s->ptr == buf || (loop_is_access(s) && s->buf == buf);
}

/* What is done for a row stands once, in a function for a team of either kind.  What it needs of
 * the kernel: arguments, sizes, and what is computed before the parallel loop. */
typedef VEC(const char *) Parameters;

static void add_parameter(CuFn *f, Parameters *to, const char *type, const char *name) {
    vec_push(f->a, to, arena_printf(f->a, "%s%s", type, name));
}

static const char *pointer_type(CuFn *f, const char *type, bool written) {
    return arena_printf(f->a, "%s%s *__restrict__ ", written ? "" : "const ", type);
}

/* Parameters of the function that does one row for a team of either kind: the arguments, sizes and
 * values computed before the parallel loop that the row needs. types: as declared, else as passed.
 */
static Parameters row_parameters(CuFn *f, bool types) {
    const LKernel *k = f->k;
    const LStmt *loop = f->sched.parallel_loop;
    Parameters to = {0};
    bool *all = f->used, *used = f->used = NEWN(f->a, bool, k->n_regs + 1);
    cu_mark_used(f, loop->body);
    f->used = all;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (!loop_find(loop->body, touches_buffer, b)) continue;
        add_parameter(f, &to, types ? pointer_type(f, cu_mem_type(b->dt), b->written) : "",
                      f->buf[i]);
    }
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) add_parameter(f, &to, types ? "int64_t " : "", f->sym[i]);
    if (f->splits_rows)
        add_parameter(f, &to, types ? pointer_type(f, "float", false) : "", "gn_room");
    if (f->splits_rows) add_parameter(f, &to, types ? "int64_t " : "", "gn_part");
    for (const LStmt *s = k->body; s != loop; s = s->next)
        if (used[s->dst->id])
            add_parameter(f, &to, types ? arena_printf(f->a, "%s ", cu_type(s->dst->dt)) : "",
                          f->reg[s->dst->id]);
    return to;
}

/* Writes a parameter list between `first` and `last`, on as many lines as it fills. */
static void put_parameters(CuFn *f, const char *head, const Parameters *w, const char *tail) {
    enum { WIDTH = 100 };
    StrBuf *b = &f->cu->b;
    size_t line_start = b->n;
    sb_puts(b, head);
    for (int i = 0; i < w->n; i++) {
        bool fits = b->n - line_start + strlen(w->v[i]) + 4 <= WIDTH;
        if (b->s[b->n - 1] != '(') sb_puts(b, fits ? ", " : ",");
        if (!fits) sb_puts(b, "\n");
        if (!fits) line_start = b->n;
        for (int k = 0; k < f->depth + 1 && !fits; k++) sb_puts(b, "    ");
        sb_puts(b, w->v[i]);
    }
    sb_puts(b, tail);
}

/* Emits the function that does one row. Teams and blocks both call it, so its code stands once. */
static void emit_row_function(CuFn *f) {
    const Parameters w = row_parameters(f, true);
    f->depth = 0;
    cu_line(f, "template <class Team>");
    put_parameters(
        f, arena_printf(f->a, "GN_ROW void %s_row(const Team &gn, const int64_t gn_i", f->k->name),
        &w, ") {\n");
    f->depth = 1;
    emit_index_split(f);
    emit_iteration(f);
    cu_close(f);
}

/* Emits the call of that function for row gn_i. */
void cu_call_row(CuFn *f, const char *team) {
    const Parameters w = row_parameters(f, false);
    const char *indent = arena_printf(f->a, "%*s", 4 * f->depth, "");
    put_parameters(f, arena_printf(f->a, "%s%s_row(%s, gn_i", indent, f->k->name, team), &w,
                   ");\n");
}

/* Emits the loop over hubs: each thread tests a row of a tile, then the block does the hubs among
 * them. They come before other rows, since what takes longest should begin first. */
static void emit_hub_rows(CuFn *f) {
    CuSched *c = &f->sched;
    cu_open(f, "GN_SPREAD_ROWS(gn_round, gn_step, gn_extent) {");
    cu_line(f, "const int64_t gn_i = gn_spread_row(gn_round, gn_step, (int)threadIdx.x);");
    cu_line(f, "bool gn_hub = false;");
    cu_open(f, "if (gn_i < gn_extent) {");
    cu_line(f, "const int64_t %s = %s;", f->reg[c->parallel_loop->var->id], row_index_text(f));
    cu_line(f, "gn_hub = %s;", is_hub_text(f));
    cu_close(f);
    cu_open(f, "GN_HUBS(gn_i, gn_hubs(gn_hub, gn_i)) {");
    cu_call_row(f, arena_printf(f->a, "gn_block_team(%s)", cu_lanes_text(f)));
    cu_close(f);
    cu_close(f);
}

/* Emits the loop over hubs, then the loop in which teams do the other rows. */
static void emit_rows_and_hubs(CuFn *f) {
    emit_hub_rows(f);
    cu_open(f, "GN_TEAM_ROWS(gn_i, gn_extent, gn) {");
    cu_line(f, "const int64_t %s = %s;", f->reg[f->sched.parallel_loop->var->id],
            row_index_text(f));
    cu_line(f, "if (%s) continue;", is_hub_text(f));
    cu_call_row(f, "gn");
    cu_close(f);
}

/* Emits one element of a pack: its index, loop variables and body. */
static void emit_nest_element(CuFn *f, const LoopNest *nest) {
    bool used = false;
    for (int i = 0; i < nest->n; i++) used = used || f->used[nest->loop[i]->var->id];
    if (used) cu_line(f, "const int64_t gn_i = gn_from + gn_k;");
    emit_index_split(f);
    emit_iteration(f);
}

/* Emits the grid loop of a kernel whose threads have several neighbouring elements each; false:
 * they have one. */
static bool emit_packed_body(CuFn *f) {
    const LoopNest nest = loop_collapsed_nest(f->k);
    const int pack = f->sched.kind == CU_THREAD ? f->sched.pack : 1;
    if (pack == 1) return false;
    cu_open(f, "GN_ROWS(gn_p, gn_ceildiv(gn_extent, %d)) {", pack);
    cu_line(f, "const int64_t gn_from = gn_p * %d;", pack);
    cu_line(f, "const int gn_on = (int)gn_min64(gn_extent - gn_from, %d);", pack);
    cu_packed_elements(f, &nest, emit_nest_element);
    cu_close(f);
    return true;
}

/* Emits the grid loop: packs of elements per thread; or a thread per iteration; or a team per row,
 * with blocks for hubs where the schedule says so. */
static void emit_parallel_body(CuFn *f) {
    const CuSched *c = &f->sched;
    if (emit_packed_body(f)) return;
    if (has_hubs(f)) {
        emit_rows_and_hubs(f);
        return;
    }
    cu_open(f, c->kind == CU_THREAD ? "GN_ROWS(gn_i, gn_extent) {"
                                    : "GN_TEAM_ROWS(gn_i, gn_extent, gn) {");
    emit_index_split(f);
    emit_iteration(f);
    cu_close(f);
}

/* Rows behind the batch's own, which are as many as the device finds. */
static const char *count_of(CuFn *f, const LStmt *s) {
    if (s->range != LR_BEHIND) return cu_expr(f, s->extent);
    return arena_printf(f->a, "gn_max64(%s - %s, 0)", cu_expr(f, s->extent),
                        cu_own_expr(f, s->own));
}

/* Several parallel loops share one range: each thread finds the one that its index is in. */
static void emit_joined_body(CuFn *f) {
    const LStmt *s = f->k->body;
    while (s->kind != L_FOR) cu_statement(f, s), s = s->next;
    cu_open(f, "GN_ROWS(gn_i, gn_extent) {");
    cu_line(f, "int64_t gn_at = gn_i;");
    for (; s; s = s->next) {
        const char *n = count_of(f, s);
        const char *from = s->own ? arena_printf(f->a, "%s + ", cu_own_expr(f, s->own)) : "";
        cu_open(f, "if (gn_at >= 0 && gn_at < %s) {", n);
        if (f->used[s->var->id])
            cu_line(f, "const int64_t %s = %sgn_at;", f->reg[s->var->id], from);
        cu_block(f, s->body);
        cu_close(f);
        if (s->next) cu_line(f, "gn_at -= %s;", n);
    }
    cu_close(f);
}

/* Emits the kernel's statements: several joined loops, a parallel loop, or serial code for one
 * thread or block. */
static void emit_body(CuFn *f) {
    const CuSched *c = &f->sched;
    if (loop_is_joined(f->k) || loop_is_behind(f->k)) {
        emit_joined_body(f);
        return;
    }
    emit_team(f);
    if (c->parallel_loop) {
        cu_statements_until(f, f->k->body, c->parallel_loop);
        emit_parallel_body(f);
        return;
    }
    cu_open(f, c->kind == CU_THREAD ? "GN_SERIAL(gn_extent) {" : "if (gn_extent) {");
    cu_block(f, f->k->body);
    cu_close(f);
}

/* Writes a line of the comment. */
static void comment_line(CuFn *f, const char *s, size_t n) {
    sb_puts(&f->cu->b, " * ");
    target_comment(&f->cu->b, arena_strndup(f->a, s, n));
    sb_puts(&f->cu->b, "\n");
}

/* Writes the line of the model at `at`, with its file and number. */
static void comment_source(CuFn *f, Span at) {
    const Ctx *c = f->cu->c;
    if (!at.line || (int)at.file >= c->sources.n) return;
    const Source *src = &c->sources.v[at.file];
    const char *p = src->text;
    for (uint32_t line = 1; line < at.line && p; line++)
        if ((p = strchr(p, '\n'))) p++;
    size_t n = p ? strcspn(p, "\n") : 0;
    const char *text = arena_printf(f->a, "%s:%u: %.*s", src->path, at.line, (int)n, n ? p : "");
    comment_line(f, text, strlen(text));
}

/* Emits the comment above the kernel: the lines of the model that it computes (lines: only above
 * the first of several stages), and its loop IR as emitted. */
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
        if (!repeated) comment_source(f, at);
    }
    loop_print(&text, f->cu->plan->m, k);
    for (const char *s = text.s; *s; s += strcspn(s, "\n"), s += *s == '\n')
        comment_line(f, s, strcspn(s, "\n"));
    sb_puts(&f->cu->b, " */\n");
}

/* Emits the head of the kernel: its name with `suffix`, and its parameters. */
void cu_signature(CuFn *f, const char *suffix) {
    const LKernel *k = f->k;
    const Module *m = f->cu->plan->m;
    const char *size = f->reads_device_sizes ? "int64_t " : "const int64_t ";
    Parameters to = {0};
    f->depth = 0;
    for (int i = 0; i < k->bufs.n; i++) {
        const LBuf *b = k->bufs.v[i];
        if (f->is_argument && !f->is_argument[i]) continue;
        add_parameter(f, &to, pointer_type(f, cu_mem_type(b->dt), b->written), f->buf[i]);
    }
    if (f->has_condition) add_parameter(f, &to, pointer_type(f, "unsigned char", false), "gn_when");
    if (f->reads_device_sizes) add_parameter(f, &to, pointer_type(f, "int64_t", false), "gn_n");
    for (int i = 0; i < m->syms.n; i++)
        if (f->sym[i]) add_parameter(f, &to, size, f->sym[i]);
    if (f->sched.kind != CU_THREAD && !f->sched.lanes)
        add_parameter(f, &to, "const int ", "gn_lanes");
    if (f->sched.kind == CU_TEAM && f->sched.shared_loop && !f->in_parts_kernel)
        add_parameter(f, &to, "const int ", "gn_ways");
    if (f->splits_rows)
        add_parameter(f, &to, pointer_type(f, "float", f->in_parts_kernel), "gn_room");
    if (f->splits_rows) add_parameter(f, &to, "const int64_t ", "gn_part");
    add_parameter(f, &to, size, "gn_extent");
    put_parameters(f,
                   arena_printf(f->a, "static __global__ void __launch_bounds__(GN_THREADS) %s%s(",
                                k->name, suffix),
                   &to, ") {\n");
}

/* Emits the load of the batch's own sizes from device memory: the launch was recorded for rounded
 * ones. */
static void emit_load_sizes(CuFn *f) {
    cu_open(f, "if (gn_n) {");
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) cu_line(f, "%s = gn_n[%d];", f->sym[i], i);
    cu_line(f, "gn_extent = %s;", cu_extent_text(f));
    cu_close(f);
}

/* .. and of rows behind them: there are none where sizes are not rounded. */
static void own_rows(CuFn *f) {
    cu_line(f, "gn_extent = 0;");
    cu_open(f, "if (gn_n) {");
    for (const LStmt *s = f->k->body; s; s = s->next)
        if (s->kind == L_FOR) cu_line(f, "gn_extent += %s;", count_of(f, s));
    cu_close(f);
}

/* Whether the kernel needs any size. One that does not gets no code that reads them: a range that
 * is constant in one branch alone made nvcc unroll the updates of all parameters, with 128
 * registers instead of 80. */
static bool uses_sizes(const CuFn *f) {
    for (int i = 0; i < f->cu->plan->m->syms.n; i++)
        if (f->sym[i]) return true;
    return false;
}

/* The step that launches k; *in: its phase. */
static const PStep *launching_step(const Plan *p, const LKernel *k, const PPhase **in) {
    for (int i = 0; i < p->phases.n; i++)
        for (int j = 0; j < p->phases.v[i]->steps.n; j++) {
            *in = p->phases.v[i];
            const PStep *s = (*in)->steps.v[j];
            if (s->kernel == k || (s->clear && s->clear->kernel == k)) return s;
        }
    return NULL;
}

/* Emits what precedes the kernel's statements: the load of sizes, and the test of its condition. */
void cu_prologue(CuFn *f) {
    if (loop_is_behind(f->k))
        own_rows(f);
    else if (f->reads_device_sizes)
        emit_load_sizes(f);
    if (f->has_condition) cu_line(f, "if (%s*gn_when) return;", f->condition_negated ? "" : "!");
}

/* Emits the kernel, after its schedule is known, and the helper functions that it calls. */
static void emit_function(CuFn *f) {
    f->used = NEWN(f->a, bool, f->k->n_regs + 1);
    f->local_used = NEWN(f->a, bool, f->k->locals.n + 1);
    mark_block(f, f->k->body, NULL);
    cu_assign_names(f);
    f->reads_device_sizes = f->reads_device_sizes && uses_sizes(f);
    f->splits_rows = cu_splits_rows(f);
    if (has_hubs(f)) emit_row_function(f);
    if (f->splits_rows) cu_parts_kernel(f);
    cu_signature(f, "");
    f->depth = 1;
    cu_prologue(f);
    emit_body(f);
    cu_close(f);
}

/* The emission context of kernel k. A stage (k is one of several kernels made from one) takes only
 * the arguments that it touches. */
static CuFn *context_for_kernel(const CuFn *base, const LKernel *k, bool is_stage) {
    CuFn *f = NEW(base->a, CuFn);
    *f = *base;
    f->k = k;
    if (!is_stage) return f;
    bool *is_argument = NEWN(f->a, bool, k->bufs.n + 1);
    for (int i = 0; i < k->bufs.n; i++)
        is_argument[i] = loop_find(k->body, touches_buffer, k->bufs.v[i]);
    f->is_argument = is_argument;
    return f;
}

/* Emits a kernel of the plan: runs the loop passes, which may split it in stages, then emits each
 * stage and the host function that launches them. False after diagnostics. */
bool cu_kernel(Cu *cu, const LKernel *k) {
    const PPhase *ph = NULL;
    const PStep *s = launching_step(cu->plan, k, &ph);
    const TargetMachine no_machine = {0};
    Loops l;
    if (!loop_pass_all(cu->c, cu->plan, &target_cuda, &no_machine, k, &l)) return false;
    CuFn base = {.cu = cu,
                 .a = cu->a,
                 .has_condition = s && s->pred >= 0 && s->kernel == k,
                 .condition_negated = s && s->pred_not,
                 .reads_device_sizes = s && (s->clear || plan_has_buckets(cu->a, cu->plan, ph))},
         **f = NEWN(cu->a, CuFn *, l.k.n + 1);
    for (int i = 0; i < l.k.n; i++) {
        f[i] = context_for_kernel(&base, l.k.v[i], l.k.n > 1);
        if (!cu_schedule(f[i])) return false;
    }
    for (int i = 0; i < l.k.n; i++) {
        emit_comment(f[i], i == 0);
        emit_function(f[i]);
    }
    cu_launch(f, l.k.n, k->name);
    return true;
}
