/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a job's ranks on our own stdout and stderr. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/states.h"

struct output;

/* out and errors are borrowed. With tail at 0 or above only that many last lines are shown, when
 * output_release is called. */
struct output *output_create(FILE *out, FILE *errors, int64_t tail);
/* Shows lines that were not ended, too. */
void output_destroy(struct output *output);

static inline void cleanup_output(struct output **output)
{
    output_destroy(*output);
}
#define autooutput __attribute__((cleanup(cleanup_output)))

/* From now on lines start with "[rank] " and are shown whole. This and the next two: before the first write.
 */
void output_prefix(struct output *output);
/* The same with the number of an array's task: "[task] ", or "[task:rank] " with ranks. */
void output_task(struct output *output, int64_t task);
/* From now on lines start with the moment at which they came in, before the prefix, and are shown whole. */
void output_stamp(struct output *output);
/* at: when the text came in, as the API writes it; NULL: not known. */
void output_write(struct output *output, int64_t rank, enum stream stream, const char *at, const char *text,
                  size_t length);
/* One event of a log stream: {"rank", "stream", "text", "at"}. */
bool output_write_event(struct output *output, const char *data, size_t length, struct err *err);
/* Shows what a tail has kept, and from now on everything. */
void output_release(struct output *output);
/* Flushes both files. */
bool output_flush(struct output *output, struct err *err);

#endif
