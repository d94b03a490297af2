/* Sums over rows that processes share: one of each part, added by a binary tree over the parts:
 *
 *     parts      0   1   2   3   4   5   6   7
 *     process    0 0 0 0 0 0 | 1 1 1 1 1 1 1 1         two processes: 3 and 5 parts
 *                 \ /   |    |  |   \ /     ...        of the nodes of the tree that lie in its
 *                  +    |    |  |    +                 parts, each sends the uppermost: here
 *                                                      {0,1}, {2} and {3}, {4..7}
 *
 * A short sum goes to all, who add up the rest alike.  Of a long one each process gets a piece of
 * all nodes, adds that up and sends it to all: that is two messages and not one, and of n processes
 * the least that can be sent, 2 (n - 1) times the sum (Patarasuk and Yuan 2009).  A number is added
 * up in one way, whoever does it.
 *
 * With `reduce_fast` each process adds up its own parts, and a library's all-reduce does the rest:
 * the order of additions is then the library's, and depends on how many processes there are.
 *
 * On a device one launch adds up a process's own nodes, and one what came: each number is added up
 * by one thread, in the same order. */
#include "sum_parts.h"

#include <string.h>

#include "beside.h"
#include "runtime/device/device_rows.h"

enum { TREE_DEPTH = 8 /* of at most RT_SUM_CHUNKS parts, with the root */ };
/* What a message costs is worth some kilobytes. */
enum { LONG_BYTES = 8192 };

typedef struct {
    RtExec *x;
    const RtDist *o;
    const RtSum *s;
    int64_t count;                    /* numbers of a node, or of a piece of one */
    float *level[TREE_DEPTH];         /* a sum at each depth */
    int64_t first[RT_SUM_CHUNKS + 1]; /* by process: its uppermost nodes among all */
    gnnc_status st;
} Tree;

/* ---- nodes ---------------------------------------------------------------------------------- */
static void add(const Tree *w, float *to, const float *more) {
    for (int64_t i = 0; i < w->count; i++) to[i] += more[i];
}

/* Sums the parts [lo, hi), all of them this process's own, into `to`, as a binary tree: the order
 * of additions depends on part numbers only. */
static void sum_own(Tree *w, int64_t lo, int64_t hi, int depth, float *to) {
    if (hi - lo == 1) {
        if (w->st == GNNC_OK) w->st = w->s->of_part(w->x, w->s->user, lo, to);
        return;
    }
    int64_t mid = lo + (hi - lo) / 2;
    sum_own(w, lo, mid, depth + 1, to);
    sum_own(w, mid, hi, depth + 1, w->level[depth]);
    add(w, to, w->level[depth]);
}

static bool is_within(RtRange parts, int64_t lo, int64_t hi) {
    return lo >= parts.lo && hi <= parts.hi;
}

/* The uppermost nodes of [lo, hi) that lie in `parts`: how many; with `to` they are own, and made
 * there, one behind the other. */
static int64_t uppermost(Tree *w, RtRange parts, int64_t lo, int64_t hi, int depth, float *to) {
    if (hi <= parts.lo || lo >= parts.hi) return 0;
    if (is_within(parts, lo, hi)) {
        if (to) sum_own(w, lo, hi, depth, to);
        return 1;
    }
    int64_t mid = lo + (hi - lo) / 2, n = uppermost(w, parts, lo, mid, depth + 1, to);
    return n + uppermost(w, parts, mid, hi, depth + 1, to ? to + n * w->count : NULL);
}

/* The sum over the parts [lo, hi), made of the sums that processes have brought, from *next on, in
 * the same tree as sum_own() uses. */
static const float *sum_all(Tree *w, int64_t lo, int64_t hi, int depth, const float **next) {
    for (int r = 0; r < w->o->n; r++) {
        if (!is_within(rt_dist_parts(w->o, r), lo, hi)) continue;
        const float *own = *next;
        *next += w->count;
        return own;
    }
    int64_t mid = lo + (hi - lo) / 2;
    float *to = w->level[depth];
    const float *left = sum_all(w, lo, mid, depth + 1, next);
    memcpy(to, left, (size_t)w->count * sizeof *to);
    add(w, to, sum_all(w, mid, hi, depth + 1, next));
    return to;
}

/* Numbers the nodes of the tree of sums that each process has: those of process r begin at
 * first[r]. */
static void number_nodes(Tree *w) {
    const RtDist *o = w->o;
    for (int r = 0; r < o->n; r++)
        w->first[r + 1] = w->first[r] + uppermost(w, rt_dist_parts(o, r), 0, o->n_parts, 0, NULL);
}

/* ---- on a device ------------------------------------------------------------------------------
 */
/* Writes the order of additions of the parts [lo, hi), whose sums are numbered from `own` on. */
static void write_parts(RtTreeSum *t, int64_t own, int64_t lo, int64_t hi) {
    if (hi - lo == 1) {
        t->code[t->n_codes++] = (int8_t)(lo - own);
        return;
    }
    int64_t mid = lo + (hi - lo) / 2;
    write_parts(t, own, lo, mid);
    write_parts(t, own, mid, hi);
    t->code[t->n_codes++] = RT_TREE_ADD;
}

/* .. of the uppermost nodes of [lo, hi) that lie in `parts`, each of which is put by itself. */
static void write_uppermost(RtTreeSum *t, RtRange parts, int64_t lo, int64_t hi) {
    if (hi <= parts.lo || lo >= parts.hi) return;
    if (is_within(parts, lo, hi)) {
        write_parts(t, parts.lo, lo, hi);
        t->code[t->n_codes++] = RT_TREE_PUT;
        return;
    }
    int64_t mid = lo + (hi - lo) / 2;
    write_uppermost(t, parts, lo, mid);
    write_uppermost(t, parts, mid, hi);
}

/* .. of all nodes, in the tree of sum_all(). */
static void write_all(const Tree *w, RtTreeSum *t, int64_t lo, int64_t hi, int8_t *next) {
    for (int r = 0; r < w->o->n; r++) {
        if (!is_within(rt_dist_parts(w->o, r), lo, hi)) continue;
        t->code[t->n_codes++] = (*next)++;
        return;
    }
    int64_t mid = lo + (hi - lo) / 2;
    write_all(w, t, lo, mid, next);
    write_all(w, t, mid, hi, next);
    t->code[t->n_codes++] = RT_TREE_ADD;
}

/* Numbers from one part's sum to the next, there: libraries choose by the alignment of what they
 * write, which must not depend on how many parts of the process come before. */
static int64_t part_stride(const Tree *w) {
    enum { ALIGN = 64 };
    return w->s->chunks ? w->s->count : (w->s->count + ALIGN - 1) / ALIGN * ALIGN;
}

/* Adds up the process's own nodes there, or, as one, all of its parts; parts: room for their sums,
 * if they are not of chunks. */
static gnnc_status own_nodes_there(Tree *w, float *parts, float *to, bool as_one) {
    const RtRange own = rt_dist_parts(w->o, w->o->rank);
    const RtSum *s = w->s;
    RtTreeSum t = {.n = s->count, .stride = part_stride(w)};
    gnnc_status st = GNNC_OK;
    for (int64_t p = own.lo; p < own.hi && st == GNNC_OK; p++) {
        RtRange chunks = rt_dist_part_chunks(w->o, p);
        t.first[p - own.lo] = (int16_t)(s->chunks ? chunks.lo : p - own.lo);
        t.first[p - own.lo + 1] = (int16_t)(s->chunks ? chunks.hi : p - own.lo + 1);
        if (!s->chunks) st = s->of_part(w->x, s->user, p, parts + (p - own.lo) * t.stride);
    }
    if (as_one)
        write_uppermost(&t, own, own.lo, own.hi);
    else
        write_uppermost(&t, own, 0, w->o->n_parts);
    return st == GNNC_OK ? rt_device_rows_sum(w->x, &t, to, s->chunks ? s->chunks : parts) : st;
}

/* Adds up all nodes there. */
static gnnc_status all_nodes_there(const Tree *w, const float *nodes, float *to) {
    RtTreeSum t = {.n = w->count, .stride = w->count};
    int8_t next = 0;
    write_all(w, &t, 0, w->o->n_parts, &next);
    t.code[t.n_codes++] = RT_TREE_PUT;
    for (int i = 0; i <= next; i++) t.first[i] = (int16_t)i;
    return rt_device_rows_sum(w->x, &t, to, nodes);
}

/* ---- either --------------------------------------------------------------------------------- */
/* Room for numbers that is needed beside the nodes. */
static int64_t more_room(const Tree *w) {
    RtRange own = rt_dist_parts(w->o, w->o->rank);
    if (!w->x->rt->device) return TREE_DEPTH * w->count;
    return w->s->chunks ? 0 : (own.hi - own.lo) * part_stride(w);
}

/* The process's own nodes, to `to`, or, as one, the sum of its parts; room: more_room(). */
static void make_own(Tree *w, float *room, float *to, bool as_one) {
    RtRange own = rt_dist_parts(w->o, w->o->rank);
    if (w->x->rt->device) {
        w->st = own_nodes_there(w, room, to, as_one);
        return;
    }
    for (int i = 0; i < TREE_DEPTH; i++) w->level[i] = room + i * w->count;
    if (as_one)
        sum_own(w, own.lo, own.hi, 0, to);
    else
        uppermost(w, own, 0, w->o->n_parts, 0, to);
}

/* The sum of all nodes. */
static void combine(Tree *w, const float *nodes, float *to) {
    if (w->x->rt->device)
        w->st = all_nodes_there(w, nodes, to);
    else
        memcpy(to, sum_all(w, 0, w->o->n_parts, 0, &nodes), (size_t)w->count * sizeof *to);
}

/* ---- between processes ----------------------------------------------------------------------- */
static bool in_pieces(const RtDist *o, int64_t count) {
    return o->n > 2 && count * (int64_t)sizeof(float) >= LONG_BYTES;
}

/* The numbers that process r adds up. */
static RtRange piece_of(const RtDist *o, int64_t count, int r) {
    return (RtRange){count * r / o->n, count * (r + 1) / o->n};
}

/* The way of short sums: every process gets all partial sums (nodes of the tree) and adds them
 * up itself. */
static void all_gather_nodes(Tree *w, float *nodes, float *to) {
    const RtDist *o = w->o;
    size_t node = (size_t)w->count * sizeof(float);
    const int64_t *first = w->first;
    int64_t own = first[o->rank];
    RtMessages m;
    for (int r = 0; r < o->n; r++)
        rt_messages_put(&m, r, nodes + own * w->count, (size_t)(first[o->rank + 1] - own) * node,
                        nodes + first[r] * w->count, (size_t)(first[r + 1] - first[r]) * node);
    w->st = rt_dist_exchange(w->x, "sums over rows", &m);
    if (w->st == GNNC_OK) combine(w, nodes, to);
}

/* Cuts this process's sums into the pieces that each process adds up; the pieces for one process
 * lie side by side. */
static void cut_nodes(const Tree *w, const float *nodes, float *cut) {
    for (int r = 0; r < w->o->n; r++) {
        RtRange piece = piece_of(w->o, w->count, r);
        for (int64_t k = w->first[w->o->rank]; k < w->first[w->o->rank + 1]; k++) {
            rt_copy(w->x, cut, nodes + k * w->count + piece.lo,
                    (size_t)(piece.hi - piece.lo) * sizeof *cut);
            cut += piece.hi - piece.lo;
        }
    }
}

/* The way of long sums: each process gets its slice of all partial sums (nodes of the tree),
 * adds it up, and sends the result to all. come: memory for that slice of all nodes; cut: the
 * own nodes, slice by slice. */
static void reduce_scatter_nodes(Tree *w, float *nodes, float *cut, float *come, float *to) {
    const RtDist *o = w->o;
    const int64_t *first = w->first;
    int64_t mine = first[o->rank + 1] - first[o->rank], count = w->count;
    RtRange own = piece_of(o, count, o->rank);
    int64_t n = own.hi - own.lo;
    RtMessages m;
    cut_nodes(w, nodes, cut);
    for (int r = 0; r < o->n; r++) {
        RtRange of = piece_of(o, count, r);
        rt_messages_put(&m, r, cut + mine * of.lo, (size_t)(mine * (of.hi - of.lo)) * sizeof *cut,
                        come + first[r] * n, (size_t)((first[r + 1] - first[r]) * n) * sizeof *cut);
    }
    w->st = rt_dist_exchange(w->x, "sums over rows", &m);
    if (w->st != GNNC_OK) return;
    rt_copy(w->x, come + first[o->rank] * n, cut + mine * own.lo, (size_t)(mine * n) * sizeof *cut);
    w->count = n;
    combine(w, come, to + own.lo);
    if (w->st != GNNC_OK) return;
    for (int r = 0; r < o->n; r++) {
        RtRange of = piece_of(o, count, r);
        rt_messages_put(&m, r, to + own.lo, (size_t)n * sizeof *to, to + of.lo,
                        (size_t)(of.hi - of.lo) * sizeof *to);
    }
    w->st = rt_dist_exchange(w->x, "sums over rows", &m);
}

/* The way of a library: own parts here, what they come to by the host's all_reduce, or the
 * devices'. */
static gnnc_status reduce_by_library(Tree *w, float *room, float *to) {
    RtExec *x = w->x;
    const RtDist *o = w->o;
    int64_t n_bytes, messages;
    make_own(w, room, to, true);
    if (w->st != GNNC_OK) return w->st;
    rt_sum_parts_sent(o, w->count, &n_bytes, &messages);
    x->rt->count.sent_bytes += n_bytes;
    x->rt->count.messages += messages;
    rt_beside_end(x); /* one after the other */
    w->st = o->failed;
    if (w->st == GNNC_OK)
        w->st = x->rt->device ? rt_device_rows_reduce(x, to, w->count)
                              : o->processes->all_reduce(o->processes->user, to, (size_t)w->count);
    return w->st == GNNC_OK ? GNNC_OK : rt_dist_fail(x, "sums over rows", w->st);
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* Memory for so many numbers that stays from one sum to the next; NULL: there is none. */
static float *reserve(const Tree *w, int64_t numbers) {
    RtDist *o = w->x->rt->dist;
    size_t want = (size_t)numbers * sizeof(float);
    if (want <= o->sums_bytes) return o->sums;
    rt_dist_drop(w->x, o->sums);
    o->sums_bytes = 0;
    o->sums = rt_dist_memory(w->x, want);
    if (o->sums) o->sums_bytes = want;
    return o->sums;
}

/* Adds up a value of all parts, in the order of one binary tree whoever owns which part: an all-
 * reduce with the same bits for any number of processes, unless o->fast is set. to [s->count]. */
gnnc_status rt_sum_parts(RtExec *x, const RtSum *s, float *to) {
    const RtDist *o = x->rt->dist;
    Tree w = {.x = x, .o = o, .s = s, .count = s->count};
    number_nodes(&w);
    bool pieces = in_pieces(o, s->count);
    int64_t nodes = w.first[o->n], mine = w.first[o->rank + 1] - w.first[o->rank];
    int64_t more = pieces ? mine * s->count + nodes * (s->count / o->n + 1) : 0;
    float *room = reserve(&w, more_room(&w) + nodes * s->count + more);
    if (!room) return rt_fail_nomem(&x->rt->err, "sums over rows");
    float *at = room + more_room(&w), *cut = at + nodes * s->count;
    if (o->fast && o->n > 1) return reduce_by_library(&w, room, to);
    make_own(&w, room, o->n == 1 ? to : at + w.first[o->rank] * s->count, false);
    if (w.st != GNNC_OK || o->n == 1) return w.st;
    if (pieces)
        reduce_scatter_nodes(&w, at, cut, cut + mine * s->count, to);
    else
        all_gather_nodes(&w, at, to);
    return w.st;
}

/* How many bytes and messages this process sends for a sum of `count` numbers over all processes.
 * It sends a sum for each of the largest subtrees that are its own (`mine`). A large sum goes in
 * pieces: each process adds up one, and sends the result to the others. What a library sends is its
 * own: it counts as the least, sent in pieces. */
void rt_sum_parts_sent(const RtDist *o, int64_t count, int64_t *n_bytes, int64_t *messages) {
    Tree w = {.o = o};
    int64_t mine = uppermost(&w, rt_dist_parts(o, o->rank), 0, o->n_parts, 0, NULL);
    RtRange own = piece_of(o, count, o->rank);
    int64_t n = own.hi - own.lo, others = o->n - 1;
    bool pieces = o->fast || in_pieces(o, count);
    if (o->fast) mine = 1;
    int64_t numbers = pieces ? mine * (count - n) + n * others : mine * count * others;
    *n_bytes = numbers * (int64_t)sizeof(float);
    *messages = count > 0 ? (pieces ? 2 : 1) * others : 0;
}
