/* Serving links: scores of pairs that a request brings.
 *
 *     @predict, over pairs p                       @ends
 *       %h = contract %x %W       [v, F]             %h = contract %x %W
 *       %a = gather src(p) %h     [p, F]             output "ends.h" %h
 *       %b = gather dst(p) %h     [p, F]     ->    @predict, over the pairs that are brought
 *       %y = contract %a %b       [p]                %h = saved "ends.h"
 *       output "pred" %y                             %a = gather src(p) %h
 *                                                    ..
 *
 * What does not depend on the pairs is computed in @ends, once over a graph, or over the part of it
 * that a request brings; of that, what needs the whole graph in @load and @encode, as serve.c says.
 * What is left reads it by a pair's ends.
 *
 * A pair that is brought need not be an edge of the data.  What kind of link it is the runtime
 * reads off any edge of that kind; other columns of the links come with the request.
 *
 * Links by time draw what is around a pair at its time, as their training does, in a tree of its
 * own; nothing else than @predict is left of such a program. */
#include <string.h>

#include "passes/serve.h"

/* ---- what kind a link is of -------- */
/* Whether the operation passes a link's kind on. */
static bool passes_kind(const Op *op) {
    return op->kind == OP_SELECT || op->kind == OP_VALID ||
           (op->kind == OP_GATHER && op->map->kind == MAP_ORIG);
}

/* Lets a walk enter everything. */
static bool enter_all(void *user, const Op *op) {
    (void)user;
    (void)op;
    return true;
}

/* The column of edges that @load computes the kinds of links from; NULL: there is none, or not one
 * alone. */
static const char *kind_column(const Serve *s) {
    Func *load = func_of(s->m, PHASE_LOAD);
    Op *out = load ? func_output(load, "links.kind") : NULL;
    const char *name = NULL;
    if (!out) return NULL;
    func_number(load);
    IrMarks marks = ir_marks_new(s->p->a, load->n_ops);
    IrOps of = ir_walk(s->p->a, &marks, out->in[0], enter_all, NULL);
    for (int i = 0; i < of.n; i++) {
        const Op *op = of.v[i];
        if (op->kind != OP_DATA && !passes_kind(op)) return NULL;
        if (op->kind != OP_DATA) continue;
        if (name && strcmp(name, op->col->name) != 0) return NULL;
        name = op->col->name;
    }
    return name;
}

/* Whether the column tells the kind. */
static bool is_kind(const Column *c, const char *kind) {
    return kind && strcmp(c->name, kind) == 0;
}

/* Whether the value is equal for all edges of one kind. The relation of a union that an edge comes
 * from is a part of its kind. */
static bool depends_on_kind(const Serve *s, const Op *op, const char *kind) {
    if (op->kind == OP_DATA) return op->col->space->kind == SP_EDGE && is_kind(op->col, kind);
    bool keeps = op->kind == OP_CONST || op_has(op, OPT_ELEM) || passes_kind(op);
    for (int i = 0; i < op->n_in; i++) keeps &= s->fact[op->in[i]->id].kind_only;
    return keeps;
}

/* Finds for each value of @predict whether it depends on the links, and on their kind alone. */
static void find_facts(Serve *s, const char *kind) {
    pass_serve_begin_facts(s);
    for (Op *op = s->f->first; op; op = op->next) {
        ServeFact *x = &s->fact[op->id];
        bool source = op_has(op, OPT_SOURCE) || op->kind == OP_CONST || op->kind == OP_SIZE;
        x->on_links = pass_is_sampled(op);
        for (int i = 0; i < op->n_in; i++) x->on_links |= s->fact[op->in[i]->id].on_links;
        x->kind_only = depends_on_kind(s, op, kind);
        x->full_graph = !x->on_links && !source && !op_has(op, OPT_EFFECT);
    }
}

/* ---- what may be asked of a pair -------- */
/* Whether the operation sums over links. */
static bool sums_links(const Op *op) {
    for (int i = 0; i < op->n_in; i++)
        for (int d = 0; d < op->in[i]->type.rank; d++) {
            const Space *x = op->in[i]->type.dim[d];
            if (space_is_drawn(x) && !type_has(&op->type, x)) return true;
        }
    return false;
}

/* Whether the kind of operation can be computed row by row. */
static bool is_rowwise_kind(const Op *op) {
    bool source = op_has(op, OPT_SOURCE) || op->kind == OP_CONST || op->kind == OP_VALID;
    return source || op_has(op, OPT_ELEM | OPT_INDEX | OPT_REDUCE | OPT_VIEW);
}

/* Whether the value of a pair depends on no other pair. */
static bool is_pairwise(const Op *op) {
    if (op->kind == OP_CONCAT || op->kind == OP_SLICE)
        return !space_is_drawn(op->over[0]) && !space_is_drawn(op->over[op->n_over - 1]);
    if (op->kind == OP_IOTA || op->kind == OP_SIZE || op->kind == OP_SEGMENT) return false;
    return is_rowwise_kind(op) && !sums_links(op);
}

/* Whether the operation joins or takes the first rows of a batch. */
static bool is_prefix(const Op *op) {
    const Space *part = op->over[op->kind == OP_CONCAT ? 0 : 1];
    return part->prefix_of && part->prefix_of == op->over[op->kind == OP_CONCAT ? 2 : 0];
}

/* Whether the value of a pair depends only on the pair and on what was sampled around it: sums
 * along edges and to the ends of pairs stay in its tree. */
static bool is_treewise(const Op *op) {
    if (op->kind == OP_CONCAT || op->kind == OP_SLICE)
        return !pass_serve_is_rows(op->over[0]) || is_prefix(op);
    if (op->kind == OP_SEGMENT && op->map->kind != MAP_SRC && op->map->kind != MAP_DST)
        return false;
    return is_rowwise_kind(op) && !pass_serve_depends_on_count(op) && !pass_serve_sums_rows(op);
}

/* Whether the operation reads the data's edge that the pair is. */
static bool reads_edge(const Serve *s, const Op *op) {
    if (!op->map || !space_is_drawn(op->map->from) || op->map->kind == MAP_COL) return false;
    if (op->map->kind != MAP_ORIG) return op->map->kind != MAP_SRC && op->map->kind != MAP_DST;
    return op->kind != OP_GATHER || !s->fact[op->in[0]->id].kind_only;
}

/* Checks that each pair can be scored by itself. False after a diagnostic. */
static bool check_pairs(const Serve *s, bool drawn) {
    const char *why = NULL;
    for (const Op *op = s->f->first; op && !why; op = op->next) {
        if ((!drawn && !s->fact[op->id].on_links) || op->kind == OP_OUTPUT) continue;
        if (reads_edge(s, op))
            why = "a pair that is brought is no edge of the data: it has the columns that are "
                  "read of the links themselves, and what is equal for all edges of its kind";
        else if (drawn ? !is_treewise(op) : !is_pairwise(op))
            why = "the score of a pair would depend on which others are scored with it";
        if (why) diag_add(s->p->ctx, DIAG_E0516, op->span, "%s", why);
    }
    return !why;
}

/* ---- what a request brings -------- */
/* The column of links that the operation reads; NULL: none. */
static Column *column_of_links(const Op *op) {
    if (op->kind == OP_DATA) return space_is_drawn(op->col->space) ? (Column *)op->col : NULL;
    bool by_column = op->map && op->map->kind == MAP_COL && space_is_drawn(op->map->from);
    return by_column ? op->map->col : NULL;
}

/* Lists the columns of links that a request must bring, but for the kind. */
static void request_columns(Serve *s, const char *kind) {
    Sampling *how = &s->m->recipe.sample;
    for (int i = 0; i < s->m->cols.n; i++) {
        bool read = false;
        for (const Op *op = s->f->first; op && !read; op = op->next)
            read = column_of_links(op) == s->m->cols.v[i];
        if (read && !is_kind(s->m->cols.v[i], kind))
            vec_push(s->m->a, &how->request_columns, s->m->cols.v[i]);
    }
}

/* Removes the negative pairs of evaluation. */
static void remove_negatives(Serve *s) {
    Func *load = func_of(s->m, PHASE_LOAD);
    Op *out = load ? func_output(load, "links.negatives") : NULL;
    if (!out) return;
    op_remove(out);
    pass_dce_func(s->p->a, load);
}

/* Makes a request sample neighbours as the recipe does, for each pair at its time. */
static void serve_sampled(Serve *s) {
    Sampling *how = &s->m->recipe.sample;
    how->serve = how->disjoint = true;
    how->eval_links = LINKS_FORM_NONE;
    how->negatives = 0;
}

/* Makes @ends output splits and kinds of links, since a subgraph has its own. */
static void output_links(Serve *s) {
    static const char *const name[] = {"links.split", "links.kind"};
    static const char *const ends_name[] = {"ends.split", "ends.kind"};
    Func *load = func_of(s->m, PHASE_LOAD);
    Serve serve = *s;
    Builder b;
    if (!load) return;
    serve.f = load;
    func_number(load);
    for (Op *op = load->first; op; op = op->next) op->tag = NULL;
    serve.marks = ir_marks_new(s->p->a, load->n_ops);
    for (int i = 0; i < 2; i++) {
        Op *out = func_output(load, name[i]);
        Op *value = out ? pass_serve_copy_to_ends(&serve, out->in[0], &b) : NULL;
        if (!out) continue;
        b_like(&b, out);
        b_output(&b, ends_name[i], value);
    }
    for (Op *op = load->first; op; op = op->next) op->tag = NULL;
    memcpy(s->known, serve.known, sizeof s->known);
}

/* Makes the module score pairs that a request brings. */
bool pass_serve_links(Serve *s, Op *out, bool drawn) {
    const char *kind = kind_column(s);
    find_facts(s, kind);
    if (!check_pairs(s, drawn)) return false;
    remove_negatives(s);
    pass_serve_forget_labels(s->m);
    s->in_ends = true;
    if (drawn) {
        output_links(s);
        serve_sampled(s);
    } else {
        Func *layers = func_of(s->m, PHASE_EMBED);
        if (layers && !pass_serve_keep_layers(s, layers)) return false;
        pass_serve_save_full(s);
        output_links(s);
        s->m->recipe.sample =
            (Sampling){.batch = 1, .serve = true, .train_links = LINKS_FORM_PAIRS};
        pass_serve_ends(s);
    }
    request_columns(s, kind);
    pass_remark(s->p, out->span, "serve",
                drawn ? "a pair is scored with what is known at its time"
                      : "a pair is scored from what is known of its ends");
    return true;
}
