/* --ids and --nodes: which rows are asked for.  An id is what the data call a row; of a model that
 * scores links it is a source, and all its links are meant. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_predict.h"

static int failed(const RtCli *c, const char *file, const char *what) {
    fprintf(stderr, "%s: error: %s: %s\n", c->prog, file, what);
    return RT_EXIT_FAILED;
}

/* ---- the file ----------------------------------------------------------------------- */
/* Also of a pipe, whose size nobody knows. */
static bool read_all(int fd, RtCliRows *r) {
    size_t room = 0;
    for (;;) {
        if (r->n_bytes + 1 >= room) {
            room = room ? 2 * room : 1 << 14;
            char *more = realloc(r->text, room);
            if (!more) return errno = ENOMEM, false;
            r->text = more;
        }
        ssize_t n = read(fd, r->text + r->n_bytes, room - 1 - r->n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) break;
        r->n_bytes += (size_t)n;
    }
    r->text[r->n_bytes] = '\0';
    return true;
}

int rt_cli_rows_read(const RtCli *c, RtCliRows *r) {
    const char *path = c->ids ? c->ids : c->nodes;
    char why[256];
    if (!path) return RT_EXIT_OK;
    bool piped = strcmp(path, "-") == 0;
    r->file = piped ? "standard input" : path;
    int fd = piped ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read_all(fd, r);
    if (!ok) snprintf(why, sizeof why, "cannot %s: %s", fd < 0 ? "open" : "read", strerror(errno));
    if (fd >= 0 && !piped) close(fd);
    r->n_lines = 1;
    for (size_t i = 0; i < r->n_bytes; i++) r->n_lines += r->text[i] == '\n';
    return ok ? RT_EXIT_OK : failed(c, r->file, why);
}

/* The next line that is not empty, ended in place; NULL: there is none.  *line counts all. */
static char *next_line(char **at, const char *end, int64_t *line, size_t *n) {
    while (*at < end) {
        char *s = *at, *stop = memchr(s, '\n', (size_t)(end - s));
        if (!stop) stop = s + (end - s);
        *at = stop < end ? stop + 1 : stop;
        if (stop > s && stop[-1] == '\r') stop--;
        *stop = '\0';
        ++*line;
        *n = (size_t)(stop - s);
        if (*n) return s;
    }
    return NULL;
}

/* ---- one line ------------------------------------------------------------------------- */
typedef struct {
    const RtCli *c;
    RtCliRows *r;
    gnnc_legend *g;
    gnnc_legend_info is;
    int64_t n_rows; /* of what the lines name */
    int64_t room;   /* of r->row */
    int64_t line;
} Finder;

/* The error of a line of the file with rows. */
static int bad_line(const Finder *f, const char *why) {
    char text[700];
    snprintf(text, sizeof text, "line %lld%s%s", (long long)f->line, *why == ' ' ? "" : ": ", why);
    return failed(f->c, f->r->file, text);
}

/* -1: it is no whole number; INT64_MAX: one beyond all rows. */
static int64_t row_number(const char *s) {
    int64_t v = 0;
    if (!*s || s[strspn(s, "0123456789")]) return -1;
    for (; *s; s++) v = v > INT64_MAX / 16 ? v : 10 * v + (*s - '0');
    return v > INT32_MAX ? INT64_MAX : v;
}

/* A long one is cut, what cannot be shown is '?'. */
static void quote(char to[48], const char *s) {
    size_t n = 0;
    to[n++] = '\'';
    for (; *s && n < 40; s++) to[n++] = *s >= ' ' && *s <= '~' ? *s : '?';
    snprintf(to + n, 48 - n, "%s'", *s ? ".." : "");
}

/* The error of a line that names no row of the table. */
static int bad_number(const Finder *f, const char *s) {
    char said[48], why[256];
    quote(said, s);
    if (row_number(s) >= 0)
        snprintf(why, sizeof why, "'%.64s' has no row %s: %lld, from 0", f->is.table, said,
                 (long long)f->n_rows);
    else if (f->c->ids)
        snprintf(why, sizeof why,
                 "%s is no row number, and the data do not name the rows of '%.64s'", said,
                 f->is.table);
    else
        snprintf(why, sizeof why, "%s is no row number", said);
    return bad_line(f, why);
}

/* Finds the row that a line of n bytes names: by its id with --ids where rows have some, else by
 * its number. */
static int find_line(const Finder *f, const char *s, size_t n, int64_t *row) {
    if (strlen(s) != n) return bad_line(f, " holds a NUL byte");
    if (f->c->ids && f->is.has_ids)
        return gnnc_legend_find(f->g, s, row) == GNNC_OK ? RT_EXIT_OK
                                                         : bad_line(f, gnnc_legend_error(f->g));
    *row = row_number(s);
    return *row >= 0 && *row < f->n_rows ? RT_EXIT_OK : bad_number(f, s);
}

/* ---- all lines -------------------------------------------------------------------------- */
/* Makes room for n more rows; false: no memory. */
static bool make_room(Finder *f, int64_t n) {
    if (f->r->n + n <= f->room) return true;
    f->room = 2 * (f->r->n + n);
    int64_t *more = realloc(f->r->row, (size_t)f->room * sizeof *more);
    if (more) f->r->row = more;
    return more != NULL;
}

/* The row; of edges all that begin there. */
static int take(Finder *f, int64_t row) {
    RtCliRows *r = f->r;
    int64_t n = 1;
    if (f->is.destinations && gnnc_legend_links(f->g, row, &n, 0, NULL) != GNNC_OK)
        return bad_line(f, gnnc_legend_error(f->g));
    if (!make_room(f, n + 1)) return failed(f->c, r->file, "out of memory");
    r->row[r->n] = row;
    if (f->is.destinations) gnnc_legend_links(f->g, row, &n, n, r->row + r->n);
    r->n += n;
    return RT_EXIT_OK;
}

int rt_cli_rows_find(const RtCli *c, RtCliRows *r, gnnc_legend *g) {
    Finder f = {.c = c, .r = r, .g = g, .is.struct_size = sizeof f.is};
    char *at = r->text, *s;
    const char *end = at + r->n_bytes;
    size_t n;
    int code = RT_EXIT_OK;
    int64_t row;
    gnnc_legend_describe(g, &f.is);
    f.n_rows = f.is.n_table;
    if (!make_room(&f, 1)) return failed(c, r->file, "out of memory");
    if (r->n_bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* UTF-8 mark */
    while (code == RT_EXIT_OK && (s = next_line(&at, end, &f.line, &n))) {
        code = find_line(&f, s, n, &row);
        if (code == RT_EXIT_OK) code = take(&f, row);
    }
    return code;
}

void rt_cli_rows_free(RtCliRows *r) {
    free(r->text);
    free(r->row);
}
