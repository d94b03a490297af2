/* The threads of one trainer. */
#ifndef RUNTIME_TEAM_H
#define RUNTIME_TEAM_H

#include "runtime/status.h"

typedef struct RtTeam RtTeam;
typedef void rt_team_fn(void *arg, int member, int n_members);

/* A team of n_members, the caller being one, that uses n_cores.  Where the system grants
 * fewer threads the team is smaller; results never depend on its size. */
gnnc_status rt_team_start(RtTeam **out, const RtAlloc *from, int n_members, int n_cores,
                          RtError *err);
void rt_team_stop(RtTeam *team); /* NULL is fine */

/* fn(arg, m, n) on every member, returning when all are done.  No team: fn(arg, 0, 1). */
void rt_team_run(RtTeam *team, rt_team_fn *fn, void *arg);

#endif
