/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/deadline: the heap of moments, against a plain list. */
#include <stdlib.h>

#include "daemon/http/base/deadline.h"
#include "tests/unit/http/http_suites.h"

#define COUNT 500

static struct deadlines *deadlines;
static struct deadline items[COUNT];
static int64_t last_ms;
static size_t called;

static void note(struct deadline *deadline)
{
    ck_assert_uint_eq(deadline->place, 0);
    ck_assert_int_ge(deadline->at_ms, last_ms);
    last_ms = deadline->at_ms;
    called++;
}

static void open_deadlines(void)
{
    deadlines = deadlines_create();
    for (size_t i = 0; i < COUNT; i++) {
        items[i] = (struct deadline){.due = note};
    }
    last_ms = 0;
    called = 0;
}

static void close_deadlines(void)
{
    deadlines_destroy(deadlines);
}

static size_t due_by(int64_t now_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        count += items[i].place != 0 && items[i].at_ms <= now_ms;
    }
    return count;
}

START_TEST(what_is_due_is_called_once_in_order_whatever_was_moved_and_cleared)
{
    unsigned seed = 1;
    for (size_t i = 0; i < 5 * COUNT; i++) {
        struct deadline *item = &items[(size_t)rand_r(&seed) % COUNT];
        if (rand_r(&seed) % 4 == 0) {
            deadline_clear(deadlines, item);
        } else {
            deadline_set(deadlines, item, rand_r(&seed) % 1000);
        }
    }
    for (int64_t now_ms = 0; now_ms <= 1000; now_ms += 100) {
        size_t expected = due_by(now_ms);
        called = 0;
        deadlines_run(deadlines, now_ms);
        ck_assert_uint_eq(called, expected);
        ck_assert_uint_eq(due_by(now_ms), 0);
        ck_assert_int_gt(deadlines_next(deadlines), now_ms);
    }
    ck_assert_int_eq(deadlines_next(deadlines), INT64_MAX);
}
END_TEST

START_TEST(a_deadline_that_is_not_set_can_be_cleared)
{
    deadline_clear(deadlines, &items[0]);
    deadline_set(deadlines, &items[0], 5);
    deadline_clear(deadlines, &items[0]);
    deadline_clear(deadlines, &items[0]);
    deadlines_run(deadlines, 10);
    ck_assert_uint_eq(called, 0);
}
END_TEST

static void note_and_set_again(struct deadline *deadline)
{
    called++;
    deadline_set(deadlines, deadline, deadline->at_ms + 1000);
}

START_TEST(running_all_calls_each_once_even_if_it_sets_itself_again)
{
    for (size_t i = 0; i < 10; i++) {
        items[i].due = note_and_set_again;
        deadline_set(deadlines, &items[i], (int64_t)i);
    }
    deadlines_run_all(deadlines);
    ck_assert_uint_eq(called, 10);
    ck_assert_int_eq(deadlines_next(deadlines), 1000);
}
END_TEST

Suite *deadline_suite(void)
{
    Suite *suite = suite_create("deadline");
    TCase *cases = tcase_create("deadline");
    tcase_add_checked_fixture(cases, open_deadlines, close_deadlines);
    tcase_add_test(cases, what_is_due_is_called_once_in_order_whatever_was_moved_and_cleared);
    tcase_add_test(cases, a_deadline_that_is_not_set_can_be_cleared);
    tcase_add_test(cases, running_all_calls_each_once_even_if_it_sets_itself_again);
    suite_add_tcase(suite, cases);
    return suite;
}
