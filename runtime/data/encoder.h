/* What makes the values of a column from raw cells: texts as in a CSV file, or numbers.  An encoder
 * is data: a kind and what was fitted when rows were imported first.  It is stored with the column
 * (docs/data.md), goes with the weights of a model that learned from it, and encodes rows that come
 * later as it did the first ones: there is no other code that does.
 *
 * A new kind is a line of the table in encoder.c: its word, its column, its parameters and its
 * function of a cell. */
#ifndef RUNTIME_ENCODER_H
#define RUNTIME_ENCODER_H

#include "column.h"
#include "dates.h"
#include "json.h"
#include "names.h"

typedef enum {
    RT_AS_NUMBER,   /* as it is, or standardised */
    RT_AS_MISSING,  /* 1 where the number is absent */
    RT_AS_CATEGORY, /* the code of its name */
    RT_AS_CLASS,    /* .., or a whole number; -1 = no label */
    RT_AS_TIME,     /* seconds, of cells of one form */
    RT_AS_ID,       /* a whole number that is kept */
    RT_AS_KEY,      /* .. that names the row */
    RT_AS_SPLIT,    /* train, val, test or none */
    RT_AS_BOOLEAN,  /* 0 or 1 */
    RT_AS_TEXT,     /* its words and their parts, hashed */
    RT_AS_VECTOR,   /* the numbers of a list */
    RT_AS_SEVERAL,  /* 1 for each category that is named */
    RT_AS_IMAGE,    /* a small picture of the file that is named */
    RT_AS_UNCHECKED /* of no cells: who has the column answers for it, and nothing is compared */
} RtAs;

/* The name of the code 0 that a column reserves for names that it does not have. */
#define RT_UNKNOWN_NAME "<unknown>"
/* What an ID column has for an empty cell. */
#define RT_ID_ABSENT INT64_MIN

typedef struct RtEncoder {
    RtAs as;
    rt_col_kind kind;       /* of the column */
    const char *from;       /* the raw column; of several the stem */
    int width;              /* NUMBER: raw columns from.0, from.1, ..; 0 = `from` alone */
    bool gaps;              /* NUMBER, BOOLEAN, VECTOR, IMAGE: a cell may be empty, and is 0 then */
    int out;                /* values of a row, of one cell; 0 = as many as there are raw columns */
    RtScale scale;          /* NUMBER: fitted to the rows that are learned from (encoder_scale.h) */
    double mean, deviation; /* STANDARD: the deviation of n, not n - 1, and 1 where all are equal */
    int n_marks;
    const double *marks;  /* QUANTILE, PIECEWISE [n_marks], ascending */
    const double *normal; /* QUANTILE [n_marks]: what stands for each */
    RtDateForm form;      /* TIME */
    bool unknown;         /* CATEGORY: code 0 is RT_UNKNOWN_NAME */
    int64_t rare;         /* .. of names that fewer rows had, too */
    char separator;       /* SEVERAL: of a cell's names; 0 = the cells are lists */
    int64_t
        n_categories; /* CATEGORY, CLASS: codes are below it; -1 = not known yet; SEVERAL: `out` */
    const char *const *names; /* [n_categories], in the order of codes; NULL: numbers */
    RtNames codes;            /* .. by name */
} RtEncoder;

typedef struct RtCell {
    const char *text; /* NULL = it is a number */
    double number;    /* NaN = an empty cell */
} RtCell;

/* Raw columns; and values of a row, where 0 = one, in a column of rank 1. */
static inline int rt_encoder_cells(const RtEncoder *e) {
    return e->width ? e->width : 1;
}
static inline int rt_encoder_values(const RtEncoder *e) {
    return e->out ? e->out : e->width;
}
/* A copy with all that it points to, but for names of categories, which are the column's.  false:
 * no memory. */
bool rt_encoder_copy(RtPool *pool, const RtEncoder *e, RtEncoder *out);

/* Its names, if any, are looked up from now on, and kept.  false: no memory. */
bool rt_encoder_index(RtPool *pool, RtEncoder *e);
/* Puts row `row` into the values of a column of e's kind, from its cells, of which there are
 * rt_encoder_cells().  NULL, or what cell *at of them is not ("not a number"). */
const char *rt_encode(const RtEncoder *e, const RtCell *cell, void *to, int64_t row, int *at);
/* Its halves: the number that stands in a cell, and what becomes of it at to[at]. */
const char *rt_encode_raw(const RtCell *cell, double *v);
const char *rt_encode_number(const RtEncoder *e, double v, void *to, int64_t at);
/* "", or what others write for it where numbers, times or keys stand: NULL, NaN, NA, N/A, \\N. */
bool rt_cell_absent(const char *cell);
/* "12", and "12.0" as pandas writes it. */
bool rt_cell_is_integer(const char *text, int64_t *v);
/* "column 'age': 'x' is not a number", and by whom it is wanted; like: NULL = by the column. */
void rt_encode_explain(char *to, size_t n, const char *column, const RtCell *cell, const char *what,
                       const RtEncoder *e, const char *like);

struct RtTable;
/* The column of the table that is 1 where `of` has no cell; NULL: none is. */
const RtColumn *rt_encoder_gaps(const struct RtTable *t, const RtColumn *of);
/* Is it that of the raw column `from`? */
bool rt_encoder_tells_gaps(const RtColumn *c, const char *from);

/* The encoder of a column of this kind. */
RtAs rt_encoder_of_kind(rt_col_kind k);
/* What it is, for a report: "standardised: mean 3.5, deviation 1.2"; "" where nothing is to be
 * said.  Returns `to`. */
const char *rt_encoder_told(const RtEncoder *e, char *to, size_t n);
/* "number standardised: mean 3.5, deviation 1.2", "text of 64 values".  Returns `to`. */
const char *rt_encoder_named(const RtEncoder *e, char *to, size_t n);
/* Do both make the same of the same cell?  NULL, or what of `a`, which `b` has not, in which the
 * names of categories are not looked at; in `text`. */
const char *rt_encoder_differs(const RtEncoder *a, const RtEncoder *b, char *text, size_t n);
/* Are its values something else than the numbers of the cells, which nobody can tell by them?
 * Categories are told by their names. */
bool rt_encoder_is_fitted(const RtEncoder *e);
extern const RtEncoder rt_encoder_unchecked;

/* ---- as JSON, in schema.json and in files of weights -------------------------------- */
/* All but names and their number; `column` is the column's own name.  false: no memory. */
bool rt_encoder_put(RtText *to, const RtEncoder *e, const char *column);
/* NULL, or what is wrong with it; kind: of the column, whose categories are set then. */
const char *rt_encoder_read(RtPool *pool, const RtJson *v, const char *column, rt_col_kind kind,
                            RtEncoder *e);
/* The categories of its column; names: NULL = it has none.  NULL, or what is wrong with them. */
const char *rt_encoder_names(RtEncoder *e, int64_t n, const char *const *names);

#endif
