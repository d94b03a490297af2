/* The data's tables by the names of the model's types; what is said of those that are missing. */
#include <stdio.h>
#include <string.h>

#include "bind.h"

static const char *kind_word(rt_space_kind k) {
    return k == RT_SP_NODE ? "node type" : k == RT_SP_EDGE ? "edge type" : "graph table";
}

/* The data's table for a space of the program; NULL: there is none. The only table of graphs will
 * do under any name. */
static const RtTable *find_table(const RtDataset *d, const rt_space *s) {
    if (s->kind == RT_SP_NODE) return rt_dataset_nodes(d, s->name);
    if (s->kind == RT_SP_EDGE) return rt_dataset_edges(d, s->name);
    const RtTable *t = rt_dataset_graphs(d, s->name);
    return t || d->n_graphs != 1 ? t : &d->graphs[0];
}

/* Do the data's edges lead between the node types that the model says? */
static gnnc_status check_ends(const RtExec *x, const rt_space *s, const RtTable *t) {
    const RtBound *b = x->rt->bound;
    const char *src = x->program->spaces[s->src].name, *dst = x->program->spaces[s->dst].name;
    const char *has_src = b->data->nodes[t->src_type].name,
               *has_dst = b->data->nodes[t->dst_type].name;
    if (!strcmp(src, has_src) && !strcmp(dst, has_dst)) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_SHAPE,
                   "%s: edge type '%s' goes from '%s' to '%s', in the model from '%s' to '%s'",
                   b->dir, s->name, has_src, has_dst, src, dst);
}

/* Does the model need a type by this name, so that it must not get another? */
static bool is_named(const rt_program *p, rt_space_kind kind, const char *name) {
    for (int i = 0; i < p->n_spaces; i++)
        if (p->spaces[i].kind == kind && !strcmp(p->spaces[i].name, name)) return true;
    return false;
}

/* Writes which tables the data have instead, and how an import calls the only one as the model
 * does. */
static void put_tables(const RtExec *x, const rt_space *s, char *to, size_t cap) {
    const RtDataset *d = x->rt->bound->data;
    bool edge = s->kind == RT_SP_EDGE;
    const RtTable *t = s->kind == RT_SP_GRAPH ? d->graphs : edge ? d->edges : d->nodes;
    int n = s->kind == RT_SP_GRAPH ? d->n_graphs : edge ? d->n_edges : d->n_nodes;
    size_t used = 0;
    *to = '\0';
    for (int i = 0; i < n && i < 6 && used < cap; i++)
        used += (size_t)snprintf(to + used, cap - used, "%s'%.40s'", i ? ", " : "; the data have ",
                                 t[i].name);
    if (n > 6 && used < cap) snprintf(to + used, cap - used, ", ..");
    if (n == 1 && used < cap && s->kind != RT_SP_GRAPH && !is_named(x->program, s->kind, t->name))
        snprintf(to + used, cap - used, " (gnnc import --%s %s calls it so)",
                 edge ? "edge" : "node", s->name);
}

/* The pairs that held-out links are judged beside: a model does without. */
static bool is_negatives(const rt_program *p, const rt_space *s) {
    int b = rt_buf_find(p, RT_BUF_OUTPUT, "links.negatives");
    return b >= 0 && !strcmp(p->spaces[p->bufs[b].space].name, s->name);
}

/* Fails as the data lack the space's table, and says which tables they have. */
static gnnc_status missing_table(const RtExec *x, const rt_space *s) {
    char have[400];
    put_tables(x, s, have, sizeof have);
    if (is_negatives(x->program, s))
        return rt_fail(&x->rt->err, GNNC_E_MISSING,
                       "%s: no edge type '%s', the pairs that the model (%s) is judged by; without "
                       "'negatives = g.%s' and 'edge %s' it is judged by pairs that are drawn%s",
                       x->rt->bound->dir, s->name, x->program->source, s->name, s->name, have);
    return rt_fail(&x->rt->err, GNNC_E_MISSING, "%s: no %s '%s', which the model (%s) needs%s",
                   x->rt->bound->dir, kind_word(s->kind), s->name, x->program->source, have);
}

bool rt_bind_in_batches(const rt_program *p, int space) {
    for (int i = 0; i < p->n_spaces; i++) {
        const rt_space *s = &p->spaces[i];
        if (s->in_batches && (i == space || (s->first && s->whole == space))) return true;
    }
    return false;
}

/* Edges that nothing reads are none; so are those of a subgraph that only the whole graph's phases
 * read. */
static bool is_unread(const RtExec *x, int space) {
    const rt_space *s = &x->program->spaces[space];
    bool edges = s->kind == RT_SP_EDGE;
    return s->unread ||
           (x->rt->bound->for_request && edges && !rt_bind_in_batches(x->program, space));
}

/* A table without edges, for a relation that a program which serves can do without. */
static gnnc_status stand_in_edges(const RtExec *x, const rt_space *s, const RtTable **to) {
    RtTable *t = RT_NEW(&x->rt->pool, RtTable);
    if (!t) return rt_fail_nomem(&x->rt->err, "edges");
    t->name = s->name;
    *to = t;
    return GNNC_OK;
}

gnnc_status rt_bind_find_table(const RtExec *x, int space, const RtTable **to) {
    const rt_space *s = &x->program->spaces[space];
    *to = find_table(x->rt->bound->data, s);
    if (!*to && is_unread(x, space)) return stand_in_edges(x, s, to);
    if (!*to) return missing_table(x, s);
    return s->kind == RT_SP_EDGE ? check_ends(x, s, *to) : GNNC_OK;
}
