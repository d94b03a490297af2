/* Where values are wanted: see guard.c. */
#ifndef IR_GUARD_H
#define IR_GUARD_H

#include "ir/ir.h"

typedef struct Guard Guard;
struct Guard {
    const Guard *up; /* NULL: always */
    Op *cond;        /* a scalar i1 */
    bool holds;      /* wanted where it does, or where it does not */
    bool worth_test; /* more than elementwise work is wanted there alone */
    int depth;
    const Guard *top;  /* the outermost one that it is in, or itself */
    const Guard *jump; /* further up, so that any ancestor is a few steps away */
};

/* By Op.id, after numbering f: where each value is wanted; NULL = always.  tests, by Op.id, may be
 * NULL: set where the value is the condition of a guard that is worth a test. */
const Guard **ir_guards(Arena *a, Func *f, bool *tests);
bool ir_guard_within(const Guard *inner, const Guard *outer); /* is outer an ancestor, or itself? */

#endif
