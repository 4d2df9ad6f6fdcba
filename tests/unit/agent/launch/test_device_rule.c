/* SPDX-License-Identifier: Apache-2.0 */
/* Which device files a process in a cgroup with a rule can make and open, as the kernel has it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch/cgroup.h"
#include "agent/launch/device_rule.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

#define UVM   600 /* no driver of a kernel has such numbers by itself */
#define CAPS  601
#define OTHER 602
static const char majors[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n600 nvidia-uvm\n"
                             "601 nvidia-caps\n602 watchdog\n\nBlock devices:\n602 nvidia-disk\n";
static const int64_t gpus[] = {3, 130};

static const struct {
    const char *what;
    mode_t kind;
    unsigned int major, minor;
    bool with_gpus, without; /* whether a job has it that has GPUs, or none */
} files[] = {
    {"a GPU of the job", S_IFCHR, 195, 3, true, false},
    {"another of the job", S_IFCHR, 195, 130, true, false},
    {"the first GPU of the host", S_IFCHR, 195, 0, false, false},
    {"the last number of a GPU", S_IFCHR, 195, 253, false, false},
    {"a number with the same last bits", S_IFCHR, 195, 3 + 256, false, false},
    {"nvidiactl", S_IFCHR, 195, 255, true, false},
    {"nvidia-modeset", S_IFCHR, 195, 254, true, false},
    {"nvidia-uvm", S_IFCHR, UVM, 0, true, false},
    {"nvidia-uvm-tools", S_IFCHR, UVM, 1, true, false},
    {"a part of a GPU", S_IFCHR, CAPS, 3, false, false},
    {"a disk with the number of a GPU", S_IFBLK, 195, 0, true, true},
    {"a disk with the number of nvidia-uvm", S_IFBLK, UVM, 0, true, true},
    {"what is not of NVIDIA", S_IFCHR, OTHER, 0, true, true},
    {"/dev/null", S_IFCHR, 1, 3, true, true},
};
#define FILES (sizeof files / sizeof files[0])

static char folder[64];
static struct cgroup_root root;
static struct device_rule *rule;
static char *cgroup;

static void write_majors(const char *text)
{
    struct err err;
    autofree char *path = xprintf("%s/majors", folder);
    ck_assert(file_replace(path, text, strlen(text), 0600, &err));
}

static void set_up(void)
{
    strcpy(folder, "/tmp/gpuctl-device-rule-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_majors(majors);
    autofree char *path = xprintf("%s/majors", folder);
    rule = device_rule_create(path);
    autofree char *name = xprintf("rule-%d", (int)getpid());
    cgroup_find(name, &root);
    cgroup =
        root.rule != NULL ? xprintf("%s.job", root.path) : NULL; /* NULL: not on this host, or not for us */
    ck_assert(cgroup == NULL || mkdir(cgroup, 0755) == 0);
}

static void tear_down(void)
{
    struct err err;
    while (cgroup != NULL && !cgroup_clear(cgroup)) { /* a process that has ended is still leaving */
        poll(NULL, 0, 1);
    }
    free(cgroup);
    device_rule_destroy(rule);
    cgroup_finish(&root);
    ck_assert(file_remove_tree(folder, &err));
}

static char *path_of(size_t file)
{
    return xprintf("%s/%zu", folder, file);
}

static bool make(size_t file)
{
    autofree char *path = path_of(file);
    return mknod(path, files[file].kind | 0600, makedev(files[file].major, files[file].minor)) == 0;
}

/* Whether the kernel looks for the driver of the file. */
static bool may_open(size_t file)
{
    autofree char *path = path_of(file);
    autoclose int opened = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return opened >= 0 || errno != EPERM;
}

/* What a process in the cgroup is allowed, for each file: made before, and made by itself. */
static void ask(bool (*act)(size_t file), bool *ret_allowed)
{
    bool *shared = mmap(NULL, FILES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        bool entered = cgroup_write(cgroup, "cgroup.procs", "0");
        for (size_t i = 0; i < FILES; i++) {
            shared[i] = act(i);
        }
        _exit(!entered);
    }
    ck_assert(waitpid(pid, &status, 0) == pid && status == 0);
    memcpy(ret_allowed, shared, FILES);
    munmap(shared, FILES);
}

static bool set_rule(size_t count)
{
    struct err err;
    autoclose int opened = cgroup != NULL ? open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ck_assert_msg(opened < 0 || device_rule_set(rule, opened, gpus, count, &err), "%s", err.text);
    return opened >= 0;
}

static void expect(bool (*act)(size_t file), bool has_gpus)
{
    bool allowed[FILES];
    ask(act, allowed);
    for (size_t i = 0; i < FILES; i++) {
        bool expected = has_gpus ? files[i].with_gpus : files[i].without;
        ck_assert_msg(allowed[i] == expected, "%s: %d", files[i].what, allowed[i]);
    }
}

START_TEST(a_job_opens_its_gpus_and_no_others)
{
    for (size_t i = 0; i < FILES && cgroup != NULL; i++) {
        ck_assert(make(i));
    }
    if (set_rule(_i == 0 ? 0 : 2)) {
        expect(may_open, _i > 0);
    }
}
END_TEST

START_TEST(a_job_makes_no_file_that_it_could_not_open)
{
    if (set_rule(_i == 0 ? 0 : 2)) {
        expect(make, _i > 0);
    }
}
END_TEST

START_TEST(a_later_rule_takes_no_earlier_one_back)
{
    for (size_t i = 0; i < FILES && cgroup != NULL; i++) {
        ck_assert(make(i));
    }
    if (set_rule(0) && set_rule(2) && set_rule(2)) {
        expect(may_open, false);
    }
}
END_TEST

START_TEST(a_driver_that_was_loaded_later_counts_after_a_look)
{
    struct err err;
    for (size_t i = 0; i < FILES && cgroup != NULL; i++) {
        ck_assert(make(i));
    }
    write_majors("Character devices:\n  1 mem\n");
    ck_assert(device_rule_look(rule, &err));
    write_majors(majors);
    ck_assert(device_rule_look(rule, &err));
    if (set_rule(0)) {
        expect(may_open, false);
    }
}
END_TEST

START_TEST(a_rule_that_cannot_be_set_is_told)
{
    struct err err;
    struct device_rule *blind = device_rule_create("/nowhere");
    autoclose int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert(!device_rule_look(blind, NULL));
    ck_assert(!device_rule_set(blind, opened, gpus, 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere"));
    device_rule_destroy(blind);
    ck_assert(!device_rule_set(rule, opened, gpus, 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "to the GPUs of its job"));
}
END_TEST

Suite *device_rule_suite(void)
{
    Suite *suite = suite_create("agent-device-rule");
    TCase *cases = tcase_create("device-rule");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, a_job_opens_its_gpus_and_no_others, 0, 2);
    tcase_add_loop_test(cases, a_job_makes_no_file_that_it_could_not_open, 0, 2);
    tcase_add_test(cases, a_later_rule_takes_no_earlier_one_back);
    tcase_add_test(cases, a_driver_that_was_loaded_later_counts_after_a_look);
    tcase_add_test(cases, a_rule_that_cannot_be_set_is_told);
    suite_add_tcase(suite, cases);
    return suite;
}
