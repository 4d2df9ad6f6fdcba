/* SPDX-License-Identifier: Apache-2.0 */
/* Who speaks to the tracking store: a person, or the ranks of a job, who may what its owner may as a user. */
#ifndef HTTP_TRACKER_H
#define HTTP_TRACKER_H

#include "daemon/http/auth/principal.h"
#include "daemon/http/auth/projects.h"
#include "daemon/http/request/request.h"
#include "daemon/mlflow/tracking.h"

struct tracker {
    struct tracking_rights rights; /* first; any thread may ask */
    struct principal who;
    struct projects *projects; /* held */
    bool *beyond; /* owned; set when nothing but its role lets the sender see something that it asks for */
};

/* The sender of the request. Ranks begin the run of their attempt by it. false: *err. The caller ends the
 * tracker in any case, on the HTTP thread, and does not move it before. */
bool tracker_begin(struct tracker *tracker, struct request *request, struct err *err);
/* The ranks of a job. */
void tracker_of_job(struct tracker *tracker, struct projects *projects, const char *owner,
                    const char *project);
void tracker_end(struct tracker *tracker);

/* The project of what it makes; NULL: nobody says. */
const char *tracker_project(const struct tracker *tracker);
/* Whether it has every right to everything, so that nobody needs to look. */
bool tracker_may_all(const struct tracker *tracker);

#endif
