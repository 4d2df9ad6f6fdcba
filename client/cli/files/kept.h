/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the ranks of a job kept, as a command line names them: JOB, JOB:RANK or JOB:RANK/PATH. */
#ifndef CLI_KEPT_H
#define CLI_KEPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"

struct kept {
    char id[RESOLVED_BYTES];
    char *path;                     /* a folder or a file, without a slash at its end; "": all */
    int64_t attempt;                /* NOT_GIVEN: the newest */
    json_t *files;                  /* those at the path, as the API lists them; each has a good path */
    bool is_file;                   /* the path is that of the one file */
    bool complete;                  /* all of them have come */
    bool ended;                     /* the job */
    int64_t left_files, left_bytes; /* of the whole attempt: what nodes left out */
};

/* Reads what is named; ERR_NOT_FOUND when nothing is there. The caller finishes *ret_kept in any case. */
bool kept_read(struct api *api, const char *name, int64_t attempt, struct kept *ret_kept, struct err *err);
/* Reads it anew. */
bool kept_renew(struct api *api, struct kept *kept, struct err *err);
void kept_finish(struct kept *kept);

/* Says what nodes left out, if anything, to people. */
void kept_say_left(const struct kept *kept);

#endif
