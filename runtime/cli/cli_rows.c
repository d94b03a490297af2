/* --ids and --nodes: which rows are asked for.  An id is what the data call a row; of a model that
 * scores links it is a source, and all its links are meant. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli_predict.h"
#include "runtime/batch/link_batches.h"
#include "runtime/bind.h"
#include "runtime/data/csv.h"
#include "runtime/data/names.h"

/* ---- the file ----------------------------------------------------------------------- */
static const char *file_of(const RtCli *c) {
    const char *path = c->ids ? c->ids : c->nodes;
    return path && strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Also of a pipe, whose size nobody knows. */
static gnnc_status read_all(int fd, const char *name, RtText *to, RtError *err) {
    char part[1 << 14];
    ssize_t n = 0;
    while ((n = read(fd, part, sizeof part)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rt_fail_errno(err, name, "read");
        if (!rt_text_put(to, part, (size_t)n)) return rt_fail_nomem(err, name);
    }
    return rt_text_put(to, "", 0) ? GNNC_OK : rt_fail_nomem(err, name);
}

gnnc_status rt_cli_rows_read(const RtCli *c, RtCliRows *r) {
    const char *path = c->ids ? c->ids : c->nodes;
    if (!path) return GNNC_OK;
    r->asked.pool = r->pool;
    if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, file_of(c), &r->asked, r->err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return rt_fail_errno(r->err, path, "open");
    gnnc_status st = read_all(fd, path, &r->asked, r->err);
    close(fd);
    return st;
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
    const char *what; /* "paper" */
    RtNames names;
    bool by_name;
    int64_t n_rows; /* of what the lines name */
} Finder;

/* -1: it is no whole number; INT64_MAX: one beyond all rows. */
static int64_t row_number(const char *s) {
    int64_t v = 0;
    if (!*s || s[strspn(s, "0123456789")]) return -1;
    for (; *s; s++) v = v > INT64_MAX / 16 ? v : 10 * v + (*s - '0');
    return v > INT32_MAX ? INT64_MAX : v;
}

static gnnc_status bad_line(const Finder *f, int64_t line, const char *s) {
    const char *said = rt_cell_quoted(s).s, *file = file_of(f->c);
    if (f->by_name)
        return rt_fail(f->r->err, GNNC_E_RANGE, "%s: line %lld: no row of '%s' is called %s", file,
                       (long long)line, f->what, said);
    if (row_number(s) >= 0)
        return rt_fail(f->r->err, GNNC_E_RANGE, "%s: line %lld: '%s' has no row %s: %lld, from 0",
                       file, (long long)line, f->what, said, (long long)f->n_rows);
    return rt_fail(f->r->err, GNNC_E_RANGE, "%s: line %lld: %s is no row number%s%s%s", file,
                   (long long)line, said,
                   f->c->ids ? ", and the data do not name the rows of '" : "",
                   f->c->ids ? f->what : "", f->c->ids ? "'" : "");
}

static gnnc_status find_line(const Finder *f, int64_t line, const char *s, size_t n, int64_t *row) {
    if (strlen(s) != n)
        return rt_fail(f->r->err, GNNC_E_FORMAT, "%s: line %lld holds a NUL byte", file_of(f->c),
                       (long long)line);
    *row = f->by_name ? rt_names_find(&f->names, s) : row_number(s);
    return *row >= 0 && *row < f->n_rows ? GNNC_OK : bad_line(f, line, s);
}

/* ---- all lines -------------------------------------------------------------------------- */
static gnnc_status find_lines(Finder *f, int64_t *to, int64_t *n) {
    char *at = f->r->asked.s, *s;
    const char *end = at + f->r->asked.n;
    int64_t line = 0;
    size_t len;
    if (f->r->asked.n >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* UTF-8 mark */
    gnnc_status st = GNNC_OK;
    for (*n = 0; st == GNNC_OK && (s = next_line(&at, end, &line, &len)); ++*n)
        st = find_line(f, line, s, len, &to[*n]);
    return st;
}

static gnnc_status index_names(Finder *f, const char *const *id) {
    f->by_name = id != NULL;
    if (!id) return GNNC_OK;
    if (!rt_names_new(f->r->pool, &f->names, f->n_rows + 1))
        return rt_fail_nomem(f->r->err, f->what);
    for (int64_t i = 0; i < f->n_rows; i++) rt_names_add(&f->names, id[i]);
    return GNNC_OK;
}

/* In place of sources, their links. */
static gnnc_status links_of(RtCliRows *r, const int64_t *node, int64_t n) {
    RtGroups by_src;
    gnnc_status st =
        rt_group(r->pool, r->edges->src, r->edges->n_edges, r->edges->n_src, &by_src, r->err);
    if (st != GNNC_OK) return st;
    for (int64_t i = 0; i < n; i++) r->n += by_src.ptr[node[i] + 1] - by_src.ptr[node[i]];
    int64_t *row = RT_NEWN(r->pool, int64_t, r->n + 1), k = 0;
    if (!row) return rt_fail_nomem(r->err, "links");
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = by_src.ptr[node[i]]; e < by_src.ptr[node[i] + 1]; e++)
            row[k++] = by_src.perm[e];
    r->row = row;
    return GNNC_OK;
}

static gnnc_status take_asked(const RtCli *c, RtCliRows *r) {
    Finder f = {.c = c, .r = r, .what = c->t->program->spaces[r->end[0]].name};
    int64_t n_lines = 1, n = 0;
    f.n_rows = r->edges ? r->edges->n_src : r->n_all;
    for (size_t i = 0; i < r->asked.n; i++) n_lines += r->asked.s[i] == '\n';
    int64_t *row = RT_NEWN(r->pool, int64_t, n_lines + 1);
    if (!row) return rt_fail_nomem(r->err, file_of(c));
    gnnc_status st = index_names(&f, c->ids ? r->id[0] : NULL);
    if (st == GNNC_OK) st = find_lines(&f, row, &n);
    if (st != GNNC_OK) return st;
    r->n = r->edges ? 0 : n;
    r->row = row;
    return r->edges ? links_of(r, row, n) : GNNC_OK;
}

/* ---- what the rows are ------------------------------------------------------------------- */
/* The trainer has given back the edges that no kernel reads. */
static gnnc_status read_edges(const RtCli *c, RtCliRows *r) {
    const rt_space *s = &c->t->program->spaces[r->space];
    RtAlloc from = rt_alloc_default();
    if (s->rel != RT_REL_BASE)
        return rt_fail(r->err, GNNC_E_ARG,
                       "the rows of '%s' are edges that the model derives, and have no ids: "
                       "--format=npy has all of them",
                       s->name);
    gnnc_status st = rt_dataset_open(&from, c->data, true, &r->again, r->err);
    if (st != GNNC_OK) return st;
    const RtTable *t = rt_dataset_edges(r->again, s->name);
    if (!t || t->count != r->n_all)
        return rt_fail(r->err, GNNC_E_FORMAT, "%s: '%s' has changed since it was read", c->data,
                       s->name);
    r->edges = &r->own;
    return rt_relation_base(r->pool, r->again->nodes[t->src_type].count,
                            r->again->nodes[t->dst_type].count, t->count, t->src, t->dst, &r->own,
                            r->err);
}

/* In place of a batch's rows those of the data. */
static int of_data(const rt_program *p, int space) {
    return p->spaces[space].first ? p->spaces[space].whole : space;
}

static gnnc_status find_edges(const RtCli *c, RtCliRows *r) {
    const rt_program *p = c->t->program;
    r->end[0] = of_data(p, p->spaces[r->space].src);
    r->end[1] = of_data(p, p->spaces[r->space].dst);
    r->edges = rt_link_batches_scored(c->t);
    return r->edges ? GNNC_OK : read_edges(c, r);
}

static gnnc_status name_rows(const RtCli *c, RtCliRows *r) {
    const RtBound *b = c->t->rt.bound;
    gnnc_status st = GNNC_OK;
    for (int k = 0; k < 2 && st == GNNC_OK; k++) {
        const RtTable *t = b->table[r->end[k]];
        if (k && r->end[1] == r->end[0])
            r->id[1] = r->id[0];
        else if (t)
            st = rt_row_names(r->pool, b->dir, t, &r->id[k], r->err);
    }
    return st;
}

/* Nodes, edges or graphs of the data; -1: the first dimension is something else. */
static int rows_of(const rt_program *p, int buf) {
    int s = p->bufs[buf].rank ? p->bufs[buf].space : -1;
    if (s >= 0) s = of_data(p, s);
    rt_space_kind kind = s < 0 ? RT_SP_DIM : p->spaces[s].kind;
    return kind == RT_SP_NODE || kind == RT_SP_EDGE || kind == RT_SP_GRAPH ? s : -1;
}

gnnc_status rt_cli_rows_find(const RtCli *c, RtCliRows *r, int buf, int64_t n_all) {
    const rt_program *p = c->t->program;
    int s = rows_of(p, buf);
    r->n = r->n_all = n_all;
    if (c->format == RT_FORMAT_NPY && !r->asked.pool) return GNNC_OK;
    if (s < 0)
        return rt_fail(r->err, GNNC_E_ARG,
                       "the model's result has no row for each node, edge or graph: --format=npy "
                       "without --ids and --nodes has all of it");
    r->space = r->end[0] = r->end[1] = s;
    gnnc_status st = p->spaces[s].kind == RT_SP_EDGE ? find_edges(c, r) : GNNC_OK;
    if (st == GNNC_OK) st = name_rows(c, r);
    return st == GNNC_OK && r->asked.pool ? take_asked(c, r) : st;
}

void rt_cli_rows_free(RtCliRows *r) {
    rt_dataset_close(r->again);
    r->again = NULL;
}
