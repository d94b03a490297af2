/* One .gnn model on one data directory: the reference interpreter against what the compiler makes.
 *
 *     build/tests/random/model_check MODEL.gnn DATA [-O0] [-O2] [--stages=graph,loops,code]
 *                  [--grads] [--plain-llvm] [--passes=A,B] [--steps=N] [--weights=FILE]
 *
 * The stages, in the order in which a program is made (tests/random/stages.h):
 *     graph  the graph IR after the passes, by the same interpreter
 *     loops  the plan and its kernels, by the interpreter of codegen/loop/loop_interp.h
 *     code   compiled kernels and driver, on one and on three threads (tests/cpu_executor.h), and
 *            N steps with the recipe's optimizer
 * The first two are made of every variant of the program.  --grads: once more, with gradients as
 * outputs instead of updates.  --plain-llvm: kernels go through LLVM at its -O0.  --passes: by this
 * pipeline instead, for bisection.
 * `-O2 --list-passes` prints a pipeline.  --weights compares nothing: it prints what @train and
 * @eval give with these weights, by the interpreter, as `train loss 0.5`.
 *
 * Exit status: 0 they agree; 1 they differ, with a line `-O2 loops train: loss[0] is .., not ..`;
 * 2 the model does not compile, or its data do not fit; a crash shows as a signal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/pass.h"
#include "stages.h"

static int check_code(Ctx *c, const Check *k, int level) {
    Module *seen = check_reference(c, k, true), *m = check_model(c, k);
    if (!seen || !m) return INVALID;
    CpuOracle o = {check_interp(c, k, seen, false, 0), check_interp(c, k, seen, true, 0), {0}};
    if (!o.rounded || !o.exact) return INVALID;
    for (int i = 0; i < CPU_NOISY; i++)
        if (!(o.noisy[i] = check_interp(c, k, seen, false, (uint64_t)i + 1))) return INVALID;
    if (!cpu_exec_train_passes(c, m, level)) return check_differs(level, "code", "the passes fail");
    CpuExec *x = cpu_exec_build(c, m, level | (k->plain_llvm ? CPU_EXEC_PLAIN_LLVM : 0));
    if (!x) return check_differs(level, "code", "it cannot be built");
    return check_program(c, k, x, &o, seen, level);
}

static int check_level(Ctx *c, const Check *k, int level) {
    int status = check_stages(c, k, level, false);
    if (status == AGREE && k->grads) status = check_stages(c, k, level, true);
    return status == AGREE && k->stages & STAGE_CODE ? check_code(c, k, level) : status;
}

static void work(Ctx *c, void *arg) {
    Check *k = arg;
    RtError err = {""};
    RtAlloc from = rt_alloc_default();
    if (rt_dataset_open(&from, k->data, true, &k->set, &err) != GNNC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return;
    }
    k->status = k->weights ? check_print(c, k) : AGREE;
    for (int i = 0; i < k->n_levels && k->status == AGREE && !k->weights; i++)
        k->status = check_level(c, k, k->levels[i]);
    rt_dataset_close(k->set);
}

/* ---- the command line ---------------------------------------------------------------------- */

static const char *value_of(const char *arg, const char *option) {
    size_t n = strlen(option);
    return strncmp(arg, option, n) == 0 ? arg + n : NULL;
}

static bool parse_stages(Check *k, const char *names) {
    k->stages = (strstr(names, "graph") ? STAGE_GRAPH : 0) |
                (strstr(names, "loops") ? STAGE_LOOPS : 0) |
                (strstr(names, "code") ? STAGE_CODE : 0);
    return k->stages != 0;
}

static bool parse_one(Check *k, const char *s) {
    const char *value;
    if ((!strcmp(s, "-O0") || !strcmp(s, "-O2")) && k->n_levels < 2)
        return k->levels[k->n_levels++] = s[2] - '0', true;
    if ((value = value_of(s, "--steps="))) return k->steps = atoi(value), true;
    if ((value = value_of(s, "--stages="))) return parse_stages(k, value);
    if ((value = value_of(s, "--passes="))) return k->passes = value, true;
    if ((value = value_of(s, "--weights="))) return k->weights = value, true;
    if (!strcmp(s, "--grads")) return k->grads = true;
    if (!strcmp(s, "--plain-llvm")) return k->plain_llvm = true;
    if (*s == '-' || k->data) return false;
    *(k->model ? &k->data : &k->model) = s;
    return true;
}

static bool parse(Check *k, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!parse_one(k, argv[i])) return false;
    if (!k->n_levels) k->levels[k->n_levels++] = 0, k->levels[k->n_levels++] = 2;
    return k->data != NULL;
}

int main(int argc, char **argv) {
    Check k = {.status = INVALID, .stages = STAGE_GRAPH | STAGE_LOOPS | STAGE_CODE};
    Ctx c;
    if (argc == 3 && !strcmp(argv[2], "--list-passes")) {
        puts(pass_pipeline_named(argv[1][2] == '0' ? 0 : 2, false));
        return AGREE;
    }
    if (!parse(&k, argc, argv)) {
        fputs(
            "usage: model_check MODEL.gnn DATA [-O0] [-O2] [--stages=..] [--grads] [--plain-llvm] "
            "[--passes=..] [--steps=N] [--weights=FILE]\n",
            stderr);
        return INVALID;
    }
    if (!ctx_init(&c, NULL)) return INVALID;
    if (!ctx_run(&c, work, &k)) k.status = INVALID;
    diag_print_all(&c, stderr, false);
    ctx_free(&c);
    return k.status;
}
