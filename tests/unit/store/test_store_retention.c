/* SPDX-License-Identifier: Apache-2.0 */
/* Removal: all rows of a job go in pieces, no row of another; blobs that are used stay; first answers are
 * given again for their promised time. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/retention/old_jobs.h"
#include "daemon/store/reader/reader.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

#define DAY_MS (24LL * 3600 * 1000)

static int64_t count(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(rig.reader->connection.db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static int64_t rows_of_jobs(void)
{
    return count(
        "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM specs) + "
        "(SELECT count(*) FROM arrays) + (SELECT count(*) FROM events) + "
        "(SELECT count(*) FROM attempts) + (SELECT count(*) FROM members) + "
        "(SELECT count(*) FROM node_jobs) + (SELECT count(*) FROM ranks) + (SELECT count(*) FROM results) + "
        "(SELECT count(*) FROM uses) + (SELECT count(*) FROM dependencies) + "
        "(SELECT count(*) FROM removals)");
}

static struct change event(int64_t job_key, int64_t seq)
{
    return (struct change){.kind = CHANGE_EVENT_INSERT,
                           .event = {.job_key = job_key, .seq = seq, .kind = EVENT_SUBMITTED}};
}

static struct change rank(uint64_t attempt_id, int64_t number)
{
    return (struct change){.kind = CHANGE_RANK_PUT, .rank = {.attempt_id = attempt_id, .rank = number}};
}

static struct change result(uint64_t attempt_id, int64_t number, const uint8_t hash[32])
{
    return (struct change){
        .kind = CHANGE_RESULT_PUT,
        .result = {.attempt_id = attempt_id, .rank = number, .kind = RESULT_VALUE, .size = 3, .hash = hash}};
}

static struct change use(int64_t job_key, const char *hash)
{
    return (struct change){.kind = CHANGE_USE_PUT, .use = {.job_key = job_key, .hash = hash}};
}

/* A job with rows of every kind: of the last, this many. */
static void put_job(int64_t key, int64_t ranks)
{
    uint64_t attempt_id = 1000 + (uint64_t)key;
    static const uint8_t hash[32] = {7};
    rig_write((struct change[]){job_insert(key), event(key, 1), event(key, 2),
                                attempt_insert(attempt_id, key, 1), member_insert(attempt_id, 0, "n", "0"),
                                use(key, "aa"), use(key, "aa"), use(key, "bb")},
              8);
    for (int64_t i = 0; i < ranks; i++) {
        rig_write((struct change[]){rank(attempt_id, i), result(attempt_id, i, hash)}, 2);
    }
}

static void remove_job(int64_t key)
{
    rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = key});
}

/* Pieces of one job until nothing is left; how many it took. */
static int finish(int64_t key)
{
    int pieces = 0;
    struct removal_row removal;
    for (bool left = true; left; pieces++) {
        rig_write_one((struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = key});
        autorows struct rows rows = reader_removals(rig.reader, 10, &rig.err);
        for (left = false; rows_removal(&rows, &removal);) {
            left = left || removal.job_key == key;
        }
        ck_assert(!rows.failed && pieces < 100);
    }
    return pieces;
}

START_TEST(a_removed_job_is_not_found_and_leaves_no_row)
{
    put_job(1, 2);
    int64_t rows = rows_of_jobs();
    put_job(2, 2);
    remove_job(2);
    autorows struct rows found = reader_job(rig.reader, rig_id(2), &rig.err);
    struct job_record job;
    ck_assert(!rows_job(&found, &job));
    rows_close(&found);
    ck_assert_int_eq(finish(2), 1);
    ck_assert_int_eq(rows_of_jobs(), rows);
    remove_job(2); /* again, and one that never was */
    remove_job(77);
    ck_assert_int_eq(rows_of_jobs(), rows);
}
END_TEST

static struct change upload(const char *owner, const char *hash, int64_t at_ms)
{
    return (struct change){.kind = CHANGE_UPLOAD_PUT,
                           .upload = {.owner = owner, .hash = hash, .size = 3, .at_ms = at_ms}};
}

START_TEST(an_upload_goes_when_a_job_of_its_owner_names_it_or_when_it_is_old)
{
    const char *owner = job_insert(1).job.birth.owner;
    rig_write((struct change[]){upload(owner, "aa", 10), upload("bob", "aa", 11), upload("bob", "bb", 12)},
              3);
    put_job(1, 0); /* names aa and bb */
    ck_assert_int_eq(count("SELECT count(*) FROM uploads"), 2);
    ck_assert_int_eq(count("SELECT count(*) FROM uploads WHERE owner = 'bob'"), 2);
    rig_write_one(upload("bob", "aa", 20)); /* sent again */
    rig_write_one((struct change){.kind = CHANGE_UPLOADS_TRIM, .upload.at_ms = 12});
    ck_assert_int_eq(count("SELECT count(*) FROM uploads"), 1);
    ck_assert_int_eq(count("SELECT at_ms FROM uploads WHERE hash = 'aa'"), 20);
    for (int64_t i = 0; i < RETENTION_STEP_BLOBS + 5; i++) {
        autofree char *hash = xprintf("%lld", (long long)i);
        rig_write_one(upload("eva", hash, i));
    }
    rig_write_one((struct change){.kind = CHANGE_UPLOADS_TRIM, .upload.at_ms = 1000000});
    ck_assert_int_eq(count("SELECT count(*) FROM uploads"), 6);
}
END_TEST

START_TEST(a_removal_goes_on_in_pieces_also_after_a_start)
{
    put_job(1, RETENTION_PIECE_ROWS * 2 + 5);
    remove_job(1);
    rig_write_one((struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = 1});
    rig_reopen();
    ck_assert_int_eq(count("SELECT count(*) FROM ranks"), RETENTION_PIECE_ROWS + 5);
    ck_assert_int_eq(finish(1), 2);
    ck_assert_int_eq(rows_of_jobs(), 0);
}
END_TEST

START_TEST(no_node_keeps_a_removed_gang_of_many_nodes)
{
    enum { NODES = RETENTION_PIECE_ROWS + 20 };
    put_job(1, 0);
    put_job(2, 0);
    for (int64_t i = 1; i < NODES; i++) {
        autofree char *first = xprintf("node-%lld", (long long)i);
        autofree char *second = xprintf("node-%lld", (long long)(NODES - i / 2));
        rig_write((struct change[]){member_insert(1001, i, first, "0")}, 1);
        rig_write((struct change[]){member_insert(1002, i, second, "0")}, 1);
    }
    remove_job(1);
    rig_write_one((struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = 1});
    ck_assert_int_eq(count("SELECT count(*) FROM node_jobs WHERE job_key = 1"), 20);
    rig_reopen();
    ck_assert_int_eq(finish(1), 1);
    ck_assert_int_eq(count("SELECT count(*) FROM node_jobs WHERE job_key = 1"), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM node_jobs WHERE job_key = 2"), NODES / 2 + 1);
    remove_job(2);
    finish(2);
    ck_assert_int_eq(rows_of_jobs(), 0);
}
END_TEST

START_TEST(the_tasks_of_a_removed_array_follow_it)
{
    rig_write(
        (struct change[]){job_insert(1),
                          {.kind = CHANGE_ARRAY_PUT, .array = {.whole = 1, .tasks = 300, .placed = 300}}},
        2);
    for (int64_t i = 0; i < 300; i++) {
        struct change task = job_insert(2 + i);
        task.job.birth.array_key = 1;
        task.job.birth.task = i;
        rig_write((struct change[]){task, event(2 + i, 1)}, 2);
    }
    remove_job(1);
    ck_assert_int_eq(finish(1), 2);
    ck_assert_int_eq(count("SELECT count(*) FROM jobs"), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM removals"), 300);
    for (int64_t i = 0; i < 300; i++) {
        finish(2 + i);
    }
    ck_assert_int_eq(rows_of_jobs(), 0);
}
END_TEST

START_TEST(a_key_is_not_used_again_after_its_job_was_removed)
{
    put_job(1, 0);
    put_job(2, 0);
    remove_job(2);
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 3);
    remove_job(1);
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 3);
}
END_TEST

static struct change blob(uint8_t first, int64_t created_ms)
{
    return (struct change){.kind = CHANGE_BLOB_PUT,
                           .blob = {.hash = {first}, .size = 3, .bytes = "abc", .created_ms = created_ms}};
}

static void delete_blob(uint8_t first, int64_t created_ms)
{
    rig_write_one(
        (struct change){.kind = CHANGE_BLOB_DELETE, .blob = {.hash = {first}, .created_ms = created_ms}});
}

static char *unused_blobs(int64_t created_ms)
{
    struct text text = {0};
    autorows struct rows rows = reader_blob_uses(rig.reader, 0, 100, created_ms, &rig.err);
    struct blob_use use;
    while (rows_blob_use(&rows, &use)) {
        if (use.unused) {
            text_printf(&text, "%d ", use.hash[0]);
        }
    }
    ck_assert(!rows.failed);
    text_append(&text, "");
    return text_take(&text);
}

static bool stays(uint8_t first, int64_t created_ms)
{
    autorows struct rows rows =
        reader_blob_that_stays(rig.reader, (uint8_t[32]){first}, created_ms, NULL, &rig.err);
    struct blob_row row;
    return rows_blob(&rows, &row);
}

START_TEST(an_old_blob_that_nothing_names_counts_as_gone)
{
    char hex[65];
    text_to_hex((uint8_t[32]){2}, 32, hex);
    rig_write((struct change[]){blob(1, 100), blob(2, 100), blob(3, 200)}, 3);
    put_job(1, 1);
    rig_write_one(use(1, hex));
    ck_assert(stays(1, 99) && stays(2, 99) && stays(3, 99));
    ck_assert(!stays(1, 150) && stays(2, 150) && stays(3, 150));
    rig_write_one(blob(1, 300)); /* sent again */
    ck_assert(stays(1, 250) && stays(2, 250) && !stays(3, 250) && !stays(4, 0));
}
END_TEST

START_TEST(a_blob_stays_while_it_is_young_or_a_job_or_a_result_names_it)
{
    char hex[65];
    const uint8_t named[32] = {2};
    text_to_hex(named, 32, hex);
    rig_write((struct change[]){blob(1, 100), blob(2, 100), blob(7, 100), blob(9, 200)}, 4);
    put_job(1, 1);
    rig_write_one(use(1, hex));
    autofree char *unused = unused_blobs(150);
    ck_assert_str_eq(unused, "1 ");
    for (uint8_t i = 1; i < 10; i++) {
        delete_blob(i, 150);
    }
    ck_assert_int_eq(count("SELECT count(*) FROM blobs"), 3);
    rig_write_one(blob(9, 400)); /* sent again: as good as new */
    remove_job(1);
    finish(1);
    autofree char *then = unused_blobs(300);
    ck_assert_str_eq(then, "2 7 ");
    for (uint8_t i = 1; i < 10; i++) {
        delete_blob(i, 300);
    }
    ck_assert_int_eq(count("SELECT count(*) FROM blobs"), 1);
}
END_TEST

static void expect_reply(uint8_t scope, bool expected)
{
    uint8_t bytes[32];
    bool found;
    struct stored_reply reply = {0};
    memset(bytes, scope, sizeof bytes);
    ck_assert_msg(store_find_reply(rig.store, bytes, &found, &reply, &rig.err), "%s", rig.err.text);
    free(reply.answer);
    ck_assert_msg(found == expected, "of day %d: %d", scope, found);
}

/* One reply a day, while the controller runs. */
static void pass_day(uint8_t day)
{
    rig_write((struct change[]){reply_insert(day, "{}"),
                                {.kind = CHANGE_REPLIES_AGE, .reply.at_ms = DAY_MS},
                                {.kind = CHANGE_REPLIES_TRIM, .reply.key = INT64_MAX}},
              3);
}

START_TEST(a_first_answer_is_known_for_its_time_and_forgotten_after_twice_as_long)
{
    int days = IDEMPOTENCY_KEPT_MS / DAY_MS;
    for (uint8_t day = 1; day <= 40; day++) {
        pass_day(day);
        for (uint8_t i = 1; i <= day; i++) {
            if (day - i < days) {
                expect_reply(i, true);
            } else if (day - i >= 2 * days) {
                expect_reply(i, false);
            }
        }
        if (day % 7 == 0) {
            rig_reopen();
        }
    }
    int64_t left = count("SELECT count(*) FROM replies");
    ck_assert_msg(left >= days && left <= 2 * days, "%d are left", (int)left);
}
END_TEST

START_TEST(the_number_of_a_forgotten_answer_is_not_used_again)
{
    pass_day(1);
    for (int i = 0; i < 2 * IDEMPOTENCY_KEPT_MS / DAY_MS; i++) {
        rig_write_one((struct change){.kind = CHANGE_REPLIES_AGE, .reply.at_ms = DAY_MS});
    }
    rig_write_one((struct change){.kind = CHANGE_REPLIES_TRIM, .reply.key = INT64_MAX});
    ck_assert_int_eq(count("SELECT count(*) FROM replies"), 0);
    rig_reopen();
    rig_write_one(reply_insert(2, "{}"));
    ck_assert_int_eq(count("SELECT key FROM replies"), 2);
    expect_reply(1, false);
    expect_reply(2, true);
}
END_TEST

START_TEST(a_trim_leaves_what_may_be_given_again)
{
    rig_write((struct change[]){reply_insert(1, "{}"), {.kind = CHANGE_REPLIES_TRIM, .reply.key = 1}}, 2);
    expect_reply(1, true);
    int64_t key;
    ck_assert(reader_old_reply(rig.reader, 10, &key, &rig.err));
    ck_assert_int_eq(key, 0);
}
END_TEST

/* --- what is old ---------------------------------------------------------------------------------------- */

static void put_ended(int64_t key, enum job_state state, int64_t ended_ms, const char *project)
{
    struct change job = job_insert(key);
    job.job.birth.created_ms = key * 1000;
    job.job.birth.project = project;
    job.job.life.state = state;
    job.job.life.ended_ms = ended_ms;
    rig_write_one(job);
}

static char *old_jobs(const struct retention_ages *ages, int64_t wall_ms)
{
    struct text text = {0};
    struct retention_rules rules;
    struct old_jobs old = {0};
    ck_assert(retention_rules_read(rig.reader, ages, &rules, &rig.err));
    while (!old.over) {
        ck_assert(old_jobs_next(&old, rig.reader, &rules, wall_ms, &rig.err));
        for (size_t i = 0; i < old.count; i++) {
            text_printf(&text, "%d%s ", (int)old.items[i].key, old.items[i].removed ? "" : " logs");
        }
    }
    retention_rules_finish(&rules);
    text_append(&text, "");
    return text_take(&text);
}

START_TEST(old_are_those_that_ended_long_ago_by_the_rule_of_their_project)
{
    const struct change archive = {
        .kind = CHANGE_LIMITS_PUT,
        .limits = {.kind = ACCOUNT_PROJECT, .name = "archive", .limits = "{\"keep_jobs_days\":0}"}};
    rig_write_one(archive);
    put_ended(1, JOB_SUCCEEDED, 10000, "vision");
    put_ended(2, JOB_RUNNING, 0, "vision");
    put_ended(3, JOB_FAILED, 90000, "vision");
    put_ended(4, JOB_CANCELED, 10000, "archive");
    put_ended(5, JOB_SUCCEEDED, 60000, "vision");
    put_ended(100, JOB_SUCCEEDED, 100500, "vision");
    autofree char *both = old_jobs(&(struct retention_ages){.jobs_ms = 50000, .logs_ms = 20000}, 100000);
    ck_assert_str_eq(both, "1 4 logs 5 logs ");
    autofree char *jobs = old_jobs(&(struct retention_ages){.jobs_ms = 5000}, 100000);
    ck_assert_str_eq(jobs, "1 3 5 ");
    autofree char *none = old_jobs(&(struct retention_ages){0}, INT64_MAX / 2);
    ck_assert_str_eq(none, "");
}
END_TEST

START_TEST(a_walk_over_many_jobs_comes_to_each_old_one_once)
{
    for (int64_t i = 1; i <= 3 * RETENTION_STEP_JOBS; i++) {
        put_ended(i, i % 3 == 0 ? JOB_RUNNING : JOB_SUCCEEDED, i % 3 == 0 ? 0 : 1, "vision");
    }
    struct retention_rules rules = {.ages = {.jobs_ms = 1}};
    struct old_jobs old = {0};
    size_t seen = 0;
    int64_t last = 0;
    while (!old.over) {
        ck_assert(old_jobs_next(&old, rig.reader, &rules, INT64_MAX / 2, &rig.err));
        for (size_t i = 0; i < old.count; i++, seen++) {
            ck_assert_int_gt(old.items[i].key, last);
            last = old.items[i].key;
        }
    }
    ck_assert_uint_eq(seen, 2 * RETENTION_STEP_JOBS);
}
END_TEST

/* --- the file ------------------------------------------------------------------------------------------- */

static int64_t file_size(void)
{
    struct stat status;
    ck_assert_int_eq(stat(rig.path, &status), 0);
    return status.st_size;
}

static struct file_use file_use(void)
{
    struct file_use use;
    ck_assert(reader_file_use(rig.reader, &use, &rig.err));
    return use;
}

static void put_large_jobs(int64_t first, int64_t last)
{
    static char spec[20000];
    memset(spec, 'x', sizeof spec);
    for (int64_t key = first; key <= last; key++) {
        struct change job = job_insert(key);
        job.job.birth.spec = spec;
        job.job.birth.spec_length = sizeof spec;
        rig_write((struct change[]){job, event(key, 1)}, 2);
    }
}

START_TEST(the_file_becomes_smaller_by_what_was_removed_a_few_pages_at_a_time)
{
    put_large_jobs(1, 10);
    int64_t little = file_use().bytes;
    put_large_jobs(11, 150);
    put_large_jobs(151, 152); /* the last ones stay: pages move */
    rig_reopen();
    int64_t most = file_size();
    for (int64_t key = 11; key <= 150; key++) {
        remove_job(key);
        finish(key);
    }
    struct file_use before = file_use(), after;
    ck_assert_int_eq(before.bytes, most);
    ck_assert_int_gt(before.free_bytes, most / 10 * 8);
    do {
        rig_write_one((struct change){.kind = CHANGE_SHRINK, .pages = 7});
        after = file_use();
        int64_t went = before.bytes - after.bytes;
        /* beside the pages, those go that say what the others are for */
        ck_assert_msg(went >= (after.free_bytes > 0 ? 7 * 4096 : 0) && went <= 9 * 4096, "%lld",
                      (long long)went);
        before = after;
    } while (after.free_bytes > 0);
    rig_reopen();
    ck_assert_int_lt(file_size(), little + 80000);
    ck_assert_int_eq(count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM specs WHERE length(spec) = 20000"), 12);
    rig_write_one((struct change){.kind = CHANGE_SHRINK, .pages = 7}); /* nothing is free */
}
END_TEST

START_TEST(a_database_of_before_is_written_anew_at_the_start_and_can_shrink_then)
{
    put_large_jobs(1, 10);
    rig_close();
    rig_meddle("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM");
    rig_reopen();
    ck_assert_int_eq(count("SELECT auto_vacuum FROM pragma_auto_vacuum"), 2);
    ck_assert_int_eq(count("SELECT count(*) FROM specs WHERE length(spec) = 20000"), 10);
}
END_TEST

Suite *store_retention_suite(void)
{
    Suite *suite = suite_create("store-retention");
    TCase *cases = tcase_create("retention");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, a_removed_job_is_not_found_and_leaves_no_row);
    tcase_add_test(cases, an_upload_goes_when_a_job_of_its_owner_names_it_or_when_it_is_old);
    tcase_add_test(cases, a_removal_goes_on_in_pieces_also_after_a_start);
    tcase_add_test(cases, no_node_keeps_a_removed_gang_of_many_nodes);
    tcase_add_test(cases, the_tasks_of_a_removed_array_follow_it);
    tcase_add_test(cases, a_key_is_not_used_again_after_its_job_was_removed);
    tcase_add_test(cases, an_old_blob_that_nothing_names_counts_as_gone);
    tcase_add_test(cases, a_blob_stays_while_it_is_young_or_a_job_or_a_result_names_it);
    tcase_add_test(cases, a_first_answer_is_known_for_its_time_and_forgotten_after_twice_as_long);
    tcase_add_test(cases, the_number_of_a_forgotten_answer_is_not_used_again);
    tcase_add_test(cases, a_trim_leaves_what_may_be_given_again);
    tcase_add_test(cases, old_are_those_that_ended_long_ago_by_the_rule_of_their_project);
    tcase_add_test(cases, a_walk_over_many_jobs_comes_to_each_old_one_once);
    tcase_add_test(cases, the_file_becomes_smaller_by_what_was_removed_a_few_pages_at_a_time);
    tcase_add_test(cases, a_database_of_before_is_written_anew_at_the_start_and_can_shrink_then);
    suite_add_tcase(suite, cases);
    return suite;
}
