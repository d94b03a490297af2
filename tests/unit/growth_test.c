/* The work of each stage of ours grows with the operations of a model, not with their square nor
 * with the ways through them.  Counted, not timed: the compiler's objects that this test links with
 * tell of each basic block that they run (Makefile: counted).  Of n, 2n and 4n iterations of a
 * model, what the second doubling adds is about twice of what the first one adds; were a part of it
 * quadratic, it would go to four times.  A build with sanitizers counts nothing (it would compile
 * the compiler twice): there the models are compiled with 2n iterations, no more. */
#include "codegen/plan_passes/plan_pass.h"
#include "codegen/target.h"
#include "frontend/fe.h"
#include "passes/pass.h"
#include "test.h"

#include <string.h>

#ifdef COUNTED
enum { COUNTS = 1 };
#else
enum { COUNTS = 0 };
#endif

static uint64_t visits;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    visits++;
}

enum { FRONT_END, PASSES, PLAN, HOST, N_STAGES };
static const char *const stages[] = {"front end", "passes", "plan", "host driver"};

typedef struct {
    const char *text; /* with a parameter k */
    int64_t k;
    int opt_level;
    DType precision;
    bool done;
    uint64_t count[N_STAGES];
} Job;

static uint64_t since(uint64_t *mark) {
    uint64_t n = visits - *mark;
    *mark = visits;
    return n;
}

static void compile(Ctx *c, void *arg) {
    static const char *const dirs[] = {"models"};
    Job *j = arg;
    uint64_t mark = visits;
    StrBuf text = sb_new(c->a);
    sb_printf(&text, "const k = %lld\n%s", (long long)j->k, j->text);
    const FeOptions fe = {.dirs = dirs, .n_dirs = 1};
    const PassOptions passes = {.precision = j->precision};
    Module *m = fe_compile_text(c, "growth.gnn", text.s, text.n, &fe);
    j->count[FRONT_END] = since(&mark);
    if (!m || !pass_run_all(c, m, pass_pipeline_named(j->opt_level, false), &passes)) return;
    j->count[PASSES] = since(&mark);
    Plan *p = plan_of_module(c, m, NULL, SPMM_OWN, NULL);
    j->count[PLAN] = since(&mark);
    j->done = p && host_emit(c, p, "/dev/null");
    j->count[HOST] = since(&mark);
}

static Job counted(const char *text, int64_t k, int opt_level, DType precision) {
    Job j = {.text = text, .k = k, .opt_level = opt_level, .precision = precision};
    Ctx c;
    CHECK(ctx_init(&c, NULL));
    CHECK(ctx_run(&c, compile, &j) && j.done);
    if (!j.done) diag_print_all(&c, stderr, false);
    ctx_free(&c);
    return j;
}

static void stages_grow(const char *text, int64_t n, int opt_level, int from, int to,
                        DType precision) {
    Job y = counted(text, 2 * n, opt_level, precision);
    if (!COUNTS) return;
    CHECK(visits > 0);
    Job x = counted(text, n, opt_level, precision), z = counted(text, 4 * n, opt_level, precision);
    for (int i = from; i <= to; i++) {
        double first = (double)y.count[i] - (double)x.count[i];
        double second = (double)z.count[i] - (double)y.count[i];
        CHECK_MSG(second < 2.5 * first,
                  "%s, -O%d: %.0f visits for %lld iterations, %.0f for %lld, %.0f", stages[i],
                  opt_level, (double)x.count[i], (long long)n, (double)y.count[i],
                  (long long)(2 * n), (double)z.count[i]);
    }
}

static void grows(const char *text, int64_t n, int opt_level) {
    stages_grow(text, n, opt_level, 0, N_STAGES - 1, DT_VOID);
}

static void passes_grow(const char *text, int64_t n, int opt_level) {
    stages_grow(text, n, opt_level, FRONT_END, PASSES, DT_VOID);
}

static void plan_grows(const char *text, int64_t n, int opt_level) {
    stages_grow(text, n, opt_level, PLAN, PLAN, DT_VOID);
}

#define GRAPH "graph G { node n { x: f32[F]; y: class[C]; split } edge e: n -> n }\n"
#define TRAIN "train M { target n.y   loss cross_entropy   optimizer adam }\n"

TEST(chain) {
    grows(GRAPH "model M(g: G) -> f32[n, F] {\n"
                "  h = g.n.x\n"
                "  for i in 0..k { h = tanh(h) }\n"
                "  return h\n}\n",
          1000, 2);
}

TEST(value_read_twice_in_each_turn) {
    grows(GRAPH "model M(g: G) -> f32[n, F] {\n"
                "  h = g.n.x\n"
                "  for i in 0..k { h = h * tanh(h) }\n"
                "  return h\n}\n",
          1000, 2);
}

TEST(gated_update) {
    grows(GRAPH "model M(g: G) -> f32[n, F] {\n"
                "  h = g.n.x\n"
                "  m = sum(h[g.e.src], over = g.e.dst)\n"
                "  for i in 0..k {\n"
                "    z = sigmoid(m + h)\n"
                "    h = (1 - z) * tanh(m * h) + z * h\n"
                "  }\n"
                "  return h\n}\n",
          200, 2);
}

TEST(recurrence) {
    grows(GRAPH "model M(g: G) -> f32[n, F] {\n"
                "  a = ones(n, F)\n  b = g.n.x\n  s = a + b\n"
                "  for i in 0..k {\n"
                "    c = 2 * g.n.x * b - a\n"
                "    s = s + c\n    a = b\n    b = c\n"
                "  }\n"
                "  return s\n}\n",
          200, 2);
}

/* Neurons behind a convolution: the backward reads what each iteration of the forward made. */
TEST(spiking_neurons_trained) {
    grows("import \"layers/gcn.gnn\"\n" GRAPH "model M(g: G) -> f32[n, C] {\n"
          "  conv = gcn_conv(16)\n  lin = linear(C)\n  u = conv(g.e, g.n.x)\n"
          "  v = zeros(n, 16)\n  s = zeros(n, 16)\n"
          "  for t in 0..k {\n"
          "    v = v + (u - v) / 2\n"
          "    fire = sigmoid(10 * (v - 1))\n"
          "    v = v * (1 - fire)\n"
          "    s = s + fire\n"
          "  }\n"
          "  return lin(s / k)\n}\n" TRAIN,
          20, 2);
}

/* Each iteration's sum is a step, and a loop over blocks that a phase may do without. */
TEST(sum_over_edges_in_each_turn) {
    plan_grows(GRAPH "model M(g: G) -> f32[n, C] {\n"
                     "  p = linear(C)\n  h = p(g.n.x)\n  x = tanh(h)\n"
                     "  for i in 0..k { h = tanh(sum(h[g.e.src], over = g.e.dst)) * x }\n"
                     "  return h\n}\n" TRAIN,
               200, 2);
}

TEST(sum_over_edges_in_each_turn_of_a_loop_with_a_limit) {
    plan_grows(GRAPH "model M(g: G) -> f32[n, C] {\n"
                     "  p = linear(C)\n  h = p(g.n.x)\n"
                     "  while mean(abs(h)) > 0.5 limit k {\n"
                     "    h = tanh(sum(h[g.e.src], over = g.e.dst))\n  }\n"
                     "  return h\n}\n" TRAIN,
               50, 2);
}

/* Without fusion every iteration is a step, and many steps are one kernel. */
TEST(chain_of_stored_values) {
    grows(GRAPH "model M(g: G) -> f32[n, F] {\n"
                "  h = g.n.x\n"
                "  for i in 0..k { h = tanh(h) }\n"
                "  return h\n}\n",
          125, 0);
}

/* Values that the backward reads late: some are computed again. */
TEST(layers_without_weights) {
    passes_grow(GRAPH "model M(g: G) -> f32[n, C] {\n"
                      "  p = linear(C)\n  h = p(g.n.x)\n"
                      "  for i in 0..k { h = dropout(tanh(h), 0.5) }\n"
                      "  return h\n}\n" TRAIN,
                200, 2);
}

TEST(layers_with_weights) {
    passes_grow("import \"layers/gcn.gnn\"\n" GRAPH "model M(g: G) -> f32[n, C] {\n"
                "  convs = [gcn_conv(16) for i in 0..k]\n  last = linear(C)\n  h = g.n.x\n"
                "  for conv in convs { h = dropout(relu(conv(g.e, h)), 0.5) }\n"
                "  return last(h)\n}\n" TRAIN,
                50, 2);
}

/* Each weight is stored in another order, and each product a sum over stored entries. */
TEST(layers_over_sparse_features) {
    passes_grow("graph G { node n { x: csr f32[F]; y: class[C]; split } edge e: n -> n }\n"
                "model M(g: G) -> f32[n, C] {\n"
                "  ps = [linear(C) for i in 0..k]\n  s = zeros(n, C)\n"
                "  for p in ps { s = s + p(dropout(g.n.x, 0.5)) }\n"
                "  return s\n}\n" TRAIN,
                50, 2);
}

TEST(attention_in_each_turn) {
    passes_grow(GRAPH "model M(g: G) -> f32[n, C] {\n"
                      "  p = linear(C)\n  h = p(g.n.x)\n"
                      "  for i in 0..k {\n"
                      "    a = softmax(h[g.e.src] + h[g.e.dst], over = g.e.dst)\n"
                      "    h = sum(a * h[g.e.src], over = g.e.dst)\n  }\n"
                      "  return h\n}\n" TRAIN,
                50, 2);
}

/* Constants differ in few of their digits. */
TEST(constants) {
    passes_grow(GRAPH "model M(g: G) -> f32[n, F] {\n"
                      "  s = g.n.x\n"
                      "  for i in 0..k { s = s + tanh(g.n.x * i) }\n"
                      "  return s\n}\n",
                250, 2);
}

TEST(effects) {
    passes_grow(GRAPH "model M(g: G) -> f32[n, C] {\n"
                      "  p = linear(C)\n  h = p(g.n.x)\n"
                      "  for i in 0..k {\n    h = tanh(h)\n"
                      "    print(\"h\", mean(h))\n    assert(mean(h) > 0, \"h\")\n  }\n"
                      "  return h\n}\n",
                200, 2);
}

TEST(loops_one_after_the_other) {
    passes_grow(GRAPH "model M(g: G) -> f32[n, C] {\n"
                      "  p = linear(C)\n  h = p(g.n.x)\n"
                      "  for i in 0..k { while mean(abs(h)) > 0.5 limit 2 { h = h * 0.5 } }\n"
                      "  return h\n}\n" TRAIN,
                60, 2);
}

TEST(parameter_updates) {
    passes_grow(GRAPH "layer scale()(x: f32[N, I]) -> f32[N, I] {\n"
                      "  param a: f32 = 1\n  return a * x\n}\n"
                      "model M(g: G) -> f32[n, C] {\n"
                      "  ss = [scale() for i in 0..k]\n  p = linear(C)\n  h = p(g.n.x)\n"
                      "  for s in ss { h = tanh(s(h)) }\n"
                      "  return h\n}\n"
                      "train M { target n.y   loss cross_entropy   optimizer adam   ema 0.99 }\n",
                100, 2);
}

TEST(rounded_copies_of_a_shared_expression_of_weights) {
    static const char text[] = GRAPH "model M(g: G; d: int = 32, e: int = 32) -> f32[n, C] {\n"
                                     "  a = linear(d)\n  out = linear(C)\n"
                                     "  param W: f32[e, d] = glorot()\n  w = W\n"
                                     "  for i in 0..k { w = w * tanh(w) }\n"
                                     "  h = relu(a(g.n.x))\n"
                                     "  return out(relu(rename(h, d, e) @ w))\n}\n" TRAIN;
    stages_grow(text, 100, 2, FRONT_END, PASSES, DT_BF16);
}

TEST_MAIN()
