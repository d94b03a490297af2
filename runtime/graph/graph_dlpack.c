/* DLPack tensors as arrays of the caller.  A graph reads what it is given and never writes there,
 * so that a tensor which is READ_ONLY is one like any other. */
#include "gnnc_dlpack.h"

#include <string.h>

#include "graph.h"

static void delete_tensor(void *user) {
    DLManagedTensorVersioned *t = user;
    if (t->deleter) t->deleter(t);
}

/* The element type of a DLPack tensor; 0: not one that a graph can read. */
static int32_t element_of(DLDataType t) {
    static const struct {
        uint8_t code, bits;
        gnnc_element is;
    } known[] = {
        {kDLFloat, 16, GNNC_DT_F16},   {kDLFloat, 32, GNNC_DT_F32}, {kDLFloat, 64, GNNC_DT_F64},
        {kDLInt, 8, GNNC_DT_I8},       {kDLInt, 16, GNNC_DT_I16},   {kDLInt, 32, GNNC_DT_I32},
        {kDLInt, 64, GNNC_DT_I64},     {kDLUInt, 8, GNNC_DT_U8},    {kDLUInt, 16, GNNC_DT_U16},
        {kDLUInt, 32, GNNC_DT_U32},    {kDLUInt, 64, GNNC_DT_U64},  {kDLBool, 8, GNNC_DT_BOOL},
        {kDLBfloat, 16, GNNC_DT_BF16},
    };
    for (size_t i = 0; t.lanes == 1 && i < sizeof known / sizeof *known; i++)
        if (known[i].code == t.code && known[i].bits == t.bits) return (int32_t)known[i].is;
    return 0;
}

static bool is_there(const DLManagedTensorVersioned *m) {
    return m->version.major == DLPACK_MAJOR_VERSION && m->dl_tensor.device.device_type == kDLCUDA &&
           m->dl_tensor.device.device_id >= 0;
}

/* there: a device's memory will do. */
static gnnc_status check_tensor(RtError *err, const DLManagedTensorVersioned *m, bool there) {
    const DLTensor *t = &m->dl_tensor;
    if (m->version.major != DLPACK_MAJOR_VERSION)
        return rt_fail(err, GNNC_E_ARG, "a DLPack tensor of version %u.%u, %d is read here",
                       m->version.major, m->version.minor, DLPACK_MAJOR_VERSION);
    bool here = t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost;
    if (!here && !(there && is_there(m)))
        return rt_fail(err, GNNC_E_ARG,
                       "a DLPack tensor on device %d (%s): only the host's memory is read here",
                       (int)t->device.device_type,
                       t->device.device_type == kDLCUDA ? "kDLCUDA" : "not kDLCPU");
    if (t->ndim < 1 || t->ndim > GNNC_MAX_RANK || !t->shape)
        return rt_fail(err, GNNC_E_SHAPE, "a DLPack tensor of %d dimensions: 1 to %d are possible",
                       (int)t->ndim, GNNC_MAX_RANK);
    if (element_of(t->dtype)) return GNNC_OK;
    return rt_fail(err, GNNC_E_DTYPE,
                   "a DLPack tensor of type code %d, %d bits, %d lanes, which no graph has",
                   t->dtype.code, t->dtype.bits, t->dtype.lanes);
}

/* Describes the tensor as an array of ours, which deletes the tensor when it is released. */
static void describe(DLManagedTensorVersioned *m, gnnc_array *out) {
    const DLTensor *t = &m->dl_tensor;
    *out = (gnnc_array){.struct_size = sizeof *out,
                        .data = t->data ? (const char *)t->data + t->byte_offset : NULL,
                        .dtype = element_of(t->dtype),
                        .rank = t->ndim,
                        .strided = t->strides != NULL,
                        .borrowed = 1,
                        .done = delete_tensor,
                        .user = m};
    memcpy(out->shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    for (int i = 0; i < t->ndim && t->strides; i++)
        if (__builtin_mul_overflow(t->strides[i], t->dtype.bits / 8, &out->stride[i]))
            out->stride[i] = 0; /* of a dimension of one index: else nothing could lie there */
}

/* Makes an array of the tensor, which `out` then owns; on failure the tensor is deleted. `there`:
 * it may be in a GPU's memory. */
static gnnc_status take(gnnc_graph *g, DLManagedTensorVersioned *tensor, bool there,
                        gnnc_array *out) {
    gnnc_status st;
    RtError unread; /* of rows to append, by any thread: the status alone tells */
    if (!g || !tensor || !out) {
        bool building = g && !g->committed;
        st = building ? rt_graph_null(g, !tensor ? "tensor" : "out") : GNNC_E_ARG;
    } else {
        RtError *err = g->committed ? &unread : &g->err;
        err->text[0] = '\0';
        st = RT_STRUCT_CHECK(err, gnnc_array, out, user);
        if (st == GNNC_OK) st = check_tensor(err, tensor, there);
    }
    if (st == GNNC_OK)
        describe(tensor, out);
    else if (tensor)
        delete_tensor(tensor);
    return st;
}

gnnc_status gnnc_graph_array_dlpack(gnnc_graph *g, struct DLManagedTensorVersioned *tensor,
                                    gnnc_array *out) {
    return take(g, tensor, false, out);
}

gnnc_status gnnc_graph_add_dlpack(gnnc_graph *g, const char *table, const char *column,
                                  gnnc_kind kind, struct DLManagedTensorVersioned *tensor,
                                  int64_t n_categories, const char *const *names) {
    gnnc_array a = {.struct_size = sizeof a};
    if (tensor && g && rt_graph_begin(g) != GNNC_OK) {
        delete_tensor(tensor);
        return GNNC_E_STATE;
    }
    gnnc_status st = take(g, tensor, true, &a);
    if (st != GNNC_OK) return st;
    if (is_there(tensor))
        return rt_graph_add_there(g, table, column, kind, &a, tensor->dl_tensor.device.device_id);
    return gnnc_graph_add_column(g, table, column, kind, &a, n_categories, names);
}
