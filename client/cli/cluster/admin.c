/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl admin`: makes backups of the controller, restores them, and checks them. gpuctld itself does the
 * work on files, started in our place; the controller is asked for the rest. */
#include <stdint.h>
#include <unistd.h>

#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "client/cli/transport/context.h"
#include "client/cli/transport/instance.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"

/* --- gpuctld in our place --- */

struct local_options {
    const char *state;
};

static const struct option_row local_rows[] = {
    ROW_TEXT(struct local_options, state, 0, "state", "DIR",
             "the controller's state folder (default /var/lib/gpuctl)"),
    ROWS_END};

/* `gpuctld FLAG WHAT --state DIR`; returns only when it cannot be started. */
static bool become(const char *flag, const char *what, const char *state, struct err *err)
{
    autofree char *program = file_find_program("gpuctld", err);
    if (program == NULL) {
        return false;
    }
    const char *const words[] = {program, flag, what, state != NULL ? "--state" : NULL, state, NULL};
    execv(program, (char *const *)(uintptr_t)words);
    return err_errno(err, "cannot run %s", program);
}

/* --- backup --- */

static const struct option_row backup_rows[] = {
    ROW_TEXT(struct local_options, state, 0, "state", "DIR",
             "of a backup as a folder: the controller's state folder"),
    ROW_FORMAT, ROWS_END};

static bool ask_for_backup(const struct call *call, struct err *err)
{
    const struct local_options *options = call->options;
    autoapi struct api *api = NULL;
    if (options->state != NULL) {
        return err_field(err, ERR_USAGE, "state", "name the folder that it is to become",
                         "--state is for a backup as a folder");
    }
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *backup = api_ask(api, "POST", NULL, err, "/v1/backups");
    return answer_member(call, backup, "name", err);
}

/* Of the controller in use, where that is one's own; of the one that this machine serves, where none is
 * named. What lies behind a URL nobody knows here. */
static bool backup_folder(const struct call *call, struct err *err)
{
    const struct local_options *options = call->options;
    const char *folder = call->rest[0];
    struct context context = {0};
    if (options->state != NULL) {
        return become("--backup", folder, options->state, err);
    }
    if (!context_load(call->common, &context, err)) {
        return err->code == ERR_UNREACHABLE && become("--backup", folder, NULL, err);
    }
    if (context.embedded) {
        autofree char *state = instance_file(context.state, "controller");
        become("--backup", folder, state, err);
    } else {
        err_field(err, ERR_USAGE, "state",
                  "on its machine add --state DIR; without a folder it makes the backup by itself",
                  "where the controller at %s has its state is not known here", context.url);
    }
    context_finish(&context);
    return false;
}

static bool backup_run(const struct call *call, int *ret_exit, struct err *err)
{
    return call->rest_count > 0 ? backup_folder(call, err) : ask_for_backup(call, err);
}

static const struct verb verb_backup = {
    .name = "backup",
    .arguments = "[DIR]",
    .summary = "Make a backup now, and print its name.",
    .details =
        "Without DIR the controller makes it in its own folder of backups (gpuctld --backup-folder) and "
        "keeps as many as\n"
        "gpuctld --backup-keep says. With DIR it becomes that folder, on this machine, out of the state "
        "folder, whether or not\n"
        "a controller serves: out of that of your own instance, where it is in use, of --state, or of "
        "/var/lib/gpuctl. A backup has the databases and the key of ranks' tokens. Payloads, logs "
        "and artifacts are files\n"
        "that are only ever added to: copy blobs/, logs/ and artifacts/ of the state folder after it.",
    .argument = ARGUMENT_FILE,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct local_options),
    .rows = {backup_rows},
    .run = backup_run,
};

/* --- backups --- */

static void show_took(const json_t *backup, const char *member, struct text *out)
{
    char took[32];
    text_from_duration_ms(json_integer_value(json_object_get(backup, member)), took, sizeof took);
    text_append(out, took);
}

static const struct column backup_columns[] = {
    COLUMN("NAME", "name", cell_plain), COLUMN("TAKEN", "taken_at", cell_time),
    COLUMN("SIZE", "bytes", cell_bytes), WIDE_COLUMN("TOOK", "took_ms", show_took)};

static const struct listing backups = {
    .path = "/v1/backups", .name = "backups", LIST_COLUMNS(backup_columns)};

static const struct verb verb_backups = {
    .name = "backups",
    .summary = "List the backups that the controller keeps, the newest first.",
    LISTS(backups),
    .rows = {rows_format},
};

/* --- restore --- */

static bool restore_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct local_options *options = call->options;
    return become("--restore", call->rest[0], options->state, err);
}

static const struct verb verb_restore = {
    .name = "restore",
    .arguments = "DIR [--state DIR]",
    .summary = "Put a backup in the place of what the controller's state folder has.",
    .details =
        "Refuses while a controller uses the state folder. What is there is not removed, but moved to a "
        "folder "
        "replaced-... in\n"
        "it. DIR may also be one database file, such as backups/before-schema-4.db. After the next start of "
        "the controller\n"
        "nodes stop what they run and the backup does not know, and tell of it: see `gpuctl admin lost`.",
    .argument = ARGUMENT_FILE,
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct local_options),
    .rows = {local_rows},
    .run = restore_run,
};

/* --- check --- */

static bool check_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct local_options *options = call->options;
    struct context context = {0};
    bool named = options->state == NULL && context_load(call->common, &context, NULL);
    autofree char *own = named && context.embedded ? instance_file(context.state, "controller") : NULL;
    const char *state = options->state != NULL ? options->state : own != NULL ? own : "/var/lib/gpuctl";
    context_finish(&context);
    return become("--check", call->rest_count > 0 ? call->rest[0] : state, state, err);
}

static const struct verb verb_check = {
    .name = "check",
    .arguments = "[DIR] [--state DIR]",
    .summary = "Look whether a state folder or a backup is whole.",
    .details =
        "Without DIR it is the state folder, in which a controller may be serving: that of your own "
        "instance, where it is in\n"
        "use, else /var/lib/gpuctl. Every page of the databases is read, the\n"
        "rows are held against each other, and every payload against its hash. Ends with 0 and \"ok\", "
        "or with 1 after\n"
        "having named what it found.",
    .argument = ARGUMENT_FILE,
    .most = 1,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct local_options),
    .rows = {local_rows},
    .run = check_run,
};

/* --- lost --- */

static const struct column lost_columns[] = {
    COLUMN("JOB", "job", cell_plain),         COLUMN("KNOWN", "job_known", cell_yes),
    COLUMN("NODE", "node", cell_plain),       COLUMN("BEGAN", "began_at", cell_time),
    COLUMN("ENDED", "ended_at", cell_time),   COLUMN("EXIT", "exit_code", cell_plain),
    WIDE_COLUMN("EPOCH", "epoch", cell_plain)};

static const struct listing lost = {.path = "/v1/lost", .name = "lost", LIST_COLUMNS(lost_columns)};

static const struct verb verb_lost = {
    .name = "lost",
    .summary = "List what nodes have run and a restored controller does not know.",
    .details =
        "KNOWN says whether the job is in the database: then only this attempt of it is not, and the job "
        "goes on as it was\n"
        "when the backup was taken. A job that is not known was submitted later: submit it again if it "
        "is to run again.",
    LISTS(lost),
    .rows = {rows_format},
};

/* --- rotate-secrets-key --- */

static bool rotate_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *answer = api_ask(call->api, "POST", NULL, err, "/v1/secrets/rotate");
    const long long sealed = json_integer_value(json_object_get(answer, "sealed"));
    const long long unreadable = json_integer_value(json_object_get(answer, "unreadable"));
    return answer_note(call, answer, err, "%lld secrets are sealed under a new key%s", sealed,
                       unreadable > 0 ? "; some could not be opened: the controller's log names them" : "");
}

static const struct verb verb_rotate = {
    .name = "rotate-secrets-key",
    .summary = "Seal all secrets under a new key.",
    .details = "The older key goes once nothing is sealed under it. Backups from before can be opened with "
               "it alone: "
               "keep\n"
               "your copy of it as long as them.",
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .run = rotate_run,
};

static const struct verb *const nested[] = {&verb_backups, &verb_backup, &verb_restore,
                                            &verb_check,   &verb_lost,   &verb_retention,
                                            &verb_rotate,  &verb_store,  NULL};

const struct verb verb_admin = {
    .name = "admin",
    .summary = "Make backups, put them back, check them, remove what is old, and move stored bytes.",
    .nested = nested,
};
