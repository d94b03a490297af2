/* Mapped input and atomically replaced output.
 *
 * The order write, fsync, rename, fsync(directory) is what POSIX needs for a
 * file to be either old or new after a power cut (cf. SQLite's
 * "atomic commit", and Pillai et al. 2014, "All File Systems Are Not Created
 * Equal"). */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a regular file; other files fail. */
static gnnc_status file_size(int fd, const char *path, size_t *n, RtError *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return rt_fail_errno(err, path, "stat");
    if (!S_ISREG(st.st_mode)) return rt_fail(err, GNNC_E_IO, "%s: not a regular file", path);
    *n = (size_t)st.st_size;
    return GNNC_OK;
}

/* Maps a file of n bytes, until the pool is freed. */
static gnnc_status map_fd(RtPool *pool, int fd, const char *path, size_t n, RtBytes *out,
                          RtError *err) {
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return rt_fail_errno(err, path, "map");
    if (!rt_pool_own_mapping(pool, p, n)) {
        munmap(p, n);
        return rt_fail_nomem(err, path);
    }
    *out = (RtBytes){p, n};
    return GNNC_OK;
}

/* Reads a file of n bytes into the pool. */
static gnnc_status read_fd(RtPool *pool, int fd, const char *path, size_t n, RtBytes *out,
                           RtError *err) {
    uint8_t *to = rt_pool_alloc(pool, n, 1);
    if (!to) return rt_fail_nomem(err, path);
    for (size_t at = 0; at < n;) {
        ssize_t k = read(fd, to + at, n - at);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return rt_fail_errno(err, path, "read");
        if (k == 0) return rt_fail(err, GNNC_E_IO, "%s: became shorter while it was read", path);
        at += (size_t)k;
    }
    *out = (RtBytes){to, n};
    return GNNC_OK;
}

typedef gnnc_status GetBytes(RtPool *, int, const char *, size_t, RtBytes *, RtError *);

/* Opens a file and has `get` map or read it; an empty file is no bytes. */
static gnnc_status get_file(RtPool *pool, const char *path, GetBytes *get, RtBytes *out,
                            RtError *err) {
    size_t n = 0;
    /* O_NONBLOCK: a FIFO in place of a file must not hang the open. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return rt_fail_errno(err, path, "open");
    gnnc_status st = file_size(fd, path, &n, err);
    *out = (RtBytes){(const uint8_t *)"", 0};
    if (st == GNNC_OK && n > 0) st = get(pool, fd, path, n, out, err);
    close(fd);
    return st;
}

gnnc_status rt_file_map(RtPool *pool, const char *path, RtBytes *out, RtError *err) {
    return get_file(pool, path, map_fd, out, err);
}

gnnc_status rt_file_read(RtPool *pool, const char *path, RtBytes *out, RtError *err) {
    return get_file(pool, path, read_fd, out, err);
}

/* Maps n bytes of a file that is made that long first: else a full disk would kill the process
 * later. */
static gnnc_status map_scratch(RtPool *pool, int fd, const char *dir, size_t n, void **out,
                               RtError *err) {
    int room;
    do /* long enough for a host's timer to interrupt */
        room = posix_fallocate(fd, 0, (off_t)n);
    while (room == EINTR);
    if (room != 0) {
        errno = room;
        return rt_fail_errno(err, dir, "make room for working memory");
    }
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return rt_fail_errno(err, dir, "map working memory");
    if (!rt_pool_own_mapping(pool, p, n)) {
        munmap(p, n);
        return rt_fail_nomem(err, "working memory");
    }
    *out = p;
    return GNNC_OK;
}

gnnc_status rt_file_scratch(RtPool *pool, size_t n, void **out, RtError *err) {
    const char *dir = getenv("TMPDIR");
    if (!dir || !*dir) dir = "/var/tmp";
    if (n > (size_t)INT64_MAX) return rt_fail_nomem(err, "working memory");
    char *path = rt_pool_printf(pool, "%s/gnnc.XXXXXX", dir);
    if (!path) return rt_fail_nomem(err, "working memory");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) return rt_fail_errno(err, path, "open");
    unlink(path);
    gnnc_status st = map_scratch(pool, fd, dir, n, out, err);
    close(fd);
    return st;
}

char *rt_path_dir(RtPool *pool, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return rt_pool_strndup(pool, ".", 1);
    return rt_pool_strndup(pool, path, slash == path ? 1 : (size_t)(slash - path));
}

bool rt_is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool rt_ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

int rt_by_text(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

gnnc_status rt_dir_sync(const char *dir, RtError *err) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return rt_fail_errno(err, dir, "open");
    /* EINVAL: a file system without directory sync has nothing to promise. */
    int bad = fsync(fd) != 0 && errno != EINVAL;
    gnnc_status st = bad ? rt_fail_errno(err, dir, "sync") : GNNC_OK;
    close(fd);
    return st;
}

gnnc_status rt_dir_sync_files(const char *dir, RtError *err) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return rt_fail_errno(err, dir, "open");
    gnnc_status st = syncfs(fd) != 0 ? rt_fail_errno(err, dir, "sync") : GNNC_OK;
    close(fd);
    return st;
}

/* Makes a file of the first free name beside the target: of a file that has none (fd), or else a
 * new one. O_EXCL instead of mkstemp: the file's mode then follows the umask. */
static int take_name(RtOut *o, int fd) {
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    for (int k = 0; k < 1000; k++) {
        char *tmp = rt_pool_printf(&o->pool, "%s.tmp.%ld.%d", o->path, (long)getpid(), k);
        if (!tmp) {
            errno = ENOMEM;
            return -1;
        }
        int got = fd < 0 ? open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
                         : linkat(AT_FDCWD, self, AT_FDCWD, tmp, AT_SYMLINK_FOLLOW);
        if (got >= 0) o->tmp = tmp;
        if (got >= 0 || errno != EEXIST) return got;
    }
    return -1;
}

/* Opens a file without a name, which vanishes with a writer that is killed. It gets its name
 * through /proc (open(2), O_TMPFILE); where the file system or the machine has none of it, -1. */
static int open_nameless(const char *dir) {
    char self[32];
    int fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (access(self, F_OK) == 0) return fd;
    close(fd);
    return -1;
}

/* Opens the file that is written before it gets its name: a nameless one where the file system has
 * them. -1: errno says why not. */
static int open_temporary(RtOut *o) {
    const char *dir = rt_path_dir(&o->pool, o->path);
    if (!dir) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open_nameless(dir);
    return fd >= 0 ? fd : take_name(o, -1);
}

static gnnc_status no_file_beside(const char *path, RtError *err) {
    return errno == ENOMEM ? rt_fail_nomem(err, path)
                           : rt_fail_errno(err, path, "create a file beside");
}

/* Names a nameless file, for the rename that follows at once. */
static gnnc_status name_file(RtOut *o, int fd, RtError *err) {
    if (o->tmp || take_name(o, fd) == 0) return GNNC_OK;
    return no_file_beside(o->path, err);
}

/* The file that `path` leads to through links, so that the link stays and the file behind it is
 * replaced.  A rename over a device or a pipe (as root, over /dev/null itself) would make a file of
 * it: those are refused, reached through links or not. */
static gnnc_status find_target(RtOut *o, const char *path, RtError *err) {
    struct stat s;
    char real[PATH_MAX];
    bool is_link = lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return rt_fail(err, GNNC_E_IO, "%s: not a regular file, will not be replaced", path);
    if (is_link && !realpath(path, real)) return rt_fail_errno(err, path, "follow the link");
    if (is_link) path = real;
    o->path = rt_pool_strndup(&o->pool, path, strlen(path));
    return o->path ? GNNC_OK : rt_fail_nomem(err, path);
}

/* Opens a file that gets its name, in the place of an old one, when it is committed. */
gnnc_status rt_out_open(RtOut *o, const RtAlloc *from, const char *path, RtError *err) {
    *o = (RtOut){.fd = -1};
    rt_pool_init(&o->pool, from);
    gnnc_status st = find_target(o, path, err);
    if (st == GNNC_OK && (o->fd = open_temporary(o)) < 0) st = no_file_beside(path, err);
    if (st != GNNC_OK) rt_pool_free(&o->pool);
    return st;
}

gnnc_status rt_out_create(RtOut *o, const RtAlloc *from, const char *path, RtError *err) {
    *o = (RtOut){.fd = -1, .is_part = true};
    rt_pool_init(&o->pool, from);
    o->path = o->tmp = rt_pool_strndup(&o->pool, path, strlen(path));
    if (o->path) o->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->fd >= 0) return GNNC_OK;
    gnnc_status st = o->path ? rt_fail_errno(err, path, "create") : rt_fail_nomem(err, path);
    rt_pool_free(&o->pool);
    return st;
}

/* Writes n bytes. */
gnnc_status rt_out_write(RtOut *o, const void *p, size_t n, RtError *err) {
    const char *s = p;
    while (n > 0) {
        ssize_t k = write(o->fd, s, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return rt_fail_errno(err, o->path, "write");
        s += k;
        n -= (size_t)k;
    }
    return GNNC_OK;
}

/* Gives the written file its name, in the place of the old one, at once; what can be made again is
 * not synced. */
static gnnc_status replace(RtOut *o, int fd, RtError *err) {
    gnnc_status st;
    const char *dir = rt_path_dir(&o->pool, o->path);
    if (!dir) return rt_fail_nomem(err, o->path);
    if (!o->is_derived && fsync(fd) != 0) return rt_fail_errno(err, o->path, "sync");
    TRY(st, name_file(o, fd, err));
    if (rename(o->tmp, o->path) != 0) return rt_fail_errno(err, o->path, "replace");
    o->tmp = NULL;
    if (!o->is_derived) st = rt_dir_sync(dir, err);
out:
    return st;
}

/* Closes the file, and gives it its name; after a failure nothing is left of it. */
gnnc_status rt_out_commit(RtOut *o, RtError *err) {
    int fd = o->fd;
    gnnc_status st = o->is_part ? GNNC_OK : replace(o, fd, err);
    o->fd = -1;
    if (close(fd) != 0 && st == GNNC_OK) st = rt_fail_errno(err, o->path, "close");
    if (st != GNNC_OK && o->tmp) unlink(o->tmp);
    rt_pool_free(&o->pool);
    return st;
}

void rt_out_abort(RtOut *o) {
    if (o->fd < 0) return;
    close(o->fd);
    o->fd = -1;
    if (o->tmp) unlink(o->tmp);
    rt_pool_free(&o->pool);
}
