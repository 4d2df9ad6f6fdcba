/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/states: each list spells one to one, and the facts of the lists. */
#include <signal.h>
#include <string.h>

#include "proto/states.h"
#include "tests/unit/proto/proto_suites.h"

/* Every value of a list has a spelling of its own that leads back to it. */
#define ASSERT_ONE_TO_ONE(type, count)                                                                       \
    do {                                                                                                     \
        for (int i = 0; i < (int)(count); i++) {                                                             \
            enum type value = (enum type)((i + 1) % (int)(count));                                           \
            ck_assert(type##_from_text(type##_text((enum type)i), &value));                                  \
            ck_assert_int_eq(value, i);                                                                      \
        }                                                                                                    \
    } while (0)

START_TEST(every_spelling_leads_back_to_its_value)
{
    ASSERT_ONE_TO_ONE(job_state, JOB_STATE_COUNT);
    ASSERT_ONE_TO_ONE(attempt_state, ATTEMPT_STATE_COUNT);
    ASSERT_ONE_TO_ONE(member_state, MEMBER_STATE_COUNT);
    ASSERT_ONE_TO_ONE(node_state, NODE_STATE_COUNT);
    ASSERT_ONE_TO_ONE(cause, CAUSE_COUNT);
    ASSERT_ONE_TO_ONE(event_kind, EVENT_KIND_COUNT);
    ASSERT_ONE_TO_ONE(order_phase, ORDER_PHASE_COUNT);
    ASSERT_ONE_TO_ONE(report_kind, REPORT_KIND_COUNT);
    ASSERT_ONE_TO_ONE(staging_state, STAGING_STATE_COUNT);
    ASSERT_ONE_TO_ONE(role, ROLE_COUNT);
    ASSERT_ONE_TO_ONE(launch_mode, LAUNCH_MODE_COUNT);
    ASSERT_ONE_TO_ONE(on_disconnect, ON_DISCONNECT_COUNT);
    ASSERT_ONE_TO_ONE(stream, STREAM_COUNT);
    ASSERT_ONE_TO_ONE(result_kind, RESULT_KIND_COUNT);
    ASSERT_ONE_TO_ONE(pool_kind, POOL_KIND_COUNT);
    ASSERT_ONE_TO_ONE(use_reserved, USE_RESERVED_COUNT);
    ASSERT_ONE_TO_ONE(isolation, ISOLATION_COUNT);
    ASSERT_ONE_TO_ONE(confidence, CONFIDENCE_COUNT);
    ASSERT_ONE_TO_ONE(wait_reason, WAIT_REASON_COUNT);
    ASSERT_ONE_TO_ONE(node_test, NODE_TEST_COUNT);
    ASSERT_ONE_TO_ONE(account_kind, ACCOUNT_KIND_COUNT);
}
END_TEST

START_TEST(spellings_that_others_depend_on_stay)
{
    ck_assert_str_eq(job_state_text(JOB_TIMED_OUT), "TIMED_OUT");
    ck_assert_str_eq(attempt_state_text(ATTEMPT_RESERVED), "RESERVED");
    ck_assert_str_eq(member_state_text(MEMBER_FLUSHED), "FLUSHED");
    ck_assert_str_eq(node_state_text(NODE_SUSPECT), "SUSPECT");
    ck_assert_str_eq(cause_text(CAUSE_RANK_FAILED), "RANK_FAILED");
    ck_assert_str_eq(cause_text(CAUSE_RESULT_MISSING), "RESULT_MISSING");
    ck_assert_str_eq(cause_text(CAUSE_STAGE_FAILED), "STAGE_FAILED");
    ck_assert_str_eq(event_kind_text(EVENT_CANCEL_ASKED), "cancel_asked");
    ck_assert_str_eq(event_kind_text(EVENT_STAGING), "staging");
    ck_assert_str_eq(event_kind_text(EVENT_STAGED), "staged");
    ck_assert_str_eq(staging_state_text(STAGING_BUILDING), "building");
    ck_assert_str_eq(order_phase_text(ORDER_RUN), "run");
    ck_assert_str_eq(report_kind_text(REPORT_EXITED), "exited");
    ck_assert_str_eq(role_text(ROLE_ADMIN), "admin");
    ck_assert_str_eq(launch_mode_text(LAUNCH_PROCESS), "process");
    ck_assert_str_eq(on_disconnect_text(ON_DISCONNECT_KEEP), "keep");
    ck_assert_str_eq(stream_text(STREAM_STDERR), "stderr");
    ck_assert_str_eq(stream_text(STREAM_METRICS), "metrics");
    ck_assert_str_eq(result_kind_text(RESULT_VALUE), "value");
    ck_assert_str_eq(result_kind_text(RESULT_EXCEPTION), "exception");
    ck_assert_str_eq(pool_kind_text(POOL_ON_DEMAND), "on-demand");
    ck_assert_str_eq(use_reserved_text(USE_RESERVED_AUTO), "auto");
    ck_assert_str_eq(isolation_text(ISOLATION_CGROUP2), "cgroup2");
}
END_TEST

START_TEST(another_spelling_is_refused_and_leaves_the_value_alone)
{
    static const char *const wrong[] = {"", "queued", "QUEUED ", "QUEUE", "QUEUEDD", "none"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        enum job_state state = JOB_FAILED;
        ck_assert_msg(!job_state_from_text(wrong[i], &state), "%s", wrong[i]);
        ck_assert_int_eq(state, JOB_FAILED);
    }
}
END_TEST

START_TEST(a_job_is_terminal_in_four_states)
{
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        ck_assert_msg(job_state_terminal((enum job_state)i) == (i >= JOB_SUCCEEDED), "%d", i);
    }
}
END_TEST

START_TEST(gpus_are_free_only_at_ended)
{
    for (int i = 0; i < ATTEMPT_STATE_COUNT; i++) {
        ck_assert_msg(attempt_state_holds_gpus((enum attempt_state)i) == (i != ATTEMPT_ENDED), "%d", i);
    }
}
END_TEST

START_TEST(eight_causes_are_the_fault_of_the_user)
{
    for (int i = 0; i < CAUSE_COUNT; i++) {
        bool user = i == CAUSE_RANK_FAILED || i == CAUSE_OUT_OF_MEMORY || i == CAUSE_EXEC_FAILED ||
                    i == CAUSE_RESULT_MISSING || i == CAUSE_TIME_LIMIT || i == CAUSE_STAGE_FAILED ||
                    i == CAUSE_DEPENDENCY || i == CAUSE_TASK_FAILED;
        ck_assert_msg(cause_user_fault((enum cause)i) == user, "%s", cause_text((enum cause)i));
    }
}
END_TEST

START_TEST(metrics_and_files_are_no_output)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        bool output = i != STREAM_METRICS && i != STREAM_FILES;
        ck_assert_msg(stream_is_output((enum stream)i) == output, "%d", i);
    }
}
END_TEST

START_TEST(each_cause_has_a_sentence_for_people)
{
    ck_assert_str_eq(cause_sentence(CAUSE_NODE_LOST), "a node was lost");
    for (int i = 0; i < CAUSE_COUNT; i++) {
        ck_assert_int_gt((int)strlen(cause_sentence((enum cause)i)), 0);
    }
}
END_TEST

START_TEST(a_value_outside_its_list_aborts)
{
    job_state_text(JOB_STATE_COUNT);
}
END_TEST

Suite *states_suite(void)
{
    Suite *suite = suite_create("states");
    TCase *cases = tcase_create("lists");
    tcase_add_test(cases, every_spelling_leads_back_to_its_value);
    tcase_add_test(cases, spellings_that_others_depend_on_stay);
    tcase_add_test(cases, another_spelling_is_refused_and_leaves_the_value_alone);
    tcase_add_test(cases, a_job_is_terminal_in_four_states);
    tcase_add_test(cases, gpus_are_free_only_at_ended);
    tcase_add_test(cases, eight_causes_are_the_fault_of_the_user);
    tcase_add_test(cases, metrics_and_files_are_no_output);
    tcase_add_test(cases, each_cause_has_a_sentence_for_people);
    tcase_add_test_raise_signal(cases, a_value_outside_its_list_aborts, SIGABRT);
    suite_add_tcase(suite, cases);
    return suite;
}
