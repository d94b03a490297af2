/* What the cuda target makes of single kernels that the plan of no model has today: text that
 * another order of statements would make wrong. */
#include "ctx_test.h"

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"

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
    CHECK_MSG(cu_emit_kernel(&cu, k), "%s", c->diags.n ? c->diags.v[0].text : "no text");
    if (!cu.b.s) return;
    const char *text = strstr(cu.b.s, "\n */\n");
    for (int i = 0; i < 4 && t->want[i]; i++)
        CHECK_MSG(strstr(text, t->want[i]), "no '%s' in\n%s", t->want[i], text);
    for (int i = 0; i < 4 && t->never[i]; i++)
        CHECK_MSG(!strstr(text, t->never[i]), "'%s' in\n%s", t->never[i], text);
}

static void check(const Case *t) {
    with_ctx(emitted, t);
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

/* A loop over entries that adds up a number and wide columns; between: in front of
 * the columns' loop; behind: after it. */
#define SUMS(between, behind)                                                                      \
    "kernel t {\n"                                                                                 \
    "  out y: f32[N_p, 64]\n"                                                                      \
    "  out s: f32[N_p]\n"                                                                          \
    "  map dst_ptr: ptr dst(e)\n"                                                                  \
    "  map src: idx src(e)\n"                                                                      \
    "  in a: f32[N_p]\n"                                                                           \
    "  in x: f32[N_p, 64]\n"                                                                       \
    "  %c.0: f32 = const 0.5\n"                                                                    \
    "  for %v.1 in N_p parallel balanced dst(e) {\n"                                               \
    "    local m: f32\n"                                                                           \
    "    store m %c.0\n"                                                                           \
    "    local acc: f32[64]\n"                                                                     \
    "    for %f.2 in 64 vector {\n"                                                                \
    "      store acc[%f.2] %c.0\n"                                                                 \
    "    }\n"                                                                                      \
    "    for %e.3 in segment dst_ptr[%v.1] {\n"                                                    \
    "      %src.4: i32 = load src[%e.3]\n"                                                         \
    "      %src.5: i64 = cast %src.4\n" between "      for %f.6 in 64 vector {\n"                  \
    "        %x.7: f32 = load x[%e.3, %f.6]\n"                                                     \
    "        %v.8: f32 = mul %x.7 %t.20\n"                                                         \
    "        acc sum acc[%f.6] %v.8\n"                                                             \
    "      }\n" behind "    }\n"                                                                   \
    "    %m.9: f32 = load m\n"                                                                     \
    "    store s[%v.1] %m.9\n"                                                                     \
    "    for %f.10 in 64 vector {\n"                                                               \
    "      %y.11: f32 = load acc[%f.10]\n"                                                         \
    "      store y[%v.1, %f.10] %y.11\n"                                                           \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "}\n"

/* The number and the columns need nothing of each other: a loop for each, in a team. */
TEST(sums_of_two_kinds_are_two_loops) {
    static const Case t = {.kernel = SUMS("      %t.20: f32 = load a[%src.5]\n"
                                          "      acc sum m %t.20\n",
                                          ""),
                           .want = {"GN_TEAM_ROWS("},
                           .never = {"GN_ROWS("}};
    check(&t);
}

/* Columns read the number as it is so far: all threads go through all entries. */
TEST(a_number_that_columns_read_stays_with_them) {
    static const Case t = {.kernel = SUMS("      %a.21: f32 = load a[%src.5]\n"
                                          "      acc sum m %a.21\n"
                                          "      %t.20: f32 = load m\n",
                                          ""),
                           .want = {"gn_warp_team(16, 1)", "e_3 < gn_end_3; e_3++) {",
                                    "m = m + a_6;\n            const float t_7 = m;"},
                           .never = {"gn_part_"}};
    check(&t);
}

/* What stands between two loops of columns that lanes have all of: in its place, seen by all
 * threads and by what follows the run. */
TEST(a_number_between_loops_stays_there) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: f32[N_p, 64]\n"
                                     "  out s: f32[N_p]\n"
                                     "  map dst_ptr: ptr dst(e)\n"
                                     "  in w: f32[E_e]\n"
                                     "  in x: f32[E_e, 64]\n"
                                     "  %c.0: f32 = const 0\n"
                                     "  for %v.1 in N_p parallel {\n"
                                     "    local m: f32\n"
                                     "    store m %c.0\n"
                                     "    local acc: f32[64]\n"
                                     "    for %f.2 in 64 vector {\n"
                                     "      store acc[%f.2] %c.0\n"
                                     "    }\n"
                                     "    for %e.3 in segment dst_ptr[%v.1] {\n"
                                     "      %w.4: f32 = load w[%e.3]\n"
                                     "      acc sum m %w.4\n"
                                     "      for %f.5 in 64 vector {\n"
                                     "        %x.6: f32 = load x[%e.3, %f.5]\n"
                                     "        %v.7: f32 = mul %x.6 %w.4\n"
                                     "        acc sum acc[%f.5] %v.7\n"
                                     "      }\n"
                                     "    }\n"
                                     "    %m.8: f32 = load m\n"
                                     "    %d.9: f32 = exp %m.8\n"
                                     "    for %f.10 in 64 vector {\n"
                                     "      %v.11: f32 = load acc[%f.10]\n"
                                     "      %v.12: f32 = div %v.11 %d.9\n"
                                     "      store y[%v.1, %f.10] %v.12\n"
                                     "    }\n"
                                     "    store s[%v.1] %d.9\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"gn_part_1 + w_4[gn_u];", "\n    m = m + gn_part_1;",
                                    "\n    const float d_9 = expf(m_8);",
                                    "\n    if (gn.thread == 0) s[v_1] = d_9;"},
                           .never = {"GN_ROWS("}};
    check(&t);
}

/* A number of each entry, of as many columns as only data know: all lanes of a way make it, each
 * time. */
TEST(lanes_take_an_entrys_columns_by_turns) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: f32[N_p, N_p]\n"
                                     "  map dst_ptr: ptr dst(e)\n"
                                     "  in x: f32[E_e, N_p]\n"
                                     "  in q: f32[N_p, N_p]\n"
                                     "  %c.0: f32 = const 0\n"
                                     "  for %v.1 in N_p parallel {\n"
                                     "    for %f.2 in N_p vector {\n"
                                     "      store y[%v.1, %f.2] %c.0\n"
                                     "    }\n"
                                     "    for %e.3 in segment dst_ptr[%v.1] {\n"
                                     "      local m: f32\n"
                                     "      store m %c.0\n"
                                     "      for %k.4 in N_p vector {\n"
                                     "        %x.5: f32 = load x[%e.3, %k.4]\n"
                                     "        %q.6: f32 = load q[%v.1, %k.4]\n"
                                     "        %v.7: f32 = mul %x.5 %q.6\n"
                                     "        acc sum m %v.7\n"
                                     "      }\n"
                                     "      %m.8: f32 = load m\n"
                                     "      for %f.9 in N_p vector {\n"
                                     "        %x.10: f32 = load x[%e.3, %f.9]\n"
                                     "        %v.11: f32 = mul %x.10 %m.8\n"
                                     "        acc sum y[%v.1, %f.9] %v.11\n"
                                     "      }\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"for (int64_t k_4 = 0 + gn.lane; k_4 < N_p; k_4 += gn.lanes) {",
                                    "gn_fold_lanes<GnSum>(gn, gn_sum_", "if (gn_on) {\n",
                                    "e_3 < gn_end_3; e_3 += gn.ways) {"},
                           .never = {"GN_ROWS("}};
    check(&t);
}

/* The first thread may write a number of the row when all have read it. */
TEST(what_all_threads_read_is_written_behind_a_barrier) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out w: f32[N_p]\n"
                                     "  map dst_ptr: ptr dst(e)\n"
                                     "  in x: f32[E_e]\n"
                                     "  %c.0: f32 = const 0\n"
                                     "  for %v.1 in N_p parallel {\n"
                                     "    %w.2: f32 = load_old w[%v.1]\n"
                                     "    local m: f32\n"
                                     "    store m %c.0\n"
                                     "    for %e.3 in segment dst_ptr[%v.1] {\n"
                                     "      %x.4: f32 = load x[%e.3]\n"
                                     "      acc sum m %x.4\n"
                                     "    }\n"
                                     "    %m.5: f32 = load m\n"
                                     "    %v.6: f32 = sub %w.2 %m.5\n"
                                     "    store w[%v.1] %v.6\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"gn_wait(gn);\n        if (gn.thread == 0) w[v_1] ="},
                           .never = {"GN_ROWS("}};
    check(&t);
}

/* Columns that are sums over heads, then heads again: three kernels.  What is not written, and what
 * follows from it, each of them has for itself; nothing else leaves a stage but through memory. */
TEST(heads_that_meet_are_stages) {
    static const Case t = {
        .kernel = "kernel t {\n"
                  "  out h: f32[N_p, 2, 8]\n"
                  "  out y: f32[N_p, 8]\n"
                  "  out d: f32[N_p, 2]\n"
                  "  map dst_ptr: ptr dst(e)\n"
                  "  in x: f32[E_e, 2, 8]\n"
                  "  in w: f32[E_e, 2]\n"
                  "  in b: f32[N_p]\n"
                  "  %c.0: f32 = const 0\n"
                  "  for %v.1 in N_p parallel {\n"
                  "    %b.2: f32 = load b[%v.1]\n"
                  "    local m: f32[2]\n"
                  "    for %f.26 in 2 vector {\n"
                  "      store m[%f.26] %c.0\n"
                  "    }\n"
                  "    local acc: f32[2, 8]\n"
                  "    for %f.3 in 2 unroll {\n"
                  "      for %f.4 in 8 vector {\n"
                  "        store acc[%f.3, %f.4] %b.2\n"
                  "      }\n"
                  "    }\n"
                  "    for %e.5 in segment dst_ptr[%v.1] {\n"
                  "      for %f.6 in 2 unroll {\n"
                  "        %w.27: f32 = load w[%e.5, %f.6]\n"
                  "        acc sum m[%f.6] %w.27\n"
                  "        for %f.7 in 8 vector {\n"
                  "          %x.8: f32 = load x[%e.5, %f.6, %f.7]\n"
                  "          acc sum acc[%f.6, %f.7] %x.8\n"
                  "        }\n"
                  "      }\n"
                  "    }\n"
                  "    for %f.9 in 2 unroll {\n"
                  "      for %f.10 in 8 vector {\n"
                  "        %h.11: f32 = load acc[%f.9, %f.10]\n"
                  "        %m.28: f32 = load m[%f.9]\n"
                  "        %v.29: f32 = div %h.11 %m.28\n"
                  "        store h[%v.1, %f.9, %f.10] %v.29\n"
                  "      }\n"
                  "    }\n"
                  "    for %f.12 in 8 unroll {\n"
                  "      local sum: f32\n"
                  "      store sum %b.2\n"
                  "      for %k.13 in 2 vector {\n"
                  "        %h.14: f32 = load h[%v.1, %k.13, %f.12]\n"
                  "        acc sum sum %h.14\n"
                  "      }\n"
                  "      %s.15: f32 = load sum\n"
                  "      store y[%v.1, %f.12] %s.15\n"
                  "    }\n"
                  "    local dot: f32[2]\n"
                  "    for %f.16 in 2 vector {\n"
                  "      store dot[%f.16] %c.0\n"
                  "    }\n"
                  "    for %e.17 in segment dst_ptr[%v.1] {\n"
                  "      for %f.18 in 2 unroll {\n"
                  "        local one: f32\n"
                  "        store one %c.0\n"
                  "        for %k.19 in 8 vector {\n"
                  "          %x.20: f32 = load x[%e.17, %f.18, %k.19]\n"
                  "          %y.21: f32 = load y[%v.1, %k.19]\n"
                  "          %v.22: f32 = mul %x.20 %y.21\n"
                  "          acc sum one %v.22\n"
                  "        }\n"
                  "        %o.23: f32 = load one\n"
                  "        acc sum dot[%f.18] %o.23\n"
                  "      }\n"
                  "    }\n"
                  "    for %f.24 in 2 vector {\n"
                  "      %d.25: f32 = load dot[%f.24]\n"
                  "      store d[%v.1, %f.24] %d.25\n"
                  "    }\n"
                  "  }\n"
                  "}\n",
        .want = {"t_stage1(float *__restrict__ h,\n    const int64_t *__restrict__ dst_ptr, const "
                 "float "
                 "*__restrict__ x, const float *__restrict__ w,\n    const float *__restrict__ b,",
                 "t_stage2(const float *__restrict__ h,\n    float *__restrict__ y, const float "
                 "*__restrict__ b,",
                 "t_stage3(const float *__restrict__ y,\n    float *__restrict__ d, const int64_t "
                 "*__restrict__ dst_ptr, const float *__restrict__ x,",
                 "int gn_error = gn_launch(t_stage1,"},
        .never = {"gn_launch(t,", "_stage4"}};
    check(&t);
}

/* The number reads columns as they are so far. */
TEST(columns_that_a_number_reads_stay_with_it) {
    static const Case t = {.kernel = SUMS("      %t.20: f32 = load a[%src.5]\n",
                                          "      for %f.22 in 64 vector {\n"
                                          "        %z.23: f32 = load acc[%f.22]\n"
                                          "        acc sum m %z.23\n"
                                          "      }\n"),
                           .want = {"acc[gn_k] = acc[gn_k] + v_9;", "z_11 = acc[gn_k];"},
                           .never = {"gn_end_16 = "}};
    check(&t);
}

/* A thread has as many as 16 bytes hold of the widest type; what is gathered has no pack, and what
 * asks only for places needs no name for them. */
TEST(elements_are_packed_at_their_own_places) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: bf16[E_e]\n"
                                     "  in x: f32[E_e]\n"
                                     "  map src: idx src(e)\n"
                                     "  in w: f32[N_p]\n"
                                     "  for %i.0 in E_e parallel {\n"
                                     "    %x.1: f32 = load x[%i.0]\n"
                                     "    %s.2: i32 = load src[%i.0]\n"
                                     "    %s.3: i64 = cast %s.2\n"
                                     "    %w.4: f32 = load w[%s.3]\n"
                                     "    %v.5: f32 = mul %x.1 %w.4\n"
                                     "    %v.6: bf16 = cast %v.5\n"
                                     "    store y[%i.0] %v.6\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"= gn_pack_some<4>(&x[gn_from], gn_on)", "= w[s_3]",
                                    "gn_put_some(&y[gn_from]",
                                    "gn_launch(t, gn_ceildiv(gn_extent, 4)"},
                           .never = {"&w[", "i_0", "gn_i"}};
    check(&t);
}

/* Only where x is not 0, y is written: it keeps what it had elsewhere.  Where z is read is not
 * known to be there before that was asked. */
TEST(what_may_stay_is_loaded_first) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: f16[N_p]\n"
                                     "  in x: i1[N_p]\n"
                                     "  in z: f16[N_p]\n"
                                     "  for %i.0 in N_p parallel {\n"
                                     "    %x.1: i1 = load x[%i.0]\n"
                                     "    %y.2: f16 = load_old y[%i.0]\n"
                                     "    if %x.1 {\n"
                                     "      %z.3: f16 = load z[%i.0]\n"
                                     "      %v.4: f16 = add %y.2 %z.3\n"
                                     "      store y[%i.0] %v.4\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"= gn_pack_some<8>(&x[gn_from], gn_on)",
                                    "= gn_pack_some<8>(&y[gn_from], gn_on)", "gn_load(z[i_0])",
                                    "gn_put_some(&y[gn_from]"},
                           .never = {"&z["}};
    check(&t);
}

/* One element reads what another one may have written: as they come. */
TEST(what_is_written_and_reached_elsewhere_has_no_pack) {
    static const Case t = {
        .kernel = "kernel t {\n"
                  "  out y: f32[N_p]\n"
                  "  in s: f32[1]\n"
                  "  in x: f32[N_p]\n"
                  "  map to: idx src(e)\n"
                  "  for %i.0 in N_p parallel {\n"
                  "    %x.1: f32 = load x[%i.0]\n"
                  "    %t.2: i32 = load to[%i.0]\n"
                  "    %t.3: i64 = cast %t.2\n"
                  "    store y[%i.0] %x.1\n"
                  "    store y[%t.3] %x.1\n"
                  "  }\n"
                  "}\n",
        .want = {"gn_pack_some<4>(&x[gn_from], gn_on)", "y[i_0] = ", "y[t_3] = ", "to[i_0]"},
        .never = {"&y["}};
    check(&t);
}

/* Each head of a part of a long sum has a block, which has the part's entries by turns. */
TEST(parts_of_a_sum_for_each_head_have_blocks) {
    static const Case t = {.kernel = "kernel t {\n"
                                     "  out y: f32[64, 2]\n"
                                     "  in a: f32[E_e, 2, 4]\n"
                                     "  in b: f32[E_e, 2, 4]\n"
                                     "  %c.0: f32 = const 0\n"
                                     "  for %c.1 in 64 parallel {\n"
                                     "    for %h.2 in 2 vector {\n"
                                     "      store y[%c.1, %h.2] %c.0\n"
                                     "    }\n"
                                     "    for %i.3 in chunk %c.1 of 64: E_e {\n"
                                     "      for %h.4 in 2 {\n"
                                     "        local acc: f32\n"
                                     "        store acc %c.0\n"
                                     "        for %k.5 in 4 vector {\n"
                                     "          %a.6: f32 = load a[%i.3, %h.4, %k.5]\n"
                                     "          %b.7: f32 = load b[%i.3, %h.4, %k.5]\n"
                                     "          %v.8: f32 = mul %a.6 %b.7\n"
                                     "          acc sum acc %v.8\n"
                                     "        }\n"
                                     "        %v.9: f32 = load acc\n"
                                     "        %v.10: f32 = exp %v.9\n"
                                     "        acc sum y[%c.1, %h.4] %v.10\n"
                                     "      }\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n",
                           .want = {"gn_block_team(4)", "gn_fold_lanes<GnSum>(gn, gn_sum_",
                                    "gn_fold<GnSum>(gn, gn_part_",
                                    "if (gn.thread == 0) y[c_1 * 2 + h_"},
                           .never = {"GN_ROWS("}};
    check(&t);
}

/* The row of a loop over entries inside the loop is one of the values that it needs. */
TEST(a_loop_inside_keeps_its_row) {
    static const Case t = {.kernel = SUMS("      %t.20: f32 = load a[%e.3]\n"
                                          "      for %e.24 in segment dst_ptr[%src.5] {\n"
                                          "        %b.25: f32 = load a[%e.24]\n"
                                          "        acc sum m %b.25\n"
                                          "      }\n",
                                          ""),
                           .want = {"const int64_t src_", "dst_ptr[src_"}};
    check(&t);
}

TEST_MAIN()

/* ---- schedules that stand in the text ------------------------------------------------------ */
/* A kernel by `threads` whose entries are shared as `share` says, with `store` at its end. */
static const char *scheduled(Arena *a, const char *threads, const char *share, const char *store) {
    bool team = strstr(threads, "teams") || strstr(threads, "blocks");
    return arena_printf(a,
                        "kernel t%s {\n"
                        "  out y: f32[N_p, 16]\n"
                        "  in z: f32[N_p, 16]\n"
                        "  map ptr: ptr dst(e)\n"
                        "  map src: idx src(e)\n"
                        "  %%c.0: f32 = const 0\n"
                        "  for %%v.1 in N_p parallel {\n"
                        "    %s\n"
                        "    local acc: f32[16]\n"
                        "    for %%f.2 in 16 vector { store acc[%%f.2] %%c.0 }\n"
                        "    for %%e.3 in segment ptr[%%v.1]%s {\n"
                        "      %%i.4: i32 = load src[%%e.3]\n"
                        "      %%s.5: i64 = cast %%i.4\n"
                        "      for %%f.6 in 16 vector {\n"
                        "        %%z.7: f32 = load z[%%s.5, %%f.6]\n"
                        "        acc sum acc[%%f.6] %%z.7\n"
                        "      }\n"
                        "    }\n"
                        "    %s\n"
                        "    for %%f.8 in 16 vector {\n"
                        "      %%a.9: f32 = load acc[%%f.8]\n"
                        "      %s\n"
                        "    }\n"
                        "    %s\n"
                        "  }\n"
                        "}\n",
                        threads, team ? "columns 16 by lanes {" : "", share,
                        strstr(share, "ways") ? "fold sum acc by ways" : "", store,
                        team ? "}" : "");
}

static const char own_row[] = "store y[%v.1, %f.8] %a.9";

static void kept(Ctx *c, void *arg) {
    static const struct {
        const char *threads, *share;
        const char *want[2], *never[2];
    } cases[] = {
        /* what is not said is decided */
        {"", "", {"gn_warp_team(4, gn_ways)", "gn_pack<4>(&z["}, {NULL}},
        {" by teams lanes 8 pack 2 columns 8",
         " by ways",
         {"gn_warp_team(8, gn_ways)", "gn_pack<2>"},
         {NULL}},
        {" by teams lanes 16 pack 1 columns 1",
         "",
         {"gn_warp_team(16, 1)"},
         {"gn_pack<", "gn_ways"}},
        {" by teams pack 1 columns 8", " by ways", {"gn_warp_team(gn_lanes, gn_ways)"}, {NULL}},
        {" by threads", "", {"GN_ROWS(gn_i, gn_extent)"}, {"gn_warp_team", "GN_HUBS"}},
    };
    (void)arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Case t = {.kernel = scheduled(c->a, cases[i].threads, cases[i].share, own_row)};
        memcpy(t.want, cases[i].want, sizeof cases[i].want);
        memcpy(t.never, cases[i].never, sizeof cases[i].never);
        emitted(c, &t);
    }
}

TEST(the_schedule_of_the_text_is_emitted) {
    with_ctx(kept, NULL);
}

typedef struct {
    const char *threads, *share, *store, *error;
} Refused;

static void refused(Ctx *c, void *arg) {
    const Refused *t = arg;
    Module *m = module(c);
    int n = 0;
    const char *text = scheduled(c->a, t->threads, t->share, t->store);
    LKernel *k = loop_parse(c, m, ctx_add_text(c, "t", text, strlen(text)), &n);
    CHECK(n == 1 && k);
    if (n != 1 || !k) return;
    Plan p = {.m = m};
    Cu cu = {.c = c, .a = c->a, .plan = &p, .b = sb_new(c->a)};
    bool ok = loop_verify(c, m, k) && cu_emit_kernel(&cu, k);
    CHECK(!ok && !cu.b.n);
    CHECK_MSG(c->diags.n && strstr(c->diags.v[0].text, t->error), "got: %s, want: %s",
              c->diags.n ? c->diags.v[0].text : "nothing", t->error);
}

TEST(schedules_that_cannot_be_are_refused) {
    static const Refused cases[] = {
        {" by teams lanes 3 pack 1 columns 1", "", own_row, "powers of two"},
        {" by teams lanes 8 pack 32 columns 8", "", own_row, "so many columns each"},
        {" by blocks pack 1 columns 8", "", own_row, "no team of threads"},
        {" by teams pack 1 columns 8", " by team", own_row, "does not share columns"},
        {" by teams pack 1 columns 8", " by lanes", own_row, "cannot share a loop"},
        {" by threads", " by ways", own_row, "threads that are no team"},
        /* a row that others write, too */
        {" by teams pack 1 columns 8", " by ways",
         "store y[%f.8, %f.8] %a.9 %b.10: f32 = load y[%v.1, %f.8] store y[%v.1, %f.8] %b.10",
         "what another one writes of y"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) with_ctx(refused, &cases[i]);
}
