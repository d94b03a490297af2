/* Hidden layers by rows: as the trainer's gnnc_trainer_embed, of some rows.
 *
 * A layer is made of a row's neighbourhood, by a phase over batches as predictions are; or it was
 * computed of all rows by open, as those of models of links are, and rows of it are copied. */
#include <stdio.h>
#include <string.h>

#include "session.h"

/* ---- what sessions share -------- */
static const char *layer_of(const rt_buf *b) {
    return b->role == RT_OUT_EMBED ? b->of : NULL;
}

static const RtRowOutput *find(const RtSessionShared *of, const char *layer) {
    for (int i = 0; i < of->n_layers; i++)
        if (strcmp(of->layer[i].name, layer) == 0) return &of->layer[i];
    return NULL;
}

gnnc_status rt_session_find_layers(RtSessionShared *of) {
    const rt_program *p = of->t->program;
    int n = 0;
    for (int b = 0; b < p->n_bufs; b++) n += layer_of(&p->bufs[b]) != NULL;
    if (!n) return GNNC_OK;
    of->layer = RT_NEWN(&of->t->rt.pool, RtRowOutput, n);
    if (!of->layer) return rt_fail_nomem(&of->t->rt.err, "layers");
    for (int b = 0; b < p->n_bufs; b++) {
        if (!layer_of(&p->bufs[b]) || find(of, layer_of(&p->bufs[b]))) continue;
        gnnc_status st = rt_session_rows_of(of, b, &of->layer[of->n_layers]);
        if (st != GNNC_OK) return st;
        of->n_layers++;
    }
    return GNNC_OK;
}

/* ---- what there is -------- */
int gnnc_session_n_layers(const gnnc_session *s) {
    return s && s->of ? s->of->n_layers : 0;
}

const char *gnnc_session_layer_name(const gnnc_session *s, int i) {
    return i >= 0 && i < gnnc_session_n_layers(s) ? s->of->layer[i].name : NULL;
}

/* Finds the layer that the caller names; an error lists those that there are. */
static gnnc_status layer_named(gnnc_session *s, const char *name, const RtRowOutput **out) {
    char known[256] = ", and no other: compile it with --embed";
    gnnc_status st = rt_session_opened(s);
    if (st != GNNC_OK) return st;
    *out = find(s->of, name);
    if (*out && (*out)->unknown_dim)
        return rt_fail(&s->rt.err, GNNC_E_MISSING,
                       "%s: no parameter tells the size of '%s', which layer '%s' has",
                       s->of->t->program->source, (*out)->unknown_dim, name);
    if (*out) return GNNC_OK;
    for (int i = 0, at = 0; i < s->of->n_layers && at < (int)sizeof known; i++)
        at += snprintf(known + at, sizeof known - (size_t)at, "%s%s", i ? ", " : ": there is ",
                       s->of->layer[i].name);
    return rt_fail(&s->rt.err, GNNC_E_MISSING, "the program gives no layer '%s'%s", name, known);
}

gnnc_status gnnc_session_layer(gnnc_session *s, const char *layer, const char **table,
                               int64_t *n_rows, int *rank, int64_t dim[GNNC_MAX_RANK]) {
    if (!s || !layer) return GNNC_E_ARG;
    const RtRowOutput *l;
    gnnc_status st = layer_named(s, layer, &l);
    if (st != GNNC_OK) return st;
    if (table) *table = s->of->t->program->spaces[l->space].name;
    if (n_rows) *n_rows = l->n;
    if (rank) *rank = l->rank;
    if (dim) memcpy(dim, l->dim, sizeof l->dim);
    return GNNC_OK;
}

/* ---- rows of it -------- */
/* All rows are there, of the graph or of what a request brought. */
static gnnc_status copy_rows(gnnc_session *s, const RtRowOutput *l, const RtExec *x, int64_t n,
                             const int64_t *id, float *out) {
    const float *all = x->buf[l->buf];
    int64_t n_rows = x->n[x->program->spaces[l->space].sym];
    size_t row_bytes = (size_t)l->row_width * sizeof *out;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = id ? id[i] : i;
        if (row < 0 || row >= n_rows) return rt_session_no_row(s, "row", row, n_rows);
        if (row_bytes) memcpy(out + i * l->row_width, all + row * l->row_width, row_bytes);
    }
    return GNNC_OK;
}

gnnc_status gnnc_session_embed(gnnc_session *s, const char *layer, int64_t n, const int64_t *id,
                               float *out) {
    if (!s || !layer || n < 0 || (n && !out)) return GNNC_E_ARG;
    const RtRowOutput *l;
    gnnc_status st = layer_named(s, layer, &l);
    if (st == GNNC_OK && s->request)
        st = rt_fail(&s->rt.err, GNNC_E_STATE,
                     "the session has no graph: gnnc_session_embed_subgraph");
    if (st == GNNC_OK) st = rt_session_device_begin(s);
    if (st != GNNC_OK) return st;
    return l->precomputed ? copy_rows(s, l, &s->of->t->x, n, id, out)
                          : rt_session_predict_rows(s, l, n, id, out);
}

/* Of what all rows are computed of, a subgraph has that of scores of links. */
static gnnc_status embed_brought(gnnc_session *s, const RtRowOutput *l, int64_t n,
                                 const int64_t *id, float *out) {
    const rt_program *p = s->of->t->program;
    bool of_ends = l->precomputed && p->phases[p->bufs[l->buf].phase].kind == RT_PHASE_ENDS;
    if (l->precomputed && !of_ends)
        return rt_fail(&s->rt.err, GNNC_E_STATE,
                       "layer '%s' is computed of the whole graph: the session is opened on one",
                       l->name);
    gnnc_status st = rt_session_subgraph_bind(s);
    if (st != GNNC_OK) return st;
    return l->precomputed ? copy_rows(s, l, &s->request->x, n, id, out)
                          : rt_session_predict_rows(s, l, n, id, out);
}

gnnc_status gnnc_session_embed_subgraph(gnnc_session *s, const char *layer, int64_t n,
                                        const int64_t *id, float *out) {
    if (!s || !layer || n < 0 || (n && (!id || !out))) return GNNC_E_ARG;
    const RtRowOutput *l;
    gnnc_status st = rt_session_subgraph_begin(s, s->of && s->of->links);
    if (st == GNNC_OK) st = layer_named(s, layer, &l);
    return st == GNNC_OK ? embed_brought(s, l, n, id, out) : st;
}
