/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/controller_client and agent/uploads: bytes that are put, tried again, refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/controller_client.h"
#include "agent/output/uploads.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/limits.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define SIZE (3 * MIB + 17)

/* --- what is put, and what came of it ------------------------------------------------------------------- */

static char *sent;
static int64_t unreadable; /* from here on */
static int status;
static char problem[384];
static char path[] = "/v1/blobs/abc";

static bool supply(void *closure, int64_t offset, void *buffer, size_t length)
{
    if (offset + (int64_t)length > unreadable) {
        return false;
    }
    memcpy(buffer, sent + offset, length);
    return true;
}

static void answered(void *closure, const struct controller_answer *answer)
{
    status = answer->status;
    snprintf(problem, sizeof problem, "%s", answer->problem.text);
    loop_end(rig.loop);
}

static void put_all(void)
{
    controller_send(rig.controller, &(struct controller_call){.path = path,
                                                              .supply = supply,
                                                              .length = SIZE,
                                                              .timeout_ms = 10000,
                                                              .persistent = true,
                                                              .done = answered});
    rig_run();
}

static void setup(void)
{
    rig_setup();
    sent = rig_bytes(SIZE);
    unreadable = INT64_MAX;
}

static void teardown(void)
{
    free(sent);
    rig_teardown();
}

static void assert_whole(const struct rig_request *request)
{
    ck_assert_str_eq(request->method, "PUT");
    ck_assert_str_eq(request->target, path);
    ck_assert_uint_eq(request->body.length, SIZE);
    ck_assert_int_eq(memcmp(request->body.bytes, sent, SIZE), 0);
}

START_TEST(bytes_are_put_whole)
{
    put_all();
    ck_assert_int_eq(status, 200);
    ck_assert_uint_eq(rig.request_count, 1);
    assert_whole(&rig.requests[0]);
}
END_TEST

static struct rig_answer away_at_first(struct rig *server, const struct rig_request *request)
{
    static const int statuses[] = {0, 503, 201};
    server->early = false; /* the first one broke in the middle */
    return (struct rig_answer){.status = statuses[server->request_count - 1]};
}

START_TEST(bytes_are_put_from_the_start_until_the_controller_is_back)
{
    rig.answer = away_at_first;
    rig.early = true;
    put_all();
    ck_assert_int_eq(status, 201);
    ck_assert_uint_eq(rig.request_count, 3);
    assert_whole(&rig.requests[1]);
    assert_whole(&rig.requests[2]);
}
END_TEST

static struct rig_answer others_at_first(struct rig *server, const struct rig_request *request)
{
    static const struct rig_answer answers[] = {{200, "<html><body>Log in</body></html>"},
                                                {404, "<html><body>default backend</body></html>"},
                                                {409, "{\"code\": \"fen"},
                                                {200, "[]"},
                                                {201, "{}"}};
    return answers[server->request_count - 1];
}

START_TEST(what_others_answer_in_place_of_the_controller_is_no_answer)
{
    rig.answer = others_at_first;
    put_all();
    ck_assert_int_eq(status, 201);
    ck_assert_uint_eq(rig.request_count, 5);
    assert_whole(&rig.requests[4]);
}
END_TEST

/* Within the head, before it says how long the body is: for curl that is a whole answer. */
static struct rig_answer cut_at_first(struct rig *server, const struct rig_request *request)
{
    static const int statuses[] = {200, 409, 201};
    server->cut = server->request_count < 3 ? strlen("HTTP/1.1 200 Said\r\nCon") : 0;
    return (struct rig_answer){.status = statuses[server->request_count - 1]};
}

START_TEST(an_answer_that_ends_in_its_head_is_none)
{
    rig.answer = cut_at_first;
    put_all();
    ck_assert_int_eq(status, 201);
    ck_assert_uint_eq(rig.request_count, 3);
}
END_TEST

static struct rig_answer unwilling(struct rig *server, const struct rig_request *request)
{
    return (struct rig_answer){422,
                               "{\"code\":\"invalid_field\",\"status\":422,\"detail\":\"another content\"}"};
}

START_TEST(a_put_that_is_refused_is_not_tried_again)
{
    rig.answer = unwilling;
    put_all();
    ck_assert_int_eq(status, 422);
    ck_assert_str_eq(problem, "another content");
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

START_TEST(a_put_whose_bytes_cannot_be_read_is_over)
{
    unreadable = 1 * MIB;
    put_all();
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(problem, "its bytes could not be read");
    ck_assert_uint_eq(rig.request_count, 0);
}
END_TEST

/* --- uploads -------------------------------------------------------------------------------------------- */

#define UPLOADS 4

static struct uploads *uploads;
static size_t ended;
static char hashes[UPLOADS][HASH_HEX + 1];

static void ended_one(void *closure, const char *hash, const struct err *err)
{
    size_t index = (size_t)(uintptr_t)closure;
    snprintf(hashes[index], sizeof hashes[index], "%s", hash != NULL ? hash : "");
    if (++ended == UPLOADS) {
        loop_end(rig.loop);
    }
}

/* Two are under way at a time, so they arrive in any order. */
static const struct rig_request *request_for(const char *hash)
{
    autofree char *target = xprintf("/v1/blobs/%s", hash);
    for (size_t i = 0; i < rig.request_count; i++) {
        if (strcmp(rig.requests[i].target, target) == 0) {
            return &rig.requests[i];
        }
    }
    ck_abort_msg("nothing was put to %s", target);
}

START_TEST(files_go_under_their_hash_a_few_at_a_time)
{
    rig_write("file", sent, SIZE);
    autofree char *name = rig_path("file");
    uploads = uploads_create(rig.controller);
    for (size_t i = 0; i < UPLOADS; i++) {
        upload_begin(uploads, open(name, O_RDONLY | O_CLOEXEC), SIZE - (int64_t)i, ended_one,
                     (void *)(uintptr_t)i);
    }
    while (uploads_step(uploads)) { /* all could go at once */
    }
    rig_run();
    for (size_t i = 0; i < UPLOADS; i++) {
        char expected[HASH_HEX + 1];
        hash_hex(sent, SIZE - i, expected);
        ck_assert_str_eq(hashes[i], expected);
        const struct rig_request *request = request_for(expected);
        ck_assert_uint_eq(request->body.length, SIZE - i);
        ck_assert_mem_eq(request->body.bytes, sent, SIZE - i);
    }
    ck_assert_uint_eq(rig.request_count, UPLOADS);
    ck_assert_uint_eq(rig.connection_count, 2); /* which are kept from one to the next */
    uploads_destroy(uploads);
}
END_TEST

static void failed(void *closure, const char *hash, const struct err *err)
{
    ck_assert_ptr_null(hash);
    snprintf(problem, sizeof problem, "%s", err->text);
    loop_end(rig.loop);
}

START_TEST(a_file_that_shrinks_is_an_error_and_nothing_is_put)
{
    rig_write("file", sent, 1000);
    autofree char *name = rig_path("file");
    uploads = uploads_create(rig.controller);
    upload_begin(uploads, open(name, O_RDONLY | O_CLOEXEC), SIZE, failed, NULL);
    while (uploads_step(uploads)) {
    }
    ck_assert_str_eq(problem, "its bytes could not be read");
    ck_assert_uint_eq(rig.request_count, 0);
    uploads_destroy(uploads);
}
END_TEST

START_TEST(a_step_of_an_upload_is_small)
{
    rig_write("file", sent, SIZE);
    autofree char *name = rig_path("file");
    uploads = uploads_create(rig.controller);
    struct upload *upload = upload_begin(uploads, open(name, O_RDONLY | O_CLOEXEC), SIZE, failed, NULL);
    size_t steps = 0;
    while (uploads_step(uploads)) {
        steps++;
    }
    ck_assert_uint_eq(steps, 4);
    upload_cancel(upload);
    uploads_destroy(uploads);
}
END_TEST

Suite *controller_client_suite(void)
{
    Suite *suite = suite_create("link");
    TCase *tcase = tcase_create("link");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, bytes_are_put_whole);
    tcase_add_test(tcase, bytes_are_put_from_the_start_until_the_controller_is_back);
    tcase_add_test(tcase, a_put_that_is_refused_is_not_tried_again);
    tcase_add_test(tcase, what_others_answer_in_place_of_the_controller_is_no_answer);
    tcase_add_test(tcase, an_answer_that_ends_in_its_head_is_none);
    tcase_add_test(tcase, a_put_whose_bytes_cannot_be_read_is_over);
    tcase_add_test(tcase, files_go_under_their_hash_a_few_at_a_time);
    tcase_add_test(tcase, a_file_that_shrinks_is_an_error_and_nothing_is_put);
    tcase_add_test(tcase, a_step_of_an_upload_is_small);
    suite_add_tcase(suite, tcase);
    return suite;
}
