/* What a kind of columns is to the runtime: the table below is the one place that says it.  All
 * else asks the table, or contract.def, and not which kind a column has. */
#include "column.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/exec.h"
#include "runtime/exec/round_16.h"

enum {
    CONVERTED = 1 << 12, /* numbers converted at a time */
    ALONE = 1 << 16      /* fewer than these are not worth waking others */
};

const char *rt_col_kind_name(rt_col_kind k) {
    return rt_col_kind_words.word[k];
}

bool rt_col_kind_find(const char *name, rt_col_kind *out) {
    for (int k = 0; k < rt_col_kind_words.n; k++) {
        if (strcmp(rt_col_kind_words.word[k], name) != 0) continue;
        *out = (rt_col_kind)k;
        return true;
    }
    return false;
}

/* ---- checks --------------------------------------------------------------- */
typedef struct RtColumnCheck {
    const RtColumn *c;
    const char *table;
    RtError *err;
    int64_t lo, hi; /* rows of numbers, codes and entries that are checked */
} Check;

static gnnc_status bad_row(const Check *k, gnnc_status st, int64_t row, const char *what) {
    return rt_fail(k->err, st, "%s.%s: row %lld: %s", k->table, k->c->name, (long long)row, what);
}

enum { BLOCK = 1024 };

/* The exponent of what is not finite has all bits set.  Bits vectorise, where a sum would have an
 * order; so does a loop of a length that is known. */
static bool block_is_finite(const float *x) {
    uint32_t bad = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !bad;
}

/* The first number that is NaN or infinite; -1: there is none. */
static int64_t first_not_finite(const float *x, int64_t n) {
    int64_t i = 0;
    while (n - i >= BLOCK && block_is_finite(x + i)) i += BLOCK;
    while (i < n && isfinite(x[i])) i++;
    return i < n ? i : -1;
}

/* Are all 16-bit numbers finite? Of others all bits of the exponent are set. */
static gnnc_status check_low(const Check *k, int64_t per_row) {
    const RtColumn *c = k->c;
    bool bf16 = c->low_dt == RT_DT_BF16;
    uint16_t top = bf16 ? 0x7f80 : 0x7c00, below = bf16 ? 0x7f : 0x3ff;
    for (int64_t i = k->lo * per_row; i < k->hi * per_row; i++)
        if ((c->low[i] & top) == top)
            return bad_row(k, GNNC_E_VALUE, i / per_row,
                           c->low[i] & below ? "value is NaN" : "value is infinite");
    return GNNC_OK;
}

/* Are all numbers finite? */
static gnnc_status check_finite(const Check *k) {
    const float *x = k->c->f32;
    int64_t w = rt_column_width(k->c), from = k->lo * w;
    if (!x && k->c->there) return GNNC_OK; /* checked where there is a device to read it */
    if (!x) return check_low(k, w);
    int64_t i = first_not_finite(x + from, (k->hi - k->lo) * w);
    if (i < 0) return GNNC_OK;
    i += from;
    return bad_row(k, GNNC_E_VALUE, i / w, isnan(x[i]) ? "value is NaN" : "value is infinite");
}

/* Is no label infinite? NaN is an unknown label. */
static gnnc_status check_multilabel(const Check *k) {
    int64_t w = rt_column_width(k->c), n = k->c->n_rows * w;
    for (int64_t i = 0; i < n; i++)
        if (isinf(k->c->f32[i])) return bad_row(k, GNNC_E_VALUE, i / w, "value is infinite");
    return GNNC_OK;
}

/* Is each code one of the categories? A class may be unknown (-1). */
static gnnc_status check_categories(const Check *k) {
    const RtColumn *c = k->c;
    int64_t w = rt_column_width(c);
    int32_t low = c->kind == RT_COL_CLASS ? -1 : 0;
    for (int64_t i = k->lo * w; i < k->hi * w; i++) {
        if (c->i32[i] >= low && c->i32[i] < c->n_categories) continue;
        return rt_fail(k->err, GNNC_E_RANGE, "%s.%s: row %lld: %d is no %s of %lld", k->table,
                       c->name, (long long)(i / w), c->i32[i],
                       c->kind == RT_COL_CLASS ? "class" : "category", (long long)c->n_categories);
    }
    return GNNC_OK;
}

/* Is each row in a split that there is? */
static gnnc_status check_split(const Check *k) {
    const RtColumn *c = k->c;
    for (int64_t i = 0; i < c->n_splits * c->n_rows; i++)
        if (c->splits[i] < 0 || c->splits[i] > 3)
            return bad_row(k, GNNC_E_RANGE, i % c->n_rows,
                           "a split is 0 none, 1 train, 2 validation or 3 test");
    return GNNC_OK;
}

/* Is no time infinite? NaN is an unknown time. */
static gnnc_status check_time(const Check *k) {
    for (int64_t i = 0; i < k->c->n_rows; i++)
        if (isinf(k->c->f64[i])) return bad_row(k, GNNC_E_VALUE, i, "time is infinite");
    return GNNC_OK;
}

/* Is the sparse column sound: bounds that ascend, column numbers that ascend within each row,
 * finite values? */
static gnnc_status check_csr(const Check *k) {
    const RtCsr *m = &k->c->csr;
    if (m->n_cols > INT32_MAX || m->nnz > INT32_MAX)
        return bad_row(k, GNNC_E_RANGE, 0, "more than 2^31 - 1 columns or stored entries");
    if (k->lo == k->hi && m->n_rows > 0) return GNNC_OK;
    if (k->lo == 0 && m->ptr[0] != 0)
        return bad_row(k, GNNC_E_FORMAT, 0, "row pointers must start at 0");
    if (m->ptr[k->lo] < 0 || m->ptr[k->lo] > m->nnz)
        return bad_row(k, GNNC_E_FORMAT, k->lo, "row pointers must ascend and stay inside");
    for (int64_t r = k->lo; r < k->hi; r++) {
        if (m->ptr[r + 1] < m->ptr[r] || m->ptr[r + 1] > m->nnz)
            return bad_row(k, GNNC_E_FORMAT, r, "row pointers must ascend and stay inside");
        int32_t last = -1;
        for (int64_t e = m->ptr[r]; e < m->ptr[r + 1]; last = m->col[e++]) {
            if (m->col[e] < 0 || m->col[e] >= m->n_cols)
                return bad_row(k, GNNC_E_RANGE, r, "column index out of range");
            if (m->col[e] <= last)
                return bad_row(k, GNNC_E_FORMAT, r, "column indices must ascend");
        }
    }
    if (k->hi == m->n_rows && m->ptr[m->n_rows] != m->nnz)
        return rt_fail(k->err, GNNC_E_FORMAT, "%s.%s: row pointers end at %lld of %lld entries",
                       k->table, k->c->name, (long long)m->ptr[m->n_rows], (long long)m->nnz);
    int64_t from = m->ptr[k->lo], row = k->lo;
    int64_t n = m->ptr[k->hi] - from, i = n ? first_not_finite(m->val + from, n) : -1;
    if (i < 0) return GNNC_OK;
    i += from;
    while (m->ptr[row + 1] <= i) row++;
    return bad_row(k, GNNC_E_VALUE, row, isnan(m->val[i]) ? "value is NaN" : "value is infinite");
}

/* ---- kinds ------------------------------------------------------------------ */
/* Writes x as element `at`. NULL: it can be one; else why not. */
static const char *float_of(double x, void *to, int64_t at) {
    ((float *)to)[at] = (float)x;
    if (isfinite((float)x)) return NULL;
    return isfinite(x) ? "too large: 3.4e38 at most" : "not a number";
}

static void widen_split(const void *from, int64_t n, void *to) {
    for (int64_t i = 0; i < n; i++) ((int32_t *)to)[i] = ((const int8_t *)from)[i];
}

static const RtColumnKind kinds[] = {
    [RT_COL_FLOAT] = {RT_LAYOUT_ROWS, RT_DT_F32, .check = check_finite, .of_number = float_of},
    [RT_COL_CSR] = {RT_LAYOUT_CSR, RT_DT_F32, .check = check_csr},
    [RT_COL_CAT] = {RT_LAYOUT_ROWS, RT_DT_I32, .check = check_categories},
    [RT_COL_CLASS] = {RT_LAYOUT_ROWS, RT_DT_I32, .check = check_categories},
    [RT_COL_MULTILABEL] = {RT_LAYOUT_ROWS, RT_DT_F32, .check = check_multilabel},
    [RT_COL_TIME] = {RT_LAYOUT_ROWS, RT_DT_F64, .check = check_time},
    [RT_COL_ID] = {RT_LAYOUT_ROWS, RT_DT_I64, .check = NULL},
    [RT_COL_SPLIT] = {RT_LAYOUT_SPLITS, RT_DT_I8, .check = check_split, .widen = widen_split},
};

const RtColumnKind *rt_column_kind(rt_col_kind k) {
    return &kinds[k];
}

gnnc_status rt_column_check(const RtColumn *c, const char *where, RtError *err) {
    return rt_column_check_rows(c, 0, c->n_rows, where, err);
}

bool rt_column_may_be_shared(const RtColumn *c) {
    return c->kind == RT_COL_FLOAT || c->kind == RT_COL_CAT || c->kind == RT_COL_CSR;
}

gnnc_status rt_column_check_rows(const RtColumn *c, int64_t lo, int64_t hi, const char *where,
                                 RtError *err) {
    bool scalar = kinds[c->kind].layout == RT_LAYOUT_ROWS && rt_col_facts[c->kind].n_dims == 0;
    if (scalar && c->rank != 1)
        return rt_fail(err, GNNC_E_SHAPE, "%s.%s: a %s column has no further dimension", where,
                       c->name, rt_col_kind_words.word[c->kind]);
    const Check k = {c, where, err, lo, hi};
    return kinds[c->kind].check ? kinds[c->kind].check(&k) : GNNC_OK;
}

const char *rt_column_declared(const RtColumn *c, char *to, size_t n) {
    const RtColFacts *f = &rt_col_facts[c->kind];
    const char *size = c->rank > 2 && f->n_dims < 0 ? "A, B, .." : f->size;
    if (f->n_dims == 0 || (f->n_dims < 0 && c->rank == 1))
        snprintf(to, n, "%s", f->said);
    else
        snprintf(to, n, "%s[%s]", f->said, size);
    return to;
}

bool rt_column_has_label(const RtColumn *y, int64_t row) {
    if (y->kind == RT_COL_CLASS) return y->i32[row] >= 0;
    if (y->kind != RT_COL_MULTILABEL) return true;
    int64_t wide = y->rank > 1 ? y->shape[1] : 1;
    for (int64_t i = row * wide; i < (row + 1) * wide; i++)
        if (!isnan(y->f32[i])) return true;
    return false;
}

bool rt_column_is_label(const RtColumn *c) {
    static const char *const names[] = {"y", "label", "labels"};
    bool numbers = c->kind == RT_COL_MULTILABEL || (c->kind == RT_COL_FLOAT && c->rank <= 2);
    for (size_t i = 0; numbers && i < sizeof names / sizeof *names; i++)
        if (strcmp(c->name, names[i]) == 0) return true;
    return c->kind == RT_COL_CLASS;
}

const char *rt_col_kinds_list(bool wanted(rt_col_kind k), char *to, size_t n) {
    size_t used = 0;
    *to = '\0';
    for (int k = 0; k < rt_col_kind_words.n && used < n; k++)
        if (wanted((rt_col_kind)k))
            used += (size_t)snprintf(to + used, n - used, "%s%s", used ? ", " : "",
                                     rt_col_kind_words.word[k]);
    return to;
}

void rt_column_fill_unknown(const RtColumn *c, int64_t n) {
    void *v = (void *)(uintptr_t)c->values; /* made for this column */
    switch (kinds[c->kind].element) {
    case RT_DT_F32:
        for (int64_t i = 0; i < n; i++) ((float *)v)[i] = NAN;
        break;
    case RT_DT_F64:
        for (int64_t i = 0; i < n; i++) ((double *)v)[i] = NAN;
        break;
    case RT_DT_I32:
        for (int64_t i = 0; i < n; i++) ((int32_t *)v)[i] = -1;
        break;
    default:
        break;
    }
}

/* ---- element types ---------------------------------------------------------- */
typedef struct {
    const RtColumn *from;
    int64_t n;
    rt_dtype type;
    float *f32; /* where it goes: one of both */
    uint16_t *low;
} Conversion;

static rt_dtype low_type(const RtColumn *c) {
    return c->low_dt == RT_DT_BF16 ? RT_BF16 : RT_F16;
}

/* One type of 16 bits as the other goes through f32, which holds both. */
static void convert(const Conversion *v, int64_t lo, int64_t n) {
    const RtColumn *c = v->from;
    float some[CONVERTED], *made = v->f32 ? v->f32 + lo : some;
    if (!c->f32) rt_to_f32(low_type(c), made, c->low + lo, n);
    if (v->low) rt_from_f32(v->type, v->low + lo, c->f32 ? c->f32 + lo : made, n);
}

/* A member converts its share of the pieces. */
static void convert_share(void *arg, int member, int n_members) {
    const Conversion *v = arg;
    int64_t pieces = (v->n + CONVERTED - 1) / CONVERTED;
    int64_t end = pieces * (member + 1) / n_members * CONVERTED;
    if (end > v->n) end = v->n;
    for (int64_t i = pieces * member / n_members * CONVERTED; i < end; i += CONVERTED)
        convert(v, i, end - i < CONVERTED ? end - i : CONVERTED);
}

gnnc_status rt_column_as(RtPool *pool, RtTeam *team, const RtColumn *c, rt_dtype t,
                         const RtColumn **out, RtError *err) {
    bool wide = t == RT_F32, is_low = !wide && c->low && low_type(c) == t;
    *out = c;
    if (c->kind != RT_COL_FLOAT || (wide && c->f32) || (is_low && !c->f32)) return GNNC_OK;
    Conversion v = {.from = c, .n = c->n_rows * rt_column_width(c), .type = t};
    RtColumn *y = RT_NEW(pool, RtColumn);
    if (!y) return rt_fail_nomem(err, c->name);
    *y = *c;
    *out = y;
    y->f32 = NULL;
    if (is_low) return GNNC_OK; /* a head without the f32 */
    y->low_dt = t == RT_BF16 ? RT_DT_BF16 : RT_DT_F16;
    y->f32 = v.f32 = wide ? RT_NEWN(pool, float, v.n) : NULL;
    y->low = v.low = wide ? NULL : RT_NEWN(pool, uint16_t, v.n);
    if (!v.f32 && !v.low) return rt_fail_nomem(err, c->name);
    y->beyond_memory = NULL;
    rt_team_run(v.n < ALONE ? NULL : team, convert_share, &v);
    return GNNC_OK;
}

/* ---- columns in other orders ------------------------------------------------ */
/* Copies rows idx[n], of row_bytes each, side by side; NULL: no memory. */
static const void *take_rows(RtPool *pool, const void *x, size_t row_bytes, const int32_t *idx,
                             int64_t n) {
    char *to = rt_pool_alloc(pool, (size_t)n, row_bytes);
    for (int64_t i = 0; to && i < n; i++)
        memcpy(to + (size_t)i * row_bytes, (const char *)x + (size_t)idx[i] * row_bytes, row_bytes);
    return to;
}

/* Takes rows idx[n] out of a sparse column; false: no memory. */
static bool take_csr(RtPool *pool, const RtCsr *m, const int32_t *idx, int64_t n, RtCsr *out) {
    int64_t *ptr = RT_NEWN(pool, int64_t, n + 1);
    if (!ptr) return false;
    for (int64_t i = 0; i < n; i++) ptr[i + 1] = ptr[i] + m->ptr[idx[i] + 1] - m->ptr[idx[i]];
    int32_t *col = RT_NEWN(pool, int32_t, ptr[n]);
    float *val = RT_NEWN(pool, float, ptr[n]);
    if (!col || !val) return false;
    for (int64_t i = 0; i < n; i++) {
        size_t k = (size_t)(ptr[i + 1] - ptr[i]);
        memcpy(col + ptr[i], m->col + m->ptr[idx[i]], k * sizeof *col);
        memcpy(val + ptr[i], m->val + m->ptr[idx[i]], k * sizeof *val);
    }
    *out = (RtCsr){n, m->n_cols, ptr[n], ptr, col, val};
    return true;
}

/* Takes rows idx[n] out of all splits of a column; false: no memory. */
static bool take_splits(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                        RtColumn *out) {
    int8_t *to = rt_pool_alloc(pool, (size_t)c->n_splits, (size_t)n);
    out->splits = to;
    for (int k = 0; to && k < c->n_splits; k++)
        for (int64_t i = 0; i < n; i++) to[k * n + i] = c->splits[k * c->n_rows + idx[i]];
    return to;
}

gnnc_status rt_column_take(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                           RtColumn *out, RtError *err) {
    bool ok = true;
    *out = *c;
    out->n_rows = out->shape[0] = n;
    out->beyond_memory = NULL;
    switch (kinds[c->kind].layout) {
    case RT_LAYOUT_ROWS: {
        size_t row_bytes = (size_t)rt_column_width(c) * rt_column_value_bytes(c);
        rt_column_set(out, take_rows(pool, rt_column_values(c), row_bytes, idx, n));
        ok = rt_column_values(out);
        break;
    }
    case RT_LAYOUT_CSR:
        ok = take_csr(pool, &c->csr, idx, n, &out->csr);
        break;
    case RT_LAYOUT_SPLITS:
        ok = take_splits(pool, c, idx, n, out);
        break;
    }
    if (c->exact && ok)
        ok = (out->exact = take_rows(pool, c->exact, sizeof *c->exact, idx, n)) != NULL;
    return ok ? GNNC_OK : rt_fail_nomem(err, c->name);
}

/* ---- columns one after the other ---------------------------------------------- */
/* Copies the rows of n parts one behind the other, in all n_rows of them; low: the 16-bit values.
 * NULL: no memory. */
static const void *join_rows(RtPool *pool, const RtColumn *const *part, int64_t n, int64_t n_rows,
                             bool low, size_t row_bytes) {
    char *to = rt_pool_alloc(pool, (size_t)n_rows, row_bytes), *at = to;
    for (int64_t i = 0; to && i < n; i++) {
        size_t n_bytes = (size_t)part[i]->n_rows * row_bytes;
        if (n_bytes) memcpy(at, low ? part[i]->low : part[i]->values, n_bytes);
        at += n_bytes;
    }
    return to;
}

/* Joins the values of n parts, of 32 bits and of 16, whichever all parts have. */
static bool join_values(RtPool *pool, const RtColumn *const *part, int64_t n, RtColumn *out) {
    size_t width = (size_t)rt_column_width(out);
    bool wide = true, low = out->low != NULL;
    for (int64_t i = 0; i < n; i++) {
        if (!part[i]->n_rows) continue; /* of no rows there may be no array */
        wide &= part[i]->values != NULL;
        low &= part[i]->low && part[i]->low_dt == out->low_dt;
    }
    out->values = out->low = NULL;
    if (wide)
        out->values = join_rows(pool, part, n, out->n_rows, false,
                                width * rt_dtype_bytes(kinds[out->kind].element));
    if (low) out->low = join_rows(pool, part, n, out->n_rows, true, width * sizeof *out->low);
    return (!wide || out->values) && (!low || out->low);
}

/* Joins the rows of n sparse parts; false: no memory. */
static bool join_csr(RtPool *pool, const RtColumn *const *part, int64_t n, RtColumn *out) {
    int64_t nnz = 0, row = 0;
    for (int64_t i = 0; i < n; i++) nnz += part[i]->csr.nnz;
    int64_t *ptr = RT_NEWN(pool, int64_t, out->n_rows + 1);
    int32_t *col = RT_NEWN(pool, int32_t, nnz);
    float *val = RT_NEWN(pool, float, nnz);
    if (!ptr || !col || !val) return false;
    for (int64_t i = 0; i < n; i++) {
        const RtCsr *m = &part[i]->csr;
        int64_t at = ptr[row];
        if (m->nnz) memcpy(col + at, m->col, (size_t)m->nnz * sizeof *col);
        if (m->nnz) memcpy(val + at, m->val, (size_t)m->nnz * sizeof *val);
        for (int64_t r = 0; r < m->n_rows; r++) ptr[++row] = at + m->ptr[r + 1];
    }
    out->csr = (RtCsr){out->n_rows, part[0]->csr.n_cols, nnz, ptr, col, val};
    return true;
}

/* Joins the rows of n parts, split by split; false: no memory. */
static bool join_splits(RtPool *pool, const RtColumn *const *part, int64_t n, RtColumn *out) {
    int8_t *to = rt_pool_alloc(pool, (size_t)out->n_splits, (size_t)out->n_rows), *at = to;
    for (int k = 0; to && k < out->n_splits; k++)
        for (int64_t i = 0; i < n; i++) {
            size_t rows = (size_t)part[i]->n_rows;
            if (rows) memcpy(at, part[i]->splits + (size_t)k * rows, rows);
            at += rows;
        }
    out->splits = to;
    return to;
}

gnnc_status rt_column_join(RtPool *pool, const RtColumn *const *part, int64_t n, RtColumn *out,
                           RtError *err) {
    bool ok = false;
    *out = *part[0];
    for (int64_t i = 1; i < n; i++) out->n_rows += part[i]->n_rows;
    out->shape[0] = out->n_rows;
    out->beyond_memory = NULL;
    switch (kinds[out->kind].layout) {
    case RT_LAYOUT_ROWS:
        ok = join_values(pool, part, n, out);
        break;
    case RT_LAYOUT_CSR:
        ok = join_csr(pool, part, n, out);
        break;
    case RT_LAYOUT_SPLITS:
        ok = join_splits(pool, part, n, out);
        break;
    }
    return ok ? GNNC_OK : rt_fail_nomem(err, out->name);
}

/* ---- as programs read them ---------------------------------------------------- */
gnnc_status rt_column_read(RtPool *pool, const RtColumn *c, int split, const void **out,
                           RtError *err) {
    const RtColumnKind *k = &kinds[c->kind];
    int64_t n = c->n_rows;
    if (k->layout == RT_LAYOUT_SPLITS && (split < 0 || split >= c->n_splits))
        return rt_fail(err, GNNC_E_RANGE, "split %d: column '%s' has splits 0 to %d", split,
                       c->name, c->n_splits - 1);
    switch (k->layout) {
    case RT_LAYOUT_ROWS:
        *out = rt_column_values(c);
        n *= rt_column_width(c);
        break;
    case RT_LAYOUT_CSR:
        *out = c->csr.val;
        break;
    case RT_LAYOUT_SPLITS:
        *out = c->splits + split * n;
        break;
    }
    if (!k->widen) return GNNC_OK;
    void *to = rt_pool_alloc(pool, (size_t)n, (size_t)rt_type_bytes(rt_col_facts[c->kind].dt));
    if (!to) return rt_fail_nomem(err, c->name);
    k->widen(*out, n, to);
    *out = to;
    return GNNC_OK;
}
