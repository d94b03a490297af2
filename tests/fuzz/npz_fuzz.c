/* Fuzz target: any bytes as a one-graph .npz archive. */
#include "runtime/import/import.h"
#include "imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtDataset *d;
    RtError err = {""};
    RtImport how = {.normalize_rows = true};
    gnnc_status st = rt_import_npz_bytes(NULL, (RtBytes){data, n}, "fuzz.npz", &how, &d, &err);
    end_import(st, d, &err);
    return 0;
}
