/* Zip archives in memory: stored and deflated entries, as .npz files hold them. */
#ifndef RUNTIME_ZIP_H
#define RUNTIME_ZIP_H

#include "runtime/data/io.h"

typedef struct RtZipEntry {
    const char *name;
    int method; /* 0 stored, 8 deflate */
    uint32_t crc;
    uint64_t n_packed, n_bytes, offset; /* offset of the local header */
} RtZipEntry;

typedef struct RtZip {
    RtBytes file;
    const char *name; /* in messages */
    int n;
    RtZipEntry *entries;
} RtZip;

gnnc_status rt_zip_open(RtPool *pool, RtBytes file, const char *name, RtZip *out, RtError *err);
const RtZipEntry *rt_zip_find(const RtZip *z, const char *name); /* NULL: no such entry */
/* Unpacked and CRC-checked into the pool. */
gnnc_status rt_zip_read(RtPool *pool, const RtZip *z, const RtZipEntry *e, RtBytes *out,
                        RtError *err);

#endif
