/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the limits of each project that was set up, by its name. The store's rows are the truth: after each
 * change all are read again. There are few, and changes are rare. */
#include "daemon/http/auth/projects.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/identity/groups.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"

struct project {
    char *name;
    struct account_limits limits;
    UT_hash_handle hh;
};

struct projects {
    struct project *by_name;
    size_t held;
};

struct projects *projects_create(void)
{
    struct projects *projects = xzalloc(sizeof *projects);
    projects->held = 1;
    return projects;
}

struct projects *projects_hold(struct projects *projects)
{
    projects->held++;
    return projects;
}

void projects_release(struct projects *projects)
{
    if (projects == NULL || --projects->held > 0) {
        return;
    }
    struct project *project, *next;
    HASH_ITER (hh, projects->by_name, project, next) {
        HASH_DEL(projects->by_name, project);
        account_limits_finish(&project->limits);
        free(project->name);
        free(project);
    }
    free(projects);
}

static struct project *find(const struct projects *projects, const char *name)
{
    struct project *project;
    HASH_FIND_STR(projects->by_name, name, project);
    return project;
}

void projects_put(struct projects *projects, const char *name, const struct account_limits *limits)
{
    struct project *project = find(projects, name);
    if (project == NULL) {
        project = xzalloc(sizeof *project);
        project->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, projects->by_name, project->name, strlen(project->name), project);
    } else {
        account_limits_finish(&project->limits);
    }
    account_limits_copy(limits, &project->limits);
}

static bool put_row(struct projects *projects, const struct limits_row *row, struct err *err)
{
    struct account_limits limits;
    autojson json_t *json = json_parse(row->limits, strlen(row->limits), err);
    if (json == NULL || !account_limits_decode(json, row->kind, &limits, err)) {
        return false;
    }
    projects_put(projects, row->name, &limits);
    account_limits_finish(&limits);
    return true;
}

struct projects *projects_load(struct reader *reader, struct err *err)
{
    struct projects *projects = projects_create();
    autorows struct rows rows = reader_limits(reader, err);
    struct limits_row row;
    bool ok = true;
    while (ok && rows_limits(&rows, &row)) {
        ok = row.kind != ACCOUNT_PROJECT || put_row(projects, &row, err);
    }
    if (!ok || rows.failed) {
        projects_release(projects);
        return NULL;
    }
    return projects;
}

const struct account_limits *projects_find(const struct projects *projects, const char *name)
{
    const struct project *project = find(projects, name);
    return project != NULL ? &project->limits : NULL;
}

static int compare(const void *name, const void *member)
{
    return strcmp(name, ((const struct project_member *)member)->name);
}

static enum role role_of_name(const struct account_limits *project, const char *name)
{
    const struct project_member *member =
        project->member_count > 0
            ? bsearch(name, project->members, project->member_count, sizeof *project->members, compare)
            : NULL;
    return member != NULL ? member->role : ROLE_NONE;
}

/* Where the groups begin among the members, which are in order. */
static size_t first_group(const struct account_limits *project)
{
    size_t low = 0, high = project->member_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(project->members[middle].name, MEMBER_GROUP) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_group(const struct project_member *member)
{
    return strncmp(member->name, MEMBER_GROUP, strlen(MEMBER_GROUP)) == 0;
}

bool projects_have_groups(const struct account_limits *project)
{
    size_t first = first_group(project);
    return first < project->member_count && is_group(&project->members[first]);
}

enum role projects_role(const struct account_limits *project, const char *name, const char *groups)
{
    enum role role = role_of_name(project, name);
    if (groups == NULL) {
        return role;
    }
    for (size_t i = first_group(project); i < project->member_count && is_group(&project->members[i]); i++) {
        const struct project_member *member = &project->members[i];
        if (member->role > role && groups_have(groups, member->name + strlen(MEMBER_GROUP))) {
            role = member->role;
        }
    }
    return role;
}
