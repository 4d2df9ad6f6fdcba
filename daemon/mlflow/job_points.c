/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the listing of what clients have logged into a job's run, metric by metric. It promises each point
 * once, also where the listing goes on from a place, and no metric of the job's own: those were copied. */
#include <math.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/runs.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

/* A listing that is under way. */
struct walk {
    struct tracking *tracking;
    const struct tracking_listing *listing;
    struct tracking_place *place;
    int64_t run;
    char *name; /* owned, of the metric of the place; NULL: before the first */
    int64_t visited;
};

static bool set_metric(struct walk *walk, sqlite3_stmt *row, bool *ret_there, struct tracking_error *error)
{
    if (!database_step(walk->tracking, row, ret_there, error)) {
        return false;
    }
    if (*ret_there) {
        *walk->place = TRACKING_PLACE_FIRST;
        walk->place->metric = sqlite3_column_int64(row, 0);
        free(walk->name);
        walk->name = xstrdup(column_text(row, 1));
    }
    return true;
}

static bool next_metric(struct walk *walk, bool *ret_there, struct tracking_error *error)
{
    const char *wanted = walk->listing->name;
    if (wanted != NULL && walk->name != NULL) {
        *ret_there = false;
        return true;
    }
    const char *from = wanted != NULL ? wanted : walk->name != NULL ? walk->name : "";
    autofree char *copy = xstrdup(from); /* the statement borrows it while the name changes */
    autoquery sqlite3_stmt *row = database_query(
        walk->tracking, wanted != NULL ? QUERY_METRIC_LOGGED : QUERY_METRIC_NEXT, "it", walk->run, copy);
    return set_metric(walk, row, ret_there, error);
}

/* The metric in which the place stands. *ret_there false: the listing begins, or the metric is gone. */
static bool find_metric(struct walk *walk, bool *ret_there, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row =
        database_query(walk->tracking, QUERY_METRIC_NAME, "ii", walk->place->metric, walk->run);
    if (!database_step(walk->tracking, row, ret_there, error)) {
        return false;
    }
    walk->name = *ret_there ? xstrdup(column_text(row, 0)) : NULL;
    return true;
}

static void visit(struct walk *walk, sqlite3_stmt *row)
{
    struct tracking_place *place = walk->place;
    place->value = sqlite3_column_double(row, 0);
    place->is_nan = sqlite3_column_int64(row, 1);
    place->at_ms = sqlite3_column_int64(row, 2);
    place->step = sqlite3_column_int64(row, 3);
    const struct tracking_logged point = {.name = walk->name,
                                          .value = place->is_nan != 0 ? (double)NAN : place->value,
                                          .step = place->step,
                                          .at_ms = place->at_ms};
    walk->listing->visit(&point, walk->listing->closure);
    walk->visited++;
}

/* The points of one metric behind the place. */
static bool visit_points(struct walk *walk, bool *ret_more, struct tracking_error *error)
{
    const struct tracking_place from = *walk->place;
    int64_t room = walk->listing->limit - walk->visited;
    autoquery sqlite3_stmt *row = database_query(walk->tracking, QUERY_POINTS, "iiidii", from.metric,
                                                 from.at_ms, from.step, from.value, from.is_nan, room + 1);
    bool there, ok;
    while ((ok = database_step(walk->tracking, row, &there, error)) && there && room-- > 0) {
        visit(walk, row);
    }
    *ret_more = ok && there;
    return ok;
}

static bool walk_on(struct walk *walk, bool *ret_more, struct tracking_error *error)
{
    bool there;
    *ret_more = false;
    if (!find_metric(walk, &there, error) || (!there && !next_metric(walk, &there, error))) {
        return false;
    }
    while (there && !*ret_more) {
        if (!visit_points(walk, ret_more, error) || (!*ret_more && !next_metric(walk, &there, error))) {
            return false;
        }
    }
    return true;
}

bool work_job_points(struct tracking *tracking, const struct tracking_listing *listing,
                     struct tracking_place *place, bool *ret_more, struct tracking_error *error)
{
    struct run run;
    if (!run_find(tracking, listing->run_id, &run, NULL, error)) {
        return false;
    }
    struct walk walk = {.tracking = tracking, .listing = listing, .place = place, .run = run.key};
    bool ok = walk_on(&walk, ret_more, error);
    free(walk.name);
    return ok;
}
