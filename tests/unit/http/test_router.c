/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/router: matching, and the table against the contract. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/contract.h"
#include "daemon/http/router.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/states.h"
#include "tests/unit/http/http_suites.h"

static char argument[REQUEST_ARGUMENT_BYTES];
static unsigned allowed;

static const char *match(const char *method, const char *path)
{
    const struct route *route = route_match(routes, method, path, argument, &allowed);
    return route != NULL ? route->path : NULL;
}

START_TEST(a_path_finds_its_route_and_argument)
{
    ck_assert_str_eq(match("POST", "/v1/jobs"), "/v1/jobs");
    ck_assert_str_eq(match("GET", "/v1/jobs/abc"), "/v1/jobs/{id}");
    ck_assert_str_eq(argument, "abc");
    ck_assert_str_eq(match("POST", "/v1/jobs/abc/cancel"), "/v1/jobs/{id}/cancel");
    ck_assert_str_eq(argument, "abc");
    ck_assert_str_eq(match("GET", "/v1/jobs/abc/results"), "/v1/jobs/{id}/results");
    ck_assert_str_eq(match("GET", "/healthz"), "/healthz");
}
END_TEST

START_TEST(a_tail_takes_all_parts_that_dependency_and_keeps_their_escapes)
{
    static const char path[] = GATE_FILES "1/a%20b/c";
    ck_assert_str_eq(match("GET", path), GATE_FILES "{+path}");
    const struct route *route = route_match(routes, "PUT", path, argument, &allowed);
    const struct request request = {.route = route, .path = path};
    ck_assert_str_eq(route_tail(&request), "1/a%20b/c");
    ck_assert_str_eq(match("DELETE", GATE_FILES "x"), GATE_FILES "{+path}");
    ck_assert_ptr_null(match("GET", GATE_FILES));
    ck_assert_str_eq(match("GET", "/api/2.0/mlflow-artifacts/artifacts"),
                     "/api/2.0/mlflow-artifacts/artifacts");
    ck_assert_str_eq(match("POST", "/api/2.0/mlflow/runs/create"), "/api/2.0/mlflow/{+call}");
    ck_assert_ptr_null(match("PUT", "/api/2.0/mlflow/runs/create"));
    ck_assert_uint_eq(allowed,
                      1U << METHOD_GET | 1U << METHOD_POST | 1U << METHOD_PATCH | 1U << METHOD_DELETE);
    const struct request other = {.route = route_match(routes, "GET", "/v1/jobs/abc", argument, &allowed),
                                  .path = path};
    ck_assert_str_eq(route_tail(&other), "");
}
END_TEST

/* A16: the names of a list as the contract has to write them. */
static void expect_listed(const struct text *list)
{
    autofree char *contract = xstrndup((const char *)contract_yaml, contract_yaml_length);
    ck_assert_msg(strstr(contract, list->bytes) != NULL, "the contract has no %s", list->bytes);
}

#define EXPECT_LISTED(LIST, NAME)                                                                            \
    do {                                                                                                     \
        autotext struct text list = {0};                                                                     \
        text_append(&list, "enum: [");                                                                       \
        LIST(NAME)                                                                                           \
        list.bytes[list.length - 2] = ']';                                                                   \
        list.bytes[--list.length] = '\0';                                                                    \
        expect_listed(&list);                                                                                \
    } while (0)
#define NAME_ALONE(name, ...)        text_append(&list, #name ", ");
#define SPELLED(name, spelling, ...) text_append(&list, spelling ", ");

START_TEST(the_contract_lists_every_name_that_is_shown)
{
    EXPECT_LISTED(JOB_STATES, NAME_ALONE);
    EXPECT_LISTED(ATTEMPT_STATES, NAME_ALONE);
    EXPECT_LISTED(MEMBER_STATES, NAME_ALONE);
    EXPECT_LISTED(NODE_STATES, NAME_ALONE);
    EXPECT_LISTED(CAUSES, NAME_ALONE);
    EXPECT_LISTED(WAIT_REASONS, NAME_ALONE);
    EXPECT_LISTED(EVENT_KINDS, SPELLED);
    EXPECT_LISTED(NODE_TESTS, SPELLED);
    EXPECT_LISTED(CONFIDENCES, SPELLED);
}
END_TEST

START_TEST(the_contract_lists_every_code_of_a_problem)
{
    autofree char *contract = xstrndup((const char *)contract_yaml, contract_yaml_length);
    const char *codes = strstr(contract, "            - malformed_request\n");
    for (enum err_code code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        autofree char *line = xprintf("            - %s\n", err_slug(code));
        ck_assert_msg(err_http(code) == 0 || strstr(codes, line) != NULL, "the contract lacks the code %s",
                      err_slug(code));
    }
}
END_TEST

START_TEST(head_is_answered_as_get)
{
    ck_assert_str_eq(match("HEAD", "/v1/nodes"), "/v1/nodes");
    ck_assert_ptr_null(match("HEAD", "/v1/agent/poll"));
}
END_TEST

START_TEST(a_known_path_names_the_methods_that_it_takes)
{
    ck_assert_ptr_null(match("DELETE", "/v1/jobs"));
    ck_assert_uint_eq(allowed, 1U << METHOD_GET | 1U << METHOD_POST);
    ck_assert_ptr_null(match("BREW", "/v1/jobs/abc/cancel"));
    ck_assert_uint_eq(allowed, 1U << METHOD_POST);
    ck_assert_ptr_null(match("get", "/v1/jobs"));
    ck_assert_uint_ne(allowed, 0);
}
END_TEST

START_TEST(an_unknown_path_allows_nothing)
{
    static const char *const paths[] = {
        "/web",       "/v1",           "/v1/job",           "/v1/jobs/",
        "/v1/jobsx",  "/v1/jobs/a/b",  "/v1/jobs//cancel",  "/v1/jobs/a/cancel/",
        "/healthz/x", "/v1/nodes/a/b", "/v1/jobs/a/cancelx"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ck_assert_msg(match("GET", paths[i]) == NULL && allowed == 0, "found: %s", paths[i]);
    }
}
END_TEST

START_TEST(an_argument_too_long_for_any_id_is_no_path)
{
    char path[9 + REQUEST_ARGUMENT_BYTES + 1] = "/v1/jobs/";
    memset(path + 9, 'a', REQUEST_ARGUMENT_BYTES);
    ck_assert_ptr_null(match("GET", path));
    path[9 + REQUEST_ARGUMENT_BYTES - 1] = '\0';
    ck_assert_ptr_nonnull(match("GET", path));
    ck_assert_uint_eq(strlen(argument), REQUEST_ARGUMENT_BYTES - 1);
}
END_TEST

static enum err_code body_code(enum body_kind kind, int64_t limit, struct headers headers)
{
    const struct route route = {.body = kind, .body_limit = limit};
    struct err err = {0};
    return route_allows_body(&route, &headers, &err) ? ERR_NONE : err.code;
}

START_TEST(a_body_over_its_limit_is_refused_by_its_header)
{
    struct headers headers = {.content_length = 100, .content_type = "application/json"};
    ck_assert_int_eq(body_code(BODY_JSON, 100, headers), ERR_NONE);
    ck_assert_int_eq(body_code(BODY_JSON, 99, headers), ERR_TOO_LARGE);
    ck_assert_int_eq(body_code(BODY_NONE, 0, headers), ERR_TOO_LARGE);
    headers.content_length = 0;
    ck_assert_int_eq(body_code(BODY_NONE, 0, headers), ERR_NONE);
}
END_TEST

START_TEST(a_body_without_a_length_is_411_where_one_is_needed)
{
    const struct headers none = {.content_length = -1};
    ck_assert_int_eq(body_code(BODY_JSON, 100, none), ERR_LENGTH_REQUIRED);
    ck_assert_int_eq(body_code(BODY_STREAM, 100, none), ERR_LENGTH_REQUIRED);
    ck_assert_int_eq(body_code(BODY_JSON_OR_EMPTY, 100, none), ERR_NONE);
    ck_assert_int_eq(body_code(BODY_NONE, 0, none), ERR_NONE);
    const struct headers chunks = {
        .content_length = -1, .transfer_encoding = "chunked", .content_type = "application/json"};
    ck_assert_int_eq(body_code(BODY_JSON, 100, chunks), ERR_NONE);
    ck_assert_int_eq(body_code(BODY_NONE, 0, chunks), ERR_TOO_LARGE);
}
END_TEST

START_TEST(json_bodies_say_that_they_are_json)
{
    static const struct {
        const char *type;
        enum err_code code;
    } table[] = {{"application/json", ERR_NONE},
                 {"Application/JSON; charset=utf-8", ERR_NONE},
                 {"application/json ;charset=utf-8", ERR_NONE},
                 {"application/jsonx", ERR_MEDIA_TYPE},
                 {"application/x-www-form-urlencoded", ERR_MEDIA_TYPE},
                 {"text/plain", ERR_MEDIA_TYPE},
                 {NULL, ERR_MEDIA_TYPE}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct headers headers = {.content_length = 2, .content_type = table[i].type};
        ck_assert_int_eq(body_code(BODY_JSON, 100, headers), table[i].code);
        ck_assert_int_eq(body_code(BODY_JSON_OR_EMPTY, 100, headers), table[i].code);
        ck_assert_int_eq(body_code(BODY_BYTES, 100, headers), ERR_NONE);
    }
}
END_TEST

START_TEST(lists_are_json_or_ndjson)
{
    static const struct {
        const char *type;
        enum err_code code;
        bool lines;
    } table[] = {{"application/json", ERR_NONE, false},
                 {"application/x-ndjson", ERR_NONE, true},
                 {"Application/X-NDJSON; charset=utf-8", ERR_NONE, true},
                 {"application/x-ndjsonx", ERR_MEDIA_TYPE, false},
                 {NULL, ERR_MEDIA_TYPE, false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct headers headers = {.content_length = 2, .content_type = table[i].type};
        ck_assert_int_eq(body_code(BODY_LIST, 100, headers), table[i].code);
        ck_assert_int_eq(headers_body_is_lines(&headers), table[i].lines);
    }
    const struct headers lines = {.content_length = 2, .content_type = "application/x-ndjson"};
    ck_assert_int_eq(body_code(BODY_JSON, 100, lines), ERR_MEDIA_TYPE);
}
END_TEST

/* The part of the contract that describes a path, of which it knows no {+...}; the caller frees it. NULL: it
 * has no such path. */
static char *contract_of(const char *path)
{
    autofree char *yaml = xstrndup((const char *)contract_yaml, contract_yaml_length);
    const char *plus = strchr(path, '+');
    autofree char *head = plus != NULL ? xprintf("\n  %.*s%s:\n", (int)(plus - path), path, plus + 1)
                                       : xprintf("\n  %s:\n", path);
    const char *start = strstr(yaml, head);
    if (start == NULL) {
        return NULL;
    }
    start += strlen(head);
    const char *end = strstr(start, "\n  /");
    return end != NULL ? xstrndup(start, (size_t)(end - start)) : xstrdup(start);
}

START_TEST(every_route_is_in_the_contract_with_its_summary)
{
    static const char *const methods[METHOD_COUNT] = {"    get:\n", "    post:\n", "    put:\n",
                                                      "    delete:\n", "    patch:\n"};
    for (const struct route *route = routes; route->path != NULL; route++) {
        autofree char *described = contract_of(route->path);
        ck_assert_msg(described != NULL, "the contract has no %s", route->path);
        const char *method = strstr(described, methods[route->method]);
        ck_assert_msg(method != NULL, "the contract has no such method of %s", route->path);
        autofree char *summary = xprintf("summary: %s\n", route->summary);
        ck_assert_msg(strstr(method, summary) != NULL, "the contract does not sum up %s so: %s", route->path,
                      route->summary);
    }
}
END_TEST

/* The roles that an access admits, as the contract writes them. */
static char *security_of(enum access access)
{
    static const char *const wanted[] = {
#define AS_WANTED(name, roles, wanted) [ACCESS_##name] = wanted,
        ACCESSES(AS_WANTED)
#undef AS_WANTED
    };
    const char * or = strstr(wanted[access], " or ");
    if (access == ACCESS_OPEN) {
        return xstrdup("      security: []\n");
    }
    return or == NULL ? xprintf("      security: [{token: [%s]}]\n", wanted[access])
                      : xprintf("      security: [{token: [%.*s, %s]}]\n", (int)(or -wanted[access]),
                                wanted[access], or +strlen(" or "));
}

START_TEST(the_contract_says_of_each_route_who_may_use_it)
{
    static const char *const methods[METHOD_COUNT] = {"    get:\n", "    post:\n", "    put:\n",
                                                      "    delete:\n", "    patch:\n"};
    for (const struct route *route = routes; route->path != NULL; route++) {
        autofree char *described = contract_of(route->path), *security = security_of(route->access);
        char *method = strstr(described, methods[route->method]), *end = strstr(method, "      responses:");
        ck_assert(end != NULL);
        *end = '\0';
        bool said = strstr(method, security) != NULL;
        bool silent = route->access == ACCESS_ANY && strstr(method, "security:") == NULL;
        ck_assert_msg(said || silent, "%s does not have%s", route->path, security);
    }
}
END_TEST

START_TEST(nodes_may_put_and_fetch_blobs_and_see_no_jobs)
{
    const struct {
        const char *method, *path;
        bool allowed;
    } table[] = {{"PUT", "/v1/blobs/abc", true},
                 {"GET", "/v1/blobs/abc", true},
                 {"GET", "/v1/jobs/abc/results", false},
                 {"GET", "/v1/jobs/abc", false},
                 {"POST", "/v1/jobs", false}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct err err = {0};
        const struct route *route = route_match(routes, table[i].method, table[i].path, argument, &allowed);
        ck_assert(authorize_route(route->access, ROLE_USER, &err));
        ck_assert_msg(authorize_route(route->access, ROLE_NODE, &err) == table[i].allowed, "%s",
                      table[i].path);
    }
}
END_TEST

START_TEST(every_route_is_sound)
{
    for (const struct route *route = routes; route->path != NULL; route++) {
        ck_assert_msg((route->body == BODY_NONE) == (route->body_limit == 0), "%s", route->path);
        ck_assert_msg((route->body == BODY_STREAM) == (route->sink != NULL), "%s", route->path);
        ck_assert(route->handle != NULL);
        bool agent = strncmp(route->path, "/v1/agent/", 10) == 0;
        bool join = strcmp(route->path, "/v1/agent/join") == 0; /* for who has no token yet */
        ck_assert_msg((agent && !join) == (route->access == ACCESS_NODE), "%s", route->path);
        bool open = strcmp(route->path, "/healthz") == 0 || strcmp(route->path, "/health") == 0 ||
                    strcmp(route->path, "/api/3.0/mlflow/server-info") == 0 ||
                    strcmp(route->path, "/v1/ca") == 0 || strcmp(route->path, "/") == 0 ||
                    strcmp(route->path, "/web/{name}") == 0 || join ||
                    (strcmp(route->path, "/v1/session") == 0 && route->method == METHOD_POST) ||
                    (strcmp(route->path, "/v1/login") == 0 && route->method != METHOD_DELETE);
        ck_assert_msg((route->access == ACCESS_OPEN) == open, "%s", route->path);
        bool tracking = strncmp(route->path, "/api/2.0/", 9) == 0;
        ck_assert_msg(authorize_ranks(route->access) == tracking, "%s", route->path);
        for (const struct route *other = routes; other < route; other++) {
            ck_assert(other->method != route->method || strcmp(other->path, route->path) != 0);
        }
    }
}
END_TEST

Suite *router_suite(void)
{
    Suite *suite = suite_create("router");
    TCase *cases = tcase_create("router");
    tcase_add_test(cases, a_path_finds_its_route_and_argument);
    tcase_add_test(cases, a_tail_takes_all_parts_that_dependency_and_keeps_their_escapes);
    tcase_add_test(cases, the_contract_lists_every_name_that_is_shown);
    tcase_add_test(cases, the_contract_lists_every_code_of_a_problem);
    tcase_add_test(cases, head_is_answered_as_get);
    tcase_add_test(cases, a_known_path_names_the_methods_that_it_takes);
    tcase_add_test(cases, an_unknown_path_allows_nothing);
    tcase_add_test(cases, an_argument_too_long_for_any_id_is_no_path);
    tcase_add_test(cases, a_body_over_its_limit_is_refused_by_its_header);
    tcase_add_test(cases, a_body_without_a_length_is_411_where_one_is_needed);
    tcase_add_test(cases, json_bodies_say_that_they_are_json);
    tcase_add_test(cases, lists_are_json_or_ndjson);
    tcase_add_test(cases, every_route_is_in_the_contract_with_its_summary);
    tcase_add_test(cases, the_contract_says_of_each_route_who_may_use_it);
    tcase_add_test(cases, nodes_may_put_and_fetch_blobs_and_see_no_jobs);
    tcase_add_test(cases, every_route_is_sound);
    suite_add_tcase(suite, cases);
    return suite;
}
