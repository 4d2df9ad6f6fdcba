/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a node's attempts, and how it is told to a controller that was put back from a backup. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/node/journal.h"
#include "agent/node/recall.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define JOB "abcdefghijklmnop"

static struct journal *open_journal(void)
{
    struct err err;
    struct journal *journal = journal_open(rig.folder, &err);
    ck_assert_msg(journal != NULL, "%s", err.text);
    return journal;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

START_TEST(attempts_are_read_back_with_their_ends_also_by_the_next_agent)
{
    size_t count;
    int64_t now_ms = clock_wall_ms();
    struct journal *journal = open_journal();
    journal_began(journal, 7, JOB);
    journal_began(journal, UINT64_C(0x7fffffff00000001), "ponmlkjihgfedcba");
    journal_ended(journal, 7, 137);
    journal_close(journal);
    journal = open_journal();
    journal_ended(journal, UINT64_C(0x7fffffff00000001), -1);
    journal_began(journal, 9, JOB);
    autofree struct journal_item *items = journal_read(journal, 0, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(items[0].attempt_id, 7);
    ck_assert_str_eq(items[0].job_id, JOB);
    ck_assert_int_eq(items[0].code, 137);
    ck_assert_int_ge(items[0].began_ms, now_ms);
    ck_assert_int_ge(items[0].ended_ms, items[0].began_ms);
    ck_assert_uint_eq(items[1].attempt_id, UINT64_C(0x7fffffff00000001));
    ck_assert_int_gt(items[1].ended_ms, 0);
    ck_assert_int_eq(items[1].code, -1);
    ck_assert_int_eq(items[2].ended_ms, 0);
    ck_assert_int_eq(items[2].code, -1);
    journal_close(journal);
}
END_TEST

START_TEST(only_what_began_since_then_is_read)
{
    size_t count;
    rig_write_text("journal", "began 1 " JOB " 100\nbegan 2 " JOB " 200\nended 1 0 250\nended 2 3 260\n");
    struct journal *journal = open_journal();
    autofree struct journal_item *items = journal_read(journal, 200, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(items[0].attempt_id, 2);
    ck_assert_int_eq(items[0].code, 3);
    journal_close(journal);
}
END_TEST

START_TEST(lines_that_are_cut_short_or_nonsense_are_left_out)
{
    size_t count;
    rig_write_text("journal", "began 1 " JOB "\nbegan x " JOB " 5\nbegan 2 short 5\n\nbegan\nended 3 0 9\n"
                              "walked 4 " JOB " 5\nbegan 5 " JOB " 5\nended 5 many 6\nbegan 6 " JOB " 5");
    struct journal *journal = open_journal();
    autofree struct journal_item *items = journal_read(journal, 0, &count);
    ck_assert_uint_eq(count, 1); /* the last one has no end of line */
    ck_assert_uint_eq(items[0].attempt_id, 5);
    ck_assert_int_eq(items[0].ended_ms, 0);
    journal_close(journal);
}
END_TEST

START_TEST(the_files_stay_within_their_bound_and_the_newest_attempts_stay)
{
    size_t count;
    struct stat newer, older;
    autofree char *path = rig_path("journal");
    autofree char *old_path = rig_path("journal.old");
    struct journal *journal = open_journal();
    uint64_t last = 3 * LIMIT_JOURNAL_BYTES / 90;
    for (uint64_t attempt_id = 1; attempt_id <= last; attempt_id++) {
        journal_began(journal, attempt_id, JOB);
        journal_ended(journal, attempt_id, 0);
    }
    ck_assert_int_eq(stat(path, &newer), 0);
    ck_assert_int_eq(stat(old_path, &older), 0);
    ck_assert_int_le(newer.st_size, LIMIT_JOURNAL_BYTES);
    ck_assert_int_le(older.st_size, LIMIT_JOURNAL_BYTES);
    autofree struct journal_item *items = journal_read(journal, 0, &count);
    ck_assert_uint_gt(count, LIMIT_JOURNAL_BYTES / 100);
    ck_assert_uint_lt(count, last);
    ck_assert_uint_eq(items[count - 1].attempt_id, last);
    ck_assert_uint_eq(items[0].attempt_id, last + 1 - count); /* none is missing in between */
    journal_close(journal);
}
END_TEST

/* --- telling -------------------------------------------------------------------------------------------- */

struct scene {
    struct agent_context context;
    struct recall *recall;
    size_t told, pages;
    uint64_t first, last;
    size_t until;
    int64_t since_ms; /* 0: no polls are answered */
};

static void hear(struct scene *scene, int64_t restored_ms, int64_t since_ms)
{
    recall_hear(scene->recall,
                &(struct poll_reply){.restored_ms = restored_ms, .journal_since_ms = since_ms});
}

static struct rig_answer take_page(struct rig *of, const struct rig_request *request)
{
    struct scene *scene = of->closure;
    struct err err;
    struct journal_message message;
    ck_assert_str_eq(request->target, "/v1/agent/journal");
    json_t *json = json_parse(request->body.bytes, request->body.length, &err);
    ck_assert_msg(journal_message_decode(json, &message, &err), "%s", err.text);
    ck_assert_str_eq(message.node, "gpu-1");
    ck_assert_str_eq(message.boot_id, "boot");
    scene->pages++;
    scene->first = scene->told == 0 ? message.entries[0].attempt_id : scene->first;
    scene->told += message.entry_count;
    scene->last = message.entries[message.entry_count - 1].attempt_id;
    journal_message_finish(&message);
    if (scene->since_ms > 0) { /* the answer to a poll comes in between */
        hear(scene, 1000, scene->since_ms);
    }
    if (scene->told >= scene->until) {
        loop_end(of->loop);
    }
    return (struct rig_answer){200, "{\"unknown\":1}"};
}

static void scene_begin(struct scene *scene)
{
    *scene = (struct scene){.context = {.config = {.name = "gpu-1"}, .boot_id = "boot"}};
    scene->context.loop = rig.loop;
    scene->context.controller = rig.controller;
    scene->context.journal = open_journal();
    scene->recall = recall_create(&scene->context);
    rig.closure = scene;
    rig.answer = take_page;
}

static void scene_finish(struct scene *scene)
{
    recall_destroy(scene->recall);
    journal_close(scene->context.journal);
}

START_TEST(a_restored_controller_is_told_page_by_page_and_once)
{
    struct scene scene;
    scene_begin(&scene);
    scene.until = 2 * LIMIT_JOURNAL_ENTRIES + 5;
    for (uint64_t attempt_id = 1; attempt_id <= scene.until; attempt_id++) {
        journal_began(scene.context.journal, attempt_id, JOB);
    }
    scene.since_ms = clock_wall_ms();
    hear(&scene, 0, 0); /* not restored */
    hear(&scene, 1000, scene.since_ms);
    rig_run();
    ck_assert_uint_eq(scene.told, scene.until);
    ck_assert_uint_eq(scene.pages, 3);
    ck_assert_uint_eq(scene.first, 1);
    ck_assert_uint_eq(scene.last, scene.until);
    scene_finish(&scene);
}
END_TEST

START_TEST(what_began_long_before_the_backup_is_not_told)
{
    struct scene scene;
    autofree char *lines =
        xprintf("began 1 " JOB " %lld\nbegan 2 " JOB " %lld\n",
                (long long)(1000000000 - JOURNAL_SLACK_MS - 1), (long long)(1000000000 - JOURNAL_SLACK_MS));
    rig_write_text("journal", lines);
    scene_begin(&scene);
    scene.until = 1;
    hear(&scene, 5, 1000000000);
    rig_run();
    ck_assert_uint_eq(scene.told, 1);
    ck_assert_uint_eq(scene.first, 2);
    scene_finish(&scene);
}
END_TEST

Suite *journal_suite(void)
{
    Suite *suite = suite_create("journal");
    TCase *cases = tcase_create("journal");
    tcase_add_checked_fixture(cases, rig_setup, rig_teardown);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, attempts_are_read_back_with_their_ends_also_by_the_next_agent);
    tcase_add_test(cases, only_what_began_since_then_is_read);
    tcase_add_test(cases, lines_that_are_cut_short_or_nonsense_are_left_out);
    tcase_add_test(cases, the_files_stay_within_their_bound_and_the_newest_attempts_stay);
    tcase_add_test(cases, a_restored_controller_is_told_page_by_page_and_once);
    tcase_add_test(cases, what_began_long_before_the_backup_is_not_told);
    suite_add_tcase(suite, cases);
    return suite;
}
