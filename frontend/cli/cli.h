/* The command line of gnnc: its options, and what main.c and gnncc.c need from the files beside
 * them.  cli_options.c reads arguments; cli_compile.c does what they say; cli_files.c finds the
 * runtime and writes files whole or not at all; cli_build.c turns a plan into a program. */
#ifndef FRONTEND_CLI_H
#define FRONTEND_CLI_H

#include "codegen/report/report.h"
#include "codegen/target.h"
#include "frontend/wrap.h"
#include "frontend/fe.h"
#include "passes/pass.h"

#define GNNC_VERSION_TEXT "0.1.0"

enum { EXIT_OK = 0, EXIT_DIAGNOSED = 1, EXIT_USAGE = 2 };

typedef enum {
    ACT_COMPILE,
    ACT_CHECK,
    ACT_OPT,
    ACT_RUN,
    ACT_COMPARE,
    ACT_FMT,
    ACT_LSP,
    ACT_HELP,
    ACT_VERSION
} Action;

/* What is interpreted: the graph IR; the plan; its kernels as a target emits them. */
typedef enum { LEVEL_IR, LEVEL_PLAN, LEVEL_LOOPS } CliLevel;

typedef enum {
    OUT_EXE,
    OUT_LIB,
    OUT_PYTHON,
    OUT_AST,
    OUT_IR,
    OUT_PLAN,
    OUT_LOOPS,
    OUT_LLVM,
    OUT_ASM,
    OUT_OBJ,
    OUT_C,
    OUT_CUDA,
    OUT_HEADER,   /* of OUT_LIB, alone */
    OUT_HTML,     /* a page of all reports and stages */
    OUT_NONE,     /* reports alone */
    OUT_SO,       /* a library's shared object alone: for gnnc itself */
    OUT_ROWS_OBJ, /* of OUT_PYTHON: the program that predicts rows, as one object */
} OutKind;

typedef struct {
    Action action;
    OutKind emit;
    VEC(const char *) files;
    VEC(const char *) defines;  /* "hidden=64" */
    VEC(const char *) includes; /* directories */
    const char *out;            /* -o, or NULL */
    const char
        *name; /* --name; of OUT_LIB, OUT_PYTHON, OUT_HEADER never NULL: what C calls the model */
    const char *depfile;     /* -MF, or NULL */
    bool depends;            /* -MD or -MF */
    bool mpi;                /* OUT_EXE: trains in several processes, too */
    bool parts;              /* processes may share the rows of data in parts */
    double sampled_boundary; /* 0, or with what probability training reads a row of another part */
    bool shared_runtime;     /* OUT_LIB: linked with libgnnrt.so, not with libgnnrt.a */
    const char *passes;      /* --passes, or NULL */
    const char *model;       /* --model, or NULL */
    const char *target, *march;
    const char *cuda_arch; /* "sm_80,sm_90", or NULL */
    const char *data;      /* --specialize, or NULL */
    const char *measured;  /* --data, or NULL: as --specialize, or what is interpreted runs on */
    SpmmChoice spmm;
    int opt_level;
    const char *embed, *settable;
    /* ACT_RUN, ACT_COMPARE: */
    CliLevel level;
    int steps;
    const char *values;  /* to be shown, too, "z,h"; or NULL */
    const char *against; /* options of the other side, or NULL */
    double tolerance;
    bool fmt_check, fmt_diff; /* ACT_FMT: tell what would change */
    const char *bisect;       /* the command that tells good programs, or NULL */
    bool grads, infer, draw, explain, alone, keep, verbose, report_json, tf32, precision_auto;
    unsigned reports;      /* REPORT_* */
    const int *thresholds; /* as Ctx has them: NULL, all are as usual */
    unsigned variant;      /* that reports and listings are of */
    PassOptions pass;
    /* OUT_PYTHON: what OUT_ROWS_OBJ made; NULL, and why there is none. */
    const char *rows, *no_rows;
} CliOptions;
/* Is the result linked, with kernels for every target and all variants? */
bool cli_makes_program(const CliOptions *o);

CliOptions cli_defaults(void);
/* Sets one option by its name, which it must be whole; value NULL: none is given.  Both are kept.
 * NULL: done; else why not. */
const char *cli_set(Arena *a, CliOptions *o, const char *name, const char *value);
/* Once all options and files are there: NULL, or why they do not go together. */
const char *cli_check_options(Arena *a, CliOptions *o);
/* Fills o; on a mistake prints one line to err and returns false. */
bool cli_parse(Arena *a, CliOptions *o, int argc, char **argv, FILE *err);
/* More options, in one text; NULL: done, else why not. */
const char *cli_add(Arena *a, CliOptions *o, const char *words);
void cli_help(FILE *to);

/* What the command line is, for those who describe it: each command, option and other name of an
 * option by its number from 0; behind the last NULL, or false. */
typedef const char *CliWord(int i);
typedef struct {
    const char *name, *how, *what; /* "opt", "opt FILE.gir ..", what it is for; name NULL: none */
} CliCommand;
typedef struct {
    const char *name, *value, *help; /* "--emit"; "KIND", NULL = a flag */
    CliWord *word;                   /* the values there are; NULL = any */
} CliOptionText;
const CliCommand *cli_command_at(int i);
bool cli_option_at(int i, CliOptionText *to);
bool cli_setting_at(int i, CliOptionText *to); /* but for those that ask for help */
const char *const *cli_alias_at(int i);        /* {"-h", "--help"} */

/* --PASS.NAME=N is of another table, passes/thresholds.def.  NULL: set; else why not.
 * (cli_threshold.c) */
bool cli_is_threshold(const char *arg);
const char *cli_set_threshold(Arena *a, CliOptions *o, const char *arg, const char *value);
void cli_thresholds(FILE *to);
void cli_words(FILE *to); /* (cli_words.c) */

/* The same as a manual page, or as a shell's completions: cli_manual.c, cli_complete.c. */
const char *cli_manual_form(int i); /* "man", "bash", "zsh", "fish", "thresholds" */
void cli_manual(FILE *to, const char *form);
void cli_complete(FILE *to, const char *shell);

/* What the options say, done.  False after a diagnostic; help and version do nothing. (cli_act.c)
 */
bool cli_act(Ctx *c, const CliOptions *o);
/* Actions of their own: false after a diagnostic.  (cli_compile.c) */
bool cli_compile(Ctx *c, const CliOptions *o);
bool cli_check(Ctx *c, const CliOptions *o);
bool cli_optimise(Ctx *c, const CliOptions *o); /* runs passes on text */

/* What the front end is asked for: imports are looked for in -I and in the library. */
FeOptions cli_front_end_options(Ctx *c, const CliOptions *o);

/* What the options make of a file for an interpreter, up to their level or to where they stop.  A
 * text is as it stands: of the passes those run that --passes names. */
typedef struct {
    Module *m;
    Plan *plan;        /* NULL: the graph IR */
    const char *after; /* the last pass, "fuse#1"; NULL = none ran */
    int n;             /* passes that ran */
} CliProduct;
bool cli_produce(Ctx *c, const CliOptions *o, CliProduct *to); /* false after a diagnostic */
bool cli_interpret(Ctx *c, const CliOptions *o);               /* ACT_RUN (cli_run.c) */
bool cli_compare(Ctx *c, const CliOptions *o);                 /* ACT_COMPARE; false: they differ */

/* Of a library: DIR/BASE, where DIR is "" or ends with '/', as -o or the model's file says. */
typedef struct {
    const char *dir, *base;
} CliLibrary;
CliLibrary cli_library(Arena *a, const CliOptions *o);
/* May a model, or a library's files, be called that?  NULL: yes; else why not. */
const char *cli_bad_name(Arena *a, const char *name);
const char *cli_bad_base(Arena *a, const char *base);
const char *cli_bad_package(Arena *a, const char *base); /* of Python */

/* Where the runtime is: beside gnnc, or libgnncc.so, in a build tree, or as `make install` put it.
 */
typedef struct {
    const char *lib;                    /* .../libgnnrt.a */
    const char *infer_lib;              /* .../libgnnrt_infer.a: the part that predicts rows */
    const char *so;                     /* .../libgnnrt.so; it may be absent */
    const char *api;                    /* the directory of gnnc.h */
    const char *link_flags;             /* link.flags: what libgnnrt.a needs, an argument a line */
    const char *infer_flags;            /* infer.flags: .. and libgnnrt_infer.a */
    const char *include[2];             /* for the generated driver; [1] may be NULL */
    const char *models;                 /* the layer library's parent, or NULL */
    const char *python;                 /* the directory of what all Python packages share */
    const char *mpi_object, *mpi_flags; /* of --mpi; the file may be absent */
    const char *cuda_lib, *cuda_flags; /* the CUDA half and what it needs; the file may be absent */
} CliHome;
bool cli_find_home(Ctx *c, CliHome *h); /* false after a diagnostic */
const char *cli_models_dir(Ctx *c);     /* NULL when there is none */

/* --time-passes: milliseconds since some start, and a line for a stage that began `since`. */
double cli_now_ms(void);
void cli_stage_time(Ctx *c, const CliOptions *o, const char *what, double since);

/* Other programs (cli_tool.c). */
typedef VEC(char *) CliArgs;
void cli_arg(Ctx *c, CliArgs *args, const char *s);
void cli_args(Ctx *c, CliArgs *args, const CliArgs *more);
void cli_split_args(Ctx *c, CliArgs *args,
                    const char *s);                       /* "-fopenmp -lm" as separate arguments */
void cli_line_args(Ctx *c, CliArgs *args, const char *s); /* one on each line */
/* For the linker as it is: -Wl, would split it at commas. */
void cli_linker_arg(Ctx *c, CliArgs *args, const char *s);
/* The C compiler, CC of the environment or cc, and words for it.  To compile, CFLAGS as well, whose
 * -flto would make objects that are none yet. */
void cli_cc(Ctx *c, CliArgs *args, const char *words);
void cli_cc_compile(Ctx *c, CliArgs *args, const char *words);
bool cli_run_tool(Ctx *c, CliArgs *args, bool verbose); /* false after a diagnostic */
/* The same of one that may end as it likes: *code is the shell's number for how it did. */
bool cli_run_command(Ctx *c, CliArgs *args, int *code);

/* What to compile for: as --target says; "auto": the cpu, and cuda where programs can be
 * made for it, which one line tells of when they cannot. */
typedef struct {
    const Target *host;   /* whose kernels the host runs; NULL = none */
    const Target *device; /* or NULL */
} CliTargets;
CliTargets cli_targets(Ctx *c, const CliOptions *o);

/* The user's C functions that the plan calls: compiled in dir where they are sources, and what
 * is to be linked, shared libraries apart (cli_extern.c). */
bool cli_extern_objects(Ctx *c, const Plan *p, const CliHome *h, const CliOptions *o,
                        const char *dir, CliArgs *objects, CliArgs *shared);
/* For the linker: a shared library, found again where it is now. */
bool cli_link_shared(Ctx *c, CliArgs *args, const char *file);

/* The CUDA Toolkit (cli_cuda.c). */
const char *cli_find_nvcc(Ctx *c); /* NULL: there is none */
bool cli_cuda_object(Ctx *c, const CliHome *h, const CliOptions *o, const char *source,
                     const char *object);
/* kernels.cu for one GPU, as PTX (text of c's arena, *n bytes) and what ptxas says of each
 * function. false: *why there is none; no diagnostics. */
bool cli_cuda_assemble(Ctx *c, const CliHome *h, const CliOptions *o, const char *source,
                       const char *dir, const char **ptx, size_t *n, ReportBuilts *built,
                       const char **why);
/* The same of a plan's kernels, for reports: into *o. False after a diagnostic. */
bool cli_cuda_usage(Ctx *c, const Plan *p, const CliOptions *cli, ReportOptions *o,
                    ReportBuilts *built);
/* Its half of the runtime, what that needs of libgnnrt.a unless it finds it in libgnnrt.so, and the
 * toolkit's libraries. */
bool cli_cuda_libraries(Ctx *c, const CliHome *h, bool shared_runtime, CliArgs *args);

/* A whole file, with a 0 behind it; NULL: errno says why. */
struct stat;
char *cli_read(Ctx *c, const char *path, struct stat *s);
/* Writes n bytes, going on after signals. False: errno says why. */
bool cli_write_all(int fd, const void *from, size_t n);
/* A private directory, removed with all in it when the Ctx is freed. NULL after a diagnostic. */
const char *cli_temp_dir(Ctx *c, const CliOptions *o);
/* Writes all of text to path by way of a temporary file beside it; NULL or "-" = stdout. */
bool cli_write(Ctx *c, const char *path, const char *text, size_t n);
/* The same in place of a file that is there, whose mode stays. */
bool cli_replace(Ctx *c, const char *path, const char *text, size_t n);
/* Moves a finished file to its place, across file systems too. */
bool cli_install(Ctx *c, const char *from, const char *to);
/* The same of several, all or none; one that is a link is said by what it leads to. */
typedef struct {
    const char *from, *link; /* one of them */
    const char *to;
} CliFile;
bool cli_install_all(Ctx *c, const CliFile *file, int n);
const char *cli_stem(Arena *a, const char *path); /* "models/gcn.gnn" -> "gcn" */

/* Sizes of the data directory, by Sym.id (-1: known only when the program runs); widths and
 * numbers of categories become constants of m.  NULL after a diagnostic. (specialize.c) */
const int64_t *cli_specialize(Ctx *c, Module *m, const char *data);

/* The data directory, checked as far as m reads it, until the Ctx is freed.  NULL after a
 * diagnostic. (specialize.c) */
struct RtDataset *cli_data(Ctx *c, const Module *m, const char *data);

/* Runs a program that was made to measure ranges (passes/ranges.c) on data, a few steps and each
 * other phase once; fills r. */
bool cli_measure(Ctx *c, Plan *p, const CliOptions *o, PassRanges *r);

/* ACT_FMT (cli_fmt.c); false: a mistake, or something differs from what --check asks for. */
bool cli_fmt(Ctx *c, const CliOptions *o);
/* ACT_LSP (cli_lsp.c); false: it was not told to end. */
bool cli_lsp(Ctx *c, const CliOptions *o);

/* Of the relations that the data have; NULL after a diagnostic. */
const ReportDegrees *cli_degrees(Ctx *c, const Module *m, const char *path, int *n);

/* --emit=html (cli_page.c): p after its passes, not arranged.  ro is completed here. */
bool cli_page(Ctx *c, Plan *plan, const Target *t, const CliOptions *o, ReportOptions *ro,
              double since);

/* What a program is made of. */
typedef struct {
    const Plan *p; /* the first variant */
    const CliHome *home;
    const CliOptions *o;
    const char *dir;         /* private */
    CliArgs objects, shared; /* of the model; libraries of the user's functions */
} CliParts;
/* The shared object of a library, called soname (NULL: nothing), in path. (cli_library.c) */
bool cli_link_library(Ctx *c, const CliParts *l, const char *soname, const char *path);
/* The objects of the model as one, whose only global symbol is the model's. */
bool cli_one_object(Ctx *c, const CliParts *l, const char *object);
/* All files of --emit=lib, written to their places. */
bool cli_make_library(Ctx *c, const CliParts *l, CliLibrary names);
/* The same of --emit=python (cli_python.c), and where its wheel is. */
bool cli_make_package(Ctx *c, const CliParts *l, CliLibrary names);
const char *cli_wheel_path(Ctx *c, CliLibrary names);
/* What C calls the program of o->rows: "churn_rows". */
const char *cli_rows_name(Ctx *c, const CliOptions *o);

/* A wheel of these files, and of what pip reads (cli_wheel.c). */
typedef struct {
    const char *name, *text;
    size_t n;
    unsigned mode; /* 0644 */
} CliWheelFile;
typedef struct {
    const char *package, *distribution, *tag, *summary;
    const CliWheelFile *file;
    int n;
} CliWheel;
bool cli_wheel(Ctx *c, const CliWheel *w, const char *path);

/* Kernels, host driver, compile and link; writes the program or library to o->out. */
/* plan [n]: the variants of the program. */
bool cli_build(Ctx *c, Plan *const *plan, int n, const Target *host, const CliOptions *o,
               const char *stem);
/* Searches for the pass without which o->bisect is content, and says which it is.  False after a
 * diagnostic. (cli_bisect.c) */
bool cli_bisect(Ctx *c, const CliOptions *o);
/* Where the result goes: "-" = standard output.  Of OUT_LIB cli_library() tells. */
const char *cli_output(Ctx *c, const CliOptions *o, const char *stem);
/* What the result `out` was made from, as make reads it: to -MF's file, or beside it. */
bool cli_depfile(Ctx *c, const Module *m, const CliOptions *o, const char *out);
/* One file of the target's making (LLVM IR, assembly, object, C driver). */
TargetOptions cli_target_options(const CliOptions *o);
bool cli_emit(Ctx *c, const Plan *p, const Target *t, const CliOptions *o, const char *stem);

#endif
