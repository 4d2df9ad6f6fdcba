/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes an attempt may have, as it is written into its cgroup; and that the agent's own folder
 * does not outlive it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "tests/unit/agent_suites.h"

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

static void expect_limit(const struct cgroup_root *root, int64_t devices, const char *expected)
{
    struct err err;
    size_t length;
    autofree char *path = xprintf("%s/pids.max", folder);
    autofree char *text = NULL;
    ck_assert(file_replace(path, "", 0, 0600, &err));
    ck_assert(cgroup_limit_set(root, folder, devices, &err));
    ck_assert(file_read(path, 64, &text, &length, &err));
    ck_assert_str_eq(text, expected);
}

START_TEST(an_attempt_has_its_processes_by_the_device_and_leaves_half_of_the_kernels)
{
    const struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    expect_limit(&root, 1, "10");
    expect_limit(&root, 2, "20");
    expect_limit(&root, 3, "25");
}
END_TEST

START_TEST(a_limit_that_cannot_be_set_is_told)
{
    struct err err;
    const struct cgroup_root root = {.isolation = ISOLATION_CGROUP2, .processes = 10, .most = 25};
    ck_assert(!cgroup_limit_set(&root, folder, 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot limit the processes"));
}
END_TEST

START_TEST(no_limit_is_set_where_the_cgroup_cannot_count)
{
    struct err err;
    const struct cgroup_root root = {.isolation = ISOLATION_CGROUP1};
    ck_assert(cgroup_limit_set(&root, folder, 1, &err));
}
END_TEST

START_TEST(the_folder_of_an_agent_goes_when_it_ends)
{
    struct cgroup_root root;
    autofree char *name = xprintf("test-%d", (int)getpid());
    cgroup_find(name, &root);
    if (root.isolation == ISOLATION_NONE) {
        return; /* no cgroups on this host, or not for us */
    }
    autofree char *path = xprintf("%s", root.path);
    cgroup_limit(&root, name, 4096, 1);
    ck_assert_int_eq(access(path, F_OK), 0);
    autofree char *guard = root.guard != NULL ? xprintf("%s", root.guard) : NULL;
    cgroup_finish(&root);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(guard == NULL || access(guard, F_OK) != 0);
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
    tcase_add_test(cases, the_folder_of_an_agent_goes_when_it_ends);
    suite_add_tcase(suite, cases);
    return suite;
}
