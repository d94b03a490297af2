/* Questions about tables, and the rows to learn from that they make. */
#include <math.h>

#include "csv_util.h"
#include "rt_test_util.h"
#include "runtime/import/import_task.h"
#include "runtime/import/import_time.h"

enum { DAY = 86400 };

/* Customers 1 to 3; orders on days 0 to 100 of 1970; lines of orders, without a time. */
static const char customers[] = "id,city,born\n1,ankara,1960-01-01\n2,berlin,1970-01-01\n"
                                "3,berlin,\n",
                  orders[] =
                      "id,customer_id,price:float,status,date\n"
                      "10,1,5,paid,1970-01-01\n11,1,7,open,1970-01-21\n"
                      "12,2,2,paid,1970-01-31\n13,1,1,paid,1970-02-20\n"
                      "14,3,4,open,1970-03-02\n15,1,8,paid,1970-04-11\n16,2,2,paid,1970-03-07\n"
                      "17,2,2,paid,1970-04-01\n",
                  lines[] = "id,order_id,part,shop_id\n1,10,a,north\n2,10,b,south\n3,11,a,south\n"
                            "4,13,c,north\n5,15,c,south\n",
                  shops[] = "shop_id,size\nnorth,1\nsouth,2\n";

static RtDataset *shop(const RtAlloc *from) {
    RtNamedBytes files[] = {FILE_OF("customers.csv", customers), FILE_OF("orders.csv", orders),
                            FILE_OF("lines.csv", lines), FILE_OF("shops.csv", shops)};
    RtFolder f = {.name = "shop", .files = files, .n_files = 4};
    RtImport how = {0};
    RtError err = {""};
    RtDataset *d;
    rt_import_tables(from, &f, NULL, &how, &d, &err);
    return d;
}

static gnnc_status task(RtDataset *d, const char *query, RtTaskMade *made, RtError *err) {
    *err = (RtError){""};
    return rt_import_task(
        d, &(RtTaskOptions){.query = query, .val_time = 60 * DAY, .test_time = 80 * DAY}, made,
        err);
}

/* What is answered for customer `id` (its row) on a day. */
static double answer(const RtDataset *d, int customer, int day) {
    const RtTable *t = rt_dataset_nodes(d, "task"), *e = rt_dataset_edges(d, "task__customers");
    const RtColumn *y = rt_table_column(t, "y"), *time = rt_table_column(t, "time");
    for (int64_t i = 0; i < e->count; i++)
        if (e->dst[i] == customer && time->f64[e->src[i]] == day * (double)DAY)
            return y->kind == RT_COL_CLASS ? y->i32[e->src[i]] : (double)y->f32[e->src[i]];
    return NAN;
}

static const struct {
    const char *query;
    double on_40[3]; /* of the three customers on day 40; NaN: no row */
} values[] = {
    /* days 40 to 60 */
    {"COUNT(orders.*, 0, 20, days) FOR EACH customers", {1, 0, 1}},
    {"PREDICT COUNT(orders.*, 0, 20, days) = 0 FOR EACH customers.id", {0, 1, 0}},
    {"SUM(orders.price, 0, 20) FOR EACH customers", {1, 0, 4}},
    {"AVG(orders.price, 0, 20) FOR EACH customers", {1, NAN, 4}},
    {"MAX(orders.price, 0, 480, hours) > 3 FOR EACH customers", {0, NAN, 1}},
    {"FIRST(orders.status, 0, 20) FOR EACH customers", {1, NAN, 0}}, /* open, paid */
    {"LAST(orders.status, 0, 20) = 'paid' FOR EACH customers", {1, NAN, 0}},
    {"COUNT(orders.* WHERE status = 'paid', 0, 20) > 0 FOR EACH customers", {1, 0, 0}},
    {"COUNT(orders.* WHERE status IN ('o''pen', 'x', 'y', 'paid', 'z'), 0, 20) FOR EACH customers",
     {1, 0, 0}},
    {"COUNT(orders.* WHERE status IN ('paid') AND NOT price > 1, 0, 20) FOR EACH customers",
     {1, 0, 0}},
    {"COUNT(orders.* WHERE status LIKE 'P%D' OR status ENDS WITH 'n', 0, 20) FOR EACH customers",
     {1, 0, 1}},
    {"COUNT(lines.*, 0, 20) FOR EACH customers",
     {1, 0, 0}}, /* two keys away, by its order's time */
    {"COUNT_DISTINCT(lines.part, 0, 20) FOR EACH customers", {1, 0, 0}},
    {"COUNT_DISTINCT(lines.order_id, 0, 20) FOR EACH customers", {1, 0, 0}},
    /* a foreign key, by the keys of the rows that it leads to: of lines those of orders */
    {"COUNT(lines.* WHERE order_id != 13, 0, 20) FOR EACH customers", {0, 0, 0}},
    {"COUNT(lines.* WHERE order_id IN (13, 15), 0, 20) FOR EACH customers", {1, 0, 0}},
    {"COUNT(lines.* WHERE order_id >= 14, 0, 20) FOR EACH customers", {0, 0, 0}},
    {"LAST(lines.order_id, 0, 20) != 13 OR COUNT(lines.*, 0, 20) = 0 FOR EACH customers",
     {0, 1, 1}},
    {"COUNT(lines.* WHERE order_id IS NULL, 0, 20) FOR EACH customers", {0, 0, 0}},
    {"COUNT(lines.* WHERE shop_id STARTS WITH 'n', 0, 20) FOR EACH customers", {1, 0, 0}},
    {"COUNT(lines.* WHERE NOT shop_id = 'north', 0, 20) FOR EACH customers", {0, 0, 0}},
    /* who is asked: what was known on day 40 */
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE COUNT(orders.*, -21, 0) > 0", {1, 0, NAN}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE COUNT(orders.*, -20, 0) > 0", {NAN, 0, NAN}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE COUNT(orders.*, -INF, 0) >= 2",
     {1, NAN, NAN}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE city = 'berlin'", {NAN, 0, 1}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE customers.born < 1965-01-01", {1, NAN, NAN}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE born IS NOT NULL", {1, 0, NAN}},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE NOT (born < 1965-01-01)", {NAN, 0, NAN}},
    /* of those rows alone where it comes so */
    {"COUNT(orders.*, 0, 20) FOR EACH customers ASSUMING COUNT(orders.*, 0, 20) > 0", {1, NAN, 1}},
    {"SUM(orders.price, 0, 20) > 3 OR COUNT(orders.*, 0, 20) = 0 FOR EACH customers", {0, 1, 1}},
};

TEST(values_are_those_of_the_window) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        RtDataset *d = shop(NULL);
        RtTaskMade made;
        RtError err;
        bool ok = task(d, values[i].query, &made, &err) == GNNC_OK;
        CHECK_MSG(ok, "%s: %s", values[i].query, err.text);
        for (int c = 0; c < 3 && ok; c++) {
            double got = answer(d, c, 40), want = values[i].on_40[c];
            CHECK_MSG(got == want || (isnan(got) && isnan(want)), "%s: customer %d: %g, not %g",
                      values[i].query, c, got, want);
        }
        rt_dataset_close(d);
    }
}

static const struct {
    const char *query, *says;
} wrong[] = {
    {"", "a column is expected, and the query ends"},
    {"COUNT(orders.*, 0, 20)", "FOR EACH TABLE is expected"},
    {"COUNT(orders.*, 0, 20) FOR EACH clients", "character 33: there is no table 'clients'"},
    {"COUNT(orders.*, 0, 20) FOR EACH custmers",
     "character 33: there is no table 'custmers'; did you mean 'customers'?"},
    {"COUNT(orders.*, 0, 20) FOR EACH orders.customer_id",
     "character 40: FOR EACH orders.customer_id: that leads to 'customers'; FOR EACH customers"},
    {"COUNT(orders.*, 0, 20) FOR EACH orders.price",
     "FOR EACH orders.price: that is no key of 'orders'"},
    {"COUNT(order.*, 0, 20) FOR EACH customers",
     "character 7: there is no table 'order'; did you mean 'orders'?"},
    {"SUM(orders.cost, 0, 20) FOR EACH customers",
     "character 12: 'orders' has no column 'cost'; it was imported by another name, or is a key"},
    {"SUM(orders.prise, 0, 20) FOR EACH customers",
     "character 12: 'orders' has no column 'prise'; did you mean 'price'?"},
    {"COUNT(orders.* VIA customer, 0, 20) FOR EACH customers",
     "character 20: no foreign key called customer leads from 'orders' to 'customers'; did you "
     "mean 'customer_id'?"},
    {"COUNT(orders.* WHERE prise > 5, 0, 20) FOR EACH customers",
     "character 22: 'orders' has no column 'prise'; did you mean 'price'?"},
    {"SUM(orders.status, 0, 20) FOR EACH customers", "'orders.status' is no column of numbers"},
    {"SUM(orders.*, 0, 20) FOR EACH customers", "only COUNT counts rows"},
    {"COUNT(orders.*, -20, 20) FOR EACH customers", "lies in a window from 0 on"},
    {"COUNT(orders.*, 20, 10) FOR EACH customers", "ends before it begins"},
    {"COUNT(orders.*, 0, 20, years) FOR EACH customers", "days or weeks is expected, not 'years'"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE COUNT(orders.*, 0, 5) > 0", "end at 0"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE city = 'paris'",
     "character 56: no row of column 'city'"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE city > 5 AND born", "compared with nothing"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE orders.price > 5",
     "one of 'customers' is expected"},
    {"COUNT(orders.* WHERE COUNT(lines.*) > 1, 0, 20) FOR EACH customers",
     "an aggregate inside of one"},
    {"COUNT(customers.*, 0, 20) FOR EACH customers", "'customers' have no time"},
    {"COUNT(orders.*, 0, 20) FOR EACH lines", "no foreign key leads from 'orders' to 'lines'"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers WHERE born < 'yesterday'",
     "'yesterday' is no date"},
    {"LAST(orders.customer_id, 0, 20) FOR EACH customers",
     "is a foreign key: it can be counted and compared only"},
    {"LIST_DISTINCT(orders.price, 0, 20) FOR EACH customers", "neither a category nor a foreign"},
    {"LIST_DISTINCT(orders.status, 0, 20) = 'paid' FOR EACH customers", "compared with nothing"},
    {"LIST_DISTINCT(lines.shop_id, 0, 20) AND born IS NULL FOR EACH customers",
     "compared with nothing"},
    {"lines.order_id", "is a foreign key: it can be counted and compared only"},
    {"LIST_DISTINCT(lines.shop_id, 0, 20) RANK 5 FOR EACH customers", "TOP is expected, not '5'"},
    {"LIST_DISTINCT(lines.shop_id, 0, 20) RANK TOP 0 FOR EACH customers", "a number of 1 to 1000"},
    {"LIST_DISTINCT(lines.shop_id, 0, 20) RANK TOP 1.5 FOR EACH customers", "of 1 to 1000"},
    {"LIST_DISTINCT(orders.status, 0, 20) RANK TOP 3 FOR EACH customers",
     "character 37: RANK TOP stands behind LIST_DISTINCT(TABLE.KEY, ..) of a foreign key"},
    {"COUNT(orders.*, 0, 20) RANK TOP 3 FOR EACH customers",
     "RANK TOP stands behind LIST_DISTINCT"},
    {"COUNT(lines.* WHERE order_id = 99, 0, 20) FOR EACH customers",
     "no row of 'orders' has the key '99'"},
    {"COUNT(lines.* WHERE order_id > 1.5, 0, 20) FOR EACH customers", "'1.5' is no whole number"},
    {"COUNT(lines.* WHERE order_id LIKE '1%', 0, 20) FOR EACH customers", "this test is of texts"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers 7", "the end of the query is expected, not '7'"},
    {"COUNT(orders.*, 0, 20) FOR EACH 'customers", "the text that begins here does not end"},
    {"COUNT(orders.*, 0, 30) FOR EACH customers", "the data end before the window"},
    {"COUNT(orders.*, 0, 19.5) FOR EACH customers WHERE city IN (1, 2",
     "')' is expected, and the query ends"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers KNOWN AFTER city",
     "character 55: KNOWN AFTER is of a column that is predicted, not of the future"},
    {"COUNT(orders.*, 0, 20) FOR EACH customers ASSUMING COUNT(orders.*, -20, 0) > 0",
     "assumed, lies in a window from 0 on"},
    {"orders.price > 3 ASSUMING status = 'paid'", "ASSUMING is of the future"},
    {"orders.price > 3 KNOWN AFTER status, prize", "character 38: 'orders' has no column 'prize'"},
    {"orders.date", "a number, a class or a condition is predicted, no time"},
};

TEST(questions_that_mean_nothing_say_where) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RtDataset *d = shop(NULL);
        int n_nodes = d->n_nodes, n_edges = d->n_edges;
        RtTaskMade made;
        RtError err;
        CHECK_MSG(task(d, wrong[i].query, &made, &err) != GNNC_OK, "%s", wrong[i].query);
        CHECK_MSG(strstr(err.text, wrong[i].says), "%s: %s", wrong[i].query, err.text);
        CHECK(d->n_nodes == n_nodes && d->n_edges == n_edges);
        rt_dataset_close(d);
    }
}

/* Windows of learning, choosing and judging do not overlap. */
TEST(the_parts_are_apart_in_time) {
    RtDataset *d = shop(NULL);
    RtTaskMade made;
    RtError err;
    CHECK_MSG(task(d, "COUNT(orders.*, 0, 20) FOR EACH customers", &made, &err) == GNNC_OK, "%s",
              err.text);
    const RtTable *t = rt_dataset_nodes(d, "task");
    const RtColumn *split = rt_table_column(t, "split"), *time = rt_table_column(t, "time");
    CHECK(made.n[1] == 9 && made.n[2] == 3 && made.n[3] == 3 && t->count == 15);
    for (int64_t i = 0; i < t->count; i++) {
        double end = time->f64[i] / DAY + 20;
        CHECK(split->splits[i] == (end <= 60 ? 1 : end <= 80 ? 2 : 3));
    }
    rt_dataset_close(d);
    d = shop(NULL);
    RtTaskOptions how = {.query = "COUNT(orders.*, 0, 10) FOR EACH customers",
                         .val_time = NAN,
                         .test_time = NAN,
                         .every = 5 * DAY};
    CHECK_MSG(rt_import_task(d, &how, &made, &err) == GNNC_OK, "%s", err.text);
    CHECK(made.test_time == 90 * DAY && made.val_time == 80 * DAY);
    CHECK(made.n[1] == 3 * 15 && made.n[2] == 3 && made.n[3] == 3);
    rt_dataset_close(d);
}

/* Of a column: rows of their own with what is known by then; the table keeps what older rows tell.
 */
TEST(a_column_is_hidden_from_its_own_row) {
    RtDataset *d = shop(NULL);
    RtTaskMade made;
    RtError err;
    CHECK_MSG(rt_import_task(d,
                             &(RtTaskOptions){.query = "orders.price > 3 KNOWN AFTER status",
                                              .name = "big",
                                              .val_time = 40 * DAY,
                                              .test_time = 60 * DAY},
                             &made, &err) == GNNC_OK,
              "%s", err.text);
    const RtTable *t = rt_dataset_nodes(d, "big"), *orders_ = rt_dataset_nodes(d, "orders");
    if (t) {
        CHECK(t->count == 8 && made.n[1] == 3 && made.n[2] == 1 && made.n[3] == 4);
        CHECK(!rt_table_column(t, "price") && !rt_table_column(t, "status"));
        CHECK(rt_table_column(orders_, "price") && !rt_table_column(orders_, "status"));
        CHECK(rt_dataset_edges(d, "big__customer_id") && !made.of_future);
        CHECK(strcmp(made.baselines->metric, "roc_auc") == 0 && made.n_baselines == 3 * 4);
        CHECK(rt_dataset_check(d, &err) == GNNC_OK);
    }
    rt_dataset_close(d);
    d = shop(NULL); /* a table without a time cannot keep the answers */
    CHECK_MSG(rt_import_task(
                  d, &(RtTaskOptions){.query = "customers.city", .val_time = NAN, .test_time = NAN},
                  &made, &err) != GNNC_OK,
              "%s", err.text);
    rt_dataset_close(d);
}

/* The column that says where another has gaps goes with it, however long its name is. */
TEST(gaps_of_what_is_known_later_are_hidden) {
#define LONG_NAME "days_until_the_parcel_was_handed_over_to_the_customer"
    static const char rows[] = "id,price:float,date," LONG_NAME "\n"
                               "1,5,1970-01-01,3\n2,1,1970-01-21,\n3,7,1970-02-01,2\n"
                               "4,1,1970-02-20,\n5,8,1970-03-07,4\n6,2,1970-04-01,\n";
    RtNamedBytes files[] = {FILE_OF("orders.csv", rows)};
    RtFolder f = {.name = "shop", .files = files, .n_files = 1};
    RtImport how = {0};
    RtTaskMade made;
    RtError err = {""};
    RtDataset *d = NULL;
    CHECK(rt_import_tables(NULL, &f, NULL, &how, &d, &err) == GNNC_OK);
    const int gap = 3; /* behind the column */
    CHECK(d && d->nodes->n_columns > gap && d->nodes->columns[gap].n_categories == 2);
    CHECK_MSG(
        d && rt_import_task(d,
                            &(RtTaskOptions){.query = "orders.price > 3 KNOWN AFTER " LONG_NAME,
                                             .val_time = 40 * DAY,
                                             .test_time = 60 * DAY},
                            &made, &err) == GNNC_OK,
        "%s", err.text);
    for (int i = 0; d && i < d->n_nodes; i++)
        for (int c = 0; c < d->nodes[i].n_columns; c++)
            CHECK_MSG(!strstr(d->nodes[i].columns[c].name, "parcel"), "%s.%s", d->nodes[i].name,
                      d->nodes[i].columns[c].name);
    rt_dataset_close(d);
#undef LONG_NAME
}

/* A label for each category, or each row that a foreign key leads to. */
TEST(lists_are_several_answers) {
    static const struct {
        const char *query;
        int n_labels, of_customer, label; /* that is there on day 40 */
    } lists[] = {{"LIST_DISTINCT(orders.status, 0, 20) FOR EACH customers", 2, 2, 0},
                 {"LIST_DISTINCT(orders.status, 0, 20) FOR EACH customers", 2, 0, 1},
                 {"LIST_DISTINCT(lines.order_id, 0, 20) FOR EACH customers", 8, 0, 3}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        RtDataset *d = shop(NULL);
        RtTaskMade made;
        RtError err;
        CHECK_MSG(task(d, lists[k].query, &made, &err) == GNNC_OK, "%s", err.text);
        const RtTable *t = rt_dataset_nodes(d, "task"), *e = rt_dataset_edges(d, "task__customers");
        const RtColumn *y = t ? rt_table_column(t, "y") : NULL;
        CHECK(y && y->kind == RT_COL_MULTILABEL && y->shape[1] == lists[k].n_labels);
        for (int64_t i = 0; y && i < e->count; i++) {
            if (rt_table_column(t, "time")->f64[e->src[i]] != 40 * DAY) continue;
            const float *of = y->f32 + e->src[i] * y->shape[1];
            for (int l = 0; l < lists[k].n_labels && e->dst[i] == lists[k].of_customer; l++)
                CHECK(of[l] == (l == lists[k].label));
            for (int l = 0; l < lists[k].n_labels && e->dst[i] == 1; l++) CHECK(of[l] == 0);
        }
        CHECK(made.n_metrics == 2 && rt_dataset_check(d, &err) == GNNC_OK);
        rt_dataset_close(d);
    }
}

static const RtBaseline *baseline(const RtTaskMade *made, const char *name, const char *metric) {
    for (int i = 0; i < made->n_baselines; i++)
        if (strcmp(made->baselines[i].name, name) == 0 &&
            strcmp(made->baselines[i].metric, metric) == 0)
            return &made->baselines[i];
    static const RtBaseline none = {"", "", NAN, NAN};
    return &none;
}

/* Customer 1 alone has lines: of the south by day 20, of the north by day 60, of the south by 100.
 */
TEST(lists_that_are_ranked_are_edges) {
    static const struct {
        const char *name;
        double val[3], test[3]; /* map, precision, recall */
    } guesses[] = {{"most popular of all", {0, 0, 0}, {1, 0.5, 1}},
                   {"most popular in the last window", {0, 0, 0}, {0, 0, 0}},
                   {"latest of its customers", {0.5, 0.5, 1}, {0.5, 0.5, 1}},
                   {"most frequent of its customers", {0.5, 0.5, 1}, {0.5, 0.5, 1}}};
    static const char *const metric[] = {"map", "precision", "recall"};
    RtDataset *d = shop(NULL);
    const RtTaskOptions how = {
        .query = "LIST_DISTINCT(lines.shop_id, 0, 20) RANK TOP 2 FOR EACH customers",
        .val_time = 40 * DAY,
        .test_time = 80 * DAY};
    RtTaskMade made;
    RtError err = {""};
    CHECK_MSG(rt_import_task(d, &how, &made, &err) == GNNC_OK, "%s", err.text);
    const RtTable *t = rt_dataset_nodes(d, "task"), *e = rt_dataset_edges(d, "task__shops");
    CHECK(t && t->count == 3 && !rt_table_column(t, "y") && e && e->count == 3);
    for (int i = 0; e && i < 3; i++) {
        CHECK(e->src[i] == i && e->dst[i] == (i == 1 ? 0 : 1)); /* north, south */
        CHECK(rt_table_column(e, "split")->splits[i] == 1 + i);
        CHECK(rt_table_column(e, "time")->f64[i] == rt_table_column(t, "time")->f64[i]);
    }
    CHECK(made.ranks.top == 2 && strcmp(made.ranks.links, "task__shops") == 0 &&
          strcmp(made.ranks.event, "lines") == 0 && made.ranks.n_way == 2 &&
          strcmp(made.ranks.way[0], "lines__order_id") == 0 &&
          strcmp(made.ranks.way[1], "orders__customer_id") == 0 && made.ranks.n_keys == 1);
    CHECK(e && rt_table_column(e, "split")->n_baselines == 12);
    for (size_t k = 0; k < sizeof guesses / sizeof *guesses; k++)
        for (int m = 0; m < 3; m++) {
            const RtBaseline *b = baseline(&made, guesses[k].name, metric[m]);
            CHECK_MSG(b->val == guesses[k].val[m] && b->test == guesses[k].test[m],
                      "%s, %s: %g, %g", guesses[k].name, metric[m], b->val, b->test);
        }
    CHECK(rt_dataset_check(d, &err) == GNNC_OK);
    rt_dataset_close(d);
}

/* A key of the row that the counted rows refer to; here it leads back to who is asked. */
TEST(a_key_is_found_one_reference_away) {
    RtDataset *d = shop(NULL);
    RtTaskOptions how = {
        .query = "LIST_DISTINCT(lines.customer_id, 0, 20) RANK TOP 1 FOR EACH customers",
        .val_time = 40 * DAY,
        .test_time = 80 * DAY};
    RtTaskMade made;
    RtError err = {""};
    CHECK_MSG(rt_import_task(d, &how, &made, &err) == GNNC_OK, "%s", err.text);
    const RtTable *e = rt_dataset_edges(d, "task__customers_ranked");
    CHECK(e && e->count == 3 && made.ranks.n_keys == 2 &&
          strcmp(made.ranks.key[0], "lines__order_id") == 0);
    for (int64_t i = 0; e && i < e->count; i++) CHECK(e->dst[i] == 0);
    rt_dataset_close(d);
    d = shop(NULL);
    how.history = true;
    CHECK(rt_import_task(d, &how, &made, &err) == GNNC_E_ARG && strstr(err.text, "are lists"));
    rt_dataset_close(d);
}

/* Each answer stands where its window ends, beside the one that was asked for. */
TEST(older_answers_are_known_when_their_windows_close) {
    static const char *const queries[] = {"COUNT(orders.*, 0, 20) > 0 FOR EACH customers",
                                          "SUM(orders.price, 0, 20) FOR EACH customers"};
    for (int k = 0; k < 2; k++) {
        RtDataset *d = shop(NULL);
        RtTaskMade made;
        RtError err = {""};
        RtTaskOptions how = {
            .query = queries[k], .history = true, .val_time = 60 * DAY, .test_time = 80 * DAY};
        CHECK_MSG(rt_import_task(d, &how, &made, &err) == GNNC_OK, "%s", err.text);
        const RtTable *t = rt_dataset_nodes(d, "task"), *h = rt_dataset_nodes(d, "task_history"),
                      *e = rt_dataset_edges(d, "task_history__customers"),
                      *of = rt_dataset_edges(d, "task__customers");
        CHECK(h && e && h->count == t->count && e->count == t->count &&
              strcmp(h->time, "time") == 0);
        for (int64_t i = 0; h && e && i < h->count; i++) {
            const RtColumn *y = rt_table_column(t, "y"), *a = rt_table_column(h, "answer");
            CHECK(rt_table_column(h, "time")->f64[i] ==
                  rt_table_column(t, "time")->f64[i] + 20 * DAY);
            CHECK(k ? a->f32[i] == y->f32[i] : a->i32[i] == y->i32[i]);
            CHECK(e->src[i] == of->src[i] && e->dst[i] == of->dst[i]);
        }
        CHECK_MSG(rt_dataset_check(d, &err) == GNNC_OK, "%s", err.text);
        rt_dataset_close(d);
        d = shop(NULL);
        how.query = "orders.price > 3";
        CHECK(rt_import_task(d, &how, &made, &err) == GNNC_E_ARG &&
              strstr(err.text, "in its table"));
        rt_dataset_close(d);
    }
}

TEST(rows_are_as_old_as_what_they_refer_to) {
    RtDataset *d = shop(NULL);
    RtError err;
    CHECK(rt_import_row_times(d, NULL, &err) == GNNC_OK);
    const RtColumn *c = rt_import_row_time(rt_dataset_nodes(d, "lines"), NULL);
    CHECK(c && c->f64[2] == 20 * DAY && strcmp(c->name, RT_ROW_TIME) == 0);
    CHECK(!rt_import_row_time(rt_dataset_nodes(d, "customers"), NULL)); /* a birth date is none */
    rt_dataset_close(d);
}

static void note_warning(void *user, const char *text) {
    char *told = user;
    snprintf(told, 400, "%s", text);
}

/* A table has one row time, which others are not asked for; what is said goes before names. */
TEST(row_times_are_of_the_tables) {
    static const char a[] = "id,created,born\n1,1970-02-01,1960-01-01\n2,1970-01-01,\n",
                      b[] = "id,a_id,paid,done\n1,1,1970-01-03,1970-01-05\n2,2,1970-01-04,\n",
                      c[] = "id,b_id\n1,1\n";
    static const struct {
        const char *said;
        bool other;
        const char *a, *b, *c, *warns;
    } cases[] = {
        {NULL, false, "created", "paid", RT_ROW_TIME,
         "a.created: 1 rows of 'b' are older than the row that their 'a_id' names (1970-01-03, "
         "which is of 1970-02-01)"},
        {"b.done", false, "created", "done", RT_ROW_TIME, "a.created: 1 rows"},
        {"a.created", true, "", "paid", RT_ROW_TIME, ""},
        {"a", true, "", "paid", RT_ROW_TIME, ""},
        {"b", true, "created", RT_ROW_TIME, RT_ROW_TIME, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RtNamedBytes files[] = {FILE_OF("a.csv", a), FILE_OF("b.csv", b), FILE_OF("c.csv", c)};
        char told[400] = "";
        RtImport how = {.on_warning = note_warning, .user = told};
        RtError err = {""};
        RtDataset *d = tables_of(files, 3, &how, &err);
        const char *said = cases[i].said;
        *told = '\0';
        if (said)
            CHECK(rt_import_say_row_time(&how, RT_SAID_BY_OPTION, said, strlen(said),
                                         cases[i].other));
        CHECK_MSG(d && rt_import_times(d, NULL, &how, &err) == GNNC_OK, "%s", err.text);
        const char *want[] = {cases[i].a, cases[i].b, cases[i].c};
        for (int k = 0; d && k < 3; k++)
            CHECK_MSG(d->nodes[k].time && strcmp(d->nodes[k].time, want[k]) == 0, "%zu %d %s", i, k,
                      d->nodes[k].time);
        CHECK_MSG(strncmp(told, cases[i].warns, strlen(cases[i].warns)) == 0 &&
                      !*told == !*cases[i].warns,
                  "%zu: %s", i, told);
        rt_dataset_close(d);
    }
    RtNamedBytes files[] = {FILE_OF("a.csv", a), FILE_OF("b.csv", b)};
    RtImport how = {0}, both = {0};
    RtError err = {""};
    RtDataset *d = tables_of(files, 2, &both, &err);
    CHECK(rt_import_say_row_time(&both, RT_SAID_BY_OPTION, "b.done", 6, false) &&
          rt_import_say_row_time(&both, RT_SAID_BY_MAP, "b.paid", 6, false) &&
          rt_import_say_row_time(&both, RT_SAID_BY_MAP, "b.done", 6, true));
    CHECK(d && rt_import_times(d, NULL, &both, &err) == GNNC_OK);
    if (d) CHECK_STR(d->nodes[1].time, "done"); /* an option goes before the map */
    rt_dataset_close(d);
    d = tables_of(files, 1, &how, &err);
    CHECK(rt_import_say_row_time(&how, RT_SAID_BY_OPTION, "a.id", 4, false));
    CHECK(rt_import_times(d, NULL, &how, &err) == GNNC_E_MISSING && strstr(err.text, "a.id"));
    rt_dataset_close(d);
}

/* On the same rows by hand: means and last answers that were known when each row was asked for. */
TEST(guesses_know_the_past_alone) {
    int32_t entity[] = {0, 1, 0, 1, 0, 1}, of[] = {0, 1, 0, 1, 0, 1};
    double time[] = {0, 0, 10, 10, 20, 20}, y[] = {1, 5, 3, 7, 4, 4};
    int8_t part[] = {1, 1, 2, 2, 3, 3};
    RtTaskRows rows = {6, entity, time, y, 0, part, 10, 0};
    RtTaskKey key = {"customers", of, 2};
    RtTaskMade made = {0};
    RtPool pool;
    RtError err = {""};
    rt_pool_init(&pool, NULL);
    CHECK(rt_task_guess(&pool, &pool, &rows, &key, 1, &made, &err) == GNNC_OK);
    const RtBaseline *b = made.baselines;
    CHECK(made.n_metrics == 2 && made.n_baselines == 8); /* mae, rmse */
    CHECK(b[0].val == 2 && b[0].test == 1);              /* median 3: |3-3|, |7-3| */
    CHECK(b[2].val == 2 && b[2].test == 1 && fabs(b[3].val - sqrt(8)) < 1e-12); /* mean 3 */
    CHECK(b[4].val == 2 && b[4].test == 2 && b[5].val == 2); /* 1 and 5; 2 and 6 */
    CHECK(b[6].val == 2 && b[6].test == 2);                  /* 1 and 5; 3 and 7 */
    double yes[] = {0, 1, 0, 1, 1, 0};
    rows.answer = yes;
    rows.n_classes = 2;
    CHECK(rt_task_guess(&pool, &pool, &rows, &key, 1, &made, &err) == GNNC_OK);
    b = made.baselines;
    CHECK(made.n_metrics == 4 && b[0].val == 0.5 && b[4].val == 1 && b[4].test == 0);
    CHECK_STR(b[4].metric, "roc_auc");
    CHECK_STR(b[6].metric, "accuracy");
    CHECK(b[6].val == 1 && b[6].test == 0);
    rt_pool_free(&pool);
}

/* Of ties by hand, as scikit-learn has them. */
TEST(guesses_are_judged_as_models_are) {
    static const RtEvalPair rows[] = {{1, 0.75}, {0, 0.75}, {1, 0.5},
                                      {0, 0.25}, {0, 0.25}, {1, 0.25}};
    static const double want[RT_N_EVAL_METRICS] = {11.0 / 18, 5.0 / 9, 0.5, 0.4857142857};
    static const RtEvalPair classes[] = {{2, 2}, {0, 2}, {1, 1}, {1, 0}};
    RtPool pool;
    RtError err = {""};
    RtEvalPair v[6];
    double got;
    rt_pool_init(&pool, NULL);
    for (int j = 0; j < RT_EVAL_MAE; j++) {
        memcpy(v, rows, sizeof rows);
        CHECK(rt_eval_metric_fits((RtEvalMetric)j, 2));
        CHECK(rt_eval_metric(&pool, (RtEvalMetric)j, v, 6, 2, &got, &err) == GNNC_OK);
        CHECK_MSG(fabs(got - want[j]) < 1e-9, "%s: %.10g", rt_eval_metric_name((RtEvalMetric)j),
                  got);
    }
    memcpy(v, classes, sizeof classes);
    CHECK(rt_eval_metric(&pool, RT_EVAL_F1_MACRO, v, 4, 5, &got, &err) == GNNC_OK);
    CHECK(fabs(got - (0 + 2.0 / 3 + 2.0 / 3) / 3) < 1e-12);
    CHECK(!rt_eval_metric_fits(RT_EVAL_ROC_AUC, 5) && !rt_eval_metric_fits(RT_EVAL_MAE, 5));
    CHECK(rt_eval_metric(&pool, RT_EVAL_ROC_AUC, v, 1, 2, &got, &err) == GNNC_OK && isnan(got));
    rt_pool_free(&pool);
}

/* What no f32 holds is compared as it was written; without the cells' numbers, as f32. */
TEST(constants_are_the_numbers_of_the_cells) {
    static const char a[] = "id\n1\n",
                      b[] = "id,a_id,v:float,w:float,date\n0,1,0,0,1970-01-01\n"
                            "1,1,19.99,16777217,1970-01-02\n2,1,19.98,16777216,1970-01-02\n"
                            "3,1,1,1,1970-01-22\n4,1,1,1,1970-02-01\n";
    static const struct {
        const char *rows;
        int exact, rounded;
    } want[] = {
        {"v = 19.99", 1, 1}, {"v >= 19.99", 1, 1}, {"v < 19.99", 1, 1}, {"w = 16777217", 1, 2}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int kept = 0; kept < 2; kept++) {
            RtNamedBytes files[] = {FILE_OF("a.csv", a), FILE_OF("b.csv", b)};
            RtImport how = {.keeps_numbers = kept, .standardize = kept};
            RtError err;
            char query[100];
            RtDataset *d = tables_of(files, 2, &how, &err);
            RtTaskMade made;
            snprintf(query, sizeof query, "COUNT(b.* WHERE %s, 0, 10) FOR EACH a", want[i].rows);
            RtTaskOptions at = {.query = query, .val_time = 10 * DAY, .test_time = 20 * DAY};
            CHECK_MSG(d && rt_import_task(d, &at, &made, &err) == GNNC_OK, "%s", err.text);
            const RtTable *t = d ? rt_dataset_nodes(d, "task") : NULL;
            float most = 0;
            for (int64_t k = 0; t && k < t->count; k++)
                if (rt_table_column(t, "y")->f32[k] > most) most = rt_table_column(t, "y")->f32[k];
            int n = kept ? want[i].exact : want[i].rounded;
            CHECK_MSG(most == (float)n, "%s: %g", query, (double)most);
            rt_dataset_close(d);
        }
}

/* Over several tables without a time, whatever they are called. */
TEST(row_times_do_not_hang_on_names) {
    static const char *const items[] = {"a.csv", "z.csv"};
    for (int i = 0; i < 2; i++) {
        RtNamedBytes files[] = {FILE_OF("events.csv", "id,date\n1,1970-07-20\n"),
                                FILE_OF("orders.csv", "id,date\n1,1970-01-02\n"),
                                FILE_OF("ships.csv", "id,event_id\n1,1\n"),
                                FILE_OF("x.csv", "id,order_id,ship_id\n1,1,1\n")};
        RtImport how = {0};
        RtError err;
        files[3].name = items[i];
        RtDataset *d = tables_of(files, 4, &how, &err);
        CHECK_MSG(d && rt_import_row_times(d, NULL, &err) == GNNC_OK, "%s", err.text);
        const RtColumn *c = d ? rt_import_row_time(rt_dataset_nodes(d, i ? "z" : "a"), NULL) : NULL;
        CHECK(c && c->f64[0] == 200 * DAY);
        rt_dataset_close(d);
    }
}

/* Many keys that lead nowhere near the entity, and tables without any. */
TEST(ways_are_counted_not_walked) {
    char self[400] = "id,date", row[400] = "1,1970-01-01";
    for (int i = 0; i < 20; i++) {
        snprintf(self + strlen(self), 32, ",k%d", i);
        snprintf(row + strlen(row), 8, ",1");
    }
    char table[1000], map[1000] = "";
    snprintf(table, sizeof table, "%s\n%s\n", self, row);
    for (int i = 0; i < 20; i++) snprintf(map + strlen(map), 32, "t.k%d -> t\n", i);
    RtNamedBytes files[] = {{"t.csv", bytes(table)}, FILE_OF("a.csv", "id\n1\n")},
                 mapping = {"map", bytes(map)};
    RtFolder f = {.name = "many", .files = files, .n_files = 2};
    RtImport how = {0};
    RtError err = {""};
    RtDataset *d;
    RtTaskMade made;
    CHECK_MSG(rt_import_tables(NULL, &f, &mapping, &how, &d, &err) == GNNC_OK, "%s", err.text);
    if (!d) return;
    CHECK(task(d, "COUNT(t.*, 0, 20) FOR EACH a", &made, &err) == GNNC_E_MISSING);
    CHECK_MSG(strstr(err.text, "no foreign key leads from 't' to 'a'"), "%s", err.text);
    rt_dataset_close(d);
}

TEST(a_column_of_a_table_without_references) {
    RtDataset *d = shop(NULL);
    RtTaskMade made;
    RtError err = {""};
    RtTaskOptions how = {.query = "orders.price > 3 KNOWN AFTER customer_id",
                         .val_time = NAN,
                         .test_time = 60 * DAY};
    CHECK_MSG(rt_import_task(d, &how, &made, &err) == GNNC_OK, "%s", err.text);
    CHECK(made.n_baselines == made.n_metrics && made.n[3] == 4 && made.n[1] > 0 && made.n[2] > 0);
    CHECK(!rt_dataset_edges(d, "task__customer_id") && !rt_dataset_edges(d, "orders__customer_id"));
    rt_dataset_close(d);
    d = shop(NULL);
    how.val_time = 70 * DAY;
    CHECK(rt_import_task(d, &how, &made, &err) == GNNC_E_RANGE && strstr(err.text, "--val-time"));
    rt_dataset_close(d);
}

TEST(a_reference_that_is_asked_for_is_no_edge_of_its_row) {
    RtDataset *d = shop(NULL);
    RtTaskMade made;
    RtError err = {""};
    CHECK_MSG(task(d, "orders.customer_id = 1", &made, &err) == GNNC_OK, "%s", err.text);
    CHECK(!rt_dataset_edges(d, "task__customer_id") && rt_dataset_edges(d, "orders__customer_id"));
    rt_dataset_close(d);
}

/* Without it rows would be read whenever they happened, and their answers with them. */
TEST(the_time_that_rows_are_asked_at_is_known) {
    static const char *const queries[] = {"orders.price KNOWN AFTER date",
                                          "orders.date > 1970-02-01"};
    for (int k = 0; k < 2; k++) {
        RtDataset *d = shop(NULL);
        RtTaskMade made;
        RtError err = {""};
        CHECK(task(d, queries[k], &made, &err) == GNNC_E_ARG);
        CHECK_MSG(strstr(err.text, "rows of 'orders' are asked about at 'date'"), "%s", err.text);
        rt_dataset_close(d);
    }
}

/* What a SELECT gives is read as one more table. */
static gnnc_status selected(const RtAlloc *from, const char *rows, RtTaskMade *made, RtDataset **d,
                            RtError *err) {
    RtNamedBytes files[] = {FILE_OF("customers.csv", customers),
                            FILE_OF("orders.csv", orders),
                            {"t.csv", bytes(rows)}},
                 map = FILE_OF("map", "t.entity -> customers\n");
    RtFolder f = {.name = "shop", .files = files, .n_files = 3};
    RtImport how = {0};
    RtTaskOptions task = {.val_time = NAN, .test_time = NAN, .history = true};
    RtTaskText text = {.name = "t",
                       .entity = "customers",
                       .sql = "SELECT ..",
                       .window = 10 * DAY,
                       .val_time = 40 * DAY,
                       .test_time = 60 * DAY};
    *err = (RtError){""};
    gnnc_status st = rt_import_tables(from, &f, &map, &how, d, err);
    return st == GNNC_OK ? rt_import_task_sql(*d, &task, &text, made, err) : st;
}

static const char asked[] = "entity,time,answer\n1,1970-01-11,1\n2,1970-01-21,0\n3,1970-02-06,1\n"
                            "1,1970-02-15,0\n2,1970-03-10,1\n";

/* The window of the third row reaches into validation. */
TEST(rows_of_a_select_are_in_parts_by_their_windows) {
    RtTaskMade made;
    RtDataset *d;
    RtError err;
    CHECK_MSG(selected(NULL, asked, &made, &d, &err) == GNNC_OK, "%s", err.text);
    CHECK(made.n[0] == 1 && made.n[1] == 2 && made.n[2] == 1 && made.n[3] == 1 && !made.of_future);
    CHECK(rt_dataset_edges(d, "t__customers") && !rt_dataset_edges(d, "t__entity"));
    CHECK(rt_dataset_nodes(d, "t_history") && rt_dataset_check(d, &err) == GNNC_OK);
    rt_dataset_close(d);
    CHECK(selected(NULL, "entity,time,answer\n1,1970-01-11,1\n1,1970-01-11,0\n", &made, &d, &err) ==
          GNNC_E_RANGE);
    CHECK_MSG(strstr(err.text, "t: row 2: its entity is asked at its time twice: row 1"), "%s",
              err.text);
    rt_dataset_close(d);
    CHECK(selected(NULL, "entity,time,answer\n1,1970-01-11,\"[1,2]\"\n2,1970-01-21,\"[3,4]\"\n",
                   &made, &d, &err) == GNNC_E_FORMAT);
    CHECK_MSG(strstr(err.text, "answers are numbers, or one of a few texts"), "%s", err.text);
    rt_dataset_close(d);
}

TEST(every_allocation_may_fail) {
    static const char *const queries[] = {
        "COUNT(lines.* WHERE order_id != 10, 0, 20) > 0 FOR EACH customers",
        "SUM(orders.price, 0, 20) FOR EACH customers",
        "LIST_DISTINCT(lines.shop_id, 0, 20) RANK TOP 2 FOR EACH customers", NULL};
    for (int k = 0; k < 4; k++)
        for (long n = 0;; n++) {
            FailingAlloc f;
            RtTaskMade made;
            RtError err = {""};
            RtAlloc from = failing(&f, n);
            RtTaskOptions how = {.query = queries[k],
                                 .history = k != 2,
                                 .val_time = 40 * DAY,
                                 .test_time = 80 * DAY};
            RtDataset *d = NULL;
            gnnc_status st = GNNC_E_NOMEM;
            if (!queries[k])
                st = selected(&from, asked, &made, &d, &err);
            else if ((d = shop(&from)))
                st = rt_import_task(d, &how, &made, &err);
            rt_dataset_close(d);
            CHECK_MSG(f.n_live == 0 && (st == GNNC_OK || st == GNNC_E_NOMEM), "%ld: %ld live, %s",
                      n, f.n_live, err.text);
            if (st == GNNC_OK) break;
        }
}

TEST_MAIN()
