/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/exit_results: what is taken, and each refusal by its field. */
#include "daemon/http/agent/exit_results.h"

#include <string.h>

#include "daemon/http/api/uploads.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "tests/unit/http/http_suites.h"
#include "tests/unit/store/store_rig.h"

static struct exit_results results;
static struct uploads *uploads;
static const char *sender;     /* NULL: of a node whose token is not its own */
static struct rank_result row; /* sound: rank 0 with the pickle "hi", inline */
static char row_hash[HASH_HEX + 1];

static void open_store(void)
{
    rig_begin();
    results = (struct exit_results){0};
    uploads = uploads_create(1);
    sender = NULL;
    hash_hex("hi", 2, row_hash);
    row = (struct rank_result){
        .rank = 0, .kind = RESULT_VALUE, .size = 2, .hash = row_hash, .base64 = "aGk=", .json = "[1]"};
}

static void close_store(void)
{
    exit_results_finish(&results);
    uploads_destroy(uploads);
    rig_end();
}

static bool take(struct rank_result *rows, size_t count)
{
    struct report_message message = {.results = rows, .result_count = count};
    exit_results_finish(&results);
    rig.err = (struct err){0};
    const struct result_store store = {.reader = rig.reader, .uploads = uploads, .sender = sender};
    return exit_results_take(&results, &message, &store, &rig.err);
}

static void assert_taken(void)
{
    ck_assert_msg(take(&row, 1), "%s", rig.err.text);
}

static void assert_refused(const char *field)
{
    ck_assert(!take(&row, 1));
    ck_assert_int_eq(rig.err.code, ERR_FIELD);
    ck_assert_str_eq(rig.err.field, field);
}

/* Puts the pickle "hi" as a row, or as a file of that size. */
static void store_blob(bool file, int64_t size)
{
    struct change change = {.kind = CHANGE_BLOB_PUT, .blob = {.size = size, .bytes = file ? NULL : "hi"}};
    hash_bytes("hi", 2, change.blob.hash);
    rig_write_one(change);
}

START_TEST(a_pickle_that_came_along_is_decoded)
{
    uint8_t digest[HASH_BYTES];
    hash_bytes("hi", 2, digest);
    assert_taken();
    ck_assert_mem_eq(row.bytes, "hi", 2);
    ck_assert_mem_eq(row.digest, digest, sizeof digest);
    ck_assert_str_eq(row.json, "[1]");
}
END_TEST

START_TEST(bytes_that_are_not_those_of_their_hash_and_size_are_refused)
{
    row.base64 = "aG8=";
    assert_refused("results[0].base64");
    row.base64 = "aG";
    assert_refused("results[0].base64");
    row.base64 = "aGk=";
    row.size = 3;
    assert_refused("results[0].base64");
    row.size = 2;
    row.hash = "ff";
    assert_refused("results[0].sha256");
    row.hash = NULL;
    assert_refused("results[0].sha256");
    row.kind = RESULT_EXCEPTION;
    row.json = "{}";
    assert_refused("results[0].sha256");
}
END_TEST

START_TEST(a_pickle_that_is_only_named_is_stored_with_its_size)
{
    row.base64 = NULL;
    assert_refused("results[0].sha256");
    store_blob(true, 2);
    assert_taken();
    ck_assert_ptr_nonnull(row.digest);
    ck_assert_ptr_null(row.bytes);
    row.size = 3;
    assert_refused("results[0].sha256");
}
END_TEST

START_TEST(a_node_names_what_it_has_sent_itself_and_nothing_of_others)
{
    uint8_t digest[HASH_BYTES];
    autofree char *own = uploads_owner_of_node("n1"), *other = uploads_owner_of_node("n2");
    row.base64 = NULL;
    sender = own;
    store_blob(true, 2);
    assert_refused("results[0].sha256");
    hash_bytes("hi", 2, digest);
    uploads_add(uploads, "n1", digest, 2, 0); /* a person of that name */
    uploads_add(uploads, other, digest, 2, 0);
    assert_refused("results[0].sha256");
    uploads_add(uploads, own, digest, 2, 0);
    assert_taken();
}
END_TEST

START_TEST(an_error_file_may_stand_alone_and_a_value_may_not)
{
    row.hash = row.base64 = NULL;
    row.size = 0;
    row.json = "{}";
    row.kind = RESULT_EXCEPTION;
    assert_taken();
    ck_assert_ptr_null(row.digest);
    row.json = NULL;
    assert_refused("results[0].sha256");
    row.json = "{}";
    row.kind = RESULT_VALUE;
    assert_refused("results[0].sha256");
}
END_TEST

START_TEST(json_is_one_value_and_that_of_an_exception_an_object)
{
    static const char *const sound[] = {"null", "1", "\"]],[[\"", "[1, [2]]", " {\"a\": []} "};
    static const char *const wrong[] = {"",    "1,2", "1],[2", "1]],[[2", "1]]],[[[2",        "]",
                                        "NaN", "[",   "{",     "'1'",     "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++) {
        row.json = sound[i];
        assert_taken();
        ck_assert_str_eq(row.json, sound[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        row.json = wrong[i];
        assert_refused("results[0].json");
    }
    row.kind = RESULT_EXCEPTION;
    row.json = "{\"message\": 1}";
    assert_taken();
    row.json = "[{}]";
    assert_refused("results[0].json");
}
END_TEST

/* An array of so many levels. */
static char *nested(int levels)
{
    char *json = xzalloc(2 * (size_t)levels + 1);
    memset(json, '[', (size_t)levels);
    memset(json + levels, ']', (size_t)levels);
    return json;
}

START_TEST(json_too_deep_for_an_answer_is_left_out)
{
    autofree char *shown = nested(LIMIT_JSON_DEPTH - 3);
    row.json = shown;
    assert_taken();
    ck_assert_ptr_eq(row.json, shown);
    autofree char *deep = nested(LIMIT_JSON_DEPTH);
    row.json = deep;
    assert_taken();
    ck_assert_ptr_null(row.json);
    ck_assert_ptr_nonnull(row.bytes);
    autofree char *deeper = nested(LIMIT_JSON_DEPTH + 1);
    row.json = deeper;
    assert_refused("results[0].json");
}
END_TEST

START_TEST(inline_pickles_have_a_limit_together)
{
    autofree uint8_t *half = xzalloc(LIMIT_EXIT_RESULT_BYTES / 2);
    autofree char *base64 = text_to_base64(half, LIMIT_EXIT_RESULT_BYTES / 2);
    char hash[HASH_HEX + 1];
    hash_hex(half, LIMIT_EXIT_RESULT_BYTES / 2, hash);
    struct rank_result rows[3] = {
        {.rank = 0, .size = LIMIT_EXIT_RESULT_BYTES / 2, .hash = hash, .base64 = base64},
        {.rank = 1, .size = LIMIT_EXIT_RESULT_BYTES / 2, .hash = hash, .base64 = base64}};
    ck_assert_msg(take(rows, 2), "%s", rig.err.text);
    rows[2] = rows[1];
    ck_assert(!take(rows, 3));
    ck_assert_str_eq(rig.err.field, "results");
}
END_TEST

START_TEST(the_result_that_is_wrong_is_named)
{
    struct rank_result rows[] = {row, row};
    rows[1].json = "x";
    ck_assert(!take(rows, 2));
    ck_assert_str_eq(rig.err.field, "results[1].json");
}
END_TEST

Suite *exit_results_suite(void)
{
    Suite *suite = suite_create("exit-results");
    TCase *cases = tcase_create("exit-results");
    tcase_add_checked_fixture(cases, open_store, close_store);
    tcase_add_test(cases, a_pickle_that_came_along_is_decoded);
    tcase_add_test(cases, bytes_that_are_not_those_of_their_hash_and_size_are_refused);
    tcase_add_test(cases, a_pickle_that_is_only_named_is_stored_with_its_size);
    tcase_add_test(cases, a_node_names_what_it_has_sent_itself_and_nothing_of_others);
    tcase_add_test(cases, an_error_file_may_stand_alone_and_a_value_may_not);
    tcase_add_test(cases, json_is_one_value_and_that_of_an_exception_an_object);
    tcase_add_test(cases, json_too_deep_for_an_answer_is_left_out);
    tcase_add_test(cases, inline_pickles_have_a_limit_together);
    tcase_add_test(cases, the_result_that_is_wrong_is_named);
    suite_add_tcase(suite, cases);
    return suite;
}
