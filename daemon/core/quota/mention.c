/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by accounts alone: who sees jobs of a project is said where requests come in
 * (daemon/http/auth/authorize.h), by the same rule. */
#include "daemon/core/quota/mention.h"

#include <stdio.h>

#include "daemon/core/model/job.h"
#include "daemon/core/quota/account_state.h"

bool mention_allowed(const struct core *core, const struct job *of, const struct job *other)
{
    bool members = of->project->limits.member_count > 0;
    bool same_project = of->project == other->project, same_owner = of->owner == other->owner;
    return core->asker_sees_all || (members ? same_project : same_owner);
}

const char *mention_job(const struct core *core, const struct job *of, const struct job *other,
                        char out[MENTION_BYTES])
{
    if (mention_allowed(core, of, other)) {
        snprintf(out, MENTION_BYTES, "job %s", other->id);
    } else {
        snprintf(out, MENTION_BYTES, "%s",
                 of->owner == other->owner ? "a job of another project" : "another user's job");
    }
    return out;
}
