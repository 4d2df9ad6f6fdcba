/* SPDX-License-Identifier: Apache-2.0 */
/* The stagings of this node. Each staging begins once. Its end is reported until the controller has answered.
 * Progress is reported while there is any, at a pace that people can read. A ready environment stays while
 * the controller wants it, as does an image. payload.c fetches blobs, inputs.c inputs, then builder.c builds
 * the environment, or staging_images.c has the images pulled. */
#include "agent/environment/stagings_own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

#define MEGABYTE 1e6

static struct environment_need need_of(const struct staging_item *item)
{
    return (struct environment_need){item->desired.requirements, item->desired.python_version,
                                     item->desired.python};
}

/* --- telling -------------------------------------------------------------------------------------------- */

static void tell(struct staging_item *item);

static json_t *report_body(void *closure)
{
    struct staging_item *item = closure;
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
    struct staging_item *item = closure;
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
    struct staging_item *item = closure;
    item->report = controller_post(item->stagings->config.controller, "/v1/agent/staging", report_body,
                                   report_done, item);
}

/* Schedules a report if one is due. */
static void tell(struct staging_item *item)
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

static void set_text(struct staging_item *item, const char *text)
{
    if (item->text != NULL && text != NULL && strcmp(item->text, text) == 0) {
        item->alive = true;
    } else {
        free(item->text);
        item->text = text != NULL ? xstrndup(text, LIMIT_STAGING_TEXT) : NULL;
        item->changed = true;
    }
}

void staging_progress(struct staging_item *item, const char *text)
{
    set_text(item, text);
    tell(item);
}

/* --- getting ready -------------------------------------------------------------------------------------- */

/* Leaves the build, which stops if no other staging wants it. */
static void leave_build(struct staging_item *item)
{
    struct build *build = give(item->build);
    struct staging_item *other;
    DL_SEARCH_SCALAR(item->stagings->items, other, build, build);
    if (build != NULL && other == NULL) {
        build_stop(build);
    }
}

/* Leaves the pull in the same way. */
static void leave_pull(struct staging_item *item)
{
    struct pull *pull = give(item->pull);
    struct staging_item *other;
    DL_SEARCH_SCALAR(item->stagings->items, other, pull, pull);
    if (pull != NULL && other == NULL) {
        pull_stop(pull);
    }
}

static bool wants(const struct staging_item *item, const struct input_fetch *fetch)
{
    for (size_t i = 0; i < item->desired.input_count; i++) {
        if (item->inputs[i] == fetch) {
            return true;
        }
    }
    return false;
}

/* Leaves a fetch, which stops if no staging wants it. */
static void leave_fetch(struct staging_item *item, size_t index)
{
    struct input_fetch *fetch = give(item->inputs[index]);
    const struct staging_item *other = fetch != NULL ? item->stagings->items : NULL;
    while (other != NULL && !wants(other, fetch)) {
        other = other->next;
    }
    if (fetch != NULL && other == NULL) {
        input_fetch_stop(fetch);
    }
}

static void release_inputs(struct staging_item *item)
{
    for (size_t i = 0; i < item->desired.input_count; i++) {
        input_use_finish(&item->uses[i]);
    }
}

/* Ends the work for the staging. */
static void stop(struct staging_item *item)
{
    for (size_t i = 0; i < item->desired.input_count; i++) {
        leave_fetch(item, i);
    }
    item->inputs_coming = 0;
    for (size_t i = 0; item->fetches != NULL && i < item->desired.blob_count; i++) {
        payload_cancel(item->fetches[i].order);
    }
    free(give(item->fetches));
    item->fetching = 0;
    leave_build(item);
    leave_pull(item);
    loop_disarm(item->stagings->config.loop, &item->watch);
}

/* fault BUILD_READY: no failure. */
void staging_end(struct staging_item *item, enum build_end fault, const char *text)
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
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->build == build && text != NULL) {
            staging_progress(item, text);
        } else if (item->build == build) {
            item->alive = true;
            tell(item);
        }
    }
}

/* Locks the environment if it is ready. */
static bool take_environment(struct staging_item *item, struct err *err)
{
    const struct environments *environments = item->stagings->config.environments;
    const struct environment_need need = need_of(item);
    autofree char *name = NULL;
    autofree char *interpreter = NULL;
    autofree char *folder = NULL;
    item->software[0] = environment_name(environments, &need, &name, &interpreter, err)
                            ? environment_use(environments, name, true, &folder, err)
                            : -1;
    return item->software[0] >= 0;
}

static void take_build(struct staging_item *item, enum build_end how, const char *text)
{
    struct err err;
    item->build = NULL;
    if (how != BUILD_READY) {
        staging_end(item, how, text);
    } else if (take_environment(item, &err)) {
        staging_end(item, BUILD_READY, NULL);
    } else {
        staging_end(item, BUILD_FAILED, err.text);
    }
}

static void build_done(void *closure, const struct build *build, enum build_end how, const char *text)
{
    struct stagings *stagings = closure;
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (item->build == build) {
            take_build(item, how, text);
        }
    }
}

static void begin_environment(struct staging_item *item)
{
    struct stagings *stagings = item->stagings;
    struct err err;
    if (item->desired.requirements == NULL || take_environment(item, &err)) {
        staging_end(item, BUILD_READY, NULL);
        return;
    }
    const struct environment_need need = need_of(item);
    item->build = build_start(stagings->builder, &need, give_fd(&item->requirements), &err);
    if (item->build == NULL) {
        staging_end(item, BUILD_UNABLE, err.text);
    } else if (build_waits(item->build)) {
        staging_progress(item, "waits for other environments that this node builds");
    }
}

/* The job has one of both. */
static void begin_software(struct staging_item *item)
{
    if (item->desired.image != NULL) {
        staging_begin_images(item);
    } else {
        begin_environment(item);
    }
}

/* --- inputs --------------------------------------------------------------------------------------------- */

static struct input_need input_need_of(const struct staging_item *item, size_t index)
{
    const struct staging_input *input = &item->desired.inputs[index];
    return (struct input_need){.url = input->url,
                               .sha256 = input->sha256,
                               .secret = input->secret,
                               .owner = item->desired.owner,
                               .project = item->desired.project,
                               .value = input->value};
}

static bool take_input(struct staging_item *item, size_t index)
{
    const struct input_need need = input_need_of(item, index);
    input_use_finish(&item->uses[index]);
    return input_use_begin(item->stagings->inputs, &need, &item->uses[index]);
}

/* What has a hash does not change: it is here, or it has to be fetched. */
static bool begin_input(struct staging_item *item, size_t index, struct err *err)
{
    const struct input_need need = input_need_of(item, index);
    if (need.sha256 != NULL && take_input(item, index)) {
        return true;
    }
    if (need.secret != NULL && need.value == NULL) {
        return err_set(err, ERR_FIELD,
                       "the secret %s is not there for this job any more: set it, then submit the job again",
                       need.secret);
    }
    item->inputs[index] = input_fetch_begin(item->stagings->inputs, &need, err);
    item->inputs_coming += item->inputs[index] != NULL;
    return item->inputs[index] != NULL;
}

static void begin_inputs(struct staging_item *item)
{
    struct err err;
    for (size_t i = 0; i < item->desired.input_count; i++) {
        if (!begin_input(item, i, &err)) {
            staging_end(item, err.code == ERR_FIELD ? BUILD_REFUSED : BUILD_FAILED, err.text);
            return;
        }
    }
    if (item->inputs_coming == 0) {
        begin_software(item);
    }
}

static void input_told(void *closure, const struct input_fetch *fetch, const char *text)
{
    struct stagings *stagings = closure;
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (wants(item, fetch)) {
            staging_progress(item, text);
        }
    }
}

static void input_came(struct staging_item *item, size_t index, enum build_end how, const char *text)
{
    item->inputs[index] = NULL;
    item->inputs_coming--;
    if (how != BUILD_READY) {
        staging_end(item, how, text);
    } else if (!take_input(item, index)) {
        staging_end(item, BUILD_FAILED, "an input has gone at once, for want of room");
    } else if (item->inputs_coming == 0) {
        begin_software(item);
    }
}

static void input_done(void *closure, const struct input_fetch *fetch, enum build_end how, const char *text)
{
    struct stagings *stagings = closure;
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        for (size_t i = 0; i < item->desired.input_count; i++) {
            if (item->inputs[i] == fetch) {
                input_came(item, i, how, text);
            }
        }
    }
}

/* --- blobs ---------------------------------------------------------------------------------------------- */

static bool is_requirements(const struct staging_item *item, const struct staging_fetch *fetch)
{
    const char *requirements = item->desired.requirements;
    return requirements != NULL && strcmp(requirements, item->desired.blobs[fetch - item->fetches]) == 0;
}

static void fetched(void *closure, int blob, const struct err *err)
{
    struct staging_fetch *fetch = closure;
    struct staging_item *item = fetch->item;
    fetch->order = NULL;
    item->fetching--;
    if (err == NULL && item->requirements < 0 && is_requirements(item, fetch)) {
        item->requirements = fcntl(blob, F_DUPFD_CLOEXEC, 0);
    }
    if (err != NULL) {
        staging_end(item, BUILD_FAILED, err->text);
    } else if (item->fetching == 0) {
        stop(item);
        begin_inputs(item);
    }
}

/* Reports how much of the blobs has arrived. */
static void watch_due(void *closure)
{
    struct staging_item *item = closure;
    int64_t bytes = 0;
    for (size_t i = 0; i < item->desired.blob_count; i++) {
        bytes += item->fetches[i].order != NULL ? payload_arrived(item->fetches[i].order) : 0;
    }
    autofree char *text = xprintf("fetches %zu of %zu files: %.1f MB have come", item->fetching,
                                  item->desired.blob_count, (double)bytes / MEGABYTE);
    if (item->text == NULL || strcmp(item->text, text) != 0) {
        staging_progress(item, text);
    }
    loop_arm(item->stagings->config.loop, &item->watch, clock_boot_ms() + STAGING_TELL_MS);
}

static void begin(struct staging_item *item)
{
    struct stagings *stagings = item->stagings;
    cleanup_close(&item->software[0]);
    cleanup_close(&item->software[1]);
    cleanup_close(&item->requirements);
    release_inputs(item);
    item->software[0] = item->software[1] = item->requirements = -1;
    item->state = item->told = STAGING_BUILDING;
    item->fault = BUILD_READY;
    item->changed = item->alive = false;
    free(give(item->text));
    item->told_ms = clock_boot_ms();
    item->fetching = item->desired.blob_count;
    item->fetches = xzalloc((item->desired.blob_count + 1) * sizeof *item->fetches);
    for (size_t i = 0; i < item->desired.blob_count; i++) {
        struct staging_fetch *fetch = &item->fetches[i];
        fetch->item = item;
        fetch->order = payload_open(stagings->config.payloads, item->desired.blobs[i], fetched, fetch);
    }
    if (item->fetching == 0) {
        begin_inputs(item);
    } else {
        loop_arm(stagings->config.loop, &item->watch, item->told_ms + STAGING_TELL_MS);
    }
}

/* --- desired state -------------------------------------------------------------------------------------- */

static struct staging_item *find(const struct stagings *stagings, const char *key)
{
    struct staging_item *item;
    DL_FOREACH (stagings->items, item) {
        if (strcmp(item->desired.key, key) == 0) {
            return item;
        }
    }
    return NULL;
}

static void add(struct stagings *stagings, const struct staging *desired)
{
    struct staging_item *item = xzalloc(sizeof *item);
    if (!staging_decode(json_incref(desired->json), &item->desired, NULL)) {
        abort(); /* it was decoded before */
    }
    item->stagings = stagings;
    item->software[0] = item->software[1] = item->requirements = -1;
    for (size_t i = 0; i < item->desired.input_count; i++) {
        item->uses[i].lock = -1;
    }
    item->tell = (struct loop_timer){.due = tell_due, .closure = item};
    item->watch = (struct loop_timer){.due = watch_due, .closure = item};
    DL_APPEND(stagings->items, item);
    log_info("staging begins", "key=%.16s requirements=%.16s image=%s blobs=%zu inputs=%zu",
             item->desired.key, item->desired.requirements != NULL ? item->desired.requirements : "none",
             item->desired.image != NULL ? item->desired.image : "none", item->desired.blob_count,
             item->desired.input_count);
    begin(item);
}

static void drop(struct staging_item *item)
{
    stop(item);
    loop_disarm(item->stagings->config.loop, &item->tell);
    controller_abandon(item->report);
    cleanup_close(&item->software[0]);
    cleanup_close(&item->software[1]);
    cleanup_close(&item->requirements);
    release_inputs(item);
    DL_DELETE(item->stagings->items, item);
    staging_finish(&item->desired);
    free(item->text);
    free(item);
}

static bool is_desired(const struct staging_item *item, const struct staging *desired, size_t count)
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
static void renew(struct staging_item *item, int64_t sent_ms)
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
    struct staging_item *item, *next;
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

bool stagings_are_wanted(const struct stagings *stagings)
{
    return stagings->items != NULL;
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct inputs *stagings_inputs(const struct stagings *stagings)
{
    return stagings->inputs;
}

const struct images *stagings_images(const struct stagings *stagings)
{
    return stagings->images;
}

bool stagings_step(struct stagings *stagings)
{
    return inputs_step(stagings->inputs) || (stagings->images != NULL && images_step(stagings->images));
}

struct stagings *stagings_create(const struct stagings_config *config, struct err *err)
{
    struct stagings *stagings = xzalloc(sizeof *stagings);
    struct inputs_config inputs = config->inputs;
    inputs.told = input_told;
    inputs.done = input_done;
    inputs.closure = stagings;
    stagings->inputs = inputs_create(&inputs, err);
    if (stagings->inputs == NULL) {
        free(stagings);
        return NULL;
    }
    stagings->config = *config;
    stagings->builder = builder_create(&(struct builder_config){.script = config->script,
                                                                .children = config->children,
                                                                .environments = config->environments,
                                                                .build_ids = config->build_ids,
                                                                .hold = config->hold,
                                                                .told = build_told,
                                                                .done = build_done,
                                                                .closure = stagings});
    if (config->image_folder != NULL) {
        stagings->images = images_create(&(struct images_config){.folder = config->image_folder,
                                                                 .limit_bytes = config->image_limit_bytes,
                                                                 .loop = config->loop,
                                                                 .children = config->children,
                                                                 .hold = config->hold,
                                                                 .told = staging_pull_told,
                                                                 .done = staging_pull_done,
                                                                 .closure = stagings},
                                         err);
        if (stagings->images == NULL) {
            stagings_destroy(stagings);
            return NULL;
        }
    }
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
    inputs_destroy(stagings->inputs);
    images_destroy(stagings->images);
    free(stagings);
}
