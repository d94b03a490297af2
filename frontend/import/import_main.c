/* The command line of `gnnc import`; the readers are in runtime/import/. */
#include "import_main.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/wrap.h"
#include "import_scaffold.h"
#include "runtime/import/import_encode.h"
#include "runtime/import/import_folder.h"
#include "runtime/import/import_given.h"
#include "runtime/data/dates.h"
#include "runtime/import/import_like.h"
#include "runtime/import/import_split.h"
#include "runtime/import/import_table.h"
#include "runtime/import/import_task.h"
#include "runtime/import/import_time.h"
#include "runtime/data/number.h"

static const char usage[] =
    "usage: gnnc import INPUT.. -o DIR [options]\n"
    "\n"
    "INPUT is one of\n"
    "  data.npz              one graph, many graphs, several types, triples, links, events\n"
    "  nodes.csv edges.csv   tables with headers; edges.csv alone is enough\n"
    "  DIR                   a folder: train.txt, valid.txt, test.txt (triples); metadata.yaml\n"
    "                        (GraphBolt); raw/ and split/ (Open Graph Benchmark); *.csv tables;\n"
    "                        manifest.yaml, db/ and tasks/ (RelBench)\n"
    "  shop.sqlite           an SQLite database\n"
    "  postgresql://..       a PostgreSQL database\n"
    "  edges.txt             an edge list: two node numbers a line\n"
    "  DIR/ind.NAME          Planetoid's raw files ind.NAME.x, .tx, .allx, ..\n"
    "\n";

static const ImportOption import_options[] = {
    {"-o", "DIR", "the data directory to write"},
    {"--force", NULL, "replace the data directory if it exists"},
    {"--scaffold", "FILE", "write a starter model for what was imported"},
    {"--node", "NAME",
     "name of the node type (default: vertex, or entity); for edges.csv with ends of two types: "
     "--node user,item"},
    {"--edge", "NAME", "name of the edge type (default: link, triple or event)"},
    {"--edges", "NAME", "the same as --edge"},
    {"--kind", "COLUMN=KIND",
     "the kind of a column: float, cat, time, .. ('--kind x=?' lists them); COLUMN may be "
     "TYPE.COLUMN"},
    {"--features", "TYPE",
     "store rows of features in 16 bits, bf16 or f16; COLUMN=TYPE: only that column"},
    {"--relation-types", NULL,
     "triples: make an edge type of each relation (default: one type with a column rel)"},
    {"--map", "FILE",
     "tables: a file that says what columns are, and which are keys (docs/data.md)"},
    {"--write-map", "FILE", "tables: write such a file, with what this import made of each column"},
    {"--given", "TABLE.COLUMN=FILE",
     "tables: add a column of numbers from a .npy file with one row per row of the table, as "
     "embeddings of texts or images"},
    {"--dangling", "keep|drop|stop",
     "tables: what a reference to no row does: keep the row without the edge, drop the row, or "
     "stop the import"},
    {"--standardize", NULL,
     "tables: scale each column of numbers, except labels, to mean 0 and deviation 1"},
    {"--unknown", NULL, "tables: give each category a code for names that are not in these data"},
    {"--like", "MODEL",
     "tables: encode columns as for this file of weights, checkpoint or data directory"},
    {"--rare", "N",
     "with --unknown: names with fewer than N rows get the code of unknown names, too"},
    {"--normalize-rows", NULL, "make the rows of x sum to 1"},
    {"--split", "[TABLE=]80/10/10",
     "make a split of the table with labels, else of the edges, or of TABLE"},
    {"--row-time", "TABLE.COLUMN",
     "the column that says when a row of the table came to be; TABLE=none: no column does"},
    {"--by-time", "COLUMN",
     "with --split: by this time column: the oldest rows train, the newest test"},
    {"--seed", "N", "with --split but not --by-time: the random seed (0)"},
    {"--replace-split", NULL, "with --split: replace a split that the data have"},
    {"--predict", "QUERY",
     "make training rows for a question, 'COUNT(orders.*, 0, 90, days) = 0 FOR EACH customers' "
     "(docs/tasks.md)"},
    {"--task", "NAME",
     "with --predict or --task-sql: the name of the table of training rows (task)"},
    {"--task-sql", "FILE", "make training rows from the SELECT in a task file, run in a database"},
    {"--label-history", NULL,
     "with --predict or --task-sql: also write a table of each row's earlier answers; a model sees "
     "an answer only after the time at which it was known"},
    {"--val-time", "DATE", "with --predict or --task-sql: rows from this date on validate"},
    {"--test-time", "DATE", "with --predict or --task-sql: rows from this date on test"},
    {"--every", "DAYS",
     "with --predict: days from one time of asking to the next (default: the query's window)"},
    {"--undirected", NULL, "add the reverse of every edge, drop duplicates"},
    {"--nodes", "N", "edge lists: the graph has at least N nodes"},
    {"--header", "[FILE=]yes|no",
     "CSV: does row 1 hold the names of the columns? FILE=: only of that file"},
    {"--skip-bad", NULL, "leave out rows that cannot be read, and count them"},
    {"--name", "TEXT", "the data's name, kept in the data directory"},
    {"--source", "TEXT", "where the data come from, kept in the data directory"},
    {"--licence", "TEXT", "the data's licence, kept in the data directory"},
    {"--help", NULL, "or -h: print this"},
};

const ImportOption *gnnc_import_option(int i) {
    return i < (int)(sizeof import_options / sizeof *import_options) ? &import_options[i] : NULL;
}

/* Prints the help of `gnnc import`: its usage and all its options. */
static void put_help(FILE *out) {
    enum { HELP_AT = 26 };
    fputs(usage, out);
    for (int i = 0; gnnc_import_option(i); i++) {
        const ImportOption *o = gnnc_import_option(i);
        int n = fprintf(out, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(out, "%*s", n < HELP_AT ? HELP_AT - n : 1, "");
        fe_put_wrapped(out, o->help, HELP_AT);
    }
}

typedef struct {
    const char *input[2], *dir, *scaffold, *map, *write_map, *like;
    int n_input;
    const ImportDatabase *databases;
    bool force, help, splits, seeded;
    RtSplitHow split;
    RtTaskOptions task; /* query NULL: none is asked for */
    const char *task_file;
    RtTaskText text; /* sql NULL: none is asked for */
    RtTaskMade made;
    RtImport how;
    int n_given;
    RtNpyColumn given[RT_IMPORT_KINDS];
} Options;

static bool has_task(const Options *o) {
    return o->task.query || o->task_file;
}

/* Reads an option without a value. False: it is none of them. */
static bool flag(Options *o, const char *arg) {
    const struct {
        const char *name;
        bool *to;
    } flags[] = {
        {"--force", &o->force},
        {"--normalize-rows", &o->how.normalize_rows},
        {"--undirected", &o->how.undirected},
        {"--standardize", &o->how.standardize},
        {"--unknown", &o->how.unknown},
        {"--skip-bad", &o->how.skip_bad},
        {"--replace-split", &o->split.replace},
        {"--relation-types", &o->how.relation_types},
        {"--label-history", &o->task.history},
        {"--help", &o->help},
        {"-h", &o->help},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(arg, flags[i].name) == 0) return *flags[i].to = true;
    return false;
}

/* Where the value of an option is kept that takes any text. NULL: the option is none of these. */
static const char **text_option(Options *o, const char *arg) {
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"-o", &o->dir},
        {"--node", &o->how.node},
        {"--edge", &o->how.edge},
        {"--edges", &o->how.edge},
        {"--name", &o->how.name},
        {"--source", &o->how.source},
        {"--licence", &o->how.licence},
        {"--scaffold", &o->scaffold},
        {"--map", &o->map},
        {"--write-map", &o->write_map},
        {"--like", &o->like},
        {"--by-time", &o->split.by_time},
        {"--predict", &o->task.query},
        {"--task", &o->task.name},
        {"--task-sql", &o->task_file},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(arg, texts[i].name) == 0) return texts[i].to;
    return NULL;
}

/* Splits argv[*i] into `key` and its value: "--key=value", or the next argument. NULL: there is
 * no value. */
static const char *value_of(int argc, char **argv, int *i, char *key, size_t cap) {
    const char *eq = argv[*i][0] == '-' && argv[*i][1] == '-' ? strchr(argv[*i], '=') : NULL;
    snprintf(key, cap, "%.*s", eq ? (int)(eq - argv[*i]) : (int)strlen(argv[*i]), argv[*i]);
    if (eq) return eq + 1;
    return *i + 1 < argc ? argv[*i + 1] : NULL;
}

static bool can_be_asked_for(rt_col_kind k) {
    return k != RT_COL_CSR;
}

/* Reads a value of --kind, "year=time": which kind a column has. False after a message. */
static bool add_kind(RtImport *how, const char *v, FILE *err) {
    const char *eq = strrchr(v, '=');
    rt_col_kind kind;
    if (!eq || eq == v)
        return fprintf(err, "gnnc import: --kind %s: COLUMN=KIND is expected\n", v), false;
    if (!rt_col_kind_find(eq + 1, &kind) || !can_be_asked_for(kind)) {
        char kinds[RT_COL_KINDS_TEXT];
        fprintf(err, "gnnc import: --kind %s: there is no kind '%s'; there are %s\n", v, eq + 1,
                rt_col_kinds_list(can_be_asked_for, kinds, sizeof kinds));
        return false;
    }
    if (how->n_kinds == RT_IMPORT_KINDS)
        return fprintf(err, "gnnc import: at most %d times --kind\n", RT_IMPORT_KINDS), false;
    RtKindOf *k = &how->kinds[how->n_kinds++];
    k->kind = kind;
    if (eq - v >= (ptrdiff_t)sizeof k->column)
        return fprintf(err, "gnnc import: --kind %s: too long a name\n", v), false;
    memcpy(k->column, v, (size_t)(eq - v));
    return true;
}

/* Reads a value of --given, "film.poster=posters.npy": a column that a file holds. False after a
 * message. */
static bool add_given(Options *o, const char *v, FILE *err) {
    if (o->n_given == RT_IMPORT_KINDS)
        return fprintf(err, "gnnc import: at most %d times --given\n", RT_IMPORT_KINDS), false;
    if (rt_given_parse(v, &o->given[o->n_given])) return o->n_given++, true;
    fprintf(err, "gnnc import: --given %s: TABLE.COLUMN=FILE is expected\n", v);
    return false;
}

/* Reads a value of --features, "bf16" or "x=f16": the type that features, or one column of them,
 * are stored in. False after a message. */
static bool add_low(RtImport *how, const char *v, FILE *err) {
    const char *eq = strrchr(v, '='), *type = eq ? eq + 1 : v;
    bool bf16 = !strcmp(type, "bf16");
    if (eq == v || (!bf16 && strcmp(type, "f16") != 0))
        return fprintf(err, "gnnc import: --features %s: bf16, f16 or COLUMN=TYPE is expected\n",
                       v),
               false;
    if (how->n_lows == RT_IMPORT_KINDS)
        return fprintf(err, "gnnc import: at most %d times --features\n", RT_IMPORT_KINDS), false;
    RtLowOf *w = &how->lows[how->n_lows++];
    w->dt = bf16 ? RT_DT_BF16 : RT_DT_F16;
    if (eq && eq - v >= (ptrdiff_t)sizeof w->column)
        return fprintf(err, "gnnc import: --features %s: too long a name\n", v), false;
    if (eq) memcpy(w->column, v, (size_t)(eq - v));
    return true;
}

static bool names_table(const char *said, const char *table, size_t n) {
    return strcspn(said, ".") == n && strncmp(said, table, n) == 0;
}

/* Reads a value of --row-time, "orders.shipped" or "customer=none": by which column the rows of
 * a table have their time. False after a message. */
static bool set_row_time(RtImport *how, const char *v, FILE *err) {
    const char *eq = strchr(v, '=');
    size_t n = eq ? (size_t)(eq - v) : strlen(v);
    if (!n || (eq ? strcmp(eq, "=none") != 0 : !strchr(v, '.')))
        return fprintf(err, "gnnc import: --row-time %s: TABLE.COLUMN or TABLE=none is expected\n",
                       v),
               false;
    for (int i = 0; i < how->n_row_times; i++)
        if (names_table(how->row_times[i].column, v, strcspn(v, ".=")))
            return fprintf(err, "gnnc import: --row-time %s: its table is named twice\n", v), false;
    if (rt_import_say_row_time(how, RT_SAID_BY_OPTION, v, n, eq)) return true;
    return fprintf(err, "gnnc import: --row-time %s: too long a name, or more than %d\n", v,
                   RT_IMPORT_KINDS),
           false;
}

/* Reads a value of --header, "no" or "nodes.csv=no": whether tables, or one of them, begin with
 * a line of names. False after a message. */
static bool set_header(RtImport *how, const char *v, FILE *err) {
    const char *eq = strrchr(v, '='), *word = eq ? eq + 1 : v;
    bool yes = strcmp(word, "yes") == 0;
    if (eq == v || (!yes && strcmp(word, "no") != 0))
        return fprintf(err, "gnnc import: --header %s: yes, no or FILE=yes is expected\n", v),
               false;
    RtHeader header = yes ? RT_HEADER_YES : RT_HEADER_NO;
    if (!eq) return how->header = header, true;
    if (how->n_headers == RT_IMPORT_KINDS)
        return fprintf(err, "gnnc import: at most %d times --header\n", RT_IMPORT_KINDS), false;
    RtHeaderOf *h = &how->headers[how->n_headers++];
    if (eq - v >= (ptrdiff_t)sizeof h->file)
        return fprintf(err, "gnnc import: --header %s: too long a name\n", v), false;
    h->header = header;
    memcpy(h->file, v, (size_t)(eq - v));
    return true;
}

/* Reads the value of --split, "80/10/10". False after a message. */
static bool set_split(Options *o, const char *v, FILE *err) {
    o->splits = rt_split_parse(v, &o->split);
    if (!o->splits)
        fprintf(err, "gnnc import: --split %s: three parts that make 100 are expected, 80/10/10\n",
                v);
    return o->splits;
}

/* Reads the value of --rare, a number of rows. False after a message. */
static bool set_rare(RtImport *how, const char *v, FILE *err) {
    char *end;
    how->rare = strtoll(v, &end, 10);
    if (*v >= '1' && *v <= '9' && !*end && how->rare <= INT32_MAX) return true;
    return fprintf(err, "gnnc import: --rare %s: a number of rows is expected\n", v), false;
}

/* Reads the value of --seed. False after a message. */
static bool set_seed(Options *o, const char *v, FILE *err) {
    char *end;
    errno = 0;
    o->split.seed = strtoull(v, &end, 10);
    o->seeded = true;
    if (*v >= '0' && *v <= '9' && !*end && !errno) return true;
    return fprintf(err, "gnnc import: --seed %s: a whole number is expected\n", v), false;
}

/* "2010-01-01" */
static bool set_date(const char *option, const char *v, double *to, FILE *err) {
    if (rt_cell_time(v, to) && isfinite(*to)) return true;
    return fprintf(err, "gnnc import: %s %s: a date is expected, 2020-01-31\n", option, v), false;
}

/* Reads the value of --every, a number of days, which are kept in seconds. False after a
 * message. */
static bool set_every(Options *o, const char *v, FILE *err) {
    const char *end;
    double days = rt_strtod(v, &end);
    o->task.every = days * 86400;
    if (end != v && !*end && days > 0 && isfinite(o->task.every)) return true;
    return fprintf(err, "gnnc import: --every %s: a number of days is expected\n", v), false;
}

/* Reads the value of --dangling: what is done about references to rows that do not exist. False
 * after a message. */
static bool set_dangling(RtImport *how, const char *v, FILE *err) {
    static const struct {
        const char *word;
        rt_dangling what;
    } words[] = {
        {"keep", RT_DANGLING_KEEP}, {"drop", RT_DANGLING_DROP}, {"stop", RT_DANGLING_STOP}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(v, words[i].word) == 0) return how->dangling = words[i].what, true;
    return fprintf(err, "gnnc import: --dangling %s: keep, drop or stop is expected\n", v), false;
}

/* Whether options that say how a split or a task is made go with one. False after a message. */
static bool check_split(const Options *o, FILE *err) {
    bool dated = !isnan(o->task.val_time) || !isnan(o->task.test_time);
    const char *lone = o->seeded ? "--seed" : o->split.replace ? "--replace-split" : NULL;
    const char *of_task = o->task.name        ? "--task"
                          : dated             ? "--val-time or --test-time"
                          : o->task.every > 0 ? "--every"
                          : o->task.history   ? "--label-history"
                                              : NULL;
    if (o->task.query && o->task_file)
        return fprintf(err, "gnnc import: --predict or --task-sql, not both\n"), false;
    if (o->splits && has_task(o))
        return fprintf(err, "gnnc import: a task makes a split: no --split\n"), false;
    if (o->task_file && (o->task.name || o->task.every > 0))
        return fprintf(err, "gnnc import: %s goes with --predict QUERY\n", of_task), false;
    if (of_task && !has_task(o))
        return fprintf(err, "gnnc import: %s goes with --predict QUERY\n", of_task), false;
    if (o->split.by_time && !o->splits && !has_task(o)) lone = "--by-time";
    if (lone && !o->splits)
        return fprintf(err, "gnnc import: %s goes with --split 80/10/10\n", lone), false;
    if (o->split.by_time && o->seeded)
        return fprintf(err, "gnnc import: --by-time leaves nothing to chance: no --seed\n"), false;
    return true;
}

/* Reads the command line of `gnnc import`. False after a message. */
static bool parse(int argc, char **argv, Options *o, FILE *err) {
    for (int i = 1; i < argc; i++) {
        char key[32];
        if (flag(o, argv[i])) continue;
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (o->n_input == 2)
                return fprintf(err, "gnnc import: too many inputs; tables of several types are "
                                    "imported by their folder\n"),
                       false;
            o->input[o->n_input++] = argv[i];
            continue;
        }
        const char *v = value_of(argc, argv, &i, key, sizeof key);
        const char **to = text_option(o, key);
        char *end = NULL;
        bool nodes = strcmp(key, "--nodes") == 0, kind = strcmp(key, "--kind") == 0;
        bool low = strcmp(key, "--features") == 0, header = strcmp(key, "--header") == 0;
        bool split = strcmp(key, "--split") == 0, seed = strcmp(key, "--seed") == 0;
        bool rare = strcmp(key, "--rare") == 0, every = strcmp(key, "--every") == 0;
        bool val = strcmp(key, "--val-time") == 0, test = strcmp(key, "--test-time") == 0;
        bool dangling = strcmp(key, "--dangling") == 0, row_time = strcmp(key, "--row-time") == 0;
        bool given = strcmp(key, "--given") == 0;
        bool other = given || row_time || nodes || kind || low || header || split || seed || rare ||
                     val || test || every || dangling;
        if (!to && !other) return fprintf(err, "gnnc import: unknown option %s\n", argv[i]), false;
        if (nodes && v) o->how.n_nodes = strtoll(v, &end, 10);
        if (!v || (nodes && (!*v || *end || o->how.n_nodes < 0)))
            return fprintf(err, "gnnc import: %s needs a value\n", key), false;
        if (to) *to = v;
        if (split && !set_split(o, v, err)) return false;
        if (seed && !set_seed(o, v, err)) return false;
        if (rare && !set_rare(&o->how, v, err)) return false;
        if (val && !set_date(key, v, &o->task.val_time, err)) return false;
        if (test && !set_date(key, v, &o->task.test_time, err)) return false;
        if (every && !set_every(o, v, err)) return false;
        if (dangling && !set_dangling(&o->how, v, err)) return false;
        if (row_time && !set_row_time(&o->how, v, err)) return false;
        if (header && !set_header(&o->how, v, err)) return false;
        if (kind && !add_kind(&o->how, v, err)) return false;
        if (low && !add_low(&o->how, v, err)) return false;
        if (given && !add_given(o, v, err)) return false;
        if (v == argv[i + 1 < argc ? i + 1 : i]) i++;
    }
    if (o->help) return true;
    if (!o->n_input) return fprintf(err, "gnnc import: no input\n"), false;
    if (!o->dir) return fprintf(err, "gnnc import: where to? -o DIR\n"), false;
    const char *other = o->how.n_kinds       ? "--kind"
                        : o->how.standardize ? "--standardize"
                        : o->how.unknown     ? "--unknown"
                        : o->how.rare        ? "--rare"
                                             : NULL;
    if (o->like && other)
        return fprintf(err, "gnnc import: --like says how columns are made: no %s\n", other), false;
    return check_split(o, err);
}

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
static gnnc_status read_folder(Options *o, RtPool *pool, RtDataset **d, RtError *e) {
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

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Reads a database into *d, with the answer of --task-sql as a table. */
static gnnc_status read_database(Options *o, const ImportDatabase *from, RtDataset **d,
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

/* Reads the file of --task-sql. Its input must be a database, as others know no SQL. */
static gnnc_status read_task(Options *o, RtPool *pool, RtError *e) {
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

/* Reads the input into *d, by what it is: a database, a folder, or a file by its name. */
static gnnc_status read_input(Options *o, RtPool *pool, RtDataset **d, RtError *e) {
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

/* Encodes the columns of cells as numbers, as --like says or by the rows to learn from. Options
 * about cells are an error for data that have none. */
static gnnc_status encode(const Options *o, RtDataset *d, RtError *e) {
    const char *said = o->like              ? "--like"
                       : o->how.standardize ? "--standardize"
                       : o->how.unknown     ? "--unknown"
                       : o->how.rare        ? "--rare"
                       : o->map             ? "--map"
                                            : NULL;
    if (said && !has_task(o) && !has_encoders(d->nodes, d->n_nodes) &&
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

/* ---- the counts --------------------------------------------------------------- */
/* Prints how many splits a column has, and how many rows are in each part of the first. */
static void print_split(FILE *out, const RtColumn *c) {
    int64_t n[4] = {0};
    for (int64_t i = 0; i < c->n_rows; i++) n[c->splits[i]]++;
    fprintf(out, "%d split%s, first: %lld train, %lld validation, %lld test", c->n_splits,
            c->n_splits == 1 ? "" : "s", (long long)n[1], (long long)n[2], (long long)n[3]);
}

/* Names of tables and columns may hold anything: a line stays one, and moves no cursor. */
static void put_plain(FILE *out, const char *text) {
    for (; *text; text++) fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

/* Prints why something was decided, if that is known, and ends the line. */
static void print_why(FILE *out, const char *why) {
    if (why) {
        fputs("  (", out);
        put_plain(out, why);
        fputc(')', out);
    }
    fputc('\n', out);
}

/* Prints how many rows of a column of ids have none. */
static void print_absent(FILE *out, const RtColumn *c) {
    int64_t none = 0;
    for (int64_t i = 0; c->kind == RT_COL_ID && i < c->n_rows; i++)
        none += c->i64[i] == RT_ID_ABSENT;
    if (none) fprintf(out, ", %lld absent", (long long)none);
}

/* Prints how a column was made of its values, if an encoder did it. */
static void print_encoder(FILE *out, const RtColumn *c) {
    char told[120] = "";
    if (c->encoder) rt_encoder_told(c->encoder, told, sizeof told);
    if (*told) fprintf(out, ", %s", told);
}

/* Prints a line about a column: its name, kind, sizes, and what it lacks. */
static void print_column(FILE *out, const RtColumn *c) {
    fprintf(out, "    %-10s ", c->name);
    if (c->kind == RT_COL_SPLIT) {
        print_split(out, c);
    } else {
        fprintf(out, "%s", rt_col_kind_name(c->kind));
        for (int i = 1; i < c->rank; i++) fprintf(out, " [%lld]", (long long)c->shape[i]);
    }
    if (c->low) fprintf(out, ", %s", c->low_dt == RT_DT_BF16 ? "bf16" : "f16");
    if (c->kind == RT_COL_CSR) fprintf(out, ", %lld stored", (long long)c->csr.nnz);
    if (c->kind == RT_COL_CLASS) {
        int64_t none = 0;
        for (int64_t i = 0; i < c->n_rows; i++) none += c->i32[i] < 0;
        fprintf(out, ", %lld classes, %lld without label", (long long)c->n_categories,
                (long long)none);
    }
    if (c->kind == RT_COL_CAT) fprintf(out, ", %lld categories", (long long)c->n_categories);
    print_absent(out, c);
    print_encoder(out, c);
    print_why(out, c->why);
}

/* Prints how many bad rows were left out of which files. */
static void print_bad(FILE *out, const RtImport *how) {
    int64_t others = how->n_bad;
    for (int i = 0; i < how->n_bad_files; i++) {
        const RtBadFile *f = &how->bad_files[i];
        fprintf(out, "  %lld bad row%s left out of ", (long long)f->n, f->n == 1 ? "" : "s");
        put_plain(out, f->file);
        fputc('\n', out);
        others -= f->n;
    }
    if (others) fprintf(out, "  %lld bad rows left out of other files\n", (long long)others);
}

/* Ends the line of a table with the column that its rows have their time by, and why: ", at
 * order_date (its name is an event's)". */
static void print_time(FILE *out, const RtTable *t) {
    if (t->time && *t->time)
        fprintf(out, ", at %s  (%s)\n", t->time, t->time_why);
    else
        fputc('\n', out);
}

static void print_task(FILE *out, const Options *o);

/* Prints what was imported: the tables, their rows and columns, and the task. */
static void print_counts(FILE *out, const Options *o, const RtDataset *d) {
    fprintf(out, "%s:\n", o->dir);
    for (int i = 0; i < d->n_nodes; i++) {
        fprintf(out, "  node %s: %lld%s", d->nodes[i].name, (long long)d->nodes[i].count,
                d->nodes[i].names ? ", with names" : "");
        print_time(out, &d->nodes[i]);
        for (int j = 0; j < d->nodes[i].n_columns; j++) print_column(out, &d->nodes[i].columns[j]);
    }
    for (int i = 0; i < d->n_graphs; i++) {
        fprintf(out, "  graph: %lld\n", (long long)d->graphs[i].count);
        for (int j = 0; j < d->graphs[i].n_columns; j++)
            print_column(out, &d->graphs[i].columns[j]);
    }
    for (int i = 0; i < d->n_edges; i++) {
        const RtTable *t = &d->edges[i];
        fprintf(out, "  edge %s: %s -> %s: %lld", t->name, d->nodes[t->src_type].name,
                d->nodes[t->dst_type].name, (long long)t->count);
        print_why(out, t->why);
        for (int j = 0; j < t->n_columns; j++) print_column(out, &t->columns[j]);
    }
    if (has_task(o)) print_task(out, o);
    print_bad(out, &o->how);
}

static void print_date(FILE *out, const char *what, double t) {
    char text[RT_DATE_TEXT];
    if (!isnan(t)) fprintf(out, "    %s from %s on\n", what, rt_date_text(t, text));
}

/* Prints how many rows a task has, its times, and what is reached without learning. */
static void print_task(FILE *out, const Options *o) {
    const RtTaskMade *m = &o->made;
    fprintf(out, "  task %s: %s\n", m->table, m->asked);
    fprintf(out, "    %lld rows to learn from, %lld to choose by, %lld to judge on\n",
            (long long)m->n[1], (long long)m->n[2], (long long)m->n[3]);
    print_date(out, "validation", m->val_time);
    print_date(out, "test", m->test_time);
    fprintf(out, "    without learning, %-24s validation      test\n", m->baselines->metric);
    for (int i = 0; i < m->n_baselines; i += m->n_metrics)
        fprintf(out, "      %-40s %10.4g%10.4g\n", m->baselines[i].name, m->baselines[i].val,
                m->baselines[i].test);
}

/* Prints a message behind its heading; what a terminal would obey in it is not printed as it is. */
static void put_told(FILE *err, const char *what, const char *text) {
    fprintf(err, "gnnc import: %s", what);
    put_plain(err, text);
    fputc('\n', err);
}

static void on_bad(void *user, const char *text) {
    put_told(user, "", text);
}

static void on_warning(void *user, const char *text) {
    put_told(user, "warning: ", text);
}

/* Shows how many rows of a table were read, over and over on one line of the terminal. */
static void on_progress(void *user, const char *table, int64_t n, int64_t n_all) {
    fputs("\r\x1b[K", user);
    put_plain(user, table);
    fprintf(user, ": %lld of %lld rows", (long long)n, (long long)n_all);
    if (n == n_all) fputs("\r\x1b[K", user);
    fflush(user);
}

static bool is_terminal(FILE *f) {
    int fd = fileno(f);
    return fd >= 0 && isatty(fd);
}

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
static gnnc_status nothing_in_the_way(const Options *o, RtPool *pool, RtError *e) {
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

/* Prints the error, with the option that avoids it, if there is one. */
static void print_error(FILE *err, const Options *o, const RtError *e) {
    const char *cure = o->how.n_bad && !o->how.skip_bad ? "--skip-bad leaves them out" : "";
    if (*cure && *o->how.cure) cure = o->how.cure;
    fputs("gnnc import: error: ", err);
    put_plain(err, e->text);
    fprintf(err, "%s%s\n", *cure ? "; " : "", cure);
}

/* Writes the starter model for the data and, if there is one, for their task. */
static gnnc_status write_scaffold(const Options *o, const RtDataset *d, RtError *e) {
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

/* Sets the folder that paths of images begin at: where the input lies. */
static gnnc_status find_folder(Options *o, RtPool *pool, RtError *e) {
    const char *input = o->input[0];
    if (strstr(input, "://")) return GNNC_OK;
    o->how.folder = is_folder(input) ? input : rt_path_dir(pool, input);
    return o->how.folder ? GNNC_OK : rt_fail_nomem(e, input);
}

/* Writes how inputs became tables and columns to the file of --write-map. */
static gnnc_status write_map(const Options *o, const RtDataset *d, RtPool *pool, RtError *e) {
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

/* Takes the task that the source has: a query, or a table that is there already. */
static void take_source_task(Options *o) {
    const RtSourceTask *g = &o->how.source_task;
    if (!g->found) return;
    o->task.query = *g->query ? g->query : NULL;
    if (isnan(o->task.val_time)) o->task.val_time = g->val_time;
    if (isnan(o->task.test_time)) o->task.test_time = g->test_time;
    if (o->task.query) return;
    o->made.table = g->table;
    o->made.of_future = true;
    o->made.val_time = g->val_time;
    o->made.test_time = g->test_time;
}

/* The command `gnnc import`: reads the command line and the data, makes tasks, splits and
 * columns, and writes the data directory. Returns its exit status. */
int gnnc_import_main(int argc, char **argv, const ImportReaders *readers, FILE *out, FILE *err) {
    Options o = {.databases = readers ? readers->databases : NULL,
                 .task = {.val_time = NAN, .test_time = NAN},
                 .made.val_time = NAN};
    RtError e = {""};
    RtPool pool;
    RtDataset *d = NULL;
    if (!parse(argc, argv, &o, err))
        return fputs("'gnnc import --help' lists inputs and options\n", err), 2;
    if (o.help) return put_help(out), 0;
    if (readers) o.how.read_image = readers->read_image;
    o.how.on_bad = on_bad;
    o.how.on_warning = on_warning;
    o.how.on_progress = is_terminal(err) ? on_progress : NULL;
    o.how.user = err;
    o.task.by_time = o.split.by_time;
    o.how.keeps_numbers = has_task(&o);
    o.how.asked = o.task.query;
    if (has_task(&o) && !o.like) /* what a starter needs to learn */
        o.how.standardize = o.how.unknown = true;
    o.how.source_task.name = o.task.query;
    o.how.source_task.table = o.task.name ? o.task.name : "task";
    rt_pool_init(&pool, NULL);
    RtEncoders like;
    gnnc_status st = nothing_in_the_way(&o, &pool, &e);
    if (st == GNNC_OK) st = find_folder(&o, &pool, &e);
    if (st == GNNC_OK && o.like) st = rt_encoders_open(&pool, o.like, &like, &e);
    if (o.like) o.how.like = &like;
    if (st == GNNC_OK && o.task_file) st = read_task(&o, &pool, &e);
    if (st == GNNC_OK) st = read_input(&o, &pool, &d, &e);
    if (o.how.n_bad > RT_BAD_ROWS_TOLD)
        fprintf(err, "gnnc import: and %lld more bad rows\n",
                (long long)o.how.n_bad - RT_BAD_ROWS_TOLD);
    take_source_task(&o);
    if (st == GNNC_OK) st = rt_import_given(d, o.given, o.n_given, &e);
    if (st == GNNC_OK) st = rt_import_times(d, o.split.by_time, &o.how, &e);
    if (st == GNNC_OK && o.task.query) st = rt_import_task(d, &o.task, &o.made, &e);
    if (st == GNNC_OK && o.text.sql) st = rt_import_task_sql(d, &o.task, &o.text, &o.made, &e);
    if (st == GNNC_OK && o.splits) st = rt_import_split(d, &o.split, &e);
    if (st == GNNC_OK) st = encode(&o, d, &e);
    if (st == GNNC_OK) st = rt_import_round(d, &o.how, &e);
    if (st == GNNC_OK) st = rt_dataset_write(d, o.dir, o.force, &e);
    if (st == GNNC_OK && o.write_map) st = write_map(&o, d, &pool, &e);
    if (st == GNNC_OK && o.scaffold) st = write_scaffold(&o, d, &e);
    if (st == GNNC_OK)
        print_counts(out, &o, d);
    else
        print_error(err, &o, &e);
    rt_dataset_close(d);
    rt_pool_free(&pool);
    return st == GNNC_OK ? 0 : 1;
}
