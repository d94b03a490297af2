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

int loop_count_accesses(const LStmt *s, const LBuf *b) {
    int n = 0;
    for (; s; s = s->next) {
        n += loop_is_access(s) && s->buf == b;
        if (loop_has_body(s)) n += loop_count_accesses(s->body, b);
    }
    return n;
}
