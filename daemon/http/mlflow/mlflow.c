/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the calls of MLflow's tracking API: from a path to the endpoint of the store, which works on a thread
 * of its own, and back. It promises that calls are worked on in the order in which they came, and that no
 * call outlives its request's needs nor touches a request that has ended. What an endpoint does is the
 * store's part. */
#include "daemon/http/mlflow/mlflow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/artifacts.h"
#include "daemon/blob/worker.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

#define RUN_URI "mlflow-artifacts:/" /* how the artifacts of a run that are here begin */

/* --- artifacts/list ------------------------------------------------------------------------------------- */

static bool list_run(const struct artifacts *artifacts, const char *uri, const char *path, struct text *out,
                     struct tracking_error *error)
{
    struct err err;
    size_t start = out->length;
    const char *root = uri + sizeof RUN_URI - 1;
    autofree char *folder = *path != '\0' ? xprintf("%s/%s", root, path) : xstrdup(root);
    autofree char *prefix = *path != '\0' ? xprintf("%s/", path) : xstrdup("");
    text_append(out, "{\"root_uri\":");
    text_json_string(out, uri, strlen(uri));
    text_append(out, ",\"files\":");
    if (!artifacts_list(artifacts, folder, prefix, out, &err)) {
        out->length = start;
        return tracking_fail(error, TRACKING_INTERNAL_ERROR, "%s", err.text);
    }
    text_append(out, "}");
    return true;
}

static const char *text_of(const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));
    return text != NULL ? text : "";
}

static bool artifacts_of_run(struct tracking *tracking, const struct artifacts *artifacts, const json_t *body,
                             struct text *out, struct tracking_error *error)
{
    autofree char *uri = NULL;
    const char *path = text_of(body, "path");
    const char *run = text_of(body, "run_id");
    struct err err;
    if (*path == '/' || !gate_file_path(path, &err)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE, "Invalid path: %s", path);
    }
    if (!tracking_artifact_uri(tracking, *run != '\0' ? run : text_of(body, "run_uuid"), &uri, error)) {
        return false;
    }
    if (strncmp(uri, RUN_URI, sizeof RUN_URI - 1) != 0 || !gate_file_path(uri + sizeof RUN_URI - 1, &err)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The artifacts of this run are not on this server but at %s", uri);
    }
    return list_run(artifacts, uri, path, out, error);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

/* A call on its way to the store. It outlives its request when that goes away. */
struct call {
    struct task task;        /* first: a task is its call */
    struct request *request; /* NULL: gone */
    struct mlflow *mlflow;
    const struct mlflow_method *method;
    json_t *body;
    char *owner;
    char own_run[TRACKING_RUN_ID_BYTES]; /* of a rank; "": of others */
    int64_t wall_ms;
    bool working; /* on the worker's thread */
    bool ok;
    struct text out;
    struct tracking_error error;
};

static void call_free(struct call *call)
{
    json_decref(call->body);
    free(call->owner);
    text_finish(&call->out);
    free(call);
}

static void request_gone(void *state)
{
    struct call *call = state;
    call->request = NULL;
    if (!call->working) {
        call_free(call);
    }
}

static void call_work(struct task *task)
{
    struct call *call = (struct call *)task;
    struct mlflow *mlflow = call->mlflow;
    const struct tracking_request asked = {.body = call->body,
                                           .owner = call->owner,
                                           .own_run = call->own_run[0] != '\0' ? call->own_run : NULL,
                                           .now_ms = call->wall_ms};
    call->ok =
        call->method->work != NULL
            ? call->method->work(mlflow->tracking, &asked, &call->out, &call->error)
            : artifacts_of_run(mlflow->tracking, mlflow->artifacts, call->body, &call->out, &call->error);
}

/* On the worker's thread. What a sync that failed has left out the next one may leave out in silence. */
static void settle(void *closure)
{
    struct mlflow *mlflow = closure;
    mlflow->unsettled = mlflow->unsettled || !tracking_sync(mlflow->tracking, &mlflow->unsettled_by);
}

static void call_done(struct task *task)
{
    struct call *call = (struct call *)task;
    const struct mlflow *mlflow = call->mlflow;
    call->working = false;
    call->mlflow->waiting--;
    if (call->request == NULL) {
        call_free(call);
        return;
    }
    unsigned status = 200;
    if (mlflow->unsettled) {
        server_fail(call->request->server, &mlflow->unsettled_by);
        text_clear(&call->out);
        call->ok = tracking_fail(&call->error, TRACKING_TEMPORARILY_UNAVAILABLE,
                                 "The change may or may not be stored: %s", mlflow->unsettled_by.text);
    }
    if (!call->ok) {
        tracking_error_render(&call->error, &call->out);
        status = (unsigned)tracking_code_http(call->error.code);
    }
    request_reply_json(call->request, status, &call->out);
}

/* Parameters as an object of texts; one that comes again becomes an array. */
static json_t *body_of_query(const struct query *query)
{
    json_t *body = json_object();
    for (size_t i = 0; query != NULL && i < query->count; i++) {
        const char *name = query->items[i].name;
        json_t *value = json_string(query->items[i].value), *earlier = json_object_get(body, name);
        if (json_is_array(earlier)) {
            json_array_append_new(earlier, value);
        } else if (earlier != NULL) {
            json_object_set_new(body, name, json_pack("[Oo]", earlier, value));
        } else {
            json_object_set_new(body, name, value);
        }
    }
    return body;
}

static bool reply_error(struct request *request, enum tracking_code code, const char *message)
{
    struct tracking_error error;
    struct text out = {0};
    tracking_fail(&error, code, "%s", message);
    tracking_error_render(&error, &out);
    return request_reply_json(request, (unsigned)tracking_code_http(code), &out);
}

/* Each rank's client ends the run when it exits, and what watches the run for the other ranks would end with
 * it. So a rank does not end the run of its attempt: the attempt does. */
static void keep_running(const char *own, json_t *body)
{
    const char *named = text_of(body, "run_id");
    if (strcmp(*named != '\0' ? named : text_of(body, "run_uuid"), own) == 0) {
        json_object_del(body, "status");
        json_object_del(body, "end_time");
    }
}

bool mlflow_call(struct request *request, struct err *err)
{
    struct mlflow *mlflow = request->server->mlflow;
    const struct mlflow_method *method = mlflow_method_find(request->route->method, route_tail(request));
    if (method == NULL) {
        autofree char *unserved = xprintf(MLFLOW_UNSERVED, route_method(request), request->path);
        return reply_error(request, TRACKING_ENDPOINT_NOT_FOUND, unserved);
    }
    if (mlflow->waiting >= LIMIT_MLFLOW_WAITING) {
        return err_set(err, ERR_TOO_MANY, "too many calls wait for the tracking store");
    }
    if (method->adds && !space_allows_tracking(request->server->space, (int64_t)request->body_length, err)) {
        return reply_error(request, TRACKING_TEMPORARILY_UNAVAILABLE, err->text); /* the client tries again */
    }
    if (request->ranks_attempt_id != 0 && !job_runs_begin(mlflow->runs, request->ranks_attempt_id, err)) {
        return false;
    }
    struct call *call = xzalloc(sizeof *call);
    call->task = (struct task){.work = call_work, .done = call_done};
    call->request = request;
    call->mlflow = mlflow;
    call->method = method;
    call->body = request->json != NULL ? give(request->json) : body_of_query(request->query);
    mlflow_method_arguments(method, route_tail(request), call->body);
    if (request->ranks_attempt_id != 0) {
        rank_run_id(request->server->rank_key, request->ranks_attempt_id, call->own_run);
    }
    if (request->ranks_attempt_id != 0 && method->work == tracking_runs_update) {
        keep_running(call->own_run, call->body);
    }
    call->owner = xstrdup(identity_owner(request->who));
    call->wall_ms = request->server->wall_ms;
    call->working = true;
    request->state = call;
    request->state_finish = request_gone;
    request_drop_body(request);
    mlflow->waiting++;
    worker_give(mlflow->worker, &call->task);
    return request_wait(request);
}

/* --- what the server is --------------------------------------------------------------------------------- */

bool mlflow_server_info(struct request *request, struct err *err)
{
    return request_reply_literal(request, 200,
                                 "{\"store_type\":\"gpuctl\",\"workspaces_enabled\":false,"
                                 "\"trace_archival_enabled\":false,\"multipart_uploads_enabled\":false,"
                                 "\"multipart_downloads_enabled\":false}");
}

bool mlflow_health(struct request *request, struct err *err)
{
    return request_reply(request, 200, "text/plain", xstrdup("OK"), 2);
}

bool mlflow_asks(const struct request *request)
{
    const char *agent = request->headers.user_agent;
    return agent != NULL && strncmp(agent, "mlflow-", 7) == 0;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

static bool start_worker(struct server *server, struct worker **ret_worker, struct watch *watch,
                         struct err *err)
{
    *ret_worker = worker_open(err);
    if (*ret_worker == NULL) {
        return false;
    }
    *watch = (struct watch){.fd = worker_fd(*ret_worker), .ready = worker_ready, .closure = *ret_worker};
    return server_watch(server, watch, err);
}

static bool start_store(struct server *server, struct mlflow *mlflow, struct err *err)
{
    if (!start_worker(server, &mlflow->worker, &mlflow->worker_watch, err)) {
        return false;
    }
    worker_settle_by(mlflow->worker, settle, mlflow);
    return true;
}

/* Runs that are gone would be missed by nobody here. The key is made once, right after the database. */
static bool was_removed(const char *database, const char *key, struct err *err)
{
    struct stat status;
    autofree char *log = xprintf("%s-wal", database);
    bool there = stat(database, &status) == 0;
    if ((there && status.st_size > 0) || (access(key, F_OK) != 0 && access(log, F_OK) != 0)) {
        return false;
    }
    err_set(err, ERR_DAMAGED, "the tracking database %s is %s, and what is beside it says that there was one",
            database, there ? "empty" : "gone");
    err_hint(err, "put the newest backup back: gpuctl admin restore; or, to begin without its runs, move it, "
                  "mlflow.db-wal and rank.key away");
    return true;
}

bool mlflow_open(struct server *server, struct err *err)
{
    const char *state = server->config.state_directory;
    struct mlflow *mlflow = xzalloc(sizeof *mlflow);
    autofree char *database = xprintf("%s/mlflow.db", state);
    autofree char *files = xprintf("%s/artifacts", state);
    autofree char *key = xprintf("%s/rank.key", state);
    server->mlflow = mlflow;
    return !was_removed(database, key, err) && (mlflow->tracking = tracking_open(database, err)) != NULL &&
           (mlflow->artifacts = artifacts_open(files, err)) != NULL &&
           rank_key_open(key, server->rank_key, err) &&
           (mlflow->copies = metric_copies_create(server)) != NULL &&
           (mlflow->runs = job_runs_create(server, err)) != NULL && start_store(server, mlflow, err) &&
           start_worker(server, &mlflow->disk, &mlflow->disk_watch, err) && mlflow_recover(server, err);
}

void mlflow_close(struct server *server)
{
    struct mlflow *mlflow = give(server->mlflow);
    if (mlflow == NULL) {
        return;
    }
    worker_close(mlflow->worker);
    worker_close(mlflow->disk);
    metric_copies_destroy(mlflow->copies);
    job_runs_destroy(mlflow->runs);
    tracking_close(mlflow->tracking);
    artifacts_close(mlflow->artifacts);
    free(mlflow);
}
