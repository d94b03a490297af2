/* Rows are gathered into one buffer, which is written whenever it is full. */
#include "moved.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20 };

typedef struct {
    RtOut o;
    RtPool pool;
    char *buf;
    size_t n;
    RtError *err;
    gnnc_status st; /* the first failure; later calls do nothing */
} Sink;

static void flush(Sink *s) {
    if (s->st == GNNC_OK) s->st = rt_out_write(&s->o, s->buf, s->n, s->err);
    s->n = 0;
}

/* Writes n bytes, collected to large pieces. */
static void put(Sink *s, const void *p, size_t n) {
    if (s->n + n > PIECE_BYTES) flush(s);
    if (n > PIECE_BYTES) {
        if (s->st == GNNC_OK) s->st = rt_out_write(&s->o, p, n, s->err);
        return;
    }
    if (n) memcpy(s->buf + s->n, p, n);
    s->n += n;
}

/* a: what the head says; NULL: the file is a text. */
static gnnc_status open_sink(Sink *s, const RtAlloc *from, const char *path, const RtArray *a,
                             RtError *err) {
    *s = (Sink){.err = err};
    rt_pool_init(&s->pool, from);
    s->buf = rt_pool_alloc(&s->pool, PIECE_BYTES, 1);
    s->st = !s->buf ? rt_fail_nomem(err, path)
            : a     ? rt_npy_begin(&s->o, from, path, a, err)
                    : rt_out_open(&s->o, from, path, err);
    if (s->st != GNNC_OK) rt_pool_free(&s->pool);
    return s->st;
}

/* Writes what is left, and finishes or drops the file. */
static gnnc_status close_sink(Sink *s) {
    flush(s);
    if (s->st == GNNC_OK)
        s->st = rt_out_commit(&s->o, s->err);
    else
        rt_out_abort(&s->o);
    rt_pool_free(&s->pool);
    return s->st;
}

gnnc_status rt_moved_rows(const RtAlloc *from, const char *path, const RtArray *a, int64_t lists,
                          const int32_t *rows, RtError *err) {
    Sink s;
    int64_t n = a->shape[lists > 0];
    size_t width = rt_dtype_bytes(a->dt);
    const char *data = a->data;
    for (int i = 1 + (lists > 0); i < a->rank; i++) width *= (size_t)a->shape[i];
    gnnc_status st = open_sink(&s, from, path, a, err);
    if (st != GNNC_OK) return st;
    for (int64_t k = 0; k < (lists ? lists : 1) && s.st == GNNC_OK; k++)
        for (int64_t i = 0; i < n && s.st == GNNC_OK; i++)
            put(&s, data + (size_t)(k * n + rows[i]) * width, width);
    return close_sink(&s);
}

gnnc_status rt_moved_ends(const RtAlloc *from, const char *path, int64_t n,
                          const int32_t *const end[2], const int32_t *const place[2],
                          RtError *err) {
    Sink s;
    RtArray head = {.dt = RT_DT_I32, .rank = 2, .shape = {2, n}};
    gnnc_status st = open_sink(&s, from, path, &head, err);
    if (st != GNNC_OK) return st;
    for (int side = 0; side < 2; side++)
        for (int64_t e = 0; e < n && s.st == GNNC_OK; e++)
            put(&s, &place[side][end[side][e]], sizeof *place[side]);
    return close_sink(&s);
}

gnnc_status rt_moved_ptr(const RtAlloc *from, const char *path, const int64_t *ptr, int64_t n,
                         const int32_t *rows, RtError *err) {
    Sink s;
    RtArray head = {.dt = RT_DT_I64, .rank = 1, .shape = {n + 1}};
    int64_t at = 0;
    gnnc_status st = open_sink(&s, from, path, &head, err);
    if (st != GNNC_OK) return st;
    put(&s, &at, sizeof at);
    for (int64_t i = 0; i < n && s.st == GNNC_OK; i++) {
        at += ptr[rows[i] + 1] - ptr[rows[i]];
        put(&s, &at, sizeof at);
    }
    return close_sink(&s);
}

gnnc_status rt_moved_entries(const RtAlloc *from, const char *path, RtDtype dt, const void *entries,
                             const int64_t *ptr, int64_t n, const int32_t *rows, RtError *err) {
    Sink s;
    RtArray head = {.dt = dt, .rank = 1, .shape = {ptr[n]}};
    size_t width = rt_dtype_bytes(dt);
    gnnc_status st = open_sink(&s, from, path, &head, err);
    if (st != GNNC_OK) return st;
    for (int64_t i = 0; i < n && s.st == GNNC_OK; i++) {
        int64_t lo = ptr[rows[i]], hi = ptr[rows[i] + 1];
        put(&s, (const char *)entries + (size_t)lo * width, (size_t)(hi - lo) * width);
    }
    return close_sink(&s);
}

/* Finds where the n lines begin; the last may have no end. */
static gnnc_status find_lines(RtPool *pool, const char *name, RtBytes text, int64_t n,
                              const int64_t **out, RtError *err) {
    int64_t *ptr = RT_NEWN(pool, int64_t, n + 1), k = 0;
    *out = ptr;
    if (!ptr) return rt_fail_nomem(err, name);
    for (size_t at = 0; at < text.n; k++) {
        const uint8_t *end = memchr(text.p + at, '\n', text.n - at);
        at = end ? (size_t)(end - text.p) + 1 : text.n;
        if (k < n) ptr[k + 1] = (int64_t)at;
    }
    if (k == n) return GNNC_OK;
    return rt_fail(err, GNNC_E_FORMAT, "%s: %lld lines, there are %lld nodes", name, (long long)k,
                   (long long)n);
}

gnnc_status rt_moved_lines(const RtAlloc *from, const char *path, RtBytes text, const char *name,
                           int64_t n, const int32_t *rows, RtError *err) {
    Sink s;
    gnnc_status st = open_sink(&s, from, path, NULL, err);
    if (st != GNNC_OK) return st;
    const int64_t *ptr;
    s.st = find_lines(&s.pool, name, text, n, &ptr, err);
    for (int64_t i = 0; i < n && s.st == GNNC_OK; i++) {
        const uint8_t *line = text.p + ptr[rows[i]];
        size_t len = (size_t)(ptr[rows[i] + 1] - ptr[rows[i]]);
        put(&s, line, len);
        if (!len || line[len - 1] != '\n') put(&s, "\n", 1);
    }
    return close_sink(&s);
}
