/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are submitted by the clock. HTTP thread only. */
#ifndef HTTP_SCHEDULES_H
#define HTTP_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/model/rows.h"
#include "daemon/http/base/deadline.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"

struct request;
struct schedule_ask;
struct schedule_run;
struct server;

struct schedules {
    struct deadline look;      /* at what is due */
    struct schedule_run *runs; /* those that are with the writer */
    size_t run_count;
    struct schedule_ask *changes; /* those that are with the writer; no run begins meanwhile */
};

void schedules_open(struct server *server);
void schedules_close(struct server *server);

/* Whether a schedule waits for its next run. */
bool schedules_wait(const struct server *server);

/* --- between schedules.c and schedule_run.c ------------------------------------------------------------- */

/* The schedule that the request names; its texts are borrowed from rows, which the caller closes.
 * ERR_NOT_FOUND when there is none, or when it belongs to someone else. */
bool schedule_find_row(struct request *request, struct rows *ret_rows, struct schedule_row *ret_row,
                       struct err *err);

/* Whether a run of it is with the writer. */
bool schedule_is_running(const struct schedules *schedules, const char *id);

/* Schedules have changed: what is due is looked at soon. */
void schedules_wake(struct server *server);

#endif
