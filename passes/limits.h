/* Limits that fusion and the lowering to kernels share: what the one leaves to a kernel the other
 * can hold there. */
#ifndef PASSES_LIMITS_H
#define PASSES_LIMITS_H

enum { PASS_ROW_MAX = 1024 }; /* elements of a row of sums in a local array */

#endif
