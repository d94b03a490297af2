/* Rows of columns for a batch.
 *
 * The rows of a batch lie anywhere in a table that fits no cache, so the time is that of
 * misses; the hardware sees no pattern across rows, and asking for some rows ahead
 * hides most of it.  Nor do the copies fit: batches made ahead take turns, so what is
 * written is in no cache either, and is written past them where the machine can: to fetch
 * a line only to replace it takes as long as all the rest.  Members take pieces of
 * equal numbers of rows: who copies what changes no byte. */
#include "batch.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    FAR_AHEAD = 256,        /* rows on the disk that are asked for before they are copied .. */
    FAR_PIECE = 1 << 14,    /* .. in turns of so many, as each begins with none under way */
    AHEAD_BYTES = 12 << 10, /* asked for before they are copied */
    PIECE_BYTES = 1 << 18,  /* per turn of a member */
    ALONE_BYTES = 1 << 15,  /* less than this is not worth waking others */
    STREAM_BYTES = 1 << 21, /* more than this does not stay in a core's caches */
    WORD = 16               /* bytes of one store past the caches */
};

typedef struct {
    const char *from;
    char *to;
    size_t row_bytes;
    RtRows rows;
    int64_t piece, ahead;  /* rows */
    bool past_caches, far; /* far: rows lie in a file, and memory does not hold them all */
    uintptr_t page;        /* bytes */
    _Atomic int64_t next;
} Copy;

static inline int64_t row_of(const RtRows *r, int64_t i) {
    return r->i32 ? r->i32[i] : r->i64[i];
}

/* Into the second level: the first is too small for all that is asked for ahead. */
static inline void ask_for(const char *p, size_t n_bytes) {
    for (size_t k = 0; k < n_bytes && k < 1024; k += 64) __builtin_prefetch(p + k, 0, 2);
}

#ifdef __SSE2__
static bool can_stream(const Copy *c) {
    return c->row_bytes % WORD == 0 && (uintptr_t)c->to % WORD == 0;
}

/* Copies with stores that do not go through the caches, which so many rows would only sweep.
 * n_bytes is a multiple of WORD, and `to` aligned to it. */
static inline void copy_past_caches(char *to, const char *from, size_t n_bytes) {
    for (size_t k = 0; k < n_bytes; k += WORD)
        _mm_stream_si128((__m128i *)(void *)(to + k),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + k)));
}

/* What was written past the caches is there for other threads only after this. */
static void finish_stream(void) {
    _mm_sfence();
}
#else
static bool can_stream(const Copy *c) {
    (void)c;
    return false;
}

static inline void copy_past_caches(char *to, const char *from, size_t n_bytes) {
    memcpy(to, from, n_bytes);
}

static void finish_stream(void) {
}
#endif

/* Copies rows [lo, hi) of the list, and asks for the rows that come `ahead` of them, as the
 * processor cannot guess these. */
static void copy_rows(const Copy *c, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) {
        if (i + c->ahead < hi)
            ask_for(c->from + (size_t)row_of(&c->rows, i + c->ahead) * c->row_bytes, c->row_bytes);
        char *to = c->to + (size_t)i * c->row_bytes;
        const char *from = c->from + (size_t)row_of(&c->rows, i) * c->row_bytes;
        if (c->past_caches)
            copy_past_caches(to, from, c->row_bytes);
        else
            memcpy(to, from, c->row_bytes);
    }
}

/* Has the system begin to read the pages of row i of the list, if they are not there. */
static void ask_disk_for(const Copy *c, int64_t i) {
    uintptr_t at = (uintptr_t)c->from + (size_t)row_of(&c->rows, i) * c->row_bytes,
              first = at / c->page * c->page;
    madvise((void *)first, at + c->row_bytes - first, MADV_WILLNEED); /* only a wish */
}

/* Copies rows [lo, hi) of the list from the disk, which is asked for many of them at once: one by
 * one each would wait for its turn. */
static void copy_far_rows(const Copy *c, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi && i < lo + FAR_AHEAD; i++) ask_disk_for(c, i);
    for (int64_t i = lo; i < hi; i++) {
        if (i + FAR_AHEAD < hi) ask_disk_for(c, i + FAR_AHEAD);
        memcpy(c->to + (size_t)i * c->row_bytes,
               c->from + (size_t)row_of(&c->rows, i) * c->row_bytes, c->row_bytes);
    }
}

#define COPY_SCALARS(T)                                                                            \
    static void copy_##T(const Copy *c, int64_t lo, int64_t hi) {                                  \
        const T *from = (const T *)(const void *)c->from;                                          \
        T *to = (T *)(void *)c->to;                                                                \
        for (int64_t i = lo; i < hi; i++) to[i] = from[row_of(&c->rows, i)];                       \
    }
COPY_SCALARS(int16_t)
COPY_SCALARS(int32_t)
COPY_SCALARS(int64_t)

/* A member takes pieces of the rows until none is left. */
static void copy_share(void *arg, int member, int n_members) {
    Copy *c = arg;
    (void)member, (void)n_members;
    for (;;) {
        int64_t lo = atomic_fetch_add_explicit(&c->next, c->piece, memory_order_relaxed);
        if (lo >= c->rows.n) break;
        int64_t hi = c->rows.n - lo < c->piece ? c->rows.n : lo + c->piece;
        if (c->far)
            copy_far_rows(c, lo, hi);
        else if (c->row_bytes == 2)
            copy_int16_t(c, lo, hi);
        else if (c->row_bytes == 4)
            copy_int32_t(c, lo, hi);
        else if (c->row_bytes == 8)
            copy_int64_t(c, lo, hi);
        else
            copy_rows(c, lo, hi);
    }
    if (c->past_caches) finish_stream();
}

static void gather(RtTeam *team, const void *from, size_t row_bytes, RtRows rows, bool far,
                   void *to) {
    Copy c = {.from = from, .to = to, .row_bytes = row_bytes, .rows = rows, .far = far};
    if (row_bytes == 0 || rows.n == 0) return;
    c.piece = far ? FAR_PIECE : (int64_t)(PIECE_BYTES / row_bytes) + 1;
    c.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    c.ahead = (int64_t)(AHEAD_BYTES / row_bytes) + 1;
    size_t n_bytes = (size_t)rows.n * row_bytes;
    bool alone = n_bytes < ALONE_BYTES;
    c.past_caches = !far && n_bytes > STREAM_BYTES && can_stream(&c);
    rt_team_run(alone ? NULL : team, copy_share, &c);
}

void rt_gather_rows(RtTeam *team, const void *from, size_t row_bytes, RtRows rows, void *to) {
    gather(team, from, row_bytes, rows, false, to);
}

/* ---- columns ------------------------------------------------------------------------- */
/* Gathers plain rows into a buffer of the batch, which grows as needed. */
static gnnc_status take(RtBatch *b, RtTeam *team, const RtColumn *c, RtRows rows, RtGrow *to,
                        RtError *err) {
    size_t row_bytes = (size_t)rt_column_width(c) * rt_column_value_bytes(c);
    gnnc_status st = rt_grow(&b->growth, to, rows.n, row_bytes ? row_bytes : 1, 0, err);
    if (st != GNNC_OK) return st;
    rt_column_expect_no_order(c);
    gather(team, rt_column_values(c), row_bytes, rows, c->beyond_memory != NULL, to->p);
    return GNNC_OK;
}

typedef struct {
    const RtCsr *m;
    RtRows rows;
    const int64_t *ptr;
    int32_t *col;
    float *val;
} TakeCsr;

/* A member copies the columns and values of its share of the rows; ptr, the bounds in the result,
 * is made before. */
static void take_entries(void *arg, int member, int n_members) {
    const TakeCsr *t = arg;
    int64_t lo = t->rows.n * member / n_members, hi = t->rows.n * (member + 1) / n_members;
    for (int64_t i = lo; i < hi; i++) {
        int64_t at = t->m->ptr[row_of(&t->rows, i)];
        size_t n = (size_t)(t->ptr[i + 1] - t->ptr[i]);
        memcpy(t->col + t->ptr[i], t->m->col + at, n * sizeof *t->col);
        memcpy(t->val + t->ptr[i], t->m->val + at, n * sizeof *t->val);
    }
}

/* Takes rows out of a sparse column: bounds are counted first, then members copy the entries. */
static gnnc_status take_csr(RtBatch *b, RtTeam *team, const RtCsr *m, RtRows rows, RtColumnBuf *buf,
                            RtCsr *out, RtError *err) {
    gnnc_status st;
    TRY(st, rt_grow(&b->growth, &buf->a, rows.n + 1, sizeof(int64_t), 0, err));
    int64_t *ptr = buf->a.p;
    ptr[0] = 0;
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t row = row_of(&rows, i);
        ptr[i + 1] = ptr[i] + m->ptr[row + 1] - m->ptr[row];
    }
    TRY(st, rt_grow(&b->growth, &buf->b, ptr[rows.n], sizeof(int32_t), 0, err));
    TRY(st, rt_grow(&b->growth, &buf->c, ptr[rows.n], sizeof(float), 0, err));
    TakeCsr t = {m, rows, ptr, buf->b.p, buf->c.p};
    rt_team_run(ptr[rows.n] < 4096 ? NULL : team, take_entries, &t);
    *out = (RtCsr){rows.n, m->n_cols, ptr[rows.n], ptr, t.col, t.val};
out:
    return st;
}

/* Takes rows of split number `split` out of a split column. */
static gnnc_status take_split(RtBatch *b, const RtColumn *c, RtRows rows, int split,
                              RtColumnBuf *buf, RtColumn *out, RtError *err) {
    if (split < 0 || split >= c->n_splits)
        return rt_fail(err, GNNC_E_RANGE, "split %d: column '%s' has splits 0 to %d", split,
                       c->name, c->n_splits - 1);
    gnnc_status st = rt_grow(&b->growth, &buf->a, rows.n, 1, 0, err);
    if (st != GNNC_OK) return st;
    int8_t *to = buf->a.p;
    const int8_t *from = c->splits + split * c->n_rows;
    for (int64_t i = 0; i < rows.n; i++) to[i] = from[row_of(&rows, i)];
    out->splits = to;
    out->n_splits = 1;
    return GNNC_OK;
}

gnnc_status rt_batch_column(RtBatch *b, RtTeam *team, const RtColumn *c, RtRows rows, int split,
                            RtColumnBuf *buf, RtColumn *out, RtError *err) {
    gnnc_status st = GNNC_OK;
    *out = *c;
    out->n_rows = out->shape[0] = rows.n;
    out->beyond_memory = NULL;
    switch (rt_column_kind(c->kind)->layout) {
    case RT_LAYOUT_ROWS:
        st = take(b, team, c, rows, &buf->a, err);
        rt_column_set(out, buf->a.p);
        break;
    case RT_LAYOUT_CSR:
        st = take_csr(b, team, &c->csr, rows, buf, &out->csr, err);
        break;
    case RT_LAYOUT_SPLITS:
        st = take_split(b, c, rows, split, buf, out, err);
        break;
    }
    return st;
}

/* Releases the memory of one column of a batch. */
void rt_batch_column_free(RtBatch *b, RtColumnBuf *buf) {
    rt_grow_free(&b->growth, &buf->a);
    rt_grow_free(&b->growth, &buf->b);
    rt_grow_free(&b->growth, &buf->c);
}
