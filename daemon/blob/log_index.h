/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an attempt's index by record number, many records at a time, and repairs it. */
#ifndef BLOB_LOG_INDEX_H
#define BLOB_LOG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/log_file.h"
#include "proto/limits_controller.h"

struct log_index {
    char *path;
    int fd; /* -1: the file does not exist yet */
    int64_t first;
    size_t count; /* block has the records first .. first + count - 1 */
    struct log_record block[LIMIT_INDEX_BLOCK_RECORDS];
};

void log_index_init(struct log_index *index, const struct logs *logs, const char *job_id, int64_t attempt);
void log_index_finish(struct log_index *index);

/* Reads the record of that number; false: it is not complete or not valid. */
bool log_index_read(struct log_index *index, int64_t number, struct log_record *ret_record);

/* Shortens the last record of the channel to the stored bytes, size in all. Otherwise a reader that continues
 * after the record would skip the bytes that come again. path is the index, which may be missing. */
bool log_index_repair(const char *path, int64_t channel, int64_t size, struct err *err);

#endif
