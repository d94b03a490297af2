/* Layout: a head, a line for each array, then the arrays, each from a multiple of 64 bytes on.
 * Hashes are of 64 bits, made for speed: they find what went wrong, not who means it.  So readers
 * check what they index with, too. */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"

/* Raised whenever the same `what` would have other arrays: with the order of edges, for one. */
enum { VERSION = 1, MAX_ARRAYS = 1 << 20 };
enum { ALIGN = 64, HASH_BLOCK = 1 << 20, LANES = 4 };
static const int64_t TRUSTED_NS = 2000000000; /* the coarsest times of a file system: FAT's */

typedef struct {
    char magic[8];
    uint32_t order, version; /* order: of bytes */
    uint64_t data[2], what;
    uint64_t n_arrays, n_bytes;
    uint64_t hash; /* of all this, 0 in its place, and the lines */
} Head;

typedef struct {
    uint64_t at, n_bytes, hash;
} Line;

static const char MAGIC[8] = "gnnckept";

/* ---- hashes ---------------------------------------------------------------------- */
static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* Lanes do not wait for each other's product. */
static uint64_t hash_bytes(const uint8_t *p, size_t n) {
    uint64_t lane[LANES] = {1, 2, 3, 4}, h = n;
    for (; n >= sizeof lane; p += sizeof lane, n -= sizeof lane) {
        uint64_t word[LANES];
        memcpy(word, p, sizeof word);
        for (int i = 0; i < LANES; i++) lane[i] = mix(lane[i], word[i]);
    }
    for (int i = 0; i < LANES; i++) h = mix(h, lane[i]);
    for (; n > 0; p++, n--) h = mix(h, *p);
    return h;
}

typedef struct {
    const RtCacheArray *array;
    const uint64_t *first; /* [n + 1] block of each array */
    int n;
    uint64_t *hash; /* [blocks] */
} Hashing;

/* A member hashes every n_members-th block of all arrays. */
static void hash_blocks(void *arg, int member, int n_members) {
    const Hashing *w = arg;
    for (int i = 0; i < w->n; i++)
        for (uint64_t b = w->first[i]; b < w->first[i + 1]; b++) {
            if (b % (uint64_t)n_members != (uint64_t)member) continue;
            uint64_t at = (b - w->first[i]) * HASH_BLOCK, left = w->array[i].n_bytes - at;
            w->hash[b] = hash_bytes((const uint8_t *)w->array[i].p + at,
                                    left < HASH_BLOCK ? left : HASH_BLOCK);
        }
}

/* Hashes each array by blocks of a fixed size, so that the number of members does not matter;
 * false: no memory. */
static bool hash_arrays(RtPool *pool, RtTeam *team, const RtCacheArray *a, int n, uint64_t *out) {
    uint64_t *first = RT_NEWN(pool, uint64_t, n + 1);
    if (!first) return false;
    for (int i = 0; i < n; i++)
        first[i + 1] = first[i] + a[i].n_bytes / HASH_BLOCK + (a[i].n_bytes % HASH_BLOCK != 0);
    Hashing w = {a, first, n, RT_NEWN(pool, uint64_t, first[n])};
    if (!w.hash) return false;
    rt_team_run(team, hash_blocks, &w);
    for (int i = 0; i < n; i++) {
        out[i] = a[i].n_bytes;
        for (uint64_t b = first[i]; b < first[i + 1]; b++) out[i] = mix(out[i], w.hash[b]);
    }
    return true;
}

/* The hash of the file's head and list of arrays. */
static uint64_t hash_head(Head h, const Line *line) {
    h.hash = 0;
    return mix(hash_bytes((const uint8_t *)&h, sizeof h),
               hash_bytes((const uint8_t *)line, h.n_arrays * sizeof *line));
}

/* The head of a file for n arrays of these data. */
static Head head_of(const RtCacheKey *of, int n) {
    Head h = {.order = 0x01020304,
              .version = VERSION,
              .data = {of->data->key[0], of->data->key[1]},
              .what = of->what,
              .n_arrays = (uint64_t)n};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    return h;
}

static uint64_t rounded(uint64_t n) {
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- reading --------------------------------------------------------------------- */
/* Pages that are there already are mapped at once, not by a fault each. */
static bool map_whole(RtPool *pool, int fd, size_t n, RtBytes *out) {
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) return false;
    if (!rt_pool_own_mapping(pool, p, n)) {
        munmap(p, n);
        return false;
    }
    *out = (RtBytes){p, n};
    return true;
}

/* Reads n bytes of the file; false: no memory, or it is shorter. */
static bool read_whole(RtPool *pool, int fd, size_t n, RtBytes *out) {
    uint8_t *to = rt_pool_alloc(pool, n, 1);
    for (size_t at = 0; to && at < n;) {
        ssize_t k = pread(fd, to + at, n - at, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        at += (size_t)k;
    }
    *out = (RtBytes){to, n};
    return to;
}

/* Reads the head; false: it is of other data, another version or another purpose, or damaged. */
static bool read_head(int fd, const RtCacheKey *of, size_t n_bytes, Head *h) {
    if (pread(fd, h, sizeof *h, 0) != (ssize_t)sizeof *h) return false;
    const Head want = head_of(of, 0);
    return !memcmp(h->magic, MAGIC, sizeof MAGIC) && h->order == want.order &&
           h->version == want.version && h->data[0] == want.data[0] && h->data[1] == want.data[1] &&
           h->what == want.what && h->n_bytes == n_bytes && h->n_arrays <= MAX_ARRAYS &&
           n_bytes >= rounded(sizeof *h + h->n_arrays * sizeof(Line));
}

/* The lines lie in the file as it is told, one behind the other. */
static bool find_arrays(RtBytes file, const Head *h, const Line *line, RtCacheArray *a) {
    uint64_t at = rounded(sizeof *h + h->n_arrays * sizeof *line);
    if (hash_head(*h, line) != h->hash) return false;
    for (uint64_t i = 0; i < h->n_arrays; i++) {
        if (line[i].at != at || line[i].n_bytes > file.n - at) return false;
        a[i] = (RtCacheArray){file.p + at, line[i].n_bytes};
        at += rounded(line[i].n_bytes);
        if (at > file.n) return false;
    }
    return at == file.n;
}

/* Finds the arrays in the file and compares their hashes. */
static bool check_arrays(RtPool *pool, RtTeam *team, RtBytes file, RtCacheArray *a) {
    Head h;
    memcpy(&h, file.p, sizeof h);
    int n = (int)h.n_arrays;
    Line *line = RT_NEWN(pool, Line, n);
    uint64_t *hash = RT_NEWN(pool, uint64_t, n);
    if (!line || !hash) return false;
    memcpy(line, file.p + sizeof h, (size_t)n * sizeof *line);
    if (!find_arrays(file, &h, line, a) || !hash_arrays(pool, team, a, n, hash)) return false;
    for (int i = 0; i < n; i++)
        if (line[i].hash != hash[i]) return false;
    return true;
}

/* Opens the file if it is a regular one (a link or FIFO might lead anywhere); *n: its bytes; -1: it
 * is none. */
static int open_regular(const char *path, size_t *n) {
    struct stat f;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return fd;
    if (fstat(fd, &f) == 0 && S_ISREG(f.st_mode) && f.st_size >= (off_t)sizeof(Head)) {
        *n = (size_t)f.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

bool rt_cache_read(RtPool *pool, const char *path, const RtCacheKey *of, bool map, RtTeam *team,
                   const RtCacheArray **array, int *n) {
    size_t n_bytes;
    Head h;
    RtBytes file = {NULL, 0};
    RtPool scratch;
    RtCacheArray *a = NULL;
    if (!of->data->known) return false;
    int fd = open_regular(path, &n_bytes);
    if (fd < 0) return false;
    rt_pool_init(&scratch, &pool->from);
    bool ok = read_head(fd, of, n_bytes, &h) &&
              (map ? map_whole : read_whole)(pool, fd, n_bytes, &file) &&
              memcmp(file.p, &h, sizeof h) == 0 && (a = RT_NEWN(pool, RtCacheArray, h.n_arrays)) &&
              check_arrays(&scratch, team, file, a);
    rt_pool_free(&scratch);
    close(fd);
    if (!ok && !map) rt_pool_drop(pool, file.p);
    *array = a;
    *n = ok ? (int)h.n_arrays : 0;
    return ok;
}

/* ---- writing --------------------------------------------------------------------- */
/* Were the data left alone so long before the stamp was taken that a change would have changed
 * their times? By the clock of the file system, which the new file tells. */
static bool is_settled(const RtStamp *data, int fd) {
    struct stat f;
    struct timespec now;
    if (fstat(fd, &f) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
    int64_t there = (int64_t)f.st_mtim.tv_sec * 1000000000 + f.st_mtim.tv_nsec,
            here = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    int64_t taken = data->taken + (there < here ? there - here : 0);
    return data->newest <= taken - TRUSTED_NS;
}

/* A link would be followed, and what it leads to replaced. */
static bool is_other(const char *path) {
    struct stat f;
    return lstat(path, &f) == 0 && !S_ISREG(f.st_mode);
}

/* Writes head, list and arrays, each from an aligned place on. */
static bool write_all(RtOut *o, const Head *h, const Line *line, const RtCacheArray *a) {
    static const uint8_t zeros[ALIGN] = {0};
    size_t n_lines = (size_t)h->n_arrays * sizeof *line, head = sizeof *h + n_lines;
    bool ok = rt_out_write(o, h, sizeof *h, NULL) == GNNC_OK &&
              rt_out_write(o, line, n_lines, NULL) == GNNC_OK &&
              rt_out_write(o, zeros, rounded(head) - head, NULL) == GNNC_OK;
    for (uint64_t i = 0; i < h->n_arrays && ok; i++)
        ok = rt_out_write(o, a[i].p, a[i].n_bytes, NULL) == GNNC_OK &&
             rt_out_write(o, zeros, rounded(a[i].n_bytes) - a[i].n_bytes, NULL) == GNNC_OK;
    return ok;
}

bool rt_cache_write(const RtAlloc *from, const char *path, const RtCacheKey *of, RtTeam *team,
                    const RtCacheArray *a, int n) {
    RtPool pool;
    RtOut o;
    if (!of->data->known || n > MAX_ARRAYS) return false;
    if (is_other(path)) return false;
    if (rt_out_open(&o, from, path, NULL) != GNNC_OK) return false;
    o.is_derived = true;
    rt_pool_init(&pool, from);
    Head h = head_of(of, n);
    Line *line = RT_NEWN(&pool, Line, n);
    uint64_t *hash = RT_NEWN(&pool, uint64_t, n);
    bool ok = line && hash && is_settled(of->data, o.fd) && hash_arrays(&pool, team, a, n, hash);
    uint64_t at = rounded(sizeof h + (uint64_t)n * sizeof *line);
    for (int i = 0; i < n && ok; i++) {
        line[i] = (Line){at, a[i].n_bytes, hash[i]};
        at += rounded(a[i].n_bytes);
    }
    h.n_bytes = at;
    if (ok) h.hash = hash_head(h, line);
    ok = ok && write_all(&o, &h, line, a) && rt_out_commit(&o, NULL) == GNNC_OK;
    if (!ok) rt_out_abort(&o);
    rt_pool_free(&pool);
    return ok;
}
