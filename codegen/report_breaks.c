/* --report=breaks: the uninterrupted regions of each phase.  A host effect with device
 * work before and after it splits a phase; one at its end does not. */
#include "codegen/report.h"

static int count_device(const PPhase *ph, int from, int to) {
    int n = 0;
    for (int i = from; i < to; i++) n += report_is_device(ph->steps.v[i]);
    return n;
}

static bool splits(const PPhase *ph, int step) {
    return !report_is_device(ph->steps.v[step]) && count_device(ph, 0, step) &&
           count_device(ph, step + 1, ph->steps.n);
}

/* Breaks of a phase: host effects in a row are one. */
static int count_breaks(const PPhase *ph) {
    int n = 0;
    for (int i = 0; i < ph->steps.n; i++) n += splits(ph, i) && !(i > 0 && splits(ph, i - 1));
    return n;
}

static const char *reason(const PStep *s) {
    switch (s->kind) {
    case PS_PRINT:
        return "print shows values on the host";
    case PS_ASSERT:
        return "assert stops the host when the condition fails";
    default:
        return "the relation's edges are selected by the host, and its size is known only then";
    }
}

static void text(Report *r, const PPhase *ph) {
    int breaks = count_breaks(ph);
    sb_printf(r->b, "  @%s: %d region%s of %d device steps, %d break%s\n", ph->name, breaks + 1,
              breaks ? "s" : "", count_device(ph, 0, ph->steps.n), breaks, breaks == 1 ? "" : "s");
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (report_is_device(s)) continue;
        sb_printf(r->b, "    step %d: %s %s: %s%s\n", i, report_at(r, s->span), step_name(s),
                  reason(s), splits(ph, i) ? "" : " (at the end: no break)");
    }
}

static void json(Report *r, const PPhase *ph) {
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_int(r->j, "regions", count_breaks(ph) + 1);
    json_int(r->j, "breaks", count_breaks(ph));
    json_int(r->j, "device_steps", count_device(ph, 0, ph->steps.n));
    json_array(r->j, "host_effects");
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (report_is_device(s)) continue;
        json_object(r->j, NULL);
        json_int(r->j, "step", i);
        json_text(r->j, "kind", step_name(s));
        json_text(r->j, "line", report_at(r, s->span));
        json_text(r->j, "reason", reason(s));
        json_bool(r->j, "splits", splits(ph, i));
        json_end(r->j);
    }
    json_end(r->j);
    json_end(r->j);
}

void report_breaks(Report *r) {
    int breaks = 0;
    for (int i = 0; i < r->p->phases.n; i++) breaks += count_breaks(r->p->phases.v[i]);
    if (r->j) {
        json_object(r->j, "breaks");
        json_int(r->j, "host_effects_in_model", r->o->effects_before);
        json_int(r->j, "breaks", breaks);
        json_array(r->j, "phases");
    } else {
        sb_printf(r->b, "breaks: %d (host effects in the model: %d)\n", breaks,
                  r->o->effects_before);
    }
    for (int i = 0; i < r->p->phases.n; i++) (r->j ? json : text)(r, r->p->phases.v[i]);
    if (!r->j) return;
    json_end(r->j);
    json_end(r->j);
}
