/* Schedules against torch's numbers, arena packing, ranks and initialisers. */
#include "test.h"

#include <math.h>

#include "runtime/trainer/init.h"
#include "runtime/trainer/checkpoint.h"
#include "runtime/pack.h"
#include "runtime/trainer/schedule.h"
#include "tiny_program.h"

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-12 * fmax(1, fabs(b));
}

/* ---- schedules: values printed by torch 2.11 ------------------------------------ */
static void follows(const RtSchedule *s, const double *want, int n) {
    RtPlateau p = {0};
    for (int e = 0; e < n; e++) {
        double lr = rt_schedule_lr(s, &p, e);
        CHECK_MSG(near(lr, want[e]), "epoch %d: %.17g, not %.17g", e, lr, want[e]);
    }
}

TEST(step_schedule) {
    RtSchedule s = {.kind = RT_SCHED_STEP, .lr = 1, .gamma = 0.5, .step_epochs = 2, .epochs = 6};
    follows(&s, (double[]){1, 1, .5, .5, .25, .25}, 6);
}

/* CosineAnnealingLR(T_max=4, eta_min=0.2), lr 1 */
TEST(cosine_schedule) {
    RtSchedule s = {.kind = RT_SCHED_COSINE, .lr = 1, .min_lr = 0.2, .epochs = 4};
    double r = sqrt(0.5);
    follows(&s, (double[]){1, .2 + .4 * (1 + r), .6, .2 + .4 * (1 - r), .2}, 5);
}

/* LinearLR(start_factor=1, end_factor=0.5, total_iters=4), lr 2 */
TEST(linear_schedule) {
    RtSchedule s = {.kind = RT_SCHED_LINEAR, .lr = 2, .min_lr = 1, .epochs = 4};
    follows(&s, (double[]){2, 1.75, 1.5, 1.25, 1}, 5);
}

/* SequentialLR([LinearLR(1/4, total_iters=3), StepLR(2, 0.1)], milestones=[4]) */
TEST(warm_up_comes_first) {
    RtSchedule s = {
        .kind = RT_SCHED_STEP, .lr = 1, .gamma = .1, .step_epochs = 2, .warmup_epochs = 4};
    follows(&s, (double[]){.25, .5, .75, 1, 1, 1, .1, .1}, 8);
}

/* ReduceLROnPlateau(factor=0.1, patience=1, min_lr=0.02): torch lowers after the
 * second bad epoch in a row; a gain below 1e-4 relative is none. */
TEST(plateau_schedule) {
    RtSchedule s = {.kind = RT_SCHED_PLATEAU, .lr = 1, .gamma = .1, .min_lr = .02, .patience = 1};
    RtPlateau p = {0};
    double metric[] = {5, 4, 4, 3.9999, 4, 4, 3, NAN, NAN};
    double want[] = {1, 1, 1, .1, .1, .02, .02, .02, .02};
    for (int e = 0; e < 9; e++) {
        rt_schedule_observe(&s, &p, e, metric[e]);
        CHECK_MSG(near(rt_schedule_lr(&s, &p, e + 1), want[e]), "epoch %d: %g", e,
                  rt_schedule_lr(&s, &p, e + 1));
    }
}

TEST(plateau_of_a_metric_to_maximise) {
    RtSchedule s = {
        .kind = RT_SCHED_PLATEAU, .lr = 1, .gamma = .5, .patience = 0, .larger_is_better = true};
    RtPlateau p = {0};
    double metric[] = {.1, .2, .2, .3}, want[] = {1, 1, .5, .5};
    for (int e = 0; e < 4; e++) {
        rt_schedule_observe(&s, &p, e, metric[e]);
        CHECK(near(rt_schedule_lr(&s, &p, e + 1), want[e]));
    }
}

/* ---- packing ------------------------------------------------------------------------ */
enum { MOST = 64 };

static size_t pack_and_check(RtPackItem *item, int n) {
    int order[MOST], live[MOST];
    size_t total = rt_pack(item, n, order, live);
    for (int i = 0; i < n; i++) {
        CHECK(item[i].offset % RT_ALIGN == 0 && item[i].offset + item[i].n_bytes <= total);
        for (int k = 0; k < i; k++) {
            bool meet = item[i].first <= item[k].last && item[k].first <= item[i].last;
            bool overlap = item[i].offset < item[k].offset + item[k].n_bytes &&
                           item[k].offset < item[i].offset + item[i].n_bytes;
            CHECK(!(meet && overlap));
        }
    }
    return total;
}

TEST(disjoint_lifetimes_share_memory) {
    RtPackItem a[] = {{640, 0, 1, 0, 0, 0, 0}, {640, 2, 3, 0, 0, 0, 0}, {128, 0, 3, 0, 0, 0, 0}};
    CHECK(pack_and_check(a, 3) == 640 + 128);
    RtPackItem chain[] = {{64, 0, 1, 0, 0, 0, 0},
                          {64, 1, 2, 0, 0, 0, 0},
                          {64, 2, 3, 0, 0, 0, 0},
                          {64, 3, 4, 0, 0, 0, 0}};
    CHECK(pack_and_check(chain, 4) == 128);
    /* two of one loop's own, apart within it; one that is there through all of the loop */
    RtPackItem own[] = {{64, 0, 9, 1, 2, 4, 0}, {64, 0, 9, 1, 5, 6, 0}, {64, 0, 9, 0, 0, 0, 0}};
    size_t room = rt_pack(own, 3, (int[3]){0}, (int[3]){0});
    CHECK(room == 128 && own[0].offset == own[1].offset && own[2].offset != own[0].offset);
    RtPackItem empty[] = {{0, 0, 9, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0}};
    CHECK(pack_and_check(empty, 2) == 64);
    CHECK(rt_pack(NULL, 0, NULL, NULL) == 0);
}

TEST(random_packings_never_collide) {
    for (uint32_t seed = 0; seed < 50; seed++) {
        RtPackItem a[MOST];
        size_t sum = 0;
        for (uint32_t i = 0; i < MOST; i++) {
            uint32_t r = rt_mix32(seed * 1000 + i);
            int first = (int)(r % 20);
            a[i] = (RtPackItem){r >> 8 & 4095, first, first + (int)(r >> 20 & 7), 0, 0, 0, 0};
            sum += (a[i].n_bytes + 63) / 64 * 64;
        }
        CHECK(pack_and_check(a, MOST) < sum);
    }
}

/* ---- ranks ----------------------------------------------------------------------------- */
static void exec_new(RtExec *x, RtRuntime *rt, const rt_program *p) {
    *rt = (RtRuntime){0};
    rt_pool_init(&rt->pool, NULL);
    *x = (RtExec){.program = p, .rt = rt, .threads = 1};
}

TEST(ranks_of_ties) {
    RtExec x;
    RtRuntime rt;
    exec_new(&x, &rt, &tiny_program);
    float v[] = {3, 1, 3, 9, 2, 3}, y[6];
    uint8_t mask[] = {1, 1, 1, 0, 1, 1};
    float want[] = {4, 1, 4, 0, 2, 4};
    CHECK(rt_rank_f32(&x, v, mask, y, 1, 6, 1, 1) == GNNC_OK);
    CHECK(memcmp(y, want, sizeof y) == 0);
    float lowest[] = {3, 1, 3, 0, 2, 3}, highest[] = {5, 1, 5, 0, 2, 5};
    CHECK(rt_rank_f32(&x, v, mask, y, 1, 6, 1, 0) == GNNC_OK);
    CHECK(memcmp(y, lowest, sizeof y) == 0);
    CHECK(rt_rank_f32(&x, v, mask, y, 1, 6, 1, 2) == GNNC_OK);
    CHECK(memcmp(y, highest, sizeof y) == 0);
    /* [outer 1, len 3, inner 2]: two lanes */
    float lanes[] = {3, 2, 1, 1, 2, 0};
    uint8_t all[] = {1, 1, 1, 1, 1, 1};
    float want2[] = {3, 3, 1, 2, 2, 1};
    CHECK(rt_rank_f32(&x, lanes, all, y, 1, 3, 2, 1) == GNNC_OK);
    CHECK(memcmp(y, want2, sizeof y) == 0);
    CHECK(rt_rank_f32(&x, v, mask, y, 1, 0, 1, 1) == GNNC_OK);
    rt_pool_free(&rt.pool);
}

/* ---- effects -------------------------------------------------------------------------- */
static char last_message[256];
static void note_message(void *user, const char *text) {
    (void)user;
    snprintf(last_message, sizeof last_message, "%s", text);
}

TEST(print_and_assert_reach_the_host) {
    RtExec x;
    RtRuntime rt;
    int64_t n[N_TINY_SYMS] = {3, 5, 4, 0, 0};
    float weight[4] = {1, 2.5f, -3, 4}, loss = .25f;
    void *buf[N_TINY_BUFS] = {[B_WEIGHT] = weight, [B_LOSS] = &loss};
    exec_new(&x, &rt, &tiny_program);
    x.n = n;
    x.buf = buf;
    CHECK(rt_print(&x, "w", 1, (int[]){B_WEIGHT}) == GNNC_OK); /* nobody listens */
    rt.message = note_message;
    CHECK(rt_print(&x, "w and loss", 2, (int[]){B_WEIGHT, B_LOSS}) == GNNC_OK);
    CHECK_STR(last_message, "w and loss [1, 2.5, -3, 4] 0.25");
    CHECK(rt_assert(&x, "positive", (uint8_t[]){1, 1}, 2) == GNNC_OK);
    CHECK(rt_assert(&x, "positive", (uint8_t[]){1, 0}, 2) == GNNC_E_ASSERT);
    CHECK_STR(rt.err.text, "assertion failed: positive (element 1)");
    rt_pool_free(&rt.pool);
}

/* ---- initialisers -------------------------------------------------------------------------- */
static rt_var one_var;
static int64_t var_count;

static void one_shape(int v, const int64_t *n, rt_var_shape *s) {
    (void)v, (void)n;
    *s = (rt_var_shape){
        .rank = 1, .dim = {var_count}, .count = var_count, .fan_in = 6, .fan_out = 18};
}

typedef struct {
    double mean, sd, least, most;
} Moments;

static Moments fill(rt_init_kind kind, double a, double b, const char *path, float *v, int64_t n) {
    RtExec x;
    RtRuntime rt;
    rt_program p = tiny_program;
    void *buf[] = {v};
    one_var = (rt_var){path, RT_VAR_PARAM, RT_F32, 0, NULL, kind, a, b, RT_ROLE_NONE, false, 0};
    var_count = n;
    p.vars = &one_var;
    p.var_shape = one_shape;
    exec_new(&x, &rt, &p);
    x.buf = buf;
    rt_init_var(&x, 0, 7);
    rt_pool_free(&rt.pool);
    Moments m = {0, 0, v[0], v[0]};
    for (int64_t i = 0; i < n; i++) {
        m.mean += v[i] / (double)n;
        m.least = fmin(m.least, v[i]);
        m.most = fmax(m.most, v[i]);
    }
    for (int64_t i = 0; i < n; i++) m.sd += (v[i] - m.mean) * (v[i] - m.mean) / (double)n;
    m.sd = sqrt(m.sd);
    return m;
}

TEST(initialisers_have_their_distributions) {
    enum { COUNT = 20000 };
    static float v[COUNT], w[COUNT];
    Moments m = fill(RT_INIT_GLOROT, 1, 0, "a", v, COUNT); /* +-sqrt(6 / 24) = 0.5 */
    CHECK(m.least >= -.5 && m.least < -.499 && m.most <= .5 && m.most > .499);
    CHECK(fabs(m.mean) < .01 && fabs(m.sd - .5 / sqrt(3)) < .01);
    m = fill(RT_INIT_KAIMING_UNIFORM, sqrt(5), 0, "a", v, COUNT); /* +-1 / sqrt(6) */
    CHECK(m.most <= 1 / sqrt(6) + 1e-6 && m.most > .4);
    m = fill(RT_INIT_NORMAL, 3, 2, "a", v, COUNT);
    CHECK(fabs(m.mean - 3) < .06 && fabs(m.sd - 2) < .06);
    m = fill(RT_INIT_UNIFORM, 1, 4, "a", v, COUNT);
    CHECK(m.least >= 1 && m.most < 4 && fabs(m.mean - 2.5) < .03);
    m = fill(RT_INIT_CONST, .25, 0, "a", v, COUNT);
    CHECK(m.least == .25 && m.most == .25);
    /* An element depends on its index and path, not on how many there are. */
    fill(RT_INIT_GLOROT, 1, 0, "a", v, COUNT);
    fill(RT_INIT_GLOROT, 1, 0, "a", w, 10);
    CHECK(memcmp(v, w, 10 * sizeof *v) == 0);
    fill(RT_INIT_GLOROT, 1, 0, "b", w, 10);
    CHECK(memcmp(v, w, 10 * sizeof *v) != 0);
}

/* ---- shapes of weights -------- */
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }

TEST(shapes_agree_when_the_element_order_does) {
    CHECK(rt_shapes_agree(SHAPE(8, 16, 5), SHAPE(128, 5)));
    CHECK(rt_shapes_agree(SHAPE(1, 128, 5, 1), SHAPE(8, 16, 5)));
    CHECK(rt_shapes_agree(SHAPE(1), 0, NULL));
    CHECK(rt_shapes_agree(SHAPE(0, 7), SHAPE(0, 7)));
    CHECK(!rt_shapes_agree(SHAPE(8, 16), SHAPE(16, 8)));
    CHECK(!rt_shapes_agree(SHAPE(8, 16), SHAPE(8, 17)));
    CHECK(!rt_shapes_agree(SHAPE(6, 4), SHAPE(4, 6)));
    CHECK(!rt_shapes_agree(SHAPE(0), SHAPE(5)));
}

TEST_MAIN()
