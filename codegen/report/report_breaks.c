/* --report=breaks: the uninterrupted regions of each phase.  A host effect with device
 * work before and after it splits a phase; one at its start or end does not.
 *
 * "As written" counts what a compiler that traces the program would make of it: a region more
 * for every place at which it stops (an `if` on a computed value, print, log, assert, a C function
 * with an effect).  What became of these and of what is settled when compiling (loops,
 * dictionaries) are notes that the front end and the passes left in the module. */
#include "codegen/report/report.h"

#include <string.h>

/* The number of steps from `from` to to - 1 that run on the device; loop heads and ends do not
 * count. */
static int count_device(const Report *r, const PPhase *ph, int from, int to) {
    int n = 0;
    for (int i = from; i < to; i++) {
        const PStep *s = ph->steps.v[i];
        n += report_is_device(r, s) && s->kind != PS_LOOP && s->kind != PS_END;
    }
    return n;
}

/* Whether the step is a host effect that splits the phase: there is device work before and after
 * it, or it is in a loop. */
static bool is_break(const Report *r, const PPhase *ph, int step) {
    if (report_is_device(r, ph->steps.v[step])) return false;
    return plan_in_loop(ph, step) ||
           (count_device(r, ph, 0, step) && count_device(r, ph, step + 1, ph->steps.n));
}

/* The number of places where host effects split the phase; consecutive host effects count as
 * one. */
static int count_breaks(const Report *r, const PPhase *ph) {
    int n = 0;
    for (int i = 0; i < ph->steps.n; i++)
        n += is_break(r, ph, i) && !(i > 0 && is_break(r, ph, i - 1));
    return n;
}

/* Why the host, not the device, reads the condition of loop s. A loop with a limit is the host's
 * only where the device cannot record the phase. */
static const char *loop_reason(const Report *r, const PPhase *ph, const PStep *s) {
    const char *reads = "the host reads the condition of 'while' before each iteration";
    const char *why = !s->limit                         ? "without 'limit' it may have no end"
                      : ph->func->phase == PHASE_LOAD   ? "data are loaded once"
                      : !plan_runs_on_batches(r->p, ph) ? "the phase stops for other steps, too"
                      : plan_has_buckets(r->a, r->p, ph)
                          ? "the device does but for --shapes=dynamic, from CUDA 12.4 on"
                          : "batches have sizes of their own";
    return arena_printf(r->a, "%s: %s", reads, why);
}

/* Why the host executes step s of the phase, in words. */
static const char *host_reason(const Report *r, const PPhase *ph, const PStep *s) {
    switch (s->kind) {
    case PS_PRINT:
        return "print shows values on the host";
    case PS_CALL:
        return s->op->ext->effect ? "the C function has an effect on the host"
                                  : "the C function runs on the host (it is not declared 'device')";
    case PS_LOOP:
        return loop_reason(r, ph, s);
    case PS_ASSERT:
        return "assert stops the host when the condition fails";
    default:
        return "the relation's edges are selected by the host, and its size is known only then";
    }
}

/* The number of regions that a compiler which traces the program as written would make of the
 * phase: one more than the places at which it would stop. */
static int count_written_regions(const Report *r, const PPhase *ph) {
    int n = 1;
    for (int i = 0; i < r->p->m->notes.n; i++) {
        const Note *x = &r->p->m->notes.v[i];
        n += x->stops && !strcmp(x->func, ph->func->name);
    }
    return n;
}

/* Whether an earlier note of the module has the same text and source line as note i, left by
 * another phase. */
static bool is_duplicate(const Report *r, int i) {
    const Note *x = &r->p->m->notes.v[i];
    for (int k = 0; k < i; k++) {
        const Note *y = &r->p->m->notes.v[k];
        bool same = y->span.file == x->span.file && y->span.line == x->span.line;
        if (same && !strcmp(x->text, y->text)) return true;
    }
    return false;
}

/* Whether note i says what became of a possible break. A note that only names a host effect does
 * not. */
static bool is_resolution(const Report *r, int i) {
    const char *s = r->p->m->notes.v[i].text;
    bool bare = !strcmp(s, "print") || !strcmp(s, "assert") || !strncmp(s, "a C function", 12);
    return !bare && !is_duplicate(r, i);
}

/* Prints, as text, the places where a tracing compiler would stop and what the passes made of
 * each. */
static void print_resolved(Report *r) {
    bool any = false;
    for (int i = 0; i < r->p->m->notes.n; i++) {
        const Note *x = &r->p->m->notes.v[i];
        if (!is_resolution(r, i)) continue;
        if (!any) sb_puts(r->b, "  resolved\n");
        any = true;
        sb_printf(r->b, "    %s: %s\n", report_at(r, x->span), x->text);
    }
}

/* Prints the places where a tracing compiler would break the graph, and that gnnc resolved when it
 * compiled, as a JSON array: what print_resolved() prints. */
static void json_resolved(Report *r) {
    json_array(r->j, "resolved");
    for (int i = 0; i < r->p->m->notes.n; i++) {
        const Note *x = &r->p->m->notes.v[i];
        if (!is_resolution(r, i)) continue;
        json_object(r->j, NULL);
        json_text(r->j, "line", report_at(r, x->span));
        json_text(r->j, "what", x->text);
        json_end(r->j);
    }
    json_end(r->j);
}

/* " (at the start: no break)" or the like for a host effect that does not split the phase, else
 * "". */
static const char *position_text(const Report *r, const PPhase *ph, int step) {
    if (is_break(r, ph, step)) return "";
    return count_device(r, ph, 0, step) ? " (at the end: no break)" : " (at the start: no break)";
}

/* The number of consecutive steps from step i on that run on the device under the same condition;
 * 0: step i has no condition. */
static int count_skipped(const Report *r, const PPhase *ph, int i) {
    const PStep *s = ph->steps.v[i];
    int n = 0;
    if (s->pred < 0 || !report_is_device(r, s) || !s->pred_at.line) return 0;
    for (; i + n < ph->steps.n; n++) {
        const PStep *x = ph->steps.v[i + n];
        if (x->pred != s->pred || x->pred_not != s->pred_not) break;
    }
    return n;
}

/* Prints, as text, the conditions under which device steps are skipped, one line for each run of
 * such steps. */
static void print_skipped(Report *r, const PPhase *ph) {
    for (int i = 0, n; i < ph->steps.n; i += n ? n : 1) {
        n = count_skipped(r, ph, i);
        if (!n) continue;
        const PStep *s = ph->steps.v[i];
        const char *to =
            n > 1 ? arena_printf(r->a, "s %d to %d", i, i + n - 1) : arena_printf(r->a, " %d", i);
        sb_printf(r->b, "    step%s: %s: skipped where the condition %s\n", to,
                  report_at(r, s->pred_at), s->pred_not ? "holds" : "does not hold");
    }
}

static const char recorded[] =
    "the device reads the condition of 'while', in a recording (CUDA 12.4); "
    "with an older CUDA the host does, before each iteration";

/* Prints the loops of the phase whose condition the device reads, as text: they are recorded. */
static void print_loops(Report *r, const PPhase *ph) {
    for (int i = 0; i < ph->steps.n; i++)
        if (ph->steps.v[i]->recorded)
            sb_printf(r->b, "    step %d: %s: %s\n", i, report_at(r, ph->steps.v[i]->span),
                      recorded);
}

/* Prints the loops whose condition the device reads as a JSON array. */
static void json_loops(Report *r, const PPhase *ph) {
    json_array(r->j, "recorded_loops");
    for (int i = 0; i < ph->steps.n; i++) {
        if (!ph->steps.v[i]->recorded) continue;
        json_object(r->j, NULL);
        json_int(r->j, "step", i);
        json_text(r->j, "line", report_at(r, ph->steps.v[i]->span));
        json_text(r->j, "what", recorded);
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints the conditions under which device steps are skipped as a JSON array. */
static void json_skipped(Report *r, const PPhase *ph) {
    json_array(r->j, "skipped");
    for (int i = 0, n; i < ph->steps.n; i += n ? n : 1) {
        n = count_skipped(r, ph, i);
        if (!n) continue;
        json_object(r->j, NULL);
        json_int(r->j, "step", i);
        json_int(r->j, "steps", n);
        json_text(r->j, "line", report_at(r, ph->steps.v[i]->pred_at));
        json_bool(r->j, "where_it_holds", ph->steps.v[i]->pred_not);
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints a phase as text: its regions and breaks, its host effects with their reasons, what the
 * device skips, and recorded loops. */
static void print_phase(Report *r, const PPhase *ph) {
    int breaks = count_breaks(r, ph), written = count_written_regions(r, ph);
    sb_printf(r->b, "  @%s: %d region%s of %d device steps, %d break%s", ph->name, breaks + 1,
              breaks ? "s" : "", count_device(r, ph, 0, ph->steps.n), breaks,
              breaks == 1 ? "" : "s");
    if (written > 1) sb_printf(r->b, " (as written: %d regions)", written);
    sb_puts(r->b, "\n");
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (report_is_device(r, s)) continue;
        sb_printf(r->b, "    step %d: %s %s: %s%s\n", i, report_at(r, s->span), cg_step_name(s),
                  host_reason(r, ph, s), position_text(r, ph, i));
    }
    print_skipped(r, ph);
    print_loops(r, ph);
}

/* Prints a phase as a JSON object with the same facts as print_phase(). */
static void json_phase(Report *r, const PPhase *ph) {
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_int(r->j, "regions", count_breaks(r, ph) + 1);
    json_int(r->j, "regions_as_written", count_written_regions(r, ph));
    json_int(r->j, "breaks", count_breaks(r, ph));
    json_int(r->j, "device_steps", count_device(r, ph, 0, ph->steps.n));
    json_array(r->j, "host_effects");
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (report_is_device(r, s)) continue;
        json_object(r->j, NULL);
        json_int(r->j, "step", i);
        json_text(r->j, "kind", cg_step_name(s));
        json_text(r->j, "line", report_at(r, s->span));
        json_text(r->j, "reason", host_reason(r, ph, s));
        json_bool(r->j, "splits", is_break(r, ph, i));
        json_end(r->j);
    }
    json_end(r->j);
    json_skipped(r, ph);
    json_loops(r, ph);
    json_end(r->j);
}

/* Prints the report: the number of breaks, each phase, then what became of the places where a
 * tracing compiler would stop. */
void report_breaks(Report *r) {
    int breaks = 0;
    for (int i = 0; i < r->p->phases.n; i++) breaks += count_breaks(r, r->p->phases.v[i]);
    if (r->j) {
        json_object(r->j, "breaks");
        json_int(r->j, "host_effects_in_model", r->o->effects_before);
        json_int(r->j, "breaks", breaks);
        json_array(r->j, "phases");
    } else {
        sb_printf(r->b, "breaks: %d (host effects in the model: %d)\n", breaks,
                  r->o->effects_before);
    }
    for (int i = 0; i < r->p->phases.n; i++)
        (r->j ? json_phase : print_phase)(r, r->p->phases.v[i]);
    if (!r->j) {
        print_resolved(r);
        return;
    }
    json_end(r->j);
    json_resolved(r);
    json_end(r->j);
}
