/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/payload: a blob is fetched once, and never used with another content than its hash says. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/environment/payload.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define BLOB_BYTES (3 * 1024 * 1024 + 17) /* several steps */

static struct payloads *payloads;
static char *blob; /* text, because the rig sends text */
static const char *sent;
static char hash[HASH_HEX + 1];
static char *got; /* what the last order gave */
static size_t got_length;
static struct err problem;

static bool idle(void *closure)
{
    return payloads_step(payloads);
}

static struct rig_answer answer(struct rig *unused, const struct rig_request *request)
{
    return (struct rig_answer){200, sent};
}

static void setup(void)
{
    rig_setup();
    rig.answer = answer;
    loop_set_idle(rig.loop, idle, NULL);
    autofree char *cache = rig_path("payloads");
    payloads = payloads_create(cache, rig.controller, NULL);
    blob = xalloc(BLOB_BYTES + 1);
    for (size_t i = 0; i < BLOB_BYTES; i++) {
        blob[i] = (char)('a' + i * 7 % 26);
    }
    blob[BLOB_BYTES] = '\0';
    sent = blob;
    hash_hex(blob, BLOB_BYTES, hash);
    problem = (struct err){0};
}

static void teardown(void)
{
    payloads_destroy(payloads);
    free(blob);
    free(give(got));
    rig_teardown();
}

static void ended(void *closure, int file, const struct err *err)
{
    const int *filled = closure;
    int from = filled != NULL ? *filled : file;
    problem = err != NULL ? *err : problem;
    ck_assert((file < 0) == (err != NULL || filled != NULL));
    got_length = 0;
    got = xrealloc(got, BLOB_BYTES + 1);
    for (ssize_t more = 1; err == NULL && more > 0; got_length += (size_t)more) {
        more = pread(from, got + got_length, BLOB_BYTES + 1 - got_length, (off_t)got_length);
        ck_assert_int_ge(more, 0);
    }
    loop_end(rig.loop);
}

static void ck_assert_whole(void)
{
    ck_assert_int_eq(problem.code, ERR_NONE);
    ck_assert_uint_eq(got_length, BLOB_BYTES);
    ck_assert_int_eq(memcmp(got, blob, BLOB_BYTES), 0);
}

static char *cached_path(void)
{
    autofree char *name = xprintf("payloads/%s", hash);
    return rig_path(name);
}

/* What somebody wrote there. */
static void put_cached(const char *bytes, size_t length)
{
    autofree char *path = cached_path();
    ck_assert(file_replace(path, bytes, length, 0600, NULL));
}

static void put_altered(void)
{
    autofree char *altered = xstrdup(blob);
    altered[BLOB_BYTES - 1] = '!';
    put_cached(altered, BLOB_BYTES);
}

static void fill(void)
{
    autofree char *path = rig_path("copy");
    autoclose int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    payload_fill(payloads, hash, file, ended, &file);
    rig_run();
}

START_TEST(a_blob_of_the_cache_is_used_as_it_is)
{
    put_cached(blob, BLOB_BYTES);
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 0);
}
END_TEST

START_TEST(one_that_is_not_there_is_fetched_and_kept)
{
    fill();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
    autofree char *path = cached_path();
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(an_altered_one_is_fetched_again_before_it_is_given)
{
    put_altered();
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

START_TEST(a_copy_of_an_altered_one_is_made_anew)
{
    autofree char *longer = xprintf("%smore", blob);
    put_cached(longer, BLOB_BYTES + 4);
    fill();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

START_TEST(a_shortened_one_is_fetched_again)
{
    put_cached(blob, BLOB_BYTES / 2);
    fill();
    ck_assert_whole();
}
END_TEST

START_TEST(one_that_is_wrong_there_too_is_refused)
{
    put_altered();
    sent = "something else";
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_int_eq(problem.code, ERR_IO);
    ck_assert_ptr_nonnull(strstr(problem.text, "another content"));
    autofree char *path = cached_path();
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

static void alter_again(void *closure, int file, const struct err *err)
{
    ck_assert_ptr_null(err);
    put_altered();
    payload_open(payloads, hash, ended, NULL);
}

START_TEST(what_was_right_once_is_checked_again)
{
    put_cached(blob, BLOB_BYTES);
    payload_open(payloads, hash, alter_again, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

Suite *payload_suite(void)
{
    Suite *suite = suite_create("payload");
    TCase *tcase = tcase_create("payload");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_blob_of_the_cache_is_used_as_it_is);
    tcase_add_test(tcase, one_that_is_not_there_is_fetched_and_kept);
    tcase_add_test(tcase, an_altered_one_is_fetched_again_before_it_is_given);
    tcase_add_test(tcase, a_copy_of_an_altered_one_is_made_anew);
    tcase_add_test(tcase, a_shortened_one_is_fetched_again);
    tcase_add_test(tcase, one_that_is_wrong_there_too_is_refused);
    tcase_add_test(tcase, what_was_right_once_is_checked_again);
    suite_add_tcase(suite, tcase);
    return suite;
}
