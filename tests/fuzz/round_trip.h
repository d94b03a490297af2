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
} Run;

static inline char *print_again(void (*run)(Ctx *, void *), const char *text, size_t n) {
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

static inline void round_trip(void (*run)(Ctx *, void *), const uint8_t *data, size_t n) {
    char *once = print_again(run, (const char *)data, n);
    if (!once) return;
    char *twice = print_again(run, once, strlen(once));
    if (!twice || strcmp(once, twice) != 0) __builtin_trap();
    free(once);
    free(twice);
}

#endif
