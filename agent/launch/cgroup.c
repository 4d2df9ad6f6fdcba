/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the agent's place in the cgroups of the host, makes the cgroups of attempts there, and limits how
 * many processes each may have, so that a job that starts processes without end leaves the node usable. A
 * place is used only after a test process could enter a cgroup in it, so that no job fails for lack of one.
 * The agent touches only its own cgroups. The shim puts the ranks into their cgroup and kills them there;
 * this file kills only processes that a lost shim left behind. */
#include "agent/launch/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define LINE_BYTES      4096
#define CPU_WEIGHT      100 /* of a CPU: the kernel's default of a cgroup */
#define CPU_WEIGHT_MOST 10000
#define ATTEMPT_PREFIX  "a" /* of the names of attempts' cgroups, and a number */
#define HINT_DELEGATE                                                                                        \
    "give the agent a cgroup of its own: Delegate=yes in its systemd unit, or a writable cgroup in its "     \
    "container"

/* --- finding a place ------------------------------------------------------------------------------------ */

/* Finds where cgroups are mounted, and which part of them. mountinfo: "id parent dev ROOT POINT options ... -
 * TYPE source SUPER". */
static bool find_mount(char root[LINE_BYTES], char point[LINE_BYTES])
{
    autofclose FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[LINE_BYTES];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *tail = strstr(line, " - ");
        if (tail != NULL && strncmp(tail, " - cgroup2 ", strlen(" - cgroup2 ")) == 0 &&
            sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2) {
            return true;
        }
    }
    return false;
}

/* The folder of this process's cgroup; NULL if it is not known. A container sees only a part of the
 * hierarchy, but its /proc may show the path from the top. */
static char *own_folder(const char *root, const char *point)
{
    autofclose FILE *file = fopen("/proc/self/cgroup", "re");
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    char line[LINE_BYTES];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0) {
            const char *path = line + 3;
            const char *below = strncmp(path, root, length) == 0 ? path + length : path;
            return strcmp(below, "/") == 0 ? xstrdup(point) : xprintf("%s%s", point, below);
        }
    }
    return NULL;
}

bool cgroup_own(char **ret_mount, char **ret_own)
{
    char root[LINE_BYTES], point[LINE_BYTES];
    bool mounted = find_mount(root, point);
    *ret_mount = mounted ? xstrdup(point) : NULL;
    *ret_own = mounted ? own_folder(root, point) : NULL;
    return *ret_own != NULL;
}

/* Whether a child process can enter the cgroup. Only trying shows it. */
static bool may_enter(const char *path)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(!cgroup_write(path, "cgroup.procs", "0"));
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static struct device_rule *try_rule(const char *path, struct err *err)
{
    struct device_rule *rule = device_rule_create(DEVICE_MAJORS);
    autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!device_rule_set(rule, folder, NULL, 0, err)) {
        device_rule_destroy(give(rule));
    }
    return rule;
}

/* Makes a cgroup like that of an attempt and tries it. */
static bool use_base(const char *agent_name, struct cgroup_root *root)
{
    if (root->base.path == NULL) {
        return false;
    }
    autofree char *path = xprintf("%s/gpuctl-%s", root->base.path, agent_name);
    autofree char *probe = xprintf("%s.probe", path);
    autofree char *limit = xprintf("%s/pids.max", probe);
    if (mkdir(probe, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    bool usable = may_enter(probe);
    root->counts = usable && access(limit, W_OK) == 0;
    root->rule = usable ? try_rule(probe, &root->open_why) : NULL;
    rmdir(probe);
    if (usable) {
        root->isolation = ISOLATION_CGROUP2;
        root->path = give(path);
    }
    return usable;
}

static bool use_without_controllers(const char *agent_name, struct cgroup_root *root)
{
    cgroup_base_uncount(&root->base);
    return use_base(agent_name, root);
}

void cgroup_find_below(const char *mount, const char *own, bool systemd, const char *agent_name,
                       struct cgroup_root *ret_root)
{
    *ret_root = (struct cgroup_root){.isolation = ISOLATION_NONE};
    err_set(&ret_root->open_why, ERR_IO, "they have no cgroups");
    if (mount != NULL) {
        cgroup_base_choose(mount, own, systemd, &ret_root->base);
    }
    if (!(cgroup_base_count(&ret_root->base) && use_base(agent_name, ret_root)) &&
        !use_without_controllers(agent_name, ret_root)) {
        cgroup_base_finish(&ret_root->base);
        log_warning("jobs not isolated", "hint=\"" HINT_DELEGATE "\"");
    }
}

void cgroup_find(const char *agent_name, struct cgroup_root *ret_root)
{
    autofree char *mount = NULL, *own = NULL;
    cgroup_own(&mount, &own);
    cgroup_find_below(mount, own, access("/run/systemd/system", F_OK) == 0, agent_name, ret_root);
}

void cgroup_open_gpus(struct cgroup_root *root, const char *why)
{
    if (root->rule != NULL) {
        device_rule_destroy(give(root->rule));
        err_set(&root->open_why, ERR_IO, "%s", why);
    }
}

void cgroup_look_at_drivers(struct cgroup_root *root)
{
    if (root->rule != NULL) {
        device_rule_look(root->rule, NULL);
    }
}

/* --- limits ---------------------------------------------------------------------------- */

static int64_t read_number(const char *path)
{
    autofree char *text = NULL;
    int64_t number;
    if (!file_read(path, 64, &text, NULL, NULL)) {
        return LIMIT_PROCESSES;
    }
    text[strcspn(text, "\n")] = '\0';
    return text_to_int(text, 2, LIMIT_PROCESSES, &number) ? number : LIMIT_PROCESSES;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Half of the kernel's limit stays for the rest of the node. */
void cgroup_limit(struct cgroup_root *root, int64_t processes)
{
    root->most =
        smaller(read_number("/proc/sys/kernel/pid_max"), read_number("/proc/sys/kernel/threads-max")) / 2;
    root->processes = root->counts ? processes : 0;
    if (!root->counts) {
        log_warning("processes unlimited", "hint=\"" HINT_DELEGATE "\"");
    }
}

static bool write_number(const char *path, const char *name, int64_t number)
{
    autofree char *word = xprintf("%lld", (long long)number);
    return cgroup_write(path, name, word);
}

static bool write_processes(const struct cgroup_root *root, const char *path, int64_t devices)
{
    return write_number(path, "pids.max", smaller(root->processes * devices, root->most));
}

/* Another agent in the same unit may have turned the controllers off at its end. */
static bool write_processes_again(struct cgroup_root *root, const char *path, int64_t devices)
{
    return errno == ENOENT && cgroup_base_count(&root->base) && write_processes(root, path, devices);
}

/* A limit of a controller that this host does not have, or gives to nobody, is left out. */
static bool write_if_there(const char *path, const char *name, int64_t number)
{
    return write_number(path, name, number) || errno == ENOENT;
}

/* CPUs are shared by weight, so that what nobody uses is there for all; a CPU weighs as much as a cgroup does
 * that says nothing. Swap would be the node's. */
static bool write_amounts(const char *path, const struct cgroup_limits *limits)
{
    int64_t weight = limits->millicpus / (1000 / CPU_WEIGHT);
    weight = weight < 1 ? 1 : smaller(weight, CPU_WEIGHT_MOST);
    return (limits->millicpus == 0 || write_if_there(path, "cpu.weight", weight)) &&
           (limits->memory_bytes == 0 || (write_if_there(path, "memory.max", limits->memory_bytes) &&
                                          write_if_there(path, "memory.swap.max", 0)));
}

bool cgroup_limit_set(struct cgroup_root *root, const char *path, const struct cgroup_limits *limits,
                      struct err *err)
{
    if (root->processes == 0) {
        return true;
    }
    if (!write_processes(root, path, limits->devices) &&
        !write_processes_again(root, path, limits->devices)) {
        return err_errno(err, "cannot limit the processes of %s", path);
    }
    return write_amounts(path, limits) || err_errno(err, "cannot limit the memory of %s", path);
}

/* --- out of memory -------------------------------------------------------------------------------------- */

void cgroup_end_as_whole(const char *path)
{
    cgroup_write(path, "memory.oom.group", "1");
}

bool cgroup_ran_out(const char *path)
{
    autofree char *events = xprintf("%s/memory.events", path);
    autofree char *text = NULL;
    int64_t count = 0;
    const char *at = file_read(events, LINE_BYTES, &text, NULL, NULL) ? strstr(text, "oom_kill ") : NULL;
    if (at != NULL) {
        autofree char *number = xstrndup(at + strlen("oom_kill "), strcspn(at + strlen("oom_kill "), "\n"));
        text_to_int(number, 0, INT64_MAX, &count);
    }
    return count > 0;
}

/* --- one attempt ---------------------------------------------------------------------------------------- */

static void drop_spare(struct cgroup_spare *spare)
{
    rmdir(spare->path);
    free(spare->path);
    cleanup_close(&spare->folder);
}

static bool make_spare(const char *path, struct cgroup_spare *ret_spare, struct err *err)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return err_errno(err, "cannot make the cgroup %s", path);
    }
    *ret_spare = (struct cgroup_spare){xstrdup(path), open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (ret_spare->folder < 0) {
        err_errno(err, "cannot open the cgroup %s", path);
        drop_spare(ret_spare);
        return false;
    }
    return true;
}

/* The folder gets what an attempt may use, or goes. */
static bool use_spare(struct cgroup_root *root, struct cgroup_spare *spare,
                      const struct cgroup_limits *limits, char **ret_path, struct err *err)
{
    if (!cgroup_limit_set(root, spare->path, limits, err) ||
        (root->rule != NULL &&
         !device_rule_set(root->rule, spare->folder, limits->gpus, limits->gpu_count, err))) {
        drop_spare(spare);
        return false;
    }
    cleanup_close(&spare->folder);
    *ret_path = spare->path;
    return true;
}

bool cgroup_make_named(struct cgroup_root *root, const char *name, const struct cgroup_limits *limits,
                       char **ret_path, struct err *err)
{
    struct cgroup_spare spare;
    *ret_path = NULL;
    if (root->path == NULL) {
        return true;
    }
    autofree char *path = xprintf("%s.%s", root->path, name);
    return make_spare(path, &spare, err) && use_spare(root, &spare, limits, ret_path, err);
}

/* A number is never given twice: attempts of an earlier agent may still have theirs. */
static char *next_name(struct cgroup_root *root)
{
    int64_t now_us = clock_boot_us();
    root->spare_number = now_us > root->spare_number ? now_us : root->spare_number + 1;
    return xprintf(ATTEMPT_PREFIX "%lld", (long long)root->spare_number);
}

bool cgroup_refill(struct cgroup_root *root)
{
    struct err err;
    if (root->path == NULL || root->spare_count == CGROUP_SPARES) {
        return false;
    }
    autofree char *name = next_name(root);
    autofree char *path = xprintf("%s.%s", root->path, name);
    bool made = make_spare(path, &root->spares[root->spare_count], &err);
    root->spare_count += made;
    return made && root->spare_count < CGROUP_SPARES;
}

/* A folder that somebody has removed meanwhile is none. */
bool cgroup_make(struct cgroup_root *root, const struct cgroup_limits *limits, char **ret_path,
                 struct err *err)
{
    while (root->spare_count > 0) {
        if (use_spare(root, &root->spares[--root->spare_count], limits, ret_path, err)) {
            return true;
        }
    }
    autofree char *name = next_name(root);
    return cgroup_make_named(root, name, limits, ret_path, err);
}

static void drop_spares(struct cgroup_root *root)
{
    while (root->spare_count > 0) {
        drop_spare(&root->spares[--root->spare_count]);
    }
}

void cgroup_remove_spares(const struct cgroup_root *root, bool (*is_used)(void *closure, const char *path),
                          void *closure)
{
    autonames struct file_names names = {0};
    autofree char *start = xprintf("%s." ATTEMPT_PREFIX, root->path != NULL ? root->path : "");
    if (root->path == NULL || !file_list(root->base.path, &names, NULL)) {
        return;
    }
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", root->base.path, names.items[i]);
        if (strncmp(path, start, strlen(start)) == 0 && !is_used(closure, path)) {
            rmdir(path); /* one with a process in it stays */
        }
    }
}

void cgroup_finish(struct cgroup_root *root)
{
    drop_spares(root);
    cgroup_base_uncount(&root->base);
    cgroup_base_finish(&root->base);
    free(root->path);
    device_rule_destroy(root->rule);
    *root = (struct cgroup_root){.isolation = ISOLATION_NONE};
}

static void kill_one(void *closure, pid_t pid)
{
    kill(pid, SIGKILL);
}

bool cgroup_clear(const char *path)
{
    autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return errno == ENOENT;
    }
    if (!cgroup_tree_kill(folder)) {
        cgroup_tree_each(folder, kill_one, NULL);
    }
    cgroup_tree_clear(folder);
    return rmdir(path) == 0 || errno == ENOENT;
}
