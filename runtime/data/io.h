/* Files: mapped for reading; for writing, replaced as a whole or not at all. */
#ifndef RUNTIME_IO_H
#define RUNTIME_IO_H

#include "runtime/status.h"

typedef struct RtBytes {
    const uint8_t *p;
    size_t n;
} RtBytes;

/* Maps a regular file read-only; the mapping lives as long as the pool.  A file that shrinks
 * meanwhile ends the process with SIGBUS, and one that changes changes what was checked: for
 * importers, which end soon, and for values that index nothing, as weights. */
gnnc_status rt_file_map(RtPool *pool, const char *path, RtBytes *out, RtError *err);

/* The bytes of a regular file as they are now, in the pool. */
gnnc_status rt_file_read(RtPool *pool, const char *path, RtBytes *out, RtError *err);

/* n bytes, zeros, of a file without a name in $TMPDIR, else /var/tmp, which gives all of
 * them room at once; mapped for writing, as long as the pool lives. */
gnnc_status rt_file_scratch(RtPool *pool, size_t n, void **out, RtError *err);

/* A file being replaced: bytes go to a file beside it that has no name, or where the file system
 * knows none of those to "<path>.tmp.<pid>.<k>"; commit syncs it and renames it over `path`, so a
 * reader sees the old file or the new one, also after a crash.  A link is followed: the file that
 * it leads to is replaced.  On any error the temporary file is gone and `path` untouched. */
typedef struct RtOut {
    int fd; /* -1 = closed */
    RtPool pool;
    const char *path, *tmp; /* tmp: NULL while the file has no name */
    bool is_part;           /* made by rt_out_create: it has its name already */
    bool is_derived; /* set after open: what a power cut spoils is made again, so nothing is synced
                      */
} RtOut;
gnnc_status rt_out_open(RtOut *o, const RtAlloc *from, const char *path, RtError *err);
/* A new file of a directory that is renamed as a whole: made at its place, and not synced by
 * commit, as rt_dir_sync_files does that for all of them at once. */
gnnc_status rt_out_create(RtOut *o, const RtAlloc *from, const char *path, RtError *err);
gnnc_status rt_out_write(RtOut *o, const void *p, size_t n, RtError *err);
gnnc_status rt_out_commit(RtOut *o, RtError *err);
void rt_out_abort(RtOut *o); /* no effect after commit */

/* fsync of a directory, so that a rename in it survives a power cut. */
gnnc_status rt_dir_sync(const char *dir, RtError *err);
/* Everything that was written to the file system of a directory reaches its disk: one wait instead
 * of one a file. */
gnnc_status rt_dir_sync_files(const char *dir, RtError *err);
/* The directory part of a path, "." if none. */
char *rt_path_dir(RtPool *pool, const char *path);

/* Names of files, and other texts: is it "." or ".."; are its last characters these; for qsort. */
bool rt_is_dots(const char *name);
bool rt_ends_with(const char *s, const char *end);
int rt_by_text(const void *x, const void *y); /* const char * each */

#endif
