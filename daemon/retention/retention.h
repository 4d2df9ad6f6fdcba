/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: removes what has reached its age or its share of the disk, and what nothing uses. */
#ifndef RETENTION_RETENTION_H
#define RETENTION_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/blob/blobs.h"
#include "daemon/blob/logs.h"
#include "daemon/retention/old_jobs.h"
#include "daemon/writer/writer.h"

struct artifacts;
struct objects;
struct tracking;
struct worker;

/* The tracking store, which only its own thread may use; all NULL: there is none. */
struct retention_tracking {
    struct worker *worker;
    struct tracking *tracking;
    struct artifacts *artifacts;
};

struct retention_config {
    struct writer *writer;
    struct retention_tracking tracking;
    struct logs *logs;
    struct checkpoints *checkpoints;
    struct blobs *blobs;
    struct objects *objects; /* NULL: there is no object store */
    const char *store_path;
    const char *state_directory; /* its disk is the one that logs have a share of */
    struct retention_ages ages;
    int64_t usage_ms;             /* hours of use; 0: for ever */
    int64_t audit_ms;             /* rows of the audit; 0: for ever */
    int64_t nodes_ms;             /* nodes that were not heard; 0: never */
    int64_t logs_share_percent;   /* of the disk that logs may take; 0: all */
    int64_t blob_files_ms;        /* a file stays this long after its row: backups name it */
    bool (*go_on)(void *closure); /* false: end the round soon */
    void *closure;
};

/* What has gone in a round, or what would go. */
struct retention_report {
    int64_t jobs; /* jobs and arrays that were removed */
    int64_t logs; /* jobs whose output was removed, those of removed jobs not counted */
    int64_t log_bytes;
    int64_t blobs, blob_bytes;
    int64_t nodes;
    int64_t runs;
    int64_t file_bytes; /* by which the files of both databases became smaller; 0 of a dry round */
    bool doubtful;      /* nothing went: the wall clock may be wrong */
};

struct retention_clock {
    int64_t wall_ms;
    int64_t elapsed_ms; /* for how long the controller has run since the last round that was not dry */
    bool doubtful;      /* the wall clock may be wrong: nothing goes by its age */
};

/* Runs one round and fills *ret_report. It waits for the disk and for the writer, so it needs a thread of its
 * own. dry: only counts. */
bool retention_run(const struct retention_config *config, bool dry, const struct retention_clock *clock,
                   struct retention_report *ret_report, struct err *err);

#endif
