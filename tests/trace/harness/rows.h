/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a store would hold, in memory: takes the changes of steps, checks that they make sense, and
 * loads another core from them. */
#ifndef TRACE_ROWS_H
#define TRACE_ROWS_H

#include "daemon/core/core.h"
#include "proto/base/text/text.h"

struct rows;

struct rows *rows_create(void);
void rows_destroy(struct rows *rows);

/* Aborts when the changes contradict the rows: an update before its insert, a gap in a history, anything
 * after a terminal state, a function that succeeds without a result of every rank. specs holds the spec of a
 * job that is inserted; it is copied. */
void rows_apply(struct rows *rows, const struct step *step, const struct job_spec *spec);

/* The environment spec with this key, whose parts are the words behind the first: "code data image". A "?"
 * says that they may change at their sources. */
struct environment_spec rows_environment(const char *key);

/* Into a core that has just been created. */
void rows_load(const struct rows *rows, struct core *core);
int64_t rows_next_key(const struct rows *rows);

/* NULL when there is no such job. */
const struct job_life *rows_job(const struct rows *rows, const char *id);
/* How far an array is; tasks 0: the job is none. */
const struct array_row *rows_array(const struct rows *rows, const char *id);
const char *rows_job_id(const struct rows *rows, int64_t key);
/* 0 when there is no such job. */
int64_t rows_key(const struct rows *rows, const char *id);
/* Of the job's newest attempt; 0 when it has none. */
uint64_t rows_attempt_id(const struct rows *rows, const char *id);
/* NULL when there is no such attempt. */
const struct attempt_row *rows_attempt(const struct rows *rows, uint64_t attempt_id);
const struct node_row *rows_node(const struct rows *rows, const char *name);
size_t rows_window_count(const struct rows *rows);

/* How many accounts have a row of what they used. */
size_t rows_usage_count(const struct rows *rows);

/* "submitted placed started": the kinds of its events. */
void rows_history(const struct rows *rows, const char *id, struct text *out);
/* How many exits of ranks the attempt has. */
size_t rows_rank_count(const struct rows *rows, uint64_t attempt_id);
/* How many results of that kind the attempt has. */
size_t rows_result_count(const struct rows *rows, uint64_t attempt_id, enum result_kind kind);

#endif
