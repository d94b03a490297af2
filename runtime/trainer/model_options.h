/* Numbers of the model that are said when the program runs (rt_model_option). */
#ifndef RUNTIME_MODEL_OPTIONS_H
#define RUNTIME_MODEL_OPTIONS_H

#include "runtime/data/safetensors.h"
#include "trainer.h"

gnnc_status rt_model_options_new(gnnc_trainer *t);
int rt_model_option_find(const rt_program *p, const char *name); /* -1: the model has none */
/* `value` is of that type of options; before load. */
gnnc_status rt_model_option_set(gnnc_trainer *t, int i, gnnc_option_type type, double value);
void rt_model_option_tell(const gnnc_trainer *t, int i, gnnc_option *to);
/* From the weights that came before the data what nobody has set: {"hidden": 64, "p": 0.2}. */
gnnc_status rt_model_options_take(gnnc_trainer *t);
/* .. as it stands in a file of weights.  to->key NULL: nothing is to be said. */
gnnc_status rt_model_options_put(const gnnc_trainer *t, RtPool *pool, RtMeta *to);
/* Are those of a checkpoint, which comes after the data, the ones in use? */
gnnc_status rt_model_options_check(gnnc_trainer *t, const char *path, const RtTensors *f);
/* The same of weights, which a trainer may learn on from with other values: a message. */
gnnc_status rt_model_options_compare(gnnc_trainer *t, const char *path, const RtTensors *f);
/* Of the values in use: equal in two processes that train the same model. */
uint64_t rt_model_options_hash(const gnnc_trainer *t);
/* Sizes are bound: notes those that weights told, and writes what phases read. */
gnnc_status rt_model_options_bound(gnnc_trainer *t);

#endif
