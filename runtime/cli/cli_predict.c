/* predict and embed: what the model gives for rows, into a file.  Rows that are asked for by name
 * or number are predicted by themselves where the program has what that takes. */
#include "cli_predict.h"

#include <stdlib.h>

#include "cli_options.h"

static int failed(const RtCli *c, const char *why) {
    fprintf(stderr, "%s: error: %s\n", c->prog, why);
    return RT_EXIT_FAILED;
}

/* Says which file was written, and its shape. */
static void print_written(const RtCli *c, const char *path, int rank, const int64_t *dim) {
    if (c->log == RT_LOG_NONE) return;
    printf("%s: ", path);
    if (c->format != GNNC_WRITE_NPY) {
        printf("%lld rows\n", (long long)dim[0]);
        return;
    }
    for (int i = 0; i < rank; i++) printf("%s%lld", i ? " x " : "", (long long)dim[i]);
    printf(" f32\n");
}

static const char *path_of(const RtCli *c) {
    static const char *const predictions[] = {[GNNC_WRITE_NPY] = "predictions.npy",
                                              [GNNC_WRITE_CSV] = "predictions.csv",
                                              [GNNC_WRITE_JSONL] = "predictions.jsonl"};
    if (c->out) return c->out;
    return c->command == RT_CMD_EMBED ? "embeddings.npy" : predictions[c->format];
}

static int write_with(const RtCli *c, gnnc_legend *g, int64_t n, const int64_t *row,
                      const float *values) {
    if (rt_ranks_number(c)) return RT_EXIT_OK; /* the first one writes */
    const gnnc_written what = {.struct_size = sizeof what,
                               .format = c->format,
                               .top = c->top,
                               .n = n,
                               .row = row,
                               .values = values};
    if (gnnc_legend_write(g, path_of(c), &what) != GNNC_OK) return failed(c, gnnc_legend_error(g));
    return RT_EXIT_OK;
}

/* ---- by the trainer --------------------------------------------------------------------- */
/* Writes the predictions or the hidden layer of all rows. */
static int write_all(RtCli *c) {
    const float *data;
    int rank, code = RT_EXIT_OK;
    int64_t dim[GNNC_MAX_RANK];
    gnnc_legend *g = NULL;
    bool embeds = c->command == RT_CMD_EMBED, array = embeds || c->format == GNNC_WRITE_NPY;
    if (!array && gnnc_trainer_legend(c->t, &g) != GNNC_OK) return rt_cli_failed(c);
    gnnc_status st = embeds ? gnnc_trainer_embed(c->t, c->layer, &data, &rank, dim)
                            : gnnc_trainer_predict(c->t, &data, &rank, dim);
    if (st == GNNC_OK && array && !rt_ranks_number(c))
        st = gnnc_trainer_save_values(c->t, path_of(c), data, rank, dim);
    else if (st == GNNC_OK && !array)
        code = write_with(c, g, dim[0], NULL, data);
    gnnc_legend_destroy(g);
    if (st != GNNC_OK) return rt_cli_failed(c);
    if (code == RT_EXIT_OK) print_written(c, path_of(c), rank, dim);
    return code;
}

/* Room for the rows' numbers; NULL after a message. */
static float *room_for(const RtCli *c, const gnnc_legend *g, const RtCliRows *r) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    gnnc_legend_describe(g, &is);
    float *to = calloc((size_t)r->n * (size_t)is.width + 1, sizeof *to);
    if (!to) failed(c, "predictions: out of memory");
    return to;
}

/* Writes predictions of some rows to the file that was asked for, by the description of the outputs
 * in g. */
int rt_cli_write_rows(const RtCli *c, gnnc_legend *g, const RtCliRows *r, const float *values) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    int64_t dim[GNNC_MAX_RANK + 1] = {r->n};
    gnnc_legend_describe(g, &is);
    for (int i = 0; i < is.rank; i++) dim[i + 1] = is.dim[i];
    int code = write_with(c, g, r->n, r->row, values);
    if (code == RT_EXIT_OK) print_written(c, path_of(c), is.rank + 1, dim);
    return code;
}

/* Predicts some rows into `to`: by one set of weights, or the mean of those of several seeds. */
static int predict_rows(RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *to) {
    if (c->seeds) return rt_cli_predict_seeds(c, g, r, to);
    gnnc_status st = gnnc_trainer_predict_rows(c->t, r->n, r->row, to);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

/* Which rows: those asked for, or all. */
static int find_rows(const RtCli *c, RtCliRows *r, gnnc_legend *g) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    if (r->file) return rt_cli_rows_find(c, r, g);
    gnnc_legend_describe(g, &is);
    r->n = is.n_rows;
    return RT_EXIT_OK;
}

/* Finds the rows that were asked for and writes their predictions. */
static int write_some(RtCli *c, RtCliRows *r) {
    gnnc_legend *g = NULL;
    if (gnnc_trainer_legend(c->t, &g) != GNNC_OK) return rt_cli_failed(c);
    int code = find_rows(c, r, g);
    float *to = code == RT_EXIT_OK ? room_for(c, g, r) : NULL;
    if (code == RT_EXIT_OK) code = to ? predict_rows(c, g, r, to) : RT_EXIT_FAILED;
    if (code == RT_EXIT_OK) code = rt_cli_write_rows(c, g, r, to);
    gnnc_legend_destroy(g);
    free(to);
    return code;
}

/* Writes predictions or a hidden layer: of some rows, or of all. */
static int write_values(RtCli *c, RtCliRows *r) {
    int code = rt_cli_rows_read(c, r);
    if (code == RT_EXIT_OK && r->file && rt_cli_serve(c, r, &code)) return code;
    if (code == RT_EXIT_OK) code = rt_cli_start_first(c);
    if (code == RT_EXIT_OK) code = r->file || c->seeds ? write_some(c, r) : write_all(c);
    return code == RT_EXIT_OK ? rt_cli_profile_end(c) : code;
}

int rt_cli_write_values(RtCli *c) {
    RtCliRows rows = {.file = NULL};
    int code = write_values(c, &rows);
    rt_cli_rows_free(&rows);
    return code;
}
