/* How many rows of each split have something to learn, or to be measured by.  A metric of no rows
 * is no number, so it is not reported; a program that learns from them or chooses by them does
 * not start. */
#include "splits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/batch/link_batches.h"

static const char *const SPLIT[RT_N_SPLITS] = {"", "train", "validation", "test"};

/* ---- counting --------------------------------------------------------------- */
/* The column "paper.y" of the program's tables; -1: none. */
static int target_of(const rt_program *p) {
    const char *name = p->recipe.present ? p->recipe.target : NULL;
    for (int c = 0; name && c < p->n_columns; c++) {
        const char *table = p->spaces[p->columns[c].space].name;
        size_t n = strlen(table);
        if (!strncmp(name, table, n) && name[n] == '.' && !strcmp(name + n + 1, p->columns[c].name))
            return c;
    }
    return -1;
}

/* The split column of the target's table; -1: none. */
static int split_beside(const rt_program *p, int target) {
    for (int c = 0; c < p->n_columns; c++)
        if (p->columns[c].space == p->columns[target].space && p->columns[c].kind == RT_COL_SPLIT)
            return c;
    return -1;
}

/* `import` writes 0 for an empty cell and 1 beside it, in a column of its own: such a target is no
 * number to learn, or to be measured by.  The first such row of a split, in the files' order. */
static int64_t unknown_row(const gnnc_trainer *t, const RtColumn *y, int of_split) {
    const rt_column *col = t->program->columns;
    const RtTable *table = t->rt.bound->table[col[t->target].space];
    const RtColumn *target = rt_table_column(table, col[t->target].name);
    const RtColumn *split = rt_table_column(table, col[of_split].name);
    bool number = y->kind == RT_COL_FLOAT && target;
    const RtColumn *missing = number ? rt_encoder_gaps(table, target) : NULL;
    if (!missing || !split) return -1;
    const int8_t *of = split->splits + (int64_t)t->rt.bound->split * split->n_rows;
    for (int64_t i = 0; i < split->n_rows; i++)
        if (of[i] > 0 && of[i] < RT_N_SPLITS && missing->i32[i] != 0) return i;
    return -1;
}

void rt_splits_count(gnnc_trainer *t) {
    int target = t->target = target_of(t->program);
    const RtColumn *y = target >= 0 ? t->rt.bound->col[target] : NULL;
    int at = y ? split_beside(t->program, target) : -1;
    const RtColumn *split = at >= 0 ? t->rt.bound->col[at] : NULL;
    for (int s = 0; s < RT_N_SPLITS; s++) t->split_rows[s] = split ? 0 : -1;
    t->unknown_row = -1;
    if (!split || t->rt.bound->split >= split->n_splits) return;
    const int8_t *of = split->splits + (int64_t)t->rt.bound->split * split->n_rows;
    for (int64_t i = 0; i < split->n_rows; i++)
        if (of[i] > 0 && of[i] < RT_N_SPLITS && rt_column_has_label(y, i)) t->split_rows[of[i]]++;
    t->unknown_row = unknown_row(t, y, at);
}

/* ---- asking ------------------------------------------------------------------- */
/* Fails as no labelled row is in the split, and says why that matters. */
static gnnc_status empty(gnnc_trainer *t, int split, const char *why) {
    const rt_column *c = &t->program->columns[t->target];
    return rt_fail(&t->rt.err, GNNC_E_MISSING,
                   "%s: no row of '%s' with a '%s' is in the %s split (%d): %s", t->rt.bound->dir,
                   t->program->spaces[c->space].name, c->name, SPLIT[split], split, why);
}

gnnc_status rt_splits_known(gnnc_trainer *t) {
    if (t->unknown_row < 0) return GNNC_OK;
    const rt_column *c = &t->program->columns[t->target];
    return rt_fail(
        &t->rt.err, GNNC_E_MISSING,
        "%s: row %lld of '%s' is in a split, but its '%s' is not known ('%s_missing' is 1): "
        "such rows belong to no split; import them with an empty cell there",
        t->rt.bound->dir, (long long)t->unknown_row, t->program->spaces[c->space].name, c->name,
        c->name);
}

gnnc_status rt_splits_check(gnnc_trainer *t) {
    const rt_recipe *r = &t->program->recipe;
    gnnc_status st = rt_bind_require_labels(&t->x);
    if (st != GNNC_OK) return st;
    if (t->links) return rt_link_batches_check(t);
    st = rt_splits_known(t);
    if (st != GNNC_OK) return st;
    if (t->split_rows[1] == 0) return empty(t, 1, "there is nothing to learn from");
    if (t->keep < 0 || t->split_rows[r->keep_split] != 0) return GNNC_OK;
    char why[200];
    snprintf(why, sizeof why,
             "the recipe chooses the epoch to keep, or to stop at, by the %s of these rows "
             "('keep last' without 'stop after' needs none)",
             r->keep_metric);
    return empty(t, r->keep_split, why);
}
