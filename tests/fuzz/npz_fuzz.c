/* Fuzz target: any bytes as a one-graph .npz archive. */
#include "runtime/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtDataset *d;
    RtImport how = {.normalize_rows = true};
    rt_import_npz_bytes(NULL, (RtBytes){data, n}, "fuzz.npz", &how, &d, NULL);
    rt_dataset_close(d);
    return 0;
}
