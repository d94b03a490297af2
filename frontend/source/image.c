/* PNG and JPEG files to small tensors.  Each pixel of the result is the mean of its part of the
 * picture, so that nothing hangs on single pixels of a large one. */
#include "image.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if SOURCE_HAVE_PNG
#include <png.h>
#endif
#if SOURCE_HAVE_JPEG
#include <jpeglib.h>
#include <jerror.h>
#include <setjmp.h>
#endif

/* Red, green, blue of each pixel, from malloc(). */
typedef struct {
    size_t width, height;
    unsigned char *rgb;
} Picture;

enum { MOST_PIXELS = 1 << 26 };

#if SOURCE_HAVE_PNG || SOURCE_HAVE_JPEG
static bool is_of_size(size_t width, size_t height) {
    return width && height && width <= MOST_PIXELS && height <= MOST_PIXELS / width;
}

/* Takes memory for a picture of that size. False: it is too large, or memory ran out. */
static bool make_room(Picture *p, size_t width, size_t height) {
    if (!is_of_size(width, height)) return false;
    p->width = width;
    p->height = height;
    p->rgb = malloc(3 * width * height);
    return p->rgb;
}
#endif

#if SOURCE_HAVE_PNG
/* Reads a PNG file; what is transparent becomes white. NULL, or what is wrong with the file. */
static const char *read_png(FILE *f, Picture *p) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    const png_color white = {255, 255, 255};
    if (!png_image_begin_read_from_stdio(&image, f)) return "a PNG file that cannot be read";
    image.format = PNG_FORMAT_RGB;
    bool ok = make_room(p, image.width, image.height);
    ok = ok && png_image_finish_read(&image, &white, p->rgb, 0, NULL);
    png_image_free(&image);
    return ok ? NULL : "a PNG file that is damaged or too large";
}
#endif

#if SOURCE_HAVE_JPEG
typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf out;
} JpegError;

static void jpeg_failed(j_common_ptr info) {
    longjmp(((JpegError *)info->err)->out, 1);
}

static void jpeg_says(j_common_ptr info) {
    (void)info;
}

/* Where data end too early, or are damaged, the library warns and makes the rest grey. */
static void jpeg_warns(j_common_ptr info, int level) {
    int what = info->err->msg_code;
    if (level < 0 && (what == JWRN_HIT_MARKER || what == JWRN_HUFF_BAD_CODE)) jpeg_failed(info);
}

/* Reads all rows of a JPEG file. The library leaves by longjmp if it cannot. */
static void read_rows(struct jpeg_decompress_struct *info, Picture *p) {
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = p->rgb + 3 * p->width * info->output_scanline;
        jpeg_read_scanlines(info, &row, 1);
    }
}

/* libjpeg leaves by longjmp() where a file is damaged: what is to be freed lies in *p. */
static const char *read_jpeg(FILE *f, Picture *p) {
    struct jpeg_decompress_struct info;
    JpegError error;
    memset(&info, 0, sizeof info);
    info.err = jpeg_std_error(&error.base);
    error.base.error_exit = jpeg_failed;
    error.base.output_message = jpeg_says;
    error.base.emit_message = jpeg_warns;
    if (setjmp(error.out)) {
        jpeg_destroy_decompress(&info);
        return "a JPEG file that cannot be read";
    }
    jpeg_create_decompress(&info);
    jpeg_stdio_src(&info, f);
    jpeg_read_header(&info, TRUE);
    bool ok = is_of_size(info.image_width, info.image_height); /* before it takes room for it */
    info.out_color_space = JCS_RGB;
    if (ok) jpeg_start_decompress(&info);
    ok = ok && make_room(p, info.output_width, info.output_height);
    if (ok) read_rows(&info, p);
    if (ok) jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return ok ? NULL : "a JPEG file that is too large";
}
#endif

/* Part i of n of a length, of one pixel at least. */
static size_t begin_of(size_t length, size_t i, size_t n) {
    return i * length / n;
}

static size_t end_of(size_t length, size_t i, size_t n) {
    size_t end = begin_of(length, i + 1, n), begin = begin_of(length, i, n);
    return end > begin ? end : begin + 1;
}

/* The mean of one colour over a cell of a grid of side * side, from 0 to 1. */
static float mean_of(const Picture *p, size_t row, size_t column, size_t side, size_t colour) {
    uint64_t sum = 0, n = 0;
    for (size_t y = begin_of(p->height, row, side); y < end_of(p->height, row, side); y++)
        for (size_t x = begin_of(p->width, column, side); x < end_of(p->width, column, side); x++)
            sum += p->rgb[3 * (y * p->width + x) + colour], n++;
    return (float)((double)sum / (255.0 * (double)n));
}

/* Writes the picture as three planes of side * side, one for each colour. */
static void shrink(const Picture *p, size_t side, float *to) {
    for (size_t colour = 0; colour < 3; colour++)
        for (size_t i = 0; i < side * side; i++)
            *to++ = mean_of(p, i / side, i % side, side, colour);
}

/* Reads a PNG or JPEG file and shrinks it to 3 * side * side numbers in `to`. NULL, or what is
 * wrong with the file. */
const char *source_read_image(const char *path, int side, float *to) {
    static const unsigned char png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    unsigned char head[4] = {0};
    Picture p = {0};
    struct stat is;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode)) return "no file"; /* a pipe may never open */
    FILE *f = fopen(path, "rbe");
    if (!f) return errno == ENOENT ? "no file that is there" : "a file that cannot be read";
    size_t n = fread(head, 1, sizeof head, f);
    const char *what = "neither a PNG nor a JPEG file";
    rewind(f);
    (void)png, (void)jpeg, (void)n;
#if SOURCE_HAVE_PNG
    if (n == sizeof head && memcmp(head, png, sizeof png) == 0) what = read_png(f, &p);
#endif
#if SOURCE_HAVE_JPEG
    if (n == sizeof head && memcmp(head, jpeg, sizeof jpeg) == 0) what = read_jpeg(f, &p);
#endif
    fclose(f);
    if (!what && p.rgb) shrink(&p, (size_t)side, to);
    free(p.rgb);
    return what;
}
