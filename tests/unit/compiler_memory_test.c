/* The whole compiler, from a .gnn file to LLVM IR and the host driver, with its n-th block
 * of memory refused, for every n: ctx_run says so, and nothing stays behind. */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "frontend/fe.h"
#include "passes/pass.h"
#include "compiler.h"
#include "ctx_test.h"

enum { BLOCK_BYTES = 16 * 1024 };
/* Of the blocks one in so many: a build with sanitizers takes five times as long. */
#ifdef HAS_ASAN
enum { EACH = 4 };
#else
enum { EACH = 1 };
#endif

typedef struct {
    const char *path;
    bool done;
} Job;

static Module *optimised(Ctx *c, const Job *j) {
    static const char *const dirs[] = {"models"};
    const FeOptions fe = {.dirs = dirs, .n_dirs = 1};
    const PassOptions passes = {.verify_each = true};
    Module *m = fe_compile(c, j->path, &fe);
    return m && pass_run_all(c, m, pass_pipeline_named(2, false), &passes) ? m : NULL;
}

static void print_all(Ctx *c, const Plan *p) {
    StrBuf b = sb_new(c->a);
    module_print(&b, p->m);
    plan_print(&b, p);
    for (int i = 0; i < p->kernels.n; i++) loop_print(&b, p->m, p->kernels.v[i]);
}

static void run(Ctx *c, void *arg) {
    Job *j = arg;
    const TargetOptions cpu = {.opt_level = 0, .debug_info = true};
    Module *m = optimised(c, j);
    Plan *p = m ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
    if (!p || !plan_verify(c, p)) return;
    print_all(c, p);
    j->done = host_emit(c, p, "/dev/null") &&
              target_find("cpu")->emit_kernels(c, p, &cpu, EMIT_IR_TEXT, "/dev/null");
}

/* True when `blocks` blocks are enough. */
static bool compiles_in(const char *path, long blocks) {
    FewBlocks some;
    const Allocator from = few_blocks(&some, blocks, BLOCK_BYTES);
    Job j = {.path = path};
    Ctx c;
    bool ran = false;
    if (ctx_init(&c, &from)) {
        ran = ctx_run(&c, run, &j);
        CHECK_MSG(ran == j.done, "%s: block %ld: failed otherwise", path, blocks);
        ctx_free(&c);
    }
    CHECK_MSG(some.live == 0, "%s: block %ld: %ld blocks stay", path, blocks, some.live);
    return ran;
}

static void every_block_of(const char *path) {
    long n = 0;
    while (n < 2000 && !compiles_in(path, n)) n += EACH;
    CHECK_MSG(n > 10 && n < 2000, "%s: %ld blocks", path, n);
}

TEST(every_block_refused_for_gcn) {
    every_block_of("models/gcn.gnn");
}

TEST(every_block_refused_for_gat) {
    every_block_of("models/gat.gnn");
}

TEST(every_block_refused_for_typed_edges) {
    every_block_of("tests/oracle/hetero_sage.gnn");
}

TEST_MAIN()
