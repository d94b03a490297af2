/* What a host asks of a trainer: options, structures, memory in the place of files, progress,
 * fine-tuning. */
#include "test.h"

#include <math.h>

#include "tiny_trainer.h"

/* ---- options ---------------------------------------------------------------------------- */
static gnnc_option option_of(gnnc_trainer *t, const char *name) {
    gnnc_option o = {.struct_size = sizeof o};
    for (int i = 0; i < gnnc_trainer_n_options(t); i++) {
        CHECK(gnnc_trainer_option(t, i, &o) == GNNC_OK);
        if (strcmp(o.name, name) == 0) return o;
    }
    CHECK_MSG(false, "no option %s", name);
    return (gnnc_option){.name = ""};
}

/* Its least and most are taken, what lies beyond is not; the list tells what was set. */
static void takes_its_range(gnnc_trainer *t, const gnnc_option *o) {
    CHECK(gnnc_trainer_set_int(t, o->name, o->int_most) == GNNC_OK);
    CHECK(option_of(t, o->name).int_value == o->int_most && option_of(t, o->name).is_set);
    if (o->int_most < INT64_MAX)
        CHECK(gnnc_trainer_set_int(t, o->name, o->int_most + 1) == GNNC_E_RANGE);
    if (o->int_least > INT64_MIN)
        CHECK(gnnc_trainer_set_int(t, o->name, o->int_least - 1) == GNNC_E_RANGE);
    CHECK(option_of(t, o->name).int_value == o->int_most);
    CHECK(gnnc_trainer_set_int(t, o->name, o->int_least) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, o->name, o->int_default) == GNNC_OK);
}

TEST(options_are_listed_as_they_are_set) {
    gnnc_trainer *t = NULL;
    gnnc_option o = {.struct_size = sizeof o};
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK && gnnc_trainer_n_options(t) > 20);
    for (int i = 0; i < gnnc_trainer_n_options(t); i++) {
        CHECK(gnnc_trainer_option(t, i, &o) == GNNC_OK);
        CHECK_MSG(*o.name && *o.help && !strchr(o.help, '\n') && strlen(o.help) < 110, "%s",
                  o.name);
        bool fixed = !strcmp(o.name, "batch") || !strcmp(o.name, "workers") ||
                     !strcmp(o.name, "eval_rows") || !strcmp(o.name, "fanout") ||
                     !strcmp(o.name, "weight_decay"); /* of tiny_program */
        CHECK_MSG(o.settable == !fixed && !o.is_set, "%s", o.name);
        CHECK(o.int_value == o.int_default && o.real_value == o.real_default);
        if (o.type == GNNC_OPTION_INT && o.settable) takes_its_range(t, &o);
        if (o.type == GNNC_OPTION_INT && !o.settable)
            CHECK(gnnc_trainer_set_int(t, o.name, o.int_most) == GNNC_E_MISSING);
        if (o.type != GNNC_OPTION_REAL) CHECK(gnnc_trainer_set_real(t, o.name, 1) < 0);
        if (o.type != GNNC_OPTION_TEXT) CHECK(gnnc_trainer_set_text(t, o.name, "1") < 0);
    }
    CHECK(gnnc_trainer_option(t, gnnc_trainer_n_options(t), &o) == GNNC_E_RANGE);
    CHECK(gnnc_trainer_option(t, -1, &o) == GNNC_E_RANGE);
    gnnc_trainer_destroy(t);
}

TEST(options_tell_the_models_defaults_and_what_is_in_use) {
    Place p = place_new();
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(option_of(t, "epochs").int_default == 12 && option_of(t, "lr").real_default == 0.05);
    CHECK(gnnc_trainer_set_real(t, "lr", 0.25) == GNNC_OK);
    CHECK(gnnc_trainer_set_real(t, "lr", INFINITY) == GNNC_E_RANGE);
    CHECK(option_of(t, "lr").real_value == 0.25 && option_of(t, "lr").real_default == 0.05);
    CHECK(gnnc_trainer_set_real(t, "weight_decay", 0) == GNNC_OK); /* as it is */
    CHECK(gnnc_trainer_set_real(t, "weight_decay", 1) == GNNC_E_MISSING);
    CHECK_STR(option_of(t, "device").text_value, "auto");
    CHECK(gnnc_trainer_set_text(t, "device", "cpu") == GNNC_OK);
    CHECK(gnnc_trainer_set_text(t, "device", "tpu") == GNNC_E_MISSING);
    CHECK_STR(option_of(t, "device").text_value, "cpu");
    CHECK_STR(option_of(t, "device").text_default, "auto");
    CHECK_MSG(gnnc_trainer_load(t, p.dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(option_of(t, "epochs").settable && !option_of(t, "lr").settable);
    CHECK(gnnc_trainer_set_real(t, "lr", 0.5) == GNNC_E_STATE);
    CHECK(gnnc_trainer_set_text(t, "device", "cpu") == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(metrics_are_listed_with_their_splits) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 3, 1);
    gnnc_metric_info m = {.struct_size = sizeof m};
    int n = gnnc_trainer_n_metrics(t), n_known = 0, n_of_splits = 0;
    CHECK(gnnc_trainer_metric_info(t, 0, &m) == GNNC_OK && !m.known && isnan(m.value));
    train_on(t, 1);
    for (int i = 0; i < n; i++) {
        CHECK(gnnc_trainer_metric_info(t, i, &m) == GNNC_OK && !m.is_logged);
        CHECK(m.known && m.value == metric(t, m.name));
        n_known++;
        if (!*m.split) continue;
        char name[64];
        snprintf(name, sizeof name, "%s.%s", m.of, m.split);
        CHECK_STR(name, m.name);
        n_of_splits++;
    }
    CHECK(n_known == 5 && n_of_splits == 3); /* lr, loss; loss.train, loss.val, mae.test */
    CHECK(gnnc_trainer_metric_info(t, n, &m) == GNNC_E_RANGE);
    CHECK(gnnc_trainer_metric_info(t, -1, &m) == GNNC_E_RANGE);
    CHECK(option_of(t, "threads").int_value == 1 && option_of(t, "variant").int_value == 0);
    CHECK(option_of(t, "serial_ns").int_value == 10000 && !option_of(t, "serial_ns").is_set);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* Of what the model measures, that is loss and mae. */
TEST(baselines_are_those_of_the_data) {
    static const char in[] = "\"file\": \"t.npy\"",
                      more[] = ", \"baselines\": [{\"name\": \"median of all\", \"val\": "
                               "{\"mae\": 0.5, \"rmse\": 1}, \"test\": {\"mae\": 0.25}}, "
                               "{\"name\": \"last\", \"test\": {\"mae\": 2}}]";
    char schema[1024];
    Place p = place_new();
    const char *at = strstr(SCHEMA, in) + strlen(in);
    snprintf(schema, sizeof schema, "%.*s%s%s", (int)(at - SCHEMA), SCHEMA, more, at);
    write_text(p.dir, "schema.json", schema);
    gnnc_trainer *t = trainer_new(&p, 3, 1);
    gnnc_baseline b = {.struct_size = sizeof b};
    CHECK(gnnc_trainer_n_baselines(t) == 2);
    CHECK(gnnc_trainer_baseline(t, 0, &b) == GNNC_OK && b.val == 0.5 && b.test == 0.25);
    CHECK_STR(b.name, "median of all");
    CHECK_STR(b.metric, "mae");
    CHECK(gnnc_trainer_baseline(t, 1, &b) == GNNC_OK && isnan(b.val) && b.test == 2);
    CHECK(gnnc_trainer_baseline(t, 2, &b) == GNNC_E_RANGE);
    CHECK(gnnc_trainer_baseline(t, -1, &b) == GNNC_E_RANGE);
    gnnc_trainer_destroy(t);
    snprintf(schema, sizeof schema, "%.*s, \"baselines\": [{\"val\": {}}]%s", (int)(at - SCHEMA),
             SCHEMA, at);
    write_text(p.dir, "schema.json", schema);
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_E_FORMAT);
    CHECK_MSG(strstr(gnnc_trainer_error(t), "a baseline has a 'name'"), "%s",
              gnnc_trainer_error(t));
    CHECK(gnnc_trainer_n_baselines(t) == 0 && gnnc_trainer_baseline(t, 0, &b) == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- structures ------------------------------------------------------------------------- */
/* What a host has that was compiled with the header of another version. */
TEST(a_structure_is_filled_as_far_as_its_caller_has_it) {
    enum { LEAST = offsetof(gnnc_counters, eval_ns) + sizeof(int64_t) };
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 0, 1);
    struct {
        gnnc_counters c;
        char later[16], not_his;
    } newer = {.c.struct_size = offsetof(__typeof__(newer), not_his), .not_his = 7};
    memset(newer.later, 7, sizeof newer.later);
    CHECK(gnnc_trainer_counters(t, &newer.c) == GNNC_OK && newer.c.allocations > 0);
    CHECK(newer.c.struct_size == sizeof newer.c + sizeof newer.later && newer.not_his == 7);
    for (size_t i = 0; i < sizeof newer.later; i++) CHECK(newer.later[i] == 0);
    const size_t bad[] = {0, 8, 4097, SIZE_MAX};
    newer.c.struct_size = LEAST - 1;
    CHECK(gnnc_trainer_counters(t, &newer.c) == GNNC_E_ARG);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gnnc_counters c = {.struct_size = bad[i], .steps = -5};
        CHECK(gnnc_trainer_counters(t, &c) == GNNC_E_ARG && c.steps == -5);
        CHECK(strstr(gnnc_trainer_error(t), "sizeof(gnnc_counters)"));
        gnnc_memory m = {.struct_size = bad[i]};
        gnnc_step_info s = {.struct_size = bad[i]};
        gnnc_pipeline w = {.struct_size = bad[i]};
        gnnc_limits l = {.struct_size = bad[i]};
        CHECK(gnnc_trainer_memory(t, &m) == GNNC_E_ARG && m.all_bytes == 0);
        CHECK(gnnc_trainer_step_info(t, 0, &s) == GNNC_E_ARG && !s.phase);
        CHECK(gnnc_trainer_pipeline(t, &w) == GNNC_E_ARG);
        CHECK(gnnc_trainer_measure_limits(t, &l) == GNNC_E_ARG && l.flops_per_s == 0);
    }
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- memory ------------------------------------------------------------------------------- */
typedef struct {
    unsigned char *p;
    size_t n, cap, announced;
    int fails_after; /* calls; 0 = never */
} Buffer;

static int append(void *user, const void *data, size_t n_bytes, size_t n_left) {
    Buffer *b = user;
    if (!b->n) {
        b->cap = b->announced = n_bytes + n_left;
        b->p = realloc(b->p, b->cap);
    }
    if (b->fails_after && --b->fails_after == 0) return 7;
    CHECK(b->n + n_bytes + n_left == b->announced && b->p);
    memcpy(b->p + b->n, data, n_bytes);
    b->n += n_bytes;
    return 0;
}

static bool holds_file(const Buffer *b, const char *path) {
    static char text[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    return n > 0 && n == b->n && n == b->announced && memcmp(text, b->p, n) == 0;
}

TEST(memory_holds_what_the_file_would) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    Buffer c = {0}, w = {0};
    train_on(t, 5);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK && gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
    CHECK(holds_file(&c, p.a));
    CHECK(gnnc_trainer_save_weights(t, p.b) == GNNC_OK);
    CHECK(gnnc_trainer_save_weights_to(t, append, &w) == GNNC_OK && holds_file(&w, p.b));
    gnnc_trainer_destroy(t);
    free(c.p);
    free(w.p);
    scratch_remove(p.dir);
}

TEST(training_goes_on_from_memory_to_the_same_bits) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    Buffer c = {0};
    train_on(t, 5);
    CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
    train_on(t, 12);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    for (int before = 0; before < 2; before++) { /* load */
        unsigned char *odd = malloc(c.n + 1);    /* at no alignment, and gone behind the call */
        memcpy(odd + 1, c.p, c.n);
        CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
        if (before) CHECK(gnnc_trainer_resume_from(t, odd + 1, c.n) == GNNC_OK);
        if (before) memset(odd, 0xff, c.n + 1);
        CHECK_MSG(gnnc_trainer_load(t, p.dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
        if (!before) CHECK(gnnc_trainer_resume_from(t, odd + 1, c.n) == GNNC_OK);
        free(odd);
        CHECK(gnnc_trainer_epochs_done(t) == 5);
        train_on(t, 12);
        CHECK(gnnc_trainer_save(t, p.b) == GNNC_OK && same_file(p.a, p.b));
        gnnc_trainer_destroy(t);
    }
    free(c.p);
    scratch_remove(p.dir);
}

TEST(a_host_that_cannot_write_fails_the_call_alone) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    train_on(t, 2);
    for (int call = 1; call < 4; call++) {
        Buffer c = {.fails_after = call};
        CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_E_IO);
        CHECK(strstr(gnnc_trainer_error(t), "returned 7"));
        c.n = 0, c.fails_after = call;
        CHECK(gnnc_trainer_save_weights_to(t, append, &c) == GNNC_E_IO);
        free(c.p);
    }
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* Bytes as a checkpoint and as weights, by a trainer that must live on; before load by another. */
static void swallows(gnnc_trainer *t, const Place *p, const Buffer *c, bool may_fit) {
    static unsigned char before[1 << 16], after[1 << 16];
    Buffer a = {.p = NULL}, b = {.p = NULL};
    CHECK(gnnc_trainer_save_to(t, append, &a) == GNNC_OK && a.n <= sizeof before);
    memcpy(before, a.p, a.n);
    gnnc_status st = gnnc_trainer_resume_from(t, c->p, c->n);
    CHECK(st == GNNC_OK ? may_fit : gnnc_trainer_error(t)[0] != '\0');
    if (st != GNNC_OK) { /* nothing changed */
        CHECK(gnnc_trainer_save_to(t, append, &b) == GNNC_OK && b.n == a.n);
        memcpy(after, b.p, b.n);
        CHECK(memcmp(before, after, a.n) == 0);
    }
    if (!may_fit) CHECK(gnnc_trainer_load_weights_from(t, c->p, c->n) != GNNC_OK);
    CHECK(gnnc_trainer_resume_from(t, a.p, a.n) == GNNC_OK);
    free(a.p);
    free(b.p);
    gnnc_trainer *early = NULL;
    CHECK(gnnc_trainer_create(&early, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(early, "threads", 1) == GNNC_OK);
    st = gnnc_trainer_resume_from(early, c->p, c->n);
    if (!may_fit) CHECK(st != GNNC_OK);
    if (st == GNNC_OK) gnnc_trainer_load(early, p->dir);
    gnnc_trainer_destroy(early);
}

TEST(damaged_memory_is_refused_and_changes_nothing) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    Buffer c = {0};
    train_on(t, 3);
    CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
    for (size_t n = 0; n < c.n; n += n < 64 || n + 64 > c.n ? 1 : 61) { /* cut short */
        unsigned char *cut = malloc(n + 1);
        memcpy(cut, c.p, n);
        swallows(t, &p, &(Buffer){.p = cut, .n = n}, false);
        free(cut);
    }
    for (size_t i = 0; i < c.n; i += i < 16 ? 1 : 29) { /* a bit turned */
        c.p[i] ^= (unsigned char)(1 << i % 8);
        swallows(t, &p, &c, true);
        c.p[i] ^= (unsigned char)(1 << i % 8);
    }
    CHECK(gnnc_trainer_epochs_done(t) == 3 && gnnc_trainer_epoch(t) == GNNC_OK);
    free(c.p);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* The n-th allocation fails, for every n, from one trainer to the next. */
static gnnc_status from_trainer_to_trainer(const Place *p, FailingAlloc *f, Buffer *c) {
    gnnc_trainer *t = NULL;
    RtAlloc a = {failing_alloc, failing_release, f};
    gnnc_status st = gnnc_trainer_create_with(&t, &tiny_model, a.alloc, a.release, a.user);
    if (st == GNNC_OK) st = gnnc_trainer_resume_from(t, c->p, c->n);
    if (st == GNNC_OK) st = gnnc_trainer_load(t, p->dir);
    c->n = 0;
    if (st == GNNC_OK) st = gnnc_trainer_save_weights_to(t, append, c);
    if (st == GNNC_OK) st = gnnc_trainer_load_weights_from(t, c->p, c->n);
    c->n = 0;
    if (st == GNNC_OK) st = gnnc_trainer_save_to(t, append, c);
    if (st == GNNC_OK) st = gnnc_trainer_resume_from(t, c->p, c->n);
    if (st != GNNC_OK && t) CHECK(gnnc_trainer_error(t)[0] != '\0');
    gnnc_trainer_destroy(t);
    return st;
}

TEST(every_failing_allocation_is_reported) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    Buffer c = {0}, own = {0};
    train_on(t, 2);
    CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
    gnnc_trainer_destroy(t);
    gnnc_status st = GNNC_E_NOMEM;
    long n = 0;
    for (; st != GNNC_OK && n < 2000; n++) {
        FailingAlloc f;
        failing(&f, n);
        own = (Buffer){.p = realloc(own.p, c.n), .n = c.n};
        memcpy(own.p, c.p, c.n);
        st = from_trainer_to_trainer(&p, &f, &own);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", n, st);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n, f.n_live);
    }
    CHECK(st == GNNC_OK && n > 20);
    free(c.p);
    free(own.p);
    scratch_remove(p.dir);
}

/* ---- what a program is ---------------------------------------------------------------------- */
TEST(a_program_tells_what_it_is_and_needs) {
    gnnc_program_info is = {.struct_size = sizeof is};
    gnnc_recipe r = {.struct_size = sizeof r};
    gnnc_needed_table t = {.struct_size = sizeof t};
    gnnc_needed_column c = {.struct_size = sizeof c};
    int is_state = 0;
    CHECK(gnnc_program_describe(&tiny_model, &is) == GNNC_OK);
    CHECK_STR(is.model, "Tiny");
    CHECK(is.fingerprint == 0x7171 && is.has_recipe && is.trains && is.predicts && is.embeds);
    CHECK(gnnc_program_recipe(&tiny_model, &r) == GNNC_OK && r.epochs == 12 && r.momentum == 0.9);
    CHECK_STR(r.schedule, "cosine");
    CHECK_STR(r.keep_split, "val");
    CHECK(r.warmup_epochs == 2 && r.gamma == 0 && !r.batch && !r.batch_of && r.n_metrics == 1);
    CHECK(gnnc_program_n_tables(&tiny_model) == 2); /* not those that are derived */
    CHECK(gnnc_program_table(&tiny_model, 1, &t) == GNNC_OK && t.kind == GNNC_EDGES);
    CHECK_STR(t.src_type, "n");
    CHECK(gnnc_program_column(&tiny_model, 0, 1, &c) == GNNC_OK && c.is_label && !c.categories);
    CHECK(gnnc_program_column(&tiny_model, 0, 0, &c) == GNNC_OK && c.rank == 1);
    CHECK_STR(c.size[0], "F");
    CHECK(gnnc_program_column(&tiny_model, 0, 3, &c) == GNNC_E_RANGE);
    CHECK(gnnc_program_table(&tiny_model, 2, &t) == GNNC_E_RANGE);
    CHECK(gnnc_program_table(&tiny_model, -1, &t) == GNNC_E_RANGE);
    CHECK(gnnc_program_n_parameters(&tiny_model) == 3); /* without slots */
    CHECK_STR(gnnc_program_parameter(&tiny_model, 2, &is_state), "seen");
    CHECK(is_state == 1 && !gnnc_program_parameter(&tiny_model, 3, NULL));
    const gnnc_program old = {RT_PROGRAM_VERSION - 1, &tiny_program};
    CHECK(gnnc_program_describe(&old, &is) == GNNC_E_ARG && gnnc_program_n_tables(&old) == 0);
    is.struct_size = 8;
    CHECK(gnnc_program_describe(&tiny_model, &is) == GNNC_E_ARG);
}

TEST(a_trainer_tells_of_what_runs) {
    Place p = place_new();
    gnnc_phase_info ph = {.struct_size = sizeof ph};
    gnnc_loaded_column c = {.struct_size = sizeof c};
    double scale, skipped;
    gnnc_trainer *t = trainer_new(&p, 2, 1);
    CHECK(gnnc_trainer_n_phases(t) == 5 && gnnc_trainer_phase_info(t, 1, &ph) == GNNC_OK);
    CHECK_STR(ph.name, "train");
    CHECK(gnnc_trainer_n_columns(t) == 4 && gnnc_trainer_column_info(t, 2, &c) == GNNC_OK);
    CHECK(c.data_kind == GNNC_COL_SPLIT && c.data_element == GNNC_DT_I8);
    CHECK(c.element == GNNC_DT_I32 && !c.is_mapped);
    CHECK(gnnc_trainer_column_info(t, 4, &c) == GNNC_E_RANGE && gnnc_trainer_n_variants(t) == 0);
    CHECK(*gnnc_trainer_machine(t) && gnnc_trainer_machine(NULL)[0] == '\0');
    CHECK(gnnc_trainer_loss_scale(t, &scale, &skipped) == GNNC_E_MISSING);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(rows_fewer_than_none_are_told) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 2, 1);
    float out[F];
    CHECK(gnnc_trainer_predict_rows(t, -2, NULL, out) == GNNC_E_ARG);
    CHECK_STR(gnnc_trainer_error(t), "-2 rows");
    CHECK(gnnc_trainer_predict_rows(t, 1, NULL, NULL) == GNNC_E_ARG);
    CHECK_STR(gnnc_trainer_error(t), "the argument 'out' is NULL");
    CHECK(gnnc_trainer_predict_rows(t, 0, NULL, NULL) == GNNC_OK);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- progress ------------------------------------------------------------------------------ */
typedef struct {
    gnnc_progress last;
    int n_told, cancels_at; /* the told step after which it wants no other; 0 = none */
} Told;

static int hear(void *user, const gnnc_progress *now) {
    Told *told = user;
    CHECK(now->struct_size == sizeof *now && now->seconds >= 0);
    told->last = *now;
    return ++told->n_told == told->cancels_at;
}

TEST(a_host_hears_of_every_step) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 12, 1);
    Told told = {.n_told = 0};
    CHECK(gnnc_trainer_set_progress(t, hear, &told) == GNNC_OK);
    for (int e = 0; e < 3; e++) {
        CHECK(gnnc_trainer_epoch(t) == GNNC_OK && told.n_told == e + 1);
        CHECK(told.last.steps == e + 1 && told.last.epochs_done == e);
        CHECK(told.last.epochs_total == 12);
        CHECK(told.last.steps_done == 1 && told.last.steps_left == 0);
        CHECK(told.last.loss == metric(t, "loss"));
    }
    CHECK(gnnc_trainer_run_phase(t, "train") == GNNC_OK && told.n_told == 3); /* a bare phase */
    CHECK(gnnc_trainer_set_progress(t, NULL, NULL) == GNNC_OK);
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK && told.n_told == 3);
    CHECK(gnnc_trainer_set_progress(NULL, hear, NULL) == GNNC_E_ARG);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(hearing_of_steps_changes_no_bit_and_allocates_nothing) {
    Place p = place_new();
    Told told = {.n_told = 0};
    gnnc_counters a = {.struct_size = sizeof a}, b = a;
    for (int hears = 0; hears < 2; hears++) {
        gnnc_trainer *t = trainer_new(&p, 6, 1);
        if (hears) CHECK(gnnc_trainer_set_progress(t, hear, &told) == GNNC_OK);
        train_on(t, 1);
        CHECK(gnnc_trainer_counters(t, &a) == GNNC_OK);
        train_on(t, 6);
        CHECK(gnnc_trainer_counters(t, &b) == GNNC_OK && b.allocations == a.allocations);
        CHECK(b.read_backs == a.read_backs + 5);
        CHECK(gnnc_trainer_save(t, hears ? p.b : p.a) == GNNC_OK);
        gnnc_trainer_destroy(t);
    }
    CHECK(told.n_told == 6 && same_file(p.a, p.b));
    scratch_remove(p.dir);
}

/* Cancelled behind an epoch's last step, whose evaluation is still to come. */
TEST(cancelled_training_goes_on_to_the_same_bits) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 6, 1);
    train_on(t, 6);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    for (int resumes = 0; resumes < 2; resumes++) {
        Told told = {.cancels_at = 3};
        Buffer c = {0};
        t = trainer_new(&p, 6, 1);
        CHECK(gnnc_trainer_set_progress(t, hear, &told) == GNNC_OK);
        CHECK(gnnc_trainer_epoch(t) == GNNC_OK && gnnc_trainer_epoch(t) == GNNC_OK);
        CHECK(gnnc_trainer_epoch(t) == GNNC_E_STOPPED);
        CHECK(strstr(gnnc_trainer_error(t), "cancelled by the host after step 3"));
        CHECK(gnnc_trainer_epochs_done(t) == 2 && !gnnc_trainer_done(t));
        CHECK(gnnc_trainer_steps_left(t) == 0 && gnnc_trainer_steps_done(t) == 1);
        if (resumes) {
            CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
            gnnc_trainer_destroy(t);
            t = trainer_new(&p, 0, 1);
            CHECK(gnnc_trainer_resume_from(t, c.p, c.n) == GNNC_OK);
            CHECK(gnnc_trainer_steps_left(t) == 0 && gnnc_trainer_epochs_done(t) == 2);
            free(c.p);
        }
        train_on(t, 6);
        CHECK(gnnc_trainer_save(t, p.b) == GNNC_OK && same_file(p.a, p.b));
        gnnc_trainer_destroy(t);
    }
    scratch_remove(p.dir);
}

TEST(a_cancelled_step_is_done) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 6, 1);
    gnnc_counters c = {.struct_size = sizeof c};
    Told told = {.cancels_at = 1};
    CHECK(gnnc_trainer_set_progress(t, hear, &told) == GNNC_OK);
    CHECK(gnnc_trainer_step(t) == GNNC_E_STOPPED && gnnc_trainer_step(t) == GNNC_OK);
    CHECK(gnnc_trainer_counters(t, &c) == GNNC_OK && c.steps == 2 && told.n_told == 2);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- processes ----------------------------------------------------------------------------- */
static gnnc_status nothing_comes(void *user, void *bytes, size_t n_bytes, int from) {
    (void)user, (void)bytes, (void)n_bytes, (void)from;
    return GNNC_E_IO;
}

TEST(processes_that_cannot_be_are_refused) {
    Place p = place_new();
    gnnc_trainer *t = NULL;
    const gnnc_processes good = {sizeof good, 1, 2, nothing_comes, NULL, NULL, 0, NULL, 0, 0, 0};
    struct {
        gnnc_processes is;
        const char *why;
    } bad[] = {
        {{0, 1, 2, nothing_comes, NULL, NULL, 0, NULL, 0, 0, 0},
         "struct_size of the gnnc_processes is 0"},
        {{sizeof good, 2, 2, nothing_comes, NULL, NULL, 0, NULL, 0, 0, 0},
         "no rank 2 of 2 processes"},
        {{sizeof good, -1, 2, nothing_comes, NULL, NULL, 0, NULL, 0, 0, 0},
         "no rank -1 of 2 processes"},
        {{sizeof good, 0, 0, nothing_comes, NULL, NULL, 0, NULL, 0, 0, 0},
         "no rank 0 of 0 processes"},
        {{sizeof good, 1, 2, NULL, NULL, NULL, 0, NULL, 0, 0, 0},
         "2 processes without 'broadcast'"},
        {{sizeof good, 1, 2, nothing_comes, NULL, NULL, 0, NULL, 2, 2, 0},
         "no process 2 of 2 of a machine"},
        {{sizeof good, 1, 2, nothing_comes, NULL, NULL, 0, NULL, 0, -1, 0},
         "no process 0 of -1 of a"},
        {{sizeof good, 1, 2, nothing_comes, NULL, NULL, 0, NULL, 0, 0, -1},
         "nobody waits for -1 seconds"},
    };
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(gnnc_trainer_set_processes(t, &bad[i].is) == GNNC_E_ARG);
        CHECK_MSG(strstr(gnnc_trainer_error(t), bad[i].why), "%s", gnnc_trainer_error(t));
    }
    CHECK(gnnc_trainer_set_processes(t, NULL) == GNNC_E_ARG);
    CHECK_STR(gnnc_trainer_error(t), "the argument 'p' is NULL");
    CHECK(gnnc_trainer_set_processes(NULL, &good) == GNNC_E_ARG);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK); /* what was refused is nothing */
    CHECK(gnnc_trainer_set_processes(t, &good) == GNNC_E_STATE);
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    CHECK(gnnc_trainer_agree(t, 7) == 7 && gnnc_trainer_agree(t, 0) == 0);
    CHECK(gnnc_trainer_agree(NULL, 7) == 0);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* All hear the first process; which variant it chose is what it sends. */
static gnnc_status hear_variant(void *user, void *bytes, size_t n_bytes, int from) {
    int64_t *chosen = user;
    CHECK(n_bytes == sizeof *chosen && from == 0);
    memcpy(chosen, bytes, sizeof *chosen);
    return GNNC_OK;
}

/* The first of two processes; the other hears its choice by *chosen. */
static gnnc_trainer *first_of_two(int64_t *chosen) {
    gnnc_trainer *t = NULL;
    gnnc_processes is = {sizeof is, 0, 2, hear_variant, chosen, NULL, 0, NULL, 0, 0, 0};
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_processes(t, &is) == GNNC_OK);
    return t;
}

TEST(a_model_that_processes_cannot_train) {
    Place p = place_new();
    int64_t chosen = 9;
    gnnc_trainer *t = first_of_two(&chosen);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_E_STATE);
    CHECK(strstr(gnnc_trainer_error(t), "2 processes cannot train this model: its steps see"));
    CHECK(chosen == 0); /* though there is one only: others may have more */
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* Else the others would wait for its choice. */
TEST(a_first_process_that_fails_says_so) {
    Place p = place_new();
    int64_t chosen = 9;
    gnnc_trainer *t = first_of_two(&chosen);
    CHECK(gnnc_trainer_set_int(t, "max_memory", 1000) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_E_LIMIT && chosen == -1);
    CHECK(strstr(gnnc_trainer_error(t), "limit"));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- fine-tuning ---------------------------------------------------------------------------- */
/* The same graph with other targets. */
static void change_targets(const char *dir) {
    float t[N];
    for (int v = 0; v < N; v++) t[v] = (float)(v % 7) / 7;
    save_npy(dir, "t.npy", RT_DT_F32, 1, N, 0, t);
}

static gnnc_trainer *tuned_for(const Place *p, const Buffer *weights) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "epochs", 4) == GNNC_OK);
    CHECK(gnnc_trainer_set_real(t, "lr", 0.02) == GNNC_OK);
    if (weights) CHECK(gnnc_trainer_load_weights_from(t, weights->p, weights->n) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, p->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    return t;
}

static void copy_parameters(gnnc_trainer *from, gnnc_trainer *to) {
    for (int i = 0; i < gnnc_trainer_n_parameters(from); i++) {
        const char *name;
        float v[F];
        int rank;
        int64_t dim[GNNC_MAX_RANK], n = 1;
        CHECK(gnnc_trainer_parameter_info(from, i, &name, &rank, dim) == GNNC_OK);
        for (int k = 0; k < rank; k++) n *= dim[k];
        CHECK(gnnc_trainer_get_parameter(from, name, v, (size_t)n) == GNNC_OK);
        CHECK(gnnc_trainer_set_parameter(to, name, v, (size_t)n) == GNNC_OK);
    }
}

/* Weights of one trainer, other data, a schedule of its own: as of a trainer that began with them.
 */
TEST(fine_tuning_begins_anew_from_the_weights) {
    Place p = place_new();
    Buffer w = {0};
    gnnc_trainer *first = trainer_new(&p, 9, 1);
    train_on(first, 9);
    CHECK(gnnc_trainer_keep_best(first, NULL) == GNNC_OK);
    CHECK(gnnc_trainer_save_weights_to(first, append, &w) == GNNC_OK);
    change_targets(p.dir);
    gnnc_trainer *t = tuned_for(&p, &w), *want = tuned_for(&p, NULL), *from = tuned_for(&p, NULL);
    copy_parameters(first, want);
    gnnc_model *m = NULL;
    CHECK(gnnc_model_create(&m, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load_model(from, m) == GNNC_E_STATE);
    CHECK(strstr(gnnc_trainer_error(from), "has no weights"));
    gnnc_model_release(m);
    CHECK(gnnc_trainer_to_model(first, &tiny_model, &m) == GNNC_OK);
    CHECK(gnnc_trainer_load_model(from, m) == GNNC_OK);
    gnnc_model_release(m); /* it is read in the call alone */
    CHECK(gnnc_trainer_epochs_done(t) == 0 && !gnnc_trainer_done(t));
    CHECK(gnnc_trainer_evaluate(t) == GNNC_OK);
    double before = metric(t, "loss.train");
    train_on(t, 1);
    CHECK(metric(t, "lr") == 0.01); /* the first epoch of a warm-up of two */
    train_on(t, 4);
    train_on(want, 4);
    train_on(from, 4);
    CHECK(gnnc_trainer_done(t) && metric(t, "loss.train") < before);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK && gnnc_trainer_save(want, p.b) == GNNC_OK);
    CHECK(same_file(p.a, p.b));
    CHECK(gnnc_trainer_save(from, p.b) == GNNC_OK && same_file(p.a, p.b));
    free(w.p);
    gnnc_trainer_destroy(first);
    gnnc_trainer_destroy(from);
    gnnc_trainer_destroy(t);
    gnnc_trainer_destroy(want);
    scratch_remove(p.dir);
}

TEST(a_model_is_where_training_begins_before_the_data) {
    Place p = place_new();
    Buffer w = {0};
    gnnc_trainer *first = trainer_new(&p, 3, 1), *t = NULL;
    train_on(first, 3);
    gnnc_model *m = NULL;
    CHECK(gnnc_trainer_to_model(first, &tiny_model, &m) == GNNC_OK);
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load_model(t, m) == GNNC_OK);
    gnnc_model_release(m);
    CHECK_MSG(gnnc_trainer_load(t, p.dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(gnnc_trainer_evaluate(t) == GNNC_OK);
    CHECK(metric(t, "loss.val") == metric(first, "loss.val"));
    free(w.p);
    gnnc_trainer_destroy(first);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- what a model had reached ---------------------------------------------------------------- */
static gnnc_model *model_of(const Buffer *b) {
    gnnc_model *m = NULL;
    CHECK(gnnc_model_create(&m, &tiny_model) == GNNC_OK);
    CHECK_MSG(gnnc_model_load_from(m, b->p, b->n) == GNNC_OK, "%s", gnnc_model_error(m));
    return m;
}

/* Its metrics are the trainer's as they are now; how many. */
static int tells_as(const gnnc_model *m, gnnc_trainer *t) {
    int n = gnnc_model_n_metrics(m);
    gnnc_metric_info i = {.struct_size = sizeof i};
    for (int k = 0; k < n; k++) {
        char name[64];
        CHECK(gnnc_model_metric_info(m, k, &i) == GNNC_OK && i.known && !i.is_logged);
        snprintf(name, sizeof name, "%s.%s", i.of, i.split);
        CHECK(strcmp(name, i.name) == 0 && i.value == metric(t, i.name));
    }
    CHECK(gnnc_model_metric_info(m, n, &i) == GNNC_E_RANGE);
    CHECK(gnnc_model_metric_info(m, -1, &i) == GNNC_E_RANGE);
    i.struct_size = 1;
    CHECK(gnnc_model_metric_info(m, 0, &i) == GNNC_E_ARG);
    return n;
}

/* Of the present parameters. */
static int told_of(gnnc_trainer *t) {
    gnnc_model *m = NULL;
    CHECK(gnnc_trainer_to_model(t, &tiny_model, &m) == GNNC_OK);
    int n = tells_as(m, t);
    gnnc_model_release(m);
    return n;
}

TEST(a_model_tells_what_its_parameters_have_reached) {
    Place p = place_new();
    Buffer c = {0};
    float v[F];
    gnnc_trainer *t = trainer_new(&p, 9, 1);
    CHECK(told_of(t) == 0); /* nothing was evaluated yet */
    train_on(t, 4);
    int n = told_of(t);
    CHECK(n > 1);
    CHECK(gnnc_trainer_step(t) == GNNC_OK && told_of(t) == 0);
    CHECK(gnnc_trainer_evaluate(t) == GNNC_OK && told_of(t) == n);
    CHECK(gnnc_trainer_get_parameter(t, "lin.weight", v, F) == GNNC_OK);
    CHECK(gnnc_trainer_set_parameter(t, "lin.weight", v, F) == GNNC_OK && told_of(t) == 0);
    train_on(t, 9);
    CHECK(gnnc_trainer_save_to(t, append, &c) == GNNC_OK);
    CHECK(gnnc_trainer_keep_best(t, NULL) == GNNC_OK && told_of(t) == n);
    gnnc_model *m = model_of(&c); /* of a checkpoint: those of the kept epoch */
    CHECK(tells_as(m, t) == n);
    gnnc_model_release(m);
    CHECK(gnnc_model_n_metrics(NULL) == 0);
    free(c.p);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* A checkpoint that was read and is written again is the same. */
TEST(what_was_reached_is_kept_when_training_is_resumed) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 5, 1);
    train_on(t, 5);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    t = trainer_new(&p, 5, 1);
    CHECK(gnnc_trainer_resume(t, p.a) == GNNC_OK);
    CHECK(gnnc_trainer_save(t, p.b) == GNNC_OK && same_file(p.a, p.b));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* So is one of parameters that were judged otherwise than by the end of an epoch, or are not any
 * more. */
static gnnc_status nothing(gnnc_trainer *t) {
    return gnnc_trainer_device(t) ? GNNC_OK : GNNC_E_STATE;
}

static gnnc_status step_then_evaluate(gnnc_trainer *t) {
    gnnc_status st = gnnc_trainer_step(t);
    return st == GNNC_OK ? gnnc_trainer_evaluate(t) : st;
}

static gnnc_status set_parameter(gnnc_trainer *t) {
    float v[F];
    gnnc_status st = gnnc_trainer_get_parameter(t, "lin.weight", v, F);
    return st == GNNC_OK ? gnnc_trainer_set_parameter(t, "lin.weight", v, F) : st;
}

TEST(what_the_host_judged_is_kept_when_training_is_resumed) {
    gnnc_status (*const does[])(gnnc_trainer *) = {
        nothing, gnnc_trainer_evaluate, gnnc_trainer_step, step_then_evaluate, set_parameter};
    for (size_t i = 0; i < 2 * (sizeof does / sizeof *does); i++) {
        Place p = place_new();
        gnnc_trainer *t = trainer_new(&p, 5, 1);
        if (i % 2) train_on(t, 1);
        CHECK(does[i / 2](t) == GNNC_OK && gnnc_trainer_save(t, p.a) == GNNC_OK);
        gnnc_trainer_destroy(t);
        t = trainer_new(&p, 5, 1);
        CHECK(gnnc_trainer_resume(t, p.a) == GNNC_OK && gnnc_trainer_save(t, p.b) == GNNC_OK);
        CHECK_MSG(same_file(p.a, p.b), "case %d", (int)i);
        gnnc_trainer_destroy(t);
        scratch_remove(p.dir);
    }
}

/* Without one metric. */
static bool no_model_of(const Buffer *w, gnnc_status want, const char *says) {
    gnnc_model *m = NULL;
    CHECK(gnnc_model_create(&m, &tiny_model) == GNNC_OK);
    gnnc_status st = gnnc_model_load_from(m, w->p, w->n);
    bool told = strstr(gnnc_model_error(m), says) != NULL;
    CHECK_MSG(st == want && told, "%d: %s", st, gnnc_model_error(m));
    CHECK(gnnc_model_n_metrics(m) == 0);
    gnnc_model_release(m);
    return st == want && told;
}

/* Behind the first `word` of the weights `from` becomes `to`, and what follows of a number goes. */
typedef struct {
    const char *word, *from, *to;
    gnnc_status want;
    const char *says[2];
    bool goes_on; /* a trainer takes them, and tells it; a product would serve what nobody asked */
} Changed;

static bool change(Buffer *w, const Changed *c) {
    char *at = memmem(w->p, w->n, c->word, strlen(c->word));
    if (!at || !(at = strstr(at, c->from))) return false;
    memcpy(at, c->to, strlen(c->to));
    for (at += strlen(c->to); *at && strchr("0123456789.e-", *at); at++) *at = ' ';
    return true;
}

TEST(weights_that_say_what_cannot_be_are_no_models) {
    static const Changed changed[] = {
        {"gnnc_metrics", ": ", ": true", GNNC_E_FORMAT, {"is no number", ""}, false},
        {"gnnc_metrics", "{", "[", GNNC_E_FORMAT, {"in memory:", ""}, false},
        {"gnnc_task",
         "n.t\\",
         "n.u\\",
         GNNC_E_ARG,
         {"have learned {\"target\": \"n.u\"", "gives {\"target\": \"n.t\""},
         true},
    };
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 5, 1);
    train_on(t, 2);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        const Changed *c = &changed[i];
        Buffer w = {0};
        CHECK(gnnc_trainer_save_weights_to(t, append, &w) == GNNC_OK);
        gnnc_model_release(model_of(&w));
        CHECK_MSG(change(&w, c), "%s has no %s", c->word, c->from);
        for (int k = 0; k < 2; k++) CHECK(no_model_of(&w, c->want, c->says[k]));
        if (c->goes_on) CHECK(gnnc_trainer_load_weights_from(t, w.p, w.n) == GNNC_OK);
        free(w.p);
    }
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST_MAIN()
