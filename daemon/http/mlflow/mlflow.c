/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes what serves MLflow's clients: the tracking store, its searches and the artifacts, each
 * with a helper thread, and the runs of jobs. */
#include "daemon/http/mlflow/mlflow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/artifacts.h"
#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

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

/* On the thread of the store. After a sync that failed, the next one may silently leave out the same data. */
static void settle(void *closure)
{
    struct mlflow *mlflow = closure;
    mlflow->unsettled = mlflow->unsettled || !tracking_sync(mlflow->tracking, &mlflow->unsettled_by);
}

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool mlflow_start_worker(struct server *server, struct worker **ret_worker, struct watch *watch,
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
    if (!mlflow_start_worker(server, &mlflow->worker, &mlflow->worker_watch, err)) {
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

static bool recover_job(struct server *server, const char *id, struct err *err)
{
    autorows struct rows rows = reader_job(server->reader, id, err);
    struct job_record job;
    if (rows_job(&rows, &job)) {
        job_runs_touched(server->mlflow->runs, job.birth.key, id);
    }
    return !rows.failed;
}

/* Looks at all jobs whose run goes on, as the store has it: a controller that was killed may not have written
 * the ends of runs, and the last metrics. */
static bool recover(struct server *server, struct err *err)
{
    struct tracking_error error;
    autojson json_t *ids = tracking_jobs_running(server->mlflow->tracking, &error);
    bool ok = ids != NULL || err_set(err, ERR_IO, "%s", error.message);
    for (size_t i = 0; ok && i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        ok = strlen(id) > ID_LENGTH || recover_job(server, id, err);
    }
    return ok;
}

bool mlflow_open(struct server *server, struct err *err)
{
    const char *state = server->config.state_directory;
    struct mlflow *mlflow = xzalloc(sizeof *mlflow);
    autofree char *database = xprintf("%s/mlflow.db", state);
    autofree char *files = xprintf("%s/artifacts", state);
    autofree char *key = xprintf("%s/rank.key", state);
    server->mlflow = mlflow;
    bool open = !was_removed(database, key, err) &&
                (mlflow->tracking = tracking_open(database, err)) != NULL &&
                (mlflow->artifacts = artifacts_open(files, err)) != NULL &&
                rank_key_open(key, server->rank_key, err) &&
                (mlflow->copies = metric_copies_create(server)) != NULL &&
                (mlflow->runs = job_runs_create(server, err)) != NULL && start_store(server, mlflow, err) &&
                mlflow_start_worker(server, &mlflow->disk, &mlflow->disk_watch, err) &&
                recover(server, err) && searches_open(server, &mlflow->searches, database, err);
    server->tracking = (struct retention_tracking){
        .worker = mlflow->worker, .tracking = mlflow->tracking, .artifacts = mlflow->artifacts};
    return open;
}

void mlflow_close(struct server *server)
{
    struct mlflow *mlflow = give(server->mlflow);
    if (mlflow == NULL) {
        return;
    }
    worker_close(mlflow->worker);
    worker_close(mlflow->disk);
    searches_close(&mlflow->searches);
    store_tasks_end(server, &mlflow->tasks);
    metric_copies_destroy(mlflow->copies);
    job_runs_destroy(mlflow->runs);
    tracking_close(mlflow->tracking);
    artifacts_close(mlflow->artifacts);
    free(mlflow);
}
