/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of the API and what every route shares: finding it, 404 and 405, the token and its role, the
 * kind and size of the body, its decoding, the query. It promises that a handler runs only for a request that
 * passed all of it. What a request means is left to the resources. */
#include "daemon/http/router.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/http/blobs.h"
#include "daemon/http/head.h"
#include "daemon/http/job_lookup.h"
#include "daemon/http/logs.h"
#include "daemon/http/mlflow.h"
#include "daemon/http/parts.h"
#include "daemon/http/rank_token.h"
#include "daemon/http/resources.h"
#include "proto/base/json.h"
#include "proto/limits.h"

/* The most frequent first: they are tried in this order. */
const struct route routes[] = {
    {METHOD_POST, "/v1/jobs", ACCESS_USER, BODY_JSON, LIMIT_SUBMIT_BYTES, true, NULL, jobs_submit, NULL,
     "Submit a job"},
    {METHOD_POST, "/v1/agent/report", ACCESS_NODE, BODY_JSON, LIMIT_REPORT_BYTES, false, NULL, agents_report,
     NULL, "Report what became of an order"},
    {METHOD_POST, "/v1/agent/poll", ACCESS_NODE, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, agents_poll, NULL,
     "Wait for orders"},
    {METHOD_POST, "/v1/agent/beat", ACCESS_NODE, BODY_JSON, LIMIT_REPORT_BYTES, false, NULL, agents_heartbeat,
     NULL, "Show that a node is alive"},
    {METHOD_POST, "/v1/agent/register", ACCESS_NODE, BODY_JSON, LIMIT_REPORT_BYTES, false, NULL,
     agents_register, NULL, "Register a node"},
    {METHOD_POST, "/v1/agent/staging", ACCESS_NODE, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, agents_staging,
     NULL, "Report what a node prepares"},
    {METHOD_POST, "/v1/agent/journal", ACCESS_NODE, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, lost_tell, NULL,
     "Tell a restored controller what a node has run"},
    {METHOD_POST, "/v1/agent/logs", ACCESS_NODE, BODY_BYTES, LIMIT_LOG_CHUNK_BYTES, false,
     "node epoch rank stream offset", logs_upload, NULL, "Send bytes of a stream"},
    {METHOD_GET, "/v1/jobs/{id}", ACCESS_USER, BODY_NONE, 0, false, "wait seq", jobs_show, NULL,
     "Show one job"},
    {METHOD_GET, "/v1/jobs", ACCESS_USER, BODY_NONE, 0, false,
     "state name project owner id_prefix array since limit cursor", jobs_list, NULL, "List jobs"},
    {METHOD_POST, "/v1/jobs/{id}/cancel", ACCESS_USER, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     cancel_job, NULL, "Cancel a job"},
    {METHOD_GET, "/v1/jobs/{id}/explanation", ACCESS_USER, BODY_NONE, 0, false, NULL, explain_job, NULL,
     "Say why a job waits and when it will start"},
    {METHOD_POST, "/v1/plan", ACCESS_USER, BODY_JSON, LIMIT_SUBMIT_BYTES, false, NULL, explain_plan, NULL,
     "Say when a job would start if it were submitted"},
    {METHOD_GET, "/v1/jobs/{id}/preemption", ACCESS_USER, BODY_NONE, 0, false, NULL, explain_preemption, NULL,
     "Say which jobs would have to go for one that waits"},
    {METHOD_POST, "/v1/jobs/{id}/preemption", ACCESS_USER, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     preempt_job, NULL, "Have a job give back its GPUs and wait again"},
    {METHOD_PATCH, "/v1/jobs/{id}", ACCESS_USER, BODY_JSON, LIMIT_JSON_BYTES, true, NULL, amend_change, NULL,
     "Change a live job"},
    {METHOD_POST, "/v1/jobs/{id}/hold", ACCESS_USER, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     amend_hold, NULL, "Keep a waiting job back"},
    {METHOD_POST, "/v1/jobs/{id}/release", ACCESS_USER, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     amend_release, NULL, "Let a held job wait again"},
    {METHOD_GET, "/v1/jobs/{id}/events", ACCESS_USER, BODY_NONE, 0, false, "after limit", events_show, NULL,
     "Show or follow the history of a job"},
    {METHOD_GET, "/v1/jobs/{id}/attempts", ACCESS_USER, BODY_NONE, 0, false, NULL, attempts_list, NULL,
     "List the attempts of a job"},
    {METHOD_GET, "/v1/jobs/{id}/timing", ACCESS_USER, BODY_NONE, 0, false, NULL, timing_show, NULL,
     "Show where the time of a job's start went"},
    {METHOD_GET, "/v1/jobs/{id}/results", ACCESS_USER, BODY_NONE, 0, false, "attempt after limit bytes",
     results_list, NULL, "List the results of a job"},
    {METHOD_GET, "/v1/jobs/{id}/logs", ACCESS_USER, BODY_NONE, 0, false, "rank stream attempt tail follow",
     logs_show, NULL, "Show or follow the output of a job"},
    {METHOD_GET, "/v1/jobs/{id}/metrics", ACCESS_USER, BODY_NONE, 0, false, "attempt rank name limit cursor",
     metrics_show, NULL, "Show or follow the metrics of a job"},
    {METHOD_GET, "/v1/jobs/{id}/runs", ACCESS_USER, BODY_NONE, 0, false, NULL, mlflow_runs_list, NULL,
     "List the runs that a job tracks with"},
    {METHOD_PUT, "/v1/blobs/{sha256}", ACCESS_USER_OR_NODE, BODY_STREAM, LIMIT_BLOB_BYTES, false, NULL,
     blobs_put, &blobs_sink, "Store bytes under their hash"},
    {METHOD_GET, "/v1/blobs/{sha256}", ACCESS_USER_OR_NODE, BODY_NONE, 0, false, NULL, blobs_get, NULL,
     "Fetch bytes by their hash"},
    {METHOD_GET, "/v1/nodes", ACCESS_USER, BODY_NONE, 0, false, NULL, nodes_list, NULL, "List nodes"},
    {METHOD_GET, "/v1/nodes/{name}", ACCESS_USER, BODY_NONE, 0, false, NULL, nodes_show, NULL,
     "Show one node"},
    {METHOD_DELETE, "/v1/nodes/{name}", ACCESS_ADMIN, BODY_NONE, 0, false, "force", nodes_remove, NULL,
     "Forget a node"},
    {METHOD_POST, "/v1/nodes/{name}/drain", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     nodes_drain, NULL, "Give a node no new work"},
    {METHOD_POST, "/v1/nodes/{name}/resume", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, NULL,
     nodes_resume, NULL, "Give a drained node work again"},
    {METHOD_POST, "/v1/nodes/{name}/fence", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, true, NULL,
     nodes_fence, NULL, "Declare a node dead"},
    {METHOD_GET, "/v1/accounts", ACCESS_USER, BODY_NONE, 0, false, "cursor", accounts_list, NULL,
     "List projects and users"},
    {METHOD_GET, "/v1/accounts/projects/{name}", ACCESS_USER, BODY_NONE, 0, false, NULL,
     accounts_show_project, NULL, "Show one project"},
    {METHOD_PUT, "/v1/accounts/projects/{name}", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, false, NULL,
     accounts_put_project, NULL, "Set the limits of a project"},
    {METHOD_DELETE, "/v1/accounts/projects/{name}", ACCESS_ADMIN, BODY_NONE, 0, false, "force",
     accounts_unset_project, NULL, "Take the limits of a project away"},
    {METHOD_GET, "/v1/accounts/users/{name}", ACCESS_USER, BODY_NONE, 0, false, NULL, accounts_show_user,
     NULL, "Show one user"},
    {METHOD_PUT, "/v1/accounts/users/{name}", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, false, NULL,
     accounts_put_user, NULL, "Set the limits of a user"},
    {METHOD_DELETE, "/v1/accounts/users/{name}", ACCESS_ADMIN, BODY_NONE, 0, false, "force",
     accounts_unset_user, NULL, "Take the limits of a user away"},
    {METHOD_GET, "/v1/pools", ACCESS_USER, BODY_NONE, 0, false, NULL, pools_list, NULL, "List pools"},
    {METHOD_PUT, "/v1/pools/{name}", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, pools_put, NULL,
     "Say whether a reserved pool lends"},
    {METHOD_POST, "/v1/nodes/{name}/expire", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, true, NULL,
     nodes_expire, NULL, "Say when a node goes away"},
    {METHOD_GET, "/v1/windows", ACCESS_USER, BODY_NONE, 0, false, NULL, windows_list, NULL,
     "List maintenance windows"},
    {METHOD_POST, "/v1/windows", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, true, NULL, windows_make, NULL,
     "Make a maintenance window"},
    {METHOD_DELETE, "/v1/windows/{id}", ACCESS_ADMIN, BODY_NONE, 0, false, NULL, windows_remove, NULL,
     "Remove a maintenance window"},
    {METHOD_POST, "/v1/nodes/join-tokens", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, NULL,
     joins_make, NULL, "Make a token that a node joins with"},
    {METHOD_POST, "/v1/agent/join", ACCESS_OPEN, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, joins_join, NULL,
     "Trade a join token for a token of the node's own"},
    {METHOD_GET, "/v1/ca", ACCESS_OPEN, BODY_NONE, 0, false, NULL, joins_authority, NULL,
     "Fetch the certificate of the controller's authority"},
    {METHOD_GET, "/v1/tokens", ACCESS_ADMIN, BODY_NONE, 0, false, NULL, tokens_list, NULL, "List tokens"},
    {METHOD_POST, "/v1/tokens", ACCESS_ADMIN, BODY_JSON, LIMIT_JSON_BYTES, false, NULL, tokens_make, NULL,
     "Make a token"},
    {METHOD_POST, "/v1/tokens/{id}/revoke", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, NULL,
     tokens_revoke, NULL, "Revoke a token"},
    {METHOD_GET, "/v1/backups", ACCESS_ADMIN, BODY_NONE, 0, false, NULL, backups_list, NULL, "List backups"},
    {METHOD_POST, "/v1/backups", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, NULL,
     backups_make, NULL, "Make a backup now"},
    {METHOD_GET, "/v1/lost", ACCESS_ADMIN, BODY_NONE, 0, false, "cursor", lost_list, NULL,
     "List attempts that a restored controller does not know"},
    {METHOD_POST, "/v1/shutdown", ACCESS_ADMIN, BODY_JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, NULL,
     meta_shutdown, NULL, "End the controller"},
    {METHOD_POST, "/api/2.0/mlflow/{+call}", ACCESS_TRACKING, BODY_JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false,
     NULL, mlflow_call, NULL, "Call a method of MLflow's tracking API"},
    {METHOD_GET, "/api/2.0/mlflow/{+call}", ACCESS_TRACKING, BODY_NONE, 0, false, "*", mlflow_call, NULL,
     "Ask a method of MLflow's tracking API"},
    {METHOD_PATCH, "/api/2.0/mlflow/{+call}", ACCESS_TRACKING, BODY_JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false,
     NULL, mlflow_call, NULL, "Change something by a method of MLflow's tracking API"},
    {METHOD_DELETE, "/api/2.0/mlflow/{+call}", ACCESS_TRACKING, BODY_JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false,
     "*", mlflow_call, NULL, "Delete something by a method of MLflow's tracking API"},
    {METHOD_PUT, GATE_FILES "{+path}", ACCESS_TRACKING, BODY_STREAM, LIMIT_BLOB_BYTES, false, "*",
     mlflow_artifacts_put, &mlflow_artifacts_sink, "Store an artifact"},
    {METHOD_GET, GATE_FILES "{+path}", ACCESS_TRACKING, BODY_NONE, 0, false, "*", mlflow_artifacts_get, NULL,
     "Fetch an artifact"},
    {METHOD_DELETE, GATE_FILES "{+path}", ACCESS_TRACKING, BODY_NONE, 0, false, "*", mlflow_artifacts_delete,
     NULL, "Delete an artifact or a folder of them"},
    {METHOD_GET, "/api/2.0/mlflow-artifacts/artifacts", ACCESS_TRACKING, BODY_NONE, 0, false, "*",
     mlflow_artifacts_list, NULL, "List a folder of artifacts"},
    {METHOD_GET, "/api/3.0/mlflow/server-info", ACCESS_OPEN, BODY_NONE, 0, false, "*", mlflow_server_info,
     NULL, "Tell MLflow's client what the server can do"},
    {METHOD_GET, "/health", ACCESS_OPEN, BODY_NONE, 0, false, NULL, mlflow_health, NULL,
     "Say that the server serves, as MLflow's does"},
    {METHOD_GET, "/healthz", ACCESS_OPEN, BODY_NONE, 0, false, NULL, meta_health, NULL,
     "Say that the server serves"},
    {METHOD_GET, "/version", ACCESS_ANY, BODY_NONE, 0, false, NULL, meta_version, NULL, "Show the version"},
    {METHOD_GET, "/v1/openapi.yaml", ACCESS_ANY, BODY_NONE, 0, false, NULL, meta_contract, NULL,
     "Show this contract"},
    {METHOD_GET, "/", ACCESS_OPEN, BODY_NONE, 0, false, "*", web_page, NULL, "Show the web page"},
    {METHOD_GET, "/web/{name}", ACCESS_OPEN, BODY_NONE, 0, false, NULL, web_show, NULL,
     "Fetch a file of the web page"},
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
    if (request->route->sink != NULL && request->route->sink->begin != NULL) {
        request->route->sink->begin(request);
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
    if (!decode(request, &err)) {
        request_fail(request, &err);
        return;
    }
    job_name_task(request);
    request->route->handle(request);
}
