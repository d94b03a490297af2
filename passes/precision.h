/* What the parts of the precision pass share: what is known of the values of a function
 * (precision.c), and the rules that say what may lie in 16 bits (precision_rules.c). */
#ifndef PASSES_PRECISION_H
#define PASSES_PRECISION_H

#include "ir/walk.h"
#include "passes/rewrite.h"

typedef struct Precision {
    PassCtx *p;
    Module *m;
    Func *f;
    struct Precision *all; /* [n_all] of each function of the module */
    int n_all;
    DType default_type; /* of large values that the model says nothing of */
    bool sampled;       /* its data come by batches */
    int **user;         /* by op id: ids of users */
    int *n_users;
    Op **op; /* by id */
    int n;
    IrMarks *marks;            /* by op id */
    unsigned char *fact;       /* by op id: PREC_*, as the model has the values */
    DType *requested;          /* by op id: what the model says of the value; DT_VOID = nothing */
    const char **range_reason; /* by op id: why the type does not hold it, by its measured range */
    DType *column_type;        /* by op id: of a column, the type that suits all its readers here */
    DType *product; /* by op id: what the model says of a product, before anything is rounded */
} Precision;

enum {
    PREC_SUMMED = 1, /* features go into a sum along them, through a function of wide range */
    PREC_RANGED = 2, /* features go into a sum along them, in any way */
    PREC_ERROR = 4,  /* made, element by element, of the numbers that are learned */
};
void prec_find_facts(Precision *p);
void prec_find_products(Precision *p);

/* ---- what a value is --------------------------------------------------------------------- */
bool prec_is_half(DType dt);     /* of 16 bits */
bool prec_is_view(const Op *op); /* shows another value in memory, or a part of it */
bool prec_is_wide(const Precision *p,
                  const Type *t); /* rows of features of a node, edge or graph */
bool prec_is_computed(const Op *op);
bool prec_is_loaded(const Op *op);
/* A product of matrices in memory, of the types that this pass deals with. */
bool prec_is_product(const Op *op);

/* ---- what is asked of it ----------------------------------------------------------------- */
/* What the model requests of the value in memory that x is, or shows; DT_VOID: nothing. */
DType prec_requested(const Precision *p, const Op *x);
/* By its own words, else its layer's, else the command line's. */
DType prec_type_for(const Precision *p, const Op *op);
/* Of both operands of a product; whether the model wants it in f32. */
DType prec_product_type(const Precision *p, const Op *op);
bool prec_is_f32_product(const Precision *p, const Op *op);

/* ---- what it may be ---------------------------------------------------------------------- */
/* Why the value stays f32; NULL: it is to have 16 bits. */
const char *prec_refuses(const Precision *p, const Op *op);
/* Why a reader of op, which lies in memory, wants it in f32; NULL: none does. */
const char *prec_reader_refuses(const Precision *p, const Op *op);
/* Says so where op is what a variable is when the step has ended; NULL: it is not. */
const char *prec_is_next(const Precision *p, const Op *op);
/* Is it a sum that is made in the value's own row in memory? */
bool prec_sums_in_row(const Precision *p, const Op *op);

#endif
