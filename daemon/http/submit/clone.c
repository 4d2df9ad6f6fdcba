/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs/{id}/clone: a new job with the spec of another and some changes. It promises that each
 * change has found its place. retry.c sees to it that nobody gets at what a spec hides from them, and submits
 * the spec. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/submit/retry.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/members.h"
#include "proto/spec/tasks.h"

/* --- a parameter: set ------------------------------------------------------------------------------------
 */

static bool refuse_set(const char *name, const char *hint, const char *what, struct err *err)
{
    autofree char *field = xprintf("set.%.*s", LIMIT_NAME_BYTES, name);
    return err_field(err, ERR_FIELD, field, hint, "%s", what);
}

/* "0.1,0.2" as a list of texts. */
static json_t *values_of(const char *text)
{
    json_t *values = json_array();
    for (bool more = true; more;) {
        size_t length = strcspn(text, ",");
        json_array_append_new(values, json_stringn(text, length));
        more = text[length] == ',';
        text += length + more;
    }
    return values;
}

/* The sweep keeps the order of its names, from which the numbers of its tasks follow. */
static bool set_in_sweep(json_t *spec, const char *name, const char *value, struct err *err)
{
    json_t *sweep = json_object_get(spec, "sweep");
    json_t *values = values_of(value);
    bool same = json_array_size(values) == json_array_size(json_object_get(sweep, name));
    if (!same && json_object_get(json_object_get(spec, "array"), "only") != NULL) {
        json_decref(values);
        return refuse_set(name, "give as many values as it had, or clone the array that it repeats",
                          "the job has some of the tasks of its sweep, whose numbers would change", err);
    }
    return json_object_set_new(sweep, name, values) == 0;
}

static bool is_number(const char *word)
{
    char *end;
    strtod(word, &end);
    return end != word && *end == '\0';
}

/* The word that a change of the name replaces, with its text before the value; -1: the word at index names
 * nothing. The forms are "--lr 0.1", "--lr=0.1" and "lr=0.1". */
static int place_of(const json_t *command, size_t index, const char *name, size_t *ret_keep)
{
    const char *word = json_string_value(json_array_get(command, index));
    const char *next = json_string_value(json_array_get(command, index + 1));
    size_t length = strlen(name), dashes = word != NULL && strncmp(word, "--", 2) == 0 ? 2 : 0;
    *ret_keep = 0;
    if (word == NULL || strncmp(word + dashes, name, length) != 0) {
        return -1;
    }
    if (word[dashes + length] == '=') {
        *ret_keep = dashes + length + 1;
        return (int)index;
    }
    bool valued = next != NULL && (next[0] != '-' || is_number(next));
    return dashes == 2 && word[dashes + length] == '\0' && valued ? (int)index + 1 : -1;
}

static bool set_in_words(json_t *spec, const char *name, const char *value, struct err *err)
{
    json_t *command = json_object_get(spec, "command");
    int found = -1;
    size_t keep = 0;
    for (size_t i = 1; i < json_array_size(command); i++) {
        size_t kept;
        int place = place_of(command, i, name, &kept);
        if (place >= 0 && found >= 0) {
            return refuse_set(name, "leave out --set, and add it at the end: -- --NAME VALUE",
                              "the command has it more than once", err);
        }
        keep = place >= 0 ? kept : keep;
        found = place >= 0 ? place : found;
    }
    if (found < 0) {
        return refuse_set(name, "add it at the end: -- --NAME VALUE",
                          "the command has neither --NAME VALUE nor --NAME=VALUE nor NAME=VALUE of it, and "
                          "there is no sweep over it",
                          err);
    }
    const char *word = json_string_value(json_array_get(command, (size_t)found));
    autofree char *with = xprintf("%.*s%s", (int)keep, word, value);
    return json_array_set_new(command, (size_t)found, json_string(with)) == 0;
}

static bool set_all(json_t *spec, const json_t *set, struct err *err)
{
    const char *name;
    const json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)set, name, value) {
        const char *text = json_string_value(value);
        if (text == NULL || name[0] == '\0') {
            return refuse_set(name, NULL, "set must be an object of strings", err);
        }
        bool swept = json_object_get(json_object_get(spec, "sweep"), name) != NULL;
        if (!(swept ? set_in_sweep(spec, name, text, err) : set_in_words(spec, name, text, err))) {
            return false;
        }
    }
    return true;
}

/* --- the other changes -----------------------------------------------------------------------------------
 */

static bool add_words(json_t *spec, const json_t *words, struct err *err)
{
    json_t *command = json_object_get(spec, "command");
    if (json_array_size(words) > 0 && !json_is_array(command)) {
        return err_field(err, ERR_FIELD, "arguments", "leave them out", "a function has no arguments to add");
    }
    return json_array_size(words) == 0 || json_array_extend(command, (json_t *)(uintptr_t)words) == 0;
}

static void merge_env(json_t *spec, const json_t *env)
{
    json_t *all = json_object_get(spec, "env");
    if (!json_is_object(all)) {
        json_object_set_new(spec, "env", json_object());
        all = json_object_get(spec, "env");
    }
    json_object_update(all, (json_t *)(uintptr_t)env);
}

/* false: it is there and of another type. */
static bool read_part(const json_t *body, const char *name, bool object, const json_t **ret_part,
                      struct err *err)
{
    *ret_part = json_object_get(body, name);
    bool sound = *ret_part == NULL || (object ? json_is_object(*ret_part) : json_is_array(*ret_part));
    return sound || err_field(err, ERR_FIELD, name, NULL, "%s must be an %s", name,
                              object ? "object of strings" : "array of strings");
}

/* The types of other values are checked where the spec is decoded. */
static bool change(json_t *spec, const json_t *body, struct err *err)
{
    const json_t *set, *env, *words;
    if (!read_part(body, "set", true, &set, err) || !read_part(body, "env", true, &env, err) ||
        !read_part(body, "arguments", false, &words, err) || !set_all(spec, set, err) ||
        !add_words(spec, words, err)) {
        return false;
    }
    if (json_object_size(env) > 0) {
        merge_env(spec, env);
    }
    for (const char *const *name = (const char *const[]){"gpus", "name", NULL}; *name != NULL; name++) {
        if (json_object_get(body, *name) != NULL) {
            json_object_set(spec, *name, json_object_get(body, *name));
        }
    }
    return true;
}

/* --- what is cloned --------------------------------------------------------------------------------------
 */

/* A task of a sweep becomes a sweep over its own values alone, so that each can be set; one of another array
 * an array of itself alone. */
static void choose_task(json_t *spec, const struct job_facts *job)
{
    json_t *sweep = json_object_get(spec, "sweep");
    struct task_values values;
    if (!json_is_object(sweep)) {
        autofree char *number = xprintf("%lld", (long long)job->task);
        retry_only(spec, number);
        return;
    }
    json_t *own = json_object();
    task_values_make(sweep, task_values_count(sweep), job->task, &values);
    for (size_t i = 1; i < values.count; i++) {
        json_object_set_new(own, values.items[i].name, json_pack("[s]", values.items[i].text));
    }
    task_values_finish(&values);
    json_object_set_new(spec, "sweep", own);
    json_object_del(spec, "array");
}

bool jobs_clone(struct request *request, struct err *err)
{
    struct job_facts job;
    if (!request_only_fields(request->json, "set env gpus name arguments", err) ||
        !submission_allowed(request, err) || !job_find(request, &job, err)) {
        return false;
    }
    autojson json_t *stored = specs_get(request->server->specs, job.key, err);
    if (stored == NULL || !retry_allowed(request, stored, err)) {
        return false;
    }
    autojson json_t *spec = json_deep_copy(stored);
    json_object_del(spec, "checkpoint_of");
    json_object_del(spec, "retry_of");
    if (job.task >= 0) {
        choose_task(spec, &job);
    }
    return change(spec, request->json, err) && retry_submit(request, &job, give(spec), err);
}
