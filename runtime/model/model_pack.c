/* Weights packed for matrix products (gemm_kernel.c, gemm_tiles_16.h) when the first session of a
 * model is opened.
 *
 * Each session would have room for the largest of them, and pack them anew for each prediction.
 * What is packed is the model's own tensor, whose address is its name as long as the model lives.
 * f32 products on AMX take pieces of the weight itself, and pack these (gemm_pieces.c). */
#include "runtime/memory.h"
#include "model.h"
#include "runtime/gemm/gemm.h"

/* Packs the matrix b for the product g, and adds it to the model's list of packed matrices. */
static gnnc_status add(gnnc_trainer *t, const rt_gemm *g, const void *b) {
    gnnc_model *m = t->rt.model;
    RtPacked *p = RT_NEW(&m->pool, RtPacked);
    void *to = p ? rt_memory_block(&m->pool, rt_gemm_packed_bytes(&t->x, g)) : NULL;
    if (!to) return rt_fail_nomem(&t->rt.err, "a session");
    rt_gemm_pack_whole(&t->x, g, b, to);
    *p = (RtPacked){.next = m->packed,
                    .b = b,
                    .k = g->k,
                    .n = g->n,
                    .b_row = g->b_row,
                    .b_col = g->b_col,
                    .data = to};
    t->rt.packed = m->packed = p;
    return GNNC_OK;
}

/* Of parameters with rows a batch has some. */
static bool has_rows(const rt_program *p, int buf) {
    int space = p->bufs[buf].space;
    return space >= 0 && p->spaces[space].kind != RT_SP_DIM;
}

/* Packs the weight of a step's product, if the model has it, it is multiplied as a whole, and
 * packing helps. */
static gnnc_status pack_step(gnnc_trainer *t, const rt_phase *ph, int step) {
    rt_step_cost c;
    ph->cost(step, t->x.n, &c);
    if (c.weight < 0 || has_rows(t->program, c.weight)) return GNNC_OK;
    const void *b = t->x.buf[c.weight];
    bool whole = c.gemm.k * c.gemm.n == t->program->buf_count(c.weight, t->x.n);
    if (!whole || !rt_gemm_packed_bytes(&t->x, &c.gemm) || rt_gemm_packed(&t->x, &c.gemm, b))
        return GNNC_OK;
    return rt_model_has(t->rt.model, b) ? add(t, &c.gemm, b) : GNNC_OK;
}

gnnc_status rt_model_pack(gnnc_trainer *t) {
    gnnc_model *m = t->rt.model;
    const rt_program *p = t->program;
    gnnc_status st = GNNC_OK;
    if (t->rt.device) return GNNC_OK;
    pthread_mutex_lock(&m->storing);
    t->rt.packed = m->packed;
    for (int i = 0; i < p->n_phases; i++)
        for (int k = 0; p->phases[i].batches && p->phases[i].cost && k < p->phases[i].n_steps; k++)
            if (st == GNNC_OK) st = pack_step(t, &p->phases[i], k);
    pthread_mutex_unlock(&m->storing);
    return st;
}
