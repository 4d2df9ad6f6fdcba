/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts as their own files see them. */
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

/* Accounts that share what there is: all projects, or the users of one project. The sums are of those that
 * have live jobs or have used something lately, and stand as long as the stamp does. */
struct family {
    struct account *members;
    uint64_t stamp;
    int64_t used_ms, weight;
};

struct account {
    enum account_kind kind;
    char *key; /* of the hash */
    char *name;
    struct account *project, *owner; /* of a user within a project; else NULL */
    struct family users;             /* of a project */
    size_t tie_count;                /* users within it, or projects it is in: it stays as long as they do */

    bool limited; /* it has limits: they, not those of nobody, count */
    struct account_limits limits;

    int64_t queued, running; /* live jobs */
    struct holding *holdings;
    int64_t gpus; /* held now */

    int64_t used_ms;  /* GPU time, decayed up to at_ms */
    int64_t spent_ms; /* GPU time in the period of its limit in which at_ms lies */
    bool spent;       /* that was the whole of the limit when periods were last looked at */
    int64_t at_ms;    /* wall clock */

    uint64_t share_stamp;
    int64_t delay_ms; /* stands as long as the stamp does */

    struct account *prev, *next;     /* idle ones, the one longest idle first; or limited ones */
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
    int64_t now_ms;   /* never goes back, not even over a restart */
    int64_t ahead_ms; /* of the steady clock: the wall clock had been ahead when use was last written */
    uint64_t stamp;   /* changes with whatever shares depend on */
};

/* --- account.c --- */

/* The account, NULL when there is none. project NULL: a user; owner NULL: a project. */
struct account *account_find(const struct core *core, const char *project, const char *owner);
struct account *account_need(struct core *core, const char *project, const char *owner);
struct account *account_find_pool(const struct core *core, const char *pool);
struct account *account_need_pool(struct core *core, const char *pool);
/* Of a job: its owner within its project. */
struct account *account_tie(const struct core *core, const struct job *job);
bool account_is_live(const struct account *account);
/* It lost its last limit, job or tie, or may have: it is kept for its use alone, or goes. */
void account_settle(struct core *core, struct account *account);
/* It has limits from now on. */
void account_list_limited(struct core *core, struct account *account);
/* What it holds of a type; NULL: nothing, and never has. */
struct holding *account_holding(const struct account *account, const char *type);
/* GPUs of an attempt. */
int64_t account_gpus(const struct attempt *attempt);

/* --- account_use.c --- */

/* Brings used_ms and spent_ms up to that time, and what they are then. Times do not go back. */
void account_charge(const struct core *core, struct account *account, int64_t to_ms);
int64_t account_used_ms(const struct core *core, const struct account *account, int64_t at_ms);
int64_t account_spent_ms(const struct account *account, int64_t at_ms);
void account_record_use(struct core *core, const struct account *account);

/* --- account_limit.c --- */

/* -1: no bound. */
int64_t account_bound(const struct type_limit *types, size_t count, const char *type);
/* GPUs of a type that the project is entitled to; -1: no project has a quota on it. */
int64_t account_quota(const struct core *core, const struct account *project, const char *type);

/* --- account_change.c --- */

/* Borrowed attempts of the project that fit its quota become entitled. NULL: of all projects. */
void account_promote(struct core *core, const struct account *project);

/* --- account_share.c --- */

struct account_share {
    int64_t used_ms;
    int64_t share, target; /* millionths */
    int64_t delay_ms;
};
/* Of a project, or of a user within one. */
struct account_share account_share(struct core *core, struct account *account);

#endif
