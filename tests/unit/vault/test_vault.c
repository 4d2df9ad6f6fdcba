/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/vault: a value opens with its key and under its label, and in no other way; and at no point
 * of a rotation is a key missing. */
#include "daemon/vault/vault.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

static char folder[64], path[96];
static struct vault *vault;
static uint8_t *sealed;
static size_t sealed_size;

static const struct vault_label label = {"ann", "", "HF_TOKEN"};

static void set_up(void)
{
    struct err err;
    strcpy(folder, "/tmp/gpuctl-vault-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/" VAULT_FILE, folder);
    vault = vault_open(path, &err);
    ck_assert_ptr_nonnull(vault);
}

static void tear_down(void)
{
    struct err err;
    free(give(sealed));
    vault_close(vault);
    ck_assert(file_remove_tree(folder, &err));
}

static void open_again(void)
{
    struct err err;
    vault_close(vault);
    vault = vault_open(path, &err);
    ck_assert_msg(vault != NULL, "%s", err.text);
}

static void seal(const char *value, size_t size)
{
    struct err err;
    free(give(sealed));
    ck_assert_msg(vault_seal(vault, &label, value, size, &sealed, &sealed_size, &err), "%s", err.text);
}

static bool opens_as(const struct vault_label *as, const uint8_t *bytes, size_t size, const char *expected)
{
    struct err err;
    uint8_t *value;
    size_t length;
    if (!vault_unseal(vault, as, bytes, size, &value, &length, &err)) {
        ck_assert_int_eq(err.code, ERR_DAMAGED);
        return false;
    }
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_mem_eq(value, expected, length);
    vault_wipe(value, length);
    return true;
}

static bool opens(const char *expected)
{
    return opens_as(&label, sealed, sealed_size, expected);
}

START_TEST(a_value_opens_again_also_after_a_restart_and_is_not_in_what_is_stored)
{
    seal("a value to keep", 15);
    ck_assert(memmem(sealed, sealed_size, "value", 5) == NULL);
    ck_assert_uint_eq(vault_value_size(sealed_size), 15);
    ck_assert(opens("a value to keep"));
    open_again();
    ck_assert(opens("a value to keep"));
}
END_TEST

START_TEST(the_first_value_makes_the_file_for_its_owner_alone)
{
    struct stat status;
    ck_assert_int_ne(access(path, F_OK), 0);
    seal("x", 1);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
}
END_TEST

START_TEST(equal_values_are_sealed_differently)
{
    seal("same", 4);
    autofree uint8_t *first = give(sealed);
    seal("same", 4);
    ck_assert_mem_ne(first, sealed, sealed_size);
}
END_TEST

/* Of version, key id, nonce, bytes and tag. */
START_TEST(a_value_with_any_byte_changed_or_cut_off_does_not_open)
{
    seal("a value", 7);
    for (size_t i = 0; i < sealed_size; i++) {
        sealed[i] ^= 1;
        ck_assert_msg(!opens("a value"), "byte %zu", i);
        sealed[i] ^= 1;
    }
    for (size_t size = 0; size < sealed_size; size++) {
        ck_assert(!opens_as(&label, sealed, size, "a value"));
    }
    ck_assert(opens("a value"));
}
END_TEST

START_TEST(a_value_does_not_open_as_another_secret)
{
    static const struct vault_label others[] = {
        {"eve", "", "HF_TOKEN"}, {"", "ann", "HF_TOKEN"}, {"ann", "", "HF_TOKE"}, {"ann", "HF_TOKEN", ""}};
    seal("a value", 7);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert(!opens_as(&others[i], sealed, sealed_size, "a value"));
    }
}
END_TEST

START_TEST(without_its_key_a_value_does_not_open)
{
    seal("a value", 7);
    ck_assert_int_eq(unlink(path), 0);
    open_again();
    ck_assert(!vault_has_key(vault, sealed, sealed_size));
    ck_assert(!opens("a value"));
}
END_TEST

START_TEST(an_older_key_opens_until_it_is_dropped)
{
    struct err err;
    seal("a value", 7);
    ck_assert(vault_is_newest(vault, sealed, sealed_size));
    ck_assert(vault_renew(vault, &err));
    open_again(); /* as after a crash in a rotation */
    ck_assert(!vault_is_newest(vault, sealed, sealed_size) && opens("a value"));
    autofree uint8_t *older = give(sealed);
    size_t older_size = sealed_size;
    seal("a value", 7);
    ck_assert(vault_is_newest(vault, sealed, sealed_size));
    ck_assert(vault_drop_older(vault, &err));
    open_again();
    ck_assert(opens("a value") && !opens_as(&label, older, older_size, "a value"));
}
END_TEST

START_TEST(a_key_that_cannot_be_written_is_not_used)
{
    struct err err;
    seal("a value", 7);
    autofree char *away = xprintf("%s-away", folder);
    ck_assert_int_eq(rename(folder, away), 0);
    ck_assert(!vault_renew(vault, &err));
    ck_assert_int_eq(rename(away, folder), 0);
    ck_assert(vault_is_newest(vault, sealed, sealed_size) && opens("a value"));
}
END_TEST

START_TEST(there_are_so_many_keys_and_no_more)
{
    struct err err;
    seal("a value", 7);
    for (int i = 1; i < LIMIT_SECRET_KEYS; i++) {
        ck_assert(vault_renew(vault, &err));
    }
    ck_assert(!vault_renew(vault, &err));
    ck_assert_int_eq(err.code, ERR_CONFLICT);
    open_again();
    ck_assert(opens("a value"));
}
END_TEST

static const char *const no_keys[] = {
    "",
    "\n",
    "0011223344556677\n",
    "0011223344556677 00\n",
    "001122334455667x 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n",
    "0011223344556677-000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n",
    "0011223344556677 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\nx\n",
};

START_TEST(a_file_that_holds_no_keys_stops_the_controller)
{
    struct err err;
    ck_assert(file_replace(path, no_keys[_i], strlen(no_keys[_i]), 0600, &err));
    ck_assert_ptr_null(vault_open(path, &err));
    ck_assert_int_eq(err.code, ERR_DAMAGED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vault");
    TCase *cases = tcase_create("vault");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_value_opens_again_also_after_a_restart_and_is_not_in_what_is_stored);
    tcase_add_test(cases, the_first_value_makes_the_file_for_its_owner_alone);
    tcase_add_test(cases, equal_values_are_sealed_differently);
    tcase_add_test(cases, a_value_with_any_byte_changed_or_cut_off_does_not_open);
    tcase_add_test(cases, a_value_does_not_open_as_another_secret);
    tcase_add_test(cases, without_its_key_a_value_does_not_open);
    tcase_add_test(cases, an_older_key_opens_until_it_is_dropped);
    tcase_add_test(cases, a_key_that_cannot_be_written_is_not_used);
    tcase_add_test(cases, there_are_so_many_keys_and_no_more);
    tcase_add_loop_test(cases, a_file_that_holds_no_keys_stops_the_controller, 0,
                        sizeof no_keys / sizeof no_keys[0]);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
