/* What calls of the interface begin with: a clean error, a handle that is there, data that are
 * loaded. */
#include "runtime/device/device.h"
#include "trainer.h"

gnnc_status rt_null_argument(gnnc_trainer *t, const char *name) {
    if (!t) return GNNC_E_ARG;
    rt_trainer_begin(t);
    return rt_fail(&t->rt.err, GNNC_E_ARG, "the argument '%s' is NULL", name);
}

void rt_trainer_begin(gnnc_trainer *t) {
    if (t->rt.device) t->rt.device->ops->enter(t->rt.device);
    t->rt.err.text[0] = '\0';
    t->rt.stop = NULL; /* an evaluation after the end is not stopped by what ended the training */
    t->rt.asked = 0;
}

gnnc_status rt_trainer_need_data(gnnc_trainer *t) {
    if (t->loaded) return GNNC_OK;
    return rt_fail(&t->rt.err, GNNC_E_STATE, "no data are loaded");
}

gnnc_counters rt_trainer_counters(gnnc_trainer *t) {
    pthread_mutex_lock(&t->counting);
    gnnc_counters now = t->rt.count;
    pthread_mutex_unlock(&t->counting);
    return now;
}

gnnc_status rt_trainer_may_take(gnnc_trainer *t, size_t n_bytes, const char *what,
                                const char *advice) {
    size_t live = (size_t)rt_trainer_counters(t).live_bytes;
    return rt_memory_more(&t->x, &t->memory, (size_t)t->options.max_memory, live, n_bytes, what,
                          advice);
}
