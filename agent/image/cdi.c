/* SPDX-License-Identifier: Apache-2.0 */
/* Reads specs of the Container Device Interface, which nvidia-ctk writes as YAML or JSON, and applies their
 * edits: device files, mounts, variables, hooks. The first spec that names all GPUs of the job is used, by
 * UUID or by index. A node without one gets the device files and the libraries of its driver bound in. */
#include "agent/image/cdi.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/base/text/yaml_read.h"
#include "proto/limits_agent.h"

#define KIND    "nvidia.com/gpu"
#define LIBS    "/usr/local/nvidia/lib64"
#define LIBRARY "LD_LIBRARY_PATH=" LIBS

/* --- specs ---------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* NULL with an error. New reference. */
static json_t *read_spec(const char *path, struct err *err)
{
    autofree char *bytes = NULL;
    size_t length;
    struct yaml yaml;
    if (!file_read(path, LIMIT_CDI_BYTES, &bytes, &length, err)) {
        return NULL;
    }
    if (ends_with(path, ".json")) {
        return json_parse(bytes, length, err);
    }
    if (!yaml_parse(path, bytes, length, &yaml, err)) {
        return NULL;
    }
    json_t *json = json_incref(yaml.json);
    yaml_finish(&yaml);
    return json;
}

static const json_t *find_device(const json_t *spec, const struct bundle_gpu *gpu)
{
    autofree char *index = xprintf("%lld", gpu->index);
    size_t i;
    const json_t *device, *found = NULL;
    json_array_foreach (json_object_get(spec, "devices"), i, device) {
        const json_t *name = json_object_get(device, "name");
        const char *text = json_string_value(name);
        if (text != NULL && strcmp(text, gpu->uuid) == 0) {
            return device;
        }
        bool same = text != NULL ? strcmp(text, index) == 0
                                 : json_is_integer(name) && json_integer_value(name) == gpu->index;
        found = same ? device : found;
    }
    return found;
}

static bool names_all(const json_t *spec, const struct bundle_facts *facts)
{
    const char *kind = json_string_of(spec, "kind");
    bool all = kind != NULL && strcmp(kind, KIND) == 0;
    for (size_t i = 0; i < facts->gpu_count && all; i++) {
        all = find_device(spec, &facts->gpus[i]) != NULL;
    }
    return all;
}

/* The spec for the job; NULL: none. False with an error that names the file. */
static bool find_spec(const struct bundle_facts *facts, json_t **ret_spec, struct err *err)
{
    *ret_spec = NULL;
    for (const char *const *folder = facts->cdi_folders; *folder != NULL; folder++) {
        autonames struct file_names names = {0};
        file_list(*folder, &names, NULL); /* a folder that is not there has no specs */
        for (size_t i = 0; i < names.count; i++) {
            const char *name = names.items[i];
            if (!ends_with(name, ".json") && !ends_with(name, ".yaml") && !ends_with(name, ".yml")) {
                continue;
            }
            autofree char *path = xprintf("%s/%s", *folder, name);
            autojson json_t *spec = read_spec(path, err);
            if (spec == NULL) {
                autofree char *why = xstrdup(err->text);
                return err_set(err, ERR_IO, "cannot read %s, a spec of GPUs in containers: %.300s", path,
                               why);
            }
            if (names_all(spec, facts)) {
                *ret_spec = json_incref(spec);
                return true;
            }
        }
    }
    return true;
}

/* --- edits ---------------------------------------------------------------------------------------------- */

/* rbind, so that the runtime needs no right to make device files; the cgroup says which may be opened. */
static void bind(json_t *mounts, const char *from, const char *at, json_t *options)
{
    json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:o}", "destination", at, "type", "bind",
                                            "source", from, "options", options));
}

static json_t *plain_bind(void)
{
    return json_pack("[s]", "rbind");
}

static void add_devices(const json_t *edits, json_t *mounts)
{
    size_t i;
    const json_t *node;
    json_array_foreach (json_object_get(edits, "deviceNodes"), i, node) {
        const char *path = json_string_of(node, "path"), *host = json_string_of(node, "hostPath");
        if (path != NULL) {
            bind(mounts, host != NULL ? host : path, path, plain_bind());
        }
    }
}

static void add_mounts(const json_t *edits, json_t *mounts)
{
    size_t i;
    const json_t *mount;
    json_array_foreach (json_object_get(edits, "mounts"), i, mount) {
        const char *from = json_string_of(mount, "hostPath"), *at = json_string_of(mount, "containerPath");
        json_t *given = json_object_get(mount, "options");
        if (from != NULL && at != NULL) {
            bind(mounts, from, at, json_is_array(given) ? json_deep_copy(given) : plain_bind());
        }
    }
}

static void add_hooks(const json_t *edits, json_t *config)
{
    static const char *const copied[] = {"path", "args", "env", "timeout"};
    size_t i;
    const json_t *given;
    json_array_foreach (json_object_get(edits, "hooks"), i, given) {
        const char *name = json_string_of(given, "hookName");
        if (name == NULL || json_string_of(given, "path") == NULL) {
            continue;
        }
        json_t *hook = json_object();
        for (size_t j = 0; j < sizeof copied / sizeof copied[0]; j++) {
            json_t *value = json_object_get(given, copied[j]);
            if (value != NULL) {
                json_object_set(hook, copied[j], value);
            }
        }
        json_t *hooks = json_object_in(config, "hooks");
        if (json_object_get(hooks, name) == NULL) {
            json_object_set_new(hooks, name, json_array());
        }
        json_array_append_new(json_object_get(hooks, name), hook);
    }
}

static void apply(const json_t *holder, json_t *config, json_t *variables)
{
    const json_t *edits = json_object_get(holder, "containerEdits");
    json_t *mounts = json_object_get(config, "mounts");
    add_devices(edits, mounts);
    add_mounts(edits, mounts);
    add_hooks(edits, config);
    json_t *env = json_object_get(edits, "env");
    if (json_is_array(env)) {
        json_array_extend(variables, env);
    }
}

/* --- without a spec ------------------------------------------------------------------------------------- */

static void bind_if_there(json_t *mounts, const char *path)
{
    if (access(path, F_OK) == 0) {
        bind(mounts, path, path, plain_bind());
    }
}

/* A library under each of its names, links included. */
static void bind_libraries(json_t *mounts)
{
    static const char *const patterns[] = {"libcuda.so*", "libcudadebugger.so*", "libnvidia-*.so*",
                                           "libnvcuvid.so*"};
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", LIBS};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        for (size_t j = 0; j < sizeof patterns / sizeof patterns[0]; j++) {
            autofree char *pattern = xprintf("%s/%s", folders[i], patterns[j]);
            glob_t found = {0};
            glob(pattern, 0, NULL, &found);
            for (size_t k = 0; k < found.gl_pathc; k++) {
                autofree char *at = xprintf(LIBS "%s", strrchr(found.gl_pathv[k], '/'));
                autofree char *from = realpath(found.gl_pathv[k], NULL);
                if (from != NULL) {
                    bind(mounts, from, at, json_pack("[s, s]", "rbind", "ro"));
                }
            }
            globfree(&found);
        }
    }
}

static void apply_driver(const struct bundle_facts *facts, json_t *config, json_t *variables)
{
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                        "/dev/nvidia-modeset", "/dev/nvidia-caps"};
    json_t *mounts = json_object_get(config, "mounts");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        bind_if_there(mounts, files[i]);
    }
    for (size_t i = 0; i < facts->gpu_count; i++) {
        autofree char *file = xprintf("/dev/nvidia%lld", facts->gpus[i].minor);
        bind_if_there(mounts, file);
    }
    bind_libraries(mounts);
    json_array_append_new(variables, json_string(LIBRARY));
}

bool cdi_apply(const struct bundle_facts *facts, json_t *config, json_t *variables, struct err *err)
{
    autojson json_t *spec = NULL;
    if (!find_spec(facts, &spec, err)) {
        return false;
    }
    if (spec == NULL) {
        apply_driver(facts, config, variables);
        return true;
    }
    apply(spec, config, variables);
    for (size_t i = 0; i < facts->gpu_count; i++) {
        apply(find_device(spec, &facts->gpus[i]), config, variables);
    }
    return true;
}
