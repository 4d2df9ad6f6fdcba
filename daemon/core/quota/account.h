/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: projects and users with their limits, current use and past use. A project is entitled to its
 * quota; GPUs beyond the quota are borrowed. */
#ifndef CORE_QUOTA_ACCOUNT_H
#define CORE_QUOTA_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/states.h"

struct attempt;
struct core;
struct partition;
struct input;
struct job;
struct text;
struct resource_request;

/* A project, a user, or a user within a project. An account exists as long as it has live jobs, limits, or
 * remembered use (LIMIT_ACCOUNTS_KEPT). */
struct account;

const char *account_name(const struct account *account);

/* Adds a live job to its project and its owner: sets job->project and job->owner, and counts the job as
 * queued. */
void account_join(struct core *core, struct job *job, const char *project, const char *owner);
/* The same for a job of the project and owner of another. */
void account_join_same(struct core *core, struct job *job, const struct job *other);
/* Removes a job that has ended and holds no GPU. */
void account_leave(struct core *core, struct job *job);

/* Whether limits could ever let such a job run, and whether one more job may wait. ERR_LIMIT names the field
 * and the remedy. */
bool account_admits(const struct core *core, const char *project, const char *owner,
                    const struct resource_request *request, struct err *err);

/* The limit that keeps a job from its GPUs; valid as long as the step. */
struct account_limit {
    const struct account *account;
    const char *what; /* "A10", "GPUs", "running jobs", "GPU hours"; NULL: its pools, and no number */
    int64_t used, most;
};
/* Whether any account has limits: if so, each placement may change which other jobs may run. And how many. */
bool account_any_limited(const struct core *core);
size_t account_limited_count(const struct core *core);
/* Whether limits let the job take GPUs in this partition now. ret_limit may be NULL. */
bool account_may_run(const struct core *core, const struct job *job, const struct partition *partition,
                     struct account_limit *ret_limit);
/* Appends "project vision uses 8 of 8 A10". */
void account_limit_text(const struct account_limit *limit, struct text *out);

/* The claim of a placement in this partition. ENTITLED: within the quota of the job's project, or no project
 * has a quota on this type. BORROWED: otherwise, and where a job that asked for on-demand GPUs gets reserved
 * ones. */
enum claim account_claim(const struct core *core, const struct job *job, const struct partition *partition);
/* Whether jobs that asked for on-demand GPUs may borrow from this reserved pool. */
bool account_pool_lends(const struct core *core, const char *pool);
/* Whether the pool takes only nodes that run jobs as the users of their owners. */
bool account_pool_isolated(const struct core *core, const char *pool);

/* account_take: a gang got its GPUs, with attempt->claim. account_give_back: the gang gave them back. Both
 * record the use. After account_give_back, borrowed attempts of the project that now fit its quota become
 * entitled, the oldest first. */
void account_take(struct core *core, struct attempt *attempt);
void account_give_back(struct core *core, struct attempt *attempt);

/* What happens to jobs of the project whose GPUs are idle. */
struct idle_rule {
    int64_t after_ms; /* 0: nothing */
    enum idle_action action;
    int64_t grace_ms;
};
struct idle_rule account_idle_rule(const struct core *core, const struct account *project);

/* How far past use moves the job's queue entry back, or forward (negative): the use of its project, and of
 * its owner within the project, beyond their shares. */
int64_t account_delay_ms(struct core *core, const struct job *job);

/* --- called only at fixed places in the core ------------------------------------------------------------ */

struct accounts;
/* share_half_life_ms 0: the default. */
struct accounts *accounts_create(int64_t share_half_life_ms);
void accounts_destroy(struct accounts *accounts);

/* Sets the time for accounting of use; it never goes back. */
void account_clock(struct core *core, int64_t at_ms);
/* Rows of limits and of what was used; limits are those of the row, and only read. */
struct account_limits;
struct limits_row;
struct usage_row;
void account_load_limits(struct core *core, const struct limits_row *row,
                         const struct account_limits *limits);
void account_load_usage(struct core *core, const struct usage_row *row);
/* Counts live attempts after loading. */
void account_boot(struct core *core);
/* Checks whether the hours of a limit are used up or its period is over. Notes when that happens next. */
void account_watch(struct core *core);

/* The inputs LIMITS, ACCOUNTS and POOLS. */
bool account_change(struct core *core, const struct input *input, struct err *err);
bool account_show(struct core *core, const struct input *input, struct err *err);
void account_show_pools(struct core *core);

/* Aborts if counts disagree with attempts, or if more is entitled than a quota allows. */
void account_check(const struct core *core);

#endif
