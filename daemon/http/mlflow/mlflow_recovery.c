/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is made up for when the server opens: the ends of runs, and the metrics before them, that a
 * controller did not come to write before it was killed. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"

struct ids {
    char (*items)[ID_LENGTH + 1];
    size_t count;
};

/* A client may have written anything into the tag. */
static bool keep_id(const char *job_id, void *closure)
{
    struct ids *ids = closure;
    if (strlen(job_id) <= ID_LENGTH) {
        ids->items = xrealloc(ids->items, (ids->count + 1) * sizeof *ids->items);
        strcpy(ids->items[ids->count++], job_id);
    }
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

static bool recover(struct server *server, const struct ids *ids, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < ids->count; i++) {
        ok = recover_job(server, ids->items[i], err);
    }
    return ok;
}

/* The ids are gathered first: from the first errand on, the store is the helper thread's. */
bool mlflow_recover(struct server *server, struct err *err)
{
    struct ids ids = {0};
    struct tracking_error error;
    bool ok = tracking_jobs_running(server->mlflow->tracking, keep_id, &ids, &error)
                  ? recover(server, &ids, err)
                  : err_set(err, ERR_IO, "%s", error.message);
    free(ids.items);
    return ok;
}
