/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody who may do something: a person, a service account, or the ranks of a job, as the rules of projects
 * see them. */
#ifndef HTTP_PRINCIPAL_H
#define HTTP_PRINCIPAL_H

#include "proto/states.h"

struct principal {
    char *name; /* owner of tokens and jobs */
    enum role role;
    char *project; /* of a service account: all that it reaches; NULL: a person or a node */
    char *groups;  /* of a person who logged in, as daemon/identity/groups.h has them; NULL: none */
    char *job;     /* of ranks: the project of their job; NULL: no ranks */
};

/* Copies the texts, of which all but the name may be NULL. */
void principal_init(struct principal *principal, const char *name, enum role role, const char *project,
                    const char *groups);
void principal_copy(const struct principal *principal, struct principal *ret_copy);
/* The ranks of a job: they may what its owner may as a user. */
void principal_of_job(struct principal *ret_ranks, const char *owner, const char *project);
void principal_finish(struct principal *principal);

#endif
