/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the indexes of an array as Slurm's users write them, "0-15%4" or "1,3,5-7:2", in any order. A task
 * has its index as its number, so the array has as many tasks as the highest index wants, and of these only
 * those that are named. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/slurm/batch.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

struct indexes {
    bool *has; /* LIMIT_ARRAY_TASKS of them */
    int64_t least, most, count, step;
};

static bool refuse(const char *text, struct err *err)
{
    return err_field(err, ERR_USAGE, "array", "0-15%4 or 1,3,5-7:2 for instance",
                     "--array \"%s\" has no list of indexes from 0 to %d", text, LIMIT_ARRAY_TASKS - 1);
}

static void put(struct indexes *indexes, int64_t index)
{
    indexes->least = indexes->count == 0 || index < indexes->least ? index : indexes->least;
    indexes->most = index > indexes->most ? index : indexes->most;
    indexes->count += !indexes->has[index];
    indexes->has[index] = true;
}

/* "3", "3-9" or "3-9:2" */
static bool put_part(struct indexes *indexes, char *part)
{
    int64_t first, last, step = 1;
    char *end = part;
    const char *begin = strsep(&end, "-");
    const char *to = strsep(&end, ":");
    if (!text_to_int(begin, 0, LIMIT_ARRAY_TASKS - 1, &first) ||
        !text_to_int(to != NULL ? to : begin, first, LIMIT_ARRAY_TASKS - 1, &last) ||
        (end != NULL && !text_to_int(end, 1, LIMIT_ARRAY_TASKS, &step))) {
        return false;
    }
    for (int64_t i = first; i <= last; i += step) {
        put(indexes, i);
    }
    indexes->step = end != NULL ? step : indexes->step;
    return true;
}

/* As array.only of a spec has them; returns how many ranges there are. */
static int write_ranges(const struct indexes *indexes, struct text *out)
{
    int count = 0;
    for (int64_t i = indexes->least; i <= indexes->most; i++) {
        int64_t first = i;
        if (!indexes->has[i]) {
            continue;
        }
        while (i < indexes->most && indexes->has[i + 1]) {
            i++;
        }
        text_printf(out, "%s%lld", count > 0 ? "," : "", (long long)first);
        if (i > first) {
            text_printf(out, "-%lld", (long long)i);
        }
        count++;
    }
    return count;
}

static void put_number(json_t *env, const char *name, int64_t number)
{
    autofree char *text = xprintf("%lld", (long long)number);
    json_object_set_new(env, name, json_string(text));
}

static bool put_array(const struct indexes *indexes, int64_t parallel, json_t *spec, json_t *env,
                      struct err *err)
{
    autotext struct text only = {0};
    json_t *array = json_object();
    json_object_set_new(spec, "array", array);
    json_object_set_new(array, "tasks", json_integer(indexes->most + 1));
    if (parallel > 0) {
        json_object_set_new(array, "parallel", json_integer(parallel));
    }
    if (write_ranges(indexes, &only) > LIMIT_TASK_RANGES) {
        return err_field(err, ERR_USAGE, "array", "submit it in several parts",
                         "--array has more than %d ranges of indexes", LIMIT_TASK_RANGES);
    }
    if (indexes->count <= indexes->most) {
        json_object_set_new(array, "only", json_string(only.bytes));
    }
    put_number(env, "SLURM_ARRAY_TASK_COUNT", indexes->count);
    put_number(env, "SLURM_ARRAY_TASK_MIN", indexes->least);
    put_number(env, "SLURM_ARRAY_TASK_MAX", indexes->most);
    put_number(env, "SLURM_ARRAY_TASK_STEP", indexes->step);
    return true;
}

bool batch_array(const struct batch_options *options, json_t *spec, json_t *env, struct err *err)
{
    if (options->array == NULL) {
        return true;
    }
    autofree char *copy = xstrdup(options->array);
    autofree bool *has = xzalloc(LIMIT_ARRAY_TASKS * sizeof *has);
    struct indexes indexes = {.has = has, .step = 1};
    char *rest = copy;
    char *list = strsep(&rest, "%");
    int64_t parallel = 0;
    if (rest != NULL && !text_to_int(rest, 1, LIMIT_ARRAY_TASKS, &parallel)) {
        return refuse(options->array, err);
    }
    for (char *part; (part = strsep(&list, ",")) != NULL;) {
        if (!put_part(&indexes, part)) {
            return refuse(options->array, err);
        }
    }
    return put_array(&indexes, parallel, spec, env, err);
}
