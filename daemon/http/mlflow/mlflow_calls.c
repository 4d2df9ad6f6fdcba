/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the calls of MLflow's tracking API: from a path to the endpoint of the store, which works on a
 * thread of its own, and back. Calls are worked on in the order in which they came, but for searches, which
 * searches.c has wait and run. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/artifacts.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/mlflow/kept_folder.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/mlflow/tracker.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define RUN_URI "mlflow-artifacts:/" /* how the artifacts of a run that are here begin */

/* A call on its way to the store. */
struct pending_call {
    struct search search; /* first */
    struct mlflow *mlflow;
    struct tracking *tracking;
    const struct tracking_endpoint *endpoint;
    json_t *body;
    struct tracker tracker;
    char own_run[TRACKING_RUN_ID_BYTES]; /* of a rank; "": of others */
    char *path; /* owned: that artifacts/list asks for, with the run's folder; NULL: it is another call */
    struct tracking_place place; /* of path */
    struct kept_folder kept;     /* likewise */
    int64_t wall_ms;
    bool ok;
    struct text out;
    struct tracking_error error;
};

static void pending_free(struct request_work *work)
{
    struct pending_call *pending = (struct pending_call *)work;
    searches_leave(&pending->search);
    json_decref(pending->body);
    free(pending->path);
    tracker_end(&pending->tracker);
    text_finish(&pending->out);
    free(pending);
}

/* --- on the thread of the store, or of searches --------------------------------------------------------- */

/* The paths in the answer begin so; the caller frees it. */
static char *prefix_of(const char *path)
{
    return *path != '\0' ? xprintf("%s/", path) : xstrdup("");
}

/* Leaves the array open, for what the ranks kept. */
static bool list_run(const struct artifacts *artifacts, const char *uri, const char *folder, const char *path,
                     struct text *out, struct tracking_error *error)
{
    struct err err;
    size_t start = out->length;
    autofree char *prefix = prefix_of(path);
    text_append(out, "{\"root_uri\":");
    text_json_string(out, uri, strlen(uri));
    text_append(out, ",\"files\":[");
    if (!artifacts_list(artifacts, folder, prefix, out, &err)) {
        out->length = start;
        return tracking_fail(error, TRACKING_INTERNAL_ERROR, "%s", err.text);
    }
    return true;
}

static const char *text_of(const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));
    return text != NULL ? text : "";
}

/* artifacts/list. */
static bool list_artifacts(struct pending_call *pending)
{
    struct tracking_error *error = &pending->error;
    autofree char *uri = NULL;
    const char *path = text_of(pending->body, "path");
    const char *run = text_of(pending->body, "run_id");
    struct err err;
    if (*path == '/' || !gate_file_path(path, &err)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE, "Invalid path: %s", path);
    }
    if (!tracking_artifact_uri(pending->tracking, &pending->tracker.rights,
                               *run != '\0' ? run : text_of(pending->body, "run_uuid"), &uri, error)) {
        return false;
    }
    if (strncmp(uri, RUN_URI, sizeof RUN_URI - 1) != 0 || !gate_file_path(uri + sizeof RUN_URI - 1, &err)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The artifacts of this run are not on this server but at %s", uri);
    }
    const char *root = uri + sizeof RUN_URI - 1;
    pending->path = *path != '\0' ? xprintf("%s/%s", root, path) : xstrdup(root);
    return tracking_artifact_allowed(pending->tracking, &pending->tracker.rights, TRACKING_SEES,
                                     pending->path, &pending->place, error) &&
           list_run(pending->mlflow->artifacts, uri, pending->path, path, &pending->out, error);
}

static void work(struct task *task)
{
    struct pending_call *pending = (struct pending_call *)task;
    const struct tracking_request request = {.body = pending->body,
                                             .rights = &pending->tracker.rights,
                                             .owner = pending->tracker.who.name,
                                             .project = tracker_project(&pending->tracker),
                                             .own_run = pending->own_run[0] != '\0' ? pending->own_run : NULL,
                                             .now_ms = pending->wall_ms};
    pending->ok = pending->endpoint->work != NULL ? tracking_serve(pending->tracking, pending->endpoint,
                                                                   &request, &pending->out, &pending->error)
                                                  : list_artifacts(pending);
}

/* --- on the HTTP thread --------------------------------------------------------------------------------- */

static bool reply_error(struct request *request, const struct tracking_error *error)
{
    struct text out = {0};
    tracking_error_render(error, &out);
    return request_reply_json(request, (unsigned)tracking_code_http(error->code), &out);
}

static void returned(struct request_work *work)
{
    ((struct pending_call *)work)->mlflow->waiting--;
}

/* For the audit, which says what was asked. */
static void note_look(struct pending_call *pending)
{
    struct request *request = pending->search.work.request;
    if (*pending->tracker.beyond && !pending->endpoint->writes) {
        request->json = give(pending->body);
        request_shows_others(request, OTHERS_SOME);
    }
}

static void answer(struct pending_call *pending)
{
    struct request *request = pending->search.work.request;
    if (pending->ok) {
        note_look(pending);
        request_reply_json(request, 200, &pending->out);
    } else {
        reply_error(request, &pending->error);
    }
}

/* On the thread of artifacts, or on one that waits for the object store. */
static void work_kept(struct task *task)
{
    struct pending_call *pending = (struct pending_call *)task;
    struct err err = {.code = ERR_NONE};
    autofree char *prefix = prefix_of(text_of(pending->body, "path"));
    pending->ok = kept_folder_list(&pending->kept, prefix, &pending->out, &err) ||
                  tracking_fail(&pending->error, TRACKING_TEMPORARILY_UNAVAILABLE, "%s", err.text);
    text_append(&pending->out, "]}");
}

static void reply_kept(struct request_work *work)
{
    answer((struct pending_call *)work);
}

/* The second part of artifacts/list: what the ranks kept. */
static void add_kept(struct pending_call *pending)
{
    struct server *server = pending->search.work.request->server;
    struct err err;
    if (kept_folder_find(server, &pending->tracker.rights, &pending->place, pending->path, &pending->kept,
                         &err)) {
        request_work_give(&pending->search.work, kept_folder_worker(&pending->kept), work_kept, reply_kept);
    } else {
        pending->ok = tracking_fail(&pending->error, TRACKING_INTERNAL_ERROR, "%s", err.text);
        answer(pending);
    }
}

static void reply(struct request_work *work)
{
    struct pending_call *pending = (struct pending_call *)work;
    const struct mlflow *mlflow = pending->mlflow;
    if (mlflow->unsettled) {
        server_fail(work->request->server, &mlflow->unsettled_by);
        pending->ok = tracking_fail(&pending->error, TRACKING_TEMPORARILY_UNAVAILABLE,
                                    "The change may or may not be stored: %s", mlflow->unsettled_by.text);
    }
    if (pending->ok && pending->path != NULL) {
        add_kept(pending);
    } else {
        answer(pending);
    }
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

/* Takes the body of the request, or its query. NULL: *err. */
static struct pending_call *begin(struct request *request, const struct tracking_endpoint *endpoint,
                                  struct err *err)
{
    struct mlflow *mlflow = request->server->mlflow;
    struct pending_call *pending = xzalloc(sizeof *pending);
    request_work_begin(&pending->search.work, request, pending_free);
    if (!tracker_begin(&pending->tracker, request, err)) {
        return NULL; /* the end of the request frees it */
    }
    pending->mlflow = mlflow;
    pending->tracking = mlflow->tracking;
    pending->endpoint = endpoint;
    pending->body = request->json != NULL ? give(request->json) : body_of_query(request->query);
    tracking_endpoint_arguments(endpoint, route_tail(request), pending->body);
    if (request->ranks_attempt_id != 0) {
        rank_run_id(request->server->rank_key, request->ranks_attempt_id, pending->own_run);
    }
    pending->wall_ms = request->server->wall_ms;
    request_drop_body(request);
    return pending;
}

static bool ask_store(struct request *request, const struct tracking_endpoint *endpoint, struct err *err)
{
    struct mlflow *mlflow = request->server->mlflow;
    if (mlflow->waiting >= LIMIT_MLFLOW_WAITING) {
        return err_set(err, ERR_TOO_MANY, "too many calls wait for the tracking store");
    }
    struct pending_call *pending = begin(request, endpoint, err);
    if (pending == NULL) {
        return false;
    }
    pending->search.work.returned = returned;
    mlflow->waiting++;
    return request_work_give(&pending->search.work, mlflow->worker, work, reply);
}

static bool ask_search(struct request *request, const struct tracking_endpoint *endpoint, struct err *err)
{
    struct mlflow *mlflow = request->server->mlflow;
    struct pending_call *pending = begin(request, endpoint, err);
    if (pending == NULL) {
        return false;
    }
    pending->tracking = mlflow->searches.tracking;
    return searches_give(&mlflow->searches, &pending->search, pending->tracker.who.name, work, reply, err);
}

bool mlflow_call(struct request *request, struct err *err)
{
    struct tracking_error error;
    const struct tracking_endpoint *endpoint =
        tracking_endpoint_find(route_method(request), route_tail(request));
    if (endpoint == NULL) {
        tracking_fail(&error, TRACKING_ENDPOINT_NOT_FOUND, MLFLOW_UNSERVED, route_method(request),
                      request->path);
        return reply_error(request, &error);
    }
    enum access access =
        endpoint->writes && strcmp(endpoint->method, "GET") != 0 ? ACCESS_TRACKING_CHANGE : ACCESS_TRACKING;
    if (request->ranks_attempt_id == 0 && !authorize_route(access, identity_role(request->who), err)) {
        return false;
    }
    if (endpoint->adds &&
        !space_allows_tracking(request->server->space, (int64_t)request->body_length, err)) {
        tracking_fail(&error, TRACKING_TEMPORARILY_UNAVAILABLE, "%s", err->text);
        return reply_error(request, &error); /* the client tries again */
    }
    request->changes_more = request->ranks_attempt_id == 0 && strstr(request->path, "/delete") != NULL;
    return endpoint->searches ? ask_search(request, endpoint, err) : ask_store(request, endpoint, err);
}
