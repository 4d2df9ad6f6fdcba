/* SPDX-License-Identifier: Apache-2.0 */
/* bench-passes NODES JOBS [POLICY [ENVIRONMENTS [KINDS]]]: what one decision of the core costs when NODES
 * nodes of 8 GPUs run jobs on all GPUs and JOBS more wait, of 120 users, 3 projects, 10 sizes and 8 time
 * limits, in turn with each of ENVIRONMENTS environments, which have two parts in common and which nodes have
 * ready as soon as they are told, and of KINDS resource requests that differ otherwise, too. Prints JSON: the
 * time of a submission that waits, and of an exit which frees GPUs and places what is next, as median and
 * 99th percentile in microseconds. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/core.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define NODE_GPUS    8
#define SAMPLES      1000
#define EXPLANATIONS 10
#define LARGE        10000 /* nodes from which on a tenth of the samples must do */
#define SMALL        1024  /* nodes that are filled with small gangs */
#define WIDE_GPUS    8192  /* of gangs that fill the others of a large cluster */

struct gang {
    uint64_t attempt_id;
    char node[32];
    int64_t ranks;
    bool whole; /* on one node: the bench ends no other */
};

struct bench {
    struct core *core;
    int64_t now_ms, keys;
    int64_t environments; /* 0: the jobs have none */
    int64_t kinds;        /* 0: the resource requests differ in their sizes alone */
    struct gang *gangs;   /* that were placed, in order */
    size_t gang_count, gang_room, first;
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void note_member(struct bench *bench, const struct member_row *row)
{
    if (bench->gang_count > 0 && bench->gangs[bench->gang_count - 1].attempt_id == row->attempt_id) {
        bench->gangs[bench->gang_count - 1].whole = false;
        return;
    }
    if (bench->gang_count == bench->gang_room) {
        bench->gang_room = bench->gang_room > 0 ? 2 * bench->gang_room : 1024;
        bench->gangs = xrealloc(bench->gangs, bench->gang_room * sizeof *bench->gangs);
    }
    struct gang *gang = &bench->gangs[bench->gang_count++];
    *gang = (struct gang){.attempt_id = row->attempt_id, .ranks = row->local_ranks, .whole = true};
    snprintf(gang->node, sizeof gang->node, "%s", row->node);
}

static double step(struct bench *bench, struct input *input);

/* The nodes have what they were told to stage. */
static void stage(struct bench *bench, const struct node_orders *orders)
{
    for (size_t i = 0; i < orders->staging_count; i++) {
        const struct staging_message message = {
            .node = orders->node, .boot_id = "boot", .key = orders->stagings[i].key, .state = STAGING_READY};
        step(bench, &(struct input){.kind = INPUT_STAGING, .staging = &message});
    }
}

static void stage_all(struct bench *bench, const struct step *done)
{
    for (size_t i = 0; i < done->dirty_count; i++) {
        struct node_orders *orders = core_orders(bench->core, done->dirty_nodes[i]);
        if (orders != NULL) {
            stage(bench, orders);
            node_orders_destroy(orders);
        }
    }
}

/* Returns how long it took, in us. */
static double step(struct bench *bench, struct input *input)
{
    struct step step;
    input->wall_ms = bench->now_ms + 1;
    double began_us = now_us();
    core_step(bench->core, input, bench->now_ms, &step);
    double took_us = now_us() - began_us;
    if (!step.ok) {
        fprintf(stderr, "bench-passes: %s\n", step.err.text);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < step.change_count; i++) {
        if (step.changes[i].kind == CHANGE_MEMBER_INSERT) {
            note_member(bench, &step.changes[i].member);
        }
    }
    stage_all(bench, &step);
    step_finish(&step);
    return took_us;
}

static void register_nodes(struct bench *bench, int64_t first, int64_t end)
{
    struct device devices[NODE_GPUS];
    for (int64_t i = 0; i < NODE_GPUS; i++) {
        devices[i] = (struct device){.index = i, .uuid = "GPU", .type = "A10"};
    }
    for (int64_t i = first; i < end; i++) {
        char name[32];
        snprintf(name, sizeof name, "node%07" PRId64, i);
        const struct register_message message = {.name = name,
                                                 .boot_id = "boot",
                                                 .host_id = name,
                                                 .version = "bench",
                                                 .address = "10.0.0.1",
                                                 .devices = devices,
                                                 .device_count = NODE_GPUS};
        step(bench, &(struct input){.kind = INPUT_REGISTER, .node_register = &message});
    }
}

static double submit(struct bench *bench, int64_t gpus, int64_t limit_ms)
{
    static const char *const projects[] = {"vision", "speech", "search"};
    int64_t number = bench->keys++;
    char id[32], owner[32], name[32], type[40] = "A10";
    if (bench->kinds > 0) { /* there is no node of the other type */
        snprintf(type, sizeof type, "A10|K%" PRId64, number % bench->kinds);
    }
    snprintf(id, sizeof id, "%016" PRId64, number);
    snprintf(owner, sizeof owner, "user%" PRId64, number % 120);
    snprintf(name, sizeof name, "train-%" PRId64, number % 7);
    const struct job_spec spec = {.gpus = gpus,
                                  .gpu_type = type,
                                  .remote = true,
                                  .name = name,
                                  .project = projects[number % 3],
                                  .time_limit_ms = limit_ms,
                                  .grace_ms = DEFAULT_GRACE_MS,
                                  .lease_ms = DEFAULT_LEASE_MS};
    char key[32];
    snprintf(key, sizeof key, "environment%" PRId64,
             bench->environments > 0 ? number % bench->environments : 0);
    const struct environment_spec environment = {.key = key, .text = "{}", .parts = "data packages"};
    struct input input = {.kind = INPUT_SUBMIT,
                          .submit = {.id = id,
                                     .owner = owner,
                                     .spec = &spec,
                                     .body = "{}",
                                     .body_length = 2,
                                     .environment = bench->environments > 0 ? &environment : NULL}};
    return step(bench, &input);
}

/* Passes that were left to later steps are through. */
static void be_quiet(struct bench *bench)
{
    for (int64_t due_ms = core_deadline(bench->core); due_ms <= bench->now_ms + PASS_REST_MS;
         due_ms = core_deadline(bench->core)) {
        bench->now_ms = due_ms > bench->now_ms ? due_ms : bench->now_ms + 1;
        step(bench, &(struct input){.kind = INPUT_TICK});
    }
}

/* A size of 1 to 32 GPUs, and a time limit of 10 minutes to a day. */
static double submit_any(struct bench *bench)
{
    static const int64_t sizes[] = {1, 1, 1, 1, 2, 2, 4, 8, 16, 32};
    static const int64_t minutes[] = {10, 20, 30, 60, 120, 240, 720, 1440};
    uint64_t dice = (uint64_t)bench->keys * 0x9e3779b97f4a7c15ULL >> 40;
    return submit(bench, sizes[dice % 10], minutes[dice / 10 % 8] * 60000);
}

/* The oldest gang on one node ends well. */
static double end_one(struct bench *bench)
{
    static struct rank_exit ranks[NODE_GPUS];
    while (!bench->gangs[bench->first].whole) {
        bench->first++;
    }
    const struct gang *gang = &bench->gangs[bench->first++];
    for (int64_t i = 0; i < gang->ranks; i++) {
        ranks[i] = (struct rank_exit){.rank = i};
    }
    const struct report_message report = {.node = gang->node,
                                          .boot_id = "boot",
                                          .attempt_id = gang->attempt_id,
                                          .kind = REPORT_EXITED,
                                          .ranks = ranks,
                                          .rank_count = (size_t)gang->ranks,
                                          .flushed = true};
    bench->now_ms += 1000;
    return step(bench, &(struct input){.kind = INPUT_REPORT, .report = &report});
}

/* Explains the newest job, which has the most ahead. */
static double explain_last(struct bench *bench)
{
    char id[32];
    snprintf(id, sizeof id, "%016" PRId64, bench->keys - 1);
    return step(bench, &(struct input){.kind = INPUT_ASK, .ask = {.kind = ASK_EXPLAIN, .id = id}});
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void show(const char *name, double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    printf("\"%s_p50_us\": %.1f, \"%s_p99_us\": %.1f", name, samples[count / 2], name,
           samples[count * 99 / 100]);
}

/* Small gangs first, while there are few nodes to choose from: a search looks at all of them. */
static void fill(struct bench *bench, int64_t nodes, int64_t jobs, int64_t environments, int64_t kinds)
{
    int64_t small = nodes < SMALL ? nodes : SMALL;
    register_nodes(bench, 0, small);
    for (int64_t free = small * NODE_GPUS; free > 0; free -= 2) {
        submit(bench, 2, 3600000 + free % 1000 * 60000);
    }
    register_nodes(bench, small, nodes);
    for (int64_t free = (nodes - small) * NODE_GPUS; free > 0; free -= WIDE_GPUS) {
        submit(bench, free < WIDE_GPUS ? free : WIDE_GPUS, 86400000);
    }
    bench->environments = environments;
    bench->kinds = kinds;
    for (int64_t i = 0; i < jobs; i++) {
        submit_any(bench);
    }
}

int main(int argc, char **argv)
{
    static double submits[SAMPLES], exits[SAMPLES], explanations[EXPLANATIONS];
    int64_t nodes, jobs, environments = 0, kinds = 0;
    enum policy policy = POLICY_DEFAULT;
    if (argc < 3 || argc > 6 || !text_to_int(argv[1], 1, 1000000, &nodes) ||
        !text_to_int(argv[2], 1, LIMIT_LIVE_JOBS, &jobs) ||
        (argc > 3 && !policy_from_text(argv[3], &policy)) ||
        (argc > 4 && !text_to_int(argv[4], 0, LIMIT_LIVE_JOBS, &environments)) ||
        (argc > 5 && !text_to_int(argv[5], 0, LIMIT_LIVE_JOBS, &kinds))) {
        fprintf(stderr, "usage: bench-passes NODES JOBS [POLICY [ENVIRONMENTS [KINDS]]]\n");
        return 2;
    }
    struct bench bench = {
        .core = core_create(&(struct core_config){
            .incarnation = 1, .next_job_key = 1, .heartbeat_ms = 1LL << 50, .policy = policy})};
    step(&bench, &(struct input){.kind = INPUT_BOOT});
    fill(&bench, nodes, jobs, environments, kinds);
    be_quiet(&bench);
    int samples = nodes < LARGE ? SAMPLES : SAMPLES / 10;
    for (int i = 0; i < EXPLANATIONS; i++) {
        explanations[i] = explain_last(&bench);
    }
    for (int i = 0; i < samples; i++) {
        submits[i] = submit_any(&bench);
        be_quiet(&bench);
        exits[i] = end_one(&bench);
        be_quiet(&bench);
    }
    printf("{\"nodes\": %" PRId64 ", \"jobs\": %" PRId64 ", \"policy\": \"%s\", ", nodes, jobs,
           policy_text(policy));
    show("submit", submits, samples);
    printf(", ");
    show("exit", exits, samples);
    printf(", ");
    show("explanation", explanations, EXPLANATIONS);
    printf("}\n");
    core_destroy(bench.core);
    free(bench.gangs);
    return EXIT_SUCCESS;
}
