/* SPDX-License-Identifier: Apache-2.0 */
/* The output and metrics of ranks by offset: one file per stream, and one index per attempt that records the
 * order in which pieces arrived. And the files that ranks keep, a stream of each rank, in a folder of their
 * own. */
#ifndef BLOB_LOGS_H
#define BLOB_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/job_folder.h"
#include "daemon/blob/worker.h"
#include "proto/base/err.h"
#include "proto/states.h"

struct logs;

/* A stream of output or metrics takes at most limit bytes. Syncs run on the worker; close the worker before
 * the logs. */
struct logs *logs_open(const char *folder, const char *kept_folder, int64_t limit, struct worker *worker,
                       struct err *err);
void logs_close(struct logs *logs);

/* The name of a stream: of a job's attempt, a rank's stdout, stderr or kept files, or the metrics of the node
 * whose first rank it is. job_id is borrowed. */
struct log_name {
    const char *job_id;
    int64_t attempt;
    int64_t rank;
    enum stream stream;
};

/* Appends bytes that belong at the offset. Bytes that are already stored are skipped. A gap is ERR_CONFLICT;
 * an end above the limit is ERR_TOO_LARGE. length 0 only queries. *ret_received and *ret_durable are how much
 * of the stream is stored, and is on disk; they are set unless the error is ERR_IO or ERR_DISK_FULL. */
bool logs_append(struct logs *logs, const struct log_name *name, int64_t offset, const void *bytes,
                 size_t length, int64_t *ret_received, int64_t *ret_durable, struct err *err);

/* Opens the stream's file for reading, with its current size; -1 and *ret_size 0 without an error if nothing
 * is stored yet. */
int logs_open_stream(const struct logs *logs, const struct log_name *name, int64_t *ret_size,
                     struct err *err);

/* The ranks of an attempt of which files are stored, in their order; the caller frees *ret_ranks. Any thread.
 */
bool logs_kept_ranks(const struct logs *logs, const char *job_id, int64_t attempt, int64_t **ret_ranks,
                     size_t *ret_count, struct err *err);

/* Whether any output or metrics are stored of a job. */
bool logs_has(const struct logs *logs, const char *job_id);

/* Removes all output and metrics of a job. *ret_bytes is their size, 0 if there are none. dry: only measures
 * them. Any thread. */
bool logs_remove(const struct logs *logs, const char *job_id, bool dry, int64_t *ret_bytes, struct err *err);

/* The same for the files that its ranks kept. */
bool logs_remove_kept(const struct logs *logs, const char *job_id, bool dry, int64_t *ret_bytes,
                      struct err *err);

/* The size of all output and metrics. Any thread; takes a while, and is cut short when go_on(closure) is
 * false. */
bool logs_measure(const struct logs *logs, bool (*go_on)(void *closure), void *closure, int64_t *ret_bytes,
                  struct err *err);

/* --- for daemon/objects --------------------------------------------------------------------------------- */

/* The folder of a job's output, or of what its ranks kept, and the one that all of these are in. The caller
 * frees the first. */
char *logs_job_folder(const struct logs *logs, const char *job_id, bool kept);
const char *logs_top_folder(const struct logs *logs, bool kept);

/* job_folder_replace: nothing is appended meanwhile. */
bool logs_replace(struct logs *logs, const char *job_id, bool kept, const char *to,
                  const struct job_folder_extent *extent, struct err *err);

/* --- reading in order of arrival ------------------------------------------------------------------------ */

/* A piece of output is cut inside a line only if the line is longer than LIMIT_LOG_PIECE_BYTES, or if its end
 * has not arrived yet. A piece of metrics is a number of whole lines, each in the piece in which it ends.
 * Lines of metrics longer than LIMIT_LOG_PIECE_BYTES are skipped. A piece of length 0 says that a part of
 * such a line was skipped, or that LIMIT_LOG_PASSED_RECORDS records had nothing for the reader. */
struct log_piece {
    int64_t attempt;
    int64_t record; /* the piece's record in the index */
    int64_t rank;
    enum stream stream;
    int64_t offset;
    int64_t at_ms;     /* when the piece arrived; wall clock */
    const char *bytes; /* valid until the next call */
    size_t length;
};

#define LOG_ID_BYTES 64

/* The id of the position after the first length bytes of the piece; log_reader_open continues there. */
void log_piece_id(const struct log_piece *piece, size_t length, char out[LOG_ID_BYTES]);

struct log_reader;

/* rank -1: all ranks; stream STREAM_COUNT: stdout and stderr. after is an id of log_piece_id, of this
 * attempt; NULL: from the start. The way to it costs the same wherever it is. ERR_FIELD if after is no such
 * id. */
struct log_reader *log_reader_open(const struct logs *logs, const char *job_id, int64_t attempt, int64_t rank,
                                   enum stream stream, const char *after, struct err *err);
void log_reader_close(struct log_reader *reader);

/* Leaves out the pieces of output that arrived before. To be called before the first read. */
void log_reader_since(struct log_reader *reader, int64_t since_ms);

/* Reads the next piece; *ret_found false: nothing more is stored yet. */
bool log_reader_next(struct log_reader *reader, bool *ret_found, struct log_piece *ret_piece,
                     struct err *err);

/* Parses an id, or the attempt in it; false if the text is no id. */
bool log_id_parse(const char *id, int64_t *ret_attempt, int64_t *ret_record, int64_t *ret_offset);
bool log_id_attempt(const char *id, int64_t *ret_attempt);

#endif
