/* Symbolic sizes.  A sum or product is kept as a polynomial: a sum of terms, each
 * a constant times a sorted product of atoms (a symbol, or a ceildiv, max or min
 * of two polynomials).  Terms are sorted too, so two expressions are equal as
 * polynomials exactly when their trees are equal.  Symbols sort by name, so the
 * text form does not depend on the order in which they were made.
 *
 * Constants saturate at +-2^63: a size that large fails at allocation, with a
 * clear message, not by wrapping into a small one. */
#include "ir/ir.h"

#include <assert.h>
#include <string.h>

typedef struct {
    int64_t c;
    int n;
    const Expr **atom; /* sorted */
} Term;
typedef VEC(Term) Poly;
enum { MAX_TERMS = 1024 };

/* x * y, saturating. */
static int64_t sat_mul(int64_t x, int64_t y) {
    int64_t z;
    if (!__builtin_mul_overflow(x, y, &z)) return z;
    return (x < 0) == (y < 0) ? INT64_MAX : -INT64_MAX;
}

/* x + y, saturating. */
static int64_t sat_add(int64_t x, int64_t y) {
    int64_t z;
    if (!__builtin_add_overflow(x, y, &z)) return z;
    return x > 0 ? INT64_MAX : -INT64_MAX;
}

/* ceil(x / y); 0 where y is not positive: sizes are never negative. */
static int64_t ceildiv(int64_t x, int64_t y) {
    if (y <= 0 || x <= 0) return 0;
    return (x - 1) / y + 1;
}

/* ---- order ---------------------------------------------------------------- */
/* Compares two expressions in canonical form: 0 where they are equal, else a negative or a positive
 * number, by a total order. */
static int compare(const Expr *x, const Expr *y) {
    if (x == y) return 0;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    switch (x->kind) {
    case EX_CONST:
        return x->c < y->c ? -1 : x->c > y->c;
    case EX_SYM:
        return x->sym == y->sym ? 0 : strcmp(x->sym->name, y->sym->name);
    default:
        break;
    }
    int first = compare(x->a, y->a);
    return first ? first : compare(x->b, y->b);
}

/* The order of two terms. Those of higher degree come first, so the constant is last. */
static int compare_terms(const Term *x, const Term *y) {
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    for (int i = 0; i < x->n; i++) {
        int c = compare(x->atom[i], y->atom[i]);
        if (c) return c;
    }
    return 0;
}

/* Whether two expressions are equal as polynomials. */
bool expr_eq(const Expr *x, const Expr *y) {
    return compare(x, y) == 0;
}

/* Whether the expression is a constant. */
bool expr_is_const(const Expr *x, int64_t *c) {
    if (x->kind != EX_CONST) return false;
    if (c) *c = x->c;
    return true;
}

/* Whether the expression depends on a number of rows. */
bool expr_counts_rows(const Expr *x) {
    if (!x || x->kind == EX_CONST) return false;
    if (x->kind == EX_SYM) return x->sym->of && x->sym->of->kind != SP_DIM;
    return expr_counts_rows(x->a) || expr_counts_rows(x->b);
}

/* ---- trees to polynomials and back -------------------------------------------- */
/* A new node. */
static const Expr *new_node(Arena *a, ExprKind k, const Expr *x, const Expr *y) {
    Expr *e = NEW(a, Expr);
    *e = (Expr){.kind = k, .a = x, .b = y};
    return e;
}

/* A constant. */
const Expr *expr_const(Arena *a, int64_t c) {
    Expr *e = NEW(a, Expr);
    *e = (Expr){.kind = EX_CONST, .c = c};
    return e;
}

/* A symbol. */
const Expr *expr_sym(Arena *a, const Sym *s) {
    Expr *e = NEW(a, Expr);
    *e = (Expr){.kind = EX_SYM, .sym = s};
    return e;
}

/* The number of factors of a product. */
static int count_atoms(const Expr *x) {
    int n = 1;
    for (; x->kind == EX_MUL; x = x->a) n++;
    return n - (x->kind == EX_CONST);
}

/* A product as a term. The product is ((c * atom) * atom) ..: its leaves are read from the right.
 */
static Term term_of(Arena *a, const Expr *x) {
    Term t = {.c = 1, .n = count_atoms(x)};
    t.atom = NEWN(a, const Expr *, (size_t)t.n);
    int i = t.n;
    for (; x->kind == EX_MUL; x = x->a) t.atom[--i] = x->b;
    if (x->kind == EX_CONST)
        t.c = x->c;
    else
        t.atom[--i] = x;
    assert(i == 0);
    return t;
}

/* Adds the terms of a sum, ((term + term) + term) .., to a polynomial. */
static void add_terms(Arena *a, Poly *p, const Expr *x) {
    int first = p->n;
    for (; x->kind == EX_ADD; x = x->a) vec_push(a, p, term_of(a, x->b));
    vec_push(a, p, term_of(a, x));
    for (int i = first, j = p->n - 1; i < j; i++, j--) {
        Term t = p->v[i];
        p->v[i] = p->v[j];
        p->v[j] = t;
    }
}

/* Sorts the terms of a sum; by merging, since hostile text may have long sums. tmp: room for n
 * terms. */
static void sort_terms(Term *v, Term *tmp, int n) {
    if (n < 2) return;
    int h = n / 2, i = 0, j = h, k = 0;
    sort_terms(v, tmp, h);
    sort_terms(v + h, tmp, n - h);
    while (i < h || j < n)
        tmp[k++] = j == n || (i < h && compare_terms(&v[i], &v[j]) <= 0) ? v[i++] : v[j++];
    memcpy(v, tmp, (size_t)n * sizeof *v);
}

/* A term as an expression. */
static const Expr *tree_of_term(Arena *a, const Term *t) {
    const Expr *e = t->c != 1 || t->n == 0 ? expr_const(a, t->c) : NULL;
    for (int i = 0; i < t->n; i++) e = e ? new_node(a, EX_MUL, e, t->atom[i]) : t->atom[i];
    return e;
}

/* A polynomial as an expression in canonical form. */
static const Expr *tree_of(Arena *a, Poly *p) {
    sort_terms(p->v, NEWN(a, Term, (size_t)p->n), p->n);
    const Expr *sum = NULL;
    for (int i = 0; i < p->n;) {
        Term t = p->v[i++];
        for (; i < p->n && compare_terms(&t, &p->v[i]) == 0; i++) t.c = sat_add(t.c, p->v[i].c);
        if (t.c == 0) continue;
        const Expr *e = tree_of_term(a, &t);
        sum = sum ? new_node(a, EX_ADD, sum, e) : e;
    }
    return sum ? sum : expr_const(a, 0);
}

/* The product of two terms: their factors merged in canonical order, their coefficients multiplied.
 */
static Term multiply_terms(Arena *a, const Term *x, const Term *y) {
    Term t = {.c = sat_mul(x->c, y->c), .n = x->n + y->n};
    t.atom = NEWN(a, const Expr *, (size_t)t.n);
    int i = 0, j = 0, k = 0;
    while (k < t.n)
        t.atom[k++] = j == y->n || (i < x->n && compare(x->atom[i], y->atom[j]) <= 0)
                          ? x->atom[i++]
                          : y->atom[j++];
    return t;
}

/* ---- constructors --------------------------------------------------------------- */
/* x + y. */
const Expr *expr_add(Arena *a, const Expr *x, const Expr *y) {
    if (expr_is_const(x, NULL) && expr_is_const(y, NULL)) return expr_const(a, sat_add(x->c, y->c));
    Poly p = {0};
    add_terms(a, &p, x);
    add_terms(a, &p, y);
    return tree_of(a, &p);
}

/* The number of terms of a sum. */
static int count_terms(const Expr *x) {
    int n = 1;
    for (; x->kind == EX_ADD; x = x->a) n++;
    return n;
}

/* Adds a product of long sums to a polynomial as one atom. Multiplied out, eight dimensions of
 * sixty terms each would fill the memory. Such products are equal only when their factors are. */
static void opaque_term(Arena *a, Poly *p, const Expr *x) {
    Term t = {.c = 1, .n = 1, .atom = NEWN(a, const Expr *, 1)};
    t.atom[0] = x;
    vec_push(a, p, t);
}

/* x * y. */
const Expr *expr_mul(Arena *a, const Expr *x, const Expr *y) {
    if (expr_is_const(x, NULL) && expr_is_const(y, NULL)) return expr_const(a, sat_mul(x->c, y->c));
    if (expr_is_const(x, NULL) && x->c == 1) return y;
    if (expr_is_const(y, NULL) && y->c == 1) return x;
    Poly p = {0}, q = {0}, r = {0};
    bool expand = (int64_t)count_terms(x) * count_terms(y) <= MAX_TERMS;
    if (expand || count_terms(x) == 1)
        add_terms(a, &p, x);
    else
        opaque_term(a, &p, x);
    if (expand || count_terms(y) == 1)
        add_terms(a, &q, y);
    else
        opaque_term(a, &q, y);
    for (int i = 0; i < p.n; i++)
        for (int j = 0; j < q.n; j++) vec_push(a, &r, multiply_terms(a, &p.v[i], &q.v[j]));
    return tree_of(a, &r);
}

/* x / d where d divides every coefficient, else NULL. (A sum with a negative coefficient may be
 * negative, where rounding is not plain division.) */
static const Expr *divide_exactly(Arena *a, const Expr *x, int64_t d) {
    Poly p = {0};
    add_terms(a, &p, x);
    for (int i = 0; i < p.n; i++) {
        if (p.v[i].c < 0 || p.v[i].c % d) return NULL;
        p.v[i].c /= d;
    }
    return tree_of(a, &p);
}

/* ceil(x / y). */
const Expr *expr_ceildiv(Arena *a, const Expr *x, const Expr *y) {
    int64_t n, d;
    if (expr_is_const(y, &d) && d > 0) {
        if (expr_is_const(x, &n)) return expr_const(a, ceildiv(n, d));
        const Expr *q = divide_exactly(a, x, d);
        if (q) return q;
    }
    return new_node(a, EX_CEILDIV, x, y);
}

/* The maximum or minimum (k) of two expressions, simplified where they are equal or constant; else
 * with its operands in canonical order. */
static const Expr *extremum(Arena *a, ExprKind k, const Expr *x, const Expr *y) {
    int order = compare(x, y);
    if (order == 0) return x;
    if (expr_is_const(x, NULL) && expr_is_const(y, NULL))
        return (x->c > y->c) == (k == EX_MAX) ? x : y;
    return order < 0 ? new_node(a, k, x, y) : new_node(a, k, y, x);
}

/* max(x, y). */
const Expr *expr_max(Arena *a, const Expr *x, const Expr *y) {
    return extremum(a, EX_MAX, x, y);
}

/* min(x, y). */
const Expr *expr_min(Arena *a, const Expr *x, const Expr *y) {
    return extremum(a, EX_MIN, x, y);
}

/* The value of the expression; sym_values: value of each symbol, by Sym.id. */
int64_t expr_eval(const Expr *x, const int64_t *sym_values) {
    if (x->kind == EX_CONST) return x->c;
    if (x->kind == EX_SYM) return sym_values[x->sym->id];
    int64_t p = expr_eval(x->a, sym_values), q = expr_eval(x->b, sym_values);
    switch (x->kind) {
    case EX_ADD:
        return sat_add(p, q);
    case EX_MUL:
        return sat_mul(p, q);
    case EX_CEILDIV:
        return ceildiv(p, q);
    case EX_MAX:
        return p > q ? p : q;
    default:
        return p < q ? p : q;
    }
}

/* The expression with the values of symbols that are not negative. */
const Expr *expr_bind(Arena *a, const Expr *x, const int64_t *sym_values) {
    if (x->kind == EX_CONST) return x;
    if (x->kind == EX_SYM)
        return sym_values[x->sym->id] >= 0 ? expr_const(a, sym_values[x->sym->id]) : x;
    const Expr *p = expr_bind(a, x->a, sym_values), *q = expr_bind(a, x->b, sym_values);
    switch (x->kind) {
    case EX_ADD:
        return expr_add(a, p, q);
    case EX_MUL:
        return expr_mul(a, p, q);
    case EX_CEILDIV:
        return expr_ceildiv(a, p, q);
    case EX_MAX:
        return expr_max(a, p, q);
    default:
        return expr_min(a, p, q);
    }
}

/* ---- text ------------------------------------------------------------------------- */
/* Prints a function of two expressions. */
static void print_call(StrBuf *b, const char *fn, const Expr *x) {
    sb_printf(b, "%s(", fn);
    expr_print(b, x->a);
    sb_puts(b, ", ");
    expr_print(b, x->b);
    sb_puts(b, ")");
}

/* The sign and size of the first coefficient. */
static int64_t leading(const Expr *x) {
    while (x->kind == EX_MUL) x = x->a;
    return x->kind == EX_CONST ? x->c : 1;
}

/* Prints a factor, in parentheses if it is a sum. */
static void print_factor(StrBuf *b, const Expr *x) {
    bool sum = x->kind == EX_ADD;
    if (sum) sb_puts(b, "(");
    expr_print(b, x);
    if (sum) sb_puts(b, ")");
}

/* Prints a term. `negate`: prints -x; the caller has written the minus sign. */
static void print_term(StrBuf *b, const Expr *x, bool negate) {
    if (x->kind == EX_MUL && negate && x->a->kind == EX_CONST && x->a->c == -1) {
        print_factor(b, x->b);
        return;
    }
    if (x->kind == EX_MUL) {
        print_term(b, x->a, negate);
        sb_puts(b, "*");
        print_factor(b, x->b);
        return;
    }
    if (x->kind == EX_CONST)
        sb_printf(b, "%lld", (long long)(negate ? -x->c : x->c));
    else
        expr_print(b, x);
}

/* Prints the expression. */
void expr_print(StrBuf *b, const Expr *x) {
    switch (x->kind) {
    case EX_SYM:
        ir_name_print(b, x->sym->name);
        return;
    case EX_CEILDIV:
        print_call(b, "ceildiv", x);
        return;
    case EX_MAX:
        print_call(b, "max", x);
        return;
    case EX_MIN:
        print_call(b, "min", x);
        return;
    case EX_ADD: {
        bool minus = leading(x->b) < 0 && leading(x->b) != INT64_MIN;
        expr_print(b, x->a);
        sb_puts(b, minus ? " - " : " + ");
        print_term(b, x->b, minus);
        return;
    }
    default:
        print_term(b, x, false);
    }
}

static const char *const c_ops[] = {[EX_ADD] = "+", [EX_MUL] = "*"};
static const char *const c_fns[] = {
    [EX_CEILDIV] = "rt_ceildiv", [EX_MAX] = "rt_max64", [EX_MIN] = "rt_min64"};

/* Prints the expression in C. */
void expr_print_c(StrBuf *b, const Expr *x, const char *sym_array) {
    bool infix = x->kind == EX_ADD || x->kind == EX_MUL;
    if (x->kind == EX_CONST) {
        sb_printf(b, "%lld", (long long)x->c);
        return;
    }
    if (x->kind == EX_SYM) {
        sb_printf(b, "%s[%d]", sym_array, x->sym->id);
        return;
    }
    sb_printf(b, "%s(", infix ? "" : c_fns[x->kind]);
    expr_print_c(b, x->a, sym_array);
    if (infix)
        sb_printf(b, " %s ", c_ops[x->kind]);
    else
        sb_puts(b, ", ");
    expr_print_c(b, x->b, sym_array);
    sb_puts(b, ")");
}
