/* Predictions as CSV (RFC 4180), as a JSON object a line, or as an array.  CSV and JSON have the
 * same fields: what a row is called, its class where it has one, and its numbers as the loss makes
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "legend.h"
#include "runtime/data/json.h"
#include "runtime/data/npy.h"

enum { FLUSH_BYTES = 1 << 16 };

typedef struct {
    float score; /* as the model gave it */
    int64_t i;   /* which of the row's */
} Scored;

typedef struct {
    const gnnc_legend *g;
    const gnnc_written *w;
    RtPool pool;
    bool json, picks;  /* picks: the n_shown best, with what they are called */
    int64_t n_shown;   /* of a row */
    const char **head; /* [n_head] names of the fields */
    int64_t n_head;
    Scored *best; /* [width] of the present row */
    float *shown; /* [width] */
    RtOut out;
    RtText text;  /* not written yet */
    RtText clean; /* room to make a text UTF-8 */
    RtError *err;
} Table;

static gnnc_status nomem(const Table *t) {
    return rt_fail_nomem(t->err, "predictions");
}

/* ---- fields -------------------------------------------------------------------------------- */
/* Adds a field; NULL: there was no memory for its name. */
static gnnc_status add_head(Table *t, const char *name) {
    if (!name) return nomem(t);
    t->head[t->n_head++] = name;
    return GNNC_OK;
}

/* Names the fields of value i; with the best few only, the class of the i-th best and its value. */
static gnnc_status name_field(Table *t, int64_t i) {
    const gnnc_legend *g = t->g;
    const char *of = g->value[i];
    gnnc_status st = GNNC_OK;
    if (t->picks) {
        if (!(of = rt_pool_printf(&t->pool, "%lld", (long long)i + 1))) return nomem(t);
        st = add_head(t, rt_pool_printf(&t->pool, "%s_%s", g->classes ? "class" : "label", of));
    }
    if (st != GNNC_OK) return st;
    return add_head(t, *of ? rt_pool_printf(&t->pool, "%s_%s", g->word, of) : g->word);
}

/* Lists the fields of the table that is written. */
static gnnc_status describe(Table *t) {
    const gnnc_legend *g = t->g;
    gnnc_status st = GNNC_OK;
    t->picks = t->w->top > 0;
    t->n_shown = t->picks && t->w->top < g->width ? t->w->top : g->width;
    t->best = RT_NEWN(&t->pool, Scored, g->width + 1);
    t->shown = RT_NEWN(&t->pool, float, g->width + 1);
    t->head = RT_NEWN(&t->pool, const char *, 2 * t->n_shown + 4);
    if (!t->best || !t->shown || !t->head) return nomem(t);
    add_head(t, g->edges ? "source" : "id");
    if (g->edges) add_head(t, "destination");
    if (g->classes) add_head(t, "prediction");
    for (int64_t i = 0; i < t->n_shown && st == GNNC_OK; i++) st = name_field(t, i);
    return st;
}

/* The higher first, of equal ones the first, what is no number last. */
static int by_score(const void *x, const void *y) {
    const Scored *a = x, *b = y;
    if (isnan(a->score) != isnan(b->score)) return isnan(a->score) ? 1 : -1;
    if (a->score != b->score && !isnan(a->score)) return a->score > b->score ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */
/* Bytes of the UTF-8 character at s; 0: these are none (RFC 3629). */
static size_t utf8_bytes(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80   ? 1
               : u[0] < 0xc2 ? 0
               : u[0] < 0xe0 ? 2
               : u[0] < 0xf0 ? 3
               : u[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f)) return 0;
    if ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f)) return 0;
    return n;
}

/* JSON is UTF-8: what is none becomes U+FFFD. */
static bool put_json(Table *t, const char *s) {
    bool ok = true, whole = true;
    for (const char *at = s; *at && whole; at += utf8_bytes(at)) whole = utf8_bytes(at) > 0;
    if (whole) return rt_text_json_string(&t->text, s);
    t->clean.n = 0;
    for (size_t n; *s && ok; s += n ? n : 1) {
        n = utf8_bytes(s);
        ok = rt_text_put(&t->clean, n ? s : "\xef\xbf\xbd", n ? n : 3);
    }
    return ok && rt_text_json_string(&t->text, t->clean.s);
}

/* Writes a field, in quotes where CSV needs them. */
static bool put_csv(RtText *to, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) return rt_text_put(to, s, strlen(s));
    bool ok = rt_text_put(to, "\"", 1);
    for (; *s && ok; s++) ok = rt_text_put(to, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    return ok && rt_text_put(to, "\"", 1);
}

static bool put_text(Table *t, const char *s) {
    return t->json ? put_json(t, s) : put_csv(&t->text, s);
}

/* Writes a number; JSON has none for NaN and infinity, so that these are null. */
static bool put_number(Table *t, float v) {
    if (t->json && !isfinite(v)) return rt_text_put(&t->text, "null", 4);
    if (isnan(v)) return rt_text_put(&t->text, "nan", 3);
    return rt_text_printf(&t->text, "%.9g", (double)v);
}

/* Writes what stands before field *i of a row, and counts it. */
static bool begin_field(Table *t, int64_t *i) {
    bool first = *i == 0;
    const char *name = t->head[(*i)++];
    if (!t->json) return first || rt_text_put(&t->text, ",", 1);
    return rt_text_put(&t->text, first ? "{" : ", ", first ? 1 : 2) && put_json(t, name) &&
           rt_text_put(&t->text, ": ", 2);
}

static bool put_id(Table *t, int end, int64_t row) {
    const char *const *id = t->g->id[end];
    return id ? put_text(t, id[row]) : rt_text_printf(&t->text, "%lld", (long long)row);
}

/* Writes the name of class i; -1: there is none. */
static bool put_class(Table *t, int64_t i) {
    if (i < 0) return !t->json || rt_text_put(&t->text, "null", 4);
    const char *name = t->g->value[i];
    return t->g->numbered ? rt_text_put(&t->text, name, strlen(name)) : put_text(t, name);
}

static int64_t row_of(const gnnc_written *w, int64_t i) {
    return w->row ? w->row[i] : i;
}

/* Writes the fields that say which row it is: a node, or the ends of an edge or a pair. */
static bool put_ids(Table *t, int64_t *at, int64_t i) {
    const RtRelation *e = t->g->edges;
    const int64_t *to = t->w->destination;
    int64_t row = row_of(t->w, i);
    if (!begin_field(t, at) || !put_id(t, 0, e && !to ? e->src[row] : row)) return false;
    return !e || (begin_field(t, at) && put_id(t, 1, to ? to[i] : e->dst[row]));
}

/* Writes row number `row` of the given values. */
static bool put_row(Table *t, int64_t row) {
    const gnnc_legend *g = t->g;
    const float *v = t->w->values + row * g->width;
    int64_t at = 0;
    gnnc_legend_convert(g, 1, v, t->shown);
    bool ok = put_ids(t, &at, row);
    if (ok && g->classes) ok = begin_field(t, &at) && put_class(t, gnnc_legend_highest(g, v));
    for (int64_t i = 0; t->picks && i < g->width; i++) t->best[i] = (Scored){v[i], i};
    if (t->picks) qsort(t->best, (size_t)g->width, sizeof *t->best, by_score);
    for (int64_t k = 0; k < t->n_shown && ok; k++) {
        int64_t i = t->picks ? t->best[k].i : k;
        if (t->picks) ok = begin_field(t, &at) && put_class(t, i);
        ok = ok && begin_field(t, &at) && put_number(t, t->shown[i]);
    }
    return ok && rt_text_put(&t->text, t->json ? "}\n" : "\n", t->json ? 2 : 1);
}

/* Writes the line with the names of the fields, which JSON lines do not have. */
static bool put_head(Table *t) {
    bool ok = true;
    for (int64_t i = 0; i < t->n_head && ok && !t->json; i++)
        ok = (i == 0 || rt_text_put(&t->text, ",", 1)) && put_csv(&t->text, t->head[i]);
    return ok && (t->json || rt_text_put(&t->text, "\n", 1));
}

/* ---- the file ------------------------------------------------------------------------------- */
/* Writes the text so far to the file. */
static gnnc_status flush(Table *t) {
    gnnc_status st = rt_out_write(&t->out, t->text.s, t->text.n, t->err);
    t->text.n = 0;
    return st;
}

/* Writes the head and all rows, in pieces. */
static gnnc_status write_rows(Table *t) {
    gnnc_status st = put_head(t) ? GNNC_OK : nomem(t);
    for (int64_t i = 0; i < t->w->n && st == GNNC_OK; i++) {
        if (!put_row(t, i)) return nomem(t);
        if (t->text.n >= FLUSH_BYTES) st = flush(t);
    }
    return st == GNNC_OK && t->text.n ? flush(t) : st;
}

/* Writes a table as CSV or JSON lines; the file appears when it is complete. */
static gnnc_status write_table(gnnc_legend *g, const char *path, const gnnc_written *w) {
    Table t = {.g = g, .w = w, .json = w->format == GNNC_WRITE_JSONL, .err = &g->err};
    gnnc_status st;
    rt_pool_init(&t.pool, &g->from);
    t.text.pool = t.clean.pool = &t.pool;
    TRY(st, describe(&t));
    TRY(st, rt_out_open(&t.out, &g->from, path, &g->err));
    st = write_rows(&t);
    if (st == GNNC_OK) st = rt_out_commit(&t.out, &g->err);
    rt_out_abort(&t.out);
out:
    rt_pool_free(&t.pool);
    return st;
}

/* Writes the values as .npy. */
static gnnc_status write_array(gnnc_legend *g, const char *path, const gnnc_written *w) {
    RtArray a = {.dt = RT_DT_F32, .rank = g->rank + 1, .count = w->n * g->width, .data = w->values};
    a.shape[0] = w->n;
    for (int i = 0; i < g->rank; i++) a.shape[i + 1] = g->dim[i];
    return rt_npy_save(&g->from, path, &a, &g->err);
}

/* ---- what is asked -------- */
static gnnc_status no_row(gnnc_legend *g, int64_t row, int64_t n) {
    return rt_fail(&g->err, GNNC_E_RANGE, "no row %lld: %lld, from 0", (long long)row,
                   (long long)n);
}

/* Are the given rows, and destinations, numbers of rows that there are? */
static gnnc_status check_rows(gnnc_legend *g, const gnnc_written *w) {
    int64_t n = w->destination ? g->n_nodes : g->n_rows;
    if (!w->row && w->n > n) return no_row(g, w->n - 1, n);
    for (int64_t i = 0; i < w->n && w->row; i++)
        if (w->row[i] < 0 || w->row[i] >= n) return no_row(g, w->row[i], n);
    for (int64_t i = 0; i < w->n && w->destination; i++)
        if (w->destination[i] < 0 || w->destination[i] >= g->edges->n_dst)
            return no_row(g, w->destination[i], g->edges->n_dst);
    return GNNC_OK;
}

/* Checks what the caller wants written. */
static gnnc_status check(gnnc_legend *g, const gnnc_written *w) {
    gnnc_status st;
    TRY(st, RT_STRUCT_CHECK(&g->err, gnnc_written, w, values));
    bool known =
        w->format == GNNC_WRITE_NPY || w->format == GNNC_WRITE_CSV || w->format == GNNC_WRITE_JSONL;
    if (!known || w->n < 0 || w->top < 0 || (w->n && !w->values) || (w->destination && !w->row))
        return rt_fail(&g->err, GNNC_E_ARG, "what is to be written says no format, rows or values");
    if (g->edges ? g->pairs && !w->destination : w->destination != NULL)
        return rt_fail(&g->err, GNNC_E_ARG,
                       g->edges ? "pairs have destinations, too" : "the rows have no destinations");
    if (w->top && (!g->labels || w->format == GNNC_WRITE_NPY))
        return rt_fail(&g->err, GNNC_E_ARG,
                       "the model's result are no scores of several classes or labels");
    st = check_rows(g, w);
out:
    return st;
}

gnnc_status gnnc_legend_write(gnnc_legend *g, const char *path, const gnnc_written *w) {
    if (!g || !path || !w) return GNNC_E_ARG;
    g->err.text[0] = '\0';
    gnnc_status st = check(g, w);
    if (st != GNNC_OK) return st;
    return w->format == GNNC_WRITE_NPY ? write_array(g, path, w) : write_table(g, path, w);
}
