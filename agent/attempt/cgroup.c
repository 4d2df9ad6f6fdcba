/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the agent's place in the cgroup hierarchies of the host. A hierarchy is used only after a test
 * process could enter a cgroup in it, so that no job fails for lack of one. The agent touches only its own
 * cgroups. The shim puts the ranks into their cgroup and kills them there; this file kills only processes
 * that a lost shim left behind. cgroup_limit.c limits the number of processes. */
#include "agent/attempt/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define PROBE      "probe"
#define LINE_BYTES 4096

/* --- finding a place ------------------------------------------------------------------------------------ */

/* A mounted hierarchy. */
struct mount {
    char *point;
    char *root; /* the part of the hierarchy that is mounted there */
};

struct mounts {
    struct mount unified; /* cgroup2 */
    struct mount freezer; /* version 1, with the freezer controller */
    struct mount pids;
};

static void keep_first(struct mount *mount, const char *root, const char *point)
{
    if (mount->point == NULL) {
        *mount = (struct mount){.point = xstrdup(point), .root = xstrdup(root)};
    }
}

/* mountinfo: "id parent dev ROOT POINT options ... - TYPE source SUPER". */
static void read_mount(char *line, struct mounts *mounts)
{
    char *tail = strstr(line, " - ");
    char root[LINE_BYTES], point[LINE_BYTES], type[64], super[LINE_BYTES] = "";
    if (tail == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
        sscanf(tail, " - %63s %*s %4095s", type, super) < 1) {
        return;
    }
    if (strcmp(type, "cgroup2") == 0) {
        keep_first(&mounts->unified, root, point);
    } else if (strcmp(type, "cgroup") == 0 && strstr(super, "freezer") != NULL) {
        keep_first(&mounts->freezer, root, point);
    } else if (strcmp(type, "cgroup") == 0 && strstr(super, "pids") != NULL) {
        keep_first(&mounts->pids, root, point);
    }
}

static void read_mounts(struct mounts *mounts)
{
    autofclose FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[LINE_BYTES];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        read_mount(line, mounts);
    }
}

static void finish_mount(struct mount *mount)
{
    free(mount->point);
    free(mount->root);
}

/* The folder of a cgroup. A container sees only a part of the hierarchy, but its /proc may show the path from
 * the top. */
static char *folder_of(const struct mount *mount, const char *cgroup)
{
    size_t length = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
    const char *below = strncmp(cgroup, mount->root, length) == 0 ? cgroup + length : cgroup;
    return strcmp(below, "/") == 0 ? xstrdup(mount->point) : xprintf("%s%s", mount->point, below);
}

/* The cgroup of this process in the hierarchy with these controllers, "" for version 2; NULL if there is
 * none. */
static char *own_place(const struct mount *mount, const char *controllers)
{
    autofclose FILE *file = fopen("/proc/self/cgroup", "re");
    autofree char *start = xprintf(":%s:/", controllers);
    char line[LINE_BYTES];
    while (mount->point != NULL && file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *at = strchr(line, ':');
        if (at != NULL && strncmp(at, start, strlen(start)) == 0) {
            return folder_of(mount, at + strlen(start) - 1);
        }
    }
    return NULL;
}

/* Whether a child process can enter the cgroup. Only trying shows it. */
static bool may_enter(const char *path)
{
    autofree char *procs = xprintf("%s/cgroup.procs", path);
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        int file = open(procs, O_WRONLY | O_CLOEXEC);
        _exit(file < 0 || write(file, "0", 1) != 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Makes a cgroup like that of an attempt and tries it. */
static bool use_place(const char *place, const char *agent_name, enum isolation isolation,
                      struct cgroup_root *ret_root)
{
    if (place == NULL) {
        return false;
    }
    autofree char *path = xprintf("%s/gpuctl-%s", place, agent_name);
    autofree char *probe = xprintf("%s." PROBE, path);
    autofree char *limit = xprintf("%s/pids.max", probe);
    if (mkdir(probe, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    bool usable = may_enter(probe);
    bool counts = access(limit, W_OK) == 0;
    rmdir(probe);
    if (usable) {
        ret_root->isolation = isolation;
        ret_root->path = give(path);
        ret_root->counts = counts;
    }
    return usable;
}

static bool use_unified(const struct cgroup_mounts *mounts, const char *agent_name,
                        struct cgroup_root *ret_root)
{
    struct cgroup_base *base = &ret_root->base;
    if (mounts->unified == NULL) {
        return false;
    }
    cgroup_base_choose(mounts->unified, mounts->own, mounts->systemd, base);
    if (cgroup_base_count(base) && use_place(base->path, agent_name, ISOLATION_CGROUP2, ret_root)) {
        return true;
    }
    cgroup_base_uncount(base);
    if (use_place(base->path, agent_name, ISOLATION_CGROUP2, ret_root)) {
        return true;
    }
    cgroup_base_finish(base);
    return false;
}

void cgroup_find_below(const struct cgroup_mounts *mounts, const char *agent_name,
                       struct cgroup_root *ret_root)
{
    *ret_root = (struct cgroup_root){.isolation = ISOLATION_NONE};
    if (!use_unified(mounts, agent_name, ret_root) &&
        !use_place(mounts->freezer, agent_name, ISOLATION_CGROUP1, ret_root) &&
        !use_place(mounts->pids, agent_name, ISOLATION_CGROUP1, ret_root)) {
        log_warning("jobs not isolated", "hint=\"" HINT_DELEGATE "\"");
    }
}

void cgroup_find(const char *agent_name, struct cgroup_root *ret_root)
{
    struct mounts mounts = {0};
    read_mounts(&mounts);
    autofree char *own = own_place(&mounts.unified, "");
    const struct cgroup_mounts seen = {
        .unified = mounts.unified.point,
        .own = own,
        .freezer = mounts.freezer.point,
        .pids = mounts.pids.point,
        .systemd = access("/run/systemd/system", F_OK) == 0,
    };
    cgroup_find_below(&seen, agent_name, ret_root);
    ret_root->pids = own_place(&mounts.pids, "pids");
    finish_mount(&mounts.unified);
    finish_mount(&mounts.freezer);
    finish_mount(&mounts.pids);
}

void cgroup_finish(struct cgroup_root *root)
{
    cgroup_unguard(root);
    cgroup_base_uncount(&root->base);
    cgroup_base_finish(&root->base);
    free(root->path);
    free(root->pids);
    *root = (struct cgroup_root){.isolation = ISOLATION_NONE};
}

int cgroup_version(const struct cgroup_root *root)
{
    return root->isolation == ISOLATION_CGROUP1 ? 1 : 2;
}

/* --- one attempt ---------------------------------------------------------------------------------------- */

char *cgroup_path(const struct cgroup_root *root, uint64_t attempt_id)
{
    return root->path != NULL ? xprintf("%s.%llu", root->path, (unsigned long long)attempt_id) : NULL;
}

bool cgroup_make(struct cgroup_root *root, uint64_t attempt_id, int64_t devices, char **ret_path,
                 struct err *err)
{
    autofree char *path = cgroup_path(root, attempt_id);
    *ret_path = NULL;
    if (path == NULL) {
        return true;
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return err_errno(err, "cannot make the cgroup %s", path);
    }
    if (!cgroup_limit_set(root, path, devices, err)) {
        rmdir(path);
        return false;
    }
    *ret_path = give(path);
    return true;
}

static void kill_listed(int folder)
{
    int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    autofclose FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    int pid;
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (pid > 0) {
            kill(pid, SIGKILL);
        }
    }
}

static void clear_folder(int folder, bool killed, int depth);

static void clear_below(int parent, const char *name, bool killed, int depth)
{
    autoclose int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && depth < LIMIT_CGROUP_DEPTH) {
        clear_folder(folder, killed, depth + 1);
    }
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Version 1 has only the lists of processes. Removes the job's own cgroups below first, because the kernel
 * does not remove a cgroup that has children. */
static void clear_folder(int folder, bool killed, int depth)
{
    if (!killed) {
        kill_listed(folder);
    }
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            clear_below(folder, entry->d_name, killed, depth);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}

bool cgroup_clear(const char *path, int version)
{
    autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return errno == ENOENT;
    }
    autoclose int fd = version == 2 ? openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC) : -1;
    bool killed = fd >= 0 && write(fd, "1", 1) == 1; /* kills the processes of all cgroups below, too */
    clear_folder(folder, killed, 0);
    return rmdir(path) == 0 || errno == ENOENT;
}
