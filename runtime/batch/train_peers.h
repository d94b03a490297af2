/* What processes that share steps, or rows, send each other: by the host, and whether their devices
 * send memory to each other by themselves. */
#ifndef RUNTIME_TRAIN_PEERS_H
#define RUNTIME_TRAIN_PEERS_H

#include "runtime/trainer/trainer.h"

/* Sends n_bytes of process `from` to all; a failure says whose did not come. */
gnnc_status rt_processes_broadcast(gnnc_trainer *t, void *bytes, size_t n_bytes, int from);

/* Why a process's device sends nothing to the others'. */
typedef enum { RT_PEER_LACKS_NOTHING, RT_PEER_UNWANTED, RT_PEER_LACKS_MEMORY } RtPeerLack;

/* All of the processes, each on a device, call it, and a line says how many devices these are.  Do
 * they send `what` to each other?  Where they do not, though nobody asked for that, a line says
 * why. */
gnnc_status rt_peers_meet(gnnc_trainer *t, const char *what, RtPeerLack lacks, bool *met);
/* The same of processes that share rows; without a device it does nothing. */
gnnc_status rt_peers_meet_rows(gnnc_trainer *t);
/* Seconds that one waits for what the others' devices send. */
int64_t rt_peers_patience(const gnnc_trainer *t);

#endif
