/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/usage. The helper thread of the samples adds the hours up with a reader that is opened for
 * the question, because one about three years may look at a million rows, and few are asked. */
#include "daemon/http/usage/usage.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/samples/samples.h"
#include "daemon/http/usage/tally.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

#define DAY_MS (24 * HOUR_MS)

struct usage {
    struct prices prices;
    const char *currency, *store_path; /* of the configuration */
};

/* A question that is being answered. */
struct asked {
    struct request_work work; /* first */
    const struct usage *usage;
    struct use_question question;
    struct tally_by by;
    char *project, *owner; /* owned; what the question borrows */
    int64_t now_ms;
    bool ok;
    struct err err;
    struct text json;
};

/* --- the answer ----------------------------------------------------------------------------------------- */

static void write_head(const struct asked *asked, struct text *out)
{
    const struct use_question *question = &asked->question;
    member_write_time(out, "{\"since\":", question->since_ms);
    member_write_time(out, ",\"until\":", question->until_ms);
    member_write_int_or_null(
        out, ",\"step_s\":", question->step_ms == INT64_MAX ? -1 : question->step_ms / 1000, -1);
    member_write_text(out, ",\"currency\":", asked->usage->currency);
    text_append(out, ",");
}

static bool add_up(struct asked *asked, struct reader *reader, struct tally *tally)
{
    autorows struct rows rows = reader_use(reader, &asked->question, &asked->err);
    struct use_record record;
    while (rows_use(&rows, &record)) {
        if (!tally_add(tally, &record, &asked->err)) {
            return false;
        }
    }
    return !rows.failed;
}

static void answer(struct task *task)
{
    struct asked *asked = (struct asked *)task;
    struct tally *tally = tally_create(&asked->question, asked->by, &asked->usage->prices, asked->now_ms);
    struct reader *reader = reader_open(asked->usage->store_path, &asked->err);
    asked->ok = reader != NULL && add_up(asked, reader, tally);
    reader_close(reader);
    if (asked->ok) {
        write_head(asked, &asked->json);
        tally_write(tally, &asked->json);
        text_append(&asked->json, "}");
    }
    tally_destroy(tally);
}

static void reply(struct request_work *work)
{
    struct asked *asked = (struct asked *)work;
    if (asked->ok) {
        request_reply_json(work->request, 200, &asked->json);
    } else {
        request_fail(work->request, &asked->err);
    }
}

static void asked_free(struct request_work *work)
{
    struct asked *asked = (struct asked *)work;
    text_finish(&asked->json);
    free(asked->project);
    free(asked->owner);
    free(asked);
}

/* --- the question --------------------------------------------------------------------------------------- */

static int64_t next_hour(int64_t at_ms)
{
    return (at_ms + HOUR_MS - 1) / HOUR_MS * HOUR_MS;
}

/* Whole hours: the use of an hour is not known in parts. */
static bool read_span(const struct request *request, struct use_question *question, struct err *err)
{
    int64_t until_ms = request->server->wall_ms;
    if (!query_moment(request->query, "until", &until_ms, err)) {
        return false;
    }
    int64_t since_ms = until_ms - DAY_MS;
    if (!query_moment(request->query, "since", &since_ms, err)) {
        return false;
    }
    if (since_ms >= until_ms) {
        return err_field(err, ERR_FIELD, "since", NULL, "since must be earlier than until");
    }
    question->since_ms = since_ms - since_ms % HOUR_MS;
    question->until_ms = next_hour(until_ms);
    return true;
}

static bool read_step(const struct request *request, struct use_question *question, struct err *err)
{
    const char *step = query_text(request->query, "step");
    question->step_ms = step == NULL                ? INT64_MAX
                        : strcmp(step, "hour") == 0 ? HOUR_MS
                        : strcmp(step, "day") == 0  ? DAY_MS
                                                    : 0;
    return question->step_ms != 0 || err_field(err, ERR_FIELD, "step", NULL, "step must be hour or day");
}

static bool read_name(struct asked *asked, const char *name, size_t length, struct err *err)
{
    struct {
        const char *name;
        bool *on;
    } known[] = {{"project", &asked->question.by_project},
                 {"owner", &asked->question.by_owner},
                 {"pool", &asked->by.pool},
                 {"gpu_type", &asked->by.gpu_type},
                 {"reserved", &asked->question.by_reserved}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0) {
            return *known[i].on = true;
        }
    }
    return err_field(err, ERR_FIELD, "by",
                     "by has names with commas between: project, owner, pool, gpu_type, reserved",
                     "there is no \"%.*s\" to divide by", length < 64 ? (int)length : 64, name);
}

static bool read_by(const struct request *request, struct asked *asked, struct err *err)
{
    const char *by = query_text(request->query, "by");
    bool good = true;
    while (good && by != NULL && *by != '\0') {
        size_t length = strcspn(by, ",");
        good = read_name(asked, by, length, err);
        by += length + (by[length] == ',');
    }
    return good;
}

static bool read_whose(struct request *request, struct asked *asked, struct err *err)
{
    const char *project = NULL, *owner = NULL;
    if (!query_name(request->query, "project", &project, err) || !query_owner(request->query, &owner, err)) {
        return false;
    }
    const char *scope = request_scope_in(request, project);
    if (scope != NULL && owner != NULL && strcmp(scope, owner) != 0) {
        return err_field(err, ERR_FORBIDDEN, "owner",
                         "leave owner away; operators see everybody's, members of a project its",
                         "you see only your own use");
    }
    asked->project = project != NULL ? xstrdup(project) : NULL;
    asked->owner = scope != NULL ? xstrdup(scope) : owner != NULL ? xstrdup(owner) : NULL;
    asked->question.project = asked->project;
    asked->question.owner = asked->owner;
    request_shows_all_of(request, asked->owner, project);
    return true;
}

bool usage_show(struct request *request, struct err *err)
{
    const struct usage *usage = request->server->usage;
    struct asked *asked = xzalloc(sizeof *asked);
    asked->usage = usage;
    asked->now_ms = request->server->wall_ms;
    if (!read_span(request, &asked->question, err) || !read_step(request, &asked->question, err) ||
        !read_by(request, asked, err) || !read_whose(request, asked, err)) {
        asked_free(&asked->work);
        return false;
    }
    request_work_begin(&asked->work, request, asked_free);
    return request_work_give(&asked->work, request->server->samples->worker, answer, reply);
}

/* --- life ----------------------------------------------------------------------------------------------- */

bool usage_open(struct server *server, struct err *err)
{
    struct usage *usage = server->usage = xzalloc(sizeof *usage);
    usage->currency = server->config.currency;
    usage->store_path = server->config.store_path;
    return prices_read(server->config.prices, &usage->prices, err);
}

void usage_close(struct server *server)
{
    if (server->usage != NULL) {
        prices_finish(&server->usage->prices);
        free(server->usage);
        server->usage = NULL;
    }
}
