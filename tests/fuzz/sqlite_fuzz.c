/* Fuzz target: any bytes as an SQLite database, or as the SQL that makes one and, behind a 0x01
 * byte, what is said of its columns.  It ends in an error with words, or in data that are in
 * order. */
#define SOURCE_HAVE_SQLITE 1
#include <stdlib.h>

#include "frontend/source/source.c"
#include "frontend/source/sqlite.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_STEPS = 200000 };

/* Other files are nobody's business. */
static int allow(void *user, int what, const char *a, const char *b, const char *db,
                 const char *by) {
    (void)user, (void)a, (void)b, (void)db, (void)by;
    return what == SQLITE_ATTACH ? SQLITE_DENY : SQLITE_OK;
}

static int stop(void *user) {
    return ++*(int *)user > MOST_STEPS / 1000;
}

static void make_database(const char *path, const char *sql) {
    sqlite3 *db;
    int steps = 0;
    if (sqlite3_open(path, &db) != SQLITE_OK) abort();
    sqlite3_set_authorizer(db, allow, NULL);
    sqlite3_progress_handler(db, 1000, stop, &steps);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_exec(db, "PRAGMA journal_mode = off; PRAGMA synchronous = off", NULL, NULL, NULL);
    sqlite3_exec(db, sql, NULL, NULL, NULL); /* up to what is no SQL */
    sqlite3_close(db);
}

static void import(const char *path, const RtNamedBytes *map, RtImport how) {
    RtError err = {""};
    RtSource s;
    RtDataset *d = NULL;
    gnnc_status st = source_sqlite_open(NULL, path, &how, &s, &err);
    if (st == GNNC_OK) st = rt_source_order(&s, &err);
    if (st == GNNC_OK) st = rt_import_source(NULL, &s, map, &how, &d, &err);
    if (s.form) s.form->close(&s);
    if (st == GNNC_OK ? rt_dataset_check(d, &err) != GNNC_OK : !*err.text || d) abort();
    rt_dataset_close(d);
}

/* A file in memory, where there is such a place, which is made anew for each input. */
static const char *place(void) {
    static char path[64]; /* of the process */
    bool shared = access("/dev/shm", W_OK) == 0;
    snprintf(path, sizeof path, "%s/sqlite_fuzz_%ld", shared ? "/dev/shm" : "/tmp", (long)getpid());
    return path;
}

static void write_file(const char *path, const uint8_t *data, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const char *path = place();
    bool is_file = n >= 16 && memcmp(data, "SQLite format 3", 16) == 0;
    const uint8_t *rest = is_file ? NULL : n ? memchr(data, 1, n) : NULL;
    RtNamedBytes map = {"map", {rest, rest ? (size_t)(data + n - rest) : 0}};
    write_file(path, data, is_file ? n : 0);
    if (!is_file) {
        char *sql = strndup((const char *)data, rest ? (size_t)(rest - data) : n);
        if (!sql) abort();
        make_database(path, sql);
        free(sql);
    }
    import(path, rest ? &map : NULL, (RtImport){0});
    import(path, rest ? &map : NULL,
           (RtImport){.skip_bad = true, .dangling = RT_DANGLING_KEEP, .unknown = true});
    unlink(path);
    return 0;
}
