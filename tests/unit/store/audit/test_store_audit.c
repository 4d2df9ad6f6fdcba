/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of the audit: each row continues the one before, also over a new start, and what retention takes
 * is always the beginning. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "proto/wire/audit.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct change act(const char *owner, int64_t at_ms)
{
    return (struct change){.kind = CHANGE_AUDIT_INSERT,
                           .audit = {.at_ms = at_ms,
                                     .owner = owner,
                                     .role = ROLE_ADMIN,
                                     .token = "abcdefgh",
                                     .address = "127.0.0.1",
                                     .method = "POST",
                                     .path = "/v1/tokens",
                                     .status = 201}};
}

static void compute(const uint8_t before[HASH_BYTES], const struct audit_row *row, uint8_t out[HASH_BYTES])
{
    const struct audit_view view = store_audit_view(row);
    audit_hash(before, &view, out);
}

/* Reads newest first, and computes the hash of each row from that of the next one. The row before the last
 * one that is read is `before`. */
static void expect(const struct audit_filter *filter, const char *expected, const uint8_t before[HASH_BYTES])
{
    autotext struct text seen = {0};
    autorows struct rows rows = reader_audit(rig.reader, filter, &rig.err);
    struct audit_row all[8], row;
    uint8_t hash[HASH_BYTES];
    size_t count = 0;
    text_append(&seen, "");
    while (rows_audit(&rows, &row)) {
        ck_assert_uint_lt(count, 8);
        text_printf(&seen, "%lld %s\n", (long long)row.seq, row.owner);
        row.owner = row.owner[0] == 'a' ? "anna" : "bob"; /* the texts of a row last until the next one */
        row.token = "abcdefgh", row.address = "127.0.0.1", row.method = "POST", row.path = "/v1/tokens";
        all[count++] = row;
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    ck_assert_str_eq(seen.bytes, expected);
    for (size_t i = 0; before != NULL && i < count; i++) {
        compute(i + 1 < count ? all[i + 1].hash : before, &all[i], hash);
        ck_assert_mem_eq(hash, all[i].hash, HASH_BYTES);
    }
}

static const struct audit_filter whole = {.before_seq = 100, .limit = 100};
static const uint8_t nothing[HASH_BYTES];

START_TEST(each_row_continues_the_one_before_over_a_new_start)
{
    rig_write((struct change[]){act("anna", 10), act("bob", 20)}, 2);
    rig_write_one(act("anna", 15));
    rig_reopen();
    rig_write_one(act("bob", 30));
    expect(&whole, "4 bob\n3 anna\n2 bob\n1 anna\n", nothing);
}
END_TEST

START_TEST(a_list_has_a_limit_an_owner_and_a_beginning)
{
    rig_write((struct change[]){act("anna", 1), act("bob", 2), act("anna", 3), act("bob", 4)}, 4);
    expect(&(struct audit_filter){.before_seq = 4, .limit = 2}, "3 anna\n2 bob\n", NULL);
    expect(&(struct audit_filter){.before_seq = 100, .limit = 9, .owner = "anna"}, "3 anna\n1 anna\n", NULL);
    expect(&(struct audit_filter){.before_seq = 100, .limit = 9, .path = "/v1/nodes/"}, "", NULL);
    expect(&(struct audit_filter){.before_seq = 3, .limit = 9, .path = "/v1/tok"}, "2 bob\n1 anna\n", NULL);
    expect(&(struct audit_filter){.before_seq = 4 + LIMIT_AUDIT_SCAN, .limit = 9}, "4 bob\n", NULL);
    int64_t last, first;
    ck_assert(reader_audit_ends(rig.reader, &last, &first, &rig.err) && last == 4 && first == 1);
}
END_TEST

static bool is_old(int64_t at_ms)
{
    bool found;
    ck_assert(reader_old_audit(rig.reader, at_ms, 100, &found, &rig.err));
    return found;
}

/* The wall clock was set back between the second and the third. */
START_TEST(retention_takes_a_beginning_and_never_the_last)
{
    uint8_t before[HASH_BYTES];
    rig_write((struct change[]){act("anna", 10), act("bob", 30), act("anna", 20), act("bob", 40)}, 4);
    ck_assert(is_old(10) && !is_old(9));
    rig_write_one((struct change){.kind = CHANGE_AUDIT_TRIM, .audit = {.at_ms = 25, .seq = 100}});
    expect(&whole, "4 bob\n3 anna\n2 bob\n", NULL);
    ck_assert(!is_old(25) && is_old(50));
    rig_write_one((struct change){.kind = CHANGE_AUDIT_TRIM, .audit = {.at_ms = 50, .seq = 100}});
    expect(&whole, "4 bob\n", NULL);
    ck_assert(!is_old(50));
    rig_write_one((struct change){.kind = CHANGE_AUDIT_TRIM, .audit = {.at_ms = 50, .seq = 100}});
    {
        autorows struct rows rows = reader_audit(rig.reader, &whole, &rig.err);
        struct audit_row row;
        ck_assert(rows_audit(&rows, &row));
        memcpy(before, row.hash, sizeof before);
    }
    rig_reopen();
    rig_write_one(act("anna", 60));
    expect(&(struct audit_filter){.before_seq = 100, .limit = 1}, "5 anna\n", before);
}
END_TEST

START_TEST(retention_takes_what_is_too_much)
{
    bool found;
    for (int64_t i = 0; i < 6; i++) {
        rig_write_one(act("anna", 1000 + i));
    }
    ck_assert(reader_old_audit(rig.reader, 0, 6, &found, &rig.err) && !found);
    ck_assert(reader_old_audit(rig.reader, 0, 3, &found, &rig.err) && found);
    rig_write_one((struct change){.kind = CHANGE_AUDIT_TRIM, .audit.seq = 3});
    expect(&whole, "6 anna\n5 anna\n4 anna\n", NULL);
    ck_assert(reader_old_audit(rig.reader, 0, 3, &found, &rig.err) && !found);
}
END_TEST

Suite *store_audit_suite(void)
{
    Suite *suite = suite_create("store-audit");
    TCase *cases = tcase_create("audit");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, each_row_continues_the_one_before_over_a_new_start);
    tcase_add_test(cases, a_list_has_a_limit_an_owner_and_a_beginning);
    tcase_add_test(cases, retention_takes_a_beginning_and_never_the_last);
    tcase_add_test(cases, retention_takes_what_is_too_much);
    suite_add_tcase(suite, cases);
    return suite;
}
