/* The processor's tile registers (AMX). */
#ifndef RUNTIME_GEMM_AMX_H
#define RUNTIME_GEMM_AMX_H

#include <stdbool.h>

/* False: this machine, or its kernel, has no tile registers; the others must not be called. */
bool rt_amx_use(void);
/* Around the instructions of a thread. */
void rt_amx_begin(void);
void rt_amx_end(void);

#endif
