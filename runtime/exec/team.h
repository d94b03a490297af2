/* The threads of one trainer. */
#ifndef RUNTIME_TEAM_H
#define RUNTIME_TEAM_H

#include <pthread.h>

#include "runtime/status.h"

/* Starts a thread for fn(arg) that gets none of the host's signals; false: there is none.  Faults
 * of its own are not blocked, so that the host's handlers hear of them. */
bool rt_thread_start(pthread_t *out, void *(*fn)(void *), void *arg);

typedef struct RtTeam RtTeam;
typedef void rt_team_fn(void *arg, int member, int n_members);

/* A team of n_members, the caller being one, that uses n_cores.  Where the system grants
 * fewer threads the team is smaller; results never depend on its size. */
gnnc_status rt_team_start(RtTeam **out, const RtAlloc *from, int n_members, int n_cores,
                          RtError *err);
void rt_team_stop(RtTeam *team); /* NULL is fine */

/* fn(arg, m, n) for every member, returning when all are done.  No team: fn(arg, 0, 1).  A member
 * that does not wake in time has its call made by the caller, so no call may wait for another. */
void rt_team_run(RtTeam *team, rt_team_fn *fn, void *arg);

#endif
