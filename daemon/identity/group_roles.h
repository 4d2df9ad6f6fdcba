/* SPDX-License-Identifier: Apache-2.0 */
/* Which role people of a group have here. */
#ifndef IDENTITY_GROUP_ROLES_H
#define IDENTITY_GROUP_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/states.h"

/* Each item is GROUP=ROLE; the group "*" is everybody. */
struct group_roles {
    const char *const *items;
    size_t count;
};

/* ERR_USAGE names the item that is wrong. */
bool group_roles_check(const struct group_roles *roles, struct err *err);
/* The highest role of these groups (groups.h); ROLE_NONE: none has one. */
enum role group_roles_find(const struct group_roles *roles, const char *groups);

#endif
