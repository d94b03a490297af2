/* Writes a data directory: into "<dir>.tmp.<pid>" first, then one rename.  An old
 * data directory is swapped with the new one in one step (RENAME_EXCHANGE) and
 * removed afterwards, so at every moment `dir` is a whole data set.  Files that no import
 * wrote stay in it. */
#include "dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "encoder.h"
#include "json.h"
#include "eval_metric.h"
#include "cache.h"
#include "moved.h"

typedef struct {
    RtPool *pool;
    const char *dir; /* the temporary one */
    RtText json;
    const RtMoves *moves; /* NULL = rows stay */
    const RtMove *move;   /* .. of the table that is being written */
    RtError *err;
    gnnc_status st; /* the first failure; later calls do nothing */
} Writer;

static void put(Writer *w, const char *text) {
    if (w->st == GNNC_OK && !rt_text_put(&w->json, text, strlen(text)))
        w->st = rt_fail_nomem(w->err, w->dir);
}

static void put_string(Writer *w, const char *text) {
    if (w->st == GNNC_OK && !rt_text_json_string(&w->json, text))
        w->st = rt_fail_nomem(w->err, w->dir);
}

static void put_int(Writer *w, int64_t v) {
    if (w->st == GNNC_OK && !rt_text_printf(&w->json, "%lld", (long long)v))
        w->st = rt_fail_nomem(w->err, w->dir);
}

/* Puts  , "key": "file"  and returns where the file is to be written; NULL: nowhere, as writing
 * failed or an earlier run has written it. */
static const char *put_file(Writer *w, const char *key, const char *file) {
    put(w, ", \"");
    put(w, key);
    put(w, "\": ");
    put_string(w, file);
    const char *path = w->st == GNNC_OK ? rt_pool_printf(w->pool, "%s/%s", w->dir, file) : NULL;
    if (!path && w->st == GNNC_OK) w->st = rt_fail_nomem(w->err, file);
    return path && w->moves && access(path, F_OK) == 0 ? NULL : path;
}

/* Saves an array as `file`; half: as rt_npy_create() has it. Of parts it is there whole or not at
 * all, as another run may go on. */
static void put_halves(Writer *w, const char *key, const char *file, RtDtype dt, int rank,
                       const int64_t *shape, const void *data, const void *half) {
    RtArray a = {.dt = dt, .rank = rank, .data = data};
    const char *path = put_file(w, key, file);
    if (!path) return;
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    w->st = w->moves ? rt_npy_save(&w->pool->from, path, &a, w->err)
                     : rt_npy_create(&w->pool->from, path, &a, half, w->err);
}

static void put_array(Writer *w, const char *key, const char *file, RtDtype dt, int rank,
                      const int64_t *shape, const void *data) {
    put_halves(w, key, file, dt, rank, shape, data, NULL);
}

/* Writes an array of the table's rows, in their new order if they are permuted. It has n_lists
 * lists of rows, one behind the other (2 for an edge table's ends, one for each split, else 1). */
static void put_rows(Writer *w, const char *file, RtDtype dt, int64_t n_lists, int rank,
                     const int64_t *shape, const void *data) {
    RtArray a = {.dt = dt, .rank = rank, .data = data};
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    if (!w->move) {
        put_array(w, "file", file, dt, rank, shape, data);
        return;
    }
    const char *path = put_file(w, "file", file);
    if (path) w->st = rt_moved_rows(&w->pool->from, path, &a, n_lists, w->move->rows, w->err);
}

/* The name of an array's file. */
static const char *file_name(Writer *w, const char *stem, const char *suffix) {
    const char *name = rt_pool_printf(w->pool, "%s%s.npy", stem, suffix);
    if (name) return name;
    w->st = rt_fail_nomem(w->err, w->dir);
    return "";
}

/* Writes a column with a value or list of values per row; of 16 bits if the data have it so. */
static void put_dense(Writer *w, const RtColumn *c, const char *stem) {
    const char *file = file_name(w, stem, "");
    bool bf16 = c->low_dt == RT_DT_BF16;
    if (c->low) {
        put(w, bf16 ? ", \"dtype\": \"bf16\"" : ", \"dtype\": \"f16\"");
        put_rows(w, file, bf16 ? RT_DT_U16 : RT_DT_F16, 0, c->rank, c->shape, c->low);
        return;
    }
    put_rows(w, file, rt_column_kind(c->kind)->element, 0, c->rank, c->shape, c->values);
}

/* Writes a sparse column with its rows in the new order. */
static void move_csr(Writer *w, const RtCsr *m, const char *stem) {
    const RtAlloc *from = &w->pool->from;
    const int32_t *rows = w->move->rows;
    const char *path = put_file(w, "ptr", file_name(w, stem, ".ptr"));
    if (path) w->st = rt_moved_ptr(from, path, m->ptr, m->n_rows, rows, w->err);
    path = put_file(w, "col", file_name(w, stem, ".col"));
    if (path)
        w->st = rt_moved_entries(from, path, RT_DT_I32, m->col, m->ptr, m->n_rows, rows, w->err);
    path = put_file(w, "val", file_name(w, stem, ".val"));
    if (path)
        w->st = rt_moved_entries(from, path, RT_DT_F32, m->val, m->ptr, m->n_rows, rows, w->err);
}

/* Writes a sparse column. */
static void put_csr(Writer *w, const RtCsr *m, const char *stem) {
    if (w->move) {
        move_csr(w, m, stem);
        return;
    }
    put_array(w, "ptr", file_name(w, stem, ".ptr"), RT_DT_I64, 1, (int64_t[]){m->n_rows + 1},
              m->ptr);
    put_array(w, "col", file_name(w, stem, ".col"), RT_DT_I32, 1, &m->nnz, m->col);
    put_array(w, "val", file_name(w, stem, ".val"), RT_DT_F32, 1, &m->nnz, m->val);
}

/* Writes the shape of a column with several values per row into the schema. */
static void put_shape(Writer *w, const RtColumn *c) {
    put(w, ", \"shape\": [");
    for (int i = 0; i < c->rank; i++) {
        if (i) put(w, ", ");
        put_int(w, c->shape[i]);
    }
    put(w, "]");
}

/* Writes the number of categories, and their names, into the schema. */
static void put_categories(Writer *w, const RtColumn *c) {
    put(w, ", \"categories\": ");
    put_int(w, c->n_categories);
    if (!c->names) return;
    put(w, ", \"names\": [");
    for (int64_t i = 0; i < c->n_categories; i++) {
        if (i) put(w, ", ");
        put_string(w, c->names[i]);
    }
    put(w, "]");
}

/* Writes how the column was made into the schema. */
static void put_encoder(Writer *w, const RtColumn *c) {
    if (!c->encoder) return;
    put(w, ", \"encoder\": ");
    if (w->st == GNNC_OK && !rt_encoder_put(&w->json, c->encoder, c->name))
        w->st = rt_fail_nomem(w->err, w->dir);
}

/* Writes why an import chose it into the schema; NULL: nothing. */
static void put_why(Writer *w, const char *why) {
    if (!why) return;
    put(w, ", \"why\": ");
    put_string(w, why);
}

/* ,"val": {"roc_auc": 0.7}: of the metrics of one guess, from *b to end. */
static void put_measures(Writer *w, const char *part, const RtBaseline *b, const RtBaseline *end) {
    bool test = strcmp(part, "test") == 0, first = true;
    put(w, ", ");
    put_string(w, part);
    put(w, ": {");
    for (; b < end; b++) {
        double v = test ? b->test : b->val;
        if (!isfinite(v)) continue;
        if (!first) put(w, ", ");
        first = false;
        put_string(w, b->metric);
        put(w, ": ");
        if (w->st == GNNC_OK && !rt_text_printf(&w->json, "%.9g", v))
            w->st = rt_fail_nomem(w->err, w->dir);
    }
    put(w, "}");
}

/* Writes what simple predictions of a task reach: for each its metrics of both held-out splits. */
static void put_baselines(Writer *w, const RtColumn *c) {
    if (!c->n_baselines) return;
    const RtBaseline *b = c->baselines, *all = b + c->n_baselines;
    put(w, ", \"baselines\": [");
    while (b < all) {
        const RtBaseline *end = b;
        while (end < all && strcmp(end->name, b->name) == 0) end++;
        if (b > c->baselines) put(w, ", ");
        put(w, "{\"name\": ");
        put_string(w, b->name);
        put_measures(w, "val", b, end);
        put_measures(w, "test", b, end);
        put(w, "}");
        b = end;
    }
    put(w, "]");
}

/* Writes a column: its entry in the schema, and the files of its arrays. */
static void put_column(Writer *w, const RtColumn *c, const char *table_stem) {
    const char *stem = rt_pool_printf(w->pool, "%s.%s", table_stem, c->name);
    if (!stem) {
        w->st = rt_fail_nomem(w->err, w->dir);
        return;
    }
    put_string(w, c->name);
    put(w, ": {\"kind\": ");
    put_string(w, rt_col_kind_name(c->kind));
    if (c->rank > 1) put_shape(w, c);
    if (rt_column_has_codes(c)) put_categories(w, c);
    put_encoder(w, c);
    put_why(w, c->why);
    put_baselines(w, c);
    switch (rt_column_kind(c->kind)->layout) {
    case RT_LAYOUT_ROWS:
        put_dense(w, c, stem);
        break;
    case RT_LAYOUT_CSR:
        put_csr(w, &c->csr, stem);
        break;
    case RT_LAYOUT_SPLITS:
        put_rows(w, file_name(w, stem, ""), RT_DT_I8, c->n_splits, 2,
                 (int64_t[]){c->n_splits, c->n_rows}, c->splits);
        break;
    }
    put(w, "}");
}

/* Can it be a name in a model: a letter or '_', then digits, too? */
static bool plain(const char *name) {
    for (const char *s = name; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
        if (!letter && (s == name || *s < '0' || *s > '9')) return false;
    }
    return *name && strlen(name) < 64;
}

/* Fails if the name cannot be used in models. */
static void check_name(Writer *w, const char *name) {
    if (w->st == GNNC_OK && !plain(name))
        w->st = rt_fail(w->err, GNNC_E_ARG,
                        "'%s' cannot name a type or column: use letters, digits "
                        "and '_'",
                        name);
}

/* Writes the ends of edges; of parts with the new numbers of the nodes. */
static void put_ends(Writer *w, const RtDataset *d, const RtTable *t, const char *stem) {
    put(w, ", \"src\": ");
    put_string(w, d->nodes[t->src_type].name);
    put(w, ", \"dst\": ");
    put_string(w, d->nodes[t->dst_type].name);
    const char *file = file_name(w, stem, ""), *path;
    if (!w->moves) {
        put_halves(w, "file", file, RT_DT_I32, 2, (int64_t[]){2, t->count}, t->src, t->dst);
        return;
    }
    const int32_t *const end[] = {t->src, t->dst};
    const int32_t *const place[] = {w->moves->nodes[t->src_type].place,
                                    w->moves->nodes[t->dst_type].place};
    path = put_file(w, "file", file);
    if (path) w->st = rt_moved_ends(&w->pool->from, path, t->count, end, place, w->err);
}

/* Writes a name as a line: its own line ends and backslashes are escaped. */
static bool put_line(RtText *to, const char *name) {
    for (const char *s = name; *s; s++) {
        const char *escaped = *s == '\n' ? "\\n" : *s == '\r' ? "\\r" : *s == '\\' ? "\\\\" : NULL;
        if (!rt_text_put(to, escaped ? escaped : s, escaped ? 2 : 1)) return false;
    }
    return rt_text_put(to, "\n", 1);
}

/* Writes a text file of the directory. */
static gnnc_status write_text(Writer *w, const char *file, const RtText *text) {
    RtOut o;
    gnnc_status st;
    const char *path = rt_pool_printf(w->pool, "%s/%s", w->dir, file);
    if (!path) return rt_fail_nomem(w->err, file);
    if (w->moves && access(path, F_OK) == 0) return GNNC_OK; /* an earlier run's */
    TRY(st, (w->moves ? rt_out_open : rt_out_create)(&o, &w->pool->from, path, w->err));
    st = rt_out_write(&o, text->n ? text->s : "", text->n, w->err);
    if (st == GNNC_OK) return rt_out_commit(&o, w->err);
    rt_out_abort(&o);
out:
    return st;
}

/* Writes the names of a table's rows, a line each. */
static void put_names(Writer *w, const RtTable *t, const char *stem) {
    RtText text = {.pool = w->pool};
    const char *file = rt_pool_printf(w->pool, "%s.names.txt", stem);
    bool ok = file;
    for (int64_t i = 0; ok && i < t->count; i++) ok = put_line(&text, t->names[i]);
    if (!ok) w->st = rt_fail_nomem(w->err, w->dir);
    if (w->st == GNNC_OK) w->st = write_text(w, file, &text);
    put(w, ", \"names\": ");
    put_string(w, ok ? file : "");
}

/* Names that stand in the data's directory, a line each. */
static void move_names(Writer *w, const RtDataset *d, const RtTable *t, const char *stem) {
    RtBytes text;
    RtPool file;
    rt_pool_init(&file, &w->pool->from);
    const char *name = rt_pool_printf(w->pool, "%s.names.txt", stem);
    const char *from = rt_pool_printf(w->pool, "%s/%s", d->dir, t->names_file);
    if (w->st == GNNC_OK && (!name || !from)) w->st = rt_fail_nomem(w->err, w->dir);
    const char *to = put_file(w, "names", name ? name : "");
    if (to) w->st = rt_file_map(&file, from, &text, w->err);
    if (to && w->st == GNNC_OK)
        w->st = rt_moved_lines(&w->pool->from, to, text, from, t->count, w->move->rows, w->err);
    rt_pool_free(&file);
}

/* Writes where each graph's nodes begin; of parts, with the graphs in their new order. */
static void put_graph_ptr(Writer *w, const RtDataset *d, const RtTable *t, const char *stem) {
    const RtTable *g = &d->graphs[t->graph];
    const char *file = file_name(w, stem, ".graph_ptr"), *path;
    put(w, ", \"graph\": ");
    put_string(w, g->name);
    if (!w->moves) {
        put_array(w, "graph_ptr", file, RT_DT_I64, 1, (int64_t[]){g->count + 1}, t->graph_ptr);
        return;
    }
    path = put_file(w, "graph_ptr", file);
    if (path)
        w->st = rt_moved_ptr(&w->pool->from, path, t->graph_ptr, g->count,
                             w->moves->graphs[t->graph].rows, w->err);
}

/* Writes where the parts begin, and which rows they were before. */
static void put_parts(Writer *w, const RtTable *t, const char *stem) {
    if (!w->move) return;
    put_array(w, "part_ptr", file_name(w, stem, ".part_ptr"), RT_DT_I64, 1,
              (int64_t[]){w->moves->n_parts + 1}, w->move->ptr);
    put_array(w, "part_rows", file_name(w, stem, ".part_rows"), RT_DT_I32, 1, (int64_t[]){t->count},
              w->move->original);
}

/* When its rows happened; a task may have left the column out. */
static void put_time(Writer *w, const RtTable *t) {
    if (!t->time || (*t->time && !rt_table_column(t, t->time))) return;
    put(w, ", \"time\": ");
    if (*t->time)
        put_string(w, t->time);
    else
        put(w, "null");
}

/* Writes a table: its entry in the schema, and its files. */
static void put_table(Writer *w, const RtDataset *d, const RtTable *t, const char *section) {
    check_name(w, t->name);
    for (int i = 0; i < t->n_columns; i++) check_name(w, t->columns[i].name);
    const char *stem = rt_pool_printf(w->pool, "%.*s.%s", (int)strlen(section) - 1, section,
                                      t->name); /* "nodes" -> "node.paper" */
    if (!stem) w->st = rt_fail_nomem(w->err, w->dir);
    if (w->st != GNNC_OK) return;
    put(w, "    ");
    put_string(w, t->name);
    put(w, ": {\"count\": ");
    put_int(w, t->count);
    if (t->src) put_ends(w, d, t, stem);
    if (t->src) put_why(w, t->why);
    if (t->names) put_names(w, t, stem);
    if (t->names_file && w->move) move_names(w, d, t, stem);
    if (t->graph_ptr) put_graph_ptr(w, d, t, stem);
    put_parts(w, t, stem);
    put_time(w, t);
    put(w, ", \"columns\": {");
    for (int i = 0; i < t->n_columns; i++) {
        put(w, i ? ",\n      " : "\n      ");
        put_column(w, &t->columns[i], stem);
    }
    put(w, "}}");
}

/* Writes all node types, edge types or kinds of graphs; `move`: their rows in the order of
 * parts. */
static void put_section(Writer *w, const RtDataset *d, const char *key, const RtTable *t, int n,
                        const RtMove *move) {
    if (n == 0) return;
    put(w, ",\n  ");
    put_string(w, key);
    put(w, ": {");
    for (int i = 0; i < n; i++) {
        put(w, i ? ",\n" : "\n");
        w->move = move ? &move[i] : NULL;
        put_table(w, d, &t[i], key);
        if (w->moves) rt_dataset_forget_pages(d); /* they were read once */
    }
    put(w, "}");
}

/* Writes a text about the data into the schema, if there is one. */
static void put_text(Writer *w, const char *key, const char *text) {
    if (!*text) return;
    put(w, ",\n  ");
    put_string(w, key);
    put(w, ": ");
    put_string(w, text);
}

/* Arrays first, the schema last: a directory without one is no data set. */
static gnnc_status write_all(Writer *w, const RtDataset *d) {
    put(w, "{\n  \"format\": 1");
    put_text(w, "name", d->name);
    put_text(w, "source", d->source);
    put_text(w, "licence", d->licence);
    const RtMoves *m = w->moves;
    put_section(w, d, "nodes", d->nodes, d->n_nodes, m ? m->nodes : NULL);
    put_section(w, d, "edges", d->edges, d->n_edges, NULL);
    put_section(w, d, "graphs", d->graphs, d->n_graphs, m ? m->graphs : NULL);
    put(w, "\n}\n");
    if (w->st == GNNC_OK) w->st = write_text(w, "schema.json", &w->json);
    if (w->st != GNNC_OK || m) return w->st; /* of parts each file was synced */
    return rt_dir_sync_files(w->dir, w->err);
}

/* ---- directories ----------------------------------------------------------- */
/* Removes the files in a directory; directories in it are none of ours, and fail. */
static gnnc_status remove_files(RtPool *pool, const char *dir, RtError *err) {
    DIR *list = opendir(dir);
    if (!list) return rt_fail_errno(err, dir, "open");
    gnnc_status st = GNNC_OK;
    for (struct dirent *e; (e = readdir(list));) {
        if (rt_is_dots(e->d_name)) continue;
        if (unlinkat(dirfd(list), e->d_name, 0) == 0) continue;
        const char *path = rt_pool_printf(pool, "%s/%s", dir, e->d_name);
        st = rt_fail_errno(err, path ? path : e->d_name, "remove");
    }
    closedir(list);
    return st;
}

/* Removes a directory and the files in it. */
static gnnc_status remove_tree(RtPool *pool, const char *dir, RtError *err) {
    gnnc_status st = remove_files(pool, dir, err);
    if (rmdir(dir) != 0 && st == GNNC_OK) st = rt_fail_errno(err, dir, "remove");
    return st;
}

/* ---- what an import did not write stays -------------------------------------------- */
/* Files stand as members of objects; lists hold names of categories and classes. */
static int64_t gather_texts(const RtJson *v, const char **to) {
    int64_t n = 0;
    if (v->kind == RT_JSON_STRING) {
        if (to) *to = v->text;
        return 1;
    }
    for (const RtJson *e = v->kind == RT_JSON_OBJECT ? v->first : NULL; e; e = e->next)
        n += gather_texts(e, to ? to + n : NULL);
    return n;
}

/* Texts of a schema, and its own name: among them every file that an import wrote; sorted. */
typedef struct {
    const char **v;
    int64_t n;
} Texts;

/* Lists the names of all files that a schema names, sorted; false: no memory. */
static bool list_texts(RtPool *pool, const RtJson *schema, Texts *t) {
    t->n = gather_texts(schema, NULL);
    t->v = RT_NEWN(pool, const char *, t->n + 1);
    if (!t->v) return false;
    gather_texts(schema, t->v);
    t->v[t->n++] = "schema.json";
    qsort(t->v, (size_t)t->n, sizeof *t->v, rt_by_text);
    return true;
}

/* The schema of the data directory that is replaced: it names the files that an import wrote. */
static gnnc_status read_schema(RtPool *pool, const char *dir, RtJson **out, RtError *err) {
    RtBytes text;
    gnnc_status st;
    const char *path = rt_pool_printf(pool, "%s/schema.json", dir);
    if (!path) return rt_fail_nomem(err, dir);
    TRY(st, rt_file_read(pool, path, &text, err));
    st = rt_json_parse(pool, text, path, out, err);
out:
    return st;
}

static bool may_be_ours(const char *file) {
    return strcmp(file, "schema.json") == 0 || rt_ends_with(file, ".npy") ||
           rt_ends_with(file, ".names.txt");
}

/* A data set that is called "shop" has not written a file "shop". */
static bool is_ours(const Texts *t, const char *file) {
    if (rt_ends_with(file, RT_CACHE_END)) return true; /* made of the old data */
    return may_be_ours(file) && bsearch(&file, t->v, (size_t)t->n, sizeof *t->v, rt_by_text);
}

/* Checkpoints, notes and `tuned.json` of the old directory get a second name in the new one, so
 * that the exchange leaves them where they were. */
static gnnc_status keep_others(RtPool *pool, const char *dir, const char *tmp, RtError *err) {
    RtJson *schema;
    Texts named;
    gnnc_status st = read_schema(pool, dir, &schema, err);
    if (st != GNNC_OK) return st;
    if (!list_texts(pool, schema, &named)) return rt_fail_nomem(err, dir);
    DIR *list = opendir(dir);
    if (!list) return rt_fail_errno(err, dir, "open");
    for (struct dirent *e; st == GNNC_OK && (e = readdir(list));) {
        if (rt_is_dots(e->d_name) || is_ours(&named, e->d_name)) continue;
        const char *to = rt_pool_printf(pool, "%s/%s", tmp, e->d_name);
        if (!to)
            st = rt_fail_nomem(err, dir);
        else if (linkat(dirfd(list), e->d_name, AT_FDCWD, to, 0) != 0)
            st = rt_fail(err, GNNC_E_IO, "%s: '%s' is not of an import, and cannot be kept: %s",
                         dir, e->d_name,
                         errno == EEXIST  ? "the new data have a file of that name"
                         : errno == EPERM ? "it is a folder; move it away first"
                                          : "it cannot be linked");
    }
    closedir(list);
    return st;
}

static bool is_data_dir(RtPool *pool, const char *dir) {
    const char *path = rt_pool_printf(pool, "%s/schema.json", dir);
    return path && access(path, F_OK) == 0;
}

/* Is the directory empty? */
static bool is_empty(DIR *list) {
    for (struct dirent *e; (e = readdir(list));)
        if (!rt_is_dots(e->d_name)) return false;
    return true;
}

/* The path without slashes at its end: "data/" would follow a link, "data" is the link. NULL: no
 * memory. */
static const char *without_slashes(RtPool *pool, const char *dir) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    return rt_pool_strndup(pool, dir, n);
}

/* Fails, as a directory takes the place of another by renaming, which would cut the link. */
static gnnc_status refuse_link(const char *dir, RtError *err) {
    char to[256];
    ssize_t n = readlink(dir, to, sizeof to);
    return rt_fail(err, GNNC_E_IO, "%s: is a symbolic link; name the directory it leads to: %.*s",
                   dir, n < 0 ? 0 : (int)n, to);
}

gnnc_status rt_dataset_place(RtPool *pool, const char *dir, bool *taken, RtError *err) {
    struct stat s;
    *taken = false;
    dir = without_slashes(pool, dir);
    if (!dir) return rt_fail_nomem(err, "data directory");
    if (lstat(dir, &s) != 0) return errno == ENOENT ? GNNC_OK : rt_fail_errno(err, dir, "create");
    if (S_ISLNK(s.st_mode)) return refuse_link(dir, err);
    if (!S_ISDIR(s.st_mode))
        return rt_fail(err, GNNC_E_IO, "%s: exists and is not a directory", dir);
    DIR *list = opendir(dir);
    if (!list) return rt_fail_errno(err, dir, "create");
    bool empty = is_empty(list);
    closedir(list);
    *taken = !empty;
    if (empty || is_data_dir(pool, dir)) return GNNC_OK;
    return rt_fail(err, GNNC_E_IO, "%s: exists and is not a data directory", dir);
}

/* Swaps two directories; in three renames where the file system cannot do it in one. */
static bool exchange(RtPool *pool, const char *tmp, const char *dir) {
    if (renameat2(AT_FDCWD, tmp, AT_FDCWD, dir, RENAME_EXCHANGE) == 0) return true;
    const char *old =
        errno == EINVAL || errno == ENOSYS ? rt_pool_printf(pool, "%s.old", tmp) : NULL;
    if (!old || rename(dir, old) != 0) return false;
    if (rename(tmp, dir) == 0) return rename(old, tmp) == 0;
    int cause = errno;
    rename(old, dir);
    errno = cause;
    return false;
}

/* Gives the directory `tmp` the name `dir`. Data that are there are replaced if the caller says
 * so. */
static gnnc_status install(RtPool *pool, const char *tmp, const char *dir, bool replace,
                           RtError *err) {
    const char *parent = rt_path_dir(pool, dir);
    if (!parent) return rt_fail_nomem(err, dir);
    if (rename(tmp, dir) == 0) return rt_dir_sync(parent, err); /* absent or empty */
    if (errno != ENOTEMPTY && errno != EEXIST) return rt_fail_errno(err, dir, "create");
    if (!is_data_dir(pool, dir))
        return rt_fail(err, GNNC_E_IO, "%s: exists and is not a data directory", dir);
    if (!replace) return rt_fail(err, GNNC_E_IO, "%s: exists already", dir);
    gnnc_status st = keep_others(pool, dir, tmp, err);
    if (st != GNNC_OK) return st;
    if (!exchange(pool, tmp, dir)) return rt_fail_errno(err, dir, "replace");
    st = rt_dir_sync(parent, err);
    return st == GNNC_OK ? remove_tree(pool, tmp, err) : st;
}

/* The folders that `dir` is to stand in, as mkdir -p makes them. */
static gnnc_status make_parents(RtPool *pool, const char *dir, RtError *err) {
    char *path = rt_pool_strndup(pool, dir, strlen(dir));
    if (!path) return rt_fail_nomem(err, dir);
    for (char *s = path + 1; *path && *s; s++) {
        if (*s != '/') continue;
        *s = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) return rt_fail_errno(err, path, "create");
        *s = '/';
    }
    return GNNC_OK;
}

/* ---- directories of writers that were killed ---------------------------------------- */
/* Locks a directory for its writer, with whom the lock ends however he ends; -1: another has it. */
static int lock_dir(int at, const char *name) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

/* Is it the name of a directory that is being written, "shop.tmp.4711" beside "shop"? */
static bool is_temporary(const char *name, const char *base) {
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, ".tmp.", 5) != 0) return false;
    const char *pid = name + n + 5;
    return *pid && strspn(pid, "0123456789") == strlen(pid);
}

/* A directory a minute old has been locked by its writer, if it has one. */
static bool is_old(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && time(NULL) - s.st_mtime > 60;
}

/* Is it another name of a file that stands elsewhere, too (keep_others)? */
static bool is_second_name(int dir, const char *file) {
    struct stat s;
    return fstatat(dir, file, &s, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(s.st_mode) &&
           s.st_nlink > 1;
}

/* A file that was not complete when its writer was killed, "schema.json.tmp.4711.0". */
static bool is_incomplete(const char *file) {
    return strstr(file, ".npy.tmp.") || strstr(file, ".txt.tmp.") || strstr(file, ".json.tmp.") ||
           strstr(file, RT_CACHE_END ".tmp.");
}

/* Nothing is lost with it: the files are an import's, or have another name. */
static bool is_left_over(const char *dir) {
    DIR *list = opendir(dir);
    bool ours = list;
    for (struct dirent *e; ours && (e = readdir(list));)
        ours = rt_is_dots(e->d_name) || may_be_ours(e->d_name) || is_incomplete(e->d_name) ||
               rt_ends_with(e->d_name, RT_CACHE_END) || is_second_name(dirfd(list), e->d_name);
    if (list) closedir(list);
    return ours;
}

/* Removes directories beside `dir` that writers left which were killed: nobody has their lock any
 * more. */
static void remove_abandoned(RtPool *pool, const char *dir) {
    const char *parent = rt_path_dir(pool, dir), *slash = strrchr(dir, '/');
    DIR *list = parent ? opendir(parent) : NULL;
    for (struct dirent *e; list && (e = readdir(list));) {
        if (!is_temporary(e->d_name, slash ? slash + 1 : dir)) continue;
        const char *path = rt_pool_printf(pool, "%s/%s", parent, e->d_name);
        int fd = path ? lock_dir(dirfd(list), e->d_name) : -1;
        if (fd >= 0 && is_old(fd) && is_left_over(path)) remove_tree(pool, path, NULL);
        if (fd >= 0) close(fd);
    }
    if (list) closedir(list);
}

/* Writes the directory under another name beside it and gives it its name when it is complete. */
static gnnc_status write_dir(RtPool *pool, const RtDataset *d, const char *dir, bool replace,
                             RtError *err) {
    dir = without_slashes(pool, dir);
    const char *tmp = dir ? rt_pool_printf(pool, "%s.tmp.%ld", dir, (long)getpid()) : NULL;
    if (!tmp) return rt_fail_nomem(err, "data directory");
    gnnc_status st = make_parents(pool, dir, err);
    if (st != GNNC_OK) return st;
    remove_abandoned(pool, dir);
    if (mkdir(tmp, 0777) != 0) return rt_fail_errno(err, tmp, "create");
    int lock = lock_dir(AT_FDCWD, tmp);
    Writer w = {.pool = pool, .dir = tmp, .json = {.pool = pool}, .err = err};
    st = write_all(&w, d);
    if (st == GNNC_OK) st = install(pool, tmp, dir, replace, err);
    if (st != GNNC_OK) remove_tree(pool, tmp, NULL);
    if (lock >= 0) close(lock);
    return st;
}

gnnc_status rt_dataset_write(const RtDataset *d, const char *dir, bool replace, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, &d->pool.from);
    gnnc_status st = write_dir(&pool, d, dir, replace, err);
    rt_pool_free(&pool);
    return st;
}

/* ---- directories of writers that can be resumed --------------------------------------- */
/* Does the path still lead to this open directory? Its last owner may have renamed it. */
static bool is_at(int fd, const char *path) {
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

gnnc_status rt_work_open(RtPool *pool, const char *dir, RtWork *w, RtError *err) {
    *w = (RtWork){.dir = without_slashes(pool, dir), .lock = -1};
    w->path = w->dir ? rt_pool_printf(pool, "%s.partition", w->dir) : NULL;
    w->state = w->path ? rt_pool_printf(pool, "%s/partition" RT_CACHE_END, w->path) : NULL;
    if (!w->state) return rt_fail_nomem(err, dir);
    gnnc_status st = make_parents(pool, w->dir, err);
    if (st != GNNC_OK) return st;
    if (mkdir(w->path, 0777) != 0 && errno != EEXIST) return rt_fail_errno(err, w->path, "create");
    w->lock = lock_dir(AT_FDCWD, w->path);
    bool taken = w->lock < 0 ? errno == EWOULDBLOCK : !is_at(w->lock, w->path);
    if (!taken && (w->lock >= 0 || errno == EBADF || errno == ENOLCK || errno == EOPNOTSUPP))
        return GNNC_OK;
    st = taken ? rt_fail(err, GNNC_E_STATE, "%s: another gnnc partition is at work there", w->path)
               : rt_fail_errno(err, w->path, "open");
    if (w->lock >= 0) close(w->lock);
    w->lock = -1;
    return st;
}

gnnc_status rt_work_clear(RtPool *pool, const RtWork *w, RtError *err) {
    if (is_left_over(w->path)) return remove_files(pool, w->path, err);
    return rt_fail(err, GNNC_E_STATE, "%s: has files that no partition wrote; move it away",
                   w->path);
}

void rt_work_close(RtPool *pool, RtWork *w, gnnc_status st) {
    bool failed = st != GNNC_OK;         /* else it has another name */
    if (st == GNNC_E_IO) rmdir(w->path); /* if there is nothing in it */
    if (failed && st != GNNC_E_IO && is_left_over(w->path)) remove_tree(pool, w->path, NULL);
    if (w->lock >= 0) close(w->lock);
}

/* Removes what an earlier run was in the middle of: an incomplete file; second names that
 * keep_others() gave. */
static gnnc_status remove_incomplete(const RtWork *w, RtError *err) {
    DIR *list = opendir(w->path);
    gnnc_status st = GNNC_OK;
    if (!list) return rt_fail_errno(err, w->path, "open");
    for (struct dirent *e; st == GNNC_OK && (e = readdir(list));) {
        if (!is_incomplete(e->d_name) && !is_second_name(dirfd(list), e->d_name)) continue;
        if (unlinkat(dirfd(list), e->d_name, 0) != 0) st = rt_fail_errno(err, w->path, "clean");
    }
    closedir(list);
    return st;
}

/* Gives the complete directory its name, and takes from it what was for other runs. */
static gnnc_status install_work(RtPool *pool, const RtWork *work, bool replace, RtError *err) {
    const char *state = strrchr(work->state, '/');
    const char *moved = rt_pool_printf(pool, "%s%s", work->dir, state);
    if (!moved) return rt_fail_nomem(err, work->dir);
    gnnc_status st = install(pool, work->path, work->dir, replace, err);
    if (st == GNNC_OK) unlink(moved);
    return st;
}

gnnc_status rt_dataset_write_moved(const RtDataset *d, const RtMoves *m, const RtWork *work,
                                   bool replace, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, &d->pool.from);
    Writer w = {.pool = &pool, .dir = work->path, .json = {.pool = &pool}, .moves = m, .err = err};
    gnnc_status st = remove_incomplete(work, err);
    if (st == GNNC_OK) st = write_all(&w, d);
    if (st == GNNC_OK) st = install_work(&pool, work, replace, err);
    rt_pool_free(&pool);
    return st;
}
