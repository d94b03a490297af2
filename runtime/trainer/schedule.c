/* Learning-rate schedules in closed form, so that resuming needs no replay (plateau
 * alone has a state).  Warm-up of W epochs is LinearLR(start_factor = 1/W,
 * total_iters = W - 1): epoch e runs at lr * (e + 1) / W; the main schedule starts
 * after it, as under SequentialLR.
 *
 * Sources: torch.optim.lr_scheduler (StepLR, CosineAnnealingLR, LinearLR,
 * ReduceLROnPlateau with threshold 1e-4 relative, cooldown 0, eps 1e-8).  Cosine:
 * Loshchilov and Hutter 2017, SGDR, equation 5 without restarts. */
#include "schedule.h"

#include <math.h>

static int64_t main_epochs(const RtSchedule *s) {
    int64_t n = s->epochs - s->warmup_epochs;
    return n > 0 ? n : 1;
}

/* The learning rate in epoch e (from 0) after the warmup: along half a cosine, from lr to
 * min_lr. */
static double cosine(const RtSchedule *s, int64_t e) {
    const double pi = 3.14159265358979323846;
    int64_t n = main_epochs(s);
    if (e > n) e = n;
    return s->min_lr + (s->lr - s->min_lr) * (1 + cos(pi * (double)e / (double)n)) / 2;
}

/* The learning rate in epoch e (from 0) after the warmup: in a straight line from lr to min_lr. */
static double linear(const RtSchedule *s, int64_t e) {
    int64_t n = main_epochs(s);
    if (e > n) e = n;
    return s->lr + (s->min_lr - s->lr) * (double)e / (double)n;
}

double rt_schedule_lr(const RtSchedule *s, const RtPlateau *p, int64_t epoch) {
    if (epoch < s->warmup_epochs) return s->lr * (double)(epoch + 1) / (double)s->warmup_epochs;
    int64_t e = epoch - s->warmup_epochs;
    switch (s->kind) {
    case RT_SCHED_CONSTANT:
        break;
    case RT_SCHED_STEP:
        return s->lr * pow(s->gamma, (double)(s->step_epochs > 0 ? e / s->step_epochs : 0));
    case RT_SCHED_COSINE:
        return cosine(s, e);
    case RT_SCHED_LINEAR:
        return linear(s, e);
    case RT_SCHED_PLATEAU:
        return p->started ? p->lr : s->lr;
    }
    return s->lr;
}

static bool is_better(const RtSchedule *s, double metric, double best) {
    const double threshold = 1e-4;
    return s->larger_is_better ? metric > best * (1 + threshold) : metric < best * (1 - threshold);
}

void rt_schedule_observe(const RtSchedule *s, RtPlateau *p, int64_t epoch, double metric) {
    if (s->kind != RT_SCHED_PLATEAU || epoch < s->warmup_epochs) return;
    if (!p->started)
        *p = (RtPlateau){
            .lr = s->lr, .best = s->larger_is_better ? -INFINITY : INFINITY, .started = true};
    if (is_better(s, metric, p->best)) {
        p->best = metric;
        p->n_bad = 0;
        return;
    }
    if (++p->n_bad <= s->patience) return;
    double lr = fmax(p->lr * s->gamma, s->min_lr);
    if (p->lr - lr > 1e-8) p->lr = lr;
    p->n_bad = 0;
}
