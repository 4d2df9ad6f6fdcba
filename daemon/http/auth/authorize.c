/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by three things: the role of the sender's token, whose the job is, and what the sender is in the
 * job's project. A job that somebody may not see is reported as one that does not exist; so is a project.
 * Nothing here reads the store: a decision costs some comparisons. */
#include "daemon/http/auth/authorize.h"

#include <string.h>

#include "proto/limits.h"

/* --- routes --------------------------------------------------------------------------------------------- */

#define ONE(role)     (1U << ROLE_##role)
#define PEOPLE(least) ((1U << ROLE_COUNT) - (1U << ROLE_##least))
#define ANYBODY       (PEOPLE(VIEWER) | ONE(NODE) | ONE(MONITOR))

static const struct {
    unsigned roles; /* a bit each */
    const char *wanted;
} admitted[ACCESS_COUNT] = {
#define AS_ROW(name, roles, wanted) [ACCESS_##name] = {roles, wanted},
    ACCESSES(AS_ROW)
#undef AS_ROW
};

bool authorize_is_person(enum role role)
{
    return role >= ROLE_VIEWER;
}

bool authorize_ranks(enum access access)
{
    return access == ACCESS_TRACKING || access == ACCESS_TRACKING_CHANGE;
}

bool authorize_route(enum access access, enum role role, struct err *err)
{
    return (admitted[access].roles & 1U << role) != 0 ||
           err_set(err, ERR_FORBIDDEN, "this needs a token of role %s; yours has role %s",
                   admitted[access].wanted, role_text(role));
}

/* --- jobs, and what belongs to them --------------------------------------------------------------------- */

bool authorize_sees_all(const struct identity *who)
{
    return identity_role(who) >= ROLE_OPERATOR;
}

/* A project without members is everybody's to submit to, and no reason to see what others do there. Ranks
 * know their owner's name, and not the groups by which that may be a member of their job's project. */
static enum role role_at(const struct account_limits *limits, const struct principal *who,
                         const char *project)
{
    if (limits == NULL || limits->member_count == 0) {
        return ROLE_NONE;
    }
    if (who->project != NULL) {
        return strcmp(who->project, project) == 0 ? who->role : ROLE_NONE;
    }
    enum role role = projects_role(limits, who->name, who->groups);
    bool by_group = who->job != NULL && strcmp(who->job, project) == 0 && projects_have_groups(limits);
    return by_group && role < ROLE_USER ? ROLE_USER : role;
}

static enum role role_of(const struct projects *projects, const struct principal *who, const char *project)
{
    return role_at(projects_find(projects, project), who, project);
}

static enum role role_in(const struct projects *projects, const struct identity *who, const char *project)
{
    return role_of(projects, identity_principal(who), project);
}

/* A service account has nothing outside its project. */
static bool owns(const struct principal *who, const char *owner, const char *project)
{
    return authorize_is_person(who->role) && strcmp(who->name, owner) == 0 &&
           (who->project == NULL || strcmp(who->project, project) == 0);
}

static bool is_own(const struct identity *who, const char *owner, const char *project)
{
    return owns(identity_principal(who), owner, project);
}

bool authorize_see_project(const struct projects *projects, const struct identity *who, const char *project)
{
    return authorize_sees_all(who) ||
           (authorize_is_person(identity_role(who)) && role_in(projects, who, project) >= ROLE_VIEWER);
}

bool authorize_see(const struct projects *projects, const struct identity *who, const char *owner,
                   const char *project)
{
    return is_own(who, owner, project) || authorize_see_project(projects, who, project);
}

bool authorize_see_by_role(const struct projects *projects, const struct identity *who, const char *owner,
                           const char *project)
{
    return authorize_sees_all(who) && !is_own(who, owner, project) &&
           role_in(projects, who, project) < ROLE_VIEWER;
}

bool authorize_change(const struct projects *projects, const struct identity *who, const char *owner,
                      const char *project, struct err *err)
{
    if (identity_role(who) < ROLE_USER) {
        return err_set(err, ERR_FORBIDDEN, "a token of role %s only looks", role_text(identity_role(who)));
    }
    if (authorize_sees_all(who) || is_own(who, owner, project) ||
        role_in(projects, who, project) >= ROLE_OPERATOR) {
        return true;
    }
    err_set(err, ERR_FORBIDDEN, "the job is %s's; you may see it, and not change it", owner);
    return err_hint(err, "ask %s, or an operator of project %s", owner, project);
}

bool authorize_enter(const struct identity *who, const char *owner, const char *project, struct err *err)
{
    bool may =
        identity_role(who) == ROLE_ADMIN || (identity_role(who) >= ROLE_USER && is_own(who, owner, project));
    return may ||
           err_set(err, ERR_FORBIDDEN,
                   "the job is %s's: only %s and administrators reach into it while it runs", owner, owner);
}

/* --- submissions ---------------------------------------------------------------------------------------- */

/* The project that jobs are in when nobody says: open until it has members. */
static bool may_use(const struct projects *projects, const char *project, const struct principal *who)
{
    const struct account_limits *limits = projects_find(projects, project);
    if (who->project != NULL && strcmp(who->project, project) != 0) {
        return false;
    }
    if (limits == NULL) {
        return strcmp(project, DEFAULT_PROJECT) == 0;
    }
    return limits->member_count == 0 || role_at(limits, who, project) >= ROLE_USER;
}

bool authorize_priority(const struct projects *projects, const struct identity *who, const char *project,
                        int64_t priority, int64_t now, struct err *err)
{
    const struct account_limits *limits = projects_find(projects, project);
    int64_t most = limits != NULL ? limits->max_priority : 0;
    if (priority <= most || priority <= now || authorize_sees_all(who) ||
        role_in(projects, who, project) >= ROLE_OPERATOR) {
        return true;
    }
    err_field(err, ERR_FORBIDDEN, "priority", NULL, "in project %s a user's job has at most priority %lld",
              project, (long long)most);
    return err_hint(err,
                    "ask for less, or have an administrator call "
                    "`gpuctl quotas set project %s --max-priority %lld`",
                    project, (long long)priority);
}

/* Whether a job may hold GPUs, and run, on a node that is not heard, for as long as it likes. */
static bool may_disconnect(const struct projects *projects, const struct identity *who, const char *project,
                           enum on_disconnect rule, struct err *err)
{
    const struct account_limits *limits = projects_find(projects, project);
    unsigned rules = limits != NULL ? limits->on_disconnect : 0;
    if (rules == 0 || (rules & 1U << rule) != 0 || authorize_sees_all(who) ||
        role_in(projects, who, project) >= ROLE_OPERATOR) {
        return true;
    }
    int first = 0;
    while ((rules & 1U << first) == 0) {
        first++;
    }
    err_field(err, ERR_FORBIDDEN, "on_disconnect", NULL,
              "in project %s a user's job may not have on_disconnect %s", project, on_disconnect_text(rule));
    return err_hint(err, "submit it with --on-disconnect %s", on_disconnect_text((enum on_disconnect)first));
}

bool authorize_submit(const struct projects *projects, const struct identity *who,
                      const struct job_spec *spec, struct err *err)
{
    const char *project = job_spec_project(spec);
    const struct principal *principal = identity_principal(who);
    if (!authorize_sees_all(who) && !may_use(projects, project, principal)) {
        err_field(err, ERR_FORBIDDEN, "project", NULL, "there is no project %s that you may submit to",
                  project);
        if (principal->project != NULL) {
            return err_hint(err, "name the project of the service account: %s", principal->project);
        }
        return err_hint(err,
                        "leave project away, or have an administrator call `gpuctl quotas set project %s "
                        "--member %s=user`",
                        project, identity_owner(who));
    }
    return authorize_priority(projects, who, project, spec->priority, 0, err) &&
           may_disconnect(projects, who, project, spec->on_disconnect, err);
}

bool authorize_secrets(const struct projects *projects, const struct principal *who, const char *project)
{
    return role_of(projects, who, project) >= ROLE_USER;
}

/* --- experiments, runs and models ----------------------------------------------------------------------- */

/* Operators see and change what is others', but their names do not lead to it: an experiment of theirs may
 * have the same name. */
bool authorize_tracking(const struct projects *projects, const struct principal *who,
                        enum tracking_right right, const char *owner, const char *project)
{
    bool all = who->role >= ROLE_OPERATOR, own = owns(who, owner, project), open = *owner == '\0';
    if (!authorize_is_person(who->role) || (right >= TRACKING_ADDS && who->role < ROLE_USER)) {
        return false;
    }
    switch (right) {
    case TRACKING_FINDS:
        return own || open || role_of(projects, who, project) >= ROLE_VIEWER;
    case TRACKING_SEES:
        return all || own || open || role_of(projects, who, project) >= ROLE_VIEWER;
    case TRACKING_ADDS:
        return all || own || open || role_of(projects, who, project) >= ROLE_USER;
    case TRACKING_CHANGES:
        return all || own || role_of(projects, who, project) >= ROLE_OPERATOR;
    case TRACKING_USES:
        return all || may_use(projects, project, who);
    }
    return false;
}
