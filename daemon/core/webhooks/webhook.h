/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks: who is told of which events, and the deliveries that wait. */
#ifndef CORE_WEBHOOKS_WEBHOOK_H
#define CORE_WEBHOOKS_WEBHOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/err.h"

struct core;
struct input;

struct webhook {
    struct webhook_row row; /* owned */
    uint32_t kinds;         /* bits of row.kinds */
    int64_t *pending;       /* keys of deliveries that wait, ascending; owned */
    size_t pending_count, pending_room;
    struct webhook *prev, *next;
};

struct webhooks {
    struct webhook *first;
    size_t count;
    size_t pending_count; /* of all */
};

void webhook_load(struct core *core, const struct webhook_row *row);
/* A delivery that waits; call it after all webhooks. */
void webhook_load_delivery(struct core *core, const struct delivery_row *row);
void webhook_clear(struct core *core);

/* The bits of a list like "succeeded,failed"; false: a word is none of an event. */
bool webhook_kinds(const char *list, uint32_t *ret_kinds);

/* The names that a spec has in `notify`, as a job keeps them: separated by commas. NULL: none. */
char *webhook_join_names(const json_t *notify);
/* Whether each of them is a webhook of the owner: ERR_FIELD names "notify". */
bool webhook_check_names(const struct core *core, const json_t *notify, const char *owner, struct err *err);

/* Adds the deliveries of the events that this step has recorded since the last call. Call it before a job
 * loses its accounts, and when all events are recorded. */
void webhook_tell(struct core *core);

/* INPUT_WEBHOOK. */
bool webhook_take(struct core *core, const struct input *input, struct err *err);

/* For webhook_change.c: */
struct webhook *webhook_find(const struct core *core, const char *id);
struct webhook *webhook_add(struct core *core, const struct webhook_row *row);
void webhook_drop(struct core *core, struct webhook *webhook);
/* Makes a delivery that waits; job_key 0: a test. */
void webhook_deliver(struct core *core, struct webhook *webhook, int64_t job_key, int64_t seq);
bool webhook_is_pending(const struct webhook *webhook, int64_t key);
/* The delivery waits from now on. With LIMIT_WEBHOOK_PENDING others the oldest is given up. */
void webhook_await(struct core *core, struct webhook *webhook, int64_t key);
void webhook_settle(struct core *core, struct webhook *webhook, int64_t key);
/* Gives up all deliveries that wait. */
void webhook_give_up(struct core *core, struct webhook *webhook, const char *error);

void webhook_check(const struct core *core);

#endif
