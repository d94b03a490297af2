/* Values of a trainer that its host may read and write: outputs and parameters. */
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"
#include "runtime/batch/link_batches.h"
#include "runtime/batch/row_batches.h"
#include "runtime/batch/train_batches.h"
#include "runtime/batch/train_shares.h"
#include "runtime/device/device.h"
#include "trainer.h"

/* ---- outputs --------------------------------------------------------------- */
/* Several phases may give one name; then the last one run is meant. */
static int find_output(const gnnc_trainer *t, const char *name) {
    const rt_program *p = t->program;
    int found = -1;
    for (int b = 0; b < p->n_bufs; b++) {
        if (p->bufs[b].kind != RT_BUF_OUTPUT || strcmp(p->bufs[b].io_name, name) != 0) continue;
        if (found < 0 || p->bufs[b].phase == t->last_phase) found = b;
    }
    return found;
}

/* Where the values of output b lie: in the last step's batch, or with the trainer's data.  NULL:
 * they are gone. */
static RtExec *holder_of(gnnc_trainer *t, int b) {
    const rt_phase *phase = &t->program->phases[t->program->bufs[b].phase];
    bool is_last = t->last_phase == t->program->bufs[b].phase;
    if (!rt_memory_passes(t->program, b)) return &t->x;
    if (phase->kind != RT_PHASE_TRAIN) return is_last ? &t->x : NULL;
    /* On a device, one batch's memory serves all phases that run over batches. */
    bool over = t->rt.device && !is_last && (t->rows || t->links);
    return over ? NULL : rt_batches_last(t);
}

/* Finds the values of output b on the host, with its shape: of batches of rows, of links, or of the
 * buffer itself. */
static gnnc_status give(gnnc_trainer *t, int b, const float **data, int *rank, int64_t *dim) {
    const rt_buf *buf = &t->program->bufs[b];
    if (buf->dt != RT_F32)
        return rt_fail(&t->rt.err, GNNC_E_DTYPE, "output '%s' is not f32", buf->io_name);
    int64_t n_rows;
    const void *rows = rt_row_batches_value(t, b, &n_rows);
    if (!rows) rows = rt_link_batches_value(t, b, &n_rows);
    RtExec *x = holder_of(t, b);
    if (!x)
        return rt_fail(
            &t->rt.err, GNNC_E_STATE,
            "output '%s' is gone: another phase ran, or one failed, since it was computed",
            buf->io_name);
    t->program->buf_shape(b, x->n, dim);
    *rank = buf->rank;
    *data = rows ? rows : x->buf[b];
    if (rows) *dim = n_rows;
    t->rt.count.read_backs++;
    if (rows) return GNNC_OK;
    return x == &t->x ? rt_pull(x, b) : rt_device_batch_pull(x, b);
}

gnnc_status gnnc_trainer_output(gnnc_trainer *t, const char *name, const float **data, int *rank,
                                int64_t dim[GNNC_MAX_RANK]) {
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, data);
    RT_NOT_NULL(t, rank);
    RT_NOT_NULL(t, dim);
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    int b = find_output(t, name);
    if (b < 0) return rt_fail(&t->rt.err, GNNC_E_MISSING, "no output '%s'", name);
    return give(t, b, data, rank, dim);
}

const char *gnnc_trainer_dumped(const gnnc_trainer *t, int i) {
    const rt_program *p = t ? t->program : NULL;
    for (int b = 0; p && b < p->n_bufs; b++)
        if (p->bufs[b].role == RT_OUT_DUMP && i-- == 0) return p->bufs[b].io_name;
    return NULL;
}

gnnc_status gnnc_trainer_predict(gnnc_trainer *t, const float **data, int *rank,
                                 int64_t dim[GNNC_MAX_RANK]) {
    RT_NOT_NULL(t, data);
    RT_NOT_NULL(t, rank);
    RT_NOT_NULL(t, dim);
    gnnc_status st = gnnc_trainer_run_phase(t, "predict");
    if (st != GNNC_OK) return st;
    int b = rt_trainer_prediction(t);
    if (b < 0) return rt_fail(&t->rt.err, GNNC_E_MISSING, "the model predicts nothing");
    return give(t, b, data, rank, dim);
}

/* ---- hidden layers ----------------------------------------------------------- */
static const char *layer_of(const rt_buf *b) {
    return b->role == RT_OUT_EMBED ? b->of : NULL;
}

int gnnc_trainer_n_layers(const gnnc_trainer *t) {
    if (!t) return 0;
    int n = 0;
    for (int b = 0; b < t->program->n_bufs; b++) n += layer_of(&t->program->bufs[b]) != NULL;
    return n;
}

const char *gnnc_trainer_layer_name(const gnnc_trainer *t, int i) {
    if (!t) return NULL;
    for (int b = 0; b < t->program->n_bufs; b++)
        if (layer_of(&t->program->bufs[b]) && i-- == 0) return layer_of(&t->program->bufs[b]);
    return NULL;
}

gnnc_status rt_trainer_layer(gnnc_trainer *t, const char *layer, int *buf) {
    char names[256] = "";
    for (*buf = 0; *buf < t->program->n_bufs; ++*buf) {
        const char *name = layer_of(&t->program->bufs[*buf]);
        if (name && strcmp(name, layer) == 0) return GNNC_OK;
    }
    for (int i = 0, at = 0; i < gnnc_trainer_n_layers(t) && at < (int)sizeof names; i++)
        at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", i ? ", " : ": there is ",
                       gnnc_trainer_layer_name(t, i));
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "the model has no layer '%s'%s", layer, names);
}

gnnc_status gnnc_trainer_embed(gnnc_trainer *t, const char *layer, const float **data, int *rank,
                               int64_t dim[GNNC_MAX_RANK]) {
    RT_NOT_NULL(t, layer);
    RT_NOT_NULL(t, data);
    RT_NOT_NULL(t, rank);
    RT_NOT_NULL(t, dim);
    rt_trainer_begin(t);
    int b;
    gnnc_status st = rt_trainer_layer(t, layer, &b);
    if (st == GNNC_OK) st = gnnc_trainer_run_phase(t, "embed");
    return st == GNNC_OK ? give(t, b, data, rank, dim) : st;
}

/* ---- parameters ---------------------------------------------------------------- */
int gnnc_trainer_n_parameters(const gnnc_trainer *t) {
    if (!t) return 0;
    return t->n_shown;
}

gnnc_status gnnc_trainer_parameter_info(gnnc_trainer *t, int i, const char **name, int *rank,
                                        int64_t dim[GNNC_MAX_RANK]) {
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, rank);
    RT_NOT_NULL(t, dim);
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= t->n_shown) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no parameter %d", i);
    rt_var_shape s = {.rank = 0};
    t->program->var_shape(t->shown[i], t->x.n, &s);
    *name = t->program->vars[t->shown[i]].path;
    *rank = s.rank;
    memcpy(dim, s.dim, sizeof(int64_t) * (size_t)s.rank);
    return GNNC_OK;
}

/* Reads a state of one number; false: there is none. */
static bool state_of(gnnc_trainer *t, rt_var_role role, double *value) {
    for (int i = 0; i < t->program->n_vars; i++) {
        const rt_var *v = &t->program->vars[i];
        if (v->role != role) continue;
        if (!t->x.buf[v->buf] || rt_pull(&t->x, v->buf) != GNNC_OK) return false;
        *value = (double)*(const float *)t->x.buf[v->buf];
        return true;
    }
    return false;
}

bool rt_trainer_skipped(gnnc_trainer *t, double *steps, double *scale) {
    return state_of(t, RT_ROLE_SKIPPED_STEPS, steps) && state_of(t, RT_ROLE_LOSS_SCALE, scale);
}

/* Finds a parameter or state of type f32 by name. */
gnnc_status rt_trainer_parameter(gnnc_trainer *t, const char *name, int *var) {
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    for (int i = 0; i < t->n_shown; i++) {
        const rt_var *v = &t->program->vars[t->shown[i]];
        if (strcmp(v->path, name) != 0) continue;
        *var = t->shown[i];
        if (v->dt == RT_F32) return GNNC_OK;
        return rt_fail(&t->rt.err, GNNC_E_DTYPE, "'%s' is not f32", name);
    }
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "no parameter '%s'", name);
}

/* Finds a parameter of type f32 by name, which must have n elements. */
static gnnc_status parameter_of(gnnc_trainer *t, const char *name, size_t n, float **data,
                                int *var) {
    gnnc_status st = rt_trainer_parameter(t, name, var);
    if (st != GNNC_OK) return st;
    size_t have = rt_var_bytes(t, *var) / sizeof(float);
    *data = t->x.buf[t->program->vars[*var].buf];
    if (have == n) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_SHAPE, "'%s' has %zu elements, not %zu", name, have, n);
}

gnnc_status gnnc_trainer_get_parameter(gnnc_trainer *t, const char *name, float *data, size_t n) {
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, data);
    rt_trainer_begin(t);
    float *own;
    int v;
    gnnc_status st = parameter_of(t, name, n, &own, &v);
    if (st == GNNC_OK && t->program->vars[v].kind == RT_VAR_STATE) st = rt_shares_settle_state(t);
    if (st == GNNC_OK) st = rt_pull(&t->x, t->program->vars[v].buf);
    if (st == GNNC_OK) rt_var_as_written(&t->x, v, own, data);
    return st;
}

gnnc_status gnnc_trainer_set_parameter(gnnc_trainer *t, const char *name, const float *data,
                                       size_t n) {
    RT_NOT_NULL(t, name);
    RT_NOT_NULL(t, data);
    rt_trainer_begin(t);
    float *own;
    int v;
    gnnc_status st = parameter_of(t, name, n, &own, &v);
    if (st != GNNC_OK) return st;
    t->judged = t->step_judged = false;
    rt_var_as_stored(&t->x, v, data, own);
    rt_push(&t->x, t->program->vars[v].buf);
    rt_average_anew(t);
    return st;
}
