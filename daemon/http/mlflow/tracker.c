/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the tracking store what the sender of a call may, by what authorize.h says. */
#include "daemon/http/mlflow/tracker.h"

#include <stdlib.h>

#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "proto/base/text/text.h"

static bool have(const struct tracking_rights *rights, enum tracking_right right, const char *owner,
                 const char *project)
{
    const struct tracker *tracker = (const struct tracker *)rights;
    bool has = authorize_tracking(tracker->projects, &tracker->who, right, owner, project);
    if (right == TRACKING_SEES && has && tracker_may_all(tracker) && !*tracker->beyond) {
        *tracker->beyond =
            !authorize_tracking(tracker->projects, &tracker->who, TRACKING_FINDS, owner, project);
    }
    return has;
}

void tracker_of_job(struct tracker *tracker, struct projects *projects, const char *owner,
                    const char *project)
{
    *tracker = (struct tracker){
        .rights = {.have = have}, .projects = projects_hold(projects), .beyond = xzalloc(sizeof(bool))};
    principal_of_job(&tracker->who, owner, project);
}

bool tracker_begin(struct tracker *tracker, struct request *request, struct err *err)
{
    struct server *server = request->server;
    const char *owner, *project;
    *tracker = (struct tracker){.projects = NULL};
    if (request->ranks_attempt_id != 0) {
        if (!job_runs_begin(server->mlflow->runs, request->ranks_attempt_id, &owner, &project, err)) {
            return false;
        }
        tracker_of_job(tracker, server->projects, owner, project);
        return true;
    }
    *tracker = (struct tracker){.rights = {.have = have},
                                .projects = projects_hold(server->projects),
                                .beyond = xzalloc(sizeof(bool))};
    principal_copy(identity_principal(request->who), &tracker->who);
    return true;
}

void tracker_end(struct tracker *tracker)
{
    projects_release(tracker->projects);
    principal_finish(&tracker->who);
    free(tracker->beyond);
}

const char *tracker_project(const struct tracker *tracker)
{
    return tracker->who.job != NULL ? tracker->who.job : tracker->who.project;
}

bool tracker_may_all(const struct tracker *tracker)
{
    return tracker->who.role >= ROLE_OPERATOR;
}
