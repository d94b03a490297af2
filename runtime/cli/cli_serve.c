/* Some rows predicted by themselves: a session reads their neighbourhoods, where a trainer computes
 * all rows.  What is written is the same, to rounding. */
#include <stdlib.h>
#include <string.h>

#include "cli_predict.h"
#include "cli_options.h"

enum { MOST_ROWS = 4096 }; /* of more a pass over the whole graph, by all threads, is faster */

bool rt_cli_sets_what_weights_say(const RtCli *c) {
    gnnc_option o = {.struct_size = sizeof o};
    for (int i = 0; gnnc_trainer_option(c->t, i, &o) == GNNC_OK; i++)
        if (o.is_set && (i >= RT_CLI_N_OPTIONS || strcmp(o.name, "fanout") == 0)) return true;
    return false;
}

/* What a session has no word for. */
static bool asks_for_trainer(const RtCli *c) {
    static const char *const of[] = {"max_memory", "spill", "variant", "amx", "check_times", "at"};
    for (int i = 0; i < gnnc_trainer_n_options(c->t); i++) {
        gnnc_option o = {.struct_size = sizeof o};
        gnnc_trainer_option(c->t, i, &o);
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            if (o.is_set && strcmp(o.name, of[k]) == 0) return true;
        if (strcmp(o.name, "device") == 0 && o.is_set && strcmp(o.text_value, "cpu") != 0)
            return true;
    }
    return rt_cli_sets_what_weights_say(c) || c->profile || c->trace || c->resume || c->seeds;
}

/* Links are the trainer's: a session scores pairs, whatever edges there are. */
static bool serves(const RtCli *c, const RtCliRows *r) {
    bool links = c->is.has_recipe && strcmp(c->recipe.target, "links") == 0;
    return c->rows && !links && r->n_lines <= MOST_ROWS && !asks_for_trainer(c);
}

/* Reads the data into a graph. */
static gnnc_status open_graph(const RtCli *c, RtCliServed *s) {
    gnnc_status st = gnnc_graph_create(&s->graph);
    if (st == GNNC_OK) st = gnnc_graph_read(s->graph, c->data, 1);
    return st == GNNC_OK ? gnnc_graph_commit(s->graph) : st;
}

static gnnc_status open_model(const RtCli *c, RtCliServed *s) {
    gnnc_status st = gnnc_model_create(&s->model, c->rows);
    return st == GNNC_OK ? gnnc_model_load(s->model, c->weights) : st;
}

/* Opens a session on the graph; at: the date that is asked about, NULL = none. */
static gnnc_status open_session(RtCli *c, const char *at, RtCliServed *s) {
    gnnc_status st = gnnc_session_create(&s->session);
    if (st != GNNC_OK) return st;
    gnnc_session_set_message(s->session, rt_cli_message, c);
    st = at ? gnnc_session_open_at(s->session, s->model, s->graph, at)
            : gnnc_session_open(s->session, s->model, s->graph);
    return st == GNNC_OK ? gnnc_session_legend(s->session, &s->legend) : st;
}

gnnc_status rt_cli_served_open(RtCli *c, const char *at, RtCliServed *s) {
    gnnc_status st = open_graph(c, s);
    if (st == GNNC_OK) st = open_model(c, s);
    if (st == GNNC_OK) st = open_session(c, at, s);
    return st;
}

const char *rt_cli_served_error(const RtCliServed *s) {
    return s->session ? gnnc_session_error(s->session)
           : s->model ? gnnc_model_error(s->model)
           : s->graph ? gnnc_graph_error(s->graph)
                      : "out of memory";
}

void rt_cli_served_close(RtCliServed *s) {
    gnnc_legend_destroy(s->legend);
    gnnc_session_destroy(s->session);
    gnnc_model_release(s->model);
    gnnc_graph_release(s->graph);
    free(s->values);
}

static int failed(const RtCli *c, const char *why) {
    fprintf(stderr, "%s: error: %s\n", c->prog, why);
    return RT_EXIT_FAILED;
}

/* Predicts the rows that were asked for and writes the predictions. */
static int write_rows(RtCli *c, RtCliRows *r, RtCliServed *s) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    int code = rt_cli_rows_find(c, r, s->legend);
    if (code != RT_EXIT_OK) return code;
    gnnc_legend_describe(s->legend, &is);
    s->values = calloc((size_t)r->n * (size_t)is.width + 1, sizeof *s->values);
    if (!s->values) return failed(c, "predictions: out of memory");
    if (gnnc_session_predict(s->session, r->n, r->row, s->values) != GNNC_OK)
        return failed(c, gnnc_session_error(s->session));
    return rt_cli_write_rows(c, s->legend, r, s->values);
}

bool rt_cli_serve(RtCli *c, RtCliRows *r, int *code) {
    RtCliServed s = {.graph = NULL};
    if (!serves(c, r)) return false;
    gnnc_status st = rt_cli_served_open(c, NULL, &s);
    if (st == GNNC_OK) *code = write_rows(c, r, &s);
    rt_cli_served_close(&s);
    return st == GNNC_OK;
}
