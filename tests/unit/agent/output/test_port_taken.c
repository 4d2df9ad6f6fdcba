/* SPDX-License-Identifier: Apache-2.0 */
/* When a failure of rank 0 is that of a taken MASTER_PORT. */
#include <stdlib.h>

#include "agent/output/port_taken.h"
#include "tests/unit/agent/agent_suites.h"

#define PLAIN "OSError: [Errno 98] Address already in use\n"

/* M11: the port is 23456; a web server of the job has one of its own. */
static const struct {
    const char *said;
    bool heard, taken;
} cases[] = {
    /* torch 2.4 and later, then its older store */
    {"torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
     "address. "
     "port: 23456, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n",
     false, true},
    {"RuntimeError: The server socket has failed to bind to [::]:23456 (errno: 98 - Address already in "
     "use).\n",
     false, true},
    {"bind 0.0.0.0:23456: Address already in use", false, true},
    {PLAIN, true, true},
    {PLAIN, false, false},
    {"ERROR: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8080): address already in "
     "use\n",
     false, false},
    {"connecting to 23456\n" PLAIN "and 23456 again\n", false, false},
    {"bind :123456: Address already in use", false, false},
    {"bind :234567: Address already in use", false, false},
    {PLAIN "bind :23456: Address already in use", false, true},
    {"", true, false},
    {"ValueError: 23456\n", true, false},
};

START_TEST(only_words_about_master_port_are_about_master_port)
{
    ck_assert_msg(port_taken(cases[_i].said, 23456, cases[_i].heard) == cases[_i].taken, "%s",
                  cases[_i].said);
}
END_TEST

START_TEST(without_a_port_only_what_was_seen_counts)
{
    ck_assert(!port_taken("bind :0: Address already in use", 0, false));
    ck_assert(port_taken(PLAIN, 0, true));
}
END_TEST

Suite *port_taken_suite(void)
{
    Suite *suite = suite_create("port-taken");
    TCase *tests = tcase_create("port-taken");
    tcase_add_loop_test(tests, only_words_about_master_port_are_about_master_port, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, without_a_port_only_what_was_seen_counts);
    suite_add_tcase(suite, tests);
    return suite;
}
