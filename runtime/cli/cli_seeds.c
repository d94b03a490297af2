/* --seeds N: train the same from several seeds, and what that makes of the metrics; predict the
 * mean of what they give (deep ensembles, Lakshminarayanan et al. 2017). */
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
} Spread;

typedef struct {
    Spread v[MOST_METRICS];
    int n;
} Spreads;

static Spread *spread_of(Spreads *s, const gnnc_metric_info *m) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->v[i].of, m->of) == 0 && strcmp(s->v[i].split, m->split) == 0) return &s->v[i];
    if (s->n == MOST_METRICS) return NULL;
    Spread *to = &s->v[s->n++];
    snprintf(to->of, sizeof to->of, "%s", m->of);
    snprintf(to->split, sizeof to->split, "%s", m->split);
    return to;
}

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

static double deviation(const Spread *s) {
    return s->n > 1 ? sqrt(s->squares / (double)(s->n - 1)) : NAN;
}

static const char *const SPLITS[] = {"train", "val", "test"};
enum { N_SPLITS = 3 };

static void put_text(const Spreads *s, int64_t n) {
    printf("%lld seed%s, mean (deviation):", (long long)n, n == 1 ? "" : "s");
    for (int k = 0; k < N_SPLITS; k++)
        for (int i = 0, first = 1; i < s->n; i++) {
            const Spread *v = &s->v[i];
            if (strcmp(v->split, SPLITS[k]) != 0) continue;
            printf("%s%s %s %.4f", first ? "  " : "", first ? SPLITS[k] : "", v->of, v->mean);
            if (v->n > 1) printf(" (%.4f)", deviation(v));
            first = 0;
        }
    putchar('\n');
}

static void put_json_split(const Spreads *s, const char *split) {
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
        putchar('}');
    }
    if (n) putchar('}');
}

static void put_result(RtCli *c, const Spreads *s) {
    if (c->log == RT_LOG_NONE) return;
    if (c->log == RT_LOG_JSON) {
        printf("{\"seeds\":%lld", (long long)c->seeds);
        for (int k = 0; k < N_SPLITS; k++) put_json_split(s, SPLITS[k]);
        rt_cli_baselines(c);
        puts("}");
        return;
    }
    put_text(s, c->seeds);
    rt_cli_baselines(c);
}

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
    if (code == RT_EXIT_OK) put_result(c, s);
    free(s);
    return code;
}

/* ---- predict ------------------------------------------------------------------------------ */
/* What the model would give for such a mean; of classes and labels a probability is meant. */
static float as_result(const gnnc_legend_info *is, float p) {
    if (strcmp(is->word, "probability") != 0) return p;
    return is->has_classes ? logf(p) : logf(p) - log1pf(-p);
}

static gnnc_status add_seed(const RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *one,
                            int64_t count, float *sum) {
    gnnc_status st = gnnc_trainer_predict_rows(c->t, r->n, r->row, one);
    if (st == GNNC_OK) st = gnnc_legend_convert(g, r->n, one, one);
    for (int64_t i = 0; st == GNNC_OK && i < count; i++) sum[i] += one[i];
    return st;
}

int rt_cli_predict_seeds(RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *out) {
    char weights[4096];
    gnnc_legend_info is = {.struct_size = sizeof is};
    gnnc_legend_describe(g, &is);
    int64_t count = r->n * is.width, first = rt_cli_option_int(c, "seed");
    float *one = calloc((size_t)count + 1, sizeof *one);
    gnnc_status st = GNNC_OK;
    if (!one) {
        fprintf(stderr, "%s: error: --seeds: out of memory\n", c->prog);
        return RT_EXIT_FAILED;
    }
    for (int64_t k = 0; st == GNNC_OK && k < c->seeds; k++) {
        if (k) /* the first one's are there: start has read the data by them */
            st = gnnc_trainer_load_weights(
                c->t, rt_cli_of_seed(c->weights, first + k, weights, sizeof weights));
        if (st == GNNC_OK) st = add_seed(c, g, r, one, count, out);
    }
    for (int64_t i = 0; i < count; i++) out[i] = as_result(&is, out[i] / (float)c->seeds);
    free(one);
    return st == GNNC_OK ? RT_EXIT_OK : rt_cli_failed(c);
}
