/* Functions of the user's, in C:
 *
 *     extern fn f(x: f32[N, F]) -> f32[N, F] grad f_grad from "my.c" effect device
 *
 * A call is one operation.  Its arguments are put into the declared order of dimensions, for C
 * reads memory where the language reads names. */
#include "frontend/elab/elab.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { MAX_EXTERN_ARGS = 30 };

/* ---- what stands behind the type ------------------------------------------------------- */
typedef struct {
    const Ast *grad, *file, *effect, *device;
} Clauses;

static bool is_word(const Ast *t, const char *word) {
    return t->kind == AST_NAME && strcmp(t->text, word) == 0;
}

/* Reports a mistake in the declaration of a C function. Always false, for checks to return. */
static bool refuse(Elab *e, Span at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool refuse(Elab *e, Span at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    diag_add(e->c, DIAG_E0316, at, "%s", arena_vprintf(e->a, fmt, ap));
    va_end(ap);
    return false;
}

/* Reads what stands behind the type of a C function: grad, from, effect, device. Each stands at
 * most once; from must. False after a diagnostic. */
static bool read_clauses(Elab *e, const Ast *decl, Clauses *c) {
    for (int i = 2; i < decl->n; i++) {
        const Ast *t = decl->kid[i], *next = i + 1 < decl->n ? decl->kid[i + 1] : NULL;
        const Ast **at = is_word(t, "grad")     ? &c->grad
                         : is_word(t, "from")   ? &c->file
                         : is_word(t, "effect") ? &c->effect
                         : is_word(t, "device") ? &c->device
                                                : NULL;
        if (!at)
            return refuse(e, t->span, "'%s' stands here; grad, from, effect and device may",
                          t->text);
        if (*at) return refuse(e, t->span, "'%s' stands twice", t->text);
        bool named = at == &c->grad || at == &c->file;
        AstKind want = at == &c->file ? AST_STRING : AST_NAME;
        if (named && (!next || next->kind != want))
            return refuse(e, t->span, "'%s' is followed by %s", t->text,
                          want == AST_STRING ? "a file in quotes" : "a C function's name");
        *at = named ? next : t;
        i += named;
    }
    return c->file || refuse(e, decl->span, "'%s' needs its file: from \"my.c\"", decl->text);
}

/* ---- checks ------------------------------------------------------------------------------ */
/* Whether a C function can take or give a value of type t: a dense tensor of f32, f64, i32 or
 * bool. */
static bool is_passed(const Ast *t) {
    DType d = t ? elab_type_dtype(t) : DT_VOID;
    bool plain = d == DT_F32 || d == DT_F64 || d == DT_I32 || d == DT_I1;
    return plain && elab_type_is_tensor(t) && !(t->flag & TYPE_CSR);
}

/* Checks the types of a C function's parameters and result, and that a gradient has something to
 * go to. False after a diagnostic. */
static bool check_types(Elab *e, const Ast *decl, const Clauses *c) {
    const Ast *formals = decl->kid[0], *result = decl->kid[1];
    bool floats = false;
    if (formals->n > MAX_EXTERN_ARGS)
        return refuse(e, decl->span, "a C function takes at most %d arguments", MAX_EXTERN_ARGS);
    for (int i = 0; i < formals->n; i++) {
        const Ast *f = formals->kid[i];
        if (!is_passed(f->kid[0]))
            return refuse(e, f->span, "'%s': C functions take f32, f64, i32 and bool[..], dense",
                          f->text);
        floats = floats || dtype_is_float(elab_type_dtype(f->kid[0]));
    }
    if (!result && c->effect) return true;
    if (!is_passed(result))
        return refuse(e, result ? result->span : decl->span,
                      result ? "C functions give f32, f64, i32 and bool[..], dense"
                             : "without a result a function is for its effect: say so");
    if (c->grad && (!floats || !dtype_is_float(elab_type_dtype(result))))
        return refuse(e, c->grad->span,
                      "a gradient goes from a floating-point result to a floating-point input");
    return true;
}

/* Whether s can be the name of a user's C function: an identifier that is none of gnnc's own and
 * not main. Reported if not. */
static bool is_c_name(Elab *e, const char *s, Span at) {
    bool ok = isalpha((unsigned char)*s) || *s == '_';
    for (const char *p = s; *p; p++) ok = ok && (isalnum((unsigned char)*p) || *p == '_');
    ok = ok && strncmp(s, "gnnc_", 5) != 0 && strncmp(s, "rt_", 3) != 0 && strcmp(s, "main") != 0;
    return ok || refuse(e, at, "'%s' cannot be the name of a C function here", s);
}

/* The path of a C function's file, which is relative to the model file that declares the
 * function. */
static const char *path_of(Elab *e, const Ast *file) {
    const char *from = e->c->sources.v[file->span.file].path, *slash = strrchr(from, '/');
    if (file->text[0] == '/' || !slash) return file->text;
    return arena_printf(e->a, "%.*s/%s", (int)(slash - from), from, file->text);
}

/* Whether the file is one that gnnc compiles or links: C, CUDA, an object, an archive or a
 * shared library. */
static bool has_known_suffix(const char *path) {
    static const char *const known[] = {".c", ".o", ".a", ".so", ".cu"};
    size_t n = strlen(path);
    for (size_t i = 0; i < COUNT(known); i++) {
        size_t k = strlen(known[i]);
        if (n > k && strcmp(path + n - k, known[i]) == 0) return true;
    }
    return false;
}

/* Checks that the file of a C function has a known suffix and can be read. False after a
 * diagnostic. */
static bool check_file(Elab *e, const Ast *file) {
    const char *path = path_of(e, file);
    if (!has_known_suffix(path))
        return refuse(e, file->span, "'%s' is no .c, .cu, .o, .a or .so", path);
    if (!ctx_may_read(e->c, path))
        return refuse(e, file->span,
                      "'%s' is not compiled where only files that were given are read", path);
    return access(path, R_OK) == 0 || refuse(e, file->span, "cannot read '%s'", path);
}

/* Reads and checks the whole declaration of a C function; c: what its clauses say. False after
 * diagnostics. */
static bool check(Elab *e, const Ast *decl, Clauses *c) {
    return read_clauses(e, decl, c) && check_types(e, decl, c) &&
           is_c_name(e, decl->text, decl->span) &&
           (!c->grad || is_c_name(e, c->grad->text, c->grad->span)) && check_file(e, c->file);
}

void elab_check_extern(Elab *e, const Ast *decl) {
    Clauses c = {0};
    check(e, decl, &c);
}

/* ---- calls ---------------------------------------------------------------------------------- */
/* The module's entry of a C function; the first call checks its declaration and makes it. NULL
 * after a diagnostic. */
static const Extern *extern_of(Elab *e, const Ast *decl) {
    Clauses c = {0};
    Extern *f = extern_find(e->m, decl->text);
    if (f || !check(e, decl, &c)) return f;
    vec_push(e->a, &e->c->others, path_of(e, c.file));
    f = extern_new(e->m, decl->text, path_of(e, c.file), decl->span);
    f->grad = c.grad ? c.grad->text : NULL;
    f->effect = c.effect != NULL;
    f->device = c.device != NULL;
    return f;
}

/* x with the dimensions in the order of its declaration; `..` keeps its own. */
static Op *in_order(Elab *e, const Ast *type, Op *x, Span at) {
    Space *named[MAX_RANK] = {0}, *to[MAX_RANK];
    int n = 0;
    for (int i = 0; i < type->n && i < MAX_RANK; i++)
        if (type->kid[i]->kind != AST_DOTS)
            named[i] = elab_dim_space(e, elab_eval(e, type->kid[i]), type->kid[i]->span);
    for (int i = 0; i < type->n && i < MAX_RANK; i++) {
        if (named[i] && n < MAX_RANK) to[n++] = named[i];
        for (int k = 0; type->kid[i]->kind == AST_DOTS && k < x->type.rank; k++) {
            bool other = true;
            for (int j = 0; j < MAX_RANK; j++) other = other && named[j] != x->type.dim[k];
            if (other && n < MAX_RANK) to[n++] = x->type.dim[k];
        }
    }
    return elab_tensor_order(e, x, n, to, at).op;
}

/* Adds the operation that calls a C function. The arguments are bound in the present frame; a
 * function for its effect takes the condition of the statement as well. */
static Value call_op(Elab *e, const Ast *decl, const Extern *f, const Args *args) {
    const Ast *formals = decl->kid[0], *result = decl->kid[1];
    Op proto = {.kind = f->effect ? OP_CALL_EFFECT : OP_CALL, .ext = f, .hint = decl->text};
    proto.in = NEWN(e->a, Op *, (size_t)formals->n + 1);
    if (f->effect && e->when) {
        proto.when = true;
        proto.in[proto.n_in++] = e->when;
    }
    for (int i = 0; i < formals->n; i++) {
        const Value *v = strmap_get(&e->frame->vars, formals->kid[i]->text);
        proto.in[proto.n_in++] = in_order(e, formals->kid[i]->kid[0], v->op, args->span);
    }
    proto.type = (Type){.dt = DT_VOID};
    if (result && !elab_type_spaces(e, result, &proto.type)) return val_poison();
    e->b.span = args->span;
    Op *op = b_op(&e->b, &proto);
    return result ? val_tensor(op) : val_none();
}

/* Calls a C function: binds its arguments in a frame of its own, so that its types can name
 * their dimensions. */
Value elab_call_extern(Elab *e, const Ast *decl, const Args *args) {
    const Extern *f = extern_of(e, decl);
    if (!f) return val_poison();
    Frame frame, *in = elab_frame_push(e, &frame, decl, NULL, args->span);
    Value v = val_poison();
    if (elab_bind_formals(e, in, decl->kid[0], arena_printf(e->a, "'%s'", decl->text), args, NULL))
        v = call_op(e, decl, f, args);
    e->frame = in->up;
    return elab_value_outside(e, in, v, args->span);
}
