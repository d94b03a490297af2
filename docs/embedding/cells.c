/* A person who is in no data, as texts: of the weights alone they become columns, and are
 * predicted.
 *
 *     cells WEIGHTS AGE CITY */
#include <gnnc.h>
#include <stdio.h>

#include "who.h" /* who_program: --emit=infer */

/* A graph of that person; a city that no row had is unknown. */
static gnnc_status fill(const gnnc_encoder *e, gnnc_graph *g, char *const text[2]) {
    static const char *const name[2] = {"age", "city"};
    gnnc_cells cells[2] = {{0}, {0}};
    gnnc_raw rows = {0};
    for (int i = 0; i < 2; i++) {
        cells[i].struct_size = sizeof cells[i];
        cells[i].column = name[i];
        cells[i].texts = (const char *const *)&text[i];
    }
    rows.struct_size = sizeof rows;
    rows.table = "person";
    rows.count = 1;
    rows.columns = cells;
    rows.n_columns = 2;
    gnnc_status st = gnnc_graph_add_nodes(g, rows.table, rows.count);
    if (st == GNNC_OK) st = gnnc_encoder_add(e, &rows, g);
    if (st != GNNC_OK) fprintf(stderr, "%s\n", rows.error);
    return st == GNNC_OK ? gnnc_graph_commit(g) : st;
}

int main(int argc, char **argv) {
    gnnc_model *model = NULL;
    gnnc_encoder *encoder = NULL;
    gnnc_session *session = NULL;
    gnnc_graph *graph = NULL; /* the session's */
    const int64_t row = 0;
    float score[2]; /* of the classes, by name: leaves, stays */
    if (argc != 4) return 2;

    gnnc_status st = gnnc_model_create(&model, &who_program);
    if (st == GNNC_OK) st = gnnc_model_load(model, argv[1]);
    if (st == GNNC_OK) st = gnnc_encoder_create(&encoder);
    if (st == GNNC_OK) st = gnnc_encoder_of_model(encoder, model);
    if (st == GNNC_OK) st = gnnc_session_create(&session);
    if (st == GNNC_OK) st = gnnc_session_open_model(session, model);
    if (st == GNNC_OK) st = gnnc_session_subgraph(session, &graph); /* for each further person */
    if (st == GNNC_OK) st = fill(encoder, graph, argv + 2);
    if (st == GNNC_OK) st = gnnc_session_predict_subgraph(session, 1, &row, score);
    if (st == GNNC_OK)
        printf("%s\n", score[0] > score[1] ? "leaves" : "stays");
    else
        fprintf(stderr, "cells: %s: %s\n", gnnc_status_text(st),
                session ? gnnc_session_error(session) : "");
    gnnc_session_destroy(session); /* NULL is allowed in all three */
    gnnc_encoder_destroy(encoder);
    gnnc_model_release(model);
    return st != GNNC_OK;
}
