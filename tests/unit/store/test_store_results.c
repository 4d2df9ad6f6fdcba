/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks left behind, from store_apply to reader_results. */
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static const uint8_t small[32] = {1}, large[32] = {2}, empty[32] = {3};

/* The blobs of those hashes, and results of four ranks of epoch 5. */
static void write_results(const struct result_row results[4])
{
    struct change changes[] = {
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {1}, .size = 5, .bytes = "bytes"}},
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {2}, .size = 99, .bytes = NULL}},
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {3}, .size = 0, .bytes = ""}},
        {.kind = CHANGE_RESULT_PUT, .result = results[2]},
        {.kind = CHANGE_RESULT_PUT, .result = results[0]},
        {.kind = CHANGE_RESULT_PUT, .result = results[3]},
        {.kind = CHANGE_RESULT_PUT, .result = results[1]},
        {.kind = CHANGE_RESULT_PUT, .result = {6, 1, RESULT_VALUE, 5, small, "7"}},
    };
    rig_write(changes, sizeof changes / sizeof changes[0]);
}

static const struct result_row four_results[] = {{5, 0, RESULT_VALUE, 5, small, "[1, 2]"},
                                                 {5, 1, RESULT_VALUE, 99, large, NULL},
                                                 {5, 2, RESULT_EXCEPTION, 0, NULL, "{}"},
                                                 {5, 9, RESULT_EXCEPTION, 0, empty, NULL}};

START_TEST(results_read_back_by_rank_with_the_bytes_that_are_rows)
{
    write_results(four_results);
    static const void *const bytes[] = {"bytes", NULL, NULL, ""};
    autotext struct text written = {0};
    autotext struct text read = {0};
    for (size_t i = 0; i < 4; i++) {
        visit_result(&four_results[i], bytes[i], &written);
    }
    ck_assert(each_result(reader_results(rig.reader, 5, -1, 100, &rig.err), visit_result, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(results_read_back_above_a_rank_up_to_a_limit)
{
    write_results(four_results);
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_result(&four_results[1], NULL, &written);
    visit_result(&four_results[2], NULL, &written);
    ck_assert(each_result(reader_results(rig.reader, 5, 0, 2, &rig.err), visit_result, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
    text_clear(&read);
    ck_assert(each_result(reader_results(rig.reader, 5, 9, 2, &rig.err), visit_result, &read));
    ck_assert_uint_eq(read.length, 0);
}
END_TEST

START_TEST(the_last_word_on_a_result_stays)
{
    const struct result_row late = {5, 0, RESULT_EXCEPTION, 0, NULL, "{\"message\": \"late\"}"};
    write_results(four_results);
    rig_write_one((struct change){.kind = CHANGE_RESULT_PUT, .result = late});
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_result(&late, NULL, &written);
    ck_assert(each_result(reader_results(rig.reader, 5, -1, 1, &rig.err), visit_result, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

static bool take_two(const struct result_row *row, const void *bytes, void *closure)
{
    int *seen = closure;
    return ++*seen < 2;
}

START_TEST(a_visitor_that_has_enough_results_ends_the_query)
{
    write_results(four_results);
    int seen = 0;
    ck_assert(each_result(reader_results(rig.reader, 5, -1, 100, &rig.err), take_two, &seen));
    ck_assert_int_eq(seen, 2);
}
END_TEST

Suite *store_results_suite(void)
{
    Suite *suite = suite_create("store-results");
    TCase *cases = tcase_create("results");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, results_read_back_by_rank_with_the_bytes_that_are_rows);
    tcase_add_test(cases, results_read_back_above_a_rank_up_to_a_limit);
    tcase_add_test(cases, the_last_word_on_a_result_stays);
    tcase_add_test(cases, a_visitor_that_has_enough_results_ends_the_query);
    suite_add_tcase(suite, cases);
    return suite;
}
