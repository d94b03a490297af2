/* Options that do not go together, once all of them and the files are there. */
#include "frontend/cli/cli_job.h"

#include <string.h>

/* Whether `gnnc help` has this form. */
static bool is_form(const char *word) {
    for (int i = 0; cli_manual_form(i); i++)
        if (strcmp(cli_manual_form(i), word) == 0) return true;
    return false;
}

static bool interprets(const CliOptions *o) {
    return o->action == ACT_RUN || o->action == ACT_COMPARE;
}

/* What is wrong with the options of `gnnc run` and `gnnc compare`, or with these options
 * elsewhere. NULL: nothing. */
static const char *check_interpreted(Arena *a, const CliOptions *o) {
    if (!interprets(o)) {
        bool own = o->level || o->values || o->against || o->steps != 1;
        return own ? "--level, --steps, --values and --against are for run and compare" : NULL;
    }
    if (!o->measured) return "what is interpreted runs on data: say --data=DIR";
    if (o->values && o->action != ACT_RUN) return "--values is for run";
    if (o->against && o->action != ACT_COMPARE) return "--against is for compare";
    if (o->action == ACT_COMPARE && o->files.n == 1 && !o->against)
        return "compare is of two files, or of one and --against=OPTIONS";
    if (o->pass.stop_after && o->action == ACT_COMPARE)
        return "compare finds the pass by itself: no --stop-after";
    if (o->action == ACT_COMPARE && o->files.n > 2)
        return arena_printf(a, "two files at a time: '%s' is one too many", o->files.v[2]);
    if (o->draw || o->explain || o->infer || o->reports)
        return "run and compare interpret what trains, and write no report";
    return NULL;
}

/* What is wrong with --precision=auto and --data. NULL: nothing. */
static const char *check_precision(const CliOptions *o) {
    if (o->precision_auto && o->action == ACT_COMPILE && !o->measured && !o->data)
        return "--precision=auto measures values on data: say --data=DIR";
    if (o->precision_auto && o->action == ACT_OPT)
        return "--precision=auto measures values on data, which 'gnnc opt' does not read";
    if (o->precision_auto && interprets(o))
        return "--precision=auto compiles and measures: 'gnnc run' and 'compare' interpret";
    if (o->measured && o->action == ACT_COMPILE && !o->precision_auto)
        return "--data is for --precision=auto: the trainer takes data when it runs";
    return NULL;
}

/* Which options do not go together with the kind of result or with the command. NULL: all do. */
static const char *check_kind(const CliOptions *o) {
    if (o->pass.dump_values && (interprets(o) || o->infer || o->emit == OUT_PYTHON))
        return "--dump-values is of a trainer; of what is interpreted --values shows values";
    if (o->depends && !(o->out ? strcmp(o->out, "-") : o->emit <= OUT_PYTHON || o->emit == OUT_OBJ))
        return "-MD is of a result that is a file: say -o";
    if (o->depends &&
        (o->emit == OUT_IR || o->emit == OUT_AST || o->emit == OUT_NONE || o->emit == OUT_HTML))
        return "-MD is of what is built of a model, not of its text";
    if (o->emit == OUT_PYTHON && (o->infer || o->grads))
        return "--emit=python has a trainer, and rows predicted by themselves where they can be";
    if (o->infer && o->emit == OUT_EXE && o->action == ACT_COMPILE)
        return "--infer makes a library, --emit=infer: a trainer predicts rows by themselves "
               "anyway";
    if (o->emit == OUT_HTML && o->reports) return "--emit=html has every report: no --report";
    if (o->bisect && (o->action != ACT_COMPILE || o->emit == OUT_NONE))
        return "--bisect compiles programs for its command: nothing is compiled here";
    if (o->mpi && (o->emit == OUT_LIB || o->emit == OUT_PYTHON || o->infer))
        return "--mpi is for programs that train; --parts for libraries";
    if (o->sampled_boundary && cli_is_plan_file(o->files.v[0]))
        return "--sampled-boundary is for models: a plan has its probability";
    if (o->sampled_boundary && !o->mpi && !o->parts)
        return "--sampled-boundary is for --mpi and --parts";
    if (o->sampled_boundary && (interprets(o) || o->infer))
        return "--sampled-boundary is of programs that train";
    if (o->shared_runtime && o->emit != OUT_LIB) return "--runtime=shared is for --emit=lib";
    if ((o->fmt_check || o->fmt_diff) && o->action != ACT_FMT)
        return "--check and --diff are for fmt";
    if (o->draw && !o->infer) return "--draw is for --infer";
    if (o->explain && o->alone) return "--explain needs the program that --no-rows leaves out";
    bool compiles = o->action != ACT_CHECK; /* what for, the caller may say later */
    if (o->explain && compiles && !o->infer && o->emit != OUT_EXE)
        return "--explain is for trainers and for --infer";
    if (o->embed && compiles && !o->infer && o->emit != OUT_PYTHON)
        return "--embed is for --infer: a trainer embeds all layers";
    return NULL;
}

/* What is wrong with the number of files that are named. NULL: nothing. */
static const char *check_files(Arena *a, const CliOptions *o) {
    if (o->action == ACT_LSP)
        return o->files.n ? arena_printf(a, "lsp takes no file: '%s'", o->files.v[0]) : NULL;
    if (o->action == ACT_FMT) return NULL; /* none: standard input */
    if (o->files.n == 0) return "no input file is named";
    if (o->action == ACT_CHECK || o->action == ACT_COMPARE || o->files.n == 1) return NULL;
    return strpbrk(o->files.v[0], "./")
               ? arena_printf(a, "one file at a time: '%s' is one too many", o->files.v[1])
               : arena_printf(
                     a,
                     "'%s' is no command (check, fmt, lsp, opt, run, compare, import, export, "
                     "help) and no "
                     "file",
                     o->files.v[0]);
}

/* Names the model of a library after its files unless --name did; called when the files are
 * known. What is wrong with the names, or NULL. */
static const char *name_model(Arena *a, CliOptions *o) {
    bool several = o->emit == OUT_LIB || o->emit == OUT_PYTHON;
    if ((!several && o->emit != OUT_HEADER) || o->action != ACT_COMPILE) return NULL;
    CliLibrary l = several ? cli_library(a, o) : (CliLibrary){"", cli_stem(a, o->files.v[0])};
    const char *why = o->emit == OUT_LIB      ? cli_bad_base(a, l.base)
                      : o->emit == OUT_PYTHON ? cli_bad_package(a, l.base)
                                              : NULL;
    if (!o->name) o->name = l.base;
    if (!why && (why = cli_bad_name(a, o->name))) why = arena_printf(a, "%s: say --name=NAME", why);
    return why;
}

/* What is wrong with the options as a whole; NULL: nothing, and o->name is set. */
const char *cli_check_options(Arena *a, CliOptions *o) {
    if (o->action == ACT_HELP && o->files.n && !is_form(o->files.v[0]))
        return arena_printf(a, "there is no help as '%s': man, bash, zsh, fish, thresholds, words",
                            o->files.v[0]);
    if (o->action == ACT_HELP || o->action == ACT_VERSION) return NULL;
    const char *why = check_precision(o);
    if (!why) why = o->files.n ? check_kind(o) : NULL;
    if (!why) why = check_files(a, o);
    if (!why) why = check_interpreted(a, o);
    return why ? why : name_model(a, o);
}

const char *cli_manual_form(int i) {
    static const char *const forms[] = {"man", "bash", "zsh", "fish", "thresholds", "words"};
    return i < (int)COUNT(forms) ? forms[i] : NULL;
}
