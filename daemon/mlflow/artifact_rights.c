/* SPDX-License-Identifier: Apache-2.0 */
/* Says whose artifacts are: a path belongs to the first run or logged model on it, whose folder is
 * .../<id>/artifacts. */
#include <string.h>

#include "daemon/mlflow/call/rights.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"

#define HERE   "mlflow-artifacts:/" /* how the artifacts that are here begin */
#define FOLDER "/artifacts"

bool tracking_artifact_uri(struct tracking *tracking, const struct tracking_rights *rights,
                           const char *run_id, char **ret_uri, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .request = {.rights = rights}, .error = error};
    database_begin(&call, false);
    *ret_uri = database_text(&call, QUERY_RUN_ARTIFACTS, "t", run_id);
    if (*ret_uri == NULL) {
        call_fail(&call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Run with id=%.300s not found", run_id);
    }
    return database_end(&call);
}

static void nothing_there(struct call *call, const char *path)
{
    call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "No artifact '%.300s' belongs to a run that you see",
              path);
}

/* Whether the folder of the row's run or model holds the file. */
static bool holds(sqlite3_stmt *row, const char *uri)
{
    const char *root = column_text(row, 0);
    size_t length = strlen(root);
    return strncmp(root, uri, length) == 0 && (uri[length] == '\0' || uri[length] == '/');
}

/* Where the row is of a run whose tags name an attempt. */
static void read_place(sqlite3_stmt *row, const char *id, struct tracking_place *ret_place)
{
    const char *job = column_text(row, 4), *attempt = column_text(row, 5);
    struct tracking_place place = {.folder = strlen(column_text(row, 0)) - (sizeof HERE - 1)};
    if (text_is_id(job) && strlen(id) < sizeof place.run_id &&
        text_to_int(attempt, 1, INT32_MAX, &place.attempt)) {
        strcpy(place.run_id, id);
        strcpy(place.job_id, job);
        *ret_place = place;
    }
}

/* Decides by the run or the logged model with the id, if it holds the file; false: it is not there, or does
 * not. */
static bool decide(struct call *call, enum query query, const char *id, enum tracking_right right,
                   const char *uri, struct tracking_place *ret_place)
{
    autoquery sqlite3_stmt *row = database_query(call, query, "t", id);
    if (!database_next(call, row) || !holds(row, uri)) {
        return false;
    }
    bool seen = sqlite3_column_int(row, 3) != 0;
    if (!seen && database_int(call, 0, QUERY_ARTIFACT_OF_VERSION, "tt", id, uri) == 0) {
        nothing_there(call, uri + sizeof HERE - 1);
    } else if (right != TRACKING_SEES) {
        rights_need(call, right, (struct holder){column_text(row, 1), column_text(row, 2)}, "artifact");
    }
    if (query == QUERY_ARTIFACT_OF_RUN) {
        read_place(row, id, ret_place);
    }
    return true;
}

bool tracking_artifact_allowed(struct tracking *tracking, const struct tracking_rights *rights,
                               enum tracking_right right, const char *path, struct tracking_place *ret_place,
                               struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .request = {.rights = rights}, .error = error};
    autofree char *uri = xprintf(HERE "%s", path);
    bool decided = false;
    *ret_place = (struct tracking_place){.run_id = ""};
    database_begin(&call, false);
    for (const char *end = strstr(uri + sizeof HERE - 1, FOLDER); end != NULL && !decided;
         end = strstr(end + 1, FOLDER)) {
        const char *start = end;
        while (start[-1] != '/') {
            start--;
        }
        autofree char *id = xstrndup(start, (size_t)(end - start));
        decided = decide(&call, QUERY_ARTIFACT_OF_RUN, id, right, uri, ret_place) ||
                  decide(&call, QUERY_ARTIFACT_OF_MODEL, id, right, uri, ret_place);
    }
    if (!decided && !rights_have(&call, TRACKING_CHANGES, (struct holder){"", ""})) {
        nothing_there(&call, path);
    }
    return database_end(&call);
}
