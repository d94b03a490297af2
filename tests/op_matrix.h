/* Every case of op_cases.h, built as one program by any target, against the interpreter. */
#ifndef TESTS_OP_MATRIX_H
#define TESTS_OP_MATRIX_H

#include "cpu_executor.h"

/* Says on *why what does not agree, a line for each case. */
bool op_matrix_agrees(Ctx *c, CpuExec *x, StrBuf *why);
/* The same, the data being written to `dir` and left there. */
bool op_matrix_agrees_at(Ctx *c, CpuExec *x, const char *dir, StrBuf *why);

#endif
