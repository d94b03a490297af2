/* Fuzz target: the eight Planetoid files, each but the last with its length (two
 * bytes, little endian) in front; and the whole input as one pickle. */
#include "runtime/import/import.h"
#include "runtime/import/pickle.h"
#include "imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void one_pickle(RtBytes file) {
    RtPool pool;
    RtPy *v;
    RtArray a;
    RtCsr m;
    rt_pool_init(&pool, NULL);
    if (rt_pickle_parse(&pool, file, "p", &v, NULL) == GNNC_OK) {
        rt_pickle_array(&pool, v, "p", &a, NULL);
        rt_pickle_csr(&pool, v, "p", &m, NULL);
    }
    rt_pool_free(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtBytes file[RT_PLANETOID_FILES];
    size_t at = 0;
    one_pickle((RtBytes){data, n});
    for (int i = 0; i < RT_PLANETOID_FILES; i++) {
        size_t len = n - at;
        if (i + 1 < RT_PLANETOID_FILES && len >= 2) {
            size_t want = (size_t)data[at] | (size_t)data[at + 1] << 8;
            at += 2;
            len = want < n - at ? want : n - at;
        }
        file[i] = (RtBytes){data + at, len};
        at += len;
    }
    RtDataset *d;
    RtError err = {""};
    RtImport how = {.normalize_rows = true};
    gnnc_status st = rt_import_planetoid_bytes(NULL, file, &how, &d, &err);
    end_import(st, d, &err);
    return 0;
}
