/* What is reached without learning where items are ranked: the most popular ones, of training's
 * answers and of the last window's rows; and for each entity those it had to do with, the latest or
 * the most frequent first, then the popular ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import_task_impl.h"

typedef enum { OF_ALL, LATELY, LATEST, MOST_FREQUENT, N_GUESSES } Guessed;
enum { MAP, PRECISION, RECALL, N_METRICS };

typedef struct {
    double time, count;
    int32_t item;
} Seen;

typedef struct {
    RtTask *t;
    int top, n_guesses; /* without events the first alone */
    int64_t n_items, n_events;
    Seen *event;         /* [n_events] of all entities, by time */
    double *trained;     /* [n_items] in how many lists to learn from */
    double *lately;      /* [n_items] rows of the window before the time that is asked at */
    int64_t first, next; /* events in that window */
    int32_t *popular[2]; /* [2 top] the best of both, the best first; -1: no more */
    Seen *own;           /* room for an entity's */
    int32_t *list;       /* [top] the guess */
    bool *taken;         /* [n_items] */
} Guess;

/* Sorts events by time, those of one time by item. */
static int by_time(const void *x, const void *y) {
    const Seen *a = x, *b = y;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

/* Sorts events by item, those of one item by time. */
static int by_item(const void *x, const void *y) {
    const Seen *a = x, *b = y;
    if (a->item != b->item) return a->item < b->item ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

/* The best first; of equal ones the other number, then the lower item. */
static int by_latest(const void *x, const void *y) {
    const Seen *a = x, *b = y;
    if (a->time != b->time) return a->time > b->time ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static int by_count(const void *x, const void *y) {
    const Seen *a = x, *b = y;
    return a->count != b->count ? (a->count > b->count ? -1 : 1) : by_latest(x, y);
}

/* ---- what there was ----------------------------------------------------------------------- */
/* Allocates what guessing lists of items needs. */
static gnnc_status make_room(Guess *g) {
    RtTask *t = g->t;
    int64_t n = t->lists.asked ? t->lists.asked->rows->ptr[t->entity->count] : 0;
    g->n_items = t->lists.of->count;
    g->event = RT_NEWN(t->pool, Seen, n + 1);
    g->own = RT_NEWN(t->pool, Seen, n + 1);
    g->trained = RT_NEWN(t->pool, double, g->n_items + 1);
    g->lately = RT_NEWN(t->pool, double, g->n_items + 1);
    g->popular[0] = RT_NEWN(t->pool, int32_t, 2 * g->top);
    g->popular[1] = RT_NEWN(t->pool, int32_t, 2 * g->top);
    g->list = RT_NEWN(t->pool, int32_t, g->top);
    g->taken = RT_NEWN(t->pool, bool, g->n_items + 1);
    t->made->baselines = RT_NEWN(&t->d->pool, RtBaseline, N_GUESSES * N_METRICS);
    bool made = g->event && g->own && g->trained && g->lately && g->popular[0] && g->popular[1] &&
                g->list && g->taken && t->made->baselines;
    return made ? GNNC_OK : rt_fail_nomem(t->err, "baselines");
}

/* Lists all events of items by time, and counts how often each item is an answer of a row that is
 * learned from. */
static void find_events(Guess *g) {
    const RtTask *t = g->t;
    const RtQueryRows *r = t->lists.asked ? t->lists.asked->rows : NULL;
    for (int64_t i = 0; r && i < r->ptr[t->entity->count]; i++)
        if (r->refers[r->row[i]] >= 0)
            g->event[g->n_events++] = (Seen){r->time[i], 1, r->refers[r->row[i]]};
    if (g->n_events) qsort(g->event, (size_t)g->n_events, sizeof *g->event, by_time);
    for (int64_t row = 0, i = 0; row < t->rows.n; row++)
        for (; i < t->lists.end[row]; i++)
            if (t->rows.part[row] == 1) g->trained[t->lists.item[i]]++;
}

/* The best 2 top items: as many stay when those are left out that the entity had. */
static void find_popular(const Guess *g, const double *count, int32_t *best) {
    int n = 0, most = 2 * g->top;
    for (int64_t i = 0; i < g->n_items; i++) {
        int at = n;
        if (!count[i]) continue;
        while (at > 0 && count[best[at - 1]] < count[i]) at--;
        if (at == most) continue;
        if (n < most) n++;
        memmove(best + at + 1, best + at, (size_t)(n - 1 - at) * sizeof *best);
        best[at] = (int32_t)i;
    }
    for (; n < most; n++) best[n] = -1;
}

/* Times that are asked at ascend. */
static void move_to(Guess *g, double at) {
    double from = at - g->t->made->window;
    for (; g->next < g->n_events && g->event[g->next].time <= at; g->next++)
        g->lately[g->event[g->next].item]++;
    for (; g->first < g->next && g->event[g->first].time <= from; g->first++)
        g->lately[g->event[g->first].item]--;
    find_popular(g, g->lately, g->popular[1]);
}

/* ---- guesses -------------------------------------------------------------------------------- */
/* Items of the entity up to the time, each once: its last time, and how often. */
static int64_t find_own(Guess *g, int64_t row) {
    const RtTask *t = g->t;
    const RtQueryRows *r = t->lists.asked->rows;
    int32_t entity = t->rows.entity[row];
    int64_t n = 0, kept = 0;
    for (int64_t i = r->ptr[entity]; i < r->ptr[entity + 1]; i++)
        if (r->time[i] <= t->rows.time[row] && r->refers[r->row[i]] >= 0)
            g->own[n++] = (Seen){r->time[i], 1, r->refers[r->row[i]]};
    if (n) qsort(g->own, (size_t)n, sizeof *g->own, by_item);
    for (int64_t i = 0; i < n; i++) {
        if (kept && g->own[kept - 1].item == g->own[i].item) {
            g->own[kept - 1].time = g->own[i].time;
            g->own[kept - 1].count++;
        } else {
            g->own[kept++] = g->own[i];
        }
    }
    return kept;
}

/* How many of the list there are. */
static int guess(Guess *g, Guessed what, int64_t row) {
    int64_t n_own = what >= LATEST ? find_own(g, row) : 0;
    const int32_t *popular = g->popular[what != OF_ALL];
    int n = 0;
    if (n_own) qsort(g->own, (size_t)n_own, sizeof *g->own, what == LATEST ? by_latest : by_count);
    for (int64_t i = 0; i < n_own && n < g->top; i++) g->list[n++] = g->own[i].item;
    for (int i = 0; i < n; i++) g->taken[g->list[i]] = true;
    int own = n;
    for (int i = 0; i < 2 * g->top && popular[i] >= 0 && n < g->top; i++)
        if (!g->taken[popular[i]]) g->list[n++] = popular[i];
    for (int i = 0; i < own; i++) g->taken[g->list[i]] = false;
    return n;
}

/* Is v among the items, which are sorted? */
static bool is_answer(const int32_t *item, int64_t n, int32_t v) {
    int64_t a = 0, b = n;
    while (a < b) {
        int64_t mid = a + (b - a) / 2;
        if (item[mid] < v)
            a = mid + 1;
        else
            b = mid;
    }
    return a < n && item[a] == v;
}

/* Adds the metrics of a guessed list for a row to `sum`, as models/layers/links.gnn computes
 * them. */
static void judge(const Guess *g, int64_t row, int n, double sum[N_METRICS]) {
    const RtTaskLists *l = &g->t->lists;
    int64_t from = row ? l->end[row - 1] : 0, n_true = l->end[row] - from;
    double hits = 0, precisions = 0;
    for (int i = 0; i < n; i++)
        if (is_answer(l->item + from, n_true, g->list[i])) precisions += ++hits / (i + 1);
    sum[MAP] += precisions / (double)(n_true < g->top ? n_true : g->top);
    sum[PRECISION] += hits / g->top;
    sum[RECALL] += hits / (double)n_true;
}

/* ---- all of them ---------------------------------------------------------------------------- */
/* Judges all guesses on the rows of validation and test, in order of time; mean gets their
 * metrics. */
static void judge_all(Guess *g, double mean[2][N_GUESSES][N_METRICS]) {
    const RtTaskRows *r = &g->t->rows;
    double n[2] = {0}, at = NAN;
    for (int64_t i = 0; i < r->n; i++) {
        if (r->part[i] < 2) continue;
        if (r->time[i] != at) move_to(g, at = r->time[i]);
        n[r->part[i] - 2]++;
        for (int k = 0; k < g->n_guesses; k++)
            judge(g, i, guess(g, (Guessed)k, i), mean[r->part[i] - 2][k]);
    }
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < N_GUESSES; k++)
            for (int m = 0; m < N_METRICS; m++) mean[p][k][m] /= n[p]; /* none: NaN */
}

gnnc_status rt_task_guess_items(RtTask *t) {
    static const char *const metric[] = {
        [MAP] = "map", [PRECISION] = "precision", [RECALL] = "recall"};
    static const char *const name[] = {[OF_ALL] = "most popular of all",
                                       [LATELY] = "most popular in the last window",
                                       [LATEST] = "latest of its ",
                                       [MOST_FREQUENT] = "most frequent of its "};
    double mean[2][N_GUESSES][N_METRICS] = {0};
    Guess g = {.t = t, .top = t->q.top, .n_guesses = t->lists.asked ? N_GUESSES : 1};
    RtTaskMade *m = t->made;
    gnnc_status st = make_room(&g);
    if (st != GNNC_OK) return st;
    find_events(&g);
    find_popular(&g, g.trained, g.popular[0]);
    judge_all(&g, mean);
    m->n_metrics = N_METRICS;
    m->n_baselines = g.n_guesses * N_METRICS;
    for (int k = 0; k < g.n_guesses; k++) {
        const char *of = k >= LATEST ? t->entity->name : "";
        const char *called = rt_pool_printf(&t->d->pool, "%s%.60s", name[k], of);
        if (!called) return rt_fail_nomem(t->err, "baselines");
        for (int i = 0; i < N_METRICS; i++)
            m->baselines[k * N_METRICS + i] =
                (RtBaseline){called, metric[i], mean[0][k][i], mean[1][k][i]};
    }
    return GNNC_OK;
}
