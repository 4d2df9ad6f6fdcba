/* SPDX-License-Identifier: Apache-2.0 */
/* What reaches the disk and when: syncs, the size of the log, and disks that fail. fdatasync is this file's
 * own: it counts, and fails when it is told to. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/handle.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static int syncs;          /* calls so far */
static int failing_sync;   /* the call with this number fails; 0: none */
static bool folder_failed; /* that was one for a folder, of which SQLite says nothing */

static bool is_folder(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

int fdatasync(int fd)
{
    if (++syncs == failing_sync) {
        folder_failed = is_folder(fd);
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static int64_t size_of(const char *suffix)
{
    struct stat status;
    autofree char *path = xprintf("%s%s", rig.path, suffix);
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_size;
}

START_TEST(a_commit_of_one_job_syncs_once)
{
    for (int64_t key = 1; key <= 100; key++) {
        int before = syncs;
        rig_write_one(job_insert(key));
        ck_assert_int_eq(syncs - before, 1);
    }
}
END_TEST

#define FRAME_BYTES (24 + PAGE_BYTES)

/* Pages go into the log with the heads of their frames, and with each other. */
static int writes, frames;

static ssize_t count_write(int fd, const void *bytes, size_t size, off_t offset)
{
    writes++;
    frames += (int)(size / FRAME_BYTES);
    return pwrite(fd, bytes, size, offset);
}

static void write_counted(struct change change)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    sqlite3_syscall_ptr before = vfs->xGetSystemCall(vfs, "pwrite64");
    ck_assert(before != NULL);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)count_write);
    writes = frames = 0;
    rig_write_one(change);
    vfs->xSetSystemCall(vfs, "pwrite64", before);
}

START_TEST(the_frames_of_a_commit_are_one_write)
{
    for (int64_t key = 1; key <= 10; key++) {
        write_counted(job_insert(key));
        ck_assert_int_gt(frames, 1);
        ck_assert_int_le(writes, 2); /* one more begins the log anew */
    }
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 11);
}
END_TEST

START_TEST(a_commit_in_quiet_times_does_not_make_the_log_grow)
{
    ck_assert_int_eq(size_of("-wal"), WAL_GROWN_BYTES);
    for (int64_t key = 1; key <= 500; key++) {
        rig_write_one(job_insert(key));
        ck_assert(store_checkpoint(rig.store, true, &rig.err));
    }
    ck_assert_int_eq(size_of("-wal"), WAL_GROWN_BYTES);
    rig_reopen();
    ck_assert_int_eq(size_of("-wal"), WAL_GROWN_BYTES);
}
END_TEST

/* A transaction of this many bytes. */
static struct change blob_of(uint8_t number, int64_t size)
{
    static const char zeros[4 * MIB];
    return (struct change){.kind = CHANGE_BLOB_PUT,
                           .blob = {.hash = {number}, .size = size, .bytes = zeros, .created_ms = 1}};
}

static void write_bytes(uint8_t number, int64_t size)
{
    rig_write_one(blob_of(number, size));
}

START_TEST(a_large_commit_is_written_in_pieces)
{
    write_counted(blob_of(1, MIB));
    ck_assert_int_gt(frames, 200);
    ck_assert_int_le(writes, frames / 8);
    write_counted(blob_of(2, 16 * PAGE_BYTES)); /* where the pieces end elsewhere */
    ck_assert_int_gt(frames, 16);
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 1);
}
END_TEST

START_TEST(a_busy_log_stays_near_the_passive_bound)
{
    for (uint8_t i = 1; i <= 60; i++) {
        write_bytes(i, 2 * MIB);
        ck_assert(store_checkpoint(rig.store, false, &rig.err));
        ck_assert_int_le(size_of("-wal"), WAL_PASSIVE_BYTES + 3 * MIB);
    }
    ck_assert_int_ge(size_of(""), 120 * MIB - WAL_PASSIVE_BYTES - 3 * MIB);
}
END_TEST

/* A reader that stays in its snapshot until some time after it was told to leave. */
struct lingerer {
    sem_t inside, leave;
};

static bool linger(const struct job_record *job, void *closure)
{
    struct lingerer *lingerer = closure;
    sem_post(&lingerer->inside);
    sem_wait(&lingerer->leave);
    struct pollfd nobody = {.fd = -1};
    poll(&nobody, 1, WAL_FORCED_WAIT_MS / 5);
    return true;
}

static void *read_and_linger(void *closure)
{
    struct job_filter one = {.limit = 1};
    struct err err;
    return each_job(reader_jobs(rig.reader, &one, &err), linger, closure) ? closure : NULL;
}

START_TEST(a_log_that_a_reader_let_grow_is_moved_by_force_and_cut_back)
{
    struct lingerer lingerer;
    pthread_t thread;
    void *result;
    sem_init(&lingerer.inside, 0, 0);
    sem_init(&lingerer.leave, 0, 0);
    rig_write_one(job_insert(1));
    ck_assert_int_eq(pthread_create(&thread, NULL, read_and_linger, &lingerer), 0);
    sem_wait(&lingerer.inside);
    for (uint8_t i = 1; i <= 65; i++) {
        write_bytes(i, 4 * MIB);
    }
    ck_assert_int_ge(size_of("-wal"), WAL_FORCED_BYTES);
    /* the reader is in the way all the time that is granted */
    ck_assert_msg(store_checkpoint(rig.store, false, &rig.err), "%s", rig.err.text);
    ck_assert_int_gt(rig.store->wal.pages, 0);
    sem_post(&lingerer.leave);
    while (rig.store->wal.pages > 0) { /* once, where the reader is given its turn in time */
        ck_assert_msg(store_checkpoint(rig.store, false, &rig.err), "%s", rig.err.text);
    }
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_nonnull(result);
    rig_write_one(job_insert(2));
    ck_assert_int_le(size_of("-wal"), 2 * WAL_PASSIVE_BYTES);
}
END_TEST

START_TEST(a_commit_that_cannot_be_synced_has_an_unknown_outcome)
{
    struct change job = job_insert(1);
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(store_apply(rig.store, &job, 1, &rig.err));
    failing_sync = syncs + 1;
    ck_assert(!store_commit(rig.store, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_UNKNOWN_OUTCOME);
    rig_reopen(); /* there or not: both are right */
    rig_write_one(job_insert(2));
}
END_TEST

START_TEST(a_full_disk_is_named)
{
    char limit[64];
    snprintf(limit, sizeof limit, "PRAGMA max_page_count = %d", 100);
    ck_assert_int_eq(sqlite3_exec(rig.store->connection.db, limit, NULL, NULL, NULL), SQLITE_OK);
    struct change job = job_insert(1);
    char spec[512 * KIB];
    memset(spec, ' ', sizeof spec);
    job.job.birth.spec = spec;
    job.job.birth.spec_length = sizeof spec;
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(!store_apply(rig.store, &job, 1, &rig.err) || !store_commit(rig.store, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_DISK_FULL);
}
END_TEST

/* Opens, commits jobs 1 to 5, and moves the log, until something fails: the sync with this number. Returns
 * the last key that was acknowledged. */
static int64_t live_a_life(int failing)
{
    int64_t acknowledged = 0;
    syncs = 0;
    failing_sync = failing;
    rig.store = store_open(rig.path, &rig.err);
    for (int64_t key = 1; rig.store != NULL && key <= 5; key++) {
        struct change job = job_insert(key);
        if (!store_begin(rig.store, &rig.err) || !store_apply(rig.store, &job, 1, &rig.err) ||
            !store_commit(rig.store, &rig.err)) {
            return acknowledged;
        }
        acknowledged = key;
    }
    if (rig.store != NULL) {
        rig.store->wal.moved = -(int)(WAL_IDLE_BYTES / 4096); /* as if the log were long */
        store_checkpoint(rig.store, true, &rig.err);
    }
    return acknowledged;
}

START_TEST(whichever_sync_fails_nothing_acknowledged_is_lost)
{
    int failing = 0;
    int happened;
    do {
        failing++;
        rig_end();
        rig_begin();
        rig_close();
        int64_t acknowledged = live_a_life(failing);
        failing_sync = 0;
        happened = syncs;
        rig_reopen();
        ck_assert_int_ge(store_next_job_key(rig.store), acknowledged + 1);
    } while (happened >= failing);
    ck_assert_int_ge(failing, 9); /* opening, five commits, two of the checkpoint */
}
END_TEST

/* Returns whether the first opening of a database got as far as the sync that fails. */
static bool fails_at_first(int failing)
{
    autofree char *path = xprintf("%s/fresh%d", rig.folder, failing);
    syncs = 0;
    failing_sync = failing;
    folder_failed = false;
    struct store *store = store_open(path, &rig.err);
    bool failed = syncs >= failing;
    failing_sync = 0;
    ck_assert_msg((store == NULL) == (failed && !folder_failed), "sync %d of %d", failing, syncs);
    store_close(store);
    store = store_open(path, &rig.err);
    ck_assert_msg(store != NULL, "%s", rig.err.text);
    store_close(store);
    return failed;
}

START_TEST(a_first_opening_whose_sync_fails_is_refused_and_the_next_succeeds)
{
    int failing = 1;
    while (fails_at_first(failing)) {
        failing++;
    }
    ck_assert_int_ge(failing, 7); /* the mode, the schema's versions, the incarnation, the log's room */
}
END_TEST

Suite *store_sync_suite(void)
{
    Suite *suite = suite_create("store-sync");
    TCase *cases = tcase_create("sync");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_commit_of_one_job_syncs_once);
    tcase_add_test(cases, the_frames_of_a_commit_are_one_write);
    tcase_add_test(cases, a_large_commit_is_written_in_pieces);
    tcase_add_test(cases, a_commit_in_quiet_times_does_not_make_the_log_grow);
    tcase_add_test(cases, a_busy_log_stays_near_the_passive_bound);
    tcase_add_test(cases, a_log_that_a_reader_let_grow_is_moved_by_force_and_cut_back);
    tcase_add_test(cases, a_commit_that_cannot_be_synced_has_an_unknown_outcome);
    tcase_add_test(cases, a_full_disk_is_named);
    tcase_add_test(cases, whichever_sync_fails_nothing_acknowledged_is_lost);
    tcase_add_test(cases, a_first_opening_whose_sync_fails_is_refused_and_the_next_succeeds);
    suite_add_tcase(suite, cases);
    return suite;
}
