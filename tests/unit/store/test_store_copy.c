/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a database that is written meanwhile: each is one committed state, with all that was committed
 * before it was begun. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/database/copy.h"
#include "daemon/store/handle.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static char *copy_path(void)
{
    return xprintf("%s/copy", rig.folder);
}

static int64_t number(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* --- beside a writer ------------------------------------------------------------------------------------ */

struct writing {
    atomic_int_fast64_t committed; /* the largest key */
    atomic_bool enough;
};

/* A job, two events and a reply in each transaction. */
static void write_job(int64_t key)
{
    struct change reply = reply_insert(0, "{}");
    struct err err;
    memcpy(reply.reply.scope, &key, sizeof key);
    const struct change changes[] = {
        job_insert(key),
        {.kind = CHANGE_EVENT_INSERT, .event = {.job_key = key, .seq = 1, .kind = EVENT_SUBMITTED}},
        {.kind = CHANGE_EVENT_INSERT, .event = {.job_key = key, .seq = 2, .kind = EVENT_PLACED}},
        reply,
    };
    ck_assert_msg(store_begin(rig.store, &err) && store_apply(rig.store, changes, 4, &err) &&
                      store_commit(rig.store, &err) && store_checkpoint(rig.store, key % 3 == 0, &err),
                  "%s", err.text);
}

static void *write_on(void *closure)
{
    struct writing *writing = closure;
    for (int64_t key = 1; key < RIG_KEYS && !atomic_load(&writing->enough); key++) {
        write_job(key);
        atomic_store(&writing->committed, key);
    }
    return NULL;
}

static void expect_whole(const char *copy, int64_t least)
{
    int64_t jobs = number(copy, "SELECT count(*) FROM jobs");
    ck_assert_int_ge(jobs, least);
    ck_assert_int_eq(number(copy, "SELECT coalesce(max(key), 0) FROM jobs"), jobs);
    ck_assert_int_eq(number(copy, "SELECT count(*) FROM events"), 2 * jobs);
    ck_assert_int_eq(number(copy, "SELECT count(*) FROM replies"), jobs);
    ck_assert_int_eq(number(copy, "SELECT count(*) FROM specs"), jobs);
}

enum { COPIES = 120 };

START_TEST(copies_made_while_jobs_come_are_committed_states_with_all_that_was_acknowledged)
{
    struct writing writing = {0};
    pthread_t thread;
    autofree char *copy = copy_path();
    ck_assert_int_eq(pthread_create(&thread, NULL, write_on, &writing), 0);
    int64_t copies = 0;
    while (copies < COPIES && atomic_load(&writing.committed) < RIG_KEYS - 1) {
        int64_t acknowledged = atomic_load(&writing.committed);
        ck_assert_msg(copy_database(rig.path, copy, NULL, &rig.err), "%s", rig.err.text);
        expect_whole(copy, acknowledged);
        ck_assert_int_eq(unlink(copy), 0);
        copies++;
    }
    atomic_store(&writing.enough, true);
    pthread_join(thread, NULL);
    ck_assert_int_ge(copies, 50);
}
END_TEST

START_TEST(a_copy_is_one_file_for_its_owner_that_a_writer_can_open)
{
    struct stat status;
    autofree char *copy = copy_path();
    write_job(1);
    ck_assert(copy_database(rig.path, copy, NULL, &rig.err));
    ck_assert_int_eq(stat(copy, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < 3; i++) {
        autofree char *beside = xprintf("%s%s", copy, suffixes[i]);
        ck_assert_int_ne(access(beside, F_OK), 0);
    }
    struct store *store = store_open(copy, &rig.err);
    ck_assert_msg(store != NULL, "%s", rig.err.text);
    ck_assert_int_eq(store_next_job_key(store), 2);
    store_close(store);
}
END_TEST

/* Nobody has it open, and all is in the log still. */
START_TEST(a_database_whose_controller_was_killed_is_copied_with_its_log)
{
    autofree char *copy = copy_path();
    autofree char *log = xprintf("%s-wal", rig.path);
    autofree char *before = NULL, *after = NULL;
    size_t size;
    write_job(1);
    rig_close();
    ck_assert(file_read(log, 1 << 24, &before, &size, &rig.err));
    ck_assert_msg(copy_database(rig.path, copy, NULL, &rig.err), "%s", rig.err.text);
    ck_assert(file_read(log, 1 << 24, &after, &size, &rig.err));
    ck_assert_mem_eq(before, after, size);
    expect_whole(copy, 1);
}
END_TEST

/* --- copies that do not come about ---------------------------------------------------------------------- */

/* Several pieces' worth. */
static void make_large(void)
{
    static char spec[512 * 1024];
    memset(spec, 'x', sizeof spec - 1);
    for (int64_t key = 1; key <= 10; key++) {
        struct change job = job_insert(key);
        job.job.birth.spec = spec;
        job.job.birth.spec_length = sizeof spec - 1;
        rig_write_one(job);
    }
}

static bool grow_the_log(void *closure)
{
    autofree char *log = xprintf("%s-wal", rig.path);
    ck_assert_int_eq(truncate(log, LIMIT_COPY_LOG_BYTES + *(const int64_t *)closure), 0);
    return true;
}

static void expect_given_up(const struct copy_watch *watch, const char *text)
{
    autofree char *copy = copy_path();
    ck_assert(!copy_database(rig.path, copy, watch, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_UNAVAILABLE);
    ck_assert_msg(strstr(rig.err.text, text) != NULL, "%s", rig.err.text);
    ck_assert_int_ne(access(copy, F_OK), 0);
}

START_TEST(a_copy_gives_up_before_the_log_grows_to_where_commits_would_wait)
{
    int64_t over = 4096, under = 0;
    make_large();
    const struct copy_watch bounded = {grow_the_log, &under}, grown = {grow_the_log, &over};
    autofree char *copy = copy_path();
    ck_assert_msg(copy_database(rig.path, copy, &bounded, &rig.err), "%s", rig.err.text);
    ck_assert_int_eq(unlink(copy), 0);
    expect_given_up(&grown, "faster than it can be copied");
    ck_assert_int_lt(LIMIT_COPY_LOG_BYTES + over, WAL_FORCED_BYTES);
}
END_TEST

static bool count_down(void *closure)
{
    int *left = closure;
    return (*left)-- > 0;
}

START_TEST(a_copy_that_is_stopped_at_any_piece_leaves_nothing)
{
    make_large();
    int pieces = -1;
    bool copied = false;
    autofree char *copy = copy_path();
    for (int after = 0; !copied && after < 1000; after++) {
        int left = after;
        const struct copy_watch watch = {count_down, &left};
        copied = copy_database(rig.path, copy, &watch, &rig.err);
        ck_assert(copied || strstr(rig.err.text, "stopped") != NULL);
        ck_assert(copied == (access(copy, F_OK) == 0));
        pieces = after;
    }
    ck_assert(copied);
    ck_assert_int_ge(pieces, 4);
    ck_assert_int_eq(number(copy, "SELECT count(*) FROM jobs"), 10);
}
END_TEST

START_TEST(damage_anywhere_in_a_database_is_found_by_copying_it)
{
    autofree char *copy = copy_path();
    autofree char *whole = NULL;
    size_t size;
    write_job(1);
    rig_close();
    rig_meddle("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"); /* a page that nothing uses may be as it likes */
    ck_assert(file_read(rig.path, 1 << 24, &whole, &size, &rig.err));
    for (size_t page = 4096; page < size; page += 4096) {
        autofree char *damaged = xalloc(size);
        memcpy(damaged, whole, size);
        memset(damaged + page, 0x5a, 512);
        ck_assert(file_replace(rig.path, damaged, size, 0600, &rig.err));
        ck_assert_msg(!copy_database(rig.path, copy, NULL, &rig.err), "page %zu", page / 4096 + 1);
        ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
        ck_assert_int_ne(access(copy, F_OK), 0);
    }
}
END_TEST

START_TEST(what_is_there_is_not_overwritten)
{
    autofree char *copy = copy_path();
    ck_assert(file_replace(copy, "mine", 4, 0600, &rig.err));
    ck_assert(!copy_database(rig.path, copy, NULL, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_CONFLICT);
    autofree char *still = NULL;
    ck_assert(file_read(copy, 16, &still, NULL, &rig.err));
    ck_assert_str_eq(still, "mine");
}
END_TEST

Suite *store_copy_suite(void)
{
    Suite *suite = suite_create("store-copy");
    TCase *cases = tcase_create("copy");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, copies_made_while_jobs_come_are_committed_states_with_all_that_was_acknowledged);
    tcase_add_test(cases, a_copy_is_one_file_for_its_owner_that_a_writer_can_open);
    tcase_add_test(cases, a_database_whose_controller_was_killed_is_copied_with_its_log);
    tcase_add_test(cases, a_copy_gives_up_before_the_log_grows_to_where_commits_would_wait);
    tcase_add_test(cases, a_copy_that_is_stopped_at_any_piece_leaves_nothing);
    tcase_add_test(cases, damage_anywhere_in_a_database_is_found_by_copying_it);
    tcase_add_test(cases, what_is_there_is_not_overwritten);
    suite_add_tcase(suite, cases);
    return suite;
}
