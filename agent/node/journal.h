/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts that this node has run lately, and their jobs: kept apart from the attempts themselves, for a
 * controller that has forgotten them. */
#ifndef AGENT_JOURNAL_H
#define AGENT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

struct journal;

/* Uses the files STATE/journal and STATE/journal.old. */
struct journal *journal_open(const char *state, struct err *err);
void journal_close(struct journal *journal);

/* Each adds a line. A failed write is logged, and the line is missing. */
void journal_began(struct journal *journal, uint64_t attempt_id, const char *job_id);
/* code: the largest exit code of the attempt's ranks here; -1: none is known. */
void journal_ended(struct journal *journal, uint64_t attempt_id, int64_t code);

/* Attempts that began at or after a time of the wall clock, the oldest first. */
struct journal_item {
    uint64_t attempt_id;
    char job_id[17];
    int64_t began_ms, ended_ms; /* 0: no end is in the journal */
    int64_t code;
};
/* The caller frees the array. */
struct journal_item *journal_read(const struct journal *journal, int64_t since_ms, size_t *ret_count);

#endif
