/* --PASS.NAME=N: the numbers by which passes decide, of passes/thresholds.def. */
#include "frontend/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "passes/threshold.h"

bool cli_is_threshold(const char *arg) {
    size_t n = strcspn(arg, "=");
    return strncmp(arg, "--", 2) == 0 && memchr(arg, '.', n);
}

/* The message about a threshold that a pass does not have, or a pass that has none. */
static const char *no_such(Arena *a, const char *name, size_t n) {
    StrBuf b = sb_new(a);
    size_t pass = strcspn(name, ".");
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) {
        const PassThresholdText *x = pass_threshold_text((PassThreshold)t);
        if (strlen(x->pass) != pass || strncmp(x->pass, name, pass)) continue;
        sb_printf(&b, "%s%s", b.n ? ", " : "", x->name);
    }
    const char *of = arena_strndup(a, name, pass);
    if (!b.n) return arena_printf(a, "no pass '%s' has thresholds: gnnc help thresholds", of);
    return arena_printf(a, "'%s' has no threshold '%.*s': it has %s", of, (int)(n - pass - 1),
                        name + pass + 1, b.s);
}

static bool is_number(const char *s) {
    size_t n = strspn(s, "0123456789");
    return n > 0 && n < 11 && !s[n];
}

/* Sets --PASS.NAME=N. NULL, or why not. */
const char *cli_set_threshold(Arena *a, CliOptions *o, const char *arg, const char *value) {
    const char *name = arg + 2;
    size_t n = strcspn(name, "=");
    PassThreshold t = pass_threshold_find(name, n);
    if (t == N_PASS_THRESHOLDS) return no_such(a, name, n);
    const PassThresholdText *x = pass_threshold_text(t);
    long long is = value && is_number(value) ? strtoll(value, NULL, 10) : -1;
    if (is < x->least || is > x->most)
        return arena_printf(a, "--%.*s is from %d to %d (usually %d), not '%s'", (int)n, name,
                            x->least, x->most, x->usual, value ? value : "");
    int *all = NEWN(a, int, N_PASS_THRESHOLDS);
    for (int i = 0; i < N_PASS_THRESHOLDS; i++)
        all[i] = o->thresholds ? o->thresholds[i] : pass_threshold_text((PassThreshold)i)->usual;
    all[t] = (int)is;
    o->thresholds = all;
    return NULL;
}

/* Prints all thresholds of passes, what they usually are and may be. */
void cli_thresholds(FILE *to) {
    enum { RANGE_AT = 38, HELP_AT = 58 };
    fputs("numbers by which passes decide, what they usually are and may be:\n", to);
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) {
        const PassThresholdText *x = pass_threshold_text((PassThreshold)t);
        int n = fprintf(to, "  --%s.%s=%d", x->pass, x->name, x->usual);
        n += fprintf(to, "%*s%d to %d", n < RANGE_AT ? RANGE_AT - n : 1, "", x->least, x->most);
        fprintf(to, "%*s", n < HELP_AT ? HELP_AT - n : 1, "");
        fe_put_wrapped(to, x->what, HELP_AT);
    }
}
