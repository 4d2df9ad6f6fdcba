/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/hash against the vectors of FIPS 180-4 and RFC 4231. */
#include <string.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/text/text.h"
#include "tests/unit/base/base_suites.h"

START_TEST(sha256_agrees_with_the_published_vectors)
{
    char hex[HASH_HEX + 1];
    hash_hex("", 0, hex);
    ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_hex("abc", 3, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(a_digest_in_pieces_equals_the_digest_of_the_whole)
{
    uint8_t whole[HASH_BYTES];
    uint8_t pieces[HASH_BYTES];
    hash_bytes("one two three", 13, whole);
    struct hash *hash = hash_create();
    hash_update(hash, "one ", 4);
    hash_update(hash, "", 0);
    hash_update(hash, "two three", 9);
    hash_finish(hash, pieces);
    ck_assert(hash_equal(whole, pieces));
}
END_TEST

/* The first vector of RFC 4231, whose short key is ours with zeros behind it. */
START_TEST(a_keyed_digest_agrees_with_the_published_vector)
{
    uint8_t key[HASH_BYTES] = {0}, digest[HASH_BYTES];
    char hex[HASH_HEX + 1];
    memset(key, 0x0b, 20);
    hash_keyed(key, HASH_BYTES, "Hi There", 8, digest);
    text_to_hex(digest, sizeof digest, hex);
    ck_assert_str_eq(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}
END_TEST

START_TEST(digests_that_differ_in_one_bit_are_not_equal)
{
    uint8_t a[HASH_BYTES];
    uint8_t b[HASH_BYTES];
    hash_bytes("abc", 3, a);
    memcpy(b, a, sizeof b);
    b[HASH_BYTES - 1] ^= 1;
    ck_assert(!hash_equal(a, b));
}
END_TEST

static const char authority[] = "-----BEGIN CERTIFICATE-----\n"
                                "MIIBhDCCASugAwIBAgIQQm+7nH37aAaFCaJh5vksvDAKBggqhkjOPQQDAjAhMR8w\n"
                                "HQYDVQQDExZncHVjdGwgQ0Egb2YgbG9jYWxob3N0MB4XDTI2MTEyMzAyMzM0OFoX\n"
                                "DTM2MTEyMDAzMzM0OFowITEfMB0GA1UEAxMWZ3B1Y3RsIENBIG9mIGxvY2FsaG9z\n"
                                "dDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPe/aHUnYs6B9yvEL3JZLqC774/G\n"
                                "g2GFNgVrUbPPyQdMOzHy15apvnPS5h273rNeTVG7yu32SD8qZnUfAAnbVVmjRTBD\n"
                                "MB0GA1UdDgQWBBQ08QuxdRy4lgT6mw7TG1Sp0Bbb2TASBgNVHRMBAf8ECDAGAQH/\n"
                                "AgEAMA4GA1UdDwEB/wQEAwIBBjAKBggqhkjOPQQDAgNHADBEAiAo8kDjVKSHIbkt\n"
                                "nT/Jr4+7njLlowMIEkTnumjA8R5YIwIgXulN75Vv/smnmqvRe2w+DPU7oXk5wSwo\n"
                                "vSep3ios96A=\n"
                                "-----END CERTIFICATE-----\n";
#define AUTHORITY_PIN "sha256:f9eaed14fbaf271faad0079a9bc7a86132c56b04ad5cf35f461fe1d4672841c8"

/* The pin is that of `openssl x509 -outform der | sha256sum`. */
START_TEST(the_pin_of_a_certificate_is_the_hash_of_its_der)
{
    char pin[PIN_BYTES];
    struct err err;
    ck_assert(pin_of(authority, pin));
    ck_assert_str_eq(pin, AUTHORITY_PIN);
    ck_assert(pin_fits(AUTHORITY_PIN, authority));
    pin[PIN_BYTES - 2] ^= 1;
    ck_assert(!pin_fits(pin, authority));
    ck_assert(!pin_of("-----BEGIN CERTIFICATE-----\n", pin));
    ck_assert(!pin_of("-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", pin));
    ck_assert(!pin_of("", pin));
    ck_assert(pin_check_form(AUTHORITY_PIN, "--ca-pin", &err));
    ck_assert(!pin_check_form("sha256:12", "--ca-pin", &err));
    ck_assert(!pin_check_form("md5:" AUTHORITY_PIN, "--ca-pin", &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
}
END_TEST

Suite *hash_suite(void)
{
    Suite *suite = suite_create("hash");
    TCase *cases = tcase_create("hash");
    tcase_add_test(cases, sha256_agrees_with_the_published_vectors);
    tcase_add_test(cases, a_keyed_digest_agrees_with_the_published_vector);
    tcase_add_test(cases, the_pin_of_a_certificate_is_the_hash_of_its_der);
    tcase_add_test(cases, a_digest_in_pieces_equals_the_digest_of_the_whole);
    tcase_add_test(cases, digests_that_differ_in_one_bit_are_not_equal);
    suite_add_tcase(suite, cases);
    return suite;
}
