/* What layers and sizes of a starter model are called: `table_column`, each name once. */
#ifndef FRONTEND_IMPORT_SCAFFOLD_NAMES_H
#define FRONTEND_IMPORT_SCAFFOLD_NAMES_H

#include "runtime/data/dataset.h"

/* What a node type has beside its columns. */
typedef enum {
    SCAFFOLD_AGE,
    SCAFFOLD_DEGREE,
    SCAFFOLD_SELF,
    SCAFFOLD_N_ROLES,
} ScaffoldRole;

typedef struct {
    const RtDataset *d;
    const char ***of; /* by table (graphs, nodes, edges): of its columns, then of its roles */
} ScaffoldNames;

/* Names for d's columns and roles, in `pool`.  E_NOMEM. */
gnnc_status scaffold_names(RtPool *pool, const RtDataset *d, ScaffoldNames *out, RtError *err);
/* "customer_city"; c is a column of d. */
const char *scaffold_column_name(const ScaffoldNames *n, const RtColumn *c);
const char *scaffold_role_name(const ScaffoldNames *n, const RtTable *t, ScaffoldRole role);

#endif
