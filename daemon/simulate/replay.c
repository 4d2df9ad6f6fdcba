/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a trace: runs the clock and simulates the nodes and their messages. The core makes all decisions,
 * and equal inputs give equal outcomes. Nodes take no time: a gang runs from the moment of its start for as
 * long as the trace says. figures.c evaluates the outcome. */
#include "daemon/simulate/replay.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/core.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define NODE_NAME_BYTES 16
#define UNTYPED         "gpu"
#define NEVER_SILENT_MS (1LL << 50) /* heartbeat timeout: simulated nodes send none */

/* One node's part of a running gang. */
struct part {
    char node[NODE_NAME_BYTES];
    int64_t first_rank, local_ranks;
};

struct running {
    size_t job; /* index in the trace */
    uint64_t attempt_id;
    int64_t start_ms, end_ms;
    struct part *parts; /* owned */
    size_t part_count;
};

/* The state of a job between its submission and its end. */
struct progress {
    int64_t ran_ms;    /* in preempted attempts */
    uint64_t stopping; /* the attempt that is being preempted; 0: none */
};

/* A gang that the core has just placed. */
struct gang {
    int64_t job_key;
    uint64_t attempt_id;
    struct part *parts; /* owned until it runs */
    size_t part_count, room;
};

struct simulation {
    const struct trace *trace;
    const struct replay_options *options;
    bool typed;
    struct core *core;
    int64_t now_ms;
    struct outcome *outcome;
    size_t moment_room;
    int64_t used_gpus, queued_jobs;

    struct progress *progress; /* by index of the job in the trace */
    size_t *jobs_by_key;       /* indices in the trace, by the core's key less 1 */
    int64_t key_count;
    struct running *heap; /* ordered by end, then job; the earliest end first */
    size_t heap_count;
    struct gang *fresh; /* placements to be started */
    size_t fresh_count, fresh_room;
    size_t stopping_count;                      /* attempts that are being preempted */
    struct rank_exit ranks[LIMIT_NODE_DEVICES]; /* of the node that reports their exits */
};

static const char *const limits_words[] = {"trace", "exact", "none"};

const char *limits_text(enum limits limits)
{
    return limits_words[limits];
}

bool limits_from_text(const char *text, enum limits *ret_limits)
{
    for (int limits = LIMITS_TRACE; limits <= LIMITS_NONE; limits++) {
        if (strcmp(text, limits_words[limits]) == 0) {
            *ret_limits = (enum limits)limits;
            return true;
        }
    }
    return false;
}

/* --- the heap of running gangs -------------------------------------------------------------------------- */

static bool ends_before(const struct running *a, const struct running *b)
{
    return a->end_ms != b->end_ms ? a->end_ms < b->end_ms : a->job < b->job;
}

static void swap(struct running *a, struct running *b)
{
    struct running kept = *a;
    *a = *b;
    *b = kept;
}

static void heap_push(struct simulation *simulation, const struct running *running)
{
    struct running *heap = simulation->heap;
    size_t at = simulation->heap_count++;
    heap[at] = *running;
    for (; at > 0 && ends_before(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2) {
        swap(&heap[at], &heap[(at - 1) / 2]);
    }
}

static struct running heap_take(struct simulation *simulation, size_t at)
{
    struct running *heap = simulation->heap;
    struct running taken = heap[at];
    heap[at] = heap[--simulation->heap_count];
    for (; at > 0 && at < simulation->heap_count && ends_before(&heap[at], &heap[(at - 1) / 2]);
         at = (at - 1) / 2) {
        swap(&heap[at], &heap[(at - 1) / 2]);
    }
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < simulation->heap_count; child++) {
            least = ends_before(&heap[child], &heap[least]) ? child : least;
        }
        if (least == at) {
            return taken;
        }
        swap(&heap[at], &heap[least]);
        at = least;
    }
}

/* --- steps of the core ---------------------------------------------------------------------------------- */

static struct gang *gang_of(struct simulation *simulation, uint64_t attempt_id)
{
    for (size_t i = simulation->fresh_count; i > 0; i--) {
        if (simulation->fresh[i - 1].attempt_id == attempt_id) {
            return &simulation->fresh[i - 1];
        }
    }
    abort(); /* members come after their attempt */
}

static void note_attempt(struct simulation *simulation, const struct attempt_row *row)
{
    XGROW(simulation->fresh, simulation->fresh_count, simulation->fresh_room, 16);
    simulation->fresh[simulation->fresh_count++] =
        (struct gang){.job_key = row->job_key, .attempt_id = row->attempt_id};
}

static void note_member(struct simulation *simulation, const struct member_row *row)
{
    struct gang *gang = gang_of(simulation, row->attempt_id);
    XGROW(gang->parts, gang->part_count, gang->room, 1);
    struct part *part = &gang->parts[gang->part_count++];
    *part = (struct part){.first_rank = row->first_rank, .local_ranks = row->local_ranks};
    snprintf(part->node, sizeof part->node, "%s", row->node);
}

/* Notes a preemption: nothing else stops an attempt here. If an attempt is stopped in the step that placed
 * it, a single row says both. A stop of several nodes may be written more than once. */
static void note_stop(struct simulation *simulation, const struct attempt_row *row)
{
    struct progress *progress = &simulation->progress[simulation->jobs_by_key[row->job_key - 1]];
    if (row->state == ATTEMPT_STOPPING && progress->stopping != row->attempt_id) {
        assert(row->cause == CAUSE_PREEMPTED);
        progress->stopping = row->attempt_id;
        simulation->stopping_count++;
    }
}

/* Runs one step; the changes that the core has written are what has happened. */
static bool step(struct simulation *simulation, struct input *input, char **ret_refusal)
{
    struct step step;
    input->wall_ms = simulation->now_ms + 1;
    core_step(simulation->core, input, simulation->now_ms, &step);
    simulation->outcome->steps++;
    for (size_t i = 0; i < step.change_count; i++) {
        if (step.changes[i].kind == CHANGE_ATTEMPT_INSERT) {
            note_attempt(simulation, &step.changes[i].attempt);
            note_stop(simulation, &step.changes[i].attempt);
        } else if (step.changes[i].kind == CHANGE_ATTEMPT_UPDATE) {
            note_stop(simulation, &step.changes[i].attempt);
        } else if (step.changes[i].kind == CHANGE_MEMBER_INSERT) {
            note_member(simulation, &step.changes[i].member);
        }
    }
    bool ok = step.ok;
    if (!ok && ret_refusal != NULL && *ret_refusal == NULL) {
        *ret_refusal = xstrdup(step.err.text);
    }
    step_finish(&step);
    return ok;
}

static void must(struct simulation *simulation, struct input *input)
{
    bool ok = step(simulation, input, NULL);
    assert(ok);
}

static void tell(struct simulation *simulation, const char *node, struct report_message *report)
{
    report->node = node;
    report->boot_id = "boot";
    must(simulation, &(struct input){.kind = INPUT_REPORT, .report = report});
}

/* --- simulated events ----------------------------------------------------------------------------------- */

static void note_moment(struct simulation *simulation)
{
    struct outcome *outcome = simulation->outcome;
    struct cluster_moment *last =
        outcome->moment_count > 0 ? &outcome->moments[outcome->moment_count - 1] : NULL;
    if (last == NULL || last->at_ms != simulation->now_ms) {
        XGROW(outcome->moments, outcome->moment_count, simulation->moment_room, 1024);
        last = &outcome->moments[outcome->moment_count++];
    }
    *last = (struct cluster_moment){simulation->now_ms, simulation->used_gpus, simulation->queued_jobs};
}

static void run(struct simulation *simulation, const struct gang *gang)
{
    size_t job = simulation->jobs_by_key[gang->job_key - 1];
    struct fate *fate = &simulation->outcome->fates[job];
    int64_t ran_ms = simulation->progress[job].ran_ms;
    fate->start_ms = ran_ms == 0 && fate->preemptions == 0 ? simulation->now_ms : fate->start_ms;
    fate->end_ms = simulation->now_ms + simulation->trace->jobs[job].duration_ms - ran_ms;
    simulation->used_gpus += simulation->trace->jobs[job].gpus;
    simulation->queued_jobs--;
    heap_push(simulation, &(struct running){.job = job,
                                            .attempt_id = gang->attempt_id,
                                            .start_ms = simulation->now_ms,
                                            .end_ms = fate->end_ms,
                                            .parts = gang->parts,
                                            .part_count = gang->part_count});
}

/* Starts new gangs. A gang over several nodes starts when all its nodes report that they are prepared, which
 * they do at once. */
static void start_fresh(struct simulation *simulation)
{
    while (simulation->fresh_count > 0) {
        struct gang gang = simulation->fresh[--simulation->fresh_count];
        for (size_t i = 0; gang.part_count > 1 && i < gang.part_count; i++) {
            tell(simulation, gang.parts[i].node,
                 &(struct report_message){.attempt_id = gang.attempt_id,
                                          .kind = REPORT_PREPARED,
                                          .address = "10.0.0.1",
                                          .master_port = DEFAULT_PORT_FIRST});
        }
        run(simulation, &gang);
    }
}

static void end_part(struct simulation *simulation, const struct running *running, const struct part *part)
{
    struct rank_exit *ranks = simulation->ranks;
    for (int64_t i = 0; i < part->local_ranks; i++) {
        ranks[i] = (struct rank_exit){.rank = part->first_rank + i};
    }
    tell(simulation, part->node,
         &(struct report_message){.attempt_id = running->attempt_id,
                                  .kind = REPORT_EXITED,
                                  .ranks = ranks,
                                  .rank_count = (size_t)part->local_ranks,
                                  .flushed = true});
}

/* Removes the gang from the heap: its ranks have exited on all nodes. */
static struct running leave(struct simulation *simulation, size_t at)
{
    struct running running = heap_take(simulation, at);
    simulation->used_gpus -= simulation->trace->jobs[running.job].gpus;
    for (size_t i = 0; i < running.part_count; i++) {
        end_part(simulation, &running, &running.parts[i]);
    }
    free(running.parts);
    return running;
}

/* Ends a preempted attempt. Its job may get the released GPUs again, and may be preempted again. */
static void give_way(struct simulation *simulation, size_t at)
{
    uint64_t attempt_id = simulation->heap[at].attempt_id;
    size_t job = simulation->heap[at].job;
    struct progress *progress = &simulation->progress[job];
    progress->ran_ms += simulation->now_ms - simulation->heap[at].start_ms;
    simulation->outcome->fates[job].preemptions++;
    simulation->outcome->preemptions++;
    simulation->queued_jobs++;
    leave(simulation, at);
    progress->stopping = progress->stopping == attempt_id ? 0 : progress->stopping;
    simulation->stopping_count--;
}

/* Preempted jobs release their GPUs at once, which may let others start, and so on. */
static void settle(struct simulation *simulation)
{
    start_fresh(simulation);
    while (simulation->stopping_count > 0) {
        for (size_t i = 0; i < simulation->heap_count; i++) {
            if (simulation->progress[simulation->heap[i].job].stopping == simulation->heap[i].attempt_id) {
                give_way(simulation, i);
                break;
            }
        }
        start_fresh(simulation);
    }
    note_moment(simulation);
}

/* The time limit is a millisecond longer than the run time, so that it does not end the job. */
static int64_t limit_of(const struct simulation *simulation, const struct trace_job *job)
{
    switch (simulation->options->limits) {
    case LIMITS_TRACE:
        return job->limit_ms == 0 || job->limit_ms > job->duration_ms ? job->limit_ms : job->duration_ms + 1;
    case LIMITS_EXACT:
        return job->duration_ms + 1;
    case LIMITS_NONE:
        return 0;
    }
    abort();
}

static void submit(struct simulation *simulation, size_t index)
{
    const struct trace_job *job = &simulation->trace->jobs[index];
    struct outcome *outcome = simulation->outcome;
    char id[ID_LENGTH + 1];
    snprintf(id, sizeof id, "%zu", index);
    const struct job_spec spec = {.gpus = job->gpus,
                                  .gpu_type = simulation->typed ? job->gpu_type : NULL,
                                  .remote = true,
                                  .name = job->name,
                                  .project = job->project,
                                  .priority = job->priority,
                                  .time_limit_ms = limit_of(simulation, job),
                                  .grace_ms = DEFAULT_GRACE_MS,
                                  .lease_ms = DEFAULT_LEASE_MS};
    const char *owner = job->owner != NULL ? job->owner : "trace";
    struct input input = {
        .kind = INPUT_SUBMIT,
        .submit = {.id = id, .owner = owner, .spec = &spec, .body = "{}", .body_length = 2}};
    /* set before the step, whose changes use this key */
    simulation->jobs_by_key[simulation->key_count] = index;
    if (!step(simulation, &input, &outcome->refusal)) {
        outcome->fates[index] = (struct fate){.start_ms = -1, .end_ms = -1};
        outcome->refused++;
        return;
    }
    simulation->key_count++;
    simulation->queued_jobs++;
    settle(simulation);
}

static void end_first(struct simulation *simulation)
{
    leave(simulation, 0);
    settle(simulation);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static void register_node(struct simulation *simulation, size_t number, const struct fleet_part *part)
{
    char name[NODE_NAME_BYTES];
    snprintf(name, sizeof name, "node%07zu", number);
    struct device *devices = xzalloc((size_t)part->gpus * sizeof *devices);
    for (int64_t i = 0; i < part->gpus; i++) {
        devices[i] = (struct device){
            .index = i, .uuid = "GPU", .type = part->type != NULL ? part->type : UNTYPED, .group = -1};
    }
    const struct register_message message = {.name = name,
                                             .boot_id = "boot",
                                             .host_id = name,
                                             .version = "simulated",
                                             .address = "10.0.0.1",
                                             .devices = devices,
                                             .device_count = (size_t)part->gpus};
    must(simulation, &(struct input){.kind = INPUT_REGISTER, .node_register = &message});
    free(devices);
}

static bool goes_on(const struct simulation *simulation)
{
    const struct replay_options *options = simulation->options;
    return options->goes_on == NULL || options->goes_on(options->closure);
}

static bool build(struct simulation *simulation, const struct fleet *fleet)
{
    simulation->core = core_create(&(struct core_config){.incarnation = 1,
                                                         .next_job_key = 1,
                                                         .heartbeat_ms = NEVER_SILENT_MS,
                                                         .policy = simulation->options->policy});
    must(simulation, &(struct input){.kind = INPUT_BOOT});
    size_t number = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        for (int64_t j = 0; j < fleet->parts[i].nodes; j++) {
            if (!goes_on(simulation)) {
                return false;
            }
            register_node(simulation, number++, &fleet->parts[i]);
        }
    }
    return true;
}

/* At each moment, ends come before submissions. */
static bool play(struct simulation *simulation)
{
    const struct trace *trace = simulation->trace;
    for (size_t next = 0; next < trace->count || simulation->heap_count > 0;) {
        if (!goes_on(simulation)) {
            return false;
        }
        bool ends = simulation->heap_count > 0 &&
                    (next == trace->count || simulation->heap[0].end_ms <= trace->jobs[next].submit_ms);
        simulation->now_ms = ends ? simulation->heap[0].end_ms : trace->jobs[next].submit_ms;
        if (ends) {
            end_first(simulation);
        } else {
            submit(simulation, next++);
        }
    }
    return true;
}

bool replay(const struct trace *trace, const struct fleet *fleet, const struct replay_options *options,
            struct outcome *ret_outcome)
{
    *ret_outcome = (struct outcome){.fates = xzalloc((trace->count + 1) * sizeof *ret_outcome->fates)};
    struct simulation simulation = {.trace = trace,
                                    .options = options,
                                    .typed = fleet->parts[0].type != NULL,
                                    .outcome = ret_outcome,
                                    .now_ms = trace->jobs[0].submit_ms,
                                    .progress = xzalloc((trace->count + 1) * sizeof(struct progress)),
                                    .jobs_by_key = xzalloc((trace->count + 1) * sizeof(size_t)),
                                    .heap = xzalloc((trace->count + 1) * sizeof(struct running))};
    bool whole = build(&simulation, fleet) && play(&simulation);
    assert(!whole || (simulation.queued_jobs == 0 && core_live_jobs(simulation.core) == 0));
    for (size_t i = 0; i < simulation.heap_count; i++) {
        free(simulation.heap[i].parts);
    }
    core_destroy(simulation.core);
    free(simulation.progress);
    free(simulation.jobs_by_key);
    free(simulation.heap);
    free(simulation.fresh);
    if (!whole) {
        outcome_finish(ret_outcome);
    }
    return whole;
}

void outcome_finish(struct outcome *outcome)
{
    free(outcome->fates);
    free(outcome->refusal);
    free(outcome->moments);
    *outcome = (struct outcome){0};
}
