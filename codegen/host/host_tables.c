/* The tables of runtime/program.h. */
#include "codegen/cost.h"
#include "codegen/host/host.h"
#include "codegen/plan_passes/plan_order.h"

#include <inttypes.h>
#include <string.h>

/* The id of a space; -1 for NULL. */
static int id_of(const Space *s) {
    return s ? s->id : -1;
}

/* The name of a space's enumerator; "-1" for NULL. */
static const char *space_name(const Host *h, const Space *s) {
    return s ? h->space[s->id] : "-1";
}

/* Writes the head of a table with n rows; nothing for n = 0, as C has no empty arrays. */
static void open_table(Host *h, const char *type, const char *name, int n) {
    if (n > 0) host_printf(h, "static const %s %s[] = {\n", type, name);
}
/* Writes the end of a table with n rows; nothing for n = 0. */
static void close_table(Host *h, int n) {
    if (n > 0) host_puts(h, "};\n\n");
}

/* ---- spaces, columns, maps ------------------------------------------------------------- */

/* The buffer with the condition of each edge, for an edge space that keeps the edges where it
 * holds; edge spaces with the same condition share it. -1: the space is not filtered. */
static int where_mask_buf(const Host *h, const Space *s) {
    for (int i = 0; i < h->p->phases.n; i++)
        for (int j = 0; j < h->p->phases.v[i]->steps.n; j++) {
            const PStep *st = h->p->phases.v[i]->steps.v[j];
            bool same = s->rel == REL_WHERE && st->kind == PS_RELATION &&
                        st->space->rel == REL_WHERE && !strcmp(st->space->cond, s->cond);
            if ((st->space == s || same) && st->kind == PS_RELATION && st->n_bufs > 0)
                return st->bufs[0];
        }
    return -1;
}

/* "true" or "false", as C spells them. */
static const char *bool_text(bool x) {
    return x ? "true" : "false";
}

/* By buffer: whether it is accessed by a phase that runs over batches, or by the phase that runs on
 * a subgraph supplied by the caller. */
static const bool *find_batch_buffers(const Host *h) {
    bool *in = NEWN(h->a, bool, (size_t)h->p->bufs.n + 1);
    for (int i = 0; i < h->p->phases.n; i++) {
        const PPhase *ph = h->p->phases.v[i];
        bool batches = plan_runs_on_batches(h->p, ph) || ph->func->phase == PHASE_ENDS;
        for (int k = 0; k < ph->steps.n && batches; k++)
            for (int b = 0; b < plan_n_touched(ph->steps.v[k]); b++) {
                int buf = plan_touched(ph->steps.v[k], b);
                if (buf >= 0) in[buf] = true;
            }
    }
    return in;
}

/* Marks relation s, by id, and the relations that it is derived from. */
static void mark_relation(bool *in, const Space *s) {
    if (!s || s->kind != SP_EDGE || in[s->id]) return;
    in[s->id] = true;
    mark_relation(in, s->base[0]);
    mark_relation(in, s->base[1]);
}

/* By space: whether it is a relation that batches read, or one that such a relation is derived
 * from. */
static const bool *find_batch_relations(const Host *h) {
    bool *in = NEWN(h->a, bool, (size_t)h->m->spaces.n + 1);
    for (int i = 0; i < h->p->bufs.n; i++)
        if (h->in_batches[i] && h->p->bufs.v[i]->map) mark_relation(in, h->p->bufs.v[i]->map->from);
    return in;
}

/* Writes a row of the table of index spaces. read: functions of the model read its rows or what is
 * derived from them; numbered: as module_numbers() says; in_batches: as find_batch_relations(). */
static void emit_space(Host *h, const Space *s, bool read, bool numbered, bool in_batches) {
    int64_t fixed = -1;
    bool sym = s->size->kind == EX_SYM;
    if (s->kind == SP_DIM) expr_is_const(s->size, &fixed);
    host_printf(h, "    [%s] = {.name = ", h->space[s->id]);
    host_string(h, s->name);
    host_printf(h, ", .kind = %s, .sym = %s, .fixed = %" PRId64 ", .rel = %s,\n",
                host_SpaceKind[s->kind], sym ? h->sym[s->size->sym->id] : "-1", fixed,
                host_RelKind[s->kind == SP_EDGE ? s->rel : REL_BASE]);
    host_printf(h, "        .src = %s, .dst = %s, .base = {%s, %s},", space_name(h, s->src),
                space_name(h, s->dst), space_name(h, s->base[0]), space_name(h, s->base[1]));
    host_printf(h, " .cond_buf = %d, .col = %d, .graph = %s, .untimed = %s,\n",
                where_mask_buf(h, s), s->nz_of ? s->nz_of->id : -1, space_name(h, s->graph),
                bool_text(read && space_is_untimed(h->m, s)));
    bool all_hops = s->distinct_of && !s->distinct_of->prefix_of;
    host_printf(h, "        .first = %s, .whole = %s, .hops = %d,\n",
                bool_text(s->prefix_of != NULL), space_name(h, s->prefix_of),
                all_hops ? h->m->recipe.sample.n_hops : s->hops);
    if (s->distinct_of) host_puts(h, "        .once = true,\n");
    if (in_batches) host_puts(h, "        .in_batches = true,\n");
    if (numbered && s->kind == SP_EDGE) host_puts(h, "        .numbered = true,\n");
    bool in_data = s->kind == SP_EDGE && s->rel == REL_BASE;
    if (!read && in_data && h->m->recipe.sample.serve) host_puts(h, "        .unread = true,\n");
    host_printf(h, "        .drawn = %s, .of_batch = %s, .sampled = %s, .varies = %s},\n",
                bool_text(space_is_drawn(s)), bool_text(space_of_batch(s)),
                bool_text(space_is_sampled(h->m, s)), bool_text(space_varies(h->m, s)));
}

/* Writes the table of index spaces: nodes, edges, graphs and dimensions. */
static void emit_spaces(Host *h) {
    const bool *read = module_reads(h->m), *numbered = module_numbers(h->m);
    const bool *in_batches = find_batch_relations(h);
    open_table(h, "rt_space", "spaces", h->m->spaces.n);
    for (int i = 0; i < h->m->spaces.n; i++)
        emit_space(h, h->m->spaces.v[i], read[i], numbered[i], in_batches[i]);
    close_table(h, h->m->spaces.n);
}

/* The buffer of a kind that holds `what`, a column, a variable or a part of a map (an LBufKind);
 * -1: there is none. */
static int find_buf(const Host *h, PBufKind kind, const void *what, int part) {
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        if (b->kind != kind) continue;
        if (kind == PB_DATA && b->col == what) return i;
        if (kind == PB_VAR && b->var == what) return i;
        if (kind == PB_MAP && b->map == what && (int)b->map_part == part && !b->by) return i;
    }
    return -1;
}

/* Writes a row of the table of data columns. is_label: as host_labels() says. */
static void emit_column(Host *h, const Column *c, bool is_label) {
    int buf = find_buf(h, PB_DATA, c, 0);
    bool rows = c->kind == COL_CSR && buf >= 0 && h->p->bufs.v[buf]->type.rank == 2;
    host_puts(h, "    {.name = ");
    host_string(h, c->name);
    host_printf(h, ", .kind = %s, .space = %s, .rank = %d, .dim = {",
                host_ColKind[rows ? COL_FLOAT : c->kind], space_name(h, c->space),
                c->type.rank > 0 ? c->type.rank - 1 : 0);
    for (int i = 1; i < c->type.rank; i++)
        host_printf(h, "%s%s", i > 1 ? ", " : "", space_name(h, c->type.dim[i]));
    if (c->type.rank <= 1) host_puts(h, "0");
    host_printf(h, "}, .cat = %s, .nz = %s, .buf = %d, .is_label = %s},\n", space_name(h, c->cat),
                space_name(h, c->nz), buf, is_label ? "true" : "false");
}

/* Writes the table of data columns: kind, table and shape of each, and the buffer that holds it. */
static void emit_columns(Host *h) {
    const bool *labels = host_labels(h->a, h->m);
    open_table(h, "rt_column", "columns", h->m->cols.n);
    for (int i = 0; i < h->m->cols.n; i++) emit_column(h, h->m->cols.v[i], labels[i]);
    close_table(h, h->m->cols.n);
}

/* Whether a step accesses the buffer. */
static bool is_accessed(const Host *h, int buf) {
    for (int i = 0; i < h->p->phases.n; i++) {
        const PPhase *ph = h->p->phases.v[i];
        for (int k = 0; k < ph->steps.n; k++)
            for (int b = 0; b < plan_n_touched(ph->steps.v[k]); b++)
                if (plan_touched(ph->steps.v[k], b) == buf) return true;
    }
    return false;
}

/* The buffer of a map's permutation; -1: there is none, or targets that stand in its order are all
 * that is left of it in kernels. */
static int find_permutation(const Host *h, const Map *m) {
    int buf = find_buf(h, PB_MAP, m, LB_MAP_PERM);
    return buf >= 0 && is_accessed(h, buf) ? buf : -1;
}

/* Writes the table of maps: how the elements of a space refer to those of another, and the buffers
 * with their indices, segment bounds and permutation. */
static void emit_maps(Host *h) {
    open_table(h, "rt_map", "maps", h->m->maps.n);
    for (int i = 0; i < h->m->maps.n; i++) {
        const Map *m = h->m->maps.v[i];
        host_printf(h, "    {.kind = %s, .from = %s, .to = %s, .col = %d, .which = %d,",
                    host_MapKind[m->kind], space_name(h, m->from), space_name(h, m->to),
                    m->col ? m->col->id : -1, m->which);
        host_printf(h, " .idx_buf = %d, .ptr_buf = %d, .perm_buf = %d",
                    find_buf(h, PB_MAP, m, LB_MAP_IDX), find_buf(h, PB_MAP, m, LB_MAP_PTR),
                    find_permutation(h, m));
        if (m->kind == MAP_PAIR)
            host_printf(h, ", .pair = {%d, %d}, .through = %d", m->pair[0]->id, m->pair[1]->id,
                        m->via ? m->via->id : -1);
        if (m->kind == MAP_VIA)
            host_printf(h, ", .pair = {%d, -1}, .through = %d", m->pair[0]->id, m->via->id);
        host_puts(h, "},\n");
    }
    close_table(h, h->m->maps.n);
}

/* ---- variables, buffers, phases --------------------------------------------------------- */

/* Writes the table of variables: parameters, states and those of the optimizer, with their initial
 * values. */
static void emit_vars(Host *h) {
    open_table(h, "rt_var", "vars", h->m->vars.n);
    for (int i = 0; i < h->m->vars.n; i++) {
        const Var *v = h->m->vars.v[i];
        host_puts(h, "    {.path = ");
        host_string(h, v->path);
        host_printf(h, ", .kind = %s, .dt = %s, .buf = %d, .group = ", host_VarKind[v->kind],
                    host_dtype(v->type.dt), find_buf(h, PB_VAR, v, 0));
        host_string(h, v->group);
        host_printf(h, ", .init = %s, .a = %a, .b = %a", host_InitKind[v->init.kind], v->init.a,
                    v->init.b);
        if (v->role) host_printf(h, ", .role = %s", host_VarRole[v->role]);
        double keeps;
        if (v->kind == VAR_STATE && host_state_assigned(h->m, v, &keeps))
            host_printf(h, ", .assigned = true, .keeps = %a", keeps);
        host_puts(h, "},\n");
    }
    close_table(h, h->m->vars.n);
}

/* Writes the members that say what an output is for (a loss, a prediction, ..); nothing for a plain
 * value. */
static void emit_use(Host *h, const PBuf *b) {
    bool output = b->kind == PB_OUTPUT || b->kind == PB_SAVED;
    if (!output || b->use.role == OUT_VALUE) return;
    host_printf(h, ",\n        .role = %s, .split = %s, .hops = %d, .of = ",
                host_OutputRole[b->use.role], host_SplitKind[b->use.split], b->use.hops);
    host_string(h, b->use.of);
}

/* May rows of what the buffer holds come from other processes: of a column that batches read, or of
 * one that an index array is made of? */
static bool may_be_pulled(const Host *h, int buf) {
    const PBuf *b = h->p->bufs.v[buf];
    bool index = b->kind == PB_MAP && h->m->recipe.sample.batch &&
                 (map_is_of_column(b->map, NULL) || (b->by && map_is_of_column(b->by, NULL)));
    return index || (b->kind == PB_DATA && h->in_batches[buf]);
}

/* Bit i: phase i runs on the whole data and reads the buffer. */
static unsigned read_whole(const Host *h, const PBuf *of) {
    unsigned phases = 0;
    for (int i = 0; i < h->p->phases.n; i++) {
        const PPhase *ph = h->p->phases.v[i];
        if (plan_runs_on_batches(h->p, ph) || ph->func->phase == PHASE_ENDS) continue;
        for (int k = 0; k < ph->steps.n; k++)
            for (int b = 0; b < plan_n_touched(ph->steps.v[k]); b++) {
                int buf = plan_touched(ph->steps.v[k], b);
                if (buf >= 0 && h->p->bufs.v[buf] == of) phases |= 1u << i;
            }
    }
    return phases;
}

/* Writes a row of the table of buffers. */
static void emit_buf(Host *h, int buf) {
    const PBuf *b = h->p->bufs.v[buf];
    bool io = b->kind == PB_OUTPUT || b->kind == PB_SAVED || b->kind == PB_INPUT;
    bool rows = io || b->kind == PB_VAR;
    int space = b->kind == PB_LOGICAL || b->kind == PB_CUTS ? id_of(b->space)
                : rows && b->type.rank > 0                  ? id_of(b->type.dim[0])
                                                            : -1;
    host_printf(h, "    [B_%s] = {.name = ", b->name);
    host_string(h, b->name);
    host_printf(h, ", .kind = %s, .dt = %s, .io_name = ", host_PBufKind[b->kind],
                host_dtype(b->dt));
    host_string(h, b->io_name);
    host_printf(h,
                ", .space = %d, .stream = %d, .map = %d, .by = %d,\n        .phase = %d, .first = "
                "%d, .last = %d, .rank = %d, .block = %d",
                space, b->kind == PB_KEY ? b->stream : -1, b->map ? b->map->id : -1,
                b->by ? b->by->id : -1,
                b->kind == PB_TEMP || b->kind == PB_OUTPUT || b->kind == PB_SAVED ? b->phase : -1,
                b->kind == PB_TEMP ? b->first : -1, b->kind == PB_TEMP ? b->last : -1,
                io ? b->type.rank : 0, b->block);
    if (h->in_batches[buf]) host_puts(h, ", .in_batches = true");
    if (b->own) host_printf(h, ", .own = 1 + %s", h->space[b->own->id]);
    if (b->local) host_puts(h, ", .local = true");
    unsigned whole = may_be_pulled(h, buf) ? read_whole(h, b) : 0;
    if (whole) host_printf(h, ", .whole = 0x%x", whole);
    emit_use(h, b);
    host_puts(h, "},\n");
}

/* Writes the table of buffers: what each holds, and the steps between which a temporary does. */
static void emit_bufs(Host *h) {
    open_table(h, "rt_buf", "bufs", h->p->bufs.n);
    for (int i = 0; i < h->p->bufs.n; i++) emit_buf(h, i);
    close_table(h, h->p->bufs.n);
}

/* Writes the table of a phase's steps: name, kind, description and model lines, for profiles and
 * messages. */
static void emit_step_infos(Host *h, int phase) {
    const PPhase *ph = h->p->phases.v[phase];
    open_table(h, "rt_step_info", arena_printf(h->a, "steps_%d", phase), ph->steps.n);
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        host_puts(h, "    {");
        host_string(h, cg_step_name(s));
        host_printf(h, ", %s, ", host_PStepKind[s->kind]);
        host_string(h, s->note ? s->note : "");
        host_puts(h, ", ");
        host_string(h, cg_step_lines(h->m, h->a, s, true));
        host_puts(h, ", ");
        host_string(h, cg_step_origin(h->m, h->a, s));
        host_puts(h, "},\n");
    }
    close_table(h, ph->steps.n);
}

/* Writes the assignment of a cost to member `name`, unless it is the constant 0, which is set
 * already. */
static void emit_cost_field(Host *h, const char *name, const Expr *e) {
    int64_t v;
    if (expr_is_const(e, &v) && v == 0) return;
    host_printf(h, "        c->%s = ", name);
    host_expr(h, e);
    host_puts(h, ";\n");
}

/* Writes which parameter a matrix product multiplies by, if it is one: a library may pack it once
 * and use it often. */
static void emit_weight_buf(Host *h, const PStep *s) {
    if (h->p->bufs.v[s->bufs[1]]->kind != PB_VAR) return;
    emit_cost_field(h, "gemm.b_row", s->gemm.b_row);
    emit_cost_field(h, "gemm.b_col", s->gemm.b_col);
    host_printf(h, "        c->weight = %d;\n", s->bufs[1]);
}

/* Writes a C function with the costs of a phase's steps for given sizes: bytes, operations, and
 * shapes of matrix products. */
static void emit_costs(Host *h, int phase) {
    const PPhase *ph = h->p->phases.v[phase];
    host_printf(h,
                "static void cost_%d(int step, const int64_t *n, rt_step_cost *c) {\n"
                "    (void)n;\n    *c = (rt_step_cost){.weight = -1};\n    switch (step) {\n",
                phase);
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        StepCost c = cg_step_cost(h->a, h->p, s);
        host_printf(h, "    case %d:\n", i);
        emit_cost_field(h, "read", c.read);
        emit_cost_field(h, "gathered", c.gathered);
        emit_cost_field(h, "written", c.written);
        emit_cost_field(h, "flops", c.flops);
        if (s->kind == PS_GEMM) {
            emit_cost_field(h, "gemm.batch", s->gemm.batch);
            emit_cost_field(h, "gemm.m", s->gemm.m);
            emit_cost_field(h, "gemm.n", s->gemm.n);
            emit_cost_field(h, "gemm.k", s->gemm.k);
            emit_weight_buf(h, s);
            host_printf(h, "        c->gemm.long_k = %s;\n", s->gemm.long_k ? "true" : "false");
            host_printf(h, "        c->gemm.in = %s;\n", host_dtype(h->p->bufs.v[s->bufs[0]]->dt));
            host_printf(h, "        c->gemm.out = %s;\n", host_dtype(h->p->bufs.v[s->bufs[2]]->dt));
        }
        if (s->kind == PS_RANK)
            emit_cost_field(h, "rank_len", s->op->in[0]->type.dim[s->rank_axis]->size);
        host_puts(h, "        break;\n");
    }
    host_puts(h, "    default: break;\n    }\n}\n\n");
}

/* Writes the table of a phase's loops over blocks of rows, and a function that returns how many
 * rows there are; nothing if there are none. */
static void emit_block_table(Host *h, int phase) {
    const PPhase *ph = h->p->phases.v[phase];
    if (!ph->blocks.n) return;
    open_table(h, "rt_blocks", arena_printf(h->a, "blocks_%d", phase), ph->blocks.n);
    for (int i = 0; i < ph->blocks.n; i++)
        host_printf(h, "    {.first = %d, .last = %d},\n", ph->blocks.v[i].first,
                    ph->blocks.v[i].last);
    close_table(h, ph->blocks.n);
    host_printf(h,
                "static int64_t block_rows_%d(int i, const int64_t *n) {\n    (void)n;\n"
                "    switch (i) {\n",
                phase);
    for (int i = 0; i < ph->blocks.n; i++) {
        host_printf(h, "    case %d: return ", i);
        host_expr(h, ph->blocks.v[i].rows);
        host_puts(h, ";\n");
    }
    host_puts(h, "    default: return 0;\n    }\n}\n\n");
}

/* Writes that the device may record the phase for sizes that are rounded up, or the step that
 * prevents this and why. Nothing for a phase that does not train on batches. */
static void emit_buckets(Host *h, const PPhase *ph) {
    const char *why;
    if (!h->p->device || !plan_trains_on_batches(h->p, ph)) return;
    const PStep *s = plan_bucket_obstacle(h->a, h->p, ph, true, &why);
    host_puts(h, s ? ".buckets_lack = " : ".buckets = true");
    if (s) host_string(h, arena_printf(h->a, "%s: %s", host_line(h, s), why));
    host_puts(h, ", ");
}

/* Writes in how many streams a device records the phase, and in which of them products are made;
 * nothing where it is one. */
static void emit_streams(Host *h, const PPhase *ph) {
    int n = 1;
    unsigned products = 0;
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        const int stream = s->branch ? s->branch->stream : 0;
        if (stream >= n) n = stream + 1;
        if (s->kind == PS_GEMM) products |= 1u << stream;
    }
    if (n > 1) host_printf(h, ".n_streams = %d, .product_streams = 0x%x, ", n, products);
}

/* Writes the table of phases, and before it the tables and functions of each phase. */
static void emit_phase_table(Host *h) {
    for (int i = 0; i < h->p->phases.n; i++) {
        emit_step_infos(h, i);
        emit_costs(h, i);
        emit_block_table(h, i);
    }
    open_table(h, "rt_phase", "phases", h->p->phases.n);
    for (int i = 0; i < h->p->phases.n; i++) {
        const PPhase *ph = h->p->phases.v[i];
        int kernels = 0, calls = 0;
        for (int j = 0; j < ph->steps.n; j++) {
            PStepKind k = ph->steps.v[j]->kind;
            kernels += k == PS_KERNEL;
            calls += plan_step_facts(k)->by == PBY_LIBRARY || k == PS_CALL;
        }
        host_puts(h, "    {.name = ");
        host_string(h, ph->name);
        host_printf(h, ", .kind = %s, %s.n_steps = %d, ", host_Phase[ph->func->phase],
                    plan_runs_on_batches(h->p, ph) ? ".batches = true, " : "", ph->steps.n);
        if (plan_on_host(h->p)) host_printf(h, ".run = run_phase_%d, ", i);
        if (h->p->device) host_printf(h, ".run_device = run_phase_%d_%s, ", i, h->p->device);
        emit_buckets(h, ph);
        emit_streams(h, ph);
        host_printf(h, ".n_kernels = %d, .n_library_calls = %d,\n", kernels, calls);
        if (ph->blocks.n)
            host_printf(
                h, "        .n_blocks = %d, .blocks = blocks_%d, .block_rows = block_rows_%d,\n",
                ph->blocks.n, i, i);
        if (ph->steps.n)
            host_printf(h, "        .steps = steps_%d, .cost = cost_%d},\n", i, i);
        else
            host_printf(h, "        .steps = NULL, .cost = cost_%d},\n", i);
    }
    close_table(h, h->p->phases.n);
}

/* Writes a size of a sparse product as a member of an initializer. */
static void emit_spmm_size(Host *h, const char *name, const Expr *e) {
    host_printf(h, "            .%s = ", name);
    host_expr(h, e);
    host_puts(h, ",\n");
}

/* Writes a buffer of a sparse product as a member of an initializer; -1: there is none. */
static void emit_spmm_buf(Host *h, const char *name, int buf) {
    if (buf < 0)
        host_printf(h, " .%s = -1,", name);
    else
        host_printf(h, " .%s = B_%s,", name, h->p->bufs.v[buf]->name);
}

/* Writes the case that describes a sparse product. phase, step: where it is in the plan. */
static void emit_spmm(Host *h, int phase, int step, const PSpmm *m) {
    host_printf(h, "    case %d:\n        *s = (rt_spmm){.phase = %d, .step = %d,", m->index, phase,
                step);
    emit_spmm_buf(h, "ptr", m->ptr);
    emit_spmm_buf(h, "idx", m->idx);
    emit_spmm_buf(h, "perm", m->perm);
    host_puts(h, "\n           ");
    emit_spmm_buf(h, "weight", m->weight);
    emit_spmm_buf(h, "dense", m->dense);
    emit_spmm_buf(h, "out", m->out);
    host_puts(h, "\n");
    emit_spmm_size(h, "rows", m->rows);
    emit_spmm_size(h, "cols", m->cols);
    emit_spmm_size(h, "entries", m->entries);
    emit_spmm_size(h, "width", m->width);
    if (h->p->spmm == SPMM_LIBRARY) host_puts(h, "            .wanted = true,\n");
    emit_spmm_size(h, "own_bytes", m->own_bytes);
    emit_spmm_size(h, "library_bytes", m->library_bytes);
    host_puts(h, "        };\n        break;\n");
}

/* Writes the C function that describes each sparse product that the device's library may compute,
 * for given sizes; nothing if there are none. */
static void emit_spmms(Host *h) {
    if (!plan_spmm_count(h->p)) return;
    host_puts(h, "static void spmm(int i, const int64_t *n, rt_spmm *s) {\n"
                 "    (void)n;\n    switch (i) {\n");
    for (int i = 0; i < h->p->phases.n; i++)
        for (int k = 0; k < h->p->phases.v[i]->steps.n; k++) {
            const PSpmm *m = h->p->phases.v[i]->steps.v[k]->spmm;
            if (m && m->index >= 0) emit_spmm(h, i, k, m);
        }
    host_puts(h, "    default: break;\n    }\n}\n\n");
}

/* Writes the buffers of each group of matrix products (all A, then all B, then all C) and the table
 * of groups; returns the number of groups. */
static int emit_gemm_groups(Host *h) {
    int n = h->p->device ? plan_group_index(h->p, NULL) : 0, first = 0;
    StrBuf groups = sb_new(h->a);
    open_table(h, "int", "group_bufs", n);
    for (int i = 0; i < h->p->phases.n && n; i++)
        for (int k = 0; k < h->p->phases.v[i]->steps.n; k++) {
            const PStep *s = h->p->phases.v[i]->steps.v[k];
            if (s->kind != PS_GEMM || !plan_leads_group(s)) continue;
            const PGroup *g = s->group;
            for (int which = 0; which < 3; which++)
                for (int m = 0; m < g->steps.n; m++)
                    host_printf(h, "%sB_%s,", m ? " " : "    ",
                                h->p->bufs.v[g->steps.v[m]->bufs[which]]->name);
            host_puts(h, "\n");
            sb_printf(&groups, "    {.n = %d, .first = %d, .bufs = group_bufs + %d},\n", g->steps.n,
                      first, first);
            first += 3 * g->steps.n;
        }
    close_table(h, n);
    open_table(h, "rt_product_group", "groups", n);
    if (n) host_puts(h, groups.s);
    close_table(h, n);
    return n;
}

/* Writes the index arrays that lead from rows to others, as the table `name` of exchange i. */
static void emit_reach(Host *h, const char *name, int i, const PHalo *halo, int n) {
    if (n) host_printf(h, "static const rt_reach %s_%d[] = {\n", name, i);
    for (int j = 0; j < n; j++) {
        host_printf(h, "    {.from = %s, .n = %d, .hop = {", h->space[halo[j].from->id],
                    halo[j].n_via);
        for (int m = 0; m < halo[j].n_via; m++)
            host_printf(h, "%sB_%s", m ? ", " : "", h->p->bufs.v[halo[j].via[m]]->name);
        host_puts(h, "}},\n");
    }
    if (n) host_puts(h, "};\n");
}

/* Writes the table of messages between processes that share rows: for each exchange the buffer, and
 * the path by which the remote rows that it needs are found; also the sums of partial matrix
 * products. Returns the number of rows. */
static int emit_exchanges(Host *h) {
    int n = 0;
    StrBuf table = sb_new(h->a);
    for (int i = 0; i < h->p->phases.n; i++)
        for (int k = 0; k < h->p->phases.v[i]->steps.n; k++) {
            const PStep *s = h->p->phases.v[i]->steps.v[k];
            bool all_reduce = s->kind == PS_GEMM && s->partition && s->gemm.long_k;
            if (s->kind != PS_EXCHANGE && !all_reduce) continue;
            emit_reach(h, "reach", n, s->halos.v, s->halos.n);
            emit_reach(h, "beside", n, s->beside.v, s->beside.n);
            sb_printf(&table,
                      "    {.buf = B_%s, .space = %s, .cuts = %s, .folds = %s, .to_first = %s, .n "
                      "= %d, .reach = ",
                      h->p->bufs.v[s->bufs[all_reduce ? 2 : 0]]->name, h->space[s->partition->id],
                      bool_text(s->partials), bool_text(s->folds), bool_text(s->to_first),
                      s->halos.n);
            if (s->halos.n)
                sb_printf(&table, "reach_%d", n);
            else
                sb_puts(&table, "NULL");
            if (s->beside.n)
                sb_printf(&table, ", .n_beside = %d, .beside = beside_%d", s->beside.n, n);
            if (s->sampled) sb_puts(&table, ", .sampled = true");
            sb_printf(&table, ", .sums = %s, .phase = %d, .step = %d},\n", bool_text(all_reduce), i,
                      k);
            n++;
        }
    open_table(h, "rt_exchange_step", "exchanges", n);
    if (n) host_puts(h, table.s);
    close_table(h, n);
    return n;
}

/* ---- sizes as functions ---------------------------------------------------------------------- */

/* Writes the C function that returns the number of elements of a buffer for given sizes. */
static void emit_buf_count(Host *h) {
    host_puts(h, "static int64_t buf_count(int buf, const int64_t *n) {\n    (void)n;\n    switch "
                 "(buf) {\n");
    for (int i = 0; i < h->p->bufs.n; i++) {
        host_printf(h, "    case B_%s: return ", h->p->bufs.v[i]->name);
        host_expr(h, h->p->bufs.v[i]->count);
        host_puts(h, ";\n");
    }
    host_puts(h, "    default: return 0;\n    }\n}\n\n");
}

/* Writes the C function that returns the shape of an output or saved value for given sizes. */
static void emit_buf_shape(Host *h) {
    host_puts(h, "static void buf_shape(int buf, const int64_t *n, int64_t *dim) {\n"
                 "    (void)n, (void)dim;\n    switch (buf) {\n");
    for (int i = 0; i < h->p->bufs.n; i++) {
        const PBuf *b = h->p->bufs.v[i];
        if ((b->kind != PB_OUTPUT && b->kind != PB_SAVED) || b->type.rank == 0) continue;
        host_printf(h, "    case B_%s:\n", b->name);
        for (int j = 0; j < b->type.rank; j++) {
            host_printf(h, "        dim[%d] = ", j);
            host_expr(h, b->type.dim[j]->size);
            host_puts(h, ";\n");
        }
        host_puts(h, "        break;\n");
    }
    host_puts(h, "    default: break;\n    }\n}\n\n");
}

/* Writes the assignment of size e to member `name`; nothing if e is NULL. */
static void emit_shape_field(Host *h, const char *name, const Expr *e) {
    if (!e) return;
    host_printf(h, "        out->%s = ", name);
    host_expr(h, e);
    host_puts(h, ";\n");
}

/* Writes the C function that returns, for given sizes, the shape of a variable in checkpoints, its
 * number of elements, fan-in and fan-out, and for a transposed one its number of columns. */
static void emit_var_shape(Host *h) {
    host_puts(h, "static void var_shape(int var, const int64_t *n, rt_var_shape *out) {\n"
                 "    (void)n;\n    *out = (rt_var_shape){.rank = 0};\n    switch (var) {\n");
    for (int i = 0; i < h->m->vars.n; i++) {
        const Var *v = h->m->vars.v[i];
        const Type written = var_written_type(v);
        int rank = v->save_rank ? v->save_rank : written.rank;
        host_printf(h, "    case %d: /* ", i);
        host_comment(h, v->path);
        host_printf(h, " */\n        out->rank = %d;\n", rank);
        for (int j = 0; j < rank; j++)
            emit_shape_field(h, arena_printf(h->a, "dim[%d]", j),
                             v->save_rank ? v->save_shape[j] : written.dim[j]->size);
        emit_shape_field(h, "count", type_count(h->a, &v->type));
        emit_shape_field(h, "fan_in", v->init.fan_in);
        emit_shape_field(h, "fan_out", v->init.fan_out);
        const Expr *columns = expr_const(h->a, 1);
        for (int j = 0; j < v->transposed; j++)
            columns = expr_mul(h->a, columns, v->type.dim[j]->size);
        if (v->transposed) emit_shape_field(h, "transposed", columns);
        host_puts(h, "        break;\n");
    }
    host_puts(h, "    default: break;\n    }\n}\n\n");
}

/* ---- program -------- */
/* A hash of what the plan's first variant computes, independent of source positions: FNV-1a
 * (Fowler, Noll, Vo). Checkpoints record it to tell programs apart. */
uint64_t plan_fingerprint(Arena *a, const Plan *p) {
    if (p->fingerprint) return p->fingerprint;
    StrBuf b = sb_new(a);
    module_print_computation(&b, p->m);
    if (p->partitioned) sb_puts(&b, "by parts"); /* sums are cut elsewhere */
    if (p->m->recipe.sampled_boundary != 0)
        sb_printf(&b, "sampled boundary %a", p->m->recipe.sampled_boundary);
    uint64_t x = 0xcbf29ce484222325u;
    for (size_t i = 0; i < b.n; i++) x = (x ^ (unsigned char)b.s[i]) * 0x100000001b3u;
    return x;
}

/* Writes the members .n_NAME and .NAME of the program's table: the number of rows of another table,
 * and that table. */
static void emit_table_ref(Host *h, const char *name, int n) {
    host_printf(h, "    .n_%s = %d,\n    .%s = %s,\n", name, n, name, n ? name : "NULL");
}

/* The C name of the tables of a variant of the program; variants other than the first are in files
 * of their own. */
static const char *tables_name(Host *h, int variant) {
    return variant ? arena_printf(h->a, "rt_variant_%d", variant) : "tables";
}

/* Writes the list of the program's variants, in the file of the first; nothing if there is only
 * one. */
static void emit_variants(Host *h) {
    int n = h->p->n_variants;
    if (h->p->variant || n < 2) return;
    for (int i = 1; i < n; i++) host_printf(h, "extern const rt_program %s;\n", tables_name(h, i));
    host_puts(h, "static const rt_program *const variants[] = {");
    for (int i = 0; i < n; i++) host_printf(h, "%s&%s", i ? ", " : "", tables_name(h, i));
    host_puts(h, "};\n");
}

/* Writes the program's main table, which refers to all others. The numbers are those of the rows in
 * other tables. */
static void emit_program(Host *h, int n_metrics, int n_groups, int n_exchanges) {
    host_printf(h, "%sconst rt_program %s = {\n    .name = ", h->p->variant ? "" : "static ",
                tables_name(h, h->p->variant));
    host_string(h, h->m->name);
    host_puts(h, ",\n    .source = ");
    host_string(h, h->m->source_path ? h->m->source_path : "");
    host_puts(h, ",\n    .compiler = \"gnnc\",\n    .options = ");
    host_string(h, h->p->options ? h->p->options : "");
    host_printf(h, ",\n    .tf32 = %s", h->p->tf32 ? "true" : "false");
    host_printf(h, ",\n    .fingerprint = UINT64_C(0x%016" PRIx64 "),\n",
                plan_fingerprint(h->a, h->p));
    emit_table_ref(h, "syms", h->m->syms.n);
    emit_table_ref(h, "spaces", h->m->spaces.n);
    emit_table_ref(h, "columns", h->m->cols.n);
    emit_table_ref(h, "maps", h->m->maps.n);
    emit_table_ref(h, "vars", h->m->vars.n);
    emit_table_ref(h, "bufs", h->p->bufs.n);
    emit_table_ref(h, "phases", h->p->phases.n);
    host_printf(h,
                "    .n_streams = %d,\n    .buf_count = buf_count,\n    .buf_shape = buf_shape,\n"
                "    .var_shape = var_shape,\n",
                h->m->n_streams);
    host_recipe(h, n_metrics);
    host_sampling(h);
    if (h->p->choice) {
        host_puts(h, "    .choice = ");
        host_string(h, h->p->choice);
        host_puts(h, ",\n");
    }
    if (!h->p->variant && h->p->n_variants > 1)
        host_printf(h, "    .n_variants = %d,\n    .variants = variants,\n", h->p->n_variants);
    if (h->p->in_f32)
        host_printf(h, "    .in_f32 = %d,\n    .in_f32_bytes = %" PRId64 ",\n", h->p->in_f32,
                    h->p->in_f32_bytes);
    if (h->p->device) host_printf(h, "    .device = &rt_device_%s,\n", h->p->device);
    for (int i = 0; h->p->device && i < RUNTIME_COUNT; i++) {
        const char *own = target_runtime_kernel_name(h->a, h->p, (RuntimeKernel)i);
        if (!own) continue;
        host_printf(h, "    .device_%s = %s_%s,\n", target_runtime_kernel_kind((RuntimeKernel)i),
                    own, h->p->device);
    }
    if (h->m->options.n)
        host_printf(h, "    .n_options = %d,\n    .option = model_options,\n", h->m->options.n);
    if (n_groups) emit_table_ref(h, "groups", n_groups);
    if (h->p->partitioned) host_puts(h, "    .by_parts = true,\n");
    if (n_exchanges) emit_table_ref(h, "exchanges", n_exchanges);
    if (h->p->device && plan_spmm_count(h->p))
        host_printf(h, "    .n_spmms = %d,\n    .spmm = spmm,\n", plan_spmm_count(h->p));
    host_puts(h, "};\n");
}

/* Writes the table of the model's options: numbers that may be set when the program runs, with
 * their limits and the size or buffer that holds each. */
static void emit_options(Host *h) {
    open_table(h, "rt_model_option", "model_options", h->m->options.n);
    for (int i = 0; i < h->m->options.n; i++) {
        const ModelOption *o = &h->m->options.v[i];
        int buf = -1;
        for (int b = 0; b < h->p->bufs.n && !o->dim; b++) {
            const PBuf *of = h->p->bufs.v[b];
            if (of->kind == PB_INPUT && strcmp(of->io_name, o->input) == 0) buf = b;
        }
        host_puts(h, "    {.name = ");
        host_string(h, o->name);
        host_printf(
            h, ", .sym = %s, .buf = %d, .first = %a, .least = %a, .most = %a, .why_least = ",
            o->dim ? h->sym[o->dim->size->sym->id] : "-1", buf, o->first, o->least, o->most);
        host_string(h, o->why_least);
        host_puts(h, ", .why_most = ");
        host_string(h, o->why_most);
        host_puts(h, "},\n");
    }
    close_table(h, h->m->options.n);
}

/* Writes the names of the sizes that are bound when data is loaded, by number. */
static void emit_syms(Host *h) {
    open_table(h, "char *const", "syms", h->m->syms.n);
    for (int i = 0; i < h->m->syms.n; i++) {
        host_printf(h, "    [%s] = ", h->sym[i]);
        host_string(h, h->m->syms.v[i]->name);
        host_puts(h, ",\n");
    }
    close_table(h, h->m->syms.n);
}

/* Writes all tables and the functions in them, and the program's public symbol. */
void host_tables(Host *h) {
    emit_syms(h);
    h->in_batches = find_batch_buffers(h);
    emit_spaces(h);
    emit_columns(h);
    emit_maps(h);
    emit_vars(h);
    emit_bufs(h);
    emit_phase_table(h);
    int n_groups = emit_gemm_groups(h), n_exchanges = emit_exchanges(h);
    if (h->p->device) emit_spmms(h);
    emit_options(h);
    emit_buf_count(h);
    emit_buf_shape(h);
    emit_var_shape(h);
    int n_metrics = host_metrics(h);
    host_sampling_tables(h);
    host_printf(h, "%s const rt_program %s;\n", h->p->variant ? "extern" : "static",
                tables_name(h, h->p->variant));
    emit_variants(h);
    emit_program(h, n_metrics, n_groups, n_exchanges);
    if (!h->p->variant)
        host_printf(h,
                    "extern const gnnc_program %s;\n"
                    "const gnnc_program %s = {RT_PROGRAM_VERSION, &tables};\n",
                    host_symbol(h), host_symbol(h));
}
