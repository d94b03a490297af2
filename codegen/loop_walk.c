/* Questions about statements that several targets ask. */
#include "codegen/loop.h"

bool loop_declares(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_LOCAL && s->buf == b) || (loop_has_body(s) && loop_declares(s->body, b)))
            return true;
    return false;
}

bool loop_computes(const LStmt *s, const LReg *r) {
    for (; s; s = s->next)
        if (((s->kind == L_LET || s->kind == L_LOAD) && s->dst == r) ||
            (loop_has_body(s) && loop_computes(s->body, r)))
            return true;
    return false;
}

bool loop_defines(const LStmt *s, const LReg *r) {
    for (; s; s = s->next) {
        bool value = s->kind == L_LET || s->kind == L_LOAD;
        if ((value && s->dst == r) || (s->kind == L_FOR && s->var == r)) return true;
        if (loop_has_body(s) && loop_defines(s->body, r)) return true;
    }
    return false;
}

bool loop_loads(const LStmt *s, const LBuf *b) {
    for (; s; s = s->next)
        if ((s->kind == L_LOAD && s->buf == b) || (loop_has_body(s) && loop_loads(s->body, b)))
            return true;
    return false;
}

int loop_count_accesses(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        n += loop_is_access(s) && s->buf == b;
        if (loop_has_body(s)) n += loop_count_accesses(s->body, b);
    }
    return n;
}

int loop_count_segments(const LStmt *s) {
    int n = 0;
    for (; s; s = s->next) {
        n += s->kind == L_FOR && s->range == LR_SEGMENT;
        if (loop_has_body(s)) n += loop_count_segments(s->body);
    }
    return n;
}

/* ---- order ------------------------------------------------------------------------- */
bool loop_reads(const LStmt *s, const LReg *r) {
    if (s->src == r || s->cond == r || s->at == r) return true;
    for (int i = 0; i < s->n_arg; i++)
        if (s->arg[i] == r) return true;
    for (int i = 0; loop_is_access(s) && i < s->buf->rank; i++)
        if (s->idx[i] == r) return true;
    for (const LStmt *in = loop_has_body(s) ? s->body : NULL; in; in = in->next)
        if (loop_reads(in, r)) return true;
    return false;
}

static bool touches(const LStmt *s, const LBuf *b, bool only_writes) {
    bool own = (loop_is_access(s) || s->kind == L_LOCAL) && s->buf == b;
    if (own && !(only_writes && s->kind == L_LOAD)) return true;
    for (const LStmt *in = loop_has_body(s) ? s->body : NULL; in; in = in->next)
        if (touches(in, b, only_writes)) return true;
    return false;
}

static bool conflicts(const LStmt *x, const LStmt *y) {
    bool any = loop_is_access(x) || x->kind == L_LOCAL;
    if (any && touches(y, x->buf, x->kind == L_LOAD)) return true;
    for (const LStmt *in = loop_has_body(x) ? x->body : NULL; in; in = in->next)
        if (conflicts(in, y)) return true;
    return false;
}

bool loop_depends(const LStmt *later, const LStmt *earlier) {
    bool value = earlier->kind == L_LET || earlier->kind == L_LOAD;
    return (value && loop_reads(later, earlier->dst)) || conflicts(later, earlier);
}
