/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the agent's place among the cgroups of the host. It promises that a hierarchy is used only after a
 * folder could be made in it, and that of what is not its own it touches nothing. The shim puts the ranks
 * into their cgroup and kills them there; here is only what remains to be killed when the shim itself is
 * gone. How many processes there may be is cgroup_limit.c's. */
#include "agent/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define PROBE      "probe"
#define LINE_BYTES 4096

/* --- finding a place ----------------------------------------------------------------------------- */

struct mounts {
    char *unified; /* cgroup2 */
    char *freezer; /* version 1, with that controller */
    char *pids;
};

/* mountinfo: "id parent dev root POINT options ... - TYPE source SUPER". */
static void read_mount(char *line, struct mounts *mounts)
{
    char *tail = strstr(line, " - ");
    char point[LINE_BYTES], type[64], super[LINE_BYTES] = "";
    if (tail == NULL || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 ||
        sscanf(tail, " - %63s %*s %4095s", type, super) < 1) {
        return;
    }
    if (strcmp(type, "cgroup2") == 0 && mounts->unified == NULL) {
        mounts->unified = xstrdup(point);
    } else if (strcmp(type, "cgroup") == 0 && strstr(super, "freezer") != NULL && mounts->freezer == NULL) {
        mounts->freezer = xstrdup(point);
    } else if (strcmp(type, "cgroup") == 0 && strstr(super, "pids") != NULL && mounts->pids == NULL) {
        mounts->pids = xstrdup(point);
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

/* The cgroup that this process is in, below a mount with these controllers, "" for version 2; NULL when that
 * is the mount itself, or there is none. */
static char *own_place(const char *mount, const char *controllers)
{
    autofclose FILE *file = fopen("/proc/self/cgroup", "re");
    autofree char *start = xprintf(":%s:/", controllers);
    char line[LINE_BYTES];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *at = strchr(line, ':');
        if (at != NULL && strncmp(at, start, strlen(start)) == 0) {
            const char *path = at + strlen(start);
            return *path == '\0' ? NULL : xprintf("%s/%s", mount, path);
        }
    }
    return NULL;
}

/* What systemd writes on a cgroup that it gave away. */
static bool is_delegated(const char *path)
{
    char value[2] = "";
    return (getxattr(path, "user.delegate", value, 1) == 1 ||
            getxattr(path, "trusted.delegate", value, 1) == 1) &&
           value[0] == '1';
}

static bool is_domain(const char *folder)
{
    autofree char *path = xprintf("%s/cgroup.type", folder);
    char type[32] = "";
    autofclose FILE *file = fopen(path, "re");
    return file == NULL || (fgets(type, sizeof type, file) != NULL && strcmp(type, "domain\n") == 0);
}

/* Makes the agent's folder in a place and tries one below it. */
static bool use_place(const char *place, const char *agent_name, enum isolation isolation,
                      struct cgroup_root *ret_root)
{
    if (place == NULL) {
        return false;
    }
    autofree char *path = xprintf("%s/gpuctl-%s", place, agent_name);
    autofree char *probe = xprintf("%s/%s", path, PROBE);
    autofree char *procs = xprintf("%s/cgroup.procs", probe);
    if ((mkdir(path, 0755) != 0 && errno != EEXIST) || (mkdir(probe, 0755) != 0 && errno != EEXIST)) {
        return false;
    }
    bool usable = access(procs, W_OK) == 0 && (isolation == ISOLATION_CGROUP1 || is_domain(probe));
    rmdir(probe);
    if (!usable) {
        rmdir(path);
        return false;
    }
    *ret_root = (struct cgroup_root){.isolation = isolation, .path = give(path)};
    return true;
}

static bool use_unified(const char *mount, const char *agent_name, struct cgroup_root *ret_root)
{
    if (mount == NULL) {
        return false;
    }
    autofree char *own = own_place(mount, "");
    return (own != NULL && is_delegated(own) && use_place(own, agent_name, ISOLATION_CGROUP2, ret_root)) ||
           use_place(mount, agent_name, ISOLATION_CGROUP2, ret_root) ||
           use_place(own, agent_name, ISOLATION_CGROUP2, ret_root);
}

void cgroup_find(const char *agent_name, struct cgroup_root *ret_root)
{
    struct mounts mounts = {0};
    *ret_root = (struct cgroup_root){.isolation = ISOLATION_NONE};
    read_mounts(&mounts);
    if (!use_unified(mounts.unified, agent_name, ret_root) &&
        !use_place(mounts.freezer, agent_name, ISOLATION_CGROUP1, ret_root)) {
        use_place(mounts.pids, agent_name, ISOLATION_CGROUP1, ret_root);
    }
    ret_root->pids = mounts.pids != NULL ? own_place(mounts.pids, "pids") : NULL;
    ret_root->pids = ret_root->pids != NULL ? ret_root->pids : give(mounts.pids);
    free(mounts.unified);
    free(mounts.freezer);
    free(mounts.pids);
}

void cgroup_finish(struct cgroup_root *root)
{
    cgroup_unguard(root);
    if (root->path != NULL) {
        rmdir(root->path); /* stays while attempts live in it */
    }
    free(root->path);
    free(root->pids);
    *root = (struct cgroup_root){.isolation = ISOLATION_NONE};
}

int cgroup_version(const struct cgroup_root *root)
{
    return root->isolation == ISOLATION_CGROUP1 ? 1 : 2;
}

/* --- one epoch ----------------------------------------------------------------------------------- */

char *cgroup_path(const struct cgroup_root *root, uint64_t epoch)
{
    return root->path != NULL ? xprintf("%s/%llu", root->path, (unsigned long long)epoch) : NULL;
}

bool cgroup_make(const struct cgroup_root *root, uint64_t epoch, int64_t devices, char **ret_path,
                 struct err *err)
{
    autofree char *path = cgroup_path(root, epoch);
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

/* Version 1 has only the lists of processes. What the job made below goes first: no cgroup goes before. */
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
    bool killed = fd >= 0 && write(fd, "1", 1) == 1; /* with all that is below */
    clear_folder(folder, killed, 0);
    return rmdir(path) == 0 || errno == ENOENT;
}
