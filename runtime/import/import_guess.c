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

/* The median of numbers, the share of the second of two classes, else the most frequent class.
 * Answers v[n] ascend, but those of two classes need not. */
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

enum { BLOCK = 16, N_PARTS = 2 /* validation and test */ };

typedef struct {
    const RtTaskRows *rows;
    const RtTaskKey *key;
    double *block; /* [BLOCK][rows] answers by labels: rows lie label by label behind one another */
    double *answer;   /* [rows] to the label that is guessed now */
    double otherwise; /* where nothing is known */
    double average;   /* of the training rows */
    double *train;    /* room for their answers */
    double *sum, *last;
    int64_t *count;         /* of each group */
    RtEvalPair *v[N_PARTS]; /* [rows] of a part that is judged */
    double *total, *known;  /* [2 * baselines] over labels of which a metric can be told */
    RtPool *pool, *keep;
    RtTaskMade *made;
    RtError *err;
} Guess;

/* Adds the answer of row i to what is known of its key. */
static void learn(Guess *g, int64_t i) {
    int32_t k = g->key->of[i];
    double answer = g->answer[i];
    if (k < 0 || isnan(answer)) return;
    g->sum[k] += answer;
    g->count[k]++;
    g->last[k] = answer;
}

static bool learns(Guessed what) {
    return what == MEAN || what == LAST;
}

/* The guess for row i: by what is known of its key, else of all rows. */
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

/* Fills v with the rows of both parts, in their order; n: how many there are. */
static void guess_parts(Guess *g, Guessed what, int64_t n[N_PARTS]) {
    const RtTaskRows *r = g->rows;
    int64_t known = 0;
    bool knows = learns(what);
    n[0] = n[1] = 0;
    for (int64_t k = 0; knows && k < g->key->n; k++) g->sum[k] = 0, g->count[k] = 0;
    for (int64_t j = 0; knows && !r->time && j < r->n; j++)
        if (is_known(r, j, 0)) learn(g, j);
    for (int64_t i = 0; i < r->n; i++) {
        while (knows && r->time && known < i && is_known(r, known, i)) learn(g, known++);
        if (r->part[i] < 2 || isnan(g->answer[i])) continue;
        int p = r->part[i] - 2;
        g->v[p][n[p]++] = (RtEvalPair){g->answer[i], guess_of(g, i, what)};
    }
}

/* Computes the mean and the middle of the training rows' answers. */
static void look_at_training(Guess *g) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t i = 0; i < g->rows->n; i++)
        if (g->rows->part[i] == 1 && !isnan(g->answer[i])) sum += g->train[n++] = g->answer[i];
    bool two = g->rows->n_classes == 2; /* a thousand times, of as many labels */
    if (n && !two) qsort(g->train, (size_t)n, sizeof *g->train, by_number);
    g->otherwise = middle(g->train, n, g->rows->n_classes);
    g->average = n ? sum / (double)n : 0;
}

static bool fits(const Guess *g, RtEvalMetric j) {
    bool ranks = j == RT_EVAL_ROC_AUC || j == RT_EVAL_AVERAGE_PRECISION;
    return g->rows->n_labels ? ranks : rt_eval_metric_fits(j, g->rows->n_classes);
}

/* One label's part in the baselines from number `at` on, one for each metric that fits. */
static gnnc_status judge(Guess *g, Guessed what, const char *of, const char *its, int at) {
    int64_t n[N_PARTS];
    gnnc_status st = GNNC_OK;
    (void)of, (void)its;
    guess_parts(g, what, n);
    for (int j = 0; j < RT_N_EVAL_METRICS; j++) {
        if (!fits(g, (RtEvalMetric)j)) continue;
        for (int p = 0; p < N_PARTS; p++) {
            double v;
            TRY(st, rt_eval_metric(g->pool, (RtEvalMetric)j, g->v[p], n[p], g->rows->n_classes, &v,
                                   g->err));
            if (isnan(v)) continue;
            g->total[N_PARTS * at + p] += v;
            g->known[N_PARTS * at + p]++;
        }
        at++;
    }
out:
    return st;
}

/* Adds a baseline of the guess for every metric that fits the answers. */
static gnnc_status name(Guess *g, Guessed what, const char *of, const char *its, int at) {
    RtTaskMade *m = g->made;
    const char *name = rt_pool_printf(g->keep, "%s%.60s", of, its);
    (void)what, (void)at;
    if (!name) return rt_fail_nomem(g->err, "baselines");
    for (int j = 0; j < RT_N_EVAL_METRICS; j++)
        if (fits(g, (RtEvalMetric)j))
            m->baselines[m->n_baselines++] =
                (RtBaseline){name, rt_eval_metric_name((RtEvalMetric)j), NAN, NAN};
    return GNNC_OK;
}

/* The guesses that there are, one after another. */
typedef gnnc_status GuessFn(Guess *g, Guessed what, const char *of, const char *its, int at);

/* Calls fn for each way to guess: of all rows, then by each key. */
static gnnc_status each_guess(Guess *g, const RtTaskKey *keys, int n_keys, GuessFn *fn) {
    const int64_t n_classes = g->rows->n_classes;
    int at = 0, step = g->made->n_metrics;
    gnnc_status st;
    TRY(st, fn(g, MIDDLE, n_classes ? "most frequent of all" : "median of all", "", at));
    if (!n_classes) TRY(st, fn(g, AVERAGE, "mean of all", "", at += step));
    for (int k = 0; k < n_keys; k++) {
        g->key = &keys[k];
        if (n_classes <= 2) TRY(st, fn(g, MEAN, "mean of its ", keys[k].name, at += step));
        TRY(st, fn(g, LAST, "last of its ", keys[k].name, at += step));
    }
out:
    return st;
}

/* A row's answers to all labels lie together, a thousand of them; so some labels' are taken out in
 * one pass, and each is guessed in passes over what is its own. */
static void take_block(Guess *g, int first, int n) {
    const RtTaskRows *r = g->rows;
    const int width = rt_task_width(r);
    for (int64_t i = 0; i < r->n; i++)
        for (int l = 0; l < n; l++) g->block[l * r->n + i] = r->answer[i * width + first + l];
}

/* Judges all guesses, a few labels at a time as room is for so many; metrics are means over
 * labels. */
static gnnc_status guess_labels(Guess *g, const RtTaskKey *keys, int n_keys) {
    const int width = rt_task_width(g->rows);
    gnnc_status st = GNNC_OK;
    for (int first = 0; first < width; first += BLOCK) {
        int n = width - first < BLOCK ? width - first : BLOCK;
        take_block(g, first, n);
        for (int l = 0; l < n; l++) {
            g->answer = g->block + l * g->rows->n;
            look_at_training(g);
            TRY(st, each_guess(g, keys, n_keys, judge));
        }
    }
    for (int i = 0; i < g->made->n_baselines; i++) {
        RtBaseline *b = &g->made->baselines[i];
        if (g->known[N_PARTS * i] > 0) b->val = g->total[N_PARTS * i] / g->known[N_PARTS * i];
        if (g->known[N_PARTS * i + 1] > 0)
            b->test = g->total[N_PARTS * i + 1] / g->known[N_PARTS * i + 1];
    }
out:
    return st;
}

/* Allocates what guessing needs: numbers for each value of the largest key, and for each row. */
static gnnc_status make_room(Guess *g, const RtTaskKey *keys, int n_keys) {
    const int64_t n = g->rows->n;
    const int width = rt_task_width(g->rows), block = width < BLOCK ? width : BLOCK;
    int64_t most = 1;
    for (int k = 0; k < n_keys; k++)
        if (keys[k].n > most) most = keys[k].n;
    bool made =
        (g->sum = rt_import_reserve(g->pool, most, sizeof *g->sum, g->err)) &&
        (g->last = rt_import_reserve(g->pool, most, sizeof *g->last, g->err)) &&
        (g->count = rt_import_reserve(g->pool, most, sizeof *g->count, g->err)) &&
        (g->v[0] = rt_import_reserve(g->pool, n + 1, sizeof *g->v[0], g->err)) &&
        (g->v[1] = rt_import_reserve(g->pool, n + 1, sizeof *g->v[1], g->err)) &&
        (g->block = rt_import_reserve(g->pool, n + 1, sizeof *g->block * (size_t)block, g->err)) &&
        (g->train = rt_import_reserve(g->pool, n + 1, sizeof *g->train, g->err));
    if (!made) return GNNC_E_NOMEM;
    g->made->n_baselines = g->made->n_metrics = 0;
    for (int j = 0; j < RT_N_EVAL_METRICS; j++) g->made->n_metrics += fits(g, (RtEvalMetric)j);
    const int n_guesses = 2 + 2 * n_keys;
    g->made->baselines = RT_NEWN(g->keep, RtBaseline, g->made->n_metrics * n_guesses);
    g->total = RT_NEWN(g->pool, double, N_PARTS * g->made->n_metrics * n_guesses);
    g->known = RT_NEWN(g->pool, double, N_PARTS * g->made->n_metrics * n_guesses);
    bool all = g->made->baselines && g->total && g->known;
    return all ? GNNC_OK : rt_fail_nomem(g->err, "baselines");
}

gnnc_status rt_task_guess(RtPool *pool, RtPool *keep, const RtTaskRows *rows, const RtTaskKey *keys,
                          int n_keys, RtTaskMade *made, RtError *err) {
    Guess g = {.rows = rows, .pool = pool, .keep = keep, .made = made, .err = err};
    gnnc_status st;
    TRY(st, make_room(&g, keys, n_keys));
    TRY(st, each_guess(&g, keys, n_keys, name));
    st = guess_labels(&g, keys, n_keys);
out:
    return st;
}
