/* What the cuda target makes of single kernels that the plan of no model has today: text that
 * another order of statements would make wrong. */
#include "test.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop.h"

static Module *module(Ctx *c) {
    Module *m = module_new(c, "t");
    Space *p = space_node(m, "p", (Span){0});
    Space *e = space_edge(m, "e", p, p, (Span){0});
    map_dst(m, e);
    map_src(m, e);
    return m;
}

typedef struct {
    const char *kernel;
    const char *want[4], *never[4]; /* in what is emitted behind the loop IR's comment */
} Case;

static void emitted(Ctx *c, void *arg) {
    const Case *t = arg;
    Module *m = module(c);
    int n = 0;
    LKernel *k = loop_parse(c, m, ctx_add_text(c, "t", t->kernel, strlen(t->kernel)), &n);
    bool ok = n == 1 && k && loop_verify(c, m, k);
    CHECK_MSG(ok, "%s", c->diags.n ? c->diags.v[0].text : "no kernel");
    if (!ok) return;
    Plan p = {.m = m};
    Cu cu = {.c = c, .a = c->a, .plan = &p, .b = sb_new(c->a)};
    cu_kernel(&cu, k);
    const char *text = strstr(cu.b.s, "__global__");
    for (int i = 0; i < 4 && t->want[i]; i++)
        CHECK_MSG(strstr(text, t->want[i]), "no '%s' in\n%s", t->want[i], text);
    for (int i = 0; i < 4 && t->never[i]; i++)
        CHECK_MSG(!strstr(text, t->never[i]), "'%s' in\n%s", t->never[i], text);
}

static void check(const Case *t) {
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, emitted, (void *)(uintptr_t)t));
    ctx_free(&c);
}

/* x is packed; w, in an `if`, is not, and needs the column's name. */
TEST(what_may_not_happen_is_not_packed) {
    static const Case t = {
        .kernel = "kernel t {\n"
                  "  out y: f32[N_p, 16]\n"
                  "  in x: f32[N_p, 16]\n"
                  "  in w: f32[N_p, 16]\n"
                  "  %c.0: f32 = const 0.5\n"
                  "  for %v.1 in N_p parallel {\n"
                  "    local acc: f32\n"
                  "    store acc %c.0\n"
                  "    for %f.2 in 16 vector {\n"
                  "      %x.3: f32 = load x[%v.1, %f.2]\n"
                  "      %is.4: i1 = lt %c.0 %x.3\n"
                  "      if %is.4 {\n"
                  "        %w.5: f32 = load w[%v.1, %f.2]\n"
                  "        acc sum acc %w.5\n"
                  "      }\n"
                  "    }\n"
                  "    %s.6: f32 = load acc\n"
                  "    for %f.7 in 16 vector {\n"
                  "      store y[%v.1, %f.7] %s.6\n"
                  "    }\n"
                  "  }\n"
                  "}\n",
        .want = {"= gn_pack<4>(&x[", "const int64_t f_2 = ", "= w[v_1 * 16 + f_2]"},
        .never = {"&w["}};
    check(&t);
}

/* What is stored at once is stored behind the loop: a load in it would come too early. */
TEST(what_is_loaded_again_is_not_packed) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: f32[N_p, 16]\n"
                                     "  out z: f32[N_p, 16]\n"
                                     "  out s: f32[N_p]\n"
                                     "  in x: f32[N_p, 16]\n"
                                     "  %c.1: f32 = const 0.5\n"
                                     "  for %v.0 in N_p parallel {\n"
                                     "    for %f.2 in 16 vector {\n"
                                     "      %x.3: f32 = load x[%v.0, %f.2]\n"
                                     "      store y[%v.0, %f.2] %x.3\n"
                                     "      %y.4: f32 = load y[%v.0, %f.2]\n"
                                     "      store z[%v.0, %f.2] %y.4\n"
                                     "    }\n"
                                     "    store s[%v.0] %c.1\n"
                                     "    for %f.5 in 16 vector {\n"
                                     "      %x.6: f32 = load x[%v.0, %f.5]\n"
                                     "      store y[%v.0, %f.5] %x.6\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"y[v_1 * 16 + f_2] = x_3;", "y_4 = y[v_1 * 16 + f_2];",
                                    "gn_put(&z[v_1 * 16 + gn_first_0]",
                                    "gn_put(&y[v_1 * 16 + gn_first_3]"},
                           .never = {"gn_put(&y[v_1 * 16 + gn_first_0]"}};
    check(&t);
}

TEST_MAIN()
