/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of waiting jobs. It promises that lanes come by the key of their first job and jobs by their
 * own key, so that a job that is requeued has its old place, and that putting a new job at the end costs the
 * same at any length. What fits is left to place.c. */
#include "daemon/core/queue.h"

#include <string.h>

#include "daemon/core/staging.h"
#include "daemon/core/state.h"
#include "daemon/core/trace.h"

/* --- lanes ------------------------------------------------------------------------------------------- */

/* Wishes are equal when their keys are. A tab cannot be part of a name; types are told apart without regard
 * to case. */
static void wish_key(const struct wish *wish, struct text *out)
{
    const char *const parts[] = {wish->gpu_type, wish->pool, wish->host_id,
                                 use_reserved_text(wish->use_reserved), wish->need};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_append(out, parts[i] != NULL ? parts[i] : "");
        for (char *at = i == 0 ? out->bytes : NULL; at != NULL && *at != '\0'; at++) {
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
        }
        text_append(out, "\t");
    }
    text_append_int(out, wish->gpus);
}

struct lane *queue_find(const struct core *core, const struct wish *wish)
{
    autotext struct text key = {0};
    wish_key(wish, &key);
    struct lane *lane;
    HASH_FIND_STR(core->lanes_by_key, key.bytes, lane);
    return lane;
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static struct lane *lane_create(struct core *core, const struct wish *wish, const struct core_need *need)
{
    struct text key = {0};
    wish_key(wish, &key);
    struct lane *lane = xzalloc(sizeof *lane);
    lane->key = text_take(&key);
    lane->gpu_type = copy_or_null(wish->gpu_type);
    lane->pool = copy_or_null(wish->pool);
    lane->host_id = copy_or_null(wish->host_id);
    lane->stage = staging_join(core, need);
    lane->wish = (struct wish){.gpu_type = lane->gpu_type,
                               .pool = lane->pool,
                               .host_id = lane->host_id,
                               .need = staging_key(lane->stage),
                               .use_reserved = wish->use_reserved,
                               .gpus = wish->gpus};
    HASH_ADD_KEYPTR(hh, core->lanes_by_key, lane->key, strlen(lane->key), lane);
    return lane;
}

static void lane_destroy(struct core *core, struct lane *lane)
{
    assert(lane->jobs == NULL);
    HASH_DEL(core->lanes_by_key, lane);
    staging_leave(core, lane->stage);
    free(lane->gpu_type);
    free(lane->pool);
    free(lane->host_id);
    free(lane->key);
    free(lane);
}

void queue_join(struct core *core, struct job *job, const struct wish *wish, const struct core_need *need)
{
    assert(job->lane == NULL);
    job->lane = queue_find(core, wish);
    if (job->lane == NULL) {
        job->lane = lane_create(core, wish, need);
    }
    job->lane->job_count++;
}

void queue_leave(struct core *core, struct job *job)
{
    struct lane *lane = job->lane;
    job->lane = NULL;
    if (--lane->job_count == 0) {
        lane_destroy(core, lane);
    }
}

/* --- order ------------------------------------------------------------------------------------------- */

static void lane_insert(struct core *core, struct lane *lane)
{
    struct lane *last = core->lanes != NULL ? core->lanes->prev : NULL;
    if (last == NULL || last->jobs->key < lane->jobs->key) {
        DL_APPEND(core->lanes, lane);
        return;
    }
    struct lane *after = core->lanes;
    while (after->jobs->key < lane->jobs->key) {
        after = after->next;
    }
    DL_PREPEND_ELEM(core->lanes, after, lane);
}

static void lane_put(struct lane *lane, struct job *job)
{
    struct job *last = lane->jobs != NULL ? lane->jobs->prev : NULL;
    if (last == NULL || last->key < job->key) {
        DL_APPEND(lane->jobs, job);
        return;
    }
    struct job *after = lane->jobs;
    while (after->key < job->key) {
        after = after->next;
    }
    DL_PREPEND_ELEM(lane->jobs, after, job);
}

void queue_put(struct core *core, struct job *job)
{
    struct lane *lane = job->lane;
    const struct job *first = lane->jobs;
    lane_put(lane, job);
    if (first == NULL) {
        lane_insert(core, lane);
        core->place_wanted = true;
    } else if (lane->jobs != first) {
        DL_DELETE(core->lanes, lane);
        lane_insert(core, lane);
        core->place_wanted = true;
    } else {
        trace_line(core, "job %s waits behind %s", job->id, job->prev->id);
    }
}

void queue_take(struct core *core, struct job *job)
{
    struct lane *lane = job->lane;
    bool first = lane->jobs == job;
    DL_DELETE(lane->jobs, job);
    job->prev = job->next = NULL;
    if (first) {
        DL_DELETE(core->lanes, lane);
        if (lane->jobs != NULL) {
            lane_insert(core, lane);
        }
        core->place_wanted = true;
    }
}

struct lane *queue_after(const struct core *core, int64_t key)
{
    struct lane *lane = core->lanes;
    while (lane != NULL && lane->jobs->key <= key) {
        lane = lane->next;
    }
    return lane;
}
