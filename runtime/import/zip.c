/* A reader of zip's central directory (PKWARE APPNOTE 6.3), with zip64 sizes and counts as
 * numpy writes for large arrays and many of them; no encryption, no split archives.  zlib does the
 * unpacking.  Own code: it is smaller than the calls a zip library would need to
 * read from memory, and needs no other package. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "runtime/memory.h"

enum { END_SIG = 0x06054b50, CENTRAL_SIG = 0x02014b50, LOCAL_SIG = 0x04034b50 };
enum { END64_SIG = 0x06064b50, LOCATOR_SIG = 0x07064b50 };
enum { END_SIZE = 22, CENTRAL_SIZE = 46, LOCAL_SIZE = 30, MAX_COMMENT = 65535 };
enum { END64_SIZE = 56, LOCATOR_SIZE = 20 };
/* Deflate cannot expand more than this; a larger claim is a lie (or a bomb). */
enum { MAX_RATIO = 1032 };
enum { MAX_ENTRIES = 1 << 20 };

/* A number of n bytes, the least first. */
static uint64_t le(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static gnnc_status bad(const char *name, const char *what, RtError *err) {
    return rt_fail(err, GNNC_E_FORMAT, "%s: %s", name, what);
}

/* The end record is last but for a comment of at most 64 KiB. */
static const uint8_t *find_end(RtBytes f) {
    for (size_t back = END_SIZE; back <= f.n && back <= END_SIZE + MAX_COMMENT; back++) {
        const uint8_t *p = f.p + f.n - back;
        if (le(p, 4) == END_SIG && le(p + 20, 2) == back - END_SIZE) return p;
    }
    return NULL;
}

/* Sizes and the offset of 0xffffffff stand in the zip64 extra field, in order. */
static bool read_zip64(const uint8_t *extra, size_t n, RtZipEntry *e) {
    uint64_t *want[3];
    int n_want = 0;
    if (e->n_bytes == UINT32_MAX) want[n_want++] = &e->n_bytes;
    if (e->n_packed == UINT32_MAX) want[n_want++] = &e->n_packed;
    if (e->offset == UINT32_MAX) want[n_want++] = &e->offset;
    while (n_want && n >= 4) {
        size_t id = (size_t)le(extra, 2), len = (size_t)le(extra + 2, 2);
        if (len > n - 4) return false;
        for (int i = 0; id == 1 && i < n_want; i++) {
            if (len < 8 * (size_t)(i + 1)) return false;
            *want[i] = le(extra + 4 + 8 * i, 8);
        }
        if (id == 1) return true;
        extra += 4 + len;
        n -= 4 + len;
    }
    return n_want == 0;
}

/* One central directory record at p; *used = its length. */
static gnnc_status read_central(RtPool *pool, const RtZip *z, const uint8_t *p, size_t left,
                                RtZipEntry *e, size_t *used, RtError *err) {
    if (left < CENTRAL_SIZE || le(p, 4) != CENTRAL_SIG)
        return bad(z->name, "malformed zip directory", err);
    size_t n_name = (size_t)le(p + 28, 2), n_extra = (size_t)le(p + 30, 2);
    *used = CENTRAL_SIZE + n_name + n_extra + (size_t)le(p + 32, 2);
    if (*used > left) return bad(z->name, "malformed zip directory", err);
    e->name = rt_pool_strndup(pool, (const char *)p + CENTRAL_SIZE, n_name);
    if (!e->name) return rt_fail_nomem(err, z->name);
    e->method = (int)le(p + 10, 2);
    e->crc = (uint32_t)le(p + 16, 4);
    e->n_packed = le(p + 20, 4);
    e->n_bytes = le(p + 24, 4);
    e->offset = le(p + 42, 4);
    bool ok = strlen(e->name) == n_name && read_zip64(p + CENTRAL_SIZE + n_name, n_extra, e);
    if (!ok) return bad(z->name, "malformed zip directory", err);
    if (le(p + 8, 2) & 1) return bad(z->name, "encrypted zip entries are not supported", err);
    if (e->method != 0 && e->method != 8)
        return bad(z->name, "this zip compression is not supported", err);
    if (e->method == 0 ? e->n_bytes != e->n_packed : e->n_bytes / MAX_RATIO > e->n_packed)
        return bad(z->name, "a zip entry's sizes contradict each other", err);
    return GNNC_OK;
}

/* Where the central directory lies.  Counts and places that do not fit the end record stand in
 * the zip64 one, whose place the locator before the end record says. */
typedef struct {
    uint64_t n, size, start;
} Directory;

/* Finds the archive's directory, by its 64-bit form where numbers are too large for the old one. */
static bool find_directory(RtBytes f, Directory *d) {
    const uint8_t *end = find_end(f);
    if (!end) return false;
    *d = (Directory){le(end + 10, 2), le(end + 12, 4), le(end + 16, 4)};
    if (d->n != UINT16_MAX && d->size != UINT32_MAX && d->start != UINT32_MAX) return true;
    const uint8_t *locator = end - f.p < LOCATOR_SIZE ? NULL : end - LOCATOR_SIZE;
    if (!locator || le(locator, 4) != LOCATOR_SIG) return true; /* 65,535 it is */
    uint64_t at = le(locator + 8, 8);
    if (at > f.n || f.n - at < END64_SIZE || le(f.p + at, 4) != END64_SIG) return false;
    *d = (Directory){le(f.p + at + 32, 8), le(f.p + at + 40, 8), le(f.p + at + 48, 8)};
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const RtZipEntry *const *)a)->name, (*(const RtZipEntry *const *)b)->name);
}
/* Sorts entries by their place in the file. */
static int by_offset(const void *a, const void *b) {
    uint64_t x = (*(const RtZipEntry *const *)a)->offset,
             y = (*(const RtZipEntry *const *)b)->offset;
    return x < y ? -1 : x > y;
}

/* Two entries over the same bytes are how a small archive claims to hold much (Fifield 2019,
 * "A better zip bomb"). */
static gnnc_status check_entries(RtPool *pool, const RtZip *z, RtError *err) {
    const RtZipEntry **e = rt_pool_alloc(pool, (size_t)z->n, sizeof *e);
    if (!e) return rt_fail_nomem(err, z->name);
    for (int i = 0; i < z->n; i++) e[i] = &z->entries[i];
    qsort(e, (size_t)z->n, sizeof *e, by_name);
    for (int i = 1; i < z->n; i++)
        if (strcmp(e[i - 1]->name, e[i]->name) == 0)
            return bad(z->name, "two zip entries have one name", err);
    qsort(e, (size_t)z->n, sizeof *e, by_offset);
    for (int i = 1; i < z->n; i++)
        if (e[i]->offset - e[i - 1]->offset < e[i - 1]->n_packed)
            return bad(z->name, "two zip entries lie over each other", err);
    return GNNC_OK;
}

/* Is there memory for all entries? All of them may be unpacked at a time. */
static gnnc_status check_room(const RtZip *z, RtError *err) {
    double mib = 1 << 20, all = 0;
    for (int i = 0; i < z->n; i++) all += (double)z->entries[i].n_bytes;
    RtMemoryLimit most = rt_memory_limit(0);
    if (all <= (double)most.n_bytes) return GNNC_OK;
    return rt_fail(err, GNNC_E_LIMIT, "%s: unpacks to %.1f MiB, %s %.1f MiB", z->name, all / mib,
                   most.what, (double)most.n_bytes / mib);
}

/* Lists the entries of an archive, whose bytes must outlive it. */
gnnc_status rt_zip_open(RtPool *pool, RtBytes file, const char *name, RtZip *out, RtError *err) {
    *out = (RtZip){.file = file, .name = name};
    Directory d;
    if (!find_directory(file, &d)) return bad(name, "not a zip archive, or a truncated one", err);
    if (d.start > file.n || d.size > file.n - d.start || d.n > d.size / CENTRAL_SIZE)
        return bad(name, "malformed zip directory", err);
    if (d.n > MAX_ENTRIES) return bad(name, "more than 1,048,576 zip entries", err);
    out->entries = RT_NEWN(pool, RtZipEntry, d.n);
    if (!out->entries) return rt_fail_nomem(err, name);
    const uint8_t *p = file.p + d.start;
    size_t left = (size_t)d.size, used = 0;
    for (; out->n < (int)d.n; p += used, left -= used) {
        gnnc_status st = read_central(pool, out, p, left, &out->entries[out->n], &used, err);
        if (st != GNNC_OK) return st;
        out->n++;
    }
    gnnc_status st = check_entries(pool, out, err);
    return st == GNNC_OK ? check_room(out, err) : st;
}

const RtZipEntry *rt_zip_find(const RtZip *z, const char *name) {
    for (int i = 0; i < z->n; i++)
        if (strcmp(z->entries[i].name, name) == 0) return &z->entries[i];
    return NULL;
}

/* zlib's counters are 32 bits wide: feed it in pieces. */
static bool inflate_all(const uint8_t *from, uint64_t n_from, uint8_t *to, uint64_t n_to) {
    enum { PIECE = 1 << 30 };
    z_stream s = {.next_in = (Bytef *)(uintptr_t)from, .next_out = to};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK) return false;
    uint64_t left_in = n_from, left_out = n_to;
    int r = Z_OK;
    while (r == Z_OK) {
        uInt in = left_in < PIECE ? (uInt)left_in : PIECE;
        uInt room = left_out < PIECE ? (uInt)left_out : PIECE;
        s.avail_in = in;
        s.avail_out = room;
        r = inflate(&s, Z_NO_FLUSH);
        left_in -= in - s.avail_in;
        left_out -= room - s.avail_out;
        if (r == Z_OK && s.avail_in == in && s.avail_out == room) break; /* no progress */
    }
    inflateEnd(&s);
    return r == Z_STREAM_END && left_out == 0;
}

static bool crc_matches(const RtZipEntry *e, const uint8_t *p) {
    return crc32_z(crc32_z(0, NULL, 0), p, (size_t)e->n_bytes) == e->crc;
}

gnnc_status rt_zip_read(RtPool *pool, const RtZip *z, const RtZipEntry *e, RtBytes *out,
                        RtError *err) {
    RtBytes f = z->file;
    if (e->offset > f.n || f.n - e->offset < LOCAL_SIZE || le(f.p + e->offset, 4) != LOCAL_SIG)
        return rt_fail(err, GNNC_E_FORMAT, "%s: %s: malformed zip entry", z->name, e->name);
    const uint8_t *local = f.p + e->offset;
    uint64_t start = e->offset + LOCAL_SIZE + le(local + 26, 2) + le(local + 28, 2);
    if (start > f.n || e->n_packed > f.n - start)
        return rt_fail(err, GNNC_E_FORMAT, "%s: %s: zip entry is truncated", z->name, e->name);
    const uint8_t *p = f.p + start;
    uint8_t *to = rt_pool_alloc(pool, (size_t)e->n_bytes, 1);
    if (!to) return rt_fail_nomem(err, e->name);
    bool ok = true;
    if (e->method == 8)
        ok = inflate_all(p, e->n_packed, to, e->n_bytes);
    else
        memcpy(to, p, (size_t)e->n_bytes);
    if (!ok || !crc_matches(e, to))
        return rt_fail(err, GNNC_E_FORMAT, "%s: %s: zip entry is damaged", z->name, e->name);
    *out = (RtBytes){to, (size_t)e->n_bytes};
    return GNNC_OK;
}
