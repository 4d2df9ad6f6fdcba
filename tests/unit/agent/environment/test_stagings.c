/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/stagings and agent/builder, with a shell script in the place of Python: what is begun,
 * stopped and told. The script ends when the file that it waits for is there, or is killed. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/environment/environments.h"
#include "agent/environment/payload.h"
#include "agent/environment/stagings.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define STAGINGS 4

static struct children *children;
static struct environments *environments;
static struct payloads *payloads;
static struct object_client *objects;
static struct stagings *stagings;
static struct staging wanted[STAGINGS];
static bool (*is_over)(void);
static struct loop_timer look;
static size_t strangers;
static int stage;  /* how far a test is that does one thing after the other */
static int refuse; /* the status of the next report's answer; 0: 200 */
static char hashes[STAGINGS][HASH_HEX + 1];

static bool idle(void *closure)
{
    return payloads_step(payloads);
}

/* Ends the loop as soon as what the test waits for holds. */
static void look_due(void *closure)
{
    if (is_over()) {
        loop_end(rig.loop);
    } else {
        loop_arm(rig.loop, &look, clock_boot_ms() + 5);
    }
}

static void run_until(bool (*over)(void))
{
    is_over = over;
    look = (struct loop_timer){.due = look_due};
    loop_arm(rig.loop, &look, 0);
    rig_run();
}

static struct rig_answer answer(struct rig *unused, const struct rig_request *request)
{
    if (strcmp(request->method, "GET") == 0) {
        for (int i = 0; i < STAGINGS; i++) {
            if (strstr(request->target, hashes[i]) != NULL) {
                static char body[2];
                body[0] = (char)('0' + i);
                return (struct rig_answer){200, body};
            }
        }
        return (struct rig_answer){404, NULL};
    }
    int status = refuse != 0 ? refuse : 200;
    refuse = 0;
    return (struct rig_answer){status, NULL};
}

static void be_stranger(void *closure)
{
    strangers++;
}

/* The text of requirements number N is N. */
static void make_staging(int number)
{
    const char text[2] = {(char)('0' + number), '\0'};
    struct err err = {0};
    hash_hex(text, 1, hashes[number]);
    json_t *json = json_pack("{s:s, s:s, s:[s]}", "key", hashes[number], "requirements", hashes[number],
                             "blobs", hashes[number]);
    ck_assert_msg(staging_decode(json, &wanted[number], &err), "%s", err.text);
}

/* What the builder is told: --folder F --requirements R --key K. It holds no lock while it builds, so the
 * lock comes when the environment is whole: one with a lock that nobody holds would be thrown away. */
#define SCRIPT_BEGINS                                                                                        \
    "#!/bin/sh\nF=$4; K=$8; N=$(cat \"$6\"); echo $$ >>"                                                     \
    "\"$F/../started-$N\"\n"                                                                                 \
    "ready() { mkdir -p \"$F/$K/bin\"; cp /bin/sh \"$F/$K/bin/python\"\n"                                    \
    "echo '{\"size_bytes\": 1}' >\"$F/$K/gpuctl.json\"; : >\"$F/$K.lock\"; ln -sfn \"../$K\" "               \
    "\"$F/names/$K\"\n"                                                                                      \
    "echo '{\"ready\": true}'; }\n"

static void set_script(const char *text)
{
    autofree char *whole = xprintf(SCRIPT_BEGINS "%s", text);
    rig_write_text("python", whole);
    autofree char *path = rig_path("python");
    ck_assert_int_eq(chmod(path, 0700), 0);
}

/* --- holding builds ------------------------------------------------------------------------------------- */

static char *hold;
static size_t held, most_held; /* at once */
static size_t in_cgroup[LIMIT_BUILDS];
static bool ran_out; /* as hold_end says */

static bool hold_begin(void *closure, size_t number, char **ret_path, struct err *err)
{
    ck_assert_uint_lt(number, LIMIT_BUILDS);
    ck_assert_uint_eq(in_cgroup[number]++, 0);
    held++;
    most_held = held > most_held ? held : most_held;
    *ret_path = xprintf("cgroup %zu", number);
    return true;
}

static bool hold_end(void *closure, const char *path)
{
    ck_assert_int_eq(strncmp(path, "cgroup ", 7), 0);
    ck_assert_uint_eq(in_cgroup[path[7] - '0']--, 1);
    held--;
    return ran_out;
}

/* What executes builders notes how it was asked to. */
static void set_hold_script(void)
{
    rig_write_text("hold", "#!/bin/sh\necho \"$1 $2 $3\" >>\"${0%/*}/held\"\nshift 3\nexec \"$@\"\n");
    autofree char *path = rig_path("hold");
    ck_assert_int_eq(chmod(path, 0700), 0);
    held = most_held = 0;
    ran_out = false;
    memset(in_cgroup, 0, sizeof in_cgroup);
}

static void setup(void)
{
    struct err err = {0};
    rig_setup();
    set_hold_script();
    rig.answer = answer;
    loop_set_idle(rig.loop, idle, NULL);
    set_script("ready\n");
    autofree char *python = rig_path("python");
    autofree char *folder = rig_path("environments");
    autofree char *cache = rig_path("payloads");
    hold = rig_path("hold");
    autofree char *inputs = xprintf("%s/inputs", folder);
    children = children_create(rig.loop);
    environments = environments_create(folder, python, 1000, &err);
    objects = object_client_create(controller_client_url(rig.controller), OBJECT_STORE_AWAY_MS, rig.loop);
    payloads = payloads_create(cache, rig.controller, objects, &err);
    stagings = stagings_create(
        &(struct stagings_config){
            .node = "node0",
            .boot_id = "boot",
            .loop = rig.loop,
            .controller = rig.controller,
            .payloads = payloads,
            .environments = environments,
            .children = children,
            .script = "/script.py",
            .hold =
                {.program = hold, .option = "--hold", .seccomp = true, .begin = hold_begin, .end = hold_end},
            .inputs = {.folder = inputs, .limit_bytes = 1000, .children = children},
            .stranger = be_stranger},
        &err);
    strangers = 0;
    stage = 0;
    refuse = 0;
    for (int i = 0; i < STAGINGS; i++) {
        make_staging(i);
    }
}

static void teardown(void)
{
    stagings_destroy(stagings);
    payloads_destroy(payloads);
    object_client_destroy(objects);
    environments_destroy(environments);
    children_destroy(children);
    for (int i = 0; i < STAGINGS; i++) {
        staging_finish(&wanted[i]);
    }
    ck_assert_uint_eq(held, 0); /* also of those that were stopped */
    free(give(hold));
    rig_teardown();
}

/* --- what was told -------------------------------------------------------------------------------------- */

/* The number of reports of a staging in a state; of any with -1, with any text that holds `text`. */
static size_t told(int number, const char *state, const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < rig.request_count; i++) {
        const struct rig_request *request = &rig.requests[i];
        if (strcmp(request->target, "/v1/agent/staging") != 0) {
            continue;
        }
        autojson json_t *body = json_parse(request->body.bytes, request->body.length, NULL);
        const char *said = json_string_value(json_object_get(body, "text"));
        const char *key = json_string_value(json_object_get(body, "key"));
        count += (number < 0 || strcmp(key, hashes[number]) == 0) &&
                 strcmp(json_string_value(json_object_get(body, "state")), state) == 0 &&
                 (text == NULL || (said != NULL && strstr(said, text) != NULL));
    }
    return count;
}

static bool has_started(int number)
{
    autofree char *path = xprintf("%s/started-%d", rig.folder, number);
    return access(path, F_OK) == 0;
}

static size_t times_started(int number)
{
    autofree char *path = xprintf("%s/started-%d", rig.folder, number);
    autofree char *text = NULL;
    size_t count = 0;
    if (file_read(path, 4096, &text, NULL, NULL)) {
        for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
            count++;
        }
    }
    return count;
}

static bool runs(int number)
{
    autofree char *path = xprintf("%s/started-%d", rig.folder, number);
    autofree char *text = NULL;
    return file_read(path, 4096, &text, NULL, NULL) && kill((pid_t)strtol(text, NULL, 10), 0) == 0;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static bool first_is_ready(void)
{
    return told(0, "ready", NULL) == 1;
}

START_TEST(what_is_desired_is_fetched_built_and_told)
{
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(first_is_ready);
    ck_assert_uint_eq(times_started(0), 1);
}
END_TEST

static bool is_ready_twice(void)
{
    if (stage == 0 && first_is_ready()) {
        stagings_set(stagings, NULL, 0, clock_boot_ms());
        stagings_set(stagings, wanted, 1, clock_boot_ms());
        stage = 1;
    }
    return told(0, "ready", NULL) == 2;
}

START_TEST(what_is_ready_already_is_told_at_once)
{
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(is_ready_twice);
    ck_assert_uint_eq(times_started(0), 1);
}
END_TEST

static bool first_failed(void)
{
    return told(0, "failed", NULL) == 1;
}

START_TEST(a_failure_is_told_with_its_text_and_whose_it_is)
{
    set_script("echo '{\"failed\": \"no such thing\", \"by_user\": true}'; exit 1\n");
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(first_failed);
    ck_assert_uint_eq(told(0, "failed", "no such thing"), 1);
    ck_assert_ptr_nonnull(strstr(rig.requests[rig.request_count - 1].body.bytes, "\"by_user\":true"));
}
END_TEST

START_TEST(a_builder_that_ends_without_a_word_is_a_failure_of_the_node)
{
    set_script("echo 'it went wrong' >&2; kill -9 $$\n");
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(first_failed);
    ck_assert_uint_eq(told(0, "failed", "was killed by signal 9"), 1);
    ck_assert_uint_eq(told(0, "failed", "it went wrong"), 1);
    ck_assert_ptr_null(strstr(rig.requests[rig.request_count - 1].body.bytes, "\"by_user\":true"));
}
END_TEST

START_TEST(a_build_that_took_too_much_memory_says_so)
{
    ran_out = true;
    set_script("kill -9 $$\n");
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(first_failed);
    ck_assert_uint_eq(told(0, "failed", "more memory than it may"), 1);
}
END_TEST

START_TEST(a_blob_that_is_not_to_be_had_is_a_failure_of_the_node)
{
    struct staging desired;
    autofree char *nowhere = xstrdup(hashes[0]);
    nowhere[0] = nowhere[0] == 'f' ? '0' : 'f';
    ck_assert(staging_decode(json_pack("{s:s, s:[s]}", "key", hashes[0], "blobs", nowhere), &desired, NULL));
    stagings_set(stagings, &desired, 1, clock_boot_ms());
    staging_finish(&desired);
    run_until(first_failed);
    ck_assert_uint_eq(told(0, "failed", "cannot be fetched"), 1);
}
END_TEST

static bool it_is_gone_after_progress(void)
{
    if (stage == 0 && told(0, "building", "Installing torch") == 1) {
        ck_assert(runs(0));
        stagings_set(stagings, NULL, 0, clock_boot_ms());
        stage = 1;
    }
    return stage == 1 && !runs(0);
}

START_TEST(progress_is_told_and_what_is_not_desired_any_more_is_killed)
{
    set_script("echo '{\"text\": \"Installing torch\"}'; sleep 600 & wait\n");
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(it_is_gone_after_progress);
    ck_assert_uint_eq(told(0, "ready", NULL) + told(0, "failed", NULL), 0);
}
END_TEST

static bool two_run_and_others_wait(void)
{
    return has_started(0) && has_started(1) && told(2, "building", "waits for other") == 1 &&
           told(3, "building", "waits for other") == 1;
}

START_TEST(a_few_are_built_at_once_and_the_others_say_that_they_wait)
{
    set_script("sleep 600 & wait\n");
    stagings_set(stagings, wanted, STAGINGS, clock_boot_ms());
    run_until(two_run_and_others_wait);
    ck_assert(!has_started(2) && !has_started(3));
}
END_TEST

static bool all_are_ready(void)
{
    return told(-1, "ready", NULL) == STAGINGS;
}

START_TEST(those_that_wait_have_their_turn)
{
    stagings_set(stagings, wanted, STAGINGS, clock_boot_ms());
    run_until(all_are_ready);
    autofree char *path = rig_path("held");
    autofree char *text = NULL;
    ck_assert(file_read(path, 4096, &text, NULL, NULL));
    ck_assert_ptr_nonnull(strstr(text, "--hold cgroup 0 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "--hold cgroup 1 1\n"));
    ck_assert_uint_eq(most_held, LIMIT_BUILDS);
    ck_assert_uint_eq(held, 0);
}
END_TEST

static bool both_are_ready(void)
{
    return told(-1, "ready", NULL) == 2;
}

START_TEST(needs_with_the_same_environment_share_one_build)
{
    struct staging both[2] = {wanted[0]};
    ck_assert(staging_decode(json_pack("{s:s, s:s, s:[s, s]}", "key", hashes[1], "requirements", hashes[0],
                                       "blobs", hashes[0], hashes[1]),
                             &both[1], NULL));
    set_script("sleep 0.1; ready\n");
    stagings_set(stagings, both, 2, clock_boot_ms());
    staging_finish(&both[1]);
    run_until(both_are_ready);
    ck_assert_uint_eq(times_started(0), 1);
}
END_TEST

static bool is_told_to_one_who_knows(void)
{
    if (stage == 0 && strangers == 1) {
        ck_assert_uint_eq(told(0, "ready", NULL), 1);
        stagings_set(stagings, wanted, 1, clock_boot_ms());
        stage = 1;
    }
    return told(0, "ready", NULL) == 2;
}

START_TEST(a_report_to_one_who_does_not_know_this_node_is_told_again_after_the_next_desired)
{
    refuse = 404;
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    run_until(is_told_to_one_who_knows);
    ck_assert_uint_eq(times_started(0), 1);
}
END_TEST

/* It is ordered without end; before the answer to the report that is no new order. */
static bool failed_twice(void)
{
    stagings_set(stagings, wanted, 1, clock_boot_ms());
    return told(0, "failed", NULL) == 2;
}

START_TEST(a_failure_that_was_told_and_is_desired_again_is_tried_again)
{
    set_script("echo '{\"failed\": \"not now\", \"by_user\": false}'\n");
    run_until(failed_twice);
    ck_assert_uint_ge(times_started(0), 2);
}
END_TEST

static bool desired_often_after_it_failed(void)
{
    stagings_set(stagings, wanted, 1, 0);
    stage += told(0, "failed", NULL) > 0;
    return stage == 40;
}

START_TEST(a_desired_that_was_asked_for_before_the_end_was_told_is_no_new_one)
{
    set_script("echo '{\"failed\": \"not now\", \"by_user\": false}'\n");
    run_until(desired_often_after_it_failed);
    ck_assert_uint_eq(times_started(0), 1);
    ck_assert_uint_eq(told(0, "failed", NULL), 1);
}
END_TEST

Suite *stagings_suite(void)
{
    Suite *suite = suite_create("stagings");
    TCase *tcase = tcase_create("stagings");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_desired_is_fetched_built_and_told);
    tcase_add_test(tcase, what_is_ready_already_is_told_at_once);
    tcase_add_test(tcase, a_failure_is_told_with_its_text_and_whose_it_is);
    tcase_add_test(tcase, a_builder_that_ends_without_a_word_is_a_failure_of_the_node);
    tcase_add_test(tcase, a_build_that_took_too_much_memory_says_so);
    tcase_add_test(tcase, a_blob_that_is_not_to_be_had_is_a_failure_of_the_node);
    tcase_add_test(tcase, progress_is_told_and_what_is_not_desired_any_more_is_killed);
    tcase_add_test(tcase, a_few_are_built_at_once_and_the_others_say_that_they_wait);
    tcase_add_test(tcase, those_that_wait_have_their_turn);
    tcase_add_test(tcase, needs_with_the_same_environment_share_one_build);
    tcase_add_test(tcase, a_report_to_one_who_does_not_know_this_node_is_told_again_after_the_next_desired);
    tcase_add_test(tcase, a_failure_that_was_told_and_is_desired_again_is_tried_again);
    tcase_add_test(tcase, a_desired_that_was_asked_for_before_the_end_was_told_is_no_new_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
