/* SPDX-License-Identifier: Apache-2.0 */
/* Cron expressions: "0 3 * * mon-fri", and the moments that they name. */
#ifndef CALENDAR_CRON_H
#define CALENDAR_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/calendar/zone.h"
#include "proto/base/err.h"

/* Bit n: the value n is named. */
struct cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* the field begins with "*" */
};

/* Five fields, or @hourly and the like. ERR_FIELD cron. */
bool cron_read(const char *text, struct cron *ret_cron, struct err *err);

/* The first moment after this one, in wall clock milliseconds; INT64_MAX: none comes in 12 years. */
int64_t cron_next_ms(const struct cron *cron, const struct zone *zone, int64_t after_ms);

#endif
