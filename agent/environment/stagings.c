/* SPDX-License-Identifier: Apache-2.0 */
/* The stagings of this node. Each staging begins once. Its end is reported until the controller has answered.
 * Progress is reported while there is any, at a pace that people can read. A ready environment stays while
 * the controller wants it. payload.c fetches blobs, builder.c builds environments. */
#include "agent/environment/stagings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

#define MEGABYTE 1e6

struct item {
    struct stagings *stagings;
    struct staging desired;
    enum staging_state state;
    enum build_end fault; /* with STAGING_FAILED */
    char *text;           /* text of the next report, or NULL */

    struct fetch *fetches; /* one for each blob */
    size_t fetching;       /* blobs that have not arrived yet */
    int requirements;      /* the text, for the build; -1: it has not arrived, or the build has it */
    struct build *build;   /* which others may want, too; NULL: none */
    int environment;       /* lock on the environment; -1: none */

    struct controller_request *report;
    enum staging_state told; /* the state in the report that is under way, or was answered last */
    bool changed;            /* the next report has news */
    bool alive;              /* it goes on without news */
    int64_t told_ms;         /* when the last report was answered, or the staging began */
    struct loop_timer tell, watch;
    struct item *prev, *next;
};

/* A blob that is being fetched. */
struct fetch {
    struct item *item;
    struct payload_order *order; /* NULL: it has arrived */
};

struct stagings {
    struct stagings_config config;
    struct builder *builder;
    struct item *items;
};

static struct environment_need need_of(const struct item *item)
{
    return (struct environment_need){item->desired.requirements, item->desired.python_version,
                                     item->desired.python};
}

/* --- telling -------------------------------------------------------------------------------------------- */

static void tell(struct item *item);

static json_t *report_body(void *closure)
{
    struct item *item = closure;
    item->told = item->state;
    item->changed = item->alive = false;
    return staging_message_encode(&(struct staging_message){
        .node = item->stagings->config.node,
        .boot_id = item->stagings->config.boot_id,
        .key = item->desired.key,
        .state = item->state,
        .by_user = item->state == STAGING_FAILED && item->fault == BUILD_REFUSED,
        .lasting = item->state == STAGING_FAILED && item->fault == BUILD_UNABLE,
        .text = item->text,
    });
}

/* A refusal is an answer, too: a repeated report would be refused again. */
static void report_done(void *closure, const struct controller_answer *answer)
{
    struct item *item = closure;
    struct stagings *stagings = item->stagings;
    item->report = NULL;
    item->told_ms = clock_boot_ms();
    if (answer->status == 404) {
        item->changed = true;
        item->told = STAGING_BUILDING;
        stagings->config.stranger(stagings->config.closure); /* the next order sends the report again */
        return;
    }
    if (answer->status / 100 != 2) {
        log_warning("staging report refused", "key=%.16s status=%d problem=\"%s\"", item->desired.key,
                    answer->status, answer->problem.text);
    }
    tell(item);
}

static void tell_due(void *closure)
{
    struct item *item = closure;
    item->report = controller_post(item->stagings->config.controller, "/v1/agent/staging", report_body,
                                   report_done, item);
}

/* Schedules a report if one is due. */
static void tell(struct item *item)
{
    if (item->report != NULL) {
        return;
    }
    int64_t pace_ms = item->changed ? STAGING_TELL_MS : STAGING_ALIVE_MS;
    if (item->state != STAGING_BUILDING && item->changed) {
        loop_arm(item->stagings->config.loop, &item->tell, 0);
    } else if (item->state == STAGING_BUILDING && (item->changed || item->alive)) {
        loop_arm(item->stagings->config.loop, &item->tell, item->told_ms + pace_ms);
    }
}

static void set_text(struct item *item, const char *text)
{
    if (item->text != NULL && text != NULL && strcmp(item->text, text) == 0) {
        item->alive = true;
    } else {
        free(item->text);
        item->text = text != NULL ? xstrndup(text, LIMIT_STAGING_TEXT) : NULL;
        item->changed = true;
    }
}

static void progress(struct item *item, const char *text)
{
    set_text(item, text);
    tell(item);
}

/* --- getting ready -------------------------------------------------------------------------------------- */

/* Leaves the build, which stops if no other staging wants it. */
static void leave_build(struct item *item)
{
    struct build *build = give(item->build);
    struct item *other;
    DL_SEARCH_SCALAR(item->stagings->items, other, build, build);
    if (build != NULL && other == NULL) {
        build_stop(build);
    }
}

/* Ends the work for the staging. */
static void stop(struct item *item)
{
    for (size_t i = 0; item->fetches != NULL && i < item->desired.blob_count; i++) {
        payload_cancel(item->fetches[i].order);
    }
    free(give(item->fetches));
    item->fetching = 0;
    leave_build(item);
    loop_disarm(item->stagings->config.loop, &item->watch);
}

/* fault BUILD_READY: no failure. */
static void end(struct item *item, enum build_end fault, const char *text)
{
    stop(item);
    item->state = fault == BUILD_READY ? STAGING_READY : STAGING_FAILED;
    item->fault = fault;
    set_text(item, text);
    item->changed = true;
    if (fault == BUILD_READY) {
        log_info("staging ready", "key=%.16s", item->desired.key);
    } else {
        log_warning("staging failed", "key=%.16s by_user=%d problem=\"%s\"", item->desired.key,
                    fault == BUILD_REFUSED, text);
    }
    tell(item);
}

static void build_told(void *closure, const struct build *build, const char *text)
{
    struct stagings *stagings = closure;
    struct item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->build == build && text != NULL) {
            progress(item, text);
        } else if (item->build == build) {
            item->alive = true;
            tell(item);
        }
    }
}

/* Locks the environment if it is ready. */
static bool take_environment(struct item *item, struct err *err)
{
    const struct environments *environments = item->stagings->config.environments;
    const struct environment_need need = need_of(item);
    autofree char *name = NULL;
    autofree char *interpreter = NULL;
    autofree char *folder = NULL;
    item->environment = environment_name(environments, &need, &name, &interpreter, err)
                            ? environment_use(environments, name, true, &folder, err)
                            : -1;
    return item->environment >= 0;
}

static void take_build(struct item *item, enum build_end how, const char *text)
{
    struct err err;
    item->build = NULL;
    if (how != BUILD_READY) {
        end(item, how, text);
    } else if (take_environment(item, &err)) {
        end(item, BUILD_READY, NULL);
    } else {
        end(item, BUILD_FAILED, err.text);
    }
}

static void build_done(void *closure, const struct build *build, enum build_end how, const char *text)
{
    struct stagings *stagings = closure;
    struct item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->build == build) {
            take_build(item, how, text);
        }
    }
}

static void begin_environment(struct item *item)
{
    struct stagings *stagings = item->stagings;
    struct err err;
    if (item->desired.requirements == NULL || take_environment(item, &err)) {
        end(item, BUILD_READY, NULL);
        return;
    }
    const struct environment_need need = need_of(item);
    item->build = build_start(stagings->builder, &need, give_fd(&item->requirements), &err);
    if (item->build == NULL) {
        end(item, BUILD_UNABLE, err.text);
    } else if (build_waits(item->build)) {
        progress(item, "waits for other environments that this node builds");
    }
}

static bool is_requirements(const struct item *item, const struct fetch *fetch)
{
    const char *requirements = item->desired.requirements;
    return requirements != NULL && strcmp(requirements, item->desired.blobs[fetch - item->fetches]) == 0;
}

static void fetched(void *closure, int blob, const struct err *err)
{
    struct fetch *fetch = closure;
    struct item *item = fetch->item;
    fetch->order = NULL;
    item->fetching--;
    if (err == NULL && item->requirements < 0 && is_requirements(item, fetch)) {
        item->requirements = fcntl(blob, F_DUPFD_CLOEXEC, 0);
    }
    if (err != NULL) {
        end(item, BUILD_FAILED, err->text);
    } else if (item->fetching == 0) {
        stop(item);
        begin_environment(item);
    }
}

/* Reports how much of the blobs has arrived. */
static void watch_due(void *closure)
{
    struct item *item = closure;
    int64_t bytes = 0;
    for (size_t i = 0; i < item->desired.blob_count; i++) {
        bytes += item->fetches[i].order != NULL ? payload_arrived(item->fetches[i].order) : 0;
    }
    autofree char *text = xprintf("fetches %zu of %zu files: %.1f MB have come", item->fetching,
                                  item->desired.blob_count, (double)bytes / MEGABYTE);
    if (item->text == NULL || strcmp(item->text, text) != 0) {
        progress(item, text);
    }
    loop_arm(item->stagings->config.loop, &item->watch, clock_boot_ms() + STAGING_TELL_MS);
}

static void begin(struct item *item)
{
    struct stagings *stagings = item->stagings;
    cleanup_close(&item->environment);
    cleanup_close(&item->requirements);
    item->environment = item->requirements = -1;
    item->state = item->told = STAGING_BUILDING;
    item->fault = BUILD_READY;
    item->changed = item->alive = false;
    free(give(item->text));
    item->told_ms = clock_boot_ms();
    item->fetching = item->desired.blob_count;
    item->fetches = xzalloc((item->desired.blob_count + 1) * sizeof *item->fetches);
    for (size_t i = 0; i < item->desired.blob_count; i++) {
        struct fetch *fetch = &item->fetches[i];
        fetch->item = item;
        fetch->order = payload_open(stagings->config.payloads, item->desired.blobs[i], fetched, fetch);
    }
    if (item->fetching == 0) {
        begin_environment(item);
    } else {
        loop_arm(stagings->config.loop, &item->watch, item->told_ms + STAGING_TELL_MS);
    }
}

/* --- desired state -------------------------------------------------------------------------------------- */

static struct item *find(const struct stagings *stagings, const char *key)
{
    struct item *item;
    DL_FOREACH (stagings->items, item) {
        if (strcmp(item->desired.key, key) == 0) {
            return item;
        }
    }
    return NULL;
}

static void add(struct stagings *stagings, const struct staging *desired)
{
    struct item *item = xzalloc(sizeof *item);
    if (!staging_decode(json_incref(desired->json), &item->desired, NULL)) {
        abort(); /* it was decoded before */
    }
    item->stagings = stagings;
    item->environment = item->requirements = -1;
    item->tell = (struct loop_timer){.due = tell_due, .closure = item};
    item->watch = (struct loop_timer){.due = watch_due, .closure = item};
    DL_APPEND(stagings->items, item);
    log_info("staging begins", "key=%.16s requirements=%.16s blobs=%zu", item->desired.key,
             item->desired.requirements != NULL ? item->desired.requirements : "none",
             item->desired.blob_count);
    begin(item);
}

static void drop(struct item *item)
{
    stop(item);
    loop_disarm(item->stagings->config.loop, &item->tell);
    controller_abandon(item->report);
    cleanup_close(&item->environment);
    cleanup_close(&item->requirements);
    DL_DELETE(item->stagings->items, item);
    staging_finish(&item->desired);
    free(item->text);
    free(item);
}

static bool is_desired(const struct item *item, const struct staging *desired, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(desired[i].key, item->desired.key) == 0) {
            return true;
        }
    }
    return false;
}

/* The controller may have repeated its order while the answer was under way: only a later one is a new
 * order. */
static void renew(struct item *item, int64_t sent_ms)
{
    bool known = item->state != STAGING_BUILDING && item->told == item->state && item->report == NULL;
    if (known && item->told_ms < sent_ms) {
        begin(item);
    } else {
        tell(item);
    }
}

void stagings_set(struct stagings *stagings, const struct staging *desired, size_t count, int64_t sent_ms)
{
    struct item *item, *next;
    DL_FOREACH_SAFE (stagings->items, item, next) {
        if (!is_desired(item, desired, count)) {
            log_info("staging ends", "key=%.16s state=%s", item->desired.key,
                     staging_state_text(item->state));
            drop(item);
        }
    }
    for (size_t i = 0; i < count; i++) {
        item = find(stagings, desired[i].key);
        if (item != NULL) {
            renew(item, sent_ms);
        } else {
            add(stagings, &desired[i]);
        }
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct stagings *stagings_create(const struct stagings_config *config)
{
    struct stagings *stagings = xzalloc(sizeof *stagings);
    stagings->config = *config;
    stagings->builder = builder_create(&(struct builder_config){.script = config->script,
                                                                .children = config->children,
                                                                .environments = config->environments,
                                                                .build_ids = config->build_ids,
                                                                .hold = config->hold,
                                                                .told = build_told,
                                                                .done = build_done,
                                                                .closure = stagings});
    return stagings;
}

void stagings_destroy(struct stagings *stagings)
{
    if (stagings == NULL) {
        return;
    }
    while (stagings->items != NULL) {
        drop(stagings->items);
    }
    builder_destroy(stagings->builder);
    free(stagings);
}
