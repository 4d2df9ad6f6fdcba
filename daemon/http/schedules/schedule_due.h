/* SPDX-License-Identifier: Apache-2.0 */
/* What a schedule does at a moment. */
#ifndef HTTP_SCHEDULE_DUE_H
#define HTTP_SCHEDULE_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/calendar/cron.h"
#include "proto/states.h"

struct schedule_due {
    bool runs;       /* else the runs that were due are left out */
    int64_t due_ms;  /* of the run, or of the first that is left out */
    int64_t next_ms; /* of the run after it; later than now */
};

/* Of a schedule whose next run was due at next_ms, which is not later than now. A run that is less than
 * SCHEDULE_LATE_MS late is not missed. */
struct schedule_due schedule_due(const struct cron *cron, const struct zone *zone,
                                 enum schedule_missed missed, int64_t next_ms, int64_t now_ms);

/* The expression and the zone of a schedule. The zone is the caller's. ERR_FIELD cron or time_zone: one of
 * them is wrong, or the expression never comes true. */
bool schedule_read(const char *cron_text, const char *zone_name, int64_t now_ms, struct cron *ret_cron,
                   struct zone **ret_zone, int64_t *ret_next_ms, struct err *err);

#endif
