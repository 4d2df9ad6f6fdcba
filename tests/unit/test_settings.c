/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/settings: precedence, and what a configuration file may hold. The file of the system is
 * not under the tests' control; the names used here are none that it would hold. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/settings.h"
#include "proto/base/text.h"
#include "tests/unit/base_suites.h"

static void start(void)
{
    scratch_open();
    autofree char *home = scratch_path("home");
    autofree char *config = scratch_path("config");
    setenv("HOME", home, 1);
    setenv("XDG_CONFIG_HOME", config, 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("GPUCTL_TEST_ZEBRA");
}

static void assert_setting(const char *name, const char *expected)
{
    struct err err;
    struct settings *settings = settings_load(&err);
    ck_assert_msg(settings != NULL, "%s", err.text);
    ck_assert_pstr_eq(settings_get(settings, name), expected);
    settings_destroy(settings);
}

/* The file is refused with a text that ends like this. */
static void assert_refused(const char *content, const char *ending)
{
    scratch_write("config/gpuctl/config", content);
    struct err err;
    ck_assert_ptr_null(settings_load(&err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    autofree char *path = scratch_path("config/gpuctl/config");
    autofree char *expected = xprintf("%s%s", path, ending);
    ck_assert_str_eq(err.text, expected);
}

START_TEST(files_that_are_not_there_are_no_error)
{
    assert_setting("test_zebra", NULL);
}
END_TEST

START_TEST(a_setting_of_the_users_file_is_found)
{
    scratch_write("config/gpuctl/config",
                  "# comment\n; another\n\ntest_zebra = /a b/c ; inline\r\n  test_other: x\n");
    assert_setting("test_zebra", "/a b/c");
    assert_setting("test_other", "x");
    assert_setting("test_none", NULL);
}
END_TEST

START_TEST(the_environment_goes_before_the_files_unless_it_is_empty)
{
    scratch_write("config/gpuctl/config", "test_zebra=file\n");
    setenv("GPUCTL_TEST_ZEBRA", "environment", 1);
    assert_setting("test_zebra", "environment");
    assert_setting("test-zebra", "environment");
    setenv("GPUCTL_TEST_ZEBRA", "", 1);
    assert_setting("test_zebra", "file");
}
END_TEST

START_TEST(dashes_underscores_and_letter_case_are_alike)
{
    scratch_write("config/gpuctl/config", "Test-Zebra=x\n");
    assert_setting("test_zebra", "x");
    assert_setting("test-zebra", "x");
    assert_setting("TEST_ZEBRA", "x");
}
END_TEST

START_TEST(an_empty_setting_counts_as_none)
{
    scratch_write("config/gpuctl/config", "test_zebra =\n");
    assert_setting("test_zebra", NULL);
}
END_TEST

START_TEST(the_section_of_our_name_is_like_none)
{
    scratch_write("config/gpuctl/config", "[gpuctl]\ntest_zebra = x\n");
    assert_setting("test_zebra", "x");
}
END_TEST

START_TEST(without_a_config_folder_in_the_environment_the_home_folder_is_used)
{
    scratch_write("home/.config/gpuctl/config", "test_zebra = home\n");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    assert_setting("test_zebra", "home");
    unsetenv("XDG_CONFIG_HOME");
    assert_setting("test_zebra", "home");
}
END_TEST

START_TEST(a_line_that_is_no_setting_is_refused_by_number)
{
    assert_refused("test_zebra = x\nnonsense\nmore\n", ":2: expected \"name = value\"");
    assert_refused("[open\n", ":1: expected \"name = value\"");
}
END_TEST

START_TEST(a_setting_that_is_given_twice_is_refused)
{
    assert_refused("test_zebra = x\n\ntest-zebra = y\n", ":3: given twice: test_zebra");
}
END_TEST

START_TEST(a_section_that_is_not_known_is_refused)
{
    assert_refused("[work]\ntest_zebra = x\n", ":2: unknown section work");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_refused_and_not_split)
{
    char content[4000];
    memset(content, 'a', sizeof content);
    memcpy(content, "test_zebra=", 11);
    content[sizeof content - 1] = '\0';
    assert_refused(content, ":1: the line is too long");
}
END_TEST

START_TEST(the_first_problem_of_a_file_is_the_one_that_is_named)
{
    assert_refused("nonsense\ntest_a = 1\ntest_a = 2\n", ":1: expected \"name = value\"");
    assert_refused("test_a = 1\ntest_a = 2\nnonsense\n", ":2: given twice: test_a");
}
END_TEST

START_TEST(a_config_that_cannot_be_read_is_refused)
{
    scratch_write("config/gpuctl/config/x", "");
    struct err err;
    ck_assert_ptr_null(settings_load(&err));
    ck_assert_int_eq(err.code, ERR_IO);
}
END_TEST

START_TEST(the_state_folder_follows_the_environment_else_the_home_folder)
{
    setenv("HOME", "/home/zoe", 1);
    autofree char *fallback = settings_state_directory();
    ck_assert_str_eq(fallback, "/home/zoe/.local/state/gpuctl");
    setenv("XDG_STATE_HOME", "/srv/state", 1);
    autofree char *given = settings_state_directory();
    ck_assert_str_eq(given, "/srv/state/gpuctl");
    setenv("XDG_STATE_HOME", "state", 1);
    autofree char *relative = settings_state_directory();
    ck_assert_str_eq(relative, "/home/zoe/.local/state/gpuctl");
}
END_TEST

Suite *settings_suite(void)
{
    Suite *suite = suite_create("settings");
    TCase *cases = tcase_create("settings");
    tcase_add_checked_fixture(cases, start, scratch_close);
    tcase_add_test(cases, files_that_are_not_there_are_no_error);
    tcase_add_test(cases, a_setting_of_the_users_file_is_found);
    tcase_add_test(cases, the_environment_goes_before_the_files_unless_it_is_empty);
    tcase_add_test(cases, dashes_underscores_and_letter_case_are_alike);
    tcase_add_test(cases, an_empty_setting_counts_as_none);
    tcase_add_test(cases, the_section_of_our_name_is_like_none);
    tcase_add_test(cases, without_a_config_folder_in_the_environment_the_home_folder_is_used);
    tcase_add_test(cases, a_line_that_is_no_setting_is_refused_by_number);
    tcase_add_test(cases, a_setting_that_is_given_twice_is_refused);
    tcase_add_test(cases, a_section_that_is_not_known_is_refused);
    tcase_add_test(cases, a_line_that_is_too_long_is_refused_and_not_split);
    tcase_add_test(cases, the_first_problem_of_a_file_is_the_one_that_is_named);
    tcase_add_test(cases, a_config_that_cannot_be_read_is_refused);
    tcase_add_test(cases, the_state_folder_follows_the_environment_else_the_home_folder);
    suite_add_tcase(suite, cases);
    return suite;
}
