/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the output of an attempt for lines, a bounded piece of it at a time. */
#ifndef BLOB_LOG_SEARCH_H
#define BLOB_LOG_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/log_pattern.h"
#include "daemon/blob/logs.h"
#include "proto/base/err.h"

/* Lines come in the order in which their beginnings arrived. A line ends with \n, \r or both; of a line
 * longer than LIMIT_SEARCH_LINE_BYTES each such piece counts as a line. */
struct log_search {
    const struct logs *logs;
    const char *job_id; /* borrowed */
    int64_t attempt;
    int64_t rank;           /* -1: all */
    enum stream stream;     /* STREAM_COUNT: stdout and stderr */
    int64_t since_ms;       /* lines in pieces that arrived before are left out */
    int64_t record, offset; /* where it begins: 0 and 0, or where a search before ended */
    int64_t records;        /* of the index that are searched: log_search_records */
    struct log_pattern *pattern;
};

struct log_match {
    int64_t rank;
    enum stream stream;
    int64_t offset;   /* of the line in its stream */
    int64_t at_ms;    /* when its beginning arrived; wall clock */
    const char *line; /* without its end; valid during the call */
    size_t length;
    bool cut;              /* the line goes on */
    char id[LOG_ID_BYTES]; /* with which log_reader_open begins at the line */
};

struct log_search_end {
    bool more; /* the search goes on at: */
    int64_t record, offset;
    int64_t scanned; /* bytes of output and index that were read for it */
};

/* The records that are stored whole by now: to be called on the thread that calls logs_append. */
int64_t log_search_records(const struct logs *logs, const char *job_id, int64_t attempt);

/* Searches LIMIT_SEARCH_BYTES at most, and for LIMIT_SEARCH_US; any thread. take returns false to have no
 * more after this match. */
bool log_search_run(const struct log_search *search,
                    bool (*take)(void *closure, const struct log_match *match), void *closure,
                    struct log_search_end *ret_end, struct err *err);

#endif
