/* The data half of the runtime, grouped by defining file. */
#ifndef RUNTIME_DATA_H
#define RUNTIME_DATA_H

#include "csr.h"            /* counting sort, stored entries */
#include "dataset.h"        /* data directories */
#include "io.h"             /* mapped files, atomic replacement */
#include "json.h"           /* JSON */
#include "npy.h"            /* arrays and .npy */
#include "relation.h"       /* base and derived relations */
#include "safetensors.h"    /* weights */
#include "runtime/status.h" /* errors, memory */

#endif
