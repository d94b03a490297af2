#include "model.h"

#include <string.h>

#include "runtime/data/io.h"

gnnc_status gnnc_model_create_with(gnnc_model **out, const gnnc_program *program,
                                   gnnc_alloc_fn *alloc, gnnc_release_fn *release, void *user) {
    if (out) *out = NULL;
    if (!out || !program || program->version != RT_PROGRAM_VERSION || !alloc || !release)
        return GNNC_E_ARG;
    gnnc_model *m = alloc(user, sizeof *m);
    if (!m) return GNNC_E_NOMEM;
    *m = (gnnc_model){.from = {alloc, release, user}, .program = program->tables};
    atomic_init(&m->n_refs, 1);
    pthread_mutex_init(&m->storing, NULL);
    rt_pool_init(&m->pool, &m->from);
    *out = m;
    return GNNC_OK;
}

gnnc_status gnnc_model_create(gnnc_model **out, const gnnc_program *program) {
    RtAlloc a = rt_alloc_default();
    return gnnc_model_create_with(out, program, a.alloc, a.release, a.user);
}

void gnnc_model_retain(gnnc_model *m) {
    if (m) atomic_fetch_add(&m->n_refs, 1);
}

void gnnc_model_release(gnnc_model *m) {
    if (!m || atomic_fetch_sub(&m->n_refs, 1) > 1) return;
    RtAlloc from = m->from;
    rt_pool_free(&m->pool);
    pthread_mutex_destroy(&m->storing);
    from.release(from.user, m);
}

const char *gnnc_model_error(const gnnc_model *m) {
    return m ? m->err.text : "";
}

const char *gnnc_model_name(const gnnc_model *m) {
    return m ? m->program->name : "";
}

/* Of what failed nothing stays. */
static void drop(gnnc_model *m) {
    m->n_reached = 0;
    rt_pool_free(&m->pool);
}

/* Is the file of this model's task? The message says of which it is. */
static gnnc_status check_task(gnnc_model *m, const char *name) {
    const char *other;
    gnnc_status st = rt_task_check(m->program, &m->pool, name, &m->f, &other);
    if (st != GNNC_OK) return rt_fail_nomem(&m->err, name);
    return other ? rt_fail(&m->err, GNNC_E_ARG, "%s", other) : GNNC_OK;
}

/* Read once, for all sessions: what is in the file is compared with the program once data tell the
 * program's sizes. */
gnnc_status rt_model_take(gnnc_model *m, const char *name, RtBytes bytes) {
    RtSource from = {.name = name, .memory = bytes};
    gnnc_status st;
    TRY(st, rt_source_read(&m->pool, &from, &m->f, &m->err));
    TRY(st, check_task(m, name));
    TRY(st, rt_codes_read(&m->pool, name, &m->f, &m->codes, &m->n_codes, &m->err));
    TRY(st, rt_encoders_read(&m->pool, name, &m->f, m->codes, m->n_codes, &m->encoders, &m->err));
    TRY(st, rt_metric_values_read(&m->pool, name, &m->f, &m->reached, &m->n_reached, &m->err));
    if (!(m->stored = RT_NEWN(&m->pool, RtStored, m->f.n))) st = rt_fail_nomem(&m->err, name);
out:
    if (st == GNNC_OK)
        m->weights = from;
    else
        drop(m);
    return st;
}

/* Clears the last error; a model gets its weights once. */
static gnnc_status may_load(gnnc_model *m) {
    m->err.text[0] = '\0';
    if (m->weights.memory.p)
        return rt_fail(&m->err, GNNC_E_STATE, "the model has its weights already");
    return GNNC_OK;
}

gnnc_status gnnc_model_load(gnnc_model *m, const char *path) {
    if (!m || !path) return GNNC_E_ARG;
    RtBytes bytes;
    gnnc_status st;
    TRY(st, may_load(m));
    char *own = rt_pool_strndup(&m->pool, path, strlen(path));
    if (!own) return rt_fail_nomem(&m->err, path);
    TRY(st, rt_file_map(&m->pool, path, &bytes, &m->err));
    st = rt_model_take(m, own, bytes);
out:
    return st;
}

gnnc_status gnnc_model_load_from(gnnc_model *m, const void *data, size_t n_bytes) {
    if (!m || !data) return GNNC_E_ARG;
    gnnc_status st = may_load(m);
    if (st != GNNC_OK) return st;
    uint8_t *own = rt_pool_alloc(&m->pool, n_bytes, 1);
    if (!own) return rt_fail_nomem(&m->err, "weights");
    memcpy(own, data, n_bytes);
    return rt_model_take(m, "weights in memory", (RtBytes){own, n_bytes});
}
