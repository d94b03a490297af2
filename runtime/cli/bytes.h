/* Numbers of bytes on a command line: the trainer's and gnnc's. */
#ifndef RUNTIME_CLI_BYTES_H
#define RUNTIME_CLI_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* "512M", "4GiB": bytes; false: it is none. */
static inline bool rt_read_bytes(const char *s, int64_t *v) {
    char *end;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    int shift = 0;
    if (end == s || errno || x < 0) return false;
    if (*end == 'K') shift = 10;
    if (*end == 'M') shift = 20;
    if (*end == 'G') shift = 30;
    end += shift != 0;
    if (*end == 'i') end++;
    if (*end == 'B') end++;
    *v = (int64_t)((uint64_t)x << shift);
    return !*end && (*v >> shift) == x;
}

#endif
