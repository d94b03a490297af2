/* Ranks by MPI.  Who waits looks now and then: MPI's own waiting takes a whole core, which workers
 * and other processes of the machine may need.  Errors of MPI end all of them
 * (MPI_ERRORS_ARE_FATAL, its default), as does a rank that dies. */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/cli/cli_mpi.h"

/* Waits until all n requests are complete; false after patience_s seconds, or if one failed.
 * Tests without a pause for some hundred microseconds, then every 20. */
static bool wait_for_all(int n, MPI_Request *r, RtMpi *mpi) {
    enum { BUSY = 1000 };
    int done = 0;
    double begin = MPI_Wtime();
    for (int64_t i = 0; MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !done;
         i++) {
        if (i < BUSY) continue;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        mpi->late = MPI_Wtime() - begin >= (double)mpi->patience_s;
        if (mpi->late) return false;
    }
    return done;
}

enum { MOST = 1 << 30 }; /* MPI counts in int */

/* Sends bytes of process `from` to all processes (gnnc_processes.broadcast), in pieces of at most
 * MOST bytes, which MPI's int counts can hold. */
static gnnc_status broadcast(void *user, void *bytes, size_t n_bytes, int from) {
    char *s = bytes;
    for (size_t n; n_bytes > 0; s += n, n_bytes -= n) {
        MPI_Request r;
        n = n_bytes < MOST ? n_bytes : MOST;
        if (MPI_Ibcast(s, (int)n, MPI_BYTE, from, MPI_COMM_WORLD, &r) != MPI_SUCCESS ||
            !wait_for_all(1, &r, user))
            return GNNC_E_IO;
    }
    return GNNC_OK;
}

/* The piece of n bytes that begins at `at`, as MPI counts. */
static int piece(size_t n, size_t at) {
    return n <= at ? 0 : n - at < MOST ? (int)(n - at) : MOST;
}

/* Sends out[r] to each process r and receives in[r] from it (gnnc_processes.exchange), in pieces of
 * at most MOST bytes. */
static gnnc_status exchange(void *user, const void *const *out, const size_t *n_out,
                            void *const *in, const size_t *n_in) {
    RtMpi *mpi = user;
    MPI_Request *requests = mpi->requests;
    gnnc_status st = GNNC_OK;
    bool more = true;
    for (size_t at = 0; more && st == GNNC_OK; at += MOST) {
        int n = 0;
        more = false;
        for (int r = 0; r < mpi->processes.n; r++) {
            int comes_in = piece(n_in[r], at), goes = piece(n_out[r], at);
            if (comes_in)
                MPI_Irecv((char *)in[r] + at, comes_in, MPI_BYTE, r, 0, MPI_COMM_WORLD,
                          &requests[n++]);
            if (goes)
                MPI_Isend((const char *)out[r] + at, goes, MPI_BYTE, r, 0, MPI_COMM_WORLD,
                          &requests[n++]);
            more |= comes_in == MOST || goes == MOST;
        }
        if (n && !wait_for_all(n, requests, mpi)) st = GNNC_E_IO;
    }
    return st;
}

/* Adds up numbers of all processes (gnnc_processes.all_reduce), in pieces as MPI counts. Open MPI
 * and MPICH leave the same bits in all. */
static gnnc_status all_reduce(void *user, float *sums, size_t n) {
    for (size_t k; n > 0; sums += k, n -= k) {
        MPI_Request r;
        k = n < MOST / sizeof *sums ? n : MOST / sizeof *sums;
        if (MPI_Iallreduce(MPI_IN_PLACE, sums, (int)k, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &r) !=
                MPI_SUCCESS ||
            !wait_for_all(1, &r, user))
            return GNNC_E_IO;
    }
    return GNNC_OK;
}

void rt_mpi_end(bool failed) {
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1);
    else
        MPI_Finalize();
}

/* Which of the processes of this machine this is. */
static bool count_local(gnnc_processes *p) {
    MPI_Comm here;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
        MPI_SUCCESS)
        return false;
    MPI_Comm_rank(here, &p->local_rank);
    MPI_Comm_size(here, &p->n_local);
    return MPI_Comm_free(&here) == MPI_SUCCESS;
}

/* Starts MPI and fills in what a trainer needs of it. NULL, or why it cannot be started. */
const char *rt_mpi_begin(int *argc, char ***argv, RtMpi *mpi) {
    int provided;
    gnnc_processes *p = &mpi->processes;
    *mpi = (RtMpi){.patience_s = 1800};
    *p = (gnnc_processes){.struct_size = sizeof *p,
                          .broadcast = broadcast,
                          .exchange = exchange,
                          .user = mpi,
                          .all_reduce = all_reduce};
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return "MPI cannot be started";
    if (provided < MPI_THREAD_FUNNELED) return "this MPI allows no threads";
    p->exchange_in_thread = provided >= MPI_THREAD_SERIALIZED;
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->n);
    if (!count_local(p)) return "MPI does not say which processes share a machine";
    mpi->requests = calloc(2 * (size_t)p->n, sizeof(MPI_Request));
    if (!mpi->requests) return "out of memory";
    return NULL;
}
