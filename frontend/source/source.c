/* What the databases share, and which there are. */
#include "source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/io.h"

/* ---- which input is whose -------------------------------------------------------------- */
/* Whether the input is an SQLite database: by its name, or by how the file begins. */
static bool is_sqlite(const char *input) {
    static const char magic[] = "SQLite format 3";
    static const char *const ends[] = {".sqlite", ".sqlite3", ".db", ".db3"};
    char head[sizeof magic] = "";
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rt_ends_with(input, ends[i])) return true;
    FILE *f = fopen(input, "rbe");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

static bool is_postgres(const char *input) {
    return strncmp(input, "postgresql://", 13) == 0 || strncmp(input, "postgres://", 11) == 0;
}

/* Whether the input is a folder of RelBench's format, which has a manifest. */
static bool is_relbench(const char *input) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/manifest.yaml", input);
    return n > 0 && n < (int)sizeof path && access(path, F_OK) == 0;
}

#if !SOURCE_HAVE_YAML
#define source_relbench_open NULL
#endif
#if !SOURCE_HAVE_SQLITE
#define source_sqlite_open NULL
#endif
#if !SOURCE_HAVE_POSTGRES
#define source_postgres_open NULL
#endif
const ImportDatabase source_databases[] = {
    {"SQLite", "libsqlite3", is_sqlite, source_sqlite_open, false},
    {"PostgreSQL", "libpq", is_postgres, source_postgres_open, false},
    {"RelBench's", "libyaml", is_relbench, source_relbench_open, true},
    {NULL, NULL, NULL, NULL, false},
};

/* ---- SQL ---------------------------------------------------------------------------------- */
/* Adds n bytes to a statement. If memory runs out, its text is NULL from then on. */
static void add(SourceSql *s, const char *text, size_t n) {
    if (s->n + n + 1 > s->room) {
        size_t room = 2 * (s->n + n + 1);
        char *p = !s->text && s->n ? NULL : rt_pool_alloc(s->pool, room, 1);
        if (p && s->n) memcpy(p, s->text, s->n);
        rt_pool_drop(s->pool, s->text);
        s->text = p;
        s->room = p ? room : 0;
    }
    if (s->text) memcpy(s->text + s->n, text, n);
    s->n += n;
}

void source_sql(SourceSql *s, const char *text) {
    add(s, text, strlen(text));
}

/* Adds a name in quotes to a statement. */
void source_sql_name(SourceSql *s, const char *name) {
    add(s, "\"", 1);
    for (; *name; name++) add(s, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
    add(s, "\"", 1);
}

/* Adds a WITH clause that makes the SELECT of a query a table by its name. Nothing, if t is a
 * table of the database. */
void source_sql_with(SourceSql *s, const RtSourceTable *t) {
    if (!t->sql) return;
    source_sql(s, "WITH ");
    source_sql_name(s, t->name);
    for (int i = 0; i < t->n_columns; i++) {
        source_sql(s, i ? ", " : " (");
        source_sql_name(s, t->columns[i].name);
    }
    source_sql(s, ") AS (");
    source_sql(s, t->sql);
    source_sql(s, "\n) "); /* it may end in a comment */
}

/* Writes the columns that rows are ordered by to `order` and returns how many: the key, else all
 * that can be compared. */
int source_order(const RtSourceTable *t, int *order) {
    int n = t->key.n;
    if (n) memcpy(order, t->key.at, (size_t)n * sizeof *order);
    for (int i = 0; i < t->n_columns && !t->key.n; i++)
        if (!t->columns[i].computed && t->columns[i].declared != RT_DECLARED_BLOB) order[n++] = i;
    return n;
}

/* A copy of a message as one line. */
const char *source_line(RtPool *pool, const char *text) {
    char *line = rt_pool_strndup(pool, text, strlen(text));
    size_t n = line ? strlen(line) : 0;
    while (n && (line[n - 1] == '\n' || line[n - 1] == ' ')) line[--n] = 0;
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\n' || line[i] == '\t') line[i] = ' ';
    return line ? line : "out of memory";
}
