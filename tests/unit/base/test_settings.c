/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/settings: precedence, and what a configuration file may hold. The files of the system
 * are not under the tests' control; the file's name used here is none that it would have. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/text.h"
#include "tests/unit/base/base_suites.h"

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

/* What the settings may set here. */
static struct {
    const char *zebra, *other, *none, *letter;
    int64_t count, wait_ms;
    bool flag, act;
    struct option_list list;
} got;

static const struct option_spec specs[] = {
    {.name = "test-zebra", .kind = OPTION_TEXT, .target = &got.zebra, .alias = "test-old"},
    {.name = "test-other", .kind = OPTION_TEXT, .target = &got.other},
    {.name = "test-none", .kind = OPTION_TEXT, .target = &got.none},
    {.name = "test-letter", .kind = OPTION_TEXT, .target = &got.letter, .choices = "a|b"},
    {.name = "test-count", .kind = OPTION_INT, .target = &got.count, .min = 1, .max = 9},
    {.name = "test-wait", .kind = OPTION_DURATION, .target = &got.wait_ms},
    {.name = "test-flag", .kind = OPTION_FLAG, .target = &got.flag},
    {.name = "test-list", .kind = OPTION_LIST, .target = &got.list},
    {.name = "test-act", .kind = OPTION_FLAG, .target = &got.act, .command_line_only = true},
};

#define SPECS (sizeof specs / sizeof specs[0])

/* Loads the settings and sets the targets; the caller destroys what they borrow from. */
static struct settings *apply(const bool *given)
{
    struct err err;
    memset(&got, 0, sizeof got);
    struct settings *settings = settings_load("test.conf", NULL, &err);
    ck_assert_msg(settings != NULL, "%s", err.text);
    ck_assert_msg(settings_apply(settings, specs, SPECS, given, &err), "%s", err.text);
    return settings;
}

static void assert_zebra(const char *expected)
{
    autosettings struct settings *settings = apply(NULL);
    ck_assert_ptr_nonnull(settings);
    ck_assert_pstr_eq(got.zebra, expected);
}

/* The file is refused with a text that ends like this. */
static void assert_refused(const char *content, const char *ending)
{
    scratch_write("config/gpuctl/test.conf", content);
    struct err err;
    autosettings struct settings *settings = settings_load("test.conf", NULL, &err);
    ck_assert(settings == NULL || !settings_apply(settings, specs, SPECS, NULL, &err));
    ck_assert_int_eq(err.code, settings == NULL ? ERR_MALFORMED : ERR_USAGE);
    autofree char *path = scratch_path("config/gpuctl/test.conf");
    autofree char *expected = xprintf("%s%s", path, ending);
    ck_assert_str_eq(err.text, expected);
}

START_TEST(files_that_are_not_there_are_no_error)
{
    assert_zebra(NULL);
}
END_TEST

START_TEST(a_setting_of_the_users_file_is_found)
{
    scratch_write("config/gpuctl/test.conf",
                  "# comment\n; another\n\ntest_zebra = /a b/c ; inline\r\n  test_other: x\n");
    autosettings struct settings *settings = apply(NULL);
    ck_assert_ptr_nonnull(settings);
    ck_assert_str_eq(got.zebra, "/a b/c");
    ck_assert_str_eq(got.other, "x");
    ck_assert_ptr_null(got.none);
}
END_TEST

START_TEST(the_environment_goes_before_the_files_unless_it_is_empty)
{
    scratch_write("config/gpuctl/test.conf", "test_zebra=file\n");
    setenv("GPUCTL_TEST_ZEBRA", "environment", 1);
    assert_zebra("environment");
    setenv("GPUCTL_TEST_ZEBRA", "", 1);
    assert_zebra("file");
}
END_TEST

START_TEST(dashes_underscores_and_letter_case_are_alike)
{
    scratch_write("config/gpuctl/test.conf", "Test-Zebra=x\n");
    assert_zebra("x");
    scratch_write("config/gpuctl/test.conf", "TEST_ZEBRA=y\n");
    assert_zebra("y");
}
END_TEST

START_TEST(an_empty_setting_counts_as_none)
{
    scratch_write("config/gpuctl/test.conf", "test_zebra =\n");
    assert_zebra(NULL);
}
END_TEST

START_TEST(the_section_of_our_name_is_like_none)
{
    scratch_write("config/gpuctl/test.conf", "[gpuctl]\ntest_zebra = x\n");
    assert_zebra("x");
}
END_TEST

START_TEST(without_a_config_folder_in_the_environment_the_home_folder_is_used)
{
    scratch_write("home/.config/gpuctl/test.conf", "test_zebra = home\n");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    assert_zebra("home");
    unsetenv("XDG_CONFIG_HOME");
    assert_zebra("home");
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
    assert_refused("test_zebra = x\n\ntest-zebra = y\n", ":3: given twice: test-zebra");
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
    assert_refused("test_a = 1\ntest_a = 2\nnonsense\n", ":2: given twice: test-a");
}
END_TEST

START_TEST(a_config_that_cannot_be_read_is_refused)
{
    scratch_write("config/gpuctl/test.conf/x", "");
    struct err err;
    ck_assert_ptr_null(settings_load("test.conf", NULL, &err));
    ck_assert_int_eq(err.code, ERR_IO);
}
END_TEST

START_TEST(each_kind_of_option_is_read_as_people_write_it)
{
    scratch_write(
        "config/gpuctl/test.conf",
        "test_count = 7\ntest-wait = 15m\ntest-flag = yes\ntest-letter = b\ntest-list = a, b=c ,,d\n");
    autosettings struct settings *settings = apply(NULL);
    ck_assert_ptr_nonnull(settings);
    ck_assert_int_eq(got.count, 7);
    ck_assert_int_eq(got.wait_ms, 900000);
    ck_assert(got.flag);
    ck_assert_str_eq(got.letter, "b");
    ck_assert_int_eq(got.list.count, 3);
    ck_assert_str_eq(got.list.items[0], "a");
    ck_assert_str_eq(got.list.items[1], "b=c");
    ck_assert_str_eq(got.list.items[2], "d");
    options_finish_list(&got.list);
}
END_TEST

START_TEST(an_option_that_was_given_is_left_as_it_is)
{
    scratch_write("config/gpuctl/test.conf", "test-zebra = x\ntest-other = y\n");
    const bool given[SPECS] = {true};
    autosettings struct settings *settings = apply(given);
    ck_assert_ptr_nonnull(settings);
    ck_assert_ptr_null(got.zebra);
    ck_assert_str_eq(got.other, "y");
}
END_TEST

START_TEST(an_older_name_is_taken)
{
    scratch_write("config/gpuctl/test.conf", "test-old = x\n");
    assert_zebra("x");
}
END_TEST

/* M14 */
START_TEST(a_name_that_is_not_known_is_refused_with_its_line_and_the_one_that_was_meant)
{
    assert_refused("# one\ntest-zbera = x\n", ":2: unknown setting test-zbera; did you mean test-zebra?");
    assert_refused("\n\nsomething = x\n", ":3: unknown setting something");
    assert_refused("test-act = true\n", ":1: test-act is for the command line only");
}
END_TEST

START_TEST(a_wrong_value_is_refused_with_its_line)
{
    assert_refused("test-count = many\n", ":1: test-count must be a whole number from 1 to 9, not \"many\"");
    assert_refused("test-flag = perhaps\n", ":1: test-flag must be true or false, not \"perhaps\"");
    assert_refused("test-letter = c\n", ":1: test-letter must be one of a|b, not \"c\"");
}
END_TEST

START_TEST(one_file_may_be_read_in_the_place_of_the_usual_ones)
{
    struct err err;
    scratch_write("config/gpuctl/test.conf", "test-zebra = usual\n");
    scratch_write("mine", "test-zebra = mine\n");
    autofree char *path = scratch_path("mine");
    autosettings struct settings *mine = settings_load("test.conf", path, &err);
    ck_assert(settings_apply(mine, specs, SPECS, NULL, &err));
    ck_assert_str_eq(got.zebra, "mine");
    got.zebra = NULL;
    autosettings struct settings *none = settings_load("test.conf", SETTINGS_NO_FILE, &err);
    ck_assert(settings_apply(none, specs, SPECS, NULL, &err));
    ck_assert_ptr_null(got.zebra);
    ck_assert_ptr_null(settings_load("test.conf", "/nowhere/at/all", &err));
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    scratch_write("config/gpuctl/test.conf",
                  "test-count = 7\ntest-wait = 2h\ntest-flag = on\ntest-list = a,b\n");
    autosettings struct settings *settings = apply(NULL);
    ck_assert_ptr_nonnull(settings);
    autotext struct text text = {0};
    for (size_t i = 4; i < 8; i++) {
        settings_write(&specs[i], &text);
    }
    ck_assert_str_eq(text.bytes,
                     "test-count = 7\ntest-wait = 7200000ms\ntest-flag = true\ntest-list = a,b\n");
    options_finish_list(&got.list);
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
    tcase_add_test(cases, each_kind_of_option_is_read_as_people_write_it);
    tcase_add_test(cases, an_option_that_was_given_is_left_as_it_is);
    tcase_add_test(cases, an_older_name_is_taken);
    tcase_add_test(cases, a_name_that_is_not_known_is_refused_with_its_line_and_the_one_that_was_meant);
    tcase_add_test(cases, a_wrong_value_is_refused_with_its_line);
    tcase_add_test(cases, one_file_may_be_read_in_the_place_of_the_usual_ones);
    tcase_add_test(cases, what_is_written_is_read_again);
    tcase_add_test(cases, the_state_folder_follows_the_environment_else_the_home_folder);
    suite_add_tcase(suite, cases);
    return suite;
}
