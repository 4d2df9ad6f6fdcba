/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of an attempt returned or raised, on its way into the exit report. */
#ifndef AGENT_RESULTS_H
#define AGENT_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/output/record.h"
#include "agent/output/uploads.h"
#include "proto/wire/messages.h"

struct results;

/* Collects what the ranks of an exit record left in the folder of their attempt. Small things are there when
 * it returns; then results_ready says so. Otherwise large ones are being put as blobs, and ready is called
 * once. */
struct results *results_collect(struct uploads *uploads, const char *logs, const struct record *record,
                                void (*ready)(void *closure), void *closure);
/* NULL is allowed. */
void results_destroy(struct results *results);

bool results_ready(const struct results *results);
/* Gives up on what is not yet with the controller; ready is not called any more. */
void results_cut(struct results *results);
/* The controller does not take them: none is left. False when there was none. */
bool results_refuse(struct results *results, const char *reason);

/* In order of rank. The array is the caller's to free, its strings are borrowed. */
struct rank_result *results_list(const struct results *results, size_t *ret_count);
/* Why the value of some rank cannot be had; NULL when there is nothing to say. */
const char *results_problem(const struct results *results);
/* The most bytes that they take in a report. */
size_t results_weight(const struct results *results);

#endif
