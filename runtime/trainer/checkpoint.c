/* Checkpoints: one safetensors file, replaced atomically, that any reader of PyG weights
 * can use and from which training goes on to the same bits.
 *
 *     <path>            the kept parameters and states (best epoch so far), PyG's names
 *     train.<path>      those of the last step, where they differ from the kept ones
 *     opt.*             optimizer state, as the program names it
 *     train.history     f64 [epochs, scalars]: every epoch's metrics; one row more where the steps
 *                       of an epoch are done and its evaluation is not
 *     metadata          which program and machine, and where training stands
 *
 * Nothing in it depends on the clock or the thread count, so equal runs write equal
 * files.  Real numbers are written as their bits: exact, whatever the host's locale. */
#include "checkpoint.h"
#include "init.h"
#include "model_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/batch/train_batches.h"
#include "runtime/batch/train_shares.h"
#include "tuned.h"

#include "runtime/bind/bind.h"
#include "runtime/model/codes.h"
#include "runtime/model/training_metadata.h"
#include "runtime/device/device.h"
#include "runtime/exec/distributed.h"
#include "runtime/exec/machine.h"
#include "runtime/variant.h"

enum { N_META = 32 };

typedef struct {
    gnnc_trainer *t;
    RtPool pool;
    RtTensors f;
    const char *path; /* what messages call it */
    bool nomem;
} File;

/* ---- what identifies a run ------------------------------------------------------- */
static const char *program_text(gnnc_trainer *t, RtPool *pool) {
    return rt_pool_printf(pool, "%016" PRIx64, t->program->fingerprint);
}

/* Writes the sizes of the data that a checkpoint belongs to, "paper=2708 F=1433 ..". Stored entries
 * are none of them: a variant that reads dense rows has not counted them (passes/density.c). */
static const char *sizes_text(gnnc_trainer *t, RtPool *pool) {
    char *text = rt_pool_printf(pool, "%s", "");
    for (int s = 0; s < t->program->n_spaces && text; s++) {
        const rt_space *sp = &t->program->spaces[s];
        if (sp->sym < 0 || (sp->kind == RT_SP_EDGE && sp->rel != RT_REL_BASE)) continue;
        if (sp->kind == RT_SP_NZ) continue;
        text = rt_pool_printf(pool, "%s%s%s=%" PRId64, text, *text ? " " : "", sp->name,
                              t->x.n[sp->sym]);
    }
    return text;
}

static const char *data_text(gnnc_trainer *t, RtPool *pool) {
    return rt_pool_printf(pool, "%016" PRIx64, t->rt.bound->fingerprint);
}

/* ---- writing --------------------------------------------------------------------------- */
/* A value of any length: NULL is a failed allocation. */
static void put_meta(File *o, const char *key, const char *value) {
    o->nomem |= !value;
    o->f.meta[o->f.n_meta++] = (RtMeta){key, value};
}

static void put_int(File *o, const char *key, int64_t v) {
    put_meta(o, key, rt_pool_printf(&o->pool, "%" PRId64, v));
}

/* Notes a number by its bits, so that it is read back as it was. */
static void put_real(File *o, const char *key, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_meta(o, key, rt_pool_printf(&o->pool, "%016" PRIx64, bits));
}

/* Adds a tensor, called by its prefix and name, to the file that is written. */
static void put_tensor(File *o, const char *prefix, const char *name, RtArray a) {
    const char *full = rt_pool_printf(&o->pool, "%s%s", prefix, name);
    o->nomem |= !full;
    o->f.v[o->f.n++] = (RtTensor){full, a};
}

/* Notes what the checkpoint is of: model, program, options, machine, sizes and data. Resuming
 * compares it. */
static void put_identity(File *o) {
    gnnc_trainer *t = o->t;
    put_meta(o, "gnnc_checkpoint", "1");
    put_meta(o, "model", t->program->name);
    put_meta(o, "program", program_text(t, &o->pool));
    put_meta(o, "compiler", t->program->compiler);
    put_meta(o, "options", t->program->options);
    put_meta(o, "machine", rt_machine_kind(&o->pool, &t->rt));
    put_meta(o, "sizes", sizes_text(t, &o->pool));
    put_meta(o, "data", data_text(t, &o->pool));
}

/* Notes how far training is, with the options and the state of the schedule that it goes on by. */
static void put_progress(File *o) {
    gnnc_trainer *t = o->t;
    const RtProgress *p = &t->progress;
    put_int(o, "seed", t->options.seed);
    put_int(o, "split", t->options.split);
    put_int(o, "epochs", t->options.epochs);
    put_real(o, "lr", t->options.lr);
    put_real(o, "weight_decay", t->options.weight_decay);
    put_int(o, "epoch", p->epoch);
    put_int(o, "step", p->step);
    put_int(o, "best_epoch", p->best_epoch);
    if (p->best_step) put_int(o, "best_step", p->best_step);
    put_real(o, "best", p->best);
    put_int(o, "plateau_started", p->plateau.started);
    put_real(o, "plateau_lr", p->plateau.lr);
    put_real(o, "plateau_best", p->plateau.best);
    put_int(o, "plateau_bad", p->plateau.n_bad);
    if (!t->batches) return;
    put_meta(o, "batches", rt_batches_text(t, &o->pool));
    put_real(o, "loss_sum", p->loss_sum);
    put_int(o, "loss_rows", p->loss_rows);
}

/* Notes the names of categories, classes and rows that parameters are for. */
static void put_names(File *o) {
    int n;
    o->nomem |= rt_codes_put(&o->t->x, &o->pool, o->f.meta + o->f.n_meta, &n) != GNNC_OK;
    o->f.n_meta += n;
}

/* Notes the metrics of the kept parameters. */
static void put_reached(File *o) {
    const gnnc_trainer *t = o->t;
    const double *then = t->progress.best_epoch ? t->best_values : NULL;
    o->nomem |= rt_training_metadata_put(t, then, &o->pool, o->f.meta, &o->f.n_meta) != GNNC_OK;
}

/* Adds a variable's value to the file, in its outside shape. */
static void put_variable(File *o, const char *prefix, int var, const void *data) {
    RtArray a = rt_var_array(o->t, &o->pool, var, data);
    o->nomem |= data && !a.data;
    put_tensor(o, prefix, o->t->program->vars[var].path, a);
}

/* Adds parameters and states (those that are kept, and as "train." those of now where they differ),
 * the optimizer's state and the history of the metrics. */
static void put_variables(File *o) {
    gnnc_trainer *t = o->t;
    const rt_program *p = t->program;
    for (int i = 0; i < t->n_shown; i++) {
        const rt_var *v = &p->vars[t->shown[i]];
        void *kept = rt_best_value(t, i), *now = t->x.buf[v->buf];
        put_variable(o, "", t->shown[i], kept);
        if (kept != now) put_variable(o, "train.", t->shown[i], now);
    }
    for (int v = 0; v < p->n_vars; v++)
        if (p->vars[v].kind == RT_VAR_SLOT && p->vars[v].buf >= 0)
            put_variable(o, "", v, t->x.buf[p->vars[v].buf]);
    int64_t rows = t->progress.epoch + t->trained;
    if (t->trained) rt_history_note(t, t->progress.epoch);
    RtArray history = {.dt = RT_DT_F64,
                       .rank = 2,
                       .shape = {rows, t->n_scalars},
                       .count = rows * t->n_scalars,
                       .data = t->history.v};
    put_tensor(o, "", "train.history", history);
}

/* Puts all of a checkpoint together and writes it. */
static gnnc_status write_file(File *o, const RtTarget *to) {
    gnnc_trainer *t = o->t;
    o->f.v = RT_NEWN(&o->pool, RtTensor, 2 * t->program->n_vars + 1);
    o->f.meta = RT_NEWN(&o->pool, RtMeta, N_META + rt_codes_capacity(t->program));
    if (!o->f.v || !o->f.meta) return rt_fail_nomem(&t->rt.err, o->path);
    put_identity(o);
    put_progress(o);
    put_names(o);
    put_reached(o);
    put_variables(o);
    if (o->nomem) return rt_fail_nomem(&t->rt.err, o->path);
    return rt_target_write(t, to, &o->f);
}

/* Whether this process lacks rows of the optimizer's state, which only the first one gets. */
static bool lacks_rows(const gnnc_trainer *t) {
    if (!rt_dist_several(&t->x) || t->rt.dist->rank == 0) return false;
    for (int i = 0; i < t->program->n_exchanges; i++)
        if (t->program->exchanges[i].to_first) return true;
    return false;
}

/* Writes a checkpoint, once all steps that were begun are done and values are on the host. */
static gnnc_status save(gnnc_trainer *t, const RtTarget *to) {
    rt_trainer_begin(t);
    gnnc_status st = rt_trainer_need_data(t);
    if (st != GNNC_OK) return st;
    if (lacks_rows(t))
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the first process saves: it alone has the optimizer's state of all rows");
    if (t->finished)
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the state of training is gone once the kept parameters are in place");
    if (t->stepped && !t->trained) /* who resumes from that would train the epoch once more */
        return rt_fail(&t->rt.err, GNNC_E_STATE,
                       "the steps of epoch %lld are done, but what they leave did not come: save "
                       "once it has ended",
                       (long long)t->progress.epoch + 1);
    File o = {.t = t, .path = to->name};
    st = rt_batches_settle(t);
    if (st == GNNC_OK) st = rt_shares_settle(t);
    if (st == GNNC_OK) st = rt_pull_vars(&t->x);
    if (st == GNNC_OK) st = rt_device_best_pull(&t->x, t->best, t->best_bytes);
    if (st != GNNC_OK) return st;
    rt_pool_init(&o.pool, &t->rt.pool.from);
    st = write_file(&o, to);
    rt_pool_free(&o.pool);
    return st;
}

gnnc_status gnnc_trainer_save(gnnc_trainer *t, const char *path) {
    RT_NOT_NULL(t, path);
    return save(t, &(RtTarget){.name = path});
}

gnnc_status gnnc_trainer_save_to(gnnc_trainer *t, gnnc_write_fn *write, void *user) {
    RT_NOT_NULL(t, write);
    return save(t, &(RtTarget){"a checkpoint", write, user});
}

/* ---- reading ------------------------------------------------------------------------------ */
static gnnc_status bad(File *o, const char *what) {
    return rt_fail(&o->t->rt.err, GNNC_E_FORMAT, "%s: %s", o->path, what);
}

static gnnc_status bad_meta(File *o, const char *key) {
    return rt_fail(&o->t->rt.err, GNNC_E_FORMAT, "%s: metadata '%s' is missing or malformed",
                   o->path, key);
}

/* Reads a whole number that the checkpoint must have. */
static gnnc_status get_int(File *o, const char *key, int64_t *v) {
    const char *text = rt_tensors_meta(&o->f, key);
    char *end = NULL;
    if (text) *v = strtoll(text, &end, 10);
    return text && end != text && !*end ? GNNC_OK : bad_meta(o, key);
}

/* Reads a number that the checkpoint must have, from its bits. */
static gnnc_status get_real(File *o, const char *key, double *v) {
    const char *text = rt_tensors_meta(&o->f, key);
    char *end = NULL;
    uint64_t bits = text ? strtoull(text, &end, 16) : 0;
    memcpy(v, &bits, sizeof bits);
    return text && end != text && !*end ? GNNC_OK : bad_meta(o, key);
}

/* Fails if the checkpoint has another value for `key` than this run; `what` is its name in the
 * message. */
static gnnc_status check_same(File *o, const char *key, const char *want, const char *what) {
    const char *has = rt_tensors_meta(&o->f, key);
    if (has && strcmp(has, want) == 0) return GNNC_OK;
    return rt_fail(&o->t->rt.err, GNNC_E_ARG, "%s: the checkpoint is of another %s: '%s', not '%s'",
                   o->path, what, has ? has : "", want);
}

/* Sizes first, as they say more.  A file from before contents were noted holds sizes alone. */
static gnnc_status check_data(File *o) {
    gnnc_trainer *t = o->t;
    const char *sizes = sizes_text(t, &o->pool), *data = data_text(t, &o->pool);
    if (!sizes || !data) return rt_fail_nomem(&t->rt.err, o->path);
    const char *had = rt_tensors_meta(&o->f, "data");
    if (t->options.other_data) {
        if (had && strcmp(had, data) != 0)
            rt_message(&t->rt, "%s was written on other data", o->path);
        return GNNC_OK;
    }
    gnnc_status st = check_same(o, "sizes", sizes, "data set");
    if (st != GNNC_OK || !had || strcmp(had, data) == 0) return st;
    return rt_fail(&t->rt.err, GNNC_E_ARG,
                   "%s: the checkpoint is of other data: the sizes agree, the contents do not; "
                   "--force goes on with these",
                   o->path);
}

/* The value of --precision among the options of a compiler; f32 where they have none, or one that
 * makes the same program. */
static const char *precision_of(RtPool *pool, const char *options) {
    static const char flag[] = "--precision=", tf32[] = "--precision=tf32";
    const char *at = options ? strstr(options, flag) : NULL;
    if (!at || strncmp(at, tf32, sizeof tf32 - 1) == 0) return "f32";
    at += sizeof flag - 1;
    return rt_pool_printf(pool, "%.*s", (int)strcspn(at, " "), at);
}

/* Is the checkpoint of the same computation, whatever its file is called? Another precision makes
 * another program of the same model. */
static gnnc_status check_program(File *o, const char *program) {
    gnnc_trainer *t = o->t;
    const char *had = rt_tensors_meta(&o->f, "program");
    if (had && strcmp(had, program) == 0) return GNNC_OK;
    gnnc_status st = check_same(o, "model", t->program->name, "model");
    if (st != GNNC_OK) return st;
    const char *was = precision_of(&o->pool, rt_tensors_meta(&o->f, "options")),
               *is = precision_of(&o->pool, t->program->options);
    if (!was || !is) return rt_fail_nomem(&t->rt.err, o->path);
    if (strcmp(was, is) == 0) return check_same(o, "program", program, "version of the model");
    return rt_fail(&t->rt.err, GNNC_E_ARG,
                   "%s: the checkpoint is of a program compiled with --precision=%s, and this one "
                   "was with %s: compile with %s, and all else as it was, to go on, or begin with "
                   "its parameters by --weights",
                   o->path, was, is, was);
}

/* Says why training goes on in another variant than the one that wrote the checkpoint. */
static void tell_other_variant(File *o) {
    const gnnc_trainer *t = o->t;
    int64_t was = rt_variant_recorded(&o->f);
    if (was == t->variant || t->rt.device) return;
    if (was < 0) {
        if (rt_variant_is_in_f32(t->first_program, t->variant))
            rt_message(&o->t->rt,
                       "%s records no variant of the program: it was made in 16 bits, and variant "
                       "%d goes on in f32: the data are loaded already",
                       o->path, t->variant);
        return;
    }
    const char *why = was >= t->first_program->n_variants ? "this program has no such variant"
                      : t->options.set[RT_OPTION_variant] ? "the option 'variant' says so"
                      : was == t->preferred               ? "the other one does not fit in memory"
                                                          : "the data are loaded already";
    rt_message(&o->t->rt,
               "%s was written by variant %" PRId64
               " of the program; variant %d goes on, whose last bits may differ: %s",
               o->path, was, t->variant, why);
}

/* Is the checkpoint of this program, data, split and way to make batches? Another kind of machine
 * is only told. */
static gnnc_status check_identity(File *o) {
    gnnc_trainer *t = o->t;
    if (!rt_tensors_meta(&o->f, "gnnc_checkpoint"))
        return bad(o, "no checkpoint of a trainer (weights alone are loaded with --weights)");
    const char *program = program_text(t, &o->pool);
    const char *split = rt_pool_printf(&o->pool, "%" PRId64, t->options.split);
    if (!program || !split) return rt_fail_nomem(&t->rt.err, o->path);
    gnnc_status st;
    TRY(st, check_program(o, program));
    TRY(st, rt_model_options_check(t, o->path, &o->f));
    TRY(st, check_data(o));
    TRY(st, check_same(o, "split", split, "split"));
    if (t->batches) {
        const char *batches = rt_batches_text(t, &o->pool);
        if (!batches) return rt_fail_nomem(&t->rt.err, o->path);
        TRY(st, check_same(o, "batches", batches, "way to make batches"));
    }
    tell_other_variant(o);
    const char *machine = rt_tensors_meta(&o->f, "machine"),
               *here = rt_machine_kind(&o->pool, &t->rt);
    if (machine && here && strcmp(machine, here) != 0)
        rt_message(&t->rt, "%s was written on %s; on %s the last bits may differ", o->path, machine,
                   here);
out:
    return st;
}

/* Is the kept epoch one that is done, or steps of one that began? */
static bool is_best_possible(const gnnc_trainer *t, const RtProgress *p) {
    int64_t n = rt_batches_per_epoch(t), began = p->step / n, done = p->best_epoch;
    if (done < 0 || p->best_step < 0 || p->best_step >= n) return false;
    if (!p->best_step) return done <= p->epoch;
    return done-- > 0 && (done < began || (done == began && p->best_step <= p->step % n));
}

/* Reads how far training was, and its options, where the user set no other ones. */
static gnnc_status get_progress(File *o, RtProgress *p, RtOptions *opt) {
    int64_t started = 0;
    RtOptions was = *opt;
    gnnc_status st;
    TRY(st, get_int(o, "seed", &was.seed));
    TRY(st, get_int(o, "epochs", &was.epochs));
    TRY(st, get_real(o, "lr", &was.lr));
    TRY(st, get_real(o, "weight_decay", &was.weight_decay));
    TRY(st, get_int(o, "epoch", &p->epoch));
    TRY(st, get_int(o, "step", &p->step));
    TRY(st, get_int(o, "best_epoch", &p->best_epoch));
    if (rt_tensors_meta(&o->f, "best_step")) TRY(st, get_int(o, "best_step", &p->best_step));
    TRY(st, get_real(o, "best", &p->best));
    TRY(st, get_int(o, "plateau_started", &started));
    TRY(st, get_real(o, "plateau_lr", &p->plateau.lr));
    TRY(st, get_real(o, "plateau_best", &p->plateau.best));
    TRY(st, get_int(o, "plateau_bad", &p->plateau.n_bad));
    p->plateau.started = started != 0;
    if (o->t->batches) {
        TRY(st, get_real(o, "loss_sum", &p->loss_sum));
        TRY(st, get_int(o, "loss_rows", &p->loss_rows));
    }
    if (opt->set[RT_OPTION_seed] && opt->seed != was.seed)
        return rt_fail(&o->t->rt.err, GNNC_E_ARG,
                       "%s: the checkpoint is of another seed: %" PRId64 ", not %" PRId64, o->path,
                       was.seed, opt->seed);
    opt->seed = was.seed;
    if (!opt->set[RT_OPTION_epochs]) opt->epochs = was.epochs;
    if (!opt->set[RT_OPTION_lr]) opt->lr = was.lr;
    if (!opt->set[RT_OPTION_weight_decay]) opt->weight_decay = was.weight_decay;
    if (was.epochs < 0 || was.epochs > RT_MAX_EPOCHS || p->epoch < 0 || p->epoch > RT_MAX_EPOCHS ||
        p->step < 0 || p->step > RT_MAX_EPOCHS || !is_best_possible(o->t, p))
        st = bad(o, "impossible epoch numbers");
out:
    return st;
}

/* Tensor "<prefix><name>", without building the name: this must not fail for memory. */
static RtTensor *find(const File *o, const char *prefix, const char *name) {
    size_t n = strlen(prefix);
    for (int i = 0; i < o->f.n; i++)
        if (!strncmp(o->f.v[i].name, prefix, n) && !strcmp(o->f.v[i].name + n, name))
            return &o->f.v[i];
    return NULL;
}

/* The tensor that holds the value at the last step. */
static RtTensor *present_of(File *o, int var) {
    RtTensor *f = find(o, "train.", o->t->program->vars[var].path);
    return f ? f : find(o, "", o->t->program->vars[var].path);
}

/* Is a state of the loss scale one that steps write (passes/loss_scale.c)? Another would let no
 * later step learn, or all of them be wrong: gradients times 0, or divided by it. */
static gnnc_status check_scale(const File *o, rt_var_role role, const RtTensor *f) {
    static const struct {
        rt_var_role role;
        double least, most;
    } known[] = {{RT_ROLE_LOSS_SCALE, 1, 16777216},
                 {RT_ROLE_GOOD_STEPS, 0, 2000},
                 {RT_ROLE_SKIPPED_STEPS, 0, 16777216}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (role != known[i].role) continue;
        double x = (double)*(const float *)f->a.data;
        if (!(x >= known[i].least && x <= known[i].most))
            return rt_fail(&o->t->rt.err, GNNC_E_RANGE, "%s: '%s' is %g, not between %.0f and %.0f",
                           o->path, f->name, x, known[i].least, known[i].most);
    }
    return GNNC_OK;
}

/* A variant in f32 has no loss scale: one that goes on from it in f16 begins with a new one. */
static bool may_lack(const File *o, int var) {
    rt_var_role role = o->t->program->vars[var].role;
    return rt_variant_recorded(&o->f) != o->t->variant &&
           (role == RT_ROLE_LOSS_SCALE || role == RT_ROLE_GOOD_STEPS ||
            role == RT_ROLE_SKIPPED_STEPS);
}

/* Checks that the file has a tensor of the right shape for each variable, kept and of now, and the
 * history of all epochs. */
static gnnc_status fit_tensors(File *o, const RtProgress *p, const RtTensor **history) {
    gnnc_trainer *t = o->t;
    for (int v = 0; v < t->program->n_vars; v++) {
        if (t->program->vars[v].buf < 0 || t->program->vars[v].kind == RT_VAR_KEPT) continue;
        RtTensor *f[2] = {present_of(o, v), find(o, "", t->program->vars[v].path)};
        for (int k = 0; k < 2; k++) {
            if (!f[k] && may_lack(o, v)) continue;
            if (!f[k])
                return rt_fail(&t->rt.err, GNNC_E_MISSING, "%s: '%s' is missing", o->path,
                               t->program->vars[v].path);
            gnnc_status st = rt_tensor_fit(t, &o->pool, o->path, f[k], v);
            if (st == GNNC_OK) st = check_scale(o, t->program->vars[v].role, f[k]);
            if (st != GNNC_OK) return st;
        }
    }
    const RtTensor *h = *history = find(o, "", "train.history");
    bool trained = h && h->a.shape[0] == p->epoch + 1,
         whole = p->step > 0 && p->step % rt_batches_per_epoch(t) == 0;
    bool ok = h && h->a.dt == RT_DT_F64 && h->a.rank == 2 && h->a.shape[1] == t->n_scalars &&
              (trained ? whole : h->a.shape[0] == p->epoch);
    return ok ? GNNC_OK : bad(o, "the history of the epochs does not fit");
}

/* Copies the file's values to the variables, and those of the best epoch to where they are kept. */
static void store_tensors(File *o, bool has_best) {
    gnnc_trainer *t = o->t;
    const rt_var *vars = t->program->vars;
    for (int v = 0; v < t->program->n_vars; v++) {
        if (vars[v].buf < 0 || vars[v].kind == RT_VAR_KEPT) continue;
        const RtTensor *f = present_of(o, v);
        if (f)
            rt_tensor_store(t, f, v, t->x.buf[vars[v].buf]);
        else /* whatever this trainer's own steps have made of it */
            rt_init_var(&t->x, v, (uint64_t)t->options.seed);
    }
    for (int i = 0; i < t->n_shown && has_best; i++)
        rt_tensor_store(t, find(o, "", vars[t->shown[i]].path), t->shown[i], rt_best_value(t, i));
}

/* Restores the metrics of all epochs, and shows those of the last. */
static void store_history(gnnc_trainer *t, const RtTensor *h) {
    size_t n = (size_t)h->a.count;
    if (n) memcpy(t->history.v, h->a.data, n * sizeof(double));
    for (int i = 0; n && i < t->n_scalars; i++) {
        double v = t->history.v[n - (size_t)t->n_scalars + (size_t)i];
        t->scalars[i].value = v;
        t->scalars[i].known = !isnan(v);
    }
}

/* Restores the metrics of what is kept. Where no epoch is, they are the parameters' own, as they
 * were judged last: at the end of an epoch, or since, when the host asked. */
static void store_reached(gnnc_trainer *t, const RtMetricValue *r, int n) {
    bool kept = t->progress.best_epoch != 0;
    t->judged = kept ? !t->ahead : n > 0;
    for (int i = 0; i < t->n_scalars; i++) t->best_values[i] = NAN;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < t->n_scalars; i++) {
            if (strcmp(t->scalars[i].name, r[k].name) != 0) continue;
            t->best_values[i] = r[k].value;
            if (kept) continue;
            t->scalars[i].value = r[k].value;
            t->scalars[i].known = true;
        }
}

static int64_t began_epochs(const gnnc_trainer *t) {
    int64_t n = rt_batches_per_epoch(t);
    return t->progress.step / n + (t->progress.step % n > 0);
}

/* Restores a trainer from a checkpoint. All is read and checked first, so that a bad file changes
 * nothing. */
static gnnc_status resume(File *o, const RtSource *from) {
    gnnc_trainer *t = o->t;
    RtProgress p = {0};
    RtOptions opt = t->options;
    const RtTensor *history = NULL;
    RtMetricValue *reached;
    int n_reached;
    gnnc_status st;
    TRY(st, rt_source_read(&o->pool, from, &o->f, &t->rt.err));
    TRY(st, check_identity(o));
    TRY(st, rt_codes_check(t, o->path, &o->f));
    TRY(st, rt_node_rows(t, &o->pool, o->path, &o->f));
    TRY(st, get_progress(o, &p, &opt));
    TRY(st, rt_metric_values_read(&o->pool, o->path, &o->f, &reached, &n_reached, &t->rt.err));
    TRY(st, fit_tensors(o, &p, &history));
    TRY(st, rt_history_reserve(t, history->a.shape[0], opt.epochs));
    /* From here nothing can fail: names, types and sizes agree. */
    rt_batches_forget(t);
    rt_dist_forget(&t->x);
    t->progress = p;
    t->options = opt;
    t->schedule.epochs = opt.epochs;
    t->schedule.lr = opt.lr;
    t->finished = false;
    t->stepped = t->trained = history->a.shape[0] > p.epoch;
    t->ahead = began_epochs(t) > p.epoch;
    t->step_judged = false;
    store_history(t, history);
    store_reached(t, reached, n_reached);
    bool has_best = p.best_epoch > 0 && t->best;
    store_tensors(o, has_best);
    rt_push_vars(&t->x);
    if (has_best) st = rt_device_best_push(&t->x, t->best, t->best_bytes);
out:
    return st;
}

/* Restores the trainer from a checkpoint; one that does not fit changes nothing. */
gnnc_status rt_checkpoint_resume(gnnc_trainer *t, const RtSource *from) {
    File o = {.t = t, .path = from->name};
    rt_pool_init(&o.pool, &t->rt.pool.from);
    gnnc_status st = resume(&o, from);
    rt_pool_free(&o.pool);
    return st;
}

/* Resumes; before data are loaded the file is only opened, and read when they are. */
static gnnc_status resume_or_keep(gnnc_trainer *t, const RtSource *from) {
    rt_trainer_begin(t);
    if (!t->planned) return rt_weights_file_open(t, from, true);
    gnnc_status st = rt_trainer_need_data(t);
    return st == GNNC_OK ? rt_checkpoint_resume(t, from) : st;
}

gnnc_status gnnc_trainer_resume(gnnc_trainer *t, const char *path) {
    RT_NOT_NULL(t, path);
    return resume_or_keep(t, &(RtSource){.name = path});
}

gnnc_status gnnc_trainer_resume_from(gnnc_trainer *t, const void *data, size_t n_bytes) {
    RT_NOT_NULL(t, data);
    return resume_or_keep(
        t, &(RtSource){.name = "the checkpoint in memory", .memory = {data, n_bytes}});
}
