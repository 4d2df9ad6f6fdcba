/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/gate: what is refused before routing. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/request/gate.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"

static const char *const own_names[] = {"gpu.example"};
static const struct host_names names = {own_names, 1};

/* One line, "Name: value". */
static bool add_line(struct headers *headers, const char *line, struct err *err)
{
    size_t length = strcspn(line, ":");
    autofree char *name = xstrndup(line, length);
    return headers_add(headers, name, line + length + 2, err);
}

/* The code with which a request of these lines, ended by NULL, is refused; ERR_NONE when it passes. */
static enum err_code judge(const char *const *lines, const char *version)
{
    struct headers headers = {.content_length = -1};
    struct err err = {0};
    for (size_t i = 0; lines[i] != NULL; i++) {
        if (!add_line(&headers, lines[i], &err)) {
            return err.code;
        }
    }
    return gate_headers(&headers, version, &names, &err) ? ERR_NONE : err.code;
}

#define JUDGE(...) judge((const char *const[]){__VA_ARGS__, NULL}, "HTTP/1.1")
#define HOST       "Host: localhost:8080"

static enum err_code uri_code(const char *uri)
{
    struct err err = {0};
    return gate_uri(uri, &err) ? ERR_NONE : err.code;
}

START_TEST(plain_paths_and_queries_pass)
{
    ck_assert_int_eq(uri_code("/"), ERR_NONE);
    ck_assert_int_eq(uri_code("/v1/jobs/abc_d-e.f~g/"), ERR_NONE);
    ck_assert_int_eq(uri_code("/v1/jobs?state=QUEUED&name=a%20b&since=2026-11-21T09:30:00Z"), ERR_NONE);
    ck_assert_int_eq(uri_code("/v1/..hidden/a..b"), ERR_NONE);
}
END_TEST

START_TEST(paths_that_two_readers_could_read_differently_are_refused)
{
    static const char *const paths[] = {
        "",          "v1/jobs",   "*",           "/v1/a%00b",    "/v1/%2e%2e",  "/v1%2fjobs", "/v1/%61",
        "//v1/jobs", "/v1//jobs", "/v1/../jobs", "/v1/./jobs",   "/v1/..",      "/.",         "/v1/a\\b",
        "/v1/a;b",   "/v1/a b",   "/v1/\x01",    "/v1/\xc3\xa9", "http://x/v1", "/v1/a#b",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ck_assert_msg(uri_code(paths[i]) == ERR_MALFORMED, "passes: %s", paths[i]);
    }
}
END_TEST

START_TEST(paths_of_files_may_have_escapes_and_more_characters)
{
    static const char *const tails[] = {"a.txt",      "a/b c%20d/", "50%25", "%c3%bc",
                                        "a(1)+b&c=d", "a..b/..c",   "%41"};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        autofree char *uri = xprintf(GATE_FILES "%s", tails[i]);
        bool raw = strchr(tails[i], ' ') != NULL;
        ck_assert_msg(uri_code(uri) == (raw ? ERR_MALFORMED : ERR_NONE), "%s", tails[i]);
    }
    char escaped[] = "a%20b%2520c%c3%bc%";
    gate_unescape(escaped);
    ck_assert_str_eq(escaped, "a b%20c\xc3\xbc%");
}
END_TEST

START_TEST(paths_of_files_lead_nowhere_else_in_any_spelling)
{
    static const char *const tails[] = {
        "..",     "../x",  "a/..",  "a/../b", ".",     "a/./b",    "/x",      "a//b",        "%2e",  "%2e%2e",
        "%2E./x", "a%2fb", "a%2Fb", "%2f",    "a%5cb", "a\\b",     "a%00b",   "a%0ab",       "a%7f", "a\x01",
        "%",      "%4",    "%zz",   "a%ff",   "a%c3",  "\xc3\xbc", "a%c0%ae", "a%2e%2e/../b"};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        autofree char *uri = xprintf(GATE_FILES "%s", tails[i]);
        ck_assert_msg(uri_code(uri) == ERR_MALFORMED, "passes: %s", tails[i]);
    }
    ck_assert_int_eq(uri_code("/api/2.0/mlflow-artifacts/%61rtifacts/x"), ERR_MALFORMED);
    ck_assert_int_eq(uri_code("/api/2.0/mlflow/runs/%61"), ERR_MALFORMED);
}
END_TEST

START_TEST(queries_with_broken_escapes_or_raw_bytes_are_refused)
{
    static const char *const queries[] = {"/?a=%",    "/?a=%4",  "/?a=%zz", "/?a=%00",
                                          "/?a=\x7f", "/?a=b c", "/?a#b"};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        ck_assert_msg(uri_code(queries[i]) == ERR_MALFORMED, "passes: %s", queries[i]);
    }
}
END_TEST

START_TEST(the_longest_uri_passes_and_one_byte_more_is_414)
{
    char uri[LIMIT_URI_BYTES + 2];
    memset(uri, 'a', sizeof uri);
    uri[0] = '/';
    uri[LIMIT_URI_BYTES] = '\0';
    ck_assert_int_eq(uri_code(uri), ERR_NONE);
    uri[LIMIT_URI_BYTES] = 'a';
    uri[LIMIT_URI_BYTES + 1] = '\0';
    ck_assert_int_eq(uri_code(uri), ERR_URI_TOO_LONG);
}
END_TEST

START_TEST(headers_that_must_be_alone_are_refused_twice)
{
    ck_assert_int_eq(JUDGE(HOST, "Host: localhost"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Content-Length: 2", "content-length: 2"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Authorization: a", "authorization: b"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Content-Type: a", "Content-Type: b"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Idempotency-Key: a", "Idempotency-Key: a"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "traceparent: a", "traceparent: a", "tracestate: a", "tracestate: b"),
                     ERR_NONE);
    ck_assert_int_eq(JUDGE(HOST, "Accept: a", "Accept: b", "X-Own: a", "X-Own: b"), ERR_NONE);
}
END_TEST

START_TEST(a_length_told_in_two_ways_is_refused)
{
    ck_assert_int_eq(JUDGE(HOST, "Content-Length: 2", "Transfer-Encoding: chunked"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Transfer-Encoding: xchunked"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Transfer-Encoding: gzip, chunked"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "Transfer-Encoding: Chunked"), ERR_NONE);
    ck_assert_int_eq(judge((const char *const[]){HOST, "Transfer-Encoding: chunked", NULL}, "HTTP/1.0"),
                     ERR_MALFORMED);
}
END_TEST

START_TEST(a_content_length_is_digits_and_nothing_else)
{
    static const char *const lengths[] = {"Content-Length: -1",
                                          "Content-Length: +1",
                                          "Content-Length: 1,1",
                                          "Content-Length: 0x1",
                                          "Content-Length: 1 ",
                                          "Content-Length: ",
                                          "Content-Length: 99999999999999999999"};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        ck_assert_msg(JUDGE(HOST, lengths[i]) == ERR_MALFORMED, "passes: %s", lengths[i]);
    }
    ck_assert_int_eq(JUDGE(HOST, "Content-Length: 0"), ERR_NONE);
}
END_TEST

START_TEST(header_names_are_tokens)
{
    ck_assert_int_eq(JUDGE(HOST, "Transfer-Encoding : chunked"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, " Folded: x"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "X(y): x"), ERR_MALFORMED);
}
END_TEST

START_TEST(header_values_have_no_control_characters)
{
    ck_assert_int_eq(JUDGE(HOST, "X-Own: a\rContent-Length: 5"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "X-Own: a\vb"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "X-Own: a\x7f"), ERR_MALFORMED);
    ck_assert_int_eq(JUDGE(HOST, "X-Own: a\tb \xc3\xa9"), ERR_NONE);
}
END_TEST

START_TEST(a_host_that_is_missing_is_400_and_a_foreign_one_421)
{
    ck_assert_int_eq(JUDGE("Accept: x"), ERR_MALFORMED);
    static const char *const foreign[] = {"Host: evil.example",  "Host: localhost.evil.example",
                                          "Host: localhost:80x", "Host: gpu.example.evil",
                                          "Host: [::1",          "Host: ",
                                          "Host: localhost:"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        ck_assert_msg(JUDGE(foreign[i]) == ERR_MISDIRECTED, "passes: %s", foreign[i]);
    }
}
END_TEST

START_TEST(loopback_names_and_own_names_pass_in_any_case_and_port)
{
    static const char *const own[] = {"Host: localhost",      "Host: LOCALHOST:1", "Host: 127.0.0.1:8080",
                                      "Host: [::1]:80",       "Host: [::1]",       "Host: GPU.example",
                                      "Host: gpu.example:443"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        ck_assert_msg(JUDGE(own[i]) == ERR_NONE, "refused: %s", own[i]);
    }
}
END_TEST

START_TEST(an_unknown_expectation_is_417)
{
    ck_assert_int_eq(JUDGE(HOST, "Expect: 100-Continue"), ERR_NONE);
    ck_assert_int_eq(JUDGE(HOST, "Expect: the-best"), ERR_EXPECTATION);
}
END_TEST

START_TEST(only_two_versions_of_the_protocol_pass)
{
    ck_assert_int_eq(judge((const char *const[]){HOST, NULL}, "HTTP/1.0"), ERR_NONE);
    ck_assert_int_eq(judge((const char *const[]){HOST, NULL}, "HTTP/1.2"), ERR_MALFORMED);
}
END_TEST

START_TEST(headers_over_their_limit_are_431)
{
    char line[LIMIT_HEADER_BYTES + 16];
    memset(line, 'a', sizeof line);
    memcpy(line, "X: ", 3);
    line[sizeof line - 1] = '\0';
    ck_assert_int_eq(JUDGE(HOST, line), ERR_HEADERS);
}
END_TEST

Suite *gate_suite(void)
{
    Suite *suite = suite_create("gate");
    TCase *cases = tcase_create("gate");
    tcase_add_test(cases, plain_paths_and_queries_pass);
    tcase_add_test(cases, paths_that_two_readers_could_read_differently_are_refused);
    tcase_add_test(cases, paths_of_files_may_have_escapes_and_more_characters);
    tcase_add_test(cases, paths_of_files_lead_nowhere_else_in_any_spelling);
    tcase_add_test(cases, queries_with_broken_escapes_or_raw_bytes_are_refused);
    tcase_add_test(cases, the_longest_uri_passes_and_one_byte_more_is_414);
    tcase_add_test(cases, headers_that_must_be_alone_are_refused_twice);
    tcase_add_test(cases, a_length_told_in_two_ways_is_refused);
    tcase_add_test(cases, a_content_length_is_digits_and_nothing_else);
    tcase_add_test(cases, header_names_are_tokens);
    tcase_add_test(cases, header_values_have_no_control_characters);
    tcase_add_test(cases, a_host_that_is_missing_is_400_and_a_foreign_one_421);
    tcase_add_test(cases, loopback_names_and_own_names_pass_in_any_case_and_port);
    tcase_add_test(cases, an_unknown_expectation_is_417);
    tcase_add_test(cases, only_two_versions_of_the_protocol_pass);
    tcase_add_test(cases, headers_over_their_limit_are_431);
    suite_add_tcase(suite, cases);
    return suite;
}
