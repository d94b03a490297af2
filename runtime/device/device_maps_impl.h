/* What device_maps.c and device_bind.c share. */
#ifndef RUNTIME_DEVICE_MAPS_IMPL_H
#define RUNTIME_DEVICE_MAPS_IMPL_H

#include "device_maps.h"

/* An array there. */
typedef struct RtMapsArray {
    struct RtMapsArray *next;
    void *there;
    size_t n_bytes;
    const void *here; /* what it is a copy of, while binding; or NULL */
} RtMapsArray;

/* What was grouped, while binding: several maps may ask for it. */
typedef struct RtMapsGrouped {
    struct RtMapsGrouped *next;
    const int32_t *key;
    int64_t n;
    RtGroups groups;
} RtMapsGrouped;

/* Codes of categories of a mini-batch, taken out of those of all rows there. */
typedef struct RtDeviceCodes {
    const int32_t *all; /* NULL: the host sends a batch's */
    const void *row;    /* the batch's rows, there: int32_t or, if wide, int64_t; NULL: as above */
    bool wide;
    const int32_t *taken; /* [n] the batch's; NULL: not yet */
    int64_t n;
} RtDeviceCodes;

struct RtDeviceMaps {
    RtDevice *d;
    RtExec *x; /* whose they are: the trainer's, or a mini-batch's */
    bool on, check;
    RtRelation *rel; /* [n_spaces] arrays there */
    void **buf;      /* [n_bufs]; NULL: the host's */
    RtMapsArray *arrays;
    RtMapsGrouped *grouped;
    void *work;
    size_t work_bytes;
    /* Of a mini-batch: where arrays lie, one after the other, and the queue that makes them.
     * room NULL: each has memory of its own, and the device's queue makes it. */
    char *room;
    size_t room_bytes, used;
    void *queue;
    bool borrows;         /* `work` is another batch's */
    RtDeviceCodes *codes; /* [n_columns] */
};

/* Working memory to sort n elements. */
size_t rt_maps_work_bytes(int64_t n);

#endif
