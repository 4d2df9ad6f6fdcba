/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/node_tokens, and of agent/controller_client when the controller refuses the newest token. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/controller_client.h"
#include "agent/base/node_tokens.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

/* --- the files ------------------------------------------------------------------------------------------ */

static void replace(const char *token)
{
    struct err err = {0};
    autofree char *file = rig_path("token");
    ck_assert_msg(node_tokens_replace(file, token, &err), "%s", err.text);
}

static void ck_assert_earlier(size_t number, const char *expected)
{
    autofree char *file = rig_path("token");
    autofree char *token = node_tokens_earlier(file, number);
    ck_assert_pstr_eq(token, expected);
}

START_TEST(a_token_that_is_replaced_is_kept_for_its_owner_alone)
{
    struct stat status;
    autofree char *file = rig_path("token"), *earlier = rig_path("token.earlier");
    ck_assert_earlier(1, NULL);
    replace("second");
    replace("third");
    autofree char *newest = node_tokens_newest(file, NULL);
    ck_assert_str_eq(newest, "third");
    ck_assert_earlier(1, "second");
    ck_assert_earlier(2, "secret"); /* the rig's */
    ck_assert_earlier(3, NULL);
    ck_assert_earlier(0, NULL);
    ck_assert_int_eq(stat(earlier, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0600);
}
END_TEST

START_TEST(the_youngest_are_kept_and_the_one_of_the_join)
{
    for (int i = 0; i < 40; i++) {
        autofree char *token = xprintf("token%d", i);
        replace(token);
    }
    ck_assert_earlier(1, "token38");
    ck_assert_earlier(LIMIT_EARLIER_TOKENS - 1, "token24");
    ck_assert_earlier(LIMIT_EARLIER_TOKENS, "secret");
    ck_assert_earlier(LIMIT_EARLIER_TOKENS + 1, NULL);
}
END_TEST

START_TEST(a_kill_between_the_two_files_loses_and_doubles_nothing)
{
    replace("second");
    rig_write_text("token.earlier", "second\nsecret\n"); /* before the newest is replaced */
    replace("third");
    ck_assert_earlier(1, "second");
    ck_assert_earlier(2, "secret");
    ck_assert_earlier(3, NULL);
}
END_TEST

START_TEST(a_node_that_joins_begins_anew)
{
    autofree char *file = rig_path("token");
    replace("second");
    ck_assert(node_tokens_begin(file, "joined", NULL));
    ck_assert_earlier(1, NULL);
    autofree char *newest = node_tokens_newest(file, NULL);
    ck_assert_str_eq(newest, "joined");
}
END_TEST

/* --- a controller that does not know the newest --------------------------------------------------------- */

static const char *known; /* the token that it knows; NULL: none */
static size_t enough;     /* requests, after which the test goes on */

static struct rig_answer answer(struct rig *unused, const struct rig_request *request)
{
    if (enough > 0 && rig.request_count >= enough) {
        loop_end(rig.loop);
    }
    return (struct rig_answer){known != NULL && strcmp(request->token, known) == 0 ? 200 : 401, NULL};
}

static json_t *body(void *closure)
{
    return json_object();
}

static void answered(void *closure, const struct controller_answer *answer)
{
    ck_assert_int_eq(answer->status, 200);
    loop_end(rig.loop);
}

static void begin(const char *knows, size_t requests)
{
    rig.answer = answer;
    known = knows;
    enough = requests;
    replace("second");
    replace("third");
    ck_assert(controller_client_renew(rig.controller, NULL));
}

/* The tokens of all requests, in their order. */
static char *tried(void)
{
    struct text list = {0};
    text_append(&list, "");
    for (size_t i = 0; i < rig.request_count; i++) {
        text_printf(&list, "%s%s", i > 0 ? " " : "", rig.requests[i].token);
    }
    return text_take(&list);
}

START_TEST(the_newest_is_used_while_it_is_taken)
{
    begin("third", 0);
    controller_post(rig.controller, "/x", body, answered, NULL);
    rig_run();
    autofree char *list = tried();
    ck_assert_str_eq(list, "third");
    ck_assert(!controller_client_is_behind(rig.controller));
}
END_TEST

START_TEST(earlier_ones_are_tried_the_youngest_first)
{
    begin("secret", 0);
    controller_post(rig.controller, "/x", body, answered, NULL);
    rig_run();
    autofree char *list = tried();
    ck_assert_str_eq(list, "third second secret");
    ck_assert(controller_client_is_behind(rig.controller));
    replace("fourth");
    ck_assert(controller_client_renew(rig.controller, NULL));
    ck_assert(!controller_client_is_behind(rig.controller));
}
END_TEST

START_TEST(each_gets_one_try_and_then_the_newest_stays)
{
    begin(NULL, 6);
    struct controller_request *request = controller_post(rig.controller, "/x", body, answered, NULL);
    rig_run();
    autofree char *list = tried();
    ck_assert_str_eq(list, "third second secret third third third");
    controller_cancel(request);
}
END_TEST

static void join_again(void *closure)
{
    autofree char *file = rig_path("token");
    ck_assert(node_tokens_begin(file, "joined", NULL));
}

START_TEST(a_node_that_joined_again_goes_on_without_a_restart)
{
    struct loop_timer timer = {.due = join_again};
    begin("joined", 0);
    loop_arm(rig.loop, &timer, 0);
    controller_post(rig.controller, "/x", body, answered, NULL);
    rig_run();
    ck_assert_str_eq(rig.requests[rig.request_count - 1].token, "joined");
}
END_TEST

/* Requests that were sent together are refused together, which is one refusal of their token. */
static size_t open_requests;

static void one_answered(void *closure, const struct controller_answer *answer)
{
    ck_assert_int_eq(answer->status, 200);
    if (--open_requests == 0) {
        loop_end(rig.loop);
    }
}

START_TEST(requests_that_are_refused_together_skip_no_token)
{
    begin("second", 0);
    for (open_requests = 0; open_requests < 3; open_requests++) {
        controller_post(rig.controller, "/x", body, one_answered, NULL);
    }
    rig_run();
    for (size_t i = 0; i < rig.request_count; i++) {
        ck_assert_str_ne(rig.requests[i].token, "secret");
    }
}
END_TEST

Suite *node_tokens_suite(void)
{
    Suite *suite = suite_create("node-tokens");
    TCase *tcase = tcase_create("node-tokens");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, rig_setup, rig_teardown);
    tcase_add_test(tcase, a_token_that_is_replaced_is_kept_for_its_owner_alone);
    tcase_add_test(tcase, the_youngest_are_kept_and_the_one_of_the_join);
    tcase_add_test(tcase, a_kill_between_the_two_files_loses_and_doubles_nothing);
    tcase_add_test(tcase, a_node_that_joins_begins_anew);
    tcase_add_test(tcase, the_newest_is_used_while_it_is_taken);
    tcase_add_test(tcase, earlier_ones_are_tried_the_youngest_first);
    tcase_add_test(tcase, each_gets_one_try_and_then_the_newest_stays);
    tcase_add_test(tcase, a_node_that_joined_again_goes_on_without_a_restart);
    tcase_add_test(tcase, requests_that_are_refused_together_skip_no_token);
    suite_add_tcase(suite, tcase);
    return suite;
}
