/* SPDX-License-Identifier: Apache-2.0 */
/* The queue as a list: who is next, and why. */
#ifndef CORE_EXPLAIN_QUEUE_LIST_H
#define CORE_EXPLAIN_QUEUE_LIST_H

struct core;
struct input;
struct text;

/* Appends the answer to ASK_QUEUE, the schema Queue of proto/openapi.yaml without the names of the jobs,
 * which the core does not know. */
void queue_list_write(struct core *core, const struct input *input, struct text *out);

#endif
