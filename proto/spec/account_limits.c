/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes limits as JSON. Decoded limits need no further checks: each type occurs once and numbers
 * are in range. Encoded limits read back equal. The core decides what a limit means. */
#include "proto/spec/account_limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/spec/amounts.h"
#include "proto/spec/node_label.h"

void account_limits_init(struct account_limits *limits)
{
    *limits = (struct account_limits){.max_millicpus = -1,
                                      .max_memory_bytes = -1,
                                      .max_running_jobs = -1,
                                      .max_queued_jobs = -1,
                                      .weight = WEIGHT_OF_ONE,
                                      .keep_jobs_days = -1,
                                      .keep_logs_days = -1,
                                      .keep_runs_days = -1,
                                      .idle_after_ms = -1,
                                      .idle_action = IDLE_TELL,
                                      .idle_grace_ms = DEFAULT_IDLE_GRACE_MS};
}

static void types_finish(struct type_limit *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(types[i].type);
    }
    free(types);
}

static void members_finish(struct project_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(members[i].name);
    }
    free(members);
}

void account_limits_finish(struct account_limits *limits)
{
    types_finish(limits->quota, limits->quota_count);
    types_finish(limits->most, limits->most_count);
    members_finish(limits->members, limits->member_count);
    text_list_finish(&limits->pools);
    account_limits_init(limits);
}

static struct type_limit *types_copy(const struct type_limit *types, size_t count)
{
    struct type_limit *copy = count > 0 ? xalloc(count * sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++) {
        copy[i] = (struct type_limit){.type = xstrdup(types[i].type), .gpus = types[i].gpus};
    }
    return copy;
}

static struct project_member *members_copy(const struct project_member *members, size_t count)
{
    struct project_member *copy = count > 0 ? xalloc(count * sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++) {
        copy[i] = (struct project_member){.name = xstrdup(members[i].name), .role = members[i].role};
    }
    return copy;
}

void account_limits_copy(const struct account_limits *limits, struct account_limits *ret_copy)
{
    *ret_copy = *limits;
    ret_copy->quota = types_copy(limits->quota, limits->quota_count);
    ret_copy->most = types_copy(limits->most, limits->most_count);
    ret_copy->members = members_copy(limits->members, limits->member_count);
    ret_copy->pools = (struct text_list){0};
    for (size_t i = 0; i < limits->pools.count; i++) {
        text_list_add(&ret_copy->pools, xstrdup(limits->pools.items[i]));
    }
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool only_members(const json_t *json, enum account_kind kind, struct err *err)
{
    static const char *const members[ACCOUNT_KIND_COUNT] = {
        [ACCOUNT_PROJECT] =
            (" quota max_gpus max_cpus max_memory max_running_jobs max_queued_jobs gpu_hours weight "
             "keep_jobs_days "
             "keep_logs_days keep_runs_days idle_after_s idle_action idle_grace_s members max_priority "
             "pools on_disconnect "),
        [ACCOUNT_USER] = " max_gpus max_cpus max_memory max_running_jobs max_queued_jobs gpu_hours weight ",
        [ACCOUNT_POOL] = " lend isolation ",
    };
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
        autotext struct text word = {0};
        text_printf(&word, " %s ", name);
        if (strchr(name, ' ') == NULL && strstr(members[kind], word.bytes) != NULL) {
            continue;
        }
        if (kind == ACCOUNT_USER && strcmp(name, "quota") == 0) {
            return err_field(err, ERR_FIELD, "quota",
                             "give the quota to a project, or bound the user with max_gpus",
                             "only projects have quotas");
        }
        err_field(err, ERR_UNKNOWN_FIELD, name, NULL, "a %s has no limit %.64s", account_kind_text(kind),
                  name);
        return err_hint(err, "known:%s", members[kind]);
    }
    return true;
}

static bool read_type(const char *field, const char *type, const json_t *value, int64_t min,
                      struct type_limit *types, size_t *count, struct err *err)
{
    if (json_is_null(value)) {
        return true;
    }
    bool any = strcmp(type, ANY_TYPE) == 0 && min == 0;
    if (!any && !text_is_name(type, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_FIELD, field, NULL, "\"%.64s\" in %s is no GPU type", type, field);
    }
    for (size_t i = 0; i < *count; i++) {
        if (strcasecmp(types[i].type, type) == 0) {
            return err_field(err, ERR_FIELD, field, NULL, "%s names %.64s twice", field, type);
        }
    }
    int64_t gpus;
    if (!json_whole(value, &gpus) || gpus < min || gpus > LIMIT_ACCOUNT_GPUS) {
        return err_field(err, ERR_FIELD, field, "leave the type out where there is no limit",
                         "%s of %.64s must be a whole number from %lld to %d", field, type, (long long)min,
                         LIMIT_ACCOUNT_GPUS);
    }
    types[(*count)++] = (struct type_limit){.type = xstrdup(type), .gpus = gpus};
    return true;
}

/* Reads {"A10": 8, "*": 32}; null means no limit. */
static bool read_types(const json_t *json, const char *field, int64_t min, struct type_limit **ret_types,
                       size_t *ret_count, struct err *err)
{
    const json_t *object = json_object_get(json, field);
    if (object == NULL || json_is_null(object)) {
        return true;
    }
    if (!json_is_object(object) || json_object_size(object) > LIMIT_ACCOUNT_TYPES) {
        return err_field(err, ERR_FIELD, field, "write {\"A10\": 8}",
                         "%s must be an object of up to %d GPU types with numbers", field,
                         LIMIT_ACCOUNT_TYPES);
    }
    size_t size = json_object_size(object);
    *ret_types = size > 0 ? xzalloc(size * sizeof **ret_types) : NULL;
    const char *type;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, type, value) {
        if (!read_type(field, type, value, min, *ret_types, ret_count, err)) {
            return false;
        }
    }
    return true;
}

static bool refuse_hours(struct err *err)
{
    return err_field(err, ERR_FIELD, "gpu_hours", "write {\"hours\": 100, \"period_s\": 86400}",
                     "gpu_hours must have hours from 0 to %lld and period_s from %d to %lld", LIMIT_GPU_HOURS,
                     LIMIT_PERIOD_MIN_S, LIMIT_PERIOD_MAX_S);
}

static bool read_hours(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *object = json_object_get(json, "gpu_hours");
    if (object == NULL || json_is_null(object)) {
        return true;
    }
    const json_t *hours = json_object_get(object, "hours"), *period = json_object_get(object, "period_s");
    double value = json_number_value(hours);
    int64_t period_s;
    if (json_object_size(object) != 2 || !json_is_number(hours) || !json_whole(period, &period_s) ||
        !(value >= 0) || value > (double)LIMIT_GPU_HOURS || period_s < LIMIT_PERIOD_MIN_S ||
        period_s > LIMIT_PERIOD_MAX_S) {
        return refuse_hours(err);
    }
    limits->gpu_ms = (int64_t)round(value * 3600000);
    limits->period_ms = 1000 * period_s;
    return true;
}

static bool read_weight(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *value = json_object_get(json, "weight");
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    double weight = round(json_number_value(value) * WEIGHT_OF_ONE);
    if (!json_is_number(value) || !(weight >= 1 && weight <= LIMIT_WEIGHT)) {
        return err_field(err, ERR_FIELD, "weight", NULL, "weight must be a number from 0.001 to %d",
                         LIMIT_WEIGHT / WEIGHT_OF_ONE);
    }
    limits->weight = (int64_t)weight;
    return true;
}

/* *ret_ms is left unchanged where the member is absent. */
static bool read_seconds(const json_t *json, const char *name, int64_t *ret_ms, struct err *err)
{
    int64_t seconds = -1;
    if (!json_read_int(json, name, 0, LIMIT_IDLE_S, &seconds, err)) {
        return false;
    }
    *ret_ms = seconds >= 0 ? seconds * 1000 : *ret_ms;
    return true;
}

static bool read_idle(const json_t *json, struct account_limits *limits, struct err *err)
{
    const char *action = NULL;
    if (!read_seconds(json, "idle_after_s", &limits->idle_after_ms, err) ||
        !read_seconds(json, "idle_grace_s", &limits->idle_grace_ms, err) ||
        !json_read_text(json, "idle_action", &action, err)) {
        return false;
    }
    return action == NULL || idle_action_from_text(action, &limits->idle_action) ||
           err_field(err, ERR_FIELD, "idle_action", "write tell or preempt", "there is no action \"%.64s\"",
                     action);
}

bool member_group_is_sound(const char *group)
{
    size_t length = 0;
    for (; group[length] != '\0'; length++) {
        if (length == LIMIT_GROUP_BYTES || (unsigned char)group[length] < ' ' || group[length] == 0x7f) {
            return false;
        }
    }
    return length > 0;
}

static bool member_is_sound(const char *name)
{
    size_t prefix = strlen(MEMBER_GROUP);
    return strncmp(name, MEMBER_GROUP, prefix) == 0 ? member_group_is_sound(name + prefix)
                                                    : text_is_name(name, LIMIT_NAME_BYTES);
}

static bool read_member(const char *name, const json_t *value, struct account_limits *limits, struct err *err)
{
    const char *role = json_is_string(value) ? json_string_value(value) : "";
    struct project_member *member = &limits->members[limits->member_count];
    if (!member_is_sound(name)) {
        return err_field(err, ERR_FIELD, "members", "write ann, or group:ml-team",
                         "\"%.64s\" in members is no name of a user or a group", name);
    }
    if (!role_from_text(role, &member->role) || member->role < ROLE_VIEWER || member->role > ROLE_OPERATOR) {
        return err_field(err, ERR_FIELD, "members", "write viewer, user or operator",
                         "members: %.64s cannot have the role \"%.64s\"", name, role);
    }
    member->name = xstrdup(name);
    limits->member_count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct project_member *)a)->name, ((const struct project_member *)b)->name);
}

/* Reads {"ann": "operator", "bob": "user"}; a name with null is no member. */
static bool read_people(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *object = json_object_get(json, "members");
    if (object == NULL || json_is_null(object)) {
        return true;
    }
    size_t size = json_object_size(object);
    if (!json_is_object(object) || size > LIMIT_PROJECT_MEMBERS) {
        return err_field(err, ERR_FIELD, "members", "write {\"ann\": \"user\"}",
                         "members must be an object of up to %d users with their roles",
                         LIMIT_PROJECT_MEMBERS);
    }
    limits->members = size > 0 ? xzalloc(size * sizeof *limits->members) : NULL;
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        if (!json_is_null(value) && !read_member(name, value, limits, err)) {
            return false;
        }
    }
    if (limits->member_count > 0) {
        qsort(limits->members, limits->member_count, sizeof *limits->members, by_name);
    }
    return true;
}

static bool read_amounts(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *cpus = json_object_get(json, "max_cpus"), *memory = json_object_get(json, "max_memory");
    return (cpus == NULL || json_is_null(cpus) ||
            cpus_decode(cpus, "max_cpus", 0, &limits->max_millicpus, err)) &&
           (memory == NULL || json_is_null(memory) ||
            memory_decode(memory, "max_memory", 0, &limits->max_memory_bytes, err));
}

static bool read_pools(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *array = json_object_get(json, "pools");
    bool sound = array == NULL || json_is_null(array) ||
                 (json_is_array(array) && json_array_size(array) <= LIMIT_POOLS);
    for (size_t i = 0; sound && i < json_array_size(array); i++) {
        const char *pool = json_string_value(json_array_get(array, i));
        sound = pool != NULL && text_is_name(pool, LIMIT_NAME_BYTES);
        if (sound) {
            text_list_add(&limits->pools, xstrdup(pool));
        }
    }
    return sound || err_field(err, ERR_FIELD, "pools", "write [\"cluster\"], or null for any pool",
                              "pools must be an array of at most %d names of pools", LIMIT_POOLS);
}

static bool read_on_disconnect(const json_t *json, struct account_limits *limits, struct err *err)
{
    const json_t *array = json_object_get(json, "on_disconnect");
    bool sound = array == NULL || json_is_null(array) || json_is_array(array);
    for (size_t i = 0; sound && i < json_array_size(array); i++) {
        enum on_disconnect rule;
        const char *text = json_string_value(json_array_get(array, i));
        sound = text != NULL && on_disconnect_from_text(text, &rule);
        limits->on_disconnect |= sound ? 1U << rule : 0;
    }
    return sound ||
           err_field(err, ERR_FIELD, "on_disconnect", "write [\"requeue\", \"fail\"], or null for any",
                     "on_disconnect must be an array of keep, requeue and fail");
}

static bool read_isolation(const json_t *json, struct account_limits *limits, struct err *err)
{
    const char *text = NULL;
    if (!json_read_text(json, "isolation", &text, err)) {
        return false;
    }
    limits->isolated = text != NULL;
    return text == NULL || strcmp(text, ISOLATION_BY_USERS) == 0 ||
           err_field(err, ERR_FIELD, "isolation", "write \"" ISOLATION_BY_USERS "\", or null for any node",
                     "isolation must be \"" ISOLATION_BY_USERS "\"");
}

static bool read_members(const json_t *json, struct account_limits *limits, struct err *err)
{
    return read_types(json, "quota", 1, &limits->quota, &limits->quota_count, err) &&
           read_types(json, "max_gpus", 0, &limits->most, &limits->most_count, err) &&
           read_amounts(json, limits, err) &&
           json_read_int(json, "max_running_jobs", 0, LIMIT_LIVE_JOBS, &limits->max_running_jobs, err) &&
           json_read_int(json, "max_queued_jobs", 0, LIMIT_LIVE_JOBS, &limits->max_queued_jobs, err) &&
           read_hours(json, limits, err) && read_weight(json, limits, err) &&
           json_read_int(json, "keep_jobs_days", 0, LIMIT_KEEP_DAYS, &limits->keep_jobs_days, err) &&
           json_read_int(json, "keep_logs_days", 0, LIMIT_KEEP_DAYS, &limits->keep_logs_days, err) &&
           json_read_int(json, "keep_runs_days", 0, LIMIT_KEEP_DAYS, &limits->keep_runs_days, err) &&
           read_idle(json, limits, err) && read_people(json, limits, err) &&
           json_read_int(json, "max_priority", -LIMIT_PRIORITY, LIMIT_PRIORITY, &limits->max_priority, err) &&
           read_pools(json, limits, err) && read_on_disconnect(json, limits, err) &&
           json_read_bool(json, "lend", &limits->lends, err) && read_isolation(json, limits, err);
}

bool account_limits_decode(const json_t *json, enum account_kind kind, struct account_limits *ret_limits,
                           struct err *err)
{
    struct account_limits limits;
    account_limits_init(&limits);
    if (!only_members(json, kind, err) || !read_members(json, &limits, err)) {
        account_limits_finish(&limits);
        return false;
    }
    *ret_limits = limits;
    return true;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static json_t *types_json(const struct type_limit *types, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(object, types[i].type, json_integer(types[i].gpus));
    }
    return object;
}

static json_t *members_json(const struct project_member *members, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(object, members[i].name, json_string(role_text(members[i].role)));
    }
    return object;
}

/* Writes whole numbers without decimals. */
static json_t *number_json(int64_t value, int64_t unit)
{
    return value % unit == 0 ? json_integer(value / unit) : json_real((double)value / (double)unit);
}

static void set_count(json_t *json, const char *name, int64_t value)
{
    if (value >= 0) {
        json_object_set_new(json, name, json_integer(value));
    }
}

void account_limits_encode(const struct account_limits *limits, enum account_kind kind, struct text *out)
{
    autojson json_t *json = json_object();
    if (kind == ACCOUNT_POOL) {
        json_object_set_new(json, "lend", json_boolean(limits->lends));
    }
    if (limits->isolated) {
        json_object_set_new(json, "isolation", json_string(ISOLATION_BY_USERS));
    }
    if (limits->quota_count > 0) {
        json_object_set_new(json, "quota", types_json(limits->quota, limits->quota_count));
    }
    if (limits->most_count > 0) {
        json_object_set_new(json, "max_gpus", types_json(limits->most, limits->most_count));
    }
    if (limits->max_millicpus >= 0) {
        json_object_set_new(json, "max_cpus", cpus_encode(limits->max_millicpus));
    }
    set_count(json, "max_memory", limits->max_memory_bytes);
    set_count(json, "max_running_jobs", limits->max_running_jobs);
    set_count(json, "max_queued_jobs", limits->max_queued_jobs);
    if (limits->period_ms > 0) {
        json_t *hours = json_object();
        json_object_set_new(hours, "hours", number_json(limits->gpu_ms, 3600000));
        json_object_set_new(hours, "period_s", json_integer(limits->period_ms / 1000));
        json_object_set_new(json, "gpu_hours", hours);
    }
    set_count(json, "keep_jobs_days", limits->keep_jobs_days);
    set_count(json, "keep_logs_days", limits->keep_logs_days);
    set_count(json, "keep_runs_days", limits->keep_runs_days);
    set_count(json, "idle_after_s", limits->idle_after_ms >= 0 ? limits->idle_after_ms / 1000 : -1);
    if (limits->idle_action != IDLE_TELL) {
        json_object_set_new(json, "idle_action", json_string(idle_action_text(limits->idle_action)));
    }
    if (limits->idle_grace_ms != DEFAULT_IDLE_GRACE_MS) {
        set_count(json, "idle_grace_s", limits->idle_grace_ms / 1000);
    }
    if (limits->member_count > 0) {
        json_object_set_new(json, "members", members_json(limits->members, limits->member_count));
    }
    if (limits->max_priority != 0) {
        json_object_set_new(json, "max_priority", json_integer(limits->max_priority));
    }
    json_t *pools = limits->pools.count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < limits->pools.count; i++) {
        json_array_append_new(pools, json_string(limits->pools.items[i]));
    }
    if (pools != NULL) {
        json_object_set_new(json, "pools", pools);
    }
    json_t *rules = limits->on_disconnect != 0 ? json_array() : NULL;
    for (int rule = 0; rules != NULL && rule < ON_DISCONNECT_COUNT; rule++) {
        if ((limits->on_disconnect & 1U << rule) != 0) {
            json_array_append_new(rules, json_string(on_disconnect_text((enum on_disconnect)rule)));
        }
    }
    if (rules != NULL) {
        json_object_set_new(json, "on_disconnect", rules);
    }
    if (limits->weight != WEIGHT_OF_ONE) {
        json_object_set_new(json, "weight", number_json(limits->weight, WEIGHT_OF_ONE));
    }
    char *text = json_text(json);
    text_append(out, text);
    free(text);
}
