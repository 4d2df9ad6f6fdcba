/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, shows, updates and deletes runs. The status of a run is the one that was set last, and values may be
 * logged in any status, because the first of many ranks to end sets FINISHED for all. */
#include "daemon/mlflow/runs/runs.h"

#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/database/tables.h"
#include "daemon/mlflow/runs/pairs.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

/* --- finding --- */

static struct run read_row(sqlite3_stmt *row)
{
    return (struct run){.key = sqlite3_column_int64(row, 0),
                        .experiment = sqlite3_column_int64(row, 1),
                        .deleted = sqlite3_column_int(row, 2)};
}

struct run run_look_up(struct call *call, const char *run_id)
{
    autoquery sqlite3_stmt *row = database_query(call, QUERY_RUN, "t", run_id);
    return database_next(call, row) ? read_row(row) : (struct run){.key = 0};
}

struct run run_find(struct call *call, enum tracking_right right, const char *run_id)
{
    autoquery sqlite3_stmt *row = database_query(call, QUERY_RUN, "t", run_id);
    struct run run = database_next(call, row) ? read_row(row) : (struct run){.key = 0};
    if (run.key == 0 || sqlite3_column_int(row, 5) == 0) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Run with id=%.300s not found", run_id);
        return (struct run){.key = 0};
    }
    if (right != TRACKING_SEES) {
        rights_need(call, right, (struct holder){column_text(row, 3), column_text(row, 4)}, "run");
    }
    return run;
}

struct run run_find_active(struct call *call)
{
    const char *run_id = field_need_run_id(call);
    struct run run = run_find(call, TRACKING_CHANGES, run_id);
    if (run.deleted != RUN_ACTIVE) {
        call_refuse(call, "The run %.300s must be in the 'active' state. Current state is deleted.", run_id);
    }
    return run;
}

/* --- making --- */

char *run_name(const char *given)
{
    return given[0] != '\0' ? name_cut(given, LIMIT_TRACKING_TAG_VALUE) : name_draw_run();
}

int64_t run_insert(struct call *call, const struct experiment *experiment, const struct new_run *new_run)
{
    experiment_check_active(call, experiment);
    if (call->failed) {
        return 0;
    }
    autofree char *uri = xprintf("%s/%s/artifacts", experiment->artifact_location, new_run->id);
    struct holder holder = experiment_holder_of_new(call, experiment);
    database_run(call, QUERY_RUN_INSERT, "tittittt", new_run->id, experiment->id, new_run->name,
                 new_run->user_id, new_run->start_ms, uri, holder.owner, holder.project);
    int64_t key = sqlite3_last_insert_rowid(call->tracking->db);
    pair_put_text(call, &run_tags, key, TAG_RUN_NAME, new_run->name);
    return key;
}

static const char *find_tag(const json_t *tags, const char *name)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        const char *key = json_string_value(json_object_get(tag, "key"));
        const char *value = json_string_value(json_object_get(tag, "value"));
        if (key != NULL && strcmp(key, name) == 0 && value != NULL) {
            return value;
        }
    }
    return "";
}

/* The name may come as a member, as a tag, or as both with the same text; an empty name counts as none. */
static const char *choose_name(struct call *call, const json_t *tags)
{
    const char *name = field_text(call, call->request.body, "run_name", "");
    const char *tag = find_tag(tags, TAG_RUN_NAME);
    if (name[0] != '\0' && tag[0] != '\0' && strcmp(name, tag) != 0) {
        call_refuse(call, "The parameter 'run_name' ('%.200s') and the tag '%s' ('%.200s') differ.", name,
                    TAG_RUN_NAME, tag);
    }
    return name[0] != '\0' ? name : tag;
}

/* Clients send "unknown" if they have no user name. */
static const char *choose_user(struct call *call)
{
    const char *user = field_text(call, call->request.body, "user_id", "");
    name_check_length(call, "user_id", user, 256);
    return user[0] != '\0' && strcmp(user, "unknown") != 0 ? user : call->request.owner;
}

void work_runs_create(struct call *call)
{
    autoexperiment struct experiment experiment = experiment_of_request(call, TRACKING_ADDS, "0");
    const json_t *tags = field_objects(call, call->request.body, "tags");
    autofree char *name = run_name(choose_name(call, tags));
    char id[TRACKING_RUN_ID_BYTES];
    tracking_draw_run_id(id);
    struct new_run new_run = {.id = id, .name = name, .user_id = choose_user(call)};
    new_run.start_ms = field_int(call, call->request.body, "start_time", call->request.now_ms);
    int64_t key = run_insert(call, &experiment, &new_run);
    pairs_put(call, &run_tags, key, tags);
    pair_put_text(call, &run_tags, key, TAG_RUN_NAME, name);
    database_answer(call, "run", QUERY_RUN_SHOW, key);
}

/* --- showing and updating --- */

void work_runs_get(struct call *call)
{
    database_answer(call, "run", QUERY_RUN_SHOW, run_find(call, TRACKING_SEES, field_need_run_id(call)).key);
}

static void set_end(struct call *call, int64_t key)
{
    static const char *const words[] = {
#define AS_WORD(name) #name,
        TRACKING_STATUSES(AS_WORD)
#undef AS_WORD
    };
    enum { COUNT = sizeof words / sizeof words[0] };
    size_t status = field_word(call, "status", words, COUNT, COUNT);
    int64_t end_ms = field_int(call, call->request.body, "end_time", INT64_MIN);
    if (status < COUNT) {
        database_run(call, QUERY_RUN_STATUS, "it", key, words[status]);
    }
    if (end_ms != INT64_MIN) {
        database_run(call, QUERY_RUN_END, "ii", key, end_ms);
    }
}

/* The client of each rank ends the run when it exits, and the client that watches the run for the other ranks
 * would end with it. So a rank does not end the run of its attempt: the attempt does. */
void work_runs_update(struct call *call)
{
    struct run run = run_find_active(call);
    const char *own = call->request.own_run;
    if (own == NULL || strcmp(own, field_need_run_id(call)) != 0) {
        set_end(call, run.key);
    }
    const char *name = field_text(call, call->request.body, "run_name", "");
    if (name[0] != '\0') {
        pair_put_text(call, &run_tags, run.key, TAG_RUN_NAME, name);
    }
    database_answer(call, "run_info", QUERY_RUN_SHOW_INFO, run.key);
}

void work_runs_set_tag(struct call *call)
{
    struct run run = run_find_active(call);
    pair_put(call, &run_tags, run.key, call->request.body);
}

void work_runs_delete_tag(struct call *call)
{
    struct run run = run_find_active(call);
    const char *key = field_need_text(call, call->request.body, "key");
    if (!pair_delete(call, &run_tags, run.key, key)) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "No tag with name: %.300s in this run", key);
    }
}

void work_runs_log_parameter(struct call *call)
{
    struct run run = run_find_active(call);
    param_put(call, field_need_run_id(call), run.key, call->request.body);
}

/* --- deleting --- */

/* Deleting a deleted run again is no error. A run that was deleted with its experiment is restored with the
 * experiment. */
void work_runs_delete(struct call *call)
{
    struct run run = run_find(call, TRACKING_CHANGES, field_need_run_id(call));
    if (run.deleted == RUN_ACTIVE) {
        database_run(call, QUERY_RUN_DELETE, "ib", run.key, (int)RUN_DELETED);
    }
}

void work_runs_restore(struct call *call)
{
    const char *run_id = field_need_run_id(call);
    struct run run = run_find(call, TRACKING_CHANGES, run_id);
    if (run.deleted == RUN_DELETED_WITH_EXPERIMENT) {
        call_refuse(call, "The run %.300s was deleted with its experiment %lld. Restore the experiment.",
                    run_id, (long long)run.experiment);
    }
    database_run(call, QUERY_RUN_DELETE, "ib", run.key, (int)RUN_ACTIVE);
}
