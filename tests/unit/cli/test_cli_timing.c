/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: the tables of `gpuctl get --timing`. */
#include "client/cli/show/timing.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"

static char *shown(const char *quoted, bool wide)
{
    struct text out = {0};
    autofree char *body = xstrdup(quoted);
    for (char *at = body; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    struct err err;
    autojson json_t *answer = json_parse(body, strlen(body), &err);
    ck_assert_msg(answer != NULL, "%s", err.text);
    timing_print(answer, wide, &out);
    return text_take(&out);
}

#define HEAD "{'id':'j1','state':'SUCCEEDED','submitted_at':'2026-11-21T09:30:00.125Z','attempts':["

/* Waiting for an hour and running for a day do not hide the start; what is not known stands in its place. */
START_TEST(a_start_is_shown_step_by_step_in_one_scale)
{
    autofree char *out = shown(
        HEAD "{'attempt':1,'state':'ENDED','moments':{'received_ms':0.000,'queued_ms':0.5,"
             "'placed_ms':3600000.5,'ordered_ms':3600001.5,'prepared_ms':null,'started_ms':3600001.4,"
             "'told_ms':null,'begun_ms':null,'ranks_started_ms':3600003.5,'running_ms':3600004,"
             "'first_output_ms':3600003.75,'ended_ms':90000000,'settled_ms':90000002.25,'visible_ms':null},"
             "'marks':[{'name':'first all-reduce','rank':0,'node':'a','at_ms':3600007.5},"
             "{'name':'first all-reduce','rank':8,'node':'b','at_ms':3600008}],"
             "'nodes':[{'node':'a','node_rank':0,'start':'warm','ordered_ms':3600001.5,'prepared_ms':null,"
             "'ranks_started_ms':3600003.5,'first_output_ms':3600003.75,'ended_ms':90000000}]}]}",
        false);
    ck_assert_str_eq(out,
                     "job j1, submitted 2026-11-21T09:30:00.125Z\n"
                     "\n"
                     "attempt 1, ENDED\n"
                     "MOMENT                      AT          TOOK                            NODE\n"
                     "received              0.000 ms             -                             \n"
                     "queued                0.500 ms      0.500 ms  ###                        \n"
                     "placed                     1 h           1 h  #######################>   \n"
                     "started                    1 h      0.900 ms  #####                      \n"
                     "ordered                    1 h      0.100 ms  #                         a\n"
                     "begun                        -             -                             \n"
                     "ranks started              1 h      2.000 ms  ############              a\n"
                     "first output               1 h      0.250 ms  ##                        a\n"
                     "running                    1 h      0.250 ms  ##                         \n"
                     "first all-reduce           1 h      4.000 ms  ########################  b\n"
                     "ended                 1 d 01 h   23 h 59 min  #######################>  a\n"
                     "settled               1 d 01 h      2.250 ms  ##############             \n"
                     "results visible              -             -                             \n"
                     "\n"
                     "NODE       ORDERED      PREPARED  RANKS STARTED  FIRST OUTPUT         ENDED  START\n"
                     "a              1 h             -           1 h            1 h      1 d 01 h  warm\n");
}
END_TEST

START_TEST(what_has_no_attempt_says_where_to_look)
{
    autofree char *waits = shown(HEAD "]}", false);
    ck_assert_str_eq(waits, "job j1, submitted 2026-11-21T09:30:00.125Z\n"
                            "no attempt yet; gpuctl explain says why it waits\n");
    autofree char *array = shown("{'id':'j1','submitted_at':'now','tasks':3,'attempts':[]}", false);
    ck_assert_str_eq(array, "job j1, submitted now\n"
                            "an array has no attempts of its own; its tasks have: ID.0, ID.1 and so on\n");
}
END_TEST

START_TEST(a_gang_that_runs_has_no_end_yet_and_wide_says_what_moments_mean)
{
    autofree char *out =
        shown(HEAD "{'attempt':2,'state':'STARTED','moments':{'received_ms':0,'ordered_ms':2},'marks':[],"
                   "'nodes':[{'node':'a','ordered_ms':1},{'node':'b\\u001b[31m','ordered_ms':2}]}]}",
              true);
    ck_assert_ptr_nonnull(strstr(out, "attempt 2, STARTED\n"));
    ck_assert_ptr_nonnull(strstr(out, "\nprepared "));
    ck_assert_ptr_nonnull(strstr(out, "\ntold "));
    ck_assert_ptr_null(strstr(out, "\nended "));
    ck_assert_ptr_nonnull(strstr(out, "the order left, to the last node"));
    ck_assert_ptr_nonnull(strstr(out, "b?[31m"));
    ck_assert_ptr_null(strchr(out, '\033'));
}
END_TEST

Suite *cli_timing_suite(void)
{
    Suite *suite = suite_create("cli-timing");
    TCase *tests = tcase_create("timing");
    tcase_add_test(tests, a_start_is_shown_step_by_step_in_one_scale);
    tcase_add_test(tests, what_has_no_attempt_says_where_to_look);
    tcase_add_test(tests, a_gang_that_runs_has_no_end_yet_and_wide_says_what_moments_mean);
    suite_add_tcase(suite, tests);
    return suite;
}
