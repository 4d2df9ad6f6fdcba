/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the job that a path names, and shows one job. A job of somebody else looks like one that does not
 * exist. */
#include "daemon/http/api/job_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/dependencies.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/orders/staging_board.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/writer/spec_environment.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/members.h"
#include "proto/spec/node_label.h"
#include "proto/spec/tasks.h"

/* --- finding -------------------------------------------------------------------------------------------- */

/* What the sender is to be allowed: to look, or also to change, or to run something in it. */
enum purpose { LOOK, CHANGE, ENTER };

/* *ret_found: there is such a job, and the sender may see it. ERR_FORBIDDEN: it may not be changed. */
static bool read_job(const struct request *request, const char *id, enum purpose purpose, bool *ret_found,
                     struct job_facts *ret_facts, struct err *err)
{
    autorows struct rows rows = reader_job(request->server->reader, id, err);
    struct job_record job;
    *ret_found = rows_job(&rows, &job) && request_may_see(request, job.birth.owner, job.birth.project);
    if (*ret_found && purpose == CHANGE &&
        !request_may_change(request, job.birth.owner, job.birth.project, err)) {
        return false;
    }
    if (*ret_found && purpose == ENTER &&
        !authorize_enter(request->who, job.birth.owner, job.birth.project, err)) {
        return false;
    }
    if (*ret_found) {
        *ret_facts =
            (struct job_facts){.key = job.birth.key,
                               .state = job.life.state,
                               .seq = job.life.seq,
                               .attempt = job.life.attempt,
                               .exit_code = job.life.exit_code,
                               .gpus = job.birth.gpus,
                               .created_ms = job.birth.created_ms,
                               .ended_ms = job.life.ended_ms,
                               .tasks = job.array.tasks,
                               .placed = job.array.placed,
                               .task = job.birth.task,
                               .by_role = request_sees_by_role(request, job.birth.owner, job.birth.project)};
        memcpy(ret_facts->id, job.birth.id, ID_LENGTH + 1);
    }
    return !rows.failed;
}

static bool missing(const char *id, struct err *err)
{
    return err_field(err, ERR_NOT_FOUND, "id", "`gpuctl ps --all` shows the jobs that there are",
                     "there is no job %s", id);
}

/* Does its spec name the tasks that it has? */
static bool has_only(const struct request *request, const struct job_facts *array)
{
    struct err ignored;
    autojson json_t *spec = specs_get(request->server->specs, array->key, &ignored);
    return json_object_get(json_object_get(spec, "array"), "only") != NULL;
}

/* Why an array has no such task. */
static bool task_missing(const struct request *request, const struct job_facts *array, int64_t task,
                         struct err *err)
{
    if (array->tasks == 0) {
        return err_field(err, ERR_NOT_FOUND, "id", "leave out what is behind the dot",
                         "job %s is no array: it has no task %lld", array->id, (long long)task);
    }
    if (has_only(request, array)) {
        return err_field(err, ERR_NOT_FOUND, "id", "`gpuctl ps --all --array` shows those that there are",
                         "array %s has only some tasks, and %lld is none of those that were placed",
                         array->id, (long long)task);
    }
    if (task >= array->tasks) {
        return err_field(err, ERR_NOT_FOUND, "id", NULL, "the last task of %s is %lld, there is no %lld",
                         array->id, (long long)array->tasks - 1, (long long)task);
    }
    if (job_state_terminal(array->state)) {
        return err_field(err, ERR_NOT_FOUND, "id", NULL,
                         "task %lld of %s was never placed: the array ended before", (long long)task,
                         array->id);
    }
    return err_field(err, ERR_NOT_FOUND, "id", "`gpuctl get` of the array shows how far it is",
                     "task %lld of %s has not been placed yet: %lld of %lld have", (long long)task, array->id,
                     (long long)array->placed, (long long)array->tasks);
}

bool job_missing(const struct request *request, struct err *err)
{
    struct job_facts array;
    bool found;
    if (request->array_id[0] == '\0') {
        return missing(request->argument, err);
    }
    if (!read_job(request, request->array_id, LOOK, &found, &array, err)) {
        return false;
    }
    return found ? task_missing(request, &array, request->task, err) : missing(request->array_id, err);
}

void job_name_task(struct request *request)
{
    size_t length;
    if (strncmp(request->route->path, "/v1/jobs/", strlen("/v1/jobs/")) != 0 ||
        !task_reference(request->argument, &length, &request->task) || length != ID_LENGTH) {
        return;
    }
    memcpy(request->array_id, request->argument, ID_LENGTH);
    if (text_is_id(request->array_id)) {
        task_id(request->array_id, request->task, request->argument);
    } else {
        request->array_id[0] = '\0';
    }
}

static bool find(struct request *request, enum purpose purpose, struct job_facts *ret_facts, struct err *err)
{
    bool found = false;
    if (text_is_id(request->argument) &&
        !read_job(request, request->argument, purpose, &found, ret_facts, err)) {
        return false;
    }
    request->looks_beyond |= found && ret_facts->by_role;
    return found || job_missing(request, err);
}

bool job_find(struct request *request, struct job_facts *ret_facts, struct err *err)
{
    return find(request, LOOK, ret_facts, err);
}

bool job_is_seen(struct request *request)
{
    struct job_facts job;
    struct err err;
    return job_find(request, &job, &err);
}

bool job_find_to_change(struct request *request, struct job_facts *ret_facts, struct err *err)
{
    return find(request, CHANGE, ret_facts, err);
}

bool job_find_to_enter(struct request *request, struct job_facts *ret_facts, struct err *err)
{
    return find(request, ENTER, ret_facts, err);
}

bool job_attempt_id(struct reader *reader, int64_t job_key, int64_t attempt, uint64_t *ret_attempt_id,
                    struct err *err)
{
    autorows struct rows rows = reader_attempts(reader, job_key, attempt + 1, err);
    struct attempt_row row;
    bool found = rows_attempt(&rows, &row) && row.number == attempt;
    *ret_attempt_id = found ? row.attempt_id : 0;
    return !rows.failed;
}

/* --- views ---------------------------------------------------------------------------------------------- */

static struct array_view view_of(const struct array_row *array)
{
    return (struct array_view){.tasks = array->tasks,
                               .parallel = array->parallel,
                               .placed = array->placed,
                               .running = array->running,
                               .succeeded = array->succeeded,
                               .failed = array->failed,
                               .canceled = array->canceled};
}

void job_view_fill(struct job_view *view, const struct job_birth *birth, const struct job_life *life,
                   const struct array_row *array)
{
    *view = (struct job_view){.id = birth->id,
                              .state = life->state,
                              .name = birth->name,
                              .program = birth->program,
                              .labels = birth->labels,
                              .retry_of = birth->retry_of,
                              .owner = birth->owner,
                              .project = birth->project,
                              .gpus = birth->gpus,
                              .gpu_type = birth->gpu_type,
                              .pool = life->pool,
                              .priority = life->priority,
                              .time_limit_ms = life->time_limit_ms,
                              .attempt = life->attempt,
                              .seq = life->seq,
                              .created_ms = birth->created_ms,
                              .started_ms = life->started_ms,
                              .ended_ms = life->ended_ms,
                              .ran_ms = life->ran_ms,
                              .exit_code = life->exit_code,
                              .failed_rank = life->failed_rank,
                              .failed_node = life->failed_node,
                              .idle_since_ms = life->idle_since_ms,
                              .kept_until_ms = life->kept_until_ms,
                              .cause = life->cause,
                              .reason = life->idle_since_ms != 0 ? "its GPUs are idle" : life->reason,
                              .array = view_of(array),
                              .array_id = birth->array_id,
                              .task = birth->task};
}

const struct job_life *job_newest_life(const struct step *step)
{
    for (size_t i = step->change_count; i > 0; i--) {
        const struct change *change = &step->changes[i - 1];
        bool job = change->kind == CHANGE_JOB_INSERT || change->kind == CHANGE_JOB_UPDATE;
        if (job && change->job.life.key == step->job.key) {
            return &change->job.life;
        }
    }
    return NULL;
}

struct placement_view job_placement(const struct member_row *row)
{
    return (struct placement_view){.node = row->node,
                                   .node_rank = row->node_rank,
                                   .first_rank = row->first_rank,
                                   .local_ranks = row->local_ranks,
                                   .devices = row->devices,
                                   .millicpus = row->millicpus,
                                   .memory_bytes = row->memory_bytes,
                                   .isolation = row->isolated ? ISOLATION_BY_USERS : NULL,
                                   .state = row->state};
}

static bool read_placements(struct reader *reader, const struct job_life *life, struct job_view *view,
                            struct err *err)
{
    uint64_t attempt_id;
    if (!job_attempt_id(reader, life->key, life->attempt, &attempt_id, err)) {
        return false;
    }
    autorows struct rows rows = reader_members(reader, attempt_id, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        view->placements = xrealloc(view->placements, (view->placement_count + 1) * sizeof *view->placements);
        struct placement_view *placement = &view->placements[view->placement_count++];
        *placement = job_placement(&row);
        placement->node = xstrdup(row.node);
        placement->devices = xstrdup(row.devices);
    }
    return !rows.failed;
}

static void placements_finish(struct job_view *view)
{
    for (size_t i = 0; i < view->placement_count; i++) {
        member_release(view->placements[i].node);
        member_release(view->placements[i].devices);
    }
    free(view->placements);
}

static void say_supply(const struct gpu_supply *supply, struct text *out)
{
    text_printf(out, ": %lld of %lld %s free", (long long)supply->free, (long long)supply->total,
                supply->free == 1 ? "is" : "are");
    if (supply->out_of_service > 0) {
        text_printf(out, ", %lld on nodes that take no work", (long long)supply->out_of_service);
    }
    if (supply->departing > 0) {
        text_printf(out, ", %lld on nodes that leave before it could end", (long long)supply->departing);
    }
}

/* "needs 4 GPUs of type A10: 2 of 8 are free; 3 jobs are ahead (gpuctl explain ID)". Without the numbers if
 * the queue is too long for the snapshot, or the job is newer. */
static void say_queued(const struct queue_snapshot *queue, const struct job_birth *birth, struct text *out)
{
    int64_t ahead = 0;
    const struct gpu_supply *supply = queue != NULL ? queue_snapshot_find(queue, birth->key, &ahead) : NULL;
    if (birth->gpus > 0) {
        text_printf(out, "needs %lld GPU%s", (long long)birth->gpus, birth->gpus == 1 ? "" : "s");
    } else {
        text_append(out, "needs no GPU");
        supply = NULL;
    }
    if (birth->gpu_type != NULL) {
        text_printf(out, " of type %s", birth->gpu_type);
    }
    if (supply != NULL) {
        say_supply(supply, out);
    }
    if (ahead > 0) {
        text_printf(out, "; %lld job%s ahead", (long long)ahead, ahead == 1 ? " is" : "s are");
    }
    text_printf(out, " (gpuctl explain %s)", birth->id);
}

/* The names of an array's sweep, the values of a task's; NULL: there is none. The caller frees it. */
static char *sweep_of(const struct job_record *job)
{
    bool task = job->birth.task >= 0;
    if (!task && job->array.tasks == 0) {
        return NULL;
    }
    struct err err;
    autojson json_t *spec = json_parse(job->birth.spec, job->birth.spec_length, &err);
    const json_t *sweep = json_object_get(spec, "sweep");
    if (!json_is_object(sweep)) {
        return NULL;
    }
    autojson json_t *shown = task ? json_object() : json_array();
    struct task_values values;
    task_values_make(sweep, task_values_count(sweep), task ? job->birth.task : 0, &values);
    for (size_t i = 1; i < values.count; i++) {
        if (task) {
            json_object_set_new(shown, values.items[i].name, json_string(values.items[i].text));
        } else {
            json_array_append_new(shown, json_string(values.items[i].name));
        }
    }
    task_values_finish(&values);
    return json_text(shown);
}

/* Who gets a job in STAGING ready. What the job needs follows from its spec, as the core had it. */
static bool say_staging(const struct server *server, struct job_view *view, const struct job_birth *job,
                        struct text *out, struct err *err)
{
    struct job_spec spec;
    struct spec_environment environment;
    bool builds = false;
    json_t *json = specs_get(server->specs, job->key, err);
    if (json == NULL || !job_spec_decode(json, 0, &spec, err)) {
        return false;
    }
    if (spec_environment_of(&spec, job->owner, &environment)) {
        view->stagings =
            staging_board_look(server->stagings, environment.core.key, server->now_ms, &view->staging_count);
        builds = job_spec_has_environment(&spec);
    }
    spec_environment_finish(&environment);
    job_spec_finish(&spec);
    staging_board_say(view->stagings, view->staging_count, builds, out);
    return true;
}

/* "waits until 2026-11-21T09:30:00.000Z", behind the jobs that it waits for. */
static bool say_moment(const struct server *server, const struct job_birth *birth, struct text *out)
{
    autojson json_t *spec = json_parse(birth->spec, birth->spec_length, NULL);
    const char *moment = json_string_of(spec, "not_before");
    int64_t at_ms;
    if (moment != NULL && text_to_wall_ms(moment, &at_ms) && at_ms > server->wall_ms) {
        text_printf(out, "%swaits until %s", out->length > 0 ? "; " : "", moment);
    }
    return true;
}

/* Why the job has not begun, where its row does not say so. */
static bool say_reason(const struct server *server, const struct job_record *job, struct job_view *view,
                       struct text *out, struct err *err)
{
    if (view->state == JOB_QUEUED && view->reason == NULL) {
        say_queued(server->queue, &job->birth, out);
    }
    if (view->state == JOB_STAGING) {
        return say_staging(server, view, &job->birth, out, err);
    }
    if (view->state == JOB_HELD || view->state == JOB_BLOCKED) {
        view->reason = NULL;
        return after_say_why(server->reader, job->birth.key, view->state, out, err) &&
               (view->state == JOB_HELD || say_moment(server, &job->birth, out));
    }
    return true;
}

static bool write_view(const struct server *server, const struct job_record *job, struct text *out,
                       struct err *err)
{
    struct job_view view;
    autotext struct text reason = {0};
    autofree char *sweep = sweep_of(job);
    autofree char *spec = xstrndup(job->birth.spec, job->birth.spec_length);
    job_view_fill(&view, &job->birth, &job->life, &job->array);
    bool ok = read_placements(server->reader, &job->life, &view, err) &&
              say_reason(server, job, &view, &reason, err);
    if (ok) {
        view.sweep = sweep;
        view.spec = spec;
        view.reason = reason.bytes != NULL ? reason.bytes : view.reason;
        job_view_encode(&view, out);
    }
    placements_finish(&view);
    free(view.stagings);
    return ok;
}

bool job_show(struct request *request, int64_t *ret_seq, struct text *out, struct err *err)
{
    const struct server *server = request->server;
    struct job_record job;
    if (!text_is_id(request->argument)) {
        return job_missing(request, err);
    }
    autorows struct rows rows = reader_job(server->reader, request->argument, err);
    if (rows_job(&rows, &job) && request_may_see(request, job.birth.owner, job.birth.project)) {
        request->looks_beyond = request_sees_by_role(request, job.birth.owner, job.birth.project);
        *ret_seq = job.life.seq;
        return write_view(server, &job, out, err);
    }
    rows_close(&rows);
    return !rows.failed && job_missing(request, err);
}
