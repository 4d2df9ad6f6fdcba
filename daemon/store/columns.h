/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the statements of sql.h as the plain values of change.h. What points into a row is borrowed until
 * its statement goes on. All return false when the row holds a word that no list of proto/states.h knows. */
#ifndef STORE_COLUMNS_H
#define STORE_COLUMNS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "daemon/store/store.h"

/* Of a live job: with its spec and the time of its last event. */
bool columns_live_job(sqlite3_stmt *statement, struct job_record *ret_job, struct err *err);
/* With its array, the id of the array that it is a task of, and, with_spec, a spec behind all. */
bool columns_shown(sqlite3_stmt *statement, bool with_spec, struct job_record *ret_job, struct err *err);
bool columns_array(sqlite3_stmt *statement, struct array_row *ret_array, struct err *err);
bool columns_event(sqlite3_stmt *statement, struct event_row *ret_event, struct err *err);
bool columns_dependency(sqlite3_stmt *statement, struct dependency_row *ret_dependency, struct err *err);
bool columns_dependency_with_job(sqlite3_stmt *statement, struct dependency_record *ret_dependency,
                                 struct err *err);
bool columns_attempt(sqlite3_stmt *statement, struct attempt_row *ret_attempt, struct err *err);
bool columns_member(sqlite3_stmt *statement, struct member_row *ret_member, struct err *err);
bool columns_rank(sqlite3_stmt *statement, struct rank_row *ret_rank, struct err *err);
/* *ret_bytes NULL: the pickle is a file, or there is none. */
bool columns_result(sqlite3_stmt *statement, struct result_row *ret_result, const void **ret_bytes,
                    struct err *err);
bool columns_epoch(sqlite3_stmt *statement, struct epoch_record *ret_epoch, struct err *err);
bool columns_node(sqlite3_stmt *statement, struct node_row *ret_node, struct err *err);
bool columns_node_with_use(sqlite3_stmt *statement, struct node_row *ret_node, int64_t *ret_used,
                           struct err *err);
bool columns_history(sqlite3_stmt *statement, struct history_row *ret_history, struct err *err);
bool columns_window(sqlite3_stmt *statement, struct window_row *ret_window, struct err *err);
bool columns_usage(sqlite3_stmt *statement, struct usage_row *ret_usage, struct err *err);
bool columns_limits(sqlite3_stmt *statement, struct limits_row *ret_limits, struct err *err);
bool columns_token(sqlite3_stmt *statement, struct token_row *ret_token, struct err *err);
bool columns_join(sqlite3_stmt *statement, struct join_row *ret_join, struct err *err);
bool columns_blob(sqlite3_stmt *statement, struct blob_row *ret_blob, struct err *err);
bool columns_lost(sqlite3_stmt *statement, int64_t *ret_key, struct lost_row *ret_lost, struct err *err);
bool columns_facts(sqlite3_stmt *statement, struct queue_facts *ret_facts, struct err *err);
bool columns_scope(sqlite3_stmt *statement, int64_t *ret_key, uint8_t ret_scope[32], struct err *err);
/* scope, body, status and answer. */
bool columns_reply(sqlite3_stmt *statement, struct reply_row *ret_reply, struct err *err);

#endif
