/* The starter model that is being written, and what its writers ask of the data. */
#ifndef FRONTEND_IMPORT_SCAFFOLD_IMPL_H
#define FRONTEND_IMPORT_SCAFFOLD_IMPL_H

#include "import_scaffold.h"
#include "import_scaffold_names.h"
#include "runtime/data/json.h"

enum {
    LAYERS = 2,
    LAST_HOP = 3, /* of rows by time: so many references after one another are followed */
    FEW = 5000,   /* rows to learn from */
    MANY = 50000,
};

typedef struct {
    RtText text;
    RtPool *pool;
    const ScaffoldHow *how;
    const RtDataset *d, *all; /* what the model reads, and all there is */
    ScaffoldNames names;
    const char *left; /* node types that no message of arrives, "city, country" */
    RtError *err;
    gnnc_status st;
    const RtTable *home;    /* the rows that the result is of; NULL: no nodes */
    const RtTable *of;      /* the table with labels */
    const RtColumn *label;  /* NULL: none */
    int layers, *hops;      /* [d->n_nodes] layers after which the result knows of a type */
    const RtTable *told_of; /* rows that have told what is asked for, .. */
    const RtColumn *told;   /* .. a number; NULL: there are none */
    bool graphs;            /* labels are of graphs */
    bool timed;             /* rows with labels have a time, and the model sees what is older */
} Scaffold;

/* Adds to the text of the model, unless memory ran out before. */
#define PUT(s, ...)                                                                                \
    do {                                                                                           \
        if ((s)->st == GNNC_OK && !rt_text_printf(&(s)->text, __VA_ARGS__))                        \
            (s)->st = rt_fail_nomem((s)->err, "scaffold");                                         \
    } while (0)

/* What stands for a node without a feature. */
typedef enum {
    BY_COLUMNS,
    BY_DEGREE,  /* where other nodes than those that are learned from will come */
    BY_ITSELF,  /* a vector of its own */
    BY_NOTHING, /* a row that only refers to others: they tell it apart */
} Encoded;

static inline const char *scaffold_name_of(const Scaffold *s, const RtColumn *c) {
    return scaffold_column_name(&s->names, c);
}

static inline const char *scaffold_role_of(const Scaffold *s, const RtTable *t, ScaffoldRole role) {
    return scaffold_role_name(&s->names, t, role);
}

/* ---- import_scaffold_facts.c ---- */
/* The column with the time of a table's rows; NULL: they have none. */
const RtColumn *scaffold_time_of(const Scaffold *s, const RtTable *t);
/* Whether a table has a column of times. */
bool scaffold_has_times(const RtTable *t);
/* The first relation that a split was made for, which models for links begin at. NULL: there is
 * none. */
const RtTable *scaffold_split_links(const RtDataset *d);
/* The last table that has labels, whether they are split or not. NULL: there is none. */
const RtTable *scaffold_labelled_table(const RtDataset *d);
/* Whether a column has one number for each row. */
bool scaffold_is_scalar(const RtColumn *c);
/* The relation of `told_of` that is made of the same reference as the task's relation `own`.
 * NULL: there is none. */
const RtTable *scaffold_told_along(const Scaffold *s, const RtTable *own);
/* Finds what the starter model predicts and of which table, then puts into `seen` the tables
 * that its layers reach from there. s->left names those left out. At most LAST_HOP steps go from
 * a child to its parent tables. */
void scaffold_find_task(Scaffold *s, RtDataset *seen);
/* Whether the model reads a column as a feature: no label, and of a kind that has an encoder. */
bool scaffold_is_feature(const Scaffold *s, const RtColumn *c);
/* Whether rows of a table, which others read, have a time: the model is told how old they are. */
bool scaffold_is_aged(const Scaffold *s, const RtTable *t);
/* Whether a column is a time beside the row's own: the model is told how long before the asked time
 * it was; what is later is not seen. */
bool scaffold_is_past(const Scaffold *s, const RtTable *t, const RtColumn *c);
/* Whether a column is a time that is read as hour, day and season: where rows are not asked at a
 * time. Where they are, rows to learn from lie before those that are judged: nothing is known of a
 * season that only these are in, and ratings of films were predicted worse by it (mean error 0.60
 * for 0.59). */
bool scaffold_is_dated(const Scaffold *s, const RtTable *t, const RtColumn *c);
/* Whether a node type satisfies the test. */
bool scaffold_any_of_nodes(const Scaffold *s, bool is(const Scaffold *, const RtTable *));
/* Whether a table has times that are read as ages: of its rows, or in its columns. */
bool scaffold_has_age(const Scaffold *s, const RtTable *t);
/* Whether times of a table are read at all: as ages, or as dates. */
bool scaffold_has_time(const Scaffold *s, const RtTable *t);
/* Whether some relation leads into a node type (in) or out of it. */
bool scaffold_has_edges(const RtDataset *d, int type, bool in);
/* What the first vectors of a node type are made of. */
Encoded scaffold_encoded(const Scaffold *s, int type);
/* Whether the first vectors of some node type are made in this way. */
bool scaffold_any_encoded(const Scaffold *s, Encoded how);
/* Whether code 0 of a column is kept for names that only other data will have. */
bool scaffold_has_unknown(const RtColumn *c);
/* Whether a feature of some node type satisfies the test. */
bool scaffold_any_feature(const Scaffold *s, bool is(const RtColumn *c));
/* How many rows of a table its first split puts into part k: 1 train, 2 validation, 3 test. */
int64_t scaffold_count_part(const RtTable *t, int k);
/* Whether there are few rows to learn from. */
bool scaffold_has_few(const Scaffold *s);

/* ---- import_scaffold_model.c ---- */
/* Writes the model: encoders, layers and, if there are labels, what reads the result out. */
void scaffold_put_model(Scaffold *s);
/* Writes the layers that are not in the library and that this model needs. */
void scaffold_put_parts(Scaffold *s);

/* ---- import_scaffold_recipe.c ---- */
/* Writes the recipe that learns the labels: loss and metric by their kind, batches by the data's
 * size. */
void scaffold_put_recipe(Scaffold *s);

#endif
