/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the disk in memory: the functions that SQLite needs, and failures on demand. */
#include <stdlib.h>

#include "tests/sim/disk/disk_rig.h"

START_TEST(what_a_connection_commits_another_reads)
{
    sqlite3 *writer = open_log(), *reader = open_database();
    must(reader, "BEGIN");
    ck_assert_int_eq(rows(reader), 0);
    must(writer, insert);
    ck_assert_int_eq(rows(reader), 0); /* its snapshot is older */
    must(reader, "COMMIT");
    ck_assert_int_eq(rows(reader), 1);
    sqlite3_close(reader);
    sqlite3_close(writer);
}
END_TEST

START_TEST(two_writers_wait_for_each_other)
{
    sqlite3 *first = open_log(), *second = open_database();
    must(first, "BEGIN IMMEDIATE");
    ck_assert_int_eq(run(second, insert), SQLITE_BUSY);
    must(first, insert);
    must(first, "COMMIT");
    must(second, insert);
    ck_assert_int_eq(rows(first), 2);
    sqlite3_close(second);
    sqlite3_close(first);
}
END_TEST

START_TEST(a_reader_holds_a_checkpoint_back_and_lets_it_go_on)
{
    sqlite3 *writer = open_log(), *reader = open_database();
    must(writer, insert);
    must(reader, "BEGIN");
    ck_assert_int_eq(rows(reader), 1);
    must(writer, insert);
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL),
                     SQLITE_BUSY);
    must(reader, "COMMIT");
    ck_assert_int_eq(sqlite3_wal_checkpoint_v2(writer, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(rows(reader), 2);
    sqlite3_close(reader);
    sqlite3_close(writer);
}
END_TEST

START_TEST(the_same_holds_with_a_rollback_journal)
{
    sqlite3 *writer = open_database(), *reader = open_database();
    must(writer, "CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB)");
    must(reader, "BEGIN");
    ck_assert_int_eq(rows(reader), 0);
    ck_assert_int_eq(run(writer, insert), SQLITE_BUSY);
    must(reader, "COMMIT");
    must(writer, insert);
    ck_assert_int_eq(rows(reader), 1);
    sqlite3_close(reader);
    sqlite3_close(writer);
}
END_TEST

START_TEST(large_sorts_use_temporary_files_that_go)
{
    sqlite3 *db = open_log();
    must(db, "PRAGMA cache_size = 10; PRAGMA temp_store = FILE");
    must(db,
         "INSERT INTO t (b) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000)"
         " SELECT randomblob(2000) FROM c");
    int64_t before = disk_used(disk);
    int64_t operations = disk_operations(disk);
    ck_assert_int_eq(number(db, "SELECT count(*) FROM (SELECT b FROM t ORDER BY b LIMIT -1 OFFSET 1)"), 2999);
    ck_assert_int_gt(disk_operations(disk), operations); /* it did spill */
    ck_assert_int_eq(disk_used(disk), before);
    sqlite3_close(db);
}
END_TEST

/* --- failures ------------------------------------------------------------------------------------------- */

START_TEST(the_operation_that_is_named_fails_once_or_from_then_on)
{
    for (int lasting = 0; lasting <= 1; lasting++) {
        sqlite3_file *file = open_file("/file");
        disk_fail_after(disk, 2, SQLITE_FULL, lasting);
        fill(file, 1, 512, 0);
        fill(file, 1, 512, 0);
        ck_assert_int_eq(file->pMethods->xWrite(file, "x", 1, 0), SQLITE_FULL);
        int next = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
        ck_assert_int_eq(next, lasting ? SQLITE_IOERR_FSYNC : SQLITE_OK);
        disk_heal(disk);
        fill(file, 1, 512, 0);
        close_file(file);
        ck_assert_int_eq(disk_failures(disk), lasting ? 3 : 1);
    }
}
END_TEST

START_TEST(a_read_fails_when_it_is_told_to)
{
    sqlite3 *db = open_log();
    must(db, insert);
    sqlite3_close(db);
    db = open_database();
    disk_fail_read_after(disk, 0, SQLITE_IOERR);
    ck_assert_int_eq(number(db, "SELECT count(*) FROM t"), -1);
    ck_assert_int_eq(sqlite3_errcode(db), SQLITE_IOERR);
    ck_assert_int_eq(rows(db), 1);
    sqlite3_close(db);
}
END_TEST

/* After a failed sync the next one succeeds, without the changes that the first has dropped. */
START_TEST(what_a_failed_sync_dropped_is_seen_until_power_is_lost)
{
    unsigned seen = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        disk_seed(disk, seed);
        sqlite3_file *file = open_file("/file");
        fill(file, 1, 512, 0);
        ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        fill(file, 2, 512, 0);
        disk_fail_after(disk, 0, SQLITE_IOERR, false);
        ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_IOERR_FSYNC);
        ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        uint8_t byte;
        ck_assert_int_eq(file->pMethods->xRead(file, &byte, 1, 0), SQLITE_OK);
        ck_assert_uint_eq(byte, 2);
        disk_restart(disk, true);
        close_file(file);
        size_t size;
        uint8_t *bytes = disk_copy(disk, "/file", &size);
        seen |= bytes[0];
        free(bytes);
    }
    ck_assert_uint_eq(seen, 3);
}
END_TEST

START_TEST(a_full_disk_takes_no_more_until_there_is_room)
{
    sqlite3 *db = open_log();
    disk_limit(disk, disk_used(disk) + 20000);
    int64_t done = 0;
    while (run(db, insert) == SQLITE_OK) {
        done++;
    }
    ck_assert_int_eq(sqlite3_errcode(db), SQLITE_FULL);
    ck_assert_int_gt(done, 0);
    ck_assert_int_eq(rows(db), done);
    disk_limit(disk, 0);
    must(db, insert);
    ck_assert_int_eq(rows(db), done + 1);
    sqlite3_close(db);
}
END_TEST

START_TEST(files_can_be_put_and_copied)
{
    sqlite3 *db = open_database();
    must(db, "CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB)");
    must(db, insert);
    sqlite3_close(db);
    size_t size, none;
    uint8_t *bytes = disk_copy(disk, "/db", &size);
    ck_assert_ptr_null(disk_copy(disk, "/none", &none));
    disk_put(disk, "/elsewhere", bytes, size);
    disk_put(disk, "/db", (const uint8_t *)"short", 5);
    disk_restart(disk, true);
    ck_assert_int_eq(sqlite3_open_v2("/elsewhere", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(rows(db), 1);
    sqlite3_close(db);
    free(bytes);
    bytes = disk_copy(disk, "/db", &size);
    ck_assert_uint_eq(size, 5);
    free(bytes);
}
END_TEST

static Suite *disk_suite(void)
{
    Suite *suite = suite_create("disk");
    TCase *cases = tcase_create("disk");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_a_connection_commits_another_reads);
    tcase_add_test(cases, two_writers_wait_for_each_other);
    tcase_add_test(cases, a_reader_holds_a_checkpoint_back_and_lets_it_go_on);
    tcase_add_test(cases, the_same_holds_with_a_rollback_journal);
    tcase_add_test(cases, large_sorts_use_temporary_files_that_go);
    tcase_add_test(cases, the_operation_that_is_named_fails_once_or_from_then_on);
    tcase_add_test(cases, a_read_fails_when_it_is_told_to);
    tcase_add_test(cases, what_a_failed_sync_dropped_is_seen_until_power_is_lost);
    tcase_add_test(cases, a_full_disk_takes_no_more_until_there_is_room);
    tcase_add_test(cases, files_can_be_put_and_copied);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(disk_suite());
    srunner_add_suite(runner, disk_power_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
