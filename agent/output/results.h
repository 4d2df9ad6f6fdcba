/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the values and exceptions of an attempt's ranks for the exit report. */
#ifndef AGENT_RESULTS_H
#define AGENT_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/common/mask.h"
#include "agent/output/record.h"
#include "agent/output/uploads.h"
#include "proto/wire/messages.h"

struct results;

/* Collects the results that the ranks of an exit record left in their attempt's folder. If all are small,
 * results_ready is true on return. Error files are masked; mask NULL: they have no secrets. Otherwise it
 * uploads large ones as blobs, and calls ready once. */
struct results *results_collect(struct uploads *uploads, const char *logs, const struct record *record,
                                const struct mask *mask, void (*ready)(void *closure), void *closure);
/* NULL is allowed. */
void results_destroy(struct results *results);

bool results_ready(const struct results *results);
/* Gives up the uploads that are not complete; ready is not called any more. */
void results_cut(struct results *results);
/* Drops all results because the controller refuses them. False when there were none. */
bool results_refuse(struct results *results, const char *reason);

/* Sorted by rank. The caller frees the array; its strings are borrowed. */
struct rank_result *results_list(const struct results *results, size_t *ret_count);
/* Why the value of a rank is missing; NULL when there is no problem. */
const char *results_problem(const struct results *results);
/* The most bytes that the results take in a report. */
size_t results_weight(const struct results *results);

#endif
