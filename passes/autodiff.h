/* Reverse-mode differentiation of one function: what pass_autodiff does to @train. */
#ifndef PASSES_AUTODIFF_H
#define PASSES_AUTODIFF_H

#include "passes/pass.h"

/* Appends the gradients of output "loss" as outputs "grad.<path>", in the order of
 * the variables, for every parameter that f reads.  False after diagnostics. */
bool pass_autodiff_func(PassCtx *p, Module *m, Func *f);

/* Appends to f the gradients of the scalar `of`, f's last operation but for outputs, by the values
 * that leaf[] names by op id; grad[id] of each, NULL: `of` does not depend on it.  f is numbered,
 * and both have a place for each of its operations; what leaves are made of gets no gradient.
 * False after diagnostics. */
bool pass_gradients_of(PassCtx *p, Module *m, Func *f, Op *of, const bool *leaf, Op **grad);

#endif
