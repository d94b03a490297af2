/* What is reached without learning: the training rows' middle answer (of numbers their mean, too),
 * and of each entity (or row that is referred to) the mean of the answers that were known by then,
 * and the last of them. */
#include <math.h>
#include <stdlib.h>

#include "import_task.h"

typedef enum { MIDDLE, AVERAGE, MEAN, LAST } Guessed;

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Of numbers the median, of two classes the share of the second, else the class that is most often;
 * of answers in ascending order. */
static double middle(const double *v, int64_t n, int64_t n_classes) {
    double best = 0, share = 0;
    int64_t most = 0;
    if (!n) return 0;
    if (!n_classes) return (v[(n - 1) / 2] + v[n / 2]) / 2;
    for (int64_t i = 0; i < n;) {
        int64_t from = i;
        while (i < n && v[i] == v[from]) i++;
        if (v[from] == 1) share = (double)(i - from) / (double)n;
        if (i - from > most) most = i - from, best = v[from];
    }
    return n_classes == 2 ? share : best;
}

typedef struct {
    const RtTaskRows *rows;
    const RtTaskKey *key;
    double otherwise; /* where nothing is known */
    double average;   /* of the training rows */
    double *sum, *last;
    int64_t *count; /* of each group */
    RtJudged *v;    /* [rows] of the part that is judged */
    RtPool *pool, *keep;
    RtTaskMade *made;
    RtError *err;
} Guess;

static void learn(Guess *g, int64_t i) {
    int32_t k = g->key->of[i];
    if (k < 0) return;
    g->sum[k] += g->rows->answer[i];
    g->count[k]++;
    g->last[k] = g->rows->answer[i];
}

static bool learns(Guessed what) {
    return what == MEAN || what == LAST;
}

static double guess_of(const Guess *g, int64_t i, Guessed what) {
    int32_t k = learns(what) ? g->key->of[i] : -1;
    if (what == AVERAGE) return g->average;
    if (k < 0 || !g->count[k]) return g->otherwise;
    return what == LAST ? g->last[k] : g->sum[k] / (double)g->count[k];
}

/* Row j's answer is known when row i is asked for.  Without times, training rows are. */
static bool is_known(const RtTaskRows *r, int64_t j, int64_t i) {
    if (!r->time) return r->part[j] == 1;
    if (r->window > 0) return r->time[j] + r->window <= r->time[i];
    return r->time[j] < r->time[i];
}

/* Fills v with the rows of a part, in their order; how many there are. */
static int64_t guess_part(Guess *g, Guessed what, int part) {
    const RtTaskRows *r = g->rows;
    int64_t n = 0, known = 0;
    bool knows = learns(what);
    for (int64_t k = 0; knows && k < g->key->n; k++) g->sum[k] = 0, g->count[k] = 0;
    for (int64_t j = 0; knows && !r->time && j < r->n; j++)
        if (is_known(r, j, 0)) learn(g, j);
    for (int64_t i = 0; i < r->n; i++) {
        while (knows && r->time && known < i && is_known(r, known, i)) learn(g, known++);
        if (r->part[i] == part) g->v[n++] = (RtJudged){r->answer[i], guess_of(g, i, what)};
    }
    return n;
}

/* Its value by every metric that fits the answers. */
static gnnc_status add(Guess *g, Guessed what, const char *of, const char *its) {
    RtTaskMade *m = g->made;
    const int64_t n_classes = g->rows->n_classes;
    RtBaseline *to = &m->baselines[m->n_baselines];
    const char *name = rt_pool_printf(g->keep, "%s%.60s", of, its);
    gnnc_status st = name ? GNNC_OK : rt_fail_nomem(g->err, "baselines");
    for (int part = 2; part <= 3; part++) {
        int64_t n = guess_part(g, what, part);
        for (int j = 0, k = 0; j < RT_N_JUDGES && st == GNNC_OK; j++) {
            if (!rt_judge_fits((RtJudge)j, n_classes)) continue;
            RtBaseline *b = &to[k++];
            b->name = name;
            b->metric = rt_judge_name((RtJudge)j);
            st = rt_judge(g->pool, (RtJudge)j, g->v, n, n_classes, part == 2 ? &b->val : &b->test,
                          g->err);
        }
    }
    m->n_baselines += m->n_metrics;
    return st;
}

static gnnc_status add_all(Guess *g, const RtTaskKey *keys, int n_keys) {
    const int64_t n_classes = g->rows->n_classes;
    gnnc_status st;
    TRY(st, add(g, MIDDLE, n_classes ? "most frequent of all" : "median of all", ""));
    if (!n_classes) TRY(st, add(g, AVERAGE, "mean of all", ""));
    for (int k = 0; k < n_keys; k++) {
        g->key = &keys[k];
        if (n_classes <= 2) TRY(st, add(g, MEAN, "mean of its ", keys[k].name));
        TRY(st, add(g, LAST, "last of its ", keys[k].name));
    }
out:
    return st;
}

static gnnc_status make_room(Guess *g, const RtTaskKey *keys, int n_keys) {
    int64_t most = 1;
    for (int k = 0; k < n_keys; k++)
        if (keys[k].n > most) most = keys[k].n;
    g->sum = RT_NEWN(g->pool, double, most);
    g->last = RT_NEWN(g->pool, double, most);
    g->count = RT_NEWN(g->pool, int64_t, most);
    g->v = RT_NEWN(g->pool, RtJudged, g->rows->n + 1);
    g->made->n_baselines = g->made->n_metrics = 0;
    for (int j = 0; j < RT_N_JUDGES; j++)
        g->made->n_metrics += rt_judge_fits((RtJudge)j, g->rows->n_classes);
    g->made->baselines = RT_NEWN(g->keep, RtBaseline, g->made->n_metrics * (2 + 2 * n_keys));
    bool made = g->sum && g->last && g->count && g->v && g->made->baselines;
    return made ? GNNC_OK : rt_fail_nomem(g->err, "baselines");
}

gnnc_status rt_task_guess(RtPool *pool, RtPool *keep, const RtTaskRows *rows, const RtTaskKey *keys,
                          int n_keys, RtTaskMade *made, RtError *err) {
    int64_t n = 0;
    Guess g = {.rows = rows, .pool = pool, .keep = keep, .made = made, .err = err};
    gnnc_status st = make_room(&g, keys, n_keys);
    double *train = RT_NEWN(pool, double, rows->n + 1), sum = 0;
    if (st == GNNC_OK && !train) st = rt_fail_nomem(err, "baselines");
    if (st != GNNC_OK) return st;
    for (int64_t i = 0; i < rows->n; i++)
        if (rows->part[i] == 1) sum += train[n++] = rows->answer[i];
    if (n) qsort(train, (size_t)n, sizeof *train, by_number);
    g.otherwise = middle(train, n, rows->n_classes);
    g.average = n ? sum / (double)n : 0;
    return add_all(&g, keys, n_keys);
}
