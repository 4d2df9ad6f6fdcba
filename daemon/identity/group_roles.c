/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the role of somebody by their groups. Who is in no group that has one has none. */
#include "daemon/identity/group_roles.h"

#include <string.h>

#include "daemon/identity/groups.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/spec/account_limits.h"

#define EVERYBODY "*"

/* Names of groups may have "=", and roles have none. The caller frees the group. */
static bool read_item(const char *item, char **ret_group, enum role *ret_role)
{
    const char *equals = strrchr(item, '=');
    if (equals == NULL || !role_from_text(equals + 1, ret_role) || *ret_role < ROLE_VIEWER) {
        return false;
    }
    autofree char *group = xstrndup(item, (size_t)(equals - item));
    if (!member_group_is_sound(group)) {
        return false;
    }
    *ret_group = give(group);
    return true;
}

bool group_roles_check(const struct group_roles *roles, struct err *err)
{
    for (size_t i = 0; i < roles->count; i++) {
        autofree char *group = NULL;
        enum role role;
        if (!read_item(roles->items[i], &group, &role)) {
            return err_field(err, ERR_USAGE, "--oidc-role",
                             "write GROUP=user, with viewer, user, operator or admin",
                             "\"%.200s\" is no group with a role", roles->items[i]);
        }
    }
    return true;
}

enum role group_roles_find(const struct group_roles *roles, const char *groups)
{
    enum role found = ROLE_NONE;
    for (size_t i = 0; i < roles->count; i++) {
        autofree char *group = NULL;
        enum role role;
        if (read_item(roles->items[i], &group, &role) && role > found &&
            (strcmp(group, EVERYBODY) == 0 || groups_have(groups, group))) {
            found = role;
        }
    }
    return found;
}
