/* A strict JSON reader (RFC 8259): one tree in a pool, positions in messages.
 * Own code rather than cJSON because cJSON keeps its last error and its
 * allocator in globals. */
#ifndef RUNTIME_JSON_H
#define RUNTIME_JSON_H

#include "io.h"

typedef enum {
    RT_JSON_NULL,
    RT_JSON_BOOL,
    RT_JSON_NUMBER,
    RT_JSON_STRING,
    RT_JSON_ARRAY,
    RT_JSON_OBJECT
} RtJsonKind;

typedef struct RtJson RtJson;
struct RtJson {
    RtJsonKind kind;
    const char *key;  /* in an object; else NULL */
    const char *text; /* STRING: UTF-8 without NUL inside; NUMBER: its digits, where it is whole and
                         does not fit, else NULL */
    double number;    /* NUMBER; BOOL: 0 or 1 */
    bool is_int;      /* NUMBER without fraction or exponent that fits: `i` is exact */
    int64_t i;
    RtJson *first, *next; /* children and siblings, in order */
    int n;                /* children */
    int line;
};

/* `name` is what messages call the text. Objects with a repeated key, texts
 * nested deeper than 64 and anything after the value are refused. */
gnnc_status rt_json_parse(RtPool *pool, RtBytes text, const char *name, RtJson **out, RtError *err);
const RtJson *rt_json_get(const RtJson *object, const char *key); /* NULL: absent, or no object */

/* Appends s as a JSON string, quotes included, to a buffer that grows in the
 * pool; false: no memory. */
typedef struct RtText {
    RtPool *pool;
    char *s; /* NUL-terminated after the first append */
    size_t n, cap;
} RtText;
bool rt_text_put(RtText *t, const char *s, size_t n);
bool rt_text_printf(RtText *t, const char *fmt, ...) RT_PRINTF(2, 3);
bool rt_text_json_string(RtText *t, const char *s);

#endif
