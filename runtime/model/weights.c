/* Weights in safetensors under PyG's names, ours and other programs': of files and of memory. */
#include <stdio.h>
#include <string.h>

#include "runtime/batch/train_shares.h"
#include "runtime/bind/bind.h"
#include "runtime/trainer/checkpoint.h"
#include "runtime/trainer/model_options.h"
#include "codes.h"
#include "model.h"
#include "training_metadata.h"
#include "runtime/device/device.h"

/* ---- order ------------------------------------------------------------------- */
/* Transposes n elements: rows of `to_row` elements from rows of n / to_row. */
static void transpose(const char *from, char *to, int64_t n, int64_t to_row, size_t bytes) {
    int64_t rows = to_row ? n / to_row : 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < to_row; k++)
            memcpy(to + (size_t)(i * to_row + k) * bytes, from + (size_t)(k * rows + i) * bytes,
                   bytes);
}

/* A variable's shape at the sizes of x. */
static rt_var_shape shape_of(const RtExec *x, int var) {
    rt_var_shape s = {.rank = 0};
    x->program->var_shape(var, x->n, &s);
    return s;
}

void rt_var_as_written(const RtExec *x, int var, const void *stored, void *written) {
    rt_var_shape s = shape_of(x, var);
    size_t bytes = rt_dtype_bytes(rt_file_dtype(x->program->vars[var].dt));
    if (s.transposed)
        transpose(stored, written, s.count, s.transposed, bytes);
    else if (s.count)
        memcpy(written, stored, (size_t)s.count * bytes);
}

/* Turns a variable from its outside shape into that of memory. */
void rt_var_as_stored(const RtExec *x, int var, const void *written, void *stored) {
    rt_var_shape s = shape_of(x, var);
    size_t bytes = rt_dtype_bytes(rt_file_dtype(x->program->vars[var].dt));
    if (s.transposed)
        transpose(written, stored, s.count, s.count / s.transposed, bytes);
    else if (s.count)
        memcpy(stored, written, (size_t)s.count * bytes);
}

/* ---- shapes ------------------------------------------------------------------ */
/* The dimensions that are not 1, by which shapes are compared; how many. */
static int without_ones(int rank, const int64_t *dim, int64_t *out) {
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (dim[i] != 1) out[n++] = dim[i];
    return n;
}

/* Is each dimension of `coarse` a product of consecutive dimensions of `fine`? */
static bool is_merge(int n_fine, const int64_t *fine, int n_coarse, const int64_t *coarse) {
    int f = 0;
    for (int c = 0; c < n_coarse; c++) {
        int64_t product = 1;
        if (coarse[c] == 0) return false;
        while (f < n_fine && product < coarse[c] && fine[f] > 0)
            if (__builtin_mul_overflow(product, fine[f++], &product)) return false;
        if (product != coarse[c]) return false;
    }
    return f == n_fine;
}

bool rt_shapes_agree(int rank_a, const int64_t *a, int rank_b, const int64_t *b) {
    int64_t x[RT_MAX_RANK], y[RT_MAX_RANK];
    int nx = without_ones(rank_a, a, x), ny = without_ones(rank_b, b, y);
    if (nx == ny && memcmp(x, y, sizeof *x * (size_t)nx) == 0) return true;
    return nx > ny ? is_merge(nx, x, ny, y) : is_merge(ny, y, nx, x);
}

/* The element type by which files have numbers of type t. */
RtDtype rt_file_dtype(rt_dtype t) {
    switch (t) {
    case RT_F64:
        return RT_DT_F64;
    case RT_F16:
        return RT_DT_F16;
    case RT_BF16:
        return RT_DT_BF16;
    case RT_I32:
        return RT_DT_I32;
    case RT_I64:
        return RT_DT_I64;
    case RT_I1:
        return RT_DT_BOOL;
    case RT_VOID:
    case RT_F32:
        break;
    }
    return RT_DT_F32;
}

RtArray rt_var_array(gnnc_trainer *t, RtPool *pool, int var, const void *stored) {
    rt_var_shape s = shape_of(&t->x, var);
    RtArray a = {.dt = rt_file_dtype(t->program->vars[var].dt),
                 .rank = s.rank,
                 .count = s.count,
                 .data = stored};
    memcpy(a.shape, s.dim, sizeof(int64_t) * (size_t)s.rank);
    if (!stored || !s.transposed || !s.count) return a;
    void *written = rt_pool_alloc(pool, (size_t)s.count, rt_dtype_bytes(a.dt));
    if (written) rt_var_as_written(&t->x, var, stored, written);
    a.data = written;
    return a;
}

/* Writes a shape as "[3, 4]". */
static void print_shape(char *to, size_t n, int rank, const int64_t *dim) {
    size_t at = (size_t)snprintf(to, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(to + at, n - at, "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (at < n) snprintf(to + at, n - at, "]");
}

/* Fails if a parameter has a row for each row of a table, and the data other rows: new ones have no
 * values in it. */
static gnnc_status other_rows(gnnc_trainer *t, RtPool *pool, const char *path, const RtTensor *from,
                              int var, const RtArray *want) {
    int64_t *n = rt_sizes_of(&t->x, pool);
    if (!n) return rt_fail_nomem(&t->rt.err, from->name);
    for (int d = 0; d < want->rank && from->a.rank == want->rank; d++) {
        int s = rt_rows_space(&t->x, var, d, n, false);
        if (s < 0 || from->a.shape[d] == want->shape[d]) continue;
        return rt_fail(&t->rt.err, GNNC_E_SHAPE,
                       "%s: '%s' has rows for the %lld '%s' that it was trained with, and %s has "
                       "%lld%s",
                       path, from->name, (long long)from->a.shape[d], t->program->spaces[s].name,
                       t->rt.bound->dir, (long long)want->shape[d],
                       want->shape[d] > from->a.shape[d] ? ": the new ones have no row in it" : "");
    }
    return GNNC_OK;
}

static bool is_converted(const gnnc_trainer *t, const RtTensor *from, int var) {
    return rt_dtype_kind(from->a.dt) == 'f' && t->program->vars[var].dt == RT_F32;
}

gnnc_status rt_tensor_check(gnnc_trainer *t, RtPool *pool, const char *path, const RtTensor *from,
                            int var) {
    RtArray want = rt_var_array(t, pool, var, NULL);
    char has[128], wants[128];
    if (!rt_shapes_agree(from->a.rank, from->a.shape, want.rank, want.shape)) {
        gnnc_status st = other_rows(t, pool, path, from, var, &want);
        if (st != GNNC_OK) return st;
        print_shape(has, sizeof has, from->a.rank, from->a.shape);
        print_shape(wants, sizeof wants, want.rank, want.shape);
        return rt_fail(&t->rt.err, GNNC_E_SHAPE, "%s: '%s' is %s, in the model %s", path,
                       from->name, has, wants);
    }
    if (is_converted(t, from, var) || from->a.dt == want.dt) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_DTYPE, "%s: '%s' is %s, in the model %s", path, from->name,
                   rt_dtype_name(from->a.dt), rt_dtype_name(want.dt));
}

/* Everything that can fail, before anything is stored. */
gnnc_status rt_tensor_fit(gnnc_trainer *t, RtPool *pool, const char *path, RtTensor *from,
                          int var) {
    gnnc_status st = rt_tensor_check(t, pool, path, from, var);
    if (st != GNNC_OK) return st;
    if (is_converted(t, from, var)) from->a.data = rt_array_as_f32(pool, &from->a);
    from->a.dt = rt_file_dtype(t->program->vars[var].dt);
    return from->a.data ? GNNC_OK : rt_fail_nomem(&t->rt.err, from->name);
}

void rt_tensor_store(gnnc_trainer *t, const RtTensor *from, int var, void *to) {
    rt_var_as_stored(&t->x, var, from->a.data, to);
}

/* ---- files and memory ------------------------------------------------------------ */
gnnc_status rt_source_read(RtPool *pool, const RtSource *from, RtTensors *out, RtError *err) {
    if (from->memory.p) return rt_safetensors_parse(pool, from->memory, from->name, out, err);
    if (!from->given) return rt_safetensors_open(pool, from->name, out, err);
    *out = *from->given;
    return GNNC_OK;
}

/* Gives the next n bytes to the host's function; n_left more come. */
static gnnc_status write_host(void *target, const void *p, size_t n, size_t n_left, RtError *err) {
    const RtTarget *to = target;
    int failed = to->write(to->user, p, n, n_left);
    if (!failed) return GNNC_OK;
    return rt_fail(err, GNNC_E_IO, "%s: the host's function that writes returned %d", to->name,
                   failed);
}

/* Writes tensors to a file, or to the host's function. */
gnnc_status rt_target_write(gnnc_trainer *t, const RtTarget *to, const RtTensors *f) {
    const RtAlloc *from = &t->rt.pool.from;
    if (!to->write) return rt_safetensors_save(from, to->name, f, &t->rt.err);
    RtTarget host = *to;
    return rt_safetensors_write(from, to->name, f, &(RtSink){write_host, &host}, &t->rt.err);
}

/* ---- save ----------------------------------------------------------------------- */
/* Writes parameters and states, with the names of codes and what training reached. */
static gnnc_status save_weights(gnnc_trainer *t, const RtTarget *to) {
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st == GNNC_OK) st = rt_shares_settle_state(t);
    if (st != GNNC_OK) return st;
    if ((st = rt_pull_vars(&t->x)) != GNNC_OK) return st;
    RtPool pool;
    rt_pool_init(&pool, &t->rt.pool.from);
    RtTensors f = {
        .v = RT_NEWN(&pool, RtTensor, t->n_shown),
        .meta = RT_NEWN(&pool, RtMeta, rt_codes_capacity(t->program) + RT_TRAINING_METADATA_MAX)};
    bool ok = f.v && f.meta && rt_codes_put(&t->x, &pool, f.meta, &f.n_meta) == GNNC_OK;
    ok = ok && rt_training_metadata_put(t, NULL, &pool, f.meta, &f.n_meta) == GNNC_OK;
    for (int i = 0; ok && i < t->n_shown; i++) {
        const rt_var *v = &t->program->vars[t->shown[i]];
        f.v[f.n] = (RtTensor){v->path, rt_var_array(t, &pool, t->shown[i], t->x.buf[v->buf])};
        ok = f.v[f.n++].a.data || !t->x.buf[v->buf];
    }
    st = ok ? rt_target_write(t, to, &f) : rt_fail_nomem(&t->rt.err, to->name);
    rt_pool_free(&pool);
    return st;
}

gnnc_status gnnc_trainer_save_weights(gnnc_trainer *t, const char *path) {
    RT_NOT_NULL(t, path);
    return save_weights(t, &(RtTarget){.name = path});
}

gnnc_status gnnc_trainer_save_weights_to(gnnc_trainer *t, gnnc_write_fn *write, void *user) {
    RT_NOT_NULL(t, write);
    return save_weights(t, &(RtTarget){"weights", write, user});
}

/* ---- to a model ------------------------------------------------------------------ */
typedef struct {
    gnnc_model *m;
    uint8_t *p;
    size_t n;
} Taken;

/* Copies what is written into memory of the model, allocated when the first bytes say how many
 * come. */
static int take(void *user, const void *data, size_t n_bytes, size_t n_left) {
    Taken *to = user;
    if (!to->p) to->p = rt_pool_alloc(&to->m->pool, n_bytes + n_left, 1);
    if (!to->p) return 1;
    memcpy(to->p + to->n, data, n_bytes);
    to->n += n_bytes;
    return 0;
}

gnnc_status gnnc_trainer_to_model(gnnc_trainer *t, const gnnc_program *program, gnnc_model **out) {
    if (out) *out = NULL;
    RT_NOT_NULL(t, program);
    RT_NOT_NULL(t, out);
    const RtAlloc *a = &t->outer; /* not its counting one: the model may outlive it */
    Taken to = {0};
    gnnc_status st = gnnc_model_create_with(&to.m, program, a->alloc, a->release, a->user);
    if (st == GNNC_E_NOMEM) return rt_fail_nomem(&t->rt.err, "a model");
    if (st != GNNC_OK)
        return rt_fail(&t->rt.err, st, "a program of another version of the compiler");
    TRY(st, save_weights(t, &(RtTarget){"weights", take, &to}));
    if ((st = rt_model_take(to.m, "weights of a trainer", (RtBytes){to.p, to.n})) != GNNC_OK)
        rt_fail(&t->rt.err, st, "%s", to.m->err.text);
out:
    if (st == GNNC_E_IO) st = rt_fail_nomem(&t->rt.err, "a model's weights");
    if (st == GNNC_OK)
        *out = to.m;
    else
        gnnc_model_release(to.m);
    return st;
}

/* ---- load ----------------------------------------------------------------------- */
/* Names of the file that the model does not have are worth a word, not a failure:
 * our own checkpoints carry optimizer state. */
static void report_unexpected(gnnc_trainer *t, const char *path, const RtTensors *f) {
    bool ours = rt_tensors_meta(f, "gnnc_checkpoint") != NULL;
    for (int i = 0; i < f->n && !ours; i++) {
        bool known = false;
        for (int k = 0; k < t->n_shown && !known; k++)
            known = strcmp(f->v[i].name, t->program->vars[t->shown[k]].path) == 0;
        if (!known) rt_message(&t->rt, "%s: '%s' is not in the model", path, f->v[i].name);
    }
}

/* Does the file have every parameter in the right shape? The message lists those that are
 * missing. */
static gnnc_status fit_all(gnnc_trainer *t, RtPool *pool, const char *path, const RtTensors *f) {
    enum { TOLD = 10 };
    char missing[400] = "";
    size_t n = 0;
    int n_missing = 0;
    for (int i = 0; i < t->n_shown; i++) {
        const char *name = t->program->vars[t->shown[i]].path;
        RtTensor *from = rt_tensors_find(f, name);
        if (!from && n_missing++ < TOLD && n + strlen(name) + 5 < sizeof missing)
            n += (size_t)snprintf(missing + n, sizeof missing - n, "%s'%s'", n ? ", " : "", name);
        gnnc_status st = GNNC_OK;
        if (from && t->rt.model)
            st = rt_tensor_check(t, pool, path, from, t->shown[i]);
        else if (from)
            st = rt_tensor_fit(t, pool, path, from, t->shown[i]);
        if (st != GNNC_OK) return st;
    }
    if (!n_missing) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "%s: missing %s%s (%d of %d)", path, missing,
                   n_missing > TOLD ? ", .." : "", n_missing, t->n_shown);
}

/* Copies the file's tensors to the parameters. */
static void store_all(gnnc_trainer *t, const RtTensors *f) {
    for (int i = 0; i < t->n_shown; i++) {
        const rt_var *v = &t->program->vars[t->shown[i]];
        rt_tensor_store(t, rt_tensors_find(f, v->path), t->shown[i], t->x.buf[v->buf]);
    }
}

/* Parameters that come from elsewhere are the ones to be trained, not only their average. */
void rt_average_anew(gnnc_trainer *t) {
    for (int v = 0; v < t->program->n_vars; v++) {
        const rt_var *of = &t->program->vars[v];
        if (of->role != RT_ROLE_UPDATES || of->buf < 0) continue;
        *(float *)t->x.buf[of->buf] = 0;
        rt_push(&t->x, of->buf);
    }
}

/* Tells that weights are of another task. A model refuses these (model.c); a trainer may learn the
 * one from the other. */
static gnnc_status tell_other_task(gnnc_trainer *t, RtPool *pool, const char *path,
                                   const RtTensors *f) {
    const char *other;
    gnnc_status st = rt_task_check(t->program, pool, path, f, &other);
    if (st != GNNC_OK) return rt_fail_nomem(&t->rt.err, path);
    if (other) rt_message(&t->rt, "%s", other);
    return GNNC_OK;
}

/* Reads parameters from a file; all is checked before the first of them is changed. */
gnnc_status rt_weights_load(gnnc_trainer *t, const RtSource *from) {
    const char *path = from->name;
    gnnc_status st;
    RtPool pool;
    RtTensors f;
    rt_pool_init(&pool, &t->rt.pool.from);
    TRY(st, rt_source_read(&pool, from, &f, &t->rt.err));
    if (!t->rt.model) TRY(st, tell_other_task(t, &pool, path, &f));
    if (!t->rt.model) TRY(st, rt_model_options_compare(t, path, &f));
    TRY(st, rt_codes_check(t, path, &f));
    TRY(st, rt_node_rows(t, &pool, path, &f));
    TRY(st, fit_all(t, &pool, path, &f));
    report_unexpected(t, path, &f);
    if (t->rt.model)
        TRY(st, rt_model_lend(t, &f));
    else
        store_all(t, &f);
    t->judged = t->step_judged = false;
    rt_push_vars(&t->x);
    if (!t->rt.model) rt_average_anew(t);
out:
    rt_pool_free(&pool);
    return st;
}

/* Before the trainer has planned its memory the file is only opened, and its tensors are read when
 * sizes are known. No run is resumed (false): weights alone are taken. */
static gnnc_status load_weights(gnnc_trainer *t, const RtSource *from) {
    rt_trainer_begin(t);
    if (!t->planned) return rt_weights_file_open(t, from, false);
    gnnc_status st = rt_trainer_need_data(t);
    return st == GNNC_OK ? rt_weights_load(t, from) : st;
}

gnnc_status gnnc_trainer_load_weights(gnnc_trainer *t, const char *path) {
    RT_NOT_NULL(t, path);
    return load_weights(t, &(RtSource){.name = path});
}

gnnc_status gnnc_trainer_load_weights_from(gnnc_trainer *t, const void *data, size_t n_bytes) {
    RT_NOT_NULL(t, data);
    return load_weights(t, &(RtSource){.name = "the weights in memory", .memory = {data, n_bytes}});
}

gnnc_status gnnc_trainer_load_model(gnnc_trainer *t, const gnnc_model *m) {
    RT_NOT_NULL(t, m);
    if (m->weights.memory.p) return load_weights(t, &m->weights);
    rt_trainer_begin(t);
    return rt_fail(&t->rt.err, GNNC_E_STATE, "the model has no weights: gnnc_model_load");
}
