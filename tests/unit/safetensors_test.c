/* safetensors: round trips, hostile headers, and a full disk. */
#include "test.h"

#include <signal.h>
#include <sys/resource.h>

#include "runtime/data/safetensors.h"
#include "rt_test_util.h"

static gnnc_status parse(RtPool *pool, const char *header, size_t n_data, RtTensors *t,
                         RtError *err) {
    size_t len = strlen(header);
    uint8_t *file = rt_pool_alloc(pool, 8 + len + n_data, 1);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)len >> 8 * i);
    memcpy(file + 8, header, len);
    *err = (RtError){""};
    return rt_safetensors_parse(pool, (RtBytes){file, 8 + len + n_data}, "t.st", t, err);
}

TEST(reads_every_type_and_shape) {
    static const char *const types[] = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8", "BOOL"};
    static const size_t bytes[] = {4, 8, 2, 2, 4, 8, 1, 1};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    for (int i = 0; i < 8; i++) {
        char h[200];
        RtTensors t;
        RtError err;
        snprintf(h, sizeof h, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%zu]}}",
                 types[i], 6 * bytes[i]);
        CHECK(parse(&pool, h, 6 * bytes[i], &t, &err) == GNNC_OK);
        const RtTensor *a = rt_tensors_find(&t, "a");
        CHECK(a && a->a.rank == 2 && a->a.shape[1] == 3);
        CHECK(a && (uintptr_t)a->a.data % bytes[i] == 0); /* aligned, whatever the header */
        CHECK(!rt_tensors_find(&t, "b"));
    }
    rt_pool_free(&pool);
}

TEST(refuses_hostile_headers) {
#define ONE(rest) "{\"a\":{\"dtype\":\"F32\"," rest "}}"
    static const char *const bad[] = {
        "",
        "[]",
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        ONE("\"shape\":[1],\"data_offsets\":[0,8]"),
        ONE("\"shape\":[2],\"data_offsets\":[0,4]"),
        ONE("\"shape\":[2],\"data_offsets\":[4,12]"),
        ONE("\"shape\":[1],\"data_offsets\":[4,0]"),
        ONE("\"shape\":[1],\"data_offsets\":[-4,0]"),
        ONE("\"shape\":[1],\"data_offsets\":[0.5,4]"),
        ONE("\"shape\":[1.0],\"data_offsets\":[0,4]"),
        ONE("\"shape\":[-1],\"data_offsets\":[0,4]"),
        ONE("\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]"),
        ONE("\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"),
        ONE("\"shape\":[1],\"data_offsets\":[0,4],\"more\":1"),
        ONE("\"shape\":[1],\"data_offsets\":[4,8]"), /* a hole in front */
        ONE("\"shape\":[0],\"data_offsets\":[0,0]"), /* 4 bytes nobody owns */
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"__metadata__\":{\"k\":1},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
        "}",
        "{\"__metadata__\":3}",
    };
    RtPool pool;
    rt_pool_init(&pool, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtTensors t;
        RtError err;
        CHECK_MSG(parse(&pool, bad[i], 4, &t, &err) != GNNC_OK, "accepted: %s", bad[i]);
        CHECK_MSG(strncmp(err.text, "t.st", 4) == 0, "no file in: %s", err.text);
    }
    RtTensors t;
    RtError err = {""};
    static const uint8_t huge[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    CHECK(rt_safetensors_parse(&pool, (RtBytes){huge, 8}, "t", &t, &err) == GNNC_E_FORMAT);
    CHECK(rt_safetensors_parse(&pool, (RtBytes){huge, 3}, "t", &t, &err) == GNNC_E_FORMAT);
    rt_pool_free(&pool);
}

static const float floats[3] = {1, 2, 3};
static const int64_t longs[2] = {-7, 1};
static const uint8_t bytes[3] = {1, 0, 1};

/* Three tensors, and where they are to be saved. */
static RtTensor three[] = {
    {"mask", {.dt = RT_DT_BOOL, .rank = 1, .shape = {3}, .data = bytes}},
    {"a.\"b\"", {.dt = RT_DT_F32, .rank = 2, .shape = {3, 1}, .data = floats}},
    {"n", {.dt = RT_DT_I64, .rank = 1, .shape = {2}, .data = longs}},
};
static const RtTensors sample = {.n = 3, .v = three, .n_meta = 1, .meta = &(RtMeta){"epoch", "12"}};

static const char *new_path(const char **dir) {
    static char path[128];
    *dir = scratch_new();
    snprintf(path, sizeof path, "%s/w.safetensors", *dir);
    return path;
}

TEST(saved_tensors_read_back) {
    const char *dir, *path = new_path(&dir);
    RtTensors u;
    RtError err = {""};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_safetensors_save(NULL, path, &sample, &err) == GNNC_OK);
    CHECK(rt_safetensors_open(&pool, path, &u, &err) == GNNC_OK);
    CHECK(u.n == 3);
    CHECK_STR(rt_tensors_meta(&u, "epoch"), "12");
    CHECK(!rt_tensors_meta(&u, "other"));
    const RtTensor *a = rt_tensors_find(&u, "a.\"b\""), *n = rt_tensors_find(&u, "n");
    CHECK(a && a->a.shape[0] == 3 && memcmp(a->a.data, floats, sizeof floats) == 0);
    CHECK(n && memcmp(n->a.data, longs, sizeof longs) == 0);
    CHECK(n && (uintptr_t)n->a.data % 8 == 0);
    CHECK(count_entries(dir) == 1);
    rt_pool_free(&pool);
    scratch_remove(dir);
}

/* A file size limit stands for the full disk: write() fails just the same. */
/* Readers map files and read tensors where they lie. */
TEST(tensors_of_whole_places_begin_at_places) {
    static const float v[64];
    static const double d[3];
    static const struct {
        const char *name;
        RtArray a;
        bool at_place;
    } all[] = {{"a", {.dt = RT_DT_F32, .rank = 1, .shape = {3}, .data = v}, false},
               {"b", {.dt = RT_DT_F32, .rank = 2, .shape = {2, 16}, .data = v}, true},
               {"c", {.dt = RT_DT_F64, .rank = 1, .shape = {3}, .data = d}, true},
               {"d", {.dt = RT_DT_F32, .rank = 1, .shape = {33}, .data = v}, false},
               {"e", {.dt = RT_DT_BF16, .rank = 1, .shape = {32}, .data = v}, true},
               {"f", {.dt = RT_DT_F32, .rank = 1, .shape = {0}, .data = v}, true}};
    enum { N = sizeof all / sizeof *all };
    const char *dir, *path = new_path(&dir);
    RtTensor v_all[N];
    RtTensors t = {.n = N, .v = v_all}, u;
    RtPool pool;
    RtBytes file;
    rt_pool_init(&pool, NULL);
    for (int i = 0; i < N; i++) v_all[i] = (RtTensor){all[i].name, all[i].a};
    CHECK(rt_safetensors_save(NULL, path, &t, NULL) == GNNC_OK);
    CHECK(rt_file_map(&pool, path, &file, NULL) == GNNC_OK);
    CHECK(rt_safetensors_parse(&pool, file, path, &u, NULL) == GNNC_OK);
    for (int i = 0; i < N; i++) {
        const RtTensor *is = rt_tensors_find(&u, all[i].name);
        const uint8_t *p = is ? is->a.data : NULL;
        CHECK(p >= file.p && p <= file.p + file.n); /* not a copy */
        CHECK(((uintptr_t)p % 64 == 0) == all[i].at_place);
    }
    rt_pool_free(&pool);
    scratch_remove(dir);
}

TEST(a_full_disk_leaves_the_old_file) {
    const char *dir, *path = new_path(&dir);
    RtTensors u;
    RtError err = {""};
    CHECK(rt_safetensors_save(NULL, path, &sample, &err) == GNNC_OK);
    static float big[64 * 1024];
    RtTensor b = {"big", {.dt = RT_DT_F32, .rank = 1, .shape = {64 * 1024}, .data = big}};
    RtTensors large = {.n = 1, .v = &b};
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 4096;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    gnnc_status st = rt_safetensors_save(NULL, path, &large, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    CHECK(st == GNNC_E_IO);
    CHECK_MSG(strstr(err.text, "cannot write"), "%s", err.text);
    CHECK(count_entries(dir) == 1);
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_safetensors_open(&pool, path, &u, NULL) == GNNC_OK && u.n == 3);
    rt_pool_free(&pool);
    scratch_remove(dir);
}

TEST(every_truncation_is_an_error) {
    const char *dir, *path = new_path(&dir);
    RtTensors u;
    RtBytes file;
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_safetensors_save(NULL, path, &sample, NULL) == GNNC_OK);
    CHECK(rt_file_map(&pool, path, &file, NULL) == GNNC_OK);
    for (size_t k = 0; k < file.n; k++) {
        uint8_t *copy = malloc(k ? k : 1);
        memcpy(copy, file.p, k);
        CHECK(rt_safetensors_parse(&pool, (RtBytes){copy, k}, "t", &u, NULL) != GNNC_OK);
        free(copy);
    }
    rt_pool_free(&pool);
    scratch_remove(dir);
}

TEST(every_failed_allocation_is_survived) {
    const char *dir, *path = new_path(&dir);
    RtTensors u;
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 1000; k++) {
        FailingAlloc f;
        RtAlloc from = failing(&f, k);
        st = rt_safetensors_save(&from, path, &sample, NULL);
        CHECK(f.n_live == 0);
        CHECK(st == GNNC_OK || st == GNNC_E_NOMEM);
        CHECK(count_entries(dir) == (st == GNNC_OK));
    }
    st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 1000; k++) {
        FailingAlloc f;
        RtPool pool;
        RtAlloc from = failing(&f, k);
        rt_pool_init(&pool, &from);
        st = rt_safetensors_open(&pool, path, &u, NULL);
        rt_pool_free(&pool);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
    scratch_remove(dir);
}

TEST_MAIN()
