/* The words of contract.def, and what it says of columns. */
#include "contract.h"

#define ENUM(type, rt_type) static const char *const rt_type##_list[] = {
#define VALUE(id, rt_id, word) word,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const RtWords rt_type##_words = {rt_type##_list, sizeof rt_type##_list / sizeof(char *)};
#include "contract.def"

const RtColFacts rt_col_facts[] = {
#define COLUMN(id, rt_id, word, said, size, dt, n_dims, codes, rule)                               \
    {said, size, RT_##dt, n_dims, codes},
#include "contract.def"
};
