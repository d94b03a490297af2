/* What is reached without learning: the training rows' middle answer (of numbers their mean, too),
 * and of each entity (or row that is referred to) the mean of the answers that were known by then,
 * and the last of them. */
#include <math.h>
#include <stdlib.h>

#include "import_index.h"
#include "import_task.h"

typedef enum { MIDDLE, AVERAGE, MEAN, LAST } Guessed;

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Of numbers the median, of two classes the share of the second, else the class that is most often;
 * of answers in ascending order, but of two classes. */
static double middle(const double *v, int64_t n, int64_t n_classes) {
    double best = 0;
    int64_t most = 0, ones = 0;
    if (!n) return 0;
    if (!n_classes) return (v[(n - 1) / 2] + v[n / 2]) / 2;
    for (int64_t i = 0; i < n && n_classes == 2; i++) ones += v[i] == 1;
    if (n_classes == 2) return (double)ones / (double)n;
    for (int64_t i = 0; i < n;) {
        int64_t from = i;
        while (i < n && v[i] == v[from]) i++;
        if (i - from > most) most = i - from, best = v[from];
    }
    return best;
}

typedef struct {
    const RtTaskRows *rows;
    const RtTaskKey *key;
    int label;        /* the answer that is guessed now */
    double otherwise; /* where nothing is known */
    double average;   /* of the training rows */
    double *train;    /* room for their answers */
    double *sum, *last;
    int64_t *count; /* of each group */
    RtJudged *v;    /* [rows] of the part that is judged */
    RtPool *pool, *keep;
    RtTaskMade *made;
    RtError *err;
} Guess;

static double answer_of(const Guess *g, int64_t i) {
    return g->rows->answer[i * rt_task_width(g->rows) + g->label];
}

static void learn(Guess *g, int64_t i) {
    int32_t k = g->key->of[i];
    double answer = answer_of(g, i);
    if (k < 0 || isnan(answer)) return;
    g->sum[k] += answer;
    g->count[k]++;
    g->last[k] = answer;
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
        if (r->part[i] == part && !isnan(answer_of(g, i)))
            g->v[n++] = (RtJudged){answer_of(g, i), guess_of(g, i, what)};
    }
    return n;
}

/* What is known of the training rows' answers. */
static void look_at_training(Guess *g) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t i = 0; i < g->rows->n; i++)
        if (g->rows->part[i] == 1 && !isnan(answer_of(g, i)))
            sum += g->train[n++] = answer_of(g, i);
    bool two = g->rows->n_classes == 2; /* a thousand times, of as many labels */
    if (n && !two) qsort(g->train, (size_t)n, sizeof *g->train, by_number);
    g->otherwise = middle(g->train, n, g->rows->n_classes);
    g->average = n ? sum / (double)n : 0;
}

static bool fits(const Guess *g, RtJudge j) {
    bool ranks = j == RT_JUDGE_ROC_AUC || j == RT_JUDGE_AVERAGE_PRECISION;
    return g->rows->n_labels ? ranks : rt_judge_fits(j, g->rows->n_classes);
}

/* By one metric: the mean of the labels of which it can be told. */
static gnnc_status judge(Guess *g, Guessed what, RtJudge j, int part, double *out) {
    double sum = 0, known = 0, v;
    gnnc_status st = GNNC_OK;
    for (int l = 0; l < rt_task_width(g->rows) && st == GNNC_OK; l++) {
        g->label = l;
        look_at_training(g);
        int64_t n = guess_part(g, what, part);
        st = rt_judge(g->pool, j, g->v, n, g->rows->n_classes, &v, g->err);
        if (!isnan(v)) sum += v, known++;
    }
    *out = known > 0 ? sum / known : NAN;
    return st;
}

/* Its value by every metric that fits the answers. */
static gnnc_status add(Guess *g, Guessed what, const char *of, const char *its) {
    RtTaskMade *m = g->made;
    const char *name = rt_pool_printf(g->keep, "%s%.60s", of, its);
    gnnc_status st = name ? GNNC_OK : rt_fail_nomem(g->err, "baselines");
    for (int j = 0; j < RT_N_JUDGES && st == GNNC_OK; j++) {
        if (!fits(g, (RtJudge)j)) continue;
        RtBaseline *b = &m->baselines[m->n_baselines++];
        *b = (RtBaseline){name, rt_judge_name((RtJudge)j), NAN, NAN};
        TRY(st, judge(g, what, (RtJudge)j, 2, &b->val));
        TRY(st, judge(g, what, (RtJudge)j, 3, &b->test));
    }
out:
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
    bool made = (g->sum = rt_import_room(g->pool, most, sizeof *g->sum, g->err)) &&
                (g->last = rt_import_room(g->pool, most, sizeof *g->last, g->err)) &&
                (g->count = rt_import_room(g->pool, most, sizeof *g->count, g->err)) &&
                (g->v = rt_import_room(g->pool, g->rows->n + 1, sizeof *g->v, g->err)) &&
                (g->train = rt_import_room(g->pool, g->rows->n + 1, sizeof *g->train, g->err));
    if (!made) return GNNC_E_NOMEM;
    g->made->n_baselines = g->made->n_metrics = 0;
    for (int j = 0; j < RT_N_JUDGES; j++) g->made->n_metrics += fits(g, (RtJudge)j);
    g->made->baselines = RT_NEWN(g->keep, RtBaseline, g->made->n_metrics * (2 + 2 * n_keys));
    return g->made->baselines ? GNNC_OK : rt_fail_nomem(g->err, "baselines");
}

gnnc_status rt_task_guess(RtPool *pool, RtPool *keep, const RtTaskRows *rows, const RtTaskKey *keys,
                          int n_keys, RtTaskMade *made, RtError *err) {
    Guess g = {.rows = rows, .pool = pool, .keep = keep, .made = made, .err = err};
    gnnc_status st = make_room(&g, keys, n_keys);
    return st == GNNC_OK ? add_all(&g, keys, n_keys) : st;
}
