/* A program has a variant for each combination of answers that only the data give (PassChoices).
 * Each is compiled anew from the file; here is which there are, which one is shown, and what all
 * of them must agree on: the ranges that --precision=auto measured, and whether the loss is scaled.
 */
#include "frontend/cli/cli_job.h"

#include "codegen/host/host.h"

/* The answers to the choices of a variant, in words. picked: a bit for each choice. */
const char *cli_variant_text(Ctx *c, const PassChoices *ch, unsigned picked) {
    StrBuf b = sb_new(c->a);
    for (int i = 0; i < ch->n; i++)
        sb_printf(&b, "%s%s", i ? "; " : "", ch->answer[i][picked >> i & 1]);
    return b.s;
}

/* Programs that run on the host have them all; a device runs the first. */
int cli_count_variants(const CliJob *j, const PassChoices *ch) {
    return j->on.host ? 1 << ch->n : 1;
}

/* With --precision=auto: the program all in f32, which tells the ranges of what would be rounded,
 * is built and run.  After it the same passes make the same program, and know them. */
bool cli_measure_ranges(Ctx *c, const CliJob *j, PassRanges *r) {
    CliJob probe = *j;
    int n_diags = c->diags.n;
    *r = (PassRanges){.measured = false};
    probe.o.name = NULL; /* cli_measure() has one of its own */
    probe.o.reports = 0;
    probe.o.pass.remarks = NULL;
    probe.o.pass.record = NULL;
    probe.o.pass.stop_after = NULL;
    probe.on.device = NULL;
    Module *m = cli_read_module(c, &probe, probe.o.files.v[0]);
    if (!m || !cli_specialize_sizes(c, &probe, m) || !cli_run_passes(c, &probe, m)) return false;
    m->recipe.keep_metric = NULL;
    Plan *p = cli_make_plan(c, &probe, m, NULL);
    if (!p || (r->values.n && !cli_measure(c, p, &probe.o, r))) return false;
    c->diags.n = n_diags; /* warnings are given by what follows */
    return r->measured = true;
}

Plan *cli_make_variant(Ctx *c, CliJob *j, const Plan *first, unsigned picked) {
    CliJob v = *j;
    if (picked != j->o.variant) v.o.reports = 0;
    v.o.pass.remarks = NULL;
    v.o.pass.record = NULL;
    v.o.pass.choices->picked = picked;
    int n_diags = c->diags.n;
    if (v.o.pass.ranges && !cli_measure_ranges(c, &v, v.o.pass.ranges)) return NULL;
    Module *m = cli_read_module(c, &v, v.o.files.v[0]);
    c->diags.n = n_diags; /* warnings were given once */
    Plan *p = m && cli_specialize_sizes(c, &v, m) && cli_run_passes(c, &v, m)
                  ? cli_make_plan(c, &v, m, NULL)
                  : NULL; /* a device runs the first */
    for (int i = 0; p && i < p->kernels.n; i++)
        p->kernels.v[i]->name = arena_printf(c->a, "%s_v%u", p->kernels.v[i]->name, picked);
    if (p) p->with_host = false;
    if (p) p->fingerprint = plan_fingerprint(c->a, first);
    if (picked == j->o.variant) j->remarks = v.remarks, j->o.pass.record = v.o.pass.record;
    return p;
}

/* Does a gradient lie in f16 in any variant? */
static bool needs_scale(Ctx *c, const CliJob *j) {
    CliJob v = *j;
    int n = cli_count_variants(j, j->o.pass.choices), n_diags = c->diags.n;
    PassChoices choices = *j->o.pass.choices;
    v.o.pass.choices = &choices;
    v.o.pass.remarks = NULL;
    v.o.pass.record = NULL;
    v.o.reports = 0;
    choices.closed = true;
    for (int i = 1; i < n && !j->o.pass.scale->needed; i++) {
        choices.picked = (unsigned)i;
        Module *m = cli_read_module(c, &v, v.o.files.v[0]);
        c->diags.n = n_diags; /* warnings were given once */
        if (!m || !cli_specialize_sizes(c, &v, m) || !cli_run_passes(c, &v, m)) return true;
    }
    return j->o.pass.scale->needed;
}

/* The program after its passes; NULL after a diagnostic.  Only they show whether a gradient lies in
 * f16.  Where none does in any variant the loss is not scaled, and they run again.  Not so where
 * ranges were measured, which are those of a scaled loss. */
Module *cli_make_module(Ctx *c, CliJob *j) {
    int n_diags = c->diags.n;
    PassScale *scale = j->o.pass.scale;
    PassChoices choices = *j->o.pass.choices;
    Module *m = cli_read_module(c, j, j->o.files.v[0]);
    if (!m || !cli_specialize_sizes(c, j, m) || !cli_run_passes(c, j, m)) return NULL;
    if (j->progress.stopped) return m;
    bool decided = !j->o.passes && scale->scaled && !scale->needed; /* by all passes */
    if (!decided || j->o.pass.ranges || needs_scale(c, j)) return m;
    scale->off = true;
    c->diags.n = n_diags;
    *j->o.pass.choices = choices;
    m = cli_read_module(c, j, j->o.files.v[0]);
    return m && cli_specialize_sizes(c, j, m) && cli_run_passes(c, j, m) ? m : NULL;
}

/* The one that reports and listings are of, NULL after a diagnostic. */
Plan *cli_shown_variant(Ctx *c, CliJob *j, Plan *first, PassChoices *ch) {
    int n = cli_count_variants(j, ch);
    if (!j->o.variant) return first;
    if (j->o.variant >= (unsigned)n) {
        diag_add(c, DIAG_E0513, (Span){0}, "there is no variant %u: %s", j->o.variant,
                 !j->on.host ? "a device runs the first one alone"
                 : n == 1    ? "this program has one, 0"
                             : arena_printf(c->a, "this program has %d, from 0 on", n));
        return NULL;
    }
    ch->closed = true;
    return cli_make_variant(c, j, first, j->o.variant);
}

/* The variant that is asked for: which there are, the first one tells. */
Module *cli_variant_module(Ctx *c, CliJob *j) {
    PassChoices *ch = j->o.pass.choices;
    Module *m = cli_make_module(c, j);
    if (!m || !j->o.variant) return m;
    if (j->o.variant >= 1u << ch->n) {
        diag_add(c, DIAG_E0513, (Span){0}, "there is no variant %u: this program has %d",
                 j->o.variant, 1 << ch->n);
        return NULL;
    }
    ch->closed = true;
    ch->picked = j->o.variant;
    return cli_make_module(c, j);
}
