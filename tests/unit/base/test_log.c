/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/log: what arrives on stderr. Each test runs in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "tests/unit/base/base_suites.h"

/* Sends stderr to a file in the scratch folder from here on. */
static void capture(void)
{
    autofree char *path = scratch_path("stderr");
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
}

/* What arrived since; the caller frees it. */
static char *captured(void)
{
    autofree char *path = scratch_path("stderr");
    char *bytes = NULL;
    ck_assert(file_read(path, 65536, &bytes, NULL, NULL));
    return bytes;
}

START_TEST(an_event_is_one_line_with_its_level_first)
{
    capture();
    log_info("job submitted", "id=%s gpus=%d", "abc", 2);
    log_error("agent stopped", "%s", "");
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "info job submitted id=abc gpus=2\nerror agent stopped \n");
}
END_TEST

START_TEST(an_event_without_values_ends_after_its_verb)
{
    capture();
    const char *nothing = "";
    log_warning("node suspected", nothing, 0);
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "warning node suspected\n");
}
END_TEST

START_TEST(lines_above_the_level_are_dropped)
{
    capture();
    log_debug("poll parked", "n=%d", 1);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("poll parked", "n=%d", 2);
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("poll late", "n=%d", 3);
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "debug poll parked n=2\n");
}
END_TEST

START_TEST(a_value_cannot_forge_a_second_line)
{
    capture();
    log_info("job named", "name=%s", "a\nerror b\033[1m");
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "info job named name=a error b [1m\n");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut_but_ends)
{
    capture();
    log_info("job named", "name=%0*d", 10000, 7);
    log_info("job done", "n=%d", 1);
    autofree char *lines = captured();
    char *end = strchr(lines, '\n');
    ck_assert_ptr_nonnull(end);
    ck_assert_int_lt(end - lines, 4096);
    ck_assert_str_eq(end + 1, "info job done n=1\n");
}
END_TEST

START_TEST(the_journal_gets_a_priority_prefix)
{
    capture();
    struct stat status;
    ck_assert_int_eq(fstat(STDERR_FILENO, &status), 0);
    char stream[64];
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_warning("node suspected", "id=%d", 1);
    setenv("JOURNAL_STREAM", "1:1", 1);
    log_warning("node suspected", "id=%d", 2);
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "<4>warning node suspected id=1\nwarning node suspected id=2\n");
}
END_TEST

/* M4: a service that does not start says why at a priority that people look for. */
START_TEST(the_journal_gets_the_priority_with_each_line_of_a_failure)
{
    struct stat status;
    struct err err = {0};
    err_set(&err, ERR_USAGE, "no controller is named");
    err_hint(&err, "give its address");
    capture();
    fstat(STDERR_FILENO, &status);
    char stream[64];
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    log_failure("gpuagent", &err);
    setenv("JOURNAL_STREAM", stream, 1);
    log_failure("gpuagent", &err);
    autofree char *lines = captured();
    ck_assert_str_eq(lines, "gpuagent: no controller is named\n  remedy: give its address\n"
                            "<3>gpuagent: no controller is named\n<3>  remedy: give its address\n");
}
END_TEST

START_TEST(logging_leaves_errno_alone)
{
    close(STDERR_FILENO);
    errno = ERANGE;
    log_error("disk failed", "n=%d", 1);
    ck_assert_int_eq(errno, ERANGE);
}
END_TEST

START_TEST(levels_are_known_by_name)
{
    enum log_level level = LOG_LEVEL_ERROR;
    ck_assert(log_level_from_text("debug", &level));
    ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
    ck_assert(!log_level_from_text("loud", &level));
    ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
}
END_TEST

static void start(void)
{
    unsetenv("JOURNAL_STREAM");
    scratch_open();
}

Suite *log_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *cases = tcase_create("log");
    tcase_add_checked_fixture(cases, start, scratch_close);
    tcase_add_test(cases, an_event_is_one_line_with_its_level_first);
    tcase_add_test(cases, an_event_without_values_ends_after_its_verb);
    tcase_add_test(cases, lines_above_the_level_are_dropped);
    tcase_add_test(cases, a_value_cannot_forge_a_second_line);
    tcase_add_test(cases, a_line_that_is_too_long_is_cut_but_ends);
    tcase_add_test(cases, the_journal_gets_a_priority_prefix);
    tcase_add_test(cases, the_journal_gets_the_priority_with_each_line_of_a_failure);
    tcase_add_test(cases, logging_leaves_errno_alone);
    tcase_add_test(cases, levels_are_known_by_name);
    suite_add_tcase(suite, cases);
    return suite;
}
