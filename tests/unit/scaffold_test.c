/* Starters: what `gnnc import --scaffold` makes of a data set. */
#include <math.h>

#include "test.h"

#include "csv_util.h"
#include "frontend/import/import_scaffold.h"
#include "frontend/import/import_scaffold_names.h"
#include "runtime/import/import_split.h"
#include "rt_test_util.h"
#include "runtime/import/import_task.h"

/* The starter of d, which is closed; valid until the next call. */
static const char *scaffold_by(RtDataset *d, const ScaffoldHow *how) {
    char model[128];
    RtError err = {""};
    const char *dir = scratch_new();
    snprintf(model, sizeof model, "%s/m.gnn", dir);
    CHECK_MSG(gnnc_import_scaffold(d, how, model, &err) == GNNC_OK, "%s", err.text);
    const char *text = file_text(model);
    scratch_remove(dir);
    rt_dataset_close(d);
    return text;
}

static const char *scaffold_of(RtDataset *d) {
    return scaffold_by(d, &(ScaffoldHow){.dir = "data"});
}

/* .. of a task that a query asks for. */
static const char *scaffold_of_task(RtDataset *d, const char *query) {
    RtError err = {""};
    RtTaskOptions task = {.query = query, .val_time = NAN, .test_time = NAN};
    RtTaskMade made;
    CHECK_MSG(rt_import_task(d, &task, &made, &err) == GNNC_OK, "%s", err.text);
    return scaffold_by(d, &(ScaffoldHow){.dir = "data", .task = made.table, .of_future = true});
}

static void scaffold_says(RtDataset *d, const char *const *says) {
    const char *text = scaffold_of(d);
    for (; *says; says++) CHECK_MSG(strstr(text, *says), "no '%s' in\n%s", *says, text);
}
#define SCAFFOLD(d, ...) scaffold_says(d, (const char *const[]){__VA_ARGS__, NULL})

TEST(scaffolds_are_starters_that_learn) {
    static const char two[] = "id,a,y,split\n1,2,0,train\n2,1,1,val\n3,2,1,test\n",
                      ends[] = "src,dst\n1,2\n";
    SCAFFOLD(csv_of(two, ends), "metric roc_auc, accuracy", "weight_decay = 5e-4",
             "keep best on val roc_auc", "dropout(h[t], p)");
    SCAFFOLD(csv_of("id,y,split\n1,0,train\n2,1,test\n3,2,train\n", ends), "metric accuracy\n",
             "keep last    # the split has no validation rows",
             "param vertex_self: f32[vertex, hidden] = normal(0, 0.1)");
    SCAFFOLD(csv_of("id,y\n1,0\n2,1\n", ends),
             "`vertex` has labels (`y`) and no split, so nothing is learned: gnnc import --split");
}

/* Rows with a label see what is older; where they have no time, times are not read. */
TEST(scaffolds_do_not_read_the_future) {
    static const char edges[] = "src,dst,t\n1,2,5\n2,3,6\n";
    SCAFFOLD(csv_of("id,a,date,y,split\n1,2,5,0,train\n2,1,6,1,val\n3,2,7,1,test\n", edges),
             "sample { fanout [10, 10]  batch 64  pick recent  time g.vertex.date, g.link.t }");
    SCAFFOLD(csv_of("id,a,y,split\n1,2,0,train\n2,1,1,val\n3,2,1,test\n", edges),
             "edge link: vertex -> vertex timeless {");
}

/* Of a task: how old rows are when each is asked for, and answers of size 1. */
TEST(scaffolds_of_tasks_know_how_old_rows_are) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {FILE_OF("a.csv", "id,c\n1,x\n2,y\n"),
                            FILE_OF("b.csv", "id,a_id,v,date\n1,1,5,1970-01-01\n2,2,6,1970-01-03\n"
                                             "3,1,7,1970-01-05\n4,2,9,1970-01-09\n")};
    RtDataset *d = tables_of(files, 2, &how, &err);
    const char *text = scaffold_of_task(d, "SUM(b.v, 0, 2, days) FOR EACH a");
    static const char *const says[] = {
        "now[g.task] = g.task.time + 1e11",
        "now[g.a] = max(now[g.task][reverse(g.task__a).dst], over = reverse(g.task__a).src)",
        "now[g.b] = max(now[g.a][g.b__a_id.dst], over = g.b__a_id.src)",
        "h[g.b] = b_age(f32(now[g.b] - g.b.date - 1e11)) + b_v(g.b.v)",
        "return 3.25 + 3.2",
        "loss l1    metric mae",
        "pick recent  inclusive true  own true  time g.b.date, g.task.time }"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        CHECK_MSG(strstr(text, says[i]), "no '%s' in\n%s", says[i], text);
}

/* Rows that lead both to who asks and to the items by one reference are drawn: it stands once. */
TEST(scaffolds_that_rank_draw_each_reference) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {
        FILE_OF("a.csv", "id,c\n1,x\n2,y\n"), FILE_OF("shop.csv", "id,s\n1,x\n2,y\n"),
        FILE_OF("b.csv", "id,a_id,shop_id,date\n1,1,1,1970-01-01\n2,2,2,1970-01-03\n"
                         "3,1,2,1970-01-05\n4,2,1,1970-01-09\n5,1,1,1970-01-10\n"),
        FILE_OF("line.csv", "id,b_id\n1,1\n2,2\n3,3\n4,4\n5,5\n")};
    RtDataset *d = tables_of(files, 4, &how, &err);
    RtTaskOptions task = {.query = "LIST_DISTINCT(line.shop_id, 0, 2) RANK TOP 2 FOR EACH a",
                          .val_time = 3 * 86400,
                          .test_time = 7 * 86400};
    RtTaskMade made;
    CHECK_MSG(d && rt_import_task(d, &task, &made, &err) == GNNC_OK, "%s", err.text);
    const char *text = scaffold_by(d, &(ScaffoldHow){.dir = "data",
                                                     .task = made.table,
                                                     .of_future = true,
                                                     .ranks = &made.ranks,
                                                     .window = made.window});
    const char *lines = strstr(text, " g.line__b_id: [0, 0, 20, 0],\n");
    CHECK_MSG(lines && !strstr(lines + 1, " g.line__b_id: ["), "%s", text);
    CHECK_MSG(strstr(text, "reverse(g.line__b_id): [0, 0, 0, 1],\n"), "%s", text);
}

/* Of a column: what earlier rows of the same references had, and what references lead to. */
TEST(scaffolds_of_columns_know_what_was_told) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {FILE_OF("pays.csv",
                                    "id,rent_id,v,date\n1,1,1.5,1970-01-01\n2,1,2.5,1970-01-03\n"
                                    "3,2,1.5,1970-01-05\n4,2,3.5,1970-01-09\n5,1,2.5,1970-01-11\n"),
                            FILE_OF("rent.csv", "id,copy_id\n1,1\n2,2\n"),
                            FILE_OF("copy.csv", "id,film_id\n1,1\n2,1\n"),
                            FILE_OF("film.csv", "id,rate,maker_id\n1,0.5,1\n"),
                            FILE_OF("maker.csv", "id,x\n1,0.5\n"),
                            FILE_OF("cast.csv", "id,film_id\n1,1\n")};
    RtDataset *d = tables_of(files, 6, &how, &err);
    CHECK_MSG(d != NULL, "%s", err.text);
    RtTaskOptions task = {
        .query = "pays.v FOR EACH pays", .val_time = 7 * 86400, .test_time = 9 * 86400};
    RtTaskMade made;
    CHECK_MSG(rt_import_task(d, &task, &made, &err) == GNNC_OK, "%s", err.text);
    CHECK(strcmp(made.told_table, "pays") == 0 && strcmp(made.told, "v") == 0);
    const char *text = scaffold_by(d, &(ScaffoldHow){.dir = "data",
                                                     .task = made.table,
                                                     .told_table = made.told_table,
                                                     .told = made.told});
    static const char *const says[] = {"layers: int = 3",
                                       "node film {\n    rate: f32",
                                       "in 3 layers: cast, maker.",
                                       "said = f32(now[g.pays] - g.pays.date - 1e11)",
                                       "told_task__rent_id = sum(earlier()(g.pays__rent_id, had, "
                                       "said)[reverse(g.task__rent_id).src], "
                                       "over = reverse(g.task__rent_id).dst)",
                                       "y = y + from_task__rent_id(told_task__rent_id)",
                                       "begin = settled()(told_task__rent_id)",
                                       "g.copy__film_id: [0, 0, 1]",
                                       "g.pays__rent_id: [10, 10, 0]",
                                       "own true"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        CHECK_MSG(strstr(text, says[i]), "no '%s' in\n%s", says[i], text);
}

/* Where a table has several times, one is chosen, and said so; a birth date alone is none. */
TEST(scaffolds_choose_the_time_of_an_event) {
    static const char nodes[] = "id,BirthDate:time,HireDate:time,left:time,a,y,split\n"
                                "1,1,5,8,2,0,train\n2,2,6,8,1,1,val\n3,3,7,8,2,1,test\n",
                      ends[] = "src,dst,due:time,created_at:time\n1,2,9,5\n2,3,9,6\n";
    SCAFFOLD(
        csv_of(nodes, ends), "time g.vertex.HireDate, g.link.created_at }",
        "says HireDate (it stands first that is no birth date or the like), not BirthDate, left",
        "vertex_BirthDate = age(hidden)", "vertex_left(f32(now[g.vertex] - g.vertex.left - 1e11))",
        "says created_at (its name is an event's), not due");
    const char *text =
        scaffold_by(csv_of(nodes, ends), &(ScaffoldHow){.dir = "data", .by_time = "left"});
    CHECK(strstr(text, "time g.vertex.left, ") && strstr(text, "(--by-time names it)"));
    text = scaffold_of(csv_of("id,dob:time,y,split\n1,1,0,train\n2,2,1,val\n", "src,dst\n1,2\n"));
    CHECK(strstr(text, "node vertex timeless {") && !strstr(text, "sample {"));
    CHECK(strstr(text, "= calendar(hidden)"));
}

/* What no message arrives from would be layers of no use (E0319). */
TEST(scaffolds_leave_out_what_is_out_of_reach) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {FILE_OF("a.csv", "id,b_id,y,split\n1,1,0,train\n2,1,1,test\n"),
                            FILE_OF("b.csv", "id,c_id\n1,1\n2,1\n"),
                            FILE_OF("c.csv", "id,d_id\n1,1\n"), FILE_OF("d.csv", "id,e\n1,7\n"),
                            FILE_OF("e.csv", "id,x\n7,0.5\n")};
    const char *text = scaffold_of(tables_of(files, 5, &how, &err));
    CHECK(strstr(text, "node c {") && strstr(text, "edge b__c_id: b -> c"));
    CHECK(!strstr(text, "node d") && !strstr(text, "c__d_id"));
    CHECK(strstr(text, "# Left out, because nothing of them reaches `a` in 2 layers: d, e.\n"));
}

/* A table's age beside its column `age`; tables and columns whose names join alike. */
TEST(scaffolds_give_each_layer_a_name_of_its_own) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {FILE_OF("a.csv", "id,c\n1,x\n2,y\n"),
                            FILE_OF("b.csv",
                                    "id,a_id,age,date\n1,1,5,1970-01-01\n2,2,6,1970-01-03\n"
                                    "3,1,7,1970-01-05\n4,2,9,1970-01-09\n"),
                            FILE_OF("c.csv", "id,a_id,b_c\n1,1,k\n2,2,l\n3,1,k\n"),
                            FILE_OF("c_b.csv", "id,a_id,c\n1,1,m\n2,2,n\n3,1,o\n")};
    RtDataset *d = tables_of(files, 4, &how, &err);
    const char *text = scaffold_of_task(d, "SUM(b.age, 0, 2, days) FOR EACH a");
    static const char *const says[] = {
        "  b_age_ = age(hidden)\n",
        "  b_age = scale(hidden)\n",
        "h[g.b] = b_age_(f32(now[g.b] - g.b.date - 1e11)) + b_age(g.b.age)",
        "    b_c: cat[K_c_b_c]\n",
        "    c: cat[K_c_b_c_]\n",
        "  c_b_c = embedding(K_c_b_c, hidden)\n",
        "  c_b_c_ = embedding(K_c_b_c_, hidden)\n",
        "h[g.c_b] = c_b_c_(g.c_b.c)\n"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        CHECK_MSG(strstr(text, says[i]), "no '%s' in\n%s", says[i], text);
}

/* A time beside columns `age` and `age_`; columns of edges and nodes that join alike, and one that
 * is called as another's second dimension. */
TEST(scaffolds_count_up_to_a_name_that_is_free) {
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {
        FILE_OF("a.csv", "id,c\n1,x\n2,y\n"),
        FILE_OF("b.csv", "id,a_id,age,age_,date\n1,1,5,1,1970-01-01\n2,2,6,2,1970-01-03\n"
                         "3,1,7,3,1970-01-05\n4,2,9,4,1970-01-09\n")};
    const char *text =
        scaffold_of_task(tables_of(files, 2, &how, &err), "SUM(b.age, 0, 2, days) FOR EACH a");
    static const char *const says[] = {"  b_age__ = age(hidden)\n", "  b_age = scale(hidden)\n",
                                       "  b_age_ = scale(hidden)\n",
                                       ("b_age__(f32(now[g.b] - g.b.date - 1e11)) + b_age(g.b.age) "
                                        "+ b_age_(g.b.age_)")};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        CHECK_MSG(strstr(text, says[i]), "no '%s' in\n%s", says[i], text);
}

TEST(names_of_starters_are_each_of_one_thing) {
    RtColumn of_a[] = {{.name = "b_c", .kind = RT_COL_CAT, .rank = 1},
                       {.name = "b_c_", .kind = RT_COL_CAT, .rank = 1},
                       {.name = "x", .kind = RT_COL_FLOAT, .rank = 3},
                       {.name = "x_2", .kind = RT_COL_FLOAT, .rank = 2}},
             of_a_b[] = {{.name = "c", .kind = RT_COL_CAT, .rank = 1}},
             of_told[] = {{.name = "a_b_", .kind = RT_COL_FLOAT, .rank = 1}},
             of_edge[] = {{.name = "_c", .kind = RT_COL_CAT, .rank = 1}};
    RtTable nodes[] = {{.name = "a", .columns = of_a, .n_columns = 4},
                       {.name = "a_b", .columns = of_a_b, .n_columns = 1},
                       {.name = "told", .columns = of_told, .n_columns = 1}};
    RtTable edges[] = {{.name = "a_b_", .columns = of_edge, .n_columns = 1},
                       {.name = "a_b", .columns = of_edge, .n_columns = 0}};
    RtDataset d = {.nodes = nodes, .n_nodes = 3, .edges = edges, .n_edges = 2};
    RtError err = {""};
    RtPool pool;
    rt_pool_init(&pool, NULL);
    ScaffoldNames n;
    CHECK(scaffold_names(&pool, &d, &n, &err) == GNNC_OK);
    const char *all[] = {scaffold_column_name(&n, &of_a[0]),
                         scaffold_column_name(&n, &of_a[1]),
                         scaffold_column_name(&n, &of_a_b[0]),
                         scaffold_column_name(&n, of_told),
                         scaffold_column_name(&n, of_edge),
                         "a_x",
                         "a_x_2",
                         scaffold_column_name(&n, &of_a[3]),
                         scaffold_role_name(&n, &nodes[0], SCAFFOLD_SELF),
                         "told_a_b_"};
    CHECK_STR(all[0], "a_b_c");
    CHECK_STR(all[2], "a_b_c__");
    CHECK_STR(all[3], "told_a_b__");
    CHECK_STR(all[7], "a_x_2_");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < i; j++)
            CHECK_MSG(strcmp(all[i], all[j]) != 0, "%s: names %zu, %zu", all[i], j, i);
    rt_pool_free(&pool);
}

TEST(scaffolds_name_the_model_for_links) {
    SCAFFOLD(csv_of(NULL, "src,dst,split\n1,2,train\n2,3,test\n"),
             "models/link.gnn learns such links (vertex, link; without its lines of `no_link`");
    SCAFFOLD(csv_of(NULL, "src,dst,t,split\n1,2,5,train\n2,3,6,test\n"),
             "models/events.gnn learns which event `link` comes next");
    RtError err;
    RtImport how = {0};
    RtNamedBytes files[] = {FILE_OF("user.csv", "id,item_id\n1,7\n2,8\n3,8\n"),
                            FILE_OF("item.csv", "id\n7\n8\n")};
    RtDataset *d = tables_of(files, 2, &how, &err);
    RtSplitHow split = {.part = {0.6, 0, 0.4}};
    CHECK_MSG(d && rt_import_split(d, &split, &err) == GNNC_OK, "%s", err.text);
    SCAFFOLD(d, "models/lightgcn.gnn recommends by such edges");
}

TEST_MAIN()
