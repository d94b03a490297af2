/* How the columns that a model learned from were made of cells: it is in its files of weights, so
 * that rows which come later are made alike, and data that were made otherwise are told apart.
 *
 *     metadata "encoders:person" = [{"column": "age", "kind": "float",
 *                                    "encoder": {"as": "number", "mean": 40.5, "deviation": 11.0}},
 *                                   {"column": "split", "kind": "split", "label": true, ..}]
 *
 * Names of categories are in "names:person.city" (codes.h). */
#ifndef RUNTIME_ENCODERS_H
#define RUNTIME_ENCODERS_H

#include "runtime/data/dataset.h"
#include "runtime/data/encoder.h"
#include "runtime/data/safetensors.h"
#include "runtime/exec/exec.h"

typedef struct RtEncoding {
    const char *table, *column;
    bool label; /* rows that are only predicted may lack it */
    RtEncoder e;
} RtEncoding;

typedef struct RtEncoders {
    const char *of; /* the file or directory */
    int n;
    RtEncoding *v; /* those of a table side by side, in its order */
} RtEncoders;

/* What a column of a program was made of, as far as it is known: by the given file, else the data.
 */
typedef struct RtEncoded {
    const char *of;       /* "person.age"; NULL = an earlier column is of it, or nothing reads it */
    const RtEncoder *how; /* NULL = nobody says */
} RtEncoded;

/* Of a file of weights; of a data directory, of which the schema alone is read: columns without an
 * encoder are left out.  All live in the pool. */
struct RtCodes;
gnnc_status rt_encoders_read(RtPool *pool, const char *path, const RtTensors *f,
                             const struct RtCodes *codes, int n_codes, RtEncoders *out,
                             RtError *err);
gnnc_status rt_encoders_of_data(RtPool *pool, const char *dir, RtEncoders *out, RtError *err);
/* The same of the text of its schema. */
gnnc_status rt_encoders_of_schema(RtPool *pool, const char *dir, RtBytes text, RtEncoders *out,
                                  RtError *err);
/* .. with the names in the same file: E_MISSING where it has no encoders. */
gnnc_status rt_encoders_of_weights(RtPool *pool, const char *path, const RtTensors *f,
                                   RtEncoders *out, RtError *err);
/* Of what `path` is: E_MISSING where it has none. */
gnnc_status rt_encoders_open(RtPool *pool, const char *path, RtEncoders *out, RtError *err);
const RtEncoding *rt_encoders_find(const RtEncoders *v, const char *table, const char *column);
/* Of "person.age"; NULL: no such. */
const RtEncoding *rt_encoders_of(const RtEncoders *v, const char *of);

/* Metadata for a file of weights, to[0 .. *n): one for each table at most. */
gnnc_status rt_encoders_put(const RtExec *x, RtPool *pool, RtMeta *to, int *n);
/* While data are bound: E_ARG where a column that the program reads was made otherwise than the
 * given file's, or does not say how and would look the same. */
gnnc_status rt_encoders_bind(RtExec *x);
/* The same once data are bound, of encoders that were read now. */
gnnc_status rt_encoders_check(RtExec *x, const RtEncoders *given);

#endif
