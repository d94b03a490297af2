/* Fuzz target: any bytes as IR text.  A text that parses and verifies must print
 * to a text that parses again and prints the same. */
#include "ir/ir.h"

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
    Module *m = module_parse(c, ctx_add_text(c, "fuzz.gir", r->text, r->n));
    if (!m || !module_verify(c, m, "parse")) return;
    StrBuf b = sb_new(c->a);
    module_print(&b, m);
    r->printed = strdup(b.s);
}

static char *print_again(const char *text, size_t n) {
    Ctx c;
    Run r = {.text = text, .n = n};
    if (!ctx_init(&c, NULL)) return NULL;
    ctx_run(&c, run, &r);
    FILE *null = fopen("/dev/null", "w");
    if (null) {
        diag_print_all(&c, null, true);
        fclose(null);
    }
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
