/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl admin store`: where the controller keeps the bytes of users, and their way to another place. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define PATH "/v1/object-store"

/* "12 files (3.1 GiB) wait to be moved" */
static void say_waiting(const json_t *status, struct text *out)
{
    char size[32];
    long long files = json_integer_value(json_object_get(status, "waiting_files"));
    print_bytes(json_integer_value(json_object_get(status, "waiting_bytes")), size);
    text_printf(out, "%lld %s (%s) %s to be moved", files, files == 1 ? "file" : "files", size,
                files == 1 ? "waits" : "wait");
}

static const char *text_of(const json_t *status, const char *member)
{
    const char *text = json_string_value(json_object_get(status, member));
    return text != NULL ? text : "";
}

static void say_status(const struct call *call, const json_t *status, struct text *out)
{
    bool files = strcmp(text_of(status, "to"), "files") == 0;
    bool none = strcmp(text_of(status, "kind"), "files") == 0;
    text_printf(out, "store     %s\n",
                none ? "files in the controller's state folder" : text_of(status, "address"));
    if (none) {
        return;
    }
    text_printf(out, "direction %s\n", files ? "back to files" : "to the store");
    text_append(out, "progress  ");
    if (json_is_true(json_object_get(status, "complete"))) {
        text_append(out, files ? "complete: the store is empty; gpuctld serves without --object-store, too\n"
                               : "complete: nothing waits\n");
    } else {
        say_waiting(status, out);
        text_append(out, "\n");
    }
    if (json_is_string(json_object_get(status, "problem"))) {
        const char *since = text_of(status, "away_since");
        text_printf(out, "problem   %s%s%s\n", text_of(status, "problem"), *since != '\0' ? ", since " : "",
                    since);
    }
    if (json_is_string(json_object_get(status, "hint"))) {
        text_printf(out, "remedy    %s\n", text_of(status, "hint"));
    }
}

static bool status_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *status = api_get(call->api, err, PATH);
    return answer_show(call, status, say_status, err);
}

static const struct verb verb_status = {
    .name = "status",
    .summary = "Say where bytes are, what waits to be moved, and whether the store answers.",
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = status_run,
};

struct migrate_options {
    const char *to;
};

static const struct option_row migrate_rows[] = {
    ROW_CHOICE(struct migrate_options, to, 0, "to", "PLACE", "where the bytes go", "s3|files"), ROW_FORMAT,
    ROWS_END};

static bool migrate_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct migrate_options *options = call->options;
    if (options->to == NULL) {
        return err_field(err, ERR_USAGE, "to", "--to s3, or --to files", "say where the bytes go");
    }
    autojson json_t *body = json_pack("{s:s}", "to", options->to);
    autojson json_t *status = api_ask(call->api, "POST", body, err, PATH);
    return answer_note(call, status, err,
                       "the controller moves all bytes to %s; gpuctl admin store status shows how far",
                       options->to);
}

static const struct verb verb_migrate = {
    .name = "migrate",
    .summary = "Move payloads, results, artifacts and output to the object store, or back to files.",
    .details =
        "The controller goes on serving: it looks in both places until all is moved. A restart goes on with "
        "it. The store\n"
        "is that of gpuctld --object-store. To leave it, move to files, wait until the status is complete, "
        "and start gpuctld\n"
        "without that option. To change to another store, do so in between.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct migrate_options),
    .rows = {migrate_rows},
    .run = migrate_run,
};

static const struct verb *const nested[] = {&verb_status, &verb_migrate, NULL};

const struct verb verb_store = {
    .name = "store",
    .summary = "Say where the bytes of users are, and move them.",
    .nested = nested,
};
