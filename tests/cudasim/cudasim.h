/* A CUDA device for machines that have none: kernels that were written for nvcc are
 * compiled by the host's C++ compiler against the headers beside this one, and run here.
 *
 * The threads of a block are fibers.  One runs until it ends or waits at a barrier, a
 * shuffle or a vote; which one goes on then, and in which order blocks come, is drawn from
 * a seed.  So a missing barrier shows as a result that depends on the seed, a barrier that
 * some threads do not reach as a message, and a stray access as one of the host's
 * sanitizers' reports: while no kernel runs, device memory is poisoned for the host.
 *
 * Host threads may use it side by side: they take turns, a call or a kernel each.
 *
 * When work runs that a stream was given is chosen by CUDASIM_ORDER (queue.c); work is counted when
 * it is asked for, but what loops of a graph do. */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default) /* tests find them in a library */
typedef struct {
    int64_t synchronisations, allocations, host_to_device, device_to_host, device_to_device;
    int64_t launches, library_calls, graph_launches, fills;
    /* Of library calls, recorded ones when they are: products with an epilogue, several at once,
     * sparse ones. */
    int64_t ends, groups, spmms;
    int64_t iterations;      /* of loops in graphs */
    int64_t event_waits;     /* of the host, for an event; the other waits are synchronisations */
    int64_t transfers;       /* between processes' GPUs, of which this one's is an end */
    int64_t bytes_to_device; /* of host_to_device */
} cudasim_counters;
cudasim_counters *cudasim_count(void);      /* since the start; may be written */
cudasim_counters *cudasim_count_here(void); /* the calling thread's part of it */
void cudasim_seed(uint64_t seed);           /* of the order of blocks and threads */
void cudasim_order(const char *order);      /* from now on, as CUDASIM_ORDER */
int64_t cudasim_live_bytes(void);           /* of device memory */
/* What goes wrong, -1: nothing.  Device memory beyond so many bytes; the launch after so many more
 * fails with this cudaError_t; the copy to the device after so many more has its first two 32-bit
 * words swapped; the call for graphs (recording, making, launching them) after so many more fails
 * with this cudaError_t; the call of cuSPARSE, or of cuBLAS(Lt) for what others can do, with this
 * status; the wait after so many more by which a recorded node comes after one that it would not
 * have come after otherwise is forgotten (how many are to come: .._until_forgotten). */
void cudasim_memory(int64_t most_bytes);
void cudasim_break_launches(int64_t launches, int error);
void cudasim_garble(int64_t copies);
void cudasim_break_graphs(int64_t calls, int error);
void cudasim_break_libraries(int64_t calls, int status);
void cudasim_forget_wait(int64_t waits);
int64_t cudasim_waits_until_forgotten(void);

/* ---- for the headers -------------------------------------------------------------------- */
typedef struct {
    struct {
        unsigned x, y, z;
    } thread, block, block_dim, grid_dim;
    unsigned flat; /* index of the thread in its block */
} cudasim_place;
/* Of the thread that runs: while it does, always the same place, so one call for a function. */
const cudasim_place *cudasim_now(void) __attribute__((const));
void cudasim_sync_block(void);
/* Meets the other lanes of mask; returns the values of all 32, of which those in the mask
 * are set, until the thread's next exchange. */
const uint64_t *cudasim_exchange(unsigned mask, uint64_t value);
void cudasim_fail(const char *what); /* says where and ends the process */
/* By a kernel, of a loop of the graph that is launched. */
void cudasim_set_conditional(uint64_t handle, unsigned value);
struct CUstream_st;
int cudasim_launch(struct CUstream_st *s, const unsigned grid[3], const unsigned block[3],
                   void (*call)(void *), void (*drop)(void *), void *closure);
/* Of this call of a library; 0 = it goes on. */
int cudasim_library_fails(void);
bool cudasim_is_recording(const struct CUstream_st *s);
/* A library call: into s's queue, or into the graph that it records. */
int cudasim_library_call(struct CUstream_st *s, void (*call)(void *), void (*drop)(void *),
                         void *closure);
/* This end of a transfer between processes, of n_bytes at p: it runs once it is ready, which
 * another process may decide.  Not while s records. */
int cudasim_transfer(struct CUstream_st *s, void *p, size_t n_bytes, bool (*ready)(void *),
                     void (*call)(void *), void (*drop)(void *), void *closure);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
