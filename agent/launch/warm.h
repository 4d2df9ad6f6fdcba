/* SPDX-License-Identifier: Apache-2.0 */
/* Shims with warm workers: processes that have imported torch before there is a job for them. Kept for the
 * interpreters and variables that jobs use again and again, as long as they do. */
#ifndef AGENT_WARM_H
#define AGENT_WARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/children.h"
#include "agent/base/loop.h"
#include "agent/launch/shims.h"
#include "proto/base/err.h"
#include "proto/base/hash.h"
#include "proto/base/text.h"

struct warm;

struct warm_config {
    const char *folder;  /* where gpuctl_warm.py is laid */
    const char *imports; /* names of modules, with commas; those that are installed are imported */
    int64_t limit_bytes; /* of memory; 0: there are no warm workers */
    int shim_log;        /* where stderr of shims goes */
};

/* imports is kept by the caller. NULL with an error. */
struct warm *warm_create(const struct warm_config *config, const struct shims *shims,
                         struct children *children, struct loop *loop, struct err *err);
void warm_destroy(struct warm *warm);

/* A shim for a launch file whose command is a Python: one that waits with as many workers as there are ranks.
 * false: there is none, *ret_why says why not (borrowed), and there will be one for the next of that kind. */
bool warm_take(struct warm *warm, const struct text *launch, struct shim_process *ret_shim,
               char ret_kind[HASH_HEX + 1], const char **ret_why);

/* The modules of a kind have changed: it is to import them anew. */
void warm_renew(struct warm *warm, const char *kind);

/* An attempt has ended: what was put off for it can be done. */
void warm_resume(struct warm *warm);

/* Starts one process or ends one; true when there is more to do. */
bool warm_step(struct warm *warm);

#endif
