/* Tables that libraries exchange in memory, as the Arrow C data interface publishes them: names and
 * order are its, so that a record batch of any producer can be given to gnnc_graph_add_arrow.
 *
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html; Apache License 2.0, copyright
 * the Apache Software Foundation, which asks that these definitions be copied into who uses them.
 * The guard is the published one: a program may have that header, too, in any order. */
#ifndef GNNC_ARROW_H
#define GNNC_ARROW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *); /* NULL once it was called, or what is here moved */
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count; /* -1 = unknown */
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif
#endif
