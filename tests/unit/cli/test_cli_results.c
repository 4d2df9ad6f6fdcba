/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: how results read, and where they may be saved. */
#include <string.h>
#include <unistd.h>

#include "client/cli/transport/pages.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/result.h"
#include "client/cli/common/save.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"

static void assert_line(const char *row, const char *expected)
{
    struct err err;
    autojson json_t *json = json_parse(row, strlen(row), &err);
    struct result result;
    autotext struct text out = {0};
    ck_assert_msg(json != NULL && result_read(json, &result, &err), "%s", err.text);
    const struct column *value = &result_columns[RESULT_COLUMNS - 1];
    value->show(json, value->member, &out);
    ck_assert_str_eq(out.bytes, expected);
}

START_TEST(a_value_reads_as_json_and_else_as_pickle)
{
    assert_line("{\"rank\":0,\"kind\":\"value\",\"size\":9,\"json\":{\"a\": [1, 2.5, null]}}",
                "{\"a\":[1,2.5,null]}");
    assert_line("{\"rank\":0,\"kind\":\"value\",\"size\":9,\"json\":null}", "null");
    assert_line("{\"rank\":0,\"kind\":\"value\",\"size\":9,\"json\":\"pickle\"}", "\"pickle\"");
    assert_line("{\"rank\":0,\"kind\":\"value\",\"size\":9}", "pickle");
}
END_TEST

START_TEST(an_exception_reads_as_the_first_line_of_its_message)
{
    assert_line("{\"rank\":0,\"kind\":\"exception\",\"error\":{\"message\":{\"message\":\"ValueError: "
                "bad\\nmore\",\"extraInfo\":{}}}}",
                "ValueError: bad");
    assert_line("{\"rank\":0,\"kind\":\"exception\",\"error\":{\"message\":\"plain\"}}", "plain");
    assert_line("{\"rank\":0,\"kind\":\"exception\",\"error\":{\"other\":1}}", "{\"other\":1}");
    assert_line("{\"rank\":0,\"kind\":\"exception\",\"size\":9,\"json\":1}", "pickle");
}
END_TEST

START_TEST(a_row_that_is_no_result_is_refused)
{
    struct result result;
    struct err err;
    autojson json_t *no_kind = json_pack("{s:i}", "rank", 0);
    autojson json_t *no_rank = json_pack("{s:s}", "kind", "value");
    ck_assert(!result_read(no_kind, &result, &err));
    ck_assert_str_eq(err.field, "kind");
    ck_assert(!result_read(no_rank, &result, &err));
    ck_assert_str_eq(err.field, "rank");
    ck_assert(!result_read(NULL, &result, &err));
}
END_TEST

START_TEST(a_table_of_results_is_cut_to_the_width)
{
    autogrid struct grid *grid = grid_create(result_columns, RESULT_COLUMNS);
    autojson json_t *rows = json_pack("[{s:i, s:s, s:i, s:s, s:{s:s}}, {s:i, s:s}]", "rank", 0, "kind",
                                      "value", "size", 2048, "sha256", "abc", "json", "text",
                                      "what others wrote\033[2J", "rank", 12, "kind", "exception");
    autotext struct text out = {0};
    autotext struct text narrow = {0};
    grid_add_rows(grid, rows);
    grid_print(grid, true, 0, false, &out);
    grid_print(grid, false, 44, false, &narrow);
    ck_assert_str_eq(out.bytes,
                     "RANK  KIND       SIZE     SHA256  VALUE\n"
                     "0     value      2.0 KiB  abc     {\"text\":\"what others wrote\\u001B[2J\"}\n"
                     "12    exception  -        -       pickle\n");
    ck_assert_str_eq(narrow.bytes, "RANK  KIND       SIZE     VALUE\n"
                                   "0     value      2.0 KiB  {\"text\":\"what othe\n"
                                   "12    exception  -        pickle\n");
    ck_assert_uint_eq(grid_width(grid, true), 34 + strlen("{\"text\":\"what others wrote\\u001B[2J\"}"));
}
END_TEST

/* --- ranks --- */

static void assert_ranks(const char *spec, int64_t gpus, size_t nodes, int64_t expected)
{
    struct job_view job = {.id = "j", .gpus = gpus, .spec = spec, .placement_count = nodes};
    struct err err;
    ck_assert_int_eq(ranks_count(&job), expected);
    ck_assert(ranks_check(&job, -1, &err));
    ck_assert(ranks_check(&job, expected - 1, &err));
    ck_assert(!ranks_check(&job, expected, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(err.field, "rank");
}

START_TEST(a_rank_that_the_job_has_not_is_refused)
{
    assert_ranks("{\"gpus\":8}", 8, 2, 8);
    assert_ranks("{\"gpus\":1}", 1, 1, 1);
    assert_ranks("{\"gpus\":8,\"launch_mode\":\"node\"}", 8, 2, 2);
    assert_ranks("{\"gpus\":8,\"launch_mode\":\"node\"}", 8, 0, 8);
    assert_ranks(NULL, 4, 0, 4);
}
END_TEST

/* --- pages --- */

START_TEST(a_number_joins_a_query_unless_it_is_negative)
{
    autotext struct text path = {0};
    text_append(&path, "/v1/x");
    pages_number(&path, "rank", -1);
    pages_number(&path, "rank", 0);
    pages_number(&path, "limit", 10);
    ck_assert_str_eq(path.bytes, "/v1/x?rank=0&limit=10");
}
END_TEST

START_TEST(a_page_without_its_list_is_refused)
{
    struct err err;
    autojson json_t *page = json_pack("{s:[i],s:i}", "results", 1, "metrics", 2);
    ck_assert_ptr_nonnull(pages_list(page, "results", &err));
    ck_assert_ptr_null(pages_list(page, "metrics", &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
}
END_TEST

/* --- saving --- */

START_TEST(a_result_is_saved_to_a_file_and_not_to_a_folder)
{
    struct err err;
    autofree char *file = xprintf("%s/out.pickle", cli_folder);
    ck_assert(save_check(file, &err));
    ck_assert(save_check("/dev/null", &err));
    ck_assert(!save_check(cli_folder, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert(!save_check("", &err));
    ck_assert_int_eq(access(file, F_OK), -1);
}
END_TEST

Suite *cli_results_suite(void)
{
    Suite *suite = suite_create("cli results");
    TCase *tests = tcase_create("results");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_add_test(tests, a_value_reads_as_json_and_else_as_pickle);
    tcase_add_test(tests, an_exception_reads_as_the_first_line_of_its_message);
    tcase_add_test(tests, a_row_that_is_no_result_is_refused);
    tcase_add_test(tests, a_table_of_results_is_cut_to_the_width);
    tcase_add_test(tests, a_rank_that_the_job_has_not_is_refused);
    tcase_add_test(tests, a_number_joins_a_query_unless_it_is_negative);
    tcase_add_test(tests, a_page_without_its_list_is_refused);
    tcase_add_test(tests, a_result_is_saved_to_a_file_and_not_to_a_folder);
    suite_add_tcase(suite, tests);
    return suite;
}
