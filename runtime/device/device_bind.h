/* Mini-batches that the device drew are bound there: relations are derived and maps get their index
 * arrays as those of all data (device_maps.h), by the queue that drew them.  The arrays are the
 * host's to the bit.  They lie in room for the largest batch that there may be, until the next one;
 * the step takes them with the columns that it gathers (cuda/gather.h).  What the device does not
 * make of a batch (rt_device_makes) the host does, and sends. */
#ifndef RUNTIME_DEVICE_BIND_H
#define RUNTIME_DEVICE_BIND_H

#include "device_maps.h"
#include "device_sample.h"

/* Why it cannot be done with a program's batches, in words; NULL: it can. */
const char *rt_device_bind_lacks(const rt_program *p);

/* For a mini-batch x of the sampler's, whose types and relations are these spaces; check: the host
 * makes all of it, too, and it is compared.  Working memory is that of `like`, of the same sampler,
 * which must outlive it; NULL: its own.  GNNC_E_NOMEM, GNNC_E_RANGE: there is no such room.
 * Failures are the trainer's. */
gnnc_status rt_device_bind_new(RtDeviceMaps **out, RtExec *x, const RtDeviceSampler *s,
                               const int *space_of_type, const int *space_of_rel, bool check,
                               const RtDeviceMaps *like);
void rt_device_bind_free(RtDeviceMaps *m); /* NULL is fine */

/* Forgets the batch before. */
void rt_device_bind_begin(RtDeviceMaps *m);
/* The edges of a space, which were drawn: arrays there. */
void rt_device_bind_edges(RtDeviceMaps *m, int space, const RtRelation *there);
/* The batch's rows of a column, as the device takes them. */
void rt_device_bind_rows(RtDeviceMaps *m, int column, const RtDeviceGather *rows);
/* After that: is a map of the column made there, and nowhere else, of what is there? */
bool rt_device_bind_takes(const RtDeviceMaps *m, int map);
/* Waits until all is made; gathers [n_bufs] gets what the step takes.  st: of what was made; after
 * a failure it is the result. */
gnnc_status rt_device_bind_end(RtDeviceMaps *m, gnnc_status st, RtDeviceGather *gathers);

#endif
