/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of an array or a sweep: their ids, their values, and filling in "{task}" and "{lr}". */
#ifndef PROTO_TASKS_H
#define PROTO_TASKS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"

#define TASK_NONE (-1)

/* The id of one task, derived from the id of its array; no two tasks of an array have the same id. array_id
 * is a valid id. */
void task_id(const char *array_id, int64_t task, char ret_id[ID_LENGTH + 1]);

/* Parses "ID.17": the id of an array and the number of a task. The part before the dot is not checked. false:
 * the text has another form. */
bool task_reference(const char *text, size_t *ret_id_length, int64_t *ret_task);

/* The values of one task by name: the first is its own number, "task", the others come from the sweep. */
struct task_value {
    const char *name; /* borrowed from the sweep */
    char *text;       /* owned */
};
struct task_values {
    struct task_value items[LIMIT_SWEEP_NAMES + 1];
    size_t count;
};

/* The number of tasks of a valid sweep; LIMIT_ARRAY_TASKS + 1 for any number above the limit. */
int64_t task_values_count(const json_t *sweep);

/* sweep is valid, or NULL. With task TASK_NONE each name gets its longest value. */
void task_values_make(const json_t *sweep, int64_t tasks, int64_t task, struct task_values *ret_values);
void task_values_finish(struct task_values *values);

/* Appends the text with each "{name}" replaced; braces around any other text stay. */
void task_values_fill(const struct task_values *values, const char *text, struct text *out);

/* Turns the spec of an array into the spec of one task: fills in its words and the values of its
 * variables. */
void task_fill_spec(struct job_spec *spec, int64_t task);

#endif
