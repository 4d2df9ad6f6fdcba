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

struct projects *projects_create(void);
void projects_destroy(struct projects *projects);

/* Reads all projects anew: at start, and after a change to them was committed. */
bool projects_load(struct projects *projects, struct reader *reader, struct err *err);
void projects_put(struct projects *projects, const char *name, const struct account_limits *limits);

/* NULL: nobody has set the project up. */
const struct account_limits *projects_find(const struct projects *projects, const char *name);

/* ROLE_NONE: no member. */
enum role projects_role(const struct account_limits *project, const char *name);

#endif
