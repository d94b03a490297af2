/* Inside the cuda target: loop IR to CUDA C.
 *
 * Each kernel becomes one __global__ function and one host function that launches it, in
 * one file that is meant to be read: names are those of the loop IR, which stands above
 * each kernel.  What the text relies on is in runtime/cuda/kernel.h. */
#ifndef CODEGEN_CUDA_H
#define CODEGEN_CUDA_H

#include "codegen/target.h"

/* The file being written. */
typedef struct {
    Ctx *c;
    Arena *a;
    const Plan *plan;
    StrBuf b;
} Cu;

enum { CU_COLLAPSE_MAX = 4 };

/* How a kernel's iterations meet threads. */
typedef struct {
    const LStmt *parallel; /* NULL: a serial kernel */
    /* Loops directly inside the parallel one that are made part of its index, outermost
     * first, and the body of the innermost. */
    const LStmt *inner[CU_COLLAPSE_MAX];
    int n_inner;
    const LStmt *body;
} CuSched;

/* The kernel being written. */
typedef struct {
    Cu *cu;
    Arena *a;
    const LKernel *k;
    CuSched sched;
    const char **reg; /* [n_regs] names */
    const char **buf; /* [bufs] */
    const char **local;
    const char **sym; /* [syms] names of sizes, NULL = not used here */
    bool *used;       /* [n_regs] somebody needs the value */
    bool *local_used; /* [locals] */
    int depth;        /* of indentation */
} CuFn;

/* text.c: names and lines */
void cu_line(CuFn *f, const char *fmt, ...) PRINTF_LIKE(2, 3); /* one indented line */
void cu_names(CuFn *f);
const char *cu_expr(CuFn *f, const Expr *e);
const char *cu_type(DType dt);     /* of a register */
const char *cu_mem_type(DType dt); /* in memory */
const char *cu_real(Arena *a, DType dt, double v);

/* schedule.c */
void cu_schedule(CuFn *f);

/* scalar.c: the right-hand side of a register */
const char *cu_let(CuFn *f, const LStmt *s);
const char *cu_combine(CuFn *f, RedKind r, DType dt, const char *acc, const char *x);
const char *cu_rounded(Arena *a, DType dt, const char *x);

/* kernel.c, launch.c */
void cu_kernel(Cu *cu, const LKernel *k);
void cu_launch(CuFn *f);

#endif
