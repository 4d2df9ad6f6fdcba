/* SPDX-License-Identifier: Apache-2.0 */
/* Results: the values and exceptions of a function job's ranks, from an exit report. */
#ifndef CORE_INPUTS_RESULT_H
#define CORE_INPUTS_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/wire/messages.h"

struct core;
struct member;

/* Checks that the results are from ranks of this member, in order, at most one per rank; else ERR_FIELD. */
bool result_check(const struct member *member, const struct report_message *report, struct err *err);

/* The first rank that should have returned a value and is missing in the report; -1: none. */
int64_t result_missing(const struct member *member, const struct report_message *report);

/* Writes the rows of all results, and of the pickles in the report. */
void result_keep(struct core *core, struct member *member, const struct report_message *report);

#endif
