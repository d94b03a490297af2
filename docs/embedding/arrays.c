/* The person of cells.c as arrays of the program's own: one was made by the model's encoder, the
 * codes of the other by the program, which says what they mean.
 *
 *     arrays WEIGHTS AGE CITY [say]      without `say` it does not say how they were made */
#include <gnnc.h>
#include <stdio.h>

#include "who.h" /* who_program: --emit=infer */

static gnnc_array one(const void *value, gnnc_element type) {
    gnnc_array a = {0};
    a.struct_size = sizeof a;
    a.data = value;
    a.dtype = (int32_t)type;
    a.rank = 1;
    a.shape[0] = 1;
    return a;
}

/* What the model has for this age. */
static gnnc_status encode(const gnnc_encoder *e, const char *text, float *age) {
    gnnc_cells cells = {0};
    gnnc_raw rows = {0};
    cells.struct_size = sizeof cells;
    cells.column = "age";
    cells.texts = &text;
    rows.struct_size = sizeof rows;
    rows.table = "person";
    rows.count = 1;
    rows.columns = &cells;
    rows.n_columns = 1;
    gnnc_status st = gnnc_encoder_encode(e, &rows, "age", age, sizeof *age);
    if (st != GNNC_OK) fprintf(stderr, "%s\n", rows.error);
    return st;
}

static gnnc_status fill(const gnnc_encoder *e, gnnc_graph *g, char **text, int say) {
    float age = 0;
    const int32_t code = 0;
    const char *const city = text[1]; /* what code 0 means */
    gnnc_status st = encode(e, text[0], &age);
    const gnnc_array ages = one(&age, GNNC_DT_F32), cities = one(&code, GNNC_DT_I32);
    if (st == GNNC_OK) st = gnnc_graph_add_nodes(g, "person", 1);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, "person", "age", GNNC_COL_FLOAT, &ages, -1, NULL);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, "person", "city", GNNC_COL_CAT, &cities, 1, &city);
    if (st == GNNC_OK && say) st = gnnc_graph_set_encoded(g, "person", "age", e);
    return st == GNNC_OK ? gnnc_graph_commit(g) : st;
}

int main(int argc, char **argv) {
    gnnc_model *model = NULL;
    gnnc_encoder *encoder = NULL;
    gnnc_session *session = NULL;
    gnnc_graph *graph = NULL; /* the session's */
    const int64_t row = 0;
    float score[2]; /* of the classes, by name: leaves, stays */
    if (argc < 4) return 2;

    gnnc_status st = gnnc_model_create(&model, &who_program);
    if (st == GNNC_OK) st = gnnc_model_load(model, argv[1]);
    if (st == GNNC_OK) st = gnnc_encoder_create(&encoder);
    if (st == GNNC_OK) st = gnnc_encoder_of_model(encoder, model);
    if (st == GNNC_OK) st = gnnc_session_create(&session);
    if (st == GNNC_OK) st = gnnc_session_open_model(session, model);
    if (st == GNNC_OK) st = gnnc_session_subgraph(session, &graph);
    if (st == GNNC_OK) st = fill(encoder, graph, argv + 2, argc > 4);
    if (st == GNNC_OK) st = gnnc_session_predict_subgraph(session, 1, &row, score);
    if (st == GNNC_OK)
        printf("%s\n", score[0] > score[1] ? "leaves" : "stays");
    else
        fprintf(stderr, "%s\n", session ? gnnc_session_error(session) : gnnc_status_text(st));
    gnnc_session_destroy(session);
    gnnc_encoder_destroy(encoder);
    gnnc_model_release(model);
    return st != GNNC_OK;
}
