/* gnnc help bash, zsh, fish: what a shell completes behind `gnnc`, of the tables that --help
 * prints. After `import` that command's options; a value is one of its words, a directory or a
 * file, as the table calls it. */
#include "frontend/cli/cli.h"

#include <string.h>

#include "frontend/import/import_main.h"

typedef CliOptionText Text;

/* ---- what the tables say ------------------------------------------------------------- */
/* Sets *to to the i-th option of gnnc, or of gnnc import; other names of options stand behind.
 * False: there are fewer. */
static bool option_at(bool import, int i, Text *to) {
    const ImportOption *o = import ? gnnc_import_option(i) : NULL;
    if (o) *to = (Text){o->name, o->value, o->help, NULL};
    if (import) return o != NULL;
    int n = 0;
    if (cli_option_at(i, to)) return true;
    while (cli_option_at(n, to)) n++;
    const char *const *alias = cli_alias_at(i - n);
    for (int k = 0; alias && cli_option_at(k, to); k++)
        if (strcmp(to->name, alias[1]) == 0) return to->name = alias[0], true;
    return false;
}

static bool is_long(const Text *o) {
    return o->name[1] == '-';
}

static bool takes_directory(const Text *o) {
    return o->value && (strcmp(o->value, "DIR") == 0 || strcmp(o->value, "DATA") == 0);
}

static bool takes_file(const Text *o) {
    return o->value && strcmp(o->value, "FILE") == 0;
}

static void put_words(FILE *to, CliWord *word) {
    for (int i = 0; word(i); i++) fprintf(to, "%s%s", i ? " " : "", word(i));
}

static void put_commands(FILE *to) {
    for (int i = 0, n = 0; cli_command_at(i); i++)
        if (cli_command_at(i)->name) fprintf(to, "%s%s", n++ ? " " : "", cli_command_at(i)->name);
}

/* ---- bash ------------------------------------------------------------------------------- */
/* Writes the names of all options; with '=' if a value follows in the same word. */
static void bash_names(FILE *to, bool import) {
    Text o;
    for (int i = 0; option_at(import, i, &o); i++)
        fprintf(to, "%s%s%s", i ? " " : "", o.name, o.value && is_long(&o) ? "=" : "");
}

/* Writes the cases for values of options: words to choose from, or that files or directories are
 * completed. */
static void bash_values(FILE *to, bool import) {
    Text o;
    for (int i = 0; option_at(import, i, &o); i++) {
        if (!o.value) continue;
        fprintf(to, "    %s:%s) ", import ? "import" : "gnnc", o.name);
        if (o.word) {
            fputs("words='", to);
            put_words(to, o.word);
            fputs("' ;;\n", to);
        } else
            fprintf(to, "kind=%s ;;\n",
                    takes_directory(&o) ? "directory"
                    : takes_file(&o)    ? "file"
                                        : "text");
    }
}

/* Writes the completion for bash. */
static void bash(FILE *to) {
    fputs("# bash completion of gnnc: `gnnc help bash` wrote it\n"
          "_gnnc() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} option= words= kind= of=gnnc\n"
          "    [ \"${COMP_WORDS[1]}\" = import ] && [ \"$COMP_CWORD\" -gt 1 ] && of=import\n"
          "    if [ \"$cur\" = = ]; then\n"
          "        cur= option=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    elif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = = ]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    else\n"
          "        option=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    case $of:$option in\n",
          to);
    bash_values(to, false);
    bash_values(to, true);
    fputs("    gnnc:help) [ \"$COMP_CWORD\" = 2 ] && words='", to);
    put_words(to, cli_manual_form);
    fputs("' ;;\n    esac\n"
          "    case $kind in\n"
          "    directory) compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
          "        return ;;\n"
          "    file) compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "        return ;;\n"
          "    text) return ;;\n"
          "    esac\n"
          "    if [ -z \"$words\" ]; then\n"
          "        case $of:$cur in\n"
          "        gnnc:-*) words='",
          to);
    bash_names(to, false);
    fputs("' ;;\n        import:-*) words='", to);
    bash_names(to, true);
    fputs("' ;;\n"
          "        *) compopt -o filenames 2>/dev/null\n"
          "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "            [ \"$COMP_CWORD\" = 1 ] && COMPREPLY+=($(compgen -W '",
          to);
    put_commands(to);
    fputs(
        "' -- \"$cur\"))\n"
        "            return ;;\n"
        "        esac\n"
        "    fi\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
        "    [[ ${#COMPREPLY[@]} = 1 && ${COMPREPLY[0]} = *= ]] && compopt -o nospace 2>/dev/null\n"
        "}\n"
        "complete -F _gnnc gnnc\n",
        to);
}

/* ---- zsh --------------------------------------------------------------------------------- */
/* Writes text between single quotes for zsh, where brackets and colons end a part. */
static void zsh_text(FILE *to, const char *s) {
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", to);
        else
            fprintf(to, "%s%c", strchr("[]:\\", *s) ? "\\" : "", *s);
    }
}

/* Writes the options as zsh's _arguments has them. */
static void zsh_options(FILE *to, bool import) {
    Text o;
    for (int i = 0; option_at(import, i, &o); i++) {
        fprintf(to, "        '*%s%s[", o.name, !o.value ? "" : is_long(&o) ? "=" : "+");
        zsh_text(to, o.help);
        fputs("]", to);
        if (o.value) {
            fputs(":", to);
            zsh_text(to, o.value);
            fputs(":", to);
        }
        if (o.value && o.word) {
            fputs("(", to);
            put_words(to, o.word);
            fputs(")", to);
        } else if (takes_directory(&o))
            fputs("_files -/", to);
        else if (takes_file(&o))
            fputs("_files", to);
        fputs("' \\\n", to);
    }
}

/* Writes the completion for zsh. */
static void zsh(FILE *to) {
    fputs("#compdef gnnc\n"
          "# zsh completion of gnnc: `gnnc help zsh` wrote it\n"
          "_gnnc() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          to);
    for (int i = 0; cli_command_at(i); i++) {
        if (!cli_command_at(i)->name) continue;
        fprintf(to, "        '%s:", cli_command_at(i)->name);
        zsh_text(to, cli_command_at(i)->what);
        fputs("'\n", to);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
          "        _describe command commands\n"
          "        _files -g '*.(gnn|gir|plan|loops)'\n"
          "        return\n"
          "    fi\n"
          "    case ${words[2]} in\n"
          "    help) _values form ",
          to);
    put_words(to, cli_manual_form);
    fputs(" ;;\n    import) _arguments \\\n", to);
    zsh_options(to, true);
    fputs("        '*:input:_files' ;;\n    *) _arguments \\\n", to);
    zsh_options(to, false);
    fputs("        '*:file:_files -g \"*.(gnn|gir|plan|loops)\"' ;;\n"
          "    esac\n"
          "}\n"
          "_gnnc \"$@\"\n",
          to);
}

/* ---- fish -------------------------------------------------------------------------------- */
/* Writes s in quotes as fish reads them. */
static void fish_text(FILE *to, const char *s) {
    fputs("'", to);
    for (; *s; s++) fprintf(to, "%s%c", strchr("'\\", *s) ? "\\" : "", *s);
    fputs("'", to);
}

/* Writes a line for each option as fish's complete has it. */
static void fish_options(FILE *to, bool import) {
    Text o;
    for (int i = 0; option_at(import, i, &o); i++) {
        const char *form = is_long(&o) ? "-l" : o.name[2] ? "-o" : "-s";
        fprintf(to, "complete -c gnnc -n '%s__fish_seen_subcommand_from import' %s %s",
                import ? "" : "not ", form, o.name + (is_long(&o) ? 2 : 1));
        if (o.value && (o.word || takes_directory(&o))) {
            fputs(" -x -a '", to);
            o.word ? put_words(to, o.word) : (void)fputs("(__fish_complete_directories)", to);
            fputs("'", to);
        } else if (o.value)
            fputs(takes_file(&o) ? " -r -F" : " -x", to);
        fputs(" -d ", to);
        fish_text(to, o.help);
        fputs("\n", to);
    }
}

/* Writes the completion for fish. */
static void fish(FILE *to) {
    fputs("# fish completion of gnnc: `gnnc help fish` wrote it\n", to);
    for (int i = 0; cli_command_at(i); i++) {
        if (!cli_command_at(i)->name) continue;
        fprintf(to, "complete -c gnnc -n '__fish_is_first_arg' -a %s -d ", cli_command_at(i)->name);
        fish_text(to, cli_command_at(i)->what);
        fputs("\n", to);
    }
    fputs("complete -c gnnc -n '__fish_seen_subcommand_from help' -f -a '", to);
    put_words(to, cli_manual_form);
    fputs("'\n", to);
    fish_options(to, false);
    fish_options(to, true);
}

/* Writes the completion for a shell, by its name. */
void cli_complete(FILE *to, const char *shell) {
    if (strcmp(shell, "bash") == 0) bash(to);
    if (strcmp(shell, "zsh") == 0) zsh(to);
    if (strcmp(shell, "fish") == 0) fish(to);
}
