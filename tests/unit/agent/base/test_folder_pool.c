/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/base/folder_pool: folders that are made ahead of need, and what of an attempt's serves the
 * next one. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/base/folder_pool.h"
#include "agent/base/trash.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_suites.h"

static char folder[64];

static void write_file(const char *path, const void *bytes, size_t length)
{
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(file, bytes, length), length);
}

static void setup(void)
{
    strcpy(folder, "/tmp/unit-agent-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    ck_assert(file_remove_tree(folder, NULL));
}

START_TEST(the_folder_of_an_attempt_has_a_place_for_results)
{
    autofree char *trash_path = xprintf("%s/trash", folder), *spare = xprintf("%s/spare", folder);
    autofree char *taken = xprintf("%s/7", folder), *results = xprintf("%s/7/results", folder);
    struct trash *trash = trash_create(trash_path, NULL);
    struct folder_pool *folder_pool = folder_pool_create(spare, trash, NULL);
    struct err err = {0};
    ck_assert_msg(folder_pool_take(folder_pool, taken, 4, &err), "%s", err.text);
    struct stat status;
    ck_assert_int_eq(stat(results, &status), 0);
    ck_assert(S_ISDIR(status.st_mode));
    folder_pool_destroy(folder_pool);
    trash_destroy(trash);
}
END_TEST

START_TEST(the_folder_of_an_attempt_has_room_on_the_disk_for_the_exit_record_of_a_rank)
{
    autofree char *trash_path = xprintf("%s/trash", folder), *spare = xprintf("%s/spare", folder);
    autofree char *taken = xprintf("%s/7", folder), *record = xprintf("%s/7/" SHIM_EXIT_NEW_FILE, folder);
    struct trash *trash = trash_create(trash_path, NULL);
    struct folder_pool *folder_pool = folder_pool_create(spare, trash, NULL);
    ck_assert(folder_pool_take(folder_pool, taken, 0, NULL));
    struct stat status;
    ck_assert_int_eq(stat(record, &status), 0);
    ck_assert_int_ge(512 * (long long)status.st_blocks, (long long)SHIM_RECORD_BYTES(1));
    folder_pool_destroy(folder_pool);
    trash_destroy(trash);
}
END_TEST

struct store {
    struct trash *trash;
    struct folder_pool *folder_pool;
};

static struct store store_open(void)
{
    autofree char *trash_path = xprintf("%s/trash", folder), *spare = xprintf("%s/spare", folder);
    struct trash *trash = trash_create(trash_path, NULL);
    return (struct store){trash, folder_pool_create(spare, trash, NULL)};
}

static void store_close(struct store *store)
{
    folder_pool_destroy(store->folder_pool);
    trash_destroy(store->trash);
}

static void fill(struct store *store)
{
    while (folder_pool_refill(store->folder_pool)) {
    }
}

/* The folder of an attempt, and the numbers of what is in it. */
struct taken {
    char *path;
    ino_t work, errors, results, out, err, exit;
};

static ino_t number_of(const char *path, const char *name)
{
    struct stat status;
    autofree char *full = xprintf("%s/%s", path, name);
    ck_assert_msg(lstat(full, &status) == 0, "%s", full);
    bool is_folder = strchr(name, '.') == NULL || strcmp(name, "0.files") == 0;
    ck_assert_uint_eq(status.st_mode, is_folder ? (S_IFDIR | 0700) : (S_IFREG | 0600));
    ck_assert(is_folder || (status.st_size == 0 && status.st_nlink == 1));
    return status.st_ino;
}

static struct taken take(struct store *store, int number)
{
    struct taken taken = {.path = xprintf("%s/attempt-%d", folder, number)};
    struct err err = {0};
    ck_assert_msg(folder_pool_take(store->folder_pool, taken.path, 0, &err), "%s", err.text);
    taken.work = number_of(taken.path, "work");
    taken.errors = number_of(taken.path, "errors");
    taken.results = number_of(taken.path, "results");
    taken.out = number_of(taken.path, "0.stdout");
    taken.err = number_of(taken.path, "0.stderr");
    taken.exit = number_of(taken.path, "exit.new");
    number_of(taken.path, "0.files");
    return taken;
}

/* Its number stays taken. */
static int hold(const struct taken *taken, const char *name)
{
    autofree char *path = xprintf("%s/%s", taken->path, name);
    int held = open(path, O_PATH | O_CLOEXEC);
    ck_assert_int_ge(held, 0);
    return held;
}

/* As its shim does when no process is left. */
static void record_length(const struct taken *taken, size_t length)
{
    autofree char *from = xprintf("%s/exit.new", taken->path), *to = xprintf("%s/exit", taken->path);
    ck_assert_int_eq(truncate(from, (off_t)length), 0);
    ck_assert_int_eq(rename(from, to), 0);
}

static void record_end(const struct taken *taken)
{
    record_length(taken, 0);
}

/* That of the attempt after the next two, which are ready by then. */
static struct taken take_after(struct store *store, struct taken *first)
{
    folder_pool_return(store->folder_pool, first->path);
    free(take(store, 2).path);
    free(take(store, 3).path);
    return take(store, 4);
}

START_TEST(what_an_attempt_did_not_use_serves_another)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    record_end(&first);
    struct taken later = take_after(&store, &first);
    ck_assert(later.work == first.work && later.errors == first.errors && later.results == first.results);
    ck_assert(later.out == first.out && later.err == first.err && later.exit == first.exit);
    ck_assert_int_ne(access(first.path, F_OK), 0);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

/* Its sectors may be of two records after a loss of power. */
START_TEST(the_file_of_a_long_exit_record_is_not_used_again)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    record_length(&first, 513);
    autofree char *path = xprintf("%s/exit", first.path);
    int held = open(path, O_PATH | O_CLOEXEC);
    struct taken later = take_after(&store, &first);
    ck_assert(later.work == first.work && later.exit != first.exit);
    close(held);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

/* What is in the folder of an attempt but does not belong there, whatever it is. */
START_TEST(what_an_attempt_has_added_does_not_reach_another)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    autofree char *command = xprintf(
        "cd %s && echo x >.hidden && echo x >0.files/kept && mkdir -p more/0.stdout && ln -s /etc/passwd "
        "0.metrics && cp exit.new other && touch $(printf %%0255d 0)",
        first.path);
    ck_assert_int_eq(system(command), 0);
    record_end(&first);
    autofree char *forged = xprintf("%s/exit.new", first.path);
    write_file(forged, "cause NONE\nend\n", 15);
    struct taken later = take_after(&store, &first);
    autofree char *listing = xprintf("test $(ls -A %s | wc -l) = 8", later.path);
    ck_assert_int_eq(system(listing), 0);
    ck_assert(later.work == first.work && later.exit == first.exit);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

START_TEST(a_folder_full_of_files_goes_as_a_whole)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    autofree char *command = xprintf("cd %s && touch $(seq 1000)", first.path);
    ck_assert_int_eq(system(command), 0);
    record_end(&first);
    int held = hold(&first, "work");
    struct taken later = take_after(&store, &first);
    ck_assert(later.work != first.work);
    close(held);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

static const char *const uses[] = {
    "echo x >work/x",
    "mkdir work/.hidden",
    "chmod 755 work",
    "rmdir work && ln -s /tmp work",
    "rmdir work && touch work",
    "rmdir work",
    "mkdir -m 2700 new && rmdir work && mv new work",
    "echo x >0.stdout",
    "ln 0.stdout ../linked",
    "chmod 644 0.stdout",
    "rm 0.stdout && mkfifo 0.stdout",
};

START_TEST(what_was_used_is_not_used_again)
{
    struct store store = store_open();
    bool file = strstr(uses[_i], "stdout") != NULL;
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    int held = hold(&first, file ? "0.stdout" : "work");
    autofree char *command = xprintf("cd %s && %s", first.path, uses[_i]);
    ck_assert_int_eq(system(command), 0);
    record_end(&first);
    struct taken later = take_after(&store, &first);
    ck_assert_int_eq(later.work != first.work, !file);
    ck_assert_int_eq(later.out != first.out, file);
    ck_assert(later.errors == first.errors && later.err == first.err);
    close(held);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

START_TEST(nothing_of_an_attempt_whose_end_is_not_recorded_is_used_again)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    struct taken later = take_after(&store, &first);
    ck_assert(later.work != first.work && later.errors != first.errors && later.results != first.results);
    ck_assert(later.out != first.out && later.err != first.err);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

START_TEST(a_folder_with_attributes_is_not_used_again)
{
    struct store store = store_open();
    fill(&store);
    struct taken first = take(&store, 1);
    fill(&store);
    autofree char *work = xprintf("%s/work", first.path);
    record_end(&first);
    bool set = setxattr(work, "user.gpuctl", "x", 1, 0) == 0; /* not on every file system */
    struct taken later = take_after(&store, &first);
    ck_assert(set ? later.work != first.work : later.work == first.work);
    free(first.path);
    free(later.path);
    store_close(&store);
}
END_TEST

Suite *folder_pool_suite(void)
{
    Suite *suite = suite_create("folder-pool");
    TCase *tcase = tcase_create("folder-pool");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_folder_of_an_attempt_has_a_place_for_results);
    tcase_add_test(tcase, the_folder_of_an_attempt_has_room_on_the_disk_for_the_exit_record_of_a_rank);
    tcase_add_test(tcase, what_an_attempt_did_not_use_serves_another);
    tcase_add_test(tcase, the_file_of_a_long_exit_record_is_not_used_again);
    tcase_add_test(tcase, what_an_attempt_has_added_does_not_reach_another);
    tcase_add_test(tcase, a_folder_full_of_files_goes_as_a_whole);
    tcase_add_loop_test(tcase, what_was_used_is_not_used_again, 0, sizeof uses / sizeof uses[0]);
    tcase_add_test(tcase, nothing_of_an_attempt_whose_end_is_not_recorded_is_used_again);
    tcase_add_test(tcase, a_folder_with_attributes_is_not_used_again);
    suite_add_tcase(suite, tcase);
    return suite;
}
