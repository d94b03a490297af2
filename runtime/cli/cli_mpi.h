/* Several processes by MPI: what gnnc --mpi links a program with (runtime/mpi/mpi.c).  The
 * functions are weak: NULL in a program that was made without. */
#ifndef RUNTIME_CLI_MPI_H
#define RUNTIME_CLI_MPI_H

#include <gnnc.h>
#include <stdbool.h>

typedef struct RtMpi {
    gnnc_processes processes; /* its user is this */
    int64_t patience_s;       /* that one waits for another at most */
    bool late;                /* one has waited so long */
    void *requests;           /* what goes and comes, [2 * processes.n] */
} RtMpi;

/* Joins the others, if there are any: NULL, or why not. */
const char *rt_mpi_begin(int *argc, char ***argv, RtMpi *mpi) __attribute__((weak));
/* failed: all ranks end, whatever they do. */
void rt_mpi_end(bool failed) __attribute__((weak));

#endif
