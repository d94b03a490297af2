/* Pictures that gnnc import reads: only the compiler's program links libpng and libjpeg. */
#ifndef FRONTEND_SOURCE_IMAGE_H
#define FRONTEND_SOURCE_IMAGE_H

/* As RtReadImage says (runtime/import/import_image.h). */
const char *source_read_image(const char *path, int side, float *to);

#endif
