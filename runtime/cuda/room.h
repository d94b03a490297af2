/* How much of a device's memory a kernel may use while it runs (kernel.h, runtime/device/device.c):
 * those of a stream the same, as they run one after the other. */
#ifndef RUNTIME_CUDA_ROOM_H
#define RUNTIME_CUDA_ROOM_H

enum {
    RT_DEVICE_ROOM_BYTES = 4 << 20,
    RT_DEVICE_ROOM_ALIGN = 256 /* of each array that a stage of a kernel leaves to the next */
};

#endif
