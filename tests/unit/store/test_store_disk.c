/* SPDX-License-Identifier: Apache-2.0 */
/* Full disks and damaged ones: the reserve file, the sums of pages, the look at the log. SQLite's pwrite is
 * this file's own: it finds the disk full when it is told to. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/database/reserve_file.h"
#include "daemon/store/database/pages.h"
#include "daemon/store/database/connection.h"
#include "daemon/store/database/wal_check.h"
#include "daemon/store/handle.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct reserve_file *reserve_file; /* the disk is full as long as it is whole */
static bool full;                         /* it is full, whatever the reserve file is */

static ssize_t write_or_not(int fd, const void *bytes, size_t length, off_t offset)
{
    if (full || (reserve_file != NULL && reserve_file_is_whole(reserve_file))) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, bytes, length, offset);
}

static void set_pwrite(ssize_t (*call)(int, const void *, size_t, off_t))
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)call), SQLITE_OK);
    ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)call), SQLITE_OK);
}

static void disk_begin(void)
{
    full = false;
    reserve_file = NULL;
    rig_begin();
}

static void disk_end(void)
{
    set_pwrite(NULL);
    rig_end();
    reserve_file_close(reserve_file);
    reserve_file = NULL;
}

static void reopen_with_reserve_file(void)
{
    rig_close();
    reserve_file = reserve_file_open(rig.path);
    rig.store = store_open_with(rig.path, reserve_file, &rig.err);
    ck_assert_msg(rig.store != NULL, "%s", rig.err.text);
    ck_assert(reserve_file_make(reserve_file, 0));
}

static bool reserve_file_file_exists(void)
{
    autofree char *path = xprintf("%s.reserve", rig.path);
    return access(path, F_OK) == 0;
}

static bool job_is_there(int64_t key)
{
    bool found;
    autotext struct text text = {0};
    ck_assert(one_job(reader_job_by_key(rig.reader, key, &rig.err), visit_one_job, &text, &found));
    return found;
}

/* --- the reserve file ----------------------------------------------------------------------------------- */

START_TEST(a_reserve_file_takes_its_space_gives_it_back_once_and_goes_with_its_owner)
{
    struct stat status;
    autofree char *path = xprintf("%s.reserve", rig.path);
    struct reserve_file *one = reserve_file_open(rig.path);
    ck_assert(!reserve_file_make(one, INT64_MAX / 2)); /* no disk has that much left */
    ck_assert(!reserve_file_is_whole(one) && !reserve_file_is_released(one));
    ck_assert(reserve_file_make(one, 0));
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_ge((int64_t)status.st_blocks * 512, reserve_file_bytes(one));
    ck_assert(reserve_file_release(one));
    ck_assert(reserve_file_is_released(one) && !reserve_file_release(one));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(reserve_file_make(one, 0) && reserve_file_is_whole(one));
    reserve_file_close(one);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_commit_that_finds_the_disk_full_has_the_space_of_the_reserve_file)
{
    reopen_with_reserve_file();
    set_pwrite(write_or_not);
    rig_write_one(job_insert(1));
    ck_assert(reserve_file_is_released(reserve_file));
    ck_assert(!reserve_file_file_exists());
    rig.reader = reader_open(rig.path, &rig.err);
    ck_assert(job_is_there(1));
}
END_TEST

START_TEST(a_commit_that_finds_the_disk_full_for_good_says_so)
{
    reopen_with_reserve_file();
    struct change job = job_insert(1);
    full = true;
    set_pwrite(write_or_not);
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(store_apply(rig.store, &job, 1, &rig.err));
    ck_assert(!store_commit(rig.store, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_DISK_FULL);
    full = false;
    rig_reopen();
    ck_assert(!job_is_there(1));
}
END_TEST

START_TEST(a_checkpoint_without_room_is_put_off)
{
    rig_write_one(job_insert(1));
    rig.store->wal.moved = -(int)(WAL_IDLE_BYTES / 4096); /* as if the log were long */
    full = true;
    set_pwrite(write_or_not);
    ck_assert_msg(store_checkpoint(rig.store, true, &rig.err), "%s", rig.err.text);
    full = false;
    rig_write_one(job_insert(2));
    ck_assert_msg(store_checkpoint(rig.store, true, &rig.err), "%s", rig.err.text);
    rig_reopen();
    ck_assert(job_is_there(1) && job_is_there(2));
}
END_TEST

/* --- sums ----------------------------------------------------------------------------------------------- */

START_TEST(a_sum_knows_each_bit_of_a_page_and_its_number)
{
    uint8_t page[PAGE_BYTES];
    for (size_t i = 0; i < sizeof page; i++) {
        page[i] = (uint8_t)(i * 7);
    }
    uint64_t sum = page_sum(page, 1);
    ck_assert_uint_ne(sum, page_sum(page, 2));
    for (size_t bit = 0; bit < 8 * (PAGE_BYTES - PAGE_SUM_BYTES); bit++) {
        page[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_uint_ne(sum, page_sum(page, 1));
        page[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    ck_assert_uint_eq(sum, page_sum(page, 1));
}
END_TEST

/* All but the first pages: that of the header has been read. */
static void scribble(void)
{
    autoclose int fd = open(rig.path, O_WRONLY | O_CLOEXEC);
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    for (off_t at = PAGE_BYTES; at < status.st_size; at += PAGE_BYTES) {
        ck_assert_int_eq(pwrite(fd, "x", 1, at + 2500), 1);
    }
}

START_TEST(damage_that_comes_while_it_is_open_is_seen_when_it_is_read)
{
    bool found;
    autotext struct text text = {0};
    rig_write_one(job_insert(1));
    rig_reopen(); /* all of it is in the database, nothing in a cache */
    scribble();
    ck_assert(!one_job(reader_job_by_key(rig.reader, 1, &rig.err), visit_one_job, &text, &found));
    ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
    ck_assert_ptr_nonnull(strstr(rig.err.hint, "gpuctl admin restore"));
}
END_TEST

/* --- the log -------------------------------------------------------------------------------------------- */

/* As a power failure leaves it, which takes the index, too: a copy of database and log in the place of rig's.
 */
static void cut_power(void)
{
    char *database = NULL, *log = NULL;
    size_t database_size, log_size;
    autofree char *log_path = xprintf("%s-wal", rig.path);
    autofree char *index_path = xprintf("%s-shm", rig.path);
    ck_assert(file_read(rig.path, 64 * MIB, &database, &database_size, &rig.err));
    ck_assert(file_read(log_path, 64 * MIB, &log, &log_size, &rig.err));
    rig_close();
    ck_assert(file_replace(rig.path, database, database_size, 0600, &rig.err));
    ck_assert(file_replace(log_path, log, log_size, 0600, &rig.err));
    ck_assert(unlink(index_path) == 0 || errno == ENOENT);
    free(database);
    free(log);
}

static void flip_frame(int64_t frame)
{
    autofree char *path = xprintf("%s-wal", rig.path);
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;
    off_t at = 32 + frame * (24 + PAGE_BYTES) + 1000;
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
}

START_TEST(a_log_with_transactions_behind_a_damaged_one_is_refused)
{
    for (int64_t key = 1; key <= 5; key++) {
        rig_write_one(job_insert(key));
    }
    cut_power();
    flip_frame(1);
    ck_assert_ptr_null(store_open(rig.path, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
    ck_assert_ptr_nonnull(strstr(rig.err.text, "-wal is damaged"));
}
END_TEST

static void read_header(uint8_t header[32])
{
    autofree char *path = xprintf("%s-wal", rig.path);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, header, 32, 0), 32);
}

/* Its count of checkpoints, as when the header of the next log was torn. */
static void turn_header(void)
{
    uint8_t header[32];
    read_header(header);
    header[15] ^= 1;
    autofree char *path = xprintf("%s-wal", rig.path);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
}

START_TEST(a_log_without_its_header_is_refused_unless_the_database_has_all_of_it)
{
    int64_t torn_at;
    uint8_t header[32], nothing[sizeof header] = {0};
    rig_write_one(job_insert(1));
    cut_power();
    turn_header();
    ck_assert(!wal_check(rig.path, &torn_at, &rig.err));
    ck_assert_ptr_nonnull(strstr(rig.err.text, "its header is not whole"));
    turn_header();
    rig_reopen();
    rig_write_one(job_insert(2));
    rig.store->wal.moved = -(int)(WAL_IDLE_BYTES / 4096); /* as if the log were long */
    ck_assert(store_checkpoint(rig.store, true, &rig.err));
    cut_power();
    turn_header();
    ck_assert_msg(wal_check(rig.path, &torn_at, &rig.err), "%s", rig.err.text);
    read_header(header);
    ck_assert_mem_eq(header, nothing, sizeof header);
    rig_reopen();
    ck_assert(job_is_there(1) && job_is_there(2));
}
END_TEST

START_TEST(a_log_that_was_ended_in_order_may_have_any_frames)
{
    int64_t torn_at;
    rig_write_one(job_insert(1));
    rig_close();
    for (int64_t frame = 0; frame < 4; frame++) {
        flip_frame(frame);
    }
    ck_assert(wal_check(rig.path, &torn_at, &rig.err));
    rig_reopen();
    ck_assert(job_is_there(1));
}
END_TEST

START_TEST(a_log_that_ends_in_a_torn_transaction_goes_on_without_it)
{
    static const char bytes[64 * KIB];
    struct change both[] = {job_insert(2),
                            {.kind = CHANGE_BLOB_PUT, .blob = {.size = sizeof bytes, .bytes = bytes}}};
    rig_write_one(job_insert(1));
    int whole = rig.store->wal.pages;
    rig_write(both, 2); /* longer than what comes later in its place */
    ck_assert_int_gt(rig.store->wal.pages, whole + 16);
    cut_power();
    flip_frame(whole); /* the first of the last transaction: never acknowledged, as far as anybody can tell */
    rig_reopen();
    ck_assert(job_is_there(1) && !job_is_there(2));
    int64_t torn_at;
    rig_write_one(job_insert(3));
    cut_power(); /* what was torn is not behind the new end of the log: they were taken out of it */
    ck_assert(wal_check(rig.path, &torn_at, &rig.err));
    ck_assert_int_eq(torn_at, -1);
    rig_reopen();
}
END_TEST

/* As wal_cut leaves it, and as a frame is that never got to the disk. */
static void wipe_frame(int64_t frame)
{
    static const uint8_t nothing[24];
    autofree char *path = xprintf("%s-wal", rig.path);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, nothing, sizeof nothing, 32 + frame * (24 + PAGE_BYTES)), sizeof nothing);
}

/* A hundred bytes behind its beginning. */
static void cut_log(int64_t frame)
{
    autofree char *path = xprintf("%s-wal", rig.path);
    ck_assert_int_eq(truncate(path, 32 + frame * (24 + PAGE_BYTES) + 100), 0);
}

static bool is_wiped(int64_t frame)
{
    static const uint8_t nothing[24];
    uint8_t header[sizeof nothing];
    autofree char *path = xprintf("%s-wal", rig.path);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, header, sizeof header, 32 + frame * (24 + PAGE_BYTES)), sizeof header);
    return memcmp(header, nothing, sizeof header) == 0;
}

START_TEST(frames_of_a_transaction_that_never_ended_are_taken_out_of_the_log)
{
    static const char bytes[64 * KIB];
    int64_t torn_at;
    rig_write_one(job_insert(1));
    int whole = rig.store->wal.pages;
    rig_write_one((struct change){.kind = CHANGE_BLOB_PUT, .blob = {.size = sizeof bytes, .bytes = bytes}});
    int end = rig.store->wal.pages;
    cut_power();
    cut_log(end - 1); /* within its last: the commit */
    ck_assert_msg(wal_check(rig.path, &torn_at, &rig.err), "%s", rig.err.text);
    ck_assert_int_eq(torn_at, whole);
    rig_close();
    struct connection writer;
    ck_assert(connection_open(&writer, rig.path, CONNECTION_WRITER, NULL, &rig.err));
    ck_assert(is_wiped(whole) && is_wiped(end - 1));
    connection_close(&writer);
    rig_reopen();
    ck_assert(job_is_there(1));
}
END_TEST

START_TEST(a_log_without_its_header_behind_frames_that_were_taken_out_is_one_that_was_moved_or_refused)
{
    int64_t torn_at;
    for (int64_t key = 1; key <= 3; key++) {
        rig_write_one(job_insert(key));
    }
    cut_power();
    wipe_frame(0);
    turn_header();
    ck_assert(!wal_check(rig.path, &torn_at, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
    disk_end();
    disk_begin();
    for (int64_t key = 1; key <= 3; key++) {
        rig_write_one(job_insert(key));
    }
    rig.store->wal.moved = -(int)(WAL_IDLE_BYTES / 4096); /* as if the log were long */
    ck_assert(store_checkpoint(rig.store, true, &rig.err));
    cut_power();
    wipe_frame(0);
    turn_header();
    ck_assert_msg(wal_check(rig.path, &torn_at, &rig.err), "%s", rig.err.text);
    rig_reopen();
    ck_assert(job_is_there(1) && job_is_there(2) && job_is_there(3));
}
END_TEST

START_TEST(a_killed_controllers_log_that_lost_its_last_transaction_is_refused)
{
    rig_write_one(job_insert(1));
    int whole = rig.store->wal.pages;
    rig_write_one(job_insert(2));
    flip_frame(whole); /* its index still counts it */
    int64_t torn_at;
    ck_assert(!wal_check(rig.path, &torn_at, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
}
END_TEST

Suite *store_disk_suite(void)
{
    Suite *suite = suite_create("store-disk");
    TCase *cases = tcase_create("disk");
    tcase_add_checked_fixture(cases, disk_begin, disk_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_reserve_file_takes_its_space_gives_it_back_once_and_goes_with_its_owner);
    tcase_add_test(cases, a_commit_that_finds_the_disk_full_has_the_space_of_the_reserve_file);
    tcase_add_test(cases, a_commit_that_finds_the_disk_full_for_good_says_so);
    tcase_add_test(cases, a_checkpoint_without_room_is_put_off);
    tcase_add_test(cases, a_sum_knows_each_bit_of_a_page_and_its_number);
    tcase_add_test(cases, damage_that_comes_while_it_is_open_is_seen_when_it_is_read);
    tcase_add_test(cases, a_log_with_transactions_behind_a_damaged_one_is_refused);
    tcase_add_test(cases, a_log_without_its_header_is_refused_unless_the_database_has_all_of_it);
    tcase_add_test(cases, a_log_that_was_ended_in_order_may_have_any_frames);
    tcase_add_test(cases, a_log_that_ends_in_a_torn_transaction_goes_on_without_it);
    tcase_add_test(cases, frames_of_a_transaction_that_never_ended_are_taken_out_of_the_log);
    tcase_add_test(
        cases, a_log_without_its_header_behind_frames_that_were_taken_out_is_one_that_was_moved_or_refused);
    tcase_add_test(cases, a_killed_controllers_log_that_lost_its_last_transaction_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
