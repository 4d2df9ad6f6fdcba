/* SPDX-License-Identifier: Apache-2.0 */
/* The port of a gang whose store one rank hosts: gpushim listens on it before there is a rank, and that rank
 * alone gets the socket. */
#include "tests/unit/shim/shim_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

/* Ranks 3 and 4, of which 4 hosts the store on a port that is free; returns the port, assigned. */
static int assign_host(const char *script)
{
    int port = rig_free_ports(1);
    rig_fake_rank(&rig);
    rig_shell(&rig, script);
    rig_range(&rig, port, port);
    rig_field(&rig, "store_rank", "4");
    rig_field(&rig, "rank", "3");
    rig_field(&rig, "env", "RANK=3");
    rig_field(&rig, "rank", "4");
    rig_field(&rig, "env", "RANK=4");
    rig_assign(&rig);
    return port;
}

static void prepare(int port)
{
    char prepared[32];
    snprintf(prepared, sizeof prepared, "prepared %d", port);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, prepared);
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* With 1 another agent comes first, so that descriptor 3 of the shim is no longer the socket to its agent. */
START_TEST(a_connection_that_comes_before_the_start_is_accepted_by_the_rank_that_hosts)
{
    char answer[16] = "";
    int port = assign_host("test $RANK = 3 || exec $FAKE_RANK host");
    if (_i == 1) {
        rig_send(&rig, "dance");
        rig_logs_error(&rig, "dance"); /* so it has its folder, and listens there */
        rig_connect(&rig);
    }
    prepare(port);
    int early = connect_to(port);
    ck_assert_int_ge(early, 0);
    ck_assert_int_eq(send(early, "early", 5, 0), 5);
    ck_assert_int_eq(rig_bind_port(port, false), -1);
    ck_assert_int_eq(rig_bind_port(port, true), -1);
    rig_send(&rig, "start 127.0.0.1 %d -", port);
    rig_expect(&rig, "running ");
    ck_assert_int_eq(recv(early, answer, sizeof answer - 1, 0), 7);
    ck_assert_str_eq(answer, "welcome");
    ck_assert_int_eq(rig_bind_port(port, false), -1);
    close(early);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *out = rig_read(&rig, "4.stdout");
    ck_assert_str_eq(out, "early");
    int after = rig_bind_port(port, false);
    ck_assert_int_ge(after, 0);
    close(after);
    rig_forget(&rig);
}
END_TEST

START_TEST(only_the_rank_that_hosts_has_the_socket)
{
    int port = assign_host("exec ls /proc/self/fd");
    rig_send(&rig, "run 127.0.0.1 -");
    rig_expect(&rig, "running ");
    free(rig_finish(&rig));
    autofree char *other = rig_read(&rig, "3.stdout");
    autofree char *host = rig_read(&rig, "4.stdout");
    ck_assert_str_eq(other, "0\n1\n2\n3\n"); /* the last is the folder that ls reads */
    ck_assert_str_eq(host, "0\n1\n2\n3\n4\n");
    ck_assert_int_eq(connect_to(port), -1);
    rig_forget(&rig);
}
END_TEST

START_TEST(without_a_store_rank_the_port_does_not_listen)
{
    int port = rig_free_ports(1);
    rig_shell(&rig, "test ! -e /proc/$$/fd/3");
    rig_range(&rig, port, port);
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    prepare(port);
    ck_assert_int_eq(connect_to(port), -1);
    rig_send(&rig, "start 127.0.0.1 %d -", port);
    rig_expect(&rig, "running ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}
END_TEST

static void expect_declined(const char *text)
{
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect_exactly(&rig, text);
    rig_forget(&rig);
}

START_TEST(a_store_rank_without_a_port_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "store_rank", "0");
    expect_declined("declined launch file: no port_first for store_rank");
}
END_TEST

START_TEST(a_store_rank_that_is_not_of_this_node_is_declined)
{
    rig_shell(&rig, "true");
    rig_range(&rig, 20000, 20001);
    rig_field(&rig, "store_rank", "1");
    expect_declined("declined launch file: no rank that store_rank names");
}
END_TEST

void rig_suite_store(Suite *suite)
{
    TCase *tcase = tcase_create("store");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_connection_that_comes_before_the_start_is_accepted_by_the_rank_that_hosts, 0,
                        2);
    tcase_add_test(tcase, only_the_rank_that_hosts_has_the_socket);
    tcase_add_test(tcase, without_a_store_rank_the_port_does_not_listen);
    tcase_add_test(tcase, a_store_rank_without_a_port_is_declined);
    tcase_add_test(tcase, a_store_rank_that_is_not_of_this_node_is_declined);
    suite_add_tcase(suite, tcase);
}
