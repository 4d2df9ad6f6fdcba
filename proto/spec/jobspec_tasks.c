/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes arrays and sweeps in a job spec: the number of tasks, which of them, and the names and values of a
 * sweep. The words of every task stay within the limits of a job's words. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

/* --- array --- */

bool jobspec_decode_array(const json_t *json, struct job_spec *spec, struct err *err)
{
    static const char *const known[] = {"tasks", "parallel", "only"};
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "array", "{\"tasks\": 100, \"parallel\": 8} for instance",
                         "array must be an object with the number of tasks");
    }
    const char *name;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
        if (strcmp(name, known[0]) != 0 && strcmp(name, known[1]) != 0 && strcmp(name, known[2]) != 0) {
            autofree char *path = xprintf("array.%.*s", LIMIT_NAME_BYTES, name);
            struct nearest nearest = nearest_to(name);
            nearest_try(&nearest, known[0]);
            nearest_try(&nearest, known[1]);
            nearest_try(&nearest, known[2]);
            return nearest_refuse(&nearest, path, err);
        }
    }
    const char *field = "array.tasks";
    if (json_read_int(json, "tasks", 1, LIMIT_ARRAY_TASKS, &spec->tasks, err)) {
        field = "array.parallel";
        if (json_read_int(json, "parallel", 1, LIMIT_ARRAY_TASKS, &spec->parallel, err)) {
            return true;
        }
    }
    struct err inner = *err;
    return err_field(err, inner.code, field, inner.hint, "array.%s", inner.text);
}

/* --- sweep --- */

static bool refuse_axis(const char *name, const char *hint, const char *what, struct err *err)
{
    autofree char *field = xprintf("sweep.%.*s", LIMIT_NAME_BYTES, name);
    return err_field(err, ERR_FIELD, field, hint, "%s %s", field, what);
}

static bool is_axis_name(const char *name)
{
    size_t length = strlen(name);
    bool digit_first = name[0] >= '0' && name[0] <= '9';
    return length > 0 && length <= LIMIT_NAME_BYTES && !digit_first &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == length;
}

/* Two names that differ only in case would be the same variable. */
static const char *same_variable(const json_t *sweep, const char *name)
{
    const char *other;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)sweep, other, value) {
        if (other != name && strcasecmp(other, name) == 0) {
            return other;
        }
    }
    return NULL;
}

static bool check_value(const char *name, const json_t *value, struct err *err)
{
    if (!json_is_string(value) && !json_is_number(value)) {
        return refuse_axis(name, "[0.1, 0.01] for instance", "must be a list of strings and numbers", err);
    }
    return json_string_length(value) <= LIMIT_SWEEP_VALUE_BYTES ||
           refuse_axis(name, "put what is long into files, and sweep over their names",
                       "has a value of more than 1 KiB", err);
}

static bool check_axis(const json_t *sweep, const char *name, const json_t *list, struct err *err)
{
    if (!is_axis_name(name) || strcasecmp(name, "task") == 0) {
        return refuse_axis(name, "letters, digits and '_', no digit first; \"task\" is taken",
                           "is no name that can stand in braces", err);
    }
    if (same_variable(sweep, name) != NULL) {
        return refuse_axis(name, "rename one", "differs from another name in case alone", err);
    }
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return refuse_axis(name, "[0.1, 0.01] for instance", "must be a list of strings and numbers", err);
    }
    size_t index;
    const json_t *value;
    json_array_foreach (list, index, value) {
        if (!check_value(name, value, err)) {
            return false;
        }
    }
    return true;
}

bool jobspec_decode_sweep(const json_t *json, struct job_spec *spec, struct err *err)
{
    const char *name;
    const json_t *list;
    if (!json_is_object(json) || json_object_size(json) == 0) {
        return err_field(err, ERR_FIELD, "sweep", "{\"lr\": [0.1, 0.01], \"batch\": [32, 64]} for instance",
                         "sweep must be an object of lists");
    }
    if (json_object_size(json) > LIMIT_SWEEP_NAMES) {
        return err_field(err, ERR_FIELD, "sweep", NULL, "sweep must have at most %d names",
                         LIMIT_SWEEP_NAMES);
    }
    json_object_foreach ((json_t *)(uintptr_t)json, name, list) {
        if (!check_axis(json, name, list, err)) {
            return false;
        }
    }
    spec->sweep = json;
    return task_values_count(json) <= LIMIT_ARRAY_TASKS ||
           err_field(err, ERR_FIELD, "sweep", "give fewer values, or submit it in parts",
                     "the sweep makes more than %d tasks", LIMIT_ARRAY_TASKS);
}

/* --- both --- */

/* The greatest length of a text after placeholders are filled in. */
static size_t longest_fill(const struct task_values *values, const json_t *string)
{
    autotext struct text text = {0};
    task_values_fill(values, json_is_string(string) ? json_string_value(string) : "", &text);
    return text.length;
}

/* A placeholder may be shorter than its value, so a single text could grow without bound. */
static bool check_growth(const struct job_spec *spec, struct err *err)
{
    struct task_values values;
    size_t command = 0, env = 0, index;
    const char *name;
    const json_t *item;
    task_values_make(spec->sweep, spec->tasks, TASK_NONE, &values);
    json_array_foreach (spec->command, index, item) {
        command += command <= LIMIT_COMMAND_BYTES ? longest_fill(&values, item) + 1 : 0;
    }
    json_object_foreach ((json_t *)(uintptr_t)spec->env, name, item) {
        env += env <= LIMIT_ENV_BYTES ? strlen(name) + longest_fill(&values, item) + 2 : 0;
    }
    task_values_finish(&values);
    if (command > LIMIT_COMMAND_BYTES) {
        return err_field(err, ERR_FIELD, "command", "use fewer placeholders, or shorter values",
                         "with the longest values of its tasks, command is over %lld bytes",
                         LIMIT_COMMAND_BYTES);
    }
    return env <= LIMIT_ENV_BYTES ||
           err_field(err, ERR_FIELD, "env", "use fewer placeholders, or shorter values",
                     "with the longest values of its tasks, env is over %lld bytes", LIMIT_ENV_BYTES);
}

/* The number of tasks is known by now. */
static bool read_only(struct job_spec *spec, struct err *err)
{
    const json_t *only = json_object_get(json_object_get(spec->json, "array"), "only");
    if (only == NULL || json_is_null(only)) {
        return true;
    }
    spec->only = json_is_string(only) ? task_list_read(json_string_value(only), spec->tasks) : NULL;
    autofree char *hint = xprintf("\"3,7,10-20\" for instance: at most %d parts, each number once and in its "
                                  "order, from 0 to %lld",
                                  LIMIT_TASK_RANGES, (long long)spec->tasks - 1);
    return spec->only != NULL ||
           err_field(err, ERR_FIELD, "array.only", hint, "array.only must be a list of tasks");
}

bool jobspec_check_tasks(struct job_spec *spec, struct err *err)
{
    if (spec->sweep != NULL) {
        int64_t choices = task_values_count(spec->sweep);
        if (spec->tasks != 0 && spec->tasks != choices) {
            return err_field(err, ERR_FIELD, "array.tasks", "leave it out",
                             "the sweep makes %lld tasks, and array.tasks says %lld", (long long)choices,
                             (long long)spec->tasks);
        }
        spec->tasks = choices;
    } else if (spec->tasks == 0 && json_is_object(json_object_get(spec->json, "array"))) {
        return err_field(err, ERR_FIELD, "array.tasks", "give the number of tasks, or a sweep",
                         "array.tasks is missing");
    }
    return spec->tasks == 0 || (read_only(spec, err) && check_growth(spec, err));
}

json_t *jobspec_encode_array(const struct job_spec *spec)
{
    json_t *array = json_object();
    if (spec->sweep == NULL) {
        json_object_set_new(array, "tasks", json_integer(spec->tasks));
    }
    if (spec->parallel != 0) {
        json_object_set_new(array, "parallel", json_integer(spec->parallel));
    }
    if (spec->only != NULL) {
        json_object_set(array, "only", json_object_get(json_object_get(spec->json, "array"), "only"));
    }
    return array;
}
