/* How a program is trained, as tables of runtime/program.h: metrics, the recipe, what batches are.
 */
#include "codegen/host.h"

#include <inttypes.h>
#include <string.h>

/* "accuracy" of an output "accuracy.train" of some phase; of links, which are held out, "mrr.val".
 */
static const char *metric_of(const Host *h, const PBuf *b) {
    const char *dot = b->kind == PB_OUTPUT ? strrchr(b->io_name, '.') : NULL;
    const char *split = h->m->recipe.sample.train_links ? ".val" : ".train";
    if (!dot || strcmp(dot, split) || b->type.rank != 0) return NULL;
    return arena_strndup(h->a, b->io_name, (size_t)(dot - b->io_name));
}

int host_metrics(Host *h) {
    int n = 0;
    for (int i = 0; i < h->p->bufs.n; i++) {
        const char *name = metric_of(h, h->p->bufs.v[i]);
        if (!name) continue;
        host_puts(h, n++ ? ", " : "static const char *const metrics[] = {");
        host_string(h, name);
    }
    if (n) host_puts(h, "};\n\n");
    return n;
}

static void recipe_number(Host *h, const char *name, double v) {
    if (__builtin_isinf(v))
        host_printf(h, "        .%s = %s__builtin_inf(),\n", name, v < 0 ? "-" : "");
    else
        host_printf(h, "        .%s = %.17g,\n", name, v);
}

static void recipe_text(Host *h, const char *name, const char *v) {
    host_printf(h, "        .%s = ", name);
    host_string(h, v);
    host_puts(h, ",\n");
}

void host_recipe(Host *h, int n_metrics) {
    const Recipe *r = &h->m->recipe;
    host_printf(h, "    .recipe = {\n        .present = %s,\n", r->present ? "true" : "false");
    recipe_text(h, "model_name", r->model_name);
    recipe_text(h, "target", r->target);
    host_printf(h, "        .optim = %s,\n        .sched = %s,\n", host_OptimKind[r->kind],
                host_SchedKind[r->sched]);
    recipe_number(h, "lr", r->lr);
    recipe_number(h, "weight_decay", r->weight_decay);
    recipe_number(h, "momentum", r->momentum);
    recipe_number(h, "beta1", r->beta1);
    recipe_number(h, "beta2", r->beta2);
    recipe_number(h, "eps", r->eps);
    recipe_number(h, "clip_norm", r->clip_norm);
    recipe_number(h, "gamma", r->gamma);
    recipe_number(h, "min_lr", r->min_lr);
    host_printf(h, "        .nesterov = %s, .keep_max = %s, .keep_split = %d,\n",
                r->nesterov ? "true" : "false", r->keep_max ? "true" : "false", r->keep_split);
    host_printf(h,
                "        .warmup_epochs = %" PRId64 ", .step_epochs = %" PRId64
                ", .patience = %" PRId64 ",\n",
                r->warmup_epochs, r->step_epochs, r->patience);
    host_printf(h, "        .epochs = %" PRId64 ", .early_stop_patience = %" PRId64 ",\n",
                r->epochs, r->early_stop_patience);
    recipe_text(h, "keep_metric", r->keep_metric);
    host_printf(h, "        .n_metrics = %d, .metrics = %s,\n    },\n", n_metrics,
                n_metrics ? "metrics" : "NULL");
}

/* ---- batches -------------------------------------------------------------------------------- */
static int64_t fanout_of(const Sampling *s, const Space *rel, int hop) {
    for (int i = 0; i < s->rels.n; i++)
        if (s->rels.v[i].rel == rel) return s->rels.v[i].fanout[hop];
    return 0;
}

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

static void emit_column_ids(Host *h, const char *name, Column *const *c, int n) {
    if (n) host_printf(h, "static const int %s[] = {", name);
    for (int i = 0; i < n; i++) host_printf(h, "%d%s", c[i]->id, i + 1 < n ? ", " : "};\n");
}

void host_sampling_tables(Host *h) {
    const Sampling *s = &h->m->recipe.sample;
    if (!s->batch) return;
    emit_fanouts(h, s);
    emit_column_ids(h, "sample_weights", s->weights.v, s->weights.n);
    emit_column_ids(h, "sample_times", s->times.v, s->times.n);
}

static const char *seeds_of(const Sampling *s, const Column *label) {
    if (s->clusters) return host_SeedKind[SEEDS_CLUSTERS];
    return host_SeedKind[label && label->space->kind == SP_GRAPH ? SEEDS_GRAPHS : SEEDS_ROWS];
}

void host_sampling(Host *h) {
    const Sampling *s = &h->m->recipe.sample;
    const Column *label = module_target(h->m, false), *split = module_target(h->m, true);
    if (!s->batch) return;
    host_printf(h, "    .sampling = {\n        .batch = %" PRId64 ", .n_hops = %d, .fanout = %s,\n",
                s->batch, s->n_hops, s->n_hops ? "fanout[0]" : "NULL");
    host_printf(h, "        .seeds = %s, .clusters = %" PRId64 ",\n", seeds_of(s, label),
                s->clusters);
    host_printf(h, "        .n_weights = %d, .weights = %s, .n_times = %d, .times = %s,\n",
                s->weights.n, s->weights.n ? "sample_weights" : "NULL", s->times.n,
                s->times.n ? "sample_times" : "NULL");
    host_printf(h, "        .edges = %s, .drop_last = %d, .replace = %d, .disjoint = %d,\n",
                host_SampleEdges[s->edges], s->drop_last, s->replace, s->disjoint);
    host_printf(h,
                "        .inclusive = %d, .recent = %d, .workers = %" PRId64
                ", .prefetch = %" PRId64 ",\n",
                s->inclusive, s->recent, s->workers, s->prefetch);
    host_printf(h, "        .train_links = %s, .eval_links = %s,\n", host_LinksForm[s->train_links],
                host_LinksForm[s->eval_links]);
    host_printf(h, "        .negatives = %" PRId64 ", .corrupt = %s, .avoid = %d, .exclude = %d,\n",
                s->negatives, host_SampleCorrupt[s->corrupt], s->avoid, s->exclude);
    host_printf(h, "        .label = %d, .split = %d,\n    },\n", label ? label->id : -1,
                split ? split->id : -1);
}
