/* SPDX-License-Identifier: Apache-2.0 */
/* First answers: what an Idempotency-Key finds. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

/* Wants the answer under a scope of 32 such bytes; NULL: none. */
static void expect_answer(uint8_t scope, const char *answer)
{
    uint8_t bytes[32];
    uint8_t body[32];
    bool found;
    struct stored_reply reply = {0};
    memset(bytes, scope, sizeof bytes);
    memset(body, scope ^ 0xff, sizeof body);
    ck_assert_msg(store_find_reply(rig.store, bytes, &found, &reply, &rig.err), "%s", rig.err.text);
    autofree char *text = reply.answer;
    ck_assert_int_eq(found, answer != NULL);
    if (found) {
        ck_assert_str_eq(text, answer);
        ck_assert_uint_eq(reply.answer_length, strlen(answer));
        ck_assert_int_eq(reply.status, 201);
        ck_assert_mem_eq(reply.body, body, sizeof body);
    }
}

START_TEST(a_reply_is_found_within_its_transaction_and_after_a_start)
{
    struct change reply = reply_insert(1, "{\"id\":1}");
    expect_answer(1, NULL);
    ck_assert(store_begin(rig.store, &rig.err));
    expect_answer(1, NULL);
    ck_assert(store_apply(rig.store, &reply, 1, &rig.err));
    expect_answer(1, "{\"id\":1}");
    expect_answer(2, NULL);
    ck_assert(store_commit(rig.store, &rig.err));
    expect_answer(1, "{\"id\":1}");
    rig_reopen();
    expect_answer(1, "{\"id\":1}");
    expect_answer(2, NULL);
}
END_TEST

START_TEST(an_empty_answer_is_an_answer)
{
    struct change reply = reply_insert(1, "");
    reply.reply.answer = NULL;
    rig_write(&reply, 1);
    expect_answer(1, "");
}
END_TEST

START_TEST(scopes_that_begin_alike_are_told_apart)
{
    struct change twin = reply_insert(7, "twin");
    struct change other_twin = reply_insert(7, "other twin");
    twin.reply.scope[31] = 1;
    other_twin.reply.scope[31] = 2;
    rig_write((struct change[]){twin, reply_insert(7, "seven"), other_twin}, 3);
    expect_answer(7, "seven");
    rig_reopen();
    expect_answer(7, "seven");
}
END_TEST

START_TEST(many_replies_are_all_found)
{
    rig_write((struct change[]){reply_insert(1, "one"), reply_insert(2, "two")}, 2);
    for (int i = 0; i < 1000; i += 20) {
        struct change replies[20];
        for (int j = 0; j < 20; j++) {
            replies[j] = reply_insert(3, "three");
            replies[j].reply.scope[0] = (uint8_t)((i + j) % 251);
            replies[j].reply.scope[1] = (uint8_t)((i + j) / 251 + 10);
        }
        rig_write(replies, 20);
        rig_write_one(reply_insert((uint8_t)(i / 20 + 100), "hundreds"));
    }
    for (int i = 0; i < 2; i++, rig_reopen()) {
        expect_answer(1, "one");
        expect_answer(2, "two");
        expect_answer(3, NULL);
        expect_answer(100, "hundreds");
        expect_answer(149, "hundreds");
        expect_answer(150, NULL);
    }
}
END_TEST

START_TEST(a_second_reply_under_one_key_is_a_defect)
{
    struct change reply = reply_insert(1, "one");
    rig_write(&reply, 1);
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(!store_apply(rig.store, &reply, 1, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_INTERNAL);
}
END_TEST

Suite *store_replies_suite(void)
{
    Suite *suite = suite_create("store-replies");
    TCase *cases = tcase_create("replies");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, a_reply_is_found_within_its_transaction_and_after_a_start);
    tcase_add_test(cases, an_empty_answer_is_an_answer);
    tcase_add_test(cases, scopes_that_begin_alike_are_told_apart);
    tcase_add_test(cases, many_replies_are_all_found);
    tcase_add_test(cases, a_second_reply_under_one_key_is_a_defect);
    suite_add_tcase(suite, cases);
    return suite;
}
