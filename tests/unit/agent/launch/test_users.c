/* SPDX-License-Identifier: Apache-2.0 */
/* Which users of the host owners of jobs get. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/launch/users.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_suites.h"

#define FIRST       1900000000
#define FIRST_GIVEN (FIRST + USERS_OF_BUILDS)

static char folder[64];
static struct users *users;

static void set_up(void)
{
    struct err err = {0};
    strcpy(folder, "/tmp/gpuctl-users-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    users = users_open(folder, FIRST, FIRST_GIVEN + 2, &err);
    ck_assert_msg(users != NULL, "%s", err.text);
}

static void tear_down(void)
{
    struct err err;
    users_close(users);
    ck_assert(file_remove_tree(folder, &err));
}

static void open_again(void)
{
    struct err err = {0};
    users_close(users);
    users = users_open(folder, FIRST, FIRST_GIVEN + 2, &err);
    ck_assert_msg(users != NULL, "%s", err.text);
}

static uid_t uid_of(const char *owner)
{
    struct user user;
    struct err err = {0};
    struct stat status;
    ck_assert_msg(users_find(users, owner, &user, &err), "%s", err.text);
    ck_assert_int_eq(user.gid, user.uid);
    ck_assert_uint_eq(user.group_count, 0);
    ck_assert_str_eq(user.name, owner);
    ck_assert_int_eq(stat(user.home, &status), 0);
    ck_assert_int_eq(status.st_uid, user.uid);
    ck_assert_int_eq(status.st_mode, S_IFDIR | 0700);
    uid_t uid = user.uid;
    user_finish(&user);
    return uid;
}

START_TEST(owners_get_numbers_of_their_own_that_stay)
{
    ck_assert_int_eq(uid_of("ann-of-tests"), FIRST_GIVEN);
    ck_assert_int_eq(uid_of("bob-of-tests"), FIRST_GIVEN + 1);
    ck_assert_int_eq(uid_of("ann-of-tests"), FIRST_GIVEN);
    open_again();
    ck_assert_int_eq(uid_of("bob-of-tests"), FIRST_GIVEN + 1);
    ck_assert_int_eq(uid_of("service:carl-of-tests"), FIRST_GIVEN + 2); /* a service account */
    open_again();
    ck_assert_int_eq(uid_of("service:carl-of-tests"), FIRST_GIVEN + 2);
}
END_TEST

START_TEST(an_owner_without_a_number_is_refused_and_takes_none_from_others)
{
    struct user user;
    struct err err;
    uid_of("ann-of-tests");
    uid_of("bob-of-tests");
    uid_of("carl-of-tests");
    ck_assert(!users_find(users, "dora-of-tests", &user, &err));
    ck_assert_str_eq(err.text, "no number is left for a job of dora-of-tests");
    ck_assert_int_eq(uid_of("carl-of-tests"), FIRST_GIVEN + 2);
}
END_TEST

START_TEST(a_number_that_cannot_be_recorded_is_not_used)
{
    struct user user;
    struct err err;
    autofree char *record = xprintf("%s/users", folder);
    ck_assert_int_eq(mkdir(record, 0700), 0);
    autofree char *inside = xprintf("%s/inside", record);
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    ck_assert(!users_find(users, "ann-of-tests", &user, &err));
    ck_assert_int_eq(rmdir(inside) | rmdir(record), 0);
    ck_assert_int_eq(uid_of("bob-of-tests"), FIRST_GIVEN);
}
END_TEST

START_TEST(accounts_that_are_no_persons_do_not_count)
{
    static const char *const names[] = {"root", "daemon", "nobody"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_ptr_nonnull(getpwnam(names[i]));
        ck_assert_int_eq(uid_of(names[i]), FIRST_GIVEN + (uid_t)i);
    }
}
END_TEST

START_TEST(a_record_that_is_damaged_stops_the_agent)
{
    static const char *const texts[] = {"1900000016\n", "x ann\n", "0 ann\n", "1900000016 ../ann\n"};
    autofree char *record = xprintf("%s/users", folder);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct err err = {0};
        ck_assert(file_replace(record, texts[i], strlen(texts[i]), 0600, &err));
        ck_assert_ptr_null(users_open(folder, FIRST, FIRST_GIVEN + 2, &err));
        ck_assert_ptr_nonnull(strstr(err.text, "is no number and no owner"));
    }
}
END_TEST

START_TEST(files_are_made_as_the_user_and_then_as_root_again)
{
    const struct user user = {.uid = FIRST, .gid = FIRST + 1};
    struct stat status;
    autofree char *theirs = xprintf("%s/open/theirs", folder), *place = xprintf("%s/open", folder);
    autofree char *own = xprintf("%s/own", folder);
    ck_assert_int_eq(chmod(folder, 0711) | mkdir(place, 0777) | chmod(place, 0777), 0);
    user_begin(&user);
    int made = mkdir(theirs, 0700), refused = mkdir(own, 0700);
    user_end(&user);
    ck_assert_int_eq(made, 0);
    ck_assert_int_eq(refused, -1);
    ck_assert_int_eq(stat(theirs, &status), 0);
    ck_assert_int_eq(status.st_uid, FIRST);
    ck_assert_int_eq(status.st_gid, FIRST + 1);
    ck_assert_int_eq(mkdir(own, 0700), 0);
    ck_assert_int_eq(stat(own, &status), 0);
    ck_assert_int_eq(status.st_uid, 0);
}
END_TEST

/* Only root can give homes away. */
Suite *users_suite(void)
{
    Suite *suite = suite_create("users");
    TCase *numbers = tcase_create("numbers");
    tcase_add_checked_fixture(numbers, set_up, tear_down);
    if (geteuid() == 0) {
        tcase_add_test(numbers, owners_get_numbers_of_their_own_that_stay);
        tcase_add_test(numbers, an_owner_without_a_number_is_refused_and_takes_none_from_others);
        tcase_add_test(numbers, a_number_that_cannot_be_recorded_is_not_used);
        tcase_add_test(numbers, accounts_that_are_no_persons_do_not_count);
        tcase_add_test(numbers, files_are_made_as_the_user_and_then_as_root_again);
    }
    tcase_add_test(numbers, a_record_that_is_damaged_stops_the_agent);
    suite_add_tcase(suite, numbers);
    return suite;
}
