/* Where values are wanted: see guard.c. */
#ifndef IR_GUARD_H
#define IR_GUARD_H

#include "ir/ir.h"

typedef struct Guard Guard;
struct Guard {
    const Guard *up; /* NULL: always */
    Op *cond;        /* a scalar i1 */
    bool holds;      /* wanted where it does, or where it does not */
    bool heavy;      /* more than elementwise work is wanted there alone */
    int depth;
};

/* By Op.id, after numbering f: where each value is wanted; NULL = always. */
const Guard **ir_guards(Arena *a, Func *f);
bool ir_guard_within(const Guard *inner, const Guard *outer); /* is outer an ancestor, or itself? */

#endif
