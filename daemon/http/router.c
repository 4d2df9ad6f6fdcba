/* SPDX-License-Identifier: Apache-2.0 */
/* Has the table of the API, and does what all routes share: 404 and 405, the token and its role, size and
 * decoding of the body, the query. A handler runs only for a request that has passed all of it. */
#include "daemon/http/router.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/audit/audit.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/request/connection.h"
#include "daemon/http/request/head.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/senders.h"
#include "daemon/store/store.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

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

enum { ROUTE_COUNT = sizeof routes / sizeof *routes - 1 };

struct route_measures *router_measures(void)
{
    return xzalloc((ROUTE_COUNT + 1) * sizeof(struct route_measures));
}

static enum MHD_Result send_reply(struct request *request, int64_t now_us)
{
    ptrdiff_t number = request->route != NULL ? request->route - routes : ROUTE_COUNT;
    struct route_measures *measures = &request->server->measures[number];
    measures->replies[request->status / 100 % STATUS_CLASSES]++;
    histogram_add(&measures->took, request->whole_us != 0 ? now_us - request->whole_us : 0);
    audit_replied(request);
    audit_warn_of_end(request);
    return request_queue_reply(request);
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
            text_printf(&list, "%s%s", list.length > 0 ? ", " : "", method_text((enum method)i));
            text_append(&list, i == METHOD_GET ? ", HEAD" : "");
        }
    }
    request_fail_with(request, ERR_METHOD, "%s takes %s only", request->path, list.bytes);
    request_header(request, MHD_HTTP_HEADER_ALLOW, list.bytes);
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

/* Later versions of the library check heads themselves, and may lay texts out otherwise. */
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
    if (!authorize_ranks(request->route->access)) {
        return err_set(err, ERR_FORBIDDEN, "the token of a job's ranks reaches /api/2.0/mlflow only");
    }
    if (!reader_attempt_record(server->reader, request->ranks_attempt_id, &found, &attempt, err)) {
        return false;
    }
    return (found && attempt.state != ATTEMPT_ENDED) ||
           err_set(err, ERR_UNAUTHENTICATED, "the job's attempt has ended, and its token with it");
}

/* A token counts, even beside a cookie: programs name the one that they mean. */
static bool in_session(const struct request *request)
{
    return request->headers.authorization == NULL &&
           sessions_has_cookie(request->server->sessions, request->headers.cookie);
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
    request->who = in_session(request) ? request_session(request, &request->session, err)
                                       : auth_check(server->auth, credential, server->wall_ms, err);
    if (request->who == NULL) {
        return false;
    }
    audit_token_used(request);
    request->person = authorize_is_person(identity_role(request->who));
    if (request->person) {
        server->people_count++;
        server->busy_ms = server->now_ms;
    }
    return authorize_route(request->route->access, identity_role(request->who), err);
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

static void admit(struct request *request, const char *method, const char *version)
{
    struct err err;
    request->head = strcmp(method, "HEAD") == 0;
    request->render_error = mlflow_has_path(request->path) ? mlflow_error_render : NULL;
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
    request->route = route_match(routes, method, request->path, request->argument, &allowed);
    if (request->route == NULL) {
        refuse_path(request, method, allowed);
        return;
    }
    if (!authenticate(request, &err) || !route_allows_body(request->route, &request->headers, &err) ||
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

/* The token is looked at again: since its head was judged the body has come, as slowly as its sender liked.
 */
static void call_handler(struct request *request)
{
    struct err err;
    bool good = (request->who == NULL || request_stands(request, &err)) && decode(request, &err);
    if (good) {
        job_name_task(request);
        good = request->route->handle(request, &err);
    }
    if (!good) {
        request_fail(request, &err);
    }
}

/* --- called by the HTTP library ------------------------------------------------------------------------- */

static enum MHD_Result judge(struct request *request, const char *method, const char *version)
{
    admit(request, method, version);
    request->phase = REQUEST_BODY;
    connection_enter(request->link, CONNECTION_BODY);
    if (request->response == NULL) {
        return MHD_YES;
    }
    if (headers_announce_body(&request->headers)) {
        request->closing = true;
    }
    return request->closing ? send_reply(request, 0) : MHD_YES;
}

static enum MHD_Result handle(struct request *request, int64_t begin_us)
{
    if (request->response == NULL) {
        request->phase = REQUEST_HANDLING;
        call_handler(request);
    }
    int64_t end_us = clock_boot_us();
    senders_charge(request, end_us - begin_us);
    if (request->response != NULL) {
        return send_reply(request, end_us);
    }
    assert(request->awaited);
    request->phase = REQUEST_WAITING;
    request_suspend(request);
    return MHD_YES;
}

/* The body is there. A request that was refused waits in line, too, or refusals would cost its sender
 * nothing.
 */
static enum MHD_Result take(struct request *request)
{
    connection_enter(request->link, CONNECTION_OURS);
    request->whole_us = clock_boot_us();
    if (senders_admit(request->server->senders, request)) {
        return handle(request, request->whole_us);
    }
    request->phase = REQUEST_LINED;
    return MHD_YES;
}

enum MHD_Result router_call(void *server, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data, size_t *size,
                            void **slot)
{
    struct request *request = *slot;
    switch (request->phase) {
    case REQUEST_HEADERS:
        return judge(request, method, version);
    case REQUEST_BODY:
        return *size > 0 ? request_take_body(request, data, size) : take(request);
    case REQUEST_LINED:
        return handle(request, clock_boot_us());
    case REQUEST_WAITING:
        return send_reply(request, clock_boot_us());
    case REQUEST_HANDLING:
    case REQUEST_QUEUED:
        break;
    }
    return MHD_NO;
}
