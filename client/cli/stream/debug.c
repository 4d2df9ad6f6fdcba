/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl debug`: shows where the processes of all ranks are, read by a program that runs beside each of
 * them. */
#include <stdlib.h>

#include "client/cli/common/jobs.h"
#include "client/cli/frame/verb.h"
#include "client/cli/show/terminal.h"
#include "client/cli/stream/collect.h"
#include "client/cli/stream/debug_script.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

static json_t *command(void)
{
    json_t *words = json_array();
    json_array_append_new(words, json_string("sh"));
    json_array_append_new(words, json_string("-c"));
    json_array_append_new(words, json_stringn((const char *)debug_script, debug_script_length));
    return words;
}

/* What the job's programs are called may hold anything, also what a terminal would obey. */
static bool show(const struct collected *item, struct err *err)
{
    struct terminal terminal = {0};
    if (item->failed) {
        printf("=== rank %lld\n%s\n\n", (long long)item->rank, item->err.text);
        return true;
    }
    return (terminal_write(&terminal, stdout, item->output.bytes, item->output.length) &&
            terminal_write(&terminal, stdout, item->errors.bytes, item->errors.length) &&
            putchar('\n') != EOF) ||
           err_errno(err, "cannot write the stacks");
}

/* So many ranks as may be asked at once. */
static bool read_ranks(const struct call *call, const char *id, int64_t first, size_t count, int *ret_exit,
                       struct err *err)
{
    autofree struct collected *items = xzalloc(count * sizeof *items);
    autojson json_t *words = command();
    for (size_t i = 0; i < count; i++) {
        items[i].rank = first + (int64_t)i;
    }
    bool good = collect_run(call->api, id, words, items, count, err);
    for (size_t i = 0; good && i < count; i++) {
        *ret_exit = items[i].failed ? EXIT_FAILURE : *ret_exit;
        good = show(&items[i], err);
    }
    collected_finish(items, count);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    char id[RESOLVED_BYTES];
    int64_t only = NOT_GIVEN;
    struct job_view job;
    if (!resolve_rank(call->api, call->rest[0], id, &only, err) ||
        !ranks_get_job(call->api, id, false, &job, err)) {
        return false;
    }
    int64_t first = only != NOT_GIVEN ? only : 0;
    int64_t end = only != NOT_GIVEN ? only + 1 : ranks_count(&job);
    bool good = job.state == JOB_RUNNING ||
                err_set(err, ERR_CONFLICT, "job %s does not run: it is %s", id, job_state_text(job.state));
    good = good && ranks_check(&job, only, err);
    for (; good && first < end; first += CLIENT_COLLECTED) {
        int64_t left = end - first;
        size_t count = (size_t)(left < CLIENT_COLLECTED ? left : CLIENT_COLLECTED);
        good = read_ranks(call, id, first, count, ret_exit, err);
    }
    job_view_finish(&job);
    return good;
}

const struct verb verb_debug = {
    .name = "debug",
    .arguments = "JOB[.RANK]",
    .summary = "Show where the processes of a running job are: the stacks of all ranks.",
    .details =
        "Of Python programs with py-spy, where it is in the job's environment or on the node; of others, "
        "and\n"
        "without it, with gdb where that is on the node; else what the kernel says of each thread. A "
        "process\n"
        "is stopped for the moment in which it is read. The exit code is 1 when a rank could not be asked.\n"
        "\n"
        "Examples:\n"
        "  gpuctl debug x7k2            all ranks, of a job that hangs\n"
        "  gpuctl debug x7k2.3          rank 3",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .need = NEED_API,
    .run = run,
};
