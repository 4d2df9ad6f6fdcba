/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the jobs that a submission names as dependencies, and says why a job that is held or blocked
 * waits. Nobody learns of a job of somebody else. The core handles jobs that change between the look and
 * the submission. */
#include "daemon/http/api/dependencies.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define NAMED 3 /* jobs that a sentence has room for */

/* --- finding -------------------------------------------------------------------------------------------- */

/* A dependency with the id of its job, which the core borrows. */
struct found {
    struct core_dependency on;
    char id[ID_LENGTH + 1];
};

static void take(struct found *found, const struct job_record *job)
{
    memcpy(found->id, job->birth.id, sizeof found->id);
    found->on.key = job->birth.key;
    found->on.state = job->life.state;
}

static bool find_by_id(const struct submitter *submitter, const char *id, const char *field,
                       struct found *found, struct err *err)
{
    autorows struct rows rows = reader_job(submitter->server->reader, id, err);
    struct job_record job;
    if (rows_job(&rows, &job) &&
        authorize_see(submitter->server->projects, submitter->who, job.birth.owner, job.birth.project)) {
        take(found, &job);
        return true;
    }
    return !rows.failed && err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows the jobs that there are",
                                     "%s: there is no job %s", field, id);
}

/* The jobs of a name that have not ended, as far as a sentence has room for them. */
struct namesakes {
    struct text ids;
    size_t live, ended;
};

/* Of those that live the newest is found; where none lives, of those that have ended. */
static void meet(struct namesakes *namesakes, const struct job_record *job, struct found *found)
{
    bool ended = job_state_terminal(job->life.state);
    if (namesakes->live == 0 && (!ended || namesakes->ended == 0)) {
        take(found, job);
    }
    if (!ended && namesakes->live < NAMED) {
        text_printf(&namesakes->ids, "%s%s", namesakes->live > 0 ? ", " : "", job->birth.id);
    }
    namesakes->live += !ended;
    namesakes->ended += ended;
}

/* Looks through the newest jobs of the sender, LIMIT_NAMED_PARTS times as many as one page of a list does. */
static bool look_up(const struct submitter *submitter, const char *name, struct namesakes *namesakes,
                    struct found *found, struct err *err)
{
    struct reader *reader = submitter->server->reader;
    struct job_filter filter = {
        .owner = identity_owner(submitter->who), .name = name, .limit = LIMIT_SCAN_ROWS};
    bool over = false;
    for (int part = 0; part < LIMIT_NAMED_PARTS && !over; part++) {
        filter.behind_key = 0;
        if (!reader_jobs_bound(reader, &filter, &over, err)) {
            return false;
        }
        autorows struct rows rows = reader_jobs(reader, &filter, err);
        struct job_record job;
        while (rows_job(&rows, &job)) {
            meet(namesakes, &job, found);
        }
        if (rows.failed) {
            return false;
        }
        filter.before_key = filter.behind_key + 1;
    }
    return true;
}

static bool find_by_name(const struct submitter *submitter, const char *name, const char *field,
                         struct found *found, struct err *err)
{
    struct namesakes namesakes = {0};
    bool looked = look_up(submitter, name, &namesakes, found, err);
    autotext struct text ids = namesakes.ids;
    if (looked && namesakes.live > 1) {
        return err_field(err, ERR_FIELD, field, "name the id of one",
                         "%s: %zu jobs of yours are called %s: %s%s", field, namesakes.live, name, ids.bytes,
                         namesakes.live > NAMED ? ", ..." : "");
    }
    return looked && (namesakes.live + namesakes.ended > 0 ||
                      err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows the jobs that there are",
                                "%s: none of your newest jobs is called %s", field, name));
}

static bool find_one(const struct submitter *submitter, const struct job_dependency *dependency, size_t index,
                     struct found *found, struct err *err)
{
    char field[32];
    snprintf(field, sizeof field, "after[%zu]", index);
    found->on.kind = dependency->when;
    return dependency->job != NULL ? find_by_id(submitter, dependency->job, field, found, err)
                                   : find_by_name(submitter, dependency->name, field, found, err);
}

/* A name may stand for a job whose id is there, too. */
static bool refuse_twice(const struct core_dependency *dependency, size_t index, struct err *err)
{
    char field[32];
    snprintf(field, sizeof field, "after[%zu]", index);
    for (size_t i = 0; i < index; i++) {
        if (dependency[i].key == dependency[index].key) {
            return err_field(err, ERR_FIELD, field, "name each job once", "%s names job %s again", field,
                             dependency[index].id);
        }
    }
    return true;
}

bool dependencies_read(const struct submitter *submitter, const struct job_spec *spec,
                       struct core_dependency **ret_dependencies, struct err *err)
{
    *ret_dependencies = NULL;
    if (spec->dependency_count == 0) {
        return true;
    }
    const size_t count = spec->dependency_count;
    /* one block, which the submission frees: the dependencies, then their ids */
    autofree struct core_dependency *dependency = xzalloc(count * (sizeof *dependency + ID_LENGTH + 1));
    char *id = (char *)(dependency + count);
    for (size_t i = 0; i < count; i++, id += ID_LENGTH + 1) {
        struct found found = {0};
        if (!find_one(submitter, &spec->dependencies[i], i, &found, err)) {
            return false;
        }
        memcpy(id, found.id, sizeof found.id);
        dependency[i] = found.on;
        dependency[i].id = id;
        if (!refuse_twice(dependency, i, err)) {
            return false;
        }
    }
    *ret_dependencies = give(dependency);
    return true;
}

/* --- why it waits --------------------------------------------------------------------------------------- */

static bool say_holder(struct reader *reader, int64_t job_key, struct text *out, struct err *err)
{
    autorows struct rows rows = reader_newest_event(reader, job_key, EVENT_HELD, err);
    struct event_row event;
    if (rows_event(&rows, &event)) {
        const char *text = event.detail != NULL ? event.detail : "{}";
        autojson json_t *detail = json_parse(text, strlen(text), NULL);
        const char *by = json_string_value(json_object_get(detail, "by"));
        text_printf(out, "held by %s", by != NULL ? by : "somebody");
    }
    return !rows.failed;
}

static const char *const deeds[] = {
    [DEPENDENCY_AFTER] = "start", [DEPENDENCY_AFTEROK] = "succeed", [DEPENDENCY_AFTERANY] = "end"};

static bool is_met(const struct dependency_record *other)
{
    return job_state_terminal(other->state) || (other->row.kind == DEPENDENCY_AFTER && other->started);
}

bool after_say_why(struct reader *reader, int64_t job_key, enum job_state state, struct text *out,
                   struct err *err)
{
    if (state == JOB_HELD) {
        return say_holder(reader, job_key, out, err);
    }
    autorows struct rows rows = reader_dependencies(reader, job_key, err);
    struct dependency_record other;
    size_t count = 0;
    while (rows_dependency_with_job(&rows, &other)) {
        if (!is_met(&other) && count++ < NAMED) {
            text_printf(out, "%s job %s to %s (%s)", count > 1 ? "," : "waits for", other.id,
                        deeds[other.row.kind], job_state_text(other.state));
        }
    }
    if (count > NAMED && !rows.failed) {
        text_printf(out, " and %zu more", count - NAMED);
    }
    return !rows.failed;
}
