/* The command line of `gnnc export`, and what the columns of a file become. */
#include "export.h"

#include <string.h>

#include "options.h"
#include "runtime/data/number.h"
#include "source.h"

#if !SOURCE_HAVE_SQLITE
#define source_sqlite_write NULL
#endif
#if !SOURCE_HAVE_POSTGRES
#define source_postgres_write NULL
#endif

typedef gnnc_status WriteDatabase(const char *database, const Export *x, RtError *err);
static WriteDatabase *const writers[] = {source_sqlite_write, source_postgres_write};

static const char usage[] =
    "usage: gnnc export FILE --into DATABASE --table NAME [--append | --replace]\n"
    "\n"
    "Writes the rows of a file, predictions say, into a table of an SQLite or PostgreSQL database\n"
    "(shop.sqlite, postgresql://..), in one transaction: where a row fails, none is there.  FILE\n"
    "is CSV, or JSON lines where it is called .jsonl.\n"
    "\n"
    "  --into DATABASE  an SQLite file or postgresql://.., as for gnnc import\n"
    "  --table NAME     the new table; its columns are those of the file\n"
    "  --append         add the rows to a table that exists and has these columns\n"
    "  --replace        replace the table if it exists\n"
    "  --help           or -h: print this\n";

typedef struct {
    const char *file, *database, *table;
    bool append, replace, help;
} Options;

/* ---- columns ------------------------------------------------------------------------------ */
static bool is_no_number(const char *cell) {
    return strcmp(cell, "nan") == 0 || strcmp(cell, "NaN") == 0;
}

bool export_is_null(const Export *x, int column, const char *cell) {
    return !*cell || (x->type[column] != EXPORT_TEXT && is_no_number(cell));
}

/* Whether a cell is an integer with more digits than a double has: as an id it would become
 * another one. */
static bool loses_precision(const char *cell) {
    const int64_t most = (int64_t)1 << 53;
    const char *digits = cell + (*cell == '-');
    int64_t v;
    if (rt_cell_integer(cell, &v)) return v > most || v < -most;
    return *digits && !digits[strspn(digits, "0123456789")];
}

/* The type that all cells of a column fit; text, if it has none. */
static ExportType type_of(const RtCsv *t, int column) {
    bool whole = true, number = true, cut = false;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_rows && number; i++) {
        const char *cell = t->cell[i * t->n_columns + column];
        int64_t v;
        double x;
        if (!*cell || is_no_number(cell)) continue;
        n++;
        whole = whole && rt_cell_key(cell, &v);
        cut = cut || loses_precision(cell);
        bool code = *cell == '0' && cell[1] >= '0' && cell[1] <= '9'; /* 007.5 is no number */
        number = whole || (!code && rt_cell_number(cell, &x));
    }
    if (!n || !number || (cut && !whole)) return EXPORT_TEXT;
    return whole ? EXPORT_INTEGER : EXPORT_REAL;
}

/* ---- all of it ------------------------------------------------------------------------------ */
/* Keeps the message about the first bad row of a CSV file; user: the RtError to keep it in. */
static void on_bad_row(void *user, const char *file, int64_t line, const char *what) {
    RtError *first = user;
    if (!first->text[0])
        rt_fail(first, GNNC_E_FORMAT, "%s: row %lld: %s", file, (long long)line, what);
}

/* Reads the rows of a file to export, CSV or JSON lines. A bad row is an error: nothing is to be
 * written then. */
static gnnc_status read_rows(const Options *o, RtPool *pool, RtCsv *csv, RtError *err) {
    RtBytes text;
    RtError bad = {""};
    gnnc_status st;
    TRY(st, rt_file_map(pool, o->file, &text, err));
    if (rt_ends_with(o->file, ".jsonl")) return export_read_json(pool, text, o->file, csv, err);
    TRY(st, rt_csv_parse(pool, text, o->file, RT_HEADER_YES, on_bad_row, &bad, csv, err));
    if (bad.text[0]) return rt_fail(err, GNNC_E_FORMAT, "%s; nothing is written", bad.text);
out:
    return st;
}

/* Reads the rows, chooses a type for each column and has `write` write them into the database. */
static gnnc_status write_rows(const Options *o, WriteDatabase *write, RtPool *pool, RtCsv *csv,
                              RtError *err) {
    gnnc_status st;
    TRY(st, read_rows(o, pool, csv, err));
    ExportType *type = RT_NEWN(pool, ExportType, csv->n_columns);
    if (!type) return rt_fail_nomem(err, o->file);
    for (int i = 0; i < csv->n_columns; i++) type[i] = type_of(csv, i);
    Export x = {o->table, csv, type,
                o->append    ? EXPORT_APPEND
                : o->replace ? EXPORT_REPLACE
                             : EXPORT_STOP};
    st = write(o->database, &x, err);
out:
    return st;
}

/* Exports a file as the options say, with a report to `out`. Returns the exit status. */
static int export_file(const Options *o, FILE *out, FILE *err) {
    RtPool pool;
    RtError e = {""};
    RtCsv csv = {.n_rows = 0};
    gnnc_status st = GNNC_E_ARG;
    const ImportDatabase *d = source_databases;
    while (d->name && (d->folder || !d->takes(o->database))) d++;
    rt_pool_init(&pool, NULL);
    if (!d->name)
        rt_fail(&e, st, "%s: no SQLite database, and no address of a PostgreSQL server",
                o->database);
    else if (!d->open)
        rt_fail(&e, st, "%s databases are not written: this gnnc was built without %s", d->name,
                d->library);
    else
        st = write_rows(o, writers[d - source_databases], &pool, &csv, &e);
    if (st == GNNC_OK)
        fprintf(out, "%s: %lld rows into '%s'\n", o->file, (long long)csv.n_rows, o->table);
    else
        fprintf(err, "gnnc export: error: %s\n", e.text);
    rt_pool_free(&pool);
    return st == GNNC_OK ? 0 : 1;
}

/* ---- the command line -------- */
/* Reads an option without a value. False: it is none of them. */
static bool flag(Options *o, const char *arg) {
    if (strcmp(arg, "--append") == 0) return o->append = true;
    if (strcmp(arg, "--replace") == 0) return o->replace = true;
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) return o->help = true;
    return false;
}

/* Reads the command line of `gnnc export`. False after a message. */
static bool parse(int argc, char **argv, Options *o, FILE *err) {
    const SourceOption texts[] = {{"--into", &o->database}, {"--table", &o->table}, {NULL, NULL}};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        SourceOptionRead read = source_option(texts, argc, argv, &i, "export", err);
        if (read == OPTION_WRONG) return false;
        if (read == OPTION_READ) continue;
        if (word[0] == '-' && !flag(o, word))
            return fprintf(err, "gnnc export: unknown option %s\n", word), false;
        if (word[0] != '-' && o->file)
            return fprintf(err, "gnnc export: one file too many: %s\n", word), false;
        if (word[0] != '-') o->file = word;
    }
    if (o->help) return true;
    const char *lacks = !o->file                  ? "no file is named"
                        : !o->database            ? "where to? --into DATABASE"
                        : !o->table || !*o->table ? "which table? --table NAME"
                        : strlen(o->table) > 63   ? "the table's name is too long"
                        : o->append && o->replace ? "--append and --replace exclude each other"
                                                  : NULL;
    return !lacks || (fprintf(err, "gnnc export: %s\n", lacks), false);
}

/* The command `gnnc export`. Returns its exit status. */
int gnnc_export_main(int argc, char **argv, FILE *out, FILE *err) {
    Options o = {.file = NULL};
    if (!parse(argc, argv, &o, err))
        return fputs("'gnnc export --help' lists the options\n", err), 2;
    if (o.help) return fputs(usage, out), 0;
    return export_file(&o, out, err);
}
