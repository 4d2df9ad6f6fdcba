/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/uploads: a quota of 10 MiB. */
#include <string.h>

#include "daemon/http/api/uploads.h"
#include "proto/limits.h"
#include "tests/unit/http/http_suites.h"

static struct uploads *uploads;
static struct err err;

static void open_uploads(void)
{
    uploads = uploads_create(10 * MIB);
}

static void close_uploads(void)
{
    uploads_destroy(uploads);
}

static const uint8_t *hash_of(uint8_t first)
{
    static uint8_t hash[HASH_BYTES];
    hash[0] = first;
    return hash;
}

START_TEST(what_no_job_names_counts_for_its_sender_alone)
{
    uploads_add(uploads, "ada", hash_of(1), 6 * MIB, 0);
    ck_assert(uploads_allow(uploads, "ada", 4 * MIB, 0, &err));
    ck_assert(!uploads_allow(uploads, "ada", 4 * MIB + 1, 0, &err));
    ck_assert_int_eq(err.code, ERR_LIMIT);
    ck_assert_msg(strstr(err.text, "names 6 MiB") != NULL && strstr(err.text, "may have 10 MiB") != NULL,
                  "%s", err.text);
    ck_assert_msg(strstr(err.hint, "submit the jobs") != NULL && strstr(err.hint, "--upload-quota") != NULL,
                  "%s", err.hint);
    ck_assert(uploads_allow(uploads, "bob", 10 * MIB, 0, &err));
    ck_assert_ptr_null(uploads_limit(uploads, "ada", hash_of(1)));
    ck_assert_str_eq(uploads_limit(uploads, "bob", hash_of(1)), "bob");
    ck_assert_ptr_null(uploads_limit(uploads, NULL, hash_of(2)));
}
END_TEST

START_TEST(what_a_job_names_counts_no_more)
{
    uploads_add(uploads, "ada", hash_of(1), 6 * MIB, 0);
    uploads_add(uploads, "ada", hash_of(2), 4 * MIB, 0);
    uploads_remove(uploads, "bob", hash_of(1));
    ck_assert(!uploads_allow(uploads, "ada", 1, 0, &err));
    uploads_remove(uploads, "ada", hash_of(1));
    uploads_remove(uploads, "ada", hash_of(1));
    ck_assert(uploads_allow(uploads, "ada", 6 * MIB, 0, &err));
    ck_assert(!uploads_allow(uploads, "ada", 6 * MIB + 1, 0, &err));
}
END_TEST

START_TEST(what_is_sent_again_counts_once)
{
    uploads_add(uploads, "ada", hash_of(1), 6 * MIB, 0);
    uploads_add(uploads, "ada", hash_of(1), 6 * MIB, 1);
    ck_assert(uploads_allow(uploads, "ada", 4 * MIB, 1, &err));
}
END_TEST

START_TEST(what_is_old_counts_no_more)
{
    uploads_add(uploads, "ada", hash_of(1), 10 * MIB, 0);
    ck_assert(!uploads_allow(uploads, "ada", 1, RETENTION_BLOB_MS - 1, &err));
    ck_assert(uploads_allow(uploads, "ada", 10 * MIB, RETENTION_BLOB_MS, &err));
    ck_assert_str_eq(uploads_limit(uploads, "ada", hash_of(1)), "ada");
}
END_TEST

START_TEST(small_uploads_are_limited_in_number)
{
    const int64_t most = 10 * MIB / LIMIT_BLOB_ROW_BYTES;
    for (int64_t i = 0; i < most; i++) {
        ck_assert(uploads_allow(uploads, "ada", 1, 0, &err));
        uploads_add(uploads, "ada", hash_of((uint8_t)i), 1, 0);
    }
    ck_assert(!uploads_allow(uploads, "ada", 1, 0, &err));
}
END_TEST

Suite *uploads_suite(void)
{
    Suite *suite = suite_create("uploads");
    TCase *cases = tcase_create("uploads");
    tcase_add_checked_fixture(cases, open_uploads, close_uploads);
    tcase_add_test(cases, what_no_job_names_counts_for_its_sender_alone);
    tcase_add_test(cases, what_a_job_names_counts_no_more);
    tcase_add_test(cases, what_is_sent_again_counts_once);
    tcase_add_test(cases, what_is_old_counts_no_more);
    tcase_add_test(cases, small_uploads_are_limited_in_number);
    suite_add_tcase(suite, cases);
    return suite;
}
