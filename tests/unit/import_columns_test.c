/* What the importer makes of the columns of CSV tables, and what it says of it. */
#include "test.h"

#include <math.h>

#include "csv_util.h"
#include "runtime/data/dates.h"
#include "rt_test_util.h"

/* ---- dates ------------------------------------------------------------------------ */
enum { JAN_31 = 1580428800 }; /* 2020 */

TEST(forms_of_dates) {
    double v;
    CHECK(rt_cell_date("31/01/2020", RT_DATE_DAY_FIRST, &v) && v == JAN_31);
    CHECK(rt_cell_date("31.1.2020 9:30", RT_DATE_DAY_FIRST, &v) && v == JAN_31 + 9.5 * 3600);
    CHECK(rt_cell_date("01-31-2020T10:00:01", RT_DATE_MONTH_FIRST, &v) && v == JAN_31 + 36001);
    CHECK(rt_cell_date("2020/1/31", RT_DATE_YEAR_FIRST, &v) && v == JAN_31);
    CHECK(rt_cell_date("20200131", RT_DATE_DIGITS, &v) && v == JAN_31);
    CHECK(rt_date_form("01/02/2020") == (RT_DATE_DAY_FIRST | RT_DATE_MONTH_FIRST));
    CHECK(rt_date_form("2020-01-31") == (RT_DATE_ISO | RT_DATE_YEAR_FIRST));
    CHECK(rt_date_form("1.2.2020") == RT_DATE_DAY_FIRST); /* nobody puts points behind months */
    static const char *const none[] = {"31/02/2020",  "31/13/2020",  "31/01-2020",       "31/01/20",
                                       "31/01/20200", "1/31",        "20201301",         "12345678",
                                       "2020/0131",   "31/01/2020x", "31/01/2020 25:00", "",
                                       "-1/1/2020",   "1.5"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_MSG(rt_date_form(none[i]) == RT_DATE_NONE, "%s", none[i]);
}

TEST(dates_of_one_form_are_times) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtDataset *d = csv("id,day_first,month_first,slashed,digits,OrderDate\n"
                       "1,31/01/2020,01/31/2020 10:00,2020/01/31,20200131,20200131\n"
                       "2,01/02/2020,02/01/2020 9:00,2020/1/2,20200201,20200201\n"
                       "3,,,,,\n",
                       "src,dst,digits:time\n1,2,20200131\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    static const char *const why[] = {"all cells are dates, day/month/year",
                                      "all cells are dates, month/day/year",
                                      "all cells are dates, year/month/day", "numbers"};
    for (int i = 0; i < 4; i++) CHECK_STR(d->nodes->columns[i].why, why[i]);
    const RtColumn *c = d->nodes->columns;
    CHECK(c[0].kind == RT_COL_TIME && c[0].f64[0] == JAN_31 && c[0].f64[1] == JAN_31 + 86400);
    CHECK(isnan(c[0].f64[2]) && c[1].f64[0] == JAN_31 + 36000 && c[2].f64[0] == JAN_31);
    CHECK(rt_table_column(d->nodes, "OrderDate")->f64[0] == JAN_31);
    CHECK(d->edges->columns[0].f64[0] == JAN_31);
    CHECK_STR(told.text, "n.csv: column 'digits' became float, though '20200131' and all others "
                         "look like dates; --kind vertex.digits=time reads them\n");
    rt_dataset_close(d);
}

static rt_col_kind kind_told(const char *cells, Told *told) {
    char nodes[256];
    RtImport how = {.on_warning = tell, .user = told};
    RtError err;
    snprintf(nodes, sizeof nodes, "id,when\n%s", cells);
    *told = (Told){.n = 0};
    RtDataset *d = csv(nodes, "src,dst\n1,2\n", &how, &err);
    rt_col_kind k = d ? d->nodes->columns[0].kind : RT_COL_CSR;
    rt_dataset_close(d);
    return k;
}

TEST(dates_that_are_not_read_are_told) {
    Told told;
    CHECK(kind_told("1,01/02/2020\n2,03/04/2020\n", &told) == RT_COL_CAT);
    CHECK(warned(&told, "column 'when' became cat: '01/02/2020' may be day/month/year or month/"));
    CHECK(kind_told("1,31/01/2020\n2,01/31/2020\n", &told) == RT_COL_CAT);
    CHECK(warned(&told, "its dates, as '31/01/2020', have several forms"));
    CHECK(kind_told("1,31/01/2020\n2,soon\n", &told) == RT_COL_CAT);
    CHECK(warned(&told, "n.csv: row 3: column 'when' became cat: 'soon' is no date, others are, as "
                        "'31/01/2020'; --kind vertex.when=time makes it a bad row"));
    CHECK(kind_told("1,new\n2,old\n", &told) == RT_COL_CAT && !told.n);
}

TEST(a_column_called_a_time_that_is_none_is_told) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    RtDataset *d = csv("id,date\n1,Jan 5\n2,Feb 6\n", "src,dst\n1,2\n", &how, &err);
    CHECK(d && d->nodes->columns->kind == RT_COL_CAT);
    CHECK(
        warned(&told, "row 2: column 'date' became cat: it is called like a time, and 'Jan 5' is"));
    rt_dataset_close(d);
    CHECK(!csv("id,when:time\n1,01/02/2020\n2,02/03/2020\n", "src,dst\n1,2\n", &how, &err));
    CHECK(strstr(err.text, "n.csv: row 2: column 'when': '01/02/2020' may be day/month/year or"));
    CHECK(!csv("id,date\n1,31/01/2020\n2,x\n", "src,dst\n1,2\n", &how, &err));
    CHECK(strstr(err.text, "n.csv: row 3: column 'date': 'x' is not a time"));
}

/* ---- labels ----------------------------------------------------------------------- */
/* Nodes 1..n with y = step * i % modulus; what was told. */
static Told labels_told(int n, int step, int modulus, const char *kind) {
    static char nodes[8192];
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    int at = snprintf(nodes, sizeof nodes, "id,y%s\n", kind);
    for (int i = 1; i <= n; i++)
        at += snprintf(nodes + at, sizeof nodes - (size_t)at, "%d,%d\n", i, step * i % modulus);
    RtDataset *d = csv(nodes, "src,dst\n1,2\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    rt_dataset_close(d);
    return told;
}

TEST(numbers_that_became_classes_are_told) {
    Told told = labels_told(200, 7, 1 << 20, "");
    CHECK_STR(told.text, "vertex.y became 1401 classes, 200 of which occur, for 200 rows with a "
                         "label; --kind vertex.y=float learns a number\n");
    told = labels_told(200, 1, 60, "");
    CHECK(warned(&told, "became 60 classes, 60 of which occur, for 200 rows"));
    CHECK(!labels_told(400, 1, 60, "").n && !labels_told(40, 1, 41, "").n);
    CHECK(!labels_told(200, 7, 1 << 20, ":class").n); /* as was asked for */
    RtImport how = {0};
    RtError err;
    CHECK(!csv("id,y\n1,5\n2,20000000\n3,30000000\n4,20000000\n", "src,dst\n1,2\n", &how, &err));
    CHECK_STR(how.cure, "numbers to learn are read by --kind vertex.y=float");
}

/* ---- headers ---------------------------------------------------------------------- */
TEST(a_first_row_taken_for_data_is_told) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv("7,0.5\n8,1\n", "7,8\n8,7\n", &how, &err);
    CHECK_MSG(d && d->nodes->count == 2 && d->edges->count == 2, "%s", err.text);
    if (!d) return;
    CHECK_STR(d->edges->why, "no header: row 1 is an edge");
    CHECK_STR(rt_table_column(d->nodes, "id")->why, "names the nodes; no header: row 1 is one");
    rt_dataset_close(d);
}

TEST(one_file_may_have_a_header_and_the_other_none) {
    RtImport how = {.n_headers = 1, .headers = {{.file = "n.csv", .header = RT_HEADER_NO}}};
    RtError err;
    RtDataset *d = csv("ann,x\nbob,y\n", "src,dst\nann,bob\n", &how, &err);
    CHECK_MSG(d && d->nodes->count == 2 && d->edges->count == 1, "%s", err.text);
    rt_dataset_close(d);
    how.headers[0] = (RtHeaderOf){.file = "other.csv", .header = RT_HEADER_NO};
    CHECK(!csv("id,a\nann,x\n", "src,dst\nann,ann\n", &how, &err));
    CHECK_STR(err.text, "--header: there is no CSV file 'other.csv'");
}

/* ---- splits and bad rows ---------------------------------------------------------- */
TEST(parts_of_a_split_have_many_names) {
    RtImport how = {0};
    RtError err;
    RtDataset *d = csv("id,split\n1,Train\n2,TRAINING\n3,Val\n4,valid\n5,dev\n6,Validation\n"
                       "7,TEST\n8,None\n9,\n10,NaN\n",
                       "src,dst\n1,2\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    if (!d) return;
    static const int8_t want[] = {1, 1, 2, 2, 2, 2, 3, 0, 0, 0};
    CHECK(memcmp(rt_table_column(d->nodes, "split")->splits, want, sizeof want) == 0);
    rt_dataset_close(d);
    CHECK(!csv("id,split\n1,trn\n", "src,dst\n1,1\n", &how, &err));
    CHECK(strstr(err.text, "'trn' is not one of train (1), val, valid, validation, dev (2), test"));
}

TEST(bad_rows_are_counted_by_file) {
    RtImport how = {.skip_bad = true};
    RtError err;
    RtDataset *d = csv("id,a\n1,2\n2,x\n3,4\n", "src,dst\n1,3\n1,9\n8,3\n", &how, &err);
    CHECK_MSG(d, "%s", err.text);
    CHECK(how.n_bad == 3 && how.n_bad_files == 2);
    CHECK_STR(how.bad_files[0].file, "n.csv");
    CHECK(how.bad_files[0].n == 1 && how.bad_files[1].n == 2);
    rt_dataset_close(d);
}

/* ---- two types in a table of edges ------------------------------------------------ */
TEST(ends_may_be_of_two_types) {
    Told told = {.n = 0};
    RtImport how = {.on_warning = tell, .user = &told};
    RtError err;
    static const char edges[] = "user_id,item_id,stars\n5,5,1\n5,7,2\n9,5,3\n";
    RtDataset *d = csv(NULL, edges, &how, &err);
    CHECK(d && d->n_nodes == 1 && d->nodes->count == 3);
    CHECK(
        warned(&told, "an id of both columns is one node: --node user,item if they are two types"));
    rt_dataset_close(d);
    how.node = "user,item";
    told.n = 0;
    d = csv(NULL, edges, &how, &err);
    CHECK_MSG(d && d->n_nodes == 2, "%s", err.text);
    CHECK(!strstr(told.text, "--node"));
    if (!d) return;
    CHECK_STR(d->nodes[0].name, "user");
    CHECK_STR(d->nodes[1].name, "item");
    CHECK(d->nodes[0].count == 2 && d->nodes[1].count == 2 && d->edges->dst_type == 1);
    CHECK(memcmp(d->edges->src, (int32_t[]){0, 0, 1}, 12) == 0);
    CHECK(memcmp(d->edges->dst, (int32_t[]){0, 1, 0}, 12) == 0);
    CHECK(rt_table_column(&d->nodes[1], "id")->i64[1] == 7);
    rt_dataset_close(d);
    d = csv(NULL, "src,dst\nann,x\nbob,ann\n", &how, &err);
    CHECK(d && d->nodes[0].count == 2 && d->nodes[1].count == 2);
    CHECK(d && strcmp(d->nodes[1].names[1], "ann") == 0);
    rt_dataset_close(d);
    CHECK(!csv("id\n1\n", "src,dst\n1,1\n", &how, &err) && strstr(err.text, "by their folder"));
    how.undirected = true;
    CHECK(!csv(NULL, edges, &how, &err) &&
          strstr(err.text, "--undirected: edges between two types"));
}

TEST_MAIN()
