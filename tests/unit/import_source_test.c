/* The importer of databases over a source in memory: keys of any type, what is said of columns,
 * references that lead nowhere, and what cannot be read. */
#include "test.h"

#include <math.h>

#include "csv_util.h"
#include "rt_test_util.h"
#include "runtime/import/import_build.h"
#include "runtime/import/import_datum.h"
#include "runtime/import/import_dict.h"
#include "runtime/import/import_encode.h"

/* A cell as a text: "" is NULL, "'x" the text x, ~ in it a NUL, "#" a blob, "nan" NaN; else a
 * number. */
typedef struct {
    const char *name, *columns, *declared; /* parted by blanks */
    const char *key, *rows;                /* rows end with '\n', cells with ' ' */
    const char *references;                /* "a,b table a,b", parted by ';' */
} Made;

typedef struct {
    RtSource s;
    const Made *made;
    const int *column;
    const char *at;
    int n;
    int64_t row;
    long fails_at; /* row whose reading fails; 0: none */
    char buffer[16][64];
} Memory;

static gnnc_status begin(RtSource *s, int table, const int *column, int n, RtError *err) {
    Memory *x = s->state;
    (void)err;
    x->made = s->tables[table].state;
    x->at = x->made->rows;
    x->column = column;
    x->n = n;
    x->row = 0;
    return GNNC_OK;
}

static RtDatum text_datum(char *s) {
    RtDatum c = {.type = RT_DATUM_TEXT, .n = strlen(s), .s = s};
    for (; *s; s++)
        if (*s == '~') *s = '\0';
    return c;
}

static RtDatum datum(char *s) {
    if (!*s) return (RtDatum){.type = RT_DATUM_NULL};
    if (*s == '#') return (RtDatum){.type = RT_DATUM_BLOB};
    if (*s == '\'') return text_datum(s + 1);
    if (strpbrk(s, ".en")) return (RtDatum){.type = RT_DATUM_REAL, .d = atof(s)};
    return (RtDatum){.type = RT_DATUM_INTEGER, .i = atoll(s)};
}

static gnnc_status next(RtSource *s, RtDatum *cell, int64_t *line, RtError *err) {
    Memory *x = s->state;
    *line = 0;
    if (x->fails_at && x->row + 1 == x->fails_at) return rt_fail(err, GNNC_E_IO, "gone");
    if (!*x->at) return GNNC_OK;
    for (int i = 0; i < 16 && (!i || *x->at != '\n'); i++) {
        size_t n = strcspn(x->at, " \n");
        snprintf(x->buffer[i], sizeof x->buffer[i], "%.*s", (int)n, x->at);
        x->at += n + (x->at[n] == ' ');
    }
    x->at++;
    for (int i = 0; i < x->n; i++) cell[i] = datum(x->buffer[x->column[i]]);
    *line = ++x->row;
    return GNNC_OK;
}

static void end(RtSource *s) {
    (void)s;
}

static const RtSourceForm form = {begin, next, end, end, NULL};

/* The next word of a list; NULL: none. */
static const char *word(const char **s, char *to, char sep) {
    size_t n = 0;
    for (; **s && **s != sep; ++*s) to[n++] = **s;
    to[n] = 0;
    if (**s) ++*s;
    return n ? to : NULL;
}

static bool columns_of(const RtSourceTable *t, const char *list, RtKeyColumns *c) {
    char name[32];
    *c = (RtKeyColumns){0};
    while (word(&list, name, ','))
        if ((c->at[c->n++] = rt_source_column(t, name, strlen(name))) < 0) return false;
    return true;
}

static bool make_table(Memory *x, RtSourceTable *t, const Made *m) {
    char name[32];
    const char *names = m->columns, *types = m->declared;
    int n = 1;
    for (const char *s = names; *s; s++) n += *s == ' ';
    t->name = m->name;
    t->state = (void *)(uintptr_t)m;
    if (!rt_source_columns(&x->s.pool, t, n)) return false;
    for (int i = 0; i < n; i++) {
        word(&names, name, ' ');
        if (!(t->columns[i].name = rt_pool_strndup(&x->s.pool, name, strlen(name)))) return false;
        t->columns[i].declared = rt_declared_type(word(&types, name, ' '));
    }
    for (const char *s = m->rows; *s; s++) t->n_rows += *s == '\n';
    columns_of(t, m->key, &t->key);
    t->unique = t->key.n;
    return true;
}

static bool make_references(Memory *x, RtSourceTable *t, const Made *all, int n) {
    const char *list = ((const Made *)t->state)->references;
    char from[32], table[32], to[32];
    while (list && word(&list, from, ' ')) {
        RtReference r = {0};
        word(&list, table, ' ');
        word(&list, to, ';');
        x->s.declares = true;
        for (int i = 0; i < n; i++)
            if (strcmp(all[i].name, table) == 0) r.table = i;
        columns_of(t, from, &r.from);
        columns_of(&x->s.tables[r.table], to, &r.to);
        if (!rt_source_refer(&x->s.pool, t, &r)) return false;
    }
    return true;
}

static gnnc_status import(const RtAlloc *from, const Made *made, int n, const char *map,
                          long fails_at, RtImport *how, RtDataset **d, RtError *err) {
    Memory x = {.s = {.form = &form, .name = "memory"}, .fails_at = fails_at};
    RtNamedBytes rules = {"map", bytes(map ? map : "")};
    rt_pool_init(&x.s.pool, from);
    x.s.state = &x;
    x.s.tables = RT_NEWN(&x.s.pool, RtSourceTable, n);
    bool ok = x.s.tables;
    *d = NULL;
    for (int i = 0; ok && i < n; i++) ok = make_table(&x, &x.s.tables[x.s.n_tables++], &made[i]);
    for (int i = 0; ok && i < n; i++) ok = make_references(&x, &x.s.tables[i], made, n);
    gnnc_status st = ok ? rt_source_order(&x.s, err) : GNNC_E_NOMEM;
    if (st == GNNC_OK) st = rt_import_source(from, &x.s, map ? &rules : NULL, how, d, err);
    rt_pool_free(&x.s.pool);
    return st;
}

static RtDataset *whole(const Made *made, int n, const char *map, RtImport *how) {
    RtDataset *d;
    RtError err = {""};
    import(NULL, made, n, map, 0, how, &d, &err);
    CHECK_MSG(d, "%s", err.text);
    return d;
}

static void refused(const Made *made, int n, const char *map, RtImport how, const char *want) {
    RtDataset *d;
    RtError err = {""};
    CHECK(import(NULL, made, n, map, 0, &how, &d, &err) != GNNC_OK && !d);
    CHECK_STR(err.text, want);
}

#define SAME(a, T, ...) (memcmp(a, (T[]){__VA_ARGS__}, sizeof((T[]){__VA_ARGS__})) == 0)

static const RtColumn *column(const RtDataset *d, const char *table, const char *name) {
    const RtColumn *c = rt_table_column(rt_dataset_nodes(d, table), name);
    CHECK_MSG(c, "no %s.%s", table, name);
    return c;
}

/* ---- parts ------------------------------------------------------------------------------ */
TEST(texts_get_numbers) {
    RtPool pool;
    RtDict d;
    char text[64];
    rt_pool_init(&pool, NULL);
    rt_dict_init(&d, &pool);
    CHECK(rt_dict_find(&d, "", 0) == -1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 5000; i++) {
            int n = snprintf(text, sizeof text, "%d the same beginning %d", i % 7, i);
            CHECK(rt_dict_add(&d, text, (size_t)n) == i);
        }
    CHECK(d.n == 5000 && rt_dict_find(&d, "x", 1) == -1 && rt_dict_add(&d, "", 0) == 5000);
    CHECK(rt_dict_add(&d, "a\0b", 3) == 5001 && rt_dict_add(&d, "a\0c", 3) == 5002);
    CHECK(rt_dict_find(&d, "a\0b", 3) == 5001 && rt_dict_find(&d, "a", 1) == -1);
    rt_pool_free(&pool);
}

static void is_called(const char *name, const char *want) {
    RtPool pool;
    rt_pool_init(&pool, NULL);
    const char *id = rt_identifier(&pool, name, strlen(name));
    CHECK_STR(id, want);
    CHECK_STR(rt_identifier(&pool, id, strlen(id)), want);
    rt_pool_free(&pool);
}

TEST(names_of_any_script_are_told_apart) {
    char a[80], b[80], longest[57];
    is_called("3d shape", "_3d_shape");
    is_called("node", "node_");
    is_called("gr\xc3\xb6\xc3\x9f"
              "e",
              "gru00f6u00dfe");
    is_called("\xf0\x9f\x90\x8e\xe5\x90\x8d", "u1f40eu540d");
    is_called("\xff\xc3(a\x80", "___a_");
    memset(longest, 'x', 56);
    longest[56] = 0;
    is_called(longest, longest);
    snprintf(a, sizeof a, "%sa", longest);
    snprintf(b, sizeof b, "%.47s_694dfe8c", longest);
    is_called(a, b);
    snprintf(a, sizeof a, "1%.52s\xc3\xb6", longest);
    snprintf(b, sizeof b, "_1%.45s_221fd8a1", longest);
    is_called(a, b);
}

TEST(declared_types) {
    static const struct {
        const char *words;
        rt_declared is;
    } c[] = {{"INTEGER", RT_DECLARED_INTEGER},   {"unsigned big int", RT_DECLARED_INTEGER},
             {"varchar(20)", RT_DECLARED_TEXT},  {"DECIMAL(10,2)", RT_DECLARED_REAL},
             {"double", RT_DECLARED_REAL},       {"datetime", RT_DECLARED_TIME},
             {"timestamp(3)", RT_DECLARED_TIME}, {"boolean", RT_DECLARED_BOOLEAN},
             {"BLOB", RT_DECLARED_BLOB},         {"POINT", RT_DECLARED_TEXT},
             {"interval", RT_DECLARED_TEXT},     {"", RT_DECLARED_NONE},
             {NULL, RT_DECLARED_NONE},           {"json", RT_DECLARED_TEXT}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        CHECK_MSG(rt_declared_type(c[i].words) == c[i].is, "%s", c[i].words);
}

/* ---- keys ---------------------------------------------------------------------------------- */
static const Made shop[] = {
    {"person", "name age chief", "text int text", "name", "'ann 30 \n'bob  'ann\n'cid 5 'cid\n",
     "chief person "},
    {"Line No", "of n x", "int int real", "of,n", "1 1 .5\n1 2 1.5\n7 1 2.5\n", NULL},
    {"note", "o l who by what", "int int text text text", "",
     "1 2 'bob 'ann 'x\n1  'ann  'y\n7 1.0 'cid 'bob 'x\n'1 '1  'cid 'x\n",
     "o,l Line_No ;who person ;by person name"},
};

TEST(keys_of_any_type) {
    Made made[3];
    memcpy(made, shop, sizeof made);
    made[1].name = "Line_No"; /* words of the references */
    RtDataset *d = whole(made, 3, NULL, &(RtImport){0});
    if (!d) return;
    CHECK(d->n_nodes == 3 && d->n_edges == 4);
    const RtTable *self = rt_dataset_edges(d, "person__chief"), *note = rt_dataset_nodes(d, "note");
    CHECK(self && self->count == 2 && SAME(self->src, int32_t, 1, 2) &&
          SAME(self->dst, int32_t, 0, 2));
    const RtTable *both = rt_dataset_edges(d, "note__o_l");
    CHECK(both && both->count == 3 && SAME(both->src, int32_t, 0, 2, 3));
    CHECK(both && SAME(both->dst, int32_t, 1, 2, 0)); /* 1.0 and '1' are 1 */
    CHECK_STR(both ? both->why : "", "column 'o', 'l', absent in 1 rows");
    CHECK(rt_dataset_edges(d, "note__who")->count == 3);
    CHECK(rt_dataset_edges(d, "note__by")->count == 3);
    CHECK(note && note->count == 4 && note->n_columns == 1 && !note->names);
    CHECK_STR(rt_dataset_nodes(d, "person")->names[1], "bob");
    CHECK_STR(rt_dataset_nodes(d, "Line_No")->names[2], "7,1");
    CHECK(SAME(column(d, "person", "age")->f32, float, 30, 0, 5));
    CHECK(SAME(column(d, "person", "age_missing")->i32, int32_t, 0, 1, 0));
    CHECK(SAME(column(d, "Line_No", "n")->f32, float, 1, 2, 1));
    rt_dataset_close(d);
}

TEST(the_mapping_says_otherwise) {
    static const Made made[] = {
        {"a", "id k v", "int int int", "id", "1 5 0\n2 6 1\n", NULL},
        {"b", "x p q w", "text int int real", "", "'u 5 1 2.5\n'v 6 2 3\n", NULL},
    };
    RtDataset *d =
        whole(made, 2, "a.v cat unknown # names\nb.p -> a.k\nb.x key\nb.q drop\nb.w float\n",
              &(RtImport){0});
    if (!d) return;
    const RtTable *e = rt_dataset_edges(d, "b__p"), *b = rt_dataset_nodes(d, "b");
    CHECK(e && e->count == 2 && SAME(e->dst, int32_t, 0, 1));
    CHECK(b->n_columns == 1 && b->names && strcmp(b->names[1], "v") == 0);
    const RtColumn *v = column(d, "a", "v");
    CHECK(v->kind == RT_COL_CAT && v->n_categories == 3 && strcmp(v->names[2], "1") == 0);
    rt_dataset_close(d);
    refused(made, 2, "b.p -> a.k,v", (RtImport){0},
            "map:1: as many columns are expected on both sides");
    refused(made, 2, "b.p,q -> a", (RtImport){0},
            "map: b.p refers to a, whose key has 1 columns, not 2");
    refused(made, 2, "b.p,z -> a", (RtImport){0}, "map:1: b has no column 'z'; it has x, p, q, w");
    refused(made, 2, "b.p csr", (RtImport){0},
            "map:1: key, drop, -> table, or a kind is expected: one of float, cat, class, time, "
            "id, split");
}

/* ---- kinds ---------------------------------------------------------------------------------- */
TEST(types_and_first_cells_say_the_kind) {
    static const Made made[] = {{"t", "y date free when bin empty flag ref_id timestamp",
                                 "text date  text blob int bool int int", "",
                                 "'b '2020-01-02 'x '2020-01-01 #  1 7 60\n"
                                 " 86400 'y  # 'NULL 't 8 61\n'a   '2020-01-03   0  \n",
                                 NULL}};
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told, .skip_bad = true};
    RtDataset *d = whole(made, 1, NULL, &how);
    if (!d) return;
    CHECK(how.n_bad == 1); /* 86400 where times are dates */
    CHECK(column(d, "t", "y")->kind == RT_COL_CLASS && column(d, "t", "y")->n_categories == 2);
    CHECK(column(d, "t", "date")->f64[0] == 1577923200 && isnan(column(d, "t", "date")->f64[1]));
    CHECK(column(d, "t", "free")->kind == RT_COL_CAT && column(d, "t", "when")->n_categories == 2);
    CHECK(SAME(column(d, "t", "flag")->f32, float, 1, 0));
    CHECK(column(d, "t", "ref_id")->i64[0] == 7 && column(d, "t", "timestamp")->f64[0] == 60);
    CHECK(!rt_table_column(&d->nodes[0], "bin"));
    CHECK(warned(&told, "t: column 'bin' is left out: it is binary data"));
    rt_dataset_close(d);
}

/* NaN is absent, wherever the first NULL is. */
TEST(what_is_absent_is_so_in_any_order) {
    static const char *const rows[] = {"1 nan\n2 \n3 2.5\n", "1 \n2 nan\n3 2.5\n"};
    for (int i = 0; i < 2; i++) {
        const Made made = {"t", "id x", "int real", "id", rows[i], NULL};
        RtDataset *d = whole(&made, 1, NULL, &(RtImport){0});
        if (!d) continue;
        CHECK(SAME(column(d, "t", "x")->f32, float, 0, 0, 2.5));
        CHECK(SAME(column(d, "t", "x_missing")->i32, int32_t, 1, 1, 0));
        rt_dataset_close(d);
        d = whole(&made, 1, NULL, &(RtImport){.standardize = true});
        RtError err = {""};
        CHECK_MSG(d && rt_import_encode(d, &(RtFitRows){0}, &err) == GNNC_OK, "%s", err.text);
        CHECK(d && column(d, "t", "x")->encoder->mean == 2.5);
        rt_dataset_close(d);
    }
}

TEST(dates_that_are_no_times_are_told) {
    static char rows[1 << 15];
    size_t n = 0;
    for (int i = 0; i < 600; i++)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "%d '2020-01-%02d '%d-01-31 '%d-x\n", i,
                              1 + i % 28, 1400 + i, i % 9);
    Made made = {"t", "id joined seen code", "int text text text", "id", rows, NULL};
    Told told = {.n = 0};
    RtDataset *d = whole(&made, 1, NULL, &(RtImport){.on_warning = tell, .user = &told});
    CHECK(d && column(d, "t", "joined")->kind == RT_COL_CAT && !rt_table_column(d->nodes, "seen"));
    CHECK(warned(&told, "t: column 'joined' is a category, though its texts are dates"));
    CHECK(warned(&told, "t: column 'seen' is left out, though its texts are dates"));
    CHECK(warned(&told, "--kind t.seen=time makes it one") && !warned(&told, "'code'"));
    rt_dataset_close(d);
    told.n = 0;
    d = whole(&made, 1, "t.joined time\nt.seen time",
              &(RtImport){.on_warning = tell, .user = &told});
    CHECK(d && column(d, "t", "seen")->kind == RT_COL_TIME && !warned(&told, "dates"));
    rt_dataset_close(d);
}

TEST(texts_of_single_rows_are_no_categories) {
    static char rows[1 << 15];
    size_t n = 0;
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "%d 'text%d 'few%d\n", i, i, i % 300);
    Made made = {"t", "id long few", "int text text", "id", rows, NULL};
    Told told = {.n = 0};
    RtDataset *d = whole(&made, 1, NULL, &(RtImport){.on_warning = tell, .user = &told});
    CHECK(d && !rt_table_column(d->nodes, "long") && column(d, "t", "few")->n_categories == 300);
    CHECK(warned(&told, "t: column 'long' is left out: nearly each row has a text of its own"));
    rt_dataset_close(d);
    d = whole(&made, 1, "t.long cat", &(RtImport){0});
    CHECK(d && column(d, "t", "long")->n_categories == 1000);
    CHECK_STR(d ? column(d, "t", "long")->names[column(d, "t", "long")->i32[999]] : "", "text999");
    rt_dataset_close(d);
}

/* ---- what leads nowhere, or cannot be read --------------------------------------------------- */
static const Made loose[] = {
    {"a", "id", "int", "id", "1\n2\n", NULL},
    {"b", "id a c", "int int int", "id", "1 1 1\n2 3 1\n3 2 2\n4  9\n", "a a ;c b "},
};

TEST(references_to_no_row) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told, .dangling = RT_DANGLING_KEEP};
    RtDataset *d = whole(loose, 2, NULL, &how);
    if (!d) return;
    CHECK(rt_dataset_nodes(d, "b")->count == 4 && rt_dataset_edges(d, "b__a")->count == 2);
    CHECK_STR(rt_dataset_edges(d, "b__a")->why, "column 'a', absent in 1 rows, 1 lead to no row");
    CHECK(warned(&told, "b: column 'a': 1 rows lead to none and have no edge (row 2: column 'a': "
                        "3 is no key of a)"));
    rt_dataset_close(d);
    how.dangling = RT_DANGLING_DROP;
    d = whole(loose, 2, NULL, &how);
    if (!d) return;
    const RtTable *c = rt_dataset_edges(d, "b__c"); /* of 3 to 2, which is left out, no more */
    CHECK(rt_dataset_nodes(d, "b")->count == 2 && SAME(column(d, "b", "id")->i64, int64_t, 1, 3));
    CHECK(c->count == 1 && c->src[0] == 0 && c->dst[0] == 0);
    CHECK(rt_dataset_edges(d, "b__a")->count == 2 && rt_dataset_edges(d, "b__a")->src[1] == 1);
    CHECK(warned(&told, "b: column 'c': 1 rows lead to rows that are left out: no edge"));
    rt_dataset_close(d);
    refused(loose, 2, NULL, (RtImport){0},
            "b: row 2: key 2: column 'a': 3 is no key of a (2 bad rows in all)");
    refused(loose, 2, NULL, (RtImport){.skip_bad = true, .dangling = RT_DANGLING_STOP},
            "memory: 2 references lead to no row (b: row 2: key 2: column 'a': 3 is no key of a)");
}

TEST(bad_cells_are_told_with_table_row_and_column) {
    static const Made bad[] = {{"t", "id n", "int int", "id", "7 1\n8 'x\n9 2\n", NULL},
                               {"u", "id s", "int text", "id", "1 'a\n2 '\xff\n", NULL},
                               {"v", "s", "text", "s", "'a\n'b\xc3\n", NULL},
                               {"w", "s", "text", "s", "'a\n\n", NULL},
                               {"x", "d", "date", "", "'0000-01-01\n'10000-01-01\n", NULL},
                               {"y", "n", "real", "", "1\n1e300\n", NULL},
                               {"k", "n", "real", "", "1\n'5~x\n", NULL},
                               {"l", "r k", "text text", "k", "'a 'a\n'~ 'b\n", "r l k"},
                               {"z", "k v", "int int", "k", "1 1\n1 2\n", NULL}};
    static const char *const want[] = {
        "t: row 2: key 8: column 'n': 'x' is not a number (1 bad row in all)",
        "u: row 2: key 2: column 's': '\xff' is no UTF-8 text (1 bad row in all)",
        "v: row 2: key 'b\xc3': its key is no UTF-8 text (1 bad row in all)",
        "w: row 2: key NULL: no key (1 bad row in all)",
        "x: row 2: column 'd': '10000-01-01' is not a time (1 bad row in all)",
        "y: row 2: column 'n': 1e+300 is too large: 3.4e38 at most (1 bad row in all)",
        "k: row 2: column 'n': '5' is binary: it holds a NUL byte (1 bad row in all)",
        "l: row 2: key 'b': column 'r': '' is no key of l (1 bad row in all)"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        refused(&bad[i], 1, NULL, (RtImport){0}, want[i]);
    RtImport how = {.skip_bad = true};
    RtDataset *d = whole(&bad[0], 1, NULL, &how);
    CHECK(d && how.n_bad == 1 && SAME(column(d, "t", "id")->i64, int64_t, 7, 9));
    rt_dataset_close(d);
    refused(&bad[8], 1, "z.k,v key\nz.k key", (RtImport){0}, "map:2: the table has a key already");
    Made twice = bad[8];
    twice.key = "";
    const Made lists = {"m", "k s", "int text", "k", "1 '[\"a\"]\n2 '[b\n", NULL};
    refused(&lists, 1, "m.s float several", (RtImport){0},
            "m: row 2: key 2: column 's': '[b' is not a list of categories (1 bad row in all)");
    refused(&twice, 1, "z.k key", (RtImport){0},
            "z: row 2: key 1: its key 1 is repeated: row 1 has it (1 bad row in all)");
}

TEST(a_source_that_fails_in_the_middle) {
    for (long row = 1; row <= 4; row++) {
        RtDataset *d;
        RtError err = {""};
        RtImport how = {.dangling = RT_DANGLING_KEEP};
        CHECK(import(NULL, loose, 2, NULL, row, &how, &d, &err) == GNNC_E_IO && !d);
        CHECK_STR(err.text, "gone");
    }
}

TEST(every_failed_allocation_is_survived) {
    gnnc_status st = GNNC_E_NOMEM;
    for (long k = 0; st != GNNC_OK && k < 5000; k++) {
        FailingAlloc f;
        RtDataset *d;
        RtImport how = {.dangling = RT_DANGLING_KEEP};
        RtAlloc from = failing(&f, k);
        RtError err = {""};
        st = import(&from, loose, 2, k % 2 ? "a.id key" : NULL, 0, &how, &d, &err);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "call %ld: %d %s", k, st, err.text);
        rt_dataset_close(d);
        CHECK_MSG(f.n_live == 0, "call %ld", k);
    }
    CHECK(st == GNNC_OK);
}

TEST_MAIN()
