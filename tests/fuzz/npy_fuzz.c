/* Fuzz target: any bytes as an .npy file. What is accepted can be read to its end. */
#include "runtime/data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    RtPool pool;
    RtArray a;
    const int32_t *ints;
    rt_pool_init(&pool, NULL);
    if (rt_npy_parse(&pool, (RtBytes){data, n}, "fuzz.npy", &a, NULL) == GNNC_OK) {
        volatile double sum = 0;
        RtArray r = rt_array_row_major(&pool, &a);
        for (int64_t i = 0; r.data && i < r.count; i++) sum += rt_array_f64(&r, i);
        rt_array_as_i32(&pool, &a, "fuzz.npy", &ints, NULL);
        rt_array_as_f32(&pool, &a);
    }
    rt_pool_free(&pool);
    return 0;
}
