/* The input of `gnnc import`, by what it is, and its cells as numbers. The readers are in
 * runtime/import/. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "import_job.h"
#include "runtime/import/import_encode.h"
#include "runtime/import/import_folder.h"
#include "runtime/import/import_like.h"
#include "runtime/import/import_table.h"

/* Whether the path is a file of a Planetoid data set, "ind.cora.x": *dir is its folder, *name
 * "cora". */
static bool is_planetoid(const char *path, RtPool *pool, const char **dir, const char **name) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (strncmp(base, "ind.", 4) != 0) return false;
    size_t n = strcspn(base + 4, ".");
    *dir = rt_path_dir(pool, path);
    *name = rt_pool_strndup(pool, base + 4, n);
    return *dir && *name;
}

/* Reads a folder of one of the known forms into *d; a file in it shows which. */
static gnnc_status read_folder(ImportJob *o, RtPool *pool, RtDataset **d, RtError *e) {
    static const char *const archives[] = {"graph.npz", "graphs.npz", "triples.npz", "events.npz"};
    const char *path = o->input[0];
    RtFolder f;
    rt_folder_open(&f, path);
    if (o->map) return rt_import_tables(NULL, &f, o->how.map, &o->how, d, e);
    if (rt_folder_has(&f, "metadata.yaml")) return rt_import_ondisk(NULL, &f, &o->how, d, e);
    if (rt_folder_has(&f, "raw")) return rt_import_ogb(NULL, &f, &o->how, d, e);
    if (rt_folder_has(&f, "train.txt")) return rt_import_triples(NULL, &f, &o->how, d, e);
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        if (!rt_folder_has(&f, archives[i])) continue;
        char *file = rt_pool_printf(pool, "%s/%s", path, archives[i]);
        return file ? rt_import_npz(NULL, file, &o->how, d, e) : rt_fail_nomem(e, path);
    }
    return rt_import_tables(NULL, &f, NULL, &o->how, d, e);
}

/* Whether the path is a folder. */
static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Reads a database into *d, with the answer of --task-sql as a table. */
static gnnc_status read_database(ImportJob *o, const ImportDatabase *from, RtDataset **d,
                                 RtError *e) {
    RtSource s = {0};
    if (!from->open)
        return rt_fail(e, GNNC_E_ARG, "%s databases are not read: this gnnc was built without %s",
                       from->name, from->library);
    gnnc_status st = from->open(NULL, o->input[0], &o->how, &s, e);
    if (st == GNNC_OK && o->text.sql) st = rt_task_ask(&s, &o->text, e);
    if (st == GNNC_OK) st = rt_source_order(&s, e);
    if (st == GNNC_OK) st = rt_import_source(NULL, &s, o->how.map, &o->how, d, e);
    if (s.form) s.form->close(&s);
    return st;
}

gnnc_status import_read_task(ImportJob *o, RtPool *pool, RtError *e) {
    RtBytes text;
    gnnc_status st;
    bool database = false;
    for (const ImportDatabase *b = o->databases; b && b->name && o->n_input == 1; b++)
        database |= !is_folder(o->input[0]) && b->takes(o->input[0]);
    if (!database)
        return rt_fail(e, GNNC_E_ARG, "--task-sql asks a database, and %s is none", o->input[0]);
    TRY(st, rt_file_read(pool, o->task_file, &text, e));
    const char *copy = rt_pool_strndup(pool, (const char *)text.p, text.n);
    if (!copy) return rt_fail_nomem(e, o->task_file);
    RtError inner = {""};
    st = rt_query_parse_task(pool, copy, &o->text, &inner);
    if (st != GNNC_OK) st = rt_fail(e, st, "%s: %.400s", o->task_file, inner.text);
out:
    return st;
}

gnnc_status import_read_input(ImportJob *o, RtPool *pool, RtDataset **d, RtError *e) {
    const char *first = o->input[0], *dir, *name;
    RtNamedBytes map = {.name = o->map};
    gnnc_status st = o->map ? rt_file_map(pool, o->map, &map.text, e) : GNNC_OK;
    if (st != GNNC_OK) return st;
    o->how.map = o->map ? &map : NULL; /* until the data are read */
    for (const ImportDatabase *b = o->databases; b && b->name && o->n_input == 1; b++)
        if (is_folder(first) == b->folder && b->takes(first)) return read_database(o, b, d, e);
    if (o->n_input == 2) return rt_import_csv(NULL, first, o->input[1], &o->how, d, e);
    if (is_folder(first)) return read_folder(o, pool, d, e);
    if (rt_ends_with(first, ".npz")) return rt_import_npz(NULL, first, &o->how, d, e);
    if (rt_ends_with(first, ".csv")) return rt_import_csv(NULL, NULL, first, &o->how, d, e);
    if (is_planetoid(first, pool, &dir, &name))
        return rt_import_planetoid(NULL, dir, name, &o->how, d, e);
    return rt_import_edge_list(NULL, first, &o->how, d, e);
}

/* Whether a column of n tables is made by an encoder, which can be kept for other data. */
static bool has_encoders(const RtTable *t, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t[i].n_columns; k++)
            if (t[i].columns[k].encoder) return true;
    return false;
}

gnnc_status import_encode_columns(const ImportJob *o, RtDataset *d, RtError *e) {
    const char *said = o->like              ? "--like"
                       : o->how.standardize ? "--standardize"
                       : o->how.unknown     ? "--unknown"
                       : o->how.rare        ? "--rare"
                       : o->map             ? "--map"
                                            : NULL;
    if (said && !import_has_task(o) && !has_encoders(d->nodes, d->n_nodes) &&
        !has_encoders(d->edges, d->n_edges))
        return rt_fail(e, GNNC_E_ARG, "%s is for tables: %s has no columns of cells", said,
                       o->input[0]);
    if (o->like) {
        gnnc_status st = rt_import_like_check(d, o->how.like, o->input[0], e);
        return st == GNNC_OK ? rt_import_encode_like(d, o->how.like, e) : st;
    }
    bool dated = !isnan(o->made.val_time);
    return rt_import_encode(d, &(RtFitRows){dated, o->made.val_time, o->split.by_time}, e);
}

gnnc_status import_find_folder(ImportJob *o, RtPool *pool, RtError *e) {
    const char *input = o->input[0];
    if (strstr(input, "://")) return GNNC_OK;
    o->how.folder = is_folder(input) ? input : rt_path_dir(pool, input);
    return o->how.folder ? GNNC_OK : rt_fail_nomem(e, input);
}

void import_take_source_task(ImportJob *o) {
    const RtSourceTask *g = &o->how.source_task;
    if (!g->found) return;
    o->task.query = *g->query ? g->query : NULL;
    if (isnan(o->task.val_time)) o->task.val_time = g->val_time;
    if (isnan(o->task.test_time)) o->task.test_time = g->test_time;
    if (o->task.query || g->links.top) return;
    o->made.table = g->table;
    o->made.of_future = true;
    o->made.val_time = g->val_time;
    o->made.test_time = g->test_time;
}
