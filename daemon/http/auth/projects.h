/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP thread's copy of what administrators have said about projects: who belongs to them, and what their
 * people may ask for. */
#ifndef HTTP_PROJECTS_H
#define HTTP_PROJECTS_H

#include <stdbool.h>

#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/spec/account_limits.h"

struct projects;

/* What is told never changes once it was read, so other threads may read it while it is held. Counted on the
 * HTTP thread alone. */
struct projects *projects_create(void);
struct projects *projects_hold(struct projects *projects);
/* Takes NULL. */
void projects_release(struct projects *projects);

/* Reads all projects: at start, and after a change to them was committed. NULL: *err. */
struct projects *projects_load(struct reader *reader, struct err *err);
/* Before it is used. */
void projects_put(struct projects *projects, const char *name, const struct account_limits *limits);

/* NULL: nobody has set the project up. */
const struct account_limits *projects_find(const struct projects *projects, const char *name);

/* The highest that the name and the groups (daemon/identity/groups.h, or NULL) give. ROLE_NONE: no member. */
enum role projects_role(const struct account_limits *project, const char *name, const char *groups);
/* Whether somebody may be a member by a group. */
bool projects_have_groups(const struct account_limits *project);

#endif
