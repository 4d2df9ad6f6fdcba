/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the accounts: which exist, their numbers of jobs and GPUs, and how long an account without jobs and
 * limits is remembered. Every live job counts in three accounts: its project, its owner, and its owner within
 * its project. The GPUs held agree with the live attempts. account_limit.c interprets the counts,
 * account_use.c measures use, and account_share.c calculates shares. */
#include "daemon/core/quota/account.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/quota/account_state.h"
#include "proto/limits_controller.h"

/* --- finding -------------------------------------------------------------------------------------------- */

/* Names contain no tabs, so keys are unambiguous. */
static void key_of(enum account_kind kind, const char *project, const char *owner, struct text *out)
{
    text_append(out, account_kind_text(kind));
    text_append(out, "\t");
    text_append(out, project != NULL ? project : "");
    text_append(out, "\t");
    text_append(out, owner != NULL ? owner : "");
}

static struct account *find(const struct core *core, enum account_kind kind, const char *project,
                            const char *owner)
{
    autotext struct text key = {0};
    key_of(kind, project, owner, &key);
    struct account *account;
    HASH_FIND_STR(core->accounts->by_key, key.bytes, account);
    return account;
}

static enum account_kind kind_of(const char *owner)
{
    return owner != NULL ? ACCOUNT_USER : ACCOUNT_PROJECT;
}

struct account *account_find(const struct core *core, const char *project, const char *owner)
{
    return find(core, kind_of(owner), project, owner);
}

struct account *account_find_pool(const struct core *core, const char *pool)
{
    return find(core, ACCOUNT_POOL, pool, NULL);
}

struct account *account_tie(const struct core *core, const struct job *job)
{
    return account_find(core, job->project->name, job->owner->name);
}

/* --- creation ------------------------------------------------------------------------------------------- */

static struct account *create(struct core *core, enum account_kind kind, const char *project,
                              const char *owner)
{
    struct text key = {0};
    key_of(kind, project, owner, &key);
    struct account *account = xzalloc(sizeof *account);
    account->kind = kind;
    account->key = text_take(&key);
    account->name = xstrdup(owner != NULL ? owner : project);
    account_limits_init(&account->limits);
    HASH_ADD_KEYPTR(hh, core->accounts->by_key, account->key, strlen(account->key), account);
    return account;
}

static void family_add(struct family *family, struct account *account)
{
    DL_APPEND2(family->members, account, elder, younger);
}

static void idle_remove(struct accounts *accounts, struct account *account);

static void tie(struct core *core, struct account *account, const char *project, const char *owner)
{
    account->project = account_need(core, project, NULL);
    account->owner = account_need(core, NULL, owner);
    account->project->tie_count++;
    account->owner->tie_count++;
    family_add(&account->project->users, account);
}

struct account *account_need(struct core *core, const char *project, const char *owner)
{
    struct account *account = account_find(core, project, owner);
    if (account != NULL) {
        idle_remove(core->accounts, account);
        return account;
    }
    account = create(core, kind_of(owner), project, owner);
    if (project != NULL && owner != NULL) {
        tie(core, account, project, owner);
    } else if (owner == NULL) {
        family_add(&core->accounts->projects, account);
    }
    return account;
}

struct account *account_need_pool(struct core *core, const char *pool)
{
    struct account *account = account_find_pool(core, pool);
    return account != NULL ? account : create(core, ACCOUNT_POOL, pool, NULL);
}

/* --- idle accounts and removal -------------------------------------------------------------------------- */

bool account_is_live(const struct account *account)
{
    return account->queued > 0 || account->running > 0;
}

static void holdings_free(struct account *account)
{
    for (struct holding *holding = account->holdings, *next; holding != NULL; holding = next) {
        next = holding->next;
        free(holding->type);
        free(holding);
    }
}

static void account_free(struct account *account)
{
    holdings_free(account);
    account_limits_finish(&account->limits);
    free(account->key);
    free(account->name);
    free(account);
}

/* Only idle accounts and accounts with limits are in a list. */
static bool is_idle(const struct account *account)
{
    return account->prev != NULL && !account->limited;
}

static void idle_remove(struct accounts *accounts, struct account *account)
{
    if (is_idle(account)) {
        DL_DELETE(accounts->idle, account);
        account->prev = account->next = NULL;
        accounts->idle_count--;
    }
}

/* Inserts by the time of last use, the order that a restart would give. */
static void idle_add(struct accounts *accounts, struct account *account)
{
    struct account *before = accounts->idle != NULL ? accounts->idle->prev : NULL;
    while (before != NULL && (before->at_ms > account->at_ms ||
                              (before->at_ms == account->at_ms && strcmp(before->key, account->key) > 0))) {
        before = before != accounts->idle ? before->prev : NULL;
    }
    if (before != NULL) {
        DL_APPEND_ELEM(accounts->idle, before, account);
    } else {
        DL_PREPEND(accounts->idle, account);
    }
    accounts->idle_count++;
}

static void drop(struct core *core, struct account *account)
{
    struct account *project = account->project, *owner = account->owner;
    idle_remove(core->accounts, account);
    if (account->at_ms > 0) {
        account->at_ms = 0;
        account_record_use(core, account);
    }
    HASH_DEL(core->accounts->by_key, account);
    if (project != NULL) {
        DL_DELETE2(project->users.members, account, elder, younger);
        project->tie_count--;
        owner->tie_count--;
    } else if (account->kind == ACCOUNT_PROJECT) {
        DL_DELETE2(core->accounts->projects.members, account, elder, younger);
    }
    core->accounts->stamp++;
    account_free(account);
    if (project != NULL) {
        account_settle(core, project);
        account_settle(core, owner);
    }
}

void account_settle(struct core *core, struct account *account)
{
    struct accounts *accounts = core->accounts;
    if (account->limited || account->tie_count > 0 || account_is_live(account)) {
        return;
    }
    if (account->at_ms == 0) {
        drop(core, account);
        return;
    }
    idle_remove(accounts, account);
    idle_add(accounts, account);
    if (core->booted && accounts->idle_count > LIMIT_ACCOUNTS_KEPT) {
        drop(core, accounts->idle);
    }
}

void account_list_limited(struct core *core, struct account *account)
{
    idle_remove(core->accounts, account);
    account->limited = true;
    DL_APPEND(core->accounts->limited, account);
    core->accounts->limited_count++;
}

struct accounts *accounts_create(int64_t share_half_life_ms)
{
    struct accounts *accounts = xzalloc(sizeof *accounts);
    accounts->half_life_ms = share_half_life_ms > 0 ? share_half_life_ms : DEFAULT_SHARE_HALF_LIFE_MS;
    accounts->stamp = 1;
    return accounts;
}

void accounts_destroy(struct accounts *accounts)
{
    struct account *account, *next;
    HASH_ITER (hh, accounts->by_key, account, next) {
        HASH_DEL(accounts->by_key, account);
        account_free(account);
    }
    free(accounts);
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

static void count_job(struct core *core, struct account *account, int64_t queued, int64_t running)
{
    bool before = account_is_live(account);
    account->queued += queued;
    account->running += running;
    assert(account->queued >= 0 && account->running >= 0);
    if (account_is_live(account) != before) {
        core->accounts->stamp++;
    }
}

/* Notes when the hours of a limit are used up and when the next period begins: waiting jobs are then
 * reconsidered. */
static void note_period(struct core *core, const struct account *account)
{
    const struct account_limits *limits = &account->limits;
    int64_t now_ms = core->accounts->now_ms;
    if (limits->period_ms == 0 || account->queued == 0 || !core->booted) {
        return;
    }
    int64_t left_ms = limits->gpu_ms - account_spent_ms(account, now_ms);
    deadline_note(core, core->now_ms + limits->period_ms - now_ms % limits->period_ms);
    if (left_ms > 0 && account->gpus > 0) {
        deadline_note(core, core->now_ms + (left_ms + account->gpus - 1) / account->gpus);
    }
}

const char *account_name(const struct account *account)
{
    return account->name;
}

void account_join(struct core *core, struct job *job, const char *project, const char *owner)
{
    assert(job->project == NULL);
    struct account *within = account_need(core, project, owner);
    job->project = within->project;
    job->owner = within->owner;
    count_job(core, job->project, 1, 0);
    count_job(core, job->owner, 1, 0);
    count_job(core, within, 1, 0);
    note_period(core, job->project);
    note_period(core, job->owner);
}

void account_join_same(struct core *core, struct job *job, const struct job *other)
{
    account_join(core, job, other->project->name, other->owner->name);
}

void account_leave(struct core *core, struct job *job)
{
    struct account *within = account_tie(core, job);
    count_job(core, job->project, -1, 0);
    count_job(core, job->owner, -1, 0);
    count_job(core, within, -1, 0);
    job->project = job->owner = NULL;
    account_settle(core, within); /* may also remove the other two accounts */
}

/* --- GPUs ----------------------------------------------------------------------------------------------- */

int64_t account_gpus(const struct attempt *attempt)
{
    return request_gpus(&attempt->job->job_class->request);
}

struct holding *account_holding(const struct account *account, const char *type)
{
    struct holding *holding;
    LL_FOREACH (account->holdings, holding) {
        if (strcasecmp(holding->type, type) == 0) {
            return holding;
        }
    }
    return NULL;
}

static struct holding *holding_need(struct account *account, const char *type)
{
    struct holding *holding = account_holding(account, type);
    if (holding == NULL) {
        holding = xzalloc(sizeof *holding);
        holding->type = xstrdup(type);
        LL_APPEND(account->holdings, holding);
    }
    return holding;
}

/* Charges the time before the number of GPUs changes. */
static void hold(struct core *core, struct account *account, const struct attempt *attempt, int64_t at_ms,
                 int64_t sign)
{
    int64_t gpus = sign * account_gpus(attempt);
    account_charge(core, account, at_ms);
    account->gpus += gpus;
    for (size_t i = 0; i < attempt->member_count; i++) {
        account->held = amount_plus(account->held, member_holds(attempt->members[i]), sign);
    }
    if (gpus != 0) {
        struct holding *holding = holding_need(account, attempt->gpu_type);
        holding->gpus += gpus;
        holding->entitled += attempt->claim == CLAIM_ENTITLED ? gpus : 0;
        assert(holding->entitled >= 0 && holding->entitled <= holding->gpus);
    }
    count_job(core, account, -sign, sign);
}

static void hold_all(struct core *core, const struct attempt *attempt, int64_t at_ms, int64_t sign)
{
    const struct job *job = attempt->job;
    hold(core, job->project, attempt, at_ms, sign);
    hold(core, job->owner, attempt, at_ms, sign);
    hold(core, account_tie(core, job), attempt, at_ms, sign);
    note_period(core, job->project);
    note_period(core, job->owner);
    core->borrowed_count += attempt->claim == CLAIM_BORROWED ? (size_t)sign : 0;
    core->accounts->stamp++;
}

void account_take(struct core *core, struct attempt *attempt)
{
    hold_all(core, attempt, attempt->held_since_ms + core->accounts->ahead_ms, 1);
}

void account_give_back(struct core *core, struct attempt *attempt)
{
    const struct job *job = attempt->job;
    hold_all(core, attempt, core->accounts->now_ms, -1);
    account_record_use(core, job->project);
    account_record_use(core, job->owner);
    account_record_use(core, account_tie(core, job));
    account_promote(core, job->project);
}

/* --- time ----------------------------------------------------------------------------------------------- */

void account_clock(struct core *core, int64_t at_ms)
{
    struct accounts *accounts = core->accounts;
    int64_t now_ms = at_ms + accounts->ahead_ms;
    accounts->now_ms = now_ms > accounts->now_ms ? now_ms : accounts->now_ms;
}

void account_boot(struct core *core)
{
    struct accounts *accounts = core->accounts;
    accounts->ahead_ms = accounts->now_ms > core->steady_ms ? accounts->now_ms - core->steady_ms : 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        hold_all(core, attempt, attempt->held_since_ms + core->accounts->ahead_ms, 1);
    }
    while (accounts->idle_count > LIMIT_ACCOUNTS_KEPT) {
        drop(core, accounts->idle);
    }
    account_watch(core);
}

void account_watch(struct core *core)
{
    struct account *account;
    DL_FOREACH (core->accounts->limited, account) {
        int64_t spent_ms = account_spent_ms(account, core->accounts->now_ms);
        bool spent = account->limits.period_ms > 0 && spent_ms >= account->limits.gpu_ms;
        core->place_wanted = core->place_wanted || spent != account->spent;
        account->spent = spent;
        note_period(core, account);
    }
}

/* --- invariants ----------------------------------------------------------------------------------------- */

struct count {
    int64_t queued, running, gpus;
    struct amount held;
};

static bool is_of(const struct job *job, const struct account *account)
{
    const struct account *project = account->project != NULL ? account->project : job->project;
    const struct account *owner = account->owner != NULL ? account->owner : job->owner;
    return account->project != NULL ? job->project == project && job->owner == owner
                                    : job->project == account || job->owner == account;
}

static struct count count_of(const struct core *core, const struct account *account)
{
    struct count count = {0};
    for (const struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        bool runs = job->attempt != NULL && attempt_is_live(job->attempt);
        if (is_of(job, account)) {
            count.queued += !runs;
            count.running += runs;
            count.gpus += runs ? request_gpus(&job->job_class->request) : 0;
            for (size_t i = 0; runs && i < job->attempt->member_count; i++) {
                count.held = amount_plus(count.held, member_holds(job->attempt->members[i]), 1);
            }
        }
    }
    return count;
}

static void check_holding(const struct core *core, const struct account *account,
                          const struct holding *holding)
{
    int64_t gpus = 0, entitled = 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        if (is_of(attempt->job, account) && strcasecmp(attempt->gpu_type, holding->type) == 0) {
            gpus += account_gpus(attempt);
            entitled += attempt->claim == CLAIM_ENTITLED ? account_gpus(attempt) : 0;
        }
    }
    assert(gpus == holding->gpus && entitled == holding->entitled);
    int64_t quota = account->kind == ACCOUNT_PROJECT ? account_quota(core, account, holding->type) : -1;
    assert(quota < 0 || entitled <= quota);
}

static void check_account(const struct core *core, const struct account *account)
{
    const struct count count = count_of(core, account);
    int64_t gpus = 0;
    assert(account->queued == count.queued && account->running == count.running);
    assert(account->held.millicpus == count.held.millicpus &&
           account->held.memory_bytes == count.held.memory_bytes);
    assert(account->gpus == count.gpus && account->used_ms >= 0 && account->spent_ms >= 0);
    for (const struct holding *holding = account->holdings; holding != NULL; holding = holding->next) {
        check_holding(core, account, holding);
        gpus += holding->gpus;
    }
    assert(gpus == account->gpus);
    assert(account->limited || account->tie_count > 0 || account_is_live(account) || is_idle(account));
}

void account_check(const struct core *core)
{
    size_t idle = 0;
    for (const struct account *account = core->accounts->by_key; account != NULL;
         account = account->hh.next) {
        check_account(core, account);
        idle += is_idle(account);
    }
    assert(!core->booted || (idle == core->accounts->idle_count && idle <= LIMIT_ACCOUNTS_KEPT));
}
