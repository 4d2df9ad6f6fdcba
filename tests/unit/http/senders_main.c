/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of senders, with a loop and requests of paper: who is served how often, whatever each has done
 * before. A program of its own, because it stands in for request.c. */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/peers.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/senders.h"
#include "proto/limits.h"

#define CONNECTIONS 16
#define WAIT_MS     10000

/* --- what stands in for the rest of the server ---------------------------------------------------------- */

struct identity {
    const char *owner;
    enum role role;
};

const char *identity_owner(const struct identity *identity)
{
    return identity->owner;
}

enum role identity_role(const struct identity *identity)
{
    return identity->role;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    static const union MHD_ConnectionInfo none;
    return &none;
}

void peers_name(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
    strcpy(out, "loopback");
}

void request_suspend(struct request *request)
{
    request->suspended = true;
}

void request_resume(struct request *request)
{
    request->suspended = false;
}

static size_t refused;

void request_fail_for(struct request *request, const struct err *err, int64_t pause_ms)
{
    ck_assert_int_eq(err->code, ERR_TOO_MANY);
    request->status = 429;
    refused++;
}

/* --- a loop of paper ------------------------------------------------------------------------------------ */

/* Somebody who asks again on each connection as soon as it is answered. */
struct asker {
    struct identity who; /* without owner: nobody that is known, from the one address */
    int64_t cost_us;     /* of a request */
    size_t answers;
    struct request *requests[CONNECTIONS];
    size_t count;
};

static struct server server;

static void ask(struct asker *asker, size_t place)
{
    struct request *request = calloc(1, sizeof *request + 1);
    request->server = &server;
    request->who = asker->who.owner != NULL ? &asker->who : NULL;
    asker->requests[place] = request;
    senders_admit(server.senders, request);
}

static void asker_begin(struct asker *asker, size_t connections)
{
    for (asker->count = 0; asker->count < connections; asker->count++) {
        ask(asker, asker->count);
    }
}

static void asker_end(struct asker *asker)
{
    while (asker->count > 0) {
        struct request *request = asker->requests[--asker->count];
        senders_leave(server.senders, request);
        free(request);
    }
}

/* Answers what may go on; each connection asks again. */
static void serve(struct asker *asker)
{
    bool ready[CONNECTIONS];
    for (size_t i = 0; i < asker->count; i++) {
        ready[i] = !asker->requests[i]->suspended;
    }
    for (size_t i = 0; i < asker->count; i++) {
        if (ready[i]) {
            struct request *request = asker->requests[i];
            senders_charge(request, asker->cost_us);
            senders_leave(server.senders, request);
            free(request);
            asker->answers++;
            ask(asker, i);
        }
    }
}

/* No turn is idle: there is always an answer to be sent. */
static void turns(struct asker *one, struct asker *other, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        senders_turn(server.senders, ++server.now_ms, false);
        serve(one);
        if (other != NULL) {
            serve(other);
        }
    }
}

static void setup(void)
{
    server = (struct server){.senders = senders_create(WAIT_MS), .now_ms = 1000};
    refused = 0;
}

static void teardown(void)
{
    senders_destroy(server.senders);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

START_TEST(two_who_flood_get_the_same_time_however_dear_their_requests_are)
{
    struct asker cheap = {.who = {"cheap", ROLE_USER}, .cost_us = 50};
    struct asker dear = {.who = {"dear", ROLE_USER}, .cost_us = 1000};
    asker_begin(&cheap, CONNECTIONS);
    asker_begin(&dear, CONNECTIONS);
    turns(&cheap, &dear, 2000); /* what the first burst cost is paid */
    cheap.answers = dear.answers = 0;
    turns(&cheap, &dear, 5000);
    int64_t cheap_us = (int64_t)cheap.answers * (50 + SENDER_REQUEST_US);
    int64_t dear_us = (int64_t)dear.answers * (1000 + SENDER_REQUEST_US);
    ck_assert_int_ge(cheap_us, dear_us * 8 / 10);
    ck_assert_int_ge(dear_us, cheap_us * 8 / 10);
    asker_end(&cheap);
    asker_end(&dear);
}
END_TEST

START_TEST(what_a_sender_took_while_it_was_alone_is_not_held_against_it)
{
    struct asker first = {.who = {"first", ROLE_USER}, .cost_us = 100};
    struct asker second = {.who = {"second", ROLE_USER}, .cost_us = 100};
    asker_begin(&first, CONNECTIONS);
    turns(&first, NULL, 20000);
    ck_assert_uint_ge(first.answers, 20000);
    asker_begin(&second, CONNECTIONS);
    turns(&first, &second, 100);
    first.answers = second.answers = 0;
    turns(&first, &second, 1000);
    ck_assert_uint_ge(first.answers, second.answers * 8 / 10);
    ck_assert_uint_ge(second.answers, first.answers * 8 / 10);
    ck_assert_uint_eq(refused, 0);
    asker_end(&first);
    asker_end(&second);
}
END_TEST

START_TEST(a_request_that_has_waited_too_long_is_refused_and_the_next_one_is_not)
{
    struct asker first = {.who = {"first", ROLE_USER}, .cost_us = 100};
    struct asker second = {.who = {"second", ROLE_USER}, .cost_us = 20000000};
    asker_begin(&first, 1);
    asker_begin(&second, 2); /* the second one's first request takes 20 s of the thread */
    turns(&first, &second, 2 * WAIT_MS);
    ck_assert_uint_ge(refused, 1);
    ck_assert_uint_ge(first.answers, WAIT_MS);
    asker_end(&first);
    asker_end(&second);
}
END_TEST

START_TEST(nodes_never_wait)
{
    struct asker flood = {.who = {"flood", ROLE_USER}, .cost_us = 1000};
    struct asker node = {.who = {"node", ROLE_NODE}, .cost_us = 1000};
    asker_begin(&flood, CONNECTIONS);
    asker_begin(&node, CONNECTIONS);
    turns(&flood, &node, 100);
    ck_assert_uint_eq(node.answers, 100 * CONNECTIONS);
    asker_end(&flood);
    asker_end(&node);
}
END_TEST

START_TEST(an_address_without_a_token_has_a_request_a_millisecond_while_others_ask)
{
    struct asker stranger = {.cost_us = 1};
    struct asker user = {.who = {"user", ROLE_USER}, .cost_us = 1};
    asker_begin(&stranger, CONNECTIONS);
    turns(&stranger, NULL, 100);
    ck_assert_uint_ge(stranger.answers, 300); /* alone it has what the turns have room for */
    asker_begin(&user, CONNECTIONS);
    turns(&stranger, &user, 10);
    stranger.answers = user.answers = 0;
    turns(&stranger, &user, 1000);
    ck_assert_uint_eq(stranger.answers, 1000);
    ck_assert_uint_ge(user.answers, 3000);
    ck_assert_int_eq(senders_due_ms(server.senders, server.now_ms), server.now_ms); /* the user's line */
    asker_end(&user);
    ck_assert_int_eq(senders_due_ms(server.senders, server.now_ms), server.now_ms + SENDER_STRANGER_MS);
    ck_assert_uint_eq(refused, 0);
    asker_end(&stranger);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("senders");
    TCase *tests = tcase_create("shares");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, two_who_flood_get_the_same_time_however_dear_their_requests_are);
    tcase_add_test(tests, what_a_sender_took_while_it_was_alone_is_not_held_against_it);
    tcase_add_test(tests, a_request_that_has_waited_too_long_is_refused_and_the_next_one_is_not);
    tcase_add_test(tests, nodes_never_wait);
    tcase_add_test(tests, an_address_without_a_token_has_a_request_a_millisecond_while_others_ask);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
