/* SPDX-License-Identifier: Apache-2.0 */
/* Which attempts this node has run lately, and for which jobs: kept beside the attempts themselves, for a
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

/* Each adds a line. What cannot be written is logged, and then missing. */
void journal_began(struct journal *journal, uint64_t attempt_id, const char *job_id);
/* code: the largest exit code of the attempt's ranks here; -1: none is known. */
void journal_ended(struct journal *journal, uint64_t attempt_id, int64_t code);

/* Attempts that began at or after a time of the wall clock, the oldest first. */
struct journal_item {
    uint64_t attempt_id;
    char job_id[17];
    int64_t began_ms, ended_ms; /* 0: not ended, as far as this journal knows */
    int64_t code;
};
/* The array is the caller's. */
struct journal_item *journal_read(const struct journal *journal, int64_t since_ms, size_t *ret_count);

#endif
