/* SPDX-License-Identifier: Apache-2.0 */
/* Which folder is the run folder of a boot, and which attempts it remembers. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/node/run_folder.h"
#include "agent/attempt/seen.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_suites.h"

#define BOOT       "11111111-2222-3333-4444-555555555555"
#define OTHER_BOOT "66666666-2222-3333-4444-555555555555"
#define FIRST      (UINT64_C(5) << 32 | 1) /* of the fifth incarnation */

static char folder[64];

static void set_up(void)
{
    strcpy(folder, "/tmp/gpuctl-run-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    struct err err;
    ck_assert(file_remove_tree(folder, &err));
}

static char *below(const char *name)
{
    return xprintf("%s/%s", folder, name);
}

static bool is_there(const char *name)
{
    autofree char *path = below(name);
    return access(path, F_OK) == 0;
}

/* Starts an agent whose settings name a folder; it uses the expected one. */
static void expect_run(const char *boot_id, const char *settings, const char *expected)
{
    struct err err = {0};
    autofree char *run = below(settings), *path = below(expected);
    ck_assert_msg(run_folder_open(folder, boot_id, &run, &err), "%s", err.text);
    ck_assert_str_eq(run, path);
    ck_assert(is_there(expected));
}

/* M2: an agent that cron or su starts has another $XDG_RUNTIME_DIR. */
START_TEST(agents_of_one_boot_use_one_folder_whatever_their_settings_say)
{
    expect_run(BOOT, "runtime", "runtime");
    expect_run(BOOT, "elsewhere", "runtime");
    ck_assert(!is_there("elsewhere"));
}
END_TEST

START_TEST(after_a_reboot_the_settings_decide)
{
    expect_run(BOOT, "runtime", "runtime");
    expect_run(OTHER_BOOT, "elsewhere", "elsewhere");
    expect_run(OTHER_BOOT, "runtime", "elsewhere");
}
END_TEST

START_TEST(a_folder_that_was_removed_is_not_made_again)
{
    expect_run(BOOT, "runtime", "runtime");
    struct err err;
    autofree char *path = below("runtime");
    ck_assert(file_remove_tree(path, &err));
    expect_run(BOOT, "elsewhere", "elsewhere");
}
END_TEST

START_TEST(what_an_earlier_boot_left_in_the_folder_goes)
{
    struct err err;
    autofree char *attempt = below("run/4294967297"), *seen = below("run/" SEEN_FILE);
    expect_run(BOOT, "run", "run");
    ck_assert(file_make_directories(attempt, 0700, &err));
    ck_assert(file_replace(seen, "4294967298\n", 11, 0600, &err));
    expect_run(BOOT, "run", "run");
    ck_assert(is_there("run/4294967297") && is_there("run/" SEEN_FILE));
    expect_run(OTHER_BOOT, "run", "run");
    ck_assert(!is_there("run/4294967297") && !is_there("run/" SEEN_FILE));
}
END_TEST

/* --- attempts that are over ----------------------------------------------------------------------------- */

static struct seen *open_seen(void)
{
    struct err err = {0};
    struct seen *seen = seen_open(folder, &err);
    ck_assert_msg(seen != NULL, "%s", err.text);
    return seen;
}

START_TEST(an_attempt_that_is_over_is_known_to_the_next_agent)
{
    struct seen *seen = open_seen();
    ck_assert(seen_add(seen, FIRST + 7));
    ck_assert(seen_add(seen, FIRST + 3));
    ck_assert(seen_add(seen, FIRST + 7));
    seen_close(seen);
    seen = open_seen();
    ck_assert(seen_has(seen, FIRST + 3) && seen_has(seen, FIRST + 7));
    ck_assert(!seen_has(seen, FIRST) && !seen_has(seen, FIRST + 5) && !seen_has(seen, FIRST + 8));
    seen_close(seen);
}
END_TEST

/* M5: what is remembered of attempts does not grow without end, and none is claimed twice for that. */
START_TEST(of_very_many_attempts_none_is_forgotten_and_little_is_kept)
{
    struct seen *seen = open_seen();
    autofree char *path = below(SEEN_FILE);
    struct stat status;
    const uint64_t count = 3 * LIMIT_SEEN;
    bool well = true;
    for (uint64_t i = 0; i < count; i++) {
        well = seen_add(seen, FIRST + 2 * i) && well;
    }
    for (int agent = 0; agent < 2; agent++) {
        for (uint64_t i = 0; i < count; i++) {
            well = seen_has(seen, FIRST + 2 * i) && well;
        }
        ck_assert(well);
        ck_assert(!seen_has(seen, FIRST + 2 * count - 1));
        ck_assert(!seen_has(seen, FIRST + 2 * count));
        ck_assert(!seen_has(seen, FIRST + (UINT64_C(1) << 32))); /* of the next incarnation */
        ck_assert(!seen_has(seen, FIRST - (UINT64_C(1) << 32))); /* of a controller that began anew */
        seen_close(seen);
        seen = open_seen();
    }
    seen_close(seen);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_lt(status.st_size, (int64_t)LIMIT_SEEN * 24);
}
END_TEST

/* The disk takes a part of the line, then it has room again. */
START_TEST(an_attempt_that_could_not_be_written_down_is_not_taken_for_remembered)
{
    struct seen *seen = open_seen();
    ck_assert(seen_add(seen, FIRST));
    const rlim_t line = 12; /* bytes */
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit full = {.rlim_cur = line + 3, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
    bool added = seen_add(seen, FIRST + 1);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert(!added && !seen_has(seen, FIRST + 1));
    ck_assert(seen_add(seen, FIRST + 2));
    seen_close(seen);
    seen = open_seen();
    ck_assert(seen_has(seen, FIRST) && !seen_has(seen, FIRST + 1) && seen_has(seen, FIRST + 2));
    seen_close(seen);
}
END_TEST

Suite *run_folder_suite(void)
{
    Suite *suite = suite_create("agent-run-folder");
    TCase *cases = tcase_create("run-folder");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, agents_of_one_boot_use_one_folder_whatever_their_settings_say);
    tcase_add_test(cases, after_a_reboot_the_settings_decide);
    tcase_add_test(cases, a_folder_that_was_removed_is_not_made_again);
    tcase_add_test(cases, what_an_earlier_boot_left_in_the_folder_goes);
    tcase_add_test(cases, an_attempt_that_is_over_is_known_to_the_next_agent);
    tcase_add_test(cases, of_very_many_attempts_none_is_forgotten_and_little_is_kept);
    tcase_add_test(cases, an_attempt_that_could_not_be_written_down_is_not_taken_for_remembered);
    suite_add_tcase(suite, cases);
    return suite;
}
