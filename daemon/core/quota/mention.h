/* SPDX-License-Identifier: Apache-2.0 */
/* How what is said of one job names another: by its id only to those who may know of it. */
#ifndef CORE_QUOTA_MENTION_H
#define CORE_QUOTA_MENTION_H

#include <stdbool.h>

struct core;
struct job;

enum { MENTION_BYTES = 64 };

/* Whether all who see the first job also see the other: its owner does, and who is a member of its project.
 * Who sees all is answered with core->asker_sees_all set. */
bool mention_allowed(const struct core *core, const struct job *of, const struct job *other);

/* "job x7k2mfrggzdfmztw", or "another user's job". */
const char *mention_job(const struct core *core, const struct job *of, const struct job *other,
                        char out[MENTION_BYTES]);

#endif
