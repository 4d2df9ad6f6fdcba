/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the field `after` of a job spec: the jobs that the job depends on, and the outcome that it needs
 * from each. No job is named twice. The controller checks whether a job exists and is visible to the
 * submitter. */
#include "proto/spec/jobspec_parts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/members.h"

static const char *reference_of(const struct job_dependency *dependency)
{
    return dependency->job != NULL ? dependency->job : dependency->name;
}

static bool is_named_before(const struct job_dependency *dependency, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(reference_of(&dependency[i]), reference_of(&dependency[count])) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_members(const json_t *item, size_t index, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)item, name, value) {
        if (strcmp(name, "job") != 0 && strcmp(name, "name") != 0 && strcmp(name, "when") != 0) {
            autofree char *path = xprintf("after[%zu].%.*s", index, LIMIT_NAME_BYTES, name);
            struct nearest nearest = nearest_to(name);
            nearest_try(&nearest, "job");
            nearest_try(&nearest, "name");
            nearest_try(&nearest, "when");
            return nearest_refuse(&nearest, path, err);
        }
    }
    return true;
}

#define CHOICE(name, spelling) " " spelling

static bool decode_when(const json_t *item, size_t index, struct job_dependency *dependency, struct err *err)
{
    const json_t *when = json_object_get(item, "when");
    const char *text = json_string_value(when);
    if (when == NULL || json_is_null(when) ||
        (text != NULL && dependency_from_text(text, &dependency->when))) {
        return true;
    }
    autofree char *field = xprintf("after[%zu].when", index);
    return err_field(err, ERR_FIELD, field, NULL, "%s must be one of:" DEPENDENCIES(CHOICE), field);
}

static bool decode_name(const json_t *name, size_t index, struct job_dependency *dependency, struct err *err)
{
    autofree char *field = xprintf("after[%zu].name", index);
    dependency->name = json_string_value(name);
    return (dependency->name != NULL && text_is_name(dependency->name, LIMIT_NAME_BYTES)) ||
           err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows them", "%s must be the name of a job",
                     field);
}

static bool decode_item(const json_t *item, size_t index, struct job_dependency *dependency, struct err *err)
{
    *dependency = (struct job_dependency){.when = DEPENDENCY_AFTEROK};
    bool object = json_is_object(item);
    const json_t *name = json_object_get(item, "name");
    if (name != NULL && !json_is_null(name) && json_object_get(item, "job") == NULL) {
        return decode_name(name, index, dependency, err) && check_members(item, index, err) &&
               decode_when(item, index, dependency, err);
    }
    if (name != NULL && !json_is_null(name)) {
        autofree char *field = xprintf("after[%zu].name", index);
        return err_field(err, ERR_FIELD, field, "leave one of the two out",
                         "%s does not go with the id of a job", field);
    }
    dependency->job = json_string_value(object ? json_object_get(item, "job") : item);
    if (dependency->job == NULL || !text_is_id(dependency->job)) {
        autofree char *field = xprintf(object ? "after[%zu].job" : "after[%zu]", index);
        return err_field(err, ERR_FIELD, field, "`gpuctl ps --all` shows them",
                         "%s must be the whole id of a job: %d characters", field, ID_LENGTH);
    }
    return !object || (check_members(item, index, err) && decode_when(item, index, dependency, err));
}

bool jobspec_decode_dependencies(const json_t *json, struct job_dependency **ret_dependencies,
                                 size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > LIMIT_DEPENDENCIES) {
        return err_field(err, ERR_FIELD, "after",
                         "write [\"ID\"], or [{\"job\": \"ID\", \"when\": \"afterany\"}]",
                         "after must be an array of at most %d jobs", LIMIT_DEPENDENCIES);
    }
    *ret_dependencies = xzalloc(count * sizeof **ret_dependencies);
    for (size_t i = 0; i < count; i++) {
        struct job_dependency *dependency = &(*ret_dependencies)[i];
        if (!decode_item(json_array_get(json, i), i, dependency, err)) {
            return false;
        }
        if (is_named_before(*ret_dependencies, i)) {
            autofree char *field = xprintf("after[%zu]", i);
            return err_field(err, ERR_FIELD, field, "name each job once", "%s names job %s again", field,
                             reference_of(dependency));
        }
    }
    *ret_count = count;
    return true;
}

json_t *jobspec_encode_dependencies(const struct job_dependency *dependency, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();
        member_put_text(item, "job", dependency[i].job);
        member_put_text(item, "name", dependency[i].name);
        member_put_text(item, "when", dependency_text(dependency[i].when));
        json_array_append_new(list, item);
    }
    return list;
}
