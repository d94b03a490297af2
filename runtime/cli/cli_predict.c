/* predict and embed: what the model gives for rows, into a file. */
#include "cli_predict.h"

#include <string.h>

#include "runtime/data/npy.h"

static int failed(const RtCli *c, const RtError *err) {
    fprintf(stderr, "%s: error: %s\n", c->prog, err->text);
    return RT_EXIT_FAILED;
}

static void print_written(const RtCli *c, const char *path, const RtArray *a) {
    if (c->log == RT_LOG_NONE) return;
    printf("%s: ", path);
    if (c->format != RT_FORMAT_NPY) {
        printf("%lld rows\n", (long long)a->shape[0]);
        return;
    }
    for (int i = 0; i < a->rank; i++) printf("%s%lld", i ? " x " : "", (long long)a->shape[i]);
    printf(" f32\n");
}

static const char *path_of(const RtCli *c) {
    static const char *const predictions[] = {[RT_FORMAT_NPY] = "predictions.npy",
                                              [RT_FORMAT_CSV] = "predictions.csv",
                                              [RT_FORMAT_JSONL] = "predictions.jsonl"};
    if (c->out) return c->out;
    return c->command == RT_CMD_EMBED ? "embeddings.npy" : predictions[c->format];
}

/* The rows asked for, of all of `a`. */
static gnnc_status take_rows(const RtCliRows *r, RtArray *a) {
    int64_t width = 1;
    for (int i = 1; i < a->rank; i++) width *= a->shape[i];
    if (!r->row) return GNNC_OK;
    float *to = rt_pool_alloc(r->pool, (size_t)r->n + 1, (size_t)width * sizeof *to);
    if (!to) return rt_fail_nomem(r->err, "predictions");
    for (int64_t i = 0; i < r->n && width; i++)
        memcpy(to + i * width, (const float *)a->data + r->row[i] * width,
               (size_t)width * sizeof *to);
    a->data = to;
    a->shape[0] = r->n;
    a->count = r->n * width;
    return GNNC_OK;
}

static gnnc_status write_prediction(const RtCli *c, RtCliRows *r, RtArray *a) {
    RtAlloc alloc = rt_alloc_default();
    gnnc_status st = rt_cli_rows_find(c, r, rt_trainer_prediction(c->t), a->rank ? a->shape[0] : 1);
    if (st != GNNC_OK) return st;
    if (c->format == RT_FORMAT_NPY) {
        st = take_rows(r, a);
        return st == GNNC_OK ? rt_npy_save(&alloc, path_of(c), a, r->err) : st;
    }
    st = rt_cli_write_table(c, r, a, path_of(c), r->err);
    a->shape[0] = r->n;
    return st;
}

static gnnc_status compute(RtCli *c, RtArray *a) {
    const float *data = NULL;
    gnnc_status st = c->command == RT_CMD_EMBED
                         ? gnnc_trainer_embed(c->t, c->layer, &data, &a->rank, a->shape)
                         : gnnc_trainer_predict(c->t, &data, &a->rank, a->shape);
    a->data = data;
    for (int i = 0; i < a->rank && st == GNNC_OK; i++) a->count *= a->shape[i];
    return st;
}

static int write_values(RtCli *c, RtCliRows *r) {
    RtArray a = {.dt = RT_DT_F32, .count = 1};
    RtAlloc alloc = rt_alloc_default();
    if (rt_cli_rows_read(c, r) != GNNC_OK) return failed(c, r->err);
    int code = rt_cli_start(c);
    if (code != RT_EXIT_OK) return code;
    if (compute(c, &a) != GNNC_OK) return rt_cli_failed(c);
    gnnc_status st = c->command == RT_CMD_EMBED ? rt_npy_save(&alloc, path_of(c), &a, r->err)
                                                : write_prediction(c, r, &a);
    if (st != GNNC_OK) return failed(c, r->err);
    print_written(c, path_of(c), &a);
    return rt_cli_profile_end(c);
}

int rt_cli_write_values(RtCli *c) {
    RtPool pool;
    RtError err = {""};
    RtCliRows rows = {.pool = &pool, .err = &err, .space = -1, .end = {-1, -1}};
    rt_pool_init(&pool, NULL);
    int code = write_values(c, &rows);
    rt_cli_rows_free(&rows);
    rt_pool_free(&pool);
    return code;
}
