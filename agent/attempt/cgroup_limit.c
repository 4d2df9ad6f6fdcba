/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how many processes jobs may have, so that a job that starts processes without end leaves the node
 * usable. Version 2 counts per attempt. Version 1 can count, too, but only in a hierarchy of its own, where
 * moving a process makes the kernel wait for all CPUs, up to 20 ms, which is longer than a whole start may
 * take. So there the agent itself enters one cgroup at its start, and all its children are born in it. */
#include "agent/attempt/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/limits.h"

static bool write_word(const char *folder, const char *name, const char *word)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    autoclose int file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, word, strlen(word)) == (ssize_t)strlen(word);
}

static bool write_number(const char *folder, const char *name, int64_t value)
{
    autofree char *word = xprintf("%lld", (long long)value);
    return write_word(folder, name, word);
}

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
static int64_t kernel_half(void)
{
    return smaller(read_number("/proc/sys/kernel/pid_max"), read_number("/proc/sys/kernel/threads-max")) / 2;
}

/* The agent's children are born in this cgroup. */
static bool enter_guard(struct cgroup_root *root, const char *agent_name, int64_t processes)
{
    if (root->pids == NULL) {
        return false;
    }
    autofree char *path = xprintf("%s/gpuctl-%s", root->pids, agent_name);
    if ((mkdir(path, 0755) != 0 && errno != EEXIST) || !write_number(path, "pids.max", processes) ||
        !write_number(path, "cgroup.procs", getpid())) {
        rmdir(path);
        return false;
    }
    root->guard = give(path);
    return true;
}

void cgroup_limit(struct cgroup_root *root, const char *agent_name, int64_t processes, int64_t devices)
{
    root->most = kernel_half();
    if (root->counts) {
        root->processes = processes;
    } else if (!enter_guard(root, agent_name, smaller(processes * devices, root->most))) {
        log_warning("processes unlimited", "hint=\"" HINT_DELEGATE "\"");
    }
}

static bool set(const struct cgroup_root *root, const char *path, int64_t devices)
{
    return write_number(path, "pids.max", smaller(root->processes * devices, root->most));
}

/* Another agent in the same unit may have turned the controllers off at its end. */
static bool set_again(struct cgroup_root *root, const char *path, int64_t devices)
{
    return errno == ENOENT && cgroup_base_count(&root->base) && set(root, path, devices);
}

bool cgroup_limit_set(struct cgroup_root *root, const char *path, int64_t devices, struct err *err)
{
    return root->processes == 0 || set(root, path, devices) || set_again(root, path, devices) ||
           err_errno(err, "cannot limit the processes of %s", path);
}

void cgroup_unguard(struct cgroup_root *root)
{
    if (root->guard != NULL) {
        write_number(root->pids, "cgroup.procs", getpid());
        rmdir(root->guard); /* fails while attempts live in it */
        free(give(root->guard));
    }
}
