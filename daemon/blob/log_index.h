/* SPDX-License-Identifier: Apache-2.0 */
/* The index of an attempt: its records by their number, fetched many at a time, and its repair. */
#ifndef BLOB_LOG_INDEX_H
#define BLOB_LOG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/log_file.h"
#include "proto/limits.h"

struct log_index {
    char *path;
    int fd; /* -1: not there yet */
    int64_t first;
    size_t count; /* records first .. first + count - 1 are in block */
    struct log_record block[LIMIT_INDEX_BLOCK_RECORDS];
};

void log_index_init(struct log_index *index, const struct logs *logs, const char *job_id, int64_t attempt);
void log_index_finish(struct log_index *index);

/* The record of that number; false: it is not (wholly) there, or is none. */
bool log_index_read(struct log_index *index, int64_t number, struct log_record *ret_record);

/* Shortens the last record of the channel to the bytes that are there, size in all: else a reader that comes
 * back behind it would take those that come again for seen. Path is of the index, which need not be there. */
bool log_index_repair(const char *path, int64_t channel, int64_t size, struct err *err);

#endif
