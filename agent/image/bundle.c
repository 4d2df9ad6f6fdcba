/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the config of an OCI bundle. The container shares all namespaces with the ranks' shim but the one of
 * mounts: network, processes, users and shared memory are those of a job without an image, and so are its
 * cgroup, its user and its system calls, which the shim sees to. So an image changes the files that ranks
 * see, and nothing else. cdi.c adds the GPUs; gpushim has crun make the container. */
#include "agent/image/bundle.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/cdi.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define INIT       "/dev/.gpuctl"
#define INFINIBAND "/dev/infiniband"

const char *const bundle_cdi_folders[] = {"/etc/cdi", "/var/run/cdi", NULL};

static void add(json_t *mounts, const char *from, const char *at, const char *how, bool read_only)
{
    json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", at, "type", "bind",
                                            "source", from, "options", how, read_only ? "ro" : "rw"));
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Of the last mount: "ro" leaves what is mounted below it writable. Runtimes refuse "rro" of a file. */
static void protect_all(json_t *mounts)
{
    json_t *last = json_array_get(mounts, json_array_size(mounts) - 1);
    if (is_folder(json_string_of(last, "source"))) {
        json_array_append_new(json_object_get(last, "options"), json_string("rro"));
    }
}

static void add_bind(json_t *mounts, const char *from, const char *at, bool read_only)
{
    add(mounts, from, at, "rbind", read_only);
}

static void add_device_folder(json_t *mounts)
{
    json_array_append_new(mounts,
                          json_pack("{s:s, s:s, s:s, s:[s, s, s]}", "destination", "/dev", "type", "tmpfs",
                                    "source", "gpuctl", "options", "nosuid", "mode=755", "size=64m"));
}

/* Those of every container. The network is the node's, so its names are looked up as on the node. */
static json_t *usual_mounts(const struct bundle_facts *facts)
{
    static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts"};
    json_t *mounts = json_array();
    add_bind(mounts, "/proc", "/proc", false);
    add_bind(mounts, "/sys", "/sys", true);
    add_device_folder(mounts);
    add_bind(mounts, "/dev/pts", "/dev/pts", false);
    add_bind(mounts, "/dev/shm", "/dev/shm", false);
    add_bind(mounts, facts->init, INIT, true);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (access(files[i], F_OK) == 0) {
            add_bind(mounts, files[i], files[i], true);
        }
    }
    if (access(INFINIBAND, F_OK) == 0) {
        add_bind(mounts, INFINIBAND, INFINIBAND, false);
    }
    if (facts->tmp != NULL) {
        add_bind(mounts, facts->tmp, "/tmp", false);
        add_bind(mounts, facts->tmp, "/var/tmp", false);
    }
    return mounts;
}

static json_t *base_config(const struct bundle_facts *facts)
{
    return json_pack("{s:s, s:{s:b, s:{s:i, s:i}, s:[s], s:[s], s:s}, s:{s:s, s:b}, s:o, s:{s:[{s:s}]}}",
                     "ociVersion", "1.0.2", "process", "terminal", false, "user", "uid", 0, "gid", 0, "args",
                     INIT, "env", "PATH=/usr/bin:/bin", "cwd", "/", "root", "path", facts->root, "readonly",
                     false, "mounts", usual_mounts(facts), "linux", "namespaces", "type", "mount");
}

json_t *bundle_config(const struct bundle_facts *facts, json_t *variables, struct err *err)
{
    autojson json_t *config = base_config(facts);
    json_t *mounts = json_object_get(config, "mounts");
    if (facts->gpu_count > 0 && !cdi_apply(facts, config, variables, err)) {
        return NULL;
    }
    for (size_t i = 0; i < facts->mount_count; i++) {
        const struct bundle_mount *mount = &facts->mounts[i];
        if (!mount->optional || access(mount->from, F_OK) == 0) {
            add(mounts, mount->from, mount->at, mount->alone ? "bind" : "rbind", mount->read_only);
            if (mount->read_only) {
                protect_all(mounts);
            }
        }
    }
    return json_incref(config);
}
