#include "train_peers.h"

#include <string.h>

#include "runtime/device/device_rows.h"

gnnc_status rt_processes_broadcast(gnnc_trainer *t, void *bytes, size_t n_bytes, int from) {
    const gnnc_processes *p = &t->processes;
    gnnc_status st = p->n > 1 ? p->broadcast(p->user, bytes, n_bytes, from) : GNNC_OK;
    if (st == GNNC_OK) return GNNC_OK;
    return rt_fail(&t->rt.err, st, "what rank %d sends did not come: %s", from,
                   gnnc_status_text(st));
}

int64_t rt_peers_patience(const gnnc_trainer *t) {
    enum { USUAL_S = 1800 };
    return t->processes.patience_s ? t->processes.patience_s : USUAL_S;
}

/* ---- do all devices send? -------------------------------------------------------------------- */
/* What a process tells the others of its device. */
typedef struct Peer {
    RtDeviceId device;
    int32_t version; /* of the library by which it sends to others; 0 = that is not there */
    int32_t lacks;   /* an RtPeerLack */
} Peer;

static bool is_known(const RtDeviceId *device) {
    const RtDeviceId none = {{0}};
    return memcmp(device, &none, sizeof none) != 0;
}

/* The first process whose device is that of process i; i itself: no other has it. */
static int first_with_device_of(const Peer *all, int i) {
    int first = 0;
    while (memcmp(&all[first].device, &all[i].device, sizeof all[i].device) != 0) first++;
    return first;
}

/* Says how many GPUs the processes share.  Their numbers do not tell: a launcher may show each
 * process one of its own. */
static void tell_devices(gnnc_trainer *t, const Peer *all, int n) {
    int n_gpus = 0;
    for (int i = 0; i < n; i++) {
        if (!is_known(&all[i].device)) return;
        n_gpus += first_with_device_of(all, i) == i;
    }
    if (n_gpus == n)
        rt_message(&t->rt, "GPUs: each of %d processes has its own", n);
    else
        rt_message(&t->rt, "GPUs: %d processes share %d", n, n_gpus);
}

/* Says why devices do not send to each other; false: they can.  All processes find the same. */
static bool tell_obstacle(gnnc_trainer *t, const char *what, const Peer *all, int n) {
    static const char *const instead = "they go through the memory of hosts";
    for (int i = 0; i < n; i++)
        if (all[i].lacks == RT_PEER_UNWANTED) return true; /* somebody asked for it */
    for (int i = 0; i < n; i++) {
        int first = first_with_device_of(all, i);
        if (!all[i].version)
            rt_message(&t->rt, "%s: rank %d has no libnccl.so.2; %s", what, i, instead);
        else if (all[i].lacks == RT_PEER_LACKS_MEMORY)
            rt_message(&t->rt, "%s: the GPU of rank %d lacks memory for them; %s", what, i,
                       instead);
        else if (!is_known(&all[i].device))
            rt_message(&t->rt, "%s: the GPU of rank %d has no UUID; %s", what, i, instead);
        else if (first < i)
            rt_message(&t->rt, "%s: ranks %d and %d share a GPU; %s", what, first, i, instead);
        else if (all[i].version != all[0].version)
            rt_message(&t->rt, "%s: rank %d has another NCCL than rank 0; %s", what, i, instead);
        else
            continue;
        return true;
    }
    return false;
}

/* Each process tells all what its device is; all [n]. */
static gnnc_status introduce(gnnc_trainer *t, RtPeerLack lacks, Peer *all) {
    RtDevice *d = t->rt.device;
    gnnc_status st = GNNC_OK;
    all[t->processes.rank] = (Peer){.device = d->ops->id(d), .lacks = (int32_t)lacks};
    if (lacks != RT_PEER_UNWANTED) all[t->processes.rank].version = d->ops->peers_version(d);
    for (int i = 0; i < t->processes.n && st == GNNC_OK; i++)
        st = rt_processes_broadcast(t, &all[i], sizeof *all, i);
    return st;
}

/* One makes the group, and all join it. */
static gnnc_status join(gnnc_trainer *t) {
    RtDevice *d = t->rt.device;
    const gnnc_processes *p = &t->processes;
    RtPeersId id = {{0}};
    gnnc_status st = p->rank == 0 ? d->ops->peers_id(d, &id) : GNNC_OK;
    if (st == GNNC_OK) st = rt_processes_broadcast(t, &id, sizeof id, 0);
    return st == GNNC_OK ? d->ops->peers_open(d, &id, p->rank, p->n) : st;
}

gnnc_status rt_peers_meet(gnnc_trainer *t, const char *what, RtPeerLack lacks, bool *met) {
    RtPool *pool = &t->rt.pool;
    int n = t->processes.n;
    Peer *all = RT_NEWN(pool, Peer, n);
    *met = false;
    if (!all) return rt_fail_nomem(&t->rt.err, "processes");
    gnnc_status st = introduce(t, lacks, all);
    if (st == GNNC_OK) tell_devices(t, all, n);
    bool can = st == GNNC_OK && !tell_obstacle(t, what, all, n);
    int version = all[0].version;
    rt_pool_drop(pool, all);
    if (st == GNNC_OK && can) st = join(t);
    *met = st == GNNC_OK && can;
    if (*met)
        rt_message(&t->rt, "%s: from GPU to GPU by NCCL %d.%d.%d", what, version / 10000,
                   version / 100 % 100, version % 100);
    return st;
}

gnnc_status rt_peers_meet_rows(gnnc_trainer *t) {
    const RtDevice *d = t->rt.device;
    bool met = false;
    if (!d) return GNNC_OK;
    bool wanted = t->options.device_sums && d->ops->peers_swap;
    gnnc_status st =
        rt_peers_meet(t, "rows", wanted ? RT_PEER_LACKS_NOTHING : RT_PEER_UNWANTED, &met);
    if (st == GNNC_OK) rt_device_rows_meet(&t->x, met, rt_peers_patience(t));
    return st;
}
