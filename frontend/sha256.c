/* SHA-256 as FIPS 180-4 gives it, of a text that is all in memory.  Own code: it is shorter than
 * the way to a library that is on every machine. */
#include "frontend/sha256.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

/* Section 4.2.2: of the cube roots of the first 64 primes, the first 32 bits behind the point. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

/* Adds a block of 64 bytes to the hash h: FIPS 180-4, section 6.2.2, with its names. */
static void add_block(uint32_t h[8], const uint8_t *p) {
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t a = v[0], e = v[4];
        uint32_t ch = (e & v[5]) ^ (~e & v[6]), maj = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ch + k[t] + w[t];
        uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + maj;
        memmove(v + 1, v, 7 * sizeof *v);
        v[0] = t1 + t2;
        v[4] += t1;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

/* Writes the SHA-256 hash of n bytes to `out`. */
void cli_sha256(const void *data, size_t n, uint8_t out[SHA256_BYTES]) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *p = data;
    uint8_t end[2 * BLOCK] = {0};
    size_t left = n % BLOCK;
    for (size_t i = 0; i < n / BLOCK; i++) add_block(h, p + BLOCK * i);
    if (left) memcpy(end, p + (n - left), left);
    end[left] = 0x80;
    size_t n_end = left < LENGTH_AT ? BLOCK : sizeof end;
    for (int i = 0; i < 8; i++) end[n_end - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    for (size_t i = 0; i < n_end; i += BLOCK) add_block(h, end + i);
    for (int i = 0; i < SHA256_BYTES; i++) out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
