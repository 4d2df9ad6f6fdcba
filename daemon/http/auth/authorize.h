/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what. Everything that a request may reach is asked here: its route, the job that it names, and
 * the fields of what it submits. What is not allowed here is refused. */
#ifndef HTTP_AUTHORIZE_H
#define HTTP_AUTHORIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/projects.h"
#include "daemon/mlflow/call/call.h"
#include "proto/base/err.h"
#include "proto/spec/jobspec.h"
#include "proto/states.h"

/* --- routes --------------------------------------------------------------------------------------------- */

/* The senders that may use a route: X(name, the roles of tokens, as the contract lists them). People are
 * named by the least role: each may do what the one before it may. */
#define ACCESSES(X)                                                                                          \
    X(OPEN, ANYBODY, "any")                   /* nobody needs a token */                                     \
    X(ANY, ANYBODY, "any")                    /* every token */                                              \
    X(VIEWER, PEOPLE(VIEWER), "viewer")       /* those who look */                                           \
    X(USER, PEOPLE(USER), "user")             /* those who work */                                           \
    X(OPERATOR, PEOPLE(OPERATOR), "operator") /* those who look after nodes and everybody's jobs */          \
    X(ADMIN, PEOPLE(ADMIN), "admin")          /* those who say who may what */                               \
    X(TRACKING, PEOPLE(VIEWER), "viewer")     /* also ranks of live attempts, by a token of theirs */        \
    X(TRACKING_CHANGE, PEOPLE(USER), "user")  /* the same, for changes */                                    \
    X(MONITOR, PEOPLE(VIEWER) | ONE(MONITOR), "monitor or viewer") /* metrics */                             \
    X(USER_OR_NODE, PEOPLE(USER) | ONE(NODE), "user or node")                                                \
    X(VIEWER_OR_NODE, PEOPLE(VIEWER) | ONE(NODE), "viewer or node")                                          \
    X(NODE, ONE(NODE), "node")

#define AS_ENUM_ACCESS(name, ...) ACCESS_##name,
enum access { ACCESSES(AS_ENUM_ACCESS) ACCESS_COUNT };
#undef AS_ENUM_ACCESS

bool authorize_is_person(enum role role);
/* Whether the ranks of a live attempt may use it, by the token that they were given. */
bool authorize_ranks(enum access access);
/* ERR_FORBIDDEN when the role may not. */
bool authorize_route(enum access access, enum role role, struct err *err);

/* --- jobs, and what belongs to them --------------------------------------------------------------------- */

/* Operators and administrators see the jobs of all. */
bool authorize_sees_all(const struct identity *who);
/* Whether somebody may know of a job: the owner, those who see all, and members of its project. */
bool authorize_see(const struct projects *projects, const struct identity *who, const char *owner,
                   const char *project);
/* Whether nothing but the role of the token lets somebody see it. */
bool authorize_see_by_role(const struct projects *projects, const struct identity *who, const char *owner,
                           const char *project);
/* Whether somebody who sees it may also change it: the owner, operators, and operators of its project. A
 * token of a viewer changes nothing. ERR_FORBIDDEN. */
bool authorize_change(const struct projects *projects, const struct identity *who, const char *owner,
                      const char *project, struct err *err);
/* Whether somebody who may change it may also run commands in it, which have all that its ranks have: its
 * owner, and administrators. ERR_FORBIDDEN. */
bool authorize_enter(const struct identity *who, const char *owner, const char *project, struct err *err);
/* Whether all jobs of the project may be listed. */
bool authorize_see_project(const struct projects *projects, const struct identity *who, const char *project);

/* --- submissions ---------------------------------------------------------------------------------------- */

/* ERR_FORBIDDEN names the field: a project of others, or one that nobody has set up; or a priority above the
 * project's. */
bool authorize_submit(const struct projects *projects, const struct identity *who,
                      const struct job_spec *spec, struct err *err);
/* The priority of a job that has another one now; lowering it is always allowed. */
bool authorize_priority(const struct projects *projects, const struct identity *who, const char *project,
                        int64_t priority, int64_t now, struct err *err);

/* Whether somebody may set, see and use the secrets of the project: its users, and its service accounts of
 * that role. The role of a person's token helps nobody. */
bool authorize_secrets(const struct projects *projects, const struct principal *who, const char *project);

/* --- experiments, runs and models ----------------------------------------------------------------------- */

/* Whether it has the right. owner "": of what is everybody's. Any thread that holds the projects. */
bool authorize_tracking(const struct projects *projects, const struct principal *who,
                        enum tracking_right right, const char *owner, const char *project);

#endif
