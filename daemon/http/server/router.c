/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of the API and what every route shares: finding it, 404 and 405, the token and its role, the
 * kind and size of the body, its decoding, the query. It promises that a handler runs only for a request that
 * passed all of it. What a request means is left to the resources. */
#include "daemon/http/server/router.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/http/request/head.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/server/parts.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/server/routes.h"
#include "proto/base/json.h"
#include "proto/limits.h"

const struct route routes[] = {
#define PLAIN(method, path, access, query, handle, what, summary)                                            \
    OTHER(method, path, access, NONE, 0, false, query, handle, what, NULL, summary)
#define SEND(method, path, access, body, limit, keyed, handle, what, summary)                                \
    OTHER(method, path, access, body, limit, keyed, NULL, handle, what, NULL, summary)
#define OTHER(method, path, access, body, limit, keyed, query, handle, what, sink, summary)                  \
    {METHOD_##method, path, ACCESS_##access, BODY_##body, limit, keyed, query, handle, what, sink, summary},
    ROUTES(PLAIN, SEND, OTHER)
#undef PLAIN
#undef SEND
#undef OTHER
        {.path = NULL},
};

/* --- matching ------------------------------------------------------------------------------------------- */

static const char *const method_names[METHOD_COUNT] = {"GET", "POST", "PUT", "DELETE", "PATCH"};

const char *router_method(const struct request *request)
{
    return request->head ? "HEAD" : method_names[request->route->method];
}

static bool method_from_text(const char *text, enum method *ret_method)
{
    if (strcmp(text, "HEAD") == 0) {
        *ret_method = METHOD_GET;
        return true;
    }
    for (int i = 0; i < METHOD_COUNT; i++) {
        if (strcmp(text, method_names[i]) == 0) {
            *ret_method = (enum method)i;
            return true;
        }
    }
    return false;
}

static bool path_fits(const char *template, const char *path, char argument[REQUEST_ARGUMENT_BYTES])
{
    while (*template != '\0' && *template != '{') {
        if (*template ++ != *path++) {
            return false;
        }
    }
    if (*template == '\0') {
        return *path == '\0';
    }
    if (template[1] == '+') {
        argument[0] = '\0';
        return *path != '\0';
    }
    size_t length = strcspn(path, "/");
    if (length == 0 || length >= REQUEST_ARGUMENT_BYTES ||
        strcmp(strchr(template, '}') + 1, path + length) != 0) {
        return false;
    }
    memcpy(argument, path, length);
    argument[length] = '\0';
    return true;
}

const char *router_tail(const struct request *request)
{
    const char *hole = strstr(request->route->path, "{+");
    return hole != NULL ? request->path + (hole - request->route->path) : "";
}

const struct route *router_match(const char *method_name, const char *path,
                                 char argument[REQUEST_ARGUMENT_BYTES], unsigned *ret_allowed)
{
    enum method method = METHOD_COUNT;
    bool known = method_from_text(method_name, &method);
    *ret_allowed = 0;
    for (const struct route *route = routes; route->path != NULL; route++) {
        if (path_fits(route->path, path, argument)) {
            if (known && route->method == method) {
                return route;
            }
            *ret_allowed |= 1U << route->method;
        }
    }
    return NULL;
}

static void refuse_path(struct request *request, const char *method, unsigned allowed)
{
    if (allowed == 0 && mlflow_has_path(request->path)) {
        request_fail_with(request, ERR_NOT_FOUND, MLFLOW_UNSERVED, method, request->path);
        return;
    }
    if (allowed == 0) {
        request_fail_with(request, ERR_NOT_FOUND, "the API has no path %s", request->path);
        return;
    }
    autotext struct text list = {0};
    for (int i = 0; i < METHOD_COUNT; i++) {
        if ((allowed & (1U << i)) != 0) {
            text_printf(&list, "%s%s", list.length > 0 ? ", " : "", method_names[i]);
            text_append(&list, i == METHOD_GET ? ", HEAD" : "");
        }
    }
    request_fail_with(request, ERR_METHOD, "%s takes %s only", request->path, list.bytes);
    request_header(request, MHD_HTTP_HEADER_ALLOW, list.bytes);
}

/* --- the body ------------------------------------------------------------------------------------------- */

static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    if (content_type == NULL || strncasecmp(content_type, json, sizeof json - 1) != 0) {
        return false;
    }
    const char *rest = content_type + sizeof json - 1;
    rest += strspn(rest, " \t");
    return *rest == '\0' || *rest == ';';
}

bool router_body_allowed(const struct route *route, const struct headers *headers, struct err *err)
{
    bool announced = headers_announce_body(headers);
    bool json = route->body == BODY_JSON || route->body == BODY_JSON_OR_EMPTY;
    if (!announced && headers->content_length < 0 && route->body != BODY_NONE &&
        route->body != BODY_JSON_OR_EMPTY) {
        return err_set(err, ERR_LENGTH_REQUIRED, "the request has neither Content-Length nor chunks");
    }
    if (headers->content_length > route->body_limit || (announced && route->body == BODY_NONE)) {
        return err_set(err, ERR_TOO_LARGE, "the body is longer than %lld bytes, the limit of this path",
                       (long long)route->body_limit);
    }
    if (announced && json && !is_json(headers->content_type)) {
        err_set(err, ERR_MEDIA_TYPE, "the body of this path is JSON");
        return err_hint(err, "send Content-Type: application/json");
    }
    return true;
}

/* --- admission ------------------------------------------------------------------------------------------ */

struct reading {
    struct headers *headers;
    struct head head;
    struct err *err;
    bool ok;
};

static enum MHD_Result read_header(void *closure, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct reading *reading = closure;
    value = value != NULL ? value : "";
    head_header(&reading->head, name, value);
    reading->ok = headers_add(reading->headers, name, value, reading->err);
    return reading->ok ? MHD_YES : MHD_NO;
}

/* Later versions of the library check that themselves, and may lay texts out otherwise. */
static bool library_checks_heads(void)
{
    return strncmp(MHD_get_version(), "0.", 2) != 0;
}

static bool pass_gate(struct request *request, const char *method, const char *version, struct err *err)
{
    struct reading reading = {.headers = &request->headers, .err = err, .ok = true};
    head_begin(&reading.head, method, request->raw_uri, request->uri_length, version);
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_header, &reading);
    size_t length =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    return reading.ok && gate_uri(request->uri, err) &&
           (library_checks_heads() || head_end(&reading.head, length, err)) &&
           gate_headers(&request->headers, version, &request->server->names, err);
}

/* The ranks of a live attempt reach tracking, and nothing else. */
static bool admit_ranks(struct request *request, struct err *err)
{
    struct server *server = request->server;
    bool found;
    struct attempt_record attempt;
    request->who = auth_ranks();
    if (request->route->access != ACCESS_TRACKING) {
        return err_set(err, ERR_FORBIDDEN, "the token of a job's ranks reaches /api/2.0/mlflow only");
    }
    if (!reader_attempt_record(server->reader, request->ranks_attempt_id, &found, &attempt, err)) {
        return false;
    }
    return (found && attempt.state != ATTEMPT_ENDED) ||
           err_set(err, ERR_UNAUTHENTICATED, "the job's attempt has ended, and its token with it");
}

static bool authenticate(struct request *request, struct err *err)
{
    struct server *server = request->server;
    if (request->route->access == ACCESS_OPEN) {
        return true;
    }
    char credential[CREDENTIAL_BYTES];
    auth_credential(request->headers.authorization, credential);
    if (rank_token_read(server->rank_key, credential, &request->ranks_attempt_id)) {
        return admit_ranks(request, err);
    }
    request->who = auth_check(server->auth, credential, server->wall_ms, err);
    if (request->who == NULL) {
        return false;
    }
    request->person = identity_role(request->who) != ROLE_NODE;
    if (request->person) {
        server->people_count++;
        server->busy_ms = server->now_ms;
    }
    return auth_allows(request->route->access, identity_role(request->who), err);
}

static bool read_query(struct request *request, char *text, struct err *err)
{
    if (text == NULL) {
        return true;
    }
    request->query_owned = xzalloc(sizeof *request->query_owned);
    request->query = request->query_owned;
    return query_parse(text, request->route->query, request->query_owned, err);
}

void router_admit(struct request *request, const char *method, const char *version)
{
    struct err err;
    request->head = strcmp(method, "HEAD") == 0;
    if (!pass_gate(request, method, version, &err)) {
        request->closing = true;
        request_fail(request, &err);
        return;
    }
    char *query = strchr(request->uri, '?');
    if (query != NULL) {
        *query++ = '\0';
    }
    unsigned allowed;
    request->route = router_match(method, request->path, request->argument, &allowed);
    if (request->route == NULL) {
        refuse_path(request, method, allowed);
        return;
    }
    if (!authenticate(request, &err) || !router_body_allowed(request->route, &request->headers, &err) ||
        !read_query(request, query, &err)) {
        request_fail(request, &err);
        return;
    }
    const struct body_sink *sink = request->route->sink;
    if (sink != NULL && sink->begin != NULL && !sink->begin(request, &err)) {
        request_fail(request, &err);
    }
}

/* --- handling ------------------------------------------------------------------------------------------- */

static bool decode(struct request *request, struct err *err)
{
    enum body_kind kind = request->route->body;
    if (kind != BODY_JSON && (kind != BODY_JSON_OR_EMPTY || request->body_length == 0)) {
        return true;
    }
    request->json = json_parse(request->body != NULL ? request->body : "", request->body_length, err);
    if (request->json != NULL && !json_is_object(request->json)) {
        return err_set(err, ERR_MALFORMED, "the body is JSON, but not an object");
    }
    return request->json != NULL;
}

void router_handle(struct request *request)
{
    struct err err;
    bool good = decode(request, &err);
    if (good) {
        job_name_task(request);
        good = request->route->handle(request, &err);
    }
    if (!good) {
        request_fail(request, &err);
    }
}
