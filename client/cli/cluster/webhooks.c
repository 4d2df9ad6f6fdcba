/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl webhooks`: makes, lists, changes and removes webhooks, and shows and repeats what they were told. A
 * webhook is named by its id, the beginning of it, or its name. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"

static json_t *find(const struct call *call, struct err *err)
{
    return answer_find(call, "/v1/webhooks?limit=200", "webhooks", "webhook", "see gpuctl webhooks list",
                       err);
}

/* "a,b" as an array of texts. */
static json_t *split(const char *list)
{
    json_t *items = json_array();
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        json_array_append_new(items, json_stringn_nocheck(list, length));
        list += length;
        list += *list == ',';
    }
    return items;
}

/* --- list, show --- */

static const struct option_row list_rows[] = {ROW_QUIET("ids alone"), ROW_FORMAT, ROWS_END};

static void show_state(const json_t *webhook, const char *member, struct text *out)
{
    bool failing = json_string_of(webhook, "failing_since") != NULL;
    if (!json_is_true(json_object_get(webhook, "enabled"))) {
        text_append(out, "disabled");
    } else {
        text_append(out, failing ? "failing" : "ok");
    }
}

static const struct column columns[] = {COLUMN("ID", "id", cell_plain),
                                        COLUMN("NAME", "name", cell_plain),
                                        COLUMN("STATE", "enabled", show_state),
                                        COLUMN("OF", "scope", cell_plain),
                                        COLUMN("PROJECT", "project", cell_plain),
                                        COLUMN("EVENTS", "events", cell_words),
                                        COLUMN("URL", "url", cell_plain),
                                        WIDE_COLUMN("OWNER", "owner", cell_plain),
                                        WIDE_COLUMN("TASKS", "tasks", cell_yes),
                                        WIDE_COLUMN("FAILURES", "failures", cell_plain),
                                        WIDE_COLUMN("REASON", "reason", cell_plain),
                                        WIDE_COLUMN("CREATED", "created_at", cell_time)};

static const struct listing webhooks = {
    .path = "/v1/webhooks", .name = "webhooks", LIST_COLUMNS(columns), .key = "id"};

static const struct verb verb_list = {
    .name = "list",
    .summary = "List your webhooks; an administrator sees all.",
    LISTS(webhooks),
    .rows = {list_rows},
};

static void print_webhook(const struct call *call, const json_t *webhook, struct text *out)
{
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        autotext struct text cell = {0};
        columns[i].show(webhook, columns[i].member, &cell);
        text_printf(out, "%-8s %s\n", columns[i].title, cell.length > 0 ? cell.bytes : "-");
    }
}

static bool show_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *webhook = find(call, err);
    return answer_show(call, webhook, print_webhook, err);
}

static const struct verb verb_show = {
    .name = "show",
    .arguments = "ID",
    .summary = "Show one webhook.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = show_run,
};

/* --- create --- */

struct create_options {
    const char *name, *scope, *project, *events, *out;
    bool tasks;
};

static const struct option_row create_rows[] = {
    ROW_TEXT(struct create_options, name, 0, "name", "NAME", "for people, and for submit --notify",
             .sent_as = "name"),
    ROW_CHOICE(struct create_options, scope, 0, "of", "WHOSE",
               "your jobs, those that name it with --notify, or as an administrator everybody's",
               "own|named|all", .absent_text = "own", .sent_as = "scope"),
    ROW_TEXT(struct create_options, project, 0, "project", "NAME", "jobs of this project alone",
             .sent_as = "project"),
    ROW_TEXT(struct create_options, events, 0, "events", "LIST",
             "kinds of events (default succeeded,failed,canceled,timed_out,requeued,idle)"),
    ROW_FLAG(struct create_options, tasks, 0, "tasks", "also events of tasks of arrays", .sent_as = "tasks"),
    ROW_TEXT(struct create_options, out, 0, "out", "FILE",
             "write the secret there, for you alone, instead of to stdout"),
    ROW_FORMAT,
    ROWS_END};

static bool show_secret(const struct call *call, const json_t *webhook, struct err *err)
{
    const struct create_options *options = call->options;
    autofree char *note =
        xprintf("webhook %s is made; this secret is shown once, and its receiver checks signatures with it",
                print_text_of(webhook, "id"));
    return answer_secret(call, webhook, options->out, note, err);
}

static bool create_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct create_options *options = call->options;
    autojson json_t *wanted = json_object();
    json_object_set_new(wanted, "url", json_string(call->rest[0]));
    option_send(create_rows, options, wanted);
    if (options->events != NULL) {
        json_object_set_new(wanted, "events", split(options->events));
    }
    autojson json_t *webhook = api_ask(call->api, "POST", wanted, err, "/v1/webhooks");
    return webhook != NULL && show_secret(call, webhook, err);
}

static const struct verb verb_create = {
    .name = "create",
    .arguments = "URL",
    .summary = "Make a webhook and print its secret.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct create_options),
    .rows = {create_rows},
    .run = create_run,
};

/* --- update --- */

struct update_options {
    const char *url, *events;
    bool tasks, no_tasks, enable, disable;
};

static const struct option_row update_rows[] = {
    ROW_TEXT(struct update_options, url, 0, "to", "URL", "where events go from now on", .sent_as = "url"),
    ROW_TEXT(struct update_options, events, 0, "events", "LIST", "kinds of events"),
    ROW_FLAG(struct update_options, tasks, 0, "tasks", "also events of tasks of arrays"),
    ROW_FLAG(struct update_options, no_tasks, 0, "no-tasks", "no events of tasks"),
    ROW_FLAG(struct update_options, enable, 0, "enable", "tell it again of what happens from now on"),
    ROW_FLAG(struct update_options, disable, 0, "disable", "tell it nothing, and give up what waits"),
    ROW_FORMAT,
    ROWS_END};

static bool put_flag(json_t *body, const char *member, bool yes, bool no, struct err *err)
{
    if (yes || no) {
        json_object_set_new(body, member, json_boolean(yes));
    }
    return !(yes && no) || err_field(err, ERR_USAGE, member, NULL, "give one of both");
}

static bool update_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct update_options *options = call->options;
    autojson json_t *body = json_object();
    option_send(update_rows, options, body);
    if (options->events != NULL) {
        json_object_set_new(body, "events", split(options->events));
    }
    if (!put_flag(body, "tasks", options->tasks, options->no_tasks, err) ||
        !put_flag(body, "enabled", options->enable, options->disable, err)) {
        return false;
    }
    autojson json_t *webhook = find(call, err);
    if (webhook == NULL) {
        return false;
    }
    autojson json_t *changed =
        api_ask(call->api, "PATCH", body, err, "/v1/webhooks/%s", json_string_of(webhook, "id"));
    return answer_show(call, changed, print_webhook, err);
}

static const struct verb verb_update_webhook = {
    .name = "update",
    .arguments = "ID",
    .summary = "Change a webhook.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct update_options),
    .rows = {update_rows},
    .run = update_run,
};

/* --- remove, test --- */

static bool remove_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *webhook = find(call, err);
    const char *id = json_string_of(webhook, "id");
    autofree char *path = xprintf("/v1/webhooks/%s", id != NULL ? id : "");
    if (webhook == NULL ||
        !api_send(call->api, &(struct request){.method = "DELETE", .path = path}, NULL, err)) {
        return false;
    }
    print_note("webhook %s is removed", id);
    return true;
}

static const struct verb verb_remove = {
    .name = "remove",
    .arguments = "ID",
    .summary = "Remove a webhook, with what is left to tell it.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .run = remove_run,
};

static bool test_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *webhook = find(call, err);
    if (webhook == NULL) {
        return false;
    }
    autojson json_t *sent =
        api_ask(call->api, "POST", NULL, err, "/v1/webhooks/%s/test", json_string_of(webhook, "id"));
    return answer_member(call, sent, "delivery", err);
}

static const struct verb verb_test = {
    .name = "test",
    .arguments = "ID",
    .summary = "Send a webhook a test, and print the id of its delivery.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = test_run,
};

/* --- deliveries, replay --- */

struct deliveries_options {
    const char *state;
};

static const struct option_row deliveries_rows[] = {ROW_CHOICE(struct deliveries_options, state, 's', "state",
                                                               "STATE", "those in this state alone",
                                                               "PENDING|DELIVERED|FAILED"),
                                                    ROW_QUIET("ids alone"), ROW_FORMAT, ROWS_END};

static void show_answer(const json_t *delivery, const char *member, struct text *out)
{
    if (json_is_integer(json_object_get(delivery, member))) {
        cell_plain(delivery, member, out);
    } else {
        cell_plain(delivery, "error", out);
    }
}

static const struct column delivery_columns[] = {
    COLUMN("ID", "id", cell_plain),           COLUMN("CREATED", "created_at", cell_time),
    COLUMN("JOB", "job_id", cell_plain),      COLUMN("EVENT", "event", cell_plain),
    COLUMN("STATE", "state", cell_plain),     COLUMN("TRIES", "tries", cell_plain),
    COLUMN("ANSWER", "status", show_answer),  WIDE_COLUMN("TRIED", "tried_at", cell_time),
    WIDE_COLUMN("NEXT", "next_at", cell_time)};

static const struct listing deliveries = {.name = "deliveries", LIST_COLUMNS(delivery_columns), .key = "id"};

static bool deliveries_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct deliveries_options *options = call->options;
    autotext struct text path = {0}, out = {0};
    autojson json_t *webhook = find(call, err);
    if (webhook == NULL) {
        return false;
    }
    text_printf(&path, "/v1/webhooks/%s/deliveries?limit=200", json_string_of(webhook, "id"));
    api_query(&path, "state", options->state);
    autojson json_t *items = api_list(call->api, path.bytes, "deliveries", "cursor", LIMIT_LISTED, err);
    if (items == NULL) {
        return false;
    }
    list_print(call, &deliveries, items, &out);
    return print_out(&out, err);
}

static const struct verb verb_deliveries = {
    .name = "deliveries",
    .arguments = "ID",
    .summary = "List what a webhook was told in the last week, the newest first.",
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct deliveries_options),
    .rows = {deliveries_rows},
    .run = deliveries_run,
};

static bool replay_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *body = json_object();
    autojson json_t *webhook = find(call, err);
    if (webhook == NULL) {
        return false;
    }
    if (call->rest_count > 1) {
        json_t *named = json_array();
        for (size_t i = 1; i < call->rest_count; i++) {
            json_array_append_new(named, json_string(call->rest[i]));
        }
        json_object_set_new(body, "deliveries", named);
    }
    autojson json_t *answer =
        api_ask(call->api, "POST", body, err, "/v1/webhooks/%s/replay", json_string_of(webhook, "id"));
    const bool more = json_is_true(json_object_get(answer, "more"));
    return answer_note(call, answer, err, "%lld deliveries are sent again%s",
                       (long long)json_integer_value(json_object_get(answer, "replayed")),
                       more ? "; there are more: ask again" : "");
}

static const struct verb verb_replay = {
    .name = "replay",
    .arguments = "ID [DELIVERY...]",
    .summary = "Send deliveries again: those that are named, or all that have failed.",
    .least = 1,
    .most = 1 + LIMIT_REPLAY,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = replay_run,
};

static const struct verb *const nested[] = {&verb_create,         &verb_list,   &verb_show,
                                            &verb_update_webhook, &verb_remove, &verb_test,
                                            &verb_deliveries,     &verb_replay, NULL};

const struct verb verb_webhooks = {
    .name = "webhooks",
    .summary = "Tell people and machines of what happens to jobs.",
    .nested = nested,
};
