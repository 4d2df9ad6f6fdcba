/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/common/checkpoint_folder: a folder that is the user's alone, whatever others have put there.
 */
#include "agent/common/checkpoint_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

#define ANN 1900000001
#define EVE 1900000002

static char volume[64];

static void set_up(void)
{
    strcpy(volume, "/tmp/gpuctl-volume-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(volume));
    ck_assert_int_eq(chmod(volume, 0777), 0);
}

static void tear_down(void)
{
    struct err err;
    ck_assert(file_remove_tree(volume, &err));
}

static char *at(const char *path)
{
    return xprintf("%s/%s", volume, path);
}

/* "" when the folder was made, else why not. In a process of its own, which ends as another user. */
static char *make_as(uid_t uid)
{
    char said[512] = "";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err err = {.text = ""};
        bool became = geteuid() != 0 || uid == 0 || (setgid(uid) == 0 && setuid(uid) == 0);
        bool made = became && checkpoint_folder_make(volume, "all", "own", &err);
        ssize_t written = made ? 0 : write(ends[1], err.text, strlen(err.text));
        _exit(written < 0);
    }
    close(ends[1]);
    ck_assert_int_ge(read(ends[0], said, sizeof said - 1), 0);
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return xstrdup(said);
}

static void expect(uid_t uid, const char *why)
{
    autofree char *said = make_as(uid);
    ck_assert_msg(*why == '\0' ? *said == '\0' : strstr(said, why) != NULL, "%s", said);
}

static void expect_mode(const char *path, mode_t mode)
{
    struct stat status;
    autofree char *name = at(path);
    ck_assert_int_eq(lstat(name, &status), 0);
    ck_assert_int_eq(status.st_mode, S_IFDIR | mode);
}

START_TEST(a_folder_is_made_once_and_then_found)
{
    autofree char *file = NULL;
    umask(077);
    expect(ANN, "");
    expect_mode("all", 01777);
    expect_mode("all/own", 0700);
    file = at("all/own/last");
    ck_assert_int_eq(mkdir(file, 0700), 0);
    expect(ANN, "");
    ck_assert_int_eq(access(file, F_OK), 0);
}
END_TEST

START_TEST(the_folder_of_another_user_is_refused)
{
    autofree char *own = at("all/own");
    if (geteuid() != 0) {
        return;
    }
    expect(EVE, "");
    ck_assert_int_eq(chmod(own, 0777), 0);
    expect(ANN, "belongs to another user");
    expect_mode("all/own", 0777);
}
END_TEST

START_TEST(no_link_is_followed)
{
    autofree char *all = at("all");
    autofree char *own = at("all/own");
    autofree char *elsewhere = at("elsewhere");
    autofree char *made = at("elsewhere/own");
    ck_assert_int_eq(mkdir(elsewhere, 0777), 0);
    ck_assert_int_eq(symlink(elsewhere, all), 0);
    expect(ANN, "Not a directory");
    ck_assert_int_eq(access(made, F_OK), -1);
    ck_assert_int_eq(unlink(all), 0);
    ck_assert_int_eq(mkdir(all, 0777), 0);
    ck_assert_int_eq(chmod(all, 0777), 0);
    ck_assert_int_eq(symlink(elsewhere, own), 0);
    expect(ANN, "Not a directory");
}
END_TEST

START_TEST(the_reason_names_the_folder)
{
    autofree char *own = at("all/own");
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(volume, 0755), 0);
        expect(ANN, own);
        expect(ANN, "Permission denied");
    }
    ck_assert_int_eq(rmdir(volume), 0);
    expect(ANN, "No such file or directory");
    ck_assert_int_eq(mkdir(volume, 0700), 0);
}
END_TEST

Suite *checkpoint_folder_suite(void)
{
    Suite *suite = suite_create("checkpoint_folder");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_folder_is_made_once_and_then_found);
    tcase_add_test(tests, the_folder_of_another_user_is_refused);
    tcase_add_test(tests, no_link_is_followed);
    tcase_add_test(tests, the_reason_names_the_folder);
    suite_add_tcase(suite, tests);
    return suite;
}
