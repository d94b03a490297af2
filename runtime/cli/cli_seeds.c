/* --seeds N: train the same from several seeds, and what that makes of the metrics; predict and
 * judge the mean of what they give (deep ensembles, Lakshminarayanan et al. 2017). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_options.h"
#include "cli_predict.h"

enum { MOST_METRICS = 64, MOST_NAME = 64 };

const char *rt_cli_of_seed(const char *file, long long seed, char *to, size_t n) {
    if (!file || strcmp(file, "none") == 0) return file;
    return snprintf(to, n, "%s.%lld", file, seed) < (int)n ? to : NULL;
}

/* Of one metric of one split. */
typedef struct {
    char of[MOST_NAME], split[8];
    double mean, squares; /* of what is off the mean, summed (Welford 1962) */
    int64_t n;
    double together; /* of the mean of what all give; NaN: nobody has asked, or it cannot be told */
} Spread;

typedef struct {
    Spread v[MOST_METRICS];
    int n;
} Spreads;

/* The entry of a metric of a split, a new one if there is none yet; NULL: there are too many. */
static Spread *spread_of(Spreads *s, const gnnc_metric_info *m) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->v[i].of, m->of) == 0 && strcmp(s->v[i].split, m->split) == 0) return &s->v[i];
    if (s->n == MOST_METRICS) return NULL;
    Spread *to = &s->v[s->n++];
    snprintf(to->of, sizeof to->of, "%s", m->of);
    snprintf(to->split, sizeof to->split, "%s", m->split);
    to->together = NAN;
    return to;
}

/* Adds the metrics of the last evaluation, of one seed, to means and deviations. */
static void note(RtCli *c, Spreads *s) {
    gnnc_metric_info m = {.struct_size = sizeof m};
    for (int i = 0; gnnc_trainer_metric_info(c->t, i, &m) == GNNC_OK; i++) {
        Spread *to = m.known && *m.split && !m.is_logged ? spread_of(s, &m) : NULL;
        if (!to) continue;
        double off = m.value - to->mean;
        to->mean += off / (double)++to->n;
        to->squares += off * (m.value - to->mean);
    }
}

/* Keeps the metrics of the mean of all seeds' predictions, which were evaluated last. */
static void note_ensemble_metrics(RtCli *c, Spreads *s) {
    gnnc_metric_info m = {.struct_size = sizeof m};
    for (int i = 0; gnnc_trainer_metric_info(c->t, i, &m) == GNNC_OK; i++) {
        Spread *to = m.known && *m.split && !m.is_logged ? spread_of(s, &m) : NULL;
        if (to) to->together = m.value;
    }
}

/* The standard deviation of a metric over seeds; NaN of one seed. */
static double deviation(const Spread *s) {
    return s->n > 1 ? sqrt(s->squares / (double)(s->n - 1)) : NAN;
}

static const char *const SPLITS[] = {"train", "val", "test"};
enum { N_SPLITS = 3 };

/* Prints the metrics of the mean of all seeds' predictions, by split. */
static void put_together(const Spreads *s) {
    fputs("seeds together:", stdout);
    for (int k = 0; k < N_SPLITS; k++)
        for (int i = 0, first = 1; i < s->n; i++) {
            const Spread *v = &s->v[i];
            if (strcmp(v->split, SPLITS[k]) != 0) continue;
            printf("%s%s %s %.4f", first ? "  " : "", first ? SPLITS[k] : "", v->of,
                   rt_cli_shown(v->together));
            first = 0;
        }
    putchar('\n');
}

/* Prints the mean over n seeds of each metric, with its deviation, by split. */
static void put_text(const Spreads *s, int64_t n) {
    printf("%lld seed%s, mean (deviation):", (long long)n, n == 1 ? "" : "s");
    for (int k = 0; k < N_SPLITS; k++)
        for (int i = 0, first = 1; i < s->n; i++) {
            const Spread *v = &s->v[i];
            if (strcmp(v->split, SPLITS[k]) != 0) continue;
            printf("%s%s %s %.4f", first ? "  " : "", first ? SPLITS[k] : "", v->of,
                   rt_cli_shown(v->mean));
            if (v->n > 1) printf(" (%.4f)", deviation(v));
            first = 0;
        }
    putchar('\n');
}

/* Prints the metrics of a split as a JSON member; together: with those of the mean prediction. */
static void put_json_split(const Spreads *s, const char *split, bool together) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const Spread *v = &s->v[i];
        if (strcmp(v->split, split) != 0) continue;
        printf(n++ ? "," : ",\"%s\":{", split);
        rt_cli_json_string(v->of);
        fputs(":{\"mean\":", stdout);
        rt_cli_json_number(v->mean);
        fputs(",\"deviation\":", stdout);
        rt_cli_json_number(deviation(v));
        if (together) fputs(",\"together\":", stdout);
        if (together) rt_cli_json_number(v->together);
        putchar('}');
    }
    if (n) putchar('}');
}

/* Prints the metrics over all seeds in the form that was asked for, and what simple predictions
 * get. */
static void put_result(RtCli *c, const Spreads *s, bool together) {
    if (c->log == RT_LOG_NONE) return;
    if (c->log == RT_LOG_JSON) {
        printf("{\"seeds\":%lld", (long long)c->seeds);
        for (int k = 0; k < N_SPLITS; k++) put_json_split(s, SPLITS[k], together);
        rt_cli_baselines(c);
        puts("}");
        return;
    }
    put_text(s, c->seeds);
    if (together) put_together(s);
    rt_cli_baselines(c);
}

/* Trains once from a seed, with files of its own ("m.ckpt.3"), and notes the metrics. *by_signal:
 * the signal that ended it. */
static int train_seed(const RtCli *all, long long seed, Spreads *s, int *by_signal) {
    char checkpoint[4096], out[4096], trace[4096], usual[300];
    RtCli c = *all;
    snprintf(usual, sizeof usual, "%s.ckpt", c.is.name);
    c.checkpoint =
        rt_cli_of_seed(c.checkpoint ? c.checkpoint : usual, seed, checkpoint, sizeof checkpoint);
    c.out = rt_cli_of_seed(c.out, seed, out, sizeof out);
    c.trace = rt_cli_of_seed(c.trace, seed, trace, sizeof trace);
    if (!c.checkpoint || (all->out && !c.out) || (all->trace && !c.trace))
        return rt_cli_usage(&c, "--seeds: too long a name");
    if (gnnc_trainer_set_int(c.t, "seed", seed) != GNNC_OK) return rt_cli_failed(&c);
    if (c.log == RT_LOG_TEXT) printf("seed %lld\n", seed);
    if (c.log == RT_LOG_JSON) printf("{\"seed\":%lld}\n", seed);
    int code = rt_cli_train_once(&c);
    *by_signal = c.by_signal;
    if (code == RT_EXIT_OK) note(&c, s);
    return code;
}

int rt_cli_train_seeds(RtCli *c) {
    long long first = rt_cli_option_int(c, "seed");
    int by_signal = 0, code = RT_EXIT_OK;
    Spreads *s = calloc(1, sizeof *s);
    if (!s) {
        fprintf(stderr, "%s: error: --seeds: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    for (int64_t k = 0; k < c->seeds && code == RT_EXIT_OK && !by_signal; k++) {
        if (k) code = rt_cli_renew(c);
        if (code == RT_EXIT_OK) code = train_seed(c, first + k, s, &by_signal);
    }
    if (code == RT_EXIT_OK) put_result(c, s, false);
    free(s);
    return code;
}

/* ---- predict ------------------------------------------------------------------------------ */
/* What the model would give for such a mean; of classes and labels a probability is meant. */
static float as_result(const gnnc_legend_info *is, float p) {
    if (strcmp(is->word, "probability") != 0) return p;
    return is->has_classes ? logf(p) : logf(p) - log1pf(-p);
}

int rt_cli_start_first(RtCli *c) {
    char first[4096];
    const char *given = c->weights;
    if (c->seeds)
        c->weights = rt_cli_of_seed(given, rt_cli_option_int(c, "seed"), first, sizeof first);
    int code = c->weights ? rt_cli_start(c) : rt_cli_usage(c, "--weights: too long a name");
    c->weights = given;
    return code;
}

/* Loads the weights of the k-th seed. Those of the first are there: the data were read by them. */
static gnnc_status load_seed(RtCli *c, int64_t k) {
    char weights[4096];
    long long seed = rt_cli_option_int(c, "seed") + k;
    if (!k) return GNNC_OK;
    return gnnc_trainer_load_weights(c->t,
                                     rt_cli_of_seed(c->weights, seed, weights, sizeof weights));
}

/* Adds one seed's predictions of some rows, converted to what the legend says, to sum [count]. */
static gnnc_status add_seed(const RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *one,
                            int64_t count, float *sum) {
    gnnc_status st = gnnc_trainer_predict_rows(c->t, r->n, r->row, one);
    if (st == GNNC_OK) st = gnnc_legend_convert(g, r->n, one, one);
    for (int64_t i = 0; st == GNNC_OK && i < count; i++) sum[i] += one[i];
    return st;
}

int rt_cli_predict_seeds(RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *out) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    gnnc_legend_describe(g, &is);
    int64_t count = r->n * is.width;
    float *one = calloc((size_t)count + 1, sizeof *one);
    gnnc_status st = GNNC_OK;
    if (!one) {
        fprintf(stderr, "%s: error: --seeds: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    for (int64_t k = 0; st == GNNC_OK && k < c->seeds; k++) {
        st = load_seed(c, k);
        if (st == GNNC_OK) st = add_seed(c, g, r, one, count, out);
    }
    for (int64_t i = 0; i < count; i++) out[i] = as_result(&is, out[i] / (float)c->seeds);
    free(one);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}

/* ---- eval --------------------------------------------------------------------------------- */
typedef struct {
    gnnc_legend *legend;
    gnnc_legend_info is;
    int64_t count;    /* numbers of all rows */
    float *one, *sum; /* [count] */
    bool together;    /* the model judges predictions that are given */
} Ensemble;

/* Makes room for the predictions of all rows, for one seed and for the sum of all. A model whose
 * predictions have no legend is evaluated seed by seed alone. */
static gnnc_status begin_ensemble(RtCli *c, Ensemble *j) {
    *j = (Ensemble){.is.struct_size = sizeof j->is, .together = true};
    if (gnnc_trainer_legend(c->t, &j->legend) != GNNC_OK)
        return GNNC_OK; /* evaluated all the same */
    gnnc_legend_describe(j->legend, &j->is);
    j->count = j->is.n_rows * j->is.width;
    j->one = calloc((size_t)j->count + 1, sizeof *j->one);
    j->sum = calloc((size_t)j->count + 1, sizeof *j->sum);
    return j->one && j->sum ? GNNC_OK : GNNC_E_NOMEM;
}

/* Evaluates the weights of one seed. Where predictions can be given to @eval they are made once,
 * and also added to the ensemble's sum. */
static gnnc_status judge_seed(RtCli *c, Ensemble *j) {
    gnnc_status st = GNNC_E_STATE;
    if (j->together && j->legend) {
        st = gnnc_trainer_evaluate_predictions(c->t, j->one); /* of nothing yet: can it? */
        if (st == GNNC_OK) st = gnnc_trainer_predict_rows(c->t, j->is.n_rows, NULL, j->one);
        if (st == GNNC_OK) st = gnnc_trainer_evaluate_predictions(c->t, j->one);
    }
    j->together &= st != GNNC_E_STATE;
    if (!j->together) return gnnc_trainer_evaluate(c->t);
    if (st == GNNC_OK) st = gnnc_legend_convert(j->legend, j->is.n_rows, j->one, j->one);
    for (int64_t i = 0; st == GNNC_OK && i < j->count; i++) j->sum[i] += j->one[i];
    return st;
}

/* Evaluates each seed's weights, then the mean of their predictions. */
static gnnc_status judge_all(RtCli *c, Ensemble *j, Spreads *s) {
    gnnc_status st = GNNC_OK;
    for (int64_t k = 0; st == GNNC_OK && k < c->seeds; k++) {
        st = load_seed(c, k);
        if (st == GNNC_OK) st = judge_seed(c, j);
        if (st == GNNC_OK) note(c, s);
    }
    if (st != GNNC_OK || !j->together) return st;
    for (int64_t i = 0; i < j->count; i++)
        j->sum[i] = as_result(&j->is, j->sum[i] / (float)c->seeds);
    st = gnnc_trainer_evaluate_predictions(c->t, j->sum);
    if (st == GNNC_OK) note_ensemble_metrics(c, s);
    return st;
}

/* `eval --seeds`: evaluates the weights of each seed, and the mean of their predictions where the
 * model can evaluate predictions that are given; prints means, deviations, and those of the mean
 * prediction. */
int rt_cli_eval_seeds(RtCli *c) {
    int code = rt_cli_start_first(c);
    if (code != RT_EXIT_OK) return code;
    Ensemble j;
    Spreads *s = calloc(1, sizeof *s);
    gnnc_status st = s ? begin_ensemble(c, &j) : GNNC_E_NOMEM;
    if (st == GNNC_E_NOMEM) {
        fprintf(stderr, "%s: error: --seeds: out of memory\n", c->prog);
        code = RT_EXIT_FAILED;
    } else if (judge_all(c, &j, s) != GNNC_OK) {
        code = rt_cli_failed(c);
    } else {
        put_result(c, s, j.together);
        if (!j.together && c->log == RT_LOG_TEXT)
            rt_cli_message(c, "all seeds together are judged of a model by time, on the CPU");
        code = rt_cli_profile_end(c);
    }
    if (s) {
        gnnc_legend_destroy(j.legend);
        free(j.one);
        free(j.sum);
    }
    free(s);
    return code;
}
