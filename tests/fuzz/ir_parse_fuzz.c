/* Fuzz target: any bytes as IR text.  A text that parses and verifies must print
 * to a text that parses again and prints the same. */
#include "ir/ir.h"

#include "round_trip.h"

static void run(Ctx *c, void *arg) {
    Text *r = arg;
    Module *m = module_parse(c, ctx_add_text(c, "fuzz.gir", r->text, r->n));
    if (!m || !module_verify(c, m, "parse")) return;
    StrBuf b = sb_new(c->a);
    module_print(&b, m);
    r->printed = strdup(b.s);
}

ROUND_TRIP_FUZZER(run)
