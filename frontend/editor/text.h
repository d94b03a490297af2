/* Places in a text as editors count them: lines from 0, and UTF-16 units in a line. */
#ifndef FRONTEND_EDITOR_TEXT_H
#define FRONTEND_EDITOR_TEXT_H

#include "ir/base.h"

typedef struct {
    int64_t line, unit;
} TextPlace;

/* Where `at` is in bytes; what lies behind the end of a line, or of the text, is that end. */
size_t text_offset(const char *text, size_t n, TextPlace at);
TextPlace text_place(const char *text, size_t n, size_t offset);
/* Of a line and a column as Span has them. */
size_t text_offset_of(const char *text, size_t n, uint32_t line, uint32_t col);
/* The name that `offset` is in or behind: its beginning; *end is behind it. */
size_t text_name(const char *text, size_t n, size_t offset, size_t *end);
bool text_is_name(const char *s);

/* "file:///a%20b.gnn" -> "/a b.gnn"; another kind of address stays as it is. */
const char *text_path_of_uri(Arena *a, const char *uri);
const char *text_uri_of_path(Arena *a, const char *path);

#endif
