/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl update`: changes the priority and the time limit of a job that has not ended. */
#include <stdint.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/spec/spec.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct update_options {
    int64_t priority;
    const char *time_limit;
};

static const struct option_row rows[] = {ROW_INT(struct update_options, priority, 0, "priority", "N",
                                                 "higher goes first", -LIMIT_PRIORITY, LIMIT_PRIORITY,
                                                 .absent = SPEC_NO_PRIORITY, .sent_as = "priority"),
                                         ROW_TEXT(struct update_options, time_limit, 't', "time-limit",
                                                  "DURATION", "from the start: 90s, 15m, 2h; or \"none\""),
                                         ROW_FORMAT, ROWS_END};

static bool set_limit(json_t *change, const char *text, struct err *err)
{
    int64_t ms = 0;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "none") == 0) {
        return json_object_set_new(change, "time_limit_s", json_null()) == 0;
    }
    if (!text_to_duration_ms(text, &ms)) {
        return err_field(err, ERR_USAGE, "time-limit", "write 90s, 15m, 2h or none",
                         "--time-limit \"%s\" is not a duration", text);
    }
    return json_object_set_new(change, "time_limit_s", json_seconds(ms)) == 0;
}

/* New reference; NULL on failure. */
static json_t *change_of(const struct update_options *options, struct err *err)
{
    autojson json_t *change = json_object();
    option_send(rows, options, change);
    if (!set_limit(change, options->time_limit, err)) {
        return NULL;
    }
    if (json_object_size(change) == 0) {
        err_field(err, ERR_USAGE, NULL, "give --priority or --time-limit", "nothing is to be changed");
        return NULL;
    }
    return give(change);
}

static bool check(const struct call *call, struct err *err)
{
    autojson json_t *change = change_of(call->options, err);
    return change != NULL;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *change = change_of(call->options, err);
    autojson json_t *job = api_ask(call->api, "PATCH", change, err, "/v1/jobs/%s", call->id);
    autotext struct text limit = {0};
    cell_seconds(job, "time_limit_s", &limit);
    return answer_note(
        call, job, err, "job %s is %s, with priority %lld and %s%s", call->id, print_text_of(job, "state"),
        (long long)json_integer_value(json_object_get(job, "priority")),
        limit.length > 0 ? "a time limit of " : "no time limit", limit.length > 0 ? limit.bytes : "");
}

const struct verb verb_update = {
    .name = "update",
    .arguments = "ID",
    .summary = "Change the priority or the time limit of a job.",
    .details = "A new time limit counts from the start of the job: a limit that has passed already ends it.",
    OF_A_JOB,
    .options_size = sizeof(struct update_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
