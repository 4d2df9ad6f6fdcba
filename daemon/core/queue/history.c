/* SPDX-License-Identifier: Apache-2.0 */
/* Learns run times and estimates them for every job. Many runs of a job's pattern give the estimate; with few
 * runs, the next larger family counts, too. Older runs count less as more follow. Jobs with a time limit
 * teach which part of their limit they use, other jobs how long they run. queue.c and availability.c use the
 * estimates. */
#include "daemon/core/queue/history.h"

#include <string.h>

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/spec/jobspec.h"

#define FIRST_GUESS_MS  3600000 /* for a cluster's first job without a limit */
#define FAMILY_RUNS     2       /* the next larger family weighs as much as this many runs */
#define REMEMBERED_RUNS 64      /* at this number both sums are halved */
#define WORST_ERROR     10000   /* percent: larger errors of one estimate count as this */

/* Sums over runs. The sums of a family include all its patterns. */
struct sums {
    int64_t count, ran_ms, limit_ms, error_percent;
};

/* A pattern of jobs, or a family of patterns. */
struct pattern {
    char *key;              /* owned */
    struct pattern *family; /* the next larger family; NULL: none */
    struct sums sums;
    bool limited;
    char *project, *owner, *name; /* owned; NULL for a family */
    int64_t gpus;
    size_t users; /* live jobs, or patterns of the family */
    UT_hash_handle hh;
};

/* --- patterns ------------------------------------------------------------------------------------------- */

static struct pattern *family_need(struct core *core, const char *key, struct pattern *larger, bool limited)
{
    struct pattern *pattern;
    HASH_FIND_STR(core->patterns, key, pattern);
    if (pattern == NULL) {
        pattern = xzalloc(sizeof *pattern);
        pattern->key = xstrdup(key);
        pattern->family = larger;
        pattern->limited = limited;
        if (larger != NULL) {
            larger->users++;
        }
        HASH_ADD_KEYPTR(hh, core->patterns, pattern->key, strlen(pattern->key), pattern);
    }
    return pattern;
}

static void append_part(struct text *key, const char *part)
{
    text_append(key, "\t");
    text_append(key, part);
}

/* The family of all jobs, of all with that size, or of the owner's with that size. Names contain no tabs. */
static struct pattern *family_of(struct core *core, const char *project, const char *owner, int64_t gpus,
                                 bool limited)
{
    autotext struct text key = {0};
    text_append_int(&key, limited);
    struct pattern *all = family_need(core, key.bytes, NULL, limited);
    text_append(&key, "\t");
    text_append_int(&key, gpus);
    struct pattern *size = family_need(core, key.bytes, all, limited);
    append_part(&key, project);
    append_part(&key, owner);
    return family_need(core, key.bytes, size, limited);
}

static struct pattern *kind_need(struct core *core, struct pattern *family, const char *project,
                                 const char *owner, const char *name, int64_t gpus)
{
    autotext struct text key = {0};
    text_append(&key, family->key);
    append_part(&key, name);
    struct pattern *kind;
    HASH_FIND_STR(core->patterns, key.bytes, kind);
    if (kind == NULL && HASH_COUNT(core->patterns) < LIMIT_PATTERNS) {
        kind = family_need(core, key.bytes, family, family->limited);
        kind->project = xstrdup(project);
        kind->owner = xstrdup(owner);
        kind->name = xstrdup(name);
        kind->gpus = gpus;
    }
    return kind != NULL ? kind : family;
}

static void pattern_free(struct core *core, struct pattern *pattern)
{
    HASH_DEL(core->patterns, pattern);
    free(pattern->key);
    free(pattern->project);
    free(pattern->owner);
    free(pattern->name);
    free(pattern);
}

/* "train-17" and "train-18" are runs of the same job. */
static char *stem_of(const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;
    while (length > 0 && strchr("0123456789._-", name[length - 1]) != NULL) {
        length--;
    }
    return xstrndup(name != NULL ? name : "", length);
}

struct pattern *history_join(struct core *core, const struct job_spec *spec, const char *owner, bool limited)
{
    autofree char *name = stem_of(spec->name);
    const char *project = job_spec_project(spec);
    struct pattern *family = family_of(core, project, owner, spec->gpus, limited);
    struct pattern *pattern = kind_need(core, family, project, owner, name, spec->gpus);
    pattern->users++;
    return pattern;
}

struct pattern *history_share(struct pattern *pattern)
{
    pattern->users++;
    return pattern;
}

struct pattern *history_vary(struct core *core, struct pattern *pattern, int64_t gpus, bool limited)
{
    struct pattern *other = pattern;
    if (pattern->project != NULL) {
        struct pattern *family = family_of(core, pattern->project, pattern->owner, gpus, limited);
        other = kind_need(core, family, pattern->project, pattern->owner, pattern->name, gpus);
    }
    other->users++;
    return other;
}

/* A pattern without learned runs is forgotten with its last job. */
void history_leave(struct core *core, struct pattern *pattern)
{
    while (pattern != NULL && --pattern->users == 0 && pattern->sums.count == 0) {
        struct pattern *family = pattern->family;
        pattern_free(core, pattern);
        pattern = family;
    }
}

void history_clear(struct core *core)
{
    struct pattern *pattern, *next;
    HASH_ITER (hh, core->patterns, pattern, next) {
        pattern_free(core, pattern);
    }
}

/* --- estimates ------------------------------------------------------------------------------------------ */

/* The part of its limit that such a job uses; without a limit, its run time in ms. basis is the weight of one
 * more run: its limit, or 1. */
static double rate_of(const struct pattern *pattern, double basis)
{
    double family = pattern->family != NULL ? rate_of(pattern->family, basis)
                    : pattern->limited      ? 1
                                            : FIRST_GUESS_MS;
    double known = pattern->limited ? (double)pattern->sums.limit_ms : (double)pattern->sums.count;
    return ((double)pattern->sums.ran_ms + FAMILY_RUNS * basis * family) / (known + FAMILY_RUNS * basis);
}

int64_t history_estimate_ms(const struct core *core, const struct pattern *pattern, int64_t limit_ms)
{
    double basis = pattern->limited && limit_ms > 0 ? (double)limit_ms : 1;
    double estimate_ms = pattern->limited && limit_ms == 0 ? FIRST_GUESS_MS : rate_of(pattern, basis) * basis;
    if (limit_ms > 0 && estimate_ms > (double)limit_ms) {
        return limit_ms;
    }
    return estimate_ms < 1 ? 1 : estimate_ms > (double)LIMIT_TIME_MS ? LIMIT_TIME_MS : (int64_t)estimate_ms;
}

struct history_trust history_trust(const struct pattern *pattern)
{
    const struct sums *sums = &pattern->sums;
    return (struct history_trust){.runs = sums->count,
                                  .error_percent = sums->count > 0 ? sums->error_percent / sums->count : 0};
}

/* --- learning ------------------------------------------------------------------------------------------- */

static void add(struct pattern *pattern, const struct sums *sums)
{
    for (struct pattern *at = pattern; at != NULL; at = at->family) {
        at->sums.count += sums->count;
        at->sums.ran_ms += sums->ran_ms;
        at->sums.limit_ms += sums->limit_ms;
        at->sums.error_percent += sums->error_percent;
        assert(at->sums.count >= 0 && at->sums.ran_ms >= 0);
    }
}

static void fade(struct pattern *pattern)
{
    const struct sums *sums = &pattern->sums;
    add(pattern, &(struct sums){.count = -(sums->count / 2),
                                .ran_ms = -(sums->ran_ms / 2),
                                .limit_ms = -(sums->limit_ms / 2),
                                .error_percent = -(sums->error_percent / 2)});
}

static int64_t error_of(int64_t estimate_ms, int64_t ran_ms)
{
    int64_t larger = estimate_ms > ran_ms ? estimate_ms : ran_ms;
    int64_t smaller = estimate_ms > ran_ms ? ran_ms : estimate_ms;
    int64_t percent = (larger - smaller) / (smaller / 100 + 1);
    return percent < WORST_ERROR ? percent : WORST_ERROR;
}

static void record(struct core *core, const struct pattern *pattern)
{
    record_history(core, &(struct history_row){.project = pattern->project,
                                               .owner = pattern->owner,
                                               .name = pattern->name,
                                               .gpus = pattern->gpus,
                                               .limited = pattern->limited,
                                               .count = pattern->sums.count,
                                               .ran_ms = pattern->sums.ran_ms,
                                               .limit_ms = pattern->sums.limit_ms,
                                               .error_percent = pattern->sums.error_percent});
}

void history_learn(struct core *core, const struct attempt *attempt)
{
    const struct job *job = attempt->job;
    struct pattern *pattern = job->pattern;
    bool limited = job->time_limit_ms > 0;
    assert(attempt->started_ms != 0);
    if (pattern->project == NULL || pattern->limited != limited) {
        return; /* no room for one more pattern, or its limit was set or removed later */
    }
    int64_t ran_ms = job->ran_ms > 0 ? job->ran_ms : 1;
    const struct sums sums = {.count = 1,
                              .ran_ms = ran_ms,
                              .limit_ms = job->time_limit_ms,
                              .error_percent = error_of(attempt->estimate_ms, ran_ms)};
    add(pattern, &sums);
    if (pattern->sums.count >= REMEMBERED_RUNS) {
        fade(pattern);
    }
    record(core, pattern);
}

void history_load(struct core *core, const struct history_row *row)
{
    assert(!core->booted);
    struct pattern *family = family_of(core, row->project, row->owner, row->gpus, row->limited);
    struct pattern *pattern = kind_need(core, family, row->project, row->owner, row->name, row->gpus);
    add(pattern, &(struct sums){.count = row->count,
                                .ran_ms = row->ran_ms,
                                .limit_ms = row->limit_ms,
                                .error_percent = row->error_percent});
}
