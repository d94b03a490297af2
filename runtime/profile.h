/* Time per step of a program, and a trace of them. */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "exec.h"

/* Called by rt_phase_run around a phase where x->profile is set; rt_profile_step between. */
void rt_profile_begin(RtExec *x, const rt_phase *phase);
void rt_profile_end(RtExec *x);

#endif
