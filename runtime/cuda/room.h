/* How much of a device's memory a kernel may use while it runs (kernel.h, runtime/device/device.c):
 * those of a stream the same, as they run one after the other; and what long rows are cut into that
 * leave their sums there. */
#ifndef RUNTIME_CUDA_ROOM_H
#define RUNTIME_CUDA_ROOM_H

#include <stdint.h>

enum {
    RT_DEVICE_ROOM_BYTES = 4 << 20,
    RT_DEVICE_ROOM_ALIGN = 256 /* of each array that a stage of a kernel leaves to the next */
};

/* Entries of a part, at least so many for each head, whose sums are so many numbers; 0 = one block
 * has a row, as all rows have fewer than `from` or none can be longer than two parts. A block with
 * one head of many has few lanes for it, and as many more ways.  Each part has room for a row that
 * began before it and for one that begins in it. */
static inline int64_t gn_part_of_entries(int64_t entries, int64_t numbers, int64_t heads,
                                         int64_t least, int64_t from) {
    const int64_t parts =
        RT_DEVICE_ROOM_BYTES / (int64_t)(2 * sizeof(float)) / (numbers > 1 ? numbers : 1);
    if (entries <= 0 || entries < from || parts < 1) return 0;
    const int64_t equal = (entries - 1) / parts + 1;
    const int64_t part = least * heads > equal ? least * heads : equal;
    return entries > 2 * part ? part : 0;
}

#endif
