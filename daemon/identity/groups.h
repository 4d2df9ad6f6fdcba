/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a person at the identity provider, as one text: each has a line, and a newline stands before the
 * first. */
#ifndef IDENTITY_GROUPS_H
#define IDENTITY_GROUPS_H

#include <stdbool.h>

#include "proto/base/text/text.h"

/* Adds a group, of a name that member_group_is_sound. A group that is there is not added again. */
void groups_add(struct text *groups, const char *name);
/* groups NULL: none. */
bool groups_have(const char *groups, const char *name);

#endif
