/* The helper is asked in lines of JSON, {"file": .., "columns": [..], "list": ..}, and answers each
 * with a stream; where it cannot, with what arrow_ipc.c knows as its words.  Columns null: which
 * there are; or, with a list, how many elements the lists of that column have at most.  It casts
 * columns to the few types that are read there; lists of whole numbers where they are asked for. */
#include "parquet.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Modules are not those of the folder that gnnc runs in, which may be the one with the data. */
static const char script[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "try:\n"
    "    import json, struct, pyarrow as pa, pyarrow.parquet as pq\n"
    "except ImportError:\n"
    "    sys.exit(3)\n"
    "out, types = sys.stdout.buffer, pa.types\n"
    "out.write(b'ready')\n"
    "out.flush()\n"
    "def plain(t):\n"
    "    if types.is_dictionary(t): t = t.value_type\n"
    "    if types.is_integer(t): return 'integer', pa.int64()\n"
    "    if types.is_boolean(t): return 'boolean', pa.int64()\n"
    "    if types.is_floating(t) or types.is_decimal(t): return 'real', pa.float64()\n"
    "    if types.is_timestamp(t) or types.is_date(t): return 'time', pa.timestamp('us')\n"
    "    if types.is_string(t) or types.is_large_string(t): return 'text', pa.string()\n"
    "    return 'blob', pa.string()\n"
    "def cast(c, t, kind):\n"
    "    if kind == 'blob': return pa.nulls(len(c), t)\n"
    "    if types.is_dictionary(c.type): c = c.dictionary_decode()\n"
    "    return c.cast(t, safe=kind != 'time')\n"
    "def stream(schema, batches):\n"
    "    w = pa.ipc.new_stream(out, schema)\n" /* the end is written where there was no error */
    "    for b in batches: w.write_batch(b)\n"
    "    w.close()\n"
    "def typed(has, column, list):\n"
    "    t = has.field(column).type\n"
    "    if column != list: return plain(t)\n"
    "    lists = types.is_list(t) or types.is_large_list(t) or types.is_fixed_size_list(t)\n"
    "    if not lists or not types.is_integer(t.value_type):\n"
    "        raise TypeError('column ' + column + ' is ' + str(t) + ', no list of whole "
    "numbers')\n"
    "    return 'list', pa.list_(pa.int64())\n"
    "def items(f, column):\n"
    "    typed(f.schema_arrow, column, column)\n"
    "    m = f.metadata\n"
    "    at = [i for i in range(m.num_columns) if m.schema.column(i).path.split('.')[0] == "
    "column]\n"
    "    return sum(m.row_group(g).column(at[0]).num_values for g in range(m.num_row_groups))\n"
    "def answer(file, columns, list):\n"
    "    f = pq.ParquetFile(file)\n"
    "    has = f.schema_arrow\n"
    "    if columns is None and list is not None:\n"
    "        b = pa.record_batch([pa.array([items(f, list)], pa.int64())], names=['items'])\n"
    "        return stream(b.schema, [b])\n"
    "    if columns is None:\n"
    "        rows = [pa.array(has.names, pa.string()), pa.array([plain(t)[0] for t in has.types], "
    "pa.string()),\n"
    "                pa.array([f.metadata.num_rows] * len(has.names), pa.int64())]\n"
    "        b = pa.record_batch(rows, names=['name', 'kind', 'rows'])\n"
    "        return stream(b.schema, [b])\n"
    "    of = {n: typed(has, n, list) for n in columns}\n"
    "    s = pa.schema([(n, of[n][1]) for n in columns])\n"
    "    stream(s, (pa.record_batch([cast(b.column(n), of[n][1], of[n][0]) for n in columns], "
    "schema=s)\n"
    "               for b in f.iter_batches(batch_size=65536, columns=columns)))\n"
    "for line in sys.stdin.buffer:\n"
    "    try:\n"
    "        q = json.loads(line)\n"
    "        answer(q['file'], q['columns'], q['list'])\n"
    "    except Exception as e:\n"
    "        text = (q['file'] + ': ' + ' '.join(str(e).split())).encode()[:400]\n"
    "        out.write(struct.pack('<II', 1, len(text)) + text)\n"
    "    out.flush()\n";

/* ---- the helper ----------------------------------------------------------------------------- */
/* Reads n bytes of what the helper writes. False: it has ended. */
static bool read_all(void *user, void *to, size_t n) {
    const Parquet *p = user;
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(p->fd, (char *)to + at, n - at, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += (size_t)got;
    }
    return true;
}

/* Sends n bytes to the helper. False: it is gone. */
static bool send_all(const Parquet *p, const char *s, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t put = send(p->fd, s + at, n - at, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        at += (size_t)put;
    }
    return true;
}

/* Starts python3 with the script that reads Parquet files, joined by a pair of sockets. 0, or
 * the errno. */
static int start(Parquet *p) {
    char *const argv[] = {"python3", "-c", (char *)(uintptr_t)script, NULL};
    posix_spawn_file_actions_t files;
    int ends[2], rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    if (rc) return rc;
    p->fd = ends[0];
    rc = posix_spawn_file_actions_init(&files);
    if (!rc) {
        posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        rc = posix_spawnp(&p->helper, "python3", &files, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    if (rc) p->helper = 0;
    close(ends[1]);
    return rc;
}

/* Waits until the helper ends and returns its exit status; 3: python3 has no pyarrow. */
static int wait_for(Parquet *p) {
    int status = 0;
    while (p->helper && waitpid(p->helper, &status, 0) < 0 && errno == EINTR) continue;
    p->helper = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Starts the helper and waits until it is ready. */
gnnc_status parquet_open(Parquet *p, RtError *err) {
    char ready[5];
    *p = (Parquet){.fd = -1};
    int rc = start(p);
    if (rc)
        return rt_fail(err, rc == ENOENT ? GNNC_E_MISSING : GNNC_E_IO,
                       "Parquet files are read by pyarrow, and python3 cannot be started: %s",
                       strerror(rc));
    if (read_all(p, ready, sizeof ready)) return GNNC_OK;
    if (wait_for(p) == 3)
        return rt_fail(err, GNNC_E_MISSING,
                       "Parquet files are read by pyarrow, which python3 does not have: python3 -m "
                       "pip install pyarrow");
    return rt_fail(err, GNNC_E_IO,
                   "Parquet files are read by pyarrow, which python3 did not start");
}

/* Closes the helper's input, at which it ends, and waits for it. */
void parquet_close(Parquet *p) {
    parquet_end(p);
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    wait_for(p);
}

/* Asks the helper for n columns of a file, of which `list` has lists, NULL: none; t NULL: for a
 * description of its columns, or of the list. */
static gnnc_status ask(Parquet *p, const char *file, const RtSourceTable *t, const int *column,
                       int n, const char *list, RtError *err) {
    RtPool pool;
    rt_pool_init(&pool, NULL);
    RtText q = {.pool = &pool};
    bool ok = rt_text_printf(&q, "{\"file\": ") && rt_text_json_string(&q, file) &&
              rt_text_printf(&q, ", \"columns\": %s", t ? "[" : "null");
    for (int i = 0; t && i < n && ok; i++)
        ok = rt_text_printf(&q, i ? ", " : "") &&
             rt_text_json_string(&q, t->columns[column[i]].name);
    ok = ok && rt_text_printf(&q, "%s, \"list\": ", t ? "]" : "");
    ok = ok && (list ? rt_text_json_string(&q, list) : rt_text_printf(&q, "null"));
    ok = ok && rt_text_printf(&q, "}\n");
    gnnc_status st = !ok ? rt_fail_nomem(err, file)
                     : send_all(p, q.s, q.n)
                         ? GNNC_OK
                         : rt_fail(err, GNNC_E_IO, "%s: what reads Parquet is gone", file);
    rt_pool_free(&pool);
    return st;
}

/* ---- files -------- */
/* The declared type for the helper's word; a blob for other words. */
static rt_declared declared_of(const char *kind) {
    static const struct {
        const char *kind;
        rt_declared is;
    } known[] = {{"integer", RT_DECLARED_INTEGER},
                 {"boolean", RT_DECLARED_BOOLEAN},
                 {"real", RT_DECLARED_REAL},
                 {"time", RT_DECLARED_TIME},
                 {"text", RT_DECLARED_TEXT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].kind, kind) == 0) return known[i].is;
    return RT_DECLARED_BLOB;
}

enum { MOST_COLUMNS = 1 << 16 };

/* Reads the helper's description of a file into t: rows of a column's name, its kind and the
 * number of rows. */
static gnnc_status take_columns(ArrowStream *s, RtPool *pool, const char *file, RtSourceTable *t,
                                RtError *err) {
    RtSourceColumn *list = NULL;
    int n = 0, room = 0;
    for (bool more = true;; n++) {
        RtDatum cell[3];
        gnnc_status st = arrow_next(s, cell, &more, err);
        if (st != GNNC_OK) return st;
        if (!more) break;
        bool good = cell[0].type == RT_DATUM_TEXT && cell[1].type == RT_DATUM_TEXT &&
                    cell[2].type == RT_DATUM_INTEGER && n < MOST_COLUMNS;
        if (!good) return rt_fail(err, GNNC_E_FORMAT, "%s: columns that are none", file);
        if (n == room) {
            RtSourceColumn *v = RT_NEWN(pool, RtSourceColumn, 2 * room + 16);
            if (!v) return rt_fail_nomem(err, file);
            if (n) memcpy(v, list, (size_t)n * sizeof *v);
            list = v;
            room = 2 * room + 16;
        }
        list[n] = (RtSourceColumn){.declared = declared_of(cell[1].s)};
        if (!(list[n].name = rt_pool_strndup(pool, cell[0].s, cell[0].n)))
            return rt_fail_nomem(err, file);
        t->n_rows = cell[2].i;
    }
    if (!rt_source_columns(pool, t, n)) return rt_fail_nomem(err, file);
    for (int i = 0; i < n; i++) {
        t->columns[i].name = list[i].name;
        t->columns[i].declared = list[i].declared;
    }
    return GNNC_OK;
}

/* Reads the names and types of a file's columns and the number of its rows into t. */
gnnc_status parquet_describe(Parquet *p, RtPool *pool, const char *file, RtSourceTable *t,
                             RtError *err) {
    ArrowStream s;
    gnnc_status st = ask(p, file, NULL, NULL, 0, NULL, err);
    if (st != GNNC_OK) return st;
    st = arrow_begin(&s, &pool->from, read_all, p, 3, err);
    if (st == GNNC_OK && s.type[0] != ARROW_UTF8)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: columns that are none", file);
    if (st == GNNC_OK) st = take_columns(&s, pool, file, t, err);
    arrow_end(&s);
    return st;
}

gnnc_status parquet_count_items(Parquet *p, const char *file, const char *list, int64_t *n,
                                RtError *err) {
    ArrowStream s;
    RtDatum cell[1];
    bool more = false;
    gnnc_status st = ask(p, file, NULL, NULL, 0, list, err);
    if (st != GNNC_OK) return st;
    st = arrow_begin(&s, NULL, read_all, p, 1, err);
    if (st == GNNC_OK) st = arrow_next(&s, cell, &more, err);
    bool counted = more && cell[0].type == RT_DATUM_INTEGER && cell[0].i >= 0;
    if (st == GNNC_OK && !counted)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: elements that are not counted", file);
    if (st == GNNC_OK) *n = cell[0].i;
    if (st == GNNC_OK) st = arrow_next(&s, cell, &more, err); /* to the stream's end */
    if (st == GNNC_OK && more)
        st = rt_fail(err, GNNC_E_FORMAT, "%s: elements that are counted twice", file);
    arrow_end(&s);
    return st;
}

/* Starts reading n columns of the table: a helper process sends them as an Arrow stream. */
gnnc_status parquet_begin(Parquet *p, const char *file, const RtSourceTable *t, const int *column,
                          int n, const char *list, RtError *err) {
    gnnc_status st = ask(p, file, t, column, n, list, err);
    if (st != GNNC_OK) return st;
    p->reads = true;
    return arrow_begin(&p->rows, NULL, read_all, p, n, err);
}

gnnc_status parquet_next(Parquet *p, RtDatum *cell, bool *more, RtError *err) {
    return arrow_next(&p->rows, cell, more, err);
}

void parquet_end(Parquet *p) {
    if (p->reads) arrow_end(&p->rows);
    p->reads = false;
}
