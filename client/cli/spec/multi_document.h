/* SPDX-License-Identifier: Apache-2.0 */
/* Several jobs in one file, which follow each other by their names. */
#ifndef CLI_MULTI_DOCUMENT_H
#define CLI_MULTI_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/transport/api.h"
#include "client/cli/spec/jobfile.h"
#include "proto/base/err.h"

struct multi_document {
    struct jobfile *files; /* one a job, in the order of the file */
    size_t count;
    size_t *order;              /* in which they can be submitted: each after those that it follows */
    char (*ids)[ID_LENGTH + 1]; /* of those that are submitted; "" of the others */
};

/* Reads them. ERR_USAGE names file and line. *ret_jobs is the caller's also after a failure. */
bool multi_document_read(const char *path, bool ignore, struct multi_document *ret_jobs, struct err *err);
/* One job without a file. */
void multi_document_single(struct multi_document *ret_jobs);
void multi_document_finish(struct multi_document *jobs);

static inline void cleanup_multi_document(struct multi_document *jobs)
{
    multi_document_finish(jobs);
}
#define autoseveral __attribute__((cleanup(cleanup_multi_document)))

/* Finds the order. Refuses jobs that follow each other in a circle, and a name that two of them have. */
bool multi_document_sort(struct multi_document *jobs, struct err *err);

/* Finds the whole ids of their dependencies on other jobs than each other. Nothing is submitted yet. */
bool multi_document_resolve(struct multi_document *jobs, struct api *api, struct err *err);

/* Whether the job follows one of the others that is not submitted yet. */
bool multi_document_waits(const struct multi_document *jobs, size_t index);

/* Puts the ids of those that are submitted in the place of their names. */
void multi_document_name(struct multi_document *jobs, size_t index);

#endif
