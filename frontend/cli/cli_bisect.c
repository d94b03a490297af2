/* --bisect=COMMAND: which pass is wrong?
 *
 * Passes that a program can do without are numbered as they come, over all levels; with the first n
 * of them alone a program still computes what it should.  COMMAND, with the program's path behind
 * it, tells a good one (0) from a bad one, so the first n that is bad is found by halving.  A pass
 * that asks before each of its changes (pass_may_rewrite) is searched in the same way.  The idea is
 * LLVM's -opt-bisect-limit and GCC's debug counters, with git bisect run's use of a command. */
#include "frontend/cli/cli.h"
#include "passes/dump.h"

#include <string.h>

enum { SKIPPED = 125, NOT_RUN = 126, NOT_FOUND = 127 }; /* a shell's and git's numbers */

typedef struct {
    Ctx *c;
    const CliOptions *o;
    const char *product;
    bool failed; /* after a diagnostic */
} Search;

/* One program: its compiler, and what that told. */
typedef struct {
    Ctx ctx;
    CliOptions o;
    PassTold told;
    bool ok;
} Trial;

static void run_compile(Ctx *c, void *arg) {
    Trial *t = arg;
    t->ok = cli_compile(c, &t->o) && c->n_errors == 0;
}

/* Compiles with so many passes, and so many changes of the last one; -1: all. Nothing of it is
 * printed. False: there is no memory; else the caller frees t->ctx. */
static bool begin(Search *s, Trial *t, int passes, int rewrites) {
    *t = (Trial){.o = *s->o};
    t->o.bisect = NULL;
    t->o.out = s->product;
    t->o.reports = 0;
    t->o.verbose = false;
    t->o.depends = false;
    t->o.pass.leave_from = passes + 1;
    t->o.pass.rewrite_from = rewrites + 1;
    t->o.pass.told = &t->told;
    if (!ctx_init(&t->ctx, NULL)) return false;
    t->ctx.outside = s->c->outside;
    t->ctx.outside.log = NULL;
    ctx_run(&t->ctx, run_compile, t);
    return true;
}

/* Runs the user's command with the product's path as its last word. *good: it ended with 0.
 * False after a diagnostic: it could not tell. */
static bool ask(Search *s, bool *good) {
    CliArgs sh = {0};
    int code;
    cli_arg(s->c, &sh, "/bin/sh");
    cli_arg(s->c, &sh, "-c");
    cli_arg(s->c, &sh, arena_printf(s->c->a, "exec 1>&2\n%s \"$@\"", s->o->bisect));
    cli_arg(s->c, &sh, "gnnc");
    cli_arg(s->c, &sh, s->product);
    if (!cli_run_command(s->c, &sh, &code)) return false;
    *good = code == 0;
    if (code != SKIPPED && code != NOT_RUN && code != NOT_FOUND) return true;
    diag_add(s->c, DIAG_E0518, (Span){0}, "'%s' ended with %d: %s", s->o->bisect, code,
             code == SKIPPED ? "it could not tell" : "it could not be run");
    return false;
}

/* Whether the user's command is content with the program; one that cannot be compiled is bad.
 * what: what was tried, for the log. */
static bool is_good(Search *s, const Trial *t, const char *what) {
    bool good = false;
    s->failed |= t->ok && !ask(s, &good);
    if (!s->failed)
        ctx_log(s->c, "gnnc: %s: %s\n", what, good ? "good" : t->ok ? "bad" : "does not compile");
    return good;
}

/* Compiles with so many passes and changes of the last one (-1: all), and asks the command.
 * True: it is content. s->failed is set if it could not be asked. */
static bool try(Search *s, int passes, int rewrites, const char *what, PassTold *told) {
    Trial t;
    s->failed |= !begin(s, &t, passes, rewrites);
    if (s->failed) return false;
    bool good = is_good(s, &t, what);
    if (told) *told = (PassTold){.n_spare = t.told.n_spare, .n_rewrites = t.told.n_rewrites};
    ctx_free(&t.ctx);
    return good;
}

/* Searches between `good`, a number that is good, and `bad`, which is not, for the first bad
 * one: of passes, or (passes >= 0) of changes of that pass. */
static int halve(Search *s, int passes, int good, int bad) {
    while (bad - good > 1 && !s->failed) {
        int middle = good + (bad - good) / 2;
        bool in = passes >= 0; /* a pass */
        const char *what = in ? arena_printf(s->c->a, "pass %d with %d changes", passes, middle)
                              : arena_printf(s->c->a, "%d passes", middle);
        bool fine = in ? try(s, passes, middle, what, NULL) : try(s, middle, -1, what, NULL);
        if (fine)
            good = middle;
        else
            bad = middle;
    }
    return bad;
}

/* Whether the program is good when this pass alone is left out. */
static bool disabling_cures(Search *s, const char *pass) {
    CliOptions o = *s->o;
    Search other = *s;
    const char *before = o.pass.disable;
    o.pass.disable = before && *before ? arena_printf(s->c->a, "%s,%s", before, pass) : pass;
    other.o = &o;
    bool good = try(&other, -1, -1, arena_printf(s->c->a, "all but %s", pass), NULL);
    s->failed |= other.failed;
    return good;
}

/* Writes the names of the functions and kernels in which a difference has lines. */
static void put_places(StrBuf *b, const char *diff) {
    StrMap seen = {0};
    const char *in = NULL, *name;
    for (size_t n; *diff; diff += n + (diff[n] == '\n')) {
        n = strcspn(diff, "\n");
        const char *head = strncmp(diff, "@@", 2) == 0 ? diff + 2 : NULL;
        while (head && head < diff + n && strncmp(head, "@@", 2) != 0) head++;
        if (head && head < diff + n) head += 2;
        size_t len = head && head == diff + n ? 0 : dump_block(head ? head : diff + 1, &name);
        if (head || len) in = len ? arena_strndup(b->a, name, len) : NULL;
        if (!in || strmap_has(&seen, in) || (*diff != '+' && *diff != '-')) continue;
        sb_printf(b, "%s%s", seen.n ? ", " : " in ", in);
        strmap_put(b->a, &seen, in, b);
    }
}

typedef struct {
    int n, pass, change;        /* change: 0, the pass as a whole */
    const PassTold *told;       /* of the pass as a whole */
    const char *before, *after; /* the text without what is bad, and with it */
} Found;

static const char *limit_text(Arena *a, int pass, int change) {
    return change < 0 ? arena_printf(a, "--bisect-limit=%d", pass)
                      : arena_printf(a, "--bisect-limit=%d:%d", pass, change);
}

/* Writes what was found: the first bad pass, its places in the model, options for the last good
 * and the first bad program, and the difference in the IR. */
static void put_result(Search *s, StrBuf *b, const Found *f) {
    Arena *a = s->c->a;
    const char *name = arena_printf(a, "%s#%d", f->told->last->name, f->told->nth);
    const char *filter = s->o->pass.print_filter;
    const char *before = dump_renamed(a, f->before, f->after);
    StrBuf diff = sb_new(a);
    sb_puts(&diff, "");
    dump_diff(&diff, dump_filter(a, before, filter), dump_filter(a, f->after, filter));
    sb_printf(b, "the first bad pass: %s, number %d of %d", name, f->pass, f->n);
    if (f->change) sb_printf(b, "; of its changes: %d of %d", f->change, f->told->n_rewrites);
    put_places(b, diff.s);
    bool parts = f->change > 0, cures = disabling_cures(s, name);
    sb_printf(b, "\n  good: %s\n", limit_text(a, f->pass - !parts, parts ? f->change - 1 : -1));
    sb_printf(b, "  bad:  %s\n", limit_text(a, f->pass, parts ? f->change : -1));
    sb_printf(b, "  %s --disable-pass=%s\n%s", cures ? "good:" : "bad: ", name, diff.s);
}

/* Of the bad pass the first bad change, where it asks for changes and is good without any; else
 * 0. */
static int search_changes(Search *s, int pass, int n) {
    const char *what = arena_printf(s->c->a, "pass %d without changes", pass);
    return n > 0 && try(s, pass, 0, what, NULL) ? halve(s, pass, 0, n) : 0;
}

/* The text of the program after so many passes and changes of the last one. "" if s->failed. */
static const char *text_after(Search *s, int pass, int change) {
    Trial t;
    s->failed |= !begin(s, &t, pass, change);
    if (s->failed) return "";
    const char *text = t.told.after ? t.told.after : "";
    text = arena_strndup(s->c->a, text, strlen(text));
    ctx_free(&t.ctx);
    return text;
}

/* Searches the changes of the bad pass as well and prints what was found. False after a
 * diagnostic. */
static bool print_result(Search *s, int n, int pass) {
    Trial whole;
    if (!begin(s, &whole, pass, -1)) return false;
    Found f = {n, pass, 0, &whole.told, whole.told.before, whole.told.after};
    StrBuf b = sb_new(s->c->a);
    if (whole.told.last) {
        f.change = search_changes(s, pass, whole.told.n_rewrites);
        if (f.change) {
            f.before = text_after(s, pass, f.change - 1);
            f.after = text_after(s, pass, f.change);
        }
        put_result(s, &b, &f);
    } else if (!s->failed) {
        diag_add(s->c, DIAG_E0518, (Span){0}, "'%s' does not always say the same", s->o->bisect);
        s->failed = true;
    }
    ctx_free(&whole.ctx);
    return !s->failed && ctx_write(s->c, NULL, b.s, b.n);
}

/* Searches by halving for the first pass with which the command of --bisect is not content.
 * False after a diagnostic. */
bool cli_bisect(Ctx *c, const CliOptions *o) {
    const char *dir = cli_temp_dir(c, o), *base = o->out ? o->out : o->files.v[0];
    if (!dir) return false;
    base = cli_stem(c->a, base);
    Search s = {.c = c, .o = o, .product = arena_printf(c->a, "%s/%s", dir, base)};
    PassTold all;
    const char *why = NULL;
    if (try(&s, -1, -1, "all passes", &all))
        why = "is content with the program that all passes make";
    else if (!s.failed && !try(&s, 0, -1, "none of them", NULL))
        why = "is not content without any pass, either: it is none of those that can be left out";
    if (why && !s.failed) diag_add(c, DIAG_E0518, (Span){0}, "'%s' %s", o->bisect, why);
    if (why || s.failed) return false;
    int pass = halve(&s, -1, 0, all.n_spare);
    return !s.failed && print_result(&s, all.n_spare, pass);
}
