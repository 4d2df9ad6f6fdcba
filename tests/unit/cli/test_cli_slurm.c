/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: the tables, lists of nodes, states and reasons of Slurm's commands. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/slurm/commands/commands.h"
#include "client/cli/slurm/commands/format.h"
#include "client/cli/slurm/commands/job_states.h"
#include "client/cli/slurm/commands/node_list.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/unit/cli/cli_suites.h"

/* --- formats --- */

static void show_name(const json_t *row, struct text *out)
{
    text_append(out, json_string_of(row, "name"));
}

static void show_number(const json_t *row, struct text *out)
{
    text_append_int(out, json_integer_value(json_object_get(row, "number")));
}

static const struct format_column columns[] = {
    {'j', "NAME", show_name}, {'n', "NUMBER", show_number}, {.code = '\0'}};

static void assert_table(const char *text, const char *table)
{
    autojson json_t *rows = json_pack("[{s:s, s:i}, {s:s, s:i}]", "name", "a\x1b[2J", "number", 7, "name",
                                      "träger", "number", 12345);
    struct format format;
    struct err err;
    autotext struct text out = {0};
    ck_assert_msg(format_parse(text, columns, &format, &err), "%s: %s", text, err.text);
    format_rows(&format, rows, true, &out);
    ck_assert_str_eq(out.bytes, table);
}

START_TEST(a_format_has_widths_sides_and_text_between)
{
    assert_table("%j|%n", "NAME|NUMBER\na?[2J|7\ntr\xc3\xa4ger|12345\n");
    assert_table("%3j %.4n.", "NAM NUMB.\na?[    7.\ntr\xc3\xa4 1234.\n");
    assert_table("<%8j>", "<NAME    >\n<a?[2J   >\n<tr\xc3\xa4ger  >\n");
    assert_table("%#.2n|", "NUMBER|\n     7|\n 12345|\n");
}
END_TEST

START_TEST(a_wrong_format_is_refused_by_its_code)
{
    struct format format;
    struct err err;
    ck_assert(!format_parse("%j %x", columns, &format, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "%x is not known"));
    ck_assert_ptr_nonnull(strstr(err.hint, "%j %n"));
    ck_assert_str_eq(err.field, "format");
    ck_assert(!format_parse("%j %", columns, &format, &err));
    ck_assert(!format_parse("%j %.", columns, &format, &err));
    ck_assert(!format_parse("name", columns, &format, &err));
    ck_assert(!format_parse("", columns, &format, &err));
    ck_assert(!format_parse("%99999999999999999999j", columns, &format, &err));
    autotext struct text many = {0};
    for (int i = 0; i < FORMAT_FIELDS; i++) {
        text_append(&many, "%j");
    }
    ck_assert(format_parse(many.bytes, columns, &format, &err));
    text_append(&many, "%j");
    ck_assert(!format_parse(many.bytes, columns, &format, &err));
}
END_TEST

START_TEST(spans_are_written_as_slurm_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {{0, "0:00"},         {59, "0:59"},          {600, "10:00"},        {3723, "1:02:03"},
                 {86399, "23:59:59"}, {86400, "1-00:00:00"}, {266645, "3-02:04:05"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autotext struct text out = {0};
        format_span(cases[i].seconds, false, &out);
        ck_assert_str_eq(out.bytes, cases[i].text);
    }
}
END_TEST

/* --- nodes --- */

static void assert_nodes(const char *names, const char *list)
{
    autojson json_t *array = json_loads(names, 0, NULL);
    autotext struct text out = {0};
    text_append(&out, "");
    node_list_append(array, &out);
    ck_assert_str_eq(out.bytes, list);
}

START_TEST(names_of_nodes_are_written_in_short)
{
    assert_nodes("[]", "");
    assert_nodes("[\"node3\"]", "node3");
    assert_nodes("[\"node7\", \"node1\", \"node0\", \"node2\", \"node1\"]", "node[0-2,7]");
    assert_nodes("[\"node8\", \"node9\", \"node10\", \"node11\"]", "node[8-11]");
    assert_nodes("[\"n08\", \"n09\", \"n10\", \"n11\", \"n9\"]", "n[08-09,9-11]");
    assert_nodes("[\"gpu1\", \"login\", \"gpu2\", \"cpu1\", \"gpu1.example\"]",
                 "cpu1,gpu[1-2],gpu1.example,login");
    assert_nodes("[\"n08\", \"n9\", \"n010\"]", "n[08,9,010]");
    assert_nodes("[\"7\", \"8\"]", "[7-8]");
    assert_nodes("[\"a123456789012345678\", \"a123456789012345679\"]",
                 "a123[456789012345678-456789012345679]");
}
END_TEST

/* --- states and reasons --- */

static void assert_state(const char *job, const char *code)
{
    autojson json_t *json = json_loads(job, 0, NULL);
    ck_assert_msg(json != NULL, "%s", job);
    ck_assert_str_eq(slurm_state_code(slurm_state_of(json)), code);
}

START_TEST(each_state_of_a_job_has_slurms_code)
{
    assert_state("{\"state\": \"QUEUED\"}", "PD");
    assert_state("{\"state\": \"HELD\"}", "PD");
    assert_state("{\"state\": \"BLOCKED\"}", "PD");
    assert_state("{\"state\": \"STAGING\"}", "PD");
    assert_state("{\"state\": \"PLACED\"}", "R");
    assert_state("{\"state\": \"RUNNING\"}", "R");
    assert_state("{\"state\": \"RUNNING\", \"nodes\": [{\"state\": \"EXITED\"}, {\"state\": \"RUNNING\"}]}",
                 "R");
    assert_state("{\"state\": \"RUNNING\", \"nodes\": [{\"state\": \"EXITED\"}, {\"state\": \"FLUSHED\"}]}",
                 "CG");
    assert_state("{\"state\": \"SUCCEEDED\"}", "CD");
    assert_state("{\"state\": \"FAILED\", \"cause\": \"RANK_FAILED\"}", "F");
    assert_state("{\"state\": \"FAILED\", \"cause\": \"NODE_LOST\"}", "NF");
    assert_state("{\"state\": \"FAILED\", \"cause\": \"PREEMPTED\"}", "PR");
    assert_state("{\"state\": \"FAILED\", \"cause\": \"OUT_OF_MEMORY\"}", "OOM");
    assert_state("{\"state\": \"CANCELED\"}", "CA");
    assert_state("{\"state\": \"TIMED_OUT\"}", "TO");
}
END_TEST

START_TEST(states_are_read_by_code_and_by_name)
{
    struct err err;
    unsigned states;
    ck_assert(slurm_states_read("pd,Running", &states, &err));
    ck_assert_uint_eq(states, 1U << SLURM_PENDING | 1U << SLURM_RUNNING);
    ck_assert(slurm_states_read("ALL", &states, &err));
    ck_assert_uint_eq(states, SLURM_ALL);
    ck_assert(slurm_states_read("S,CONFIGURING", &states, &err));
    ck_assert_uint_eq(states, 0);
    ck_assert(!slurm_states_read("PD,QUEUED", &states, &err));
    ck_assert_str_eq(err.text, "\"QUEUED\" is no state of a job");
    ck_assert(!slurm_states_read("", &states, &err));
}
END_TEST

static void assert_reason(const char *job, const char *queued, const char *reason)
{
    autojson json_t *json = json_loads(job, 0, NULL);
    autojson json_t *row = queued != NULL ? json_loads(queued, 0, NULL) : NULL;
    ck_assert_str_eq(slurm_reason_of(json, row), reason);
}

#define QUEUED     "{\"state\": \"QUEUED\"}"
#define FOR(code_) "{\"reason\": {\"code\": \"" code_ "\", \"text\": \"user ann uses 3 of 3 running jobs\"}}"

START_TEST(each_reason_has_slurms_word)
{
    assert_reason("{\"state\": \"HELD\"}", NULL, "JobHeldUser");
    assert_reason("{\"state\": \"BLOCKED\", \"reason\": \"waits for job x to succeed\"}", NULL, "Dependency");
    assert_reason("{\"state\": \"BLOCKED\", \"reason\": \"waits until 2026-11-30T03:00:00Z\"}", NULL,
                  "BeginTime");
    assert_reason("{\"state\": \"STAGING\"}", NULL, "Staging");
    assert_reason(QUEUED, NULL, "None");
    assert_reason(QUEUED, "{}", "Priority");
    assert_reason(QUEUED, "{\"reason\": null}", "Priority");
    assert_reason(QUEUED, FOR("NODES_BUSY"), "Resources");
    assert_reason(QUEUED, FOR("BEHIND"), "Priority");
    assert_reason(QUEUED, FOR("LIMIT"), "QOSMaxJobsPerUserLimit");
    assert_reason(QUEUED, "{\"reason\": {\"code\": \"LIMIT\", \"text\": \"user ann uses 8 of 8 A10\"}}",
                  "QOSMaxGRESPerUser");
    assert_reason(QUEUED, FOR("DRAINED"), "ReqNodeNotAvail");
    assert_reason(QUEUED, FOR("DUE"), "None");
    assert_reason("{\"state\": \"FAILED\", \"cause\": \"RANK_FAILED\"}", NULL, "NonZeroExitCode");
    assert_reason("{\"state\": \"FAILED\", \"cause\": \"DEPENDENCY\"}", NULL, "DependencyNeverSatisfied");
    assert_reason("{\"state\": \"TIMED_OUT\"}", NULL, "TimeLimit");
    assert_reason("{\"state\": \"RUNNING\"}", NULL, "None");
}
END_TEST

START_TEST(a_program_is_a_command_by_the_last_part_of_its_path)
{
    ck_assert_ptr_eq(slurm_command("/usr/bin/squeue"), &command_squeue);
    ck_assert_ptr_eq(slurm_command("srun"), &command_srun);
    ck_assert_ptr_eq(slurm_command("./sbatch"), &verb_sbatch);
    ck_assert_ptr_null(slurm_command("/usr/bin/gpuctl"));
    ck_assert_ptr_null(slurm_command("squeue/gpuctl"));
    ck_assert_ptr_null(slurm_command(""));
}
END_TEST

Suite *cli_slurm_suite(void)
{
    Suite *suite = suite_create("cli slurm");
    TCase *tests = tcase_create("commands");
    tcase_add_test(tests, a_format_has_widths_sides_and_text_between);
    tcase_add_test(tests, a_wrong_format_is_refused_by_its_code);
    tcase_add_test(tests, spans_are_written_as_slurm_does);
    tcase_add_test(tests, names_of_nodes_are_written_in_short);
    tcase_add_test(tests, each_state_of_a_job_has_slurms_code);
    tcase_add_test(tests, states_are_read_by_code_and_by_name);
    tcase_add_test(tests, each_reason_has_slurms_word);
    tcase_add_test(tests, a_program_is_a_command_by_the_last_part_of_its_path);
    suite_add_tcase(suite, tests);
    return suite;
}
