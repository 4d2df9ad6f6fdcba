/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/fair_queue: a letter is an entry of the owner of that letter. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/fair_queue.h"
#include "tests/unit/http/http_suites.h"

#define MOST 32

static struct fair_queue queue;
static struct fair_entry entries[MOST];
static char owners[MOST][2];
static size_t entry_count;

static void open_queue(void)
{
    queue = (struct fair_queue){.limit = 8, .owner_limit = 4};
    memset(entries, 0, sizeof entries);
    entry_count = 0;
}

/* Returns how many of the letters were let in. */
static size_t add(const char *letters)
{
    size_t added = 0;
    for (; *letters != '\0'; letters++) {
        owners[entry_count][0] = *letters;
        added += fair_queue_add(&queue, &entries[entry_count], owners[entry_count]);
        entry_count++;
    }
    return added;
}

/* Ends what is served and expects the next one. */
static struct fair_entry *expect_next(const char *owner)
{
    if (queue.served != NULL) {
        fair_queue_remove(&queue, (struct fair_entry *)(uintptr_t)queue.served);
    }
    struct fair_entry *entry = fair_queue_serve(&queue);
    ck_assert_ptr_nonnull(entry);
    ck_assert_str_eq(entry->owner, owner);
    return entry;
}

static void expect_order(const char *letters)
{
    for (; *letters != '\0'; letters++) {
        expect_next((char[]){*letters, '\0'});
    }
    fair_queue_remove(&queue, (struct fair_entry *)(uintptr_t)queue.served);
    ck_assert_ptr_null(fair_queue_serve(&queue));
}

START_TEST(owners_take_turns_whoever_has_more)
{
    ck_assert_uint_eq(add("aaaabbc"), 7);
    expect_order("abcabaa");
}
END_TEST

START_TEST(one_who_comes_later_is_behind_one_search_of_another)
{
    add("aaaa");
    expect_next("a");
    add("b");
    expect_order("baaa");
}
END_TEST

START_TEST(one_who_comes_again_at_once_is_behind_those_who_wait)
{
    add("bcc");
    expect_next("b");
    add("b");
    expect_next("c");
    add("b");
    expect_order("cbb");
}
END_TEST

START_TEST(one_is_served_at_a_time)
{
    add("ab");
    expect_next("a");
    ck_assert_ptr_null(fair_queue_serve(&queue));
}
END_TEST

START_TEST(an_owner_has_its_limit_and_the_queue_another)
{
    ck_assert_uint_eq(add("aaaaaa"), 4);
    ck_assert_uint_eq(add("bbbccc"), 4);
    expect_order("abcababa");
    ck_assert_uint_eq(add("a"), 1);
}
END_TEST

START_TEST(what_is_removed_is_not_served_and_makes_room)
{
    add("aaaab");
    fair_queue_remove(&queue, &entries[1]);
    fair_queue_remove(&queue, &entries[1]);
    ck_assert_uint_eq(add("a"), 1);
    expect_order("abaaa");
}
END_TEST

Suite *fair_queue_suite(void)
{
    Suite *suite = suite_create("fair_queue");
    TCase *cases = tcase_create("fair_queue");
    tcase_add_checked_fixture(cases, open_queue, NULL);
    tcase_add_test(cases, owners_take_turns_whoever_has_more);
    tcase_add_test(cases, one_who_comes_later_is_behind_one_search_of_another);
    tcase_add_test(cases, one_who_comes_again_at_once_is_behind_those_who_wait);
    tcase_add_test(cases, one_is_served_at_a_time);
    tcase_add_test(cases, an_owner_has_its_limit_and_the_queue_another);
    tcase_add_test(cases, what_is_removed_is_not_served_and_makes_room);
    suite_add_tcase(suite, cases);
    return suite;
}
