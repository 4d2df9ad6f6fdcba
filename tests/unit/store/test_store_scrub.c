/* SPDX-License-Identifier: Apache-2.0 */
/* A start reads little however much is stored, and still refuses a file that was cut; damage of any page is
 * found by the scrub, and from then on by each start. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/scrub.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

/* The file of the closed database. */
struct image {
    char *bytes; /* owned */
    size_t size;
};

static struct image image_take(void)
{
    struct image image;
    ck_assert(file_read(rig.path, 64 * MIB, &image.bytes, &image.size, &rig.err));
    return image;
}

static void image_put(const struct image *image, size_t size)
{
    autoclose int fd = open(rig.path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ck_assert_int_eq(write(fd, image->bytes, size), (ssize_t)size);
}

static void image_put_damaged(const struct image *image, size_t page)
{
    struct image damaged = {.bytes = xalloc(image->size), .size = image->size};
    memcpy(damaged.bytes, image->bytes, image->size);
    memset(damaged.bytes + page, 0x5a, 512);
    image_put(&damaged, damaged.size);
    free(damaged.bytes);
}

/* Asked before each piece: how many more there may be. */
static bool go_on(void *closure)
{
    int *left = closure;
    return (*left)-- > 0;
}

static bool scrub(int pieces)
{
    const struct copy_watch watch = {.go_on = go_on, .closure = &pieces};
    return scrub_run(rig.path, &watch, &rig.err);
}

static bool opens(void)
{
    rig.store = store_open(rig.path, &rig.err);
    bool ok = rig.store != NULL;
    rig_close();
    return ok;
}

static void fill(void)
{
    rig_write((struct change[]){job_insert(1), node_put("gpu-1"), reply_insert(1, "one")}, 3);
    rig_close();
}

/* The bytes that this process has read from files. */
static int64_t bytes_read(void)
{
    autofree char *text = NULL;
    int64_t bytes;
    ck_assert(file_read("/proc/self/io", 4096, &text, NULL, &rig.err));
    ck_assert_int_eq(sscanf(text, "rchar: %" SCNd64, &bytes), 1);
    return bytes;
}

static int64_t bytes_of_start(void)
{
    int64_t before = bytes_read();
    ck_assert_msg(opens(), "%s", rig.err.text);
    return bytes_read() - before;
}

START_TEST(a_start_reads_no_more_of_a_long_history_than_of_a_short_one)
{
    fill();
    bytes_of_start(); /* the first one after a first use renews a longer log */
    int64_t least = bytes_of_start();
    rig_meddle(
        "WITH RECURSIVE n (k) AS (SELECT 2 UNION ALL SELECT k + 1 FROM n WHERE k < 8000) INSERT INTO "
        "jobs (key, id, owner, project, gpus, created_ms, state, seq, attempt, user_failures, "
        "infra_failures, started_ms, ended_ms, exit_code, failed_rank, cause) SELECT k, "
        "printf('%016d', k), 'a', 'p', 1, 0, 'SUCCEEDED', 1, 1, 0, 0, 0, 0, 0, -1, 'NONE' FROM n;"
        "INSERT INTO specs (job_key, spec) SELECT key, printf('%.500c', 'x') FROM jobs WHERE key > 1;"
        "INSERT INTO events (job_key, seq, at_ms, kind, attempt) SELECT key, 1, 0, 'placed', 1 FROM "
        "jobs WHERE key > 1;"
        "INSERT INTO attempts (epoch, job_key, number, state, cause, pool, master_port, created_ms, "
        "started_ms, ended_ms, failed_rank, failed_code) SELECT key + 9, key, 1, 'ENDED', 'NONE', 'p', "
        "0, 0, 0, 0, -1, 0 FROM jobs WHERE key > 1;"
        "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state) "
        "SELECT epoch, 0, 'n', 0, 1, '0', 'FLUSHED' FROM attempts; PRAGMA wal_checkpoint(TRUNCATE)");
    struct image image = image_take();
    int64_t most = bytes_of_start();
    ck_assert_uint_gt(image.size, 6 * MIB);
    ck_assert_msg(most < least + 200 * KIB, "%" PRId64 " bytes, and %" PRId64 " of a short one", most, least);
    free(image.bytes);
}
END_TEST

START_TEST(a_damaged_page_is_seen_by_the_scrub_and_then_by_each_start)
{
    fill();
    rig_meddle("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"); /* a page that nothing uses may be as it likes */
    struct image whole = image_take();
    ck_assert(scrub(INT32_MAX));
    for (size_t page = PAGE_BYTES; page < whole.size; page += PAGE_BYTES) {
        image_put_damaged(&whole, page);
        ck_assert_msg(!scrub(INT32_MAX), "page %zu", page / PAGE_BYTES + 1);
        ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
        ck_assert_ptr_nonnull(strstr(rig.err.hint, "gpuctl admin restore"));
    }
    image_put(&whole, whole.size);
    rig_reopen();
    store_distrust(rig.store); /* as the controller does that has met damage */
    rig_close();
    rig_meddle("PRAGMA wal_checkpoint(TRUNCATE)");
    free(whole.bytes);
    whole = image_take();
    for (size_t page = PAGE_BYTES; page < whole.size; page += PAGE_BYTES) {
        image_put_damaged(&whole, page);
        ck_assert_msg(!opens(), "page %zu", page / PAGE_BYTES + 1);
        ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
    }
    free(whole.bytes);
}
END_TEST

START_TEST(a_start_after_damage_reads_all_and_the_one_after_that_does_not)
{
    fill();
    bytes_of_start();
    rig_meddle("CREATE TABLE large (bytes BLOB); INSERT INTO large VALUES (zeroblob(2097152))");
    int64_t little = bytes_of_start();
    rig_reopen();
    store_distrust(rig.store);
    rig_close();
    ck_assert_int_gt(bytes_of_start(), little + 2 * (int64_t)MIB);
    ck_assert_int_lt(bytes_of_start(), little + (int64_t)MIB);
}
END_TEST

START_TEST(a_database_that_lost_its_end_is_refused_at_the_start)
{
    fill();
    struct image whole = image_take();
    for (size_t size = PAGE_BYTES; size < whole.size; size += PAGE_BYTES) {
        image_put(&whole, size);
        ck_assert_msg(!opens(), "with %zu pages", size / PAGE_BYTES);
        ck_assert_int_eq(rig.err.code, ERR_DAMAGED);
        image_put(&whole, size + 100);
        ck_assert(!opens());
    }
    image_put(&whole, whole.size);
    ck_assert(opens());
    free(whole.bytes);
}
END_TEST

/* As a controller leaves it that was killed while its database grew. */
START_TEST(pages_that_only_the_log_has_are_not_missing)
{
    fill();
    struct image before = image_take();
    rig_reopen();
    rig_write((struct change[]){job_insert(2), job_insert(3), reply_insert(2, "two")}, 3);
    static char spec[200 * KIB];
    memset(spec, 'x', sizeof spec);
    struct change job = job_insert(4);
    job.job.birth.spec = spec;
    job.job.birth.spec_length = sizeof spec;
    rig_write_one(job);
    autofree char *log_path = xprintf("%s-wal", rig.path);
    struct image log;
    ck_assert(file_read(log_path, 64 * MIB, &log.bytes, &log.size, &rig.err));
    rig_close();
    image_put(&before, before.size);
    ck_assert(file_replace(log_path, log.bytes, log.size, 0600, &rig.err));
    int64_t read = bytes_of_start();
    ck_assert_int_lt(read, 3 * (int64_t)log.size); /* it went over the log, and not over all pages as well */
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 5);
    free(before.bytes);
    free(log.bytes);
}
END_TEST

START_TEST(a_damaged_page_that_holds_nothing_is_no_damage)
{
    fill();
    rig_meddle("CREATE TABLE gone (bytes BLOB); INSERT INTO gone VALUES (zeroblob(100000));"
               "CREATE TABLE stays (bytes BLOB); INSERT INTO stays VALUES (zeroblob(100000)); DROP TABLE "
               "gone; PRAGMA wal_checkpoint(TRUNCATE)");
    struct image whole = image_take();
    size_t passed = 0, refused = 0;
    for (size_t page = PAGE_BYTES; page < whole.size; page += PAGE_BYTES) {
        image_put_damaged(&whole, page);
        bool ok = scrub(INT32_MAX);
        passed += ok;
        refused += !ok;
    }
    ck_assert_uint_ge(passed, 20);
    ck_assert_uint_ge(refused, 20);
    free(whole.bytes);
}
END_TEST

START_TEST(a_scrub_that_is_stopped_finds_nothing)
{
    fill();
    struct image whole = image_take();
    image_put_damaged(&whole, PAGE_BYTES);
    ck_assert(scrub(0));
    ck_assert(scrub(1)); /* it is stopped while it makes sure */
    ck_assert(!scrub(INT32_MAX));
    free(whole.bytes);
}
END_TEST

Suite *store_scrub_suite(void)
{
    Suite *suite = suite_create("store-scrub");
    TCase *cases = tcase_create("scrub");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_start_reads_no_more_of_a_long_history_than_of_a_short_one);
    tcase_add_test(cases, a_damaged_page_is_seen_by_the_scrub_and_then_by_each_start);
    tcase_add_test(cases, a_start_after_damage_reads_all_and_the_one_after_that_does_not);
    tcase_add_test(cases, a_database_that_lost_its_end_is_refused_at_the_start);
    tcase_add_test(cases, pages_that_only_the_log_has_are_not_missing);
    tcase_add_test(cases, a_damaged_page_that_holds_nothing_is_no_damage);
    tcase_add_test(cases, a_scrub_that_is_stopped_finds_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
