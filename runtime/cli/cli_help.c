/* --help: written from the model's own tables. */
#include <string.h>

#include "cli.h"
#include "cli_options.h"
#include "runtime/contract.h"
#include "runtime/exec/exec.h"

/* ---- what the model needs ------------------------------------------------------ */
static void print_column(const RtCli *c, const rt_column *col, FILE *f) {
    fprintf(f, "      %s: %s", col->name, rt_col_facts[col->kind].said);
    if (col->cat >= 0) fprintf(f, "[%s]", c->p->spaces[col->cat].name);
    for (int i = 0; i < col->rank; i++)
        fprintf(f, "%s%s%s", i ? ", " : "[", c->p->spaces[col->dim[i]].name,
                i + 1 == col->rank ? "]" : "");
    fputs(col->is_label ? "    (for train and eval)\n" : "\n", f);
}

static void print_table(const RtCli *c, int space, FILE *f) {
    const rt_space *s = &c->p->spaces[space];
    if (s->first) return; /* a batch's */
    if (s->kind == RT_SP_NODE)
        fprintf(f, "    node %s\n", s->name);
    else if (s->kind == RT_SP_GRAPH)
        fprintf(f, "    graph %s\n", s->name);
    else if (s->kind == RT_SP_EDGE && s->rel == RT_REL_BASE)
        fprintf(f, "    edge %s: %s -> %s\n", s->name, c->p->spaces[s->src].name,
                c->p->spaces[s->dst].name);
    else
        return;
    for (int i = 0; i < c->p->n_columns; i++)
        if (c->p->columns[i].space == space) print_column(c, &c->p->columns[i], f);
}

void rt_cli_print_needs(const RtCli *c, FILE *f) {
    fprintf(f, "\nThe data directory must hold\n");
    for (int s = 0; s < c->p->n_spaces; s++) print_table(c, s, f);
}

/* ---- what it is ------------------------------------------------------------------- */
void rt_cli_print_vars(const RtCli *c, rt_var_kind kind, const char *title, FILE *f) {
    const char *sep = title;
    for (int v = 0; v < c->p->n_vars; v++) {
        if (c->p->vars[v].kind != kind) continue;
        fprintf(f, "%s%s", sep, c->p->vars[v].path);
        sep = ", ";
    }
    if (sep != title) fputc('\n', f);
}

void rt_cli_print_layers(const RtCli *c, FILE *f) {
    for (int i = 0; i < gnnc_trainer_n_layers(c->t); i++)
        fprintf(f, "%s%s", i ? ", " : "  layers for embed: ", gnnc_trainer_layer_name(c->t, i));
    if (gnnc_trainer_n_layers(c->t)) fputc('\n', f);
}

static void print_schedule(const rt_recipe *r, FILE *f) {
    fprintf(f, "  schedule %s", rt_sched_kind_words.word[r->sched]);
    if (r->sched == RT_SCHED_STEP) fprintf(f, " every %lld", (long long)r->step_epochs);
    if (r->sched == RT_SCHED_PLATEAU) fprintf(f, " patience %lld", (long long)r->patience);
    if (r->sched == RT_SCHED_STEP || r->sched == RT_SCHED_PLATEAU)
        fprintf(f, " gamma %g", r->gamma);
    if (r->sched > RT_SCHED_STEP) fprintf(f, " min_lr %g", r->min_lr);
    if (r->warmup_epochs) fprintf(f, ", warm-up %lld epochs", (long long)r->warmup_epochs);
    fputc('\n', f);
}

static void print_batches(const rt_sampling *s, const rt_recipe *r, FILE *f) {
    const char *of = s->train_links == RT_LINKS_PAIRS     ? "links"
                     : s->train_links == RT_LINKS_QUERIES ? "queries"
                                                          : rt_seeds_words.word[s->seeds];
    if (!r->present || !s->batch) return;
    fprintf(f, "  batches of %lld %s", (long long)s->batch, of);
    if (s->n_hops)
        fprintf(f, ", neighbours drawn in %d hop%s", s->n_hops, s->n_hops > 1 ? "s" : "");
    if (s->negatives)
        fprintf(f, ", %lld negative%s each", (long long)s->negatives, s->negatives > 1 ? "s" : "");
    fputc('\n', f);
}

void rt_cli_print_recipe(const RtCli *c, FILE *f) {
    static const char *const split[] = {"", "train", "validation", "test"};
    const rt_recipe *r = &c->p->recipe;
    if (!r->present) return;
    fprintf(f, "\nTraining, unless options say otherwise\n");
    fprintf(f, "  target %s, metrics:", r->target);
    for (int i = 0; i < r->n_metrics; i++) fprintf(f, "%s %s", i ? "," : "", r->metrics[i]);
    fprintf(f, "\n  %s, lr %g, weight decay %g", rt_optim_kind_words.word[r->optim], r->lr,
            r->weight_decay);
    if (r->momentum != 0)
        fprintf(f, ", momentum %g%s", r->momentum, r->nesterov ? " (Nesterov)" : "");
    if (r->clip_norm > 0) fprintf(f, ", gradients clipped at %g", r->clip_norm);
    fprintf(f, "\n  %lld epochs", (long long)r->epochs);
    if (r->keep_metric)
        fprintf(f, ", keeping the one with the %s %s %s", r->keep_max ? "highest" : "lowest",
                split[r->keep_split & 3], r->keep_metric);
    if (r->early_stop_patience)
        fprintf(f, ", stopping %lld after it", (long long)r->early_stop_patience);
    fputc('\n', f);
    print_schedule(r, f);
    print_batches(&c->p->sampling, r, f);
}

static void print_options(RtCli *c, FILE *f) {
    char head[64];
    fprintf(f, "\nOptions\n");
    for (const RtCliOption *o = rt_cli_options; o->name; o++) {
        snprintf(head, sizeof head, "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(f, "  %-27s %s\n", head, rt_cli_option_help(c, o));
    }
}

/* Those that this model has: what is computed of nodes at the time of a link is not embedded. */
static void print_commands(const RtCli *c, FILE *f) {
    fprintf(f,
            "  train          (default) train, save a checkpoint, print the kept epoch's metrics\n"
            "  eval           metrics of --weights\n");
    if (rt_phase_of(c->p, RT_PHASE_PREDICT))
        fprintf(f,
                "  predict        the model's result for every row, or those of --ids, to --out\n");
    if (rt_phase_of(c->p, RT_PHASE_EMBED))
        fprintf(f, "  embed LAYER    a hidden layer's result, to --out (.npy)\n");
    fprintf(
        f,
        "  bench          time of a train step and of an inference\n"
        "  tune           try threads and grains on these data for half a minute, keep the best\n"
        "  info           the model; with --data also shapes and memory\n");
}

void rt_cli_help(RtCli *c, FILE *f) {
    fprintf(f, "%s: trains and runs model %s (%s)\n\n", c->prog,
            c->p->recipe.model_name ? c->p->recipe.model_name : c->p->name, c->p->source);
    fprintf(f, "Usage: %s [COMMAND] --data DIR [OPTION]..\n\n", c->prog);
    print_commands(c, f);
    rt_cli_print_needs(c, f);
    fprintf(f, "\nModel\n");
    rt_cli_print_vars(c, RT_VAR_PARAM, "  parameters: ", f);
    rt_cli_print_vars(c, RT_VAR_STATE, "  state: ", f);
    rt_cli_print_layers(c, f);
    rt_cli_print_recipe(c, f);
    print_options(c, f);
    fprintf(f, "\nExit status: 0 done, 1 failed (with a message), 2 wrong usage,\n"
               "128 + n stopped by signal n (SIGINT, SIGTERM, SIGHUP, SIGPIPE) after saving.\n");
}
