/* First values of parameters and state. */
#ifndef RUNTIME_INIT_H
#define RUNTIME_INIT_H

#include "runtime/exec/exec.h"

/* Fills the buffer of variable `v`; the result depends on seed, path and element only. */
void rt_init_var(RtExec *x, int v, uint64_t seed);
/* The same, of its element i as written. */
double rt_init_value(const rt_var *v, const rt_var_shape *s, uint64_t seed, int64_t i);
uint64_t rt_hash_text(const char *s); /* FNV-1a, 64 bits */

#endif
