/* SPDX-License-Identifier: Apache-2.0 */
/* What each policy promises: gaps that are filled, queue order, nobody who starves, what is learned of run
 * times, and who gives way to whom. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/queue/history.h"
#include "daemon/core/model/state.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/chance.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define MINUTE_MS 60000LL

static struct job *job_of(const struct cluster *c, const char *id)
{
    struct job *job;
    HASH_FIND(by_id, c->core->jobs_by_id, id, strlen(id), job);
    ck_assert_ptr_nonnull(job);
    return job;
}

/* Up to a time at which something ends by itself: the TICK that would end it comes after that. */
static void pass(struct cluster *c, int64_t ms)
{
    advance_beating(c, ms - 1, "a");
    c->now_ms++;
}

/* A job that runs for so long. */
static void run_one(struct cluster *c, const struct job_ask *ask, int64_t ms)
{
    ck_assert_int_eq(cluster_submit(c, ask), ERR_NONE);
    expect_job(c, ask->id, JOB_PLACED);
    pass(c, ms);
    ck_assert_int_eq(exited(c, ask->id, "a", 0), ERR_NONE);
}

/* --- gaps ----------------------------------------------------------------------------------------------- */

START_TEST(a_shorter_job_fills_the_gap_before_a_reserved_start_and_puts_nothing_off)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_EASY);
    node(c, "a", .gpus = 4);
    submit(c, "long", .gpus = 3, .time_limit_ms = HOUR_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = HOUR_MS);
    pass(c, 10 * MINUTE_MS);
    submit(c, "late", .time_limit_ms = 50 * MINUTE_MS + 1);
    submit(c, "open");
    submit(c, "fill", .time_limit_ms = 50 * MINUTE_MS);
    expect_job(c, "late", JOB_QUEUED);
    expect_job(c, "open", JOB_QUEUED);
    expect_job(c, "fill", JOB_PLACED);
    pass(c, 50 * MINUTE_MS);
    exited(c, "fill", "a", 0);
    expect_job(c, "late", JOB_QUEUED);
    exited(c, "long", "a", 0);
    expect_job(c, "wide", JOB_PLACED);
}
END_TEST

START_TEST(what_a_reservation_spares_may_be_had_for_longer)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_EASY);
    node(c, "a", .gpus = 5);
    submit(c, "long", .gpus = 3, .time_limit_ms = HOUR_MS);
    submit(c, "shrt", .gpus = 2, .time_limit_ms = MINUTE_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = HOUR_MS);
    submit(c, "late", .time_limit_ms = 10 * HOUR_MS);
    submit(c, "more", .time_limit_ms = 10 * HOUR_MS);
    pass(c, MINUTE_MS);
    exited(c, "shrt", "a", 0); /* for both there is room, but it is spared for one */
    expect_job(c, "late", JOB_PLACED);
    expect_job(c, "more", JOB_QUEUED);
    pass(c, 59 * MINUTE_MS);
    exited(c, "long", "a", 0);
    expect_job(c, "wide", JOB_PLACED);
}
END_TEST

START_TEST(a_reservation_that_was_put_off_for_an_hour_heeds_time_limits_only)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_EASY);
    node(c, "a", .gpus = 3);
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "q%d", i);
        run_one(c, &(struct job_ask){.id = id, .name = "quick"}, 5 * MINUTE_MS);
    }
    submit(c, "long", .gpus = 2);
    submit(c, "wide", .gpus = 3);
    int64_t guess_ms = job_of(c, "long")->attempt->estimate_ms;
    pass(c, guess_ms + 50 * MINUTE_MS);
    run_one(c, &(struct job_ask){.id = "gues", .name = "quick"}, 5 * MINUTE_MS);
    expect_job(c, "wide", JOB_QUEUED);
    pass(c, HOUR_MS);
    submit(c, "late", .name = "quick");
    expect_job(c, "late", JOB_QUEUED);
    submit(c, "sure", .time_limit_ms = MINUTE_MS);
    expect_job(c, "sure", JOB_PLACED);
}
END_TEST

/* --- queue entries -------------------------------------------------------------------------------------- */

START_TEST(priority_goes_before_all_else_and_shorter_before_longer)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = HOUR_MS);
    submit(c, "long", .time_limit_ms = 2 * HOUR_MS);
    submit(c, "shrt", .time_limit_ms = HOUR_MS);
    submit(c, "same", .time_limit_ms = HOUR_MS);
    submit(c, "high", .time_limit_ms = 3 * HOUR_MS, .priority = 1);
    submit(c, "last", .time_limit_ms = MINUTE_MS, .priority = -1);
    static const char *const order[] = {"aaaa", "high", "shrt", "same", "long", "last"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        expect_job(c, order[i], JOB_PLACED);
        exited(c, order[i], "a", 0);
    }
}
END_TEST

/* Whether a job of ten minutes that comes so late goes before one of an hour. */
static bool goes_before(int64_t later_ms)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    c->large = true;
    node(c, "a");
    submit(c, "busy", .time_limit_ms = 20 * HOUR_MS);
    submit(c, "long", .time_limit_ms = HOUR_MS);
    pass(c, later_ms);
    submit(c, "shrt", .time_limit_ms = 10 * MINUTE_MS);
    exited(c, "busy", "a", 0);
    return job_of(c, "shrt")->state == JOB_PLACED;
}

START_TEST(a_job_is_due_ten_times_its_run_time_after_it_came)
{
    ck_assert(goes_before(10 * HOUR_MS - 100 * MINUTE_MS - 1));
    ck_assert(!goes_before(10 * HOUR_MS - 100 * MINUTE_MS));
}
END_TEST

START_TEST(a_job_that_is_requeued_has_its_old_place)
{
    for (enum policy policy = 0; policy < POLICY_COUNT; policy++) {
        autocluster struct cluster *c = cluster_open_with(policy);
        node(c, "a");
        submit(c, "aaaa", .time_limit_ms = HOUR_MS);
        submit(c, "bbbb", .time_limit_ms = HOUR_MS);
        declined(c, "aaaa", "a");
        stopped(c, "aaaa", "a");
        expect_job(c, "aaaa", JOB_QUEUED);
        submit(c, "cccc", .time_limit_ms = HOUR_MS);
        advance_beating(c, 5 * MINUTE_MS, "a");
        expect_job(c, "aaaa", JOB_PLACED);
        exited(c, "aaaa", "a", 0);
        expect_job(c, "bbbb", JOB_PLACED);
    }
}
END_TEST

/* --- nobody starves ------------------------------------------------------------------------------------- */

#define STREAM_GPUS  8
#define STREAM_RUNS  (10 * MINUTE_MS)
#define STREAM_ROOM  4096
#define GANG_RUNS    HOUR_MS
#define GANG_DUE     (10 * GANG_RUNS)
#define STREAM_AHEAD HOUR_MS

/* Jobs for one GPU come for ever, so many in so many minutes. */
struct arrivals {
    struct cluster *cluster;
    int64_t started_ms[STREAM_ROOM]; /* 0: not yet; -1: it has ended */
    int count, first;
};

static void stream_name(int number, char id[ID_LENGTH + 1])
{
    snprintf(id, ID_LENGTH + 1, "s%d", number);
}

static void stream_submit(struct arrivals *arrivals)
{
    char id[ID_LENGTH + 1];
    ck_assert_int_lt(arrivals->count, STREAM_ROOM);
    stream_name(arrivals->count++, id);
    ck_assert_int_eq(submit(arrivals->cluster, id, .time_limit_ms = STREAM_RUNS), ERR_NONE);
}

/* One minute; who has run for its time ends. */
static void stream_pass(struct arrivals *arrivals)
{
    struct cluster *c = arrivals->cluster;
    char id[ID_LENGTH + 1];
    pass(c, MINUTE_MS);
    for (int i = arrivals->first; i < arrivals->count; i++) {
        if (arrivals->started_ms[i] > 0 && c->now_ms - arrivals->started_ms[i] >= STREAM_RUNS) {
            stream_name(i, id);
            ck_assert_int_eq(exited(c, id, "a", 0), ERR_NONE);
            arrivals->started_ms[i] = -1;
        }
        arrivals->first += arrivals->first == i && arrivals->started_ms[i] == -1;
    }
}

static void stream_look(struct arrivals *arrivals)
{
    char id[ID_LENGTH + 1];
    for (int i = arrivals->first; i < arrivals->count; i++) {
        stream_name(i, id);
        if (arrivals->started_ms[i] == 0 && job_of(arrivals->cluster, id)->state == JOB_PLACED) {
            arrivals->started_ms[i] = arrivals->cluster->now_ms;
        }
    }
}

/* How long the gang waits for all GPUs; overtakers is how many of those that came at least so long after it
 * started before. */
static int64_t wait_of_gang(enum policy policy, int jobs, int minutes, int64_t after_ms, int *overtakers)
{
    static struct arrivals arrivals;
    arrivals = (struct arrivals){.cluster = cluster_open_with(policy)};
    autocluster struct cluster *c = arrivals.cluster;
    int64_t gang_ms = STREAM_AHEAD, due = 0;
    int late = STREAM_ROOM;
    c->large = true;
    core_trace(c->core, NULL);
    node(c, "a", .gpus = STREAM_GPUS);
    while (c->now_ms <= gang_ms || job_of(c, "gang")->state == JOB_QUEUED) {
        stream_pass(&arrivals);
        if (c->now_ms == gang_ms) {
            submit(c, "gang", .gpus = STREAM_GPUS, .time_limit_ms = GANG_RUNS);
        }
        late = c->now_ms >= gang_ms + after_ms && late == STREAM_ROOM ? arrivals.count : late;
        for (due += jobs; due >= minutes; due -= minutes) {
            stream_submit(&arrivals);
        }
        stream_look(&arrivals);
    }
    core_check(c->core);
    *overtakers = 0;
    for (int i = late; i < arrivals.count; i++) {
        *overtakers += arrivals.started_ms[i] != 0;
    }
    return c->now_ms - gang_ms;
}

START_TEST(a_gang_starts_when_it_is_due_whatever_streams_by)
{
    int overtakers;
    int64_t waits_ms =
        wait_of_gang(POLICY_DEFAULT, STREAM_GPUS, 10, GANG_DUE - 10 * STREAM_RUNS, &overtakers);
    ck_assert_int_le(waits_ms, GANG_DUE + GANG_RUNS);
    ck_assert_int_eq(overtakers, 0);
}
END_TEST

/* Of a stream that is more than the cluster can do, those go first that are due first, and no others. */
START_TEST(a_gang_is_overtaken_only_by_those_that_are_due_before_it)
{
    int overtakers;
    int64_t waits_ms = wait_of_gang(POLICY_DEFAULT, STREAM_GPUS, 8, GANG_DUE - 10 * STREAM_RUNS, &overtakers);
    int64_t ahead = (STREAM_AHEAD + GANG_DUE - 10 * STREAM_RUNS) / MINUTE_MS; /* one a minute */
    ck_assert_int_le(waits_ms, (ahead + STREAM_GPUS) * STREAM_RUNS / STREAM_GPUS + STREAM_RUNS);
    ck_assert_int_eq(overtakers, 0);
}
END_TEST

START_TEST(under_easy_a_gang_waits_for_what_came_before_it)
{
    int overtakers;
    int64_t waits_ms = wait_of_gang(POLICY_EASY, STREAM_GPUS, 10, 0, &overtakers);
    ck_assert_int_le(waits_ms, STREAM_RUNS);
    ck_assert_int_eq(overtakers, 0);
}
END_TEST

/* --- estimates ------------------------------------------------------------------------------------------ */

static int64_t estimate_of(struct cluster *c, const struct job_ask *ask)
{
    ck_assert_int_eq(cluster_submit(c, ask), ERR_NONE);
    const struct job *job = job_of(c, ask->id);
    int64_t estimate_ms = history_estimate_ms(c->core, job->pattern, job->time_limit_ms);
    cancel(c, ask->id);
    stopped(c, ask->id, "a");
    return estimate_ms;
}

static void learn(struct cluster *c, const char *name, int runs, int64_t limit_ms, int64_t ms)
{
    char id[ID_LENGTH + 1], numbered[32];
    for (int i = 0; i < runs; i++) {
        snprintf(id, sizeof id, "%s%d", name, i);
        snprintf(numbered, sizeof numbered, "%s-%d", name, i);
        run_one(c, &(struct job_ask){.id = id, .name = numbered, .time_limit_ms = limit_ms}, ms);
    }
}

static void expect_near(int64_t value, int64_t expected)
{
    ck_assert_int_ge(value, expected - expected / 5);
    ck_assert_int_le(value, expected + expected / 5);
}

START_TEST(run_times_are_learned_from_jobs_that_are_like_it)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a", .gpus = 2);
    ck_assert_int_eq(estimate_of(c, &(struct job_ask){.id = "frst", .name = "train-1"}), HOUR_MS);
    learn(c, "train", 12, 0, 10 * MINUTE_MS);
    expect_near(estimate_of(c, &(struct job_ask){.id = "like", .name = "train-77"}), 10 * MINUTE_MS);
    learn(c, "slow", 12, 0, 100 * MINUTE_MS);
    expect_near(estimate_of(c, &(struct job_ask){.id = "slow", .name = "slow.2"}), 100 * MINUTE_MS);
    ck_assert_int_lt(estimate_of(c, &(struct job_ask){.id = "same", .name = "train"}), 20 * MINUTE_MS);
    static const struct job_ask others[] = {{.id = "othr", .name = "train", .owner = "bert"},
                                            {.id = "proj", .name = "train", .project = "vision"},
                                            {.id = "wide", .name = "train", .gpus = 2},
                                            {.id = "none"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_int_gt(estimate_of(c, &others[i]), 40 * MINUTE_MS);
    }
}
END_TEST

START_TEST(what_was_learned_survives_a_restart)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a", .gpus = 2);
    learn(c, "train", 70, 0, MINUTE_MS);
    learn(c, "mixed", 3, 5 * MINUTE_MS, 2 * MINUTE_MS);
    int64_t open_ms = estimate_of(c, &(struct job_ask){.id = "open", .name = "train"});
    int64_t part_ms =
        estimate_of(c, &(struct job_ask){.id = "part", .name = "mixed", .time_limit_ms = HOUR_MS});
    cluster_restart(c);
    ck_assert_int_eq(estimate_of(c, &(struct job_ask){.id = "then", .name = "train"}), open_ms);
    ck_assert_int_eq(
        estimate_of(c, &(struct job_ask){.id = "also", .name = "mixed", .time_limit_ms = HOUR_MS}), part_ms);
}
END_TEST

START_TEST(of_time_limits_it_is_learned_which_part_is_used)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    const struct job_ask fresh = {.id = "frsh", .name = "fit", .time_limit_ms = HOUR_MS};
    ck_assert_int_eq(estimate_of(c, &fresh), HOUR_MS);
    learn(c, "fit", 30, 40 * MINUTE_MS, 10 * MINUTE_MS);
    expect_near(estimate_of(c, &(struct job_ask){.id = "less", .name = "fit", .time_limit_ms = HOUR_MS}),
                15 * MINUTE_MS);
    int64_t open_ms = estimate_of(c, &(struct job_ask){.id = "open", .name = "fit"});
    ck_assert_int_eq(open_ms, HOUR_MS); /* those without a limit are others */
}
END_TEST

START_TEST(how_far_estimates_were_off_is_known)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    learn(c, "even", 40, 0, 10 * MINUTE_MS);
    for (int i = 0; i < 20; i++) {
        char id[ID_LENGTH + 1];
        snprintf(id, sizeof id, "odd%d", i);
        run_one(c, &(struct job_ask){.id = id, .name = "odd"}, i % 2 == 0 ? MINUTE_MS : 30 * MINUTE_MS);
    }
    submit(c, "even", .name = "even");
    submit(c, "oddj", .name = "odd");
    struct history_trust even = history_trust(job_of(c, "even")->pattern);
    struct history_trust odd = history_trust(job_of(c, "oddj")->pattern);
    ck_assert_int_eq(even.runs, 40);
    ck_assert_int_lt(even.error_percent, 60); /* the first guesses among them */
    ck_assert_int_eq(odd.runs, 20);
    ck_assert_int_gt(odd.error_percent, 300);
}
END_TEST

/* --- the shorter takes from the longer ------------------------------------------------------------------ */

START_TEST(a_shorter_job_takes_the_gpus_of_a_longer_one_which_goes_on_later)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_SRTF);
    node(c, "a", .gpus = 2);
    submit(c, "long", .gpus = 2, .time_limit_ms = 100 * MINUTE_MS);
    pass(c, 10 * MINUTE_MS);
    submit(c, "same", .time_limit_ms = 90 * MINUTE_MS); /* not shorter than what is left */
    expect_orders(c, "a", "run long/1 rank 0-1 of 2 on 0,1\n");
    submit(c, "shrt", .time_limit_ms = 5 * MINUTE_MS);
    expect_orders(c, "a", "stop long/1 rank 0-1 of 2 on 0,1 PREEMPTED grace 30000\n");
    stopped(c, "long", "a");
    expect_job(c, "shrt", JOB_PLACED);
    expect_job(c, "long", JOB_QUEUED);
    expect_job(c, "same", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "long")->ran_ms, 10 * MINUTE_MS);
    cluster_restart(c);
    exited(c, "same", "a", 0);
    pass(c, 5 * MINUTE_MS);
    exited(c, "shrt", "a", 0);
    expect_job(c, "long", JOB_PLACED);
    pass(c, 90 * MINUTE_MS);
    exited(c, "long", "a", 0);
    expect_job(c, "long", JOB_SUCCEEDED);
    ck_assert_int_eq(rows_job(c->rows, "long")->ran_ms, 100 * MINUTE_MS);
}
END_TEST

START_TEST(srsf_counts_gpus_as_well_as_time)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_SRSF);
    node(c, "a", .gpus = 4);
    submit(c, "thin", .time_limit_ms = 100 * MINUTE_MS);
    submit(c, "wide", .gpus = 4, .time_limit_ms = 26 * MINUTE_MS);
    expect_orders(c, "a", "run thin/1 rank 0-0 of 1 on 0\n");
    submit(c, "less", .gpus = 4, .time_limit_ms = 24 * MINUTE_MS);
    expect_orders(c, "a", "stop thin/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
    stopped(c, "thin", "a");
    expect_job(c, "less", JOB_PLACED);
}
END_TEST

/* --- what is borrowed goes back ------------------------------------------------------------------------- */

START_TEST(those_that_lose_least_give_way_and_wait_again_at_their_old_places)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "anna", "{\"quota\":{\"A10\":4}}");
    static const char *const borrowers[] = {"b1", "b2", "b3", "b4"};
    for (int i = 0; i < 4; i++) {
        submit(c, borrowers[i], .gpus = 2, .project = "bert");
        pass(c, MINUTE_MS);
    }
    submit(c, "b5", .gpus = 2, .project = "bert");
    submit(c, "mine", .gpus = 4, .project = "anna");
    expect_orders(c, "a",
                  "run b1/1 rank 0-1 of 2 on 0,1\nrun b2/1 rank 0-1 of 2 on 2,3\n"
                  "stop b3/1 rank 0-1 of 2 on 4,5 PREEMPTED grace 30000\n"
                  "stop b4/1 rank 0-1 of 2 on 6,7 PREEMPTED grace 30000\n");
    stopped(c, "b3", "a");
    expect_job(c, "b3", JOB_QUEUED); /* what it gave back is kept */
    stopped(c, "b4", "a");
    expect_job(c, "mine", JOB_PLACED);
    cluster_restart(c);
    expect_job(c, "mine", JOB_PLACED);
    static const char *const next[] = {"b3", "b4", "b5"};
    static const char *const ends[] = {"b1", "b2", "mine"};
    for (int i = 0; i < 3; i++) {
        expect_job(c, next[i], JOB_QUEUED);
        exited(c, ends[i], "a", 0);
        expect_job(c, next[i], JOB_PLACED);
    }
}
END_TEST

START_TEST(no_more_give_way_than_must)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 5);
    limit(c, ACCOUNT_PROJECT, "anna", "{\"quota\":{\"A10\":4}}");
    submit(c, "big", .gpus = 4, .project = "bert");
    pass(c, MINUTE_MS);
    submit(c, "tiny", .project = "bert");
    submit(c, "mine", .gpus = 4, .project = "anna");
    expect_orders(
        c, "a", "stop big/1 rank 0-3 of 4 on 0,1,2,3 PREEMPTED grace 30000\nrun tiny/1 rank 0-0 of 1 on 4\n");
}
END_TEST

START_TEST(nobody_takes_from_its_own_project_nor_beyond_its_quota)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_EASY);
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "anna", "{\"quota\":{\"A10\":4}}");
    submit(c, "wide", .gpus = 6, .project = "anna"); /* more than its quota: borrowed */
    submit(c, "bbbb", .gpus = 2, .project = "bert");
    submit(c, "mine", .gpus = 4, .project = "anna");
    expect_orders(c, "a", "run wide/1 rank 0-5 of 6 on 0,1,2,3,4,5\nrun bbbb/1 rank 0-1 of 2 on 6,7\n");
    submit(c, "more", .gpus = 5, .project = "anna");
    expect_job(c, "more", JOB_QUEUED);
    submit(c, "fits", .gpus = 2, .project = "anna");
    expect_job(c, "bbbb", JOB_PLACED);
    expect_job(c, "fits", JOB_QUEUED);
}
END_TEST

START_TEST(what_a_reserved_pool_lent_goes_back_to_those_who_reserved)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "d", .gpus = 2, .pool = "plain");
    node(c, "a", .gpus = 2, .pool = "kept", .reserved = true);
    submit(c, "busy", .gpus = 2, .reserved = USE_RESERVED_FALSE, .project = "bert");
    submit(c, "lent", .gpus = 2, .reserved = USE_RESERVED_FALSE, .project = "bert");
    expect_job(c, "lent", JOB_QUEUED);
    limit(c, ACCOUNT_POOL, "kept", "{\"lend\":true}");
    expect_job(c, "lent", JOB_PLACED);
    submit(c, "mine", .reserved = USE_RESERVED_TRUE, .project = "anna");
    expect_orders(c, "a", "stop lent/1 rank 0-1 of 2 on 0,1 PREEMPTED grace 30000\n");
    stopped(c, "lent", "a");
    expect_job(c, "mine", JOB_PLACED);
    expect_job(c, "lent", JOB_QUEUED);
    exited(c, "mine", "a", 0);
    expect_job(c, "lent", JOB_PLACED);
}
END_TEST

/* --- no loops ------------------------------------------------------------------------------------------- */

#define RANDOM_JOBS 40
#define RANDOM_GPUS 16

struct market {
    struct cluster *cluster;
    struct chance chance;
    int submitted;
    uint64_t seen[RANDOM_JOBS]; /* the newest attempt id of each */
    uint64_t gone[RANDOM_JOBS]; /* the last that gave way */
    int64_t entitled_gpus, preemptions;
};

static void market_name(int number, char id[ID_LENGTH + 1])
{
    snprintf(id, ID_LENGTH + 1, "m%d", number);
}

/* Counts what is new; only what was borrowed gives way, and each of those that do is needed. */
static void market_look(struct market *market)
{
    char id[ID_LENGTH + 1];
    for (int i = 0; i < market->submitted; i++) {
        market_name(i, id);
        uint64_t attempt_id = rows_attempt_id(market->cluster->rows, id);
        if (attempt_id == 0 || job_state_terminal(rows_job(market->cluster->rows, id)->state)) {
            continue;
        }
        const struct attempt_row *row = rows_attempt(market->cluster->rows, attempt_id);
        if (attempt_id != market->seen[i] && row->claim == CLAIM_ENTITLED) {
            market->entitled_gpus += job_of(market->cluster, id)->job_class->request.units;
        }
        market->seen[i] = attempt_id;
        if (row->cause == CAUSE_PREEMPTED && market->gone[i] != attempt_id) {
            ck_assert_int_eq(row->claim, CLAIM_BORROWED);
            market->gone[i] = attempt_id;
            market->preemptions++;
        }
    }
}

static void market_submit(struct market *market)
{
    static const char *const projects[] = {"anna", "bert", "carl"};
    struct chance *chance = &market->chance;
    char id[ID_LENGTH + 1];
    market_name(market->submitted++, id);
    ck_assert_int_eq(submit(market->cluster, id, .gpus = 1 + (int64_t)chance_below(chance, 6),
                            .project = projects[chance_below(chance, 3)],
                            .time_limit_ms = chance_of(chance, 50) ? HOUR_MS : 0,
                            .priority = (int64_t)chance_below(chance, 3)),
                     ERR_NONE);
}

static void market_end_one(struct market *market)
{
    struct cluster *c = market->cluster;
    char id[ID_LENGTH + 1];
    market_name((int)chance_below(&market->chance, (uint64_t)market->submitted), id);
    const struct job_life *life = rows_job(c->rows, id);
    if (life->state != JOB_PLACED) {
        return;
    }
    if (rows_attempt(c->rows, rows_attempt_id(c->rows, id))->state == ATTEMPT_STOPPING) {
        stopped(c, id, "a");
    } else if (chance_of(&market->chance, 30)) {
        exited(c, id, "a", 0);
    }
}

static void market_open(struct market *market, int number)
{
    static const enum policy policies[] = {POLICY_FIFO, POLICY_EASY, POLICY_SJF, POLICY_DEFAULT};
    *market = (struct market){.cluster = cluster_open_with(policies[number % 4]),
                              .chance = {.state = 0x9e3779b97f4a7c15ULL * (uint64_t)(number + 1)}};
    node(market->cluster, "a", .gpus = RANDOM_GPUS);
    char quota[64];
    static const char *const projects[] = {"anna", "bert"};
    for (int i = 0; i < 2; i++) {
        snprintf(quota, sizeof quota, "{\"quota\":{\"A10\":%d}}", 1 + (int)chance_below(&market->chance, 8));
        ck_assert_int_eq(limit(market->cluster, ACCOUNT_PROJECT, projects[i], quota), ERR_NONE);
    }
}

START_TEST(preemption_is_bounded_by_what_entitled_work_gets)
{
    struct market market;
    market_open(&market, _i);
    for (int i = 0; i < 20000 && (market.submitted < RANDOM_JOBS || core_live_jobs(market.cluster->core) > 0);
         i++) {
        if (market.submitted < RANDOM_JOBS && (market.submitted == 0 || chance_of(&market.chance, 20))) {
            market_submit(&market);
        } else if (chance_of(&market.chance, 10)) {
            advance_beating(market.cluster, 1000, "a");
        } else {
            market_end_one(&market);
        }
        market_look(&market);
    }
    ck_assert_uint_eq(core_live_jobs(market.cluster->core), 0);
    ck_assert_int_le(market.preemptions, market.entitled_gpus);
    cluster_close(market.cluster);
}
END_TEST

Suite *policy_suite(void)
{
    Suite *suite = suite_create("policy");
    TCase *tests = tcase_create("policy");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_shorter_job_fills_the_gap_before_a_reserved_start_and_puts_nothing_off);
    tcase_add_test(tests, what_a_reservation_spares_may_be_had_for_longer);
    tcase_add_test(tests, a_reservation_that_was_put_off_for_an_hour_heeds_time_limits_only);
    tcase_add_test(tests, priority_goes_before_all_else_and_shorter_before_longer);
    tcase_add_test(tests, a_job_is_due_ten_times_its_run_time_after_it_came);
    tcase_add_test(tests, a_job_that_is_requeued_has_its_old_place);
    tcase_add_test(tests, a_gang_starts_when_it_is_due_whatever_streams_by);
    tcase_add_test(tests, a_gang_is_overtaken_only_by_those_that_are_due_before_it);
    tcase_add_test(tests, under_easy_a_gang_waits_for_what_came_before_it);
    tcase_add_test(tests, run_times_are_learned_from_jobs_that_are_like_it);
    tcase_add_test(tests, what_was_learned_survives_a_restart);
    tcase_add_test(tests, of_time_limits_it_is_learned_which_part_is_used);
    tcase_add_test(tests, how_far_estimates_were_off_is_known);
    tcase_add_test(tests, a_shorter_job_takes_the_gpus_of_a_longer_one_which_goes_on_later);
    tcase_add_test(tests, srsf_counts_gpus_as_well_as_time);
    tcase_add_test(tests, those_that_lose_least_give_way_and_wait_again_at_their_old_places);
    tcase_add_test(tests, no_more_give_way_than_must);
    tcase_add_test(tests, nobody_takes_from_its_own_project_nor_beyond_its_quota);
    tcase_add_test(tests, what_a_reserved_pool_lent_goes_back_to_those_who_reserved);
    tcase_add_loop_test(tests, preemption_is_bounded_by_what_entitled_work_gets, 0, 40);
    suite_add_tcase(suite, tests);
    return suite;
}
