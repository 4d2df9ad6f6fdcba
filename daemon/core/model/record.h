/* SPDX-License-Identifier: Apache-2.0 */
/* Records the effects of a step: row changes, changed jobs, nodes with new orders, and memory to free at its
 * end. */
#ifndef CORE_MODEL_RECORD_H
#define CORE_MODEL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/change.h"
#include "proto/states.h"
#include "proto/wire/messages.h"

struct array;
struct attempt;
struct core;
struct input;
struct job;
struct member;
struct node;
struct step;

void record_open(struct core *core, int64_t wall_ms);
/* Fills in the values of all changes as they are now, and hands everything to the step. */
void record_close(struct core *core, struct step *ret_step);

/* Each of these notes that the row is to be written: once per step, with the values at the end of the
 * step. */
void record_birth(struct core *core, struct job *job, const struct input *input);
/* A task adds only its number; its array has the rest. */
void record_task_birth(struct core *core, struct job *task);
void record_array(struct core *core, struct array *array);
void record_job(struct core *core, struct job *job);
void record_attempt_birth(struct core *core, struct attempt *attempt);
void record_attempt(struct core *core, struct attempt *attempt);
void record_member_birth(struct core *core, struct member *member);
void record_member(struct core *core, struct member *member);
void record_node(struct core *core, struct node *node);

/* record_window: a window was made; borrows the row's strings until the step is applied. record_window_gone:
 * a window was removed; copies the id. */
struct window_row;
/* Removes the node's row; no more orders are sent to the node. */
void record_node_gone(struct core *core, struct node *node);
void record_window(struct core *core, const struct window_row *row);
void record_window_gone(struct core *core, const char *id);

/* The sentence for people about a job whose attempt is kept: what failed, and until when it is kept. */
void record_kept(const struct job *job, struct text *out);
/* A row of the job's history; detail is a JSON object in the step's memory, or NULL. */
void record_event(struct core *core, struct job *job, enum event_kind kind, const char *detail);
/* The next event that the step has recorded, its job and its row, each once; false: there is none yet. */
bool record_next_event(struct core *core, const struct job **ret_job, struct event_row *ret_event);
/* Changes of webhooks and deliveries, of which they copy the texts. The step is not lazy then. */
void record_webhook(struct core *core, enum change_kind kind, const struct webhook_row *row);
void record_delivery(struct core *core, enum change_kind kind, const struct delivery_row *row);
/* Notes that the job depends on another. */
void record_dependency(struct core *core, const struct job *job, int64_t on_key, enum dependency kind);
void record_rank(struct core *core, const struct attempt *attempt, const struct rank_exit *rank);
/* Writes the result's row, and the row of its pickle if the bytes are there. Borrows from the result. */
void record_result(struct core *core, const struct attempt *attempt, const struct rank_result *result);

/* A blob that a job brings. Borrows its bytes. */
void record_blob(struct core *core, const struct blob_row *blob);

/* Notes that the job uses a blob. Borrows the hash, in hex. */
void record_use(struct core *core, const struct job *job, const char *hash);
/* Removes the row of a job that has ended. */
void record_job_gone(struct core *core, int64_t key);

/* Notes an account's use, and its limits. Limits are borrowed. */
struct limits_row;
struct usage_row;
void record_usage(struct core *core, enum change_kind kind, const struct usage_row *usage);
void record_limits(struct core *core, enum change_kind kind, const struct limits_row *limits);

/* Sets the answer to a question. */
struct text;
void record_response(struct core *core, const struct text *json);
/* Adds this attempt id to the answer to a heartbeat; most is the largest number of them. */
void record_fenced(struct core *core, uint64_t attempt_id, size_t most);

/* Notes the history of a pattern of jobs. */
struct hour_row;
void record_hour(struct core *core, const struct hour_row *hour);

struct history_row;
void record_history(struct core *core, const struct history_row *row);

/* The wall clock for a record of this job: never earlier than the job's last record. */
int64_t record_time(const struct core *core, const struct job *job);

/* Notes that the node's orders changed. */
void record_dirty(struct core *core, struct node *node);

/* Text that lives as long as the step. */
const char *record_text(struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* {"name":"value"}, with value escaped. */
const char *record_detail(struct core *core, const char *name, const char *value);
/* The same with two members. */
const char *record_details(struct core *core, const char *name, const char *value, const char *other,
                           const char *other_value);

#endif
