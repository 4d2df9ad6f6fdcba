/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/devices: names of GPUs, which are chosen, whether they are in use; the library is
 * fake_nvml.c. */
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "proto/base/cleanup.h"
#include "tests/unit/agent_suites.h"

static void assert_short(const char *product, const char *expected)
{
    autofree char *name = devices_short_name(product);
    ck_assert_str_eq(name, expected);
}

START_TEST(gpus_go_by_the_names_that_people_use)
{
    assert_short("NVIDIA H100 80GB HBM3", "H100");
    assert_short("NVIDIA A100-SXM4-80GB", "A100");
    assert_short("NVIDIA A10", "A10");
    assert_short("NVIDIA A10G", "A10G");
    assert_short("Tesla T4", "T4");
    assert_short("NVIDIA GeForce RTX 4090", "RTX4090");
    assert_short("Quadro RTX 6000", "RTX6000");
    assert_short("NVIDIA L40S", "L40S");
    assert_short("NVIDIA", "GPU");
}
END_TEST

START_TEST(slots_are_devices_that_nobody_uses)
{
    struct devices devices;
    const int64_t indices[] = {0, 1};
    int64_t index, pid;
    devices_open_slots(2, NULL, &devices);
    ck_assert_uint_eq(devices.count, 2);
    ck_assert(devices.slots);
    ck_assert_str_eq(devices.items[1].uuid, "slot-1");
    ck_assert_str_eq(devices.items[1].type, "cpu");
    ck_assert_int_eq(devices.items[1].group, -1);
    ck_assert(!devices_in_use(&devices, indices, 2, &index, &pid));
    devices_close(&devices);
    devices_open_slots(1, "H100", &devices);
    ck_assert_str_eq(devices.items[0].type, "H100");
    devices_close(&devices);
}
END_TEST

#ifdef WITH_NVML

static struct devices open_gpus(const char *list, const char *type)
{
    struct devices devices;
    struct err err = {0};
    ck_assert_msg(devices_open_nvml(getenv("FAKE_NVML"), list, type, &devices, &err), "%s", err.text);
    return devices;
}

START_TEST(all_gpus_are_found_with_their_types)
{
    struct devices devices = open_gpus("all", NULL);
    ck_assert_uint_eq(devices.count, 3);
    ck_assert_str_eq(devices.items[0].type, "H100");
    ck_assert_str_eq(devices.items[2].type, "RTX4090");
    ck_assert_str_eq(devices.items[2].uuid, "GPU-2");
    ck_assert_int_eq(devices.items[0].memory_bytes, 80LL << 30);
    ck_assert(devices.no_peer_access);
    devices_close(&devices);
}
END_TEST

START_TEST(gpus_are_chosen_by_index_or_uuid)
{
    struct devices devices = open_gpus("GPU-1,0", "big");
    ck_assert_uint_eq(devices.count, 2);
    ck_assert_int_eq(devices.items[1].index, 1);
    ck_assert_str_eq(devices.items[1].type, "big");
    ck_assert(!devices.no_peer_access);
    devices_close(&devices);
}
END_TEST

START_TEST(a_gpu_that_is_not_there_is_an_error)
{
    struct devices devices;
    struct err err = {0};
    ck_assert(!devices_open_nvml(getenv("FAKE_NVML"), "0,7", NULL, &devices, &err));
    ck_assert_msg(strstr(err.text, "0,7") != NULL, "%s", err.text);
    ck_assert_str_eq(err.field, "--devices");
    ck_assert(!devices_open_nvml("/nowhere/libnvidia-ml.so.1", "all", NULL, &devices, &err));
    ck_assert_int_eq(err.code, ERR_IO);
}
END_TEST

START_TEST(a_gpu_in_use_is_named_with_its_user)
{
    struct devices devices = open_gpus("all", NULL);
    const int64_t free_ones[] = {0, 2}, all[] = {0, 1};
    int64_t index = -1, pid = -1;
    ck_assert(!devices_in_use(&devices, free_ones, 2, &index, &pid));
    ck_assert(devices_in_use(&devices, all, 2, &index, &pid));
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(pid, 4242);
    devices_close(&devices);
}
END_TEST

static void assert_groups(int64_t first, int64_t second, int64_t third)
{
    struct devices devices = open_gpus("all", NULL);
    ck_assert_int_eq(devices.items[0].group, first);
    ck_assert_int_eq(devices.items[1].group, second);
    ck_assert_int_eq(devices.items[2].group, third);
    devices_close(&devices);
}

START_TEST(gpus_of_one_numa_node_are_a_group_where_none_are_linked)
{
    assert_groups(0, 0, 1);
}
END_TEST

START_TEST(gpus_joined_by_nvlink_are_a_group)
{
    setenv("FAKE_NVLINK", "1", 1);
    assert_groups(0, 1, 0);
    unsetenv("FAKE_NVLINK");
}
END_TEST

static void add_nvml_tests(TCase *tcase)
{
    tcase_add_test(tcase, gpus_of_one_numa_node_are_a_group_where_none_are_linked);
    tcase_add_test(tcase, gpus_joined_by_nvlink_are_a_group);
    tcase_add_test(tcase, all_gpus_are_found_with_their_types);
    tcase_add_test(tcase, gpus_are_chosen_by_index_or_uuid);
    tcase_add_test(tcase, a_gpu_that_is_not_there_is_an_error);
    tcase_add_test(tcase, a_gpu_in_use_is_named_with_its_user);
}

#else

static void add_nvml_tests(TCase *tcase)
{
}

#endif

Suite *devices_suite(void)
{
    Suite *suite = suite_create("devices");
    TCase *tcase = tcase_create("devices");
    tcase_add_test(tcase, gpus_go_by_the_names_that_people_use);
    tcase_add_test(tcase, slots_are_devices_that_nobody_uses);
    add_nvml_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite;
}
