/* What a model reads and gives, in words: for the header of its library, for its Python package. */
#include <inttypes.h>
#include <string.h>

#include "codegen/host/host.h"

/* The space of the full graph that a space of a batch is the first rows of, or s itself. */
static const Space *full_space(const Space *s) {
    return s->prefix_of ? s->prefix_of : s;
}

/* The size of the full graph's space that s stands for if the model fixes it; -1: data or weights
 * bring it. */
int64_t host_known_size(const Space *s) {
    int64_t size;
    return expr_is_const(full_space(s)->size, &size) ? size : -1;
}

/* Writes the dimensions of type t from number `from` on, as "[paper, F = 1433]"; nothing if there
 * are none. */
static void put_shape(Host *h, const Type *t, int from) {
    for (int i = from; i < t->rank; i++) {
        host_puts(h, i > from ? ", " : "[");
        host_comment(h, full_space(t->dim[i])->name);
        if (host_known_size(t->dim[i]) >= 0)
            host_printf(h, " = %" PRId64, host_known_size(t->dim[i]));
    }
    if (t->rank > from) host_puts(h, "]");
}

/* ---- what it reads ------------------------------------------------------------------------- */
/* Writes a line about a column of the data: its name, kind, number of categories and shape.
 * is_label: only training and evaluation need it. */
static void put_column(Host *h, const Column *c, bool is_label) {
    host_puts(h, "      ");
    host_comment(h, c->name);
    host_printf(h, ": %s", column_facts[c->kind].said);
    if (c->cat) {
        host_puts(h, "[");
        host_comment(h, c->cat->name);
        host_puts(h, "]");
    }
    put_shape(h, &c->type, 1);
    host_puts(h, is_label ? "    (to train and evaluate)\n" : "\n");
}

/* The kind of data table that has a row for each element of the space; HOST_NO_TABLE: it is derived
 * from others. */
HostTable host_table(const Space *s) {
    bool edges = s->kind == SP_EDGE && s->rel == REL_BASE;
    if (s->prefix_of) return HOST_NO_TABLE;
    return edges                 ? HOST_EDGES
           : s->kind == SP_NODE  ? HOST_NODES
           : s->kind == SP_GRAPH ? HOST_GRAPHS
                                 : HOST_NO_TABLE;
}

/* Writes a line about a table of the data: its kind and name, and for edges the node types that
 * these join. */
static void put_table(Host *h, const Space *s) {
    static const char *const words[] = {
        [HOST_NODES] = "node", [HOST_EDGES] = "edge", [HOST_GRAPHS] = "graph"};
    host_printf(h, "    %s ", words[host_table(s)]);
    host_comment(h, s->name);
    if (host_table(s) == HOST_EDGES) {
        host_puts(h, ": ");
        host_comment(h, s->src->name);
        host_puts(h, " -> ");
        host_comment(h, s->dst->name);
    }
    host_puts(h, "\n");
}

/* Lists all tables of the data and their columns, a line each. */
static void put_inputs(Host *h) {
    const bool *labels = host_labels(h->a, h->m);
    host_puts(h, "\nIt reads\n");
    for (int i = 0; i < h->m->spaces.n; i++) {
        const Space *s = h->m->spaces.v[i];
        if (!host_table(s)) continue;
        put_table(h, s);
        for (int k = 0; k < h->m->cols.n; k++)
            if (h->m->cols.v[k]->space == s) put_column(h, h->m->cols.v[k], labels[k]);
    }
}

/* ---- what it gives -------------------------------------------------------------------------- */
/* The name under which a user can ask for the contents of buffer b, a prediction or a hidden layer;
 * NULL: it holds neither. */
static const char *result_name(const PBuf *b) {
    bool output = b->kind == PB_OUTPUT || b->kind == PB_SAVED;
    bool given = output && (b->use.role == OUT_PRED || b->use.role == OUT_EMBED);
    return !given ? NULL : b->use.role == OUT_EMBED && b->use.of ? b->use.of : b->io_name;
}

/* The name of the prediction or hidden layer in buffer i; NULL: it holds none, or an earlier buffer
 * has the same one. */
const char *host_given(const Plan *p, int i) {
    const PBuf *b = p->bufs.v[i];
    const char *name = result_name(b);
    for (int k = 0; k < i && name; k++) {
        const char *before = result_name(p->bufs.v[k]);
        if (before && !strcmp(before, name) && p->bufs.v[k]->use.role == b->use.role) return NULL;
    }
    return name;
}

/* Lists the model's predictions and hidden layers with their shapes, a line each. predict, embed:
 * the names of the functions that return these. */
static void put_outputs(Host *h, const char *predict, const char *embed) {
    host_puts(h, "\nIt gives, as f32\n");
    for (int i = 0; i < h->p->bufs.n; i++) {
        const char *name = host_given(h->p, i);
        if (!name) continue;
        host_puts(h, "    ");
        host_comment(h, name);
        put_shape(h, &h->p->bufs.v[i]->type, 0);
        host_printf(h, "    %s\n", h->p->bufs.v[i]->use.role == OUT_PRED ? predict : embed);
    }
}

/* The model's name: what its recipe says, else the module's. */
const char *host_model_name(const Plan *p) {
    return p->m->recipe.model_name ? p->m->recipe.model_name : p->m->name;
}

/* Writes a sentence with the model's name, its source file, and the options it was compiled
 * with. */
void host_title(Host *h) {
    host_puts(h, "The model ");
    host_comment(h, host_model_name(h->p));
    host_puts(h, " of ");
    host_comment(h, h->m->source_path ? h->m->source_path : h->m->name);
    host_puts(h, ", compiled by gnnc");
    if (h->p->options) {
        host_puts(h, " ");
        host_comment(h, h->p->options);
    }
    host_puts(h, ".\n");
}

/* Writes what the model reads and what it returns. predict, embed: the names of the functions that
 * return predictions and hidden layers. */
void host_describe(Host *h, const char *predict, const char *embed) {
    put_inputs(h);
    put_outputs(h, predict, embed);
}
