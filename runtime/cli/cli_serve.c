/* Some rows predicted by themselves: a session reads their neighbourhoods, where a trainer computes
 * all rows.  What is written is the same, to rounding. */
#include <stdlib.h>
#include <string.h>

#include "cli_predict.h"

enum { MOST_ROWS = 4096 }; /* of more a pass over the whole graph, by all threads, is faster */

typedef struct {
    gnnc_graph *graph;
    gnnc_model *model;
    gnnc_session *session;
    gnnc_legend *legend;
    float *values;
    const char *why; /* the last failure's */
} Served;

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
    return c->profile || c->trace || c->resume;
}

/* Links are the trainer's: a session scores pairs, whatever edges there are. */
bool rt_cli_serves(const RtCli *c, const RtCliRows *r) {
    bool links = c->is.has_recipe && strcmp(c->recipe.target, "links") == 0;
    return c->rows && !links && r->n_lines <= MOST_ROWS && !asks_for_trainer(c);
}

static gnnc_status open_graph(const RtCli *c, Served *s) {
    gnnc_status st = gnnc_graph_create(&s->graph);
    if (st == GNNC_OK) st = gnnc_graph_read(s->graph, c->data, 1);
    if (st == GNNC_OK) st = gnnc_graph_commit(s->graph);
    if (st != GNNC_OK) s->why = s->graph ? gnnc_graph_error(s->graph) : gnnc_status_text(st);
    return st;
}

static gnnc_status open_model(const RtCli *c, Served *s) {
    gnnc_status st = gnnc_model_create(&s->model, c->rows);
    if (st == GNNC_OK) st = gnnc_model_load(s->model, c->weights);
    if (st != GNNC_OK) s->why = s->model ? gnnc_model_error(s->model) : gnnc_status_text(st);
    return st;
}

static gnnc_status open_session(RtCli *c, Served *s) {
    gnnc_status st = gnnc_session_create(&s->session);
    if (st == GNNC_OK) gnnc_session_set_message(s->session, rt_cli_message, c);
    if (st == GNNC_OK) st = gnnc_session_open(s->session, s->model, s->graph);
    if (st == GNNC_OK) st = gnnc_session_legend(s->session, &s->legend);
    if (st != GNNC_OK) s->why = s->session ? gnnc_session_error(s->session) : gnnc_status_text(st);
    return st;
}

static gnnc_status predict(Served *s, const RtCliRows *r) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    gnnc_legend_describe(s->legend, &is);
    s->values = calloc((size_t)r->n * (size_t)is.width + 1, sizeof *s->values);
    s->why = "predictions: out of memory";
    if (!s->values) return GNNC_E_NOMEM;
    gnnc_status st = gnnc_session_predict(s->session, r->n, r->row, s->values);
    s->why = gnnc_session_error(s->session);
    return st;
}

static int serve(RtCli *c, RtCliRows *r, Served *s) {
    gnnc_status st = open_graph(c, s);
    if (st == GNNC_OK) st = open_model(c, s);
    if (st == GNNC_OK) st = open_session(c, s);
    int code = st == GNNC_OK ? rt_cli_rows_find(c, r, s->legend) : RT_EXIT_OK;
    if (code != RT_EXIT_OK) return code;
    if (st == GNNC_OK) st = predict(s, r);
    if (st == GNNC_OK) return rt_cli_write_rows(c, s->legend, r, s->values);
    fprintf(stderr, "%s: error: %s\n", c->prog, s->why);
    return RT_EXIT_FAILED;
}

int rt_cli_serve(RtCli *c, RtCliRows *r) {
    Served s = {.graph = NULL};
    int code = serve(c, r, &s);
    gnnc_legend_destroy(s.legend);
    gnnc_session_destroy(s.session);
    gnnc_model_release(s.model);
    gnnc_graph_release(s.graph);
    free(s.values);
    return code;
}
