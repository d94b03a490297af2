/* --report=fusion: per kernel and library call what it computes, moves and keeps out of
 * memory, and who needs its results there (fusion_analyze.c). */
#include "codegen/report/fusion_facts.h"

#include <string.h>

#include "runtime/cuda/spmm_cost.h"
#include "runtime/program.h"

/* ---- the roofline -------- */
/* The roofline bound on a step's time, in microseconds (Williams et al., CACM 2009): every byte
 * moves through memory once, or every operation keeps the arithmetic units busy; *memory_bound says
 * which takes longer. False: a size or the machine is not known. */
static bool roofline_time(const Report *r, const StepCost *c, double *us, bool *memory_bound) {
    const TargetDevice *roof = report_roof(r);
    int64_t read, written, flops;
    if (!roof || !report_value(r, c->read, &read) || !report_value(r, c->written, &written) ||
        !report_value(r, c->flops, &flops))
        return false;
    double move = 1e6 * ((double)read + (double)written) / roof->bytes_per_s;
    double compute = 1e6 * (double)flops / roof->flops_per_s;
    *memory_bound = move >= compute;
    *us = *memory_bound ? move : compute;
    return true;
}

/* Whether the step is done by the epilogue of a matrix product on the device. On the host none
 * is. */
bool report_is_covered(const Report *r, const PStep *s) {
    return s->covered_by && !plan_on_host(r->p);
}

/* What computes a sparse product on a device. */
typedef enum { USES_KERNEL, USES_LIBRARY, DEPENDS_ON_SIZES } SpmmImpl;

/* What computes the sparse product m on a device: the step's own kernel, the library, or whichever
 * moves fewer bytes for sizes that only data tell. */
static SpmmImpl spmm_impl(const Report *r, const PSpmm *m) {
    int64_t own, library;
    if (m->index < 0) return USES_KERNEL;
    if (r->p->spmm == SPMM_LIBRARY) return USES_LIBRARY;
    if (!report_value(r, m->own_bytes, &own) || !report_value(r, m->library_bytes, &library))
        return DEPENDS_ON_SIZES;
    return rt_spmm_pays(own, library) ? USES_LIBRARY : USES_KERNEL;
}

/* Whether the step is a sparse product that the device's library computes for certain. */
bool report_is_library_spmm(const Report *r, const PStep *s) {
    return s->spmm && !plan_on_host(r->p) && spmm_impl(r, s->spmm) == USES_LIBRARY;
}

/* The bytes and operations of a step where the plan runs: none, if the epilogue of a product does
 * the step, and the library's bytes for a sparse product that it computes. */
StepCost report_step_cost(const Report *r, const PStep *s) {
    const Expr *none = expr_const(r->a, 0), *less = expr_const(r->a, -1);
    StepCost nothing = {.read = none, .gathered = none, .written = none, .flops = none};
    if (report_is_covered(r, s)) return nothing;
    StepCost c = cg_step_cost(r->a, r->p, s);
    if (report_is_library_spmm(r, s))
        c.read = expr_add(r->a, s->spmm->library_bytes, expr_mul(r->a, c.written, less));
    return c;
}

/* The least time of a phase in microseconds: the sum of the roofline bounds on its steps. False: a
 * size or the machine is not known. */
bool report_phase_roofline(const Report *r, const PPhase *ph, double *us) {
    *us = 0;
    for (int i = 0; i < ph->steps.n; i++) {
        StepCost c = report_step_cost(r, ph->steps.v[i]);
        double step;
        bool memory;
        if (!roofline_time(r, &c, &step, &memory)) return false;
        *us += step;
    }
    return ph->steps.n > 0;
}

/* ---- text -------- */
/* Prints a line with the operations of a list, after a title. types: with the types of their
 * results. Constants are omitted. */
static void print_ops(Report *r, const char *title, const Ops *ops, bool types) {
    const char *before = "";
    if (!ops->n) return;
    sb_printf(r->b, "      %-9s", title);
    for (int i = 0; i < ops->n; i++) {
        const Op *op = ops->v[i];
        if (op->kind == OP_CONST) continue;
        const char *name = report_op_name(op), *word = op_mnemonic(op->kind);
        sb_printf(r->b, "%s%s", before, word);
        before = ", ";
        if (strcmp(name, word)) sb_printf(r->b, " %s", name);
        if (types) sb_printf(r->b, ": %s", report_type(r, &op->type));
    }
    sb_puts(r->b, "\n");
}

/* Prints the bytes that a step reads and writes, its floating-point operations, and its least
 * time. */
static void print_cost(Report *r, const StepCost *c) {
    int64_t none;
    sb_puts(r->b, "      reads    ");
    report_amount(r, c->read, "B");
    if (!expr_is_const(c->gathered, &none) || none) {
        sb_puts(r->b, "; gathered of it ");
        report_amount(r, c->gathered, "B");
    }
    sb_puts(r->b, "\n      writes   ");
    report_amount(r, c->written, "B");
    sb_puts(r->b, "\n      computes ");
    report_amount(r, c->flops, "FLOP");
    sb_puts(r->b, "\n");
    double us;
    bool memory;
    if (roofline_time(r, c, &us, &memory))
        sb_printf(r->b, "      at best  %.3g us on an %s, by its %s\n", us, report_roof(r)->name,
                  memory ? "memory" : "arithmetic");
}

/* Prints what the library does at the end of a matrix product and which steps that replaces, or why
 * it does nothing there. */
static void print_epilogue(Report *r, const PPhase *ph, const PEpilogue *e) {
    sb_printf(r->b, "      ends     %s%s", e->kind ? plan_epilogue_text(e) : "with the product: ",
              e->kind ? ": step" : e->why_not);
    for (int i = 0; i < e->n_covers; i++)
        sb_printf(r->b, "%s%d", i ? " and " : " ", plan_step_index(ph, e->covers[i]));
    sb_puts(r->b, "\n");
}

bool report_group_cost(const Report *r, const PGroup *g, const TargetDevice *d, RtGroupCost *c) {
    RtProduct p[RT_GROUP_MAX];
    for (int i = 0; i < g->steps.n; i++) {
        const PGemm *m = &g->steps.v[i]->gemm;
        if (!report_value(r, m->m, &p[i].m) || !report_value(r, m->n, &p[i].n) ||
            !report_value(r, m->k, &p[i].k))
            return false;
    }
    bool low = r->p->tf32 || r->p->bufs.v[g->steps.v[0]->bufs[0]]->dt != DT_F32;
    *c = rt_group_cost(p, g->steps.n, d->units, low);
    return true;
}

/* The times that the products of group g take in one call and in a call each, on the report's
 * machine. False: a size or the machine is not known. */
static bool group_cost(const Report *r, const PGroup *g, RtGroupCost *c) {
    const TargetDevice *roof = report_roof(r);
    return roof && report_group_cost(r, g, roof, c);
}

/* Prints which matrix products one library call computes together with the product s, or which
 * kernels one launch runs, or why s has a call of its own. */
static void print_group(Report *r, const PPhase *ph, const PStep *s) {
    sb_puts(r->b, "      group    ");
    if (!s->group) {
        sb_printf(r->b, "alone: %s", s->separate_because);
        if (s->separate_from) sb_printf(r->b, " (step %d)", plan_step_index(ph, s->separate_from));
        sb_puts(r->b, "\n");
        return;
    }
    const PGroup *g = s->group;
    int first = plan_step_index(ph, g->steps.v[0]);
    RtGroupCost c;
    if (s->kind == PS_KERNEL) {
        sb_printf(r->b, "one launch for steps %d to %d\n", first, first + g->steps.n - 1);
        return;
    }
    sb_printf(r->b, "one call for steps %d to %d, of %s", first, first + g->steps.n - 1,
              g->same_shape ? "one shape" : "several shapes");
    if (group_cost(r, g, &c))
        sb_printf(r->b, ": %.3g us, %.3g us one by one; so %s", 1e-3 * c.together_ns,
                  1e-3 * c.apart_ns, rt_group_pays(&c) ? "together" : "one by one");
    else
        sb_puts(r->b, ", where sizes say that it is faster");
    sb_puts(r->b, "\n");
}

/* Prints the same about the group of product s as members of the step's JSON object. */
static void json_group(Report *r, const PPhase *ph, const PStep *s) {
    RtGroupCost c;
    if (!s->group) {
        json_text(r->j, "alone", s->separate_because);
        return;
    }
    json_int(r->j, "group", plan_step_index(ph, s->group->steps.v[0]));
    if (s->kind == PS_KERNEL || !group_cost(r, s->group, &c)) return;
    json_int(r->j, "together_ns", (int64_t)c.together_ns);
    json_int(r->j, "apart_ns", (int64_t)c.apart_ns);
    json_bool(r->j, "together", rt_group_pays(&c));
}

/* Prints what computes a sparse product, and the bytes that the kernel and the library would
 * move. */
static void print_spmm(Report *r, const PSpmm *m) {
    static const char *const words[] = {[USES_KERNEL] = "by this kernel",
                                        [USES_LIBRARY] = "by cuSPARSE",
                                        [DEPENDS_ON_SIZES] =
                                            "by cuSPARSE, where that saves a tenth"};
    SpmmImpl by = spmm_impl(r, m);
    sb_printf(r->b, "      spmm     %s", words[by]);
    if (m->why_not) sb_printf(r->b, ": %s", m->why_not);
    if (!m->why_not && by == USES_KERNEL) sb_puts(r->b, ": cuSPARSE would not save a tenth");
    sb_puts(r->b, "\n        kernel   ");
    report_amount(r, m->own_bytes, "B");
    sb_puts(r->b, "\n        cuSPARSE ");
    report_amount(r, m->library_bytes, "B");
    sb_puts(r->b, m->has_rest ? ", the rest being a kernel of its own\n" : "\n");
}

/* Prints the same about a sparse product as members of the step's JSON object. */
static void json_spmm(Report *r, const PSpmm *m) {
    static const char *const words[] = {
        [USES_KERNEL] = "own", [USES_LIBRARY] = "cusparse", [DEPENDS_ON_SIZES] = "by sizes"};
    json_text(r->j, "spmm", words[spmm_impl(r, m)]);
    if (m->why_not) json_text(r->j, "spmm_why", m->why_not);
    report_json_expr(r, "spmm_own_bytes", m->own_bytes);
    report_json_expr(r, "spmm_cusparse_bytes", m->library_bytes);
}

/* Prints step number `index` as text: its model lines, what it computes, moves and saves, and who
 * needs each value that it stores. */
static void print_step(Report *r, const FusionFacts *f, int index) {
    const PStep *s = f->ph->steps.v[index];
    Ops results = f->results[index], kept = fusion_elided(r, f, index);
    Ops all = fusion_computed(r, f, index);
    StepCost cost = report_step_cost(r, s);
    const char *shape = cg_step_shape(r->a, s);
    sb_printf(r->b, "    %d %s%s%s%s\n", index, cg_step_name(s), *shape ? " over " : "", shape,
              s->balance.n ? " (balanced by entries)" : "");
    const char *lines = cg_step_lines(r->p->m, r->a, s, false),
               *site = cg_step_site(r->p->m, r->a, s);
    if (strcmp(lines, site) != 0)
        sb_printf(r->b, "      for      %s\n", cg_step_origin(r->p->m, r->a, s));
    sb_printf(r->b, "      lines    %s\n", lines);
    print_ops(r, "does", &all, false);
    if (s->epilogue) print_epilogue(r, f->ph, s->epilogue);
    if (s->group || s->separate_because) print_group(r, f->ph, s);
    if (s->spmm) print_spmm(r, s->spmm);
    if (s->covered_by)
        sb_printf(r->b, "      within   %d on a GPU, where its library has an algorithm\n",
                  plan_step_index(f->ph, s->covered_by));
    if (!report_is_covered(r, s)) print_cost(r, &cost);
    print_ops(r, "in place", &kept, true);
    if (kept.n) {
        sb_puts(r->b, "      saves    ");
        report_amount(r, fusion_saved_bytes(r, f, index), "B");
        sb_puts(r->b, "\n");
    }
    for (int i = 0; i < results.n; i++) {
        Reasons why = fusion_reasons(r, f, results.v[i], false);
        sb_printf(r->b, "      stores   %s: %s\n", report_op_name(results.v[i]),
                  report_type(r, &results.v[i]->type));
        for (int k = 0; k < why.n; k++) sb_printf(r->b, "        %s\n", why.v[k].text);
    }
}

/* ---- JSON -------- */
/* Prints the operations of a list as a JSON array. */
static void json_ops(Report *r, const char *key, const Ops *ops) {
    json_array(r->j, key);
    for (int i = 0; i < ops->n; i++) {
        json_object(r->j, NULL);
        json_text(r->j, "op", op_mnemonic(ops->v[i]->kind));
        json_text(r->j, "name", ops->v[i]->hint);
        json_text(r->j, "type", report_type(r, &ops->v[i]->type));
        json_text(r->j, "line", report_at(r, ops->v[i]->span));
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints the values that step number `index` stores as a JSON array, each with its type and the
 * reasons why it is in memory. */
static void json_results(Report *r, const FusionFacts *f, int index) {
    Ops results = f->results[index];
    json_array(r->j, "stores");
    for (int i = 0; i < results.n; i++) {
        Reasons why = fusion_reasons(r, f, results.v[i], true);
        json_object(r->j, NULL);
        json_text(r->j, "name", report_op_name(results.v[i]));
        json_text(r->j, "type", report_type(r, &results.v[i]->type));
        json_array(r->j, "reasons");
        for (int k = 0; k < why.n; k++) json_text(r->j, NULL, why.v[k].text);
        json_end(r->j);
        json_end(r->j);
    }
    json_end(r->j);
}

/* Prints step number `index` as a JSON object with the same facts as print_step(). */
static void json_step(Report *r, const FusionFacts *f, int index) {
    const PStep *s = f->ph->steps.v[index];
    Ops kept = fusion_elided(r, f, index), all = fusion_computed(r, f, index);
    StepCost cost = report_step_cost(r, s);
    json_object(r->j, NULL);
    json_int(r->j, "step", index);
    json_text(r->j, "kind", s->kind == PS_KERNEL ? "kernel" : cg_step_name(s));
    json_text(r->j, "name", cg_step_name(s));
    json_text(r->j, "over", cg_step_shape(r->a, s));
    json_text(r->j, "site", cg_step_origin(r->p->m, r->a, s));
    json_text(r->j, "lines", cg_step_lines(r->p->m, r->a, s, true));
    if (s->epilogue && s->epilogue->kind)
        json_text(r->j, "ends", plan_epilogue_text(s->epilogue));
    else if (s->epilogue)
        json_text(r->j, "plain", s->epilogue->why_not);
    if (s->group || s->separate_because) json_group(r, f->ph, s);
    if (s->spmm) json_spmm(r, s->spmm);
    if (s->covered_by) json_int(r->j, "within", plan_step_index(f->ph, s->covered_by));
    report_json_expr(r, "read", cost.read);
    report_json_expr(r, "gathered", cost.gathered);
    report_json_expr(r, "written", cost.written);
    report_json_expr(r, "flops", cost.flops);
    report_json_expr(r, "saved", fusion_saved_bytes(r, f, index));
    double us;
    bool memory;
    if (roofline_time(r, &cost, &us, &memory)) {
        json_text(r->j, "bound_by", memory ? "memory" : "arithmetic");
        json_int(r->j, "at_best_ns", (int64_t)(1e3 * us));
    }
    json_ops(r, "computes", &all);
    json_ops(r, "in_place", &kept);
    json_results(r, f, index);
    json_end(r->j);
}

/* ---- a phase -------- */
/* Whether a call or launch for an earlier step of its group does the step s, too. The host has one
 * for each step. */
static bool is_grouped(const Report *r, const PStep *s) {
    RtGroupCost c;
    if (plan_on_host(r->p) || !s->group || plan_leads_group(s)) return false;
    return s->kind == PS_KERNEL || !group_cost(r, s->group, &c) || rt_group_pays(&c);
}

/* The totals of a phase on its target: kernels, library calls, bytes moved, operations, and bytes
 * saved by fusion. */
static ReportSum sum_of(const Report *r, const FusionFacts *f) {
    const PPhase *ph = f->ph;
    const Expr *none = expr_const(r->a, 0);
    ReportSum t = {0, 0, none, none, none};
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        StepCost c = report_step_cost(r, s);
        t.kernels += s->kind == PS_KERNEL && !report_is_covered(r, s) &&
                     !report_is_library_spmm(r, s) && !is_grouped(r, s);
        t.calls += report_is_library_spmm(r, s) || (s->kind == PS_GEMM && !is_grouped(r, s)) ||
                   s->kind == PS_RANK;
        t.moved = expr_add(r->a, t.moved, expr_add(r->a, c.read, c.written));
        t.flops = expr_add(r->a, t.flops, c.flops);
        t.saved = expr_add(r->a, t.saved, fusion_saved_bytes(r, f, i));
    }
    return t;
}

/* The totals of a phase, for reports that have not analysed its fusion. */
ReportSum report_phase_sum(const Report *r, const PPhase *ph) {
    FusionFacts f = fusion_analyze(r, ph);
    return sum_of(r, &f);
}

/* Prints a phase as text: its totals and its least time, then each step. */
static void print_phase(Report *r, const PPhase *ph) {
    FusionFacts f = fusion_analyze(r, ph);
    ReportSum t = sum_of(r, &f);
    sb_printf(r->b, "  @%s: %d kernels, %d library calls\n    moves    ", ph->name, t.kernels,
              t.calls);
    report_amount(r, t.moved, "B");
    sb_puts(r->b, "\n    computes ");
    report_amount(r, t.flops, "FLOP");
    sb_puts(r->b, "\n    saves    ");
    report_amount(r, t.saved, "B");
    sb_puts(r->b, " by keeping values out of memory\n");
    double us;
    if (report_phase_roofline(r, ph, &us))
        sb_printf(r->b, "    at best  %.3g us on an %s (%.3g TB/s, %.3g TFLOP/s in f32)\n", us,
                  report_roof(r)->name, 1e-12 * report_roof(r)->bytes_per_s,
                  1e-12 * report_roof(r)->flops_per_s);
    for (int i = 0; i < ph->steps.n; i++) print_step(r, &f, i);
}

/* Prints a phase as a JSON object: its totals, then each step. */
static void json_phase(Report *r, const PPhase *ph) {
    FusionFacts f = fusion_analyze(r, ph);
    ReportSum t = sum_of(r, &f);
    json_object(r->j, NULL);
    json_text(r->j, "phase", ph->name);
    json_int(r->j, "kernels", t.kernels);
    json_int(r->j, "library_calls", t.calls);
    report_json_expr(r, "moved", t.moved);
    report_json_expr(r, "flops", t.flops);
    report_json_expr(r, "saved", t.saved);
    json_array(r->j, "steps");
    for (int i = 0; i < ph->steps.n; i++) json_step(r, &f, i);
    json_end(r->j);
    json_end(r->j);
}

/* Prints the report on all phases of the plan, as text or JSON. */
void report_fusion(Report *r) {
    if (r->j) {
        json_object(r->j, "fusion");
        json_array(r->j, "phases");
    } else {
        sb_puts(r->b, "fusion: what each kernel computes, moves and keeps out of memory\n");
    }
    for (int i = 0; i < r->p->phases.n; i++)
        (r->j ? json_phase : print_phase)(r, r->p->phases.v[i]);
    if (!r->j) return;
    json_end(r->j);
    json_end(r->j);
}
