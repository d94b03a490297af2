/* Cases of op_cases.h in 16 bits: what an operation reads lies in memory in a type of 16 bits, and
 * what it computes too, whatever the rules of --precision would say of a value so small. */
#ifndef TESTS_OP_LOW_H
#define TESTS_OP_LOW_H

#include "op_cases.h"

/* After fusion, before the precision pass: values that are stored ask for dt, parameters are read
 * through a rounded copy of them, and outputs are those of values in dt. */
void op_low_ask(Module *m, DType dt);

#endif
