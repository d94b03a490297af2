#include "import_time.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- which of several times -------------------------------------------------------------- */
/* The length of the first word of a name: "birth" of "birth_date", "Birth" of "BirthDate". */
static size_t word_length(const char *s) {
    size_t n = 0;
    while (isupper((unsigned char)s[n])) n++;
    if (n > 1) return n; /* "DOB" */
    while (s[n] && s[n] != '_' && !isupper((unsigned char)s[n])) n++;
    return n;
}

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

static bool is_event(const char *name) {
    static const char *const whole[] = {"t", "time", "timestamp", "date"};
    static const char *const words[] = {"created", "create", "event", NULL};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcasecmp(name, whole[i]) == 0) return true;
    return has_word(name, words);
}

/* Before or after the row was known: what happened to a person, what is planned, what came last. */
static bool is_no_event(const char *name) {
    static const char *const words[] = {
        "birth", "birthday", "birthdate", "dob",     "born",     "death",        "died",
        "due",   "deadline", "required",  "planned", "expiry",   "expires",      "expiration",
        "last",  "update",   "updated",   "changed", "modified", "modification", NULL};
    return has_word(name, words);
}

static int rank_of(const char *name, const char *by_time) {
    if (by_time && strcmp(name, by_time) == 0) return 3;
    return is_event(name) ? 2 : !is_no_event(name);
}

const RtColumn *rt_import_time(const RtTable *t, const char *by_time, const char **why) {
    static const char *const reason[] = {"it stands first",
                                         "it stands first that is no birth date or the like",
                                         "its name is an event's", "--by-time names it"};
    const RtColumn *best = NULL;
    int most = -1, least = 3;
    for (int i = 0; i < t->n_columns; i++) {
        if (t->columns[i].kind != RT_COL_TIME) continue;
        int rank = rank_of(t->columns[i].name, by_time);
        if (rank < least) least = rank;
        if (rank > most) most = rank, best = &t->columns[i];
    }
    if (best) *why = reason[most == 1 && least == 1 ? 0 : most];
    return best;
}

const char *rt_import_other_times(RtPool *pool, const RtTable *t, const RtColumn *chosen) {
    const char *list = "";
    for (int i = 0; i < t->n_columns && list; i++)
        if (t->columns[i].kind == RT_COL_TIME && &t->columns[i] != chosen)
            list = rt_pool_printf(pool, "%s%s%s", list, *list ? ", " : "", t->columns[i].name);
    return list;
}

/* ---- row times ----------------------------------------------------------------------------- */
static const RtColumn *own_row_time(const RtTable *t, const char *by_time) {
    const char *why;
    const RtColumn *c = rt_import_time(t, by_time, &why);
    return c && rank_of(c->name, by_time) > 0 ? c : NULL;
}

const RtColumn *rt_import_row_time(const RtTable *t, const char *by_time) {
    const RtColumn *c = rt_table_column(t, RT_ROW_TIME);
    return c && c->kind == RT_COL_TIME ? c : own_row_time(t, by_time);
}

/* Later of two times, of which either may be unknown. */
static double later(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

/* The latest time of the rows that each row refers to; NULL: none of these tables has one. */
static gnnc_status latest(RtDataset *d, int type, const char *by_time, double **out, RtError *err) {
    double *to = NULL;
    *out = NULL;
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *e = &d->edges[i];
        const RtColumn *c = rt_import_row_time(&d->nodes[e->dst_type], by_time);
        if (e->src_type != type || e->dst_type == type || !c) continue;
        if (!to) {
            to = RT_NEWN(&d->pool, double, d->nodes[type].count);
            if (!to) return rt_fail_nomem(err, d->nodes[type].name);
            for (int64_t r = 0; r < d->nodes[type].count; r++) to[r] = NAN;
        }
        for (int64_t k = 0; k < e->count; k++)
            to[e->src[k]] = later(to[e->src[k]], c->f64[e->dst[k]]);
    }
    *out = to;
    return GNNC_OK;
}

gnnc_status rt_import_row_times(RtDataset *d, const char *by_time, RtError *err) {
    bool more = true;
    for (int round = 0; more && round < d->n_nodes; round++) {
        more = false;
        for (int i = 0; i < d->n_nodes; i++) {
            RtTable *t = &d->nodes[i];
            double *to;
            if (rt_import_row_time(t, by_time)) continue;
            gnnc_status st = latest(d, i, by_time, &to, err);
            if (st != GNNC_OK) return st;
            if (!to) continue;
            RtColumn *c = rt_table_add_column(&d->pool, t);
            if (!c) return rt_fail_nomem(err, t->name);
            *c =
                (RtColumn){.name = RT_ROW_TIME, .kind = RT_COL_TIME, .n_rows = t->count, .rank = 1};
            c->shape[0] = t->count;
            c->f64 = to;
            c->why = "the latest time of the rows that it refers to";
            more = true;
        }
    }
    return GNNC_OK;
}
