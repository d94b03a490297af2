/* Snapshots of a graph that is appended to: the bits of a graph built at once, who keeps what,
 * threads, memory. */
#include "append_util.h"

#include <pthread.h>

#include "tiny_program.h"

/* ---- the tiny program's data, nodes of [from, to) and the edges among those below `to` that are
 * not among those below `from` ---- */
typedef struct {
    int64_t from, to, n_edges;
    float x[N * F], t[N], w[E];
    int8_t split[N];
    int32_t src[E], dst[E];
} Part;

static void cut(Part *p, const RtDataset *d, int64_t from, int64_t to) {
    const RtTable *n = &d->nodes[0], *e = &d->edges[0];
    *p = (Part){.from = from, .to = to};
    for (int64_t i = from; i < to; i++) {
        memcpy(p->x + (i - from) * F, rt_table_column(n, "x")->f32 + i * F, F * sizeof(float));
        p->t[i - from] = rt_table_column(n, "t")->f32[i];
        p->split[i - from] = rt_table_column(n, "split")->splits[i];
    }
    for (int64_t i = 0; i < E; i++) {
        int64_t last = e->src[i] > e->dst[i] ? e->src[i] : e->dst[i];
        if (last < from || last >= to) continue;
        p->src[p->n_edges] = e->src[i];
        p->dst[p->n_edges] = e->dst[i];
        p->w[p->n_edges++] = rt_table_column(e, "w")->f32[i];
    }
}

/* The arrays x, t, split, src, dst, w; lent where n_done is not NULL. */
static void arrays_of(const Part *p, gnnc_array a[6], int *n_done) {
    int64_t n = p->to - p->from, m = p->n_edges;
    a[0] = array_of(GNNC_DT_F32, 2, n, F, p->x);
    a[1] = array_of(GNNC_DT_F32, 1, n, 0, p->t);
    a[2] = array_of(GNNC_DT_I8, 1, n, 0, p->split);
    a[3] = array_of(GNNC_DT_I32, 1, m, 0, p->src);
    a[4] = array_of(GNNC_DT_I32, 1, m, 0, p->dst);
    a[5] = array_of(GNNC_DT_F32, 1, m, 0, p->w);
    for (int i = 0; i < 6 && n_done; i++) a[i] = lent(a[i], n_done);
}

static gnnc_status build(gnnc_graph *g, const Part *p, int *n_done) {
    gnnc_array a[6];
    gnnc_status st;
    arrays_of(p, a, n_done);
    TRY(st, gnnc_graph_add_nodes(g, "n", p->to - p->from));
    TRY(st, gnnc_graph_add_edges(g, "e", "n", "n", &a[3], &a[4]));
    TRY(st, gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a[0], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "n", "t", GNNC_COL_FLOAT, &a[1], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "n", "split", GNNC_COL_SPLIT, &a[2], -1, NULL));
    TRY(st, gnnc_graph_add_column(g, "e", "w", GNNC_COL_FLOAT, &a[5], -1, NULL));
    st = gnnc_graph_commit(g);
out:
    return st;
}

static gnnc_status append_nodes(gnnc_graph *g, const Part *p, int *n_done, gnnc_rows *r) {
    gnnc_array a[6];
    arrays_of(p, a, n_done);
    gnnc_values v[] = {values_of("split", &a[2]), values_of("x", &a[0]), values_of("t", &a[1])};
    *r = rows_of("n", p->to - p->from, 3, v);
    gnnc_status st = gnnc_graph_append(g, r);
    r->columns = NULL;
    return st;
}

static gnnc_status append_edges(gnnc_graph *g, const Part *p, int *n_done, gnnc_rows *r) {
    gnnc_array a[6];
    arrays_of(p, a, n_done);
    gnnc_values v = values_of("w", &a[5]);
    *r = rows_of("e", p->n_edges, 1, &v);
    r->src = &a[3];
    r->dst = &a[4];
    gnnc_status st = gnnc_graph_append(g, r);
    r->src = r->dst = NULL;
    r->columns = NULL;
    return st;
}

typedef struct {
    char dir[64];
    RtDataset *d;
    Part part[3]; /* nodes 0 to 20, to 33, to 40 */
} Place;

static Place *place_new(void) {
    static Place p;
    snprintf(p.dir, sizeof p.dir, "%s", scratch_new());
    make_data(p.dir);
    CHECK(rt_dataset_open(NULL, p.dir, false, &p.d, NULL) == GNNC_OK);
    static const int64_t at[] = {0, 20, 33, N};
    for (int i = 0; i < 3; i++) cut(&p.part[i], p.d, at[i], at[i + 1]);
    return &p;
}

static void place_end(Place *p) {
    rt_dataset_close(p->d);
    scratch_remove(p->dir);
}

/* All parts behind one another. */
static Part joined(const Place *p) {
    Part all = {.from = 0, .to = N};
    for (int k = 0; k < 3; k++) {
        const Part *q = &p->part[k];
        int64_t n = q->to - q->from, m = q->n_edges;
        memcpy(all.x + q->from * F, q->x, (size_t)(n * F) * sizeof(float));
        memcpy(all.t + q->from, q->t, (size_t)n * sizeof(float));
        memcpy(all.split + q->from, q->split, (size_t)n);
        memcpy(all.src + all.n_edges, q->src, (size_t)m * sizeof(int32_t));
        memcpy(all.dst + all.n_edges, q->dst, (size_t)m * sizeof(int32_t));
        memcpy(all.w + all.n_edges, q->w, (size_t)m * sizeof(float));
        all.n_edges += m;
    }
    return all;
}

static gnnc_trainer *loaded(gnnc_graph *g) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, &tiny_model) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load_graph(t, g) == GNNC_OK, "load: %s", gnnc_trainer_error(t));
    return t;
}

typedef struct {
    char p[1 << 14];
    size_t n;
} Bytes;

static int take_bytes(void *user, const void *data, size_t n_bytes, size_t n_left) {
    Bytes *to = user;
    (void)n_left;
    if (to->n + n_bytes > sizeof to->p) return 1;
    memcpy(to->p + to->n, data, n_bytes);
    to->n += n_bytes;
    return 0;
}

/* Trains, destroys the trainer, and gives its checkpoint, which has a hash of the data, too. */
static Bytes trained(gnnc_trainer *t) {
    Bytes b = {.n = 0};
    for (int i = 0; i < 4; i++)
        CHECK_MSG(gnnc_trainer_epoch(t) == GNNC_OK, "epoch: %s", gnnc_trainer_error(t));
    CHECK(gnnc_trainer_save_to(t, take_bytes, &b) == GNNC_OK && b.n > 0);
    gnnc_trainer_destroy(t);
    return b;
}

static bool same_bytes(const Bytes *a, const Bytes *b) {
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* ---- the same bits ------------------------------------------------------------------------- */
TEST(appended_rows_train_to_the_bits_of_a_graph_built_at_once) {
    Place *p = place_new();
    Part all = joined(p);
    CHECK(all.n_edges == E && p->part[1].n_edges && p->part[2].n_edges);
    gnnc_graph *whole = graph_new();
    OK(whole, build(whole, &all, NULL));
    Bytes want = trained(loaded(whole)), first;
    for (int way = 0; way < 4; way++) { /* 1: lent arrays; 2: a commit in between */
        int n_done = 0, *done = way & 1 ? &n_done : NULL;
        gnnc_graph *g = graph_new();
        gnnc_rows r;
        OK(g, build(g, &p->part[0], done));
        first = trained(loaded(g));
        for (int k = 1; k < 3; k++) {
            CHECK(append_nodes(g, &p->part[k], done, &r) == GNNC_OK &&
                  r.first == (k == 1 ? 20 : 33));
            CHECK(append_edges(g, &p->part[k], done, &r) == GNNC_OK && r.error[0] == '\0');
            if (way & 2) OK(g, gnnc_graph_commit(g));
        }
        if (!(way & 2)) { /* nobody sees them yet */
            Bytes before = trained(loaded(g));
            CHECK(same_bytes(&before, &first) && rows_in(g, "n") == 20);
        }
        OK(g, gnnc_graph_commit(g));
        OK(g, gnnc_graph_commit(g)); /* nothing to do */
        Bytes got = trained(loaded(g));
        CHECK(same_bytes(&got, &want) && !same_bytes(&got, &first));
        CHECK(rows_in(g, "n") == N && rows_in(g, "e") == E);
        gnnc_graph_release(g);
        CHECK(n_done == (done ? 18 : 0));
    }
    gnnc_graph_release(whole);
    place_end(p);
}

TEST(a_directory_is_appended_to) {
    Place *p = place_new();
    for (int map = 0; map < 2; map++) {
        gnnc_graph *g = graph_new();
        gnnc_rows r;
        OK(g, gnnc_graph_read(g, p->dir, map));
        OK(g, gnnc_graph_commit(g));
        gnnc_trainer *old = loaded(g);
        const float *x = newest(g, "n", "x")->f32;
        CHECK(append_nodes(g, &p->part[1], NULL, &r) == GNNC_OK && r.first == N);
        OK(g, gnnc_graph_commit(g));
        CHECK(newest(g, "n", "x")->f32 != x && column_of(g, "n", "x")->f32 == x);
        CHECK(!memcmp(newest(g, "n", "x")->f32, x, N * F * sizeof *x));
        CHECK(!memcmp(newest(g, "n", "x")->f32 + N * F, p->part[1].x, 13 * F * sizeof *x));
        CHECK(newest(g, "e", "w")->f32 == column_of(g, "e", "w")->f32); /* not copied */
        Bytes was = trained(old), grown = trained(loaded(g));
        CHECK(!same_bytes(&was, &grown));
        gnnc_graph_release(g);
    }
    place_end(p);
}

/* ---- who keeps what -------------------------------------------------------------------------- */
TEST(a_snapshot_goes_with_its_last_reader) {
    gnnc_graph *g = graph_new();
    int n_done = 0;
    _Alignas(GNNC_ALIGN) static float x[32 * F], t[32], more[2 * F], w[16];
    _Alignas(GNNC_ALIGN) static int32_t ends[16];
    _Alignas(GNNC_ALIGN) static int8_t split[32];
    for (int i = 0; i < 32; i++) split[i] = (int8_t)(1 + i % 3);
    gnnc_array a[] = {array_of(GNNC_DT_F32, 2, 32, F, x), array_of(GNNC_DT_F32, 1, 32, 0, t),
                      array_of(GNNC_DT_I8, 1, 32, 0, split), array_of(GNNC_DT_I32, 1, 16, 0, ends),
                      array_of(GNNC_DT_F32, 1, 16, 0, w)};
    for (int i = 0; i < 5; i++) a[i] = lent(a[i], &n_done);
    OK(g, gnnc_graph_add_nodes(g, "n", 32));
    OK(g, gnnc_graph_add_edges(g, "e", "n", "n", &a[3], &a[3]));
    OK(g, gnnc_graph_add_column(g, "n", "x", GNNC_COL_FLOAT, &a[0], -1, NULL));
    OK(g, gnnc_graph_add_column(g, "n", "t", GNNC_COL_FLOAT, &a[1], -1, NULL));
    OK(g, gnnc_graph_add_column(g, "n", "split", GNNC_COL_SPLIT, &a[2], -1, NULL));
    OK(g, gnnc_graph_add_column(g, "e", "w", GNNC_COL_FLOAT, &a[4], -1, NULL));
    OK(g, gnnc_graph_commit(g));
    gnnc_table_info is = {.struct_size = sizeof is};
    CHECK(gnnc_graph_table_info(g, 0, &is) == GNNC_OK);
    gnnc_trainer *old = loaded(g);
    gnnc_array b = array_of(GNNC_DT_F32, 2, 2, F, more), c = array_of(GNNC_DT_F32, 1, 2, 0, more);
    gnnc_values v[] = {values_of("x", &b), values_of("t", &c)};
    gnnc_rows r = rows_of("n", 2, 2, v);
    APPEND(g, &r);
    OK(g, gnnc_graph_commit(g));
    CHECK(n_done == 0 && rows_in(g, "n") == 34);
    gnnc_trainer_destroy(old);
    CHECK(n_done == 3); /* the nodes'; the edges are those of the newest snapshot, too */
    gnnc_trainer *now = loaded(g);
    APPEND(g, &r);
    CHECK(r.first == 34);
    OK(g, gnnc_graph_commit(g));
    CHECK(g->newest->data->nodes[0].columns[2].splits[34] == 0); /* in no split */
    gnnc_graph_release(g);
    CHECK(n_done == 3);
    CHECK_STR(is.name, "n"); /* names are the graph's, which the trainer keeps */
    gnnc_trainer_destroy(now);
    CHECK(n_done == 6);
}

static int64_t least_rows, most_rows; /* that a training step saw */

static gnnc_status counted_train(RtExec *x) {
    if (x->n[S_N] < least_rows) least_rows = x->n[S_N];
    if (x->n[S_N] > most_rows) most_rows = x->n[S_N];
    return tiny_train(x);
}

/* The other variants are timed on the rows that the trainer has, not on the newest ones. */
TEST(tuning_keeps_to_the_trainers_snapshot) {
    Place *p = place_new();
    rt_phase phases[N_TINY_PHASES];
    memcpy(phases, tiny_phases, sizeof phases);
    phases[PH_TRAIN].run = counted_train;
    rt_program first = tiny_program, second = tiny_program;
    const rt_program *variants[] = {&first, &second};
    first.phases = second.phases = phases;
    first.choice = "first", second.choice = "second";
    first.n_variants = 2;
    first.variants = variants;
    const gnnc_program model = {RT_PROGRAM_VERSION, &first};
    gnnc_graph *g = graph_new();
    gnnc_trainer *t = NULL;
    gnnc_rows r;
    OK(g, gnnc_graph_read(g, p->dir, 0));
    OK(g, gnnc_graph_commit(g));
    CHECK(gnnc_trainer_create(&t, &model) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load_graph(t, g) == GNNC_OK, "load: %s", gnnc_trainer_error(t));
    CHECK(append_nodes(g, &p->part[1], NULL, &r) == GNNC_OK);
    OK(g, gnnc_graph_commit(g));
    least_rows = INT64_MAX, most_rows = 0;
    CHECK_MSG(gnnc_trainer_tune(t, 0) == GNNC_OK, "tune: %s", gnnc_trainer_error(t));
    CHECK(least_rows == N && most_rows == N);
    gnnc_graph_release(g);
    gnnc_trainer_destroy(t);
    place_end(p);
}

typedef struct {
    gnnc_graph *g;
    int n_done;
} Committer;

static void commit_again(void *user) {
    Committer *c = user;
    c->n_done++;
    OK(c->g, gnnc_graph_commit(c->g));
}

TEST(done_may_commit) {
    enum { ROWS = 16 };
    _Alignas(GNNC_ALIGN) static float x[ROWS];
    Committer c = {.g = graph_new()};
    gnnc_array a = array_of(GNNC_DT_F32, 1, ROWS, 0, x), one = array_of(GNNC_DT_F32, 1, 1, 0, x);
    a.borrowed = 1, a.done = commit_again, a.user = &c;
    OK(c.g, gnnc_graph_add_nodes(c.g, "a", ROWS));
    OK(c.g, gnnc_graph_add_column(c.g, "a", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(c.g, gnnc_graph_commit(c.g));
    gnnc_values v = values_of("x", &one);
    gnnc_rows r = rows_of("a", 1, 1, &v);
    APPEND(c.g, &r);
    alarm(60); /* a call that hangs is a test that fails */
    OK(c.g, gnnc_graph_commit(c.g));
    alarm(0);
    CHECK(c.n_done == 1 && rows_in(c.g, "a") == ROWS + 1);
    gnnc_graph_release(c.g);
}

/* ---- threads -------- */
enum { WRITERS = 3, CALLS = 40 };

typedef struct {
    gnnc_graph *g;
    int number;
    int64_t first[CALLS];
    int bad;
} Writer;

/* Two nodes, and an edge from the first to the second. */
static void *write_rows(void *arg) {
    Writer *w = arg;
    for (int i = 0; i < CALLS; i++) {
        float tag = (float)(w->number * CALLS + i), x[] = {tag, 0, tag, 1};
        int32_t code[] = {0, 1};
        static const char *const names[] = {"blue", "red"};
        gnnc_array a = array_of(GNNC_DT_F32, 2, 2, 2, x), c = array_of(GNNC_DT_I32, 1, 2, 0, code),
                   e = array_of(GNNC_DT_F32, 1, 1, 0, x);
        gnnc_values v[] = {values_of("x", &a), values_of("c", &c)}, ve = values_of("w", &e);
        gnnc_rows n = rows_of("a", 2, 2, v), m = rows_of("e", 1, 1, &ve);
        v[1].names = names, v[1].n_categories = 2;
        w->bad |= gnnc_graph_append(w->g, &n) != GNNC_OK;
        int64_t src[] = {n.first}, dst[] = {n.first + 1};
        gnnc_array s = array_of(GNNC_DT_I64, 1, 1, 0, src), d = array_of(GNNC_DT_I64, 1, 1, 0, dst);
        m.src = &s;
        m.dst = &d;
        w->bad |= gnnc_graph_append(w->g, &m) != GNNC_OK;
        w->first[i] = n.first;
    }
    return NULL;
}

/* Commits, and sees whole calls only. */
static void *commit_rows(void *arg) {
    Writer *w = arg;
    for (int i = 0; i < CALLS; i++) {
        w->bad |= gnnc_graph_commit(w->g) != GNNC_OK;
        RtSnapshot *s = rt_graph_enter(w->g);
        const RtDataset *d = s->data;
        w->bad |= d->nodes[0].count % 2 != 1 || rt_dataset_check(d, NULL) != GNNC_OK;
        rt_graph_leave(w->g, s);
        w->bad |= rows_in(w->g, "a") < 3;
    }
    return NULL;
}

TEST(threads_append_while_others_commit) {
    static Writer w[WRITERS + 2];
    pthread_t id[WRITERS + 2];
    Good k;
    good(&k);
    for (int i = 0; i < WRITERS + 2; i++) {
        w[i] = (Writer){.g = k.g, .number = i};
        CHECK(pthread_create(&id[i], NULL, i < WRITERS ? write_rows : commit_rows, &w[i]) == 0);
    }
    for (int i = 0; i < WRITERS + 2; i++) pthread_join(id[i], NULL);
    for (int i = 0; i < WRITERS + 2; i++) CHECK(!w[i].bad);
    OK(k.g, gnnc_graph_commit(k.g));
    CHECK(rows_in(k.g, "a") == 3 + 2 * WRITERS * CALLS && rows_in(k.g, "e") == 3 + WRITERS * CALLS);
    const float *x = newest(k.g, "a", "x")->f32, *of = newest(k.g, "e", "w")->f32;
    for (int i = 0; i < WRITERS; i++)
        for (int j = 0; j < CALLS; j++) {
            const float *row = x + w[i].first[j] * 2;
            CHECK(row[0] == (float)(i * CALLS + j) && row[1] == 0 && row[2] == row[0] &&
                  row[3] == 1);
            const int32_t *code = newest(k.g, "a", "c")->i32 + w[i].first[j];
            CHECK(code[0] == 1 && code[1] == 0);
        }
    const RtTable *e = &k.g->newest->data->edges[0];
    for (int64_t i = 3; i < e->count; i++)
        CHECK(e->dst[i] == e->src[i] + 1 && x[e->src[i] * 2] == of[i]);
    gnnc_graph_release(k.g);
}

/* ---- memory -------- */
TEST(every_failing_allocation_leaves_the_old_snapshot) {
    Place *p = place_new();
    Part all = joined(p);
    gnnc_graph *whole = graph_new();
    OK(whole, build(whole, &all, NULL));
    Bytes want = trained(loaded(whole));
    gnnc_graph_release(whole);
    bool failed = true;
    long n = 0;
    for (; failed && n < 400; n++) {
        FailingAlloc f;
        gnnc_graph *g = NULL;
        gnnc_rows r;
        int n_done = 0;
        failing(&f, -1);
        CHECK(gnnc_graph_create_with(&g, failing_alloc, failing_release, &f) == GNNC_OK);
        OK(g, build(g, &p->part[0], NULL));
        f.fail_at = f.n_calls + n;
        failed = false;
        for (int k = 1; k < 3; k++) {
            gnnc_status (*step[])(gnnc_graph *, const Part *, int *, gnnc_rows *) = {append_nodes,
                                                                                     append_edges};
            for (int i = 0; i < 2; i++) {
                gnnc_status st = step[i](g, &p->part[k], &n_done, &r);
                if (st == GNNC_OK) continue;
                CHECK(st == GNNC_E_NOMEM && strstr(r.error, "out of memory") && r.first == -1);
                failed = true;
                f.fail_at = -1;
                CHECK(step[i](g, &p->part[k], &n_done, &r) == GNNC_OK);
            }
            gnnc_status st = gnnc_graph_commit(g);
            if (st == GNNC_OK) continue;
            CHECK(st == GNNC_E_NOMEM && strstr(gnnc_graph_error(g), "out of memory"));
            CHECK(rows_in(g, "n") == (k == 1 ? 20 : 33));
            failed = true;
            f.fail_at = -1;
            OK(g, gnnc_graph_commit(g));
        }
        Bytes got = trained(loaded(g));
        CHECK_MSG(same_bytes(&got, &want), "allocation %ld", n);
        gnnc_graph_release(g);
        CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", n, f.n_live);
        CHECK(n_done >= 12);
    }
    CHECK(n > 20 && n < 400);
    place_end(p);
}

typedef struct {
    _Alignas(max_align_t) size_t n;
} Sized;

static void *sized_alloc(void *user, size_t n) {
    Sized *s = calloc(1, sizeof *s + n);
    if (!s) return NULL;
    s->n = n;
    *(size_t *)user += n;
    return s + 1;
}

static void sized_release(void *user, void *p) {
    Sized *s = (Sized *)p - 1;
    *(size_t *)user -= s->n;
    free(s);
}

/* Memory does not grow with the number of commits, and what the graph was built with goes, too. */
TEST(versions_that_nobody_reads_go) {
    enum { ROWS = 100000 };
    static float x[ROWS];
    size_t live = 0, built, bytes = sizeof x;
    gnnc_graph *g = NULL;
    CHECK(gnnc_graph_create_with(&g, sized_alloc, sized_release, &live) == GNNC_OK);
    gnnc_array a = array_of(GNNC_DT_F32, 1, ROWS, 0, x), one = array_of(GNNC_DT_F32, 1, 1, 0, x);
    OK(g, gnnc_graph_add_nodes(g, "a", ROWS));
    OK(g, gnnc_graph_add_nodes(g, "b", ROWS));
    OK(g, gnnc_graph_add_column(g, "a", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(g, gnnc_graph_add_column(g, "b", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(g, gnnc_graph_commit(g));
    built = live;
    gnnc_values v = values_of("x", &one);
    gnnc_rows r = rows_of("a", 1, 1, &v);
    for (int i = 0; i < 5; i++) {
        APPEND(g, &r);
        OK(g, gnnc_graph_commit(g));
        CHECK_MSG(live < built + bytes / 2, "commit %d: %zu bytes, %zu before", i, live, built);
    }
    RtSnapshot *s = rt_graph_enter(g);
    APPEND(g, &r);
    OK(g, gnnc_graph_commit(g));
    CHECK(live > built + bytes / 2 && s->data->nodes[0].count == ROWS + 5); /* it is read */
    rt_graph_leave(g, s);
    CHECK(live < built + bytes / 2);
    gnnc_graph_release(g);
    CHECK(live == 0);
}

typedef struct {
    gnnc_graph *g; /* NULL: not watched */
    int n_held, n_free;
} Watch;

static void *watched_alloc(void *user, size_t n) {
    (void)user;
    return calloc(1, n);
}

static void watched_release(void *user, void *p) {
    Watch *w = user;
    free(p);
    if (!w->g) return;
    if (pthread_mutex_trylock(&w->g->lock) != 0) {
        w->n_held++;
        return;
    }
    w->n_free++;
    pthread_mutex_unlock(&w->g->lock);
}

/* The host's function may take long, or ask the graph. */
TEST(memory_is_released_without_the_lock) {
    enum { ROWS = 1000 };
    static float x[ROWS];
    Watch w = {.n_held = 0};
    gnnc_graph *g = NULL;
    CHECK(gnnc_graph_create_with(&g, watched_alloc, watched_release, &w) == GNNC_OK);
    gnnc_array a = array_of(GNNC_DT_F32, 1, ROWS, 0, x), one = array_of(GNNC_DT_F32, 1, 1, 0, x);
    OK(g, gnnc_graph_add_nodes(g, "a", ROWS));
    OK(g, gnnc_graph_add_column(g, "a", "x", GNNC_COL_FLOAT, &a, -1, NULL));
    OK(g, gnnc_graph_commit(g));
    gnnc_values v = values_of("x", &one);
    gnnc_rows r = rows_of("a", 1, 1, &v);
    w.g = g;
    for (int i = 0; i < 2; i++) { /* what was built goes, and what was committed */
        APPEND(g, &r);
        OK(g, gnnc_graph_commit(g));
    }
    w.g = NULL;
    CHECK_MSG(w.n_held == 0 && w.n_free > 0, "%d of %d", w.n_held, w.n_held + w.n_free);
    gnnc_graph_release(g);
}

TEST_MAIN()
