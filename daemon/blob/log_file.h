/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bytes of the logs lie: names and the record of the index, shared by the two files that write and
 * read them. */
#ifndef BLOB_LOG_FILE_H
#define BLOB_LOG_FILE_H

#include "daemon/blob/logs.h"

/* One piece as it came, in host byte order. The index is written before the stream, so a record may promise
 * bytes that are not there: they come again, in a record of their own. */
struct log_record {
    int64_t channel; /* rank * STREAM_COUNT + stream */
    int64_t offset;
    int64_t length;
    int64_t at_ms; /* wall clock */
};

static inline int64_t log_channel(int64_t rank, enum stream stream)
{
    return rank * STREAM_COUNT + (int64_t)stream;
}

/* FOLDER/ab/abcdefghijklmnop/ATTEMPT.RANK.STREAM and .../ATTEMPT.index. The caller frees them. */
char *log_folder_path(const struct logs *logs, const char *job_id);
char *log_stream_path(const struct logs *logs, const struct log_name *name);
char *log_index_path(const struct logs *logs, const char *job_id, int64_t attempt);

#endif
