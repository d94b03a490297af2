/* How much memory this process may have: the least of what is free on the machine, what its control
 * groups allow (version 2, or 1), and the rest of its address space (`ulimit -v`). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory.h"

static void take(RtMemoryLimit *l, uint64_t n_bytes, const char *what) {
    if (n_bytes >= l->n_bytes) return;
    *l = (RtMemoryLimit){(size_t)n_bytes, what};
}

/* Reads the number that a file of the system begins with; false: there is no file, or no number. */
static bool read_number(const char *path, uint64_t *n) {
    FILE *f = fopen(path, "r");
    bool ok = f && fscanf(f, "%" SCNu64, n) == 1; /* "max" is none */
    if (f) fclose(f);
    return ok;
}

/* Lowers the limit to what the group and all groups that it lies in allow. */
static void take_group(RtMemoryLimit *l, const char *root, char *group, const char *file) {
    char path[1200];
    uint64_t n;
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, file);
        if (read_number(path, &n)) take(l, n, "its control group allows");
        char *last = strrchr(group, '/');
        if (!last) return;
        *last = '\0';
    }
}

/* Lowers the limit to what the process's control groups allow, of version 2 (an empty list of
 * controllers) and of version 1. */
static void take_groups(RtMemoryLimit *l) {
    char line[1100];
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : 0;
        if (!group) continue;
        *group++ = '\0';
        if (controllers[1] == '\0')
            take_group(l, "/sys/fs/cgroup", group, "memory.max");
        else if (strcmp(controllers + 1, "memory") == 0)
            take_group(l, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    }
    if (f) fclose(f);
}

/* Lowers the limit to what the machine has free, and the `have` bytes that are the trainer's
 * already. */
static void take_free(RtMemoryLimit *l, size_t have) {
    char line[200];
    uint64_t kb;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kb) == 1)
            take(l, (kb << 10) + have, "the machine has free");
    if (f) fclose(f);
}

/* Lowers the limit to what is left of the address space that ulimit -v allows, and the `have`
 * bytes. */
static void take_address_space(RtMemoryLimit *l, size_t have) {
    struct rlimit r;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return;
    if (!read_number("/proc/self/statm", &pages)) return;
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE), all = r.rlim_cur;
    take(l, (all > used ? all - used : 0) + have, "its address space (ulimit -v) has room for");
}

/* The least of what limits the process, and which it is; `have` bytes are the trainer's already,
 * and count as free. */
RtMemoryLimit rt_memory_limit(size_t have) {
    RtMemoryLimit l = {SIZE_MAX, "the machine has"};
    take(&l, (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), l.what);
    take_groups(&l);
    take_free(&l, have);
    take_address_space(&l, have);
    return l;
}
