/* A compiled program written by hand, small enough to read, with everything that a
 * trainer must serve: a load phase with a computed relation, random keys, a balanced
 * loop, temporaries, optimizer slots, a state, metrics of three splits.
 *
 *     h[v]    = sum over edges e into v of keep(e) x[src(e)] / max(deg(v), 1)
 *     pred[v] = w . h[v] + b           loss = mean over the split of (pred - t)^2
 *
 * trained by SGD with momentum 0.9; keep(e) is dropout 0.2 in training. */
#ifndef TESTS_TINY_PROGRAM_H
#define TESTS_TINY_PROGRAM_H

#include "runtime/program.h"
#include "runtime/exec/rng.h"

#include <math.h>

enum { S_N, S_E, S_F, S_BIG, S_LOOPS, N_TINY_SYMS };

enum {
    B_X,
    B_T,
    B_SPLIT,
    B_W, /* data */
    B_DST_PTR,
    B_DST_IDX,
    B_SRC_IDX,
    B_LOOPS_PTR, /* maps */
    B_IDS,
    B_KEY,
    B_LR,
    B_STEP, /* row keys, key, inputs */
    B_WEIGHT,
    B_BIAS,
    B_SEEN,
    B_MW,
    B_MB, /* variables */
    B_DEG,
    B_BIG_DEG,
    B_COND, /* saved, condition */
    B_H,
    B_PRED,
    B_GRAD,
    B_EH,
    B_EPRED,
    B_EDGE_TMP, /* temporaries */
    B_LOSS,
    B_LTRAIN,
    B_LVAL,
    B_MAE,
    B_OUT,
    B_EMBED, /* outputs */
    N_TINY_BUFS
};
enum { PH_LOAD, PH_TRAIN, PH_EVAL, PH_PREDICT, PH_EMBED, N_TINY_PHASES };

static const char *const tiny_syms[] = {"N_n", "E_e", "F", "E_big", "E_loops"};

#define NO -1
/* What spaces of the data have none of. */
#define OF_DATA .fixed = NO, .col = NO, .graph = NO, .whole = NO
#define NO_ENDS .src = NO, .dst = NO, .base = {NO, NO}, .cond_buf = NO
static const rt_space tiny_spaces[] = {
    {.name = "n", .kind = RT_SP_NODE, .sym = S_N, .varies = true, OF_DATA, NO_ENDS},
    {.name = "e",
     .kind = RT_SP_EDGE,
     .sym = S_E,
     .base = {NO, NO},
     .cond_buf = NO,
     .sampled = true,
     .varies = true,
     OF_DATA},
    {.name = "F", .kind = RT_SP_DIM, .sym = S_F, OF_DATA, NO_ENDS},
    {.name = "big",
     .kind = RT_SP_EDGE,
     .sym = S_BIG,
     .rel = RT_REL_WHERE,
     .base = {1, NO},
     .cond_buf = B_COND,
     .varies = true,
     OF_DATA},
    {.name = "loops",
     .kind = RT_SP_EDGE,
     .sym = S_LOOPS,
     .rel = RT_REL_SELF_LOOPS,
     .base = {3, NO},
     .cond_buf = NO,
     .varies = true,
     OF_DATA},
};
static const rt_column tiny_columns[] = {
    {"x", RT_COL_FLOAT, 0, 1, {2}, NO, NO, B_X, false},
    {"t", RT_COL_FLOAT, 0, 0, {0}, NO, NO, B_T, true},
    {"split", RT_COL_SPLIT, 0, 0, {0}, NO, NO, B_SPLIT, true},
    {"w", RT_COL_FLOAT, 1, 0, {0}, NO, NO, B_W, false},
};
static const rt_map tiny_maps[] = {
    {RT_MAP_DST, 1, 0, NO, 0, B_DST_IDX, B_DST_PTR, NO, {NO, NO}, NO},
    {RT_MAP_SRC, 1, 0, NO, 0, B_SRC_IDX, NO, NO, {NO, NO}, NO},
    {RT_MAP_DST, 4, 0, NO, 0, NO, B_LOOPS_PTR, NO, {NO, NO}, NO},
};
static const rt_var tiny_vars[] = {
    {"lin.weight", RT_VAR_PARAM, RT_F32, B_WEIGHT, 0, RT_INIT_GLOROT, 1, 0, RT_ROLE_NONE, false, 0},
    {"opt.m.lin.weight", RT_VAR_SLOT, RT_F32, B_MW, 0, RT_INIT_CONST, 0, 0, RT_ROLE_NONE, false, 0},
    {"seen", RT_VAR_STATE, RT_F32, B_SEEN, 0, RT_INIT_CONST, 0, 0, RT_ROLE_NONE, false, 0},
    {"lin.bias", RT_VAR_PARAM, RT_F32, B_BIAS, 0, RT_INIT_CONST, 0, 0, RT_ROLE_NONE, false, 0},
    {"opt.m.lin.bias", RT_VAR_SLOT, RT_F32, B_MB, 0, RT_INIT_CONST, 0, 0, RT_ROLE_NONE, false, 0},
};

#define BUF(name, kind, dt, io, space, phase, first, last, rank)                                   \
    {name, RT_BUF_##kind, RT_##dt,       io,   space, 0, NO, NO, phase, first, last, rank,         \
     NO,   RT_OUT_VALUE,  RT_SPLIT_NONE, NULL, false, 0, 0,  0,  false}
#define OUT(name, io, space, phase, rank, role, split, of)                                         \
    {name, RT_BUF_OUTPUT, RT_F32,           io, space, 0, NO, NO, phase, 0, 0, rank,               \
     NO,   RT_OUT_##role, RT_SPLIT_##split, of, false, 0, 0,  0,  false}
static const rt_buf tiny_bufs[] = {
    [B_X] = BUF("x", DATA, F32, 0, NO, NO, 0, 0, 2),
    [B_T] = BUF("t", DATA, F32, 0, NO, NO, 0, 0, 1),
    [B_SPLIT] = BUF("split", DATA, I32, 0, NO, NO, 0, 0, 1),
    [B_W] = BUF("w", DATA, F32, 0, NO, NO, 0, 0, 1),
    [B_DST_PTR] = BUF("dst_ptr", MAP, I64, 0, NO, NO, 0, 0, 1),
    [B_DST_IDX] = BUF("dst_idx", MAP, I32, 0, NO, NO, 0, 0, 1),
    [B_SRC_IDX] = BUF("src_idx", MAP, I32, 0, NO, NO, 0, 0, 1),
    [B_LOOPS_PTR] = BUF("loops_ptr", MAP, I64, 0, NO, NO, 0, 0, 1),
    [B_IDS] = BUF("ids", LOGICAL, I32, 0, 1, NO, 0, 0, 1),
    [B_KEY] = BUF("key", KEY, I32, 0, NO, NO, 0, 0, 1),
    [B_LR] = BUF("lr", INPUT, F32, "lr", NO, NO, 0, 0, 0),
    [B_STEP] = BUF("step", INPUT, F32, "step", NO, NO, 0, 0, 0),
    [B_WEIGHT] = BUF("weight", VAR, F32, 0, NO, NO, 0, 0, 1),
    [B_BIAS] = BUF("bias", VAR, F32, 0, NO, NO, 0, 0, 0),
    [B_SEEN] = BUF("seen", VAR, F32, 0, NO, NO, 0, 0, 0),
    [B_MW] = BUF("mw", VAR, F32, 0, NO, NO, 0, 0, 1),
    [B_MB] = BUF("mb", VAR, F32, 0, NO, NO, 0, 0, 0),
    [B_DEG] = BUF("deg", SAVED, F32, "deg", NO, PH_LOAD, 0, 0, 1),
    [B_BIG_DEG] = BUF("big_deg", SAVED, F32, "big_deg", NO, PH_LOAD, 0, 0, 1),
    [B_COND] = BUF("cond", OUTPUT, I1, "cond", 1, PH_LOAD, 0, 0, 1),
    [B_H] = BUF("h", TEMP, F32, 0, NO, PH_TRAIN, 0, 2, 2),
    [B_PRED] = BUF("pred", TEMP, F32, 0, NO, PH_TRAIN, 1, 2, 1),
    [B_GRAD] = BUF("grad", TEMP, F32, 0, NO, PH_TRAIN, 2, 3, 1),
    [B_EH] = BUF("eh", TEMP, F32, 0, NO, PH_EVAL, 0, 1, 2),
    [B_EPRED] = BUF("epred", TEMP, F32, 0, NO, PH_EVAL, 1, 2, 1),
    [B_EDGE_TMP] = BUF("edge_tmp", TEMP, F32, 0, NO, PH_LOAD, 2, 3, 1),
    [B_LOSS] = OUT("loss", "loss", NO, PH_TRAIN, 0, LOSS, NONE, NULL),
    [B_LTRAIN] = OUT("ltrain", "loss.train", NO, PH_EVAL, 0, LOSS, TRAIN, "loss"),
    [B_LVAL] = OUT("lval", "loss.val", NO, PH_EVAL, 0, LOSS, VAL, "loss"),
    [B_MAE] = OUT("mae", "mae.test", NO, PH_EVAL, 0, METRIC, TEST, "mae"),
    [B_OUT] = OUT("out", "pred", 0, PH_PREDICT, 1, PRED, NONE, NULL),
    [B_EMBED] = OUT("embed_h", "embed.h", 0, PH_EMBED, 2, EMBED, NONE, "h"),
};
#undef BUF
#undef NO

static int64_t tiny_count(int b, const int64_t *n) {
    switch (b) {
    case B_X:
    case B_H:
    case B_EH:
    case B_EMBED:
        return n[S_N] * n[S_F];
    case B_T:
    case B_SPLIT:
    case B_DEG:
    case B_BIG_DEG:
    case B_PRED:
    case B_EPRED:
    case B_OUT:
        return n[S_N];
    case B_W:
    case B_DST_IDX:
    case B_SRC_IDX:
    case B_IDS:
    case B_COND:
        return n[S_E];
    case B_DST_PTR:
    case B_LOOPS_PTR:
        return n[S_N] + 1;
    case B_KEY:
        return 2;
    case B_WEIGHT:
    case B_MW:
        return n[S_F];
    case B_GRAD:
        return n[S_F] + 1;
    case B_EDGE_TMP:
        return n[S_LOOPS];
    default:
        return 1;
    }
}

static void tiny_buf_shape(int b, const int64_t *n, int64_t *dim) {
    dim[0] = b == B_COND ? n[S_E] : n[S_N];
    dim[1] = n[S_F];
}

static void tiny_var_shape(int v, const int64_t *n, rt_var_shape *s) {
    bool matrix = v < 2;
    *s = (rt_var_shape){.rank = matrix   ? 2
                                : v == 2 ? 0
                                         : 1,
                        .dim = {1, n[S_F]},
                        .count = matrix ? n[S_F] : 1,
                        .fan_in = n[S_F],
                        .fan_out = 1};
}

/* ---- kernels -------------------------------------------------------------------- */
typedef struct {
    const RtExec *x;
    float *h;
    float drop;
} TinyAgg;

static void tiny_agg(void *const *arg, const int64_t *n, int64_t lo, int64_t hi) {
    const TinyAgg *a = (const TinyAgg *)arg[0];
    void **buf = a->x->buf;
    const float *x = buf[B_X], *deg = buf[B_DEG];
    const int64_t *ptr = buf[B_DST_PTR];
    const int32_t *src = buf[B_SRC_IDX], *id = buf[B_IDS];
    const uint32_t *key = buf[B_KEY];
    for (int64_t v = lo; v < hi; v++)
        for (int64_t f = 0; f < n[S_F]; f++) {
            float sum = 0;
            for (int64_t e = ptr[v]; e < ptr[v + 1]; e++) {
                float u = rt_uniform((RtKey){key[0], key[1]}, (uint32_t)id[e], 0);
                float keep = u < a->drop ? 0 : 1 / (1 - a->drop);
                sum += keep * x[src[e] * n[S_F] + f];
            }
            a->h[v * n[S_F] + f] = sum / (deg[v] > 1 ? deg[v] : 1);
        }
}

static void tiny_forward(RtExec *x, float *h, float *pred, float drop) {
    TinyAgg a = {x, h, drop};
    rt_launch_balanced(x, tiny_agg, (void *const[]){&a}, 1, (const int[]){0});
    const float *w = x->buf[B_WEIGHT], *b = x->buf[B_BIAS];
    for (int64_t v = 0; pred && v < x->n[S_N]; v++) {
        pred[v] = b[0];
        for (int64_t f = 0; f < x->n[S_F]; f++) pred[v] += w[f] * h[v * x->n[S_F] + f];
    }
}

static float tiny_mean(const RtExec *x, const float *pred, int part, bool square) {
    const float *t = x->buf[B_T];
    const int32_t *split = x->buf[B_SPLIT];
    float sum = 0, count = 0;
    for (int64_t v = 0; v < x->n[S_N]; v++) {
        float d = pred[v] - t[v];
        sum += split[v] == part ? (square ? d * d : fabsf(d)) : 0;
        count += split[v] == part;
    }
    return sum / (count > 0 ? count : 1);
}

/* ---- phases ------------------------------------------------------------------------ */
static gnnc_status tiny_load(RtExec *x) {
    const int64_t *ptr = x->buf[B_DST_PTR];
    float *deg = x->buf[B_DEG];
    uint8_t *cond = x->buf[B_COND];
    const float *w = x->buf[B_W];
    for (int64_t v = 0; v < x->n[S_N]; v++) deg[v] = (float)(ptr[v + 1] - ptr[v]);
    for (int64_t e = 0; e < x->n[S_E]; e++) cond[e] = w[e] > 0.5f;
    gnnc_status st = rt_build_relation(x, 3);
    if (st != GNNC_OK) return st;
    ptr = x->buf[B_LOOPS_PTR];
    float *tmp = x->buf[B_EDGE_TMP], *big = x->buf[B_BIG_DEG];
    for (int64_t e = 0; e < x->n[S_LOOPS]; e++) tmp[e] = 1;
    for (int64_t v = 0; v < x->n[S_N]; v++) {
        big[v] = 0;
        for (int64_t e = ptr[v]; e < ptr[v + 1]; e++) big[v] += tmp[e];
    }
    return GNNC_OK;
}

static void tiny_update(float *w, float *m, float g, float lr) {
    *m = 0.9f * *m + g;
    *w -= lr * *m;
}

static gnnc_status tiny_train(RtExec *x) {
    float *h = x->buf[B_H], *pred = x->buf[B_PRED], *g = x->buf[B_GRAD];
    const float *t = x->buf[B_T], lr = *(float *)x->buf[B_LR];
    const int32_t *split = x->buf[B_SPLIT];
    int64_t n_f = x->n[S_F];
    float count = 0;
    tiny_forward(x, h, pred, 0.2f);
    *(float *)x->buf[B_LOSS] = tiny_mean(x, pred, 1, true);
    for (int64_t v = 0; v < x->n[S_N]; v++) count += split[v] == 1;
    for (int64_t f = 0; f <= n_f; f++) {
        g[f] = 0;
        for (int64_t v = 0; v < x->n[S_N]; v++)
            if (split[v] == 1)
                g[f] += 2 * (pred[v] - t[v]) * (f < n_f ? h[v * n_f + f] : 1) / count;
    }
    float *w = x->buf[B_WEIGHT], *mw = x->buf[B_MW];
    for (int64_t f = 0; f < n_f; f++) tiny_update(&w[f], &mw[f], g[f], lr);
    tiny_update(x->buf[B_BIAS], x->buf[B_MB], g[n_f], lr);
    *(float *)x->buf[B_SEEN] += 1;
    return GNNC_OK;
}

static gnnc_status tiny_eval(RtExec *x) {
    float *pred = x->buf[B_EPRED];
    tiny_forward(x, x->buf[B_EH], pred, 0);
    *(float *)x->buf[B_LTRAIN] = tiny_mean(x, pred, 1, true);
    *(float *)x->buf[B_LVAL] = tiny_mean(x, pred, 2, true);
    *(float *)x->buf[B_MAE] = tiny_mean(x, pred, 3, false);
    return GNNC_OK;
}

static gnnc_status tiny_predict(RtExec *x) {
    /* The embed output doubles as working memory: both are this program's own. */
    tiny_forward(x, x->buf[B_EMBED], x->buf[B_OUT], 0);
    return GNNC_OK;
}

static gnnc_status tiny_embed(RtExec *x) {
    tiny_forward(x, x->buf[B_EMBED], 0, 0);
    return GNNC_OK;
}

static const rt_phase tiny_phases[] = {
    {.name = "load", .kind = RT_PHASE_LOAD, .n_steps = 4, .run = tiny_load, .n_kernels = 3},
    {.name = "train", .kind = RT_PHASE_TRAIN, .n_steps = 4, .run = tiny_train, .n_kernels = 1},
    {.name = "eval", .kind = RT_PHASE_EVAL, .n_steps = 3, .run = tiny_eval, .n_kernels = 1},
    {.name = "predict",
     .kind = RT_PHASE_PREDICT,
     .n_steps = 1,
     .run = tiny_predict,
     .n_kernels = 1},
    {.name = "embed", .kind = RT_PHASE_EMBED, .n_steps = 1, .run = tiny_embed, .n_kernels = 1},
};
static const char *const tiny_metrics[] = {"mae"};

static const rt_program tiny_program = {
    .name = "tiny",
    .source = "tiny.gnn",
    .compiler = "by hand",
    .options = "none",
    .fingerprint = 0x7171,
    .n_syms = N_TINY_SYMS,
    .n_spaces = 5,
    .n_columns = 4,
    .n_maps = 3,
    .n_vars = 5,
    .n_bufs = N_TINY_BUFS,
    .n_phases = N_TINY_PHASES,
    .n_streams = 1,
    .syms = tiny_syms,
    .spaces = tiny_spaces,
    .columns = tiny_columns,
    .maps = tiny_maps,
    .vars = tiny_vars,
    .bufs = tiny_bufs,
    .phases = tiny_phases,
    .buf_count = tiny_count,
    .buf_shape = tiny_buf_shape,
    .var_shape = tiny_var_shape,
    .recipe = {.present = true,
               .model_name = "Tiny",
               .target = "n.t",
               .optim = RT_OPTIM_SGD,
               .lr = 0.05,
               .momentum = 0.9,
               .sched = RT_SCHED_COSINE,
               .warmup_epochs = 2,
               .gamma = 0.1,
               .epochs = 12,
               .keep_metric = "loss",
               .keep_split = 2,
               .n_metrics = 1,
               .metrics = tiny_metrics},
};
static const gnnc_program tiny_model = {RT_PROGRAM_VERSION, &tiny_program};
#endif
