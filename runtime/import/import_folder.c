/* Folders of files to import, plain or packed with gzip. */
#include "import_folder.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/data/csv.h"
#include "import_build.h"
#include "runtime/data/number.h"

void rt_folder_open(RtFolder *f, const char *path) {
    *f = (RtFolder){.name = path};
}

/* Is it a path below the folder: not absolute, without ".."? */
static bool stays_inside(const char *file) {
    for (const char *s = file; *s; s += strcspn(s, "/"), s += *s == '/')
        if (strncmp(s, "..", 2) == 0 && (!s[2] || s[2] == '/')) return false;
    return *file && *file != '/';
}

/* The text of a file that is in memory; NULL: there is none of that name. */
static const RtBytes *in_memory(const RtFolder *f, const char *file) {
    for (int i = 0; i < f->n_files; i++)
        if (strcmp(f->files[i].name, file) == 0) return &f->files[i].text;
    return NULL;
}

gnnc_status rt_folder_get(RtPool *pool, const RtFolder *f, const char *file, RtBytes *out,
                          bool *found, RtError *err) {
    *found = false;
    if (!stays_inside(file))
        return rt_fail(err, GNNC_E_FORMAT, "%s: '%s' is not inside the folder", f->name, file);
    if (f->files) {
        const RtBytes *b = in_memory(f, file);
        *found = b;
        if (b) *out = *b;
        return GNNC_OK;
    }
    char *path = rt_pool_printf(pool, "%s/%s", f->name, file);
    if (!path) return rt_fail_nomem(err, file);
    if (access(path, F_OK) != 0 && errno == ENOENT) return GNNC_OK;
    *found = true;
    return rt_file_map(pool, path, out, err);
}

gnnc_status rt_folder_text(RtPool *pool, const RtFolder *f, const char *file, RtBytes *out,
                           bool *found, RtError *err) {
    char *gz = rt_pool_printf(pool, "%s.gz", file);
    if (!gz) return rt_fail_nomem(err, file);
    gnnc_status st = rt_folder_get(pool, f, file, out, found, err);
    if (st != GNNC_OK || *found) return st;
    st = rt_folder_get(pool, f, gz, out, found, err);
    return st == GNNC_OK && *found ? rt_gunzip(pool, *out, gz, out, err) : st;
}

bool rt_folder_has(const RtFolder *f, const char *file) {
    char path[4096];
    for (int gz = 0; gz < 2; gz++) {
        snprintf(path, sizeof path, "%s%s%s%s", f->files ? "" : f->name, f->files ? "" : "/", file,
                 gz ? ".gz" : "");
        if (f->files ? in_memory(f, path) != NULL : access(path, F_OK) == 0) return true;
    }
    return false;
}

/* ---- listing ------------------------------------------------------------------- */
enum { MOST_NAMES = 4096 };

/* Adds a name to a list that has each once. */
static gnnc_status add_name(RtPool *pool, const char **names, int *n, const char *s, size_t len,
                            RtError *err) {
    for (int i = 0; i < *n; i++)
        if (strlen(names[i]) == len && memcmp(names[i], s, len) == 0) return GNNC_OK;
    if (*n == MOST_NAMES) return rt_fail(err, GNNC_E_LIMIT, "more than %d files", MOST_NAMES);
    names[*n] = rt_pool_strndup(pool, s, len);
    return names[(*n)++] ? GNNC_OK : rt_fail_nomem(err, "folder");
}

/* Lists the names in a directory of the folder; one that is not there has none. */
static gnnc_status list_disk(RtPool *pool, const RtFolder *f, const char *dir, const char **names,
                             int *n, RtError *err) {
    gnnc_status st = GNNC_OK;
    char *path = rt_pool_printf(pool, "%s/%s", f->name, dir);
    if (!path) return rt_fail_nomem(err, dir);
    DIR *list = opendir(path);
    if (!list) return errno == ENOENT ? GNNC_OK : rt_fail_errno(err, path, "open");
    for (struct dirent *e; st == GNNC_OK && (e = readdir(list));)
        if (!rt_is_dots(e->d_name))
            st = add_name(pool, names, n, e->d_name, strlen(e->d_name), err);
    closedir(list);
    return st;
}

gnnc_status rt_folder_list(RtPool *pool, const RtFolder *f, const char *dir, const char ***names,
                           int *n, RtError *err) {
    gnnc_status st = GNNC_OK;
    size_t k = strlen(dir);
    *n = 0;
    *names = RT_NEWN(pool, const char *, MOST_NAMES);
    if (!*names) return rt_fail_nomem(err, f->name);
    if (!f->files) st = list_disk(pool, f, dir, *names, n, err);
    for (int i = 0; i < f->n_files && st == GNNC_OK; i++) {
        const char *s = f->files[i].name;
        if (k && (strncmp(s, dir, k) != 0 || s[k] != '/')) continue;
        s += k ? k + 1 : 0;
        st = add_name(pool, *names, n, s, strcspn(s, "/"), err);
    }
    qsort(*names, (size_t)*n, sizeof **names, rt_by_text);
    return st;
}

/* ---- gzip ----------------------------------------------------------------------- */
/* Unpacks all members into `to`, or with NULL only counts; false: damaged. */
static bool inflate_members(RtBytes packed, uint8_t *to, uint64_t *n) {
    enum { PIECE = 1 << 16 };
    uint8_t nowhere[PIECE];
    z_stream s = {.next_in = (Bytef *)(uintptr_t)packed.p};
    uint64_t left = packed.n, room = *n;
    int r = Z_OK;
    if (inflateInit2(&s, 16 + MAX_WBITS) != Z_OK) return false;
    *n = 0;
    while (r == Z_OK) {
        uInt in = left < 1 << 30 ? (uInt)left : 1 << 30, out = PIECE;
        if (to && room - *n < PIECE) out = (uInt)(room - *n);
        s.avail_in = in, s.avail_out = out;
        s.next_out = to ? to + *n : nowhere;
        r = inflate(&s, Z_NO_FLUSH);
        left -= in - s.avail_in;
        *n += out - s.avail_out;
        if (r == Z_OK && s.avail_in == in && s.avail_out == out) r = Z_BUF_ERROR;
        if (r == Z_STREAM_END && left >= 2 && s.next_in[0] == 0x1f) r = inflateReset(&s);
    }
    inflateEnd(&s);
    return r == Z_STREAM_END;
}

gnnc_status rt_gunzip(RtPool *pool, RtBytes packed, const char *name, RtBytes *out, RtError *err) {
    uint64_t n = 0;
    if (!inflate_members(packed, NULL, &n))
        return rt_fail(err, GNNC_E_FORMAT, "%s: not gzip, damaged or truncated", name);
    uint8_t *to = rt_pool_alloc(pool, (size_t)n + 1, 1);
    if (!to) return rt_fail_nomem(err, name);
    if (n && !inflate_members(packed, to, &n))
        return rt_fail(err, GNNC_E_FORMAT, "%s: not gzip, damaged or truncated", name);
    *out = (RtBytes){to, (size_t)n};
    return GNNC_OK;
}

/* ---- numbers ---------------------------------------------------------------------- */
typedef struct {
    const char *name;
    RtError *err;
    const char *end;
    int64_t columns, row; /* row: counted from 1 */
    bool whole;
    double *to; /* NULL while only looking */
    int64_t *to_whole;
    int64_t n;
} Numbers;

static gnnc_status bad_cell(Numbers *x, int64_t column, const char *what) {
    return rt_fail(x->err, GNNC_E_FORMAT, "%s: row %lld, column %lld: %s", x->name,
                   (long long)x->row, (long long)column + 1, what);
}

/* Stores one cell, or only counts it while there is no room; an empty one is missing (NaN). */
static gnnc_status store_number(Numbers *x, const char *s, size_t n, int64_t column) {
    char cell[64];
    int64_t i = 0;
    double v = NAN;
    while (n && (*s == ' ' || *s == '\t')) s++, n--;
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\r')) n--;
    if (n >= sizeof cell || memchr(s, 0, n)) return bad_cell(x, column, "not a number");
    memcpy(cell, s, n);
    cell[n] = 0;
    bool missing = n == 0 || strcmp(cell, "nan") == 0 || strcmp(cell, "NaN") == 0;
    bool whole = rt_cell_integer(cell, &i);
    if (whole) v = (double)i;
    if (!whole && !missing && !rt_cell_number(cell, &v)) return bad_cell(x, column, "not a number");
    x->whole &= whole;
    if (x->to) x->to[x->n] = v;
    if (x->to_whole) x->to_whole[x->n] = i;
    x->n++;
    return GNNC_OK;
}

/* Reads one line of numbers; all have as many as the first. */
static gnnc_status read_number_row(Numbers *x, const char *s, const char *eol) {
    int64_t column = 0;
    for (;; column++) {
        const char *comma = memchr(s, ',', (size_t)(eol - s)), *stop = comma ? comma : eol;
        if (x->columns && column >= x->columns) return bad_cell(x, column, "too many fields");
        gnnc_status st = store_number(x, s, (size_t)(stop - s), column);
        if (st != GNNC_OK) return st;
        if (!comma) break;
        s = comma + 1;
    }
    if (!x->columns) x->columns = column + 1;
    return column + 1 == x->columns ? GNNC_OK : bad_cell(x, column, "too few fields");
}

/* Reads all lines of numbers and counts them. */
static gnnc_status read_number_rows(Numbers *x, RtBytes text, int64_t *rows) {
    const char *s = (const char *)text.p, *end = s + text.n;
    gnnc_status st = GNNC_OK;
    *rows = 0;
    for (x->row = 1; s < end && st == GNNC_OK; x->row++) {
        const char *eol = memchr(s, '\n', (size_t)(end - s));
        if (!eol) eol = end;
        /* A line of one empty cell is a missing value where rows have one column. */
        bool blank = eol == s || (eol == s + 1 && *s == '\r');
        if (!blank || x->columns == 1) {
            st = read_number_row(x, s, eol);
            ++*rows;
        }
        s = eol < end ? eol + 1 : end;
    }
    return st;
}

gnnc_status rt_numbers(RtPool *pool, RtBytes text, const char *name, RtArray *out, RtError *err) {
    Numbers x = {.name = name, .err = err, .whole = true};
    int64_t rows;
    gnnc_status st = read_number_rows(&x, text, &rows);
    if (st == GNNC_OK && x.columns == 1) { /* empty lines before the first number count, too */
        x = (Numbers){.name = name, .err = err, .whole = true, .columns = 1};
        st = read_number_rows(&x, text, &rows);
    }
    if (st != GNNC_OK) return st;
    Numbers y = {.name = name, .err = err, .columns = x.columns};
    void *to = RT_NEWN(pool, double, x.n);
    if (!to) return rt_fail_nomem(err, name);
    if (x.whole)
        y.to_whole = to;
    else
        y.to = to;
    st = read_number_rows(&y, text, &rows);
    *out = (RtArray){.dt = x.whole ? RT_DT_I64 : RT_DT_F64,
                     .rank = 2,
                     .shape = {rows, x.columns},
                     .count = x.n,
                     .data = to};
    return st;
}

gnnc_status rt_folder_numbers(RtPool *pool, const RtFolder *f, const char *file, RtArray *out,
                              bool *found, RtError *err) {
    RtBytes text;
    char *where = rt_pool_printf(pool, "%s/%s", f->name, file);
    if (!where) return rt_fail_nomem(err, file);
    gnnc_status st = rt_folder_text(pool, f, file, &text, found, err);
    return st == GNNC_OK && *found ? rt_numbers(pool, text, where, out, err) : st;
}
