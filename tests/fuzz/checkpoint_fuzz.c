/* Fuzz target: any bytes as a checkpoint to resume from and as weights to load, before the data and
 * behind them, by a trainer that runs an epoch with whatever was accepted. */
#include <math.h>

#include "tests/unit/tiny_data.h"
#include "tests/unit/tiny_program.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[64]; /* of the data, made once */
static void remove_dir(void) {
    scratch_remove(dir);
}
static void make_dir(void) {
    snprintf(dir, sizeof dir, "%s", scratch_new());
    make_data(dir);
    atexit(remove_dir);
}

static gnnc_trainer *trainer_new(const char *given) {
    gnnc_trainer *t;
    if (gnnc_trainer_create(&t, &tiny_model) != GNNC_OK) return NULL;
    gnnc_trainer_set_int(t, "threads", 1);
    if (given) gnnc_trainer_load_weights(t, given);
    if (gnnc_trainer_load(t, dir) == GNNC_OK) return t;
    gnnc_trainer_destroy(t);
    return NULL;
}

/* The file that the trainer opens; its name is the same for every input. */
static bool hold(const uint8_t *data, size_t n, char path[64]) {
    int fd = memfd_create("checkpoint", 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd >= 0 && write(fd, data, n) == (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char path[64];
    if (!dir[0]) make_dir();
    if (!hold(data, n, path)) __builtin_trap();
    gnnc_trainer *t = trainer_new(path); /* refused: NULL */
    if (t) gnnc_trainer_run_phase(t, "predict");
    gnnc_trainer_destroy(t);
    if (!(t = trainer_new(NULL))) __builtin_trap();
    if (gnnc_trainer_resume(t, path) == GNNC_OK && !gnnc_trainer_done(t)) gnnc_trainer_epoch(t);
    if (gnnc_trainer_load_weights(t, path) == GNNC_OK) gnnc_trainer_run_phase(t, "eval");
    gnnc_trainer_destroy(t);
    return close(atoi(path + strlen("/proc/self/fd/")));
}
