/* Random well-typed functions over a fixed set of spaces and columns.  A function is
 * determined by its seed; items (operations and terms of the loss) can be cut out by
 * their number, which is how a failing one is made small: a value that is cut becomes a
 * parameter of its type.
 *
 * Operations that jump (comparisons, floor, argmax) only take values that every order of
 * evaluation computes exactly, so that rounding can not decide them: a value's size and
 * its finest bit are followed, as in a fixed-point analysis. */
#ifndef TESTS_IR_RANDOM_H
#define TESTS_IR_RANDOM_H

#include "ir/ir.h"

enum { IR_RANDOM_CUTS = 96 };

typedef struct {
    uint32_t seed;
    bool smooth; /* nothing jumps: the parameters change, and are exact no more */
    int n_cuts, cut[IR_RANDOM_CUTS];
} RandomCase;

typedef struct RandomSpaces RandomSpaces;

RandomSpaces *ir_random_spaces(Module *m); /* and @load with the condition of a `where` */
/* The number of items goes to *n_items. */
Func *ir_random_func(RandomSpaces *s, const RandomCase *c, const char *name, int *n_items);

#endif
