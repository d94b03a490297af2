/* The cuda target on the simulated device: every case of op_cases.h, with its gradients,
 * against the interpreter, threads running in several orders. */
#include "ctx_test.h"

#include <stdlib.h>

#include "cuda_executor.h"
#include "frontend/fe.h"
#include "op_cases.h"
#include "op_matrix.h"
#include "passes/threshold.h"

/* Graphs of tests are small: so are their hubs, and the parts of rows, and pieces of sums, that
 * several blocks have. */
static void small_hubs(Ctx *c, bool parts) {
    int *to = NEWN(c->a, int, N_PASS_THRESHOLDS);
    for (int t = 0; t < N_PASS_THRESHOLDS; t++) to[t] = pass_threshold(c, (PassThreshold)t);
    to[PASS_T_HUB_ENTRIES] = 4;
    if (parts) to[PASS_T_PIECE_ROWS] = 1;
    if (parts) to[PASS_T_SPLIT_PART] = 2, to[PASS_T_SPLIT_FROM] = 1, to[PASS_T_SPLIT_FEW_PART] = 1;
    c->thresholds = to;
}

typedef struct {
    int level;
    uint64_t seed;
} Run;

static void matrix(Ctx *c, void *arg) {
    const Run *r = arg;
    OpCases *cs = op_matrix_cases(c, r->level);
    small_hubs(c, true);
    CpuExec *x = cpu_exec_passes(c, cs->m, r->level) ? cuda_exec_build(c, cs->m, "") : NULL;
    diag_print_all(c, stderr, false);
    CHECK(x != NULL);
    if (!x) return;
    StrBuf why = sb_new(c->a);
    cuda_exec_seed(x, r->seed);
    bool agrees = op_matrix_agrees(c, x, r->level, &why);
    CHECK_MSG(agrees, "%s", why.s ? why.s : "");
}

static void check_level(int level, uint64_t seed) {
    Run r = {level, seed};
    with_ctx(matrix, &r);
}

TEST(every_case_at_O0) {
    check_level(0, 1);
}

TEST(every_case_at_O2) {
    check_level(2, 2);
}

TEST(every_case_in_bf16) {
    check_level(2 | CPU_EXEC_ALL_BF16, 3);
}

TEST(every_case_in_f16) {
    check_level(2 | CPU_EXEC_ALL_F16, 4);
}

/* ---- what a step costs beside its kernels ------------------------------------------------ */
typedef struct {
    const char *name;
    int most;   /* kernels and library calls of a training step, as it runs before it is recorded */
    int ends;   /* of them products that end with what would be further steps, */
    int groups; /* and calls that make several products */
    bool whole; /* of all of Cora: whether several are made by one call hangs on its sizes */
} Model;

static const Model models[] = {
    {"models/gcn", 14, 0, 0, false},          {"models/sage", 15, 1, 2, false},
    {"models/gat", 20, 0, 0, false},          {"models/gin", 24, 3, 0, false},
    {"tests/cudasim/groups", 32, 0, 6, true}, {"tests/cudasim/auc", 13, 0, 0, false}};

static void count_steps(CpuExec *x, const Model *model) {
    const char *name = model->name;
    cudasim_counters *n = cuda_exec_counters(x), first = *n, zero = {0};
    CHECK(cpu_exec_run(x, "train"));
    int64_t made = n->launches - first.launches + n->library_calls - first.library_calls;
    CHECK_MSG(made <= 2 * model->most, "%s: %lld of two trainers", name, (long long)made);
    CHECK_MSG(n->ends - first.ends == 2 * model->ends, "%s: %lld ends", name,
              (long long)(n->ends - first.ends));
    CHECK_MSG(n->groups - first.groups == 2 * model->groups, "%s: %lld calls for several", name,
              (long long)(n->groups - first.groups));
    CHECK(n->synchronisations == first.synchronisations);
    /* Memory is taken once: by products of a second stream. */
    CHECK(n->device_to_host == first.device_to_host && n->allocations - first.allocations <= 4);
    CHECK(cpu_exec_run(x, "train")); /* records */
    *n = zero;
    for (int i = 0; i < 2; i++) CHECK(cpu_exec_run(x, "train"));
    /* of two trainers: inputs go up with one copy, the rest is one launch */
    CHECK_MSG(n->synchronisations == 0 && n->allocations == 0 && n->device_to_host == 0, "%s",
              name);
    CHECK_MSG(n->launches == 0 && n->library_calls == 0 && n->fills == 0, "%s", name);
    CHECK_MSG(n->graph_launches == 4 && n->host_to_device == 4, "%s: %lld graphs, %lld copies",
              name, (long long)n->graph_launches, (long long)n->host_to_device);
}

/* An evaluation, rankings too, is one launch: what it found is read when somebody asks. */
static void count_evaluation(CpuExec *x, const char *name) {
    cudasim_counters *n = cuda_exec_counters(x), zero = {0};
    for (int i = 0; i < 2; i++) CHECK(cpu_exec_run(x, "eval")); /* the second one records */
    *n = zero;
    CHECK(cpu_exec_run(x, "eval"));
    CHECK_MSG(n->synchronisations == 0 && n->allocations == 0 && n->device_to_host == 0, "%s",
              name);
    CHECK_MSG(n->graph_launches == 2 && n->launches == 0 && n->library_calls == 0, "%s", name);
}

static void model_steps(Ctx *c, void *arg) {
    const Model *model = arg;
    const char *name = model->name, *dirs[] = {"models"};
    FeOptions fe = {.dirs = dirs, .n_dirs = 1};
    Module *m = fe_compile(c, arena_printf(c->a, "%s.gnn", name), &fe);
    small_hubs(c, false); /* parts are launches of their own */
    CpuExec *x = m && cpu_exec_train_passes(c, m, 2) ? cuda_exec_build(c, m, "-O1") : NULL;
    diag_print_all(c, stderr, false);
    const char *data = "models/data/cora";
    if (!model->whole) {
        const char *some = arena_printf(c->a, "%s/some", cpu_exec_dir(c));
        CHECK(!system(arena_printf(c->a, "tests/cudasim/some.py %s 300 %s", data, some)));
        data = some;
    }
    CHECK(x && cpu_exec_load(x, data, 7, 0.01));
    if (x) count_steps(x, model);
    if (x) count_evaluation(x, name);
}

TEST(a_step_waits_for_nothing_and_is_one_launch) {
    for (size_t i = 0; i < COUNT(models); i++) with_ctx(model_steps, &models[i]);
}

TEST_MAIN()
