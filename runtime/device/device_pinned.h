/* Columns of batches in page-locked memory of the host, which a device reads there (CUDA: unified
 * virtual addressing), row by row as batches want them; and rows of these that are on the device,
 * too.  For features that do not fit on the device. */
#ifndef RUNTIME_DEVICE_PINNED_H
#define RUNTIME_DEVICE_PINNED_H

#include "device.h"

/* Before places are given: columns of numbers with several values a row, of spaces that batches
 * draw, become page-locked copies of the trainer's, if its limit of memory allows.  E_LIMIT: it
 * does not; E_DEVICE: none to be had. */
gnnc_status rt_device_pin_columns(gnnc_trainer *t);
/* Bytes of a row of all such columns of a space. */
int64_t rt_device_pinned_bytes(const RtExec *x, int space);
/* Copies the n rows row[] of the space's columns to the device, where batches then find them. */
gnnc_status rt_device_keep_rows(RtExec *x, int space, const int32_t *row, int64_t n);
/* Before the device's state is closed. */
void rt_device_pinned_close(RtDevice *d);

#endif
