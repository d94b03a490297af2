/* The words of contract.def. */
#include "contract.h"

#define ENUM(type, rt_type) static const char *const rt_type##_list[] = {
#define VALUE(id, rt_id, word) word,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    const RtWords rt_type##_words = {rt_type##_list, sizeof rt_type##_list / sizeof(char *)};
#include "contract.def"
