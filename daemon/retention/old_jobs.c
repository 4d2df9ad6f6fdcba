/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over jobs in the order of their submission, in short reads, and names those whose time has come. A
 * job that has not ended is never named. A task goes with its array. */
#include "daemon/retention/old_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/account_limits.h"

#define DAY_MS (24LL * 3600 * 1000)

struct project_ages {
    char *name; /* owned */
    struct retention_ages ages;
};

/* --- rules ---------------------------------------------------------------------------------------------- */

static void set_age(int64_t days, int64_t *age_ms)
{
    if (days >= 0) {
        *age_ms = days * DAY_MS;
    }
}

static void add_project(struct retention_rules *rules, const char *name, const struct account_limits *limits)
{
    if (limits->keep_jobs_days < 0 && limits->keep_logs_days < 0 && limits->keep_runs_days < 0) {
        return;
    }
    rules->projects = xrealloc(rules->projects, (rules->count + 1) * sizeof *rules->projects);
    struct project_ages *project = &rules->projects[rules->count++];
    *project = (struct project_ages){.name = xstrdup(name), .ages = rules->ages};
    set_age(limits->keep_jobs_days, &project->ages.jobs_ms);
    set_age(limits->keep_logs_days, &project->ages.logs_ms);
    set_age(limits->keep_runs_days, &project->ages.runs_ms);
}

bool retention_rules_read(struct reader *reader, const struct retention_ages *ages,
                          struct retention_rules *ret_rules, struct err *err)
{
    struct retention_rules rules = {.ages = *ages};
    autorows struct rows rows = reader_limits(reader, err);
    struct limits_row row;
    while (rows_limits(&rows, &row)) {
        struct account_limits limits;
        autojson json_t *json = json_parse(row.limits, strlen(row.limits), err);
        if (json == NULL || !account_limits_decode(json, row.kind, &limits, err)) {
            retention_rules_finish(&rules);
            return false;
        }
        if (row.kind == ACCOUNT_PROJECT) {
            add_project(&rules, row.name, &limits);
        }
        account_limits_finish(&limits);
    }
    *ret_rules = rules;
    return !rows.failed;
}

void retention_rules_finish(struct retention_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->projects[i].name);
    }
    free(rules->projects);
    *rules = (struct retention_rules){0};
}

const struct retention_ages *retention_rules_of(const struct retention_rules *rules, const char *project)
{
    for (size_t i = 0; project != NULL && i < rules->count; i++) {
        if (strcmp(rules->projects[i].name, project) == 0) {
            return &rules->projects[i].ages;
        }
    }
    return &rules->ages;
}

bool retention_rules_end_runs(const struct retention_rules *rules)
{
    bool end = rules->ages.runs_ms > 0;
    for (size_t i = 0; i < rules->count; i++) {
        end = end || rules->projects[i].ages.runs_ms > 0;
    }
    return end;
}

/* The youngest age at which anything of a job goes; 0: nothing ever does. */
static int64_t least_age(const struct retention_rules *rules)
{
    int64_t least_ms = 0;
    for (size_t i = 0; i <= rules->count; i++) {
        const struct retention_ages *ages = i < rules->count ? &rules->projects[i].ages : &rules->ages;
        const int64_t both[] = {ages->jobs_ms, ages->logs_ms};
        for (int j = 0; j < 2; j++) {
            least_ms = both[j] > 0 && (least_ms == 0 || both[j] < least_ms) ? both[j] : least_ms;
        }
    }
    return least_ms;
}

/* --- the walk ------------------------------------------------------------------------------------------- */

static bool is_past(int64_t ended_ms, int64_t age_ms, int64_t wall_ms)
{
    return age_ms > 0 && wall_ms - ended_ms >= age_ms;
}

static void judge(struct old_jobs *old, const struct job_record *job, const struct retention_rules *rules,
                  int64_t wall_ms)
{
    const struct retention_ages *ages = retention_rules_of(rules, job->birth.project);
    bool removed = is_past(job->life.ended_ms, ages->jobs_ms, wall_ms);
    if (!job_state_terminal(job->life.state) ||
        !(removed || is_past(job->life.ended_ms, ages->logs_ms, wall_ms))) {
        return;
    }
    struct old_job *item = &old->items[old->count++];
    *item = (struct old_job){.key = job->birth.key, .array = job->array.tasks > 0, .removed = removed};
    memcpy(item->id, job->birth.id, ID_LENGTH + 1);
}

bool old_jobs_next(struct old_jobs *old, struct reader *reader, const struct retention_rules *rules,
                   int64_t wall_ms, struct err *err)
{
    int64_t least_ms = least_age(rules);
    size_t seen = 0;
    old->count = 0;
    old->over = old->over || least_ms == 0;
    if (old->over) {
        return true;
    }
    autorows struct rows rows = reader_old_jobs(reader, old->after_key, RETENTION_STEP_JOBS, err);
    struct job_record job;
    while (rows_job(&rows, &job)) {
        if (wall_ms - job.birth.created_ms < least_ms) {
            old->over = true; /* it has not ended before it was submitted, and the rest came later */
            return true;
        }
        old->after_key = job.birth.key;
        judge(old, &job, rules, wall_ms);
        seen++;
    }
    old->over = seen < RETENTION_STEP_JOBS;
    return !rows.failed;
}
