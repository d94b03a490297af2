/* The machine that a program runs on. */
#ifndef RT_MACHINE_H
#define RT_MACHINE_H

#include "exec.h"

int rt_usable_cores(void); /* that this process may run on */
/* The processor kind whose code and last bits differ: "x86-64-v4", with ", amx" or
 * ", avx512_bf16" (dot products of bf16).  NULL: no memory. */
const char *rt_machine_kind(RtPool *pool, const RtRuntime *rt);

#endif
