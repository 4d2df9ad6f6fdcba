/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the jobs that a submission names as dependencies, and says why a job that is held or blocked
 * waits. Nobody learns of a job of somebody else. The core handles jobs that change between the look and
 * the submission. */
#include "daemon/http/api/dependencies.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define NAMED 3 /* jobs that a sentence has room for */

/* --- finding -------------------------------------------------------------------------------------------- */

static bool find_one(const struct request *request, const struct job_dependency *dependency, size_t index,
                     struct core_dependency *on, struct err *err)
{
    autorows struct rows rows = reader_job(request->server->reader, dependency->job, err);
    struct job_record job;
    char field[32];
    if (rows_job(&rows, &job) && request_may_see(request, job.birth.owner, job.birth.project)) {
        *on = (struct core_dependency){
            .id = dependency->job, .kind = dependency->when, .key = job.birth.key, .state = job.life.state};
        return true;
    }
    snprintf(field, sizeof field, "after[%zu]", index);
    return !rows.failed && err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows the jobs that there are",
                                     "%s: there is no job %s", field, dependency->job);
}

bool dependencies_read(const struct request *request, const struct job_spec *spec,
                       struct core_dependency **ret_dependencies, struct err *err)
{
    *ret_dependencies = NULL;
    if (spec->dependency_count == 0) {
        return true;
    }
    autofree struct core_dependency *dependency = xzalloc(spec->dependency_count * sizeof *dependency);
    for (size_t i = 0; i < spec->dependency_count; i++) {
        if (!find_one(request, &spec->dependencies[i], i, &dependency[i], err)) {
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
