/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: requirements files, and the environment of a job that they become. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/spec/environment.h"
#include "client/cli/spec/requirements.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "tests/unit/cli/cli_suites.h"

static json_t *read_text(const char *text, struct err *err)
{
    autofree char *path = xprintf("%s/requirements.txt", cli_folder);
    cli_write_file("requirements.txt", text);
    return requirements_read(path, "requirements", err);
}

static void assert_lines(const char *text, const char *expected)
{
    struct err err;
    autojson json_t *lines = read_text(text, &err);
    ck_assert_msg(lines != NULL, "%s", err.text);
    autofree char *got = json_text(lines);
    ck_assert_str_eq(got, expected);
}

static void assert_refused(const char *text, const char *place, const char *hint)
{
    struct err err;
    autojson json_t *lines = read_text(text, &err);
    ck_assert_msg(lines == NULL, "%s", text);
    ck_assert_msg(strstr(err.text, place) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.hint, hint) != NULL, "%s", err.hint);
    ck_assert_str_eq(err.field, "requirements");
}

/* --- lines --- */

START_TEST(comments_and_empty_lines_are_dropped_and_line_ends_are_plain)
{
    assert_lines(
        "\xef\xbb\xbfnumpy==2.1.0\r\n\r\n  # alone\n  torch>=2 # behind\nx @ https://h/a.zip#egg=x\n",
        "[\"numpy==2.1.0\",\"torch>=2\",\"x @ https://h/a.zip#egg=x\"]");
    assert_lines("", "[]");
}
END_TEST

START_TEST(a_backslash_joins_lines)
{
    assert_lines("a==1 \\\n    --hash=sha256:ab \\\r\n    --hash=sha256:cd\nb\n",
                 "[\"a==1     --hash=sha256:ab     --hash=sha256:cd\",\"b\"]");
    assert_lines("a \\\n# comment\nb", "[\"a\",\"b\"]");
}
END_TEST

START_TEST(what_nodes_can_use_is_left_as_it_is)
{
    assert_lines("--index-url https://h/simple\n--pre\n-f https://h/wheels\ngit+ssh://git@h/x@v1\n"
                 "x[extra]>=1 ; python_version < '3.12'\n-c https://h/c.txt\ny@git+https://h/y\n",
                 "[\"--index-url https://h/simple\",\"--pre\",\"-f https://h/wheels\","
                 "\"git+ssh://git@h/x@v1\",\"x[extra]>=1 ; python_version < '3.12'\",\"-c https://h/c.txt\","
                 "\"y@git+https://h/y\"]");
}
END_TEST

START_TEST(included_files_are_written_out_from_where_they_lie)
{
    autofree char *folder = xprintf("%s/more", cli_folder);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    cli_write_file("more/a.txt", "a\n-r b.txt\n");
    cli_write_file("more/b.txt", "b\n");
    assert_lines("-r more/a.txt\n--requirement=more/b.txt\n-rmore/b.txt\nc\n",
                 "[\"a\",\"b\",\"b\",\"b\",\"c\"]");
}
END_TEST

START_TEST(a_file_that_includes_itself_ends)
{
    assert_refused("-r requirements.txt\n", "is one inclusion too many", "does a file include itself?");
}
END_TEST

START_TEST(what_lies_on_this_machine_is_refused_with_line_and_remedy)
{
    assert_refused("a\n\n-e .\n", "requirements.txt:3: \"-e .\"", "--bundle");
    assert_refused("-e git+https://h/x\n", ":1: ", "NAME @ URL");
    static const char *const local[] = {
        "./pkg",         "../pkg[extra]", "pkg/sub", "/abs/pkg.whl", "a-1.0-py3-none.whl",   "file:///x",
        "x @ file:///y", "git+file:///x", "x @ ./y", "x@/abs",       "a \\\n @ file:///home"};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        assert_refused(local[i], ":1: ", "--bundle");
    }
    assert_refused("a\n-c constraints.txt\n", ":2: ", "the requirements themselves");
    assert_refused("--find-links=./wheels\n", ":1: ", "https");
    assert_refused("--extra-index-url file:///wheels\n", ":1: ", "https");
}
END_TEST

START_TEST(a_file_of_another_kind_is_refused)
{
    struct err err;
    ck_assert_ptr_null(requirements_read("pyproject.toml", "requirements", &err));
    ck_assert_str_eq(err.text, "pyproject.toml is no requirements file of pip");
    ck_assert_ptr_null(requirements_read("/nowhere/r.txt", "requirements", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot open /nowhere/r.txt"));
    ck_assert_str_eq(err.field, "requirements");
    assert_refused("\xff\xfe\n", "is not UTF-8", "UTF-8");
}
END_TEST

START_TEST(a_file_above_the_limit_is_refused)
{
    struct err err;
    autotext struct text text = {0};
    while (text.length <= CLIENT_REQUIREMENTS_BYTES) {
        text_append(&text, "a-package-of-a-long-name==1.0.0\n");
    }
    ck_assert_ptr_null(read_text(text.bytes, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.text, "1048576 bytes"));
}
END_TEST

/* --- the environment --- */

static json_t *fill(const char *text, const char *python, const char *base, struct err *err)
{
    autofree char *path = xprintf("%s/requirements.txt", cli_folder);
    autojson json_t *spec = json_parse(base, strlen(base), NULL);
    cli_write_file("requirements.txt", text != NULL ? text : "");
    struct spec_options options = {.requirements = text != NULL ? path : NULL, .python_version = python};
    return environment_fill(NULL, &options, spec, err) ? give(spec) : NULL;
}

static void assert_filled(const char *text, const char *python, const char *base, const char *expected)
{
    struct err err;
    autojson json_t *spec = fill(text, python, base, &err);
    ck_assert_msg(spec != NULL, "%s", err.text);
    autofree char *got = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(got, expected);
}

START_TEST(options_win_over_the_environment_of_a_job_file)
{
    assert_filled("a\n", NULL, "{}", "{\"environment\":{\"requirements\":[\"a\"]}}");
    assert_filled("a\n", NULL, "{\"environment\":{\"blob\":\"x\",\"python\":\"3.10\"}}",
                  "{\"environment\":{\"python\":\"3.10\",\"requirements\":[\"a\"]}}");
    assert_filled(NULL, "3.11", "{\"environment\":{\"requirements\":[\"b\"],\"python\":\"3.10\"}}",
                  "{\"environment\":{\"python\":\"3.11\",\"requirements\":[\"b\"]}}");
    assert_filled(NULL, "3.11", "{}", "{\"environment\":{\"python\":\"3.11\",\"requirements\":[]}}");
    assert_filled(NULL, NULL, "{}", "{}");
}
END_TEST

START_TEST(a_wrong_version_of_python_is_refused_here)
{
    struct err err;
    ck_assert_ptr_null(fill(NULL, "3", "{}", &err));
    ck_assert_str_eq(err.field, "environment.python");
}
END_TEST

START_TEST(lines_that_no_spec_takes_are_named_by_the_hash_of_their_text)
{
    struct err err;
    autotext struct text text = {0};
    char hex[HASH_HEX + 1];
    while (text.length <= LIMIT_REQUIREMENTS_BYTES) {
        text_append(&text, "a-package-of-a-long-name==1.0.0\n");
    }
    hash_hex(text.bytes, text.length, hex);
    autojson json_t *spec = fill(text.bytes, NULL, "{}", &err);
    autofree char *got = json_text(spec);
    autofree char *expected = xprintf("{\"environment\":{\"blob\":\"%s\"}}", hex);
    ck_assert_str_eq(got, expected);
}
END_TEST

Suite *cli_requirements_suite(void)
{
    Suite *suite = suite_create("cli requirements");
    TCase *tests = tcase_create("requirements");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_add_test(tests, comments_and_empty_lines_are_dropped_and_line_ends_are_plain);
    tcase_add_test(tests, a_backslash_joins_lines);
    tcase_add_test(tests, what_nodes_can_use_is_left_as_it_is);
    tcase_add_test(tests, included_files_are_written_out_from_where_they_lie);
    tcase_add_test(tests, a_file_that_includes_itself_ends);
    tcase_add_test(tests, what_lies_on_this_machine_is_refused_with_line_and_remedy);
    tcase_add_test(tests, a_file_of_another_kind_is_refused);
    tcase_add_test(tests, a_file_above_the_limit_is_refused);
    tcase_add_test(tests, options_win_over_the_environment_of_a_job_file);
    tcase_add_test(tests, a_wrong_version_of_python_is_refused_here);
    tcase_add_test(tests, lines_that_no_spec_takes_are_named_by_the_hash_of_their_text);
    suite_add_tcase(suite, tests);
    return suite;
}
