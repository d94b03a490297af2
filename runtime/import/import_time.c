#include "import_time.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "runtime/data/dates.h"
#include "import.h"
#include "import_index.h"

/* ---- which of several times -------------------------------------------------------------- */
/* The length of the first word of a name: "birth" of "birth_date", "Birth" of "BirthDate". */
static size_t word_length(const char *s) {
    size_t n = 0;
    while (isupper((unsigned char)s[n])) n++;
    if (n > 1) return n; /* "DOB" */
    while (s[n] && s[n] != '_' && !isupper((unsigned char)s[n])) n++;
    return n;
}

/* Is one of the name's words, which are parted by _, in the list? */
static bool has_word(const char *name, const char *const *words) {
    for (const char *s = name; *s;) {
        size_t n = word_length(s);
        for (int i = 0; words[i]; i++)
            if (strlen(words[i]) == n && strncasecmp(s, words[i], n) == 0) return true;
        s += n;
        while (*s == '_') s++;
    }
    return false;
}

/* Is the column called like the time at which something happened? */
static bool is_event(const char *name) {
    static const char *const whole[] = {"t", "time", "timestamp", "date"};
    static const char *const words[] = {"created", "create", "event", NULL};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcasecmp(name, whole[i]) == 0) return true;
    return has_word(name, words);
}

/* Is the column a time before or after the row was known: what happened to a person, what is
 * planned, what came last? */
static bool is_no_event(const char *name) {
    static const char *const words[] = {
        "birth", "birthday", "birthdate", "dob",     "born",     "death",        "died",
        "due",   "deadline", "required",  "planned", "expiry",   "expires",      "expiration",
        "last",  "update",   "updated",   "changed", "modified", "modification", NULL};
    return has_word(name, words);
}

static bool is_of(const RtRowTimeOf *r, const RtTable *t) {
    size_t n = strlen(t->name);
    return strncmp(r->column, t->name, n) == 0 && (!r->column[n] || r->column[n] == '.');
}

/* Whether somebody said that a column is the time of its rows: 1 it is, 0 it is not, -1 nobody did.
 * "TABLE" alone says 0 of all its columns. The user's word goes before the source's. */
static int said_of(const RtTable *t, const char *column, RtImport *how) {
    size_t n = strlen(t->name);
    int said = -1;
    RtSaidBy by = RT_SAID_BY_SOURCE;
    for (int i = 0; how && i < how->n_row_times; i++)
        if (is_of(&how->row_times[i], t) && how->row_times[i].by < by) by = how->row_times[i].by;
    for (int i = 0; how && i < how->n_row_times; i++) {
        RtRowTimeOf *r = &how->row_times[i];
        if (!is_of(r, t)) continue;
        const char *rest = r->column + n;
        bool all = !*rest && r->other;
        if (!all && (*rest != '.' || strcmp(rest + 1, column) != 0)) continue;
        r->used = true;
        if (r->by == by) said = !r->other;
    }
    return said;
}

enum { NO_TIME = -1, NO_EVENT, A_TIME, EVENT, BY_TIME, SAID };

static int rank_of(const char *name, const char *by_time) {
    if (by_time && strcmp(name, by_time) == 0) return BY_TIME;
    return is_event(name) ? EVENT : is_no_event(name) ? NO_EVENT : A_TIME;
}

/* The first of the highest rank. */
static const RtColumn *best_time(const RtTable *t, const char *by_time, RtImport *how, int *rank,
                                 const char **why) {
    static const char *const reason[] = {
        "it stands first", "it stands first that is no birth date or the like",
        "its name is an event's", "--by-time names it", "it is said to be so"};
    const RtColumn *best = NULL;
    int least = SAID;
    *rank = NO_TIME;
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        if (c->kind != RT_COL_TIME) continue;
        int said = said_of(t, c->name, how);
        int r = said < 0 ? rank_of(c->name, by_time) : said ? SAID : NO_TIME;
        if (r < least) least = r;
        if (r > *rank) *rank = r, best = c;
    }
    if (best) *why = reason[*rank == A_TIME && least == A_TIME ? 0 : *rank];
    return best;
}

const RtColumn *rt_import_time(const RtTable *t, const char *by_time, const char **why) {
    int rank;
    if (!t->time) return best_time(t, by_time, NULL, &rank, why);
    *why = t->time_why;
    return *t->time ? rt_table_column(t, t->time) : NULL;
}

const char *rt_import_other_times(RtPool *pool, const RtTable *t, const RtColumn *chosen) {
    const char *list = "";
    for (int i = 0; i < t->n_columns && list; i++)
        if (t->columns[i].kind == RT_COL_TIME && &t->columns[i] != chosen)
            list = rt_pool_printf(pool, "%s%s%s", list, *list ? ", " : "", t->columns[i].name);
    return list;
}

/* ---- row times ----------------------------------------------------------------------------- */
/* The column that says when a row of the table came to be known; NULL: it has none. */
static const RtColumn *own_row_time(const RtTable *t, const char *by_time) {
    const char *why;
    int rank;
    const RtColumn *c = best_time(t, by_time, NULL, &rank, &why);
    return rank > NO_EVENT ? c : NULL;
}

const RtColumn *rt_import_row_time(const RtTable *t, const char *by_time) {
    if (t->time && *t->time) return rt_table_column(t, t->time);
    const RtColumn *c = rt_table_column(t, RT_ROW_TIME);
    if (c && c->kind == RT_COL_TIME) return c;
    return t->time ? NULL : own_row_time(t, by_time);
}

/* Later of two times, of which either may be unknown. */
static double later(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

/* Tables without a row time of their own get the column; that of a table which refers to no dated
 * row goes again. */
static gnnc_status begin_row_times(RtDataset *d, const char *by_time, bool *derived, RtError *err) {
    for (int i = 0; i < d->n_nodes; i++) {
        RtTable *t = &d->nodes[i];
        derived[i] = !rt_import_row_time(t, by_time);
        if (!derived[i]) continue;
        if (rt_table_column(t, RT_ROW_TIME))
            return rt_fail(err, GNNC_E_FORMAT,
                           "'%s' has a column '" RT_ROW_TIME "' that is no time: that is what the "
                           "time of rows is called which have none of their own",
                           t->name);
        double *to = rt_import_reserve(&d->pool, t->count, sizeof *to, err);
        if (!to) return GNNC_E_NOMEM;
        RtColumn *c = rt_table_add_column(&d->pool, t);
        if (!c) return rt_fail_nomem(err, t->name);
        for (int64_t r = 0; r < t->count; r++) to[r] = NAN;
        *c = (RtColumn){.name = RT_ROW_TIME, .kind = RT_COL_TIME, .n_rows = t->count, .rank = 1};
        c->shape[0] = t->count;
        c->f64 = to;
        c->why = "the latest time of the rows that it refers to";
    }
    return GNNC_OK;
}

/* Later times of the edge's ends reach its sources; false: all were known there. */
static bool pull_times(const RtDataset *d, const RtTable *e, const char *by_time) {
    double *to = (double *)(uintptr_t)rt_table_column(&d->nodes[e->src_type], RT_ROW_TIME)->f64;
    const RtColumn *c = rt_import_row_time(&d->nodes[e->dst_type], by_time);
    bool changed = false;
    for (int64_t k = 0; k < e->count; k++) {
        double t = later(to[e->src[k]], c->f64[e->dst[k]]);
        if (isnan(t) || t == to[e->src[k]]) continue;
        to[e->src[k]] = t;
        changed = true;
    }
    return changed;
}

/* Drops the times that were derived for rows of which none got one. */
static void end_row_times(RtDataset *d, const bool *derived) {
    for (int i = 0; i < d->n_nodes; i++) {
        RtTable *t = &d->nodes[i];
        const RtColumn *c = &t->columns[t->n_columns - 1]; /* it was added last */
        bool dated = !derived[i];
        for (int64_t r = 0; !dated && r < t->count; r++) dated = !isnan(c->f64[r]);
        if (!dated) t->n_columns--;
    }
}

gnnc_status rt_import_row_times(RtDataset *d, const char *by_time, RtError *err) {
    enum { MOST_STEPS = 1000 };
    bool *derived = RT_NEWN(&d->pool, bool, d->n_nodes + 1), more = true;
    if (!derived) return rt_fail_nomem(err, "times");
    gnnc_status st = begin_row_times(d, by_time, derived, err);
    if (st != GNNC_OK) return st;
    for (int step = 0; more; step++) {
        more = false;
        if (step == MOST_STEPS)
            return rt_fail(err, GNNC_E_LIMIT,
                           "rows without a time refer to one another over more than %d steps: "
                           "--by-time names a column that says when they happened",
                           MOST_STEPS);
        for (int i = 0; i < d->n_edges; i++)
            if (derived[d->edges[i].src_type]) more |= pull_times(d, &d->edges[i], by_time);
    }
    end_row_times(d, derived);
    return GNNC_OK;
}

/* ---- all of it ------------------------------------------------------------------------------ */
static const char latest[] = "the latest time of the rows that it refers to";

/* Chooses the column that says when the table's rows happened; "" where they did not at any of its
 * times. */
static void choose(RtTable *t, const char *by_time, RtImport *how) {
    int rank;
    const RtColumn *c = best_time(t, by_time, how, &rank, &t->time_why);
    bool any = c != NULL;
    for (int i = 0; i < t->n_columns && !any; i++) any = t->columns[i].kind == RT_COL_TIME;
    if (rank > NO_EVENT)
        t->time = c->name;
    else if (any)
        t->time = "", t->time_why = "none says when rows happened";
}

/* Gives tables without a time that of the latest row which they refer to. */
static gnnc_status derive(RtDataset *d, RtError *err) {
    bool keys = false;
    for (int i = 0; i < d->n_edges; i++) keys |= d->edges[i].key != NULL;
    gnnc_status st = keys ? rt_import_row_times(d, NULL, err) : GNNC_OK;
    for (int i = 0; i < d->n_nodes && st == GNNC_OK; i++) {
        RtTable *t = &d->nodes[i];
        const RtColumn *c = t->time && *t->time ? NULL : rt_table_column(t, RT_ROW_TIME);
        if (c && c->kind == RT_COL_TIME) t->time = c->name, t->time_why = latest;
    }
    return st;
}

/* Tells of rows that are older than a row which they refer to, as they were there no earlier. */
static void warn_of_late_rows(const RtDataset *d, const RtTable *e, const RtImport *how) {
    const RtTable *from = &d->nodes[e->src_type], *to = &d->nodes[e->dst_type];
    const RtColumn *a = rt_import_row_time(from, NULL), *b = rt_import_row_time(to, NULL);
    int64_t n = 0, first = -1;
    char at[2][RT_DATE_TEXT];
    if (!a || !b || strcmp(a->name, RT_ROW_TIME) == 0) return;
    for (int64_t k = 0; k < e->count; k++) {
        if (!(a->f64[e->src[k]] < b->f64[e->dst[k]])) continue;
        if (n++ == 0) first = k;
    }
    if (!n) return;
    rt_import_warn(how,
                   "%s.%s: %lld rows of '%s' are older than the row that their '%s' names (%s, "
                   "which is of %s): it is not read for them; if it says when rows were written, "
                   "--row-time %s=none",
                   to->name, b->name, (long long)n, from->name, e->key,
                   rt_date_text(a->f64[e->src[first]], at[0]),
                   rt_date_text(b->f64[e->dst[first]], at[1]), to->name);
}

gnnc_status rt_import_times(RtDataset *d, const char *by_time, RtImport *how, RtError *err) {
    for (int i = 0; i < d->n_nodes; i++) choose(&d->nodes[i], by_time, how);
    for (int i = 0; i < d->n_edges; i++) choose(&d->edges[i], by_time, how);
    for (int i = 0; i < how->n_row_times; i++) {
        const RtRowTimeOf *said = &how->row_times[i];
        bool unread = how->like && said->by == RT_SAID_BY_SOURCE; /* by the model */
        if (!said->used && !unread)
            return rt_fail(err, GNNC_E_MISSING, "--row-time %s: there is no such time",
                           said->column);
    }
    gnnc_status st = derive(d, err);
    for (int i = 0; i < d->n_edges && st == GNNC_OK; i++)
        if (d->edges[i].key) warn_of_late_rows(d, &d->edges[i], how);
    return st;
}
