/* First values of parameters and state. */
#ifndef RUNTIME_INIT_H
#define RUNTIME_INIT_H

#include "runtime/exec/exec.h"

/* Fills the buffer of variable `v`; the result depends on seed, path and element only. */
void rt_init_var(RtExec *x, int v, uint64_t seed);
uint64_t rt_hash_text(const char *s); /* FNV-1a, 64 bits */

#endif
