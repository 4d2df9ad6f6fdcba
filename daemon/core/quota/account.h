/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: projects and users, what they may use, what they use now, and what they have used. A quota says
 * what a project is entitled to; what it uses beyond that it has borrowed. */
#ifndef CORE_QUOTA_ACCOUNT_H
#define CORE_QUOTA_ACCOUNT_H

#include <stdbool.h>
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

/* A project, a user, or a user within a project. It lives as long as it has live jobs, limits, or use that is
 * worth remembering: LIMIT_ACCOUNTS_KEPT. */
struct account;

const char *account_name(const struct account *account);

/* A live job belongs to its project and its owner: sets job->project and job->owner, and counts it as queued.
 */
void account_join(struct core *core, struct job *job, const char *project, const char *owner);
/* The same for a job of the project and owner of another. */
void account_join_same(struct core *core, struct job *job, const struct job *other);
/* The job has ended; it holds no GPU. */
void account_leave(struct core *core, struct job *job);

/* Whether limits would ever let such a job run, and whether one more may wait. ERR_LIMIT names the field and
 * the remedy. */
bool account_admits(const struct core *core, const char *project, const char *owner,
                    const struct resource_request *request, struct err *err);

/* What keeps a job from its GPUs; valid as long as the step. */
struct account_limit {
    const struct account *account;
    const char *what; /* "A10", "GPUs", "running jobs", "GPU hours" */
    int64_t used, most;
};
/* Whether there are limits at all: then each placement may change what other jobs may do. */
bool account_any_limited(const struct core *core);
/* Whether limits let the job take its GPUs in this partition now. ret_limit may be NULL. */
bool account_may_run(const struct core *core, const struct job *job, const struct partition *partition,
                     struct account_limit *ret_limit);
/* Appends "project vision uses 8 of 8 A10". */
void account_limit_text(const struct account_limit *limit, struct text *out);

/* What a placement in this partition would be. ENTITLED: within the quota of its project, or no project has a
 * quota on this type. BORROWED: else, and where a job that asked for on-demand GPUs gets reserved ones. */
enum claim account_claim(const struct core *core, const struct job *job, const struct partition *partition);
/* Whether jobs that asked for on-demand GPUs may borrow from this reserved pool. */
bool account_pool_lends(const struct core *core, const char *pool);

/* A gang got its GPUs, with attempt->claim; and gave them back. What was used is recorded. After that
 * attempts of the project that were borrowed and now fit its quota become entitled, the oldest first. */
void account_take(struct core *core, struct attempt *attempt);
void account_give_back(struct core *core, struct attempt *attempt);

/* By how much the job's queue entry is put off, or brought forward (negative), by what its project, and its
 * owner within it, have used beyond their shares. */
int64_t account_delay_ms(struct core *core, const struct job *job);

/* --- for the files of the core that own the occasion ---------------------------------------------------- */

struct accounts;
/* share_half_life_ms 0: the default. */
struct accounts *accounts_create(int64_t share_half_life_ms);
void accounts_destroy(struct accounts *accounts);

/* The time by which use is reckoned; it never goes back. */
void account_clock(struct core *core, int64_t at_ms);
/* Rows of limits and of what was used; limits are those of the row, and only read. */
struct account_limits;
struct limits_row;
struct usage_row;
void account_load_limits(struct core *core, const struct limits_row *row,
                         const struct account_limits *limits);
void account_load_usage(struct core *core, const struct usage_row *row);
/* Takes up live attempts after loading. */
void account_boot(struct core *core);
/* The hours of a limit may be used up, or its period over. Notes when that is so next. */
void account_watch(struct core *core);

/* The inputs LIMITS, ACCOUNTS and POOLS. */
bool account_change(struct core *core, const struct input *input, struct err *err);
bool account_show(struct core *core, const struct input *input, struct err *err);
void account_show_pools(struct core *core);

/* Aborts when counts disagree with attempts, or more is entitled than a quota says. */
void account_check(const struct core *core);

#endif
