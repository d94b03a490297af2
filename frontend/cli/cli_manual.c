/* gnnc help man: the manual page gnnc(1), in man(7)'s macros, of the tables that --help prints. */
#include "codegen/plan_passes/plan_pass.h"
#include "frontend/cli/cli.h"

#include <string.h>

#include "frontend/import/import_main.h"
#include "passes/threshold.h"

/* Writes text so that roff prints it as it is: hyphens are minus signs, and a line begins no
 * request. */
static void put(FILE *to, const char *s) {
    if (*s == '.' || *s == '\'') fputs("\\&", to);
    for (; *s; s++) {
        if (*s == '\\')
            fputs("\\e", to);
        else if (*s == '-')
            fputs("\\-", to);
        else
            fputc(*s, to);
    }
}

static void section(FILE *to, const char *name) {
    fprintf(to, ".SH %s\n", name);
}

/* Writes an option as an entry of the manual page. */
static void put_option(FILE *to, const char *name, const char *value, const char *help) {
    fputs(value ? ".TP\n.BI \"" : ".TP\n.B \"", to);
    put(to, name);
    if (value) {
        fputs(name[1] == '-' ? "=\" \"" : " \" \"", to);
        put(to, value);
    }
    fputs("\"\n", to);
    put(to, help);
    fputs("\n", to);
}

/* Writes the synopsis and the commands. */
static void put_commands(FILE *to) {
    section(to, "SYNOPSIS");
    for (int i = 0; cli_command_at(i); i++) {
        fputs(i ? ".br\n.B gnnc\n" : ".B gnnc\n", to);
        put(to, cli_command_at(i)->how);
        fputs("\n", to);
    }
    section(to, "COMMANDS");
    for (int i = 0; cli_command_at(i); i++) {
        fputs(".TP\n.B ", to);
        put(to, cli_command_at(i)->name ? cli_command_at(i)->name : "MODEL.gnn");
        fputs("\n", to);
        put(to, cli_command_at(i)->what);
        fputs("\n", to);
    }
}

/* Writes all options, their other names and those of `gnnc import`. */
static void put_options(FILE *to) {
    CliOptionText o;
    section(to, "OPTIONS");
    for (int i = 0; cli_option_at(i, &o); i++) put_option(to, o.name, o.value, o.help);
    fputs(".PP\nOther names:\n", to);
    for (int i = 0; cli_alias_at(i); i++) {
        fputs(".br\n.B ", to);
        put(to, cli_alias_at(i)[0]);
        fputs("\nfor\n.B ", to);
        put(to, cli_alias_at(i)[1]);
        fputs("\n", to);
    }
    section(to, "OPTIONS OF GNNC IMPORT");
    for (int i = 0; gnnc_import_option(i); i++) {
        const ImportOption *p = gnnc_import_option(i);
        put_option(to, p->name, p->value, p->help);
    }
}

/* Writes the list of passes. */
static void put_passes(FILE *to) {
    section(to, "PASSES");
    for (int i = 0; plan_all_passes_at(i); i++) {
        fputs(".TP\n.B ", to);
        put(to, plan_all_passes_at(i)->name);
        fputs("\n", to);
        put(to, plan_all_passes_at(i)->summary);
        fputs("\n", to);
    }
}

/* Writes the numbers by which passes decide. */
static void put_thresholds(FILE *to) {
    section(to, "THRESHOLDS OF PASSES");
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) {
        const PassThresholdText *x = pass_threshold_text((PassThreshold)t);
        fputs(".TP\n.BI \"", to);
        put(to, "--");
        put(to, x->pass);
        fputs(".", to);
        put(to, x->name);
        fputs("=\" \"N\"\n", to);
        put(to, x->what);
        fprintf(to, ": %d (%d to %d)\n", x->usual, x->least, x->most);
    }
}

/* Writes the sections on exit status and environment. */
static void put_rest(FILE *to) {
    static const char *const variables[][2] = {
        {"CC", "the C compiler that compiles and links programs (default: cc)"},
        {"CFLAGS", "more options for it, behind gnnc's own"},
        {"CUDA_HOME", "where the CUDA Toolkit is, if its nvcc is not in PATH"},
    };
    section(to, "EXIT STATUS");
    fputs("0: done.  1: a diagnosed mistake.  2: a wrong command line.\n", to);
    section(to, "ENVIRONMENT");
    for (size_t i = 0; i < COUNT(variables); i++)
        fprintf(to, ".TP\n.B %s\n%s\n", variables[i][0], variables[i][1]);
    section(to, "SEE ALSO");
    fputs("The trainer that gnnc writes describes itself:\n.B ./TRAINER \\-\\-help\n", to);
}

/* Writes the manual page, in troff. */
static void put_page(FILE *to) {
    fputs(".TH GNNC 1 \"\" \"gnnc " GNNC_VERSION_TEXT "\" \"User Commands\"\n", to);
    section(to, "NAME");
    fputs("gnnc \\- compile graph neural networks to native programs\n", to);
    put_commands(to);
    section(to, "DESCRIPTION");
    fputs(
        "A model file says what the data are, what is computed and how it is trained.\n.B gnnc\n"
        "turns it into a program that trains and runs the model, or into a library for C and C++,\n"
        "for the CPU and, where the CUDA Toolkit is, for NVIDIA GPUs.\n",
        to);
    put_options(to);
    put_passes(to);
    put_thresholds(to);
    put_rest(to);
}

/* Writes the help in a form: a manual page, thresholds, words, or a shell's completion. */
void cli_manual(FILE *to, const char *form) {
    if (strcmp(form, cli_manual_form(0)) == 0)
        put_page(to);
    else if (strcmp(form, "thresholds") == 0)
        cli_thresholds(to);
    else if (strcmp(form, "words") == 0)
        cli_words(to);
    else
        cli_complete(to, form);
}
