/* The way of cpu_executor.h for the cuda target: the same driver and runtime, kernels as
 * CUDA C, compiled for the simulator of tests/cudasim.  What is built is run, read and
 * compared by the functions of cpu_executor.h. */
#ifndef TESTS_CUDA_EXECUTOR_H
#define TESTS_CUDA_EXECUTOR_H

#include "cpu_executor.h"
#include "cudasim/cudasim.h"

/* defines: "-D.." for the compiler of the kernels.  NULL after diagnostics. */
CpuExec *cuda_exec_build(Ctx *c, Module *m, const char *defines);
cudasim_counters *cuda_exec_counters(CpuExec *x);
void cuda_exec_seed(CpuExec *x, uint64_t seed); /* the order of blocks and threads */

#endif
