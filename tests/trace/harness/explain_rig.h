/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about jobs, and what their answers are expected to say. */
#ifndef TRACE_EXPLAIN_RIG_H
#define TRACE_EXPLAIN_RIG_H

#include <jansson.h>
#include <stdint.h>

#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"

#define MINUTE_MS 60000

/* The answer of the last step; the caller's. */
json_t *answer_of(const struct cluster *c);
json_t *explain(struct cluster *c, const char *id);
const char *text_at(const json_t *answer, const char *name, const char *member);
int64_t number_at(const json_t *answer, const char *name, const char *member);
void expect_reason_in(const json_t *answer, const char *code, const char *text);
void expect_reason(struct cluster *c, const char *id, const char *code, const char *text);
void expect_change_in(const json_t *answer, const char *field, const char *text);
void expect_change(struct cluster *c, const char *id, const char *field, const char *text);
/* In seconds from now. */
int64_t seconds_until(const struct cluster *c, const json_t *answer, const char *member);
/* "busy 2: a b; draining 1: c" */
void expect_nodes(struct cluster *c, const char *id, int64_t usable, const char *failed);

#endif
