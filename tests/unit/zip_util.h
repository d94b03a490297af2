/* Writes small .npz archives into memory, for tests. */
#ifndef ZIP_UTIL_H
#define ZIP_UTIL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

typedef struct {
    uint8_t bytes[32768], central[8192];
    size_t n, n_central;
    int n_entries;
} Zip;

static inline void put_le(uint8_t *to, uint64_t v, int n) {
    for (int i = 0; i < n; i++) to[i] = (uint8_t)(v >> 8 * i);
}

static inline size_t pack(const uint8_t *p, size_t n, uint8_t *to, size_t cap) {
    z_stream s = {.next_in = (Bytef *)(uintptr_t)p,
                  .avail_in = (uInt)n,
                  .next_out = to,
                  .avail_out = (uInt)cap};
    deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&s, Z_FINISH);
    deflateEnd(&s);
    return cap - s.avail_out;
}

static inline void zip_add(Zip *z, const char *name, const uint8_t *p, size_t n, int deflated) {
    uint8_t *local = z->bytes + z->n, *c = z->central + z->n_central;
    size_t n_name = strlen(name), n_packed = n;
    uint32_t crc = (uint32_t)crc32_z(0, p, n);
    uint8_t *data = local + 30 + n_name;
    if (deflated)
        n_packed = pack(p, n, data, sizeof z->bytes - (size_t)(data - z->bytes));
    else
        memcpy(data, p, n);
    memset(local, 0, 30);
    put_le(local, 0x04034b50, 4), put_le(local + 26, n_name, 2);
    memcpy(local + 30, name, n_name);
    memset(c, 0, 46);
    put_le(c, 0x02014b50, 4), put_le(c + 10, deflated ? 8 : 0, 2), put_le(c + 16, crc, 4);
    put_le(c + 20, n_packed, 4), put_le(c + 24, n, 4), put_le(c + 28, n_name, 2);
    put_le(c + 42, z->n, 4);
    memcpy(c + 46, name, n_name);
    z->n_central += 46 + n_name;
    z->n += 30 + n_name + n_packed;
    z->n_entries++;
}

static inline void zip_end(Zip *z) {
    size_t start = z->n;
    memcpy(z->bytes + z->n, z->central, z->n_central);
    z->n += z->n_central;
    uint8_t *end = z->bytes + z->n;
    memset(end, 0, 22);
    put_le(end, 0x06054b50, 4), put_le(end + 8, (uint64_t)z->n_entries, 2);
    put_le(end + 10, (uint64_t)z->n_entries, 2);
    put_le(end + 12, z->n_central, 4), put_le(end + 16, start, 4);
    z->n += 22;
}

/* `shape` as Python writes it: "(2, 3)" */
static inline void zip_add_npy(Zip *z, const char *name, const char *descr, const char *shape,
                               const void *data, size_t n) {
    uint8_t file[4096] = "\x93NUMPY\x01";
    char entry[64];
    snprintf(entry, sizeof entry, "%s.npy", name);
    int len = snprintf((char *)file + 10, sizeof file - 10,
                       "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    put_le(file + 6, 1, 2), put_le(file + 8, (uint64_t)len, 2);
    memcpy(file + 10 + len, data, n);
    zip_add(z, entry, file, 10 + (size_t)len + n, z->n_entries % 2); /* both methods */
}

#endif
