/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks say by offset, output and metrics: one file a stream, and one index an attempt that
 * remembers in which order the pieces came. */
#ifndef BLOB_LOGS_H
#define BLOB_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/worker.h"
#include "proto/base/err.h"
#include "proto/states.h"

struct logs;

/* A stream takes limit bytes. Syncs run on the worker, which must be closed before the logs are. */
struct logs *logs_open(const char *folder, int64_t limit, struct worker *worker, struct err *err);
void logs_close(struct logs *logs);

/* Which stream: of a job's attempt, a rank's stdout or stderr, or the metrics of the node whose first rank it
 * is. job_id is borrowed. */
struct log_name {
    const char *job_id;
    int64_t attempt;
    int64_t rank;
    enum stream stream;
};

/* Adds bytes that belong at the offset. What is there already is skipped; a gap is ERR_CONFLICT, an end above
 * the limit of a stream ERR_TOO_LARGE. length may be 0: then it only asks. *ret_received and *ret_durable are
 * set in any case but ERR_IO and ERR_DISK_FULL: the stream is stored, and is on disk, up to there. */
bool logs_append(struct logs *logs, const struct log_name *name, int64_t offset, const void *bytes,
                 size_t length, int64_t *ret_received, int64_t *ret_durable, struct err *err);

/* The stream's file, open for reading, with its size now; -1 and *ret_size 0 without an error when nothing
 * was stored yet. */
int logs_open_stream(const struct logs *logs, const struct log_name *name, int64_t *ret_size,
                     struct err *err);

/* --- reading in order of arrival ------------------------------------------------------------------------ */

/* A piece of output is cut inside a line only where the line is longer than LIMIT_LOG_PIECE_BYTES, or its end
 * has not come yet. A piece of metrics always is a number of whole lines, each in the piece in which it ends;
 * of lines longer than LIMIT_LOG_PIECE_BYTES nothing is given, and a piece of length 0 says that some of one
 * was passed. */
struct log_piece {
    int64_t attempt;
    int64_t record; /* of the index, in which it came */
    int64_t rank;
    enum stream stream;
    int64_t offset;
    const char *bytes; /* valid until the next call */
    size_t length;
};

#define LOG_ID_BYTES 64

/* The id of what ends behind the first length bytes of the piece: hand it to log_reader_open to go on there.
 */
void log_piece_id(const struct log_piece *piece, size_t length, char out[LOG_ID_BYTES]);

struct log_reader;

/* rank -1: all; stream STREAM_COUNT: both stdout and stderr. after is an id of log_piece_id, of this attempt;
 * NULL: from the start. ERR_FIELD when it is none. */
struct log_reader *log_reader_open(const struct logs *logs, const char *job_id, int64_t attempt, int64_t rank,
                                   enum stream stream, const char *after, struct err *err);
void log_reader_close(struct log_reader *reader);

/* The next piece; *ret_found false: nothing more is stored for now. */
bool log_reader_next(struct log_reader *reader, bool *ret_found, struct log_piece *ret_piece,
                     struct err *err);

/* The attempt in an id; false when it is not one. */
bool log_id_attempt(const char *id, int64_t *ret_attempt);

#endif
