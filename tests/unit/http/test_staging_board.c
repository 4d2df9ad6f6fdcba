/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/staging_board: what is noted, how long, in which order it is shown, and in which
 * words. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/orders/staging_board.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct staging_board *board;

static void begin(void)
{
    board = staging_board_create();
}

static void end(void)
{
    staging_board_destroy(board);
}

/* first and second are keys, or NULL. */
static void tell(const char *node, const char *first, const char *second, int64_t now_ms)
{
    struct node_staging stagings[2];
    struct node_orders orders = {.node = (char *)(uintptr_t)node, .stagings = stagings};
    const char *const keys[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        if (keys[i] != NULL) {
            stagings[orders.staging_count++] =
                (struct node_staging){.key = (char *)(uintptr_t)keys[i], .text = NULL};
        }
    }
    staging_board_told(board, &orders, now_ms);
}

static void assert_says(const char *key, int64_t now_ms, const char *expected)
{
    size_t count;
    autofree struct staging_view *nodes = staging_board_look(board, key, now_ms, &count);
    autotext struct text out = {0};
    staging_board_say(nodes, count, true, &out);
    ck_assert_str_eq(out.bytes, expected);
}

#define NOBODY "nodes are chosen to prepare the job's environment"

START_TEST(who_was_told_and_is_silent_is_said)
{
    tell("n1", A, NULL, 1000);
    assert_says(A, 4999, "node n1 was sent the order 3 s ago");
    assert_says(B, 4999, NOBODY);
    assert_says(A, 1000 + STAGING_SILENT_MS,
                "node n1 was sent the order 60 s ago, and has said nothing since");
}
END_TEST

START_TEST(progress_is_said_with_the_time_since_the_order)
{
    tell("n1", A, NULL, 1000);
    staging_board_hear(board, "n1", A, "Collecting numpy", 2000);
    staging_board_hear(board, "n1", A, "Installing torch", 30000);
    assert_says(A, 35000, "node n1 builds the environment: Installing torch (34 s)");
    staging_board_hear(board, "n1", A, "", 30000);
    assert_says(A, 35000, "node n1 builds the environment (34 s)");
}
END_TEST

START_TEST(a_need_without_environment_is_fetched)
{
    struct staging_view node = {.node = "n1", .heard = true, .text = "model.bin", .since_ms = 2500};
    autotext struct text out = {0};
    staging_board_say(&node, 1, false, &out);
    ck_assert_str_eq(out.bytes, "node n1 fetches what the job needs: model.bin (2 s)");
}
END_TEST

START_TEST(a_node_without_progress_is_said_to_be_stuck)
{
    tell("n1", A, NULL, 0);
    staging_board_hear(board, "n1", A, "Downloading torch", 10000);
    assert_says(A, 10000 + STAGING_SILENT_MS - 1, "node n1 builds the environment: Downloading torch (69 s)");
    assert_says(A, 85000, "node n1 has made no progress for 75 s: Downloading torch");
    staging_board_hear(board, "n1", A, "Installing torch", 90000);
    assert_says(A, 91000, "node n1 builds the environment: Installing torch (91 s)");
}
END_TEST

START_TEST(the_node_without_progress_for_longest_comes_first)
{
    tell("n1", A, NULL, 0);
    tell("n2", A, B, 0);
    tell("n3", A, NULL, 500);
    staging_board_hear(board, "n1", A, "Installing a", 2000);
    staging_board_hear(board, "n2", A, "Installing b", 1000);
    staging_board_hear(board, "n3", A, "Installing c", 3000);
    size_t count;
    autofree struct staging_view *nodes = staging_board_look(board, A, 4000, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(nodes[0].node, "n2");
    ck_assert_str_eq(nodes[1].node, "n1");
    ck_assert_str_eq(nodes[2].node, "n3");
    ck_assert_int_eq(nodes[2].since_ms, 3500);
    ck_assert_int_eq(nodes[2].silent_ms, 1000);
    assert_says(A, 4000, "node n2 builds the environment: Installing b (4 s); 2 other nodes, too");
    assert_says(B, 4000, "node n2 was sent the order 4 s ago");
    tell("n3", NULL, NULL, 4000);
    assert_says(A, 4000, "node n2 builds the environment: Installing b (4 s); 1 other node, too");
}
END_TEST

START_TEST(orders_that_list_it_again_change_nothing)
{
    tell("n1", A, NULL, 1000);
    staging_board_hear(board, "n1", A, "Installing torch", 2000);
    tell("n1", B, A, 5000);
    assert_says(A, 6000, "node n1 builds the environment: Installing torch (5 s)");
    assert_says(B, 6000, "node n1 was sent the order 1 s ago");
}
END_TEST

START_TEST(what_is_not_listed_any_more_is_forgotten)
{
    tell("n1", A, B, 0);
    tell("n2", A, NULL, 0);
    staging_board_hear(board, "n1", A, "Installing torch", 0);
    tell("n1", B, NULL, 1000);
    assert_says(A, 1000, "node n2 was sent the order 1 s ago");
    tell("n2", NULL, NULL, 1000);
    assert_says(A, 1000, NOBODY);
    tell("n1", A, NULL, 2000); /* a new order, which knows nothing of the old one */
    assert_says(A, 3000, "node n1 was sent the order 1 s ago");
    assert_says(B, 3000, NOBODY);
}
END_TEST

START_TEST(what_a_node_was_not_told_of_is_not_noted)
{
    staging_board_hear(board, "n1", A, "Installing torch", 0);
    tell("n1", A, NULL, 0);
    staging_board_hear(board, "n2", A, "Installing torch", 0);
    staging_board_hear(board, "n1", B, "Installing torch", 0);
    assert_says(A, 1000, "node n1 was sent the order 1 s ago");
    assert_says(B, 1000, NOBODY);
}
END_TEST

Suite *staging_board_suite(void)
{
    Suite *suite = suite_create("staging_board");
    TCase *cases = tcase_create("board");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, who_was_told_and_is_silent_is_said);
    tcase_add_test(cases, progress_is_said_with_the_time_since_the_order);
    tcase_add_test(cases, a_need_without_environment_is_fetched);
    tcase_add_test(cases, a_node_without_progress_is_said_to_be_stuck);
    tcase_add_test(cases, the_node_without_progress_for_longest_comes_first);
    tcase_add_test(cases, orders_that_list_it_again_change_nothing);
    tcase_add_test(cases, what_is_not_listed_any_more_is_forgotten);
    tcase_add_test(cases, what_a_node_was_not_told_of_is_not_noted);
    suite_add_tcase(suite, cases);
    return suite;
}
