/* SPDX-License-Identifier: Apache-2.0 */
/* The exit record of a shim, as agent/shim/shimwire.h describes it. */
#ifndef AGENT_RECORD_H
#define AGENT_RECORD_H

#include "proto/base/err.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

/* A moment that a rank reported by name. */
struct record_mark {
    int64_t rank, at_us; /* CLOCK_BOOTTIME, as the next */
    char name[LIMIT_MARK_NAME + 1];
};

struct record_moments {
    int64_t prepared_us, begun_us, running_us, output_us, gone_us; /* 0: did not happen, or unknown */
    struct record_mark marks[LIMIT_MARKS];
    size_t mark_count;
};

struct record {
    int64_t attempt_id;      /* 0: the record does not name its attempt */
    struct rank_exit *ranks; /* owned */
    size_t rank_count;
    int64_t checkpoint_ms; /* wall clock; 0: no rank acknowledged a checkpoint */
    enum cause cause;
    char *text; /* the cause for people, owned; NULL when there is nothing to add */
    struct record_moments moments;
};

/* Parses a record; ERR_MALFORMED when it is incomplete or has an unknown line. */
bool record_parse(const char *text, struct record *ret_record, struct err *err);

/* Reads the record in the attempt's folder on disk; false when there is none, or it is malformed, or of
 * another attempt. */
bool record_read(const char *logs_folder, uint64_t attempt_id, struct record *ret_record, struct err *err);

/* Syncs it: its shim died, perhaps before it did. */
void record_secure(const char *logs_folder);

/* Cuts numbers of 0 and more, which single spaces separate, off the text; for messages of shims, too. */
bool record_numbers(char **rest, int64_t *numbers, size_t count);

/* The largest exit code of its ranks; -1 when none was started. */
int64_t record_worst_code(const struct record *record);

void record_finish(struct record *record);

#endif
