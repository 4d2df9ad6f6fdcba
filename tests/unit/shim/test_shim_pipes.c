/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes of a rank where descriptors run out. agent/shim/shim_output.c is linked into the test; what it
 * needs of the rest of the shim, and what is not used here, is below. */
#include "tests/unit/shim/shim_rig.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/shim/shim.h"

bool why_set(struct why *why, const char *format, ...)
{
    return false;
}

void shim_log_error(const char *format, ...)
{
}

void shim_note(struct shim *shim, enum moment moment)
{
}

void agent_socket_output_grown(struct shim *shim)
{
}

bool shim_watch(struct shim *shim, int fd, enum watch watch, size_t index)
{
    return true;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* M13: a rank starts from a warm worker, and if its pipes cannot be made it starts without: a number of a
 * closed descriptor would be that of whatever was opened since. */
START_TEST(where_one_pipe_cannot_be_made_there_is_none)
{
    struct rlimit files;
    struct why why;
    struct rank rank = {.streams = {{.pipe = -1}, {.pipe = -1}}};
    struct shim shim = {.ranks = &rank};
    int first = dup(0), ends[2] = {-1, -1};
    close(first);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit before = files;
    for (int more = 0; more <= 4; more++) {
        files.rlim_cur = (rlim_t)(first + more);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
        ck_assert_int_eq(output_pipes(&shim, 0, ends, &why), more == 4);
        ck_assert_int_eq(is_open(ends[0]), more == 4);
        ck_assert_int_eq(ends[0] >= 0, more == 4);
        ck_assert_int_eq(rank.streams[0].pipe >= 0, more == 4);
        ck_assert_int_eq(is_open(first), more == 4);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* what looks for leaks at the end needs some */
}
END_TEST

void rig_suite_pipes(Suite *suite)
{
    TCase *cases = tcase_create("pipes");
    tcase_add_test(cases, where_one_pipe_cannot_be_made_there_is_none);
    suite_add_tcase(suite, cases);
}
