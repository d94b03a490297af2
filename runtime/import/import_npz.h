/* What the readers of .npz archives share: entries by name, and a note of which were used,
 * so that the rest become columns and a misspelt one is not silently ignored. */
#ifndef RUNTIME_IMPORT_NPZ_H
#define RUNTIME_IMPORT_NPZ_H

#include "import_build.h"
#include "zip.h"

typedef struct Npz {
    RtBuild b;
    RtPool pool; /* for what the data set does not keep */
    RtZip zip;
    bool *used;            /* [zip.n] */
    RtTable *home, *label; /* where a column goes whose entry names no table; and y, splits */
    const char *const *entities, *const *relations; /* names found beside the archive */
    int64_t n_entities, n_relations;
} Npz;

bool rt_npz_has(const Npz *z, const char *key);
/* Row-major, in the pool; the entry counts as used. rt_npz_find: *found = false if absent. */
gnnc_status rt_npz_find(Npz *z, RtPool *pool, const char *key, RtArray *a, bool *found);
void rt_npz_not_used(Npz *z, const char *key); /* after all */
gnnc_status rt_npz_need(Npz *z, RtPool *pool, const char *key, int rank, RtArray *a);
/* int32 values that live as long as the data set. */
gnnc_status rt_npz_i32(Npz *z, const char *key, int rank, RtArray *a, const int32_t **v);
gnnc_status rt_npz_count(Npz *z, const char *key, int64_t *n); /* a single number >= 0 */
gnnc_status rt_npz_pair(Npz *z, const char *key, int64_t *n, const int32_t **v); /* [2, n] */
gnnc_status rt_npz_bad(Npz *z, gnnc_status st, const char *key, const char *what);
const char *rt_npz_key(Npz *z, int entry); /* without ".npy"; NULL: no memory */

/* Splits of z->label and all entries not used yet. */
gnnc_status rt_npz_columns(Npz *z);

/* Each begins z->b; the caller closes its data set. */
gnnc_status rt_npz_read_graphs(Npz *z, const RtAlloc *from);  /* one or many graphs */
gnnc_status rt_npz_read_typed(Npz *z, const RtAlloc *from);   /* num_<type>, a__b */
gnnc_status rt_npz_read_triples(Npz *z, const RtAlloc *from); /* triples, or train/valid/test */
gnnc_status rt_npz_read_links(Npz *z, const RtAlloc *from);   /* train_edges, ..; users and items */
gnnc_status rt_npz_read_events(Npz *z, const RtAlloc *from);  /* src, dst, t */

#endif
