/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the routes of artifacts: files below the state folder, under the paths that MLflow's clients give
 * them. An upload goes to its file while it arrives. A helper thread brings it to its place, lists and
 * deletes. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/artifacts.h"
#include "daemon/blob/worker.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"

/* Work for the disk. */
struct chore {
    struct request_work work; /* first */
    struct artifacts *artifacts;
    char *path;
    struct artifact_upload *upload; /* of PUT */
    struct text out;
    bool ok;
    struct err err;
};

static void chore_free(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    artifact_upload_end(chore->upload);
    text_finish(&chore->out);
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
    chore->artifacts = request->server->mlflow->artifacts;
    chore->path = path;
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
    return request_work_give(&chore->work, chore->work.request->server->mlflow->disk, work, chore_reply);
}

/* --- PUT ------------------------------------------------------------------------------------------------ */

static bool upload_begin(struct request *request, struct err *err)
{
    struct server *server = request->server;
    int64_t length = request->headers.content_length;
    autofree char *path = read_path(request, err);
    if (path == NULL || !space_allows(server->space, length > 0 ? length : 0, err)) {
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
    if (!space_allows(server->space, fresh, &err) ||
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

bool mlflow_artifacts_put(struct request *request, struct err *err)
{
    return chore_give(request->state, work_put);
}

/* --- GET ------------------------------------------------------------------------------------------------ */

bool mlflow_artifacts_get(struct request *request, struct err *err)
{
    uint64_t length;
    autofree char *path = read_path(request, err);
    int fd = path != NULL ? artifacts_open_file(request->server->mlflow->artifacts, path, &length, err) : -1;
    if (fd < 0) {
        return false;
    }
    request_reply_file(request, 200, "application/octet-stream", fd, 0, length);
    request_header(request, "Content-Disposition", "attachment");
    return true;
}

static void work_list(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    text_append(&chore->out, "{\"files\":");
    chore->ok = artifacts_list(chore->artifacts, chore->path, "", &chore->out, &chore->err);
    text_append(&chore->out, "}");
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
    return chore_give(chore_begin(request, give(path)), work_list);
}

/* --- DELETE --------------------------------------------------------------------------------------------- */

static void work_delete(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = artifacts_delete(chore->artifacts, chore->path, &chore->err);
    text_append(&chore->out, "{}");
}

bool mlflow_artifacts_delete(struct request *request, struct err *err)
{
    char *path = read_path(request, err);
    if (path == NULL) {
        return false;
    }
    return chore_give(chore_begin(request, path), work_delete);
}
