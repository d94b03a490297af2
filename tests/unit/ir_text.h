/* What the IR tests share: parsing a text, printing it. */
#ifndef TESTS_UNIT_IR_TEXT_H
#define TESTS_UNIT_IR_TEXT_H

#include "ctx_test.h"
#include "ir/ir.h"

typedef struct {
    const char *text;
    size_t n;
    Module *m;
    bool verified;
    char *printed; /* malloc'd; NULL when it did not parse */
    const Func *only;
} Round;

static inline void round_run(Ctx *c, void *arg) {
    Round *r = arg;
    r->m = module_parse(c, ctx_add_text(c, "t.gir", r->text, r->n));
    if (!r->m) return;
    r->verified = module_verify(c, r->m, "parse");
    StrBuf b = sb_new(c->a);
    module_print(&b, r->m);
    r->printed = strdup(b.s);
}

/* The printed text, malloc'd; NULL after mistakes, which are shown when `show`. */
static inline char *round_trip(const char *text, bool show) {
    Ctx c;
    Round r = {.text = text, .n = strlen(text)};
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, round_run, &r));
    if (show && c.n_errors) diag_print_all(&c, stderr, false);
    if (!r.verified) {
        free(r.printed);
        r.printed = NULL;
    }
    ctx_free(&c);
    return r.printed;
}

#endif
