/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of accounts, for the account files. */
#ifndef CORE_QUOTA_ACCOUNT_STATE_H
#define CORE_QUOTA_ACCOUNT_STATE_H

#include "daemon/core/model/state.h"
#include "daemon/core/quota/account.h"

/* GPUs of one type that an account holds now. */
struct holding {
    char *type;
    int64_t gpus, entitled;
    struct holding *next;
};

/* Accounts that compete for shares: all projects, or the users of one project. The sums count members with
 * live jobs or recent use, and are valid while the stamp is unchanged. */
struct family {
    struct account *members;
    uint64_t stamp;
    int64_t used_ms, weight;
};

struct account {
    enum account_kind kind;
    char *key; /* in the hash */
    char *name;
    struct account *project, *owner; /* of a user within a project; else NULL */
    struct family users;             /* of a project */
    size_t tie_count; /* users within this project, or projects of this user: the account exists as long as
they do */

    bool limited; /* it has limits */
    struct account_limits limits;

    int64_t queued, running; /* live jobs */
    struct holding *holdings;
    int64_t gpus; /* held now */
    struct amount held;

    int64_t used_ms;  /* GPU time, decayed up to at_ms */
    int64_t spent_ms; /* GPU time in the limit's period that contains at_ms */
    bool spent;       /* the limit was used up at the last look at periods */
    int64_t at_ms;    /* wall clock */

    uint64_t share_stamp;
    int64_t delay_ms; /* valid while the stamp is unchanged */

    struct account *prev, *next;     /* idle accounts, longest idle first; or limited accounts */
    struct account *elder, *younger; /* of the family */
    UT_hash_handle hh;
};

struct accounts {
    struct account *by_key;
    struct family projects;
    struct account *limited;
    struct account *idle;
    size_t idle_count, limited_count;
    int64_t half_life_ms;
    int64_t now_ms;   /* never goes back, even over a restart */
    int64_t ahead_ms; /* of the steady clock: the wall clock was ahead when use was last written */
    uint64_t stamp;   /* changes when anything changes that shares depend on */
};

/* --- account.c --- */

/* Finds the account; NULL: none. project NULL: a user; owner NULL: a project. */
struct account *account_find(const struct core *core, const char *project, const char *owner);
struct account *account_need(struct core *core, const char *project, const char *owner);
struct account *account_find_pool(const struct core *core, const char *pool);
struct account *account_need_pool(struct core *core, const char *pool);
/* The account of a job's owner within its project. */
struct account *account_tie(const struct core *core, const struct job *job);
bool account_is_live(const struct account *account);
/* The account may have lost its last limit, job or tie: keeps it for its use only, or removes it. */
void account_settle(struct core *core, struct account *account);
/* Lists the account among those with limits. */
void account_list_limited(struct core *core, struct account *account);
/* The holding of a type; NULL: the account has never held any. */
struct holding *account_holding(const struct account *account, const char *type);
/* The number of GPUs of an attempt. */
int64_t account_gpus(const struct attempt *attempt);

/* --- account_use.c --- */

/* account_charge brings used_ms and spent_ms up to the given time; the others return their values at a time.
 * Times never go back. */
void account_charge(const struct core *core, struct account *account, int64_t to_ms);
int64_t account_used_ms(const struct core *core, const struct account *account, int64_t at_ms);
int64_t account_spent_ms(const struct account *account, int64_t at_ms);
void account_record_use(struct core *core, const struct account *account);

/* --- account_limit.c --- */

/* The bound for the type; -1: none. */
int64_t account_bound(const struct type_limit *types, size_t count, const char *type);
/* GPUs of the type that the project is entitled to; -1: no project has a quota on the type. */
int64_t account_quota(const struct core *core, const struct account *project, const char *type);

/* --- account_change.c --- */

/* Makes borrowed attempts of the project entitled if they fit its quota. NULL: of all projects. */
void account_promote(struct core *core, const struct account *project);

/* --- account_share.c --- */

struct account_share {
    int64_t used_ms;
    int64_t share, target; /* millionths */
    int64_t delay_ms;
};
/* The share of a project, or of a user within one. */
struct account_share account_share(struct core *core, struct account *account);

#endif
