/* Reverse-mode differentiation of one function: what pass_autodiff does to @train. */
#ifndef PASSES_AUTODIFF_H
#define PASSES_AUTODIFF_H

#include "passes/pass.h"

/* Appends the gradients of output "loss" as outputs "grad.<path>", in the order of
 * the variables, for every parameter that f reads.  False after diagnostics. */
bool pass_autodiff_func(PassCtx *p, Module *m, Func *f);

#endif
