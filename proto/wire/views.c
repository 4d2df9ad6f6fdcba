/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes jobs, events, nodes and tokens as the API shows them. A view always has all its
 * members: null where a member has no value, except for members of single jobs, of jobs in STAGING, and of
 * new tokens. Decoding reads back what encoding wrote, because both follow from one list of members. The
 * HTTP handlers choose the rows, and check who may see them. */
#include "proto/wire/views.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- kinds of members: each is written with all that stands before its value, and read ------------------ */

/* Writes milliseconds as seconds with three decimals, null for -1. */
static void write_seconds(struct text *out, const char *key, int64_t ms)
{
    if (ms < 0) {
        member_write_text(out, key, NULL);
    } else {
        text_printf(out, "%s%lld.%03d", key, (long long)(ms / 1000), (int)(ms % 1000));
    }
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

/* Writes a text that is already JSON, null for NULL. */
static void write_json(struct text *out, const char *key, const char *json)
{
    text_append(out, key);
    text_append(out, json != NULL ? json : "null");
}

/* The text of a member, which the member then is, so that the object owns it; NULL when it is absent or null.
 */
static const char *read_json(json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL || json_is_null(value)) {
        return NULL;
    }
    autofree char *text = json_text(value);
    member_put_text(object, name, text);
    return json_string_value(json_object_get(object, name));
}

#define WRITE_text(key, value)     member_write_text(out, key, value)
#define READ_text(name, value)     json_read_text(json, name, &value, err)
#define WRITE_needed               WRITE_text
#define READ_needed(name, value)   json_need_text(json, name, &value, err)
#define WRITE_number(key, value)   member_write_int(out, key, value)
#define READ_number(name, value)   json_read_int(json, name, 0, INT64_MAX, &value, err)
#define WRITE_sequence             WRITE_number
#define READ_sequence(name, value) json_need_int(json, name, 0, INT64_MAX, &value, err)
#define WRITE_signed               WRITE_number
#define READ_signed(name, value)   json_read_int(json, name, INT64_MIN, INT64_MAX, &value, err)
#define WRITE_nonzero(key, value)  member_write_int_or_null(out, key, value, 0)
#define READ_nonzero               READ_number
#define WRITE_rank(key, value)     member_write_int_or_null(out, key, value, -1)
#define READ_rank                  READ_number
#define WRITE_exit                 WRITE_rank
#define READ_exit(name, value)     json_read_int(json, name, 0, 255, &value, err)
#define WRITE_flag(key, value)     member_write_bool(out, key, value)
#define READ_flag(name, value)     json_read_bool(json, name, &value, err)
#define WRITE_time(key, value)     member_write_time(out, key, value)
#define READ_time(name, value)     read_time(json, name, &value, err)
#define WRITE_seconds(key, value)  write_seconds(out, key, value)
#define READ_seconds(name, value)  json_read_seconds(json, name, 0, INT64_MAX, &value, err)
#define WRITE_limit(key, value)    write_seconds(out, key, value > 0 ? value : -1)
#define WRITE_thousandths          WRITE_seconds /* to three decimals as well */
#define READ_thousandths           READ_seconds
#define READ_limit                 READ_seconds
#define WRITE_json(key, value)     write_json(out, key, value)
#define READ_json(name, value)     ((value = read_json(json, name)) == NULL || true)
#define WRITE_cause(key, value)    member_write_text(out, key, value != CAUSE_NONE ? cause_text(value) : NULL)
#define READ_cause(name, value)    member_read_cause(json, name, false, &value, err)
#define WRITE_shown(key, value)                                                                              \
    if (value != NULL) {                                                                                     \
        member_write_text(out, key, value);                                                                  \
    }
#define READ_shown READ_text
/* Spellings of proto/states.h: those that must be there, and those that may be missing. */
#define WRITE_spelled(type, key, value) member_write_text(out, key, type##_text(value))
#define WRITE_job_state(key, value)     WRITE_spelled(job_state, key, value)
#define READ_job_state(name, value)     member_read_job_state(json, name, true, &value, err)
#define WRITE_member_state(key, value)  WRITE_spelled(member_state, key, value)
#define READ_member_state(name, value)  member_read_member_state(json, name, true, &value, err)
#define WRITE_event_kind(key, value)    WRITE_spelled(event_kind, key, value)
#define READ_event_kind(name, value)    member_read_event_kind(json, name, true, &value, err)
#define WRITE_node_state(key, value)    WRITE_spelled(node_state, key, value)
#define READ_node_state(name, value)    member_read_node_state(json, name, true, &value, err)
#define WRITE_role(key, value)          WRITE_spelled(role, key, value)
#define READ_role(name, value)          member_read_role(json, name, true, &value, err)
#define WRITE_pool_kind(key, value)     WRITE_spelled(pool_kind, key, value)
#define READ_pool_kind(name, value)     member_read_pool_kind(json, name, false, &value, err)
#define WRITE_isolation(key, value)     WRITE_spelled(isolation, key, value)
#define READ_isolation(name, value)     member_read_isolation(json, name, false, &value, err)

/* --- lists of members: kind, name, where it is in the view ---------------------------------------------- */

#define WRITE(kind, name, member) WRITE_##kind(",\"" name "\":", view->member);
#define READ(kind, name, member)  &&READ_##kind(name, view->member)

/* What was written from start on are members with a comma before each: makes an object of them. */
static void enclose(struct text *out, size_t start)
{
    out->bytes[start] = '{';
    text_append(out, "}");
}

#define DEFINE_OBJECT(type, LIST)                                                                            \
    static void type##_write(const struct type *view, struct text *out)                                      \
    {                                                                                                        \
        size_t start = out->length;                                                                          \
        LIST(WRITE) enclose(out, start);                                                                     \
    }                                                                                                        \
    static bool type##_read(json_t *json, struct type *view, struct err *err)                                \
    {                                                                                                        \
        return true LIST(READ);                                                                              \
    }

/* A whole view; what follows the list is what its members are before they are read. */
#define DEFINE_VIEW(type, LIST, ...)                                                                         \
    DEFINE_OBJECT(type, LIST)                                                                                \
    void type##_encode(const struct type *view, struct text *out)                                            \
    {                                                                                                        \
        type##_write(view, out);                                                                             \
    }                                                                                                        \
    bool type##_decode(json_t *json, struct type *ret_view, struct err *err)                                 \
    {                                                                                                        \
        struct type view = {__VA_ARGS__};                                                                    \
        if (!member_holder(json, err) || !type##_read(json, &view, err)) {                                   \
            type##_finish(&view);                                                                            \
            return false;                                                                                    \
        }                                                                                                    \
        *ret_view = view;                                                                                    \
        return true;                                                                                         \
    }                                                                                                        \
    void type##_finish(struct type *view)                                                                    \
    {                                                                                                        \
        json_decref(view->json);                                                                             \
        *view = (struct type){0};                                                                            \
    }

/* An array of objects within a view. */
#define DEFINE_ARRAY(type, name, items, item_count)                                                          \
    static void type##s_write(const struct job_view *view, struct text *out)                                 \
    {                                                                                                        \
        text_append(out, ",\"" name "\":[");                                                                 \
        for (size_t i = 0; i < view->item_count; i++) {                                                      \
            member_separate(out);                                                                            \
            type##_write(&view->items[i], out);                                                              \
        }                                                                                                    \
        text_append(out, "]");                                                                               \
    }                                                                                                        \
    static bool type##s_read(const json_t *json, struct job_view *view, struct err *err)                     \
    {                                                                                                        \
        json_t *array;                                                                                       \
        if (!member_read_array(json, name, LIMIT_ATTEMPT_NODES, &array, err)) {                              \
            return false;                                                                                    \
        }                                                                                                    \
        view->item_count = json_array_size(array);                                                           \
        view->items = xzalloc(view->item_count * sizeof *view->items);                                       \
        for (size_t i = 0; i < view->item_count; i++) {                                                      \
            if (!type##_read(json_array_get(array, i), &view->items[i], err)) {                              \
                return member_err_inside(err, name, i);                                                      \
            }                                                                                                \
        }                                                                                                    \
        return true;                                                                                         \
    }

/* --- jobs ----------------------------------------------------------------------------------------------- */

#define PLACEMENT(M)                                                                                         \
    M(needed, "node", node)                                                                                  \
    M(number, "node_rank", node_rank)                                                                        \
    M(number, "first_rank", first_rank)                                                                      \
    M(number, "local_ranks", local_ranks)                                                                    \
    M(text, "devices", devices)                                                                              \
    M(thousandths, "cpus", millicpus)                                                                        \
    M(number, "memory_bytes", memory_bytes)                                                                  \
    M(text, "isolation", isolation)                                                                          \
    M(member_state, "state", state)
DEFINE_OBJECT(placement_view, PLACEMENT)
DEFINE_ARRAY(placement_view, "nodes", placements, placement_count)

void placement_view_encode(const struct placement_view *view, struct text *out)
{
    placement_view_write(view, out);
}

static const char *const staging_words[] = {"told", "building"};

static bool read_heard(const json_t *json, const char *name, bool *ret_heard, struct err *err)
{
    const char *state = NULL;
    if (!json_need_text(json, name, &state, err)) {
        return false;
    }
    *ret_heard = strcmp(state, staging_words[true]) == 0;
    return true;
}

#define WRITE_heard(key, value) member_write_text(out, key, staging_words[value])
#define READ_heard(name, value) read_heard(json, name, &value, err)

#define STAGING(M)                                                                                           \
    M(needed, "node", node)                                                                                  \
    M(heard, "state", heard)                                                                                 \
    M(text, "text", text)                                                                                    \
    M(seconds, "since_s", since_ms)                                                                          \
    M(seconds, "silent_s", silent_ms)
DEFINE_OBJECT(staging_view, STAGING)
DEFINE_ARRAY(staging_view, "staging", stagings, staging_count)

#define ARRAY(M)                                                                                             \
    M(number, "tasks", tasks)                                                                                \
    M(nonzero, "parallel", parallel)                                                                         \
    M(number, "placed", placed)                                                                              \
    M(number, "running", running)                                                                            \
    M(number, "succeeded", succeeded)                                                                        \
    M(number, "failed", failed)                                                                              \
    M(number, "canceled", canceled)
DEFINE_OBJECT(array_view, ARRAY)

static void write_array(struct text *out, const char *key, const struct job_view *view)
{
    if (view->array.tasks == 0) {
        write_json(out, key, NULL);
        return;
    }
    text_append(out, key);
    array_view_write(&view->array, out);
    if (view->sweep != NULL) {
        out->length--;
        write_json(out, ",\"sweep\":", view->sweep);
        text_append(out, "}");
    }
}

static bool read_array(json_t *json, const char *name, struct array_view *array, struct err *err)
{
    json_t *object = json_object_get(json, name);
    return !json_is_object(object) || array_view_read(object, array, err);
}

#define WRITE_array(key, value) write_array(out, key, view)
#define READ_array(name, value) read_array(json, name, &value, err)
#define WRITE_task(key, value)  member_write_int_or_null(out, key, view->array_id != NULL ? value : -1, -1)
#define READ_task               READ_number

#define JOB(M)                                                                                               \
    M(needed, "id", id)                                                                                      \
    M(job_state, "state", state)                                                                             \
    M(text, "name", name)                                                                                    \
    M(text, "program", program)                                                                              \
    M(text, "owner", owner)                                                                                  \
    M(text, "project", project)                                                                              \
    M(number, "gpus", gpus)                                                                                  \
    M(text, "gpu_type", gpu_type)                                                                            \
    M(text, "pool", pool)                                                                                    \
    M(signed, "priority", priority)                                                                          \
    M(limit, "time_limit_s", time_limit_ms)                                                                  \
    M(number, "attempt", attempt)                                                                            \
    M(number, "seq", seq)                                                                                    \
    M(time, "created_at", created_ms)                                                                        \
    M(time, "started_at", started_ms)                                                                        \
    M(time, "ended_at", ended_ms)                                                                            \
    M(seconds, "ran_s", ran_ms)                                                                              \
    M(exit, "exit_code", exit_code)                                                                          \
    M(rank, "failed_rank", failed_rank)                                                                      \
    M(text, "failed_node", failed_node)                                                                      \
    M(time, "idle_since", idle_since_ms)                                                                     \
    M(time, "kept_until", kept_until_ms)                                                                     \
    M(cause, "cause", cause)                                                                                 \
    M(text, "reason", reason)                                                                                \
    M(array, "array", array)                                                                                 \
    M(text, "array_id", array_id)                                                                            \
    M(task, "task", task)
DEFINE_OBJECT(job_view, JOB)

void job_view_encode(const struct job_view *view, struct text *out)
{
    job_view_write(view, out);
    out->length--; /* the closing brace */
    if (view->array.tasks == 0 && view->sweep != NULL) {
        write_json(out, ",\"sweep\":", view->sweep);
    }
    if (view->labels != NULL) {
        write_json(out, ",\"labels\":", view->labels);
    }
    if (view->retry_of != NULL) {
        member_write_text(out, ",\"retry_of\":", view->retry_of);
    }
    if (view->spec != NULL) {
        write_json(out, ",\"spec\":", view->spec);
        placement_views_write(view, out);
        if (view->state == JOB_STAGING) {
            staging_views_write(view, out);
        }
    }
    text_append(out, "}");
}

void job_receipt_encode(const char *id, enum job_state state, int64_t seq, struct text *out)
{
    member_write_text(out, "{\"id\":", id);
    member_write_text(out, ",\"state\":", job_state_text(state));
    member_write_int(out, ",\"seq\":", seq);
    text_append(out, "}");
}

bool job_view_decode(json_t *json, struct job_view *ret_view, struct err *err)
{
    struct job_view view = {.json = json, .exit_code = -1, .failed_rank = -1, .task = -1};
    if (!member_holder(json, err) || !job_view_read(json, &view, err) ||
        !placement_views_read(json, &view, err) || !staging_views_read(json, &view, err)) {
        job_view_finish(&view);
        return false;
    }
    view.spec = read_json(json, "spec");
    view.labels = read_json(json, "labels");
    view.retry_of = json_string_of(json, "retry_of");
    view.sweep = read_json(view.array.tasks > 0 ? json_object_get(json, "array") : json, "sweep");
    *ret_view = view;
    return true;
}

void job_view_finish(struct job_view *view)
{
    if (view->json != NULL) {
        free(view->placements);
        free(view->stagings);
        json_decref(view->json);
    }
    *view = (struct job_view){0};
}

/* --- events --------------------------------------------------------------------------------------------- */

#define EVENT(M)                                                                                             \
    M(needed, "job_id", job_id)                                                                              \
    M(sequence, "seq", seq)                                                                                  \
    M(time, "at", at_ms)                                                                                     \
    M(event_kind, "kind", kind)                                                                              \
    M(number, "attempt", attempt)                                                                            \
    M(json, "detail", detail)
DEFINE_VIEW(event_view, EVENT, .json = json)

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void write_window(struct text *out, const char *key, const struct node_view *view)
{
    text_append(out, key);
    if (view->window_until_ms == 0) {
        text_append(out, "null");
        return;
    }
    member_write_time(out, "{\"from\":", view->window_from_ms);
    member_write_time(out, ",\"until\":", view->window_until_ms);
    member_write_bool(out, ",\"hard\":", view->window_hard);
    text_append(out, "}");
}

static bool read_window(const json_t *json, const char *name, struct node_view *view, struct err *err)
{
    const json_t *window = json_object_get(json, name);
    return window == NULL || json_is_null(window) ||
           (read_time(window, "from", &view->window_from_ms, err) &&
            read_time(window, "until", &view->window_until_ms, err) &&
            json_read_bool(window, "hard", &view->window_hard, err));
}

#define WRITE_window(key, value) write_window(out, key, view)
#define READ_window(name, value) read_window(json, name, view, err)

#define NODE(M)                                                                                              \
    M(needed, "name", name)                                                                                  \
    M(node_state, "state", state)                                                                            \
    M(text, "pool", pool)                                                                                    \
    M(pool_kind, "pool_kind", pool_kind)                                                                     \
    M(text, "gpu_type", gpu_type)                                                                            \
    M(number, "gpus", gpus)                                                                                  \
    M(number, "free_gpus", free_gpus)                                                                        \
    M(number, "unavailable_gpus", unavailable_gpus)                                                          \
    M(text, "unavailable", unavailable)                                                                      \
    M(thousandths, "cpus", millicpus)                                                                        \
    M(thousandths, "free_cpus", free_millicpus)                                                              \
    M(number, "memory_bytes", memory_bytes)                                                                  \
    M(number, "free_memory_bytes", free_memory_bytes)                                                        \
    M(text, "address", address)                                                                              \
    M(text, "version", version)                                                                              \
    M(text, "host_id", host_id)                                                                              \
    M(isolation, "isolation", isolation)                                                                     \
    M(flag, "slots", slots)                                                                                  \
    M(seconds, "beat_age_s", heartbeat_age_ms)                                                               \
    M(text, "reason", reason)                                                                                \
    M(json, "labels", labels)                                                                                \
    M(time, "expires_at", expires_ms)                                                                        \
    M(window, "window", window_from_ms)                                                                      \
    M(json, "devices", devices)
DEFINE_VIEW(node_view, NODE, .json = json, .heartbeat_age_ms = -1)

/* --- windows -------------------------------------------------------------------------------------------- */

#define WINDOW(M)                                                                                            \
    M(needed, "id", id)                                                                                      \
    M(json, "nodes", nodes)                                                                                  \
    M(text, "pool", pool)                                                                                    \
    M(time, "from", from_ms)                                                                                 \
    M(time, "until", until_ms)                                                                               \
    M(flag, "hard", hard)                                                                                    \
    M(text, "reason", reason)                                                                                \
    M(text, "owner", owner)                                                                                  \
    M(time, "created_at", created_ms)
DEFINE_VIEW(window_view, WINDOW, .json = json)

/* --- tokens --------------------------------------------------------------------------------------------- */

#define TOKEN(M)                                                                                             \
    M(needed, "id", id)                                                                                      \
    M(role, "role", role)                                                                                    \
    M(text, "owner", owner)                                                                                  \
    M(time, "created_at", created_ms)                                                                        \
    M(time, "expires_at", expires_ms)                                                                        \
    M(flag, "revoked", revoked)                                                                              \
    M(time, "last_used_at", used_ms)                                                                         \
    M(shown, "node", node)                                                                                   \
    M(shown, "project", project)                                                                             \
    M(shown, "subject", subject)                                                                             \
    M(shown, "groups", groups)                                                                               \
    M(shown, "secret", secret)
DEFINE_VIEW(token_view, TOKEN, .json = json)

#define JOIN_TOKEN(M)                                                                                        \
    M(needed, "token", token)                                                                                \
    M(time, "expires_at", expires_ms)                                                                        \
    M(text, "pool", pool)                                                                                    \
    M(flag, "reserved", reserved)                                                                            \
    M(text, "ca_pin", ca_pin)                                                                                \
    M(text, "url", url)
DEFINE_VIEW(join_token_view, JOIN_TOKEN, .json = json)

/* --- audit ---------------------------------------------------------------------------------------------- */

#define AUDIT(M)                                                                                             \
    M(sequence, "seq", seq)                                                                                  \
    M(time, "at", at_ms)                                                                                     \
    M(text, "owner", owner)                                                                                  \
    M(role, "role", role)                                                                                    \
    M(text, "token", token)                                                                                  \
    M(needed, "address", address)                                                                            \
    M(needed, "method", method)                                                                              \
    M(needed, "path", path)                                                                                  \
    M(text, "subject", subject)                                                                              \
    M(number, "status", status)                                                                              \
    M(text, "code", code)                                                                                    \
    M(text, "detail", detail)                                                                                \
    M(needed, "hash", hash)
DEFINE_VIEW(audit_view, AUDIT, .json = json)
