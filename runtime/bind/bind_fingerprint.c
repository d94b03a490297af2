/* Whether two data sets are the same to a program, told by a number: a hash (of the
 * FNV family, eight bytes at a time) of what the program reads of them.  It is no proof: of a
 * large array it sees samples. */
#include <string.h>

#include "bind.h"
#include "runtime/trainer/init.h"

enum { WHOLE_BYTES = 1 << 18, SAMPLES = 1024, SAMPLE_BYTES = 16 };

static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* Mixes bytes into the hash, eight at a time. */
static uint64_t mix_bytes(uint64_t h, const char *p, size_t n) {
    for (; n >= sizeof(uint64_t); p += sizeof(uint64_t), n -= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        h = mix(h, word);
    }
    for (; n > 0; p++, n--) h = mix(h, (unsigned char)*p);
    return h;
}

/* Where the i-th sample of a large array begins. */
static size_t sample_at(size_t n_bytes, size_t i) {
    size_t last = n_bytes - SAMPLE_BYTES;
    return i == SAMPLES - 1 ? last : last / (SAMPLES - 1) * i;
}

/* Mixes an array into the hash: its length, and all bytes or the samples of a long one. */
static uint64_t mix_array(uint64_t h, const void *data, int64_t n, size_t element) {
    const char *p = data;
    size_t n_bytes = (size_t)n * element;
    h = mix(h, n_bytes);
    if (!p) return h;
    if (n_bytes <= WHOLE_BYTES) return mix_bytes(h, p, n_bytes);
    for (size_t i = 0; i < SAMPLES; i++) h = mix_bytes(h, p + sample_at(n_bytes, i), SAMPLE_BYTES);
    return h;
}

size_t rt_bind_seen_bytes(size_t n_bytes) {
    return n_bytes <= WHOLE_BYTES ? n_bytes : SAMPLES * SAMPLE_BYTES;
}

size_t rt_bind_seen_at(size_t n_bytes, size_t k) {
    return n_bytes <= WHOLE_BYTES ? k : sample_at(n_bytes, k / SAMPLE_BYTES) + k % SAMPLE_BYTES;
}

/* Copies the bytes of an array that the fingerprint is taken of: all of a small one, else SAMPLES
 * pieces. */
void rt_bind_copy_samples(const void *data, size_t n_bytes, uint8_t *to) {
    const uint8_t *p = data;
    bool whole = n_bytes <= WHOLE_BYTES;
    if (whole && n_bytes) memcpy(to, p, n_bytes);
    for (size_t i = 0; i < SAMPLES && !whole; i++)
        memcpy(to + i * SAMPLE_BYTES, p + sample_at(n_bytes, i), SAMPLE_BYTES);
}

/* Mixes the ends of edges into the fingerprint. Edges that still lie in their file are hashed from
 * their stored sample, with the same result. */
static uint64_t mix_ends(uint64_t h, const RtTable *t, int end) {
    const int32_t *p = end ? t->dst : t->src;
    const RtBytes *seen = t->facts ? &t->facts[end] : NULL;
    if (p) return mix_array(h, p, t->count, sizeof *p);
    return seen ? mix_bytes(mix(h, (uint64_t)t->count * sizeof *p), (const char *)seen->p, seen->n)
                : h;
}

int rt_bind_arrays_of(const RtColumn *c, RtSeenArray out[RT_SEEN_ARRAYS]) {
    int64_t n = c->n_rows * rt_column_width(c);
    switch (rt_column_kind(c->kind)->layout) {
    case RT_LAYOUT_CSR:
        out[0] = (RtSeenArray){c->csr.ptr, c->csr.n_rows + 1, sizeof *c->csr.ptr};
        out[1] = (RtSeenArray){c->csr.col, c->csr.nnz, sizeof *c->csr.col};
        out[2] = (RtSeenArray){c->csr.val, c->csr.nnz, sizeof *c->csr.val};
        return 3;
    case RT_LAYOUT_SPLITS:
        out[0] = (RtSeenArray){c->splits, c->n_splits * c->n_rows, sizeof *c->splits};
        return 1;
    case RT_LAYOUT_ROWS:
        out[0] = (RtSeenArray){rt_column_values(c), n, rt_column_value_bytes(c)};
    }
    return 1;
}

/* Mixes a column into the hash: name, kind, shape and values, or what processes have together seen
 * of them. */
static uint64_t mix_column(uint64_t h, const RtColumn *c, const RtPulledColumn *pulled) {
    RtSeenArray of[RT_SEEN_ARRAYS];
    int n = rt_bind_arrays_of(c, of);
    const char *seen = pulled && pulled->is ? (const char *)pulled->seen.p : NULL;
    h = mix(mix(h, rt_hash_text(c->name)), (uint64_t)c->kind);
    for (int i = 0; i < c->rank; i++) h = mix(h, (uint64_t)c->shape[i]);
    for (int i = 0; i < n; i++) {
        size_t n_bytes = (size_t)of[i].n * of[i].element, n_seen = rt_bind_seen_bytes(n_bytes);
        if (!seen) {
            h = mix_array(h, of[i].values, of[i].n, of[i].element);
            continue;
        }
        h = mix_bytes(mix(h, n_bytes), seen, n_seen);
        seen += n_seen;
    }
    return h;
}

/* Mixes a table into the hash: name, number of rows, ends of edges, and the division into
 * graphs. */
static uint64_t mix_table(uint64_t h, const RtTable *t, int64_t n_graphs) {
    h = mix(mix(h, rt_hash_text(t->name)), (uint64_t)t->count);
    for (int end = 0; end < 2; end++) h = mix_ends(h, t, end);
    if (t->graph_ptr) h = mix_array(h, t->graph_ptr, n_graphs + 1, sizeof *t->graph_ptr);
    return h;
}

uint64_t rt_bind_fingerprint(const RtExec *x) {
    const rt_program *p = x->program;
    const RtBound *b = x->rt->bound;
    uint64_t h = 0xcbf29ce484222325u;
    for (int s = 0; s < p->n_spaces; s++) {
        const RtTable *t = b->table[s];
        if (!t) continue;
        h = mix_table(h, t, t->graph_ptr ? b->data->graphs[t->graph].count : 0);
    }
    for (int c = 0; c < p->n_columns; c++) {
        const RtTable *t = b->table[p->columns[c].space];
        const RtColumn *col = t ? rt_table_column(t, p->columns[c].name) : NULL;
        if (col && p->columns[c].buf >= 0) h = mix_column(h, col, b->pulled ? &b->pulled[c] : NULL);
    }
    return h;
}
