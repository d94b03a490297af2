/* calls_fuzz.c: what sessions are asked, over graphs and over those that requests bring. */
#ifndef TESTS_FUZZ_CALLS_SERVE_H
#define TESTS_FUZZ_CALLS_SERVE_H

#include "calls_graph.h"

/* One question, of rows, pairs, the best pairs, or a layer. */
enum { ASK_ROWS, ASK_PAIRS, ASK_BEST, ASK_PAIRS_WITH, ASK_BEST_WITH, ASK_LAYER };
enum { MOST_IDS = 5, MOST_BEST = 3, MOST_WIDTH = 16 };
typedef struct {
    int what, n, k, with_known, layer;
    int64_t id[MOST_IDS], dst[MOST_IDS];
    float w[MOST_IDS]; /* what the pairs bring, if they do */
    bool brings, in_subgraph;
} Question;
typedef struct {
    float score[MOST_IDS * MOST_WIDTH];
    int64_t dst[MOST_IDS * MOST_BEST];
} Answer;

static int n_rows(const Session *s) {
    return s->kind == OF_GRAPHS ? s->rows.n_g : s->rows.n;
}

static gnnc_status ask(gnnc_session *s, const Question *q, Answer *a) {
    gnnc_array w = array_of(GNNC_DT_F32, q->n, 0, q->w);
    gnnc_values v = column("w", &w);
    gnnc_pairs p = {.struct_size = sizeof p, .n = q->n, .src = q->id, .dst = q->dst};
    p.columns = &v, p.n_columns = q->brings;
    memset(a, 0, sizeof *a);
    switch (q->what) {
    case ASK_ROWS:
        return gnnc_session_predict(s, q->n, q->id, a->score);
    case ASK_PAIRS:
        return gnnc_session_predict_links(s, q->n, q->id, q->dst, NULL, a->score);
    case ASK_BEST:
        return gnnc_session_top_links(s, q->n, q->id, NULL, q->k, q->with_known, a->dst, a->score);
    case ASK_PAIRS_WITH:
        return q->in_subgraph ? gnnc_session_predict_subgraph_pairs(s, &p, a->score)
                              : gnnc_session_predict_pairs(s, &p, a->score);
    case ASK_BEST_WITH:
        return q->in_subgraph
                   ? gnnc_session_top_subgraph_pairs(s, &p, q->k, q->with_known, a->dst, a->score)
                   : gnnc_session_top_pairs(s, &p, q->k, q->with_known, a->dst, a->score);
    default:
        return q->in_subgraph ? gnnc_session_embed_subgraph(s, gnnc_session_layer_name(s, q->layer),
                                                            q->n, q->id, a->score)
                              : gnnc_session_embed(s, gnnc_session_layer_name(s, q->layer), q->n,
                                                   q->id, a->score);
    }
}

/* The same of a session over a graph that is built at once. */
static void compare(Run *r, const Session *s, const Question *q, const Answer *got) {
    gnnc_model *m = NULL;
    gnnc_session *other = NULL;
    Answer want;
    long refuse = refuse_in;
    if (s->unknown || r->n_compared++ >= MOST_COMPARED) return;
    refuse_in = -1;
    gnnc_graph *g = built_of(&s->rows);
    MUST(gnnc_model_create(&m, INFERS[s->kind]) == GNNC_OK);
    MUST(gnnc_model_load_from(m, weights[s->weights].p, weights[s->weights].n) == GNNC_OK);
    MUST(gnnc_session_create(&other) == GNNC_OK && gnnc_session_open(other, m, g) == GNNC_OK);
    MUST(gnnc_session_set_seed(other, s->seed) == GNNC_OK);
    MUST(ask(other, q, &want) == GNNC_OK && !memcmp(&want, got, sizeof want));
    gnnc_session_destroy(other);
    gnnc_model_release(m);
    gnnc_graph_release(g);
    refuse_in = refuse;
}

/* Rows of the graph, and now and then one that is none: true. */
static bool draw_ids(Run *r, const Session *s, Question *q, int n) {
    bool outside = false;
    for (int i = 0; i < q->n; i++) {
        q->id[i] = below(&r->in, n + 2) - (next(&r->in) == 1);
        q->dst[i] = below(&r->in, s->rows.n ? s->rows.n : 1);
        outside |= q->id[i] < 0 || q->id[i] >= n;
    }
    return outside;
}

static void predict(Run *r, Session *s) {
    Question q = {.what = below(&r->in, 3), .n = below(&r->in, MOST_IDS + 1) - (next(&r->in) == 1)};
    Answer a;
    q.k = below(&r->in, MOST_BEST + 1), q.with_known = next(&r->in) & 1;
    bool outside = draw_ids(r, s, &q, n_rows(s));
    gnnc_status st = SESSION(s->s, ask(s->s, &q, &a));
    if (!s->open || q.n < 0 || outside || (q.what == ASK_ROWS) == scores_pairs(s->kind))
        MUST(st != GNNC_OK);
    if (q.what == ASK_BEST && q.k < 1) MUST(st != GNNC_OK);
    if (s->kind == OF_PAIRS && q.n) MUST(st != GNNC_OK);
    if (st == GNNC_OK) compare(r, s, &q, &a);
}

/* Asks for pairs with a column of theirs, as one of the models wants it.  refused: no session may
 * answer this. */
static Question draw_pairs(Run *r, const Session *s, bool *refused) {
    Question q = {.what = ASK_PAIRS_WITH + (next(&r->in) & 1), .n = below(&r->in, MOST_IDS + 1)};
    q.k = below(&r->in, MOST_BEST + 1), q.with_known = next(&r->in) & 1;
    q.brings = (s->kind == OF_PAIRS) != (next(&r->in) == 1);
    bool outside = draw_ids(r, s, &q, s->rows.n), no_number = q.n && next(&r->in) == 1;
    for (int i = 0; i < q.n; i++) q.w[i] = (float)(next(&r->in) - 128) / 16;
    if (no_number) q.w[0] = __builtin_nanf("");
    bool fits = s->open && scores_pairs(s->kind) && q.brings == (s->kind == OF_PAIRS);
    *refused = !fits || outside || (no_number && q.brings) || (q.what == ASK_BEST_WITH && q.k < 1);
    return q;
}

static void predict_pairs(Run *r, Session *s) {
    Answer a;
    bool refused;
    Question q = draw_pairs(r, s, &refused);
    gnnc_status st = SESSION(s->s, ask(s->s, &q, &a));
    if (refused) MUST(st != GNNC_OK);
    if (st == GNNC_OK) compare(r, s, &q, &a);
    static const double memory[8];
    gnnc_array x = array_of(below(&r->in, 15), below(&r->in, 4), next(&r->in) & 1, memory);
    gnnc_values v[2] = {column(next(&r->in) & 1 ? "w" : NULL, &x), column("w", NULL)};
    gnnc_pairs p = {.struct_size = next(&r->in) & 1 ? sizeof p : 8, .n = below(&r->in, 4) - 1};
    p.src = q.id, p.dst = next(&r->in) & 1 ? q.dst : NULL;
    p.columns = v, p.n_columns = below(&r->in, 4) - 1;
    if (s->s) SESSION(s->s, gnnc_session_predict_pairs(s->s, &p, a.score));
}

static void embed(Run *r, Session *s) {
    Question q = {.what = ASK_LAYER, .n = below(&r->in, MOST_IDS + 1)};
    Answer a;
    const char *table = NULL;
    int64_t n = 0, dim[GNNC_MAX_RANK], width = 1;
    int rank = 0, n_layers = gnnc_session_n_layers(s->s);
    MUST(n_layers > 0 || !s->open);
    q.layer = below(&r->in, n_layers + 1);
    const char *name = gnnc_session_layer_name(s->s, q.layer);
    MUST((name != NULL) == (q.layer < n_layers));
    if (!s->s || !name) return;
    gnnc_status st = SESSION(s->s, gnnc_session_layer(s->s, name, &table, &n, &rank, dim));
    MUST(st == GNNC_OK && table && n >= 0);
    for (int i = 0; i < rank; i++) width *= dim[i];
    MUST(width <= MOST_WIDTH);
    bool outside = draw_ids(r, s, &q, (int)n);
    st = SESSION(s->s, ask(s->s, &q, &a));
    if (outside) MUST(st != GNNC_OK);
    if (st == GNNC_OK) compare(r, s, &q, &a);
    MUST(gnnc_session_embed(s->s, "nothing", 1, q.id, a.score) == GNNC_E_MISSING);
}

/* ---- without a graph -------- */
static void drop_brought(Brought *b) {
    gnnc_session_destroy(b->s);
    memset(b, 0, sizeof *b);
}

static void open_brought(Run *r, Brought *b) {
    const Model *m = &r->m[below(&r->in, SLOTS)];
    drop_brought(b);
    refused_before = n_refused;
    if (gnnc_session_create_with(&b->s, give, take_back, NULL) != GNNC_OK) return;
    gnnc_status st = SESSION(b->s, gnnc_session_open_model(b->s, m->m));
    if (!m->m || m->weights < 0) MUST(st != GNNC_OK);
    if (st == GNNC_OK) b->open = true, b->kind = m->kind, b->weights = m->weights;
    MUST(gnnc_session_rows(b->s) == 0);
}

static void bring(Run *r, Brought *b) {
    gnnc_graph *g = NULL;
    int parts = next(&r->in);
    gnnc_status st = b->s ? SESSION(b->s, gnnc_session_subgraph(b->s, &g)) : GNNC_E_ARG;
    MUST((st == GNNC_OK) == (g != NULL) && (b->open || !g));
    if (b->open) memset(&b->g, 0, sizeof b->g);
    if (!g) return;
    b->g.g = g;
    for (int part = 1; part < HAS_EVERY; part *= 2) {
        if (part == HAS_E && parts & 1) build(r, &b->g, HAS_G);
        if (part != HAS_G && (parts & 2 || next(&r->in) != 1)) build(r, &b->g, part);
    }
    if (parts & 4) any_column(r, &b->g);
    if (parts & 8) wrong_build(r, &b->g);
    if (!(parts & 16)) commit(&b->g);
    ask_graph(r, &b->g);
}

/* To rounding: other rows are beside them there. */
static void compare_whole(Run *r, const Brought *b, const Question *q, const Answer *got,
                          int width) {
    Session like = {.kind = b->kind, .weights = b->weights, .rows = b->g.rows};
    gnnc_model *m = NULL;
    Answer want;
    long refuse = refuse_in;
    if (r->n_compared++ >= MOST_COMPARED) return;
    refuse_in = -1;
    gnnc_graph *g = built_of(&b->g.rows);
    MUST(gnnc_model_create(&m, INFERS[b->kind]) == GNNC_OK);
    MUST(gnnc_model_load_from(m, weights[b->weights].p, weights[b->weights].n) == GNNC_OK);
    MUST(gnnc_session_create(&like.s) == GNNC_OK && gnnc_session_open(like.s, m, g) == GNNC_OK);
    Question whole = *q;
    whole.in_subgraph = false;
    MUST(ask(like.s, &whole, &want) == GNNC_OK);
    for (int i = 0; i < q->n * width; i++) {
        if (want.score[i] == got->score[i]) continue; /* or both are -inf: there is no row */
        float off = want.score[i] - got->score[i];
        MUST(off * off <= 1e-9f * (1 + want.score[i] * want.score[i]));
    }
    gnnc_session_destroy(like.s);
    gnnc_model_release(m);
    gnnc_graph_release(g);
    refuse_in = refuse;
}

static void predict_brought(Run *r, Brought *b) {
    Question q = {.what = ASK_ROWS, .n = below(&r->in, MOST_IDS + 1) - (next(&r->in) == 1)};
    Session like = {.kind = b->kind, .rows = b->g.rows};
    Answer a = {0};
    int rank;
    int64_t dim[GNNC_MAX_RANK] = {0};
    bool outside = draw_ids(r, &like, &q, n_rows(&like));
    if (!b->s) return;
    gnnc_status st = SESSION(b->s, gnnc_session_predict_subgraph(b->s, q.n, q.id, a.score));
    bool whole = (b->g.rows.has & NEEDS[b->kind]) == NEEDS[b->kind];
    if (!b->open || !b->g.committed || q.n < 0 || scores_pairs(b->kind)) MUST(st != GNNC_OK);
    if (q.n > 0 && (outside || !whole)) MUST(st != GNNC_OK);
    if (st != GNNC_OK || q.n < 1) return;
    MUST(gnnc_session_row_shape(b->s, &rank, dim) == GNNC_OK && rank == 1);
    if (b->kind != OF_GRAPHS || !crosses(&b->g.rows)) compare_whole(r, b, &q, &a, (int)dim[0]);
}

/* Splits may be missing: then other edges are links. */
static void predict_brought_pairs(Run *r, Brought *b) {
    Session like = {.kind = b->kind, .rows = b->g.rows, .open = b->open};
    Answer a;
    bool refused;
    Question q = draw_pairs(r, &like, &refused);
    int needs = NEEDS[b->kind], has = b->g.rows.has & needs;
    q.in_subgraph = true;
    gnnc_status st = SESSION(b->s, ask(b->s, &q, &a));
    if (refused || !b->g.committed) MUST(st != GNNC_OK);
    if (q.n && (has | HAS_LSPLIT) != needs) MUST(st != GNNC_OK);
    if (st == GNNC_OK && has == needs)
        compare_whole(r, b, &q, &a, q.what == ASK_BEST_WITH ? q.k : 1);
}

static void embed_brought(Run *r, Brought *b) {
    Question q = {.what = ASK_LAYER, .n = below(&r->in, MOST_IDS + 1), .in_subgraph = true};
    Session like = {.kind = b->kind, .rows = b->g.rows};
    Answer a;
    const char *table = NULL;
    int64_t n = 0, dim[GNNC_MAX_RANK], width = 1;
    int rank = 0, n_layers = gnnc_session_n_layers(b->s);
    MUST(n_layers > 0 || !b->open);
    q.layer = below(&r->in, n_layers + 1);
    const char *name = gnnc_session_layer_name(b->s, q.layer);
    MUST((name != NULL) == (q.layer < n_layers));
    if (!b->s || !name) return;
    gnnc_status st = SESSION(b->s, gnnc_session_layer(b->s, name, &table, &n, &rank, dim));
    if (st != GNNC_OK) return; /* no parameter tells its width */
    MUST(table && n == 0);
    for (int i = 0; i < rank; i++) width *= dim[i];
    MUST(width <= MOST_WIDTH);
    bool outside = draw_ids(r, &like, &q, strcmp(table, "v") ? like.rows.n_g : like.rows.n);
    st = SESSION(b->s, ask(b->s, &q, &a));
    if (!b->g.committed || outside) MUST(st != GNNC_OK);
    bool whole = (b->g.rows.has & NEEDS[b->kind]) == NEEDS[b->kind];
    if (st != GNNC_OK || !q.n || !whole || (b->kind == OF_GRAPHS && crosses(&b->g.rows))) return;
    compare_whole(r, b, &q, &a, (int)width);
}

static void call_brought(Run *r, int what, Brought *b) {
    if (what == 0) open_brought(r, b);
    if (what == 1) bring(r, b);
    if (what == 2 && scores_pairs(b->kind) && next(&r->in) != 1)
        predict_brought_pairs(r, b);
    else if (what == 2)
        predict_brought(r, b);
}

/* What the model computes of the whole graph: neither of these has any. */
static void ask_whole(Run *r, Session *s, Brought *b) {
    gnnc_whole_graph_value is = {.struct_size = sizeof is};
    float values[64] = {0};
    int64_t id[2] = {below(&r->in, 8), below(&r->in, 8)};
    gnnc_session *of = next(&r->in) & 1 ? s->s : b->s;
    int i = below(&r->in, 4) - 1, n = gnnc_session_n_whole_graph_values(of);
    MUST(n >= 0);
    if (!of) return;
    gnnc_status st = gnnc_session_whole_graph_value(of, i, &is);
    if (i < 0 || i >= n) MUST(st != GNNC_OK);
    SESSION(of, gnnc_session_read_whole_graph_value(of, i, 2, id, values));
    SESSION(of, gnnc_session_set_whole_graph_value(of, i, values));
    if (next(&r->in) & 1) SESSION(of, gnnc_session_set_device(of, next(&r->in) & 1 ? "cpu" : "x"));
    MUST(gnnc_session_device(of) && gnnc_session_set_stream(of, NULL) == GNNC_OK);
}

#endif
