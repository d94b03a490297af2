/* Every case of op_cases.h, built as one program by any target, against the interpreter. */
#ifndef TESTS_OP_MATRIX_H
#define TESTS_OP_MATRIX_H

#include "cpu_executor.h"
#include "op_cases.h"

OpCases *op_matrix_cases(Ctx *c, int level); /* what is to be compiled with `level` */
/* Says on *why what does not agree, a line for each case.  level: what x was compiled with. */
bool op_matrix_agrees(Ctx *c, CpuExec *x, int level, StrBuf *why);
/* The same, the data being written to `dir` and left there. */
bool op_matrix_agrees_at(Ctx *c, CpuExec *x, int level, const char *dir, StrBuf *why);

#endif
