/* How a program is trained, as tables of runtime/program.h: metrics, the recipe, what batches are.
 */
#include "codegen/host/host.h"

#include <inttypes.h>

/* The name of the metric that buffer b holds, such as "accuracy" for the output "accuracy.train";
 * link models have held-out metrics only, "mrr.val". NULL: it holds none. */
static const char *metric_name(const Host *h, const PBuf *b) {
    SplitKind split = h->m->recipe.sample.train_links ? SPLIT_VAL : SPLIT_TRAIN;
    bool scalar = b->kind == PB_OUTPUT && b->type.rank == 0;
    return scalar && b->use.split == split ? b->use.of : NULL;
}

/* Writes the table of the metrics' names; returns how many there are. */
int host_metrics(Host *h) {
    int n = 0;
    for (int i = 0; i < h->p->bufs.n; i++) {
        const char *name = metric_name(h, h->p->bufs.v[i]);
        if (!name) continue;
        host_puts(h, n++ ? ", " : "static const char *const metrics[] = {");
        host_string(h, name);
    }
    if (n) host_puts(h, "};\n\n");
    return n;
}

/* ---- fields, a line each ---------------------------------------------------------------- */
/* Writes a floating-point member of an initializer. (The field_ functions are chosen by the kinds
 * in runtime/contract.def.) */
static void field_REAL(Host *h, const char *name, double v) {
    if (__builtin_isinf(v))
        host_printf(h, "        .%s = %s__builtin_inf(),\n", name, v < 0 ? "-" : "");
    else
        host_printf(h, "        .%s = %.17g,\n", name, v);
}

/* Writes an integer member of an initializer. */
static void field_INT(Host *h, const char *name, int64_t v) {
    host_printf(h, "        .%s = %" PRId64 ",\n", name, v);
}

/* Writes a boolean member of an initializer. */
static void field_BOOL(Host *h, const char *name, bool v) {
    host_printf(h, "        .%s = %s,\n", name, v ? "true" : "false");
}

/* Writes a string member of an initializer; NULL stays NULL. */
static void field_TEXT(Host *h, const char *name, const char *v) {
    host_printf(h, "        .%s = ", name);
    host_string(h, v);
    host_puts(h, ",\n");
}

/* Writes a member of an initializer whose value is a C name, such as a constant of the runtime or a
 * table. */
static void field_ENUM(Host *h, const char *name, const char *constant) {
    host_printf(h, "        .%s = %s,\n", name, constant);
}

/* Writes the training recipe (optimizer, schedule, ..) as a member of the program's table.
 * n_metrics: as host_metrics() returned it. */
void host_recipe(Host *h, int n_metrics) {
    const Recipe *r = &h->m->recipe;
    host_puts(h, "    .recipe = {\n");
    field_BOOL(h, "present", r->present);
#define RECIPE(kind, name, word) field_##kind(h, #name, r->name);
#define RECIPE_ENUM(type, rt_type, name, word) field_ENUM(h, #name, host_##type[r->name]);
#include "runtime/contract.def"
    host_printf(h, "        .n_metrics = %d,\n        .metrics = %s,\n    },\n", n_metrics,
                n_metrics ? "metrics" : "NULL");
}

/* ---- batches -------------------------------------------------------------------------------- */
/* At most how many edges of relation `rel` are sampled for each row at a hop; -1: all; 0: the
 * relation is not sampled. */
static int64_t fanout_of(const Sampling *s, const Space *rel, int hop) {
    for (int i = 0; i < s->rels.n; i++)
        if (s->rels.v[i].rel == rel) return s->rels.v[i].fanout[hop];
    return 0;
}

/* Writes the table fanout[hop][space] of the number of edges to sample for each row. */
static void emit_fanouts(Host *h, const Sampling *s) {
    if (!s->n_hops) return;
    host_printf(h, "static const int32_t fanout[][%d] = {\n", h->m->spaces.n);
    for (int hop = 0; hop < s->n_hops; hop++) {
        host_puts(h, "    {");
        for (int i = 0; i < h->m->spaces.n; i++)
            host_printf(h, "%s%" PRId64, i ? ", " : "", fanout_of(s, h->m->spaces.v[i], hop));
        host_puts(h, "},\n");
    }
    host_puts(h, "};\n");
}

/* Writes a table of the ids of n columns; nothing for n = 0. */
static void emit_column_ids(Host *h, const char *name, Column *const *c, int n) {
    if (n) host_printf(h, "static const int %s[] = {", name);
    for (int i = 0; i < n; i++) host_printf(h, "%d%s", c[i]->id, i + 1 < n ? ", " : "};\n");
}

/* Writes the tables that host_sampling() refers to, if the recipe trains on batches. */
void host_sampling_tables(Host *h) {
    const Sampling *s = &h->m->recipe.sample;
    if (!s->batch) return;
    emit_fanouts(h, s);
    emit_column_ids(h, "sample_weights", s->weights.v, s->weights.n);
    emit_column_ids(h, "sample_times", s->times.v, s->times.n);
    emit_column_ids(h, "sample_brought", s->request_columns.v, s->request_columns.n);
}

/* The space with a row for each label or, in a program that predicts on request, for each
 * prediction; NULL: there is none. */
static const Space *row_space(const Module *m, const Column *label) {
    const Func *predict = func_of(m, PHASE_PREDICT);
    const Op *pred = predict && m->recipe.sample.serve ? func_output_of(predict, OUT_PRED) : NULL;
    if (label) return label->space;
    return pred && pred->in[0]->type.rank ? pred->in[0]->type.dim[0] : NULL;
}

/* The runtime's constant for what a batch is drawn around: clusters, whole graphs, or single
 * rows. */
static const char *seed_kind(const Module *m, const Column *label) {
    const Space *rows = row_space(m, label);
    if (m->recipe.sample.clusters) return host_SeedKind[SEEDS_CLUSTERS];
    return host_SeedKind[rows && rows->kind == SP_GRAPH ? SEEDS_GRAPHS : SEEDS_ROWS];
}

/* Writes how batches are sampled as a member of the program's table; nothing if the recipe does not
 * train on batches. */
void host_sampling(Host *h) {
    const Sampling *s = &h->m->recipe.sample;
    const Column *label = module_target(h->m, false), *split = module_target(h->m, true);
    if (!s->batch) return;
    host_puts(h, "    .sampling = {\n");
#define SAMPLING(kind, name, word, first, of) field_##kind(h, #name, s->name);
#define SAMPLING_ENUM(type, rt_type, name, word, first, of)                                        \
    field_ENUM(h, #name, host_##type[s->name]);
#include "runtime/contract.def"
    field_ENUM(h, "seeds", seed_kind(h->m, label));
    field_INT(h, "n_hops", s->n_hops);
    field_ENUM(h, "fanout", s->n_hops ? "fanout[0]" : "NULL");
    field_INT(h, "n_weights", s->weights.n);
    field_ENUM(h, "weights", s->weights.n ? "sample_weights" : "NULL");
    field_INT(h, "n_times", s->times.n);
    field_ENUM(h, "times", s->times.n ? "sample_times" : "NULL");
    field_INT(h, "n_brought", s->request_columns.n);
    field_ENUM(h, "brought", s->request_columns.n ? "sample_brought" : "NULL");
    field_INT(h, "label", label ? label->id : -1);
    field_INT(h, "split", split ? split->id : -1);
    host_puts(h, "    },\n");
}
