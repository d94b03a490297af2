/* Greedy by size with best fit: the largest buffer first, each into the smallest gap
 * between the buffers already placed whose lifetimes meet its own.  Within a few
 * per cent of the lower bound on networks, where an exact answer is a bin-packing
 * problem.  Source: Pisarchyk and Lee 2020, Efficient Memory Management for Deep
 * Neural Net Inference, section 5.2. */
#include "pack.h"

#include <stdint.h>

static size_t rounded(size_t n) {
    return (n + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}

/* Are a and b ever live at the same time? In the same loop over blocks of rows the steps within a
 * block decide, else the steps of the phase. */
static bool meet(const RtPackItem *a, const RtPackItem *b) {
    if (a->loop && a->loop == b->loop)
        return a->first_in <= b->last_in && b->first_in <= a->last_in;
    return a->first <= b->last && b->first <= a->last;
}

/* Larger first; equal sizes by position, so that the order is total. */
static bool goes_before(const RtPackItem *item, int a, int b) {
    if (item[a].n_bytes != item[b].n_bytes) return item[a].n_bytes > item[b].n_bytes;
    return a < b;
}

/* Lets the item at place `at` of a heap sink to where it belongs. */
static void sift(const RtPackItem *item, int *heap, int at, int n) {
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_before(item, heap[child], heap[child + 1])) child++;
        if (!goes_before(item, heap[at], heap[child])) return;
        int t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
    }
}

/* Heap sort of items into order[n], as goes_before() says: no allocation, and always the same
 * result. */
static void sort_by_size(const RtPackItem *item, int *order, int n) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n / 2 - 1; i >= 0; i--) sift(item, order, i, n);
    for (int i = n - 1; i > 0; i--) {
        int t = order[0];
        order[0] = order[i];
        order[i] = t;
        sift(item, order, 0, i);
    }
}

/* The placed items that x must avoid, by offset. */
static int neighbours(const RtPackItem *item, const int *order, int n_placed, int x, int *live) {
    int n = 0;
    for (int i = 0; i < n_placed; i++) {
        if (!item[order[i]].n_bytes || !meet(&item[order[i]], &item[x])) continue;
        int at = n++;
        for (; at > 0 && item[live[at - 1]].offset > item[order[i]].offset; at--)
            live[at] = live[at - 1];
        live[at] = order[i];
    }
    return n;
}

/* The offset of the smallest gap of at least n_bytes between the live items, which are sorted by
 * offset; else the end of the last. */
static size_t best_gap(const RtPackItem *item, const int *live, int n, size_t n_bytes) {
    size_t end = 0, best = 0, best_gap = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        const RtPackItem *p = &item[live[i]];
        if (p->offset > end && p->offset - end >= n_bytes && p->offset - end < best_gap) {
            best = end;
            best_gap = p->offset - end;
        }
        size_t p_end = p->offset + rounded(p->n_bytes);
        if (p_end > end) end = p_end;
    }
    return best_gap == SIZE_MAX ? end : best;
}

void rt_pack_span(RtPackItem *x, int first, int last) {
    if (x->last < first || x->first > last) return;
    if (x->first > first) x->first = first;
    if (x->last < last) x->last = last;
}

size_t rt_pack(RtPackItem *item, int n, int *order, int *live) {
    size_t total = 0;
    sort_by_size(item, order, n);
    for (int i = 0; i < n; i++) {
        RtPackItem *x = &item[order[i]];
        int n_live = neighbours(item, order, i, order[i], live);
        x->offset = x->n_bytes ? best_gap(item, live, n_live, rounded(x->n_bytes)) : 0;
        if (x->n_bytes && x->offset + rounded(x->n_bytes) > total)
            total = x->offset + rounded(x->n_bytes);
    }
    return total;
}
