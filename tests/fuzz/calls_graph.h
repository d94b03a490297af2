/* calls_fuzz.c: calls on graphs. */
#ifndef TESTS_FUZZ_CALLS_GRAPH_H
#define TESTS_FUZZ_CALLS_GRAPH_H

#include "calls.h"

static void new_graph(Graph *g) {
    gnnc_graph_release(g->g);
    memset(g, 0, sizeof *g);
    refused_before = n_refused;
    gnnc_status st = gnnc_graph_create_with(&g->g, give, take_back, NULL);
    MUST((st == GNNC_OK) == (g->g != NULL) && (st == GNNC_OK || n_refused > refused_before));
}

/* What it holds is not known any more: it is let go. */
static void spoil(Graph *g) {
    gnnc_graph_release(g->g);
    memset(g, 0, sizeof *g);
}

static void build(Run *r, Graph *g, int what) {
    Rows drawn = g->rows;
    long refuse = refuse_in;
    if (what == HAS_G && !(drawn.has & HAS_V)) return;
    if (what == HAS_G) refuse_in = -1; /* several calls are one here */
    if (what == HAS_V) drawn.n = below(&r->in, 12);
    if (what == HAS_V) draw_nodes(&r->in, &drawn.v, 0, drawn.n);
    if (what == HAS_E || what == HAS_L) {
        int *n = what == HAS_E ? &drawn.n_e : &drawn.n_l;
        Edges *e = what == HAS_E ? &drawn.e : &drawn.l;
        *n = drawn.n ? below(&r->in, 16) : 0;
        draw_edges(&r->in, e, 0, *n, drawn.n);
        if (what == HAS_E) keep_inside(&r->in, &drawn, e, 0, *n);
    }
    if (what == HAS_G) draw_graphs(&r->in, &drawn);
    drawn.has |= what;
    if (what == HAS_E) drawn.has &= ~HAS_A; /* a relation that is replaced loses its columns */
    if (what == HAS_L) drawn.has &= ~(HAS_LSPLIT | HAS_W);
    gnnc_status st = GRAPH(g->g, add_part(g->g, &drawn, what));
    if (what == HAS_G) refuse_in = refuse;
    if (g->committed) MUST(st == GNNC_E_STATE);
    if (st == GNNC_OK) g->rows = drawn;
    if (st == GNNC_OK && what == HAS_X) g->fitted = false;
}

static void commit(Graph *g) {
    if (GRAPH(g->g, gnnc_graph_commit(g->g)) != GNNC_OK) return;
    g->committed = true;
    g->n = g->rows.n, g->n_e = g->rows.n_e, g->n_l = g->rows.n_l;
}

static Rows snapshot(const Graph *g) {
    Rows r = g->rows;
    r.n = g->n, r.n_e = g->n_e, r.n_l = g->n_l;
    return r;
}

static gnnc_values column(const char *name, const gnnc_array *a) {
    gnnc_values v = {.struct_size = sizeof v};
    v.column = name, v.values = a;
    return v;
}

static gnnc_status append(Graph *g, gnnc_rows *rows) {
    long before = n_refused;
    gnnc_status st = gnnc_graph_append(g->g, rows);
    if (st == GNNC_E_NOMEM) MUST(n_refused > before);
    MUST((st == GNNC_OK) == (rows->first >= 0));
    if (st != GNNC_OK && st != GNNC_E_ARG) MUST(rows->error[0]);
    return st;
}

/* What is wrong with a row, if it is: its end, its code, a number, a column that is not there. */
static void append_nodes(Run *r, Graph *g) {
    Rows *to = &g->rows;
    int k = below(&r->in, MOST_NEW), wrong = below(&r->in, 16), at = to->n, n_columns = 0;
    if (at + k > MOST) return;
    draw_nodes(&r->in, &to->v, at, k);
    bool labels = next(&r->in) & 1;
    float x[2 * MOST_NEW];
    int32_t kind[MOST_NEW];
    memcpy(x, to->v.x + 2 * at, sizeof(float) * 2 * (size_t)k);
    memcpy(kind, to->v.kind + at, sizeof(int32_t) * (size_t)k);
    if (wrong == 1 && k) x[1] = __builtin_nanf("");
    if (wrong == 2 && k) kind[0] = CATEGORIES;
    gnnc_array a[] = {array_of(GNNC_DT_F32, k, 2, x), array_of(GNNC_DT_I32, k, 0, kind),
                      array_of(GNNC_DT_I32, k, 0, to->v.y + at),
                      array_of(GNNC_DT_I8, k, 0, to->v.split + at)};
    if (wrong == 3) a[0].shape[1] = 1;
    gnnc_values v[5];
    const gnnc_encoder *by = wrong == 6   ? of_texts
                             : wrong == 7 ? gnnc_encoder_unchecked()
                             : wrong == 8 ? of_nothing
                                          : NULL;
    if (to->has & HAS_X && wrong != 4) v[n_columns++] = column("x", &a[0]), v[0].encoder = by;
    if (to->has & HAS_KIND) v[n_columns++] = column(wrong == 5 ? "kid" : "kind", &a[1]);
    if (to->has & HAS_Y && labels) v[n_columns++] = column("y", &a[2]);
    if (to->has & HAS_SPLIT && labels) v[n_columns++] = column("split", &a[3]);
    gnnc_rows rows = {.struct_size = sizeof rows};
    rows.table = "v", rows.count = k, rows.columns = v, rows.n_columns = n_columns;
    gnnc_status st = append(g, &rows);
    bool has_x = to->has & HAS_X, has_kind = to->has & HAS_KIND;
    if (!g->committed || to->has & HAS_G ||
        (has_x && (wrong == 3 || wrong == 4 || wrong == 8 || (wrong == 1 && k))) ||
        (has_x && g->fitted && !by) || (has_kind && (wrong == 5 || (wrong == 2 && k))))
        MUST(st != GNNC_OK);
    if (st != GNNC_OK) return;
    MUST(rows.first == at);
    for (int i = at; i < at + k && !labels; i++) to->v.y[i] = -1, to->v.split[i] = 0;
    to->n += k;
}

static void append_edges(Run *r, Graph *g, bool links) {
    Rows *to = &g->rows;
    Edges *e = links ? &to->l : &to->e;
    int *n = links ? &to->n_l : &to->n_e, k = below(&r->in, MOST_NEW), wrong = below(&r->in, 16);
    int32_t dst[MOST_NEW] = {0};
    if (*n + k > MOST || !to->n) return;
    draw_edges(&r->in, e, *n, k, to->n);
    if (!links) keep_inside(&r->in, to, e, *n, k);
    memcpy(dst, e->dst + *n, sizeof(int32_t) * (size_t)k);
    bool outside = k && (wrong == 1 || wrong == 2);
    if (outside) dst[0] = wrong == 1 ? to->n : -1;
    gnnc_array src = array_of(GNNC_DT_I32, k, 0, e->src + *n),
               ends = array_of(GNNC_DT_I32, k, 0, dst);
    gnnc_array a = array_of(GNNC_DT_F32, k, 1, e->a + *n),
               s = array_of(GNNC_DT_I8, k, 0, e->split + *n),
               w = array_of(GNNC_DT_F32, k, 0, e->a + *n);
    gnnc_values v[2] = {links ? column("split", &s) : column("a", &a), column("w", &w)};
    int has = (to->has & (links ? HAS_LSPLIT : HAS_A)) != 0, has_w = links && to->has & HAS_W;
    if (!has && has_w) v[0] = v[1];
    gnnc_rows rows = {.struct_size = sizeof rows};
    rows.table = links ? "l" : "e", rows.count = k, rows.src = &src;
    rows.dst = wrong == 3 ? NULL : &ends;
    rows.columns = v, rows.n_columns = has + has_w;
    gnnc_status st = append(g, &rows);
    if (!g->committed || !(to->has & (links ? HAS_L : HAS_E)) || outside || wrong == 3)
        MUST(st != GNNC_OK);
    if (st != GNNC_OK) return;
    MUST(rows.first == *n);
    *n += k;
}

/* Says how a column was made. */
static void set_encoded(Run *r, Graph *g) {
    static const char *const names[] = {"x", "kind", "nothing"};
    const gnnc_encoder *by[] = {of_texts, gnnc_encoder_unchecked(), of_nothing, NULL};
    int what = below(&r->in, 4), at = below(&r->in, 3);
    gnnc_status st = GRAPH(g->g, gnnc_graph_set_encoded(g->g, "v", names[at], by[what]));
    bool there = at < 2 && g->rows.has & (at ? HAS_KIND : HAS_X);
    /* A record batch may have brought it (lend_batch). */
    if (at == 2 || (!there && !g->unknown) || what > 1 || g->committed) MUST(st != GNNC_OK);
    if (there && what < 2 && !g->committed && !g->unknown)
        MUST(st == GNNC_OK || st == GNNC_E_NOMEM);
    if (st != GNNC_OK) return;
    if (!what) g->unknown = true; /* weights have it, too */
    if (!at) g->fitted = !what;
}

/* Calls that no graph takes. */
static void wrong_build(Run *r, Graph *g) {
    static const float nan[2] = {0, __builtin_nanf("")};
    static const int32_t down[4] = {0, 2, 1, 2}, one[2] = {1, 1};
    static const char *const twice[2] = {"a", "a"};
    gnnc_array f = array_of(GNNC_DT_F32, 2, 0, nan), i = array_of(GNNC_DT_I32, 2, 0, one), n = i,
               p = i;
    gnnc_array big = array_of(GNNC_DT_I32, INT64_MAX, 0, one),
               three = array_of(GNNC_DT_I32, 4, 0, down);
    gnnc_status st = GNNC_E_ARG;
    p.struct_size = 8, n.rank = 9;
    switch (below(&r->in, 20)) {
    case 0:
        st = gnnc_graph_add_nodes(g->g, "w", -1);
        break;
    case 1:
        st = gnnc_graph_add_nodes(g->g, NULL, 2);
        break;
    case 2:
        st = gnnc_graph_add_nodes(g->g, "w", (int64_t)1 << 31);
        break;
    case 3:
        st = gnnc_graph_add_edges(g->g, "e", "v", "nobody", &i, &i);
        break;
    case 4:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &f, &i);
        break;
    case 5:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &i, &three);
        break;
    case 6:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &i, &big);
        break;
    case 7:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &p, &i);
        break;
    case 8:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &n, &i);
        break;
    case 9:
        st = gnnc_graph_add_edges(g->g, "e", "v", "v", &i, NULL);
        break;
    case 10:
        st = gnnc_graph_add_edges_csr(g->g, "e", "v", "v", GNNC_BY_SOURCE, &three, &i);
        break;
    case 11:
        st = gnnc_graph_add_column(g->g, "nobody", "x", GNNC_COL_FLOAT, &i, -1, NULL);
        break;
    case 12:
        st = gnnc_graph_add_column(g->g, "v", "x", GNNC_COL_FLOAT, &f, -1, NULL);
        break;
    case 13:
        st = gnnc_graph_add_column(g->g, "v", "kind", GNNC_COL_CAT, &i, 1, NULL);
        break;
    case 14:
        st = gnnc_graph_add_column(g->g, "v", "kind", GNNC_COL_CAT, &i, 2, twice);
        break;
    case 15:
        st = gnnc_graph_add_column(g->g, "v", "x", (gnnc_kind)99, &i, -1, NULL);
        break;
    case 16:
        st = gnnc_graph_add_csr(g->g, "v", "x", 3, &three, &i, NULL);
        break;
    case 17:
        st = gnnc_graph_add_masks(g->g, "v", "split", &i, &i, &i);
        break;
    case 18:
        st = gnnc_graph_divide(g->g, "v", "nobody", &i);
        break;
    case 19:
        st = gnnc_graph_read(g->g, "/nowhere/at/all", 0);
        break;
    }
    MUST(st < GNNC_OK && gnnc_graph_error(g->g));
}

/* Any column of a table that no model reads, from any corner of some memory. */
static void any_column(Run *r, Graph *g) {
    static const uint64_t memory[1 << 10] = {1, 2, 0x4010000040000000, 3};
    gnnc_array a = {.struct_size = sizeof a};
    int kind = below(&r->in, 10), n_names = below(&r->in, 4);
    int64_t size = 8;
    a.data = (const uint8_t *)memory + below(&r->in, 64);
    a.dtype = below(&r->in, 15), a.rank = below(&r->in, 4), a.borrowed = next(&r->in) & 1;
    for (int i = 0; i < a.rank; i++) a.shape[i] = below(&r->in, 9) - 1;
    a.strided = next(&r->in) & 1;
    for (int i = a.rank - 1; i >= 0; size *= 8, i--)
        a.stride[i] = next(&r->in) & 1 ? size : below(&r->in, 9);
    if (next(&r->in) == 1) a.data = NULL;
    if (!g->committed) GRAPH(g->g, gnnc_graph_add_nodes(g->g, "u", below(&r->in, 6)));
    GRAPH(g->g, gnnc_graph_add_column(g->g, "u", "any", (gnnc_kind)kind, &a, n_names - 1,
                                      n_names > 3 ? KINDS : NULL));
}

static void ask_graph(Run *r, const Graph *g) {
    gnnc_table_info t = {.struct_size = sizeof t};
    gnnc_column_info c = {.struct_size = sizeof c};
    int wild = next(&r->in) - 128;
    gnnc_graph_table_info(g->g, wild, &t);
    gnnc_graph_column_info(g->g, wild, wild, &c);
    for (int i = 0; i < gnnc_graph_n_tables(g->g); i++) {
        MUST(gnnc_graph_table_info(g->g, i, &t) == GNNC_OK);
        if (!strcmp(t.name, "v")) MUST(t.count == (g->committed ? g->n : g->rows.n));
        for (int k = 0; k < t.n_columns; k++)
            MUST(gnnc_graph_column_info(g->g, i, k, &c) == GNNC_OK && c.shape[c.n_splits > 1] >= 0);
    }
}

#endif
