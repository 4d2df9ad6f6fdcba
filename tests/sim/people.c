/* SPDX-License-Identifier: Apache-2.0 */
/* The submissions of people. Each submission has its own key. A person repeats a request until there is an
 * answer, and remembers the answer literally. judge.c checks whether the controller kept its word. */
#include "tests/sim/people.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define PEOPLE      4
#define PATIENCE_MS 5000
#define LATE_MS     400000
#define FUNCTION    "Z3B1Y3RsLWZ1bmN0aW9uIDEgcHl0aG9uPTMuMTEKLg==" /* the shortest payload */

struct person {
    struct people *people;
    struct link_state link;
    char name[8];
};

/* An id that the controller drew for a submission, one for each try that reached it. */
struct issued {
    char id[17];
    const struct submission *submission;
    UT_hash_handle hh;
};

struct people {
    struct sim *sim;
    struct issued *issued;
    struct person persons[PEOPLE];
    struct submission submissions[SUBMISSIONS_MAX];
    size_t count;
    int64_t pace_ms;
    bool resting;
};

static const lifetime forever = 1;

/* --- submissions ---------------------------------------------------------------------------------------- */

static const char *pick(struct world *world, const char *const *choices, int64_t count)
{
    return choices[world_between(world, 0, count - 1)];
}

/* Draws a spec; its name tells the ranks how to behave. */
static char *draw_spec(struct world *world, struct submission *submission)
{
    static const char *const manners[] = {"short", "short", "short", "long", "fail", "hang"};
    static const char *const disconnects[] = {"requeue", "requeue", "keep", "fail"};
    static const char *const projects[] = {"red", "blue"};
    static const char *const data_sets[] = {"a", "b"};
    const char *manner = pick(world, manners, 6);
    bool by_command = world_of(world, 60) || strcmp(manner, "hang") == 0;
    submission->gpus = world_between(world, 1, world_of(world, 70) ? 2 : 6);
    submission->retries = world_between(world, 0, 2);
    submission->infra_retries = world_of(world, 80) ? 100 : world_between(world, 0, 2);
    submission->function = !by_command;
    submission->limited = strcmp(manner, "hang") == 0 || world_of(world, 30);
    submission->project = pick(world, projects, 2);
    struct text spec = {0};
    text_printf(&spec, "{\"name\":\"%s\",\"gpus\":%lld,\"project\":\"%s\",\"priority\":%lld", manner,
                (long long)submission->gpus, submission->project, (long long)world_between(world, -2, 2));
    text_append(&spec,
                by_command ? ",\"command\":[\"train\"]" : ",\"function\":{\"inline\":\"" FUNCTION "\"}");
    text_printf(&spec, ",\"retries\":%lld,\"infra_retries\":%lld", (long long)submission->retries,
                (long long)submission->infra_retries);
    text_printf(&spec, ",\"on_disconnect\":\"%s\",\"lease_s\":%lld", pick(world, disconnects, 4),
                (long long)world_between(world, 20, 120));
    if (submission->limited) {
        text_printf(&spec, ",\"time_limit_s\":%lld", (long long)world_between(world, 20, 400));
    }
    if (world_of(world, 20)) {
        text_printf(&spec, ",\"keep_on_failure_s\":%lld", (long long)world_between(world, 1, 200));
    }
    if (world_of(world, 50)) {
        text_append(&spec, world_of(world, 50) ? ",\"gpu_type\":\"A10\"" : ",\"gpu_type\":\"H100\"");
    }
    if (world_of(world, 20)) {
        text_append(&spec, ",\"use_reserved_pool\":false");
    }
    if (world_of(world, 10)) {
        text_append(&spec, ",\"hold\":true");
    }
    if (world_of(world, 15)) {
        text_append(&spec, ",\"environment\":{\"requirements\":[\"numpy==1.0\"]}");
        if (world_of(world, 50)) {
            text_printf(&spec, ",\"inputs\":[\"https://h/%s\"]", pick(world, data_sets, 2));
        }
    }
    text_append(&spec, "}");
    return spec.bytes;
}

static void submitted(void *closure, const struct wire_answer *answer)
{
    struct submission *submission = closure;
    autojson json_t *json =
        answer->body != NULL ? json_parse(answer->body, strlen(answer->body), NULL) : NULL;
    submission->status = answer->status;
    if (answer->status / 100 == 2 && json != NULL) {
        snprintf(submission->id, sizeof submission->id, "%s", json_string_value(json_object_get(json, "id")));
    }
}

static void batch_submitted(void *closure, const struct wire_answer *answer)
{
    struct submission *first = closure;
    autojson json_t *json =
        answer->body != NULL ? json_parse(answer->body, strlen(answer->body), NULL) : NULL;
    for (size_t i = 0; i < first->batch; i++) {
        const json_t *id = json_object_get(json_array_get(json, i), "id");
        bool made = answer->status / 100 == 2 && id != NULL;
        first[i].status = answer->status / 100 != 2 || made ? answer->status : 422;
        if (made) {
            snprintf(first[i].id, sizeof first[i].id, "%s", json_string_value(id));
        }
    }
}

/* Uses a key again with another body: it must be refused, whatever happened to the first request. */
static void misused(void *closure, const struct wire_answer *answer)
{
    struct sim *sim = closure;
    world_check(&sim->world, answer->status == 409 || answer->status == 422, "I4",
                "a key that was used with another body was answered with %d", answer->status);
}

static uint64_t ask(struct person *person, enum wire_kind kind, char *path, char *body, const char *key,
                    void (*done)(void *, const struct wire_answer *), void *closure)
{
    return wire_send(person->people->sim->wire, &(struct wire_call){.link = &person->link,
                                                                    .kind = kind,
                                                                    .path = path,
                                                                    .body = body,
                                                                    .key = key != NULL ? xstrdup(key) : NULL,
                                                                    .who = person->name,
                                                                    .timeout_ms = PATIENCE_MS,
                                                                    .persistent = true,
                                                                    .done = done,
                                                                    .closure = closure,
                                                                    .owner = &forever});
}

/* A submission of the request with that key. */
static struct submission *add_submission(struct person *person, const char *request)
{
    struct people *people = person->people;
    struct world *world = &people->sim->world;
    struct submission *submission = &people->submissions[people->count++];
    *submission = (struct submission){.who = person->name};
    snprintf(submission->request, sizeof submission->request, "%s", request);
    snprintf(submission->key, sizeof submission->key, "%s", request);
    submission->body = draw_spec(world, submission);
    return submission;
}

static void submit_batch(struct person *person, const char *request, size_t count)
{
    struct submission *first = &person->people->submissions[person->people->count];
    struct text lines = {0};
    for (size_t i = 0; i < count; i++) {
        struct submission *submission = add_submission(person, request);
        snprintf(submission->key, sizeof submission->key, "%s.%zu", request, i);
        text_printf(&lines, "%s\n", submission->body);
    }
    first->batch = count;
    world_note(&person->people->sim->world, "%s submits %s: %s", person->name, request, lines.bytes);
    ask(person, WIRE_BATCH, xstrdup("batch"), text_take(&lines), request, batch_submitted, first);
}

static void submit(struct person *person)
{
    struct people *people = person->people;
    struct world *world = &people->sim->world;
    char request[sizeof people->submissions[0].request];
    size_t room = SUBMISSIONS_MAX - people->count;
    size_t count = world_of(world, 20) ? (size_t)world_between(world, 2, 4) : 1;
    snprintf(request, sizeof request, "key-%zu", people->count);
    if (count > 1 && count <= room) {
        submit_batch(person, request, count);
    } else if (room > 0) {
        struct submission *submission = add_submission(person, request);
        world_note(world, "%s submits %s: %s", person->name, request, submission->body);
        ask(person, WIRE_SUBMIT, NULL, xstrdup(submission->body), request, submitted, submission);
    }
}

static void misuse(struct person *person)
{
    struct people *people = person->people;
    const struct submission *submission =
        &people->submissions[world_between(&people->sim->world, 0, (int64_t)people->count - 1)];
    if (submission->id[0] != '\0' && strcmp(submission->who, person->name) == 0) {
        bool batch = strcmp(submission->key, submission->request) != 0;
        ask(person, batch ? WIRE_BATCH : WIRE_SUBMIT, batch ? xstrdup("batch") : NULL,
            xstrdup("{\"gpus\":1,\"command\":[\"other\"]}"), submission->request, misused, people->sim);
    }
}

/* --- what people do to their jobs ----------------------------------------------------------------------- */

static void canceled(void *closure, const struct wire_answer *answer)
{
    struct submission *submission = closure;
    submission->cancel_acknowledged = submission->cancel_acknowledged || answer->status / 100 == 2;
}

static void heard(void *closure, const struct wire_answer *answer)
{
}

static void meddle(struct person *person)
{
    static const char *const verbs[] = {"cancel",  "cancel",  "hold",    "release",
                                        "release", "preempt", "priority"};
    struct people *people = person->people;
    struct world *world = &people->sim->world;
    struct submission *submission = &people->submissions[world_between(world, 0, (int64_t)people->count - 1)];
    if (submission->id[0] == '\0') {
        return;
    }
    const char *verb = pick(world, verbs, 7);
    world_note(world, "%s: %s %s", person->name, verb, submission->id);
    char *body = xprintf("%lld", (long long)world_between(world, -5, 5));
    ask(person, WIRE_JOB, xprintf("%s/%s", verb, submission->id), body, NULL,
        strcmp(verb, "cancel") == 0 ? canceled : heard, submission);
}

static void act(void *closure)
{
    struct person *person = closure;
    struct people *people = person->people;
    struct world *world = &people->sim->world;
    if (people->resting) {
        return;
    }
    if (people->count == 0 || world_of(world, 60)) {
        submit(person);
    } else if (world_of(world, 20)) {
        misuse(person);
    } else {
        meddle(person);
    }
    world_in(world, world_between(world, 100, 2 * people->pace_ms), act, person, NULL);
}

/* --- rest ----------------------------------------------------------------------------------------------- */

static void release_all(void *closure)
{
    struct people *people = closure;
    for (size_t i = 0; i < people->count; i++) {
        struct submission *submission = &people->submissions[i];
        if (submission->id[0] != '\0') {
            ask(&people->persons[0], WIRE_JOB, xprintf("release/%s", submission->id), xstrdup(""), NULL,
                heard, submission);
        }
    }
}

void people_come_to_rest(struct people *people)
{
    people->resting = true;
    world_in(&people->sim->world, PATIENCE_MS, release_all, people, NULL);
    world_in(&people->sim->world, LATE_MS, release_all, people,
             NULL); /* when all earlier requests have arrived */
}

bool people_are_served(const struct people *people)
{
    for (size_t i = 0; i < people->count; i++) {
        if (people->submissions[i].status == 0) {
            return false;
        }
    }
    return true;
}

/* --- who wanted what ------------------------------------------------------------------------------------ */

void people_issued(struct people *people, const char *key, const char *id)
{
    for (size_t i = 0; i < people->count; i++) {
        if (strcmp(people->submissions[i].key, key) == 0) {
            struct issued *issued = world_keep(&people->sim->world, sizeof *issued);
            issued->submission = &people->submissions[i];
            snprintf(issued->id, sizeof issued->id, "%s", id);
            HASH_ADD_STR(people->issued, id, issued);
        }
    }
}

size_t people_submissions(const struct people *people, const struct submission **ret_submissions)
{
    *ret_submissions = people->submissions;
    return people->count;
}

const struct submission *people_submission_of(const struct people *people, const char *id)
{
    struct issued *issued;
    HASH_FIND_STR(people->issued, id, issued);
    return issued != NULL ? issued->submission : NULL;
}

struct people *people_create(struct sim *sim)
{
    struct people *people = xzalloc(sizeof *people);
    people->sim = sim;
    people->pace_ms = world_between(&sim->world, 30000, 120000);
    for (size_t i = 0; i < PEOPLE; i++) {
        struct person *person = &people->persons[i];
        person->people = people;
        snprintf(person->name, sizeof person->name, "user-%zu", i);
        person->link.name = person->name;
        world_in(&sim->world, world_between(&sim->world, 100, 20000), act, person, NULL);
    }
    return people;
}

void people_destroy(struct people *people)
{
    if (people != NULL) {
        for (size_t i = 0; i < people->count; i++) {
            free(people->submissions[i].body);
        }
        HASH_CLEAR(hh, people->issued);
        free(people);
    }
}
