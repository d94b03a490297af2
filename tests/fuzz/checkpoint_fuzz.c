/* Fuzz target: any bytes as a checkpoint to resume from and as weights to load, before the data and
 * behind them, by a trainer that runs an epoch with whatever was accepted. */
#include <math.h>

#include "tests/unit/tiny_data.h"
#include "tests/unit/tiny_program.h"

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

/* Of whatever was given before its data; NULL: those are refused. */
static gnnc_trainer *trainer_new(const uint8_t *given, size_t n) {
    gnnc_trainer *t;
    if (gnnc_trainer_create(&t, &tiny_model) != GNNC_OK) return NULL;
    gnnc_trainer_set_int(t, "threads", 1);
    if (given) gnnc_trainer_load_weights_from(t, given, n);
    if (gnnc_trainer_load(t, dir) == GNNC_OK) return t;
    gnnc_trainer_destroy(t);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!dir[0]) make_dir();
    gnnc_trainer *t = trainer_new(data, n);
    if (t) gnnc_trainer_run_phase(t, "predict");
    gnnc_trainer_destroy(t);
    if (!(t = trainer_new(NULL, 0))) __builtin_trap();
    if (data && gnnc_trainer_resume_from(t, data, n) == GNNC_OK && !gnnc_trainer_done(t))
        gnnc_trainer_epoch(t);
    if (data && gnnc_trainer_load_weights_from(t, data, n) == GNNC_OK)
        gnnc_trainer_run_phase(t, "eval");
    gnnc_trainer_destroy(t);
    return 0;
}
