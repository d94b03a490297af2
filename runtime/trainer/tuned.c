/* DATA/tuned.json: one entry per program and machine, replaced as a whole.
 *
 *   {"tuned": [{"program": "<fingerprint>", "machine": "x86-64-v4, 2 cores",
 *               "threads": 2, "serial_ns": 20000, "variant": 0, "step_ms": 0.51}, ..]} */
#include "tuned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "runtime/data/io.h"
#include "runtime/data/json.h"
#include "runtime/exec/cpu.h"
#include "runtime/exec/machine.h"

/* ---- entries ----------------------------------------------------------------------------- */
typedef struct {
    const char *program, *machine, *path;
} Key;

/* What a tuned setting holds for: the program, and the machine with its cores. False: no memory. */
static bool key_of(gnnc_trainer *t, RtPool *pool, const char *dir, Key *k) {
    const char *kind = rt_machine_kind(pool, &t->rt);
    k->program = rt_pool_printf(pool, "%016" PRIx64, t->program->fingerprint);
    k->machine = rt_pool_printf(pool, "%s, %d cores", kind ? kind : "", rt_usable_cores());
    k->path = rt_pool_printf(pool, "%s/tuned.json", dir);
    return kind && k->program && k->machine && k->path;
}

static bool text_is(const RtJson *e, const char *name, const char *value) {
    const RtJson *v = rt_json_get(e, name);
    return v && v->kind == RT_JSON_STRING && strcmp(v->text, value) == 0;
}

static bool is_entry_of(const RtJson *e, const Key *k) {
    return text_is(e, "program", k->program) && text_is(e, "machine", k->machine);
}

/* Reads a whole number of an entry; false: it has none. */
static bool get_int(const RtJson *e, const char *name, int64_t *v) {
    const RtJson *x = rt_json_get(e, name);
    if (!x || x->kind != RT_JSON_NUMBER || !x->is_int) return false;
    *v = x->i;
    return true;
}

/* The array of entries, NULL where there is no file; a failure is recorded in err. */
static const RtJson *read_entries(RtPool *pool, const Key *k, RtError *err) {
    RtBytes text;
    RtJson *root;
    if (access(k->path, F_OK) != 0) return NULL;
    if (rt_file_read(pool, k->path, &text, err) != GNNC_OK) return NULL;
    if (rt_json_parse(pool, text, k->path, &root, err) != GNNC_OK) return NULL;
    const RtJson *list = rt_json_get(root, "tuned");
    if (list && list->kind == RT_JSON_ARRAY) return list;
    rt_fail(err, GNNC_E_FORMAT, "%s: no list \"tuned\"", k->path);
    return NULL;
}

/* Reads an entry of tuned.json; a broken one (false) leaves *out as it is. */
static bool read_choice(const RtJson *e, RtChoice *out) {
    RtChoice c = *out;
    if (!get_int(e, "threads", &c.threads) || !get_int(e, "serial_ns", &c.serial_ns)) return false;
    if (!get_int(e, "variant", &c.variant)) c.variant = -1;
    if (c.threads < 1 || c.threads > 4096 || c.serial_ns < 0) return false;
    if (c.variant < -1 || c.variant >= RT_MAX_VARIANTS) return false;
    *out = c;
    return true;
}

bool rt_tuned_find(gnnc_trainer *t, const char *dir, RtChoice *out) {
    RtPool pool;
    RtError err = {""};
    Key k;
    bool found = false;
    rt_pool_init(&pool, &t->outer);
    if (key_of(t, &pool, dir, &k)) {
        const RtJson *list = read_entries(&pool, &k, &err);
        for (const RtJson *e = list ? list->first : NULL; e && !found; e = e->next)
            found = is_entry_of(e, &k) && read_choice(e, out);
        /* A data directory comes from anywhere: it must not start threads by the thousand. */
        int64_t cores = rt_usable_cores();
        if (found && out->threads > cores) out->threads = cores;
    }
    if (err.text[0]) rt_message(&t->rt, "%s (ignored)", err.text);
    rt_pool_free(&pool);
    return found;
}

/* ---- writing ----------------------------------------------------------------------------- */
/* Writes an entry of tuned.json; false: no memory. */
static bool put_entry(RtText *b, bool first, const char *program, const char *machine,
                      const RtChoice *c, double step_ms) {
    return rt_text_printf(b, "%s\n  {\"program\": ", first ? "" : ",") &&
           rt_text_json_string(b, program) && rt_text_printf(b, ", \"machine\": ") &&
           rt_text_json_string(b, machine) &&
           rt_text_printf(b,
                          ", \"threads\": %lld, \"serial_ns\": %lld, "
                          "\"variant\": %lld, \"step_ms\": %.4f}",
                          (long long)c->threads, (long long)c->serial_ns, (long long)c->variant,
                          step_ms);
}

/* Entries of other programs and machines stay as they are; broken ones go. */
static bool put_others(RtText *b, const RtJson *list, const Key *k) {
    bool ok = true;
    for (const RtJson *e = list ? list->first : NULL; e && ok; e = e->next) {
        const RtJson *p = rt_json_get(e, "program"), *m = rt_json_get(e, "machine");
        const RtJson *ms = rt_json_get(e, "step_ms");
        RtChoice c = {0};
        bool whole = p && m && ms && p->kind == RT_JSON_STRING && m->kind == RT_JSON_STRING &&
                     ms->kind == RT_JSON_NUMBER && read_choice(e, &c);
        if (whole && !is_entry_of(e, k)) ok = put_entry(b, false, p->text, m->text, &c, ms->number);
    }
    return ok;
}

/* Writes tuned.json; until it is complete the old file stays. */
static gnnc_status write_text(gnnc_trainer *t, const Key *k, const RtText *b) {
    RtOut o;
    gnnc_status st = rt_out_open(&o, &t->outer, k->path, &t->rt.err);
    if (st != GNNC_OK) return st;
    st = rt_out_write(&o, b->s, b->n, &t->rt.err);
    if (st == GNNC_OK) st = rt_out_commit(&o, &t->rt.err);
    if (st != GNNC_OK) rt_out_abort(&o);
    return st;
}

gnnc_status rt_tuned_keep(gnnc_trainer *t, const char *dir, const RtChoice *c, double step_ms) {
    RtPool pool;
    RtError ignored = {""};
    Key k;
    rt_pool_init(&pool, &t->outer);
    RtText b = {.pool = &pool};
    bool ok = key_of(t, &pool, dir, &k);
    const RtJson *list = ok ? read_entries(&pool, &k, &ignored) : NULL;
    ok = ok && rt_text_printf(&b, "{\"tuned\": [") &&
         put_entry(&b, true, k.program, k.machine, c, step_ms) && put_others(&b, list, &k) &&
         rt_text_printf(&b, "\n]}\n");
    gnnc_status st = ok ? write_text(t, &k, &b) : rt_fail_nomem(&t->rt.err, "tuned.json");
    rt_pool_free(&pool);
    return st;
}
