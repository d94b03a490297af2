/* The pickle machine: a stack, marks on it, and a memo (PEP 307, PEP 3154, and
 * CPython's Lib/pickletools.py, which documents every opcode). */
#include "pickle.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    RtPool *pool;
    const char *name;
    const uint8_t *at, *end;
    RtPy **stack, **memo;
    int64_t n, cap, n_marks, marks_cap, memo_cap, n_memo;
    int64_t *marks;
    RtError *err;
} Machine;

static gnnc_status bad(Machine *m, const char *what) {
    return rt_fail(m->err, GNNC_E_FORMAT, "%s: %s", m->name, what);
}

static gnnc_status no_memory(Machine *m) {
    return rt_fail_nomem(m->err, m->name);
}

/* Room for one more element; false: no memory. */
static bool grow(RtPool *pool, void *array, int64_t n, int64_t *cap, size_t size) {
    void *old, *grown;
    if (n < *cap) return true;
    memcpy(&old, array, sizeof old);
    int64_t wider = *cap ? 2 * *cap : 8;
    if (!(grown = rt_pool_alloc(pool, (size_t)wider, size))) return false;
    if (n) memcpy(grown, old, (size_t)n * size);
    memcpy(array, &grown, sizeof grown);
    *cap = wider;
    return true;
}

/* Pushes a value; NULL: there was no memory for it. */
static gnnc_status push(Machine *m, RtPy *v) {
    if (!v || !grow(m->pool, &m->stack, m->n, &m->cap, sizeof *m->stack)) return no_memory(m);
    m->stack[m->n++] = v;
    return GNNC_OK;
}

/* A value of the kind, in the pool; NULL: no memory. */
static RtPy *new_value(Machine *m, RtPyKind kind) {
    RtPy *v = RT_NEW(m->pool, RtPy);
    if (v) v->kind = kind;
    return v;
}

static gnnc_status push_new(Machine *m, RtPyKind kind) {
    return push(m, new_value(m, kind));
}

/* Pushes a whole number or truth value. */
static gnnc_status push_int(Machine *m, RtPyKind kind, int64_t i) {
    RtPy *v = new_value(m, kind);
    if (v) v->i = i;
    return push(m, v);
}

/* The top value, left in place or taken; NULL below the innermost mark. */
static RtPy *top(Machine *m) {
    int64_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;
    return m->n > floor ? m->stack[m->n - 1] : NULL;
}

/* Takes the value on top; NULL: there is none since the last mark. */
static RtPy *pop(Machine *m) {
    RtPy *v = top(m);
    if (v) m->n--;
    return v;
}

/* Adds an element to a list; false: no memory. */
static bool add_item(Machine *m, RtPy *to, RtPy *item) {
    if (!grow(m->pool, &to->v, to->n, &to->cap, sizeof *to->v)) return false;
    to->v[to->n++] = item;
    return true;
}

/* ---- operands ----------------------------------------------------------------- */
/* Little endian, n <= 8 bytes. */
static bool take(Machine *m, int n, uint64_t *v) {
    *v = 0;
    if (m->end - m->at < n) return false;
    for (int i = n - 1; i >= 0; i--) *v = *v << 8 | m->at[i];
    m->at += n;
    return true;
}

static gnnc_status truncated(Machine *m) {
    return bad(m, "the pickle is truncated");
}

/* Pushes the bytes that follow, whose number is in length_bytes bytes. */
static gnnc_status push_bytes(Machine *m, int length_bytes) {
    uint64_t n;
    if (!take(m, length_bytes, &n) || n > (uint64_t)(m->end - m->at)) return truncated(m);
    RtPy *v = new_value(m, RT_PY_STRING);
    if (v) v->s = (RtBytes){m->at, (size_t)n};
    m->at += n;
    return push(m, v);
}

/* Two's complement, n bytes; larger than 64 bits is no number of ours. */
static gnnc_status push_long(Machine *m) {
    uint64_t n, v = 0;
    if (!take(m, 1, &n)) return truncated(m);
    if (n > 8) return bad(m, "a number beyond 64 bits");
    if (!take(m, (int)n, &v)) return truncated(m);
    if (n && n < 8 && v >> (8 * n - 1)) v |= ~(uint64_t)0 << 8 * n;
    return push_int(m, RT_PY_INT, (int64_t)v);
}

/* Pushes a whole number of n bytes. */
static gnnc_status push_sized(Machine *m, int n, bool is_signed) {
    uint64_t v;
    if (!take(m, n, &v)) return truncated(m);
    return push_int(m, RT_PY_INT, is_signed ? (int32_t)(uint32_t)v : (int64_t)v);
}

/* Pushes a number of 8 bytes. */
static gnnc_status push_float(Machine *m) {
    if (m->end - m->at < 8) return truncated(m);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | *m->at++; /* big endian */
    RtPy *v = new_value(m, RT_PY_FLOAT);
    if (v) memcpy(&v->f, &bits, sizeof bits);
    return push(m, v);
}

/* Pushes the name of what a pickle imports, from "module\nname\n". It is never called. */
static gnnc_status push_global(Machine *m) {
    const uint8_t *start = m->at;
    const uint8_t *nl = memchr(start, '\n', (size_t)(m->end - start));
    const uint8_t *end = nl ? memchr(nl + 1, '\n', (size_t)(m->end - nl - 1)) : NULL;
    if (!end) return truncated(m);
    RtPy *v = new_value(m, RT_PY_GLOBAL);
    char *s = rt_pool_strndup(m->pool, (const char *)start, (size_t)(end - start));
    if (!v || !s) return no_memory(m);
    s[nl - start] = ' ';
    v->s = (RtBytes){(const uint8_t *)s, (size_t)(end - start)};
    m->at = end + 1;
    return push(m, v);
}

/* Pushes the name of what a pickle imports, from module and name on the stack. It is never
 * called. */
static gnnc_status stack_global(Machine *m) {
    RtPy *name = pop(m), *module = pop(m), *v = new_value(m, RT_PY_GLOBAL);
    if (!name || !module || name->kind != RT_PY_STRING || module->kind != RT_PY_STRING)
        return bad(m, "malformed pickle: STACK_GLOBAL");
    char *s =
        rt_pool_printf(m->pool, "%.*s %.*s", (int)(module->s.n & 0xffff), (const char *)module->s.p,
                       (int)(name->s.n & 0xffff), (const char *)name->s.p);
    if (!v || !s) return no_memory(m);
    v->s = (RtBytes){(const uint8_t *)s, strlen(s)};
    return push(m, v);
}

/* ---- the memo ------------------------------------------------------------------- */
/* Keeps the value on top under number i. */
static gnnc_status memo_put(Machine *m, uint64_t i) {
    RtPy *v = top(m);
    /* Pickles number the memo from 0 or 1 up; a leap would only cost memory. */
    if (!v || i > (uint64_t)m->n_memo + 16) return bad(m, "malformed pickle: PUT");
    while ((uint64_t)m->n_memo <= i) {
        if (!grow(m->pool, &m->memo, m->n_memo, &m->memo_cap, sizeof *m->memo)) return no_memory(m);
        m->memo[m->n_memo++] = NULL;
    }
    m->memo[i] = v;
    return GNNC_OK;
}

/* Keeps the value on top under a number, or pushes the kept one. */
static gnnc_status memo_op(Machine *m, int n_bytes, bool put) {
    uint64_t i;
    if (!take(m, n_bytes, &i)) return truncated(m);
    if (put) return memo_put(m, i);
    if (i >= (uint64_t)m->n_memo || !m->memo[i]) return bad(m, "malformed pickle: GET");
    return push(m, m->memo[i]);
}

/* ---- containers and objects ------------------------------------------------------- */
/* Marks the place from which on a list's elements follow. */
static gnnc_status push_mark(Machine *m) {
    if (!grow(m->pool, &m->marks, m->n_marks, &m->marks_cap, sizeof *m->marks)) return no_memory(m);
    m->marks[m->n_marks++] = m->n;
    return GNNC_OK;
}

/* The last n values become a tuple; n < 0: those above the mark. */
static gnnc_status push_tuple(Machine *m, int64_t n) {
    int64_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;
    if (n < 0 && m->n_marks == 0) return bad(m, "malformed pickle: no mark");
    int64_t from = n < 0 ? floor : m->n - n;
    if (from < floor) return bad(m, "malformed pickle: TUPLE");
    if (n < 0) m->n_marks--;
    RtPy *v = new_value(m, RT_PY_TUPLE);
    if (!v) return no_memory(m);
    v->n = v->cap = m->n - from;
    v->v = RT_NEWN(m->pool, RtPy *, v->n);
    if (!v->v) return no_memory(m);
    if (v->n) memcpy(v->v, m->stack + from, (size_t)v->n * sizeof *v->v);
    m->n = from;
    return push(m, v);
}

/* Values from the mark (or the last `count`) go into the container below them. */
static gnnc_status add_items(Machine *m, int64_t count, bool dict) {
    if (count < 0 && m->n_marks == 0) return bad(m, "malformed pickle: no mark");
    int64_t from = count < 0 ? m->marks[--m->n_marks] : m->n - count;
    int64_t floor = m->n_marks ? m->marks[m->n_marks - 1] : 0;
    if (from <= floor || (dict && (m->n - from) % 2)) return bad(m, "malformed pickle: APPEND");
    RtPy *to = m->stack[from - 1];
    if (dict ? to->kind != RT_PY_DICT && to->kind != RT_PY_OBJECT : to->kind != RT_PY_LIST)
        return bad(m, "malformed pickle: items for what holds none");
    for (int64_t i = from; i < m->n; i++)
        if (!add_item(m, to, m->stack[i])) return no_memory(m);
    m->n = from;
    return GNNC_OK;
}

static bool is_global(const RtPy *v, const char *name) {
    return v && v->kind == RT_PY_GLOBAL && v->s.n == strlen(name) &&
           memcmp(v->s.p, name, v->s.n) == 0;
}

/* _codecs.encode(text, "latin1"), Python 3's way to write bytes in protocol 2:
 * UTF-8 of code points below 256 back to bytes. */
static gnnc_status push_latin1(Machine *m, const RtPy *args) {
    if (args->n < 1 || args->v[0]->kind != RT_PY_STRING) return bad(m, "malformed pickle: encode");
    RtBytes s = args->v[0]->s;
    uint8_t *to = rt_pool_alloc(m->pool, s.n, 1);
    RtPy *v = new_value(m, RT_PY_STRING);
    if (!to || !v) return no_memory(m);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < 0x80) {
            to[n++] = s.p[i];
            continue;
        }
        if ((s.p[i] & 0xfc) != 0xc0 || i + 1 == s.n) return bad(m, "text that is not Latin-1");
        to[n++] = (uint8_t)(s.p[i] << 6 | (s.p[i + 1] & 63));
        i++;
    }
    v->s = (RtBytes){to, n};
    return push(m, v);
}

/* Pushes a call, unless it is one that makes bytes of a text: as an object with callee and
 * arguments. */
static gnnc_status push_object(Machine *m) {
    RtPy *args = pop(m), *callee = pop(m);
    if (!args || !callee || args->kind != RT_PY_TUPLE || callee->kind != RT_PY_GLOBAL)
        return bad(m, "malformed pickle: REDUCE");
    if (is_global(callee, "_codecs encode")) return push_latin1(m, args);
    RtPy *v = new_value(m, RT_PY_OBJECT);
    if (!v) return no_memory(m);
    v->callee = callee;
    v->args = args;
    return push(m, v);
}

/* Gives the object on top its state. */
static gnnc_status build(Machine *m) {
    RtPy *state = pop(m), *v = top(m);
    if (!state || !v || v->kind != RT_PY_OBJECT) return bad(m, "malformed pickle: BUILD");
    v->state = state;
    return GNNC_OK;
}

/* ---- the loop ----------------------------------------------------------------------- */
static gnnc_status skip(Machine *m, int n) {
    uint64_t unused;
    return take(m, n, &unused) ? GNNC_OK : truncated(m);
}

/* Does one operation of the pickle machine; those that a data file does not need are refused. */
static gnnc_status step(Machine *m, uint8_t op) {
    switch (op) {
    case 0x80:
        return skip(m, 1); /* PROTO */
    case 0x95:
        return skip(m, 8); /* FRAME */
    case '(':
        return push_mark(m);
    case ')':
        return push_new(m, RT_PY_TUPLE); /* EMPTY_TUPLE */
    case ']':
        return push_new(m, RT_PY_LIST);
    case '}':
        return push_new(m, RT_PY_DICT);
    case 'N':
        return push_new(m, RT_PY_NONE);
    case 0x88:
        return push_int(m, RT_PY_BOOL, 1);
    case 0x89:
        return push_int(m, RT_PY_BOOL, 0);
    case 'K':
        return push_sized(m, 1, false); /* BININT1 */
    case 'M':
        return push_sized(m, 2, false);
    case 'J':
        return push_sized(m, 4, true);
    case 0x8a:
        return push_long(m); /* LONG1 */
    case 'G':
        return push_float(m);
    case 'U':
    case 'C':
    case 0x8c:
        return push_bytes(m, 1); /* short string, bytes, text */
    case 'T':
    case 'B':
    case 'X':
        return push_bytes(m, 4);
    case 0x8d:
    case 0x8e:
    case 0x96:
        return push_bytes(m, 8);
    case 'q':
        return memo_op(m, 1, true);
    case 'r':
        return memo_op(m, 4, true);
    case 'h':
        return memo_op(m, 1, false);
    case 'j':
        return memo_op(m, 4, false);
    case 0x94:
        return memo_put(m, (uint64_t)m->n_memo); /* MEMOIZE */
    case 'c':
        return push_global(m);
    case 0x93:
        return stack_global(m);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_tuple(m, op - 0x84);
    case 't':
        return push_tuple(m, -1);
    case 'a':
        return add_items(m, 1, false);
    case 'e':
        return add_items(m, -1, false);
    case 's':
        return add_items(m, 2, true);
    case 'u':
        return add_items(m, -1, true);
    case 'R':
    case 0x81:
        return push_object(m); /* REDUCE, NEWOBJ */
    case 'b':
        return build(m);
    default:
        return rt_fail(m->err, GNNC_E_FORMAT, "%s: pickle opcode 0x%02x is not supported", m->name,
                       op);
    }
}

gnnc_status rt_pickle_parse(RtPool *pool, RtBytes file, const char *name, RtPy **out,
                            RtError *err) {
    Machine m = {.pool = pool, .name = name, .at = file.p, .end = file.p + file.n, .err = err};
    if (file.n < 2 || file.p[0] != 0x80) return bad(&m, "not a binary Python pickle");
    while (m.at < m.end) {
        uint8_t op = *m.at++;
        if (op == '.') {
            *out = pop(&m);
            return *out ? GNNC_OK : bad(&m, "malformed pickle: nothing in it");
        }
        gnnc_status st = step(&m, op);
        if (st != GNNC_OK) return st;
    }
    return truncated(&m);
}
