/* Sparse products of a device's library.
 *
 * What it wants for one (index arrays in its form, descriptors, a workspace, what it finds out
 * about the matrix beforehand) is made when data are loaded and kept, so that a step is one call
 * that neither allocates nor waits, and can be recorded.  Products over one graph share arrays.
 * Where there is too little memory, no library or one that fails, the program's kernels make them,
 * and a line says why; so they do for mini-batches with index arrays of their own. */
#ifndef RUNTIME_DEVICE_SPMM_H
#define RUNTIME_DEVICE_SPMM_H

#include "device.h"

/* A product as the library sees it, in CSR with 32-bit indices, f32; all on the device. */
typedef struct RtSparse {
    const char *name, *lines; /* for messages; lines may be NULL */
    int64_t rows, cols, entries, width;
    const int32_t *bounds, *idx;
    const float *weights;
    /* [cols, width] and [rows, width]: places of that size or none of their own yet, as each call
     * says where they are. */
    const void *dense;
    void *out;
} RtSparse;

/* After the load phase: sizes and places of buffers are known, and stay. */
gnnc_status rt_device_spmm_open(RtExec *x);
void rt_device_spmm_close(RtDevice *d);

#endif
