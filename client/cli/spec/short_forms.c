/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of a job spec as people write them: dependencies, arrays and sweeps, early signals; and puts
 * the progress of an array into words. It promises that values of a sweep reach the ranks as they were
 * written: all travel as text. It refuses a wrong signal, with the remedy;
 * proto/spec/jobspec.c checks the other limits. */

#include "client/cli/spec/short_forms.h"

#include <string.h>

#include "client/cli/common/jobs.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/jobspec_parts.h"

/* --- dependencies --- */

/* "ID", "ID:afterany". New reference; NULL where the text is not UTF-8. */
static json_t *item_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    autofree char *job = xstrndup(text, length);
    return json_pack("{s:s, s:s*}", "job", job, "when", colon != NULL ? colon + 1 : NULL);
}

void after_spell_out(json_t *spec)
{
    json_t *after = json_object_get(spec, "after");
    if (json_is_string(after)) {
        json_object_set_new(spec, "after", json_pack("[O]", after));
        after = json_object_get(spec, "after");
    }
    for (size_t i = 0; i < json_array_size(after); i++) {
        const char *text = json_string_value(json_array_get(after, i));
        if (text != NULL) {
            json_array_set_new(after, i, item_of(text));
        }
    }
}

bool after_add(json_t *spec, const struct option_list *list, struct err *err)
{
    if (list->count == 0) {
        return true;
    }
    const json_t *base = json_object_get(spec, "after");
    json_t *after = json_is_array(base) ? json_deep_copy(base) : json_array();
    json_object_set_new(spec, "after", after);
    for (size_t i = 0; i < list->count; i++) {
        if (json_array_append_new(after, item_of(list->items[i])) != 0) {
            return err_field(err, ERR_USAGE, "after", "write --after ID or --after ID:afterany",
                             "--after %zu is not UTF-8", i + 1);
        }
    }
    return true;
}

const char *after_job(const json_t *item)
{
    return json_string_of(item, "job");
}

/* Whether a job of the caller has the name. The controller looks for it at the submission; but of a file with
 * several jobs none is submitted if one cannot be. *ret_named false: *err says so. */
static bool find_name(struct api *api, const char *name, bool *ret_named, struct err *err)
{
    autojson json_t *session = api_get(api, err, "/v1/session");
    const char *owner = json_string_of(session, "owner");
    autojson json_t *page =
        owner != NULL ? api_get(api, err, "/v1/jobs?limit=1&name=%s&owner=%s", name, owner) : NULL;
    *ret_named = json_array_size(json_object_get(page, "jobs")) > 0;
    if (page != NULL && !*ret_named) {
        err_set(err, ERR_NOT_FOUND, "no job of yours is called %s, and no job's id starts with it", name);
        err_hint(err, "`gpuctl ps --all` shows the jobs that there are");
    }
    return page != NULL;
}

bool after_fill(struct api *api, json_t *spec, bool (*is_ours)(const char *job, const void *closure),
                const void *closure, struct err *err)
{
    const json_t *after = json_object_get(spec, "after");
    for (size_t i = 0; api != NULL && i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        const char *job = after_job(item);
        char id[RESOLVED_BYTES];
        if (job == NULL || (is_ours != NULL && is_ours(job, closure))) {
            continue;
        }
        if (!resolve_job(api, job, id, err)) {
            bool named = false;
            if (err->code == ERR_NOT_FOUND && text_is_name(job, LIMIT_NAME_BYTES) &&
                find_name(api, job, &named, err) && named) {
                json_object_set(item, "name", json_object_get(item, "job"));
                json_object_del(item, "job");
                continue;
            }
            const struct err why = *err;
            autofree char *field = xprintf("after[%zu]", i);
            return err_field(err, why.code, field, why.hint, "%s: %s", field, why.text);
        }
        json_object_set_new(item, "job", json_string(id));
    }
    return true;
}

void after_pretend(json_t *spec)
{
    const json_t *after = json_object_get(spec, "after");
    for (size_t i = 0; i < json_array_size(after); i++) {
        json_t *item = json_array_get(after, i);
        if (after_job(item) != NULL) {
            const uint8_t number[10] = {(uint8_t)(i >> 8), (uint8_t)i};
            char id[RESOLVED_BYTES];
            text_id_from_bytes(number, id);
            json_object_set_new(item, "job", json_string(id));
        }
    }
}

/* --- arrays and sweeps --- */

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

/* --- early signals --- */

json_t *early_read(const char *field, const char *text, struct err *err)
{
    enum early_signal signal;
    int64_t before_ms = 0;
    size_t length = strcspn(text, "@");
    autofree char *name = xstrndup(text, length);
    if (!jobspec_early_signal_from_text(name, &signal)) {
        err_field(err, ERR_USAGE, field, "USR1@60 for instance",
                  "early signal %s: the signal must be one of: %s", text, JOBSPEC_EARLY_NAMES);
        return NULL;
    }
    bool timed = text[length] == '@';
    if (timed && (!text_to_duration_ms(text + length + 1, &before_ms) || before_ms == 0)) {
        err_field(err, ERR_USAGE, field, "USR1@60 or USR1@2m for instance",
                  "early signal %s: the time before the limit must be a duration above 0", text);
        return NULL;
    }
    json_t *early = json_object();
    json_object_set_new(early, "signal", json_string(early_signal_text(signal)));
    if (timed) {
        json_object_set_new(early, "before_s", json_seconds(before_ms));
    }
    return early;
}
