/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/notify: which addresses and URLs webhooks may have, and what is shown of a URL. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/http/networks.h"
#include "daemon/notify/target.h"
#include "proto/base/cleanup.h"
#include "tests/unit/http/http_suites.h"

static bool allowed(const char *list, const char *text)
{
    struct networks networks;
    struct err err;
    struct sockaddr_storage address = {0};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    ck_assert(networks_parse("--webhook-networks", list, &networks, &err));
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        memcpy(&address, &four, sizeof four);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
        memcpy(&address, &six, sizeof six);
    }
    return networks_allow(&networks, (struct sockaddr *)&address);
}

START_TEST(public_addresses_are_allowed)
{
    static const char *const public[] = {
        "1.1.1.1",         "9.255.255.255",  "11.0.0.0",         "100.63.255.255", "100.128.0.0",
        "126.1.2.3",       "172.15.255.255", "172.32.0.0",       "192.167.0.1",    "223.255.1.1",
        "2606:4700::1111", "2a00::1",        "64:ff9b::808:808", "2002:808:808::1"};
    for (size_t i = 0; i < sizeof public / sizeof *public; i++) {
        ck_assert_msg(allowed(NULL, public[i]), "%s", public[i]);
    }
}
END_TEST

START_TEST(other_addresses_are_refused_also_where_ipv6_wraps_them)
{
    static const char *const other[] = {"0.0.0.0",
                                        "10.0.0.1",
                                        "100.64.0.1",
                                        "127.0.0.1",
                                        "127.255.255.255",
                                        "169.254.169.254",
                                        "172.16.0.1",
                                        "172.31.255.255",
                                        "192.168.1.1",
                                        "192.0.2.1",
                                        "198.18.0.1",
                                        "224.0.0.1",
                                        "240.0.0.1",
                                        "255.255.255.255",
                                        "::",
                                        "::1",
                                        "fe80::1",
                                        "fc00::1",
                                        "fd00::1",
                                        "ff02::1",
                                        "fec0::1",
                                        "::ffff:127.0.0.1",
                                        "::ffff:10.0.0.1",
                                        "::127.0.0.1",
                                        "64:ff9b::7f00:1",
                                        "64:ff9b::a9fe:a9fe",
                                        "2002:7f00:1::1",
                                        "2002:c0a8:101::1",
                                        "2001:db8::1",
                                        "2001::1",
                                        "64:ff9b:1::1",
                                        "100::1"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ck_assert_msg(!allowed(NULL, other[i]), "%s", other[i]);
    }
}
END_TEST

START_TEST(networks_of_the_setting_are_allowed_to_the_bit)
{
    const char *list = "10.20.0.0/14, fd00:20::/30 ,127.0.0.1";
    ck_assert(allowed(list, "10.20.0.0") && allowed(list, "10.23.255.255"));
    ck_assert(!allowed(list, "10.19.255.255") && !allowed(list, "10.24.0.0"));
    ck_assert(allowed(list, "fd00:23:ffff::1") && !allowed(list, "fd00:24::"));
    ck_assert(allowed(list, "127.0.0.1") && !allowed(list, "127.0.0.2"));
    ck_assert(allowed(list, "::ffff:127.0.0.1"));
    ck_assert(allowed("0.0.0.0/0", "10.0.0.1") && !allowed("0.0.0.0/0", "::1"));
    ck_assert(allowed("::/0", "::1") && allowed("::/0", "127.0.0.1"));
}
END_TEST

START_TEST(a_wrong_network_is_named)
{
    static const char *const wrong[] = {"10.0.0.0/33", "x", "10.0.0.0/", "1.2.3/8", "::/129", "10.0.0.0/-1"};
    struct networks networks;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err;
        ck_assert_msg(!networks_parse("--webhook-networks", wrong[i], &networks, &err), "%s", wrong[i]);
        ck_assert_int_eq(err.code, ERR_USAGE);
    }
}
END_TEST

static bool is_url(const char *url)
{
    static const struct networks none = {0};
    struct err err;
    return target_check(url, &none, &err);
}

START_TEST(urls_are_of_the_web_and_name_no_private_address)
{
    ck_assert(is_url("https://example.com/a?b=c") && is_url("http://1.1.1.1:8080/") &&
              is_url("https://[2a00::1]"));
    ck_assert(!is_url("example.com") && !is_url("") && !is_url("gopher://example.com/"));
    ck_assert(!is_url("http://127.0.0.1/") && !is_url("http://2130706433/") && !is_url("http://0x7f.1/"));
    ck_assert(!is_url("http://[::1]:80/") && !is_url("http://user@10.0.0.1/"));
    ck_assert(!is_url("https:/a:b@example.com/") &&
              !is_url("https:///a:b@example.com/")); /* curl takes them */
}
END_TEST

START_TEST(a_password_is_not_shown)
{
    static const char *const urls[][2] = {
        {"https://a:b@example.com/x@y", "https://***@example.com/x@y"},
        {"https://example.com/?mail=a@b", "https://example.com/?mail=a@b"},
        {"https://a@b@example.com", "https://***@example.com"},
        {"https://example.com", "https://example.com"},
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        autofree char *shown = target_mask(urls[i][0]);
        ck_assert_str_eq(shown, urls[i][1]);
    }
}
END_TEST

Suite *networks_suite(void)
{
    Suite *suite = suite_create("networks");
    TCase *tests = tcase_create("networks");
    tcase_add_test(tests, public_addresses_are_allowed);
    tcase_add_test(tests, other_addresses_are_refused_also_where_ipv6_wraps_them);
    tcase_add_test(tests, networks_of_the_setting_are_allowed_to_the_bit);
    tcase_add_test(tests, a_wrong_network_is_named);
    tcase_add_test(tests, urls_are_of_the_web_and_name_no_private_address);
    tcase_add_test(tests, a_password_is_not_shown);
    suite_add_tcase(suite, tests);
    return suite;
}
