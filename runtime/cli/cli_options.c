/* Reading the command line.  One table holds every option; --help prints the same table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "cli.h"
#include "cli_options.h"
#include "cli_predict.h"

/* Rows of the table, by kind. */
/* clang-format off */
#define IN_CLI(name, value, kind, field, help) \
    {name, value, help, kind, offsetof(RtCli, field), NULL, NULL, {{0, 0}}}
#define OWN(name, value, option, help) {name, value, help, RT_OPT_OWN, 0, option, NULL, {{0, 0}}}
#define BYTES(name, option, help)      {name, "N", help, RT_OPT_BYTES, 0, option, NULL, {{0, 0}}}
#define SET(name, option, to, help)    {name, NULL, help, RT_OPT_SET, 0, option, NULL, {{to, 0}}}
#define ASK(name, value, kind, help)   {name, value, help, kind, 0, NULL, NULL, {{0, 0}}}
#define WORDS(name, value, option, too, help, ...) \
    {name, value, help, RT_OPT_SET, 0, option, too, {__VA_ARGS__}}
/* clang-format on */

const RtCliOption rt_cli_options[] = {
    IN_CLI("--data", "DIR", RT_OPT_TEXT, data, "the data directory (docs/data.md)"),
    OWN("--epochs", "N", "epochs", "epochs in all; bench: number of timed steps (200)"),
    OWN("--lr", "X", "lr", NULL),
    OWN("--weight-decay", "X", "weight_decay", NULL),
    OWN("--seed", "N", "seed", NULL),
    ASK("--set", "NAME=VALUE", RT_OPT_ANY, "an option of the model or of the trainer, hidden=64"),
    IN_CLI(
        "--seeds", "N", RT_OPT_TIMES, seeds,
        "train: train N times, with --seed and the numbers after it; print means and deviations. "
        "eval: evaluate the N weights FILE.SEED. predict: write the mean of their predictions"),
    OWN("--threads", "N", "threads", NULL),
    OWN("--variant", "N", "variant", NULL),
    OWN("--serial-ns", "N", "serial_ns", NULL),
    SET("--no-tuned", "tuned", 0, "do not use what `tune` kept beside the data"),
    OWN("--cache", "N", "cache", "keep index arrays beside data of at least N edges (262144)"),
    SET("--no-cache", "cache", 0,
        "neither keep index arrays beside the data nor use those that are there"),
    SET("--tf32", "tf32", 1, NULL),
    SET("--no-amx", "amx", 0, "compute matrix products without AMX"),
    OWN("--batch", "N", "batch", NULL),
    OWN("--fanout", "N,N,..", "fanout", NULL),
    OWN("--workers", "N", "workers", NULL),
    SET("--check-times", "check_times", 1, NULL),
    OWN("--split", "K", "split", NULL),
    BYTES("--max-memory", "max_memory",
          "refuse to start if more memory is needed: bytes, or with K, M, G"),
    SET("--spill", "spill", 1, NULL),
    IN_CLI("--checkpoint", "FILE", RT_OPT_TEXT, checkpoint,
           "where training is saved (default: the file of --resume, else MODEL.ckpt of MODEL.gnn); "
           "none: nowhere"),
    IN_CLI("--save-every", "N", RT_OPT_COUNT, save_every, "also save after every N epochs"),
    IN_CLI("--save-every-steps", "N", RT_OPT_COUNT, save_steps, "also save after every N steps"),
    OWN("--eval-every", "N", "eval_every", NULL),
    OWN("--eval-every-steps", "N", "eval_every_steps", NULL),
    OWN("--eval-rows", "N", "eval_rows", NULL),
    IN_CLI("--steps", "N", RT_OPT_COUNT, steps,
           "end after N steps in all, if the epochs do not end before"),
    IN_CLI("--resume", "FILE", RT_OPT_TEXT, resume,
           "continue the training of a checkpoint, to the same bits"),
    SET("--force", "other_data", 1, NULL),
    IN_CLI("--weights", "FILE", RT_OPT_TEXT, weights,
           "train: start from these weights; eval, predict, embed, explain: use them (safetensors, "
           "PyG's names; default MODEL.ckpt)"),
    IN_CLI("--out", "FILE", RT_OPT_TEXT, out,
           "train: also write the kept weights there; predict, embed, explain: the result"),
    IN_CLI("--patience", "N", RT_OPT_COUNT, patience,
           "with several processes: seconds that one waits for another (1800)"),
    WORDS("--reduce", "ordered|fast", "reduce_fast", NULL,
          "processes that share rows: ordered sums, of the same bits in any number of processes; "
          "fast: MPI's, whose bits depend on it",
          {0, 0}, {1, 0}),
    OWN("--stale-halos", "N", "stale_halos", NULL),
    SET("--seeds-by-part", "seeds_by_part", 1, NULL),
    SET("--pull-rows", "pull_rows", 1, NULL),
    BYTES("--pull-cache", "pull_cache",
          "with --pull-rows: room for rows of others that stay, those with most edges: bytes, or "
          "with K, M, G"),
    IN_CLI("--processes", "N", RT_OPT_COUNT, n_processes,
           "info: what N processes that share the rows would send (gnnc --mpi)"),
    OWN("--at", "DATE", "at",
        "predict, explain: for a model of the future, predict all rows at that date"),
    IN_CLI("--ids", "FILE", RT_OPT_TEXT, ids,
           "predict: only these rows, by their ids, one a line; -: standard input"),
    IN_CLI("--nodes", "FILE", RT_OPT_TEXT, nodes,
           "predict: only these rows, by their numbers from 0, one a line; -: standard input"),
    IN_CLI("--id", "KEY", RT_OPT_TEXT, id, "explain: the row with this id"),
    IN_CLI("--node", "N", RT_OPT_TEXT, node, "explain: the row with this number, from 0"),
    IN_CLI("--class", "C", RT_OPT_TEXT, of_class,
           "explain: which class or number of the row, by name or number (default: the highest)"),
    IN_CLI("--format", "npy|csv|jsonl|text|json", RT_OPT_WORD, format,
           "predict: npy (the model's numbers) or csv, jsonl (ids, classes, probabilities); "
           "explain: text or json"),
    IN_CLI("--top", "K", RT_OPT_COUNT, top,
           "predict: only the K most probable classes of each row; explain: K items of each kind"),
    IN_CLI("--log", "text|json|none", RT_OPT_WORD, log,
           "how each epoch is printed: a line of text, a JSON object, or not at all"),
    IN_CLI("--json", NULL, RT_OPT_FLAG, json, "bench, info: print one JSON object"),
    IN_CLI("--phase", "both|train|predict", RT_OPT_WORD, bench_phase,
           "bench: what is timed, steps of training, inferences, or both"),
    IN_CLI("--dump-values", "DIR", RT_OPT_TEXT, dump,
           "write to DIR the values named by gnnc --dump-values, at each step"),
    IN_CLI("--profile", NULL, RT_OPT_FLAG, profile,
           "print time, bytes and FLOPs of every kernel and library call"),
    IN_CLI("--html", "FILE", RT_OPT_TEXT, html,
           "with --profile: write the measured times into this page of gnnc --emit=html"),
    IN_CLI("--trace", "FILE", RT_OPT_TEXT, trace,
           "write a time line of the steps (Chrome trace, Perfetto)"),
    OWN("--device", "auto|cpu|cuda|cuda:N", "device", "where to run"),
    WORDS("--shapes", "buckets|dynamic", "buckets", NULL,
          "sizes of training batches on a GPU: buckets (rounded up, so that a step is one launch, "
          "where that can be), or dynamic (exact)",
          {1, 0}, {0, 0}),
    WORDS("--features", "device|host|pinned", "device_features", NULL,
          "on a GPU: who gathers a batch's rows of columns; pinned: it does, out of the host's "
          "memory",
          {1, 0}, {0, 0}, {2, 0}),
    BYTES("--feature-cache", "feature_cache",
          "with --features=pinned: room on the GPU for rows that stay there, those with most "
          "edges: bytes, or with K, M, G"),
    WORDS("--products", "grouped|single", "group_products", NULL,
          "on a GPU: grouped: several matrix products in one call where that is faster; single: "
          "one each",
          {1, 0}, {0, 0}),
    WORDS("--sampler", "host|device|check", "device_sampler", "check_sampler",
          "on a GPU: who samples neighbours; check: both, compared", {0, 0}, {1, 0}, {1, 1}),
    WORDS("--sums", "device|host", "device_sums", NULL,
          "processes on GPUs: who sends gradients or rows; device: GPUs by NCCL, if it is there",
          {1, 0}, {0, 0}),
    WORDS("--maps", "device|host|check", "device_maps", "check_maps",
          "on a GPU: who builds index arrays when data are loaded; check: both, compared", {1, 0},
          {0, 0}, {1, 1}),
    ASK("--help", NULL, RT_OPT_HELP, "or -h: this text; --help=json: the options that --set takes"),
    ASK("--version", NULL, RT_OPT_VERSION, "or -V: versions of model, compiler and library"),
    {NULL, NULL, NULL, RT_OPT_TEXT, 0, NULL, NULL, {{0, 0}}},
};

/* ---- the trainer's own ------------------------------------------------------ */
/* The trainer's option of this name; one without help: there is none. */
static gnnc_option find_own(RtCli *c, const char *name) {
    gnnc_option o = {.struct_size = sizeof o};
    for (int i = 0; gnnc_trainer_option(c->t, i, &o) == GNNC_OK; i++)
        if (strcmp(o.name, name) == 0) return o;
    return (gnnc_option){.help = ""};
}

long long rt_cli_option_int(RtCli *c, const char *option) {
    return find_own(c, option).int_value;
}

const char *rt_cli_option_help(RtCli *c, const RtCliOption *o) {
    return o->help ? o->help : find_own(c, o->option).help;
}

/* ---- values ---------------------------------------------------------------- */
/* Reads a whole number; false: it is none. */
static bool parse_int(const char *s, int64_t *v) {
    char *end;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    *v = x;
    return end != s && !*end && !errno;
}

/* Reads a number; false: it is none. */
static bool parse_real(const char *s, double *v) {
    char *end;
    *v = strtod(s, &end);
    return end != s && !*end;
}

/* Which of the words "a|b|c"; -1: none of them. */
static int parse_word_of(const char *words, const char *s) {
    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (strlen(s) == n && strncmp(words, s, n) == 0) return i;
        if (!words[n]) return -1;
        words += n + 1;
    }
}

/* "--maps: 'cloud' is not device, host or check" */
static int no_such_word(const RtCli *c, const RtCliOption *o, const char *v) {
    char list[64] = "";
    const char *last = strrchr(o->value, '|');
    for (size_t at = 0, i = 0; o->value[i] && at + 5 < sizeof list; i++) {
        const char *put = &o->value[i] == last ? " or " : o->value[i] == '|' ? ", " : NULL;
        at += (size_t)snprintf(list + at, sizeof list - at, put ? "%s" : "%.1s",
                               put ? put : &o->value[i]);
    }
    return rt_cli_usage(c, "%s: '%s' is not %s", o->name, v, list);
}

/* Those of the model, if there are any, are what was meant. */
static int unknown_setting(RtCli *c, const char *name) {
    gnnc_option o = {.struct_size = sizeof o};
    char known[256] = "";
    size_t at = 0;
    for (int i = RT_CLI_N_OPTIONS; gnnc_trainer_option(c->t, i, &o) == GNNC_OK && at < sizeof known;
         i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", o.name);
    if (!*known)
        return rt_cli_usage(c,
                            "--set: there is no option '%s', and the model was compiled without "
                            "any of its own (gnnc --settable)",
                            name);
    return rt_cli_usage(c, "--set: there is no option '%s'; the model has %s", name, known);
}

static int trainer_option(RtCli *c, const RtCliOption *o, gnnc_status st) {
    return st == GNNC_OK ? RT_EXIT_OK
                         : rt_cli_usage(c, "%s: %s", o->name, gnnc_trainer_error(c->t));
}

/* Sets the trainer's option that stands behind a command-line option, by its type. */
static int set_own(RtCli *c, const RtCliOption *o, const char *v) {
    int64_t n = 0;
    double x = 0;
    switch (find_own(c, o->option).type) {
    case GNNC_OPTION_TEXT:
        return trainer_option(c, o, gnnc_trainer_set_text(c->t, o->option, v));
    case GNNC_OPTION_REAL:
        if (!parse_real(v, &x)) return rt_cli_usage(c, "%s: '%s' is not a number", o->name, v);
        return trainer_option(c, o, gnnc_trainer_set_real(c->t, o->option, x));
    case GNNC_OPTION_INT:
        break;
    }
    if (!parse_int(v, &n)) return rt_cli_usage(c, "%s: '%s' is not a whole number", o->name, v);
    if (strcmp(o->option, "epochs") == 0) c->n_epochs = n;
    return trainer_option(c, o, gnnc_trainer_set_int(c->t, o->option, n));
}

/* "hidden=64" */
static int set_any(RtCli *c, const char *v) {
    char name[64], said[80];
    size_t n = strcspn(v, "=");
    if (!v[n]) return rt_cli_usage(c, "--set: '%s' is not NAME=VALUE", v);
    if (n >= sizeof name) return rt_cli_usage(c, "--set: there is no option '%.*s'", (int)n, v);
    snprintf(name, sizeof name, "%.*s", (int)n, v);
    snprintf(said, sizeof said, "--set %s", name);
    if (!find_own(c, name).name) return unknown_setting(c, name);
    return set_own(c, &(RtCliOption){.name = said, .option = name}, v + n + 1);
}

/* Sets an option whose value is a word: to[] has the numbers that each word stands for. */
static int set_words(RtCli *c, const RtCliOption *o, const char *v) {
    int i = v ? parse_word_of(o->value, v) : 0;
    if (i < 0) return no_such_word(c, o, v);
    gnnc_status st = gnnc_trainer_set_int(c->t, o->option, o->to[i].option);
    if (st == GNNC_OK && o->too) st = gnnc_trainer_set_int(c->t, o->too, o->to[i].too);
    return trainer_option(c, o, st);
}

/* Sets a command-line option to v (NULL: it has no value). */
static int set_option(RtCli *c, const RtCliOption *o, const char *v) {
    int64_t n = 0;
    int word;
    char *at = (char *)c + o->offset;
    switch (o->kind) {
    case RT_OPT_TEXT:
        memcpy(at, &v, sizeof v);
        return RT_EXIT_OK;
    case RT_OPT_COUNT:
    case RT_OPT_TIMES:
        if (!parse_int(v, &n) || n < (o->kind == RT_OPT_TIMES))
            return rt_cli_usage(c, "%s: '%s' is no whole number from %d on", o->name, v,
                                o->kind == RT_OPT_TIMES);
        memcpy(at, &n, sizeof n);
        return RT_EXIT_OK;
    case RT_OPT_FLAG:
        *(bool *)at = true;
        return RT_EXIT_OK;
    case RT_OPT_WORD:
        word = parse_word_of(o->value, v);
        if (word < 0) return no_such_word(c, o, v);
        memcpy(at, &word, sizeof word);
        return RT_EXIT_OK;
    case RT_OPT_OWN:
        return set_own(c, o, v);
    case RT_OPT_ANY:
        return set_any(c, v);
    case RT_OPT_BYTES:
        if (!rt_read_bytes(v, &n))
            return rt_cli_usage(c, "%s: '%s' is no number of bytes: 2000, 64K, 4G", o->name, v);
        return trainer_option(c, o, gnnc_trainer_set_int(c->t, o->option, n));
    case RT_OPT_SET:
        return set_words(c, o, v);
    case RT_OPT_HELP:
        c->command = RT_CMD_HELP;
        c->json |= v != NULL;
        return RT_EXIT_OK;
    case RT_OPT_VERSION:
        c->command = RT_CMD_VERSION;
        return RT_EXIT_OK;
    }
    return RT_EXIT_USAGE;
}

/* ---- words ------------------------------------------------------------------- */
static const RtCliOption *find_option(const char *arg, size_t n) {
    for (const RtCliOption *o = rt_cli_options; o->name; o++)
        if (strlen(o->name) == n && strncmp(o->name, arg, n) == 0) return o;
    return NULL;
}

/* What a word begins like, or begins: --epoch, --out-file. */
static int unknown_option(const RtCli *c, const char *arg) {
    size_t n = strcspn(arg, "=");
    for (const RtCliOption *o = rt_cli_options; o->name && n > 4; o++) {
        size_t m = strlen(o->name);
        if (m > 4 && strncmp(o->name, arg, n < m ? n : m) == 0)
            return rt_cli_usage(c, "unknown option '%s'; did you mean '%s'?", arg, o->name);
    }
    return rt_cli_usage(c, "unknown option '%s'", arg);
}

/* "--name value" or "--name=value"; *i moves past what was used. */
static int parse_option(RtCli *c, int argc, char **argv, int *i) {
    const char *arg = argv[*i], *eq = strchr(arg, '=');
    const char *name = strcmp(arg, "-h") == 0   ? "--help"
                       : strcmp(arg, "-V") == 0 ? "--version"
                                                : arg;
    const RtCliOption *o = find_option(name, eq ? (size_t)(eq - arg) : strlen(name));
    if (!o) return unknown_option(c, arg);
    if (o->kind == RT_OPT_HELP && eq && strcmp(eq + 1, "json") == 0)
        return set_option(c, o, eq + 1);
    if (!o->value && eq) return rt_cli_usage(c, "%s takes no value", o->name);
    if (!o->value) return set_option(c, o, NULL);
    if (eq) return set_option(c, o, eq + 1);
    if (*i + 1 >= argc) return rt_cli_usage(c, "%s needs a value", o->name);
    return set_option(c, o, argv[++*i]);
}

/* Takes a word that is no option: the first is the command, the second of `embed` a layer. */
static int parse_word(RtCli *c, const char *word, int at) {
    static const char *const name[] = {"train", "eval", "predict", "embed",
                                       "bench", "tune", "info",    "explain"};
    for (int k = 0; at == 0 && k < 8; k++)
        if (strcmp(word, name[k]) == 0) {
            c->command = (RtCommand)k;
            return RT_EXIT_OK;
        }
    if (at == 0 && strcmp(word, "help") == 0) {
        c->command = RT_CMD_HELP;
        return RT_EXIT_OK;
    }
    if (at == 1 && c->command == RT_CMD_EMBED) {
        c->layer = word;
        return RT_EXIT_OK;
    }
    if (at) return rt_cli_usage(c, "one word too many: '%s'", word);
    return rt_cli_usage(c,
                        "unknown command '%s'; there are train, eval, predict, embed, bench, tune, "
                        "info, explain, help%s",
                        word, access(word, F_OK) == 0 ? "; data are given by --data DIR" : "");
}

static bool asked_at(RtCli *c) {
    return find_own(c, "at").is_set;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = s ? strlen(s) : 0, k = strlen(end);
    return n > k && strcmp(s + n - k, end) == 0;
}

/* Where none is asked for, the file's name says it. */
static void choose_format(RtCli *c) {
    if (c->format >= 0) return;
    c->format = c->command == RT_CMD_EXPLAIN   ? RT_FORMAT_TEXT
                : c->command != RT_CMD_PREDICT ? GNNC_WRITE_NPY
                : ends_with(c->out, ".csv")    ? GNNC_WRITE_CSV
                : ends_with(c->out, ".jsonl")  ? GNNC_WRITE_JSONL
                                               : GNNC_WRITE_NPY;
}

/* Where none are named, those that train left here. */
static void choose_weights(RtCli *c) {
    char of_first[sizeof c->left + 24];
    int n = snprintf(c->left, sizeof c->left, "%s.ckpt", c->is.name);
    const char *there =
        c->seeds ? rt_cli_of_seed(c->left, rt_cli_option_int(c, "seed"), of_first, sizeof of_first)
                 : c->left;
    if (c->weights || n >= (int)sizeof c->left || access(there, R_OK) != 0) return;
    c->weights = c->left;
    if (c->log != RT_LOG_NONE) fprintf(stderr, "%s: weights: %s\n", c->prog, c->left);
}

/* Checks the options of `explain`, and that no other command has them. */
static int check_explain(RtCli *c) {
    bool explains = c->command == RT_CMD_EXPLAIN;
    const char *of_explain = c->id ? "--id" : c->node ? "--node" : c->of_class ? "--class" : NULL;
    if (of_explain && !explains) return rt_cli_usage(c, "%s is for 'explain'", of_explain);
    if (explains && !c->id == !c->node)
        return rt_cli_usage(c, "explain is about one row: --id KEY or --node N");
    if (c->format >= 0 && explains != (c->format >= RT_FORMAT_TEXT))
        return rt_cli_usage(c, "--format of predict is npy, csv or jsonl, of explain text or json");
    return RT_EXIT_OK;
}

/* Checks that --seeds goes with the command and other options. */
static int check_seeds(RtCli *c) {
    long long first = rt_cli_option_int(c, "seed"), last;
    if (c->seeds && c->command != RT_CMD_TRAIN && c->command != RT_CMD_EVAL &&
        c->command != RT_CMD_PREDICT)
        return rt_cli_usage(c, "--seeds is for 'train', 'eval' and 'predict'");
    if (c->seeds && c->resume)
        return rt_cli_usage(c, "--seeds have weights of their own: no --resume");
    if (c->seeds && __builtin_add_overflow(first, c->seeds - 1, &last))
        return rt_cli_usage(c, "--seeds: there are not so many seeds behind %lld", first);
    return RT_EXIT_OK;
}

/* Checks the options of `predict` and `explain`. */
static int check_predict(RtCli *c) {
    bool explains = c->command == RT_CMD_EXPLAIN;
    const char *of_predict = c->ids           ? "--ids"
                             : c->nodes       ? "--nodes"
                             : explains       ? NULL
                             : asked_at(c)    ? "--at"
                             : c->format >= 0 ? "--format"
                             : c->top         ? "--top"
                                              : NULL;
    if (check_seeds(c) != RT_EXIT_OK) return RT_EXIT_USAGE;
    if (of_predict && c->command != RT_CMD_PREDICT)
        return rt_cli_usage(c, "%s is for 'predict'", of_predict);
    if (check_explain(c) != RT_EXIT_OK) return RT_EXIT_USAGE;
    choose_format(c);
    if (c->ids && c->nodes) return rt_cli_usage(c, "--ids and --nodes exclude each other");
    if (c->top && c->format == GNNC_WRITE_NPY)
        return rt_cli_usage(c, "--top is of --format=csv and --format=jsonl");
    return RT_EXIT_OK;
}

/* Checks that the options which the command needs are there. */
static int check_needs(RtCli *c) {
    if (c->command == RT_CMD_HELP || c->command == RT_CMD_VERSION) return RT_EXIT_OK;
    if (check_predict(c) != RT_EXIT_OK) return RT_EXIT_USAGE;
    bool of_links = c->is.has_recipe && strcmp(c->recipe.target, "links") == 0;
    if (c->command == RT_CMD_EMBED && of_links && c->recipe.n_times && !c->is.embeds)
        return rt_cli_usage(c, "what this model computes of a node depends on the time of a link: "
                               "it embeds nothing");
    if (!c->data && c->command != RT_CMD_INFO)
        return rt_cli_usage(c, "--data DIR is needed: the directory with the graph");
    if (c->command == RT_CMD_BENCH && c->n_epochs == 0)
        return rt_cli_usage(c, "bench times at least one step: --epochs N");
    bool uses = c->command == RT_CMD_EVAL || c->command == RT_CMD_PREDICT ||
                c->command == RT_CMD_EMBED || c->command == RT_CMD_EXPLAIN;
    if (uses) choose_weights(c);
    if (uses && !c->weights)
        return rt_cli_usage(
            c, "--weights FILE is needed: a checkpoint or PyG's weights (there is no %s)", c->left);
    if (c->command == RT_CMD_INFO && c->weights && !c->data)
        return rt_cli_usage(c, "info --weights tells whether they fit: --data DIR is needed");
    if (c->command == RT_CMD_EMBED && !c->layer)
        return rt_cli_usage(c, "embed needs the name of a layer (see 'info')");
    if (c->resume && c->weights)
        return rt_cli_usage(c, "--resume and --weights exclude each other");
    return RT_EXIT_OK;
}

int rt_cli_parse(RtCli *c, int argc, char **argv) {
    int n_words = 0;
    for (int i = 1; i < argc; i++) {
        int code =
            argv[i][0] == '-' ? parse_option(c, argc, argv, &i) : parse_word(c, argv[i], n_words++);
        if (code != RT_EXIT_OK) return code;
    }
    c->profile |= c->html != NULL;
    return check_needs(c);
}
