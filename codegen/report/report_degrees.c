/* --report=degrees: how many edges rows of the data have, which rows are hubs, and how full the
 * draws of the recipe are.  --specialize=DATA has counted. */
#include "codegen/report/report.h"

#include <inttypes.h>

/* The smallest degree that bin i counts: 0, 1, 2, 4, 8, .. */
static int64_t bin_from(int i) {
    return i ? (int64_t)1 << (i - 1) : 0;
}

/* The largest degree that bin i counts: 0, 1, 3, 7, 15, .. */
static int64_t bin_to(int i) {
    return i ? ((int64_t)1 << i) - 1 : 0;
}

/* x as a percentage of `of`; 0 if `of` is 0. */
static double percent(int64_t x, int64_t of) {
    return of ? 100.0 * (double)x / (double)of : 0;
}

/* Prints the degrees of a relation as text: their mean, maximum and histogram, the edges of the
 * fullest rows, and how full each hop's draws are. */
static void print_relation(Report *r, const ReportDegrees *d) {
    sb_printf(r->b,
              "  %s: %" PRId64 " edges into %" PRId64 " rows of %s; %.3g each, at most %" PRId64,
              d->name, d->edges, d->rows, d->to, percent(d->edges, d->rows) / 100, d->max_degree);
    sb_printf(r->b, "; %" PRId64 " rows have none\n", d->none);
    sb_printf(r->b, "    the fullest hundredth of the rows has %.3g %% of the edges\n",
              percent(d->hub_edges, d->edges));
    for (int i = 0; i < d->n_hops; i++)
        if (d->fanout[i] > 0)
            sb_printf(r->b,
                      "    hop %d draws at most %" PRId64 " each: %.3g %% of them there are\n",
                      i + 1, d->fanout[i], percent(d->sampled[i], d->fanout[i] * d->rows));
    for (int i = 0; i < REPORT_DEGREE_BINS; i++)
        if (d->bin[i])
            sb_printf(r->b, "    %8" PRId64 " to %-8" PRId64 " edges: %" PRId64 " rows\n",
                      bin_from(i), bin_to(i), d->bin[i]);
}

/* Prints the degrees of a relation as a JSON object with the same facts as print_relation(). */
static void json_relation(Report *r, const ReportDegrees *d) {
    Json *j = r->j;
    json_object(j, NULL);
    json_text(j, "name", d->name);
    json_text(j, "to", d->to);
    json_int(j, "rows", d->rows);
    json_int(j, "edges", d->edges);
    json_int(j, "most", d->max_degree);
    json_int(j, "none", d->none);
    json_int(j, "hub_edges", d->hub_edges);
    json_array(j, "rows_by_edges");
    for (int i = 0; i < REPORT_DEGREE_BINS && bin_from(i) <= d->max_degree; i++) {
        json_object(j, NULL);
        json_int(j, "from", bin_from(i));
        json_int(j, "to", bin_to(i));
        json_int(j, "rows", d->bin[i]);
        json_end(j);
    }
    json_end(j);
    json_array(j, "hops");
    for (int i = 0; i < d->n_hops; i++) {
        json_object(j, NULL);
        json_int(j, "fanout", d->fanout[i]);
        json_int(j, "there", d->sampled[i]);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* Prints the report on all relations of the data; nothing if no data are known. */
void report_degrees(Report *r) {
    const ReportOptions *o = r->o;
    if (!o->degrees) return;
    if (r->j)
        json_array(r->j, "degrees");
    else
        sb_printf(r->b, "degrees: edges into rows of %s\n", o->data);
    for (int i = 0; i < o->n_degrees; i++)
        (r->j ? json_relation : print_relation)(r, &o->degrees[i]);
    if (r->j) json_end(r->j);
}
