/* Which rows predict writes. */
#ifndef RUNTIME_CLI_PREDICT_H
#define RUNTIME_CLI_PREDICT_H

#include "cli.h"

typedef struct RtCliRows {
    const char *file; /* of --ids or --nodes, in messages; NULL: neither was given */
    char *text;       /* [n_bytes], and a NUL; lines are ended in place */
    size_t n_bytes;
    int64_t n_lines; /* at most; once found */
    int64_t n, *row; /* [n] the rows, in the order asked for */
} RtCliRows;

/* Reads --ids or --nodes, before anything else takes time.  Exit codes, after a message. */
int rt_cli_rows_read(const RtCli *c, RtCliRows *r);
/* Finds the rows, once it is known what they are called. */
int rt_cli_rows_find(const RtCli *c, RtCliRows *r, gnnc_legend *g);
void rt_cli_rows_free(RtCliRows *r);
/* Writes their values, [n, ..], and says so. */
int rt_cli_write_rows(const RtCli *c, gnnc_legend *g, const RtCliRows *r, const float *values);

/* cli_seeds.c: "my.ckpt.3", of the seed; NULL and "none" stay, NULL where there is no room */
const char *rt_cli_of_seed(const char *file, long long seed, char *to, size_t n);
/* As rt_cli_start, by the first of several seeds' weights, where there are several. */
int rt_cli_start_first(RtCli *c);
/* What the weights of c->seeds seeds give on the mean: of classes and labels the scores whose
 * probabilities are the mean ones.
 *   out  [n, ..] zeros */
int rt_cli_predict_seeds(RtCli *c, const gnnc_legend *g, const RtCliRows *r, float *out);

/* cli_serve.c: whether options of the model or the fan-out were set, which a session takes from the
 * weights alone. */
bool rt_cli_sets_what_weights_say(const RtCli *c);
/* A session over --data with --weights; close it whatever open gave. */
typedef struct RtCliServed {
    gnnc_graph *graph;
    gnnc_model *model;
    gnnc_session *session;
    gnnc_legend *legend;
    float *values;
} RtCliServed;
/* at: a date; NULL: none. */
gnnc_status rt_cli_served_open(RtCli *c, const char *at, RtCliServed *s);
const char *rt_cli_served_error(const RtCliServed *s); /* of what failed last */
void rt_cli_served_close(RtCliServed *s);

/* Predicts the rows by themselves and writes them, *code: how that went.  False: they
 * are the trainer's, which has words for more, or can do what a session cannot. */
bool rt_cli_serve(RtCli *c, RtCliRows *r, int *code);

#endif
