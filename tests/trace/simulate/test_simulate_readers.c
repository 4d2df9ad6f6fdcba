/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of traces: what is read of each, what is left out, what is refused, and CSV as it is written. */
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/trace.h"
#include "proto/base/cleanup.h"
#include "tests/trace/suites.h"

static struct trace trace;
static struct err err;

static bool read_text(const char *text)
{
    trace_finish(&trace);
    err = (struct err){0};
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    ck_assert_ptr_nonnull(in);
    bool good = trace_read(in, "trace", &trace, &err);
    fclose(in);
    return good;
}

static void expect_read(const char *text, size_t count)
{
    ck_assert_msg(read_text(text), "%s", err.text);
    ck_assert_uint_eq(trace.count, count);
}

static void finish(void)
{
    trace_finish(&trace);
}

static void expect_refused(const char *text, const char *field, const char *where)
{
    ck_assert(!read_text(text));
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.text, where) != NULL, "%s", err.text);
}

static void expect_text(const char *text, const char *expected)
{
    if (expected == NULL) {
        ck_assert_ptr_null(text);
    } else {
        ck_assert_str_eq(text, expected);
    }
}

/* --- CSV --- */

START_TEST(columns_of_csv_are_found_by_their_names_and_jobs_sorted_by_submission)
{
    expect_read("gpus,job_id,submit_s,gpu_type,duration_s\n"
                "2,c,30.5,,1\n"
                "0.25,a,10,A10,2\n"
                "1,b,10,,3\n"
                "0,never,1,,5\n"
                "1,never,1,,-1\n",
                3);
    ck_assert_int_eq(trace.jobs[0].gpus, 1); /* a share counts as a whole GPU */
    expect_text(trace.jobs[0].gpu_type, "A10");
    ck_assert_int_eq(trace.jobs[1].duration_ms, 3000); /* of the same moment: as they stood */
    expect_text(trace.jobs[1].gpu_type, NULL);
    ck_assert_int_eq(trace.jobs[2].submit_ms, 30500);
    ck_assert_int_eq(trace.jobs[2].limit_ms, 0);
    expect_text(trace.jobs[2].owner, NULL);
    ck_assert_uint_eq(trace.without_gpus, 1);
    ck_assert_uint_eq(trace.not_run, 1);
}
END_TEST

START_TEST(who_and_what_a_job_was_has_the_names_that_published_traces_use)
{
    expect_read("submit_s,duration_s,gpus,user,vc_or_queue,model,priority,time_limit_s\n"
                "0,1,1,ann,vision,vgg16,-3,90.5\n"
                "1,1,1,,,,LS,\n"
                "2,1,1,bob,nlp,bert,2.5,-1\n",
                3);
    expect_text(trace.jobs[0].owner, "ann");
    expect_text(trace.jobs[0].project, "vision");
    expect_text(trace.jobs[0].name, "vgg16");
    ck_assert_int_eq(trace.jobs[0].priority, -3);
    ck_assert_int_eq(trace.jobs[0].limit_ms, 90500);
    expect_text(trace.jobs[1].project, NULL);
    ck_assert_int_eq(trace.jobs[1].priority, 0);
    ck_assert_int_eq(trace.jobs[2].priority, 0);
    ck_assert_int_eq(trace.jobs[2].limit_ms, 0);
    expect_read(
        "\xef\xbb\xbfUSER,owner,Project,queue,submit_s,duration_s,gpus,limit_s\r\nu,o,p,q,0,1,1,7\r\n", 1);
    expect_text(trace.jobs[0].owner, "o"); /* our own names come first, capitals do not matter */
    expect_text(trace.jobs[0].project, "p");
    ck_assert_int_eq(trace.jobs[0].limit_ms, 7000);
}
END_TEST

START_TEST(quoted_fields_may_hold_commas_and_quotes)
{
    expect_read("name,submit_s,duration_s,gpus,user\n\"a, \"\"b\"\"\",0,1,1,\"c\"\n\"\",0,1,1,\"open\n", 2);
    expect_text(trace.jobs[0].name, "a, \"b\"");
    expect_text(trace.jobs[0].owner, "c");
    expect_text(trace.jobs[1].name, NULL);
    expect_text(trace.jobs[1].owner, "open");
}
END_TEST

START_TEST(what_cannot_be_understood_in_csv_is_named_with_its_line)
{
    expect_refused("submit_s,gpus\n1,1\n", "duration_s", "trace:1: there is no column duration_s");
    ck_assert_ptr_nonnull(strstr(err.hint, "submit_s,duration_s,gpus"));
    expect_refused("submit_s,duration_s,gpus\n1,2,3\n1,soon,3\n", "duration_s", "trace:3: ");
    expect_refused("submit_s,duration_s,gpus\n1,nan,3\n", "duration_s", "trace:2: ");
    expect_refused("submit_s,duration_s,gpus\n1,,3\n", "duration_s", "trace:2: duration_s is empty");
    expect_refused("submit_s,duration_s,gpus\n1,2\n", "line", "too few");
    expect_refused("submit_s,duration_s,gpus,time_limit_s\n1,2,3,UNLIMITED\n", "time_limit_s", "trace:2: ");
    expect_refused("submit_s,duration_s,gpus\n", "trace", "no job");
    expect_refused("", "trace", "no job");
}
END_TEST

START_TEST(priorities_beyond_ours_are_brought_into_our_range_in_proportion)
{
    expect_read("submit_s,duration_s,gpus,priority\n0,1,1,4000\n1,1,1,-1000\n2,1,1,1\n", 3);
    ck_assert_int_eq(trace.jobs[0].priority, 1000);
    ck_assert_int_eq(trace.jobs[1].priority, -250);
    ck_assert_int_eq(trace.jobs[2].priority, 0);
    expect_read("submit_s,duration_s,gpus,priority\n0,1,1,1000\n1,1,1,7\n", 2);
    ck_assert_int_eq(trace.jobs[1].priority, 7);
}
END_TEST

START_TEST(what_is_written_as_csv_is_read_back)
{
    expect_read("submit_s,duration_s,gpus,gpu_type,owner,project,name,priority,limit_s\n"
                "0.25,3600,8,A10,ann,\"a,b\",\"say \"\"x\"\"\",-5,7200.5\n"
                "-1.5,0,1,,,,,0,\n",
                2);
    autotext struct text first = {0}, second = {0};
    trace_write(&trace, &first);
    ck_assert_str_eq(first.bytes, "submit_s,duration_s,gpus,gpu_type,owner,project,name,priority,limit_s\n"
                                  "-1.5,0,1,,,,,0,\n"
                                  "0.25,3600,8,A10,ann,\"a,b\",\"say \"\"x\"\"\",-5,7200.5\n");
    expect_read(first.bytes, 2);
    trace_write(&trace, &second);
    ck_assert_str_eq(second.bytes, first.bytes);
}
END_TEST

START_TEST(a_name_with_a_line_end_stays_in_its_line)
{
    struct trace made = {0};
    autotext struct text csv = {0};
    trace_add(&made, &(struct trace_job){.gpus = 1, .name = xstrdup("a\nb")});
    trace_write(&made, &csv);
    trace_finish(&made);
    expect_read(csv.bytes, 1);
    expect_text(trace.jobs[0].name, "a b");
}
END_TEST

/* --- SWF --- */

START_TEST(the_standard_workload_format_is_read_without_its_comments)
{
    expect_read("; Computer: iPSC\n"
                "  1  100  7  60  8 -1 -1  8 90 -1 1 3 1 12 2 -1 -1 -1\n"
                "  2  160  0  30 -1 -1 -1  4 -1 -1 1 -1 1 -1 -1 -1 -1 -1\n"
                "  3  170  0  -1  4 -1 -1  4 -1 -1 5 3 1 1 1 -1 -1 -1\n"
                "  4  170  0  9  4\n",
                3); /* the third was canceled before it ran */
    ck_assert_int_eq(trace.jobs[0].submit_ms, 100000);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 60000);
    ck_assert_int_eq(trace.jobs[0].gpus, 8);
    ck_assert_int_eq(trace.jobs[0].limit_ms, 90000);
    expect_text(trace.jobs[0].owner, "3");
    expect_text(trace.jobs[0].name, "12");
    expect_text(trace.jobs[0].project, "2");
    ck_assert_int_eq(trace.jobs[1].gpus, 4); /* as was asked for */
    ck_assert_int_eq(trace.jobs[1].limit_ms, 0);
    expect_text(trace.jobs[1].owner, NULL);
    expect_text(trace.jobs[1].name, NULL);
    expect_text(trace.jobs[1].project, NULL);
    ck_assert_uint_eq(trace.not_run, 1);
}
END_TEST

START_TEST(what_cannot_be_understood_in_swf_is_named_with_its_line)
{
    expect_refused("1 2 3 4 5\n1 2 3\n", "line", "trace:2: line has too few fields");
    expect_refused("1 2 3 4 5\n1 2 3 4 x\n", "gpus", "trace:2: gpus is not a number");
    expect_refused("1 2 3 4 5 6 7 8 9\n1 2 3 4 5 6 7 8 1e99\n", "limit_s", "trace:2: limit_s");
}
END_TEST

/* --- sacct --- */

#define HEADER                                                                                               \
    "JobID|User|Account|JobName|Submit|Start|End|ElapsedRaw|Timelimit|AllocTRES|ReqTRES|State|Priority\n"

START_TEST(what_sacct_prints_is_read_with_types_limits_and_owners)
{
    expect_read(
        HEADER
        "12|ann|vision|train, v2|2026-11-21T09:30:00|2026-11-21T09:31:00|2026-11-21T10:31:00|3600|1-02:03:04|"
        "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,gres/gpuutil=90,mem=64G,node=1|gres/"
        "gpu=2|COMPLETED|4294\n"
        "12.batch||vision|batch|2026-11-21T09:31:00|2026-11-21T09:31:00|2026-11-21T10:31:00|3600||"
        "cpu=8,gres/gpu=4||COMPLETED|\n"
        "13_2|bob||x|2026-11-21T09:30:01|2026-11-21T09:31:00|2026-11-21T10:31:00|60|UNLIMITED||gres/"
        "gpu:h100=16|"
        "CANCELLED by 1001|2147\n"
        "14+1|bob||x|1795253400|Unknown|Unknown|5|Partition_Limit|gres/gpu:t4=1,gres/gpu:v100=2||FAILED|\n",
        3);
    ck_assert_int_eq(trace.jobs[0].submit_ms, 1795253400000); /* both spellings of one moment */
    ck_assert_int_eq(trace.jobs[1].submit_ms, 1795253400000);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 3600000);
    ck_assert_int_eq(trace.jobs[0].gpus, 4);
    expect_text(trace.jobs[0].gpu_type, "a100");
    expect_text(trace.jobs[0].owner, "ann");
    expect_text(trace.jobs[0].project, "vision");
    expect_text(trace.jobs[0].name, "train, v2");
    ck_assert_int_eq(trace.jobs[0].limit_ms, (((24 + 2) * 60 + 3) * 60 + 4) * 1000LL);
    ck_assert_int_eq(trace.jobs[0].priority, 1000);
    ck_assert_int_eq(trace.jobs[2].gpus, 16); /* as it was asked for */
    expect_text(trace.jobs[2].gpu_type, "h100");
    ck_assert_int_eq(trace.jobs[2].priority, 500);
    ck_assert_int_eq(trace.jobs[2].limit_ms, 0);
    ck_assert_int_eq(trace.jobs[1].gpus, 3); /* of two types: of no one type */
    expect_text(trace.jobs[1].gpu_type, NULL);
    ck_assert_int_eq(trace.jobs[1].limit_ms, 0);
}
END_TEST

START_TEST(jobs_of_sacct_without_gpus_or_without_an_end_are_left_out)
{
    expect_read("State|AllocTRES|Elapsed|Submit|JobID|\n"
                "COMPLETED|cpu=1,gres/gpumem=1G|00:01:00|0|1|\n"
                "PENDING|gres/gpu=1|00:00:00|0|2_[5-10%2]|\n"
                "RUNNING|gres/gpu=1|01:00:00|0|3|\n"
                "CANCELLED by 7|gres/gpu=1|00:00:00|0|4|\n"
                "CANCELLED+|gres/gpu=1|02:30|0|5|\n"
                "FAILED|gres/gpu=1|00:00:00|0|6|\n"
                "COMPLETED|gres/gpu=0|00:01:00|0|7|\n"
                "COMPLETED|gres/gpu=1||0|8|\n"
                "TIMEOUT|gres/gpu=1|2-00:00:01|0|9|\n",
                3);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 150000);
    ck_assert_int_eq(trace.jobs[1].duration_ms, 0);
    ck_assert_int_eq(trace.jobs[2].duration_ms, 2 * 86400000LL + 1000);
    ck_assert_uint_eq(trace.without_gpus, 2);
    ck_assert_uint_eq(trace.not_run, 4);
}
END_TEST

START_TEST(spans_of_sacct_come_from_whatever_it_was_asked_for)
{
    expect_read("JobID|Submit|Start|End|ReqTRES|TimelimitRaw\n"
                "1|5|2026-11-21T09:30:00|2026-11-21T09:30:07|gres/gpu=1|90\n"
                "2|6|10|20|gres/gpu=1|UNLIMITED\n"
                "3|7|10|Unknown|gres/gpu=1|\n",
                2);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 7000);
    ck_assert_int_eq(trace.jobs[0].limit_ms, 90 * 60000);
    ck_assert_int_eq(trace.jobs[1].duration_ms, 10000);
    ck_assert_int_eq(trace.jobs[1].limit_ms, 0);
    expect_read("JobID|Submit|Elapsed|ElapsedRaw|ReqTRES\n1|5|00:00:09|11|gres/gpu=1\n", 1);
    ck_assert_int_eq(trace.jobs[0].duration_ms, 11000);
}
END_TEST

START_TEST(what_cannot_be_understood_of_sacct_is_named_with_its_line)
{
    static const char head[] = "JobID|Submit|Elapsed|AllocTRES|Timelimit\n";
    static const struct {
        const char *line, *field;
    } wrong[] = {
        {"1|soon|00:01:00|gres/gpu=1|", "Submit"},
        {"1|2026-11-21T09:30|00:01:00|gres/gpu=1|", "Submit"},
        {"1|2026-11-21T09:30:00Z|00:01:00|gres/gpu=1|", "Submit"},
        {"1||00:01:00|gres/gpu=1|", "Submit"},
        {"1|Unknown|00:01:00|gres/gpu=1|", "Submit"},
        {"1|0|60|gres/gpu=1|", "Elapsed"},
        {"1|0|1-00:01|gres/gpu=1|", "Elapsed"},
        {"1|0|1:2:3:4|gres/gpu=1|", "Elapsed"},
        {"1|0|x-01:02:03|gres/gpu=1|", "Elapsed"},
        {"1|0|00:01:00|gres/gpu=|", "AllocTRES"},
        {"1|0|00:01:00|gres/gpu:a100|", "AllocTRES"},
        {"1|0|00:01:00|gres/gpu=-1|", "AllocTRES"},
        {"1|0|00:01:00|gres/gpu=1|forever", "Timelimit"},
        {"|0|00:01:00|gres/gpu=1|", "JobID"},
        {"1|0|00:01:00|gres/gpu=1", "line"},
        {"1|0|00:01:00|gres/gpu=1||", "line"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        autofree char *text = xprintf("%s%s\n", head, wrong[i].line);
        expect_refused(text, wrong[i].field, "trace:2: ");
    }
}
END_TEST

START_TEST(columns_that_sacct_must_have_been_asked_for_are_named_with_the_command)
{
    expect_refused("User|Submit|Elapsed|AllocTRES\n", "JobID", "trace:1: there is no column JobID");
    ck_assert_ptr_nonnull(strstr(err.hint, "sacct --allusers --parsable2 --format=JobID,"));
    expect_refused("JobID|Elapsed|AllocTRES\n", "Submit", "trace:1: ");
    expect_refused("JobID|Submit|Start|AllocTRES\n", "Elapsed", "trace:1: ");
    expect_refused("JobID|Submit|Start|End\n", "AllocTRES", "trace:1: ");
    expect_refused("JobID|Submit|Elapsed|AllocTRES\n1|0|00:01:00|cpu=1\n", "trace", "no job that ran");
    ck_assert_ptr_nonnull(strstr(err.hint, "AccountingStorageTRES"));
}
END_TEST

Suite *simulate_reader_suite(void)
{
    Suite *suite = suite_create("simulate-readers");
    TCase *tests = tcase_create("simulate-readers");
    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, columns_of_csv_are_found_by_their_names_and_jobs_sorted_by_submission);
    tcase_add_test(tests, who_and_what_a_job_was_has_the_names_that_published_traces_use);
    tcase_add_test(tests, quoted_fields_may_hold_commas_and_quotes);
    tcase_add_test(tests, what_cannot_be_understood_in_csv_is_named_with_its_line);
    tcase_add_test(tests, priorities_beyond_ours_are_brought_into_our_range_in_proportion);
    tcase_add_test(tests, what_is_written_as_csv_is_read_back);
    tcase_add_test(tests, a_name_with_a_line_end_stays_in_its_line);
    tcase_add_test(tests, the_standard_workload_format_is_read_without_its_comments);
    tcase_add_test(tests, what_cannot_be_understood_in_swf_is_named_with_its_line);
    tcase_add_test(tests, what_sacct_prints_is_read_with_types_limits_and_owners);
    tcase_add_test(tests, jobs_of_sacct_without_gpus_or_without_an_end_are_left_out);
    tcase_add_test(tests, spans_of_sacct_come_from_whatever_it_was_asked_for);
    tcase_add_test(tests, what_cannot_be_understood_of_sacct_is_named_with_its_line);
    tcase_add_test(tests, columns_that_sacct_must_have_been_asked_for_are_named_with_the_command);
    suite_add_tcase(suite, tests);
    return suite;
}
