#include "import_image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/data/encoder_cells.h"

/* Relative ones begin where the input lies; false: too long. */
static bool path_of(const RtImport *how, const char *text, char *to, size_t n) {
    bool plain = *text == '/' || !how->folder;
    int k = plain ? snprintf(to, n, "%s", text) : snprintf(to, n, "%s/%s", how->folder, text);
    return k > 0 && (size_t)k < n;
}

/* Reads the picture that a cell names, side by side pixels of three colours. NULL: it is good; else
 * why not. */
static const char *read_image(const RtImport *how, const char *text, int side, float *to) {
    char path[4096];
    if (!how->read_image) return "an image: this gnnc was built without libpng and libjpeg";
    return path_of(how, text, path, sizeof path) ? how->read_image(path, side, to)
                                                 : "too long a path";
}

const char *rt_import_cell(const RtImport *how, const RtEncoder *e, const RtCell *cell, void *to,
                           int64_t row, int *at) {
    bool empty = !cell->text || rt_cell_absent(cell->text);
    if (e->as != RT_AS_IMAGE || empty) return rt_encode(e, cell, to, row, at);
    *at = 0;
    return read_image(how, cell->text, rt_image_side(e->out), (float *)to + row * e->out);
}

bool rt_import_is_image(const RtImport *how, const char *text) {
    float one[3];
    return how->read_image && !read_image(how, text, 1, one);
}
