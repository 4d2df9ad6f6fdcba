/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the journal to the controller after a restore. Each attempt is reported once per restore, a page at a
 * time, and again from the start when the controller no longer knows the node. journal.c keeps the
 * journal. */
#include "agent/node/recall.h"

#include <stdlib.h>

#include "agent/node/journal.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

struct recall {
    struct agent_context *context;
    struct journal_item *items; /* owned */
    size_t count, told;
    int64_t restored_ms;                /* the restore that is being answered, or was answered last */
    struct controller_request *telling; /* the page that is being sent; NULL: none */
};

struct recall *recall_create(struct agent_context *context)
{
    struct recall *recall = xzalloc(sizeof *recall);
    recall->context = context;
    return recall;
}

static void stop(struct recall *recall)
{
    controller_cancel(recall->telling);
    recall->telling = NULL;
    free(recall->items);
    recall->items = NULL;
    recall->count = recall->told = 0;
}

void recall_destroy(struct recall *recall)
{
    if (recall != NULL) {
        stop(recall);
        free(recall);
    }
}

static size_t page_size(const struct recall *recall)
{
    size_t left = recall->count - recall->told;
    return left < LIMIT_JOURNAL_ENTRIES ? left : LIMIT_JOURNAL_ENTRIES;
}

static json_t *page_body(void *closure)
{
    const struct recall *recall = closure;
    struct journal_entry entries[LIMIT_JOURNAL_ENTRIES];
    size_t size = page_size(recall);
    for (size_t i = 0; i < size; i++) {
        const struct journal_item *item = &recall->items[recall->told + i];
        entries[i] = (struct journal_entry){.attempt_id = item->attempt_id,
                                            .job_id = item->job_id,
                                            .began_ms = item->began_ms,
                                            .ended_ms = item->ended_ms,
                                            .code = item->code};
    }
    const struct journal_message message = {.node = recall->context->config.name,
                                            .boot_id = recall->context->boot_id,
                                            .entries = entries,
                                            .entry_count = size};
    return journal_message_encode(&message);
}

static void tell_page(struct recall *recall);

static void page_done(void *closure, const struct controller_answer *answer)
{
    struct recall *recall = closure;
    recall->telling = NULL;
    if (answer->status / 100 != 2) {
        log_warning("journal refused", "status=%d problem=\"%s\"", answer->status, answer->problem.text);
        stop(recall);
        recall->restored_ms = answer->status == 404 ? 0 : recall->restored_ms;
        return;
    }
    recall->told += page_size(recall);
    tell_page(recall);
}

static void tell_page(struct recall *recall)
{
    if (recall->told == recall->count) {
        stop(recall);
        return;
    }
    recall->telling =
        controller_post(recall->context->controller, "/v1/agent/journal", page_body, page_done, recall);
}

void recall_hear(struct recall *recall, const struct poll_reply *reply)
{
    if (reply->restored_ms == recall->restored_ms || reply->restored_ms == 0) {
        return;
    }
    stop(recall);
    recall->restored_ms = reply->restored_ms;
    recall->items =
        journal_read(recall->context->journal, reply->journal_since_ms - JOURNAL_SLACK_MS, &recall->count);
    if (recall->count > 0) {
        log_info("journal tell", "attempts=%zu since_ms=%lld", recall->count,
                 (long long)reply->journal_since_ms);
    }
    tell_page(recall);
}
