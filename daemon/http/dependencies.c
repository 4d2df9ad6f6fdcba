/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the ids of jobs that are to be followed to the jobs, and the sentence that says why one
 * which is kept back waits. It promises that nobody learns of a job of somebody else. What becomes of a job
 * between the look and the submission is the core's to know. */
#include "daemon/http/dependencies.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define NAMED 3 /* jobs that a sentence has room for */

/* --- finding -------------------------------------------------------------------------------------------- */

struct finding {
    const struct request *request;
    struct core_dependency *on;
    bool seen;
};

static void take_job(const struct job_record *job, void *closure)
{
    struct finding *finding = closure;
    finding->seen = request_may_see(finding->request, job->birth.owner);
    finding->on->key = job->birth.key;
    finding->on->state = job->life.state;
}

static bool find_one(const struct request *request, const struct job_dependency *dependency, size_t index,
                     struct core_dependency *on, struct err *err)
{
    struct finding finding = {.request = request, .on = on};
    bool found;
    *on = (struct core_dependency){.id = dependency->job, .kind = dependency->when};
    if (!reader_job(request->server->reader, dependency->job, take_job, &finding, &found, err)) {
        return false;
    }
    char field[32];
    snprintf(field, sizeof field, "after[%zu]", index);
    return finding.seen || err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows the jobs that there are",
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

static void say_holder(const struct event_row *event, void *closure)
{
    struct err ignored;
    const char *text = event->detail != NULL ? event->detail : "{}";
    autojson json_t *detail = json_parse(text, strlen(text), &ignored);
    const char *by = json_string_value(json_object_get(detail, "by"));
    text_printf(closure, "held by %s", by != NULL ? by : "somebody");
}

struct waits {
    struct text *out;
    size_t count;
};

static const char *const deeds[] = {
    [DEPENDENCY_AFTER] = "start", [DEPENDENCY_AFTEROK] = "succeed", [DEPENDENCY_AFTERANY] = "end"};

static bool say_other(const struct dependency_record *other, void *closure)
{
    struct waits *waits = closure;
    bool met = job_state_terminal(other->state) || (other->row.kind == DEPENDENCY_AFTER && other->started);
    if (!met && waits->count++ < NAMED) {
        text_printf(waits->out, "%s job %s to %s (%s)", waits->count > 1 ? "," : "waits for", other->id,
                    deeds[other->row.kind], job_state_text(other->state));
    }
    return true;
}

bool after_say_why(struct reader *reader, int64_t job_key, enum job_state state, struct text *out,
                   struct err *err)
{
    struct waits waits = {.out = out};
    if (state == JOB_HELD) {
        return reader_newest_event(reader, job_key, EVENT_HELD, say_holder, out, err);
    }
    if (!reader_dependencies(reader, job_key, say_other, &waits, err)) {
        return false;
    }
    if (waits.count > NAMED) {
        text_printf(out, " and %zu more", waits.count - NAMED);
    }
    return true;
}
