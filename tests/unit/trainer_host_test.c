/* What a host asks of a trainer: options, structures, memory in the place of files. */
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
        CHECK_MSG(*o.name && *o.help && !strchr(o.help, '\n') && strlen(o.help) < 90, "%s", o.name);
        bool fixed = !strcmp(o.name, "batch") || !strcmp(o.name, "workers") ||
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

TEST_MAIN()
