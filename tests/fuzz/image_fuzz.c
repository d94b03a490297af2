/* Fuzz target: any bytes as a picture.  It ends in words, or in pixels from 0 to 1. */
#define SOURCE_HAVE_PNG 1
#define SOURCE_HAVE_JPEG 1
#include "frontend/source/image.c"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* In memory, where there is such a place. */
static void write_file(char path[64], const uint8_t *data, size_t n) {
    bool shared = access("/dev/shm", W_OK) == 0;
    snprintf(path, 64, "%s/image_fuzz_%ld", shared ? "/dev/shm" : "/tmp", (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { SIDE = 3, VALUES = 3 * SIDE * SIDE };
    float v[VALUES];
    char path[64];
    for (int i = 0; i < VALUES; i++) v[i] = -1;
    write_file(path, data, n);
    const char *what = source_read_image(path, SIDE, v);
    unlink(path);
    if (what && !*what) abort();
    for (int i = 0; i < VALUES && !what; i++)
        if (!(v[i] >= 0 && v[i] <= 1)) abort();
    return 0;
}
