/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates fair shares: an account's part of all use, compared with the part that its weight gives it, and
 * the effect on the sort keys of its jobs. Equal states give equal delays, also after a restart. Delays are
 * bounded, and a single account has none. account_use.c measures use. */
#include "daemon/core/quota/account_state.h"
#include "daemon/core/quota/decay.h"

/* Twice its share delays a project's jobs by an hour, half its share brings them forward by an hour; at most
 * three doublings count. A user's share within the project counts half. */
#define DELAY_MS       (3600LL * 1000)
#define DOUBLINGS_MOST 3
/* Use below this, per weight of one, causes no delay: each account counts as having used at least this. An
 * hour of one GPU. */
#define USE_FREE_MS (3600LL * 1000)
/* Shares change slowly, so they are calculated for whole minutes. */
#define MINUTE_MS (60LL * 1000)
#define MILLION   1000000LL

static int64_t minute(const struct core *core)
{
    return core->accounts->now_ms - core->accounts->now_ms % MINUTE_MS;
}

/* A stamp for everything that shares depend on: the changes, and the minute. */
static uint64_t stamp_now(const struct core *core)
{
    return core->accounts->stamp << 32 ^ (uint64_t)(core->accounts->now_ms / MINUTE_MS);
}

/* A user has the same weight in every project. */
static int64_t weight_of(const struct account *account)
{
    return account->owner != NULL ? account->owner->limits.weight : account->limits.weight;
}

static int64_t weighed_use_ms(const struct core *core, const struct account *account)
{
    return account_used_ms(core, account, minute(core)) + USE_FREE_MS / WEIGHT_OF_ONE * weight_of(account);
}

/* The small rest of an inactive account's use does not count. */
static bool takes_part(const struct core *core, const struct account *account)
{
    return account_is_live(account) || account_used_ms(core, account, minute(core)) >= MINUTE_MS;
}

static struct family *family_of(struct core *core, const struct account *account)
{
    return account->project != NULL ? &account->project->users : &core->accounts->projects;
}

static void sum_up(struct core *core, struct family *family)
{
    if (family->stamp == stamp_now(core)) {
        return;
    }
    family->used_ms = family->weight = 0;
    for (const struct account *account = family->members; account != NULL; account = account->younger) {
        if (takes_part(core, account)) {
            family->used_ms += weighed_use_ms(core, account);
            family->weight += weight_of(account);
        }
    }
    family->stamp = stamp_now(core);
}

/* The number of doublings above its share, as a delay. */
static int64_t delay_of(const struct family *family, int64_t used_ms, int64_t weight)
{
    const int64_t most = (int64_t)DOUBLINGS_MOST * DECAY_LOG_ONE;
    int64_t log =
        decay_log2(used_ms) - decay_log2(family->used_ms) - decay_log2(weight) + decay_log2(family->weight);
    log = log > most ? most : log < -most ? -most : log;
    return log * DELAY_MS / DECAY_LOG_ONE;
}

static int64_t reckon(struct core *core, struct account *account)
{
    struct family *family = family_of(core, account);
    sum_up(core, family);
    if (account->share_stamp != family->stamp) {
        bool part = takes_part(core, account);
        account->delay_ms = part ? delay_of(family, weighed_use_ms(core, account), weight_of(account)) : 0;
        account->share_stamp = family->stamp;
    }
    return account->delay_ms;
}

int64_t account_delay_ms(struct core *core, const struct job *job)
{
    return reckon(core, job->project) + reckon(core, account_tie(core, job)) / 2;
}

struct account_share account_share(struct core *core, struct account *account)
{
    int64_t delay_ms = reckon(core, account);
    const struct family *family = family_of(core, account);
    double used = (double)weighed_use_ms(core, account);
    bool part = takes_part(core, account);
    return (struct account_share){
        .used_ms = account_used_ms(core, account, core->accounts->now_ms),
        .share = part ? (int64_t)(used * MILLION / (double)family->used_ms) : 0,
        .target = part ? weight_of(account) * MILLION / family->weight : 0,
        .delay_ms = account->project != NULL ? delay_ms / 2 : delay_ms,
    };
}
