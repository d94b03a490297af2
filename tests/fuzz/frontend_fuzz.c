/* Fuzz target: any bytes as a model file.  Nothing may crash, and a module that comes
 * out without diagnostics must verify. */
#include "frontend/fe.h"

#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct {
    const char *text;
    size_t n;
    bool broken;
} Run;

static void run(Ctx *c, void *arg) {
    static const char *const dirs[] = {"models"};
    Run *r = arg;
    FeOptions opt = {.dirs = dirs, .n_dirs = 1, .check_only = true};
    Module *m = fe_compile_text(c, "fuzz.gnn", r->text, r->n, &opt);
    r->broken = m && !module_verify(c, m, "the front end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    Run r = {.text = (const char *)data, .n = n};
    run_alone(run, &r);
    if (r.broken) __builtin_trap();
    return 0;
}
