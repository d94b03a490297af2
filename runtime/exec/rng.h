/* Random streams: counter-based, without layout, so that a mask is a function of
 * what it masks and of nothing else: not of the thread, the chunk, the storage
 * order, dense or CSR, cpu or cuda, the optimisation level or an interruption.
 *
 *   u = rt_uniform(rt_stream_key(seed, step, stream), row, col)   in [0, 1)
 *
 * seed    of the run;  step: number of train steps done before this one
 * stream  OP_RANDOM's attribute, given by the front end, kept by every pass
 * row     for a value f32[d0, d1, ..]: the logical id of d0's element (rank 0: 0)
 *           dimension, node, graph: the index itself
 *           edge: its key, below
 *           stored entry (SP_NZ): the row of the entry; its column takes the place
 *             of d1's index, so a mask over f32[nz] equals that over f32[row, F]
 * col     row-major index over d1, d2, ..   (0 for rank 0 and 1)
 *
 * Edge keys.  The *listing* of a relation is its edges before they are sorted; the
 * canonical (stored) order is the stable sort of the listing by destination.
 * Derived relations list the canonical order of their bases.
 *   base        listing: as loaded;                     key: position in the listing
 *   self_loops  base's without loops, then one loop per node v;
 *                                 key: base's key; for the loop of v: K(base) + v
 *   no_loops, where, reverse    base's, filtered or with swapped ends; key: base's key
 *   undirected  base's, then base's with swapped ends, of equal edges the first kept;
 *                                                       key: position in the listing
 *   union       those of base[0], then those of base[1];  key: position in the listing
 * K, the bound of the keys: the number of edges for base, undirected and union;
 * K(base) + N for self_loops; K(base) for the others.  (rt_relation_* builds them.)
 *
 * mix32 is a hash of the "lowbias32" form by C. Wellons with the constants found
 * by TheIronBorn (github.com/skeeto/hash-prospector, issue 19: 0x21f0aaad,
 * 0xd35a2d97; exact bias 0.107); the key schedule is splitmix64 (Steele, Lea and
 * Flood, OOPSLA 2014).  Two rounds over (row, col) cost about ten integer
 * operations, all of 32 bits: they vectorise, and need no table. */
#ifndef RUNTIME_RNG_H
#define RUNTIME_RNG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Which rows of other parts training reads, where it samples them (boundary.c): a stream that no
 * operation has, of a row's number in data that nobody partitioned, and of its type's.  Steps read
 * what follows from it as inputs of that name, with the edges' behind it. */
#define RT_BOUNDARY_STREAM UINT64_MAX
#define RT_BOUNDARY_INPUT "boundary."

/* Whether an input of that name has factors of edges. */
static inline bool rt_boundary_is_input(const char *name) {
    return strncmp(name, RT_BOUNDARY_INPUT, sizeof RT_BOUNDARY_INPUT - 1) == 0;
}

/* Whether rows can be drawn with probability p: rt_uniform() has 24 bits. */
static inline bool rt_boundary_can_draw(double p) {
    return p >= 0x1p-20 && p < 1;
}

typedef struct {
    uint32_t k0, k1;
} RtKey;

/* Mixes the bits of a 32-bit number, one to one: each bit of x changes about half of the bits of
 * the result. */
static inline uint32_t rt_mix32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0xd35a2d97u;
    x ^= x >> 15;
    return x;
}

static inline uint64_t rt_splitmix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* k0 is the low half, k1 the high half of s(s(s(seed) ^ step) ^ stream), s = splitmix64. */
static inline RtKey rt_stream_key(uint64_t seed, uint64_t step, uint64_t stream) {
    uint64_t h = rt_splitmix64(rt_splitmix64(rt_splitmix64(seed) ^ step) ^ stream);
    return (RtKey){(uint32_t)h, (uint32_t)(h >> 32)};
}

/* 24 random bits: every value is exact in f32.  Ids above 2^32 wrap. */
static inline float rt_uniform(RtKey k, uint32_t row, uint32_t col) {
    uint32_t h = rt_mix32(rt_mix32(row ^ k.k0) ^ (col * 0x9E3779B9u + k.k1));
    return (float)(h >> 8) * 0x1p-24f;
}

#endif
