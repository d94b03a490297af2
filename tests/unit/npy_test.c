/* .npy reading and writing: every type, both versions, hostile headers. */
#include "test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/data/npy.h"
#include "rt_test_util.h"

/* A version-1 file around a header text and n zero bytes, truncated to cut. */
static size_t make(uint8_t *to, const char *header, size_t n_data) {
    size_t len = strlen(header);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (uint8_t)(len & 255), to[9] = (uint8_t)(len >> 8);
    memcpy(to + 10, header, len);
    memset(to + 10 + len, 0, n_data);
    return 10 + len + n_data;
}

static gnnc_status parse(const char *header, size_t n_data, RtArray *a, RtError *err) {
    static _Alignas(64) uint8_t buf[4096];
    static RtPool pool;
    rt_pool_init(&pool, NULL);
    *err = (RtError){""};
    gnnc_status st =
        rt_npy_parse(&pool, (RtBytes){buf, make(buf, header, n_data)}, "t.npy", a, err);
    rt_pool_free(&pool);
    return st;
}

TEST(reads_every_type) {
    for (int i = 0; i < RT_N_DT; i++) {
        char header[128];
        RtArray a;
        RtError err;
        const char *descr = rt_dtype_npy((RtDtype)i);
        if (!descr) continue;
        snprintf(header, sizeof header,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }\n", descr);
        CHECK(parse(header, 6 * rt_dtype_bytes((RtDtype)i), &a, &err) == GNNC_OK);
        CHECK(a.dt == (RtDtype)i && a.rank == 2 && a.shape[0] == 2 && a.shape[1] == 3);
        CHECK(a.count == 6);
    }
}

TEST(reads_scalars_vectors_and_other_key_orders) {
    RtArray a;
    RtError err;
    CHECK(parse("{'shape': (), 'fortran_order': False, 'descr': '<i8'}", 8, &a, &err) == GNNC_OK);
    CHECK(a.rank == 0 && a.count == 1);
    CHECK(parse("{\"shape\": (5,), \"fortran_order\": True, \"descr\": '|i1'}", 5, &a, &err) ==
          GNNC_OK);
    CHECK(a.rank == 1 && a.count == 5 && !a.fortran);
    CHECK(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", 0, &a, &err) ==
          GNNC_OK);
    CHECK(a.count == 0);
}

TEST(columns_are_aligned_whatever_the_header) {
    RtPool pool;
    RtArray a;
    static _Alignas(64) uint8_t buf[256];
    rt_pool_init(&pool, NULL);
    size_t n = make(buf, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }  ", 12);
    CHECK(rt_npy_parse(&pool, (RtBytes){buf, n}, "t.npy", &a, NULL) == GNNC_OK);
    CHECK((uintptr_t)a.data % RT_ALIGN == 0);
    for (int i = 0; i < 5; i++) CHECK((uintptr_t)rt_pool_alloc(&pool, 5, 4) % RT_ALIGN == 0);
    rt_pool_free(&pool);
}

TEST(refuses_malformed_headers) {
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} trailing",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtArray a;
        RtError err;
        CHECK_MSG(parse(bad[i], 4, &a, &err) != GNNC_OK, "accepted: %s", bad[i]);
        CHECK_MSG(strncmp(err.text, "t.npy: ", 7) == 0, "no file in: %s", err.text);
    }
}

TEST(refuses_wrong_lengths) {
    RtArray a;
    RtError err;
    const char *h = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    CHECK(parse(h, 7, &a, &err) == GNNC_E_FORMAT);
    CHECK_STR(err.text, "t.npy: holds 7 bytes of elements, its header says 8");
    CHECK(parse(h, 9, &a, &err) == GNNC_E_FORMAT);
}

TEST(every_truncation_is_an_error) {
    uint8_t buf[256];
    RtPool pool;
    rt_pool_init(&pool, NULL);
    size_t n = make(buf, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8);
    for (size_t k = 0; k < n; k++) {
        RtArray a;
        RtError err = {""};
        uint8_t *copy = malloc(k ? k : 1); /* exact size: the sanitizer sees overreads */
        memcpy(copy, buf, k);
        CHECK(rt_npy_parse(&pool, (RtBytes){copy, k}, "t", &a, &err) == GNNC_E_FORMAT);
        free(copy);
    }
    rt_pool_free(&pool);
}

TEST(saved_arrays_read_back) {
    char path[128];
    const char *dir = scratch_new();
    snprintf(path, sizeof path, "%s/a.npy", dir);
    float x[6] = {1, 2, 3, 4, 5, -0.5f};
    RtArray a = {.dt = RT_DT_F32, .rank = 2, .shape = {3, 2}, .data = x}, b;
    RtPool pool;
    RtError err = {""};
    rt_pool_init(&pool, NULL);
    CHECK(rt_npy_save(NULL, path, &a, &err) == GNNC_OK);
    CHECK(rt_npy_save(NULL, path, &a, &err) == GNNC_OK); /* replaces */
    CHECK(rt_npy_open(&pool, path, &b, &err) == GNNC_OK);
    CHECK(b.rank == 2 && b.shape[0] == 3 && b.shape[1] == 2 && b.dt == RT_DT_F32);
    CHECK((uintptr_t)b.data % 64 == 0);
    CHECK(memcmp(b.data, x, sizeof x) == 0);
    CHECK(count_entries(dir) == 1); /* no temporary file stays */
    rt_pool_free(&pool);
    CHECK(rt_npy_open(&pool, "/nowhere/x.npy", &b, &err) == GNNC_E_IO);
    CHECK(strstr(err.text, "/nowhere/x.npy: cannot open: No such file"));
    err = (RtError){""};
    CHECK(rt_npy_save(NULL, "/nowhere/x.npy", &a, &err) == GNNC_E_IO);
    scratch_remove(dir);
}

/* What stands in the file that a path leads to: its first 6 bytes. */
static bool is_npy(const char *path) {
    char head[6] = "";
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n == sizeof head && memcmp(head, "\x93NUMPY", 6) == 0;
}

TEST(links_are_followed_and_what_is_no_file_is_refused) {
    float x[] = {1, 2};
    RtArray a = {.dt = RT_DT_F32, .rank = 1, .shape = {2}, .data = x};
    char *dir = strdup(scratch_new()), link_[100], file[100], fifo[100];
    RtError err = {""};
    struct stat s;
    snprintf(link_, sizeof link_, "%s/link", dir);
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    write_file(file, "old", 3);
    CHECK(symlink(file, link_) == 0 && rt_npy_save(NULL, link_, &a, &err) == GNNC_OK);
    CHECK(lstat(link_, &s) == 0 && S_ISLNK(s.st_mode) && is_npy(file));
    static const char *const others[] = {"/dev/full", "/", "no/where"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unlink(link_);
        err = (RtError){""};
        CHECK(symlink(others[i], link_) == 0);
        CHECK_MSG(rt_npy_save(NULL, link_, &a, &err) == GNNC_E_IO, "%s", others[i]);
        CHECK_MSG(lstat(link_, &s) == 0 && S_ISLNK(s.st_mode), "%s was replaced", others[i]);
    }
    CHECK(mkfifo(fifo, 0600) == 0 && rt_npy_save(NULL, fifo, &a, NULL) == GNNC_E_IO);
    CHECK(count_entries(dir) == 3);
    scratch_remove(dir);
    free(dir);
}

/* A writer that is killed before it is done leaves nothing beside the file. */
TEST(a_killed_writer_leaves_no_file) {
    char *dir = strdup(scratch_new()), path[100];
    snprintf(path, sizeof path, "%s/x.npy", dir);
    pid_t child = fork();
    if (child == 0) {
        RtOut o;
        if (rt_out_open(&o, NULL, path, NULL) == GNNC_OK) rt_out_write(&o, "half", 4, NULL);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, NULL, 0) == child && count_entries(dir) == 0);
    scratch_remove(dir);
    free(dir);
}

TEST(column_major_becomes_row_major) {
    int32_t cm[6] = {1, 2, 3, 4, 5, 6}; /* [2, 3]: columns (1,2) (3,4) (5,6) */
    const int32_t want[6] = {1, 3, 5, 2, 4, 6};
    RtArray a = {
        .dt = RT_DT_I32, .rank = 2, .shape = {2, 3}, .count = 6, .data = cm, .fortran = true};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    RtArray r = rt_array_row_major(&pool, &a);
    CHECK(memcmp(r.data, want, sizeof want) == 0);
    rt_pool_free(&pool);
}

TEST(conversions) {
    CHECK(rt_f16_to_f32(0x3c00) == 1 && rt_f16_to_f32(0xc000) == -2);
    CHECK(rt_f16_to_f32(1) == 0x1p-24f && rt_f16_to_f32(0x7bff) == 65504);
    CHECK(rt_f16_to_f32(0x7c00) > 1e38f && rt_f16_to_f32(0x7e00) != rt_f16_to_f32(0x7e00));
    CHECK(rt_bf16_to_f32(0x3f80) == 1);
    RtPool pool;
    RtError err = {""};
    const int32_t *out;
    int64_t big[2] = {1, (int64_t)1 << 40};
    RtArray a = {.dt = RT_DT_I64, .rank = 1, .shape = {2}, .count = 2, .data = big};
    rt_pool_init(&pool, NULL);
    CHECK(rt_array_as_i32(&pool, &a, "big", &out, &err) == GNNC_E_RANGE);
    CHECK_STR(err.text, "big: element 1 is 1099511627776, beyond 32 bits");
    a.dt = RT_DT_F64;
    CHECK(rt_array_as_i32(&pool, &a, "f", &out, NULL) == GNNC_E_DTYPE);
    rt_pool_free(&pool);
}

TEST(integers_of_few_bits) {
    static const struct {
        RtDtype dt;
        int64_t fits[2], too_far[2];
    } types[] = {{RT_DT_I8, {-128, 127}, {-129, 128}},
                 {RT_DT_U8, {0, 255}, {-1, 256}},
                 {RT_DT_I16, {-32768, 32767}, {-32769, 32768}},
                 {RT_DT_U16, {0, 65535}, {-1, 65536}},
                 {RT_DT_U32, {0, UINT32_MAX}, {-1, (int64_t)UINT32_MAX + 1}}};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        RtArray a = {.dt = RT_DT_I64, .rank = 1, .shape = {2}, .count = 2, .data = types[t].fits};
        const void *out = NULL;
        CHECK(rt_array_as(&pool, &a, types[t].dt, "x", &out, NULL) == GNNC_OK);
        RtArray y = {.dt = types[t].dt, .rank = 1, .shape = {2}, .count = 2, .data = out};
        for (int i = 0; i < 2; i++) CHECK(rt_array_i64(&y, i) == types[t].fits[i]);
        CHECK(rt_array_as(&pool, &y, types[t].dt, "x", &out, NULL) == GNNC_OK && out == y.data);
        for (int i = 0; i < 2; i++) {
            RtError err = {""};
            a.count = 1, a.data = &types[t].too_far[i];
            CHECK(rt_array_as(&pool, &a, types[t].dt, "x", &out, &err) == GNNC_E_RANGE);
            if (types[t].dt == RT_DT_U8 && i)
                CHECK_STR(err.text, "x: element 0 is 256, beyond unsigned 8 bits");
        }
    }
    rt_pool_free(&pool);
}

TEST(the_first_error_stays) {
    RtError err = {""};
    CHECK(rt_fail(&err, GNNC_E_IO, "first %d", 1) == GNNC_E_IO);
    CHECK(rt_fail(&err, GNNC_E_ARG, "second") == GNNC_E_ARG);
    CHECK_STR(err.text, "first 1");
    CHECK_STR(gnnc_status_text(GNNC_E_NOMEM), "out of memory");
    CHECK_STR(gnnc_status_text((gnnc_status)-1000), "unknown status");
}

TEST(pools_refuse_overflow_and_failure) {
    FailingAlloc f;
    RtAlloc from = failing(&f, 1);
    RtPool pool;
    rt_pool_init(&pool, &from);
    CHECK(rt_pool_alloc(&pool, SIZE_MAX / 2, 8) == NULL);
    CHECK(rt_pool_alloc(&pool, 0, 8) != NULL);
    CHECK(rt_pool_alloc(&pool, 1, 4000) == NULL); /* the second block */
    rt_pool_free(&pool);
    CHECK(f.n_live == 0);
}

TEST_MAIN()
