/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/results and agent/left: what of that which ranks left behind goes into a report, and how
 * what went wrong is told. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/output/rank_file.h"
#include "agent/output/results.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define RANKS 8

static struct uploads *uploads;
static struct results *results;
static struct rank_exit exits[RANKS];
static struct record record;
static struct rank_result *rows;
static size_t row_count;
static size_t ready_count;

static bool idle(void *closure)
{
    return uploads_step(uploads);
}

static void setup(void)
{
    rig_setup();
    uploads = uploads_create(rig.controller);
    loop_set_idle(rig.loop, idle, NULL);
    record = (struct record){.ranks = exits, .rank_count = 1, .cause = CAUSE_NONE};
    for (int64_t i = 0; i < RANKS; i++) {
        exits[i] = (struct rank_exit){.rank = i, .at_ms = 1000 + i};
    }
    rows = NULL;
    ready_count = 0;
    rig_write_text("function", "gpuctl-function 1 python=3.11\n");
    rig_write_text("results/unused", "");
}

static void teardown(void)
{
    free(rows);
    results_destroy(results);
    results = NULL;
    uploads_destroy(uploads);
    rig_teardown();
}

static void ready(void *closure)
{
    ready_count++;
    loop_end(rig.loop);
}

static void collect(size_t ranks)
{
    record.rank_count = ranks;
    results = results_collect(uploads, rig.folder, &record, NULL, ready, NULL);
    if (!results_ready(results)) {
        rig_run();
        ck_assert_uint_eq(ready_count, 1);
    }
    rows = results_list(results, &row_count);
}

static void write_zeros(const char *name, size_t length)
{
    autofree char *bytes = xzalloc(length + 1);
    rig_write(name, bytes, length);
}

/* A JSON string of exactly so many bytes. */
static void write_json_text(const char *name, size_t length)
{
    autofree char *bytes = xalloc(length);
    memset(bytes, 'x', length);
    bytes[0] = bytes[length - 1] = '"';
    rig_write(name, bytes, length);
}

/* An error file of exactly so many bytes. */
static void write_error(int64_t rank, size_t length)
{
    static const char head[] = "{\"message\":\"", tail[] = "\"}";
    autofree char *name = xprintf("errors/%lld.json", (long long)rank);
    autofree char *bytes = xalloc(length);
    memset(bytes, 'e', length);
    memcpy(bytes, head, strlen(head));
    memcpy(bytes + length - strlen(tail), tail, strlen(tail));
    rig_write(name, bytes, length);
}

/* --- values --------------------------------------------------------------------------------------------- */

/* A record has the ranks in the order of their ends. */
START_TEST(results_are_listed_by_rank_whoever_ended_first)
{
    for (int64_t i = 0; i < 3; i++) {
        exits[i].rank = 2 - i;
    }
    rig_write_text("results/0.pickle", "a");
    rig_write_text("results/1.pickle", "b");
    rig_write_text("results/2.pickle", "c");
    collect(3);
    ck_assert_uint_eq(row_count, 3);
    for (int64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(rows[i].rank, i);
    }
}
END_TEST

START_TEST(a_small_value_rides_in_the_report)
{
    rig_write_text("results/0.pickle", "pickle");
    rig_write_text("results/0.json", "[1, 2]");
    collect(1);
    char expected[HASH_HEX + 1];
    hash_hex("pickle", 6, expected);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].kind, RESULT_VALUE);
    ck_assert_int_eq(rows[0].size, 6);
    ck_assert_str_eq(rows[0].hash, expected);
    ck_assert_str_eq(rows[0].base64, "cGlja2xl");
    ck_assert_str_eq(rows[0].json, "[1, 2]");
    ck_assert_ptr_null(results_problem(results));
    ck_assert_uint_eq(ready_count, 0);
}
END_TEST

START_TEST(a_rank_that_left_nothing_has_no_row)
{
    rig_write_text("results/1.pickle.part", "half");
    rig_write_text("results/0.json", "1"); /* without its pickle it is no value */
    rig_write_text("results/2.pickle", "x");
    collect(3);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].rank, 2);
    ck_assert_ptr_null(results_problem(results));
}
END_TEST

START_TEST(text_that_the_controller_would_not_understand_is_left_out)
{
    static const char *const wrong[] = {"",    "nope", "1 2", "[1e999]", "\"\\u0000\"", "{\"a\":1,\"a\":2}",
                                        "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rig_write_text("results/0.pickle", "x");
        rig_write_text("results/0.json", wrong[i]);
        collect(1);
        ck_assert_uint_eq(row_count, 1);
        ck_assert_msg(rows[0].json == NULL, "%s", wrong[i]);
        free(give(rows));
        results_destroy(give(results));
    }
}
END_TEST

START_TEST(pickles_ride_up_to_their_limit_together)
{
    write_zeros("results/0.pickle", LIMIT_EXIT_RESULT_BYTES - 10);
    write_zeros("results/1.pickle", 11);
    write_zeros("results/2.pickle", 10);
    collect(3);
    ck_assert_uint_eq(row_count, 3);
    ck_assert_ptr_nonnull(rows[0].base64);
    ck_assert_ptr_null(rows[1].base64);
    ck_assert_ptr_nonnull(rows[2].base64);
    ck_assert_uint_eq(rig.request_count, 1);
    ck_assert_uint_eq(rig.requests[0].body.length, 11);
    ck_assert_int_eq(rows[1].size, 11);
}
END_TEST

START_TEST(texts_ride_up_to_their_limit_together)
{
    write_json_text("results/0.json", LIMIT_EXIT_JSON_BYTES - 10);
    write_json_text("results/1.json", 11);
    write_json_text("results/2.json", 10);
    for (int i = 0; i < 3; i++) {
        autofree char *name = xprintf("results/%d.pickle", i);
        rig_write_text(name, "x");
    }
    collect(3);
    ck_assert_ptr_nonnull(rows[0].json);
    ck_assert_ptr_null(rows[1].json);
    ck_assert_ptr_nonnull(rows[2].json);
    ck_assert_uint_le(results_weight(results), LIMIT_EXIT_JSON_BYTES * 2 + 1000);
}
END_TEST

START_TEST(a_command_has_no_value)
{
    rig_write_text("results/0.pickle", "x");
    autofree char *function = rig_path("function");
    ck_assert_int_eq(unlink(function), 0);
    collect(1);
    ck_assert_uint_eq(row_count, 0);
}
END_TEST

/* --- large ones ----------------------------------------------------------------------------------------- */

START_TEST(large_values_are_with_the_controller_before_they_are_listed)
{
    autofree char *bytes = rig_bytes(3 * MIB);
    rig_write("results/0.pickle", bytes, 3 * MIB);
    rig_write_text("results/0.json", "true");
    rig_write("results/1.pickle", bytes, LIMIT_EXIT_RESULT_BYTES + 1);
    collect(2);
    char hash[HASH_HEX + 1];
    hash_hex(bytes, 3 * MIB, hash);
    ck_assert_uint_eq(row_count, 2);
    ck_assert_str_eq(rows[0].hash, hash);
    ck_assert_int_eq(rows[0].size, 3 * MIB);
    ck_assert_ptr_null(rows[0].base64);
    ck_assert_str_eq(rows[0].json, "true");
    ck_assert_uint_eq(rig.request_count, 2);
    ck_assert_str_eq(rig.requests[0].target + strlen("/v1/blobs/"), hash);
    ck_assert_uint_eq(rig.requests[1].body.length, LIMIT_EXIT_RESULT_BYTES + 1);
}
END_TEST

/* As long as asked for, and empty on the disk. */
static void write_hole(const char *name, int64_t length)
{
    rig_write_text(name, "");
    autofree char *path = rig_path(name);
    ck_assert_int_eq(truncate(path, (off_t)length), 0);
}

START_TEST(a_value_that_is_too_large_says_so)
{
    write_hole("results/1.pickle", LIMIT_BLOB_BYTES + 1);
    rig_write_text("results/0.pickle", "x");
    write_hole("results/2.pickle", 5 * GIB);
    collect(3);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].rank, 0);
    ck_assert_str_eq(results_problem(results), "the result of rank 1 is 1.1 GiB, the limit is 1 GiB");
    ck_assert_uint_eq(rig.request_count, 0);
}
END_TEST

static struct rig_answer unwilling(struct rig *server, const struct rig_request *request)
{
    return (struct rig_answer){422,
                               "{\"code\":\"invalid_field\",\"status\":422,\"detail\":\"another content\"}"};
}

START_TEST(a_value_that_the_controller_refuses_says_so)
{
    rig.answer = unwilling;
    write_zeros("results/0.pickle", LIMIT_EXIT_RESULT_BYTES + 1);
    collect(1);
    ck_assert_uint_eq(row_count, 0);
    ck_assert_str_eq(results_problem(results), "the result of rank 0 cannot be stored: another content");
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

static struct rig_answer away_at_first(struct rig *server, const struct rig_request *request)
{
    return (struct rig_answer){.status = server->request_count == 1 ? 503 : 201};
}

START_TEST(a_value_waits_for_the_controller)
{
    rig.answer = away_at_first;
    write_zeros("results/0.pickle", LIMIT_EXIT_RESULT_BYTES + 1);
    collect(1);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_uint_eq(rig.request_count, 2);
}
END_TEST

START_TEST(what_is_cut_keeps_what_is_there)
{
    write_zeros("results/0.pickle", 10);
    write_zeros("results/1.pickle", LIMIT_EXIT_RESULT_BYTES + 1);
    record.rank_count = 2;
    results = results_collect(uploads, rig.folder, &record, NULL, ready, NULL);
    ck_assert(!results_ready(results));
    results_cut(results);
    ck_assert(results_ready(results));
    ck_assert(!uploads_step(uploads));
    rows = results_list(results, &row_count);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].rank, 0);
    ck_assert_uint_eq(ready_count, 0);
}
END_TEST

START_TEST(results_are_refused_once)
{
    rig_write_text("results/0.pickle", "x");
    collect(1);
    ck_assert(results_refuse(results, "no such blob"));
    ck_assert_str_eq(results_problem(results), "the controller does not take the results: no such blob");
    free(rows);
    rows = results_list(results, &row_count);
    ck_assert_uint_eq(row_count, 0);
    ck_assert(!results_refuse(results, "again"));
}
END_TEST

/* --- exceptions ----------------------------------------------------------------------------------------- */

START_TEST(an_exception_comes_with_its_error_file)
{
    exits[0].code = 1;
    rig_write_text("results/0.error.pickle", "raised");
    rig_write_text("errors/0.json", "{\"message\":{\"message\":\"ValueError: bad\"}}");
    collect(1);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].kind, RESULT_EXCEPTION);
    ck_assert_int_eq(rows[0].size, 6);
    ck_assert_ptr_nonnull(rows[0].base64);
    ck_assert_str_eq(rows[0].json, "{\"message\":{\"message\":\"ValueError: bad\"}}");
}
END_TEST

START_TEST(a_command_leaves_an_error_file_when_it_fails)
{
    autofree char *function = rig_path("function");
    ck_assert_int_eq(unlink(function), 0);
    exits[1].code = 1;
    rig_write_text("errors/0.json", "{\"message\":\"of a worker that was started again\"}");
    rig_write_text("errors/1.json", "{\"message\":\"bad\"}");
    collect(2);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].rank, 1);
    ck_assert_int_eq(rows[0].kind, RESULT_EXCEPTION);
    ck_assert_ptr_null(rows[0].hash);
    ck_assert_int_eq(rows[0].size, 0);
}
END_TEST

START_TEST(an_error_file_that_is_no_object_or_too_long_is_left_out)
{
    for (size_t i = 0; i < 4; i++) {
        exits[i].code = 1;
    }
    rig_write_text("errors/0.json", "[1]");
    rig_write_text("errors/1.json", "{\"message\":");
    write_error(2, LIMIT_ERROR_FILE_BYTES + 1);
    write_error(3, LIMIT_ERROR_FILE_BYTES);
    collect(4);
    ck_assert_uint_eq(row_count, 1);
    ck_assert_int_eq(rows[0].rank, 3);
}
END_TEST

START_TEST(of_many_error_files_those_of_the_first_to_fail_are_kept)
{
    for (int64_t i = 0; i < 6; i++) {
        exits[i].code = 1;
        exits[i].at_ms = 2000 - i; /* the last rank was the first */
        write_error(i, LIMIT_ERROR_FILE_BYTES);
    }
    exits[5].by_us = true; /* but that one was killed */
    collect(6);
    ck_assert_uint_eq(row_count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(rows[i].rank, 1 + (int64_t)i);
    }
}
END_TEST

/* --- what is not to be trusted -------------------------------------------------------------------------- */

/* A17: the agent may read what the rank may not. */
START_TEST(a_file_of_the_host_that_a_rank_gave_a_second_name_is_no_result)
{
    rig_write_text("secret", "{\"message\":\"secret\"}");
    rig_write_text("errors/unused", "");
    rig_write_text("results/unused", "");
    autofree char *secret = rig_path("secret");
    autofree char *value = rig_path("results/0.pickle"), *error = rig_path("errors/1.json");
    ck_assert_int_eq(link(secret, value) + link(secret, error), 0);
    exits[1].code = 1;
    collect(2);
    ck_assert_uint_eq(row_count, 0);
    ck_assert_ptr_null(rank_file_error(rig.folder, 1));
}
END_TEST

START_TEST(no_link_and_no_pipe_is_followed)
{
    rig_write_text("secret", "{\"message\":\"secret\"}");
    autofree char *secret = rig_path("secret");
    const char *const names[] = {"results/0.pickle", "errors/1.json", "results/1.error.pickle"};
    rig_write_text("errors/unused", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        autofree char *name = rig_path(names[i]);
        ck_assert_int_eq(symlink(secret, name), 0);
    }
    autofree char *pipe_name = rig_path("results/2.pickle");
    ck_assert_int_eq(mkfifo(pipe_name, 0600), 0);
    exits[1].code = 1;
    collect(3);
    ck_assert_uint_eq(row_count, 0);
    ck_assert_ptr_null(rank_file_error(rig.folder, 1));
}
END_TEST

START_TEST(a_folder_that_became_a_link_is_empty)
{
    rig_write_text("elsewhere/0.pickle", "x");
    autofree char *folder = rig_path("results"), *unused = rig_path("results/unused");
    ck_assert_int_eq(unlink(unused) + rmdir(folder) + symlink("elsewhere", folder), 0);
    collect(1);
    ck_assert_uint_eq(row_count, 0);
}
END_TEST

/* --- last words ----------------------------------------------------------------------------------------- */

START_TEST(a_note_of_a_rank_is_one_line_and_no_link)
{
    rig_write_text("errors/0.note", "rank 0 is alone\nand more\n");
    autofree char *note = rank_file_note(rig.folder, 0);
    ck_assert_str_eq(note, "rank 0 is alone");
    autofree char *secret = rig_path("errors/0.note"), *linked = rig_path("errors/1.note");
    ck_assert_int_eq(symlink(secret, linked), 0);
    ck_assert_ptr_null(rank_file_note(rig.folder, 1));
    ck_assert_ptr_null(rank_file_note(rig.folder, 2));
}
END_TEST

static void assert_said(const char *file, const char *expected)
{
    rig_write_text("errors/0.json", file);
    autofree char *said = rank_file_error(rig.folder, 0);
    if (expected == NULL) {
        ck_assert_msg(said == NULL, "%s", file);
    } else {
        ck_assert_msg(said != NULL, "%s", file);
        ck_assert_str_eq(said, expected);
    }
}

START_TEST(last_words_are_the_first_line_of_either_form)
{
    assert_said("{\"message\":{\"message\":\"ValueError: bad\\nmore\",\"extraInfo\":{}}}", "ValueError: bad");
    assert_said("{\"message\":\"bad\\r\\nmore\"}", "bad");
    assert_said("{\"message\":\"\\n  late  \\n\"}", "late");
    assert_said("{\"message\":\"a\\u001b[31mb\\tc\"}", "a [31mb c");
}
END_TEST

START_TEST(who_says_nothing_is_not_quoted)
{
    assert_said("{\"message\":\"  \\n\"}", NULL);
    assert_said("{\"message\":{\"message\":7}}", NULL);
    assert_said("{\"message\":[]}", NULL);
    assert_said("[]", NULL);
    assert_said("{", NULL);
    ck_assert_ptr_null(rank_file_error(rig.folder, 1));
}
END_TEST

START_TEST(long_last_words_are_cut_between_characters)
{
    autotext struct text file = {0};
    text_append(&file, "{\"message\":\"");
    for (size_t i = 0; i < LIMIT_SAID_BYTES - 1; i++) {
        text_append(&file, "x");
    }
    text_append(&file, "\xc3\xa9\xc3\xa9\"}");
    rig_write("errors/0.json", file.bytes, file.length);
    autofree char *said = rank_file_error(rig.folder, 0);
    ck_assert_uint_eq(strlen(said), LIMIT_SAID_BYTES - 1);
}
END_TEST

START_TEST(an_error_file_that_is_too_long_for_a_report_is_quoted_still)
{
    write_error(0, 4 * LIMIT_ERROR_FILE_BYTES);
    autofree char *said = rank_file_error(rig.folder, 0);
    ck_assert_uint_eq(strlen(said), LIMIT_SAID_BYTES);
}
END_TEST

Suite *results_suite(void)
{
    Suite *suite = suite_create("results");
    TCase *tcase = tcase_create("results");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, results_are_listed_by_rank_whoever_ended_first);
    tcase_add_test(tcase, a_small_value_rides_in_the_report);
    tcase_add_test(tcase, a_rank_that_left_nothing_has_no_row);
    tcase_add_test(tcase, text_that_the_controller_would_not_understand_is_left_out);
    tcase_add_test(tcase, pickles_ride_up_to_their_limit_together);
    tcase_add_test(tcase, texts_ride_up_to_their_limit_together);
    tcase_add_test(tcase, a_command_has_no_value);
    tcase_add_test(tcase, large_values_are_with_the_controller_before_they_are_listed);
    tcase_add_test(tcase, a_value_that_is_too_large_says_so);
    tcase_add_test(tcase, a_value_that_the_controller_refuses_says_so);
    tcase_add_test(tcase, a_value_waits_for_the_controller);
    tcase_add_test(tcase, what_is_cut_keeps_what_is_there);
    tcase_add_test(tcase, results_are_refused_once);
    tcase_add_test(tcase, an_exception_comes_with_its_error_file);
    tcase_add_test(tcase, a_command_leaves_an_error_file_when_it_fails);
    tcase_add_test(tcase, an_error_file_that_is_no_object_or_too_long_is_left_out);
    tcase_add_test(tcase, of_many_error_files_those_of_the_first_to_fail_are_kept);
    tcase_add_test(tcase, no_link_and_no_pipe_is_followed);
    tcase_add_test(tcase, a_file_of_the_host_that_a_rank_gave_a_second_name_is_no_result);
    tcase_add_test(tcase, a_folder_that_became_a_link_is_empty);
    tcase_add_test(tcase, last_words_are_the_first_line_of_either_form);
    tcase_add_test(tcase, a_note_of_a_rank_is_one_line_and_no_link);
    tcase_add_test(tcase, who_says_nothing_is_not_quoted);
    tcase_add_test(tcase, long_last_words_are_cut_between_characters);
    tcase_add_test(tcase, an_error_file_that_is_too_long_for_a_report_is_quoted_still);
    suite_add_tcase(suite, tcase);
    return suite;
}
