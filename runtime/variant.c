/* Which of a program's variants runs: they give the same results by other orders of work, and
 * which order is the least work depends on sizes that the data bring.
 *
 * Every variant tells what each of its steps moves and computes as a function of the sizes
 * (program.h, rt_step_cost), so the times of one train step, or one prediction where nothing
 * is trained, are estimated and the least is taken.  `tune` measures instead and keeps the
 * answer; the option "variant" decides outright. */
#include "variant.h"

#include <math.h>
#include <string.h>

#include "runtime/batch/batch_sizes.h"
#include "runtime/bind/bind.h"
#include "runtime/exec/exec.h"

const rt_phase *rt_variant_phase(const rt_program *p) {
    static const rt_phase_kind kind[] = {RT_PHASE_TRAIN, RT_PHASE_PREDICT, RT_PHASE_EVAL};
    for (int i = 0; i < 3; i++) {
        const rt_phase *ph = rt_phase_of(p, kind[i]);
        if (ph) return ph;
    }
    return NULL;
}

/* Sizes have the same names in all variants; one that another variant lacks is not known. */
static int64_t size_named(const RtExec *x, const char *name) {
    for (int i = 0; i < x->program->n_syms; i++)
        if (strcmp(x->program->syms[i], name) == 0) return x->n[i];
    return 0;
}

static double size_of(const rt_program *p, int space, const int64_t *n) {
    const rt_space *s = &p->spaces[space];
    return s->sym >= 0 ? (double)n[s->sym] : (double)s->fixed;
}

/* Dense rows that no memory holds: their sizes are beyond what costs are counted in. */
static bool is_out_of_reach(const rt_program *p, const int64_t *n) {
    const double most = (double)(1LL << 44);
    for (int i = 0; i < p->n_columns; i++) {
        const rt_column *c = &p->columns[i];
        double count = size_of(p, c->space, n);
        for (int k = 0; k < c->rank; k++) count *= size_of(p, c->dim[k], n);
        if (c->buf >= 0 && c->kind == RT_COL_FLOAT && count > most) return true;
    }
    return false;
}

double rt_variant_estimate(const RtExec *x, const RtMemory *m, int variant) {
    const rt_program *p = x->program->variants[variant];
    const rt_phase *ph = rt_variant_phase(p);
    int64_t n[RT_VARIANT_SYMS];
    if (!ph || p->n_syms > RT_VARIANT_SYMS) return 0;
    for (int i = 0; i < p->n_syms; i++) n[i] = size_named(x, p->syms[i]);
    if (is_out_of_reach(p, n)) return HUGE_VAL;
    int64_t batch = m->batch ? m->batch : p->sampling.batch;
    if (ph->kind == RT_PHASE_TRAIN) rt_batch_sizes(p, batch, m->fanout, RT_BATCH_TRAINS, n);
    double ns = 0;
    for (int k = 0; k < ph->n_steps; k++) ns += (double)rt_step_estimate_ns(ph, k, n);
    return 1e-6 * ns;
}

int rt_variant_best(const double *ms, const bool *tried, int n) {
    int best = -1;
    for (int v = 0; v < n; v++)
        if (!tried[v] && (best < 0 || ms[v] < ms[best])) best = v;
    return best;
}
