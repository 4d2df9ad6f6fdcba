/* SPDX-License-Identifier: Apache-2.0 */
/* The file names of the streams and the record of the index, shared by the files that write and read them. */
#ifndef BLOB_LOG_FILE_H
#define BLOB_LOG_FILE_H

#include "daemon/blob/logs.h"

/* One piece in the order of arrival, in host byte order. The index is written before the stream, so a record
 * may promise bytes that are not there. These bytes come again, in a record of their own. */
struct log_record {
    int64_t channel;
    int64_t offset;
    int64_t length;
    int64_t at_ms; /* wall clock */
};

/* A channel is a stream of a rank: 2 * rank for stdout and one more for stderr. Metrics channels lie above
 * all output channels, so that a further stream never changes the meaning of an index. */
#define LOG_METRICS_CHANNEL (1LL << 32)

static inline int64_t log_channel(int64_t rank, enum stream stream)
{
    return stream_is_output(stream) ? 2 * rank + (stream == STREAM_STDERR) : LOG_METRICS_CHANNEL + rank;
}

static inline int64_t log_channel_rank(int64_t channel)
{
    return channel >= LOG_METRICS_CHANNEL ? channel - LOG_METRICS_CHANNEL : channel / 2;
}

static inline enum stream log_channel_stream(int64_t channel)
{
    if (channel >= LOG_METRICS_CHANNEL) {
        return STREAM_METRICS;
    }
    return channel % 2 == 0 ? STREAM_STDOUT : STREAM_STDERR;
}

/* FOLDER/ab/abcdefghijklmnop/ATTEMPT.RANK.STREAM and .../ATTEMPT.index; of kept files the same in a folder of
 * their own, without an index. The caller frees them. */
const char *log_root(const struct logs *logs);
char *log_folder_path(const struct logs *logs, const char *job_id);
char *log_kept_path(const struct logs *logs, const char *job_id);
char *log_stream_path(const struct logs *logs, const struct log_name *name);
char *log_index_path(const struct logs *logs, const char *job_id, int64_t attempt);

#endif
