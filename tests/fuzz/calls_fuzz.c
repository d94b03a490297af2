/* Fuzz target: any bytes as a sequence of calls of the C interface, right ones and wrong ones, on
 * graphs, models, sessions and trainers, with an allocator that refuses now and then.
 *
 * What must hold: a failure has words; only a refused block is out of memory; what a call must
 * refuse it refuses; a session predicts, to the bit, what one does that is opened over a graph
 * built at once of the same rows; training goes on from a checkpoint to the same bits there; files
 * hold what memory does; all handles can be destroyed in any order, what was lent comes back once,
 * and nothing stays behind. */
#include "calls_files.h"
#include "calls_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- models and sessions -------- */
static void drop_model(Model *m) {
    gnnc_model_release(m->m);
    *m = (Model){.weights = -1};
}

static void new_model(Run *r, Model *m) {
    drop_model(m);
    m->kind = below(&r->in, MODELS);
    refused_before = n_refused;
    if (gnnc_model_create_with(&m->m, INFERS[m->kind], give, take_back, NULL) != GNNC_OK)
        MUST(!m->m && n_refused > refused_before);
}

static void load_model(Run *r, Model *m) {
    int w = below(&r->in, n_weights);
    size_t cut = next(&r->in) == 1 ? weights[w].n / 2 : weights[w].n;
    gnnc_status st = MODEL(m->m, gnnc_model_load_from(m->m, weights[w].p, cut));
    if (!m->m || m->weights >= 0 || cut < weights[w].n) MUST(st != GNNC_OK);
    if (st == GNNC_OK) m->weights = w;
}

static void drop_session(Session *s) {
    gnnc_session_destroy(s->s);
    memset(s, 0, sizeof *s);
}

static void new_session(Session *s) {
    drop_session(s);
    refused_before = n_refused;
    if (gnnc_session_create_with(&s->s, give, take_back, NULL) != GNNC_OK)
        MUST(!s->s && n_refused > refused_before);
}

static void open_session(Run *r, Session *s) {
    const Model *m = &r->m[below(&r->in, SLOTS)];
    const Graph *g = &r->g[below(&r->in, SLOTS)];
    gnnc_status st = SESSION(s->s, gnnc_session_open(s->s, m->m, g->g));
    if (!s->s || !m->m || !g->g || s->open || m->weights < 0 || !g->committed) MUST(st != GNNC_OK);
    if (st != GNNC_OK) return;
    MUST(weights_kind[m->weights] == m->kind);
    MUST(g->unknown || (g->rows.has & NEEDS[m->kind]) == NEEDS[m->kind]);
    s->open = true, s->kind = m->kind, s->weights = m->weights, s->rows = snapshot(g);
    s->unknown = g->unknown;
    MUST(s->kind != OF_GRAPHS || !crosses(&s->rows));
}

static void clone_session(Run *r, Session *s) {
    const Session *from = &r->s[below(&r->in, SLOTS)];
    if (from == s) return;
    gnnc_session *made = NULL;
    refused_before = n_refused;
    gnnc_status st = gnnc_session_clone(&made, from->s);
    MUST((st == GNNC_OK) == (made != NULL));
    if (!from->open) MUST(st == GNNC_E_ARG);
    if (from->open && !made) MUST(n_refused > refused_before);
    if (!made) return;
    drop_session(s);
    *s = *from;
    s->s = made;
}

static void ask_session(Run *r, Session *s) {
    int rank;
    int64_t dim[GNNC_MAX_RANK], n[3];
    MUST(gnnc_session_error(s->s));
    MUST(gnnc_session_rows(s->s) == (s->open ? n_rows(s) : 0) || scores_pairs(s->kind));
    gnnc_status st = gnnc_session_row_shape(s->s, &rank, dim);
    MUST((st == GNNC_OK) == s->open);
    st = gnnc_session_link_sizes(s->s, &n[0], &n[1], &n[2]);
    MUST((st == GNNC_OK) == (s->open && scores_pairs(s->kind)));
    if (next(&r->in) & 1 && gnnc_session_set_seed(s->s, s->seed + 1) == GNNC_OK) s->seed++;
}

/* ---- trainers -------- */
static void drop_trainer(Trainer *t) {
    gnnc_trainer_destroy(t->t);
    memset(t, 0, sizeof *t);
}

static int hear(void *user, const gnnc_progress *now) {
    Run *r = user;
    MUST(now->struct_size == sizeof *now && now->epochs_done <= now->epochs_total);
    return r->cancel_in > 0 && --r->cancel_in == 0;
}

static void new_trainer(Run *r, Trainer *t) {
    drop_trainer(t);
    t->kind = below(&r->in, MODELS);
    refused_before = n_refused;
    if (gnnc_trainer_create_with(&t->t, TRAINS[t->kind], give, take_back, NULL) != GNNC_OK) {
        MUST(!t->t && n_refused > refused_before);
        return;
    }
    MUST(gnnc_trainer_set_int(t->t, "threads", 1 + (next(&r->in) & 1)) == GNNC_OK);
    t->plain = true;
    if (next(&r->in) & 1) MUST(gnnc_trainer_set_progress(t->t, hear, r) == GNNC_OK);
}

static void set_option(Run *r, Trainer *t) {
    static const int64_t values[] = {0, 1, 2, 5, -1, 64, 1 << 20, INT64_MAX, INT64_MIN, INT32_MAX};
    gnnc_option o = {.struct_size = sizeof o};
    int64_t value = values[below(&r->in, 10)];
    int i = below(&r->in, gnnc_trainer_n_options(t->t) + 1);
    if (TRAINER(t->t, gnnc_trainer_option(t->t, i, &o)) != GNNC_OK) return;
    if (!strcmp(o.name, "threads") && (value > 4 || value == 0)) return; /* dear, not wrong */
    t->plain = false;
    gnnc_status st;
    if (o.type == GNNC_OPTION_INT) {
        st = TRAINER(t->t, gnnc_trainer_set_int(t->t, o.name, value));
        if (value < o.int_least || value > o.int_most) MUST(st != GNNC_OK);
        if (st == GNNC_OK && gnnc_trainer_option(t->t, i, &o) == GNNC_OK)
            MUST(o.int_value == value);
    } else if (o.type == GNNC_OPTION_REAL)
        TRAINER(t->t, gnnc_trainer_set_real(t->t, o.name, value ? 1 / (double)value : 0));
    else
        TRAINER(t->t, gnnc_trainer_set_text(t->t, o.name, value & 1 ? "cpu" : "cuda:12345"));
}

static void load_trainer(Run *r, Trainer *t) {
    const Graph *g = &r->g[below(&r->in, SLOTS)];
    gnnc_status st = TRAINER(t->t, gnnc_trainer_load_graph(t->t, g->g));
    if (!t->t || t->loaded || !g->committed) MUST(st != GNNC_OK);
    if (st != GNNC_OK) return;
    t->loaded = true;
    t->unknown = g->unknown;
    t->plain = t->plain && !g->unknown;
    t->rows = snapshot(g);
}

static void use_trainer(Run *r, Trainer *t) {
    const float *data = NULL;
    int rank = 0;
    int64_t dim[GNNC_MAX_RANK] = {0}, kept, n = 1;
    float values[256] = {0};
    const char *name = NULL;
    gnnc_status st = GNNC_E_ARG;
    switch (below(&r->in, 14)) {
    case 0:
        st = TRAINER(t->t, gnnc_trainer_step(t->t));
        break;
    case 1:
        st = TRAINER(t->t, gnnc_trainer_epoch(t->t));
        break;
    case 2:
        st = TRAINER(t->t, gnnc_trainer_evaluate(t->t));
        break;
    case 3:
        st = TRAINER(t->t, gnnc_trainer_predict(t->t, &data, &rank, dim));
        break;
    case 4:
        st = TRAINER(t->t, gnnc_trainer_embed(t->t, "h", &data, &rank, dim));
        break;
    case 5:
        st = TRAINER(t->t, gnnc_trainer_keep_best(t->t, &kept));
        break;
    case 6:
        st = TRAINER(t->t, gnnc_trainer_run_phase(t->t, next(&r->in) & 1 ? "predict" : "none"));
        break;
    case 7:
        st = TRAINER(t->t, gnnc_trainer_output(t->t, "loss", &data, &rank, dim));
        break;
    case 8:
        st = TRAINER(t->t, gnnc_trainer_profile(t->t, 16));
        break;
    case 9:
        r->cancel_in = 1 + below(&r->in, 4);
        break;
    case 10:
        gnnc_trainer_stop(t->t);
        break;
    case 11:
        st = TRAINER(t->t, gnnc_trainer_load_weights_from(t->t, weights[0].p, weights[0].n));
        break;
    case 12:
        st = TRAINER(t->t, gnnc_trainer_parameter_info(t->t, below(&r->in, 12), &name, &rank, dim));
        for (int i = 0; i < rank && st == GNNC_OK; i++) n *= dim[i];
        if (st != GNNC_OK || n > 256) return;
        MUST(gnnc_trainer_get_parameter(t->t, name, values, (size_t)n) == GNNC_OK);
        MUST(gnnc_trainer_set_parameter(t->t, name, values, (size_t)n) == GNNC_OK);
        MUST(gnnc_trainer_set_parameter(t->t, name, values, (size_t)n + 1) == GNNC_E_SHAPE);
        return;
    case 13:
        t->plain = t->plain && !t->loaded;
        gnnc_trainer_wait(t->t);
        return;
    }
    if (!t->loaded) MUST(st != GNNC_OK || !data);
    volatile float sum = 0; /* what was given can be read */
    for (int i = 0; i < rank; i++) n *= dim[i];
    for (int64_t i = 0; data && st == GNNC_OK && i < n; i++) sum += data[i];
}

static void ask_trainer(Trainer *t) {
    gnnc_metric_info m = {.struct_size = sizeof m};
    gnnc_memory memory = {.struct_size = sizeof memory};
    gnnc_counters counters = {.struct_size = sizeof counters};
    gnnc_step_info step = {.struct_size = sizeof step};
    gnnc_pipeline pipeline = {.struct_size = sizeof pipeline};
    double value;
    for (int i = 0; i < gnnc_trainer_n_metrics(t->t); i++) {
        MUST(gnnc_trainer_metric_info(t->t, i, &m) == GNNC_OK);
        MUST((gnnc_trainer_metric(t->t, m.name, &value) == GNNC_OK) == (m.known != 0));
    }
    for (int i = 0; i <= gnnc_trainer_n_steps(t->t); i++) gnnc_trainer_step_info(t->t, i, &step);
    for (int i = 0; i < gnnc_trainer_n_layers(t->t); i++) MUST(gnnc_trainer_layer_name(t->t, i));
    TRAINER(t->t, gnnc_trainer_memory(t->t, &memory));
    TRAINER(t->t, gnnc_trainer_counters(t->t, &counters));
    TRAINER(t->t, gnnc_trainer_pipeline(t->t, &pipeline));
    MUST(gnnc_trainer_device(t->t) && gnnc_trainer_steps_left(t->t) >= 0);
    MUST(gnnc_trainer_epochs_done(t->t) >= 0 && gnnc_trainer_done(t->t) <= 1);
}

/* A trainer over a graph that is built at once goes on from the checkpoint to the same bits. */
static void compare_resumed(Run *r, const Trainer *t) {
    gnnc_trainer *other = NULL;
    Bytes at_once = {0}, after[2] = {{0}, {0}};
    if (!t->plain || r->n_resumed++ >= MOST_RESUMED) return;
    long refuse = refuse_in;
    refuse_in = -1;
    r->cancel_in = 0;
    gnnc_graph *g = built_of(&t->rows);
    MUST(gnnc_trainer_create(&other, TRAINS[t->kind]) == GNNC_OK);
    MUST(gnnc_trainer_set_int(other, "threads", 2) == GNNC_OK);
    MUST(gnnc_trainer_load_graph(other, g) == GNNC_OK);
    MUST(gnnc_trainer_resume_from(other, r->saved.p, r->saved.n) == GNNC_OK);
    MUST(gnnc_trainer_save_to(other, put, &at_once) == GNNC_OK && same(&at_once, &r->saved));
    MUST(gnnc_trainer_step(t->t) == gnnc_trainer_step(other));
    MUST(gnnc_trainer_save_weights_to(t->t, put, &after[0]) == GNNC_OK);
    MUST(gnnc_trainer_save_weights_to(other, put, &after[1]) == GNNC_OK &&
         same(&after[0], &after[1]));
    gnnc_trainer_destroy(other);
    gnnc_graph_release(g);
    drop(&at_once), drop(&after[0]), drop(&after[1]);
    refuse_in = refuse;
}

static void save(Run *r, Trainer *t) {
    Bytes b = {0};
    if (TRAINER(t->t, gnnc_trainer_save_to(t->t, put, &b)) != GNNC_OK) {
        drop(&b);
        return;
    }
    MUST(t->loaded);
    drop(&r->saved);
    r->saved = b, r->saved_kind = t->kind;
    compare_resumed(r, t);
}

static void resume(Run *r, Trainer *t) {
    size_t cut = next(&r->in) == 1 ? r->saved.n / 2 : r->saved.n;
    if (!r->saved.p) return;
    gnnc_status st = TRAINER(t->t, gnnc_trainer_resume_from(t->t, r->saved.p, cut));
    if (!t->t || (t->loaded && r->saved_kind != t->kind) || cut < r->saved.n) MUST(st != GNNC_OK);
}

static void to_model(Run *r, Trainer *t) {
    Model *m = &r->m[below(&r->in, SLOTS)];
    gnnc_model *made = NULL;
    if (n_weights == MOST_WEIGHTS || t->unknown) return;
    gnnc_status st = TRAINER(t->t, gnnc_trainer_to_model(t->t, INFERS[t->kind], &made));
    MUST((st == GNNC_OK) == (made != NULL));
    if (!t->loaded) MUST(!made);
    if (!made) return;
    drop_model(m);
    *m = (Model){made, t->kind, n_weights};
    long refuse = refuse_in;
    refuse_in = -1;
    MUST(gnnc_trainer_save_weights_to(t->t, put, &weights[n_weights]) == GNNC_OK);
    refuse_in = refuse;
    weights_kind[n_weights++] = t->kind;
}

/* The way back; what a model says of its metrics. */
static void from_model(Run *r, Trainer *t) {
    const Model *m = &r->m[below(&r->in, SLOTS)];
    gnnc_metric_info info = {.struct_size = sizeof info};
    int n = gnnc_model_n_metrics(m->m);
    for (int i = 0; i < n; i++) {
        MUST(gnnc_model_metric_info(m->m, i, &info) == GNNC_OK);
        MUST(info.known && info.name && *info.of && *info.split);
    }
    MUST(gnnc_model_metric_info(m->m, n, &info) != GNNC_OK);
    gnnc_status st = TRAINER(t->t, gnnc_trainer_load_model(t->t, m->m));
    if (!t->t || !m->m || m->weights < 0) MUST(st != GNNC_OK);
    if (t->loaded && m->m && m->kind != t->kind) MUST(st != GNNC_OK);
}

/* ---- one call after the other -------- */
static void call_graph(Run *r, int what, Graph *g) {
    switch (what) {
    case 0:
        new_graph(g);
        break;
    case 1:
        build(r, g, 1 << below(&r->in, 9));
        break;
    case 2:
        for (int part = 1; part < HAS_ALL; part *= 2) build(r, g, part);
        break;
    case 3:
        commit(g);
        break;
    case 4:
        append_nodes(r, g);
        break;
    case 5:
        append_edges(r, g, false);
        break;
    case 6:
        append_edges(r, g, true);
        break;
    case 7:
        wrong_build(r, g);
        break;
    case 8:
        any_column(r, g);
        break;
    case 9:
        ask_graph(r, g);
        break;
    }
}

static void call_serving(Run *r, int what, int slot) {
    Model *m = &r->m[slot];
    Session *s = &r->s[slot];
    switch (what) {
    case 0:
        new_model(r, m);
        break;
    case 1:
        load_model(r, m);
        break;
    case 2:
        drop_model(m);
        break;
    case 3:
        new_session(s);
        break;
    case 4:
        open_session(r, s);
        break;
    case 5:
        clone_session(r, s);
        break;
    case 6:
        ask_session(r, s);
        break;
    case 7:
        drop_session(s);
        break;
    default:
        predict(r, s);
        break;
    }
}

static void call_trainer(Run *r, int what, Trainer *t) {
    switch (what) {
    case 0:
        new_trainer(r, t);
        break;
    case 1:
        set_option(r, t);
        break;
    case 2:
        load_trainer(r, t);
        break;
    case 3:
        ask_trainer(t);
        break;
    case 4:
        save(r, t);
        break;
    case 5:
        resume(r, t);
        break;
    case 6:
        to_model(r, t);
        break;
    case 7:
        drop_trainer(t);
        break;
    default:
        use_trainer(r, t);
        break;
    }
}

/* What is behind the first 40 came later, so that inputs that were kept mean what they did. */
static void call_more(Run *r, int what, int slot) {
    switch (what) {
    case 0:
        for (int part = 1; part < HAS_EVERY; part *= 2) {
            if (part == HAS_E) build(r, &r->g[slot], HAS_G); /* edges stay in its graphs */
            if (part != HAS_G) build(r, &r->g[slot], part);
        }
        break;
    case 1:
        build(r, &r->g[slot], next(&r->in) & 1 ? HAS_W : HAS_G);
        break;
    case 2:
        lend_tensor(r, slot);
        break;
    case 3:
        lend_batch(r, &r->g[slot]);
        break;
    case 4:
        hold(r, slot);
        break;
    case 5:
        embed(r, &r->s[slot]);
        break;
    case 6:
        predict_pairs(r, &r->s[slot]);
        break;
    case 7:
    case 8:
    case 9:
        call_brought(r, what - 7, &r->b[slot]);
        break;
    case 10:
        ask_names(r, slot);
        break;
    case 11:
        read_files(r, slot);
        break;
    case 12:
        write_files(r, &r->t[slot]);
        break;
    case 13:
        ask_encoder(r, slot);
        break;
    case 14:
        run_main(r);
        break;
    case 15:
        ask_whole(r, &r->s[slot], &r->b[slot]);
        break;
    case 16:
        from_model(r, &r->t[slot]);
        break;
    case 17:
        embed_brought(r, &r->b[slot]);
        break;
    case 18:
        set_encoded(r, next(&r->in) == 1 ? &r->b[slot].g : &r->g[slot]);
        break;
    }
}

static void call(Run *r) {
    int what = below(&r->in, 59), slot = next(&r->in) & 1;
    if (what < 10)
        call_graph(r, what, &r->g[slot]);
    else if (what < 20)
        call_serving(r, what - 10, slot);
    else if (what < 32)
        call_trainer(r, what - 20, &r->t[slot]);
    else if (what < 34)
        refuse_in = below(&r->in, 40);
    else if (what == 34) {
        gnnc_graph_release(r->g[slot].g); /* whoever reads it keeps it */
        memset(&r->g[slot], 0, sizeof r->g[slot]);
    } else if (what >= 40)
        call_more(r, what - 40, slot);
}

/* Weights of each model: as they begin, and after an epoch. */
static void first_weights(void) {
    static uint8_t bytes[512];
    Rows rows = {.has = HAS_EVERY, .n = 10, .n_e = 14, .n_l = 14, .n_g = 2};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 151 >> 2);
    Input in = {bytes, bytes + sizeof bytes};
    draw_nodes(&in, &rows.v, 0, rows.n);
    draw_edges(&in, &rows.e, 0, rows.n_e, rows.n);
    draw_edges(&in, &rows.l, 0, rows.n_l, rows.n);
    rows.g = (Parts){.ptr = {0, 5, 10}, .y = {0, CATEGORIES - 1}, .split = {1, 1}};
    for (int i = 0; i < rows.n_e; i++) rows.e.dst[i] = rows.e.src[i] / 5 * 5 + rows.e.dst[i] % 5;
    gnnc_graph *g = built_of(&rows);
    for (int kind = 0; kind < MODELS; kind++) {
        gnnc_trainer *t = NULL;
        MUST(gnnc_trainer_create(&t, TRAINS[kind]) == GNNC_OK);
        MUST(gnnc_trainer_load_graph(t, g) == GNNC_OK);
        for (int i = 0; i < 2; i++) {
            MUST(gnnc_trainer_save_weights_to(t, put, &weights[n_weights]) == GNNC_OK);
            weights_kind[n_weights++] = kind;
            MUST(gnnc_trainer_epoch(t) == GNNC_OK);
        }
        gnnc_trainer_destroy(t);
    }
    gnnc_graph_release(g);
    n_first = n_weights;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static Run run; /* large */
    if (!n_weights) first_weights();
    if (!*folder) first_files(), first_encoders();
    memset(&run, 0, sizeof run);
    unlink_written();
    run.in = (Input){data, data + n};
    for (int i = 0; i < SLOTS; i++) run.m[i].weights = -1;
    for (int i = 0; i < MOST_CALLS && run.in.at < run.in.end; i++) call(&run);
    refuse_in = -1;
    for (int i = 0; i < SLOTS; i++) {
        gnnc_graph_release(run.g[i].g);
        drop_model(&run.m[i]);
        drop_trainer(&run.t[i]);
        drop_session(&run.s[i]);
        drop_brought(&run.b[i]);
    }
    for (int i = 0; i < SLOTS; i++) let_go(&run.held[i]);
    MUST(run.n_lent == 0);
    drop(&run.saved);
    for (; n_weights > n_first; n_weights--) drop(&weights[n_weights - 1]);
    MUST(n_live == 0);
    return 0;
}
