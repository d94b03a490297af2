/* The n-th allocation fails, for every n, in each function of gnnc.h: the call says so, nothing
 * leaks, and where it can be called again it then does what it should.  The table below has every
 * public function; one that it lacks fails the test, as does one that allocates and is listed as
 * one that does not. */
#include "graph_util.h"
#include "tiny_trainer.h"

#include <gnnc_dlpack.h>

typedef struct {
    unsigned char *p;
    size_t n;
} Bytes;
typedef struct {
    FailingAlloc f;
    const Place *at;
    gnnc_graph *g;
    gnnc_trainer *t;
    gnnc_model *m;
    gnnc_session *s;
    gnnc_legend *l;
    Bytes weights, saved;
    int n_lent; /* tensors that were not given back */
} World;

static int keep(void *user, const void *data, size_t n, size_t n_left) {
    Bytes *b = user;
    (void)n_left;
    unsigned char *p = realloc(b->p, b->n + n);
    if (!p) return 1;
    memcpy(p + b->n, data, n);
    *b = (Bytes){p, b->n + n};
    return 0;
}
static int drop(void *user, const void *data, size_t n, size_t n_left) {
    (void)user, (void)data, (void)n, (void)n_left;
    return 0;
}
static void hear(void *user, const char *text) {
    (void)user, (void)text;
}

/* ---- what calls are given ------------------------------------------------------------------- */
static const float numbers[N * F];
static const int32_t zeros[N], ascending[] = {0, 1, 2};
static const int64_t pointers[N + 1], whole[2] = {0, N};
static const int8_t ones[N] = {1};
static const char *const names[] = {"red", "blue"};

static gnnc_array x_of(int64_t n) {
    return array_of(GNNC_DT_F32, 2, n, F, numbers);
}
static gnnc_array codes(void) {
    return array_of(GNNC_DT_I32, 1, N, 0, zeros);
}
static gnnc_array some(int n) {
    return array_of(GNNC_DT_I32, 1, n, 0, ascending);
}
static gnnc_array part(const void *mask) {
    return array_of(GNNC_DT_I8, 1, N, 0, mask);
}
static gnnc_array longs(int64_t n, const int64_t *p) {
    return array_of(GNNC_DT_I64, 1, n, 0, p);
}

typedef struct {
    DLManagedTensorVersioned tensor;
    int64_t shape[1];
    World *w;
} Lent;
static void give_back(DLManagedTensorVersioned *t) {
    Lent *l = t->manager_ctx;
    l->w->n_lent--;
    free(l);
}
static DLManagedTensorVersioned *tensor(World *w) {
    Lent *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    *l = (Lent){.tensor = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                           .manager_ctx = l,
                           .deleter = give_back,
                           .dl_tensor = {.data = (void *)(uintptr_t)numbers,
                                         .device = {kDLCPU, 0},
                                         .ndim = 1,
                                         .dtype = {kDLFloat, 32, 1}}},
                .shape = {N},
                .w = w};
    l->tensor.dl_tensor.shape = l->shape;
    w->n_lent++;
    return &l->tensor;
}
static gnnc_status take_tensor(World *w) {
    gnnc_array a = {.struct_size = sizeof a};
    gnnc_status st = gnnc_graph_array_dlpack(w->g, tensor(w), &a);
    if (st == GNNC_OK) a.done(a.user);
    return st;
}

/* A tensor that the trainer gives, which goes back at once. */
static DLManagedTensorVersioned *given;
static gnnc_status back(gnnc_status st) {
    if (given) given->deleter(given);
    return st;
}

static gnnc_status append_node(World *w) {
    const gnnc_array x = x_of(1), t = array_of(GNNC_DT_F32, 1, 1, 0, numbers);
    const gnnc_values v[] = {
        {.struct_size = sizeof v[0], .column = "x", .values = &x},
        {.struct_size = sizeof v[0], .column = "t", .values = &t},
    };
    gnnc_rows r = {.struct_size = sizeof r, .table = "n", .count = 1, .columns = v, .n_columns = 2};
    gnnc_status st = gnnc_graph_append(w->g, &r);
    CHECK((st == GNNC_OK) == !r.error[0]);
    return st;
}
/* The model's own memory is the default one. */
static gnnc_status load_model(World *w) {
    if (!w->m) {
        CHECK(gnnc_model_create(&w->m, &tiny_model) == GNNC_OK);
        CHECK(gnnc_model_load_from(w->m, w->weights.p, w->weights.n) == GNNC_OK);
    }
    return gnnc_trainer_load_model(w->t, w->m);
}
static float *values(void) {
    static float v[64];
    return v;
}
static const float *out;
static int rank;
static int64_t dim[GNNC_MAX_RANK];
static const char *name;
static double number;
static int64_t row, other_row, rows[E];

/* In every form. */
static gnnc_status write_rows(World *w) {
    gnnc_written what = {.struct_size = sizeof what, .n = N, .values = numbers};
    gnnc_status st = GNNC_OK;
    for (what.format = GNNC_WRITE_NPY; what.format <= GNNC_WRITE_JSONL && st == GNNC_OK;
         what.format++)
        st = gnnc_legend_write(w->l, w->at->a, &what);
    return st;
}

#define INFO(type) (&(type){.struct_size = sizeof(type)})

/* ---- the table ---------------------------------------------------------------------------- */
/* What there is before the call. */
typedef enum {
    NOTHING,
    EMPTY,
    BUILDING,
    COMMITTED,
    LOGGED,
    CREATED,
    GRAPHED,
    LOADED,
    TRAINED,
    MODEL,
    SESSION,
    NAMED, /* a trainer with the legend of its nodes */
    EDGES, /* .. that predicts rows of edges */
    LINKED /* .. and the legend of these */
} Stage;

/* FAILS: may run out of memory, and is called again then.  ONCE: is not.  NONE: it allocates
 * nothing, and this is true of it.  ELSEWHERE: as FAILS, in another file. */
/* clang-format off */
#define CASES(FAILS, ONCE, NONE, ELSEWHERE) \
    NONE(status_text, NOTHING, gnnc_status_text(GNNC_OK) != NULL) \
    NONE(kind_text, NOTHING, !strcmp(gnnc_kind_text(GNNC_COL_SPLIT), "split")) \
    NONE(element_text, NOTHING, !strcmp(gnnc_element_text(GNNC_DT_BF16), "bf16")) \
    NONE(version, NOTHING, gnnc_version() != NULL) \
    NONE(graph_create, NOTHING, gnnc_graph_create(NULL) == GNNC_E_ARG) \
    FAILS(graph_create_with, NOTHING, \
          gnnc_graph_create_with(&w->g, failing_alloc, failing_release, &w->f)) \
    NONE(graph_retain, COMMITTED, (gnnc_graph_retain(w->g), gnnc_graph_release(w->g), true)) \
    NONE(graph_release, COMMITTED, (gnnc_graph_release(w->g), !(w->g = NULL))) \
    NONE(graph_error, COMMITTED, gnnc_graph_error(w->g) != NULL) \
    FAILS(graph_read, EMPTY, gnnc_graph_read(w->g, w->at->dir, 0)) \
    FAILS(graph_add_nodes, EMPTY, gnnc_graph_add_nodes(w->g, "a", 3)) \
    FAILS(graph_add_graphs, EMPTY, gnnc_graph_add_graphs(w->g, "all", 3)) \
    FAILS(graph_divide, BUILDING, gnnc_graph_divide(w->g, "n", "all", (gnnc_array[1]){longs(2, whole)})) \
    FAILS(graph_add_edges, BUILDING, gnnc_graph_add_edges(w->g, "f", "n", "n", \
          (gnnc_array[1]){some(3)}, (gnnc_array[1]){some(3)})) \
    FAILS(graph_add_edges_csr, BUILDING, gnnc_graph_add_edges_csr(w->g, "f", "n", "n", GNNC_BY_SOURCE, \
          (gnnc_array[1]){longs(N + 1, pointers)}, (gnnc_array[1]){some(0)})) \
    FAILS(graph_add_column, BUILDING, gnnc_graph_add_column(w->g, "n", "c", GNNC_COL_CAT, \
          (gnnc_array[1]){codes()}, 2, names)) \
    FAILS(graph_add_csr, BUILDING, gnnc_graph_add_csr(w->g, "n", "s", 2, \
          (gnnc_array[1]){longs(N + 1, pointers)}, (gnnc_array[1]){some(0)}, NULL)) \
    FAILS(graph_add_masks, BUILDING, gnnc_graph_add_masks(w->g, "n", "p", (gnnc_array[1]){part(ones)}, \
          (gnnc_array[1]){part(zeros)}, (gnnc_array[1]){part(zeros)})) \
    FAILS(graph_array_dlpack, BUILDING, take_tensor(w)) \
    FAILS(graph_add_dlpack, BUILDING, \
          gnnc_graph_add_dlpack(w->g, "n", "d", GNNC_COL_FLOAT, tensor(w), -1, NULL)) \
    ELSEWHERE(graph_add_arrow, "tests/unit/graph_arrow_test.c") \
    FAILS(graph_commit, LOGGED, gnnc_graph_commit(w->g)) \
    FAILS(graph_append, COMMITTED, append_node(w)) \
    NONE(graph_n_tables, COMMITTED, gnnc_graph_n_tables(w->g) > 0) \
    NONE(graph_table_info, COMMITTED, gnnc_graph_table_info(w->g, 0, INFO(gnnc_table_info)) == GNNC_OK) \
    NONE(graph_column_info, COMMITTED, gnnc_graph_column_info(w->g, 0, 0, INFO(gnnc_column_info)) == GNNC_OK) \
    NONE(trainer_create, NOTHING, gnnc_trainer_create(NULL, &tiny_model) == GNNC_E_ARG) \
    NONE(trainer_destroy, TRAINED, (gnnc_trainer_destroy(w->t), !(w->t = NULL))) \
    NONE(trainer_error, TRAINED, gnnc_trainer_error(w->t) != NULL) \
    NONE(trainer_set_int, CREATED, gnnc_trainer_set_int(w->t, "seed", 1) == GNNC_OK) \
    NONE(trainer_set_real, CREATED, gnnc_trainer_set_real(w->t, "lr", 1) == GNNC_OK) \
    NONE(trainer_set_text, CREATED, gnnc_trainer_set_text(w->t, "device", "cpu") == GNNC_OK) \
    NONE(trainer_n_options, CREATED, gnnc_trainer_n_options(w->t) > 0) \
    NONE(trainer_option, CREATED, gnnc_trainer_option(w->t, 0, INFO(gnnc_option)) == GNNC_OK) \
    NONE(trainer_device, LOADED, gnnc_trainer_device(w->t) != NULL) \
    NONE(trainer_wait, LOADED, gnnc_trainer_wait(w->t) == GNNC_OK) \
    NONE(trainer_set_stream, CREATED, gnnc_trainer_set_stream(w->t, NULL) == GNNC_OK) \
    NONE(trainer_device_bytes, LOADED, gnnc_trainer_device_bytes(w->t) == 0) \
    NONE(trainer_set_message, CREATED, gnnc_trainer_set_message(w->t, hear, NULL) == GNNC_OK) \
    FAILS(trainer_create_with, NOTHING, \
          gnnc_trainer_create_with(&w->t, &tiny_model, failing_alloc, failing_release, &w->f)) \
    NONE(trainer_set_processes, CREATED, gnnc_trainer_set_processes(w->t, &(gnnc_processes){ \
         .struct_size = sizeof(gnnc_processes), .n = 1}) == GNNC_OK) \
    NONE(trainer_agree, LOADED, gnnc_trainer_agree(w->t, 3) == 3) \
    ONCE(trainer_load, CREATED, gnnc_trainer_load(w->t, w->at->dir)) \
    ONCE(trainer_load_graph, GRAPHED, gnnc_trainer_load_graph(w->t, w->g)) \
    NONE(trainer_set_progress, CREATED, gnnc_trainer_set_progress(w->t, NULL, NULL) == GNNC_OK) \
    FAILS(trainer_step, LOADED, gnnc_trainer_step(w->t)) \
    NONE(trainer_steps_left, TRAINED, gnnc_trainer_steps_left(w->t) > 0) \
    NONE(trainer_steps_done, TRAINED, gnnc_trainer_steps_done(w->t) == 0) \
    FAILS(trainer_epoch, LOADED, gnnc_trainer_epoch(w->t)) \
    NONE(trainer_done, TRAINED, gnnc_trainer_done(w->t) == 0) \
    NONE(trainer_stop, TRAINED, (gnnc_trainer_stop(w->t), true)) \
    NONE(trainer_epochs_done, TRAINED, gnnc_trainer_epochs_done(w->t) > 0) \
    NONE(trainer_epochs_total, TRAINED, gnnc_trainer_epochs_total(w->t) > 0) \
    FAILS(trainer_keep_best, TRAINED, gnnc_trainer_keep_best(w->t, NULL)) \
    NONE(trainer_kept_step, TRAINED, gnnc_trainer_kept_step(w->t) == 0) \
    FAILS(trainer_evaluate, LOADED, gnnc_trainer_evaluate(w->t)) \
    NONE(trainer_evaluate_predictions, LOADED, gnnc_trainer_evaluate_predictions(w->t, values()) == GNNC_E_STATE) \
    NONE(trainer_metric, TRAINED, gnnc_trainer_metric(w->t, "loss", &number) == GNNC_OK) \
    NONE(trainer_n_metrics, TRAINED, gnnc_trainer_n_metrics(w->t) > 0) \
    NONE(trainer_metric_info, TRAINED, gnnc_trainer_metric_info(w->t, 0, INFO(gnnc_metric_info)) == GNNC_OK) \
    NONE(trainer_n_baselines, TRAINED, gnnc_trainer_n_baselines(w->t) == 0) \
    NONE(trainer_baseline, TRAINED, gnnc_trainer_baseline(w->t, 0, INFO(gnnc_baseline)) == GNNC_E_RANGE) \
    FAILS(trainer_predict, LOADED, gnnc_trainer_predict(w->t, &out, &rank, dim)) \
    FAILS(trainer_predict_rows, LOADED, gnnc_trainer_predict_rows(w->t, 2, (int64_t[]){3, 0}, values())) \
    FAILS(trainer_save_values, CREATED, \
          gnnc_trainer_save_values(w->t, w->at->a, numbers, 2, (int64_t[GNNC_MAX_RANK]){N, F})) \
    FAILS(trainer_embed, LOADED, gnnc_trainer_embed(w->t, "h", &out, &rank, dim)) \
    NONE(trainer_n_layers, LOADED, gnnc_trainer_n_layers(w->t) > 0) \
    NONE(trainer_layer_name, LOADED, gnnc_trainer_layer_name(w->t, 0) != NULL) \
    FAILS(trainer_predict_dlpack, LOADED, back(gnnc_trainer_predict_dlpack(w->t, &given))) \
    FAILS(trainer_embed_dlpack, LOADED, back(gnnc_trainer_embed_dlpack(w->t, "h", &given))) \
    NONE(trainer_n_parameters, LOADED, gnnc_trainer_n_parameters(w->t) > 0) \
    NONE(trainer_parameter_info, LOADED, gnnc_trainer_parameter_info(w->t, 0, &name, &rank, dim) == GNNC_OK) \
    FAILS(trainer_get_parameter, LOADED, gnnc_trainer_get_parameter(w->t, "lin.weight", values(), F)) \
    FAILS(trainer_set_parameter, LOADED, gnnc_trainer_set_parameter(w->t, "lin.weight", values(), F)) \
    FAILS(trainer_parameter_dlpack, LOADED, \
          back(gnnc_trainer_parameter_dlpack(w->t, "lin.weight", &given))) \
    FAILS(trainer_save, TRAINED, gnnc_trainer_save(w->t, w->at->a)) \
    FAILS(trainer_save_to, TRAINED, gnnc_trainer_save_to(w->t, drop, NULL)) \
    FAILS(trainer_save_weights, TRAINED, gnnc_trainer_save_weights(w->t, w->at->a)) \
    FAILS(trainer_save_weights_to, TRAINED, gnnc_trainer_save_weights_to(w->t, drop, NULL)) \
    FAILS(trainer_resume, TRAINED, gnnc_trainer_resume(w->t, w->at->b)) \
    FAILS(trainer_resume_from, TRAINED, gnnc_trainer_resume_from(w->t, w->saved.p, w->saved.n)) \
    FAILS(trainer_load_weights, TRAINED, gnnc_trainer_load_weights(w->t, w->at->b)) \
    FAILS(trainer_load_weights_from, CREATED, \
          gnnc_trainer_load_weights_from(w->t, w->weights.p, w->weights.n)) \
    NONE(trainer_memory, LOADED, gnnc_trainer_memory(w->t, INFO(gnnc_memory)) == GNNC_OK) \
    NONE(trainer_counters, LOADED, gnnc_trainer_counters(w->t, INFO(gnnc_counters)) == GNNC_OK) \
    NONE(trainer_traffic, LOADED, \
         gnnc_trainer_traffic(w->t, "predict", 2, INFO(gnnc_traffic)) == GNNC_E_STATE) \
    NONE(trainer_step_traffic, LOADED, \
         gnnc_trainer_step_traffic(w->t, 0, 2, INFO(gnnc_traffic)) == GNNC_E_STATE) \
    NONE(trainer_n_steps, LOADED, gnnc_trainer_n_steps(w->t) > 0) \
    FAILS(trainer_step_info, LOADED, gnnc_trainer_step_info(w->t, 0, INFO(gnnc_step_info))) \
    FAILS(trainer_profile, LOADED, gnnc_trainer_profile(w->t, 8)) \
    ELSEWHERE(trainer_trace, "tests/unit/profile_test.c") \
    NONE(trainer_pipeline, LOADED, gnnc_trainer_pipeline(w->t, INFO(gnnc_pipeline)) == GNNC_E_STATE) \
    ONCE(trainer_measure_limits, LOADED, gnnc_trainer_measure_limits(w->t, INFO(gnnc_limits))) \
    ELSEWHERE(trainer_tune, "tests/unit/profile_test.c") \
    FAILS(trainer_run_phase, LOADED, gnnc_trainer_run_phase(w->t, "predict")) \
    NONE(trainer_output, TRAINED, gnnc_trainer_output(w->t, "loss", &out, &rank, dim) == GNNC_OK) \
    NONE(trainer_dumped, LOADED, gnnc_trainer_dumped(w->t, 0) == NULL) \
    NONE(trainer_n_phases, LOADED, gnnc_trainer_n_phases(w->t) > 0) \
    NONE(trainer_phase_info, LOADED, \
         gnnc_trainer_phase_info(w->t, 0, INFO(gnnc_phase_info)) == GNNC_OK) \
    NONE(trainer_n_variants, LOADED, gnnc_trainer_n_variants(w->t) == 0) \
    NONE(trainer_variant_info, LOADED, \
         gnnc_trainer_variant_info(w->t, 0, INFO(gnnc_variant_info)) == GNNC_E_RANGE) \
    NONE(trainer_n_columns, LOADED, gnnc_trainer_n_columns(w->t) > 0) \
    NONE(trainer_column_info, LOADED, \
         gnnc_trainer_column_info(w->t, 0, INFO(gnnc_loaded_column)) == GNNC_OK) \
    FAILS(trainer_machine, LOADED, \
          *gnnc_trainer_machine(w->t) ? GNNC_OK : GNNC_E_NOMEM) \
    NONE(trainer_loss_scale, LOADED, \
         gnnc_trainer_loss_scale(w->t, &number, &number) == GNNC_E_MISSING) \
    NONE(model_create, NOTHING, gnnc_model_create(NULL, &tiny_model) == GNNC_E_ARG) \
    FAILS(model_create_with, NOTHING, \
          gnnc_model_create_with(&w->m, &tiny_model, failing_alloc, failing_release, &w->f)) \
    NONE(model_retain, MODEL, (gnnc_model_retain(w->m), gnnc_model_release(w->m), true)) \
    NONE(model_release, MODEL, (gnnc_model_release(w->m), !(w->m = NULL))) \
    NONE(model_error, MODEL, gnnc_model_error(w->m) != NULL) \
    FAILS(model_load, MODEL, gnnc_model_load(w->m, w->at->b)) \
    FAILS(model_load_from, MODEL, gnnc_model_load_from(w->m, w->weights.p, w->weights.n)) \
    NONE(model_name, MODEL, gnnc_model_name(w->m) != NULL) \
    NONE(model_n_metrics, MODEL, gnnc_model_n_metrics(w->m) == 0) \
    NONE(model_metric_info, MODEL, \
         gnnc_model_metric_info(w->m, 0, INFO(gnnc_metric_info)) == GNNC_E_RANGE) \
    FAILS(trainer_load_model, CREATED, load_model(w)) \
    FAILS(trainer_to_model, TRAINED, gnnc_trainer_to_model(w->t, &tiny_model, &w->m)) \
    NONE(session_create, NOTHING, gnnc_session_create(NULL) == GNNC_E_ARG) \
    NONE(encoder_create, NOTHING, gnnc_encoder_create(NULL) == GNNC_E_ARG) \
    ELSEWHERE(encoder_create_with, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_destroy, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_error, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_read, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_of_model, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_n_columns, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_column, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_encode, "tests/unit/cells_test.c") \
    ELSEWHERE(graph_set_encoded, "tests/unit/cells_test.c") \
    NONE(encoder_unchecked, NOTHING, gnnc_encoder_unchecked() != NULL) \
    ELSEWHERE(encoder_add, "tests/unit/cells_test.c") \
    ELSEWHERE(encoder_append, "tests/unit/cells_test.c") \
    ELSEWHERE(session_create_with, "tests/e2e/sessions.py") \
    ELSEWHERE(session_destroy, "tests/e2e/sessions.py") \
    ELSEWHERE(session_error, "tests/e2e/sessions.py") \
    ELSEWHERE(session_set_device, "tests/cudasim/embed.py") \
    ELSEWHERE(session_device, "tests/cudasim/embed.py") \
    ELSEWHERE(session_set_stream, "tests/cudasim/embed.py") \
    NONE(session_set_message, SESSION, gnnc_session_set_message(w->s, hear, NULL) == GNNC_OK) \
    ELSEWHERE(session_open, "tests/e2e/sessions.py") \
    ELSEWHERE(session_clone, "tests/e2e/sessions.py") \
    ELSEWHERE(session_set_seed, "tests/e2e/sessions.py") \
    ELSEWHERE(session_rows, "tests/e2e/sessions.py") \
    ELSEWHERE(session_row_shape, "tests/e2e/sessions.py") \
    ELSEWHERE(session_predict, "tests/e2e/sessions.py") \
    ELSEWHERE(session_n_layers, "tests/e2e/sessions.py") \
    ELSEWHERE(session_layer_name, "tests/e2e/sessions.py") \
    ELSEWHERE(session_layer, "tests/e2e/sessions.py") \
    ELSEWHERE(session_embed, "tests/e2e/sessions.py") \
    ELSEWHERE(session_open_model, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_subgraph, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_predict_subgraph, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_embed_subgraph, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_n_whole_graph_values, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_whole_graph_value, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_read_whole_graph_value, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_set_whole_graph_value, "tests/e2e/subgraphs.py") \
    ELSEWHERE(session_predict_dlpack, "tests/cudasim/embed.py") \
    ELSEWHERE(session_link_sizes, "tests/e2e/session_links.py") \
    ELSEWHERE(session_predict_links, "tests/e2e/session_links.py") \
    ELSEWHERE(session_top_links, "tests/e2e/session_links.py") \
    ELSEWHERE(session_n_pair_columns, "tests/e2e/session_pairs.py") \
    ELSEWHERE(session_pair_column, "tests/e2e/session_pairs.py") \
    ELSEWHERE(session_predict_pairs, "tests/e2e/session_pairs.py") \
    ELSEWHERE(session_top_pairs, "tests/e2e/session_pairs.py") \
    ELSEWHERE(session_predict_subgraph_pairs, "tests/e2e/subgraph_links.py") \
    ELSEWHERE(session_top_subgraph_pairs, "tests/e2e/subgraph_links.py") \
    ELSEWHERE(session_open_at, "tests/e2e/explain.py") \
    ELSEWHERE(session_explain, "tests/e2e/explain.py") \
    ELSEWHERE(explanation_destroy, "tests/e2e/explain.py") \
    ELSEWHERE(explanation_describe, "tests/e2e/explain.py") \
    ELSEWHERE(explanation_part, "tests/e2e/explain.py") \
    FAILS(trainer_legend, EDGES, gnnc_trainer_legend(w->t, &w->l)) \
    ELSEWHERE(session_legend, "tests/e2e/predict.py") \
    NONE(legend_destroy, NAMED, (gnnc_legend_destroy(w->l), !(w->l = NULL))) \
    NONE(legend_error, NAMED, gnnc_legend_error(w->l) != NULL) \
    NONE(legend_describe, NAMED, gnnc_legend_describe(w->l, INFO(gnnc_legend_info)) == GNNC_OK) \
    NONE(legend_value, NAMED, gnnc_legend_value(w->l, 0) != NULL) \
    NONE(legend_id, NAMED, !strcmp(gnnc_legend_id(w->l, 0, 7), "n7")) \
    NONE(legend_highest, NAMED, gnnc_legend_highest(w->l, numbers) == 0) \
    NONE(legend_convert, NAMED, gnnc_legend_convert(w->l, 1, numbers, values()) == GNNC_OK) \
    FAILS(legend_find, NAMED, gnnc_legend_find(w->l, "n7", &row)) \
    FAILS(legend_links, LINKED, gnnc_legend_links(w->l, 0, &row, E, rows)) \
    NONE(legend_ends, LINKED, gnnc_legend_ends(w->l, 0, &row, &other_row) == GNNC_OK) \
    FAILS(legend_write, NAMED, write_rows(w)) \
    NONE(program_describe, NOTHING, \
         gnnc_program_describe(&tiny_model, INFO(gnnc_program_info)) == GNNC_OK) \
    NONE(program_recipe, NOTHING, gnnc_program_recipe(&tiny_model, INFO(gnnc_recipe)) == GNNC_OK) \
    NONE(program_n_tables, NOTHING, gnnc_program_n_tables(&tiny_model) > 0) \
    NONE(program_table, NOTHING, \
         gnnc_program_table(&tiny_model, 0, INFO(gnnc_needed_table)) == GNNC_OK) \
    NONE(program_column, NOTHING, \
         gnnc_program_column(&tiny_model, 0, 0, INFO(gnnc_needed_column)) == GNNC_OK) \
    NONE(program_n_parameters, NOTHING, gnnc_program_n_parameters(&tiny_model) > 0) \
    NONE(program_parameter, NOTHING, gnnc_program_parameter(&tiny_model, 0, NULL) != NULL) \
    ELSEWHERE(trainer_main, "tests/unit/main_memory_test.c") \
    ELSEWHERE(trainer_main_with, "tests/unit/main_memory_test.c")
/* clang-format on */

/* ---- one call ------------------------------------------------------------------------------ */
typedef struct {
    const char *name;
    Stage stage;
    gnnc_status (*call)(World *w);
    bool once, allocates;
    const char *elsewhere;
} Case;

#define CALL(name, stage, expr)                                                                    \
    static gnnc_status call_##name(World *w) {                                                     \
        (void)w;                                                                                   \
        return expr;                                                                               \
    }
#define HOLDS(name, stage, expr)                                                                   \
    static gnnc_status call_##name(World *w) {                                                     \
        (void)w;                                                                                   \
        return (expr) ? GNNC_OK : GNNC_E_ARG;                                                      \
    }
#define NOWHERE(name, file)
CASES(CALL, CALL, HOLDS, NOWHERE)

static const Case cases[] = {
#define FAILS_CASE(name, stage, expr) {"gnnc_" #name, stage, call_##name, false, true, NULL},
#define ONCE_CASE(name, stage, expr) {"gnnc_" #name, stage, call_##name, true, true, NULL},
#define NONE_CASE(name, stage, expr) {"gnnc_" #name, stage, call_##name, true, false, NULL},
#define ELSEWHERE_CASE(name, file) {"gnnc_" #name, NOTHING, NULL, false, false, file},
    CASES(FAILS_CASE, ONCE_CASE, NONE_CASE, ELSEWHERE_CASE)};
enum { N_CASES = sizeof cases / sizeof *cases };

static gnnc_status make_graph(World *w, Stage to) {
    gnnc_status st;
    TRY(st, gnnc_graph_create_with(&w->g, failing_alloc, failing_release, &w->f));
    if (to == BUILDING) TRY(st, gnnc_graph_add_nodes(w->g, "n", N));
    if (to == BUILDING) TRY(st, gnnc_graph_add_graphs(w->g, "all", 1));
    if (to > BUILDING) TRY(st, gnnc_graph_read(w->g, w->at->dir, 0));
    if (to > BUILDING) TRY(st, gnnc_graph_commit(w->g));
    if (to == LOGGED) st = append_node(w);
out:
    return st;
}

/* The tiny program as if it predicted a row for each edge; nothing here runs it. */
static rt_buf edge_bufs[N_TINY_BUFS];
static rt_program edge_program;
static const gnnc_program edge_model = {RT_PROGRAM_VERSION, &edge_program};
static void predict_edges(void) {
    memcpy(edge_bufs, tiny_bufs, sizeof edge_bufs);
    edge_bufs[B_OUT].space = 1;
    edge_program = tiny_program;
    edge_program.bufs = edge_bufs;
}

static gnnc_status make_trainer(World *w, Stage to) {
    const gnnc_program *model = to >= EDGES ? &edge_model : &tiny_model;
    gnnc_status st;
    TRY(st, gnnc_trainer_create_with(&w->t, model, failing_alloc, failing_release, &w->f));
    TRY(st, gnnc_trainer_set_int(w->t, "threads", 1));
    if (to >= LOADED) TRY(st, gnnc_trainer_load(w->t, w->at->dir));
    if (to == TRAINED) st = gnnc_trainer_epoch(w->t);
    if (to == NAMED || to == LINKED) st = gnnc_trainer_legend(w->t, &w->l);
out:
    return st;
}

static void world_begin(World *w, Stage to) {
    gnnc_status st = GNNC_OK;
    failing(&w->f, -1);
    if ((to >= EMPTY && to <= LOGGED) || to == GRAPHED) st = make_graph(w, to);
    if (st == GNNC_OK && ((to >= CREATED && to <= TRAINED) || to >= NAMED))
        st = make_trainer(w, to);
    if (to == MODEL)
        st = gnnc_model_create_with(&w->m, &tiny_model, failing_alloc, failing_release, &w->f);
    if (to == SESSION) st = gnnc_session_create_with(&w->s, failing_alloc, failing_release, &w->f);
    CHECK(st == GNNC_OK);
}

static void world_end(World *w, const char *name, long n) {
    gnnc_legend_destroy(w->l);
    gnnc_session_destroy(w->s);
    gnnc_trainer_destroy(w->t);
    gnnc_model_release(w->m);
    gnnc_graph_release(w->g);
    w->l = NULL, w->s = NULL, w->t = NULL, w->m = NULL, w->g = NULL;
    CHECK_MSG(w->f.n_live == 0, "%s, allocation %ld: %ld blocks leak", name, n, w->f.n_live);
    CHECK_MSG(w->n_lent == 0, "%s, allocation %ld: not given back", name, n);
}

/* The n-th allocation fails, and all behind it.  False: the call does not ask for so many. */
static bool fails(World *w, const Case *c, long n) {
    world_begin(w, c->stage);
    w->f.fail_at = w->f.n_calls + n;
    gnnc_status st = c->call(w);
    bool more = st != GNNC_OK || w->f.n_calls >= w->f.fail_at;
    CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "%s, allocation %ld: status %d", c->name, n, st);
    w->f.fail_at = -1;
    if (st != GNNC_OK && strncmp(c->name, "gnnc_trainer_", 13) == 0 && w->t)
        CHECK_MSG(gnnc_trainer_error(w->t)[0], "%s, allocation %ld: no words", c->name, n);
    if (st != GNNC_OK && (c->stage == NAMED || c->stage == LINKED))
        CHECK_MSG(gnnc_legend_error(w->l)[0], "%s, allocation %ld: no words", c->name, n);
    if (st != GNNC_OK && c->stage == MODEL) CHECK(gnnc_model_error(w->m)[0]);
    if (st != GNNC_OK && !c->once)
        CHECK_MSG(c->call(w) == GNNC_OK, "%s again, after allocation %ld: %s", c->name, n,
                  w->l   ? gnnc_legend_error(w->l)
                  : w->t ? gnnc_trainer_error(w->t)
                  : w->g ? gnnc_graph_error(w->g)
                         : "");
    world_end(w, c->name, n);
    return more;
}

static void allocates_nothing(World *w, const Case *c) {
    world_begin(w, c->stage);
    long before = w->f.n_calls;
    CHECK_MSG(c->call(w) == GNNC_OK, "%s", c->name);
    CHECK_MSG(w->f.n_calls == before, "%s allocates", c->name);
    world_end(w, c->name, 0);
}

/* Nodes are called n0, n1, .. in the data. */
static void name_nodes(const char *dir) {
    static char schema[sizeof SCHEMA + 32], text[N * 8];
    const char *at = strstr(SCHEMA, "\"columns\"");
    int len = 0;
    snprintf(schema, sizeof schema, "%.*s\"names\": \"names\", %s", (int)(at - SCHEMA), SCHEMA, at);
    for (int i = 0; i < N; i++) len += snprintf(text + len, sizeof text - (size_t)len, "n%d\n", i);
    write_text(dir, "schema.json", schema);
    write_text(dir, "names", text);
}

/* A checkpoint, in p->b and in memory, and weights. */
static void save_what_is_read(World *w) {
    world_begin(w, TRAINED);
    CHECK(gnnc_trainer_save(w->t, w->at->b) == GNNC_OK);
    CHECK(gnnc_trainer_save_to(w->t, keep, &w->saved) == GNNC_OK);
    CHECK(gnnc_trainer_save_weights_to(w->t, keep, &w->weights) == GNNC_OK);
    world_end(w, "save", 0);
}

TEST(every_allocation_of_every_function_may_fail) {
    Place p = place_new();
    World w = {.at = &p};
    predict_edges();
    name_nodes(p.dir);
    save_what_is_read(&w);
    for (int i = 0; i < N_CASES; i++) {
        long n = 0;
        if (cases[i].call && !cases[i].allocates) allocates_nothing(&w, &cases[i]);
        while (cases[i].allocates && n < 1000 && fails(&w, &cases[i], n)) n++;
        CHECK_MSG(n < 1000, "%s asks without end", cases[i].name);
    }
    free(w.weights.p);
    free(w.saved.p);
    scratch_remove(p.dir);
}

/* ---- the table is whole ---------------------------------------------------------------------- */
static char *text_of(const char *file) {
    char path[600];
    snprintf(path, sizeof path, "%.*s%s", (int)(strstr(__FILE__, "tests/unit") - __FILE__),
             __FILE__, file);
    FILE *f = fopen(path, "r");
    CHECK_MSG(f, "%s", path);
    char *s = calloc(1, 1 << 18);
    if (f && s && fread(s, 1, (1 << 18) - 1, f) == 0) s[0] = '\0';
    if (f) fclose(f);
    return s;
}

static bool is_listed(const char *name, size_t n) {
    for (int i = 0; i < N_CASES; i++)
        if (strlen(cases[i].name) == n && strncmp(cases[i].name, name, n) == 0) return true;
    return false;
}

TEST(every_public_function_is_in_the_table) {
    char *header = text_of("runtime/include/gnnc.h");
    int n = 0;
    for (char *line = strtok(header, "\n"); line; line = strtok(NULL, "\n")) {
        const char *at = strstr(line, "gnnc_");
        while (at && at[strcspn(at, " *(,;")] != '(') at = strstr(at + 1, "gnnc_");
        if (!at || !strchr("abcdefghijklmnopqrstuvwxyz", line[0]) || !strncmp(line, "typedef", 7))
            continue;
        n++;
        CHECK_MSG(is_listed(at, strcspn(at, "(")), "nothing tests that allocations fail in: %s",
                  at);
    }
    CHECK_MSG(n == N_CASES, "%d functions, %d in the table", n, N_CASES);
    free(header);
}

TEST(what_is_tested_elsewhere_is_named_there) {
    for (int i = 0; i < N_CASES; i++) {
        if (!cases[i].elsewhere) continue;
        char *s = text_of(cases[i].elsewhere);
        CHECK_MSG(s && strstr(s, cases[i].name + strlen("gnnc_")), "%s: no %s", cases[i].elsewhere,
                  cases[i].name);
        free(s);
    }
}

TEST_MAIN()
