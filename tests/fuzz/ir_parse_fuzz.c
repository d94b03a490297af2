/* Fuzz target: any bytes as IR text.  A text that parses and verifies must print
 * to a text that parses again and prints the same. */
#include "ir/ir.h"

#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void run(Ctx *c, void *arg) {
    Text *r = arg;
    Module *m = module_parse(c, ctx_add_text(c, "fuzz.gir", r->text, r->n));
    if (!m || !module_verify(c, m, "parse")) return;
    StrBuf b = sb_new(c->a);
    module_print(&b, m);
    r->printed = strdup(b.s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    round_trip(run, data, n);
    return 0;
}
