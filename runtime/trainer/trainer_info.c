/* What runs in a trainer, for people: the program's phases and variants, columns of the data as
 * they are in memory, the machine, the loss scale. */
#include "runtime/bind/bind.h"
#include "trainer.h"
#include "tuned.h"
#include "runtime/exec/machine.h"

/* ---- phases and variants ---------------------------------------------------------------- */
int gnnc_trainer_n_phases(const gnnc_trainer *t) {
    return t ? t->program->n_phases : 0;
}

gnnc_status gnnc_trainer_phase_info(gnnc_trainer *t, int i, gnnc_phase_info *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_phase_info, out, n_library_calls);
    if (st != GNNC_OK) return st;
    if (i < 0 || i >= t->program->n_phases)
        return rt_fail(&t->rt.err, GNNC_E_RANGE, "no phase %d", i);
    const rt_phase *ph = &t->program->phases[i];
    gnnc_phase_info own = {.name = ph->name,
                           .n_steps = ph->n_steps,
                           .n_kernels = ph->n_kernels,
                           .n_library_calls = ph->n_library_calls};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

int gnnc_trainer_n_variants(const gnnc_trainer *t) {
    return t ? t->first_program->n_variants : 0;
}

gnnc_status gnnc_trainer_variant_info(gnnc_trainer *t, int i, gnnc_variant_info *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_variant_info, out, in_use);
    if (st != GNNC_OK) return st;
    const rt_program *p = t->first_program;
    if (i < 0 || i >= p->n_variants) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no variant %d", i);
    gnnc_variant_info own = {.choice = p->variants[i]->choice,
                             .estimate_ms = t->estimate_ms[i],
                             .in_use = t->loaded && i == t->variant};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}

/* ---- columns ----------------------------------------------------------------------------- */
/* The i-th that is read; -1: there is none. */
static int used_column(const gnnc_trainer *t, int i) {
    for (int c = 0; t->rt.bound && c < t->program->n_columns; c++)
        if (rt_bind_source(&t->x, c) && i-- == 0) return c;
    return -1;
}

int gnnc_trainer_n_columns(const gnnc_trainer *t) {
    int n = 0;
    while (t && used_column(t, n) >= 0) n++;
    return n;
}

/* The type of the elements that are kept of a column: those that kernels read, or that maps are
 * made of. */
static RtDtype kept_element(const rt_program *p, const rt_column *c) {
    static const RtDtype of[] = {
        [RT_F32] = RT_DT_F32, [RT_F64] = RT_DT_F64, [RT_F16] = RT_DT_F16, [RT_BF16] = RT_DT_BF16,
        [RT_I32] = RT_DT_I32, [RT_I64] = RT_DT_I64, [RT_I1] = RT_DT_BOOL};
    return c->buf >= 0 ? of[p->bufs[c->buf].dt] : rt_column_kind(c->kind)->element;
}

/* A gnnc_element (graph_array.c). */
static int32_t element_of(RtDtype dt) {
    return (int32_t)dt + 1;
}

gnnc_status gnnc_trainer_column_info(gnnc_trainer *t, int i, gnnc_loaded_column *out) {
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st;
    TRY(st, RT_STRUCT_CHECK(&t->rt.err, gnnc_loaded_column, out, is_mapped));
    TRY(st, rt_trainer_need_data(t));
    int c = i < 0 ? -1 : used_column(t, i);
    if (c < 0) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no column %d", i);
    const rt_program *p = t->program;
    const rt_column *want = &p->columns[c];
    const RtColumn *have = rt_bind_source(&t->x, c);
    gnnc_loaded_column own = {.table = p->spaces[want->space].name,
                              .column = want->name,
                              .data_kind = (int32_t)have->kind,
                              .data_element = element_of(have->stored),
                              .kind = (int32_t)want->kind,
                              .element = element_of(kept_element(p, want)),
                              .is_mapped = want->buf >= 0 && rt_bind_is_mapped(&t->x, want->buf)};
    rt_struct_copy_out(out, &own, sizeof own);
out:
    return st;
}

/* ---- the machine, and the loss scale -------- */
const char *gnnc_trainer_machine(gnnc_trainer *t) {
    const char *kind = t ? rt_machine_kind(&t->rt.pool, &t->rt) : NULL;
    if (t && !kind) rt_fail_nomem(&t->rt.err, "the name of the processor");
    return kind ? kind : "";
}

gnnc_status gnnc_trainer_loss_scale(gnnc_trainer *t, double *scale, double *skipped_steps) {
    RT_NOT_NULL(t, scale);
    RT_NOT_NULL(t, skipped_steps);
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK || rt_trainer_skipped(t, skipped_steps, scale)) return st;
    return rt_fail(&t->rt.err, GNNC_E_MISSING, "the loss has no scale");
}
