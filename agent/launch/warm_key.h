/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a forkserver: it serves ranks with the same interpreter and variables, except for the variables
 * that tell a rank who it is, and for the same user. Pure. */
#ifndef AGENT_WARM_KEY_H
#define AGENT_WARM_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/common/launch_file.h"
#include "proto/base/crypto/hash.h"

struct warm_key {
    char hash[HASH_HEX + 1];
    char *python;
    char **variables; /* NAME=VALUE, ended by NULL */
    size_t variable_count;
    size_t ranks;
    int64_t uid, gid; /* -1: the agent's */
    gid_t *groups;    /* owned */
    size_t group_count;
};

void warm_key_make(const struct launch *launch, struct warm_key *ret_key);
void warm_key_finish(struct warm_key *key);

#endif
