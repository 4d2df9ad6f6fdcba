/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearses a preemption. Victims are chosen as the policy would choose them, among all running work with a
 * lower priority or a later place in the queue. Nothing is stopped. */
#include "daemon/core/explain/rehearse.h"

#include <string.h>

#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/field.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/mention.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "daemon/core/scheduler/preempt.h"
#include "proto/base/clock.h"

struct cost {
    int64_t loss_ms;  /* of GPU time */
    int64_t grace_ms; /* the longest of the victims */
};

static int64_t loss_ms(const struct core *core, const struct attempt *attempt)
{
    return availability_held_ms(core, attempt) * request_gpus(&attempt->job->job_class->request);
}

static void write_victim(const struct core *core, const struct job *of, const struct attempt *attempt,
                         struct text *out)
{
    const struct job *job = attempt->job;
    field_write_text(out, "{\"id\":", mention_allowed(core, of, job) ? job->id : NULL);
    text_printf(out, ",\"gpus\":%lld,\"priority\":%d", (long long)request_gpus(&job->job_class->request),
                (int)job->priority);
    field_write_seconds(out, ",\"ran_s\":", availability_held_ms(core, attempt));
    field_write_seconds(out, ",\"loss_gpu_s\":", loss_ms(core, attempt));
    text_append(out, ",\"nodes\":[");
    for (size_t i = 0; i < attempt->member_count; i++) {
        const char *name = attempt->members[i]->node->name;
        text_append(out, i > 0 ? "," : "");
        text_json_string(out, name, strlen(name));
    }
    text_append(out, "]}");
}

static struct cost cost_of(const struct core *core, const struct victims *victims)
{
    struct cost cost = {0};
    for (size_t i = 0; i < victims->count; i++) {
        const struct job *job = victims->items[i]->job;
        cost.loss_ms += loss_ms(core, victims->items[i]);
        cost.grace_ms = job->grace_ms > cost.grace_ms ? job->grace_ms : cost.grace_ms;
    }
    return cost;
}

/* Whether the policy would preempt by itself. */
static bool is_automatic(struct core *core, const struct queue_entry *entry, const struct search *search)
{
    struct victims victims;
    struct fit fit;
    bool found = preempt_choose(core, entry, search, &victims, &fit) && victims.count > 0;
    victims_finish(&victims);
    free(fit.shares);
    return found;
}

static void write_start(const struct core *core, const struct cost *cost, struct text *out)
{
    char earliest[32], latest[32];
    clock_format_wall(core->wall_ms, earliest, sizeof earliest);
    clock_format_wall(core->wall_ms + cost->grace_ms, latest, sizeof latest);
    text_printf(out, ",\"start\":{\"earliest_at\":\"%s\",\"latest_at\":\"%s\"}", earliest, latest);
}

static void say(const struct victims *victims, const struct cost *cost, size_t ahead, struct text *out)
{
    autotext struct text sentence = {0};
    char lost[32];
    text_from_duration_ms(cost->loss_ms, lost, sizeof lost);
    text_printf(&sentence, "%zu job%s would have to go, and lose %s of GPU time", victims->count,
                victims->count == 1 ? "" : "s", lost);
    if (ahead > 0) {
        text_printf(&sentence, "; %zu job%s ahead, and may take the GPUs first", ahead,
                    ahead == 1 ? " is" : "s are");
    }
    text_json_string(out, sentence.bytes, sentence.length);
}

static void write_found(const struct core *core, const struct job *job, const struct victims *victims,
                        const struct ahead *ahead, bool automatic, struct text *out)
{
    const struct cost cost = cost_of(core, victims);
    text_printf(out, "\"possible\":true,\"automatic\":%s,\"victims\":[", automatic ? "true" : "false");
    for (size_t i = 0; i < victims->count; i++) {
        text_append(out, i > 0 ? "," : "");
        write_victim(core, job, victims->items[i], out);
    }
    field_write_seconds(out, "],\"loss_gpu_s\":", cost.loss_ms);
    text_printf(out, ",\"ahead\":%zu", ahead->count);
    write_start(core, &cost, out);
    text_append(out, ",\"text\":");
    say(victims, &cost, ahead->count, out);
}

void rehearse_write(struct core *core, const struct job *job, const struct ahead *ahead, struct text *out)
{
    const struct queue_entry entry = queue_entry_of(core, job);
    const struct search search = place_search(core, job, VIEW_FUTURE, NULL, READINESS_READY);
    struct victims victims;
    struct fit fit;
    if (preempt_rehearse(core, &entry, &search, &victims, &fit)) {
        bool automatic = is_automatic(core, &entry, &search);
        write_found(core, job, &victims, ahead, automatic, out);
    } else {
        text_printf(
            out,
            "\"possible\":false,\"automatic\":false,\"victims\":[],\"loss_gpu_s\":0,\"ahead\":%zu,"
            "\"start\":null,\"text\":\"what runs with a lower priority or a later turn is not enough\"",
            ahead->count);
    }
    victims_finish(&victims);
    free(fit.shares);
}
