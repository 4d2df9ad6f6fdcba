/* SPDX-License-Identifier: Apache-2.0 */
/* Serves agents: register, heartbeat, poll, report, staging. A token that is bound to a node speaks for
 * that node only. An agent that asks again hears the same again. The last log bytes and the results of an
 * exit report are stored and checked before the exit counts. The core decides what a message changes. */
#include <stdlib.h>

#include "daemon/http/agent/excerpt.h"
#include "daemon/http/agent/exit_results.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/api/uploads.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/orders/staging_board.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/samples/samples.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

static int render_nothing(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, "{}");
    return 200;
}

/* --- register ------------------------------------------------------------------------------------------- */

struct registration {
    struct ask ask;
    struct register_message message;
    struct register_reply reply;
    bool taken;
};

static int render_registered(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct registration *registration = writer->asker;
    const struct register_reply *reply = &registration->reply;
    registration->taken = step->answer == NULL;
    text_append(out, "{");
    if (!registration->taken) {
        text_printf(out, "\"word\":%s,", step->answer);
    }
    text_printf(out, "\"incarnation\":%lld,\"beat_ms\":%lld,\"park_ms\":%lld,\"log_limit\":%lld}",
                (long long)reply->incarnation, (long long)reply->heartbeat_ms, (long long)reply->park_ms,
                (long long)reply->log_limit);
    return 200;
}

static void registered(struct ask *ask)
{
    const struct registration *registration = (struct registration *)ask;
    const struct register_message *message = &registration->message;
    struct server *server = ask->request->server;
    if (!registration->taken) {
        return;
    }
    outbox_register(server->outbox, message->name, message->boot_id, message->agent_id, server->now_ms);
    samples_register(server, message->name);
}

static void registration_finish(struct ask *ask)
{
    register_message_finish(&((struct registration *)ask)->message);
}

bool agents_register(struct request *request, struct err *err)
{
    struct server *server = request->server;
    autoask struct registration *registration = ask_create(request, sizeof *registration, render_registered);
    registration->ask.finish = registration_finish;
    if (!register_message_decode(give(request->json), &registration->message, err) ||
        !identity_acts_for(request->who, registration->message.name, err)) {
        return false;
    }
    registration->reply = (struct register_reply){.incarnation = server->config.incarnation,
                                                  .heartbeat_ms = server->config.heartbeat_ms,
                                                  .park_ms = POLL_PARK_MS,
                                                  .log_limit = server->config.log_limit};
    registration->ask.committed = registered;
    registration->ask.writer.input.kind = INPUT_REGISTER;
    registration->ask.writer.input.node_register = &registration->message;
    return ask_writer(give(registration), err);
}

/* --- heartbeat ------------------------------------------------------------------------------------------ */

struct heartbeat {
    struct ask ask;
    struct heartbeat_message message;
};

/* Whether the core has just said that the node is to have the attempt. */
static bool has_attempt(const struct heartbeat_message *message, const struct step *step, uint64_t attempt_id)
{
    bool listed = false;
    for (size_t i = 0; i < message->attempt_count && !listed; i++) {
        listed = message->attempts[i].attempt_id == attempt_id;
    }
    for (size_t i = 0; i < step->fenced_count && listed; i++) {
        listed = step->fenced[i] != attempt_id;
    }
    return listed;
}

/* Of an attempt that the node is not to have nothing is stored. */
static void drop_samples(struct heartbeat_message *message, const struct step *step)
{
    size_t kept = 0;
    for (size_t i = 0; i < message->sample_count; i++) {
        struct sample *sample = &message->samples[i];
        if (has_attempt(message, step, sample->attempt_id)) {
            message->samples[kept++] = *sample;
        } else {
            sample_finish(sample);
        }
    }
    message->sample_count = kept;
}

static int render_heartbeat(const struct writer_request *writer, const struct step *step, struct text *out)
{
    drop_samples(&((struct heartbeat *)writer->asker)->message, step);
    const struct heartbeat_reply reply = {.fenced = step->fenced, .fenced_count = step->fenced_count};
    autojson json_t *json = heartbeat_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
    return 200;
}

static void heartbeat_committed(struct ask *ask)
{
    const struct heartbeat *heartbeat = (struct heartbeat *)ask;
    struct server *server = ask->request->server;
    outbox_heartbeat(server->outbox, heartbeat->message.node, server->now_ms);
    mlflow_samples(server, heartbeat->message.node, heartbeat->message.samples,
                   heartbeat->message.sample_count);
    samples_hear(server, &heartbeat->message);
}

static void heartbeat_finish(struct ask *ask)
{
    heartbeat_message_finish(&((struct heartbeat *)ask)->message);
}

bool agents_heartbeat(struct request *request, struct err *err)
{
    autoask struct heartbeat *heartbeat = ask_create(request, sizeof *heartbeat, render_heartbeat);
    heartbeat->ask.finish = heartbeat_finish;
    if (!heartbeat_message_decode(give(request->json), &heartbeat->message, err) ||
        !identity_acts_for(request->who, heartbeat->message.node, err)) {
        return false;
    }
    heartbeat->ask.committed = heartbeat_committed;
    heartbeat->ask.writer.input.kind = INPUT_HEARTBEAT;
    heartbeat->ask.writer.input.heartbeat = &heartbeat->message;
    return ask_writer(give(heartbeat), err);
}

/* --- poll ----------------------------------------------------------------------------------------------- */

bool agents_poll(struct request *request, struct err *err)
{
    struct poll_message message = {0};
    bool good = poll_message_decode(give(request->json), &message, err) &&
                identity_acts_for(request->who, message.node, err);
    if (good) {
        request_drop_body(request);
        good = outbox_poll(request->server->outbox, request, &message, err);
    }
    poll_message_finish(&message);
    return good;
}

/* --- report --------------------------------------------------------------------------------------------- */

struct report {
    struct ask ask;
    struct report_message message;
    struct exit_results results;
    bool last; /* what it has read and written belongs into its run */
};

static void report_committed(struct ask *ask)
{
    const struct report *report = (struct report *)ask;
    if (report->last) {
        mlflow_last(ask->request->server, &report->message);
    }
}

static void report_finish(struct ask *ask)
{
    struct report *report = (struct report *)ask;
    exit_results_finish(&report->results);
    report_message_finish(&report->message);
}

/* An attempt id that nobody knows is the core's to refuse. An end counts even when the disk is full: the node
 * keeps its output, and sends the missing part when it asks how much is durable. */
static bool store_tails(struct server *server, const struct report_message *message, struct err *err)
{
    bool found = false;
    struct attempt_record attempt_id;
    if (message->tail_count == 0 || server->config.logs == NULL || space_is_full(server->space)) {
        return true;
    }
    return reader_attempt_record(server->reader, message->attempt_id, &found, &attempt_id, err) &&
           (!found || logs_store_tails(server, message, &attempt_id, err) || err->code == ERR_DISK_FULL);
}

static bool take_results(const struct request *request, struct report *report, struct err *err)
{
    const struct server *server = request->server;
    const char *node = identity_node(request->who);
    autofree char *sender = node != NULL ? uploads_owner_of_node(node) : NULL;
    const struct result_store store = {server->reader, server->uploads, sender};
    return exit_results_take(&report->results, &report->message, &store, err);
}

bool agents_report(struct request *request, struct err *err)
{
    struct server *server = request->server;
    autoask struct report *report = ask_create(request, sizeof *report, render_nothing);
    struct report_message *message = &report->message;
    report->ask.finish = report_finish;
    report->ask.committed = report_committed;
    if (!report_message_decode(give(request->json), message, err) ||
        !identity_acts_for(request->who, message->node, err) || !take_results(request, report, err) ||
        !store_tails(server, message, err)) {
        return false;
    }
    outbox_sent(server->outbox, message->node, message->attempt_id, &message->prepare_sent_us,
                &message->start_sent_us);
    report->last = message->kind == REPORT_EXITED && mlflow_wants_last(server, message);
    report->ask.writer.input.kind = INPUT_REPORT;
    report->ask.writer.input.report = message;
    return ask_writer(give(report), err);
}

/* --- staging -------------------------------------------------------------------------------------------- */

struct staging_ask {
    struct ask ask;
    struct staging_message message;
    char *text; /* owned: the message's, made fit to be shown; or NULL */
};

static void staging_ask_finish(struct ask *ask)
{
    struct staging_ask *staging = (struct staging_ask *)ask;
    staging_message_finish(&staging->message);
    free(staging->text);
}

static bool note_progress(struct request *request, const struct staging_message *message, struct err *err)
{
    struct server *server = request->server;
    if (!outbox_knows(server->outbox, message->node, message->boot_id, NULL)) {
        return err_set(err, ERR_NOT_FOUND, "node %.64s is not registered with this boot id", message->node);
    }
    autofree char *text = excerpt_fit(message->text, LIMIT_STAGING_TEXT, EXCERPT_LINE);
    staging_board_hear(server->stagings, message->node, message->key, text, server->now_ms);
    return request_reply_literal(request, 200, "{}");
}

/* Progress is only noted here; reports that change state go through the writer. */
bool agents_staging(struct request *request, struct err *err)
{
    autoask struct staging_ask *staging = ask_create(request, sizeof *staging, render_nothing);
    struct staging_message *message = &staging->message;
    staging->ask.finish = staging_ask_finish;
    if (!staging_message_decode(give(request->json), message, err) ||
        !identity_acts_for(request->who, message->node, err)) {
        return false;
    }
    if (message->state == STAGING_BUILDING) {
        return note_progress(request, message, err);
    }
    message->text = staging->text = excerpt_fit(message->text, LIMIT_STAGING_TEXT, EXCERPT_LINES);
    staging->ask.writer.input.kind = INPUT_STAGING;
    staging->ask.writer.input.staging = message;
    return ask_writer(give(staging), err);
}
