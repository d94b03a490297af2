/* Targets by name. */
#include "codegen/target.h"

#include <string.h>

const Target *target_find(const char *name) {
    static const Target *const all[] = {
#define TARGET(id) &target_##id,
#include "codegen/targets.def"
#undef TARGET
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}
