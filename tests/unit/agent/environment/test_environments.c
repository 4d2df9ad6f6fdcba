/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/environments: what is ready, what is in use, what must go. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cache.h"
#include "agent/environment/environments.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HASH_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static struct environments *environments;

static void setup(void)
{
    struct err err = {0};
    rig_setup();
    rig_write_text("python", "#!/bin/sh\n");
    autofree char *python = rig_path("python");
    autofree char *folder = rig_path("environments");
    ck_assert_int_eq(chmod(python, 0700), 0);
    environments = environments_create(folder, python, 1000, &err);
    ck_assert_msg(environments != NULL, "%s", err.text);
}

static void teardown(void)
{
    environments_destroy(environments);
    rig_teardown();
}

/* An environment as a builder leaves it, last used at a time. */
static void make(const char *hash, const char *name, const char *marker, time_t used)
{
    autofree char *python = xprintf("environments/%s/bin/python", hash);
    autofree char *says = xprintf("environments/%s/gpuctl.json", hash);
    autofree char *lock = xprintf("environments/%s.lock", hash);
    autofree char *link = xprintf("%s/environments/names/%s", rig.folder, name);
    autofree char *target = xprintf("../%s", hash);
    rig_write_text(python, "#!/bin/sh\n");
    rig_write_text(says, marker);
    rig_write_text(lock, "");
    ck_assert_int_eq(symlink(target, link), 0);
    autofree char *python_path = rig_path(python);
    autofree char *lock_path = rig_path(lock);
    ck_assert_int_eq(chmod(python_path, 0700), 0);
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    ck_assert_int_eq(utimensat(AT_FDCWD, lock_path, times, 0), 0);
}

static bool is_there(const char *name)
{
    autofree char *path = xprintf("%s/environments/%s", rig.folder, name);
    return access(path, F_OK) == 0;
}

static int use(const char *name, bool fresh)
{
    autofree char *folder = NULL;
    struct err err;
    int lock = environment_use(environments, name, fresh, &folder, &err);
    ck_assert_int_eq(lock >= 0, folder != NULL);
    return lock;
}

START_TEST(a_name_tells_needs_and_interpreters_apart)
{
    struct environment_need need = {.requirements = HASH_A};
    char *names[5], *interpreters[5];
    struct err err;
    ck_assert(environment_name(environments, &need, &names[0], &interpreters[0], &err));
    ck_assert(environment_name(environments, &need, &names[1], &interpreters[1], &err));
    ck_assert_str_eq(names[0], names[1]);
    autofree char *python = rig_path("python");
    ck_assert_str_eq(interpreters[0], python);
    need.python_version = "3.11";
    ck_assert(environment_name(environments, &need, &names[2], &interpreters[2], &err));
    need.python = "sh"; /* on PATH */
    ck_assert(environment_name(environments, &need, &names[3], &interpreters[3], &err));
    ck_assert_int_eq(interpreters[3][0], '/');
    rig_write_text("python", "#!/bin/sh\n# another\n");
    ck_assert(environment_name(environments, &(struct environment_need){.requirements = HASH_A}, &names[4],
                               &interpreters[4], &err));
    for (int i = 2; i < 5; i++) {
        ck_assert_str_ne(names[0], names[i]);
    }
    for (int i = 0; i < 5; i++) {
        free(names[i]);
        free(interpreters[i]);
    }
    need.python = "/no/such/python";
    ck_assert(!environment_name(environments, &need, &names[0], &interpreters[0], &err));
    ck_assert_ptr_nonnull(strstr(err.text, "/no/such/python"));
}
END_TEST

START_TEST(only_one_with_a_marker_is_used)
{
    make(HASH_A, "one", "{\"size_bytes\": 1}", 1);
    make(HASH_B, "two", "{\"size", 1);
    autoclose int lock = use("one", true);
    ck_assert_int_ge(lock, 0);
    ck_assert_int_lt(use("two", false), 0);
    ck_assert_int_lt(use("three", false), 0);
}
END_TEST

START_TEST(a_change_of_the_nodes_own_python_asks_for_a_new_look)
{
    rig_write_text("site/x", "");
    autofree char *site = rig_path("site");
    struct stat status;
    ck_assert_int_eq(stat(site, &status), 0);
    autofree char *marker = xprintf("{\"size_bytes\": 1, \"folders\": {\"%s\": %lld}}", site,
                                    (long long)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    make(HASH_A, "one", marker, 1);
    autoclose int before = use("one", true);
    ck_assert_int_ge(before, 0);
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
    ck_assert_int_eq(utimensat(AT_FDCWD, site, times, 0), 0);
    ck_assert_int_lt(use("one", true), 0);
    autoclose int after = use("one", false);
    ck_assert_int_ge(after, 0);
}
END_TEST

START_TEST(what_was_used_longest_ago_goes_first_and_takes_its_names_along)
{
    make(HASH_A, "one", "{\"size_bytes\": 600}", 20);
    make(HASH_B, "two", "{\"size_bytes\": 600}", 10);
    make(HASH_C, "three", "{\"size_bytes\": 300}", 30);
    environments_make_room(environments);
    ck_assert(is_there(HASH_A) && !is_there(HASH_B) && is_there(HASH_C));
    autofree char *name = xprintf("%s/environments/names/two", rig.folder);
    struct stat status;
    ck_assert_int_ne(lstat(name, &status), 0);
    while (environments_step(environments)) {
    }
    autofree char *trash = xprintf("%s/environments/.trash", rig.folder);
    ck_assert_int_eq(rmdir(trash), 0); /* it is empty */
}
END_TEST

START_TEST(what_is_used_stays)
{
    make(HASH_A, "one", "{\"size_bytes\": 1001}", 10);
    make(HASH_B, "two", "{\"size_bytes\": 1200}", 20);
    autoclose int lock = use("one", false);
    environments_make_room(environments);
    ck_assert(is_there(HASH_A) && !is_there(HASH_B));
    make(HASH_C, "three", "{\"size_bytes\": 600}", 20);
    environments_make_room(environments);
    ck_assert(is_there(HASH_A) && !is_there(HASH_C));
    ck_assert_int_eq(flock(lock, LOCK_UN), 0);
    environments_make_room(environments);
    ck_assert(!is_there(HASH_A));
}
END_TEST

START_TEST(a_use_is_noted)
{
    make(HASH_A, "one", "{\"size_bytes\": 600}", 10);
    make(HASH_B, "two", "{\"size_bytes\": 600}", 20);
    int lock = use("one", false);
    close(lock);
    environments_make_room(environments);
    ck_assert(is_there(HASH_A) && !is_there(HASH_B));
}
END_TEST

START_TEST(what_a_killed_builder_left_goes_unless_one_builds_it)
{
    make(HASH_A, "one", "no json", 10);
    make(HASH_B, "two", "no json", 10);
    autofree char *folder = xprintf("%s/environments/" HASH_B, rig.folder);
    autofree char *path = cache_lock_path(folder);
    autoclose int builder = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(builder, LOCK_EX), 0);
    environments_make_room(environments);
    ck_assert(!is_there(HASH_A) && is_there(HASH_B));
}
END_TEST

Suite *environments_suite(void)
{
    Suite *suite = suite_create("environments");
    TCase *tcase = tcase_create("environments");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_name_tells_needs_and_interpreters_apart);
    tcase_add_test(tcase, only_one_with_a_marker_is_used);
    tcase_add_test(tcase, a_change_of_the_nodes_own_python_asks_for_a_new_look);
    tcase_add_test(tcase, what_was_used_longest_ago_goes_first_and_takes_its_names_along);
    tcase_add_test(tcase, what_is_used_stays);
    tcase_add_test(tcase, a_use_is_noted);
    tcase_add_test(tcase, what_a_killed_builder_left_goes_unless_one_builds_it);
    suite_add_tcase(suite, tcase);
    return suite;
}
