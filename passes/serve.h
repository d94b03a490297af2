/* What serve.c, of rows, and serve_links.c share: values that are computed over the whole graph and
 * kept for @predict. */
#ifndef PASSES_SERVE_H
#define PASSES_SERVE_H

#include "ir/walk.h"
#include "passes/rewrite.h"

typedef struct {
    bool full_graph; /* computed over the whole graph, hence in @load or @encode */
    bool invariant;  /* depends on the data alone */
    int hops;        /* rows: between those of the result and the furthest it is made of */
    bool on_links;   /* links: changes with the pairs that are scored */
    bool kind_only;  /* links: equal for edges of one kind */
    Op *saved;       /* what stands for it in @predict */
} ServeFact;

typedef struct {
    PassCtx *p;
    Module *m;
    Func *f;          /* @predict */
    bool trees;       /* each row asked for has nodes and edges of its own in the batch */
    ServeFact *fact;  /* by op id */
    OpTable known[3]; /* what is computed there already: in @load, @encode, @ends */
    IrMarks marks;
    bool in_ends; /* what is kept for @predict is made in @ends */
} Serve;

/* Room for the facts of @predict, whose operations are numbered; sets `invariant`. */
void pass_serve_begin_facts(Serve *s);
/* What @embed gives is kept for all rows; false after a diagnostic. */
bool pass_serve_keep_layers(Serve *s, Func *layers);
/* Puts `saved` in place of the whole values that others read. */
void pass_serve_save_full(Serve *s);

/* What @ends needs of the whole graph, be it run over a part of it, is computed over that. */
void pass_serve_ends(Serve *s);
/* Copies what is made of op in another function to the end of @ends. */
Op *pass_serve_copy_to_ends(Serve *s, Op *op, Builder *b);

/* Rows of the data, and dimensions that are as long as there are some. */
bool pass_serve_is_rows(const Space *s);
/* Is a number of rows, or a row's own number, what it gives? */
bool pass_serve_depends_on_count(const Op *op);
/* Does it sum over rows that the result lacks? */
bool pass_serve_sums_rows(const Op *op);

/* @predict gives a score for each link of a relation that a request brings; `drawn`: seen with what
 * is drawn around it, by time.  False after a diagnostic. */
bool pass_serve_links(Serve *s, Op *out, bool drawn);
/* What the labels were called stays. */
void pass_serve_forget_labels(Module *m);

#endif
