/* In place of the files of device/, exec/profile.c and gemm/gemm_pieces.c, where programs
 * predict on the host alone (libgnnrt_infer.a): what these do without a device, while nobody
 * measures, and where f32 products are never on AMX (trainer.c). */
#include "runtime/device/device_bind.h"
#include "runtime/device/device_held.h"
#include "runtime/device/device_pinned.h"
#include "runtime/device/device_rows.h"
#include "runtime/device/device_spmm.h"
#include "runtime/gemm/gemm_pieces.h"
#include "runtime/exec/profile.h"

/* ---- called without a device, too ------------------------------------------------------------ */
/* This library predicts on processors alone. A program that was compiled for a GPU may be in its
 * process: it then runs its code for the host. */
gnnc_status rt_device_open(RtExec *x, RtWhere want, int ordinal, bool tf32) {
    (void)ordinal, (void)tf32;
    if (!x->program->device || want == RT_ON_HOST) return GNNC_OK;
    if (want == RT_ON_ANY && rt_runs_on_host(x->program)) return GNNC_OK;
    return rt_fail(&x->rt->err, GNNC_E_MISSING, "this library runs programs on the cpu alone");
}

gnnc_status rt_device_share(RtExec *x, const RtExec *of) {
    (void)x, (void)of;
    return GNNC_OK;
}

void rt_device_close(RtExec *x) {
    (void)x;
}

void rt_device_want_buckets(RtExec *x, bool tell) {
    (void)x, (void)tell;
}

gnnc_status rt_device_place(RtExec *x, const struct RtMemory *m) {
    (void)x, (void)m;
    return GNNC_OK;
}

gnnc_status rt_device_pin_columns(gnnc_trainer *t) {
    (void)t;
    return GNNC_OK;
}

gnnc_status rt_device_batch(RtExec *x, int phase, const RtBatchRoom *room,
                            const RtDeviceGather *taken) {
    (void)x, (void)phase, (void)room, (void)taken;
    return GNNC_OK;
}

gnnc_status rt_device_batch_pull(RtExec *x, int b) {
    (void)x, (void)b;
    return GNNC_OK;
}

gnnc_status rt_device_spmm_open(RtExec *x) {
    (void)x;
    return GNNC_OK;
}

RtDeviceMaps *rt_device_maps(const RtExec *x) {
    (void)x;
    return NULL;
}

void rt_device_bind_free(RtDeviceMaps *m) {
    (void)m;
}

void rt_device_maps_trim(RtExec *x, bool keep_relations) {
    (void)x, (void)keep_relations;
}

int64_t rt_profile_share_begin(const RtExec *x) {
    (void)x;
    return -1;
}

void rt_profile_share_end(RtExec *x, int member, int64_t since) {
    (void)x, (void)member, (void)since;
}

/* ---- never called: callers have a device, its maps, or a profile -------- */
#define NEVER(name, ...)                                                                           \
    gnnc_status name(__VA_ARGS__) {                                                                \
        return GNNC_E_DEVICE;                                                                      \
    }
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-parameter"
#else
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
NEVER(rt_device_upload, RtDevice *d)
NEVER(rt_device_download, RtExec *x, int b)
NEVER(rt_device_run, RtExec *x, const rt_phase *phase)
NEVER(rt_device_gather_rows, RtExec *x, int b, void *to, size_t row_bytes, const int32_t *row,
      int64_t n)
NEVER(rt_device_rows_memory, RtExec *x, size_t n_bytes, void **p)
NEVER(rt_device_rows_copy, RtExec *x, const void *here, size_t n_bytes, void **there)
NEVER(rt_device_rows_do, RtExec *x, RtRowsOp op, void *to, const void *from, const void *row)
NEVER(rt_device_rows_sum, RtExec *x, const RtTreeSum *t, float *to, const float *from)
NEVER(rt_device_rows_send, RtExec *x, int slot, const RtMessages *m)
NEVER(rt_device_rows_arrive, RtExec *x, int slot, const RtMessages *m)
NEVER(rt_device_rows_reduce, RtExec *x, float *at, int64_t n)
NEVER(rt_device_launch, RtExec *x, rt_device_kernel *k, const char *name, void *const *arg)
NEVER(rt_device_launch_own, RtExec *x, int space, bool by_chunks, rt_device_kernel *k,
      const char *name, void *const *arg)
NEVER(rt_device_gemm, RtExec *x, const rt_gemm *g, const void *a, const void *b, void *c)
NEVER(rt_device_rank, RtExec *x, const float *v, const uint8_t *mask, float *y, int64_t outer,
      int64_t len, int64_t inner, int ties)
NEVER(rt_device_assert, RtExec *x, const char *text, const uint8_t *cond, int64_t count)
NEVER(rt_device_store, RtExec *x, int b)
NEVER(rt_device_fetch, RtExec *x, int b)
NEVER(rt_device_peek, RtExec *x, int b)
NEVER(rt_device_maps_open, RtExec *x, bool check)
NEVER(rt_device_relation, RtDeviceMaps *m, int space, RtRelation *sizes)
NEVER(rt_device_relation_to_host, RtExec *x, int space, bool whole)
NEVER(rt_on_device_copy, RtDeviceMaps *m, const void *here, int64_t n, size_t size, const void **to)
NEVER(rt_on_device_group, RtDeviceMaps *m, const int32_t *key, int64_t n, int64_t n_groups,
      RtGroups *out)
NEVER(rt_on_device_rows, RtDeviceMaps *m, const int64_t *ptr, int64_t rows, int64_t n,
      const int32_t **to)
NEVER(rt_on_device_gather, RtDeviceMaps *m, const int32_t *x, const int32_t *perm, const int64_t *n,
      int64_t count, const int32_t **to)
NEVER(rt_on_device_compare, RtDeviceMaps *m, int buf, const void *here, int64_t n, size_t size)
NEVER(rt_device_bind_new, RtDeviceMaps **out, RtExec *x, const RtDeviceSampler *s,
      const int *space_of_type, const int *space_of_rel, bool check, const RtDeviceMaps *like)
NEVER(rt_on_device_codes, RtDeviceMaps *m, int column, int64_t n, const int32_t **to)
NEVER(rt_device_bind_end, RtDeviceMaps *m, gnnc_status st, RtDeviceGather *gathers)
NEVER(rt_profile_end, RtExec *x)

const RtRelation *rt_device_relation_arrays(const RtDeviceMaps *m, int space) {
    return NULL;
}

bool rt_on_device_takes_codes(const RtDeviceMaps *m, int column) {
    return false;
}

void rt_device_bind_rows(RtDeviceMaps *m, int column, const RtDeviceGather *rows) {
}

bool rt_device_bind_takes(const RtDeviceMaps *m, int map) {
    return false;
}

bool rt_device_maps_check(const RtDeviceMaps *m) {
    return false;
}

bool rt_device_maps_fall_back(RtExec *x, const char *name, gnnc_status *st) {
    return false;
}

const char *rt_device_bind_lacks(const rt_program *p) {
    return "there is no device";
}

bool rt_device_has_edges(const RtDeviceMaps *m, int space) {
    return false;
}

bool rt_device_makes(const RtDeviceMaps *m, int map) {
    return false;
}

void rt_device_bind_begin(RtDeviceMaps *m) {
}
void rt_device_bind_edges(RtDeviceMaps *m, int space, const RtRelation *there) {
}
void rt_on_device_point(RtDeviceMaps *m, int buf, const void *there) {
}
void rt_device_rows_drop(RtExec *x, void *p) {
}
bool rt_held_part(const RtExec *x, int b) {
    return false;
}
void rt_held_numbers(const RtExec *x, int b, const int32_t *row, int64_t n, int32_t *number) {
}
void rt_device_pinned_close(RtDevice *d) {
}
void rt_device_rows_close(RtDevice *d) {
}
void *rt_device_own(RtExec *x) {
    return NULL;
}
void **rt_device_buffers(RtExec *x) {
    return NULL;
}

void rt_device_copy(RtExec *x, void *to, const void *from, size_t n_bytes) {
}
void rt_profile_begin(RtExec *x, const rt_phase *phase) {
}
void rt_profile_step(RtExec *x, int step) {
}

/* ---- f32 on AMX ------------------------------------------------------------------------------ */
bool rt_pieces_available(void) {
    return false;
}

int64_t rt_pieces_packed(int64_t k, int64_t n) {
    (void)k, (void)n;
    return 0;
}

bool rt_pieces_pack(const RtTile *t, float *to, int64_t i) {
    (void)t, (void)to, (void)i;
    return false;
}

bool rt_pieces_tile(const RtTile *t, float *work) {
    (void)t, (void)work;
    return false;
}

bool rt_pieces_long_tile(const RtTile *t, float *work) {
    (void)t, (void)work;
    return false;
}
