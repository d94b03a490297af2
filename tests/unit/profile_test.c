/* Profile, trace, tuning and memory of a hand-written program. */
#include "test.h"

#include "rt_test_util.h"
#include "tiny_data.h"
#include "tiny_program.h"

#include "runtime/exec/machine.h"
#include "runtime/data/json.h"
#include "runtime/trainer/tuned.h"

typedef struct {
    char dir[64], trace[100], tuned[100];
} Place;

static Place place_new(void) {
    Place p;
    snprintf(p.dir, sizeof p.dir, "%s", scratch_new());
    snprintf(p.trace, sizeof p.trace, "%s/t.json", p.dir);
    snprintf(p.tuned, sizeof p.tuned, "%s/tuned.json", p.dir);
    make_data(p.dir);
    return p;
}

static gnnc_trainer *trainer_new(const Place *p) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, p->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    return t;
}

static const RtJson *parse_file(RtPool *pool, const char *path) {
    RtBytes text;
    RtJson *root = NULL;
    RtError err = {""};
    CHECK(rt_file_map(pool, path, &text, &err) == GNNC_OK);
    CHECK_MSG(rt_json_parse(pool, text, path, &root, &err) == GNNC_OK, "%s", err.text);
    return root;
}

/* The program calls no rt_step, so only phases are events: each once, in order. */
TEST(a_trace_is_json_and_says_what_was_dropped) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p);
    int64_t dropped = -1;
    CHECK(gnnc_trainer_trace(t, p.trace, NULL) == GNNC_E_STATE);
    CHECK(gnnc_trainer_profile(t, 3) == GNNC_OK);
    for (int i = 0; i < 5; i++) CHECK(gnnc_trainer_run_phase(t, "eval") == GNNC_OK);
    CHECK(gnnc_trainer_trace(t, p.trace, &dropped) == GNNC_OK && dropped == 2);
    RtPool pool;
    rt_pool_init(&pool, NULL);
    const RtJson *events = rt_json_get(parse_file(&pool, p.trace), "traceEvents");
    /* Names of the process, of the lanes of phases and steps and of each thread; three phases. */
    CHECK(events && events->n == 3 + t->x.threads + 3);
    rt_pool_free(&pool);
    CHECK(gnnc_trainer_trace(t, "/nonexistent/t.json", NULL) == GNNC_E_IO);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(steps_are_numbered_over_all_phases) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p);
    gnnc_step_info s = {.struct_size = sizeof s};
    CHECK(gnnc_trainer_n_steps(t) == 13);
    CHECK(gnnc_trainer_step_info(t, 4, &s) == GNNC_OK && !strcmp(s.phase, "train"));
    CHECK(gnnc_trainer_step_info(t, 12, &s) == GNNC_OK && !strcmp(s.phase, "embed"));
    CHECK(s.calls == 0 && s.flops == 0);
    CHECK(gnnc_trainer_step_info(t, 13, &s) == GNNC_E_RANGE);
    CHECK(gnnc_trainer_step_info(t, -1, &s) == GNNC_E_RANGE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(a_tuned_choice_is_found_by_the_next_trainer) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p);
    RtChoice c = {1, 777, -1}, d = {0, 0, 0};
    CHECK(!rt_tuned_find(t, p.dir, &d));
    CHECK(rt_tuned_keep(t, p.dir, &c, 1.5) == GNNC_OK);
    CHECK(rt_tuned_find(t, p.dir, &d) && d.threads == 1 && d.serial_ns == 777);
    c.serial_ns = 778;
    CHECK(rt_tuned_keep(t, p.dir, &c, 1.5) == GNNC_OK); /* replaces, does not add */
    gnnc_trainer_destroy(t);
    t = trainer_new(&p);
    CHECK(t->options.threads == 1 && t->options.serial_ns == 778);
    CHECK(gnnc_trainer_tune(t, 0.01) == GNNC_OK);
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_json_get(parse_file(&pool, p.tuned), "tuned")->n == 1);
    rt_pool_free(&pool);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* A data directory comes from anywhere. */
TEST(a_tuned_choice_has_at_most_a_thread_a_core) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p);
    RtChoice c = {4096, 777, -1}, d = {0, 0, 0};
    CHECK(rt_tuned_keep(t, p.dir, &c, 1.5) == GNNC_OK && rt_tuned_find(t, p.dir, &d));
    CHECK(d.threads == rt_usable_cores() && d.serial_ns == 777);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* Its step_ms was written 1,2345 where the host's locale has a comma, which is no JSON. */
TEST(json_has_points_in_every_locale) {
    Place p = place_new();
    char *locales = strdup(scratch_new());
    gnnc_trainer *t = trainer_new(&p);
    RtChoice c = {1, 777, -1}, d = {0, 0, 0};
    bool comma = comma_locale(locales);
    if (!comma) fprintf(stderr, "no localedef: json_has_points_in_every_locale is run without\n");
    CHECK(gnnc_trainer_profile(t, 3) == GNNC_OK && gnnc_trainer_run_phase(t, "eval") == GNNC_OK);
    CHECK(rt_tuned_keep(t, p.dir, &c, 1.2345) == GNNC_OK && rt_tuned_find(t, p.dir, &d));
    CHECK(gnnc_trainer_trace(t, p.trace, NULL) == GNNC_OK);
    setlocale(LC_ALL, "C");
    RtPool pool;
    rt_pool_init(&pool, NULL);
    const RtJson *one = rt_json_get(parse_file(&pool, p.tuned), "tuned")->first;
    CHECK(rt_json_get(one, "step_ms")->number == 1.2345);
    CHECK(rt_json_get(parse_file(&pool, p.trace), "traceEvents"));
    rt_pool_free(&pool);
    gnnc_trainer_destroy(t);
    scratch_remove(locales);
    free(locales);
    scratch_remove(p.dir);
}

static void put_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

TEST(a_broken_tuned_file_is_ignored) {
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"tuned\": 3}",
        "{\"tuned\": [1, {}, {\"program\": 2}]}",
        "{\"tuned\": [{\"program\": \"0000000000007171\", \"machine\": \"\", \"threads\": -1}]}"};
    Place p = place_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtChoice c = {1, 1, -1};
        put_text(p.tuned, bad[i]);
        gnnc_trainer *t = trainer_new(&p);
        CHECK(t->options.threads == rt_usable_cores() && t->options.serial_ns == RT_SERIAL_NS);
        CHECK(rt_tuned_keep(t, p.dir, &c, 1) == GNNC_OK && rt_tuned_find(t, p.dir, &c));
        gnnc_trainer_destroy(t);
    }
    scratch_remove(p.dir);
}

TEST(what_is_allocated_was_announced) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p);
    gnnc_memory m = {.struct_size = sizeof m};
    gnnc_counters n = {.struct_size = sizeof n};
    CHECK(gnnc_trainer_memory(t, &m) == GNNC_OK);
    gnnc_trainer_counters(t, &n);
    CHECK(m.all_bytes == m.data_bytes + m.index_bytes + m.parameter_bytes + m.saved_bytes +
                             m.arena_bytes + m.library_bytes + m.loading_bytes);
    /* Blocks of 16 KiB for small things, and alignment. */
    CHECK((size_t)n.peak_bytes <= m.all_bytes - m.data_bytes + (64 << 10));
    CHECK((size_t)n.peak_bytes + (64 << 10) >= m.all_bytes - m.data_bytes);
    CHECK(n.live_bytes <= n.peak_bytes && n.peak_bytes <= n.allocated_bytes);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

static bool everything(FailingAlloc *f, long fail_at, const Place *p) {
    RtAlloc a = failing(f, fail_at);
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_trainer_create_with(&t, &tiny_model, a.alloc, a.release, a.user);
    if (st == GNNC_OK) st = gnnc_trainer_profile(t, 8);
    if (st == GNNC_OK) st = gnnc_trainer_load(t, p->dir);
    if (st == GNNC_OK) st = gnnc_trainer_step(t);
    if (st == GNNC_OK) st = gnnc_trainer_trace(t, p->trace, NULL);
    if (st == GNNC_OK) st = gnnc_trainer_tune(t, 0);
    gnnc_trainer_destroy(t);
    CHECK(f->n_live == 0);
    return st == GNNC_OK;
}

TEST(every_failing_allocation_is_survived) {
    Place p = place_new();
    FailingAlloc f;
    long n = 0;
    while (!everything(&f, n, &p) && n < 2000) n++;
    CHECK(n > 10 && n < 2000);
    scratch_remove(p.dir);
}

TEST_MAIN()
