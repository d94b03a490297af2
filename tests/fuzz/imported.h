/* What fuzz targets ask of each import: data that are in order, or words that say why not. */
#ifndef FUZZ_IMPORTED_H
#define FUZZ_IMPORTED_H

#include <stdlib.h>

#include "runtime/data/dataset.h"

static void end_import(gnnc_status st, RtDataset *d, const RtError *err) {
    RtError why = {""};
    if (st == GNNC_OK ? rt_dataset_check(d, &why) != GNNC_OK : !*err->text || d) abort();
    rt_dataset_close(d);
}

#endif
