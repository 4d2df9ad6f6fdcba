/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from an id in a path to a job, and the view of one job. It promises that a job of somebody
 * else is not told apart from one that does not exist. */
#include "daemon/http/job_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/dependencies.h"
#include "daemon/http/departing.h"
#include "daemon/http/parts.h"
#include "daemon/http/router.h"
#include "daemon/spec_environment.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

/* --- finding -------------------------------------------------------------------------------------------- */

struct finding {
    const struct request *request;
    struct job_facts *facts;
    bool seen;
};

static void take_facts(const struct job_record *job, void *closure)
{
    struct finding *finding = closure;
    if (!request_may_see(finding->request, job->birth.owner)) {
        return;
    }
    finding->seen = true;
    *finding->facts = (struct job_facts){.key = job->birth.key,
                                         .state = job->life.state,
                                         .seq = job->life.seq,
                                         .attempt = job->life.attempt,
                                         .exit_code = job->life.exit_code,
                                         .gpus = job->birth.gpus,
                                         .created_ms = job->birth.created_ms,
                                         .tasks = job->array.tasks,
                                         .placed = job->array.placed};
    memcpy(finding->facts->id, job->birth.id, ID_LENGTH + 1);
}

static bool missing(const char *id, struct err *err)
{
    return err_field(err, ERR_NOT_FOUND, "id", "`gpuctl ps --all` shows the jobs that there are",
                     "there is no job %s", id);
}

/* Why an array has no such task. */
static bool task_missing(const struct job_facts *array, int64_t task, struct err *err)
{
    if (array->tasks == 0) {
        return err_field(err, ERR_NOT_FOUND, "id", "leave out what is behind the dot",
                         "job %s is no array: it has no task %lld", array->id, (long long)task);
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
    struct finding finding = {.request = request, .facts = &array};
    bool found = false;
    if (request->array_id[0] == '\0') {
        return missing(request->argument, err);
    }
    if (!reader_job(request->server->reader, request->array_id, take_facts, &finding, &found, err)) {
        return false;
    }
    return finding.seen ? task_missing(&array, request->task, err) : missing(request->array_id, err);
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

bool job_find(const struct request *request, struct job_facts *ret_facts, struct err *err)
{
    struct finding finding = {.request = request, .facts = ret_facts};
    bool found = false;
    if (!text_is_id(request->argument)) {
        return job_missing(request, err);
    }
    if (!reader_job(request->server->reader, request->argument, take_facts, &finding, &found, err)) {
        return false;
    }
    return finding.seen || job_missing(request, err);
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
                              .cause = life->cause,
                              .reason = life->reason,
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

/* The placements of the newest attempt; node names and device lists are owned. */
struct placements {
    struct placement_view *items;
    size_t count, room;
};

static void placements_finish(struct placements *placements)
{
    for (size_t i = 0; i < placements->count; i++) {
        free((void *)(uintptr_t)placements->items[i].node);
        free((void *)(uintptr_t)placements->items[i].devices);
    }
    free(placements->items);
}

static bool take_placement(const struct member_row *row, void *closure)
{
    struct placements *placements = closure;
    if (placements->count == placements->room) {
        placements->room = placements->room > 0 ? 2 * placements->room : 4;
        placements->items = xrealloc(placements->items, placements->room * sizeof *placements->items);
    }
    placements->items[placements->count++] = (struct placement_view){.node = xstrdup(row->node),
                                                                     .node_rank = row->node_rank,
                                                                     .first_rank = row->first_rank,
                                                                     .local_ranks = row->local_ranks,
                                                                     .devices = xstrdup(row->devices),
                                                                     .state = row->state};
    return true;
}

static bool take_newest_attempt_id(const struct attempt_row *row, void *closure)
{
    uint64_t *attempt_id = closure;
    *attempt_id = row->attempt_id;
    return false;
}

static bool read_placements(struct reader *reader, int64_t job_key, struct placements *placements,
                            struct err *err)
{
    uint64_t attempt_id = 0;
    if (!reader_attempts(reader, job_key, take_newest_attempt_id, &attempt_id, err)) {
        return false;
    }
    return attempt_id == 0 || reader_members(reader, attempt_id, take_placement, placements, err);
}

/* "needs 4 GPUs of type A10: 2 of 8 are free; 3 jobs are ahead" */
static void say_why_it_waits(const struct queue_facts *facts, int64_t departing,
                             const struct job_birth *birth, struct text *out)
{
    const char *type = birth->gpu_type;
    text_printf(out, "needs %lld GPU%s", (long long)birth->gpus, birth->gpus == 1 ? "" : "s");
    if (type != NULL) {
        text_printf(out, " of type %s", type);
    }
    text_printf(out, ": %lld of %lld %s free", (long long)(facts->registered - facts->used),
                (long long)facts->registered, facts->registered - facts->used == 1 ? "is" : "are");
    if (facts->drained > 0) {
        text_printf(out, ", %lld on nodes that take no work", (long long)facts->drained);
    }
    if (departing > 0) {
        text_printf(out, ", %lld on nodes that leave before it could end", (long long)departing);
    }
    if (facts->ahead > 0) {
        text_printf(out, "; %lld job%s ahead", (long long)facts->ahead, facts->ahead == 1 ? " is" : "s are");
    }
    text_printf(out, " (gpuctl explain %s)", birth->id);
}

/* What the job's row does not hold is read before it, for rows are borrowed for the time of a visit only. */
struct showing {
    const struct request *request;
    struct placements placements;
    struct queue_facts facts;
    int64_t departing; /* GPUs on nodes that leave too soon for it */
    bool facts_known;
    struct staging_view *stagings; /* of a job in STAGING: who gets it ready */
    size_t staging_count;
    bool environment; /* and builds an environment for it */
    struct text why;  /* of a job that is HELD or BLOCKED */
    int64_t seq;
    struct text *out;
    bool seen;
};

static bool is_kept_back(enum job_state state)
{
    return state == JOB_HELD || state == JOB_BLOCKED;
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

static void write_view(const struct job_record *job, void *closure)
{
    struct showing *showing = closure;
    if (!request_may_see(showing->request, job->birth.owner)) {
        return;
    }
    showing->seen = true;
    showing->seq = job->life.seq;
    struct job_view view;
    job_view_fill(&view, &job->birth, &job->life, &job->array);
    autofree char *sweep = sweep_of(job);
    view.sweep = sweep;
    autofree char *spec = xstrndup(job->birth.spec, job->birth.spec_length);
    autotext struct text reason = {0};
    view.spec = spec;
    view.placements = showing->placements.items;
    view.placement_count = showing->placements.count;
    if (view.state == JOB_QUEUED && view.reason == NULL && showing->facts_known) {
        say_why_it_waits(&showing->facts, showing->departing, &job->birth, &reason);
        view.reason = reason.bytes;
    } else if (view.state == JOB_STAGING) {
        view.stagings = showing->stagings;
        view.staging_count = showing->staging_count;
        staging_board_say(view.stagings, view.staging_count, showing->environment, &reason);
        view.reason = reason.bytes;
    } else if (is_kept_back(view.state)) {
        view.reason = showing->why.bytes;
    }
    job_view_encode(&view, showing->out);
}

/* What the job waits for. */
struct wanted {
    char *gpu_type; /* owned, or NULL */
    int64_t time_limit_ms;
};

static void take_wanted(const struct job_record *job, void *closure)
{
    *(struct wanted *)closure =
        (struct wanted){.gpu_type = job->birth.gpu_type != NULL ? xstrdup(job->birth.gpu_type) : NULL,
                        .time_limit_ms = job->life.time_limit_ms};
}

static bool read_grace(const struct server *server, int64_t job_key, int64_t *ret_grace_ms, struct err *err)
{
    struct job_spec spec;
    json_t *json = specs_get(server->specs, job_key, err);
    if (json == NULL || !job_spec_decode(json, 0, &spec, err)) {
        return false;
    }
    *ret_grace_ms = spec.grace_ms;
    job_spec_finish(&spec);
    return true;
}

static bool read_facts(const struct server *server, const struct job_facts *job, struct showing *showing,
                       struct err *err)
{
    if (job->state != JOB_QUEUED) {
        return true;
    }
    struct reader *reader = server->reader;
    struct wanted wanted = {0};
    int64_t grace_ms;
    bool ok = reader_job_by_key(reader, job->key, take_wanted, &wanted, &showing->facts_known, err) &&
              reader_queue_facts(reader, job->key, wanted.gpu_type, &showing->facts, err) &&
              read_grace(server, job->key, &grace_ms, err) &&
              departing_count(reader, wanted.gpu_type, wanted.time_limit_ms, grace_ms, server->wall_ms,
                              &showing->departing, err);
    free(wanted.gpu_type);
    return ok;
}

/* What the job needs follows from its spec, as the core had it. */
static bool read_stagings(const struct server *server, const struct job_facts *job, struct showing *showing,
                          struct err *err)
{
    struct job_spec spec;
    struct spec_environment environment;
    if (job->state != JOB_STAGING) {
        return true;
    }
    json_t *json = specs_get(server->specs, job->key, err);
    if (json == NULL || !job_spec_decode(json, 0, &spec, err)) {
        return false;
    }
    if (spec_environment_of(&spec, &environment)) {
        showing->stagings = staging_board_look(server->stagings, environment.core.key, server->now_ms,
                                               &showing->staging_count);
        showing->environment = job_spec_has_environment(&spec);
    }
    spec_environment_finish(&environment);
    job_spec_finish(&spec);
    return true;
}

bool job_show(const struct request *request, int64_t *ret_seq, struct text *out, struct err *err)
{
    struct reader *reader = request->server->reader;
    struct job_facts facts;
    struct showing showing = {.request = request, .out = out};
    if (!job_find(request, &facts, err)) {
        return false;
    }
    bool found = false;
    bool ok =
        read_placements(reader, facts.key, &showing.placements, err) &&
        read_facts(request->server, &facts, &showing, err) &&
        read_stagings(request->server, &facts, &showing, err) &&
        (!is_kept_back(facts.state) || after_say_why(reader, facts.key, facts.state, &showing.why, err)) &&
        reader_job(reader, request->argument, write_view, &showing, &found, err);
    placements_finish(&showing.placements);
    free(showing.stagings);
    text_finish(&showing.why);
    *ret_seq = showing.seq;
    return ok && (showing.seen || job_missing(request, err));
}
