/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl admin retention`: removes what is old now, or says what would go. */
#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

struct retention_options {
    bool dry_run;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct retention_options, dry_run, 0, "dry-run", "only say what would go"), ROW_FORMAT,
    ROWS_END};

static void say_count(const json_t *report, const char *member, const char *one, const char *more,
                      struct text *out)
{
    long long count = json_integer_value(json_object_get(report, member));
    text_printf(out, "%lld %s", count, count == 1 ? one : more);
}

static void say_bytes(const json_t *report, const char *member, struct text *out)
{
    char size[32];
    print_bytes(json_integer_value(json_object_get(report, member)), size);
    text_printf(out, " (%s)", size);
}

/* "3 jobs, output of 2 more jobs (1.2 GiB in all), ..." */
static void say_report(const json_t *report, struct text *out)
{
    say_count(report, "jobs", "job", "jobs", out);
    text_append(out, ", the output of ");
    say_count(report, "logs", "job that stays", "jobs that stay", out);
    text_append(out, ", all output together");
    say_bytes(report, "log_bytes", out);
    text_append(out, ", ");
    say_count(report, "blobs", "payload or result", "payloads and results", out);
    say_bytes(report, "blob_bytes", out);
    text_append(out, ", ");
    say_count(report, "nodes", "node", "nodes", out);
    text_append(out, ", ");
    say_count(report, "runs", "run of MLflow's", "runs of MLflow's", out);
    if (json_integer_value(json_object_get(report, "file_bytes")) > 0) {
        text_append(out, "; the databases became smaller");
        say_bytes(report, "file_bytes", out);
    }
    if (json_is_true(json_object_get(report, "clock_doubtful"))) {
        text_append(out, "; nothing goes by its age for a day: the controller's clock is far ahead of what "
                         "was known before");
    }
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct retention_options *options = call->options;
    autotext struct text said = {0};
    autojson json_t *body = json_pack("{s:b}", "dry_run", options->dry_run);
    autojson json_t *report = api_ask(call->api, "POST", body, err, "/v1/retention");
    if (report != NULL) {
        say_report(report, &said);
    }
    return answer_note(call, report, err, "%s: %s", options->dry_run ? "would remove" : "removed",
                       said.bytes);
}

const struct verb verb_retention = {
    .name = "retention",
    .summary = "Remove what is old now, or say what would go.",
    .details =
        "The controller does so each hour by itself, and when its disk gets low. Jobs go 90 days after their "
        "end, their output\n"
        "after 30 days or beyond half of the disk, nodes that are not heard after 30 days, payloads and "
        "results a day "
        "after the last job\n"
        "that names them, MLflow's runs never unless that is set: see gpuctld --keep-jobs, --keep-logs, "
        "--logs-share, --keep-nodes, --keep-runs, and `gpuctl "
        "quotas set project\n"
        "NAME --keep-jobs DAYS`. Past use, and the run times that estimates are made of, stay.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct retention_options),
    .rows = {rows},
    .run = run,
};
