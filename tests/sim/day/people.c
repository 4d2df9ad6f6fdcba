/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a day's submissions from kinds of jobs, with the rhythm of an office, and makes the inputs for them:
 * a spec is written as a person would send it, and read as the controller reads it. */
#include "tests/sim/day/people.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/writer/spec_environment.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/account_limits.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/staging.h"

#define LEASE_MIN_MS MINUTE_MS
#define FUNCTION     "Z3B1Y3RsLWZ1bmN0aW9uIDEgcHl0aG9uPTMuMTEKLg==" /* the shortest payload */
#define ADMIN        "operator"

/* How many submissions come in each hour, in proportion; the day begins and ends in the afternoon. */
static const int rhythm[24] = {11, 10, 7, 5, 4, 3,  3,  2, 1,  1,  1,  1,
                               1,  2,  3, 6, 9, 11, 12, 9, 10, 12, 12, 12};

static const char *const owners[] = {"ann", "ben",  "cem", "dana", "eva", "finn",
                                     "gus", "hana", "ivo", "jo",   "kim", "lea"};
#define OWNERS ((int64_t)(sizeof owners / sizeof *owners))

static const struct kind kinds[] = {
    {.names = {"eval-nightly", "eval-checkpoint", "smoke-test"},
     .count = 800,
     .projects = {"vision", "language", "ranking"},
     .types = {"L4", "L4|A100"},
     .gpus = {1},
     .minutes_min = 2,
     .minutes_max = 20,
     .busy_percent = 55,
     .memory_percent = 40},
    {.names = {"embed", "score_batch", "tokenize"},
     .count = 240,
     .projects = {"language", "ranking"},
     .types = {"L4"},
     .gpus = {1},
     .minutes_min = 1,
     .minutes_max = 12,
     .busy_percent = 70,
     .memory_percent = 30,
     .function = true},
    {.names = {"finetune-lora", "distill", "train-ranker"},
     .count = 250,
     .projects = {"language", "ranking", "interns"},
     .types = {"L4", "A100"},
     .gpus = {1, 1, 2, 4},
     .minutes_min = 20,
     .minutes_max = 150,
     .busy_percent = 88,
     .memory_percent = 75,
     .trains = true},
    {.names = {"pretrain-vit", "train-segmenter", "train-asr"},
     .count = 130,
     .projects = {"vision", "speech", "language"},
     .types = {"H100", "A100", "H100|A100"},
     .gpus = {8, 8, 8, 4},
     .minutes_min = 40,
     .minutes_max = 240,
     .busy_percent = 94,
     .memory_percent = 88,
     .trains = true,
     .environment = true},
    {.names = {"pretrain-7b", "pretrain-asr-large"},
     .count = 22,
     .projects = {"language", "speech"},
     .types = {"H100", "H100", "A100"},
     .gpus = {16, 16, 32},
     .minutes_min = 90,
     .minutes_max = 420,
     .busy_percent = 97,
     .memory_percent = 93,
     .trains = true},
    {.names = {"sweep-lr", "sweep-augment", "decode-shards"},
     .count = 14,
     .projects = {"vision", "speech", "interns"},
     .types = {"L4", "A100"},
     .gpus = {1},
     .tasks_min = 16,
     .tasks_max = 64,
     .minutes_min = 8,
     .minutes_max = 40,
     .busy_percent = 82,
     .memory_percent = 60,
     .trains = true},
    {.names = {"notebook"},
     .count = 30,
     .projects = {"vision", "interns", "speech"},
     .types = {"L4", "A100"},
     .gpus = {1},
     .minutes_min = 45,
     .minutes_max = 300,
     .busy_percent = 1,
     .memory_percent = 25},
};

struct people {
    struct day *day;
    struct plan *plans;
    size_t count;
    struct plan *taken; /* by id */
    char *broken_key;   /* of an environment that cannot be made; NULL: none yet */
};

/* --- drawing -------------------------------------------------------------------------------------------- */

static const char *pick(struct world *world, const char *const *choices, int64_t room)
{
    int64_t count = 0;
    while (count < room && choices[count] != NULL) {
        count++;
    }
    return choices[world_between(world, 0, count - 1)];
}

static int64_t draw_moment(struct world *world)
{
    int64_t all = 0, hour = 0;
    for (size_t i = 0; i < 24; i++) {
        all += rhythm[i];
    }
    for (int64_t left = world_between(world, 0, all - 1); left >= rhythm[hour]; hour++) {
        left -= rhythm[hour];
    }
    return hour * DAY_HOUR + world_between(world, 0, DAY_HOUR - 1);
}

/* More short jobs than long ones. */
static int64_t draw_time(struct world *world, const struct kind *kind)
{
    int64_t least_ms = kind->minutes_min * MINUTE_MS;
    int64_t span_ms = (kind->minutes_max - kind->minutes_min) * MINUTE_MS;
    int64_t a = world_between(world, 0, span_ms), b = world_between(world, 0, span_ms);
    return least_ms + (a < b ? a : b);
}

static enum fate draw_fate(struct world *world)
{
    int64_t percent = world_between(world, 0, 99);
    return percent < 7    ? FATE_FAILS
           : percent < 9  ? FATE_OUT_OF_MEMORY
           : percent < 10 ? FATE_CRASHES
           : percent < 11 ? FATE_NOT_THERE
           : percent < 13 ? FATE_TOO_LONG
                          : FATE_WELL;
}

static int64_t gpu_choices(const struct kind *kind)
{
    int64_t count = 0;
    while (count < 4 && kind->gpus[count] != 0) {
        count++;
    }
    return count;
}

static void draw(struct world *world, const struct kind *kind, struct plan *plan)
{
    /* a project has some people of its own, and everybody strays */
    *plan = (struct plan){.kind = kind,
                          .at_ms = draw_moment(world),
                          .name = pick(world, kind->names, 4),
                          .project = pick(world, kind->projects, 3),
                          .type = pick(world, kind->types, 3),
                          .gpus = kind->gpus[world_between(world, 0, gpu_choices(kind) - 1)],
                          .lasts_ms = draw_time(world, kind),
                          .fate = draw_fate(world)};
    int64_t home = (int64_t)strlen(plan->project) * 5;
    plan->owner = owners[(home + world_between(world, 0, world_of(world, 85) ? 2 : OWNERS - 1)) % OWNERS];
    plan->tasks = kind->tasks_max > 0 ? world_between(world, kind->tasks_min, kind->tasks_max) : 0;
    if (plan->fate == FATE_TOO_LONG) {
        plan->limit_ms = plan->lasts_ms * 2 / 3;
    } else if (world_of(world, 60)) {
        plan->limit_ms = plan->lasts_ms * world_between(world, 12, 40) / 10;
    }
    plan->limit_ms -= plan->limit_ms % MINUTE_MS;
    if (world_of(world, 4)) {
        plan->cancel_ms =
            world_of(world, 50) ? world_between(world, 20 * SECOND_MS, 10 * MINUTE_MS) : plan->lasts_ms / 2;
    }
    if (world_of(world, 1)) {
        plan->held_ms = world_of(world, 50) ? -1 : world_between(world, MINUTE_MS, 2 * DAY_HOUR);
    }
    plan->priority = world_of(world, 6) ? world_between(world, -20, 50) : 0;
    plan->retried = world_of(world, 40);
    plan->broken = kind->environment && world_of(world, 3);
}

/* --- specs ---------------------------------------------------------------------------------------------- */

static void write_command(const struct plan *plan, struct text *out)
{
    if (plan->kind->function) {
        text_append(out, ",\"function\":{\"inline\":\"" FUNCTION "\"}");
    } else if (plan->fate == FATE_NOT_THERE) {
        text_append(out, ",\"command\":[\"pyhton\",\"train.py\"]");
    } else if (strncmp(plan->name, "sweep", 5) == 0) {
        text_append(out, ",\"command\":[\"python\",\"train.py\",\"--lr\",\"{lr}\",\"--batch\",\"{batch}\"]");
    } else {
        text_printf(out, ",\"command\":[\"python\",\"%s.py\",\"--config\",\"configs/%s.yaml\"]",
                    plan->kind->trains ? "train" : "main", plan->name);
    }
}

static void write_tasks(const struct plan *plan, struct text *out)
{
    if (strncmp(plan->name, "sweep", 5) == 0) {
        text_append(out, ",\"sweep\":{\"lr\":[0.1,0.03,0.01,0.003],\"batch\":[");
        for (int64_t i = 0; i < plan->tasks / 4; i++) {
            text_printf(out, "%s%lld", i > 0 ? "," : "", 16LL * (i + 1));
        }
        text_append(out, "]}");
    } else if (plan->tasks > 0) {
        text_printf(out, ",\"array\":{\"tasks\":%lld,\"parallel\":8}", (long long)plan->tasks);
    }
}

static char *write_spec(const struct plan *plan)
{
    struct text out = {0};
    text_printf(&out, "{\"name\":\"%s\",\"project\":\"%s\",\"gpus\":%lld,\"gpu_type\":\"%s\"", plan->name,
                plan->project, (long long)plan->gpus, plan->type);
    write_command(plan, &out);
    write_tasks(plan, &out);
    if (plan->limit_ms > 0) {
        text_printf(&out, ",\"time_limit_s\":%lld", (long long)(plan->limit_ms / SECOND_MS));
    }
    if (plan->kind->trains) {
        text_printf(&out, ",\"retries\":1,\"env\":{\"SEED\":\"%lld\"}", (long long)(plan->at_ms % 100));
    }
    if (plan->kind->environment) {
        text_printf(&out, ",\"environment\":{\"requirements\":[\"%s\",\"numpy==1.26.4\"]}",
                    plan->broken ? "torhc==2.4.0" : "torch==2.4.0");
    }
    if (plan->gpus >= 16) {
        text_append(&out, ",\"placement\":\"pack\",\"on_disconnect\":\"requeue\"");
    }
    if (plan->priority != 0) {
        text_printf(&out, ",\"priority\":%lld", (long long)plan->priority);
    }
    text_append(&out, plan->held_ms != 0 ? ",\"hold\":true}" : "}");
    return out.bytes;
}

/* --- submissions ---------------------------------------------------------------------------------------- */

struct act {
    struct people *people;
    struct plan *plan;
};

static void released(void *closure)
{
    const struct act *act = closure;
    const struct input input = {.kind = INPUT_RELEASE, .hold = {.id = act->plan->id, .by = act->plan->owner}};
    day_ask(act->people->day, &input, NULL, NULL);
}

/* One that has ended meanwhile is refused. */
static void canceled(void *closure)
{
    const struct act *act = closure;
    const struct input input = {.kind = INPUT_CANCEL,
                                .cancel = {.id = act->plan->id, .by = act->plan->owner}};
    day_ask(act->people->day, &input, NULL, NULL);
}

static void arrange(struct act *act)
{
    struct world *world = &act->people->day->world;
    if (act->plan->held_ms > 0) {
        world_in(world, act->plan->held_ms, released, act, NULL);
    }
    if (act->plan->cancel_ms > 0) {
        world_in(world, act->plan->cancel_ms, canceled, act, NULL);
    }
}

static void submitted(void *closure)
{
    struct act *act = closure;
    struct plan *plan = act->plan;
    struct day *day = act->people->day;
    struct err err;
    struct job_spec spec;
    struct spec_environment environment;
    struct blob_row requirements = {0};
    autotext struct text lines = {0};
    autofree char *body = write_spec(plan);
    day_must(job_spec_decode(json_parse(body, strlen(body), &err), LEASE_MIN_MS, &spec, &err), &err);
    autofree char *shown = job_spec_shown(&spec);
    uint8_t random[10];
    world_bytes(&day->world, random, sizeof random);
    text_id_from_bytes(random, plan->id);
    HASH_ADD_STR(act->people->taken, id, plan); /* before its orders come */
    struct input input = {.kind = INPUT_SUBMIT,
                          .submit = {.id = plan->id,
                                     .owner = plan->owner,
                                     .spec = &spec,
                                     .body = body,
                                     .body_length = strlen(body),
                                     .shown = shown}};
    if (spec_environment_of(&spec, plan->owner, &environment)) {
        input.submit.environment = &environment.core;
        staging_requirements_text(&spec, &lines);
        requirements = (struct blob_row){
            .size = (int64_t)lines.length, .bytes = lines.bytes, .created_ms = world_wall_ms(&day->world)};
        hash_bytes(lines.bytes, lines.length, requirements.hash);
        input.submit.requirements = &requirements;
        if (plan->broken && act->people->broken_key == NULL) {
            act->people->broken_key = xstrdup(environment.core.key);
        }
    }
    if (day_ask(day, &input, NULL, NULL)) {
        arrange(act);
    } else {
        HASH_DEL(act->people->taken, plan);
    }
    spec_environment_finish(&environment);
    job_spec_finish(&spec);
}

/* --- the administrator ---------------------------------------------------------------------------------- */

static void limit(struct people *people, const char *project, const char *text)
{
    struct err err;
    struct account_limits limits;
    autojson json_t *json = json_parse(text, strlen(text), &err);
    day_must(account_limits_decode(json, ACCOUNT_PROJECT, &limits, &err), &err);
    const struct input input = {
        .kind = INPUT_LIMITS,
        .limits = {.kind = ACCOUNT_PROJECT, .name = project, .limits = &limits, .text = text, .force = true}};
    day_must(day_ask(people->day, &input, NULL, NULL), &(struct err){.text = "limits are refused"});
    account_limits_finish(&limits);
}

static void set_limits(void *closure)
{
    limit(closure, "language", "{\"quota\":{\"H100\":48},\"weight\":2}");
    limit(closure, "vision", "{\"quota\":{\"H100\":24}}");
    limit(closure, "interns",
          "{\"max_gpus\":{\"*\":12},\"max_running_jobs\":10,\"gpu_hours\":{\"hours\":400,"
          "\"period_s\":604800}}");
}

static void drain(void *closure)
{
    const struct people *people = closure;
    const struct input input = {.kind = INPUT_NODE,
                                .node = {.name = "a100-07",
                                         .action = NODE_ACTION_DRAIN,
                                         .by = ADMIN,
                                         .reason = "a fan of GPU 3 is to be replaced"}};
    day_must(day_ask(people->day, &input, NULL, NULL), &(struct err){.text = "drain is refused"});
}

static void window(struct people *people, const struct window_row *row)
{
    const struct input input = {.kind = INPUT_WINDOW, .window = {.row = row}};
    day_must(day_ask(people->day, &input, NULL, NULL), &(struct err){.text = "a window is refused"});
}

/* One that has begun when the day ends, and one that is to come. */
static void make_windows(void *closure)
{
    struct people *people = closure;
    int64_t end_ms = world_wall_ms(&people->day->world) + DAY_MS - people->day->world.now_ms;
    window(people, &(struct window_row){.id = "cabling2wl4aaaaa",
                                        .nodes = "l4-15,l4-16",
                                        .from_ms = end_ms - DAY_HOUR,
                                        .until_ms = end_ms + DAY_HOUR,
                                        .reason = "new cables",
                                        .owner = ADMIN});
    window(people, &(struct window_row){.id = "firmware2a100aaa",
                                        .nodes = "a100-01,a100-02",
                                        .from_ms = end_ms + 3 * DAY_HOUR,
                                        .until_ms = end_ms + 5 * DAY_HOUR,
                                        .hard = true,
                                        .reason = "firmware of the switches",
                                        .owner = ADMIN});
}

/* --- the whole ------------------------------------------------------------------------------------------ */

struct people *people_create(struct day *day)
{
    struct world *world = &day->world;
    struct people *people = xzalloc(sizeof *people);
    people->day = day;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        people->count += (size_t)kinds[i].count;
    }
    people->plans = xzalloc(people->count * sizeof *people->plans);
    struct plan *plan = people->plans;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int j = 0; j < kinds[i].count; j++, plan++) {
            draw(world, &kinds[i], plan);
            struct act *act = world_keep(world, sizeof *act);
            *act = (struct act){people, plan};
            world_in(world, plan->at_ms, submitted, act, NULL);
        }
    }
    world_in(world, 0, set_limits, people, NULL);
    world_in(world, 18 * DAY_HOUR, make_windows, people, NULL);
    world_in(world, 20 * DAY_HOUR, drain, people, NULL);
    return people;
}

void people_destroy(struct people *people)
{
    HASH_CLEAR(hh, people->taken);
    free(people->broken_key);
    free(people->plans);
    free(people);
}

bool people_key_is_broken(const struct people *people, const char *key)
{
    return people->broken_key != NULL && strcmp(people->broken_key, key) == 0;
}

const struct plan *people_plan(const struct people *people, const char *id)
{
    struct plan *plan;
    HASH_FIND_STR(people->taken, id, plan);
    return plan;
}

json_t *people_tell(const struct people *people)
{
    json_t *told = json_object();
    for (const struct plan *plan = people->taken; plan != NULL; plan = plan->hh.next) {
        json_t *one = json_pack("{ss,ss,sI,sI}", "owner", plan->owner, "project", plan->project, "gpus",
                                (json_int_t)plan->gpus, "tasks", (json_int_t)plan->tasks);
        json_object_set_new(told, plan->id, one);
    }
    return told;
}
