/* The options of a trainer: a field for each row of GNNC_OPTION_MAP, whose help is what the field
 * means. */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include "runtime/exec/exec.h"

enum {
#define INDEX(name, ...) RT_OPTION_##name,
    GNNC_OPTION_MAP(INDEX, INDEX, INDEX)
#undef INDEX
        RT_N_OPTIONS
};

enum { RT_OPTION_TEXT_SIZE = 64 };

typedef struct RtOptions {
#define INT(name, ...) int64_t name;
#define REAL(name, ...) double name;
#define TEXT(name, ...) char name[RT_OPTION_TEXT_SIZE];
    GNNC_OPTION_MAP(INT, REAL, TEXT)
#undef INT
#undef REAL
#undef TEXT
    bool set[RT_N_OPTIONS]; /* by the host: neither a checkpoint nor what was tuned overrides it */
    RtWhere where;          /* what `device` says */
    bool own_fanout;        /* `fanout` says something: */
    int32_t hop_fanout[RT_MAX_HOPS]; /* .. of each hop */
    double asked;                    /* what `at` says, in seconds; NaN = nothing */
    int ordinal; /* .. which of the machine's; -1: that of the thread that loads */
} RtOptions;

/* As they are before anything is set. */
RtOptions rt_options_of(const rt_program *p);
/* [RT_MAX_HOPS] what option fanout says; NULL: nothing. */
const int32_t *rt_options_fanout(const RtOptions *o);
/* What "cpu", "auto", "cuda" or "cuda:1" says of the program.  E_MISSING: not compiled for that. */
gnnc_status rt_options_where(gnnc_trainer *t, const char *name, RtWhere *where, int *ordinal);

#endif
