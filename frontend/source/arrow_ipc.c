#include "arrow_ipc.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_METADATA = 16 << 20, TOLD = 400 };
static const uint64_t MOST_BODY = (uint64_t)1 << 31;

static gnnc_status bad(RtError *err, const char *what) {
    return rt_fail(err, GNNC_E_FORMAT, "no Arrow stream of the helper's: %s", what);
}

/* ---- FlatBuffers ---------------------------------------------------------------------------- */
typedef struct {
    const uint8_t *p;
    size_t n;
    bool bad; /* something lies outside: all else is 0 */
} Flat;

/* The number of `bytes` bytes at `at` in a message, little-endian. Outside of the message: 0,
 * and f->bad is set. */
static uint64_t number(Flat *f, size_t at, size_t bytes) {
    uint64_t v = 0;
    if (at > f->n || f->n - at < bytes) {
        f->bad = true;
        return 0;
    }
    memcpy(&v, f->p + at, bytes);
    return le64toh(v);
}

/* The place of the i-th field of a FlatBuffers table; 0: it has its default. */
static size_t field(Flat *f, size_t table, size_t i) {
    int64_t back = (int32_t)(uint32_t)number(f, table, 4), at = (int64_t)table - back;
    if (at < 0 || (size_t)at > f->n) {
        f->bad = true;
        return 0;
    }
    size_t size = number(f, (size_t)at, 2), slot = 4 + 2 * i;
    size_t off = slot + 2 <= size ? number(f, (size_t)at + slot, 2) : 0;
    return off ? table + off : 0;
}

/* What an offset at that place leads to; 0: none. */
static size_t follow(Flat *f, size_t at) {
    return at ? at + number(f, at, 4) : 0;
}

/* The place of the first element of the vector that `at` leads to, *n: how many of so many bytes
 * it has. 0: there are none. */
static size_t vector(Flat *f, size_t at, size_t bytes, size_t *n) {
    size_t to = follow(f, at);
    *n = to ? number(f, to, 4) : 0;
    if (f->bad || !*n) return *n = 0, 0;
    if (f->n - to < 4 || *n > (f->n - to - 4) / bytes) return f->bad = true, *n = 0, 0;
    return to + 4;
}

/* ---- messages ------------------------------------------------------------------------------- */
enum { SCHEMA = 1, RECORD_BATCH = 3 };

typedef struct {
    Flat f;
    int type;
    size_t header;
    uint64_t n_body;
} Message;

/* The helper, instead of a message, says what went wrong: 1, the length, the text. */
static gnnc_status helper_failed(ArrowStream *s, RtError *err) {
    uint32_t n;
    char text[TOLD + 1];
    if (!s->read(s->user, &n, sizeof n)) return bad(err, "it ends in a message");
    n = le32toh(n);
    if (n > TOLD) n = TOLD;
    if (!s->read(s->user, text, n)) return bad(err, "it ends in a message");
    text[n] = '\0';
    return rt_fail(err, GNNC_E_IO, "%s", text);
}

/* Reads the head of a message: *n is the length of its metadata, 0 at the end of the stream. */
static gnnc_status read_head(ArrowStream *s, uint32_t *n, RtError *err) {
    uint32_t head[2];
    if (!s->read(s->user, head, sizeof *head)) return bad(err, "it ends before its end");
    if (le32toh(head[0]) == 1) return helper_failed(s, err);
    if (head[0] != UINT32_MAX) return bad(err, "a message does not begin as one");
    if (!s->read(s->user, &head[1], sizeof *head)) return bad(err, "it ends in a message");
    *n = le32toh(head[1]);
    return *n > MOST_METADATA ? bad(err, "a message is too long") : GNNC_OK;
}

/* Reads the metadata of the next message into memory of `pool`. *more is false at the end of the
 * stream. */
static gnnc_status read_message(ArrowStream *s, RtPool *pool, Message *m, bool *more,
                                RtError *err) {
    uint32_t n = 0;
    gnnc_status st = read_head(s, &n, err);
    *more = n > 0;
    if (st != GNNC_OK || !n) return st;
    uint8_t *p = rt_pool_alloc(pool, n, 1);
    if (!p) return rt_fail_nomem(err, "a message");
    if (!s->read(s->user, p, n)) return bad(err, "it ends in a message");
    *m = (Message){.f = {p, n, false}};
    size_t root = number(&m->f, 0, 4), type = field(&m->f, root, 1), body = field(&m->f, root, 3);
    m->type = type ? (int)number(&m->f, type, 1) : 0;
    m->header = follow(&m->f, field(&m->f, root, 2));
    m->n_body = body ? number(&m->f, body, 8) : 0;
    if (m->f.bad || !m->header) return bad(err, "a message leads out of itself");
    if (m->n_body > MOST_BODY) return bad(err, "a batch of more than 2 GiB");
    return GNNC_OK;
}

/* ---- the schema -------- */
/* Whether the field that the schema describes at `column` is of plain 64-bit whole numbers. */
static bool is_int64(Flat *f, size_t column) {
    size_t at = field(f, column, 2), n_children;
    size_t is = follow(f, field(f, column, 3)), of = is ? field(f, is, 0) : 0;
    vector(f, field(f, column, 5), 4, &n_children);
    return at && number(f, at, 1) == 2 && of && number(f, of, 4) == 64 && !n_children &&
           !field(f, column, 4);
}

/* Sets *to to the type of a column, which the schema describes at `column`. False: it is none
 * that is read here. */
static bool type_of(Flat *f, size_t column, ArrowType *to) {
    static const struct {
        int type;
        ArrowType to;
    } known[] = {
        {2, ARROW_INT64}, {3, ARROW_FLOAT64}, {5, ARROW_UTF8}, {10, ARROW_TIME}, {12, ARROW_LIST}};
    size_t at = field(f, column, 2), n_children;
    int type = at ? (int)number(f, at, 1) : 0;
    size_t is = follow(f, field(f, column, 3));
    size_t children = vector(f, field(f, column, 5), 4, &n_children);
    if (!is || n_children != (type == 12) || field(f, column, 4))
        return false; /* 4: a dictionary */
    size_t of = type == 12 ? 0 : field(f, is, 0);
    uint64_t first = of ? number(f, of, type == 2 ? 4 : 2) : 0;
    /* 64 bits; double precision; microseconds */
    if ((type == 2 && first != 64) || ((type == 3 || type == 10) && first != 2)) return false;
    if (type == 12 && !is_int64(f, follow(f, children))) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].type != type) continue;
        *to = known[i].to;
        return true;
    }
    return false;
}

/* Reads the schema, whose n_columns must have types that are read here. */
static gnnc_status read_schema(ArrowStream *s, Message *m, int n_columns, RtError *err) {
    size_t n, at = vector(&m->f, field(&m->f, m->header, 1), 4, &n);
    if (m->type != SCHEMA || m->n_body || m->f.bad) return bad(err, "its schema is none");
    if (n != (size_t)n_columns) return bad(err, "columns that were not asked for");
    s->type = RT_NEWN(&s->pool, ArrowType, n + 1);
    s->part = rt_pool_alloc(&s->pool, n + 1, sizeof *s->part);
    s->text = RT_NEWN(&s->pool, RtText, n + 1);
    s->items = rt_pool_alloc(&s->pool, n + 1, sizeof *s->items);
    if (!s->type || !s->part || !s->text || !s->items) return rt_fail_nomem(err, "columns");
    for (size_t i = 0; i < n; i++) {
        s->text[i].pool = &s->pool;
        if (!type_of(&m->f, follow(&m->f, at + 4 * i), &s->type[i]) || m->f.bad)
            return bad(err, "a column of another type");
    }
    s->n_columns = n_columns;
    return GNNC_OK;
}

/* Begins to read a stream of Arrow's IPC format, up to its schema. read: gives the next bytes. */
gnnc_status arrow_begin(ArrowStream *s, const RtAlloc *from, ArrowRead *read, void *user,
                        int n_columns, RtError *err) {
    Message m;
    RtPool pool;
    bool more;
    *s = (ArrowStream){.read = read, .user = user};
    rt_pool_init(&s->pool, from);
    rt_pool_init(&pool, from);
    gnnc_status st = read_message(s, &pool, &m, &more, err);
    if (st == GNNC_OK && !more) st = bad(err, "it has no schema");
    if (st == GNNC_OK) st = read_schema(s, &m, n_columns, err);
    rt_pool_free(&pool);
    return st;
}

/* ---- batches -------- */
/* Reads the n bytes of a batch. Memory is taken for what has come, and as much again: a length
 * alone takes none. */
static gnnc_status read_body(ArrowStream *s, size_t n, RtError *err) {
    enum { LEAST = 1 << 16 };
    s->n_body = 0;
    while (s->n_body < n) {
        size_t want = s->n_body ? 2 * s->n_body : LEAST;
        if (want > n) want = n;
        uint8_t *more = want > s->room ? realloc(s->body, want) : s->body;
        if (!more) return rt_fail_nomem(err, "a batch");
        s->body = more;
        if (want > s->room) s->room = want;
        if (!s->read(s->user, s->body + s->n_body, want - s->n_body))
            return bad(err, "it ends in a batch");
        s->n_body = want;
    }
    return GNNC_OK;
}

/* How many parts of the body a column of such a type has. */
static int count_parts(ArrowType type) {
    return type == ARROW_LIST ? 4 : type == ARROW_UTF8 ? 3 : 2;
}

/* Whether all parts of column i lie within the batch and are large enough for its rows, of which
 * `n_null` are not there, and of its elements n_null_items. */
static bool fits(const ArrowStream *s, int i, uint64_t n_null, uint64_t n_null_items) {
    const struct ArrowPart *p = s->part[i];
    bool list = s->type[i] == ARROW_LIST, offsets = list || s->type[i] == ARROW_UTF8;
    uint64_t n = (uint64_t)s->n_rows, n_items = s->items[i].n;
    for (int k = 0; k < count_parts(s->type[i]); k++)
        if (p[k].at > s->n_body || p[k].n > s->n_body - p[k].at) return false;
    if (n_null && p[0].n < (n + 7) / 8) return false;
    if (list && (n_items > p[3].n / 8 || (n_null_items && p[2].n < (n_items + 7) / 8)))
        return false;
    if (!n) return true;
    return offsets ? p[1].n / 4 > n : p[1].n / 8 >= n;
}

/* The places of a batch's message that its columns are read from, one after the other. */
typedef struct {
    Flat *f;
    size_t nodes, n_nodes, parts, n_parts; /* those left */
} Batch;

/* Takes the next node of the batch: *n of its rows or elements, of which *n_null are not there.
 * False: there is none. */
static bool take_node(Batch *b, uint64_t *n, uint64_t *n_null) {
    if (!b->n_nodes) return false;
    *n = number(b->f, b->nodes, 8);
    *n_null = number(b->f, b->nodes + 8, 8);
    b->nodes += 16;
    b->n_nodes--;
    return true;
}

/* Takes what the batch says of column i, and checks it. */
static gnnc_status take_column(ArrowStream *s, Batch *b, int i, RtError *err) {
    bool list = s->type[i] == ARROW_LIST;
    uint64_t n, n_null, n_null_items = 0;
    size_t n_parts = (size_t)count_parts(s->type[i]);
    s->items[i].n = 0;
    if (!take_node(b, &n, &n_null) || n != (uint64_t)s->n_rows || b->n_parts < n_parts ||
        (list && !take_node(b, &s->items[i].n, &n_null_items)))
        return bad(err, "a batch of another size");
    for (size_t k = 0; k < n_parts; k++, b->parts += 16) {
        s->part[i][k].at = number(b->f, b->parts, 8);
        s->part[i][k].n = number(b->f, b->parts + 8, 8);
    }
    b->n_parts -= n_parts;
    if (!n_null) s->part[i][0].n = 0;
    if (list && !n_null_items) s->part[i][2].n = 0;
    if (!fits(s, i, n_null, n_null_items)) return bad(err, "a column leads out of its batch");
    return GNNC_OK;
}

/* Reads a batch of rows and checks that the parts of each column lie within it. */
static gnnc_status read_batch(ArrowStream *s, Message *m, RtError *err) {
    Flat *f = &m->f;
    Batch b = {.f = f};
    size_t at = field(f, m->header, 0);
    b.nodes = vector(f, field(f, m->header, 1), 16, &b.n_nodes);
    b.parts = vector(f, field(f, m->header, 2), 16, &b.n_parts);
    uint64_t n = at ? number(f, at, 8) : 0;
    if (m->type != RECORD_BATCH || f->bad || field(f, m->header, 3)) /* compressed */
        return bad(err, "a message that is no plain batch");
    if (n > INT32_MAX) return bad(err, "a batch of another size");
    gnnc_status st = read_body(s, m->n_body, err);
    s->n_rows = (int64_t)n;
    s->row = 0;
    for (int i = 0; i < s->n_columns && st == GNNC_OK; i++) st = take_column(s, &b, i, err);
    if (st == GNNC_OK && b.n_nodes) st = bad(err, "a batch of another size");
    return st;
}

/* Reads the next batch, if the stream has one (*more). */
static gnnc_status next_batch(ArrowStream *s, bool *more, RtError *err) {
    Message m;
    RtPool pool;
    rt_pool_init(&pool, &s->pool.from);
    gnnc_status st = read_message(s, &pool, &m, more, err);
    if (st == GNNC_OK && *more) st = read_batch(s, &m, err);
    rt_pool_free(&pool);
    return st;
}

/* ---- cells -------- */
/* The two offsets of the present row in column i, of texts or lists: *from of the first, *to behind
 * the last. */
static void offsets_of(const ArrowStream *s, int i, size_t *from, size_t *to) {
    uint32_t end[2];
    memcpy(end, s->body + s->part[i][1].at + 4 * (size_t)s->row, sizeof end);
    *from = le32toh(end[0]);
    *to = le32toh(end[1]);
}

/* Sets *c to the text in column i of the present row. It stays until the next row of the column
 * is read. */
static gnnc_status text_cell(ArrowStream *s, int i, RtDatum *c, RtError *err) {
    const struct ArrowPart *p = s->part[i];
    size_t from, to;
    offsets_of(s, i, &from, &to);
    if (from > to || to > p[2].n) return bad(err, "a text leads out of its batch");
    s->text[i].n = 0;
    if (!rt_text_put(&s->text[i], (const char *)s->body + p[2].at + from, to - from))
        return rt_fail_nomem(err, "a text");
    *c = (RtDatum){.type = RT_DATUM_TEXT, .s = s->text[i].s, .n = to - from};
    return GNNC_OK;
}

/* Sets *c to the number of elements of the list in column i of the present row, which arrow_item
 * reads. */
static gnnc_status list_cell(ArrowStream *s, int i, RtDatum *c, RtError *err) {
    size_t from, to;
    offsets_of(s, i, &from, &to);
    if (from > to || to > s->items[i].n)
        return rt_fail(err, GNNC_E_FORMAT,
                       "no Arrow stream of the helper's: column %d, row %lld of a batch: a list "
                       "from element %zu to %zu, of %llu elements",
                       i + 1, (long long)s->row + 1, from, to, (unsigned long long)s->items[i].n);
    s->items[i].at = from;
    *c = (RtDatum){.type = RT_DATUM_INTEGER, .i = (int64_t)(to - from)};
    return GNNC_OK;
}

RtDatum arrow_item(const ArrowStream *s, int column, int64_t k) {
    const struct ArrowPart *p = s->part[column];
    size_t at = s->items[column].at + (size_t)k;
    uint64_t bits;
    if (p[2].n && !(s->body[p[2].at + at / 8] >> at % 8 & 1))
        return (RtDatum){.type = RT_DATUM_NULL};
    memcpy(&bits, s->body + p[3].at + 8 * at, sizeof bits);
    return (RtDatum){.type = RT_DATUM_INTEGER, .i = (int64_t)le64toh(bits)};
}

/* Sets *c to the value in column i of the present row; times become seconds. */
static gnnc_status take_cell(ArrowStream *s, int i, RtDatum *c, RtError *err) {
    const struct ArrowPart *p = s->part[i];
    uint64_t bits;
    size_t row = (size_t)s->row;
    *c = (RtDatum){.type = RT_DATUM_NULL};
    if (p[0].n && !(s->body[p[0].at + row / 8] >> row % 8 & 1)) return GNNC_OK;
    if (s->type[i] == ARROW_UTF8) return text_cell(s, i, c, err);
    if (s->type[i] == ARROW_LIST) return list_cell(s, i, c, err);
    memcpy(&bits, s->body + p[1].at + 8 * row, sizeof bits);
    bits = le64toh(bits);
    c->type = s->type[i] == ARROW_INT64 ? RT_DATUM_INTEGER : RT_DATUM_REAL;
    if (s->type[i] == ARROW_FLOAT64)
        memcpy(&c->d, &bits, sizeof bits);
    else if (s->type[i] == ARROW_INT64)
        c->i = (int64_t)bits;
    else
        c->d = (double)(int64_t)bits / 1e6;
    return GNNC_OK;
}

/* Sets the cells of the next row; *more is false when there is none. Texts stay until the next
 * call. */
gnnc_status arrow_next(ArrowStream *s, RtDatum *cell, bool *more, RtError *err) {
    gnnc_status st = GNNC_OK;
    *more = true;
    while (st == GNNC_OK && *more && s->row == s->n_rows) st = next_batch(s, more, err);
    if (st != GNNC_OK || !*more) return st;
    for (int i = 0; i < s->n_columns && st == GNNC_OK; i++) st = take_cell(s, i, &cell[i], err);
    s->row++;
    return st;
}

/* Frees what reading a stream has taken; one that was never begun, too. */
void arrow_end(ArrowStream *s) {
    free(s->body);
    s->body = NULL;
    if (s->pool.from.alloc) rt_pool_free(&s->pool);
}
