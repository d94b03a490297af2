/* The command line of `gnnc import`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/wrap.h"
#include "import_job.h"
#include "runtime/data/dates.h"
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

void import_put_help(FILE *out) {
    enum { HELP_AT = 26 };
    fputs(usage, out);
    for (int i = 0; gnnc_import_option(i); i++) {
        const ImportOption *o = gnnc_import_option(i);
        int n = fprintf(out, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(out, "%*s", n < HELP_AT ? HELP_AT - n : 1, "");
        fe_put_wrapped(out, o->help, HELP_AT);
    }
}

/* Reads an option without a value. False: it is none of them. */
static bool flag(ImportJob *o, const char *arg) {
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
static const char **text_option(ImportJob *o, const char *arg) {
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

/* Whether --kind may name the kind of column. */
static bool can_be_asked_for(rt_col_kind k) {
    return k != RT_COL_CSR;
}

/* Reads a value of --kind, "year=time": which kind a column has. False after a message. */
static bool add_kind(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
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
static bool add_given(ImportJob *o, const char *v, FILE *err) {
    if (o->n_given == RT_IMPORT_KINDS)
        return fprintf(err, "gnnc import: at most %d times --given\n", RT_IMPORT_KINDS), false;
    if (rt_given_parse(v, &o->given[o->n_given])) return o->n_given++, true;
    fprintf(err, "gnnc import: --given %s: TABLE.COLUMN=FILE is expected\n", v);
    return false;
}

/* Reads a value of --features, "bf16" or "x=f16": the type that features, or one column of them,
 * are stored in. False after a message. */
static bool add_low(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
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

/* Whether `said`, "orders.shipped", is of the table with this name of n bytes. */
static bool names_table(const char *said, const char *table, size_t n) {
    return strcspn(said, ".") == n && strncmp(said, table, n) == 0;
}

/* Reads a value of --row-time, "orders.shipped" or "customer=none": by which column the rows of
 * a table have their time. False after a message. */
static bool set_row_time(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
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
static bool set_header(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
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
static bool set_split(ImportJob *o, const char *v, FILE *err) {
    o->splits = rt_split_parse(v, &o->split);
    if (!o->splits)
        fprintf(err, "gnnc import: --split %s: three parts that make 100 are expected, 80/10/10\n",
                v);
    return o->splits;
}

/* Reads the value of --rare, a number of rows. False after a message. */
static bool set_rare(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
    char *end;
    how->rare = strtoll(v, &end, 10);
    if (*v >= '1' && *v <= '9' && !*end && how->rare <= INT32_MAX) return true;
    return fprintf(err, "gnnc import: --rare %s: a number of rows is expected\n", v), false;
}

/* Reads the value of --seed. False after a message. */
static bool set_seed(ImportJob *o, const char *v, FILE *err) {
    char *end;
    errno = 0;
    o->split.seed = strtoull(v, &end, 10);
    o->seeded = true;
    if (*v >= '0' && *v <= '9' && !*end && !errno) return true;
    return fprintf(err, "gnnc import: --seed %s: a whole number is expected\n", v), false;
}

/* Reads a date, "2010-01-01". False after a message. */
static bool set_date(const char *option, const char *v, double *to, FILE *err) {
    if (rt_cell_time(v, to) && isfinite(*to)) return true;
    return fprintf(err, "gnnc import: %s %s: a date is expected, 2020-01-31\n", option, v), false;
}

/* Reads the value of --val-time. False after a message. */
static bool set_val_time(ImportJob *o, const char *v, FILE *err) {
    return set_date("--val-time", v, &o->task.val_time, err);
}

/* Reads the value of --test-time. False after a message. */
static bool set_test_time(ImportJob *o, const char *v, FILE *err) {
    return set_date("--test-time", v, &o->task.test_time, err);
}

/* Reads the value of --nodes, a number of nodes. False after a message. */
static bool set_nodes(ImportJob *o, const char *v, FILE *err) {
    char *end;
    o->how.n_nodes = strtoll(v, &end, 10);
    if (*v && !*end && o->how.n_nodes >= 0) return true;
    return fputs("gnnc import: --nodes needs a value\n", err), false;
}

/* Reads the value of --every, a number of days, which are kept in seconds. False after a
 * message. */
static bool set_every(ImportJob *o, const char *v, FILE *err) {
    const char *end;
    double days = rt_strtod(v, &end);
    o->task.every = days * 86400;
    if (end != v && !*end && days > 0 && isfinite(o->task.every)) return true;
    return fprintf(err, "gnnc import: --every %s: a number of days is expected\n", v), false;
}

/* Reads the value of --dangling: what is done about references to rows that do not exist. False
 * after a message. */
static bool set_dangling(ImportJob *o, const char *v, FILE *err) {
    RtImport *how = &o->how;
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
static bool check_split(const ImportJob *o, FILE *err) {
    bool dated = !isnan(o->task.val_time) || !isnan(o->task.test_time);
    const char *lone = o->seeded ? "--seed" : o->split.replace ? "--replace-split" : NULL;
    const char *of_task = o->task.name        ? "--task"
                          : dated             ? "--val-time or --test-time"
                          : o->task.every > 0 ? "--every"
                          : o->task.history   ? "--label-history"
                                              : NULL;
    if (o->task.query && o->task_file)
        return fprintf(err, "gnnc import: --predict or --task-sql, not both\n"), false;
    if (o->splits && import_has_task(o))
        return fprintf(err, "gnnc import: a task makes a split: no --split\n"), false;
    if (o->task_file && (o->task.name || o->task.every > 0))
        return fprintf(err, "gnnc import: %s goes with --predict QUERY\n",
                       o->task.name ? "--task" : "--every"),
               false;
    if (of_task && !import_has_task(o))
        return fprintf(err, "gnnc import: %s goes with --predict QUERY\n", of_task), false;
    if (o->split.by_time && !o->splits && !import_has_task(o)) lone = "--by-time";
    if (lone && !o->splits)
        return fprintf(err, "gnnc import: %s goes with --split 80/10/10\n", lone), false;
    if (o->split.by_time && o->seeded)
        return fprintf(err, "gnnc import: --by-time leaves nothing to chance: no --seed\n"), false;
    return true;
}

/* Reads the value of an option that has a form of its own. NULL: the option has none. */
typedef bool SetOption(ImportJob *o, const char *v, FILE *err);
static SetOption *setter_of(const char *option) {
    static const struct {
        const char *name;
        SetOption *set;
    } setters[] = {
        {"--nodes", set_nodes},         {"--kind", add_kind},         {"--features", add_low},
        {"--header", set_header},       {"--split", set_split},       {"--seed", set_seed},
        {"--rare", set_rare},           {"--every", set_every},       {"--val-time", set_val_time},
        {"--test-time", set_test_time}, {"--dangling", set_dangling}, {"--row-time", set_row_time},
        {"--given", add_given},
    };
    for (size_t i = 0; i < sizeof setters / sizeof *setters; i++)
        if (strcmp(option, setters[i].name) == 0) return setters[i].set;
    return NULL;
}

/* Reads the option with a value at argv[*i]; *i: moves on if the value is the next argument. False
 * after a message. */
static bool option(ImportJob *o, int argc, char **argv, int *i, FILE *err) {
    char key[32];
    const char *v = value_of(argc, argv, i, key, sizeof key);
    const char **to = text_option(o, key);
    SetOption *set = setter_of(key);
    if (!to && !set) return fprintf(err, "gnnc import: unknown option %s\n", argv[*i]), false;
    if (!v) return fprintf(err, "gnnc import: %s needs a value\n", key), false;
    if (*i + 1 < argc && v == argv[*i + 1]) ++*i;
    if (to) *to = v;
    return to || set(o, v, err);
}

/* Whether all that an import needs is named, and its options go together. False after a message. */
static bool check_options(const ImportJob *o, FILE *err) {
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

bool import_parse_options(int argc, char **argv, ImportJob *o, FILE *err) {
    for (int i = 1; i < argc; i++) {
        if (flag(o, argv[i])) continue;
        if (argv[i][0] == '-' && argv[i][1]) {
            if (!option(o, argc, argv, &i, err)) return false;
            continue;
        }
        if (o->n_input == 2)
            return fprintf(err, "gnnc import: too many inputs; tables of several types are "
                                "imported by their folder\n"),
                   false;
        o->input[o->n_input++] = argv[i];
    }
    return o->help || check_options(o, err);
}
