/* Which threads do what: the target says (Target.arrange), and the kernel's text has it.
 *
 *     kernel k {                           kernel k by teams lanes 4 pack 4 columns 8 {
 *       for %v in N parallel {               for %v in N parallel {
 *         local acc: f32[16]                   local acc: f32[16]
 *         for %e in segment p[%v] {     =>     for %e in segment p[%v] by ways {
 *
 * A kernel that says it already is left as it is. */
#include "codegen/loops/loops.h"

static bool run(PassCtx *p, Loops *l) {
    (void)p;
    for (int i = 0; i < l->k.n && l->on->arrange; i++) {
        if (l->k.v[i]->threads.by) continue;
        l->k.v[i] = l->on->arrange(l, l->k.v[i]);
        loop_number(l->k.v[i]);
    }
    return true;
}

const Pass loop_pass_schedule = {
    .name = "schedule",
    .summary = "which threads of a device take a kernel's rows, and share their loops",
    .run_loops = run,
};
