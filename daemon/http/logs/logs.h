/* SPDX-License-Identifier: Apache-2.0 */
/* The log store as the HTTP thread sees it. */
#ifndef HTTP_LOGS_H
#define HTTP_LOGS_H

#include <stdbool.h>

#include "daemon/store/store.h"
#include "daemon/http/logs/log_cursor.h"
#include "proto/base/err.h"
#include "proto/wire/messages.h"

struct request;
struct server;

/* Stores the tails of the streams in an exit report and wakes those who follow; called before the report goes
 * to the writer, so that a job which shows as ended has its last lines. false: the report is refused with
 * *err.
 */
bool logs_store_tails(struct server *server, const struct report_message *report,
                      const struct attempt_record *attempt_id, struct err *err);

/* Reads which output of a job the request asks for: its parameters attempt, rank and stream, and
 * Last-Event-ID. ERR_GONE when all of it was removed. */
bool logs_read_query(struct request *request, struct log_query *ret_query, struct err *err);

/* Whether it has output of its own: an array has none. */
bool logs_refuse_array(const struct job_facts *job, struct err *err);

#endif
