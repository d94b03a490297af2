/* What is read is printed so that it is read again, and then prints the same. */
#ifndef TESTS_FUZZ_ROUND_TRIP_H
#define TESTS_FUZZ_ROUND_TRIP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/base.h"

typedef struct {
    const char *text;
    size_t n;
    char *printed; /* malloc'd; NULL: it could not be read */
} Text;

/* In a context of its own, whose diagnostics are printed for nobody. */
static inline void run_alone(void (*run)(Ctx *, void *), void *arg) {
    Ctx c;
    if (!ctx_init(&c, NULL)) return;
    ctx_run(&c, run, arg);
    FILE *null = fopen("/dev/null", "w");
    if (null) {
        diag_print_all(&c, null, true);
        fclose(null);
    }
    ctx_free(&c);
}

static inline char *print_again(void (*run)(Ctx *, void *), const char *text, size_t n) {
    Text t = {.text = text, .n = n};
    run_alone(run, &t);
    return t.printed;
}

static inline void round_trip(void (*run)(Ctx *, void *), const uint8_t *data, size_t n) {
    char *once = print_again(run, (const char *)data, n);
    if (!once) return;
    char *twice = print_again(run, once, strlen(once));
    if (!twice || strcmp(once, twice) != 0) __builtin_trap();
    free(once);
    free(twice);
}

/* The fuzz target of texts that `run` reads and prints. */
#define ROUND_TRIP_FUZZER(run)                                                                     \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);                                     \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {                                    \
        round_trip(run, data, n);                                                                  \
        return 0;                                                                                  \
    }

#endif
