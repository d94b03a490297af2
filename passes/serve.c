/* Serving: predictions of some rows, from their neighbourhoods alone, equal to those of all rows.
 *
 *     @predict                                     @load
 *       %d = segment sum dst(cites) %one             %d = segment sum dst(cites) %one
 *       %h = gather src(cites) (x @ W)               output "whole.degree.cites" %d
 *       %s = segment sum dst(cites) %h       ->    @predict, over the rows asked for
 *       %y = div %s %d                               %d = saved "whole.degree.cites"
 *       output "pred" %y                             %h = gather src(cites) (x @ W)
 *                                                    %s = segment sum dst(cites) %h
 *                                                    %y = div %s %d
 *                                                    output "pred" (first paper.0 of %y)
 *
 * The runtime draws, for each row asked for, all in-edges of as many hops as @predict reads, and
 * `trim` cuts each layer to the rows that later ones need.  Of the last hop's nodes the in-edges
 * are not there.  So what a value needs of the whole graph is computed over the whole graph, and
 * kept as a column: numbers of a node that its edges' data tell (degrees, normalisation), in @load;
 * sums over all rows, ranks, loops, functions in C and all else that is not made row by
 * row, in @load, or in @encode where it depends on parameters.  @predict reads these columns by its
 * rows (runtime/batch/minibatch.h), as it reads columns of the data and parameters with a row for
 * each node.
 *
 * Of rows of graphs the batch is the graphs that are asked for, with all their nodes and edges:
 * only what looks across graphs is computed over all of them.
 *
 * Rows by time, and all rows with --draw, draw their neighbours as training does, already; nothing
 * else than @predict is left of such a program.  Links are serve_links.c's.  Cf. layer-wise
 * inference of PyTorch Geometric and DGL, which computes all rows for the sake of one. */
#include "passes/serve.h"

#include <string.h>

/* ---- what is made row by row -------- */
/* Whether the space is rows of data, or a dimension as long as there are rows. */
bool pass_serve_is_rows(const Space *s) {
    return s->kind != SP_DIM || expr_counts_rows(s->size);
}

/* Whether a batch is whole graphs, with nothing sampled around them. */
static bool batches_graphs(const Module *m) {
    return m->recipe.sample.n_hops == 0 && !m->recipe.sample.train_links;
}

/* Whether a batch is a graph of links, or a part of it that has all edges at what is requested. */
static bool batches_subgraph(const Module *m) {
    return m->recipe.sample.n_hops == 0 && m->recipe.sample.train_links;
}

/* Whether a batch has all edges of the relation into its nodes, but for the last hop's. */
static bool has_batch_edges(const Module *m, const Space *s) {
    if (space_of_batch(s)) return false;
    if (batches_graphs(m) && (!s->src->graph || !s->dst->graph)) return false;
    if (space_is_sampled(m, s)) return true;
    bool turned = s->rel == REL_REVERSE || s->rel == REL_UNDIRECTED;
    if (turned && !batches_graphs(m) && !batches_subgraph(m)) return false;
    if (s->rel == REL_WHERE && !space_is_sampled(m, s->base[0])) return false;
    return has_batch_edges(m, s->base[0]) && (!s->base[1] || has_batch_edges(m, s->base[1]));
}

/* Whether values over the space can be computed for a batch: it is a dimension, or rows of it can
 * be in a batch. */
static bool is_batch_space(const Module *m, const Space *s) {
    if (!pass_serve_is_rows(s)) return true;
    if (s->kind == SP_NODE) return !batches_graphs(m) || s->graph;
    if (s->kind == SP_GRAPH) return batches_graphs(m);
    return s->kind == SP_EDGE && has_batch_edges(m, s);
}

/* The number of spaces of rows of a type. */
static int n_row_spaces(const Type *t) {
    int n = 0;
    for (int i = 0; i < t->rank; i++) n += pass_serve_is_rows(t->dim[i]);
    return n;
}

/* Whether a batch can have values of the type. */
static bool has_batch_type(const Module *m, const Type *t) {
    for (int i = 0; i < t->rank; i++)
        if (!is_batch_space(m, t->dim[i])) return false;
    return n_row_spaces(t) <= 1;
}

/* Whether the result depends on the number of rows, or on a row's own number. */
bool pass_serve_depends_on_count(const Op *op) {
    for (int i = 0; i < op->n_over; i++)
        if (pass_serve_is_rows(op->over[i])) return true;
    if (op->kind == OP_IOTA) return n_row_spaces(&op->type) > 0;
    return op->kind == OP_INDEX && op->map->kind != MAP_COL;
}

/* Whether the map is known in a batch. Sampled edges know their position among all edges, but not
 * the edge of the data they come from; derived edges do. */
static bool is_batch_map(const Module *m, const Map *map) {
    if (!is_batch_space(m, map->from)) return false;
    if (map->kind == MAP_ORIG) return !space_is_sampled(m, map->from);
    if (map->kind == MAP_GRAPH) return batches_graphs(m);
    return map->kind == MAP_SRC || map->kind == MAP_DST || map->kind == MAP_COL;
}

/* Whether the operation sums over rows that the result lacks. */
bool pass_serve_sums_rows(const Op *op) {
    for (int i = 0; i < op->n_in && !op->map; i++)
        for (int d = 0; d < op->in[i]->type.rank; d++)
            if (pass_serve_is_rows(op->in[i]->type.dim[d]) &&
                !type_has(&op->type, op->in[i]->type.dim[d]))
                return true;
    return false;
}

/* Whether @predict can read the value by row. */
static bool can_be_saved(const Serve *s, const Op *op) {
    const Type *t = &op->type;
    if (t->layout == LAYOUT_CSR || n_row_spaces(t) > 1) return false;
    if (n_row_spaces(t) == 0) return true;
    const Space *rows = t->dim[0];
    if (rows->kind == SP_GRAPH) return batches_graphs(s->m);
    return rows->kind == SP_NODE || (rows->kind == SP_EDGE && space_is_sampled(s->m, rows));
}

/* Whether the segment sum runs over edges into rows that the batch has all of. A graph comes with
 * all its rows, and what is sampled for a row is no other row's. */
static bool sums_complete_rows(const Serve *s, const Op *op) {
    if (op->map->kind == MAP_DST || (s->trees && op->map->kind == MAP_SRC)) return true;
    if (batches_subgraph(s->m)) return op->map->kind == MAP_SRC;
    return batches_graphs(s->m) && (op->map->kind == MAP_SRC || op->map->kind == MAP_GRAPH);
}

/* Whether a batch can compute the operation row by row. */
static bool is_rowwise(const Serve *s, const Op *op) {
    bool source = op->kind == OP_CONST || op->kind == OP_DATA || op->kind == OP_VAR ||
                  op->kind == OP_INPUT || op->kind == OP_SIZE || op->kind == OP_IOTA ||
                  op->kind == OP_VALID || op->kind == OP_INDEX || op->kind == OP_CONCAT ||
                  op->kind == OP_SLICE;
    if (!source && !op_has(op, OPT_ELEM | OPT_INDEX | OPT_REDUCE | OPT_VIEW)) return false;
    if (!has_batch_type(s->m, &op->type) || pass_serve_depends_on_count(op) ||
        pass_serve_sums_rows(op))
        return false;
    if (op->map && !is_batch_map(s->m, op->map)) return false;
    if (op->kind == OP_VAR && !can_be_saved(s, op)) return false; /* with rows of its own */
    return op->kind != OP_SEGMENT || sums_complete_rows(s, op);
}

/* Whether the value must be computed over the full graph. */
static bool needs_full_graph(const Serve *s, const Op *op) {
    bool invariant = true;
    for (int i = 0; i < op->n_in; i++) {
        const ServeFact *x = &s->fact[op->in[i]->id];
        if (x->full_graph && !can_be_saved(s, op->in[i])) return true;
        invariant &= x->invariant;
    }
    bool counts = op->kind == OP_SEGMENT && invariant && op->type.rank == 1;
    return !is_rowwise(s, op) || (counts && !batches_graphs(s->m));
}

/* How many hops the value's rows are from those of its operands: sources of edges are one further.
 * Edges come with the hop that samples them for their destination. */
static int hops_of(const Op *op, int operands) {
    if (op->kind == OP_GATHER && op->map->kind == MAP_SRC) return operands + 1;
    return op->kind == OP_SEGMENT && operands < 1 ? 1 : operands;
}

/* Allocates the facts and finds what is invariant. */
void pass_serve_begin_facts(Serve *s) {
    func_number(s->f);
    s->fact = NEWN(s->p->a, ServeFact, (size_t)s->f->n_ops + 1);
    s->marks = ir_marks_new(s->p->a, s->f->n_ops);
    for (Op *op = s->f->first; op; op = op->next) {
        ServeFact *x = &s->fact[op->id];
        x->invariant = !pass_may_vary(op);
        for (int i = 0; i < op->n_in; i++) x->invariant &= s->fact[op->in[i]->id].invariant;
    }
}

/* Finds which values need the full graph, and how many hops others are made of. */
static void find_facts(Serve *s) {
    pass_serve_begin_facts(s);
    for (Op *op = s->f->first; op; op = op->next) {
        ServeFact *x = &s->fact[op->id];
        x->full_graph = !op_has(op, OPT_EFFECT) && needs_full_graph(s, op);
        for (int i = 0; i < op->n_in && !x->full_graph; i++) {
            const ServeFact *y = &s->fact[op->in[i]->id];
            if (y->hops > x->hops) x->hops = y->hops;
        }
        if (!x->full_graph) x->hops = hops_of(op, x->hops);
    }
}

/* ---- what is computed over the whole graph -------- */
/* In the order in which they are run. */
static const Phase kept_phases[] = {PHASE_LOAD, PHASE_ENCODE, PHASE_ENDS};

/* The position of a phase among those that save values. */
static int phase_order(Phase phase) {
    int i = 0;
    while (kept_phases[i] != phase) i++;
    return i;
}

/* The function of the phase, created in its order if necessary. */
static Func *saving_func(Serve *s, Phase phase) {
    Func *f = func_of(s->m, phase);
    if (f) return f;
    f = func_new_phase(s->m, phase);
    int first = 0;
    for (int i = 0; i < phase_order(phase); i++) first += func_of(s->m, kept_phases[i]) != NULL;
    for (int i = s->m->funcs.n - 1; i > first; i--) s->m->funcs.v[i] = s->m->funcs.v[i - 1];
    s->m->funcs.v[first] = f;
    return f;
}

/* Whether the walk may enter: the operation is not copied yet. */
static bool is_new(void *user, const Op *op) {
    (void)user;
    return !op->tag;
}

/* The equal operation that exists already, or the copy. */
static Op *merge_copy(OpTable *known, Op *copy) {
    if (op_acts(copy) || op_has(copy, OPT_NOCSE)) return copy;
    Op *first = pass_table_add(known, copy);
    if (first != copy) op_remove(copy);
    return first;
}

/* Copies the computation of op into another function. Tags remember the copies, of one function at
 * a time. */
static Op *copy_into(Serve *s, Builder *b, Op *op) {
    IrOps missing = ir_walk(s->p->a, &s->marks, op, is_new, NULL);
    OpTable *known = &s->known[phase_order(b->f->phase)];
    known->a = s->p->a;
    for (int i = 0; i < missing.n; i++) {
        Op *x = missing.v[i];
        if (x->tag) continue;
        Op proto = *x;
        proto.tag = NULL;
        proto.in = NEWN(s->p->a, Op *, (size_t)x->n_in);
        for (int k = 0; k < x->n_in; k++) proto.in[k] = x->in[k]->tag;
        b_like(b, x);
        x->tag = merge_copy(known, b_op(b, &proto));
    }
    return op->tag;
}

/* Whether the value is the constant 1. */
static bool is_ones(const Op *op) {
    if (op->kind == OP_COPY) op = op->in[0];
    return op->kind == OP_CONST && op->imm == 1;
}

/* The name of a saved value, by which people give it with a subgraph: "whole.degree.cites". */
static const char *new_name(Serve *s, const Func *f, const Op *op) {
    Arena *a = s->m->a;
    bool counts = op->kind == OP_SEGMENT && op->red == RED_SUM && is_ones(op->in[0]);
    const char *what = op->hint ? op->hint : op_mnemonic(op->kind);
    const Space *rows = n_row_spaces(&op->type) ? op->type.dim[0] : NULL;
    if (counts)
        what = arena_printf(a, "degree.%s", op->map->from->name);
    else if (!op->hint && rows)
        what = arena_printf(a, "%s.%s", what, rows->name);
    const char *prefix = f->phase == PHASE_ENDS ? "ends" : "whole";
    const char *base = arena_printf(a, "%s.%s", prefix, what), *name = base;
    for (int k = 2; module_saved(s->m, name); k++) name = arena_printf(a, "%s.%d", base, k);
    return name;
}

/* Whether the output is a saved value of this pass. */
static bool is_saved_value(const Op *out) {
    return out->use.role == OUT_EMBED || strncmp(out->name, "whole.", 6) == 0 ||
           strncmp(out->name, "ends.", 5) == 0;
}

/* The name under which the value is saved; @predict and @embed may share one. */
static const char *saved_name(Serve *s, Builder *b, const Op *op, Op *value) {
    for (const Op *out = b->f->first; out; out = out->next)
        if (out->kind == OP_OUTPUT && out->in[0] == value && is_saved_value(out)) return out->name;
    const char *name = new_name(s, b->f, op);
    b_output(b, name, value);
    return name;
}

/* The phase that computes a saved value. */
static Phase phase_for(const Serve *s, bool invariant) {
    return s->in_ends ? PHASE_ENDS : invariant ? PHASE_LOAD : PHASE_ENCODE;
}

/* When that phase runs, in words. */
static const char *phase_text(Phase phase) {
    return phase == PHASE_LOAD     ? "over the whole graph, when data are loaded"
           : phase == PHASE_ENCODE ? "over the whole graph, when weights are"
                                   : "once for all pairs of a graph, or of a part that is brought";
}

/* Saves a value and reads it in @predict. */
static void save_value(Serve *s, Builder *b, Op *op) {
    Op *value = copy_into(s, b, op);
    b_like(b, op);
    const char *name = saved_name(s, b, op, value);
    Builder here = b_for(s->m, s->f, op, op);
    s->fact[op->id].saved = b_saved(&here, name, op->type);
    s->fact[op->id].saved->hint = op->hint;
    pass_remark(s->p, op->span, "serve", "'%s' is computed %s",
                op->hint ? op->hint : op_mnemonic(op->kind), phase_text(b->f->phase));
}

/* Saves the full-graph values that rowwise operations read, of those that are invariant or not. */
static void save_values(Serve *s, bool invariant) {
    VEC(Op *) found = {0};
    for (Op *op = s->f->first; op; op = op->next) {
        const ServeFact *x = &s->fact[op->id];
        for (int i = 0; i < op->n_in && !x->full_graph; i++) {
            const ServeFact *y = &s->fact[op->in[i]->id];
            bool wanted = y->full_graph && y->invariant == invariant && !op->in[i]->tag;
            if (!wanted) continue;
            op->in[i]->tag = op; /* once */
            vec_push(s->p->a, &found, op->in[i]);
        }
    }
    for (int i = 0; i < found.n; i++) found.v[i]->tag = NULL;
    if (!found.n) return;
    Func *f = saving_func(s, phase_for(s, invariant));
    Builder b = {.m = s->m, .f = f};
    for (int i = 0; i < found.n; i++) save_value(s, &b, found.v[i]);
    for (Op *op = s->f->first; op; op = op->next) op->tag = NULL;
}

/* Replaces the saved values in their users. */
static void read_saved(Serve *s) {
    for (Op *op = s->f->first; op; op = op->next)
        for (int i = 0; i < op->n_in; i++) {
            Op *x = op->in[i];
            if (x->id < s->f->n_ops && s->fact[x->id].saved && x->kind != OP_SAVED)
                op->in[i] = s->fact[x->id].saved;
        }
}

/* Saves an output of @embed, once for all rows. False after a diagnostic. */
static bool keep_layer(Serve *s, Op *out) {
    if (s->fact[out->in[0]->id].on_links) {
        diag_add(s->p->ctx, DIAG_E0516, out->span,
                 "'%s' depends on the pairs that are scored: it is no layer of rows", out->use.of);
        return false;
    }
    Builder b = {.m = s->m, .f = saving_func(s, phase_for(s, s->fact[out->in[0]->id].invariant))};
    Op *value = copy_into(s, &b, out->in[0]);
    b_like(&b, out);
    b_output_as(&b, out->name, out->use, value);
    return true;
}

/* Removes a function from the module. */
static void remove_func(Module *m, const Func *f) {
    int n = 0;
    for (int i = 0; i < m->funcs.n; i++)
        if (m->funcs.v[i] != f) m->funcs.v[n++] = m->funcs.v[i];
    m->funcs.n = n;
}

/* Saves all outputs of @embed. */
bool pass_serve_keep_layers(Serve *s, Func *layers) {
    Serve serve = *s;
    bool ok = true;
    serve.f = layers;
    pass_serve_begin_facts(&serve);
    for (Op *op = layers->first; op; op = op->next) {
        ServeFact *x = &serve.fact[op->id];
        x->on_links = pass_is_sampled(op);
        for (int i = 0; i < op->n_in; i++) x->on_links |= serve.fact[op->in[i]->id].on_links;
    }
    for (int encode = 0; encode < 2; encode++) {
        for (Op *op = layers->first; op; op = op->next)
            if (op->kind == OP_OUTPUT && serve.fact[op->in[0]->id].invariant != encode)
                ok = keep_layer(&serve, op) && ok;
        for (Op *op = layers->first; op; op = op->next) op->tag = NULL;
    }
    remove_func(s->m, layers);
    memcpy(s->known, serve.known, sizeof s->known);
    return ok;
}

/* Saves all full-graph values and reads them. */
void pass_serve_save_full(Serve *s) {
    save_values(s, true);
    save_values(s, false);
    read_saved(s);
    pass_dce_func(s->p->a, s->f);
}

/* Computes what @ends needs of the full graph over the full graph. */
void pass_serve_ends(Serve *s) {
    Serve serve = {.p = s->p, .m = s->m, .f = func_of(s->m, PHASE_ENDS)};
    if (!serve.f) return;
    find_facts(&serve);
    pass_serve_save_full(&serve);
}

/* Copies a computation of another function to the end of @ends. */
Op *pass_serve_copy_to_ends(Serve *s, Op *op, Builder *b) {
    *b = (Builder){.m = s->m, .f = saving_func(s, PHASE_ENDS)};
    return copy_into(s, b, op);
}

/* ---- what is drawn -------- */
/* Marks the sampled relations that a space is derived from. */
static void mark_sampled(const Module *m, const Space *s, bool *read) {
    if (!s || s->kind != SP_EDGE || read[s->id]) return;
    read[s->id] = true;
    if (space_is_sampled(m, s)) return;
    mark_sampled(m, s->base[0], read);
    mark_sampled(m, s->base[1], read);
}

/* Marks the relations that a function reads. */
static void mark_read(Serve *s, const Func *f, bool *read) {
    for (const Op *op = f->first; op; op = op->next) {
        if (op->map) mark_sampled(s->m, op->map->from, read);
        for (int d = 0; d < op->type.rank; d++) mark_sampled(s->m, op->type.dim[d], read);
    }
}

/* Whether the function runs over a batch of rows. */
static bool runs_over_batches(const Func *f) {
    return f->phase == PHASE_PREDICT || f->phase == PHASE_EMBED;
}

/* By space id: the relations that @predict and @embed read. */
static const bool *find_read(Serve *s) {
    bool *read = NEWN(s->p->a, bool, (size_t)s->m->spaces.n + 1);
    for (int i = 0; i < s->m->funcs.n; i++)
        if (runs_over_batches(s->m->funcs.v[i])) mark_read(s, s->m->funcs.v[i], read);
    return read;
}

/* Makes batches sample all in-edges along the relations that are read, none along others. */
static void sample_all(Serve *s, int hops) {
    Sampling *how = &s->m->recipe.sample;
    how->n_hops = hops > 0 ? hops : 1;
    const bool *read = find_read(s);
    int64_t *all = NEWN(s->m->a, int64_t, (size_t)how->n_hops);
    int64_t *none = NEWN(s->m->a, int64_t, (size_t)how->n_hops);
    for (int i = 0; i < how->n_hops; i++) all[i] = -1;
    for (int i = 0; i < s->m->spaces.n; i++) {
        Space *rel = s->m->spaces.v[i];
        if (!space_is_sampled(s->m, rel)) continue;
        SampleRel entry = {.rel = rel, .fanout = read[i] && hops > 0 ? all : none};
        vec_push(s->m->a, &how->rels, entry);
    }
}

/* ---- the program -------- */
/* Whether a serving program needs the function. */
static bool is_served_func(const Module *m, const Func *f) {
    if (f->phase == PHASE_LOAD || f->phase == PHASE_REFRESH || runs_over_batches(f)) return true;
    for (int i = 0; f->body && i < m->funcs.n; i++)
        for (const Op *op = m->funcs.v[i]->first; op; op = op->next)
            if (op->kind == OP_LOOP && op->body == f && is_served_func(m, m->funcs.v[i]))
                return true;
    return false;
}

/* Removes the functions that serving does not need. */
static void keep_prediction(Module *m) {
    int n = 0;
    for (int i = 0; i < m->funcs.n; i++)
        if (is_served_func(m, m->funcs.v[i])) m->funcs.v[n++] = m->funcs.v[i];
    m->funcs.n = n;
}

/* Whether a request can name rows of the space. */
static bool is_request_space(const Space *s) {
    return s->kind == SP_NODE || s->kind == SP_GRAPH;
}

/* The rows that are predicted; NULL: they are links. */
static Space *rows_of(const Op *pred) {
    Space *s = pred->type.rank ? pred->type.dim[0] : NULL;
    return s && is_request_space(s) && n_row_spaces(&pred->type) == 1 ? s : NULL;
}

/* Whether the operation has an effect on all rows of a batch together, whichever they are. */
static bool acts_on_batches(const Serve *s, const Op *op) {
    if (op->kind == OP_CALL_EFFECT) return n_row_spaces(&op->type) > 0 || pass_serve_sums_rows(op);
    for (int i = 0; i < op->n_in && s->fact; i++)
        if (s->fact[op->in[i]->id].full_graph && !can_be_saved(s, op->in[i])) return true;
    return false;
}

/* Checks that no row's prediction depends on which others are requested with it. False after a
 * diagnostic. */
static bool check_row_independence(const Serve *s, bool drawn) {
    for (const Op *op = s->f->first; op; op = op->next) {
        bool effect = op_has(op, OPT_EFFECT);
        bool of_seeds = op->kind == OP_SLICE && op->over[1]->prefix_of == op->over[0];
        if (effect ? !acts_on_batches(s, op) : !drawn || of_seeds || is_rowwise(s, op)) continue;
        diag_add(s->p->ctx, DIAG_E0516, op->span,
                 "what is predicted of a row would depend on which others are predicted with it");
        return false;
    }
    return true;
}

/* Checks that an output has a row for each row of a request. What is computed over the whole
 * graph (at_once) has none, unless it can be saved when data are loaded. False after a
 * diagnostic. */
static bool check_row_output(Serve *s, const Op *out) {
    const Type *t = &out->in[0]->type;
    bool rows = t->rank && is_batch_space(s->m, t->dim[0]) && is_request_space(t->dim[0]) &&
                n_row_spaces(t) == 1;
    bool at_once = s->fact[out->in[0]->id].full_graph && !can_be_saved(s, out->in[0]);
    if (rows && !at_once) return true;
    diag_add(s->p->ctx, DIAG_E0516, out->span, "'%s' cannot be kept by row", out->name);
    return false;
}

/* Makes @predict or @embed run over batches, and finds its number of hops. */
static bool serve_rows(Serve *s, Func *f, int *max_hops) {
    s->f = f;
    find_facts(s);
    if (!check_row_independence(s, false)) return false;
    for (Op *op = f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT) continue;
        if (!check_row_output(s, op)) return false;
        op->use.hops = batches_graphs(s->m) ? 0 : s->fact[op->in[0]->id].hops;
        if (op->use.hops > *max_hops) *max_hops = op->use.hops;
    }
    pass_serve_save_full(s);
    return true;
}

/* Makes outputs give the first rows of a batch, those requested. */
static void output_first_rows(Serve *s, Func *f) {
    for (Op *op = f->first; op; op = op->next) {
        if (op->kind != OP_OUTPUT) continue;
        Builder b = b_for(s->m, f, op, op);
        Space *rows = op->in[0]->type.dim[0];
        op->in[0] = b_slice(&b, op->in[0], rows, space_prefix(s->m, rows, 0, op->span),
                            expr_const(s->m->a, 0));
        pass_remark(s->p, op->span, "serve", "a row of '%s' is made of %d hops", op->name,
                    op->use.hops);
    }
}

/* Makes a program of sampled rows a serving one: the batch has all that a row is made of. */
static bool serve_sampled(Serve *s) {
    for (int i = 0; i < s->m->funcs.n; i++) {
        s->f = s->m->funcs.v[i];
        if (!runs_over_batches(s->f)) continue;
        if (!check_row_independence(s, true)) return false;
        for (Op *op = s->f->first; op; op = op->next)
            if (op->kind == OP_OUTPUT) op->use.hops = s->m->recipe.sample.n_hops;
    }
    return true;
}

/* Reports a prediction that cannot be served; false. */
static bool refuse(PassCtx *p, const Op *out) {
    diag_add(p->ctx, DIAG_E0516, out->span,
             "'pred' has no row for each node of a type, each graph, or each link that is scored");
    return false;
}

/* Removes labels and splits from the recipe: serving reads neither. */
void pass_serve_forget_labels(Module *m) {
    m->recipe.learned = m->recipe.target;
    m->recipe.target = m->recipe.keep_metric = NULL;
}

/* Makes the module a serving program: links, sampled rows, or rows with all their in-edges. */
static bool run(PassCtx *p, Module *m) {
    Func *f = func_of(m, PHASE_PREDICT), *layers = func_of(m, PHASE_EMBED);
    Op *out = f ? func_output_of(f, OUT_PRED) : NULL;
    bool drawn = f && module_runs_on_batches(m, PHASE_PREDICT); /* by time, or as --draw says */
    if (!out) {
        diag_add(p->ctx, DIAG_E0516, (Span){0}, "the model has no @predict to serve");
        return false;
    }
    keep_prediction(m);
    pass_dce_func(p->a, f);
    if (layers) pass_dce_func(p->a, layers);
    Serve s = {.p = p, .m = m, .f = f};
    Space *rows = rows_of(out->in[0]);
    bool links = out->in[0]->type.rank == 1 && space_is_drawn(out->in[0]->type.dim[0]);
    if (links) return pass_serve_links(&s, out, drawn);
    if (!rows || (drawn && !rows->prefix_of)) return refuse(p, out);
    pass_serve_forget_labels(m);
    m->recipe.sample.serve = true;
    m->recipe.sample.disjoint |= drawn; /* what a row sees is its own */
    s.trees = drawn;
    if (drawn) return serve_sampled(&s);
    bool graphs = rows->kind == SP_GRAPH;
    m->recipe.sample = (Sampling){.batch = 1, .n_hops = !graphs, .serve = true};
    if (graphs) m->recipe.sample.edges = SAMPLE_INDUCED;
    m->recipe.sample.disjoint = graphs; /* one that is asked for twice is there twice */
    int hops = 0;
    if (!serve_rows(&s, f, &hops) || (layers && !serve_rows(&s, layers, &hops))) return false;
    if (graphs) return true;
    sample_all(&s, hops);
    output_first_rows(&s, f);
    if (layers) output_first_rows(&s, layers);
    return true;
}

const Pass pass_serve = {
    .name = "serve",
    .summary = "make @predict predict rows by themselves",
    .needs = IR_TYPED,
    .breaks = IR_FUSED,
    .run = run,
    .required = true,
};
