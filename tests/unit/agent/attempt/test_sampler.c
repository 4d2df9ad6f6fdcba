/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/usage and agent/sampler: what is read of cgroups and processes, here of folders that look
 * like those of the kernel, what becomes of it, and when there is a sample. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

#define SHIM 100

static char folder[64];

static void set_up(void)
{
    strcpy(folder, "/tmp/gpuctl-usage-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    struct err err;
    ck_assert(file_remove_tree(folder, &err));
}

static void lay(const char *name, const char *text)
{
    struct err err;
    autofree char *path = xprintf("%s/%s", folder, name);
    autofree char *above = file_folder_of(path);
    ck_assert(file_make_directories(above, 0700, &err));
    ck_assert_msg(file_replace(path, text, strlen(text), 0600, &err), "%s", err.text);
}

/* A process that has used own_ticks and waited for children that used child_ticks. */
static void lay_process(int pid, int parent, int own_ticks, int child_ticks, int pages)
{
    autofree char *name = xprintf("proc/%d/stat", pid);
    autofree char *text = xprintf("%d (a) b) S %d 1 1 0 -1 4194304 9 9 9 9 %d 1 %d 2 20 0 1 0 5 99999 %d 1\n",
                                  pid, parent, own_ticks, child_ticks, pages);
    lay(name, text);
}

static struct usage read_here(const char *cgroup)
{
    autofree char *proc = xprintf("%s/proc", folder);
    autofree char *path = cgroup != NULL ? xprintf("%s/%s", folder, cgroup) : NULL;
    return usage_read(&(struct usage_source){.proc = proc, .sys = folder, .cgroup = path, .shim = SHIM});
}

static void read_ranks_here(const char *cgroup, const pid_t *ranks, size_t count, struct usage *ret_usages)
{
    autofree char *proc = xprintf("%s/proc", folder);
    autofree char *path = cgroup != NULL ? xprintf("%s/%s", folder, cgroup) : NULL;
    usage_read_ranks(&(struct usage_source){.proc = proc, .sys = folder, .cgroup = path, .shim = SHIM}, ranks,
                     count, ret_usages);
}

static void assert_usage(struct usage usage, int64_t ticks, int64_t pages)
{
    ck_assert_int_eq(usage.cpu_us, ticks * 1000000 / sysconf(_SC_CLK_TCK));
    ck_assert_int_eq(usage.memory_bytes, pages * sysconf(_SC_PAGESIZE));
}

/* --- usage ---------------------------------------------------------------------------------------------- */

START_TEST(a_cgroup_that_counts_is_believed_but_for_files_that_lie_idle)
{
    lay("cg/cpu.stat", "usage_usec 123456\nuser_usec 1\nsystem_usec 2\n");
    lay("cg/memory.current", "5000000\n");
    lay("cg/memory.stat", "anon 1\ninactive_anon 7\ninactive_file 2000000\nactive_file 3\n");
    lay_process(201, SHIM, 1000, 0, 1000);
    struct usage usage = read_here("cg");
    ck_assert_int_eq(usage.cpu_us, 123456);
    ck_assert_int_eq(usage.memory_bytes, 3000000);
}
END_TEST

START_TEST(a_cgroup_that_counts_no_memory_has_that_of_its_processes)
{
    lay("cg/cpu.stat", "nr_periods 0\nusage_usec 77\n");
    lay_process(201, SHIM, 1000, 0, 12);
    struct usage usage = read_here("cg");
    ck_assert_int_eq(usage.cpu_us, 77);
    ck_assert_int_eq(usage.memory_bytes, 12 * sysconf(_SC_PAGESIZE));
}
END_TEST

START_TEST(without_a_cgroup_the_descendants_of_the_shim_are_summed)
{
    lay_process(SHIM, 1, 999, 999, 999);
    lay_process(150, SHIM, 10, 7, 1); /* it has waited for children that used 7 */
    lay_process(90, 150, 20, 0, 2);   /* numbers have begun anew */
    lay_process(300, 90, 30, 0, 3);
    lay_process(301, 1, 4000, 0, 4000);
    lay("proc/version", "Linux\n");
    assert_usage(read_here(NULL), 10 + 7 + 20 + 30 + 3 * 3, 6);
}
END_TEST

static void assert_io(struct usage usage, int64_t read_bytes, int64_t written_bytes)
{
    ck_assert_int_eq(usage.io_read_bytes, read_bytes);
    ck_assert_int_eq(usage.io_written_bytes, written_bytes);
}

START_TEST(what_a_cgroup_reads_and_writes_is_summed_over_disks_that_are_made_of_no_others)
{
    lay("cg/cpu.stat", "usage_usec 1\n");
    lay("cg/memory.current", "1\n");
    lay("cg/io.stat", "8:0 rbytes=1000 wbytes=50 rios=1 wios=2 dbytes=0 dios=0\n"
                      "253:0 rbytes=1000 wbytes=50 rios=1 wios=2 dbytes=0 dios=0\n"
                      "7:0 \n"
                      "259:3 rbytes=7 wbytes=9000000000000 rios=1 wios=1 dbytes=0 dios=0\n");
    lay("dev/block/253:0/slaves/sda", "");
    lay("proc/201/io", "read_bytes: 4\nwrite_bytes: 4\n");
    lay_process(201, SHIM, 1, 0, 1);
    assert_io(read_here("cg"), 1007, 9000000000050);
    lay("cg/io.stat", "");
    assert_io(read_here("cg"), 0, 0);
}
END_TEST

START_TEST(without_a_count_of_disks_the_descendants_of_the_shim_are_summed)
{
    static const char *const io = "rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: 4096\n"
                                  "write_bytes: 512\ncancelled_write_bytes: 9\n";
    lay("cg/cpu.stat", "usage_usec 1\n");
    lay("cg/memory.current", "1\n");
    lay_process(150, SHIM, 1, 0, 1);
    lay_process(151, 150, 1, 0, 1);
    lay_process(152, 150, 1, 0, 1); /* of another user */
    lay_process(301, 1, 1, 0, 1);
    assert_io(read_here("cg"), -1, -1);
    lay("proc/150/io", io);
    lay("proc/151/io", io);
    lay("proc/301/io", io);
    assert_io(read_here("cg"), 8192, 1024);
    assert_io(read_here(NULL), 8192, 1024);
}
END_TEST

/* Two ranks; the first has a child and its child, and something of it lives on below the shim. */
START_TEST(each_rank_has_the_usage_of_its_own_descendants)
{
    const pid_t ranks[] = {150, 160, 170};
    struct usage usages[3];
    lay_process(150, SHIM, 10, 0, 1);
    lay_process(160, SHIM, 20, 0, 2);
    lay_process(90, 150, 30, 0, 4); /* numbers have begun anew */
    lay_process(300, 90, 40, 0, 8);
    lay_process(301, SHIM, 4000, 0, 4000);
    lay_process(302, 303, 4000, 0, 4000); /* each the parent of the other: read at two moments */
    lay_process(303, 302, 4000, 0, 4000);
    lay("proc/150/io", "read_bytes: 1\nwrite_bytes: 2\n");
    lay("proc/300/io", "read_bytes: 4\nwrite_bytes: 8\n");
    for (int i = 0; i < 2; i++) { /* without a cgroup, and with one */
        read_ranks_here(i == 0 ? NULL : "cg", ranks, 3, usages);
        assert_usage(usages[0], 10 + 30 + 40 + 3 * 3, 13);
        assert_io(usages[0], 5, 10);
        assert_usage(usages[1], 20 + 3, 2);
        assert_io(usages[1], -1, -1);
        ck_assert_int_eq(usages[2].memory_bytes, -1); /* it has ended */
        lay("cg/cgroup.procs", "160\n150\n301\n");
        lay("cg/of_the_job/cgroup.procs", "300\n90\n302\n303\n");
    }
}
END_TEST

START_TEST(of_too_many_processes_no_rank_has_a_part)
{
    const pid_t rank = 150;
    struct usage usage;
    autotext struct text pids = {0};
    lay_process(150, SHIM, 10, 0, 1);
    for (int i = 0; i < LIMIT_SAMPLE_PROCESSES; i++) {
        text_append(&pids, "150\n");
    }
    lay("cg/cgroup.procs", pids.bytes);
    read_ranks_here("cg", &rank, 1, &usage);
    ck_assert_int_gt(usage.memory_bytes, 0);
    lay("cg/of_the_job/cgroup.procs", "150\n");
    read_ranks_here("cg", &rank, 1, &usage);
    ck_assert_int_eq(usage.memory_bytes, -1);
}
END_TEST

START_TEST(what_has_no_process_left_has_no_usage)
{
    lay_process(201, 1, 1, 1, 1);
    ck_assert_int_eq(read_here("gone").memory_bytes, -1);
    ck_assert_int_eq(read_here(NULL).cpu_us, -1);
}
END_TEST

START_TEST(cpu_time_is_a_share_of_all_cpus)
{
    const struct usage none = USAGE_UNKNOWN, before = {.cpu_us = 1000000}, now = {.cpu_us = 3000000},
                       less = {.cpu_us = 500000};
    ck_assert_double_eq(sampler_cpu_percent(&before, &now, 1000000, 4), 50);
    ck_assert_double_eq(sampler_cpu_percent(&before, &before, 1000000, 4), 0);
    ck_assert_double_eq(sampler_cpu_percent(&before, &now, 1000000, 1), 100); /* ticks are coarse */
    ck_assert_double_eq(sampler_cpu_percent(&none, &now, 1000000, 4), -1);
    ck_assert_double_eq(sampler_cpu_percent(&before, &none, 1000000, 4), -1);
    ck_assert_double_eq(sampler_cpu_percent(&before, &less, 1000000, 4), -1);
    ck_assert_double_eq(sampler_cpu_percent(&before, &now, 0, 4), -1);
}
END_TEST

/* --- the sampler ---------------------------------------------------------------------------------------- */

static struct device_sight sights[] = {
    {.state = DEVICE_OCCUPIED, .use = {97, 1, 2, 3, 4, 5}},
    {.state = DEVICE_BROKEN, .use = {98, 1, 2, 3, 4, 5}},
    {.state = DEVICE_EMPTY, .use = {0, 4, 5, -1, -1, -1}},
};

/* An attempt on the third GPU and on the first two, and a loop that ends when it has a sample. */
struct scene {
    struct agent_context context;
    struct attempt attempt;
    struct device devices[3];
    int64_t indices[3];
    struct loop_timer look;
};

static void look_due(void *closure)
{
    struct scene *scene = closure;
    if (scene->attempt.sampler.waits) {
        loop_end(scene->context.loop);
    } else {
        loop_arm(scene->context.loop, &scene->look, clock_boot_ms() + 10);
    }
}

static void scene_set(struct scene *scene)
{
    *scene = (struct scene){.indices = {2, 0, 1}};
    scene->context.loop = loop_create();
    scene->context.config.sample_s = 1;
    scene->context.devices = (struct devices){.items = scene->devices, .count = 3, .sights = sights};
    for (int64_t i = 0; i < 3; i++) {
        scene->devices[i].index = i;
    }
    scene->attempt = (struct attempt){.context = &scene->context,
                                      .attempt_id = 7,
                                      .running_ms = clock_wall_ms() - 30000,
                                      .shim = {.fd = -1, .pidfd = -1},
                                      .devices = scene->indices,
                                      .device_count = 3};
    loop_set(scene->context.loop, &scene->look, look_due, scene);
}

static void scene_await_sample(struct scene *scene)
{
    loop_arm(scene->context.loop, &scene->look, 0);
    loop_run(scene->context.loop);
}

static void scene_end(struct scene *scene)
{
    sampler_end(&scene->attempt);
    loop_destroy(scene->context.loop);
}

START_TEST(an_attempt_that_runs_has_a_sample_with_its_own_gpus_as_it_numbers_them)
{
    struct scene scene;
    scene_set(&scene);
    sampler_begin(&scene.attempt);
    ck_assert(!scene.attempt.sampler.waits);
    scene_await_sample(&scene);
    const struct sample *sample = &scene.attempt.sampler.sample;
    ck_assert_uint_eq(sample->attempt_id, 7);
    ck_assert_int_ge(sample->step, 31);
    ck_assert_int_gt(sample->memory_total_bytes, 0);
    ck_assert_uint_eq(sample->gpu_count, 3);
    ck_assert_int_eq(sample->gpus[0].memory_bytes, 4);
    ck_assert_int_eq(sample->gpus[0].power_mw, -1);
    ck_assert_int_eq(sample->gpus[1].busy_percent, 97);
    ck_assert_int_eq(sample->gpus[2].busy_percent, -1); /* nothing is known of one that is broken */
    scene_end(&scene);
}
END_TEST

START_TEST(the_ranks_of_an_attempt_have_a_part_each_of_its_sample)
{
    struct scene scene;
    scene_set(&scene);
    scene.attempt.pids[0] = getpid();
    scene.attempt.pids[1] = 1;
    scene.attempt.pid_count = 2;
    scene.attempt.order.first_rank = 4;
    sampler_begin(&scene.attempt);
    scene_await_sample(&scene);
    const struct sample *sample = &scene.attempt.sampler.sample;
    ck_assert_uint_eq(sample->rank_count, 2);
    ck_assert_int_eq(sample->ranks[0].rank, 4);
    ck_assert_int_eq(sample->ranks[1].rank, 5);
    ck_assert_int_gt(sample->ranks[0].memory_bytes, 0);
    ck_assert_double_eq(sample->ranks[0].cpu_percent, -1); /* that is since the sample before */
    scene_end(&scene);
}
END_TEST

START_TEST(a_sample_waits_until_a_heartbeat_that_has_carried_it_is_answered)
{
    struct scene scene;
    scene_set(&scene);
    scene.context.devices.slots = true;
    sampler_begin(&scene.attempt);
    scene_await_sample(&scene);
    ck_assert_uint_eq(scene.attempt.sampler.sample.gpu_count, 0);
    scene.attempt.sampler.carrier = 5;
    sampler_carried(&scene.attempt, 4);
    ck_assert(scene.attempt.sampler.waits);
    sampler_unload(&scene.attempt, 5); /* it could not be sent */
    sampler_carried(&scene.attempt, 5);
    ck_assert(scene.attempt.sampler.waits);
    scene.attempt.sampler.carrier = 6;
    sampler_carried(&scene.attempt, 6);
    ck_assert(!scene.attempt.sampler.waits);
    scene_await_sample(&scene);
    scene_end(&scene);
}
END_TEST

START_TEST(an_attempt_that_has_ended_has_no_sample)
{
    struct scene scene;
    scene_set(&scene);
    sampler_begin(&scene.attempt);
    scene_await_sample(&scene);
    sampler_end(&scene.attempt);
    ck_assert(!scene.attempt.sampler.waits && !scene.attempt.sampler.timer.on);
    scene_end(&scene);
}
END_TEST

START_TEST(an_old_attempt_is_measured_more_seldom)
{
    const int64_t hour_ms = 3600000;
    ck_assert_int_eq(sampler_period_ms(10, -5), 10000); /* the wall clock was set back */
    ck_assert_int_eq(sampler_period_ms(10, hour_ms), 10000);
    ck_assert_int_eq(sampler_period_ms(10, 24 * hour_ms), 240000);
    ck_assert_int_eq(sampler_period_ms(600, 24 * hour_ms), 600000);
    int64_t samples = 0; /* of a year */
    for (int64_t age_ms = 0; age_ms < 365 * 24 * hour_ms; age_ms += sampler_period_ms(10, age_ms)) {
        samples++;
    }
    ck_assert_int_lt(samples, 4000);
}
END_TEST

START_TEST(an_agent_that_is_told_so_measures_nothing)
{
    struct scene scene;
    scene_set(&scene);
    scene.context.config.sample_s = 0;
    sampler_begin(&scene.attempt);
    ck_assert(!scene.attempt.sampler.timer.on);
    scene_end(&scene);
}
END_TEST

Suite *sampler_suite(void)
{
    Suite *suite = suite_create("sampler");
    TCase *usage = tcase_create("usage");
    tcase_add_checked_fixture(usage, set_up, tear_down);
    tcase_add_test(usage, a_cgroup_that_counts_is_believed_but_for_files_that_lie_idle);
    tcase_add_test(usage, a_cgroup_that_counts_no_memory_has_that_of_its_processes);
    tcase_add_test(usage, without_a_cgroup_the_descendants_of_the_shim_are_summed);
    tcase_add_test(usage, what_a_cgroup_reads_and_writes_is_summed_over_disks_that_are_made_of_no_others);
    tcase_add_test(usage, without_a_count_of_disks_the_descendants_of_the_shim_are_summed);
    tcase_add_test(usage, each_rank_has_the_usage_of_its_own_descendants);
    tcase_add_test(usage, of_too_many_processes_no_rank_has_a_part);
    tcase_add_test(usage, what_has_no_process_left_has_no_usage);
    tcase_add_test(usage, cpu_time_is_a_share_of_all_cpus);
    suite_add_tcase(suite, usage);
    TCase *samples = tcase_create("samples");
    tcase_add_test(samples, an_attempt_that_runs_has_a_sample_with_its_own_gpus_as_it_numbers_them);
    tcase_add_test(samples, the_ranks_of_an_attempt_have_a_part_each_of_its_sample);
    tcase_add_test(samples, a_sample_waits_until_a_heartbeat_that_has_carried_it_is_answered);
    tcase_add_test(samples, an_attempt_that_has_ended_has_no_sample);
    tcase_add_test(samples, an_old_attempt_is_measured_more_seldom);
    tcase_add_test(samples, an_agent_that_is_told_so_measures_nothing);
    suite_add_tcase(suite, samples);
    return suite;
}
