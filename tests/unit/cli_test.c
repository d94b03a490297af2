/* The trainer's command line, in child processes with their output in files. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt_test_util.h"
#include "tiny_program.h"

static char dir[64], text[1 << 16];

static void read_text(const char *name) {
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
}

static pid_t start(const char *line) {
    static char words[512], *argv[32];
    int argc = 0;
    snprintf(words, sizeof words, "tiny %s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    pid_t child = fork();
    if (child) return child;
    if (chdir(dir) || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(99);
    bool predicts = argc > 1 && strcmp(argv[1], "predict") == 0; /* without a program of rows */
    int code = predicts ? gnnc_trainer_main_with(&tiny_model, NULL, argc, argv)
                        : gnnc_trainer_main(&tiny_model, argc, argv);
    fflush(NULL);
    _exit(code);
}

static int ended(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void runs(int want, const char *line, const char *file, const char *says) {
    int code = ended(start(line));
    read_text(file);
    CHECK_MSG(code == want && strstr(text, says), "'%s': status %d, %s: %s", line, code, file,
              text);
}

/* A ring of 30 nodes with 2 features. */
static void make_data(void) {
    enum { N = 30 };
    float x[2 * N], t[N], w[N];
    int32_t e[2 * N];
    int8_t split[N];
    snprintf(dir, sizeof dir, "%s", scratch_new());
    for (int v = 0; v < N; v++) {
        x[2 * v] = (float)(v % 5), x[2 * v + 1] = 1, t[v] = (float)(v % 5) / 2,
              w[v] = (float)(v % 2);
        e[v] = v, e[N + v] = (v + 5) % N, split[v] = (int8_t)(1 + v % 3);
    }
    save_npy(dir, "x.npy", RT_DT_F32, 2, N, 2, x);
    save_npy(dir, "t.npy", RT_DT_F32, 1, N, 0, t);
    save_npy(dir, "w.npy", RT_DT_F32, 1, N, 0, w);
    save_npy(dir, "e.npy", RT_DT_I32, 2, 2, N, e);
    save_npy(dir, "split.npy", RT_DT_I8, 1, N, 0, split);
    char path[100];
    snprintf(path, sizeof path, "%s/schema.json", dir);
    const char schema[] =
        "{\"format\": 1, \"nodes\": {\"n\": {\"count\": 30, \"columns\": {"
        "\"x\": {\"kind\": \"float\", \"shape\": [30, 2], \"file\": \"x.npy\"},"
        "\"t\": {\"kind\": \"float\", \"shape\": [30], \"file\": \"t.npy\"},"
        "\"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}},"
        "\"edges\": {\"e\": {\"count\": 30, \"src\": \"n\", \"dst\": \"n\", \"file\": \"e.npy\","
        "\"columns\": {\"w\": {\"kind\": \"float\", \"shape\": [30], \"file\": \"w.npy\"}}}}}";
    write_file(path, schema, sizeof schema - 1);
}

TEST(usage_errors_end_with_2) {
    make_data();
    runs(2, "", "err", "--data DIR is needed");
    runs(2, "fly --data .", "err", "unknown command 'fly'");
    runs(2, "fly --data .", "err", "there are train, eval");
    runs(2, "/ --epochs 3", "err", "data are given by --data DIR");
    runs(2, "--data . --epoch 3", "err", "unknown option '--epoch'; did you mean '--epochs'?");
    runs(2, "--wings 2", "err", "unknown option '--wings'");
    runs(2, "--data . --epochs many", "err", "--epochs: 'many' is not a whole number");
    runs(2, "--data . --seed 1e9", "err", "--seed: '1e9' is not a whole number");
    runs(2, "--data . --lr many", "err", "--lr: 'many' is not a number");
    runs(2, "--data . --epochs -1", "err", "'epochs' is -1, not between 0 and");
    runs(2, "--data . --threads 99999", "err", "'threads' is 99999, not between 0 and 4096");
    runs(2, "--data . --lr -0.5", "err", "'lr' is -0.5, and must be a number >= 0");
    runs(2, "--data . --lr inf", "err", "'lr' is inf, and must be a number >= 0");
    runs(2, "--data . --save-every -1", "err", "--save-every: '-1' is no whole number from 0 on");
    runs(2, "--data", "err", "needs a value");
    runs(2, "--json=1 --data .", "err", "takes no value");
    runs(2, "eval --data .", "err", "--weights FILE is needed");
    runs(2, "embed --data . --weights c", "err", "name of a layer");
    runs(2, "--data . --device cuda", "err", "cpu");
    runs(2, "--data . --maps=cloud", "err", "not device, host or check");
    runs(2, "--data . --weight-decay 0.5", "err", "compiled into this model");
    runs(2, "--data . --max-memory 3Q", "err", "'3Q' is no number of bytes: 2000, 64K, 4G");
    runs(2, "--data . --log=loud", "err", "loud");
    scratch_remove(dir);
}

TEST(help_is_written_from_the_model) {
    make_data();
    runs(0, "--help", "out", "x: f32[F]");
    runs(0, "help", "out", "edge e: n -> n");
    runs(0, "train -h", "out", "lin.weight, lin.bias");
    runs(0, "--help", "out", "keeping the one with the lowest validation loss");
    runs(0, "--version", "out", GNNC_VERSION);
    runs(0, "info", "out", "layers for embed: h");
    runs(0, "info --data .", "out", "working memory of a step");
    scratch_remove(dir);
}

TEST(training_prints_lines_or_json) {
    make_data();
    runs(0, "--data . --epochs 3", "out", "epoch 3/3");
    runs(0, "--data . --epochs 3", "out", "kept epoch");
    runs(0, "train --data . --epochs=3 --log json", "out", "\"test\":{\"mae\":");
    runs(0, "--data . --epochs 3 --log none", "out", "");
    CHECK(text[0] == '\0');
    runs(0, "bench --data . --epochs 20 --json", "out", "\"allocations_per_step\":0,");
    runs(0, "bench --data . --epochs 20", "out", "0 read-backs");
    scratch_remove(dir);
}

TEST(weights_flow_between_commands) {
    make_data();
    runs(0, "--data . --epochs 5 --checkpoint c --out w.safetensors", "out", "kept epoch");
    runs(0, "eval --data . --weights c", "out", "val loss");
    runs(0, "eval --data . --weights w.safetensors", "out", "val loss");
    runs(0, "predict --data . --weights c --out p.npy", "out", "p.npy: 30 f32");
    runs(0, "embed h --data . --weights c --out h.npy", "out", "h.npy: 30 x 2 f32");
    runs(1, "embed nose --data . --weights c", "err", "no layer 'nose'");
    runs(0, "--data . --epochs 8 --resume c", "out", "epoch 8/8");
    runs(1, "--data . --resume w.safetensors", "err", "no checkpoint");
    runs(1, "predict --data . --weights c --out /dev/full", "err", "/dev/full");
    runs(1, "--data nowhere", "err", "nowhere");
    runs(1, "--data . --max-memory 1K", "err", "limit");
    scratch_remove(dir);
}

TEST(info_tells_why_data_cannot_be_loaded) {
    make_data();
    runs(1, "info --data missing", "err", "missing/schema.json: cannot open");
    runs(1, "info --data . --max-memory 1K", "err", "the limit is");
    scratch_remove(dir);
}

TEST(sigint_and_sigterm_save_and_stop) {
    int signals[] = {SIGINT, SIGTERM};
    make_data();
    for (int i = 0; i < 2; i++) {
        pid_t child = start("--data . --epochs 1000000000 --log none --checkpoint c");
        usleep(100000);
        kill(child, signals[i]);
        CHECK(ended(child) == 128 + signals[i]);
        read_text("err");
        CHECK(strstr(text, "--resume goes on") != NULL);
        runs(0, "eval --data . --weights c", "out", "train loss");
    }
    scratch_remove(dir);
}

TEST_MAIN()
