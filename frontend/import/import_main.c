/* `gnnc import`: reads data in many forms, makes tasks, splits and columns, and writes a data
 * directory. */
#include "import_main.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "import_job.h"
#include "import_scaffold.h"
#include "runtime/import/import_encode.h"
#include "runtime/import/import_table.h"
#include "runtime/import/import_time.h"

/* Checks that the folder of a file that is to be written exists and may be written to. option:
 * the one that names it. */
static gnnc_status folder_of(const char *option, const char *file, RtPool *pool, RtError *e) {
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (!slash) return GNNC_OK;
    int n = slash == file ? 1 : (int)(slash - file);
    const char *folder = rt_pool_printf(pool, "%.*s", n, file);
    if (!folder) return rt_fail_nomem(e, option);
    if (access(folder, W_OK | X_OK) == 0) return GNNC_OK;
    return rt_fail(e, GNNC_E_IO, "%s %s: %s: %s", option, file, folder, strerror(errno));
}

/* Checks that all results can be written where they should, before minutes of reading. */
static gnnc_status nothing_in_the_way(const ImportJob *o, RtPool *pool, RtError *e) {
    bool taken;
    gnnc_status st = rt_dataset_place(pool, o->dir, &taken, e);
    if (st == GNNC_OK) st = folder_of("--scaffold", o->scaffold, pool, e);
    if (st == GNNC_OK) st = folder_of("--write-map", o->write_map, pool, e);
    if (st != GNNC_OK || o->force) return st;
    const char *there = taken                                             ? o->dir
                        : o->scaffold && access(o->scaffold, F_OK) == 0   ? o->scaffold
                        : o->write_map && access(o->write_map, F_OK) == 0 ? o->write_map
                                                                          : NULL;
    if (!there) return GNNC_OK;
    return rt_fail(e, GNNC_E_IO, "%s: exists already; --force replaces it", there);
}

/* Writes the starter model for the data and, if there is one, for their task. */
static gnnc_status write_scaffold(const ImportJob *o, const RtDataset *d, RtError *e) {
    ScaffoldHow how = {
        .dir = o->dir, .by_time = o->split.by_time, .replace = o->force, .import = &o->how};
    if (o->made.table) {
        how.task = o->made.table;
        how.of_future = o->made.of_future;
        how.told_table = o->made.told_table;
        how.told = o->made.told;
        how.ranks = o->made.ranks.top ? &o->made.ranks : NULL;
        how.window = o->made.window;
    }
    return gnnc_import_scaffold(d, &how, o->scaffold, e);
}

/* Writes how inputs became tables and columns to the file of --write-map. */
static gnnc_status write_map(const ImportJob *o, const RtDataset *d, RtPool *pool, RtError *e) {
    RtText text = {.pool = pool};
    RtOut to;
    const char *const made[] = {o->made.table, o->made.history}; /* of a task; else NULL */
    if (!rt_map_put(&text, d, made)) return rt_fail_nomem(e, "map");
    gnnc_status st = rt_out_open(&to, NULL, o->write_map, e);
    if (st != GNNC_OK) return st;
    st = rt_out_write(&to, text.s, text.n, e);
    if (st == GNNC_OK) return rt_out_commit(&to, e);
    rt_out_abort(&to);
    return st;
}

/* Fills what follows from the options, before anything is read. */
static void begin(ImportJob *o, const ImportReaders *readers, FILE *err) {
    if (readers) o->how.read_image = readers->read_image;
    import_listen(o, err);
    o->task.by_time = o->split.by_time;
    o->how.keeps_numbers = import_has_task(o);
    o->how.asked = o->task.query;
    if (import_has_task(o) && !o->like) /* what a starter needs to learn */
        o->how.standardize = o->how.unknown = true;
    o->how.source_task.name = o->task.query;
    o->how.source_task.table = o->task.name ? o->task.name : "task";
}

/* Reads the input into *d, after what says how: the encoders of --like, the task of --task-sql. */
static gnnc_status read_data(ImportJob *o, RtPool *pool, RtEncoders *like, RtDataset **d, FILE *err,
                             RtError *e) {
    gnnc_status st = nothing_in_the_way(o, pool, e);
    if (st == GNNC_OK) st = import_find_folder(o, pool, e);
    if (st == GNNC_OK && o->like) st = rt_encoders_open(pool, o->like, like, e);
    if (o->like) o->how.like = like;
    if (st == GNNC_OK && o->task_file) st = import_read_task(o, pool, e);
    if (st == GNNC_OK) st = import_read_input(o, pool, d, e);
    if (o->how.n_bad > RT_BAD_ROWS_TOLD)
        fprintf(err, "gnnc import: and %lld more bad rows\n",
                (long long)o->how.n_bad - RT_BAD_ROWS_TOLD);
    return st;
}

/* Makes of the data what was asked for, task, splits, numbers, and writes it all. */
static gnnc_status make_data(ImportJob *o, RtDataset *d, RtPool *pool, RtError *e) {
    gnnc_status st;
    import_take_source_task(o);
    TRY(st, rt_import_given(d, o->given, o->n_given, e));
    TRY(st, rt_import_times(d, o->split.by_time, &o->how, e));
    if (o->task.query) TRY(st, rt_import_task(d, &o->task, &o->made, e));
    if (o->how.source_task.links.top)
        TRY(st, rt_import_task_links(d, &o->task, &o->how, &o->made, e));
    if (o->text.sql) TRY(st, rt_import_task_sql(d, &o->task, &o->text, &o->made, e));
    if (o->splits) TRY(st, rt_import_split(d, &o->split, e));
    TRY(st, import_encode_columns(o, d, e));
    TRY(st, rt_import_round(d, &o->how, e));
    TRY(st, rt_dataset_write(d, o->dir, o->force, e));
    if (o->write_map) TRY(st, write_map(o, d, pool, e));
    if (o->scaffold) st = write_scaffold(o, d, e);
out:
    return st;
}

int gnnc_import_main(int argc, char **argv, const ImportReaders *readers, FILE *out, FILE *err) {
    ImportJob o = {.databases = readers ? readers->databases : NULL,
                   .task = {.val_time = NAN, .test_time = NAN},
                   .made.val_time = NAN};
    RtError e = {""};
    RtPool pool;
    RtEncoders like;
    RtDataset *d = NULL;
    if (!import_parse_options(argc, argv, &o, err))
        return fputs("'gnnc import --help' lists inputs and options\n", err), 2;
    if (o.help) return import_put_help(out), 0;
    begin(&o, readers, err);
    rt_pool_init(&pool, NULL);
    gnnc_status st = read_data(&o, &pool, &like, &d, err, &e);
    if (st == GNNC_OK) st = make_data(&o, d, &pool, &e);
    if (st == GNNC_OK)
        import_print_counts(out, &o, d);
    else
        import_print_error(err, &o, &e);
    rt_dataset_close(d);
    rt_pool_free(&pool);
    return st == GNNC_OK ? 0 : 1;
}
