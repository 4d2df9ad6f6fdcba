/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/rank_token: what a token proves, and what it does not. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/http/auth/rank_token.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/http/http_suites.h"

#define ATTEMPT_ID (7ULL << 32 | 42)

static const uint8_t key[HASH_BYTES] = "a key of the controller";
static const uint8_t other_key[HASH_BYTES] = "a key of another controller";

START_TEST(a_token_names_its_attempt_id_to_whoever_made_it)
{
    char token[RANK_TOKEN_BYTES];
    uint64_t attempt_id = 0;
    rank_token_make(key, ATTEMPT_ID, token);
    ck_assert_uint_eq(strlen(token), RANK_TOKEN_LENGTH);
    ck_assert(rank_token_read(key, token, &attempt_id));
    ck_assert_uint_eq(attempt_id, ATTEMPT_ID);
    ck_assert(!rank_token_read(other_key, token, &attempt_id));
}
END_TEST

START_TEST(a_changed_token_is_none)
{
    char token[RANK_TOKEN_BYTES];
    uint64_t attempt_id = 0;
    rank_token_make(key, ATTEMPT_ID, token);
    for (size_t i = 0; i < RANK_TOKEN_LENGTH; i++) {
        char was = token[i];
        token[i] = was == '1' ? '2' : '1';
        ck_assert_msg(!rank_token_read(key, token, &attempt_id), "position %zu", i);
        token[i] = was;
    }
    token[RANK_TOKEN_LENGTH - 1] = '\0';
    ck_assert(!rank_token_read(key, token, &attempt_id));
    ck_assert(!rank_token_read(key, "", &attempt_id));
    ck_assert(!rank_token_read(key, "gcr_", &attempt_id));
    ck_assert_uint_eq(attempt_id, 0);
}
END_TEST

START_TEST(a_run_is_one_attempts_and_shows_nothing_of_the_token)
{
    char token[RANK_TOKEN_BYTES], run[TRACKING_RUN_ID_BYTES], again[TRACKING_RUN_ID_BYTES];
    rank_token_make(key, ATTEMPT_ID, token);
    rank_run_id(key, ATTEMPT_ID, run);
    rank_run_id(key, ATTEMPT_ID, again);
    ck_assert_str_eq(run, again);
    ck_assert_uint_eq(strspn(run, "0123456789abcdef"), 32);
    ck_assert_ptr_null(strstr(token, run));
    rank_run_id(key, ATTEMPT_ID + 1, again);
    ck_assert_str_ne(run, again);
}
END_TEST

START_TEST(the_key_is_made_once_and_is_nobody_elses_to_read)
{
    char folder[] = "/tmp/rank-key-XXXXXX";
    uint8_t made[HASH_BYTES], read[HASH_BYTES];
    struct err err;
    struct stat state;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    autofree char *path = xprintf("%s/key", folder);
    ck_assert(rank_key_open(path, made, &err));
    ck_assert(rank_key_open(path, read, &err));
    ck_assert_mem_eq(made, read, sizeof made);
    ck_assert_int_eq(stat(path, &state), 0);
    ck_assert_int_eq(state.st_mode & 0777, 0600);
    ck_assert_int_eq(truncate(path, 10), 0);
    ck_assert(!rank_key_open(path, read, &err));
    unlink(path);
    rmdir(folder);
}
END_TEST

Suite *rank_token_suite(void)
{
    Suite *suite = suite_create("rank_token");
    TCase *cases = tcase_create("rank_token");
    tcase_add_test(cases, a_token_names_its_attempt_id_to_whoever_made_it);
    tcase_add_test(cases, a_changed_token_is_none);
    tcase_add_test(cases, a_run_is_one_attempts_and_shows_nothing_of_the_token);
    tcase_add_test(cases, the_key_is_made_once_and_is_nobody_elses_to_read);
    suite_add_tcase(suite, cases);
    return suite;
}
