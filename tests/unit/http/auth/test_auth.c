/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/auth: tokens. */
#include <stdio.h>
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/http/http_suites.h"

#define NOW 1000000

static struct auth *auth;
static struct token token;
static struct token_row row;
static struct err err;

static void open_auth(void)
{
    uint8_t random[TOKEN_RANDOM_BYTES];
    for (size_t i = 0; i < sizeof random; i++) {
        random[i] = (uint8_t)(0xff - 7 * i);
    }
    auth = auth_create();
    token_make(random, &token);
    row = (struct token_row){.id = token.id, .role = ROLE_USER, .owner = "anna", .created_ms = 1};
    memcpy(row.secret, token.secret, sizeof row.secret);
    auth_put(auth, &row);
}

static void close_auth(void)
{
    auth_destroy(auth);
}

static const struct identity *check(const char *scheme, const char *text)
{
    char header[256];
    snprintf(header, sizeof header, "%s%s", scheme, text);
    memset(&err, 0, sizeof err);
    char credential[CREDENTIAL_BYTES];
    auth_credential(header, credential);
    return auth_check(auth, credential, NOW, &err);
}

START_TEST(a_token_has_the_form_that_secret_scanners_know)
{
    ck_assert_uint_eq(strlen(token.text), TOKEN_LENGTH);
    ck_assert_int_eq(strncmp(token.text, "gct_", 4), 0);
    ck_assert_int_eq(token.text[4 + TOKEN_ID_LENGTH], '_');
    const char *secret = token.text + 4 + TOKEN_ID_LENGTH + 1;
    ck_assert_uint_eq(strspn(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                      TOKEN_SECRET_LENGTH);
    uint8_t hash[HASH_BYTES];
    hash_bytes(secret, TOKEN_SECRET_LENGTH, hash);
    ck_assert_mem_eq(hash, token.secret, sizeof hash);
}
END_TEST

START_TEST(the_right_token_names_its_owner_and_role)
{
    const struct identity *who = check("Bearer ", token.text);
    ck_assert_ptr_nonnull(who);
    ck_assert_str_eq(identity_owner(who), "anna");
    ck_assert_int_eq(identity_role(who), ROLE_USER);
    ck_assert(!identity_is_admin(who));
    ck_assert_ptr_eq(check("bearer ", token.text), who);
}
END_TEST

START_TEST(unknown_and_wrong_tokens_get_the_same_words)
{
    char forged[TOKEN_LENGTH + 1];
    strcpy(forged, token.text);
    forged[TOKEN_LENGTH - 1] ^= 1;
    ck_assert_ptr_null(check("Bearer ", forged));
    const struct err wrong = err;
    strcpy(forged, token.text);
    forged[4] = forged[4] == 'a' ? 'b' : 'a';
    ck_assert_ptr_null(check("Bearer ", forged));
    ck_assert_int_eq(err.code, ERR_UNAUTHENTICATED);
    ck_assert_mem_eq(&wrong, &err, sizeof err);
}
END_TEST

START_TEST(what_is_no_token_is_refused)
{
    static const char *const texts[] = {"", "nonsense", "gct_", "gct_aaaaaaaa_", "gct_aaaaaaaa_short"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_ptr_null(check("Bearer ", texts[i]));
        ck_assert_int_eq(err.code, ERR_UNAUTHENTICATED);
    }
    char longer[TOKEN_LENGTH + 2];
    snprintf(longer, sizeof longer, "%sA", token.text);
    ck_assert_ptr_null(check("Bearer ", longer));
    ck_assert_ptr_null(check("Basic ", token.text));
    char none[CREDENTIAL_BYTES];
    auth_credential(NULL, none);
    ck_assert_ptr_null(auth_check(auth, none, NOW, &err));
    ck_assert_int_eq(err.code, ERR_UNAUTHENTICATED);
}
END_TEST

START_TEST(a_token_may_be_the_password_of_any_name)
{
    autofree char *pair = xprintf("anybody:%s", token.text);
    autofree char *basic = text_to_base64((const uint8_t *)pair, strlen(pair));
    ck_assert_ptr_nonnull(check("Basic ", basic));
    ck_assert_ptr_nonnull(check("basic ", basic));
    autofree char *name_only = text_to_base64((const uint8_t *)token.text, strlen(token.text));
    ck_assert_ptr_null(check("Basic ", name_only));
    autofree char *longer = xprintf("a:%0200d", 1);
    autofree char *too_long = text_to_base64((const uint8_t *)longer, strlen(longer));
    ck_assert_ptr_null(check("Basic ", too_long));
}
END_TEST

START_TEST(a_revoked_token_is_refused_and_no_longer_stands)
{
    const struct identity *who = check("Bearer ", token.text);
    row.revoked = true;
    auth_put(auth, &row);
    ck_assert_ptr_null(check("Bearer ", token.text));
    ck_assert(!identity_stands(who, NOW));
}
END_TEST

START_TEST(a_token_expires_at_its_time)
{
    row.expires_ms = NOW;
    auth_put(auth, &row);
    ck_assert_ptr_null(check("Bearer ", token.text));
    row.expires_ms = NOW + 1;
    auth_put(auth, &row);
    ck_assert_ptr_nonnull(check("Bearer ", token.text));
}
END_TEST

/* S1 */
START_TEST(a_bound_token_speaks_for_its_node_alone_and_an_unbound_one_for_any)
{
    ck_assert(identity_acts_for(check("Bearer ", token.text), "n2", &err));
    ck_assert(!auth_has_node(auth, "n1", NOW));
    auth_destroy(auth);
    auth = auth_create();
    row.role = ROLE_NODE;
    row.node = "n1";
    auth_put(auth, &row);
    const struct identity *who = check("Bearer ", token.text);
    ck_assert(identity_acts_for(who, "n1", &err));
    ck_assert(!identity_acts_for(who, "n2", &err));
    ck_assert_int_eq(err.code, ERR_FORBIDDEN);
    ck_assert(!identity_acts_for(who, "", &err));
    ck_assert(auth_has_node(auth, "n1", NOW) && !auth_has_node(auth, "n2", NOW));
    row.revoked = true;
    auth_put(auth, &row);
    ck_assert(!auth_has_node(auth, "n1", NOW));
}
END_TEST

static void put(const char *id, const char *owner, enum role role, const char *subject, int64_t expires_ms)
{
    auth_put(auth, &(struct token_row){
                       .id = id, .owner = owner, .role = role, .subject = subject, .expires_ms = expires_ms});
}

static const char *acting(const char *owner)
{
    const struct identity *who = auth_of_owner(auth, owner, 100, NOW);
    return who != NULL ? identity_id(who) : "nobody";
}

START_TEST(an_owner_acts_by_the_highest_token_or_the_newest_login_that_is_not_long_ago)
{
    ck_assert_str_eq(acting("eve"), "nobody");
    put("eeeeeee1", "eve", ROLE_VIEWER, NULL, 0);
    put("eeeeeee2", "eve", ROLE_NODE, NULL, 0);
    ck_assert_str_eq(acting("eve"), "nobody");
    put("eeeeeee3", "eve", ROLE_ADMIN, NULL, NOW); /* has expired */
    put("eeeeeee4", "eve", ROLE_USER, NULL, NOW + 1);
    ck_assert_str_eq(acting("eve"), "eeeeeee4");
    put("eeeeeee5", "eve", ROLE_OPERATOR, NULL, 0);
    ck_assert_str_eq(acting("eve"), "eeeeeee5");
    put("llllllo1", "lea", ROLE_ADMIN, "sub", NOW - 50);
    ck_assert_str_eq(acting("lea"), "llllllo1");
    put("llllllo2", "lea", ROLE_USER, "sub", NOW - 40); /* a later login says what lea is now */
    ck_assert_str_eq(acting("lea"), "llllllo2");
    put("ooooooo1", "old", ROLE_USER, "sub", NOW - 101);
    ck_assert_str_eq(acting("old"), "nobody");
    auth_put(auth, &(struct token_row){.id = "llllllo2", .owner = "lea", .revoked = true, .expires_ms = NOW});
    ck_assert_str_eq(acting("lea"), "nobody");
}
END_TEST

Suite *auth_suite(void)
{
    Suite *suite = suite_create("auth");
    TCase *cases = tcase_create("auth");
    tcase_add_checked_fixture(cases, open_auth, close_auth);
    tcase_add_test(cases, a_token_has_the_form_that_secret_scanners_know);
    tcase_add_test(cases, the_right_token_names_its_owner_and_role);
    tcase_add_test(cases, unknown_and_wrong_tokens_get_the_same_words);
    tcase_add_test(cases, what_is_no_token_is_refused);
    tcase_add_test(cases, a_token_may_be_the_password_of_any_name);
    tcase_add_test(cases, a_revoked_token_is_refused_and_no_longer_stands);
    tcase_add_test(cases, a_token_expires_at_its_time);
    tcase_add_test(cases, a_bound_token_speaks_for_its_node_alone_and_an_unbound_one_for_any);
    tcase_add_test(cases, an_owner_acts_by_the_highest_token_or_the_newest_login_that_is_not_long_ago);
    suite_add_tcase(suite, cases);
    return suite;
}
