/* The trainer on a hand-written program: binding, training, keeping, resuming, failing. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "rt_test_util.h"
#include "runtime/bind/bind.h"
#include "runtime/trainer/trainer.h"
#include "tiny_trainer.h"

/* ---- training ------------------------------------------------------------------- */
TEST(training_learns) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 150, 2);
    train_on(t, 1);
    double first = metric(t, "loss.val");
    train_on(t, 150);
    CHECK_MSG(metric(t, "loss.val") < 0.5 * first, "%g -> %g", first, metric(t, "loss.val"));
    CHECK(gnnc_trainer_epochs_done(t) == 150 && gnnc_trainer_done(t));
    int64_t kept = 0;
    double last = metric(t, "loss.val");
    CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK);
    CHECK(kept >= 1 && kept <= 150 && metric(t, "loss.val") <= last);
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

static gnnc_trainer *seldom_evaluated(int64_t epochs, int64_t every) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "epochs", epochs) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "eval_every", every) == GNNC_OK);
    return t;
}

TEST(every_third_epoch_is_evaluated) {
    Place p = place_new();
    gnnc_trainer *each = seldom_evaluated(11, 1), *third = seldom_evaluated(11, 3);
    CHECK(gnnc_trainer_set_int(third, "eval_every", 0) == GNNC_E_RANGE);
    CHECK(gnnc_trainer_load(each, p.dir) == GNNC_OK && gnnc_trainer_load(third, p.dir) == GNNC_OK);
    for (int e = 1; e <= 11; e++) {
        double v;
        train_on(each, e);
        train_on(third, e);
        CHECK(metric(each, "loss") == metric(third, "loss") && metric(third, "lr") > 0);
        if (e % 3 == 0)
            CHECK(metric(each, "loss.val") == metric(third, "loss.val"));
        else
            CHECK(gnnc_trainer_metric(third, "loss.val", &v) == GNNC_E_MISSING);
    }
    int64_t kept = 0;
    CHECK(gnnc_trainer_keep_best(third, &kept) == GNNC_OK && kept > 0 && kept % 3 == 0);
    CHECK(isfinite(metric(third, "loss.val")));
    gnnc_trainer_destroy(each);
    gnnc_trainer_destroy(third);
    scratch_remove(p.dir);
}

TEST(a_run_that_is_seldom_evaluated_goes_on_to_the_same_bits) {
    Place p = place_new();
    gnnc_trainer *whole = seldom_evaluated(11, 3), *part = seldom_evaluated(11, 3);
    CHECK(gnnc_trainer_load(whole, p.dir) == GNNC_OK && gnnc_trainer_load(part, p.dir) == GNNC_OK);
    train_on(whole, 11);
    CHECK(gnnc_trainer_save(whole, p.a) == GNNC_OK);
    train_on(part, 4);
    CHECK(gnnc_trainer_save(part, p.b) == GNNC_OK);
    gnnc_trainer_destroy(part);
    part = seldom_evaluated(11, 3);
    CHECK(gnnc_trainer_load(part, p.dir) == GNNC_OK && gnnc_trainer_resume(part, p.b) == GNNC_OK);
    train_on(part, 11);
    CHECK(gnnc_trainer_save(part, p.b) == GNNC_OK && same_file(p.a, p.b));
    gnnc_trainer_destroy(whole);
    gnnc_trainer_destroy(part);
    scratch_remove(p.dir);
}

TEST(without_an_evaluation_the_last_epoch_is_kept) {
    Place p = place_new();
    gnnc_trainer *t = seldom_evaluated(2, 3);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK);
    train_on(t, 2);
    int64_t kept = 0;
    CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK && kept == 2);
    CHECK(isfinite(metric(t, "loss.val")));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(where_relation_and_its_loops_are_built_at_load) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 0, 1);
    const float *data;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    CHECK(gnnc_trainer_output(t, "cond", &data, &rank, dim) == GNNC_E_DTYPE);
    CHECK(gnnc_trainer_output(t, "no", &data, &rank, dim) == GNNC_E_MISSING);
    gnnc_memory m = {.struct_size = sizeof m};
    CHECK(gnnc_trainer_memory(t, &m) == GNNC_OK);
    /* edge_tmp [E_loops] is part of the load phase: E_loops = E / 4 (w = 0.75) + N, less loops */
    CHECK(m.unpacked_bytes > 4 * (N + 20) && m.arena_bytes <= m.unpacked_bytes);
    CHECK(gnnc_trainer_predict(t, &data, &rank, dim) == GNNC_OK && rank == 1 && dim[0] == N);
    CHECK(gnnc_trainer_n_layers(t) == 1);
    CHECK_STR(gnnc_trainer_layer_name(t, 0), "h");
    CHECK(gnnc_trainer_embed(t, "h", &data, &rank, dim) == GNNC_OK && rank == 2 && dim[1] == F);
    CHECK(gnnc_trainer_embed(t, "none", &data, &rank, dim) == GNNC_E_MISSING);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(same_bits_at_any_thread_count) {
    Place p = place_new();
    for (int threads = 1; threads <= 7; threads += 3) {
        gnnc_trainer *t = trainer_new(&p, 5, threads);
        train_on(t, 5);
        CHECK(gnnc_trainer_save(t, threads == 1 ? p.a : p.b) == GNNC_OK);
        if (threads > 1) CHECK(same_file(p.a, p.b));
        gnnc_trainer_destroy(t);
    }
    scratch_remove(p.dir);
}

TEST(steps_allocate_and_read_nothing) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 20, 1);
    gnnc_counters a = {.struct_size = sizeof a}, b = a;
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    gnnc_trainer_counters(t, &a);
    for (int i = 0; i < 5; i++) CHECK(gnnc_trainer_step(t) == GNNC_OK);
    gnnc_trainer_counters(t, &b);
    CHECK(b.allocations == a.allocations && b.read_backs == a.read_backs);
    CHECK(b.launches == a.launches + 5 && b.steps == a.steps + 5);
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    gnnc_trainer_counters(t, &a);
    CHECK(a.allocations == b.allocations && a.read_backs == b.read_backs + 1);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* Early stopping counts from the best epoch; the first of equal ones is kept. */
TEST(the_first_of_equal_epochs_is_kept) {
    Place p = place_new();
    rt_program same = tiny_program;
    same.recipe.early_stop_patience = 4;
    same.recipe.lr = 0;
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&same)) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK);
    train_on(t, 100);
    int64_t kept = 0;
    CHECK(gnnc_trainer_epochs_done(t) == 5);
    CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK && kept == 1);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* All rows of the tiny data set are of this split. */
static gnnc_trainer *with_one_split(const Place *p, const rt_program *program, int8_t split) {
    int8_t of[N];
    memset(of, split, sizeof of);
    save_npy(p->dir, "split.npy", RT_DT_I8, 1, N, 0, of);
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, MODEL_OF(program)) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, p->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    return t;
}

static int n_failures;
static gnnc_status failing_eval(RtExec *x) {
    return n_failures-- > 0 ? GNNC_E_ASSERT : tiny_eval(x);
}

TEST(a_failed_evaluation_is_repeated_without_another_step) {
    Place p = place_new();
    rt_phase phases[sizeof tiny_phases / sizeof *tiny_phases];
    rt_program program = tiny_program;
    memcpy(phases, tiny_phases, sizeof phases);
    phases[2].run = failing_eval;
    program.phases = phases;
    gnnc_trainer *t = NULL;
    gnnc_counters c = {.struct_size = sizeof c};
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&program)) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK);
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    n_failures = 2;
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_ASSERT && gnnc_trainer_epoch(t) == GNNC_E_ASSERT);
    CHECK(gnnc_trainer_epochs_done(t) == 1 && gnnc_trainer_epoch(t) == GNNC_OK);
    gnnc_trainer_counters(t, &c);
    CHECK(gnnc_trainer_epochs_done(t) == 2 && c.steps == 2);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

static const void *far_values;
static int n_looks;
static gnnc_status looking_eval(RtExec *x) {
    n_looks += !is_read_in_no_order(far_values);
    return n_failures-- > 0 ? GNNC_E_ASSERT : tiny_eval(x);
}

/* A column that memory does not hold, and of which batches have taken rows: the system reads around
 * while the whole graph is evaluated, and batches may say again that it need not. */
TEST(the_whole_of_a_far_column_is_read_in_order) {
    Place p = place_new();
    rt_phase phases[sizeof tiny_phases / sizeof *tiny_phases];
    rt_program program = tiny_program;
    memcpy(phases, tiny_phases, sizeof phases);
    phases[2].run = looking_eval;
    program.phases = phases;
    gnnc_trainer *t = NULL;
    RtPool pool;
    void *file;
    rt_pool_init(&pool, NULL);
    CHECK(rt_file_scratch(&pool, 1 << 16, &file, NULL) == GNNC_OK);
    far_values = file;
    RtColumn far = {
        .name = "x", .kind = RT_COL_FLOAT, .n_rows = 128, .rank = 2, .shape = {128, 64}};
    far.f32 = file;
    rt_column_beyond_memory(&far, &pool, 0);
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&program)) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK);
    t->rt.bound->col[0] = &far;
    n_looks = 0;
    n_failures = 1;
    for (int fails = 1; fails >= 0; fails--) {
        rt_column_expect_no_order(&far);
        CHECK(is_read_in_no_order(file));
        CHECK(gnnc_trainer_evaluate(t) == (fails ? GNNC_E_ASSERT : GNNC_OK));
    }
    CHECK(n_looks == 2);
    rt_column_expect_no_order(&far);
    CHECK(is_read_in_no_order(file));
    gnnc_trainer_destroy(t);
    rt_pool_free(&pool);
    scratch_remove(p.dir);
}

/* Parameters that no epoch kept are those of the last step, whatever failed behind it. */
TEST(the_kept_epoch_is_that_of_the_last_step) {
    Place p = place_new();
    rt_phase phases[sizeof tiny_phases / sizeof *tiny_phases];
    rt_program program = tiny_program;
    memcpy(phases, tiny_phases, sizeof phases);
    phases[2].run = failing_eval;
    program.phases = phases;
    program.recipe.keep_metric = NULL;
    for (int steps = 0; steps < 3; steps++) { /* 2: those of an epoch whose evaluation failed */
        gnnc_trainer *t = NULL;
        int64_t kept = 0, want = steps ? 2 : 1;
        CHECK(gnnc_trainer_create(&t, MODEL_OF(&program)) == GNNC_OK);
        CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK && gnnc_trainer_epoch(t) == GNNC_OK);
        if (steps == 1) CHECK(gnnc_trainer_step(t) == GNNC_OK);
        n_failures = steps == 2;
        if (steps == 2) CHECK(gnnc_trainer_epoch(t) == GNNC_E_ASSERT);
        CHECK(gnnc_trainer_steps_left(t) == (steps != 2));
        CHECK(gnnc_trainer_steps_done(t) == (steps == 2));
        CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
        CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK && kept == want);
        CHECK(gnnc_trainer_resume(t, p.a) == GNNC_OK);
        CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK && kept == want);
        CHECK(gnnc_trainer_resume(t, p.a) == GNNC_OK && gnnc_trainer_epoch(t) == GNNC_OK);
        CHECK(gnnc_trainer_keep_best(t, &kept) == GNNC_OK && kept == 2);
        gnnc_trainer_destroy(t);
    }
    scratch_remove(p.dir);
}

TEST(a_split_that_training_needs_is_not_empty) {
    Place p = place_new();
    gnnc_trainer *t = with_one_split(&p, &tiny_program, 1);
    double v;
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_MISSING && gnnc_trainer_epochs_done(t) == 0);
    CHECK(strstr(gnnc_trainer_error(t), "no row of 'n' with a 't' is in the validation split (2)"));
    CHECK(gnnc_trainer_step(t) == GNNC_E_MISSING);
    CHECK(gnnc_trainer_run_phase(t, "train") == GNNC_OK); /* nothing is chosen by a bare phase */
    CHECK(gnnc_trainer_evaluate(t) == GNNC_OK);
    CHECK(gnnc_trainer_metric(t, "loss.train", &v) == GNNC_OK && v > 0);
    CHECK(gnnc_trainer_metric(t, "loss.val", &v) == GNNC_E_MISSING);
    CHECK(strstr(gnnc_trainer_error(t), "'loss.val' is of a split without rows"));
    gnnc_trainer_destroy(t);
    t = with_one_split(&p, &tiny_program, 2);
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_MISSING);
    CHECK(strstr(gnnc_trainer_error(t), "is in the train split (1): there is nothing to learn"));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(a_split_that_is_only_reported_may_be_empty) {
    Place p = place_new();
    rt_program last = tiny_program;
    last.recipe.keep_metric = NULL;
    last.recipe.sched = RT_SCHED_PLATEAU; /* watches the training loss, then */
    last.recipe.patience = 1;
    last.recipe.lr = 1e-6;
    last.recipe.warmup_epochs = 0;
    gnnc_trainer *t = with_one_split(&p, &last, 1);
    double v;
    train_on(t, 8);
    CHECK(metric(t, "lr") < 0.5e-6);
    CHECK(gnnc_trainer_metric(t, "loss.val", &v) == GNNC_E_MISSING);
    CHECK(gnnc_trainer_metric(t, "loss.train", &v) == GNNC_OK);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- checkpoints -------------------------------------------------------------------- */
/* p->a is what training without a break ends with. */
static void run_whole(const Place *p, int64_t epochs) {
    gnnc_trainer *t = trainer_new(p, epochs, 1);
    train_on(t, epochs);
    CHECK(gnnc_trainer_save(t, p->a) == GNNC_OK);
    gnnc_trainer_destroy(t);
}

TEST(resumed_training_ends_with_the_same_bits) {
    Place p = place_new();
    run_whole(&p, 12);
    for (int64_t cut = 0; cut < 12; cut += 5) {
        gnnc_trainer *t = trainer_new(&p, 12, 2);
        train_on(t, cut);
        CHECK(gnnc_trainer_save(t, p.b) == GNNC_OK);
        gnnc_trainer_destroy(t);
        t = trainer_new(&p, 0, 1);
        CHECK_MSG(gnnc_trainer_resume(t, p.b) == GNNC_OK, "%s", gnnc_trainer_error(t));
        CHECK(gnnc_trainer_epochs_done(t) == cut && gnnc_trainer_epochs_total(t) == 12);
        train_on(t, 12);
        CHECK(gnnc_trainer_save(t, p.b) == GNNC_OK);
        CHECK(same_file(p.a, p.b));
        gnnc_trainer_destroy(t);
    }
    scratch_remove(p.dir);
}

TEST(kill_9_and_resume_ends_with_the_same_bits) {
    Place p = place_new();
    run_whole(&p, 60);
    for (int round = 0; round < 6; round++) {
        pid_t child = fork();
        if (child == 0) {
            gnnc_trainer *t = trainer_new(&p, 60, 1);
            if (access(p.b, F_OK) == 0 && gnnc_trainer_resume(t, p.b) != GNNC_OK) _exit(3);
            while (!gnnc_trainer_done(t))
                if (gnnc_trainer_epoch(t) != GNNC_OK || gnnc_trainer_save(t, p.b) != GNNC_OK)
                    _exit(4);
            _exit(0);
        }
        if (round < 5) {
            usleep(1000 * (useconds_t)(4 + 7 * round));
            kill(child, SIGKILL);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    }
    CHECK(same_file(p.a, p.b));
    scratch_remove(p.dir);
}

static void keep_line(void *user, const char *text) {
    snprintf(user, 300, "%s", text);
}

/* Loads the program and resumes `file`; said [300]: what it told meanwhile. */
static void resume_by(const rt_program *p, const Place *place, const char *file, int64_t variant,
                      char *said) {
    const gnnc_program model = {RT_PROGRAM_VERSION, p};
    gnnc_trainer *t = NULL;
    *said = '\0';
    CHECK(gnnc_trainer_create(&t, &model) == GNNC_OK);
    CHECK(gnnc_trainer_set_message(t, keep_line, said) == GNNC_OK);
    if (variant >= 0) CHECK(gnnc_trainer_set_int(t, "variant", variant) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, place->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK_MSG(gnnc_trainer_resume(t, file) == GNNC_OK, "%s", gnnc_trainer_error(t));
    gnnc_trainer_destroy(t);
}

TEST(why_a_run_goes_on_in_another_variant) {
    Place p = place_new();
    rt_program first = tiny_program, second = tiny_program;
    const rt_program *variants[] = {&first, &second};
    const gnnc_program model = {RT_PROGRAM_VERSION, &first};
    gnnc_trainer *t = NULL;
    char said[300];
    first.n_variants = 2;
    first.variants = variants;
    CHECK(gnnc_trainer_create(&t, &model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "variant", 1) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK && gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    resume_by(&first, &p, p.a, 1, said);
    CHECK_STR(said, "");
    resume_by(&first, &p, p.a, 0, said);
    CHECK_MSG(strstr(said, "the option 'variant' says so"), "%s", said);
    resume_by(&first, &p, p.a, -1, said); /* both are as fast: the first one runs */
    CHECK_MSG(strstr(said, "variant 0 goes on") && strstr(said, "the data are loaded already"),
              "%s", said);
    resume_by(&tiny_program, &p, p.a, -1, said); /* the same model, compiled to have one */
    CHECK_MSG(strstr(said, "variant 0 goes on") && strstr(said, "has no such variant"), "%s", said);
    scratch_remove(p.dir);
}

/* The variant that runs on the data, after a checkpoint if there is one; said [300]: what it told.
 */
static int variant_on(const rt_program *p, const Place *place, const char *resumed, char *said) {
    const gnnc_program model = {RT_PROGRAM_VERSION, p};
    gnnc_variant_info v = {.struct_size = sizeof v};
    gnnc_trainer *t = NULL;
    *said = '\0';
    CHECK(gnnc_trainer_create(&t, &model) == GNNC_OK);
    CHECK(gnnc_trainer_set_message(t, keep_line, said) == GNNC_OK);
    if (resumed) CHECK(gnnc_trainer_resume(t, resumed) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, place->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    if (!resumed) CHECK(gnnc_trainer_save(t, place->a) == GNNC_OK);
    int n = 0;
    while (gnnc_trainer_variant_info(t, n, &v) == GNNC_OK && !v.in_use) n++;
    gnnc_trainer_destroy(t);
    return n;
}

/* By the step's values in 16 bits: those of another phase do not count, nor what has 32 bits. */
TEST(small_data_stay_in_f32) {
    Place p = place_new();
    rt_buf bufs[N_TINY_BUFS];
    rt_program low = tiny_program, f32 = tiny_program;
    const rt_program *variants[] = {&low, &f32};
    char said[300];
    memcpy(bufs, tiny_bufs, sizeof bufs);
    bufs[B_H].dt = bufs[B_EH].dt = RT_BF16;
    low.bufs = bufs;
    low.n_variants = 2;
    low.variants = variants;
    CHECK(variant_on(&low, &p, NULL, said) == 0 && !*said);
    low.in_f32 = 1;
    low.in_f32_bytes = 4 * N * F - 1;
    CHECK(variant_on(&low, &p, NULL, said) == 0 && !*said);
    CHECK(variant_on(&low, &p, p.a, said) == 0 && !*said);
    low.in_f32_bytes++;
    CHECK(variant_on(&low, &p, p.a, said) == 0 && !*said); /* as the checkpoint says */
    CHECK(variant_on(&low, &p, NULL, said) == 1);
    CHECK_MSG(strstr(said, "stay f32") && strstr(said, "--variant 0"), "%s", said);
    low.in_f32_bytes = 1;
    CHECK(variant_on(&low, &p, p.a, said) == 1 && !*said);
    low.in_f32_bytes = 4 * N * F; /* from before there was one in f32, or by a device */
    CHECK(variant_on(&tiny_program, &p, NULL, said) == 0);
    CHECK(variant_on(&low, &p, p.a, said) == 0 && !*said);
    scratch_remove(p.dir);
}

TEST(full_disk_keeps_the_old_checkpoint) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 8, 1);
    train_on(t, 2);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK && gnnc_trainer_save(t, p.b) == GNNC_OK);
    train_on(t, 4);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 512;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK(gnnc_trainer_save(t, p.b) == GNNC_E_IO);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(strstr(gnnc_trainer_error(t), "b.ckpt") != NULL);
    CHECK(same_file(p.a, p.b));
    CHECK(gnnc_trainer_save(t, "/no/such/place") == GNNC_E_IO);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(checkpoint_of_another_run_is_refused) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 4, 1);
    train_on(t, 4);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    CHECK(gnnc_trainer_save_weights(t, p.b) == GNNC_OK);
    CHECK(gnnc_trainer_resume(t, p.b) == GNNC_E_FORMAT);
    CHECK(gnnc_trainer_load_weights(t, p.a) == GNNC_OK);
    CHECK(gnnc_trainer_resume(t, "/dev/null") != GNNC_OK);
    gnnc_trainer_destroy(t);
    rt_program other = tiny_program;
    other.fingerprint = 1;
    CHECK(gnnc_trainer_create(&t, MODEL_OF(&other)) == GNNC_OK &&
          gnnc_trainer_load(t, p.dir) == GNNC_OK);
    CHECK(gnnc_trainer_resume(t, p.a) == GNNC_E_ARG);
    CHECK(gnnc_trainer_epochs_done(t) == 0);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* The last element's first byte becomes another one that is allowed, too: 0 to 3. */
static void change_last(const char *dir, const char *name, int element) {
    char path[200];
    unsigned char byte = 0;
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && fstat(fd, &s) == 0 && pread(fd, &byte, 1, s.st_size - element) == 1);
    byte = (unsigned char)((byte + 1) % 4);
    CHECK(pwrite(fd, &byte, 1, s.st_size - element) == 1);
    close(fd);
}

/* Equal sizes are not equal data: a label, an edge or a split that differs is noticed. */
TEST(checkpoint_of_other_data_is_refused) {
    static const char *const file[] = {"t.npy", "w.npy", "e.npy", "split.npy", "x.npy"};
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 4, 1);
    train_on(t, 2);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        make_data(p.dir);
        change_last(p.dir, file[i], strcmp(file[i], "split.npy") ? 4 : 1);
        t = trainer_new(&p, 4, 1);
        CHECK_MSG(gnnc_trainer_resume(t, p.a) == GNNC_E_ARG, "%s", file[i]);
        CHECK_MSG(strstr(gnnc_trainer_error(t), "other data") != NULL, "%s", gnnc_trainer_error(t));
        CHECK(gnnc_trainer_epochs_done(t) == 0);
        gnnc_trainer_destroy(t);
    }
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "other_data", 1) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_OK && gnnc_trainer_resume(t, p.a) == GNNC_OK);
    CHECK(gnnc_trainer_epochs_done(t) == 2);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

static gnnc_trainer *made_of(const rt_program *p, const char *dir, int64_t seed) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, MODEL_OF(p)) == GNNC_OK);
    if (seed) CHECK(gnnc_trainer_set_int(t, "seed", seed) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, dir) == GNNC_OK);
    return t;
}

TEST(another_seed_than_the_checkpoints_is_refused) {
    Place p = place_new();
    gnnc_trainer *t = made_of(&tiny_program, p.dir, 3);
    train_on(t, 2);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    t = made_of(&tiny_program, p.dir, 4);
    CHECK(gnnc_trainer_resume(t, p.a) == GNNC_E_ARG && gnnc_trainer_epochs_done(t) == 0);
    gnnc_trainer_destroy(t);
    t = made_of(&tiny_program, p.dir, 0); /* nobody chose one: the file's */
    CHECK(gnnc_trainer_resume(t, p.a) == GNNC_OK && gnnc_trainer_save(t, p.b) == GNNC_OK);
    CHECK(same_file(p.a, p.b));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(a_checkpoint_of_many_sizes_was_cut_and_refused) {
    Place p = place_new();
    char name[601];
    rt_space spaces[5];
    rt_program other = tiny_program;
    memset(name, 'F', 600), name[600] = '\0';
    CHECK(other.n_spaces == 5);
    memcpy(spaces, tiny_program.spaces, sizeof spaces);
    spaces[2].name = name;
    other.spaces = spaces;
    gnnc_trainer *t = made_of(&other, p.dir, 0);
    train_on(t, 1);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_resume(t, p.a) == GNNC_OK, "%s", gnnc_trainer_error(t));
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* The history was sized by the epochs wanted, and the product of sizes wrapped. */
TEST(a_checkpoint_that_wants_endless_epochs_resumes) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, INT64_MAX / 2, 1);
    train_on(t, 3);
    CHECK(gnnc_trainer_save(t, p.a) == GNNC_OK);
    gnnc_trainer_destroy(t);
    t = made_of(&tiny_program, p.dir, 0);
    CHECK_MSG(gnnc_trainer_resume(t, p.a) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(gnnc_trainer_epochs_total(t) == INT64_MAX / 2);
    train_on(t, 5);
    CHECK(gnnc_trainer_epochs_done(t) == 5);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- parameters and errors -------------------------------------------------------------- */
TEST(parameters_go_out_and_in) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 0, 1);
    const char *name;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    float w[F], v[F] = {1, 2, 3};
    CHECK(gnnc_trainer_n_parameters(t) == 3);
    CHECK(gnnc_trainer_parameter_info(t, 0, &name, &rank, dim) == GNNC_OK);
    CHECK_STR(name, "lin.weight");
    CHECK(rank == 2 && dim[0] == 1 && dim[1] == F);
    CHECK(gnnc_trainer_parameter_info(t, 2, &name, &rank, dim) == GNNC_OK);
    CHECK_STR(name, "seen");
    CHECK(gnnc_trainer_set_parameter(t, "lin.weight", v, F) == GNNC_OK);
    CHECK(gnnc_trainer_get_parameter(t, "lin.weight", w, F) == GNNC_OK && w[2] == 3);
    CHECK(gnnc_trainer_get_parameter(t, "lin.weight", w, 2) == GNNC_E_SHAPE);
    CHECK(gnnc_trainer_get_parameter(t, "lin", w, 2) == GNNC_E_MISSING);
    CHECK(gnnc_trainer_set_int(t, "seed", 1) == GNNC_E_STATE);
    CHECK(gnnc_trainer_set_int(t, "amx", 0) == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* ---- data that were not trained on ---------------------------------------------------------- */
static void without_labels(const Place *p) {
    static const char from[] = "\"t\": {";
    char text[2 * sizeof SCHEMA];
    const char *at = strstr(SCHEMA, from), *end = strstr(SCHEMA, "}}},\"edges\"");
    snprintf(text, sizeof text, "%.*s%s", (int)(at - 1 - SCHEMA), SCHEMA, end);
    write_text(p->dir, "schema.json", text);
}

static float first_prediction(gnnc_trainer *t) {
    const float *v = NULL;
    int rank;
    int64_t dim[GNNC_MAX_RANK];
    CHECK_MSG(gnnc_trainer_predict(t, &v, &rank, dim) == GNNC_OK, "%s", gnnc_trainer_error(t));
    return v ? v[0] : NAN;
}

TEST(labels_and_splits_are_needed_by_who_reads_them) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 3, 1);
    train_on(t, 3);
    CHECK(gnnc_trainer_keep_best(t, NULL) == GNNC_OK);
    CHECK(gnnc_trainer_save_weights(t, p.b) == GNNC_OK);
    float want = first_prediction(t);
    gnnc_trainer_destroy(t);
    without_labels(&p);
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_load_weights(t, p.b) == GNNC_OK); /* before the data */
    CHECK_MSG(gnnc_trainer_load(t, p.dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    CHECK(first_prediction(t) == want);
    CHECK(gnnc_trainer_evaluate(t) == GNNC_E_MISSING);
    CHECK(strstr(gnnc_trainer_error(t), "'n' has no column 't'"));
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_MISSING && gnnc_trainer_step(t) == GNNC_E_MISSING);
    CHECK(gnnc_trainer_run_phase(t, "eval") == GNNC_E_MISSING);
    CHECK(gnnc_trainer_keep_best(t, NULL) == GNNC_E_MISSING);
    CHECK(first_prediction(t) == want);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* A file of these metadata and nothing else. */
static gnnc_status given(const Place *p, const char *meta, char *why, size_t n) {
    char header[600] = "", path[100];
    gnnc_trainer *t = NULL;
    snprintf(path, sizeof path, "%s/given", p->dir);
    int len = snprintf(header + 8, sizeof header - 8, "{\"__metadata__\":{%s}}", meta);
    header[0] = (char)(len & 255), header[1] = (char)(len >> 8);
    write_file(path, header, (size_t)len + 8);
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    gnnc_status st = gnnc_trainer_load_weights(t, path);
    snprintf(why, n, "%s", gnnc_trainer_error(t));
    /* The file has no tensors; one that was refused is forgotten. */
    CHECK(gnnc_trainer_load(t, p->dir) == (st == GNNC_OK ? GNNC_E_MISSING : GNNC_OK));
    gnnc_trainer_destroy(t);
    return st;
}

TEST(hostile_names_of_codes_are_refused) {
    static const struct {
        const char *meta, *says;
    } bad[] = {{"\"names:n.t\":\"[\\\"a\\\",\\\"a\\\"]\"", "has 'a' twice"},
               {"\"names:n.t\":\"[1]\"", "is no list of names"},
               {"\"names:n.t\":\"{}\"", "is no list of names"},
               {"\"names:n.t\":\"[\"", "given"},
               {"\"names:\":\"\"", "given"},
               {"\"names:n.t\":\"[\\\"\\\\u0000\\\"]\"", "given"}};
    Place p = place_new();
    char why[600];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(given(&p, bad[i].meta, why, sizeof why) == GNNC_E_FORMAT);
        CHECK_MSG(strstr(why, bad[i].says), "%s: %s", bad[i].meta, why);
    }
    CHECK(given(&p, "\"names:n.t\":\"[]\",\"names:\":\"[]\"", why, sizeof why) == GNNC_OK);
    scratch_remove(p.dir);
}

static void refuses(const char *what, const char *from, const char *to, gnnc_status want,
                    const char *says) {
    Place p = place_new();
    char text[2 * sizeof SCHEMA];
    const char *at = strstr(SCHEMA, from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - SCHEMA), SCHEMA, to, at + strlen(from));
    write_text(p.dir, "schema.json", text);
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "labels", 1) == GNNC_OK);
    gnnc_status st = gnnc_trainer_load(t, p.dir);
    CHECK_MSG(st == want && strstr(gnnc_trainer_error(t), says), "%s: %d %s", what, st,
              gnnc_trainer_error(t));
    CHECK(gnnc_trainer_epoch(t) == GNNC_E_STATE);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(data_that_do_not_fit_are_refused) {
    refuses("column", "\"t\": {", "\"u\": {", GNNC_E_MISSING, "'n' has no column 't'");
    refuses("edge type", "\"e\": {", "\"f\": {", GNNC_E_MISSING,
            "needs; the data have 'f' (gnnc import --edge e calls it so)");
    refuses("kind", "\"kind\": \"float\", \"shape\": [40], ", "\"kind\": \"time\", ", GNNC_E_DTYPE,
            "'n.t' is of kind time");
    refuses("rank", "\"shape\": [40], \"file\": \"t.npy\"",
            "\"shape\": [40, 3], \"file\": \"x.npy\"", GNNC_E_SHAPE,
            "'n.t' has 1 dimensions per row");
}

TEST(memory_limit_is_checked_before_running) {
    Place p = place_new();
    gnnc_trainer *t = NULL;
    gnnc_memory m = {.struct_size = sizeof m};
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "max_memory", 1000) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "map", 1) == GNNC_OK);
    CHECK(gnnc_trainer_load(t, p.dir) == GNNC_E_LIMIT);
    CHECK(strstr(gnnc_trainer_error(t), "limit") != NULL);
    CHECK(gnnc_trainer_memory(t, &m) == GNNC_OK && m.data_bytes > 0 && m.arena_bytes > 0);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

/* One epoch, its working memory in a file where `most` bytes are less than all. */
static gnnc_status epoch_within(const Place *p, FailingAlloc *f, int64_t most, gnnc_memory *m,
                                double *loss) {
    gnnc_trainer *t = NULL;
    RtAlloc a = failing(f, f->fail_at);
    gnnc_status st = gnnc_trainer_create_with(&t, &tiny_model, a.alloc, a.release, a.user);
    if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "spill", 1);
    if (st == GNNC_OK) st = gnnc_trainer_set_int(t, "max_memory", most);
    if (st == GNNC_OK) st = gnnc_trainer_load(t, p->dir);
    if (st == GNNC_OK) st = gnnc_trainer_epoch(t);
    if (st == GNNC_OK) st = gnnc_trainer_metric(t, "loss", loss);
    if (st == GNNC_OK) st = gnnc_trainer_memory(t, m);
    gnnc_trainer_destroy(t);
    CHECK(f->n_live == 0);
    return st;
}

TEST(working_memory_may_lie_in_a_file) {
    Place p = place_new();
    gnnc_memory all = {.struct_size = sizeof all}, m = all;
    double loss, loss_in_file = 0;
    FailingAlloc f = {.fail_at = -1};
    CHECK(epoch_within(&p, &f, 0, &all, &loss) == GNNC_OK && all.file_bytes == 0);
    int64_t most = (int64_t)all.all_bytes - 1;
    CHECK(epoch_within(&p, &f, most, &m, &loss_in_file) == GNNC_OK && loss_in_file == loss);
    CHECK(m.file_bytes == m.arena_bytes && m.all_bytes == all.all_bytes - m.file_bytes);
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 2000; k++) {
        f = (FailingAlloc){.fail_at = k};
        st = epoch_within(&p, &f, most, &m, &loss_in_file);
        CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
    }
    CHECK(st == GNNC_OK);
    scratch_remove(p.dir);
}

/* The n-th allocation fails, for every n, through a whole life. */
static gnnc_status whole_life(const Place *p, FailingAlloc *f) {
    gnnc_trainer *t = NULL;
    RtAlloc a = {failing_alloc, failing_release, f};
    gnnc_status st = gnnc_trainer_create_with(&t, &tiny_model, a.alloc, a.release, a.user);
    if (st == GNNC_OK) st = gnnc_trainer_load(t, p->dir);
    if (st == GNNC_OK) st = gnnc_trainer_epoch(t);
    if (st == GNNC_OK) st = gnnc_trainer_save(t, p->a);
    if (st == GNNC_OK) st = gnnc_trainer_resume(t, p->a);
    if (st == GNNC_OK) st = gnnc_trainer_load_weights(t, p->a);
    if (st == GNNC_OK) st = gnnc_trainer_save_weights(t, p->b);
    if (st != GNNC_OK && t) CHECK(gnnc_trainer_error(t)[0] != '\0');
    gnnc_trainer_destroy(t);
    return st;
}

TEST(every_failing_allocation_is_reported) {
    Place p = place_new();
    FailingAlloc f;
    long n = 0;
    gnnc_status st;
    do {
        failing(&f, n++);
        st = whole_life(&p, &f);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", n - 1, st);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n - 1, f.n_live);
    } while (st != GNNC_OK && n < 2000);
    CHECK(n > 20 && n < 2000);
    scratch_remove(p.dir);
}

static int cut_short(const char *dir) {
    char path[400];
    int n = 0;
    DIR *list = opendir(dir);
    for (struct dirent *e; list && (e = readdir(list));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        n += strstr(e->d_name, ".npy") && truncate(path, 0) == 0;
    }
    if (list) closedir(list);
    return n;
}

/* A library whose host edits the data goes on with what it read: it got SIGBUS, or other indices
 * than those that were checked. */
TEST(data_that_shrink_after_load_change_nothing) {
    Place p = place_new();
    gnnc_trainer *t = trainer_new(&p, 3, 1), *other = trainer_new(&p, 3, 1);
    double loss[2];
    for (int i = 0; i < 3; i++) CHECK(gnnc_trainer_epoch(other) == GNNC_OK);
    CHECK(cut_short(p.dir) > 2);
    for (int i = 0; i < 3; i++) CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    CHECK(gnnc_trainer_metric(t, "loss", &loss[0]) == GNNC_OK);
    CHECK(gnnc_trainer_metric(other, "loss", &loss[1]) == GNNC_OK && loss[0] == loss[1]);
    gnnc_trainer_destroy(t);
    gnnc_trainer_destroy(other);
    scratch_remove(p.dir);
}

/* Every function with each of its pointers NULL, before load and after it. */
static void call_with_nulls(gnnc_trainer *t) {
    const gnnc_status bad = GNNC_E_ARG;
    const float *data;
    const char *name;
    int rank;
    double value;
    int64_t dim[GNNC_MAX_RANK];
    float x = 0;
    CHECK(gnnc_trainer_set_int(t, NULL, 1) == bad && gnnc_trainer_set_real(t, NULL, 1) == bad);
    CHECK(gnnc_trainer_set_text(t, NULL, "cpu") == bad && gnnc_trainer_load(t, NULL) == bad);
    CHECK(gnnc_trainer_metric(t, NULL, &value) == bad);
    CHECK(gnnc_trainer_metric(t, "loss", NULL) == bad);
    if (t) CHECK_STR(gnnc_trainer_error(t), "the argument 'value' is NULL");
    CHECK(gnnc_trainer_predict(t, NULL, &rank, dim) == bad);
    CHECK(gnnc_trainer_predict(t, &data, NULL, dim) == bad);
    CHECK(gnnc_trainer_predict(t, &data, &rank, NULL) == bad);
    CHECK(gnnc_trainer_embed(t, NULL, &data, &rank, dim) == bad);
    CHECK(gnnc_trainer_embed(t, "h", NULL, &rank, dim) == bad);
    CHECK(gnnc_trainer_embed(t, "h", &data, NULL, dim) == bad);
    CHECK(gnnc_trainer_embed(t, "h", &data, &rank, NULL) == bad);
    CHECK(gnnc_trainer_output(t, NULL, &data, &rank, dim) == bad);
    CHECK(gnnc_trainer_output(t, "loss", NULL, &rank, dim) == bad);
    CHECK(gnnc_trainer_output(t, "loss", &data, NULL, dim) == bad);
    CHECK(gnnc_trainer_output(t, "loss", &data, &rank, NULL) == bad);
    CHECK(gnnc_trainer_parameter_info(t, 0, NULL, &rank, dim) == bad);
    CHECK(gnnc_trainer_parameter_info(t, 0, &name, NULL, dim) == bad);
    CHECK(gnnc_trainer_parameter_info(t, 0, &name, &rank, NULL) == bad);
    CHECK(gnnc_trainer_get_parameter(t, NULL, &x, 1) == bad);
    CHECK(gnnc_trainer_get_parameter(t, "w", NULL, 1) == bad);
    CHECK(gnnc_trainer_set_parameter(t, NULL, &x, 1) == bad);
    CHECK(gnnc_trainer_set_parameter(t, "w", NULL, 1) == bad);
    CHECK(gnnc_trainer_save(t, NULL) == bad && gnnc_trainer_save_weights(t, NULL) == bad);
    CHECK(gnnc_trainer_resume(t, NULL) == bad && gnnc_trainer_load_weights(t, NULL) == bad);
    CHECK(gnnc_trainer_save_to(t, NULL, t) == bad &&
          gnnc_trainer_save_weights_to(t, NULL, t) == bad);
    CHECK(gnnc_trainer_resume_from(t, NULL, 0) == bad);
    CHECK(gnnc_trainer_load_weights_from(t, NULL, 0) == bad);
    CHECK(gnnc_trainer_set_text(t, "device", NULL) == bad);
    CHECK(gnnc_trainer_option(t, 0, NULL) == bad && gnnc_trainer_metric_info(t, 0, NULL) == bad);
    CHECK(gnnc_trainer_memory(t, NULL) == bad && gnnc_trainer_step_info(t, 0, NULL) == bad);
    CHECK(gnnc_trainer_trace(t, NULL, NULL) == bad && gnnc_trainer_pipeline(t, NULL) == bad);
    CHECK(gnnc_trainer_measure_limits(t, NULL) == bad && gnnc_trainer_run_phase(t, NULL) == bad);
    CHECK(gnnc_trainer_counters(t, NULL) == bad);
}

TEST(no_null_pointer_crashes) {
    Place p = place_new();
    gnnc_trainer *t = (gnnc_trainer *)&p;
    gnnc_memory m = {.struct_size = sizeof m};
    gnnc_counters c = {.struct_size = sizeof c};
    CHECK(gnnc_trainer_create(&t, NULL) == GNNC_E_ARG && !t);
    CHECK(gnnc_trainer_create(NULL, &tiny_model) == GNNC_E_ARG);
    CHECK(gnnc_trainer_create_with(&t, &tiny_model, NULL, NULL, NULL) == GNNC_E_ARG && !t);
    call_with_nulls(NULL);
    CHECK(gnnc_trainer_step(NULL) == GNNC_E_ARG && gnnc_trainer_epoch(NULL) == GNNC_E_ARG);
    CHECK(gnnc_trainer_evaluate(NULL) == GNNC_E_ARG && gnnc_trainer_wait(NULL) == GNNC_E_ARG);
    CHECK(gnnc_trainer_evaluate_predictions(NULL, NULL) == GNNC_E_ARG &&
          gnnc_trainer_evaluate_predictions(t, NULL) == GNNC_E_ARG);
    CHECK(gnnc_trainer_keep_best(NULL, NULL) == GNNC_E_ARG && gnnc_trainer_done(NULL) == 1);
    CHECK(gnnc_trainer_tune(NULL, 1) == GNNC_E_ARG && gnnc_trainer_profile(NULL, 1) == GNNC_E_ARG);
    CHECK(gnnc_trainer_memory(NULL, &m) == GNNC_E_ARG && gnnc_trainer_n_parameters(NULL) == 0);
    CHECK(gnnc_trainer_set_message(NULL, NULL, NULL) == GNNC_E_ARG);
    CHECK(gnnc_trainer_n_metrics(NULL) == 0);
    CHECK(!gnnc_trainer_layer_name(NULL, 0) && gnnc_trainer_n_layers(NULL) == 0);
    CHECK(gnnc_trainer_epochs_done(NULL) == 0 && gnnc_trainer_epochs_total(NULL) == 0);
    CHECK(gnnc_trainer_steps_left(NULL) == 0 && gnnc_trainer_device_bytes(NULL) == 0);
    CHECK(gnnc_trainer_n_steps(NULL) == 0 && !*gnnc_trainer_error(NULL));
    CHECK(!*gnnc_trainer_device(NULL) && gnnc_trainer_n_options(NULL) == 0);
    gnnc_trainer_stop(NULL);
    CHECK(gnnc_trainer_counters(NULL, &c) == GNNC_E_ARG);
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    call_with_nulls(t);
    CHECK_MSG(gnnc_trainer_load(t, p.dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    call_with_nulls(t);
    CHECK(gnnc_trainer_epoch(t) == GNNC_OK);
    gnnc_trainer_destroy(t);
    scratch_remove(p.dir);
}

TEST(a_model_of_another_version_is_refused) {
    /* of other tables nothing is read */
    static const gnnc_program old = {RT_PROGRAM_VERSION - 1, NULL};
    gnnc_trainer *t;
    CHECK(gnnc_trainer_create(&t, &old) == GNNC_E_ARG && t == NULL);
    CHECK(gnnc_trainer_create(&t, NULL) == GNNC_E_ARG);
    CHECK_STR(gnnc_version(), GNNC_VERSION);
}

TEST_MAIN()
