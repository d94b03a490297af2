/* The compiler's side of runtime/contract.def, which says what each value means. */
#ifndef IR_CONTRACT_H
#define IR_CONTRACT_H

typedef enum {
#define DTYPE(id, word, bytes, c_name) DT_##id,
#include "runtime/contract.def"
    N_DTYPES
} DType;

#define ENUM(type, rt_type) typedef enum {
#define VALUE(id, rt_id, word) id,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    type;
#include "runtime/contract.def"

#endif
