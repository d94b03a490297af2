/* Sessions on a device.
 *
 * Columns, weights and what was computed of the whole graph are in its memory once, for a session
 * and its clones.  Each has a queue of its own there, memory for batches, and what libraries keep
 * for a queue, so that sessions of several threads need no lock.  The host draws neighbours; what
 * crosses for a batch is its index arrays and the numbers of its rows (device/device_batch.c), and
 * back come the predictions. */
#include "runtime/device/device.h"
#include "session.h"

#include <string.h>

gnnc_status gnnc_session_set_device(gnnc_session *s, const char *device) {
    if (!s || !device) return GNNC_E_ARG;
    s->rt.err.text[0] = '\0';
    if (s->of) return rt_fail(&s->rt.err, GNNC_E_STATE, "the session is open already");
    size_t n = strlen(device);
    if (n >= sizeof s->device)
        return rt_fail(&s->rt.err, GNNC_E_MISSING, "no device has so long a name: '%.32s..'",
                       device);
    memcpy(s->device, device, n + 1);
    return GNNC_OK;
}

const char *gnnc_session_device(const gnnc_session *s) {
    if (!s || !s->of) return "";
    return s->rt.device ? s->rt.device->ops->name : "cpu";
}

gnnc_status gnnc_session_set_stream(gnnc_session *s, void *stream) {
    if (!s) return GNNC_E_ARG;
    rt_device_order(&s->rt, stream);
    return GNNC_OK;
}

/* Other queues read what this one wrote.  The host has what was computed of the whole graph, too:
 * it gives that away (session_whole.c), and takes rows that are not of whole words. */
gnnc_status rt_session_device_share(RtSessionShared *of) {
    RtExec *x = &of->t->x;
    if (!x->rt->device) return GNNC_OK;
    gnnc_status st = rt_device_upload(x->rt->device); /* weights that no phase has read yet */
    for (int b = 0; b < x->program->n_bufs && st == GNNC_OK; b++) {
        const rt_buf *buf = &x->program->bufs[b];
        bool rows = buf->kind == RT_BUF_VAR && buf->in_batches && buf->space >= 0;
        if (rows || buf->kind == RT_BUF_SAVED) st = rt_pull(x, b);
    }
    return st == GNNC_OK ? x->rt->device->ops->wait(x->rt->device) : st;
}

gnnc_status rt_session_device_open(gnnc_session *s, const RtSessionShared *of) {
    gnnc_status st = rt_device_share(&s->x, &of->t->x);
    if (s->rt.device && of->subgraph_model)
        s->rt.device->gathers = false; /* columns come with requests */
    return st;
}

gnnc_status rt_session_device_begin(gnnc_session *s) {
    if (s->rt.device) s->rt.device->ops->enter(s->rt.device);
    return rt_device_follow(&s->x);
}
