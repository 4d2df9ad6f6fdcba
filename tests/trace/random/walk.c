/* SPDX-License-Identifier: Apache-2.0 */
/* A random walk, under each policy in turn: chance submits, cancels, holds, changes, drains, fences, lets
 * nodes expire, makes maintenance windows, loses
 * messages, reboots nodes and restarts the controller. After each input all invariants are checked; at the
 * end nothing goes wrong any more, and every job must come to its end. One number is one walk: `trace-walk
 * FIRST COUNT` runs others, and shows what the core decides when COUNT is 1. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/spec/tasks.h"
#include "tests/trace/random/agents.h"

#define WALK_STEPS 2500
#ifdef __SANITIZE_ADDRESS__
#define WALKS   1 /* they take four times as long */
#define CURIOUS 1
#else
#define WALKS   8 /* some 18,000 inputs; tests/run --long takes 75 times as many */
#define CURIOUS POLICY_COUNT
#endif
#define LEASE_MS 20000

struct walk {
    struct cluster *cluster;
    struct agents *agents;
    struct chance chance;
    int jobs, windows;
    bool curious;        /* asks about jobs in between */
    struct text history; /* all that the core decided, where it is kept */
    bool kept;
};

/* Which walks, whether to show what the core decides, and how many steps pass before it is asked about jobs:
 * questions take some thirty times as long as steps. One when more walks are wanted than in tests/run. */
static int first_walk = 1;
static bool shown;
static int question_pace = 6;

static void show(struct walk *walk)
{
    if (walk->kept && walk->cluster->trace.bytes != NULL) {
        text_append(&walk->history, walk->cluster->trace.bytes);
    }
    if (shown && walk->cluster->trace.bytes != NULL) {
        fputs(walk->cluster->trace.bytes, stderr);
    }
    quiet(walk->cluster);
}

/* Each third job is a function; the first letter of its id tells its agents. */
static bool job_is_function(int number)
{
    return number % 3 == 0;
}

static void job_name(int number, char id[ID_LENGTH + 1])
{
    snprintf(id, ID_LENGTH + 1, "%c%d", job_is_function(number) ? 'f' : 'j', number);
}

static const char *const projects[] = {"vision", "speech"};
static const char *const owners[] = {"anna", "bert"};

/* One or two earlier jobs, some of which have ended, or were refused; NULL: none. */
static const char *draw_after(struct walk *walk, char out[64])
{
    struct chance *chance = &walk->chance;
    size_t length = 0;
    int last = -1;
    for (int draws = 0; draws < 2 && chance_of(chance, 30); draws++) {
        int number = walk->jobs - 2 - (int)chance_below(chance, 12);
        char id[17];
        job_name(number, id);
        if (number < 0 || number == last || rows_key(walk->cluster->rows, id) == 0) {
            break;
        }
        last = number;
        enum dependency kind = (enum dependency)chance_below(chance, DEPENDENCY_COUNT);
        length += (size_t)snprintf(out + length, 64 - length, "%s%s:%s", length > 0 ? " " : "", id,
                                   dependency_text(kind));
    }
    return length > 0 ? out : NULL;
}

static void submit_one(struct walk *walk)
{
    static const char *const types[] = {NULL, "A10", "a10", "H100", "H100", "B200"};
    struct chance *chance = &walk->chance;
    char id[17];
    bool function = job_is_function(walk->jobs);
    static const char *const names[] = {NULL, "train-1", "train-2", "sweep"};
    const char *environment = agents_need(walk->jobs);
    job_name(walk->jobs++, id);
    struct job_ask ask = {
        .id = id,
        .gpus = (int64_t)(chance_of(chance, 60) ? 1 + chance_below(chance, 2) : 1 + chance_below(chance, 12)),
        .type = types[chance_below(chance, 6)],
        .reserved = chance_of(chance, 70) ? USE_RESERVED_AUTO : (enum use_reserved)chance_below(chance, 3),
        .pool = chance_of(chance, 10) ? "default" : NULL,
        .local = chance_of(chance, 15) ? agents_host(walk->agents, chance_below(chance, AGENT_COUNT)) : NULL,
        .by_node = chance_of(chance, 10),
        .function = function,
        .time_limit_ms = chance_of(chance, 10) ? 30000 : 0,
        .early = {.signal = chance_of(chance, 50) ? EARLY_USR1 : EARLY_NONE, .before_ms = 10000},
        .keep_ms = chance_of(chance, 20) ? 20000 : 0,
        .lease_ms = LEASE_MS,
        .on_disconnect = (enum on_disconnect)chance_below(chance, 3),
        .retries = (int64_t)chance_below(chance, 3),
        .project = chance_of(chance, 50) ? NULL : projects[chance_below(chance, 2)],
        .owner = chance_of(chance, 50) ? NULL : owners[chance_below(chance, 2)],
        .priority = chance_of(chance, 20) ? (int64_t)chance_below(chance, 7) - 3 : 0,
        .name = names[chance_below(chance, 4)],
        .environment = environment,
        .hold = chance_of(chance, 5),
        .stale = chance_of(chance, 50),
    };
    ask.spread = chance_of(chance, 10);
    if (chance_of(chance, 15)) {
        ask.gpus = -1;
        ask.type = chance_of(chance, 95) ? NULL : ask.type;
    }
    ask.millicpus = chance_of(chance, 25) ? (int64_t)(100 + chance_below(chance, 12000)) : 0;
    ask.memory_gib = chance_of(chance, 15) ? (int64_t)(1 + chance_below(chance, 40)) : 0;
    if (ask.local == NULL && ask.gpus > 0 && chance_of(chance, 15)) {
        ask.nodes = (int64_t)(1 + chance_below(chance, 3));
        ask.gpus = ask.nodes * (int64_t)(1 + chance_below(chance, 3));
    }
    if (chance_of(chance, 15)) { /* some of one task, some of more than the cluster has GPUs */
        ask.tasks = (int64_t)(1 + chance_below(chance, 20));
        ask.parallel = (int64_t)chance_below(chance, 4);
        ask.only = ask.tasks > 9 && chance_of(chance, 30) ? "1,4-6,9" : NULL;
    }
    char after[64];
    ask.after = draw_after(walk, after);
    if (chance_of(chance, 8)) {
        ask.not_before_ms =
            walk->cluster->wall_ms + walk->cluster->now_ms + (int64_t)chance_below(chance, 600000);
    }
    cluster_submit(walk->cluster, &ask);
}

static void recent_name(struct walk *walk, char id[ID_LENGTH + 1])
{
    int back = (int)chance_below(&walk->chance, 20);
    job_name(walk->jobs > back ? walk->jobs - back : 0, id);
}

/* A person changes its mind about a job. */
static void change_one(struct walk *walk)
{
    struct chance *chance = &walk->chance;
    char id[17];
    recent_name(walk, id);
    switch (chance_below(chance, 4)) {
    case 0:
        hold(walk->cluster, id);
        return;
    case 1:
        change_priority(walk->cluster, id, (int64_t)chance_below(chance, 3));
        return;
    case 2:
        change_limit(walk->cluster, id, (int64_t)chance_below(chance, 3) * 20000);
        return;
    default:
        release(walk->cluster, id);
        return;
    }
}

static void cancel_one(struct walk *walk)
{
    char id[17];
    recent_name(walk, id);
    if (chance_of(&walk->chance, 30)) {
        char task[ID_LENGTH + 1];
        task_id(id, (int64_t)chance_below(&walk->chance, 4), task);
        cancel(walk->cluster, task);
        return;
    }
    cancel(walk->cluster, id);
}

/* Soon, short, and for one node, a pool or all; some of it makes no sense, and is refused. */
static void make_window(struct walk *walk)
{
    struct chance *chance = &walk->chance;
    char id[17];
    snprintf(id, sizeof id, "w%d", walk->windows++);
    int64_t from_ms = walk->cluster->now_ms + (int64_t)chance_below(chance, 60000) - 5000;
    const char *name = agents_name(walk->agents, chance_below(chance, AGENT_COUNT));
    const struct window_ask ask = {
        .id = id,
        .nodes = chance_of(chance, 70) ? name : NULL,
        .from_ms = from_ms,
        .until_ms = from_ms + (int64_t)chance_below(chance, 60000),
        .hard = chance_of(chance, 50),
    };
    cluster_window(walk->cluster, &ask);
}

static void change_departures(struct walk *walk)
{
    struct chance *chance = &walk->chance;
    const char *name = agents_name(walk->agents, chance_below(chance, AGENT_COUNT));
    char id[17];
    switch (chance_below(chance, 4)) {
    case 0:
        make_window(walk);
        return;
    case 1:
        snprintf(id, sizeof id, "w%d", (int)chance_below(chance, (uint64_t)walk->windows + 1));
        remove_window(walk->cluster, id);
        return;
    default:
        expire(walk->cluster, name,
               chance_of(chance, 50) ? walk->cluster->now_ms + (int64_t)chance_below(chance, 90000) : 0);
        return;
    }
}

/* A job that lives stays, one that has ended goes, and an array with its tasks. */
static void remove_one(struct walk *walk)
{
    char id[17];
    recent_name(walk, id);
    const struct job_life *life = rows_job(walk->cluster->rows, id);
    bool lives = life != NULL && !job_state_terminal(life->state);
    enum err_code code = remove_job(walk->cluster, id);
    ck_assert_int_eq(code, lives ? ERR_CONFLICT : ERR_NONE);
}

static void operate(struct walk *walk)
{
    size_t which = chance_below(&walk->chance, AGENT_COUNT);
    const char *name = agents_name(walk->agents, which);
    switch (chance_below(&walk->chance, 6)) {
    case 0:
        drain(walk->cluster, name);
        return;
    case 1:
        agents_fence(walk->agents, which);
        return;
    case 2:
        agents_remove(walk->agents, which);
        return;
    case 3:
        remove_node(walk->cluster, name, false);
        return;
    default:
        resume(walk->cluster, name);
        return;
    }
}

static const char *const quotas[] = {
    NULL,
    "{\"quota\":{\"A10\":2}}",
    "{\"quota\":{\"a10\":4,\"H100\":1},\"max_gpus\":{\"A10\":12}}",
    "{\"quota\":{\"H100\":8},\"weight\":2.5,\"max_running_jobs\":2,\"idle_after_s\":30,"
    "\"idle_action\":\"preempt\",\"idle_grace_s\":5}",
    "{\"pools\":[\"default\"]}",
};
static const char *const bounds[] = {
    NULL,
    "{\"max_gpus\":{\"*\":12},\"weight\":3}",
    "{\"max_running_jobs\":1,\"max_queued_jobs\":30}",
    "{\"gpu_hours\":{\"hours\":0.01,\"period_s\":60}}",
    "{\"max_cpus\":50,\"max_memory\":\"200G\"}",
};

/* Of a project or a user, with force or without; or somebody asks. No limit is such that a job which was let
 * in could wait for ever. */
static void set_limits(struct walk *walk)
{
    struct cluster *cluster = walk->cluster;
    struct chance *chance = &walk->chance;
    const char *name = projects[chance_below(chance, 2)], *user = owners[chance_below(chance, 2)];
    const char *quota = quotas[chance_below(chance, 5)], *bound = bounds[chance_below(chance, 5)];
    switch (chance_below(chance, 4)) {
    case 0:
        limit(cluster, ACCOUNT_PROJECT, name, quota);
        return;
    case 1:
        limit_forced(cluster, ACCOUNT_PROJECT, name, quota);
        return;
    case 2:
        limit(cluster, ACCOUNT_USER, user, bound);
        return;
    default:
        account_text(cluster, ACCOUNT_PROJECT, NULL, chance_of(chance, 50) ? user : NULL);
        return;
    }
}

/* "run aaaa/1 rank 0-1 ..." as an order to stop: "stop aaaa/1 rank ". */
static char *stop_line(const char *line)
{
    const char *id = line + strcspn(line, " ");
    return *id == ' ' ? xprintf("stop%.*s rank ", (int)strcspn(id + 1, " ") + 1, id) : xstrdup(line);
}

/* Every line of the old orders is among the new, or tells to stop. Boot may add to them: it places what a
 * forgotten hold or silence kept waiting, and what was borrowed may have to go for that. */
static void expect_kept(const char *old, const char *new)
{
    for (const char *at = old; *at != '\0';) {
        size_t length = strcspn(at, "\n") + 1;
        autofree char *line = xstrndup(at, length);
        autofree char *stop = stop_line(line);
        ck_assert(strstr(new, line) != NULL || strstr(new, stop) != NULL);
        at += length;
    }
}

/* The controller dies; what was lazy is lost. */
static void restart(struct walk *walk)
{
    struct cluster *cluster = walk->cluster;
    autotext struct text before = {0};
    autotext struct text after = {0};
    bool lost = cluster->waiting_count > 0;
    cluster_orders_text(cluster, &before);
    cluster_restart(cluster);
    if (lost) {
        agents_forget_reports(walk->agents);
        return;
    }
    if (cluster->policy == POLICY_SRTF || cluster->policy == POLICY_SRSF) {
        return; /* what was learned meanwhile may make others give way */
    }
    cluster_orders_text(cluster, &after);
    expect_kept(before.bytes, after.bytes);
}

static void pass_time(struct walk *walk)
{
    bool storm = chance_of(&walk->chance, 5);
    advance(walk->cluster, (int64_t)chance_below(&walk->chance, storm ? 40000 : 5000));
    agents_heartbeat(walk->agents, storm ? 10 : 80);
}

static void step_once(struct walk *walk)
{
    uint64_t dice = chance_below(&walk->chance, 1000);
    size_t which = chance_below(&walk->chance, AGENT_COUNT);
    if (dice < 160) {
        submit_one(walk);
    } else if (dice < 180) {
        cancel_one(walk);
    } else if (dice < 198) {
        change_one(walk);
    } else if (dice < 200) {
        remove_one(walk);
    } else if (dice < 450) {
        agents_act(walk->agents, which, 0);
    } else if (dice < 800) {
        agents_act(walk->agents, which, 1);
    } else if (dice < 860) {
        agents_act(walk->agents, which, 5);
    } else if (dice < 900) {
        agents_act(walk->agents, which, 2);
    } else if (dice < 915) {
        agents_act(walk->agents, which, 3);
    } else if (dice < 922) {
        agents_act(walk->agents, which, 4);
    } else if (dice < 942) {
        operate(walk);
    } else if (dice < 947) {
        restart(walk);
    } else if (dice < 953) {
        set_limits(walk);
    } else if (dice < 957) {
        change_departures(walk);
    } else {
        pass_time(walk);
    }
}

/* Questions draw no chance: the walk is the same with and without them. */
static void ask_about_some(struct walk *walk, int step)
{
    char id[17];
    const char *environment = agents_need(step);
    job_name(walk->jobs > step % 7 ? walk->jobs - 1 - step % 7 : 0, id);
    cluster_ask(walk->cluster, step % 2 == 0 ? ASK_EXPLAIN : ASK_REHEARSE, id);
    cluster_step(walk->cluster,
                 &(struct input){.kind = INPUT_ASK, .ask = {.kind = ASK_QUEUE, .limit = 1 + step % 20}});
    ck_assert_uint_eq(walk->cluster->step.change_count, 0);
    plan(walk->cluster, .gpus = 1 + step % 9, .type = step % 4 == 0 ? "A10" : NULL,
         .environment = environment, .time_limit_ms = step % 3 == 0 ? 60000 : 0, .priority = step % 5 - 2);
}

/* Also tasks, whose ids nobody chose. */
static void release_all(struct walk *walk)
{
    const struct rows *rows = walk->cluster->rows;
    for (int64_t key = 1; key < rows_next_key(rows); key++) {
        const char *id = rows_job_id(rows, key);
        const struct job_life *life = id != NULL ? rows_job(rows, id) : NULL;
        if (life != NULL && life->state == JOB_HELD) {
            release(walk->cluster, id);
        }
    }
}

/* Nothing goes wrong any more, and every node stays: within bounded time every job ends. */
static void come_to_an_end(struct walk *walk)
{
    for (size_t i = 0; i < AGENT_COUNT; i++) {
        expire(walk->cluster, agents_name(walk->agents, i), 0);
    }
    for (size_t i = 0; i < sizeof projects / sizeof *projects;
         i++) { /* they may lack pools that their jobs need */
        limit(walk->cluster, ACCOUNT_PROJECT, projects[i], NULL);
    }
    agents_heal(walk->agents);
    for (int round = 0; round < 2000 && core_live_jobs(walk->cluster->core) > 0; round++) {
        release_all(walk); /* what gave way because it was idle is held once it has ended */
        for (size_t i = 0; i < AGENT_COUNT; i++) {
            agents_act(walk->agents, i, 0);
            agents_act(walk->agents, i, 5);
            for (int j = 0; j < 4; j++) {
                agents_act(walk->agents, i, 1);
            }
        }
        advance(walk->cluster, 1000);
        agents_heartbeat(walk->agents, 100);
        show(walk);
    }
    ck_assert_uint_eq(core_live_jobs(walk->cluster->core), 0);
}

static void take_walk(struct walk *walk, enum policy policy)
{
    walk->chance.state = 0x9e3779b97f4a7c15ULL * (uint64_t)first_walk;
    walk->kept = true;
    walk->cluster = cluster_open_with(policy);
    walk->agents = agents_create(walk->cluster, &walk->chance);
    for (int i = 0; i < WALK_STEPS; i++) {
        step_once(walk);
        show(walk);
        if (walk->curious && i % question_pace == 0) {
            ask_about_some(walk, i / question_pace);
        }
    }
    agents_destroy(walk->agents);
    cluster_close(walk->cluster);
}

START_TEST(questions_change_nothing)
{
    struct walk without = {0}, with = {.curious = true};
    take_walk(&without, (enum policy)(POLICY_COUNT - 1 - _i));
    take_walk(&with, (enum policy)(POLICY_COUNT - 1 - _i));
    ck_assert_str_eq(with.history.bytes, without.history.bytes);
    text_finish(&with.history);
    text_finish(&without.history);
}
END_TEST

START_TEST(whatever_happens_the_invariants_hold_and_every_job_ends)
{
    struct walk walk = {.chance = {.state = 0x9e3779b97f4a7c15ULL * (uint64_t)(first_walk + _i)}};
    int64_t pass_work = (first_walk + _i) / POLICY_COUNT % 2 == 0 ? 0 : 1; /* 1: two queue entries a pass */
    walk.cluster = cluster_open_slow((enum policy)((first_walk + _i) % POLICY_COUNT), pass_work);
    walk.cluster->late = true;
    walk.agents = agents_create(walk.cluster, &walk.chance);
    if ((first_walk + _i) % 3 == 0 && !shown) { /* the trace has every job visited */
        core_trace(walk.cluster->core, NULL);
    }
    for (int i = 0; i < WALK_STEPS; i++) {
        step_once(&walk);
        show(&walk);
    }
    come_to_an_end(&walk);
    ck_assert_int_ge(walk.cluster->inputs, 2000);
    agents_destroy(walk.agents);
    cluster_close(walk.cluster);
}
END_TEST

int main(int argc, char **argv)
{
    int64_t first = 1, count = WALKS;
    if (argc == 3 &&
        (!text_to_int(argv[1], 1, INT32_MAX, &first) || !text_to_int(argv[2], 1, INT32_MAX, &count))) {
        fprintf(stderr, "usage: trace-walk [FIRST COUNT]\n");
        return 2;
    }
    first_walk = (int)first;
    shown = count == 1;
    question_pace = count > WALKS ? 1 : question_pace;
    Suite *suite = suite_create("walk");
    TCase *tests = tcase_create("walk");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, whatever_happens_the_invariants_hold_and_every_job_ends, 0, (int)count);
    tcase_add_loop_test(tests, questions_change_nothing, 0, CURIOUS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
