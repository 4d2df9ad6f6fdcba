/* SPDX-License-Identifier: Apache-2.0 */
/* Interprets limits: what may start now, what can never start, and what a quota entitles to. A job waits only
 * for limits of its own project and its own owner, and the result says which limit. place.c decides the order
 * of jobs. */
#include <string.h>
#include <strings.h>

#include "daemon/core/fleet/request.h"
#include "daemon/core/quota/account_state.h"
#include "proto/limits_controller.h"

#define MINUTE_MS (60LL * 1000)

int64_t account_bound(const struct type_limit *types, size_t count, const char *type)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(types[i].type, type) == 0) {
            return types[i].gpus;
        }
    }
    return -1;
}

static int64_t most_of(const struct account *account, const char *type)
{
    return account_bound(account->limits.most, account->limits.most_count, type);
}

bool account_any_limited(const struct core *core)
{
    return core->accounts->limited != NULL;
}

size_t account_limited_count(const struct core *core)
{
    return core->accounts->limited_count;
}

/* --- starting ------------------------------------------------------------------------------------------- */

/* true: the use plus this many more is at most `most`; -1 is no bound. */
static bool within(const struct account *account, const char *what, int64_t used, int64_t more, int64_t most,
                   struct account_limit *ret_limit)
{
    if (most < 0 || used + more <= most) {
        return true;
    }
    if (ret_limit != NULL) {
        *ret_limit = (struct account_limit){account, what, used, most};
    }
    return false;
}

static bool has_hours(const struct core *core, const struct account *account, struct account_limit *ret_limit)
{
    if (account->limits.period_ms == 0) {
        return true;
    }
    int64_t most_ms = account->limits.gpu_ms;
    int64_t spent_ms = account_spent_ms(account, core->accounts->now_ms);
    int64_t unit_ms = most_ms >= 10 * HOUR_MS ? HOUR_MS : MINUTE_MS;
    if (spent_ms < most_ms) {
        return true;
    }
    return within(account, unit_ms == HOUR_MS ? "GPU hours" : "GPU minutes", spent_ms / unit_ms, 1,
                  most_ms / unit_ms, ret_limit);
}

/* What the job takes at most: of nodes that differ, the largest part counts. */
static struct amount most_taken(const struct resource_request *request, const struct partition *partition)
{
    struct amount most = {0};
    for (size_t i = 0; i < partition->count; i++) {
        const struct amount each = request_each(request, partition->capacities[i]->node);
        most.millicpus = each.millicpus > most.millicpus ? each.millicpus : most.millicpus;
        most.memory_bytes = each.memory_bytes > most.memory_bytes ? each.memory_bytes : most.memory_bytes;
    }
    return amount_plus((struct amount){0}, most, request->units);
}

static bool within_amounts(const struct account_limits *limits, struct amount taken)
{
    return (limits->max_millicpus < 0 || taken.millicpus <= limits->max_millicpus) &&
           (limits->max_memory_bytes < 0 || taken.memory_bytes <= limits->max_memory_bytes);
}

/* In whole CPUs and GiB, rounded down as people read them. */
static bool has_amounts(const struct account *account, const struct resource_request *request,
                        const struct partition *partition, struct account_limit *ret_limit)
{
    const struct account_limits *limits = &account->limits;
    if (limits->max_millicpus < 0 && limits->max_memory_bytes < 0) {
        return true;
    }
    const struct amount sum = amount_plus(account->held, most_taken(request, partition), 1);
    bool within = within_amounts(limits, sum);
    bool cpus = limits->max_millicpus >= 0 && sum.millicpus > limits->max_millicpus;
    if (ret_limit != NULL && !within && cpus) {
        *ret_limit = (struct account_limit){account, "CPUs", account->held.millicpus / 1000,
                                            limits->max_millicpus / 1000};
    } else if (ret_limit != NULL && !within) {
        *ret_limit = (struct account_limit){account, "GiB of memory", account->held.memory_bytes / GIB,
                                            limits->max_memory_bytes / GIB};
    }
    return within;
}

static bool may_use_pool(const struct account *account, const char *pool, struct account_limit *ret_limit)
{
    const struct text_list *pools = &account->limits.pools;
    size_t i = 0;
    while (i < pools->count && strcmp(pools->items[i], pool) != 0) {
        i++;
    }
    bool may = pools->count == 0 || i < pools->count;
    if (!may && ret_limit != NULL) {
        *ret_limit = (struct account_limit){.account = account};
    }
    return may;
}

static bool allows(const struct core *core, const struct account *account, const struct job *job,
                   const struct partition *partition, struct account_limit *ret_limit)
{
    const struct resource_request *request = &job->job_class->request;
    const char *type = partition->type;
    int64_t gpus = request_gpus(request);
    if (!account->limited) {
        return true;
    }
    const struct holding *holding = account_holding(account, type);
    return may_use_pool(account, partition->pool, ret_limit) &&
           within(account, "running jobs", account->running, 1, account->limits.max_running_jobs,
                  ret_limit) &&
           within(account, type, holding != NULL ? holding->gpus : 0, gpus, most_of(account, type),
                  ret_limit) &&
           within(account, "GPUs", account->gpus, gpus, most_of(account, ANY_TYPE), ret_limit) &&
           has_amounts(account, request, partition, ret_limit) &&
           (gpus == 0 || has_hours(core, account, ret_limit));
}

bool account_may_run(const struct core *core, const struct job *job, const struct partition *partition,
                     struct account_limit *ret_limit)
{
    return allows(core, job->project, job, partition, ret_limit) &&
           allows(core, job->owner, job, partition, ret_limit);
}

static void list_pools(const struct text_list *pools, struct text *out)
{
    for (size_t i = 0; i < pools->count; i++) {
        text_printf(out, "%s%s", i > 0 ? ", " : "", pools->items[i]);
    }
}

void account_limit_text(const struct account_limit *limit, struct text *out)
{
    if (limit->what == NULL) {
        text_printf(out, "%s %s has only these pools: ", account_kind_text(limit->account->kind),
                    limit->account->name);
        list_pools(&limit->account->limits.pools, out);
        return;
    }
    text_printf(out, "%s %s uses %lld of %lld %s", account_kind_text(limit->account->kind),
                limit->account->name, (long long)limit->used, (long long)limit->most, limit->what);
}

/* --- admission ------------------------------------------------------------------------------------------ */

static bool refuse_wait(const struct account *account, struct err *err)
{
    return err_field(err, ERR_LIMIT, account->kind == ACCOUNT_PROJECT ? "project" : NULL,
                     "wait until some have started, or ask an administrator for a higher limit",
                     "%s %.64s has %lld jobs waiting, and may have %lld", account_kind_text(account->kind),
                     account->name, (long long)account->queued, (long long)account->limits.max_queued_jobs);
}

/* The largest gang of a type that the account's limits allow. */
static int64_t ceiling(const struct account *account, const char *type)
{
    int64_t of_type = most_of(account, type), of_all = most_of(account, ANY_TYPE);
    of_type = of_type < 0 ? INT64_MAX : of_type;
    of_all = of_all < 0 ? INT64_MAX : of_all;
    return of_type < of_all ? of_type : of_all;
}

/* The highest ceiling among the types that the resource request may get. */
static int64_t best_ceiling(const struct core *core, const struct account *account,
                            const struct resource_request *request)
{
    enum pool_kind auto_kind = request_auto_kind(core, request, 1);
    int64_t best = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (request_leads(request, auto_kind, partition)) {
            int64_t here = ceiling(account, partition->type);
            best = here > best ? here : best;
        }
    }
    return best;
}

static bool check_gang(const struct core *core, const struct account *account,
                       const struct resource_request *request, struct err *err)
{
    int64_t most = account->limits.most_count > 0 ? best_ceiling(core, account, request) : INT64_MAX;
    if (request_gpus(request) <= most) {
        return true;
    }
    return err_field(err, ERR_LIMIT, "gpus", "ask for fewer GPUs, or an administrator for a higher limit",
                     "the job needs %lld GPUs, and %s %.64s may use %lld%s%.64s at once",
                     (long long)request_gpus(request), account_kind_text(account->kind), account->name,
                     (long long)most, request->gpu_type != NULL ? " " : "",
                     request->gpu_type != NULL ? request->gpu_type : "");
}

static bool refuse_amount(const struct account *account, const char *field, const char *what, double asked,
                          double most, struct err *err)
{
    return err_field(err, ERR_LIMIT, field, "ask for less, or an administrator for a higher limit",
                     "the job needs %.15g %s, and %s %.64s may use %.15g at once", asked, what,
                     account_kind_text(account->kind), account->name, most);
}

/* Whether the job could have its CPUs and its memory anywhere. */
static bool check_amounts(const struct core *core, const struct account *account,
                          const struct resource_request *request, struct err *err)
{
    const struct account_limits *limits = &account->limits;
    enum pool_kind auto_kind = request_auto_kind(core, request, 1);
    struct amount taken = {0};
    bool any = false;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (!request_leads(request, auto_kind, partition)) {
            continue;
        }
        taken = most_taken(request, partition);
        if (within_amounts(limits, taken)) {
            return true;
        }
        any = true;
    }
    if (!any) {
        return true; /* it waits for nodes */
    }
    if (limits->max_millicpus >= 0 && taken.millicpus > limits->max_millicpus) {
        return refuse_amount(account, "cpus", "CPUs", (double)taken.millicpus / 1000,
                             (double)limits->max_millicpus / 1000, err);
    }
    return refuse_amount(account, "memory", "GiB of memory", (double)taken.memory_bytes / GIB,
                         (double)limits->max_memory_bytes / GIB, err);
}

/* Whether one of the pools that it leads to is allowed, or there is none of these now. */
static bool check_pools(const struct core *core, const struct account *account,
                        const struct resource_request *request, struct err *err)
{
    enum pool_kind auto_kind = request_auto_kind(core, request, 1);
    bool any = false;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (request_leads(request, auto_kind, partition)) {
            if (may_use_pool(account, partition->pool, NULL)) {
                return true;
            }
            any = true;
        }
    }
    if (!any) {
        return true;
    }
    autotext struct text pools = {0};
    list_pools(&account->limits.pools, &pools);
    err_field(err, ERR_LIMIT, "pool", NULL, "%s %.64s may not use the pools that the job leads to",
              account_kind_text(account->kind), account->name);
    return err_hint(err, "name one that it may use: %.150s", pools.bytes);
}

static bool admits(const struct core *core, const struct account *account,
                   const struct resource_request *request, struct err *err)
{
    if (account == NULL || !account->limited) {
        return true;
    }
    const struct account_limits *limits = &account->limits;
    if (limits->max_queued_jobs >= 0 && account->queued >= limits->max_queued_jobs) {
        return refuse_wait(account, err);
    }
    if (limits->max_running_jobs == 0 || (limits->period_ms > 0 && limits->gpu_ms == 0)) {
        return err_field(err, ERR_LIMIT, account->kind == ACCOUNT_PROJECT ? "project" : NULL,
                         "ask an administrator for a higher limit", "%s %.64s may run no jobs",
                         account_kind_text(account->kind), account->name);
    }
    if (limits->pools.count > 0 && !check_pools(core, account, request, err)) {
        return false;
    }
    bool counts = limits->max_millicpus >= 0 || limits->max_memory_bytes >= 0;
    return check_gang(core, account, request, err) && (!counts || check_amounts(core, account, request, err));
}

bool account_admits(const struct core *core, const char *project, const char *owner,
                    const struct resource_request *request, struct err *err)
{
    return admits(core, account_find(core, project, NULL), request, err) &&
           admits(core, account_find(core, NULL, owner), request, err);
}

/* --- idle GPUs ------------------------------------------------------------------------------------------ */

struct idle_rule account_idle_rule(const struct core *core, const struct account *project)
{
    const struct account_limits *limits = &project->limits;
    if (!project->limited) {
        return (struct idle_rule){.after_ms = core->config.idle_after_ms};
    }
    return (struct idle_rule){.after_ms = limits->idle_after_ms >= 0 ? limits->idle_after_ms
                                                                     : core->config.idle_after_ms,
                              .action = limits->idle_action,
                              .grace_ms = limits->idle_grace_ms};
}

/* --- quotas --------------------------------------------------------------------------------------------- */

static int64_t quota_of(const struct account *account, const char *type)
{
    return account_bound(account->limits.quota, account->limits.quota_count, type);
}

int64_t account_quota(const struct core *core, const struct account *project, const char *type)
{
    int64_t mine = quota_of(project, type);
    if (mine >= 0) {
        return mine;
    }
    for (const struct account *account = core->accounts->limited; account != NULL; account = account->next) {
        if (quota_of(account, type) >= 0) {
            return 0;
        }
    }
    return -1;
}

enum claim account_claim(const struct core *core, const struct job *job, const struct partition *partition)
{
    const struct resource_request *request = &job->job_class->request;
    if (request->use_reserved == USE_RESERVED_FALSE && partition->kind == POOL_RESERVED) {
        return CLAIM_BORROWED;
    }
    int64_t quota = account_quota(core, job->project, partition->type);
    const struct holding *holding = account_holding(job->project, partition->type);
    int64_t entitled = holding != NULL ? holding->entitled : 0;
    return quota < 0 || entitled + request_gpus(request) <= quota ? CLAIM_ENTITLED : CLAIM_BORROWED;
}

bool account_pool_lends(const struct core *core, const char *pool)
{
    const struct account *account = account_find_pool(core, pool);
    return account != NULL && account->limits.lends;
}

bool account_pool_isolated(const struct core *core, const char *pool)
{
    const struct account *account = account_find_pool(core, pool);
    return account != NULL && account->limits.isolated;
}
