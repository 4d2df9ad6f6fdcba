/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters, and what a replay makes of a trace. */
#include <stdlib.h>
#include <string.h>

#include "daemon/simulate/figures.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/trace/harness/chance.h"
#include "tests/trace/suites.h"

static struct trace trace;
static struct fleet fleet;
static struct outcome outcome;
static struct err err;

static bool read_text(const char *text)
{
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    ck_assert_ptr_nonnull(in);
    bool good = trace_read(in, "trace.csv", &trace, &err);
    fclose(in);
    return good;
}

static void simulate(const char *jobs, const char *nodes)
{
    autofree char *text = xprintf("submit_s,duration_s,gpus\n%s", jobs);
    ck_assert_msg(read_text(text), "%s", err.text);
    ck_assert_msg(fleet_parse(nodes, &fleet, &err), "%s", err.text);
    replay(&trace, &fleet, &(struct replay_options){0}, &outcome);
}

static void finish(void)
{
    trace_finish(&trace);
    fleet_finish(&fleet);
    outcome_finish(&outcome);
}

static void expect_fate(size_t job, int64_t start_s, int64_t end_s)
{
    ck_assert_int_eq(outcome.fates[job].start_ms, 1000 * start_s);
    ck_assert_int_eq(outcome.fates[job].end_ms, 1000 * end_s);
}

/* --- clusters --- */

START_TEST(a_cluster_is_nodes_times_gpus_of_a_type)
{
    ck_assert(fleet_parse("64x8:A10,10x4:H100", &fleet, &err));
    ck_assert_uint_eq(fleet.count, 2);
    ck_assert_int_eq(fleet_gpus(&fleet), 64 * 8 + 40);
    ck_assert_str_eq(fleet.parts[1].type, "H100");
    static const char *const wrong[] = {"",    "8",     "x8",   "8x",          "0x8",
                                        "8x0", "8x8x8", "8x8:", "4x4:A10,4x4", "8x8,"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct fleet none;
        ck_assert_msg(!fleet_parse(wrong[i], &none, &err), "%s", wrong[i]);
        ck_assert_str_eq(err.field, "nodes");
    }
}
END_TEST

/* --- replays --- */

START_TEST(jobs_wait_for_gpus_in_the_order_of_their_submission)
{
    simulate("0,100,2\n10,50,2\n20,10,1\n", "2x1");
    expect_fate(0, 0, 100);
    expect_fate(1, 100, 150);
    expect_fate(2, 150, 160);
}
END_TEST

START_TEST(a_job_that_comes_when_gpus_become_free_starts_at_once)
{
    simulate("0,100,1\n100,5,1\n100,0,1\n", "1x1");
    expect_fate(1, 100, 105);
    expect_fate(2, 105, 105);
}
END_TEST

START_TEST(a_gang_runs_over_nodes_and_frees_all_of_them)
{
    simulate("0,10,20\n1,5,8\n", "3x8");
    expect_fate(0, 0, 10);
    expect_fate(1, 10, 15);
    ck_assert_int_eq(outcome.moments[outcome.moment_count - 1].used_gpus, 0);
}
END_TEST

START_TEST(a_job_that_the_cluster_can_never_run_is_counted_and_explained)
{
    simulate("0,10,9\n0,10,8\n", "1x8");
    ck_assert_uint_eq(outcome.refused, 1);
    ck_assert_int_eq(outcome.fates[0].start_ms, -1);
    ck_assert_ptr_nonnull(strstr(outcome.refusal, "needs 9 GPUs"));
    struct figures figures = figures_of(&trace, &fleet, &outcome);
    ck_assert_uint_eq(figures.jobs, 1);
    figures_finish(&figures);
}
END_TEST

START_TEST(types_matter_where_the_cluster_names_them)
{
    ck_assert(
        read_text("submit_s,duration_s,gpus,gpu_type\n0,10,1,A10\n0,10,1,A10\n0,10,1,H100\n0,1,1,B200\n"));
    ck_assert(fleet_parse("1x1:A10,1x1:H100", &fleet, &err));
    replay(&trace, &fleet, &(struct replay_options){0}, &outcome);
    expect_fate(1, 10, 20);
    expect_fate(2, 0, 10);
    ck_assert_uint_eq(outcome.refused, 1);
}
END_TEST

START_TEST(figures_are_those_that_one_reckons_by_hand)
{
    simulate("0,100,2\n50,100,2\n100,100,1\n", "1x2");
    struct figures figures = figures_of(&trace, &fleet, &outcome);
    ck_assert_uint_eq(figures.jobs, 3);
    ck_assert_double_eq_tol(figures.avg_jct_s, (100 + 150 + 200) / 3.0, 1e-9);
    ck_assert_double_eq(figures.p50_jct_s, 150);
    ck_assert_double_eq(figures.p99_jct_s, 200);
    ck_assert_double_eq_tol(figures.avg_wait_s, (0 + 50 + 100) / 3.0, 1e-9);
    ck_assert_double_eq(figures.utilization, 1);
    ck_assert_double_eq(figures.makespan_s, 300);
    ck_assert_int_eq(figures.completions_ms[2], 200000);
    figures_finish(&figures);
}
END_TEST

START_TEST(the_same_trace_gives_the_same_outcome)
{
    struct text jobs = {0};
    for (int i = 0; i < 2000; i++) {
        text_printf(&jobs, "%d,%d,%d\n", 3 * i, 1 + i * 7919 % 400, 1 + i * 104729 % 13);
    }
    simulate(jobs.bytes, "4x4");
    autofree struct fate *first = xalloc(trace.count * sizeof *first);
    memcpy(first, outcome.fates, trace.count * sizeof *first);
    outcome_finish(&outcome);
    replay(&trace, &fleet, &(struct replay_options){0}, &outcome);
    ck_assert_mem_eq(first, outcome.fates, trace.count * sizeof *first);
    for (size_t i = 0; i < outcome.moment_count; i++) {
        ck_assert_int_le(outcome.moments[i].used_gpus, 16);
    }
    text_finish(&jobs);
}
END_TEST

static bool counts_down(void *closure)
{
    int64_t *left = closure;
    return (*left)-- > 0;
}

START_TEST(a_replay_ends_wherever_it_is_told_to)
{
    simulate("0,100,2\n10,50,2\n20,10,1\n30,5,2\n", "2x1");
    int64_t steps = outcome.steps, asked = 0;
    bool whole = false;
    for (; !whole; asked++) {
        outcome_finish(&outcome);
        int64_t left = asked;
        const struct replay_options options = {
            .policy = POLICY_SRTF, .goes_on = counts_down, .closure = &left};
        whole = replay(&trace, &fleet, &options, &outcome);
        ck_assert(whole || outcome.fates == NULL);
    }
    ck_assert_int_ge(asked, 2 + 4 + 4); /* nodes, submissions and ends */
    ck_assert_int_ge(outcome.steps, steps);
    finish();
}
END_TEST

START_TEST(waits_are_told_for_the_groups_with_the_most_jobs)
{
    struct text jobs = {0};
    text_append(&jobs,
                "submit_s,duration_s,gpus,owner\n0,100,1,bob\n0,100,1,ann\n0,100,1,ann\n0,1,9,eve\n0,1,1,\n");
    for (int i = 0; i < LIMIT_FIGURES_GROUPS; i++) {
        text_printf(&jobs, "1000,1,1,user%02d\n", i);
    }
    ck_assert(read_text(jobs.bytes));
    ck_assert(fleet_parse("1x1", &fleet, &err));
    replay(&trace, &fleet, &(struct replay_options){.policy = POLICY_FIFO}, &outcome);
    struct figures figures = figures_of(&trace, &fleet, &outcome);
    ck_assert_uint_eq(figures.projects.count, 0);
    ck_assert_uint_eq(figures.owners.count, LIMIT_FIGURES_GROUPS);
    const struct group_figures *ann = &figures.owners.items[0], *bob = &figures.owners.items[1];
    ck_assert_str_eq(ann->name, "ann");
    ck_assert_uint_eq(ann->jobs, 2);
    ck_assert_double_eq(ann->avg_wait_s, 150);
    ck_assert_double_eq(ann->p50_wait_s, 100);
    ck_assert_double_eq(ann->p99_wait_s, 200);
    ck_assert_str_eq(bob->name, "bob");
    ck_assert_double_eq(bob->p50_wait_s, 0);
    figures_finish(&figures);
    text_finish(&jobs);
    finish();
}
END_TEST

START_TEST(what_a_fleet_is_written_as_is_the_same_fleet)
{
    autotext struct text text = {0};
    ck_assert(fleet_parse("64x8:A10,10x4:H100", &fleet, &err));
    fleet_write(&fleet, &text);
    ck_assert_str_eq(text.bytes, "64x8:A10,10x4:H100");
    ck_assert_int_eq(fleet_nodes(&fleet), 74);
    fleet_finish(&fleet);
    ck_assert(fleet_parse("3x2", &fleet, &err));
    text_clear(&text);
    fleet_write(&fleet, &text);
    ck_assert_str_eq(text.bytes, "3x2");
    fleet_finish(&fleet);
}
END_TEST

/* --- chance --- */

#define CHANCE_TRACES 400 /* each under all policies and all limits: together some 4 s with sanitizers */
#define CHANCE_JOBS   9

static void random_trace(struct chance *chance)
{
    static const char *const clusters[] = {"1x8", "1x2", "2x2", "3x1"};
    const char *cluster = clusters[chance_below(chance, 4)];
    struct text jobs = {0};
    text_append(&jobs, "submit_s,duration_s,gpus,limit_s,name\n");
    uint64_t submit_s = 0, count = 1 + chance_below(chance, CHANCE_JOBS);
    for (uint64_t i = 0; i < count; i++) {
        submit_s += chance_of(chance, 50) ? 0 : chance_below(chance, 1000);
        text_printf(&jobs, "%llu,%llu,%llu,%llu,%c\n", (unsigned long long)submit_s,
                    (unsigned long long)chance_below(chance, chance_of(chance, 50) ? 5 : 5000),
                    (unsigned long long)(1 + chance_below(chance, 8)),
                    (unsigned long long)(chance_of(chance, 50) ? 0 : 1 + chance_below(chance, 5000)),
                    (char)('a' + chance_below(chance, 2)));
    }
    ck_assert_msg(read_text(jobs.bytes), "%s", err.text);
    ck_assert_msg(fleet_parse(cluster, &fleet, &err), "%s", err.text);
    text_finish(&jobs);
}

static void expect_sound(uint64_t seed, enum policy policy, enum limits limits)
{
    size_t refused = 0;
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_job *job = &trace.jobs[i];
        const struct fate *fate = &outcome.fates[i];
        refused += fate->start_ms < 0;
        int64_t ran_ms = fate->end_ms - fate->start_ms;
        ck_assert_msg(fate->start_ms < 0 || (fate->start_ms >= job->submit_ms && ran_ms >= job->duration_ms &&
                                             (fate->preemptions > 0 || ran_ms == job->duration_ms)),
                      "seed %llu, %s, limits %d: job %zu", (unsigned long long)seed, policy_text(policy),
                      limits, i);
    }
    ck_assert_uint_eq(refused, outcome.refused);
    for (size_t i = 0; i < outcome.moment_count; i++) {
        ck_assert_int_le(outcome.moments[i].used_gpus, fleet_gpus(&fleet));
    }
}

/* M8: an attempt that was preempted in the step that had placed it was never taken off its GPUs. */
START_TEST(any_trace_runs_to_its_end_under_every_policy_with_any_limits)
{
    for (uint64_t seed = 1; seed <= CHANCE_TRACES; seed++) {
        struct chance chance = {seed};
        random_trace(&chance);
        for (enum policy policy = 0; policy < POLICY_COUNT; policy++) {
            for (enum limits limits = LIMITS_TRACE; limits <= LIMITS_NONE; limits++) {
                replay(&trace, &fleet, &(struct replay_options){.policy = policy, .limits = limits},
                       &outcome);
                expect_sound(seed, policy, limits);
                outcome_finish(&outcome);
            }
        }
        finish();
    }
}
END_TEST

/* M8: what the end of a job teaches counts for all of its kind at once, not for the next in line alone. */
START_TEST(a_job_is_not_placed_to_give_way_at_once_to_one_of_its_kind)
{
    for (enum policy policy = POLICY_SRTF; policy <= POLICY_SRSF; policy++) {
        ck_assert(read_text("submit_s,duration_s,gpus\n0,100,8\n10,50,8\n20,10,8\n"));
        ck_assert(fleet_parse("1x8", &fleet, &err));
        replay(&trace, &fleet, &(struct replay_options){.policy = policy}, &outcome);
        expect_fate(1, 100, 150);
        expect_fate(2, 150, 160);
        ck_assert_int_eq(outcome.preemptions, 0);
        finish();
    }
}
END_TEST

Suite *simulate_suite(void)
{
    Suite *suite = suite_create("simulate");
    TCase *tests = tcase_create("simulate");
    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, a_cluster_is_nodes_times_gpus_of_a_type);
    tcase_add_test(tests, jobs_wait_for_gpus_in_the_order_of_their_submission);
    tcase_add_test(tests, a_job_that_comes_when_gpus_become_free_starts_at_once);
    tcase_add_test(tests, a_gang_runs_over_nodes_and_frees_all_of_them);
    tcase_add_test(tests, a_job_that_the_cluster_can_never_run_is_counted_and_explained);
    tcase_add_test(tests, types_matter_where_the_cluster_names_them);
    tcase_add_test(tests, figures_are_those_that_one_reckons_by_hand);
    tcase_add_test(tests, the_same_trace_gives_the_same_outcome);
    tcase_add_test(tests, a_replay_ends_wherever_it_is_told_to);
    tcase_add_test(tests, waits_are_told_for_the_groups_with_the_most_jobs);
    tcase_add_test(tests, what_a_fleet_is_written_as_is_the_same_fleet);
    tcase_add_test(tests, any_trace_runs_to_its_end_under_every_policy_with_any_limits);
    tcase_add_test(tests, a_job_is_not_placed_to_give_way_at_once_to_one_of_its_kind);
    suite_add_tcase(suite, tests);
    return suite;
}
