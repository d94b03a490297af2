/* Ranks by MPI.  Who waits looks now and then: MPI's own waiting takes a whole core, which workers
 * and other processes of the machine may need.  Errors of MPI end all of them
 * (MPI_ERRORS_ARE_FATAL, its default), as does a rank that dies. */
#include <mpi.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/comm.h"

/* Some hundred microseconds without a pause, then one of 20 each. */
static bool comes(MPI_Request *r, int64_t patience_s) {
    enum { BUSY = 1000 };
    int done = 0;
    int64_t begin = rt_now_ns();
    for (int64_t i = 0; !done; i++) {
        if (i > BUSY) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (i > BUSY && (rt_now_ns() - begin) / 1000000000 >= patience_s) return false;
        if (MPI_Test(r, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    }
    return true;
}

static gnnc_status bcast(const RtComm *c, void *p, size_t n_bytes, int from, RtError *err) {
    enum { MOST = 1 << 30 }; /* MPI counts in int */
    char *s = p;
    for (size_t n; n_bytes > 0; s += n, n_bytes -= n) {
        MPI_Request r;
        n = n_bytes < MOST ? n_bytes : MOST;
        if (MPI_Ibcast(s, (int)n, MPI_BYTE, from, MPI_COMM_WORLD, &r) != MPI_SUCCESS ||
            !comes(&r, c->patience_s))
            return rt_fail(err, GNNC_E_IO, "what rank %d sends did not come in %lld s", from,
                           (long long)c->patience_s);
    }
    return GNNC_OK;
}

static void end(bool failed) {
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1);
    else
        MPI_Finalize();
}

gnnc_status rt_mpi_begin(int *argc, char ***argv, RtComm *comm, RtError *err) {
    int provided;
    *comm = (RtComm){.bcast = bcast, .end = end};
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return rt_fail(err, GNNC_E_IO, "MPI cannot be started");
    if (provided < MPI_THREAD_FUNNELED)
        return rt_fail(err, GNNC_E_IO, "this MPI allows no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &comm->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &comm->n);
    return GNNC_OK;
}
