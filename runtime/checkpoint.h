/* Names and shapes of tensors in files. */
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "npy.h"
#include "safetensors.h"
#include "trainer.h"

/* The same elements in the same order: equal but for dimensions of 1 and for dimensions
 * that one shape has merged: [8, 16, 5] and [128, 5] and [1, 128, 5, 1]. */
bool rt_shapes_agree(int rank_a, const int64_t *a, int rank_b, const int64_t *b);
RtDtype rt_file_dtype(rt_dtype t);
/* Variable `var` as an array with its outside shape, its data at `data`. */
RtArray rt_var_array(gnnc_trainer *t, int var, const void *data);
/* Copies a tensor of any float type into a variable's buffer; checked before. */
gnnc_status rt_tensor_store(gnnc_trainer *t, RtPool *pool, const RtTensor *from, int var, void *to);
/* E_SHAPE, E_DTYPE when tensor and variable do not agree. */
gnnc_status rt_tensor_check(gnnc_trainer *t, const char *path, const RtTensor *from, int var);

#endif
