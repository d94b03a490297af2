/* A column of a data set, and what its kind is: how values lie in memory and in files, what is
 * checked of them, how a program reads them, how an import makes them.
 *
 * A kind is a line of runtime/contract.def, which the compiler reads, too, and a row of the table
 * in column.c. */
#ifndef RUNTIME_COLUMN_H
#define RUNTIME_COLUMN_H

#include "csr.h"
#include "npy.h"
#include "runtime/contract.h" /* rt_col_facts */
#include "runtime/exec/team.h"

/* What becomes of numbers before a model reads them. */
typedef enum {
    RT_SCALE_PLAIN,    /* nothing */
    RT_SCALE_STANDARD, /* less the mean, in units of the deviation */
    RT_SCALE_QUANTILE, /* spread as a normal distribution, by their quantiles */
    RT_SCALE_PIECEWISE /* a value for each bin between quantiles: how far it is passed */
} RtScale;
/* .. once it is known which rows are learned from. */
typedef struct RtScaleWish {
    RtScale as;
    int bins;  /* PIECEWISE: at most; 0 = as many as usual */
    bool free; /* STANDARD that nobody asked this column to be: outliers make it QUANTILE */
} RtScaleWish;

typedef struct RtColumn {
    const char *name;
    rt_col_kind kind;
    int64_t n_rows;
    int rank;                     /* with the rows */
    int64_t shape[RT_ARRAY_RANK]; /* shape[0] = n_rows; SPLIT: [n_rows] */
    RtDtype stored;               /* of the file with its values */
    int64_t n_categories;         /* CAT, CLASS */
    const char *const *names;     /* [n_categories] or NULL */
    union {                       /* row-major; of which type follows from the kind */
        const void *values;
        const float *f32;     /* FLOAT, MULTILABEL */
        const int32_t *i32;   /* CAT, CLASS (-1 = none) */
        const double *f64;    /* TIME: seconds, NaN = unknown */
        const int64_t *i64;   /* ID */
        const int8_t *splits; /* SPLIT [n_splits, n_rows]: 0 none, 1 train, 2 validation, 3 test */
    };
    const uint16_t *low; /* FLOAT in 16 bits, else NULL; where f32 is NULL, this is what there is */
    RtDtype low_dt;
    const float *there; /* FLOAT in a device's memory, else NULL; f32 is a copy, or NULL */
    int there_on;       /* which of the machine's */
    RtCsr csr;          /* CSR */
    int n_splits;       /* SPLIT */
    const char *why;    /* why an import made it of this kind; NULL = the form says so */
    const struct RtEncoder *encoder;    /* what made its values of cells; NULL = it is not known */
    const struct RtBaseline *baselines; /* of what is learned: [n_baselines] reached without */
    int n_baselines;
    const double
        *exact; /* of an import: the numbers of its cells [n_rows], NaN where there is none */
    RtScaleWish scale;                    /* .. which are still to be fitted */
    struct RtBeyondMemory *beyond_memory; /* its rows are most likely on the disk; or NULL */
} RtColumn;

/* ---- kinds -------------------------------------------------------------------- */
typedef enum {
    RT_LAYOUT_ROWS,  /* values: [shape] */
    RT_LAYOUT_CSR,   /* csr */
    RT_LAYOUT_SPLITS /* splits, n_splits */
} RtLayout;

struct RtColumnCheck;
typedef struct RtColumnKind {
    RtLayout layout;
    RtDtype element; /* of a value in memory, and in the files that are written */
    /* What later code relies on; NULL: any value will do. */
    gnnc_status (*check)(const struct RtColumnCheck *k);
    /* n values as programs read them, in the type of contract.def; NULL: they read them as they
     * lie.  Not of CSR. */
    void (*widen)(const void *from, int64_t n, void *to);
    /* Texts: to[at] = x; NULL, or what x is not.  A kind without it has a function of its own in
     * encoder.c. */
    const char *(*of_number)(double x, void *to, int64_t at);
} RtColumnKind;
const RtColumnKind *rt_column_kind(rt_col_kind k);

const char *rt_col_kind_name(rt_col_kind k); /* "class", as the schema spells it */
bool rt_col_kind_find(const char *name, rt_col_kind *out);

enum { RT_COL_KINDS_TEXT = 128 };
/* "float, cat, class" of those that are wanted, in `to`, which is returned. */
const char *rt_col_kinds_list(bool wanted(rt_col_kind k), char *to, size_t n);
static inline bool rt_column_has_codes(const RtColumn *c) {
    return rt_col_facts[c->kind].codes;
}
/* Are index arrays made of its values? */
static inline bool rt_column_indexes(const RtColumn *c) {
    return rt_column_has_codes(c) || c->kind == RT_COL_CSR;
}
/* How a model declares what a column holds: "csr f32[F]"; in `to`, which is returned. */
const char *rt_column_declared(const RtColumn *c, char *to, size_t n);

/* Does the column say what is to be predicted?  By its kind, or its name where it is numbers. */
bool rt_column_is_label(const RtColumn *c);
/* Whether the row has a label: a class that is known, or one of several values. */
bool rt_column_has_label(const RtColumn *y, int64_t row);

/* A mapped column in ROWS that takes more than `memory` bytes never lies in memory as a whole: it
 * is marked, with memory of the pool, which has the mapping. */
void rt_column_beyond_memory(RtColumn *c, RtPool *pool, size_t memory);
/* Tells the system that rows of such a column are read in no order from now on, if nobody reads it
 * from end to end; and that somebody does, between `begin` and `end`.  Wishes, which change no
 * result. */
void rt_column_expect_no_order(const RtColumn *c);
void rt_column_begin_in_order(const RtColumn *c);
void rt_column_end_in_order(const RtColumn *c);

/* ---- values --------------------------------------------------------------------- */
/* Elements of a row. */
static inline int64_t rt_column_width(const RtColumn *c) {
    int64_t w = 1;
    for (int i = 1; i < c->rank; i++) w *= c->shape[i];
    return w;
}
/* Values of a column in ROWS, and the bytes of one. */
static inline const void *rt_column_values(const RtColumn *c) {
    return c->low && !c->values ? c->low : c->values;
}
static inline size_t rt_column_value_bytes(const RtColumn *c) {
    return c->low && !c->values ? sizeof *c->low : rt_dtype_bytes(rt_column_kind(c->kind)->element);
}
/* Other values of the same element type, and these alone. */
static inline void rt_column_set(RtColumn *c, const void *values) {
    bool low = c->low && !c->values;
    c->low = low ? values : NULL;
    c->values = low ? NULL : values;
}
/* Writes what stands for no value (NaN, class -1, id 0) n times to values that were just made. */
void rt_column_fill_unknown(const RtColumn *c, int64_t n);

/* Checks what later code relies on: `where` is the table's name in messages. */
gnnc_status rt_column_check(const RtColumn *c, const char *where, RtError *err);
/* Numbers, categories and stored entries: of several processes each may have some rows, and send
 * them to others. */
bool rt_column_may_be_shared(const RtColumn *c);
/* Of such a column only rows lo .. hi - 1: nobody reads the others here. */
gnnc_status rt_column_check_rows(const RtColumn *c, int64_t lo, int64_t hi, const char *where,
                                 RtError *err);
/* *out = a FLOAT column's values as RT_F32, RT_BF16 or RT_F16 alone: c's own where it has them,
 * else made in the pool by the team (NULL: the caller), the same bits whatever its size.  Columns
 * of other kinds are c. */
gnnc_status rt_column_as(RtPool *pool, RtTeam *team, const RtColumn *c, rt_dtype t,
                         const RtColumn **out, RtError *err);
/* Rows idx[0..n) of a column, e.g. an edge column in canonical order. */
gnnc_status rt_column_take(RtPool *pool, const RtColumn *c, const int32_t *idx, int64_t n,
                           RtColumn *out, RtError *err);
/* The rows of part[0], then those of part[1], ..: n >= 1 columns of one kind and form.  What 16
 * bits hold beside f32 is there where all parts have it. */
gnnc_status rt_column_join(RtPool *pool, const RtColumn *const *part, int64_t n, RtColumn *out,
                           RtError *err);
/* *out = its values as programs read them: as they lie, or made in the pool; of a split column its
 * split number `split`.  E_RANGE: no such split. */
gnnc_status rt_column_read(RtPool *pool, const RtColumn *c, int split, const void **out,
                           RtError *err);

#endif
