/* SPDX-License-Identifier: Apache-2.0 */
/* Changes limits, and with them which attempts are entitled and which borrow. Entitlements never exceed a
 * quota. Attempts lose an entitlement only by force, the youngest first. A change of limits never ends
 * running work. Other files decide which work borrowed attempts give way to. */
#include <string.h>

#include "daemon/core/fleet/pool.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account_state.h"
#include "proto/limits_controller.h"

/* --- claims --------------------------------------------------------------------------------------------- */

static void set_claim(struct core *core, struct attempt *attempt, enum claim claim)
{
    struct job *job = attempt->job;
    int64_t gpus = claim == CLAIM_ENTITLED ? account_gpus(attempt) : -account_gpus(attempt);
    trace_line(core, "attempt %s/%lld is %s now", job->id, (long long)attempt->number, claim_text(claim));
    core->borrowed_count += (size_t)(claim == CLAIM_BORROWED) - (size_t)(attempt->claim == CLAIM_BORROWED);
    attempt->claim = claim;
    account_holding(job->project, attempt->gpu_type)->entitled += gpus;
    account_holding(job->owner, attempt->gpu_type)->entitled += gpus;
    account_holding(account_tie(core, job), attempt->gpu_type)->entitled += gpus;
    record_attempt(core, attempt);
}

/* Whether a job that asked for on-demand GPUs has reserved ones: no quota entitles it to them. */
static bool is_lent(const struct core *core, const struct attempt *attempt)
{
    enum pool_kind kind = POOL_ON_DEMAND;
    return attempt->job->job_class->request.use_reserved == USE_RESERVED_FALSE &&
           pool_kind_of(core, attempt->pool, NULL, &kind) && kind == POOL_RESERVED;
}

/* An attempt that is ending releases its GPUs: it needs no quota. */
static bool may_rise(const struct core *core, const struct attempt *attempt)
{
    bool ending = attempt->state == ATTEMPT_STOPPING || attempt->state == ATTEMPT_FLUSHING;
    if (attempt->claim == CLAIM_ENTITLED || ending || is_lent(core, attempt)) {
        return false;
    }
    int64_t quota = account_quota(core, attempt->job->project, attempt->gpu_type);
    int64_t entitled = account_holding(attempt->job->project, attempt->gpu_type)->entitled;
    return quota < 0 || entitled + account_gpus(attempt) <= quota;
}

static bool has_borrowed(const struct account *project)
{
    for (const struct holding *holding = project->holdings; holding != NULL; holding = holding->next) {
        if (holding->entitled < holding->gpus) {
            return true;
        }
    }
    return false;
}

void account_promote(struct core *core, const struct account *project)
{
    if (project != NULL && !has_borrowed(project)) {
        return;
    }
    for (struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        if ((project == NULL || attempt->job->project == project) && may_rise(core, attempt)) {
            set_claim(core, attempt, CLAIM_ENTITLED);
        }
    }
}

static bool is_over(const struct core *core, const struct account *project, const char *type)
{
    int64_t quota = account_quota(core, project, type);
    return quota >= 0 && account_holding(project, type)->entitled > quota;
}

/* The youngest first. */
static void demote(struct core *core)
{
    struct attempt *attempt = core->attempts != NULL ? core->attempts->prev : NULL;
    while (attempt != NULL) {
        if (attempt->claim == CLAIM_ENTITLED && is_over(core, attempt->job->project, attempt->gpu_type)) {
            set_claim(core, attempt, CLAIM_BORROWED);
        }
        attempt = attempt != core->attempts ? attempt->prev : NULL;
    }
}

/* --- effects of a change -------------------------------------------------------------------------------- */

/* The first project by name that is entitled to less than its entitled attempts use; NULL: none. */
static const struct account *first_over(const struct core *core, const struct holding **ret_holding)
{
    const struct account *first = NULL;
    for (const struct account *project = core->accounts->projects.members; project != NULL;
         project = project->younger) {
        for (const struct holding *holding = project->holdings; holding != NULL; holding = holding->next) {
            bool earlier = first == NULL || strcmp(project->name, first->name) < 0;
            if (earlier && holding->entitled > 0 && is_over(core, project, holding->type)) {
                first = project;
                *ret_holding = holding;
            }
        }
    }
    return first;
}

static bool refuse_loss(const struct core *core, const struct account *project, const struct holding *holding,
                        struct err *err)
{
    return err_field(
        err, ERR_CONFLICT, "quota",
        "wait until some have ended, or use force: what is above the quota then goes on as borrowed, the "
        "youngest first",
        "project %.64s uses %lld %.64s as entitled, and would be entitled to %lld", project->name,
        (long long)holding->entitled, holding->type, (long long)account_quota(core, project, holding->type));
}

/* --- the change ----------------------------------------------------------------------------------------- */

/* A node that is lost is asked when it comes back. */
static bool check_isolation(const struct core *core, const struct input *input, struct err *err)
{
    bool demanded = input->limits.limits != NULL && input->limits.limits->isolated;
    for (size_t i = 0; i < core->node_count && demanded; i++) {
        const struct node *node = core->nodes[i];
        if (node->state != NODE_LOST && strcmp(node->pool, input->limits.name) == 0 &&
            !label_isolated(node)) {
            return err_field(err, ERR_CONFLICT, "isolation",
                             "start its agent as root without --run-as agent, or move it to another pool",
                             "node %s in pool %.64s does not run jobs as the users of their owners",
                             node->name, input->limits.name);
        }
    }
    return true;
}

static bool check_pool(const struct core *core, const struct input *input, struct err *err)
{
    enum pool_kind kind;
    if (input->limits.kind != ACCOUNT_POOL) {
        return true;
    }
    if (!pool_kind_of(core, input->limits.name, NULL, &kind)) {
        return err_field(err, ERR_NOT_FOUND, "name", "list the pools", "there is no pool %.64s",
                         input->limits.name);
    }
    if (kind != POOL_RESERVED && input->limits.limits != NULL && input->limits.limits->lends) {
        return err_field(err, ERR_FIELD, "lend", "name a reserved pool",
                         "pool %.64s is on-demand: what it has is for everybody already", input->limits.name);
    }
    return check_isolation(core, input, err);
}

static bool check_count(const struct core *core, const struct account *account, const struct input *input,
                        struct err *err)
{
    bool limited = account != NULL && account->limited;
    if (input->limits.limits == NULL && !limited) {
        return err_field(err, ERR_NOT_FOUND, "name", "list the accounts", "%s %.64s has no limits",
                         account_kind_text(input->limits.kind), input->limits.name);
    }
    if (!limited && core->accounts->limited_count >= LIMIT_ACCOUNTS_LIMITED) {
        return err_field(err, ERR_TOO_MANY, NULL, "unset some", "%d accounts have limits",
                         LIMIT_ACCOUNTS_LIMITED);
    }
    return true;
}

static struct account *find_named(const struct core *core, const struct input *input)
{
    const char *name = input->limits.name;
    switch (input->limits.kind) {
    case ACCOUNT_PROJECT:
        return account_find(core, name, NULL);
    case ACCOUNT_USER:
        return account_find(core, NULL, name);
    case ACCOUNT_POOL:
        return account_find_pool(core, name);
    case ACCOUNT_KIND_COUNT:
        break;
    }
    abort();
}

static struct account *need_named(struct core *core, enum account_kind kind, const char *name)
{
    switch (kind) {
    case ACCOUNT_PROJECT:
        return account_need(core, name, NULL);
    case ACCOUNT_USER:
        return account_need(core, NULL, name);
    case ACCOUNT_POOL:
        return account_need_pool(core, name);
    case ACCOUNT_KIND_COUNT:
        break;
    }
    abort();
}

static void set_limited(struct core *core, struct account *account, bool limited)
{
    if (limited && !account->limited) {
        account_list_limited(core, account);
    } else if (!limited) {
        assert(account->limited);
        DL_DELETE(core->accounts->limited, account);
        account->prev = account->next = NULL;
        account->limited = false;
        core->accounts->limited_count--;
    }
}

/* Exchanges the account's limits with *limits, NULL for none. */
static void exchange(struct core *core, struct account *account, struct account_limits *limits, bool limited)
{
    struct account_limits before = account->limits;
    account->limits = *limits;
    *limits = before;
    set_limited(core, account, limited);
    core->accounts->stamp++;
}

static void record_change(struct core *core, const struct input *input)
{
    const struct limits_row row = {
        .kind = input->limits.kind, .name = input->limits.name, .limits = input->limits.text};
    bool put = input->limits.limits != NULL;
    trace_line(core, "%s %s has %s", account_kind_text(row.kind), row.name, put ? row.limits : "no limits");
    record_limits(core, put ? CHANGE_LIMITS_PUT : CHANGE_LIMITS_DELETE, &row);
}

/* Whether an attempt would lose its entitlement. */
static bool takes_away(struct core *core, struct account *account, struct account_limits *limits,
                       const struct input *input, struct err *err)
{
    bool was_limited = account->limited;
    const struct holding *holding;
    exchange(core, account, limits, input->limits.limits != NULL);
    const struct account *over = first_over(core, &holding);
    if (over != NULL) {
        refuse_loss(core, over, holding, err);
    }
    exchange(core, account, limits, was_limited);
    return over != NULL;
}

/* Sets the limits. Use so far is charged under the old limits; a new period starts with its limit. */
static void begin(struct core *core, struct account *account, struct account_limits *limits,
                  const struct input *input)
{
    bool used = account->at_ms > 0;
    if (used) {
        account_charge(core, account, core->accounts->now_ms);
    }
    exchange(core, account, limits, input->limits.limits != NULL);
    if (account->limits.period_ms != limits->period_ms) {
        account->spent_ms = 0;
    }
    record_change(core, input);
    if (used) {
        account_record_use(core, account);
    }
    demote(core);
    account_promote(core, NULL);
    account_watch(core);
    core->place_wanted = true;
}

static void say(struct core *core, const struct input *input)
{
    autotext struct text json = {0};
    text_printf(&json, "{\"kind\":\"%s\",\"name\":", account_kind_text(input->limits.kind));
    text_json_string(&json, input->limits.name, strlen(input->limits.name));
    text_printf(&json, ",\"limits\":%s}", input->limits.limits != NULL ? input->limits.text : "{}");
    record_response(core, &json);
}

bool account_change(struct core *core, const struct input *input, struct err *err)
{
    if (!check_pool(core, input, err) || !check_count(core, find_named(core, input), input, err)) {
        return false;
    }
    struct account *account = need_named(core, input->limits.kind, input->limits.name);
    struct account_limits limits;
    account_limits_init(&limits);
    if (input->limits.limits != NULL) {
        account_limits_copy(input->limits.limits, &limits);
    }
    bool ok = !takes_away(core, account, &limits, input, err) || input->limits.force;
    if (ok) {
        begin(core, account, &limits, input);
        say(core, input);
    }
    account_limits_finish(&limits);
    account_settle(core, account);
    return ok;
}

void account_load_limits(struct core *core, const struct limits_row *row, const struct account_limits *limits)
{
    assert(!core->booted);
    struct account *account = need_named(core, row->kind, row->name);
    account_limits_copy(limits, &account->limits);
    account_list_limited(core, account);
}
