/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli/top/data/top_walk: a list that is longer than a reading, while it changes. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/top/data/top_walk.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"
#include "tests/trace/harness/chance.h"
#include "tests/unit/cli/cli_suites.h"
#include "tests/unit/cli/top_rig.h"

enum { KEYS = 60000, ROWS = 3 };

/* The list of the controller, by page: rows with larger keys come first. */
static bool listed[KEYS];
static int newest, page_rows;

static void begin(void)
{
    memset(listed, 0, sizeof listed);
    newest = 0;
    page_rows = ROWS;
}

static void add(int count)
{
    for (; count > 0; count--) {
        listed[++newest] = true;
    }
}

/* The next page of the walk. */
static bool read_page(struct top_walk *walk)
{
    const char *cursor = top_walk_cursor(walk);
    autojson json_t *rows = json_array();
    char next[16];
    int key = cursor != NULL ? atoi(cursor) - 1 : newest;
    for (; key > 0 && json_array_size(rows) < (size_t)page_rows; key--) {
        if (listed[key]) {
            json_array_append_new(rows, json_pack("{s:o}", "id", json_sprintf("%d", key)));
        }
    }
    snprintf(next, sizeof next, "%d", key + 1);
    return top_walk_take(walk, rows, key > 0 ? next : NULL);
}

static void read_part(struct top_walk *walk)
{
    int pages = 1;
    while (read_page(walk)) {
        pages++;
    }
    ck_assert_int_le(pages, CLIENT_TOP_PAGES);
    top_walk_settle(walk);
}

static int key_at(const struct top_walk *walk, size_t place)
{
    return atoi(json_string_of(json_array_get(walk->rows, place), "id"));
}

/* The rows are in order, and each is there once; is one? */
static bool knows(const struct top_walk *walk, int key)
{
    bool found = false;
    for (size_t i = 0; i < json_array_size(walk->rows); i++) {
        ck_assert(i == 0 || key_at(walk, i) < key_at(walk, i - 1));
        found = found || key_at(walk, i) == key;
    }
    return found;
}

START_TEST(a_long_list_is_read_in_parts_and_known_as_a_whole_then)
{
    struct top_walk walk = {.key = "id"};
    add(100);
    for (size_t known = 30; known < 100; known += 27) { /* and the first page again */
        read_part(&walk);
        ck_assert_uint_eq(json_array_size(walk.rows), known);
        ck_assert_int_eq(walk.extent, TOP_PARTLY);
    }
    read_part(&walk);
    ck_assert_uint_eq(json_array_size(walk.rows), 100);
    ck_assert_int_eq(walk.extent, TOP_WHOLE);
    read_part(&walk); /* from the beginning */
    ck_assert(knows(&walk, 1) && knows(&walk, 100));
    ck_assert_int_eq(walk.extent, TOP_WHOLE);
    top_walk_finish(&walk);
}
END_TEST

START_TEST(what_is_new_is_known_with_the_next_reading_and_what_is_gone_is_forgotten_with_its_part)
{
    struct top_walk walk = {.key = "id"};
    add(100);
    for (int i = 0; i < 4; i++) {
        read_part(&walk);
    }
    read_part(&walk); /* 100 to 71 */
    add(2);
    listed[99] = listed[60] = listed[20] = false;
    read_part(&walk); /* the newest, and 70 to 44 */
    ck_assert(knows(&walk, 102) && knows(&walk, 101) && !knows(&walk, 60));
    ck_assert(knows(&walk, 99) && knows(&walk, 20)); /* their parts were not read since */
    read_part(&walk);
    read_part(&walk);
    ck_assert(!knows(&walk, 20) && walk.extent == TOP_WHOLE);
    read_part(&walk);
    ck_assert(!knows(&walk, 99) && knows(&walk, 98));
    top_walk_finish(&walk);
}
END_TEST

START_TEST(a_list_that_changes_all_the_time_is_known_but_for_what_changed_since_its_last_walk)
{
    struct top_walk walk = {.key = "id"};
    struct chance chance = {7};
    add(150);
    for (int turn = 0; turn < 300; turn++) {
        add((int)chance_below(&chance, 4));
        for (uint64_t left = chance_below(&chance, 4); left > 0; left--) {
            listed[1 + chance_below(&chance, (uint64_t)newest)] = false;
        }
        read_part(&walk);
        ck_assert(newest < ROWS || !listed[newest] || knows(&walk, newest));
    }
    for (int turn = 0; turn < 2 * newest / (9 * ROWS); turn++) {
        read_part(&walk);
    }
    for (int key = 1; key <= newest; key++) {
        ck_assert_msg(knows(&walk, key) == listed[key], "%d", key);
    }
    top_walk_finish(&walk);
}
END_TEST

START_TEST(a_reading_that_fails_leaves_what_is_known_and_the_next_one_begins_anew)
{
    struct top_walk walk = {.key = "id"};
    add(100);
    read_part(&walk);
    ck_assert(read_page(&walk) && read_page(&walk));
    top_walk_drop(&walk);
    ck_assert_uint_eq(json_array_size(walk.rows), 30);
    ck_assert_ptr_null(top_walk_cursor(&walk));
    ck_assert(read_page(&walk));
    ck_assert_str_eq(top_walk_cursor(&walk), "98");
    top_walk_finish(&walk);
}
END_TEST

START_TEST(a_list_that_is_too_long_is_cut_and_says_so)
{
    struct top_walk walk = {.key = "id"};
    page_rows = LIMIT_TOP_ROWS / 8;
    add(KEYS - 1);
    read_part(&walk);
    ck_assert_uint_eq(json_array_size(walk.rows), LIMIT_TOP_ROWS);
    ck_assert_int_eq(walk.extent, TOP_CUT);
    ck_assert_ptr_null(top_walk_cursor(&walk));
    top_walk_finish(&walk);
}
END_TEST

Suite *cli_top_walk_suite(void)
{
    Suite *suite = suite_create("cli_top_walk");
    TCase *cases = tcase_create("walks");
    tcase_add_checked_fixture(cases, begin, NULL);
    tcase_add_test(cases, a_long_list_is_read_in_parts_and_known_as_a_whole_then);
    tcase_add_test(cases,
                   what_is_new_is_known_with_the_next_reading_and_what_is_gone_is_forgotten_with_its_part);
    tcase_add_test(cases, a_list_that_changes_all_the_time_is_known_but_for_what_changed_since_its_last_walk);
    tcase_add_test(cases, a_reading_that_fails_leaves_what_is_known_and_the_next_one_begins_anew);
    tcase_add_test(cases, a_list_that_is_too_long_is_cut_and_says_so);
    suite_add_tcase(suite, cases);
    return suite;
}
