/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/head: heads laid out as the library leaves them, straight and not. */
#include <string.h>

#include "daemon/http/request/head.h"
#include "tests/unit/http/http_suites.h"

/* A head in the library's buffer: its separators are NULs already. */
static char buffer[256];
static size_t laid; /* of it: the length of the head */
static struct err err;

/* The first place in the buffer that begins so. */
static char *find(const char *start)
{
    char *found = memmem(buffer, sizeof buffer, start, strlen(start));
    ck_assert_ptr_nonnull(found);
    return found;
}

static bool judge(size_t length, size_t uri_length, const char *const names[])
{
    struct head head;
    head_begin(&head, buffer, find("/x"), uri_length, find("HTTP"));
    for (size_t i = 0; names[i] != NULL; i++) {
        char *name = find(names[i]);
        char *value = name + strlen(name) + 1;
        head_header(&head, name, value + strspn(value, " \t"));
    }
    return head_end(&head, length, &err);
}

#define LAY(text)                                                                                            \
    (memset(buffer, 'z', sizeof buffer), memcpy(buffer, text, sizeof text - 1), laid = sizeof text - 1)
#define JUDGE(uri_length, ...) judge(laid, uri_length, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(a_straight_head_passes)
{
    LAY("GET\0/x?a=b\0HTTP/1.1\0\0Host\0 here\0\0Accept\0x\0\0Empty\0\0\0Last\0\t v\0\0\0\0");
    ck_assert(JUDGE(6, "Host", "Accept", "Empty", "Last"));
}
END_TEST

START_TEST(a_query_that_the_library_cut_off_still_counts)
{
    LAY("GET\0/x\0a=b\0HTTP/1.1\0\0Host\0 here\0\0\0\0");
    ck_assert(JUDGE(6, "Host"));
    ck_assert(!JUDGE(2, "Host")); /* then the rest stood behind a NUL that was sent */
    ck_assert_int_eq(err.code, ERR_MALFORMED);
}
END_TEST

START_TEST(spaces_that_do_not_belong_into_the_first_line_are_refused)
{
    LAY("GET\0 /x\0HTTP/1.1\0\0Host\0 here\0\0\0\0");
    ck_assert(!JUDGE(2, "Host"));
    LAY("GET\0/x\0 HTTP/1.1\0\0Host\0 here\0\0\0\0");
    ck_assert(!JUDGE(2, "Host"));
}
END_TEST

START_TEST(a_nul_that_was_sent_is_refused)
{
    LAY("GET\0/x\0HTTP/1.1\0\0Host\0 here\0evil\0\0Accept\0x\0\0\0\0");
    ck_assert(!JUDGE(2, "Host", "Accept"));
    LAY("GET\0/x\0HTTP/1.1\0\0Accept\0x\0\0Host\0 here\0evil\0\0\0\0"); /* in the last one, too */
    ck_assert(!JUDGE(2, "Accept", "Host"));
    LAY("GET\0/x\0HTTP/1.1\0\0Host\0 here\0\0\0\0\0"); /* where it looks like the end of the line */
    ck_assert(!JUDGE(2, "Host"));
    LAY("GET\0/x\0HTTP/1.1\0junk\0\0Host\0 here\0\0\0\0");
    ck_assert(!JUDGE(2, "Host"));
}
END_TEST

START_TEST(a_lone_lf_is_refused)
{
    LAY("GET\0/x\0HTTP/1.1\0Host\0 here\0\0\0\0");
    ck_assert(!JUDGE(2, "Host"));
    LAY("GET\0/x\0HTTP/1.1\0\0Host\0 here\0Accept\0x\0\0\0\0");
    ck_assert(!JUDGE(2, "Host", "Accept"));
    LAY("GET\0/x\0HTTP/1.1\0\0Host\0 here\0\0"); /* at the end of the head */
    ck_assert(!JUDGE(2, "Host"));
}
END_TEST

START_TEST(a_header_that_was_left_out_or_moved_is_refused)
{
    LAY("GET\0/x\0HTTP/1.1\0\0Host\0 here\0\0\0 gone\0\0Accept\0x\0\0\0\0");
    ck_assert(!JUDGE(2, "Host", "Accept"));
    LAY("GET\0/x\0HTTP/1.1\0\0Content-Leng\0 5\0\0th\0\0\0\0Content-Length\0");
    struct head head;
    head_begin(&head, buffer, find("/x"), 2, find("HTTP"));
    head_header(&head, find("Content-Length"), find("5"));
    ck_assert(!head_end(&head, laid, &err));
}
END_TEST

START_TEST(a_range_is_what_its_digits_say)
{
    static const struct {
        const char *range;
        int64_t size, first, last; /* first -1: it is ignored */
    } cases[] = {
        {"bytes=2-4", 10, 2, 4},
        {"bytes=2-99", 10, 2, 9},
        {"bytes=7-", 10, 7, 9},
        {"bytes=12-", 10, 12, 9}, /* behind the end */
        {"bytes=-3", 10, 7, 9},
        {"bytes=-99", 10, 0, 9},
        {"bytes=-0", 10, 10, 9},
        {"bytes=99999999999999999999-", 10, INT64_MAX, 9},
        {"bytes=-99999999999999999999", 10, 0, 9},
        {"bytes=--3", 10, -1, 0},
        {"bytes=--9223372036854775808", 10, -1, 0},
        {"bytes=+2-4", 10, -1, 0},
        {"bytes=4-2", 10, -1, 0},
        {"bytes=2-4,6-7", 10, -1, 0},
        {"bytes=-", 10, -1, 0},
        {"bytes=", 10, -1, 0},
        {"lines=2-4", 10, -1, 0},
        {"", 10, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t first = -1, last = -1;
        bool taken = head_range(cases[i].range, cases[i].size, &first, &last);
        ck_assert_msg(taken == (cases[i].first >= 0), "%s", cases[i].range);
        ck_assert_msg(!taken || (first == cases[i].first && last == cases[i].last), "%s: %lld to %lld",
                      cases[i].range, (long long)first, (long long)last);
    }
}
END_TEST

Suite *head_suite(void)
{
    Suite *suite = suite_create("head");
    TCase *cases = tcase_create("head");
    tcase_add_test(cases, a_straight_head_passes);
    tcase_add_test(cases, a_query_that_the_library_cut_off_still_counts);
    tcase_add_test(cases, spaces_that_do_not_belong_into_the_first_line_are_refused);
    tcase_add_test(cases, a_nul_that_was_sent_is_refused);
    tcase_add_test(cases, a_lone_lf_is_refused);
    tcase_add_test(cases, a_header_that_was_left_out_or_moved_is_refused);
    tcase_add_test(cases, a_range_is_what_its_digits_say);
    suite_add_tcase(suite, cases);
    return suite;
}
