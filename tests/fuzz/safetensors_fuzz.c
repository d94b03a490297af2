/* Fuzz target: any bytes as a safetensors file. */
#include "runtime/data/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtPool pool;
    RtTensors t;
    rt_pool_init(&pool, NULL);
    if (rt_safetensors_parse(&pool, (RtBytes){data, n}, "fuzz", &t, NULL) == GNNC_OK) {
        volatile double sum = 0;
        for (int k = 0; k < t.n; k++) {
            if (rt_tensors_find(&t, t.v[k].name) != &t.v[k]) __builtin_trap();
            for (int64_t i = 0; i < t.v[k].a.count; i++) sum += rt_array_f64(&t.v[k].a, i);
        }
    }
    rt_pool_free(&pool);
    return 0;
}
