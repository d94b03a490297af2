/* What an import made of columns, in the words of the file that says it (--map): to be changed and
 * read back.  Words follow encoders, so nothing is said of columns that have none (keys,
 * references, a split that was drawn). */
#include <stdio.h>
#include <string.h>

#include "runtime/data/encoder_cells.h"
#include "import_map.h"
#include "runtime/data/dataset.h"

static const char *const scale_words[] = {[RT_SCALE_PLAIN] = "plain",
                                          [RT_SCALE_STANDARD] = "standard",
                                          [RT_SCALE_QUANTILE] = "quantile",
                                          [RT_SCALE_PIECEWISE] = "piecewise"};

/* Writes what stands behind "float": "standard", "text 64". */
static void put_float(const RtEncoder *e, char *to, size_t n) {
    const char separator[2] = {e->separator, 0};
    switch (e->as) {
    case RT_AS_BOOLEAN:
        snprintf(to, n, "boolean");
        break;
    case RT_AS_TEXT:
        snprintf(to, n, "text %d", e->out);
        break;
    case RT_AS_IMAGE:
        snprintf(to, n, "image %d", rt_image_side(e->out));
        break;
    case RT_AS_VECTOR:
        snprintf(to, n, "vector");
        break;
    case RT_AS_SEVERAL:
        snprintf(to, n, "several%s%s", *separator ? " " : "", separator);
        break;
    default:
        snprintf(to, n, e->out ? "%s %d" : "%s", scale_words[e->scale], e->out);
    }
}

/* Of a time: whether the table's rows happened then. */
static const char *role_of(const RtTable *t, const RtColumn *c) {
    if (!t->time) return "";
    return !*t->time ? "other" : strcmp(t->time, c->name) == 0 ? "row" : "";
}

/* Writes how a column was made, as a line of a mapping says it. */
static void put_what(const RtTable *t, const RtColumn *c, char *to, size_t n) {
    const RtEncoder *e = c->encoder;
    int at = snprintf(to, n, "%s ", rt_col_kind_name(c->kind));
    if (c->kind == RT_COL_FLOAT && !e->width)
        put_float(e, to + at, n - (size_t)at);
    else if (c->kind == RT_COL_CAT && e->unknown && e->rare > 1)
        snprintf(to + at, n - (size_t)at, "unknown %lld", (long long)e->rare);
    else if (c->kind == RT_COL_CAT)
        snprintf(to + at, n - (size_t)at, "%s", e->unknown ? "unknown" : "known");
    else if (c->kind == RT_COL_TIME)
        snprintf(to + at, n - (size_t)at, "%s", role_of(t, c));
    else
        to[at - 1] = '\0';
}

/* Columns that are numbered in their names say by that what they are. */
static bool is_said(const RtColumn *c) {
    const RtEncoder *e = c->encoder;
    return e && e->as != RT_AS_KEY && e->as != RT_AS_MISSING && !e->width;
}

/* Writes a line for each column of the table; false: no memory. */
static bool put_table(RtText *to, const RtTable *t) {
    bool ok = true;
    for (int i = 0; i < t->n_columns && ok; i++) {
        const RtColumn *c = &t->columns[i];
        char what[80], name[140];
        if (!is_said(c)) continue;
        put_what(t, c, what, sizeof what);
        snprintf(name, sizeof name, "%.64s.%.64s", t->name, c->encoder->from);
        ok = rt_text_printf(to, "%-32s %-20s%s%s\n", name, what, c->why ? " # " : "",
                            c->why ? c->why : "");
    }
    return ok;
}

/* Is the table one of the two that are not written? */
static bool is_left_out(const RtTable *t, const char *const *but) {
    for (int i = 0; but && i < 2; i++)
        if (but[i] && strcmp(t->name, but[i]) == 0) return true;
    return false;
}

bool rt_map_put(RtText *to, const RtDataset *d, const char *const *but) {
    bool ok = rt_text_printf(
        to, "# What gnnc import made of the columns: change it, and give it back by --map.\n"
            "# 'drop' leaves a column out; docs/data.md has the other words.\n");
    for (int i = 0; i < d->n_nodes && ok; i++)
        if (!is_left_out(&d->nodes[i], but)) ok = put_table(to, &d->nodes[i]);
    for (int i = 0; i < d->n_edges && ok; i++) ok = put_table(to, &d->edges[i]);
    return ok;
}
