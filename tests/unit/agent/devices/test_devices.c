/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/devices: names of GPUs, which are chosen, whether they are in use; the library is
 * fake_nvml.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/devices/devices.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

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

static void assert_size(int64_t mebibytes, const char *expected)
{
    char size[DEVICES_SIZE_BYTES];
    devices_size(mebibytes * MIB, size);
    ck_assert_str_eq(size, expected);
}

/* G4: an A100 of 40 GB was like one of 80 GB. */
START_TEST(gpus_have_the_sizes_that_they_are_sold_by)
{
    assert_size(40536, "40GB");
    assert_size(81920, "80GB");
    assert_size(81559, "80GB");
    assert_size(23028, "24GB");
    assert_size(15360, "16GB");
    assert_size(46068, "48GB");
    assert_size(143771, "141GB");
    assert_size(400 * 1024, "400GB");
}
END_TEST

START_TEST(slots_are_devices_that_nobody_uses)
{
    struct devices devices;
    const int64_t indices[] = {0, 1};
    int64_t index;
    devices_open_slots(2, NULL, &devices);
    ck_assert_uint_eq(devices.count, 2);
    ck_assert(devices.slots);
    ck_assert_str_eq(devices.items[1].uuid, "slot-1");
    ck_assert_str_eq(devices.items[1].type, "cpu");
    ck_assert_int_eq(devices.items[1].group, -1);
    ck_assert_ptr_null(devices_obstacle(&devices, indices, 2, &index));
    ck_assert(devices_settled(&devices, indices, 2, INT64_MAX));
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

/* What the fake library shows from now on. */
static void set_state(const char *lines)
{
    static char path[] = "/tmp/fake-nvml-XXXXXX";
    if (getenv("FAKE_NVML_STATE") == NULL) {
        close(mkstemp(path));
        setenv("FAKE_NVML_STATE", path, 1);
    }
    FILE *file = fopen(getenv("FAKE_NVML_STATE"), "we");
    fputs(lines, file);
    fclose(file);
}

static void drop_state(void)
{
    if (getenv("FAKE_NVML_STATE") != NULL) {
        unlink(getenv("FAKE_NVML_STATE"));
    }
}

static void assert_sight(const struct devices *devices, int64_t index, enum device_state state,
                         const char *reason)
{
    const struct device_sight *sight = &devices->sights[index];
    ck_assert_int_eq(sight->state, state);
    ck_assert_msg(strstr(sight->reason, reason) != NULL, "%s", sight->reason);
}

/* How the first GPU looks when an agent starts in such a state. */
static void assert_first(const char *lines, enum device_state state, const char *reason)
{
    set_state(lines);
    struct devices devices = open_gpus("all", NULL);
    assert_sight(&devices, 0, state, reason);
    devices_close(&devices);
}

static void assert_minors(const char *lines, size_t count, int64_t first, int64_t second)
{
    const int64_t indices[] = {0, 2, 7}, expected[] = {first, second};
    size_t found;
    set_state(lines);
    struct devices devices = open_gpus("all", NULL);
    int64_t *minors = devices_minors(&devices, indices, 3, &found);
    ck_assert_uint_eq(found, count);
    ck_assert_mem_eq(minors, expected, count * sizeof *minors);
    ck_assert_int_eq(devices_have_minors(&devices), count == 2);
    free(minors);
    devices_close(&devices);
}

START_TEST(the_files_of_gpus_have_numbers_of_their_own)
{
    assert_minors("", 2, 2, 0);
    assert_minors("minor 0 130\n", 2, 130, 0);
    assert_minors("minor 0 -1\n", 1, 0, 0);
    assert_first("error nvmlDeviceGetMinorNumber 0 999\n", DEVICE_BROKEN, "Unknown Error");
    drop_state();
}
END_TEST

START_TEST(a_gpu_in_use_is_named_with_its_user)
{
    struct devices devices = open_gpus("all", NULL);
    const int64_t free_ones[] = {0, 2}, all[] = {0, 1};
    int64_t index = -1;
    ck_assert_ptr_null(devices_obstacle(&devices, free_ones, 2, &index));
    const struct device_sight *sight = devices_obstacle(&devices, all, 2, &index);
    ck_assert_ptr_nonnull(sight);
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(sight->state, DEVICE_OCCUPIED);
    ck_assert_str_eq(sight->reason, "in use by process 99999999, which cannot be seen from here");
    devices_close(&devices);
}
END_TEST

START_TEST(a_process_that_can_be_seen_is_named)
{
    autofree char *state = xprintf("process 0 %d\n", (int)getpid());
    set_state(state);
    struct devices devices = open_gpus("0", NULL);
    autofree char *reason = xprintf("memory held by process %d (unit-agent) of user ", (int)getpid());
    assert_sight(&devices, 0, DEVICE_OCCUPIED, reason);
    devices_close(&devices);
}
END_TEST

/* G1: it counted as free. */
START_TEST(a_gpu_that_cannot_be_read_is_broken)
{
    assert_first("error nvmlDeviceGetComputeRunningProcesses_v3 0 15\n", DEVICE_BROKEN, "GPU is lost");
    assert_first("error nvmlDeviceGetMemoryInfo 0 999\n", DEVICE_BROKEN, "Unknown Error (NVML error 999)");
    assert_first("error nvmlDeviceGetHandleByUUID 0 16\n", DEVICE_BROKEN, "nvidia-smi --gpu-reset");
    assert_first("error nvmlDeviceGetHandleByIndex_v2 0 4\n", DEVICE_BROKEN, "no permission");
}
END_TEST

/* G1: the agent hung with it. */
START_TEST(a_gpu_whose_look_hangs_is_broken_and_the_others_are_not)
{
    set_state("hang nvmlDeviceGetComputeRunningProcesses_v3 0\n");
    struct devices devices = open_gpus("all", NULL);
    assert_sight(&devices, 0, DEVICE_BROKEN, "the NVIDIA driver does not answer");
    assert_sight(&devices, 2, DEVICE_EMPTY, "");
    devices_close(&devices);
}
END_TEST

/* G4 */
START_TEST(a_driver_that_does_not_start_is_told_with_its_remedy)
{
    struct devices devices;
    struct err err = {0};
    set_state("error nvmlInit_v2 -1 18\n");
    ck_assert(!devices_open_nvml(getenv("FAKE_NVML"), "all", NULL, &devices, &err));
    ck_assert_str_eq(err.text, "the NVIDIA driver and its library are of different versions (NVML error 18): "
                               "reboot the node or reload the driver");
    set_state("error nvmlInit_v2 -1 9\n");
    ck_assert(!devices_open_nvml(getenv("FAKE_NVML"), "all", NULL, &devices, &err));
    ck_assert_msg(strstr(err.text, "modprobe nvidia") != NULL, "%s", err.text);
}
END_TEST

/* G3, G4 */
START_TEST(a_gpu_that_no_job_could_use_is_broken)
{
    assert_first("mig 0 1\n", DEVICE_BROKEN, "MIG is enabled");
    assert_first("fabric 0 1\n", DEVICE_BROKEN, "CUDA error 802");
    assert_first("fabric 0 3\n", DEVICE_EMPTY, "");
}
END_TEST

/* G4: only the list of processes was read. */
START_TEST(memory_that_nobody_is_seen_to_hold_is_a_stranger)
{
    assert_first("memory 0 3000\n", DEVICE_OCCUPIED, "3000 MiB of its memory held by processes that cannot");
    assert_first("memory 0 600\n", DEVICE_EMPTY, "");
    assert_first("memory 0 3000\nscreen 0 77 2500\n", DEVICE_EMPTY, "");
}
END_TEST

/* G4: it kept every GPU from every job. */
START_TEST(an_mps_server_is_no_stranger)
{
    char name[16];
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
    autofree char *state = xprintf("process 0 %d\n", (int)getpid());
    assert_first(state, DEVICE_EMPTY, "");
    prctl(PR_SET_NAME, name);
}
END_TEST

/* G4 */
START_TEST(only_the_cards_of_the_40_series_lack_peer_access)
{
    set_state("name 2 NVIDIA_RTX_4000_Ada_Generation\n");
    struct devices devices = open_gpus("all", NULL);
    ck_assert(!devices.no_peer_access);
    devices_close(&devices);
    set_state("name 2 NVIDIA_GeForce_RTX_4070\n");
    devices = open_gpus("all", NULL);
    ck_assert(devices.no_peer_access);
    devices_close(&devices);
}
END_TEST

/* G3 */
START_TEST(a_list_of_uuids_or_indices_leads_to_the_same_devices)
{
    struct devices devices = open_gpus("all", NULL);
    size_t count;
    autofree int64_t *indices = devices_from_list(&devices, "GPU-2,0,GPU-9", &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(indices[0], 2);
    ck_assert_int_eq(indices[1], 0);
    devices_close(&devices);
}
END_TEST

START_TEST(what_a_gpu_does_is_seen_as_far_as_it_tells)
{
    set_state("process 1 0\nbusy 0 97\npower 0 650250\ntemperature 0 64\nenergy 0 5000000123\nmemory 0 "
              "1024\nerror nvmlDeviceGetUtilizationRates 2 3\n"
              "mig 1 1\n");
    struct devices devices = open_gpus("all", NULL);
    const struct gpu_sample *use = &devices.sights[0].use;
    ck_assert_int_eq(use->busy_percent, 97);
    ck_assert_int_eq(use->power_mw, 650250);
    ck_assert_int_eq(use->temperature_c, 64);
    ck_assert_int_eq(use->energy_mj, 5000000123);
    ck_assert_int_eq(use->memory_bytes, 1024 * MIB);
    ck_assert_int_eq(use->memory_total_bytes, 80 * GIB);
    ck_assert_int_eq(devices.sights[1].state, DEVICE_BROKEN);
    ck_assert_int_eq(devices.sights[2].state, DEVICE_EMPTY);
    ck_assert_int_eq(devices.sights[2].use.busy_percent, -1);
    ck_assert_int_eq(devices.sights[2].use.power_mw, -1);
    ck_assert_int_eq(devices.sights[2].use.temperature_c, -1);
    ck_assert_int_eq(devices.sights[2].use.energy_mj, -1);
    ck_assert_int_eq(devices.sights[2].use.memory_bytes, 0);
    devices_close(&devices);
}
END_TEST

/* --- looks while the agent runs ------------------------------------------------------------------------- */

/* What the library shows, and how a GPU is seen then. */
struct act {
    const char *state;
    int64_t index;
    enum device_state seen;
};

struct scene {
    struct devices devices;
    struct loop *loop;
    const struct act *acts; /* what is left of them; NULL at the end */
    int64_t settled_us;     /* the first GPU is to be settled by a look after this; 0: it is not asked for */
    int ticks;              /* of a timer that shows that the loop goes on */
    struct loop_timer timer;
};

static void scene_looked(void *closure)
{
    static const int64_t first[] = {0};
    struct scene *scene = closure;
    const struct act *act = scene->acts;
    if (scene->settled_us != 0 && devices_settled(&scene->devices, first, 1, scene->settled_us)) {
        loop_end(scene->loop);
    }
    if (act != NULL && scene->devices.sights[act->index].state == act->seen) {
        scene->acts++;
        if (scene->acts->state == NULL) {
            loop_end(scene->loop);
        } else {
            set_state(scene->acts->state);
        }
    }
}

static void scene_tick(void *closure)
{
    struct scene *scene = closure;
    scene->ticks++;
    loop_arm(scene->loop, &scene->timer, clock_boot_ms() + 10);
}

static void scene_play(struct scene *scene, const struct act *acts, int64_t settled_us)
{
    set_state("");
    *scene = (struct scene){
        .devices = open_gpus("all", NULL), .loop = loop_create(), .acts = acts, .settled_us = settled_us};
    if (acts != NULL) {
        set_state(acts->state);
    }
    scene->timer = (struct loop_timer){.due = scene_tick, .closure = scene};
    loop_arm(scene->loop, &scene->timer, 0);
    devices_watch(&scene->devices, scene->loop, scene_looked, scene);
    loop_run(scene->loop);
}

static void scene_close(struct scene *scene)
{
    loop_disarm(scene->loop, &scene->timer);
    devices_close(&scene->devices);
    loop_destroy(scene->loop);
}

/* G2 */
START_TEST(a_gpu_is_seen_occupied_and_empty_again)
{
    static const struct act acts[] = {
        {"process 0 99999999\n", 0, DEVICE_OCCUPIED}, {"\n", 0, DEVICE_EMPTY}, {NULL, 0, DEVICE_EMPTY}};
    struct scene scene;
    scene_play(&scene, acts, 0);
    scene_close(&scene);
}
END_TEST

/* G1: the whole agent stood still. A new helper looks at the others meanwhile. */
START_TEST(a_look_that_hangs_holds_up_nothing_and_its_gpu_comes_back)
{
    static const struct act acts[] = {
        {"hang nvmlDeviceGetMemoryInfo 0\n", 0, DEVICE_BROKEN},
        {"hang nvmlDeviceGetMemoryInfo 0\nprocess 2 99999999\n", 2, DEVICE_OCCUPIED},
        {"\n", 0, DEVICE_EMPTY},
        {NULL, 0, DEVICE_EMPTY}};
    struct scene scene;
    scene_play(&scene, acts, 0);
    ck_assert_int_gt(scene.ticks, 20);
    scene_close(&scene);
}
END_TEST

/* G1: the library of an upgraded driver does not fit the one that is loaded. */
START_TEST(a_driver_that_cannot_be_used_any_more_is_told_and_comes_back)
{
    static const struct act acts[] = {
        {"hang nvmlDeviceGetMemoryInfo 0\nerror nvmlInit_v2 -1 18\n", 2, DEVICE_BROKEN},
        {"\n", 2, DEVICE_EMPTY},
        {NULL, 0, DEVICE_EMPTY}};
    struct scene scene;
    scene_play(&scene, acts, 0);
    scene_close(&scene);
}
END_TEST

START_TEST(gpus_are_settled_by_a_look_that_came_after)
{
    struct scene scene;
    int64_t since_us = clock_boot_us() + 2000000;
    scene_play(&scene, NULL, since_us);
    ck_assert_int_ge(scene.devices.seen_us[0], since_us);
    scene_close(&scene);
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
    tcase_add_checked_fixture(tcase, NULL, drop_state);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_files_of_gpus_have_numbers_of_their_own);
    tcase_add_test(tcase, a_gpu_in_use_is_named_with_its_user);
    tcase_add_test(tcase, a_process_that_can_be_seen_is_named);
    tcase_add_test(tcase, a_gpu_that_cannot_be_read_is_broken);
    tcase_add_test(tcase, a_gpu_whose_look_hangs_is_broken_and_the_others_are_not);
    tcase_add_test(tcase, a_driver_that_does_not_start_is_told_with_its_remedy);
    tcase_add_test(tcase, a_gpu_that_no_job_could_use_is_broken);
    tcase_add_test(tcase, memory_that_nobody_is_seen_to_hold_is_a_stranger);
    tcase_add_test(tcase, an_mps_server_is_no_stranger);
    tcase_add_test(tcase, only_the_cards_of_the_40_series_lack_peer_access);
    tcase_add_test(tcase, a_list_of_uuids_or_indices_leads_to_the_same_devices);
    tcase_add_test(tcase, what_a_gpu_does_is_seen_as_far_as_it_tells);
    tcase_add_test(tcase, a_gpu_is_seen_occupied_and_empty_again);
    tcase_add_test(tcase, a_look_that_hangs_holds_up_nothing_and_its_gpu_comes_back);
    tcase_add_test(tcase, a_driver_that_cannot_be_used_any_more_is_told_and_comes_back);
    tcase_add_test(tcase, gpus_are_settled_by_a_look_that_came_after);
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
    tcase_add_test(tcase, gpus_have_the_sizes_that_they_are_sold_by);
    tcase_add_test(tcase, slots_are_devices_that_nobody_uses);
    add_nvml_tests(tcase);
    suite_add_tcase(suite, tcase);
    return suite;
}
