/* The host driver: every kind of step and table, accepted by the compilers at hand with all
 * warnings as errors, and hostile names kept apart. */
#include "ctx_test.h"

#include <unistd.h>

#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "passes/pass.h"

static const char program[] =
    "module \"host \\\"*/ ?\?/ test\" {\n"
    "  node paper\n"
    "  edge cites: paper -> paper\n"
    "  edge loops = self_loops(cites)\n"
    "  edge heavy = where(cites, \"keep\")\n"
    "  dim F\n"
    "  dim C\n"
    "  dim hidden = 16\n"
    "  column paper.x: csr f32[paper, F] nz x.nz\n"
    "  column paper.y: class[C]\n"
    "  column cites.w: f32[cites]\n"
    "  param \"conv.weight\": f32[F, hidden] = glorot(1, fan_in F, fan_out hidden)\n"
    "  state \"mean\": f32[hidden] = const(0)\n"
    "  streams 1\n"
    "  recipe {\n"
    "    optimizer = adam\n"
    "    lr = 0.01\n"
    "    epochs = 20\n"
    "  }\n"
    "  func @load {\n"
    "    %w = data cites.w : f32[cites]\n"
    "    %half = const 0.5 : f32\n"
    "    %k = lt %half, %w : i1[cites]\n"
    "    output \"keep\" %k\n"
    "  }\n"
    "  func @train {\n"
    "    %x = data paper.x : csr f32[paper, F]\n"
    "    %w = var \"conv.weight\" : f32[F, hidden]\n"
    "    %z = contract %x, %w : f32[paper, hidden]\n"
    "    %g = gather src(heavy) %z : f32[heavy, hidden]\n"
    "    %h = segment sum dst(heavy) %g : f32[paper, hidden]\n"
    "    %w2 = var \"conv.weight\" : f32[F, hidden]\n"
    "    %q = contract %h, %w2 : f32[paper, F]\n"
    "    %u = random 0 : f32[paper, F]\n"
    "    %m = lt %u, %q : i1[paper, F]\n"
    "    %r = rank paper 0.5 %q, %m : f32[paper, F]\n"
    "    %s = reduce sum [paper, F] %r : f32\n"
    "    %zero = const 0 : f32\n"
    "    %ok = lt %zero, %s : i1\n"
    "    print \"a \\\"sum\\\" */ of ?\?/ ranks\\n\" %s\n"
    "    assert \"positive\" %ok\n"
    "    output \"loss\" %s as loss\n"
    "    output \"pred\" %q as pred\n"
    "    output \"loss.train\" %s as loss \"loss\" train\n"
    "    %hm = reduce sum [paper] %h : f32[hidden]\n"
    "    assign \"mean\" %hm\n"
    "  }\n"
    "}\n";

static bool accepts(const char *cc, const char *path) {
    char cmd[512];
    snprintf(
        cmd, sizeof cmd,
        "if command -v %s >/dev/null; then %s -std=c17 -Wall -Wextra -Wpedantic -Werror -O1 -c "
        "-Iruntime -Iruntime/include -o /dev/null %s; fi",
        cc, cc, path);
    return system(cmd) == 0;
}

static char *read_all(Ctx *c, const char *path) {
    uint32_t f = ctx_add_file(c, path, (Span){0});
    return f == UINT32_MAX ? "" : (char *)c->sources.v[f].text;
}

static void drive(Ctx *c, void *arg) {
    (void)arg;
    Module *m = module_parse(c, ctx_add_text(c, "host.gir", program, sizeof program - 1));
    PassOptions o = {0};
    bool ok = m && pass_run_all(c, m, "lower-csr,fuse", &o);
    Plan *p = ok ? plan_of_module(c, m, NULL, SPMM_OWN, NULL) : NULL;
    char path[] = "/tmp/gnnc_host_test_XXXXXX.c";
    int fd = mkstemps(path, 2);
    CHECK(fd >= 0 && close(fd) == 0);
    if (p) p->options = "-O2 */ \"-D x=1\"";
    CHECK(p && host_emit(c, p, path));
    diag_print_all(c, stderr, false);
    CHECK(accepts("gcc", path));
    CHECK(accepts("clang-19", path));
    static const char *const part[] = {"rt_launch(",
                                       "rt_launch_balanced(",
                                       "rt_gemm_f32(",
                                       "rt_rank_f32(",
                                       "rt_build_relation(x, SP_heavy)",
                                       "rt_print(",
                                       "rt_assert(",
                                       "n[S_N_paper]",
                                       "gnnc_trainer_main_with(&model_program",
                                       ".n_metrics = 1",
                                       "RT_COL_CSR",
                                       "RT_REL_WHERE"};
    const char *text = read_all(c, path);
    for (size_t i = 0; i < COUNT(part); i++) CHECK_MSG(strstr(text, part[i]), "no %s", part[i]);
    unlink(path);
    CHECK(p && !host_emit(c, p, "/no/such/directory/driver.c"));
}

TEST(every_step_and_table) {
    with_ctx(drive, NULL);
}

static void empty(Ctx *c, void *arg) {
    (void)arg;
    Plan *p = NEW(c->a, Plan);
    p->m = module_new(c, "empty");
    char path[] = "/tmp/gnnc_host_empty_XXXXXX.c";
    close(mkstemps(path, 2));
    CHECK(host_emit(c, p, path));
    CHECK(accepts("gcc", path));
    CHECK(accepts("clang-19", path));
    unlink(path);
}

TEST(a_program_without_anything) {
    with_ctx(empty, NULL);
}

TEST_MAIN()
