/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up what the state has, by name, id or key. It changes nothing. */
#include "daemon/core/model/state.h"

#include <string.h>

struct node *node_find(const struct core *core, const char *name)
{
    struct node *node;
    HASH_FIND_STR(core->nodes_by_name, name, node);
    return node;
}

struct job *job_by_id(const struct core *core, const char *id)
{
    struct job *job;
    HASH_FIND(by_id, core->jobs_by_id, id, strlen(id), job);
    return job;
}

struct job *job_by_key(const struct core *core, int64_t key)
{
    struct job *job;
    HASH_FIND(by_key, core->jobs_by_key, &key, sizeof key, job);
    return job;
}

struct attempt *attempt_find(const struct core *core, uint64_t attempt_id)
{
    struct attempt *attempt;
    HASH_FIND(hh, core->attempts_by_attempt_id, &attempt_id, sizeof attempt_id, attempt);
    return attempt;
}
