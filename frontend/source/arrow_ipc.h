/* Arrow's IPC stream (arrow.apache.org/docs/format/Columnar.html): record batches of 64-bit whole
 * numbers, lists of them, f64, UTF-8 texts and times in microseconds, as the helper of parquet.c
 * writes them.
 * Metadata are FlatBuffers, little endian; every offset is checked before it is followed. */
#ifndef FRONTEND_SOURCE_ARROW_IPC_H
#define FRONTEND_SOURCE_ARROW_IPC_H

#include "runtime/import/import_source.h"

/* false: fewer bytes came. */
typedef bool ArrowRead(void *user, void *to, size_t n);

typedef enum { ARROW_INT64, ARROW_FLOAT64, ARROW_UTF8, ARROW_TIME, ARROW_LIST } ArrowType;
enum { ARROW_COLUMNS = 1 << 16 };

typedef struct ArrowStream {
    ArrowRead *read;
    void *user;
    RtPool pool; /* of the schema, and of texts of the present row */
    int n_columns;
    ArrowType *type;
    struct ArrowPart {
        size_t at, n;
    } (*part)[4]; /* of the batch's body, by column: what is there, numbers or offsets; then texts,
                   * or of lists which elements are there, and these */
    RtText *text; /* the cells of the row, each ended by a NUL */
    struct ArrowItems {
        uint64_t n; /* elements of all lists of the batch */
        size_t at;  /* the first of the row's list */
    } *items;       /* by column */
    uint8_t *body;  /* of the batch */
    size_t n_body, room;
    int64_t n_rows, row; /* of the batch */
} ArrowStream;

/* The schema; n_columns: so many are expected.  The caller ends the stream also after a failure.
 * E_FORMAT: the bytes are no such stream; E_IO: what the writer says went wrong. */
gnnc_status arrow_begin(ArrowStream *s, const RtAlloc *from, ArrowRead *read, void *user,
                        int n_columns, RtError *err);
/* The next row; *more = false: there is none.  Texts are valid until the next call.  The cell of a
 * list is the number of its elements. */
gnnc_status arrow_next(ArrowStream *s, RtDatum *cell, bool *more, RtError *err);
/* Element k of the list in that column of the row: a whole number, or NULL. */
RtDatum arrow_item(const ArrowStream *s, int column, int64_t k);
void arrow_end(ArrowStream *s);

#endif
