/* Reading the command line.  One table holds every option; --help prints the same table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_options.h"
#include "runtime/exec/exec.h"

const RtCliOption rt_cli_options[] = {
    {"--data", "DIR", "the data directory (docs/data.md)", RT_OPT_TEXT, offsetof(RtCli, data),
     NULL},
    {"--epochs", "N", "epochs in all; bench: timed steps (200)", RT_OPT_INT, 0, "epochs"},
    {"--lr", "X", "initial learning rate", RT_OPT_REAL, 0, "lr"},
    {"--weight-decay", "X", "weight decay, where the model takes it as an input", RT_OPT_REAL, 0,
     "weight_decay"},
    {"--seed", "N", "of every random number; default 0", RT_OPT_INT, 0, "seed"},
    {"--threads", "N", "0 = one per core; results do not depend on it", RT_OPT_INT, 0, "threads"},
    {"--variant", "N", "of the program; default: by the data's sizes, or tuned; info lists them",
     RT_OPT_INT, 0, "variant"},
    {"--serial-ns", "N", "steps estimated to take less run on one thread; as --threads", RT_OPT_INT,
     0, "serial_ns"},
    {"--no-tuned", NULL, "ignore what tune kept beside the data", RT_OPT_FLAG,
     offsetof(RtCli, no_tuned), NULL},
    {"--tf32", NULL, "on a GPU: matrix products of factors rounded to TF32", RT_OPT_FLAG,
     offsetof(RtCli, tf32), NULL},
    {"--no-amx", NULL, "matrix products without AMX", RT_OPT_FLAG, offsetof(RtCli, no_amx), NULL},
    {"--batch", "N", "rows that a step learns from, of a sampled model", RT_OPT_INT, 0, "batch"},
    {"--workers", "N", "threads that make its batches ahead; as --threads", RT_OPT_INT, 0,
     "workers"},
    {"--check-times", NULL, "of temporal batches: prove that nothing newer than a seed is read",
     RT_OPT_FLAG, offsetof(RtCli, check_times), NULL},
    {"--split", "K", "which of the data's splits, from 0", RT_OPT_INT, 0, "split"},
    {"--max-memory", "N", "bytes, or with K, M, G: refuse to start above it", RT_OPT_BYTES, 0,
     "max_memory"},
    {"--spill", NULL, "working memory above that goes to a file in TMPDIR, or /var/tmp",
     RT_OPT_FLAG, offsetof(RtCli, spill), NULL},
    {"--checkpoint", "FILE",
     "where to save: default the file resumed, else MODEL.ckpt of MODEL.gnn; none", RT_OPT_TEXT,
     offsetof(RtCli, checkpoint), NULL},
    {"--save-every", "N", "also save after every N epochs", RT_OPT_COUNT,
     offsetof(RtCli, save_every), NULL},
    {"--resume", "FILE", "go on from a checkpoint, to the same bits", RT_OPT_TEXT,
     offsetof(RtCli, resume), NULL},
    {"--force", NULL, "resume although the data are not those of the checkpoint", RT_OPT_FLAG,
     offsetof(RtCli, force), NULL},
    {"--weights", "FILE", "start from these weights (PyG's names, safetensors)", RT_OPT_TEXT,
     offsetof(RtCli, weights), NULL},
    {"--out", "FILE", "train: kept weights; predict, embed: the .npy file", RT_OPT_TEXT,
     offsetof(RtCli, out), NULL},
    {"--log", "text|json|none", "one line an epoch", RT_OPT_LOG, 0, NULL},
    {"--json", NULL, "bench, info: print one JSON object", RT_OPT_FLAG, offsetof(RtCli, json),
     NULL},
    {"--profile", NULL, "time, bytes and FLOPs of every kernel and library call", RT_OPT_FLAG,
     offsetof(RtCli, profile), NULL},
    {"--trace", "FILE", "write a time line of the steps (Chrome trace, Perfetto)", RT_OPT_TEXT,
     offsetof(RtCli, trace), NULL},
    {"--device", "auto|cpu|cuda|cuda:N", "where to run", RT_OPT_DEVICE, 0, NULL},
    {"--shapes", "dynamic|buckets", "of batches on a GPU: as they are, or rounded up and replayed",
     RT_OPT_SHAPES, 0, NULL},
    {"--features", "device|host", "who takes a batch's rows of the data's columns, on a GPU",
     RT_OPT_FEATURES, 0, NULL},
    {"--products", "grouped|single", "on a GPU: several with one call where that pays, or one each",
     RT_OPT_PRODUCTS, 0, NULL},
    {"--sampler", "host|device|check", "who draws batches of neighbours, on a GPU; check: both",
     RT_OPT_SAMPLER, 0, NULL},
    {"--maps", "device|host|check", "who builds index arrays at load, on a GPU; check: both",
     RT_OPT_MAPS, 0, NULL},
    {"--help", NULL, "this text", RT_OPT_HELP, 0, NULL},
    {"--version", NULL, "versions of model, compiler and library", RT_OPT_VERSION, 0, NULL},
    {NULL, NULL, NULL, RT_OPT_TEXT, 0, NULL},
};

/* ---- values ---------------------------------------------------------------- */
static bool parse_int(const char *s, int64_t *v) {
    char *end;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    *v = x;
    return end != s && !*end && !errno;
}

static bool parse_real(const char *s, double *v) {
    char *end;
    *v = strtod(s, &end);
    return end != s && !*end;
}

static bool parse_bytes(const char *s, int64_t *v) {
    char *end;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    int shift = 0;
    if (end == s || errno || x < 0) return false;
    if (*end == 'K') shift = 10;
    if (*end == 'M') shift = 20;
    if (*end == 'G') shift = 30;
    end += shift != 0;
    if (*end == 'i') end++;
    if (*end == 'B') end++;
    *v = (int64_t)((uint64_t)x << shift);
    return !*end && (*v >> shift) == x;
}

static bool parse_log(RtCli *c, const char *s) {
    static const char *const name[] = {"text", "json", "none"};
    for (int i = 0; i < 3; i++)
        if (strcmp(s, name[i]) == 0) {
            c->log = (RtLogMode)i;
            return true;
        }
    return false;
}

static bool parse_shapes(RtCli *c, const char *s) {
    bool buckets = strcmp(s, "buckets") == 0;
    if (!buckets && strcmp(s, "dynamic") != 0) return false;
    return gnnc_trainer_set_int(c->t, "buckets", buckets) == GNNC_OK;
}

static bool parse_features(RtCli *c, const char *s) {
    bool device = strcmp(s, "device") == 0;
    if (!device && strcmp(s, "host") != 0) return false;
    return gnnc_trainer_set_int(c->t, "device_features", device) == GNNC_OK;
}

static bool parse_products(RtCli *c, const char *s) {
    bool grouped = strcmp(s, "grouped") == 0;
    if (!grouped && strcmp(s, "single") != 0) return false;
    return gnnc_trainer_set_int(c->t, "group_products", grouped) == GNNC_OK;
}

/* "host", "device", or both: "check". */
static bool parse_who(RtCli *c, const char *s, const char *device_option,
                      const char *check_option) {
    bool check = strcmp(s, "check") == 0, device = check || strcmp(s, "device") == 0;
    if (!device && strcmp(s, "host") != 0) return false;
    return gnnc_trainer_set_int(c->t, device_option, device) == GNNC_OK &&
           gnnc_trainer_set_int(c->t, check_option, check) == GNNC_OK;
}

static int trainer_option(RtCli *c, const RtCliOption *o, const char *value, bool parsed,
                          gnnc_status st) {
    if (!parsed)
        return rt_cli_usage(c, "%s: '%s' is %s", o->name, value,
                            o->kind == RT_OPT_REAL  ? "not a number"
                            : o->kind == RT_OPT_INT ? "not a whole number"
                                                    : "no number of bytes: 2000, 64K, 4G");
    return st == GNNC_OK ? RT_EXIT_OK
                         : rt_cli_usage(c, "%s: %s", o->name, gnnc_trainer_error(c->t));
}

static int set_option(RtCli *c, const RtCliOption *o, const char *v) {
    int64_t n = 0;
    double x = 0;
    bool ok;
    switch (o->kind) {
    case RT_OPT_TEXT:
        memcpy((char *)c + o->offset, &v, sizeof v);
        return RT_EXIT_OK;
    case RT_OPT_COUNT:
        ok = parse_int(v, &n) && n >= 0;
        memcpy((char *)c + o->offset, &n, sizeof n);
        return ok ? RT_EXIT_OK
                  : rt_cli_usage(c, "%s: '%s' is no whole number from 0 on", o->name, v);
    case RT_OPT_INT:
    case RT_OPT_BYTES:
        ok = o->kind == RT_OPT_INT ? parse_int(v, &n) : parse_bytes(v, &n);
        if (ok && strcmp(o->option, "epochs") == 0) c->n_epochs = n;
        return trainer_option(c, o, v, ok, ok ? gnnc_trainer_set_int(c->t, o->option, n) : GNNC_OK);
    case RT_OPT_REAL:
        ok = parse_real(v, &x);
        return trainer_option(c, o, v, ok,
                              ok ? gnnc_trainer_set_real(c->t, o->option, x) : GNNC_OK);
    case RT_OPT_LOG:
        return parse_log(c, v) ? RT_EXIT_OK
                               : rt_cli_usage(c, "--log: '%s' is not text, json or none", v);
    case RT_OPT_SHAPES:
        return parse_shapes(c, v) ? RT_EXIT_OK
                                  : rt_cli_usage(c, "--shapes: '%s' is not dynamic or buckets", v);
    case RT_OPT_FEATURES:
        return parse_features(c, v) ? RT_EXIT_OK
                                    : rt_cli_usage(c, "--features: '%s' is not device or host", v);
    case RT_OPT_PRODUCTS:
        return parse_products(c, v)
                   ? RT_EXIT_OK
                   : rt_cli_usage(c, "--products: '%s' is not grouped or single", v);
    case RT_OPT_SAMPLER:
        return parse_who(c, v, "device_sampler", "check_sampler")
                   ? RT_EXIT_OK
                   : rt_cli_usage(c, "--sampler: '%s' is not host, device or check", v);
    case RT_OPT_MAPS:
        return parse_who(c, v, "device_maps", "check_maps")
                   ? RT_EXIT_OK
                   : rt_cli_usage(c, "--maps: '%s' is not host, device or check", v);
    case RT_OPT_DEVICE:
        return trainer_option(c, o, v, true, gnnc_trainer_set_device(c->t, v));
    case RT_OPT_FLAG:
        *(bool *)((char *)c + o->offset) = true;
        return RT_EXIT_OK;
    case RT_OPT_HELP:
        c->command = RT_CMD_HELP;
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
    const RtCliOption *o = strcmp(arg, "-h") == 0
                               ? find_option("--help", 6)
                               : find_option(arg, eq ? (size_t)(eq - arg) : strlen(arg));
    if (!o) return unknown_option(c, arg);
    if (!o->value && eq) return rt_cli_usage(c, "%s takes no value", o->name);
    if (!o->value) return set_option(c, o, NULL);
    if (eq) return set_option(c, o, eq + 1);
    if (*i + 1 >= argc) return rt_cli_usage(c, "%s needs a value", o->name);
    return set_option(c, o, argv[++*i]);
}

static int parse_word(RtCli *c, const char *word, int at) {
    static const char *const name[] = {"train", "eval", "predict", "embed",
                                       "bench", "tune", "info"};
    for (int k = 0; at == 0 && k < 7; k++)
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
                        "info, help%s",
                        word, access(word, F_OK) == 0 ? "; data are given by --data DIR" : "");
}

static int check_needs(RtCli *c) {
    if (c->command == RT_CMD_HELP || c->command == RT_CMD_VERSION) return RT_EXIT_OK;
    const rt_sampling *how = &c->p->sampling;
    bool by_time = how->train_links != RT_LINKS_NONE && how->n_times;
    if (c->command == RT_CMD_EMBED && by_time && !rt_phase_of(c->p, RT_PHASE_EMBED))
        return rt_cli_usage(c, "what this model computes of a node depends on the time of a link: "
                               "it embeds nothing");
    if (!c->data && c->command != RT_CMD_INFO)
        return rt_cli_usage(c, "--data DIR is needed: the directory with the graph");
    if (c->command == RT_CMD_BENCH && c->n_epochs == 0)
        return rt_cli_usage(c, "bench times at least one step: --epochs N");
    bool uses =
        c->command == RT_CMD_EVAL || c->command == RT_CMD_PREDICT || c->command == RT_CMD_EMBED;
    if (uses && !c->weights)
        return rt_cli_usage(c, "--weights FILE is needed: a checkpoint or PyG's weights");
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
    if (c->tf32) gnnc_trainer_set_int(c->t, "tf32", 1);
    if (c->no_amx) gnnc_trainer_set_int(c->t, "amx", 0);
    if (c->check_times) gnnc_trainer_set_int(c->t, "check_times", 1);
    if (c->spill) gnnc_trainer_set_int(c->t, "spill", 1);
    if (c->force) gnnc_trainer_set_int(c->t, "other_data", 1);
    if (c->no_tuned) gnnc_trainer_set_int(c->t, "tuned", 0);
    return check_needs(c);
}
