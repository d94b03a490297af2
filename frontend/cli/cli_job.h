/* A compile under way: shared by its stages, its variants and what is done with the result. */
#ifndef FRONTEND_CLI_JOB_H
#define FRONTEND_CLI_JOB_H

#include "frontend/cli/cli.h"

typedef struct {
    CliOptions o;
    StrBuf remarks;
    int effects;          /* print and assert, before any pass */
    const int64_t *sizes; /* by Sym.id, of the first n_sizes */
    int n_sizes;
    CliTargets on;
    PassProgress progress;
    PassTimes *times; /* of passes over loops */
    double since;     /* milliseconds, when the compile began */
} CliJob;

/* ---- stages (cli_stages.c): false or NULL after a diagnostic -------------------------------- */
CliJob cli_job(Ctx *c, const CliOptions *o);
Module *cli_read_module(Ctx *c, CliJob *j, const char *path);
bool cli_specialize_sizes(Ctx *c, CliJob *j, Module *m);  /* those of --specialize */
bool cli_run_passes(Ctx *c, CliJob *j, Module *m);        /* over the graph IR */
const Target *cli_choose_target(Ctx *c, const CliJob *j); /* of what is emitted as one file */
void cli_choose_targets(Ctx *c, CliJob *j);
/* Steps that see the whole graph, of processes that may share its rows. */
bool cli_shares_rows(const CliJob *j, const Module *m);
/* device: whose library calls the plan may use; NULL = none. */
Plan *cli_make_plan(Ctx *c, CliJob *j, Module *m, const char *device);
/* Of a plan that was stopped, or made by chosen passes: without them nothing shares memory. */
bool cli_find_lives(Ctx *c, Plan *p);
bool cli_is_plan_file(const char *path); /* the text of a plan, or of kernels and theirs */
bool cli_is_plan(const CliJob *j);
Plan *cli_read_plan(Ctx *c, CliJob *j, const char *path);
Plan *cli_parse_plan(Ctx *c, CliJob *j, uint32_t file);
/* --stop-after names no pass over the graph, nor over the plan: p's loop passes end there. */
bool cli_stop_in_loops(Ctx *c, const CliJob *j, Plan *p, const Target *t);

/* ---- variants (cli_variants.c) -------------------------------------------------------------- */
bool cli_measure_ranges(Ctx *c, const CliJob *j, PassRanges *r); /* for --precision=auto */
/* The module after its passes, of the first variant. */
Module *cli_make_module(Ctx *c, CliJob *j);
Module *cli_variant_module(Ctx *c, CliJob *j); /* .. of the one that --variant names */
/* The variant in which the answers are `picked`; its kernels have names of their own. */
Plan *cli_make_variant(Ctx *c, CliJob *j, const Plan *first, unsigned picked);
/* The one that reports and listings are of. */
Plan *cli_shown_variant(Ctx *c, CliJob *j, Plan *first, PassChoices *ch);
int cli_count_variants(const CliJob *j, const PassChoices *ch);
const char *cli_variant_text(Ctx *c, const PassChoices *ch, unsigned picked); /* its answers */

#endif
