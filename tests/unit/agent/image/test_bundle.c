/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/image: what a container is made of, with GPUs by specs of CDI and without. */
#include <stdlib.h>
#include <string.h>

#include "agent/image/bundle.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

/* As nvidia-ctk writes it: one device by its index, one by its UUID; device files like /dev/null's. */
#define SPEC                                                                                                 \
    "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"                                                         \
    "devices:\n"                                                                                             \
    "- name: \"0\"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n      hostPath: "         \
    "/dev/null\n"                                                                                            \
    "- name: GPU-1\n  containerEdits:\n    env:\n    - OF_GPU=1\n    deviceNodes:\n    - path: /dev/zero\n"  \
    "containerEdits:\n  env:\n  - NVIDIA_VISIBLE_DEVICES=void\n"                                             \
    "  hooks:\n  - hookName: createContainer\n    path: /usr/bin/nvidia-cdi-hook\n    args: "                \
    "[nvidia-cdi-hook, update-ldcache]\n"                                                                    \
    "  mounts:\n  - hostPath: /usr/lib/libcuda.so.1\n    containerPath: /usr/lib/libcuda.so.1\n    "         \
    "options: [ro, nosuid, bind]\n"

static char *folder;

static void setup(void)
{
    rig_setup();
    folder = rig_path("cdi");
}

static void teardown(void)
{
    free(folder);
    rig_teardown();
}

static json_t *config_of(const struct bundle_gpu *gpus, size_t count, json_t *variables, struct err *err)
{
    const char *const folders[] = {"/nonexistent", folder, NULL};
    const struct bundle_mount mounts[] = {{.from = "/srv", .at = "/data", .read_only = true},
                                          {.from = "/nonexistent", .at = "/none", .optional = true},
                                          {.from = "/etc/passwd", .at = "/of-node", .read_only = true}};
    return bundle_config(&(struct bundle_facts){.root = "/root-of-it",
                                                .init = "/bin/true",
                                                .tmp = "/srv/tmp",
                                                .mounts = mounts,
                                                .mount_count = 3,
                                                .gpus = gpus,
                                                .gpu_count = count,
                                                .cdi_folders = folders},
                         variables, err);
}

/* The source of the mount at a place with its options, "SOURCE OPTION,OPTION"; "": none. The caller frees it.
 */
static char *mount_at(const json_t *config, const char *at)
{
    size_t i, j;
    const json_t *mount, *option;
    struct text text = {0};
    text_append(&text, "");
    json_array_foreach (json_object_get(config, "mounts"), i, mount) {
        if (strcmp(json_string_of(mount, "destination"), at) == 0) {
            text_append(&text, json_string_of(mount, "source"));
            json_array_foreach (json_object_get(mount, "options"), j, option) {
                text_printf(&text, "%s%s", j > 0 ? "," : " ", json_string_value(option));
            }
        }
    }
    return text_take(&text);
}

static void assert_mount(const json_t *config, const char *at, const char *expected)
{
    autofree char *found = mount_at(config, at);
    ck_assert_str_eq(found, expected);
}

START_TEST(a_container_has_what_every_job_has_and_its_own_mounts)
{
    struct err err;
    autojson json_t *variables = json_array();
    autojson json_t *config = config_of(NULL, 0, variables, &err);
    ck_assert_msg(config != NULL, "%s", err.text);
    assert_mount(config, "/data", "/srv rbind,ro,rro");
    assert_mount(config, "/of-node", "/etc/passwd rbind,ro");
    assert_mount(config, "/none", "");
    assert_mount(config, "/tmp", "/srv/tmp rbind,rw");
    assert_mount(config, "/etc/hosts", "/etc/hosts rbind,ro");
    assert_mount(config, "/dev/shm", "/dev/shm rbind,rw");
    assert_mount(config, "/dev/nvidiactl", "");
    const json_t *namespaces = json_object_get(json_object_get(config, "linux"), "namespaces");
    ck_assert_int_eq(json_array_size(namespaces), 1); /* all others are the shim's */
    ck_assert_int_eq(json_array_size(variables), 0);
}
END_TEST

START_TEST(gpus_are_given_as_a_spec_says_by_index_and_by_uuid)
{
    struct err err;
    rig_write_text("cdi/nvidia.yaml", SPEC);
    rig_write_text("cdi/other.json", "{\"kind\": \"vendor.com/nic\", \"devices\": []}");
    const struct bundle_gpu gpus[] = {{"GPU-9", 0, 0}, {"GPU-1", 7, 1}};
    autojson json_t *variables = json_array();
    autojson json_t *config = config_of(gpus, 2, variables, &err);
    ck_assert_msg(config != NULL, "%s", err.text);
    assert_mount(config, "/dev/nvidia0", "/dev/null rbind");
    assert_mount(config, "/dev/zero", "/dev/zero rbind");
    assert_mount(config, "/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1 ro,nosuid,bind");
    autofree char *text = json_text(variables);
    ck_assert_str_eq(text, "[\"NVIDIA_VISIBLE_DEVICES=void\",\"OF_GPU=1\"]");
    autofree char *hooks = json_text(json_object_get(config, "hooks"));
    ck_assert_str_eq(
        hooks, "{\"createContainer\":[{\"path\":\"/usr/bin/nvidia-cdi-hook\",\"args\":[\"nvidia-cdi-hook\","
               "\"update-ldcache\"]}]}");
}
END_TEST

START_TEST(a_spec_without_one_of_the_gpus_is_not_used)
{
    struct err err;
    rig_write_text("cdi/nvidia.yaml", SPEC);
    const struct bundle_gpu gpus[] = {{"GPU-9", 3, 3}};
    autojson json_t *variables = json_array();
    autojson json_t *config = config_of(gpus, 1, variables, &err);
    ck_assert_msg(config != NULL, "%s", err.text);
    assert_mount(config, "/dev/nvidia0", "");
    autofree char *text = json_text(variables);
    ck_assert_str_eq(text, "[\"LD_LIBRARY_PATH=/usr/local/nvidia/lib64\"]");
}
END_TEST

START_TEST(a_damaged_spec_is_named)
{
    struct err err;
    rig_write_text("cdi/nvidia.yaml", "kind: [\n");
    const struct bundle_gpu gpus[] = {{"GPU-1", 1, 1}};
    autojson json_t *variables = json_array();
    ck_assert_ptr_null(config_of(gpus, 1, variables, &err));
    ck_assert_msg(strstr(err.text, "cdi/nvidia.yaml") != NULL, "%s", err.text);
}
END_TEST

Suite *bundle_suite(void)
{
    Suite *suite = suite_create("bundle");
    TCase *tcase = tcase_create("bundle");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_container_has_what_every_job_has_and_its_own_mounts);
    tcase_add_test(tcase, gpus_are_given_as_a_spec_says_by_index_and_by_uuid);
    tcase_add_test(tcase, a_spec_without_one_of_the_gpus_is_not_used);
    tcase_add_test(tcase, a_damaged_spec_is_named);
    suite_add_tcase(suite, tcase);
    return suite;
}
