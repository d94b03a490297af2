/* What steps add between two updates: sums of gradients, and states such as means.  A step's part
 * is computed by itself, on top of -0, and then added to the sums.
 *
 * On a device a step's part is copied to page-locked memory in the queue's order, and nobody waits
 * for it; the host has the sums while parts are made (`apart`), and sends them back when it has
 * added the parts: one wait for all steps of an update.
 *
 * Where devices of processes send memory to each other (train_peers.h), parts and sums stay there:
 * a part goes to all behind its step, while later ones are made, and a kernel adds all parts. */
#ifndef RUNTIME_TRAIN_SUMS_H
#define RUNTIME_TRAIN_SUMS_H

#include "runtime/trainer/trainer.h"

typedef struct RtSums {
    int n, *buf;       /* buffers of the sums */
    float *keeps;      /* [n] what a step multiplies one by before it adds to it */
    bool has_state;    /* one is no sum of gradients */
    int64_t n_numbers; /* of all of them */
    float *base;       /* [n_numbers] the sums while parts are made .. */
    bool apart;        /* .. which is now: the buffers have a step's part */
    void *zeros;       /* on the device: -0, as many as the largest of them has */
    float *parts;      /* on it, as base is: those of steps, that go from device to device; NULL:
                        * they go through the host */
} RtSums;

gnnc_status rt_sums_init(gnnc_trainer *t, RtSums *s);
/* Room for the sums and n_parts parts, where devices of processes send to each other: all call it.
 * Where they do not, or there is no device, room for the sums on the host. */
gnnc_status rt_sums_place(gnnc_trainer *t, RtSums *s, int64_t n_parts);
/* Memory that steps' parts may be written to: page-locked where there is a device. */
gnnc_status rt_sums_memory(gnnc_trainer *t, size_t n_bytes, void **p);
/* lost: the other processes may be gone. */
void rt_sums_close(gnnc_trainer *t, RtSums *s, void *memory, bool lost);
/* Before a step: the buffers become -0, so that it leaves its part in them. */
gnnc_status rt_sums_begin_part(gnnc_trainer *t, RtSums *s);
/* After it: its part goes to `to` [n_numbers], by the end of rt_sums_arrive(). */
gnnc_status rt_sums_end_part(gnnc_trainer *t, RtSums *s, float *to);
/* Waits until all parts are there, and the sums that rt_sums_add() adds to. */
gnnc_status rt_sums_arrive(gnnc_trainer *t, RtSums *s);
/* Adds a step's part, as a step does it, which rounds the product. */
void rt_sums_add(gnnc_trainer *t, const RtSums *s, const float *part);
/* With s->parts: process `from` sends the part that it has there to all.  add_there: waits for n
 * parts, and adds them to the buffers. */
gnnc_status rt_sums_share(gnnc_trainer *t, const RtSums *s, float *part, int from);
gnnc_status rt_sums_add_there(gnnc_trainer *t, RtSums *s, const float *part, int64_t n);
/* The buffers are the sums again. */
gnnc_status rt_sums_put_back(gnnc_trainer *t, RtSums *s);

#endif
