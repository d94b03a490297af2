/* Tests that run inside a compiler context: CTX_TEST(name) { .. c .. }, or with_ctx(fn, arg); and
 * with little memory. */
#ifndef TESTS_CTX_TEST_H
#define TESTS_CTX_TEST_H

#include "ir/base.h"
#include "test.h"

static inline void with_ctx(void (*fn)(Ctx *, void *), const void *arg) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, fn, (void *)(uintptr_t)arg));
    ctx_free(&c);
}

/* Memory that gives so many blocks and then none, and counts those that are not given back. */
typedef struct {
    long left, live;
} FewBlocks;

static inline void *few_blocks_alloc(void *user, size_t n) {
    FewBlocks *b = user;
    if (b->left-- <= 0) return NULL;
    b->live++;
    return malloc(n);
}

static inline void few_blocks_release(void *user, void *block) {
    ((FewBlocks *)user)->live -= block != NULL;
    free(block);
}

static inline Allocator few_blocks(FewBlocks *b, long left, size_t block_bytes) {
    *b = (FewBlocks){.left = left};
    return (Allocator){few_blocks_alloc, few_blocks_release, b, block_bytes};
}

#define CTX_TEST(name)                                                                             \
    static void name##_in(Ctx *c, void *arg);                                                      \
    TEST(name) {                                                                                   \
        with_ctx(name##_in, NULL);                                                                 \
    }                                                                                              \
    static void name##_in(Ctx *c, void *arg)

#endif
