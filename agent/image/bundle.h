/* SPDX-License-Identifier: Apache-2.0 */
/* What an OCI runtime makes of the image of a job: the bundle, and the variables that the image brings along.
 */
#ifndef AGENT_BUNDLE_H
#define AGENT_BUNDLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

/* A folder or file of the node that the ranks find in the image. */
struct bundle_mount {
    const char *from, *at;
    bool read_only;
    bool optional; /* left out where the node does not have it */
    bool alone;    /* without what is mounted in it, such as the container */
};

/* A GPU of the job, as specs of CDI may name it. */
struct bundle_gpu {
    const char *uuid;
    long long index, minor; /* minor: of its device file; -1: unknown */
};

/* Everything is borrowed. */
struct bundle_facts {
    const char *root; /* where the files of the container will be */
    const char *init; /* a program that can be executed, which the runtime looks for and does not start */
    const char *tmp;  /* folder for /tmp and /var/tmp; NULL: those of the image */
    const struct bundle_mount *mounts;
    size_t mount_count;
    const struct bundle_gpu *gpus;
    size_t gpu_count;
    const char *const *cdi_folders; /* of specs; ended by NULL */
};

extern const char *const bundle_cdi_folders[]; /* of this machine */

/* The config of the bundle as the OCI runtime specification has it, a new reference. Variables for the ranks,
 * NAME=VALUE, are appended to *variables, an array. NULL with an error if a spec of CDI cannot be used. */
json_t *bundle_config(const struct bundle_facts *facts, json_t *variables, struct err *err);

#endif
