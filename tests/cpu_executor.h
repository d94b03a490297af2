/* Runs a module as a user's program would: passes, plan, object file and host driver,
 * `cc -shared` with libgnnrt.a, then the public C API of a trainer.
 *
 *     cpu_exec_passes(ctx, m, 2);                       pipelines of gnnc -O0, -O2
 *     CpuExec *x = cpu_exec_build(ctx, m, 2);
 *     cpu_exec_load(x, data_dir, seed, lr);
 *     cpu_exec_set(x, "W", n, values);
 *     cpu_exec_run(x, "f");
 *     const double *y = cpu_exec_output(x, "y", &n);
 *
 * It runs with one and with three threads, which must give the same bits.
 * Everything is released with the Ctx. Run from the root of the source tree. */
#ifndef TESTS_CPU_EXECUTOR_H
#define TESTS_CPU_EXECUTOR_H

#include <stdio.h>

#include "ir/interp.h"

typedef struct CpuExec CpuExec;

/* With an optimisation level: large values in bf16; or all that can be (tests/op_low.h). */
enum { CPU_EXEC_BF16 = 16, CPU_EXEC_ALL_BF16 = 32, CPU_EXEC_ALL_F16 = 64 };
/* With an optimisation level, for cpu_exec_build: our plan of that level, LLVM at its -O0. */
enum { CPU_EXEC_PLAIN_LLVM = 128 };
static inline bool cpu_exec_is_low(int opt_level) {
    return opt_level & (CPU_EXEC_ALL_BF16 | CPU_EXEC_ALL_F16);
}

/* A fresh directory that goes away with the Ctx. */
const char *cpu_exec_dir(Ctx *c);
/* The pipeline of an optimisation level, where every function with an output "loss" is
 * differentiated, not @train alone. */
bool cpu_exec_passes(Ctx *c, Module *m, int opt_level);
/* gnnc's own pipeline: @train alone is differentiated, and updates its parameters. */
bool cpu_exec_train_passes(Ctx *c, Module *m, int opt_level);
CpuExec *cpu_exec_build(Ctx *c, Module *m, int opt_level); /* NULL after diagnostics */
/* A program that was linked elsewhere; a symbol of it into *to. */
CpuExec *cpu_exec_open(Ctx *c, const char *so_path);
bool cpu_exec_symbol(CpuExec *x, void *to, const char *name);
const char *cpu_exec_build_dir(Ctx *c); /* where libgnnrt.a is */
bool cpu_exec_load(CpuExec *x, const char *data_dir, int64_t seed, double lr);
bool cpu_exec_set(CpuExec *x, const char *var, int64_t n, const double *v);
bool cpu_exec_run(CpuExec *x, const char *phase);
/* Of the phase run last; valid until the Ctx goes.  NULL: there is none. */
const double *cpu_exec_output(CpuExec *x, const char *name, int64_t *n);
const char *cpu_exec_error(const CpuExec *x);

/* From now on what cpu_exec_agrees() compares with goes to `to` as well, for tests/gpu/ops.c. */
void cpu_exec_record(CpuExec *x, FILE *to);

/* Interpreters of the same data: elements rounded to their types, exact, and rounded by chance
 * (NULL: nobody made one).  Where they differ, an output is ill-conditioned, and more is forgiven.
 */
enum { CPU_NOISY = 4 };
typedef struct {
    Interp *rounded, *exact, *noisy[CPU_NOISY];
} CpuOracle;

/* Did the loss become NaN, or was NaN made of numbers, as by the gradient of a norm of zeros?  Then
 * which values are NaN hangs on the order of sums: 0 times NaN is NaN, and a sum over no edges, or
 * over no stored entries, is 0. */
bool cpu_exec_is_lost(Interp *in, const Func *f);

/* Runs phase f everywhere and compares all its outputs and what it assigns; says on *why
 * what is wrong. */
bool cpu_exec_agrees(CpuExec *x, const CpuOracle *o, Func *f, StrBuf *why);

#endif
