/* --report=shapes: what sizes there are, who gives them, everything that follows from
 * them, and what is checked when data is loaded.  Nothing is checked in a step, and no
 * size is compiled in but those printed as numbers: one program runs every batch shape. */
#include "codegen/report/report.h"

#include <string.h>

static const char *const space_word[] = {[SP_DIM] = "dim",
                                         [SP_NODE] = "node",
                                         [SP_EDGE] = "edge",
                                         [SP_GRAPH] = "graph",
                                         [SP_NZ] = "stored entries"};

/* ---- who gives a size --------------------------------------------------------------------- */
/* Whether column c has dimension s, or as many categories as s has elements. */
static bool has_dim(const Column *c, const Space *s) {
    for (int i = 1; i < c->type.rank; i++)
        if (c->type.dim[i] == s) return true;
    return c->cat == s;
}

/* The first column of the data that has dimension s, which therefore gives its size; NULL: there is
 * none. */
static const Column *first_with(const Module *m, const Space *s) {
    for (int i = 0; i < m->cols.n; i++)
        if (has_dim(m->cols.v[i], s)) return m->cols.v[i];
    return NULL;
}

/* Where the edges of an edge space come from, in words, as "'cites' reversed". */
static const char *relation_text(const Report *r, const Space *s) {
    const char *base = s->base[0] ? s->base[0]->name : "";
    switch (s->rel) {
    case REL_SELF_LOOPS:
        return arena_printf(r->a, "'%s' with a self loop per node", base);
    case REL_NO_LOOPS:
        return arena_printf(r->a, "'%s' without self loops", base);
    case REL_REVERSE:
        return arena_printf(r->a, "'%s' reversed", base);
    case REL_UNDIRECTED:
        return arena_printf(r->a, "'%s' both ways", base);
    case REL_UNION:
        return arena_printf(r->a, "union of '%s' and '%s'", base, s->base[1]->name);
    case REL_WHERE:
        return arena_printf(r->a, "the edges of '%s' where '%s' holds, counted in @load", base,
                            s->cond);
    case REL_LINKS:
        return arena_printf(r->a, "a step's edges of '%s', then their negatives", base);
    case REL_POSITIVES:
        return arena_printf(r->a, "a step's edges of '%s'", base);
    case REL_QUERIES:
        return arena_printf(r->a, "a step's queries: sources (and kinds) of '%s'", base);
    case REL_ANSWERS:
        return arena_printf(r->a, "the answers to '%s'", base);
    case REL_KNOWN:
    case REL_EARLIER:
        return arena_printf(r->a, "other true edges beside each of '%s'", base);
    case REL_BASE:
        break;
    }
    return arena_printf(r->a, "rows of edge table '%s'", s->name);
}

/* What a space is that has only the first rows of another one, in words. */
static const char *prefix_text(const Report *r, const Space *s) {
    const char *what = s->kind == SP_NODE ? "nodes" : "edges";
    return arena_printf(r->a, "first rows of '%s': the %s of a batch that %d more layers need",
                        s->prefix_of->name, what, s->hops);
}

/* Where the size of space s comes from, in words: a table, a column, or computed. */
static const char *size_origin(const Report *r, const Space *s) {
    const Column *c;
    if (s->distinct_of)
        return arena_printf(r->a, "rows of '%s' that a batch has, each once", s->distinct_of->name);
    if (s->prefix_of) return prefix_text(r, s);
    switch (s->kind) {
    case SP_NODE:
        return arena_printf(r->a, "rows of node table '%s'", s->name);
    case SP_GRAPH:
        return arena_printf(r->a, "rows of graph table '%s'", s->name);
    case SP_EDGE:
        return relation_text(r, s);
    case SP_NZ:
        return arena_printf(r->a, "stored entries of '%s.%s'", s->nz_of->space->name,
                            s->nz_of->name);
    case SP_DIM:
        break;
    }
    if (s->size->kind != EX_SYM) return "computed";
    c = first_with(r->p->m, s);
    if (!c) return "computed";
    return arena_printf(r->a, "%s of '%s.%s'", c->cat == s ? "categories" : "width", c->space->name,
                        c->name);
}

/* ---- checks at load ------------------------------------------------------------------------ */
typedef VEC(const char *) Checks;

/* Adds the check of a column's dimension (or number of categories) s: that it is a constant of the
 * model, or as large as in the first column that has it. */
static void check_dim(Report *r, Checks *out, const Column *c, const Space *s) {
    int64_t n;
    const char *what = c->cat == s ? "categories" : "width";
    if (expr_is_const(s->size, &n))
        vec_push(r->a, out,
                 (const char *)arena_printf(r->a, "'%s.%s': %s is %lld", c->space->name, c->name,
                                            what, (long long)n));
    else if (first_with(r->p->m, s) != c)
        vec_push(r->a, out,
                 (const char *)arena_printf(r->a, "'%s.%s': %s is %s, as everywhere else",
                                            c->space->name, c->name, what, s->name));
}

/* Adds the checks of one column of the data: its kind, its number of rows, its dimensions and
 * categories. */
static void check_column(Report *r, Checks *out, const Column *c) {
    vec_push(r->a, out,
             (const char *)arena_printf(r->a, "'%s.%s' %s; one row per row of its table",
                                        c->space->name, c->name, column_facts[c->kind].rule));
    for (int i = 1; i < c->type.rank; i++) check_dim(r, out, c, c->type.dim[i]);
    if (c->cat && type_find(&c->type, c->cat) < 0) check_dim(r, out, c, c->cat);
}

/* All checks of the data that are made when data is loaded, as sentences. */
static Checks checks_of(Report *r) {
    const Module *m = r->p->m;
    Checks out = {0};
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        if (s->kind != SP_EDGE || s->rel != REL_BASE) continue;
        vec_push(r->a, &out,
                 (const char *)arena_printf(r->a, "ends of '%s' are rows of '%s' and '%s'", s->name,
                                            s->src->name, s->dst->name));
    }
    for (int i = 0; i < m->cols.n; i++) check_column(r, &out, m->cols.v[i]);
    vec_push(r->a, &out, (const char *)"every buffer's size fits 63 bits, all of them the memory");
    return out;
}

/* ---- text -------- */
/* Prints each index space with its size and where that comes from, as text. */
static void print_spaces(Report *r) {
    sb_puts(r->b, "  index spaces\n");
    for (int i = 0; i < r->p->m->spaces.n; i++) {
        const Space *s = r->p->m->spaces.v[i];
        sb_printf(r->b, "    %s %s: ", space_word[s->kind], s->name);
        report_amount(r, s->size, "");
        bool constant = expr_is_const(s->size, NULL);
        sb_printf(r->b, "  %s\n", constant ? "compiled in" : size_origin(r, s));
    }
}

/* Prints the extent of each kernel's parallel loop and the shape of each matrix product, as
 * text. */
static void print_loops(Report *r) {
    sb_puts(r->b, "  parallel loops and library calls\n");
    for (int i = 0; i < r->p->phases.n; i++)
        for (int k = 0; k < r->p->phases.v[i]->steps.n; k++) {
            const PStep *s = r->p->phases.v[i]->steps.v[k];
            if (s->kind != PS_GEMM && !s->extent) continue;
            sb_printf(r->b, "    @%s %d %s: ", r->p->phases.v[i]->name, k, cg_step_name(s));
            if (s->kind == PS_GEMM)
                sb_puts(r->b, cg_step_shape(r->a, s));
            else
                report_amount(r, s->extent, "");
            sb_puts(r->b, "\n");
        }
}

/* Prints the element type and number of elements of each buffer, as text. */
static void print_buffers(Report *r) {
    sb_puts(r->b, "  buffers\n");
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        sb_printf(r->b, "    %s: %s[", b->name, dtype_name(b->dt));
        expr_print(r->b, b->count);
        sb_puts(r->b, "]");
        int64_t v;
        if (!expr_is_const(b->count, NULL) && report_value(r, b->count, &v))
            sb_printf(r->b, " = %lld", (long long)v);
        sb_puts(r->b, "\n");
    }
}

/* What a training step's batch consists of, in words. */
static const char *batch_text(const Report *r, const Sampling *s) {
    long long n = s->batch;
    if (s->n_hops) return arena_printf(r->a, "%lld seeds and %d hops", n, s->n_hops);
    if (s->clusters) return arena_printf(r->a, "%lld of %lld clusters", n, (long long)s->clusters);
    return arena_printf(r->a, "%lld graphs", n);
}

/* Prints the report as text. checks: the sentences of checks_of(). */
static void print_text(Report *r, const Checks *checks) {
    int bound = 0;
    for (int i = 0; i < r->p->m->spaces.n; i++)
        bound += !expr_is_const(r->p->m->spaces.v[i]->size, NULL);
    sb_printf(r->b, "shapes: %d sizes bound when data is loaded; 0 checks in a step\n", bound);
    const Sampling *sample = &r->p->m->recipe.sample;
    if (sample->batch)
        sb_printf(
            r->b,
            "  @train runs over batches of %s: one program for all of them, sizes of rows and "
            "edges bound before each step\n",
            batch_text(r, sample));
    print_spaces(r);
    print_buffers(r);
    print_loops(r);
    sb_puts(r->b, "  checked when data is loaded\n");
    for (int i = 0; i < checks->n; i++) sb_printf(r->b, "    %s\n", checks->v[i]);
}

/* ---- JSON ------------------------------------------------------------------------------------ */
/* Prints each index space with its size and where that comes from, as a JSON array. */
static void json_spaces(Report *r) {
    json_array(r->j, "spaces");
    for (int i = 0; i < r->p->m->spaces.n; i++) {
        const Space *s = r->p->m->spaces.v[i];
        json_object(r->j, NULL);
        json_text(r->j, "name", s->name);
        json_text(r->j, "kind", space_word[s->kind]);
        report_json_expr(r, "size", s->size);
        json_text(r->j, "from", expr_is_const(s->size, NULL) ? "compiled in" : size_origin(r, s));
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints the element type and number of elements of each buffer, as a JSON array. */
static void json_buffers(Report *r) {
    json_array(r->j, "buffers");
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        json_object(r->j, NULL);
        json_text(r->j, "name", b->name);
        json_text(r->j, "type", dtype_name(b->dt));
        report_json_expr(r, "count", b->count);
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints the extent of a step's parallel loop, or the shape of its matrix product, as a JSON
 * object. */
static void json_loop(Report *r, const PPhase *ph, int step) {
    const PStep *s = ph->steps.v[step];
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_int(r->j, "step", step);
    json_text(r->j, "name", cg_step_name(s));
    if (s->kind == PS_GEMM) {
        report_json_expr(r, "batch", s->gemm.batch);
        report_json_expr(r, "m", s->gemm.m);
        report_json_expr(r, "n", s->gemm.n);
        report_json_expr(r, "k", s->gemm.k);
    } else {
        report_json_expr(r, "extent", s->extent);
    }
    json_end(r->j);
}

/* Prints the report as JSON. checks: the sentences of checks_of(). */
static void print_json(Report *r, const Checks *checks) {
    json_object(r->j, "shapes");
    json_int(r->j, "checks_per_step", 0);
    json_spaces(r);
    json_buffers(r);
    json_array(r->j, "loops");
    for (int i = 0; i < r->p->phases.n; i++)
        for (int k = 0; k < r->p->phases.v[i]->steps.n; k++) {
            const PStep *s = r->p->phases.v[i]->steps.v[k];
            if (s->kind == PS_GEMM || s->extent) json_loop(r, r->p->phases.v[i], k);
        }
    json_end(r->j);
    json_array(r->j, "checks_at_load");
    for (int i = 0; i < checks->n; i++) json_text(r->j, NULL, checks->v[i]);
    json_end(r->j);
    json_end(r->j);
}

/* Prints the report: sizes, buffers, loops, and what is checked when data is loaded. */
void report_shapes(Report *r) {
    Checks checks = checks_of(r);
    (r->j ? print_json : print_text)(r, &checks);
}
