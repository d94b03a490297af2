/* Programs with variants: see variant.c. */
#ifndef RUNTIME_VARIANT_H
#define RUNTIME_VARIANT_H

#include "memory.h"

enum { RT_VARIANT_SYMS = 1024 }; /* programs with more sizes keep to their first variant */

/* The phase that variants are compared by: a step, else what infers; NULL: there is none. */
const rt_phase *rt_variant_phase(const rt_program *p);
/* Estimated ms of it in variant `v` with the sizes bound in x, whose program is the first; of
 * batches as m says. */
double rt_variant_estimate(const RtExec *x, const RtMemory *m, int variant);
/* Does variant v of a program in 16 bits keep its values in f32? */
bool rt_variant_is_in_f32(const rt_program *p, int v);

/* Bytes that its 16-bit values would fill in f32: those of the data, and of that phase. */
double rt_variant_low_bytes(const RtExec *x, const RtMemory *m, int variant);
/* Of n estimates the least that was not tried; the first of equals; -1: none is left. */
int rt_variant_best(const double *ms, const bool *tried, int n);

#endif
