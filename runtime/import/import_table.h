/* Typed columns from a table of texts. */
#ifndef RUNTIME_IMPORT_TABLE_H
#define RUNTIME_IMPORT_TABLE_H

#include "runtime/data/csv.h"
#include "runtime/data/encoder.h"
#include "import.h"
#include "import_map.h"

typedef struct RtField {
    const char *name;
    rt_col_kind kind;
    const char *why;              /* it is of that kind */
    bool guessed;                 /* by its name or cells */
    bool told;                    /* in RtImport.cure */
    int64_t n_bad;                /* cells that did not fit */
    const char *bad;              /* the first of them */
    int first, width;             /* columns of the table: x.0, x.1, .. are one field */
    int out;                      /* values of a row, of one column; 0 = width */
    const int *place;             /* [width] where they stand in it; NULL = side by side */
    bool matrix;                  /* numbers [rows, width], even of width 1 */
    RtEncoder *encoder, *missing; /* in the data set's pool; missing: NULL = no cell may be empty */
    int32_t *absent;              /* numbers: 1 where the cell is empty; NULL as `missing` */
    double *exact;                /* .. as they stand in the cells; NULL: nobody wants them */
    RtScaleWish scale;            /* .. which are to be fitted */
    RtCell *cell;                 /* [width] of the row at hand */
    int64_t n_categories;         /* CLASS of numbers: one more than the highest */
    union {
        void *all;
        int32_t *i32;
        double *f64;
        int64_t *i64;
        int8_t *i8;
    } to; /* room for every row of the table, in the data set's pool */
} RtField;

typedef struct RtFields {
    int n;
    RtField *v;
    const char *table;
    RtImport *how;
    char what[440]; /* rt_fields_store's answer */
} RtFields;

enum { RT_KIND_GUESS = -1, RT_KIND_SKIP = -2 };
typedef struct RtFieldsWanted {
    const char *table; /* for --kind TABLE.COLUMN */
    RtImport *how;
    const int *kind;    /* [columns] an rt_col_kind, RT_KIND_GUESS or RT_KIND_SKIP */
    const RtWish *wish; /* [columns] */
} RtFieldsWanted;
/* With how->like the columns of its table in its order, by its encoders; E_MISSING: there is no
 * such raw column; of labels that is told, and so is a raw column of another name, which is left
 * out.  Else kinds from `wanted`, headers ("age:float"), names ("y", "split") or values.
 * An empty cell of numbers is 0, and 1 in a column <name>_missing.  Numbers with a decimal comma
 * are rewritten in `t`.  Results live in `keep`. */
gnnc_status rt_fields_make(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtFields *out, RtError *err);
/* Of a column whose kind is guessed to be CAT: is it something else?  Sets kind, why and encoder.
 */
gnnc_status rt_field_guess(RtPool *keep, RtPool *scratch, const RtCsv *t,
                           const RtFieldsWanted *wanted, RtField *f, RtError *err);
/* What the mapping wishes of cells that are no numbers, and what that leaves open. */
gnnc_status rt_field_fit(RtPool *keep, RtPool *scratch, const RtCsv *t,
                         const RtFieldsWanted *wanted, RtField *f, RtError *err);
/* Room for the rows of a table; false: no memory. */
bool rt_field_reserve(RtPool *keep, const RtImport *how, const RtCsv *t, RtField *f);
/* Numbers with a decimal comma get a point, where it may be none E_FORMAT. */
gnnc_status rt_column_commas(const RtCsv *t, int col, const RtFieldsWanted *wanted, RtError *err);
/* The encoder of a column of keys, which stands in the table as `from`; NULL: no memory. */
RtEncoder *rt_key_encoder(RtPool *keep, const char *from);
/* Keys of the rows as whole numbers; else *v = NULL and they become the table's names. */
gnnc_status rt_keep_keys(RtPool *keep, RtTable *t, const RtNames *keys, const int64_t **v,
                         RtError *err);
/* Are the cells, but for slips, whole numbers? */
bool rt_column_is_integer(const RtCsv *t, int col);
/* Puts row `from` of the table into row `to`; NULL, or what is wrong with it,
 * valid until the next call. */
const char *rt_fields_store(RtFields *f, const RtCsv *t, int64_t from, int64_t to);
/* The column beside numbers `of` that says which cells are empty.  false: no memory. */
bool rt_missing_column(RtPool *keep, const char *of, const RtEncoder *e, const int32_t *absent,
                       int64_t n_rows, RtColumn *out);
/* Rows 0..n-1 as columns of a data set, *n of them and room for one more; NULL: no memory. */
RtColumn *rt_fields_columns(RtPool *keep, const RtFields *f, int64_t n_rows, int *n);

#endif
