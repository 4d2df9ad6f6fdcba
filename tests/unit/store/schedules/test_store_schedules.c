/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: what a run and a change write, whose they are, and what they keep from retention. */
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct change schedule(const char *id, const char *owner, int64_t next_ms)
{
    return (struct change){.kind = CHANGE_SCHEDULE_INSERT,
                           .schedule = {.id = id,
                                        .owner = owner,
                                        .name = id,
                                        .project = "default",
                                        .spec = "{}",
                                        .created_ms = 1,
                                        .cron = "@daily",
                                        .time_zone = "UTC",
                                        .overlap = OVERLAP_FORBID,
                                        .next_ms = next_ms}};
}

static void append(struct rows rows, struct text *seen)
{
    struct schedule_row row;
    while (rows_schedule(&rows, &row)) {
        text_printf(seen, "%s/%s %s next=%lld due=%lld %s job=%s error=%s%s%s\n", row.owner, row.id, row.cron,
                    (long long)row.next_ms, (long long)row.due_ms, schedule_outcome_text(row.outcome),
                    row.job != NULL ? row.job : "-", row.error != NULL ? row.error : "-",
                    row.paused ? " paused " : "", row.reason != NULL ? row.reason : "");
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    rows_close(&rows);
}

static void expect(struct rows rows, const char *expected)
{
    autotext struct text seen = {0};
    text_append(&seen, "");
    append(rows, &seen);
    ck_assert_str_eq(seen.bytes, expected);
}

static void run(const char *id, enum schedule_outcome outcome, const char *job, const char *error,
                int64_t next_ms)
{
    rig_write(&(struct change){.kind = CHANGE_SCHEDULE_RUN,
                               .schedule = {.id = id,
                                            .due_ms = 10,
                                            .ran_ms = 11,
                                            .outcome = outcome,
                                            .job = job,
                                            .error = error,
                                            .next_ms = next_ms}},
              1);
}

START_TEST(a_run_writes_what_became_of_it_and_a_change_leaves_that)
{
    struct change changed = schedule("one", "ann", 70);
    changed.kind = CHANGE_SCHEDULE_UPDATE;
    changed.schedule.cron = "@hourly";
    rig_write((struct change[]){schedule("one", "ann", 10)}, 1);
    run("one", OUTCOME_SUBMITTED, "job-1", NULL, 20);
    expect(reader_schedule(rig.reader, "one", &rig.err),
           "ann/one @daily next=20 due=10 submitted job=job-1 error=-\n");
    run("one", OUTCOME_REFUSED, NULL, "no", 30);
    run("gone", OUTCOME_REFUSED, NULL, "no", 30);
    expect(reader_schedule(rig.reader, "one", &rig.err),
           "ann/one @daily next=30 due=10 refused job=job-1 error=no\n");
    run("one", OUTCOME_SUBMITTED, "job-2", NULL, 0);
    rig_write(&changed, 1);
    expect(reader_schedule(rig.reader, "one", &rig.err),
           "ann/one @hourly next=70 due=10 submitted job=job-2 error=-\n");
}
END_TEST

START_TEST(those_that_are_due_come_in_the_order_of_their_times_without_paused_ones)
{
    struct change paused = schedule("two", "ann", 5);
    paused.schedule.paused = true;
    paused.schedule.reason = "because";
    rig_write((struct change[]){schedule("one", "ann", 30), paused, schedule("three", "eve", 20)}, 3);
    expect(reader_due_schedules(rig.reader, 9, &rig.err),
           "eve/three @daily next=20 due=0 none job=- error=-\n"
           "ann/one @daily next=30 due=0 none job=- error=-\n");
    expect(reader_due_schedules(rig.reader, 1, &rig.err),
           "eve/three @daily next=20 due=0 none job=- error=-\n");
    expect(reader_schedules(rig.reader, "ann", "one", 9, &rig.err),
           "ann/two @daily next=5 due=0 none job=- error=- paused because\n");
    struct schedule_counts counts;
    ck_assert(reader_schedule_counts(rig.reader, "ann", "two", &counts, &rig.err));
    ck_assert(counts.all == 3 && counts.own == 2 && counts.named == 1);
}
END_TEST

static bool stays(const uint8_t hash[32], const char *owner)
{
    struct blob_row row;
    autorows struct rows rows = reader_blob_that_stays(rig.reader, hash, 1000, owner, &rig.err);
    return rows_blob(&rows, &row);
}

START_TEST(a_blob_that_a_schedule_names_stays_for_its_owner_until_the_schedule_goes)
{
    struct change blob = {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {0xab}, .size = 1, .created_ms = 1}};
    char hex[65];
    text_to_hex(blob.blob.hash, 32, hex);
    struct change drop = {.kind = CHANGE_BLOB_DELETE, .blob = blob.blob};
    drop.blob.created_ms = 1000;
    rig_write((struct change[]){blob,
                                schedule("one", "ann", 30),
                                {.kind = CHANGE_SCHEDULE_USE_PUT, .schedule_use = {"one", hex}},
                                {.kind = CHANGE_SCHEDULE_USE_PUT, .schedule_use = {"one", hex}},
                                drop},
              5);
    ck_assert(stays(blob.blob.hash, NULL) && stays(blob.blob.hash, "ann") && !stays(blob.blob.hash, "eve"));
    rig_write((struct change[]){{.kind = CHANGE_SCHEDULE_DELETE, .schedule = {.id = "one"}},
                                {.kind = CHANGE_SCHEDULE_DELETE, .schedule = {.id = "one"}}},
              2);
    ck_assert(!stays(blob.blob.hash, NULL));
    rig_write(&drop, 1);
    autorows struct rows rows = reader_blob(rig.reader, blob.blob.hash, &rig.err);
    struct blob_row row;
    ck_assert(!rows_blob(&rows, &row) && !rows.failed);
}
END_TEST

Suite *store_schedules_suite(void)
{
    Suite *suite = suite_create("store_schedules");
    TCase *tests = tcase_create("schedules");
    tcase_add_checked_fixture(tests, rig_begin, rig_end);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_run_writes_what_became_of_it_and_a_change_leaves_that);
    tcase_add_test(tests, those_that_are_due_come_in_the_order_of_their_times_without_paused_ones);
    tcase_add_test(tests, a_blob_that_a_schedule_names_stays_for_its_owner_until_the_schedule_goes);
    return suite;
}
