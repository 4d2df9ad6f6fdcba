/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/s3/s3_listing: pages of objects, their texts, and pages that are none. */
#include <string.h>

#include "proto/s3/s3_listing.h"
#include "tests/unit/objects/objects_suites.h"

#define MOST 5

#define OBJECT(key)   "<Contents><Key>" key "</Key><ETag>&quot;t&quot;</ETag><Size>7</Size></Contents>"
#define PAGE(content) "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">" content "</ListBucketResult>"

static struct s3_listing listing;
static struct err err;

static bool read_page(const char *xml)
{
    return s3_listing_read((struct s3_element){xml, strlen(xml)}, MOST, &listing, &err);
}

static void setup(void)
{
    listing = (struct s3_listing){0};
    err = (struct err){0};
}

static void teardown(void)
{
    s3_listing_finish(&listing);
}

START_TEST(pages_add_up_until_the_last_one)
{
    ck_assert(read_page(PAGE(
        "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>" OBJECT("one")
            OBJECT("two"))));
    ck_assert_str_eq(listing.next, "a&b");
    ck_assert(read_page(PAGE("<IsTruncated>false</IsTruncated>" OBJECT("three"))));
    ck_assert_ptr_null(listing.next);
    ck_assert_uint_eq(listing.count, 3);
    ck_assert_str_eq(listing.objects[2].key, "three");
    ck_assert_str_eq(listing.objects[2].tag, "\"t\"");
    ck_assert_int_eq(listing.objects[2].size, 7);
}
END_TEST

START_TEST(keys_are_escaped_where_the_server_says_so)
{
    ck_assert(read_page(PAGE(OBJECT("a+%41&lt;"))));
    ck_assert(read_page(PAGE("<EncodingType>url</EncodingType>" OBJECT("a+%41%2B%zz"))));
    ck_assert_str_eq(listing.objects[0].key, "a+%41<");
    ck_assert_str_eq(listing.objects[1].key, "a A+%zz");
}
END_TEST

START_TEST(a_page_may_be_empty)
{
    ck_assert(read_page(PAGE("")));
    ck_assert(listing.count == 0 && listing.next == NULL);
}
END_TEST

START_TEST(what_is_no_page_is_refused)
{
    static const char *const wrong[] = {
        "",
        "<html>hello</html>",
        PAGE("<Contents><Key>a</Key>"),
        PAGE("<Contents><Key>a</Key><ETag>t</ETag></Contents>"),
        PAGE("<Contents><ETag>t</ETag><Size>1</Size></Contents>"),
        PAGE("<Contents><Key>a&unknown;</Key><Size>1</Size></Contents>"),
        PAGE("<Contents><Key>a</Key><ETag>t</ETag><Size>-1</Size></Contents>"),
        PAGE("<Contents><Key>a</Key></Contents><ETag>t</ETag><Size>1</Size>"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_page(wrong[i]), "%s", wrong[i]);
        ck_assert(err.code == ERR_MALFORMED && err.text[0] != '\0');
    }
}
END_TEST

START_TEST(times_and_tags_may_be_missing)
{
    ck_assert(read_page(PAGE("<Contents><Key>a</Key><LastModified>2026-11-29T12:00:00.000Z</LastModified>"
                             "<Size>1</Size></Contents>" OBJECT("b"))));
    ck_assert_int_eq(listing.objects[0].modified_ms, 1795953600000);
    ck_assert_ptr_null(listing.objects[0].tag);
    ck_assert_int_eq(listing.objects[1].modified_ms, -1);
}
END_TEST

START_TEST(a_list_has_no_more_than_it_may)
{
    ck_assert(read_page(PAGE(OBJECT("1") OBJECT("2") OBJECT("3"))));
    ck_assert(!read_page(PAGE(OBJECT("4") OBJECT("5") OBJECT("6"))));
    ck_assert_str_eq(err.text, "there are more than 5 files");
    ck_assert_uint_eq(listing.count, MOST);
}
END_TEST

Suite *s3_listing_suite(void)
{
    Suite *suite = suite_create("s3_listing");
    TCase *tcase = tcase_create("s3_listing");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, pages_add_up_until_the_last_one);
    tcase_add_test(tcase, keys_are_escaped_where_the_server_says_so);
    tcase_add_test(tcase, a_page_may_be_empty);
    tcase_add_test(tcase, what_is_no_page_is_refused);
    tcase_add_test(tcase, times_and_tags_may_be_missing);
    tcase_add_test(tcase, a_list_has_no_more_than_it_may);
    suite_add_tcase(suite, tcase);
    return suite;
}
