/* calls_fuzz.c: what is lent, tensors and record batches, both ways. */
#ifndef TESTS_FUZZ_CALLS_LENT_H
#define TESTS_FUZZ_CALLS_LENT_H

#include <gnnc_arrow.h>
#include <gnnc_dlpack.h>

#include "calls_graph.h"

/* ---- tensors of ours -------- */
typedef struct {
    DLManagedTensorVersioned t;
    int64_t shape[4], stride[4];
    int *n_lent;
} Lent;

static void come_back(DLManagedTensorVersioned *t) {
    Lent *l = t->manager_ctx;
    --*l->n_lent;
    free(l);
}

/* Of any shape that stays in the memory behind it. */
static DLManagedTensorVersioned *tensor(Run *r) {
    static const uint64_t memory[1 << 10] = {1, 2, 0x4010000040000000, 3};
    static const uint8_t codes[] = {kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex, kDLBool, 99};
    Lent *l = calloc(1, sizeof *l);
    MUST(l);
    DLTensor *t = &l->t.dl_tensor;
    l->n_lent = &r->n_lent;
    l->t.version.major = next(&r->in) == 1 ? 2 : DLPACK_MAJOR_VERSION;
    l->t.manager_ctx = l;
    l->t.deleter = come_back;
    t->data = (uint8_t *)(uintptr_t)memory + below(&r->in, 64);
    t->byte_offset = (uint64_t)below(&r->in, 64);
    t->device.device_type = next(&r->in) == 1 ? kDLMetal : kDLCPU;
    t->dtype = (DLDataType){codes[below(&r->in, 7)], (uint8_t)(8 << below(&r->in, 5)),
                            (uint16_t)(1 + (next(&r->in) == 1))};
    t->ndim = below(&r->in, 4);
    t->shape = l->shape;
    t->strides = next(&r->in) & 1 ? l->stride : NULL;
    for (int i = 0; i < t->ndim; i++) {
        l->shape[i] = below(&r->in, 8) - (next(&r->in) == 1);
        l->stride[i] = below(&r->in, 6);
    }
    if (next(&r->in) == 1) t->data = NULL;
    r->n_lent++;
    return &l->t;
}

/* ---- tensors of the library's -------- */
static void let_go(Held *h) {
    if (!h->t) return;
    volatile float sum = 0; /* it is there, whoever gave it may be gone */
    for (int i = 0; i < h->n; i++) sum += ((const float *)h->t->dl_tensor.data)[i];
    if (h->stays && h->n)
        MUST(!memcmp(h->t->dl_tensor.data, h->was, (size_t)h->n * sizeof h->was[0]));
    h->t->deleter(h->t);
    h->t = NULL;
}

static void hold(Run *r, int slot) {
    Held *h = &r->held[slot];
    gnnc_trainer *t = r->t[below(&r->in, SLOTS)].t;
    gnnc_session *s = r->s[below(&r->in, SLOTS)].s;
    const int64_t id[2] = {below(&r->in, 12), below(&r->in, 12)};
    int what = below(&r->in, 5), n = below(&r->in, 3);
    DLManagedTensorVersioned *made = NULL;
    gnnc_status st = GNNC_E_ARG;
    if (what == 0) let_go(h);
    if (what == 1 && t) st = TRAINER(t, gnnc_trainer_predict_dlpack(t, &made));
    if (what == 2 && t) st = TRAINER(t, gnnc_trainer_embed_dlpack(t, "h", &made));
    if (what == 3 && t) st = TRAINER(t, gnnc_trainer_parameter_dlpack(t, "lin.weight", &made));
    if (what == 4 && s)
        st = SESSION(s, gnnc_session_predict_dlpack(s, n, next(&r->in) & 1 ? id : NULL, &made));
    MUST((st == GNNC_OK) == (made != NULL));
    if (!made) return;
    let_go(h);
    *h = (Held){.t = made, .stays = what == 4, .n = 1};
    const DLTensor *a = &made->dl_tensor;
    MUST(made->version.major == DLPACK_MAJOR_VERSION && a->dtype.bits == 32);
    for (int i = 0; i < a->ndim; i++) h->n *= a->shape[i] < 64 ? (int)a->shape[i] : 64;
    if (a->strides || h->n > 64) h->n = 0;
    if (h->n) memcpy(h->was, a->data, (size_t)h->n * sizeof h->was[0]);
}

/* To a graph, as it is or as an array; it owns what it is given. */
static void lend_tensor(Run *r, int slot) {
    Graph *g = &r->g[slot];
    Held *h = &r->held[slot];
    gnnc_array a = {.struct_size = next(&r->in) == 1 ? 8 : sizeof a};
    bool as_array = next(&r->in) & 1, of_theirs = h->t && next(&r->in) & 1;
    int kind = below(&r->in, 10);
    if (!g->g) return;
    if (!g->committed) GRAPH(g->g, gnnc_graph_add_nodes(g->g, "u", below(&r->in, 6)));
    DLManagedTensorVersioned *t = of_theirs ? h->t : tensor(r);
    if (of_theirs) h->t = NULL; /* the graph calls its deleter */
    if (!as_array) {
        GRAPH(g->g, gnnc_graph_add_dlpack(g->g, "u", "lent", (gnnc_kind)kind, t, -1, NULL));
        return;
    }
    gnnc_status st = gnnc_graph_array_dlpack(g->g, t, &a);
    MUST(st == GNNC_OK || g->committed || *gnnc_graph_error(g->g));
    if (st == GNNC_OK)
        GRAPH(g->g, gnnc_graph_add_column(g->g, "u", "lent", (gnnc_kind)kind, &a, -1, NULL));
}

/* ---- record batches -------- */
enum { MOST_CHILDREN = 3 };
typedef struct {
    struct ArrowSchema schema, of[MOST_CHILDREN], item, words;
    struct ArrowArray array, at[MOST_CHILDREN], item_at, words_at;
    struct ArrowSchema *schemas[MOST_CHILDREN], *items[1];
    struct ArrowArray *arrays[MOST_CHILDREN], *items_at[1];
    const void *buffers[MOST_CHILDREN + 2][3], *none[1];
    int32_t offsets[64], numbers[64];
    int64_t long_offsets[64];
    uint8_t bits[16];
    int *n_lent, n_users;
} Batch;

static void leave(Batch *b) {
    if (--b->n_users) return;
    --*b->n_lent;
    free(b);
}
static void release_schema(struct ArrowSchema *s) {
    s->release = NULL;
    leave(s->private_data);
}
static void release_array(struct ArrowArray *a) {
    a->release = NULL;
    leave(a->private_data);
}

static void child(Run *r, Batch *b, int i, int rows) {
    static const char *const formats[] = {
        "f", "g",    "e",    "c",     "C",   "s",   "i",   "l",  "L", "b", "u",
        "U", "+w:2", "tsn:", "tss:Z", "tdD", "tdm", "w:3", "+s", "",  "n"};
    static const char texts[256] = "ashbirchcedar";
    static const char *const names[] = {"x", "kind", "y", NULL};
    const char *format = formats[below(&r->in, sizeof formats / sizeof *formats)];
    bool holds_texts = *format == 'u' || *format == 'U';
    struct ArrowArray *a = &b->at[i];
    b->of[i] = (struct ArrowSchema){.format = format, .name = names[below(&r->in, 4)]};
    *a = (struct ArrowArray){.length = rows + (next(&r->in) == 1), .buffers = b->buffers[i]};
    a->offset = below(&r->in, 4);
    a->null_count = below(&r->in, 3) - 1;
    a->n_buffers = holds_texts ? 3 : 2;
    if (next(&r->in) & 1) b->buffers[i][0] = b->bits;
    b->buffers[i][1] = *format == 'u'   ? (void *)b->offsets
                       : *format == 'U' ? (void *)b->long_offsets
                                        : (void *)b->numbers;
    b->buffers[i][2] = texts;
    if (next(&r->in) == 1) b->buffers[i][1] = NULL;
    if (next(&r->in) == 1) a->n_buffers = below(&r->in, 4);
    if (*format == '+' && format[1] == 'w') {
        a->n_buffers = 1;
        b->of[i].n_children = a->n_children = 1;
        b->of[i].children = b->items, a->children = b->items_at;
    }
    if (*format == 'c' || (*format == 'i' && next(&r->in) & 1)) {
        b->of[i].dictionary = &b->words, a->dictionary = &b->words_at;
    }
    b->schemas[i] = &b->of[i], b->arrays[i] = a;
}

static void lend_batch(Run *r, Graph *g) {
    static const char *const columns[] = {"x", "kind"};
    Batch *b = calloc(1, sizeof *b);
    MUST(b);
    int rows = g->rows.n, n = below(&r->in, MOST_CHILDREN + 1), n_kinds = below(&r->in, 3);
    gnnc_kind kinds[2] = {(gnnc_kind)below(&r->in, 9), (gnnc_kind)below(&r->in, 9)};
    r->n_lent++;
    b->n_lent = &r->n_lent, b->n_users = 2;
    bool in_order = next(&r->in) & 1;
    for (int i = 0; i < 64; i++) {
        b->long_offsets[i] = b->offsets[i] = in_order ? 2 * i : below(&r->in, 16) - 1;
        b->numbers[i] = in_order ? i % 3 : below(&r->in, 4) - 1;
    }
    for (int i = 0; i < 16; i++) b->bits[i] = (uint8_t)next(&r->in);
    for (int i = 0; i < n; i++) child(r, b, i, rows);
    b->item = (struct ArrowSchema){.format = "f", .name = "item"};
    b->item_at = (struct ArrowArray){.length = 64, .n_buffers = 2, .buffers = b->buffers[n]};
    b->buffers[n][1] = b->numbers;
    b->words = (struct ArrowSchema){.format = "u"};
    b->words_at = (struct ArrowArray){.length = 3, .n_buffers = 3, .buffers = b->buffers[n + 1]};
    b->buffers[n + 1][1] = b->offsets, b->buffers[n + 1][2] = "ashbirchcedar";
    b->items[0] = &b->item, b->items_at[0] = &b->item_at;
    b->schema = (struct ArrowSchema){.format = next(&r->in) == 1 ? "f" : "+s",
                                     .n_children = n,
                                     .children = b->schemas,
                                     .release = release_schema,
                                     .private_data = b};
    b->array = (struct ArrowArray){.length = rows,
                                   .n_buffers = 1,
                                   .buffers = b->none,
                                   .n_children = n - (next(&r->in) == 1),
                                   .children = b->arrays,
                                   .release = release_array,
                                   .private_data = b};
    struct ArrowSchema schema = b->schema; /* moved out of the batch, as their owners do */
    struct ArrowArray array = b->array;
    const char *table = g->committed || g->rows.has & HAS_X ? "u" : "v";
    gnnc_status st = gnnc_graph_add_arrow(g->g, table, &schema, &array, n_kinds, columns, kinds);
    MUST(!schema.release && !array.release && (g->g || st != GNNC_OK));
    if (st == GNNC_OK) g->unknown = true;
}

#endif
