/* gnnc run: what a model, its IR, its plan or its kernels compute, told by their interpreters. */
#include "frontend/interpret.h"
#include "ir/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/data/npy.h"

typedef struct {
    Ctx *c;
    const CliOptions *o;
    Interpreted x;
    StrBuf out;
    /* of the phase that runs */
    Func *f;
    const char *at;       /* "train.2", of files */
    const char **name;    /* by Op.id */
    const double **value; /* .. what a step stored, if it is asked for */
    int64_t *count;
    StrMap met; /* names that were asked for and are there */
} Shown;

/* ---- a value -------------------------------------------------------------------------------- */
/* Sets shape to the sizes of a type's dimensions in the data; returns how many elements that
 * are. */
static int64_t shape_of(const Shown *s, const Type *t, int64_t shape[]) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= shape[i] = interp_size(s->x.in, t->dim[i]);
    return n;
}

/* Writes a type with its sizes as numbers, f32[3, 5]. */
static void put_shape(Shown *s, const Type *t, const int64_t *shape) {
    sb_puts(&s->out, dtype_name(t->dt));
    for (int i = 0; i < t->rank; i++)
        sb_printf(&s->out, "%s%lld", i ? ", " : "[", (long long)shape[i]);
    sb_puts(&s->out, t->rank ? "]" : "");
}

/* Writes minimum, maximum and mean of n values, and how many are no numbers. */
static void put_range(StrBuf *b, int64_t n, const double *v) {
    double least = INFINITY, most = -INFINITY, sum = 0;
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        least = fmin(least, v[i]), most = fmax(most, v[i]), sum += v[i];
        numbers++;
    }
    if (numbers)
        sb_printf(b, "  min %.6g  max %.6g  mean %.6g", least, most, sum / (double)numbers);
    if (numbers < n) sb_printf(b, "  NaN %lld", (long long)(n - numbers));
}

/* Writes a value as a .npy file to the directory of -o; a '/' in its name becomes '_'. False
 * after a diagnostic. */
static bool save(Shown *s, const char *name, int rank, const int64_t *shape, int64_t n,
                 const double *v) {
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    char *file = arena_printf(s->c->a, "%s.%s.npy", s->at, name);
    for (char *p = file; *p; p++)
        if (*p == '/') *p = '_';
    RtArray a = {.dt = RT_DT_F64, .rank = rank, .count = n, .data = v};
    memcpy(a.shape, shape, (size_t)rank * sizeof *shape);
    const char *path = arena_printf(s->c->a, "%s/%s", s->o->out, file);
    if (rt_npy_save(&from, path, &a, &err) == GNNC_OK) return true;
    diag_add(s->c, DIAG_E0003, (Span){0}, "%s", err.text);
    return false;
}

/* Shows a value: its type, range and first elements, and saves it if -o is given. A sparse
 * value's stored entries are shown in one row. False after a diagnostic. */
static bool show(Shown *s, const char *name, const Type *t, int64_t n, const double *v) {
    enum { FIRST = 6 };
    int64_t shape[MAX_RANK + 1] = {0};
    int rank = t->rank;
    int64_t places = shape_of(s, t, shape);
    sb_printf(&s->out, "  %-12s ", name);
    put_shape(s, t, shape);
    if (places != n) shape[0] = n, rank = 1;
    if (rank) put_range(&s->out, n, v);
    sb_puts(&s->out, rank ? " :" : " ");
    for (int64_t i = 0; i < n && i < FIRST; i++) sb_printf(&s->out, " %.9g", v[i]);
    sb_puts(&s->out, n > FIRST ? " ..\n" : "\n");
    return !s->o->out || save(s, name, rank, shape, n, v);
}
/* ---- those that are asked for --------------------------------------------------------------- */
/* Whether --values asks for a value of this name; notes which of its terms do. */
static bool is_asked(Shown *s, const char *name) {
    const char *term = text_asked(s->c->a, s->o->values, name);
    if (term) strmap_put(s->c->a, &s->met, term, s);
    return term != NULL;
}

/* Called for each value that a step of a plan stores: keeps a copy of it if it is asked for. */
static void keep_stored(void *user, const Op *op, int64_t n, const double *v) {
    Shown *s = user;
    if (op->func != s->f || op->type.dt == DT_VOID || !is_asked(s, s->name[op->id])) return;
    double *copy = NEWN(s->c->a, double, (size_t)n + 1);
    memcpy(copy, v, (size_t)n * sizeof *v);
    s->value[op->id] = copy;
    s->count[op->id] = n;
}

/* The name of the kernel that computes a value; NULL: none does. */
static const char *kernel_of(const Plan *p, const Op *op) {
    for (int i = 0; i < p->kernels.n; i++)
        for (int k = 0; k < p->kernels.v[i]->computes.n; k++)
            if (p->kernels.v[i]->computes.v[k] == op) return p->kernels.v[i]->name;
    return NULL;
}

/* Writes why a plan has no value of an operation. */
static void put_unstored(Shown *s, const Op *op) {
    const char *kernel = kernel_of(s->x.plan, op);
    sb_printf(&s->out, "  %-12s ", s->name[op->id]);
    if (kernel)
        sb_printf(&s->out, "is computed in place by the kernel %s: --level=ir shows it\n", kernel);
    else
        sb_puts(&s->out, "is no value that a step stores: --level=ir shows it\n");
}

/* Shows a value, from whichever interpreter has it. False after a diagnostic. */
static bool show_value(Shown *s, const Op *op) {
    const char *name = s->name[op->id];
    const OpTensor *t = s->x.loops ? NULL : interp_value(s->x.in, op);
    if (t) return show(s, name, &op->type, t->count, t->v);
    if (s->value[op->id]) return show(s, name, &op->type, s->count[op->id], s->value[op->id]);
    put_unstored(s, op);
    return true;
}

/* Shows all values of the phase that are asked for. False after a diagnostic. */
static bool show_values(Shown *s) {
    for (const Op *op = s->f->first; op; op = op->next) {
        bool asked = op->type.dt != DT_VOID && is_asked(s, s->name[op->id]);
        if (asked && !show_value(s, op)) return false;
    }
    return true;
}

/* Whether each term of --values was met by a value of some phase; reported if not. */
static bool all_met(Shown *s) {
    const char *name = text_unmet(s->c->a, s->o->values, &s->met);
    if (name)
        diag_add(s->c, DIAG_E0519, (Span){0}, "no phase that was run has a value '%%%s'%s", name,
                 s->x.plan ? ""
                           : "; passes rename and remove them: --emit=ir shows which there are");
    return name == NULL;
}

/* ---- phases --------------------------------------------------------------------------------- */
/* Shows all outputs of the phase. False after a diagnostic. */
static bool show_outputs(Shown *s) {
    for (const Op *op = s->f->first; op; op = op->next) {
        int64_t n = 0;
        if (op->kind != OP_OUTPUT) continue;
        const double *v = interpret_output(&s->x, s->f, op->name, &n);
        if (v && !show(s, op->name, &op->in[0]->type, n, v)) return false;
    }
    return true;
}

/* Interprets a phase as of a step and shows its outputs and values. False after a diagnostic. */
static bool run_phase(Shown *s, Func *f, int step) {
    Arena *a = s->c->a;
    s->f = f;
    s->name = ir_value_names(a, f);
    s->value = NEWN(a, const double *, (size_t)f->n_ops + 1);
    s->count = NEWN(a, int64_t, (size_t)f->n_ops + 1);
    bool trains = f->phase == PHASE_TRAIN;
    s->at = trains ? arena_printf(a, "%s.%d", f->name, step + 1) : f->name;
    if (!interpret_phase(&s->x, f, step)) return false;
    sb_printf(&s->out, "@%s", f->name);
    if (trains) sb_printf(&s->out, ", step %d", step + 1);
    sb_puts(&s->out, "\n");
    return show_outputs(s) && show_values(s);
}

/* Interprets --steps training steps, then each other phase with the parameters that they made.
 * False after a diagnostic. */
static bool run_phases(Shown *s) {
    const Module *m = s->x.m;
    Func *train = func_of(m, PHASE_TRAIN);
    const char *why = train ? interpret_lacks(m, train) : NULL;
    for (int i = 0; train && !why && i < s->o->steps; i++)
        if (!run_phase(s, train, i)) return false;
    if (why) sb_printf(&s->out, "@%s\n  %s\n", train->name, why);
    for (int i = 0; i < m->funcs.n; i++) {
        Func *f = m->funcs.v[i];
        why = interpret_lacks(m, f);
        if (f == train || (why && !*why)) continue;
        if (!why && !run_phase(s, f, s->o->steps)) return false;
        if (why) sb_printf(&s->out, "@%s\n  %s\n", f->name, why);
    }
    return true;
}

/* Writes what is interpreted and on what data. */
static void put_head(Shown *s, const CliProduct *p) {
    sb_printf(&s->out, "%s: %s, on %s\n", s->o->files.v[0], interpret_what(s->c->a, p),
              s->o->measured);
    if (module_runs_on_batches(p->m, PHASE_TRAIN))
        sb_puts(&s->out, "nothing is drawn: the whole graph is the batch, and half of the rows "
                         "that are learned are its seeds\n");
}

/* Makes the directory for values, if one is named and it is not there. False after a diagnostic. */
static bool make_directory(Ctx *c, const char *path) {
    if (!path || mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    diag_add(c, DIAG_E0003, (Span){0}, "cannot make '%s': %s", path, strerror(errno));
    return false;
}

/* The command `gnnc run`: interprets all phases on data and shows what they give. False after a
 * diagnostic. */
bool cli_interpret(Ctx *c, const CliOptions *o) {
    CliProduct p;
    Shown s = {.c = c, .o = o, .out = sb_new(c->a)};
    if (!make_directory(c, o->out) || !cli_produce(c, o, &p)) return false;
    if (!interpret_begin(c, &p, o->measured, p.plan != NULL, &s.x)) return false;
    if (s.x.loops) loop_run_on_store(s.x.loops, keep_stored, &s);
    put_head(&s, &p);
    bool ok = run_phases(&s) && all_met(&s);
    return ctx_write(c, NULL, s.out.s, s.out.n) && ok;
}
