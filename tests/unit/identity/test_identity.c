/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/identity: ID tokens that are taken, and those that are forged, old, or for others. */
#include <check.h>
#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/identity/base64url.h"
#include "daemon/identity/group_roles.h"
#include "daemon/identity/groups.h"
#include "daemon/identity/id_token.h"
#include "proto/base/cleanup.h"
#include "proto/base/http/discovery.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"
#include "tests/unit/identity/signer.h"

#define NOW_S  1800000000LL
#define ISSUER "https://login.example.org"
#define HEADER "{\"alg\":\"RS256\",\"kid\":\"one\"}"

static struct signer rsa, curve, edwards;
static struct keys *keys;
static struct id_token_rules rules;
static struct claims claims;
static struct err err;
static bool unknown;

static struct keys *read_keys(const char *text)
{
    return keys_parse(text, strlen(text), &err);
}

static void open_all(void)
{
    signer_init(&rsa, SIGNER_RSA, 0);
    signer_init(&curve, SIGNER_P256, 0);
    signer_init(&edwards, SIGNER_ED25519, 0);
    autofree char *one = signer_jwk(&rsa, ",\"kid\":\"one\",\"use\":\"sig\"");
    autofree char *two = signer_jwk(&curve, ",\"kid\":\"two\",\"alg\":\"ES256\"");
    autofree char *three = signer_jwk(&edwards, ",\"kid\":\"three\"");
    autofree char *set =
        xprintf("{\"keys\":[%s,%s,%s,{\"kty\":\"oct\",\"kid\":\"four\",\"k\":\"AAAA\"},7]}", one, two, three);
    keys = read_keys(set);
    ck_assert_msg(keys != NULL, "%s", err.text);
    ck_assert_uint_eq(keys_count(keys), 3);
    rules = (struct id_token_rules){.issuer = ISSUER,
                                    .client_id = "gpuctl",
                                    .user_claim = "preferred_username",
                                    .groups_claim = "groups"};
}

static void close_all(void)
{
    signer_finish(&rsa);
    signer_finish(&curve);
    signer_finish(&edwards);
    keys_destroy(keys);
}

/* The claims of ann, where more is put behind. */
static char *claims_with(const char *more)
{
    return xprintf("{\"iss\":\"" ISSUER "\",\"sub\":\"a1\",\"aud\":\"gpuctl\",\"exp\":%lld,\"iat\":%lld,"
                   "\"preferred_username\":\"ann\"%s}",
                   NOW_S + 600, NOW_S, more);
}

static bool check(const char *token)
{
    memset(&err, 0, sizeof err);
    return id_token_check(token, keys, &rules, 1000 * NOW_S, &claims, &unknown, &err);
}

static bool taken(const struct signer *signer, bool pss, const char *header, const char *text)
{
    autofree char *token = signer_token(signer, pss, header, text);
    if (!check(token)) {
        return false;
    }
    claims_finish(&claims);
    return true;
}

/* The RSA key signs it. */
static bool says(const char *text)
{
    return taken(&rsa, false, HEADER, text);
}

#define REFUSED(what, why)                                                                                   \
    do {                                                                                                     \
        ck_assert(!(what));                                                                                  \
        ck_assert_msg(strstr(err.text, why) != NULL, "%s", err.text);                                        \
        ck_assert_str_eq(err.field, "id_token");                                                             \
    } while (0)

START_TEST(a_token_of_each_algorithm_says_who_it_is_of)
{
    autofree char *text = claims_with(",\"groups\":[\"ml\",\"ops team\",\"ml\",\"bad\\u0001\"]");
    autofree char *token = signer_token(&rsa, false, HEADER, text);
    ck_assert_msg(check(token), "%s", err.text);
    ck_assert_str_eq(claims.name, "ann");
    ck_assert_str_eq(claims.subject, ISSUER " a1");
    ck_assert_str_eq(claims.groups.bytes, "\nml\nops team\n");
    ck_assert_int_eq(claims.until_ms, 1000 * NOW_S + 600000 + ID_TOKEN_LEEWAY_MS);
    claims_finish(&claims);
    ck_assert(taken(&rsa, true, "{\"alg\":\"PS256\",\"kid\":\"one\",\"typ\":\"JWT\"}", text));
    ck_assert(taken(&curve, false, "{\"alg\":\"ES256\",\"kid\":\"two\"}", text));
    ck_assert(taken(&edwards, false, "{\"alg\":\"EdDSA\",\"kid\":\"three\"}", text));
    ck_assert(taken(&edwards, false, "{\"alg\":\"EdDSA\"}", text)); /* there is one of its kind */
}
END_TEST

/* A shared secret that everybody has: the public key, in each of its spellings. */
START_TEST(a_public_key_is_no_secret_to_sign_with)
{
    static const char header[] = "{\"alg\":\"HS256\",\"kid\":\"one\"}";
    autofree char *text = claims_with(""), *jwk = signer_jwk(&rsa, "");
    gnutls_pubkey_t public;
    gnutls_datum_t pem, der;
    gnutls_pubkey_init(&public);
    gnutls_pubkey_import_privkey(public, rsa.key, 0, 0);
    gnutls_pubkey_export2(public, GNUTLS_X509_FMT_PEM, &pem);
    gnutls_pubkey_export2(public, GNUTLS_X509_FMT_DER, &der);
    const gnutls_datum_t secrets[] = {
        pem, der, {(unsigned char *)jwk, (unsigned)strlen(jwk)}, {(unsigned char *)jwk, 0}};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        uint8_t mac[32];
        autotext struct text token = {0};
        signer_encode(header, strlen(header), &token);
        text_append(&token, ".");
        signer_encode(text, strlen(text), &token);
        gnutls_hmac_fast(GNUTLS_MAC_SHA256, secrets[i].data, secrets[i].size, token.bytes, token.length, mac);
        text_append(&token, ".");
        signer_encode(mac, sizeof mac, &token);
        REFUSED(check(token.bytes), "is not signed with");
    }
    gnutls_free(pem.data);
    gnutls_free(der.data);
    gnutls_pubkey_deinit(public);
}
END_TEST

START_TEST(no_other_algorithm_and_no_other_key_is_taken)
{
    static const char *const refused[] = {"{\"alg\":\"none\",\"kid\":\"one\"}",
                                          "{\"alg\":\"None\",\"kid\":\"one\"}",
                                          "{\"alg\":\"rs256\",\"kid\":\"one\"}",
                                          "{\"alg\":\"RS512\",\"kid\":\"one\"}",
                                          "{\"kid\":\"one\"}",
                                          "{\"alg\":7,\"kid\":\"one\"}",
                                          "{\"alg\":\"\"}"};
    autofree char *text = claims_with("");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        REFUSED(taken(&rsa, false, refused[i], text), "is not signed with");
    }
    /* another kind of key, or one for another algorithm: the token does not choose how a key is used */
    static const char *const unfit[] = {
        "{\"alg\":\"RS256\",\"kid\":\"two\"}", "{\"alg\":\"ES256\",\"kid\":\"one\"}",
        "{\"alg\":\"RS256\",\"kid\":\"four\"}", "{\"alg\":\"RS256\",\"kid\":\"nine\"}"};
    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++) {
        REFUSED(taken(&rsa, false, unfit[i], text), "a key that the identity provider does not name");
        ck_assert(unknown);
    }
    REFUSED(taken(&rsa, true, HEADER, text), "a signature that does not fit"); /* PSS, said to be PKCS 1.5 */
    REFUSED(taken(&rsa, false, "{\"alg\":\"PS256\",\"kid\":\"one\"}", text), "a signature that does not fit");
    ck_assert(!unknown);
    struct signer thief;
    signer_init(&thief, SIGNER_RSA, 0);
    autofree char *own = signer_jwk(&thief, "");
    autofree char *brings =
        xprintf("{\"alg\":\"RS256\",\"kid\":\"one\",\"jwk\":%s,\"jku\":\"https://x.example/\"}", own);
    REFUSED(taken(&thief, false, HEADER, text), "a signature that does not fit");
    REFUSED(taken(&thief, false, brings, text), "a signature that does not fit");
    signer_finish(&thief);
}
END_TEST

START_TEST(a_header_that_is_not_understood_is_refused)
{
    autofree char *text = claims_with("");
    REFUSED(taken(&rsa, false, "{\"alg\":\"RS256\",\"kid\":\"one\",\"crit\":[\"b64\"],\"b64\":false}", text),
            "header");
    REFUSED(taken(&rsa, false, "{\"alg\":\"RS256\",\"kid\":\"one\",\"typ\":\"at+jwt\"}", text), "header");
    REFUSED(taken(&rsa, false, "{\"alg\":\"RS256\",\"kid\":1}", text), "header");
    REFUSED(taken(&rsa, false, "{\"alg\":\"RS256\",\"alg\":\"RS256\",\"kid\":\"one\"}", text),
            "is not whole");
    REFUSED(taken(&rsa, false, "[]", text), "is not whole");
    REFUSED(taken(&rsa, false, HEADER, "[]"), "is not whole");
    REFUSED(taken(&rsa, false, HEADER, "{"), "is not whole");
}
END_TEST

START_TEST(each_byte_of_a_token_matters)
{
    autofree char *text = claims_with(""),
                  *token = signer_token(&curve, false, "{\"alg\":\"ES256\",\"kid\":\"two\"}", text);
    size_t length = strlen(token);
    ck_assert(check(token));
    claims_finish(&claims);
    for (size_t i = 0; i < length; i++) {
        char kept = token[i];
        token[i] = kept == 'A' ? 'B' : 'A';
        ck_assert_msg(!check(token), "byte %zu", i);
        token[i] = '\0';
        ck_assert_msg(!check(token), "cut at %zu", i);
        token[i] = kept;
    }
    autofree char *longer = xprintf("%sAA", token), *padded = xprintf("%s=", token),
                  *more = xprintf("%s.A", token);
    ck_assert(!check(longer) && !check(padded) && !check(more) && !check("") && !check("..") &&
              !check("a.b"));
    autofree char *huge = xalloc(LIMIT_ID_TOKEN_BYTES + 2);
    memset(huge, 'A', LIMIT_ID_TOKEN_BYTES + 1);
    huge[LIMIT_ID_TOKEN_BYTES + 1] = '\0';
    REFUSED(check(huge), "is not whole");
}
END_TEST

START_TEST(a_token_is_of_our_issuer_for_our_client)
{
    static const char *const refused[][2] = {
        {"\"iss\":\"" ISSUER "/\",\"aud\":\"gpuctl\"", "another issuer"},
        {"\"aud\":\"gpuctl\"", "another issuer"},
        {"\"iss\":[\"" ISSUER "\"],\"aud\":\"gpuctl\"", "another issuer"},
        {"\"iss\":\"" ISSUER "\",\"aud\":\"gpuctl2\"", "another client"},
        {"\"iss\":\"" ISSUER "\"", "another client"},
        {"\"iss\":\"" ISSUER "\",\"aud\":[]", "another client"},
        {"\"iss\":\"" ISSUER "\",\"aud\":[\"gpuctl\",\"x\"]", "another client"},
        {"\"iss\":\"" ISSUER "\",\"aud\":[\"gpuctl\",\"x\"],\"azp\":\"x\"", "another client"},
        {"\"iss\":\"" ISSUER "\",\"aud\":\"gpuctl\",\"azp\":\"x\"", "another client"},
        {"\"iss\":\"" ISSUER "\",\"aud\":{\"gpuctl\":1}", "another client"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        autofree char *text =
            xprintf("{%s,\"sub\":\"a1\",\"exp\":%lld,\"iat\":%lld,\"preferred_username\":\"ann\"}",
                    refused[i][0], NOW_S + 600, NOW_S);
        REFUSED(says(text), refused[i][1]);
        ck_assert_int_eq(err.code, ERR_UNAUTHENTICATED);
    }
    autofree char *several = xprintf(
        "{\"iss\":\"" ISSUER "\",\"aud\":[\"x\",\"gpuctl\"],\"azp\":\"gpuctl\",\"sub\":\"a1\",\"exp\":%lld,"
        "\"iat\":%lld,\"preferred_username\":\"ann\"}",
        NOW_S + 600, NOW_S);
    ck_assert(says(several));
}
END_TEST

START_TEST(a_token_has_a_time_to_be_used)
{
    static const struct {
        const char *end, *made, *more; /* seconds from now, or texts */
        const char *why;               /* NULL: it is taken */
    } table[] = {
        {"600", "0", "", NULL},
        {"-119", "-300", "", NULL}, /* clocks differ */
        {"-120", "-300", "", "has expired"},
        {"600", "120", "", NULL},
        {"600", "121", "", "of the future"},
        {"600", "-719", "", NULL},
        {"600", "-720", "", "too long ago"},
        {"6000", "0", ",\"nbf\":1800000120", NULL},
        {"6000", "0", ",\"nbf\":1800000121", "of the future"},
        {"6000", "0", ",\"nbf\":\"soon\"", "does not say when"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        autofree char *text =
            xprintf("{\"iss\":\"" ISSUER "\",\"aud\":\"gpuctl\",\"sub\":\"a1\",\"preferred_username\":"
                    "\"ann\",\"exp\":%lld,\"iat\":%lld%s}",
                    NOW_S + atoll(table[i].end), NOW_S + atoll(table[i].made), table[i].more);
        bool good = says(text);
        ck_assert_msg(good == (table[i].why == NULL), "%zu: %s", i, err.text);
        ck_assert_msg(good || strstr(err.text, table[i].why) != NULL, "%zu: %s", i, err.text);
    }
    static const char *const without[] = {"\"exp\":1800000600",
                                          "\"iat\":1800000000",
                                          "\"exp\":1e300,\"iat\":1800000000",
                                          "\"exp\":\"1800000600\",\"iat\":1800000000",
                                          "\"exp\":-1,\"iat\":1800000000",
                                          "\"exp\":null,\"iat\":null"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        autofree char *text =
            xprintf("{\"iss\":\"" ISSUER "\",\"aud\":\"gpuctl\",\"sub\":\"a1\",%s}", without[i]);
        REFUSED(says(text), "does not say when");
    }
}
END_TEST

START_TEST(a_name_is_one_that_jobs_can_have)
{
    static const struct {
        const char *claim, *domain, *members;
        const char *name; /* NULL: none */
    } table[] = {
        {"nick", NULL, ",\"nick\":\"a.b-c_9\"", "a.b-c_9"},
        {"nick", NULL, ",\"nick\":\"ann@example.org\"", NULL},
        {"nick", "example.org", ",\"nick\":\"ann@Example.Org\"", "ann"},
        {"nick", "example.org", ",\"nick\":\"ann@example.org.evil\"", NULL},
        {"nick", "example.org", ",\"nick\":\"ann@x@example.org\"", NULL},
        {"nick", "example.org", ",\"nick\":\"ann\"", NULL},
        {"nick", "example.org", ",\"nick\":\"@example.org\"", NULL},
        {"nick", NULL, ",\"nick\":\"service:ci\"", NULL},
        {"nick", NULL, ",\"nick\":\"a/b\"", NULL},
        {"nick", NULL, ",\"nick\":\"\"", NULL},
        {"nick", NULL, ",\"nick\":[\"ann\"]", NULL},
        {"nick", NULL, "", NULL},
        {"email", "example.org", ",\"email\":\"ann@example.org\",\"email_verified\":true", "ann"},
        {"email", "example.org", ",\"email\":\"ann@example.org\",\"email_verified\":\"true\"", NULL},
        {"email", "example.org", ",\"email\":\"ann@example.org\"", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        rules.user_claim = table[i].claim;
        rules.user_domain = table[i].domain;
        autofree char *text = claims_with(table[i].members), *token = signer_token(&rsa, false, HEADER, text);
        bool good = check(token);
        ck_assert_msg(good == (table[i].name != NULL), "%zu: %s", i, err.text);
        if (good) {
            ck_assert_str_eq(claims.name, table[i].name);
            claims_finish(&claims);
        } else {
            ck_assert_int_eq(err.code, ERR_FORBIDDEN);
        }
    }
}
END_TEST

START_TEST(groups_are_a_list_of_a_bounded_length)
{
    autotext struct text many = {0};
    text_append(&many, ",\"groups\":[\"first\"");
    for (int i = 0; i < 100; i++) {
        text_printf(&many, ",\"%0100d\"", i);
    }
    text_append(&many, "]");
    const char *const refused[] = {many.bytes, ",\"groups\":7", ",\"groups\":[7]", ",\"groups\":{\"a\":1}",
                                   ",\"_claim_names\":{\"groups\":\"src1\"}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        autofree char *text = claims_with(refused[i]);
        REFUSED(says(text), "is no list of texts, or longer");
        ck_assert_int_eq(err.code, ERR_FORBIDDEN);
    }
    autofree char *one = claims_with(",\"groups\":\"ml\"");
    ck_assert(says(one));
    ck_assert(groups_have("\nml\nops\n", "ops") && groups_have("\nml\nops\n", "ml"));
    ck_assert(!groups_have("\nml\nops\n", "op") && !groups_have("\nml\nops\n", "s") &&
              !groups_have(NULL, "ml"));
}
END_TEST

START_TEST(a_subject_is_printable_and_bounded)
{
    static const char *const subjects[] = {"\"\"", "7", "\"a b\"", "\"\\u00e9\"", "null"};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        autofree char *text =
            xprintf("{\"iss\":\"" ISSUER "\",\"aud\":\"gpuctl\",\"exp\":%lld,\"iat\":%lld,\"sub\":%s,"
                    "\"preferred_username\":\"ann\"}",
                    NOW_S + 600, NOW_S, subjects[i]);
        REFUSED(says(text), "does not say whose");
    }
}
END_TEST

START_TEST(keys_that_are_weak_or_not_sound_are_left_out)
{
    struct signer weak;
    signer_init(&weak, SIGNER_RSA, 1024);
    autofree char *jwk = signer_jwk(&weak, ""), *good = signer_jwk(&edwards, "");
    autofree char *encrypts = signer_jwk(&edwards, ",\"use\":\"enc\""),
                  *other = signer_jwk(&edwards, ",\"alg\":\"RS256\"");
    signer_finish(&weak);
    const char *const left_out[] = {jwk,
                                    encrypts,
                                    other,
                                    "{}",
                                    "7",
                                    "{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}",
                                    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
                                    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"*\"}"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        autofree char *set = xprintf("{\"keys\":[%s]}", left_out[i]),
                      *both = xprintf("{\"keys\":[%s,%s]}", left_out[i], good);
        struct keys *none = read_keys(set), *one = read_keys(both);
        ck_assert_msg(none == NULL && err.code == ERR_UNAVAILABLE, "%zu", i);
        ck_assert_msg(one != NULL && keys_count(one) == 1, "%zu", i);
        keys_destroy(one);
    }
    ck_assert(read_keys("{}") == NULL && read_keys("[") == NULL && read_keys("{\"keys\":{}}") == NULL);
}
END_TEST

START_TEST(of_two_keys_that_could_fit_none_is_guessed)
{
    autofree char *one = signer_jwk(&edwards, ""), *two = signer_jwk(&edwards, ",\"kid\":\"x\"");
    autofree char *set = xprintf("{\"keys\":[%s,%s]}", one, two), *text = claims_with("");
    keys_destroy(keys);
    keys = read_keys(set);
    REFUSED(taken(&edwards, false, "{\"alg\":\"EdDSA\"}", text), "does not name");
    ck_assert(taken(&edwards, false, "{\"alg\":\"EdDSA\",\"kid\":\"x\"}", text));
}
END_TEST

START_TEST(bytes_have_one_spelling_in_base64url)
{
    uint8_t out[8];
    size_t length;
    ck_assert(base64url_decode("-_8", 3, out, sizeof out, &length) && length == 2 && out[0] == 0xfb &&
              out[1] == 0xff);
    ck_assert(base64url_decode("", 0, out, sizeof out, &length) && length == 0);
    static const char *const refused[] = {"-_9", "A", "AB", "AA==", "A A", "+/8", "AAAAA"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_msg(!base64url_decode(refused[i], strlen(refused[i]), out, sizeof out, &length), "%s",
                      refused[i]);
    }
    ck_assert(base64url_decode("AAAAAAAAAAA", 11, out, 8, &length) && length == 8);
    ck_assert(!base64url_decode("AAAAAAAAAAA", 11, out, 7, &length));
}
END_TEST

START_TEST(the_highest_role_of_ones_groups_counts)
{
    static const char *const items[] = {"ml=user", "a=b=viewer", "ops=operator"};
    static const char *const everybody[] = {"*=viewer"};
    const struct group_roles roles = {items, 3}, all = {everybody, 1};
    ck_assert(group_roles_check(&roles, &err) && group_roles_check(&all, &err));
    ck_assert_int_eq(group_roles_find(&roles, "\nml\nops\n"), ROLE_OPERATOR);
    ck_assert_int_eq(group_roles_find(&roles, "\na=b\n"), ROLE_VIEWER);
    ck_assert_int_eq(group_roles_find(&roles, "\n*\nm\n"), ROLE_NONE);
    ck_assert_int_eq(group_roles_find(&roles, NULL), ROLE_NONE);
    ck_assert_int_eq(group_roles_find(&all, NULL), ROLE_VIEWER);
    static const char *const wrong[] = {"ml", "=user", "ml=node", "ml=root", "ml=", "ml=none"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct group_roles bad = {&wrong[i], 1};
        ck_assert_msg(!group_roles_check(&bad, &err) && strcmp(err.field, "--oidc-role") == 0, "%s",
                      wrong[i]);
    }
}
END_TEST

START_TEST(an_address_is_encrypted_or_of_this_host)
{
    static const char *const safe[] = {"https://login.example.org", "https://login.example.org:8443/realms/x",
                                       "http://127.0.0.1:1", "http://localhost/x", "http://[::1]:80/"};
    static const char *const unsafe[] = {"http://login.example.org",
                                         "http://127.0.0.1.example.org/",
                                         "ftp://127.0.0.1/",
                                         "http://localhost.example.org",
                                         "https://u:p@login.example.org/",
                                         "https://login.example.org/?a",
                                         "https://login.example.org/#a",
                                         "file:///etc/passwd",
                                         "login.example.org",
                                         "",
                                         "https://",
                                         "https://a b/",
                                         "http://127.0.0.1@example.org/"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++) {
        ck_assert_msg(fetch_is_safe(safe[i]), "%s", safe[i]);
    }
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++) {
        ck_assert_msg(!fetch_is_safe(unsafe[i]), "%s", unsafe[i]);
    }
}
END_TEST

START_TEST(a_description_is_of_its_issuer_and_names_safe_places)
{
    static const struct {
        const char *text, *why;
    } table[] = {
        {"{\"issuer\":\"" ISSUER
         "\",\"jwks_uri\":\"https://k.example.org/\",\"token_endpoint\":\"https://t.example.org/\"}",
         NULL},
        {"{\"issuer\":\"" ISSUER "/\",\"jwks_uri\":\"https://k.example.org/\"}", "is not that issuer"},
        {"{\"issuer\":\"" ISSUER "\",\"token_endpoint\":\"https://t.example.org/\"}",
         "does not say its jwks_uri"},
        {"{\"issuer\":\"" ISSUER
         "\",\"jwks_uri\":\"http://k.example.org/\",\"token_endpoint\":\"https://t.example.org/\"}",
         "jwks_uri of the identity provider is no https"},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://k.example.org/\",\"token_endpoint\":7}",
         "token_endpoint"},
        {"{\"issuer\":\"" ISSUER
         "\",\"jwks_uri\":\"https://k.example.org/\",\"token_endpoint\":\"https://t.example.org/\","
         "\"device_authorization_endpoint\":\"http://d.example.org/\"}",
         "device_authorization_endpoint"},
        {"[]", "is not that issuer"},
        {"<html>", "is not that issuer"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct discovery discovery;
        bool good = discovery_decode(table[i].text, strlen(table[i].text), ISSUER, &discovery, &err);
        ck_assert_msg(good == (table[i].why == NULL), "%zu: %s", i, err.text);
        if (good) {
            ck_assert(discovery.device == NULL && strcmp(discovery.keys, "https://k.example.org/") == 0);
            discovery_finish(&discovery);
        } else {
            ck_assert_msg(strstr(err.text, table[i].why) != NULL, "%zu: %s", i, err.text);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("identity");
    TCase *cases = tcase_create("identity");
    tcase_add_checked_fixture(cases, open_all, close_all);
    tcase_add_test(cases, a_token_of_each_algorithm_says_who_it_is_of);
    tcase_add_test(cases, a_public_key_is_no_secret_to_sign_with);
    tcase_add_test(cases, no_other_algorithm_and_no_other_key_is_taken);
    tcase_add_test(cases, a_header_that_is_not_understood_is_refused);
    tcase_add_test(cases, each_byte_of_a_token_matters);
    tcase_add_test(cases, a_token_is_of_our_issuer_for_our_client);
    tcase_add_test(cases, a_token_has_a_time_to_be_used);
    tcase_add_test(cases, a_name_is_one_that_jobs_can_have);
    tcase_add_test(cases, groups_are_a_list_of_a_bounded_length);
    tcase_add_test(cases, a_subject_is_printable_and_bounded);
    tcase_add_test(cases, keys_that_are_weak_or_not_sound_are_left_out);
    tcase_add_test(cases, of_two_keys_that_could_fit_none_is_guessed);
    tcase_add_test(cases, bytes_have_one_spelling_in_base64url);
    tcase_add_test(cases, the_highest_role_of_ones_groups_counts);
    tcase_add_test(cases, an_address_is_encrypted_or_of_this_host);
    tcase_add_test(cases, a_description_is_of_its_issuer_and_names_safe_places);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
