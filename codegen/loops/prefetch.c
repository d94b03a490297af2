/* Rows that entries gather are asked for before they come.
 *
 *     for %e in segment ptr[%v] {              for %e in segment ptr[%v] prefetch 8 {
 *       %s = load src[%e]               =>       ..
 *       for %f in F vector { .. load z[%s, %f] .. }
 *     }
 *
 * A row at a computed place is in no cache, and without a hint each entry waits for memory
 * (codegen/cpu/prefetch.c).  4, 8 and 16 entries ahead measured the same. */
#include "codegen/loops/loops.h"

/* Does an entry look anything up by an index of its own, and a row at that? */
static bool gathers(const LStmt *s) {
    bool index = false, loop = false;
    for (; s; s = s->next) {
        index |= s->kind == L_LOAD && (s->buf->kind == LB_MAP_IDX || s->buf->kind == LB_MAP_PERM);
        loop |= s->kind == L_FOR;
    }
    return index && loop;
}

static bool all(LStmt *s, int ahead) {
    bool any = false;
    for (; s; s = s->next) {
        bool elements = s->kind == L_FOR && (s->range == LR_SEGMENT || s->sched.parallel);
        if (elements && gathers(s->body)) s->sched.prefetch = ahead, any = true;
        any |= all(s->body, ahead);
    }
    return any;
}

static bool change(Loops *l, LKernel *k) {
    int ahead = pass_threshold(l->c, PASS_T_PREFETCH_AHEAD);
    return l->machine.prefetches && ahead && all(k->body, ahead);
}

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    return loop_pass_each(l, change);
}

const Pass loop_pass_prefetch = {
    .name = "prefetch",
    .summary = "rows that entries gather are asked for before they come",
    .run_loops = run,
};
