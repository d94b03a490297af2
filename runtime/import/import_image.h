/* Cells that are paths of pictures.  Only an import reads them; where none can be read, and in
 * products, they are an error. */
#ifndef RUNTIME_IMPORT_IMAGE_H
#define RUNTIME_IMPORT_IMAGE_H

#include "runtime/data/encoder.h"
#include "import.h"

/* rt_encode() of an import, which reads pictures as well. */
const char *rt_import_cell(const RtImport *how, const RtEncoder *e, const RtCell *cell, void *to,
                           int64_t row, int *at);
/* Is there such a picture, which can be read? */
bool rt_import_is_image(const RtImport *how, const char *text);

#endif
