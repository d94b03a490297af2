/* Every case of op_cases.h, built as one program by any target, against the interpreter. */
#ifndef TESTS_OP_MATRIX_H
#define TESTS_OP_MATRIX_H

#include "cpu_executor.h"

/* Says on *why what does not agree, a line for each case. */
bool op_matrix_agrees(Ctx *c, CpuExec *x, StrBuf *why);

#endif
