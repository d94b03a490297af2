/* Arguments to CliOptions.  One table lists every option with its help line and its words, so that
 * --help, the manual page and shells' completions (cli_manual.c, cli_complete.c) cannot fall
 * behind.
 */
#include "frontend/cli/cli.h"

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/report/report.h"
#include "passes/dump.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/io.h"
#include "runtime/exec/rng.h"

typedef bool Setter(Arena *a, CliOptions *o, const char *value);

typedef struct {
    const char *name;  /* "--emit" */
    const char *value; /* what stands after '=' in the help, NULL = a flag */
    const char *help;
    Setter *set;
    CliWord *word; /* the values there are; NULL = any */
} CliOption;

static const char *const emit_names[] = {
    [OUT_EXE] = "exe",       [OUT_LIB] = "lib",       [OUT_AST] = "ast",   [OUT_IR] = "ir",
    [OUT_PLAN] = "plan",     [OUT_LOOPS] = "loops",   [OUT_LLVM] = "llvm", [OUT_ASM] = "asm",
    [OUT_OBJ] = "obj",       [OUT_C] = "c",           [OUT_CUDA] = "cuda", [OUT_NONE] = "none",
    [OUT_PYTHON] = "python", [OUT_HEADER] = "header", [OUT_HTML] = "html",
};

#define SETTER(NAME) static bool NAME(Arena *a, CliOptions *o, const char *value)
#define UNUSED_ARGS (void)a, (void)value

/* Which of the words the value is; -1: none of them. */
static int index_of(CliWord *word, const char *value) {
    for (int i = 0; word(i); i++)
        if (strcmp(word(i), value) == 0) return i;
    return -1;
}

#define WORDS(NAME, ...)                                                                           \
    static const char *NAME(int i) {                                                               \
        static const char *const words[] = {__VA_ARGS__};                                          \
        return i < (int)COUNT(words) ? words[i] : NULL;                                            \
    }
WORDS(report_format_word, "text", "json")
WORDS(level_word, [LEVEL_IR] = "ir", [LEVEL_PLAN] = "plan", [LEVEL_LOOPS] = "loops")
WORDS(change_word, "text", "diff")
WORDS(runtime_word, "own", "shared")
WORDS(spmm_word, [SPMM_OWN] = "own", [SPMM_AUTO] = "auto", [SPMM_LIBRARY] = "cusparse")
enum { PRECISION_AUTO = 3, PRECISION_TF32 };
WORDS(precision_word, "f32", "bf16", "f16", [PRECISION_AUTO] = "auto", [PRECISION_TF32] = "tf32")

/* The i-th word that --target takes; NULL: there are fewer. */
static const char *target_word(int i) {
    static const char *const words[] = {
        "auto",
#define TARGET(id) #id,
#include "codegen/targets.def"
#undef TARGET
    };
    return i < (int)COUNT(words) ? words[i] : NULL;
}

static const char *emit_word(int i) {
    int n = COUNT(emit_names);
    return i < n ? emit_names[i] : i == n ? "infer" : NULL;
}

static const char *pass_word(int i) {
    const Pass *p = plan_all_passes_at(i);
    return p ? p->name : NULL;
}

/* The i-th pass that a program can do without; NULL: there are fewer. */
static const char *spare_pass_word(int i) {
    for (int k = 0; plan_all_passes_at(k); k++)
        if (!plan_all_passes_at(k)->required && i-- == 0) return plan_all_passes_at(k)->name;
    return NULL;
}

static const char *pass_or_all(int i) {
    return i == 0 ? "all" : pass_word(i - 1);
}

/* Whether a list has only passes of those words, each maybe with the run that is meant:
 * "cse,dce#2". */
static bool are_passes(Arena *a, const char *names, CliWord *word) {
    if (!*names) return false;
    for (size_t n; *names; names += n + (names[n] == ',' && names[n + 1])) {
        int nth;
        const char *name = arena_strndup(a, names, pass_name_len(names, &nth));
        if (nth < 0 || index_of(word, name) < 0 || (nth && strcmp(name, "all") == 0)) return false;
        n = strcspn(names, ",");
    }
    return true;
}

/* Reads the value of --emit. The last word of emit_word, "infer", is no OutKind of its own: it
 * is a library (OUT_LIB) without training code. False: there is no such word. */
SETTER(set_emit) {
    UNUSED_ARGS;
    int i = index_of(emit_word, value);
    o->infer |= i == (int)COUNT(emit_names);
    if (i >= 0) o->emit = i < (int)COUNT(emit_names) ? (OutKind)i : OUT_LIB;
    return i >= 0;
}

/* Sets --target, a list of targets or "auto". False: there is no such target. */
SETTER(set_target) {
    o->target = value;
    if (strcmp(value, "auto") == 0) return true;
    while (*value) {
        size_t n = strcspn(value, ",");
        if (!target_find(arena_strndup(a, value, n))) return false;
        value += n + (value[n] == ',' && value[n + 1]);
        if (*value == ',') return false;
    }
    return *o->target != 0;
}

/* Adds to the reports that are asked for. False: there is no such report. */
SETTER(set_report) {
    UNUSED_ARGS;
    o->reports |= report_kinds(value);
    return report_kinds(value) != 0;
}

/* Sets --report-format. False: it is no such format. */
SETTER(set_report_format) {
    UNUSED_ARGS;
    int i = index_of(report_format_word, value);
    o->report_json = i == 1;
    return i >= 0;
}

/* Sets --variant, one digit. */
SETTER(set_variant) {
    UNUSED_ARGS;
    o->variant = (unsigned)(*value - '0');
    return *value >= '0' && *value <= '9' && !value[1];
}

/* Adds a -D, which has the form NAME=VALUE. */
SETTER(set_define) {
    const char *eq = strchr(value, '=');
    if (!eq || eq == value || !eq[1]) return false;
    vec_push(a, &o->defines, value);
    return true;
}

SETTER(set_include) {
    vec_push(a, &o->includes, value);
    return *value != 0;
}

/* Sets -o, which must not be empty. */
SETTER(set_out) {
    UNUSED_ARGS;
    o->out = value;
    return *value != 0;
}

SETTER(set_name) {
    o->name = value;
    return !cli_bad_name(a, value);
}

/* Sets -MF, the file that make's rule goes to, which asks for the rule, too. */
SETTER(set_depfile) {
    UNUSED_ARGS;
    o->depfile = value;
    return o->depends = *value != 0;
}

/* Sets --runtime: whether libraries share the runtime or contain it. */
SETTER(set_runtime) {
    UNUSED_ARGS;
    int i = index_of(runtime_word, value);
    o->shared_runtime = i == 1;
    return i >= 0;
}

/* Sets --model, the name of the model in its file. False: the name is empty. */
SETTER(set_model) {
    UNUSED_ARGS;
    o->model = value;
    return *value != 0;
}

/* Sets --specialize, the data directory whose widths become constants. False: it is empty. */
SETTER(set_data) {
    UNUSED_ARGS;
    o->data = value;
    return *value != 0;
}

/* Sets --data, the data that values are measured or interpreted on. False: it is empty. */
SETTER(set_measured) {
    UNUSED_ARGS;
    o->measured = value;
    return *value != 0;
}

/* Sets --cuda-arch, a list such as "90,sm_100a". What nvcc does not know is left to nvcc to
 * tell. */
SETTER(set_cuda_arch) {
    UNUSED_ARGS;
    o->cuda_arch = value;
    return *value >= '0' && value[strspn(value, "sm_0123456789af,")] == 0;
}

/* Sets --march, the processor to compile for. LLVM checks its name later. False: it is empty. */
SETTER(set_march) {
    UNUSED_ARGS;
    o->march = value;
    return *value != 0;
}

/* Sets --settable. The front end checks its names. False: there is none. */
SETTER(set_settable) {
    UNUSED_ARGS;
    o->settable = value;
    return *value != 0;
}

/* Sets --embed, whose layers the front end checks. False: there is none. */
SETTER(set_embed) {
    UNUSED_ARGS;
    o->embed = value;
    return *value != 0;
}

/* Sets --spmm by its word. */
SETTER(set_spmm) {
    UNUSED_ARGS;
    int i = index_of(spmm_word, value);
    if (i >= 0) o->spmm = (SpmmChoice)i;
    return i >= 0;
}

/* Sets --passes. The driver checks its names, of which there may be none. */
SETTER(set_passes) {
    UNUSED_ARGS;
    o->passes = value;
    return true;
}

/* Sets --precision. For "auto", f16 is taken where it holds the values; "tf32" changes products
 * only, in memory all is f32. */
SETTER(set_precision) {
    UNUSED_ARGS;
    static const DType type[] = {DT_F32, DT_BF16,
                                 DT_F16, [PRECISION_AUTO] = DT_F16, /* where it holds the values */
                                 [PRECISION_TF32] = DT_F32};        /* in memory */
    int i = index_of(precision_word, value);
    o->tf32 = i == PRECISION_TF32;
    o->precision_auto = i == PRECISION_AUTO;
    if (i >= 0) o->pass.precision = type[i];
    return i >= 0;
}

SETTER(set_print_before) {
    o->pass.print_before = value;
    return are_passes(a, value, pass_or_all);
}

SETTER(set_print_after) {
    o->pass.print_after = value;
    return are_passes(a, value, pass_or_all);
}

/* Sets --print-changed; without a value whole texts are printed, "diff" prints differences. */
SETTER(set_print_changed) {
    UNUSED_ARGS;
    int form = value ? index_of(change_word, value) : 0;
    o->pass.print_changed = true;
    o->pass.print_diff = form == 1;
    return form >= 0;
}

SETTER(set_print_filter) {
    o->pass.print_filter = value;
    return !dump_bad_filter(a, value);
}

/* A list of passes that a program can do without. */
SETTER(set_disable) {
    o->pass.disable = value;
    return !*value || are_passes(a, value, spare_pass_word);
}

/* Sets --stop-after: one pass, or a number of passes. */
SETTER(set_stop_after) {
    o->pass.stop_after = value;
    return (!strchr(value, ',') && are_passes(a, value, pass_word)) ||
           (*value >= '1' && *value <= '9' && !value[strspn(value, "0123456789")]);
}

/* The number that the text begins with, and what follows it; -2: there is none. */
static int count_from(const char **text) {
    enum { MOST = 1000000 };
    int n = 0, digits = (int)strspn(*text, "0123456789");
    for (int i = 0; i < digits && n < MOST; i++) n = n * 10 + ((*text)[i] - '0');
    *text += digits;
    return digits ? n : -2;
}

/* Sets --bisect-limit, "33" or "33:5": how many of the passes run that a program can do without,
 * and how many changes the last of them makes. */
SETTER(set_bisect_limit) {
    UNUSED_ARGS;
    const char *rest = value;
    o->pass.leave_from = count_from(&rest) + 1;
    o->pass.rewrite_from = *rest == ':' ? (rest++, count_from(&rest) + 1) : 0;
    return *rest == 0 && o->pass.leave_from > 0 && o->pass.rewrite_from >= 0;
}

/* Sets --bisect, a command of the shell. False: it is empty. */
SETTER(set_bisect) {
    UNUSED_ARGS;
    o->bisect = value;
    return *value != 0;
}

/* Sets --level by its word: what is interpreted. */
SETTER(set_level) {
    UNUSED_ARGS;
    int i = index_of(level_word, value);
    if (i >= 0) o->level = (CliLevel)i;
    return i >= 0;
}

/* Sets --steps, a whole number. */
SETTER(set_steps) {
    UNUSED_ARGS;
    const char *rest = value;
    o->steps = count_from(&rest);
    return *rest == 0 && o->steps >= 0;
}

static bool is_list(const char *value) {
    return *value && *value != ',' && !strstr(value, ",,") && value[strlen(value) - 1] != ',';
}

/* Sets --values, a list of names of the IR. False: it is no list. */
SETTER(set_values) {
    UNUSED_ARGS;
    o->values = value;
    return is_list(value);
}

/* Sets --dump-values, a list of names of the IR. False: it is no list. */
SETTER(set_dump_values) {
    UNUSED_ARGS;
    o->pass.dump_values = value;
    return is_list(value);
}

/* Sets --against, the options of the other side, which are read when sides are compared. False:
 * it is empty. */
SETTER(set_against) {
    UNUSED_ARGS;
    o->against = value;
    return *value != 0;
}

/* Sets --sampled-boundary, a probability that rows can be drawn with. */
SETTER(set_sampled_boundary) {
    UNUSED_ARGS;
    char *end;
    o->sampled_boundary = strtod(value, &end);
    return *value && !*end && rt_boundary_can_draw(o->sampled_boundary);
}

/* Sets --tolerance, a number that is not negative. */
SETTER(set_tolerance) {
    UNUSED_ARGS;
    char *end;
    o->tolerance = strtod(value, &end);
    return *value >= '0' && *value <= '9' && !*end && o->tolerance < 1e30;
}

/* Sets -O0, no optimisation. */
SETTER(set_o0) {
    UNUSED_ARGS;
    o->opt_level = 0;
    return true;
}

/* Sets -O1, whose kernels LLVM does not optimise. */
SETTER(set_o1) {
    UNUSED_ARGS;
    o->opt_level = 1;
    return true;
}

/* Sets -O2; its other names are in the table of aliases. */
SETTER(set_o2) {
    UNUSED_ARGS;
    o->opt_level = 2;
    return true;
}

#define FLAG(NAME, FIELD)                                                                          \
    SETTER(NAME) {                                                                                 \
        UNUSED_ARGS;                                                                               \
        return o->FIELD = true;                                                                    \
    }
FLAG(set_time, pass.time_passes)
FLAG(set_verify, pass.verify_each)
FLAG(set_grads, grads)
FLAG(set_infer, infer)
FLAG(set_draw, draw)
FLAG(set_explain, explain)
FLAG(set_alone, alone)
FLAG(set_keep, keep)
FLAG(set_depends, depends)
FLAG(set_verbose, verbose)
FLAG(set_mpi, mpi)
FLAG(set_fmt_check, fmt_check)
FLAG(set_fmt_diff, fmt_diff)
FLAG(set_parts, parts)

/* Makes the help the action, in place of what the command line asks for. */
SETTER(set_help) {
    UNUSED_ARGS;
    o->action = ACT_HELP;
    return true;
}

/* Makes printing the version the action, in place of what the command line asks for. */
SETTER(set_version) {
    UNUSED_ARGS;
    o->action = ACT_VERSION;
    return true;
}

static const CliOption options[] = {
    {"-o", "FILE",
     "write the result to this file (default: the model's name); with --emit=lib, DIR/NAME of its "
     "files",
     set_out, NULL},
    {"--name", "NAME", "the C name of the model: NAME_program (default: the NAME of -o)", set_name,
     NULL},
    {"--runtime", "WHOSE",
     "with --emit=lib: own (default): the library contains the runtime; shared: it uses "
     "libgnnrt.so",
     set_runtime, runtime_word},
    {"-MD", NULL,
     "also write a make rule that lists the files that the result was made from, beside it (.d)",
     set_depends, NULL},
    {"-MF", "FILE", "write that make rule to FILE", set_depfile, NULL},
    {"-D", "NAME=VALUE", "set a constant of the model: -D hidden=64", set_define, NULL},
    {"--settable", "A,B,..",
     "these parameters of the model are options of the program (--set hidden=64), as if it said so",
     set_settable, NULL},
    {"--model", "NAME", "which model of the file (default: the last)", set_model, NULL},
    {"-I", "DIR", "also look for imported files in DIR", set_include, NULL},
    {"-O0", NULL, "no optimisation", set_o0, NULL},
    {"-O1", NULL,
     "all passes of gnnc, but LLVM does not optimise: compiled in half the time, slower when it "
     "runs",
     set_o1, NULL},
    {"-O2", NULL, "all optimisations (default); -O and -O3 are the same", set_o2, NULL},
    {"--emit", "KIND",
     "what to write: exe (default), lib, infer (as lib with --infer), python (a package and its "
     "wheel), ast, ir, plan, loops, llvm, asm, obj, c, cuda, header (of lib), html (a page that "
     "shows all of it) or none",
     set_emit, emit_word},
    {"--infer", NULL, "a library that only predicts, also single rows: no training code", set_infer,
     NULL},
    {"--no-rows", NULL,
     "leave out of the trainer the second program by which predict --ids computes only the rows "
     "asked for (smaller; predict then computes all rows)",
     set_alone, NULL},
    {"--draw", NULL,
     "with --infer: predict from as many neighbours as the recipe's fanout draws (default: from "
     "all of them)",
     set_draw, NULL},
    {"--explain", NULL,
     "with exe or --infer: add the command explain, which shows what a prediction depends on",
     set_explain, NULL},
    {"--embed", "LAYERS",
     "with --infer or python: also compute these hidden layers of single rows, h,z or all",
     set_embed, NULL},
    {"--target", "LIST", "auto, cpu, cuda or cpu,cuda (default auto: both if nvcc is found)",
     set_target, target_word},
    {"--march", "CPU", "processor to compile for: native (default), x86-64-v3, ..", set_march,
     NULL},
    {"--cuda-arch", "LIST",
     "GPUs to compile for (default: sm_80,sm_90, and sm_100 from CUDA 12.8 on)", set_cuda_arch,
     NULL},
    {"--spmm", "WHO",
     "who computes sparse products on a GPU: own kernels (default), cusparse, or auto (cusparse "
     "where it moves fewer bytes)",
     set_spmm, spmm_word},
    {"--specialize", "DATA", "make the widths in that data directory constants of the program",
     set_data, NULL},
    {"--precision", "TYPE",
     "how large values are stored: f32 (default), bf16 or f16; auto: f16, but f32 where --data has "
     "values that f16 cannot hold; tf32: stored as f32, rounded in a GPU's matrix products",
     set_precision, precision_word},
    {"--data", "DIR",
     "with --precision=auto: the data to measure (default: those of --specialize); with run and "
     "compare: the data to interpret on",
     set_measured, NULL},
    {"--level", "LEVEL",
     "with run and compare: interpret the ir (default), the plan, or the loops, its kernels as "
     "compiled for the target",
     set_level, level_word},
    {"--steps", "N", "with run and compare: number of training steps (1)", set_steps, NULL},
    {"--check", NULL,
     "with fmt: write nothing; name the files that would change, and end with status 1",
     set_fmt_check, NULL},
    {"--diff", NULL, "with fmt: write nothing; show what would change", set_fmt_diff, NULL},
    {"--values", "A,B,..", "with run: also show these values of the IR, by their names there",
     set_values, NULL},
    {"--against", "OPTIONS", "with compare: the options of the other side, as '-O0'", set_against,
     NULL},
    {"--tolerance", "X",
     "with compare: the largest difference, as a share of the largest element (1e-5)",
     set_tolerance, NULL},
    {"--dump-values", "A,B,..",
     "values of the IR that the trainer can write with its --dump-values=DIR; fused values stay "
     "fused",
     set_dump_values, NULL},
    {"--grads", NULL, "keep gradients as outputs instead of updating parameters", set_grads, NULL},
    {"--passes", "A,B,..", "run these passes instead of the -O pipeline", set_passes, pass_word},
    {"--print-before", "PASS",
     "print the IR before a pass, or before all; dce#2 is the second run of dce", set_print_before,
     pass_or_all},
    {"--print-after", "PASS", "print the IR after a pass, or after all", set_print_after,
     pass_or_all},
    {"--print-changed", "FORM",
     "print the IR after each pass that changed it: text (all of it) or diff", set_print_changed,
     change_word},
    {"--print-filter", "A,B,..",
     "print only these: functions (@NAME), kernels (NAME), lines of a value (%VALUE) or of a "
     "source line (FILE:LINE)",
     set_print_filter, NULL},
    {"--disable-pass", "A,B,..", "leave out these passes, if a program can be made without them",
     set_disable, spare_pass_word},
    {"--stop-after", "PASS",
     "print the program after this pass, or after this number of passes, and stop", set_stop_after,
     pass_word},
    {"--bisect", "COMMAND",
     "find the pass that makes a program bad: COMMAND PROGRAM must end with 0 for a good one",
     set_bisect, NULL},
    {"--bisect-limit", "N[:M]",
     "run only the first N of the passes that can be left out, and of the Nth only its first M "
     "changes",
     set_bisect_limit, NULL},
    {"--verify-each", NULL, "check the IR after each pass", set_verify, NULL},
    {"--time-passes", NULL, "print the time of each pass and stage", set_time, NULL},
    {"--report", "WHAT",
     "print one of verdict, source, missed, kernels, degrees, shapes, breaks, fusion, syncs, "
     "memory, precision, communication, times, several (a,b) or all",
     set_report, report_word},
    {"--report-format", "FORM", "format of reports: text or json", set_report_format,
     report_format_word},
    {"--variant", "N",
     "show this one of the program's variants in reports and listings (0; reports list them)",
     set_variant, NULL},
    {"--mpi", NULL, "the program can also train in several processes: mpirun -n 4 ./train", set_mpi,
     NULL},
    {"--parts", NULL,
     "the processes can share the rows of data that gnnc partition wrote (always so with --mpi)",
     set_parts, NULL},
    {"--sampled-boundary", "P",
     "training reads a row of another part with probability P in each step (2^-20 <= P < 1), "
     "an approximation",
     set_sampled_boundary, NULL},
    {"--keep", NULL, "keep the temporary directory and say where it is", set_keep, NULL},
    {"-v", NULL, "print each step and command", set_verbose, NULL},
    {"--version", NULL, "or -V: print the version", set_version, NULL},
    {"--help", NULL, "or -h: print this", set_help, NULL},
};

static const CliCommand commands[] = {
    {NULL, "MODEL.gnn [-o TRAINER] [OPTION]..", "compile a model into a trainer"},
    {"check", "check FILE.gnn..", "report mistakes, write nothing"},
    {"fmt", "fmt [FILE.gnn]..", "rewrite files, or standard input, in the standard layout"},
    {"lsp", "lsp [-I DIR]..", "a language server, for editors (docs/editor.md)"},
    {"opt", "opt FILE.gir|plan|loops --passes=..", "run passes on textual IR, a plan or loops"},
    {"run", "run FILE --data DIR ..", "interpret a model, IR, a plan or loops on data"},
    {"compare", "compare A [B] --data DIR ..",
     "interpret two programs, show the first value that differs"},
    {"import", "import ..", "make a data directory (gnnc import --help)"},
    {"partition", "partition DIR P -o OUT",
     "cut data for several processes (gnnc partition --help)"},
    {"export", "export ..", "write predictions into a database (gnnc export --help)"},
    {"help", "help [man|bash|zsh|fish|thresholds|words]",
     "print this, the manual page, completions for a shell, thresholds of passes, or words of the "
     "language"},
};

const CliCommand *cli_command_at(int i) {
    return i < (int)COUNT(commands) ? &commands[i] : NULL;
}

/* Sets *to to the i-th option; false: there are fewer. */
bool cli_option_at(int i, CliOptionText *to) {
    if (i >= (int)COUNT(options)) return false;
    const CliOption *o = &options[i];
    *to = (CliOptionText){o->name, o->value, o->help, o->word};
    return true;
}

/* Prints the help: commands, options and passes. */
void cli_help(FILE *to) {
    enum { HELP_AT = 26 };
    for (int i = 0; cli_command_at(i); i++)
        fprintf(to, "%s gnnc %-36s%s\n", i ? "      " : "usage:", cli_command_at(i)->how,
                cli_command_at(i)->what);
    fputs("\noptions:\n", to);
    for (size_t i = 0; i < COUNT(options); i++) {
        const CliOption *p = &options[i];
        int n = fprintf(to, "  %s%s%s", p->name, p->value ? (p->name[1] == '-' ? "=" : " ") : "",
                        p->value ? p->value : "");
        fprintf(to, "%*s", n < HELP_AT ? HELP_AT - n : 1, "");
        fe_put_wrapped(to, p->help, HELP_AT);
    }
    fputs("\npasses:\n", to);
    for (int i = 0; plan_all_passes_at(i); i++)
        fprintf(to, "  %-24s%s\n", plan_all_passes_at(i)->name, plan_all_passes_at(i)->summary);
    fputs("\nthresholds of passes: --PASS.NAME=N; gnnc help thresholds lists them\n", to);
    fputs("\nexit status: 0 done, 1 a diagnosed mistake, 2 a wrong command line\n", to);
}

/* Makefiles of C programs say the first ones, everybody the last. */
static const char *const aliases[][2] = {
    {"-O", "-O2"}, {"-O3", "-O2"}, {"-h", "--help"}, {"-V", "--version"}};

const char *const *cli_alias_at(int i) {
    return i < (int)COUNT(aliases) ? aliases[i] : NULL;
}

/* ---- parsing ------------------------------------------------------------------------- */
/* Length of the option's name in arg, or 0 when arg is another option. */
static size_t matches(const CliOption *p, const char *arg) {
    size_t n = strlen(p->name);
    if (strncmp(arg, p->name, n) != 0) return 0;
    if (arg[n] == 0) return n;
    if (!p->value) return 0;
    return p->name[1] != '-' || arg[n] == '=' ? n : 0; /* -ofile, -Dx=1, --emit=ir */
}

/* The option that an argument is, also by another name; *n: the length of its name. NULL: there
 * is none. */
static const CliOption *find_option(const char *arg, size_t *n) {
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (strcmp(arg, aliases[i][0]) == 0) {
            const CliOption *o = find_option(aliases[i][1], n);
            *n = strlen(arg);
            return o;
        }
    for (size_t i = 0; i < COUNT(options); i++)
        if ((*n = matches(&options[i], arg)) != 0) return &options[i];
    return NULL;
}

/* The option that an unknown word begins with, or that begins with it: --reports, --emits=ir.
 * NULL: none. */
static const char *option_like(const char *arg) {
    size_t n = strcspn(arg, "=");
    for (size_t i = 0; i < COUNT(options) && n > 4; i++) {
        size_t m = strlen(options[i].name);
        if (m > 4 && strncmp(options[i].name, arg, n < m ? n : m) == 0) return options[i].name;
    }
    return NULL;
}

/* The message about an option that does not exist, with one like it. */
static const char *unknown(Arena *a, const char *arg) {
    const char *like = option_like(arg);
    return like ? arena_printf(a, "there is no option '%s'; did you mean '%s'?", arg, like)
                : arena_printf(a, "there is no option '%s'", arg);
}

/* The message about a value that an option does not take. */
static const char *refused(Arena *a, const CliOption *p, const char *value) {
    if (p->set == set_print_before || p->set == set_print_after)
        return arena_printf(a, "there is no pass '%s'", value);
    if (p->set == set_print_filter)
        return arena_printf(a, "--print-filter=%s: %s", value, dump_bad_filter(a, value));
    if (p->set == set_disable)
        return arena_printf(a, "a program cannot do without a pass of '%s', or there is none",
                            value);
    return arena_printf(a, "%s is %s\ngnnc: '%s' is not a value of that option", p->name, p->help,
                        value ? value : "");
}

/* The value may be left out; if it is not, it stands behind a '='. */
static bool may_lack(const CliOption *p) {
    return p->set == set_print_changed;
}

static bool is_action(const CliOption *p) {
    return p->set == set_help || p->set == set_version || p->set == set_bisect;
}

/* Sets the option `name` to value (NULL: it has none), for callers without a command line. NULL,
 * or why not: nothing is changed then. */
const char *cli_set(Arena *a, CliOptions *o, const char *name, const char *value) {
    size_t n;
    if (cli_is_threshold(name)) return cli_set_threshold(a, o, name, value);
    const CliOption *p = find_option(name, &n);
    if (!p || name[n] || is_action(p)) return unknown(a, name);
    if (!p->value != !value && !may_lack(p))
        return arena_printf(a, p->value ? "'%s' needs a value" : "'%s' takes no value", name);
    const CliOptions before = *o;
    if (p->set(a, o, value)) return NULL;
    *o = before;
    return refused(a, p, value);
}

/* Sets *to to the i-th option that cli_set can set; false: there are fewer. */
bool cli_setting_at(int i, CliOptionText *to) {
    for (int k = 0; cli_option_at(k, to); k++)
        if (!is_action(&options[k]) && i-- == 0) return true;
    return false;
}

/* Sets the option argv[*i], whose value may be the next argument: then *i moves on. NULL, or why
 * not. */
static const char *take_option(Arena *a, CliOptions *o, int argc, char **argv, int *i) {
    const char *arg = argv[*i];
    size_t n = strcspn(arg, "=");
    if (cli_is_threshold(arg))
        return cli_set_threshold(a, o, arg,
                                 arg[n]          ? arg + n + 1
                                 : *i + 1 < argc ? argv[++*i]
                                                 : NULL);
    const CliOption *p = find_option(arg, &n);
    if (!p) return unknown(a, arg);
    const char *value = NULL;
    if (p->value && (arg[n] || !may_lack(p))) {
        value = arg[n] == '=' ? arg + n + 1 : arg[n] ? arg + n : *i + 1 < argc ? argv[++*i] : NULL;
        if (!value) return arena_printf(a, "'%s' needs a value", arg);
    }
    return p->set(a, o, value) ? NULL : refused(a, p, value);
}

/* Sets the action if the first argument is a command, and returns the number of the first
 * argument behind it. */
static int first_argument(CliOptions *o, int argc, char **argv) {
    static const struct {
        const char *name;
        Action action;
    } verbs[] = {{"check", ACT_CHECK},     {"opt", ACT_OPT}, {"run", ACT_RUN},
                 {"compare", ACT_COMPARE}, {"fmt", ACT_FMT}, {"lsp", ACT_LSP},
                 {"help", ACT_HELP}};
    for (size_t i = 0; argc > 1 && i < COUNT(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0) {
            o->action = verbs[i].action;
            return 2;
        }
    return 1;
}

CliOptions cli_defaults(void) {
    return (CliOptions){.target = "auto", .opt_level = 2, .steps = 1, .tolerance = 1e-5};
}

/* Sets options from words that are separated by spaces. NULL, or why one is not set. */
const char *cli_add(Arena *a, CliOptions *o, const char *words) {
    char *text = arena_strndup(a, words, strlen(words)), *rest = NULL;
    VEC(char *) argv = {0};
    for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        vec_push(a, &argv, w);
    const char *why = NULL;
    for (int i = 0; i < argv.n && !why; i++) {
        bool option = argv.v[i][0] == '-' && argv.v[i][1];
        why = option ? take_option(a, o, argv.n, argv.v, &i)
                     : arena_printf(a, "'%s' is no option", argv.v[i]);
    }
    return why;
}

/* Reads the command line into *o. False after a message. */
bool cli_parse(Arena *a, CliOptions *o, int argc, char **argv, FILE *err) {
    *o = cli_defaults();
    int i = first_argument(o, argc, argv);
    bool only_files = false;
    const char *why = NULL;
    for (; i < argc && !why; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (only_files || argv[i][0] != '-' || !argv[i][1])
            vec_push(a, &o->files, (const char *)argv[i]);
        else
            why = take_option(a, o, argc, argv, &i);
    }
    if (!why) why = cli_check_options(a, o);
    if (why) fprintf(err, "gnnc: %s; see gnnc --help\n", why);
    return !why;
}

bool cli_makes_program(const CliOptions *o) {
    return o->emit == OUT_EXE || o->emit == OUT_LIB || o->emit == OUT_PYTHON ||
           o->emit == OUT_ROWS_OBJ;
}
