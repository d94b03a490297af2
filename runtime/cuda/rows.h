/* Rows that processes exchange, and sums of their parts (runtime/device/device_rows.c). */
#ifndef RUNTIME_CUDA_ROWS_H
#define RUNTIME_CUDA_ROWS_H

#include "cuda/kernel.h"
#include "cuda/rows_list.h"

/* Word i of n rows: out of `from`, or, if `puts`, into `to`. */
template <class W>
GN_FN void gn_move_word(void *to, const void *from, const int32_t *row, int64_t row_bytes,
                        bool puts, int64_t i) {
    const int64_t words = row_bytes / (int64_t)sizeof(W);
    const int64_t there = (int64_t)row[i / words] * words + i % words;
    ((W *)to)[puts ? there : i] = ((const W *)from)[puts ? i : there];
}

static __global__ void gn_move_rows(void *to, const void *from, const int32_t *row,
                                    int64_t row_bytes, int word_bytes, bool puts, int64_t total) {
    GN_ROWS(i, total) {
        if (word_bytes == 16)
            gn_move_word<float4>(to, from, row, row_bytes, puts, i);
        else if (word_bytes == 4)
            gn_move_word<uint32_t>(to, from, row, row_bytes, puts, i);
        else if (word_bytes == 2)
            gn_move_word<uint16_t>(to, from, row, row_bytes, puts, i);
        else
            gn_move_word<uint8_t>(to, from, row, row_bytes, puts, i);
    }
}

static __global__ void gn_sum_alone(float *to, const float *from, int64_t n, int64_t n_partial) {
    GN_ROWS(i, n * n_partial) to[i] = i < n ? from[i] : 0.0f;
}

static __global__ void gn_sum_tree(float *to, const float *from, const RtTreeSum t) {
    GN_ROWS(i, t.n) {
        float sum[RT_TREE_DEPTH + 1];
        int top = 0;
        int64_t put = 0;
        for (int k = 0; k < t.n_codes; k++) {
            const int c = t.code[k];
            if (c >= 0) {
                float x = from[t.first[c] * t.stride + i];
                for (int64_t p = t.first[c] + 1; p < t.first[c + 1]; p++)
                    x += from[p * t.stride + i];
                sum[top++] = x;
            } else if (c == RT_TREE_ADD) {
                top--;
                sum[top - 1] += sum[top];
            } else {
                to[put++ * t.n + i] = sum[--top];
            }
        }
    }
}

/* The largest words of which rows have whole ones. */
static inline int gn_launch_move(void *const *arg, const RtRowsOp *op, void *stream) {
    void *to = arg[0];
    const void *from = arg[1];
    const int32_t *row = (const int32_t *)arg[2];
    int64_t row_bytes = op->size;
    int word_bytes = row_bytes % 16 == 0 ? 16 : row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
    int64_t total = op->n * (row_bytes / word_bytes);
    bool puts = op->what == RT_ROWS_PUT;
    void *args[] = {&to, &from, &row, &row_bytes, &word_bytes, &puts, &total};
    return gn_launch(gn_move_rows, total, args, stream);
}

/* arg: to, from, rows or NULL, an RtRowsOp or NULL, an RtTreeSum in place of both. */
static inline int gn_rows(void *const *arg, void *stream) {
    const RtRowsOp *op = (const RtRowsOp *)arg[3];
    float *to = (float *)arg[0];
    const float *from = (const float *)arg[1];
    if (!op) {
        RtTreeSum t = *(const RtTreeSum *)arg[4];
        void *args[] = {&to, &from, &t};
        return gn_launch(gn_sum_tree, t.n, args, stream);
    }
    if (op->what == RT_ROWS_ALONE) {
        int64_t n = op->n, n_partial = op->size;
        void *args[] = {&to, &from, &n, &n_partial};
        return gn_launch(gn_sum_alone, n * n_partial, args, stream);
    }
    return gn_launch_move(arg, op, stream);
}

#endif
