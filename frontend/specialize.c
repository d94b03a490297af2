/* --specialize=DATA: what a data directory tells about a model's sizes; and data for `gnnc run`.
 *
 * The module's spaces and columns, without any phase or buffer, are a program to the
 * runtime; binding that program to the data finds every size exactly as a trainer will,
 * derived relations included, and reports the same mistakes.  Widths and numbers of
 * categories then become constants, so that loops over them are unrolled and vectors have
 * their length; numbers of nodes and edges are used by the reports alone. */
#include "frontend/cli/cli.h"

#include "runtime/bind/bind.h"

/* ---- the module's tables as the runtime's ------------------------------------------------- */
static int id_of(const Space *s) {
    return s ? s->id : -1;
}

static int sym_of(const Expr *size) {
    return size->kind == EX_SYM ? size->sym->id : -1;
}

/* A space as the tables of a compiled program describe it to the runtime. Numbers are ids; -1:
 * there is none. */
static rt_space space_table(const Module *m, const Space *s) {
    rt_space t = {.name = s->name,
                  .kind = (rt_space_kind)s->kind,
                  .sym = sym_of(s->size),
                  .fixed = -1,
                  .rel = s->kind == SP_EDGE ? (rt_rel_kind)s->rel : RT_REL_BASE,
                  .src = id_of(s->src),
                  .dst = id_of(s->dst),
                  .base = {id_of(s->base[0]), id_of(s->base[1])},
                  .cond_buf = -1,
                  .col = s->nz_of ? s->nz_of->id : -1,
                  .graph = id_of(s->graph),
                  .first = s->prefix_of != NULL,
                  .whole = id_of(s->prefix_of),
                  .hops = s->distinct_of && !s->distinct_of->prefix_of ? m->recipe.sample.n_hops
                                                                       : s->hops,
                  .once = s->distinct_of != NULL,
                  .drawn = space_is_drawn(s),
                  .of_batch = space_of_batch(s),
                  .sampled = space_is_sampled(m, s),
                  .varies = space_varies(m, s)};
    if (s->kind == SP_DIM) expr_is_const(s->size, &t.fixed);
    return t;
}

/* A column as the tables of a compiled program describe it to the runtime. */
static rt_column column_table(const Column *c) {
    rt_column t = {.name = c->name,
                   .kind = (rt_col_kind)c->kind,
                   .space = c->space->id,
                   .rank = c->type.rank > 0 ? c->type.rank - 1 : 0,
                   .cat = id_of(c->cat),
                   .nz = id_of(c->nz),
                   .buf = -1};
    for (int i = 1; i < c->type.rank; i++) t.dim[i - 1] = c->type.dim[i]->id;
    return t;
}

/* The options of the model as a program's table; a size that is an option has its default. */
static const rt_model_option *options_table(Arena *a, const Module *m) {
    rt_model_option *o = NEWN(a, rt_model_option, (size_t)m->options.n + 1);
    for (int i = 0; i < m->options.n; i++) {
        const ModelOption *of = &m->options.v[i];
        o[i] = (rt_model_option){.name = of->name,
                                 .sym = of->dim ? sym_of(of->dim->size) : -1,
                                 .buf = -1,
                                 .first = of->first};
    }
    return o;
}

/* A program with tables of the module's spaces, columns and options alone: enough for the
 * runtime to bind data to it. */
static rt_program program_of(Arena *a, const Module *m) {
    rt_space *spaces = NEWN(a, rt_space, (size_t)m->spaces.n + 1);
    rt_column *columns = NEWN(a, rt_column, (size_t)m->cols.n + 1);
    for (int i = 0; i < m->spaces.n; i++) spaces[i] = space_table(m, m->spaces.v[i]);
    for (int i = 0; i < m->cols.n; i++) columns[i] = column_table(m->cols.v[i]);
    return (rt_program){.name = m->name,
                        .source = m->source_path ? m->source_path : m->name,
                        .n_syms = m->syms.n,
                        .n_spaces = m->spaces.n,
                        .n_columns = m->cols.n,
                        .spaces = spaces,
                        .columns = columns,
                        .n_options = m->options.n,
                        .option = options_table(a, m)};
}

/* For each column of the module, whether a function reads it. */
static bool *columns_read(Arena *a, const Module *m) {
    bool *read = NEWN(a, bool, (size_t)m->cols.n + 1);
    for (int i = 0; i < m->maps.n; i++)
        if (m->maps.v[i]->kind == MAP_COL) read[m->maps.v[i]->col->id] = true;
    for (int i = 0; i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_DATA) read[op->col->id] = true;
    return read;
}

/* The same program with a buffer for each column that is read: such a one must be there, and is
 * checked. */
static rt_program program_that_reads(Arena *a, const Module *m) {
    rt_program p = program_of(a, m);
    rt_column *columns = NEWN(a, rt_column, (size_t)m->cols.n + 1);
    rt_buf *bufs = NEWN(a, rt_buf, (size_t)m->cols.n + 1);
    const bool *read = columns_read(a, m);
    for (int i = 0; i < m->cols.n; i++) {
        columns[i] = p.columns[i];
        bufs[i] = (rt_buf){
            .name = m->cols.v[i]->name, .kind = RT_BUF_DATA, .dt = (rt_dtype)m->cols.v[i]->type.dt};
        if (read[i]) columns[i].buf = i;
    }
    p.columns = columns;
    p.bufs = bufs;
    p.n_bufs = m->cols.n;
    return p;
}

/* ---- constants in place of symbols -------- */
static void bind_expr(Arena *a, const Expr **e, const int64_t *width) {
    if (*e) *e = expr_bind(a, *e, width);
}

/* Replaces the symbols of known widths by numbers in all sizes of the module. */
static void bake(Module *m, const int64_t *width) {
    for (int i = 0; i < m->spaces.n; i++)
        if (m->spaces.v[i]->kind == SP_DIM) bind_expr(m->a, &m->spaces.v[i]->size, width);
    for (int i = 0; i < m->vars.n; i++) {
        Var *v = m->vars.v[i];
        bind_expr(m->a, &v->init.fan_in, width);
        bind_expr(m->a, &v->init.fan_out, width);
        for (int k = 0; k < v->save_rank; k++) bind_expr(m->a, &v->save_shape[k], width);
    }
    for (int i = 0; i < m->funcs.n; i++)
        for (Op *op = m->funcs.v[i]->first; op; op = op->next) bind_expr(m->a, &op->off, width);
}

/* Sizes of dimensions, with -1 for those of rows, edges and stored entries, and for options. */
static int64_t *widths(Arena *a, const Module *m, const int64_t *size) {
    int64_t *w = NEWN(a, int64_t, (size_t)m->syms.n + 1);
    for (int i = 0; i < m->syms.n; i++) {
        const Space *s = m->syms.v[i]->of;
        w[i] = s && s->kind == SP_DIM ? size[i] : -1;
    }
    for (int i = 0; i < m->options.n; i++)
        if (m->options.v[i].dim) w[m->options.v[i].dim->size->sym->id] = -1;
    return w;
}

/* ---- all of it -------- */
/* Makes the sizes of relations unknown (-1) that are found only after the data are bound. */
static void forget_late(const Module *m, const RtBound *b, int64_t *size) {
    for (int i = 0; i < m->spaces.n; i++)
        if (m->spaces.v[i]->kind == SP_EDGE && !b->ready[i])
            size[sym_of(m->spaces.v[i]->size)] = -1;
}

/* Reports tables whose rows have a time in the data but not in the model, if the model reads them
 * without regard to it. Only where the target's rows have a time, too: else nothing is later than
 * they are. t->time: the data say which column it is; one that was only found by its kind is not
 * insisted on. (elab_time.c checks times that the model declares.) */
static bool check_undeclared_times(Ctx *c, const Module *m, const RtBound *b) {
    const Column *target = module_target(m, false);
    const bool *read = module_reads(m);
    bool ok = true;
    if (!target || !rt_table_time(b->table[target->space->id])) return true;
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        const RtColumn *time = rt_table_time(b->table[i]);
        if (!time || !b->table[i]->time || !read[i] || !space_is_untimed(m, s)) continue;
        ok = false;
        diag_add(c, DIAG_E0318, s->span,
                 "rows of '%s' have the row time '%s' in the data and are read whatever it is: "
                 "declare it and say sample { .. time g.%s.%s }, or declare the table timeless",
                 s->name, time->name, s->name, time->name);
    }
    return ok;
}

static void close_data(void *arg) {
    rt_dataset_close(arg);
}

/* Reads the dataset `data` for the interpreter, with what the module's functions read of it. It
 * lives as long as c. NULL after a diagnostic. */
RtDataset *cli_data(Ctx *c, const Module *m, const char *data) {
    rt_program program = program_that_reads(c->a, m);
    RtRuntime rt = {.err = {""}};
    RtMemory memory = {.index_bytes = 0};
    RtExec x = {.program = &program, .threads = 1, .rt = &rt};
    x.n = NEWN(c->a, int64_t, (size_t)m->syms.n + 1);
    x.buf = NEWN(c->a, void *, (size_t)m->cols.n + 1);
    rt_pool_init(&rt.pool, NULL);
    RtDataSource source = {.alone = false};
    bool ok = rt_dataset_open(NULL, data, true, &source.data, &rt.err) == GNNC_OK &&
              rt_bind_sizes(&x, &memory, &source) == GNNC_OK && rt_bind_arrays(&x) == GNNC_OK;
    rt_bind_close(&x);
    rt_pool_free(&rt.pool);
    if (source.data) ctx_defer(c, close_data, source.data);
    if (!ok) diag_add(c, DIAG_E0005, (Span){0}, "--data: %s", rt.err.text);
    return ok ? source.data : NULL;
}

/* Reads the sizes of the dataset `data` and writes its widths into the module as numbers.
 * Returns all sizes by symbol, -1 where one is not known yet; NULL after a diagnostic. */
const int64_t *cli_specialize(Ctx *c, Module *m, const char *data) {
    rt_program program = program_of(c->a, m);
    int64_t *size = NEWN(c->a, int64_t, (size_t)m->syms.n + 1);
    RtRuntime rt = {.err = {""}};
    RtMemory memory = {.index_bytes = 0};
    RtExec x = {.program = &program, .n = size, .threads = 1, .rt = &rt};
    rt_pool_init(&rt.pool, NULL);
    RtDataSource source = {.alone = true};
    bool ok = rt_dataset_open(NULL, data, true, &source.data, &rt.err) == GNNC_OK &&
              rt_bind_sizes(&x, &memory, &source) == GNNC_OK && rt_bind_arrays(&x) == GNNC_OK;
    if (ok) forget_late(m, rt.bound, size);
    bool timely = !ok || check_undeclared_times(c, m, rt.bound);
    rt_bind_close(&x);
    rt_dataset_close(source.data);
    rt_pool_free(&rt.pool);
    if (!ok) diag_add(c, DIAG_E0005, (Span){0}, "--specialize: %s", rt.err.text);
    ok = ok && timely;
    if (ok) bake(m, widths(c->a, m, size));
    return ok ? size : NULL;
}
