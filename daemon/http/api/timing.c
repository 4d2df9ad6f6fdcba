/* SPDX-License-Identifier: Apache-2.0 */
/* Shows where the time of a job's start went: moments of each attempt, in milliseconds since the submission
 * was received (daemon/store/moments.h). Older attempts have fewer moments; their rows tell the rest. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/recent_ends.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/moments.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/members.h"

/* Times are microseconds since the submission; 0: not known. */
struct timed_node {
    char *name;
    int64_t node_rank;
    int64_t base_us;             /* what its durations are measured from */
    struct member_timing timing; /* the durations as moments */
    char *start;                 /* or NULL */
    json_t *marks;               /* array, or NULL */
};

struct timed_nodes {
    const struct attempt_timing *attempt;
    int64_t visible_us;
    struct timed_node *items;
    size_t count;
};

struct timed_mark {
    const struct timed_node *node;
    const char *name;
    int64_t rank, at_us;
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static void take_node(struct timed_nodes *nodes, const struct member_row *row)
{
    nodes->items = xrealloc(nodes->items, (nodes->count + 1) * sizeof *nodes->items);
    struct timed_node *node = &nodes->items[nodes->count++];
    const struct member_moments moments = moments_of_member(nodes->attempt, row);
    *node = (struct timed_node){.name = xstrdup(row->node),
                                .node_rank = row->node_rank,
                                .base_us = moments.base_us,
                                .timing = moments.at};
    node->start = row->start != NULL ? xstrdup(row->start) : NULL;
    node->marks = row->marks != NULL ? json_parse(row->marks, strlen(row->marks), NULL) : NULL;
}

static bool read_nodes(struct timed_nodes *nodes, struct reader *reader, uint64_t epoch, struct err *err)
{
    autorows struct rows rows = reader_members(reader, epoch, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        take_node(nodes, &row);
    }
    return !rows.failed;
}

static void nodes_finish(struct timed_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        free(nodes->items[i].name);
        free(nodes->items[i].start);
        json_decref(nodes->items[i].marks);
    }
    free(nodes->items);
}

/* --- the whole of the nodes ----------------------------------------------------------------------------- */

/* How moments of the nodes become one of the attempt. */
enum whole {
    FIRST,
    LAST,
    LAST_OF_ALL, /* not known while one node does not know it */
};

#define OF(moment) offsetof(struct timed_node, timing.moment)

/* 0: not known. */
static int64_t whole_of(const struct timed_nodes *nodes, size_t offset, enum whole whole)
{
    int64_t found_us = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        int64_t at_us = *(const int64_t *)((const char *)&nodes->items[i] + offset);
        if (at_us == 0 && whole == LAST_OF_ALL) {
            return 0;
        }
        bool nearer = found_us == 0 || (whole == FIRST ? at_us < found_us : at_us > found_us);
        found_us = at_us > 0 && nearer ? at_us : found_us;
    }
    return found_us;
}

static int by_time(const void *a, const void *b)
{
    const struct timed_mark *left = a, *right = b;
    return (left->at_us > right->at_us) - (left->at_us < right->at_us);
}

/* The marks of all nodes in order of time; the caller frees them. */
static struct timed_mark *collect_marks(const struct timed_nodes *nodes, size_t *ret_count)
{
    struct timed_mark *marks = xzalloc((nodes->count * LIMIT_MARKS + 1) * sizeof *marks);
    size_t count = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct timed_node *node = &nodes->items[i];
        for (size_t j = 0; j < json_array_size(node->marks) && j < LIMIT_MARKS; j++) {
            const json_t *mark = json_array_get(node->marks, j);
            int64_t after_us = json_integer_value(json_object_get(mark, "after_us"));
            marks[count++] = (struct timed_mark){.node = node,
                                                 .name = json_string_value(json_object_get(mark, "name")),
                                                 .rank = json_integer_value(json_object_get(mark, "rank")),
                                                 .at_us = moments_behind(node->base_us, after_us)};
        }
    }
    qsort(marks, count, sizeof *marks, by_time);
    *ret_count = count;
    return marks;
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* Microseconds as milliseconds, null for 0. */
static void write_moment(struct text *out, const char *key, int64_t us)
{
    if (us == 0) {
        member_write_text(out, key, NULL);
    } else {
        text_printf(out, "%s%lld.%03d", key, (long long)(us / 1000), (int)(us % 1000));
    }
}

static void write_moments(const struct timed_nodes *nodes, struct text *out)
{
    const struct attempt_timing *timing = nodes->attempt;
    text_append(out, ",\"moments\":{\"received_ms\":0.000");
    int64_t started_us = whole_of(nodes, OF(started_us), LAST);
    int64_t queued_us = whole_of(nodes, OF(queued_us), LAST);
    write_moment(out, ",\"queued_ms\":", queued_us > 0 ? queued_us : timing->queued_us);
    write_moment(out, ",\"placed_ms\":", timing->placed_us);
    write_moment(out, ",\"ordered_ms\":", whole_of(nodes, OF(ordered_us), LAST));
    write_moment(out, ",\"prepared_ms\":", whole_of(nodes, OF(ready_us), LAST_OF_ALL));
    write_moment(out, ",\"started_ms\":", started_us > 0 ? started_us : timing->started_us);
    write_moment(out, ",\"told_ms\":", whole_of(nodes, OF(told_us), LAST));
    write_moment(out, ",\"begun_ms\":", whole_of(nodes, OF(begun_us), LAST));
    write_moment(out, ",\"ranks_started_ms\":", whole_of(nodes, OF(running_us), LAST));
    write_moment(out, ",\"running_ms\":", whole_of(nodes, OF(heard_us), LAST_OF_ALL));
    write_moment(out, ",\"first_output_ms\":", whole_of(nodes, OF(output_us), FIRST));
    write_moment(out, ",\"ended_ms\":", whole_of(nodes, OF(ended_us), LAST));
    write_moment(out, ",\"settled_ms\":", timing->settled_us);
    write_moment(out, ",\"visible_ms\":", nodes->visible_us);
    text_append(out, "}");
}

static void write_marks(const struct timed_nodes *nodes, struct text *out)
{
    size_t count;
    autofree struct timed_mark *marks = collect_marks(nodes, &count);
    text_append(out, ",\"marks\":[");
    for (size_t i = 0; i < count; i++) {
        member_separate(out);
        member_write_text(out, "{\"name\":", marks[i].name);
        member_write_int(out, ",\"rank\":", marks[i].rank);
        member_write_text(out, ",\"node\":", marks[i].node->name);
        write_moment(out, ",\"at_ms\":", marks[i].at_us);
        text_append(out, "}");
    }
    text_append(out, "]");
}

static void write_node(const struct timed_node *node, struct text *out)
{
    member_write_text(out, "{\"node\":", node->name);
    member_write_int(out, ",\"node_rank\":", node->node_rank);
    member_write_text(out, ",\"start\":", node->start);
    write_moment(out, ",\"ordered_ms\":", node->timing.ordered_us);
    write_moment(out, ",\"prepared_ms\":", node->timing.prepared_us);
    write_moment(out, ",\"told_ms\":", node->timing.told_us);
    write_moment(out, ",\"begun_ms\":", node->timing.begun_us);
    write_moment(out, ",\"ranks_started_ms\":", node->timing.running_us);
    write_moment(out, ",\"first_output_ms\":", node->timing.output_us);
    write_moment(out, ",\"ended_ms\":", node->timing.ended_us);
    text_append(out, "}");
}

static bool write_attempt(struct server *server, const struct attempt_row *row, int64_t created_ms,
                          struct text *out, struct err *err)
{
    const struct attempt_timing timing = moments_of_attempt(row, created_ms);
    struct timed_nodes nodes = {.attempt = &timing,
                                .visible_us = recent_ends_find(&server->ends, row->attempt_id)};
    bool ok = read_nodes(&nodes, server->reader, row->attempt_id, err);
    member_write_int(out, "{\"attempt\":", row->number);
    member_write_text(out, ",\"state\":", attempt_state_text(row->state));
    write_moments(&nodes, out);
    write_marks(&nodes, out);
    text_append(out, ",\"nodes\":[");
    for (size_t i = 0; i < nodes.count; i++) {
        member_separate(out);
        write_node(&nodes.items[i], out);
    }
    text_append(out, "]}");
    nodes_finish(&nodes);
    return ok;
}

static bool write_job(struct server *server, const struct job_facts *job, struct text *out, struct err *err)
{
    autorows struct rows rows = reader_attempts(server->reader, job->key, ALL_ATTEMPTS, err);
    struct attempt_row row;
    member_write_text(out, "{\"id\":", job->id);
    member_write_text(out, ",\"state\":", job_state_text(job->state));
    member_write_time(out, ",\"submitted_at\":", job->created_ms);
    if (job->tasks > 0) {
        member_write_int(out, ",\"tasks\":", job->tasks);
    }
    text_append(out, ",\"attempts\":[");
    for (size_t i = 0; i < LIMIT_LIST_ROWS && rows_attempt(&rows, &row); i++) {
        member_separate(out);
        if (!write_attempt(server, &row, job->created_ms, out, err)) {
            return false;
        }
    }
    text_append(out, "]}");
    return !rows.failed;
}

bool timing_show(struct request *request, struct err *err)
{
    struct job_facts job;
    autotext struct text json = {0};
    return job_find(request, &job, err) && write_job(request->server, &job, &json, err) &&
           request_reply_json(request, 200, &json);
}
