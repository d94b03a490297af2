/* Values for any module, by the names in it: the same name gets the same data, given to
 * an interpreter or written to a data directory.  So a module in a .gir file runs
 * without saying on what.
 *
 * Sizes of node types, graph tables and open dimensions: none.. 0, one.. 1, hub.. 40, large.. 600,
 * else 4 to 9.  Edges: about twice as many as nodes, with a self loop and a parallel
 * edge; into node 0 for hub...  Numbers are multiples of 1/16 in [-2, 2], exact in every
 * float type but bf16. */
#ifndef TESTS_IR_DATA_H
#define TESTS_IR_DATA_H

#include "cpu_data.h"
#include "ir/interp.h"

enum { IR_DATA_SEED = 42 };
extern const double ir_data_lr;

void ir_data_interp(Interp *in, const Module *m); /* all of it, seed, step and inputs too */
bool ir_data_write(Ctx *c, const Module *m, const char *dir);
int64_t ir_data_size(const Module *m, const Space *s); /* edges of derived relations: a guess */
double *ir_data_var(const Module *m, const Var *v, int64_t *n);

#endif
