/* One of several processes that mpirun started: the first prints and writes, the others compute. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_options.h"

/* How many processes a launcher says it started; a program that cannot join them would train alone
 * in each, and all would write one checkpoint. */
typedef struct {
    int n, rank;
} Launched;

/* How many processes the launcher (Open MPI, or one that speaks PMI) started, and which this is; 1
 * and 0 without one. */
static Launched launched(void) {
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                           {"PMI_SIZE", "PMI_RANK"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *n = getenv(names[i][0]), *rank = getenv(names[i][1]);
        if (n && rank) return (Launched){atoi(n), atoi(rank)};
    }
    return (Launched){1, 0};
}

int rt_ranks_begin(RtCli *c, int *argc, char ***argv, RtMpi *mpi) {
    const char *why = NULL;
    Launched l = launched();
    sigset_t signals = rt_cli_stop_signals(), before;
    if (!rt_mpi_begin && l.n <= 1) return RT_EXIT_OK;
    pthread_sigmask(SIG_BLOCK, &signals, &before); /* MPI's threads are not to take them */
    if (!rt_mpi_begin)
        why = "gnnc --mpi makes a program that trains in several";
    else if (!(why = rt_mpi_begin(argc, argv, mpi)) && l.n > 1 && mpi->processes.n == 1)
        why = "by another MPI than gnnc's";
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why) {
        if (l.rank == 0 && l.n == 1) fprintf(stderr, "%s: error: %s\n", c->prog, why);
        if (l.rank == 0 && l.n > 1)
            fprintf(stderr, "%s: error: %d processes were started: %s\n", c->prog, l.n, why);
        return RT_EXIT_FAILED;
    }
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* mpirun mixes what comes in pieces */
    c->mpi = mpi;
    c->argc = *argc;
    c->argv = *argv;
    if (rt_ranks_number(c) > 0 && !freopen("/dev/null", "w", stdout)) return RT_EXIT_FAILED;
    return RT_EXIT_OK;
}

int rt_ranks_number(const RtCli *c) {
    return c->mpi ? c->mpi->processes.rank : 0;
}

bool rt_ranks_several(const RtCli *c) {
    return c->mpi && c->mpi->processes.n > 1;
}

int64_t rt_ranks_waited(const RtCli *c) {
    return c->mpi && c->mpi->late ? c->mpi->patience_s : 0;
}

/* What the first one has to say of its start. */
static bool first_started(RtCli *c, bool started) {
    char well = started;
    c->met = true;
    const gnnc_processes *p = &c->mpi->processes;
    gnnc_status st = p->broadcast(p->user, &well, 1, 0);
    c->all_failed = st == GNNC_OK && !well;
    return well;
}

/* What all of them do, and the first one tells of. */
static bool is_together(const RtCli *c) {
    bool runs =
        c->command == RT_CMD_EVAL || c->command == RT_CMD_PREDICT || c->command == RT_CMD_EMBED;
    return rt_ranks_several(c) && (c->command == RT_CMD_TRAIN || (runs && c->is.shares_rows));
}

int rt_ranks_started(RtCli *c) {
    if (!is_together(c) || c->met) return RT_EXIT_OK;
    return first_started(c, true) ? RT_EXIT_OK : RT_EXIT_FAILED;
}

void rt_ranks_wait_for_first(const RtCli *c) {
    if (rt_ranks_number(c)) sleep(5);
}

/* Whether this one is to say why it fails: others may have the same words. */
static bool is_to_tell(RtCli *c) {
    if (!is_together(c)) return true;
    if (!c->met) return first_started(c, false) || rt_ranks_number(c) == 0;
    if (c->all_failed) return rt_ranks_number(c) == 0;
    rt_ranks_wait_for_first(c);
    return true;
}

bool rt_ranks_tells(RtCli *c) {
    return c->has_told = is_to_tell(c);
}

/* Who sends or waits has started: those that fail before wait for what the first one says. */
static gnnc_status broadcast(void *user, void *bytes, size_t n_bytes, int from) {
    RtCli *c = user;
    if (rt_ranks_started(c) != RT_EXIT_OK) return GNNC_E_IO;
    return c->mpi->processes.broadcast(c->mpi, bytes, n_bytes, from);
}

/* The exchange of bytes between processes for the trainer: waits first until all have started. */
static gnnc_status exchange(void *user, const void *const *out, const size_t *n_out,
                            void *const *in, const size_t *n_in) {
    RtCli *c = user;
    if (rt_ranks_started(c) != RT_EXIT_OK) return GNNC_E_IO;
    return c->mpi->processes.exchange(c->mpi, out, n_out, in, n_in);
}

/* The sums of all processes for the trainer: waits first until all have started. */
static gnnc_status all_reduce(void *user, float *sums, size_t n) {
    RtCli *c = user;
    if (rt_ranks_started(c) != RT_EXIT_OK) return GNNC_E_IO;
    return c->mpi->processes.all_reduce(c->mpi, sums, n);
}

/* Tells the trainer of the other processes. */
static void introduce(RtCli *c) {
    if (!c->mpi) return;
    c->processes = c->mpi->processes;
    c->processes.broadcast = broadcast;
    c->processes.exchange = exchange;
    c->processes.all_reduce = all_reduce;
    c->processes.user = c;
    c->processes.patience_s = c->mpi->patience_s;
    if (!is_together(c)) c->processes.rank = 0, c->processes.n = 1;
    gnnc_trainer_set_processes(c->t, &c->processes);
}

/* Makes this process one of those that mpirun started. All but the first print, save and write
 * nothing. False: this process has nothing to do in this run. */
bool rt_ranks_join(RtCli *c) {
    if (c->mpi && c->patience) c->mpi->patience_s = c->patience;
    introduce(c);
    c->dumps = c->dump != NULL;
    if (rt_ranks_number(c) == 0) return true;
    c->checkpoint = "none";
    c->out = c->trace = c->dump = c->html = NULL;
    c->profile = false;
    c->log = RT_LOG_NONE;
    return is_together(c);
}

void rt_ranks_sent(RtCli *c) {
    enum { MOST = 64, N_SENT = 4 }; /* parts, and so processes */
    gnnc_counters own = {.struct_size = sizeof own};
    int n = c->mpi ? c->mpi->processes.n : 1;
    bool pulls = rt_cli_option_int(c, "pull_rows");
    if (!is_together(c) || (!c->is.shares_rows && !pulls) || n > MOST) return;
    int64_t sum[N_SENT] = {0}, all[MOST][N_SENT] = {{0}};
    const void *out[MOST];
    void *in[MOST];
    size_t size[MOST];
    gnnc_trainer_counters(c->t, &own);
    all[rt_ranks_number(c)][0] = own.sent_bytes;
    all[rt_ranks_number(c)][1] = own.messages;
    all[rt_ranks_number(c)][2] = own.beside_bytes;
    all[rt_ranks_number(c)][3] = own.pulled_rows;
    for (int r = 0; r < n; r++) {
        out[r] = all[rt_ranks_number(c)];
        in[r] = all[r];
        size[r] = r == rt_ranks_number(c) ? 0 : sizeof all[r];
    }
    if (c->mpi->processes.exchange(c->mpi, out, size, in, size) != GNNC_OK) return;
    for (int r = 0; r < n; r++)
        for (int i = 0; i < N_SENT; i++) sum[i] += all[r][i];
    char text[192], beside[64] = "";
    if (sum[2])
        snprintf(beside, sizeof beside, ", %lld bytes of it while they computed",
                 (long long)sum[2]);
    snprintf(text, sizeof text, "%d processes sent %lld bytes in %lld messages%s%s", n,
             (long long)sum[0], (long long)sum[1], beside,
             rt_cli_option_int(c, "reduce_fast") ? ", sums by a library counted as the least" : "");
    if (pulls)
        snprintf(text, sizeof text,
                 "%d processes pulled %lld rows for batches: %lld bytes in %lld messages%s", n,
                 (long long)sum[3], (long long)sum[0], (long long)sum[1], beside);
    if (c->log != RT_LOG_NONE) rt_cli_message(c, text);
}

/* A signal has ended training in all of them alike, and the first one says so: mpirun ends all
 * where one fails.  Any other failure may be this one's alone. */
static bool fails_alone(const RtCli *c, int code) {
    return rt_ranks_several(c) && code != RT_EXIT_OK && !c->by_signal && !c->all_failed;
}

void rt_ranks_end_if_alone(const RtCli *c, int code) {
    if (!fails_alone(c, code)) return;
    if (c->has_told) /* in one line, which MPI's own text would hide */
        fprintf(stderr, "%s: all processes end; what MPI writes of that (MPI_ABORT) says no more\n",
                c->prog);
    rt_mpi_end(true);
}

int rt_ranks_end(const RtCli *c, int code) {
    if (!c->mpi) return code;
    rt_ranks_end_if_alone(c, code);
    rt_mpi_end(false);
    return c->by_signal && rt_ranks_number(c) ? RT_EXIT_OK : code;
}
