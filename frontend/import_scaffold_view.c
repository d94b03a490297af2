#include "import_scaffold_view.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- what messages reach ------------------------------------------------------------ */
/* Layers after which a row of `home` knows of the type; n_layers + 1: it never does. */
static void measure(const RtDataset *d, int home, int n_layers, int *far) {
    for (int i = 0; i < d->n_nodes; i++) far[i] = i == home ? 0 : n_layers + 1;
    for (int k = 0; k < n_layers; k++)
        for (int i = 0; i < d->n_edges; i++) {
            int a = d->edges[i].src_type, b = d->edges[i].dst_type;
            if (far[a] == k && far[b] > k + 1) far[b] = k + 1;
            if (far[b] == k && far[a] > k + 1) far[a] = k + 1;
        }
}

static void take_nodes(const RtDataset *d, const int *far, int n_layers, RtDataset *seen, int *at) {
    seen->n_nodes = 0;
    for (int i = 0; i < d->n_nodes; i++) {
        if (far[i] > n_layers) continue;
        at[i] = seen->n_nodes;
        seen->nodes[seen->n_nodes++] = d->nodes[i];
    }
}

/* What two of the farthest types tell each other never arrives. */
static void take_edges(const RtDataset *d, const int *far, int n_layers, RtDataset *seen,
                       const int *at) {
    seen->n_edges = 0;
    for (int i = 0; i < d->n_edges; i++) {
        RtTable t = d->edges[i];
        if (far[t.src_type] >= n_layers && far[t.dst_type] >= n_layers) continue;
        t.src_type = at[t.src_type];
        t.dst_type = at[t.dst_type];
        seen->edges[seen->n_edges++] = t;
    }
}

static const char *add_name(RtPool *pool, const char *list, const char *name) {
    return rt_pool_printf(pool, "%s%s%s", list, *list ? ", " : "", name);
}

gnnc_status scaffold_reach(RtPool *pool, const RtDataset *d, int home, int n_layers,
                           RtDataset *seen, const char **left, RtError *err) {
    int *far = RT_NEWN(pool, int, d->n_nodes + 1), *at = RT_NEWN(pool, int, d->n_nodes + 1);
    *seen = *d;
    seen->nodes = RT_NEWN(pool, RtTable, d->n_nodes + 1);
    seen->edges = RT_NEWN(pool, RtTable, d->n_edges + 1);
    *left = "";
    if (!far || !at || !seen->nodes || !seen->edges) return rt_fail_nomem(err, "scaffold");
    measure(d, home, n_layers, far);
    take_nodes(d, far, n_layers, seen, at);
    take_edges(d, far, n_layers, seen, at);
    for (int i = 0; i < d->n_nodes; i++)
        if (far[i] > n_layers && !(*left = add_name(pool, *left, d->nodes[i].name)))
            return rt_fail_nomem(err, "scaffold");
    return GNNC_OK;
}

int scaffold_hub(const RtDataset *d) {
    int best = 0, most = 0;
    for (int i = 0; i < d->n_nodes; i++) {
        int n = 0;
        for (int j = 0; j < d->n_edges; j++)
            n += (d->edges[j].src_type == i) + (d->edges[j].dst_type == i);
        if (n > most) most = n, best = i;
    }
    return best;
}

/* ---- times ---------------------------------------------------------------------------- */
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

const RtColumn *scaffold_time(const RtTable *t, const char *by_time, const char **why) {
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

const char *scaffold_other_times(RtPool *pool, const RtTable *t, const RtColumn *chosen) {
    const char *list = "";
    for (int i = 0; i < t->n_columns && list; i++)
        if (t->columns[i].kind == RT_COL_TIME && &t->columns[i] != chosen)
            list = add_name(pool, list, t->columns[i].name);
    return list;
}
