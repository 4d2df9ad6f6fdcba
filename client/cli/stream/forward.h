/* SPDX-License-Identifier: Apache-2.0 */
/* A port of this machine that leads to one beside a rank of a running job. */
#ifndef CLI_FORWARD_H
#define CLI_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* The caller fills in the first members; local 0 becomes a port that is free. */
struct forward {
    struct api *api;
    const char *job_id;
    int64_t rank, local, remote; /* ports */

    int listener, signals;
    pid_t watcher; /* the process that waits for the end of the job */
    size_t connections;
    bool ended; /* the job */
};

/* Listens on 127.0.0.1. To be closed in any case. */
bool forward_open(struct forward *forward, struct err *err);
/* Serves connections until the job ends, or a signal says so. */
bool forward_run(struct forward *forward, struct err *err);
void forward_close(struct forward *forward);

#endif
