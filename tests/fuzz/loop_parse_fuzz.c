/* Fuzz target: any bytes as loop IR.  Kernels that parse and verify must print to a text
 * that parses again and prints the same. */
#include "codegen/loop/loop.h"

#include "round_trip.h"

static void run(Ctx *c, void *arg) {
    Text *r = arg;
    Module *m = module_new(c, "t");
    Space *p = space_node(m, "p", (Span){0});
    map_dst(m, space_edge(m, "e", p, p, (Span){0}));
    int n_kernels = 0;
    LKernel *k = loop_parse(c, m, ctx_add_text(c, "fuzz.loops", r->text, r->n), &n_kernels);
    StrBuf b = sb_new(c->a);
    for (int i = 0; k && i < n_kernels; i++) {
        if (!loop_verify(c, m, &k[i])) return;
        loop_print(&b, m, &k[i]);
    }
    if (b.s) r->printed = strdup(b.s);
}

ROUND_TRIP_FUZZER(run)
