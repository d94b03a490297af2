/* What a gnnc_model is made of: a program and a file of weights. */
#ifndef RUNTIME_MODEL_H
#define RUNTIME_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/trainer/checkpoint.h"
#include "codes.h"
#include "training_metadata.h"

/* A tensor of the weights as programs read it. */
typedef struct RtStored {
    const void *data;   /* in the file, or a copy of the model's; NULL: nobody has read it yet */
    int64_t transposed; /* rt_var_shape.transposed, of a copy */
} RtStored;

/* What a program, or a variant of it, computes of the weights alone (@refresh), on the host. */
typedef struct RtComputed {
    struct RtComputed *next;
    const rt_program *program;
    void **data; /* [n_vars] of those that are kept */
    bool done;
} RtComputed;

struct gnnc_model {
    atomic_int n_refs;
    RtAlloc from;
    RtPool pool;
    const rt_program *program;
    RtSource weights; /* the bytes of a file, and what messages call it; memory.p NULL: none yet */
    RtTensors f;      /* .. read */
    int n_codes;
    RtCodes *codes; /* [n_codes] */
    RtEncoders encoders;
    int n_reached;
    RtMetricValue *reached;  /* [n_reached] */
    pthread_mutex_t storing; /* around what follows and the pool, once there are weights */
    RtStored *stored;        /* [f.n] */
    RtComputed *computed;
    const struct RtPacked *packed; /* entries do not change: sessions read those that they found */
    RtError err;
};

/* The weights are these bytes, in the model's pool; `name` is what messages call them.  The model
 * has none yet. */
gnnc_status rt_model_take(gnnc_model *m, const char *name, RtBytes bytes);

/* model_lend.c: for the load to come of a trainer that serves sessions, t->rt.model: data are bound
 * by its weights, and parameters will be read in its memory. */
gnnc_status rt_model_share_weights(gnnc_model *m, gnnc_trainer *t);
/* Then its parameters are `f`: tensors of the model, some of them in the order of the data's rows
 * (rt_node_rows), which fit (rt_tensor_check). */
gnnc_status rt_model_lend(gnnc_trainer *t, const RtTensors *f);
/* .. and what the program keeps of them is there. */
gnnc_status rt_model_refresh(gnnc_trainer *t);
bool rt_model_has(const gnnc_model *m, const void *data); /* one of these; while `storing` */
/* model_pack.c: weights as the products of predictions read them, t->rt.packed. */
gnnc_status rt_model_pack(gnnc_trainer *t);

#endif
