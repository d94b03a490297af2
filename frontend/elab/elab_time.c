/* What has a time is read by it, or is said to be timeless: a row that is newer than the row that
 * is learned from tells it the future, and nobody sees that in the results. */
#include "frontend/elab/elab.h"

#include <string.h>

/* The time column of a table: listed: the one by which the recipe reads its rows; else the first
 * it has. NULL: there is none. */
static const Column *time_column(const Module *m, const Space *s, bool listed) {
    const Sampling *how = &m->recipe.sample;
    for (int i = 0; listed && i < how->times.n; i++)
        if (how->times.v[i]->space == s) return how->times.v[i];
    for (int i = 0; !listed && i < m->cols.n; i++)
        if (m->cols.v[i]->space == s && m->cols.v[i]->kind == COL_TIME) return m->cols.v[i];
    return NULL;
}

/* Reports a table with a time that the recipe does not read by it, though it does not say that
 * it is timeless, and the contrary. */
static void check_table(Elab *e, const Space *s) {
    const Column *listed = time_column(e->m, s, true), *time = time_column(e->m, s, false);
    const char *ends =
        s->kind == SP_EDGE ? arena_printf(e->a, ": %s -> %s", s->src->name, s->dst->name) : "";
    const char *what = s->kind == SP_EDGE ? "edge" : "node";
    if (s->timeless && listed) {
        diag_add(e->c, DIAG_E0318, s->span, "'%s' is timeless, and its rows are read by '%s'",
                 s->name, listed->name);
        diag_note(e->c, e->m->recipe.sample.span, "here");
    } else if (!s->timeless && !listed && time) {
        diag_add(
            e->c, DIAG_E0318, time->span,
            "rows of '%s' have the time '%s' and are read whatever it is, newer ones than the "
            "row that is learned from, too: sample { .. time g.%s.%s }, or say that this tells "
            "nothing of the future, %s %s%s timeless { .. }",
            s->name, time->name, s->name, time->name, what, s->name, ends);
    }
}

/* Checks the times of all tables that the model reads. */
void elab_check_times(Elab *e) {
    Module *m = e->m;
    if (e->c->n_errors) return;
    const bool *read = module_reads(m);
    for (int i = 0; i < m->spaces.n; i++) {
        const Space *s = m->spaces.v[i];
        bool data = s->kind == SP_NODE || (s->kind == SP_EDGE && s->rel == REL_BASE);
        if (data && !s->prefix_of && read[i]) check_table(e, s);
    }
}
