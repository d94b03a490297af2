/* calls_fuzz.c: files, what names and codes mean, and the command line. */
#ifndef TESTS_FUZZ_CALLS_FILES_H
#define TESTS_FUZZ_CALLS_FILES_H

#include <fcntl.h>
#include <unistd.h>

#include "calls_lent.h"
#include "runtime/data/npy.h"

static char folder[64]; /* of this process: data, and what calls write */
static Rows of_data;    /* what is in the data */

static const char *path_of(const char *name) {
    static char path[4][128];
    static int n;
    char *to = path[n++ & 3];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static void write_bytes(const char *name, const void *p, size_t n) {
    FILE *f = fopen(path_of(name), "wb");
    MUST(f && (!n || fwrite(p, 1, n, f) == n) && fclose(f) == 0);
}
static Bytes bytes_of(const char *name) {
    Bytes b = {0};
    uint8_t part[4096];
    FILE *f = fopen(path_of(name), "rb");
    MUST(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f));) MUST(put(&b, part, n, 0) == 0);
    fclose(f);
    return b;
}

/* ---- a data directory, whose columns say how they were made -------- */
static void save_array(const char *name, RtDtype dt, int64_t n, int64_t width, const void *p) {
    RtArray a = {.dt = dt, .rank = width ? 2 : 1, .shape = {n, width}, .data = p};
    RtAlloc from = {give, take_back, NULL};
    RtError err;
    a.count = width ? n * width : n;
    MUST(rt_npy_save(&from, path_of(name), &a, &err) == GNNC_OK);
}

static void remove_files(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command)) return;
}

static void first_files(void) {
    static const char schema[] =
        "{\"format\": 1, \"nodes\": {\"v\": {\"count\": 9, \"names\": \"names\", \"columns\": {"
        "\"x\": {\"kind\": \"float\", \"shape\": [9, 2], \"file\": \"x.npy\","
        " \"encoder\": {\"as\": \"number\", \"width\": 2}},"
        "\"kind\": {\"kind\": \"cat\", \"categories\": 3, \"names\": [\"ash\", \"birch\", "
        "\"cedar\"], \"file\": \"kind.npy\", \"encoder\": {\"as\": \"category\", \"from\": "
        "\"k\"}},"
        "\"y\": {\"kind\": \"class\", \"categories\": 3, \"file\": \"y.npy\"},"
        "\"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}},"
        "\"edges\": {\"e\": {\"count\": 9, \"src\": \"v\", \"dst\": \"v\", \"file\": \"e.npy\","
        "\"columns\": {\"a\": {\"kind\": \"float\", \"shape\": [9, 1], \"file\": \"a.npy\"}}},"
        "\"l\": {\"count\": 9, \"src\": \"v\", \"dst\": \"v\", \"file\": \"e.npy\","
        "\"columns\": {\"split\": {\"kind\": \"split\", \"file\": \"split.npy\"}}}}}";
    Rows *d = &of_data;
    int32_t ends[18];
    char names[64] = "";
    snprintf(folder, sizeof folder, "/tmp/gnnc_calls_XXXXXX");
    MUST(mkdtemp(folder));
    atexit(remove_files);
    d->has = HAS_ALL, d->n = d->n_e = d->n_l = 9;
    for (int i = 0; i < 9; i++) {
        d->v.x[2 * i] = (float)i, d->v.x[2 * i + 1] = (float)(i % 4) - 2;
        d->v.kind[i] = d->v.y[i] = i % 3;
        d->v.split[i] = d->l.split[i] = d->e.split[i] = (int8_t)(1 + i % 3);
        d->e.src[i] = d->l.src[i] = ends[i] = i;
        d->e.dst[i] = d->l.dst[i] = ends[9 + i] = (i * 5 + 1) % 9;
        d->e.a[i] = (float)i / 4;
        snprintf(names + strlen(names), sizeof names - strlen(names), "n%d\n", i);
    }
    write_bytes("schema.json", schema, sizeof schema - 1);
    write_bytes("names", names, strlen(names));
    save_array("x.npy", RT_DT_F32, 9, 2, d->v.x);
    save_array("kind.npy", RT_DT_I32, 9, 0, d->v.kind);
    save_array("y.npy", RT_DT_I32, 9, 0, d->v.y);
    save_array("split.npy", RT_DT_I8, 9, 0, d->v.split);
    save_array("e.npy", RT_DT_I32, 2, 9, ends);
    save_array("a.npy", RT_DT_F32, 9, 1, d->e.a);
    for (int i = 0; i < n_weights; i++) {
        char name[16];
        snprintf(name, sizeof name, "weights.%d", i);
        write_bytes(name, weights[i].p, weights[i].n);
    }
}

/* Encoders that others than the data's columns were made by. */
static void first_encoders(void) {
    static const char schema[] =
        "{\"format\": 1, \"nodes\": {\"v\": {\"count\": 9, \"columns\": {"
        "\"x\": {\"kind\": \"float\", \"shape\": [9, 2], \"file\": \"x.npy\","
        " \"encoder\": {\"as\": \"text\", \"values\": 2}},"
        "\"kind\": {\"kind\": \"cat\", \"categories\": 3, \"names\": [\"ash\", \"birch\", "
        "\"cedar\"], \"file\": \"kind.npy\", \"encoder\": {\"as\": \"category\"}}}}}}";
    const char *schema_of_data = path_of("schema.json"), *aside = path_of("aside");
    MUST(rename(schema_of_data, aside) == 0);
    write_bytes("schema.json", schema, sizeof schema - 1);
    MUST(gnnc_encoder_create(&of_texts) == GNNC_OK && gnnc_encoder_create(&of_nothing) == GNNC_OK);
    MUST(gnnc_encoder_read(of_texts, folder) == GNNC_OK);
    MUST(rename(aside, schema_of_data) == 0);
}

/* Each input begins with the same files. */
static void unlink_written(void) {
    static const char *const names[] = {"saved",
                                        "kept",
                                        "rows",
                                        "values",
                                        "trace",
                                        "predictions.npy",
                                        "predictions.csv",
                                        "predictions.jsonl",
                                        "embeddings.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
}

/* ---- reading -------- */
static const char *any_file(Run *r) {
    static const char *const names[] = {"weights.0", "weights.2",   "weights.4", "weights.6",
                                        "saved",     "kept",        "names",     "x.npy",
                                        "no/such",   "schema.json", "."};
    return path_of(names[below(&r->in, 11)]);
}

static void read_graph(Graph *g) {
    bool empty = !gnnc_graph_n_tables(g->g);
    gnnc_status st = GRAPH(g->g, gnnc_graph_read(g->g, folder, 0));
    if (!g->g || g->committed || !empty) MUST(st != GNNC_OK);
    if (st == GNNC_OK) g->rows = of_data, g->unknown = true;
}

static void read_model(Run *r, Model *m) {
    int w = below(&r->in, MODELS * 2);
    char name[16];
    snprintf(name, sizeof name, "weights.%d", w);
    if (next(&r->in) == 1) {
        gnnc_model *other = NULL;
        if (gnnc_model_create_with(&other, INFERS[OF_ROWS], give, take_back, NULL) == GNNC_OK)
            MODEL(other, gnnc_model_load(other, any_file(r)));
        gnnc_model_release(other);
    }
    gnnc_status st = MODEL(m->m, gnnc_model_load(m->m, path_of(name)));
    if (!m->m || m->weights >= 0) MUST(st != GNNC_OK);
    if (st == GNNC_OK) m->weights = w;
}

static void read_files(Run *r, int slot) {
    Trainer *t = &r->t[slot];
    gnnc_status st = GNNC_E_ARG;
    switch (below(&r->in, 5)) {
    case 0:
        read_graph(&r->g[slot]);
        return;
    case 1:
        read_model(r, &r->m[slot]);
        return;
    case 2:
        st = TRAINER(t->t, gnnc_trainer_load(t->t, next(&r->in) == 1 ? any_file(r) : folder));
        if (!t->t || t->loaded) MUST(st != GNNC_OK);
        if (st == GNNC_OK) t->loaded = true, t->unknown = true, t->rows = of_data;
        break;
    case 3:
        st = TRAINER(t->t, gnnc_trainer_load_weights(t->t, any_file(r)));
        break;
    case 4:
        st = TRAINER(t->t, gnnc_trainer_resume(t->t, any_file(r)));
        break;
    }
    if (!t->t) MUST(st != GNNC_OK);
    if (st == GNNC_OK) t->plain = false;
}

/* ---- writing: a file holds what memory does -------- */
static void write_files(Run *r, Trainer *t) {
    bool all = next(&r->in) & 1;
    const char *name = next(&r->in) == 1 ? "no/such" : all ? "saved" : "kept";
    const float values[4] = {0};
    int64_t dim[GNNC_MAX_RANK] = {below(&r->in, 3), below(&r->in, 3)};
    if (!t->t) return;
    gnnc_status st = TRAINER(t->t, all ? gnnc_trainer_save(t->t, path_of(name))
                                       : gnnc_trainer_save_weights(t->t, path_of(name)));
    if (!t->loaded || *name == 'n') MUST(st != GNNC_OK);
    if (st == GNNC_OK) {
        Bytes in_file = bytes_of(name), in_memory = {0};
        long refuse = refuse_in;
        refuse_in = -1;
        MUST((all ? gnnc_trainer_save_to(t->t, put, &in_memory)
                  : gnnc_trainer_save_weights_to(t->t, put, &in_memory)) == GNNC_OK);
        refuse_in = refuse;
        MUST(same(&in_file, &in_memory));
        drop(&in_file), drop(&in_memory);
    }
    TRAINER(t->t, gnnc_trainer_save_values(t->t, path_of("values"), values, below(&r->in, 4), dim));
    TRAINER(t->t, gnnc_trainer_trace(t->t, path_of("trace"), NULL));
}

/* ---- what numbers and rows are called -------- */
static void ask_legend(Run *r, gnnc_legend *g, int n_rows) {
    gnnc_legend_info is = {.struct_size = sizeof is};
    int64_t row = -1, other, n, some[8], at[4];
    float values[64], shares[64];
    MUST(gnnc_legend_describe(g, &is) == GNNC_OK && is.width > 0 && is.width <= 16);
    MUST(n_rows < 0 || is.n_table == n_rows);
    for (int64_t i = -1; i <= is.width; i++)
        MUST((gnnc_legend_value(g, i) != NULL) == (i >= 0 && i < is.width));
    for (int64_t i = -1; i <= is.n_table; i++) {
        const char *name = gnnc_legend_id(g, 0, i);
        MUST(!name || (is.has_ids && i >= 0 && i < is.n_table));
        if (name && gnnc_legend_find(g, name, &row) == GNNC_OK) MUST(row == i);
        gnnc_legend_id(g, 1, i);
    }
    MUST(gnnc_legend_find(g, "nobody", &row) != GNNC_OK && *gnnc_legend_error(g));
    gnnc_status st = gnnc_legend_links(g, below(&r->in, 12) - 1, &n, 8, some);
    if (st == GNNC_OK) MUST(is.destinations && n >= 0 && n <= is.n_rows);
    for (int64_t i = 0; st == GNNC_OK && i < n && i < 8; i++)
        MUST(gnnc_legend_ends(g, some[i], &row, &other) == GNNC_OK);
    gnnc_legend_ends(g, below(&r->in, 40) - 1, &row, &other);
    for (int i = 0; i < 64; i++) values[i] = (float)(next(&r->in) - 128);
    if (next(&r->in) == 1) values[1] = __builtin_inff();
    MUST(gnnc_legend_convert(g, 64 / is.width, values, shares) == GNNC_OK);
    MUST(gnnc_legend_highest(g, values) < is.width);
    for (int i = 0; i < 64 / is.width * is.width; i++) MUST(shares[i] == shares[i]);
    for (int i = 0; i < 4; i++) at[i] = below(&r->in, 12) - (next(&r->in) == 1);
    gnnc_written w = {.struct_size = sizeof w, .format = below(&r->in, 4), .values = values};
    w.n = below(&r->in, 5), w.top = below(&r->in, 4) - 1;
    w.row = next(&r->in) & 1 ? at : NULL, w.destination = next(&r->in) & 1 ? at : NULL;
    st = gnnc_legend_write(g, path_of(next(&r->in) == 1 ? "no/such" : "rows"), &w);
    if (w.format > GNNC_WRITE_JSONL || w.top < 0) MUST(st != GNNC_OK);
    gnnc_legend_destroy(g);
}

static void ask_names(Run *r, int slot) {
    Session *s = &r->s[slot];
    Trainer *t = &r->t[slot];
    gnnc_legend *g = NULL;
    int n = -1;
    if (next(&r->in) & 1) {
        gnnc_status st = t->t ? TRAINER(t->t, gnnc_trainer_legend(t->t, &g)) : GNNC_E_ARG;
        MUST((st == GNNC_OK) == (g != NULL) && (t->loaded || !g));
    } else {
        gnnc_status st = s->s ? SESSION(s->s, gnnc_session_legend(s->s, &g)) : GNNC_E_ARG;
        MUST((st == GNNC_OK) == (g != NULL) && (s->open || !g));
        n = s->kind == OF_GRAPHS ? s->rows.n_g : s->rows.n;
    }
    if (g) ask_legend(r, g, n);
}

/* ---- rows of cells -------- */
static void ask_encoder(Run *r, int slot) {
    static const char *const words[] = {"ash", "oak", "", "1.5", "-3", "nan", NULL, "1e999"};
    static const char *const names[] = {"k", "x.0", "x.1", "y", "split", "a"};
    const char *texts[4];
    const double numbers[4] = {below(&r->in, 9), 0.5, __builtin_nan(""), -1};
    double to[16];
    gnnc_encoder *e = NULL;
    gnnc_cells cells[4];
    int64_t first;
    refused_before = n_refused;
    if (gnnc_encoder_create_with(&e, give, take_back, NULL) != GNNC_OK) return;
    bool of_model = next(&r->in) & 1;
    const char *file = next(&r->in) & 1 ? folder : any_file(r);
    gnnc_status st = SAID(
        e, encoder, of_model ? gnnc_encoder_of_model(e, r->m[slot].m) : gnnc_encoder_read(e, file));
    MUST(st == GNNC_OK || !gnnc_encoder_n_columns(e, "v"));
    for (int i = 0; i < 4; i++) texts[i] = words[below(&r->in, 8)];
    int n = below(&r->in, 5);
    for (int i = 0; i < 4; i++) {
        bool as_text = next(&r->in) & 1;
        cells[i] = (gnnc_cells){sizeof cells[i], names[below(&r->in, 6)], as_text ? texts : NULL,
                                as_text ? NULL : numbers};
    }
    gnnc_raw rows = {.struct_size = sizeof rows, .table = next(&r->in) == 1 ? "w" : "v"};
    rows.count = below(&r->in, 5), rows.columns = cells, rows.n_columns = n;
    for (int i = -1; i <= gnnc_encoder_n_columns(e, "v"); i++) {
        gnnc_encoded c = {.struct_size = sizeof c};
        if (gnnc_encoder_column(e, "v", i, &c) != GNNC_OK) continue;
        size_t bytes =
            (size_t)(rows.count * (c.width ? c.width : 1)) * (c.dtype == GNNC_DT_F64 ? 8 : 4);
        st = gnnc_encoder_encode(e, &rows, c.column, to, bytes);
        MUST(st == GNNC_OK || st == GNNC_E_SHAPE || rows.error[0] || st == GNNC_E_NOMEM);
    }
    Graph *g = &r->g[slot];
    if (g->g && !g->committed) {
        if (gnnc_encoder_add(e, &rows, g->g) == GNNC_OK) g->unknown = true, g->fitted = false;
    } else if (g->g && g->rows.n + 4 < MOST &&
               gnnc_encoder_append(e, &rows, g->g, NULL, NULL, &first) == GNNC_OK)
        spoil(g);
    gnnc_encoder_destroy(e);
}

/* ---- the command line -------- */
static void run_main(Run *r) {
    static const char *const commands[] = {"train", "eval", "predict", "embed", "info", "bench"};
    static const char *const words[] = {
        "h",          "--data=.",        "--data=no",      "--weights=weights.0",
        "--ids=-",    "--weights=saved", "--resume=saved", "--weights=weights.2",
        "--nodes=-",  "--ids=names",     "--nodes=names",  "--weights=weights.6",
        "--json",     "--format=csv",    "--format=jsonl", "--out=rows",
        "--top=2",    "--out=no/such",   "--log=json",     "--checkpoint=saved",
        "--seeds=2",  "--profile",       "--trace=trace",  "--save-every=1",
        "--seed=3",   "--seeds=0",       "--nothing",      "--at=2020-01-01",
        "--batch=2",  "--batch=0",       "--max-memory=1", "--max-memory=64M",
        "--variant=", "--help",          "--version",      "--workers=1"};
    char *argv[20] = {(char *)(uintptr_t)"main"};
    static const char *const always[] = {"--data=.", "--threads=1", "--epochs=1",
                                         "--checkpoint=none"};
    int argc = 1, n = below(&r->in, 9), kind = below(&r->in, MODELS), was[3];
    if (!next(&r->in)) return; /* it is dear */
    argv[argc++] = (char *)(uintptr_t)commands[below(&r->in, 6)];
    for (int i = 0; i < 4; i++) argv[argc++] = (char *)(uintptr_t)always[i];
    for (int i = 0; i < n; i++) argv[argc++] = (char *)(uintptr_t)words[below(&r->in, 36)];
    int nothing = open("/dev/null", O_RDWR), here = open(".", O_RDONLY);
    MUST(nothing >= 0 && here >= 0 && chdir(folder) == 0);
    for (int i = 0; i < 3; i++) was[i] = dup(i), dup2(nothing, i);
    int code = next(&r->in) & 1 ? gnnc_trainer_main(TRAINS[kind], argc, argv)
                                : gnnc_trainer_main_with(TRAINS[kind], INFERS[kind], argc, argv);
    fflush(stdout);
    for (int i = 0; i < 3; i++) dup2(was[i], i), close(was[i]);
    MUST(code >= 0 && code <= 2 && fchdir(here) == 0);
    close(nothing), close(here);
}

#endif
