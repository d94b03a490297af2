/* safetensors files: an 8-byte header length, a JSON header, the tensors.
 * https://github.com/huggingface/safetensors#format */
#ifndef RUNTIME_SAFETENSORS_H
#define RUNTIME_SAFETENSORS_H

#include "npy.h"

typedef struct RtTensor {
    const char *name;
    RtArray a; /* row-major */
} RtTensor;

typedef struct RtMeta {
    const char *key, *value; /* of "__metadata__" */
} RtMeta;

typedef struct RtTensors {
    int n, n_meta;
    RtTensor *v; /* sorted by name when read */
    RtMeta *meta;
} RtTensors;

/* Strict: offsets lie inside the file, tensors neither overlap nor leave holes,
 * sizes agree with shapes. Data point into `file` (a copy where misaligned). */
gnnc_status rt_safetensors_parse(RtPool *pool, RtBytes file, const char *name, RtTensors *out,
                                 RtError *err);
gnnc_status rt_safetensors_open(RtPool *pool, const char *path, RtTensors *out, RtError *err);
RtTensor *rt_tensors_find(const RtTensors *t, const char *name);  /* in a read file */
const char *rt_tensors_meta(const RtTensors *t, const char *key); /* NULL: absent */

/* Takes a file piece by piece: n bytes, which n_left more follow. */
typedef struct RtSink {
    gnnc_status (*write)(void *user, const void *p, size_t n, size_t n_left, RtError *err);
    void *user; /* of write */
} RtSink;

/* Tensors lie so that each is aligned for its elements, and those of a multiple of 64 bytes to 64:
 * readers that map the file use them where they lie.  Bytes depend on the tensors only; `name` is
 * for messages. */
gnnc_status rt_safetensors_write(const RtAlloc *from, const char *name, const RtTensors *t,
                                 const RtSink *to, RtError *err);
/* Replaces `path` atomically; on any error the old file is intact. */
gnnc_status rt_safetensors_save(const RtAlloc *from, const char *path, const RtTensors *t,
                                RtError *err);

#endif
