/* One of several processes that mpirun started: the first prints and writes, the others compute. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "runtime/comm.h"
#include "runtime/trainer.h"

/* How many processes a launcher says it started; a program that cannot join them would train alone
 * in each, and all would write one checkpoint. */
typedef struct {
    int n, rank;
} Launched;

static Launched launched(void) {
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                           {"PMI_SIZE", "PMI_RANK"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *n = getenv(names[i][0]), *rank = getenv(names[i][1]);
        if (n && rank) return (Launched){atoi(n), atoi(rank)};
    }
    return (Launched){1, 0};
}

int rt_ranks_begin(RtCli *c, int *argc, char ***argv, RtComm *comm) {
    RtError err = {""};
    Launched l = launched();
    sigset_t signals = rt_cli_stop_signals(), before;
    if (!rt_mpi_begin && l.n <= 1) return RT_EXIT_OK;
    pthread_sigmask(SIG_BLOCK, &signals, &before); /* MPI's threads are not to take them */
    if (!rt_mpi_begin)
        rt_fail(&err, GNNC_E_STATE,
                "%d processes were started: gnnc --mpi makes a program that trains in several",
                l.n);
    else if (rt_mpi_begin(argc, argv, comm, &err) == GNNC_OK && l.n > 1 && comm->n == 1)
        rt_fail(&err, GNNC_E_STATE, "%d processes were started by another MPI than gnnc's", l.n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err.text[0]) {
        if (l.rank == 0) fprintf(stderr, "%s: error: %s\n", c->prog, err.text);
        return RT_EXIT_FAILED;
    }
    c->comm = comm;
    c->argc = *argc;
    c->argv = *argv;
    if (comm->rank > 0 && !freopen("/dev/null", "w", stdout)) return RT_EXIT_FAILED;
    return RT_EXIT_OK;
}

int rt_ranks_number(const RtCli *c) {
    return c->comm ? c->comm->rank : 0;
}

/* What the first one has to say of its start. */
static bool first_started(RtCli *c, bool started) {
    char well = started;
    c->met = true;
    gnnc_status st = c->comm->bcast(c->comm, &well, 1, 0, NULL);
    c->all_failed = st == GNNC_OK && !well;
    return well;
}

int rt_ranks_started(RtCli *c) {
    if (!c->comm || c->comm->n == 1 || c->met) return RT_EXIT_OK;
    return first_started(c, true) ? RT_EXIT_OK : RT_EXIT_FAILED;
}

bool rt_ranks_tells(RtCli *c) {
    if (!c->comm || c->comm->n == 1 || c->command != RT_CMD_TRAIN) return true;
    if (!c->met) return first_started(c, false) || c->comm->rank == 0;
    if (c->comm->rank) usleep(500000); /* all may end before that */
    return true;
}

bool rt_ranks_share(RtCli *c) {
    if (c->comm) c->comm->patience_s = c->patience ? c->patience : 1800;
    if (rt_ranks_number(c) == 0) return true;
    c->checkpoint = "none";
    c->out = c->trace = c->dump = NULL;
    c->profile = false;
    c->log = RT_LOG_NONE;
    return c->command == RT_CMD_TRAIN;
}

/* A signal has ended training in all of them alike, and the first one says so: mpirun ends all
 * where one fails.  Any other failure may be this one's alone. */
int rt_ranks_end(const RtCli *c, int code) {
    if (!c->comm) return code;
    c->comm->end(code != RT_EXIT_OK && !c->by_signal && !c->all_failed);
    return c->by_signal && rt_ranks_number(c) ? RT_EXIT_OK : code;
}
