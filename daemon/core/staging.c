/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which node has what waiting jobs need: an environment, blobs. It promises that a node is told once of
 * a need, whatever the number of jobs that have it, that nobody is told to go on when no job wants it any
 * more, and that a node which failed is left alone for longer each time. None of it is written down: after a
 * restart, of the controller or an agent, nodes are asked again. Which nodes are chosen is place.c's, what a
 * failure means for a job job.c's. */
#include "daemon/core/staging.h"

#include <string.h>

#include "daemon/core/job.h"
#include "daemon/core/node.h"
#include "daemon/core/orders.h"
#include "daemon/core/record.h"
#include "daemon/core/state.h"
#include "daemon/core/tick.h"
#include "daemon/core/trace.h"
#include "proto/limits.h"

#define SHOWN_KEY 8 /* characters of a key in a trace */

/* --- sites ---------------------------------------------------------------------------------------------- */

static struct site *site_find(const struct stage *stage, const struct node *node)
{
    struct site *site;
    HASH_FIND_PTR(stage->sites, &node, site);
    return site;
}

/* Counts of ordered sites follow their states. */
static void site_set(struct core *core, struct site *site, enum site_state state)
{
    bool was = site->state == SITE_ORDERED, is = state == SITE_ORDERED;
    site->state = state;
    site->stage->ordered_count += (size_t)is - (size_t)was;
    site->node->ordered_count += (size_t)is - (size_t)was;
    if (is != was) {
        orders_staging_changed(core, site->node);
    }
}

static struct site *site_make(struct stage *stage, struct node *node)
{
    struct site *site = xzalloc(sizeof *site);
    site->stage = stage;
    site->node = node;
    HASH_ADD_PTR(stage->sites, node, site);
    DL_APPEND(node->sites, site);
    return site;
}

static void site_free(struct site *site)
{
    HASH_DEL(site->stage->sites, site);
    DL_DELETE(site->node->sites, site);
    free(site->text);
    free(site);
}

static void site_drop(struct core *core, struct site *site)
{
    site_set(core, site, SITE_FREE);
    site_free(site);
}

/* --- stages --------------------------------------------------------------------------------------------- */

static void stage_free(struct core *core, struct stage *stage)
{
    assert(stage->sites == NULL && stage->job_class_count == 0);
    HASH_DEL(core->stages, stage);
    free(stage->key);
    free(stage->text);
    free(stage);
}

static void forget_oldest(struct core *core)
{
    struct stage *stage = core->idle_stages;
    DL_DELETE(core->idle_stages, stage);
    core->idle_stage_count--;
    struct site *site, *next;
    HASH_ITER (hh, stage->sites, site, next) {
        site_drop(core, site);
    }
    stage_free(core, stage);
}

static struct stage *stage_create(struct core *core, const struct core_need *need)
{
    struct stage *stage = xzalloc(sizeof *stage);
    stage->key = xstrdup(need->key);
    stage->text = xstrdup(need->text);
    HASH_ADD_KEYPTR(hh, core->stages, stage->key, strlen(stage->key), stage);
    return stage;
}

struct stage *staging_join(struct core *core, const struct core_need *need)
{
    struct stage *stage;
    if (need == NULL) {
        return NULL;
    }
    HASH_FIND_STR(core->stages, need->key, stage);
    if (stage == NULL) {
        stage = stage_create(core, need);
    } else if (stage->job_class_count == 0) {
        DL_DELETE(core->idle_stages, stage);
        core->idle_stage_count--;
    }
    stage->job_class_count++;
    return stage;
}

void staging_leave(struct core *core, struct stage *stage)
{
    if (stage == NULL || --stage->job_class_count > 0) {
        return;
    }
    struct site *site, *next;
    HASH_ITER (hh, stage->sites, site, next) {
        if (site->state != SITE_READY) {
            site_drop(core, site);
        }
    }
    if (stage->sites == NULL) {
        stage_free(core, stage); /* there is nothing to remember */
        return;
    }
    DL_APPEND(core->idle_stages, stage);
    if (++core->idle_stage_count > LIMIT_STAGINGS_KEPT) {
        forget_oldest(core);
    }
}

const char *staging_key(const struct stage *stage)
{
    return stage != NULL ? stage->key : NULL;
}

/* --- questions ------------------------------------------------------------------------------------------ */

static bool may_be_told(const struct site *site, const struct node *node, enum readiness readiness)
{
    if (site == NULL || site->state == SITE_FREE) {
        return node->ordered_count < LIMIT_NODE_STAGINGS;
    }
    return readiness == READINESS_EVER && site->hold_until_ms != NEVER;
}

bool staging_allows(const struct stage *stage, const struct node *node, enum readiness readiness)
{
    const struct site *site = stage != NULL ? site_find(stage, node) : NULL;
    if (stage == NULL || (site != NULL && site->state == SITE_READY)) {
        return true;
    }
    switch (readiness) {
    case READINESS_READY:
        return false;
    case READINESS_COMING:
        return site != NULL && site->state == SITE_ORDERED;
    case READINESS_POSSIBLE:
    case READINESS_EVER:
        return (site != NULL && site->state == SITE_ORDERED) || may_be_told(site, node, readiness);
    }
    abort();
}

bool staging_is_coming(const struct stage *stage)
{
    return stage->ordered_count > 0;
}

void staging_list_coming(const struct stage *stage, struct text *out)
{
    const char *before = "";
    text_append(out, "[");
    for (const struct site *site = stage->sites; site != NULL; site = site->hh.next) {
        if (site->state == SITE_ORDERED) {
            text_append(out, before);
            text_json_string(out, site->node->name, strlen(site->node->name));
            before = ",";
        }
    }
    text_append(out, "]");
}

void staging_say_coming(const struct stage *stage, struct text *out)
{
    const char *before = "";
    for (const struct site *site = stage->sites; site != NULL; site = site->hh.next) {
        if (site->state == SITE_ORDERED) {
            text_printf(out, "%s%s", before, site->node->name);
            before = ", ";
        }
    }
}

const char *staging_last_failure(struct core *core, const struct stage *stage)
{
    const struct site *last = NULL;
    for (const struct site *site = stage->sites; site != NULL; site = site->hh.next) {
        if (site->state == SITE_HELD && (last == NULL || site->failed_ms >= last->failed_ms)) {
            last = site;
        }
    }
    return last != NULL ? record_text(core, "node %s: %s", last->node->name, last->text) : NULL;
}

/* --- orders --------------------------------------------------------------------------------------------- */

void staging_order(struct core *core, struct stage *stage, struct node *node)
{
    struct site *site = site_find(stage, node);
    if (site == NULL) {
        site = site_make(stage, node);
    }
    if (site->state != SITE_FREE) {
        assert(site->state != SITE_HELD);
        return;
    }
    site_set(core, site, SITE_ORDERED);
    trace_line(core, "node %s is to get ready for %.*s", node->name, SHOWN_KEY, stage->key);
}

void staging_doubt(struct core *core, struct stage *stage, const struct node *node)
{
    struct site *site = stage != NULL ? site_find(stage, node) : NULL;
    if (site != NULL && site->state == SITE_READY) {
        trace_line(core, "node %s is not ready for %.*s any more", node->name, SHOWN_KEY, stage->key);
        site_drop(core, site);
        core->place_wanted = true;
    }
}

void staging_forget_node(struct core *core, struct node *node)
{
    struct site *site, *next;
    DL_FOREACH_SAFE (node->sites, site, next) {
        site_drop(core, site);
    }
}

void staging_copy(const struct node *node, struct node_orders *orders)
{
    orders->stagings = xzalloc((node->ordered_count + 1) * sizeof *orders->stagings);
    for (const struct site *site = node->sites; site != NULL; site = site->next) {
        if (site->state == SITE_ORDERED) {
            orders->stagings[orders->staging_count++] =
                (struct node_staging){.key = xstrdup(site->stage->key), .text = xstrdup(site->stage->text)};
        }
    }
}

/* --- answers -------------------------------------------------------------------------------------------- */

static int64_t hold_ms(const struct site *site)
{
    int64_t hold = STAGING_HOLD_MS;
    for (int64_t i = 1; i < site->failures && hold < STAGING_HOLD_MAX_MS; i++) {
        hold *= 2;
    }
    return hold < STAGING_HOLD_MAX_MS ? hold : STAGING_HOLD_MAX_MS;
}

static void hold(struct core *core, struct site *site, bool lasting, const char *text)
{
    site->failures++;
    site->failed_ms = core->now_ms;
    site->hold_until_ms = lasting ? NEVER : core->now_ms + hold_ms(site);
    free(site->text);
    site->text = xstrdup(text);
    site_set(core, site, SITE_HELD);
    tick_note(core, site->hold_until_ms);
}

static bool some_are_ready(const struct stage *stage)
{
    for (const struct site *site = stage->sites; site != NULL; site = site->hh.next) {
        if (site->state == SITE_READY) {
            return true;
        }
    }
    return false;
}

/* What is refused to all is the jobs' own fault, unless another node shows that it can be had. */
static void take_failure(struct core *core, struct site *site, const struct staging_message *message)
{
    struct stage *stage = site->stage;
    struct node *node = site->node;
    bool by_user = message->by_user && !some_are_ready(stage);
    const char *text = record_text(core, "%s", message->text != NULL ? message->text : "it gave no reason");
    trace_line(core, "node %s cannot get ready for %.*s%s: %s", node->name, SHOWN_KEY, stage->key,
               by_user ? ", nor can any" : "", text);
    if (by_user) {
        site_drop(core, site);
    } else {
        hold(core, site, message->lasting, text);
    }
    job_stage_failed(core, stage, node, text, by_user);
}

bool staging_take(struct core *core, const struct input *input, struct err *err)
{
    const struct staging_message *message = input->staging;
    struct node *node = node_find(core, message->node);
    if (!node_speaks(node, message->boot_id, NULL)) {
        return err_field(err, ERR_NOT_FOUND, "node", "register again", "node %.64s is not registered",
                         message->node);
    }
    struct stage *stage;
    HASH_FIND_STR(core->stages, message->key, stage);
    struct site *site = stage != NULL ? site_find(stage, node) : NULL;
    if (site == NULL || site->state != SITE_ORDERED) {
        return true; /* it is not wanted any more, or was said before */
    }
    core->place_wanted = true;
    switch (message->state) {
    case STAGING_READY:
        trace_line(core, "node %s is ready for %.*s", node->name, SHOWN_KEY, stage->key);
        site->failures = 0;
        site_set(core, site, SITE_READY);
        return true;
    case STAGING_FAILED:
        take_failure(core, site, message);
        return true;
    case STAGING_BUILDING: /* progress changes nothing that decides */
    case STAGING_STATE_COUNT:
        break;
    }
    return true;
}

/* --- time ----------------------------------------------------------------------------------------------- */

/* A site whose hold is over goes on as one that can be told, and remembers how often it failed: its next hold
 * is longer. */
void staging_watch(struct core *core, struct node *node)
{
    struct site *site, *next;
    DL_FOREACH_SAFE (node->sites, site, next) {
        if (site->state != SITE_HELD) {
            continue;
        }
        if (core->now_ms < site->hold_until_ms) {
            tick_note(core, site->hold_until_ms);
        } else {
            site_set(core, site, SITE_FREE);
            core->place_wanted = true;
        }
    }
}

/* --- end ------------------------------------------------------------------------------------------------ */

void staging_clear_sites(struct core *core)
{
    struct stage *stage, *next_stage;
    HASH_ITER (hh, core->stages, stage, next_stage) {
        struct site *site, *next;
        HASH_ITER (hh, stage->sites, site, next) {
            site_free(site);
        }
    }
}

void staging_clear(struct core *core)
{
    while (core->idle_stages != NULL) {
        forget_oldest(core);
    }
    assert(core->stages == NULL);
}

/* --- what must hold ------------------------------------------------------------------------------------- */

static void check_stage(const struct core *core, const struct stage *stage)
{
    size_t ordered = 0;
    for (const struct site *site = stage->sites; site != NULL; site = site->hh.next) {
        ordered += site->state == SITE_ORDERED;
        assert(site->stage == stage && site->node->state != NODE_LOST);
        assert(site->state != SITE_HELD || (site->text != NULL && core->deadline_ms <= site->hold_until_ms));
        assert(stage->job_class_count > 0 || site->state == SITE_READY);
    }
    assert(ordered == stage->ordered_count);
}

void staging_check(const struct core *core)
{
    for (const struct stage *stage = core->stages; stage != NULL; stage = stage->hh.next) {
        check_stage(core, stage);
    }
    for (size_t i = 0; i < core->node_count; i++) {
        size_t ordered = 0;
        for (const struct site *site = core->nodes[i]->sites; site != NULL; site = site->next) {
            ordered += site->state == SITE_ORDERED;
        }
        assert(ordered == core->nodes[i]->ordered_count && ordered <= LIMIT_NODE_STAGINGS);
    }
    assert(core->idle_stage_count <= LIMIT_STAGINGS_KEPT);
}
