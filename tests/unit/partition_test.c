/* gnnc partition, within one process: every allocation may fail, and nothing is left then. */
#include "runtime/partition/partition.h"

#include <stdio.h>
#include <unistd.h>

#include "rt_test_util.h"
#include "runtime/data/moved.h"
#include "runtime/partition/metis_cut.h"
#include "test.h"

static gnnc_status cora_in_parts(const RtAlloc *from, RtPartitionMethod by, const char *dir,
                                 RtError *err) {
    RtPool pool;
    RtDataset *d = NULL;
    RtWork work;
    RtPartition p = {.edges = 0};
    const RtPartitionOptions how = {.n_parts = 3, .by = by, .work = &work};
    rt_pool_init(&pool, from);
    gnnc_status st = rt_dataset_open_mapped(from, "models/data/cora", &d, err);
    if (st == GNNC_OK && (st = rt_work_open(&pool, dir, &work, err)) == GNNC_OK) {
        st = rt_partition(&pool, d, &how, &p, err);
        if (st == GNNC_OK) st = rt_dataset_write_moved(d, &p.moves, &work, true, err);
        rt_work_close(&pool, &work, st);
    }
    rt_dataset_close(d);
    rt_pool_free(&pool);
    return st;
}

TEST(every_failed_allocation_is_survived) {
    const char *scratch = scratch_new();
    char dir[300];
    if (access("models/data/cora/schema.json", R_OK) != 0) return; /* not run from the root */
    snprintf(dir, sizeof dir, "%s/cora", scratch);
    for (int by = rt_has_metis() ? RT_PARTITION_METIS : RT_PARTITION_STREAM;
         by <= RT_PARTITION_ROWS; by++) {
        gnnc_status st = GNNC_E_NOMEM;
        for (long k = 0; st != GNNC_OK && k < 2000; k++) {
            FailingAlloc f;
            RtError err = {""};
            RtAlloc from = failing(&f, k);
            st = cora_in_parts(&from, (RtPartitionMethod)by, dir, &err);
            CHECK(st == GNNC_OK || (st == GNNC_E_NOMEM && err.text[0]));
            CHECK(f.n_live == 0 && (access(dir, F_OK) == 0) == (st == GNNC_OK));
        }
        CHECK(st == GNNC_OK);
        scratch_remove(dir);
    }
    scratch_remove(scratch);
}

TEST(lines_that_move_are_all_there_or_no_memory_is) {
    const char *scratch = scratch_new();
    char path[300];
    const int32_t rows[] = {1, 0};
    const RtBytes text = {(const uint8_t *)"a\nb", 3};
    gnnc_status st = GNNC_E_NOMEM;
    snprintf(path, sizeof path, "%s/names.txt", scratch);
    for (long k = 0; st != GNNC_OK && k < 100; k++) {
        FailingAlloc f;
        RtError err = {""};
        RtAlloc from = failing(&f, k);
        st = rt_moved_lines(&from, path, text, "names", 2, rows, &err);
        CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "%d: %s", st, err.text);
        CHECK(f.n_live == 0);
    }
    CHECK(st == GNNC_OK);
    scratch_remove(scratch);
}

TEST(parts_are_read) {
    const char *scratch = scratch_new();
    char dir[300];
    RtError err = {""};
    RtDataset *d = NULL;
    if (access("models/data/cora/schema.json", R_OK) != 0) return;
    snprintf(dir, sizeof dir, "%s/cora", scratch);
    CHECK_MSG(cora_in_parts(NULL, RT_PARTITION_STREAM, dir, &err) == GNNC_OK, "%s", err.text);
    CHECK_MSG(rt_dataset_open(NULL, dir, false, &d, &err) == GNNC_OK, "%s", err.text);
    const RtTable *t = d ? rt_dataset_nodes(d, "paper") : NULL;
    CHECK(t && t->n_parts == 3 && t->part_ptr[3] == 2708 && t->part_rows);
    rt_dataset_close(d);
    scratch_remove(scratch);
}

TEST_MAIN()
