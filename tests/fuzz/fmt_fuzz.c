/* Fuzz target: any bytes as a file to lay out.  What can be read gets one layout, which stays as it
 * is, and is the same to the parser: fmt_text() looks, and a fault of the compiler ends this. */
#include "frontend/editor/fmt.h"

#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct {
    const char *text;
    size_t n;
    bool broken;
} Job;

static void run(Ctx *c, void *arg) {
    Job *j = arg;
    size_t n, again;
    const char *once = fmt_text(c, ctx_add_text(c, "fuzz.gnn", j->text, j->n), &n);
    if (!once) return;
    const char *twice = fmt_text(c, ctx_add_text(c, "once.gnn", once, n), &again);
    j->broken = !twice || again != n || memcmp(once, twice, n) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    Job j = {.text = (const char *)data, .n = n};
    Ctx c;
    if (!ctx_init(&c, NULL)) return 0;
    bool ran = ctx_run(&c, run, &j);
    if (j.broken || (!ran && c.faulted)) __builtin_trap();
    ctx_free(&c);
    return 0;
}
