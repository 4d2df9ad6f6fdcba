/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of a job's metrics: points and progress of the job's own streams, and points that MLflow's
 * clients log into the runs of its attempts. */
#ifndef HTTP_METRIC_FOLLOW_H
#define HTTP_METRIC_FOLLOW_H

#include "daemon/http/logs/log_cursor.h"
#include "daemon/http/logs/metric_feed.h"

struct request;

/* Replies with the stream. wanted.after may be an id of its events, or one of log_piece_id. The name of the
 * filter is borrowed from the request. */
bool metric_follow(struct request *request, struct log_query *wanted, const struct metric_filter *filter,
                   struct err *err);

#endif
