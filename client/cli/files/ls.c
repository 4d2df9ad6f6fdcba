/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ls`: lists the files that the ranks of a job kept. */
#include "client/cli/common/answer.h"
#include "client/cli/files/kept.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

struct ls_options {
    int64_t attempt;
};

static const struct option_row rows[] = {ROW_INT(struct ls_options, attempt, 0, "attempt", "N",
                                                 "of an earlier attempt (default: the newest)", 1, INT32_MAX,
                                                 .absent = NOT_GIVEN),
                                         ROW_QUIET("paths alone"), ROW_FORMAT, ROWS_END};

static const struct column columns[] = {COLUMN("SIZE", "size", cell_bytes),
                                        COLUMN("MODIFIED", "modified_at", cell_time),
                                        COLUMN("PATH", "path", cell_plain)};
static const struct listing files = {.name = "files", LIST_COLUMNS(columns), .key = "path", .uncut = true};

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct ls_options *options = call->options;
    autotext struct text out = {0};
    struct kept kept;
    bool read = kept_read(call->api, call->rest[0], options->attempt, &kept, err);
    if (read) {
        list_print(call, &files, kept.files, &out);
        read = print_out(&out, err);
        kept_say_left(&kept);
        if (!kept.complete) {
            print_note("not all of them have come from their nodes yet");
        }
    }
    kept_finish(&kept);
    return read;
}

const struct verb verb_ls = {
    .name = "ls",
    .arguments = "JOB[:RANK[/PATH]]",
    .summary = "List the files that the ranks of a job kept.",
    .details = "A rank keeps what it writes to the folder $GPUCTL_OUTPUT_DIR. The files come when the "
               "attempt has ended, "
               "however it\nended, and stay as long as the job.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct ls_options),
    .rows = {rows},
    .run = run,
};
