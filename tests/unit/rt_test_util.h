/* Helpers for the runtime's tests: a failing allocator and scratch directories. */
#ifndef RT_TEST_UTIL_H
#define RT_TEST_UTIL_H

#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/data/npy.h"

/* Fails the n-th call (0-based) and every later one; counts live blocks. */
typedef struct {
    long n_calls, fail_at, n_live;
} FailingAlloc;

static inline void *failing_alloc(void *user, size_t n) {
    FailingAlloc *f = user;
    if (f->fail_at >= 0 && f->n_calls >= f->fail_at) return NULL;
    f->n_calls++;
    void *p = calloc(1, n);
    f->n_live += p != NULL;
    return p;
}

static inline void failing_release(void *user, void *p) {
    ((FailingAlloc *)user)->n_live -= p != NULL;
    free(p);
}

static inline RtAlloc failing(FailingAlloc *f, long fail_at) {
    *f = (FailingAlloc){.fail_at = fail_at};
    return (RtAlloc){failing_alloc, failing_release, f};
}

/* A fresh directory; the caller frees with scratch_remove. */
static inline char *scratch_new(void) {
    static char name[64];
    snprintf(name, sizeof name, "/tmp/gnnc-test-XXXXXX");
    return mkdtemp(name);
}

static inline void scratch_remove(const char *dir) {
    DIR *list = opendir(dir);
    if (!list) return;
    for (struct dirent *e; (e = readdir(list));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) continue;
        if (unlink(path) != 0) scratch_remove(path);
    }
    closedir(list);
    rmdir(dir);
}

/* A locale that writes 0,5 becomes the process's, made in `dir`; false: this machine cannot. */
static inline bool comma_locale(const char *dir) {
    char command[300];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
             dir);
    setenv("LOCPATH", dir, 1);
    return system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
}

static inline int count_entries(const char *dir) {
    int n = -2; /* "." and ".." */
    DIR *list = opendir(dir);
    if (!list) return -1;
    while (readdir(list)) n++;
    closedir(list);
    return n;
}

static inline void write_file(const char *path, const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(p, 1, n, f);
    fclose(f);
}

/* A text, "" where it cannot be read; valid until the next call. */
static inline const char *file_text(const char *path) {
    static char text[16384];
    FILE *f = fopen(path, "rb");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f) fclose(f);
    return text;
}

/* d0 rows; of rank 2 with d1 columns. */
static inline void save_npy(const char *dir, const char *name, RtDtype dt, int rank, int64_t d0,
                            int64_t d1, const void *data) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    RtArray a = {
        .dt = dt, .rank = rank, .shape = {d0, d1}, .count = rank == 2 ? d0 * d1 : d0, .data = data};
    RtAlloc from = rt_alloc_default();
    if (rt_npy_save(&from, path, &a, NULL) != GNNC_OK) perror(path);
}

/* Does the system expect that what is mapped there is read in no order (its flag "rr")? */
static inline bool is_read_in_no_order(const void *p) {
    unsigned long long lo, hi, at = (uintptr_t)p;
    char line[400];
    bool here = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2) here = lo <= at && at < hi;
        found |= here && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " rr");
    }
    if (f) fclose(f);
    return found;
}

#endif
