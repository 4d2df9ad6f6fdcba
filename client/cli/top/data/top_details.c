/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up details of nodes and jobs. Samples are asked for as often as nodes make them, devices of a node
 * seldom, because they change with its hardware alone. */
#include "client/cli/top/data/top_details.h"

#include <stdlib.h>

#include "client/cli/top/data/top_lookups.h"
#include "client/cli/top/data/top_samples.h"
#include "proto/base/clock.h"
#include "proto/limits_client.h"

enum detail { DETAIL_SAMPLE, DETAIL_DEVICES, DETAIL_REASON, DETAILS };

struct top_details {
    struct top_lookups *lookups[DETAILS];
};

static void append_node(const char *node, struct text *out)
{
    text_append(out, "/v1/nodes/");
    api_part(out, node);
}

static void append_samples(const char *node, struct text *out)
{
    append_node(node, out);
    text_printf(out, "/samples?since=%lld", (long long)(clock_wall_ms() - CLIENT_TOP_SAMPLE_AGE_MS));
}

static void append_job(const char *job, struct text *out)
{
    text_append(out, "/v1/jobs/");
    api_part(out, job);
}

static json_t *take_reason(const json_t *job)
{
    json_t *reason = json_object_get(job, "reason");
    return json_is_string(reason) ? json_incref(reason) : NULL;
}

static const struct top_lookup lookups[DETAILS] = {
    [DETAIL_SAMPLE] = {append_samples, top_sample_newest, CLIENT_TOP_SAMPLE_MS},
    [DETAIL_DEVICES] = {append_node, top_sample_totals, CLIENT_TOP_DEVICES_MS},
    [DETAIL_REASON] = {append_job, take_reason, CLIENT_REASON_MS},
};

void top_shown_finish(struct top_shown *shown)
{
    text_list_finish(&shown->nodes);
    text_list_finish(&shown->jobs);
}

struct top_details *top_details_create(struct api *api)
{
    struct top_details *details = xzalloc(sizeof *details);
    for (int i = 0; i < DETAILS; i++) {
        details->lookups[i] = top_lookups_create(api, &lookups[i]);
    }
    return details;
}

void top_details_destroy(struct top_details *details)
{
    if (details == NULL) {
        return;
    }
    for (int i = 0; i < DETAILS; i++) {
        top_lookups_destroy(details->lookups[i]);
    }
    free(details);
}

void top_details_want(struct top_details *details, const struct top_shown *shown)
{
    top_lookups_want(details->lookups[DETAIL_SAMPLE], &shown->nodes);
    top_lookups_want(details->lookups[DETAIL_DEVICES], &shown->nodes);
    top_lookups_want(details->lookups[DETAIL_REASON], &shown->jobs);
}

bool top_details_step(struct top_details *details)
{
    bool any = false;
    for (int i = 0; i < DETAILS; i++) {
        any = top_lookups_step(details->lookups[i]) || any;
    }
    return any;
}

bool top_details_idle(const struct top_details *details)
{
    bool idle = true;
    for (int i = 0; i < DETAILS; i++) {
        idle = idle && top_lookups_idle(details->lookups[i]);
    }
    return idle;
}

json_t *top_details_use(const struct top_details *details, const char *node, const char *devices)
{
    return top_sample_use(top_lookups_find(details->lookups[DETAIL_SAMPLE], node),
                          top_lookups_find(details->lookups[DETAIL_DEVICES], node), devices);
}

const json_t *top_details_reason(const struct top_details *details, const char *job)
{
    return top_lookups_find(details->lookups[DETAIL_REASON], job);
}
