/* Which random number decides what: the sampler's choices as a function of
 *
 *     (seed, epoch, batch, stream, tree, node, draw)
 *
 * (the tree of a seed is its place in the batch, or what the caller says: RtSeeds.key) and of
 * nothing else, so that batches do not depend on threads, on what was sampled
 * before, or on where a run was resumed; a sampler on another device that follows this
 * page chooses the same.  stream = RT_DRAW_HOP + hop * n_relations + relation for
 * neighbours, and one each for negatives and for the order of seeds.
 *
 * Draws are the splitmix64 sequence (Steele, Lea and Flood, OOPSLA 2014) of a state made
 * from the key.  A draw below n is the high word of draw * n: biased by n / 2^64. */
#ifndef RUNTIME_SAMPLE_KEY_H
#define RUNTIME_SAMPLE_KEY_H

#include <string.h>

#include "runtime/exec/rng.h"

enum { RT_DRAW_ORDER, RT_DRAW_NEGATIVE, RT_DRAW_HOP };

static inline uint64_t rt_draw_key(uint64_t seed, uint64_t epoch, uint64_t batch, uint64_t stream) {
    uint64_t h = rt_splitmix64(rt_splitmix64(rt_splitmix64(seed) ^ epoch) ^ batch);
    return rt_splitmix64(h ^ stream);
}

/* Of one node in one tree (0 where trees share their nodes). */
static inline uint64_t rt_draw_state(uint64_t key, uint32_t tree, uint32_t node) {
    return rt_splitmix64(key ^ ((uint64_t)tree << 32 | node));
}

static inline uint64_t rt_draw(uint64_t state, uint64_t i) {
    return rt_splitmix64(state + i * 0x9E3779B97F4A7C15u);
}

/* In [0, n). */
static inline int64_t rt_draw_below(uint64_t state, uint64_t i, int64_t n) {
    __extension__ typedef unsigned __int128 Wide;
    return (int64_t)(uint64_t)(((Wide)rt_draw(state, i) * (uint64_t)n) >> 64);
}

/* In (0, 1]: its logarithm is finite. */
static inline double rt_draw_real(uint64_t state, uint64_t i) {
    return (double)((rt_draw(state, i) >> 11) + 1) * 0x1p-53;
}

/* -log(u), u in [2^-53, 1], to 2 units in the last place: u = 2^e m with m about 1, and
 * log m = 2 atanh(s), s = (m - 1) / (m + 1).  Each operation is one that IEEE 754 rounds alike
 * everywhere, and stands alone so that no two are contracted: what is compared by these numbers
 * comes out alike on a device that follows this page, too. */
static inline double rt_neg_log(double u) {
    static const double c[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                               1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const double ln2 = 0.69314718055994530942, root2 = 1.41421356237309504880;
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > root2) m *= 0.5, e++;
    double above = m - 1, below = m + 1, s = above / below, q = s * s, p = c[0];
    for (int i = 1; i < (int)(sizeof c / sizeof *c); i++) {
        p *= q;
        p += c[i];
    }
    p *= q;
    double twice = 2 * s, rest = twice * p, log_m = twice + rest, log_2 = e * ln2;
    double log_u = log_2 + log_m;
    return -log_u;
}

#endif
