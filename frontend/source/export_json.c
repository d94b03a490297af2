/* JSON lines as the table that CSV is: an object a line, whose members are the cells.  The first
 * object says what columns there are; one that a later object lacks is NULL there. */
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "runtime/data/json.h"
#include "runtime/data/number.h"

typedef struct {
    RtPool *pool;
    RtCsv *to;
    int64_t room;
    RtError *err;
} Lines;

static gnnc_status bad(const Lines *x, int64_t line, const char *what, const char *more) {
    return rt_fail(x->err, GNNC_E_FORMAT, "%s: row %lld: %s%.200s; nothing is written", x->to->name,
                   (long long)line, what, more);
}

static gnnc_status no_memory(const Lines *x) {
    return rt_fail_nomem(x->err, x->to->name);
}

/* ---- cells -------------------------------------------------------------------------------- */
/* The text of a JSON value as a cell of a CSV file has it; "" for null. NULL: memory ran out. */
static const char *cell_of(const Lines *x, const RtJson *v) {
    char number[40];
    const char *text = number;
    if (v->kind == RT_JSON_NULL) return "";
    if (v->kind == RT_JSON_BOOL) text = v->number != 0 ? "true" : "false";
    if (v->kind == RT_JSON_STRING) text = v->text;
    if (v->kind == RT_JSON_NUMBER && v->text)
        text = v->text;
    else if (v->kind == RT_JSON_NUMBER && v->is_int)
        snprintf(number, sizeof number, "%lld", (long long)v->i);
    else if (v->kind == RT_JSON_NUMBER)
        rt_number_text(v->number, number);
    return rt_pool_strndup(x->pool, text, strlen(text));
}

/* The place of the column of that name; -1: there is none. It is looked for behind `at`, where
 * the last one was, as members mostly stand in the order of the first object. */
static int find_column(const RtCsv *t, const char *name, int at) {
    for (int i = 0; i < t->n_columns; i++) {
        int c = (at + 1 + i) % t->n_columns;
        if (strcmp(t->header[c], name) == 0) return c;
    }
    return -1;
}

/* Fills a row's cells with the members of a JSON object; members that it lacks are empty. */
static gnnc_status read_members(Lines *x, const RtJson *object, int64_t line, const char **cell) {
    int c = -1;
    for (int i = 0; i < x->to->n_columns; i++) cell[i] = "";
    for (const RtJson *v = object->first; v; v = v->next) {
        c = find_column(x->to, v->key, c);
        if (c < 0) return bad(x, line, "the first row has no ", v->key);
        if (v->kind == RT_JSON_ARRAY || v->kind == RT_JSON_OBJECT)
            return bad(x, line, "neither text nor number: ", v->key);
        if (!(cell[c] = cell_of(x, v))) return no_memory(x);
    }
    return GNNC_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */
/* Makes the columns of the first row's members, and room for all rows. */
static gnnc_status read_columns(Lines *x, const RtJson *object, int64_t line) {
    RtCsv *t = x->to;
    if (!object->n) return bad(x, line, "an object without members", "");
    t->header = RT_NEWN(x->pool, const char *, object->n);
    if (!t->header) return no_memory(x);
    for (const RtJson *v = object->first; v; v = v->next) {
        const char *name = rt_pool_strndup(x->pool, v->key, strlen(v->key));
        if (!(t->header[t->n_columns++] = name)) return no_memory(x);
    }
    t->cell = RT_NEWN(x->pool, const char *, x->room * t->n_columns);
    t->line = RT_NEWN(x->pool, int64_t, x->room);
    return t->cell && t->line ? GNNC_OK : no_memory(x);
}

/* Reads one line, a JSON object, as a row. scratch: memory for the parsed line. */
static gnnc_status read_line(Lines *x, RtPool *scratch, RtBytes text, int64_t line) {
    RtCsv *t = x->to;
    RtJson *object;
    RtError why = {""};
    gnnc_status st = rt_json_parse(scratch, text, "JSON", &object, &why);
    if (st == GNNC_E_NOMEM) return no_memory(x);
    if (st != GNNC_OK) return bad(x, line, "", why.text);
    if (object->kind != RT_JSON_OBJECT) return bad(x, line, "no object", "");
    if (!t->header && (st = read_columns(x, object, line)) != GNNC_OK) return st;
    t->line[t->n_rows] = line;
    st = read_members(x, object, line, t->cell + t->n_rows * t->n_columns);
    t->n_rows++;
    return st;
}

/* Whether a line has nothing but spaces. */
static bool is_blank(RtBytes text) {
    size_t n = 0;
    while (n < text.n && strchr(" \t\r", text.p[n]) && text.p[n]) n++;
    return n == text.n;
}

/* Reads JSON lines as a table of texts, whose columns are the members of the first line. */
gnnc_status export_read_json(RtPool *pool, RtBytes text, const char *name, RtCsv *out,
                             RtError *err) {
    Lines x = {.pool = pool, .to = out, .room = 1, .err = err};
    gnnc_status st = GNNC_OK;
    *out = (RtCsv){.name = name};
    for (size_t i = 0; i < text.n; i++) x.room += text.p[i] == '\n';
    for (int64_t line = 1; text.n && st == GNNC_OK; line++) {
        const uint8_t *end = memchr(text.p, '\n', text.n);
        RtBytes one = {text.p, end ? (size_t)(end - text.p) : text.n};
        size_t taken = one.n + (end != NULL);
        RtPool scratch;
        rt_pool_init(&scratch, &pool->from);
        if (!is_blank(one)) st = read_line(&x, &scratch, one, line);
        rt_pool_free(&scratch);
        text = (RtBytes){text.p + taken, text.n - taken};
    }
    if (st == GNNC_OK && !out->header)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: there are no rows, which say what columns there are",
                     name);
    return st;
}
