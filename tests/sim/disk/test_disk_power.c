/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a disk in memory after the end of a process and after a loss of power. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/disk_rig.h"

START_TEST(a_process_that_ends_leaves_all_that_it_wrote)
{
    sqlite3 *old = open_log();
    must(old, insert);
    must(old, "BEGIN");
    must(old, insert);
    disk_restart(disk, false);
    sqlite3 *db = open_database();
    ck_assert_int_eq(rows(db), 1);
    ck_assert_int_ne(run(old, "COMMIT"), SQLITE_OK);
    sqlite3_close(old);
    must(db, insert);
    ck_assert_int_eq(rows(db), 2);
    sqlite3_close(db);
}
END_TEST

START_TEST(connections_of_the_past_touch_nothing)
{
    sqlite3 *old = open_log();
    must(old, insert);
    disk_restart(disk, false);
    sqlite3 *db = open_log();
    int64_t operations = disk_operations(disk);
    ck_assert_int_ne(run(old, insert), SQLITE_OK);
    ck_assert_int_ne(sqlite3_wal_checkpoint_v2(old, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
    must(db, "BEGIN IMMEDIATE"); /* no old lock is in its way */
    sqlite3_db_config(old, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    sqlite3_close(old);
    ck_assert_int_eq(disk_operations(disk), operations);
    must(db, insert);
    must(db, "COMMIT");
    ck_assert_int_eq(rows(db), 2);
    sqlite3_close(db);
}
END_TEST

/* Commits until the disk fails; returns the number of acknowledged commits. */
static int64_t insert_until_crash(sqlite3 *db, int64_t most)
{
    int64_t done = 0;
    while (done < most && run(db, insert) == SQLITE_OK) {
        done++;
        if (done % 10 == 0 && !disk_crashed(disk)) {
            sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        }
    }
    return done;
}

/* Commits until the crash. Afterwards all acknowledged rows must be there, and at most one more. */
static bool lives_on(int64_t crash, int64_t *ret_lost)
{
    sqlite3 *db = open_log();
    disk_crash_after(disk, crash);
    int64_t acknowledged = insert_until_crash(db, 30);
    bool crashed = disk_crashed(disk);
    disk_restart(disk, true);
    sqlite3_close(db);
    db = open_log();
    int64_t there = rows(db);
    *ret_lost = there < acknowledged ? acknowledged - there : 0;
    ck_assert_int_le(there, acknowledged + 1);
    sqlite3_close(db);
    return crashed;
}

START_TEST(whenever_power_is_lost_what_was_synced_is_there)
{
    int64_t crash = 1, lost;
    bool crashed = true;
    for (; crashed; crash++) {
        rig_renew((uint64_t)crash);
        crashed = lives_on(crash, &lost);
        ck_assert_int_eq(lost, 0);
    }
    ck_assert_int_gt(crash, 60);
}
END_TEST

START_TEST(a_disk_that_lies_about_syncs_loses_commits)
{
    int64_t lost, lost_in_all = 0;
    for (int64_t seed = 1; seed <= 20; seed++) {
        rig_renew((uint64_t)seed);
        sqlite3_close(open_log());
        disk_lie(disk, true);
        lives_on(40, &lost);
        lost_in_all += lost;
    }
    ck_assert_int_gt(lost_in_all, 0);
}
END_TEST

START_TEST(without_a_sync_power_takes_commits_or_leaves_them)
{
    int64_t least = 30, most = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        rig_renew(seed);
        sqlite3 *db = open_log();
        must(db, "PRAGMA synchronous = NORMAL");
        for (int i = 0; i < 30; i++) {
            must(db, insert);
        }
        disk_restart(disk, true);
        sqlite3_close(db);
        db = open_database();
        int64_t there = rows(db);
        least = there < least ? there : least;
        most = there > most ? there : most;
        sqlite3_close(db);
    }
    ck_assert_int_lt(least, 5);
    ck_assert_int_eq(most, 30);
}
END_TEST

/* Outcomes of a loss of power while eight sectors of 1 are overwritten by 2, as bits: old, new and torn
 * sectors, short files, and old sectors before new ones. */
enum { SEEN_OLD = 1, SEEN_NEW = 2, SEEN_TORN = 4, SEEN_SHORT = 8, SEEN_OUT_OF_ORDER = 16 };

static unsigned see(void)
{
    size_t size;
    uint8_t *bytes = disk_copy(disk, "/file", &size);
    ck_assert_ptr_nonnull(bytes);
    unsigned seen = size < 8192 ? SEEN_SHORT : 0;
    bool old_before = false;
    for (int i = 0; i < 8; i++) {
        const uint8_t *sector = bytes + 512 * i;
        bool torn = memcmp(sector, sector + 1, 511) != 0;
        seen |= torn ? SEEN_TORN : sector[0] == 1 ? SEEN_OLD : SEEN_NEW;
        seen |= !torn && sector[0] == 2 && old_before ? SEEN_OUT_OF_ORDER : 0;
        old_before = old_before || (!torn && sector[0] == 1);
    }
    free(bytes);
    return seen;
}

static unsigned lose(uint64_t seed)
{
    rig_renew(seed);
    sqlite3_file *file = open_file("/file");
    fill(file, 1, 4096, 0);
    ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
    fill(file, 2, 4096, 0);
    fill(file, 2, 4096, 4096);
    disk_restart(disk, true);
    close_file(file);
    return see();
}

START_TEST(sectors_that_were_not_synced_are_old_new_or_torn_in_any_order)
{
    unsigned seen = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        seen |= lose(seed);
    }
    ck_assert_uint_eq(seen, SEEN_OLD | SEEN_NEW | SEEN_TORN | SEEN_SHORT | SEEN_OUT_OF_ORDER);
}
END_TEST

START_TEST(the_same_seed_loses_the_same)
{
    unsigned differing = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        size_t size, again_size, other_size;
        lose(seed);
        uint8_t *bytes = disk_copy(disk, "/file", &size);
        lose(seed);
        uint8_t *again = disk_copy(disk, "/file", &again_size);
        lose(seed + 1000);
        uint8_t *other = disk_copy(disk, "/file", &other_size);
        ck_assert_uint_eq(size, again_size);
        ck_assert_mem_eq(bytes, again, size);
        differing += size != other_size || memcmp(bytes, other, size) != 0;
        free(bytes);
        free(again);
        free(other);
    }
    ck_assert_uint_gt(differing, 25);
}
END_TEST

START_TEST(a_file_that_was_deleted_without_a_sync_may_be_back)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("disk");
    unsigned seen = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        for (int sync_folder = 0; sync_folder <= 1; sync_folder++) {
            disk_seed(disk, seed);
            sqlite3_file *file = open_file("/file");
            fill(file, 1, 512, 0);
            ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
            close_file(file);
            ck_assert_int_eq(vfs->xDelete(vfs, "/file", sync_folder), SQLITE_OK);
            disk_restart(disk, true);
            size_t size;
            uint8_t *bytes = disk_copy(disk, "/file", &size);
            ck_assert(bytes == NULL || (sync_folder == 0 && size == 512 && bytes[0] == 1));
            seen |= bytes == NULL ? 1 : 2;
            free(bytes);
        }
    }
    ck_assert_uint_eq(seen, 3);
}
END_TEST

/* The rows that an image of the database shows. */
static int64_t rows_of_image(struct disk *other, uint64_t seed)
{
    disk_seed(other, seed);
    disk_image(disk, "/db", other, "/copy");
    sqlite3 *copy;
    ck_assert_int_eq(sqlite3_open_v2("/copy", &copy, SQLITE_OPEN_READWRITE, "other"), SQLITE_OK);
    int64_t there = rows(copy);
    must(copy, insert);
    sqlite3_close(copy);
    return there;
}

START_TEST(an_image_is_what_a_loss_of_power_would_leave)
{
    struct disk *other = disk_create("other", false, 7);
    sqlite3 *db = open_log();
    must(db, insert);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        ck_assert_int_eq(rows_of_image(other, seed), 1);
    }
    must(db, "PRAGMA synchronous = NORMAL");
    must(db, insert);
    int64_t least = 2, most = 1;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int64_t there = rows_of_image(other, seed);
        least = there < least ? there : least;
        most = there > most ? there : most;
    }
    ck_assert_int_eq(least, 1);
    ck_assert_int_eq(most, 2);
    ck_assert_int_eq(rows(db), 2);
    sqlite3_close(db);
    disk_destroy(other);
}
END_TEST

Suite *disk_power_suite(void)
{
    Suite *suite = suite_create("disk-power");
    TCase *cases = tcase_create("disk-power");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_process_that_ends_leaves_all_that_it_wrote);
    tcase_add_test(cases, connections_of_the_past_touch_nothing);
    tcase_add_test(cases, whenever_power_is_lost_what_was_synced_is_there);
    tcase_add_test(cases, a_disk_that_lies_about_syncs_loses_commits);
    tcase_add_test(cases, without_a_sync_power_takes_commits_or_leaves_them);
    tcase_add_test(cases, sectors_that_were_not_synced_are_old_new_or_torn_in_any_order);
    tcase_add_test(cases, the_same_seed_loses_the_same);
    tcase_add_test(cases, a_file_that_was_deleted_without_a_sync_may_be_back);
    tcase_add_test(cases, an_image_is_what_a_loss_of_power_would_leave);
    suite_add_tcase(suite, cases);
    return suite;
}
