/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl quotas`: lists the limits of projects and users and their use, and changes the limits. It promises
 * that limits which a command does not name stay as they are. The controller decides what a limit means. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/spec/account_limits.h"

/* --- list --- */

/* "3 of 20" */
static void show_jobs(const json_t *account, const char *member, struct text *out)
{
    autofree char *limit = xprintf("max_%s", member);
    const json_t *most = json_object_get(json_object_get(account, "limits"), limit);
    cell_plain(account, member, out);
    if (most != NULL) {
        text_printf(out, " of %lld", (long long)json_integer_value(most));
    }
}

static void show_hours(const json_t *account, const char *member, struct text *out)
{
    const json_t *limit = json_object_get(json_object_get(account, "limits"), "gpu_hours");
    if (limit != NULL) {
        text_printf(out, "%.1f of %.15g in ", json_number_value(json_object_get(account, member)),
                    json_number_value(json_object_get(limit, "hours")));
        cell_seconds(limit, "period_s", out);
    }
}

static const struct column columns[] = {
    COLUMN("KIND", "kind", cell_plain),
    COLUMN("NAME", "name", cell_plain),
    COLUMN("RUNNING", "running_jobs", show_jobs),
    COLUMN("QUEUED", "queued_jobs", show_jobs),
    COLUMN("HOURS", "period_gpu_hours", show_hours),
    COLUMN("TYPE", "gpu_type", cell_plain),
    COLUMN("GPUS", "gpus", cell_plain),
    COLUMN("BORROWED", "borrowed", cell_plain),
    COLUMN("QUOTA", "quota", cell_plain),
    COLUMN("MOST", "max_gpus", cell_plain),
};

/* The account with what one row of it says besides, which is taken over. */
static void add_row(json_t *rows, json_t *account, json_t *more)
{
    json_t *row = json_copy(account);
    json_object_update_new(row, more);
    json_array_append_new(rows, row);
}

/* One for each type, and one for all of them where that says more. */
static json_t *rows_of(const json_t *accounts)
{
    json_t *rows = json_array();
    size_t i, j;
    json_t *account, *use;
    json_array_foreach (accounts, i, account) {
        const json_t *uses = json_object_get(account, "use");
        json_t *bound = json_object_get(json_object_get(json_object_get(account, "limits"), "max_gpus"), "*");
        if (json_array_size(uses) != 1 || bound != NULL) {
            add_row(rows, account, json_pack("{s:s, s:O?}", "gpu_type", "all", "max_gpus", bound));
        }
        json_array_foreach (uses, j, use) {
            json_int_t lent = json_integer_value(json_object_get(use, "gpus")) -
                              json_integer_value(json_object_get(use, "entitled"));
            json_t *more = json_copy(use);
            json_object_set_new(more, "borrowed", json_integer(lent));
            add_row(rows, account, more);
        }
    }
    return rows;
}

static const struct listing accounts = {
    .path = "/v1/accounts", .name = "accounts", LIST_COLUMNS(columns), .rows = rows_of};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List what projects and users may use, and what they use.",
    LISTS(accounts),
    .rows = {rows_watched},
};

/* --- set and unset --- */

#define NO_LIMIT "none"

struct set_options {
    struct option_list quotas, bounds, members;
    const char *pools, *disconnect, *cpus, *memory, *running, *queued, *hours, *weight, *jobs, *logs, *runs,
        *idle, *action, *grace, *priority;
    bool force;
};

static const struct option_row set_rows[] = {
    ROW_LIST(struct set_options, quotas, 0, "quota", "TYPE=GPUS",
             "of a project: GPUs that nobody takes from it; may be repeated"),
    ROW_LIST(struct set_options, bounds, 0, "max-gpus", "[TYPE=]GPUS",
             "the most at once, of a type or of all; may be repeated"),
    ROW_TEXT(struct set_options, cpus, 0, "max-cpus", "CPUS", "the most CPUs at once"),
    ROW_TEXT(struct set_options, memory, 0, "max-memory", "SIZE",
             "the most memory at once, 512G for instance"),
    ROW_TEXT(struct set_options, running, 0, "max-running", "JOBS", "the most jobs at once"),
    ROW_TEXT(struct set_options, queued, 0, "max-queued", "JOBS", "the most jobs that wait"),
    ROW_TEXT(struct set_options, hours, 0, "gpu-hours", "HOURS/PERIOD", "GPU hours in each period: 100/1d"),
    ROW_TEXT(struct set_options, weight, 0, "weight", "NUMBER", "of its fair share (1 without)"),
    ROW_TEXT(struct set_options, jobs, 0, "keep-jobs", "DAYS",
             "of a project: remove its jobs so long after their end; 0: never"),
    ROW_TEXT(struct set_options, logs, 0, "keep-logs", "DAYS", "the same of their output; 0: with the job"),
    ROW_TEXT(struct set_options, runs, 0, "keep-runs", "DAYS",
             "the same of MLflow's runs of its jobs; 0: never"),
    ROW_TEXT(struct set_options, idle, 0, "idle-after", "TIME",
             "of a project: a job whose GPUs are nearly unused for so long is idle; 0: never"),
    ROW_TEXT(
        struct set_options, action, 0, "idle-action", "tell|preempt",
        "what happens to idle jobs: their owners are told; or also they give their GPUs back, and are held"),
    ROW_TEXT(struct set_options, grace, 0, "idle-grace", "TIME",
             "between telling and preempting (15m without)"),
    ROW_LIST(
        struct set_options, members, 0, "member", "USER=ROLE",
        "of a project: who belongs to it, as viewer, user or operator; group:NAME=ROLE is a group of the "
        "identity provider; may be repeated"),
    ROW_TEXT(struct set_options, pools, 0, "pools", "POOL[,...]",
             "of a project: where alone its jobs may run, also reserved ones; none: anywhere"),
    ROW_TEXT(struct set_options, disconnect, 0, "on-disconnect", "RULE[,...]",
             "of a project: what alone its users' jobs may do when a node is not heard: requeue,fail; none: "
             "anything"),
    ROW_TEXT(struct set_options, priority, 0, "max-priority", "NUMBER",
             "of a project: the highest that users may give a job (0 without)"),
    ROW_FLAG(struct set_options, force, 0, "force",
             "attempts above a smaller quota go on as borrowed, the youngest first"),
    ROW_FORMAT,
    ROWS_END};

/* --- values --- */

static bool refuse(const char *option, const char *example, const char *value, struct err *err)
{
    autofree char *hint = xprintf("write %s, or %s for no limit", example, NO_LIMIT);
    return err_field(err, ERR_USAGE, option, hint, "--%s does not take \"%s\"", option, value);
}

/* The number, or null for none. NULL: it is neither. */
static json_t *count_json(const char *text, int64_t most)
{
    int64_t count;
    if (strcmp(text, NO_LIMIT) == 0) {
        return json_null();
    }
    return text_to_int(text, 0, most, &count) ? json_integer(count) : NULL;
}

/* Ignores case: "a10" replaces "A10". */
static void set_type(json_t *types, const char *type, json_t *value)
{
    const char *name;
    json_t *old;
    void *next;
    json_object_foreach_safe(types, next, name, old)
    {
        if (strcasecmp(name, type) == 0) {
            json_object_del(types, name);
            break;
        }
    }
    json_object_set_new(types, type, value);
}

static bool apply_types(json_t *limits, const char *member, const char *option,
                        const struct option_list *list, struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        bool any = equals == NULL && strcmp(member, "max_gpus") == 0;
        json_t *value =
            equals != NULL || any ? count_json(any ? list->items[i] : equals + 1, LIMIT_ACCOUNT_GPUS) : NULL;
        if (value == NULL) {
            return refuse(option, any ? "A10=8 or 8" : "A10=8", list->items[i], err);
        }
        autofree char *type =
            any ? xstrdup(ANY_TYPE) : xstrndup(list->items[i], (size_t)(equals - list->items[i]));
        set_type(json_object_in(limits, member), type, value);
    }
    return true;
}

static bool apply_count(json_t *limits, const char *member, const char *option, const char *text,
                        int64_t most, struct err *err)
{
    json_t *value = text != NULL ? count_json(text, most) : NULL;
    if (value != NULL) {
        json_object_set_new(limits, member, value);
    }
    return text == NULL || value != NULL || refuse(option, "20", text, err);
}

static bool number_of(const char *text, size_t length, double *ret_value)
{
    autofree char *digits = xstrndup(text, length);
    char *end;
    *ret_value = strtod(digits, &end);
    return length > 0 && *end == '\0' && isfinite(*ret_value);
}

static bool apply_hours(json_t *limits, const char *text, struct err *err)
{
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, NO_LIMIT) == 0) {
        json_object_set_new(limits, "gpu_hours", json_null());
        return true;
    }
    const char *slash = strchr(text, '/');
    double hours;
    int64_t period_ms;
    if (slash == NULL || !number_of(text, (size_t)(slash - text), &hours) ||
        !text_to_duration_ms(slash + 1, &period_ms)) {
        return refuse("gpu-hours", "100/1d", text, err);
    }
    json_t *value = json_pack("{s:f, s:I}", "hours", hours, "period_s", (json_int_t)(period_ms / 1000));
    json_object_set_new(limits, "gpu_hours", value);
    return true;
}

static bool apply_weight(json_t *limits, const char *text, struct err *err)
{
    double weight;
    if (text == NULL) {
        return true;
    }
    if (!number_of(text, strlen(text), &weight)) {
        return err_field(err, ERR_USAGE, "weight", "write 2 or 0.5", "--weight does not take \"%s\"", text);
    }
    json_object_set_new(limits, "weight", json_real(weight));
    return true;
}

static bool apply_amounts(json_t *limits, const struct set_options *options, struct err *err)
{
    const char *cpus = options->cpus, *memory = options->memory;
    double count = 0;
    int64_t bytes = 0;
    if (cpus != NULL && strcmp(cpus, NO_LIMIT) != 0 && !number_of(cpus, strlen(cpus), &count)) {
        return refuse("max-cpus", "64", cpus, err);
    }
    if (memory != NULL && strcmp(memory, NO_LIMIT) != 0 && !text_to_size(memory, &bytes)) {
        return refuse("max-memory", "512G", memory, err);
    }
    if (cpus != NULL) {
        json_object_set_new(limits, "max_cpus", strcmp(cpus, NO_LIMIT) != 0 ? json_real(count) : json_null());
    }
    if (memory != NULL) {
        json_object_set_new(limits, "max_memory",
                            strcmp(memory, NO_LIMIT) != 0 ? json_integer(bytes) : json_null());
    }
    return true;
}

static bool apply_time(json_t *limits, const char *member, const char *option, const char *text,
                       struct err *err)
{
    int64_t ms;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, NO_LIMIT) != 0 && !text_to_duration_ms(text, &ms)) {
        return refuse(option, "30m", text, err);
    }
    json_object_set_new(limits, member, strcmp(text, NO_LIMIT) == 0 ? json_null() : json_integer(ms / 1000));
    return true;
}

static bool apply_idle(json_t *limits, const struct set_options *options, struct err *err)
{
    if (options->action != NULL) {
        json_object_set_new(limits, "idle_action",
                            json_string(options->action)); /* the controller checks it */
    }
    return apply_time(limits, "idle_after_s", "idle-after", options->idle, err) &&
           apply_time(limits, "idle_grace_s", "idle-grace", options->grace, err);
}

/* The controller checks names and roles. */
static bool apply_members(json_t *limits, const struct option_list *list, struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strrchr(list->items[i], '='); /* a group's name may have one */
        if (equals == NULL) {
            return err_field(err, ERR_USAGE, "member", "write ann=user, or ann=none to take ann out",
                             "--member does not take \"%s\"", list->items[i]);
        }
        autofree char *name = xstrndup(list->items[i], (size_t)(equals - list->items[i]));
        json_t *role = strcmp(equals + 1, NO_LIMIT) == 0 ? json_null() : json_string(equals + 1);
        json_object_set_new(json_object_in(limits, "members"), name, role);
    }
    return true;
}

static bool apply_priority(json_t *limits, const char *text, struct err *err)
{
    int64_t priority;
    if (text == NULL) {
        return true;
    }
    if (!text_to_int(text, -LIMIT_PRIORITY, LIMIT_PRIORITY, &priority)) {
        return err_field(err, ERR_USAGE, "max-priority", "write a number from -1000 to 1000",
                         "--max-priority does not take \"%s\"", text);
    }
    json_object_set_new(limits, "max_priority", json_integer(priority));
    return true;
}

/* Names with commas between. */
static void apply_names(json_t *limits, const char *member, const char *text)
{
    if (text == NULL) {
        return;
    }
    json_t *names = strcmp(text, NO_LIMIT) != 0 ? json_array() : json_null();
    autofree char *copy = xstrdup(text);
    for (char *rest = copy, *name; json_is_array(names) && (name = strsep(&rest, ",")) != NULL;) {
        json_array_append_new(names, json_string(name));
    }
    json_object_set_new(limits, member, names);
}

static bool apply(json_t *limits, const struct set_options *options, struct err *err)
{
    apply_names(limits, "pools", options->pools);
    apply_names(limits, "on_disconnect", options->disconnect);
    return apply_types(limits, "quota", "quota", &options->quotas, err) &&
           apply_types(limits, "max_gpus", "max-gpus", &options->bounds, err) &&
           apply_amounts(limits, options, err) &&
           apply_count(limits, "max_running_jobs", "max-running", options->running, LIMIT_LIVE_JOBS, err) &&
           apply_count(limits, "max_queued_jobs", "max-queued", options->queued, LIMIT_LIVE_JOBS, err) &&
           apply_count(limits, "keep_jobs_days", "keep-jobs", options->jobs, LIMIT_KEEP_DAYS, err) &&
           apply_count(limits, "keep_logs_days", "keep-logs", options->logs, LIMIT_KEEP_DAYS, err) &&
           apply_count(limits, "keep_runs_days", "keep-runs", options->runs, LIMIT_KEEP_DAYS, err) &&
           apply_idle(limits, options, err) && apply_members(limits, &options->members, err) &&
           apply_priority(limits, options->priority, err) && apply_hours(limits, options->hours, err) &&
           apply_weight(limits, options->weight, err);
}

/* --- the verbs --- */

static bool check_kind(const struct call *call, struct err *err)
{
    enum account_kind kind;
    bool good = account_kind_from_text(call->rest[0], &kind) && kind != ACCOUNT_POOL;
    return good || err_field(err, ERR_USAGE, NULL, "write project or user before the name",
                             "\"%s\" is neither a project nor a user", call->rest[0]);
}

/* "/v1/accounts/projects/vision" for the words `project vision`. */
#define ACCOUNT_PATH "/v1/accounts/%ss/%s"

/* The limits that it has now; an account that is not known has none. */
static json_t *limits_now(const struct call *call, struct err *err)
{
    autojson json_t *account = api_get(call->api, err, ACCOUNT_PATH, call->rest[0], call->rest[1]);
    if (account == NULL) {
        return err->code == ERR_NOT_FOUND ? json_object() : NULL;
    }
    return json_incref(json_object_get(account, "limits"));
}

static bool show(const struct call *call, const json_t *account, struct err *err)
{
    const json_t *limits = json_object_get(account, "limits");
    autofree char *text = json_object_size(limits) > 0 ? json_text(limits) : xstrdup("no limits");
    return answer_note(call, account, err, "%s %s: %s", call->rest[0], call->rest[1], text);
}

static bool set_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct set_options *options = call->options;
    autojson json_t *limits = limits_now(call, err);
    if (limits == NULL || !apply(limits, options, err)) {
        return false;
    }
    if (options->force) {
        json_object_set_new(limits, "force", json_true());
    }
    autojson json_t *account =
        api_ask(call->api, "PUT", limits, err, ACCOUNT_PATH, call->rest[0], call->rest[1]);
    return show(call, account, err);
}

static const struct verb verb_quotas_set = {
    .name = "set",
    .arguments = "project|user NAME",
    .summary = "Set limits of a project or a user; those that are not named stay.",
    .details = "A quota is what a project is entitled to: what it uses beyond is borrowed, and gives way to "
               "work that is "
               "entitled.\nWhere no project has a quota on a type, nobody borrows it. Each limit takes none "
               "for no limit.",
    .least = 2,
    .most = 2,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct set_options),
    .rows = {set_rows},
    .check = check_kind,
    .run = set_run,
};

struct unset_options {
    bool force;
};

static const struct option_row unset_rows[] = {
    ROW_FLAG(struct unset_options, force, 0, "force",
             "attempts that lose their entitlement go on as borrowed"),
    ROW_FORMAT, ROWS_END};

static bool unset_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct unset_options *options = call->options;
    const char *path = options->force ? ACCOUNT_PATH "?force=1" : ACCOUNT_PATH;
    autojson json_t *account = api_ask(call->api, "DELETE", NULL, err, path, call->rest[0], call->rest[1]);
    return show(call, account, err);
}

static const struct verb verb_quotas_unset = {
    .name = "unset",
    .arguments = "project|user NAME",
    .summary = "Take all limits of a project or a user away.",
    .least = 2,
    .most = 2,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct unset_options),
    .rows = {unset_rows},
    .check = check_kind,
    .run = unset_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_quotas_set, &verb_quotas_unset, NULL};

const struct verb verb_quotas = {
    .name = "quotas",
    .summary = "Show and set what projects and users may use.",
    .nested = nested,
};
