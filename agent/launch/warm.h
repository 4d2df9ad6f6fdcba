/* SPDX-License-Identifier: Apache-2.0 */
/* Shims with warm workers: processes that have imported torch before there is a job for them. They are kept
 * for the interpreters and variables that jobs use repeatedly, for as long as jobs do. */
#ifndef AGENT_WARM_H
#define AGENT_WARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/children.h"
#include "agent/base/loop.h"
#include "agent/common/launch_file.h"
#include "agent/launch/cgroup.h"
#include "agent/launch/shims.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

struct warm;

struct warm_config {
    const char *folder;  /* of gpuctl_warm.py */
    const char *imports; /* names of modules, separated by commas; installed ones are imported */
    int64_t limit_bytes; /* of memory; 0: there are no warm workers */
    int shim_log;        /* receives the shims' stderr */
    const char *launch;  /* folder for the launch file of what makes workers of another user */
    struct cgroup_root *cgroups;
    bool seccomp; /* workers of another user are refused some system calls, as their ranks are */
};

/* The caller keeps all that the config names. */
struct warm *warm_create(const struct warm_config *config, struct shims *shims, struct children *children,
                         struct loop *loop);
void warm_destroy(struct warm *warm);

/* Takes a waiting shim for a launch file whose command is a Python, with a worker for each rank. False: there
 * is none; *ret_why is the reason (borrowed), and a shim is prepared for the next rank of that kind. */
bool warm_take(struct warm *warm, const struct launch *launch, struct shim_process *ret_shim,
               char ret_kind[HASH_HEX + 1], const char **ret_why);

/* To be called when the modules of a kind have changed: it imports them again. */
void warm_renew(struct warm *warm, const char *kind);

/* To be called when an attempt has ended: allows the starts that were put off for it. */
void warm_resume(struct warm *warm);

/* Starts or ends one process; true when there is more to do. */
bool warm_step(struct warm *warm);

#endif
