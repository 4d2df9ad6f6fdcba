/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a change of a waiting job that lets it start. Every suggestion was tried: a scheduling pass with the
 * changed job instead of this one would have started it. It tries the changes that cost the person least
 * first, and stops at the first that helps. */
#include "daemon/core/explain/advice.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/trial.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "proto/limits.h"

#define LEAST_PART 4 /* a limit below this part of the estimated run time is not suggested */

struct advisor {
    struct core *core;
    struct job *job;
    const struct outlook *outlook;
    const struct ahead *ahead;
    struct draft draft; /* the job without changes */
    struct text *out;
};

static bool helps(struct advisor *advisor, const struct draft *draft)
{
    return trial_starts(advisor->core, draft, advisor->job);
}

static void begin(struct advisor *advisor, const char *field)
{
    text_printf(advisor->out, "{\"field\":\"%s\",\"value\":", field);
}

static void end(struct advisor *advisor, const struct text *sentence)
{
    text_append(advisor->out, ",\"text\":");
    text_json_string(advisor->out, sentence->bytes, sentence->length);
    text_append(advisor->out, "}");
}

static void write_text(struct advisor *advisor, const char *field, const char *value, const char *format)
{
    autotext struct text sentence = {0};
    text_append(&sentence, format);
    text_append(&sentence, value);
    text_append(&sentence, " it would start now");
    begin(advisor, field);
    text_json_string(advisor->out, value, strlen(value));
    end(advisor, &sentence);
}

/* --- possible changes ----------------------------------------------------------------------------------- */

/* A time limit that ends the job before other jobs need the GPUs that are free now. A limit that is a small
 * part of the run time makes no sense. */
static bool shorter(struct advisor *advisor)
{
    struct draft draft = advisor->draft;
    int64_t gap_ms = place_gap_ms(advisor->core, advisor->job, &advisor->outlook->reservations) / 1000 * 1000;
    int64_t least_ms = queue_entry_of(advisor->core, advisor->job).estimate_ms / LEAST_PART;
    bool shorter =
        gap_ms > 0 && gap_ms >= least_ms && (draft.time_limit_ms == 0 || gap_ms < draft.time_limit_ms);
    draft.time_limit_ms = gap_ms;
    if (!shorter || !helps(advisor, &draft)) {
        return false;
    }
    char duration[32];
    autotext struct text sentence = {0};
    text_from_duration_ms(gap_ms, duration, sizeof duration);
    text_printf(&sentence, "with a time limit of %s it would start now, and end before the GPUs are needed",
                duration);
    begin(advisor, "time_limit_s");
    text_append_int(advisor->out, gap_ms / 1000);
    end(advisor, &sentence);
    return true;
}

static bool anywhere(struct advisor *advisor)
{
    struct draft draft = advisor->draft;
    if (draft.request.host_id == NULL) {
        return false;
    }
    draft.request.host_id = NULL;
    if (!helps(advisor, &draft)) {
        return false;
    }
    autotext struct text sentence = {0};
    text_append(&sentence, "with remote=true it would start now, on other hosts");
    begin(advisor, "remote");
    text_append(advisor->out, "true");
    end(advisor, &sentence);
    return true;
}

static bool other_kind(struct advisor *advisor)
{
    bool reserved = advisor->draft.request.use_reserved == USE_RESERVED_FALSE;
    struct draft draft = advisor->draft;
    draft.request.use_reserved = reserved ? USE_RESERVED_TRUE : USE_RESERVED_FALSE;
    if (draft.request.pool != NULL || !helps(advisor, &draft)) {
        return false;
    }
    autotext struct text sentence = {0};
    text_printf(&sentence, "on %s GPUs it would start now", reserved ? "reserved" : "on-demand");
    begin(advisor, "use_reserved_pool");
    text_append(advisor->out, reserved ? "true" : "false");
    end(advisor, &sentence);
    return true;
}

/* Tries the first partition of each pool; partitions are listed by pool. */
static bool other_pool(struct advisor *advisor)
{
    const char *own = advisor->draft.request.pool, *tried = NULL;
    int tries = 0;
    for (const struct partition *partition = advisor->core->partitions;
         own != NULL && partition != NULL && tries < LIMIT_CHANGE_TRIES; partition = partition->next) {
        struct draft draft = advisor->draft;
        draft.request.pool = partition->pool;
        draft.request.use_reserved = USE_RESERVED_AUTO;
        if (strcmp(partition->pool, own) == 0 || (tried != NULL && strcmp(partition->pool, tried) == 0)) {
            continue;
        }
        tried = partition->pool;
        tries++;
        if (helps(advisor, &draft)) {
            write_text(advisor, "pool", partition->pool, "in pool ");
            return true;
        }
    }
    return false;
}

static bool seen_before(const struct core *core, const struct partition *partition)
{
    for (const struct partition *other = core->partitions; other != partition; other = other->next) {
        if (strcasecmp(other->type, partition->type) == 0) {
            return true;
        }
    }
    return false;
}

static bool other_type(struct advisor *advisor)
{
    const char *own = advisor->draft.request.gpu_type;
    int tries = 0;
    for (const struct partition *partition = advisor->core->partitions;
         own != NULL && partition != NULL && tries < LIMIT_CHANGE_TRIES; partition = partition->next) {
        struct draft draft = advisor->draft;
        draft.request.gpu_type = partition->type;
        if (strcasecmp(partition->type, own) == 0 || seen_before(advisor->core, partition)) {
            continue;
        }
        tries++;
        if (helps(advisor, &draft)) {
            write_text(advisor, "gpu_type", partition->type, "on GPUs of type ");
            return true;
        }
    }
    return false;
}

static bool helps_with(struct advisor *advisor, int64_t gpus)
{
    struct draft draft = advisor->draft;
    draft.request.units = gpus;
    return helps(advisor, &draft);
}

/* The largest number of GPUs that helps, as far as halving finds it; 0: none. */
static int64_t largest_that_helps(struct advisor *advisor)
{
    int64_t low = 0, high = advisor->draft.request.units - 1;
    high = high < advisor->core->free ? high : advisor->core->free;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (helps_with(advisor, middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static bool fewer(struct advisor *advisor)
{
    int64_t gpus = largest_that_helps(advisor);
    if (gpus == 0) {
        return false;
    }
    autotext struct text sentence = {0};
    text_printf(&sentence, "with %lld GPU%s instead of %lld it would start now", (long long)gpus,
                gpus == 1 ? "" : "s", (long long)advisor->draft.request.units);
    begin(advisor, "gpus");
    text_append_int(advisor->out, gpus);
    end(advisor, &sentence);
    return true;
}

/* With the CPUs or the memory that belong to its GPUs instead of those that it names. */
static bool usual_part(struct advisor *advisor)
{
    struct draft draft = advisor->draft;
    const struct amount each = draft.request.each;
    draft.request.each = (struct amount){0, each.memory_bytes};
    bool cpus = each.millicpus > 0 && helps(advisor, &draft);
    draft.request.each = (struct amount){each.millicpus, 0};
    if (!cpus && (each.memory_bytes == 0 || !helps(advisor, &draft))) {
        return false;
    }
    autotext struct text sentence = {0};
    text_printf(&sentence, "with the %s that belong%s to its GPUs it would start now",
                cpus ? "CPUs" : "memory", cpus ? "" : "s");
    begin(advisor, cpus ? "cpus" : "memory");
    text_append(advisor->out, "null");
    end(advisor, &sentence);
    return true;
}

/* A priority above that of all jobs ahead. */
static bool sooner(struct advisor *advisor)
{
    struct draft draft = advisor->draft;
    int64_t highest = draft.priority;
    for (size_t i = 0; i < advisor->ahead->count; i++) {
        int64_t priority = advisor->ahead->jobs[i]->priority;
        highest = priority > highest ? priority : highest;
    }
    bool possible = advisor->core->config.policy == POLICY_DEFAULT && advisor->ahead->count > 0 &&
                    highest < LIMIT_PRIORITY;
    draft.priority = (int32_t)highest + 1;
    if (!possible || !helps(advisor, &draft)) {
        return false;
    }
    autotext struct text sentence = {0};
    text_printf(&sentence, "with priority %d it would start now, before %zu other job%s", (int)draft.priority,
                advisor->ahead->count, advisor->ahead->count == 1 ? "" : "s");
    begin(advisor, "priority");
    text_append_int(advisor->out, draft.priority);
    end(advisor, &sentence);
    return true;
}

void advice_write(struct core *core, struct job *job, const struct outlook *outlook,
                  const struct ahead *ahead, struct text *out)
{
    struct advisor advisor = {
        .core = core, .job = job, .outlook = outlook, .ahead = ahead, .draft = draft_of(job), .out = out};
    bool found = core_free(core) > 0 &&
                 (shorter(&advisor) || anywhere(&advisor) || other_kind(&advisor) || other_pool(&advisor) ||
                  other_type(&advisor) || sooner(&advisor) || usual_part(&advisor) || fewer(&advisor));
    if (!found) {
        text_append(out, "null");
    }
}
