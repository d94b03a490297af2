/* The runtime's constants of runtime/contract.def by the compiler's value, as the driver spells
 * them. */
#include "codegen/host/host.h"

#define ENUM(type, rt_type) const char *const host_##type[] = {
#define VALUE(id, rt_id, word) #rt_id,
#define END(type, rt_type)                                                                         \
    }                                                                                              \
    ;
#include "runtime/contract.def"
