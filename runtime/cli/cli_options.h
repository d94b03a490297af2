/* The options of a compiled trainer, once: parser and --help read this table. */
#ifndef RUNTIME_CLI_OPTIONS_H
#define RUNTIME_CLI_OPTIONS_H

#include <stddef.h>

typedef enum {
    RT_OPT_TEXT,  /* stored at offset of RtCli */
    RT_OPT_COUNT, /* int64_t >= 0 at offset */
    RT_OPT_INT,   /* gnnc_trainer_set_int */
    RT_OPT_BYTES, /* the same, with K, M, G */
    RT_OPT_REAL,  /* gnnc_trainer_set_real */
    RT_OPT_LOG,
    RT_OPT_FLAG, /* bool at offset */
    RT_OPT_DEVICE,
    RT_OPT_SHAPES,
    RT_OPT_FEATURES,
    RT_OPT_PRODUCTS,
    RT_OPT_SAMPLER,
    RT_OPT_MAPS,
    RT_OPT_HELP,
    RT_OPT_VERSION
} RtCliOptionKind;

typedef struct RtCliOption {
    const char *name, *value, *help; /* value: NULL = takes none */
    RtCliOptionKind kind;
    size_t offset;
    const char *option; /* the trainer's name for it */
} RtCliOption;

extern const RtCliOption rt_cli_options[]; /* ends with name = NULL */

#endif
