/* What the simulator's files share. */
#ifndef CUDASIM_IMPL_H
#define CUDASIM_IMPL_H

#include "cuda_runtime_api.h"
#include "cudasim.h"

#include <stdbool.h>

typedef struct {
    unsigned grid[3], block[3]; /* of a kernel */
    void (*call)(void *), (*drop)(void *);
    void *closure;
} CudasimLaunch;

bool cudasim_fits(const unsigned grid[3], const unsigned block[3]);
void cudasim_run(const CudasimLaunch *l);

#endif
