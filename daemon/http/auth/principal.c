/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the texts of a principal. What it may do, authorize.c says. */
#include "daemon/http/auth/principal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

void principal_init(struct principal *principal, const char *name, enum role role, const char *project,
                    const char *groups)
{
    *principal = (struct principal){
        .name = xstrdup(name), .role = role, .project = copy(project), .groups = copy(groups)};
}

void principal_copy(const struct principal *principal, struct principal *ret_copy)
{
    principal_init(ret_copy, principal->name, principal->role, principal->project, principal->groups);
    ret_copy->job = copy(principal->job);
}

/* The job of a service account is in that account's project. */
void principal_of_job(struct principal *ret_ranks, const char *owner, const char *project)
{
    principal_init(ret_ranks, owner, ROLE_USER, text_is_service(owner) ? project : NULL, NULL);
    ret_ranks->job = xstrdup(project);
}

void principal_finish(struct principal *principal)
{
    free(principal->name);
    free(principal->project);
    free(principal->groups);
    free(principal->job);
    *principal = (struct principal){.name = NULL};
}
