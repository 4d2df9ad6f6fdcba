/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how jobs, events, nodes and tokens look in the API. It promises that every member of a view is always
 * written (null where there is nothing to say, but for those of a single job, of one in STAGING, or of a new
 * token), and that a decode reads back what an encode wrote. Who may see what, and which rows, is left to the
 * handlers. */
#include "proto/wire/views.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- times and JSON within JSON --- */

/* RFC 3339, null for 0. */
static void write_time(struct text *out, const char *key, int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    member_write_text(out, key, wall_ms != 0 ? at : NULL);
}

static bool read_time(const json_t *object, const char *name, int64_t *ret_wall_ms, struct err *err)
{
    const char *at = NULL;
    if (!json_read_text(object, name, &at, err)) {
        return false;
    }
    return at == NULL || text_to_wall_ms(at, ret_wall_ms) ||
           err_field(err, ERR_FIELD, name, NULL, "%s must be a time of RFC 3339", name);
}

/* A text that is JSON already, null for NULL. */
static void write_json(struct text *out, const char *key, const char *json)
{
    text_append(out, key);
    text_append(out, json != NULL ? json : "null");
}

/* The text of a member, NULL when it is absent or null; freed with member_release. */
static const char *read_json(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value == NULL || json_is_null(value) ? NULL : json_text(value);
}

/* --- jobs --- */

static void write_placement(struct text *out, const struct placement_view *placement)
{
    member_write_text(out, "{\"node\":", placement->node);
    member_write_int(out, ",\"node_rank\":", placement->node_rank);
    member_write_int(out, ",\"first_rank\":", placement->first_rank);
    member_write_int(out, ",\"local_ranks\":", placement->local_ranks);
    member_write_text(out, ",\"devices\":", placement->devices);
    member_write_text(out, ",\"state\":", member_state_text(placement->state));
    text_append(out, "}");
}

static void write_placements(struct text *out, const struct job_view *view)
{
    text_append(out, ",\"nodes\":[");
    for (size_t i = 0; i < view->placement_count; i++) {
        text_append(out, i > 0 ? "," : "");
        write_placement(out, &view->placements[i]);
    }
    text_append(out, "]");
}

/* Milliseconds as seconds with three decimals, null for -1. */
static void write_seconds(struct text *out, const char *key, int64_t ms)
{
    if (ms < 0) {
        member_write_text(out, key, NULL);
    } else {
        text_printf(out, "%s%lld.%03d", key, (long long)(ms / 1000), (int)(ms % 1000));
    }
}

static const char *const staging_words[] = {"told", "building"};

static void write_staging(struct text *out, const struct staging_view *staging)
{
    member_write_text(out, "{\"node\":", staging->node);
    member_write_text(out, ",\"state\":", staging_words[staging->heard]);
    member_write_text(out, ",\"text\":", staging->text);
    write_seconds(out, ",\"since_s\":", staging->since_ms);
    write_seconds(out, ",\"silent_s\":", staging->silent_ms);
    text_append(out, "}");
}

static void write_stagings(struct text *out, const struct job_view *view)
{
    text_append(out, ",\"staging\":[");
    for (size_t i = 0; i < view->staging_count; i++) {
        text_append(out, i > 0 ? "," : "");
        write_staging(out, &view->stagings[i]);
    }
    text_append(out, "]");
}

static void write_array(struct text *out, const struct job_view *view)
{
    const struct array_view *array = &view->array;
    if (array->tasks == 0) {
        text_append(out, ",\"array\":null");
        return;
    }
    member_write_int(out, ",\"array\":{\"tasks\":", array->tasks);
    member_write_int_or_null(out, ",\"parallel\":", array->parallel, 0);
    member_write_int(out, ",\"placed\":", array->placed);
    member_write_int(out, ",\"running\":", array->running);
    member_write_int(out, ",\"succeeded\":", array->succeeded);
    member_write_int(out, ",\"failed\":", array->failed);
    member_write_int(out, ",\"canceled\":", array->canceled);
    if (view->sweep != NULL) {
        write_json(out, ",\"sweep\":", view->sweep);
    }
    text_append(out, "}");
}

/* What makes it an array, or one of its tasks. */
static void write_tasks(struct text *out, const struct job_view *view)
{
    write_array(out, view);
    member_write_text(out, ",\"array_id\":", view->array_id);
    member_write_int_or_null(out, ",\"task\":", view->array_id != NULL ? view->task : -1, -1);
    if (view->array.tasks == 0 && view->sweep != NULL) {
        write_json(out, ",\"sweep\":", view->sweep);
    }
}

void job_view_encode(const struct job_view *view, struct text *out)
{
    member_write_text(out, "{\"id\":", view->id);
    member_write_text(out, ",\"state\":", job_state_text(view->state));
    member_write_text(out, ",\"name\":", view->name);
    member_write_text(out, ",\"owner\":", view->owner);
    member_write_text(out, ",\"project\":", view->project);
    member_write_int(out, ",\"gpus\":", view->gpus);
    member_write_text(out, ",\"gpu_type\":", view->gpu_type);
    member_write_text(out, ",\"pool\":", view->pool);
    member_write_int(out, ",\"priority\":", view->priority);
    write_seconds(out, ",\"time_limit_s\":", view->time_limit_ms > 0 ? view->time_limit_ms : -1);
    member_write_int(out, ",\"attempt\":", view->attempt);
    member_write_int(out, ",\"seq\":", view->seq);
    write_time(out, ",\"created_at\":", view->created_ms);
    write_time(out, ",\"started_at\":", view->started_ms);
    write_time(out, ",\"ended_at\":", view->ended_ms);
    write_seconds(out, ",\"ran_s\":", view->ran_ms);
    member_write_int_or_null(out, ",\"exit_code\":", view->exit_code, -1);
    member_write_int_or_null(out, ",\"failed_rank\":", view->failed_rank, -1);
    member_write_text(out, ",\"failed_node\":", view->failed_node);
    member_write_text(out, ",\"cause\":", view->cause != CAUSE_NONE ? cause_text(view->cause) : NULL);
    member_write_text(out, ",\"reason\":", view->reason);
    write_tasks(out, view);
    if (view->spec != NULL) {
        write_json(out, ",\"spec\":", view->spec);
        write_placements(out, view);
        if (view->state == JOB_STAGING) {
            write_stagings(out, view);
        }
    }
    text_append(out, "}");
}

static bool decode_placement(const json_t *json, struct placement_view *placement, struct err *err)
{
    return json_need_text(json, "node", &placement->node, err) &&
           json_read_int(json, "node_rank", 0, INT64_MAX, &placement->node_rank, err) &&
           json_read_int(json, "first_rank", 0, INT64_MAX, &placement->first_rank, err) &&
           json_read_int(json, "local_ranks", 0, INT64_MAX, &placement->local_ranks, err) &&
           json_read_text(json, "devices", &placement->devices, err) &&
           member_read_member_state(json, "state", true, &placement->state, err);
}

static bool decode_placements(const json_t *json, struct job_view *view, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "nodes", LIMIT_ATTEMPT_NODES, &array, err)) {
        return false;
    }
    view->placement_count = json_array_size(array);
    view->placements = xzalloc(view->placement_count * sizeof *view->placements);
    for (size_t i = 0; i < view->placement_count; i++) {
        if (!decode_placement(json_array_get(array, i), &view->placements[i], err)) {
            return member_err_inside(err, "nodes", i);
        }
    }
    return true;
}

static bool decode_staging(const json_t *json, struct staging_view *staging, struct err *err)
{
    const char *state = NULL;
    if (!json_need_text(json, "node", &staging->node, err) || !json_need_text(json, "state", &state, err) ||
        !json_read_text(json, "text", &staging->text, err) ||
        !json_read_seconds(json, "since_s", 0, INT64_MAX, &staging->since_ms, err) ||
        !json_read_seconds(json, "silent_s", 0, INT64_MAX, &staging->silent_ms, err)) {
        return false;
    }
    staging->heard = strcmp(state, staging_words[true]) == 0;
    return true;
}

static bool decode_stagings(const json_t *json, struct job_view *view, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "staging", LIMIT_ATTEMPT_NODES, &array, err)) {
        return false;
    }
    view->staging_count = json_array_size(array);
    view->stagings = xzalloc(view->staging_count * sizeof *view->stagings);
    for (size_t i = 0; i < view->staging_count; i++) {
        if (!decode_staging(json_array_get(array, i), &view->stagings[i], err)) {
            return member_err_inside(err, "staging", i);
        }
    }
    return true;
}

static bool decode_array(const json_t *json, struct array_view *array, struct err *err)
{
    json_t *object = json_object_get(json, "array");
    return !json_is_object(object) ||
           (json_read_int(object, "tasks", 0, INT64_MAX, &array->tasks, err) &&
            json_read_int(object, "parallel", 0, INT64_MAX, &array->parallel, err) &&
            json_read_int(object, "placed", 0, INT64_MAX, &array->placed, err) &&
            json_read_int(object, "running", 0, INT64_MAX, &array->running, err) &&
            json_read_int(object, "succeeded", 0, INT64_MAX, &array->succeeded, err) &&
            json_read_int(object, "failed", 0, INT64_MAX, &array->failed, err) &&
            json_read_int(object, "canceled", 0, INT64_MAX, &array->canceled, err));
}

void job_receipt_encode(const char *id, enum job_state state, int64_t seq, struct text *out)
{
    member_write_text(out, "{\"id\":", id);
    member_write_text(out, ",\"state\":", job_state_text(state));
    member_write_int(out, ",\"seq\":", seq);
    text_append(out, "}");
}

static bool decode_job(const json_t *json, struct job_view *view, struct err *err)
{
    return json_need_text(json, "id", &view->id, err) &&
           member_read_job_state(json, "state", true, &view->state, err) &&
           json_read_text(json, "name", &view->name, err) &&
           json_read_text(json, "owner", &view->owner, err) &&
           json_read_text(json, "project", &view->project, err) &&
           json_read_int(json, "gpus", 0, INT64_MAX, &view->gpus, err) &&
           json_read_text(json, "gpu_type", &view->gpu_type, err) &&
           json_read_text(json, "pool", &view->pool, err) &&
           json_read_int(json, "priority", INT64_MIN, INT64_MAX, &view->priority, err) &&
           json_read_seconds(json, "time_limit_s", 0, INT64_MAX, &view->time_limit_ms, err) &&
           json_read_int(json, "attempt", 0, INT64_MAX, &view->attempt, err) &&
           json_read_int(json, "seq", 0, INT64_MAX, &view->seq, err) &&
           read_time(json, "created_at", &view->created_ms, err) &&
           read_time(json, "started_at", &view->started_ms, err) &&
           read_time(json, "ended_at", &view->ended_ms, err) &&
           json_read_seconds(json, "ran_s", 0, INT64_MAX, &view->ran_ms, err) &&
           json_read_int(json, "exit_code", 0, 255, &view->exit_code, err) &&
           json_read_int(json, "failed_rank", 0, INT64_MAX, &view->failed_rank, err) &&
           json_read_text(json, "failed_node", &view->failed_node, err) &&
           member_read_cause(json, "cause", false, &view->cause, err) &&
           json_read_text(json, "reason", &view->reason, err) && decode_array(json, &view->array, err) &&
           json_read_text(json, "array_id", &view->array_id, err) &&
           json_read_int(json, "task", 0, INT64_MAX, &view->task, err) &&
           decode_placements(json, view, err) && decode_stagings(json, view, err);
}

bool job_view_decode(json_t *json, struct job_view *ret_view, struct err *err)
{
    struct job_view view = {.json = json, .exit_code = -1, .failed_rank = -1, .task = -1};
    if (!member_holder(json, err) || !decode_job(json, &view, err)) {
        job_view_finish(&view);
        return false;
    }
    view.spec = read_json(json, "spec");
    view.sweep = read_json(view.array.tasks > 0 ? json_object_get(json, "array") : json, "sweep");
    *ret_view = view;
    return true;
}

void job_view_finish(struct job_view *view)
{
    if (view->json != NULL) {
        member_release(view->spec);
        member_release(view->sweep);
        free(view->placements);
        free(view->stagings);
        json_decref(view->json);
    }
    *view = (struct job_view){0};
}

/* --- events --- */

void event_view_encode(const struct event_view *view, struct text *out)
{
    member_write_text(out, "{\"job_id\":", view->job_id);
    member_write_int(out, ",\"seq\":", view->seq);
    write_time(out, ",\"at\":", view->at_ms);
    member_write_text(out, ",\"kind\":", event_kind_text(view->kind));
    member_write_int(out, ",\"attempt\":", view->attempt);
    write_json(out, ",\"detail\":", view->detail);
    text_append(out, "}");
}

bool event_view_decode(json_t *json, struct event_view *ret_view, struct err *err)
{
    struct event_view view = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "job_id", &view.job_id, err) &&
                json_need_int(json, "seq", 0, INT64_MAX, &view.seq, err) &&
                read_time(json, "at", &view.at_ms, err) &&
                member_read_event_kind(json, "kind", true, &view.kind, err) &&
                json_read_int(json, "attempt", 0, INT64_MAX, &view.attempt, err);
    if (!good) {
        event_view_finish(&view);
        return false;
    }
    view.detail = read_json(json, "detail");
    *ret_view = view;
    return true;
}

void event_view_finish(struct event_view *view)
{
    if (view->json != NULL) {
        member_release(view->detail);
        json_decref(view->json);
    }
    *view = (struct event_view){0};
}

/* --- nodes --- */

static void write_node_window(const struct node_view *view, struct text *out)
{
    if (view->window_until_ms == 0) {
        text_append(out, ",\"window\":null");
        return;
    }
    text_append(out, ",\"window\":{");
    write_time(out, "\"from\":", view->window_from_ms);
    write_time(out, ",\"until\":", view->window_until_ms);
    member_write_bool(out, ",\"hard\":", view->window_hard);
    text_append(out, "}");
}

void node_view_encode(const struct node_view *view, struct text *out)
{
    member_write_text(out, "{\"name\":", view->name);
    member_write_text(out, ",\"state\":", node_state_text(view->state));
    member_write_text(out, ",\"pool\":", view->pool);
    member_write_text(out, ",\"pool_kind\":", pool_kind_text(view->pool_kind));
    member_write_text(out, ",\"gpu_type\":", view->gpu_type);
    member_write_int(out, ",\"gpus\":", view->gpus);
    member_write_int(out, ",\"free_gpus\":", view->free_gpus);
    member_write_int(out, ",\"unavailable_gpus\":", view->unavailable_gpus);
    member_write_text(out, ",\"unavailable\":", view->unavailable);
    member_write_text(out, ",\"address\":", view->address);
    member_write_text(out, ",\"version\":", view->version);
    member_write_text(out, ",\"host_id\":", view->host_id);
    member_write_text(out, ",\"isolation\":", isolation_text(view->isolation));
    member_write_bool(out, ",\"slots\":", view->slots);
    write_seconds(out, ",\"beat_age_s\":", view->heartbeat_age_ms);
    member_write_text(out, ",\"reason\":", view->reason);
    write_json(out, ",\"labels\":", view->labels);
    write_time(out, ",\"expires_at\":", view->expires_ms);
    write_node_window(view, out);
    write_json(out, ",\"devices\":", view->devices);
    text_append(out, "}");
}

static bool read_node_window(const json_t *json, struct node_view *view, struct err *err)
{
    const json_t *window = json_object_get(json, "window");
    return window == NULL || json_is_null(window) ||
           (read_time(window, "from", &view->window_from_ms, err) &&
            read_time(window, "until", &view->window_until_ms, err) &&
            json_read_bool(window, "hard", &view->window_hard, err));
}

static bool decode_node(const json_t *json, struct node_view *view, struct err *err)
{
    return json_need_text(json, "name", &view->name, err) &&
           member_read_node_state(json, "state", true, &view->state, err) &&
           json_read_text(json, "pool", &view->pool, err) &&
           member_read_pool_kind(json, "pool_kind", false, &view->pool_kind, err) &&
           json_read_text(json, "gpu_type", &view->gpu_type, err) &&
           json_read_int(json, "gpus", 0, INT64_MAX, &view->gpus, err) &&
           json_read_int(json, "free_gpus", 0, INT64_MAX, &view->free_gpus, err) &&
           json_read_int(json, "unavailable_gpus", 0, INT64_MAX, &view->unavailable_gpus, err) &&
           json_read_text(json, "unavailable", &view->unavailable, err) &&
           json_read_text(json, "address", &view->address, err) &&
           json_read_text(json, "version", &view->version, err) &&
           json_read_text(json, "host_id", &view->host_id, err) &&
           member_read_isolation(json, "isolation", false, &view->isolation, err) &&
           json_read_bool(json, "slots", &view->slots, err) &&
           json_read_seconds(json, "beat_age_s", 0, INT64_MAX, &view->heartbeat_age_ms, err) &&
           json_read_text(json, "reason", &view->reason, err) &&
           read_time(json, "expires_at", &view->expires_ms, err) && read_node_window(json, view, err);
}

bool node_view_decode(json_t *json, struct node_view *ret_view, struct err *err)
{
    struct node_view view = {.json = json, .heartbeat_age_ms = -1};
    if (!member_holder(json, err) || !decode_node(json, &view, err)) {
        node_view_finish(&view);
        return false;
    }
    view.labels = read_json(json, "labels");
    view.devices = read_json(json, "devices");
    *ret_view = view;
    return true;
}

void node_view_finish(struct node_view *view)
{
    if (view->json != NULL) {
        member_release(view->labels);
        member_release(view->devices);
        json_decref(view->json);
    }
    *view = (struct node_view){0};
}

/* --- windows --- */

void window_view_encode(const struct window_view *view, struct text *out)
{
    member_write_text(out, "{\"id\":", view->id);
    write_json(out, ",\"nodes\":", view->nodes);
    member_write_text(out, ",\"pool\":", view->pool);
    write_time(out, ",\"from\":", view->from_ms);
    write_time(out, ",\"until\":", view->until_ms);
    member_write_bool(out, ",\"hard\":", view->hard);
    member_write_text(out, ",\"reason\":", view->reason);
    member_write_text(out, ",\"owner\":", view->owner);
    write_time(out, ",\"created_at\":", view->created_ms);
    text_append(out, "}");
}

bool window_view_decode(json_t *json, struct window_view *ret_view, struct err *err)
{
    struct window_view view = {.json = json};
    bool good =
        member_holder(json, err) && json_need_text(json, "id", &view.id, err) &&
        json_read_text(json, "pool", &view.pool, err) && read_time(json, "from", &view.from_ms, err) &&
        read_time(json, "until", &view.until_ms, err) && json_read_bool(json, "hard", &view.hard, err) &&
        json_read_text(json, "reason", &view.reason, err) &&
        json_read_text(json, "owner", &view.owner, err) &&
        read_time(json, "created_at", &view.created_ms, err);
    if (!good) {
        window_view_finish(&view);
        return false;
    }
    view.nodes = read_json(json, "nodes");
    *ret_view = view;
    return true;
}

void window_view_finish(struct window_view *view)
{
    if (view->json != NULL) {
        member_release(view->nodes);
        json_decref(view->json);
    }
    *view = (struct window_view){0};
}

/* --- tokens --- */

void token_view_encode(const struct token_view *view, struct text *out)
{
    member_write_text(out, "{\"id\":", view->id);
    member_write_text(out, ",\"role\":", role_text(view->role));
    member_write_text(out, ",\"owner\":", view->owner);
    write_time(out, ",\"created_at\":", view->created_ms);
    write_time(out, ",\"expires_at\":", view->expires_ms);
    member_write_bool(out, ",\"revoked\":", view->revoked);
    if (view->node != NULL) {
        member_write_text(out, ",\"node\":", view->node);
    }
    if (view->secret != NULL) {
        member_write_text(out, ",\"secret\":", view->secret);
    }
    text_append(out, "}");
}

bool token_view_decode(json_t *json, struct token_view *ret_view, struct err *err)
{
    struct token_view view = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "id", &view.id, err) &&
                member_read_role(json, "role", true, &view.role, err) &&
                json_read_text(json, "owner", &view.owner, err) &&
                read_time(json, "created_at", &view.created_ms, err) &&
                read_time(json, "expires_at", &view.expires_ms, err) &&
                json_read_bool(json, "revoked", &view.revoked, err) &&
                json_read_text(json, "node", &view.node, err) &&
                json_read_text(json, "secret", &view.secret, err);
    if (!good) {
        token_view_finish(&view);
        return false;
    }
    *ret_view = view;
    return true;
}

void token_view_finish(struct token_view *view)
{
    json_decref(view->json);
    *view = (struct token_view){0};
}

void join_token_view_encode(const struct join_token_view *view, struct text *out)
{
    member_write_text(out, "{\"token\":", view->token);
    write_time(out, ",\"expires_at\":", view->expires_ms);
    member_write_text(out, ",\"pool\":", view->pool);
    member_write_bool(out, ",\"reserved\":", view->reserved);
    member_write_text(out, ",\"ca_pin\":", view->ca_pin);
    member_write_text(out, ",\"url\":", view->url);
    text_append(out, "}");
}

bool join_token_view_decode(json_t *json, struct join_token_view *ret_view, struct err *err)
{
    struct join_token_view view = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "token", &view.token, err) &&
                read_time(json, "expires_at", &view.expires_ms, err) &&
                json_read_text(json, "pool", &view.pool, err) &&
                json_read_bool(json, "reserved", &view.reserved, err) &&
                json_read_text(json, "ca_pin", &view.ca_pin, err) &&
                json_read_text(json, "url", &view.url, err);
    if (!good) {
        join_token_view_finish(&view);
        return false;
    }
    *ret_view = view;
    return true;
}

void join_token_view_finish(struct join_token_view *view)
{
    json_decref(view->json);
    *view = (struct join_token_view){0};
}
