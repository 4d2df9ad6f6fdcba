/* SPDX-License-Identifier: Apache-2.0 */
/* The users of this host that ranks run as, with --run-as owner. */
#ifndef AGENT_USERS_H
#define AGENT_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* A user as a rank becomes it. */
struct user {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned; the supplementary ones */
    size_t group_count;
    char *name, *home, *shell; /* owned */
};

struct users;

/* Of a folder of root that users pass on the way to their own, and cannot list. */
#define USER_PASSAGE_MODE 0711

/* state: the agent's folder, which keeps the numbers of owners that this host does not know, and their homes.
 * Numbers come from first to last; builds of environments have the first USERS_OF_BUILDS of them. */
struct users *users_open(const char *state, uid_t first, uid_t last, struct err *err);
void users_close(struct users *users);

/* The numbers that builds of environments may take: all of USERS_OF_BUILDS but the last. */
uid_t users_of_builds(const struct users *users);
/* The number of fetches of inputs: the last of them. */
uid_t users_of_fetches(const struct users *users);

/* The user for an owner of jobs, with a home that exists: the one of that name where the host knows a person
 * of it, else one with a number that is this owner's alone on this host, and stays it. */
bool users_find(struct users *users, const char *owner, struct user *ret_user, struct err *err);
void user_finish(struct user *user);

/* From user_begin to user_end the agent opens and makes files with the user's rights, and as theirs. NULL:
 * nothing changes. */
void user_begin(const struct user *user);
void user_end(const struct user *user);

#endif
