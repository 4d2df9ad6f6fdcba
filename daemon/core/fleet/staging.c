/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks which node has the environments of waiting jobs. A node gets one order per environment, however many
 * jobs need it, and the order ends when no job needs it. A node that failed gets a longer pause each time.
 * Nothing of this is stored: after a restart of the controller or an agent, nodes are asked again. place.c
 * chooses the nodes; job.c decides what a failure means for a job. */
#include "daemon/core/fleet/staging.h"

#include <string.h>

#include "daemon/core/fleet/locality.h"
#include "daemon/core/fleet/orders.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"

#define SHOWN_KEY  8 /* characters of a key in the trace */
#define FEW_COPIES 8 /* are sooner compared than hashed */

/* --- copies --------------------------------------------------------------------------------------------- */

static struct environment_copy *copy_find(const struct environment *environment, const struct node *node)
{
    struct environment_copy *copy = environment->copies;
    if (HASH_COUNT(copy) > FEW_COPIES) {
        HASH_FIND_PTR(environment->copies, &node, copy);
        return copy;
    }
    while (copy != NULL && copy->node != node) {
        copy = copy->hh.next;
    }
    return copy;
}

/* What nodes stage for its job classes has to be considered again. */
static void note_change(struct core *core, struct environment *environment)
{
    if (!environment->changed) {
        environment->changed = true;
        DL_APPEND2(core->changed_environments, environment, prev_changed, next_changed);
    }
}

void staging_take_change(struct core *core, struct environment *environment)
{
    if (environment->changed) {
        environment->changed = false;
        DL_DELETE2(core->changed_environments, environment, prev_changed, next_changed);
    }
}

/* Sets the state of a copy and keeps the counts of ordered copies. */
static void copy_set(struct core *core, struct environment_copy *copy, enum copy_state state)
{
    bool was = copy->state == COPY_ORDERED, is = state == COPY_ORDERED;
    copy->state = state;
    note_change(core, copy->environment);
    if (was && copy->node->ordered_count == LIMIT_NODE_STAGINGS) {
        core->fleet_changed = true; /* it can stage another one */
    }
    copy->environment->ordered_count += (size_t)is - (size_t)was;
    copy->node->ordered_count += (size_t)is - (size_t)was;
    if (is != was) {
        orders_staging_changed(core, copy->node);
    }
}

static struct environment_copy *copy_make(struct environment *environment, struct node *node)
{
    struct environment_copy *copy = xzalloc(sizeof *copy);
    copy->environment = environment;
    copy->node = node;
    HASH_ADD_PTR(environment->copies, node, copy);
    DL_APPEND(node->copies, copy);
    return copy;
}

static void copy_free(struct environment_copy *copy)
{
    HASH_DEL(copy->environment->copies, copy);
    DL_DELETE(copy->node->copies, copy);
    free(copy->text);
    free(copy);
}

static void copy_drop(struct core *core, struct environment_copy *copy)
{
    copy_set(core, copy, COPY_FREE);
    copy_free(copy);
}

/* --- environments --------------------------------------------------------------------------------------- */

static void environment_free(struct core *core, struct environment *environment)
{
    assert(environment->copies == NULL && environment->job_class_count == 0);
    staging_take_change(core, environment);
    locality_leave(core, environment);
    HASH_DEL(core->environments, environment);
    free(environment->key);
    free(environment->text);
    free(environment);
}

static void forget_oldest(struct core *core)
{
    struct environment *environment = core->idle_environments;
    DL_DELETE(core->idle_environments, environment);
    core->idle_environment_count--;
    struct environment_copy *copy, *next;
    HASH_ITER (hh, environment->copies, copy, next) {
        copy_drop(core, copy);
    }
    environment_free(core, environment);
}

static struct environment *environment_create(struct core *core, const struct environment_spec *spec)
{
    struct environment *environment = xzalloc(sizeof *environment);
    environment->key = xstrdup(spec->key);
    environment->text = xstrdup(spec->text);
    environment->unpinned = spec->unpinned;
    locality_join(core, environment, spec->parts);
    HASH_ADD_KEYPTR(hh, core->environments, environment->key, strlen(environment->key), environment);
    return environment;
}

struct environment *staging_join(struct core *core, const struct environment_spec *spec)
{
    struct environment *environment;
    if (spec == NULL) {
        return NULL;
    }
    HASH_FIND_STR(core->environments, spec->key, environment);
    if (environment == NULL) {
        environment = environment_create(core, spec);
    } else if (environment->job_class_count == 0) {
        DL_DELETE(core->idle_environments, environment);
        core->idle_environment_count--;
    }
    environment->job_class_count++;
    return environment;
}

void staging_leave(struct core *core, struct environment *environment)
{
    if (environment == NULL || --environment->job_class_count > 0) {
        return;
    }
    struct environment_copy *copy, *next;
    HASH_ITER (hh, environment->copies, copy, next) {
        if (copy->state != COPY_READY) {
            copy_drop(core, copy);
        }
    }
    if (environment->copies == NULL) {
        environment_free(core, environment); /* nothing to remember */
        return;
    }
    DL_APPEND(core->idle_environments, environment);
    if (++core->idle_environment_count > LIMIT_STAGINGS_KEPT) {
        forget_oldest(core);
    }
}

void staging_renew(struct core *core, struct environment *environment)
{
    struct environment_copy *copy = environment != NULL && environment->unpinned ? environment->copies : NULL;
    for (; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_READY) {
            copy_set(core, copy, COPY_FREE);
            core->place_wanted = true; /* for others that wait for it, if the job is held */
        }
    }
}

const char *staging_key(const struct environment *environment)
{
    return environment != NULL ? environment->key : NULL;
}

/* --- questions ------------------------------------------------------------------------------------------ */

static bool may_be_told(const struct environment_copy *copy, const struct node *node,
                        enum readiness readiness)
{
    if (copy == NULL || copy->state == COPY_FREE) {
        return node->ordered_count < LIMIT_NODE_STAGINGS;
    }
    return readiness == READINESS_EVER && copy->hold_until_ms != NEVER;
}

bool staging_allows(const struct environment *environment, const struct node *node, enum readiness readiness)
{
    const struct environment_copy *copy = environment != NULL ? copy_find(environment, node) : NULL;
    if (environment == NULL || (copy != NULL && copy->state == COPY_READY)) {
        return true;
    }
    switch (readiness) {
    case READINESS_READY:
        return false;
    case READINESS_COMING:
        return copy != NULL && copy->state == COPY_ORDERED;
    case READINESS_KNOWN:
        return copy != NULL && (copy->state == COPY_ORDERED || (copy->known && copy->state == COPY_FREE &&
                                                                may_be_told(copy, node, readiness)));
    case READINESS_POSSIBLE:
    case READINESS_EVER:
        return (copy != NULL && copy->state == COPY_ORDERED) || may_be_told(copy, node, readiness);
    }
    abort();
}

bool staging_has_free_devices(const struct node *node)
{
    const struct capacity *capacity = node->capacities;
    while (capacity != NULL && capacity->free == 0) {
        capacity = capacity->next;
    }
    return capacity != NULL;
}

bool staging_has_free(const struct environment *environment, enum readiness readiness)
{
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (staging_has_free_devices(copy->node) && staging_allows(environment, copy->node, readiness)) {
            return true;
        }
    }
    return false;
}

int64_t staging_ready_devices(const struct environment *environment)
{
    int64_t devices = 0;
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_READY) {
            devices += copy->node->device_count > 0 ? (int64_t)copy->node->device_count : 1;
        }
    }
    return devices;
}

void staging_node_changed(struct core *core, const struct node *node)
{
    core->fleet_changed = core->place_wanted = true;
    pass_hold_back(core, node);
    for (struct environment_copy *copy = node->copies; copy != NULL; copy = copy->next) {
        note_change(core, copy->environment);
    }
}

bool staging_is_coming(const struct environment *environment)
{
    return environment->ordered_count > 0;
}

void staging_list_coming(const struct environment *environment, struct text *out)
{
    const char *before = "";
    text_append(out, "[");
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_ORDERED) {
            text_append(out, before);
            text_json_string(out, copy->node->name, strlen(copy->node->name));
            before = ",";
        }
    }
    text_append(out, "]");
}

void staging_say_coming(const struct environment *environment, struct text *out)
{
    const char *before = "";
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_ORDERED) {
            text_printf(out, "%s%s", before, copy->node->name);
            before = ", ";
        }
    }
}

const char *staging_last_failure(struct core *core, const struct environment *environment)
{
    const struct environment_copy *last = NULL;
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_HELD && (last == NULL || copy->failed_ms >= last->failed_ms)) {
            last = copy;
        }
    }
    return last != NULL ? record_text(core, "node %s: %s", last->node->name, last->text) : NULL;
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void say_order(struct core *core, const struct environment *environment, const struct node *node)
{
    size_t held = locality_count(environment, node);
    if (held > 0) {
        trace_line(core, "node %s prepares environment %.*s, of which it has %zu of %zu parts", node->name,
                   SHOWN_KEY, environment->key, held, environment->part_count);
    } else {
        trace_line(core, "node %s prepares environment %.*s", node->name, SHOWN_KEY, environment->key);
    }
}

void staging_order(struct core *core, struct environment *environment, struct node *node)
{
    struct environment_copy *copy = copy_find(environment, node);
    if (copy == NULL) {
        copy = copy_make(environment, node);
    }
    if (copy->state != COPY_FREE) {
        assert(copy->state != COPY_HELD);
        return;
    }
    copy_set(core, copy, COPY_ORDERED);
    say_order(core, environment, node);
}

void staging_doubt(struct core *core, struct environment *environment, const struct node *node)
{
    struct environment_copy *copy = environment != NULL ? copy_find(environment, node) : NULL;
    if (copy != NULL && copy->state == COPY_READY) {
        trace_line(core, "node %s has lost environment %.*s", node->name, SHOWN_KEY, environment->key);
        copy_drop(core, copy);
        core->place_wanted = true;
    }
}

void staging_forget_node(struct core *core, struct node *node)
{
    struct environment_copy *copy, *next;
    DL_FOREACH_SAFE (node->copies, copy, next) {
        copy_drop(core, copy);
    }
}

/* --- answers -------------------------------------------------------------------------------------------- */

static int64_t hold_ms(const struct environment_copy *copy)
{
    int64_t hold = STAGING_HOLD_MS;
    for (int64_t i = 1; i < copy->failures && hold < STAGING_HOLD_MAX_MS; i++) {
        hold *= 2;
    }
    return hold < STAGING_HOLD_MAX_MS ? hold : STAGING_HOLD_MAX_MS;
}

static void hold(struct core *core, struct environment_copy *copy, bool lasting, const char *text)
{
    copy->failures++;
    copy->known = false;
    copy->failed_ms = core->now_ms;
    copy->hold_until_ms = lasting ? NEVER : core->now_ms + hold_ms(copy);
    free(copy->text);
    copy->text = xstrdup(text);
    copy_set(core, copy, COPY_HELD);
    deadline_note(core, copy->hold_until_ms);
}

static bool some_are_ready(const struct environment *environment)
{
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        if (copy->state == COPY_READY) {
            return true;
        }
    }
    return false;
}

/* A failure that any node would have is the fault of the jobs, unless another node has the environment
 * ready. */
static void take_failure(struct core *core, struct environment_copy *copy,
                         const struct staging_message *message, struct staging_failure *ret_failure)
{
    struct environment *environment = copy->environment;
    struct node *node = copy->node;
    bool by_user = message->by_user && !some_are_ready(environment);
    const char *text = record_text(core, "%s", message->text != NULL ? message->text : "it gave no reason");
    trace_line(core, "node %s cannot prepare environment %.*s%s: %s", node->name, SHOWN_KEY, environment->key,
               by_user ? ", nor can any" : "", text);
    if (by_user) {
        copy_drop(core, copy);
    } else {
        hold(core, copy, message->lasting, text);
    }
    *ret_failure = (struct staging_failure){environment, text, by_user};
}

bool staging_take(struct core *core, struct node *node, const struct staging_message *message,
                  struct staging_failure *ret_failure)
{
    struct environment *environment;
    HASH_FIND_STR(core->environments, message->key, environment);
    struct environment_copy *copy = environment != NULL ? copy_find(environment, node) : NULL;
    if (copy == NULL || copy->state != COPY_ORDERED) {
        return false; /* no longer wanted, or a repeated report */
    }
    core->place_wanted = true;
    switch (message->state) {
    case STAGING_READY:
        trace_line(core, "node %s is ready for %.*s", node->name, SHOWN_KEY, environment->key);
        copy->failures = 0;
        copy->known = true;
        copy_set(core, copy, COPY_READY);
        locality_note(environment, node);
        return false;
    case STAGING_FAILED:
        take_failure(core, copy, message, ret_failure);
        return true;
    case STAGING_BUILDING: /* progress affects no decision */
    case STAGING_STATE_COUNT:
        break;
    }
    return false;
}

/* --- time ----------------------------------------------------------------------------------------------- */

/* Copies whose hold is over may be ordered again. They remember the number of failures, so their next hold is
 * longer. */
void staging_watch(struct core *core, struct node *node)
{
    struct environment_copy *copy, *next;
    DL_FOREACH_SAFE (node->copies, copy, next) {
        if (copy->state != COPY_HELD) {
            continue;
        }
        if (core->now_ms < copy->hold_until_ms) {
            deadline_note(core, copy->hold_until_ms);
        } else {
            copy_set(core, copy, COPY_FREE);
            core->place_wanted = true;
        }
    }
}

/* --- end ------------------------------------------------------------------------------------------------ */

void staging_clear_copies(struct core *core)
{
    struct environment *environment, *next_environment;
    HASH_ITER (hh, core->environments, environment, next_environment) {
        struct environment_copy *copy, *next;
        HASH_ITER (hh, environment->copies, copy, next) {
            copy_free(copy);
        }
    }
}

void staging_clear(struct core *core)
{
    while (core->idle_environments != NULL) {
        forget_oldest(core);
    }
    assert(core->environments == NULL);
    locality_clear(core);
}

/* --- invariants ----------------------------------------------------------------------------------------- */

static void check_environment(const struct core *core, const struct environment *environment)
{
    size_t ordered = 0;
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        ordered += copy->state == COPY_ORDERED;
        assert(copy->environment == environment && copy->node->state != NODE_LOST);
        assert(copy->state != COPY_HELD || (copy->text != NULL && core->deadline_ms <= copy->hold_until_ms));
        assert(environment->job_class_count > 0 || copy->state == COPY_READY);
        assert(copy->state != COPY_READY ||
               locality_count(environment, copy->node) == environment->part_count);
    }
    assert(ordered == environment->ordered_count);
}

void staging_check(const struct core *core)
{
    for (const struct environment *environment = core->environments; environment != NULL;
         environment = environment->hh.next) {
        check_environment(core, environment);
    }
    for (size_t i = 0; i < core->node_count; i++) {
        size_t ordered = 0;
        for (const struct environment_copy *copy = core->nodes[i]->copies; copy != NULL; copy = copy->next) {
            ordered += copy->state == COPY_ORDERED;
        }
        assert(ordered == core->nodes[i]->ordered_count && ordered <= LIMIT_NODE_STAGINGS);
    }
    assert(core->idle_environment_count <= LIMIT_STAGINGS_KEPT);
    locality_check(core);
}
