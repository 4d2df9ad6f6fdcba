/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl exec`: runs a command beside a rank of a running job, and exits as it did. */
#include <stdint.h>
#include <string.h>

#include "client/cli/frame/verb.h"
#include "client/cli/stream/session.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct exec_options {
    bool interactive, terminal;
    int64_t rank;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct exec_options, interactive, 'i', "stdin", "the command reads what gpuctl's stdin gets"),
    ROW_FLAG(struct exec_options, terminal, 't', "tty", "the command has a terminal, as a shell wants it"),
    ROW_INT(struct exec_options, rank, 0, "rank", "N", "the rank beside which it runs (default: 0)", 0,
            LIMIT_GPUS - 1),
    ROWS_END};

/* Without a command it is a shell of the job's user. */
static json_t *command_of(const struct call *call)
{
    json_t *command = json_array();
    size_t first = call->rest_count > 1 && strcmp(call->rest[1], "--") == 0 ? 2 : 1;
    for (size_t i = first; i < call->rest_count; i++) {
        json_array_append_new(command, json_string(call->rest[i]));
    }
    if (json_array_size(command) == 0) {
        json_array_append_new(command, json_string("sh"));
        json_array_append_new(command, json_string("-c"));
        json_array_append_new(
            command, json_string("if command -v bash > /dev/null; then exec bash; else exec sh; fi"));
    }
    return command;
}

static bool check(const struct call *call, struct err *err)
{
    const struct exec_options *options = call->options;
    bool dashed = call->rest_count > 1 && call->rest[1][0] == '-' && strcmp(call->rest[1], "--") != 0;
    if (dashed) {
        err_set(err, ERR_USAGE, "\"%s\" stands behind the job", call->rest[1]);
        return err_hint(err, "options stand before it: gpuctl exec -it JOB -- COMMAND");
    }
    if (call->rest_count < 2 && !options->terminal && !options->interactive) {
        err_set(err, ERR_USAGE, "there is no command");
        return err_hint(err, "gpuctl exec JOB -- COMMAND, or gpuctl exec -it JOB for a shell");
    }
    return session_allowed(options->interactive, options->terminal, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct exec_options *options = call->options;
    autojson json_t *command = command_of(call);
    const struct session_request request = {.job_id = call->id,
                                            .rank = options->rank,
                                            .command = command,
                                            .input = options->interactive,
                                            .terminal = options->terminal};
    return session_run(call->api, &request, ret_exit, err);
}

const struct verb verb_exec = {
    .name = "exec",
    .arguments = "JOB [--] [COMMAND [ARGUMENT]...]",
    .summary = "Run a command beside a rank of a running job.",
    .details = "It has the rank's user, environment, folder and limits, and ends with the job at the latest. "
               "gpuctl exits\n"
               "with its code (128+N for signal N), and with 125 when gpuctl itself failed. It is your own "
               "job, or you are\n"
               "an administrator. Options stand before JOB.\n"
               "\n"
               "Examples:\n"
               "  gpuctl exec x7k2 -- nvidia-smi\n"
               "  gpuctl exec -it x7k2                     a shell\n"
               "  gpuctl exec -it --rank 3 x7k2 -- py-spy top --pid 1234\n"
               "  gpuctl exec -i x7k2 -- tar x < more.tar",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .need = NEED_JOB,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct exec_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
