/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/hash against the vectors of FIPS 180-4 and RFC 4231. */
#include <string.h>

#include "proto/base/hash.h"
#include "proto/base/text.h"
#include "tests/unit/base_suites.h"

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
    hash_keyed(key, "Hi There", 8, digest);
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

Suite *hash_suite(void)
{
    Suite *suite = suite_create("hash");
    TCase *cases = tcase_create("hash");
    tcase_add_test(cases, sha256_agrees_with_the_published_vectors);
    tcase_add_test(cases, a_keyed_digest_agrees_with_the_published_vector);
    tcase_add_test(cases, a_digest_in_pieces_equals_the_digest_of_the_whole);
    tcase_add_test(cases, digests_that_differ_in_one_bit_are_not_equal);
    suite_add_tcase(suite, cases);
    return suite;
}
