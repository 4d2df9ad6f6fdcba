/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/peers: who counts as one address, and when it is full. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "daemon/http/request/peers.h"
#include "tests/unit/http/http_suites.h"

#define LIMIT 3

static struct peers *peers;

static void set_up(void)
{
    peers = peers_create(LIMIT);
}

static void tear_down(void)
{
    peers_destroy(peers);
}

union name {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static const struct sockaddr *address(const char *text)
{
    static union name name;
    memset(&name, 0, sizeof name);
    if (inet_pton(AF_INET, text, &name.four.sin_addr) == 1) {
        name.four.sin_family = AF_INET;
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &name.six.sin6_addr), 1);
        name.six.sin6_family = AF_INET6;
    }
    return &name.any;
}

static void fill_up(const char *text, struct peer *taken[LIMIT])
{
    for (size_t i = 0; i < LIMIT; i++) {
        ck_assert(peers_allow(peers, address(text)));
        taken[i] = peers_take(peers, address(text));
    }
}

static void give_all(struct peer *taken[LIMIT])
{
    for (size_t i = 0; i < LIMIT; i++) {
        peers_give(peers, taken[i]);
    }
}

START_TEST(an_address_is_full_at_its_limit_and_open_again_below_it)
{
    struct peer *taken[LIMIT];
    fill_up("10.0.0.1", taken);
    ck_assert(!peers_allow(peers, address("10.0.0.1")));
    ck_assert(peers_allow(peers, address("10.0.0.2")));
    peers_give(peers, taken[0]);
    ck_assert(peers_allow(peers, address("10.0.0.1")));
    taken[0] = peers_take(peers, address("10.0.0.1"));
    ck_assert(!peers_allow(peers, address("10.0.0.1")));
    give_all(taken);
    ck_assert(peers_allow(peers, address("10.0.0.1")));
}
END_TEST

START_TEST(a_network_of_one_host_counts_as_one_and_so_does_a_mapped_address)
{
    struct peer *six[LIMIT], *four[LIMIT];
    fill_up("2001:db8:1:2::1", six);
    ck_assert(!peers_allow(peers, address("2001:db8:1:2:ffff::9")));
    ck_assert(peers_allow(peers, address("2001:db8:1:3::1")));
    fill_up("10.9.8.7", four);
    ck_assert(!peers_allow(peers, address("::ffff:10.9.8.7")));
    ck_assert(peers_allow(peers, address("::ffff:10.9.8.6")));
    give_all(six);
    give_all(four);
}
END_TEST

START_TEST(the_loopback_has_no_limit)
{
    static const char *const loopback[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"};
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++) {
        struct peer *taken[LIMIT];
        fill_up(loopback[i], taken);
        ck_assert(peers_allow(peers, address(loopback[i])));
        give_all(taken);
    }
}
END_TEST

START_TEST(an_address_is_named_as_it_is_counted)
{
    static const struct {
        const char *address, *name;
    } cases[] = {{"10.0.0.1", "10.0.0.1"},
                 {"::ffff:10.0.0.1", "10.0.0.1"},
                 {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
                 {"127.0.0.9", "loopback"},
                 {"::1", "loopback"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[INET6_ADDRSTRLEN];
        peers_name(address(cases[i].address), name);
        ck_assert_str_eq(name, cases[i].name);
    }
}
END_TEST

Suite *peers_suite(void)
{
    Suite *suite = suite_create("peers");
    TCase *cases = tcase_create("peers");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, an_address_is_full_at_its_limit_and_open_again_below_it);
    tcase_add_test(cases, a_network_of_one_host_counts_as_one_and_so_does_a_mapped_address);
    tcase_add_test(cases, the_loopback_has_no_limit);
    tcase_add_test(cases, an_address_is_named_as_it_is_counted);
    suite_add_tcase(suite, cases);
    return suite;
}
