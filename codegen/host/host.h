/* What the files of the host driver's generator share. */
#ifndef CODEGEN_HOST_H
#define CODEGEN_HOST_H

#include "codegen/target.h"

/* The host driver of a plan while it is written, or another text about the plan. */
typedef struct {
    Ctx *c;
    Arena *a; /* of c */
    const Plan *p;
    const Module *m;          /* of p */
    StrBuf b;                 /* the text so far */
    const char **sym;         /* [syms] names of the enumerators of sizes, S_.. */
    const char **space;       /* [spaces] names of the enumerators of spaces, SP_.. */
    const char *device;       /* whose phases are being written; NULL = the host's */
    bool *has_segment_bounds; /* [maps] the plan has a buffer with its bounds of segments */
    int *first_local;         /* by loop over blocks: the first buffer that is local to it, or -1 */
    int *next_local;          /* by buffer: the next one that is local to the same loop, or -1 */
    int phase;                /* index of the phase being written */
    int n_exchanges;          /* number of exchanges in the phases written so far */
    bool bucketed;            /* the phase being written may be recorded for rounded sizes */
    int stream;               /* of a device: that of the step written last */
    bool *marked;             /* by step: steps of other streams wait for it; NULL: there is one */
    const bool *in_batches;   /* by buffer: a phase that runs over batches accesses it */
} Host;

/* host_contract.c: the runtime's constants as C spells them, host_RelKind[REL_BASE] and the like.
 */
#define END(type, rt_type) extern const char *const host_##type[];
#include "runtime/contract.def"

/* host_text.c */
void host_puts(Host *h, const char *s);
void host_printf(Host *h, const char *fmt, ...) PRINTF_LIKE(2, 3);
void host_string(Host *h, const char *s);  /* writes a C string literal; NULL for NULL */
void host_comment(Host *h, const char *s); /* writes s as text inside a C comment */
void host_expr(Host *h, const Expr *e);    /* writes a size as a C expression over n[S_..] */
/* prefix_name with other characters made '_', unique among the first n of names. */
const char *host_unique(Arena *a, const char *prefix, const char *name, const char *const *names,
                        int n);
const char *host_symbol(const Host *h); /* of the program, what others see: "churn_program" */

/* host_tables.c: all tables of the program */
void host_tables(Host *h);

/* host_labels.c: by column, does nothing but training and judging read it? */
bool *host_labels(Arena *a, const Module *m);

/* host_describe.c: what the model reads and gives, in words, a line each.  Its name, and how it was
 * made; what stands behind predictions, and behind hidden layers. */
const char *host_model_name(const Plan *p);
void host_title(Host *h);
void host_describe(Host *h, const char *predict, const char *embed);
/* The kinds of tables of the data; HOST_NO_TABLE: no rows of a table. */
typedef enum { HOST_NO_TABLE, HOST_NODES, HOST_EDGES, HOST_GRAPHS } HostTable;
HostTable host_table(const Space *s);         /* of the data */
int64_t host_known_size(const Space *s);      /* -1: data or weights bring it */
const char *host_given(const Plan *p, int i); /* the name of a result; NULL: buffer i is none */

/* host_recipe.c: before the program's own table, and members of it */
int host_metrics(Host *h);                /* the table of metrics; how many there are */
void host_sampling_tables(Host *h);       /* what host_sampling() refers to */
void host_recipe(Host *h, int n_metrics); /* the member .recipe */
void host_sampling(Host *h);              /* the member .sampling */

/* host_call.c */
void host_call_prototypes(Host *h);                   /* of the user's C functions */
void host_call_wrappers(Host *h, const PPhase *ph);   /* one per call */
void host_call(Host *h, int index, const PStep *s);   /* the call's step */
const char *host_line(const Host *h, const PStep *s); /* "m.gnn:14"; the module's name without */
const char *host_dtype(DType t);                      /* "RT_F32" */

/* host_state.c: does a step of training assign the state v?  *kept: what it is multiplied by, to
 * be added to what does not depend on it; 0: it is changed in another way. */
bool host_state_assigned(const Module *m, const Var *v, double *kept);

/* host_phase.c: a function for each phase */
void host_phases(Host *h);

#endif
