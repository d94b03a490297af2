/* Which of a program's variants runs: they give the same results by other orders of work, and
 * which order is the least work depends on sizes that the data bring.
 *
 * Every variant tells what each of its steps moves and computes as a function of the sizes
 * (program.h, rt_step_cost), so the times of one train step, or one prediction where nothing
 * is trained, are estimated and the least is taken.  `tune` measures instead and keeps the
 * answer; the option "variant" decides outright.
 *
 * Each variant with values in 16 bits has one that does the same in f32, for data so small that
 * they lie in caches: 16 bits save no time there, and are converted all the same.  How small that
 * is was measured once and is compiled in (--precision.small-mib), so that neither threads nor
 * processes nor the machine's caches change bits. */
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

/* The sizes of the data in the order of a variant. */
static void sizes_of(const RtExec *x, const rt_program *p, int64_t *n) {
    for (int i = 0; i < p->n_syms; i++) n[i] = size_named(x, p->syms[i]);
}

/* Of sizes of the data those of the step that variants are compared by. */
static void take_batch(const RtMemory *m, const rt_program *p, const rt_phase *ph, int64_t *n) {
    int64_t batch = m->batch ? m->batch : p->sampling.batch;
    if (ph->kind == RT_PHASE_TRAIN) rt_batch_sizes(p, batch, m->fanout, RT_BATCH_TRAINS, n);
}

double rt_variant_estimate(const RtExec *x, const RtMemory *m, int variant) {
    const rt_program *p = x->program->variants[variant];
    const rt_phase *ph = rt_variant_phase(p);
    int64_t n[RT_VARIANT_SYMS];
    if (!ph || p->n_syms > RT_VARIANT_SYMS) return 0;
    sizes_of(x, p, n);
    if (is_out_of_reach(p, n)) return HUGE_VAL;
    take_batch(m, p, ph, n);
    double ns = 0;
    for (int k = 0; k < ph->n_steps; k++) ns += (double)rt_step_estimate_ns(ph, k, n);
    return 1e-6 * ns;
}

bool rt_variant_is_in_f32(const rt_program *p, int v) {
    for (int of = 0; of < p->n_variants; of++)
        if (v > 0 && p->variants[of]->in_f32 == v) return true;
    return false;
}

double rt_variant_low_bytes(const RtExec *x, const RtMemory *m, int variant) {
    const rt_program *p = x->program->variants[variant];
    const rt_phase *ph = rt_variant_phase(p);
    int64_t all[RT_VARIANT_SYMS], step[RT_VARIANT_SYMS];
    double n_bytes = 0;
    if (!ph || p->n_syms > RT_VARIANT_SYMS) return HUGE_VAL;
    sizes_of(x, p, all);
    if (is_out_of_reach(p, all)) return HUGE_VAL;
    memcpy(step, all, (size_t)p->n_syms * sizeof *step);
    take_batch(m, p, ph, step);
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *buf = &p->bufs[b];
        bool passes = rt_memory_is_temp(p, b), low = buf->dt == RT_BF16 || buf->dt == RT_F16;
        if (!low || (passes && &p->phases[buf->phase] != ph)) continue;
        n_bytes += (double)sizeof(float) * (double)p->buf_count(b, passes ? step : all);
    }
    return n_bytes;
}

int rt_variant_best(const double *ms, const bool *tried, int n) {
    int best = -1;
    for (int v = 0; v < n; v++)
        if (!tried[v] && (best < 0 || ms[v] < ms[best])) best = v;
    return best;
}
