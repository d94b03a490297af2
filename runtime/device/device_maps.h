/* Relations and the index arrays of maps, built on a device (cuda/maps.h): the arrays that
 * data/relation.c and bind_map.c make on the host.  A base relation's ends cross once, as the data
 * have them; what the host needs of the result (edges' rows, what samplers read) it gets by a copy.
 * Arrays stay where they were made: they are the program's buffers (device.h).
 *
 * Where the device cannot, the host goes on from what there is (rt_device_maps_fall_back). */
#ifndef RUNTIME_DEVICE_MAPS_H
#define RUNTIME_DEVICE_MAPS_H

#include "runtime/bind/bind.h"
#include "runtime/device/device.h"

typedef struct RtDeviceMaps RtDeviceMaps;

/* From now on relations of x are built there, if its program has kernels for it; check: on both
 * sides, which are compared. */
gnnc_status rt_device_maps_open(RtExec *x, bool check);
void rt_device_maps_close(RtDevice *d);
/* The trainer's, or a mini-batch's (device_bind.h); NULL: the host builds them. */
RtDeviceMaps *rt_device_maps(const RtExec *x);
/* Has it the edges of a space, and does it make the arrays of a map?  Of all data both; what it
 * lacks of a batch the host has, and makes. */
bool rt_device_has_edges(const RtDeviceMaps *m, int space);
bool rt_device_makes(const RtDeviceMaps *m, int map);
/* Maps of this kind from edges. */
static inline bool rt_device_binds(rt_map_kind k) {
    return k == RT_MAP_SRC || k == RT_MAP_DST || k == RT_MAP_ORIG || k == RT_MAP_COL;
}
bool rt_device_maps_check(const RtDeviceMaps *m);
/* After building `name` failed: true where that was for want of memory or of 32-bit numbers.  Then
 * one line says so, *st is whether the host has what it needs to go on, and the device builds
 * nothing more.  Else the message names what was built. */
bool rt_device_maps_fall_back(RtExec *x, const char *name, gnnc_status *st);

/* An edge space whose bases are there; *sizes gets its numbers, no arrays. */
gnnc_status rt_device_relation(RtDeviceMaps *m, int space, RtRelation *sizes);
/* Copies it to the host's relation; not whole: with its bases, as far as an edge's row depends on
 * them. */
gnnc_status rt_device_relation_to_host(RtExec *x, int space, bool whole);
const RtRelation *rt_device_relation_arrays(const RtDeviceMaps *m, int space);
/* Arrays of it that are there still, when maps are made; the others are NULL. */
RtRelation rt_device_relation_kept(const RtExec *x, int space);

/* Arrays there: a copy of the host's, elements grouped by key, rows of entries, x[perm[0 .. *n)]
 * (NULL: the identity), of which `count` are made room for. */
gnnc_status rt_on_device_copy(RtDeviceMaps *m, const void *here, int64_t n, size_t size,
                              const void **to);
gnnc_status rt_on_device_group(RtDeviceMaps *m, const int32_t *key, int64_t n, int64_t n_groups,
                               RtGroups *out);
gnnc_status rt_on_device_rows(RtDeviceMaps *m, const int64_t *ptr, int64_t rows, int64_t n,
                              const int32_t **to);
gnnc_status rt_on_device_gather(RtDeviceMaps *m, const int32_t *x, const int32_t *perm,
                                const int64_t *n, int64_t count, const int32_t **to);
/* Codes of the batch's first n rows of a column, if it takes them there. */
bool rt_on_device_takes_codes(const RtDeviceMaps *m, int column);
gnnc_status rt_on_device_codes(RtDeviceMaps *m, int column, int64_t n, const int32_t **to);
/* Buffer `buf` is this array. */
void rt_on_device_point(RtDeviceMaps *m, int buf, const void *there);
/* The host has made the same: GNNC_E_ASSERT names the buffer where it is not. */
gnnc_status rt_on_device_compare(RtDeviceMaps *m, int buf, const void *here, int64_t n,
                                 size_t size);
/* Frees what no buffer is, and no sampler of the device's reads; relations stay where others will
 * be derived from them. */
void rt_device_maps_trim(RtExec *x, bool keep_relations);

#endif
