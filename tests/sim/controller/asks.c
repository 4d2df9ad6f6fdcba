/* SPDX-License-Identifier: Apache-2.0 */
/* Passes requests to the writer and answers back, in place of the resources of daemon/http: decodes a
 * request, makes an input, and replies with the writer's answer. Everything that an input borrows lives until
 * the writer is done with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/writer/spec_environment.h"
#include "proto/spec/account_limits.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/views.h"
#include "tests/sim/controller/controller_parts.h"
#include "tests/sim/people.h"

#define LEASE_MIN_MS 10000

/* One job of a batch. */
struct part {
    struct job_spec spec;
    struct spec_environment environment;
    char id[ID_LENGTH + 1];
};

/* A request under way in the writer, with everything that it borrows. */
struct ask {
    struct writer_request writer;
    uint64_t ticket;
    enum wire_kind kind;
    struct ask *next, **back; /* list of all */
    char *body, *argument;
    char id[ID_LENGTH + 1];
    struct job_spec spec;
    bool has_spec;
    struct spec_environment environment;
    struct part *parts; /* of a batch */
    struct input *inputs;
    size_t part_count;
    struct register_message registration;
    struct heartbeat_message heartbeat;
    struct report_message report;
    struct staging_message staging;
    uint8_t (*digests)[HASH_BYTES];
    struct account_limits limits;
    bool has_limits;
};

static void ask_free(struct ask *ask)
{
    *ask->back = ask->next;
    if (ask->next != NULL) {
        ask->next->back = ask->back;
    }
    if (ask->has_spec) {
        job_spec_finish(&ask->spec);
        spec_environment_finish(&ask->environment);
    }
    if (ask->has_limits) {
        account_limits_finish(&ask->limits);
    }
    register_message_finish(&ask->registration);
    heartbeat_message_finish(&ask->heartbeat);
    report_message_finish(&ask->report);
    staging_message_finish(&ask->staging);
    text_finish(&ask->writer.answer);
    for (size_t i = 0; i < ask->part_count; i++) {
        job_spec_finish(&ask->parts[i].spec);
        spec_environment_finish(&ask->parts[i].environment);
    }
    free(ask->parts);
    free(ask->inputs);
    free(ask->digests);
    free(ask->argument);
    free(ask->body);
    free(ask);
}

void asks_drop(struct controller *controller)
{
    while (controller->asks != NULL) {
        ask_free(controller->asks);
    }
}

static int render_nothing(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, "{}");
    return 200;
}

/* The nonce to repeat; 0: the registration was taken. */
static int render_registered(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, step->answer != NULL ? step->answer : "0");
    return 200;
}

static int render_heartbeat(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct heartbeat_reply reply = {.fenced = step->fenced, .fenced_count = step->fenced_count};
    autojson json_t *json = heartbeat_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
    return 200;
}

static int render_job(const struct writer_request *writer, const struct step *step, struct text *out)
{
    job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
    return writer->input.kind == INPUT_SUBMIT ? 201 : 200;
}

static void render_part(const struct writer_request *writer, size_t index, const struct step *step,
                        struct text *out)
{
    text_append(out, index == 0 ? "[" : ",");
    if (step->ok) {
        job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
    } else {
        text_append(out, "null");
    }
}

static int render_parts_end(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, "]");
    return 200;
}

static struct ask *ask_create(struct controller *controller, const struct wire_request *request)
{
    struct ask *ask = xzalloc(sizeof *ask);
    ask->kind = request->kind;
    ask->ticket = request->ticket;
    ask->next = controller->asks;
    ask->back = &controller->asks;
    if (ask->next != NULL) {
        ask->next->back = &ask->next;
    }
    controller->asks = ask;
    ask->body = xstrdup(request->body != NULL ? request->body : "");
    ask->writer.kind = WRITER_INPUT;
    ask->writer.arrived_ms = controller_now(controller);
    ask->writer.render = render_nothing;
    ask->writer.asker = ask;
    ask->writer.input.wall_ms = world_wall_ms(&controller->sim->world);
    return ask;
}

/* --- agents --------------------------------------------------------------------------------------------- */

static json_t *parse(const char *body)
{
    return json_parse(body, strlen(body), NULL);
}

static bool ask_register(struct ask *ask, struct err *err)
{
    ask->writer.input.kind = INPUT_REGISTER;
    ask->writer.input.node_register = &ask->registration;
    ask->writer.render = render_registered;
    return register_message_decode(parse(ask->body), &ask->registration, err);
}

static bool ask_heartbeat(struct ask *ask, struct err *err)
{
    ask->writer.input.kind = INPUT_HEARTBEAT;
    ask->writer.input.heartbeat = &ask->heartbeat;
    ask->writer.render = render_heartbeat;
    return heartbeat_message_decode(parse(ask->body), &ask->heartbeat, err);
}

static bool ask_report(struct ask *ask, struct err *err)
{
    ask->writer.input.kind = INPUT_REPORT;
    ask->writer.input.report = &ask->report;
    if (!report_message_decode(parse(ask->body), &ask->report, err)) {
        return false;
    }
    ask->digests = xzalloc((ask->report.result_count + 1) * sizeof *ask->digests);
    for (size_t i = 0; i < ask->report.result_count; i++) {
        struct rank_result *result = &ask->report.results[i];
        if (result->hash != NULL && text_from_hex(result->hash, ask->digests[i], HASH_BYTES)) {
            result->digest = ask->digests[i];
        }
    }
    return true;
}

static bool ask_staging(struct ask *ask, struct err *err)
{
    ask->writer.input.kind = INPUT_STAGING;
    ask->writer.input.staging = &ask->staging;
    return staging_message_decode(parse(ask->body), &ask->staging, err);
}

/* --- people --------------------------------------------------------------------------------------------- */

static void draw_id(struct controller *controller, const char *key, char out[ID_LENGTH + 1])
{
    uint8_t random[10];
    world_bytes(&controller->sim->world, random, sizeof random);
    text_id_from_bytes(random, out);
    people_issued(controller->sim->people, key, out);
}

static struct input submit_input(const char *id, const char *owner, const struct job_spec *spec,
                                 const char *body, size_t length, struct spec_environment *environment)
{
    struct input input = {
        .kind = INPUT_SUBMIT,
        .submit = {.id = id, .owner = owner, .spec = spec, .body = body, .body_length = length}};
    input.submit.environment = spec_environment_of(spec, owner, environment) ? &environment->core : NULL;
    return input;
}

static bool ask_submit(struct controller *controller, struct ask *ask, const struct wire_request *request,
                       struct err *err)
{
    json_t *json = parse(ask->body);
    if (json == NULL || !job_spec_decode(json, LEASE_MIN_MS, &ask->spec, err)) {
        return false;
    }
    ask->has_spec = true;
    draw_id(controller, request->key, ask->id);
    int64_t wall_ms = ask->writer.input.wall_ms;
    ask->writer.input =
        submit_input(ask->id, request->who, &ask->spec, ask->body, strlen(ask->body), &ask->environment);
    ask->writer.input.wall_ms = wall_ms;
    ask->writer.render = render_job;
    return true;
}

static bool ask_part(struct controller *controller, struct ask *ask, const struct wire_request *request,
                     const char *line, size_t length, struct err *err)
{
    struct part *part = &ask->parts[ask->part_count];
    json_t *json = json_parse(line, length, err);
    if (json == NULL || !job_spec_decode(json, LEASE_MIN_MS, &part->spec, err)) {
        return false;
    }
    autofree char *key = xprintf("%s.%zu", request->key, ask->part_count);
    draw_id(controller, key, part->id);
    ask->inputs[ask->part_count++] =
        submit_input(part->id, request->who, &part->spec, line, length, &part->environment);
    return true;
}

/* Of lines that all are specs; daemon/http reads what others send. */
static bool ask_batch(struct controller *controller, struct ask *ask, const struct wire_request *request,
                      struct err *err)
{
    size_t lines = 1;
    for (const char *at = ask->body; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    ask->parts = xzalloc(lines * sizeof *ask->parts);
    ask->inputs = xzalloc(lines * sizeof *ask->inputs);
    for (const char *at = ask->body; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        if (!ask_part(controller, ask, request, at, length, err)) {
            return false;
        }
        at += length + (at[length] != '\0');
    }
    ask->writer.kind = WRITER_INPUTS;
    ask->writer.inputs = ask->inputs;
    ask->writer.input_count = ask->part_count;
    ask->writer.render_each = render_part;
    ask->writer.render = render_parts_end;
    return true;
}

static bool ask_limits(struct ask *ask, const char *project, struct err *err)
{
    struct input *input = &ask->writer.input;
    autojson json_t *json = parse(ask->body);
    if (!account_limits_decode(json, ACCOUNT_PROJECT, &ask->limits, err)) {
        return false;
    }
    ask->has_limits = true;
    input->kind = INPUT_LIMITS;
    input->limits.kind = ACCOUNT_PROJECT;
    input->limits.name = project;
    input->limits.limits = &ask->limits;
    input->limits.text = ask->body;
    input->limits.force = true;
    return true;
}

static bool ask_node(struct ask *ask, const char *verb, const char *name)
{
    struct input *input = &ask->writer.input;
    input->kind = INPUT_NODE;
    input->node.name = name;
    input->node.by = "operator";
    input->node.action = strcmp(verb, "drain") == 0    ? NODE_ACTION_DRAIN
                         : strcmp(verb, "resume") == 0 ? NODE_ACTION_RESUME
                                                       : NODE_ACTION_FENCE;
    return true;
}

/* path: VERB/NAME */
static bool ask_job(struct ask *ask, const struct wire_request *request, struct err *err)
{
    struct input *input = &ask->writer.input;
    ask->argument = xstrdup(request->path);
    char *name = strchr(ask->argument, '/');
    *name++ = '\0';
    const char *verb = ask->argument;
    if (strcmp(verb, "limit") == 0) {
        return ask_limits(ask, name, err);
    }
    if (strcmp(verb, "drain") == 0 || strcmp(verb, "resume") == 0 || strcmp(verb, "fence") == 0) {
        return ask_node(ask, verb, name);
    }
    ask->writer.render = render_job;
    if (strcmp(verb, "cancel") == 0) {
        input->kind = INPUT_CANCEL;
        input->cancel.id = name;
        input->cancel.by = request->who;
    } else if (strcmp(verb, "hold") == 0 || strcmp(verb, "release") == 0) {
        input->kind = *verb == 'h' ? INPUT_HOLD : INPUT_RELEASE;
        input->hold.id = name;
        input->hold.by = request->who;
    } else if (strcmp(verb, "preempt") == 0) {
        input->kind = INPUT_PREEMPT;
        input->preempt.id = name;
        input->preempt.by = request->who;
    } else {
        input->kind = INPUT_CHANGE;
        input->change.id = name;
        input->change.by = request->who;
        input->change.if_seq = -1;
        input->change.sets_priority = true;
        input->change.priority = atoll(ask->body);
    }
    return true;
}

static void set_key(struct ask *ask, const struct wire_request *request)
{
    autofree char *scope =
        xprintf("%s\n%s\n%s", request->who, request->path != NULL ? request->path : "", request->key);
    ask->writer.keyed = true;
    hash_bytes(scope, strlen(scope), ask->writer.scope);
    hash_bytes(ask->body, strlen(ask->body), ask->writer.body);
}

/* --- both ways ------------------------------------------------------------------------------------------ */

static bool make_input(struct controller *controller, struct ask *ask, const struct wire_request *request,
                       struct err *err)
{
    switch (request->kind) {
    case WIRE_REGISTER:
        return ask_register(ask, err);
    case WIRE_HEARTBEAT:
        return ask_heartbeat(ask, err);
    case WIRE_REPORT:
        return ask_report(ask, err);
    case WIRE_STAGING:
        return ask_staging(ask, err);
    case WIRE_SUBMIT:
        return ask_submit(controller, ask, request, err);
    case WIRE_BATCH:
        return ask_batch(controller, ask, request, err);
    case WIRE_JOB:
        return ask_job(ask, request, err);
    case WIRE_POLL:
        break;
    }
    abort();
}

void asks_serve(struct controller *controller, const struct wire_request *request)
{
    struct err err = {0};
    struct ask *ask = ask_create(controller, request);
    if (!make_input(controller, ask, request, &err)) {
        wire_reply(controller->sim->wire, request->ticket, err_http(err.code), err.text);
        ask_free(ask);
        return;
    }
    if (request->key != NULL) {
        set_key(ask, request);
    }
    if (writer_ask(controller->writer, &ask->writer)) {
        controller_asked(controller);
    } else {
        wire_reply(controller->sim->wire, request->ticket, 503, NULL);
        ask_free(ask);
    }
}

static void answer_registration(struct controller *controller, const struct ask *ask)
{
    const char *nonce = ask->writer.answer.bytes;
    if (strcmp(nonce, "0") == 0) {
        orders_registered(controller, ask->registration.name, ask->registration.boot_id);
    }
    autofree char *text =
        xprintf("{\"word\":%s,\"incarnation\":%u,\"beat_ms\":%lld,\"park_ms\":25000}", nonce,
                store_incarnation(controller->store), (long long)controller->heartbeat_ms);
    wire_reply(controller->sim->wire, ask->ticket, 200, text);
}

static void answer(struct controller *controller, const struct ask *ask)
{
    const struct writer_request *writer = &ask->writer;
    if (writer->status == 0) {
        world_note(&controller->sim->world, "refused: %s", writer->error.text);
        wire_reply(controller->sim->wire, ask->ticket, err_http(writer->error.code), writer->error.text);
    } else if (ask->kind == WIRE_REGISTER) {
        answer_registration(controller, ask);
    } else {
        autofree char *text = xstrndup(writer->answer.bytes, writer->answer.length);
        wire_reply(controller->sim->wire, ask->ticket, writer->status, text);
    }
}

void asks_answer(struct controller *controller, struct writer_request *answered)
{
    while (answered != NULL) {
        struct writer_request *next = answered->next;
        answer(controller, answered->asker);
        ask_free(answered->asker);
        answered = next;
    }
}

void controller_serve(void *closure, const struct wire_request *request)
{
    struct controller *controller = ((struct sim *)closure)->controller;
    if (!controller->up) {
        wire_reply(controller->sim->wire, request->ticket, 0, NULL); /* connection refused */
        return;
    }
    if (request->kind != WIRE_POLL) {
        asks_serve(controller, request);
        return;
    }
    struct poll_message message;
    if (poll_message_decode(parse(request->body), &message, NULL)) {
        orders_poll(controller, &message, request->ticket);
        poll_message_finish(&message);
    }
}
