/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks in the core: which events make deliveries, when these are tried again, and what ends them. */
#include <string.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define DAY_MS (24 * HOUR_MS)

static enum err_code make(struct cluster *c, const char *id, enum webhook_scope scope)
{
    const struct webhook_row row = {.id = id,
                                    .owner = "alice",
                                    .name = id,
                                    .scope = scope,
                                    .url = "https://example.com/",
                                    .secret = "whsec_",
                                    .kinds = "canceled,submitted",
                                    .enabled = true};
    return cluster_step(
        c, &(struct input){.kind = INPUT_WEBHOOK, .webhook = {.action = WEBHOOK_ACTION_MAKE, .row = &row}});
}

static enum err_code act(struct cluster *c, const char *id, enum webhook_action action)
{
    return cluster_step(c, &(struct input){.kind = INPUT_WEBHOOK, .webhook = {.action = action, .id = id}});
}

static enum err_code report(struct cluster *c, const char *id, struct delivery_outcome outcome)
{
    return cluster_step(
        c, &(struct input){.kind = INPUT_WEBHOOK,
                           .webhook = {.action = WEBHOOK_ACTION_OUTCOME, .id = id, .outcome = &outcome}});
}

/* The last change of a kind in the last step; NULL: none. *ret_count is how many there are. */
static const struct change *last(const struct cluster *c, enum change_kind kind, size_t *ret_count)
{
    const struct change *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < c->step.change_count; i++) {
        if (c->step.changes[i].kind == kind) {
            found = &c->step.changes[i];
            ++*ret_count;
        }
    }
    return found;
}

static size_t count_of(const struct cluster *c, enum change_kind kind)
{
    size_t count;
    last(c, kind, &count);
    return count;
}

/* The delivery that the last step has made or changed. */
static struct delivery_row delivery_of(const struct cluster *c, enum change_kind kind)
{
    size_t count;
    const struct change *change = last(c, kind, &count);
    ck_assert_uint_eq(count, 1);
    return change->delivery;
}

static int64_t test_delivery(struct cluster *c, const char *id)
{
    ck_assert_int_eq(act(c, id, WEBHOOK_ACTION_TEST), ERR_NONE);
    return delivery_of(c, CHANGE_DELIVERY_INSERT).key;
}

static bool is_disabled(const struct cluster *c)
{
    size_t count;
    const struct change *change = last(c, CHANGE_WEBHOOK_PUT, &count);
    return change != NULL && !change->webhook.enabled;
}

START_TEST(an_event_and_its_delivery_are_changes_of_one_step)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    ck_assert_int_eq(make(c, "w", WEBHOOK_OWN), ERR_NONE);
    submit(c, "mine", .hold = true);
    struct delivery_row first = delivery_of(c, CHANGE_DELIVERY_INSERT);
    ck_assert_int_eq(first.seq, 1);
    cancel(c, "mine");
    struct delivery_row second = delivery_of(c, CHANGE_DELIVERY_INSERT);
    ck_assert_int_eq(second.job_key, first.job_key);
    ck_assert_int_gt(second.key, first.key);
    ck_assert_int_eq(second.state, DELIVERY_PENDING);
    submit(c, "other", .owner = "bob", .hold = true);
    ck_assert_uint_eq(count_of(c, CHANGE_DELIVERY_INSERT), 0);
}
END_TEST

START_TEST(each_webhook_that_fits_gets_a_delivery)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    make(c, "own", WEBHOOK_OWN);
    make(c, "all", WEBHOOK_ALL);
    make(c, "named", WEBHOOK_NAMED);
    submit(c, "mine", .hold = true);
    ck_assert_uint_eq(count_of(c, CHANGE_DELIVERY_INSERT), 2);
    submit(c, "other", .owner = "bob", .hold = true);
    ck_assert_uint_eq(count_of(c, CHANGE_DELIVERY_INSERT), 1);
    act(c, "all", WEBHOOK_ACTION_REMOVE);
    submit(c, "third", .owner = "bob", .hold = true);
    ck_assert_uint_eq(count_of(c, CHANGE_DELIVERY_INSERT), 0);
    ck_assert_int_eq(make(c, "own", WEBHOOK_OWN), ERR_CONFLICT);
    ck_assert_int_eq(act(c, "all", WEBHOOK_ACTION_TEST), ERR_NOT_FOUND);
}
END_TEST

START_TEST(pauses_are_three_times_as_long_each_until_the_delivery_is_given_up)
{
    static const int64_t pauses_ms[] = {5000,    15000,   45000,    135000,   405000,
                                        1215000, 3645000, 10935000, 28800000, 28800000};
    autocluster struct cluster *c = cluster_open();
    make(c, "w", WEBHOOK_OWN);
    int64_t key = test_delivery(c, "w");
    for (int64_t tries = 1; tries < LIMIT_DELIVERY_TRIES; tries++) {
        report(c, "w", (struct delivery_outcome){.key = key, .tries = tries, .code = 500});
        struct delivery_row row = delivery_of(c, CHANGE_DELIVERY_UPDATE);
        ck_assert_int_eq(row.state, DELIVERY_PENDING);
        ck_assert_int_eq(row.next_ms - row.at_ms, pauses_ms[tries - 1]);
    }
    report(c, "w",
           (struct delivery_outcome){.key = key, .tries = LIMIT_DELIVERY_TRIES, .error = "nobody there"});
    struct delivery_row row = delivery_of(c, CHANGE_DELIVERY_UPDATE);
    ck_assert_int_eq(row.state, DELIVERY_FAILED);
    ck_assert_str_eq(row.error, "nobody there");
    ck_assert(!is_disabled(c)); /* it has not failed for long */
    report(c, "w", (struct delivery_outcome){.key = key, .tries = 1, .delivered = true});
    ck_assert_uint_eq(c->step.change_count, 0); /* it waits no more */
}
END_TEST

START_TEST(jitter_adds_up_to_a_fifth)
{
    autocluster struct cluster *c = cluster_open();
    make(c, "w", WEBHOOK_OWN);
    int64_t key = test_delivery(c, "w");
    report(c, "w", (struct delivery_outcome){.key = key, .tries = 2, .code = 500, .jitter = 1023});
    struct delivery_row row = delivery_of(c, CHANGE_DELIVERY_UPDATE);
    ck_assert_int_gt(row.next_ms - row.at_ms, 17900);
    ck_assert_int_lt(row.next_ms - row.at_ms, 18000);
}
END_TEST

START_TEST(a_receiver_that_is_gone_ends_the_webhook_with_all_that_waits)
{
    autocluster struct cluster *c = cluster_open();
    make(c, "w", WEBHOOK_OWN);
    int64_t key = test_delivery(c, "w");
    test_delivery(c, "w");
    report(c, "w", (struct delivery_outcome){.key = key, .tries = 1, .code = 410});
    ck_assert_int_eq(delivery_of(c, CHANGE_DELIVERY_UPDATE).state, DELIVERY_FAILED);
    ck_assert_int_eq(delivery_of(c, CHANGE_DELIVERIES_GIVE_UP).key, INT64_MAX);
    ck_assert(is_disabled(c));
    ck_assert_int_eq(act(c, "w", WEBHOOK_ACTION_TEST), ERR_CONFLICT);
}
END_TEST

START_TEST(a_webhook_that_is_not_reached_for_days_is_disabled)
{
    autocluster struct cluster *c = cluster_open();
    make(c, "w", WEBHOOK_OWN);
    int64_t key = test_delivery(c, "w");
    report(c, "w", (struct delivery_outcome){.key = key, .tries = 1});
    advance(c, 3 * DAY_MS - 1);
    report(c, "w", (struct delivery_outcome){.key = key, .tries = LIMIT_DELIVERY_TRIES});
    ck_assert(!is_disabled(c));
    key = test_delivery(c, "w");
    advance(c, 1);
    report(c, "w", (struct delivery_outcome){.key = key, .tries = LIMIT_DELIVERY_TRIES});
    ck_assert(is_disabled(c));
}
END_TEST

START_TEST(a_success_between_keeps_a_webhook_alive)
{
    autocluster struct cluster *c = cluster_open();
    make(c, "w", WEBHOOK_OWN);
    int64_t first = test_delivery(c, "w"), second = test_delivery(c, "w");
    report(c, "w", (struct delivery_outcome){.key = first, .tries = 1});
    advance(c, 4 * DAY_MS);
    report(c, "w", (struct delivery_outcome){.key = second, .tries = 1, .delivered = true, .code = 200});
    report(c, "w", (struct delivery_outcome){.key = first, .tries = LIMIT_DELIVERY_TRIES});
    ck_assert(!is_disabled(c));
}
END_TEST

START_TEST(the_oldest_is_given_up_when_too_many_wait)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    make(c, "w", WEBHOOK_OWN);
    int64_t oldest = test_delivery(c, "w");
    for (int i = 1; i < LIMIT_WEBHOOK_PENDING; i++) {
        test_delivery(c, "w");
        ck_assert_uint_eq(count_of(c, CHANGE_DELIVERIES_GIVE_UP), 0);
    }
    test_delivery(c, "w");
    ck_assert_int_eq(delivery_of(c, CHANGE_DELIVERIES_GIVE_UP).key, oldest);
    core_check(c->core);
}
END_TEST

START_TEST(a_person_may_have_so_many_and_no_more)
{
    autocluster struct cluster *c = cluster_open();
    char id[LIMIT_WEBHOOKS_OF_OWNER + 1][16];
    for (int i = 0; i <= LIMIT_WEBHOOKS_OF_OWNER; i++) {
        snprintf(id[i], sizeof id[i], "w%d", i);
        ck_assert_int_eq(make(c, id[i], WEBHOOK_OWN), i < LIMIT_WEBHOOKS_OF_OWNER ? ERR_NONE : ERR_CONFLICT);
    }
}
END_TEST

Suite *webhooks_suite(void)
{
    Suite *suite = suite_create("webhooks");
    TCase *tests = tcase_create("webhooks");
    tcase_add_test(tests, an_event_and_its_delivery_are_changes_of_one_step);
    tcase_add_test(tests, each_webhook_that_fits_gets_a_delivery);
    tcase_add_test(tests, pauses_are_three_times_as_long_each_until_the_delivery_is_given_up);
    tcase_add_test(tests, jitter_adds_up_to_a_fifth);
    tcase_add_test(tests, a_receiver_that_is_gone_ends_the_webhook_with_all_that_waits);
    tcase_add_test(tests, a_webhook_that_is_not_reached_for_days_is_disabled);
    tcase_add_test(tests, a_success_between_keeps_a_webhook_alive);
    tcase_add_test(tests, the_oldest_is_given_up_when_too_many_wait);
    tcase_add_test(tests, a_person_may_have_so_many_and_no_more);
    suite_add_tcase(suite, tests);
    return suite;
}
