/* Time per step of a program, and a trace of them. */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "exec.h"

/* Called by rt_phase_run around a phase where x->profile is set; rt_profile_step between. */
void rt_profile_begin(RtExec *x, const rt_phase *phase);
gnnc_status rt_profile_end(RtExec *x);

/* A member's share of the present step, for the trace: begin gives the time, or -1 where there
 * is no trace; each member calls for itself. */
int64_t rt_profile_share_begin(const RtExec *x);
void rt_profile_share_end(RtExec *x, int member, int64_t since);
/* Before anything ran: another program's steps will be measured. */
gnnc_status rt_profile_restart(gnnc_trainer *t);

#endif
