#include "beside.h"

#include <string.h>

#include "runtime/bind/bind.h"
#include "runtime/device/device_rows.h"

/* ---- whose ---------------------------------------------------------------------------------- */
RtRange rt_dist_part_chunks(const RtDist *o, int64_t part) {
    return (RtRange){rt_dist_first_cut(o, part), rt_dist_first_cut(o, part + 1)};
}

RtRange rt_dist_part_rows(const RtExec *x, int space, int64_t part) {
    const RtDist *o = x->rt->dist;
    return (RtRange){o->chunk_bounds[space][rt_dist_first_cut(o, part)],
                     o->chunk_bounds[space][rt_dist_first_cut(o, part + 1)]};
}

/* ---- cuts ----------------------------------------------------------------------------------- */
/* Cuts the rows of each part of the table into equal pieces, RT_SUM_CHUNKS in all; to[] gets the
 * bounds. */
static void cut_table(const RtDist *o, const RtTable *t, int64_t *to) {
    for (int64_t p = 0; p < o->n_parts; p++) {
        int64_t from = rt_dist_first_cut(o, p), n = rt_dist_first_cut(o, p + 1) - from;
        int64_t lo = t->n_parts ? t->part_ptr[p] : 0,
                hi = t->n_parts ? t->part_ptr[p + 1] : t->count;
        for (int64_t c = 0; c < n; c++) to[from + c] = lo + rt_fraction(hi - lo, c, n);
    }
    to[RT_SUM_CHUNKS] = t->count;
}

/* The map whose targets own a space's rows: an edge's destination, an entry's row. */
static const rt_map *owner_of(const rt_program *p, int space) {
    for (int i = 0; i < p->n_maps; i++) {
        const rt_map *m = &p->maps[i];
        bool owns = m->kind == RT_MAP_DST || m->kind == RT_MAP_ROW;
        if (m->from == space && owns && m->ptr_buf >= 0) return m;
    }
    return NULL;
}

/* Finds where the rows of a space are cut into chunks and parts: of a table of the data as its file
 * says, of a space that is derived, such as edges, where the space of its owners is cut. */
static gnnc_status cut_space(RtExec *x, int space) {
    RtDist *o = x->rt->dist;
    const RtTable *t = x->rt->bound->table[space];
    rt_space_kind kind = x->program->spaces[space].kind;
    bool table = t && (kind == RT_SP_NODE || kind == RT_SP_GRAPH);
    const rt_map *m = table ? NULL : owner_of(x->program, space);
    const int64_t *ptr = m ? x->buf[m->ptr_buf] : NULL;
    gnnc_status st = ptr && !o->chunk_bounds[m->to] ? cut_space(x, m->to) : GNNC_OK;
    if (st != GNNC_OK || o->chunk_bounds[space] || (!table && (!ptr || !o->chunk_bounds[m->to])))
        return st;
    int64_t *cut = RT_NEWN(o->pool, int64_t, RT_SUM_CHUNKS + 1);
    if (!cut) return rt_fail_nomem(&x->rt->err, "parts of rows");
    if (table) cut_table(o, t, cut);
    for (int c = 0; c <= RT_SUM_CHUNKS && !table; c++) cut[c] = ptr[o->chunk_bounds[m->to][c]];
    o->chunk_bounds[space] = cut;
    return GNNC_OK;
}

/* Finds the cuts of a space, and gives them to the buffers that hold them. */
gnnc_status rt_dist_bind(RtExec *x, int space) {
    const rt_program *p = x->program;
    RtDist *o = x->rt->dist;
    gnnc_status st = o ? cut_space(x, space) : GNNC_OK;
    for (int b = 0; b < p->n_bufs && o && st == GNNC_OK; b++)
        if (p->bufs[b].kind == RT_BUF_CUTS && p->bufs[b].space == space)
            x->buf[b] = (void *)(uintptr_t)o->chunk_bounds[space]; /* kernels only read it */
    return st;
}

/* ---- life ----------------------------------------------------------------------------------- */
/* The number of parts into which the data were partitioned; 1: they were not. */
static int count_parts(const RtExec *x) {
    for (int s = 0; s < x->program->n_spaces; s++) {
        const RtTable *t = x->rt->bound->table[s];
        rt_space_kind kind = x->program->spaces[s].kind;
        if (t && (kind == RT_SP_NODE || kind == RT_SP_GRAPH)) return t->n_parts ? t->n_parts : 1;
    }
    return 1;
}

/* Checks that the data are in enough parts for the processes, and not in more than RT_SUM_CHUNKS.
 */
static gnnc_status check_parts(RtExec *x, const RtDist *o) {
    const char *dir = x->rt->bound->dir;
    if (o->n_parts > RT_SUM_CHUNKS)
        return rt_fail(&x->rt->err, GNNC_E_STATE,
                       "%s: the data are in %d parts: rows of %d at most can be shared", dir,
                       o->n_parts, RT_SUM_CHUNKS);
    if (o->n <= o->n_parts) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_STATE,
                   "%s: %d processes share rows of data in %d part%s: gnnc partition makes as many "
                   "parts, or more",
                   dir, o->n, o->n_parts, o->n_parts == 1 ? "" : "s");
}

gnnc_status rt_dist_open(RtExec *x, const gnnc_processes *p, bool fast, int64_t stale_halos) {
    RtPool *pool = &x->rt->pool;
    bool several = p && p->n > 1;
    if (stale_halos && !several)
        rt_message(x->rt, "stale halos: one process has all rows, the option changes nothing");
    if (!x->program->by_parts) return GNNC_OK;
    RtDist *o = RT_NEW(pool, RtDist);
    if (!o) return rt_fail_nomem(&x->rt->err, "parts of rows");
    *o = (RtDist){.n = several ? p->n : 1,
                  .rank = several ? p->rank : 0,
                  .processes = several ? p : NULL,
                  .pool = pool,
                  .fast = fast,
                  .stale_halos = several ? stale_halos : 0,
                  .fresh_step = -1,
                  .n_parts = count_parts(x)};
    if (several && !p->exchange)
        return rt_fail(&x->rt->err, GNNC_E_STATE, "%d processes share rows without 'exchange'",
                       o->n);
    if (o->stale_halos && x->program->recipe.sampled_boundary != 0)
        return rt_fail(&x->rt->err, GNNC_E_STATE,
                       "'stale_halos': the program was compiled with --sampled-boundary, and "
                       "receives other rows in each step");
    if (x->rt->device && x->program->recipe.sampled_boundary != 0)
        return rt_fail(&x->rt->err, GNNC_E_STATE,
                       "the program was compiled with --sampled-boundary, which a GPU cannot do");
    if (several && fast && !p->all_reduce)
        return rt_fail(&x->rt->err, GNNC_E_STATE,
                       "'reduce_fast': %d processes share rows without 'all_reduce'", o->n);
    if (x->program->recipe.sampled_boundary != 0 && o->n_parts == 1)
        rt_message(x->rt, "sampled boundary: the data are in one part, all of whose rows are read");
    o->chunk_bounds = RT_NEWN(pool, const int64_t *, x->program->n_spaces);
    o->halo = RT_NEWN(pool, struct RtHalo *, x->program->n_exchanges + 1);
    o->kept = RT_NEWN(pool, char *, x->program->n_exchanges + 1);
    if (!o->chunk_bounds || !o->halo || !o->kept)
        return rt_fail_nomem(&x->rt->err, "parts of rows");
    gnnc_status st = check_parts(x, o);
    if (st == GNNC_OK) x->rt->dist = o; /* else nothing is sent: there is no common view of parts */
    return st;
}

gnnc_status rt_dist_begin(RtExec *x, uint64_t seed, int64_t step) {
    RtDist *o = x->rt->dist;
    if (!o || !o->stale_halos) return rt_boundary_begin(x, seed, step);
    int64_t since = step - o->fresh_step;
    o->keeps = step >= 0;
    o->stale = o->keeps && o->fresh_step >= 0 && since > 0 && since <= o->stale_halos;
    if (o->keeps && !o->stale) o->fresh_step = step;
    return GNNC_OK;
}

void rt_dist_forget(RtExec *x) {
    if (x->rt->dist) x->rt->dist->fresh_step = -1;
}

/* Memory where steps run: the host's, or the device's. NULL: there is none (recorded). */
void *rt_dist_memory(RtExec *x, size_t n_bytes) {
    void *p = NULL;
    if (x->rt->device) return rt_device_rows_memory(x, n_bytes, &p) == GNNC_OK ? p : NULL;
    p = rt_pool_alloc(x->rt->dist->pool, n_bytes, 1);
    if (!p) rt_fail_nomem(&x->rt->err, "rows that processes exchange");
    return p;
}

void rt_dist_drop(RtExec *x, void *p) {
    if (x->rt->device)
        rt_device_rows_drop(x, p);
    else
        rt_pool_drop(x->rt->dist->pool, p);
}

/* Buffer number `which` for messages, at least n_bytes large; its content may be lost. NULL: out of
 * memory. */
char *rt_dist_buffer(RtExec *x, int which, size_t n_bytes) {
    RtDist *o = x->rt->dist;
    if (n_bytes <= o->buffer_bytes[which]) return o->buffer[which];
    if (x->rt->device && rt_device_rows_stay(x->rt->device))
        return rt_dist_memory(x, n_bytes); /* says that there is none, and the old one stays */
    rt_dist_drop(x, o->buffer[which]);
    o->buffer_bytes[which] = 0;
    o->buffer[which] = rt_dist_memory(x, n_bytes);
    if (o->buffer[which]) o->buffer_bytes[which] = n_bytes;
    return o->buffer[which];
}

int64_t rt_dist_count(RtExec *x, const RtMessages *m) {
    const RtDist *o = x->rt->dist;
    int64_t n_bytes = 0;
    for (int r = 0; r < o->n; r++) {
        if (r == o->rank) continue;
        n_bytes += (int64_t)m->n_out[r];
        x->rt->count.messages += m->n_out[r] > 0;
    }
    x->rt->count.sent_bytes += n_bytes;
    return n_bytes;
}

gnnc_status rt_dist_fail(RtExec *x, const char *what, gnnc_status st) {
    x->rt->dist->failed = st;
    return rt_fail(&x->rt->err, st, "%s of other processes did not come: %s", what,
                   gnnc_status_text(st));
}

void rt_dist_leave(RtExec *x, gnnc_status st) {
    RtDist *o = x->rt->dist;
    /* What a model asserts all processes compute: it fails in all, behind the same exchange. */
    if (!rt_dist_several(x) || st == GNNC_OK || st == GNNC_E_ASSERT || o->failed != GNNC_OK) return;
    o->failed = st;
    o->left = true;
}

gnnc_status rt_dist_check(RtExec *x) {
    const RtDist *o = x->rt->dist;
    if (!o || !o->left) return GNNC_OK;
    return rt_fail(&x->rt->err, o->failed,
                   "rank %d has failed in an earlier call, and is no longer in step with the other "
                   "processes: %s",
                   o->rank, gnnc_status_text(o->failed));
}

gnnc_status rt_dist_exchange(RtExec *x, const char *what, RtMessages *m) {
    RtDist *o = x->rt->dist;
    rt_dist_count(x, m);
    if (!x->rt->device) return rt_dist_exchange_uncounted(x, what, m);
    m->n_out[o->rank] = m->n_in[o->rank] = 0;
    rt_beside_end(x);
    gnnc_status st = o->failed;
    if (st == GNNC_OK) st = rt_device_rows_send(x, 0, m);
    if (st == GNNC_OK) st = rt_device_rows_arrive(x, 0, m);
    return st == GNNC_OK ? GNNC_OK : rt_dist_fail(x, what, st);
}

/* Exchanges messages with all other processes. After a failure it fails always, since processes are
 * no longer in step. */
gnnc_status rt_dist_exchange_uncounted(RtExec *x, const char *what, RtMessages *m) {
    const RtDist *o = x->rt->dist;
    m->n_out[o->rank] = m->n_in[o->rank] = 0;
    rt_beside_end(x); /* one after the other */
    gnnc_status st = o->failed;
    if (st == GNNC_OK)
        st = o->processes->exchange(o->processes->user, m->out, m->n_out, m->in, m->n_in);
    return st == GNNC_OK ? GNNC_OK : rt_dist_fail(x, what, st);
}

/* *heard gets the request (not 0) of the first process that has one; each process brings its own,
 * `asked`. */
gnnc_status rt_dist_first_request(RtExec *x, int asked, int *heard) {
    const RtDist *o = x->rt->dist;
    RtMessages m;
    int all[RT_SUM_CHUNKS] = {0};
    for (int r = 0; r < o->n; r++)
        rt_messages_put(&m, r, &asked, sizeof asked, &all[r], sizeof all[r]);
    gnnc_status st = rt_dist_exchange_uncounted(x, "what is asked", &m);
    all[o->rank] = asked;
    *heard = 0;
    for (int r = 0; r < o->n && !*heard; r++) *heard = all[r];
    return st;
}

/* Copies from a buffer of n_bytes only the rows that this process owns; by_chunks: the buffer has a
 * row for each chunk of a sum instead, and its own are copied. */
void rt_copy_own(RtExec *x, int space, bool by_chunks, void *to, const void *from, size_t n_bytes) {
    RtRange r = {0, 1};
    int64_t rows = 1;
    if (rt_dist_several(x)) {
        r = by_chunks ? rt_dist_chunks(x->rt->dist, x->rt->dist->rank)
                      : rt_dist_rows(x, space, x->rt->dist->rank);
        rows = by_chunks ? RT_SUM_CHUNKS : rt_size(x->program, x->n, space);
    }
    size_t row = rows > 0 ? n_bytes / (size_t)rows : 0, at = (size_t)r.lo * row;
    rt_copy(x, (char *)to + at, (const char *)from + at, (size_t)(r.hi - r.lo) * row);
}
