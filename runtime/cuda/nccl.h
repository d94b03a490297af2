/* Calls of NCCL 2, as its documentation declares them.  Neither the library nor its header belongs
 * to the CUDA Toolkit: a program opens the library of the machine where it runs (nccl.c). */
#ifndef RUNTIME_NCCL_H
#define RUNTIME_NCCL_H

#include <cuda_runtime_api.h>

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclInt8 = 0, ncclFloat = 7 } ncclDataType_t; /* of which there are more */
typedef enum { ncclSum = 0 } ncclRedOp_t;                    /* .. as of these */

ncclResult_t ncclGetVersion(int *version); /* 22809: 2.28.9 */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
/* Of all ranks, each on a GPU of its own: the calling thread's. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank);
/* Waits for all ranks to call it. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
/* Waits for nobody: what is under way is given up. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
/* What went wrong since, while work was done. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
const char *ncclGetErrorString(ncclResult_t result);
/* Of all ranks in the same order; queued in the stream. */
ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream);
/* The sums of all ranks' numbers, of the same bits at each; .. */
ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
/* Calls of one thread between the two are one: none of them waits for another. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
/* For each there is the other one, of as many, at the other rank; queued in the stream. */
ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream);

#endif
