/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/node/machine_sampler: what is read of files that look like the kernel's, and which
 * heartbeats carry it. */
#include "agent/node/machine_sampler.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/unit/agent/agent_suites.h"

static char proc[64];
static struct machine_sampler sampler;
static struct machine_sample *sample;

static struct device items[2];
static struct device_sight sights[2];
static struct devices devices = {.items = items, .count = 2, .sights = sights};

static void lay(const char *name, const char *text)
{
    struct err err;
    autofree char *path = xprintf("%s/%s", proc, name);
    ck_assert_msg(file_replace(path, text, strlen(text), 0600, &err), "%s", err.text);
}

static void lay_ticks(int user, int idle, int waiting)
{
    autofree char *text =
        xprintf("cpu  %d 10 20 %d %d 3 4 5 6 7\ncpu0 1 1 1 1 1 1 1 1 0 0\n", user, idle, waiting);
    lay("stat", text);
}

static void set_up(void)
{
    strcpy(proc, "/tmp/gpuctl-proc-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(proc));
    lay_ticks(100, 1000, 50);
    lay("meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n");
    sights[0] = (struct device_sight){.state = DEVICE_OCCUPIED, .use = {97, 1, 2, 3, 4, 5}};
    sights[1] = (struct device_sight){.state = DEVICE_BROKEN, .use = {98, 1, 2, 3, 4, 5}};
    machine_sampler_init(&sampler, proc);
    sample = NULL;
}

static void tear_down(void)
{
    struct err err;
    machine_sample_free(sample);
    ck_assert(file_remove_tree(proc, &err));
}

static const struct machine_sample *take(int64_t interval_s, int64_t number, int64_t now_ms)
{
    machine_sample_free(sample);
    return sample = machine_sampler_take(&sampler, proc, &devices, interval_s, number, now_ms);
}

START_TEST(a_sample_has_cpu_memory_and_the_last_look_at_each_gpu)
{
    lay_ticks(130, 1060, 60);
    ck_assert_ptr_nonnull(take(10, 1, 5000));
    ck_assert_double_eq(sample->cpu_percent, 30);
    ck_assert_int_eq(sample->memory_total_bytes, 1000 * KIB);
    ck_assert_int_eq(sample->memory_bytes, 600 * KIB);
    ck_assert_uint_eq(sample->gpu_count, 2);
    ck_assert_int_eq(sample->gpus[0].energy_mj, 5);
    ck_assert_int_eq(sample->gpus[1].busy_percent, -1); /* nothing is known of one that is broken */
}
END_TEST

START_TEST(cpu_time_counts_from_sample_to_sample)
{
    lay_ticks(130, 1060, 60);
    take(10, 1, 5000);
    lay_ticks(230, 1060, 60);
    take(10, 2, 15000);
    ck_assert_double_eq(sample->cpu_percent, 100);
    take(10, 3, 25000);
    ck_assert_double_eq(sample->cpu_percent, -1); /* no time has passed */
}
END_TEST

START_TEST(what_the_kernel_does_not_say_is_unknown)
{
    lay("stat", "intr 1\n");
    lay("meminfo", "MemTotal: 1000 kB\n");
    ck_assert_ptr_nonnull(take(10, 1, 5000));
    ck_assert_double_eq(sample->cpu_percent, -1);
    ck_assert_int_eq(sample->memory_bytes, -1);
    ck_assert_int_eq(sample->memory_total_bytes, 1000 * KIB);
}
END_TEST

START_TEST(slots_have_no_gpus)
{
    devices.slots = true;
    take(10, 1, 5000);
    devices.slots = false;
    ck_assert_uint_eq(sample->gpu_count, 0);
}
END_TEST

START_TEST(a_heartbeat_carries_a_sample_once_in_the_interval)
{
    ck_assert_ptr_nonnull(take(10, 1, 100000));
    ck_assert_ptr_null(take(10, 2, 105000));
    ck_assert_ptr_nonnull(take(10, 3, 110001)); /* a little late: the pace stays */
    ck_assert_ptr_null(take(10, 4, 114999));
    ck_assert_ptr_nonnull(take(10, 5, 120000));
    ck_assert_ptr_null(take(0, 6, 900000));
}
END_TEST

START_TEST(a_heartbeat_that_is_made_anew_carries_its_sample_again)
{
    ck_assert_ptr_nonnull(take(10, 7, 100000));
    ck_assert_ptr_nonnull(take(10, 7, 100500));
    ck_assert_ptr_null(take(10, 8, 101000));
}
END_TEST

Suite *machine_sampler_suite(void)
{
    Suite *suite = suite_create("machine_sampler");
    TCase *cases = tcase_create("machine_sampler");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_sample_has_cpu_memory_and_the_last_look_at_each_gpu);
    tcase_add_test(cases, cpu_time_counts_from_sample_to_sample);
    tcase_add_test(cases, what_the_kernel_does_not_say_is_unknown);
    tcase_add_test(cases, slots_have_no_gpus);
    tcase_add_test(cases, a_heartbeat_carries_a_sample_once_in_the_interval);
    tcase_add_test(cases, a_heartbeat_that_is_made_anew_carries_its_sample_again);
    suite_add_tcase(suite, cases);
    return suite;
}
