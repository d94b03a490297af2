/* Fuzz target: any bytes as loop IR.  Kernels that parse and verify must print to a text
 * that parses again and prints the same. */
#include "codegen/loop.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct {
    const char *text;
    size_t n;
    char *printed;
} Run;

static void run(Ctx *c, void *arg) {
    Run *r = arg;
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

static char *print_again(const char *text, size_t n) {
    Ctx c;
    Run r = {.text = text, .n = n};
    if (!ctx_init(&c, NULL)) return NULL;
    ctx_run(&c, run, &r);
    ctx_free(&c);
    return r.printed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char *once = print_again((const char *)data, n);
    if (!once) return 0;
    char *twice = print_again(once, strlen(once));
    if (!twice || strcmp(once, twice) != 0) __builtin_trap();
    free(once);
    free(twice);
    return 0;
}
