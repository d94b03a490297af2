/* .npz archives: which form, its entries, and the columns that all forms may have.
 *     indptr, indices           edges by row              (import_npz_graphs.c)
 *     num_<type>, a__b          several types             (import_npz_typed.c)
 *     triples; train, valid     knowledge graphs          (import_npz_links.c)
 *     train_edges; num_users    link prediction, recommendation
 *     src, dst, t               events
 * docs/data.md lists them in full. */
#include "import_npz.h"

#include <stdio.h>
#include <string.h>

#include "import_folder.h"

/* ---- entries ------------------------------------------------------------------ */
gnnc_status rt_npz_find(Npz *z, RtPool *pool, const char *key, RtArray *a, bool *found) {
    char entry[160], where[300];
    RtBytes bytes;
    gnnc_status st;
    snprintf(entry, sizeof entry, "%s.npy", key);
    snprintf(where, sizeof where, "%.150s: %.140s", z->zip.name, key);
    const RtZipEntry *e = rt_zip_find(&z->zip, entry);
    *found = e;
    if (!e) return GNNC_OK;
    z->used[e - z->zip.entries] = true;
    TRY(st, rt_zip_read(pool, &z->zip, e, &bytes, z->b.err));
    TRY(st, rt_npy_parse(pool, bytes, where, a, z->b.err));
    *a = rt_array_row_major(pool, a);
    if (!a->data) st = rt_fail_nomem(z->b.err, where);
out:
    return st;
}

void rt_npz_not_used(Npz *z, const char *key) {
    char entry[160];
    snprintf(entry, sizeof entry, "%s.npy", key);
    const RtZipEntry *e = rt_zip_find(&z->zip, entry);
    if (e) z->used[e - z->zip.entries] = false;
}

gnnc_status rt_npz_bad(Npz *z, gnnc_status st, const char *key, const char *what) {
    return rt_fail(z->b.err, st, "%s: %s: %s", z->zip.name, key, what);
}

gnnc_status rt_npz_need(Npz *z, RtPool *pool, const char *key, int rank, RtArray *a) {
    bool found;
    gnnc_status st = rt_npz_find(z, pool, key, a, &found);
    if (st != GNNC_OK) return st;
    if (!found) return rt_npz_bad(z, GNNC_E_MISSING, key, "no such entry");
    if (a->rank != rank) return rt_npz_bad(z, GNNC_E_SHAPE, key, "unexpected number of dimensions");
    return GNNC_OK;
}

gnnc_status rt_npz_i32(Npz *z, const char *key, int rank, RtArray *a, const int32_t **v) {
    RtPool *pool = &z->b.d->pool;
    gnnc_status st = rt_npz_need(z, pool, key, rank, a);
    if (st == GNNC_OK && rt_dtype_kind(a->dt) == 'f')
        return rt_npz_bad(z, GNNC_E_DTYPE, key, "whole numbers are expected");
    return st == GNNC_OK ? rt_array_as_i32(pool, a, key, v, z->b.err) : st;
}

gnnc_status rt_npz_count(Npz *z, const char *key, int64_t *n) {
    RtArray a;
    bool found;
    gnnc_status st = rt_npz_find(z, &z->pool, key, &a, &found);
    if (st != GNNC_OK) return st;
    if (!found) return rt_npz_bad(z, GNNC_E_MISSING, key, "no such entry");
    if (a.count != 1) return rt_npz_bad(z, GNNC_E_SHAPE, key, "one number is expected");
    *n = rt_array_i64(&a, 0);
    if (*n < 0 || *n > INT32_MAX) return rt_npz_bad(z, GNNC_E_RANGE, key, "out of range");
    return GNNC_OK;
}

gnnc_status rt_npz_pair(Npz *z, const char *key, int64_t *n, const int32_t **v) {
    RtArray a;
    gnnc_status st = rt_npz_i32(z, key, 2, &a, v);
    if (st != GNNC_OK) return st;
    *n = a.shape[1];
    return a.shape[0] == 2 ? GNNC_OK : rt_npz_bad(z, GNNC_E_SHAPE, key, "not [2, edges]");
}

/* Has the archive an array of that name? */
bool rt_npz_has(const Npz *z, const char *key) {
    char entry[160];
    snprintf(entry, sizeof entry, "%s.npy", key);
    return rt_zip_find(&z->zip, entry);
}

const char *rt_npz_key(Npz *z, int entry) {
    const char *name = z->zip.entries[entry].name;
    size_t n = strlen(name), tail = n > 4 && strcmp(name + n - 4, ".npy") == 0 ? 4 : 0;
    char *key = rt_pool_strndup(&z->pool, name, n - tail);
    if (!key) rt_fail_nomem(z->b.err, z->zip.name);
    return key;
}

/* ---- splits -------------------------------------------------------------------- */
/* Puts the rows that an entry lists into a part of split k. */
static gnnc_status index_part(Npz *z, const char *key, RtColumn *c, int k, int part) {
    RtArray a;
    gnnc_status st = rt_npz_need(z, &z->pool, key, 1, &a);
    const char *where = rt_pool_printf(&z->pool, "%s: %s", z->zip.name, key);
    if (st == GNNC_OK && !where) return rt_fail_nomem(z->b.err, key);
    for (int64_t i = 0; st == GNNC_OK && i < a.count; i++)
        st = rt_build_part(&z->b, c, k, where, rt_array_i64(&a, i), part);
    return st;
}

/* train<suffix>, val<suffix>, test<suffix>; only train must be there. */
static gnnc_status index_split(Npz *z, const char *suffix, RtColumn *c, int k) {
    static const char *const parts[] = {"train", "val", "valid", "test"};
    static const int number[] = {1, 2, 2, 3};
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < 4 && st == GNNC_OK; i++) {
        char key[128];
        snprintf(key, sizeof key, "%s%.100s", parts[i], suffix);
        if (i == 0 || rt_npz_has(z, key)) st = index_part(z, key, c, k, number[i]);
    }
    return st;
}

/* Reads masks [splits, rows] of one part into the split column, which the first of them makes. */
static gnnc_status mask_part(Npz *z, const char *key, int part, RtColumn **c) {
    RtArray a;
    gnnc_status st = rt_npz_need(z, &z->pool, key, 2, &a);
    if (st != GNNC_OK) return st;
    if (a.shape[1] != z->label->count || a.shape[0] < 1 || a.shape[0] > 10000 ||
        (*c && a.shape[0] != (*c)->n_splits))
        return rt_npz_bad(z, GNNC_E_SHAPE, key, "not [splits, rows]");
    if (!*c) TRY(st, rt_build_split(&z->b, z->label, (int)a.shape[0], c));
    const char *where = rt_pool_printf(&z->pool, "%s: %s", z->zip.name, key);
    if (!where) return rt_fail_nomem(z->b.err, key);
    int64_t n = z->label->count;
    for (int64_t i = 0; st == GNNC_OK && i < a.count; i++)
        if (rt_array_i64(&a, i)) st = rt_build_part(&z->b, *c, (int)(i / n), where, i % n, part);
out:
    return st;
}

/* Reads the splits that masks of three parts make. */
static gnnc_status mask_splits(Npz *z) {
    static const char *const keys[] = {"train_masks", "val_masks", "test_masks"};
    RtColumn *c = NULL;
    gnnc_status st = GNNC_OK;
    for (int i = 0; i < 3 && st == GNNC_OK; i++) st = mask_part(z, keys[i], i + 1, &c);
    return st;
}

/* The part that a mask of the name is of, as PyTorch Geometric calls them; 0: it is none. */
static int part_of_mask(const char *name) {
    static const struct {
        const char *name;
        int part;
    } masks[] = {{"train_mask", 1}, {"val_mask", 2}, {"valid_mask", 2}, {"test_mask", 3}};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        if (strcmp(name, masks[i].name) == 0) return masks[i].part;
    return 0;
}

/* Reads a mask [rows], or [rows, splits], of one part. */
static gnnc_status row_mask(Npz *z, RtTable *t, const char *key, int part) {
    RtArray a;
    RtColumn *c;
    bool found;
    gnnc_status st = rt_npz_find(z, &z->pool, key, &a, &found);
    if (st != GNNC_OK) return st;
    int64_t k = a.rank == 2 ? a.shape[1] : 1;
    if (!found || a.rank < 1 || a.rank > 2 || a.shape[0] != t->count || k < 1 || k > 10000)
        return rt_npz_bad(z, GNNC_E_SHAPE, key, "not [rows] or [rows, splits]");
    TRY(st, rt_build_split(&z->b, t, (int)k, &c));
    const char *where = rt_pool_printf(&z->pool, "%s: %s", z->zip.name, key);
    if (!where) return rt_fail_nomem(z->b.err, key);
    for (int64_t i = 0; st == GNNC_OK && i < a.count; i++)
        if (rt_array_i64(&a, i)) st = rt_build_part(&z->b, c, (int)(i % k), where, i / k, part);
out:
    return st;
}

/* test_fold: split k tests fold k + 1 and trains on all others, fold 0 always. */
static gnnc_status fold_splits(Npz *z) {
    RtArray a;
    RtColumn *c;
    gnnc_status st;
    int64_t n_folds = 0;
    TRY(st, rt_npz_need(z, &z->pool, "test_fold", 1, &a));
    if (a.count != z->label->count)
        return rt_npz_bad(z, GNNC_E_SHAPE, "test_fold", "does not have one number per row");
    for (int64_t i = 0; i < a.count; i++) {
        int64_t f = rt_array_i64(&a, i);
        if (f < 0 || f > 1000)
            return rt_npz_bad(z, GNNC_E_RANGE, "test_fold", "folds are 0 to 1000");
        if (f > n_folds) n_folds = f;
    }
    if (n_folds == 0) return rt_npz_bad(z, GNNC_E_VALUE, "test_fold", "no row is in a fold");
    TRY(st, rt_build_split(&z->b, z->label, (int)n_folds, &c));
    int8_t *to = (int8_t *)(uintptr_t)c->splits;
    for (int64_t k = 0; k < n_folds; k++)
        for (int64_t i = 0; i < a.count; i++)
            to[k * a.count + i] = rt_array_i64(&a, i) == k + 1 ? 3 : 1;
out:
    return st;
}

/* train_20, train_40, ..: one split each, in the order of their numbers. */
static gnnc_status numbered_splits(Npz *z) {
    int number[64], n = 0;
    RtColumn *c;
    for (int i = 0; i < z->zip.n; i++) {
        int v, end = 0;
        bool is = sscanf(z->zip.entries[i].name, "train_%6d.npy%n", &v, &end) == 1;
        if (!is || !end || z->zip.entries[i].name[end] || v < 0 || n == 64) continue;
        int at = n++;
        for (; at > 0 && number[at - 1] > v; at--) number[at] = number[at - 1];
        number[at] = v;
    }
    if (!n) return GNNC_OK;
    gnnc_status st = rt_build_split(&z->b, z->label, n, &c);
    for (int k = 0; k < n && st == GNNC_OK; k++) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, "_%d", number[k]);
        st = index_split(z, suffix, c, k);
    }
    return st;
}

/* Reads splits in the form in which they are there: masks, folds, numbers, or lists of rows. */
static gnnc_status read_splits(Npz *z) {
    RtColumn *c;
    gnnc_status st;
    if (!z->label) return GNNC_OK;
    if (rt_npz_has(z, "train_masks")) return mask_splits(z);
    if (rt_npz_has(z, "test_fold")) return fold_splits(z);
    if (!rt_npz_has(z, "train_idx")) return numbered_splits(z);
    TRY(st, rt_build_split(&z->b, z->label, 1, &c));
    st = index_split(z, "_idx", c, 0);
out:
    return st;
}

/* ---- columns -------------------------------------------------------------------- */
/* <stem>_indptr, _indices, _data, _shape as column `name` of t. */
static gnnc_status read_csr(Npz *z, RtTable *t, const char *stem, const char *name) {
    static const char *const parts[] = {"indptr", "indices", "data", "shape"};
    RtArray a[4];
    const int32_t *col;
    RtPool *pool = &z->b.d->pool;
    char key[4][128];
    gnnc_status st;
    for (int i = 0; i < 4; i++) {
        snprintf(key[i], sizeof key[i], "%.100s_%s", stem, parts[i]);
        if (i != 1) TRY(st, rt_npz_need(z, pool, key[i], 1, &a[i]));
    }
    TRY(st, rt_npz_i32(z, key[1], 1, &a[1], &col));
    if (a[3].count != 2 || rt_array_i64(&a[3], 0) != t->count || a[0].count != t->count + 1)
        return rt_npz_bad(z, GNNC_E_SHAPE, key[3], "does not fit the number of rows");
    if (a[1].count != a[2].count)
        return rt_npz_bad(z, GNNC_E_SHAPE, key[2], "not as long as the indices");
    RtColumn *c = rt_build_column(&z->b, t, RT_COL_CSR, name);
    if (!c) return z->b.st;
    c->rank = 2;
    c->shape[1] = rt_array_i64(&a[3], 1);
    c->csr = (RtCsr){.n_rows = t->count, .n_cols = c->shape[1], .nnz = a[1].count, .col = col};
    c->csr.ptr = rt_array_as_i64(pool, &a[0]);
    c->csr.val = rt_array_as_f32(pool, &a[2]);
    if (!c->csr.ptr || !c->csr.val) st = rt_fail_nomem(z->b.err, stem);
    if (c->shape[1] < 0) st = rt_npz_bad(z, GNNC_E_SHAPE, key[3], "is negative");
out:
    return st;
}

/* The table that begins a key, the longest name winning: "paper_x" -> paper, "x". */
static RtTable *table_of(Npz *z, const char *key, const char **column) {
    RtDataset *d = z->b.d;
    RtTable *all[] = {d->nodes, d->edges, d->graphs}, *best = NULL;
    static const char *const words[] = {"node", "edge", "graph"};
    int n[] = {d->n_nodes, d->n_edges, d->n_graphs};
    size_t length = 0;
    for (int s = 0; s < 3; s++)
        for (int i = -1; i < n[s]; i++) {
            if (i < 0 && n[s] != 1) continue; /* the section's word, where it has one table */
            const char *name = i < 0 ? words[s] : all[s][i].name;
            size_t k = strlen(name);
            if (strncmp(key, name, k) != 0 || key[k] != '_' || k <= length) continue;
            best = &all[s][i < 0 ? 0 : i];
            length = k;
            *column = key + k + 1;
        }
    return best;
}

/* Neither "attr" nor "x" gains by telling how its numbers are stored. */
static char *column_name(RtPool *pool, const char *column) {
    size_t n = strlen(column);
    if (n > 4 && strcmp(column + n - 4, "_int") == 0) n -= 4;
    return rt_pool_strndup(pool, column, n);
}

/* Reads an entry that no form names: a column, mask or sparse matrix of the table that its name
 * begins with. */
static gnnc_status read_rest(Npz *z, const char *key) {
    RtArray a;
    bool found;
    const char *column = key;
    size_t n = strlen(key);
    bool csr = n > 7 && strcmp(key + n - 7, "_indptr") == 0;
    char *stem = rt_pool_strndup(&z->pool, key, csr ? n - 7 : n);
    if (!stem) return rt_fail_nomem(z->b.err, key);
    column = stem;
    RtTable *t = table_of(z, stem, &column);
    int part = part_of_mask(column);
    if (!t) t = part || strcmp(key, "y") == 0 ? z->label : z->home;
    if (!t) t = z->home;
    char *name = column_name(&z->pool, column);
    if (!name) return rt_fail_nomem(z->b.err, key);
    if (!t)
        return rt_npz_bad(z, GNNC_E_FORMAT, key, "no table is called like the entry's beginning");
    if (part) return row_mask(z, t, key, part);
    if (csr) return read_csr(z, t, stem, name);
    gnnc_status st = rt_npz_find(z, &z->b.d->pool, key, &a, &found);
    if (st == GNNC_OK && !found) return rt_npz_bad(z, GNNC_E_FORMAT, key, "not an .npy entry");
    const char *where = rt_pool_printf(&z->pool, "%s: %s", z->zip.name, key);
    if (!where) return rt_fail_nomem(z->b.err, key);
    return st == GNNC_OK ? rt_build_array(&z->b, t, name, where, &a) : st;
}

gnnc_status rt_npz_columns(Npz *z) {
    gnnc_status st = GNNC_OK;
    for (int csr = 1; csr >= 0; csr--) /* first those of several entries */
        for (int i = 0; i < z->zip.n && st == GNNC_OK; i++) {
            const char *key = rt_npz_key(z, i);
            if (!key) return GNNC_E_NOMEM;
            size_t n = strlen(key);
            bool is_csr = n > 7 && strcmp(key + n - 7, "_indptr") == 0;
            bool split = strncmp(key, "train_", 6) == 0 || strcmp(key, "test_fold") == 0 ||
                         strncmp(key, "val_", 4) == 0 || strncmp(key, "valid_", 6) == 0 ||
                         strncmp(key, "test_", 5) == 0;
            if (part_of_mask(key)) split = false;
            if (!z->used[i] && !(split && z->label) && is_csr == (csr == 1)) st = read_rest(z, key);
        }
    return st == GNNC_OK ? read_splits(z) : st;
}

/* ---- which form ------------------------------------------------------------------ */
/* Has any entry a name that joins two types, as a__b? */
static bool has_joined_name(const Npz *z) {
    for (int i = 0; i < z->zip.n; i++)
        if (strstr(z->zip.entries[i].name, "__")) return true;
    return false;
}

/* Reads nodes and edges, in the form that the archive's entries tell. */
static gnnc_status read_form(Npz *z, const RtAlloc *from) {
    if (rt_npz_has(z, "triples")) return rt_npz_read_triples(z, from);
    if (rt_npz_has(z, "train_edges") || (rt_npz_has(z, "num_users") && rt_npz_has(z, "train")))
        return rt_npz_read_links(z, from);
    if (rt_npz_has(z, "train") && rt_npz_has(z, "test")) return rt_npz_read_triples(z, from);
    if (rt_npz_has(z, "src") && rt_npz_has(z, "dst")) return rt_npz_read_events(z, from);
    bool one = rt_npz_has(z, "edge_index") || rt_npz_has(z, "indptr");
    return !one && has_joined_name(z) ? rt_npz_read_typed(z, from) : rt_npz_read_graphs(z, from);
}

/* Reads a whole archive; entries that nothing used become columns. */
static gnnc_status read_archive(Npz *z, const RtAlloc *from, RtBytes file, const char *name) {
    gnnc_status st;
    TRY(st, rt_zip_open(&z->pool, file, name, &z->zip, z->b.err));
    z->used = RT_NEWN(&z->pool, bool, z->zip.n);
    if (!z->used) return rt_fail_nomem(z->b.err, name);
    TRY(st, read_form(z, from));
    st = rt_build_finish(&z->b);
out:
    return st;
}

/* Reads an archive of NumPy arrays. */
gnnc_status rt_import_npz_bytes(const RtAlloc *from, RtBytes file, const char *name, RtImport *how,
                                RtDataset **out, RtError *err) {
    Npz z = {.b = {.how = how, .err = err, .name = name}};
    rt_pool_init(&z.pool, from);
    gnnc_status st = read_archive(&z, from, file, name);
    return rt_build_end(&z.b, &z.pool, st, out);
}

/* ---- with the names beside it -------------------------------------------------------- */
/* Reads an archive from its file, with the names of entities and relations that may lie beside
 * it. */
static gnnc_status read_beside(Npz *z, const RtAlloc *from, const char *path) {
    RtFolder folder;
    RtVocabulary v = {0};
    RtBytes file;
    gnnc_status st;
    const char *dir = rt_path_dir(&z->pool, path);
    if (!dir) return rt_fail_nomem(z->b.err, path);
    rt_folder_open(&folder, dir);
    TRY(st, rt_file_map(&z->pool, path, &file, z->b.err));
    TRY(st, rt_vocabulary_read(&z->pool, &folder, &v, z->b.err));
    z->entities = v.entities, z->n_entities = v.n_entities;
    z->relations = v.relations, z->n_relations = v.n_relations;
    st = read_archive(z, from, file, path);
out:
    return st;
}

gnnc_status rt_import_npz(const RtAlloc *from, const char *path, RtImport *how, RtDataset **out,
                          RtError *err) {
    Npz z = {.b = {.how = how, .err = err, .name = path}};
    rt_pool_init(&z.pool, from);
    gnnc_status st = read_beside(&z, from, path);
    return rt_build_end(&z.b, &z.pool, st, out);
}
