/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the routes of artifacts: files below the state folder, under the paths that MLflow's clients give
 * them. An upload goes to its file while it arrives. The tracking store says whose a path is; then a helper
 * thread brings the upload to its place, lists or deletes. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/artifacts.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/kept_folder.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/mlflow/tracker.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/objects/objects.h"
#include "proto/base/cleanup.h"

/* Work for the disk. */
struct chore {
    struct request_work work; /* first */
    struct tracker tracker;
    enum tracking_right right;
    bool (*allowed)(struct chore *chore, struct err *err); /* goes on once the sender may */
    struct mlflow *mlflow;
    struct objects *objects; /* NULL: there is no object store */
    char *path;
    struct tracking_place place;
    struct kept_folder kept;        /* what path has of kept files */
    struct kept_content content;    /* of GET, if it is one of these */
    struct artifact_upload *upload; /* of PUT */
    struct text out;
    bool ok;
    struct err err;
};

static void chore_free(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    artifact_upload_end(chore->upload);
    cleanup_close(&chore->content.file);
    text_finish(&chore->out);
    tracker_end(&chore->tracker);
    free(chore->path);
    free(chore);
}

/* The path that the request names, without its escapes; the caller frees it. NULL: it is none. */
static char *read_path(const struct request *request, struct err *err)
{
    autofree char *path = xstrdup(route_tail(request));
    gate_unescape(path);
    return artifact_path_check(path, err) ? give(path) : NULL;
}

/* Takes over path. */
static struct chore *chore_begin(struct request *request, char *path)
{
    struct chore *chore = xzalloc(sizeof *chore);
    chore->mlflow = request->server->mlflow;
    chore->objects = request->server->objects;
    chore->path = path;
    chore->content.file = -1;
    request_work_begin(&chore->work, request, chore_free);
    return chore;
}

static void chore_reply(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    if (chore->ok) {
        request_reply_json(work->request, 200, &chore->out);
    } else {
        request_fail(work->request, &chore->err);
    }
}

static bool chore_give(struct chore *chore, void (*work)(struct task *task))
{
    return request_work_give(&chore->work, chore->mlflow->disk, work, chore_reply);
}

/* The same for work that waits for the object store. */
static bool chore_wait(struct chore *chore, void (*work)(struct task *task),
                       void (*reply)(struct request_work *work))
{
    const struct server *server = chore->work.request->server;
    return request_work_give(&chore->work, recalls_worker(server, chore->path), work, reply);
}

/* --- whose it is ---------------------------------------------------------------------------------------- */

/* On the thread of the store. */
static void work_look(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    struct tracking_error error;
    chore->ok = tracking_artifact_allowed(chore->mlflow->tracking, &chore->tracker.rights, chore->right,
                                          chore->path, &chore->place, &error) ||
                err_set(&chore->err, error.code == TRACKING_PERMISSION_DENIED ? ERR_FORBIDDEN : ERR_NOT_FOUND,
                        "%s", error.message);
}

/* What the ranks kept is changed by nobody. */
static bool may_change(const struct chore *chore, struct err *err)
{
    if (chore->right == TRACKING_SEES || chore->kept.inner == NULL) {
        return true;
    }
    err_set(err, ERR_FORBIDDEN, "%s is read-only: it shows what the ranks of job %s kept", KEPT_FOLDER,
            chore->place.job_id);
    return err_hint(err, "use another folder of the run; the files go with their job");
}

static void looked(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    struct request *request = work->request;
    bool ok = chore->ok && kept_folder_find(request->server, &chore->tracker.rights, &chore->place,
                                            chore->path, &chore->kept, &chore->err);
    request->looks_beyond = ok && chore->right == TRACKING_SEES && *chore->tracker.beyond;
    if (!ok || !may_change(chore, &chore->err) || !chore->allowed(chore, &chore->err)) {
        request_fail(request, &chore->err);
    }
}

/* Goes on with allowed, if the sender has the right. Whose it is matters to the audit if it only looks. */
static bool chore_ask(struct chore *chore, enum tracking_right right,
                      bool (*allowed)(struct chore *chore, struct err *err), struct err *err)
{
    struct request *request = chore->work.request;
    if (!tracker_begin(&chore->tracker, request, err)) {
        return false;
    }
    if (tracker_may_all(&chore->tracker) && right != TRACKING_SEES && !kept_folder_is_in(chore->path)) {
        return allowed(chore, err);
    }
    chore->right = right;
    chore->allowed = allowed;
    return request_work_give(&chore->work, chore->mlflow->worker, work_look, looked);
}

/* --- PUT ------------------------------------------------------------------------------------------------ */

static bool store_allows(const struct server *server, int64_t bytes, struct err *err)
{
    return server->objects == NULL || bytes == 0 || objects_allow(server->objects, bytes, err);
}

static bool upload_begin(struct request *request, struct err *err)
{
    struct server *server = request->server;
    int64_t length = request->headers.content_length;
    autofree char *path = read_path(request, err);
    if (path == NULL || !space_allows(server->space, length > 0 ? length : 0, err) ||
        !store_allows(server, length > 0 ? length : 0, err)) {
        return false;
    }
    struct artifact_upload *upload = artifact_upload_begin(server->mlflow->artifacts, path);
    chore_begin(request, give(path))->upload = upload;
    return true;
}

static size_t upload_piece(struct request *request, const char *bytes, size_t length)
{
    const struct chore *chore = request->state;
    const struct server *server = request->server;
    struct err err;
    int64_t fresh = request->headers.content_length < 0 ? (int64_t)length : 0; /* else counted at the begin */
    if (!space_allows(server->space, fresh, &err) || !store_allows(server, fresh, &err) ||
        !artifact_upload_write(chore->upload, bytes, length, &err)) {
        request_fail(request, &err);
    }
    return length;
}

const struct body_sink mlflow_artifacts_sink = {.begin = upload_begin, .piece = upload_piece};

static void work_put(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = artifact_upload_keep(chore->upload, &chore->err);
    text_append(&chore->out, "{}");
}

static bool keep(struct chore *chore, struct err *err)
{
    return chore_give(chore, work_put);
}

bool mlflow_artifacts_put(struct request *request, struct err *err)
{
    return chore_ask(request->state, TRACKING_CHANGES, keep, err);
}

/* --- GET ------------------------------------------------------------------------------------------------ */

static bool send_file(struct chore *chore, struct err *err);

/* On a thread that waits for the object store. */
static void work_recall(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = objects_recall_artifact(chore->objects, chore->path, &chore->err);
}

static void recalled(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    if (!chore->ok || !send_file(chore, &chore->err)) {
        request_fail(work->request, &chore->err);
    }
}

static void work_find(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = kept_folder_open(&chore->kept, &chore->content, &chore->err);
}

static void found(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    if (chore->ok) {
        kept_reply(work->request, &chore->content);
    } else {
        request_fail(work->request, &chore->err);
    }
}

static bool send_file(struct chore *chore, struct err *err)
{
    uint64_t length;
    if (chore->kept.inner != NULL && chore->kept.shown) {
        return request_work_give(&chore->work, kept_folder_worker(&chore->kept), work_find, found);
    }
    if (chore->objects != NULL && artifacts_is_away(chore->mlflow->artifacts, chore->path)) {
        return chore_wait(chore, work_recall, recalled);
    }
    int fd = artifacts_open_file(chore->mlflow->artifacts, chore->path, &length, err);
    if (fd < 0) {
        return false;
    }
    request_reply_file(chore->work.request, 200, "application/octet-stream", fd, 0, length);
    request_header(chore->work.request, "Content-Disposition", "attachment");
    return true;
}

bool mlflow_artifacts_get(struct request *request, struct err *err)
{
    char *path = read_path(request, err);
    return path != NULL && chore_ask(chore_begin(request, path), TRACKING_SEES, send_file, err);
}

static void work_list(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    text_append(&chore->out, "{\"files\":[");
    chore->ok = artifacts_list(chore->mlflow->artifacts, chore->path, "", &chore->out, &chore->err) &&
                kept_folder_list(&chore->kept, "", &chore->out, &chore->err);
    text_append(&chore->out, "]}");
}

static bool list(struct chore *chore, struct err *err)
{
    return request_work_give(&chore->work, kept_folder_worker(&chore->kept), work_list, chore_reply);
}

static bool relative(const char *path, struct err *err)
{
    return *path != '/' ||
           err_field(err, ERR_FIELD, "path", NULL, "the path of a folder of artifacts is relative");
}

bool mlflow_artifacts_list(struct request *request, struct err *err)
{
    const char *given = query_text(request->query, "path");
    autofree char *path = xstrdup(given != NULL ? given : "");
    size_t length = strlen(path);
    if (length > 0 && path[length - 1] == '/') {
        path[length - 1] = '\0';
    }
    bool uppermost = *path == '\0';
    if (!uppermost &&
        (!relative(path, err) || !gate_file_path(path, err) || !artifact_path_check(path, err))) {
        return false;
    }
    return chore_ask(chore_begin(request, give(path)), TRACKING_SEES, list, err);
}

/* --- DELETE --------------------------------------------------------------------------------------------- */

static void work_delete(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = chore->objects != NULL ? objects_remove_artifact(chore->objects, chore->path, &chore->err)
                                       : artifacts_delete(chore->mlflow->artifacts, chore->path, &chore->err);
    text_append(&chore->out, "{}");
}

static bool delete_it(struct chore *chore, struct err *err)
{
    return chore->objects != NULL ? chore_wait(chore, work_delete, chore_reply)
                                  : chore_give(chore, work_delete);
}

bool mlflow_artifacts_delete(struct request *request, struct err *err)
{
    char *path = read_path(request, err);
    request->changes_more = request->ranks_attempt_id == 0;
    return path != NULL && chore_ask(chore_begin(request, path), TRACKING_CHANGES, delete_it, err);
}
