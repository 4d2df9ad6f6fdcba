/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and credentials of an object store, its XML, and its presigned URLs. That a real store takes
 * these is shown in tests/e2e/objects. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/objects/s3_address.h"
#include "daemon/objects/s3_link.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/s3/s3_answer.h"
#include "tests/unit/objects/objects_suites.h"

static struct s3_element element_of(const char *text)
{
    return (struct s3_element){text, strlen(text)};
}

START_TEST(an_address_has_defaults_for_what_it_leaves_out)
{
    struct s3_address address;
    struct err err;
    ck_assert(s3_address_parse("s3://bucket", &address, &err));
    ck_assert_str_eq(address.bucket, "bucket");
    ck_assert_str_eq(address.prefix, "");
    ck_assert_str_eq(address.region, "us-east-1");
    ck_assert_str_eq(address.endpoint, "https://s3.us-east-1.amazonaws.com");
    ck_assert_str_eq(address.host, "s3.us-east-1.amazonaws.com");
    s3_address_finish(&address);
}
END_TEST

START_TEST(an_address_says_prefix_endpoint_and_region)
{
    struct s3_address address;
    struct err err;
    ck_assert(s3_address_parse("s3://bucket/a/b/?region=eu-1&endpoint=https://store.example:9000/", &address,
                               &err));
    ck_assert_str_eq(address.prefix, "a/b/");
    ck_assert_str_eq(address.endpoint, "https://store.example:9000");
    ck_assert_str_eq(address.host, "store.example:9000");
    autofree char *path = s3_path(&address, "blobs/\xc3\xbc & 1");
    ck_assert_str_eq(path, "/bucket/a/b/blobs/%C3%BC%20%26%201");
    s3_address_finish(&address);
}
END_TEST

START_TEST(an_address_that_is_none_is_refused_with_the_option)
{
    static const char *const wrong[] = {
        "",
        "bucket",
        "s3://",
        "s3://ab",
        "s3://UPPER",
        "s3://bucket/a//b",
        "s3://bucket//a",
        "s3://bucket/a b",
        "s3://bucket?endpoint=",
        "s3://bucket?endpoint=ftp://x",
        "s3://bucket?endpoint=http://store.example",
        "s3://bucket?endpoint=https://store.example/path",
        "s3://bucket?endpoint=https://user:secret@store.example",
        "s3://bucket?region=a&region=b",
        "s3://bucket?region=A/B",
        "s3://bucket?key=secret",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct s3_address address;
        struct err err;
        ck_assert_msg(!s3_address_parse(wrong[i], &address, &err), "%s", wrong[i]);
        ck_assert_str_eq(err.field, "--object-store");
        s3_address_finish(&address);
    }
}
END_TEST

static char *write_credentials(const char *text, mode_t mode)
{
    char *path = xstrdup("/tmp/credentials.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

START_TEST(credentials_come_from_the_default_section_of_a_file)
{
    struct s3_credentials credentials;
    struct err err;
    autofree char *path =
        write_credentials("[other]\naws_access_key_id = X\naws_secret_access_key = Y\n[default]\n"
                          "aws_access_key_id = ID\naws_secret_access_key = a/b+c=\naws_session_token = T\n",
                          0600);
    ck_assert(s3_credentials_read(path, &credentials, &err));
    ck_assert_str_eq(credentials.key_id, "ID");
    ck_assert_str_eq(credentials.secret, "a/b+c=");
    ck_assert_str_eq(credentials.token, "T");
    s3_credentials_finish(&credentials);
    unlink(path);
}
END_TEST

START_TEST(credentials_may_be_long_and_before_any_section)
{
    struct s3_credentials credentials;
    char token[1200] = "";
    memset(token, 'x', sizeof token - 1);
    autofree char *text = xprintf("aws_session_token = %s\r\n  AWS_ACCESS_KEY_ID=ID\n#region = x\n"
                                  "aws_secret_access_key =\tS \nregion = eu-1\n[other]\nregion = eu-2",
                                  token);
    ck_assert(s3_credentials_parse(text, &credentials));
    ck_assert_str_eq(credentials.key_id, "ID");
    ck_assert_str_eq(credentials.secret, "S");
    ck_assert_str_eq(credentials.token, token);
    ck_assert_str_eq(credentials.region, "eu-1");
    s3_credentials_finish(&credentials);
}
END_TEST

START_TEST(credentials_that_are_not_whole_or_that_all_may_read_are_refused)
{
    static const struct {
        const char *text;
        mode_t mode;
    } wrong[] = {{"", 0600},
                 {"[default]\naws_access_key_id = ID\n", 0600},
                 {"[other]\naws_access_key_id = ID\naws_secret_access_key = S\n", 0600},
                 {"[default]\naws_access_key_id = ID\naws_secret_access_key = S\x01T\n", 0600},
                 {"[default]\naws_access_key_id = ID\naws_secret_access_key = S\n", 0604}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct s3_credentials credentials;
        struct err err;
        autofree char *path = write_credentials(wrong[i].text, wrong[i].mode);
        ck_assert_msg(!s3_credentials_read(path, &credentials, &err), "%s", wrong[i].text);
        ck_assert_str_eq(err.field, "--object-store-credentials");
        unlink(path);
    }
}
END_TEST

START_TEST(elements_are_found_one_after_the_other)
{
    struct s3_element rest = element_of("<L><Contents><Key>a&amp;b</Key><Size>7</Size></Contents>"
                                        "<Contents><Key>&#x26;&#39;</Key></Contents></L>");
    struct s3_element content;
    ck_assert(s3_answer_next(&rest, "Contents", &content));
    autofree char *first = s3_answer_text(content, "Key");
    ck_assert_str_eq(first, "a&b");
    ck_assert_int_eq(s3_answer_int(content, "Size"), 7);
    ck_assert(s3_answer_next(&rest, "Contents", &content));
    autofree char *second = s3_answer_text(content, "Key");
    ck_assert_str_eq(second, "&'");
    ck_assert_int_eq(s3_answer_int(content, "Size"), -1);
    ck_assert(!s3_answer_next(&rest, "Contents", &content));
}
END_TEST

START_TEST(what_is_no_text_is_none)
{
    static const char *const wrong[] = {"",
                                        "<Key>",
                                        "<Key>a",
                                        "<Key>a<b/></Key>",
                                        "<Key>&what;</Key>",
                                        "<Key>&amp</Key>",
                                        "<Key>&#0;</Key>",
                                        "<Key>&#300;</Key>",
                                        "<Key>&#12x;</Key>"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(s3_answer_text(element_of(wrong[i]), "Key") == NULL, "%s", wrong[i]);
    }
}
END_TEST

START_TEST(a_link_names_its_time_and_not_the_secret)
{
    struct s3_address address;
    struct err err;
    char id[] = "ID", secret[] = "very-secret", token[] = "to/ken";
    const struct s3_credentials credentials = {id, secret, token, NULL};
    ck_assert(s3_address_parse("s3://bucket?endpoint=https://store.example&region=eu-1", &address, &err));
    autofree char *link = s3_link(&address, &credentials, "blobs/ab", 1795953700000, 900);
    ck_assert(strstr(link, "https://store.example/bucket/blobs/ab?X-Amz-Algorithm=AWS4-HMAC-SHA256&") ==
              link);
    ck_assert(strstr(link, "X-Amz-Credential=ID%2F20261129%2Feu-1%2Fs3%2Faws4_request&") != NULL);
    ck_assert(strstr(link, "X-Amz-Date=20261129T") != NULL && strstr(link, "&X-Amz-Expires=900&") != NULL);
    ck_assert(strstr(link, "X-Amz-Security-Token=to%2Fken&") != NULL);
    ck_assert(strstr(link, "very-secret") == NULL);
    s3_address_finish(&address);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("objects");
    TCase *tests = tcase_create("s3");
    tcase_add_test(tests, an_address_has_defaults_for_what_it_leaves_out);
    tcase_add_test(tests, an_address_says_prefix_endpoint_and_region);
    tcase_add_test(tests, an_address_that_is_none_is_refused_with_the_option);
    tcase_add_test(tests, credentials_come_from_the_default_section_of_a_file);
    tcase_add_test(tests, credentials_may_be_long_and_before_any_section);
    tcase_add_test(tests, credentials_that_are_not_whole_or_that_all_may_read_are_refused);
    tcase_add_test(tests, elements_are_found_one_after_the_other);
    tcase_add_test(tests, what_is_no_text_is_none);
    tcase_add_test(tests, a_link_names_its_time_and_not_the_secret);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_add_suite(runner, s3_listing_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
