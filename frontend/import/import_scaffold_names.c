/* Names of starters.  Table `a_b` may have a column `c`, table `a` a column `b_c`, and a table with
 * a time a column `age`: the first one is called `a_b_c`, each later one gets underscores until no
 * other has its name.  Columns come before what a table has beside them. */
#include "import_scaffold_names.h"

#include <stdio.h>
#include <string.h>

#include "runtime/data/json.h"
#include "runtime/import/import_dict.h"

static const char *const role_names[SCAFFOLD_N_ROLES] = {"age", "degree", "self"};

typedef struct {
    RtPool *pool;
    RtDict taken;
    RtText text; /* a name that is tried */
} Naming;

/* The next table: graphs, nodes, edges. NULL: there are no more. */
static const RtTable *table_at(const RtDataset *d, int i) {
    if (i < d->n_graphs) return &d->graphs[i];
    if ((i -= d->n_graphs) < d->n_nodes) return &d->nodes[i];
    return (i -= d->n_nodes) < d->n_edges ? &d->edges[i] : NULL;
}

/* Adds `prefix name` and, of further dimensions, `prefix name_2`, .. to the names that are taken,
 * or
 * (`add` is false) looks whether one of them is. 1: done, or none is; 0: one is; -1: out of memory.
 */
static int each_name(Naming *n, const char *prefix, const char *name, int dims, bool add) {
    for (int i = 1; i <= dims; i++) {
        n->text.n = 0;
        bool ok = i == 1 ? rt_text_printf(&n->text, "%s%s", prefix, name)
                         : rt_text_printf(&n->text, "%s%s_%d", prefix, name, i);
        if (!ok) return -1;
        if (!add && rt_dict_find(&n->taken, n->text.s, n->text.n) >= 0) return 0;
        if (add && rt_dict_add(&n->taken, n->text.s, n->text.n) < 0) return -1;
    }
    return 1;
}

/* The name `table_what` with as many underscores as make it, and the sizes called by it, new; NULL:
 * no memory. `size`: what a size's name begins with. */
static const char *new_name(Naming *n, const char *table, const char *what, const char *size,
                            int dims) {
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%s_", size);
    for (int k = 0;; k++) {
        RtText t = {.pool = n->pool};
        bool ok = rt_text_printf(&t, "%s_%s", table, what);
        for (int i = 0; i < k && ok; i++) ok = rt_text_printf(&t, "_");
        if (!ok) return NULL;
        int free = each_name(n, "", t.s, 1, false);
        if (free == 1) free = each_name(n, prefix, t.s, dims, false);
        if (free == 0) continue;
        if (free == 1) free = each_name(n, "", t.s, 1, true);
        if (free == 1) free = each_name(n, prefix, t.s, dims, true);
        return free == 1 ? t.s : NULL;
    }
}

/* Names the columns of a table. False: memory ran out. */
static bool name_columns(Naming *n, const RtTable *t, const char *table, const char **of) {
    for (int i = 0; i < t->n_columns; i++) {
        const RtColumn *c = &t->columns[i];
        int dims = c->rank > 2 ? c->rank - 1 : 1;
        of[i] = new_name(n, table, c->name, rt_col_facts[c->kind].size, dims);
        if (!of[i]) return false;
    }
    return true;
}

/* Names what a node type has beside its columns, such as its age. False: memory ran out. */
static bool name_roles(Naming *n, const RtTable *t, const char **of) {
    for (int i = 0; i < SCAFFOLD_N_ROLES; i++)
        if (!(of[i] = new_name(n, t->name, role_names[i], "", 1))) return false;
    return true;
}

/* Takes the names that the model uses for past labels along each relation, so that nothing else
 * gets them. False: memory ran out. */
static bool take_past_labels(Naming *n, const RtDataset *d) {
    for (int i = 0; i < d->n_edges; i++)
        if (each_name(n, "told_", d->edges[i].name, 1, true) < 0 ||
            each_name(n, "from_", d->edges[i].name, 1, true) < 0)
            return false;
    return true;
}

/* Names all columns and roles of a dataset; of[i]: those of its i-th table. False: memory ran
 * out. */
static bool name_all(Naming *n, const RtDataset *d, const char ***of) {
    if (!take_past_labels(n, d)) return false;
    const RtTable *t;
    for (int i = 0; (t = table_at(d, i)); i++) {
        const char *table = i < d->n_graphs ? "graph" : t->name;
        of[i] = RT_NEWN(n->pool, const char *, t->n_columns + SCAFFOLD_N_ROLES);
        if (!of[i] || !name_columns(n, t, table, of[i])) return false;
    }
    for (int i = 0; i < d->n_nodes; i++)
        if (!name_roles(n, &d->nodes[i], of[d->n_graphs + i] + d->nodes[i].n_columns)) return false;
    return true;
}

/* Chooses names for all columns and roles of a dataset, none of them twice. */
gnnc_status scaffold_names(RtPool *pool, const RtDataset *d, ScaffoldNames *out, RtError *err) {
    Naming n = {.pool = pool, .text.pool = pool};
    rt_dict_init(&n.taken, pool);
    *out =
        (ScaffoldNames){d, RT_NEWN(pool, const char **, d->n_graphs + d->n_nodes + d->n_edges + 1)};
    return out->of && name_all(&n, d, out->of) ? GNNC_OK : rt_fail_nomem(err, "scaffold");
}

/* What the model calls a column of the dataset; "": it is none of the dataset's. */
const char *scaffold_column_name(const ScaffoldNames *n, const RtColumn *c) {
    const RtTable *t;
    for (int i = 0; (t = table_at(n->d, i)); i++) {
        uintptr_t at = (uintptr_t)c - (uintptr_t)t->columns;
        if (at < (size_t)t->n_columns * sizeof *c) return n->of[i][at / sizeof *c];
    }
    return "";
}

const char *scaffold_role_name(const ScaffoldNames *n, const RtTable *t, ScaffoldRole role) {
    return n->of[n->d->n_graphs + (t - n->d->nodes)][t->n_columns + (int)role];
}
