/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/trace_context: what is a traceparent, and that ids are the same again. */
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/trace_context.h"
#include "tests/unit/proto/proto_suites.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static void assert_reads_as(const char *text, const char *expected)
{
    struct trace_parent parent;
    char written[TRACE_PARENT_BYTES];
    ck_assert_msg(trace_parent_read(text, &parent), "%s", text);
    trace_parent_write(&parent, written);
    ck_assert_str_eq(written, expected);
}

START_TEST(a_traceparent_is_read_and_written_in_version_00)
{
    assert_reads_as("00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01");
    assert_reads_as("00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00");
    assert_reads_as("00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-01");
    assert_reads_as("cc-" TRACE "-" SPAN "-02", "00-" TRACE "-" SPAN "-00");
    assert_reads_as("cc-" TRACE "-" SPAN "-01-more", "00-" TRACE "-" SPAN "-01");
}
END_TEST

START_TEST(anything_else_is_no_traceparent)
{
    static const char *const wrong[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-1",
        "00-" TRACE "-" SPAN "-0g",
        "00-" TRACE "-" SPAN "-01 ",
        "00-" TRACE "-" SPAN "-01-more",
        "cc-" TRACE "-" SPAN "-01more",
        "ff-" TRACE "-" SPAN "-01",
        "0-" TRACE "-" SPAN "-001",
        "00_" TRACE "_" SPAN "_01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        " 00-" TRACE "-" SPAN "-01",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct trace_parent parent = {.sampled = true, .trace = {7}};
        ck_assert_msg(!trace_parent_read(wrong[i], &parent), "%s", wrong[i]);
        ck_assert_int_eq(parent.trace[0], 7);
    }
}
END_TEST

START_TEST(a_tracestate_is_a_list_that_is_not_too_long)
{
    char longest[LIMIT_TRACE_STATE + 2];
    memset(longest, 'x', sizeof longest);
    longest[1] = '=';
    longest[LIMIT_TRACE_STATE] = '\0';
    ck_assert(trace_state_is_sound("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
    ck_assert(trace_state_is_sound(longest));
    longest[LIMIT_TRACE_STATE] = 'x';
    longest[LIMIT_TRACE_STATE + 1] = '\0';
    ck_assert(!trace_state_is_sound(longest));
    ck_assert(!trace_state_is_sound(""));
    ck_assert(!trace_state_is_sound("list"));
    ck_assert(!trace_state_is_sound("a=b\tc"));
    ck_assert(!trace_state_is_sound("a=\xc3\xa9"));
}
END_TEST

START_TEST(ids_are_the_same_for_the_same_span_and_differ_for_others)
{
    uint8_t a[TRACE_ID_BYTES], b[TRACE_ID_BYTES], spans[5][SPAN_ID_BYTES];
    trace_id_of_job("aaaaaaaaaaaaaaaa", a);
    trace_id_of_job("aaaaaaaaaaaaaaaa", b);
    ck_assert_mem_eq(a, b, sizeof a);
    trace_id_of_job("aaaaaaaaaaaaaaab", b);
    ck_assert_mem_ne(a, b, sizeof a);
    trace_span_id("aaaaaaaaaaaaaaaa", "run", 1, 12, spans[0]);
    trace_span_id("aaaaaaaaaaaaaaaa", "run", 1, 12, spans[1]);
    ck_assert_mem_eq(spans[0], spans[1], SPAN_ID_BYTES);
    trace_span_id("aaaaaaaaaaaaaaaa", "run", 11, 2, spans[1]);
    trace_span_id("aaaaaaaaaaaaaaaa", "start", 1, 12, spans[2]);
    trace_span_id("aaaaaaaaaaaaaaab", "run", 1, 12, spans[3]);
    trace_span_id("aaaaaaaaaaaaaaaa", "run", 1, 13, spans[4]);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_mem_ne(spans[i], spans[j], SPAN_ID_BYTES);
        }
    }
}
END_TEST

Suite *trace_context_suite(void)
{
    Suite *suite = suite_create("trace_context");
    TCase *cases = tcase_create("contexts");
    tcase_add_test(cases, a_traceparent_is_read_and_written_in_version_00);
    tcase_add_test(cases, anything_else_is_no_traceparent);
    tcase_add_test(cases, a_tracestate_is_a_list_that_is_not_too_long);
    tcase_add_test(cases, ids_are_the_same_for_the_same_span_and_differ_for_others);
    suite_add_tcase(suite, cases);
    return suite;
}
