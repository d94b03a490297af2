/* .npy files: "\x93NUMPY", version, header length, a Python dictionary literal
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * padded with blanks to a multiple of 64, then the elements.  Only that form is
 * read: no pickled objects, no big endian, no trailing bytes.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "npy.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *at, *end;
} Cursor;

static void skip_blanks(Cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

/* Takes character `want`, behind blanks; false: another one is there. */
static bool take(Cursor *c, char want) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

/* Takes the word, behind blanks; false: something else is there. */
static bool take_word(Cursor *c, const char *word) {
    skip_blanks(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

/* Takes a quoted string without escapes, of at most cap - 1 characters. */
static bool take_string(Cursor *c, char *to, size_t cap) {
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    size_t n = 0;
    while (c->at < c->end && *c->at != quote) {
        if (*c->at == '\\' || n + 1 >= cap) return false;
        to[n++] = *c->at++;
    }
    to[n] = 0;
    return take(c, quote);
}

/* Takes a whole number, behind blanks; false: there is none, or no int64 holds it. */
static bool take_int(Cursor *c, int64_t *v) {
    skip_blanks(c);
    const char *start = c->at;
    for (*v = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, *c->at - '0', v))
            return false;
    return c->at > start;
}

/* Takes the shape: "()", "(3,)" or "(3, 4)". */
static bool take_shape(Cursor *c, RtArray *a) {
    if (!take(c, '(')) return false;
    for (a->rank = 0; !take(c, ')');) {
        if (a->rank == RT_ARRAY_RANK || !take_int(c, &a->shape[a->rank++])) return false;
        if (take(c, ',')) continue;
        return take(c, ')') && a->rank > 1;
    }
    return true;
}

static bool take_bool(Cursor *c, bool *v) {
    *v = take_word(c, "True");
    return *v || take_word(c, "False");
}

/* The element type that numpy's text names; false: none that is read here, or bytes in the other
 * order. */
static bool find_dtype(const char *descr, RtDtype *dt) {
    for (int i = 0; i < RT_N_DT; i++) {
        const char *name = rt_dtype_npy((RtDtype)i);
        if (!name || strcmp(name + 1, descr + (*descr ? 1 : 0)) != 0) continue;
        *dt = (RtDtype)i;
        return *descr == *name || (name[0] == '|' && *descr == '<');
    }
    return false;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

/* Reads one entry of the header; `seen` has a bit for each, so that none comes twice. */
static gnnc_status parse_entry(Cursor *c, const char *name, RtArray *a, int *seen, RtError *err) {
    char key[32], descr[32];
    bool ok = take_string(c, key, sizeof key) && take(c, ':');
    int bit = 0;
    if (ok && strcmp(key, "descr") == 0) {
        bit = HAS_DESCR;
        ok = take_string(c, descr, sizeof descr);
        if (ok && !find_dtype(descr, &a->dt))
            return rt_fail(err, GNNC_E_DTYPE, "%s: element type '%s' is not supported", name,
                           descr);
    } else if (ok && strcmp(key, "fortran_order") == 0) {
        bit = HAS_ORDER;
        ok = take_bool(c, &a->fortran);
    } else if (ok && strcmp(key, "shape") == 0) {
        bit = HAS_SHAPE;
        ok = take_shape(c, a);
    }
    if (!ok || !bit || (*seen & bit))
        return rt_fail(err, GNNC_E_FORMAT, "%s: malformed .npy header%s%s", name,
                       bit ? " near " : "", bit ? key : "");
    *seen |= bit;
    return GNNC_OK;
}

/* Reads the header: type, order and shape of the array. */
static gnnc_status parse_header(Cursor *c, const char *name, RtArray *a, RtError *err) {
    gnnc_status st = GNNC_OK;
    int seen = 0;
    bool closed = false;
    if (!take(c, '{')) return rt_fail(err, GNNC_E_FORMAT, "%s: malformed .npy header", name);
    while (!(closed = take(c, '}'))) {
        TRY(st, parse_entry(c, name, a, &seen, err));
        if (!take(c, ',') && !(closed = take(c, '}'))) break;
        if (closed) break;
    }
    skip_blanks(c);
    if (!closed || seen != HAS_ALL || c->at != c->end)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: malformed .npy header", name);
out:
    return st;
}

/* Finds where the header begins, and its length. */
static gnnc_status header_extent(RtBytes file, const char *name, size_t *start, size_t *len,
                                 RtError *err) {
    const uint8_t *p = file.p;
    if (file.n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return rt_fail(err, GNNC_E_FORMAT, "%s: not a .npy file", name);
    if (p[6] != 1 && p[6] != 2)
        return rt_fail(err, GNNC_E_FORMAT, "%s: .npy version %d is not supported", name, p[6]);
    *start = p[6] == 1 ? 10 : 12;
    *len = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] == 2 && file.n >= 12) *len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (file.n < *start || file.n - *start < *len)
        return rt_fail(err, GNNC_E_FORMAT, "%s: file ends inside its .npy header", name);
    return GNNC_OK;
}

/* Kernels read columns where they lie, and count on RT_ALIGN.  Writers pad the header so
 * that it holds; the format promises nothing. */
static const void *aligned(RtPool *pool, const void *p, size_t n) {
    if ((uintptr_t)p % RT_ALIGN == 0) return p;
    void *copy = rt_pool_alloc(pool, n, 1);
    return copy ? memcpy(copy, p, n) : NULL;
}

gnnc_status rt_npy_parse(RtPool *pool, RtBytes file, const char *name, RtArray *out, RtError *err) {
    gnnc_status st;
    size_t start = 0, len = 0, n_bytes;
    RtArray a = {0};
    TRY(st, header_extent(file, name, &start, &len, err));
    const char *text = (const char *)file.p + start;
    TRY(st, parse_header(&(Cursor){text, text + len}, name, &a, err));
    if (!rt_array_bytes(&a, &n_bytes))
        return rt_fail(err, GNNC_E_SHAPE, "%s: shape in the .npy header is too large", name);
    size_t have = file.n - start - len;
    if (have != n_bytes)
        return rt_fail(err, GNNC_E_FORMAT, "%s: holds %zu bytes of elements, its header says %zu",
                       name, have, n_bytes);
    if (a.rank < 2) a.fortran = false;
    a.data = aligned(pool, text + len, n_bytes);
    if (!a.data) return rt_fail_nomem(err, name);
    *out = a;
out:
    return st;
}

/* Maps an .npy file, which stays as long as the pool. */
gnnc_status rt_npy_open(RtPool *pool, const char *path, RtArray *out, RtError *err) {
    RtBytes file;
    gnnc_status st = rt_file_map(pool, path, &file, err);
    return st == GNNC_OK ? rt_npy_parse(pool, file, path, out, err) : st;
}

/* ---- writing ------------------------------------------------------------ */
enum { PREFIX_MAX = 384 }; /* eight sizes of 20 digits fit */

/* Writes what is in front of the elements, padded so that they are aligned; returns its bytes. */
static size_t write_prefix(char *to, const RtArray *a) {
    char *p = to + 10;
    int n = snprintf(p, PREFIX_MAX - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                     rt_dtype_npy(a->dt));
    for (int i = 0; i < a->rank; i++)
        n += snprintf(p + n, (size_t)(PREFIX_MAX - 10 - n), "%lld,%s", (long long)a->shape[i],
                      i + 1 < a->rank ? " " : "");
    if (a->rank > 1) n--; /* "(3, 4)", but "(3,)" */
    n += snprintf(p + n, (size_t)(PREFIX_MAX - 10 - n), "), }");
    size_t total = ((size_t)n + 11 + 63) / 64 * 64;
    memset(p + n, ' ', total - 11 - (size_t)n);
    to[total - 1] = '\n';
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (char)((total - 10) & 255);
    to[9] = (char)((total - 10) >> 8);
    return total;
}

/* Can the array be written: a type that numpy has, rows one after the other? */
static gnnc_status check_array(const RtArray *a, const char *path, size_t *n_bytes, RtError *err) {
    RtArray sized = *a;
    if (rt_dtype_npy(a->dt) && rt_array_bytes(&sized, n_bytes) && !a->fortran) return GNNC_OK;
    return rt_fail(err, GNNC_E_ARG, "%s: this array cannot be written as .npy", path);
}

typedef gnnc_status OpenOut(RtOut *, const RtAlloc *, const char *, RtError *);

/* Opens the file and writes the header; n_bytes of elements are to follow. */
static gnnc_status begin(OpenOut *open, RtOut *o, const RtAlloc *from, const char *path,
                         const RtArray *a, size_t *n_bytes, RtError *err) {
    char prefix[PREFIX_MAX];
    gnnc_status st = check_array(a, path, n_bytes, err);
    if (st == GNNC_OK) st = open(o, from, path, err);
    if (st != GNNC_OK) return st;
    st = rt_out_write(o, prefix, write_prefix(prefix, a), err);
    if (st != GNNC_OK) rt_out_abort(o);
    return st;
}

/* Writes an array, whose second half may lie elsewhere. */
static gnnc_status save(OpenOut *open, const RtAlloc *from, const char *path, const RtArray *a,
                        const void *second_half, RtError *err) {
    RtOut o;
    size_t n_bytes;
    gnnc_status st;
    TRY(st, begin(open, &o, from, path, a, &n_bytes, err));
    st = rt_out_write(&o, a->data, second_half ? n_bytes / 2 : n_bytes, err);
    if (st == GNNC_OK && second_half) st = rt_out_write(&o, second_half, n_bytes / 2, err);
    if (st == GNNC_OK) return rt_out_commit(&o, err);
    rt_out_abort(&o);
out:
    return st;
}

gnnc_status rt_npy_save(const RtAlloc *from, const char *path, const RtArray *a, RtError *err) {
    return save(rt_out_open, from, path, a, NULL, err);
}

gnnc_status rt_npy_create(const RtAlloc *from, const char *path, const RtArray *a, const void *half,
                          RtError *err) {
    return save(rt_out_create, from, path, a, half, err);
}

gnnc_status rt_npy_begin(RtOut *o, const RtAlloc *from, const char *path, const RtArray *a,
                         RtError *err) {
    size_t n_bytes;
    return begin(rt_out_open, o, from, path, a, &n_bytes, err);
}
