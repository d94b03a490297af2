/* --report: what was made, and why it is not better.  Everything printed is computed from
 * the final IR and the plan; what passes had to say is added as their remarks.  One file
 * per report; each prints text for people and JSON for programs from the same facts, and
 * numbers beside the expressions where the sizes are known (--specialize). */
#ifndef CODEGEN_REPORT_H
#define CODEGEN_REPORT_H

#include "codegen/cost.h"
#include "codegen/target.h"

enum {
    REPORT_SHAPES = 1 << 0,
    REPORT_BREAKS = 1 << 1,
    REPORT_FUSION = 1 << 2,
    REPORT_SYNCS = 1 << 3,
    REPORT_MEMORY = 1 << 4,
    REPORT_PRECISION = 1 << 5,
    REPORT_ALL = (1 << 6) - 1,
};
/* "fusion" or "shapes,memory" or "all"; 0: an unknown name. */
unsigned report_kinds(const char *names);
const char *report_word(int i); /* "all", then the others; behind the last NULL */

typedef struct {
    unsigned kinds;
    bool json;
    const int64_t *sizes;      /* by Sym.id; -1 = unknown.  NULL: none is known */
    const char *data;          /* whose sizes they are */
    const Target *roof;        /* whose machine bounds times from below; NULL: no times */
    const char *remarks;       /* of the passes, one per line; NULL = none */
    int effects_before;        /* host effects in the model before any pass */
    int variant, n_variants;   /* which of the program's is told of */
    const char *const *choice; /* [n_variants] what each does */
} ReportOptions;

void report_print(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o);
/* Host effects in all functions before any pass: print, assert, C functions with one.  Those of f
 * alone are noted in the module as places where a tracing compiler stops. */
int report_count_effects(Module *m);

/* Of the JSON form: grows when something goes, or means something else; docs/report.schema.json. */
enum { REPORT_VERSION = 1 };

/* ---- a small JSON writer (report_json.c) ----------------------------------------------- */
enum { JSON_DEPTH = 16 };
typedef struct {
    StrBuf *b;
    int depth;
    int n[JSON_DEPTH]; /* members written so far */
    char close[JSON_DEPTH];
} Json;
/* key is NULL in arrays and at the top */
void json_object(Json *j, const char *key);
void json_array(Json *j, const char *key);
void json_end(Json *j);                                  /* of the innermost object or array */
void json_text(Json *j, const char *key, const char *s); /* NULL: null */
void json_int(Json *j, const char *key, int64_t v);
void json_bool(Json *j, const char *key, bool v);

/* ---- for the report files ------------------------------------------------------------------ */
typedef struct {
    Ctx *c;
    Arena *a;
    const Plan *p;
    const ReportOptions *o;
    StrBuf *b; /* text */
    Json *j;   /* NULL: text is wanted */
} Report;

/* Value of e with the known sizes; false: some size is not known. */
bool report_value(const Report *r, const Expr *e, int64_t *v);
/* "64*E_cites", with " = 660.5 kB" where known.  unit: "B", "FLOP" or "" */
void report_amount(Report *r, const Expr *e, const char *unit);
/* {"expr": "..", "value": n} */
void report_json_expr(Report *r, const char *key, const Expr *e);
const char *report_at(const Report *r,
                      Span at); /* "models/gcn.gnn:14"; for people "gcn.gnn:14"; "" */
const char *report_type(const Report *r, const Type *t);
const char *report_op_name(const Op *op); /* the model's name for it, else the mnemonic */
bool report_is_device(const Report *r, const PStep *s); /* no host effect */

void report_summary(Report *r); /* text alone */
void report_shapes(Report *r);
void report_breaks(Report *r);
void report_fusion(Report *r);
void report_syncs(Report *r);
void report_memory(Report *r);
void report_precision(Report *r);

#endif
