/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one job and the end of the output of one of its ranks. It promises at most LIMIT_TOP_ROWS ranks. A
 * rank without output is no failure. */
#include "client/cli/top/data/top_job.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/top/data/top_requests.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

struct top_job {
    struct top_requests requests;
    char *id;
    json_t *view;
    struct text output;
    int64_t rank; /* it is of ... */
    enum stream stream;
    int64_t asked_rank; /* it is asked for of ... */
    enum stream asked_stream;
    bool reading, failed;
    struct err err;
};

struct top_job *top_job_create(struct api *api, const char *id)
{
    struct top_job *job = xzalloc(sizeof *job);
    job->requests.api = api;
    job->id = xstrdup(id);
    return job;
}

void top_job_destroy(struct top_job *job)
{
    if (job == NULL) {
        return;
    }
    top_requests_drop(&job->requests);
    json_decref(job->view);
    text_finish(&job->output);
    free(job->id);
    free(job);
}

const char *top_job_id(const struct top_job *job)
{
    return job->id;
}

static void fail(struct top_job *job, const struct err *err)
{
    job->failed = true;
    job->err = *err;
}

static void take_view(void *closure, const struct text *body, const struct err *err)
{
    struct top_job *job = closure;
    struct err why = *err;
    json_t *view = body != NULL ? json_parse(body->bytes, body->length, &why) : NULL;
    if (view == NULL) {
        fail(job, &why);
        return;
    }
    json_decref(job->view);
    job->view = view;
}

/* A controller that answers has no output of this rank, or none any more. */
static void take_output(void *closure, const struct text *body, const struct err *err)
{
    struct top_job *job = closure;
    if (body == NULL && err_retryable(err->code)) {
        fail(job, err);
        return;
    }
    text_clear(&job->output);
    job->rank = job->asked_rank;
    job->stream = job->asked_stream;
    if (body != NULL) {
        text_append_bytes(&job->output, body->bytes, body->length);
    }
}

void top_job_begin(struct top_job *job, int64_t rank, enum stream stream)
{
    if (job->reading) {
        return;
    }
    autofree char *path = xprintf("/v1/jobs/%s", job->id);
    autofree char *logs = xprintf("/v1/jobs/%s/logs?rank=%lld&stream=%s&tail=%lld", job->id, (long long)rank,
                                  stream_text(stream), (long long)CLIENT_TOP_OUTPUT_BYTES);
    job->reading = true;
    job->failed = false;
    job->asked_rank = rank;
    job->asked_stream = stream;
    top_requests_get(&job->requests, path, (struct top_taker){take_view, job});
    top_requests_get(&job->requests, logs, (struct top_taker){take_output, job});
}

enum top_job_state top_job_step(struct top_job *job, struct err *err)
{
    top_requests_step(&job->requests);
    if (!job->reading || !top_requests_idle(&job->requests)) {
        return TOP_JOB_READING;
    }
    job->reading = false;
    *err = job->err;
    return job->failed ? TOP_JOB_FAILED : TOP_JOB_NEW;
}

bool top_job_idle(const struct top_job *job)
{
    return !job->reading;
}

const json_t *top_job_view(const struct top_job *job)
{
    return job->view;
}

const struct text *top_job_output(const struct top_job *job, int64_t rank, enum stream stream)
{
    bool wanted = job->rank == rank && job->stream == stream;
    return wanted && job->output.length > 0 ? &job->output : NULL;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

static size_t count_devices(const char *devices)
{
    size_t count = devices[0] != '\0';
    for (; *devices != '\0'; devices++) {
        count += *devices == ',';
    }
    return count;
}

/* So many of a list "0,1,2,3" from the first on; the caller frees them. */
static char *part_of(const char *devices, size_t first, size_t count)
{
    for (; first > 0; first--) {
        devices += strcspn(devices, ",") + 1;
    }
    size_t length = 0;
    for (; count > 0; count--) {
        length += strcspn(devices + length, ",") + (count > 1);
    }
    return xstrndup(devices, length);
}

/* Ranks of a node have equal shares of its devices, in their order; where that is not so, each has all. */
static char *devices_of(const char *devices, size_t local_rank, size_t local_ranks)
{
    size_t count = count_devices(devices);
    bool even = local_ranks > 0 && count >= local_ranks && count % local_ranks == 0;
    size_t share = even ? count / local_ranks : count;
    return part_of(devices, even ? local_rank * share : 0, share);
}

static void add_ranks(const json_t *placement, const struct top_details *details, json_t *ranks)
{
    const char *node = print_text_of(placement, "node"), *devices = json_string_of(placement, "devices");
    json_int_t first = json_integer_value(json_object_get(placement, "first_rank"));
    json_int_t count = json_integer_value(json_object_get(placement, "local_ranks"));
    for (json_int_t i = 0; i < count && json_array_size(ranks) < LIMIT_TOP_ROWS; i++) {
        autofree char *own = devices_of(devices != NULL ? devices : "", (size_t)i, (size_t)count);
        json_t *use = details != NULL ? top_details_use(details, node, own) : NULL;
        json_array_append_new(ranks, json_pack("{s:I, s:s, s:s, s:s, s:o*}", "rank", first + i, "node", node,
                                               "state", print_text_of(placement, "state"), "devices", own,
                                               "use", use));
    }
}

json_t *top_job_ranks(const json_t *view, const struct top_details *details)
{
    json_t *ranks = json_array();
    size_t i;
    json_t *placement;
    json_array_foreach (json_object_get(view, "nodes"), i, placement) {
        add_ranks(placement, details, ranks);
    }
    return ranks;
}
