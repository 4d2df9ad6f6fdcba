/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a job that was made for it. Whatever ends the one ends the other: the job's own process
 * sees the end of the command, and what is lost on the way here cancels the job. */
#include "client/cli/stream/interactive.h"

#include "client/cli/common/follow.h"
#include "client/cli/show/print.h"
#include "client/cli/stream/session.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

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

/* Where the stream says that the job ends, the job's own exit code counts: its end and the command's are
 * one. Every other failure is one of gpuctl or of the way. */
static bool end(struct api *api, const struct job_view *job, bool lost, int *ret_exit, struct err *err)
{
    if (lost) {
        struct err ignored;
        int of_job;
        print_note("canceling job %s, which has lost its command", job->id);
        autojson json_t *reply = api_ask(api, "POST", NULL, &ignored, "/v1/jobs/%s/cancel", job->id);
        if (reply != NULL) {
            follow_job(api, job, true, &of_job, &ignored);
        }
        return false;
    }
    return follow_job(api, job, true, ret_exit, err);
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
    const struct session_request request = {
        .job_id = job->id, .command = joined, .input = true, .terminal = terminal, .interruptible = true};
    bool good = session_run(api, &request, ret_exit, err);
    if (!good && err->code == ERR_CONFLICT && !quiet) {
        print_note("%s", err->text); /* somebody else may have ended the job */
    }
    return end(api, job, !good && err->code != ERR_CONFLICT, ret_exit, err);
}
