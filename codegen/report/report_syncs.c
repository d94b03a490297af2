/* --report=syncs: every value that crosses between host and device, and why.  On the cpu
 * target the "device" is the memory that kernels work in, and a crossing is the host
 * reading or writing it; the run-time counter `read_backs` counts the reads.
 *
 * What the trainer does between phases follows runtime/trainer/trainer_run.c: inputs and random
 * keys are written before a phase; the scalar outputs of "train" and "eval" are read once
 * per epoch, together; other outputs only when the user asks. */
#include "codegen/report/report.h"

#include <string.h>

/* When a value crosses. READ_OLD_CUDA: of a loop that is recorded, where CUDA can record loops. */
typedef enum { READ_STEP, READ_ITERATION, READ_OLD_CUDA, READ_EPOCH, READ_REQUEST, WRITE_RUN } When;
static const char *const when_word[] = {
    "each run",   "each iteration", "each iteration where CUDA is older than 12.4",
    "each epoch", "on request",     "before each run"};

/* A crossing of values between host and device. */
typedef struct {
    int phase; /* index in the plan */
    When when;
    /* names of the values, or of the step; why, in words; file:line of the model, or "" */
    const char *what, *cause, *line;
    int n; /* values */
} Crossing;
typedef VEC(Crossing) Crossings;

/* Whether a step of the phase uses buffer number `buf`. */
static bool has_buffer(const PPhase *ph, int buf) {
    for (int i = 0; i < ph->steps.n; i++)
        for (int k = 0; k < ph->steps.v[i]->n_bufs; k++)
            if (ph->steps.v[i]->bufs[k] == buf) return true;
    return false;
}

/* Why the host reads values of the device at step s, in words. */
static const char *cause_of(const PStep *s) {
    switch (s->kind) {
    case PS_PRINT:
        return "print: the text is made on the host";
    case PS_CALL:
        return "a C function of the host";
    case PS_LOOP:
        return "while: the host goes on where the condition holds";
    case PS_ASSERT:
        return "assert: the host stops when it fails";
    default:
        return "where: the host builds the relation from its condition";
    }
}

/* Adds the reads of device values by steps that run on the host, or that do with an old CUDA. */
static void add_host_reads(Report *r, int phase, Crossings *out) {
    const PPhase *ph = r->p->phases.v[phase];
    for (int i = 0; i < ph->steps.n; i++) {
        const PStep *s = ph->steps.v[i];
        if (report_is_device(r, s) && !s->recorded) continue;
        const char *what = s->space ? s->space->name : s->text ? s->text : cg_step_name(s);
        When when = s->recorded                                 ? READ_OLD_CUDA
                    : s->kind == PS_LOOP || plan_in_loop(ph, i) ? READ_ITERATION
                                                                : READ_STEP;
        Crossing c = {phase, when, what, cause_of(s), report_at(r, s->span), s->n_bufs};
        vec_push(r->a, out, c);
    }
}

/* A comma-separated list of the buffers of a kind that cross between host and device around the
 * phase; *n: how many. scalars: of outputs, only the scalars, or only the others. */
static const char *names_of(Report *r, int phase, PBufKind kind, bool scalars, int *n) {
    StrBuf s = sb_new(r->a);
    *n = 0;
    sb_puts(&s, "");
    for (int i = 0; i < r->p->bufs.n; i++) {
        const PBuf *b = r->p->bufs.v[i];
        if (b->kind != kind) continue;
        bool crosses = kind == PB_OUTPUT ? b->phase == phase && (b->type.rank == 0) == scalars
                                         : has_buffer(r->p->phases.v[phase], i);
        if (!crosses) continue;
        sb_printf(&s, "%s%s", (*n)++ ? ", " : "", b->io_name ? b->io_name : b->name);
    }
    return s.s;
}

/* Adds one crossing for all buffers of a kind together (see names_of()), if there are any. scalars:
 * of outputs, those that are one number, else all others; it means nothing for other kinds. */
static void add_crossing(Report *r, Crossings *out, int phase, When when, PBufKind kind,
                         bool scalars, const char *cause) {
    int n;
    const char *names = names_of(r, phase, kind, scalars, &n);
    Crossing c = {phase, when, names, cause, "", n};
    if (n) vec_push(r->a, out, c);
}

/* Whether the trainer reads the phase's scalar outputs once per epoch. */
static bool is_epoch_phase(Phase phase) {
    return phase == PHASE_TRAIN || phase == PHASE_EVAL;
}

/* Adds all crossings between host and device of a phase to `out`: inputs and random keys before it,
 * reads by its steps, outputs after it. */
static void phase_crossings(Report *r, int phase, Crossings *out) {
    Phase kind = r->p->phases.v[phase]->func->phase;
    add_crossing(r, out, phase, WRITE_RUN, PB_INPUT, false, "scalars that the schedule decides");
    add_crossing(r, out, phase, WRITE_RUN, PB_KEY, false, "keys of this step's random streams");
    add_host_reads(r, phase, out);
    if (kind == PHASE_LOAD) return;
    bool epoch = is_epoch_phase(kind);
    add_crossing(r, out, phase, epoch ? READ_EPOCH : READ_REQUEST, PB_OUTPUT, true,
                 epoch ? "the epoch's line, best-model keeping and the schedule"
                       : "asked for by the user");
    add_crossing(r, out, phase, READ_REQUEST, PB_OUTPUT, false, "asked for by the user");
}

/* The number of the phase's crossings that happen at the given time. */
static int reads_per(When when, const Crossings *all, int phase) {
    int n = 0;
    for (int i = 0; i < all->n; i++) n += all->v[i].phase == phase && all->v[i].when == when;
    return n;
}

/* The number of times that the host reads device values within a run of the phase. */
static int reads_per_run(const Crossings *all, int phase) {
    return reads_per(READ_STEP, all, phase);
}

/* The index of the first phase of a kind in the plan; -1: there is none. */
static int find_phase(const Plan *p, Phase phase) {
    for (int i = 0; i < p->phases.n; i++)
        if (p->phases.v[i]->func->phase == phase) return i;
    return -1;
}

/* The number of host reads in an epoch of one training step and one evaluation: those within the
 * two phases, and one of all scalar outputs together. 0: the program does not train. */
static int reads_per_epoch(Report *r, const Crossings *all) {
    int train = find_phase(r->p, PHASE_TRAIN), eval = find_phase(r->p, PHASE_EVAL);
    if (train < 0) return 0;
    return 1 + reads_per_run(all, train) + (eval >= 0 ? reads_per_run(all, eval) : 0);
}

/* Prints the report as text: for each phase the number of host reads, then each crossing. */
static void print_text(Report *r, const Crossings *all) {
    for (int p = 0; p < r->p->phases.n; p++) {
        int iteration = reads_per(READ_ITERATION, all, p);
        sb_printf(r->b, "  @%s: %d host read%s of device values per run", r->p->phases.v[p]->name,
                  reads_per_run(all, p), reads_per_run(all, p) == 1 ? "" : "s");
        if (iteration) sb_printf(r->b, ", %d more per iteration of a loop", iteration);
        sb_puts(r->b, "\n");
        for (int i = 0; i < all->n; i++) {
            const Crossing *c = &all->v[i];
            if (c->phase != p) continue;
            sb_printf(r->b, "    %s, %s: %s%s%s (%s)\n",
                      c->when == WRITE_RUN ? "host -> device" : "device -> host",
                      when_word[c->when], c->line, *c->line ? " " : "", c->what, c->cause);
        }
    }
}

/* Prints a crossing between host and device as a JSON object. */
static void json_crossing(Report *r, const Crossing *c) {
    json_object(r->j, NULL);
    json_text(r->j, "direction", c->when == WRITE_RUN ? "host_to_device" : "device_to_host");
    json_text(r->j, "when", when_word[c->when]);
    json_text(r->j, "what", c->what);
    json_int(r->j, "values", c->n);
    json_text(r->j, "cause", c->cause);
    json_text(r->j, "line", c->line);
    json_end(r->j);
}

/* Prints the crossings of each phase as a JSON array. */
static void print_json(Report *r, const Crossings *all) {
    json_array(r->j, "phases");
    for (int p = 0; p < r->p->phases.n; p++) {
        json_object(r->j, NULL);
        json_text(r->j, "phase", r->p->phases.v[p]->name);
        json_int(r->j, "reads_per_run", reads_per_run(all, p));
        json_int(r->j, "reads_per_iteration", reads_per(READ_ITERATION, all, p));
        json_array(r->j, "crossings");
        for (int i = 0; i < all->n; i++)
            if (all->v[i].phase == p) json_crossing(r, &all->v[i]);
        json_end(r->j);
        json_end(r->j);
    }
    json_end(r->j);
}

/* The number of times that the host reads device values within a run of the phase, for the
 * verdict. */
int report_reads_per_run(Report *r, int phase) {
    Crossings all = {0};
    phase_crossings(r, phase, &all);
    return reads_per_run(&all, phase);
}

/* Prints the report: the number of host reads per training step and per epoch, then all
 * crossings. */
void report_syncs(Report *r) {
    Crossings all = {0};
    for (int p = 0; p < r->p->phases.n; p++) phase_crossings(r, p, &all);
    int train = find_phase(r->p, PHASE_TRAIN);
    int per_step = train >= 0 ? reads_per_run(&all, train) : 0,
        per_epoch = reads_per_epoch(r, &all);
    if (!r->j) {
        sb_printf(r->b, "syncs: %d per step, %d per epoch\n", per_step, per_epoch);
        print_text(r, &all);
        return;
    }
    json_object(r->j, "syncs");
    json_int(r->j, "per_step", per_step);
    json_int(r->j, "per_epoch", per_epoch);
    print_json(r, &all);
    json_end(r->j);
}
