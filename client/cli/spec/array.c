/* SPDX-License-Identifier: Apache-2.0 */
/* Reads arrays and sweeps from the command line, and puts their progress into words. It promises that values
 * reach the ranks as they were written: all travel as text. The controller limits their number. */
#include "client/cli/spec/array.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

/* --- --array --- */

static bool refuse_count(const char *count, struct err *err)
{
    return err_field(err, ERR_USAGE, "array", "write --array 100, or --array 100%8 for 8 at a time",
                     "--array \"%s\" is no number of tasks from 1 to %d", count, LIMIT_ARRAY_TASKS);
}

static bool put_count(const char *count, bool sweeps, json_t *spec, struct err *err)
{
    int64_t tasks = 0, parallel = 0;
    size_t length = strcspn(count, "%");
    autofree char *first = xstrndup(count, length);
    if (length > 0 && !text_to_int(first, 1, LIMIT_ARRAY_TASKS, &tasks)) {
        return refuse_count(count, err);
    }
    if (count[length] == '%' && !text_to_int(count + length + 1, 1, LIMIT_ARRAY_TASKS, &parallel)) {
        return refuse_count(count, err);
    }
    if (length == 0 && (parallel == 0 || !sweeps)) {
        return refuse_count(count, err);
    }
    json_t *array = json_object();
    if (tasks > 0) {
        json_object_set_new(array, "tasks", json_integer(tasks));
    }
    if (parallel > 0) {
        json_object_set_new(array, "parallel", json_integer(parallel));
    }
    json_object_set_new(spec, "array", array);
    return true;
}

/* --- --sweep --- */

static bool refuse_sweep(const char *item, const char *what, struct err *err)
{
    return err_field(err, ERR_USAGE, "sweep",
                     "write --sweep lr=0.1,0.01; values with commas go into a job file", "--sweep \"%s\" %s",
                     item, what);
}

static bool put_axis(const char *item, json_t *sweep, struct err *err)
{
    size_t length = strcspn(item, "=");
    autofree char *name = xstrndup(item, length);
    autofree char *values = xstrdup(item[length] == '=' ? item + length + 1 : "");
    if (length == 0 || values[0] == '\0') {
        return refuse_sweep(item, "names no values", err);
    }
    if (json_object_get(sweep, name) != NULL) {
        return refuse_sweep(item, "comes twice under one name", err);
    }
    json_t *list = json_array();
    json_object_set_new(sweep, name, list);
    char *rest = values;
    for (char *value; (value = strsep(&rest, ",")) != NULL;) {
        if (json_array_append_new(list, json_string(value)) != 0) {
            return refuse_sweep(item, "is not UTF-8", err);
        }
    }
    return true;
}

static bool put_sweep(const struct option_list *list, json_t *spec, struct err *err)
{
    autojson json_t *sweep = json_object();
    for (size_t i = 0; i < list->count; i++) {
        if (!put_axis(list->items[i], sweep, err)) {
            return false;
        }
    }
    if (list->count > 0) {
        json_object_set(spec, "sweep", sweep);
    }
    return true;
}

bool array_put(const struct array_options *options, json_t *spec, struct err *err)
{
    if (!put_sweep(&options->sweep, spec, err)) {
        return false;
    }
    bool sweeps = json_object_get(spec, "sweep") != NULL;
    return options->count == NULL || put_count(options->count, sweeps, spec, err);
}

bool array_asked(const json_t *spec)
{
    return json_is_object(json_object_get(spec, "array")) || json_is_object(json_object_get(spec, "sweep"));
}

/* --- progress --- */

static long long count_of(const json_t *array, const char *member)
{
    return (long long)json_integer_value(json_object_get(array, member));
}

void array_say(const json_t *array, struct text *out)
{
    static const char *const counts[] = {"running", "failed", "canceled"};
    if (!json_is_object(array)) {
        return;
    }
    text_printf(out, "%lld/%lld done",
                count_of(array, "succeeded") + count_of(array, "failed") + count_of(array, "canceled"),
                count_of(array, "tasks"));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (count_of(array, counts[i]) > 0) {
            text_printf(out, ", %lld %s", count_of(array, counts[i]), counts[i]);
        }
    }
}
