/* Processes that train one model together: each is a rank, and all of them do the same calls in the
 * same order.  runtime/mpi/mpi.c is the one implementation; a program is linked with it by
 * gnnc --mpi, and knows no processes without. */
#ifndef RUNTIME_COMM_H
#define RUNTIME_COMM_H

#include "status.h"

typedef struct RtComm RtComm;
struct RtComm {
    int rank, n;
    int64_t patience_s; /* that one waits for another at most */
    /* from's bytes, to all.  E_IO: they did not come. */
    gnnc_status (*bcast)(const RtComm *c, void *p, size_t n_bytes, int from, RtError *err);
    void (*end)(bool failed); /* failed: all ranks end, whatever they do */
};

/* Joins the others, if there are any; comm->n = 1: none.  NULL: the program was not linked so. */
gnnc_status rt_mpi_begin(int *argc, char ***argv, RtComm *comm, RtError *err)
    __attribute__((weak));

#endif
