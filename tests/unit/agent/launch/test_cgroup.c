/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes an attempt may have, as it is written into its cgroup; where the cgroups of attempts
 * are made, and with which controllers; and that what the agent made for itself does not outlive it. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/launch/cgroup.h"
#include "agent/launch/node_size.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

static char folder[64];

static void set_up(void)
{
    strcpy(folder, "/tmp/gpuctl-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    struct err err;
    ck_assert(file_remove_tree(folder, &err));
}

static void expect_limit(struct cgroup_root *root, int64_t devices, const char *expected)
{
    struct err err;
    size_t length;
    autofree char *path = xprintf("%s/pids.max", folder);
    autofree char *text = NULL;
    ck_assert(file_replace(path, "", 0, 0600, &err));
    ck_assert(cgroup_limit_set(root, folder, &(struct cgroup_limits){.devices = devices}, &err));
    ck_assert(file_read(path, 64, &text, &length, &err));
    ck_assert_str_eq(text, expected);
}

START_TEST(an_attempt_has_its_processes_by_the_device_and_leaves_half_of_the_kernels)
{
    struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    expect_limit(&root, 1, "10");
    expect_limit(&root, 2, "20");
    expect_limit(&root, 3, "25");
}
END_TEST

START_TEST(a_limit_that_cannot_be_set_is_told)
{
    struct err err;
    struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    ck_assert(!cgroup_limit_set(&root, folder, &(struct cgroup_limits){.devices = 1}, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot limit the processes"));
}
END_TEST

START_TEST(no_limit_is_set_where_the_cgroup_cannot_count)
{
    struct err err;
    struct cgroup_root root = {.isolation = ISOLATION_CGROUP2};
    ck_assert(cgroup_limit_set(&root, folder, &(struct cgroup_limits){.devices = 1}, &err));
}
END_TEST

static void expect_file(const char *name, const char *expected)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    autofree char *text = NULL;
    ck_assert(file_read(path, 64, &text, NULL, NULL));
    ck_assert_str_eq(text, expected);
}

static void make_file(const char *name, const char *text)
{
    struct err err;
    autofree char *path = xprintf("%s/%s", folder, name);
    ck_assert(file_replace(path, text, strlen(text), 0600, &err));
}

static void expect_amounts(int64_t millicpus, int64_t memory_bytes, const char *weight, const char *most)
{
    struct err err;
    struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    const struct cgroup_limits limits = {.devices = 1, .millicpus = millicpus, .memory_bytes = memory_bytes};
    make_file("pids.max", "");
    make_file("cpu.weight", "");
    make_file("memory.max", "");
    make_file("memory.swap.max", "");
    ck_assert_msg(cgroup_limit_set(&root, folder, &limits, &err), "%s", err.text);
    expect_file("cpu.weight", weight);
    expect_file("memory.max", most);
    expect_file("memory.swap.max", memory_bytes > 0 ? "0" : "");
}

START_TEST(an_attempt_has_its_share_of_the_cpus_and_no_more_than_its_memory)
{
    expect_amounts(4000, 1 << 30, "400", "1073741824");
    expect_amounts(500, 1 << 20, "50", "1048576");
    expect_amounts(1, 0, "1", "");
    expect_amounts(1024000, 0, "10000", "");
    expect_amounts(0, 0, "", "");
}
END_TEST

START_TEST(a_host_without_the_controllers_of_cpus_and_memory_limits_processes_alone)
{
    struct err err;
    struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    make_file("pids.max", "");
    make_file("cgroup.procs", "");
    autofree char *weight = xprintf("%s/cpu.weight", folder);
    ck_assert(cgroup_limit_set(
        &root, folder, &(struct cgroup_limits){.devices = 1, .millicpus = 4000, .memory_bytes = 1 << 30},
        &err));
    ck_assert_int_ne(access(weight, F_OK), 0);
}
END_TEST

START_TEST(the_agent_offers_what_the_cgroups_around_it_leave)
{
    autofree char *inner = xprintf("%s/machine/agent", folder), *outer = xprintf("%s/machine", folder);
    ck_assert_int_eq(mkdir(outer, 0700), 0);
    ck_assert_int_eq(mkdir(inner, 0700), 0);
    struct node_size size = {.millicpus = 64000, .memory_bytes = 1LL << 40};
    node_size_within(folder, inner, &size);
    ck_assert_int_eq(size.millicpus, 64000);
    ck_assert_int_eq(size.memory_bytes, 1LL << 40);
    make_file("machine/cpu.max", "250000 100000\n");
    make_file("machine/memory.max", "max\n");
    make_file("machine/agent/cpu.max", "max 100000\n");
    make_file("machine/agent/memory.max", "8589934592\n");
    node_size_within(folder, inner, &size);
    ck_assert_int_eq(size.millicpus, 2500);
    ck_assert_int_eq(size.memory_bytes, 8LL << 30);
}
END_TEST

START_TEST(what_the_operator_says_the_node_has_is_what_it_offers)
{
    struct node_size size;
    node_size_find(3, 1LL << 30, &size);
    ck_assert_int_eq(size.millicpus, 3000);
    ck_assert_int_eq(size.memory_bytes, 1LL << 30);
    node_size_find(0, 0, &size);
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    ck_assert_int_ge(size.millicpus, 1);
    ck_assert_int_le(size.millicpus, sysconf(_SC_NPROCESSORS_ONLN) * 1000);
    ck_assert_int_gt(size.memory_bytes, 0);
    ck_assert_int_le(size.memory_bytes, memory - memory / 16);
}
END_TEST

START_TEST(a_job_of_slurm_gives_the_node_what_it_has)
{
    struct node_size size;
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    setenv("SLURM_MEM_PER_NODE", "64", 1);
    node_size_find(0, 0, &size);
    ck_assert_int_eq(size.millicpus, 1000);
    ck_assert_int_eq(size.memory_bytes, 60LL << 20);
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "32", 1);
    node_size_find(0, 0, &size);
    ck_assert_int_eq(size.memory_bytes, 30LL << 20);
    setenv("SLURM_MEM_PER_CPU", "0", 1); /* all of it */
    setenv("SLURM_CPUS_ON_NODE", "1000000", 1);
    node_size_find(0, 0, &size);
    ck_assert_int_gt(size.memory_bytes, 30LL << 20);
    ck_assert_int_le(size.millicpus, sysconf(_SC_NPROCESSORS_ONLN) * 1000);
}
END_TEST

START_TEST(what_takes_more_memory_than_it_may_ends_as_a_whole_and_is_told)
{
    static const char none[] = "max 3\noom 1\noom_kill 0\noom_group_kill 0\n";
    static const char some[] = "max 3\noom 1\noom_kill 2\noom_group_kill 1\n";
    struct err err;
    autofree char *events = xprintf("%s/memory.events", folder);
    cgroup_end_as_whole(folder); /* nothing is counted here */
    ck_assert(!cgroup_ran_out(folder));
    make_file("memory.oom.group", "");
    cgroup_end_as_whole(folder);
    expect_file("memory.oom.group", "1");
    ck_assert(file_replace(events, none, strlen(none), 0600, &err));
    ck_assert(!cgroup_ran_out(folder));
    ck_assert(file_replace(events, some, strlen(some), 0600, &err));
    ck_assert(cgroup_ran_out(folder));
}
END_TEST

START_TEST(an_agent_that_ends_leaves_no_cgroup)
{
    struct cgroup_root root;
    struct err err;
    autofree char *name = xprintf("test-%d", (int)getpid());
    autofree char *made = NULL;
    cgroup_find(name, &root);
    if (root.isolation == ISOLATION_NONE) {
        return; /* no cgroups on this host, or not for us */
    }
    cgroup_limit(&root, 4096);
    ck_assert(cgroup_make(&root, &(struct cgroup_limits){.devices = 1}, &made, &err));
    ck_assert_int_eq(access(made, F_OK), 0);
    ck_assert(cgroup_clear(made));
    autofree char *leaf =
        root.base.path != NULL ? xprintf("%s/gpuctl-agent", root.base.path) : xstrdup("/none");
    cgroup_finish(&root);
    ck_assert_int_ne(access(leaf, F_OK), 0);
}
END_TEST

static bool is_first(void *closure, const char *path)
{
    return strcmp(closure, path) == 0;
}

START_TEST(attempts_get_cgroups_that_were_made_before)
{
    struct cgroup_root root;
    struct err err;
    autofree char *name = xprintf("spares-%d", (int)getpid());
    autofree char *made = NULL, *late = NULL;
    cgroup_find(name, &root);
    if (root.isolation == ISOLATION_NONE) {
        return; /* no cgroups on this host, or not for us */
    }
    while (cgroup_refill(&root)) {
    }
    ck_assert_uint_eq(root.spare_count, CGROUP_SPARES);
    autofree char *last = xstrdup(root.spares[CGROUP_SPARES - 1].path);
    autofree char *first = xstrdup(root.spares[0].path);
    ck_assert(root.rule == NULL || rmdir(first) == 0); /* by somebody, which the rule's call shows */
    ck_assert(cgroup_make(&root, &(struct cgroup_limits){.devices = 1}, &made, &err));
    ck_assert_str_eq(made, last);
    ck_assert(cgroup_make(&root, &(struct cgroup_limits){.devices = 1}, &late, &err));
    ck_assert_int_eq(access(late, F_OK), 0);
    ck_assert_str_ne(made, late);
    ck_assert_uint_eq(root.spare_count, 0);
    cgroup_refill(&root);
    autofree char *spare = root.spares[0].path;
    close(root.spares[0].folder);
    root.spare_count = 0; /* the agent was killed */
    cgroup_remove_spares(&root, is_first, made);
    ck_assert_int_eq(access(made, F_OK), 0);
    ck_assert_int_ne(access(late, F_OK), 0);
    ck_assert_int_ne(access(spare, F_OK), 0);
    ck_assert(cgroup_clear(made));
    cgroup_refill(&root);
    autofree char *left = xstrdup(root.spares[0].path);
    cgroup_finish(&root);
    ck_assert_int_ne(access(left, F_OK), 0);
}
END_TEST

/* --- the base, in a folder that looks like one ---------------------------------------------------------- */

static char *below(const char *name)
{
    return xprintf("%s/%s", folder, name);
}

static void lay(const char *name, const char *text)
{
    struct err err;
    autofree char *path = below(name);
    autofree char *above = file_folder_of(path);
    ck_assert(file_make_directories(above, 0700, &err));
    ck_assert_msg(file_replace(path, text, strlen(text), 0600, &err), "%s", err.text);
}

static void expect_text(const char *name, const char *expected)
{
    struct err err;
    autofree char *path = below(name);
    autofree char *text = NULL;
    ck_assert_msg(file_read(path, 4096, &text, NULL, &err), "%s", err.text);
    ck_assert_str_eq(text, expected);
}

static void stage_cgroup(const char *name, const char *type, const char *processes)
{
    autofree char *procs = xprintf("%s/cgroup.procs", name);
    autofree char *control = xprintf("%s/cgroup.subtree_control", name);
    autofree char *types = xprintf("%s/cgroup.type", name);
    lay(procs, processes);
    lay(control, "");
    if (type != NULL) {
        lay(types, type);
    }
}

static void mark_delegated(const char *name)
{
    autofree char *path = below(name);
    ck_assert(setxattr(path, "user.delegate", "1", 1, 0) == 0 ||
              setxattr(path, "trusted.delegate", "1", 1, 0) == 0);
}

/* Where attempts go; each name is a folder, NULL for none. */
static const struct {
    const char *what, *own;
    bool top, systemd, delegated;
    const char *expected;
    enum cgroup_hold hold;
} bases[] = {
    {"a unit with Delegate=yes", "/a.service", true, true, true, "/a.service", HOLD_DELEGATED},
    {"the same, after an agent", "/a.service/gpuctl-agent", true, true, true, "/a.service", HOLD_DELEGATED},
    {"a unit without", "/a.service", true, true, false, "/a.service", HOLD_PLAIN},
    {"systemd, and nothing that is ours", NULL, true, true, false, NULL, HOLD_PLAIN},
    {"a host without systemd", "/a", true, false, false, "", HOLD_TOP},
    {"a container", "", false, false, false, "", HOLD_SHARED},
    {"a container, after an agent", "/gpuctl-agent", false, false, false, "", HOLD_SHARED},
    {"a container, as podman marks it", "", false, false, true, "", HOLD_SHARED},
};

START_TEST(attempts_go_where_no_other_program_manages_cgroups)
{
    struct cgroup_base base;
    autofree char *mount = below("mount");
    const char *place = bases[_i].expected != NULL ? bases[_i].expected : "";
    autofree char *name = xprintf("mount%s", place);
    autofree char *expected = below(name);
    autofree char *own = bases[_i].own != NULL ? xprintf("%s%s", mount, bases[_i].own) : NULL;
    stage_cgroup("mount", bases[_i].top ? NULL : "domain\n", "");
    stage_cgroup(name, bases[_i].top && *place == '\0' ? NULL : "domain\n", "");
    if (bases[_i].delegated) {
        mark_delegated(name);
    }
    cgroup_base_choose(mount, own, bases[_i].systemd, &base);
    ck_assert_msg(bases[_i].expected != NULL ? base.path != NULL && strcmp(base.path, expected) == 0
                                             : base.path == NULL,
                  "%s: %s", bases[_i].what, base.path);
    ck_assert_msg(base.hold == bases[_i].hold, "%s: %d", bases[_i].what, base.hold);
    cgroup_base_finish(&base);
}
END_TEST

static struct cgroup_base base_of(enum cgroup_hold hold)
{
    return (struct cgroup_base){.path = below("a.service"), .hold = hold};
}

/* M1: the kernel would make it a thread root, below which no process can be in a cgroup. */
START_TEST(controllers_stay_off_where_a_process_remains)
{
    static const enum cgroup_hold holds[] = {HOLD_PLAIN, HOLD_SHARED, HOLD_DELEGATED};
    struct cgroup_base base = base_of(holds[_i]);
    stage_cgroup("a.service", "domain\n", "1\n");
    stage_cgroup("a.service/gpuctl-agent", "domain\n", "");
    ck_assert(!cgroup_base_count(&base));
    expect_text("a.service/cgroup.subtree_control", "");
    expect_text("a.service/gpuctl-agent/cgroup.procs", holds[_i] == HOLD_DELEGATED ? "1" : "");
    cgroup_base_finish(&base);
}
END_TEST

START_TEST(controllers_are_on_where_no_process_is_and_off_at_the_end)
{
    struct cgroup_base base = base_of(HOLD_DELEGATED);
    stage_cgroup("a.service", "domain\n", "");
    ck_assert(cgroup_base_count(&base));
    expect_text("a.service/cgroup.subtree_control", "+memory");
    cgroup_base_uncount(&base);
    expect_text("a.service/cgroup.subtree_control", "-pidsry"); /* a file, and no kernel that takes words */
    cgroup_base_finish(&base);
}
END_TEST

/* --- the same before the kernel ------------------------------------------------------------------------- */

static const char *real_mount(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        autofree char *sign = xprintf("%s/cgroup.controllers", mounts[i]);
        if (access(sign, R_OK) == 0) {
            return mounts[i];
        }
    }
    return NULL;
}

static bool write_line(const char *path, const char *name, const char *text)
{
    autofree char *file_name = xprintf("%s/%s", path, name);
    autoclose int file = open(file_name, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
}

/* An agent that systemd started in a unit: then the next one, while a process of an attempt lives. */
static void live_in(const char *mount, const char *unit)
{
    struct cgroup_root root;
    struct err err;
    autofree char *limit = NULL, *made = NULL;
    bool counted = access((limit = xprintf("%s/pids.max", unit)), F_OK) == 0;
    ck_assert(write_line(unit, "cgroup.procs", "0"));
    cgroup_find_below(mount, unit, true, "unit-test", &root);
    ck_assert_int_eq(root.isolation, ISOLATION_CGROUP2);
    ck_assert_int_eq(root.counts, counted);
    cgroup_limit(&root, 10);
    ck_assert_msg(cgroup_make(&root, &(struct cgroup_limits){.devices = 1}, &made, &err), "%s", err.text);
    pid_t rank = fork();
    if (rank == 0) {
        pause();
        _exit(0);
    }
    autofree char *number = xprintf("%d", (int)rank), *inner = xprintf("%s/inner", made);
    ck_assert_int_eq(mkdir(inner, 0755), 0); /* the job makes cgroups, too */
    ck_assert(write_line(inner, "cgroup.procs", number));
    ck_assert_int_eq(write_line(made, "cgroup.subtree_control", "+pids"), counted);
    cgroup_finish(&root);
    ck_assert(write_line(unit, "cgroup.procs", "0")); /* what systemd does for the next agent */
    cgroup_find_below(mount, unit, true, "unit-test", &root);
    ck_assert_int_eq(root.counts, counted);
    ck_assert_int_eq(waitpid(rank, NULL, WNOHANG), 0);
    ck_assert(kill(rank, SIGKILL) == 0 && waitpid(rank, NULL, 0) == rank);
    ck_assert(cgroup_clear(made));
    cgroup_finish(&root);
}

/* M1, before a kernel that has the controllers at hand; else what can be had without them. */
START_TEST(an_agent_in_a_delegated_unit_counts_its_attempts_and_can_be_started_again)
{
    const char *mount = real_mount();
    autofree char *unit = mount != NULL ? xprintf("%s/gpuctl-test-%d.service", mount, (int)getpid()) : NULL;
    if (unit == NULL || mkdir(unit, 0755) != 0) {
        return; /* no cgroups on this host, or not for us */
    }
    write_line(mount, "cgroup.subtree_control", "+pids");
    ck_assert_int_eq(setxattr(unit, "user.delegate", "1", 1, 0), 0);
    int status;
    pid_t agent = fork();
    if (agent == 0) {
        live_in(mount, unit);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(agent, &status, 0), agent);
    while (!cgroup_clear(unit)) { /* processes that were killed are still ending */
        poll(NULL, 0, 10);
    }
    ck_assert_int_eq(status, 0);
}
END_TEST

Suite *cgroup_suite(void)
{
    Suite *suite = suite_create("agent-cgroup");
    TCase *cases = tcase_create("cgroup");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, an_attempt_has_its_processes_by_the_device_and_leaves_half_of_the_kernels);
    tcase_add_test(cases, a_limit_that_cannot_be_set_is_told);
    tcase_add_test(cases, no_limit_is_set_where_the_cgroup_cannot_count);
    tcase_add_test(cases, an_attempt_has_its_share_of_the_cpus_and_no_more_than_its_memory);
    tcase_add_test(cases, a_host_without_the_controllers_of_cpus_and_memory_limits_processes_alone);
    tcase_add_test(cases, the_agent_offers_what_the_cgroups_around_it_leave);
    tcase_add_test(cases, what_the_operator_says_the_node_has_is_what_it_offers);
    tcase_add_test(cases, a_job_of_slurm_gives_the_node_what_it_has);
    tcase_add_test(cases, what_takes_more_memory_than_it_may_ends_as_a_whole_and_is_told);
    tcase_add_test(cases, an_agent_that_ends_leaves_no_cgroup);
    tcase_add_test(cases, attempts_get_cgroups_that_were_made_before);
    tcase_add_loop_test(cases, attempts_go_where_no_other_program_manages_cgroups, 0,
                        sizeof bases / sizeof bases[0]);
    tcase_add_loop_test(cases, controllers_stay_off_where_a_process_remains, 0, 3);
    tcase_add_test(cases, controllers_are_on_where_no_process_is_and_off_at_the_end);
    tcase_add_test(cases, an_agent_in_a_delegated_unit_counts_its_attempts_and_can_be_started_again);
    suite_add_tcase(suite, cases);
    return suite;
}
