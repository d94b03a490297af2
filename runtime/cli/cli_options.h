/* The options of a compiled trainer, once: parser and --help read this table.  What the trainer's
 * own options mean and take stands in GNNC_OPTION_MAP (gnnc.h). */
#ifndef RUNTIME_CLI_OPTIONS_H
#define RUNTIME_CLI_OPTIONS_H

#include <gnnc.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    RT_OPT_TEXT,  /* stored at offset of RtCli */
    RT_OPT_COUNT, /* int64_t >= 0 at offset */
    RT_OPT_TIMES, /* int64_t >= 1 at offset */
    RT_OPT_FLAG,  /* bool at offset */
    RT_OPT_WORD,  /* which of the words, int at offset */
    RT_OPT_OWN,   /* the trainer's `option`, as its type is read */
    RT_OPT_ANY,   /* NAME=VALUE: any of the trainer's, or of the model's */
    RT_OPT_BYTES, /* the same, with K, M, G */
    RT_OPT_SET,   /* sets it, and `too`, to what `to` has for the word given; without one, the first
                   */
    RT_OPT_HELP,
    RT_OPT_VERSION
} RtCliOptionKind;

/* Options of every trainer; those behind them are the model's. */
enum {
    RT_CLI_N_OPTIONS = 0
#define ONE(...) +1
    GNNC_OPTION_MAP(ONE, ONE, ONE)
#undef ONE
};

typedef struct RtCliOption {
    const char *name, *value; /* value: NULL = takes none; "a|b|c" = one of these words */
    const char *help;         /* NULL = the trainer's of `option` */
    RtCliOptionKind kind;
    size_t offset;
    const char *option, *too; /* the trainer's names */
    struct {
        int8_t option, too;
    } to[3];
} RtCliOption;

extern const RtCliOption rt_cli_options[]; /* ends with name = NULL */
const char *rt_cli_option_help(RtCli *c, const RtCliOption *o);
long long rt_cli_option_int(RtCli *c, const char *option); /* the trainer's, as it is in use */

#endif
