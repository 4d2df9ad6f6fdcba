/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the use of accounts. GPUs count from the moment that they are held, and every part of the use
 * decays from then on. A row is written only when GPUs are given back, because live attempts supply the rest;
 * so a restart calculates the same numbers. */
#include "daemon/core/model/record.h"
#include "daemon/core/quota/account_state.h"
#include "daemon/core/quota/decay.h"

int64_t account_used_ms(const struct core *core, const struct account *account, int64_t at_ms)
{
    int64_t elapsed = at_ms > account->at_ms ? at_ms - account->at_ms : 0;
    int64_t half_life = core->accounts->half_life_ms;
    return decay_rest(account->used_ms, elapsed, half_life) +
           decay_gathered(account->gpus, elapsed, half_life);
}

int64_t account_spent_ms(const struct account *account, int64_t at_ms)
{
    int64_t period_ms = account->limits.period_ms;
    if (period_ms == 0) {
        return 0;
    }
    if (at_ms <= account->at_ms) {
        return account->spent_ms;
    }
    int64_t begin_ms = at_ms - at_ms % period_ms;
    bool same = account->at_ms >= begin_ms;
    int64_t from_ms = same ? account->at_ms : begin_ms;
    return (same ? account->spent_ms : 0) + account->gpus * (at_ms - from_ms);
}

void account_charge(const struct core *core, struct account *account, int64_t to_ms)
{
    if (to_ms > account->at_ms) {
        account->used_ms = account_used_ms(core, account, to_ms);
        account->spent_ms = account_spent_ms(account, to_ms);
        account->at_ms = to_ms;
    }
}

static struct usage_row row_of(const struct account *account)
{
    bool tie = account->project != NULL;
    return (struct usage_row){
        .project = tie                                ? account->project->name
                   : account->kind == ACCOUNT_PROJECT ? account->name
                                                      : NULL,
        .owner = account->kind == ACCOUNT_USER ? account->name : NULL,
        .gpu_ms = (double)account->used_ms,
        .spent_ms = (double)account->spent_ms,
        .at_ms = account->at_ms,
    };
}

void account_record_use(struct core *core, const struct account *account)
{
    const struct usage_row row = row_of(account);
    record_usage(core, account->at_ms > 0 ? CHANGE_USAGE_PUT : CHANGE_USAGE_DELETE, &row);
}

void account_load_usage(struct core *core, const struct usage_row *row)
{
    assert(!core->booted && (row->project != NULL || row->owner != NULL) && row->gpu_ms >= 0);
    struct account *account = account_need(core, row->project, row->owner);
    account->used_ms = (int64_t)row->gpu_ms;
    account->spent_ms = (int64_t)row->spent_ms;
    account->at_ms = row->at_ms;
    account_clock(core, row->at_ms);
    account_settle(core, account);
}
