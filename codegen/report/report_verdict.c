/* --report=verdict: what a step is, in a few numbers, each with the report that shows where it
 * comes from. */
#include "codegen/report/report.h"

/* Prints a line with a title and an amount in millions of the unit. of: the report that explains
 * the amount. */
static void print_amount(Report *r, const char *title, const Expr *e, const char *unit,
                         const char *of) {
    int64_t v;
    sb_printf(r->b, "  %-9s %.3g M%s%s", title, 1e-6 * report_nominal(r, e), unit,
              report_value(r, e, &v) ? "" : " by nominal sizes");
    sb_printf(r->b, "  (%s)\n", of);
}

/* Prints the verdict on the phase as text: least time, bytes and operations, launches, host reads,
 * peak of memory, and missed opportunities. */
static void print_text(Report *r, const PPhase *ph, int phase) {
    ReportSum t = report_phase_sum(r, ph);
    const Expr *live;
    double us;
    int peak = report_peak(r, phase, &live);
    sb_printf(r->b, "verdict on a run of @%s\n", ph->name);
    if (report_phase_roofline(r, ph, &us))
        sb_printf(r->b, "  at best   %.3g us on an %s  (fusion)\n", us, report_roof(r)->name);
    else
        sb_printf(r->b, "  at best   %s\n",
                  r->o->roof ? "unknown: only data tell the sizes, --specialize=DATA reads them"
                             : "unknown of a processor: the trainer's --profile measures it");
    print_amount(r, "moves", t.moved, "B", "fusion");
    print_amount(r, "computes", t.flops, "FLOP", "fusion");
    print_amount(r, "saves", t.saved, "B", "fusion");
    sb_printf(r->b, "  launches  %d kernels, %d library calls  (kernels)\n", t.kernels, t.calls);
    sb_printf(r->b, "  waits     the host reads %d times  (syncs)\n",
              report_reads_per_run(r, phase));
    if (peak >= 0) {
        print_amount(r, "holds", live, "B", "memory");
        sb_printf(r->b, "            at step %d, %s\n", peak, cg_step_name(ph->steps.v[peak]));
    }
    sb_printf(r->b, "  missed    %d opportunities  (missed)\n", report_count_missed(r));
}

/* Prints the verdict on the phase as members of a JSON object. */
static void print_json(Report *r, const PPhase *ph, int phase) {
    ReportSum t = report_phase_sum(r, ph);
    const Expr *live;
    double us;
    int peak = report_peak(r, phase, &live);
    json_text(r->j, "phase", ph->name);
    json_bool(r->j, "sizes_known", r->known);
    json_int(r->j, "kernels", t.kernels);
    json_int(r->j, "library_calls", t.calls);
    report_json_expr(r, "moved", t.moved);
    report_json_expr(r, "flops", t.flops);
    report_json_expr(r, "saved", t.saved);
    json_int(r->j, "reads_per_run", report_reads_per_run(r, phase));
    json_int(r->j, "missed", report_count_missed(r));
    if (peak >= 0) {
        json_int(r->j, "peak_step", peak);
        report_json_expr(r, "peak", live);
    }
    if (report_phase_roofline(r, ph, &us)) json_int(r->j, "at_best_ns", (int64_t)(1e3 * us));
    if (r->o->compile_ms > 0) json_int(r->j, "compile_ms", (int64_t)r->o->compile_ms);
}

/* Prints the memory bandwidth and arithmetic rate of the machine that bounds times, as JSON, if
 * there is one. */
static void json_roof(Report *r) {
    const TargetDevice *roof = report_roof(r);
    if (!roof) return;
    json_object(r->j, "roof");
    json_text(r->j, "machine", roof->name);
    json_int(r->j, "bytes_per_s", (int64_t)roof->bytes_per_s);
    json_int(r->j, "flops_per_s", (int64_t)roof->flops_per_s);
    json_end(r->j);
}

/* Prints the report on the main phase (report_main_phase()); nothing if the program has no
 * phase. */
void report_verdict(Report *r) {
    int phase = report_main_phase(r);
    if (phase < 0) return;
    const PPhase *ph = r->p->phases.v[phase];
    if (!r->j) {
        print_text(r, ph, phase);
        return;
    }
    json_object(r->j, "verdict");
    print_json(r, ph, phase);
    json_roof(r);
    json_end(r->j);
}
