/* One walk over everything that is kept, in one order, serves both ways: it tells of each array
 * where its address goes, how long it is and what its values may be.  All of it is checked before
 * anything indexes with it, as a file may have been made by anybody. */
#include "index_file.h"

#include <stdatomic.h>
#include <string.h>

#include "runtime/trainer/init.h"
#include "runtime/data/cache.h"

enum { N_FACTS = 3 }; /* arrays of a table in ends.kept */
enum { READY, N_SRC, N_DST, N_EDGES, ID_BOUND, NESTED, N_OF_SPACE };

/* ---- what a program has ------------------------------------------------------------ */
static uint64_t mix(uint64_t h, int64_t word) {
    h = (h ^ (uint64_t)word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static uint64_t mix_all(uint64_t h, const int64_t *word, size_t n) {
    for (size_t i = 0; i < n; i++) h = mix(h, word[i]);
    return h;
}
#define MIX(h, ...)                                                                                \
    mix_all(h, (int64_t[]){__VA_ARGS__}, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

/* Two programs with the same relations, maps and buffers of maps have one file. */
static uint64_t hash_program(const RtExec *x) {
    const rt_program *p = x->program;
    uint64_t h =
        MIX(rt_hash_text("index"), RT_PROGRAM_VERSION, RT_CHUNKS, p->n_spaces, p->n_maps,
            p->sampling.batch > 0, p->sampling.train_links, p->sampling.edges, p->by_parts);
    for (int s = 0; s < p->n_spaces; s++) {
        const rt_space *sp = &p->spaces[s];
        const RtTable *t = x->rt->bound->table[s];
        h = MIX(h, sp->kind, sp->rel, sp->src, sp->dst, sp->base[0], sp->base[1], sp->first,
                sp->of_batch, sp->sampled, t ? (int64_t)rt_hash_text(t->name) : 0);
    }
    for (int i = 0; i < p->n_maps; i++) {
        const rt_map *m = &p->maps[i];
        h = MIX(h, m->kind, m->from, m->to, m->which, m->idx_buf, m->ptr_buf, m->perm_buf);
    }
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *f = &p->bufs[b];
        if (f->kind == RT_BUF_MAP || f->kind == RT_BUF_LOGICAL)
            h = MIX(h, b, f->kind, f->map, f->by, f->space);
    }
    for (int c = 0; c < p->n_columns; c++)
        if (p->spaces[p->columns[c].space].kind == RT_SP_EDGE)
            h = MIX(h, p->columns[c].space, rt_bind_is_used(p, c));
    return h;
}

static bool is_edge_map(const rt_program *p, int map) {
    return p->spaces[p->maps[map].from].kind == RT_SP_EDGE &&
           !p->spaces[p->maps[map].from].of_batch;
}

/* Neither a condition that is computed, nor places of edges that only their relations could tell.
 */
static bool is_kept(const rt_program *p) {
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].kind == RT_SP_EDGE && p->spaces[s].rel == RT_REL_WHERE) return false;
    for (int i = 0; i < p->n_maps; i++) {
        const rt_map *m = &p->maps[i];
        bool used = m->idx_buf >= 0 || m->ptr_buf >= 0 || m->perm_buf >= 0;
        if (!used || !is_edge_map(p, i)) continue;
        if (m->kind == RT_MAP_PAIR || m->kind == RT_MAP_CELL) return false;
        if (m->kind == RT_MAP_ORIG && m->perm_buf >= 0 && m->ptr_buf < 0) return false;
    }
    for (int b = 0; b < p->n_bufs; b++) {
        const rt_buf *f = &p->bufs[b];
        if (f->kind == RT_BUF_MAP && f->by >= 0 && is_edge_map(p, f->map) &&
            !rt_bind_by_of_edges(p, b))
            return false;
    }
    return true;
}

/* By space: does rt_bind_arrays build its relation from the data's edges alone, so that the file
 * can hold it? The relations of batches and of links are not among them. */
static bool *relations_built_at_load(const rt_program *p, RtPool *pool) {
    bool *built = RT_NEWN(pool, bool, p->n_spaces);
    for (bool more = built; more;) {
        more = false;
        for (int s = 0; s < p->n_spaces; s++) {
            const rt_space *sp = &p->spaces[s];
            bool next = sp->kind == RT_SP_EDGE && !sp->first && sp->rel < RT_REL_LINKS;
            for (int k = 0; k < 2; k++) next = next && (sp->base[k] < 0 || built[sp->base[k]]);
            more |= next && !built[s];
            built[s] = built[s] || next;
        }
    }
    return built;
}

/* Does the program read a column of the relation's edges? */
static bool has_columns(const rt_program *p, int space) {
    for (int c = 0; c < p->n_columns; c++)
        if (p->columns[c].space == space && rt_bind_is_used(p, c)) return true;
    return false;
}

/* Does the program read columns of the relation's edges, or of a relation's that is derived from
 * it? Their rows are found through this relation's `orig`. */
static bool is_read_by_edge_columns(const rt_program *p, int space) {
    bool any = has_columns(p, space);
    for (int s = 0; s < p->n_spaces && !any; s++)
        for (int k = 0; k < 2; k++)
            any |= p->spaces[s].kind == RT_SP_EDGE && p->spaces[s].base[k] == space &&
                   is_read_by_edge_columns(p, s);
    return any;
}

/* ---- the walk ------------------------------------------------------------------------ */
typedef struct {
    void **at;              /* where the program has the array's address */
    size_t element;         /* bytes of one: of i32 or i64 */
    int64_t n, least, most; /* of i32: values; of i64: they ascend from 0 to `most` */
    bool up_to;             /* .. or less */
} Slot;

/* One pass over all index arrays that the file may hold, which saves them or finds them. */
typedef struct Walk {
    RtExec *x;
    const bool *built; /* [n_spaces] relations_built_at_load() */
    bool whole; /* all arrays of relations: those that only loading builds are made of them */
    bool (*slot)(struct Walk *w, const Slot *s); /* note() or take_cached_array() */
    /* Keeping and finding: the arrays, and of each slot which; -1 = none. */
    RtPool *pool;
    RtCacheArray *array;
    int n_arrays;
    int64_t *which;
    int n_slots;
    Slot *slots; /* those found */
    atomic_int n_bad;
} Walk;

static bool visit_i32(Walk *w, const void *at, int64_t n, int64_t least, int64_t most) {
    return w->slot(w, &(Slot){(void **)(uintptr_t)at, sizeof(int32_t), n, least, most, false});
}

static bool visit_ptr(Walk *w, const void *at, int64_t n_rows, int64_t most, bool up_to) {
    return w->slot(w, &(Slot){(void **)(uintptr_t)at, sizeof(int64_t), n_rows + 1, 0, most, up_to});
}

/* Visits the arrays of a relation that batches or links are drawn along. */
static bool visit_drawn(Walk *w, RtRelation *r) {
    return visit_ptr(w, &r->ptr, r->n_dst, r->n_edges, false) &&
           visit_i32(w, &r->src, r->n_edges, 0, r->n_src - 1) &&
           visit_i32(w, &r->dst, r->n_edges, 0, r->n_dst - 1) &&
           visit_i32(w, &r->id, r->n_edges, 0, r->id_bound - 1);
}

static bool goes_back(const rt_program *p, int space) {
    const rt_space *s = &p->spaces[space];
    return p->sampling.batch && p->sampling.edges == RT_EDGES_BIDIRECTIONAL && s->src == s->dst;
}

/* Visits the arrays of a relation: all if batches or later relations read them, else only where its
 * edges' columns find their rows (orig), with the transpose where batches have edges back. */
static bool visit_relation(Walk *w, int space) {
    const rt_program *p = w->x->program;
    const RtBound *b = w->x->rt->bound;
    const rt_space *s = &p->spaces[space];
    RtRelation *r = &b->rel[space];
    bool drawn = w->whole || rt_bind_drawn_from(p, space), ok = !drawn || visit_drawn(w, r);
    for (int k = 0; k < 2 && (drawn || is_read_by_edge_columns(p, space)); k++) {
        bool base = s->rel == RT_REL_BASE;
        int64_t most = base              ? b->table[space]->count
                       : s->base[k] >= 0 ? b->rel[s->base[k]].n_edges
                                         : 0;
        if ((base && k == 0) || (!base && s->base[k] >= 0))
            ok = ok && visit_i32(w, &r->orig[k], r->n_edges, base ? 0 : -1, most - 1);
    }
    if (!drawn || !goes_back(p, space)) return ok;
    r->by_src.n_groups = r->n_src;
    r->by_src.n = r->n_edges;
    return ok && visit_ptr(w, &r->by_src.ptr, r->n_src, r->n_edges, false) &&
           visit_i32(w, &r->by_src.perm, r->n_edges, 0, r->n_edges - 1);
}

/* Visits the arrays of a map that follows edges: targets, bounds with their division among threads,
 * and order. An edge without an origin (-1) is in no segment. */
static bool visit_map(Walk *w, int map) {
    RtExec *x = w->x;
    const rt_map *m = &x->program->maps[map];
    int64_t n = rt_size(x->program, x->n, m->from), n_to = rt_map_rows(x->program, x->n, map);
    bool orig = m->kind == RT_MAP_ORIG;
    bool ok = m->idx_buf < 0 || visit_i32(w, &x->buf[m->idx_buf], n, orig ? -1 : 0, n_to - 1);
    if (m->ptr_buf >= 0) {
        ok = ok && visit_ptr(w, &x->buf[m->ptr_buf], n_to, n, orig) &&
             visit_ptr(w, &x->rt->bound->balance[map], RT_CHUNKS, n_to, false);
        if (ok) n = ((const int64_t *)x->buf[m->ptr_buf])[n_to];
    }
    return ok && (m->perm_buf < 0 ||
                  visit_i32(w, &x->buf[m->perm_buf], n, 0, rt_size(x->program, x->n, m->from) - 1));
}

/* Visits the index array of a buffer that lists logical ids, or a map in the order of another's
 * segments, if the file holds it. Other buffers have nothing in the file. */
static bool visit_buffer(Walk *w, int buf) {
    RtExec *x = w->x;
    const rt_buf *b = &x->program->bufs[buf];
    if (b->kind == RT_BUF_LOGICAL && w->built[b->space]) {
        const RtRelation *r = &x->rt->bound->rel[b->space];
        return visit_i32(w, &x->buf[buf], r->n_edges, 0, r->id_bound - 1);
    }
    if (b->kind != RT_BUF_MAP || b->by < 0) return true;
    const rt_map *m = &x->program->maps[b->map];
    if (!rt_bind_by_of_edges(x->program, buf) || !w->built[x->program->maps[b->by].from])
        return true;
    return visit_i32(w, &x->buf[buf], rt_size(x->program, x->n, m->from),
                     m->kind == RT_MAP_ORIG ? -1 : 0, rt_map_rows(x->program, x->n, b->map) - 1);
}

/* Visits all arrays, always in the same order; false: a visit said false, and the rest was left. */
static bool walk(Walk *w) {
    const rt_program *p = w->x->program;
    bool ok = true;
    for (int s = 0; s < p->n_spaces && ok; s++)
        if (w->built[s]) ok = visit_relation(w, s);
    for (int i = 0; i < p->n_maps && ok; i++)
        if (rt_bind_of_edges(p, i) && w->built[p->maps[i].from]) ok = visit_map(w, i);
    for (int b = 0; b < p->n_bufs && ok; b++) ok = visit_buffer(w, b);
    return ok;
}

/* Begins a pass over all arrays that the file may hold, in `pool`. A relation or map has at most 8
 * of them, a buffer one. */
static bool walk_new(Walk *w, RtExec *x, RtPool *pool) {
    const rt_program *p = x->program;
    size_t most = 8 * (size_t)(p->n_spaces + p->n_maps) + (size_t)p->n_bufs + 1;
    *w = (Walk){.x = x, .pool = pool, .built = relations_built_at_load(p, pool)};
    for (int s = 0; s < p->n_spaces && w->built; s++)
        w->whole |= p->spaces[s].kind == RT_SP_EDGE && !w->built[s];
    w->which = RT_NEWN(pool, int64_t, most);
    w->slots = RT_NEWN(pool, Slot, most);
    w->array = RT_NEWN(pool, RtCacheArray, most + 2);
    return w->built && w->which && w->slots && w->array;
}

/* Adds the array of slot s to those that are written, once even where several slots share it.
 * False: the slot has none, or shares one of another size. */
static bool note(Walk *w, const Slot *s) {
    const void *p = *s->at;
    int i = 2; /* behind the two that tell of the others */
    if (!p) return false;
    while (i < w->n_arrays && w->array[i].p != p) i++;
    if (i == w->n_arrays) w->array[w->n_arrays++] = (RtCacheArray){p, (uint64_t)s->n * s->element};
    w->which[w->n_slots++] = i;
    return w->array[i].n_bytes == (uint64_t)s->n * s->element;
}

/* Writes the sizes of a relation for the file: of one that is not built only that. */
static void encode_relation_sizes(const RtExec *x, int space, bool built, int64_t *to) {
    const RtRelation *r = &x->rt->bound->rel[space];
    if (!built) return;
    to[READY] = 1;
    to[N_SRC] = r->n_src;
    to[N_DST] = r->n_dst;
    to[N_EDGES] = r->n_edges;
    to[ID_BOUND] = r->id_bound;
    to[NESTED] = r->nested;
}

static const char *path_of(const RtIndexFile *f, RtPool *pool, uint64_t what) {
    return rt_pool_printf(pool, "%s/index-%016llx" RT_CACHE_END, f->data->dir,
                          (unsigned long long)what);
}

/* Has a relation positions of 64 bits? The file holds none: such edges are best sorted in the data,
 * which are mapped. */
static bool has_wide(const RtExec *x) {
    for (int s = 0; s < x->program->n_spaces; s++)
        if (x->rt->bound->rel[s].wide) return true;
    return false;
}

/* Writes the file of all arrays that the program has bound, in the data's directory. That it cannot
 * be written is no error. */
static void keep(RtIndexFile *f, RtExec *x) {
    const rt_program *p = x->program;
    RtPool pool;
    Walk w;
    if (!is_kept(p) || has_wide(x)) return;
    rt_pool_init(&pool, &x->rt->pool.from);
    int64_t *space = RT_NEWN(&pool, int64_t, N_OF_SPACE * p->n_spaces);
    uint64_t what = hash_program(x);
    const char *path = path_of(f, &pool, what);
    bool ok = space && path && walk_new(&w, x, &pool);
    for (int s = 0; s < p->n_spaces && ok; s++)
        if (w.built[s] && rt_bind_drawn_from(p, s) && goes_back(p, s))
            ok = rt_relation_group_src(&x->rt->pool, &x->rt->bound->rel[s], NULL) == GNNC_OK;
    if (ok) {
        w.slot = note;
        w.n_arrays = 2;
        for (int s = 0; s < p->n_spaces; s++)
            encode_relation_sizes(x, s, w.built[s], space + N_OF_SPACE * s);
    }
    if (ok && walk(&w)) {
        w.array[0] = (RtCacheArray){space, (uint64_t)p->n_spaces * N_OF_SPACE * sizeof *space};
        w.array[1] = (RtCacheArray){w.which, (uint64_t)w.n_slots * sizeof *w.which};
        rt_cache_write(&pool.from, path, &(RtCacheKey){&f->data->stamp, what}, x->rt->team, w.array,
                       w.n_arrays);
    }
    rt_pool_free(&pool);
}

/* Gives slot s its array of the file, checked before anything indexes with it: of the right size,
 * and bounds ascend from 0 to s->most (with up_to, to that or less). False: it is not so. array[1]
 * lists which array each slot has; arrays 0 and 1 themselves belong to no slot. */
static bool take_cached_array(Walk *w, const Slot *s) {
    const RtCacheArray *which = &w->array[1];
    if ((uint64_t)w->n_slots >= which->n_bytes / sizeof(int64_t)) return false;
    int64_t i = ((const int64_t *)which->p)[w->n_slots];
    if (i < 2 || i >= w->n_arrays) return false;
    if (s->n < 0 || w->array[i].n_bytes != (uint64_t)s->n * s->element) return false;
    *s->at = (void *)(uintptr_t)w->array[i].p;
    w->slots[w->n_slots++] = *s;
    if (s->element == sizeof(int32_t)) return true;
    const int64_t *p = w->array[i].p, last = p[s->n - 1];
    bool ok = p[0] == 0 && (last == s->most || (s->up_to && last < s->most));
    for (int64_t k = 1; k < s->n && ok; k++) ok = p[k] >= p[k - 1];
    return ok;
}

/* One comparison for both ends of the range: what is below is far above, too. */
static bool in_range(const int32_t *p, int64_t n, const Slot *s) {
    uint32_t least = (uint32_t)s->least, width = (uint32_t)(s->most - s->least);
    uint32_t bad = s->most < s->least && n > 0;
    for (int64_t i = 0; i < n; i++) bad |= (uint32_t)p[i] - least > width;
    return !bad;
}

/* A member's share of the check that all i32 arrays of the file are in range; n_bad counts pieces
 * that are not. */
static void check_values(void *arg, int member, int n_members) {
    enum { SOME = 1 << 18 };
    Walk *w = arg;
    int64_t place = 0;
    for (int i = 0; i < w->n_slots; i++) {
        const Slot *s = &w->slots[i];
        if (s->element != sizeof(int32_t)) continue;
        const int32_t *p = *s->at;
        for (int64_t at = 0; at < s->n; at += SOME) {
            if (place++ % n_members != member) continue;
            int64_t n = s->n - at < SOME ? s->n - at : SOME;
            if (!in_range(p + at, n, s)) atomic_fetch_add(&w->n_bad, 1);
        }
    }
}

/* Sets the sizes of a relation from the file; false if they contradict the data or the program.
 * Only the file knows how many edges a derived relation has. */
static bool decode_relation_sizes(RtExec *x, int space, bool built, const int64_t *from) {
    const rt_space *s = &x->program->spaces[space];
    RtBound *b = x->rt->bound;
    if (from[READY] != built) return false;
    if (!built) return true;
    bool base = s->rel == RT_REL_BASE;
    int64_t n = from[N_EDGES], bound = from[ID_BOUND], count = base ? b->table[space]->count : -1;
    if (from[N_SRC] != rt_size(x->program, x->n, s->src) || n < 0 || n > INT32_MAX || bound < 0 ||
        from[N_DST] != rt_size(x->program, x->n, s->dst) || bound > INT32_MAX ||
        (base && (n != count || bound != count)))
        return false;
    b->rel[space] = (RtRelation){.n_src = from[N_SRC],
                                 .n_dst = from[N_DST],
                                 .n_edges = n,
                                 .id_bound = bound,
                                 .nested = from[NESTED] != 0};
    x->n[s->sym] = n;
    return true;
}

/* Restores the index arrays of the file, and checks their ranges. */
static bool restore_all(Walk *w) {
    RtExec *x = w->x;
    const rt_program *p = x->program;
    const int64_t *space = w->array[0].p;
    if (w->n_arrays < 2 || w->array[0].n_bytes != sizeof *space * N_OF_SPACE * (size_t)p->n_spaces)
        return false;
    for (int s = 0; s < p->n_spaces; s++)
        if (!decode_relation_sizes(x, s, w->built[s], space + N_OF_SPACE * s)) return false;
    w->slot = take_cached_array;
    if (!walk(w)) return false;
    rt_team_run(x->rt->team, check_values, w);
    return atomic_load(&w->n_bad) == 0;
}

/* Undoes what restoring has set: arrays, relations, and the sizes, which become n again. */
static void forget(RtExec *x, const Walk *w, const int64_t *n) {
    const rt_program *p = x->program;
    for (int i = 0; i < w->n_slots; i++) *w->slots[i].at = NULL;
    for (int s = 0; s < p->n_spaces; s++)
        if (p->spaces[s].kind == RT_SP_EDGE) x->rt->bound->rel[s] = (RtRelation){0};
    memcpy(x->n, n, (size_t)p->n_syms * sizeof *n);
}

/* Reads the file, if there is one for these data and this program, and points x at its arrays.
 * False: there is none, or it is damaged; then x is as it was. */
static bool find_all(RtIndexFile *f, RtExec *x, RtPool *pool) {
    const rt_program *p = x->program;
    Walk w;
    uint64_t what = hash_program(x);
    const RtCacheKey of = {&f->data->stamp, what};
    const RtCacheArray *array;
    const char *path = path_of(f, pool, what);
    int64_t *n = RT_NEWN(pool, int64_t, p->n_syms);
    if (!path || !n || !walk_new(&w, x, pool)) return false;
    if (!rt_cache_read(&x->rt->pool, path, &of, f->map, x->rt->team, &array, &w.n_arrays))
        return false;
    if (p->n_syms) memcpy(n, x->n, (size_t)p->n_syms * sizeof *n);
    w.array = (RtCacheArray *)(uintptr_t)array; /* read alone */
    bool ok = restore_all(&w);
    if (!ok) forget(x, &w, n);
    for (int s = 0; s < p->n_spaces && ok; s++) x->rt->bound->ready[s] = w.built[s];
    return ok;
}

/* The ends of all edges, in the data and in the view of them that is bound. */
static gnnc_status need_ends(RtIndexFile *f, RtExec *x) {
    RtDataset *view = x->rt->bound->data;
    gnnc_status st = rt_dataset_read_ends(f->data, &x->rt->err);
    for (int i = 0; i < view->n_edges && st == GNNC_OK; i++) {
        view->edges[i].src = f->data->edges[i].src;
        view->edges[i].dst = f->data->edges[i].dst;
    }
    return st;
}

/* Finds the arrays in the file; if it has not got them, reads the ends of the edges, from which
 * they are then built. */
static gnnc_status find(RtIndexFile *f, RtExec *x, bool *found) {
    RtPool pool;
    rt_pool_init(&pool, &x->rt->pool.from);
    *found = is_kept(x->program) && find_all(f, x, &pool);
    rt_pool_free(&pool);
    return *found ? GNNC_OK : need_ends(f, x);
}

/* ---- facts of the ends ----------------------------------------------------------------- */
static size_t seen_bytes(const RtTable *t) {
    return rt_bind_seen_bytes((size_t)t->count * sizeof *t->src);
}

/* Which data the facts belong to: the data's stamp and the names of the edge tables whose ends are
 * read late. */
static RtCacheKey facts_of(const RtDataset *d) {
    uint64_t what = rt_hash_text("ends");
    for (int i = 0; i < d->n_edges; i++)
        if (d->edges[i].ends_file) what = mix(what, (int64_t)rt_hash_text(d->edges[i].name));
    return (RtCacheKey){&d->stamp, what};
}

/* How many edge tables have ends that are read only when they are needed. */
static int n_late(const RtDataset *d) {
    int n = 0;
    for (int i = 0; i < d->n_edges; i++) n += d->edges[i].ends_file != NULL;
    return n;
}

/* Takes what was kept of the edge tables whose ends are not read yet, of all or of none; facts [2
 * of each] get the samples. False: the file is of other tables. */
static bool take_facts(RtDataset *d, const RtCacheArray *a, int n, RtBytes *facts) {
    if (n != N_FACTS * n_late(d)) return false;
    for (int i = 0; i < d->n_edges; i++) {
        RtTable *t = &d->edges[i];
        if (!t->ends_file) continue;
        if (a[0].n_bytes != sizeof t->n_loops || a[1].n_bytes != seen_bytes(t) ||
            a[2].n_bytes != seen_bytes(t))
            return false;
        memcpy(&t->n_loops, a[0].p, sizeof t->n_loops);
        if (t->n_loops < 0 || t->n_loops > t->count) return false;
        for (int end = 0; end < 2; end++) facts[end] = (RtBytes){a[1 + end].p, a[1 + end].n_bytes};
        t->facts = facts;
        facts += 2;
        a += N_FACTS;
    }
    return true;
}

static void forget_facts(RtDataset *d) {
    for (int i = 0; i < d->n_edges; i++) d->edges[i].facts = NULL;
}

/* What is kept of an edge table beside its arrays: a[0] its number of self loops, a[1] and a[2]
 * samples of src and dst, which the data's fingerprint is taken of. False: no memory. */
static bool note_edge_facts(RtPool *pool, const RtTable *t, RtCacheArray *a) {
    int64_t *loops = RT_NEW(pool, int64_t);
    if (!loops) return false;
    for (int64_t e = 0; e < t->count; e++) *loops += t->src[e] == t->dst[e];
    a[0] = (RtCacheArray){loops, sizeof *loops};
    for (int end = 0; end < 2; end++) {
        uint8_t *seen = rt_pool_alloc(pool, seen_bytes(t), 1);
        if (!seen) return false;
        rt_bind_copy_samples(end ? t->dst : t->src, (size_t)t->count * sizeof *t->src, seen);
        a[1 + end] = (RtCacheArray){seen, seen_bytes(t)};
    }
    return true;
}

/* Keeps samples of edges that are not loaded yet, so that the data's fingerprint is that of
 * loaded edges and needs no load. */
static void write_edge_samples(const RtIndexFile *f, RtTeam *team, RtPool *pool, const char *path) {
    const RtDataset *d = f->data;
    RtCacheArray *a = RT_NEWN(pool, RtCacheArray, N_FACTS * n_late(d)), *to = a;
    const RtCacheKey of = facts_of(d);
    for (int i = 0; i < d->n_edges && to; i++) {
        if (!d->edges[i].ends_file) continue;
        if (!note_edge_facts(pool, &d->edges[i], to)) return;
        to += N_FACTS;
    }
    if (a) rt_cache_write(&pool->from, path, &of, team, a, N_FACTS * n_late(d));
}

/* Facts that are read, not mapped, are in the trainer's memory; that of the data holds no more. */
static gnnc_status find_facts(RtIndexFile *f, RtExec *x) {
    RtPool *pool = &x->rt->pool, scratch;
    const char *path = rt_pool_printf(pool, "%s/ends" RT_CACHE_END, f->data->dir);
    const RtCacheKey of = facts_of(f->data);
    const RtCacheArray *a;
    int n;
    RtBytes *facts = RT_NEWN(pool, RtBytes, 2 * n_late(f->data));
    if (!path || !facts) return rt_fail_nomem(&x->rt->err, "index arrays");
    if (rt_cache_read(pool, path, &of, false, x->rt->team, &a, &n) &&
        take_facts(f->data, a, n, facts))
        return GNNC_OK;
    forget_facts(f->data);
    gnnc_status st = rt_dataset_read_ends(f->data, &x->rt->err);
    if (st != GNNC_OK) return st;
    rt_pool_init(&scratch, &pool->from);
    write_edge_samples(f, x->rt->team, &scratch, path);
    rt_pool_free(&scratch);
    return GNNC_OK;
}

gnnc_status rt_index_file_open(RtExec *x, RtDataset *data, bool map, RtIndexFile **out) {
    *out = NULL;
    if (!n_late(data)) return GNNC_OK;
    RtIndexFile *f = RT_NEW(&x->rt->pool, RtIndexFile);
    if (!f) return rt_fail_nomem(&x->rt->err, "index arrays");
    *f = (RtIndexFile){find, keep, data, map};
    *out = f;
    return find_facts(f, x);
}
