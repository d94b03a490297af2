/* Tests that run inside a compiler context: CTX_TEST(name) { .. c .. }. */
#ifndef TESTS_CTX_TEST_H
#define TESTS_CTX_TEST_H

#include "ir/base.h"
#include "test.h"

static void with_ctx(void (*fn)(Ctx *, void *)) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, fn, NULL));
    ctx_free(&c);
}
#define CTX_TEST(name)                                                                             \
    static void name##_in(Ctx *c, void *arg);                                                      \
    TEST(name) {                                                                                   \
        with_ctx(name##_in);                                                                       \
    }                                                                                              \
    static void name##_in(Ctx *c, void *arg)

#endif
