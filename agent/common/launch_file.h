/* SPDX-License-Identifier: Apache-2.0 */
/* The launch file of an attempt (agent/shim/shimwire.h): the agent writes it, the shim and an agent that
 * adopts the attempt read it. */
#ifndef AGENT_LAUNCH_FILE_H
#define AGENT_LAUNCH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

/* --- writing */

/* Appends one key and its value. */
void launch_put(struct text *launch, const char *key, const char *value);
void launch_put_int(struct text *launch, const char *key, int64_t value);
/* Appends env NAME=VALUE. */
void launch_put_env(struct text *launch, const char *name, const char *value);

/* --- reading */

#define LAUNCH_PATTERNS 2 /* CLUSTER_SPEC, TF_CONFIG */

struct launch_rank {
    int number;
    char **env;
    size_t env_count;
};

/* A secret of the ranks; the text is not in the launch file, but comes with the shim's order to take it. */
struct launch_secret {
    const char *pair; /* VARIABLE=VALUE, or of a file VARIABLE=BASE64 */
    bool file;
};

#define LAUNCH_VOLUMES (LIMIT_JOB_VOLUMES + LIMIT_JOB_INPUTS)
#define LAUNCH_HOLDS   (1 + LIMIT_JOB_INPUTS) /* of an environment or an image, and of inputs */

/* A volume, or an input, that the shim mounts. */
struct launch_volume {
    const char *from, *at;
    bool read_only;
};

/* A launch file that was read. All texts point into `bytes`. */
struct launch {
    char *bytes; /* owned, as are the lists */
    const char *attempt_id, *logs, *cwd;
    const char *cgroup, *tmp, *image; /* NULL if absent */
    const char *holds[LAUNCH_HOLDS];  /* files to lock */
    size_t hold_count;
    int64_t log_limit;             /* bytes of one stream */
    int64_t port_first, port_last; /* 0: no port is held */
    int64_t failed_grace_ms;
    int64_t keep;       /* 1: after a rank failed, all but the ranks stays until a stop */
    int64_t store_rank; /* -1: none */
    int64_t torchrun;   /* 1: the ranks are torchruns, or may start one */
    int64_t granted;    /* devices or slots of the attempt on this node, 1 without any; 0: unknown */
    int64_t millicpus, memory_bytes; /* what it holds here; 0: unknown */
    int64_t received_us;
    int64_t seccomp;  /* 1: they are refused some system calls */
    int64_t uid, gid; /* of the user that ranks run as; -1: the shim's own */
    gid_t *groups;    /* its supplementary groups */
    size_t group_count;
    const char *patterns[LAUNCH_PATTERNS]; /* NAME=VALUE with "@N" in place of node N; see shim_addresses.c */
    size_t pattern_count;
    char **arguments; /* ends with NULL */
    size_t argument_count;
    char **env;
    size_t env_count;
    struct launch_secret secrets[LIMIT_JOB_SECRETS];
    size_t secret_count;
    int64_t secrets_wanted;                       /* as many have to come */
    struct launch_volume volumes[LAUNCH_VOLUMES]; /* and inputs */
    size_t volume_count;
    struct launch_rank *ranks;
    size_t rank_count;
};

/* Parses the bytes of a launch file, which it takes over. ERR_MALFORMED, and *ret_launch unchanged, if a
 * field is missing or wrong: the writer may have been killed. */
bool launch_parse(char *bytes, size_t size, struct launch *ret_launch, struct err *err);
void launch_finish(struct launch *launch);

/* The value of a variable of all ranks; NULL if there is none. */
const char *launch_variable(const struct launch *launch, const char *name);

#endif
