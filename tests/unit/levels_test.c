/* Random training steps (ir_random.h) at every level: graph IR, plan and the loops of both targets
 * print as they were read, and the plan that is made of a text is the one that is made of the
 * module.  tests/e2e/levels.py does so for the shipped models, down to machine code and CUDA. */
#include "codegen/loop_passes/loops.h"
#include "codegen/plan_passes/plan_pass.h"
#include "ctx_test.h"
#include "ir_random.h"

enum { N_SEEDS = 24 };

typedef struct {
    uint32_t seed;
    int opt_level;
    const Target *on;
    bool ok; /* it came to the end */
} Case;

static Module *random_module(Ctx *c, const Case *t) {
    Module *m = module_new(c, "random");
    RandomCase one = {.seed = t->seed, .smooth = true};
    int n;
    ir_random_func(ir_random_spaces(m), &one, "train", &n);
    m->recipe = (Recipe){.present = true, .optim = OPTIM_ADAM, .lr = 0.01, .epochs = 1};
    m->recipe.beta1 = 0.9, m->recipe.beta2 = 0.99, m->recipe.eps = 1e-8;
    PassOptions o = {.verify_each = true};
    return pass_run_all(c, m, pass_pipeline_named(t->opt_level, false), &o) ? m : NULL;
}

/* Shows the first line in which they differ. */
static void check_same(const char *what, const StrBuf *once, const StrBuf *twice) {
    const char *a = once->s, *b = twice->s;
    while (*a && *b && strcspn(a, "\n") == strcspn(b, "\n") && !memcmp(a, b, strcspn(a, "\n"))) {
        a += strcspn(a, "\n") + (a[strcspn(a, "\n")] != 0);
        b += strcspn(b, "\n") + (b[strcspn(b, "\n")] != 0);
    }
    CHECK_MSG(!*a && !*b, "%s: '%.*s' and '%.*s'", what, (int)strcspn(a, "\n"), a,
              (int)strcspn(b, "\n"), b);
}

static uint32_t text_file(Ctx *c, const char *path, const StrBuf *b) {
    return ctx_add_text(c, path, b->s, b->n);
}

static Module *module_again(Ctx *c, const Module *m) {
    StrBuf once = sb_new(c->a), twice = sb_new(c->a);
    module_print_file(&once, m);
    Module *again = module_parse(c, text_file(c, "random.gir", &once));
    if (!again || !module_verify(c, again, "the parser")) return NULL;
    module_print_file(&twice, again);
    check_same("the module's text", &once, &twice);
    return again;
}

/* What the plan's text is read as. */
static Plan *plan_again(Ctx *c, const Plan *p) {
    StrBuf once = sb_new(c->a), twice = sb_new(c->a);
    plan_print(&once, p);
    Plan *again = plan_parse(c, text_file(c, "random.plan", &once));
    if (!again || !plan_verify(c, again)) return NULL;
    plan_print(&twice, again);
    check_same("the plan's text", &once, &twice);
    return again;
}

static Plan *plan_for(Ctx *c, Module *m, const Target *on) {
    return plan_of_module(c, m, on->columns ? on->name : NULL, SPMM_OWN, NULL);
}

static void check_plans(Ctx *c, const char *what, const Plan *p, const Plan *other) {
    StrBuf a = sb_new(c->a), b = sb_new(c->a);
    plan_print(&a, p);
    plan_print(&b, other);
    check_same(what, &a, &b);
}

static void all_levels(Ctx *c, void *arg) {
    Case *t = arg;
    TargetOptions o = {.march = "x86-64-v3"};
    Module *m = random_module(c, t), *read = m ? module_again(c, m) : NULL;
    Plan *p = read ? plan_for(c, m, t->on) : NULL, *of_text = p ? plan_for(c, read, t->on) : NULL;
    if (!of_text) return;
    check_plans(c, "plans of the module and its text", p, of_text);
    Plan *again = plan_again(c, p);
    if (!again || !loop_pass_arrange(c, p, t->on, &o) || !loop_pass_arrange(c, again, t->on, &o))
        return;
    check_plans(c, "loops of the plan and its text", p, again);
    t->ok = plan_again(c, p) != NULL;
}

static void check_level(const Target *on, int opt_level) {
    for (uint32_t seed = 1; seed <= N_SEEDS; seed++) {
        Ctx c;
        Case t = {.seed = seed, .opt_level = opt_level, .on = on};
        CHECK(ctx_init(&c, NULL) && ctx_run(&c, all_levels, &t));
        CHECK_MSG(t.ok, "seed %u, -O%d, %s", seed, opt_level, on->name);
        if (!t.ok) diag_print_all(&c, stderr, false);
        ctx_free(&c);
    }
}

TEST(random_steps_are_text_at_every_level_of_the_cpu) {
    check_level(&target_cpu, 0);
    check_level(&target_cpu, 2);
}

TEST(random_steps_are_text_at_every_level_of_cuda) {
    check_level(&target_cuda, 0);
    check_level(&target_cuda, 2);
}

TEST_MAIN()
