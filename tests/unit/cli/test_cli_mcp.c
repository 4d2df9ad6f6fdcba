/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli/mcp: parts of output, and the schemas of tools. */
#include <string.h>

#include "client/cli/mcp/mcp_logs.h"
#include "client/cli/mcp/mcp_tools.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "tests/unit/cli/cli_suites.h"

START_TEST(a_content_range_says_where_a_part_lies)
{
    struct mcp_part part = {0};
    ck_assert(mcp_part_read_range("bytes 3-7/20", &part));
    ck_assert_int_eq(part.offset, 3);
    ck_assert_int_eq(part.size, 20);
    ck_assert(mcp_part_read_range("bytes */20", &part));
    ck_assert_int_eq(part.offset, 20);
    ck_assert_int_eq(part.size, 20);
    ck_assert(!mcp_part_read_range("bytes 3-7/*", &part));
    ck_assert(!mcp_part_read_range("bytes 8-9/7", &part));
    ck_assert(!mcp_part_read_range("bytes -3-7/20", &part));
    ck_assert(!mcp_part_read_range("bytes */9223372036854775807", &part));
    ck_assert(!mcp_part_read_range("lines 3-7/20", &part));
    ck_assert(!mcp_part_read_range(NULL, &part));
}
END_TEST

/* The part of the stream from offset to end, trimmed. The caller frees it. */
static char *trimmed(const char *stream, size_t offset, size_t end, bool head)
{
    struct mcp_part part = {.offset = (int64_t)offset,
                            .size = (int64_t)strlen(stream),
                            .bytes = stream + offset,
                            .length = end - offset};
    mcp_part_trim(&part, head);
    ck_assert_ptr_eq(part.bytes, stream + part.offset);
    return xstrndup(part.bytes, part.length);
}

static void check_trimmed(const char *stream, size_t offset, size_t end, bool head, const char *wanted)
{
    autofree char *got = trimmed(stream, offset, end, head);
    ck_assert_str_eq(got, wanted);
}

START_TEST(a_part_begins_and_ends_with_whole_characters)
{
    const char *stream = "a\xe2\x82\xac"
                         "b\xf0\x9d\x84\x9e"
                         "c"; /* a, euro sign, b, clef, c: 10 bytes */
    check_trimmed(stream, 2, 10, true,
                  "b\xf0\x9d\x84\x9e"
                  "c");
    check_trimmed(stream, 0, 3, true, "a");
    check_trimmed(stream, 0, 4, true, "a\xe2\x82\xac");
    for (size_t end = 5; end < 9; end++) {
        check_trimmed(stream, 0, end, true,
                      "a\xe2\x82\xac"
                      "b");
    }
    check_trimmed(stream, 0, 9, true,
                  "a\xe2\x82\xac"
                  "b\xf0\x9d\x84\x9e");
}
END_TEST

START_TEST(a_part_loses_nothing_that_no_other_part_has)
{
    check_trimmed("a\x82\xac"
                  "b",
                  1, 4, false,
                  "\x82\xac"
                  "b");                                    /* what was asked for by its offset begins there */
    check_trimmed("ab\xe2\x82", 0, 4, true, "ab\xe2\x82"); /* no more comes */
    check_trimmed("\xf0\x9d\x84\x9e", 0, 2, true,
                  "\xf0\x9d"); /* a part is never empty where bytes are there */
    check_trimmed("\x82\x82\x82\x82\x82", 0, 4, false, "\x82\x82\x82\x82");
}
END_TEST

static const char *description_of(const char *tool, const char *argument)
{
    const struct mcp_argument *row = mcp_tool_find(tool)->arguments;
    while (strcmp(row->name, argument) != 0) {
        row++;
    }
    return row->description;
}

START_TEST(descriptions_name_the_defaults_that_there_are)
{
    autofree char *rows = xprintf("(default %d)", DEFAULT_MCP_ROWS);
    autofree char *bytes = xprintf("(default %lld)", DEFAULT_MCP_LOG_BYTES);
    ck_assert_ptr_nonnull(strstr(description_of("list_jobs", "limit"), rows));
    ck_assert_ptr_nonnull(strstr(description_of("list_nodes", "limit"), rows));
    ck_assert_ptr_nonnull(strstr(description_of("job_logs", "bytes"), bytes));
    ck_assert_ptr_null(mcp_tool_find("rm"));
}
END_TEST

START_TEST(a_schema_has_the_bounds_and_choices_of_its_rows)
{
    static const struct mcp_argument rows[] = {
        {.name = "stream", .type = MCP_TEXT, .description = "Which.", .choices = "out|err"},
        {.name = "rank", .type = MCP_WHOLE, .description = "Whose.", .min = 0, .max = 7, .required = true},
        {.name = NULL}};
    autojson json_t *schema = mcp_arguments_schema(rows, NULL);
    autofree char *text = json_text(schema);
    ck_assert_str_eq(
        text, "{\"type\":\"object\",\"properties\":{"
              "\"stream\":{\"type\":\"string\",\"description\":\"Which.\",\"enum\":[\"out\",\"err\"]},"
              "\"rank\":{\"type\":\"integer\",\"description\":\"Whose.\",\"minimum\":0,\"maximum\":7}},"
              "\"required\":[\"rank\"],\"additionalProperties\":false}");
}
END_TEST

Suite *cli_mcp_suite(void)
{
    Suite *suite = suite_create("cli-mcp");
    TCase *tcase = tcase_create("mcp");
    tcase_add_test(tcase, a_content_range_says_where_a_part_lies);
    tcase_add_test(tcase, a_part_begins_and_ends_with_whole_characters);
    tcase_add_test(tcase, a_part_loses_nothing_that_no_other_part_has);
    tcase_add_test(tcase, descriptions_name_the_defaults_that_there_are);
    tcase_add_test(tcase, a_schema_has_the_bounds_and_choices_of_its_rows);
    suite_add_tcase(suite, tcase);
    return suite;
}
