/* What options ask for: each action is a function of its own. */
#include "frontend/cli/cli.h"

/* Does what the options ask for, but help and version. False after a diagnostic. */
bool cli_act(Ctx *c, const CliOptions *o) {
    c->thresholds = o->thresholds;
    switch (o->action) {
    case ACT_COMPILE:
        return o->bisect ? cli_bisect(c, o) : cli_compile(c, o);
    case ACT_CHECK:
        return cli_check(c, o);
    case ACT_OPT:
        return cli_optimise(c, o);
    case ACT_RUN:
        return cli_interpret(c, o);
    case ACT_COMPARE:
        return cli_compare(c, o);
    case ACT_FMT:
        return cli_fmt(c, o);
    case ACT_LSP:
        return cli_lsp(c, o);
    default:
        return false; /* nothing to compile */
    }
}
