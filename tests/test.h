/* A page-sized unit test harness.  A test file is
 *     TEST(name) { CHECK(1 + 1 == 2); CHECK_STR(got, "want"); }
 *     TEST_MAIN()
 * and prints "name_test: N passed, N failed" last. Run with a substring to select, or with
 * =NAME; --list prints the names: tests/all runs those of the long tests side by side. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct TestCase {
    const char *name;
    void (*fn)(void);
    struct TestCase *next;
} TestCase;
static TestCase *test_first_, **test_last_ = &test_first_;
static int test_bad_;

#define TEST(NAME)                                                                                 \
    static void test_##NAME(void);                                                                 \
    static TestCase case_##NAME = {#NAME, test_##NAME, NULL};                                      \
    __attribute__((constructor)) static void add_##NAME(void) {                                    \
        *test_last_ = &case_##NAME;                                                                \
        test_last_ = &case_##NAME.next;                                                            \
    }                                                                                              \
    static void test_##NAME(void)

#define CHECK(x)                                                                                   \
    ((x) ? (void)0                                                                                 \
         : (void)(fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #x), test_bad_ = 1))
#define CHECK_MSG(x, ...)                                                                          \
    ((x) ? (void)0                                                                                 \
         : (void)(fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__),    \
                  fputc('\n', stderr), test_bad_ = 1))
#define CHECK_STR(got, want)                                                                       \
    (strcmp((got), (want)) == 0 ? (void)0                                                          \
                                : (void)(fprintf(stderr, "%s:%d: got  \"%s\"\n    want \"%s\"\n",  \
                                                 __FILE__, __LINE__, (got), (want)),               \
                                         test_bad_ = 1))

static int test_main_(int argc, char **argv, const char *file) {
    int passed = 0, failed = 0;
    const char *only = argc > 1 ? argv[1] : "";
    bool list = !strcmp(only, "--list");
    for (TestCase *t = test_first_; t; t = t->next) {
        if (list) puts(t->name);
        if (list || !(*only == '=' ? !strcmp(t->name, only + 1) : !!strstr(t->name, only)))
            continue;
        test_bad_ = 0;
        t->fn();
        if (test_bad_)
            fprintf(stderr, "FAILED %s\n", t->name), failed++;
        else
            passed++;
    }
    if (list) return 0;
    const char *base = strrchr(file, '/');
    printf("%s: %d passed, %d failed\n", base ? base + 1 : file, passed, failed);
    return failed != 0;
}
/* A model of these tables (rt_program), for as long as the block that names it. */
#define MODEL_OF(tables) (&(gnnc_program){RT_PROGRAM_VERSION, (tables)})

#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv) {                                                              \
        return test_main_(argc, argv, __FILE__);                                                   \
    }
#endif
