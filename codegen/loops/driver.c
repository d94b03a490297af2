/* Runs passes over the loop IR by name, verifies after each, and blames the one that broke it. */
#include "codegen/loops/loops.h"

#include <string.h>

static const LoopPass *const passes[] = {
#define LOOP_PASS(id) &loop_pass_##id,
#include "codegen/loops/passes.def"
#undef LOOP_PASS
};

const LoopPass *loop_pass_at(int i) {
    return i < (int)COUNT(passes) ? passes[i] : NULL;
}

static const LoopPass *find(const char *name, size_t n) {
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strlen(passes[i]->name) == n && memcmp(passes[i]->name, name, n) == 0) return passes[i];
    return NULL;
}

const LoopPass *loop_pass_find(const char *name) {
    return find(name, strlen(name));
}

Loops loop_pass_begin(Ctx *c, const Module *m, const Target *on, const LKernel *k) {
    Loops l = {.c = c, .a = c->a, .m = m, .on = on, .columns = on->columns};
    vec_push(c->a, &l.k, loop_copy(c->a, k));
    return l;
}

static bool run_one(Loops *l, const LoopPass *p) {
    for (int i = 0; i < l->k.n; i++) {
        if (!p->run(l, l->k.v[i])) continue;
        loop_number(l->k.v[i]);
        if (loop_verify(l->c, l->m, l->k.v[i])) continue;
        diag_note(l->c, (Span){0}, "it was found after the pass '%s'", p->name);
        return false;
    }
    return true;
}

bool loop_pass_run(Loops *l, const char *names) {
    for (size_t n; *names; names += n + (names[n] == ',')) {
        n = strcspn(names, ",");
        const LoopPass *p = find(names, n);
        if (!p) {
            diag_add(l->c, DIAG_E0511, (Span){0}, "there is no pass named '%.*s'", (int)n, names);
            return false;
        }
        if (!run_one(l, p)) return false;
    }
    return true;
}
