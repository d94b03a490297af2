/* Encoders of cells that hold more than a number or a name: booleans, texts, vectors, several
 * categories.  Functions of rt_encode(); their values are those of a FLOAT column. */
#ifndef RUNTIME_ENCODER_CELLS_H
#define RUNTIME_ENCODER_CELLS_H

#include "encoder.h"

enum {
    RT_IMAGE_SIDE = 8, /* of a picture, unless something else is said */
    RT_MOST_SIDE = 36,
    RT_TEXT_VALUES = 64,   /* of a text, unless something else is said */
    RT_MOST_VALUES = 4096, /* of any cell */
    RT_PART_TEXT = 256     /* bytes of one of several categories, at most */
};

const char *rt_encode_boolean(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at);
const char *rt_encode_text(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at);
const char *rt_encode_vector(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at);
const char *rt_encode_several(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at);

/* An error, of cells that are not empty: rt_import_cell() (import_image.h) reads them. */
const char *rt_encode_image(const RtEncoder *e, const RtCell *c, void *to, int64_t row, int *at);
/* The side of 3 * side * side values; 0: there is none. */
int rt_image_side(int values);

/* "true", "f", "Yes", "0": *v; false: no such word. */
bool rt_cell_boolean(const char *text, bool *v);
/* Numbers of "[1, 2.5]", "{1,2.5}" or "(1,2.5)"; -1: the cell is no list of numbers. */
int64_t rt_cell_vector(const char *text);

/* The parts of a cell, one after another: between separators, or where that is 0 of a list as JSON
 * or PostgreSQL writes it, ["a", "b c"] or {a,"b c"}.  Blanks around a part, empty ones and NULLs
 * are left out. */
typedef struct RtParts {
    const char *s;  /* what is still to be read */
    char separator; /* "," of a list */
    char end;       /* of a list: its bracket; else 0 */
    bool bad;       /* out: it is no list, or a part is too long */
} RtParts;
void rt_parts_open(RtParts *p, const char *text, char separator);
bool rt_parts_next(RtParts *p, char part[RT_PART_TEXT]); /* false: no more, or bad */
/* Can the cell be read so to its end? */
bool rt_cell_several(const char *text, char separator);

#endif
