/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which runs of a schedule are made and which are left out, on plain values. It promises that the
 * next run is always later than now, so no moment has two runs. schedule_run.c submits them. */
#include "daemon/http/schedules/schedule_due.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

struct schedule_due schedule_due(const struct cron *cron, const struct zone *zone,
                                 enum schedule_missed missed, int64_t next_ms, int64_t now_ms)
{
    struct schedule_due due = {true, next_ms, cron_next_ms(cron, zone, now_ms)};
    if (next_ms > now_ms - SCHEDULE_LATE_MS || missed == MISSED_LAST) {
        return due;
    }
    int64_t newest_ms = cron_next_ms(cron, zone, now_ms - SCHEDULE_LATE_MS);
    due.runs = newest_ms <= now_ms;
    due.due_ms = due.runs ? newest_ms : next_ms;
    return due;
}

bool schedule_read(const char *cron_text, const char *zone_name, int64_t now_ms, struct cron *ret_cron,
                   struct zone **ret_zone, int64_t *ret_next_ms, struct err *err)
{
    if (strlen(cron_text) > LIMIT_CRON_BYTES) {
        return err_field(err, ERR_FIELD, "cron", "write ranges and steps: 0-59/5",
                         "cron is longer than %d bytes", LIMIT_CRON_BYTES);
    }
    if (!cron_read(cron_text, ret_cron, err)) {
        return false;
    }
    autozone struct zone *zone = zone_open(zone_name, err);
    if (zone == NULL) {
        return false;
    }
    *ret_next_ms = cron_next_ms(ret_cron, zone, now_ms);
    if (*ret_next_ms == INT64_MAX) {
        return err_field(err, ERR_FIELD, "cron", "choose a day that the month has",
                         "cron names a day that never comes");
    }
    *ret_zone = give(zone);
    return true;
}
