/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl audit`: who did what. audit_chain.c verifies it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/cluster/audit_chain.h"
#include "client/cli/common/answer.h"
#include "client/cli/controller/connect.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define PAGES "/v1/audit?limit=200"

/* --- list --- */

struct list_options {
    const char *owner, *path;
    int64_t since_ms; /* 0: not given */
    int64_t limit;
};

static const struct option_row list_rows[] = {
    ROW_TEXT(struct list_options, owner, 0, "owner", "NAME", "only what this person did"),
    ROW_TEXT(struct list_options, path, 0, "path", "PATH",
             "only what has a path of the API that begins so: /v1/nodes/n1/"),
    ROW_DURATION(struct list_options, since_ms, 0, "since", "only what was done so long ago at most"),
    ROW_INT(struct list_options, limit, 0, "limit", "N", "at most so many, newest first (default 200)", 1,
            LIMIT_LISTED, .absent = LIMIT_LIST_ROWS),
    ROW_FORMAT,
    ROWS_END};

static void show_answer(const json_t *row, const char *member, struct text *out)
{
    const char *code = json_string_of(row, "code");
    cell_plain(row, member, out);
    if (code != NULL) {
        text_printf(out, " %s", code);
    }
}

static const struct column columns[] = {
    COLUMN("SEQ", "seq", cell_plain),           COLUMN("AT", "at", cell_time),
    COLUMN("OWNER", "owner", cell_plain),       COLUMN("ROLE", "role", cell_plain),
    COLUMN("FROM", "address", cell_plain),      COLUMN("METHOD", "method", cell_plain),
    COLUMN("PATH", "path", cell_plain),         COLUMN("ANSWER", "status", show_answer),
    COLUMN("MADE", "subject", cell_plain),      WIDE_COLUMN("TOKEN", "token", cell_plain),
    WIDE_COLUMN("DETAIL", "detail", cell_plain)};

static const struct listing audit = {.name = "audit", LIST_COLUMNS(columns), .key = "seq"};

static void make_path(const char *owner, const char *beginning, int64_t since_ms, struct text *path)
{
    text_append(path, PAGES);
    api_query(path, "owner", owner);
    api_query(path, "path", beginning);
    if (since_ms > 0) {
        text_printf(path, "&since=%lld", (long long)(clock_wall_ms() - since_ms));
    }
}

static bool list_them(const struct call *call, int *ret_exit, struct err *err)
{
    const struct list_options *options = call->options;
    autotext struct text path = {0}, out = {0};
    make_path(options->owner, options->path, options->since_ms, &path);
    autojson json_t *rows = api_list(call->api, path.bytes, "audit", "cursor", options->limit, err);
    if (rows == NULL) {
        return false;
    }
    list_print(call, &audit, rows, &out);
    return print_out(&out, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List who did what, the newest first.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .rows = {list_rows},
    .run = list_them,
};

/* --- export --- */

struct export_options {
    const char *out;
    int64_t since_ms;
};

static const struct option_row export_rows[] = {
    ROW_TEXT(struct export_options, out, 0, "out", "FILE", "write it there instead of to stdout"),
    ROW_DURATION(struct export_options, since_ms, 0, "since", "only what was done so long ago at most"),
    ROWS_END};

static bool export_page(const json_t *page, void *closure, struct err *err)
{
    FILE *file = closure;
    const json_t *rows = pages_list(page, "audit", err);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        autofree char *line = json_text(json_array_get(rows, i));
        if (fprintf(file, "%s\n", line) < 0) {
            return err_errno(err, "cannot write the audit");
        }
    }
    return rows != NULL;
}

static bool export_to(const struct call *call, FILE *file, struct err *err)
{
    const struct export_options *options = call->options;
    autotext struct text path = {0};
    make_path(NULL, NULL, options->since_ms, &path);
    return pages_each(call->api, path.bytes, "cursor", export_page, file, err) &&
           (fflush(file) == 0 || err_errno(err, "cannot write the audit"));
}

static bool export_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct export_options *options = call->options;
    if (options->out == NULL) {
        return export_to(call, stdout, err);
    }
    FILE *file = fopen(options->out, "we");
    if (file == NULL) {
        return err_errno(err, "cannot write %s", options->out);
    }
    bool good = export_to(call, file, err);
    return (fclose(file) == 0 || !good || err_errno(err, "cannot write %s", options->out)) && good;
}

static const struct verb verb_export = {
    .name = "export",
    .summary = "Print all of it as JSON, a row a line, the newest first.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct export_options),
    .rows = {export_rows},
    .run = export_run,
};

/* --- verify --- */

struct verify_options {
    const char *head;
};

static const struct option_row verify_rows[] = {
    ROW_TEXT(struct verify_options, head, 0, "head", "SEQ:HASH",
             "what an earlier verify printed: the row must be there with this hash"),
    ROWS_END};

static bool take_page(const json_t *page, void *closure, struct err *err)
{
    const json_t *rows = pages_list(page, "audit", err);
    bool good = rows != NULL;
    for (size_t i = 0; good && i < json_array_size(rows); i++) {
        good = audit_chain_take(closure, json_array_get(rows, i), err);
    }
    return good;
}

static bool take_file(struct audit_chain *chain, const char *path, struct err *err)
{
    autofclose FILE *file = fopen(path, "re");
    return file != NULL ? audit_chain_take_file(chain, file, err) : err_errno(err, "cannot read %s", path);
}

static bool report(const struct audit_chain *chain, struct err *err)
{
    autotext struct text out = {0};
    if (chain->count == 0) {
        print_note("the audit has no rows");
        return true;
    }
    print_note("%lld row%s, from %lld on: each fits the one before it. Note the line below elsewhere: with "
               "--head it "
               "shows later that nothing up to there was changed",
               (long long)chain->count, chain->count == 1 ? "" : "s", (long long)chain->newer.seq);
    text_printf(&out, "%s\n", chain->head);
    return print_out(&out, err);
}

static bool take_all(const struct call *call, struct audit_chain *chain, struct err *err)
{
    autoapi struct api *api = NULL;
    return connect_controller(call, false, &api, err) &&
           pages_each(api, PAGES, "cursor", take_page, chain, err);
}

static bool verify_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct verify_options *options = call->options;
    struct audit_chain chain = {0};
    bool good =
        audit_chain_read_head(options->head, &chain, err) &&
        (call->rest_count > 0 ? take_file(&chain, call->rest[0], err) : take_all(call, &chain, err)) &&
        audit_chain_end(&chain, err) && report(&chain, err);
    audit_chain_finish(&chain);
    return good;
}

static const struct verb verb_verify = {
    .name = "verify",
    .arguments = "[FILE]",
    .summary = "Check that no row was changed, put in or taken out: on the controller, or in an export.",
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct verify_options),
    .rows = {verify_rows},
    .run = verify_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_export, &verb_verify, NULL};

const struct verb verb_audit = {
    .name = "audit",
    .summary = "List, export and verify who did what.",
    .nested = nested,
};
