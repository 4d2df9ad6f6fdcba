/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the webhooks and the keys of their waiting deliveries. It promises that an event and the deliveries
 * of it are changes of one step, so no crash is between them; that a delivery of an event is made once; and
 * that nothing is done for an event when there is no webhook. webhook_change.c has what people and receivers
 * cause. */
#include "daemon/core/webhooks/webhook.h"

#include <string.h>

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

static_assert(EVENT_KIND_COUNT <= 32, "kinds of events are bits");

/* --- the list ------------------------------------------------------------------------------------------- */

bool webhook_kinds(const char *list, uint32_t *ret_kinds)
{
    *ret_kinds = 0;
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        autofree char *word = xstrndup(list, length);
        enum event_kind kind;
        if (!event_kind_from_text(word, &kind)) {
            return false;
        }
        *ret_kinds |= UINT32_C(1) << kind;
        list += length;
        list += *list == ',';
    }
    return *ret_kinds != 0;
}

struct webhook *webhook_add(struct core *core, const struct webhook_row *row)
{
    if (core->webhooks == NULL) {
        core->webhooks = xzalloc(sizeof *core->webhooks);
    }
    struct webhook *webhook = xzalloc(sizeof *webhook);
    webhook->row = *row;
    WEBHOOK_ROW(ROW_OWN, webhook->row)
    bool known = webhook_kinds(row->kinds, &webhook->kinds);
    assert(known);
    DL_APPEND(core->webhooks->first, webhook);
    core->webhooks->count++;
    return webhook;
}

void webhook_drop(struct core *core, struct webhook *webhook)
{
    struct webhooks *webhooks = core->webhooks;
    DL_DELETE(webhooks->first, webhook);
    webhooks->pending_count -= webhook->pending_count;
    WEBHOOK_ROW(ROW_FREE, webhook->row)
    free(webhook->pending);
    free(webhook);
    if (--webhooks->count == 0) {
        free(webhooks);
        core->webhooks = NULL;
    }
}

struct webhook *webhook_find(const struct core *core, const char *id)
{
    struct webhook *webhook = core->webhooks != NULL ? core->webhooks->first : NULL;
    while (webhook != NULL && strcmp(webhook->row.id, id) != 0) {
        webhook = webhook->next;
    }
    return webhook;
}

void webhook_clear(struct core *core)
{
    while (core->webhooks != NULL) {
        webhook_drop(core, core->webhooks->first);
    }
}

/* --- deliveries that wait ------------------------------------------------------------------------------- */

/* The place of a key: of the first that is not smaller. */
static size_t place(const struct webhook *webhook, int64_t key)
{
    size_t low = 0, high = webhook->pending_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (webhook->pending[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool webhook_is_pending(const struct webhook *webhook, int64_t key)
{
    size_t at = place(webhook, key);
    return at < webhook->pending_count && webhook->pending[at] == key;
}

static void insert(struct core *core, struct webhook *webhook, int64_t key)
{
    size_t at = place(webhook, key);
    XGROW(webhook->pending, webhook->pending_count, webhook->pending_room, 8);
    memmove(webhook->pending + at + 1, webhook->pending + at,
            (webhook->pending_count - at) * sizeof *webhook->pending);
    webhook->pending[at] = key;
    webhook->pending_count++;
    core->webhooks->pending_count++;
    core->delivery_stamp++;
}

void webhook_settle(struct core *core, struct webhook *webhook, int64_t key)
{
    size_t at = place(webhook, key);
    assert(at < webhook->pending_count && webhook->pending[at] == key);
    webhook->pending_count--;
    core->webhooks->pending_count--;
    memmove(webhook->pending + at, webhook->pending + at + 1,
            (webhook->pending_count - at) * sizeof *webhook->pending);
}

void webhook_await(struct core *core, struct webhook *webhook, int64_t key)
{
    if (webhook->pending_count >= LIMIT_WEBHOOK_PENDING) {
        const struct delivery_row oldest = {.webhook = webhook->row.id,
                                            .key = webhook->pending[0],
                                            .error = "given up: too many deliveries wait"};
        webhook_settle(core, webhook, oldest.key);
        record_delivery(core, CHANGE_DELIVERIES_GIVE_UP, &oldest);
    }
    insert(core, webhook, key);
}

void webhook_give_up(struct core *core, struct webhook *webhook, const char *error)
{
    if (webhook->pending_count > 0) {
        record_delivery(core, CHANGE_DELIVERIES_GIVE_UP,
                        &(struct delivery_row){.webhook = webhook->row.id, .key = INT64_MAX, .error = error});
        core->webhooks->pending_count -= webhook->pending_count;
        webhook->pending_count = 0;
    }
}

void webhook_deliver(struct core *core, struct webhook *webhook, int64_t job_key, int64_t seq)
{
    const int64_t key = (int64_t)core->config.incarnation << 32 | ++core->delivery_count;
    const int64_t now_ms = core->change_set.wall_ms;
    webhook_await(core, webhook, key);
    record_delivery(core, CHANGE_DELIVERY_INSERT,
                    &(struct delivery_row){.key = key,
                                           .webhook = webhook->row.id,
                                           .job_key = job_key,
                                           .seq = seq,
                                           .created_ms = now_ms,
                                           .state = DELIVERY_PENDING,
                                           .next_ms = now_ms});
    trace_line(core, "webhook %s is told of event %lld of job %lld", webhook->row.id, (long long)seq,
               (long long)job_key);
}

/* --- events --------------------------------------------------------------------------------------------- */

static bool same(const char *wanted, const char *text)
{
    return wanted == NULL || strcmp(wanted, text) == 0;
}

/* Whether a list "a,b" has the word. */
static bool lists(const char *list, const char *word)
{
    const size_t length = strlen(word);
    while (list != NULL && *list != '\0') {
        size_t next = strcspn(list, ",");
        if (next == length && strncmp(list, word, length) == 0) {
            return true;
        }
        list += next;
        list += *list == ',';
    }
    return false;
}

/* A task names what its array names. */
static bool is_named_by(const struct webhook *webhook, const struct job *job)
{
    const char *list = job->task < 0 ? job->notify : job->array->whole->notify;
    return lists(list, webhook->row.id) || (webhook->row.name != NULL && lists(list, webhook->row.name));
}

static bool is_of(const struct webhook *webhook, const struct job *job)
{
    switch (webhook->row.scope) {
    case WEBHOOK_ALL:
        return true;
    case WEBHOOK_OWN:
        return same(webhook->row.owner, account_name(job->owner));
    case WEBHOOK_NAMED:
        return same(webhook->row.owner, account_name(job->owner)) && is_named_by(webhook, job);
    case WEBHOOK_SCOPE_COUNT:
        break;
    }
    abort();
}

static bool wants(const struct webhook *webhook, const struct job *job, enum event_kind kind)
{
    const struct webhook_row *row = &webhook->row;
    return row->enabled && (webhook->kinds >> kind & 1) != 0 && (row->tasks || job->task < 0) &&
           same(row->project, account_name(job->project)) && is_of(webhook, job);
}

void webhook_tell(struct core *core)
{
    if (core->webhooks == NULL) {
        return;
    }
    const struct job *job;
    struct event_row event;
    while (record_next_event(core, &job, &event)) {
        for (struct webhook *webhook = core->webhooks->first; webhook != NULL; webhook = webhook->next) {
            if (wants(webhook, job, event.kind)) {
                webhook_deliver(core, webhook, event.job_key, event.seq);
            }
        }
    }
}

/* --- names in specs ------------------------------------------------------------------------------------- */

char *webhook_join_names(const json_t *notify)
{
    struct text list = {0};
    for (size_t i = 0; i < json_array_size(notify); i++) {
        text_printf(&list, "%s%s", i > 0 ? "," : "", json_string_value(json_array_get(notify, i)));
    }
    return list.length > 0 ? text_take(&list) : NULL;
}

static bool is_known(const struct core *core, const char *name, const char *owner)
{
    const struct webhook *webhook = core->webhooks != NULL ? core->webhooks->first : NULL;
    for (; webhook != NULL; webhook = webhook->next) {
        const struct webhook_row *row = &webhook->row;
        if (strcmp(row->owner, owner) == 0 &&
            (strcmp(row->id, name) == 0 || (row->name != NULL && strcmp(row->name, name) == 0))) {
            return true;
        }
    }
    return false;
}

bool webhook_check_names(const struct core *core, const json_t *notify, const char *owner, struct err *err)
{
    for (size_t i = 0; i < json_array_size(notify); i++) {
        const char *name = json_string_value(json_array_get(notify, i));
        if (!is_known(core, name, owner)) {
            return err_field(err, ERR_FIELD, "notify", "see gpuctl webhooks list, or make one",
                             "you have no webhook with the id or name %.64s", name);
        }
    }
    return true;
}

/* --- loading and checking ------------------------------------------------------------------------------- */

void webhook_load(struct core *core, const struct webhook_row *row)
{
    assert(!core->booted);
    webhook_add(core, row);
}

void webhook_load_delivery(struct core *core, const struct delivery_row *row)
{
    struct webhook *webhook = webhook_find(core, row->webhook);
    assert(!core->booted && webhook != NULL && row->state == DELIVERY_PENDING);
    insert(core, webhook, row->key);
}

void webhook_check(const struct core *core)
{
    size_t count = 0, pending = 0;
    const struct webhook *webhook = core->webhooks != NULL ? core->webhooks->first : NULL;
    for (; webhook != NULL; webhook = webhook->next) {
        assert(webhook->pending_count <= LIMIT_WEBHOOK_PENDING && webhook->kinds != 0);
        for (size_t i = 1; i < webhook->pending_count; i++) {
            assert(webhook->pending[i - 1] < webhook->pending[i]);
        }
        count++;
        pending += webhook->pending_count;
    }
    assert(core->webhooks == NULL ||
           (count == core->webhooks->count && pending == core->webhooks->pending_count));
    assert(count <= LIMIT_WEBHOOKS);
}
