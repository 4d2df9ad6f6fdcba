/* SPDX-License-Identifier: Apache-2.0 */
/* A command beside a rank of a running job that has the stdin, stdout and stderr of gpuctl. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

struct session_request {
    const char *job_id;
    int64_t rank;
    json_t *command;    /* borrowed: an array of words */
    bool input;         /* the command reads what comes from this descriptor; else its stdin is empty */
    int from;           /* 0: the stdin of gpuctl */
    FILE *to;           /* what it writes; NULL: the stdout of gpuctl */
    bool terminal;      /* and has a terminal, of the size of this one */
    bool interruptible; /* signals end gpuctl with an error, so that the caller can clean up */
    /* Called when gpuctl could not start the command or has lost it, and while the command still has its
     * stream, if it has one; or NULL. */
    void (*lost)(void *closure, const struct err *why);
    void *closure;
};

/* ERR_USAGE where there is no terminal to give to the command. */
bool session_allowed(bool interactive, bool terminal, struct err *err);

/* Runs the command to its end. *ret_exit is its exit code, 128+N for signal N. False: gpuctl could not start
 * it, or has lost it. */
bool session_run(struct api *api, const struct session_request *request, int *ret_exit, struct err *err);

#endif
