/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/payload: a blob is fetched once, and never used with another content than its hash says. It
 * comes from the object store where that can be used, else from the controller. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/environment/payload.h"
#include "agent/objects/object_client.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define BLOB_BYTES (3 * 1024 * 1024 + 17) /* several steps */

static struct payloads *payloads;
static struct object_client *objects;
static char *blob; /* text, because the rig sends text */
static const char *sent;
static char hash[HASH_HEX + 1];
static char *got; /* what the last order gave */
static size_t got_length;
static struct err problem;

static bool idle(void *closure)
{
    return payloads_step(payloads);
}

static struct rig_answer answer(struct rig *unused, const struct rig_request *request)
{
    return (struct rig_answer){200, sent};
}

static void open_payloads(int64_t away_ms)
{
    autofree char *cache = rig_path("payloads");
    objects = object_client_create(controller_client_url(rig.controller), away_ms, rig.loop);
    payloads = payloads_create(cache, rig.controller, objects, NULL);
    ck_assert_ptr_nonnull(payloads);
}

static void close_payloads(void)
{
    payloads_destroy(payloads);
    object_client_destroy(objects);
}

static void setup(void)
{
    rig_setup();
    rig.answer = answer;
    loop_set_idle(rig.loop, idle, NULL);
    open_payloads(OBJECT_STORE_AWAY_MS);
    blob = xalloc(BLOB_BYTES + 1);
    for (size_t i = 0; i < BLOB_BYTES; i++) {
        blob[i] = (char)('a' + i * 7 % 26);
    }
    blob[BLOB_BYTES] = '\0';
    sent = blob;
    hash_hex(blob, BLOB_BYTES, hash);
    problem = (struct err){0};
}

static void teardown(void)
{
    close_payloads();
    free(blob);
    free(give(got));
    rig_teardown();
}

static void ended(void *closure, int file, const struct err *err)
{
    const int *filled = closure;
    int from = filled != NULL ? *filled : file;
    problem = err != NULL ? *err : problem;
    ck_assert((file < 0) == (err != NULL || filled != NULL));
    got_length = 0;
    got = xrealloc(got, BLOB_BYTES + 1);
    for (ssize_t more = 1; err == NULL && more > 0; got_length += (size_t)more) {
        more = pread(from, got + got_length, BLOB_BYTES + 1 - got_length, (off_t)got_length);
        ck_assert_int_ge(more, 0);
    }
    loop_end(rig.loop);
}

static void ck_assert_whole(void)
{
    ck_assert_int_eq(problem.code, ERR_NONE);
    ck_assert_uint_eq(got_length, BLOB_BYTES);
    ck_assert_int_eq(memcmp(got, blob, BLOB_BYTES), 0);
}

static char *cached_path(void)
{
    autofree char *name = xprintf("payloads/%s", hash);
    return rig_path(name);
}

/* What somebody wrote there. */
static void put_cached(const char *bytes, size_t length)
{
    autofree char *path = cached_path();
    ck_assert(file_replace(path, bytes, length, 0600, NULL));
}

static void put_altered(void)
{
    autofree char *altered = xstrdup(blob);
    altered[BLOB_BYTES - 1] = '!';
    put_cached(altered, BLOB_BYTES);
}

static void fill(void)
{
    autofree char *path = rig_path("copy");
    autoclose int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    payload_fill(payloads, hash, file, ended, &file);
    rig_run();
}

START_TEST(a_blob_of_the_cache_is_used_as_it_is)
{
    put_cached(blob, BLOB_BYTES);
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 0);
}
END_TEST

START_TEST(one_that_is_not_there_is_fetched_and_kept)
{
    fill();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
    autofree char *path = cached_path();
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(an_altered_one_is_fetched_again_before_it_is_given)
{
    put_altered();
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

START_TEST(a_copy_of_an_altered_one_is_made_anew)
{
    autofree char *longer = xprintf("%smore", blob);
    put_cached(longer, BLOB_BYTES + 4);
    fill();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

START_TEST(a_shortened_one_is_fetched_again)
{
    put_cached(blob, BLOB_BYTES / 2);
    fill();
    ck_assert_whole();
}
END_TEST

START_TEST(one_that_is_wrong_there_too_is_refused)
{
    put_altered();
    sent = "something else";
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_int_eq(problem.code, ERR_IO);
    ck_assert_ptr_nonnull(strstr(problem.text, "another content"));
    autofree char *path = cached_path();
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

static void alter_again(void *closure, int file, const struct err *err)
{
    ck_assert_ptr_null(err);
    put_altered();
    payload_open(payloads, hash, ended, NULL);
}

START_TEST(what_was_right_once_is_checked_again)
{
    put_cached(blob, BLOB_BYTES);
    payload_open(payloads, hash, alter_again, NULL);
    rig_run();
    ck_assert_whole();
    ck_assert_uint_eq(rig.request_count, 1);
}
END_TEST

/* --- the object store ----------------------------------------------------------------------------------- */

#define IN_STORE "/bucket/blob?signature=x"

static char *location;          /* where the controller redirects */
static struct rig_answer store; /* what the store answers, ... */
static struct rig_answer later; /* ... and when the blob is fetched a second time */
static int cuts;                /* so many of its answers break off */
static int refusals;            /* it answers 403 so many times before */

/* One server plays both. */
static struct rig_answer answer_both(struct rig *unused, const struct rig_request *request)
{
    bool stored = strcmp(request->target, IN_STORE) == 0;
    ck_assert_str_eq(request->token, stored ? "" : "secret");
    rig.cut = stored && cuts-- > 0 ? BLOB_BYTES / 2 : 0;
    if (stored) {
        return refusals-- > 0 ? (struct rig_answer){403, "<Code>AccessDenied</Code>"} : store;
    }
    bool redirects = strstr(request->target, "redirect=1") != NULL;
    return (struct rig_answer){redirects ? 307 : 200, redirects ? NULL : blob};
}

static void setup_store(void)
{
    setup();
    rig.answer = answer_both;
    rig.location = location = xprintf("%s" IN_STORE, controller_client_url(rig.controller));
    store = later = (struct rig_answer){200, blob};
    cuts = refusals = 0;
}

static void teardown_store(void)
{
    free(give(location));
    teardown();
}

/* What was asked, in its order: r the controller for a redirect, s the store, c the controller. */
static void ck_assert_asked(const char *expected)
{
    autotext struct text asked = {0};
    for (size_t i = 0; i < rig.request_count; i++) {
        const char *target = rig.requests[i].target;
        bool stored = strcmp(target, IN_STORE) == 0, redirects = strstr(target, "redirect=1") != NULL;
        text_append(&asked, stored ? "s" : redirects ? "r" : "c");
    }
    ck_assert_str_eq(asked.bytes, expected);
}

static void fetch_it(void)
{
    payload_open(payloads, hash, ended, NULL);
    rig_run();
    ck_assert_whole();
}

static void fetch_again(void *closure, int file, const struct err *err)
{
    autofree char *path = cached_path();
    ck_assert_ptr_null(err);
    ck_assert_int_eq(unlink(path), 0);
    store = later;
    payload_open(payloads, hash, ended, NULL);
}

static void fetch_it_twice(void)
{
    payload_open(payloads, hash, fetch_again, NULL);
    rig_run();
    ck_assert_whole();
}

START_TEST(a_redirect_leads_to_the_store_without_the_token)
{
    fetch_it_twice();
    ck_assert_asked("rsrs");
}
END_TEST

static const struct {
    struct rig_answer answer;
    const char *asked;
} spoilt[] = {
    {{403, "<Error><Code>AccessDenied</Code></Error>"}, "rsrsc"},
    {{404, NULL}, "rsrsc"},
    {{503, "busy"}, "rsrsc"},
    {{206, "a part"}, "rsrsc"},
    {{302, NULL}, "rsrsc"},
    {{0, NULL}, "rsc"},
    {{200, "another content"}, "rsc"},
};

START_TEST(what_the_store_does_not_give_comes_from_the_controller)
{
    store = spoilt[_i].answer;
    fetch_it();
    ck_assert_asked(spoilt[_i].asked);
}
END_TEST

START_TEST(an_answer_of_the_store_that_breaks_off_is_asked_for_once_more)
{
    cuts = 1 + _i;
    fetch_it();
    ck_assert_asked(_i == 0 ? "rsrs" : "rsrsc");
}
END_TEST

START_TEST(a_url_that_has_expired_is_asked_for_anew)
{
    refusals = 1;
    fetch_it();
    ck_assert_asked("rsrs");
}
END_TEST

START_TEST(plain_http_leads_to_no_other_host)
{
    autofree char *unnamed =
        xprintf("http://0.0.0.0%s", strrchr(location, ':')); /* Linux would go to this host */
    rig.location = unnamed;
    fetch_it();
    ck_assert_asked("rc");
}
END_TEST

static bool refuses(const char *controller, const char *url)
{
    struct object_client *client = object_client_create(controller, 0, rig.loop);
    bool refused = object_client_get(client, url, NULL, NULL, NULL, &problem) == NULL;
    object_client_destroy(client);
    return refused;
}

START_TEST(the_loopback_of_another_host_is_not_that_of_the_node)
{
    ck_assert(refuses("https://controller.example", location));
    ck_assert(refuses("http://192.0.2.1:8470", location));
    ck_assert(refuses("http://127.0.0.1:8470", "file:///etc/passwd"));
    ck_assert(refuses("http://127.0.0.1:8470", "ftp://127.0.0.1/blob"));
    ck_assert(!refuses("https://localhost", location));
    ck_assert(!refuses("http://[::1]:8470", "http://[::1]:9000/blob"));
    ck_assert(!refuses("https://controller.example", "https://store.example/blob"));
}
END_TEST

START_TEST(a_store_that_was_away_is_left_alone_for_a_while)
{
    store = (struct rig_answer){0, NULL};
    fetch_it_twice();
    ck_assert_asked("rscc");
}
END_TEST

START_TEST(and_asked_again_afterwards)
{
    close_payloads();
    open_payloads(0);
    store = (struct rig_answer){0, NULL};
    fetch_it_twice();
    ck_assert_asked("rscrs");
}
END_TEST

START_TEST(a_damaged_object_keeps_no_other_from_the_store)
{
    store = (struct rig_answer){200, "another content"};
    fetch_it_twice();
    ck_assert_asked("rscrs");
}
END_TEST

static TCase *store_case(void)
{
    TCase *tcase = tcase_create("store");
    tcase_add_checked_fixture(tcase, setup_store, teardown_store);
    tcase_add_test(tcase, a_redirect_leads_to_the_store_without_the_token);
    tcase_add_loop_test(tcase, what_the_store_does_not_give_comes_from_the_controller, 0,
                        sizeof spoilt / sizeof *spoilt);
    tcase_add_loop_test(tcase, an_answer_of_the_store_that_breaks_off_is_asked_for_once_more, 0, 2);
    tcase_add_test(tcase, a_url_that_has_expired_is_asked_for_anew);
    tcase_add_test(tcase, plain_http_leads_to_no_other_host);
    tcase_add_test(tcase, the_loopback_of_another_host_is_not_that_of_the_node);
    tcase_add_test(tcase, a_store_that_was_away_is_left_alone_for_a_while);
    tcase_add_test(tcase, and_asked_again_afterwards);
    tcase_add_test(tcase, a_damaged_object_keeps_no_other_from_the_store);
    return tcase;
}

Suite *payload_suite(void)
{
    Suite *suite = suite_create("payload");
    TCase *tcase = tcase_create("payload");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_blob_of_the_cache_is_used_as_it_is);
    tcase_add_test(tcase, one_that_is_not_there_is_fetched_and_kept);
    tcase_add_test(tcase, an_altered_one_is_fetched_again_before_it_is_given);
    tcase_add_test(tcase, a_copy_of_an_altered_one_is_made_anew);
    tcase_add_test(tcase, a_shortened_one_is_fetched_again);
    tcase_add_test(tcase, one_that_is_wrong_there_too_is_refused);
    tcase_add_test(tcase, what_was_right_once_is_checked_again);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, store_case());
    return suite;
}
