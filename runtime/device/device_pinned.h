/* Columns of batches in page-locked memory of the host, which a device reads there (CUDA: unified
 * virtual addressing), row by row as batches want them; and rows of these that are on the device,
 * too.  For features that do not fit on the device. */
#ifndef RUNTIME_DEVICE_PINNED_H
#define RUNTIME_DEVICE_PINNED_H

#include "device.h"
#include "runtime/memory.h"

/* Where batches read the rows of a buffer. */
typedef struct RtDevicePinned {
    void *here;        /* page-locked: all rows; NULL: the buffer is the device's */
    int64_t row_bytes; /* of them */
    int32_t *slot; /* on the device, by row: which of `rows` it is, or -1; NULL: none is there */
    void *rows;
} RtDevicePinned;

/* Before places are given: columns of numbers with several values a row, of spaces that batches
 * draw, become page-locked copies of x->buf[], of whose memory m and limit (0: none) decide.
 * live_bytes: what is allocated.  E_LIMIT: too much; E_DEVICE: none to be had. */
gnnc_status rt_device_pin_columns(RtExec *x, RtMemory *m, size_t limit, size_t live_bytes);
/* Bytes of a row of all such columns of a space. */
int64_t rt_device_pinned_bytes(const RtExec *x, int space);
/* Copies the n rows row[] of the space's columns to the device, where batches then find them. */
gnnc_status rt_device_keep_rows(RtExec *x, int space, const int32_t *row, int64_t n);
void rt_device_pinned_close(RtDevice *d);

#endif
