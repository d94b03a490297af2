/* Cells that hold more than a number or a name: what they become, what an import takes them for,
 * and that an encoder of the data makes the same of them. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "csv_util.h"
#include "graph_util.h"
#include "runtime/data/encoder_cells.h"
#include "runtime/import/import_encode.h"
#include "runtime/import/import_map.h"

enum { D = 64 };

/* What is wrong with a cell, NULL: nothing. */
static const char *encode(const RtEncoder *e, const char *text, void *to) {
    int at;
    return rt_encode(e, &(RtCell){.text = text}, to, 0, &at);
}

static double dot(const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < D; i++) sum += (double)(a[i] * b[i]);
    return sum;
}

TEST(texts_of_like_words_are_alike) {
    const RtEncoder e = {.as = RT_AS_TEXT, .kind = RT_COL_FLOAT, .out = D};
    float a[D], b[D], c[D];
    CHECK(!encode(&e, "A quiet river", a) && fabs(dot(a, a) - 1) < 1e-5);
    CHECK(!encode(&e, "the QUIET rivers, a", b) && !encode(&e, "steel and engines", c));
    CHECK_MSG(dot(a, b) > 0.5 && dot(a, c) < 0.4, "%g %g", dot(a, b), dot(a, c));
    CHECK(!encode(&e, "river quiet a", b) && dot(a, b) > 0.9999); /* a bag of words */
    CHECK(!encode(&e, "\xc3\xa9t\xc3\xa9 \xff\xfe", b) && fabs(dot(b, b) - 1) < 1e-5);
    CHECK(!encode(&e, "", c) && dot(c, c) == 0 && !encode(&e, " .,- ", c) && dot(c, c) == 0);
    /* one word of one character: where it is, by the definition */
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *s = "<x>"; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    h ^= h >> 29;
    CHECK(!encode(&e, "X", a) && a[(h >> 32) % D] == (h & 1 ? -1.0f : 1.0f) && dot(a, a) == 1);
}

TEST(vectors_and_booleans_are_spelt_in_several_ways) {
    RtEncoder e = {.as = RT_AS_VECTOR, .kind = RT_COL_FLOAT, .out = 3};
    static const char *const good[] = {"[1, -2.5,3e1]", "{1,-2.5,30}", " ( 1 -2.5\t30. ) "};
    static const char *const bad[] = {"",         "1,2,3",    "[1,2]",   "[1,2,3",     "[1,,3]",
                                      "[1,2,3,]", "[1,2,3]x", "[1,2,x]", "[1,2,1e99]", "[1,2,3x]"};
    float v[3];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(!encode(&e, good[i], v) && v[0] == 1 && v[1] == -2.5f && v[2] == 30, "%s",
                  good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(encode(&e, bad[i], v), "%s", bad[i]);
    e.gaps = true;
    CHECK(!encode(&e, "NULL", v) && v[1] == 0 && rt_cell_vector("[]") == 0);
    e = (RtEncoder){.as = RT_AS_BOOLEAN, .kind = RT_COL_FLOAT};
    CHECK(!encode(&e, "TRUE", v) && *v == 1 && !encode(&e, "f", v) && *v == 0);
    CHECK(!encode(&e, "Yes", v) && *v == 1 && encode(&e, "maybe", v) && encode(&e, "", v));
}

TEST(products_read_no_images) {
    RtEncoder e = {.as = RT_AS_IMAGE, .kind = RT_COL_FLOAT, .out = 12};
    float v[12] = {1};
    CHECK_STR(encode(&e, "a.png", v), "an image, which gnnc import alone reads");
    CHECK(encode(&e, "", v) && v[0] == 0);
    e.gaps = true;
    CHECK(!encode(&e, "", v) && rt_image_side(12) == 2 && rt_image_side(13) == 0);
}

static int parts(const char *text, char separator, char out[4][RT_PART_TEXT]) {
    RtParts p;
    int n = 0;
    rt_parts_open(&p, text, separator);
    while (n < 4 && rt_parts_next(&p, out[n])) n++;
    return p.bad ? -1 : n;
}

TEST(lists_are_taken_apart) {
    char v[4][RT_PART_TEXT], large[600];
    CHECK(parts("a| b c ||d", '|', v) == 3 && !strcmp(v[1], "b c") && !strcmp(v[2], "d"));
    CHECK(parts("", '|', v) == 0 && parts("|", '|', v) == 0 && parts("[a", '|', v) == 1);
    CHECK(parts("[\"a,b\", \"c \\\"d\", null, e]", 0, v) == 3 && !strcmp(v[0], "a,b"));
    CHECK(!strcmp(v[1], "c \"d") && !strcmp(v[2], "e"));
    CHECK(parts("{a,\"b c\",NULL}", 0, v) == 2 && !strcmp(v[1], "b c") && parts("{}", 0, v) == 0);
    CHECK(parts("a,b", 0, v) < 0 && parts("{a,b", 0, v) < 0 && parts("{a}b", 0, v) < 0);
    CHECK(parts("[\"a", 0, v) < 0 && parts("[\"a\"b]", 0, v) < 0 && parts("[", 0, v) < 0);
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    CHECK(parts(large, '|', v) < 0);
}

/* ---- an import ------------------------------------------------------------------------------ */
enum { ROWS = 400, COLUMNS = 6 };

typedef struct {
    char nodes[ROWS * 160], edges[ROWS * 16];
    char cell[COLUMNS][ROWS][64];
    const char *text[COLUMNS][ROWS];
} Films;
static const char *const header[COLUMNS] = {"title", "genres", "emb", "hit", "tags", "split"};

/* Rows from 300 on are held out, and the genre `noir` is theirs alone. */
static Films *films(void) {
    static const char *const words[] = {"red", "old", "river", "moon", "house", "night", "sea"};
    static const char *const genres[] = {"war|drama", "kids", "war", "drama | kids", ""};
    Films *f = calloc(1, sizeof *f);
    char *to = f->nodes, *edge = f->edges + sprintf(f->edges, "src,dst\n");
    to += sprintf(to, "id,title,genres,emb,hit,tags,split\n");
    for (int i = 0; i < ROWS; i++) {
        sprintf(f->cell[0][i], "the %s %s %d", words[i % 7], words[i / 7 % 7], i);
        sprintf(f->cell[1][i], "%s", i >= 300 && i % 3 ? "noir|war" : genres[i % 5]);
        if (i % 9) sprintf(f->cell[2][i], "[%d, 0.5]", i);
        sprintf(f->cell[3][i], "%s", i % 2 ? "true" : "FALSE");
        sprintf(f->cell[4][i], i % 4 ? "{a,b}" : "{c}");
        sprintf(f->cell[5][i], i < 300 ? "train" : "test");
        to += sprintf(to, "%d", i);
        for (int k = 0; k < COLUMNS; k++) {
            to += sprintf(to, ",\"%s\"", f->cell[k][i]);
            f->text[k][i] = f->cell[k][i];
        }
        to += sprintf(to, "\n");
        edge += sprintf(edge, "%d,%d\n", i, (i + 1) % ROWS);
    }
    return f;
}

static RtDataset *imported(const Films *f, const char *map, RtImport *how, RtError *err) {
    RtNamedBytes rules = {"map", bytes(map)};
    how->map = *map ? &rules : NULL;
    RtDataset *d = csv(f->nodes, f->edges, how, err);
    how->map = NULL;
    if (!d || rt_import_encode(d, &(RtFitRows){0}, err) == GNNC_OK) return d;
    rt_dataset_close(d);
    return NULL;
}

TEST(an_import_finds_what_cells_hold) {
    Films *f = films();
    RtImport how = {0};
    RtError err;
    RtDataset *d = imported(f, "", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) {
        free(f);
        return;
    }
    static const struct {
        const char *name;
        RtAs as;
        int out;
    } want[] = {{"title", RT_AS_TEXT, 64},
                {"genres", RT_AS_SEVERAL, 4}, /* the unknown one and three; not noir */
                {"emb", RT_AS_VECTOR, 2},
                {"hit", RT_AS_BOOLEAN, 0},
                {"tags", RT_AS_SEVERAL, 4}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const RtColumn *c = rt_table_column(d->nodes, want[i].name);
        CHECK_MSG(c && c->encoder->as == want[i].as && c->encoder->out == want[i].out, "%s: %d",
                  want[i].name, c ? (int)c->encoder->as : -1);
        CHECK(c && rt_column_width(c) == (want[i].out ? want[i].out : 1));
    }
    const float *g = rt_table_column(d->nodes, "genres")->f32;
    CHECK_STR(rt_table_column(d->nodes, "genres")->encoder->names[3], "war");
    CHECK(!memcmp(g, (float[]){0, 1, 0, 1}, 16) && !memcmp(g + 16, (float[]){0, 0, 0, 0}, 16));
    CHECK(!memcmp(g + 4 * 301, (float[]){1, 0, 0, 1}, 16));
    CHECK(rt_table_column(d->nodes, "emb_missing")->i32[9] == 1);
    RtText map = {.pool = &d->pool}, again = {.pool = &d->pool};
    CHECK(rt_map_put(&map, d, NULL) && strstr(map.s, "float several |"));
    RtDataset *b = imported(f, map.s, &how, &err);
    CHECK_MSG(b && rt_map_put(&again, b, NULL), "%s", err.text);
    for (int i = 0; b && i < d->nodes->n_columns; i++) {
        const RtColumn *x = &d->nodes->columns[i], *y = &b->nodes->columns[i];
        size_t n = (size_t)(ROWS * rt_column_width(x)) * rt_column_value_bytes(x);
        CHECK_MSG(!strcmp(x->name, y->name) && x->kind == y->kind &&
                      rt_column_width(x) == rt_column_width(y) && !memcmp(x->values, y->values, n),
                  "%s", x->name);
    }
    rt_dataset_close(b);
    rt_dataset_close(d);
    how.asked = "genres = 'war' FOR title";
    d = imported(f, "", &how, &err);
    CHECK(d && rt_table_column(d->nodes, "genres")->kind == RT_COL_CAT);
    CHECK(d && rt_table_column(d->nodes, "hit")->kind == RT_COL_FLOAT);
    rt_dataset_close(d);
    free(f);
}

TEST(a_file_says_how_cells_are_read) {
    static const struct {
        const char *map, *says;
    } wrong[] = {
        {"vertex.title float text 5000", "behind 'float' may stand"},
        {"vertex.genres float several ||", "behind 'float' may stand"},
        {"vertex.title float text standard", "one or the other"},
        {"vertex.title float vector", "'the red red 0' is no list of 1 to 4096 numbers"},
        {"vertex.title float several", "not a list of categories"},
        {"vertex.genres float boolean", "neither true nor false"},
    };
    Films *f = films();
    RtError err;
    Told told = {{0}, 0};
    RtImport how = {.on_bad = tell, .user = &told};
    RtDataset *d = imported(f,
                            "vertex.title float text 8\nvertex.tags cat known\n"
                            "vertex.genres float several |",
                            &how, &err);
    CHECK_MSG(d, "%s", err.text);
    CHECK(d && rt_table_column(d->nodes, "title")->shape[1] == 8);
    CHECK(d && rt_table_column(d->nodes, "tags")->n_categories == 2);
    rt_dataset_close(d);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RtImport bad = {.on_bad = tell, .user = &told};
        told = (Told){{0}, 0};
        CHECK(!imported(f, wrong[i].map, &bad, &err));
        CHECK_MSG(strstr(err.text, wrong[i].says) || strstr(told.text, wrong[i].says), "%s\n%s",
                  err.text, told.text);
    }
    free(f);
}

/* ---- cells that come later -------- */
TEST(an_encoder_makes_the_same_of_the_same_cells) {
    Films *f = films();
    RtImport how = {0};
    RtError err;
    char dir[] = "/tmp/encoder_cells_XXXXXX", command[64];
    gnnc_encoder *e = NULL;
    gnnc_cells cells[COLUMNS];
    RtDataset *d = imported(f, "", &how, &err);
    CHECK(d && mkdtemp(dir) && rt_dataset_write(d, dir, true, &err) == GNNC_OK);
    CHECK(gnnc_encoder_create(&e) == GNNC_OK);
    CHECK_MSG(gnnc_encoder_read(e, dir) == GNNC_OK, "%s", gnnc_encoder_error(e));
    for (int k = 0; k < COLUMNS; k++)
        cells[k] = (gnnc_cells){sizeof(gnnc_cells), header[k], f->text[k], NULL};
    gnnc_raw rows = {.struct_size = sizeof rows,
                     .table = "vertex",
                     .count = ROWS,
                     .columns = cells,
                     .n_columns = COLUMNS};
    for (int i = 0; d && i < gnnc_encoder_n_columns(e, "vertex"); i++) {
        gnnc_encoded told = {.struct_size = sizeof told};
        CHECK(gnnc_encoder_column(e, "vertex", i, &told) == GNNC_OK);
        const RtColumn *c = rt_table_column(d->nodes, told.column);
        if (!strcmp(told.column, "id")) continue;
        size_t n = (size_t)(ROWS * rt_column_width(c)) * rt_column_value_bytes(c);
        void *to = malloc(n);
        CHECK(told.width == (c->rank > 1 ? c->shape[1] : 0) && told.n_from == 0);
        CHECK_MSG(gnnc_encoder_encode(e, &rows, told.column, to, n) == GNNC_OK, "%s", rows.error);
        CHECK_MSG(!memcmp(to, c->values, n), "%s", told.column);
        free(to);
    }
    f->text[2][5] = "[1, 2, 3]";
    float to[2 * ROWS];
    CHECK(gnnc_encoder_encode(e, &rows, "emb", to, sizeof to) == GNNC_E_VALUE);
    CHECK_MSG(
        strstr(rows.error,
               "row 5: column 'emb': '[1, 2, 3]' is not a vector of that many numbers: 2 numbers"),
        "%s", rows.error);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
    gnnc_encoder_destroy(e);
    rt_dataset_close(d);
    free(f);
}

TEST_MAIN()
