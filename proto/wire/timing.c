/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the durations of a start, which a node sends to the controller. Decoded durations are
 * within their limits; a message without durations is valid. Both ends decide what they measure and show. */
#include "proto/wire/timing.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/members.h"

bool timing_is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\') {
            return false;
        }
    }
    return length > 0 && length <= LIMIT_MARK_NAME;
}

static void put_duration(json_t *json, const char *name, int64_t us)
{
    if (us > 0) {
        member_put_int(json, name, us);
    }
}

static void put_marks(json_t *json, const struct node_timing *timing)
{
    json_t *array = json_array();
    for (size_t i = 0; i < timing->mark_count; i++) {
        json_t *item = json_object();
        member_put_text(item, "name", timing->marks[i].name);
        member_put_int(item, "rank", timing->marks[i].rank);
        member_put_int(item, "after_us", timing->marks[i].after_us);
        json_array_append_new(array, item);
    }
    member_put(json, "marks", array);
}

void timing_put(json_t *object, const struct node_timing *timing)
{
    json_t *json = json_object();
    put_duration(json, "prepared_us", timing->prepared_us);
    put_duration(json, "begun_us", timing->begun_us);
    put_duration(json, "running_us", timing->running_us);
    put_duration(json, "output_us", timing->output_us);
    put_duration(json, "ended_us", timing->ended_us);
    if (timing->mark_count > 0) {
        put_marks(json, timing);
    }
    if (json_object_size(json) > 0) {
        member_put(object, "timing", json);
    } else {
        json_decref(json);
    }
}

static bool read_mark(const json_t *json, struct timing_mark *mark, struct err *err)
{
    return json_need_text(json, "name", &mark->name, err) &&
           (timing_is_name(mark->name, strlen(mark->name)) ||
            err_field(err, ERR_FIELD, "name", NULL, "name must be 1 to %d characters of ASCII",
                      LIMIT_MARK_NAME)) &&
           json_need_int(json, "rank", 0, LIMIT_GPUS - 1, &mark->rank, err) &&
           json_need_int(json, "after_us", 0, INT64_MAX, &mark->after_us, err);
}

static bool read_marks(const json_t *json, struct node_timing *timing, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "marks", LIMIT_MARKS, &array, err)) {
        return false;
    }
    size_t count = json_array_size(array);
    timing->marks = count > 0 ? xzalloc(count * sizeof *timing->marks) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (!read_mark(json_array_get(array, i), &timing->marks[i], err)) {
            return member_err_inside(err, "marks", i);
        }
    }
    timing->mark_count = count;
    return true;
}

bool timing_read(const json_t *object, struct node_timing *ret_timing, struct err *err)
{
    const json_t *json = json_object_get(object, "timing");
    struct node_timing timing = {0};
    if (json == NULL || json_is_null(json)) {
        *ret_timing = timing;
        return true;
    }
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "timing", NULL, "timing must be an object");
    }
    if (!json_read_int(json, "prepared_us", 0, INT64_MAX, &timing.prepared_us, err) ||
        !json_read_int(json, "begun_us", 0, INT64_MAX, &timing.begun_us, err) ||
        !json_read_int(json, "running_us", 0, INT64_MAX, &timing.running_us, err) ||
        !json_read_int(json, "output_us", 0, INT64_MAX, &timing.output_us, err) ||
        !json_read_int(json, "ended_us", 0, INT64_MAX, &timing.ended_us, err) ||
        !read_marks(json, &timing, err)) {
        timing_finish(&timing);
        return false;
    }
    *ret_timing = timing;
    return true;
}

void timing_finish(struct node_timing *timing)
{
    free(timing->marks);
    *timing = (struct node_timing){0};
}
