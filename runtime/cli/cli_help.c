/* --help: written from the model's own tables. */
#include <string.h>

#include "cli.h"
#include "cli_options.h"

/* ---- what the model needs ------------------------------------------------------ */
/* Prints a column that the data must have, with its kind and sizes. */
static void print_column(const gnnc_needed_column *col, FILE *f) {
    fprintf(f, "      %s: %s", col->name, col->declared);
    if (col->categories) fprintf(f, "[%s]", col->categories);
    for (int i = 0; i < col->rank; i++)
        fprintf(f, "%s%s%s", i ? ", " : "[", col->size[i], i + 1 == col->rank ? "]" : "");
    fputs(col->is_label ? "    (for train and eval)\n" : "\n", f);
}

/* Prints a table that the data must have. */
static void print_table(const gnnc_needed_table *t, FILE *f) {
    static const char *const word[] = {
        [GNNC_NODES] = "node", [GNNC_EDGES] = "edge", [GNNC_GRAPHS] = "graph"};
    fprintf(f, "    %s %s", word[t->kind], t->name);
    if (t->kind == GNNC_EDGES) fprintf(f, ": %s -> %s", t->src_type, t->dst_type);
    fputc('\n', f);
}

void rt_cli_print_needs(const RtCli *c, FILE *f) {
    gnnc_needed_table t = {.struct_size = sizeof t};
    gnnc_needed_column col = {.struct_size = sizeof col};
    fprintf(f, "\nThe data directory must hold\n");
    for (int i = 0; gnnc_program_table(c->program, i, &t) == GNNC_OK; i++) {
        print_table(&t, f);
        for (int k = 0; gnnc_program_column(c->program, i, k, &col) == GNNC_OK; k++)
            print_column(&col, f);
    }
}

/* ---- what it is ------------------------------------------------------------------- */
void rt_cli_print_parameters(const RtCli *c, bool states, const char *title, FILE *f) {
    const char *sep = title, *name;
    int is_state = 0;
    for (int i = 0; (name = gnnc_program_parameter(c->program, i, &is_state)); i++) {
        if ((is_state != 0) != states) continue;
        fprintf(f, "%s%s", sep, name);
        sep = ", ";
    }
    if (sep != title) fputc('\n', f);
}

void rt_cli_print_layers(const RtCli *c, FILE *f) {
    for (int i = 0; i < gnnc_trainer_n_layers(c->t); i++)
        fprintf(f, "%s%s", i ? ", " : "  layers for embed: ", gnnc_trainer_layer_name(c->t, i));
    if (gnnc_trainer_n_layers(c->t)) fputc('\n', f);
}

/* Prints how the learning rate changes. */
static void print_schedule(const gnnc_recipe *r, FILE *f) {
    bool steps = strcmp(r->schedule, "step") == 0, waits = strcmp(r->schedule, "plateau") == 0;
    fprintf(f, "  schedule %s", r->schedule);
    if (steps) fprintf(f, " every %lld", (long long)r->step_epochs);
    if (waits) fprintf(f, " patience %lld", (long long)r->patience);
    if (steps || waits) fprintf(f, " gamma %g", r->gamma);
    if (!steps && strcmp(r->schedule, "constant") != 0) fprintf(f, " min_lr %g", r->min_lr);
    if (r->warmup_epochs) fprintf(f, ", warm-up %lld epochs", (long long)r->warmup_epochs);
    fputc('\n', f);
}

/* Prints what a mini-batch is, if there are any. */
static void print_batches(const gnnc_recipe *r, FILE *f) {
    if (!r->batch) return;
    fprintf(f, "  batches of %lld %s", (long long)r->batch, r->batch_of);
    if (r->n_hops)
        fprintf(f, ", neighbours drawn in %d hop%s", r->n_hops, r->n_hops > 1 ? "s" : "");
    if (r->negatives)
        fprintf(f, ", %lld negative%s each", (long long)r->negatives, r->negatives > 1 ? "s" : "");
    fputc('\n', f);
}

void rt_cli_print_recipe(const RtCli *c, FILE *f) {
    const gnnc_recipe *r = &c->recipe;
    if (!c->is.has_recipe) return;
    fprintf(f, "\nTraining, unless options say otherwise\n");
    fprintf(f, "  target %s, metrics:", r->target);
    for (int i = 0; i < r->n_metrics; i++) fprintf(f, "%s %s", i ? "," : "", r->metrics[i]);
    fprintf(f, "\n  %s, lr %g, weight decay %g", r->optimizer, r->lr, r->weight_decay);
    if (r->momentum != 0)
        fprintf(f, ", momentum %g%s", r->momentum, r->nesterov ? " (Nesterov)" : "");
    if (r->clip_norm > 0) fprintf(f, ", gradients clipped at %g", r->clip_norm);
    fprintf(f, "\n  %lld epochs", (long long)r->epochs);
    if (r->keep_metric)
        fprintf(f, ", keeping the one with the %s %s %s", r->keep_max ? "highest" : "lowest",
                strcmp(r->keep_split, "val") == 0 ? "validation" : r->keep_split, r->keep_metric);
    if (r->early_stop_patience)
        fprintf(f, ", stopping %lld after it", (long long)r->early_stop_patience);
    fputc('\n', f);
    print_schedule(r, f);
    print_batches(r, f);
}

/* Those that the model has, with what they are and may be. */
static void print_own(RtCli *c, FILE *f) {
    gnnc_option o = {.struct_size = sizeof o};
    char head[80];
    for (int i = RT_CLI_N_OPTIONS; gnnc_trainer_option(c->t, i, &o) == GNNC_OK; i++) {
        bool whole = o.type == GNNC_OPTION_INT;
        if (i == RT_CLI_N_OPTIONS) fprintf(f, "\nOptions of the model\n");
        snprintf(head, sizeof head, "--set %s=%s", o.name, whole ? "N" : "X");
        fprintf(f, "  %-27s ", head);
        if (whole)
            fprintf(f, "%lld, %lld to %lld: %s\n", (long long)o.int_default, (long long)o.int_least,
                    (long long)o.int_most, o.help);
        else
            fprintf(f, "%g, %g to %g: %s\n", o.real_default, o.real_least, o.real_most, o.help);
    }
}

/* Prints an option with its type, range and default as JSON. */
static void print_option_json(const gnnc_option *o, FILE *f) {
    static const char *const type[] = {"int", "real", "text"};
    fprintf(f, "{\"name\": \"%s\", \"type\": \"%s\", ", o->name, type[o->type]);
    if (o->type == GNNC_OPTION_INT)
        fprintf(f, "\"default\": %lld, \"least\": %lld, \"most\": %lld, ",
                (long long)o->int_default, (long long)o->int_least, (long long)o->int_most);
    if (o->type == GNNC_OPTION_REAL)
        fprintf(f, "\"default\": %.17g, \"least\": %.17g, \"most\": %.17g, ", o->real_default,
                o->real_least, o->real_most);
    if (o->type == GNNC_OPTION_TEXT) {
        fprintf(f, "\"default\": ");
        rt_cli_put_json_string(o->text_default, f);
        fprintf(f, ", ");
    }
    fprintf(f, "\"settable\": %s, \"help\": ", o->settable ? "true" : "false");
    rt_cli_put_json_string(o->help, f);
    fprintf(f, "}");
}

/* Prints all options as JSON, for programs that call this one. */
static void print_json(RtCli *c, FILE *f) {
    gnnc_option o = {.struct_size = sizeof o};
    fprintf(f, "{\"options\": [");
    for (int i = 0; gnnc_trainer_option(c->t, i, &o) == GNNC_OK; i++) {
        fprintf(f, "%s\n  ", i ? "," : "");
        print_option_json(&o, f);
    }
    fprintf(f, "\n]}\n");
}

/* Prints all options with their help. */
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
    if (c->is.predicts)
        fprintf(f,
                "  predict        the model's result for every row, or those of --ids, to --out\n");
    if (c->rows) fprintf(f, "  explain        what the prediction of the row --id depends on\n");
    if (c->is.embeds) fprintf(f, "  embed LAYER    a hidden layer's result, to --out (.npy)\n");
    fprintf(
        f,
        "  bench          time of a train step and of an inference\n"
        "  tune           try threads and grains on these data for half a minute, keep the best\n"
        "  info           the model; with --data also shapes and memory\n");
}

void rt_cli_help(RtCli *c, FILE *f) {
    if (c->json) {
        print_json(c, f);
        return;
    }
    fprintf(f, "%s: trains and runs model %s (%s)\n\n", c->prog, c->is.model, c->is.source);
    fprintf(f, "Usage: %s [COMMAND] --data DIR [OPTION]..\n\n", c->prog);
    print_commands(c, f);
    rt_cli_print_needs(c, f);
    fprintf(f, "\nModel\n");
    rt_cli_print_parameters(c, false, "  parameters: ", f);
    rt_cli_print_parameters(c, true, "  state: ", f);
    rt_cli_print_layers(c, f);
    rt_cli_print_recipe(c, f);
    print_own(c, f);
    print_options(c, f);
    fprintf(f, "\nExit status: 0 done, 1 failed (with a message), 2 wrong usage,\n"
               "128 + n stopped by signal n (SIGINT, SIGTERM, SIGHUP, SIGPIPE) after saving.\n");
}
