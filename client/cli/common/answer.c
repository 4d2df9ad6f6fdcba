/* SPDX-License-Identifier: Apache-2.0 */
/* Shows an answer of the controller in the form that -o names: a document, a note about it, a list of items,
 * or the outcome for each of several jobs. The verbs bring words and columns. */
#include "client/cli/common/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/common/jobs.h"
#include "client/cli/common/wait.h"
#include "client/cli/common/watch.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"

/* --- one document --- */

bool answer_document(const struct call *call, const json_t *answer,
                     void (*print)(const struct call *call, const json_t *answer, struct text *out),
                     struct text *out)
{
    if (answer != NULL && print_is_json(call->format)) {
        print_json(answer, out);
    } else if (answer != NULL) {
        print(call, answer, out);
    }
    return answer != NULL;
}

bool answer_show(const struct call *call, const json_t *answer,
                 void (*print)(const struct call *call, const json_t *answer, struct text *out),
                 struct err *err)
{
    autotext struct text out = {0};
    return answer_document(call, answer, print, &out) && print_out(&out, err);
}

bool answer_note(const struct call *call, const json_t *answer, struct err *err, const char *format, ...)
{
    char note[1024]; /* as much as print_note shows */
    va_list args;
    va_start(args, format);
    vsnprintf(note, sizeof note, format, args);
    va_end(args);
    if (answer != NULL && !print_is_json(call->format)) {
        print_note("%s", note);
        return true;
    }
    return answer_show(call, answer, NULL, err);
}

bool answer_member(const struct call *call, const json_t *answer, const char *member, struct err *err)
{
    autotext struct text out = {0};
    if (answer == NULL || print_is_json(call->format)) {
        return answer_show(call, answer, NULL, err);
    }
    text_printf(&out, "%s\n", print_text_of(answer, member));
    return print_out(&out, err);
}

bool answer_secret(const struct call *call, const json_t *answer, const char *file, const char *note,
                   struct err *err)
{
    const char *secret = NULL;
    if (!json_need_text(answer, "secret", &secret, err)) {
        return false;
    }
    if (file != NULL) {
        autofree char *line = xprintf("%s\n", secret);
        return file_replace(file, line, strlen(line), 0600, err);
    }
    if (!print_is_json(call->format)) {
        print_note("%s", note);
    }
    return answer_member(call, answer, "secret", err);
}

/* --- lists --- */

static void print_keys(const json_t *items, const char *key, struct text *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        const char *text = json_string_of(item, key);
        text_printf(out, "%s\n", text != NULL ? text : "");
    }
}

void list_print(const struct call *call, const struct listing *listing, const json_t *items, struct text *out)
{
    if (call->common->quiet) {
        print_keys(items, listing->key, out);
        return;
    }
    if (print_is_json(call->format)) {
        print_list(call->format, listing->shown != NULL ? listing->shown : listing->name, items, out);
        return;
    }
    autojson json_t *rows = listing->rows != NULL ? listing->rows(items) : NULL;
    bool wide = call->format == FORMAT_WIDE || listing->uncut;
    grid_show(listing->columns, listing->count, rows != NULL ? rows : items, wide, print_width(),
              print_colour(), out);
}

static bool show_list(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct listing *listing = call->verb->listing;
    autojson json_t *items = api_list(call->api, listing->path, listing->name, "cursor", LIMIT_LISTED, err);
    autojson json_t *chosen = items != NULL && listing->choose != NULL ? listing->choose(items) : NULL;
    *ret_last = false;
    if (items != NULL) {
        list_print(call, listing, chosen != NULL ? chosen : items, out);
    }
    return items != NULL;
}

bool list_run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show_list, err);
}

static bool is_named(const json_t *item, const char *member, const char *name)
{
    const char *text = json_string_of(item, member);
    return text != NULL && strcmp(text, name) == 0;
}

json_t *answer_find(const struct call *call, const char *path, const char *list, const char *what,
                    const char *hint, struct err *err)
{
    const char *name = call->rest[0];
    autojson json_t *all = api_list(call->api, path, list, "cursor", LIMIT_LISTED, err);
    json_t *named = NULL, *begun = NULL, *each;
    size_t i, names = 0, beginnings = 0;
    if (all == NULL) {
        return NULL;
    }
    json_array_foreach (all, i, each) {
        const char *id = json_string_of(each, "id");
        if (is_named(each, "name", name)) {
            named = each;
            names++;
        } else if (id != NULL && name[0] != '\0' && strncmp(id, name, strlen(name)) == 0) {
            begun = each;
            beginnings++;
        }
    }
    if (names == 1 || (names == 0 && beginnings == 1)) {
        return json_incref(names == 1 ? named : begun);
    }
    if (names == 0 && beginnings == 0) {
        err_field(err, ERR_NOT_FOUND, "ID", hint, "no %s has the id or name %s", what, name);
    } else {
        err_field(err, ERR_USAGE, "ID", "write more of its id",
                  "more than one %s is called or begins with %s", what, name);
    }
    return NULL;
}

/* --- several jobs --- */

bool answer_agrees(bool yes, const char *deed, size_t count)
{
    char answer[16] = "";
    if (yes) {
        return true;
    }
    fprintf(stderr, "%s %zu job%s? [y/N] ", deed, count, count == 1 ? "" : "s");
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

bool answer_may_ask(bool yes, const char *deed, struct err *err)
{
    return yes || isatty(STDIN_FILENO) == 1 ||
           err_field(err, ERR_USAGE, "yes", "add --yes; `gpuctl ps` shows the jobs",
                     "there is no terminal to ask how many jobs may be %s", deed);
}

static bool ask_one(const struct call *call, const char *method, const char *argument, bool wait,
                    json_t *jobs, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(call->api, argument, id, err)) {
        return false;
    }
    const char *path = strcmp(method, "DELETE") == 0 ? "/v1/jobs/%s" : "/v1/jobs/%s/%s";
    json_t *job = api_ask(call->api, method, NULL, err, path, id, call->verb->name);
    if (job != NULL && wait) {
        json_decref(job);
        job = wait_job(call->api, id, -1, err);
    }
    return job != NULL && json_array_append_new(jobs, job) == 0;
}

static bool show_jobs(const struct call *call, const json_t *jobs, const char *said, struct err *err)
{
    autotext struct text out = {0};
    size_t i;
    json_t *job;
    if (print_is_json(call->format)) {
        print_list(call->format, "jobs", jobs, &out);
        return print_out(&out, err);
    }
    json_array_foreach (jobs, i, job) {
        const char *state = json_string_of(job, "state");
        print_note("job %s%s%s", print_text_of(job, "id"), said, state != NULL ? state : "");
    }
    return true;
}

bool for_each_job(const struct call *call, const char *method, const char *said, bool wait, struct err *err)
{
    autojson json_t *jobs = json_array();
    bool good = true;
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (ask_one(call, method, call->rest[i], wait, jobs, &one)) {
            continue;
        }
        if (good) {
            *err = one;
        } else {
            print_error(&one);
        }
        good = false;
    }
    return show_jobs(call, jobs, said, good ? err : NULL) && good;
}
