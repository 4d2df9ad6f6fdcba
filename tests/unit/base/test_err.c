/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/err: what an error carries, and its table. */
#include <errno.h>
#include <string.h>

#include "proto/base/err.h"
#include "tests/unit/base/base_suites.h"

START_TEST(setting_an_error_returns_false_and_clears_what_an_earlier_one_left)
{
    struct err err;
    ck_assert(!err_field(&err, ERR_FIELD, "gpus", "ask for less", "gpus is %d", 9));
    ck_assert_str_eq(err.text, "gpus is 9");
    ck_assert_str_eq(err.field, "gpus");
    ck_assert_str_eq(err.hint, "ask for less");
    ck_assert(!err_set(&err, ERR_NOT_FOUND, "no job %s", "x"));
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
    ck_assert_str_eq(err.text, "no job x");
    ck_assert_str_eq(err.field, "");
    ck_assert_str_eq(err.hint, "");
}
END_TEST

START_TEST(an_error_that_nobody_wants_is_not_written)
{
    ck_assert(!err_set(NULL, ERR_IO, "lost"));
    ck_assert(!err_hint(NULL, "lost"));
    errno = ENOENT;
    ck_assert(!err_errno(NULL, "lost"));
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut_and_terminated)
{
    struct err err;
    err_set(&err, ERR_IO, "%0*d", 2000, 1);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
}
END_TEST

START_TEST(errno_is_spelled_out_and_survives)
{
    struct err err;
    errno = ENOENT;
    ck_assert(!err_errno(&err, "cannot open %s", "/x"));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(err.code, ERR_IO);
    ck_assert_str_eq(err.text, "cannot open /x: No such file or directory");
}
END_TEST

START_TEST(a_full_disk_has_its_own_code_and_remedy)
{
    struct err err;
    errno = ENOSPC;
    err_errno(&err, "cannot write");
    ck_assert_int_eq(err.code, ERR_DISK_FULL);
    ck_assert_str_ne(err.hint, "");
    errno = EDQUOT;
    err_errno(&err, "cannot write");
    ck_assert_int_eq(err.code, ERR_DISK_FULL);
}
END_TEST

START_TEST(a_hint_is_added_to_what_is_set_already)
{
    struct err err;
    err_set(&err, ERR_USAGE, "unknown option");
    ck_assert(!err_hint(&err, "see %s", "--help"));
    ck_assert_str_eq(err.text, "unknown option");
    ck_assert_str_eq(err.hint, "see --help");
}
END_TEST

START_TEST(every_slug_leads_back_to_its_code)
{
    for (int code = 0; code < ERR_COUNT; code++) {
        ck_assert_int_eq(err_from_slug(err_slug((enum err_code)code)), code);
        ck_assert_str_ne(err_title((enum err_code)code), "");
    }
    ck_assert_int_eq(err_from_slug("no such slug"), ERR_INTERNAL);
}
END_TEST

START_TEST(the_table_gives_status_exit_code_and_whether_to_try_again)
{
    ck_assert_int_eq(err_http(ERR_UNAVAILABLE), 503);
    ck_assert_int_eq(err_exit(ERR_UNAVAILABLE), 7);
    ck_assert(err_retryable(ERR_UNAVAILABLE));
    ck_assert(!err_retryable(ERR_FIELD));
}
END_TEST

Suite *err_suite(void)
{
    Suite *suite = suite_create("err");
    TCase *cases = tcase_create("err");
    tcase_add_test(cases, setting_an_error_returns_false_and_clears_what_an_earlier_one_left);
    tcase_add_test(cases, an_error_that_nobody_wants_is_not_written);
    tcase_add_test(cases, a_text_that_is_too_long_is_cut_and_terminated);
    tcase_add_test(cases, errno_is_spelled_out_and_survives);
    tcase_add_test(cases, a_full_disk_has_its_own_code_and_remedy);
    tcase_add_test(cases, a_hint_is_added_to_what_is_set_already);
    tcase_add_test(cases, every_slug_leads_back_to_its_code);
    tcase_add_test(cases, the_table_gives_status_exit_code_and_whether_to_try_again);
    suite_add_tcase(suite, cases);
    return suite;
}
