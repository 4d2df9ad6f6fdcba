/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that tell a core what was used, what is allowed, and how long jobs have run. */
#ifndef TRACE_LEDGER_H
#define TRACE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/core.h"

struct ledger {
    struct usage_row *usages; /* in order of appearance, as the others; owned, and so are their strings */
    size_t usage_count;
    struct limits_row *limits;
    size_t limits_count;
    struct history_row *histories;
    size_t history_count;
    int64_t held_ms, charged_ms, ended_count, charged_count; /* GPU time of ended attempts, and of hours */
};

void ledger_put_usage(struct ledger *ledger, const struct usage_row *row);
void ledger_drop_usage(struct ledger *ledger, const struct usage_row *row);
void ledger_put_limits(struct ledger *ledger, const struct limits_row *row);
/* false: there are none. */
bool ledger_drop_limits(struct ledger *ledger, const struct limits_row *row);
void ledger_put_history(struct ledger *ledger, const struct history_row *row);

/* An attempt with these members has ended; a row of an hour. After each step both add up to the same. */
void ledger_hold(struct ledger *ledger, const struct attempt_row *attempt, const struct member_row *members,
                 size_t count);
void ledger_add_hour(struct ledger *ledger, const struct hour_row *hour);
void ledger_check(const struct ledger *ledger);

/* Into a core that has just been created, before all else. */
void ledger_load(const struct ledger *ledger, struct core *core);
void ledger_finish(struct ledger *ledger);

#endif
