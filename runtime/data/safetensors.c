/* Reading and writing safetensors. The header is bounded (100 MB, as in the
 * reference implementation), so a hostile length costs nothing. */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { MAX_HEADER = 100000000, PLACE = 64 };

typedef struct {
    RtTensor t;
    uint64_t start, end;
} Entry;

typedef struct {
    RtPool *pool;
    const char *file;
    RtBytes data; /* after the header */
    RtError *err;
} Reader;

static gnnc_status bad(Reader *r, const char *tensor, const char *what) {
    return rt_fail(r->err, GNNC_E_FORMAT, "%s: tensor '%s': %s", r->file, tensor, what);
}

/* The element type of that name; false: there is none. */
static bool find_dtype(const char *name, RtDtype *dt) {
    for (int i = 0; i < RT_N_DT; i++) {
        *dt = (RtDtype)i;
        if (strcmp(rt_dtype_name(*dt), name) == 0) return true;
    }
    return false;
}

/* Reads a tensor's shape. */
static bool read_shape(const RtJson *shape, RtArray *a) {
    if (!shape || shape->kind != RT_JSON_ARRAY || shape->n > RT_ARRAY_RANK) return false;
    for (const RtJson *v = shape->first; v; v = v->next) {
        if (v->kind != RT_JSON_NUMBER || !v->is_int || v->i < 0) return false;
        a->shape[a->rank++] = v->i;
    }
    return true;
}

/* Reads where a tensor's bytes begin and end. */
static bool read_offsets(const RtJson *offsets, Entry *e) {
    if (!offsets || offsets->kind != RT_JSON_ARRAY || offsets->n != 2) return false;
    const RtJson *a = offsets->first, *b = a->next;
    if (a->kind != RT_JSON_NUMBER || b->kind != RT_JSON_NUMBER || !a->is_int || !b->is_int)
        return false;
    if (a->i < 0 || b->i < a->i) return false;
    e->start = (uint64_t)a->i;
    e->end = (uint64_t)b->i;
    return true;
}

/* Reads a tensor's entry and finds its elements, copied if they are not aligned in the file. */
static gnnc_status read_entry(Reader *r, const RtJson *v, Entry *e) {
    e->t.name = v->key;
    const RtJson *dtype = rt_json_get(v, "dtype");
    if (!dtype || dtype->kind != RT_JSON_STRING || v->n != 3)
        return bad(r, v->key, "needs dtype, shape and data_offsets, nothing else");
    if (!find_dtype(dtype->text, &e->t.a.dt))
        return rt_fail(r->err, GNNC_E_DTYPE, "%s: tensor '%s': element type '%s' is not supported",
                       r->file, v->key, dtype->text);
    if (!read_shape(rt_json_get(v, "shape"), &e->t.a)) return bad(r, v->key, "malformed shape");
    if (!read_offsets(rt_json_get(v, "data_offsets"), e))
        return bad(r, v->key, "malformed data_offsets");
    size_t n_bytes;
    if (!rt_array_bytes(&e->t.a, &n_bytes) || e->end - e->start != n_bytes)
        return bad(r, v->key, "its shape and its data_offsets disagree");
    if (e->end > r->data.n) return bad(r, v->key, "its data_offsets lie outside the file");
    const uint8_t *p = r->data.p + e->start;
    size_t size = rt_dtype_bytes(e->t.a.dt);
    if ((uintptr_t)p % size != 0) {
        void *copy = rt_pool_alloc(r->pool, n_bytes, 1);
        if (!copy) return rt_fail_nomem(r->err, r->file);
        p = memcpy(copy, p, n_bytes);
    }
    e->t.a.data = p;
    return GNNC_OK;
}

/* Reads the file's metadata, texts by key. */
static gnnc_status read_meta(Reader *r, const RtJson *v, RtTensors *out) {
    if (v->kind != RT_JSON_OBJECT)
        return rt_fail(r->err, GNNC_E_FORMAT, "%s: __metadata__ is not an object", r->file);
    out->meta = RT_NEWN(r->pool, RtMeta, v->n);
    if (!out->meta) return rt_fail_nomem(r->err, r->file);
    for (const RtJson *m = v->first; m; m = m->next) {
        if (m->kind != RT_JSON_STRING)
            return rt_fail(r->err, GNNC_E_FORMAT, "%s: metadata '%s' is not a string", r->file,
                           m->key);
        out->meta[out->n_meta++] = (RtMeta){m->key, m->text};
    }
    return GNNC_OK;
}

/* Sorts entries by their place in the file. */
static int by_offset(const void *x, const void *y) {
    const Entry *a = x, *b = y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int by_name(const void *x, const void *y) {
    return strcmp(((const RtTensor *)x)->name, ((const RtTensor *)y)->name);
}

/* Do the tensors fill the file, without a hole or overlap? */
static gnnc_status check_cover(Reader *r, Entry *e, int n) {
    uint64_t at = 0;
    qsort(e, (size_t)n, sizeof *e, by_offset);
    for (int i = 0; i < n; i++) {
        if (e[i].start != at)
            return bad(r, e[i].t.name,
                       e[i].start < at ? "overlaps another tensor" : "leaves a hole before it");
        at = e[i].end;
    }
    if (at == r->data.n) return GNNC_OK;
    return rt_fail(r->err, GNNC_E_FORMAT, "%s: %zu bytes of tensors, the header describes %llu",
                   r->file, r->data.n, (unsigned long long)at);
}

/* Reads all entries and sorts tensors by name. */
static gnnc_status read_header(Reader *r, const RtJson *root, RtTensors *out) {
    gnnc_status st = GNNC_OK;
    if (root->kind != RT_JSON_OBJECT)
        return rt_fail(r->err, GNNC_E_FORMAT, "%s: the header is not a JSON object", r->file);
    Entry *e = RT_NEWN(r->pool, Entry, root->n);
    out->v = RT_NEWN(r->pool, RtTensor, root->n);
    if (!e || !out->v) return rt_fail_nomem(r->err, r->file);
    for (const RtJson *v = root->first; v; v = v->next) {
        if (strcmp(v->key, "__metadata__") == 0)
            TRY(st, read_meta(r, v, out));
        else
            TRY(st, read_entry(r, v, &e[out->n++]));
    }
    TRY(st, check_cover(r, e, out->n));
    for (int i = 0; i < out->n; i++) out->v[i] = e[i].t;
    qsort(out->v, (size_t)out->n, sizeof *out->v, by_name);
out:
    return st;
}

gnnc_status rt_safetensors_parse(RtPool *pool, RtBytes file, const char *name, RtTensors *out,
                                 RtError *err) {
    RtJson *root;
    uint64_t len = 0;
    *out = (RtTensors){0};
    for (size_t i = 0; i < 8 && i < file.n; i++) len |= (uint64_t)file.p[i] << 8 * i;
    if (file.n < 8 || len > MAX_HEADER || len > file.n - 8)
        return rt_fail(err, GNNC_E_FORMAT, "%s: not a safetensors file, or a truncated one", name);
    gnnc_status st = rt_json_parse(pool, (RtBytes){file.p + 8, (size_t)len}, name, &root, err);
    if (st != GNNC_OK) return st;
    Reader r = {pool, name, {file.p + 8 + len, file.n - 8 - (size_t)len}, err};
    return read_header(&r, root, out);
}

/* Reads a file of tensors into the pool. */
gnnc_status rt_safetensors_open(RtPool *pool, const char *path, RtTensors *out, RtError *err) {
    RtBytes file;
    gnnc_status st = rt_file_read(pool, path, &file, err);
    return st == GNNC_OK ? rt_safetensors_parse(pool, file, path, out, err) : st;
}

RtTensor *rt_tensors_find(const RtTensors *t, const char *name) {
    if (t->n == 0) return NULL;
    RtTensor key = {.name = name};
    return bsearch(&key, t->v, (size_t)t->n, sizeof *t->v, by_name);
}

const char *rt_tensors_meta(const RtTensors *t, const char *key) {
    for (int i = 0; i < t->n_meta; i++)
        if (strcmp(t->meta[i].key, key) == 0) return t->meta[i].value;
    return NULL;
}

/* ---- writing ------------------------------------------------------------ */
/* Bytes of a tensor's elements. */
static size_t bytes_of(const RtTensor *t) {
    RtArray a = t->a;
    size_t n_bytes = 0;
    rt_array_bytes(&a, &n_bytes);
    return n_bytes;
}

/* There are no holes between tensors: those of whole places come first, so that all of them and the
 * largest of the others begin at one. */
static int by_place(const void *x, const void *y) {
    const RtTensor *a = *(const RtTensor *const *)x, *b = *(const RtTensor *const *)y;
    size_t na = bytes_of(a), nb = bytes_of(b), ea = rt_dtype_bytes(a->a.dt),
           eb = rt_dtype_bytes(b->a.dt);
    bool whole_a = na % PLACE == 0, whole_b = nb % PLACE == 0;
    if (whole_a != whole_b) return whole_a ? -1 : 1;
    if (ea != eb) return ea > eb ? -1 : 1;
    if (!whole_a && na != nb) return na > nb ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Writes the metadata; false: no memory. */
static bool put_meta(RtText *h, const RtTensors *t) {
    bool ok = rt_text_put(h, "\"__metadata__\":{", 16);
    for (int i = 0; i < t->n_meta && ok; i++) {
        ok = i == 0 || rt_text_put(h, ",", 1);
        ok = ok && rt_text_json_string(h, t->meta[i].key) && rt_text_put(h, ":", 1) &&
             rt_text_json_string(h, t->meta[i].value);
    }
    return ok && rt_text_put(h, "}", 1);
}

/* Writes a tensor's entry; false: no memory. */
static bool put_tensor(RtText *h, const RtTensor *t, size_t start, size_t n_bytes) {
    bool ok = rt_text_json_string(h, t->name) &&
              rt_text_printf(h, ":{\"dtype\":\"%s\",\"shape\":[", rt_dtype_name(t->a.dt));
    for (int i = 0; i < t->a.rank && ok; i++)
        ok = rt_text_printf(h, "%s%lld", i ? "," : "", (long long)t->a.shape[i]);
    return ok && rt_text_printf(h, "],\"data_offsets\":[%zu,%zu]}", start, start + n_bytes);
}

/* The header with its length in front; padded so that the first tensor begins at a place. */
static gnnc_status make_header(RtText *h, const RtTensors *t, const RtTensor **order,
                               const char *path, size_t *n_data, RtError *err) {
    uint8_t zero[8] = {0};
    size_t at = 0;
    bool ok = rt_text_put(h, (const char *)zero, 8) && rt_text_put(h, "{", 1);
    if (t->n_meta) ok = ok && put_meta(h, t);
    for (int i = 0; i < t->n && ok; i++) {
        RtArray a = order[i]->a;
        size_t n_bytes;
        if (!rt_array_bytes(&a, &n_bytes) || a.fortran)
            return rt_fail(err, GNNC_E_ARG, "%s: tensor '%s' cannot be written", path,
                           order[i]->name);
        if (i || t->n_meta) ok = rt_text_put(h, ",", 1);
        ok = ok && put_tensor(h, order[i], at, n_bytes);
        at += n_bytes;
    }
    ok = ok && rt_text_put(h, "}", 1);
    while (ok && h->n % PLACE) ok = rt_text_put(h, " ", 1);
    if (!ok) return rt_fail_nomem(err, path);
    uint64_t len = h->n - 8;
    for (int i = 0; i < 8; i++) h->s[i] = (char)(len >> 8 * i & 255);
    *n_data = at;
    return GNNC_OK;
}

/* Writes the header, then the elements of all tensors; `to` is told how many bytes are still to
 * come. */
static gnnc_status write_all(RtPool *pool, const char *name, const RtTensors *t, const RtSink *to,
                             RtError *err) {
    gnnc_status st;
    size_t n_left = 0;
    RtText h = {.pool = pool};
    const RtTensor **order = RT_NEWN(pool, const RtTensor *, t->n);
    if (!order) return rt_fail_nomem(err, name);
    for (int i = 0; i < t->n; i++) order[i] = &t->v[i];
    qsort(order, (size_t)t->n, sizeof *order, by_place);
    TRY(st, make_header(&h, t, order, name, &n_left, err));
    st = to->write(to->user, h.s, h.n, n_left, err);
    for (int i = 0; i < t->n && st == GNNC_OK; i++) {
        RtArray a = order[i]->a;
        size_t n_bytes = 0;
        rt_array_bytes(&a, &n_bytes);
        n_left -= n_bytes;
        if (n_bytes) st = to->write(to->user, a.data, n_bytes, n_left, err);
    }
out:
    return st;
}

gnnc_status rt_safetensors_write(const RtAlloc *from, const char *name, const RtTensors *t,
                                 const RtSink *to, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, from);
    gnnc_status st = write_all(&pool, name, t, to, err);
    rt_pool_free(&pool);
    return st;
}

static gnnc_status write_file(void *out, const void *p, size_t n, size_t n_left, RtError *err) {
    (void)n_left;
    return rt_out_write(out, p, n, err);
}

gnnc_status rt_safetensors_save(const RtAlloc *from, const char *path, const RtTensors *t,
                                RtError *err) {
    RtOut o;
    gnnc_status st = rt_out_open(&o, from, path, err);
    if (st != GNNC_OK) return st;
    st = rt_safetensors_write(from, path, t, &(RtSink){write_file, &o}, err);
    if (st == GNNC_OK) return rt_out_commit(&o, err);
    rt_out_abort(&o);
    return st;
}
