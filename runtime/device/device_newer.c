/* What the host says of its copies of buffers, with a device beside it or without (device.h). */
#include "device.h"

void rt_push(RtExec *x, int b) {
    x->rt->vars_changed |= b >= 0 && x->program->bufs[b].kind == RT_BUF_VAR;
    if (x->rt->device && b >= 0) x->rt->device->newer[b] = RT_HOST_NEWER;
}

gnnc_status rt_pull(RtExec *x, int b) {
    RtDevice *d = x->rt->device;
    if (!d || b < 0 || d->newer[b] != RT_DEVICE_NEWER) return GNNC_OK;
    return rt_device_download(x, b);
}

static bool is_kept_var(const rt_var *v) {
    return v->kind == RT_VAR_KEPT;
}

void rt_push_vars(RtExec *x) {
    for (int v = 0; v < x->program->n_vars; v++)
        if (!is_kept_var(&x->program->vars[v])) rt_push(x, x->program->vars[v].buf);
}

gnnc_status rt_pull_vars(RtExec *x) {
    gnnc_status st = GNNC_OK;
    for (int v = 0; v < x->program->n_vars && st == GNNC_OK; v++)
        if (!is_kept_var(&x->program->vars[v])) st = rt_pull(x, x->program->vars[v].buf);
    return st;
}
