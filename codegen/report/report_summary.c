/* What stands first: per phase how much there is of it, and the steps that move most. */
#include "codegen/report/report.h"

#include <stdlib.h>

enum { SHOWN = 5 };

/* A step and what it moves. */
typedef struct {
    const PStep *step;
    int at;       /* its number in the phase */
    double bytes; /* read and written, by nominal sizes */
} Line;

/* Compares two lines for qsort: more bytes first, then the order of the steps. */
static int compare(const void *x, const void *y) {
    const Line *a = x, *b = y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->at - b->at;
}

/* Prints the summary of a phase: the totals, then the SHOWN steps that move most bytes. */
static void print_phase(Report *r, const PPhase *ph) {
    Line *line = NEWN(r->a, Line, (size_t)ph->steps.n + 1);
    double all = 0;
    int kernels = 0, calls = 0;
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        StepCost c = cg_step_cost(r->a, r->p, s);
        line[i] = (Line){s, i, report_nominal(r, expr_add(r->a, c.read, c.written))};
        all += line[i].bytes;
        kernels += s->kind == PS_KERNEL;
        calls += plan_step_facts(s->kind)->by == PBY_LIBRARY;
    }
    sb_printf(r->b, "  @%s: %.3g MB moved by %d kernels and %d library calls\n", ph->name,
              1e-6 * all, kernels, calls);
    qsort(line, (size_t)ph->steps.n, sizeof *line, compare);
    for (int i = 0; i < ph->steps.n && i < SHOWN && line[i].bytes > 0; i++)
        sb_printf(r->b, "    %5.1f%%  %d %s  %s\n", 100 * line[i].bytes / all, line[i].at,
                  cg_step_name(line[i].step), cg_step_site(r->p->m, r->a, line[i].step));
}

/* Prints the summary of all phases that have steps; it stands above the text of the fusion
 * report. */
void report_summary(Report *r) {
    sb_printf(r->b, "summary: bytes that steps move, the most first%s\n",
              r->known ? "" : ", by nominal sizes where the data's are not known");
    for (int i = 0; i < r->p->phases.n; i++)
        if (r->p->phases.v[i]->steps.n) print_phase(r, r->p->phases.v[i]);
}
