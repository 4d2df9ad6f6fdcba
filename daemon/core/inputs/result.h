/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a function job leave behind, as an exit report brings it. */
#ifndef CORE_INPUTS_RESULT_H
#define CORE_INPUTS_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/wire/messages.h"

struct core;
struct member;

/* The results are of ranks of this member, in order, one a rank at most; else ERR_FIELD. */
bool result_check(const struct member *member, const struct report_message *report, struct err *err);

/* The first rank that should have returned a value and is not among the report's; -1: none. */
int64_t result_missing(const struct member *member, const struct report_message *report);

/* Notes the rows of all results, and of the pickles that came with them. */
void result_keep(struct core *core, struct member *member, const struct report_message *report);

#endif
