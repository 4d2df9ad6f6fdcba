/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl logs`: shows the output of a job, merged or of one stream, so far or as it comes. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/transport/feed.h"
#include "client/cli/common/follow.h"
#include "client/cli/show/output.h"
#include "client/cli/transport/pages.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define LIMIT_TAIL_LINES 1000000 /* that are kept in memory */
struct logs_options {
    bool follow;
    int64_t rank, attempt, tail; /* -1: not given */
    const char *stream;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct logs_options, follow, 'f', "follow", "wait for more, until the job has ended"),
    ROW_INT(struct logs_options, rank, 'r', "rank", "N", "only of this rank", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN),
    ROW_CHOICE(struct logs_options, stream, 0, "stream", "NAME", "only one of the two", "stdout|stderr"),
    ROW_INT(struct logs_options, tail, 'n', "tail", "LINES", "only the last lines of what is there", 0,
            LIMIT_TAIL_LINES, .absent = NOT_GIVEN),
    ROW_INT(struct logs_options, attempt, 0, "attempt", "N", "of an earlier attempt (default: the newest)", 1,
            INT32_MAX, .absent = NOT_GIVEN),
    ROWS_END};

static void make_path(const struct logs_options *options, const char *id, struct text *path)
{
    text_printf(path, "/v1/jobs/%s/logs", id);
    pages_number(path, "rank", options->rank);
    pages_number(path, "attempt", options->attempt);
    api_query(path, "stream", options->stream);
}

/* One stream that is not followed comes as it is, byte by byte. */
static bool copy_stream(struct api *api, const char *path, const char *stream, struct err *err)
{
    FILE *out = strcmp(stream, stream_text(STREAM_STDERR)) == 0 ? stderr : stdout;
    bool copied = api_send(
        api, &(struct request){.method = "GET", .path = path, .sink = out, .timeout_ms = -1}, NULL, err);
    return copied && (fflush(out) == 0 || err_errno(err, "cannot write the job's output"));
}

/* --- merged --- */

/* What is stored; *ret_last_id is where it ended, the caller's. */
static bool read_stored(struct api *api, const char *path, struct output *output, char **ret_last_id,
                        struct err *err)
{
    autotext struct text stored = {0};
    text_append(&stored, path);
    api_query(&stored, "follow", "0");
    autofeed struct feed *stream = feed_create(api, stored.bytes, NULL);
    if (!follow_output(stream, output, err)) {
        return false;
    }
    *ret_last_id = xstrdup(feed_last_id(stream));
    return true;
}

static bool merge_streams(struct api *api, const struct logs_options *options, const char *id,
                          const char *path, struct err *err)
{
    autooutput struct output *output = output_create(stdout, stderr, options->tail);
    autofree char *last_id = NULL;
    if (options->rank == NOT_GIVEN && !follow_prefix(api, id, false, output, err)) {
        return false;
    }
    bool stored_first = !options->follow || options->tail != NOT_GIVEN;
    if (stored_first && !read_stored(api, path, output, &last_id, err)) {
        return false;
    }
    output_release(output);
    if (!options->follow) {
        return output_flush(output, err);
    }
    autofeed struct feed *stream = feed_create(api, path, last_id);
    return follow_output(stream, output, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct logs_options *options = call->options;
    autotext struct text path = {0};
    make_path(options, call->id, &path);
    bool as_it_is = options->rank != NOT_GIVEN && options->stream != NULL && !options->follow &&
                    options->tail == NOT_GIVEN;
    return as_it_is ? copy_stream(call->api, path.bytes, options->stream, err)
                    : merge_streams(call->api, options, call->id, path.bytes, err);
}

const struct verb verb_logs = {
    .name = "logs",
    .arguments = "ID",
    .summary = "Show the output of a job.",
    .details = "Without --rank the ranks are merged, and each line says whose it is. What ranks wrote to "
               "stderr goes to stderr.",
    OF_A_JOB,
    .options_size = sizeof(struct logs_options),
    .rows = {rows},
    .run = run,
};
