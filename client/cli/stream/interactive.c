/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a job that was made for it. Whatever ends the one ends the other: the job's own process
 * sees the end of the command, and gpuctl cancels the job before it leaves the command alone. */
#include "client/cli/stream/interactive.h"

#include <string.h>

#include "client/cli/common/follow.h"
#include "client/cli/show/print.h"
#include "client/cli/stream/session.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

/* The script, its name, and the command behind it. New reference. */
static json_t *wrap(const unsigned char *script, size_t length, const json_t *command)
{
    json_t *words = json_array();
    json_array_append_new(words, json_string("sh"));
    json_array_append_new(words, json_string("-c"));
    json_array_append_new(words, json_stringn((const char *)script, length));
    json_array_append_new(words, json_string("gpuctl-run"));
    for (size_t i = 0; i < json_array_size(command); i++) {
        json_array_append(words, json_array_get(command, i));
    }
    return words;
}

bool interactive_hold(json_t *spec, json_t **ret_command, struct err *err)
{
    autojson json_t *command = json_incref(json_object_get(spec, "command"));
    if (json_array_size(command) == 0) {
        err_field(err, ERR_USAGE, "stdin", "leave out -i", "-i is for jobs with a command");
        return false;
    }
    if (json_integer_value(json_object_get(spec, "retries")) > 0) {
        /* nobody would come to a second attempt */
        err_field(err, ERR_USAGE, "retries", "leave out one of the two", "-i runs the command once");
        return false;
    }
    json_object_set_new(spec, "command", wrap(held_script, held_script_length, command));
    *ret_command = give(command);
    return true;
}

struct held {
    struct api *api;
    const struct job_view *job;
    bool left; /* it ends without us */
};

/* When gpuctl itself ends, it asks once: without its stream the job ends, too, only as one that has FAILED.
 */
static json_t *ask_cancel(const struct held *held, bool ends, struct err *err)
{
    if (!ends) {
        return api_ask(held->api, "POST", NULL, err, "/v1/jobs/%s/cancel", held->job->id);
    }
    autofree char *path = xprintf("/v1/jobs/%s/cancel", held->job->id);
    const struct request request = {.method = "POST",
                                    .path = path,
                                    .body = "{}",
                                    .length = strlen("{}"),
                                    .content_type = "application/json",
                                    .timeout_ms = CLIENT_CANCEL_MS};
    return api_send_json(held->api, &request, err);
}

/* Cancels the job, before it can see the end of its command. Where the stream says that the job ends, the
 * job's own exit code counts: its end and the command's are one. */
static void lost(void *closure, const struct err *why)
{
    struct held *held = closure;
    struct err err;
    if (why->code == ERR_CONFLICT) {
        return;
    }
    print_note("canceling job %s, which loses its command", held->job->id);
    autojson json_t *reply = ask_cancel(held, why->code == ERR_IO, &err);
    if (reply == NULL && err.code != ERR_CONFLICT) { /* else it has just ended otherwise */
        print_note("cannot cancel job %s, which ends without its command: %s", held->job->id, err.text);
        held->left = true;
    }
}

bool interactive_run(struct api *api, const struct job_view *job, json_t *command, bool terminal, bool quiet,
                     int *ret_exit, struct err *err)
{
    bool runs;
    if (!follow_start(api, job, quiet, true, &runs, ret_exit, err)) {
        return false;
    }
    if (!runs) {
        return true; /* it was canceled, or could not start */
    }
    autojson json_t *joined = wrap(joined_script, joined_script_length, command);
    struct held held = {.api = api, .job = job};
    const struct session_request request = {.job_id = job->id,
                                            .command = joined,
                                            .input = true,
                                            .terminal = terminal,
                                            .interruptible = true,
                                            .lost = lost,
                                            .closure = &held};
    bool good = session_run(api, &request, ret_exit, err);
    bool ends = !good && err->code == ERR_CONFLICT; /* somebody else may have ended the job */
    if (ends && !quiet) {
        print_note("%s", err->text);
    }
    if (good || ends) {
        return follow_job(api, job, true, ret_exit, err);
    }
    struct err ignored;
    int of_job;
    if (!held.left) {
        follow_job(api, job, true, &of_job, &ignored);
    }
    return false;
}
