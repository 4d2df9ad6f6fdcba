/* SPDX-License-Identifier: Apache-2.0 */
/* Several jobs in one file, which follow each other by their names. */
#ifndef CLI_SEVERAL_H
#define CLI_SEVERAL_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/api.h"
#include "client/cli/jobfile.h"
#include "proto/base/err.h"

struct several {
    struct jobfile *files; /* one a job, in the order of the file */
    size_t count;
    size_t *order;              /* in which they can be submitted: each after those that it follows */
    char (*ids)[ID_LENGTH + 1]; /* of those that are submitted; "" of the others */
};

/* Reads them. ERR_USAGE names file and line. *ret_several is the caller's also after a failure. */
bool several_read(const char *path, bool ignore, struct several *ret_several, struct err *err);
/* One job without a file. */
void several_single(struct several *ret_several);
void several_finish(struct several *several);

static inline void cleanup_several(struct several *several)
{
    several_finish(several);
}
#define autoseveral __attribute__((cleanup(cleanup_several)))

/* Finds the order. Refuses jobs that follow each other in a circle, and a name that two of them have. */
bool several_sort(struct several *several, struct err *err);

/* Makes whole ids of what they follow besides each other. Nothing is submitted yet. */
bool several_resolve(struct several *several, struct api *api, struct err *err);

/* Puts the ids of those that are submitted in the place of their names. */
void several_name(struct several *several, size_t index);

#endif
