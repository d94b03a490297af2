/* Which way of running this program is the fastest here: measured, not modelled.
 *
 * The ways take turns, a few steps each, so that a disturbance of the machine falls on
 * all of them; the lower quartile of a way's times is compared, since disturbances only
 * add.  A way with more threads must win by some per cent. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/graph/graph.h"
#include "runtime/clock.h"
#include "tuned.h"
#include "runtime/variant.h"
#include "runtime/exec/machine.h"

enum { MAX_WAYS = 48, MAX_SAMPLES = 60, STEPS_PER_TURN = 3 };

typedef struct {
    RtChoice c;
    int n;
    double s[MAX_SAMPLES];
} Way;

typedef struct {
    gnnc_trainer *t;
    const char *phase;
    Way *way;
    int n;
    double until;
} Tune;

/* Every number of threads on small machines, powers of two and all of them on large ones. */
static int next_threads(int n, int cores) {
    int next = cores <= 8 ? n + 1 : 2 * n;
    return n < cores && next > cores ? cores : next;
}

/* The configurations to try: numbers of threads, and limits below which a step is run by one. With
 * a single thread there is no such limit. */
static void list_candidates(Tune *u, int cores) {
    static const int64_t limits[] = {0, 5000, RT_SERIAL_NS, 80000, 320000};
    for (int n = 1; n <= cores; n = next_threads(n, cores))
        for (size_t i = 0; i < sizeof limits / sizeof *limits && u->n < MAX_WAYS; i++) {
            if (n == 1 && limits[i] != RT_SERIAL_NS) continue; /* alone is alone */
            u->way[u->n++].c = (RtChoice){n, limits[i], u->t->variant};
        }
}

/* Times a few steps with one setting, after one that is not counted. */
static gnnc_status take_turn(Tune *u, Way *w) {
    gnnc_status st = rt_trainer_share(u->t, w->c.threads, w->c.serial_ns);
    if (st == GNNC_OK) st = gnnc_trainer_run_phase(u->t, u->phase); /* caches, awake threads */
    for (int i = 0; i < STEPS_PER_TURN && st == GNNC_OK; i++) {
        double begin = rt_now();
        if (w->n == MAX_SAMPLES || (w->n > 0 && begin > u->until)) break;
        st = gnnc_trainer_run_phase(u->t, u->phase);
        w->s[w->n++] = rt_now() - begin;
    }
    return st;
}

/* Times all settings in turns until the time is over, so that what else the machine does meets all
 * of them. */
static gnnc_status measure(Tune *u) {
    gnnc_status st = GNNC_OK;
    for (int turn = 0; turn < MAX_SAMPLES / STEPS_PER_TURN; turn++)
        for (int i = 0; i < u->n; i++) {
            if (turn > 0 && rt_now() > u->until) return GNNC_OK;
            if ((st = take_turn(u, &u->way[i])) != GNNC_OK) return st;
        }
    return st;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double typical(Way *w) {
    qsort(w->s, (size_t)w->n, sizeof *w->s, ascending);
    return w->s[w->n / 4];
}

/* The fastest setting. One of more threads must be 2 % faster to be preferred. */
static Way *choose(Tune *u) {
    static const double margin = 0.98;
    Way *best = NULL;
    double least = 0;
    for (int i = 0; i < u->n; i++) {
        double s = typical(&u->way[i]);
        bool more = best && u->way[i].c.threads > best->c.threads;
        if (!best || s < least * (more ? margin : 1)) least = s, best = &u->way[i];
        rt_message(&u->t->rt, "%lld thread%s, steps under %lld us alone: %.3f ms",
                   (long long)u->way[i].c.threads, u->way[i].c.threads == 1 ? "" : "s",
                   (long long)(u->way[i].c.serial_ns / 1000), 1e3 * s);
    }
    return best;
}

static const char *phase_to_time(const rt_program *p) {
    const rt_phase *ph = rt_variant_phase(p);
    return ph ? ph->name : p->n_phases ? p->phases[0].name : NULL;
}

/* ---- variants of the program ------------------------------------------------------------- */
enum { STEPS_PER_VARIANT = 5 };

/* The least time of a few runs of the phase, after one that is not counted; in seconds. */
static gnnc_status least_time(gnnc_trainer *t, const char *phase, double *s) {
    gnnc_status st = gnnc_trainer_run_phase(t, phase);
    for (int i = 0; i < STEPS_PER_VARIANT && st == GNNC_OK; i++) {
        double begin = rt_now();
        st = gnnc_trainer_run_phase(t, phase);
        if (i == 0 || rt_now() - begin < *s) *s = rt_now() - begin;
    }
    return st;
}

/* Loads the same rows into another trainer, whatever was committed since. */
static gnnc_status load_the_same(gnnc_trainer *other, gnnc_trainer *t) {
    if (t->graph_alone) return gnnc_trainer_load(other, t->rt.bound->dir);
    rt_graph_enter_too(t->graph, t->snapshot);
    return rt_trainer_load_snapshot(other, t->graph, t->snapshot);
}

/* Another variant needs a trainer of its own for a while: its buffers are others. */
static gnnc_status time_variant(Tune *u, int variant, double *s) {
    gnnc_trainer *t = u->t, *other;
    if (variant == t->variant) return least_time(t, u->phase, s);
    gnnc_program model = {RT_PROGRAM_VERSION, t->first_program};
    gnnc_status st =
        gnnc_trainer_create_with(&other, &model, t->outer.alloc, t->outer.release, t->outer.user);
    if (st != GNNC_OK) return rt_fail_nomem(&t->rt.err, "tuning");
    other->options = t->options;
    other->options.variant = variant;
    other->options.tuned = 0;
    st = load_the_same(other, t);
    if (st == GNNC_OK) st = least_time(other, u->phase, s);
    if (st != GNNC_OK) rt_fail(&t->rt.err, st, "%s", gnnc_trainer_error(other));
    gnnc_trainer_destroy(other);
    return st;
}

/* Times all variants and tells the times; one that memory has no room for is left out. */
static gnnc_status choose_variant(Tune *u, int64_t *best) {
    gnnc_trainer *t = u->t;
    int n = t->rt.device ? 0 : t->first_program->n_variants;
    double least = 0;
    *best = t->variant;
    for (int i = 0; i < n; i++) {
        double s = 0;
        gnnc_status st = time_variant(u, i, &s);
        if (st == GNNC_E_LIMIT || st == GNNC_E_NOMEM) {
            rt_message(&t->rt, "variant %d: %s", i, gnnc_trainer_error(t));
            rt_trainer_begin(t);
            continue;
        }
        if (st != GNNC_OK) return st;
        rt_message(&t->rt, "variant %d (%s): %.3f ms", i, t->first_program->variants[i]->choice,
                   1e3 * s);
        if (least == 0 || s < least) least = s, *best = i;
    }
    return GNNC_OK;
}

/* Chooses the variant, then threads and the bound below which steps run alone, and keeps all in
 * tuned.json. */
static gnnc_status run(Tune *u) {
    gnnc_trainer *t = u->t;
    int64_t variant;
    gnnc_status st = choose_variant(u, &variant);
    if (st == GNNC_OK) st = measure(u);
    if (st != GNNC_OK) return st;
    Way *best = choose(u);
    best->c.variant = variant;
    double ms = 1e3 * typical(best);
    st = rt_trainer_share(t, best->c.threads, best->c.serial_ns);
    if (st == GNNC_OK) st = rt_tuned_keep(t, t->rt.bound->dir, &best->c, ms);
    if (st != GNNC_OK) return st;
    rt_message(&t->rt, "kept in %s/tuned.json: --threads %lld --serial-ns %lld --variant %lld",
               t->rt.bound->dir, (long long)best->c.threads, (long long)best->c.serial_ns,
               (long long)variant);
    return GNNC_OK;
}

gnnc_status gnnc_trainer_tune(gnnc_trainer *t, double seconds) {
    RT_NOT_NULL(t, t);
    rt_trainer_begin(t);
    RtPool pool;
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (!t->graph->data->dir)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the graph was read from no directory: there is none to keep the choice in");
    rt_pool_init(&pool, &t->outer);
    Tune u = {.t = t, .phase = phase_to_time(t->program), .until = rt_now() + seconds};
    u.way = RT_NEWN(&pool, Way, MAX_WAYS);
    list_candidates(&u, u.way ? rt_usable_cores() : 0);
    if (!u.way)
        st = rt_fail_nomem(&t->rt.err, "tuning");
    else if (!u.phase)
        st = rt_fail(&t->rt.err, GNNC_E_MISSING, "the program has no phase to time");
    else
        st = run(&u);
    rt_pool_free(&pool);
    return st;
}
