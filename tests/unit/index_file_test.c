/* Index arrays that are kept beside the data: the same bits with and without them, whatever becomes
 * of the files. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/bind/bind.h"
#include "runtime/data/cache.h"
#include "runtime/graph/graph.h"
#include "runtime/trainer/trainer.h"
#include "tiny_trainer.h"

/* The tiny program with relations that follow from the edges alone. */
static const gnnc_program *model(void) {
    static rt_space spaces[sizeof tiny_spaces / sizeof *tiny_spaces];
    static rt_program program;
    static gnnc_program m;
    memcpy(spaces, tiny_spaces, sizeof tiny_spaces);
    spaces[3].rel = RT_REL_NO_LOOPS;
    spaces[3].cond_buf = -1;
    program = tiny_program;
    program.spaces = spaces;
    m = (gnnc_program){RT_PROGRAM_VERSION, &program};
    return &m;
}

typedef enum { NOT_KEPT, KEPT_READ, KEPT_MAPPED } How;

/* Trains a little and saves; *found: index arrays were there. */
static void train_with(const gnnc_program *m, const Place *p, How how, const char *file,
                       bool *found) {
    gnnc_trainer *t = NULL;
    CHECK(gnnc_trainer_create(&t, m) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "cache", how != NOT_KEPT) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "map", how == KEPT_MAPPED) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "epochs", 3) == GNNC_OK);
    CHECK(gnnc_trainer_set_int(t, "threads", 2) == GNNC_OK);
    CHECK_MSG(gnnc_trainer_load(t, p->dir) == GNNC_OK, "%s", gnnc_trainer_error(t));
    *found = t->rt.bound && t->rt.bound->found;
    train_on(t, 3);
    CHECK_MSG(gnnc_trainer_save(t, file) == GNNC_OK, "%s", gnnc_trainer_error(t));
    gnnc_trainer_destroy(t);
}

/* The same bits as p->a, which was trained without. */
static bool train_alike(const Place *p, How how) {
    bool found;
    train_with(model(), p, how, p->b, &found);
    CHECK(same_file(p->a, p->b));
    return found;
}

/* The files' times are old enough to be trusted. */
static void settle(void) {
    nanosleep(&(struct timespec){2, 100000000}, NULL);
}

static Place settled_place(void) {
    Place p = place_new();
    bool found;
    settle();
    train_with(model(), &p, NOT_KEPT, p.a, &found);
    CHECK(!found);
    return p;
}

/* The n-th file of those kept, by name; NULL: there are fewer. */
static const char *kept_file(const Place *p, int n) {
    static char path[512];
    char name[2][64] = {"", ""};
    DIR *list = opendir(p->dir);
    for (struct dirent *e; list && (e = readdir(list));) {
        if (!rt_ends_with(e->d_name, RT_CACHE_END)) continue;
        int i = strncmp(e->d_name, "ends", 4) != 0;
        snprintf(name[i], sizeof name[i], "%.60s", e->d_name);
    }
    if (list) closedir(list);
    if (n > 1 || !*name[n]) return NULL;
    snprintf(path, sizeof path, "%s/%s", p->dir, name[n]);
    return path;
}

static size_t read_kept(const char *path, uint8_t *to, size_t most) {
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(to, 1, most, f) : 0;
    if (f) fclose(f);
    return n;
}

TEST(a_second_start_finds_what_the_first_has_made) {
    Place p = settled_place();
    CHECK(!kept_file(&p, 0));
    CHECK(!train_alike(&p, KEPT_MAPPED));
    CHECK(kept_file(&p, 0) && kept_file(&p, 1));
    CHECK(train_alike(&p, KEPT_MAPPED));
    CHECK(train_alike(&p, KEPT_READ));
    CHECK(!train_alike(&p, NOT_KEPT));
    scratch_remove(p.dir);
}

TEST(relations_with_a_condition_are_made_at_each_start) {
    Place p = place_new();
    bool found;
    settle();
    train_with(&tiny_model, &p, NOT_KEPT, p.a, &found);
    for (int i = 0; i < 2; i++) {
        train_with(&tiny_model, &p, KEPT_MAPPED, p.b, &found);
        CHECK(!found && same_file(p.a, p.b));
    }
    CHECK(kept_file(&p, 0) && !kept_file(&p, 1));
    scratch_remove(p.dir);
}

TEST(data_that_have_just_changed_are_not_trusted) {
    Place p = place_new();
    bool found;
    train_with(model(), &p, KEPT_MAPPED, p.a, &found);
    CHECK(!found && !kept_file(&p, 0) && !kept_file(&p, 1));
    scratch_remove(p.dir);
}

TEST(changed_data_are_read_again) {
    Place p = settled_place();
    train_alike(&p, KEPT_MAPPED);
    CHECK(train_alike(&p, KEPT_MAPPED));
    char path[200];
    struct stat before;
    snprintf(path, sizeof path, "%s/e.npy", p.dir);
    int fd = open(path, O_RDWR);
    int32_t end[2];
    CHECK(fstat(fd, &before) == 0);
    CHECK(pread(fd, end, sizeof end, before.st_size - (off_t)sizeof end) == (ssize_t)sizeof end);
    end[1] = (end[1] + 1) % N;
    CHECK(pwrite(fd, end, sizeof end, before.st_size - (off_t)sizeof end) == (ssize_t)sizeof end);
    /* The time of its last change is put back, as an archive does. */
    CHECK(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}) == 0);
    close(fd);
    bool found;
    train_with(model(), &p, KEPT_MAPPED, p.b, &found);
    CHECK(!found && !same_file(p.a, p.b));
    train_with(model(), &p, NOT_KEPT, p.a, &found);
    CHECK(same_file(p.a, p.b));
    scratch_remove(p.dir);
}

/* One that is broken is as good as none, and is made again. */
TEST(cut_and_changed_files_are_made_again) {
    static uint8_t whole[1 << 16], bad[1 << 16];
    Place p = settled_place();
    train_alike(&p, KEPT_MAPPED);
    for (int k = 0; k < 2; k++) {
        char path[512];
        snprintf(path, sizeof path, "%s", kept_file(&p, k));
        size_t n = read_kept(path, whole, sizeof whole);
        CHECK(n > 0 && n < sizeof whole);
        for (size_t at = 0; at < n; at += at < 256 ? 1 : 61) {
            memcpy(bad, whole, n);
            bad[at] ^= (uint8_t)(1 + at % 255);
            write_file(path, bad, n);
            bool found = train_alike(&p, at % 2 ? KEPT_MAPPED : KEPT_READ);
            bool gap = k == 1 && found; /* zeros between arrays, which nobody reads */
            CHECK_MSG(!gap || whole[at] == 0, "byte %zu of %s", at, path);
        }
        for (size_t cut = 0; cut < n; cut += cut < 128 ? 1 : 97) {
            write_file(path, whole, cut);
            CHECK(!train_alike(&p, KEPT_MAPPED) || k == 0);
        }
        write_file(path, whole, n);
        CHECK(train_alike(&p, KEPT_MAPPED));
    }
    scratch_remove(p.dir);
}

/* Whoever can make the hashes right still makes no index that leads out of an array. */
TEST(forged_arrays_are_checked) {
    Place p = settled_place();
    train_alike(&p, KEPT_MAPPED);
    char path[512];
    snprintf(path, sizeof path, "%s", kept_file(&p, 1));
    RtDataset *d;
    RtPool pool;
    rt_pool_init(&pool, NULL);
    CHECK(rt_dataset_open_late(NULL, p.dir, true, 1, (RtShare){0}, &d, NULL) == GNNC_OK);
    RtCacheKey of = {&d->stamp, strtoull(strrchr(path, '-') + 1, NULL, 16)};
    const RtCacheArray *a;
    RtCacheArray forged[64];
    int n;
    CHECK(rt_cache_read(&pool, path, &of, false, NULL, &a, &n) && n > 4 && n < 64);
    for (int i = 0; i < n; i++)
        for (uint64_t at = 0; at + 4 <= a[i].n_bytes; at += 4) {
            static const int32_t values[] = {INT32_MAX, INT32_MIN, -2, E + N + 1};
            uint8_t *copy = memcpy(rt_pool_alloc(&pool, a[i].n_bytes, 1), a[i].p, a[i].n_bytes);
            memcpy(copy + at, &values[at / 4 % 4], 4);
            memcpy(forged, a, (size_t)n * sizeof *a);
            forged[i].p = copy;
            CHECK(rt_cache_write(NULL, path, &of, NULL, forged, n));
            /* Of bits that are true or false another one is true. */
            CHECK_MSG(!train_alike(&p, KEPT_MAPPED) || i == 0, "array %d, byte %d", i, (int)at);
        }
    CHECK(rt_cache_write(NULL, path, &of, NULL, a, 1));
    CHECK(!train_alike(&p, KEPT_MAPPED));
    CHECK(train_alike(&p, KEPT_MAPPED));
    rt_pool_free(&pool);
    rt_dataset_close(d);
    scratch_remove(p.dir);
}

TEST(links_and_folders_in_their_place_stay) {
    Place p = settled_place();
    char name[512], victim[200];
    train_alike(&p, KEPT_MAPPED);
    snprintf(name, sizeof name, "%s", kept_file(&p, 1));
    snprintf(victim, sizeof victim, "%s/victim", p.dir);
    CHECK(rename(name, victim) == 0 && symlink("victim", name) == 0);
    struct stat before, after;
    CHECK(stat(victim, &before) == 0);
    for (int i = 0; i < 2; i++) CHECK(!train_alike(&p, KEPT_MAPPED));
    CHECK(stat(victim, &after) == 0 && before.st_ino == after.st_ino);
    CHECK(lstat(name, &after) == 0 && S_ISLNK(after.st_mode));
    CHECK(unlink(name) == 0 && mkfifo(name, 0666) == 0 && !train_alike(&p, KEPT_MAPPED));
    CHECK(unlink(name) == 0 && mkdir(name, 0777) == 0 && !train_alike(&p, KEPT_MAPPED));
    CHECK(rmdir(name) == 0 && !train_alike(&p, KEPT_MAPPED) && train_alike(&p, KEPT_MAPPED));
    scratch_remove(p.dir);
}

/* A child, as limits and rights are a process's own.  Nothing is left that was not there. */
static void in_child(const Place *p, bool full) {
    int before = count_entries(p->dir);
    pid_t pid = fork();
    if (pid == 0) {
        gnnc_trainer *t = NULL;
        signal(SIGXFSZ, SIG_IGN);
        bool ok = full ? setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100}) == 0
                       : chmod(p->dir, 0555) == 0 && (geteuid() != 0 || seteuid(65534) == 0);
        ok = ok && gnnc_trainer_create(&t, model()) == GNNC_OK &&
             gnnc_trainer_set_int(t, "cache", 1) == GNNC_OK &&
             gnnc_trainer_load(t, p->dir) == GNNC_OK && gnnc_trainer_epoch(t) == GNNC_OK;
        gnnc_trainer_destroy(t);
        _exit(!ok);
    }
    int status = 1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(count_entries(p->dir) == before);
}

TEST(a_full_disk_or_a_folder_that_is_not_ours_is_no_error) {
    Place p = settled_place();
    in_child(&p, true);
    in_child(&p, false);
    CHECK(chmod(p.dir, 0755) == 0 && !train_alike(&p, KEPT_MAPPED) && train_alike(&p, KEPT_MAPPED));
    scratch_remove(p.dir);
}

TEST(several_write_at_once) {
    enum { N_CHILDREN = 8 };
    Place p = settled_place();
    for (int i = 0; i < N_CHILDREN; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid) continue;
        snprintf(p.b, sizeof p.b, "%s/b%d", p.dir, i);
        test_bad_ = 0;
        for (int k = 0; k < 20; k++) {
            train_alike(&p, KEPT_MAPPED);
            const char *kept = k % 4 == 3 ? kept_file(&p, i % 2) : NULL; /* others remove it, too */
            if (kept) unlink(kept);
        }
        _exit(test_bad_);
    }
    for (int i = 0, status; i < N_CHILDREN; i++) CHECK(wait(&status) > 0 && status == 0);
    train_alike(&p, KEPT_MAPPED);
    CHECK(train_alike(&p, KEPT_MAPPED));
    CHECK(count_entries(p.dir) == 6 + 2 + 2 + N_CHILDREN); /* data, kept, a and b, the children's */
    scratch_remove(p.dir);
}

static gnnc_status load_with(FailingAlloc *f, const Place *p) {
    RtAlloc a = failing(f, f->fail_at);
    gnnc_trainer *t = NULL;
    gnnc_status st = gnnc_trainer_create_with(&t, model(), a.alloc, a.release, a.user);
    if (st != GNNC_OK) return st;
    gnnc_trainer_set_int(t, "cache", 1);
    gnnc_trainer_set_int(t, "map", 1);
    gnnc_trainer_set_int(t, "threads", 1);
    st = gnnc_trainer_load(t, p->dir);
    gnnc_trainer_destroy(t);
    return st;
}

TEST(any_allocation_may_fail) {
    Place p = settled_place();
    for (int found = 0; found < 2; found++) {
        gnnc_status st = GNNC_E_NOMEM;
        for (long k = 0; st != GNNC_OK || k < 40; k++) {
            if (!found)
                for (int i = 1; i >= 0; i--)
                    if (kept_file(&p, i)) unlink(kept_file(&p, i));
            FailingAlloc f = {.fail_at = k};
            st = load_with(&f, &p);
            CHECK_MSG(st == GNNC_OK || st == GNNC_E_NOMEM, "allocation %ld: status %d", k, st);
            CHECK_MSG(f.n_live == 0, "allocation %ld: %ld blocks leak", k, f.n_live);
            if (k > 2000) break;
        }
        CHECK(st == GNNC_OK && train_alike(&p, KEPT_MAPPED));
    }
    scratch_remove(p.dir);
}

TEST_MAIN()
