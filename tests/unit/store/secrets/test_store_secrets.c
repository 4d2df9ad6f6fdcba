/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: whose they are, how many there are, what sealing them again changes, and what goes with a project.
 */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static struct change secret(enum change_kind kind, const char *owner, const char *project, const char *name,
                            const char *sealed)
{
    return (struct change){.kind = kind,
                           .secret = {.owner = owner,
                                      .project = project,
                                      .name = name,
                                      .set_by = "ann",
                                      .set_ms = 7,
                                      .sealed = (const uint8_t *)sealed,
                                      .sealed_size = (int64_t)strlen(sealed)}};
}

static struct change put(const char *owner, const char *project, const char *name, const char *sealed)
{
    return secret(CHANGE_SECRET_PUT, owner, project, name, sealed);
}

static void append(struct rows rows, struct text *seen)
{
    struct secret_row row;
    while (rows_secret(&rows, &row)) {
        text_printf(seen, "%s/%s/%s=%.*s ", row.owner, row.project, row.name, (int)row.sealed_size,
                    (const char *)row.sealed);
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    rows_close(&rows);
}

static void expect_all(const char *expected)
{
    autotext struct text seen = {0};
    text_append(&seen, "");
    append(reader_all_secrets(rig.reader, &rig.err), &seen);
    ck_assert_str_eq(seen.bytes, expected);
}

static void expect_counts(const char *owner, const char *project, int64_t all, int64_t own)
{
    int64_t counted, mine;
    ck_assert(reader_secret_counts(rig.reader, owner, project, &counted, &mine, &rig.err));
    ck_assert_int_eq(counted, all);
    ck_assert_int_eq(mine, own);
}

START_TEST(one_is_found_by_owner_project_and_name_and_a_later_value_takes_its_place)
{
    autotext struct text seen = {0};
    rig_write((struct change[]){put("ann", "", "B", "1"), put("ann", "", "A", "2"), put("eve", "", "A", "3"),
                                put("", "ann", "A", "4"), put("ann", "", "B", "five")},
              5);
    expect_all("/ann/A=4 ann//A=2 ann//B=five eve//A=3 ");
    append(reader_secrets(rig.reader, "ann", "", &rig.err), &seen);
    append(reader_secret(rig.reader, "", "ann", "A", &rig.err), &seen);
    append(reader_secret(rig.reader, "", "ann", "B", &rig.err), &seen);
    ck_assert_str_eq(seen.bytes, "ann//A=2 ann//B=five /ann/A=4 ");
    expect_counts("ann", "", 4, 2);
    expect_counts("", "ann", 4, 1);
    expect_counts("bob", "", 4, 0);
}
END_TEST

START_TEST(one_that_is_gone_is_not_sealed_again_and_may_be_removed_twice)
{
    rig_write((struct change[]){put("ann", "", "A", "1"), put("ann", "", "B", "2"),
                                secret(CHANGE_SECRET_DELETE, "ann", "", "A", ""),
                                secret(CHANGE_SECRET_SEAL, "ann", "", "A", "anew"),
                                secret(CHANGE_SECRET_SEAL, "ann", "", "B", "anew"),
                                secret(CHANGE_SECRET_DELETE, "ann", "", "A", "")},
              6);
    expect_all("ann//B=anew ");
}
END_TEST

START_TEST(secrets_of_a_project_go_with_it_and_those_of_a_person_of_its_name_do_not)
{
    struct change limits = {.kind = CHANGE_LIMITS_PUT,
                            .limits = {.kind = ACCOUNT_PROJECT, .name = "vision", .limits = "{}"}};
    struct change user = {.kind = CHANGE_LIMITS_PUT,
                          .limits = {.kind = ACCOUNT_USER, .name = "vision", .limits = "{}"}};
    rig_write((struct change[]){limits, user, put("", "vision", "A", "1"), put("", "other", "A", "2"),
                                put("vision", "", "A", "3")},
              5);
    user.kind = limits.kind = CHANGE_LIMITS_DELETE;
    rig_write_one(user);
    expect_all("/other/A=2 /vision/A=1 vision//A=3 ");
    rig_write_one(limits);
    expect_all("/other/A=2 vision//A=3 ");
}
END_TEST

Suite *store_secrets_suite(void)
{
    Suite *suite = suite_create("store_secrets");
    TCase *tests = tcase_create("secrets");
    tcase_add_checked_fixture(tests, rig_begin, rig_end);
    tcase_add_test(tests, one_is_found_by_owner_project_and_name_and_a_later_value_takes_its_place);
    tcase_add_test(tests, one_that_is_gone_is_not_sealed_again_and_may_be_removed_twice);
    tcase_add_test(tests, secrets_of_a_project_go_with_it_and_those_of_a_person_of_its_name_do_not);
    suite_add_tcase(suite, tests);
    return suite;
}
