/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps experiments and their tags. The name of a deleted experiment stays taken, so that restoring never
 * fails. Deleting and restoring an experiment includes its runs, except those that were deleted
 * individually. */
#include "daemon/mlflow/runs/experiments.h"

#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/database/tables.h"
#include "daemon/mlflow/runs/pairs.h"
#include "proto/base/cleanup.h"
#include "proto/spec/jobspec.h"

/* --- finding --- */

static struct experiment none(void)
{
    return (struct experiment){.id = -1, .owner = xstrdup(""), .project = xstrdup("")};
}

static struct experiment first_row(struct call *call, sqlite3_stmt *row)
{
    if (!database_next(call, row)) {
        return none();
    }
    return (struct experiment){.id = sqlite3_column_int64(row, 0),
                               .deleted = sqlite3_column_int(row, 1) != 0,
                               .artifact_location = xstrdup(column_text(row, 2)),
                               .owner = xstrdup(column_text(row, 3)),
                               .project = xstrdup(column_text(row, 4))};
}

struct experiment experiment_by_id(struct call *call, const char *id)
{
    int64_t number;
    if (!text_to_int(id, 0, INT64_MAX, &number)) {
        return none();
    }
    autoquery sqlite3_stmt *row = database_query(call, QUERY_EXPERIMENT, "i", number);
    return first_row(call, row);
}

/* here: in the project, of the sender's own or everybody's. */
static struct experiment by_name(struct call *call, const char *name, const char *project, bool here)
{
    autoquery sqlite3_stmt *row = database_query(call, QUERY_EXPERIMENT_BY_NAME, "tttb", name,
                                                 rights_sender(call).owner, project, (int)here);
    return first_row(call, row);
}

struct experiment experiment_by_name(struct call *call, const char *name)
{
    return by_name(call, name, rights_sender(call).project, call->request.own_run != NULL);
}

struct experiment experiment_of_request(struct call *call, enum tracking_right right, const char *standard)
{
    const json_t *member = json_object_get(call->request.body, "experiment_id");
    autofree char *digits =
        json_is_integer(member) ? xprintf("%lld", (long long)json_integer_value(member)) : NULL;
    const char *id = digits;
    if (id == NULL) {
        id = field_text(call, call->request.body, "experiment_id", standard);
    }
    if (id == NULL) {
        id = field_need_text(call, call->request.body, "experiment_id");
    }
    struct experiment experiment = experiment_by_id(call, id);
    if (experiment.id < 0 || !rights_have(call, TRACKING_SEES, experiment_holder(&experiment))) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "No Experiment with id=%.100s exists", id);
    } else {
        rights_need(call, right, experiment_holder(&experiment), "experiment");
    }
    return experiment;
}

void experiment_check_active(struct call *call, const struct experiment *experiment)
{
    if (experiment->deleted) {
        call_refuse(call, "The experiment %lld must be in the 'active' state. Current state is deleted.",
                    (long long)experiment->id);
    }
}

struct holder experiment_holder_of_new(struct call *call, const struct experiment *experiment)
{
    struct holder holder = rights_sender(call);
    if (call->request.project == NULL && !experiment_is_open(experiment)) {
        holder.project = experiment->project;
    }
    return holder;
}

static struct experiment find_to_change(struct call *call)
{
    struct experiment experiment = experiment_of_request(call, TRACKING_CHANGES, NULL);
    experiment_check_active(call, &experiment);
    return experiment;
}

/* --- making --- */

static void check_free(struct call *call, const char *name, const char *project)
{
    autoexperiment struct experiment experiment = by_name(call, name, project, true);
    if (experiment.id >= 0) {
        call_fail(call, TRACKING_RESOURCE_ALREADY_EXISTS, "Experiment '%.300s' already exists%s.", name,
                  experiment.deleted ? " in deleted state. Restore it or choose another name" : "");
    }
}

int64_t experiment_insert(struct call *call, const char *name, const char *location, const char *project)
{
    name_check_experiment(call, name);
    int64_t id = database_int(call, 0, QUERY_EXPERIMENT_NEXT, "");
    autofree char *here = xprintf("mlflow-artifacts:/%lld", (long long)id);
    database_run(call, QUERY_EXPERIMENT_INSERT, "ittitt", id, name, location[0] != '\0' ? location : here,
                 call->request.now_ms, rights_sender(call).owner, project);
    return id;
}

/* A rank whose code calls set_experiment looks up or makes the experiment by its name. It then continues the
 * run of its attempt, which MLflow's client refuses if the run is in another experiment. So the run moves to
 * that experiment, as long as nothing was logged into it. */
static void move_own_run(struct call *call, int64_t experiment, struct holder holder)
{
    if (call->request.own_run != NULL && !call->failed && rights_have(call, TRACKING_ADDS, holder)) {
        database_run(call, QUERY_RUN_MOVE, "ti", call->request.own_run, experiment);
    }
}

void work_experiments_create(struct call *call)
{
    const json_t *body = call->request.body;
    const char *name = field_need_text(call, body, "name");
    const char *location = field_text(call, body, "artifact_location", "");
    const json_t *tags = field_objects(call, body, "tags");
    if (location[0] != '\0') {
        name_check_location(call, location);
    }
    const char *project = rights_project(call, tags);
    check_free(call, name, project);
    int64_t id = experiment_insert(call, name, location, project);
    pairs_put(call, &experiment_tags, id, tags);
    move_own_run(call, id, (struct holder){rights_sender(call).owner, project});
    text_printf(call->out, "{\"experiment_id\": \"%lld\"}", (long long)id);
}

/* --- showing --- */

void work_experiments_get(struct call *call)
{
    autoexperiment struct experiment experiment = experiment_of_request(call, TRACKING_SEES, NULL);
    database_answer(call, "experiment", QUERY_EXPERIMENT_SHOW, experiment.id);
}

void work_experiments_get_by_name(struct call *call)
{
    const char *name = field_need_text(call, call->request.body, "experiment_name");
    autoexperiment struct experiment experiment = experiment_by_name(call, name);
    if (experiment.id < 0) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Could not find experiment with name '%.300s'",
                  name);
    }
    database_answer(call, "experiment", QUERY_EXPERIMENT_SHOW, experiment.id);
    move_own_run(call, experiment.id, experiment_holder(&experiment));
}

/* --- changing --- */

void work_experiments_update(struct call *call)
{
    autoexperiment struct experiment experiment = find_to_change(call);
    const char *name = field_text(call, call->request.body, "new_name", NULL);
    if (name != NULL) {
        name_check_experiment(call, name);
        check_free(call, name, experiment.project);
        database_run(call, QUERY_EXPERIMENT_RENAME, "iti", experiment.id, name, call->request.now_ms);
    }
}

/* Deletes or restores the experiment and its runs, which go from one value of enum run_deleted to another. */
static void set_deleted(struct call *call, int64_t id, bool deleted, int from, int to)
{
    database_run(call, QUERY_EXPERIMENT_DELETE, "ibi", id, (int)deleted, call->request.now_ms);
    database_run(call, QUERY_EXPERIMENT_RUNS_DELETE, "ibb", id, from, to);
}

void work_experiments_delete(struct call *call)
{
    autoexperiment struct experiment experiment = experiment_of_request(call, TRACKING_CHANGES, NULL);
    if (experiment.deleted) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "The experiment %lld is deleted already.",
                  (long long)experiment.id);
    }
    if (experiment.id == 0) {
        call_refuse(call, "The experiment 0 cannot be deleted: runs without an experiment belong to it.");
    }
    set_deleted(call, experiment.id, true, RUN_ACTIVE, RUN_DELETED_WITH_EXPERIMENT);
}

void experiment_restore(struct call *call, int64_t id)
{
    set_deleted(call, id, false, RUN_DELETED_WITH_EXPERIMENT, RUN_ACTIVE);
}

void work_experiments_restore(struct call *call)
{
    autoexperiment struct experiment experiment = experiment_of_request(call, TRACKING_CHANGES, NULL);
    if (!experiment.deleted) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "No experiment with id=%lld is deleted, which could be restored.",
                  (long long)experiment.id);
    }
    experiment_restore(call, experiment.id);
}

/* Moves the experiment into another project, whose people then see it with its runs. */
static void set_project(struct call *call, const struct experiment *experiment, const char *project)
{
    if (experiment_is_open(experiment)) {
        call_refuse(call, "The experiment %lld is everybody's, and in no project.",
                    (long long)experiment->id);
    }
    rights_need_project(call, project);
    database_run(call, QUERY_EXPERIMENT_MOVE, "iti", experiment->id, project, call->request.now_ms);
}

void work_experiments_set_tag(struct call *call)
{
    autoexperiment struct experiment experiment = find_to_change(call);
    if (strcmp(field_text(call, call->request.body, "key", ""), TAG_PROJECT) == 0) {
        set_project(call, &experiment, field_text(call, call->request.body, "value", ""));
    }
    pair_put(call, &experiment_tags, experiment.id, call->request.body);
}

void work_experiments_delete_tag(struct call *call)
{
    autoexperiment struct experiment experiment = find_to_change(call);
    const char *key = field_need_text(call, call->request.body, "key");
    if (strcmp(key, TAG_PROJECT) == 0) {
        set_project(call, &experiment, DEFAULT_PROJECT);
    }
    if (!pair_delete(call, &experiment_tags, experiment.id, key)) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "No tag with name: %.300s in experiment with id %lld", key, (long long)experiment.id);
    }
}
