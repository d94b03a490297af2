/* What is reached without learning: the training rows' middle answer, and of each entity (or row
 * that is referred to) the mean of the answers that were known by then, and the last of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_task.h"

enum { MIDDLE, MEAN, LAST };

typedef struct {
    double answer, guess;
    int8_t part;
} Judged;

static int by_guess(const void *x, const void *y) {
    double a = ((const Judged *)x)->guess, b = ((const Judged *)y)->guess;
    return (a > b) - (a < b);
}

/* Area under the ROC curve: the chance that a row of class 1 has the larger guess, ties half. */
static double roc_auc(Judged *v, int64_t n) {
    double below = 0, pairs = 0, ones = 0;
    qsort(v, (size_t)n, sizeof *v, by_guess);
    for (int64_t i = 0; i < n;) {
        double one = 0, zero = 0;
        int64_t from = i;
        for (; i < n && v[i].guess == v[from].guess; i++) {
            one += v[i].answer == 1;
            zero += v[i].answer == 0;
        }
        pairs += one * (below + zero / 2);
        below += zero;
        ones += one;
    }
    return ones > 0 && below > 0 ? pairs / (ones * below) : NAN;
}

static double judge(Judged *v, int64_t n, int64_t n_classes) {
    double sum = 0;
    if (!n) return NAN;
    if (n_classes == 2) return roc_auc(v, n);
    for (int64_t i = 0; i < n; i++)
        sum += n_classes ? v[i].guess == v[i].answer : fabs(v[i].guess - v[i].answer);
    return sum / (double)n;
}

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
    double *sum, *last;
    int64_t *count; /* of each group */
    Judged *v;      /* [rows] of the part that is judged */
} Guess;

static void learn(Guess *g, int64_t i) {
    int32_t k = g->key->of[i];
    if (k < 0) return;
    g->sum[k] += g->rows->answer[i];
    g->count[k]++;
    g->last[k] = g->rows->answer[i];
}

static double guess_of(const Guess *g, int64_t i, int what) {
    int32_t k = what == MIDDLE ? -1 : g->key->of[i];
    if (k < 0 || !g->count[k]) return g->otherwise;
    return what == LAST ? g->last[k] : g->sum[k] / (double)g->count[k];
}

/* Row j's answer is known when row i is asked for.  Without times, training rows are. */
static bool is_known(const RtTaskRows *r, int64_t j, int64_t i) {
    if (!r->time) return r->part[j] == 1;
    if (r->window > 0) return r->time[j] + r->window <= r->time[i];
    return r->time[j] < r->time[i];
}

static double run(Guess *g, int what, int part) {
    const RtTaskRows *r = g->rows;
    int64_t n = 0, known = 0;
    bool learns = what != MIDDLE;
    for (int64_t k = 0; learns && k < g->key->n; k++) g->sum[k] = 0, g->count[k] = 0;
    for (int64_t j = 0; learns && !r->time && j < r->n; j++)
        if (is_known(r, j, 0)) learn(g, j);
    for (int64_t i = 0; i < r->n; i++) {
        while (learns && r->time && known < i && is_known(r, known, i)) learn(g, known++);
        if (r->part[i] == part)
            g->v[n++] = (Judged){r->answer[i], guess_of(g, i, what), r->part[i]};
    }
    return judge(g->v, n, r->n_classes);
}

static void add(Guess *g, int what, const char *name, RtTaskMade *made) {
    if (made->n_guesses == RT_TASK_GUESSES) return;
    RtTaskGuess *to = &made->guess[made->n_guesses++];
    snprintf(to->name, sizeof to->name, "%s", name);
    to->val = run(g, what, 2);
    to->test = run(g, what, 3);
}

gnnc_status rt_task_guess(RtPool *pool, const RtTaskRows *rows, const RtTaskKey *keys, int n_keys,
                          RtTaskMade *made, RtError *err) {
    int64_t most = 1, n = 0;
    for (int k = 0; k < n_keys; k++)
        if (keys[k].n > most) most = keys[k].n;
    Guess g = {.rows = rows};
    g.sum = RT_NEWN(pool, double, most);
    g.last = RT_NEWN(pool, double, most);
    g.count = RT_NEWN(pool, int64_t, most);
    g.v = RT_NEWN(pool, Judged, rows->n + 1);
    double *train = RT_NEWN(pool, double, rows->n + 1);
    if (!g.sum || !g.last || !g.count || !g.v || !train) return rt_fail_nomem(err, "task");
    for (int64_t i = 0; i < rows->n; i++)
        if (rows->part[i] == 1) train[n++] = rows->answer[i];
    if (n) qsort(train, (size_t)n, sizeof *train, by_number);
    g.otherwise = middle(train, n, rows->n_classes);
    made->metric = rows->n_classes == 2 ? "roc_auc" : rows->n_classes ? "accuracy" : "mae";
    made->n_guesses = 0;
    add(&g, MIDDLE, !rows->n_classes ? "median of all" : "most frequent of all", made);
    for (int k = 0; k < n_keys; k++) {
        char name[96];
        g.key = &keys[k];
        snprintf(name, sizeof name, "mean of its %.60s", keys[k].name);
        if (rows->n_classes <= 2) add(&g, MEAN, name, made);
        snprintf(name, sizeof name, "last of its %.60s", keys[k].name);
        add(&g, LAST, name, made);
    }
    return GNNC_OK;
}
