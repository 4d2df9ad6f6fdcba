/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of an array or a sweep: their ids, their values, and what is put in place of "{task}" and "{lr}".
 */
#ifndef PROTO_TASKS_H
#define PROTO_TASKS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"

#define TASK_NONE (-1)

/* The id of one task, which follows from that of its array: no two tasks of an array have the same. array_id
 * is an id. */
void task_id(const char *array_id, int64_t task, char ret_id[ID_LENGTH + 1]);

/* "ID.17": the id of an array and the number of a task. The part before the dot is not checked. false: it is
 * no such thing. */
bool task_reference(const char *text, size_t *ret_id_length, int64_t *ret_task);

/* What one task has in place of names: the first is its own number, "task", the others are those of the
 * sweep. */
struct task_value {
    const char *name; /* borrowed from the sweep */
    char *text;       /* owned */
};
struct task_values {
    struct task_value items[LIMIT_SWEEP_NAMES + 1];
    size_t count;
};

/* How many choices a sound sweep has, LIMIT_ARRAY_TASKS + 1 where there are more than may be. */
int64_t task_values_count(const json_t *sweep);

/* sweep is a sound one, or NULL; task TASK_NONE: of each name the value that is longest. */
void task_values_make(const json_t *sweep, int64_t tasks, int64_t task, struct task_values *ret_values);
void task_values_finish(struct task_values *values);

/* Appends the text with each "{name}" replaced; what is in braces and is no name stays. */
void task_values_fill(const struct task_values *values, const char *text, struct text *out);

/* Makes the spec of an array that of one task: its words and the values of its variables are filled in. */
void task_fill_spec(struct job_spec *spec, int64_t task);

#endif
