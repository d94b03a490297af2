/* Names, types and numbers as CUDA C spells them. */
#include "codegen/cuda/cuda.h"
#include "codegen/lower/lower.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Writes an indented line. */
static void put_indented_line(CuFn *f, const char *text) {
    for (int i = 0; i < f->depth; i++) sb_puts(&f->cu->b, "    ");
    sb_puts(&f->cu->b, text);
    sb_puts(&f->cu->b, "\n");
}

/* Writes a line at the current indentation, formatted like printf. */
void cu_line(CuFn *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put_indented_line(f, arena_vprintf(f->a, fmt, ap));
    va_end(ap);
}

/* Writes a line that opens a brace, and indents what follows. */
void cu_open(CuFn *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put_indented_line(f, arena_vprintf(f->a, fmt, ap));
    va_end(ap);
    f->depth++;
}

/* Writes "}" and ends the indentation of the last cu_open(). */
void cu_close(CuFn *f) {
    f->depth--;
    put_indented_line(f, "}");
}

/* ---- types and numbers ------------------------------------------------------------- */
/* The C type that a register of type dt has; 16-bit floats are computed in f32. */
const char *cu_type(DType dt) {
    static const char *const name[] = {
        [DT_F32] = "float",   [DT_F64] = "double",  [DT_F16] = "float", [DT_BF16] = "float",
        [DT_I32] = "int32_t", [DT_I64] = "int64_t", [DT_I1] = "bool",   [DT_VOID] = "void"};
    return name[dt];
}

/* The C type of an element in memory. */
const char *cu_mem_type(DType dt) {
    if (dt == DT_F16) return "gn_f16";
    if (dt == DT_BF16) return "gn_bf16";
    return dt == DT_I1 ? "uint8_t" : cu_type(dt);
}

/* A floating-point literal that reads back as v, of f32 as v rounded to f32; NaN and infinity
 * included. */
static const char *float_literal(Arena *a, double v, bool is_double) {
    if (isnan(v)) return is_double ? "(double)NAN" : "NAN";
    if (isinf(v))
        return arena_printf(a, "%s%sINFINITY", is_double ? "(double)" : "", v < 0 ? "-" : "");
    const char *s = arena_printf(a, is_double ? "%.17g" : "%.9g", v);
    bool has_point = strpbrk(s, ".e") != NULL;
    return arena_printf(a, "%s%s%s", s, has_point ? "" : ".0", is_double ? "" : "f");
}

/* An integer literal of v, saturated to the type's range. The least integers have no literal in C
 * and use a macro. */
static const char *integer_literal(Arena *a, DType dt, double v) {
    int64_t i = v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
    if (dt == DT_I32) {
        if (i <= INT32_MIN) return "INT32_MIN";
        return arena_printf(a, "%" PRId64, i > INT32_MAX ? INT32_MAX : i);
    }
    if (i == INT64_MIN) return "INT64_MIN";
    return arena_printf(a, "INT64_C(%" PRId64 ")", i);
}

/* A C literal of type dt and value v. */
const char *cu_literal_text(Arena *a, DType dt, double v) {
    if (dt == DT_I1) return v != 0 ? "true" : "false";
    if (dt == DT_I32 || dt == DT_I64) return integer_literal(a, dt, v);
    return float_literal(a, v, dt == DT_F64);
}

const char *cu_identity_text(Arena *a, RedKind r, DType dt) {
    bool max = r == RED_MAX;
    if (r == RED_SUM || dt == DT_I1) return cu_literal_text(a, dt, r == RED_MIN);
    if (dt == DT_I32) return max ? "INT32_MIN" : "INT32_MAX";
    if (dt == DT_I64) return max ? "INT64_MIN" : "INT64_MAX";
    return cu_literal_text(a, dt, max ? (double)-INFINITY : (double)INFINITY);
}

/* ---- sizes ------------------------------------------------------------------------- */
/* Text of a size expression. sizes: the name of the table that symbols are read from; NULL = the
 * kernel's parameters. */
static const char *size_text(CuFn *f, const Expr *e, const char *sizes) {
    static const char *const fn[] = {
        [EX_CEILDIV] = "gn_ceildiv", [EX_MAX] = "gn_max64", [EX_MIN] = "gn_min64"};
    if (e->kind == EX_CONST) return arena_printf(f->a, "%" PRId64, e->c);
    if (e->kind == EX_SYM)
        return sizes ? arena_printf(f->a, "%s[%d]", sizes, e->sym->id) : f->sym[e->sym->id];
    const char *x = size_text(f, e->a, sizes), *y = size_text(f, e->b, sizes);
    if (e->kind == EX_ADD) return arena_printf(f->a, "(%s + %s)", x, y);
    if (e->kind == EX_MUL) return arena_printf(f->a, "%s * %s", x, y);
    return arena_printf(f->a, "%s(%s, %s)", fn[e->kind], x, y);
}

const char *cu_size_text(CuFn *f, const Expr *e) {
    return size_text(f, e, NULL);
}

const char *cu_host_size_text(CuFn *f, const Expr *e) {
    return size_text(f, e, "n");
}

const char *cu_batch_size_text(CuFn *f, const Expr *e) {
    return size_text(f, e, "gn_n");
}

/* ---- names: one space for sizes, arguments, local arrays and registers ------------- */
/* Whether the name is a keyword, a macro or a name of the emitted code. */
static bool is_reserved(const char *s) {
    static const char *const words[] = {
        "alignas",   "alignof",   "and",       "asm",      "auto",      "bool",     "break",
        "case",      "catch",     "char",      "class",    "concept",   "const",    "continue",
        "decltype",  "default",   "delete",    "do",       "double",    "else",     "enum",
        "explicit",  "export",    "extern",    "false",    "float",     "for",      "friend",
        "goto",      "if",        "inline",    "int",      "long",      "mutable",  "namespace",
        "new",       "noexcept",  "not",       "nullptr",  "operator",  "or",       "private",
        "protected", "public",    "register",  "requires", "return",    "short",    "signed",
        "sizeof",    "static",    "struct",    "switch",   "template",  "this",     "throw",
        "true",      "try",       "typedef",   "typeid",   "typename",  "union",    "unsigned",
        "using",     "virtual",   "void",      "volatile", "while",     "xor",      "NAN",
        "INFINITY",  "INT32_MIN", "INT64_MIN", "INT64_C",  "threadIdx", "blockIdx", "blockDim",
        "gridDim",   "warpSize",  "arg",       "n",        "stream",    "errno",    "linux",
        "unix",      "assert",    "stdin",     "stdout",   "stderr"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (!strcmp(s, words[i])) return true;
    return !strcmp(s, "gn") || !strncmp(s, "gn_", 3) || !strncmp(s, "__", 2);
}

/* A C identifier made of `name` that is not in `taken` yet; adds it there. */
static const char *take_unique_name(CuFn *f, StrMap *taken, const char *name) {
    const char *s = cg_ident(f->a, name);
    while (is_reserved(s) || strmap_has(taken, s)) s = arena_printf(f->a, "%s_", s);
    strmap_put(f->a, taken, s, f);
    return s;
}

/* Gives a name to each size symbol in e. */
static void name_sizes_in(CuFn *f, StrMap *taken, const Expr *e) {
    if (!e || e->kind == EX_CONST) return;
    if (e->kind != EX_SYM) {
        name_sizes_in(f, taken, e->a);
        name_sizes_in(f, taken, e->b);
    } else if (!f->sym[e->sym->id]) {
        f->sym[e->sym->id] = take_unique_name(f, taken, e->sym->name);
    }
}

/* Gives a C name to each size symbol that the statements use. */
static void name_sizes(CuFn *f, StrMap *taken, const LStmt *s) {
    for (; s; s = s->next) {
        name_sizes_in(f, taken, s->extent);
        name_sizes_in(f, taken, s->n_chunks);
        name_sizes_in(f, taken, s->size);
        for (int i = 1; loop_is_access(s) && i < s->buf->rank; i++)
            name_sizes_in(f, taken, s->buf->dim[i]);
        if (loop_has_body(s)) name_sizes(f, taken, s->body);
    }
}

/* Gives a C name to each register that the statements define, from its hint and number. */
static void name_registers(CuFn *f, StrMap *taken, const LStmt *s) {
    for (; s; s = s->next) {
        const LReg *r = loop_result(s);
        if (r && !f->reg[r->id]) /* halves of a loop share theirs (heads.c) */
            f->reg[r->id] = take_unique_name(
                f, taken, arena_printf(f->a, "%s_%d", r->hint && *r->hint ? r->hint : "v", r->id));
        if (loop_has_body(s)) name_registers(f, taken, s->body);
    }
}

/* Gives C names to the kernel's arguments, local arrays, sizes and registers, all different. */
void cu_assign_names(CuFn *f) {
    StrMap taken = {0};
    const LKernel *k = f->k;
    f->reg = NEWN(f->a, const char *, k->n_regs + 1);
    f->buf = NEWN(f->a, const char *, k->bufs.n + 1);
    f->local = NEWN(f->a, const char *, k->locals.n + 1);
    f->sym = NEWN(f->a, const char *, f->cu->plan->m->syms.n + 1);
    strmap_put(f->a, &taken, k->name, f);
    for (int i = 0; i < k->bufs.n; i++) f->buf[i] = take_unique_name(f, &taken, k->bufs.v[i]->name);
    for (int i = 0; i < k->locals.n; i++)
        f->local[i] = take_unique_name(f, &taken, k->locals.v[i]->name);
    name_sizes(f, &taken, k->body);
    name_registers(f, &taken, k->body);
}
