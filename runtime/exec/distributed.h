/* Rows that processes share.  Data in parts (`gnnc partition`) have rows of a part side by side, so
 * a process owns one range of each space's rows: those of its parts, the edges into them, their
 * stored entries.  Rows keep the numbers they have in the whole, and buffers the room of the whole,
 * of which a process touches its own rows and those that exchanges bring it.
 *
 * Sums over rows are cut into RT_SUM_CHUNKS pieces, each within a part, whoever owns it: the bits
 * are the same in any number of processes.  So a process owns a range of these, too. */
#ifndef RUNTIME_OWN_H
#define RUNTIME_OWN_H

#include "blocks.h"
#include "boundary.h"
#include "exec.h"

struct RtHalo;
typedef struct RtBeside RtBeside;

struct RtDist {
    const gnnc_processes *processes;
    int rank, n, n_parts;
    bool fast;                    /* sums of several processes by their all_reduce */
    int64_t stale_halos;          /* training steps that go on with the halo of an earlier one */
    const int64_t **chunk_bounds; /* [n_spaces], each [RT_SUM_CHUNKS + 1] rows; NULL: not owned, or
                             not known yet */
    struct RtHalo **halo;         /* [n_exchanges] made at the first one */
    char **kept;        /* [n_exchanges] rows that came, for stale steps; NULL: none yet */
    int64_t fresh_step; /* the last training step whose halo came; -1: there was none */
    bool keeps, stale;  /* the run under way: keeps what comes, or reads what was kept */
    RtPool *pool;
    char *buffer[2 * RT_BESIDE_MOST]; /* rows that go and come, of exchanges that go on at once */
    size_t buffer_bytes[2 * RT_BESIDE_MOST];
    float *sums; /* over rows: nodes of a tree (sum_parts.c), where steps run */
    size_t sums_bytes;
    gnnc_status failed; /* of the first exchange or phase that did: no exchange is tried after it */
    bool left;          /* it was a phase, which others may go on with */
    int n_beside;       /* exchanges that go on beside steps */
    RtBoundary *boundary; /* where rows of other parts are sampled, from the first step on */
    RtBeside *beside;     /* what is computed while rows come (beside.c); NULL: nothing was yet */
    bool never_beside;    /* there was no memory for that */
};

typedef struct {
    int64_t lo, hi;
} RtRange;

/* For a program of rows in parts, when sizes are bound: p may be NULL.  fast, stale_halos: see
 * RtDist.  E_STATE: the data are not in as many parts, or processes lack a function. */
gnnc_status rt_dist_open(RtExec *x, const gnnc_processes *p, bool fast, int64_t stale_halos);
/* The cuts of a space's rows, and the buffers that hold them, once its index arrays are there. */
gnnc_status rt_dist_bind(RtExec *x, int space);

/* Before a run of a phase: of training step `step`, counted from 0; or -1, of another phase.  By it
 * all processes decide alike whether halos come, and which rows of them (boundary.h). */
gnnc_status rt_dist_begin(RtExec *x, uint64_t seed, int64_t step);
/* Training goes on elsewhere: the next step's halos come. */
void rt_dist_forget(RtExec *x);

/* Do several processes share rows? */
static inline bool rt_dist_several(const RtExec *x) {
    return x->rt->dist && x->rt->dist->n > 1;
}
/* Of n_parts things in a row each of n processes has some that follow each other, rank * n_parts /
 * n and on: which process has the i-th. */
static inline int rt_dist_owner(int64_t i, int64_t n_parts, int n) {
    return (int)(((i + 1) * n - 1) / n_parts);
}
/* Parts (rt_dist_owner()), cuts and rows of a process. */
static inline RtRange rt_dist_parts(const RtDist *o, int rank) {
    return (RtRange){(int64_t)o->n_parts * rank / o->n, (int64_t)o->n_parts * (rank + 1) / o->n};
}
/* The first cut of a part: at least one for each. */
static inline int64_t rt_dist_first_cut(const RtDist *o, int64_t part) {
    return RT_SUM_CHUNKS * part / o->n_parts;
}

static inline RtRange rt_dist_chunks(const RtDist *o, int rank) {
    RtRange parts = rt_dist_parts(o, rank);
    return (RtRange){rt_dist_first_cut(o, parts.lo), rt_dist_first_cut(o, parts.hi)};
}

static inline RtRange rt_dist_rows(const RtExec *x, int space, int rank) {
    const RtDist *o = x->rt->dist;
    RtRange cuts = rt_dist_chunks(o, rank);
    return (RtRange){o->chunk_bounds[space][cuts.lo], o->chunk_bounds[space][cuts.hi]};
}
RtRange rt_dist_part_rows(const RtExec *x, int space, int64_t part);
RtRange rt_dist_part_chunks(const RtDist *o, int64_t part);

/* What goes to each process and comes of it; there are no more than parts. */
typedef struct {
    const void *out[RT_SUM_CHUNKS];
    void *in[RT_SUM_CHUNKS];
    size_t n_out[RT_SUM_CHUNKS], n_in[RT_SUM_CHUNKS];
} RtMessages;
/* Sets what is sent to process r and received from it. */
static inline void rt_messages_put(RtMessages *m, int r, const void *out, size_t n_out, void *in,
                                   size_t n_in) {
    m->out[r] = out;
    m->n_out[r] = n_out;
    m->in[r] = in;
    m->n_in[r] = n_in;
}
/* Sends and takes all of it, but what is of the process itself: counted, and told of where it
 * fails.  What goes and comes is where steps run: here, or on the device. */
gnnc_status rt_dist_exchange(RtExec *x, const char *what, RtMessages *m);
/* The same of what is no part of a phase, lies here, and is counted by nobody. */
gnnc_status rt_dist_exchange_uncounted(RtExec *x, const char *what, RtMessages *m);
/* Counts what m sends to other processes, and returns its bytes. */
int64_t rt_dist_count(RtExec *x, const RtMessages *m);
/* Notes that an exchange of `what` has failed, so that all later ones do.  Returns st. */
gnnc_status rt_dist_fail(RtExec *x, const char *what, gnnc_status st);
/* A phase, or what goes before it, has failed, maybe in this process alone: the others wait for
 * what it will not send, so no phase is run here from now on. */
void rt_dist_leave(RtExec *x, gnnc_status st);
/* What that was, told of; GNNC_OK: nothing. */
gnnc_status rt_dist_check(RtExec *x);
/* What n processes would send in one run of a phase.  E_RANGE: the data have fewer parts. */
gnnc_status rt_dist_traffic(RtExec *x, int phase, int n, gnnc_traffic *out);
/* The same for exchange i of the program alone. */
gnnc_status rt_dist_traffic_of(RtExec *x, int i, int n, gnnc_traffic *out);
/* What processes ask of all: the first that is not 0, by rank. */
gnnc_status rt_dist_first_request(RtExec *x, int asked, int *heard);
/* Memory where steps run, the device's or the host's, until it is dropped; NULL: there is none
 * (recorded). */
void *rt_dist_memory(RtExec *x, size_t n_bytes);
void rt_dist_drop(RtExec *x, void *p);
/* Room `which` of at least so many bytes, where steps run; NULL: no memory (recorded). */
char *rt_dist_buffer(RtExec *x, int which, size_t n_bytes);

#endif
