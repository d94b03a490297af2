/* <type>_words: the names of the values of each enumeration in contract.def:
 * rt_sched_kind_words.word[RT_SCHED_STEP] is "step". */
#ifndef RUNTIME_CONTRACT_H
#define RUNTIME_CONTRACT_H

#include "program.h"

typedef struct RtWords {
    const char *const *word; /* [n] by value */
    int n;
} RtWords;

#define END(type, rt_type) extern const RtWords rt_type##_words;
#include "contract.def"

/* What it says of a kind of columns. */
typedef struct RtColFacts {
    const char *said, *size; /* "csr f32" and "F" of "csr f32[F]" */
    rt_dtype dt;             /* of values as programs read them */
    int n_dims;              /* dimensions beside the rows; -1: any */
    bool codes;              /* values are codes, and that size is their number */
} RtColFacts;
extern const RtColFacts rt_col_facts[]; /* by rt_col_kind */

#endif
