/* PyG's initialisers (torch_geometric.nn.inits, torch.nn.init).  Element i of variable
 * `path` draws from the stream (seed, INIT_STEP, hash of path) at (i, 0): adding a
 * layer, reordering variables or changing the thread count moves no other value.
 *
 *   glorot   Glorot and Bengio 2010, equation 16: uniform +-a sqrt(6 / (in + out))
 *   kaiming  He et al. 2015 with leaky slope a: uniform +-sqrt(6 / ((1 + a^2) in))
 *   normal   Box and Muller 1958 */
#include "init.h"

#include <math.h>

#include "runtime/exec/rng.h"

/* No training step reaches this number, so initial values share no stream with masks. */
static const uint64_t INIT_STEP = UINT64_MAX;

uint64_t rt_hash_text(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

/* Variables of more than 2^32 elements take the next column. */
static double uniform01(RtKey key, int64_t i, uint32_t draw) {
    return rt_uniform(key, (uint32_t)i, 2 * (uint32_t)((uint64_t)i >> 32) + draw);
}

/* The i-th number of a standard normal distribution (Box-Muller). */
static double normal01(RtKey key, int64_t i) {
    const double two_pi = 6.28318530717958647692;
    double r = 1 - uniform01(key, i, 0); /* (0, 1] */
    return sqrt(-2 * log(r)) * cos(two_pi * uniform01(key, i, 1));
}

/* Half-width of the symmetric uniform initialisers. */
static double bound_of(const rt_var *v, const rt_var_shape *s) {
    double fan = v->init == RT_INIT_GLOROT ? (double)(s->fan_in + s->fan_out)
                                           : (1 + v->a * v->a) * (double)s->fan_in;
    double bound = fan > 0 ? sqrt(6 / fan) : 0;
    return v->init == RT_INIT_GLOROT ? v->a * bound : bound;
}

/* The first value of element i of a variable; bound: of those whose range follows from the
 * shape. */
static double value(const rt_var *v, RtKey key, int64_t i, double bound) {
    switch (v->init) {
    case RT_INIT_CONST:
        return v->a;
    case RT_INIT_UNIFORM:
        return v->a + (v->b - v->a) * uniform01(key, i, 0);
    case RT_INIT_NORMAL:
        return v->a + v->b * normal01(key, i);
    case RT_INIT_GLOROT:
    case RT_INIT_KAIMING_UNIFORM:
        return bound * (2 * uniform01(key, i, 0) - 1);
    }
    return 0;
}

/* Writes number v as element i of an array of the type. */
static void store(void *p, rt_dtype dt, int64_t i, double v) {
    if (dt == RT_F64)
        ((double *)p)[i] = v;
    else if (dt == RT_I32)
        ((int32_t *)p)[i] = (int32_t)v;
    else if (dt == RT_I64)
        ((int64_t *)p)[i] = (int64_t)v;
    else if (dt == RT_I1)
        ((uint8_t *)p)[i] = v != 0;
    else if (dt == RT_F32)
        ((float *)p)[i] = (float)v;
}

double rt_init_value(const rt_var *v, const rt_var_shape *s, uint64_t seed, int64_t i) {
    return value(v, rt_stream_key(seed, INIT_STEP, rt_hash_text(v->path)), i, bound_of(v, s));
}

void rt_init_var(RtExec *x, int v, uint64_t seed) {
    const rt_var *var = &x->program->vars[v];
    if (var->buf < 0) return; /* no phase uses it */
    rt_var_shape shape = {.rank = 0};
    x->program->var_shape(v, x->n, &shape);
    RtKey key = rt_stream_key(seed, INIT_STEP, rt_hash_text(var->path));
    double bound = bound_of(var, &shape);
    int64_t row = shape.transposed ? shape.transposed : 1, rows = shape.count / row;
    for (int64_t i = 0; i < shape.count; i++)
        store(x->buf[var->buf], var->dt, i % row * rows + i / row, value(var, key, i, bound));
}
