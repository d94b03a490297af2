/* Walks over what values are computed from.  A value with two readers is reached on two ways, the
 * last of n such values in a row on 2^n: a walk that keeps no marks does not end.  Nor may a walk
 * be a recursion as deep as a chain of values is long, unless something bounds the chain, as
 * fusion does for what one kernel computes. */
#ifndef IR_WALK_H
#define IR_WALK_H

#include "ir/ir.h"

/* Where a walk has been.  A mark is the number of the walk that set it, so that another walk
 * begins without clearing those of the last one. */
typedef struct {
    unsigned *at; /* by key, most often Op.id */
    unsigned walk;
    int n;
} IrMarks;

IrMarks ir_marks_new(Arena *a, int n_keys);
void ir_marks_start(IrMarks *m); /* before each walk */

/* Is this the first time in this walk? */
static inline bool ir_marks_first(IrMarks *m, int key) {
    bool first = m->at[key] != m->walk;
    m->at[key] = m->walk;
    return first;
}

/* May the walk go on to what `op` is computed from? */
typedef bool IrEnter(void *user, const Op *op);

typedef VEC(Op *) IrOps;

/* What `root` is computed from and itself, each once, operands before those that read them.  The
 * operands of an operation that `enter` refuses are left out, unless others lead there.  Wants
 * numbered operations (func_number) and marks by Op.id; begins a walk of its own. */
IrOps ir_walk(Arena *a, IrMarks *m, const Op *root, IrEnter *enter, void *user);

#endif
