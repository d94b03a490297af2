/* Fuzz target: any bytes as the tuned.json beside a data set.  Whatever it held, a choice
 * kept in it is found again. */
#include <math.h>

#include "tests/unit/rt_test_util.h"
#include "tests/unit/tiny_program.h"
#include "runtime/trainer/tuned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[64];
static void remove_dir(void) {
    scratch_remove(dir);
}
static void make_dir(void) {
    snprintf(dir, sizeof dir, "%s", scratch_new());
    atexit(remove_dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char path[100];
    gnnc_trainer *t;
    RtChoice c = {1, 0, -1}, kept = {1, 77, 0}; /* a thread, which every machine has */
    if (!dir[0]) make_dir();
    snprintf(path, sizeof path, "%s/tuned.json", dir);
    write_file(path, data, n);
    if (gnnc_trainer_create(&t, &tiny_model) != GNNC_OK) __builtin_trap();
    rt_tuned_find(t, dir, &c);
    if (c.threads < 1 || c.serial_ns < 0) __builtin_trap();
    if (rt_tuned_keep(t, dir, &kept, 0.5) != GNNC_OK) __builtin_trap();
    if (!rt_tuned_find(t, dir, &c) || c.threads != 1 || c.serial_ns != 77) __builtin_trap();
    gnnc_trainer_destroy(t);
    return 0;
}
