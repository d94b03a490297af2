/* Typed columns from typed cells, row by row: no table of texts in between. */
#ifndef RUNTIME_IMPORT_DATUM_H
#define RUNTIME_IMPORT_DATUM_H

#include "runtime/data/encoder.h"
#include "import_dict.h"
#include "import_looks.h"
#include "import_source.h"

/* Texts that name nothing but their own row (a title, an address) are no categories; nor are
 * these.  A kind that is stated keeps them. */
enum { RT_FEW_TEXTS = 256, RT_MOST_TEXTS = 1 << 20, RT_MOST_TEXT_BYTES = 64 << 20 };

typedef struct RtDatumField {
    const char *name; /* identifier, in the data set's pool */
    int column;       /* of the source's table */
    rt_declared declared;
    rt_col_kind kind;
    const char *why;
    bool alike;                   /* made by the encoder of a model or of other data */
    bool stated;                  /* by the mapping or --kind */
    bool decided;                 /* the kind is known; else all cells were NULL so far */
    bool texts;                   /* CAT, or CLASS of texts; SEVERAL is a CAT until all are known */
    bool left_out;                /* texts that are no categories */
    RtScaleWish scale;            /* numbers: what is to be fitted */
    bool formed;                  /* TIME: its encoder's form is known */
    RtEncoder *encoder, *missing; /* in the data set's pool; missing: NULL = no cell was empty */
    int64_t n_full;               /* cells that are not empty */
    int32_t *absent;              /* 1 where there was no number; NULL as `missing` */
    double *exact;                /* numbers as they stand in the cells; NULL: nobody wants them */
    RtDict dict;                  /* of texts: categories are numbered when all are known */
    RtLooks looks;                /* .. of these texts */
    int64_t n_categories;         /* CLASS of numbers: one more than the highest */
    union {
        void *all;
        int32_t *i32;
        int64_t *i64;
    } to; /* [n_rows] */
} RtDatumField;

typedef struct RtDatumFields {
    int n;
    RtDatumField *v;
    const RtSourceTable *t;
    RtImport *how;
    RtPool *keep, *scratch;
    RtError *err;
    gnnc_status st; /* no memory, which is no matter of a cell */
    char what[200];
} RtDatumFields;

/* The columns that are neither skipped nor computed, of those that `take` asks for. */
gnnc_status rt_datum_fields_make(RtPool *keep, RtPool *scratch, const RtSourceTable *t,
                                 const bool *take, RtImport *how, RtDatumFields *out, RtError *err);
/* Row `to` from the cells cell[i] of field i; NULL, or what is wrong, valid until the next call. */
const char *rt_datum_fields_store(RtDatumFields *f, const RtDatum *const *cell, int64_t to);
/* Rows 0..n-1 as columns of a data set, *n of them; warns of what is left out. */
gnnc_status rt_datum_fields_columns(RtDatumFields *f, int64_t n_rows, RtColumn **out, int *n);
/* Of texts that are more than a name each, values; others stay as they are. */
gnnc_status rt_datum_form(RtDatumFields *x, RtDatumField *f, int64_t n_rows);
/* Some cells are empty: that is told in a column beside it.  false: no memory, told in x->st. */
bool rt_datum_missing(RtDatumFields *x, RtDatumField *f);
/* For messages: "'abc'", "12". */
RtQuoted rt_datum_shown(const RtDatum *c);
/* NULL, NaN, or a text that stands for it. */
bool rt_datum_empty(const RtDatum *c);
/* A text that a name can be: no NUL, UTF-8; NULL or what it is. */
const char *rt_datum_bad_text(const RtDatum *c);

#endif
