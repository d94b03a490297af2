/* Which class a few nodes belong to, by a model that was compiled with --emit=infer.
 *
 *     predict DATA WEIGHTS ROW.. */
#include <gnnc.h>
#include <stdio.h>
#include <stdlib.h>

#include "gcn.h" /* gcn_program, written by gnnc */

enum { MOST = 64 };

static int64_t best_of(const float *score, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    return best;
}

/* Scores of `width` classes for each id; one call for all of them. */
static gnnc_status show(gnnc_session *s, int64_t n, const int64_t *id) {
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    gnnc_status st = gnnc_session_row_shape(s, &rank, dim);
    if (st != GNNC_OK) return st;
    float *score = malloc((size_t)(n * dim[0]) * sizeof *score);
    if (!score) return GNNC_E_NOMEM;
    st = gnnc_session_predict(s, n, id, score);
    for (int64_t i = 0; i < n && st == GNNC_OK; i++)
        printf("row %lld: class %lld\n", (long long)id[i],
               (long long)best_of(score + i * dim[0], dim[0]));
    free(score);
    return st;
}

int main(int argc, char **argv) {
    gnnc_model *model = NULL;
    gnnc_graph *graph = NULL;
    gnnc_session *session = NULL;
    int64_t id[MOST], n = argc - 3;
    const char *why = "";
    gnnc_status st;
    if (argc < 4 || n > MOST) return 2;
    for (int64_t i = 0; i < n; i++) id[i] = strtoll(argv[i + 3], NULL, 10);

    if ((st = gnnc_model_create(&model, &gcn_program)) != GNNC_OK) goto out;
    if ((st = gnnc_model_load(model, argv[2])) != GNNC_OK) {
        why = gnnc_model_error(model);
        goto out;
    }
    if ((st = gnnc_graph_create(&graph)) != GNNC_OK) goto out;
    if ((st = gnnc_graph_read(graph, argv[1], 1)) != GNNC_OK ||
        (st = gnnc_graph_commit(graph)) != GNNC_OK) {
        why = gnnc_graph_error(graph);
        goto out;
    }
    if ((st = gnnc_session_create(&session)) != GNNC_OK) goto out;
    if ((st = gnnc_session_open(session, model, graph)) != GNNC_OK ||
        (st = show(session, n, id)) != GNNC_OK)
        why = gnnc_session_error(session);
out:
    if (st != GNNC_OK) fprintf(stderr, "predict: %s: %s\n", gnnc_status_text(st), why);
    gnnc_session_destroy(session); /* NULL is allowed in all three */
    gnnc_graph_release(graph);
    gnnc_model_release(model);
    return st != GNNC_OK;
}
