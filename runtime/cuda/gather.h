/* Rows of the data's columns for a mini-batch, on the device, which has the whole columns: what
 * crosses are the numbers of the rows.  All columns of a batch are one launch.  And the other way:
 * what a batch gives of some rows, to the column of all. */
#ifndef RUNTIME_CUDA_GATHER_H
#define RUNTIME_CUDA_GATHER_H

#include "cuda/kernel.h"
#include "cuda/gather_list.h"

/* Which row of the column row `at` of the batch is. */
GN_FN int64_t gn_row_of_all(const RtGather &g, int64_t at) {
    if (!g.row) return at;
    return g.wide ? ((const int64_t *)g.row)[at] : ((const int32_t *)g.row)[at];
}

/* Word i of the batch's rows.  Threads side by side have words side by side, of one row or of the
 * next. */
template <class T> GN_FN void gn_gather_words(const RtGather &g, int64_t i) {
    const int64_t words = g.row_bytes / (int64_t)sizeof(T), at = i / words;
    if (at >= g.kept) {
        ((T *)g.to)[i] = T();
        return;
    }
    const int64_t row = gn_row_of_all(g, at);
    const int32_t slot = g.slot ? g.slot[row] : -1;
    const T *from = slot >= 0 ? (const T *)g.near + slot * words : (const T *)g.from + row * words;
    ((T *)g.to)[i] = from[i % words];
}

template <class T> GN_FN void gn_scatter_words(const RtGather &g, int64_t i) {
    const int64_t words = g.row_bytes / (int64_t)sizeof(T);
    ((T *)g.to)[gn_row_of_all(g, i / words) * words + i % words] = ((const T *)g.from)[i];
}

static __global__ void gn_gather_rows(const RtGather *all, int n, int64_t total) {
    GN_ROWS(i, total) {
        int k = 0;
        while (k + 1 < n && all[k + 1].first <= i) k++;
        const RtGather g = all[k];
        if (g.word_bytes == sizeof(float4))
            gn_gather_words<float4>(g, i - g.first);
        else if (g.word_bytes == sizeof(uint32_t))
            gn_gather_words<uint32_t>(g, i - g.first);
        else
            gn_gather_words<uint16_t>(g, i - g.first);
    }
}

/* arg: the list on the device; int64_t[2] of its length and the words of all. */
static inline int gn_gather(void *const *arg, void *stream) {
    const RtGather *all = (const RtGather *)arg[0];
    int n = (int)((const int64_t *)arg[1])[0];
    int64_t total = ((const int64_t *)arg[1])[1];
    void *args[] = {&all, &n, &total};
    return gn_launch(gn_gather_rows, total, args, stream);
}

/* No row is in the list twice. */
static __global__ void gn_scatter_rows(const RtGather g, int64_t total) {
    GN_ROWS(i, total) {
        if (g.word_bytes == sizeof(float4))
            gn_scatter_words<float4>(g, i);
        else if (g.word_bytes == sizeof(uint32_t))
            gn_scatter_words<uint32_t>(g, i);
        else
            gn_scatter_words<uint16_t>(g, i);
    }
}

/* arg: the host's RtGather; int64_t[1] of its words. */
static inline int gn_scatter(void *const *arg, void *stream) {
    void *args[] = {arg[0], arg[1]};
    return gn_launch(gn_scatter_rows, *(const int64_t *)arg[1], args, stream);
}

#endif
