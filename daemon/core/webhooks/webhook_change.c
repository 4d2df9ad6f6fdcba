/* SPDX-License-Identifier: Apache-2.0 */
/* Changes webhooks: what their owners ask, and what became of tries. It decides when a delivery is tried
 * again, when it is given up, and when a webhook that nobody answers is disabled. */
#include <string.h>

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/webhooks/webhook.h"
#include "proto/limits_controller.h"

#define HTTP_GONE 410

/* --- what owners ask ------------------------------------------------------------------------------------ */

static void put(struct core *core, const struct webhook *webhook)
{
    record_webhook(core, CHANGE_WEBHOOK_PUT, &webhook->row);
}

static bool check_room(const struct core *core, const struct webhook_row *row, struct err *err)
{
    size_t mine = 0;
    const struct webhook *webhook = core->webhooks != NULL ? core->webhooks->first : NULL;
    for (; webhook != NULL; webhook = webhook->next) {
        if (strcmp(webhook->row.owner, row->owner) != 0) {
            continue;
        }
        mine++;
        if (row->name != NULL && webhook->row.name != NULL && strcmp(webhook->row.name, row->name) == 0) {
            return err_field(err, ERR_CONFLICT, "name", "choose another name, or change that webhook",
                             "webhook %s of yours has the name %.64s", webhook->row.id, row->name);
        }
    }
    if (mine >= LIMIT_WEBHOOKS_OF_OWNER) {
        return err_field(err, ERR_CONFLICT, "url", "remove one that you do not need",
                         "you have %d webhooks already", LIMIT_WEBHOOKS_OF_OWNER);
    }
    return core->webhooks == NULL || core->webhooks->count < LIMIT_WEBHOOKS ||
           err_field(err, ERR_CONFLICT, "url", "ask an administrator to remove some",
                     "there are %d webhooks already", LIMIT_WEBHOOKS);
}

static bool make(struct core *core, const struct webhook_row *asked, struct err *err)
{
    struct webhook_row row = *asked;
    row.created_ms = core->change_set.wall_ms;
    if (!check_room(core, &row, err)) {
        return false;
    }
    trace_line(core, "webhook %s is made", row.id);
    put(core, webhook_add(core, &row));
    return true;
}

static void disable(struct core *core, struct webhook *webhook, const char *reason)
{
    trace_line(core, "webhook %s is disabled", webhook->row.id);
    webhook->row.enabled = false;
    replace_text(&webhook->row.reason, reason);
    webhook_give_up(core, webhook, "given up: the webhook was disabled");
}

static void change(struct core *core, struct webhook *webhook, const struct input *input)
{
    struct webhook_row *row = &webhook->row;
    if (input->webhook.url != NULL) {
        replace_text(&row->url, input->webhook.url);
    }
    if (input->webhook.kinds != NULL) {
        bool known = webhook_kinds(input->webhook.kinds, &webhook->kinds);
        assert(known);
        replace_text(&row->kinds, input->webhook.kinds);
    }
    row->tasks = input->webhook.sets_tasks ? input->webhook.tasks : row->tasks;
    if (input->webhook.sets_enabled && !input->webhook.enabled) {
        disable(core, webhook, NULL);
    } else if (input->webhook.sets_enabled) {
        row->enabled = true;
        row->failing_ms = 0;
        replace_text(&row->reason, NULL);
    }
    put(core, webhook);
}

static void take_away(struct core *core, struct webhook *webhook)
{
    trace_line(core, "webhook %s is removed", webhook->row.id);
    record_webhook(core, CHANGE_WEBHOOK_DELETE, &webhook->row);
    webhook_drop(core, webhook);
}

static bool need_enabled(const struct webhook *webhook, struct err *err)
{
    return webhook->row.enabled || err_field(err, ERR_CONFLICT, "enabled", "enable it first",
                                             "webhook %s is disabled", webhook->row.id);
}

static void replay(struct core *core, struct webhook *webhook, const int64_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!webhook_is_pending(webhook, keys[i])) {
            webhook_await(core, webhook, keys[i]);
            record_delivery(core, CHANGE_DELIVERY_UPDATE,
                            &(struct delivery_row){.key = keys[i],
                                                   .webhook = webhook->row.id,
                                                   .state = DELIVERY_PENDING,
                                                   .next_ms = core->change_set.wall_ms});
        }
    }
}

/* --- outcomes ------------------------------------------------------------------------------------------- */

static int64_t first_pause(const struct core *core)
{
    return core->config.webhook_pause_ms > 0 ? core->config.webhook_pause_ms : DEFAULT_WEBHOOK_PAUSE_MS;
}

/* After so many tries. */
static int64_t pause_after(const struct core *core, int64_t tries, int64_t jitter)
{
    int64_t steps = 1;
    for (int64_t i = 1; i < tries && steps < WEBHOOK_PAUSE_STEPS; i++) {
        steps *= 3;
    }
    const int64_t pause_ms = first_pause(core) * (steps < WEBHOOK_PAUSE_STEPS ? steps : WEBHOOK_PAUSE_STEPS);
    return pause_ms + pause_ms / 5 * jitter / 1024;
}

static bool is_hopeless(const struct core *core, const struct webhook *webhook)
{
    return core->change_set.wall_ms - webhook->row.failing_ms >= WEBHOOK_PATIENCE_STEPS * first_pause(core);
}

static void note_failure(struct core *core, struct webhook *webhook, const struct delivery_outcome *outcome,
                         bool given_up)
{
    bool first = webhook->row.failing_ms == 0;
    if (first) {
        webhook->row.failing_ms = core->change_set.wall_ms;
    }
    if (outcome->code == HTTP_GONE) {
        disable(core, webhook, "its receiver answered 410 Gone");
    } else if (given_up && is_hopeless(core, webhook)) {
        disable(core, webhook, "no delivery has succeeded for days");
    } else if (!first) {
        return;
    }
    put(core, webhook);
}

static void note_success(struct core *core, struct webhook *webhook)
{
    if (webhook->row.failing_ms != 0) {
        webhook->row.failing_ms = 0;
        put(core, webhook);
    }
}

static void take_outcome(struct core *core, struct webhook *webhook, const struct delivery_outcome *outcome)
{
    const int64_t now_ms = core->change_set.wall_ms;
    const bool over = outcome->delivered || outcome->hopeless || outcome->code == HTTP_GONE ||
                      outcome->tries >= LIMIT_DELIVERY_TRIES;
    struct delivery_row row = {.key = outcome->key,
                               .webhook = webhook->row.id,
                               .state = outcome->delivered ? DELIVERY_DELIVERED
                                        : over             ? DELIVERY_FAILED
                                                           : DELIVERY_PENDING,
                               .tries = outcome->tries,
                               .at_ms = now_ms,
                               .code = outcome->code,
                               .error = outcome->error};
    if (over) {
        webhook_settle(core, webhook, outcome->key);
    } else {
        row.next_ms = now_ms + pause_after(core, outcome->tries, outcome->jitter);
    }
    record_delivery(core, CHANGE_DELIVERY_UPDATE, &row);
    if (outcome->delivered) {
        note_success(core, webhook);
    } else if (!outcome->hopeless) {
        note_failure(core, webhook, outcome, over);
    }
}

bool webhook_take(struct core *core, const struct input *input, struct err *err)
{
    const enum webhook_action action = input->webhook.action;
    if (action == WEBHOOK_ACTION_MAKE) {
        return make(core, input->webhook.row, err);
    }
    struct webhook *webhook = webhook_find(core, input->webhook.id);
    const char *owner = input->webhook.owner;
    if (webhook == NULL || (owner != NULL && strcmp(webhook->row.owner, owner) != 0)) {
        return err_field(err, ERR_NOT_FOUND, "id", "list the webhooks", "there is no webhook %.64s",
                         input->webhook.id);
    }
    switch (action) {
    case WEBHOOK_ACTION_MAKE:
        break;
    case WEBHOOK_ACTION_CHANGE:
        change(core, webhook, input);
        return true;
    case WEBHOOK_ACTION_REMOVE:
        take_away(core, webhook);
        return true;
    case WEBHOOK_ACTION_TEST:
        if (!need_enabled(webhook, err)) {
            return false;
        }
        webhook_deliver(core, webhook, 0, 0);
        return true;
    case WEBHOOK_ACTION_REPLAY:
        if (!need_enabled(webhook, err)) {
            return false;
        }
        replay(core, webhook, input->webhook.keys, input->webhook.count);
        return true;
    case WEBHOOK_ACTION_OUTCOME:
        if (webhook_is_pending(webhook, input->webhook.outcome->key)) {
            take_outcome(core, webhook, input->webhook.outcome);
        }
        return true;
    }
    abort();
}
