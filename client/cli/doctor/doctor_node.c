/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `gpuctl doctor` of a machine that is to be a node: the agent's service, cgroups, GPUs, the
 * kernel, the disk and Python. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/doctor/findings.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"

#define OUTPUT_BYTES  (256 * 1024)        /* a list of GPUs has a few hundred bytes for each of them */
#define STATE_FOLDER  "/var/lib/gpuagent" /* of the service */
#define DISK_LOW      (10 * 1024 * 1024 * 1024LL) /* one environment with torch */
#define CGROUPS       "/sys/fs/cgroup/cgroup.controllers"
#define CGROUPS_BYTES 4096

/* What a program prints, without the end of the line; the caller frees it. NULL: it failed. */
static char *ask(char *const *argv)
{
    char *said = process_output(argv, OUTPUT_BYTES);
    if (said != NULL) {
        said[strcspn(said, "\n")] = '\0';
    }
    return said;
}

static void check_service(struct findings *findings)
{
    char program[] = "systemctl", active[] = "is-active", show[] = "show", unit[] = "gpuagent",
         property[] = "--property=Delegate", value[] = "--value";
    autofree char *state = ask((char *[]){program, active, unit, NULL});
    bool runs = state != NULL && strcmp(state, "active") == 0;
    findings_add(findings, runs ? FINDING_OK : FINDING_FAIL, "agent",
                 runs ? NULL : "systemctl enable --now gpuagent; journalctl -u gpuagent says why it ended",
                 runs ? "its service runs" : "its service does not run");
    autofree char *delegated = ask((char *[]){program, show, property, value, unit, NULL});
    bool yes = delegated != NULL && strcmp(delegated, "yes") == 0;
    findings_add(findings, yes ? FINDING_OK : FINDING_WARN, "delegation",
                 yes ? NULL : "put Delegate=yes into the service, as the unit of the package has it",
                 yes ? "its service may make cgroups" : "its service may not make cgroups");
}

static void check_cgroups(struct findings *findings)
{
    static const char *const needed[] = {"cpu", "memory", "pids"};
    autofree char *controllers = NULL;
    autotext struct text missing = {0};
    struct err err;
    if (!file_read(CGROUPS, CGROUPS_BYTES, &controllers, NULL, &err)) {
        findings_add(findings, FINDING_FAIL, "cgroups",
                     "boot with systemd.unified_cgroup_hierarchy=1; without it jobs have no limits",
                     "version 2 is not mounted on /sys/fs/cgroup");
        return;
    }
    controllers[strcspn(controllers, "\n")] = '\0';
    autofree char *words = xprintf(" %s ", controllers);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        autofree char *word = xprintf(" %s ", needed[i]);
        text_printf(&missing, "%s", strstr(words, word) == NULL ? word : "");
    }
    bool all = missing.length == 0;
    findings_add(findings, all ? FINDING_OK : FINDING_WARN, "cgroups",
                 all ? NULL : "enable them on the kernel's command line: cgroup_enable=memory",
                 all ? "version 2 with cpu, memory and pids" : "version 2 lacks%s", all ? "" : missing.bytes);
}

static void check_gpus(struct findings *findings)
{
    struct err err;
    char option[] = "--list-devices";
    autofree char *agent = file_find_program("gpuagent", &err);
    if (agent == NULL) {
        findings_add_error(findings, "gpus", &err);
        return;
    }
    autofree char *listed = process_output((char *[]){agent, option, NULL}, OUTPUT_BYTES);
    autojson json_t *devices = listed != NULL ? json_parse(listed, strlen(listed), NULL) : NULL;
    size_t lines = 0;
    for (const char *at = listed; at != NULL && *at != '\0'; at++) {
        lines += *at == '\n';
    }
    size_t count = json_is_array(devices) ? json_array_size(devices) : lines;
    findings_add(findings, count > 0 ? FINDING_OK : FINDING_WARN, "gpus",
                 count > 0 ? NULL : "install NVIDIA's driver and see nvidia-smi, or offer --cpu-slots",
                 count > 0 ? "%zu by NVML" : "NVML finds none", count);
}

static void check_kernel(struct findings *findings)
{
    struct utsname host;
    int major = 0, minor = 0;
    bool known = uname(&host) == 0 && sscanf(host.release, "%d.%d", &major, &minor) == 2;
    bool kills = known && (major > 5 || (major == 5 && minor >= 14));
    findings_add(findings, kills ? FINDING_OK : FINDING_WARN, "kernel",
                 kills ? NULL : "take Linux 5.14 or newer, which ends a whole cgroup in one step", "Linux %s",
                 known ? host.release : "of an unknown version");
    bool filters = access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0;
    findings_add(findings, filters ? FINDING_OK : FINDING_WARN, "seccomp",
                 filters ? NULL : "take a kernel with CONFIG_SECCOMP_FILTER",
                 filters ? "system calls of jobs can be filtered"
                         : "system calls of jobs cannot be filtered");
}

static void check_disk(struct findings *findings)
{
    struct file_disk disk;
    char left[32];
    if (!file_disk(STATE_FOLDER, &disk)) {
        findings_add(findings, FINDING_WARN, "agent's disk", "start the service once, which makes it",
                     "there is no " STATE_FOLDER);
        return;
    }
    print_bytes(disk.free_bytes, left);
    bool low = disk.free_bytes < DISK_LOW;
    findings_add(findings, low ? FINDING_WARN : FINDING_OK, "agent's disk",
                 low ? "make room: Python environments and output of jobs lie there" : NULL,
                 "%s free for " STATE_FOLDER, left);
}

static void check_python(struct findings *findings)
{
    char program[] = "python3", option[] = "--version";
    autofree char *version = ask((char *[]){program, option, NULL});
    findings_add(findings, version != NULL ? FINDING_OK : FINDING_FAIL, "python",
                 version != NULL ? NULL : "install python3, or name one with gpuagent --python", "%s",
                 version != NULL ? version : "there is no python3 on PATH for jobs");
}

void findings_of_node(struct findings *findings)
{
    check_service(findings);
    check_cgroups(findings);
    check_gpus(findings);
    check_kernel(findings);
    check_disk(findings);
    check_python(findings);
}
