/* Predictions of some rows, and values as a file. */
#include <string.h>

#include "runtime/batch/row_batches.h"
#include "runtime/data/npy.h"
#include "runtime/device/device.h"
#include "trainer.h"

static gnnc_status no_row(gnnc_trainer *t, int64_t row, int64_t n) {
    return rt_fail(&t->rt.err, GNNC_E_RANGE, "no row %lld: %lld, from 0", (long long)row,
                   (long long)n);
}

/* Are all row numbers below n_rows? Without `id` rows 0 to n - 1 are meant. */
static gnnc_status check_rows(gnnc_trainer *t, int64_t n_rows, int64_t n, const int64_t *id) {
    if (!id && n > n_rows) return no_row(t, n - 1, n_rows);
    for (int64_t i = 0; i < n && id; i++)
        if (id[i] < 0 || id[i] >= n_rows) return no_row(t, id[i], n_rows);
    return GNNC_OK;
}

/* Computes all rows and copies those that are asked for. */
static gnnc_status of_all(gnnc_trainer *t, int64_t n, const int64_t *id, float *out) {
    const float *all;
    int rank;
    int64_t dim[GNNC_MAX_RANK] = {1}, width = 1;
    gnnc_status st = gnnc_trainer_predict(t, &all, &rank, dim);
    if (st != GNNC_OK || (st = check_rows(t, rank ? dim[0] : 1, n, id)) != GNNC_OK) return st;
    for (int i = 1; i < rank; i++) width *= dim[i];
    for (int64_t i = 0; i < n && width; i++)
        memcpy(out + i * width, all + (id ? id[i] : i) * width, (size_t)width * sizeof *out);
    return GNNC_OK;
}

/* Computes an output for some rows of a model that predicts by batches, around these rows alone. */
static gnnc_status by_batches(gnnc_trainer *t, int buf, int64_t n, const int64_t *id, float *out) {
    gnnc_status st, after;
    TRY(st, check_rows(t, rt_row_batches_rows(t), n, id));
    TRY(st, rt_device_follow(&t->x));
    rt_trainer_inputs(t);
    st = rt_row_batches_some(t, buf, n, id, out);
    after = rt_device_lead(&t->x);
    if (st == GNNC_OK) st = after;
out:
    return st;
}

gnnc_status gnnc_trainer_predict_rows(gnnc_trainer *t, int64_t n, const int64_t *id, float *out) {
    RT_NOT_NULL(t, t);
    if (n && !out) return rt_null_argument(t, "out");
    rt_trainer_begin(t);
    if (n < 0) return rt_fail(&t->rt.err, GNNC_E_ARG, "%lld rows", (long long)n);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    int buf = rt_trainer_prediction(t);
    bool batches = t->rows && buf >= 0 && t->program->bufs[buf].dt == RT_F32;
    return batches ? by_batches(t, buf, n, id, out) : of_all(t, n, id, out);
}

gnnc_status gnnc_trainer_save_values(gnnc_trainer *t, const char *path, const float *data, int rank,
                                     const int64_t dim[GNNC_MAX_RANK]) {
    RT_NOT_NULL(t, path);
    RT_NOT_NULL(t, data);
    RT_NOT_NULL(t, dim);
    rt_trainer_begin(t);
    RtArray a = {.dt = RT_DT_F32, .rank = rank, .count = 1, .data = data};
    bool fits = rank >= 0 && rank <= RT_ARRAY_RANK;
    for (int i = 0; i < rank && fits; i++) {
        fits = dim[i] >= 0 && !__builtin_mul_overflow(a.count, dim[i], &a.count);
        a.shape[i] = dim[i];
    }
    if (!fits) return rt_fail(&t->rt.err, GNNC_E_ARG, "%s: no array has such a shape", path);
    return rt_npy_save(&t->outer, path, &a, &t->rt.err);
}
