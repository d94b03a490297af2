/* -MD: a rule of make with what a result was made from, as C compilers write it. */
#include "frontend/cli/cli.h"

#include <string.h>

/* Writes the name of a file as make reads it. */
static void put_name(StrBuf *b, const char *s) {
    for (; *s; s++) {
        if (*s == '$') sb_puts(b, "$");
        if (*s == ' ' || *s == '#' || *s == '\t' || *s == ':') sb_puts(b, "\\");
        sb_put(b, s, 1);
    }
}

/* Writes the name of a file that the result was made from, unless it was written before. */
static void put_source(StrBuf *b, StrMap *seen, const char *path) {
    if (!*path || strmap_has(seen, path)) return;
    strmap_put(b->a, seen, path, NULL);
    sb_puts(b, " \\\n ");
    put_name(b, path);
}

/* The name of the file with dependences beside the result: build/m.o -> build/m.d. */
static const char *beside(Ctx *c, const char *out) {
    const char *base = strrchr(out, '/');
    base = base ? base + 1 : out;
    const char *dot = strrchr(base, '.');
    size_t n = dot && dot != base ? (size_t)(dot - out) : strlen(out);
    return arena_printf(c->a, "%.*s.d", (int)n, out);
}

/* Writes the names of the results; of a library, those of its files that programs are built
 * with. */
static void put_results(Ctx *c, StrBuf *b, const CliOptions *o, const char *out) {
    static const char *const of_library[] = {"lib%s.so", "lib%s.a", "%s.h"};
    CliLibrary l = cli_library(c->a, o);
    if (o->emit == OUT_PYTHON) out = cli_wheel_path(c, l);
    if (o->emit != OUT_LIB) put_name(b, out);
    for (size_t i = 0; o->emit == OUT_LIB && i < COUNT(of_library); i++) {
        const char *at = strstr(of_library[i], "%s");
        sb_puts(b, i ? " " : "");
        put_name(b, arena_printf(c->a, "%s%.*s%s%s", l.dir, (int)(at - of_library[i]),
                                 of_library[i], l.base, at + 2));
    }
}

/* Writes the file of -MD, which tells make what the result was made from. */
bool cli_depfile(Ctx *c, const Module *m, const CliOptions *o, const char *out) {
    StrBuf b = sb_new(c->a);
    StrMap seen = {0};
    CliLibrary l = cli_library(c->a, o);
    put_results(c, &b, o, out);
    sb_puts(&b, ":");
    for (int i = 0; i < c->sources.n; i++) put_source(&b, &seen, c->sources.v[i].path);
    for (int i = 0; i < m->externs.n; i++) put_source(&b, &seen, m->externs.v[i]->file);
    if (o->data) put_source(&b, &seen, arena_printf(c->a, "%s/schema.json", o->data));
    sb_puts(&b, "\n");
    bool several = o->emit == OUT_LIB || o->emit == OUT_PYTHON;
    const char *to = o->depfile ? o->depfile
                     : several  ? arena_printf(c->a, "%s%s.d", l.dir, l.base)
                                : beside(c, out);
    return cli_write(c, to, b.s, b.n);
}
