/* What was reached without learning, as the data have it beside the column that is learned. */
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/batch/link_batches.h"
#include "runtime/data/eval_metric.h"
#include "trainer.h"

/* Does the program compute this metric? */
static bool is_measured(const gnnc_trainer *t, const char *metric) {
    for (int i = 0; i < t->n_scalars; i++)
        if (t->scalars[i].of && strcmp(t->scalars[i].of, metric) == 0) return true;
    return false;
}

/* The column that is learned; of links the one that says which of them are. NULL: the data have
 * none. */
static const RtColumn *learned(const gnnc_trainer *t) {
    const rt_column *col = t->target < 0 ? NULL : &t->program->columns[t->target];
    int space = col ? col->space : rt_link_batches_base(t);
    const RtTable *table = space < 0 ? NULL : t->rt.bound->table[space];
    return table ? rt_table_column(table, col ? col->name : "split") : NULL;
}

/* The i-th that the model's metrics measure, too; *n: how many there are. */
static const RtBaseline *find(const gnnc_trainer *t, int i, int *n) {
    const RtBaseline *found = NULL;
    *n = 0;
    if (!t->loaded || t->rt.bound->split != 0) return NULL; /* they are of split 0 */
    const RtColumn *c = learned(t);
    for (int k = 0; c && k < c->n_baselines; k++)
        if (is_measured(t, c->baselines[k].metric) && (*n)++ == i) found = &c->baselines[k];
    return found;
}

int gnnc_trainer_n_baselines(const gnnc_trainer *t) {
    int n = 0;
    if (t) find(t, -1, &n);
    return n;
}

gnnc_status gnnc_trainer_baseline(gnnc_trainer *t, int i, gnnc_baseline *out) {
    int n;
    RT_NOT_NULL(t, out);
    rt_trainer_begin(t);
    gnnc_status st = RT_STRUCT_CHECK(&t->rt.err, gnnc_baseline, out, test);
    if (st == GNNC_OK) st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    const RtBaseline *b = find(t, i, &n);
    if (!b) return rt_fail(&t->rt.err, GNNC_E_RANGE, "no baseline %d", i);
    gnnc_baseline own = {.name = b->name, .metric = b->metric, .val = b->val, .test = b->test};
    rt_struct_copy_out(out, &own, sizeof own);
    return GNNC_OK;
}
