/* Ranks among the masked elements of each lane: for the area under the ROC curve (Mann and
 * Whitney 1947) ties share the mean of the ranks they cover, for average precision the lowest.
 * Sorting is a library call because no parallel loop expresses it; a merge sort on
 * (value, position), stable and without recursion, so the result is one for all
 * thread counts.  NaN sorts last, all NaNs being tied. */
#include <math.h>

#include "runtime/device/device.h"

typedef struct {
    float v;
    int32_t at;
} Item;

static bool less(const Item *a, const Item *b) {
    return a->v < b->v || (isnan(b->v) && !isnan(a->v));
}

static bool tied(const Item *a, const Item *b) {
    return !less(a, b) && !less(b, a);
}

static void merge(const Item *from, Item *to, int64_t lo, int64_t mid, int64_t hi) {
    for (int64_t i = lo, j = mid, k = lo; k < hi; k++)
        to[k] = j >= hi || (i < mid && !less(&from[j], &from[i])) ? from[i++] : from[j++];
}

/* Sorts a; b is as large.  Returns where the result is. */
static Item *sort(Item *a, Item *b, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = lo + width < n ? lo + width : n;
            int64_t hi = mid + width < n ? mid + width : n;
            merge(a, b, lo, mid, hi);
        }
        Item *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* Ranks the elements of one lane, len of them with a stride, where the mask holds; others get 0.
 * ties: which rank equal ones get. a, b: room for the sort. */
static void rank_lane(const float *v, const uint8_t *mask, float *y, int64_t len, int64_t stride,
                      int ties, Item *a, Item *b) {
    int64_t n = 0;
    for (int64_t i = 0; i < len; i++) {
        y[i * stride] = 0;
        if (mask[i * stride]) a[n++] = (Item){v[i * stride], (int32_t)i};
    }
    const Item *s = sort(a, b, n);
    for (int64_t lo = 0, hi; lo < n; lo = hi) {
        for (hi = lo + 1; hi < n && tied(&s[lo], &s[hi]);) hi++;
        float rank = (float)((double)(lo + 1) + 0.5 * ties * (double)(hi - lo - 1));
        for (int64_t k = lo; k < hi; k++) y[s[k].at * stride] = rank;
    }
}

size_t rt_rank_scratch(int64_t len) {
    return 2 * sizeof(Item) * (size_t)len;
}

/* Ranks on this machine, one lane after the other; an array has outer x len x inner elements and
 * ranks are along len. */
static gnnc_status rank_here(RtExec *x, const float *v, const uint8_t *mask, float *y,
                             int64_t outer, int64_t len, int64_t inner, int ties) {
    if (len > INT32_MAX)
        return rt_fail(&x->rt->err, GNNC_E_RANGE, "rank: more than 2^31 - 1 elements");
    Item *a = rt_scratch(x, rt_rank_scratch(len));
    if (!a) return GNNC_E_NOMEM;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = o * len * inner + i;
            rank_lane(v + at, mask + at, y + at, len, inner, ties, a, a + len);
        }
    return GNNC_OK;
}

gnnc_status rt_rank_f32(RtExec *x, const float *v, const uint8_t *mask, float *y, int64_t outer,
                        int64_t len, int64_t inner, int ties) {
    x->rt->count.library_calls++;
    return x->rt->device ? rt_device_rank(x, v, mask, y, outer, len, inner, ties)
                         : rank_here(x, v, mask, y, outer, len, inner, ties);
}
