/* What calls_fuzz.c knows of the handles that it calls: a copy of every graph's rows, from which
 * another graph can be built at once, and an allocator that refuses now and then. */
#ifndef TESTS_FUZZ_CALLS_H
#define TESTS_FUZZ_CALLS_H

#include <gnnc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(x)                                                                                    \
    ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), __builtin_trap()))

/* ---- memory: bigger blocks than any of these graphs and models wants are refused ---------- */
enum { MOST_BYTES = 64 << 20 };
static atomic_long n_live, n_refused, refuse_in = -1; /* of the next ones; -1: none is refused */

static void *give(void *user, size_t n) {
    (void)user;
    bool refuse = n > MOST_BYTES;
    if (refuse_in >= 0) refuse |= atomic_fetch_sub(&refuse_in, 1) == 0;
    void *p = refuse ? NULL : calloc(1, n ? n : 1);
    n_refused += !p;
    n_live += p != NULL;
    return p;
}
static void take_back(void *user, void *p) {
    (void)user;
    n_live -= p != NULL;
    free(p);
}

/* ---- the bytes, then zeros ---------------------------------------------------------------- */
typedef struct {
    const uint8_t *at, *end;
} Input;
static int next(Input *in) {
    return in->at < in->end ? *in->at++ : 0;
}
static int below(Input *in, int n) {
    return next(in) % n;
}

/* ---- the rows of a graph -------------------------------------------------------------------- */
enum { MOST = 48, MOST_NEW = 4, CATEGORIES = 3 };
enum { HAS_V = 1, HAS_E = 2, HAS_L = 4, HAS_X = 8, HAS_KIND = 16, HAS_Y = 32, HAS_SPLIT = 64 };
enum { HAS_A = 128, HAS_LSPLIT = 256, HAS_ALL = 511, HAS_W = 512, HAS_G = 1024, HAS_EVERY = 2047 };
enum { MOST_GRAPHS = 6 };

typedef struct {
    float x[2 * MOST];
    int32_t kind[MOST], y[MOST];
    int8_t split[MOST];
} Nodes;
typedef struct {
    int32_t src[MOST], dst[MOST];
    float a[MOST];
    int8_t split[MOST];
} Edges;
typedef struct {
    int64_t ptr[MOST_GRAPHS + 1];
    int32_t y[MOST_GRAPHS];
    int8_t split[MOST_GRAPHS];
} Parts;
typedef struct {
    int has, n, n_e, n_l, n_g;
    Nodes v;
    Edges e, l;
    Parts g; /* which nodes are divided into, where HAS_G */
} Rows;

static const char *const KINDS[CATEGORIES] = {"ash", "birch", "cedar"};

static gnnc_array array_of(int dtype, int64_t n, int64_t width, const void *p) {
    gnnc_array a = {.struct_size = sizeof a};
    a.data = p, a.dtype = dtype, a.rank = width ? 2 : 1;
    a.shape[0] = n, a.shape[1] = width;
    return a;
}

static void draw_nodes(Input *in, Nodes *v, int from, int n) {
    for (int i = from; i < from + n; i++) {
        v->x[2 * i] = (float)(next(in) - 128) / 16;
        v->x[2 * i + 1] = (float)(next(in) - 128) / 16;
        v->kind[i] = below(in, CATEGORIES);
        v->y[i] = below(in, CATEGORIES + 1) - 1;
        v->split[i] = (int8_t)below(in, 4);
    }
}
static void draw_edges(Input *in, Edges *e, int from, int n, int n_nodes) {
    for (int i = from; i < from + n && n_nodes; i++) {
        e->src[i] = below(in, n_nodes);
        e->dst[i] = below(in, n_nodes);
        e->a[i] = (float)(next(in) - 128) / 16;
        e->split[i] = (int8_t)below(in, 4);
    }
}

/* Each part of the nodes, none empty, if there are as many nodes. */
static void draw_graphs(Input *in, Rows *r) {
    r->n_g = 1 + below(in, MOST_GRAPHS);
    for (int i = 0; i <= r->n_g; i++) r->g.ptr[i] = (int64_t)i * r->n / r->n_g;
    for (int i = 0; i < r->n_g; i++) {
        r->g.y[i] = below(in, CATEGORIES);
        r->g.split[i] = (int8_t)below(in, 4);
    }
}
static int graph_of(const Rows *r, int v) {
    int i = 0;
    while (i + 1 < r->n_g && r->g.ptr[i + 1] <= v) i++;
    return i;
}
/* Most edges stay in a graph. */
static void keep_inside(Input *in, const Rows *r, Edges *e, int from, int n) {
    for (int i = from; i < from + n && r->has & HAS_G && r->n; i++) {
        int at = graph_of(r, e->src[i]), first = (int)r->g.ptr[at];
        int wide = (int)r->g.ptr[at + 1] - first;
        if (next(in) != 1) e->dst[i] = first + e->dst[i] % wide;
    }
}
static bool crosses(const Rows *r) {
    for (int i = 0; i < r->n_e; i++)
        if (graph_of(r, r->e.src[i]) != graph_of(r, r->e.dst[i])) return true;
    return false;
}

static gnnc_status add_graphs(gnnc_graph *g, const Rows *r) {
    gnnc_array ptr = array_of(GNNC_DT_I64, r->n_g + 1, 0, r->g.ptr);
    gnnc_array y = array_of(GNNC_DT_I32, r->n_g, 0, r->g.y);
    gnnc_array split = array_of(GNNC_DT_I8, r->n_g, 0, r->g.split);
    gnnc_status st = gnnc_graph_add_graphs(g, "graph", r->n_g);
    if (st == GNNC_OK) st = gnnc_graph_divide(g, "v", "graph", &ptr);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, "graph", "y", GNNC_COL_CLASS, &y, CATEGORIES, NULL);
    if (st == GNNC_OK)
        st = gnnc_graph_add_column(g, "graph", "split", GNNC_COL_SPLIT, &split, -1, NULL);
    return st;
}

/* One part of a graph that is built: `what` is a HAS_. */
static gnnc_status add_part(gnnc_graph *g, const Rows *r, int what) {
    const Nodes *v = &r->v;
    gnnc_array x = array_of(GNNC_DT_F32, r->n, 2, v->x),
               a = array_of(GNNC_DT_F32, r->n_e, 1, r->e.a);
    gnnc_array kind = array_of(GNNC_DT_I32, r->n, 0, v->kind),
               y = array_of(GNNC_DT_I32, r->n, 0, v->y);
    gnnc_array split = array_of(GNNC_DT_I8, r->n, 0, v->split);
    gnnc_array of_l = array_of(GNNC_DT_I8, r->n_l, 0, r->l.split);
    gnnc_array w = array_of(GNNC_DT_F32, r->n_l, 0, r->l.a);
    const Edges *ends = what == HAS_E ? &r->e : &r->l;
    int n = what == HAS_E ? r->n_e : r->n_l;
    gnnc_array src = array_of(GNNC_DT_I32, n, 0, ends->src),
               dst = array_of(GNNC_DT_I32, n, 0, ends->dst);
    switch (what) {
    case HAS_V:
        return gnnc_graph_add_nodes(g, "v", r->n);
    case HAS_E:
        return gnnc_graph_add_edges(g, "e", "v", "v", &src, &dst);
    case HAS_L:
        return gnnc_graph_add_edges(g, "l", "v", "v", &src, &dst);
    case HAS_X:
        return gnnc_graph_add_column(g, "v", "x", GNNC_COL_FLOAT, &x, -1, NULL);
    case HAS_KIND:
        return gnnc_graph_add_column(g, "v", "kind", GNNC_COL_CAT, &kind, CATEGORIES, KINDS);
    case HAS_Y:
        return gnnc_graph_add_column(g, "v", "y", GNNC_COL_CLASS, &y, CATEGORIES, NULL);
    case HAS_SPLIT:
        return gnnc_graph_add_column(g, "v", "split", GNNC_COL_SPLIT, &split, -1, NULL);
    case HAS_A:
        return gnnc_graph_add_column(g, "e", "a", GNNC_COL_FLOAT, &a, -1, NULL);
    case HAS_LSPLIT:
        return gnnc_graph_add_column(g, "l", "split", GNNC_COL_SPLIT, &of_l, -1, NULL);
    case HAS_W:
        return gnnc_graph_add_column(g, "l", "w", GNNC_COL_FLOAT, &w, -1, NULL);
    case HAS_G:
        return add_graphs(g, r);
    default:
        return GNNC_E_ARG;
    }
}

/* All of it at once, with the library's own allocator. */
static gnnc_graph *built_of(const Rows *r) {
    gnnc_graph *g = NULL;
    MUST(gnnc_graph_create(&g) == GNNC_OK);
    for (int what = 1; what < HAS_EVERY; what *= 2)
        if (r->has & what) MUST(add_part(g, r, what) == GNNC_OK);
    MUST(gnnc_graph_commit(g) == GNNC_OK);
    return g;
}

/* ---- weights and checkpoints ---------------------------------------------------------------- */
typedef struct {
    uint8_t *p;
    size_t n;
} Bytes;
static int put(void *user, const void *data, size_t n, size_t left) {
    Bytes *b = user;
    (void)left;
    uint8_t *p = realloc(b->p, b->n + n + 1);
    if (!p) return 1;
    memcpy(p + b->n, data, n);
    b->p = p, b->n += n;
    return 0;
}
static void drop(Bytes *b) {
    free(b->p);
    *b = (Bytes){0};
}
static inline bool same(const Bytes *a, const Bytes *b) {
    return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n));
}

/* ---- what a run has ------------------------------------------------------------------------- */
/* Of the models calls_*.gnn, by the compiler. */
extern const gnnc_program calls_rows_program, calls_rows_infer_program;
extern const gnnc_program calls_links_program, calls_links_infer_program;
extern const gnnc_program calls_pairs_program, calls_pairs_infer_program;
extern const gnnc_program calls_graphs_program, calls_graphs_infer_program;
enum { OF_ROWS, OF_LINKS, OF_PAIRS, OF_GRAPHS, MODELS };
static const gnnc_program *const TRAINS[] = {&calls_rows_program, &calls_links_program,
                                             &calls_pairs_program, &calls_graphs_program};
static const gnnc_program *const INFERS[] = {&calls_rows_infer_program, &calls_links_infer_program,
                                             &calls_pairs_infer_program,
                                             &calls_graphs_infer_program};
static const int NEEDS[] = {HAS_V | HAS_E | HAS_X | HAS_KIND | HAS_A,
                            HAS_V | HAS_L | HAS_X | HAS_LSPLIT, HAS_V | HAS_L | HAS_X | HAS_LSPLIT,
                            HAS_V | HAS_E | HAS_X | HAS_G};
static bool scores_pairs(int kind) {
    return kind == OF_LINKS || kind == OF_PAIRS;
}

enum { SLOTS = 2, MOST_WEIGHTS = 16, MOST_CALLS = 160, MOST_COMPARED = 6, MOST_RESUMED = 2 };

typedef struct {
    gnnc_graph *g;
    bool committed;
    Rows rows;       /* with those in the log */
    int n, n_e, n_l; /* that are committed */
    bool unknown;    /* something of it is not in `rows` */
    bool fitted;     /* `x` says that it is made of texts */
} Graph;
typedef struct {
    gnnc_model *m;
    int kind, weights; /* -1: it has none */
} Model;
typedef struct {
    gnnc_session *s;
    int kind, weights;
    bool open, unknown;
    int64_t seed;
    Rows rows; /* of the snapshot */
} Session;
typedef struct {
    gnnc_trainer *t;
    int kind;
    bool loaded, plain; /* plain: it has no option but its threads */
    bool unknown;       /* as of Graph */
    Rows rows;
} Trainer;
/* A session without a graph, and the one that a request brings. */
typedef struct {
    gnnc_session *s;
    int kind, weights;
    bool open;
    Graph g;
} Brought;
/* A tensor that the library gave, and what it holds. */
typedef struct {
    struct DLManagedTensorVersioned *t;
    bool stays; /* it does not change while it is held */
    int n;
    float was[64];
} Held;
typedef struct {
    Input in;
    Graph g[SLOTS];
    Model m[SLOTS];
    Session s[SLOTS];
    Trainer t[SLOTS];
    Brought b[SLOTS];
    Held held[SLOTS];
    int n_lent; /* tensors and record batches of ours that did not come back yet */
    int n_compared, n_resumed, cancel_in;
    Bytes saved; /* the last checkpoint */
    int saved_kind;
} Run;

static gnnc_encoder *of_texts, *of_nothing; /* of `x` and `kind`; of no columns yet */
static Bytes weights[MOST_WEIGHTS]; /* the first two of each model are kept from run to run */
static int weights_kind[MOST_WEIGHTS], n_weights, n_first;

/* ---- what is true of every call ------------------------------------------------------------- */
static long refused_before;
static gnnc_status told(gnnc_status st, const char *error) {
    MUST(st <= GNNC_OK && st >= GNNC_E_STOPPED);
    if (st == GNNC_E_NOMEM) MUST(n_refused > refused_before);
    if (st != GNNC_OK && st != GNNC_E_ARG) MUST(error && error[0]);
    return st;
}
#define SAID(h, kind, call) (refused_before = n_refused, told((call), gnnc_##kind##_error(h)))
#define GRAPH(g, call) SAID(g, graph, call)
#define MODEL(m, call) SAID(m, model, call)
#define SESSION(s, call) SAID(s, session, call)
#define TRAINER(t, call) SAID(t, trainer, call)

#endif
